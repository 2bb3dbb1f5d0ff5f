// SPDX-License-Identifier: GPL-2.0-or-later
// The page of a queue that was used last, so that most entries cost no look-up.
#pragma once

#include <algorithm>
#include <cstdint>

#include "jingzhao/memory.h"

namespace hghca {

// A queue in a region: `bytes` from address `start` on.
struct QueueMemory {
    Key lkey;
    uint32_t pd;
    uint64_t start;
    uint64_t bytes;
};

class QueuePage {
public:
    // Where the entry of `length` bytes at address `at` is, which lies in one page. False: there is no such memory, or
    // no right to it, in any part of the queue that is in this page.
    bool locate(MemoryTable &memory, const QueueMemory &queue, uint64_t at, uint32_t length, Access access, Segment &out)
    {
        const bool here = generation_ == memory.generation() && lkey_ == queue.lkey && pd_ == queue.pd &&
                          at >= from_ && at + length <= end_;
        if (!here && !look_up(memory, queue, at, access))
            return false;
        const uint64_t offset = at - from_;
        out = {pointer_ ? pointer_ + offset : nullptr, dma_ + offset, length};
        return true;
    }

private:
    static constexpr uint64_t kPage = 4096;

    // All of the queue in this page at once, as the next entries are not checked again.
    bool look_up(MemoryTable &memory, const QueueMemory &queue, uint64_t at, Access access)
    {
        SegmentArray<1> segments;
        const uint64_t page = at - at % kPage;
        const uint64_t from = std::max(queue.start, page);
        const uint64_t end = page + std::min(kPage, queue.start + queue.bytes - page);
        if (!memory.translate(queue.lkey, queue.pd, from, end - from, access, segments))
            return false;
        generation_ = memory.generation();
        lkey_ = queue.lkey;
        pd_ = queue.pd;
        from_ = from;
        end_ = end;
        pointer_ = segments[0].pointer;
        dma_ = segments[0].dma;
        return true;
    }

    // Good while the memory table is of the same generation.
    uint64_t generation_ = 0;
    Key lkey_{};
    uint32_t pd_ = 0;
    uint64_t from_ = 0, end_ = 0;   // addresses of the queue in it
    uint8_t *pointer_ = nullptr;
    uint64_t dma_ = 0;
};

}  // namespace hghca
