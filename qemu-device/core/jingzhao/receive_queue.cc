// SPDX-License-Identifier: GPL-2.0-or-later
#include "jingzhao/receive_queue.h"

#include "byte_order.h"
#include "device.h"
#include "jingzhao/cq.h"
#include "jingzhao/srq.h"
#include "jingzhao/translate.h"
#include "transport/transport.h"

namespace hghca {

namespace {

uint32_t path_word(const Received &message)
{
    uint32_t word = field_put(HGHCA_CQE_SL_MASK, message.sl);
    if (message.global_header)
        word |= HGHCA_CQE_GRH | field_put(HGHCA_CQE_NETWORK_MASK, message.ipv6 ? HGHCA_CQE_IPV6 : HGHCA_CQE_IPV4);
    if (message.vlan >= 0)
        word |= HGHCA_CQE_VLAN_VALID | field_put(HGHCA_CQE_VLAN_ID_MASK, uint32_t(message.vlan));
    return word;
}

}  // namespace

ReceiveQueue::ReceiveQueue(Device &device) : device_(device), reader_(device.host, *device.memory) {}

Srqn ReceiveQueue::srqn_of(const Qp &qp) { return qp.a.xrcd ? qp.resp.xrc_srqn : qp.a.srqn; }

Cqn ReceiveQueue::cqn_of(const Qp &qp)
{
    return qp.a.xrcd ? device_.srqs->cqn(qp.resp.xrc_srqn) : qp.a.cqn_recv;
}

Posted ReceiveQueue::posted(const Qp &qp)
{
    const Srqn srqn = srqn_of(qp);
    return srqn == kNoSrqn ? reader_.receive_posted(qp.a, qp.resp.rq_index) : device_.srqs->posted(srqn);
}

Counted ReceiveQueue::count(const Qp &qp, uint32_t &out)
{
    const bool known = srqn_of(qp) == kNoSrqn && reader_.receives_posted(qp.a, qp.resp.rq_index, out);
    return known ? Counted::Yes : Counted::Unknown;
}

bool ReceiveQueue::place(const Qp &qp, ReceiveSlot &out)
{
    const QpAttributes &a = qp.a;
    if (const Srqn srqn = srqn_of(qp); srqn != kNoSrqn) {
        SharedReceiveQueues &srqs = *device_.srqs;
        return qp.resp.holds_shared ? srqs.slot_at(srqn, qp.resp.shared, out) : srqs.next_slot(srqn, out);
    }
    if (!a.rq.length)
        return false;
    out = {a.rq.lkey, a.pd, wqe_address(a.rq, qp.resp.rq_index), 1u << a.rq.stride_log};
    return true;
}

WqeFault ReceiveQueue::read(const Qp &qp, RecvWqe &out)
{
    ReceiveSlot slot;
    return place(qp, slot) ? reader_.read_receive(slot, out) : WqeFault::Unreadable;
}

void ReceiveQueue::hold(Qp &qp)
{
    const Srqn srqn = srqn_of(qp);
    if (srqn == kNoSrqn || qp.resp.holds_shared)
        return;
    qp.resp.shared = device_.srqs->take(srqn);
    qp.resp.holds_shared = true;
}

uint32_t ReceiveQueue::consume(Qp &qp)
{
    if (srqn_of(qp) == kNoSrqn)
        return wqe_offset(qp.a.rq, qp.resp.rq_index++);
    hold(qp);
    qp.resp.holds_shared = false;
    return qp.resp.shared.offset;
}

Completed ReceiveQueue::complete(Qp &qp, const Received &message)
{
    hghca_cqe cqe{};
    cqe.my_qpn = le32(number(qp.a.qpn));
    cqe.rqpn = le32(number(message.src_qpn));
    cqe.rlid_path_sl = le32(path_word(message));
    cqe.imm = message.imm;
    cqe.byte_cnt = le32(message.byte_count);
    cqe.my_ee = le32(number(srqn_of(qp)));
    cqe.wqe = le32(consume(qp));
    cqe.opcode = message.bth_opcode;
    return device_.cqs->post(cqn_of(qp), cqe, message.solicited);
}

Completed ReceiveQueue::fail(Qp &qp, Status status)
{
    hghca_err_cqe error{};
    error.my_qpn = le32(number(qp.a.qpn));
    error.syndrome = syndrome_of(status);
    error.my_ee = le32(number(srqn_of(qp)));
    error.wqe = le32(consume(qp));
    error.opcode = HGHCA_OPCODE_INVALID;
    hghca_cqe cqe;
    static_assert(sizeof(cqe) == sizeof(error));
    append(reinterpret_cast<uint8_t *>(&cqe), error);
    device_.transport->count(qp, status == Status::Flushed ? qp_counter::cqe_flush : qp_counter::cqe_error);
    return device_.cqs->post(cqn_of(qp), cqe, true);
}

Flushed ReceiveQueue::flush(Qp &qp)
{
    Work &work = device_.work;
    ReceiveSlot slot;
    // Of an SRQ that has gone, software has all its WQEs back.
    if (qp.resp.holds_shared && place(qp, slot))
        (void)fail(qp, Status::Flushed);
    qp.resp.holds_shared = false;
    for (uint32_t n = 0; n < qp.a.rq.length; n++) {
        if (reader_.receive_posted(qp.a, qp.resp.rq_index) != Posted::Yes)
            break;
        if (work.over())
            return Flushed::Part;
        work.add();
        if (fail(qp, Status::Flushed) == Completed::CqFailed)
            break;
    }
    return Flushed::All;
}

XrcTarget ReceiveQueue::xrc_target(Srqn srqn, uint32_t xrcd, uint32_t &pd)
{
    return device_.srqs->xrc_target(srqn, xrcd, pd);
}

}  // namespace hghca
