// SPDX-License-Identifier: GPL-2.0-or-later
// The receive queues: slots of one message each, which are posted again by themselves when software has read them.
#pragma once

#include <cstdint>

#include "ernic/queue_pair.h"
#include "transport/function.h"

namespace hghca::ernic {

class Adapter;

class ReceiveQueues final : public RecvSource {
public:
    explicit ReceiveQueues(Adapter &device) : device_(device) {}

    Posted posted(const Qp &qp) override;
    Counted count(const Qp &qp, uint32_t &out) override;
    WqeFault read(const Qp &qp, RecvWqe &out) override;
    void hold(Qp &) override {}
    Completed complete(Qp &qp, const Received &message) override;
    Completed fail(Qp &, Status) override { return Completed::Yes; }
    Flushed flush(Qp &) override { return Flushed::All; }
    XrcTarget xrc_target(Srqn, uint32_t, uint32_t &) override { return XrcTarget::None; }

    uint32_t slot_bytes(uint32_t qpn) const;
    // Of the next message.
    uint64_t slot_address(const QueuePair &pair) const;
    // A message is in the slot: the write pointer, and what QPCONF asks for.
    void complete_next(QueuePair &pair);

private:
    // With the extension RECORDS, of each message; without it, of those with immediate data or an R_Key.
    void write_record(const QueuePair &pair, const Received &message);
    void write_immdt_entry(const QueuePair &pair, const Received &message);
    // To the ring that both are in.
    template <typename Entry>
    void append(const Entry &entry);

    Adapter &device_;
    bool phase_ = true;   // of the ring of records
    friend class Adapter;
};

}  // namespace hghca::ernic
