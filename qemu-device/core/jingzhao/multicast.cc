// SPDX-License-Identifier: GPL-2.0-or-later
#include "jingzhao/multicast.h"
#include "jingzhao/qp_table.h"

#include <algorithm>
#include <cstring>

#include "byte_order.h"
#include "device.h"
#include "port/roce_v2.h"

namespace hghca {

static_assert(kLogMaxQps <= 16);   // as members are kept

MulticastGroups::MulticastGroups(Device &device) : device_(device), cache_(*device.icm, device.counters_, device.work) {}

void MulticastGroups::configure(uint64_t base, unsigned log_count) { cache_.configure(base, 1ull << log_count); }

void MulticastGroups::clear() { cache_.clear(); }

void MulticastGroups::trim(size_t capacity) { cache_.trim(capacity); }

bool MulticastGroups::write_back(uint64_t from, uint64_t length) { return cache_.write_back(from, length); }

void MulticastGroups::forget(uint64_t from, uint64_t length) { cache_.forget(from, length); }

McgContext *MulticastGroups::find(uint32_t index)
{
    return cache_.find(index, [this](const Context &entry, uint32_t i) { return valid(entry, i); }).context;
}

uint8_t MulticastGroups::find_for_command(uint32_t index, Context *&out)
{
    return cache_.find_for_command(index, [this](const Context &entry, uint32_t i) { return valid(entry, i); }, out);
}

bool MulticastGroups::valid(const Context &entry, uint32_t index) const
{
    return (!entry.next || (entry.next >= buckets() && entry.next < cache_.count() && entry.next != index)) &&
           std::all_of(entry.members.begin(), entry.members.end(),
                       [this](uint16_t qpn) { return qpn < device_.qps->count(); });
}

// ---- commands

uint8_t MulticastGroups::read(uint32_t index, hghca_mgm &out)
{
    Context *entry;
    if (uint8_t status = find_for_command(index, entry))
        return status;
    out = {};
    if (!entry)
        return HGHCA_CMD_STAT_OK;
    out.next = be32(entry->next);
    std::copy(entry->gid.begin(), entry->gid.end(), out.gid);
    for (size_t i = 0; i < entry->members.size(); i++)
        if (entry->members[i])
            out.qp[i] = be32(HGHCA_MGM_QP_VALID | entry->members[i]);
    return HGHCA_CMD_STAT_OK;
}

uint8_t MulticastGroups::write(uint32_t index, const hghca_mgm &in)
{
    Context *old;
    if (uint8_t status = find_for_command(index, old))
        return status;
    Context entry{};
    entry.next = be32(in.next);
    bool empty = true;
    for (size_t i = 0; i < entry.members.size(); i++) {
        const uint32_t word = be32(in.qp[i]);
        if (!(word & HGHCA_MGM_QP_VALID))
            continue;
        const uint32_t qpn = word & HGHCA_MGM_QPN_MASK;
        // Twice the same QP would be two copies for it.
        if (!qpn || qpn >= device_.qps->count() ||
            std::find(entry.members.begin(), entry.members.end(), qpn) != entry.members.end())
            return HGHCA_CMD_STAT_BAD_PARAM;
        entry.members[i] = uint16_t(qpn);
        empty = false;
    }
    if (!empty)
        std::copy(std::begin(in.gid), std::end(in.gid), entry.gid.begin());
    if ((!empty && !is_multicast(entry.gid)) || !valid(entry, index))
        return HGHCA_CMD_STAT_BAD_PARAM;
    if (empty && !entry.next) {
        cache_.erase(index);
    } else if (old) {
        cache_.mark_dirty(*old);
        *old = entry;
    } else {
        cache_.insert(index, entry);
    }
    return HGHCA_CMD_STAT_OK;
}

uint8_t MulticastGroups::hash(const hghca_mgid &in, uint32_t &bucket) const
{
    std::array<uint8_t, 16> gid;
    std::copy(std::begin(in.gid), std::end(in.gid), gid.begin());
    if (!is_multicast(gid))
        return HGHCA_CMD_STAT_BAD_PARAM;
    bucket = bucket_of(gid);
    return HGHCA_CMD_STAT_OK;
}

// ---- for packets

uint32_t MulticastGroups::bucket_of(const std::array<uint8_t, 16> &gid) const
{
    uint64_t high, low;
    std::memcpy(&high, &gid[0], 8);
    std::memcpy(&low, &gid[8], 8);
    // The best mixed bits of a product are its upper ones.
    const uint64_t h = (be64(low) + be64(high) * 0xd6e8feb86659fd93ull) * 0x9e3779b97f4a7c15ull;
    return uint32_t(h >> 32) & (buckets() - 1);
}

const GroupMembers *MulticastGroups::find(const std::array<uint8_t, 16> &gid)
{
    if (!cache_.count())
        return nullptr;
    uint32_t index = bucket_of(gid);
    for (unsigned n = 0; n < HGHCA_MGM_CHAIN_MAX; n++) {
        const Context *entry = find(index);
        if (!entry)
            return nullptr;
        if (entry->gid == gid)
            return &entry->members;
        index = entry->next;
        if (!index)
            return nullptr;
    }
    return nullptr;
}

}  // namespace hghca
