// SPDX-License-Identifier: GPL-2.0-or-later
// Who sends next, and whose timer ends next. Both live on chip, never in memory
// the guest can write to.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "port/flow_control.h"

namespace hghca {

// Deficit round robin (Shreedhar and Varghese, 1996) over the QPs that have
// something to send: each step costs the same however many there are.
class Scheduler {
public:
    static constexpr int32_t kQuantumBytes = 64 << 10;

    explicit Scheduler(uint32_t qps) : nodes_(qps) {}

    bool empty() const { return line_.head == kNone; }
    // The QP whose turn it is, and the bytes it may send in it.
    uint32_t front() const { return line_.head; }
    int32_t &credit() { return nodes_[line_.head].credit; }

    // To the end of the line, if it does not stand in it.
    void add(uint32_t qpn)
    {
        if (qpn >= nodes_.size() || nodes_[qpn].queued)
            return;
        nodes_[qpn].credit = kQuantumBytes;
        append(qpn);
    }
    // The turn of the front is over: it has more to send.
    void rotate()
    {
        uint32_t qpn = take();
        // What it overdrew is missing in the next turn.
        nodes_[qpn].credit = std::min(nodes_[qpn].credit + kQuantumBytes, kQuantumBytes);
        append(qpn);
    }
    // The front has nothing left to send.
    void remove() { take(); }

    // The front, and all that its class has to send, waits in another line until unpark().
    void park(TrafficClass c)
    {
        const uint32_t qpn = take();
        nodes_[qpn].queued = true;
        push(parked_[c], qpn);
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

    void push(Line &line, uint32_t qpn)
    {
        nodes_[qpn].next = kNone;
        (line.head == kNone ? line.head : nodes_[line.tail].next) = qpn;
        line.tail = qpn;
    }
    void append(uint32_t qpn)
    {
        nodes_[qpn].queued = true;
        push(line_, qpn);
    }
    uint32_t take()
    {
        uint32_t qpn = line_.head;
        line_.head = nodes_[qpn].next;
        nodes_[qpn].queued = false;
        return qpn;
    }

    std::vector<Node> nodes_;
    Line line_;
    std::array<Line, kTrafficClasses> parked_;
};

// One deadline a QP at most, or a CQ in a heap of theirs, the earliest first. A deadline that
// moves out is left where it is: whoever takes it too early sets it again.
class TimerHeap {
public:
    explicit TimerHeap(uint32_t qps) : place_(qps, kNone) { heap_.reserve(qps); }

    uint64_t next() const { return heap_.empty() ? UINT64_MAX : heap_[0].deadline_ns; }
    // A time-out at `deadline_ns` or earlier will be seen.
    void arm(uint32_t qpn, uint64_t deadline_ns);
    // The QP whose deadline is the earliest, which is then forgotten.
    uint32_t pop();
    void clear();

private:
    static constexpr uint32_t kNone = UINT32_MAX;
    struct Entry {
        uint64_t deadline_ns;
        uint32_t qpn;
    };

    void put(size_t at, Entry entry)
    {
        heap_[at] = entry;
        place_[entry.qpn] = uint32_t(at);
    }
    void up(size_t at, Entry entry);
    void down(size_t at, Entry entry);

    std::vector<Entry> heap_;
    std::vector<uint32_t> place_;   // of each QP in the heap
};

}  // namespace hghca
