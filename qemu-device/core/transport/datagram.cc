// SPDX-License-Identifier: GPL-2.0-or-later
#include "transport/datagram.h"

#include "transport/transport.h"

namespace hghca {

uint32_t Datagrams::qkey_of(const Qp &qp)
{
    return qp.a.special == Special::Gsi ? HGHCA_QP1_QKEY : qp.a.qkey;
}

Turn Datagrams::run(Qp &qp, int32_t &credit)
{
    RequesterState &r = qp.req;
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
        if (transport_.pacer.holds(qp, send_wqe_.path))
            return Turn::Idle;
        const uint32_t bytes = uint32_t(send_wqe_.list.length);
        PacketSegments payload;
        AbsentPage absent;
        const Found found =
            send_wqe_.list.resolve(transport_.keys, qp.a.pd, Access::LocalRead, 0, bytes, payload, absent);
        if (found == Found::Absent && transport_.page_faults.wait(qp, absent) == PageFaults::Outcome::Waits)
            return Turn::Idle;
        if (found != Found::Yes) {
            queue.fail(qp, Status::LocalProtection);
            return Turn::Idle;
        }
        PageFaults::satisfied(r.page);
        TransportHeader h{};
        h.opcode = HGHCA_BTH_UD | (send_wqe_.has_imm() ? HGHCA_BTH_OP_SEND_ONLY_IMM : HGHCA_BTH_OP_SEND_ONLY);
        h.solicited = send_wqe_.solicited;
        h.pkey = transport_.pkey_of(qp);
        h.qpn = send_wqe_.dqpn;
        h.psn = r.next_psn;
        h.imm = send_wqe_.imm;
        h.qkey = send_wqe_.qkey & HGHCA_QKEY_OWN ? qkey_of(qp) : send_wqe_.qkey;
        h.src_qpn = qp.a.special == Special::Gsi ? kGsiQpn : qp.a.qpn;

        Route route;
        const bool reachable = transport_.link.route(send_wqe_.path, Transport::flow_of(qp, send_wqe_.dqpn), route);
        const QpState state = qp.state;
        const uint64_t copies = transport_.counters.multicast_copies;
        switch (transport_.send_packet(qp, reachable ? &route : nullptr, h, payload, bytes)) {
        case Sent::Yes:
            transport_.pacer.sent(qp, send_wqe_.path, reachable ? &route : nullptr);
            break;
        case Sent::Blocked:
            return Turn::Blocked;
        case Sent::Unreadable:
            queue.fail(qp, Status::LocalProtection);
            return Turn::Idle;
        }
        // The copies for QPs of this HCA are work as well.
        credit -= Transport::cost_of(reachable ? &route : nullptr, bytes) *
                  int32_t(1 + transport_.counters.multicast_copies - copies);
        if (qp.state != state)
            return Turn::Idle;   // received by itself, and that went wrong
        r.next_psn = psn_add(r.next_psn, 1);
        queue.begin(qp);
        queue.advance(qp);
        if (queue.complete(qp, send_wqe_, 1, bytes) == SendQueue::Step::Failed)
            return Turn::Idle;
    }
    return Turn::More;
}

void Datagrams::receive(Qp &qp, const Packet &packet)
{
    const uint32_t bytes = uint32_t(packet.payload.length);
    if (!(packet.flags & kSend) || bytes > qp.a.mtu) {
        transport_.counters.rx_bad_header++;
        transport_.drop(packet, packet.flags & kSend ? Drop::Length : Drop::Opcode);
        return;
    }
    switch (transport_.receives.posted(qp)) {
    case Posted::Yes:
        break;
    case Posted::No:
        transport_.count(qp, qp_counter::rx_no_wqe);
        transport_.drop(packet, Drop::Rnr);
        return;
    case Posted::Unreadable:
        transport_.catastrophe(qp);
        return;
    }
    const WqeFault fault = transport_.receives.read(qp, receive_wqe_);
    if (fault == WqeFault::Unreadable) {
        transport_.catastrophe(qp);
        return;
    }
    if (fault == WqeFault::None && receive_wqe_.list.length < kGrhBytes + bytes) {
        transport_.count(qp, qp_counter::rx_too_long);
        transport_.drop(packet, Drop::TooLong);
        return;
    }
    std::array<uint8_t, kGrhBytes> grh;
    transport_.link.global_header(packet.head.data(), packet.arrival, grh);
    const iovec part{grh.data(), grh.size()};
    PacketSegments grh_to, to;
    const DataList &list = receive_wqe_.list;
    KeySpace &keys = transport_.keys;
    AbsentPage absent;
    Found found = Found::No;
    if (fault == WqeFault::None)
        found = list.resolve(keys, receive_wqe_.pd, Access::LocalWrite, 0, kGrhBytes, grh_to, absent);
    if (found == Found::Yes)
        found = list.resolve(keys, receive_wqe_.pd, Access::LocalWrite, kGrhBytes, bytes, to, absent);
    if (found == Found::Absent && transport_.page_faults.defer(qp, absent) == PageFaults::Outcome::Waits) {
        transport_.counters.rx_page_absent++;
        return;
    }
    // The payload first: of a datagram to itself it may stand where the header goes.
    if (found != Found::Yes || !transport_.scatter(packet.payload, 0, to) ||
        !transport_.scatter({{&part, 1}, 0, kGrhBytes}, 0, grh_to)) {
        transport_.drop(packet, Drop::Operation);
        transport_.fail_receive(qp, fault == WqeFault::None ? Status::LocalProtection : Status::LocalOperation);
        return;
    }
    PageFaults::satisfied(qp.resp.page);
    Received message{packet.h.opcode, uint32_t(kGrhBytes + bytes)};
    message.imm = packet.flags & kImmDt ? packet.h.imm : 0;
    message.src_qpn = packet.h.src_qpn;
    message.global_header = true;
    message.ipv6 = packet.arrival.layout.ipv6;
    message.sl = packet.arrival.sl;
    message.vlan = packet.arrival.vlan;
    message.solicited = packet.h.solicited;
    transport_.count(qp, qp_counter::rx_send_requests);
    if (transport_.receives.complete(qp, message) == Completed::CqFailed)
        transport_.catastrophe(qp);
}

}  // namespace hghca
