// SPDX-License-Identifier: GPL-2.0-or-later
#include "loopback.h"

#include <algorithm>
#include <cstring>

#include "simulation.h"

namespace hghca::sim {

namespace {

constexpr uint64_t kUs = 1000;
constexpr uint32_t kMemory = 1 << 18, kSq = 0x1000, kCq = 0x3000, kData = 0x4000;
constexpr uint64_t kBeyond = uint64_t(2) * kMemory;   // half of the addresses up to here are not there
// As QEMU has them.
constexpr unsigned kSteps = 32;
constexpr uint64_t kRestNs = 20 * kUs;
constexpr uint64_t kEndNs = 50'000 * kUs;   // in which an epoch ends
constexpr uint32_t kMostEntries = 16;
constexpr uint32_t kLengths[] = {0, 1, 4095, 4096, 4097, 65535, 65536, 65537};
constexpr uint8_t kWrites[] = {0x01, 0x06, 0x07, 0x08, 0x0a};

uint32_t get32(const std::vector<uint8_t> &memory, uint64_t at)
{
    uint32_t value;
    std::memcpy(&value, &memory[at], sizeof(value));
    return le32(value);
}

void put32(std::vector<uint8_t> &memory, uint64_t at, uint32_t value)
{
    value = le32(value);
    std::memcpy(&memory[at], &value, sizeof(value));
}

}  // namespace

// ---- the model

bool LoopbackModel::place(const Payload &payload)
{
    if (!payload.written)
        return true;
    if (!is_there(payload.address, payload.bytes.size()))
        return false;
    std::copy(payload.bytes.begin(), payload.bytes.end(), memory.begin() + long(payload.address));
    return true;
}

uint32_t LoopbackModel::send(uint64_t source, uint64_t destination, uint32_t length, uint32_t &sent)
{
    const bool checks = has(LOOPBACK_EXT_CHECKS);
    const auto opcode = uint8_t(descriptor[1]);
    while (sent < length) {
        const uint64_t from = sum(source, sent);
        const auto n = uint32_t(std::min<uint64_t>({length - sent, 4096, 4096 - from % 4096}));
        bool lost = false;
        if (fifo_.size() == kFifo) {
            lost = !place(fifo_.front());
            fifo_.pop_front();
        }
        Payload payload{std::ranges::find(kWrites, opcode) != std::end(kWrites),
                        sum(destination, has(LOOPBACK_EXT_WIDE) ? sent : sent & 0xffff), std::vector<uint8_t>(n)};
        if (is_there(from, n))
            std::copy_n(memory.begin() + long(from), n, payload.bytes.begin());
        else if (checks)
            return 1;
        sent += n;
        bytes += n;
        if (late && !has(LOOPBACK_EXT_PLACED))
            fifo_.push_back(std::move(payload));
        else
            lost = !place(payload);
        if (lost && checks)
            return 2;
    }
    return 0;
}

void LoopbackModel::complete(uint32_t status, uint32_t sent)
{
    const uint64_t at = sum(cq_base, uint64_t(cq_tail) * 32);
    const uint32_t index = sq_head & 0xff;
    const uint32_t words[8] = {index, status, sent, index, descriptor[0], descriptor[6], 0, 0};
    if (is_there(at, sizeof(words)))
        for (uint64_t i = 0; i < 8; i++)
            put32(memory, at + 4 * i, words[i]);
    overruns += unread[cq_tail];
    unread[cq_tail] = true;
    cq_tail = next(cq_tail, cq_size);
    sq_head = next(sq_head, sq_size);
    for (const Payload &payload : fifo_)
        place(payload);
    fifo_.clear();
}

void LoopbackModel::execute(bool timed_out, uint32_t until)
{
    const uint64_t at = sum(sq_base, uint64_t(sq_head) * 64);
    const bool found = is_there(at, 64), wide = has(LOOPBACK_EXT_WIDE);
    descriptor = {};
    for (uint64_t i = 0; found && i < 16; i++)
        descriptor[i] = get32(memory, at + 4 * i);
    descriptors++;
    const uint32_t length = descriptor[6];
    const uint64_t source = wide ? uint64_t(descriptor[3]) << 32 | descriptor[2] : descriptor[2];
    const uint64_t destination = wide ? uint64_t(descriptor[5]) << 32 | descriptor[4] : descriptor[4];
    uint32_t status = 0, sent = 0;
    if (has(LOOPBACK_EXT_CHECKS) && (!length || length > (wide ? 0x7fffff : 65536)))
        status = found ? 3 : 1;
    if (!status)
        status = send(source, destination, timed_out ? until : length, sent);
    if (timed_out) {
        status = 4;
        timeouts++;
    }
    complete(status, sent);
}

// ---- loopback::Host

bool LoopbackMachine::read(uint64_t address, std::span<uint8_t> bytes)
{
    accesses_++;
    if (address >= kMemory || bytes.size() > kMemory - address)
        return false;
    std::copy_n(memory_.begin() + long(address), bytes.size(), bytes.begin());
    return true;
}

bool LoopbackMachine::write(uint64_t address, std::span<const uint8_t> bytes)
{
    accesses_++;
    if (address >= kMemory || bytes.size() > kMemory - address)
        return false;
    std::copy(bytes.begin(), bytes.end(), memory_.begin() + long(address));
    if (spoiled && bytes.size() != 32)
        memory_[address] ^= 1;
    return true;
}

void LoopbackMachine::trace(const loopback::Header &header)
{
    if (traced_descriptor_ != descriptors())
        traced_bytes_ = 0;
    traced_descriptor_ = descriptors();
    traced_bytes_ += uint32_t(header[16]) | uint32_t(header[17]) << 8;
}

// ---- the machine

loopback::Config LoopbackMachine::config()
{
    const uint32_t extensions = random_.one_in(4) ? 0 : uint32_t(random_.below(LOOPBACK_EXT_ALL + 1));
    return {extensions, random_.one_in(3)};
}

LoopbackMachine::LoopbackMachine(Simulation &sim, Random random)
    : sim_(sim), random_(random), memory_(kMemory), model_(kMemory), config_(config()), controller_(*this, config_),
      timeout_ns_(random_.between(50, 500) * kUs), epochs_(unsigned(random_.between(4, 10)))
{
    model_.late = config_.late_receiver;
}

void LoopbackMachine::set(uint32_t offset, uint32_t value)
{
    controller_.write(offset, value);
    kick();
}

void LoopbackMachine::kick()
{
    if (!turn_due_)
        turn();
    watch();
}

void LoopbackMachine::turn()
{
    if (controller_.run(kSteps)) {
        turn_due_ = true;
        sim_.at(sim_.now() + kRestNs, [this, resets = resets_] {
            if (resets != resets_)
                return;
            turn_due_ = false;
            kick();
        });
    }
    follow();
}

void LoopbackMachine::watch()
{
    if (!controller_.awaits_time_out()) {
        watched_ = false;
        return;
    }
    if (watched_)
        return;
    watched_ = true;
    sim_.at(sim_.now() + timeout_ns_, [this, watch = ++watch_] {
        if (watched_ && watch == watch_)
            time_out();
    });
}

void LoopbackMachine::time_out()
{
    watched_ = false;
    timed_out_ = true;
    until_ = traced_descriptor_ == descriptors() ? traced_bytes_ : 0;
    controller_.time_out();
    kick();
}

// FLR, or a soft reset that counts as one.
void LoopbackMachine::reset()
{
    if (model_.has(LOOPBACK_EXT_SOFT_RESET) && random_.one_in(2))
        controller_.write(0x00, 2 | uint32_t(random_.below(2)));
    else
        controller_.reset();
    accesses_ = 0;
    if (controller_.run(kSteps) || accesses_)
        fail("a loopback controller that was reset has work, or has accessed memory ", accesses_, " times");
    for (uint32_t offset = 0; offset < 0x80; offset += 4)
        if (offset != 0x04 && controller_.read(offset))
            fail("register ", offset, " of a loopback controller is ", controller_.read(offset), " after a reset");
    resets_++;
    turn_due_ = watched_ = timed_out_ = false;
    LoopbackModel fresh(0);
    fresh.memory = memory_;
    fresh.late = model_.late;
    fresh.descriptors = descriptors();
    fresh.bytes = controller_.counters().bytes;
    fresh.overruns = controller_.counters().cq_overruns;
    fresh.timeouts = controller_.counters().timeouts;
    model_ = std::move(fresh);
}

// ---- the checkers

// The model executes what the controller has completed.
void LoopbackMachine::follow()
{
    const uint64_t completed = descriptors() - (controller_.read(0x5c) ? 1 : 0);
    while (model_.descriptors < completed) {
        model_.execute(timed_out_, until_);
        timed_out_ = false;
    }
    if (controller_.read(0x2c) != model_.sq_head || controller_.read(0x50) != model_.cq_tail)
        fail("SQ_HEAD and CQ_TAIL of a loopback controller are ", controller_.read(0x2c), " and ",
             controller_.read(0x50), ", the model's ", model_.sq_head, " and ", model_.cq_tail);
}

// At rest.
void LoopbackMachine::check()
{
    const loopback::Counters &counters = controller_.counters();
    if (const auto at = std::mismatch(memory_.begin(), memory_.end(), model_.memory.begin()); at.first != memory_.end())
        fail("byte ", at.first - memory_.begin(), " of a loopback controller's memory is ", unsigned(*at.first),
             ", which is not what the model has, ", unsigned(*at.second));
    if (!counts_overruns_)
        model_.overruns = counters.cq_overruns;
    if (std::array{counters.bytes, counters.cq_overruns, counters.timeouts} !=
        std::array{model_.bytes, model_.overruns, model_.timeouts})
        fail("counters of a loopback controller: ", counters.bytes, " bytes, ", counters.cq_overruns, " overruns, ",
             counters.timeouts, " time-outs; the model's: ", model_.bytes, ", ", model_.overruns, ", ",
             model_.timeouts);
    const uint32_t words[] = {3, 4, 5, 6, 7, 8, 9};
    for (unsigned i = 0; i < 7; i++)
        if (controller_.read(0x64 + 4 * i) != model_.descriptor[words[i]])
            fail("register ", 0x64 + 4 * i, " of a loopback controller is not of the descriptor");
}

// ---- its software

void LoopbackMachine::write_word(uint32_t at, uint32_t value)
{
    if (at > kMemory - sizeof(value))
        return;
    put32(memory_, at, value);
    put32(model_.memory, at, value);
}

void LoopbackMachine::write_descriptor(uint32_t index)
{
    const bool wide = model_.has(LOOPBACK_EXT_WIDE);
    const uint64_t how = random_.below(4);
    uint32_t length = uint32_t(random_.below(how ? 6000 : 100'000));
    if (how == 1)
        length = kLengths[random_.below(std::size(kLengths))];
    uint32_t words[16];
    for (uint32_t &word : words)
        word = uint32_t(random_.next());
    const uint8_t opcode = random_.one_in(6) ? uint8_t(random_.next()) : kWrites[random_.below(std::size(kWrites))];
    words[1] = (words[1] & 0xffff0000) | opcode;
    words[2] = kData + uint32_t(random_.below(kMemory - kData - length));
    words[4] = kData + uint32_t(random_.below(kMemory - kData - length));
    if (wide)
        words[3] = words[5] = wild_ && random_.one_in(4);
    words[6] = length;
    if (wild_ && random_.one_in(2))
        words[random_.one_in(2) ? 2 : 4] = uint32_t(random_.below(kBeyond));
    for (unsigned i = 0; i < 16; i++)
        write_word(model_.sq_base + index * 64 + 4 * i, words[i]);
}

// Software of a wild epoch rewrites what it likes, but nothing that is under way.
void LoopbackMachine::post()
{
    if (wild_) {
        if (controller_.has_work() || controller_.read(0x5c))
            return;
        for (uint32_t i = 0; i < kMostEntries; i++)
            if (random_.one_in(2))
                write_descriptor(i);
        set(0x30, uint32_t(random_.below(random_.one_in(4) ? 40 : kMostEntries)));
        return;
    }
    const uint32_t size = model_.sq_size, head = controller_.read(0x2c);
    uint32_t tail = controller_.read(0x30);
    for (uint64_t n = random_.between(1, kMostEntries); n && LoopbackModel::next(tail, size) != head; n--) {
        write_descriptor(tail);
        tail = LoopbackModel::next(tail, size);
        posted_++;
    }
    set(0x30, tail);
}

void LoopbackMachine::read_completions(uint32_t most)
{
    const uint32_t tail = controller_.read(0x50);
    uint32_t head = controller_.read(0x4c);
    for (; most && head != tail; most--) {
        model_.unread[head] = false;
        head = LoopbackModel::next(head, model_.cq_size);
    }
    set(0x4c, head);
}

void LoopbackMachine::stall(bool stalled)
{
    if (stalled == stalled_)
        return;
    stalled_ = stalled;
    controller_.stall(stalled);
    kick();
}

// The controller is disabled and idle.
void LoopbackMachine::begin()
{
    wild_ = random_.one_in(3);
    counts_overruns_ = !wild_ || random_.one_in(2);
    if (counts_overruns_)
        reset();
    const uint32_t size = uint32_t(random_.between(2, kMostEntries));
    model_.enabled = config_.extensions & uint32_t(random_.next());
    model_.sq_size = wild_ ? uint32_t(random_.below(kMostEntries)) : size;
    model_.cq_size = wild_ ? uint32_t(random_.below(kMostEntries)) : uint32_t(random_.between(2, kMostEntries));
    model_.sq_base = kSq + uint32_t(random_.below(64));
    model_.cq_base = kCq + uint32_t(random_.below(32));
    if (wild_ && random_.one_in(3))
        model_.sq_base = uint32_t(random_.below(kBeyond));
    if (wild_ && random_.one_in(3))
        model_.cq_base = uint32_t(random_.below(kBeyond));
    for (uint32_t at = kSq; at < kData + 0x4000; at += 4)
        write_word(at, uint32_t(random_.below(kBeyond)));
    std::fill(model_.unread.begin(), model_.unread.end(), false);
    controller_.write(0x10, model_.enabled << 16);
    controller_.write(0x20, model_.sq_base);
    controller_.write(0x24, model_.has(LOOPBACK_EXT_WIDE) ? 0 : uint32_t(random_.next()));
    controller_.write(0x28, model_.sq_size);
    controller_.write(0x30, controller_.read(0x2c));
    controller_.write(0x40, model_.cq_base);
    controller_.write(0x44, model_.has(LOOPBACK_EXT_WIDE) ? 0 : uint32_t(random_.next()));
    controller_.write(0x48, model_.cq_size);
    controller_.write(0x4c, controller_.read(0x50));
    posted_ = 0;
    first_ = descriptors();
    actions_ = unsigned(random_.between(5, 60));
    set(0x00, 1);
}

void LoopbackMachine::act_at_random()
{
    switch (random_.below(12)) {
    case 0:
        set(0x00, uint32_t(random_.below(2)));
        break;
    case 1:
        set(0x34, uint32_t(random_.next()));
        break;
    case 2:
        stall(random_.one_in(2));
        break;
    case 3:
    case 4:
    case 5:
        read_completions(uint32_t(random_.below(kMostEntries)));
        break;
    case 6:
        if (random_.one_in(8)) {
            reset();
            begin();
        }
        break;
    case 7:
        set(0x00, 1);
        break;
    default:
        post();
    }
}

// False: not yet.
bool LoopbackMachine::has_ended()
{
    stall(false);
    set(0x00, wild_ ? 0 : 1);
    if (!wild_)
        read_completions(kMostEntries);
    if (controller_.has_work() || controller_.read(0x5c))
        return false;
    return wild_ || controller_.read(0x2c) == controller_.read(0x30);
}

void LoopbackMachine::finish()
{
    if (!wild_ && descriptors() - first_ != posted_)
        fail("a loopback controller has executed ", descriptors() - first_, " of ", posted_, " descriptors");
    check();
    set(0x00, 0);
}

void LoopbackMachine::act()
{
    if (actions_) {
        act_at_random();
        if (!controller_.has_work() && !controller_.read(0x5c))
            check();
        actions_--;
        deadline_ns_ = sim_.now() + kEndNs;
    } else {
        const bool ended = has_ended();
        if (!ended && sim_.now() < deadline_ns_)
            return schedule();
        if (!ended && !wild_)
            fail("a loopback controller is not at rest: SQ_HEAD ", controller_.read(0x2c), ", SQ_TAIL ",
                 controller_.read(0x30));
        if (ended)
            finish();
        else
            reset();
        if (!--epochs_)
            return;
        begin();
    }
    schedule();
}

void LoopbackMachine::schedule()
{
    sim_.at(sim_.now() + random_.between(1, 60) * kUs, [this] { act(); });
}

void LoopbackMachine::start()
{
    for (uint32_t at = kData; at < kMemory; at += 4)
        write_word(at, uint32_t(random_.below(kBeyond)));
    begin();
    schedule();
}

}  // namespace hghca::sim
