// SPDX-License-Identifier: GPL-2.0-or-later
#include "transport/completer.h"

#include "byte_order.h"
#include "transport/credits.h"
#include "transport/transport.h"

namespace hghca {

namespace {

// The syndrome's type, and bit 7, which is 0 (IBA vol 1, table 43).
constexpr uint8_t kAckMask = 0x80 | HGHCA_AETH_TYPE_MASK;

bool alive(const Qp &qp)
{
    return qp.state == QpState::Rts || qp.state == QpState::Sqd;
}

// Is the AETH, if there is one, an ACK's? A NAK never has the opcode of an answer.
bool is_positive(const Packet &packet)
{
    return !(packet.flags & kAeth) || (packet.h.syndrome & kAckMask) == HGHCA_AETH_ACK;
}

Status status_of_nak(uint8_t code)
{
    switch (code) {
    case HGHCA_NAK_INVALID_REQUEST:
        return Status::RemoteInvalidRequest;
    case HGHCA_NAK_REMOTE_ACCESS:
        return Status::RemoteAccess;
    case HGHCA_NAK_REMOTE_OPERATION:
        return Status::RemoteOperation;
    default:
        return Status::BadResponse;
    }
}

}  // namespace

// Has the oldest WQE begun?
bool Completer::under_way(const Qp &qp) const
{
    return qp.req.oldest.valid && index_before(qp.req.oldest.index, qp.req.started_index);
}

bool Completer::find_oldest(const Qp &qp)
{
    if (const SentWqes::Entry *kept = transport_.sent_wqes.find(qp.a.qpn, qp.req.oldest.index)) {
        sent_ = kept->wqe;
        return true;
    }
    if (!read_oldest(qp))
        return false;
    sent_ = wqe_;
    return true;
}

bool Completer::read_oldest(const Qp &qp)
{
    const uint64_t name = SentWqes::name_of(qp.a.qpn, qp.req.oldest.index);
    if (whole_ == name)
        return true;
    const bool good = transport_.sends.reload(qp, wqe_) == WqeFault::None;
    whole_ = good ? name : 0;
    return good;
}

bool Completer::has_list(Qp &qp)
{
    if (read_oldest(qp) && wqe_.operation == sent_.operation && wqe_.length == sent_.length)
        return true;
    rewritten(qp);
    return false;
}

void Completer::rewritten(Qp &qp)
{
    transport_.count(qp, qp_counter::wqe_bad);
    transport_.send_queue.fail(qp, Status::LocalOperation);
}

Completer::Outcome Completer::acknowledge(Qp &qp, Psn psn, bool without_data)
{
    RequesterState &r = qp.req;
    Outcome outcome = Outcome::Done;
    const bool moved = psn != r.unacked_psn;
    const Psn first = r.unacked_psn;
    for (uint32_t n = 0; n < qp.a.sq.length && under_way(qp); n++) {
        if (!find_oldest(qp)) {
            rewritten(qp);
            return Outcome::Stopped;
        }
        transport_.work.add();
        const uint32_t span = sent_.psn_span(qp.a.mtu);
        const bool in_this_round = index_before(r.oldest.index, r.next_index);
        uint32_t covered;
        if (sent_.is_answered()) {
            // IBA vol 1, 9.7.5.1.5: only its own response completes it.
            covered = psn_distance(r.unacked_psn, r.oldest_psn);
            if (covered < span) {
                if (psn != r.unacked_psn)
                    outcome = Outcome::Missing;
                break;
            }
            if (in_this_round) {
                r.requests_in_flight -= r.requests_in_flight != 0;
                r.reads_outstanding -= r.reads_outstanding != 0;
            }
        } else {
            covered = std::min(psn_distance(psn, r.oldest_psn), span);
            const Psn unacked = psn_add(r.oldest_psn, covered);
            r.requests_in_flight -= std::min(r.requests_in_flight, psn_distance(unacked, r.unacked_psn));
            r.unacked_psn = unacked;
            transport_.forget_acknowledged(qp);
            if (covered < span)
                break;
        }
        const uint32_t byte_count = without_data && !n ? 0 : uint32_t(sent_.length);
        if (transport_.send_queue.complete(qp, sent_, span, byte_count) == SendQueue::Step::Failed)
            return Outcome::Stopped;
    }
    // Acknowledged packets are not sent again, even if that was about to happen, unless whole messages are.
    if (transport_.rewind == Rewind::Packet && r.oldest.index == r.next_index && r.repeats()) {
        r.next_psn = r.unacked_psn;
        r.requests_in_flight = 0;
    }
    if (moved && r.unacked_psn != first)
        transport_.requester.progress(qp);
    transport_.check_drained(qp);
    transport_.schedule(qp);
    return outcome;
}

bool Completer::acknowledge_before(Qp &qp, Psn psn)
{
    switch (acknowledge(qp, psn)) {
    case Outcome::Done:
        return alive(qp);
    case Outcome::Missing:
        response_lost(qp);
        return false;
    case Outcome::Stopped:
        return false;
    }
    return false;
}

// IBA vol 1, 9.7.5.2.4: an implied NAK. Of all that arrives until the gap is
// closed only the first counts.
void Completer::response_lost(Qp &qp)
{
    if (qp.req.response_lost)
        return;
    transport_.count(qp, qp_counter::implied_nak_seq_err);
    transport_.requester.retry(qp);
    qp.req.response_lost = true;
}

bool Completer::ask_again(Qp &qp, const AbsentPage &absent)
{
    // All goes again from the answer on; what the peer has executed it does not execute twice.
    transport_.send_queue.go_back(qp);
    transport_.set_deadline(qp, 0);
    if (transport_.page_faults.wait(qp, absent) == PageFaults::Outcome::Refused)
        return false;
    // The answers behind it that are under way are no loss.
    qp.req.response_lost = true;
    return true;
}

// IBA vol 1, 9.7.7.2. What was granted once stays granted.
void Completer::take_credits(Qp &qp, const TransportHeader &h)
{
    RequesterState &r = qp.req;
    const uint8_t value = h.syndrome & HGHCA_AETH_VALUE_MASK;
    if (value == HGHCA_AETH_CREDIT_UNLIMITED) {
        r.has_limit = false;
    } else {
        const Msn limit = msn_add(h.msn, kCredits[value]);
        if (!r.has_limit || msn_diff(limit, r.message_limit) > 0)
            r.message_limit = limit;
        r.has_limit = true;
    }
    transport_.schedule(qp);
}

void Completer::receive(Qp &qp, const Packet &packet)
{
    const RequesterState &r = qp.req;
    // Also from what acknowledges the last packet once more, to tell of credits.
    if (alive(qp) && packet.flags & kAeth && (packet.h.syndrome & kAckMask) == HGHCA_AETH_ACK &&
        psn_distance(packet.h.psn, psn_before(r.unacked_psn)) <= psn_distance(r.highest_psn, r.unacked_psn))
        take_credits(qp, packet.h);
    // IBA vol 1, 9.7.5.2.2: responses outside of what is outstanding are ghosts
    // and duplicates.
    if (!alive(qp) ||
        psn_distance(packet.h.psn, r.unacked_psn) >= psn_distance(r.highest_psn, r.unacked_psn))
        return;
    switch (packet.h.opcode & HGHCA_BTH_OP_MASK) {
    case HGHCA_BTH_OP_ACK:
        receive_ack(qp, packet);
        break;
    case HGHCA_BTH_OP_ATOMIC_ACK:
        receive_atomic(qp, packet);
        break;
    default:
        receive_read(qp, packet);
    }
}

void Completer::receive_ack(Qp &qp, const Packet &packet)
{
    const TransportHeader &h = packet.h;
    const uint8_t value = h.syndrome & HGHCA_AETH_VALUE_MASK;
    switch (h.syndrome & kAckMask) {
    case HGHCA_AETH_ACK:
        acknowledge_before(qp, psn_add(h.psn, 1));
        break;
    case HGHCA_AETH_RNR_NAK:
        transport_.count(qp, qp_counter::rnr_nak_received);
        if (acknowledge_before(qp, h.psn) && !qp.req.waiting_timer) {
            qp.req.retries_left = qp.a.retry_count;
            transport_.requester.wait_rnr(qp, value);
        }
        break;
    case HGHCA_AETH_NAK:
        if (value == HGHCA_NAK_PSN_SEQUENCE)
            transport_.count(qp, qp_counter::packet_seq_err);
        if (!acknowledge_before(qp, h.psn))
            break;
        if (value == HGHCA_NAK_PSN_SEQUENCE)
            transport_.requester.retry(qp);
        else if (under_way(qp))
            transport_.send_queue.fail(qp, status_of_nak(value));
        break;
    default:
        transport_.drop(packet, Drop::Syndrome);
        break;   // reserved: ignored
    }
}

void Completer::receive_read(Qp &qp, const Packet &packet)
{
    RequesterState &r = qp.req;
    const Psn psn = packet.h.psn;
    if (!acknowledge_before(qp, psn) || !under_way(qp))
        return;
    const uint32_t mtu = qp.a.mtu;
    const uint32_t place = psn_distance(psn, r.oldest_psn);
    const uint32_t span = sent_.psn_span(mtu);
    const bool last = place + 1 == span;
    const uint64_t offset = uint64_t(place) * mtu;
    // IBA vol 1, A19: what answers a FLUSH or an ATOMIC WRITE is a READ response of no bytes.
    const uint64_t answer_bytes = sent_.brings_data() ? sent_.length : 0;
    // Nothing was found.
    const bool without_data = sent_.is_pointer() && !packet.payload.length;
    // The first PSN has the first packet. A later one may have it too, when that is where it was asked for again.
    if (!sent_.is_answered() || sent_.is_atomic() || place >= span || last != bool(packet.flags & kLast) ||
        (!place && !(packet.flags & kFirst)) || !is_positive(packet) ||
        (!without_data && packet.payload.length != (last ? answer_bytes - offset : mtu)) || (!last && packet.h.pad)) {
        transport_.drop(packet, Drop::Response);
        transport_.send_queue.fail(qp, Status::BadResponse);
        return;
    }
    if (!has_list(qp))
        return;
    PacketSegments to;
    AbsentPage absent;
    const Found found = wqe_.list.resolve(transport_.keys, qp.a.pd, Access::LocalWrite, offset,
                                          uint32_t(packet.payload.length), to, absent);
    if (found == Found::Absent && ask_again(qp, absent))
        return;
    if (found != Found::Yes || !transport_.scatter(packet.payload, 0, to)) {
        transport_.send_queue.fail(qp, Status::LocalProtection);
        return;
    }
    PageFaults::satisfied(r.page);
    r.unacked_psn = psn_add(psn, 1);
    transport_.requester.progress(qp);
    // Also when it is not the last: what was about to be asked for again may have come.
    if (last || r.oldest.index == r.next_index)
        acknowledge(qp, r.unacked_psn, without_data);
}

void Completer::receive_atomic(Qp &qp, const Packet &packet)
{
    RequesterState &r = qp.req;
    const TransportHeader &h = packet.h;
    if (!acknowledge_before(qp, h.psn) || !under_way(qp))
        return;
    if (!sent_.is_atomic() || h.psn != r.oldest_psn || !is_positive(packet) || packet.payload.length) {
        transport_.drop(packet, Drop::Response);
        transport_.send_queue.fail(qp, Status::BadResponse);
        return;
    }
    if (!has_list(qp))
        return;
    uint64_t original = le64(h.original);
    const iovec part{&original, sizeof(original)};
    PacketSegments to;
    AbsentPage absent;
    const Found found =
        wqe_.list.resolve(transport_.keys, qp.a.pd, Access::LocalWrite, 0, sizeof(original), to, absent);
    if (found == Found::Absent && ask_again(qp, absent))
        return;
    if (found != Found::Yes || !transport_.scatter({{&part, 1}, 0, sizeof(original)}, 0, to)) {
        transport_.send_queue.fail(qp, Status::LocalProtection);
        return;
    }
    PageFaults::satisfied(r.page);
    r.unacked_psn = psn_add(h.psn, 1);
    transport_.requester.progress(qp);
    acknowledge(qp, r.unacked_psn);
}

}  // namespace hghca
