// SPDX-License-Identifier: GPL-2.0-or-later
// Copies of frames, first in, first out, in memory that is allocated once.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "pool.h"
#include "wire/packet.h"

namespace hghca {

class FrameRing {
public:
    // A frame that wraps around the end of the memory is in two parts.
    struct Frame {
        std::array<iovec, 2> parts;
        size_t count;
        size_t bytes;
        FrameView view() const { return {{parts.data(), count}, 0, bytes}; }
    };

    FrameRing() = default;
    // `frames` of `bytes` in all have room. Throws std::bad_alloc.
    FrameRing(size_t frames, size_t bytes) : memory_(frames * sizeof(uint32_t) + bytes) {}

    bool empty() const { return !used_; }
    // The caller has seen that there is room.
    void push(const FrameView &frame)
    {
        const auto bytes = uint32_t(frame.length);
        append(reinterpret_cast<const uint8_t *>(&bytes), sizeof(bytes));
        frame.for_each(0, bytes, [this](const uint8_t *run, size_t n) { append(run, n); });
    }
    // The first frame, removed. It is good until the next push().
    Frame pop()
    {
        const Frame head = place(0, sizeof(uint32_t));
        uint32_t bytes;
        head.view().copy(0, &bytes, sizeof(bytes));
        const Frame frame = place(sizeof(bytes), bytes);
        first_ = (first_ + sizeof(bytes) + bytes) % memory_.size();
        used_ -= sizeof(bytes) + bytes;
        return frame;
    }
    void clear() { first_ = used_ = 0; }

private:
    void append(const uint8_t *run, size_t bytes)
    {
        const Frame to = place(used_, bytes);
        const size_t first = to.parts[0].iov_len;
        std::copy_n(run, first, static_cast<uint8_t *>(to.parts[0].iov_base));
        std::copy_n(run + first, bytes - first, static_cast<uint8_t *>(to.parts[1].iov_base));
        used_ += bytes;
    }
    // `bytes` of the memory, `from` bytes behind the first.
    Frame place(size_t from, size_t bytes)
    {
        const size_t at = (first_ + from) % memory_.size();
        const size_t whole = std::min(bytes, memory_.size() - at);
        return {{iovec{&memory_[at], whole}, iovec{&memory_[0], bytes - whole}}, size_t(whole < bytes ? 2 : 1), bytes};
    }

    ZeroedArray<uint8_t> memory_;
    size_t first_ = 0, used_ = 0;
};

}  // namespace hghca
