// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "hghca_hw.h"

namespace hghca {

// One 64-bit counter for each of HGHCA_COUNTERS, since reset.
struct Counters {
#define HGHCA_COUNTER_MEMBER(name, text) uint64_t name = 0;
    HGHCA_COUNTERS(HGHCA_COUNTER_MEMBER)
#undef HGHCA_COUNTER_MEMBER
};

// Those of HGHCA_QP_COUNTERS, for the QPs that name the set (interface document, 4.19).
struct CounterSet {
#define HGHCA_COUNTER_MEMBER(name) uint64_t name = 0;
    HGHCA_QP_COUNTERS(HGHCA_COUNTER_MEMBER)
#undef HGHCA_COUNTER_MEMBER
};

// A counter that QPs have: where it stands in total, and in a set.
struct QpCounter {
    uint64_t Counters::*total;
    uint64_t CounterSet::*own;
};

namespace qp_counter {
#define HGHCA_COUNTER_PLACE(name) inline constexpr QpCounter name{&Counters::name, &CounterSet::name};
HGHCA_QP_COUNTERS(HGHCA_COUNTER_PLACE)
#undef HGHCA_COUNTER_PLACE
}  // namespace qp_counter

constexpr uint32_t kCounterSets = 256;  // set 0: what QPs without a set count

class CounterSets {
public:
    // `set`: less than kCounterSets.
    void add(uint32_t set, uint64_t CounterSet::*which, uint64_t n) { sets_[set].*which += n; }
    const CounterSet &set(uint32_t set) const { return sets_[set]; }
    void clear(uint32_t set) { sets_[set] = {}; }
    // All but set 0, which counts since reset.
    void clear() { std::fill(sets_.begin() + 1, sets_.end(), CounterSet{}); }
    void reset() { std::fill(sets_.begin(), sets_.end(), CounterSet{}); }

private:
    std::vector<CounterSet> sets_ = std::vector<CounterSet>(kCounterSets);
};

}  // namespace hghca
