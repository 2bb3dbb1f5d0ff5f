// SPDX-License-Identifier: GPL-2.0-or-later
#include "transport/send_queue.h"

#include "transport/transport.h"

namespace hghca {

void SendQueue::set_fault(Qp &qp, Status status)
{
    if (status != Status::LocalProtection)
        transport_.count(qp, qp_counter::wqe_bad);
    qp.req.fault = status;
}

void SendQueue::extend(Qp &qp, const WqeRef &wqe)
{
    RequesterState &r = qp.req;
    transport_.require(wqe.valid && wqe.index == r.next_index, "the WQE behind the end of a send queue has its index");
    r.next = wqe;
    if (r.oldest.index == r.next_index) {
        r.oldest = r.next;
        r.oldest_psn = r.next_wqe_psn;
    }
}

bool SendQueue::ready(Qp &qp)
{
    RequesterState &r = qp.req;
    if (r.fault != Status::Success)
        return false;
    if (r.next.valid)
        return true;
    WqeRef wqe;
    switch (transport_.sends.peek(qp, r.next_index, wqe)) {
    case Following::Posted:
        extend(qp, wqe);
        return true;
    case Following::None:
        return false;
    case Following::Wrong:
        break;
    }
    set_fault(qp, Status::LocalOperation);
    return false;
}

bool SendQueue::allowed(const Qp &qp) const
{
    if (qp.req.waiting_timer || PageFaults::waits(qp))
        return false;
    // SQD: what has begun goes on, nothing new begins.
    return qp.state == QpState::Rts ||
           (qp.state == QpState::Sqd && index_before(qp.req.next_index, qp.req.started_index));
}

void SendQueue::begin(Qp &qp)
{
    const uint16_t behind = uint16_t(qp.req.next_index + 1);
    if (!index_before(qp.req.started_index, behind))
        return;
    qp.req.started_index = behind;
    if (transport_.observer) [[unlikely]]
        transport_.observer->begun(qp);
}

void SendQueue::advance(Qp &qp)
{
    RequesterState &r = qp.req;
    WqeRef following;
    const Following what = transport_.sends.follow(qp, r.next_index, following);
    transport_.require(following.index == uint16_t(r.next_index + 1), "WQEs of a send queue follow one another");
    r.next_index = following.index;
    r.next_wqe_psn = r.next_psn;
    r.next = following;
    // A queue that is shorter now than when it was walked before is wrong too.
    if (what == Following::Wrong || (what == Following::None && index_before(following.index, r.started_index))) {
        r.next.valid = false;
        set_fault(qp, Status::LocalOperation);
    }
}

SendQueue::Step SendQueue::load(Qp &qp, SendWqe &out)
{
    transport_.work.add();
    const WqeFault fault = transport_.sends.load(qp, out);
    if (fault == WqeFault::Unreadable)
        transport_.events.post(Event::QueueFailed, qp);
    if (fault != WqeFault::None) {
        set_fault(qp, fault == WqeFault::Length ? Status::LocalLength : Status::LocalOperation);
        return Step::Failed;
    }
    transport_.require(out.list.count <= kMaxListEntries && out.list.length <= kMaxMessage, "a WQE is within its limits");
    if (is_reliable(qp.a.service)) {
        transport_.sent_wqes.keep(qp.a.qpn, qp.req.next, out);
        transport_.completer.forget(qp.a.qpn, qp.req.next_index);
    }
    // What a response is written to is checked when the response is here, by the Completer.
    if (out.access() == Access::LocalRead && out.list.check(transport_.keys, qp.a.pd, Access::LocalRead) == Allowed::No) {
        set_fault(qp, Status::LocalProtection);
        return Step::Failed;
    }
    return Step::Done;
}

SendQueue::Step SendQueue::change_keys(Qp &qp, const SendWqe &wqe)
{
    if (index_before(qp.req.next_index, qp.req.started_index))
        return Step::Done;
    if (transport_.sends.change_keys(qp, wqe) == Allowed::No) {
        set_fault(qp, Status::Bind);
        return Step::Failed;
    }
    return Step::Done;
}

SendQueue::Step SendQueue::execute(Qp &qp, const SendWqe &wqe, int32_t &credit)
{
    if (wqe.changes_keys() && change_keys(qp, wqe) == Step::Failed) {
        raise_fault(qp);
        return Step::Failed;
    }
    credit -= wqe.local_cost();
    begin(qp);
    advance(qp);
    const Step completed = complete(qp, wqe, 0, 0);
    transport_.check_drained(qp);
    return completed;
}

void SendQueue::raise_fault(Qp &qp)
{
    if (qp.req.fault != Status::Success && qp.req.oldest.index == qp.req.next_index)
        fail(qp, qp.req.fault);
}

void SendQueue::go_back(Qp &qp)
{
    RequesterState &r = qp.req;
    r.next = r.oldest;
    r.next_index = r.oldest.index;
    r.next_wqe_psn = r.oldest_psn;
    r.next_psn = transport_.rewind == Rewind::Message ? r.oldest_psn : r.unacked_psn;
    r.messages_sent = r.messages_done;
    r.requests_in_flight = 0;
    r.reads_outstanding = 0;
    r.since_ack_request = 0;
    r.fault = Status::Success;   // of a WQE behind; it will be found again
    if (transport_.observer) [[unlikely]]
        transport_.observer->went_back(qp);
}

WqeRef SendQueue::behind(const Qp &qp, uint16_t index)
{
    const RequesterState &r = qp.req;
    if (r.next.valid && r.next_index == uint16_t(index + 1))
        return r.next;
    WqeRef following;
    following.valid = transport_.sends.follow(qp, index, following) == Following::Posted;
    return following;
}

bool SendQueue::behind_sent(const Qp &qp, uint16_t index, WqeRef &following)
{
    const uint16_t next = uint16_t(index + 1);
    if (index_before(next, qp.req.started_index))
        if (const SentWqes::Entry *kept = transport_.sent_wqes.find(qp.a.qpn, next)) {
            following = kept->ref;
            return true;
        }
    const Following what = transport_.sends.follow(qp, index, following);
    return what == Following::Posted || (what == Following::None && next == qp.req.started_index);
}

SendQueue::Step SendQueue::complete(Qp &qp, const SentWqe &wqe, uint32_t psn_span, uint32_t byte_count)
{
    RequesterState &r = qp.req;
    const uint16_t index = r.oldest.index;
    const Psn end_psn = psn_add(r.oldest_psn, psn_span);
    // All is read before the CQE: once software sees that, the slot is its own.
    WqeRef following;
    bool good = true;
    if (uint16_t(index + 1) == r.next_index) {
        following = r.next;
        following.index = r.next_index;
        good = !is_reliable(qp.a.service) || end_psn == r.next_wqe_psn;
    } else {
        good = behind_sent(qp, index, following);
    }
    const bool overtaken = index == r.next_index;
    r.oldest = following;
    r.oldest_psn = end_psn;
    r.messages_done = msn_add(r.messages_done, psn_span != 0);
    if (overtaken) {
        // Acknowledged while it was about to be sent again.
        r.next = following;
        r.next_index = following.index;
        r.next_wqe_psn = r.next_psn = end_psn;
        r.messages_sent = r.messages_done;
        r.requests_in_flight = 0;
        r.reads_outstanding = 0;
    }
    if (wqe.completes && transport_.sends.complete(qp, index, wqe, byte_count) == Completed::CqFailed) {
        transport_.catastrophe(qp);
        return Step::Failed;
    }
    if (!good) {
        // The guest has rewritten what was in flight.
        transport_.count(qp, qp_counter::wqe_bad);
        fail(qp, Status::LocalOperation);
        return Step::Failed;
    }
    return Step::Done;
}

Completed SendQueue::post_error(Qp &qp, uint16_t index, Status status)
{
    transport_.count(qp, status == Status::Flushed ? qp_counter::cqe_flush : qp_counter::cqe_error);
    return transport_.sends.fail(qp, index, status);
}

void SendQueue::fail(Qp &qp, Status status)
{
    RequesterState &r = qp.req;
    const uint16_t index = r.oldest.index;
    WqeRef following{};
    following.index = uint16_t(index + 1);
    if (r.oldest.valid)
        following = behind(qp, index);
    r.oldest = r.next = following;
    r.next_index = r.started_index = following.index;
    if (post_error(qp, index, status) == Completed::CqFailed) {
        transport_.catastrophe(qp);
        return;
    }
    // IBA vol 1, 10.3.1: only a connected QP is lost by a send that fails.
    if (is_reliable(qp.a.service)) {
        transport_.enter_error(qp);
        return;
    }
    qp.state = QpState::Sqe;
    transport_.flush(qp);
}

Flushed SendQueue::flush(Qp &qp, bool whole)
{
    RequesterState &r = qp.req;
    bool more = false;
    WqeRef at = r.oldest;
    for (uint32_t n = 0; n < qp.a.sq.length; n++) {
        if (!at.valid && transport_.sends.peek(qp, at.index, at) != Following::Posted)
            break;
        more = !whole && transport_.work.over();
        if (more)
            break;
        transport_.work.add();
        const WqeRef following = behind(qp, at.index);
        if (post_error(qp, at.index, Status::Flushed) == Completed::CqFailed)
            break;
        at = following;
    }
    r.oldest = r.next = at;
    r.next_index = r.started_index = at.index;
    r.oldest_psn = r.next_wqe_psn = r.unacked_psn = r.next_psn;
    r.highest_psn = r.next_psn;
    transport_.forget_packets(qp.a.qpn);
    r.requests_in_flight = r.reads_outstanding = 0;
    r.fault = Status::Success;
    r.waiting_timer = r.probing = false;
    r.deadline_ns = 0;
    r.page = {};
    return more ? Flushed::Part : Flushed::All;
}

}  // namespace hghca
