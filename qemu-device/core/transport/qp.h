// SPDX-License-Identifier: GPL-2.0-or-later
// A queue pair: what a QPC says, and where its requester and responder stand.
#pragma once

#include <array>
#include <cstdint>

#include "transport/types.h"
#include "wire/number.h"
#include "wire/path.h"
#include "wire/psn.h"

namespace hghca {

constexpr uint32_t kMaxXrcd = 0xffffff;
constexpr uint32_t kMaxWqes = 1u << 14;
constexpr uint32_t kWorkQueuePage = 4096;
constexpr uint32_t kMaxRdAtomic = 16;
constexpr uint32_t kMaxReplies = kMaxRdAtomic + 1;   // and an ACK or a NAK
constexpr uint64_t kMaxMessage = 1ull << 31;         // bytes

// A work queue as the QPC gives it.
struct WorkQueue {
    Key lkey;
    uint32_t length;      // WQEs, a power of two, or 0
    uint8_t stride_log;
    uint16_t first_page;  // where in its region it starts, in pages of kWorkQueuePage
};

enum class Special : uint8_t { None, Gsi, RawEthernet };

// Set by commands alone.
struct QpAttributes {
    Qpn qpn;
    Service service;
    Special special;
    uint32_t mtu;     // bytes
    uint8_t log_max_msg;
    uint32_t usr_page;
    uint32_t pd;
    WorkQueue sq, rq;
    Cqn cqn_send, cqn_recv;
    uint64_t dbr_addr;  // 0: none
    Srqn srqn;          // kNoSrqn: it has a receive queue of its own
    uint32_t xrcd;      // of an XRC target; 0: the QP is not one
    Qpn remote_qpn;
    uint16_t pkey_index;
    uint16_t pkey;            // 0: the port's
    uint32_t qkey;
    Path path;
    uint8_t ack_timeout;      // 0..31
    uint8_t retry_count;      // 0..7
    uint8_t rnr_retry;        // 0..7
    uint8_t min_rnr_timer;    // code 0..31
    uint8_t max_rd_atomic;    // as initiator, 1..16
    uint8_t max_dest_rd_atomic;
    uint8_t access;           // what its peer may do: values of Access
    bool sqd_notify;
    bool trusted;             // may post REG_MR
    bool retries_forever;     // time-outs and lost packets do not fail it
    bool vendor_ops;          // sends and accepts PART, READ_POINTER and READ_CONSISTENT
    uint16_t counter_set;     // 0: none

    bool allows(Access what) const { return !(uint32_t(what) & ~access); }
};

// A WQE that the function has found (transport/function.h).
struct WqeRef {
    uint16_t index;    // free-running
    uint8_t opcode;    // these two are the function's: what it has to know before it reads the WQE
    uint8_t units;
    bool fence;
    bool valid;
};

// The page that one side of the QP has asked software for.
struct PageFault {
    enum class State : uint8_t {
        None,
        Told,     // a PAGE_FAULT event is out, no RESUME_QP has come
        Failed,   // there is no such page
    } state;
    uint16_t token;   // RESUME_QP names it
    Key key;          // of the region
    uint64_t va;      // of the page of 4 KB
};

// The send side. PSNs are 24 bits, WQE indices 16, and both wrap.
//
//      completed   | sent, not completed | to be sent     | not walked to
//   ---------------+---------------------+----------------+-------------- WQEs
//               oldest                 next
//               oldest_psn             next_wqe_psn
//
// Between oldest_psn and next_wqe_psn the span of each WQE follows from the WQE
// itself, so nothing is kept a WQE. Going back means that `next` moves to
// `oldest` again, with next_psn at unacked_psn, or with Rewind::Message at
// oldest_psn. In the latter case packets that are acknowledged go again.
struct RequesterState {
    WqeRef oldest;            // first WQE not completed; its index counts even when it is not valid
    Psn oldest_psn;      // its first PSN
    WqeRef next;              // WQE to send from; invalid at the end of the chain
    Psn next_wqe_psn;    // its first PSN
    Psn next_psn;        // PSN of the next packet to send
    uint16_t next_index;      // index of `next`, or where the walk has ended
    uint16_t started_index;   // index behind the last WQE ever begun
    uint16_t doorbell_limit;  // a walk that gets here loops
    WqeRef announced;         // what the last doorbell said, taken when the walk is at its end
    Psn unacked_psn;     // lowest PSN not acknowledged, or for a READ not answered
    Psn highest_psn;     // one past the highest PSN ever sent
    uint32_t requests_in_flight;  // packets since the last going back, without an answer yet
    uint32_t reads_outstanding;   // READs and atomics among them
    Status fault;             // what WQE next_index fails with when it is the oldest; Success: nothing
    uint8_t retries_left;
    uint8_t rnr_retries_left;
    uint8_t rnr_in_row;       // RNR NAKs since the last progress
    bool waiting_timer;       // for deadline_ns: after an RNR NAK, or to ask for a page once more
    bool probing;             // after an RNR NAK one packet at a time goes, until one is acknowledged
    bool response_lost;       // went back for a response; later ones out of turn do not count
    uint16_t since_ack_request;
    // End-to-end credits (IBA vol 1, 9.7.7.2). Messages count from 1.
    Msn messages_done;   // before `oldest`
    Msn messages_sent;   // before `next`
    Msn message_limit;   // up to this one each finds a receive WQE at the peer
    bool has_limit;           // the peer counts, and has said how many
    uint64_t deadline_ns;     // Local ACK or RNR timer; 0: none
    PageFault page;           // nothing is sent while it is Told

