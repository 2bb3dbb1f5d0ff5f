// SPDX-License-Identifier: GPL-2.0-or-later
// Who sends next, and whose timer ends next. Both live on chip, never in memory
// the guest can write to.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "port/flow_control.h"
#include "wire/number.h"

namespace hghca {

// Deficit round robin (Shreedhar and Varghese, 1996) over the QPs that have
// something to send: each step costs the same however many there are.
class Scheduler {
public:
    static constexpr int32_t kQuantumBytes = 64 << 10;

    explicit Scheduler(uint32_t qps) : nodes_(qps) {}

    bool empty() const { return line_.head == kNone; }
    // The QP whose turn it is, and the bytes it may send in it.
    Qpn front() const { return Qpn(line_.head); }
    int32_t &credit() { return nodes_[line_.head].credit; }

    // To the end of the line, if it does not stand in it.
    void add(Qpn qpn)
    {
        const uint32_t n = number(qpn);
        if (n >= nodes_.size() || nodes_[n].queued)
            return;
        nodes_[n].credit = kQuantumBytes;
        append(n);
    }
    // The turn of the front is over: it has more to send.
    void rotate()
    {
        const uint32_t n = take();
        // What it overdrew is missing in the next turn.
        nodes_[n].credit = std::min(nodes_[n].credit + kQuantumBytes, kQuantumBytes);
        append(n);
    }
    // The front has nothing left to send.
    void remove() { take(); }

    // The front, and all that its class has to send, waits in another line until unpark().
    void park(TrafficClass c)
    {
        const uint32_t n = take();
        nodes_[n].queued = true;
        push(parked_[c], n);
    }
    // Those who wait there stand behind all others, in their order; at the cost of one.
    void unpark(TrafficClass c)
    {
        Line &parked = parked_[c];
        if (parked.head == kNone)
            return;
        (line_.head == kNone ? line_.head : nodes_[line_.tail].next) = parked.head;
        line_.tail = parked.tail;
        parked = {};
    }

    void clear()
    {
        for (unsigned c = 0; c < kTrafficClasses; c++)
            unpark(TrafficClass(c));
        while (!empty())
            take();
    }

private:
    static constexpr uint32_t kNone = UINT32_MAX;
    struct Line {
        uint32_t head = kNone, tail = kNone;
    };
    struct Node {
        uint32_t next;
        int32_t credit;
        bool queued;
    };

    // Below, `n` is the number of a QP, which is its place among the nodes.
    void push(Line &line, uint32_t n)
    {
        nodes_[n].next = kNone;
        (line.head == kNone ? line.head : nodes_[line.tail].next) = n;
        line.tail = n;
    }
    void append(uint32_t n)
    {
        nodes_[n].queued = true;
        push(line_, n);
    }
    uint32_t take()
    {
        const uint32_t n = line_.head;
        line_.head = nodes_[n].next;
        nodes_[n].queued = false;
        return n;
    }

    std::vector<Node> nodes_;
    Line line_;
    std::array<Line, kTrafficClasses> parked_;
};

// One deadline at most for each number below `count`, the earliest first. A deadline that
// moves out is left where it is: whoever takes it too early sets it again.
class TimerHeap {
public:
    explicit TimerHeap(uint32_t count) : place_(count, kNone) { heap_.reserve(count); }

    uint64_t next() const { return heap_.empty() ? UINT64_MAX : heap_[0].deadline_ns; }
    // A time-out at `deadline_ns` or earlier will be seen.
    void arm(uint32_t n, uint64_t deadline_ns);
    // The number whose deadline is the earliest, which is then forgotten.
    uint32_t pop();
    void clear();

private:
    static constexpr uint32_t kNone = UINT32_MAX;
    struct Entry {
        uint64_t deadline_ns;
        uint32_t n;
    };

    void put(size_t at, Entry entry)
    {
        heap_[at] = entry;
        place_[entry.n] = uint32_t(at);
    }
    void up(size_t at, Entry entry);
    void down(size_t at, Entry entry);

    std::vector<Entry> heap_;
    std::vector<uint32_t> place_;   // of each number in the heap
};

// The same for QPs, by Qpn, or for CQs, by Cqn.
template <class Number>
class Timers {
public:
    explicit Timers(uint32_t count) : heap_(count) {}

    uint64_t next() const { return heap_.next(); }
    void arm(Number which, uint64_t deadline_ns) { heap_.arm(number(which), deadline_ns); }
    Number pop() { return Number(heap_.pop()); }
    void clear() { heap_.clear(); }

private:
    TimerHeap heap_;
};

}  // namespace hghca
