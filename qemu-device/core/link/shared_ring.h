// SPDX-License-Identifier: GPL-2.0-or-later
// Frames between two processes, in memory that both have mapped: one ring a direction. Plain memory code, which neither
// waits nor wakes anybody up. docs/reference/link.rst describes the memory.
//
// The peer is not trusted. It may write to all of the memory at any time. Each word of it is read once and checked against
// this side's own numbers, which are not in the memory, and a frame is copied before anybody looks at it. What cannot be
// makes a ring Broken.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hghca {

// The words of one ring. Each has one writer and a line of the cache for itself. Positions count bytes from the beginning
// of the link and do not wrap around.
struct SharedRing {
    alignas(64) uint64_t produced;      // by the producer: the end of the last record
    alignas(64) uint64_t consumed;      // by the consumer: the end of the last record that it has taken
    alignas(64) uint64_t kick_at_data;  // by the consumer: wants a kick when `produced` reaches it; 0: wants none
    alignas(64) uint64_t kick_at_room;  // by the producer: wants a kick when `consumed` reaches it; 0: wants none
};
static_assert(sizeof(SharedRing) == 256);

// In front of each frame in the ring, at a multiple of 8.
struct SharedRecord {
    uint32_t bytes;     // of the frame; kPad: the rest of the ring up to its end has no frame
    uint32_t reserved;  // 0
};
static_assert(sizeof(SharedRecord) == 8);

// Two rings, one behind the other: first the words of both, then the data of both.
struct SharedRings {
    static constexpr uint32_t kPad = UINT32_MAX;
    static constexpr size_t kMaxFrame = 16384;
    // When half of a ring is free, the largest frame fits, also behind a pad.
    static constexpr size_t kMinBytes = 8 * kMaxFrame;
    static constexpr size_t kMaxBytes = size_t(1) << 26;
    static constexpr size_t kHeadBytes = 4096;

    // May a ring have so many bytes?
    static constexpr bool fits(size_t ring_bytes)
    {
        return ring_bytes >= kMinBytes && ring_bytes <= kMaxBytes && !(ring_bytes & (ring_bytes - 1));
    }
    // Bytes of the memory for two rings.
    static constexpr size_t bytes(size_t ring_bytes) { return kHeadBytes + 2 * ring_bytes; }
};

enum class RingResult : uint8_t { Done, None, Broken };

// The side that writes frames.
class RingProducer {
public:
    RingProducer(SharedRing &ring, uint8_t *data, size_t bytes) : ring_(ring), data_(data), bytes_(bytes) {}

    // Done: the frame is in the ring, or it is larger than kMaxFrame and lost. None: it does not fit; the consumer kicks
    // when there is room.
    RingResult write(const iovec *parts, int count);
    // After some frames: must the consumer be kicked?
    bool end_burst();
    bool in_burst() const { return in_burst_; }

private:
    RingResult find_room(size_t need);

    SharedRing &ring_;
    uint8_t *const data_;
    const size_t bytes_;
    uint64_t produced_ = 0;
    uint64_t consumed_ = 0;     // as last read
    uint64_t kicked_at_ = 0;    // the kick_at_data for which there was a kick
    bool in_burst_ = false;     // frames were written since the last end_burst()
};

// The side that reads them.
class RingConsumer {
public:
    RingConsumer(SharedRing &ring, const uint8_t *data, size_t bytes) : ring_(ring), data_(data), bytes_(bytes) {}

    // Copies the next frame. None: the ring is empty, and the producer kicks at the next frame.
    RingResult read();
    // The frame that read() has copied, until the next call.
    std::span<uint8_t> frame() { return {frame_.data(), frame_bytes_}; }
    // After some frames: must the producer be kicked?
    bool end_burst();
    // False: read() has returned None last, and would again.
    bool pending() const;

private:
    RingResult take(uint64_t produced);
    void publish();

    SharedRing &ring_;
    const uint8_t *const data_;
    const size_t bytes_;
    uint64_t consumed_ = 0;
    uint64_t published_ = 0;    // of `consumed_`, what the producer can see
    uint64_t kicked_at_ = 0;    // the kick_at_room for which there was a kick
    bool waiting_ = false;      // the producer kicks at the next frame
    size_t frame_bytes_ = 0;
    alignas(64) std::array<uint8_t, SharedRings::kMaxFrame> frame_;
};

// Both rings, for one of the two sides.
class RingPair {
public:
    // `memory` has SharedRings::bytes(ring_bytes) zeros. One of the sides is the first.
    RingPair(uint8_t *memory, size_t ring_bytes, bool first)
        : out(ring(memory, !first), data(memory, ring_bytes, !first), ring_bytes),
          in(ring(memory, first), data(memory, ring_bytes, first), ring_bytes)
    {
    }

    RingProducer out;
    RingConsumer in;

private:
    static SharedRing &ring(uint8_t *memory, bool second)
    {
        return *reinterpret_cast<SharedRing *>(memory + second * sizeof(SharedRing));
    }
    static uint8_t *data(uint8_t *memory, size_t ring_bytes, bool second)
    {
        return memory + SharedRings::kHeadBytes + second * ring_bytes;
    }
};

}  // namespace hghca
