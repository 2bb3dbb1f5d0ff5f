// SPDX-License-Identifier: GPL-2.0-or-later
// Applications on the hosts: they post requests at random, and know what each of them has to do.
//
// A Side is a QP with its memory:
//
//   target:  what the peer may write to, read and change atomically
//   local:   sources of messages, which never change | where answers go | receive buffers
//
// The QP of a side is one of a JingZhao HCA, or of an ERNIC, whose receive buffers stand in a block of their own. One
// of RSNIC may have the operations that RSNIC alone has; then it has more memory for these.
//
// The model of a block is changed as a request is posted, for those of one QP take effect in their order; what was
// there before is kept with the request until it has completed, since the request may fail.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "ernic_machine.h"
#include "failure.h"
#include "machine.h"
#include "partition.h"
#include "prepared.h"
#include "random.h"

namespace hghca::sim {

class Traffic;
struct Side;

enum class Action : uint8_t {
    Send, SendImm, SendInv, Write, WriteImm, Read, Cas, Faa, AtomicWrite, Flush, Bind,
    Part, ReadPointer, ReadConsistent,   // of RSNIC alone
    Count
};

constexpr uint32_t kActions = uint32_t(Action::Part);   // of all devices
constexpr uint32_t mask_of(Action a) { return 1u << uint32_t(a); }
constexpr uint32_t kAllActions = (1u << kActions) - 1;
const char *name_of(Action action);

// A part of a message, in the source area of its sender.
struct Piece {
    uint32_t offset, length;
};

struct Message {
    Action action;
    uint32_t length;
    uint32_t imm;         // as on the wire; of SEND_INV the key
    uint32_t number;      // among those of its sender
    std::array<Piece, 4> pieces;
    uint8_t piece_count;
};

// A request that has been posted and not completed.
struct Request {
    Action action;
    uint8_t opcode;
    uint16_t index;       // of its WQE, free-running
    bool signaled;
    uint32_t length;
    uint32_t target;      // offset in the peer's target block
    uint32_t local;       // offset in the local block: of an answer; of PART in the side's records
    uint64_t original;    // what an atomic has to answer
    bool shared;          // an atomic on the word that all share
    bool torn;            // READ_CONSISTENT of an object that is never whole
    Partition *partition; // PART: where its records go
    // WRITE, atomics: what the target held before. READ, READ_POINTER, READ_CONSISTENT: what it has to bring.
    std::vector<uint8_t> bytes;
};

// A request that has been drawn and not posted.
struct Posting {
    Request request;
    Message message;      // of what it has no use for, nothing is set
    Side *peer;           // null: a BIND_MW of a side without one
    uint64_t va;          // of the peer's memory
    uint32_t key;
    uint64_t result;      // what an atomic makes of the word
    hghca_pointer_unit pointer;   // of READ_POINTER
    bool fence;
};

// Bytes that may or may not have been written: by requests that have failed.
struct Doubt {
    Block *block;
    int64_t offset;
    std::vector<uint8_t> bytes;   // that may be there besides what the model says
    bool any = false;             // any byte may be there: of `length`
    int64_t length = 0;
};

// Receive buffers that several QPs share.
struct SharedQueue {
    Machine *machine;
    TestDriver::Srq srq;
    std::unique_ptr<Block> buffers;
    uint32_t buffer_bytes;
    std::vector<bool> posted_slots;
    std::vector<uint32_t> free_slots;
    uint32_t posted = 0;
};

// Memory of a side whose QP has the operations of RSNIC alone.
struct VendorMemory {
    VendorMemory(Machine &machine, uint32_t object_bytes, Random &random, std::vector<Partition *> partitions);

