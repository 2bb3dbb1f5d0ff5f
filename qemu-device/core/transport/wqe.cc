// SPDX-License-Identifier: GPL-2.0-or-later
#include "transport/wqe.h"

#include <algorithm>

#include "transport/function.h"

namespace hghca {

Allowed DataList::check(KeySpace &keys, uint32_t pd, Access access) const
{
    const bool all = std::all_of(entries.begin(), entries.begin() + count, [&](const ListEntry &e) {
        return e.inline_data || keys.check(e.lkey, pd, e.va, e.length, access) == Allowed::Yes;
    });
    return all ? Allowed::Yes : Allowed::No;
}

bool DataList::on_demand(KeySpace &keys) const
{
    return std::any_of(entries.begin(), entries.begin() + count,
                       [&](const ListEntry &e) { return !e.inline_data && keys.on_demand(e.lkey); });
}

Found DataList::resolve(KeySpace &keys, uint32_t pd, Access access, uint64_t offset, uint32_t bytes,
                        PacketSegments &out, AbsentPage &absent) const
{
    for (unsigned i = 0; i < count && bytes; i++) {
        const ListEntry &e = entries[i];
        if (offset >= e.length) {
            offset -= e.length;
            continue;
        }
        const uint32_t n = uint32_t(std::min<uint64_t>(bytes, e.length - offset));
        if (e.inline_data) {
            if (!out.push({const_cast<uint8_t *>(e.inline_data) + offset, 0, n}))
                return Found::No;
        } else if (Found found = keys.locate(e.lkey, pd, e.va + offset, n, access, out, absent);
                   found != Found::Yes) {
            if (found == Found::Absent)
                absent.length += e.length - offset - n;
            return found;
        }
        offset = 0;
        bytes -= n;
    }
    return bytes ? Found::No : Found::Yes;
}

uint32_t SentWqe::psn_span(uint32_t mtu) const
{
    if (is_local())
        return 0;
    if (is_atomic() || is_pointer() || is_consistent() || !length)
        return 1;
    return uint32_t((length + mtu - 1) / mtu);
}

}  // namespace hghca
