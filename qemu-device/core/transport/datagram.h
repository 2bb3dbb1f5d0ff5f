// SPDX-License-Identifier: GPL-2.0-or-later
// Unreliable datagrams, QP 1 among them (IBA vol 1, 9.8.3).
#pragma once

#include "transport/wqe.h"
#include "transport/qp.h"
#include "wire/packet.h"

namespace hghca {

class Transport;

class Datagrams {
public:
    explicit Datagrams(Transport &transport) : transport_(transport) {}

    Turn run(Qp &qp, int32_t &credit);
    void receive(Qp &qp, const Packet &packet);
    // The Q_Key that packets to `qp` must have.
    static uint32_t qkey_of(const Qp &qp);

private:
    Transport &transport_;
    SendWqe send_wqe_{};
    RecvWqe receive_wqe_{};
};

}  // namespace hghca
