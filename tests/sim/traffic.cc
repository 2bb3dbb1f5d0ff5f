// SPDX-License-Identifier: GPL-2.0-or-later
#include "traffic.h"

#include <algorithm>
#include <bit>

#include "hghca_wire.h"

namespace hghca::sim {

namespace {

constexpr unsigned kStrideLog = 8;
constexpr uint32_t kInlineMax = 160;
constexpr uint32_t kCounterWord = 0;
constexpr uint32_t kGrh = HGHCA_GRH_SIZE;
constexpr uint32_t kQkey = 0x11111111;          // that TestDriver::init_qpc() gives
constexpr uint64_t kThinkNs = 20'000;           // an application takes its time, up to that
constexpr uint64_t kCloseNs = 100'000;          // until the other end of a connection knows that it has failed
constexpr uint32_t kUcVersions = 4;

struct ActionInfo {
    const char *name;
    uint8_t opcode;
    bool message;       // takes a receive
    bool answered;      // READs and atomics: memory of the sender is written to
    uint32_t services;  // 1 << hghca_qp_st
};

constexpr uint32_t kRcXrc = 1u << HGHCA_QP_ST_RC | 1u << HGHCA_QP_ST_XRC;
constexpr uint32_t kConnected = kRcXrc | 1u << HGHCA_QP_ST_UC;

constexpr ActionInfo kInfo[uint32_t(Action::Count)] = {
    {"SEND", HGHCA_OPCODE_SEND, true, false, kConnected | 1u << HGHCA_QP_ST_UD},
    {"SEND_IMM", HGHCA_OPCODE_SEND_IMM, true, false, kConnected | 1u << HGHCA_QP_ST_UD},
    {"SEND_INV", HGHCA_OPCODE_SEND_INV, true, false, 1u << HGHCA_QP_ST_RC},
    {"WRITE", HGHCA_OPCODE_RDMA_WRITE, false, false, kConnected},
    {"WRITE_IMM", HGHCA_OPCODE_RDMA_WRITE_IMM, true, false, kConnected},
    {"READ", HGHCA_OPCODE_RDMA_READ, false, true, kRcXrc},
    {"CAS", HGHCA_OPCODE_ATOMIC_CS, false, true, kRcXrc},
    {"FAA", HGHCA_OPCODE_ATOMIC_FA, false, true, kRcXrc},
    {"ATOMIC_WRITE", HGHCA_OPCODE_ATOMIC_WRITE, false, false, kRcXrc},
    {"FLUSH", HGHCA_OPCODE_FLUSH, false, false, kRcXrc},
    {"BIND_MW", HGHCA_OPCODE_BIND_MW, false, false, 1u << HGHCA_QP_ST_RC},
    {"PART", HGHCA_OPCODE_PART, false, false, 1u << HGHCA_QP_ST_RC},
    {"READ_POINTER", HGHCA_OPCODE_READ_POINTER, false, true, 1u << HGHCA_QP_ST_RC},
    {"READ_CONSISTENT", HGHCA_OPCODE_READ_CONSISTENT, false, true, 1u << HGHCA_QP_ST_RC},
};

const ActionInfo &info(Action a) { return kInfo[uint32_t(a)]; }

bool is_atomic(Action a) { return a == Action::Cas || a == Action::Faa; }
bool is_vendor(Action a) { return a >= Action::Part; }
bool is_read(Action a) { return a == Action::Read || a == Action::ReadPointer || a == Action::ReadConsistent; }
// Has it an address at the peer?
bool is_one_sided(Action a) { return !info(a).message || a == Action::WriteImm; }
bool changes_target(Action a)
{
    return a == Action::Write || a == Action::WriteImm || is_atomic(a) || a == Action::AtomicWrite;
}

bool overlap(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes) { return a < b + b_bytes && b < a + a_bytes; }

uint32_t mac_high(const std::array<uint8_t, 6> &mac)
{
    return uint32_t(mac[0]) << 24 | uint32_t(mac[1]) << 16 | uint32_t(mac[2]) << 8 | mac[3];
}
uint32_t mac_low(const std::array<uint8_t, 6> &mac) { return uint32_t(mac[4]) << 8 | mac[5]; }

bool is_error(const hghca_cqe &cqe)
{
    return cqe.opcode == HGHCA_OPCODE_INVALID;
}
uint8_t syndrome_of(const hghca_cqe &cqe) { return reinterpret_cast<const hghca_err_cqe &>(cqe).syndrome; }

// The units of one WQE, in its slot.
class WqeWriter {
public:
    explicit WqeWriter(uint8_t *slot) : slot_(slot) {}
    template <class T>
    void put(const T &unit)
    {
        std::memcpy(slot_ + at_, &unit, sizeof(unit));
        at_ += sizeof(unit);
    }
    void inline_data(const uint8_t *data, uint32_t bytes)
    {
        const uint32_t word = le32(HGHCA_INLINE_FLAG | bytes);
        std::memcpy(slot_ + at_, &word, 4);
        std::memcpy(slot_ + at_ + 4, data, bytes);
        at_ = (at_ + 4 + bytes + 15) & ~size_t(15);
    }
    uint8_t units() const { return uint8_t(at_ / HGHCA_WQE_UNIT); }

private:
    uint8_t *slot_;
    size_t at_ = 0;
};

}  // namespace

const char *name_of(Action action) { return info(action).name; }

// ---- building

SharedQueue &Traffic::add_shared_queue(Machine &machine, unsigned log, uint32_t buffer_bytes, uint32_t xrcd, uint32_t cq)
{
    auto queue = std::make_unique<SharedQueue>();
    queue->machine = &machine;
    queue->srq = machine.driver.create_srq(log, 7, TestDriver::kPd, xrcd, xrcd ? machine.cqs[cq].cqn : 0);
    queue->buffer_bytes = buffer_bytes;
    queue->buffers = std::make_unique<Block>(machine, uint64_t(buffer_bytes) << log, random_.below(4096), 1);
    Block &block = *queue->buffers;
    block.mr = machine.driver.create_mr_at(0x5000000000 + (block.dma(0) & 4095), block.bytes(), block.dma(0),
                                           HGHCA_ACCESS_LOCAL_WRITE);
    machine.allow_dma(block.dma(0), block.bytes());
    block.fill(random_);
    queue->posted_slots.resize(1u << log);
    for (uint32_t i = 0; i < 1u << log; i++)
        queue->free_slots.push_back(i);
    queues_.push_back(std::move(queue));
    post_shared(*queues_.back(), 1u << log);
    return *queues_.back();
}

Side &Traffic::add_side(Machine &machine, const SideConfig &config, SharedQueue *srq, uint32_t xrcd)
{
    auto owned = std::make_unique<Side>();
    Side &side = *owned;
    TestDriver &driver = machine.driver;
    side.number = uint32_t(sides.size());
    side.machine = side.hca = &machine;
    side.config = config;
    side.srq = srq;
    side.cq = uint32_t(random_.below(machine.cqs.size()));
    side.requests_left = config.initiates ? config.requests : 0;
    const bool own_receives = !srq && config.service != HGHCA_QP_ST_XRC;
    if (!own_receives)
        side.config.rq_wqes = 0;
    if (xrcd)
        side.config.sq_wqes = 0;
    if (side.without_record())
        side.config.rq_wqes = std::max(side.config.rq_wqes, 2u);
    if (!machine.has(HGHCA_CAP_CQ_UPDATE))
        side.config.signal_ppm = 1'000'000;   // each WQE completes

    const auto make = [&](uint64_t bytes, uint32_t access) {
        auto block = std::make_unique<Block>(machine, bytes, random_.below(4096), config.guard_pages);
        const uint64_t va = (random_.below(1ull << 40) << 12) + (block->dma(0) & 4095);
        block->mr = driver.create_mr_at(va, bytes, block->dma(0), access);
        machine.allow_dma(block->dma(0), bytes);
        block->fill(random_);
        return block;
    };
    const uint32_t header = config.service == HGHCA_QP_ST_UD ? kGrh : 0;
    side.target = make(config.target_bytes,
                       TestDriver::kRw | HGHCA_ACCESS_FLUSH_GLOBAL | HGHCA_ACCESS_MW_BIND);
    side.local = make(side.local_receives() + uint64_t(side.config.rq_wqes) * (config.max_message + header),
                      HGHCA_ACCESS_LOCAL_WRITE);

    side.qp = driver.new_qp(side.config.sq_wqes, side.config.rq_wqes, kStrideLog);
    hghca_qpc c = driver.init_qpc(side.qp, config.service, machine.cqs[side.cq], machine.cqs[side.cq]);
    c.limits = be32((TestDriver::kRw & ~uint32_t(HGHCA_ACCESS_LOCAL_WRITE)) | HGHCA_ACCESS_FLUSH_GLOBAL);
    if (srq && !xrcd)
        c.srqn = be32(srq->srq.srqn);
    c.xrcd = be32(xrcd);
    if (config.vendor_ops) {
        c.trust = be32(HGHCA_QPC_TRUST_VENDOR_OPS);
        const uint32_t object_bytes = std::min(128u << config.mtu_code, config.answer_bytes);
        side.vendor = std::make_unique<VendorMemory>(machine, object_bytes, random_, partitions_of(machine));
    }
    TestDriver::must(driver.modify(HGHCA_CMD_RST2INIT_QPEE, side.qp.qpn, c), "RST2INIT");
    if (config.service == HGHCA_QP_ST_UD)
        driver.to_rts(side.qp, config.psn);
    if (config.actions & mask_of(Action::Bind) && config.service == HGHCA_QP_ST_RC) {
        side.window_key = driver.create_window(true);
        side.window = Side::Window::Free;
    }
    if (by_qpn_.size() <= machine.number)
        by_qpn_.resize(machine.number + 1);
    auto &map = by_qpn_[machine.number];
    if (map.size() <= side.qp.qpn)
        map.resize(side.qp.qpn + 1);
    map[side.qp.qpn] = &side;
    sides.push_back(std::move(owned));
    post_receives(side, side.most_receives());
    return side;
}

void Traffic::connect_one(Side &side, const Side &peer)
{
    if (side.ernic) {
        connect_ernic(side, peer);
        return;
    }
    const Machine &hca = *side.hca;
    TestDriver &driver = side.hca->driver;
    const SideConfig &config = side.config;
    const auto gid = Machine::gid_of(peer.machine->number, config.gid_index);
    TestDriver::Peer to{};
    to.qpn = peer.qp.qpn;
    std::memcpy(to.dmac, Machine::mac_of(peer.machine->number).data(), 6);
    std::memcpy(to.smac, Machine::mac_of(side.machine->number).data(), 6);
    to.sip = Machine::ipv4_of(side.machine->number);
    to.dip = Machine::ipv4_of(peer.machine->number);
    to.dgid = hca.has(HGHCA_CAP_GID_TABLE) ? gid.data() : nullptr;
    to.sgid_index = uint8_t(config.gid_index);
    hghca_qpc c = driver.rtr_qpc(to, peer.config.psn, config.mtu_code, 16);
    c.rnr_nextrecvpsn = be32(uint32_t(config.rnr_timer) << 24 | peer.config.psn);
    if (!hca.has(HGHCA_CAP_QP_LIMITS))
        c.opt_param_mask &= ~be32(HGHCA_QP_ATTR_MAX_DEST_RD_ATOMIC);
    if (config.service == HGHCA_QP_ST_UC)
        c.opt_param_mask &= ~be32(HGHCA_QP_ATTR_MAX_DEST_RD_ATOMIC | HGHCA_QP_ATTR_MIN_RNR_TIMER);
    TestDriver::must(driver.modify(HGHCA_CMD_INIT2RTR_QPEE, side.qp.qpn, c), "INIT2RTR");
    c = driver.rts_qpc(config.psn, config.ack_timeout, config.retry, config.rnr_retry, config.rd_atomic);
    if (!hca.has(HGHCA_CAP_QP_LIMITS))
        c.opt_param_mask &= ~be32(HGHCA_QP_ATTR_MAX_QP_RD_ATOMIC);
    if (config.service == HGHCA_QP_ST_UC)
        c.opt_param_mask = be32(HGHCA_QP_ATTR_SQ_PSN);
    TestDriver::must(driver.modify(HGHCA_CMD_RTR2RTS_QPEE, side.qp.qpn, c), "RTR2RTS");
}

void Traffic::connect(Side &a, Side &b)
{
    a.peer = &b;
    b.peer = &a;
    connect_one(a, b);
    connect_one(b, a);
}

void Traffic::join_datagrams(Side &side) { datagrams_.push_back(&side); }

void Traffic::add_counter(Machine &machine)
{
    Counter counter;
    counter.machine = &machine;
    counter.block = std::make_unique<Block>(machine, 8, 256, 1);
    Block &block = *counter.block;
    block.mr = machine.driver.create_mr_at(0x6000000000 + (block.dma(0) & 4095), 8, block.dma(0));
    machine.allow_dma(block.dma(0), 8);
    block.fill(random_);
    std::memset(block.now(0), 0, 8);
    block.accept_all();
    counters_.push_back(std::move(counter));
}

void Traffic::start(Side &side, uint64_t at_ns)
{
    if (!side.call_due) {
        side.call_due = true;
        world_.events.put(at_ns, Event::Kind::Call, UINT32_MAX, &side);
    }
}

void Traffic::wake(Side &side, uint64_t delay_ns) { start(side, world_.now_ns + delay_ns); }

// ---- names and numbers

std::string Traffic::name_of(const Side &side) const
{
    return "host " + std::to_string(side.machine->number) + " QP " + std::to_string(side.qp.qpn) + " (side " +
           std::to_string(side.number) + ", " +
           (side.ernic ? "ERNIC" : "service " + std::to_string(side.config.service)) + ")";
}

Side *Traffic::side_of(const Machine &machine, uint32_t qpn) const
{
    if (machine.number >= by_qpn_.size() || qpn >= by_qpn_[machine.number].size())
        return nullptr;
    return by_qpn_[machine.number][qpn];
}

Traffic::Counter *Traffic::counter_of(const NetworkHost &machine)
{
    for (Counter &counter : counters_)
        if (counter.machine == &machine)
            return &counter;
    return nullptr;
}

// ---- receives

void Traffic::post_receives(Side &side, uint32_t count)
{
    if (!count || side.config.deaf)
        return;
    if (side.ernic) {
        empty_slots(side, count);
        return;
    }
    const uint32_t header = side.config.service == HGHCA_QP_ST_UD ? kGrh : 0;
    const uint32_t room = side.config.max_message + header;
    const auto wqe_at = [&side](uint32_t slot) {
        return side.machine->at(side.qp.rq.dma + (uint64_t(slot & (side.config.rq_wqes - 1)) << kStrideLog));
    };
    for (uint32_t n = 0; n < count; n++) {
        const uint32_t slot = side.rq_head & (side.config.rq_wqes - 1);
        uint8_t *wqe = wqe_at(slot);
        std::memset(wqe, 0, 1u << kStrideLog);
        WqeWriter writer(wqe);
        writer.put(hghca_next_unit{});
        const uint64_t va = side.local->mr.va + side.local_receives() + uint64_t(slot) * room;
        uint32_t done = 0;
        for (uint64_t parts = side.config.plain ? 1 : random_.between(1, 4); parts; parts--) {
            const uint32_t bytes = parts == 1 ? room - done : uint32_t(random_.below(room - done + 1));
            writer.put(hghca_data_unit{le32(bytes), le32(side.local->mr.key), le64(va + done)});
            done += bytes;
        }
        writer.put(hghca_data_unit{0, le32(HGHCA_INVALID_LKEY), 0});
        if (side.without_record()) {
            // 5.2: the queue ends with 16 bytes of zeros.
            std::memset(wqe_at(slot + 1), 0, sizeof(hghca_next_unit));
            test::store_release<uint8_t>(wqe[0], 1);
        }
        side.receives.push_back(uint16_t(slot));
        side.rq_head++;
    }
    test::store_release(side.machine->as<hghca_qp_dbr>(side.qp.dbr)->rq_head, le32(side.rq_head));
}

void Traffic::post_shared(SharedQueue &queue, uint32_t count)
{
    auto &driver = queue.machine->driver;
    // One slot stays free: the link of the last WQE names it.
    for (uint32_t n = 0; n < count && queue.free_slots.size() > 1; n++) {
        const uint32_t slot = queue.free_slots[0], next = queue.free_slots[1];
        queue.free_slots.erase(queue.free_slots.begin());
        queue.posted_slots[slot] = true;
        uint8_t *wqe = queue.machine->at(queue.srq.buffer.dma + (uint64_t(slot) << queue.srq.stride_log));
        const uint32_t link = le32(next << queue.srq.stride_log);
        std::memset(wqe, 0, size_t(1) << queue.srq.stride_log);
        std::memcpy(wqe, &link, sizeof(link));
        const hghca_data_unit units[2] = {{le32(queue.buffer_bytes), le32(queue.buffers->mr.key),
                                           le64(queue.buffers->mr.va + uint64_t(slot) * queue.buffer_bytes)},
                                          {0, le32(HGHCA_INVALID_LKEY), 0}};
        std::memcpy(wqe + 16, units, sizeof(units));
        queue.posted++;
    }
    test::store_release(driver.host.as<hghca_srq_dbr>(queue.srq.dbr)->posted, le32(queue.posted));
}

// ---- sends

void Traffic::call(Side &side)
{
    side.call_due = false;
    if (side.state == Side::State::Gone)
        return;
    if (side.state == Side::State::Failed) {
        close(side);
        return;
    }
    if (side.state != Side::State::Alive)
        return;
    post_receives(side, std::exchange(side.receives_due, 0));
    fill_send_queue(side);
}

void Traffic::fill_send_queue(Side &side)
{
    while (side.state == Side::State::Alive && side.requests_left) {
        const uint16_t head = side.sq_head;
        const uint64_t want = random_.between(1, side.config.batch);
        WqeHead first{};
        uint32_t posted = 0;
        for (; posted < want && side.requests_left && side.requests.size() < side.most_requests(); posted++) {
            Posting posting{};
            if (!draw(side, posted + 1 == want, posting))
                break;
            if (side.ernic)
                write_ernic_wqe(side, posting);
            else if (const WqeHead wqe = write_wqe(side, posting); !posted)
                first = wqe;
            expect(side, posting);
        }
        if (!posted)
            return;
        if (side.ernic)
            ring_ernic(side);
        else
            side.hca->driver.ring_sq(side.qp, head, first.opcode, first.units, uint8_t(posted), first.fence);
        if (posted < want)
            return;
    }
}

// The next request of a side. False: none can be posted now.
bool Traffic::draw(Side &side, bool last_of_batch, Posting &posting)
{
    const SideConfig &config = side.config;
    Side *const peer =
        config.service == HGHCA_QP_ST_UD ? datagrams_[random_.below(datagrams_.size())] : side.peer;
    posting.peer = peer;
    Action action = Action::Write;
    if (config.vendor_ops && random_.one_in(2)) {
        action = Action(uint32_t(Action::Part) + random_.below(uint32_t(Action::Count) - uint32_t(Action::Part)));
    } else if (!config.plain) {
        do
            action = Action(random_.below(kActions));
        while (!(config.actions & mask_of(action)) || !(info(action).services >> config.service & 1));
    }
    // Windows: what cannot be done now is done without one.
    if (action == Action::Bind && side.window != Side::Window::Free)
        action = Action::Flush;
    if (action == Action::SendInv && (!peer || peer->window != Side::Window::Bound))
        action = Action::SendImm;

    Request &r = posting.request;
    r.action = action;
    r.opcode = info(action).opcode;
    r.index = side.sq_head;
    uint32_t length = 0;
    switch (action) {
    case Action::Cas:
    case Action::Faa:
    case Action::AtomicWrite:
        length = 8;
        break;
    case Action::Bind:
        break;
    default:
        length = config.plain ? config.max_message
                 : random_.one_in(10) ? 0
                 : random_.one_in(3)  ? uint32_t(random_.below(std::min(config.max_message, 300u) + 1))
                                      : uint32_t(random_.below(config.max_message + 1));
    }
    if (action == Action::Send && !config.empty_sends)
        length = std::max(length, 1u);
    r.length = length;

    // Where it goes.
    posting.key = peer ? peer->target->mr.key : 0;
    uint32_t low = 0, room = peer ? peer->config.target_bytes : 0;
    Counter *counter = nullptr;
    const bool one_sided = is_one_sided(action);
    if (is_vendor(action)) {
        if (action == Action::Part)
            aim_part(side, posting);
        else
            aim_vendor_read(side, posting);
        length = r.length;
    } else if (one_sided && action != Action::Bind) {
        if (action == Action::Faa && random_.one_in(3) && (counter = counter_of(*peer->machine))) {
            r.shared = true;
            posting.key = counter->block->mr.key;
            posting.va = counter->block->mr.va + kCounterWord;
        } else if (peer->window == Side::Window::Bound && action != Action::Flush && random_.one_in(2) &&
                   peer->window_bytes >= length + 16) {
            posting.key = peer->window_key;
            low = peer->window_offset;
            room = peer->window_bytes;
        }
        if (!r.shared) {
            length = r.length = std::min(length, room);
            uint32_t span = room - length;
            r.target = config.plain ? 0 : low + uint32_t(random_.below(span + 1));
            if (is_atomic(action) || action == Action::AtomicWrite) {
                const auto misaligned = uint32_t((peer->target->mr.va + r.target) & 7);
                r.target = r.target >= low + misaligned ? r.target - misaligned : r.target + 8 - misaligned;
                if (r.target + 8 > low + room)
                    return false;
            }
            posting.va = peer->target->mr.va + r.target;
        }
    }
    if (info(action).answered) {
        if (side.answer_at + length > config.answer_bytes)
            side.answer_at = 0;
        for (const Request &other : side.requests)
            if (info(other.action).answered &&
                overlap(side.answer_at, length, other.local - side.local_answers(), other.length))
                return false;
        r.local = side.local_answers() + side.answer_at;
        side.answer_at += length;
    }
    // What a READ under way is to bring must not change before.
    bool fence = !config.plain && random_.one_in(20);
    if (changes_target(action) && !r.shared && peer)
        for (const Request &other : side.requests)
            if (other.action == Action::Read && overlap(r.target, length, other.target, other.length)) {
                if (side.ernic)
                    return false;   // its WQEs have no fence
                fence = true;
            }
    posting.fence = fence || action == Action::SendInv;

    r.signaled = config.plain ? last_of_batch || side.unsignaled + 1 >= config.sq_wqes / 2
                              : info(action).answered || action == Action::Bind || random_.chance(config.signal_ppm) ||
                                    side.unsignaled + 1 >= config.sq_wqes / 2;
    r.signaled |= side.requests_left == 1;
    side.unsignaled = r.signaled ? 0 : side.unsignaled + 1;

    // The sources of its data.
    Message &message = posting.message;
    message.action = action;
    message.length = length;
    message.number = side.message_count;
    message.imm = action == Action::SendInv ? be32(peer->window_key) : be32(side.message_count ^ side.number << 20);
    if (!info(action).answered && action != Action::Flush && action != Action::Bind) {
        uint32_t done = 0;
        const bool by_version = config.service == HGHCA_QP_ST_UC && one_sided;
        const uint32_t whole = by_version ? r.target + config.target_bytes * uint32_t(random_.below(kUcVersions)) : 0;
        const uint64_t parts = config.plain || by_version || side.ernic ? 1 : random_.between(1, 4);
        for (uint64_t left = parts; left; left--) {
            const uint32_t bytes = left == 1 ? length - done : uint32_t(random_.below(length - done + 1));
            const uint32_t from = by_version               ? whole
                                  : action == Action::Part ? r.local + done
                                  : config.plain           ? 0
                                                           : uint32_t(random_.below(config.source_bytes - bytes + 1));
            message.pieces[message.piece_count++] = {from, bytes};
            done += bytes;
        }
    }
    return true;
}

Traffic::WqeHead Traffic::write_wqe(Side &side, Posting &posting)
{
    const SideConfig &config = side.config;
    const Side *peer = posting.peer;
    Request &r = posting.request;
    const Message &message = posting.message;
    const uint32_t mask = config.sq_wqes - 1;
    const auto slot_of = [&](uint16_t index) { return uint64_t(index & mask) << kStrideLog; };
    WqeWriter writer(side.machine->at(side.qp.sq.dma + slot_of(r.index)));
    hghca_next_unit next{};
    uint32_t flags = (r.signaled ? HGHCA_WQE_CQ_UPDATE : 0) | (random_.one_in(4) ? HGHCA_WQE_SOLICIT : 0);
    if (config.service == HGHCA_QP_ST_XRC)
        flags |= field_put(HGHCA_WQE_XRC_SRQN_MASK, peer->srq->srq.srqn);
    next.flags = le32(flags);
    next.imm_data = message.imm;
    writer.put(next);
    if (config.service == HGHCA_QP_ST_UD && side.hca->has(HGHCA_CAP_GID_TABLE)) {
        hghca_ud_gid_unit ud{};
        const auto gid = Machine::gid_of(peer->machine->number, config.gid_index);
        const auto mac = Machine::mac_of(peer->machine->number);
        ud.port = le32(HGHCA_UD_GRH | field_put(HGHCA_UD_HOP_LIMIT_MASK, 64) |
                       field_put(HGHCA_UD_SGID_INDEX_MASK, config.gid_index) | 1);
        ud.dmac_h = le32(mac_high(mac));
        ud.dmac_l = le32(mac_low(mac) << 16);
        std::copy(gid.begin(), gid.end(), ud.dgid);
        ud.dqpn = le32(peer->qp.qpn);
        ud.qkey = le32(kQkey);
        writer.put(ud);
    } else if (config.service == HGHCA_QP_ST_UD) {
        hghca_ud_unit ud{};
        const auto dmac = Machine::mac_of(peer->machine->number), smac = Machine::mac_of(side.machine->number);
        ud.port = le32(1);
        ud.lids = le32(mac_low(dmac) << 16 | mac_low(smac));
        ud.smac_h = le32(mac_high(smac));
        ud.dmac_h = le32(mac_high(dmac));
        ud.sip = le32(Machine::ipv4_of(side.machine->number));
        ud.dip = le32(Machine::ipv4_of(peer->machine->number));
        ud.dqpn = le32(peer->qp.qpn);
        ud.qkey = le32(kQkey);
        writer.put(ud);
    }
    if (r.action == Action::Bind) {
        side.window_key = (side.window_key & ~0xffu) | uint8_t(side.window_key + 1);
        side.window_offset = uint32_t(random_.below(config.target_bytes));
        side.window_bytes = uint32_t(random_.between(1, config.target_bytes - side.window_offset));
        side.window = Side::Window::Binding;
        hghca_bind_unit bind{};
        bind.access = le32(HGHCA_ACCESS_REMOTE_WRITE | HGHCA_ACCESS_REMOTE_READ | HGHCA_ACCESS_REMOTE_ATOMIC);
        bind.rkey = le32(side.window_key);
        bind.lkey = le32(side.target->mr.key);
        bind.addr = le64(side.target->mr.va + side.window_offset);
        bind.length = le64(side.window_bytes);
        writer.put(bind);
    } else if (is_one_sided(r.action)) {
        writer.put(hghca_raddr_unit{le64(posting.va), le32(posting.key), 0});
    }
    if (is_atomic(r.action)) {
        uint64_t word = 0;
        if (!r.shared)
            std::memcpy(&word, peer->target->model(r.target), 8);
        const uint64_t compare = random_.one_in(2) ? word : random_.next();
        const uint64_t swap_add = r.shared ? 1 : random_.next();
        r.original = word;
        posting.result = r.action == Action::Faa ? word + swap_add : word == compare ? swap_add : word;
        writer.put(hghca_atomic_unit{le64(swap_add), le64(compare)});
    }
    if (r.action == Action::ReadPointer)
        writer.put(posting.pointer);
    if (r.action == Action::Flush) {
        hghca_flush_unit flush{};
        flush.length = le32(r.length);
        flush.what = le32(field_put(HGHCA_FLUSH_TYPE_MASK, HGHCA_FLUSH_GLOBAL) |
                          field_put(HGHCA_FLUSH_SELECTIVITY_MASK, HGHCA_FLUSH_RANGE));
        writer.put(flush);
    }
    if (info(r.action).answered) {
        writer.put(hghca_data_unit{le32(r.length), le32(side.local->mr.key), le64(side.local->mr.va + r.local)});
    } else {
        Block &source = r.action == Action::Part ? side.vendor->records : *side.local;
        uint32_t inlined = 0;
        for (uint8_t i = 0; i < message.piece_count; i++) {
            const Piece &piece = message.pieces[i];
            if (piece.length && inlined + piece.length + 4 * 16 <= kInlineMax && random_.chance(config.inline_ppm)) {
                writer.inline_data(source.now(piece.offset), piece.length);
                inlined += piece.length + 16;
            } else {
                writer.put(hghca_data_unit{le32(piece.length), le32(source.mr.key), le64(source.mr.va + piece.offset)});
            }
        }
    }
    // Step 2 of 5.1, where there is a predecessor.
    const WqeHead head{r.opcode, writer.units(), posting.fence};
    uint8_t *before = side.machine->at(side.qp.sq.dma + slot_of(uint16_t(r.index - 1)));
    const uint64_t low = slot_of(r.index) | head.opcode;
    const uint64_t high = (head.fence ? HGHCA_NEXT_FENCE : 0) | head.units;
    test::store_release(*reinterpret_cast<uint64_t *>(before), le64(high << 32 | low));
    return head;
}

// The request is posted: what it has to do.
void Traffic::expect(Side &side, Posting &posting)
{
    const SideConfig &config = side.config;
    Side *peer = posting.peer;
    Request &r = posting.request;
    const Message &message = posting.message;
    const Action action = r.action;
    if (action == Action::Read) {
        const uint8_t *from = peer->target->model(r.target);
        r.bytes.assign(from, from + r.length);
    } else if (action == Action::Part) {
        expect_part(side, r);
    } else if (changes_target(action) && !r.shared && side.reliable() && !(config.plain && r.index) &&
               peer->state != Side::State::Gone) {
        uint8_t *to = peer->target->model(r.target);
        r.bytes.assign(to, to + r.length);
        if (is_atomic(action))
            std::memcpy(to, &posting.result, 8);
        for (uint8_t i = 0; i < message.piece_count; i++) {
            std::memcpy(to, side.local->model(message.pieces[i].offset), message.pieces[i].length);
            to += message.pieces[i].length;
        }
    }
    if (info(action).message) {
        if (action == Action::SendInv)
            peer->window = Side::Window::Invalidating;
        side.messages.push_back(message);
        side.message_count++;
    }
    side.requests.push_back(std::move(r));
    side.sq_head++;
    side.requests_left--;
}

// ---- completions

void Traffic::completion(Machine &machine, const hghca_cqe &cqe)
{
    Side *side = side_of(machine, le32(cqe.my_qpn));
    if (!side || side->state == Side::State::Gone)
        fail("host ", machine.number, ": a completion of QP ", le32(cqe.my_qpn), ", which does not exist");
    completions++;
    if (cqe.is_send)
        sent(*side, cqe);
    else
        received(*side, cqe);
    touched_.push_back(side);
}

void Traffic::event(Machine &machine, const hghca_eqe &eqe)
{
    switch (eqe.type) {
    case HGHCA_EVENT_COMM_EST:
    case HGHCA_EVENT_PORT_CHANGE:
    case HGHCA_EVENT_SRQ_QP_LAST_WQE:
        return;
    default:
        fail("host ", machine.number, ": event ", unsigned(eqe.type), " of ", be32(eqe.event.qp.qpn));
    }
}

void Traffic::idle(Machine &) { go_on(); }

void Traffic::go_on()
{
    for (Side *side : std::exchange(touched_, {})) {
        if (side->state != Side::State::Alive)
            continue;
        if (side->receives_due && !random_.chance(side->config.receive_late_ppm))
            post_receives(*side, std::exchange(side->receives_due, 0));
        if (side->receives_due || (side->requests_left && !side->config.plain && random_.one_in(4)))
            wake(*side, random_.below(kThinkNs));
        else
            fill_send_queue(*side);
        if (side->srq)
            post_shared(*side->srq, uint32_t(side->config.deaf ? 0 : side->srq->free_slots.size()));
    }
}

void Traffic::sent(Side &side, const hghca_cqe &cqe)
{
    const uint32_t slot = le32(cqe.wqe) >> kStrideLog;
    const uint32_t mask = side.config.sq_wqes - 1;
    // Those before it that were not to be told of are done with it.
    while (!side.requests.empty() && (side.requests.front().index & mask) != slot) {
        Request &request = side.requests.front();
        if (request.signaled || side.expects_flush)
            fail(name_of(side), ": a completion of slot ", slot, " comes before that of request ", request.index, ", a ",
                 info(request.action).name);
        retire(side, request);
        side.requests.pop_front();
    }
    if (side.requests.empty())
        fail(name_of(side), ": a completion of slot ", slot, ", where no request is");
    Request request = std::move(side.requests.front());
    side.requests.pop_front();
    if (is_error(cqe)) {
        const uint8_t syndrome = syndrome_of(cqe);
        give_up(side, request);
        if (!std::exchange(side.expects_flush, true) &&
            (side.state != Side::State::Closing || syndrome != HGHCA_SYNDROME_WR_FLUSH_ERR)) {
            fail_side(side, request, syndrome);
            return;
        }
        if (syndrome != HGHCA_SYNDROME_WR_FLUSH_ERR)
            fail(name_of(side), ": syndrome ", unsigned(syndrome), " behind a request that failed");
        side.flushed++;
        return;
    }
    if (side.expects_flush)
        fail(name_of(side), ": a completion without error behind a request that failed");
    if (!request.signaled)
        fail(name_of(side), ": a completion that request ", request.index, " did not ask for");
    if (cqe.opcode != request.opcode)
        fail(name_of(side), ": a completion of opcode ", unsigned(cqe.opcode), " for a ", info(request.action).name);
    const bool counts = request.action != Action::Bind && request.action != Action::Flush;
    // A READ_POINTER may find nothing.
    const uint64_t bytes = request.action == Action::ReadPointer ? request.bytes.size() : request.length;
    if (counts && le32(cqe.byte_cnt) != bytes)
        fail(name_of(side), ": a ", info(request.action).name, " of ", bytes, " bytes completes with ",
             le32(cqe.byte_cnt));
    retire(side, request);
}

// The request is done: has it done what it had to?
void Traffic::retire(Side &side, Request &request)
{
    side.completed++;
    side.bytes_done += request.length;
    side.last_done_ns = world_.now_ns;
    if (request.torn)
        fail(name_of(side), ": READ_CONSISTENT ", request.index, " has brought an object that is not whole");
    if (is_read(request.action)) {
        const std::vector<uint8_t> &bytes = request.bytes;
        if (!bytes.empty() && std::memcmp(side.local->now(request.local), bytes.data(), bytes.size()))
            fail(name_of(side), ": ", info(request.action).name, " ", request.index, " of ", bytes.size(),
                 " bytes has brought something else");
        side.local->accept(request.local, bytes.size());
    } else if (request.action == Action::Part) {
        side.vendor->done = request.local + request.length;
    } else if (is_atomic(request.action)) {
        uint64_t word;
        std::memcpy(&word, side.local->now(request.local), 8);
        side.local->accept(request.local, 8);
        if (!request.shared && word != request.original)
            fail(name_of(side), ": ", info(request.action).name, " ", request.index, " has answered ", word, ", not ",
                 request.original);
        if (request.shared) {
            Counter &counter = *counter_of(*side.peer->machine);
            counter.done++;
            if (counter.seen.size() <= word)
                counter.seen.resize(std::min<uint64_t>(word, 1 << 24) + 1);
            if (word >= counter.seen.size() || counter.seen[word])
                fail(name_of(side), ": a FETCH ADD has answered ", word, ", as another one has");
            counter.seen[word] = true;
        }
    } else if (request.action == Action::Bind) {
        side.window = Side::Window::Bound;
    }
}

// The request has failed: nobody knows what of it was done.
void Traffic::give_up(Side &side, Request &request)
{
    side.refused |= may_be_refused(side, request);
    if (request.shared) {
        counter_of(*side.peer->machine)->unsure++;
        doubts_.push_back({side.local.get(), request.local, {}, true, 8});
        return;
    }
    if (is_atomic(request.action))
        doubts_.push_back({side.local.get(), request.local, {}, true, 8});
    if (request.bytes.empty())
        return;
    if (is_read(request.action))
        doubts_.push_back({side.local.get(), request.local, std::move(request.bytes)});
    else
        doubts_.push_back({side.peer->target.get(), request.target, std::move(request.bytes)});
}

void Traffic::fail_side(Side &side, const Request &request, uint8_t syndrome)
{
    side.failed++;
    side.syndrome = syndrome;
    if (ends_by_refusal(side, request, syndrome)) {
        close_later(side);
        return;
    }
    const bool peer_gone = side.peer && side.peer->state == Side::State::Gone;
    const bool no_more_retries = syndrome == HGHCA_SYNDROME_RETRY_EXC_ERR && (faulty || peer_gone);
    const bool not_ready = syndrome == HGHCA_SYNDROME_RNR_RETRY_EXC_ERR && side.config.rnr_retry < 7;
    if (!side.reliable() || !(no_more_retries || not_ready))
        fail(name_of(side), ": a request ends with syndrome ", unsigned(syndrome));
    // What was lost before may have been the last try.
    const uint64_t last_try_ns = (uint64_t(4096) << side.config.ack_timeout) * 4;
    if (!peer_gone && no_more_retries && world_.now_ns > last_try_ns && world_.now_ns - last_try_ns > calm_ns)
        fail(name_of(side), ": retries ran out though nothing was lost");
    close_later(side);
}

void Traffic::close_later(Side &side)
{
    if (side.state == Side::State::Failed)
        return;
    dead++;
    if (side.state == Side::State::Closing)
        return;
    side.state = Side::State::Failed;
    wake(side, random_.below(kCloseNs));
}

// Both ends of a connection that has failed.
void Traffic::close(Side &side)
{
    for (Side *end : {&side, side.peer}) {
        if (!end || end->state == Side::State::Gone || end->state == Side::State::Closing)
            continue;
        end->state = Side::State::Closing;
        end->requests_left = 0;
        // The window goes away with the connection.
        end->window = Side::Window::None;
        enter_error(*end);
        if (end->ernic)
            doubt_receives(*end);
    }
}

void Traffic::enter_error(Side &side)
{
    if (side.ernic)
        disable_ernic(side);
    else
        TestDriver::must(side.hca->driver.to_error(side.qp.qpn), "2ERR");
}

// ---- messages

void Traffic::received(Side &side, const hghca_cqe &cqe)
{
    uint32_t slot;
    Block *block;
    uint32_t buffer;
    const uint32_t header = side.config.service == HGHCA_QP_ST_UD ? kGrh : 0;
    const uint32_t room = side.config.max_message + header;
    if (SharedQueue *queue = side.srq) {
        slot = le32(cqe.wqe) >> queue->srq.stride_log;
        if (slot >= queue->posted_slots.size() || !queue->posted_slots[slot])
            fail(name_of(side), ": a receive completes in slot ", slot, " of its SRQ, where none was posted");
        queue->posted_slots[slot] = false;
        queue->free_slots.push_back(slot);
        block = queue->buffers.get();
        buffer = slot * queue->buffer_bytes;
    } else {
        slot = le32(cqe.wqe) >> kStrideLog;
        if (side.receives.empty() || side.receives.front() != slot)
            fail(name_of(side), ": a receive completes in slot ", slot, ", out of turn");
        side.receives.pop_front();
        block = side.local.get();
        buffer = side.local_receives() + slot * room;
        if (side.state == Side::State::Alive)
            side.receives_due++;
    }
    if (is_error(cqe)) {
        if (syndrome_of(cqe) != HGHCA_SYNDROME_WR_FLUSH_ERR)
            fail(name_of(side), ": a receive ends with syndrome ", unsigned(syndrome_of(cqe)));
        if (!side.expects_flush && side.state != Side::State::Closing) {
            if (!may_have_refused(side))
                fail(name_of(side), ": a receive is flushed, though the QP has not failed");
            close_later(side);
        }
        side.flushed++;
        doubts_.push_back({block, buffer, {}, true, side.srq ? int64_t(side.srq->buffer_bytes) : int64_t(room)});
        return;
    }
    side.received++;
    Side *from = side.peer;
    if (side.config.service == HGHCA_QP_ST_UD) {
        from = nullptr;
        const uint8_t *grh = block->now(buffer);
        const uint8_t *source = grh[0] >> 4 == 6 ? grh + 22 : grh + 34;
        const auto host = uint32_t(source[0] << 8 | source[1]) - 1;
        if (host < world_.machines.size())
            from = side_of(*world_.machines[host], le32(cqe.rqpn));
    }
    if (!from)
        fail(name_of(side), ": a message from nobody");
    take_message(side, *from, cqe, *block, buffer, header);
}

void Traffic::take_message(Side &side, Side &from, const hghca_cqe &cqe, Block &block, uint32_t buffer, uint32_t header)
{
    const uint32_t bytes = le32(cqe.byte_cnt);
    if (bytes < header)
        fail(name_of(side), ": a datagram of ", bytes, " bytes");
    const uint32_t length = bytes - header;
    const uint8_t op = cqe.opcode & HGHCA_CQE_RECV_OPCODE_MASK;
    const bool has_imm = op == HGHCA_BTH_OP_SEND_LAST_IMM || op == HGHCA_BTH_OP_SEND_ONLY_IMM;
    const bool has_key = op == HGHCA_BTH_OP_SEND_LAST_INV || op == HGHCA_BTH_OP_SEND_ONLY_INV;
    const bool is_write = op == HGHCA_BTH_OP_WRITE_LAST_IMM || op == HGHCA_BTH_OP_WRITE_ONLY_IMM;
    const Action action = is_write ? Action::WriteImm : has_imm ? Action::SendImm : has_key ? Action::SendInv : Action::Send;
    const uint8_t *data = block.now(buffer + header);

    const Message *found = nullptr;
    if (side.reliable()) {
        if (from.messages.empty())
            fail(name_of(side), ": a message of ", length, " bytes that nobody has sent");
        found = &from.messages.front();
    } else {
        // They may come twice and in any order, but as they were.
        for (auto it = from.messages.rbegin(); it != from.messages.rend() && !found; ++it)
            if (it->action == action && it->length == length &&
                (action == Action::Send ? matches(from, *it, data) : it->imm == cqe.imm))
                found = &*it;
        if (!found)
            fail(name_of(side), ": a ", info(action).name, " of ", length, " bytes that ", name_of(from), " has not sent");
    }
    if (found->action != action || found->length != length)
        fail(name_of(side), ": a ", info(action).name, " of ", length, " bytes is received, but message ", found->number,
             " is a ", info(found->action).name, " of ", found->length);
    if (action != Action::Send && cqe.imm != found->imm)
        fail(name_of(side), ": message ", found->number, " comes with another immediate");
    if (action != Action::WriteImm && !matches(from, *found, data))
        fail(name_of(side), ": message ", found->number, ", a ", info(action).name, " of ", length,
             " bytes, is not what was sent");
    if (action == Action::SendInv)
        side.window = Side::Window::Free;
    if (action != Action::WriteImm)
        block.accept(buffer, bytes);
    if (side.reliable())
        from.messages.pop_front();
}

bool Traffic::matches(const Side &from, const Message &message, const uint8_t *data) const
{
    for (uint8_t i = 0; i < message.piece_count; i++) {
        if (std::memcmp(data, from.local->model(message.pieces[i].offset), message.pieces[i].length))
            return false;
        data += message.pieces[i].length;
    }
    return true;
}

// ---- the end

// A message that ends in the middle has left its beginning in one of them.
void Traffic::doubt_receives(Side &side)
{
    if (side.ernic) {
        doubts_.push_back({side.ernic->slots.get(), 0, {}, true, int64_t(side.ernic->slots->bytes())});
        return;
    }
    if (side.srq) {
        doubts_.push_back({side.srq->buffers.get(), 0, {}, true, int64_t(side.srq->buffers->bytes())});
        return;
    }
    const uint64_t begin = side.local_receives();
    doubts_.push_back({side.local.get(), int64_t(begin), {}, true, int64_t(side.local->bytes() - begin)});
}

void Traffic::reset_machine(Machine &machine)
{
    for (auto &side : sides) {
        if (side->machine != &machine)
            continue;
        for (Request &request : side->requests)
            give_up(*side, request);
        if (side->peer)
            doubt_receives(*side->peer);
        side->state = Side::State::Gone;
        side->requests.clear();
        side->receives.clear();
        side->requests_left = 0;
        side->target->accept_all();
        side->local->accept_all();
    }
    for (auto &queue : queues_)
        if (queue->machine == &machine)
            queue->buffers->accept_all();
    for (auto &partition : partitions_)
        partition->gone |= &partition->machine == &machine;
    if (machine.number < by_qpn_.size())
        by_qpn_[machine.number].clear();
}

bool Traffic::finished() const { return unfinished().empty(); }

std::string Traffic::unfinished() const
{
    for (const auto &side : sides) {
        if (side->state == Side::State::Gone)
            continue;
        const bool closed = side->state == Side::State::Closing;
        if (side->state == Side::State::Failed)
            return name_of(*side) + ": has failed and was not closed";
        // What asked for no completion may have completed before its QP was closed. Otherwise it is flushed.
        const bool silent = closed && !side->expects_flush &&
                            std::none_of(side->requests.begin(), side->requests.end(),
                                         [](const Request &r) { return r.signaled; });
        if (!side->requests.empty() && !silent)
            return name_of(*side) + ": " + std::to_string(side->requests.size()) + " requests have not completed, the first is " +
                   info(side->requests.front().action).name + " " + std::to_string(side->requests.front().index);
        if (side->requests_left)
            return name_of(*side) + ": " + std::to_string(side->requests_left) + " requests were never posted";
        const bool peer_gone = side->peer && side->peer->state == Side::State::Gone;
        if (side->reliable() && !closed && !peer_gone && !side->messages.empty())
            return name_of(*side) + ": " + std::to_string(side->messages.size()) + " messages were not received";
        if (closed && !side->receives.empty())
            return name_of(*side) + ": " + std::to_string(side->receives.size()) + " receives were not flushed";
    }
    return "";
}

void Traffic::check_memory()
{
    auto explained = [&](Block *block) {
        return [this, block](int64_t offset, uint8_t value) {
            for (const Doubt &doubt : doubts_) {
                const auto length = doubt.any ? doubt.length : int64_t(doubt.bytes.size());
                if (doubt.block == block && offset >= doubt.offset && offset < doubt.offset + length &&
                    (doubt.any || doubt.bytes[size_t(offset - doubt.offset)] == value))
                    return true;
            }
            return false;
        };
    };
    int64_t at;
    for (auto &side : sides) {
        Block &target = *side->target, &local = *side->local;
        const bool uc = side->config.service == HGHCA_QP_ST_UC;
        // A UC message that was cut short has left its beginning in the buffer of the next one.
        if (uc && side->srq)
            side->srq->buffers->accept(0, side->srq->buffers->bytes());
        else if (uc)
            local.accept(side->local_receives(), local.bytes() - side->local_receives());
        const Side *peer = side->peer;
        auto any_version = [&](int64_t offset, uint8_t value) {
            if (offset < 0 || uint64_t(offset) >= target.bytes())
                return false;
            for (uint32_t v = 0; v < kUcVersions; v++)
                if (*peer->local->model(uint64_t(offset) + v * uint64_t(peer->config.target_bytes)) == value)
                    return true;
            return false;
        };
        auto known = explained(&target);
        if (uc && peer ? target.differs(at, any_version) : target.differs(at, known))
            fail(name_of(*side), ": byte ", at, " of its target, of ", target.bytes(), ", is not what it has to be");
        if (local.differs(at, explained(&local)))
            fail(name_of(*side), ": byte ", at, " of its own memory, of ", local.bytes(), ", has changed");
        if (side->vendor && (side->vendor->prepared.changed() ||
                             side->vendor->records.differs(at, [](int64_t, uint8_t) { return false; })))
            fail(name_of(*side), ": memory that nobody may write to has changed");
        if (side->ernic && side->ernic->slots->differs(at, explained(side->ernic->slots.get())))
            fail(name_of(*side), ": byte ", at, " of its receive slots has changed");
    }
    check_partitions();
    for (auto &queue : queues_)
        if (queue->buffers->differs(at, explained(queue->buffers.get())))
            fail("host ", queue->machine->number, ": byte ", at, " of the buffers of SRQ ", queue->srq.srqn, " has changed");
    for (Counter &counter : counters_) {
        uint64_t word;
        std::memcpy(&word, counter.block->now(kCounterWord), 8);
        if (word < counter.done || word > counter.done + counter.unsure || counter.seen.size() > word)
            fail("host ", counter.machine->number, ": ", counter.done, " FETCH ADDs have made ", word);
        counter.block->accept(kCounterWord, 8);
        if (counter.block->differs(at, [](int64_t, uint8_t) { return false; }))
            fail("host ", counter.machine->number, ": byte ", at, " around a word for atomics has changed");
    }
}

void Traffic::close_all()
{
    for (auto &side : sides) {
        if (side->state != Side::State::Alive)
            continue;
        side->state = Side::State::Closing;
        enter_error(*side);
    }
}

void Traffic::check_closed()
{
    for (auto &side : sides)
        if (side->ernic)
            poll_ernic(*side);
    const std::string what = unfinished();
    if (!what.empty())
        fail("after all QPs were closed: ", what);
}

}  // namespace hghca::sim
