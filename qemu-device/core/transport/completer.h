// SPDX-License-Identifier: GPL-2.0-or-later
// What responses do to the requests that wait for them (IBA vol 1, 9.7.5.2, 9.7.6).
#pragma once

#include "transport/wqe.h"
#include "transport/qp.h"
#include "wire/packet.h"

namespace hghca {

class Transport;

class Completer {
public:
    explicit Completer(Transport &transport) : transport_(transport) {}

    // A response packet.
    void receive(Qp &qp, const Packet &packet);

    enum class Outcome {
        Done,
        Missing,   // a READ or atomic before has not been answered
        Stopped,   // the QP is in error now
    };
    // All before `psn` is acknowledged: completes what that covers. After Done,
    // and when anything is under way still, wqe_ is the oldest WQE. `without_data`: the
    // oldest WQE completes with 0 bytes, for its READ_POINTER has found nothing.
    Outcome acknowledge(Qp &qp, Psn psn, bool without_data = false);

private:
    void receive_ack(Qp &qp, const Packet &packet);
    void receive_read(Qp &qp, const Packet &packet);
    void receive_atomic(Qp &qp, const Packet &packet);
    void take_credits(Qp &qp, const TransportHeader &h);
    // acknowledge(), and what is to be done when it is not Done.
    bool acknowledge_before(Qp &qp, Psn psn);
    void response_lost(Qp &qp);
    // Has an answer whose place is absent asked for again. False: there will be none.
    bool ask_again(Qp &qp, const AbsentPage &absent);
    bool under_way(const Qp &qp) const;

    Transport &transport_;
    SendWqe wqe_{};
};

}  // namespace hghca
