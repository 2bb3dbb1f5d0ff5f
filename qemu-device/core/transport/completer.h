// SPDX-License-Identifier: GPL-2.0-or-later
// What responses do to the requests that wait for them (IBA vol 1, 9.7.5.2, 9.7.6).
#pragma once

#include "transport/wqe.h"
#include "transport/qp.h"
#include "transport/sent_wqes.h"
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
    // and when anything is under way still, sent_ is of the oldest WQE. `without_data`: the
    // oldest WQE completes with 0 bytes, for its READ_POINTER has found nothing.
    Outcome acknowledge(Qp &qp, Psn psn, bool without_data = false);

    // WQE `index` may be another one than before.
    void forget(Qpn qpn, uint16_t index)
    {
        if (whole_ == SentWqes::name_of(qpn, index))
            whole_ = 0;
    }
    void clear() { whole_ = 0; }

private:
    // Sets sent_ of the oldest WQE. False: it is not what it was when it was sent.
    bool find_oldest(const Qp &qp);
    // Sets wqe_, to the oldest WQE. False: it is not what it was when it was sent.
    bool read_oldest(const Qp &qp);
    // The same before data goes to its list. False: the QP is in error now.
    bool has_list(Qp &qp);
    // The guest has rewritten what is under way.
    void rewritten(Qp &qp);
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
    SentWqe sent_{};
    SendWqe wqe_{};
    uint64_t whole_ = 0;   // the name of the WQE that wqe_ is; 0: of none
};

}  // namespace hghca
