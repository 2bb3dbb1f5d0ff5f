// SPDX-License-Identifier: GPL-2.0-or-later
// Work queue elements, read once from guest memory and taken apart (interface document, section 6).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "jingzhao/memory.h"
#include "transport/qp.h"

namespace hghca {

constexpr unsigned kMaxListEntries = 32;
constexpr size_t kMaxWqeBytes = 1u << HGHCA_WQE_MAX_STRIDE_LOG;

// One entry of a gather or scatter list that has any bytes.
struct ListEntry {
    uint32_t length;
    uint32_t lkey;
    uint64_t va;
    const uint8_t *inline_data;   // in the copy of the WQE; nullptr: memory of `lkey`
};

// A gather or scatter list.
struct DataList {
    std::array<ListEntry, kMaxListEntries> entries;
    unsigned count;
    uint64_t length;   // bytes of all entries

    // Are all keys good for `access`? Inline data always is.
    bool check(MemoryTable &memory, uint32_t pd, Access access) const;
    // May some of it be absent, as keys stand now?
    bool on_demand(MemoryTable &memory) const;
    // Appends bytes [offset, offset + bytes) of the list to `out`. `absent`, set with Absent alone, reaches to
    // the end of its entry.
    Found resolve(MemoryTable &memory, uint32_t pd, Access access, uint64_t offset, uint32_t bytes,
                  PacketSegments &out, AbsentPage &absent) const;
};

// Outcome of reading a WQE: 0, or why not.
enum class WqeFault : uint8_t {
    None = 0,
    Length = uint8_t(Status::LocalLength),
    Operation = uint8_t(Status::LocalOperation),
    Unreadable = 0xff,   // the queue itself cannot be read
};

struct SendWqe {
    Operation operation;
    bool solicited;
    bool completes;      // makes a CQE when it succeeds
    uint32_t imm;        // wire order; SEND_INV: the key
    uint32_t srqn;       // XRC: at the peer
    uint64_t raddr;
    uint32_t rkey;       // LOCAL_INV too
    uint64_t swap_add, compare;
    uint32_t flush_length, flush;   // HGHCA_FLUSH_*
    Registration registration;
    Binding binding;
    Path path;           // UD
    uint32_t dqpn, qkey;
    DataList list;
    // What the next unit says of the WQE behind.
    uint32_t next_word0, next_word1;
    alignas(16) std::array<uint8_t, kMaxWqeBytes> bytes;

    bool is_read() const { return operation == Operation::Read; }
    bool is_atomic() const { return operation == Operation::CompareSwap || operation == Operation::FetchAdd; }
    bool is_atomic_write() const { return operation == Operation::AtomicWrite; }
    bool is_flush() const { return operation == Operation::Flush; }
    // One packet, which a response of its own completes, no acknowledgement.
    bool is_answered() const { return is_read() || is_atomic() || is_atomic_write() || is_flush(); }
    bool is_write() const { return operation == Operation::Write || operation == Operation::WriteImm; }
    bool has_imm() const { return operation == Operation::SendImm || operation == Operation::WriteImm; }
    // IBA vol 1, 9.2: only what makes a completion at the peer can ask for an event there.
    bool asks_for_event() const { return solicited && !is_answered() && (!is_write() || has_imm()); }
    // Executed here, without a packet.
    bool is_local() const { return changes_keys() || operation == Operation::Nop; }
    bool changes_keys() const
    {
        return operation == Operation::RegisterRegion || operation == Operation::LocalInvalidate ||
               operation == Operation::BindWindow;
    }
    // What it takes of a turn, in bytes, when it is executed here: its page list counts.
    int32_t local_cost() const
    {
        const bool has_list = operation == Operation::RegisterRegion;
        return 64 + (has_list ? int32_t(std::min<uint32_t>(registration.pages, HGHCA_REG_MR_PAGES_MAX) * 8) : 0);
    }
    // PSNs it takes, and for a READ those of its responses (9.7.3.1); 0 for what is executed here.
    uint32_t psn_span(uint32_t mtu) const;
    // The right its list needs.
    Access access() const { return is_read() || is_atomic() ? Access::LocalWrite : Access::LocalRead; }
};

struct RecvWqe {
    DataList list;
    uint32_t pd;   // of its list
    alignas(16) std::array<uint8_t, kMaxWqeBytes> bytes;
};

// Where a receive WQE stands: a byte offset in a zero-based MR, and the bytes it has room for.
struct ReceiveSlot {
    uint32_t lkey;
    uint32_t pd;
    uint32_t offset;
    uint32_t bytes;
};

// Byte offset of WQE `index` in its queue.
constexpr uint32_t wqe_offset(const WorkQueue &queue, uint16_t index)
{
    return (index & (queue.length - 1)) << queue.stride_log;
}

// A doorbell record, now: its low 16 bits. False: it cannot be read.
bool read_record(Host &host, uint64_t dma, uint16_t &head);

class WqeReader {
public:
    WqeReader(Host &host, MemoryTable &memory) : host_(host), memory_(memory) {}

    // Reads and judges the WQE that `ref` announces; `every_completes`: no C bit.
    // Keys are not looked at, except that of the queue.
    WqeFault read_send(const QpAttributes &a, const WqeRef &ref, uint32_t frame_limit, bool every_completes,
                       SendWqe &out);
    // The next WQE, from words of WQE `index`'s next unit. False: it is wrong.
    // Otherwise following.valid tells whether there is one.
    static bool decode_link(const QpAttributes &a, uint16_t index, uint32_t word0, uint32_t word1, WqeRef &following);
    // The same from memory, now. False also when it cannot be read.
    bool read_link(const QpAttributes &a, uint16_t index, WqeRef &following);

    enum class Posted { Yes, No, Unreadable };
    // Has software posted receive WQE `index`?
    Posted receive_posted(const QpAttributes &a, uint16_t index);
    // How many, from WQE `index` on? False: there is no doorbell record that tells.
    bool receives_posted(const QpAttributes &a, uint16_t index, uint32_t &out);
    WqeFault read_receive(const ReceiveSlot &slot, RecvWqe &out);

private:
    bool load_link(const Segment &wqe, uint64_t &link);
    bool load_behind_link(const Segment &wqe, uint8_t *bytes, size_t end);

    Host &host_;
    MemoryTable &memory_;
};

}  // namespace hghca
