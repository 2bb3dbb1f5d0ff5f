// SPDX-License-Identifier: GPL-2.0-or-later
// The RDMA transport of a function (transport/function.h): the way out, the way in, the schedule, and its parts.
//
//   posted()  -> SendQueue -> Requester, UnreliableConnections, Datagrams, RawQps -> send_packet()
//   receive() -> Responder -> responses, sent by run()
//             -> Completer -> completions, and SendQueue goes on
//             -> UnreliableConnections, Datagrams
//             -> RawFrames of the function -> deliver_raw()
//
// receive() never sends. So a packet to the port itself can be received in the
// middle of run(): it changes QPs, even the one that is sending, but never
// starts another packet.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <span>

#include "port/flow_control.h"
#include "transport/completer.h"
#include "transport/congestion.h"
#include "transport/datagram.h"
#include "transport/function.h"
#include "transport/packet_store.h"
#include "transport/page_faults.h"
#include "transport/pacer.h"
#include "transport/raw.h"
#include "transport/requester.h"
#include "transport/responder.h"
#include "transport/scheduler.h"
#include "transport/send_queue.h"
#include "transport/sent_wqes.h"
#include "transport/uc.h"
#include "wire/link.h"
#include "wire/packet.h"

namespace hghca {

enum class [[nodiscard]] Sent {
    Yes,         // or lost, for the path leads nowhere
    Blocked,     // not sent: the link takes nothing now
    Unreadable,  // not sent: the payload cannot be read
};

class Transport final : public Function, private FlowControl::Ends {
public:
    explicit Transport(const Function &function);

    // ---- for the function

    // Forget everything: all QPs are gone.
    void clear();

    // Software has posted to a send queue, or wants that of a QP in error flushed.
    void posted(Qp &qp);
    // A WQE is found behind the end of the send queue that was reached; or there is something wrong there.
    void extend(Qp &qp, const WqeRef &wqe) { send_queue.extend(qp, wqe); }
    void set_fault(Qp &qp, Status status) { send_queue.set_fault(qp, status); }

    // Called after qp.state and qp.a have changed; on RST2INIT req and resp are zeroed and their indices set before
    // the call. Entering ERR flushes; RST forgets timers and schedule; RTR takes resp.expected_psn as set; RTS and SQD
    // start or stop sending.
    void state_changed(Qp &qp, QpState from);
    // A queue of the QP cannot be read, or its CQ has failed.
    void catastrophe(Qp &qp);
    // The message that arrives fails, and with it the QP.
    void fail_receive(Qp &qp, Status status);
    // As PageFaults::resume().
    Resumed resume(Qp &qp, Side side, uint16_t token, bool failed)
    {
        return page_faults.resume(qp, side, token, failed);
    }
    // What congestion control leaves of the QP's rate, in kbit/s; 0: all of it.
    uint32_t reduced_kbps(Qp &qp);
    // The settings of flow control are new, or the link has gone down or up.
    void restart_flow_control();

    // A frame from the link. Never sends. A frame that waits in a receive buffer is verified in any case.
    void receive(std::span<const iovec> parts, Icrc icrc);
    // A frame for a raw QP that takes frames in its state. False: it makes no completion of a frame received.
    bool deliver_raw(Qp &qp, const FrameView &frame) { return raw_qps.deliver(qp, frame); }
    // Goes on with flushes of queues, whatever the link does, until the slice is over.
    void flush();
    // Sends what is due, until the slice is over.
    void run();
    bool has_work() const;
    // Is a WQE of the send queue not complete yet, as far as the transport has been told of it?
    static bool outstanding(const Qp &qp);
    // The next deadline on Host::now_ns(), or UINT64_MAX; and what is due at it.
    uint64_t next_deadline() const;
    void expire(uint64_t now_ns);

    // ---- for the parts

    // Receives it now. `trusted`: made here, its ICRC does not count. `sender`: the QP whose own datagram to a group it
    // is, which gets no copy; otherwise 0.
    void receive_frame(const FrameView &frame, bool trusted, Qpn sender = kNoQpn);

