// SPDX-License-Identifier: GPL-2.0-or-later
// All that is left to chance, from one seed.
#pragma once

#include <cstdint>

namespace hghca::sim {

// SplitMix64: one word of state, the same on every machine.
class Random {
public:
    explicit Random(uint64_t seed) : state_(seed) {}
    uint64_t next()
    {
        uint64_t z = (state_ += 0x9e3779b97f4a7c15);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }
    // 0 .. n - 1; n is not 0.
    uint64_t below(uint64_t n) { return uint64_t((unsigned __int128)(next()) * n >> 64); }
    // low .. high, both among them.
    uint64_t between(uint64_t low, uint64_t high) { return low + below(high - low + 1); }
    // True in so many of a million cases.
    bool chance(uint32_t ppm) { return ppm && below(1'000'000) < ppm; }
    bool one_in(uint32_t n) { return below(n) == 0; }
    // A generator of its own, so that what is drawn from it changes nothing here.
    Random fork() { return Random(next()); }

private:
    uint64_t state_;
};

}  // namespace hghca::sim
