// SPDX-License-Identifier: GPL-2.0-or-later
// WQEs under way of all connected QPs: what counts of them until they complete, so that they are not read again.
#pragma once

#include <array>
#include <cstdint>

#include "transport/qp.h"
#include "transport/wqe.h"

namespace hghca {

// A WQE takes the place of another one whose number falls on it. One that is not here any more is read again. An entry
// may be older than its QP, so only a WQE that has been kept since it became the next one is looked for.
class SentWqes {
public:
    struct Entry {
        uint64_t name;
        WqeRef ref;
        SentWqe wqe;
    };

    // A name for a WQE of a QP, never 0.
    static uint64_t name_of(Qpn qpn, uint16_t index) { return uint64_t(number(qpn)) << 16 | index | uint64_t(1) << 63; }

    void keep(Qpn qpn, const WqeRef &ref, const SentWqe &wqe)
    {
        entries_[place_of(qpn, ref.index)] = {name_of(qpn, ref.index), ref, wqe};
    }
    // nullptr: it is not here.
    const Entry *find(Qpn qpn, uint16_t index) const
    {
        const Entry &entry = entries_[place_of(qpn, index)];
        return entry.name == name_of(qpn, index) ? &entry : nullptr;
    }
    void clear() { entries_.fill({}); }

private:
    static constexpr size_t kEntries = 1024;

    // Spreads the QPs; the WQEs of one stand side by side.
    static size_t place_of(Qpn qpn, uint16_t index) { return (number(qpn) * size_t(61) + index) % kEntries; }

    std::array<Entry, kEntries> entries_{};
};

}  // namespace hghca
