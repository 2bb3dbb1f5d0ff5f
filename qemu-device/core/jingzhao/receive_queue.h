// SPDX-License-Identifier: GPL-2.0-or-later
// Receive WQEs and their completions (interface document, 5.2, 7, 8): those of a
// QP's own queue, or of the SRQ it is attached to.
#pragma once

#include <cstdint>

#include "jingzhao/wqe_reader.h"
#include "transport/qp.h"

namespace hghca {

class Engine;

// A message that has arrived, for its CQE.
struct Received {
    uint8_t bth_opcode;
    uint32_t byte_count;
    uint32_t imm = 0;        // wire order
    uint32_t src_qpn = 0;
    bool global_header = false;
    uint8_t network = 0;     // of a datagram: HGHCA_CQE_IPV*
    uint8_t sl = 0;
    int vlan = -1;           // of a datagram; -1: none
    bool solicited = false;
};

class ReceiveQueue {
public:
    explicit ReceiveQueue(Engine &engine) : engine_(engine) {}

    // Is there a WQE for a message that begins?
    WqeReader::Posted posted(const Qp &qp);
    // How many messages would find a WQE, that under way among them. False: nobody can tell, for it is an SRQ's, or
    // there is no doorbell record.
    bool count(const Qp &qp, uint32_t &out) const;
    // Reads the WQE the QP holds, or the one it would take.
    WqeFault read(const Qp &qp, RecvWqe &out);
    // The message takes more than one packet: the WQE of an SRQ is this QP's until it is completed.
    void hold(Qp &qp);
    // Completes the WQE held, or the next. False: its CQ has failed.
    bool complete(Qp &qp, const Received &message);
    bool fail(Qp &qp, Status status);
    // WR_FLUSH_ERR for all that is posted, until the slice is over; with an SRQ for what the QP holds. True: there is
    // more.
    bool flush(Qp &qp);

private:
    // The SRQ that serves the QP, or for XRC the message under way; 0: its own queue does.
    static uint32_t srqn_of(const Qp &qp);
    // The CQ that receives complete to.
    uint32_t cqn_of(const Qp &qp);
    bool place(const Qp &qp, ReceiveSlot &out);
    // The byte offset of the WQE to complete, which is then done with.
    uint32_t consume(Qp &qp);

    Engine &engine_;
};

}  // namespace hghca
