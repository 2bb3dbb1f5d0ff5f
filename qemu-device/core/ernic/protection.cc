// SPDX-License-Identifier: GPL-2.0-or-later
#include "ernic/protection.h"

#include <algorithm>

#include "byte_order.h"

namespace hghca::ernic {

namespace {

constexpr bool is_local(Access access) { return access == Access::LocalRead || access == Access::LocalWrite; }
constexpr uint32_t entry_of(Key key) { return number(key) >> 8; }

}  // namespace

uint64_t Protection::range_start(uint32_t entry) const
{
    return uint64_t(registers_.pd(entry, ERNIC_VIRTADDRMSB)) << 32 | registers_.pd(entry, ERNIC_VIRTADDRLSB);
}

bool Protection::usable(Key key, KeyUser user, uint64_t va, uint64_t length, Access access) const
{
    if (is_local(access))
        return true;
    if (!registers_.is_ernic() || entry_of(key) >= ERNIC_PDS)
        return false;
    const uint32_t entry = entry_of(key), descriptor = registers_.pd(entry, ERNIC_ACCESSDESC);
    const uint64_t start = range_start(entry);
    const uint64_t bytes =
        uint64_t(field_get(ERNIC_ACCESS_LENGTH_MSB, descriptor)) << 32 | registers_.pd(entry, ERNIC_WRRDBUFLEN);
    const uint32_t allowed = field_get(ERNIC_ACCESS, descriptor);
    return registers_.pd(entry, ERNIC_BUFRKEY) == (number(key) & 0xff) &&
           registers_.pd(entry, ERNIC_PDPDNUM) == user.pd && va >= start && length <= bytes &&
           va - start <= bytes - length &&
           (allowed == ERNIC_ACCESS_BOTH ||
            allowed == (access == Access::RemoteWrite ? ERNIC_ACCESS_WRITE : ERNIC_ACCESS_READ));
}

// Of the whole of a message: PG332, unsupported features.
Allowed Protection::check(Key key, KeyUser user, uint64_t va, uint64_t length, Access access)
{
    const bool is_short_read = access == Access::RemoteRead && length <= ERNIC_STRICT_READ_BYTES;
    if (strict_ && (va % ERNIC_STRICT_UNIT_BYTES || length % ERNIC_STRICT_UNIT_BYTES || is_short_read ||
                    length > ERNIC_STRICT_MESSAGE_BYTES))
        return Allowed::No;
    return usable(key, user, va, length, access) ? Allowed::Yes : Allowed::No;
}

Found Protection::push(uint64_t dma, uint64_t length, bool write, PacketSegments &out) const
{
    return out.push({host_.map(dma, length, write), dma, uint32_t(length)}) ? Found::Yes : Found::No;
}

Found Protection::locate_pages(uint32_t entry, uint64_t va, uint64_t length, bool write, PacketSegments &out) const
{
    const uint64_t list = uint64_t(registers_.pd(entry, ERNIC_BUFBASEADDRMSB)) << 32 |
                          registers_.pd(entry, ERNIC_BUFBASEADDRLSB);
    const uint64_t start = range_start(entry);
    uint64_t offset = start % kPageBytes + (va - start);
    while (length) {
        uint64_t page;
        if (!host_.read(list + offset / kPageBytes * sizeof(page), &page, sizeof(page)))
            return Found::Unreadable;
        const uint64_t bytes = std::min(length, kPageBytes - offset % kPageBytes);
        if (push(le64(page) / kPageBytes * kPageBytes + offset % kPageBytes, bytes, write, out) != Found::Yes)
            return Found::No;
        offset += bytes;
        length -= bytes;
    }
    return Found::Yes;
}

// `length` is that of a packet at most: the transport asks for no more.
Found Protection::locate(Key key, KeyUser user, uint64_t va, uint64_t length, Access access, PacketSegments &out,
                         AbsentPage &)
{
    if (!usable(key, user, va, length, access))
        return Found::No;
    const bool write = access == Access::LocalWrite || access == Access::RemoteWrite;
    if (is_local(access))
        return push(va, length, write, out);
    const uint32_t entry = entry_of(key);
    if (registers_.has(ERNIC_EXT_PAGES) && registers_.pd(entry, ERNIC_ACCESSDESC) & ERNIC_ACCESS_PAGES)
        return locate_pages(entry, va, length, write, out);
    const uint64_t base = uint64_t(registers_.pd(entry, ERNIC_BUFBASEADDRMSB)) << 32 |
                          registers_.pd(entry, ERNIC_BUFBASEADDRLSB);
    return push(base + (va - range_start(entry)), length, write, out);
}

}  // namespace hghca::ernic
