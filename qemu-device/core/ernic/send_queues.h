// SPDX-License-Identifier: GPL-2.0-or-later
// The send queues: WQEs of 64 bytes, a producer index in a register, CQEs only if QPCONF asks for them (000, tables 2-1
// and 2-2).
#pragma once

#include <cstdint>

#include <ernic_hw.h>

#include "ernic/queue_pair.h"
#include "transport/function.h"

namespace hghca::ernic {

class Adapter;

class SendQueues final : public SendSource {
public:
    explicit SendQueues(Adapter &device) : device_(device) {}

    Following peek(Qp &qp, uint16_t index, WqeRef &out) override;
    Following follow(const Qp &qp, uint16_t index, WqeRef &out) override;
    WqeFault load(const Qp &qp, SendWqe &out) override;
    WqeFault reload(const Qp &qp, SendWqe &out) override;
    // No WQE changes keys.
    Allowed change_keys(const Qp &, const SendWqe &) override { return Allowed::No; }
    Completed complete(const Qp &qp, uint16_t index, const SentWqe &wqe, uint32_t byte_count) override;
    // The WQEs behind the one that fails do not complete.
    Completed fail(const Qp &qp, uint16_t index, Status status) override;

    // False: the queue cannot be read there.
    bool read(const QueuePair &pair, uint16_t index, ernic_wqe &out) const;
    // The next WQE is done: CQHEAD, and what QPCONF asks for.
    void complete_next(QueuePair &pair, const ernic_wqe &wqe, bool failed)
    {
        complete_next(pair, token_of(wqe), failed);
    }

private:
    // Of a WQE, what its CQE says.
    static uint32_t token_of(const ernic_wqe &wqe);
    void complete_next(QueuePair &pair, uint32_t token, bool failed);
    Following at(const Qp &qp, uint16_t index, WqeRef &out);
    WqeFault read_wqe(const Qp &qp, uint16_t index, SendWqe &out);

    Adapter &device_;
};

}  // namespace hghca::ernic
