// SPDX-License-Identifier: GPL-2.0-or-later
// An RDMA loopback controller with memory and software of its own, and a model of what its descriptors do.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "loopback/controller.h"
#include "random.h"

namespace hghca::sim {

class Simulation;

// Memory and queues as docs/reference/loopback.rst has them, a descriptor at a time.
class LoopbackModel {
public:
    explicit LoopbackModel(size_t bytes) : memory(bytes) {}

    // The next descriptor; with a time-out it ends after `until` bytes.
    void execute(bool timed_out, uint32_t until);
    bool has(loopback_extension extension) const { return enabled & extension; }
    static uint32_t next(uint32_t index, uint32_t size) { return index + 1 == size ? 0 : uint16_t(index + 1); }

    std::vector<uint8_t> memory;
    bool late = false;
    uint32_t enabled = 0;   // extensions
    uint32_t sq_base = 0, sq_size = 0, sq_head = 0, cq_base = 0, cq_size = 0, cq_tail = 0;
    std::array<uint32_t, 16> descriptor{};   // that was executed last
    std::vector<bool> unread = std::vector<bool>(65536);   // entries of the CQ
    uint64_t descriptors = 0, bytes = 0, overruns = 0, timeouts = 0;

private:
    struct Payload {
        bool written;
        uint64_t address;
        std::vector<uint8_t> bytes;
    };
    // The most that a late receiver keeps.
    static constexpr size_t kFifo = 16;

    uint64_t sum(uint64_t base, uint64_t offset) const
    {
        return (base + offset) & (has(LOOPBACK_EXT_WIDE) ? 0xffffffffffff : 0xffffffff);
    }
    bool is_there(uint64_t address, size_t length) const
    {
        return address < memory.size() && length <= memory.size() - address;
    }
    // 0, or the status of the transfer.
    uint32_t send(uint64_t source, uint64_t destination, uint32_t length, uint32_t &sent);
    bool place(const Payload &payload);
    void complete(uint32_t status, uint32_t sent);

    std::deque<Payload> fifo_;
};

class LoopbackMachine final : public loopback::Host {
public:
    LoopbackMachine(Simulation &sim, Random random);

    // Its software begins.
    void start();
    uint64_t descriptors() const { return controller_.counters().descriptors; }
    bool has_finished() const { return !epochs_; }

    bool spoiled = false;   // for tests of the checkers: payload that is written has a bit changed

    // ---- loopback::Host
    bool read(uint64_t address, std::span<uint8_t> bytes) override;
    bool write(uint64_t address, std::span<const uint8_t> bytes) override;
    void set_interrupt(bool) override {}
    void trace(const loopback::Header &header) override;

private:
    loopback::Config config();

    // ---- the machine: turns and time-outs, as in QEMU
    void set(uint32_t offset, uint32_t value);
    void kick();
    void turn();
    void watch();
    void time_out();
    void reset();

    // ---- its software
    void begin();
    void schedule();
    void act();
    void act_at_random();
    bool has_ended();
    void finish();
    void write_word(uint32_t at, uint32_t value);
    void write_descriptor(uint32_t index);
    void post();
    void read_completions(uint32_t most);
    void stall(bool stalled);

    // ---- the checkers
    void follow();
    void check();

    Simulation &sim_;
    Random random_;
    std::vector<uint8_t> memory_;
    LoopbackModel model_;
    const loopback::Config config_;
    loopback::Controller controller_;
    const uint64_t timeout_ns_;
    uint64_t resets_ = 0;   // what was due before is not due any more
    bool turn_due_ = false, watched_ = false, stalled_ = false;
    uint64_t watch_ = 0;   // the number of the watch that counts
    uint64_t accesses_ = 0;
    uint64_t traced_descriptor_ = 0;   // and the bytes of its headers
    uint32_t traced_bytes_ = 0;
    bool timed_out_ = false;           // the transfer in hand has
    uint32_t until_ = 0;

    unsigned epochs_;
    bool wild_ = false;                // any descriptor, size, base and tail
    bool counts_overruns_ = false;     // the queues began with a reset
    unsigned actions_ = 0;
    uint64_t deadline_ns_ = 0;
    uint64_t posted_ = 0, first_ = 0;  // descriptors of this epoch; those before it
};

}  // namespace hghca::sim
