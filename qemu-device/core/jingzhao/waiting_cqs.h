// SPDX-License-Identifier: GPL-2.0-or-later
// The CQs whose completion events wait for room in an EQ: a line for each EQ, in which a CQ stands once at most.
#pragma once

#include <cstdint>

#include "pool.h"

namespace hghca {

class WaitingCqs {
public:
    // Throws std::bad_alloc.
    WaitingCqs(uint32_t cqs, uint32_t eqs) : nodes_(cqs), lines_(eqs) {}

    bool exists(uint32_t cqn) const { return cqn < nodes_.size(); }
    bool waits(uint32_t cqn) const { return nodes_[cqn].waits; }
    bool empty(uint32_t eqn) const { return !lines_[eqn].count; }
    uint32_t count(uint32_t eqn) const { return lines_[eqn].count; }
    uint32_t front(uint32_t eqn) const { return lines_[eqn].first; }

    // To the end of the line. The CQ does not wait.
    void push(uint32_t eqn, uint32_t cqn)
    {
        Line &line = lines_[eqn];
        nodes_[cqn] = {.previous = line.last, .next = 0, .eqn = uint8_t(eqn), .waits = true};
        (line.count++ ? nodes_[line.last].next : line.first) = cqn;
        line.last = cqn;
    }
    // The CQ waits.
    void remove(uint32_t cqn)
    {
        Node &node = nodes_[cqn];
        Line &line = lines_[node.eqn];
        (cqn == line.first ? line.first : nodes_[node.previous].next) = node.next;
        (cqn == line.last ? line.last : nodes_[node.next].previous) = node.previous;
        line.count--;
        node.waits = false;
    }
    void clear(uint32_t eqn)
    {
        while (!empty(eqn))
            remove(front(eqn));
    }
    void clear()
    {
        for (uint32_t eqn = 0; eqn < lines_.size(); eqn++)
            clear(eqn);
    }

private:
    // `previous` of the first of a line and `next` of the last have no meaning.
    struct Node {
        uint32_t previous, next;   // CQNs
        uint8_t eqn;
        bool waits;
    };
    struct Line {
        uint32_t first, last;      // CQNs
        uint32_t count;
    };

    ZeroedArray<Node> nodes_;
    ZeroedArray<Line> lines_;
};

}  // namespace hghca
