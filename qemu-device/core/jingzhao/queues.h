// SPDX-License-Identifier: GPL-2.0-or-later
// Completion and event queues, and the table of QPs (interface document, 4.7 to 4.9, 5.3, 5.4).
#pragma once

#include <array>
#include <cstdint>

#include "hghca_hw.h"
#include "jingzhao/context_cache.h"
#include "jingzhao/qp_fields.h"
#include "jingzhao/queue_buffer.h"
#include "jingzhao/translate.h"
#include "jingzhao/waiting_cqs.h"
#include "transport/function.h"
#include "transport/scheduler.h"
#include "wire/number.h"

namespace hghca {

class Device;
struct QpLimits;

constexpr unsigned kVectors = 64;
constexpr unsigned kLogMaxQps = 16;
constexpr unsigned kLogMaxCqs = 17;
constexpr unsigned kLogMaxEqs = 6;
constexpr unsigned kLogMaxCqSize = kLogMaxRing;
constexpr unsigned kLogMaxEqSize = 20;

// An EQ, as cached.
struct EqContext {
    RingPlace ring;
    uint32_t producer, consumer;  // free-running
    uint8_t vector;
    bool armed;
    bool overflowed;   // lost an event, EQ_OVERFLOW is still to be raised
};

template <>
struct Layout<EqContext> {
    static constexpr auto kFields =
        fields(group("ring", &EqContext::ring, 0x10),
               field("producer", &EqContext::producer, 0x1c, FieldAccess::Device),
               field("consumer", &EqContext::consumer, 0x20, FieldAccess::Device),
               field("vector", &EqContext::vector, 0x24, FieldAccess::ReadOnly, up_to(kVectors - 1)),
               field("armed", &EqContext::armed, 0x25, FieldAccess::Device),
               field("overflowed", &EqContext::overflowed, 0x26, FieldAccess::Device));
};

// A CQ, as cached.
struct CqContext {
    RingPlace ring;
    uint32_t eqn;
    uint32_t usr_page;
    uint32_t producer;       // free-running
    uint32_t solicited_end;  // one past the last CQE that was solicited or an error
    uint8_t armed;           // HGHCA_CQ_ARM_*, 0: not
    bool failed;
    uint64_t dbr_addr;       // 0: none
    uint16_t max_count;      // moderation: completions, and
    uint16_t period_us;      // 0: there is none
    uint32_t armed_index;    // consumer index of the arming
    uint64_t deadline_ns;    // of the event; 0: no completion waits
};

template <>
struct Layout<CqContext> {
    static constexpr auto kFields =
        fields(group("ring", &CqContext::ring, 0x10),
               field("eqn", &CqContext::eqn, 0x1c, FieldAccess::ReadOnly, up_to((1u << kLogMaxEqs) - 1)),
               field("usr_page", &CqContext::usr_page, 0x20, FieldAccess::ReadOnly, up_to(HGHCA_UAR_PAGES - 1)),
               field("producer", &CqContext::producer, 0x24, FieldAccess::Device),
               field("solicited_end", &CqContext::solicited_end, 0x28, FieldAccess::Device),
               field("armed", &CqContext::armed, 0x2c, FieldAccess::Device, up_to(HGHCA_CQ_ARM_NEXT)),
               field("failed", &CqContext::failed, 0x2d, FieldAccess::Device),
               field("dbr_addr", &CqContext::dbr_addr, 0x30, FieldAccess::ReadOnly),
               field("max_count", &CqContext::max_count, 0x38, FieldAccess::Command),
               field("period_us", &CqContext::period_us, 0x3a, FieldAccess::Command),
               field("armed_index", &CqContext::armed_index, 0x3c, FieldAccess::Device),
               field("deadline_ns", &CqContext::deadline_ns, 0x40, FieldAccess::Device));
};

class EventQueues {
public:
    explicit EventQueues(Device &device);
    void configure(uint64_t base, unsigned log_count);
    void clear();
    uint8_t sw2hw(uint32_t eqn, const hghca_eqc &context);
    uint8_t hw2sw(uint32_t eqn);
    uint8_t query(uint32_t eqn, hghca_eqc &out);
    uint8_t map(uint32_t eqn, uint64_t mask, bool unmap);
    void doorbell(uint32_t uar_page, uint32_t low, uint32_t high);

    // A completion event of CQ `cqn` on EQ `eqn`; waits in the device when the EQ is full.
    void post_completion(uint32_t eqn, Cqn cqn);
    // An asynchronous event, to the EQ its type is mapped to. eqe.type and event are filled in. False: lost.
    bool post_async(const hghca_eqe &eqe);
    bool takes(hghca_event_type type) const;  // some EQ is mapped for it

    void post_qp(hghca_event_type type, Qpn qpn);
    void post_qp(Event event, Qpn qpn) { post_qp(event_number(event), qpn); }
    void post_srq(hghca_event_type type, Srqn srqn);
    void post_cq_error(Cqn cqn, uint8_t syndrome);
    void post_port_change(bool up);
    // LOCAL_CATAS_ERROR, and the vector of its EQ, armed or not, written or not: no doorbell arms it again, and software
    // that finds no event looks at the registers.
    void post_catastrophic();
    // Events for which there was room, but no time in the slice.
    bool has_work() const { return unfinished_; }
    void run();
    // CQ `cqn` is gone, and its event with it.
    void forget_completion(Cqn cqn);
    uint64_t count() const { return cache_.count(); }
    void trim(size_t capacity);
    bool write_back(uint64_t from, uint64_t length);
    void forget(uint64_t from, uint64_t length);

private:
    using Context = EqContext;
    struct Cached : Context {
        QueueBuffer buffer;
    };
    struct Policy {
        static constexpr IcmSpace kSpace = IcmSpace::Context;
        static constexpr uint32_t kEntrySize = 64;
        static constexpr uint32_t kMagic = 0x45514331;
        static constexpr uint32_t kReserved = 1;
    };