    // The packets of the oldest messages before `psn`.
    uint32_t before(Psn psn) const { return psn_distance(psn, oldest_psn); }
    // The next packet is acknowledged already.
    bool repeats() const { return before(next_psn) < before(unacked_psn); }
};

struct AtomicResult {
    Psn psn;
    bool valid;
    uint64_t value;
};

enum class ReplyKind : uint8_t {
    Ack,
    Read,
    Atomic,
    Nak,
    RnrNak,
    Pointer,      // of a READ_POINTER: an element a step
    Consistent,   // of a READ_CONSISTENT: a try a step
};

// Is it a READ response?
constexpr bool is_read_response(ReplyKind kind)
{
    return kind == ReplyKind::Read || kind == ReplyKind::Pointer || kind == ReplyKind::Consistent;
}

constexpr uint32_t kMaxTries = 256;        // of a READ_CONSISTENT
constexpr uint32_t kObjectCrcBytes = 8;    // of its object, at the end

// A response that is due; READ responses are sent packet by packet from it.
struct Reply {
    ReplyKind kind;
    uint8_t syndrome;    // AETH
    Psn psn;        // next response packet's
    Msn msn;
    Key rkey;
    uint64_t va;         // Pointer: of the next element
    uint32_t length;     // bytes left
    uint32_t pd;         // READ: of the key
    uint64_t value;      // atomic: the value before; Pointer: the key that is searched for
    bool first;          // READ: nothing was sent yet
    bool asked_again = false;   // by a duplicate of the request
    uint16_t steps = 0;         // Pointer, Consistent: made without success
    uint32_t search = 0;        // Pointer: as its request has it (pointer_search.h)
};

// A WQE that was taken from an SRQ.
struct SharedWqe {
    uint32_t offset;          // bytes, in its queue
    uint32_t epoch;           // of the SRQ: another one of the same number has another
};

// What a message of several packets is.
enum class MessageKind : uint8_t { Send, Write, Part };

// The receive side.
struct ResponderState {
    Psn expected_psn;
    Msn msn;
    uint16_t rq_index;        // next receive WQE, free-running
    bool in_message;          // one has begun; a SEND holds a receive WQE: rq_index, or an SRQ's
    bool holds_shared;        // `shared` is this QP's
    bool last_wqe_raised;     // SRQ_QP_LAST_WQE was
    SharedWqe shared;
    Srqn xrc_srqn;            // XRC: the SRQ of the message under way
    MessageKind message;      // the last one that has begun
    uint64_t message_offset;  // bytes of the message that have arrived
    uint64_t write_va;        // where the next of them go
    Key write_rkey;           // PART: of the partition
    uint32_t write_left;      // bytes that are to come
    bool nak_sent;            // a NAK for expected_psn is out, or the last of the replies; no second one
    bool ack_due;
    uint8_t atomic_head;
    std::array<AtomicResult, kMaxRdAtomic> atomics;
    uint8_t reply_head, reply_count;
    std::array<Reply, kMaxReplies> replies;  // ring: max_dest_rd_atomic and one more
    PageFault page;
};

// Where a QP stands that its static rate holds back (pacer.h).
struct Pace {
    enum class Phase : uint8_t {
        Free,    // in time: it had nothing to send, or has not sent too fast
        Held,    // waits for next_ns; the timer is armed
        Late,    // let go; what it was woken too late it may make up for
    } phase;
    bool requests_first;      // before responses, when both are held back
    uint64_t next_ns;         // no packet before
};

// Congestion control of a QP (congestion.h), as receiver of marked packets and as sender.
struct CongestionState {
    enum class Rate : uint8_t {
        Untouched,   // no CNP has come
        Reduced,     // to current_kbps
        Recovered,   // by itself; alpha remembers
    } rate;
    bool cnp_due;
    uint8_t time_stage, byte_stage;   // since the last reduction
    uint32_t current_kbps, target_kbps;
    uint32_t alpha;          // how bad it has been: 0 to kAlphaOne, as of cut_ns
    uint32_t bytes;          // sent in this byte stage
    uint64_t cut_ns;         // the last reduction
    uint64_t stage_ns;       // where time_stage began
    uint64_t next_cnp_ns;    // no CNP before
};
constexpr uint32_t kAlphaOne = 1u << 30;

// A QP, as cached. Its ICM entry is private to the device and follows the table in qp_fields.h; what comes back from
// there is validated, for the guest can write to it.
struct Qp {
    QpAttributes a;
    QpState state;
    bool comm_est_sent;
    bool drained_sent;        // SQD: nothing is under way any more
    Pace pace;
    CongestionState congestion;
    RequesterState req;
    ResponderState resp;
};

// Is index a of a WQE before index b, modulo 2^16?
constexpr bool index_before(uint16_t a, uint16_t b)
{
    return int16_t(a - b) < 0;
}

// Has a doorbell announced a WQE that was not reached yet?
constexpr bool announcement_waits(const RequesterState &r)
{
    return r.announced.valid && !index_before(r.announced.index, r.next_index);
}

constexpr uint32_t kQpcEntrySize = 2048;

}  // namespace hghca
