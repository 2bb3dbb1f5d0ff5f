// SPDX-License-Identifier: GPL-2.0-or-later
#include "transport/raw.h"

#include <algorithm>

#include "transport/transport.h"

namespace hghca {

Turn RawQps::run(Qp &qp, int32_t &credit)
{
    SendQueue &queue = transport_.send_queue;
    while (transport_.goes_on(credit)) {
        if (!queue.ready(qp) || !queue.allowed(qp) || queue.load(qp, send_wqe_) == SendQueue::Step::Failed) {
            queue.raise_fault(qp);
            return Turn::Idle;
        }
        if (send_wqe_.is_local()) {
            if (queue.execute(qp, send_wqe_, credit) == SendQueue::Step::Failed)
                return Turn::Idle;
            continue;
        }
        const uint32_t bytes = uint32_t(send_wqe_.list.length);
        PacketSegments frame;
        AbsentPage absent;
        if (send_wqe_.list.resolve(transport_.keys, qp.a.pd, Access::LocalRead, 0, bytes, frame, absent) !=
            Found::Yes) {
            queue.fail(qp, Status::LocalProtection);
            return Turn::Idle;
        }
        const QpState state = qp.state;
        const uint64_t copies = transport_.counters.flow_rx_packets;
        switch (transport_.send_frame(qp, frame, bytes)) {
        case Sent::Yes:
            break;
        case Sent::Blocked:
            return Turn::Blocked;
        case Sent::Unreadable:
            queue.fail(qp, Status::LocalProtection);
            return Turn::Idle;
        }
        transport_.counters.raw_tx_packets++;
        // The copies for QPs of this HCA are work as well.
        credit -= int32_t((bytes + kMaxHeader) * (1 + transport_.counters.flow_rx_packets - copies));
        if (qp.state != state)
            return Turn::Idle;  // received by itself, and that went wrong
        queue.begin(qp);
        queue.advance(qp);
        if (queue.complete(qp, send_wqe_, 1, bytes) == SendQueue::Step::Failed)
            return Turn::Idle;
    }
    return Turn::More;
}

// False: there is no completion of a frame received.
bool RawQps::deliver(Qp &qp, const FrameView &frame)
{
    Counters &counters = transport_.counters;
    const Posted posted = transport_.receives.posted(qp);
    if (posted == Posted::No) {
        counters.raw_rx_dropped++;
        return false;
    }
    const WqeFault fault = posted == Posted::Yes ? transport_.receives.read(qp, receive_wqe_) : WqeFault::Unreadable;
    if (fault == WqeFault::Unreadable) {
        transport_.catastrophe(qp);
        return false;
    }
    const DataList &list = receive_wqe_.list;
    constexpr size_t kLinkHeader = sizeof(hghca_eth_header) + sizeof(hghca_vlan_tag);
    if (fault == WqeFault::None &&
        (frame.length > list.length || frame.length > transport_.port.max_mtu + kLinkHeader)) {
        transport_.count(qp, qp_counter::rx_too_long);
        return false;
    }
    PacketSegments to;
    AbsentPage absent;
    if (fault != WqeFault::None ||
        list.resolve(transport_.keys, receive_wqe_.pd, Access::LocalWrite, 0, uint32_t(frame.length), to, absent) !=
            Found::Yes ||
        !transport_.scatter(frame, 0, to)) {
        transport_.fail_receive(qp, fault == WqeFault::None ? Status::LocalProtection : Status::LocalOperation);
        return false;
    }
    counters.raw_rx_packets++;
    // There is no BTH; what a datagram would have says "received" to those who look.
    if (transport_.receives.complete(qp, {HGHCA_BTH_UD | HGHCA_BTH_OP_SEND_ONLY, uint32_t(frame.length)}) ==
        Completed::Yes)
        return true;
    transport_.catastrophe(qp);
    return false;
}

}  // namespace hghca
