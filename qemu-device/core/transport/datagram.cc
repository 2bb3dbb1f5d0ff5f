// SPDX-License-Identifier: GPL-2.0-or-later
#include "transport/datagram.h"

#include "transport/engine.h"

namespace hghca {

uint32_t Datagrams::qkey_of(const Qp &qp)
{
    return qp.a.special == Special::Gsi ? HGHCA_QP1_QKEY : qp.a.qkey;
}

Turn Datagrams::run(Qp &qp, int32_t &credit)
{
    RequesterState &r = qp.req;
    SendQueue &queue = engine_.send_queue;
    while (engine_.goes_on(credit)) {
        if (!queue.ready(qp) || !queue.allowed(qp) || !queue.load(qp, send_wqe_)) {
            queue.raise_fault(qp);
            return Turn::Idle;
        }
        if (engine_.pacer.holds(qp, send_wqe_.path))
            return Turn::Idle;
        const uint32_t bytes = uint32_t(send_wqe_.list.length);
        PacketSegments payload;
        AbsentPage absent;
        const Found found =
            send_wqe_.list.resolve(*engine_.device.memory, qp.a.pd, Access::LocalRead, 0, bytes, payload, absent);
        if (found == Found::Absent && engine_.page_faults.wait(qp, absent))
            return Turn::Idle;
        if (found != Found::Yes) {
            queue.fail(qp, Status::LocalProtection);
            return Turn::Idle;
        }
        PageFaults::satisfied(r.page);
        TransportHeader h{};
        h.opcode = HGHCA_BTH_UD | (send_wqe_.has_imm() ? HGHCA_BTH_OP_SEND_ONLY_IMM : HGHCA_BTH_OP_SEND_ONLY);
        h.solicited = send_wqe_.solicited;
        h.pkey = engine_.device.port.pkey;
        h.qpn = send_wqe_.dqpn;
        h.psn = r.next_psn;
        h.imm = send_wqe_.imm;
        h.qkey = send_wqe_.qkey & HGHCA_QKEY_OWN ? qkey_of(qp) : send_wqe_.qkey;
        h.src_qpn = qp.a.special == Special::Gsi ? HGHCA_QPN_GSI : qp.a.qpn;

        Route route;
        const bool reachable = engine_.link.route(send_wqe_.path, qp.a.qpn ^ send_wqe_.dqpn << 8, route);
        const QpState state = qp.state;
        const uint64_t copies = engine_.counters.multicast_copies;
        switch (engine_.send_packet(qp, reachable ? &route : nullptr, h, payload, bytes)) {
        case Sent::Yes:
            engine_.pacer.sent(qp, send_wqe_.path, reachable ? &route : nullptr);
            break;
        case Sent::Blocked:
            return Turn::Blocked;
        case Sent::Unreadable:
            queue.fail(qp, Status::LocalProtection);
            return Turn::Idle;
        }
        // The copies for QPs of this HCA are work as well.
        credit -= int32_t((bytes + kMaxHeader) * (1 + engine_.counters.multicast_copies - copies));
        if (qp.state != state)
            return Turn::Idle;   // received by itself, and that went wrong
        r.next_psn = psn_add(r.next_psn, 1);
        queue.begin(qp);
        queue.advance(qp);
        if (!queue.complete(qp, send_wqe_, 1, bytes))
            return Turn::Idle;
    }
    return Turn::More;
}

void Datagrams::receive(Qp &qp, const Packet &packet)
{
    const uint32_t bytes = uint32_t(packet.payload.length);
    if (!(packet.flags & kSend) || bytes > qp.a.mtu) {
        engine_.counters.rx_bad_header++;
        engine_.note(packet, packet.flags & kSend ? Drop::Length : Drop::Opcode);
        return;
    }
    switch (engine_.receive_queue.posted(qp)) {
    case WqeReader::Posted::Yes:
        break;
    case WqeReader::Posted::No:
        engine_.count(qp, qp_counter::rx_no_wqe);
        engine_.note(packet, Drop::Rnr);
        return;
    case WqeReader::Posted::Unreadable:
        engine_.catastrophe(qp);
        return;
    }
    const WqeFault fault = engine_.receive_queue.read(qp, receive_wqe_);
    if (fault == WqeFault::Unreadable) {
        engine_.catastrophe(qp);
        return;
    }
    if (fault == WqeFault::None && receive_wqe_.list.length < kGrhBytes + bytes) {
        engine_.count(qp, qp_counter::rx_too_long);
        engine_.note(packet, Drop::TooLong);
        return;
    }
    std::array<uint8_t, kGrhBytes> grh;
    engine_.link.global_header(packet.head.data(), packet.arrival, grh);
    const iovec part{grh.data(), grh.size()};
    PacketSegments grh_to, to;
    const DataList &list = receive_wqe_.list;
    MemoryTable &memory = *engine_.device.memory;
    AbsentPage absent;
    Found found = Found::No;
    if (fault == WqeFault::None)
        found = list.resolve(memory, receive_wqe_.pd, Access::LocalWrite, 0, kGrhBytes, grh_to, absent);
    if (found == Found::Yes)
        found = list.resolve(memory, receive_wqe_.pd, Access::LocalWrite, kGrhBytes, bytes, to, absent);
    if (found == Found::Absent && engine_.page_faults.defer(qp, absent)) {
        engine_.counters.rx_page_absent++;
        return;
    }
    // The payload first: of a datagram to itself it may stand where the header goes.
    if (found != Found::Yes || !engine_.scatter(packet.payload, 0, to) ||
        !engine_.scatter({&part, 1, 0, kGrhBytes}, 0, grh_to)) {
        engine_.note(packet, Drop::Operation);
        engine_.receive_queue.fail(qp, fault == WqeFault::None ? Status::LocalProtection
                                                               : Status::LocalOperation);
        engine_.enter_error(qp);
        return;
    }
    PageFaults::satisfied(qp.resp.page);
    Received message{packet.h.opcode, uint32_t(kGrhBytes + bytes)};
    message.imm = packet.flags & kImmDt ? packet.h.imm : 0;
    message.src_qpn = packet.h.src_qpn;
    message.global_header = true;
    message.network = packet.arrival.layout.ipv6 ? HGHCA_CQE_IPV6 : HGHCA_CQE_IPV4;
    message.sl = packet.arrival.sl;
    message.vlan = packet.arrival.vlan;
    message.solicited = packet.h.solicited;
    engine_.count(qp, qp_counter::rx_send_requests);
    if (!engine_.receive_queue.complete(qp, message))
        engine_.catastrophe(qp);
}

}  // namespace hghca
