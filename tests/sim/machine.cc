// SPDX-License-Identifier: GPL-2.0-or-later
#include "machine.h"

#include <algorithm>
#include <bit>

namespace hghca::sim {

namespace {

constexpr uint64_t kPage = FakeHost::kPage;
constexpr uint16_t kVlan = 5;

unsigned log2_up(uint64_t n) { return unsigned(std::bit_width(std::max<uint64_t>(n, 2) - 1)); }

}  // namespace

Block::Block(FakeHost &host, uint64_t bytes, uint64_t lead, uint64_t guard_pages)
    : bytes_(bytes), lead_(guard_pages * kPage + lead % kPage)
{
    const uint64_t pages = (lead_ + bytes + kPage - 1) / kPage + guard_pages;
    dma_ = host.alloc(pages * kPage);
    memory_ = host.at(dma_);
    shadow_.resize(pages * kPage);
}

void Block::fill(Random &random)
{
    for (size_t i = 0; i < shadow_.size(); i += 8) {
        const uint64_t word = random.next();
        std::memcpy(memory_ + i, &word, 8);
    }
    accept_all();
}

Config Machine::device_config(FakeHost &host, uint32_t number, const MachineConfig &config)
{
    Config c{};
    c.profile = config.profile;
    c.mac = mac_of(number);
    c.cache_entries = config.cache_entries;
    c.device_memory = host.on_device();
    // A timer of virtual time costs nothing, so packets need not go in bursts.
    c.pace_grain_ns = 500;
    return c;
}

Machine::Machine(World &world, uint32_t number, const MachineConfig &config, uint64_t seed)
    : NetworkHost(world, number, config.memory_bytes, config.tx_queue_bytes, seed), config(config),
      device(*this, device_config(*this, number, config)), driver(*this, device), caps_(driver.offered())
{
    copy_only = config.copy_only;
    TestDriver::Layout &layout = driver.layout;
    layout.log_qps = log2_up(config.first_qpn + config.qps + 1);
    layout.log_cqs = log2_up(config.cqs + 2);
    layout.log_mpts = log2_up(config.mrs + 64);
    layout.mtt_bytes = (config.mtts + 4096) * 8;
    // In the order of the default layout, as large as they are.
    layout.cqc = std::max<uint64_t>(layout.cqc, 2048ull << layout.log_qps);
    layout.eqc = layout.cqc + std::max<uint64_t>(1 << 20, 128ull << layout.log_cqs);
    layout.srqc = layout.eqc + (1 << 20);
    layout.mcg = layout.srqc + (2 << 20);
    layout.mtt = std::max<uint64_t>(1 << 20, 64ull << layout.log_mpts);
    if (config.packets)
        layout.packet_base = alloc(config.packets * kPage) | uint64_t(std::countr_zero(config.packets));
    driver.first_qpn = config.first_qpn;
    if (config.command_queue)
        driver.queue = alloc(kPage);
}

void Machine::start()
{
    forget_device();
    driver.start(caps_);
    allow_dma(driver.async.buffer.dma, 32ull << driver.async.log);
    completions = driver.create_eq(std::max(8u, log2_up(config.cqs * 2)), 1);
    allow_dma(completions.buffer.dma, 32ull << completions.log);
    cqs.clear();
    for (uint32_t i = 0; i < config.cqs; i++) {
        cqs.push_back(driver.create_cq(config.cq_log, completions.eqn));
        allow_dma(cqs.back().buffer.dma, 32ull << config.cq_log);
        driver.arm(cqs.back());
    }
    for (unsigned i = 0; i < 3 && has(HGHCA_CAP_GID_TABLE); i++)
        TestDriver::must(driver.set_gid(i, gid_of(number, i).data(), mac_of(number).data(), i == 2 ? kVlan : -1),
                         "SET_GID");
    const TestDriver::Layout &layout = driver.layout;
    allow_dma(driver.qpc_dma, 2048ull << layout.log_qps);
    allow_dma(driver.cqc_dma, 128ull << layout.log_cqs);
    allow_dma(driver.eqc_dma, 64ull << layout.log_eqs);
    allow_dma(driver.srqc_dma, 128ull << layout.log_srqs);
    allow_dma(driver.mcg_dma, 256ull << layout.log_mcgs);
    allow_dma(driver.mpt_dma, 64ull << layout.log_mpts);
    allow_dma(driver.mtt_dma, layout.mtt_bytes);
    allow_dma(driver.out_mailbox(), HGHCA_MAILBOX_SIZE);
    if (config.packets)
        allow_dma(packets_dma(), config.packets * kPage);
    if (driver.queue) {
        allow_dma(driver.queue, kPage);
        const auto by_hcr = driver.command_by_hcr(HGHCA_CMD_NOP, 0, 0x1f, 0, 0, false, HGHCA_CMD_POLL_TOKEN);
        if (by_hcr.status != HGHCA_CMD_STAT_RESOURCE_BUSY || device.counters().cmdq_ignored)
            fail("host ", number, ": its commands do not go by the queue");
    }
    check_dma_from_now();
}

void Machine::spoil_packets()
{
    for (uint32_t i = 0; i < config.packets; i++)
        std::memset(at(packets_dma() + i * kPage), 0xa5, 64);
}

// ---- NetworkHost

void Machine::device_receives(const iovec &part)
{
    test::bounded(device, [&] { device.receive({&part, 1}); });
}

void Machine::device_runs()
{
    test::bounded(device, [&] { device.run(); });
}

void Machine::device_timer()
{
    test::bounded(device, [&] { device.timer(); });
}

void Machine::device_link_ready()
{
    test::bounded(device, [&] { device.link_ready(); });
}

bool Machine::poll(TestDriver::Cq &cq)
{
    hghca_cqe cqe;
    if (!driver.poll(cq, cqe))
        return false;
    if (lose_completion && !--lose_completion)
        return true;
    handler->completion(*this, cqe);
    if (double_completion && !--double_completion)
        handler->completion(*this, cqe);
    return true;
}

void Machine::driver_interrupt()
{
    hghca_eqe eqe;
    while (driver.poll(driver.async, eqe))
        handler->event(*this, eqe);
    while (driver.poll(completions, eqe)) {
        const uint32_t cqn = be32(eqe.event.comp.cqn);
        if (eqe.type != HGHCA_EVENT_COMP || cqn == 0 || cqn > cqs.size())
            fail("host ", number, ": event ", unsigned(eqe.type), " in the EQ of completions, CQ ", cqn);
        TestDriver::Cq &cq = cqs[cqn - 1];
        while (poll(cq))
            ;
        driver.arm(cq);
    }
    driver.arm(driver.async);
    driver.arm(completions);
    handler->idle(*this);
}

}  // namespace hghca::sim
