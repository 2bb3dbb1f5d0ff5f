// SPDX-License-Identifier: GPL-2.0-or-later
// Frames under way, from a pool.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace hghca::sim {

constexpr uint32_t kMaxFrame = 4096 + 256;
constexpr uint32_t kSmallFrame = 448;
constexpr size_t kBth = 42;   // where it stands in a frame by IPv4 without VLAN

struct Frame {
    uint32_t length;   // bytes, without FCS
    uint32_t room;
    uint8_t data[kMaxFrame];
};

// The frame that was given back last is taken first, for it is still in the CPU's cache.
class FramePool {
public:
    Frame *take(uint32_t length)
    {
        auto &free = length <= kSmallFrame ? small_ : large_;
        if (free.empty())
            grow(length <= kSmallFrame ? kSmallFrame : kMaxFrame, free);
        Frame *frame = free.back();
        free.pop_back();
        frame->length = length;
        return frame;
    }
    Frame *copy(const Frame &from)
    {
        Frame *frame = take(from.length);
        std::memcpy(frame->data, from.data, from.length);
        return frame;
    }
    void give_back(Frame *frame) { (frame->room == kSmallFrame ? small_ : large_).push_back(frame); }

private:
    void grow(uint32_t room, std::vector<Frame *> &free)
    {
        constexpr size_t kFrames = 64;
        const size_t bytes = (offsetof(Frame, data) + room + 63) & ~size_t(63);
        blocks_.push_back(std::make_unique<uint8_t[]>(bytes * kFrames));
        for (size_t i = 0; i < kFrames; i++) {
            auto *frame = reinterpret_cast<Frame *>(blocks_.back().get() + i * bytes);
            frame->room = room;
            free.push_back(frame);
        }
    }

    std::vector<std::unique_ptr<uint8_t[]>> blocks_;
    std::vector<Frame *> small_, large_;
};

}  // namespace hghca::sim