    // Finishes the headers (pad, lengths, ICRC) and sends, or receives when the
    // route leads back here; a datagram to a group does both. `route` nullptr:
    // the path has no source address now.
    Sent send_packet(const Qp &qp, Route *route, TransportHeader &h, const PacketSegments &payload, uint32_t payload_bytes);
    // Sends a frame of a raw Ethernet QP as it is, or receives it when it is for the
    // port; one that is multicast is for rules of other QPs here as well.
    Sent send_frame(const Qp &qp, const PacketSegments &frame, uint32_t frame_bytes);
    // Writes bytes [from, from + segments) of `view` to guest memory. False: DMA failed.
    bool scatter(const FrameView &view, size_t from, const PacketSegments &to);

    // A copy of all segments, one behind the other. False: there are more than `room` bytes, or DMA failed.
    bool gather(const PacketSegments &from, uint8_t *to, size_t room) const;
    // The same, and the copy goes into `crc`. Each byte is read once: what is sent has the ICRC that is sent with it,
    // whatever a program writes there meanwhile.
    bool gather(const PacketSegments &from, uint8_t *to, size_t room, uint32_t &crc) const;

    // Counts for the QP: in total, and in its set.
    void count(const Qp &qp, const QpCounter &which, uint64_t n = 1)
    {
        counters.*which.total += n;
        counter_sets.add(qp.a.counter_set, which.own, n);
    }

    // The retransmission buffer: the QP's packets before its unacked_psn have arrived, or none is sent again.
    void forget_acknowledged(const Qp &qp)
    {
        if (store.active())
            store.release(qp.a.qpn, qp.req.unacked_psn, [this](Qpn qpn) { scheduler.add(qpn); });
    }
    // Also of a QP that is gone.
    void forget_packets(Qpn qpn)
    {
        if (store.active())
            store.release_all(qpn, [this](Qpn other) { scheduler.add(other); });
    }
    // Of the QPs that wait for a place there, the next goes on if there is one.
    void share_places()
    {
        if (store.active())
            store.wake_next([this](Qpn qpn) { scheduler.add(qpn); });
    }

    // Ends in a catastrophic error of the device, never of the emulator.
    void require(bool holds, const char *invariant)
    {
        if (!holds) [[unlikely]]
            events.broken(invariant);
    }

    uint16_t pkey_of(const Qp &qp) const { return qp.a.pkey ? qp.a.pkey : port.pkey; }

    // Packet dropped or refused: counted by its reason and kept for who looks for it.
    void drop(const Packet &packet, Drop why);

    // The route of a connected QP in its turn; nullptr if its path has no source address now.
    Route *route_of(const Qp &qp);
    // What tells flows apart: those from a QP to QP number `peer`, and those of a connected QP.
    static uint32_t flow_of(const Qp &qp, Qpn peer) { return number(qp.a.qpn) ^ number(peer) << 8; }
    static uint32_t flow_of(const Qp &qp) { return flow_of(qp, qp.a.remote_qpn); }
    // What a packet costs of its QP's turn: the bytes of its frame; one that leads nowhere, as many as it could have.
    static int32_t cost_of(const Route *route, uint32_t payload_bytes)
    {
        return int32_t(route ? route->layout.frame_bytes : payload_bytes + kMaxHeader);
    }
    // May a QP's turn go on that has so much credit left?
    bool goes_on(int32_t credit) const { return credit > 0 && !work.over(); }
    // Will be asked for packets when its turn comes.
    void schedule(const Qp &qp) { scheduler.add(qp.a.qpn); }
    // The QP's deadline (0: none) is seen by expire().
    void set_deadline(Qp &qp, uint64_t deadline_ns);

    // To ERR: flushes both queues, forgets what was under way. Replies stay due
    // with `keep_replies`, for the NAK that tells the peer why.
    void enter_error(Qp &qp, bool keep_replies = false);
    // WR_FLUSH_ERR for what is posted to a QP in error; what the slice leaves over when flush() is called.
    void flush(Qp &qp);
    // A reason to send SQ_DRAINED?
    void check_drained(Qp &qp);

