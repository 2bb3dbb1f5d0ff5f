// SPDX-License-Identifier: GPL-2.0-or-later
#include "jingzhao/memory.h"

#include <algorithm>
#include <cstring>

#include "byte_order.h"
#include "jingzhao/mtt.h"
#include "jingzhao/translate.h"

namespace hghca {

namespace {

constexpr uint64_t kPage = 4096;
constexpr uint32_t kKept = kRights | HGHCA_MPT_FLAG_REGION | HGHCA_MPT_FLAG_PHYSICAL | HGHCA_MPT_FLAG_DEVICE;

}  // namespace

// Flags that a command may set together.
bool MemoryTable::good_flags(uint32_t flags) const
{
    const uint32_t extension = HGHCA_MPT_FLAG_FAST_REG | HGHCA_MPT_FLAG_FREE | HGHCA_MPT_FLAG_WINDOW_QP;
    const uint32_t others = extension | HGHCA_MPT_FLAG_PHYSICAL;
    if (flags & HGHCA_MPT_FLAG_SW_OWNS)
        return false;
    if (flags & HGHCA_ACCESS_ON_DEMAND && uses_demand_)
        return flags & HGHCA_MPT_FLAG_REGION && !(flags & (others | HGHCA_MPT_FLAG_DEVICE));
    if (flags & HGHCA_MPT_FLAG_TREE && uses_demand_)
        return false;
    if (flags & HGHCA_MPT_FLAG_DEVICE)
        return uses_device_ && flags & HGHCA_MPT_FLAG_REGION && !(flags & others);
    if (!tags_below_)
        return flags & HGHCA_MPT_FLAG_REGION && !(flags & extension);
    if (!(flags & HGHCA_MPT_FLAG_REGION))
        return flags & HGHCA_MPT_FLAG_FREE && !(flags & (HGHCA_MPT_FLAG_FAST_REG | HGHCA_MPT_FLAG_PHYSICAL));
    if (flags & HGHCA_MPT_FLAG_FAST_REG)
        return !(flags & (HGHCA_MPT_FLAG_PHYSICAL | HGHCA_MPT_FLAG_WINDOW_QP));
    return !(flags & extension);
}

uint64_t pages_of(uint64_t start, uint64_t length, uint32_t page_shift)
{
    uint64_t lead = start & ((1ull << page_shift) - 1);
    uint64_t last = lead + (length - 1);
    return last < lead ? 0 : (last >> page_shift) + 1;
}

MemoryTable::MemoryTable(Host &host, Icm &icm, Counters &counters, Work &work, const DeviceMemory &on_device)
    : host_(host), icm_(icm), on_device_(on_device), cache_(icm, counters, work), counters_(counters), work_(work),
      host_pages_(kHostPages), translations_(kTranslations)
{
}

void MemoryTable::configure(uint64_t mpt_base, unsigned log_mpts, uint64_t mtt_base, uint64_t mtt_count,
                            bool tags_below, bool uses_device, bool uses_demand, bool uses_first_byte)
{
    forget();
    tags_below_ = tags_below;
    uses_device_ = uses_device;
    uses_demand_ = uses_demand;
    uses_first_byte_ = uses_first_byte;
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

bool MemoryTable::write_back(uint64_t from, uint64_t length) { return cache_.write_back(from, length); }

void MemoryTable::forget(uint64_t from, uint64_t length)
{
    forget();
    cache_.forget(from, length);
}

uint32_t MemoryTable::index_of(Key key) const
{
    return tags_below_ ? field_get(HGHCA_KEY_INDEX_MASK, number(key)) : number(key) & uint32_t(cache_.count() - 1);
}

// What comes back from ICM must be something a command or a WQE has made.
bool MemoryTable::valid(const Mpt &mpt, uint32_t index) const
{
    if (index_of(mpt.key) != index || mpt.page_shift < 12 || mpt.page_shift > kMaxPageShift)
        return false;
    if (mpt.length && mpt.start + (mpt.length - 1) < mpt.start)
        return false;
    if (mpt.is_region() && mpt.is_zero_based() && (!uses_first_byte_ || mpt.start >> mpt.page_shift))
        return false;
    if (mpt.is_on_demand() && (!uses_demand_ || !good_flags(mpt.flags)))
        return false;
    if (mpt.is_tree()) {
        const uint64_t pages = mpt.length ? pages_of(mpt.start, mpt.length, mpt.page_shift) : 1;
        return mpt.is_on_demand() && pages && pages <= kTreePages && mtts_exist(mpt.mtt_first, kTableEntries);
    }
    if (mpt.is_on_device())
        return good_flags(mpt.flags) && mpt.offset <= on_device_.bytes &&
               mpt.length <= on_device_.bytes - mpt.offset;
    const bool fast = mpt.flags & HGHCA_MPT_FLAG_FAST_REG;
    if (fast && !mtts_exist(mpt.mtt_first, mpt.mtt_count))
        return false;
    if (!mpt.length || mpt.is_free() || !mpt.is_region() || mpt.flags & HGHCA_MPT_FLAG_PHYSICAL)
        return true;
    const uint64_t pages = pages_of(mpt.start, mpt.length, mpt.page_shift);
    return pages && (fast ? pages <= mpt.mtt_count : mtts_exist(mpt.mtt_first, pages));
}

uint8_t MemoryTable::find_for_command(uint32_t index, Mpt *&out)
{
    return cache_.find_for_command(index, [this](const Mpt &m, uint32_t i) { return valid(m, i); }, out);
}

uint8_t MemoryTable::sw2hw_mpt(uint32_t index, const hghca_mpt &in, std::span<const uint64_t> mtts)
{
    Mpt *old;
    if (uint8_t status = find_for_command(index, old))
        return status;
    const uint32_t flags = be32(in.flags);
    const uint32_t page_size = be32(in.page_size);
    Mpt mpt{};
    mpt.key = Key(be32(in.key));
    mpt.pd = be32(in.pd);
    if (index_of(mpt.key) != index || !good_flags(flags))
        return HGHCA_CMD_STAT_BAD_PARAM;
    if (flags & HGHCA_MPT_FLAG_REGION) {
        if (page_size > kMaxPageShift - 12)
            return HGHCA_CMD_STAT_BAD_SEG_PARAM;
        mpt.flags = flags & (kKept | HGHCA_MPT_FLAG_FAST_REG | HGHCA_MPT_FLAG_FREE |
                             (uses_demand_ ? HGHCA_ACCESS_ON_DEMAND | HGHCA_MPT_FLAG_TREE : 0) |
                             (uses_first_byte_ ? HGHCA_ACCESS_ZERO_BASED : 0));
        mpt.page_shift = page_size + 12;
        mpt.start = be64(in.start);
        if (mpt.is_zero_based()) {
            if (mpt.start)
                return HGHCA_CMD_STAT_BAD_PARAM;
            const bool paged = !(flags & (HGHCA_MPT_FLAG_PHYSICAL | HGHCA_MPT_FLAG_DEVICE));
            mpt.start = paged ? be32(in.first_byte) : 0;
        }
        mpt.length = be64(in.length);
        mpt.mtt_first = uint64_t(be32(in.mtt_seg_h)) << 32 | be32(in.mtt_seg_l);
        mpt.mtt_count = be32(in.mtt_sz);
    } else {
        mpt.flags = flags & (HGHCA_MPT_FLAG_FREE | HGHCA_MPT_FLAG_WINDOW_QP);
        mpt.page_shift = 12;
    }
    if (!valid(mpt, index))
        return HGHCA_CMD_STAT_BAD_SEG_PARAM;
    if (old)
        return HGHCA_CMD_STAT_BAD_RES_STATE;
    if (!mtts.empty())
        if (uint8_t status = write_mtt(mpt.mtt_first, mtts.data(), uint32_t(mtts.size())))
            return status;
    cache_.insert(index, mpt);
    forget();
    return HGHCA_CMD_STAT_OK;
}

uint8_t MemoryTable::hw2sw_mpt(uint32_t index)
{
    Mpt *mpt;
    if (uint8_t status = find_for_command(index, mpt))
        return status;
    if (!mpt)
        return HGHCA_CMD_STAT_BAD_RES_STATE;
    if (mpt->is_region() && mpt->windows)
        return HGHCA_CMD_STAT_REG_BOUND;
    if (!release_region(*mpt))
        return HGHCA_CMD_STAT_INTERNAL_ERR;
    forget();
    cache_.erase(index);
    return HGHCA_CMD_STAT_OK;
}

uint8_t MemoryTable::query_mpt(uint32_t index, hghca_mpt &out)
{
    Mpt *mpt;
    if (uint8_t status = find_for_command(index, mpt))
        return status;
    if (!mpt)
        return HGHCA_CMD_STAT_BAD_RES_STATE;
    out = {};
    out.flags = be32(mpt->flags);
    out.page_size = be32(mpt->page_shift - 12);
    out.key = be32(number(mpt->key));
    out.pd = be32(mpt->pd);
    out.start = be64(mpt->first());
    out.length = be64(mpt->length);
    if (mpt->is_region()) {
        out.window_count = be32(mpt->windows);
        out.mtt_seg_h = be32(uint32_t(mpt->mtt_first >> 32));
        out.mtt_seg_l = be32(uint32_t(mpt->mtt_first));
        out.mtt_sz = be32(mpt->mtt_count);
        out.first_byte = be32(mpt->is_zero_based() ? uint32_t(mpt->start) : 0);
    } else {
        out.lkey = be32(number(mpt->lkey));
    }
    return HGHCA_CMD_STAT_OK;
}

uint64_t MemoryTable::mtt_address(uint64_t index) const { return mtt_base_ + index * kMttSize; }

uint8_t MemoryTable::check_mtts(uint64_t first, uint64_t count) const
{
    if (first >= mtt_count_ || count > mtt_count_ - first)
        return HGHCA_CMD_STAT_BAD_INDEX;
    return icm_.mapped(IcmSpace::Tpt, mtt_address(first), count * kMttSize) ? HGHCA_CMD_STAT_OK
                                                                             : HGHCA_CMD_STAT_LAM_NOT_PRE;
}

uint8_t MemoryTable::write_mtt(uint64_t first, const uint64_t *entries, uint32_t count)
{
    if (!count || count > HGHCA_MTT_PER_MAILBOX)
        return HGHCA_CMD_STAT_BAD_PARAM;
    if (uint8_t status = check_mtts(first, count))
        return status;
    const uint64_t live = uses_demand_ ? HGHCA_MTT_ABSENT | HGHCA_MTT_READ_ONLY : 0;
    uint64_t stored[HGHCA_MTT_PER_MAILBOX];
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t flags = entries[i] & live;
        stored[i] = flags & HGHCA_MTT_ABSENT
                        ? 0
                        : le64((entries[i] & HGHCA_MTT_ADDR_MASK) | kMttPresent |
                               (flags & HGHCA_MTT_READ_ONLY ? 0 : kMttWritable));
    }
    forget();
    work_.add();
    return icm_.store(IcmSpace::Tpt, mtt_address(first), stored, count * kMttSize) ? HGHCA_CMD_STAT_OK
                                                                                    : HGHCA_CMD_STAT_INTERNAL_ERR;
}

uint8_t MemoryTable::clear_mtt(uint64_t first, uint32_t count)
{
    constexpr uint32_t kAtOnce = 512;
    static constexpr uint64_t kAbsent[kAtOnce] = {};
    if (!count || count > HGHCA_CLEAR_MTT_MAX)
        return HGHCA_CMD_STAT_BAD_PARAM;
    if (uint8_t status = check_mtts(first, count))
        return status;
    forget();
    for (uint32_t done = 0; done < count; done += kAtOnce) {
        work_.add();
        if (!icm_.store(IcmSpace::Tpt, mtt_address(first + done), kAbsent,
                        std::min(kAtOnce, count - done) * kMttSize))
            return HGHCA_CMD_STAT_INTERNAL_ERR;
    }
    return HGHCA_CMD_STAT_OK;
}

Lookup<const Mpt> MemoryTable::look_up(Key key)
{
    if (last_ && last_key_ == key) {
        counters_.context_hits++;
        return {last_};
    }
    const Lookup<Mpt> found = entry(key);
    if (!found.context || found.context->key != key)
        return {nullptr, found.unreadable};
    last_ = found.context;
    last_key_ = key;
    return {last_};
}

Lookup<Mpt> MemoryTable::entry(Key key)
{
    if (!cache_.count())
        return {};
    return cache_.find(index_of(key), [this](const Mpt &m, uint32_t i) { return valid(m, i); });
}

Found MemoryTable::usable(Key key, KeyUser user, uint64_t &va, uint64_t length, Access access, const Mpt *&out)
{
    const Lookup<const Mpt> found = look_up(key);
    if (found.unreadable)
        return Found::Unreadable;
    const Mpt *mpt = found.context;
    if (!mpt || mpt->pd != user.pd || mpt->is_free() || right_of(access) & ~mpt->flags)
        return Found::No;
    if (length && !mpt->contains(va, length))
        return Found::No;
    if (!mpt->is_region())
        return behind_window(*mpt, user, va, length, access, out);
    out = mpt;
    return Found::Yes;
}

// The region may have gone, or have been reregistered: all but the rights, which are the window's, counts again.
Found MemoryTable::behind_window(const Mpt &window, KeyUser user, uint64_t &va, uint64_t length, Access access,
                                 const Mpt *&out)
{
    const bool remote = right_of(access) & (HGHCA_ACCESS_REMOTE_WRITE | HGHCA_ACCESS_REMOTE_READ |
                                            HGHCA_ACCESS_REMOTE_ATOMIC | HGHCA_ACCESS_FLUSH_GLOBAL);
    if (!remote || (window.flags & HGHCA_MPT_FLAG_WINDOW_QP && window.qpn != user.qpn))
        return Found::No;
    const uint64_t at = window.base + (va - window.start);
    const Lookup<const Mpt> found = look_up(window.lkey);
    if (found.unreadable)
        return Found::Unreadable;
    const Mpt *region = found.context;
    if (!region || !region->is_region() || region->is_free() || region->pd != user.pd ||
        (length && !region->contains(at, length)))
        return Found::No;
    va = at;
    out = region;
    return Found::Yes;
}

Allowed MemoryTable::check(Key key, KeyUser user, uint64_t va, uint64_t length, Access access)
{
    const Mpt *mpt;
    return usable(key, user, va, length, access, mpt) == Found::Yes ? Allowed::Yes : Allowed::No;
}

bool MemoryTable::check_queue(Key key, uint32_t pd, uint64_t va, uint64_t bytes, Access access)
{
    return check(key, pd, va, bytes, access) == Allowed::Yes && !on_demand(key);
}

bool MemoryTable::on_demand(Key key)
{
    const Mpt *mpt = find(key);
    return mpt && mpt->is_on_demand();
}

Found MemoryTable::load_mtt(uint64_t index, uint64_t &entry)
{
    work_.add();
    const uint64_t address = mtt_address(index);
    // 8 | 256 | mtt_base_: an MTT stands in one page.
    if (const uint8_t *p = icm_.pointer(IcmSpace::Tpt, address))
        std::memcpy(&entry, p, sizeof(entry));
    else if (!icm_.mapped(IcmSpace::Tpt, address, sizeof(entry))) {
        icm_.report_missing();
        return Found::No;
    } else if (!icm_.load(IcmSpace::Tpt, address, &entry, sizeof(entry))) {
        counters_.context_read_errors++;
        icm_.report_error(IcmSpace::Tpt, address, "MTT", "read");
        return Found::Unreadable;
    }
    entry = le64(entry);
    return Found::Yes;
}

Found MemoryTable::mtt_of(const Mpt &mpt, uint64_t number, uint64_t &index)
{
    uint64_t table = mpt.mtt_first;
    if (!mpt.is_tree()) {
        index = table + number;
        return Found::Yes;
    }
    for (unsigned below = HGHCA_MTT_TREE_LEVELS - 1; below; below--) {
        uint64_t entry;
        const uint64_t at = table + (number >> below * HGHCA_MTT_TABLE_SHIFT) % kTableEntries;
        if (const Found found = load_mtt(at, entry); found != Found::Yes)
            return found;
        if (!(entry & kMttPresent))
            return Found::Absent;
        // Software may write any index, and the guest may write to what is kept of it.
        table = entry >> HGHCA_MTT_TABLE_INDEX_SHIFT;
        if (!mtts_exist(table, kTableEntries))
            return Found::No;
    }
    index = table + number % kTableEntries;
    return Found::Yes;
}

// Where `va` is among the bytes of the region's first page and those that follow; of device memory and of physical
// addresses, among all of them. 4 KB there are 4 KB of DMA addresses.
uint64_t MemoryTable::place_of(const Mpt &mpt, uint64_t va)
{
    if (mpt.is_on_device())
        return mpt.offset + (va - mpt.first());
    if (mpt.flags & HGHCA_MPT_FLAG_PHYSICAL)
        return va;
    return (va - mpt.first()) + (mpt.start & ((1ull << mpt.page_shift) - 1));
}

Found MemoryTable::page_of(const Mpt &mpt, uint64_t place, bool write, uint64_t &dma)
{
    if (mpt.is_on_device()) {
        dma = kDeviceMemoryBase + place;
        return Found::Yes;
    }
    if (mpt.flags & HGHCA_MPT_FLAG_PHYSICAL) {
        dma = place;
        return Found::Yes;
    }
    uint64_t index, entry;
    if (const Found found = mtt_of(mpt, place >> mpt.page_shift, index); found != Found::Yes)
        return found;
    if (const Found found = load_mtt(index, entry); found != Found::Yes)
        return found;
    dma = (entry & HGHCA_MTT_ADDR_MASK) + (place & ((1ull << mpt.page_shift) - 1));
    const uint64_t needed = kMttPresent | (write && mpt.is_on_demand() ? kMttWritable : 0);
    if ((entry & needed) == needed)
        return Found::Yes;
    return mpt.is_on_demand() ? Found::Absent : Found::No;
}

uint8_t *MemoryTable::host_page(uint64_t dma, bool write)
{
    uint64_t tag = (dma & ~(kPage - 1)) | write;
    HostPage &page = host_pages_[(dma / kPage) % kHostPages];
    if (page.tag != tag || page.generation != host_generation_)
        page = {tag, host_generation_, host_.map(dma & ~(kPage - 1), kPage, write)};
    return page.pointer;
}

Found MemoryTable::translate_page(const Mpt &mpt, uint64_t place, bool write, Translation &out)
{
    uint64_t dma;
    const Found found = page_of(mpt, place & ~(kPage - 1), write, dma);
    if (found != Found::Yes)
        return found;
    uint8_t *page = mpt.is_on_device() ? on_device_.pointer + (dma - kDeviceMemoryBase) : host_page(dma, write);
    out = {generation_, place / kPage, mpt.key, write, page, dma};
    return Found::Yes;
}

Found MemoryTable::run(const Mpt &mpt, uint64_t va, uint64_t length, bool write, Segment &out)
{
    const uint64_t place = place_of(mpt, va), number_of_page = place / kPage, offset = place % kPage;
    // Spreads the pages of a region, and the regions.
    const uint64_t hash = number_of_page ^ number(mpt.key) * uint64_t(61) ^ write;
    Translation &page = translations_[hash % kTranslations];
    if (page.generation == generation_ && page.number == number_of_page && page.key == mpt.key && page.write == write)
        work_.add();
    else if (const Found found = translate_page(mpt, place, write, page); found != Found::Yes)
        return found;
    out = {page.pointer ? page.pointer + offset : nullptr, page.dma + offset,
           uint32_t(std::min(length, kPage - offset))};
    return Found::Yes;
}

bool MemoryTable::read(Key key, uint32_t pd, uint64_t va, void *buffer, uint32_t length)
{
    const Mpt *mpt;
    if (on_demand(key) || usable(key, pd, va, length, Access::LocalRead, mpt) != Found::Yes)
        return false;
    auto *out = static_cast<uint8_t *>(buffer);
    while (length) {
        Segment s;
        if (run(*mpt, va, length, false, s) != Found::Yes)
            return false;
        if (s.pointer)
            std::memcpy(out, s.pointer, s.length);
        else if (!host_.read(s.dma, out, s.length))
            return false;
        out += s.length;
        va += s.length;
        length -= s.length;
    }
    return true;
}

bool MemoryTable::write(Key key, uint32_t pd, uint64_t va, const void *buffer, uint32_t length)
{
    const Mpt *mpt;
    if (on_demand(key) || usable(key, pd, va, length, Access::LocalWrite, mpt) != Found::Yes)
        return false;
    auto *in = static_cast<const uint8_t *>(buffer);
    while (length) {
        Segment s;
        if (run(*mpt, va, length, true, s) != Found::Yes)
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
    return true;
}

}  // namespace hghca
