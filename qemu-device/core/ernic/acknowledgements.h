// SPDX-License-Identifier: GPL-2.0-or-later
// When a request is acknowledged: XRNICCONF 4:3 (000:534).
#pragma once

#include <cstdint>
#include <vector>

#include <ernic_hw.h>

#include "ernic/queue_pair.h"

namespace hghca::ernic {

class Adapter;

class Acknowledgements {
public:
    explicit Acknowledgements(Adapter &device) : device_(device) {}

    void reset() { next_ns_ = UINT64_MAX; }
    // The transport has executed a request from the link, which asks for an ACK or does not. `was_due`: an ACK was due
    // before it.
    void executed(QueuePair &pair, bool asks, bool was_due);
    // What has gone acknowledges all that was executed.
    static void sent(QueuePair &pair) { pair.ack_ns = UINT64_MAX; }
    // The QP is disabled: its last ACK goes now.
    static void end(QueuePair &pair);

    uint64_t next_deadline() const { return next_ns_; }
    void expire(uint64_t now_ns);

private:
    Adapter &device_;
    uint64_t next_ns_ = UINT64_MAX;   // no QP's is earlier
};

}  // namespace hghca::ernic
