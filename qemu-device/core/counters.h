// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>

#include "hghca_hw.h"

namespace hghca {

// One 64-bit counter for each of HGHCA_COUNTERS, since reset.
struct Counters {
#define HGHCA_COUNTER_MEMBER(name, text) uint64_t name = 0;
    HGHCA_COUNTERS(HGHCA_COUNTER_MEMBER)
#undef HGHCA_COUNTER_MEMBER
};

}  // namespace hghca
