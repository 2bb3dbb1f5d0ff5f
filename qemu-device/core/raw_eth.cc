// SPDX-License-Identifier: GPL-2.0-or-later
#include "raw_eth.h"

#include "engine.h"
#include "queues.h"

namespace hghca {

Turn RawEthernet::run(Qp &qp, int32_t &credit)
{
    SendQueue &queue = engine_.send_queue;
    while (credit > 0) {
        if (!queue.ready(qp) || !queue.allowed(qp) || !queue.load(qp, send_wqe_)) {
            queue.raise_fault(qp);
            return Turn::Idle;
        }
        const uint32_t bytes = uint32_t(send_wqe_.list.length);
        PacketSegments frame;
        if (!send_wqe_.list.resolve(*engine_.device.memory, qp.a.pd, Access::LocalRead, 0, bytes, frame)) {
            queue.fail(qp, HGHCA_SYNDROME_LOCAL_PROT_ERR);
            return Turn::Idle;
        }
        const hghca_qp_state state = qp.state;
        switch (engine_.send_frame(frame, bytes)) {
        case Sent::Yes:
            break;
        case Sent::Blocked:
            return Turn::Blocked;
        case Sent::Unreadable:
            queue.fail(qp, HGHCA_SYNDROME_LOCAL_PROT_ERR);
            return Turn::Idle;
        }
        engine_.counters.raw_tx_packets++;
        credit -= int32_t(bytes + kMaxHeader);
        if (qp.state != state)
            return Turn::Idle;   // received by itself, and that went wrong
        queue.begin(qp);
        queue.advance(qp);
        if (!queue.complete(qp, send_wqe_, 1, bytes))
            return Turn::Idle;
    }
    return Turn::More;
}

bool RawEthernet::wanted(const uint8_t *dmac) const
{
    const Port &port = engine_.device.port;
    constexpr uint8_t kBroadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    return port.promisc || !std::memcmp(dmac, port.mac.data(), 6) || !std::memcmp(dmac, kBroadcast, 6) ||
           (port.allmulti && dmac[0] & 1);
}

void RawEthernet::receive(const FrameView &frame, const uint8_t *head)
{
    Device &device = engine_.device;
    Counters &counters = engine_.counters;
    if (!device.raw_qpn || frame.length < sizeof(hghca_eth_header) || !wanted(head))
        return;
    Qp *qp = device.qps->find(device.raw_qpn);
    if (!qp || qp->a.service != HGHCA_QP_ST_RAW || qp->state < HGHCA_QP_STATE_RTR ||
        qp->state == HGHCA_QP_STATE_ERR)
        return;
    const WqeReader::Posted posted = engine_.receive_queue.posted(*qp);
    if (posted == WqeReader::Posted::No) {
        counters.raw_rx_dropped++;
        return;
    }
    const WqeFault fault = posted == WqeReader::Posted::Yes
                               ? engine_.receive_queue.read(*qp, receive_wqe_)
                               : WqeFault::Unreadable;
    if (fault == WqeFault::Unreadable) {
        engine_.catastrophe(*qp);
        return;
    }
    const DataList &list = receive_wqe_.list;
    constexpr size_t kLinkHeader = sizeof(hghca_eth_header) + sizeof(hghca_vlan_tag);
    if (fault == WqeFault::None &&
        (frame.length > list.length || frame.length > device.port.max_mtu + kLinkHeader)) {
        engine_.count(*qp, qp_counter::rx_too_long);
        return;
    }
    PacketSegments to;
    if (fault != WqeFault::None ||
        !list.resolve(*device.memory, receive_wqe_.pd, Access::LocalWrite, 0, uint32_t(frame.length), to) ||
        !engine_.scatter(frame, 0, to)) {
        engine_.receive_queue.fail(*qp, fault == WqeFault::None ? HGHCA_SYNDROME_LOCAL_PROT_ERR
                                                                : HGHCA_SYNDROME_LOCAL_QP_OP_ERR);
        engine_.enter_error(*qp);
        return;
    }
    counters.raw_rx_packets++;
    // There is no BTH; what a datagram would have says "received" to those who look.
    if (!engine_.receive_queue.complete(*qp, {HGHCA_BTH_UD | HGHCA_BTH_OP_SEND_ONLY, uint32_t(frame.length)}))
        engine_.catastrophe(*qp);
}

}  // namespace hghca
