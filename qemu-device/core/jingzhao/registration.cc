// SPDX-License-Identifier: GPL-2.0-or-later
// What WQEs do to MPTs: fast registration, windows, invalidation (interface document, 4.16).
#include <algorithm>

#include "byte_order.h"
#include "jingzhao/memory.h"
#include "jingzhao/mtt.h"

namespace hghca {

namespace {

constexpr uint32_t kWindowRights = HGHCA_ACCESS_REMOTE_WRITE | HGHCA_ACCESS_REMOTE_READ |
                                   HGHCA_ACCESS_REMOTE_ATOMIC | HGHCA_ACCESS_FLUSH_GLOBAL;

}  // namespace

Mpt *MemoryTable::entry_to_change(Key key)
{
    Mpt *mpt = entry(key).context;
    if (mpt)
        cache_.mark_dirty(*mpt);
    return mpt;
}

// A window lets go of its region, if it has one.
bool MemoryTable::release_region(const Mpt &window)
{
    if (window.is_region() || window.is_free())
        return true;
    const Lookup<Mpt> found = entry(window.lkey);
    Mpt *region = found.context;
    if (region && region->is_region() && region->windows) {
        cache_.mark_dirty(*region);
        region->windows--;
    }
    return !found.unreadable;
}

void MemoryTable::make_free(Mpt &mpt)
{
    release_region(mpt);
    mpt.flags |= HGHCA_MPT_FLAG_FREE;
    counters_.keys_invalidated++;
    forget();
}

// The list may be memory that changes under way, or none: each address is taken once.
bool MemoryTable::copy_pages(const Mpt &mpt, const Registration &r)
{
    constexpr uint32_t kAtOnce = 512;
    uint64_t entries[kAtOnce];
    const uint64_t first = mtt_base_ + mpt.mtt_first * kMttSize;
    if (!icm_.mapped(IcmSpace::Tpt, first, r.pages * kMttSize))
        return false;
    for (uint32_t done = 0; done < r.pages;) {
        const uint32_t n = std::min(kAtOnce, r.pages - done);
        if (!host_.read(r.list + done * sizeof(uint64_t), entries, n * sizeof(uint64_t)))
            return false;
        for (uint32_t i = 0; i < n; i++)
            entries[i] = le64((le64(entries[i]) & HGHCA_MTT_ADDR_MASK) | kMttPresent);
        if (!icm_.store(IcmSpace::Tpt, first + done * kMttSize, entries, n * kMttSize))
            return false;
        done += n;
        work_.add();
    }
    return true;
}

Allowed MemoryTable::register_region(uint32_t pd, const Registration &r)
{
    Mpt *mpt = entry(r.key).context;
    if (!mpt || mpt->pd != pd || !(mpt->flags & HGHCA_MPT_FLAG_FAST_REG) || !mpt->is_free() ||
        r.page_size > kMaxPageShift - 12 || r.pages > std::min<uint32_t>(mpt->mtt_count, HGHCA_REG_MR_PAGES_MAX))
        return Allowed::No;
    const bool zero_based = uses_first_byte_ && r.access & HGHCA_ACCESS_ZERO_BASED;
    if (zero_based && (r.start || r.first_byte >> (r.page_size + 12)))
        return Allowed::No;
    const uint64_t start = zero_based ? r.first_byte : r.start;
    const uint64_t end = r.list + r.pages * sizeof(uint64_t);
    const uint64_t needed = r.length ? pages_of(start, r.length, r.page_size + 12) : 0;
    if ((r.length && (!needed || start + (r.length - 1) < start)) || needed > r.pages || end < r.list ||
        !copy_pages(*mpt, r))
        return Allowed::No;
    mpt->flags = (r.access & kRights) | (zero_based ? HGHCA_ACCESS_ZERO_BASED : 0) | HGHCA_MPT_FLAG_REGION |
                 HGHCA_MPT_FLAG_FAST_REG;
    mpt->key = r.key;
    mpt->page_shift = r.page_size + 12;
    mpt->start = start;
    mpt->length = r.length;
    cache_.mark_dirty(static_cast<Mpt &>(*mpt));
    counters_.regions_registered++;
    forget();
    return Allowed::Yes;
}

Allowed MemoryTable::bind_window(KeyUser user, const Binding &b)
{
    Mpt *window = entry_to_change(b.rkey);
    const bool one_qp = window && window->flags & HGHCA_MPT_FLAG_WINDOW_QP;
    if (!window || window->is_region() || window->pd != user.pd || (one_qp && !window->is_free()))
        return Allowed::No;
    if (!b.length) {
        // o10-37.2.40: a window of type 2 is not unbound by a bind.
        if (one_qp)
            return Allowed::No;
        window->key = b.rkey;
        if (!window->is_free())
            make_free(*window);
        return Allowed::Yes;
    }
    const uint32_t changes = b.access & (HGHCA_ACCESS_REMOTE_WRITE | HGHCA_ACCESS_REMOTE_ATOMIC);
    const uint32_t needed = HGHCA_ACCESS_MW_BIND | (changes ? uint32_t(HGHCA_ACCESS_LOCAL_WRITE) : 0);
    Mpt *region = entry_to_change(b.lkey);
    if (!region || region->key != b.lkey || !region->is_region() || region->is_free() || region->is_on_demand() ||
        region->pd != user.pd ||
        needed & ~region->flags || !region->contains(b.va, b.length))
        return Allowed::No;
    release_region(*window);
    region->windows++;
    window->flags = (b.access & kWindowRights) | (one_qp ? HGHCA_MPT_FLAG_WINDOW_QP : 0);
    window->key = b.rkey;
    window->start = b.access & HGHCA_ACCESS_ZERO_BASED ? 0 : b.va;
    window->length = b.length;
    window->base = b.va;
    window->lkey = b.lkey;
    window->qpn = user.qpn;
    counters_.regions_registered++;
    forget();
    return Allowed::Yes;
}

// IBA vol 1, 10.6.7.2: a bound window of type 2B is invalidated through the QP it is bound to alone.
bool MemoryTable::can_invalidate(const Mpt &mpt, KeyUser user) const
{
    if (mpt.pd != user.pd)
        return false;
    if (mpt.is_region())
        return mpt.flags & HGHCA_MPT_FLAG_FAST_REG && !mpt.windows;
    return mpt.flags & HGHCA_MPT_FLAG_WINDOW_QP && (mpt.is_free() || mpt.qpn == user.qpn);
}

Allowed MemoryTable::invalidate(KeyUser user, Key key)
{
    Mpt *mpt = entry_to_change(key);
    if (!mpt || mpt->key != key || !can_invalidate(*mpt, user))
        return Allowed::No;
    make_free(*mpt);
    return Allowed::Yes;
}

Allowed MemoryTable::invalidate_remotely(KeyUser user, Key key)
{
    Mpt *mpt = entry_to_change(key);
    if (!mpt || mpt->key != key || mpt->is_free() || !can_invalidate(*mpt, user) || !(mpt->flags & kWindowRights))
        return Allowed::No;
    make_free(*mpt);
    return Allowed::Yes;
}

}  // namespace hghca
