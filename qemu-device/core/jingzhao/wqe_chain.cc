// SPDX-License-Identifier: GPL-2.0-or-later
#include "jingzhao/wqe_chain.h"

#include "byte_order.h"
#include "device.h"
#include "jingzhao/cq.h"
#include "jingzhao/qp_table.h"
#include "jingzhao/translate.h"
#include "transport/transport.h"

namespace hghca {

WqeChain::WqeChain(Device &device) : device_(device), reader_(device.host, *device.memory) {}

void WqeChain::ring(const SendDoorbell &db)
{
    Qp *qp = device_.initialized ? device_.qps->find(db.qpn) : nullptr;
    if (!qp) {
        device_.counters_.db_bad_object++;
        return;
    }
    if (qp->a.usr_page != db.uar_page) {
        device_.counters_.db_bad_page++;
        return;
    }
    if (qp->state < QpState::Rts) {
        device_.counters_.db_bad_state++;
        return;
    }
    if (db.units && qp->a.sq.length)
        announce(*qp, db);
    device_.transport->posted(*qp);
}

void WqeChain::announce(Qp &qp, const SendDoorbell &db)
{
    RequesterState &r = qp.req;
    // However the chain is linked, the walk ends one queue past the last head.
    const uint16_t limit = uint16_t(db.head + qp.a.sq.length);
    if (index_before(r.doorbell_limit, limit))
        r.doorbell_limit = limit;
    if (index_before(db.head, r.next_index) && !r.next.valid && r.fault == Status::Success)
        look_again(qp);
    // An earlier announcement that still waits leads to this one along its chain.
    if (!index_before(db.head, r.next_index) && !(announcement_waits(r) && index_before(r.announced.index, db.head)))
        r.announced = {db.head, db.opcode, db.units, db.fence, true};
}

// A list was begun before its doorbell, along the chain, and its end reached while software still linked the rest.
void WqeChain::look_again(Qp &qp)
{
    WqeRef following;
    switch (follow(qp, uint16_t(qp.req.next_index - 1), following)) {
    case Following::Posted:
        device_.transport->extend(qp, following);
        break;
    case Following::None:
        break;   // that was all of it
    case Following::Wrong:
        device_.transport->set_fault(qp, Status::LocalOperation);
        break;
    }
}

Following WqeChain::peek(Qp &qp, uint16_t index, WqeRef &out)
{
    WqeRef &announced = qp.req.announced;
    if (!announced.valid)
        return Following::None;
    if (index_before(index, announced.index))
        return Following::Wrong;
    announced.valid = false;
    if (announced.index != index)
        return Following::None;
    out = announced;
    out.valid = true;
    return Following::Posted;
}

Following WqeChain::follow(const Qp &qp, uint16_t index, WqeRef &out)
{
    const bool good = reader_.read_link(qp.a, index, out);
    // A link that leads elsewhere, or a chain that loops.
    if (!good || (out.valid && !index_before(out.index, qp.req.doorbell_limit)))
        return Following::Wrong;
    return out.valid ? Following::Posted : Following::None;
}

WqeFault WqeChain::read(const Qp &qp, const WqeRef &ref, uint32_t frame_limit, SendWqe &out)
{
    const WqeReader::Rules rules{
        .frame_limit = frame_limit, .unsignaled = device_.features.unsignaled, .gids = device_.port.addresses.has_gids()};
    return reader_.read_send(qp.a, ref, rules, out);
}

WqeFault WqeChain::load(const Qp &qp, SendWqe &out)
{
    const uint32_t frame_limit = device_.port.mtu + sizeof(hghca_eth_header) + sizeof(hghca_vlan_tag);
    const WqeFault fault = read(qp, qp.req.next, frame_limit, out);
    return fault == WqeFault::None && !offered(qp, out) ? WqeFault::Operation : fault;
}

WqeFault WqeChain::reload(const Qp &qp, SendWqe &out) { return read(qp, qp.req.oldest, UINT32_MAX, out); }

// What depends on what INIT_HCA has turned on, and on who owns the QP.
bool WqeChain::offered(const Qp &qp, const SendWqe &wqe) const
{
    if ((wqe.changes_keys() || wqe.operation == Operation::SendInvalidate) && !device_.features.memory_management)
        return false;
    if ((wqe.is_flush() || wqe.is_atomic_write()) && !device_.features.placement)
        return false;
    if (wqe.is_atomic() && !device_.features.atomics)
        return false;
    return wqe.operation != Operation::RegisterRegion || qp.a.trusted;
}

Allowed WqeChain::change_keys(const Qp &qp, const SendWqe &wqe)
{
    MemoryTable &memory = *device_.memory;
    const KeyUser user{qp.a.pd, qp.a.qpn};
    return wqe.operation == Operation::RegisterRegion ? memory.register_region(qp.a.pd, registration_of(wqe))
           : wqe.operation == Operation::BindWindow   ? memory.bind_window(user, binding_of(wqe))
                                                      : memory.invalidate(user, wqe.rkey);
}

Completed WqeChain::complete(const Qp &qp, uint16_t index, const SentWqe &wqe, uint32_t byte_count)
{
    hghca_cqe cqe{};
    cqe.my_qpn = le32(number(qp.a.qpn));
    cqe.byte_cnt = le32(byte_count);
    cqe.wqe = le32(wqe_offset(qp.a.sq, index));
    cqe.opcode = opcode_of(wqe.operation);
    cqe.is_send = 1;
    return device_.cqs->post(qp.a.cqn_send, cqe, false);
}

Completed WqeChain::fail(const Qp &qp, uint16_t index, Status status)
{
    hghca_err_cqe error{};
    error.my_qpn = le32(number(qp.a.qpn));
    error.syndrome = syndrome_of(status);
    error.wqe = le32(wqe_offset(qp.a.sq, index));
    error.opcode = HGHCA_OPCODE_INVALID;
    error.is_send = 1;
    hghca_cqe cqe;
    static_assert(sizeof(cqe) == sizeof(error));
    append(reinterpret_cast<uint8_t *>(&cqe), error);
    return device_.cqs->post(qp.a.cqn_send, cqe, true);
}

}  // namespace hghca
