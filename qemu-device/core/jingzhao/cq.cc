// SPDX-License-Identifier: GPL-2.0-or-later
// Completion queues (interface document, 4.8, 5.3, 7).
#include <algorithm>

#include "byte_order.h"
#include "device.h"
#include "jingzhao/cq.h"
#include "jingzhao/eq.h"

namespace hghca {

CompletionQueues::CompletionQueues(Device &device)
    : device_(device), cache_(*device.icm, device.counters_, device.work), timers_(1u << kLogMaxCqs)
{
}

void CompletionQueues::configure(uint64_t base, unsigned log_count) { cache_.configure(base, 1ull << log_count); }

void CompletionQueues::clear()
{
    cache_.clear();
    timers_.clear();
}

void CompletionQueues::trim(size_t capacity) { cache_.trim(capacity); }

bool CompletionQueues::write_back(uint64_t from, uint64_t length) { return cache_.write_back(from, length); }

void CompletionQueues::forget(uint64_t from, uint64_t length) { cache_.forget(from, length); }

CompletionQueues::Cached *CompletionQueues::find(Cqn cqn) { return cache_.find(number(cqn), valid).context; }

bool CompletionQueues::valid(const Context &cq, uint32_t)
{
    return cq.ring.logsize <= kLogMaxCqSize && cq.ring.good();
}

uint8_t CompletionQueues::sw2hw(Cqn cqn, const hghca_cqc &in)
{
    Cached *old;
    if (uint8_t status = cache_.find_for_command(number(cqn), valid, old))
        return status;
    uint32_t logsize = field_get(HGHCA_CQC_LOGSIZE_MASK, be32(in.logsize_usrpage));
    if (logsize < 1 || logsize > kLogMaxCqSize)
        return HGHCA_CMD_STAT_BAD_SIZE;
    Context cq{};
    const bool timed = device_.caps & HGHCA_CAP_CLOCK && be32(in.flags) & HGHCA_CQ_FLAG_TIMESTAMP;
    cq.ring = {Key(be32(in.lkey)), be32(in.pd), uint8_t(logsize), timed ? kLogTimedEntry : kLogEntry, be64(in.start)};
    // The document does not use the PD, so software of the base leaves it as it is.
    if (!device_.caps)
        if (const Mpt *region = device_.memory->find(cq.ring.lkey))
            cq.ring.pd = region->pd;
    if (Cqn(be32(in.cqn)) != cqn || !cq.ring.allowed(*device_.memory))
        return HGHCA_CMD_STAT_BAD_PARAM;
    cq.eqn = be32(in.comp_eqn);
    if (cq.eqn >= device_.eqs->count())
        return HGHCA_CMD_STAT_BAD_PARAM;
    // What an extension makes live is not looked at without it.
    if (device_.caps & HGHCA_CAP_CQ_ARM) {
        cq.usr_page = uar_index(field_get(HGHCA_CQC_USRPAGE_MASK, be32(in.logsize_usrpage)));
        cq.armed = be32(in.flags) & HGHCA_CQ_STATE_ARMED ? HGHCA_CQ_ARM_NEXT : 0;
    }
    uint64_t dbr = be64(in.dbr_addr);
    if (device_.caps & HGHCA_CAP_DBR && dbr & HGHCA_DBR_VALID) {
        cq.dbr_addr = dbr & ~HGHCA_DBR_VALID;
        if (!cq.dbr_addr || cq.dbr_addr % sizeof(hghca_cq_dbr))
            return HGHCA_CMD_STAT_BAD_PARAM;
    }
    if (old)
        return HGHCA_CMD_STAT_BAD_RES_STATE;
    cache_.insert(number(cqn), cq);
    return HGHCA_CMD_STAT_OK;
}

uint8_t CompletionQueues::hw2sw(Cqn cqn)
{
    Cached *cq;
    if (uint8_t status = cache_.find_for_command(number(cqn), valid, cq))
        return status;
    if (!cq)
        return HGHCA_CMD_STAT_BAD_RES_STATE;
    device_.eqs->forget_completion(cqn);
    cache_.erase(number(cqn));
    return HGHCA_CMD_STAT_OK;
}

uint8_t CompletionQueues::query(Cqn cqn, hghca_cqc &out)
{
    Cached *cq;
    if (uint8_t status = cache_.find_for_command(number(cqn), valid, cq))
        return status;
    if (!cq)
        return HGHCA_CMD_STAT_BAD_RES_STATE;
    out = {};
    out.flags = be32((cq->failed ? HGHCA_CQ_FAILED : 0) |
                     (cq->ring.log_entry == kLogTimedEntry ? HGHCA_CQ_FLAG_TIMESTAMP : 0) |
                     (cq->armed == HGHCA_CQ_ARM_NEXT        ? HGHCA_CQ_STATE_ARMED
                      : cq->armed == HGHCA_CQ_ARM_SOLICITED ? HGHCA_CQ_STATE_ARMED_SOL
                                                            : 0));
    out.start = be64(cq->ring.start);
    out.logsize_usrpage = be32(field_put(HGHCA_CQC_LOGSIZE_MASK, cq->ring.logsize) |
                               field_put(HGHCA_CQC_USRPAGE_MASK, cq->usr_page));
    out.comp_eqn = be32(cq->eqn);
    out.pd = be32(cq->ring.pd);
    out.lkey = be32(number(cq->ring.lkey));
    out.solicited_index = be32(cq->solicited_end);
    out.producer_index = be32(cq->producer);
    hghca_cq_dbr dbr;
    if (cq->dbr_addr && device_.host.read(cq->dbr_addr, &dbr, sizeof(dbr)))
        out.consumer_index = be32(le32(dbr.consumer_index));
    out.cqn = be32(number(cqn));
    out.dbr_addr = be64(cq->dbr_addr ? cq->dbr_addr | HGHCA_DBR_VALID : 0);
    return HGHCA_CMD_STAT_OK;
}

// CQEs written and not consumed. Without a doorbell record the owner bytes show it,
// which are software's from the newest on back to the oldest not consumed: of more than `limit`, limit + 1.
uint64_t CompletionQueues::outstanding(Cached &cq, uint64_t limit, bool &readable)
{
    readable = true;
    if (cq.dbr_addr) {
        hghca_cq_dbr dbr;
        readable = device_.host.read(cq.dbr_addr, &dbr, sizeof(dbr));
        return cq.producer - le32(dbr.consumer_index);
    }
    uint64_t low = 0, high = std::min(limit + 1, uint64_t(1) << cq.ring.logsize);
    while (low < high) {
        const uint64_t middle = (low + high) / 2;
        const auto slot = cq.buffer.probe(device_.host, *device_.memory, cq.ring, uint32_t(cq.producer - 1 - middle));
        if (slot == QueueBuffer::Result::Fault) {
            readable = false;
            break;
        }
        if (slot == QueueBuffer::Result::Full)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint8_t CompletionQueues::resize(Cqn cqn, uint8_t logsize, Key lkey)
{
    Cached *cq;
    if (uint8_t status = cache_.find_for_command(number(cqn), valid, cq))
        return status;
    if (!cq)
        return HGHCA_CMD_STAT_BAD_RES_STATE;
    if (logsize < 1 || logsize > kLogMaxCqSize)
        return HGHCA_CMD_STAT_BAD_SIZE;
    // The command has no address: the new buffer begins where its region does.
    const Mpt *region = device_.memory->find(lkey);
    if (!region)
        return HGHCA_CMD_STAT_BAD_PARAM;
    RingPlace ring{lkey, device_.caps ? cq->ring.pd : region->pd, logsize, cq->ring.log_entry, region->first()};
    if (!ring.allowed(*device_.memory))
        return HGHCA_CMD_STAT_BAD_PARAM;
    bool readable;
    uint64_t n = outstanding(*cq, 1ull << logsize, readable);
    if (!readable)
        return HGHCA_CMD_STAT_BAD_PARAM;
    if (n > 1ull << logsize)
        return HGHCA_CMD_STAT_BAD_SIZE;
    cache_.mark_dirty(*cq);
    cq->ring = ring;
    cq->buffer = {};
    return HGHCA_CMD_STAT_OK;
}

Completed CompletionQueues::fail(Cqn cqn, Cached &cq, uint8_t syndrome)
{
    cache_.mark_dirty(cq);
    cq.failed = true;
    device_.eqs->post_cq_error(cqn, syndrome);
    return Completed::CqFailed;
}

bool CompletionQueues::exists(Cqn cqn) { return find(cqn); }

Completed CompletionQueues::post(Cqn cqn, const hghca_cqe &cqe, bool solicited)
{
    Cached *cq = find(cqn);
    if (!cq)
        return Completed::CqFailed;
    if (cq->failed) {
        device_.counters_.cq_overrun++;
        return Completed::CqFailed;
    }
    auto write = [&](const auto &entry) {
        return cq->buffer.write(device_.host, *device_.memory, cq->ring, cq->producer, entry);
    };
    switch (cq->ring.log_entry == kLogTimedEntry
                ? write(hghca_timed_cqe{le64(device_.host.now_ns()), {}, cqe})
                : write(cqe)) {
    case QueueBuffer::Result::Full:
        device_.counters_.cq_overrun++;
        return fail(cqn, *cq, HGHCA_CQ_ERROR_OVERRUN);
    case QueueBuffer::Result::Fault:
        return fail(cqn, *cq, HGHCA_CQ_ERROR_ACCESS);
    case QueueBuffer::Result::Ok:
        break;
    }
    cache_.mark_dirty(*cq);
    cq->producer++;
    // The last solicited one is kept within reach of a signed comparison.
    constexpr uint32_t kReach = 1u << 30;
    if (solicited)
        cq->solicited_end = cq->producer;
    else if (cq->producer - cq->solicited_end > kReach)
        cq->solicited_end = cq->producer - kReach;
    if (!(device_.caps & HGHCA_CAP_CQ_ARM))
        device_.eqs->post_completion(cq->eqn, cqn);
    else if (cq->armed == HGHCA_CQ_ARM_NEXT || (cq->armed == HGHCA_CQ_ARM_SOLICITED && solicited))
        raise_event(cqn, *cq);
    return Completed::Yes;
}

// The CQ is armed, and has a completion that it is armed for.
void CompletionQueues::raise_event(Cqn cqn, Cached &cq)
{
    cache_.mark_dirty(cq);
    if (cq.armed == HGHCA_CQ_ARM_NEXT && waits(cqn, cq))
        return;
    cq.armed = 0;
    cq.deadline_ns = 0;
    device_.eqs->post_completion(cq.eqn, cqn);
}

// Moderation: whether the event waits for more completions. The first of them starts the clock.
bool CompletionQueues::waits(Cqn cqn, Cached &cq)
{
    if (!cq.period_us || cq.producer - cq.armed_index >= cq.max_count)
        return false;   // count 0 too
    const uint64_t now_ns = device_.host.now_ns();
    if (!cq.deadline_ns) {
        cq.deadline_ns = now_ns + uint64_t(cq.period_us) * 1000;
        timers_.arm(cqn, cq.deadline_ns);
    }
    return now_ns < cq.deadline_ns;
}

uint8_t CompletionQueues::moderate(Cqn cqn, uint16_t count, uint16_t period_us)
{
    Cached *cq;
    if (uint8_t status = cache_.find_for_command(number(cqn), valid, cq))
        return status;
    if (!cq)
        return HGHCA_CMD_STAT_BAD_RES_STATE;
    cache_.mark_dirty(*cq);
    cq->max_count = count;
    cq->period_us = period_us;
    // What waits by the old rule does so by the new one from now on.
    if (cq->deadline_ns) {
        cq->deadline_ns = 0;
        raise_event(cqn, *cq);
    }
    return HGHCA_CMD_STAT_OK;
}

void CompletionQueues::expire(uint64_t now_ns)
{
    for (Work &work = device_.work; timers_.next() <= now_ns && !work.over(); work.add()) {
        const Cqn cqn = timers_.pop();
        Cached *cq = find(cqn);
        if (!cq || !cq->deadline_ns)
            continue;
        if (cq->deadline_ns > now_ns)
            timers_.arm(cqn, cq->deadline_ns);
        else
            raise_event(cqn, *cq);
    }
}

void CompletionQueues::doorbell(uint32_t uar_page, uint32_t low, uint32_t high)
{
    if (!(device_.caps & HGHCA_CAP_CQ_ARM))
        return;
    const Cqn cqn{field_get(HGHCA_CQ_ARM_CQN_MASK, high)};
    uint32_t command = field_get(HGHCA_CQ_ARM_CMD_MASK, high);
    Cached *cq = find(cqn);
    if (!cq) {
        device_.counters_.db_bad_object++;
        return;
    }
    if (cq->usr_page != uar_page) {
        device_.counters_.db_bad_page++;
        return;
    }
    if (command != HGHCA_CQ_ARM_SOLICITED && command != HGHCA_CQ_ARM_NEXT)
        return;
    cache_.mark_dirty(*cq);
    // One that waits for any completion is not narrowed by a later wish for a solicited one.
    if (cq->armed != HGHCA_CQ_ARM_NEXT)
        cq->armed = uint8_t(command);
    if (command == HGHCA_CQ_ARM_NEXT) {
        cq->armed_index = low;
        cq->deadline_ns = 0;
    }
    const uint32_t end = command == HGHCA_CQ_ARM_SOLICITED ? cq->solicited_end : cq->producer;
    if (int32_t(end - low) > 0)
        raise_event(cqn, *cq);
}

}  // namespace hghca
