// SPDX-License-Identifier: GPL-2.0-or-later
// The seam between the transport and a function: all that the transport asks of the device that it works for
// (docs/explanation/seam.rst). A function has its own commands, contexts, work queue elements and completions; the
// transport knows none of them.
//
// All calls come from the thread that has called the transport. What a call is given is good until it returns.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "counters.h"
#include "host.h"
#include "port/flow_control.h"
#include "port/port.h"
#include "transport/congestion.h"
#include "transport/qp.h"
#include "transport/types.h"
#include "transport/wqe.h"
#include "wire/drop.h"
#include "wire/link.h"
#include "wire/number.h"
#include "wire/packet.h"
#include "work.h"

namespace hghca {

// The QPs by number.
class QpStore {
public:
    // nullptr: there is no such QP. It stays where it is until the entry into the device ends.
    virtual Qp *find(Qpn qpn) = 0;
    // The number of the QP that serves QP number 1; kNoQpn if QP 1 does not exist.
    virtual Qpn gsi_qpn() const = 0;

protected:
    ~QpStore() = default;
};

enum class [[nodiscard]] Posted : uint8_t { Yes, No, Unreadable };

// What stands behind a WQE of a send queue.
enum class [[nodiscard]] Following : uint8_t {
    Posted,   // another WQE
    None,     // software has posted no more
    Wrong,    // the queue is broken here: its next WQE fails
};

// The send queue of each QP. Its WQEs have free-running indices of 16 bits; the transport keeps the indices
// (RequesterState) and says which WQE it means.
class SendSource {
public:
    // After the end of the queue: has software posted WQE `index` meanwhile?
    virtual Following peek(Qp &qp, uint16_t index, WqeRef &out) = 0;
    // The WQE behind `index`, read now. With None and Wrong out.index is its index all the same.
    virtual Following follow(const Qp &qp, uint16_t index, WqeRef &out) = 0;
    // Reads req.next, of which nothing has been sent in this turn. Keys are not looked at.
    virtual WqeFault load(const Qp &qp, SendWqe &out) = 0;
    // Reads req.oldest, which was good when it was sent, once more.
    virtual WqeFault reload(const Qp &qp, SendWqe &out) = 0;
    // Executes `wqe`, which changes keys.
    virtual Allowed change_keys(const Qp &qp, const SendWqe &wqe) = 0;
    // WQE `index` has succeeded, and asks for a completion.
    virtual Completed complete(const Qp &qp, uint16_t index, const SentWqe &wqe, uint32_t byte_count) = 0;
    // WQE `index` has failed.
    virtual Completed fail(const Qp &qp, uint16_t index, Status status) = 0;

protected:
    ~SendSource() = default;
};

// The receive queue of each QP, be it its own or a shared one.
class RecvSource {
public:
    // Is there a WQE for a message that begins?
    virtual Posted posted(const Qp &qp) = 0;
    // How many messages would find a WQE, that under way among them.
    virtual Counted count(const Qp &qp, uint32_t &out) = 0;
    // Reads the WQE that the QP holds, or the one it would take.
    virtual WqeFault read(const Qp &qp, RecvWqe &out) = 0;
    // The message takes more than one packet: its WQE is this QP's until it completes.
    virtual void hold(Qp &qp) = 0;
    // Completes the WQE held, or the next one.
    virtual Completed complete(Qp &qp, const Received &message) = 0;
    virtual Completed fail(Qp &qp, Status status) = 0;
    // Status::Flushed for all that is posted, until the slice is over.
    virtual Flushed flush(Qp &qp) = 0;
    // XRC: the PD whose keys a request for SRQ `srqn` may use (IBA vol 1, A14.3). None: domain `xrcd` has no such
    // SRQ.
    virtual XrcTarget xrc_target(Srqn srqn, uint32_t xrcd, uint32_t &pd) = 0;

protected:
    ~RecvSource() = default;
};

// Memory by key.
class KeySpace {
public:
    // May `user` use [va, va + length) of `key` for `access`? Length 0 checks the key, the PD and the right, not the
    // bounds.
    virtual Allowed check(Key key, KeyUser user, uint64_t va, uint64_t length, Access access) = 0;
    // check(), and appends the memory itself to `out`. No also when `out` is full. `absent` is set with Absent alone,
    // `out` is undefined with all but Yes.
    virtual Found locate(Key key, KeyUser user, uint64_t va, uint64_t length, Access access, PacketSegments &out,
                         AbsentPage &absent) = 0;
    // Is the region behind `key`, if there is one, paged on demand?
    virtual bool on_demand(Key key) = 0;
    // A SEND with Invalidate of a peer invalidates `key`.
    virtual Allowed invalidate_remotely(KeyUser user, Key key) = 0;

protected:
    ~KeySpace() = default;
};

// Partitions by key. Only PART packets name them: of a function that has no Features::vendor_ops, none is asked for.
class Partitions {
public:
    // Appends the records of a packet to the regions of partition `key`: all of them, or with any outcome but Yes none,
    // unless DMA fails. `left`: bytes of the message from this packet on. `records` is not in memory that others write to.
    virtual Appended append(Key key, KeyUser user, uint32_t left, std::span<const uint8_t> records) = 0;

protected:
    ~Partitions() = default;
};

enum class Side : uint8_t { Requester, Responder };

// What software is told.
class EventSink {
public:
    virtual void post(Event event, const Qp &qp) = 0;
    // A packet is dropped or refused.
    virtual void dropped(const Packet &packet, Drop why, uint64_t now_ns) = 0;
    // Does software bring pages that are absent?
    virtual bool brings_pages() const = 0;
    // Asks software for a page; it names `token` when it has brought it. NoRoom: the event found
    // no room in the EQ.
    virtual PageAsked ask_for_page(const Qp &qp, Side side, uint16_t token, const AbsentPage &absent) = 0;
    // An invariant does not hold, be it one of the transport or a promise of the function: the function fails as a
    // whole. It ends the entry into the device by an exception.
    [[noreturn]] virtual void broken(const char *invariant) = 0;

protected:
    ~EventSink() = default;
};

// Frames that are no packets of the transport. The function finds the QPs that they are for (Transport::deliver_raw).
class RawFrames {
public:
    // A frame from the link. `head` holds the first of its bytes.
    virtual void receive(const FrameView &frame, std::span<const uint8_t> head) = 0;
    // A multicast frame that QP `sender` has sent: for other QPs of this device.
    virtual void receive_own(const FrameView &frame, std::span<const uint8_t> head, Qpn sender) = 0;

protected:
    ~RawFrames() = default;
};

// The way out of the device.
class Outlet {
public:
    // As Host::send_frame().
    virtual FrameSent send_frame(std::span<const iovec> parts, Icrc icrc) = 0;

protected:
    ~Outlet() = default;
};

// Who wants to know of each packet, for counters that the transport does not keep.
class PacketObserver {
public:
    virtual void sent(const Qp &qp, const TransportHeader &h) = 0;
    // A send WQE begins, for the first time.
    virtual void begun(const Qp &qp) = 0;
    // What was sent goes again.
    virtual void went_back(const Qp &qp) = 0;

protected:
    ~PacketObserver() = default;
};

// Who looks at frames from the link before the transport does, and so at those whose wait in a receive buffer is over.
class FrameReceiver {
public:
    virtual void receive_late(const FrameView &frame) = 0;

protected:
    ~FrameReceiver() = default;
};

// What goes again after a loss.
enum class Rewind : uint8_t {
    Packet,    // all from the first packet that is not acknowledged
    Message,   // all from the first packet of the oldest message that is not acknowledged
};

// A function: its parts, all of which outlive the transport, and its constants.
struct Function {
    Host &host;
    Work &work;
    Counters &counters;
    CounterSets &counter_sets;
    const Port &port;
    const Features &features;
    const CongestionControl &control;
    const ReceiveBuffers &receive_buffers;
    Link &link;
    Outlet &outlet;
    QpStore &qps;
    SendSource &sends;
    RecvSource &receives;
    KeySpace &keys;
    Partitions &partitions;
    EventSink &events;
    RawFrames &raw_frames;
    uint32_t qp_count;         // QP numbers are below
    uint64_t pace_grain_ns;    // a QP that its rate holds back waits so long at least
    Rewind rewind;
    PacketObserver *observer = nullptr;   // there need not be one
    FrameReceiver *receiver = nullptr;    // nullptr: the transport
    bool keeps_writes_alone = false;      // the retransmission buffer holds no SEND
    uint32_t timeout_unit_ns = 4096;      // of QpAttributes::ack_timeout (IBA vol 1, 9.7.6.1.3)
};

}  // namespace hghca
