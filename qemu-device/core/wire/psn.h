// SPDX-License-Identifier: GPL-2.0-or-later
// Packet sequence numbers (PSN) and message sequence numbers (MSN): 24 bits, modulo 2^24. They are types of their own:
// neither is a number of bytes or packets, and neither is the other.
#pragma once

#include <cstdint>

namespace hghca {

enum class Psn : uint32_t {};
enum class Msn : uint32_t {};

constexpr uint32_t kSequenceMask = 0xffffff;
// Of all PSNs, half are ahead of one, and half are before it.
constexpr uint32_t kPsnHalf = 1u << 23;

constexpr uint32_t number(Psn psn) { return uint32_t(psn); }
constexpr uint32_t number(Msn msn) { return uint32_t(msn); }
// Of the low 24 bits.
constexpr Psn psn_of(uint32_t n) { return Psn(n & kSequenceMask); }
constexpr Msn msn_of(uint32_t n) { return Msn(n & kSequenceMask); }

constexpr Psn psn_add(Psn psn, uint32_t n) { return psn_of(number(psn) + n); }
constexpr Psn psn_before(Psn psn) { return psn_add(psn, kSequenceMask); }
// Distance from `from` on to `psn`, in 0 .. 2^24 - 1.
constexpr uint32_t psn_distance(Psn psn, Psn from) { return (number(psn) - number(from)) & kSequenceMask; }

constexpr Msn msn_add(Msn msn, uint32_t n) { return msn_of(number(msn) + n); }
// Signed distance a - b, in -2^23 .. 2^23 - 1.
constexpr int32_t msn_diff(Msn a, Msn b) { return int32_t((number(a) - number(b)) << 8) >> 8; }

}  // namespace hghca
