// SPDX-License-Identifier: GPL-2.0-or-later
// Shared receive queues (interface document, 4.15, 5.2).
#pragma once

#include <cstdint>

#include "hghca_hw.h"
#include "jingzhao/context_cache.h"
#include "jingzhao/wqe_reader.h"
#include "transport/qp.h"
#include "transport/types.h"
#include "wire/number.h"

namespace hghca {

class Device;

constexpr unsigned kLogMaxSrqs = 16;
constexpr unsigned kLogMaxSrqSize = 14;
constexpr uint32_t kSrqcEntrySize = 128;
constexpr unsigned kLogMaxXrcds = 24;

// An SRQ, as cached.
struct SrqContext {
    Key lkey;
    uint32_t pd;
    uint8_t log_wqes;
    uint8_t stride_log;
    uint16_t taken;      // free-running
    uint16_t limit;      // 0: not armed
    bool failed;
    uint32_t epoch;
    uint32_t xrcd;       // 0: it is a basic one
    Cqn cqn;             // XRC
    uint32_t next;       // byte offset of the WQE to take
    uint64_t dbr_addr;

    uint64_t bytes() const { return uint64_t(1) << (log_wqes + stride_log); }
    bool is_slot(uint32_t offset) const { return offset < bytes() && !(offset & ((1u << stride_log) - 1)); }
};

template <>
struct Layout<SrqContext> {
    using S = SrqContext;
    static constexpr auto kFields = fields(
        field("lkey", &S::lkey, 0x10, FieldAccess::Command), field("pd", &S::pd, 0x14, FieldAccess::ReadOnly),
        field("log_wqes", &S::log_wqes, 0x18, FieldAccess::Command, up_to(kLogMaxSrqSize)),
        field("stride_log", &S::stride_log, 0x19, FieldAccess::ReadOnly,
              {HGHCA_WQE_MIN_STRIDE_LOG, HGHCA_WQE_MAX_STRIDE_LOG}),
        field("taken", &S::taken, 0x1a, FieldAccess::Device), field("limit", &S::limit, 0x1c, FieldAccess::Command),
        field("failed", &S::failed, 0x1e, FieldAccess::Device), field("epoch", &S::epoch, 0x20, FieldAccess::ReadOnly),
        field("xrcd", &S::xrcd, 0x24, FieldAccess::ReadOnly, up_to(kMaxXrcd)),
        field("cqn", &S::cqn, 0x28, FieldAccess::ReadOnly), field("next", &S::next, 0x2c, FieldAccess::Device),
        field("dbr_addr", &S::dbr_addr, 0x30, FieldAccess::ReadOnly));
};

class SharedReceiveQueues {
public:
    explicit SharedReceiveQueues(Device &device);
    void configure(uint64_t base, unsigned log_count);
    void clear();
    uint8_t sw2hw(Srqn srqn, const hghca_srqc &context);
    uint8_t hw2sw(Srqn srqn);
    uint8_t query(Srqn srqn, hghca_srqc &out);
    uint8_t arm(Srqn srqn, uint64_t limit);
    uint8_t resize(Srqn srqn, const hghca_resize_srq &in);

    bool is_basic(Srqn srqn);
    // The PD whose keys a request for XRC SRQ `srqn` may use. False: the domain has no such SRQ.
    XrcTarget xrc_target(Srqn srqn, uint32_t xrcd, uint32_t &pd);
    // The CQ of an XRC SRQ; kNoCqn: there is no such SRQ.
    Cqn cqn(Srqn srqn);
    // Is there a WQE? Unreadable: there is no such SRQ, or it has failed.
    Posted posted(Srqn srqn);
    // The slot of the WQE that would be taken next. False: there is no such SRQ.
    bool next_slot(Srqn srqn, ReceiveSlot &out);
    // The slot of a WQE that take() gave. False: that SRQ is gone.
    bool slot_at(Srqn srqn, const SharedWqe &wqe, ReceiveSlot &out);
    // Takes the next WQE, which posted() has seen.
    SharedWqe take(Srqn srqn);

    uint64_t count() const { return cache_.count(); }
    void trim(size_t capacity);
    bool write_back(uint64_t from, uint64_t length);
    void forget(uint64_t from, uint64_t length);

private:
    using Context = SrqContext;
    struct Policy {
        static constexpr IcmSpace kSpace = IcmSpace::Context;
        static constexpr uint32_t kEntrySize = kSrqcEntrySize;
        static constexpr uint32_t kMagic = 0x53514331;
        static constexpr uint32_t kReserved = 1;
    };

    static bool valid(const Context &srq, uint32_t index);
    Context *find(Srqn srqn);
    // WQEs posted and not taken. False: the record cannot be read.
    bool waiting(const Context &srq, uint32_t &out);
    void check_limit(Srqn srqn, Context &srq);
    void fail(Srqn srqn, Context &srq);

    Device &device_;
    ContextCache<Context, Context, Policy> cache_;
    uint32_t epoch_ = 0;   // of the last SRQ that was made
};

}  // namespace hghca
