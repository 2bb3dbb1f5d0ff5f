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
        return host_.send_frame(parts);
    const size_t headers = packet.layout.transport_offset + sizeof(hghca_bth) + extension_bytes(packet.flags());
    const size_t bytes = std::min(headers, packet.head_bytes);
    const uint64_t dma = registers_.global(ERNIC_TXBUFBA) + uint64_t(next_ % buffers) * buffer_bytes;
    std::array<uint8_t, ERNIC_HEADER_BUFFER_BYTES> header;
    if (bytes > header.size() || !host_.write(dma, packet.head.data(), bytes) ||
        !host_.read(dma, header.data(), bytes)) {
        stats_.dma_errors++;
        return FrameSent::Yes;
    }
    // What the transport and the MADs send is in one part.
    auto *rest = static_cast<uint8_t *>(parts[0].iov_base) + bytes;
    const std::array<iovec, 2> frame = {iovec{header.data(), bytes}, iovec{rest, parts[0].iov_len - bytes}};
    const FrameSent sent = host_.send_frame(frame);
    if (sent == FrameSent::Yes)
        next_ = (next_ + 1) % buffers;
    return sent;
}

}  // namespace hghca::ernic
