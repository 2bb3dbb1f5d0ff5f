// SPDX-License-Identifier: GPL-2.0-or-later
#include "jingzhao/receive_queue.h"

#include "byte_order.h"
#include "jingzhao/queues.h"
#include "jingzhao/srq.h"
#include "jingzhao/translate.h"
#include "transport/engine.h"

namespace hghca {

namespace {

uint32_t path_word(const Received &message)
{
    uint32_t word = field_put(HGHCA_CQE_SL_MASK, message.sl) | field_put(HGHCA_CQE_NETWORK_MASK, message.network);
    if (message.global_header)
        word |= HGHCA_CQE_GRH;
    if (message.vlan >= 0)
        word |= HGHCA_CQE_VLAN_VALID | field_put(HGHCA_CQE_VLAN_ID_MASK, uint32_t(message.vlan));
    return word;
}

}  // namespace

uint32_t ReceiveQueue::srqn_of(const Qp &qp) { return qp.a.xrcd ? qp.resp.xrc_srqn : qp.a.srqn; }

uint32_t ReceiveQueue::cqn_of(const Qp &qp)
{
    return qp.a.xrcd ? engine_.device.srqs->cqn(qp.resp.xrc_srqn) : qp.a.cqn_recv;
}

WqeReader::Posted ReceiveQueue::posted(const Qp &qp)
{
    const uint32_t srqn = srqn_of(qp);
    return srqn ? engine_.device.srqs->posted(srqn) : engine_.reader.receive_posted(qp.a, qp.resp.rq_index);
}

bool ReceiveQueue::count(const Qp &qp, uint32_t &out) const
{
    return !srqn_of(qp) && engine_.reader.receives_posted(qp.a, qp.resp.rq_index, out);
}

bool ReceiveQueue::place(const Qp &qp, ReceiveSlot &out)
{
    const QpAttributes &a = qp.a;
    if (const uint32_t srqn = srqn_of(qp)) {
        SharedReceiveQueues &srqs = *engine_.device.srqs;
        return qp.resp.holds_shared ? srqs.slot_at(srqn, qp.resp.shared, out) : srqs.next_slot(srqn, out);
    }
    if (!a.rq.length)
        return false;
    out = {a.rq.lkey, a.pd, wqe_offset(a.rq, qp.resp.rq_index), 1u << a.rq.stride_log};
    return true;
}

WqeFault ReceiveQueue::read(const Qp &qp, RecvWqe &out)
{
    ReceiveSlot slot;
    return place(qp, slot) ? engine_.reader.read_receive(slot, out) : WqeFault::Unreadable;
}

void ReceiveQueue::hold(Qp &qp)
{
    const uint32_t srqn = srqn_of(qp);
    if (!srqn || qp.resp.holds_shared)
        return;
    qp.resp.shared = engine_.device.srqs->take(srqn);
    qp.resp.holds_shared = true;
}

uint32_t ReceiveQueue::consume(Qp &qp)
{
    if (!srqn_of(qp))
        return wqe_offset(qp.a.rq, qp.resp.rq_index++);
    hold(qp);
    qp.resp.holds_shared = false;
    return qp.resp.shared.offset;
}

bool ReceiveQueue::complete(Qp &qp, const Received &message)
{
    hghca_cqe cqe{};
    cqe.my_qpn = le32(qp.a.qpn);
    cqe.rqpn = le32(message.src_qpn);
    cqe.rlid_path_sl = le32(path_word(message));
    cqe.imm = message.imm;
    cqe.byte_cnt = le32(message.byte_count);
    cqe.my_ee = le32(srqn_of(qp));
    cqe.wqe = le32(consume(qp));
    cqe.opcode = message.bth_opcode;
    return engine_.device.cqs->post(cqn_of(qp), cqe, message.solicited);
}

bool ReceiveQueue::fail(Qp &qp, Status status)
{
    hghca_err_cqe error{};
    error.my_qpn = le32(qp.a.qpn);
    error.syndrome = syndrome_of(status);
    error.my_ee = le32(srqn_of(qp));
    error.wqe = le32(consume(qp));
    error.opcode = HGHCA_OPCODE_RECV_ERROR;
    hghca_cqe cqe;
    static_assert(sizeof(cqe) == sizeof(error));
    append(reinterpret_cast<uint8_t *>(&cqe), error);
    engine_.count(qp, status == Status::Flushed ? qp_counter::cqe_flush : qp_counter::cqe_error);
    return engine_.device.cqs->post(cqn_of(qp), cqe, true);
}

bool ReceiveQueue::flush(Qp &qp)
{
    Work &work = engine_.device.work;
    ReceiveSlot slot;
    // Of an SRQ that has gone, software has all its WQEs back.
    if (qp.resp.holds_shared && place(qp, slot))
        fail(qp, Status::Flushed);
    qp.resp.holds_shared = false;
    for (uint32_t n = 0; n < qp.a.rq.length; n++) {
        if (engine_.reader.receive_posted(qp.a, qp.resp.rq_index) != WqeReader::Posted::Yes)
            break;
        if (work.over())
            return true;
        work.add();
        if (!fail(qp, Status::Flushed))
            break;
    }
    return false;
}

}  // namespace hghca
