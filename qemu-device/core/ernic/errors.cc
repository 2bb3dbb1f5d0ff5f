// SPDX-License-Identifier: GPL-2.0-or-later
#include "ernic/errors.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "byte_order.h"
#include "wire/packet.h"

namespace hghca::ernic {

void Errors::keep_packet(uint32_t syndrome, std::span<const uint8_t> headers, bool is_fatal)
{
    const uint32_t size = registers_.global(ERNIC_ERRBUFSZ);
    const uint32_t buffers = field_get(ERNIC_BUFFERS, size), bytes = field_get(ERNIC_BUFFER_BYTES, size);
    if (!buffers || bytes < sizeof(syndrome) ||
        !(is_fatal || registers_.global(ERNIC_XRNICCONF) & ERNIC_CONF_ERROR_BUFFER))
        return;
    std::array<uint8_t, sizeof(syndrome) + kMaxHeader> entry;
    const uint32_t word = le32(syndrome);
    std::memcpy(entry.data(), &word, sizeof(word));
    const size_t kept = std::min<size_t>({headers.size(), bytes - sizeof(word), kMaxHeader});
    std::copy_n(headers.begin(), kept, entry.begin() + sizeof(word));
    uint32_t &pointer = registers_.global(ERNIC_ERRBUFWPTR);
    const uint64_t base = registers_.global_address(ERNIC_ERRBUFBA, ERNIC_ERRBUFBAMSB);
    stats_.dma_errors += !host_.write(base + uint64_t(pointer % buffers) * bytes, entry.data(), sizeof(word) + kept);
    pointer = (pointer + 1) % buffers;
}

void Errors::append(uint64_t base, uint32_t entries, uint32_t &pointer, uint32_t qpn, uint16_t code)
{
    if (!entries)
        return;
    const ernic_packet_error entry{le16(code), le16(uint16_t(qpn)), 0};
    stats_.dma_errors += !host_.write(base + uint64_t(pointer % entries) * sizeof(entry), &entry, sizeof(entry));
    pointer = (pointer + 1) % entries;
}

void Errors::fatal(uint32_t qpn, ernic_fatal code)
{
    append(registers_.global_address(ERNIC_IPKTERRQBA, ERNIC_IPKTERRQBAMSB), registers_.global(ERNIC_IPKTERRQSZ),
           registers_.global(ERNIC_IPKTERRQWPTR), qpn, uint16_t(code));
}

void Errors::illegal_wqe(uint32_t qpn, uint8_t opcode)
{
    append(registers_.global_address(ERNIC_OPKTERRQBA, ERNIC_OPKTERRQBAMSB), registers_.global(ERNIC_OPKTERRQSZ),
           registers_.global(ERNIC_OPKTERRQWPTR), qpn, opcode);
}

}  // namespace hghca::ernic
