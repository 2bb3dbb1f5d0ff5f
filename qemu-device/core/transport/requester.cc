// SPDX-License-Identifier: GPL-2.0-or-later
#include "transport/requester.h"

#include <algorithm>

#include "transport/transport.h"

namespace hghca {

namespace {

// WQEs that may have begun before those executed here wait: they are completed together, by one acknowledgement.
constexpr uint16_t kWindowWqes = 512;
constexpr uint32_t kWindowPackets = 256;   // interface document, section 9
constexpr uint16_t kAckRequestEvery = 64;
// IBA vol 1, 9.7.3.1: outstanding PSNs stay within half of their space.
constexpr uint32_t kWindowPsns = kPsnHalf;

constexpr uint32_t kRnrTimerUs[32] = HGHCA_RNR_TIMER_US;
// What short timers grow to while a receiver stays not ready.
constexpr uint64_t kRnrBackoffNs = 1'000'000;

// IBA vol 1, 9.7.5.2.8 asks for the timer's value at least. A receiver that has not become ready meanwhile is given
// twice as long each time: retries at 10 us would take the host's processors from the very guest that is to post.
uint64_t rnr_wait_ns(uint8_t timer_code, uint8_t in_row)
{
    const uint64_t timer = uint64_t(kRnrTimerUs[timer_code & 31]) * 1000;
    return std::max(timer, std::min(timer << std::min<uint8_t>(in_row, 7), kRnrBackoffNs));
}

// Packets that may be under way.
uint32_t window(const RequesterState &r) { return r.probing ? 1 : kWindowPackets; }

uint8_t part_opcode(bool first, bool last)
{
    if (!last)
        return first ? HGHCA_BTH_PART_FIRST : HGHCA_BTH_PART_MIDDLE;
    return first ? HGHCA_BTH_PART_ONLY : HGHCA_BTH_PART_LAST;
}

uint8_t opcode_of_service(const SendWqe &wqe, bool first, bool last)
{
    switch (wqe.operation) {
    case Operation::Read:
        return HGHCA_BTH_OP_READ_REQUEST;
    case Operation::CompareSwap:
        return HGHCA_BTH_OP_COMPARE_SWAP;
    case Operation::FetchAdd:
        return HGHCA_BTH_OP_FETCH_ADD;
    case Operation::AtomicWrite:
        return HGHCA_BTH_OP_ATOMIC_WRITE;
    case Operation::Flush:
        return HGHCA_BTH_OP_FLUSH;
    default:
        return message_opcode(wqe, first, last);
    }
}

// Those of the manufacturer are of no service.
uint8_t opcode_of(const SendWqe &wqe, Service service, bool first, bool last)
{
    switch (wqe.operation) {
    case Operation::Part:
        return part_opcode(first, last);
    case Operation::ReadPointer:
        return HGHCA_BTH_READ_POINTER_REQUEST;
    case Operation::ReadConsistent:
        return HGHCA_BTH_READ_CONSISTENT_REQUEST;
    default:
        return uint8_t(bth_service(service) | opcode_of_service(wqe, first, last));
    }
}

}  // namespace

uint8_t message_opcode(const SendWqe &wqe, bool first, bool last)
{
    if (wqe.is_write()) {
        if (!last)
            return first ? HGHCA_BTH_OP_WRITE_FIRST : HGHCA_BTH_OP_WRITE_MIDDLE;
        if (wqe.has_imm())
            return first ? HGHCA_BTH_OP_WRITE_ONLY_IMM : HGHCA_BTH_OP_WRITE_LAST_IMM;
        return first ? HGHCA_BTH_OP_WRITE_ONLY : HGHCA_BTH_OP_WRITE_LAST;
    }
    if (!last)
        return first ? HGHCA_BTH_OP_SEND_FIRST : HGHCA_BTH_OP_SEND_MIDDLE;
    if (wqe.operation == Operation::SendInvalidate)
        return first ? HGHCA_BTH_OP_SEND_ONLY_INV : HGHCA_BTH_OP_SEND_LAST_INV;
    if (wqe.has_imm())
        return first ? HGHCA_BTH_OP_SEND_ONLY_IMM : HGHCA_BTH_OP_SEND_LAST_IMM;
    return first ? HGHCA_BTH_OP_SEND_ONLY : HGHCA_BTH_OP_SEND_LAST;
}

uint64_t Requester::timeout_ns(Qp &qp) const
{
    // IBA vol 1, 9.7.6.1.3. When its rate holds the QP back, the packet that asks for the acknowledgement may go long
    // after the one that the timer started with; as many responses may go between.
    return (uint64_t(transport_.timeout_unit_ns) << qp.a.ack_timeout) +
           transport_.pacer.time_ns(qp, qp.a.path, 2 * kAckRequestEvery * (qp.a.mtu + uint32_t(kMaxHeader)));
}

void Requester::reset_retries(Qp &qp)
{
    qp.req.retries_left = qp.a.retry_count;
    qp.req.rnr_retries_left = qp.a.rnr_retry;
    qp.req.rnr_in_row = 0;
}

void Requester::progress(Qp &qp)
{
    RequesterState &r = qp.req;
    reset_retries(qp);
    r.response_lost = false;
    r.probing = false;
    if (r.waiting_timer)
        return;
    const bool outstanding = r.unacked_psn != r.highest_psn && qp.a.ack_timeout;
    transport_.set_deadline(qp, outstanding ? transport_.now_ns + timeout_ns(qp) : 0);
}

void Requester::slowed(Qp &qp)
{
    if (qp.req.deadline_ns && !qp.req.waiting_timer)
        transport_.set_deadline(qp, std::max(qp.req.deadline_ns, transport_.now_ns + timeout_ns(qp)));
}

void Requester::timeout(Qp &qp)
{
    RequesterState &r = qp.req;
    r.deadline_ns = 0;
    if (r.waiting_timer) {
        r.waiting_timer = false;
        transport_.schedule(qp);
        return;
    }
    // Nothing could be sent again now; the next packet starts the timer.
    if (r.unacked_psn == r.highest_psn || !r.oldest.valid || PageFaults::waits(qp))
        return;
    transport_.count(qp, qp_counter::local_ack_timeout_err);
    r.response_lost = false;
    retry(qp);
}

void Requester::retry(Qp &qp)
{
    // IBA vol 1, 9.9.2.1.1: one counter for time-outs, sequence errors and lost responses.
    if (!qp.req.retries_left && !qp.a.retries_forever) {
        transport_.send_queue.fail(qp, Status::RetryExceeded);
        return;
    }
    qp.req.retries_left -= qp.req.retries_left != 0;
    transport_.send_queue.go_back(qp);
    // One timer serves both waits: what ends this one ends that for an RNR NAK, too.
    qp.req.waiting_timer = false;
    // The timer starts again with the first packet sent again.
    transport_.set_deadline(qp, 0);
    transport_.schedule(qp);
}

void Requester::wait_rnr(Qp &qp, uint8_t timer_code)
{
    RequesterState &r = qp.req;
    // IBA vol 1, 9.7.5.2.8: 7 stands for ever.
    if (qp.a.rnr_retry != 7) {
        if (!r.rnr_retries_left) {
            transport_.send_queue.fail(qp, Status::RnrRetryExceeded);
            return;
        }
        r.rnr_retries_left--;
    }
    transport_.send_queue.go_back(qp);
    r.waiting_timer = true;
    // What follows the first packet would be dropped too, if there is still no receive.
    r.probing = true;
    transport_.set_deadline(qp, transport_.now_ns + rnr_wait_ns(timer_code, r.rnr_in_row));
    if (r.rnr_in_row < UINT8_MAX)
        r.rnr_in_row++;
}

// IBA vol 1, 9.7.7.2: does the next packet take a receive WQE that the peer has not advertised?
bool Requester::beyond_credits(const Qp &qp) const
{
    const RequesterState &r = qp.req;
    if (!r.has_limit || msn_diff(msn_add(r.messages_sent, 1), r.message_limit) <= 0 || wqe_.is_answered())
        return false;
    // A WRITE with immediate data takes one with its last packet.
    return !wqe_.is_write() ||
           (wqe_.has_imm() && psn_add(r.next_wqe_psn, wqe_.psn_span(qp.a.mtu) - 1) == r.next_psn);
}

bool Requester::may_send(const Qp &qp, bool begins) const
{
    const RequesterState &r = qp.req;
    if (wqe_.is_local() && uint16_t(r.next_index - r.oldest.index) >= kWindowWqes)
        return false;
    // What was sent with a key may have to be sent again, so that goes before its invalidation.
    if (wqe_.operation == Operation::LocalInvalidate)
        return r.oldest.index == r.next_index;
    if (wqe_.is_local())
        return !(r.next.fence && r.reads_outstanding);
    if (r.requests_in_flight >= window(r))
        return false;
    if (begins && r.next.fence && r.reads_outstanding)
        return false;
    // One packet goes without a credit when all before it has been answered; what answers that one brings more. A
    // packet that would not be answered without a further one is followed by that.
    if (r.requests_in_flight && !r.since_ack_request && beyond_credits(qp))
        return false;
    if (wqe_.is_answered() && r.reads_outstanding >= qp.a.max_rd_atomic)
        return false;
    const uint32_t outstanding = r.repeats() ? 0 : psn_distance(r.next_psn, r.unacked_psn);
    const uint32_t needed =
        wqe_.is_read() ? psn_distance(psn_add(r.next_wqe_psn, wqe_.psn_span(qp.a.mtu)), r.next_psn) : 1;
    return !outstanding || outstanding + needed <= kWindowPsns;
}

Turn Requester::run(Qp &qp, int32_t &credit)
{
    RequesterState &r = qp.req;
    SendQueue &queue = transport_.send_queue;
    // A WQE is read once a turn, not once a packet.
    bool loaded = false;
    uint16_t loaded_index = 0;
    while (transport_.goes_on(credit)) {
        if (!queue.ready(qp)) {
            queue.raise_fault(qp);
            return Turn::Idle;
        }
        if (!queue.allowed(qp))
            return Turn::Idle;
        if (!loaded || loaded_index != r.next_index) {
            if (queue.load(qp, wqe_) == SendQueue::Step::Failed) {
                queue.raise_fault(qp);
                return Turn::Idle;
            }
            loaded = true;
            loaded_index = r.next_index;
        }
        if (!may_send(qp, r.next_psn == r.next_wqe_psn))
            return Turn::Idle;
        if (!wqe_.is_local() && transport_.pacer.holds(qp, qp.a.path))
            return Turn::Idle;
        if (wqe_.changes_keys() && queue.change_keys(qp, wqe_) == SendQueue::Step::Failed) {
            queue.raise_fault(qp);
            return Turn::Idle;
        }
        queue.begin(qp);
        if (wqe_.is_local()) {
            credit -= wqe_.local_cost();
            queue.advance(qp);
            // Completes at once when nothing before it is under way.
            transport_.completer.acknowledge(qp, r.unacked_psn);
        } else {
            Turn turn = send(qp, credit);
            if (turn != Turn::More)
                return turn;
        }
        if (qp.state != QpState::Rts && qp.state != QpState::Sqd)
            return Turn::Idle;
    }
    return Turn::More;
}

// Is the page absent where the first response to wqe_ goes, and asked for? Bringing it now costs less than asking the
// peer twice. Nothing else is checked before the response is here; neither is a page that software does not have.
bool Requester::waits_for_place(Qp &qp, uint64_t offset, uint32_t bytes)
{
    KeySpace &keys = transport_.keys;
    if (!wqe_.list.on_demand(keys) || qp.req.page.state == PageFault::State::Failed)
        return false;
    PacketSegments place;
    AbsentPage absent;
    switch (wqe_.list.resolve(keys, qp.a.pd, Access::LocalWrite, offset, bytes, place, absent)) {
    case Found::Absent:
        return transport_.page_faults.wait(qp, absent) == PageFaults::Outcome::Waits;
    case Found::Yes:
    case Found::No:
    case Found::Unreadable:
        break;
    }
    return false;
}

// Is the payload of wqe_ for the retransmission buffer?
bool Requester::keeps() const { return wqe_.is_write() || !transport_.keeps_writes_alone; }

// With a retransmission buffer: makes `payload` the copy of the packet that is next, which is made if it goes for the
// first time. False: not now, or never.
bool Requester::keep(Qp &qp, PacketSegments &payload, uint32_t bytes)
{
    PacketStore &store = transport_.store;
    const Psn psn = qp.req.next_psn;
    PacketStore::Kept kept = PacketStore::Kept::Unreadable;
    switch (store.find(qp.a.qpn, psn, bytes, payload)) {
    case PacketStore::Copy::Here:
    case PacketStore::Copy::Forgotten:   // its bytes do not count any more
        return true;
    case PacketStore::Copy::Differs:
        break;
    case PacketStore::Copy::Absent:
        if (transport_.gather(payload, copy_.data(), copy_.size()))
            kept = store.keep(qp.a.qpn, psn, copy_.data(), bytes, payload);
        break;
    }
    if (kept == PacketStore::Kept::Unreadable) {
        qp.req.fault = Status::LocalProtection;
        transport_.send_queue.raise_fault(qp);
    }
    return kept == PacketStore::Kept::Yes;
}

// One request packet of wqe_. More: go on.
Turn Requester::send(Qp &qp, int32_t &credit)
{
    RequesterState &r = qp.req;
    const uint32_t mtu = qp.a.mtu;
    const uint64_t offset = uint64_t(psn_distance(r.next_psn, r.next_wqe_psn)) * mtu;
    const bool one_packet = wqe_.is_answered();
    const uint64_t left = wqe_.list.length - offset;
    if (offset > wqe_.list.length)
        return Turn::Idle;   // the guest has made it shorter; acknowledgements will show it
    const bool has_payload = !one_packet || wqe_.is_atomic_write();
    const uint32_t payload_bytes = has_payload ? uint32_t(std::min<uint64_t>(left, mtu)) : 0;
    const bool last = one_packet || left <= mtu;

    if (wqe_.access() == Access::LocalWrite && waits_for_place(qp, offset, uint32_t(std::min<uint64_t>(left, mtu))))
        return Turn::Idle;
    PacketSegments payload;
    if (payload_bytes) {
        AbsentPage absent;
        const Found found =
            wqe_.list.resolve(transport_.keys, qp.a.pd, Access::LocalRead, offset, payload_bytes, payload, absent);
        if (found == Found::Absent && transport_.page_faults.wait(qp, absent) == PageFaults::Outcome::Waits)
            return Turn::Idle;
        if (found != Found::Yes) {
            r.fault = Status::LocalProtection;
            transport_.send_queue.raise_fault(qp);
            return Turn::Idle;
        }
        PageFaults::satisfied(r.page);
        if (transport_.store.active() && keeps() && !keep(qp, payload, payload_bytes))
            return Turn::Idle;
    }

    TransportHeader h{};
    h.opcode = opcode_of(wqe_, qp.a.service, r.next_psn == r.next_wqe_psn, last);
    h.solicited = last && wqe_.asks_for_event();
    h.ack_request = last || r.since_ack_request + 1 >= kAckRequestEvery ||
                    r.requests_in_flight + 1 >= window(r) || beyond_credits(qp) ||
                    (transport_.store.active() && transport_.store.full());
    h.pkey = transport_.pkey_of(qp);
    h.qpn = qp.a.remote_qpn;
    h.psn = r.next_psn;
    h.imm = wqe_.imm;
    h.srqn = wqe_.srqn;
    h.rkey = wqe_.rkey;
    h.va = wqe_.is_part() ? 0 : wqe_.raddr + (wqe_.is_read() ? offset : 0);
    h.length = uint32_t(wqe_.is_read() ? left : wqe_.is_flush() ? wqe_.flush_length : wqe_.list.length);
    h.flush = wqe_.flush;
    h.swap_add = wqe_.swap_add;
    h.compare = wqe_.compare;
    h.pointer_key = wqe_.pointer_key;
    h.search = wqe_.search;

    // The state moves before the packet does: a packet to the QP itself changes
    // it again. Only the link can refuse, and then nothing else has happened.
    const RequesterState before = r;
    const uint32_t ahead = r.before(r.highest_psn);
    const bool again = r.before(r.next_psn) < ahead;
    const bool counts = !r.repeats() || one_packet;
    r.next_psn = wqe_.is_read() ? psn_add(r.next_wqe_psn, wqe_.psn_span(mtu)) : psn_add(r.next_psn, 1);
    if (r.before(r.next_psn) > ahead)
        r.highest_psn = r.next_psn;
    r.requests_in_flight += counts;
    r.reads_outstanding += one_packet;
    r.since_ack_request = h.ack_request ? 0 : uint16_t(r.since_ack_request + 1);
    if (last) {
        r.messages_sent = msn_add(r.messages_sent, 1);
        transport_.send_queue.advance(qp);
    }
    if (!r.deadline_ns && qp.a.ack_timeout)
        transport_.set_deadline(qp, transport_.now_ns + timeout_ns(qp));

    Route *route = transport_.route_of(qp);
    switch (transport_.send_packet(qp, route, h, payload, payload_bytes)) {
    case Sent::Yes:
        transport_.pacer.sent(qp, qp.a.path, route);
        break;
    case Sent::Blocked:
        r = before;
        return Turn::Blocked;
    case Sent::Unreadable:
        r = before;
        r.fault = Status::LocalProtection;
        transport_.send_queue.raise_fault(qp);
        return Turn::Idle;
    }
    credit -= Transport::cost_of(route, payload_bytes);
    if (again)
        transport_.count(qp, qp_counter::retransmitted);
    return Turn::More;
}

}  // namespace hghca