    struct Message {
        uint32_t offset, length;   // in `records`
        const Partition *partition;
    };
    // For the peer: partitions that it appends to, and what it searches and reads.
    std::vector<Partition *> partitions;
    Prepared prepared;
    // For PARTs to the peer: each record is sent once, in its order, and its first four bytes name it.
    Block records;
    std::vector<Message> messages;   // that were posted
    uint32_t posted = 0, done = 0;   // bytes of `records` whose messages were posted, and have completed
};

// The queues of a side whose host has an ERNIC, and how far software has seen them.
struct ErnicQueues {
    ErnicMachine *machine;
    bool is_connected = false;
    std::unique_ptr<Block> slots;            // for one message each
    uint32_t slot_bytes;
    uint64_t sq_dma, cq_dma;
    uint32_t pd;
    uint16_t cqhead = 0, rq_written = 0;     // as the registers have them
    uint16_t emptied = 0;                    // slots, free-running
    bool disabled = false;
};

struct SideConfig {
    uint8_t service = HGHCA_QP_ST_RC;
    uint32_t actions = kAllActions;
    uint32_t sq_wqes = 32, rq_wqes = 32;
    uint32_t max_message = 4096;
    unsigned mtu_code = 3;
    uint32_t target_bytes = 8192, source_bytes = 8192, answer_bytes = 8192;
    uint64_t guard_pages = 1;
    unsigned gid_index = 0;
    uint8_t ack_timeout = 8;
    uint8_t retry = 7, rnr_retry = 7, rnr_timer = 1;
    uint32_t rd_atomic = 16;
    uint32_t psn = 0;
    uint32_t requests = 100;          // that it will post
    uint32_t batch = 4;               // posted with one doorbell, at most
    uint32_t receive_late_ppm = 0;    // how often receives are posted late
    bool initiates = true;
    bool empty_sends = true;
    bool deaf = false;                // for tests of the checkers: posts no more receives
    bool plain = false;               // the same request again and again, for figures
    bool vendor_ops = false;          // the QP has the operations of RSNIC alone
    uint32_t inline_ppm = 200'000, signal_ppm = 700'000;
};

struct Side {
    enum class State { Alive, Failed, Closing, Dead, Gone };

    uint32_t number;
    NetworkHost *machine;
    Machine *hca = nullptr;            // that, if it has one
    std::unique_ptr<ErnicQueues> ernic;   // or it has an ERNIC
    std::unique_ptr<VendorMemory> vendor; // of a QP with the operations of RSNIC alone
    Side *peer = nullptr;
    SideConfig config;
    TestDriver::Qp qp{};
    std::unique_ptr<Block> target, local;
    SharedQueue *srq = nullptr;
    uint32_t cq = 0;                   // its place in Machine::cqs
    State state = State::Alive;
    bool expects_flush = false;        // its QP is in ERR, or on the way there
    bool refused = false;              // its peer may have refused a request, so that the peer's QP is in ERR
    bool call_due = false;

    // Send queue.
    uint16_t sq_head = 0;
    uint32_t requests_left = 0, unsignaled = 0;
    std::deque<Request> requests;
    uint32_t answer_at = 0;            // next free byte of the answer area, from its beginning
    // Receive queue: slots in the order of posting.
    uint16_t rq_head = 0;
    std::deque<uint16_t> receives;
    uint32_t receives_due = 0;         // that are to be posted later
    // Messages on their way to the peer (RC, XRC), or all that were ever sent (UC, UD).
    std::deque<Message> messages;
    uint32_t message_count = 0;

    // The window of this side's target, which the peer may use and invalidate.
    enum class Window { None, Free, Binding, Bound, Invalidating } window = Window::None;
    uint32_t window_key = 0, window_offset = 0, window_bytes = 0;

    uint64_t completed = 0, failed = 0, flushed = 0, received = 0;
    uint64_t bytes_done = 0, last_done_ns = 0;
    uint8_t syndrome = 0;              // that ended it

    bool reliable() const { return config.service == HGHCA_QP_ST_RC || config.service == HGHCA_QP_ST_XRC; }
    bool receives_from_srq() const { return srq; }
    // Requests that have not completed, at most. One entry of an ERNIC's queue stays empty.
    uint32_t most_requests() const { return config.sq_wqes - (ernic ? 1 : 0); }
    // Are receives told of by their first bytes alone? Then one slot stays empty.
    bool without_record() const { return hca && !hca->has(HGHCA_CAP_DBR); }
    uint32_t most_receives() const { return config.rq_wqes - (without_record() ? 1 : 0); }
    uint32_t local_answers() const { return config.source_bytes; }
    uint32_t local_receives() const { return config.source_bytes + config.answer_bytes; }
};

class Traffic final : public Machine::Handler, public ErnicMachine::Handler {
public:
    Traffic(World &world, Random random) : world_(world), random_(random) {}

    SharedQueue &add_shared_queue(Machine &machine, unsigned log, uint32_t buffer_bytes, uint32_t xrcd, uint32_t cq);
    Side &add_side(Machine &machine, const SideConfig &config, SharedQueue *srq = nullptr, uint32_t xrcd = 0);
    Side &add_side(ErnicMachine &machine, const SideConfig &config);
    void connect(Side &a, Side &b);
    // Datagrams: who they are sent to is chosen each time.
    void join_datagrams(Side &side);
    // A word that all sides with a way to `machine` add to.
    void add_counter(Machine &machine);
    // A partition for the sides with RSNIC's own operations that the machine gets from now on.
    void add_partition(Machine &machine);
    void start(Side &side, uint64_t at_ns);

