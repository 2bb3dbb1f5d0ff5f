// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "allocations.h"
#include "device.h"

namespace hghca::test {

// What one entry into a device may do, as docs/reference/bounds.rst says: slices, and what the last step of a slice does
// beyond it.
constexpr uint64_t kSlicesOfAnEntry = 3;
// An acknowledgement that completes 512 WQEs. A world with shorter queues may set less.
inline uint64_t largest_step = 2048;

// Calls `entry`, which enters `device` once, and looks at the work done and at what was allocated. Commands are neither
// divided nor forbidden to allocate: the write to the HCR that starts one does not come here. Link impairment allocates
// for the frames that it changes or holds back, and a device that fails for the exception that ends its entry.
template <class Entry>
void bounded(Device &device, Entry &&entry)
{
    const uint64_t before = device.work_done(), allocated_before = Allocations::count;
    const bool impaired = device.impairment.active();
    {
        const Inside inside;
        entry();
    }
    const uint64_t done = device.work_done() - before, allocated = Allocations::count - allocated_before;
    if (done > kSlicesOfAnEntry * device.config.slice_work + largest_step) {
        std::fprintf(stderr, "broken: one entry does %" PRIu64 " units of work, in slices of %" PRIu32 "\n", done,
                     device.config.slice_work);
        std::abort();
    }
    if (allocated && !impaired && !device.failed()) {
        std::fprintf(stderr, "broken: one entry allocates memory %" PRIu64 " times\n", allocated);
        std::abort();
    }
}

}  // namespace hghca::test
