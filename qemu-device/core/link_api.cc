// SPDX-License-Identifier: GPL-2.0-or-later
// The link in shared memory for callers in C: no exception gets past this file.
#include <new>

#include "hghca_core.h"
#include "link/shared_ring.h"

struct hghca_rings {
    hghca::RingPair pair;
};

namespace {

hghca_rings_result result_of(hghca::RingResult result)
{
    switch (result) {
    case hghca::RingResult::Done:
        return HGHCA_RINGS_DONE;
    case hghca::RingResult::None:
        return HGHCA_RINGS_NONE;
    case hghca::RingResult::Broken:
        break;
    }
    return HGHCA_RINGS_BROKEN;
}

}  // namespace

extern "C" {

uint64_t hghca_rings_memory_bytes(uint64_t ring_bytes)
{
    return hghca::SharedRings::fits(ring_bytes) ? hghca::SharedRings::bytes(ring_bytes) : 0;
}

struct hghca_rings *hghca_rings_new(void *memory, uint64_t ring_bytes, bool first)
{
    return new (std::nothrow) hghca_rings{hghca::RingPair(static_cast<uint8_t *>(memory), ring_bytes, first)};
}

void hghca_rings_free(struct hghca_rings *rings) { delete rings; }

enum hghca_rings_result hghca_rings_send(struct hghca_rings *rings, const struct iovec *parts, int count)
{
    return result_of(rings->pair.out.write(parts, count));
}

enum hghca_rings_result hghca_rings_receive(struct hghca_rings *rings, struct iovec *frame)
{
    const hghca::RingResult result = rings->pair.in.read();
    if (result == hghca::RingResult::Done)
        *frame = {rings->pair.in.frame().data(), rings->pair.in.frame().size()};
    return result_of(result);
}

bool hghca_rings_pending(const struct hghca_rings *rings)
{
    return rings->pair.in.pending() || rings->pair.out.in_burst();
}

bool hghca_rings_end_burst(struct hghca_rings *rings)
{
    // Both have to be asked.
    const bool data = rings->pair.out.end_burst();
    return rings->pair.in.end_burst() || data;
}

}  // extern "C"
