// SPDX-License-Identifier: GPL-2.0-or-later
// Work queue elements, read once from guest memory and taken apart (interface document, section 6).
#pragma once

#include <cstdint>

#include "jingzhao/queue_page.h"
#include "transport/function.h"
#include "transport/qp.h"
#include "transport/wqe.h"
#include "wire/number.h"

namespace hghca {

static_assert(kMaxWqeBytes == 1u << HGHCA_WQE_MAX_STRIDE_LOG);

// Where a receive WQE stands: a byte offset in a zero-based MR, and the bytes it has room for.
struct ReceiveSlot {
    Key lkey;
    uint32_t pd;
    uint32_t offset;
    uint32_t bytes;
};

// Byte offset of WQE `index` in its queue.
constexpr uint32_t wqe_offset(const WorkQueue &queue, uint16_t index)
{
    return (index & (queue.length - 1)) << queue.stride_log;
}

// The same in the region of its queue.
constexpr uint32_t wqe_address(const WorkQueue &queue, uint16_t index)
{
    return queue.first_page * kWorkQueuePage + wqe_offset(queue, index);
}

// A doorbell record, now: its low 16 bits. False: it cannot be read.
bool read_record(Host &host, uint64_t dma, uint16_t &head);

// What a WQE says that changes keys, after read_send() has found it good.
Registration registration_of(const SendWqe &wqe);
Binding binding_of(const SendWqe &wqe);

class WqeReader {
public:
    WqeReader(Host &host, MemoryTable &memory) : host_(host), memory_(memory) {}

    // What a WQE may say.
    struct Rules {
        uint32_t frame_limit;   // bytes of a raw frame
        bool unsignaled;        // the C bit
        bool gids;              // the GRH bit of a datagram
    };

    // Reads and checks the WQE that `ref` names. Keys are not looked at, except that of the queue.
    WqeFault read_send(const QpAttributes &a, const WqeRef &ref, const Rules &rules, SendWqe &out);
    // The WQE behind WQE `index`, as that says now. False: it is wrong, or cannot be read.
    // Otherwise following.valid tells whether there is one.
    bool read_link(const QpAttributes &a, uint16_t index, WqeRef &following);

    // Has software posted receive WQE `index`?
    Posted receive_posted(const QpAttributes &a, uint16_t index);
    // How many, from WQE `index` on? False: there is no doorbell record that tells.
    bool receives_posted(const QpAttributes &a, uint16_t index, uint32_t &out);
    WqeFault read_receive(const ReceiveSlot &slot, RecvWqe &out);

private:
    // Where `bytes` of WQE `index` are, from its start on. False: they cannot be read.
    bool locate(const QpAttributes &a, uint16_t index, uint32_t bytes, Segment &out);
    static bool decode_link(const QpAttributes &a, uint16_t index, uint64_t link, WqeRef &following);
    bool load_link(const Segment &wqe, uint64_t &link);
    bool load_behind_link(const Segment &wqe, uint8_t *bytes, size_t end);

    Host &host_;
    MemoryTable &memory_;
    QueuePage page_;   // of a send queue
};

}  // namespace hghca
