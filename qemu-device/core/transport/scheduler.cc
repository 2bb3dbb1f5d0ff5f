// SPDX-License-Identifier: GPL-2.0-or-later
#include "transport/scheduler.h"

namespace hghca {

void TimerHeap::arm(uint32_t n, uint64_t deadline_ns)
{
    if (n >= place_.size())
        return;
    if (place_[n] == kNone) {
        heap_.push_back({});
        up(heap_.size() - 1, {deadline_ns, n});
    } else if (deadline_ns < heap_[place_[n]].deadline_ns) {
        up(place_[n], {deadline_ns, n});
    }
}

uint32_t TimerHeap::pop()
{
    const uint32_t n = heap_[0].n;
    place_[n] = kNone;
    Entry last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty())
        down(0, last);
    return n;
}

void TimerHeap::clear()
{
    for (const Entry &e : heap_)
        place_[e.n] = kNone;
    heap_.clear();
}

void TimerHeap::up(size_t at, Entry entry)
{
    while (at && entry.deadline_ns < heap_[(at - 1) / 2].deadline_ns) {
        put(at, heap_[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    put(at, entry);
}

void TimerHeap::down(size_t at, Entry entry)
{
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < heap_.size() && heap_[child + 1].deadline_ns < heap_[child].deadline_ns)
            child++;
        if (child >= heap_.size() || heap_[child].deadline_ns >= entry.deadline_ns)
            break;
        put(at, heap_[child]);
        at = child;
    }
    put(at, entry);
}

}  // namespace hghca
