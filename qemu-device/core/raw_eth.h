// SPDX-License-Identifier: GPL-2.0-or-later
// The raw Ethernet QP: the port as a NIC (interface document, 4.10, 4.13).
#pragma once

#include "packet.h"
#include "qp.h"
#include "wqe.h"

namespace hghca {

class Engine;
enum class Turn;

class RawEthernet {
public:
    explicit RawEthernet(Engine &engine) : engine_(engine) {}

    Turn run(Qp &qp, int32_t &credit);
    // A frame that is not for the RDMA engine. `head` holds its first bytes.
    void receive(const FrameView &frame, const uint8_t *head);

private:
    bool wanted(const uint8_t *dmac) const;

    Engine &engine_;
    SendWqe send_wqe_{};
    RecvWqe receive_wqe_{};
};

}  // namespace hghca
