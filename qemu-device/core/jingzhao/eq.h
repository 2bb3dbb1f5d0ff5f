// SPDX-License-Identifier: GPL-2.0-or-later
// Event queues (interface document, 4.7, 5.4, 10).
#pragma once

#include <array>
#include <cstdint>

#include "hghca_hw.h"
#include "jingzhao/context_cache.h"
#include "jingzhao/queue_buffer.h"
#include "jingzhao/translate.h"
#include "jingzhao/waiting_cqs.h"
#include "wire/number.h"

namespace hghca {

class Device;

constexpr unsigned kVectors = 64;
constexpr unsigned kLogMaxEqs = 6;
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
               field("producer", &EqContext::producer, 0x28, FieldAccess::Device),
               field("consumer", &EqContext::consumer, 0x2c, FieldAccess::Device),
               field("vector", &EqContext::vector, 0x30, FieldAccess::ReadOnly, up_to(kVectors - 1)),
               field("armed", &EqContext::armed, 0x31, FieldAccess::Device),
               field("overflowed", &EqContext::overflowed, 0x32, FieldAccess::Device));
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
    // When expire() is due.
    uint64_t next_deadline() const { return look_ns_; }
    void expire(uint64_t now_ns);
    // Events for which there was room, but no time in the slice, or may be room now.
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
    bool has_doorbells() const;
    void wait_for_room(uint32_t eqn);

    Device &device_;
    ContextCache<Context, Cached, Policy> cache_;
    std::array<uint32_t, 64> eq_of_type_{};   // 0: none
    std::array<uint8_t, 1u << kLogMaxEqs> vectors_{};   // for the time when ICM cannot be read
    // Completion events that wait for room, each CQ once.
    WaitingCqs waiting_;
    uint64_t unfinished_ = 0;   // bit n: deliver() was cut short for EQ n
    uint64_t full_ = 0;         // bit n: something waits for room in EQ n, and no doorbell will tell
    uint64_t look_ns_ = UINT64_MAX;
};

}  // namespace hghca
