// SPDX-License-Identifier: GPL-2.0-or-later
// The ring of 32-byte entries under a CQ or an EQ: owner byte last, 0x80 the device's.
#pragma once

#include <cstdint>

#include "memory.h"

namespace hghca {

// Where a ring stands: 1 << logsize entries at offset 0 of a zero-based MR.
struct RingPlace {
    uint32_t lkey;
    uint32_t pd;
    uint8_t logsize;
    uint64_t bytes() const { return uint64_t(32) << logsize; }
    uint32_t slot(uint32_t index) const { return index & ((1u << logsize) - 1); }
};

class QueueBuffer {
public:
    enum class Result { Ok, Full, Fault };

    // Writes `entry` (32 bytes) as number `index`, its owner byte last. Full:
    // software still owns the slot.
    Result write(Host &host, MemoryTable &memory, const RingPlace &ring, uint32_t index, const void *entry);
    // Ok when the device owns the slot of number `index`.
    Result probe(Host &host, MemoryTable &memory, const RingPlace &ring, uint32_t index);

private:
    bool locate(MemoryTable &memory, const RingPlace &ring, uint32_t index, Segment &out);

    // The page last used, so that most entries cost no look-up. Good while the
    // memory table is of the same generation.
    uint64_t generation_ = 0;
    uint32_t page_ = 0;
    uint8_t *pointer_ = nullptr;
    uint64_t dma_ = 0;
};

}  // namespace hghca
