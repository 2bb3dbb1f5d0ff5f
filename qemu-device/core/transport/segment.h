// SPDX-License-Identifier: GPL-2.0-or-later
// Memory as the transport sees it: runs of guest memory behind keys.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/number.h"

namespace hghca {

// A run of guest memory. pointer is nullptr where the host cannot map it: then
// only read and write by copy at `dma` are possible.
struct Segment {
    uint8_t *pointer;
    uint64_t dma;
    uint32_t length;  // bytes
};

// Appends to a fixed array. push() tells that a list did not fit.
template <size_t N>
class SegmentArray {
public:
    void clear() { count_ = 0; }
    [[nodiscard]] bool push(const Segment &s)
    {
        if (count_ && merge(s))
            return true;
        if (count_ == N)
            return false;
        items_[count_++] = s;
        return true;
    }
    size_t size() const { return count_; }
    const Segment &operator[](size_t i) const { return items_[i]; }
    const Segment *begin() const { return items_; }
    const Segment *end() const { return items_ + count_; }

private:
    bool merge(const Segment &s)
    {
        Segment &last = items_[count_ - 1];
        bool adjacent = last.dma + last.length == s.dma && bool(last.pointer) == bool(s.pointer) &&
                        (!s.pointer || last.pointer + last.length == s.pointer) &&
                        uint64_t(last.length) + s.length <= UINT32_MAX;
        if (adjacent)
            last.length += s.length;
        return adjacent;
    }
    Segment items_[N];
    size_t count_ = 0;
};

// The segments of one packet: up to 4096 bytes in 4 KB pages from up to 32 SGEs.
using PacketSegments = SegmentArray<68>;

// A page that a region on demand lacks.
struct AbsentPage {
    Key key{};             // of the region
    uint64_t va = 0;       // in it
    uint64_t length = 0;   // bytes wanted from there on
    bool write = false;
};

// The result of a search for memory.
enum class [[nodiscard]] Found : uint8_t {
    Yes,
    No,           // a key, a bound, a right or an entry is wrong
    Absent,       // nothing is wrong, but a page of a region on demand is not there
    Unreadable,   // the host has no memory at an entry of the tables: for all but an EQ as No
};

// Who uses a key: a PD and, for what a peer asks for, the QP it came to.
struct KeyUser {
    KeyUser(uint32_t pd, Qpn qpn = kNoQpn) : pd(pd), qpn(qpn) {}
    uint32_t pd;
    Qpn qpn;
};

}  // namespace hghca
