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
    static bool before(const Event &a, const Event &b)
    {
        return a.at_ns != b.at_ns ? a.at_ns < b.at_ns : a.order < b.order;
    }
    void sink(const Event &event)
    {
        size_t at = 0;
        for (;;) {
            const size_t first = at * 4 + 1;
            if (first >= heap_.size())
                break;
            size_t least = first;
            for (size_t child = first + 1; child < first + 4 && child < heap_.size(); child++)
                if (before(heap_[child], heap_[least]))
                    least = child;
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
