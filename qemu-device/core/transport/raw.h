// SPDX-License-Identifier: GPL-2.0-or-later
// QPs whose messages are Ethernet frames as they are.
#pragma once

#include "transport/qp.h"
#include "transport/wqe.h"
#include "wire/packet.h"

namespace hghca {

class Transport;

class RawQps {
public:
    explicit RawQps(Transport &transport) : transport_(transport) {}

    Turn run(Qp &qp, int32_t &credit);
    // Receives a frame that is for `qp`. False: it makes no completion of a frame received.
    bool deliver(Qp &qp, const FrameView &frame);

private:
    Transport &transport_;
    SendWqe send_wqe_{};
    RecvWqe receive_wqe_{};
};

}  // namespace hghca
