// SPDX-License-Identifier: GPL-2.0-or-later
// A host of the simulated network, whatever its device is: memory, a link, and time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "events.h"
#include "fabric.h"
#include "failure.h"
#include "fake_host.h"
#include "random.h"
#include "recording.h"

namespace hghca::sim {

using test::FakeHost;

class Machine;
class ErnicMachine;
class NetworkHost;

// The world as a host sees it.
struct World {
    EventQueue events;
    FramePool pool;
    uint64_t now_ns = 1'000'000;
    uint64_t digest = 0xcbf29ce484222325;   // of all frames received
    uint64_t frames_received = 0;
    Recording *recording = nullptr;         // takes all frames sent; null: nobody does
    std::unique_ptr<Fabric> fabric;
    std::vector<std::unique_ptr<Machine>> machines;      // hosts 0 on
    std::vector<std::unique_ptr<ErnicMachine>> ernics;   // those behind them
    std::vector<NetworkHost *> hosts;                    // all by number
};

class NetworkHost : public FakeHost {
public:
    NetworkHost(World &world, uint32_t number, uint64_t memory_bytes, uint64_t tx_queue_bytes, uint64_t seed);

    // Memory for a queue or a block: the device may write to it.
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
    static uint32_t ipv4_of(uint32_t n) { return 0x0a0a0000 | ((n + 1) & 0xffff); }   // of index 0

    // ---- Host
    FrameSent send_frame(std::span<const iovec> parts, Icrc icrc) override;
    void set_timer(uint64_t deadline) override;
    uint64_t now_ns() override { return world_.now_ns; }
    void schedule() override;
    void raise_vector(unsigned vector) override;
    void lower_interrupt() override {}
    void dirty(uint64_t dma, uint64_t len) override;
    bool write(uint64_t dma, const void *buffer, uint64_t len) override;

    const uint32_t number;
    uint64_t sent_frames = 0;
    uint32_t deaf_interrupts = 0;    // for tests of the checkers: that many interrupts from now on

protected:
    // Nothing of the device before is due any more, and no memory is lent to it. Until check_dma_from_now() it may write
    // anywhere.
    void forget_device();
    void check_dma_from_now() { checking_ = true; }

    World &world_;

private:
    // A frame has left.
    virtual void sent(const Frame &) {}
    // ---- what the device does
    virtual void device_receives(const iovec &part) = 0;
    virtual void device_runs() = 0;
    virtual bool device_has_work() const = 0;
    virtual void device_timer() = 0;
    virtual void device_link_ready() = 0;
    // ---- and its driver
    virtual void driver_interrupt() = 0;

    void check_dma(uint64_t dma, uint64_t len) const;

    const uint64_t tx_queue_bytes_;
    std::vector<bool> writable_;      // a page each
    bool checking_ = false;
    bool run_due_ = false, interrupt_due_ = false, blocked_ = false;
    uint64_t timer_ns_ = UINT64_MAX;
    Random random_;
};

}  // namespace hghca::sim
