// SPDX-License-Identifier: GPL-2.0-or-later
// Completion queues (interface document, 4.8, 5.3).
#pragma once

#include <cstdint>

#include "hghca_hw.h"
#include "jingzhao/context_cache.h"
#include "jingzhao/eq.h"
#include "jingzhao/queue_buffer.h"
#include "transport/scheduler.h"
#include "transport/types.h"
#include "wire/number.h"

namespace hghca {

class Device;

constexpr unsigned kLogMaxCqs = 17;
constexpr unsigned kLogMaxCqSize = kLogMaxRing;

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
    uint16_t period_us;      // 0: no moderation
    uint32_t armed_index;    // consumer index of the arming
    uint64_t deadline_ns;    // of the event; 0: no completion waits
};

template <>
struct Layout<CqContext> {
    static constexpr auto kFields =
        fields(group("ring", &CqContext::ring, 0x10),
               field("eqn", &CqContext::eqn, 0x28, FieldAccess::ReadOnly, up_to((1u << kLogMaxEqs) - 1)),
               field("usr_page", &CqContext::usr_page, 0x2c, FieldAccess::ReadOnly, up_to(HGHCA_UAR_PAGES - 1)),
               field("producer", &CqContext::producer, 0x30, FieldAccess::Device),
               field("solicited_end", &CqContext::solicited_end, 0x34, FieldAccess::Device),
               field("armed", &CqContext::armed, 0x38, FieldAccess::Device, up_to(HGHCA_CQ_ARM_NEXT)),
               field("failed", &CqContext::failed, 0x39, FieldAccess::Device),
               field("dbr_addr", &CqContext::dbr_addr, 0x40, FieldAccess::ReadOnly),
               field("max_count", &CqContext::max_count, 0x48, FieldAccess::Command),
               field("period_us", &CqContext::period_us, 0x4a, FieldAccess::Command),
               field("armed_index", &CqContext::armed_index, 0x4c, FieldAccess::Device),
               field("deadline_ns", &CqContext::deadline_ns, 0x50, FieldAccess::Device));
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
    Completed post(Cqn cqn, const hghca_cqe &cqe, bool solicited);
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
    Completed fail(Cqn cqn, Cached &cq, uint8_t syndrome);
    void raise_event(Cqn cqn, Cached &cq);
    bool waits(Cqn cqn, Cached &cq);
    uint64_t outstanding(Cached &cq, uint64_t limit, bool &readable);

    Device &device_;
    ContextCache<Context, Cached, Policy> cache_;
    Timers<Cqn> timers_;         // of moderated CQs
};

}  // namespace hghca
