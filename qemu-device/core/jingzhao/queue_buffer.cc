// SPDX-License-Identifier: GPL-2.0-or-later
#include "jingzhao/queue_buffer.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "hghca_hw.h"

namespace hghca {

namespace {

constexpr uint64_t kQueuePage = 4096;

}  // namespace

bool QueueBuffer::locate(MemoryTable &memory, const RingPlace &ring, uint32_t index, Segment &out)
{
    const uint64_t at = ring.address(index);
    if (generation_ != memory.generation() || at < from_ || at >= end_) {
        // All of the ring in this page at once, as the next slots are not checked again.
        SegmentArray<1> segments;
        const uint64_t page = at - at % kQueuePage;
        const uint64_t from = std::max(ring.start, page);
        const uint64_t end = page + std::min(kQueuePage, ring.start + ring.bytes() - page);
        if (!memory.translate(ring.lkey, ring.pd, from, end - from, Access::LocalWrite, segments))
            return false;
        generation_ = memory.generation();
        from_ = from;
        end_ = end;
        pointer_ = segments[0].pointer;
        dma_ = segments[0].dma;
    }
    const uint64_t offset = at - from_;
    out = {pointer_ ? pointer_ + offset : nullptr, dma_ + offset, ring.entry_bytes()};
    return true;
}

QueueBuffer::Result QueueBuffer::probe(Host &host, MemoryTable &memory, const RingPlace &ring, uint32_t index)
{
    Segment s;
    uint8_t owner;
    if (!locate(memory, ring, index, s))
        return Result::Fault;
    const uint32_t last = s.length - 1;
    if (s.pointer)
        owner = std::atomic_ref<uint8_t>(s.pointer[last]).load(std::memory_order_acquire);
    else if (!host.read(s.dma + last, &owner, 1))
        return Result::Fault;
    return owner == HGHCA_CQ_ENTRY_OWNER_HW ? Result::Ok : Result::Full;
}

QueueBuffer::Result QueueBuffer::write_bytes(Host &host, MemoryTable &memory, const RingPlace &ring, uint32_t index,
                                             const void *entry)
{
    Result room = probe(host, memory, ring, index);
    Segment s;
    if (room != Result::Ok || !locate(memory, ring, index, s))
        return room;
    // Software polls the owner from another thread: the body must stand before
    // it, and before that the payload which the entry reports.
    const uint32_t last = s.length - 1;
    if (s.pointer) {
        std::memcpy(s.pointer, entry, last);
        std::atomic_ref<uint8_t>(s.pointer[last]).store(HGHCA_CQ_ENTRY_OWNER_SW, std::memory_order_release);
        host.dirty(s.dma, s.length);
        return Result::Ok;
    }
    constexpr uint8_t owner = HGHCA_CQ_ENTRY_OWNER_SW;
    std::atomic_thread_fence(std::memory_order_release);
    if (!host.write(s.dma, entry, last))
        return Result::Fault;
    std::atomic_thread_fence(std::memory_order_release);
    return host.write(s.dma + last, &owner, 1) ? Result::Ok : Result::Fault;
}

}  // namespace hghca