    static bool valid(const Context &eq, uint32_t eqn);
    // nullptr: there is no such EQ. Does not return where that cannot be known.
    Cached *find(uint32_t eqn);
    bool put(Cached &eq, const hghca_eqe &eqe);
    void deliver(uint32_t eqn, Cached &eq);

    Device &device_;
    ContextCache<Context, Cached, Policy> cache_;
    std::array<uint32_t, 64> eq_of_type_{};   // 0: none
    std::array<uint8_t, 1u << kLogMaxEqs> vectors_{};   // for the time when ICM cannot be read
    // Completion events that wait for room, each CQ once.
    WaitingCqs waiting_{1u << kLogMaxCqs, 1u << kLogMaxEqs};
    uint64_t unfinished_ = 0;   // bit n: deliver() was cut short for EQ n
};

class CompletionQueues {
public:
    explicit CompletionQueues(Device &device);
    void configure(uint64_t base, unsigned log_count);
    void clear();
    uint8_t sw2hw(Cqn cqn, const hghca_cqc &context);
    uint8_t hw2sw(Cqn cqn);
    uint8_t query(Cqn cqn, hghca_cqc &out);
    uint8_t resize(Cqn cqn, uint8_t logsize, Key lkey);
    // Events wait for `count` completions or for `period_us`; 0: they do not wait.
    uint8_t moderate(Cqn cqn, uint16_t count, uint16_t period_us);
    void doorbell(uint32_t uar_page, uint32_t low, uint32_t high);
    // The next event that is only waited for in time, on Host::now_ns(), or UINT64_MAX; sends those due.
    uint64_t next_deadline() const { return timers_.next(); }
    void expire(uint64_t now_ns);

    // Writes a CQE (owner is set here, last) and sends the event it is armed for.
    // `solicited`: a solicited event or an error. False: no such CQ, it has
    // failed, or it is full now (CQ_ERROR was sent): the caller moves the QP to ERR.
    bool post(Cqn cqn, const hghca_cqe &cqe, bool solicited);
    bool exists(Cqn cqn);
    uint64_t count() const { return cache_.count(); }
    void trim(size_t capacity);
    bool write_back(uint64_t from, uint64_t length);
    void forget(uint64_t from, uint64_t length);

private:
    using Context = CqContext;
    struct Cached : Context {
        QueueBuffer buffer;
    };
    struct Policy {
        static constexpr IcmSpace kSpace = IcmSpace::Context;
        static constexpr uint32_t kEntrySize = 128;
        static constexpr uint32_t kMagic = 0x43514331;
        static constexpr uint32_t kReserved = 1;
    };

    static bool valid(const Context &cq, uint32_t index);
    Cached *find(Cqn cqn);
    bool fail(Cqn cqn, Cached &cq, uint8_t syndrome);
    void raise_event(Cqn cqn, Cached &cq);
    bool waits(Cqn cqn, Cached &cq);
    uint64_t outstanding(Cached &cq, uint64_t limit, bool &readable);

    Device &device_;
    ContextCache<Context, Cached, Policy> cache_;
    Timers<Cqn> timers_;         // of moderated CQs
};

// QPs by number, with their ICM entries behind. References are stable until
// trim(), which Device calls only between entries.
class QpTable final : public QpStore {
public:
    explicit QpTable(Device &device);
    void configure(uint64_t base, unsigned log_count);
    void clear();
    // nullptr: number out of range, ICM not mapped or not readable, or state RST.
    Qp *find(Qpn qpn) override;
    Qpn gsi_qpn() const override;
    uint32_t count() const { return uint32_t(cache_.count()); }
    // Whether a flow rule or an RSS group may name it: it is no QP of another service, nor the net device's.
    bool may_be_raw(Qpn qpn);

    uint8_t transition(uint16_t op, Qpn qpn, uint8_t op_modifier, const hghca_qpc *context);
    uint8_t query(Qpn qpn, hghca_qpc &out);
    uint8_t configure_special(Qpn qpn, uint8_t type);
    uint8_t set_counter(Qpn qpn, uint64_t set);
    // `what`: HGHCA_RESUME_*.
    uint8_t resume(Qpn qpn, uint32_t what);
    void trim(size_t capacity);
    bool write_back(uint64_t from, uint64_t length);
    void forget(uint64_t from, uint64_t length);

private:
    struct Policy {
        static constexpr IcmSpace kSpace = IcmSpace::Context;
        static constexpr uint32_t kEntrySize = kQpcEntrySize;
        static constexpr uint32_t kMagic = 0x51504331;
        static constexpr uint32_t kReserved = 1;   // 1 to 7: special QPs
    };

    QpLimits limits() const;
    // For a command; as ContextCache::find_for_command().
    uint8_t find_for_command(Qpn qpn, Qp *&out);
    Qp *prepare(Qp *qp, Qpn qpn);
    void destroy(Qp &qp);

    Device &device_;
    ContextCache<Qp, Qp, Policy> cache_;
};

}  // namespace hghca
