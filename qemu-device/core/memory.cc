// SPDX-License-Identifier: GPL-2.0-or-later
#include "memory.h"

#include <algorithm>
#include <cstring>

#include "byte_order.h"

namespace hghca {

namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kMttSize = 8;
// An MTT in ICM is little-endian, with this bit beside the address: zeroed memory holds no MTT.
constexpr uint64_t kMttPresent = 1;
constexpr uint32_t kMaxPageShift = 30;
constexpr uint32_t kRights = HGHCA_ACCESS_LOCAL_WRITE | HGHCA_ACCESS_REMOTE_WRITE | HGHCA_ACCESS_REMOTE_READ |
                             HGHCA_ACCESS_REMOTE_ATOMIC;

// The number of MTTs of a region, or 0 when its bounds make no sense.
uint64_t pages_of(uint64_t start, uint64_t length, uint32_t page_shift)
{
    uint64_t lead = start & ((1ull << page_shift) - 1);
    uint64_t last = lead + (length - 1);
    return last < lead ? 0 : (last >> page_shift) + 1;
}

}  // namespace

MemoryTable::MemoryTable(Host &host, Icm &icm, Counters &counters)
    : host_(host), icm_(icm), cache_(icm, counters), counters_(counters), host_pages_(kHostPages)
{
}

void MemoryTable::configure(uint64_t mpt_base, unsigned log_mpts, uint64_t mtt_base, uint64_t mtt_count)
{
    forget();
    cache_.configure(mpt_base, 1ull << log_mpts);
    mtt_base_ = mtt_base;
    mtt_count_ = mtt_count;
}

void MemoryTable::clear()
{
    forget();
    cache_.clear();
    mtt_count_ = 0;
}

void MemoryTable::forget()
{
    last_ = nullptr;
    generation_++;
}

void MemoryTable::dma_changed()
{
    host_generation_++;
    forget();
}

void MemoryTable::trim(size_t capacity)
{
    if (cache_.cached() <= capacity)
        return;
    last_ = nullptr;
    cache_.trim(capacity);
}

void MemoryTable::flush(uint64_t from, uint64_t length)
{
    forget();
    cache_.flush(from, length);
}

// What comes back from ICM must be something sw2hw_mpt() accepts.
bool MemoryTable::valid(const Mpt &mpt, uint32_t index) const
{
    if ((mpt.key & (cache_.count() - 1)) != index || mpt.page_shift < 12 || mpt.page_shift > kMaxPageShift)
        return false;
    if (mpt.length && mpt.start + (mpt.length - 1) < mpt.start)
        return false;
    if (!mpt.length || mpt.flags & HGHCA_MPT_FLAG_PHYSICAL)
        return true;
    uint64_t pages = pages_of(mpt.start, mpt.length, mpt.page_shift);
    return pages && mpt.mtt_first <= mtt_count_ && pages <= mtt_count_ - mpt.mtt_first;
}

uint8_t MemoryTable::sw2hw_mpt(uint32_t index, const hghca_mpt &in)
{
    if (uint8_t status = cache_.check(index))
        return status;
    uint32_t flags = be32(in.flags);
    uint32_t key = be32(in.key);
    uint32_t page_size = be32(in.page_size);
    if ((key & (cache_.count() - 1)) != index || !(flags & HGHCA_MPT_FLAG_REGION) ||
        flags & HGHCA_MPT_FLAG_SW_OWNS)
        return HGHCA_CMD_STAT_BAD_PARAM;
    if (page_size > kMaxPageShift - 12)
        return HGHCA_CMD_STAT_BAD_SEG_PARAM;
    Mpt mpt{flags & (kRights | HGHCA_MPT_FLAG_PHYSICAL), key, be32(in.pd), page_size + 12, be64(in.start),
            be64(in.length), uint64_t(be32(in.mtt_seg_h)) << 32 | be32(in.mtt_seg_l)};
    if (!valid(mpt, index))
        return HGHCA_CMD_STAT_BAD_SEG_PARAM;
    if (cache_.find(index, [this](const Mpt &m, uint32_t i) { return valid(m, i); }))
        return HGHCA_CMD_STAT_BAD_RES_STATE;
    cache_.insert(index, mpt);
    forget();
    return HGHCA_CMD_STAT_OK;
}

uint8_t MemoryTable::hw2sw_mpt(uint32_t index)
{
    if (uint8_t status = cache_.check(index))
        return status;
    if (!cache_.find(index, [this](const Mpt &m, uint32_t i) { return valid(m, i); }))
        return HGHCA_CMD_STAT_BAD_RES_STATE;
    forget();
    cache_.erase(index);
    return HGHCA_CMD_STAT_OK;
}

