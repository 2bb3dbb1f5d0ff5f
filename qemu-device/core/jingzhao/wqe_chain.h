// SPDX-License-Identifier: GPL-2.0-or-later
// The walk along a send queue, and what becomes of its WQEs (interface document, 5.1, 7, 8).
#pragma once

#include "jingzhao/wqe_reader.h"
#include "transport/qp.h"
#include "transport/transport.h"

namespace hghca {

class Engine;

class SendQueue {
public:
    explicit SendQueue(Engine &engine) : engine_(engine) {}

    // A doorbell that may ring for this QP.
    void ring(Qp &qp, const SendDoorbell &db);
    // Is there a WQE to send from? At the end of the chain, takes what was announced.
    bool ready(Qp &qp);
    // The WQE `next` may be begun or gone on with, as far as the state goes and what the QP waits for.
    bool allowed(const Qp &qp) const;
    // `next` begins.
    void begin(Qp &qp);
    // `next` is sent to its end: on to the WQE behind.
    void advance(Qp &qp);
    // Reads `next` and checks its keys. False: `fault` is set.
    bool load(Qp &qp, SendWqe &out);
    // Executes `wqe`, which is `next` and changes keys, unless that was done before
    // the QP went back. False: `fault` is set.
    bool change_keys(Qp &qp, const SendWqe &wqe);
    // If WQE next_index is wrong and its turn to complete has come: completes it in error.
    void raise_fault(Qp &qp);
    // Sends from the oldest WQE not completed again.
    void go_back(Qp &qp);

    // `wqe`, the oldest, is done: the one behind is the oldest then. False: the QP went to ERR.
    bool complete(Qp &qp, const SendWqe &wqe, uint32_t psn_span, uint32_t byte_count);
    // The oldest WQE fails; the QP goes to ERR, or to SQE when it is a datagram's.
    void fail(Qp &qp, Status status);
    // WR_FLUSH_ERR for all that is posted, until the slice is over. True: there is more.
    bool flush(Qp &qp) { return flush(qp, false); }
    // The same to the end, at most a queue of WQEs.
    void flush_all(Qp &qp) { flush(qp, true); }

private:
    // The WQE behind `index`, as far as can be told.
    WqeRef behind(const Qp &qp, uint16_t index);
    bool offered(const Qp &qp, const SendWqe &wqe) const;
    void look_again(Qp &qp);
    void set_fault(Qp &qp, Status status);
    bool flush(Qp &qp, bool whole);
    bool post_error(Qp &qp, uint16_t index, Status status);

    Engine &engine_;
};

}  // namespace hghca
