// SPDX-License-Identifier: GPL-2.0-or-later
// The CQs whose completion events wait for room in an EQ: a line for each EQ, in which a CQ stands once at most.
#pragma once

#include <cstdint>

#include "pool.h"
#include "wire/number.h"

namespace hghca {

class WaitingCqs {
public:
    // Throws std::bad_alloc.
    WaitingCqs(uint32_t cqs, uint32_t eqs) : nodes_(cqs), lines_(eqs) {}

    bool exists(Cqn cqn) const { return number(cqn) < nodes_.size(); }
    bool waits(Cqn cqn) const { return nodes_[number(cqn)].waits; }
    bool empty(uint32_t eqn) const { return !lines_[eqn].count; }
    uint32_t count(uint32_t eqn) const { return lines_[eqn].count; }
    Cqn front(uint32_t eqn) const { return lines_[eqn].first; }

    // To the end of the line. The CQ does not wait.
    void push(uint32_t eqn, Cqn cqn)
    {
        Line &line = lines_[eqn];
        node(cqn) = {.previous = line.last, .next = kNoCqn, .eqn = uint8_t(eqn), .waits = true};
        (line.count++ ? node(line.last).next : line.first) = cqn;
        line.last = cqn;
    }
    // The CQ waits.
    void remove(Cqn cqn)
    {
        Node &gone = node(cqn);
        Line &line = lines_[gone.eqn];
        (cqn == line.first ? line.first : node(gone.previous).next) = gone.next;
        (cqn == line.last ? line.last : node(gone.next).previous) = gone.previous;
        line.count--;
        gone.waits = false;
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
        Cqn previous, next;
        uint8_t eqn;
        bool waits;
    };
    struct Line {
        Cqn first, last;
        uint32_t count;
    };

    Node &node(Cqn cqn) { return nodes_[number(cqn)]; }

    ZeroedArray<Node> nodes_;
    ZeroedArray<Line> lines_;
};

}  // namespace hghca
