// SPDX-License-Identifier: GPL-2.0-or-later
// The sides of Traffic whose host has an ERNIC.
#include <algorithm>

#include "jingzhao/translate.h"
#include "traffic.h"

namespace hghca::sim {

namespace {

constexpr uint32_t kSlotUnit = 256;   // of the size of a receive slot
constexpr uint8_t kReadAndWrite = 2;  // of the protection domain table

uint8_t opcode_of(Action action)
{
    return action == Action::Send ? Ernic::kSend : action == Action::Write ? Ernic::kWrite : Ernic::kRead;
}

// From the number of entries ever used to the value of a register.
uint16_t register_of(uint16_t used, uint32_t depth) { return uint16_t(uint16_t(used - 1) % depth + 1); }

}  // namespace

Side &Traffic::add_side(ErnicMachine &machine, const SideConfig &config)
{
    auto owned = std::make_unique<Side>();
    Side &side = *owned;
    side.number = uint32_t(sides.size());
    side.machine = &machine;
    side.ernic = std::make_unique<ErnicQueues>();
    ErnicQueues &q = *side.ernic;
    q.machine = &machine;
    side.config = config;
    side.config.sq_wqes = std::max(config.sq_wqes, 2u);
    side.config.rq_wqes = std::max(config.rq_wqes, 2u);
    side.config.signal_ppm = 1'000'000;   // each WQE completes
    side.requests_left = config.initiates ? config.requests : 0;
    side.qp.qpn = machine.next_qpn++;

    const auto make = [&](uint64_t bytes, uint64_t lead) {
        auto block = std::make_unique<Block>(machine, bytes, lead, config.guard_pages);
        machine.allow_dma(block->dma(0), bytes);
        block->fill(random_);
        return block;
    };
    side.target = make(config.target_bytes, random_.below(4096));
    side.local = make(side.local_receives(), random_.below(4096));
    q.slot_bytes = (config.max_message + kSlotUnit - 1) / kSlotUnit * kSlotUnit;
    q.slots = make(uint64_t(side.config.rq_wqes) * q.slot_bytes, 0);
    q.sq_dma = machine.alloc(uint64_t(side.config.sq_wqes) * sizeof(ErnicWqe));
    q.cq_dma = machine.alloc(uint64_t(side.config.sq_wqes) * sizeof(uint32_t));
    machine.allow_dma(q.cq_dma, uint64_t(side.config.sq_wqes) * sizeof(uint32_t));

    q.pd = uint32_t(random_.below(1u << 24));
    const uint8_t entry = machine.next_entry++;
    const auto key = uint8_t(random_.below(256));
    Block &target = *side.target;
    target.mr.va = (random_.below(1ull << 36) << 12) + (target.dma(0) & 4095);
    target.mr.key = Ernic::rkey_of(entry, key);
    machine.device.write_pd(entry, {.pd = q.pd, .va = target.mr.va, .bytes = target.bytes(), .base = target.dma(0),
                                    .key = key, .access = kReadAndWrite});
    // All slots but one are free.
    for (; side.rq_head + 1u < side.config.rq_wqes; side.rq_head++)
        side.receives.push_back(side.rq_head);
    sides.push_back(std::move(owned));
    return side;
}

void Traffic::connect_ernic(Side &side, const Side &peer)
{
    ErnicQueues &q = *side.ernic;
    const SideConfig &config = side.config;
    QpAttributes a{};
    a.mtu = 128u << config.mtu_code;
    a.pd = q.pd;
    a.remote_qpn = Qpn(peer.qp.qpn);
    a.ack_timeout = config.ack_timeout;
    a.retry_count = config.retry;
    a.rnr_retry = config.rnr_retry;
    a.min_rnr_timer = config.rnr_timer;
    const Ernic::Queues queues{.sqba = q.sq_dma,
                               .cqba = q.cq_dma,
                               .rqba = q.slots->dma(0),
                               .sq_depth = uint16_t(config.sq_wqes),
                               .rq_depth = uint16_t(config.rq_wqes),
                               .slot_bytes = q.slot_bytes};
    q.machine->connect(side.qp.qpn, peer.machine->number, a, queues, config.psn, peer.config.psn);
    q.is_connected = true;
}

// ---- queues

void Traffic::empty_slots(Side &side, uint32_t count)
{
    ErnicQueues &q = *side.ernic;
    for (uint32_t n = 0; n < count; n++)
        side.receives.push_back(uint16_t(side.rq_head++ % side.config.rq_wqes));
    q.emptied = uint16_t(q.emptied + count);
    q.machine->device.write_rqci(side.qp.qpn, register_of(q.emptied, side.config.rq_wqes));
}

void Traffic::write_ernic_wqe(Side &side, const Posting &posting)
{
    const Request &r = posting.request;
    ErnicWqe wqe{};
    wqe.wrid = r.index;
    wqe.opcode = opcode_of(r.action);
    wqe.length = r.length;
    wqe.laddr = side.local->dma(r.action == Action::Read ? r.local : posting.message.pieces[0].offset);
    if (r.action != Action::Send) {
        wqe.roffset = posting.va;
        wqe.rtag = posting.key;
    } else if (r.length <= sizeof(wqe.sdata)) {
        std::memcpy(wqe.sdata, side.local->now(posting.message.pieces[0].offset), r.length);
        wqe.laddr = 0;   // nothing is read there
    }
    const uint64_t slot = r.index % side.config.sq_wqes;
    std::memcpy(side.machine->at(side.ernic->sq_dma + slot * sizeof(wqe)), &wqe, sizeof(wqe));
}

void Traffic::ring_ernic(Side &side)
{
    side.ernic->machine->device.write_sqpi(side.qp.qpn, register_of(side.sq_head, side.config.sq_wqes));
}

// ---- completions

void Traffic::interrupt(ErnicMachine &machine)
{
    for (auto &side : sides)
        if (side->machine == &machine && poll_ernic(*side))
            touched_.push_back(side.get());
    go_on();
}

// False: there was nothing.
bool Traffic::poll_ernic(Side &side)
{
    ErnicQueues &q = *side.ernic;
    if (!q.is_connected)
        return false;
    const uint32_t sq_depth = side.config.sq_wqes, rq_depth = side.config.rq_wqes;
    const uint16_t cqhead = q.machine->device.cqhead(side.qp.qpn), written = q.machine->device.rq_written(side.qp.qpn);
    if (cqhead > sq_depth || written > rq_depth)
        fail(name_of(side), ": CQHEAD is ", cqhead, " of ", sq_depth, ", the receive index ", written, " of ", rq_depth);
    const bool any = q.cqhead != cqhead || q.rq_written != written;
    if (any && q.disabled)
        fail(name_of(side), ": a completion of a QP that was disabled");
    while (q.cqhead != cqhead) {
        const auto slot = uint16_t(q.cqhead % sq_depth);
        q.cqhead = uint16_t(slot + 1);
        uint32_t cqe;
        std::memcpy(&cqe, side.machine->at(q.cq_dma + slot * sizeof(cqe)), sizeof(cqe));
        if (!q.machine->lose_completion || --q.machine->lose_completion)
            ernic_sent(side, cqe);
    }
    while (q.rq_written != written) {
        q.rq_written = uint16_t(q.rq_written % rq_depth + 1);
        ernic_received(side);
    }
    return any;
}

void Traffic::ernic_sent(Side &side, uint32_t cqe)
{
    completions++;
    const auto wrid = uint16_t(cqe);
    const auto opcode = uint8_t(cqe >> 16);
    if (side.expects_flush)
        fail(name_of(side), ": a completion behind a request that failed");
    if (side.requests.empty())
        fail(name_of(side), ": a completion of request ", wrid, ", where no request is");
    Request request = std::move(side.requests.front());
    side.requests.pop_front();
    if (wrid != request.index)
        fail(name_of(side), ": a completion of request ", wrid, " comes before that of request ", request.index, ", a ",
             sim::name_of(request.action));
    if (opcode != opcode_of(request.action))
        fail(name_of(side), ": a completion of opcode ", unsigned(opcode), " for a ", sim::name_of(request.action));
    if (!(cqe & Ernic::kErrorCqe)) {
        retire(side, request);
        return;
    }
    give_up(side, request);
    side.expects_flush = true;   // though an ERNIC flushes nothing
    fail_side(side, request, hghca::syndrome_of(status_of_fatal(side)));
}

// Why the QP of a side is fatal.
Status Traffic::status_of_fatal(Side &side)
{
    Ernic &device = side.ernic->machine->device;
    switch (device.fatal_code(side.qp.qpn)) {
    case Ernic::kRetries:
        return Status::RetryExceeded;
    case Ernic::kRnrRetries:
        return Status::RnrRetryExceeded;
    case Ernic::kNak:
        break;
    default:
        return Status::BadResponse;
    }
    // The syndrome of the AETH: IBA vol 1, 9.7.5.2.8, table 45.
    switch (device.read_qp(side.qp.qpn, Ernic::kStatus) >> 16 & 0x7f) {
    case 0x61:
        return Status::RemoteInvalidRequest;
    case 0x62:
        return Status::RemoteAccess;
    case 0x63:
        return Status::RemoteOperation;
    default:
        return Status::BadResponse;
    }
}

// Its length is not told: that of the message that is next has to be there, and what stands behind it unchanged.
void Traffic::ernic_received(Side &side)
{
    completions++;
    if (side.receives.empty())
        fail(name_of(side), ": a message is received where no slot is free");
    const uint16_t slot = side.receives.front();
    side.receives.pop_front();
    if (side.state == Side::State::Alive)
        side.receives_due++;
    side.received++;
    Side &from = *side.peer;
    if (from.messages.empty())
        fail(name_of(side), ": a message that nobody has sent");
    const Message &message = from.messages.front();
    Block &slots = *side.ernic->slots;
    const uint64_t at = uint64_t(slot) * side.ernic->slot_bytes;
    if (!matches(from, message, slots.now(at)))
        fail(name_of(side), ": message ", message.number, ", a ", sim::name_of(message.action), " of ", message.length,
             " bytes, is not what was sent");
    slots.accept(at, message.length);
    from.messages.pop_front();
}

// What has completed before is told; what has not will not complete.
void Traffic::disable_ernic(Side &side)
{
    ErnicQueues &q = *side.ernic;
    q.machine->device.disable(side.qp.qpn);
    poll_ernic(side);
    q.disabled = true;
    for (Request &request : side.requests)
        give_up(side, request);
    side.flushed += side.requests.size();
    side.requests.clear();
    side.receives.clear();
}

}  // namespace hghca::sim