uint8_t MemoryTable::write_mtt(uint64_t first, const uint64_t *dma, uint32_t count)
{
    if (!count || count > HGHCA_MTT_PER_MAILBOX)
        return HGHCA_CMD_STAT_BAD_PARAM;
    if (first >= mtt_count_ || count > mtt_count_ - first)
        return HGHCA_CMD_STAT_BAD_INDEX;
    uint64_t address = mtt_base_ + first * kMttSize;
    if (!icm_.mapped(IcmSpace::Tpt, address, count * kMttSize))
        return HGHCA_CMD_STAT_LAM_NOT_PRE;
    uint64_t entries[HGHCA_MTT_PER_MAILBOX];
    for (uint32_t i = 0; i < count; i++)
        entries[i] = le64((dma[i] & HGHCA_MTT_ADDR_MASK) | kMttPresent);
    forget();
    return icm_.store(IcmSpace::Tpt, address, entries, count * kMttSize) ? HGHCA_CMD_STAT_OK
                                                                          : HGHCA_CMD_STAT_INTERNAL_ERR;
}

const Mpt *MemoryTable::find(uint32_t key)
{
    if (last_ && last_key_ == key) {
        counters_.context_hits++;
        return last_;
    }
    if (!cache_.count())
        return nullptr;
    uint32_t index = key & uint32_t(cache_.count() - 1);
    const Mpt *mpt = cache_.find(index, [this](const Mpt &m, uint32_t i) { return valid(m, i); });
    if (!mpt || mpt->key != key)
        return nullptr;
    last_ = mpt;
    last_key_ = key;
    return mpt;
}

const Mpt *MemoryTable::usable(uint32_t key, uint32_t pd, uint64_t va, uint64_t length, Access access)
{
    const Mpt *mpt = find(key);
    if (!mpt || mpt->pd != pd || uint32_t(access) & ~mpt->flags)
        return nullptr;
    if (length && (va < mpt->start || length > mpt->length || va - mpt->start > mpt->length - length))
        return nullptr;
    return mpt;
}

bool MemoryTable::check(uint32_t key, uint32_t pd, uint64_t va, uint64_t length, Access access)
{
    return usable(key, pd, va, length, access);
}

// The DMA address of `va`.
bool MemoryTable::page_of(const Mpt &mpt, uint64_t va, uint64_t &dma)
{
    if (mpt.flags & HGHCA_MPT_FLAG_PHYSICAL) {
        dma = va;
        return true;
    }
    uint64_t mask = (1ull << mpt.page_shift) - 1;
    uint64_t offset = va - (mpt.start & ~mask);
    uint64_t address = mtt_base_ + (mpt.mtt_first + (offset >> mpt.page_shift)) * kMttSize;
    uint64_t entry;
    // 8 | 256 | mtt_base_: an MTT stands in one page.
    if (const uint8_t *p = icm_.pointer(IcmSpace::Tpt, address))
        std::memcpy(&entry, p, sizeof(entry));
    else if (!icm_.load(IcmSpace::Tpt, address, &entry, sizeof(entry)))
        return false;
    entry = le64(entry);
    dma = (entry & HGHCA_MTT_ADDR_MASK) + (offset & mask);
    return entry & kMttPresent;
}

uint8_t *MemoryTable::host_page(uint64_t dma, bool write)
{
    uint64_t tag = (dma & ~(kPage - 1)) | write;
    HostPage &page = host_pages_[(dma / kPage) % kHostPages];
    if (page.tag != tag || page.generation != host_generation_)
        page = {tag, host_generation_, host_.map(dma & ~(kPage - 1), kPage, write)};
    return page.pointer;
}

bool MemoryTable::run(const Mpt &mpt, uint64_t va, uint64_t length, bool write, Segment &out)
{
    uint64_t dma;
    if (!page_of(mpt, va, dma))
        return false;
    uint64_t offset = dma % kPage;
    uint8_t *page = host_page(dma, write);
    out = {page ? page + offset : nullptr, dma, uint32_t(std::min(length, kPage - offset))};
    return true;
}

bool MemoryTable::read(uint32_t key, uint32_t pd, uint64_t va, void *buffer, uint32_t length)
{
    const Mpt *mpt = usable(key, pd, va, length, Access::LocalRead);
    auto *out = static_cast<uint8_t *>(buffer);
    while (mpt && length) {
        Segment s;
        if (!run(*mpt, va, length, false, s))
            return false;
        if (s.pointer)
            std::memcpy(out, s.pointer, s.length);
        else if (!host_.read(s.dma, out, s.length))
            return false;
        out += s.length;
        va += s.length;
        length -= s.length;
    }
    return mpt;
}

bool MemoryTable::write(uint32_t key, uint32_t pd, uint64_t va, const void *buffer, uint32_t length)
{
    const Mpt *mpt = usable(key, pd, va, length, Access::LocalWrite);
    auto *in = static_cast<const uint8_t *>(buffer);
    while (mpt && length) {
        Segment s;
        if (!run(*mpt, va, length, true, s))
            return false;
        if (s.pointer) {
            std::memcpy(s.pointer, in, s.length);
            host_.dirty(s.dma, s.length);
        } else if (!host_.write(s.dma, in, s.length)) {
            return false;
        }
        in += s.length;
        va += s.length;
        length -= s.length;
    }
    return mpt;
}

}  // namespace hghca
