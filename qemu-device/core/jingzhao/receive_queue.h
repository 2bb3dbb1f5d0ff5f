// SPDX-License-Identifier: GPL-2.0-or-later
// Receive WQEs and their completions (interface document, 5.2, 7, 8): those of a
// QP's own queue, or of the SRQ it is attached to.
#pragma once

#include <cstdint>

#include "jingzhao/wqe_reader.h"
#include "transport/function.h"
#include "transport/qp.h"
#include "wire/number.h"

namespace hghca {

class Device;

class ReceiveQueue final : public RecvSource {
public:
    explicit ReceiveQueue(Device &device);

    Posted posted(const Qp &qp) override;
    // False also for an SRQ, and without a doorbell record.
    Counted count(const Qp &qp, uint32_t &out) override;
    WqeFault read(const Qp &qp, RecvWqe &out) override;
    void hold(Qp &qp) override;
    Completed complete(Qp &qp, const Received &message) override;
    Completed fail(Qp &qp, Status status) override;
    // With an SRQ: of what the QP holds.
    Flushed flush(Qp &qp) override;
    XrcTarget xrc_target(Srqn srqn, uint32_t xrcd, uint32_t &pd) override;

private:
    // The SRQ that serves the QP, or for XRC the message under way; kNoSrqn: its own queue does.
    static Srqn srqn_of(const Qp &qp);
    // The CQ that receives complete to.
    Cqn cqn_of(const Qp &qp);
    bool place(const Qp &qp, ReceiveSlot &out);
    // The byte offset of the WQE to complete, which is then done with.
    uint32_t consume(Qp &qp);

    Device &device_;
    WqeReader reader_;
};

}  // namespace hghca
