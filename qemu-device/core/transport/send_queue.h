// SPDX-License-Identifier: GPL-2.0-or-later
// Where the transport stands in a send queue: the WQE that it sends from, and the oldest one that is not completed.
#pragma once

#include <cstdint>

#include "transport/qp.h"
#include "transport/types.h"
#include "transport/wqe.h"

namespace hghca {

class Transport;

class SendQueue {
public:
    explicit SendQueue(Transport &transport) : transport_(transport) {}

    // Is there a WQE to send from?
    bool ready(Qp &qp);
    // The WQE `next` may be begun or gone on with, as far as the state goes and what the QP waits for.
    bool allowed(const Qp &qp) const;
    // `next` begins.
    void begin(Qp &qp);
    // `next` is sent to its end: on to the WQE behind.
    void advance(Qp &qp);
    // The end of the queue was reached, and a WQE is found behind it: `next` from now on.
    void extend(Qp &qp, const WqeRef &wqe);
    enum class [[nodiscard]] Step : uint8_t { Done, Failed };
    // Reads `next` and checks its keys. Failed: `fault` is set.
    Step load(Qp &qp, SendWqe &out);
    // Executes `wqe`, which is `next` and changes keys, unless that was done before
    // the QP went back. Failed: `fault` is set.
    Step change_keys(Qp &qp, const SendWqe &wqe);
    // Executes `wqe`, which is `next` and takes no packet, and completes it; for services in which a WQE is complete when
    // its last packet has gone. Failed: no WQE is sent any more.
    Step execute(Qp &qp, const SendWqe &wqe, int32_t &credit);
    // WQE next_index is wrong.
    void set_fault(Qp &qp, Status status);
    // If WQE next_index is wrong and its turn to complete has come: completes it in error.
    void raise_fault(Qp &qp);
    // Sends from the oldest WQE not completed again.
    void go_back(Qp &qp);

    // `wqe`, the oldest, is done: the one behind is the oldest then. Failed: the QP went to ERR.
    Step complete(Qp &qp, const SentWqe &wqe, uint32_t psn_span, uint32_t byte_count);
    // The oldest WQE fails; the QP goes to ERR, or to SQE when it is a datagram's.
    void fail(Qp &qp, Status status);
    // Status::Flushed for all that is posted, until the slice is over.
    Flushed flush(Qp &qp) { return flush(qp, false); }
    // The same to the end, at most a queue of WQEs.
    void flush_all(Qp &qp) { (void)flush(qp, true); }

private:
    // The WQE behind `index`, as far as can be told.
    WqeRef behind(const Qp &qp, uint16_t index);
    // The same for one that is under way. False: the queue is broken there.
    bool behind_sent(const Qp &qp, uint16_t index, WqeRef &following);
    Flushed flush(Qp &qp, bool whole);
    Completed post_error(Qp &qp, uint16_t index, Status status);

    Transport &transport_;
};

}  // namespace hghca
