// SPDX-License-Identifier: GPL-2.0-or-later
// The sending side of a reliable connection (IBA vol 1, 9.7.2 to 9.7.3).
#pragma once

#include <array>
#include <cstdint>

#include "transport/packet_store.h"
#include "transport/wqe.h"
#include "transport/qp.h"

namespace hghca {

// BTH opcode, without the service, of a packet of a SEND or WRITE.
uint8_t message_opcode(const SendWqe &wqe, bool first, bool last);

class Transport;

class Requester {
public:
    explicit Requester(Transport &transport) : transport_(transport) {}

    // Sends requests until `credit` bytes are used up or nothing can go.
    Turn run(Qp &qp, int32_t &credit);
    // The timer has ended that the QP waits for, or else the Local ACK timer.
    void timeout(Qp &qp);
    // Something was lost: sends again from the oldest packet without an answer,
    // or gives up.
    void retry(Qp &qp);
    void wait_rnr(Qp &qp, uint8_t timer_code);
    // The retry counters and the timer start afresh: the peer has answered.
    void progress(Qp &qp);
    void reset_retries(Qp &qp);
    // The QP's rate is reduced: what it waits for may take longer.
    void slowed(Qp &qp);

private:
    bool beyond_credits(const Qp &qp) const;
    bool may_send(const Qp &qp, bool begins) const;
    bool keep(Qp &qp, PacketSegments &payload, uint32_t bytes);
    bool keeps() const;
    bool waits_for_place(Qp &qp, uint64_t offset, uint32_t bytes);
    Turn send(Qp &qp, int32_t &credit);
    uint64_t timeout_ns(Qp &qp) const;

    Transport &transport_;
    SendWqe wqe_{};
    std::array<uint8_t, PacketStore::kPlaceBytes> copy_{};
};

}  // namespace hghca
