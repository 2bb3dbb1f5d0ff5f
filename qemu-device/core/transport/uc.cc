// SPDX-License-Identifier: GPL-2.0-or-later
#include "transport/uc.h"

#include "transport/transport.h"

namespace hghca {

// ---- sending: a WQE is complete when its last packet has gone

Turn UnreliableConnections::run(Qp &qp, int32_t &credit)
{
    SendQueue &queue = transport_.send_queue;
    bool loaded = false;
    uint16_t loaded_index = 0;
    while (transport_.goes_on(credit)) {
        if (!queue.ready(qp)) {
            queue.raise_fault(qp);
            return Turn::Idle;
        }
        if (!queue.allowed(qp))
            return Turn::Idle;
        if (!loaded || loaded_index != qp.req.next_index) {
            if (queue.load(qp, send_wqe_) == SendQueue::Step::Failed) {
                queue.raise_fault(qp);
                return Turn::Idle;
            }
            loaded = true;
            loaded_index = qp.req.next_index;
        }
        if (send_wqe_.is_local()) {
            if (queue.execute(qp, send_wqe_, credit) == SendQueue::Step::Failed)
                return Turn::Idle;
            continue;
        }
        if (transport_.pacer.holds(qp, qp.a.path))
            return Turn::Idle;
        const Turn turn = send(qp, credit);
        if (turn != Turn::More)
            return turn;
    }
    return Turn::More;
}

// One packet of send_wqe_. More: go on.
Turn UnreliableConnections::send(Qp &qp, int32_t &credit)
{
    RequesterState &r = qp.req;
    SendQueue &queue = transport_.send_queue;
    const uint32_t packets = psn_distance(r.next_psn, r.next_wqe_psn);
    const uint64_t offset = uint64_t(packets) * qp.a.mtu;
    // Nobody but software that rewrites a WQE in flight makes it end before where it has got to.
    if (packets && offset >= send_wqe_.list.length) {
        queue.fail(qp, Status::LocalOperation);
        return Turn::Idle;
    }
    const uint64_t left = send_wqe_.list.length - offset;
    const uint32_t bytes = uint32_t(std::min<uint64_t>(left, qp.a.mtu));
    const bool last = left <= qp.a.mtu;
    PacketSegments payload;
    AbsentPage absent;
    const Found found =
        send_wqe_.list.resolve(transport_.keys, qp.a.pd, Access::LocalRead, offset, bytes, payload, absent);
    if (found == Found::Absent && transport_.page_faults.wait(qp, absent) == PageFaults::Outcome::Waits)
        return Turn::Idle;
    if (found != Found::Yes) {
        queue.fail(qp, Status::LocalProtection);
        return Turn::Idle;
    }
    PageFaults::satisfied(r.page);
    TransportHeader h{};
    h.opcode = uint8_t(HGHCA_BTH_UC | message_opcode(send_wqe_, !packets, last));
    h.solicited = last && send_wqe_.asks_for_event();
    h.pkey = transport_.pkey_of(qp);
    h.qpn = qp.a.remote_qpn;
    h.psn = r.next_psn;
    h.imm = send_wqe_.imm;
    h.rkey = send_wqe_.rkey;
    h.va = send_wqe_.raddr;
    h.length = uint32_t(send_wqe_.list.length);

    const QpState state = qp.state;
    queue.begin(qp);
    Route *route = transport_.route_of(qp);
    switch (transport_.send_packet(qp, route, h, payload, bytes)) {
    case Sent::Yes:
        transport_.pacer.sent(qp, qp.a.path, route);
        break;
    case Sent::Blocked:
        return Turn::Blocked;
    case Sent::Unreadable:
        queue.fail(qp, Status::LocalProtection);
        return Turn::Idle;
    }
    credit -= Transport::cost_of(route, bytes);
    if (qp.state != state)
        return Turn::Idle;   // received by itself, and that went wrong
    r.next_psn = psn_add(r.next_psn, 1);
    if (!last)
        return Turn::More;
    queue.advance(qp);
    const SendQueue::Step completed = queue.complete(qp, send_wqe_, packets + 1, uint32_t(send_wqe_.list.length));
    transport_.check_drained(qp);
    return completed == SendQueue::Step::Done ? Turn::More : Turn::Idle;
}

// ---- receiving: what is lost or wrong ends the message, and nobody is told

void UnreliableConnections::receive(Qp &qp, const Packet &packet)
{
    ResponderState &s = qp.resp;
    const bool begins = packet.flags & kFirst;
    if (!in_sequence(qp, packet))
        return;
    const size_t bytes = packet.payload.length;
    const bool good_length = packet.flags & kLast ? bytes <= qp.a.mtu && (bytes || begins)
                                                  : bytes == qp.a.mtu && !packet.h.pad;
    if (!good_length)
        transport_.drop(packet, Drop::Length);
    const bool good = good_length && (packet.flags & kSend ? receive_send(qp, packet) : receive_write(qp, packet));
    if (!good)
        transport_.count(qp, qp_counter::uc_dropped);
    else if (packet.flags & kLast)
        transport_.count(qp, packet.flags & kSend ? qp_counter::rx_send_requests : qp_counter::rx_write_requests);
    s.in_message = good && !(packet.flags & kLast) && qp.state != QpState::Error;
}

// IBA vol 1, 9.8.2.2.1: a gap ends the message under way; the next one is taken from its first packet on.
bool UnreliableConnections::in_sequence(Qp &qp, const Packet &packet)
{
    ResponderState &s = qp.resp;
    const bool expected = packet.h.psn == s.expected_psn;
    const bool known = packet.flags & (kSend | kWrite);
    const bool begins = packet.flags & kFirst;
    const uint32_t kind = s.message == MessageKind::Write ? kWrite : kSend;
    const bool goes_on = s.in_message && expected && !begins && packet.flags & kind;
    s.expected_psn = psn_add(packet.h.psn, 1);
    if (known && goes_on)
        return true;
    if (s.in_message) {
        transport_.count(qp, qp_counter::uc_dropped);   // the one that was under way
        transport_.drop(packet, !expected ? Drop::Psn : known ? Drop::Sequence : Drop::Opcode);
    } else if (!known) {
        transport_.drop(packet, Drop::Opcode);
    }
    s.in_message = false;
    return known && begins;
}

bool UnreliableConnections::has_receive_wqe(Qp &qp, const Packet &packet)
{
    switch (transport_.receives.posted(qp)) {
    case Posted::Yes:
        return true;
    case Posted::No:
        transport_.count(qp, qp_counter::rx_no_wqe);
        transport_.drop(packet, Drop::Rnr);
        return false;
    case Posted::Unreadable:
        break;
    }
    transport_.catastrophe(qp);
    return false;
}

// The receive WQE is at fault, or its memory: software's own error, which it is told.
void UnreliableConnections::complete(Qp &qp, const Packet &packet)
{
    Received message{packet.h.opcode, uint32_t(qp.resp.message_offset)};
    message.imm = packet.flags & kImmDt ? packet.h.imm : 0;
    message.src_qpn = qp.a.remote_qpn;
    message.sl = packet.arrival.sl;
    message.solicited = packet.h.solicited;
    if (transport_.receives.complete(qp, message) == Completed::CqFailed)
        transport_.catastrophe(qp);
}

bool UnreliableConnections::receive_send(Qp &qp, const Packet &packet)
{
    ResponderState &s = qp.resp;
    const uint32_t bytes = uint32_t(packet.payload.length);
    if (packet.flags & kFirst) {
        // A WQE that a message held which was cut short serves the next.
        if (!s.holds_shared && !has_receive_wqe(qp, packet))
            return false;
        transport_.receives.hold(qp);
        s.message = MessageKind::Send;
        s.message_offset = 0;
    }
    const WqeFault fault = transport_.receives.read(qp, receive_wqe_);
    if (fault == WqeFault::Unreadable) {
        transport_.catastrophe(qp);
        return false;
    }
    if (fault != WqeFault::None) {
        transport_.fail_receive(qp, Status::LocalOperation);
        return false;
    }
    if (s.message_offset + bytes > std::min(receive_wqe_.list.length, kMaxMessage)) {
        transport_.fail_receive(qp, Status::LocalLength);
        return false;
    }
    PacketSegments to;
    AbsentPage absent;
    const Found found = receive_wqe_.list.resolve(transport_.keys, receive_wqe_.pd, Access::LocalWrite,
                                                  s.message_offset, bytes, to, absent);
    if (found == Found::Absent && transport_.page_faults.defer(qp, absent) == PageFaults::Outcome::Waits) {
        transport_.counters.rx_page_absent++;
        return false;
    }
    if (found != Found::Yes || !transport_.scatter(packet.payload, 0, to)) {
        transport_.fail_receive(qp, Status::LocalProtection);
        return false;
    }
    s.message_offset += bytes;
    if (packet.flags & kLast) {
        // Not before: a message that is dropped comes again from its first packet, whose page is there.
        PageFaults::satisfied(s.page);
        complete(qp, packet);
    }
    return true;
}

bool UnreliableConnections::receive_write(Qp &qp, const Packet &packet)
{
    ResponderState &s = qp.resp;
    KeySpace &keys = transport_.keys;
    const uint32_t bytes = uint32_t(packet.payload.length);
    const bool first = packet.flags & kFirst, last = packet.flags & kLast;
    const uint32_t left = first ? packet.h.length : s.write_left;
    if (left > kMaxMessage || (last ? bytes != left : bytes >= left)) {
        transport_.drop(packet, Drop::Length);
        return false;
    }
    // IBA vol 1, 9.9.3: what the QP or the region does not allow is dropped without a word.
    const auto refused = [&] {
        return left && keys.check(packet.h.rkey, peer_of(qp), packet.h.va, left, Access::RemoteWrite) == Allowed::No;
    };
    if (first && (!qp.a.allows(Access::RemoteWrite) || refused())) {
        transport_.drop(packet, Drop::Access);
        return false;
    }
    if (packet.flags & kImmDt && !s.holds_shared && !has_receive_wqe(qp, packet))
        return false;
    if (first) {
        s.message = MessageKind::Write;
        s.message_offset = 0;
        s.write_va = packet.h.va;
        s.write_rkey = packet.h.rkey;
        s.write_left = left;
    }
    PacketSegments to;
    AbsentPage absent;
    Found found = Found::Yes;
    if (bytes)
        found = keys.locate(s.write_rkey, peer_of(qp), s.write_va, bytes, Access::RemoteWrite, to, absent);
    if (found == Found::Absent) {
        absent.length += s.write_left - bytes;
        transport_.counters.rx_page_absent +=
            transport_.page_faults.defer(qp, absent) == PageFaults::Outcome::Waits;
    }
    if (found != Found::Yes || !transport_.scatter(packet.payload, 0, to))
        return false;
    if (last)
        PageFaults::satisfied(s.page);
    s.message_offset += bytes;
    s.write_va += bytes;
    s.write_left -= bytes;
    if (packet.flags & kImmDt)
        complete(qp, packet);
    return true;
}

}  // namespace hghca
