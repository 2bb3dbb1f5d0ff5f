// SPDX-License-Identifier: GPL-2.0-or-later
// Translation entries as they stand in ICM, and the arithmetic of pages.
#pragma once

#include <cstdint>

#include "hghca_hw.h"

namespace hghca {

constexpr uint64_t kMttSize = 8;
// An MTT in ICM is little-endian, with this bit beside the address: zeroed memory holds no MTT.
constexpr uint64_t kMttPresent = 1;
// Of a page that is there to be written as well; for regions on demand alone.
constexpr uint64_t kMttWritable = 2;
constexpr uint32_t kMaxPageShift = 30;
// Of a tree of MTTs (interface document, 4.23).
constexpr uint64_t kTableEntries = HGHCA_MTT_TABLE_ENTRIES;
constexpr uint64_t kTreePages = 1ull << HGHCA_MTT_TREE_LEVELS * HGHCA_MTT_TABLE_SHIFT;
// The rights a region may give.
constexpr uint32_t kRights = HGHCA_ACCESS_LOCAL_WRITE | HGHCA_ACCESS_REMOTE_WRITE | HGHCA_ACCESS_REMOTE_READ |
                             HGHCA_ACCESS_REMOTE_ATOMIC | HGHCA_ACCESS_MW_BIND | HGHCA_ACCESS_FLUSH_GLOBAL;

// The number of MTTs of a region, or 0 when its bounds make no sense.
uint64_t pages_of(uint64_t start, uint64_t length, uint32_t page_shift);

}  // namespace hghca
