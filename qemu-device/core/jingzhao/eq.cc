// SPDX-License-Identifier: GPL-2.0-or-later
// Event queues (interface document, 4.7, 5.4, 10).
#include <algorithm>
#include <bit>
#include <utility>

#include "byte_order.h"
#include "device.h"
#include "jingzhao/cq.h"
#include "jingzhao/eq.h"

namespace hghca {

namespace {

// Without doorbells the device looks for room in a full EQ once in this time.
constexpr uint64_t kLookAgainNs = 1'000'000;

// Have the keys of the EQ no place for its next EQE? Whether there is memory, there or at the tables, is another matter.
bool has_no_place(MemoryTable &memory, const EqContext &eq)
{
    SegmentArray<1> segments;
    AbsentPage absent;
    const uint64_t at = eq.ring.address(eq.producer);
    return memory.on_demand(eq.ring.lkey) || memory.find_segments(eq.ring.lkey, eq.ring.pd, at, eq.ring.entry_bytes(),
                                                                  Access::LocalWrite, segments, absent) == Found::No;
}

}  // namespace

EventQueues::EventQueues(Device &device)
    : device_(device), cache_(*device.icm, device.counters_, device.work), waiting_(1u << kLogMaxCqs, 1u << kLogMaxEqs)
{
}

void EventQueues::configure(uint64_t base, unsigned log_count)
{
    clear();
    cache_.configure(base, 1ull << log_count);
}

void EventQueues::clear()
{
    cache_.clear();
    eq_of_type_.fill(0);
    waiting_.clear();
    unfinished_ = 0;
    full_ = 0;
    look_ns_ = UINT64_MAX;
}

void EventQueues::trim(size_t capacity) { cache_.trim(capacity); }

bool EventQueues::write_back(uint64_t from, uint64_t length) { return cache_.write_back(from, length); }

void EventQueues::forget(uint64_t from, uint64_t length) { cache_.forget(from, length); }

bool EventQueues::valid(const Context &eq, uint32_t)
{
    return eq.ring.logsize <= kLogMaxEqSize && eq.ring.log_entry == kLogEntry && eq.ring.good();
}

// Nobody learns of the events of an EQ that cannot be read.
EventQueues::Cached *EventQueues::find(uint32_t eqn)
{
    const Lookup<Cached> found = cache_.find(eqn, valid);
    if (found.unreadable)
        device_.fail_entry("no memory at an EQ's context", HGHCA_HEALTH_EQ_INV);
    return found.context;
}

uint8_t EventQueues::sw2hw(uint32_t eqn, const hghca_eqc &in)
{
    Cached *old;
    if (uint8_t status = cache_.find_for_command(eqn, valid, old))
        return status;
    Context eq{};
    eq.ring = {Key(be32(in.lkey)), be32(in.pd), in.logsize, kLogEntry, be64(in.start)};
    eq.producer = be32(in.producer_index);
    eq.consumer = be32(in.consumer_index);
    eq.vector = in.intr;
    eq.armed = be32(in.flags) & HGHCA_EQ_STATE_ARMED;
    if (in.logsize < 1 || in.logsize > kLogMaxEqSize)
        return HGHCA_CMD_STAT_BAD_SIZE;
    if (in.intr >= kVectors || !eq.ring.allowed(*device_.memory))
        return HGHCA_CMD_STAT_BAD_PARAM;
    if (old)
        return HGHCA_CMD_STAT_BAD_RES_STATE;
    cache_.insert(eqn, eq);
    vectors_[eqn] = eq.vector;
    return HGHCA_CMD_STAT_OK;
}

uint8_t EventQueues::hw2sw(uint32_t eqn)
{
    Cached *eq;
    if (uint8_t status = cache_.find_for_command(eqn, valid, eq))
        return status;
    if (!eq)
        return HGHCA_CMD_STAT_BAD_RES_STATE;
    std::replace(eq_of_type_.begin(), eq_of_type_.end(), eqn, 0u);
    device_.work.add_looks(waiting_.count(eqn));
    waiting_.clear(eqn);
    unfinished_ &= ~(1ull << eqn);
    full_ &= ~(1ull << eqn);
    cache_.erase(eqn);
    return HGHCA_CMD_STAT_OK;
}

uint8_t EventQueues::query(uint32_t eqn, hghca_eqc &out)
{
    Cached *eq;
    if (uint8_t status = cache_.find_for_command(eqn, valid, eq))
        return status;
    if (!eq)
        return HGHCA_CMD_STAT_BAD_RES_STATE;
    out = {};
    out.flags = be32(HGHCA_EQ_OWNER_HW | HGHCA_EQ_FLAG_TR | (eq->armed ? HGHCA_EQ_STATE_ARMED : 0));
    out.start = be64(eq->ring.start);
    out.logsize = eq->ring.logsize;
    out.intr = eq->vector;
    out.pd = be32(eq->ring.pd);
    out.lkey = be32(number(eq->ring.lkey));
    out.consumer_index = be32(eq->consumer);
    out.producer_index = be32(eq->producer);
    return HGHCA_CMD_STAT_OK;
}

uint8_t EventQueues::map(uint32_t eqn, uint64_t mask, bool unmap)
{
    Cached *eq;
    if (uint8_t status = cache_.find_for_command(eqn, valid, eq))
        return status;
    if (!eq)
        return HGHCA_CMD_STAT_BAD_RES_STATE;
    for (unsigned type = 0; type < eq_of_type_.size(); type++) {
        if (!(mask >> type & 1))
            continue;
        if (!unmap)
            eq_of_type_[type] = eqn;
        else if (eq_of_type_[type] == eqn)
            eq_of_type_[type] = 0;
    }
    return HGHCA_CMD_STAT_OK;
}

bool EventQueues::takes(hghca_event_type type) const
{
    return eq_of_type_[type];
}

// Without CQ_ARM no doorbell tells the device that software has consumed EQEs, nor arms an EQ again.
bool EventQueues::has_doorbells() const { return device_.caps & HGHCA_CAP_CQ_ARM; }

// Writes an EQE and raises the vector of an armed EQ. False: no room, or the keys of its buffer are not valid now. Where
// they are and DMA fails all the same, or fails where the keys are looked up, software must not go on as if all were
// well.
bool EventQueues::put(Cached &eq, const hghca_eqe &eqe)
{
    switch (eq.buffer.write(device_.host, *device_.memory, eq.ring, eq.producer, eqe)) {
    case QueueBuffer::Result::Full:
        return false;
    case QueueBuffer::Result::Fault:
        if (has_no_place(*device_.memory, eq))
            return false;
        device_.counters_.eqe_write_errors++;
        device_.fail_entry("no memory at an EQE", HGHCA_HEALTH_EQ_IN_ERR);
        return false;
    case QueueBuffer::Result::Ok:
        break;
    }
    cache_.mark_dirty(eq);
    eq.producer++;
    if (eq.armed) {
        eq.armed = !has_doorbells();
        device_.host.raise_vector(eq.vector);
    }
    return true;
}

// Without doorbells: have expire() look whether this EQ has room.
void EventQueues::wait_for_room(uint32_t eqn)
{
    if (has_doorbells())
        return;
    full_ |= 1ull << eqn;
    if (look_ns_ == UINT64_MAX)
        look_ns_ = device_.host.now_ns() + kLookAgainNs;
}

void EventQueues::expire(uint64_t now_ns)
{
    if (look_ns_ > now_ns)
        return;
    look_ns_ = UINT64_MAX;
    // run() delivers to them in its turn.
    unfinished_ |= std::exchange(full_, 0);
}

// Writes what waits for room in this EQ, as far as there is any, until the slice is over.
void EventQueues::deliver(uint32_t eqn, Cached &eq)
{
    if (eq.overflowed) {
        hghca_eqe eqe{};
        eqe.type = HGHCA_EVENT_EQ_OVERFLOW;
        eqe.event.eq_overflow.eqn = be32(eqn);
        const uint32_t target_eqn = eq_of_type_[HGHCA_EVENT_EQ_OVERFLOW];
        Cached *target = target_eqn == eqn ? &eq : find(target_eqn);
        const bool written = !target || put(*target, eqe);
        if (written) {
            eq.overflowed = false;
            cache_.mark_dirty(eq);
        } else {
            wait_for_room(eqn);
            if (target == &eq)
                return;
        }
    }
    unfinished_ &= ~(1ull << eqn);
    for (; !waiting_.empty(eqn); device_.work.add()) {
        if (device_.work.over()) {
            unfinished_ |= 1ull << eqn;
            return;
        }
        const Cqn cqn = waiting_.front(eqn);
        hghca_eqe eqe{};
        eqe.type = HGHCA_EVENT_COMP;
        eqe.event.comp.cqn = be32(number(cqn));
        if (!put(eq, eqe)) {
            wait_for_room(eqn);
            return;
        }
        waiting_.remove(cqn);
    }
}

void EventQueues::run()
{
    for (uint64_t left = unfinished_; left && !device_.work.over(); left &= left - 1) {
        const auto eqn = uint32_t(std::countr_zero(left));
        unfinished_ &= ~(1ull << eqn);
        if (Cached *eq = find(eqn))
            deliver(eqn, *eq);
    }
}

void EventQueues::post_completion(uint32_t eqn, Cqn cqn)
{
    Cached *eq = find(eqn);
    // One that waits already covers this completion too.
    if (!eq || !waiting_.exists(cqn) || waiting_.waits(cqn))
        return;
    waiting_.push(eqn, cqn);
    deliver(eqn, *eq);
}

bool EventQueues::post_async(const hghca_eqe &eqe)
{
    const uint32_t eqn = eq_of_type_[eqe.type % eq_of_type_.size()];
    Cached *eq = find(eqn);
    if (!eq)
        return false;
    deliver(eqn, *eq);
    if (put(*eq, eqe))
        return true;
    eq->overflowed = true;
    wait_for_room(eqn);
    cache_.mark_dirty(*eq);
    device_.counters_.eq_overrun++;
    if (device_.segment)
        device_.fail_entry("an asynchronous event is lost", HGHCA_HEALTH_ASYNC_EQ_OVERRUN);
    return false;
}

void EventQueues::post_qp(hghca_event_type type, Qpn qpn)
{
    hghca_eqe eqe{};
    eqe.type = uint8_t(type);
    eqe.event.qp.qpn = be32(number(qpn));
    post_async(eqe);
}

void EventQueues::post_srq(hghca_event_type type, Srqn srqn)
{
    hghca_eqe eqe{};
    eqe.type = uint8_t(type);
    eqe.event.srq.srqn = be32(number(srqn));
    post_async(eqe);
}

void EventQueues::post_cq_error(Cqn cqn, uint8_t syndrome)
{
    hghca_eqe eqe{};
    eqe.type = HGHCA_EVENT_CQ_ERROR;
    eqe.event.cq_err.cqn = be32(number(cqn));
    eqe.event.cq_err.syndrome = syndrome;
    post_async(eqe);
}

void EventQueues::post_port_change(bool up)
{
    hghca_eqe eqe{};
    eqe.type = HGHCA_EVENT_PORT_CHANGE;
    eqe.subtype = up ? HGHCA_PORT_CHANGE_UP : HGHCA_PORT_CHANGE_DOWN;
    eqe.event.port_change.port = be32(field_put(HGHCA_EVENT_PORT_MASK, 1));
    post_async(eqe);
}

void EventQueues::post_catastrophic()
{
    hghca_eqe eqe{};
    eqe.type = HGHCA_EVENT_LOCAL_CATAS_ERROR;
    const uint32_t eqn = eq_of_type_[HGHCA_EVENT_LOCAL_CATAS_ERROR];
    if (!eqn)
        return;
    if (Cached *eq = find(eqn)) {
        eq->armed = false;   // so that the vector is raised here alone, whatever becomes of the event
        put(*eq, eqe);
    }
    device_.host.raise_vector(vectors_[eqn]);
}

void EventQueues::forget_completion(Cqn cqn)
{
    if (waiting_.waits(cqn))
        waiting_.remove(cqn);
}

void EventQueues::doorbell(uint32_t uar_page, uint32_t low, uint32_t high)
{
    if (!has_doorbells())
        return;
    if (uar_page) {
        device_.counters_.db_bad_page++;
        return;
    }
    uint32_t eqn = field_get(HGHCA_EQ_ARM_EQN_MASK, high);
    uint32_t command = field_get(HGHCA_EQ_ARM_CMD_MASK, high);
    Cached *eq = find(eqn);
    if (!eq) {
        device_.counters_.db_bad_object++;
        return;
    }
    if (command != HGHCA_EQ_ARM_UPDATE && command != HGHCA_EQ_ARM_ARM)
        return;
    cache_.mark_dirty(*eq);
    eq->consumer = low;
    if (command == HGHCA_EQ_ARM_UPDATE) {
        deliver(eqn, *eq);
        return;
    }
    eq->armed = false;   // so that what is delivered now raises the vector once
    deliver(eqn, *eq);
    if (int32_t(eq->producer - low) > 0)
        device_.host.raise_vector(eq->vector);
    else
        eq->armed = true;
}

}  // namespace hghca
