// SPDX-License-Identifier: GPL-2.0-or-later
// Whether packets went at a static rate (interface document, 4.9 and 9).
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "network.h"

namespace hghca::test {

constexpr uint64_t kGrainNs = 20'000;   // waits are at least so long

struct Sent {
    uint64_t at_ns;
    uint64_t bytes;   // with FCS
    uint8_t opcode;

    static Sent now(const Network &net, const Frame &frame)
    {
        return {net.now(), frame.size() + 4, View(frame).opcode};
    }
};

// No packet has gone before all those ahead of it have had their time; and the last not much later.
inline void expect_paced(const std::vector<Sent> &packets, uint64_t mbps)
{
    ASSERT_GE(packets.size(), 2u);
    uint64_t bytes = 0;
    for (size_t i = 0; i < packets.size(); i++) {
        const uint64_t passed_ns = packets[i].at_ns - packets[0].at_ns;
        ASSERT_GE(passed_ns * mbps, bytes * 8000) << "packet " << i;
        if (i + 1 == packets.size()) {
            EXPECT_LE(passed_ns, bytes * 8000 / mbps + kGrainNs + packets.size()) << "slower than the rate";
        }
        bytes += packets[i].bytes;
    }
}

}  // namespace hghca::test
