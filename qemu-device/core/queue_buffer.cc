// SPDX-License-Identifier: GPL-2.0-or-later
#include "queue_buffer.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "hghca_hw.h"

namespace hghca {

namespace {

constexpr uint32_t kPage = 4096;
constexpr uint32_t kEntry = 32;
constexpr uint32_t kOwner = 31;

}  // namespace

bool QueueBuffer::locate(MemoryTable &memory, const RingPlace &ring, uint32_t index, Segment &out)
{
    constexpr uint32_t kPerPage = kPage / kEntry;
    uint32_t slot = ring.slot(index);
    uint32_t page = slot / kPerPage;
    if (generation_ != memory.generation() || page_ != page) {
        // All of the ring in this page at once, as the next slots are not checked again.
        SegmentArray<1> segments;
        uint64_t va = uint64_t(page) * kPage;
        uint64_t length = std::min<uint64_t>(kPage, ring.bytes() - va);
        if (!memory.translate(ring.lkey, ring.pd, va, length, Access::LocalWrite, segments))
            return false;
        generation_ = memory.generation();
        page_ = page;
        pointer_ = segments[0].pointer;
        dma_ = segments[0].dma;
    }
    uint32_t offset = slot % kPerPage * kEntry;
    out = {pointer_ ? pointer_ + offset : nullptr, dma_ + offset, kEntry};
    return true;
}

QueueBuffer::Result QueueBuffer::probe(Host &host, MemoryTable &memory, const RingPlace &ring, uint32_t index)
{
    Segment s;
    uint8_t owner;
    if (!locate(memory, ring, index, s))
        return Result::Fault;
    if (s.pointer)
        owner = std::atomic_ref<uint8_t>(s.pointer[kOwner]).load(std::memory_order_acquire);
    else if (!host.read(s.dma + kOwner, &owner, 1))
        return Result::Fault;
    return owner == HGHCA_CQ_ENTRY_OWNER_HW ? Result::Ok : Result::Full;
}

QueueBuffer::Result QueueBuffer::write(Host &host, MemoryTable &memory, const RingPlace &ring, uint32_t index,
                                       const void *entry)
{
    Result room = probe(host, memory, ring, index);
    Segment s;
    if (room != Result::Ok || !locate(memory, ring, index, s))
        return room;
    // Software polls the owner from another thread: the body must stand before
    // it, and before that the payload which the entry reports.
    if (s.pointer) {
        std::memcpy(s.pointer, entry, kOwner);
        std::atomic_ref<uint8_t>(s.pointer[kOwner]).store(HGHCA_CQ_ENTRY_OWNER_SW, std::memory_order_release);
        host.dirty(s.dma, kEntry);
        return Result::Ok;
    }
    constexpr uint8_t owner = HGHCA_CQ_ENTRY_OWNER_SW;
    std::atomic_thread_fence(std::memory_order_release);
    if (!host.write(s.dma, entry, kOwner))
        return Result::Fault;
    std::atomic_thread_fence(std::memory_order_release);
    return host.write(s.dma + kOwner, &owner, 1) ? Result::Ok : Result::Fault;
}

}  // namespace hghca
