// SPDX-License-Identifier: GPL-2.0-or-later
// Work requests as the transport sees them. How software writes them down is known to the function alone, which reads
// each of them once and fills one of these.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transport/segment.h"
#include "transport/types.h"
#include "wire/number.h"
#include "wire/path.h"

namespace hghca {

class KeySpace;

constexpr unsigned kMaxListEntries = 32;
// The function's own copy of what it has read, at most.
constexpr size_t kMaxWqeBytes = 1024;

// One entry of a gather or scatter list that has any bytes.
struct ListEntry {
    uint32_t length;
    Key lkey;
    uint64_t va;
    const uint8_t *inline_data;   // in the copy of the WQE; nullptr: memory of `lkey`
};

// A gather or scatter list.
struct DataList {
    std::array<ListEntry, kMaxListEntries> entries;
    unsigned count;
    uint64_t length;   // bytes of all entries

    // Are all keys good for `access`? Inline data always is.
    Allowed check(KeySpace &keys, uint32_t pd, Access access) const;
    // May some of it be absent, as keys stand now?
    bool on_demand(KeySpace &keys) const;
    // Appends bytes [offset, offset + bytes) of the list to `out`. `absent`, set with Absent alone, reaches to
    // the end of its entry.
    Found resolve(KeySpace &keys, uint32_t pd, Access access, uint64_t offset, uint32_t bytes, PacketSegments &out,
                  AbsentPage &absent) const;
};

// The outcome of reading a WQE.
enum class [[nodiscard]] WqeFault : uint8_t {
    None = 0,
    Length = uint8_t(Status::LocalLength),
    Operation = uint8_t(Status::LocalOperation),
    Unreadable = 0xff,   // the queue itself cannot be read
};

// What counts of a WQE from its last packet to its completion.
struct SentWqe {
    Operation operation;
    bool completes;      // makes a CQE when it succeeds
    uint32_t token;      // the function's own, for the completion
    uint64_t length;     // bytes of its message

    bool is_read() const { return operation == Operation::Read; }
    bool is_atomic() const { return operation == Operation::CompareSwap || operation == Operation::FetchAdd; }
    bool is_atomic_write() const { return operation == Operation::AtomicWrite; }
    bool is_flush() const { return operation == Operation::Flush; }
    bool is_part() const { return operation == Operation::Part; }
    bool is_pointer() const { return operation == Operation::ReadPointer; }
    bool is_consistent() const { return operation == Operation::ReadConsistent; }
    // Its response brings data.
    bool brings_data() const { return is_read() || is_pointer() || is_consistent(); }
    // One packet, which a response of its own completes, no acknowledgement.
    bool is_answered() const { return brings_data() || is_atomic() || is_atomic_write() || is_flush(); }
    // Data that goes to where a key says.
    bool is_write() const { return operation == Operation::Write || operation == Operation::WriteImm || is_part(); }
    bool has_imm() const { return operation == Operation::SendImm || operation == Operation::WriteImm; }
    // Executed here, without a packet.
    bool is_local() const { return changes_keys() || operation == Operation::Nop; }
    bool changes_keys() const
    {
        return operation == Operation::RegisterRegion || operation == Operation::LocalInvalidate ||
               operation == Operation::BindWindow;
    }
    // PSNs it takes, and for a READ those of its responses (9.7.3.1); 0 for what is executed here.
    uint32_t psn_span(uint32_t mtu) const;
    // The right its list needs.
    Access access() const { return brings_data() || is_atomic() ? Access::LocalWrite : Access::LocalRead; }
};

struct SendWqe : SentWqe {
    bool solicited;
    uint32_t imm;        // wire order; SEND_INV: the key
    Srqn srqn;           // XRC: at the peer
    uint64_t raddr;
    Key rkey;
    uint64_t swap_add, compare;
    uint64_t pointer_key;   // ReadPointer: that is searched for
    uint32_t search;        // ReadPointer: as its request has it (pointer_search.h)
    uint32_t flush_length, flush;   // as a FETH has it: kFlush*
    uint32_t pages;      // RegisterRegion: of its list
    Path path;           // UD
    Qpn dqpn;
    uint32_t qkey;
    DataList list;
    // The function's copy of the WQE. Inline data stands in it.
    alignas(16) std::array<uint8_t, kMaxWqeBytes> bytes;

    // IBA vol 1, 9.2: only what makes a completion at the peer can ask for an event there.
    bool asks_for_event() const { return solicited && !is_answered() && (!is_write() || has_imm()); }
    // The bytes of a turn that it takes when it is executed here: its page list counts.
    int32_t local_cost() const { return 64 + int32_t(operation == Operation::RegisterRegion ? pages * 8 : 0); }
};

struct RecvWqe {
    DataList list;
    uint32_t pd;   // of its list
    alignas(16) std::array<uint8_t, kMaxWqeBytes> bytes;
};

// A message that has arrived, for its completion.
struct Received {
    uint8_t bth_opcode;
    uint32_t byte_count;
    uint32_t imm = 0;        // wire order
    Qpn src_qpn{};
    bool global_header = false;   // of a datagram: it stands before the data
    bool ipv6 = false;            // of a datagram: it came so, otherwise by IPv4
    uint8_t sl = 0;
    int vlan = -1;           // of a datagram; -1: none
    bool solicited = false;
};

}  // namespace hghca
