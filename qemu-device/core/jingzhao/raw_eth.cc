// SPDX-License-Identifier: GPL-2.0-or-later
#include "jingzhao/raw_eth.h"

#include "jingzhao/flow.h"
#include "jingzhao/queues.h"
#include "jingzhao/rss.h"
#include "transport/engine.h"

namespace hghca {

namespace {

// Does the QP take frames in its state?
bool receives(const Qp *qp)
{
    return qp && qp->a.service == Service::Raw && qp->state >= QpState::Rtr &&
           qp->state != QpState::Error;
}

}  // namespace

Turn RawEthernet::run(Qp &qp, int32_t &credit)
{
    SendQueue &queue = engine_.send_queue;
    while (engine_.goes_on(credit)) {
        if (!queue.ready(qp) || !queue.allowed(qp) || !queue.load(qp, send_wqe_)) {
            queue.raise_fault(qp);
            return Turn::Idle;
        }
        const uint32_t bytes = uint32_t(send_wqe_.list.length);
        PacketSegments frame;
        AbsentPage absent;
        if (send_wqe_.list.resolve(*engine_.device.memory, qp.a.pd, Access::LocalRead, 0, bytes, frame, absent) !=
            Found::Yes) {
            queue.fail(qp, Status::LocalProtection);
            return Turn::Idle;
        }
        const QpState state = qp.state;
        const uint64_t copies = engine_.counters.flow_rx_packets;
        switch (engine_.send_frame(qp, frame, bytes)) {
        case Sent::Yes:
            break;
        case Sent::Blocked:
            return Turn::Blocked;
        case Sent::Unreadable:
            queue.fail(qp, Status::LocalProtection);
            return Turn::Idle;
        }
        engine_.counters.raw_tx_packets++;
        // The copies for QPs of this HCA are work as well.
        credit -= int32_t((bytes + kMaxHeader) * (1 + engine_.counters.flow_rx_packets - copies));
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

void RawEthernet::receive(const FrameView &frame, const uint8_t *head, size_t head_bytes)
{
    Device &device = engine_.device;
    if (frame.length < sizeof(hghca_eth_header) || steer(frame, head, head_bytes, 0) || !device.raw_qpn ||
        !wanted(head))
        return;
    Qp *qp = device.qps->find(device.raw_qpn);
    if (receives(qp))
        deliver(*qp, frame);
}

void RawEthernet::receive_own(const FrameView &frame, const uint8_t *head, size_t head_bytes, uint32_t sender)
{
    steer(frame, head, head_bytes, sender);
}

// True: there are rules that take the frame, whatever has become of it.
bool RawEthernet::steer(const FrameView &frame, const uint8_t *head, size_t head_bytes, uint32_t sender)
{
    Device &device = engine_.device;
    FlowTable &flows = *device.flows;
    if (flows.empty())
        return false;
    const hghca_flow_fields fields = flow_fields(head, head_bytes);
    const std::vector<uint32_t> &takers = flows.find(fields);
    for (const uint32_t taker : takers) {
        const uint32_t qpn = taker & HGHCA_FLOW_RSS ? device.rss->select(taker & ~HGHCA_FLOW_RSS, fields) : taker;
        if (qpn == sender)
            continue;
        Qp *qp = device.qps->find(qpn);
        device.work.add();
        // Its number may have been another QP's when the rule or the group was made.
        if (!receives(qp) || qp->a.special != Special::None)
            engine_.counters.flow_rx_no_qp++;
        else if (deliver(*qp, frame))
            engine_.counters.flow_rx_packets++;
    }
    return !takers.empty();
}

// False: there is no completion of a frame received.
bool RawEthernet::deliver(Qp &qp, const FrameView &frame)
{
    Device &device = engine_.device;
    Counters &counters = engine_.counters;
    const WqeReader::Posted posted = engine_.receive_queue.posted(qp);
    if (posted == WqeReader::Posted::No) {
        counters.raw_rx_dropped++;
        return false;
    }
    const WqeFault fault = posted == WqeReader::Posted::Yes
                               ? engine_.receive_queue.read(qp, receive_wqe_)
                               : WqeFault::Unreadable;
    if (fault == WqeFault::Unreadable) {
        engine_.catastrophe(qp);
        return false;
    }
    const DataList &list = receive_wqe_.list;
    constexpr size_t kLinkHeader = sizeof(hghca_eth_header) + sizeof(hghca_vlan_tag);
    if (fault == WqeFault::None &&
        (frame.length > list.length || frame.length > device.port.max_mtu + kLinkHeader)) {
        engine_.count(qp, qp_counter::rx_too_long);
        return false;
    }
    PacketSegments to;
    AbsentPage absent;
    if (fault != WqeFault::None ||
        list.resolve(*device.memory, receive_wqe_.pd, Access::LocalWrite, 0, uint32_t(frame.length), to, absent) !=
            Found::Yes ||
        !engine_.scatter(frame, 0, to)) {
        engine_.receive_queue.fail(qp, fault == WqeFault::None ? Status::LocalProtection
                                                               : Status::LocalOperation);
        engine_.enter_error(qp);
        return false;
    }
    counters.raw_rx_packets++;
    // There is no BTH; what a datagram would have says "received" to those who look.
    if (engine_.receive_queue.complete(qp, {HGHCA_BTH_UD | HGHCA_BTH_OP_SEND_ONLY, uint32_t(frame.length)}))
        return true;
    engine_.catastrophe(qp);
    return false;
}

}  // namespace hghca
