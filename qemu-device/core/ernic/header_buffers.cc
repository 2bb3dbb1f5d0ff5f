// SPDX-License-Identifier: GPL-2.0-or-later
#include "ernic/header_buffers.h"

#include <algorithm>
#include <array>

#include "byte_order.h"
#include "ernic/validation.h"

namespace hghca::ernic {

// A buffer holds the headers of one packet until the link has it, so that one of them is in use at most. Without buffers
// that are long enough, the headers stay inside.
FrameSent HeaderBuffers::send(std::span<const iovec> parts)
{
    const uint32_t size = registers_.global(ERNIC_TXBUFSZ);
    const uint32_t buffers = field_get(ERNIC_BUFFERS, size), buffer_bytes = field_get(ERNIC_BUFFER_BYTES, size);
    Incoming packet;
    if (!buffers || buffer_bytes < ERNIC_HEADER_BUFFER_BYTES || !take_apart(parts, packet))
        return host_.send_frame(parts, Icrc::Unknown);
    const size_t headers = packet.layout.transport_offset + sizeof(hghca_bth) + extension_bytes(packet.flags());
    const size_t bytes = std::min(headers, packet.head_bytes);
    // What the transport and the MADs send is in one part.
    const std::span<uint8_t> rest{static_cast<uint8_t *>(parts[0].iov_base) + bytes, parts[0].iov_len - bytes};
    Range range{uint32_t(registers_.global(ERNIC_TXBUFBA) + next_ % buffers * buffer_bytes), uint32_t(bytes)};
    std::array<uint8_t, ERNIC_HEADER_BUFFER_BYTES> header;
    if (bytes > header.size() || !host_.write(range.address, packet.head.data(), bytes) ||
        !through_list(range, uint32_t(rest.size())) || range.bytes != bytes ||
        !host_.read(range.address, header.data(), bytes)) {
        stats_.dma_errors++;
        return FrameSent::Yes;
    }
    const std::array<iovec, 2> frame = {iovec{header.data(), bytes}, iovec{rest.data(), rest.size()}};
    const FrameSent sent = host_.send_frame(frame, Icrc::Unknown);
    if (sent == FrameSent::Yes) {
        next_ = (next_ + 1) % buffers;
        finish_list();
    }
    return sent;
}

uint32_t HeaderBuffers::lists() const
{
    const uint32_t size = registers_.global(ERNIC_TXSGLBUFSZ);
    return field_get(ERNIC_BUFFER_BYTES, size) < ERNIC_SGL_BYTES ? 0 : field_get(ERNIC_BUFFERS, size);
}

// Writes a list of the headers and of the rest of the packet, and takes the headers' place from it. Memory that keeps
// nothing could say another length: the caller checks it.
bool HeaderBuffers::through_list(Range &headers, uint32_t rest_bytes)
{
    const uint32_t count = lists();
    if (!count)
        return true;
    const uint32_t size = field_get(ERNIC_BUFFER_BYTES, registers_.global(ERNIC_TXSGLBUFSZ));
    const uint64_t dma = registers_.global(ERNIC_TXSGLBUFBA) + uint64_t(next_list_ % count) * size;
    std::array<ernic_sgl_entry, 2> list{};
    static_assert(sizeof(list) == ERNIC_SGL_BYTES);
    list[0] = {le32(headers.address), le32(headers.bytes)};
    list[1].bytes = le32(rest_bytes);
    if (!host_.write(dma, list.data(), sizeof(list)) || !host_.read(dma, list.data(), sizeof(list)))
        return false;
    headers = {le32(list[0].address), le32(list[0].bytes)};
    show_lists(next_list_ % count, (next_list_ + 1) % count);
    return true;
}

void HeaderBuffers::finish_list()
{
    const uint32_t count = lists();
    if (!count)
        return;
    next_list_ = (next_list_ + 1) % count;
    show_lists(next_list_, next_list_);
}

void HeaderBuffers::show_lists(uint32_t tail, uint32_t head)
{
    uint32_t &status = registers_.global(ERNIC_WQEPROCSTS);
    status = (status & ~(ERNIC_WQEPROCSTS_SGL_TAIL | ERNIC_WQEPROCSTS_SGL_HEAD)) |
             field_put(ERNIC_WQEPROCSTS_SGL_TAIL, tail & 0xff) | field_put(ERNIC_WQEPROCSTS_SGL_HEAD, head & 0xff);
}

}  // namespace hghca::ernic
