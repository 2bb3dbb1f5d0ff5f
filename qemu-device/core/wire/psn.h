// SPDX-License-Identifier: GPL-2.0-or-later
// Packet sequence numbers: 24 bits, modulo 2^24. Message sequence numbers count in the same way.
#pragma once

#include <cstdint>

namespace hghca {

constexpr uint32_t kPsnMask = 0xffffff;
// Of all PSNs, half are ahead of one, and half are before it.
constexpr uint32_t kPsnHalf = 1u << 23;

constexpr uint32_t psn_add(uint32_t psn, uint32_t n) { return (psn + n) & kPsnMask; }
constexpr uint32_t psn_before(uint32_t psn) { return psn_add(psn, kPsnMask); }
// Signed distance a - b, in -2^23 .. 2^23 - 1.
constexpr int32_t psn_diff(uint32_t a, uint32_t b) { return int32_t((a - b) << 8) >> 8; }
// Distance from `from` on to `psn`, in 0 .. 2^24 - 1.
constexpr uint32_t psn_distance(uint32_t psn, uint32_t from) { return (psn - from) & kPsnMask; }

}  // namespace hghca
