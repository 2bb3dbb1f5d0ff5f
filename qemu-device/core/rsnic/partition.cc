// SPDX-License-Identifier: GPL-2.0-or-later
#include "rsnic/partition.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "byte_order.h"
#include "device.h"
#include "transport/transport.h"

namespace hghca {

namespace {

template <class T, size_t N>
bool all_zero(const T (&reserved)[N])
{
    return std::all_of(std::begin(reserved), std::end(reserved), [](T word) { return !word; });
}

bool good_key(const hghca_partition &in)
{
    const unsigned key_bits = 8u * in.key_size;
    return std::has_single_bit(in.key_size) && in.key_size <= sizeof(uint64_t) &&
           unsigned(in.key_offset + in.key_size) <= 1u << in.log_record &&
           unsigned(in.key_shift + in.log_regions) <= key_bits;
}

bool good_partition(const hghca_partition &in, uint32_t index)
{
    if (in.log_record < HGHCA_PARTITION_LOG_MIN_RECORD || in.log_record > HGHCA_PARTITION_LOG_MAX_RECORD ||
        in.log_regions > HGHCA_PARTITION_LOG_MAX_REGIONS || !good_key(in) || !all_zero(in.rsvd0d) ||
        !all_zero(in.rsvd10) || field_get(HGHCA_PARTITION_INDEX_MASK, be32(in.key)) != index)
        return false;
    return std::all_of(in.region, in.region + (size_t(1) << in.log_regions),
                       [](const hghca_partition_region &r) { return !r.filled && !r.rsvd14; });
}

}  // namespace

void PartitionTable::configure() { partitions_.assign(HGHCA_PARTITIONS, Partition{}); }

void PartitionTable::clear() { partitions_ = {}; }

// ---- commands

uint8_t PartitionTable::create(uint32_t index, const hghca_partition &in)
{
    if (index >= partitions_.size())
        return HGHCA_CMD_STAT_BAD_INDEX;
    Partition &partition = partitions_[index];
    if (partition.exists)
        return HGHCA_CMD_STAT_BAD_RES_STATE;
    if (!good_partition(in, index))
        return HGHCA_CMD_STAT_BAD_PARAM;
    partition = {.exists = true,
                 .key = Key(be32(in.key)),
                 .pd = be32(in.pd),
                 .log_record = in.log_record,
                 .log_regions = in.log_regions,
                 .key_offset = in.key_offset,
                 .key_size = in.key_size,
                 .key_shift = in.key_shift,
                 .regions = {}};
    std::transform(in.region, in.region + partition.used().size(), partition.regions.begin(),
                   [](const hghca_partition_region &r) {
                       return Region{be64(r.va), Key(be32(r.rkey)), be32(r.length), 0};
                   });
    device_.work.add_looks(partition.used().size());
    return HGHCA_CMD_STAT_OK;
}

uint8_t PartitionTable::destroy(uint32_t index)
{
    if (index >= partitions_.size())
        return HGHCA_CMD_STAT_BAD_INDEX;
    if (!partitions_[index].exists)
        return HGHCA_CMD_STAT_BAD_RES_STATE;
    partitions_[index] = {};
    return HGHCA_CMD_STAT_OK;
}

uint8_t PartitionTable::query(uint32_t index, hghca_partition &out) const
{
    if (index >= partitions_.size())
        return HGHCA_CMD_STAT_BAD_INDEX;
    const Partition &partition = partitions_[index];
    if (!partition.exists)
        return HGHCA_CMD_STAT_BAD_RES_STATE;
    out = {};
    out.key = be32(number(partition.key));
    out.pd = be32(partition.pd);
    out.log_record = partition.log_record;
    out.log_regions = partition.log_regions;
    out.key_offset = partition.key_offset;
    out.key_size = partition.key_size;
    out.key_shift = partition.key_shift;
    const size_t regions = size_t(1) << partition.log_regions;
    std::transform(partition.regions.begin(), partition.regions.begin() + ptrdiff_t(regions), out.region,
                   [](const Region &r) -> hghca_partition_region {
                       return {be64(r.va), be32(number(r.rkey)), be32(r.length), be32(r.filled), 0};
                   });
    device_.work.add_looks(regions);
    return HGHCA_CMD_STAT_OK;
}

// ---- records

PartitionTable::Partition *PartitionTable::find(Key key, uint32_t pd)
{
    const uint32_t index = field_get(HGHCA_PARTITION_INDEX_MASK, number(key));
    if (index >= partitions_.size())
        return nullptr;
    Partition &partition = partitions_[index];
    return partition.exists && partition.key == key && partition.pd == pd ? &partition : nullptr;
}

uint32_t PartitionTable::Partition::region_of(const uint8_t *record) const
{
    uint64_t record_key = 0;
    for (unsigned i = key_size; i--;)
        record_key = record_key << 8 | record[key_offset + i];
    // With one region the shift may be that of all bits.
    return log_regions ? uint32_t(record_key >> key_shift) & ((1u << log_regions) - 1) : 0;
}

Appended PartitionTable::append(Key key, KeyUser user, uint32_t left, std::span<const uint8_t> records)
{
    Partition *partition = find(key, user.pd);
    if (!partition)
        return Appended::Access;
    const uint32_t record = 1u << partition->log_record;
    if (left % record || records.size() % record || records.size() > sorted_.size())
        return Appended::Length;
    sort(*partition, records);
    if (const Appended outcome = check(*partition, user); outcome != Appended::Yes)
        return outcome;
    return place(*partition, user);
}

void PartitionTable::sort(const Partition &partition, std::span<const uint8_t> records)
{
    const size_t record = size_t(1) << partition.log_record;
    bytes_.fill(0);
    for (size_t at = 0; at < records.size(); at += record)
        bytes_[partition.region_of(&records[at])] += uint32_t(record);
    std::array<uint32_t, kMaxRegions> to;
    std::exclusive_scan(bytes_.begin(), bytes_.end(), to.begin(), 0u);
    for (size_t at = 0; at < records.size(); at += record) {
        uint32_t &next = to[partition.region_of(&records[at])];
        std::memcpy(&sorted_[next], &records[at], record);
        next += uint32_t(record);
    }
    device_.work.add_looks(records.size() / record);
}

// The memory behind a region's next `bytes` bytes. False: its key, its bounds or its rights are wrong, or there is no
// such memory.
bool PartitionTable::locate(const Region &region, KeyUser user, uint32_t bytes, PacketSegments &to)
{
    AbsentPage absent;
    const uint64_t va = region.va + region.filled;
    return device_.memory->locate(region.rkey, user, va, bytes, Access::RemoteWrite, to, absent) == Found::Yes;
}

// Can each region take its records? A packet is executed as a whole, so all are looked at before one is changed. A key
// that is wrong counts before a region that is full.
Appended PartitionTable::check(Partition &partition, KeyUser user)
{
    Appended outcome = Appended::Yes;
    for (size_t i = 0; i < partition.used().size(); i++) {
        if (!bytes_[i])
            continue;
        const Region &region = partition.regions[i];
        device_.transport->require(region.filled <= region.length, "a region is filled to its end at most");
        const uint32_t rest = region.length - region.filled;
        if (bytes_[i] > rest)
            outcome = Appended::Full;
        PacketSegments to;
        if (!locate(region, user, std::min(bytes_[i], rest), to))
            return Appended::Access;
    }
    return outcome;
}

Appended PartitionTable::place(Partition &partition, KeyUser user)
{
    uint8_t *from = sorted_.data();
    for (size_t i = 0; i < partition.used().size(); i++) {
        const uint32_t bytes = bytes_[i];
        if (!bytes)
            continue;
        Region &region = partition.regions[i];
        PacketSegments to;
        const iovec part{from, bytes};
        // Only DMA can fail here: what has been placed by then stays, and is counted.
        if (!locate(region, user, bytes, to) || !device_.transport->scatter({{&part, 1}, 0, bytes}, 0, to))
            return Appended::Access;
        region.filled += bytes;
        from += bytes;
        device_.work.add();
    }
    return Appended::Yes;
}

}  // namespace hghca
