// SPDX-License-Identifier: GPL-2.0-or-later
// RDMA transport: requesters, responders, completers and their schedule.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <memory>

#include "transport/qp.h"

namespace hghca {

class Device;

// An SQ doorbell, decoded.
struct SendDoorbell {
    uint32_t uar_page;
    uint32_t qpn;
    uint16_t head;
    uint8_t count;   // 0: walk
    uint8_t opcode;
    uint8_t units;   // size0; 0: only look at the queues (flush in ERR)
    bool fence;
};

class Transport {
public:
    explicit Transport(Device &device);
    ~Transport();

    // Forget everything: all QPs are gone.
    void clear();

    void doorbell(const SendDoorbell &db);

    // Called by QpTable after qp.state and qp.a have changed; on RST2INIT
    // req and resp are zeroed and their indices set before the call.
    // Entering ERR flushes; RST forgets timers and schedule; RTR takes
    // a.expected (resp.expected_psn) as set; RTS and SQD start or stop sending.
    void state_changed(Qp &qp, QpState from);

    // RESUME_QP; `what` is HGHCA_RESUME_*. An HGHCA_CMD_STAT_*.
    uint8_t resume(Qp &qp, uint32_t what);

    // What congestion control leaves of the QP's rate, in kbit/s; 0: all of it.
    uint32_t reduced_kbps(Qp &qp);

    // Port::flow_control is new, or the link has gone down or up.
    void restart_flow_control();

    // A RoCE v2 or other frame from the link. Never sends.
    void receive(const iovec *parts, int count);

    // Goes on with flushes of queues, whatever the link does, until the slice is over.
    void flush();
    // Sends what is due, until the slice is over.
    void run();
    bool has_work() const;

    // The next deadline on Host::now_ns(), or UINT64_MAX; and what is due at it.
    uint64_t next_deadline() const;
    void expire(uint64_t now_ns);

private:
    struct State;
    Device &device_;
    std::unique_ptr<State> state_;
};

}  // namespace hghca
