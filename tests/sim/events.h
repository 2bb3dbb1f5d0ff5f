// SPDX-License-Identifier: GPL-2.0-or-later
// Virtual time: what happens next, and when.
#pragma once

#include <cstdint>
#include <vector>

namespace hghca::sim {

struct Event {
    enum class Kind : uint32_t {
        Arrive,     // `what`: a frame, at node `who` of the fabric
        Run,        // Device::run() of host `who`
        Timer,      // Device::timer()
        LinkReady,  // Device::link_ready()
        Interrupt,  // the driver of host `who` looks at its event queues
        Call,       // Simulation::Task number `who`
    };
    uint64_t at_ns;
    uint64_t order;   // of two at the same time the one that was put first comes first
    Kind kind;
    uint32_t who;
    void *what;
};

// A heap of four children a node: events are many, and moved once a level.
class EventQueue {
public:
    bool empty() const { return heap_.empty(); }
    const Event &next() const { return heap_.front(); }

    void put(uint64_t at_ns, Event::Kind kind, uint32_t who, void *what = nullptr)
    {
        const Event event{at_ns, order_++, kind, who, what};
        size_t at = heap_.size();
        heap_.push_back(event);
        while (at && before(event, heap_[(at - 1) / 4])) {
            heap_[at] = heap_[(at - 1) / 4];
            at = (at - 1) / 4;
        }
        heap_[at] = event;
    }
    Event take()
    {
        const Event first = heap_.front(), last = heap_.back();
        heap_.pop_back();
        if (!heap_.empty())
            sink(last);
        return first;
    }

private:
    // As one number, for no processor can foresee how such a comparison ends.
    static bool before(const Event &a, const Event &b)
    {
        using Key = unsigned __int128;
        return (Key(a.at_ns) << 64 | a.order) < (Key(b.at_ns) << 64 | b.order);
    }
    // The least of the children from `first` on, of which there is one at least.
    size_t least_child(size_t first) const
    {
        if (first + 4 <= heap_.size()) {
            const size_t left = first + before(heap_[first + 1], heap_[first]);
            const size_t right = first + 2 + before(heap_[first + 3], heap_[first + 2]);
            return left + before(heap_[right], heap_[left]) * (right - left);
        }
        size_t least = first;
        for (size_t child = first + 1; child < heap_.size(); child++)
            least += before(heap_[child], heap_[least]) * (child - least);
        return least;
    }
    void sink(const Event &event)
    {
        size_t at = 0;
        for (size_t first = 1; first < heap_.size(); first = at * 4 + 1) {
            const size_t least = least_child(first);
            if (!before(heap_[least], event))
                break;
            heap_[at] = heap_[least];
            at = least;
        }
        heap_[at] = event;
    }

    std::vector<Event> heap_;
    uint64_t order_ = 0;
};

}  // namespace hghca::sim
