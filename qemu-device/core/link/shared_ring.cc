// SPDX-License-Identifier: GPL-2.0-or-later
#include "link/shared_ring.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace hghca {

namespace {

using Word = std::atomic_ref<uint64_t>;

// The bytes of a frame with its record.
constexpr size_t record_bytes(size_t frame) { return (sizeof(SharedRecord) + frame + 7) & ~size_t(7); }

size_t length_of(const iovec *parts, int count)
{
    size_t length = 0;
    for (int i = 0; i < count; i++)
        length += parts[i].iov_len;
    return length;
}

void put_record(uint8_t *at, uint32_t bytes)
{
    const SharedRecord record{bytes, 0};
    std::memcpy(at, &record, sizeof(record));
}

// In one access, since the peer may change it meanwhile.
uint32_t length_at(const uint8_t *record)
{
    return __atomic_load_n(reinterpret_cast<const uint32_t *>(record), __ATOMIC_RELAXED);
}

}  // namespace

// ---- the producer

RingResult RingProducer::write(const iovec *parts, int count)
{
    const size_t length = length_of(parts, count);
    if (length > SharedRings::kMaxFrame || !length)
        return RingResult::Done;
    const size_t at = produced_ & (bytes_ - 1);
    const size_t pad = record_bytes(length) > bytes_ - at ? bytes_ - at : 0;
    const RingResult found = find_room(pad + record_bytes(length));
    if (found != RingResult::Done)
        return found;
    if (pad)
        put_record(data_ + at, SharedRings::kPad);
    uint8_t *to = data_ + ((produced_ + pad) & (bytes_ - 1));
    put_record(to, uint32_t(length));
    to += sizeof(SharedRecord);
    for (int i = 0; i < count; i++) {
        std::memcpy(to, parts[i].iov_base, parts[i].iov_len);
        to += parts[i].iov_len;
    }
    produced_ += pad + record_bytes(length);
    // The record is seen before the position that includes it.
    Word(ring_.produced).store(produced_, std::memory_order_release);
    in_burst_ = true;
    return RingResult::Done;
}

// Is there room for `need` bytes? If not, the consumer kicks when half of the ring is free.
RingResult RingProducer::find_room(size_t need)
{
    // The cached position is good until the ring seems full: this does not take the line of the cache from the consumer.
    for (bool waiting = false; produced_ + need - consumed_ > bytes_;) {
        const uint64_t consumed = Word(ring_.consumed).load(std::memory_order_seq_cst);
        if (consumed > produced_ || consumed < consumed_)
            return RingResult::Broken;
        consumed_ = consumed;
        if (produced_ + need - consumed_ <= bytes_)
            break;
        if (waiting)
            return RingResult::None;
        // Sequentially consistent, as are the consumer's store of `consumed` and its load of this word: either the
        // consumer sees the wish, or the next load here sees the room.
        Word(ring_.kick_at_room).store(produced_ - bytes_ / 2, std::memory_order_seq_cst);
        waiting = true;
    }
    return RingResult::Done;
}

bool RingProducer::end_burst()
{
    if (!in_burst_)
        return false;
    in_burst_ = false;
    // As in find_room(): either the consumer sees this position after it has stored its wish, or the wish is seen here.
    Word(ring_.produced).store(produced_, std::memory_order_seq_cst);
    const uint64_t kick_at = Word(ring_.kick_at_data).load(std::memory_order_seq_cst);
    // A consumer that has taken all frames already would not find any, and not wish again.
    if (!kick_at || kick_at == kicked_at_ || kick_at > produced_)
        return false;
    kicked_at_ = kick_at;
    return true;
}

// ---- the consumer

RingResult RingConsumer::read()
{
    uint64_t produced = Word(ring_.produced).load(std::memory_order_acquire);
    if (produced == consumed_) {
        if (waiting_)
            return RingResult::None;
        // A wish is another number each time: positions are multiples of 8, and at each wish but the first this one has
        // moved since the last. See find_room() and end_burst() for the order.
        Word(ring_.kick_at_data).store(consumed_ + 1, std::memory_order_seq_cst);
        produced = Word(ring_.produced).load(std::memory_order_seq_cst);
        if (produced == consumed_) {
            waiting_ = true;
            return RingResult::None;
        }
    }
    if (waiting_) {
        // Who takes frames needs no kick.
        waiting_ = false;
        Word(ring_.kick_at_data).store(0, std::memory_order_relaxed);
    }
    return take(produced);
}

// Copies the frame of the next record, of those that end at `produced`.
RingResult RingConsumer::take(uint64_t produced)
{
    size_t used = produced - consumed_;
    size_t at = consumed_ & (bytes_ - 1);
    if (used > bytes_ || used & 7)
        return RingResult::Broken;
    uint32_t length = length_at(data_ + at);
    if (length == SharedRings::kPad) {
        // A frame follows, at the beginning of the ring: a producer adds both at once. So at most one pad is skipped.
        const size_t pad = bytes_ - at;
        if (!at || pad >= used)
            return RingResult::Broken;
        consumed_ += pad;
        used -= pad;
        at = 0;
        length = length_at(data_);
    }
    if (!length || length > SharedRings::kMaxFrame || record_bytes(length) > std::min(used, bytes_ - at))
        return RingResult::Broken;
    std::memcpy(frame_.data(), data_ + at + sizeof(SharedRecord), length);
    frame_bytes_ = length;
    consumed_ += record_bytes(length);
    // Not for each frame: the producer's line of the cache would go back and forth.
    if (consumed_ - published_ >= bytes_ / 4)
        publish();
    return RingResult::Done;
}

void RingConsumer::publish()
{
    published_ = consumed_;
    Word(ring_.consumed).store(consumed_, std::memory_order_seq_cst);
}

bool RingConsumer::end_burst()
{
    if (published_ != consumed_)
        publish();
    const uint64_t kick_at = Word(ring_.kick_at_room).load(std::memory_order_seq_cst);
    if (!kick_at || kick_at == kicked_at_ || kick_at > consumed_)
        return false;
    kicked_at_ = kick_at;
    return true;
}

bool RingConsumer::pending() const
{
    return !waiting_ || Word(ring_.produced).load(std::memory_order_acquire) != consumed_;
}

}  // namespace hghca
