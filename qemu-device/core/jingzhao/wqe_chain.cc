// SPDX-License-Identifier: GPL-2.0-or-later
#include "jingzhao/wqe_chain.h"

#include "byte_order.h"
#include "jingzhao/queues.h"
#include "jingzhao/translate.h"
#include "transport/engine.h"

namespace hghca {

void SendQueue::ring(Qp &qp, const SendDoorbell &db)
{
    RequesterState &r = qp.req;
    if (!db.units || !qp.a.sq.length)
        return;
    // However the chain is linked, the walk ends one queue past the last head.
    const uint16_t limit = uint16_t(db.head + qp.a.sq.length);
    if (index_before(r.doorbell_limit, limit))
        r.doorbell_limit = limit;
    if (index_before(db.head, r.next_index) && !r.next.valid && r.fault == Status::Success)
        look_again(qp);
    // An earlier announcement that still waits leads to this one along its chain.
    const bool waits = r.announced.valid && !index_before(r.announced.index, r.next_index);
    if (!index_before(db.head, r.next_index) && !(waits && index_before(r.announced.index, db.head)))
        r.announced = {db.head, db.opcode, db.units, db.fence, true};
}

// A list was begun before its doorbell, along the chain, and its end reached while software still linked the rest.
void SendQueue::look_again(Qp &qp)
{
    RequesterState &r = qp.req;
    WqeRef following;
    const bool good = engine_.reader.read_link(qp.a, uint16_t(r.next_index - 1), following);
    if (!good || (following.valid && !index_before(following.index, r.doorbell_limit))) {
        set_fault(qp, Status::LocalOperation);
        return;
    }
    if (!following.valid)
        return;   // that was all of it
    r.next = following;
    if (r.oldest.index == r.next_index) {
        r.oldest = r.next;
        r.oldest_psn = r.next_wqe_psn;
    }
}

void SendQueue::set_fault(Qp &qp, Status status)
{
    if (status != Status::LocalProtection)
        engine_.count(qp, qp_counter::wqe_bad);
    qp.req.fault = status;
}

bool SendQueue::ready(Qp &qp)
{
    RequesterState &r = qp.req;
    if (r.fault != Status::Success)
        return false;
    if (r.next.valid)
        return true;
    if (!r.announced.valid)
        return false;
    if (index_before(r.next_index, r.announced.index)) {
        set_fault(qp, Status::LocalOperation);
        return false;
    }
    r.announced.valid = false;
    if (r.announced.index != r.next_index)
        return false;
    r.next = r.announced;
    r.next.valid = true;
    if (r.oldest.index == r.next_index) {
        r.oldest = r.next;
        r.oldest_psn = r.next_wqe_psn;
    }
    return true;
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
    if (index_before(qp.req.started_index, behind))
        qp.req.started_index = behind;
}

void SendQueue::advance(Qp &qp)
{
    RequesterState &r = qp.req;
    WqeRef following;
    const bool good = engine_.reader.read_link(qp.a, r.next_index, following);
    r.next_index = following.index;
    r.next_wqe_psn = r.next_psn;
    r.next = following;
    // Wrong: a link that leads elsewhere, a chain that loops, and one that is
    // shorter now than when it was walked before.
    if (!good || (following.valid ? !index_before(following.index, r.doorbell_limit)
                                  : index_before(following.index, r.started_index))) {
        r.next.valid = false;
        set_fault(qp, Status::LocalOperation);
    }
}

// What depends on what INIT_HCA has turned on, and on who owns the QP.
bool SendQueue::offered(const Qp &qp, const SendWqe &wqe) const
{
    if ((wqe.changes_keys() || wqe.operation == Operation::SendInvalidate) &&
        !(engine_.device.caps & HGHCA_CAP_MEM_MGT))
        return false;
    if ((wqe.is_flush() || wqe.is_atomic_write()) && !(engine_.device.caps & HGHCA_CAP_PLACEMENT))
        return false;
    return wqe.operation != Operation::RegisterRegion || qp.a.trusted;
}

bool SendQueue::load(Qp &qp, SendWqe &out)
{
    Device &device = engine_.device;
    device.work.add();
    const uint32_t frame_limit = device.port.mtu + sizeof(hghca_eth_header) + sizeof(hghca_vlan_tag);
    const bool every_completes = !(device.caps & HGHCA_CAP_CQ_UPDATE);
    const WqeFault fault = engine_.reader.read_send(qp.a, qp.req.next, frame_limit, every_completes, out);
    if (fault == WqeFault::Unreadable)
        device.eqs->post_qp(Event::QueueFailed, qp.a.qpn);
    if (fault != WqeFault::None) {
        set_fault(qp, fault == WqeFault::Length ? Status::LocalLength : Status::LocalOperation);
        return false;
    }
    if (!offered(qp, out)) {
        set_fault(qp, Status::LocalOperation);
        return false;
    }
    // What a response is written to is checked when the response is here, by the Completer.
    if (out.access() == Access::LocalRead && !out.list.check(*device.memory, qp.a.pd, Access::LocalRead)) {
        set_fault(qp, Status::LocalProtection);
        return false;
    }
    return true;
}

bool SendQueue::change_keys(Qp &qp, const SendWqe &wqe)
{
    if (index_before(qp.req.next_index, qp.req.started_index))
        return true;
    MemoryTable &memory = *engine_.device.memory;
    const KeyUser user{qp.a.pd, qp.a.qpn};
    const bool good = wqe.operation == Operation::RegisterRegion ? memory.register_region(qp.a.pd, wqe.registration)
                      : wqe.operation == Operation::BindWindow   ? memory.bind_window(user, wqe.binding)
                                                                 : memory.invalidate(user, wqe.rkey);
    if (!good)
        set_fault(qp, Status::Bind);
    return good;
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
    r.next_psn = r.unacked_psn;
    r.messages_sent = r.messages_done;
    r.requests_in_flight = 0;
    r.reads_outstanding = 0;
    r.since_ack_request = 0;
    r.fault = Status::Success;   // of a WQE behind; it will be found again
}

WqeRef SendQueue::behind(const Qp &qp, uint16_t index)
{
    const RequesterState &r = qp.req;
    if (r.next.valid && r.next_index == uint16_t(index + 1))
        return r.next;
    WqeRef following;
    if (!engine_.reader.read_link(qp.a, index, following))
        following.valid = false;
    return following;
}

bool SendQueue::complete(Qp &qp, const SendWqe &wqe, uint32_t psn_span, uint32_t byte_count)
{
    RequesterState &r = qp.req;
    const uint16_t index = r.oldest.index;
    const uint32_t end_psn = psn_add(r.oldest_psn, psn_span);
    // All is read before the CQE: once software sees that, the slot is its own.
    WqeRef following;
    bool good = true;
    if (uint16_t(index + 1) == r.next_index) {
        following = r.next;
        following.index = r.next_index;
        good = !is_reliable(qp.a.service) || end_psn == r.next_wqe_psn;
    } else {
        good = WqeReader::decode_link(qp.a, index, wqe.next_word0, wqe.next_word1, following) &&
               (following.valid || following.index == r.started_index);
    }
    const bool overtaken = index == r.next_index;
    r.oldest = following;
    r.oldest_psn = end_psn;
    r.messages_done = psn_add(r.messages_done, psn_span != 0);
    if (overtaken) {
        // Acknowledged while it was about to be sent again.
        r.next = following;
        r.next_index = following.index;
        r.next_wqe_psn = r.next_psn = end_psn;
        r.messages_sent = r.messages_done;
        r.requests_in_flight = 0;
        r.reads_outstanding = 0;
    }
    if (wqe.completes) {
        hghca_cqe cqe{};
        cqe.my_qpn = le32(qp.a.qpn);
        cqe.byte_cnt = le32(byte_count);
        cqe.wqe = le32(wqe_offset(qp.a.sq, index));
        cqe.opcode = opcode_of(wqe.operation);
        cqe.is_send = 1;
        if (!engine_.device.cqs->post(qp.a.cqn_send, cqe, false)) {
            engine_.catastrophe(qp);
            return false;
        }
    }
    if (!good) {
        // The guest has rewritten what was in flight.
        engine_.count(qp, qp_counter::wqe_bad);
        fail(qp, Status::LocalOperation);
        return false;
    }
    return true;
}

bool SendQueue::post_error(Qp &qp, uint16_t index, Status status)
{
    hghca_err_cqe error{};
    error.my_qpn = le32(qp.a.qpn);
    error.syndrome = syndrome_of(status);
    error.wqe = le32(wqe_offset(qp.a.sq, index));
    error.opcode = HGHCA_OPCODE_INVALID;
    error.is_send = 1;
    hghca_cqe cqe;
    static_assert(sizeof(cqe) == sizeof(error));
    append(reinterpret_cast<uint8_t *>(&cqe), error);
    engine_.count(qp, status == Status::Flushed ? qp_counter::cqe_flush : qp_counter::cqe_error);
    return engine_.device.cqs->post(qp.a.cqn_send, cqe, true);
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
    if (!post_error(qp, index, status)) {
        engine_.catastrophe(qp);
        return;
    }
    // IBA vol 1, 10.3.1: only a connected QP is lost by a send that fails.
    if (is_reliable(qp.a.service)) {
        engine_.enter_error(qp);
        return;
    }
    qp.state = QpState::Sqe;
    engine_.flush(qp);
}

bool SendQueue::flush(Qp &qp, bool whole)
{
    Work &work = engine_.device.work;
    RequesterState &r = qp.req;
    bool more = false;
    WqeRef at = r.oldest;
    for (uint32_t n = 0; n < qp.a.sq.length; n++) {
        if (!at.valid && r.announced.valid && r.announced.index == at.index) {
            at = r.announced;
            r.announced.valid = false;
        }
        if (!at.valid || !index_before(at.index, r.doorbell_limit))
            break;
        more = !whole && work.over();
        if (more)
            break;
        work.add();
        const WqeRef following = behind(qp, at.index);
        if (!post_error(qp, at.index, Status::Flushed))
            break;
        at = following;
    }
    r.oldest = r.next = at;
    r.next_index = r.started_index = at.index;
    r.oldest_psn = r.next_wqe_psn = r.unacked_psn = r.next_psn;
    r.highest_psn = r.next_psn;
    r.requests_in_flight = r.reads_outstanding = 0;
    r.fault = Status::Success;
    r.waiting_timer = r.probing = false;
    r.deadline_ns = 0;
    r.page = {};
    return more;
}

}  // namespace hghca
