// SPDX-License-Identifier: GPL-2.0-or-later
#include "jingzhao/srq.h"

#include "byte_order.h"
#include "device.h"
#include "jingzhao/cq.h"
#include "jingzhao/eq.h"

namespace hghca {

SharedReceiveQueues::SharedReceiveQueues(Device &device) : device_(device), cache_(*device.icm, device.counters_, device.work) {}

void SharedReceiveQueues::configure(uint64_t base, unsigned log_count) { cache_.configure(base, 1ull << log_count); }

void SharedReceiveQueues::clear() { cache_.clear(); }

void SharedReceiveQueues::trim(size_t capacity) { cache_.trim(capacity); }

bool SharedReceiveQueues::write_back(uint64_t from, uint64_t length) { return cache_.write_back(from, length); }

void SharedReceiveQueues::forget(uint64_t from, uint64_t length) { cache_.forget(from, length); }

SrqContext *SharedReceiveQueues::find(Srqn srqn) { return cache_.find(number(srqn), valid).context; }

bool SharedReceiveQueues::valid(const Context &srq, uint32_t)
{
    return srq.log_wqes <= kLogMaxSrqSize && srq.stride_log >= HGHCA_WQE_MIN_STRIDE_LOG &&
           srq.stride_log <= HGHCA_WQE_MAX_STRIDE_LOG && srq.is_slot(srq.next) && srq.xrcd <= kMaxXrcd;
}

// ---- commands

uint8_t SharedReceiveQueues::sw2hw(Srqn srqn, const hghca_srqc &in)
{
    Context *old;
    if (uint8_t status = cache_.find_for_command(number(srqn), valid, old))
        return status;
    if (in.logsize > kLogMaxSrqSize)
        return HGHCA_CMD_STAT_BAD_SIZE;
    const uint64_t dbr = be64(in.dbr_addr);
    Context srq{};
    srq.lkey = Key(be32(in.lkey));
    srq.pd = be32(in.pd);
    srq.log_wqes = in.logsize;
    srq.stride_log = in.entry_sz_log;
    srq.taken = be16(in.taken);
    srq.limit = be16(in.limit);
    srq.next = be32(in.next);
    srq.dbr_addr = dbr & ~HGHCA_DBR_VALID;
    srq.epoch = ++epoch_;
    const bool xrc = be32(in.flags) & HGHCA_SRQ_XRC;
    if (xrc) {
        srq.xrcd = be32(in.xrcd);
        srq.cqn = Cqn(be32(in.cqn));
        if (!(device_.caps & HGHCA_CAP_XRC) || !srq.xrcd || !device_.cqs->exists(srq.cqn))
            return HGHCA_CMD_STAT_BAD_PARAM;
    }
    if (Srqn(be32(in.srqn)) != srqn || !valid(srq, number(srqn)) || !(dbr & HGHCA_DBR_VALID) || !srq.dbr_addr ||
        srq.dbr_addr % sizeof(hghca_srq_dbr) ||
        !device_.memory->check_queue(srq.lkey, srq.pd, 0, srq.bytes(), Access::LocalRead))
        return HGHCA_CMD_STAT_BAD_PARAM;
    if (old)
        return HGHCA_CMD_STAT_BAD_RES_STATE;
    check_limit(srqn, cache_.insert(number(srqn), srq));
    return HGHCA_CMD_STAT_OK;
}

uint8_t SharedReceiveQueues::hw2sw(Srqn srqn)
{
    Context *srq;
    if (uint8_t status = cache_.find_for_command(number(srqn), valid, srq))
        return status;
    if (!srq)
        return HGHCA_CMD_STAT_BAD_RES_STATE;
    cache_.erase(number(srqn));
    return HGHCA_CMD_STAT_OK;
}

uint8_t SharedReceiveQueues::query(Srqn srqn, hghca_srqc &out)
{
    Context *srq;
    if (uint8_t status = cache_.find_for_command(number(srqn), valid, srq))
        return status;
    if (!srq)
        return HGHCA_CMD_STAT_BAD_RES_STATE;
    out = {};
    out.flags = be32((srq->failed ? HGHCA_SRQ_FAILED : 0) | (srq->xrcd ? HGHCA_SRQ_XRC : 0));
    out.xrcd = be32(srq->xrcd);
    out.cqn = be32(number(srq->cqn));
    out.srqn = be32(number(srqn));
    out.pd = be32(srq->pd);
    out.lkey = be32(number(srq->lkey));
    out.logsize = srq->log_wqes;
    out.entry_sz_log = srq->stride_log;
    out.limit = be16(srq->limit);
    out.next = be32(srq->next);
    out.taken = be16(srq->taken);
    out.dbr_addr = be64(srq->dbr_addr | HGHCA_DBR_VALID);
    return HGHCA_CMD_STAT_OK;
}

uint8_t SharedReceiveQueues::arm(Srqn srqn, uint64_t limit)
{
    Context *srq;
    if (uint8_t status = cache_.find_for_command(number(srqn), valid, srq))
        return status;
    if (!srq)
        return HGHCA_CMD_STAT_BAD_RES_STATE;
    if (limit > UINT16_MAX)
        return HGHCA_CMD_STAT_BAD_PARAM;
    cache_.mark_dirty(*srq);
    srq->limit = uint16_t(limit);
    check_limit(srqn, *srq);
    return HGHCA_CMD_STAT_OK;
}

uint8_t SharedReceiveQueues::resize(Srqn srqn, const hghca_resize_srq &in)
{
    Context *srq;
    if (uint8_t status = cache_.find_for_command(number(srqn), valid, srq))
        return status;
    if (!srq)
        return HGHCA_CMD_STAT_BAD_RES_STATE;
    if (in.logsize > kLogMaxSrqSize || in.logsize < srq->log_wqes)
        return HGHCA_CMD_STAT_BAD_SIZE;
    Context larger = *srq;
    larger.log_wqes = in.logsize;
    larger.lkey = Key(be32(in.lkey));
    if (!device_.memory->check_queue(larger.lkey, larger.pd, 0, larger.bytes(), Access::LocalRead))
        return HGHCA_CMD_STAT_BAD_PARAM;
    cache_.mark_dirty(*srq);
    *srq = larger;
    return HGHCA_CMD_STAT_OK;
}

// ---- for the QPs

bool SharedReceiveQueues::is_basic(Srqn srqn)
{
    const Context *srq = find(srqn);
    return srq && !srq->xrcd;
}

XrcTarget SharedReceiveQueues::xrc_target(Srqn srqn, uint32_t xrcd, uint32_t &pd)
{
    const Context *srq = find(srqn);
    if (!srq || srq->xrcd != xrcd)
        return XrcTarget::None;
    pd = srq->pd;
    return XrcTarget::Found;
}

Cqn SharedReceiveQueues::cqn(Srqn srqn)
{
    const Context *srq = find(srqn);
    return srq ? srq->cqn : kNoCqn;
}

bool SharedReceiveQueues::waiting(const Context &srq, uint32_t &out)
{
    uint16_t head;
    if (!read_record(device_.host, srq.dbr_addr, head))
        return false;
    // More than the queue holds cannot be: no WQE is better than a stale one.
    const auto posted = uint16_t(head - srq.taken);
    out = posted <= 1u << srq.log_wqes ? posted : 0;
    return true;
}

void SharedReceiveQueues::fail(Srqn srqn, Context &srq)
{
    cache_.mark_dirty(srq);
    srq.failed = true;
    device_.eqs->post_srq(HGHCA_EVENT_SRQ_CATAS_ERROR, srqn);
}

void SharedReceiveQueues::check_limit(Srqn srqn, Context &srq)
{
    uint32_t left;
    if (!srq.limit || srq.failed || !waiting(srq, left) || left >= srq.limit)
        return;
    cache_.mark_dirty(srq);
    srq.limit = 0;
    device_.eqs->post_srq(HGHCA_EVENT_SRQ_LIMIT, srqn);
}

Posted SharedReceiveQueues::posted(Srqn srqn)
{
    Context *srq = find(srqn);
    if (!srq || srq->failed)
        return Posted::Unreadable;
    uint32_t left;
    if (!waiting(*srq, left)) {
        fail(srqn, *srq);
        return Posted::Unreadable;
    }
    return left ? Posted::Yes : Posted::No;
}

bool SharedReceiveQueues::slot_at(Srqn srqn, const SharedWqe &wqe, ReceiveSlot &out)
{
    const Context *srq = find(srqn);
    if (!srq || srq->epoch != wqe.epoch)
        return false;
    out = {srq->lkey, srq->pd, wqe.offset, 1u << srq->stride_log};
    return true;
}

bool SharedReceiveQueues::next_slot(Srqn srqn, ReceiveSlot &out)
{
    const Context *srq = find(srqn);
    return srq && slot_at(srqn, {srq->next, srq->epoch}, out);
}

SharedWqe SharedReceiveQueues::take(Srqn srqn)
{
    Context *srq = find(srqn);
    if (!srq)
        return {};
    const SharedWqe taken{srq->next, srq->epoch};
    cache_.mark_dirty(*srq);
    srq->taken++;
    // The link stands in the WQE since before it was posted. A bad one fails the WQE behind, not this one.
    uint32_t word;
    if (device_.memory->read(srq->lkey, srq->pd, taken.offset, &word, sizeof(word)) &&
        srq->is_slot(le32(word) & HGHCA_NEXT_NDA_MASK))
        srq->next = le32(word) & HGHCA_NEXT_NDA_MASK;
    else
        fail(srqn, *srq);
    check_limit(srqn, *srq);
    return taken;
}

}  // namespace hghca
