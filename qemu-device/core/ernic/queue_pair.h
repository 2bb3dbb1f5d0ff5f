// SPDX-License-Identifier: GPL-2.0-or-later
// A queue pair of the ERNIC: what the transport keeps of it, and where its queues stand.
//
// Registers have an index of 0 after reset, then 1 to the depth, and 1 again. The transport's indices run freely, modulo
// 2^16, of which a depth need not be a divisor: so the slot of one index is kept, and others are counted from it.
#pragma once

#include <cstdint>

#include "transport/qp.h"
#include "wire/drop.h"

namespace hghca::ernic {

// A deeper queue than the transport takes is one without entries.
constexpr uint16_t kMaxDepth = uint16_t(kMaxWqes);

// From index `from` of a register to `to`: so many more. False: one of them is no index.
constexpr bool entries_between(uint16_t from, uint16_t to, uint16_t depth, uint16_t &out)
{
    if (from > depth || to > depth || !depth || depth > kMaxDepth)
        return false;
    const unsigned first = from % depth, last = to % depth;
    out = uint16_t((last + depth - first) % depth);
    return true;
}

// The index of a register behind slot `slot`.
constexpr uint16_t index_behind(uint16_t slot) { return uint16_t(slot + 1); }

// Entries of a circular buffer, by free-running index.
struct Ring {
    uint16_t depth = 0;
    uint16_t index = 0;   // free-running
    uint16_t slot = 0;    // of `index`

    // The slot of an index at or behind `index`.
    uint16_t slot_of(uint16_t other) const { return uint16_t((slot + uint16_t(other - index)) % depth); }
    void advance()
    {
        index++;
        slot = uint16_t((slot + 1) % depth);
    }
};

struct QueuePair {
    Qp qp{};
    bool enabled = false;   // QPCONF bit 0, with XRNICCONF's number of QPs
    bool fatal = false;
    Ring sq;                // its index: the oldest WQE that is not complete
    uint16_t sq_end = 0;    // behind the last one posted
    Ring rq;                // its index: the next message
    uint16_t rq_read = 0;   // the first message that software has not consumed
    uint8_t nak_syndrome = 0;
    uint8_t last_opcode = 0;       // of a request received
    bool rq_overflow = false, retried = false;
    uint16_t wqes = 0;             // sent
    Drop last_drop = Drop::None;   // of a request
    uint64_t ack_ns = UINT64_MAX;  // when an ACK goes that no packet has asked for

    uint16_t posted() const { return uint16_t(sq_end - sq.index); }
    uint16_t unread() const { return uint16_t(rq.index - rq_read); }
    uint16_t free_slots() const { return rq.depth ? uint16_t(rq.depth - 1 - unread()) : 0; }
};

}  // namespace hghca::ernic
