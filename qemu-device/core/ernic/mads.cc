// SPDX-License-Identifier: GPL-2.0-or-later
#include "ernic/mads.h"

#include <cstring>

#include "byte_order.h"
#include "ernic/adapter.h"
#include "wire/icrc.h"

namespace hghca::ernic {

void Mads::receive(const Incoming &packet)
{
    QueuePair &pair = device_.pair(ERNIC_QP1);
    const size_t bytes = packet.layout.frame_bytes - HGHCA_ICRC_SIZE;
    if (!pair.free_slots() || bytes > device_.receives.slot_bytes(ERNIC_QP1)) {
        device_.stats.mads_dropped++;
        device_.counts.dropped(false);
        return;
    }
    uint64_t dma = device_.receives.slot_address(pair);
    bool good = true;
    packet.frame.for_each(0, bytes, [&](const uint8_t *at, size_t n) {
        good = good && device_.host.write(dma, at, n);
        dma += n;
    });
    device_.stats.dma_errors += !good;
    device_.interrupts.raise(ERNIC_INT_MAD);
    device_.receives.complete_next(pair);
}

bool Mads::has_work() const
{
    const QueuePair &pair = device_.pair(ERNIC_QP1);
    return pair.enabled && !pair.fatal && pair.posted() && !link_full_ && !device_.is_recovering(pair) &&
           !device_.transport->flow_control.paused(kRoce);
}

void Mads::run()
{
    QueuePair &pair = device_.pair(ERNIC_QP1);
    while (has_work() && !device_.work.over()) {
        device_.work.add();
        if (!send_next(pair)) {
            link_full_ = true;
            return;
        }
    }
}

size_t Mads::finish(size_t bytes)
{
    const iovec part{frame_.data(), bytes};
    Incoming packet;
    if (!take_apart({&part, 1}, packet) || packet.layout.transport_offset + sizeof(hghca_bth) > bytes)
        return 0;
    // An IPv4 header with options is no header of RoCE v2, and is refused where it is received too.
    if (!packet.layout.ipv6 && packet.ip_bytes != sizeof(hghca_ipv4_header))
        return 0;
    const uint8_t *bth = frame_.data() + packet.layout.transport_offset;
    uint32_t crc = icrc_of_headers(device_.link, frame_.data(), packet.layout, sizeof(hghca_bth));
    crc = le32(~crc32_update(crc, bth + sizeof(hghca_bth), bytes - packet.layout.transport_offset - sizeof(hghca_bth)));
    std::memcpy(frame_.data() + bytes, &crc, sizeof(crc));
    return bytes + sizeof(crc);
}

bool Mads::send_next(QueuePair &pair)
{
    ernic_wqe wqe{};
    if (!device_.sends.read(pair, pair.sq.index, wqe)) {
        device_.become_fatal(pair, ERNIC_FATAL_MEMORY);
        return true;
    }
    const uint32_t bytes = le32(wqe.length);
    const uint64_t from = uint64_t(le32(wqe.laddr[1])) << 32 | le32(wqe.laddr[0]);
    const bool readable = wqe.opcode == ERNIC_OPCODE_SEND && bytes && bytes <= kMaxFrame &&
                          device_.host.read(from, frame_.data(), bytes);
    const size_t total = readable ? finish(bytes) : 0;
    if (!total) {
        device_.discard_wqe(pair, wqe.opcode);
    } else {
        const iovec part{frame_.data(), total};
        if (device_.send_mad({&part, 1}) == FrameSent::LinkFull)
            return false;
        device_.counts.sent_mad(ERNIC_QP1);
    }
    device_.counts.wqe_begun();
    device_.sends.complete_next(pair, wqe, !total);
    return true;
}

}  // namespace hghca::ernic
