// SPDX-License-Identifier: GPL-2.0-or-later
// A host of the simulated network with a JingZhao HCA and its driver.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "driver.h"
#include "network_host.h"

namespace hghca::sim {

using test::TestDriver;

// What one word of seed makes of a host.
struct MachineConfig {
    Profile profile = Profile::Full;
    uint32_t packets = 0;             // that RSNIC's retransmission buffer holds, a power of two; 0: it has none
    bool command_queue = false;       // RSNIC's commands go by its queue, not by the HCR
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

class Machine final : public NetworkHost {
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
        if (has(HGHCA_CAP_CONGESTION))
            driver.turn_congestion(HGHCA_CONGESTION_REACT | HGHCA_CONGESTION_NOTIFY);
    }
    bool has(hghca_cap cap) const { return caps_ & cap; }
    // For tests of the checkers: a program writes over the retransmission buffer.
    void spoil_packets();

    const MachineConfig config;
    Device device;
    TestDriver driver;
    std::vector<TestDriver::Cq> cqs;
    TestDriver::Eq completions{};
    Handler *handler = nullptr;
    uint32_t lose_completion = 0;    // for tests of the checkers: that many completions from now on
    uint32_t double_completion = 0;

private:
    static Config device_config(FakeHost &host, uint32_t number, const MachineConfig &config);
    bool poll(TestDriver::Cq &cq);
    uint64_t packets_dma() const { return driver.layout.packet_base & ~HGHCA_INIT_HCA_LOG_MASK; }

    const uint32_t caps_;   // all that the device has; start() turns them on

    // ---- NetworkHost
    void device_receives(const iovec &part) override;
    void device_runs() override;
    bool device_has_work() const override { return device.has_work(); }
    void device_timer() override;
    void device_link_ready() override;
    void driver_interrupt() override;
};

}  // namespace hghca::sim
