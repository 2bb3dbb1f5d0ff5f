// SPDX-License-Identifier: GPL-2.0-or-later
// The partitions of RSNIC, to whose regions PART appends records (docs/reference/rsnic.rst, 9.2 and 9.6).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "hghca_hw.h"
#include "transport/function.h"
#include "transport/segment.h"
#include "wire/number.h"

namespace hghca {

class Device;

class PartitionTable final : public Partitions {
public:
    explicit PartitionTable(Device &device) : device_(device) {}

    // From now on partitions can be made; it allocates all that they need. clear() ends them.
    void configure();
    void clear();

    // Statuses are HGHCA_CMD_STAT_*.
    uint8_t create(uint32_t index, const hghca_partition &in);
    uint8_t destroy(uint32_t index);
    uint8_t query(uint32_t index, hghca_partition &out) const;

    // O(records of the packet), and the pages of 128 regions at most.
    Appended append(Key key, KeyUser user, uint32_t left, std::span<const uint8_t> records) override;

private:
    static constexpr size_t kMaxRegions = size_t(1) << HGHCA_PARTITION_LOG_MAX_REGIONS;
    static constexpr size_t kMaxPacket = 4096;

    struct Region {
        uint64_t va;
        Key rkey;
        uint32_t length;   // bytes
        uint32_t filled;   // bytes of records
    };
    struct Partition {
        bool exists;
        Key key;
        uint32_t pd;
        uint8_t log_record;
        uint8_t log_regions;
        uint8_t key_offset, key_size;   // bytes of a record
        uint8_t key_shift;
        std::array<Region, kMaxRegions> regions;

        std::span<Region> used() { return {regions.data(), size_t(1) << log_regions}; }
        uint32_t region_of(const uint8_t *record) const;
    };

    Partition *find(Key key, uint32_t pd);
    void sort(const Partition &partition, std::span<const uint8_t> records);
    Appended check(Partition &partition, KeyUser user);
    Appended place(Partition &partition, KeyUser user);
    bool locate(const Region &region, KeyUser user, uint32_t bytes, PacketSegments &to);

    Device &device_;
    std::vector<Partition> partitions_;            // by index
    // The packet at hand: its records by region, those of one region in their order, and the bytes for each.
    std::array<uint8_t, kMaxPacket> sorted_{};
    std::array<uint32_t, kMaxRegions> bytes_{};
};

}  // namespace hghca
