// SPDX-License-Identifier: GPL-2.0-or-later
#include "jingzhao/queue_buffer.h"

#include <atomic>
#include <cstring>

#include "hghca_hw.h"

namespace hghca {

bool QueueBuffer::locate(MemoryTable &memory, const RingPlace &ring, uint32_t index, Segment &out)
{
    const QueueMemory queue{ring.lkey, ring.pd, ring.start, ring.bytes()};
    return page_.locate(memory, queue, ring.address(index), ring.entry_bytes(), Access::LocalWrite, out);
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
