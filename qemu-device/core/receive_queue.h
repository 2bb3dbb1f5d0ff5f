// SPDX-License-Identifier: GPL-2.0-or-later
// Receive WQEs and their completions (interface document, 5.2, 7, 8).
#pragma once

#include <cstdint>

#include "qp.h"

namespace hghca {

class Engine;

// A message that has arrived, for its CQE.
struct Received {
    uint8_t bth_opcode;
    uint32_t byte_count;
    uint32_t imm = 0;        // wire order
    uint32_t src_qpn = 0;
    bool global_header = false;
    uint8_t sl = 0;
    int vlan = -1;           // of a datagram; -1: none
    bool solicited = false;
};

class ReceiveQueue {
public:
    explicit ReceiveQueue(Engine &engine) : engine_(engine) {}

    // Completes the receive WQE rq_index. False: its CQ has failed.
    bool complete(Qp &qp, const Received &message);
    bool fail(Qp &qp, uint8_t syndrome);
    // WR_FLUSH_ERR for all that is posted.
    void flush(Qp &qp);

private:
    Engine &engine_;
};

}  // namespace hghca
