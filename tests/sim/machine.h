// SPDX-License-Identifier: GPL-2.0-or-later
// One host of the simulated network: memory, a device, and the driver of it.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "driver.h"
#include "events.h"
#include "fabric.h"
#include "failure.h"
#include "fake_host.h"
#include "recording.h"

namespace hghca::sim {

using test::FakeHost;
using test::TestDriver;

// What one word of seed makes of a host.
struct MachineConfig {
    uint32_t cache_entries = 0;
    bool copy_only = false;           // no DMA but by copy
    uint64_t memory_bytes = 64u << 20;
    uint32_t qps = 0;                 // that it will have, at most
    uint32_t mrs = 0;
    uint32_t cqs = 2;
    unsigned cq_log = 12;
    uint64_t mtts = 0;
    uint64_t tx_queue_bytes = 64 << 10;
    uint32_t first_qpn = 8;
};

// Memory that software has registered, with what stands before and behind it, and what it has to hold.
class Block {
public:
    // `bytes` from `lead` on in pages of their own, `guard` pages more before and behind them.
    Block(FakeHost &host, uint64_t bytes, uint64_t lead, uint64_t guard_pages);
    uint8_t *now(uint64_t offset) { return memory_ + lead_ + offset; }
    // What the model says of it.
    uint8_t *model(uint64_t offset) { return shadow_.data() + lead_ + offset; }
    uint64_t dma(uint64_t offset) const { return dma_ + lead_ + offset; }
    uint64_t bytes() const { return bytes_; }
    bool holds(uint64_t offset, uint64_t length) { return !std::memcmp(now(offset), model(offset), length); }
    // The model is made to agree.
    void accept(uint64_t offset, uint64_t length) { std::memcpy(model(offset), now(offset), length); }
    void accept_all() { std::memcpy(shadow_.data(), memory_, shadow_.size()); }
    // Of the first byte that is not as the model says, from the registered memory's beginning; none: false.
    // `explained` may know better of each.
    template <class Explain>
    bool differs(int64_t &offset, const Explain &explained)
    {
        if (!std::memcmp(memory_, shadow_.data(), shadow_.size()))
            return false;
        for (size_t i = 0; i < shadow_.size(); i++) {
            offset = int64_t(i) - int64_t(lead_);
            if (memory_[i] != shadow_[i] && !explained(offset, memory_[i]))
                return true;
        }
        return false;
    }
    // For those that make contents.
    void fill(class Random &random);

    TestDriver::Mr mr{};

private:
    uint64_t bytes_, lead_, dma_;
    uint8_t *memory_;
    std::vector<uint8_t> shadow_;
};

class Machine;

// The world as a machine sees it.
struct World {
    EventQueue events;
    FramePool pool;
    uint64_t now_ns = 1'000'000;
    uint64_t digest = 0xcbf29ce484222325;   // of all frames received
    uint64_t frames_received = 0;
    Recording *recording = nullptr;         // takes all frames sent; null: nobody does
    std::unique_ptr<Fabric> fabric;
    std::vector<std::unique_ptr<Machine>> machines;
};

class Machine final : public FakeHost {
public:
    // Whoever works with the queues of the machine.
    struct Handler {
        virtual ~Handler() = default;
        virtual void completion(Machine &machine, const hghca_cqe &cqe) = 0;
        virtual void event(Machine &machine, const hghca_eqe &eqe) = 0;
        // All completions that were there have been told.
        virtual void idle(Machine &machine) = 0;
    };

    Machine(World &world, uint32_t number, const MachineConfig &config, uint64_t seed);

    // Reset, and all that a driver does when it starts.
    void start();
    // Until the next reset.
    void turn_on_congestion_control()
    {
        driver.turn_congestion(HGHCA_CONGESTION_REACT | HGHCA_CONGESTION_NOTIFY);
    }
    // Memory for a queue or a block; with `writable` the device may write to it.
    void allow_dma(uint64_t dma, uint64_t bytes);

    // ---- events
    void receive(Frame *frame);
    void run();
    void fire_timer();
    void link_ready();
    void interrupt();

    // ---- addresses
    static std::array<uint8_t, 6> mac_of(uint32_t n) { return {2, 0, 0, 0, uint8_t((n + 1) >> 8), uint8_t(n + 1)}; }
    // Index 0: 10.10.a.b; 1: fd00::a:b; 2: 10.20.a.b in VLAN 5.
    static std::array<uint8_t, 16> gid_of(uint32_t n, unsigned index);

    // ---- Host
    bool send_frame(const iovec *parts, int count) override;
    void set_timer(uint64_t deadline) override;
    uint64_t now_ns() override { return world_.now_ns; }
    void schedule() override;
    void raise_vector(unsigned vector) override;
    void dirty(uint64_t dma, uint64_t len) override;
    bool write(uint64_t dma, const void *buffer, uint64_t len) override;

    const uint32_t number;
    const MachineConfig config;
    Device device;
    TestDriver driver;
    std::vector<TestDriver::Cq> cqs;
    TestDriver::Eq completions{};
    Handler *handler = nullptr;
    uint64_t sent_frames = 0;
    uint32_t lose_completion = 0;    // for tests of the checkers: that many completions from now on
    uint32_t double_completion = 0;
    uint32_t deaf_interrupts = 0;

private:
    static Config device_config(FakeHost &host, uint32_t number, const MachineConfig &config);
    void check_dma(uint64_t dma, uint64_t len) const;
    bool poll(TestDriver::Cq &cq);

    World &world_;
    std::vector<bool> writable_;      // a page each
    bool checking_ = false;
    bool run_due_ = false, interrupt_due_ = false, blocked_ = false;
    uint64_t timer_ns_ = UINT64_MAX;
    Random random_;
};

}  // namespace hghca::sim
