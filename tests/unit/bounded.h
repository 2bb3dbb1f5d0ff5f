// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "device.h"

namespace hghca::test {

// What one entry into a device may do, as docs/reference/bounds.rst says: slices, and what the last step of a slice does
// beyond it.
constexpr uint64_t kSlicesOfAnEntry = 3;
// An acknowledgement that completes 512 WQEs. A world with shorter queues may set less.
inline uint64_t largest_step = 2048;

// Calls `entry`, which enters `device` once, and looks at the work done. A command is not divided: the write to the HCR
// that starts it is none of these.
template <class Entry>
void bounded(Device &device, Entry &&entry)
{
    const uint64_t before = device.work_done();
    entry();
    const uint64_t done = device.work_done() - before;
    if (done <= kSlicesOfAnEntry * device.config.slice_work + largest_step)
        return;
    std::fprintf(stderr, "broken: one entry does %" PRIu64 " units of work, in slices of %" PRIu32 "\n", done,
                 device.config.slice_work);
    std::abort();
}

}  // namespace hghca::test
