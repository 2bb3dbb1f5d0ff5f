// SPDX-License-Identifier: GPL-2.0-or-later
#include "transport/transport.h"

#include <algorithm>
#include <cstring>

#include "byte_order.h"
#include "wire/icrc.h"

namespace hghca {

namespace {

// Of a frame of which no more is known: up to the BTH, and what it has of that.
uint8_t bare_header(const Arrival &arrival, size_t head_bytes)
{
    return uint8_t(std::min(head_bytes, arrival.layout.transport_offset + sizeof(hghca_bth)));
}

}  // namespace

Transport::Transport(const Function &function)
    : Function(function), scheduler(qp_count), flushes(qp_count), timers(qp_count), pacer(*this), congestion(*this),
      flow_control(*this, port, link, counters, work, receive_buffers, now_ns), page_faults(*this), send_queue(*this),
      requester(*this), completer(*this), responder(*this), unreliable(*this), datagrams(*this), raw_qps(*this)
{
}

void Transport::clear()
{
    scheduler.clear();
    flushes.clear();
    timers.clear();
    flow_control.clear();
    store.clear();
    sent_wqes.clear();
    completer.clear();
    link_full = false;
}

// ---- out

template <class Copy>
bool Transport::gather_by(const PacketSegments &from, uint8_t *to, size_t room, Copy copy)
{
    for (const Segment &s : from) {
        if (s.length > room || !copy(s, to))
            return false;
        to += s.length;
        room -= s.length;
    }
    return true;
}

bool Transport::gather(const PacketSegments &from, uint8_t *to, size_t room) const
{
    return gather_by(from, to, room, [this](const Segment &s, uint8_t *at) {
        if (!s.pointer)
            return host.read(s.dma, at, s.length);
        std::memcpy(at, s.pointer, s.length);
        return true;
    });
}

bool Transport::gather(const PacketSegments &from, uint8_t *to, size_t room, uint32_t &crc) const
{
    return gather_by(from, to, room, [this, &crc](const Segment &s, uint8_t *at) {
        if (s.pointer) {
            crc = crc32_copy(crc, at, s.pointer, s.length);
            return true;
        }
        const bool read = host.read(s.dma, at, s.length);
        crc = crc32_update(crc, at, read ? s.length : 0);
        return read;
    });
}

bool Transport::add_payload(const PacketSegments &payload, iovec *parts, int &count)
{
    size_t bounced = 0;
    for (const Segment &s : payload) {
        uint8_t *bytes = s.pointer;
        if (!bytes) {
            if (s.length > kBounceBytes - bounced || !host.read(s.dma, &bounce_[bounced], s.length))
                return false;
            bytes = &bounce_[bounced];
            bounced += s.length;
        }
        parts[count++] = {bytes, s.length};
    }
    return true;
}

Route *Transport::route_of(const Qp &qp)
{
    if (route_state_ == RouteState::Unknown) {
        const bool good = congestion.reacts() ? link.route(congestion.capable(qp.a.path), flow_of(qp), route_)
                                              : link.route(qp.a.path, flow_of(qp), route_);
        route_state_ = good ? RouteState::Good : RouteState::None;
    }
    return route_state_ == RouteState::Good ? &route_ : nullptr;
}

void Transport::count_sent(const Qp &qp, const Route &route, const TransportHeader &h)
{
    if (observer) [[unlikely]]
        observer->sent(qp, h);
    count(qp, qp_counter::tx_packets);
    count(qp, qp_counter::tx_bytes, route.layout.frame_bytes);
}

void Transport::count_received(const Qp &qp, const Packet &packet)
{
    count(qp, qp_counter::rx_packets);
    count(qp, qp_counter::rx_bytes, packet.frame_bytes);
}

// Two copies of a constant size, which overlap, take less time than one of a variable size.
void Transport::copy_link_header(uint8_t *to, const Route &route)
{
    constexpr size_t kHalf = kMaxLinkHeader / 2;
    const size_t bytes = route.layout.transport_offset;
    if (bytes < kHalf) [[unlikely]] {
        std::memcpy(to, route.header.data(), bytes);
        return;
    }
    std::memcpy(to, route.header.data(), kHalf);
    std::memcpy(to + bytes - kHalf, route.header.data() + bytes - kHalf, kHalf);
}

Sent Transport::send_packet(const Qp &qp, Route *route, TransportHeader &h, const PacketSegments &payload,
                            uint32_t payload_bytes)
{
    work.add();
    require(payload_bytes <= kMaxPayload, "the payload of a packet is an MTU at most");
    h.pad = uint8_t(-payload_bytes & 3);
    if (route && route->to_self)
        return send_to_self(qp, *route, h, payload, payload_bytes);
    if (!route)
        return gather(payload, outgoing_.payload(), kMaxPayload) ? Sent::Yes : Sent::Unreadable;
    // Link header, transport header, payload, pad and ICRC, one behind the other.
    uint8_t *transport = outgoing_.payload() - sizeof(hghca_bth) - extension_bytes(kOpcodes[h.opcode]);
    uint8_t *header = transport - route->layout.transport_offset;
    const size_t transport_bytes = put_transport_header(h, transport);
    link.finish(*route, uint32_t(transport_bytes + payload_bytes + h.pad + HGHCA_ICRC_SIZE));
    copy_link_header(header, *route);
    const iovec frame{header, route->layout.frame_bytes};
    uint32_t crc = icrc_of_headers(route->icrc, link, header, route->layout, transport_bytes);
    if (!gather(payload, outgoing_.payload(), kMaxPayload, crc))
        return Sent::Unreadable;
    uint8_t *end = outgoing_.payload() + payload_bytes;
    std::memset(end, 0, h.pad);
    crc = le32(~crc32_update(crc, end, h.pad));
    std::memcpy(end + h.pad, &crc, sizeof(crc));
    // With the link down it is lost on the way.
    if (port.link_up && outlet.send_frame({&frame, 1}, Icrc::Device) == FrameSent::LinkFull)
        return Sent::Blocked;
    count_sent(qp, *route, h);
    if (route->to_group && h.qpn == kMulticastQpn && kOpcodes[h.opcode] & kDeth && features.multicast) {
        counters.multicast_sent++;
        receive_frame({{&frame, 1}, 0, route->layout.frame_bytes}, true, qp.a.qpn);
    }
    return Sent::Yes;
}

Sent Transport::send_to_self(const Qp &qp, Route &route, const TransportHeader &h, const PacketSegments &payload,
                             uint32_t payload_bytes)
{
    iovec parts[1 + 68 + 1];
    int count = 1;
    if (!add_payload(payload, parts, count))
        return Sent::Unreadable;
    uint8_t header[kMaxHeader];
    const size_t transport_bytes = put_transport_header(h, header + route.layout.transport_offset);
    link.finish(route, uint32_t(transport_bytes + payload_bytes + h.pad + HGHCA_ICRC_SIZE));
    std::memcpy(header, route.header.data(), route.layout.transport_offset);
    parts[0] = {header, route.layout.transport_offset + transport_bytes};
    uint8_t trailer[kMaxTrailer] = {};  // the ICRC is not checked
    parts[count] = {trailer, size_t(h.pad + HGHCA_ICRC_SIZE)};
    count_sent(qp, route, h);
    receive_frame({{parts, size_t(count) + 1}, 0, route.layout.frame_bytes}, true);
    return Sent::Yes;
}

Sent Transport::send_frame(const Qp &qp, const PacketSegments &frame, uint32_t frame_bytes)
{
    work.add();
    // A copy leaves. The frame is read more than once, here and where it is received: a program may write to its memory
    // meanwhile, and that may be the memory that another HCA of this machine receives it in.
    if (!gather(frame, staged_.data(), staged_.size()))
        return Sent::Unreadable;
    const iovec part{staged_.data(), frame_bytes};
    const FrameView view{{&part, 1}, 0, frame_bytes};
    if (link.own_address(staged_.data())) {
        // Made by software, so nothing in it is trusted.
        receive_frame(view, false);
        return Sent::Yes;
    }
    // Software may have put anything where an ICRC is.
    if (port.link_up && outlet.send_frame({&part, 1}, Icrc::Unknown) == FrameSent::LinkFull)
        return Sent::Blocked;
    if (staged_[0] & 1)
        raw_frames.receive_own(view, {staged_.data(), std::min<size_t>(frame_bytes, kMaxHeader)}, qp.a.qpn);
    return Sent::Yes;
}

// ---- in

// Does any of the memory that the bytes go to hold bytes of the view?
bool Transport::overlaps(const FrameView &view, const PacketSegments &to)
{
    for (const Segment &s : to) {
        bool shared = false;
        view.for_each(0, view.length, [&](const uint8_t *bytes, size_t n) {
            const auto at = reinterpret_cast<uintptr_t>(bytes), there = reinterpret_cast<uintptr_t>(s.pointer);
            shared |= s.pointer && at < there + s.length && there < at + n;
        });
        if (shared)
            return true;
    }
    return false;
}

bool Transport::scatter(const FrameView &view, size_t from, const PacketSegments &to)
{
    // A QP that writes to its own port may write over what it sends, and so may a frame of another network device of this
    // machine, which QEMU hands on where it is: all of the packet is read first.
    if (overlaps(view, to)) {
        if (view.length > staged_.size())
            return false;
        view.copy(0, staged_.data(), view.length);
        const iovec part{staged_.data(), view.length};
        return scatter_apart({{&part, 1}, 0, view.length}, from, to);
    }
    return scatter_apart(view, from, to);
}

bool Transport::scatter_apart(const FrameView &view, size_t from, const PacketSegments &to)
{
    bool good = true;
    for (const Segment &s : to) {
        uint64_t dma = s.dma;
        uint8_t *pointer = s.pointer;
        view.for_each(from, s.length, [&](const uint8_t *bytes, size_t n) {
            if (pointer) {
                std::memcpy(pointer, bytes, n);
                pointer += n;
            } else {
                good = good && host.write(dma, bytes, n);
            }
            dma += n;
        });
        if (s.pointer)
            host.dirty(s.dma, s.length);
        from += s.length;
    }
    return good;
}

void Transport::receive(std::span<const iovec> parts, Icrc icrc)
{
    FrameView frame{parts, 0, 0};
    for (const iovec &part : parts)
        frame.length += part.iov_len;
    now_ns = host.now_ns();
    if (!flow_control.takes(frame))
        receive_frame(frame, icrc == Icrc::Device);
}

// The first bytes of the frame, zeros behind its end; how many there are.
size_t Transport::copy_head(const FrameView &frame, std::array<uint8_t, kMaxHeader> &head)
{
    // Most frames: in one piece, so that a load from the copy waits for no store.
    if (frame.length >= head.size() && frame.parts.size() == 1) [[likely]] {
        std::memcpy(head.data(), static_cast<const uint8_t *>(frame.parts[0].iov_base) + frame.offset, head.size());
        return head.size();
    }
    const size_t bytes = std::min(frame.length, head.size());
    head.fill(0);
    frame.copy(0, head.data(), bytes);
    return bytes;
}

void Transport::receive_frame(const FrameView &frame, bool trusted, Qpn sender)
{
    work.add();
    Packet packet;
    const std::span<const uint8_t> head{packet.head.data(), copy_head(frame, packet.head)};
    packet.arrived_bytes = uint32_t(frame.length);
    Drop why = Drop::None;
    switch (link.classify(head, frame.length, packet.arrival, why)) {
    case Verdict::Other:
        if (sender == kNoQpn)
            raw_frames.receive(frame, head);
        return;
    case Verdict::Engine:
        packet.header_bytes = bare_header(packet.arrival, head.size());
        why = parse_packet(frame, trusted, features.vendor_ops, link, packet);
        break;
    case Verdict::Drop:
        packet.header_bytes = bare_header(packet.arrival, head.size());
        break;
    }
    if (why != Drop::None)
        drop(packet, why);
    else if (packet.arrival.members)
        dispatch_to_group(packet, sender);
    else
        dispatch(packet);
}

void Transport::drop(const Packet &packet, Drop why) { events.dropped(packet, why, now_ns); }

// Why a packet of this service and kind is not for such a QP in its state. An XRC QP is either initiator, which
// responds to nothing, or target, which requests nothing (IBA vol 1, A14.2). Opcodes of the manufacturer are RC's.
Drop Transport::refuses(const Qp *qp, uint8_t service, uint32_t flags) const
{
    if (!qp)
        return Drop::NoQp;
    if (qp->state < QpState::Rtr || qp->state == QpState::Error)
        return Drop::QpState;
    const bool of_service = flags & kVendor ? qp->a.service == Service::Rc : service == bth_service(qp->a.service);
    if (qp->a.service == Service::Raw || !of_service ||
        (qp->a.service == Service::Xrc && bool(flags & kResponse) != !qp->a.xrcd))
        return Drop::Service;
    return Drop::None;
}

// IBA vol 1, 10.9.3: the same key, and not two limited members.
bool Transport::pkey_matches(uint16_t own_pkey, const TransportHeader &h) const
{
    if (!features.pkeys)
        return true;
    return !((h.pkey ^ own_pkey) & ~HGHCA_PKEY_FULL) && (h.pkey | own_pkey) & HGHCA_PKEY_FULL;
}

// The checks from the destination QP on, in the order of the interface document, section 9.
void Transport::dispatch(const Packet &packet)
{
    if (packet.flags & kCnp && features.congestion) {
        dispatch_cnp(packet);
        return;
    }
    const TransportHeader &h = packet.h;
    const Qpn qpn = h.qpn == kGsiQpn ? qps.gsi_qpn() : h.qpn;
    Qp *qp = qpn == kNoQpn ? nullptr : qps.find(qpn);
    const uint8_t service = h.opcode & HGHCA_BTH_SERVICE_MASK;
    if (const Drop why = refuses(qp, service, packet.flags); why != Drop::None) {
        drop(packet, why);
        return;
    }
    if (service != HGHCA_BTH_UD) {
        if (const Drop why = link.check_peer(packet.arrival, qp->a.path); why != Drop::None) {
            count(*qp, qp_counter::rx_bad_address);
            drop(packet, why);
            return;
        }
    }
    if (!pkey_matches(pkey_of(*qp), h)) {
        count(*qp, qp_counter::rx_bad_pkey);
        drop(packet, Drop::Pkey);
        return;
    }
    if (service == HGHCA_BTH_UD && packet.flags & kDeth && h.qkey != Datagrams::qkey_of(*qp)) {
        count(*qp, qp_counter::rx_bad_qkey);
        drop(packet, Drop::Qkey);
        return;
    }
    count_received(*qp, packet);
    if (packet.arrival.ecn == HGHCA_ECN_CE) {
        counters.np_ecn_marked_roce_packets++;
        if (service != HGHCA_BTH_UD)
            congestion.marked(*qp);
    }
    deliver(*qp, packet);
}

// IBA vol 1, A17.9.3: a CNP is for a QP that has a peer, and comes from there.
void Transport::dispatch_cnp(const Packet &packet)
{
    Qp *qp = qps.find(packet.h.qpn);
    if (!qp) {
        drop(packet, Drop::NoQp);
    } else if (!is_connected(qp->a.service)) {
        drop(packet, Drop::Service);
    } else if (qp->state < QpState::Rtr || qp->state == QpState::Error) {
        drop(packet, Drop::QpState);
    } else if (const Drop why = link.check_peer(packet.arrival, qp->a.path); why != Drop::None) {
        count(*qp, qp_counter::rx_bad_address);
        drop(packet, why);
    } else if (!pkey_matches(pkey_of(*qp), packet.h)) {
        count(*qp, qp_counter::rx_bad_pkey);
        drop(packet, Drop::Pkey);
    } else if (!packet.h.becn || packet.payload.length) {
        drop(packet, Drop::Cnp);
    } else {
        count_received(*qp, packet);
        congestion.react(*qp);
    }
}

// IBA vol 1, 10.5: each QP of the group has a copy, but for the one that sent it.
// What one of them lacks is no matter of the others.
void Transport::dispatch_to_group(const Packet &packet, Qpn sender)
{
    const TransportHeader &h = packet.h;
    if (h.qpn != kMulticastQpn || (h.opcode & HGHCA_BTH_SERVICE_MASK) != HGHCA_BTH_UD) {
        drop(packet, h.qpn != kMulticastQpn ? Drop::NoQp : Drop::Service);
        return;
    }
    if (!pkey_matches(port.pkey, h)) {
        counters.rx_bad_pkey++;
        drop(packet, Drop::Pkey);
        return;
    }
    if (!(packet.flags & kSend)) {
        counters.rx_bad_header++;
        drop(packet, Drop::Opcode);
        return;
    }
    uint32_t copies = 0;
    for (const uint16_t member : *packet.arrival.members) {
        const Qpn qpn{member};
        if (qpn == kNoQpn || qpn == sender)
            continue;
        Qp *qp = qps.find(qpn);
        if (const Drop why = refuses(qp, HGHCA_BTH_UD, packet.flags); why != Drop::None) {
            drop(packet, why);
        } else if (h.qkey != Datagrams::qkey_of(*qp)) {
            count(*qp, qp_counter::rx_bad_qkey);
            drop(packet, Drop::Qkey);
        } else {
            copies++;
            work.add();
            count_received(*qp, packet);
            counters.np_ecn_marked_roce_packets += packet.arrival.ecn == HGHCA_ECN_CE;
            deliver(*qp, packet);
        }
    }
    if (!copies)
        return;
    counters.multicast_received++;
    counters.multicast_copies += copies;
    counters.multicast_extra_bytes += uint64_t(copies - 1) * packet.frame_bytes;
}

// The packet is one that the QP takes in its state.
void Transport::deliver(Qp &qp, const Packet &packet)
{
    if (qp.state == QpState::Rtr && !qp.comm_est_sent) {
        qp.comm_est_sent = true;
        events.post(Event::Established, qp);
    }
    if (qp.a.service == Service::Ud)
        datagrams.receive(qp, packet);
    else if (qp.a.service == Service::Uc)
        unreliable.receive(qp, packet);
    else if (packet.flags & kResponse)
        completer.receive(qp, packet);
    else
        responder.receive(qp, packet);
}

// ---- turns and timers

Turn Transport::serve(Qp &qp, int32_t &credit)
{
    if (qp.congestion.cnp_due && congestion.notify(qp, credit) == Turn::Blocked)
        return Turn::Blocked;
    const Turn turn = serve_queues(qp, credit);
    // What it sent to itself may have come marked.
    return turn == Turn::Idle && qp.congestion.cnp_due ? Turn::More : turn;
}

void Transport::flush(Qp &qp)
{
    if (flush_slice(qp) == Flushed::Part)
        flushes.add(qp.a.qpn);
}

void Transport::flush()
{
    for (; !work.over() && !flushes.empty(); work.add()) {
        Qp *qp = qps.find(flushes.front());
        if (!qp || flush_slice(*qp) == Flushed::All)
            flushes.remove();
    }
}

Flushed Transport::flush_slice(Qp &qp)
{
    if (qp.state != QpState::Error && qp.state != QpState::Sqe)
        return Flushed::All;
    const Flushed sends_flushed = send_queue.flush(qp);
    if (sends_flushed == Flushed::Part || qp.state == QpState::Sqe)
        return sends_flushed;
    return receives.flush(qp);
}

Turn Transport::serve_queues(Qp &qp, int32_t &credit)
{
    route_state_ = RouteState::Unknown;
    if (!is_reliable(qp.a.service)) {
        if (qp.state == QpState::Sqe || qp.state == QpState::Error) {
            flush(qp);
            return Turn::Idle;
        }
        return qp.a.service == Service::Ud   ? datagrams.run(qp, credit)
               : qp.a.service == Service::Uc ? unreliable.run(qp, credit)
                                             : raw_qps.run(qp, credit);
    }
    return serve_reliable(qp, credit);
}

// Responses go before requests, but take turns with them when the QP's rate holds back both, and when a search goes
// on: a peer that never stops reading or searching would otherwise take all of it.
Turn Transport::serve_reliable(Qp &qp, int32_t &credit)
{
    auto run_requester = [&] {
        const bool sends = qp.state == QpState::Rts || qp.state == QpState::Sqd;
        return sends ? requester.run(qp, credit) : Turn::Idle;
    };
    const bool requests_first = qp.pace.requests_first;
    const uint64_t next_ns = qp.pace.next_ns;
    Turn turn = requests_first ? run_requester() : Turn::Idle;
    if (turn == Turn::Idle)
        turn = responder.run(qp, credit);
    if (turn == Turn::Idle && !requests_first)
        turn = run_requester();
    if (qp.pace.next_ns != next_ns || Responder::searches(qp))
        qp.pace.requests_first = !requests_first;
    // What it sent to itself may have made a reply due.
    return turn == Turn::Idle && Responder::may_reply(qp) ? Turn::More : turn;
}

Qp *Transport::find_due(Qpn qpn)
{
    Qp *qp = qps.find(qpn);
    // The guest may have overwritten its context in ICM, or taken it away. One that comes back after that sends from the
    // memory of software again.
    if (!qp)
        forget_packets(qpn);
    return qp;
}

void Transport::run()
{
    now_ns = host.now_ns();
    link_full = false;
    if (flow_control.next_deadline() <= now_ns)
        flow_control.expire();
    if (flow_control.due() && !flow_control.send()) {
        link_full = true;
        return;
    }
    // Whoever stands in the line costs something, even if there is nothing to send.
    for (; !work.over() && !scheduler.empty(); work.add(), share_places()) {
        Qp *qp = find_due(scheduler.front());
        if (!qp || qp->state < QpState::Rtr) {
            scheduler.remove();
            continue;
        }
        if (const TrafficClass c = class_of(*qp); flow_control.paused(c)) {
            Pacer::rest(*qp);  // a pause is nothing to make up for
            scheduler.park(c);
            continue;
        }
        int32_t &credit = scheduler.credit();
        const Turn turn = serve(*qp, credit);
        if (turn == Turn::Blocked) {
            link_full = true;
            return;
        }
        if (turn == Turn::Idle) {
            Pacer::rest(*qp);
            scheduler.remove();
        } else if (credit <= 0 || !work.over()) {
            scheduler.rotate();
        }  // otherwise its turn goes on in the next slice
    }
}

void Transport::set_deadline(Qp &qp, uint64_t deadline_ns)
{
    qp.req.deadline_ns = deadline_ns;
    if (deadline_ns)
        timers.arm(qp.a.qpn, deadline_ns);
}

void Transport::expire(uint64_t now)
{
    now_ns = now;
    if (flow_control.next_deadline() <= now)
        flow_control.expire();
    for (; timers.next() <= now && !work.over(); work.add()) {
        Qp *qp = find_due(timers.pop());
        if (!qp)
            continue;
        pacer.expire(*qp);
        if (!qp->req.deadline_ns)
            continue;
        if (qp->req.deadline_ns > now)
            timers.arm(qp->a.qpn, qp->req.deadline_ns);  // had moved out meanwhile
        else if (qp->state == QpState::Rts || qp->state == QpState::Sqd)
            requester.timeout(*qp);
    }
}

// ---- states

void Transport::enter_error(Qp &qp, bool keep_replies)
{
    ResponderState &s = qp.resp;
    qp.state = QpState::Error;
    s.in_message = false;
    s.page = {};
    qp.congestion.cnp_due = false;
    if (!keep_replies) {
        s.reply_count = 0;
        s.ack_due = false;
    }
    flush(qp);
    // IBA vol 1, 11.5.2.3 (Last WQE Reached): it will take no more from there.
    if ((qp.a.srqn != kNoSrqn || qp.a.xrcd) && !s.last_wqe_raised) {
        s.last_wqe_raised = true;
        events.post(Event::LastWqeReached, qp);
    }
}

void Transport::catastrophe(Qp &qp)
{
    events.post(Event::QueueFailed, qp);
    enter_error(qp);
}

void Transport::fail_receive(Qp &qp, Status status)
{
    if (receives.fail(qp, status) == Completed::CqFailed)
        catastrophe(qp);
    else
        enter_error(qp);
}

void Transport::check_drained(Qp &qp)
{
    if (qp.state != QpState::Sqd || qp.drained_sent || qp.req.oldest.index != qp.req.started_index)
        return;
    qp.drained_sent = true;
    if (qp.a.sqd_notify)
        events.post(Event::SendQueueDrained, qp);
}

void Transport::posted(Qp &qp)
{
    if (qp.state == QpState::Error)
        flush(qp);
    else
        schedule(qp);
}

uint32_t Transport::reduced_kbps(Qp &qp)
{
    now_ns = host.now_ns();
    return congestion.reduced_kbps(qp);
}

void Transport::restart_flow_control()
{
    now_ns = host.now_ns();
    flow_control.restart();
}

bool Transport::has_work() const
{
    return !flushes.empty() || (!link_full && (!scheduler.empty() || flow_control.due()));
}

bool Transport::outstanding(const Qp &qp)
{
    return qp.req.oldest.valid || announcement_waits(qp.req);
}

uint64_t Transport::next_deadline() const { return std::min(timers.next(), flow_control.next_deadline()); }

// Software has seen the completion of a receive and is done with the QP. An ACK that has not gone yet goes now: otherwise
// the peer would send the message again until its retries run out.
void Transport::acknowledge_last(Qp &qp)
{
    if (!is_reliable(qp.a.service) || link_full || flow_control.paused(class_of(qp)))
        return;
    route_state_ = RouteState::Unknown;
    responder.acknowledge_last(qp);
}

void Transport::state_changed(Qp &qp, QpState from)
{
    RequesterState &r = qp.req;
    now_ns = host.now_ns();
    switch (qp.state) {
    case QpState::Reset:
        acknowledge_last(qp);
        // Its turn and its timer, if any, will find no such QP.
        forget_packets(qp.a.qpn);
        return;
    case QpState::Init:
        if (from == QpState::Reset) {
            // Of one of this number whose context was lost in ICM.
            forget_packets(qp.a.qpn);
            r.oldest.index = r.started_index = r.next_index;
            r.doorbell_limit = r.next_index;
        }
        return;
    case QpState::Rtr:
        qp.comm_est_sent = false;
        return;
    case QpState::Error:
        acknowledge_last(qp);
        enter_error(qp);
        return;
    case QpState::Rts:
        if (from == QpState::Rtr)
            requester.reset_retries(qp);
        // What was posted before is not sent any more.
        if (from == QpState::Sqe)
            send_queue.flush_all(qp);
        break;
    case QpState::Sqd:
        if (from == QpState::Rts)
            qp.drained_sent = false;
        check_drained(qp);
        break;
    case QpState::Sqe:
        break;
    }
    schedule(qp);
}

}  // namespace hghca
