// SPDX-License-Identifier: GPL-2.0-or-later
// The headers of the packets dropped or refused last, and why (interface document, 4.28).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "counters.h"
#include "hghca_hw.h"
#include "wire/drop.h"
#include "wire/number.h"

namespace hghca {

struct PacketError {
    uint64_t time_ns;        // of Host::now_ns()
    uint32_t frame_bytes;    // without FCS
    Qpn qpn;                 // destination, as the BTH has it
    Drop why;
    uint8_t header_bytes;
    std::array<uint8_t, HGHCA_ERROR_HEADER_MAX> header;   // from the Ethernet header on, no payload
};

class ErrorBuffer {
public:
    static constexpr uint64_t kEntries = 64;

    // Takes what `e` says and as much of `header` as e.header_bytes.
    void record(const PacketError &e, const uint8_t *header)
    {
        PacketError &to = ring_[total_++ % kEntries];
        to = e;
        std::memcpy(to.header.data(), header, e.header_bytes);
    }
    void clear() { total_ = 0; }
    // Packets recorded since reset; those from first() on are kept.
    uint64_t total() const { return total_; }
    uint64_t first() const { return total_ - std::min(total_, kEntries); }
    // `n`: from first() on, less than total().
    const PacketError &at(uint64_t n) const { return ring_[n % kEntries]; }

private:
    uint64_t total_ = 0;
    std::array<PacketError, kEntries> ring_{};
};

// What a reason is called; nullptr: there is no such.
const char *drop_name(unsigned why);
// What counts it: alone, and together with others; nullptr where the counter is another's business.
uint64_t Counters::*drop_counter(Drop why);
uint64_t Counters::*drop_sum(Drop why);

}  // namespace hghca
