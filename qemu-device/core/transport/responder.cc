// SPDX-License-Identifier: GPL-2.0-or-later
#include "transport/responder.h"

#include <algorithm>

#include "byte_order.h"
#include "transport/transport.h"

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

namespace {

constexpr uint32_t kCredits[] = HGHCA_AETH_CREDITS;

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
    else if (packet.flags & kRead)
        receive_read(qp, packet);
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
    if (!(packet.flags & (kSend | kWrite | kRead | kAtomic | kAtomicWrite | kFlush)))
        return Drop::Opcode;
    if (!in_sequence(qp, packet))
        return Drop::Sequence;
    if (!good_length(qp, packet))
        return !(packet.flags & kLast) && packet.h.pad ? Drop::Pad : Drop::Length;
    return function_allowed(qp, packet.flags) ? Drop::None : Drop::Request;
}

// IBA vol 1, 9.9.3: a request for a function the QP is not set up for is an invalid one, whatever its key.
bool Responder::function_allowed(const Qp &qp, uint32_t flags) const
{
    if (flags & kIeth && !transport_.features.memory_management)
        return false;
    if (flags & (kAtomicWrite | kFlush) && !transport_.features.placement)
        return false;
    if (flags & kAtomic && !transport_.features.atomics)
        return false;
    return qp.a.allows(flags & (kWrite | kAtomicWrite) ? Access::RemoteWrite
                       : flags & kRead                 ? Access::RemoteRead
                       : flags & kAtomic               ? Access::RemoteAtomic
                       : flags & kFlush                ? Access::Flush
                                                       : Access::LocalRead);
}

// IBA vol 1, A14.3: an XRC request uses the keys of the SRQ it names, which is of the target's domain.
bool Responder::admit(const Qp &qp, const TransportHeader &h)
{
    peer_ = peer_of(qp);
    return !qp.a.xrcd || transport_.receives.xrc_target(h.srqn, qp.a.xrcd, peer_.pd) == XrcTarget::Found;
}

// IBA vol 1, 9.7.4.1.3, 9.7.4.1.4: does the opcode follow the one before?
bool Responder::in_sequence(const Qp &qp, const Packet &packet) const
{
    const ResponderState &s = qp.resp;
    const uint32_t flags = packet.flags;
    if (!s.in_message)
        return flags & kFirst;
    if (qp.a.xrcd && packet.h.srqn != s.xrc_srqn)
        return false;
    return !(flags & kFirst) && flags & (s.message_is_write ? kWrite : kSend);
}

