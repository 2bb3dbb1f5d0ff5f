// SPDX-License-Identifier: GPL-2.0-or-later
// Unreliable connections (IBA vol 1, 9.8.2).
#pragma once

#include "transport/wqe.h"
#include "transport/qp.h"
#include "wire/packet.h"

namespace hghca {

class Transport;

class UnreliableConnections {
public:
    explicit UnreliableConnections(Transport &transport) : transport_(transport) {}

    Turn run(Qp &qp, int32_t &credit);
    void receive(Qp &qp, const Packet &packet);

private:
    Turn send(Qp &qp, int32_t &credit);
    bool in_sequence(Qp &qp, const Packet &packet);
    bool receive_send(Qp &qp, const Packet &packet);
    bool receive_write(Qp &qp, const Packet &packet);
    bool has_receive_wqe(Qp &qp, const Packet &packet);
    void complete(Qp &qp, const Packet &packet);

    Transport &transport_;
    SendWqe send_wqe_{};
    RecvWqe receive_wqe_{};
};

}  // namespace hghca
