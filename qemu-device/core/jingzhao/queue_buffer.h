// SPDX-License-Identifier: GPL-2.0-or-later
// The ring of entries under a CQ or an EQ: owner byte last, 0x80 the device's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hghca_hw.h"
#include "jingzhao/context_fields.h"
#include "jingzhao/queue_page.h"
#include "wire/number.h"
#include "wire/wire_object.h"

namespace hghca {

// The events of an EQE are of different sizes, but the first of them, `raw`, covers the union: `= {}` sets each byte.
template <>
inline constexpr bool kNoPadding<hghca_eqe> =
    offsetof(hghca_eqe, event) == 4 && sizeof(hghca_eqe::event) == sizeof(hghca_eqe::event.raw) &&
    sizeof(hghca_eqe) == 4 + sizeof(hghca_eqe::event) + 4;

constexpr uint8_t kLogEntry = 5;         // of most rings: 32 bytes
constexpr uint8_t kLogTimedEntry = 6;    // of CQs with timestamps
constexpr unsigned kLogMaxRing = 22;     // entries

// Where a ring is: 1 << logsize entries from address `start` of an MR on.
struct RingPlace {
    Key lkey;
    uint32_t pd;
    uint8_t logsize;
    uint8_t log_entry = kLogEntry;
    uint64_t start = 0;
    // No entry crosses a page, and the addresses do not overflow.
    bool good() const { return !(start % entry_bytes()) && start <= UINT64_MAX - bytes(); }
    // The ring is in a region of its PD that the device may write.
    bool allowed(MemoryTable &memory) const
    {
        return good() && memory.check_queue(lkey, pd, start, bytes(), Access::LocalWrite);
    }
    uint32_t entry_bytes() const { return 1u << log_entry; }
    uint64_t bytes() const { return uint64_t(1) << (logsize + log_entry); }
    uint32_t slot(uint32_t index) const { return index & ((1u << logsize) - 1); }
    uint64_t address(uint32_t index) const { return start + (uint64_t(slot(index)) << log_entry); }
};

// What a CQ or an EQ allows itself of these is narrower.
template <>
struct Layout<RingPlace> {
    static constexpr auto kFields =
        fields(field("lkey", &RingPlace::lkey, 0x00, FieldAccess::Command),
               field("pd", &RingPlace::pd, 0x04, FieldAccess::ReadOnly),
               field("logsize", &RingPlace::logsize, 0x08, FieldAccess::Command, {1, kLogMaxRing}),
               field("log_entry", &RingPlace::log_entry, 0x09, FieldAccess::ReadOnly, {kLogEntry, kLogTimedEntry}),
               field("start", &RingPlace::start, 0x10, FieldAccess::Command));
};

class QueueBuffer {
public:
    enum class Result { Ok, Full, Fault };

    // Writes `entry`, of the ring's size, as number `index`, its owner byte last. Full:
    // software still owns the slot.
    template <class Entry>
    Result write(Host &host, MemoryTable &memory, const RingPlace &ring, uint32_t index, const Entry &entry)
    {
        static_assert(kNoPadding<Entry>);
        return write_bytes(host, memory, ring, index, &entry);
    }
    // Ok when the device owns the slot of number `index`.
    Result probe(Host &host, MemoryTable &memory, const RingPlace &ring, uint32_t index);

private:
    Result write_bytes(Host &host, MemoryTable &memory, const RingPlace &ring, uint32_t index, const void *entry);
    bool locate(MemoryTable &memory, const RingPlace &ring, uint32_t index, Segment &out);

    QueuePage page_;
};

}  // namespace hghca
