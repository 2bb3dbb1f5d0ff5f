// SPDX-License-Identifier: GPL-2.0-or-later
// A partition of a host with RSNIC (docs/reference/rsnic.rst, 9.2): QPs of its peers append records to its regions, and
// nobody takes one out.
#pragma once

#include <array>
#include <cstdint>

#include "machine.h"
#include "random.h"

namespace hghca::sim {

class Partition {
public:
    static constexpr uint32_t kMaxRegions = 1u << 5;

    // `number`: among those of the machine since its reset.
    Partition(Machine &machine, uint32_t number, Random &random);

    uint32_t key() const { return be32(made_.key); }
    uint32_t record_bytes() const { return 1u << made_.log_record; }
    // Which region a record belongs to, by its key.
    uint32_t region_of(const uint8_t *record) const;
    // A PART with these records is posted.
    void post(const uint8_t *records, uint32_t bytes);
    // May a region be too full for one of these records? It may if all that was posted for it does not fit.
    bool may_be_full(const uint8_t *records, uint32_t bytes) const;
    // Calls take(region, record) for each record that the device has appended, region by region in their order. Behind
    // these nothing may have been written.
    template <class Take>
    void each_record(const Take &take)
    {
        const hghca_partition now = query();
        for (uint32_t region = 0; region < regions(); region++) {
            const uint32_t filled = be32(now.region[region].filled);
            for (uint32_t at = 0; at < filled; at += record_bytes())
                take(region, memory_.now(begin_[region] + at));
            memory_.accept(begin_[region], filled);
        }
        check_rest();
    }

    Machine &machine;
    bool gone = false;   // the device was reset

private:
    uint32_t regions() const { return 1u << made_.log_regions; }
    uint32_t length(uint32_t region) const { return begin_[region + 1] - begin_[region]; }
    hghca_partition query();
    void check_rest();

    hghca_partition made_;
    std::array<uint32_t, kMaxRegions + 1> begin_{};   // of each region in the memory, and the end of the last one
    std::array<uint64_t, kMaxRegions> posted_{};      // bytes of records
    Block memory_;
};

}  // namespace hghca::sim