    // ---- Machine::Handler
    void completion(Machine &machine, const hghca_cqe &cqe) override;
    void event(Machine &machine, const hghca_eqe &eqe) override;
    void idle(Machine &machine) override;
    // ---- ErnicMachine::Handler
    void interrupt(ErnicMachine &machine) override;
    // Event::Kind::Call of a side.
    void call(Side &side);

    // The host forgets all; its sides are gone, and those that talk to them will find out.
    void reset_machine(Machine &machine);

    // Has every request been completed, and every message been received?
    bool finished() const;
    std::string unfinished() const;
    // Everything has come to rest: is all as it has to be?
    void check_memory();
    // Then all QPs go to ERR: what was posted is flushed, once and in order.
    void close_all();
    void check_closed();

    bool faulty = false;           // the network loses frames, so that retries may run out
    uint64_t calm_ns = UINT64_MAX; // from when on no QP may fail any more
    std::vector<std::unique_ptr<Side>> sides;
    uint64_t completions = 0, dead = 0;

private:
    struct Counter {
        Machine *machine;
        std::unique_ptr<Block> block;
        uint64_t done = 0, unsure = 0;
        std::vector<bool> seen;
    };
    void connect_one(Side &side, const Side &peer);
    Side *side_of(const Machine &machine, uint32_t qpn) const;
    std::string name_of(const Side &side) const;
    Counter *counter_of(const NetworkHost &machine);

    void post_receives(Side &side, uint32_t count);
    void post_shared(SharedQueue &queue, uint32_t count);
    void fill_send_queue(Side &side);
    bool draw(Side &side, bool last_of_batch, Posting &posting);
    // What its predecessor or a doorbell says of a WQE.
    struct WqeHead {
        uint8_t opcode, units;
        bool fence;
    };
    WqeHead write_wqe(Side &side, Posting &posting);
    void expect(Side &side, Posting &posting);
    void wake(Side &side, uint64_t delay_ns);

    void sent(Side &side, const hghca_cqe &cqe);
    void retire(Side &side, Request &request);
    void give_up(Side &side, Request &request);
    void received(Side &side, const hghca_cqe &cqe);
    void take_message(Side &side, Side &from, const hghca_cqe &cqe, Block &block, uint32_t buffer, uint32_t header);
    bool matches(const Side &from, const Message &message, const uint8_t *data) const;
    void fail_side(Side &side, const Request &request, uint8_t syndrome);
    void close_later(Side &side);
    void close(Side &side);
    void enter_error(Side &side);
    void go_on();

    // Of sides with the operations of RSNIC alone: rsnic_traffic.cc.
    std::vector<Partition *> partitions_of(const Machine &machine) const;
    void aim_part(Side &side, Posting &posting);
    void aim_vendor_read(Side &side, Posting &posting);
    void expect_part(Side &side, const Request &request);
    static bool may_be_refused(const Side &side, const Request &request);
    static bool may_have_refused(const Side &side);
    bool ends_by_refusal(const Side &side, const Request &request, uint8_t syndrome) const;
    // The side that has sent a record to the partition, and where the record is in its memory. Null: nobody has.
    const Side *sender_of(const Partition &partition, const uint8_t *record, uint32_t &offset) const;
    // Of a side: the bytes of its records in partitions, and the end of the last of these in its own memory.
    struct Placed {
        uint32_t bytes = 0, end = 0;
    };
    std::vector<Placed> placed_records();
    void check_partitions();
    // Of sides whose host has an ERNIC: ernic_traffic.cc.
    void connect_ernic(Side &side, const Side &peer);
    void empty_slots(Side &side, uint32_t count);
    void write_ernic_wqe(Side &side, const Posting &posting);
    void ring_ernic(Side &side);
    bool poll_ernic(Side &side);
    void ernic_sent(Side &side, uint32_t cqe);
    void ernic_received(Side &side);
    static Status status_of_fatal(Side &side);
    void disable_ernic(Side &side);
    void doubt_receives(Side &side);

    World &world_;
    Random random_;
    std::vector<std::vector<Side *>> by_qpn_;      // of each machine
    std::vector<std::unique_ptr<SharedQueue>> queues_;
    std::vector<Counter> counters_;
    std::vector<std::unique_ptr<Partition>> partitions_;
    std::vector<Side *> datagrams_;
    std::vector<Doubt> doubts_;
    std::vector<Side *> touched_;                  // by the completions of an interrupt
    std::vector<uint8_t> scratch_;
};

}  // namespace hghca::sim
