// SPDX-License-Identifier: GPL-2.0-or-later
// Unreliable datagrams, QP 1 among them (IBA vol 1, 9.8.3).
#pragma once

#include "jingzhao/wqe_reader.h"
#include "transport/qp.h"
#include "wire/packet.h"

namespace hghca {

class Engine;
enum class Turn;

class Datagrams {
public:
    explicit Datagrams(Engine &engine) : engine_(engine) {}

    Turn run(Qp &qp, int32_t &credit);
    void receive(Qp &qp, const Packet &packet);
    // The Q_Key that packets to `qp` must have.
    static uint32_t qkey_of(const Qp &qp);

private:
    Engine &engine_;
    SendWqe send_wqe_{};
    RecvWqe receive_wqe_{};
};

}  // namespace hghca
