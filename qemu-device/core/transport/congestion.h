// SPDX-License-Identifier: GPL-2.0-or-later
// Congestion control (interface document, 4.26 and 9.1): DCQCN, as published by Zhu et al., "Congestion Control for
// Large-Scale RDMA Deployments", SIGCOMM 2015, over the notifications of IBA vol 1, annex A17.9.
#pragma once

#include <cstdint>

#include "transport/qp.h"

namespace hghca {

class Transport;

// What software sets, and the default: the published values, disabled.
struct CongestionControl {
    bool react = false;    // packets leave ECN-capable, and CNPs reduce the rate of their QP
    bool notify = false;   // marked packets are answered by CNPs
    uint32_t cnp_interval_us = 50;
    uint8_t cnp_dscp = 48;
    uint8_t cnp_priority = 6;
    uint8_t threshold = 5;              // F
    uint32_t gain = 256;                // g, in 1/65536
    uint32_t alpha_period_us = 55;      // K
    uint32_t decrease_period_us = 50;
    uint32_t increase_period_us = 55;   // T
    uint32_t increase_bytes = 10'000'000;   // B
    uint32_t additive_mbps = 40;        // R_AI
    uint32_t hyper_mbps = 400;          // R_HAI
    uint32_t min_mbps = 10;

    // Has each value a meaning on a port of `port_mbps`?
    bool valid(uint32_t port_mbps) const;
};

// One for all QPs; what is of one of them stands in Qp::congestion. Nothing runs while a QP is idle: stages that have
// ended meanwhile are made good, in one step, when the QP is next looked at.
//
//                CNP: halved, or less               CNP
//   Untouched ----------------------> Reduced <------------- Recovered
//                                        |                       ^
//                                        +-----------------------+
//                                          line rate reached again
class Congestion {
public:
    explicit Congestion(Transport &transport) : transport_(transport) {}

    bool reacts() const;
    // The path as packets of a QP that has congestion control take it.
    Path capable(const Path &path) const;

    // Receiver: the packet that has come for the QP was marked.
    void marked(Qp &qp);
    // Sends the CNP that is due.
    Turn notify(Qp &qp, int32_t &credit);

    // Sender: a CNP has come for the QP.
    void react(Qp &qp);
    // Is the QP's rate reduced? As of when it was looked at last.
    bool reduces(const Qp &qp) const { return qp.congestion.rate == CongestionState::Rate::Reduced && reacts(); }
    // Goes through the stages that have ended by now; what is left of the rate then, in kbit/s, 0: all of it.
    uint32_t reduced_kbps(Qp &qp);
    // So many bytes of the QP have gone on the wire.
    void sent(Qp &qp, uint32_t bytes);

private:
    uint32_t line_kbps(const Qp &qp) const;
    void increase(Qp &qp, uint8_t &stage, uint8_t other_stage, uint64_t stages);

    Transport &transport_;
};

}  // namespace hghca
