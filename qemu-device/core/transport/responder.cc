// SPDX-License-Identifier: GPL-2.0-or-later
#include "transport/responder.h"

#include <algorithm>
#include <cstring>

#include "byte_order.h"
#include "transport/credits.h"
#include "transport/pointer_search.h"
#include "transport/transport.h"
#include "wire/crc64.h"

namespace hghca {

struct Responder::Refusal {
    uint8_t nak;
    Event event;
    Status status;       // of the receive WQE that the message holds
    Drop why;
};

// IBA vol 1, 9.9.3: the classes of responder errors.
const Responder::Refusal Responder::kInvalidRequest = {
    HGHCA_NAK_INVALID_REQUEST, Event::InvalidRequest, Status::RemoteInvalidRequest, Drop::Request};
const Responder::Refusal Responder::kAccess = {
    HGHCA_NAK_REMOTE_ACCESS, Event::AccessViolation, Status::RemoteAccess, Drop::Access};
const Responder::Refusal Responder::kInvalidate = {
    HGHCA_NAK_REMOTE_ACCESS, Event::None, Status::LocalAccess, Drop::Access};
const Responder::Refusal Responder::kMemory = {
    HGHCA_NAK_REMOTE_OPERATION, Event::None, Status::LocalProtection, Drop::Operation};
const Responder::Refusal Responder::kTooLong = {
    HGHCA_NAK_INVALID_REQUEST, Event::None, Status::LocalLength, Drop::TooLong};
const Responder::Refusal Responder::kBadWqe = {
    HGHCA_NAK_REMOTE_OPERATION, Event::None, Status::LocalOperation, Drop::Operation};
const Responder::Refusal Responder::kOperation = {
    HGHCA_NAK_REMOTE_OPERATION, Event::None, Status::LocalOperation, Drop::Operation};

namespace {

constexpr int32_t kStepsPerTurn = 16;   // of a READ_POINTER or READ_CONSISTENT

// Is there a NAK among the replies? It is the last of them.
bool nak_waits(const ResponderState &s)
{
    if (!s.reply_count)
        return false;
    const ReplyKind last = s.replies[(s.reply_head + s.reply_count - 1u) % s.replies.size()].kind;
    return last == ReplyKind::Nak || last == ReplyKind::RnrNak;
}

}  // namespace

void Responder::receive(Qp &qp, const Packet &packet)
{
    ResponderState &s = qp.resp;
    const uint32_t distance = psn_distance(packet.h.psn, s.expected_psn);
    if (distance) {
        // IBA vol 1, 9.7.4.1.2: half of the PSNs are ahead, half are old.
        if (distance >= kPsnHalf) {
            duplicate(qp, packet);
            return;
        }
        transport_.count(qp, qp_counter::out_of_sequence);
        if (!s.nak_sent) {
            transport_.drop(packet, Drop::Psn);
            push_nak(qp, ReplyKind::Nak, HGHCA_AETH_NAK | HGHCA_NAK_PSN_SEQUENCE);
        }
        return;
    }
    withdraw_nak(qp);
    if (const Drop why = validate(qp, packet); why != Drop::None)
        refuse(qp, packet, kInvalidRequest, why);
    else if (!admit(qp, packet.h))
        refuse(qp, packet, kAccess);
    else if (packet.flags & kSend)
        receive_send(qp, packet);
    else if (packet.flags & kWrite)
        receive_write(qp, packet);
    else if (packet.flags & kPart)
        receive_part(qp, packet);
    else if (packet.flags & kRead)
        receive_read(qp, packet);
    else if (packet.flags & (kPointer | kConsistent))
        receive_search(qp, packet);
    else if (packet.flags & kAtomic)
        receive_atomic(qp, packet);
    else if (packet.flags & kAtomicWrite)
        receive_atomic_write(qp, packet);
    else
        receive_flush(qp, packet);
}

// IBA vol 1, 9.7.4.1.3 to 9.7.4.1.6, as far as the packet and the QP alone tell.
Drop Responder::validate(const Qp &qp, const Packet &packet) const
{
    // Any other is an opcode that this device does not have.
    if (!(packet.flags & (kMessage | kRead | kAtomic | kAtomicWrite | kFlush | kPointer | kConsistent)))
        return Drop::Opcode;
    if (!in_sequence(qp, packet))
        return Drop::Sequence;
    if (!good_length(qp, packet) || (packet.flags & kSend && !packet.payload.length && !transport_.features.empty_sends))
        return !(packet.flags & kLast) && packet.h.pad ? Drop::Pad : Drop::Length;
    return function_allowed(qp, packet.flags) ? Drop::None : Drop::Request;
}

// IBA vol 1, 9.9.3: a request for a function the QP is not set up for is an invalid one, whatever its key.
bool Responder::function_allowed(const Qp &qp, uint32_t flags) const
{
    if (flags & kIeth && !transport_.features.memory_management)
        return false;
    if (flags & kImmDt && !transport_.features.immediates)
        return false;
    if (flags & (kAtomicWrite | kFlush) && !transport_.features.placement)
        return false;
    if (flags & kAtomic && !transport_.features.atomics)
        return false;
    if (flags & kVendor && !qp.a.vendor_ops)
        return false;
    return qp.a.allows(flags & (kWrite | kPart | kAtomicWrite)     ? Access::RemoteWrite
                       : flags & (kRead | kPointer | kConsistent) ? Access::RemoteRead
                       : flags & kAtomic                          ? Access::RemoteAtomic
                       : flags & kFlush                           ? Access::Flush
                                                                  : Access::LocalRead);
}

// IBA vol 1, A14.3: an XRC request uses the keys of the SRQ it names, which is of the target's domain.
bool Responder::admit(const Qp &qp, const TransportHeader &h)
{
    peer_ = peer_of(qp);
    return !qp.a.xrcd || transport_.receives.xrc_target(h.srqn, qp.a.xrcd, peer_.pd) == XrcTarget::Found;
}

namespace {

uint32_t flag_of(MessageKind kind)
{
    switch (kind) {
    case MessageKind::Send:
        return kSend;
    case MessageKind::Write:
        return kWrite;
    case MessageKind::Part:
        return kPart;
    }
    return 0;
}

// IBA vol 1, 9.7.4.1.6: the length of the RETH is what all packets carry. Is this one right, with `left` bytes to come?
bool carries(const Packet &packet, uint32_t left)
{
    const size_t bytes = packet.payload.length;
    return left <= kMaxMessage && (packet.flags & kLast ? bytes == left : bytes < left);
}

}  // namespace

// IBA vol 1, 9.7.4.1.3, 9.7.4.1.4: does the opcode follow the one before?
bool Responder::in_sequence(const Qp &qp, const Packet &packet) const
{
    const ResponderState &s = qp.resp;
    const uint32_t flags = packet.flags;
    if (!s.in_message)
        return flags & kFirst;
    if (qp.a.xrcd && packet.h.srqn != s.xrc_srqn)
        return false;
    return !(flags & kFirst) && flags & flag_of(s.message);
}

// IBA vol 1, 9.7.4.1.6: what each place in a message may carry.
bool Responder::good_length(const Qp &qp, const Packet &packet) const
{
    const size_t bytes = packet.payload.length;
    if (packet.flags & kAtomicWrite)
        return bytes == sizeof(uint64_t) && packet.h.length == bytes;
    if (!(packet.flags & kMessage))
        return bytes == 0;
    if (!(packet.flags & kLast))
        return bytes == qp.a.mtu && !packet.h.pad;
    return bytes <= qp.a.mtu && (bytes || packet.flags & kFirst);
}

void Responder::accept(Qp &qp, const Packet &packet, uint32_t psns)
{
    ResponderState &s = qp.resp;
    PageFaults::satisfied(s.page);
    s.expected_psn = psn_add(s.expected_psn, psns);
    s.in_message = !(packet.flags & kLast);
    if (!(packet.flags & kLast))
        return;
    s.msn = msn_add(s.msn, 1);
    constexpr uint32_t kWrites = kWrite | kPart | kAtomicWrite, kReads = kRead | kFlush | kPointer | kConsistent;
    transport_.count(qp, packet.flags & kSend     ? qp_counter::rx_send_requests
                         : packet.flags & kWrites ? qp_counter::rx_write_requests
                         : packet.flags & kReads  ? qp_counter::rx_read_requests
                                                  : qp_counter::rx_atomic_requests);
}

bool Responder::has_receive_wqe(Qp &qp, const Packet &packet)
{
    switch (transport_.receives.posted(qp)) {
    case Posted::Yes:
        return true;
    case Posted::No:
        transport_.drop(packet, Drop::Rnr);
        push_rnr_nak(qp);
        return false;
    case Posted::Unreadable:
        break;
    }
    transport_.drop(packet, Drop::Operation);
    push_nak(qp, ReplyKind::Nak, HGHCA_AETH_NAK | HGHCA_NAK_REMOTE_OPERATION);
    transport_.events.post(Event::QueueFailed, qp);
    transport_.enter_error(qp, true);
    return false;
}

bool Responder::later(Qp &qp, const AbsentPage &absent)
{
    if (transport_.page_faults.defer(qp, absent) == PageFaults::Outcome::Refused)
        return false;
    push_rnr_nak(qp);
    return true;
}

void Responder::complete(Qp &qp, const Packet &packet, uint64_t byte_count)
{
    Received message{packet.h.opcode, uint32_t(byte_count)};
    message.imm = packet.flags & (kImmDt | kIeth) ? packet.h.imm : 0;
    message.src_qpn = qp.a.remote_qpn;
    message.sl = packet.arrival.sl;
    message.solicited = packet.h.solicited;
    if (transport_.receives.complete(qp, message) == Completed::CqFailed)
        transport_.catastrophe(qp);
}

void Responder::receive_send(Qp &qp, const Packet &packet)
{
    ResponderState &s = qp.resp;
    const uint32_t bytes = uint32_t(packet.payload.length);
    const bool first = packet.flags & kFirst;
    if (first) {
        s.xrc_srqn = packet.h.srqn;
        if (!has_receive_wqe(qp, packet))
            return;
        s.message_offset = 0;
    }
    const WqeFault fault = transport_.receives.read(qp, wqe_);
    const bool fits = fault == WqeFault::None && s.message_offset + bytes <= std::min(wqe_.list.length, kMaxMessage);
    PacketSegments to;
    AbsentPage absent;
    Found found = Found::No;
    if (fits)
        found = wqe_.list.resolve(transport_.keys, wqe_.pd, Access::LocalWrite, s.message_offset, bytes, to, absent);
    if (found == Found::Absent && later(qp, absent))
        return;
    // From here on the message has its WQE, for better or worse.
    if (first) {
        s.message = MessageKind::Send;
        s.in_message = true;
        transport_.receives.hold(qp);
    }
    if (fault != WqeFault::None) {
        if (fault == WqeFault::Unreadable)
            transport_.events.post(Event::QueueFailed, qp);
        refuse(qp, packet, kBadWqe);
        return;
    }
    // IBA vol 1, 9.7.4.1.6: too long for the receive buffer.
    if (!fits) {
        refuse(qp, packet, kTooLong);
        return;
    }
    if (found != Found::Yes || !transport_.scatter(packet.payload, 0, to)) {
        refuse(qp, packet, kMemory);
        return;
    }
    if (packet.flags & kIeth &&
        transport_.keys.invalidate_remotely(peer_, Key(be32(packet.h.imm))) == Allowed::No) {
        refuse(qp, packet, kInvalidate);
        return;
    }
    s.message_offset += bytes;
    accept(qp, packet, 1);
    s.ack_due |= packet.h.ack_request;
    transport_.schedule(qp);
    if (packet.flags & kLast)
        complete(qp, packet, s.message_offset);
}

void Responder::receive_write(Qp &qp, const Packet &packet)
{
    ResponderState &s = qp.resp;
    KeySpace &keys = transport_.keys;
    const uint32_t bytes = uint32_t(packet.payload.length);
    const bool first = packet.flags & kFirst;
    const uint32_t left = first ? packet.h.length : s.write_left;
    if (!carries(packet, left)) {
        refuse(qp, packet, kInvalidRequest, Drop::Length);
        return;
    }
    if (first) {
        s.xrc_srqn = packet.h.srqn;
        // IBA vol 1, 9.7.4.1.5: all of the range is checked first; nobody looks
        // at the key of a message of no bytes.
        if (left && keys.check(packet.h.rkey, peer_, packet.h.va, left, Access::RemoteWrite) == Allowed::No) {
            refuse(qp, packet, kAccess);
            return;
        }
    }
    // IBA vol 1, 9.7.5.2.8: a WRITE that needs a receive WQE finds it before its data is placed.
    if (packet.flags & kImmDt && !has_receive_wqe(qp, packet))
        return;
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
        found = keys.locate(s.write_rkey, peer_, s.write_va, bytes, Access::RemoteWrite, to, absent);
    if (found == Found::Absent) {
        absent.length += s.write_left - bytes;
        if (later(qp, absent))
            return;
    }
    if (found != Found::Yes || !transport_.scatter(packet.payload, 0, to)) {
        refuse(qp, packet, kAccess);
        return;
    }
    s.message_offset += bytes;
    s.write_va += bytes;
    s.write_left -= bytes;
    accept(qp, packet, 1);
    s.ack_due |= packet.h.ack_request;
    transport_.schedule(qp);
    if (packet.flags & kImmDt)
        complete(qp, packet, s.message_offset);
}

// A packet is executed as a whole or not at all, unless DMA fails. It goes on as a WRITE does.
void Responder::receive_part(Qp &qp, const Packet &packet)
{
    ResponderState &s = qp.resp;
    const uint32_t bytes = uint32_t(packet.payload.length);
    const bool first = packet.flags & kFirst;
    const uint32_t left = first ? packet.h.length : s.write_left;
    if (!carries(packet, left)) {
        refuse(qp, packet, kInvalidRequest, Drop::Length);
        return;
    }
    const Key key = first ? packet.h.rkey : s.write_rkey;
    if (bytes) {
        transport_.require(bytes <= copy_.size(), "the payload of a packet is an MTU at most");
        packet.payload.copy(0, copy_.data(), bytes);
        switch (transport_.partitions.append(key, peer_, left, {copy_.data(), bytes})) {
        case Appended::Yes:
            break;
        case Appended::Length:
            refuse(qp, packet, kInvalidRequest, Drop::Length);
            return;
        case Appended::Access:
            refuse(qp, packet, kAccess);
            return;
        case Appended::Full:
            refuse(qp, packet, kOperation);
            return;
        }
    }
    s.message = MessageKind::Part;
    s.message_offset = first ? bytes : s.message_offset + bytes;
    s.write_rkey = key;
    s.write_left = left - bytes;
    accept(qp, packet, 1);
    s.ack_due |= packet.h.ack_request;
    transport_.schedule(qp);
}

// IBA vol 1, 9.7.4.1.8: no more at a time than was agreed. No NAK waits among the replies when a request is executed. A
// duplicate that came late does not count: the requester may have had its answer.
bool Responder::room_for_read(const Qp &qp) const
{
    const ResponderState &s = qp.resp;
    unsigned due = 0;
    for (uint8_t i = 0; i < s.reply_count; i++)
        due += !s.replies[(s.reply_head + i) % s.replies.size()].asked_again;
    return due < qp.a.max_dest_rd_atomic;
}

void Responder::receive_read(Qp &qp, const Packet &packet)
{
    ResponderState &s = qp.resp;
    const TransportHeader &h = packet.h;
    if (h.length > kMaxMessage || !room_for_read(qp)) {
        refuse(qp, packet, kInvalidRequest);
        return;
    }
    if (h.length && transport_.keys.check(h.rkey, peer_, h.va, h.length, Access::RemoteRead) == Allowed::No) {
        refuse(qp, packet, kAccess);
        return;
    }
    // What its answer begins with must be there, so that nothing behind it is executed before. The rest is
    // seen in its turn.
    if (h.length && transport_.keys.on_demand(h.rkey)) {
        PacketSegments from;
        AbsentPage absent;
        const uint32_t bytes = std::min(h.length, qp.a.mtu);
        const Found found = transport_.keys.locate(h.rkey, peer_, h.va, bytes, Access::RemoteRead, from, absent);
        if (found == Found::Absent) {
            absent.length += h.length - bytes;
            if (later(qp, absent))
                return;
        }
        if (found != Found::Yes) {
            refuse(qp, packet, kAccess);
            return;
        }
    }
    const Psn psn = s.expected_psn;
    const uint32_t psns = std::max(1u, uint32_t((uint64_t(h.length) + qp.a.mtu - 1) / qp.a.mtu));
    accept(qp, packet, psns);
    push(qp, {ReplyKind::Read, HGHCA_AETH_ACK, psn, s.msn, h.rkey, h.va, h.length,
              peer_.pd, 0, true});
}

bool Responder::good_search(const Qp &qp, const Packet &packet)
{
    const TransportHeader &h = packet.h;
    if (h.length > qp.a.mtu)
        return false;
    return packet.flags & kPointer ? h.length && is_search(h.search) : h.length > kObjectCrcBytes;
}

namespace {

Reply reply_to_search(const Packet &packet, Psn psn, Msn msn, uint32_t pd)
{
    const TransportHeader &h = packet.h;
    const ReplyKind kind = packet.flags & kPointer ? ReplyKind::Pointer : ReplyKind::Consistent;
    return {kind, HGHCA_AETH_ACK, psn, msn, h.rkey, h.va, h.length, pd, h.pointer_key, true, false, 0, h.search};
}

// The first bytes that it reads. A list may be empty: it begins at address 0.
uint32_t first_bytes(const Packet &packet)
{
    if (packet.flags & kConsistent)
        return packet.h.length;
    return packet.h.va ? kElementBytes : 0;
}

}  // namespace

// What can be told at once is told before anything behind it is executed. The rest is seen in its turn.
void Responder::receive_search(Qp &qp, const Packet &packet)
{
    ResponderState &s = qp.resp;
    const TransportHeader &h = packet.h;
    if (!good_search(qp, packet) || !room_for_read(qp)) {
        refuse(qp, packet, kInvalidRequest);
        return;
    }
    const uint32_t bytes = first_bytes(packet);
    if (bytes && transport_.keys.check(h.rkey, peer_, h.va, bytes, Access::RemoteRead) == Allowed::No) {
        refuse(qp, packet, kAccess);
        return;
    }
    const Psn psn = s.expected_psn;
    accept(qp, packet, 1);
    push(qp, reply_to_search(packet, psn, s.msn, peer_.pd));
}

namespace {

// Atomic for the CPUs of the guest too; the word as it was.
uint64_t atomically(const TransportHeader &h, uint64_t *word)
{
    if ((h.opcode & HGHCA_BTH_OP_MASK) == HGHCA_BTH_OP_COMPARE_SWAP) {
        uint64_t old = le64(h.compare);
        __atomic_compare_exchange_n(word, &old, le64(h.swap_add), false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        return le64(old);
    }
    // One instruction: a guest that keeps on writing there does not hold the device up.
    if constexpr (std::endian::native == std::endian::little)
        return __atomic_fetch_add(word, h.swap_add, __ATOMIC_SEQ_CST);
    uint64_t old = __atomic_load_n(word, __ATOMIC_SEQ_CST);
    while (!__atomic_compare_exchange_n(word, &old, le64(le64(old) + h.swap_add), true, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST))
        ;
    return le64(old);
}

}  // namespace

// Calls `change` with the eight bytes, where they are: what is done there is atomic for all who use them. A region may
// begin anywhere, so that an address of it that is a multiple of 8 need not be one in memory.
template <class F>
bool Responder::update(const Segment &at, F &change)
{
    Host &host = transport_.host;
    if (at.dma % sizeof(uint64_t))
        return false;
    if (!at.pointer)
        return host.update(at.dma, [](uint64_t *word, void *context) { (*static_cast<F *>(context))(word); }, &change);
    change(reinterpret_cast<uint64_t *>(at.pointer));
    host.dirty(at.dma, sizeof(uint64_t));
    return true;
}

bool Responder::execute_atomic(const Packet &packet, const Segment &at, uint64_t &original)
{
    auto change = [&](uint64_t *word) { original = atomically(packet.h, word); };
    return update(at, change);
}

void Responder::receive_atomic(Qp &qp, const Packet &packet)
{
    ResponderState &s = qp.resp;
    const TransportHeader &h = packet.h;
    // IBA vol 1, 9.4.5: aligned to eight bytes.
    if (h.va % 8 || !room_for_read(qp)) {
        refuse(qp, packet, kInvalidRequest);
        return;
    }
    PacketSegments at;
    AbsentPage absent;
    uint64_t original = 0;
    const Found found = transport_.keys.locate(h.rkey, peer_, h.va, sizeof(original), Access::RemoteAtomic, at, absent);
    if (found == Found::Absent && later(qp, absent))
        return;
    if (found != Found::Yes || at.size() != 1 || !execute_atomic(packet, at[0], original)) {
        refuse(qp, packet, kAccess);
        return;
    }
    const Psn psn = s.expected_psn;
    accept(qp, packet, 1);
    s.atomics[s.atomic_head] = {psn, true, original};
    s.atomic_head = uint8_t((s.atomic_head + 1) % s.atomics.size());
    push(qp, {ReplyKind::Atomic, HGHCA_AETH_ACK, psn, s.msn, {}, 0, 0, 0, original, true});
}

// ---- memory placement extensions (IBA vol 1, A19)

void Responder::answer_empty(Qp &qp, const Packet &packet)
{
    const Psn psn = qp.resp.expected_psn;
    accept(qp, packet, 1);
    push(qp, {ReplyKind::Read, HGHCA_AETH_ACK, psn, qp.resp.msn, {}, 0, 0, 0, 0, true});
}

// No CPU of the guest sees a part of the eight bytes.
bool Responder::store_atomically(const Packet &packet, const Segment &at)
{
    uint64_t value;
    packet.payload.copy(0, &value, sizeof(value));
    auto change = [value](uint64_t *word) { __atomic_store_n(word, value, __ATOMIC_RELEASE); };
    return update(at, change);
}

void Responder::receive_atomic_write(Qp &qp, const Packet &packet)
{
    const TransportHeader &h = packet.h;
    if (h.va % 8 || !room_for_read(qp)) {
        refuse(qp, packet, kInvalidRequest);
        return;
    }
    PacketSegments at;
    AbsentPage absent;
    const Found found = transport_.keys.locate(h.rkey, peer_, h.va, sizeof(uint64_t), Access::RemoteWrite, at, absent);
    if (found == Found::Absent && later(qp, absent))
        return;
    if (found != Found::Yes || at.size() != 1 || !store_atomically(packet, at[0])) {
        refuse(qp, packet, kAccess);
        return;
    }
    answer_empty(qp, packet);
}

// All that came before is in memory, where everybody sees it: there is nothing left to do but to say so.
void Responder::receive_flush(Qp &qp, const Packet &packet)
{
    const TransportHeader &h = packet.h;
    const uint32_t type = field_get(kFlushTypeMask, h.flush);
    const uint32_t selectivity = field_get(kFlushSelectivityMask, h.flush);
    if (!type || selectivity > kFlushRegion || h.length > kMaxMessage || !room_for_read(qp)) {
        refuse(qp, packet, kInvalidRequest);
        return;
    }
    const uint32_t length = selectivity == kFlushRange ? h.length : 0;
    // Nothing here is persistent.
    if (type != kFlushGlobal || transport_.keys.check(h.rkey, peer_, h.va, length, Access::Flush) == Allowed::No) {
        refuse(qp, packet, kAccess);
        return;
    }
    answer_empty(qp, packet);
}

// ---- duplicates (IBA vol 1, 9.7.5.1.4 and 9.7.5.1.5)

void Responder::duplicate(Qp &qp, const Packet &packet)
{
    transport_.count(qp, qp_counter::duplicate_request);
    if (!admit(qp, packet.h))
        return;   // not what was asked for before
    if (packet.flags & kRead) {
        duplicate_read(qp, packet);
    } else if (packet.flags & (kPointer | kConsistent)) {
        duplicate_search(qp, packet);
    } else if (packet.flags & (kAtomicWrite | kFlush)) {
        // Executed before, and not again.
        answer_again(qp, {ReplyKind::Read, HGHCA_AETH_ACK, packet.h.psn, qp.resp.msn, packet.h.rkey, packet.h.va, 0,
                          peer_.pd, 0, true, true});
    } else if (packet.flags & kAtomic) {
        duplicate_atomic(qp, packet);
    } else if (packet.flags & kMessage) {
        // Not executed again. The ACK is for all that was executed.
        qp.resp.ack_due = true;
        transport_.schedule(qp);
    }
}

// A READ may be asked for again from its middle on.
void Responder::duplicate_read(Qp &qp, const Packet &packet)
{
    const TransportHeader &h = packet.h;
    if (h.length > kMaxMessage || packet.payload.length || !qp.a.allows(Access::RemoteRead) ||
        (h.length && transport_.keys.check(h.rkey, peer_, h.va, h.length, Access::RemoteRead) == Allowed::No))
        return;
    answer_again(qp, {ReplyKind::Read, HGHCA_AETH_ACK, h.psn, qp.resp.msn, h.rkey, h.va, h.length, peer_.pd, 0, true,
                      true});
}

// All of it again: what was found the first time is not kept.
void Responder::duplicate_search(Qp &qp, const Packet &packet)
{
    if (packet.payload.length || !function_allowed(qp, packet.flags) || !good_search(qp, packet))
        return;
    Reply again = reply_to_search(packet, packet.h.psn, qp.resp.msn, peer_.pd);
    again.asked_again = true;
    answer_again(qp, again);
}

void Responder::answer_again(Qp &qp, const Reply &again)
{
    ResponderState &s = qp.resp;
    const Psn psn = again.psn;
    const uint32_t psns = std::max(1u, uint32_t((uint64_t(again.length) + qp.a.mtu - 1) / qp.a.mtu));
    const Psn end_psn = psn_add(psn, psns);
    if (psn_distance(s.expected_psn, psn) < psns)
        return;   // reaches beyond what was requested before: not a duplicate of anything

    for (uint8_t i = 0; i < s.reply_count; i++) {
        Reply &due = s.replies[(s.reply_head + i) % s.replies.size()];
        if (is_read_response(due.kind)) {
            const uint32_t left = std::max(1u, uint32_t((uint64_t(due.length) + qp.a.mtu - 1) / qp.a.mtu));
            if (psn_add(due.psn, left) == end_psn) {
                // The same READ, not yet sent to its end: at most, start over.
                if (psn_distance(end_psn, psn) > left) {
                    const bool asked_again = due.asked_again;
                    due = again;
                    due.asked_again = asked_again;
                }
                return;
            }
        }
        if (psn_distance(due.psn, psn) < kPsnHalf) {
            // Older than what is due from here on. The requester went back and will
            // ask for that again too; answered now it would come before its turn.
            drop_replies(qp, i);
            break;
        }
    }
    push(qp, again);
}

void Responder::duplicate_atomic(Qp &qp, const Packet &packet)
{
    ResponderState &s = qp.resp;
    const Psn psn = packet.h.psn;
    for (uint8_t i = 0; i < s.reply_count; i++) {
        const Reply &due = s.replies[(s.reply_head + i) % s.replies.size()];
        if (due.kind == ReplyKind::Atomic && due.psn == psn)
            return;
        if (psn_distance(due.psn, psn) < kPsnHalf) {
            drop_replies(qp, i);
            break;
        }
    }
    // The youngest first: another one may have had that PSN before the PSNs wrapped.
    const size_t depth = s.atomics.size();
    for (size_t n = 1; n <= depth; n++) {
        const AtomicResult &result = s.atomics[(s.atomic_head + depth - n) % depth];
        if (result.valid && result.psn == psn) {
            push(qp, {ReplyKind::Atomic, HGHCA_AETH_ACK, psn, s.msn, {}, 0, 0, 0, result.value, true, true});
            return;
        }
    }
}

// ---- replies

// One for which there is no room, behind duplicates, is lost as on the link: the requester asks again.
void Responder::push(Qp &qp, const Reply &reply)
{
    ResponderState &s = qp.resp;
    if (s.reply_count < s.replies.size())
        s.replies[(s.reply_head + s.reply_count++) % s.replies.size()] = reply;
    transport_.schedule(qp);
}

void Responder::drop_replies(Qp &qp, uint8_t from)
{
    ResponderState &s = qp.resp;
    s.nak_sent = s.nak_sent && !nak_waits(s);
    s.reply_count = from;
}

// The packet that a NAK asks for is here: one that has not gone yet would be too late, and would stand in the way
// of replies.
void Responder::withdraw_nak(Qp &qp)
{
    ResponderState &s = qp.resp;
    s.nak_sent = false;
    if (!nak_waits(s))
        return;
    s.reply_count--;
    // It would have acknowledged what came before it.
    s.ack_due = true;
}

// For expected_psn. Acknowledges all before it, and is the last word until that arrives.
void Responder::push_nak(Qp &qp, ReplyKind kind, uint8_t syndrome)
{
    ResponderState &s = qp.resp;
    s.nak_sent = true;
    s.ack_due = false;
    push(qp, {kind, syndrome, s.expected_psn, s.msn, {}, 0, 0, 0, 0, true});
}

void Responder::push_rnr_nak(Qp &qp)
{
    transport_.count(qp, qp_counter::rnr_nak_sent);
    push_nak(qp, ReplyKind::RnrNak, uint8_t(HGHCA_AETH_RNR_NAK | qp.a.min_rnr_timer));
}

void Responder::count_nak(const Qp &qp, uint8_t nak)
{
    if (nak == HGHCA_NAK_INVALID_REQUEST)
        transport_.count(qp, qp_counter::remote_invalid_nak_sent);
    else if (nak == HGHCA_NAK_REMOTE_ACCESS)
        transport_.count(qp, qp_counter::remote_access_nak_sent);
}

// The message cannot be executed: NAK, event, receive WQE, and the QP is in error.
void Responder::refuse(Qp &qp, const Packet &packet, const Refusal &refusal)
{
    refuse(qp, packet, refusal, refusal.why);
}

void Responder::refuse(Qp &qp, const Packet &packet, const Refusal &refusal, Drop why)
{
    ResponderState &s = qp.resp;
    transport_.drop(packet, why);
    count_nak(qp, refusal.nak);
    push_nak(qp, ReplyKind::Nak, uint8_t(HGHCA_AETH_NAK | refusal.nak));
    const bool holds_wqe = s.in_message && s.message == MessageKind::Send;
    if (holds_wqe && transport_.receives.fail(qp, refusal.status) == Completed::CqFailed) {
        transport_.catastrophe(qp);
        return;
    }
    if (refusal.event != Event::None)
        transport_.events.post(refusal.event, qp);
    transport_.enter_error(qp, true);
}

bool Responder::may_reply(const Qp &qp)
{
    const ResponderState &s = qp.resp;
    if (!s.reply_count)
        return s.ack_due;
    return !is_read_response(s.replies[s.reply_head].kind) || qp.pace.phase != Pace::Phase::Held;
}

Turn Responder::run(Qp &qp, int32_t &credit)
{
    while (transport_.goes_on(credit)) {
        Turn turn = Turn::Idle;
        if (qp.resp.reply_count) {
            const Reply &reply = qp.resp.replies[qp.resp.reply_head];
            if (!is_read_response(reply.kind))
                turn = send_reply(qp, credit);
            else if (!transport_.pacer.holds(qp, qp.a.path))
                turn = reply.kind == ReplyKind::Read      ? send_read(qp, credit)
                       : reply.kind == ReplyKind::Pointer ? search(qp, credit)
                                                          : read_consistent(qp, credit);
        } else if (qp.resp.ack_due) {
            turn = send_ack(qp, credit);
        }
        if (turn != Turn::More)
            return turn;
    }
    return due(qp) ? Turn::More : Turn::Idle;
}

void Responder::acknowledge_last(Qp &qp)
{
    int32_t credit = 0;
    // If the link is full, the ACK is lost, as a packet on the way may be.
    if (qp.resp.ack_due && !qp.resp.reply_count)
        (void)send_ack(qp, credit);
}

TransportHeader Responder::reply_header(const Qp &qp, uint8_t opcode, Psn psn) const
{
    TransportHeader h{};
    h.opcode = uint8_t(bth_service(qp.a.service) | opcode);
    h.pkey = transport_.pkey_of(qp);
    h.qpn = qp.a.remote_qpn;
    h.psn = psn;
    h.syndrome = uint8_t(HGHCA_AETH_ACK | credits(qp));
    return h;
}

// IBA vol 1, 9.7.7.2: how many more messages find a receive WQE, by what is posted now.
uint8_t Responder::credits(const Qp &qp) const
{
    uint32_t posted;
    if (transport_.receives.count(qp, posted) == Counted::Unknown)
        return HGHCA_AETH_CREDIT_UNLIMITED;
    const auto above = std::upper_bound(std::begin(kCredits), std::end(kCredits), posted);
    return uint8_t(above - std::begin(kCredits) - 1);
}

// In each of these the state moves before the packet: see Requester::send().

Turn Responder::send_ack(Qp &qp, int32_t &credit)
{
    ResponderState &s = qp.resp;
    TransportHeader h = reply_header(qp, HGHCA_BTH_OP_ACK, psn_before(s.expected_psn));
    h.msn = s.msn;
    s.ack_due = false;
    if (transport_.send_packet(qp, transport_.route_of(qp), h, {}, 0) == Sent::Blocked) {
        s.ack_due = true;
        return Turn::Blocked;
    }
    credit -= kMaxHeader;
    return Turn::More;
}

Turn Responder::send_reply(Qp &qp, int32_t &credit)
{
    ResponderState &s = qp.resp;
    const Reply &reply = s.replies[s.reply_head];
    TransportHeader h = reply_header(
        qp, reply.kind == ReplyKind::Atomic ? HGHCA_BTH_OP_ATOMIC_ACK : HGHCA_BTH_OP_ACK, reply.psn);
    if (reply.kind != ReplyKind::Atomic)
        h.syndrome = reply.syndrome;
    h.msn = reply.msn;
    h.original = reply.value;
    const uint8_t head = s.reply_head, count = s.reply_count;
    s.reply_head = uint8_t((head + 1) % s.replies.size());
    s.reply_count--;
    if (transport_.send_packet(qp, transport_.route_of(qp), h, {}, 0) == Sent::Blocked) {
        s.reply_head = head;
        s.reply_count = count;
        return Turn::Blocked;
    }
    credit -= kMaxHeader;
    return Turn::More;
}

Turn Responder::send_read(Qp &qp, int32_t &credit)
{
    ResponderState &s = qp.resp;
    Reply &reply = s.replies[s.reply_head];
    const uint32_t bytes = std::min(reply.length, qp.a.mtu);
    const bool last = reply.length <= qp.a.mtu;
    const uint8_t opcode = last ? (reply.first ? HGHCA_BTH_OP_READ_RESPONSE_ONLY : HGHCA_BTH_OP_READ_RESPONSE_LAST)
                                : (reply.first ? HGHCA_BTH_OP_READ_RESPONSE_FIRST : HGHCA_BTH_OP_READ_RESPONSE_MIDDLE);
    TransportHeader h = reply_header(qp, opcode, reply.psn);
    h.msn = reply.msn;

    PacketSegments payload;
    AbsentPage absent;
    Found found = Found::Yes;
    if (bytes)
        found = transport_.keys.locate(reply.rkey, {reply.pd, qp.a.qpn}, reply.va, bytes, Access::RemoteRead, payload,
                                       absent);
    // A QP in error takes no request again.
    if (found == Found::Absent && qp.state != QpState::Error) {
        absent.length += reply.length - bytes;
        if (transport_.page_faults.defer(qp, absent) == PageFaults::Outcome::Waits) {
            // In the place of the answer. What is due behind it is asked for again as well, and an ACK would
            // tell of an answer lost.
            s.reply_count = 0;
            s.ack_due = false;
            transport_.count(qp, qp_counter::rnr_nak_sent);
            push(qp, {ReplyKind::RnrNak, uint8_t(HGHCA_AETH_RNR_NAK | qp.a.min_rnr_timer), h.psn, h.msn, {}, 0, 0, 0,
                      0, true});
            return Turn::More;
        }
    }
    Sent sent = Sent::Unreadable;
    if (found == Found::Yes) {
        const Reply before = reply;
        const uint8_t head = s.reply_head, count = s.reply_count;
        reply.psn = psn_add(reply.psn, 1);
        reply.va += bytes;
        reply.length -= bytes;
        reply.first = false;
        if (last) {
            s.reply_head = uint8_t((head + 1) % s.replies.size());
            s.reply_count--;
        }
        Route *route = transport_.route_of(qp);
        sent = transport_.send_packet(qp, route, h, payload, bytes);
        if (sent == Sent::Yes) {
            transport_.pacer.sent(qp, qp.a.path, route);
        } else {
            s.replies[head] = before;
            s.reply_head = head;
            s.reply_count = count;
        }
    }
    if (sent == Sent::Blocked)
        return Turn::Blocked;
    if (sent == Sent::Unreadable && reply.asked_again &&
        transport_.keys.check(reply.rkey, {reply.pd, qp.a.qpn}, reply.va, bytes, Access::RemoteRead) == Allowed::No) {
        // A duplicate that came late: the peer may have had its answer, and done with the key. As when it had come
        // later still, nobody is told.
        pop(qp);
        return Turn::More;
    }
    if (sent == Sent::Unreadable) {
        // IBA vol 1, 9.7.4.1.5: the region has gone since the request was checked.
        nak_in_place(qp, h.psn, h.msn, kAccess);
        return Turn::More;
    }
    credit -= Transport::cost_of(transport_.route_of(qp), bytes);
    return Turn::More;
}

// In the place of the response that is next; nothing after it.
void Responder::nak_in_place(Qp &qp, Psn psn, Msn msn, const Refusal &refusal)
{
    qp.resp.reply_count = 0;
    // An ACK would be for what the NAK refuses, too.
    qp.resp.ack_due = false;
    count_nak(qp, refusal.nak);
    push(qp, {ReplyKind::Nak, uint8_t(HGHCA_AETH_NAK | refusal.nak), psn, msn, {}, 0, 0, 0, 0, true});
    if (qp.state == QpState::Error)
        return;
    if (refusal.event != Event::None)
        transport_.events.post(refusal.event, qp);
    transport_.enter_error(qp, true);
}

void Responder::pop(Qp &qp)
{
    ResponderState &s = qp.resp;
    s.reply_head = uint8_t((s.reply_head + 1) % s.replies.size());
    s.reply_count--;
}

// ---- READ_POINTER and READ_CONSISTENT (docs/reference/rsnic.rst, 9.3 and 9.4)

bool Responder::searches(const Qp &qp)
{
    const ResponderState &s = qp.resp;
    const ReplyKind kind = s.replies[s.reply_head].kind;
    return s.reply_count && (kind == ReplyKind::Pointer || kind == ReplyKind::Consistent);
}

// A step that sends nothing costs credit all the same. One a turn would let a search on a busy device take longer than
// its requester waits.
Turn Responder::take_step(Reply &reply, int32_t &credit)
{
    reply.steps++;
    credit -= Scheduler::kQuantumBytes / kStepsPerTurn;
    return Turn::More;
}

bool Responder::read(const Qp &qp, const Reply &reply, uint64_t va, uint32_t bytes)
{
    transport_.require(bytes <= copy_.size(), "what a READ response of one packet brings is an MTU at most");
    transport_.work.add();
    PacketSegments from;
    AbsentPage absent;
    return transport_.keys.locate(reply.rkey, {reply.pd, qp.a.qpn}, va, bytes, Access::RemoteRead, from, absent) ==
               Found::Yes &&
           transport_.gather(from, copy_.data(), copy_.size());
}

// One element. All that is sent is read once: what the response brings is a copy in copy_.
Turn Responder::search(Qp &qp, int32_t &credit)
{
    Reply &reply = qp.resp.replies[qp.resp.reply_head];
    SearchStep step{SearchStep::What::End, 0};
    if (reply.va) {
        Element element;
        if (!read(qp, reply, reply.va, kElementBytes))
            return refuse_reply(qp, kAccess);
        std::copy_n(copy_.begin(), element.size(), element.begin());
        step = look_at(element, reply.value, reply.search);
    }
    switch (step.what) {
    case SearchStep::What::Found: {
        if (!read(qp, reply, step.va, reply.length))
            return refuse_reply(qp, kAccess);
        PacketSegments payload;
        transport_.require(payload.push({copy_.data(), 0, reply.length}), "a list takes one segment");
        return send_only(qp, payload, reply.length, credit);
    }
    case SearchStep::What::End:
        return send_only(qp, {}, 0, credit);
    case SearchStep::What::Invalid:
        return refuse_reply(qp, kInvalidRequest);
    case SearchStep::What::Next:
        break;
    }
    if (reply.steps + 1u >= kMaxElements)
        return refuse_reply(qp, kOperation);
    reply.va = step.va;
    return take_step(reply, credit);
}

// One try. What is sent is the copy that has been found good.
Turn Responder::read_consistent(Qp &qp, int32_t &credit)
{
    Reply &reply = qp.resp.replies[qp.resp.reply_head];
    if (!read(qp, reply, reply.va, reply.length))
        return refuse_reply(qp, kAccess);
    const uint32_t bytes = reply.length - kObjectCrcBytes;
    uint64_t crc;
    std::memcpy(&crc, &copy_[bytes], sizeof(crc));
    if (le64(crc) == crc64(copy_.data(), bytes)) {
        PacketSegments payload;
        transport_.require(payload.push({copy_.data(), 0, reply.length}), "a list takes one segment");
        return send_only(qp, payload, reply.length, credit);
    }
    if (reply.steps + 1u >= kMaxTries)
        return refuse_reply(qp, kOperation);
    return take_step(reply, credit);
}

// `payload` is of this device: it can be read.
Turn Responder::send_only(Qp &qp, const PacketSegments &payload, uint32_t bytes, int32_t &credit)
{
    ResponderState &s = qp.resp;
    const uint8_t head = s.reply_head, count = s.reply_count;
    TransportHeader h = reply_header(qp, HGHCA_BTH_OP_READ_RESPONSE_ONLY, s.replies[head].psn);
    h.msn = s.replies[head].msn;
    pop(qp);
    Route *route = transport_.route_of(qp);
    if (transport_.send_packet(qp, route, h, payload, bytes) != Sent::Yes) {
        s.reply_head = head;
        s.reply_count = count;
        return Turn::Blocked;
    }
    transport_.pacer.sent(qp, qp.a.path, route);
    credit -= Transport::cost_of(route, bytes);
    return Turn::More;
}

// A duplicate may have come late, when the peer had its answer and had done with the memory: as when it had come later
// still, nobody is told.
Turn Responder::refuse_reply(Qp &qp, const Refusal &refusal)
{
    const Reply reply = qp.resp.replies[qp.resp.reply_head];
    if (reply.asked_again)
        pop(qp);
    else
        nak_in_place(qp, reply.psn, reply.msn, refusal);
    return Turn::More;
}

}  // namespace hghca
