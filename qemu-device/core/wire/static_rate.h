// SPDX-License-Identifier: GPL-2.0-or-later
// Static rates: codes that stand for the bandwidth of a path (IBA vol 1, 15.2.5.16, and rates since).
#pragma once

#include <array>
#include <cstdint>

namespace hghca {

// Mbit/s by code: 0 for code 0, the port's own rate, and for code 1, which is no rate.
constexpr std::array<uint32_t, 25> kStaticRateMbps = {0,      0,      2500,   10000,  30000, 5000,  20000,  40000,  60000,
                                                      80000,  120000, 14000,  56000,  112000, 168000, 25000, 100000, 200000,
                                                      300000, 28000,  50000,  400000, 600000, 800000, 1200000};

// Is there such a code?
constexpr bool is_static_rate(uint8_t code) { return !code || (code < kStaticRateMbps.size() && kStaticRateMbps[code]); }

}  // namespace hghca
