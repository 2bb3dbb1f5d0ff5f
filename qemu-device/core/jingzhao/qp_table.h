// SPDX-License-Identifier: GPL-2.0-or-later
// The table of QPs (interface document, 4.9).
#pragma once

#include <cstdint>

#include "hghca_hw.h"
#include "jingzhao/context_cache.h"
#include "jingzhao/qp_fields.h"
#include "transport/function.h"
#include "wire/number.h"

namespace hghca {

class Device;
struct QpLimits;

constexpr unsigned kLogMaxQps = 16;

// QPs by number, with their ICM entries behind. References are stable until
// trim(), which Device calls only between entries.
class QpTable final : public QpStore {
public:
    explicit QpTable(Device &device);
    void configure(uint64_t base, unsigned log_count);
    void clear();
    // nullptr: number out of range, ICM not mapped or not readable, or state RST.
    Qp *find(Qpn qpn) override;
    // nullptr: not in the cache.
    const Qp *cached(Qpn qpn) const { return cache_.peek(number(qpn)); }
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
    // As ContextCache::for_each_recent().
    template <class Use>
    void for_each_recent(size_t most, Use &&use) const
    {
        cache_.for_each_recent(most, use);
    }
    void trim(size_t capacity);
    bool write_back(uint64_t from, uint64_t length);
    void forget(uint64_t from, uint64_t length);

private:
    bool offers(Service service, Qpn qpn, QpState to) const;
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