// IBA vol 1, 9.7.4.1.6: what each place in a message may carry.
bool Responder::good_length(const Qp &qp, const Packet &packet) const
{
    const size_t bytes = packet.payload.length;
    if (packet.flags & kAtomicWrite)
        return bytes == sizeof(uint64_t) && packet.h.length == bytes;
    if (!(packet.flags & (kSend | kWrite)))
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
    transport_.count(qp, packet.flags & kSend                     ? qp_counter::rx_send_requests
                         : packet.flags & (kWrite | kAtomicWrite) ? qp_counter::rx_write_requests
                         : packet.flags & (kRead | kFlush)        ? qp_counter::rx_read_requests
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
        s.message_is_write = false;
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
    const bool first = packet.flags & kFirst, last = packet.flags & kLast;
    const uint32_t left = first ? packet.h.length : s.write_left;
    // IBA vol 1, 9.7.4.1.6: the length of the RETH is what all packets carry.
    if (left > kMaxMessage || (last ? bytes != left : bytes >= left)) {
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
        s.message_is_write = true;
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
    } else if (packet.flags & (kAtomicWrite | kFlush)) {
        // Executed before, and not again.
        answer_again(qp, packet.h, 0);
    } else if (packet.flags & kAtomic) {
        duplicate_atomic(qp, packet);
    } else if (packet.flags & (kSend | kWrite)) {
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
    answer_again(qp, h, h.length);
}

void Responder::answer_again(Qp &qp, const TransportHeader &h, uint32_t length)
{
    ResponderState &s = qp.resp;
    const uint32_t psns = std::max(1u, uint32_t((uint64_t(length) + qp.a.mtu - 1) / qp.a.mtu));
    const Psn end_psn = psn_add(h.psn, psns);
    if (psn_distance(s.expected_psn, h.psn) < psns)
        return;   // reaches beyond what was requested before: not a duplicate of anything

    const Reply again{ReplyKind::Read, HGHCA_AETH_ACK, h.psn, s.msn, h.rkey, h.va, length, peer_.pd, 0, true, true};
    for (uint8_t i = 0; i < s.reply_count; i++) {
        Reply &due = s.replies[(s.reply_head + i) % s.replies.size()];
        if (due.kind == ReplyKind::Read) {
            const uint32_t left = std::max(1u, uint32_t((uint64_t(due.length) + qp.a.mtu - 1) / qp.a.mtu));
            if (psn_add(due.psn, left) == end_psn) {
                // The same READ, not yet sent to its end: at most, start over.
                if (psn_distance(end_psn, h.psn) > left) {
                    const bool asked_again = due.asked_again;
                    due = again;
                    due.asked_again = asked_again;
                }
                return;
            }
        }
        if (psn_distance(due.psn, h.psn) < kPsnHalf) {
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

// The message cannot be executed: NAK, event, receive WQE, and the QP is in error.
void Responder::refuse(Qp &qp, const Packet &packet, const Refusal &refusal)
{
    refuse(qp, packet, refusal, refusal.why);
}

void Responder::refuse(Qp &qp, const Packet &packet, const Refusal &refusal, Drop why)
{
    ResponderState &s = qp.resp;
    transport_.drop(packet, why);
    if (refusal.nak == HGHCA_NAK_INVALID_REQUEST)
        transport_.count(qp, qp_counter::remote_invalid_nak_sent);
    else if (refusal.nak == HGHCA_NAK_REMOTE_ACCESS)
        transport_.count(qp, qp_counter::remote_access_nak_sent);
    push_nak(qp, ReplyKind::Nak, uint8_t(HGHCA_AETH_NAK | refusal.nak));
    const bool holds_wqe = s.in_message && !s.message_is_write;
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
    return s.replies[s.reply_head].kind != ReplyKind::Read || qp.pace.phase != Pace::Phase::Held;
}

Turn Responder::run(Qp &qp, int32_t &credit)
{
    while (transport_.goes_on(credit)) {
        Turn turn = Turn::Idle;
        if (qp.resp.reply_count) {
            const Reply &reply = qp.resp.replies[qp.resp.reply_head];
            if (reply.kind != ReplyKind::Read)
                turn = send_reply(qp, credit);
            else if (!transport_.pacer.holds(qp, qp.a.path))
                turn = send_read(qp, credit);
        } else if (qp.resp.ack_due) {
            turn = send_ack(qp, credit);
        }
        if (turn != Turn::More)
            return turn;
    }
    return due(qp) ? Turn::More : Turn::Idle;
}

TransportHeader Responder::reply_header(const Qp &qp, uint8_t opcode, Psn psn) const
{
    TransportHeader h{};
    h.opcode = uint8_t(bth_service(qp.a.service) | opcode);
    h.pkey = transport_.port.pkey;
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
        s.reply_head = uint8_t((s.reply_head + 1) % s.replies.size());
        s.reply_count--;
        return Turn::More;
    }
    if (sent == Sent::Unreadable) {
        // IBA vol 1, 9.7.4.1.5: the region has gone since the request was checked.
        // A NAK in the place of the response; nothing after it.
        s.reply_count = 0;
        transport_.count(qp, qp_counter::remote_access_nak_sent);
        push(qp, {ReplyKind::Nak, HGHCA_AETH_NAK | HGHCA_NAK_REMOTE_ACCESS, h.psn, h.msn, {}, 0, 0, 0, 0, true});
        if (qp.state != QpState::Error) {
            transport_.events.post(Event::AccessViolation, qp);
            transport_.enter_error(qp, true);
        }
        return Turn::More;
    }
    credit -= int32_t(bytes + kMaxHeader);
    return Turn::More;
}

}  // namespace hghca