    Scheduler scheduler;
    Scheduler flushes;         // QPs with more to flush; they need no link
    Timers<Qpn> timers;
    uint64_t now_ns = 0;
    bool link_full = false;

    PacketStore store{host};
    Pacer pacer;
    Congestion congestion;
    FlowControl flow_control;
    PageFaults page_faults;
    SendQueue send_queue;
    SentWqes sent_wqes;
    Requester requester;
    Completer completer;
    Responder responder;
    UnreliableConnections unreliable;
    Datagrams datagrams;
    RawQps raw_qps;

private:
    void resume(TrafficClass c) override { scheduler.unpark(c); }
    void receive_late(const FrameView &frame) override
    {
        if (receiver)
            receiver->receive_late(frame);
        else
            receive_frame(frame, false);
    }
    FrameSent send_control(const iovec &frame) override { return outlet.send_frame({&frame, 1}, Icrc::Unknown); }
    static TrafficClass class_of(const Qp &qp) { return qp.a.service == Service::Raw ? kOther : kRoce; }
    // Calls copy(segment, to) for each; false as soon as that is false.
    template <class Copy>
    static bool gather_by(const PacketSegments &from, uint8_t *to, size_t room, Copy copy);
    static size_t copy_head(const FrameView &frame, std::array<uint8_t, kMaxHeader> &head);
    static void copy_link_header(uint8_t *to, const Route &route);
    Sent send_to_self(const Qp &qp, Route &route, const TransportHeader &h, const PacketSegments &payload,
                      uint32_t payload_bytes);
    // The payload as parts of a frame, by way of bounce_ where it cannot be mapped.
    bool add_payload(const PacketSegments &payload, iovec *parts, int &count);
    static bool overlaps(const FrameView &view, const PacketSegments &to);
    // scatter() to memory that holds none of the view.
    bool scatter_apart(const FrameView &view, size_t from, const PacketSegments &to);
    Drop refuses(const Qp *qp, uint8_t service, uint32_t flags) const;
    bool pkey_matches(uint16_t own_pkey, const TransportHeader &h) const;
    void dispatch(const Packet &packet);
    void dispatch_cnp(const Packet &packet);
    void dispatch_to_group(const Packet &packet, Qpn sender);
    void deliver(Qp &qp, const Packet &packet);
    // The QP whose turn it is or whose timer has ended. nullptr: it is gone, and so is what the store has of it.
    Qp *find_due(Qpn qpn);
    Turn serve(Qp &qp, int32_t &credit);
    Turn serve_queues(Qp &qp, int32_t &credit);
    Turn serve_reliable(Qp &qp, int32_t &credit);
    void acknowledge_last(Qp &qp);
    Flushed flush_slice(Qp &qp);
    void count_sent(const Qp &qp, const Route &route, const TransportHeader &h);
    void count_received(const Qp &qp, const Packet &packet);

    Route route_{};
    enum class RouteState { Unknown, Good, None } route_state_ = RouteState::Unknown;
    // A packet on its way out; its headers end where its payload begins.
    static constexpr size_t kMaxPayload = 4096;
    static constexpr size_t kMaxTrailer = 3 + HGHCA_ICRC_SIZE;
    struct Outgoing {
        alignas(64) std::array<uint8_t, (kMaxHeader + 63) / 64 * 64 + kMaxPayload + kMaxTrailer> bytes{};
        uint8_t *payload() { return bytes.data() + (kMaxHeader + 63) / 64 * 64; }
    } outgoing_;
    static constexpr size_t kBounceBytes = 16384;
    std::array<uint8_t, kBounceBytes> bounce_{};
    // A frame of a raw Ethernet QP on its way out, or a packet on its way in that the memory it is received in holds.
    std::array<uint8_t, kBounceBytes> staged_{};
};

// The peer of a QP as the user of a key.
inline KeyUser peer_of(const Qp &qp) { return {qp.a.pd, qp.a.qpn}; }

}  // namespace hghca
