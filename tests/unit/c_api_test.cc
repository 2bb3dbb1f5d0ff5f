// SPDX-License-Identifier: GPL-2.0-or-later
// The device core as C sees it.
#include "hghca_core.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "byte_order.h"
#include "fake_host.h"
#include "hghca_hw.h"

namespace hghca::test {
namespace {

FakeHost &host_of(void *opaque) { return *static_cast<FakeHost *>(opaque); }

const hghca_host_ops kOps = {
    [](void *o, uint64_t dma, uint64_t len, bool write) { return host_of(o).map(dma, len, write); },
    [](void *o, uint64_t dma, uint64_t len) { host_of(o).dirty(dma, len); },
    [](void *o, uint64_t dma, void *buffer, uint64_t len) { return host_of(o).read(dma, buffer, len); },
    [](void *o, uint64_t dma, const void *buffer, uint64_t len) { return host_of(o).write(dma, buffer, len); },
    [](void *o, unsigned vector) { host_of(o).raise_vector(vector); },
    [](void *o, const iovec *parts, int count) { return host_of(o).send_frame(parts, count); },
    [](void *o, uint64_t deadline) { host_of(o).set_timer(deadline); },
    [](void *o) { return host_of(o).now_ns(); },
    [](void *o) { return host_of(o).random(); },
    [](void *o) { host_of(o).schedule(); },
    [](void *o) { return host_of(o).tracing(); },
    [](void *o, hghca_trace_level, const char *text) { host_of(o).trace(Host::Trace::Success, text); },
};

class CApi : public ::testing::Test {
protected:
    CApi()
    {
        hghca_config config{};
        config.mac[5] = 9;
        core = hghca_core_new(&kOps, &host, &config);
        mailbox = host.alloc(4096);
    }
    ~CApi() override { hghca_core_free(core); }

    unsigned run(uint32_t op, uint32_t modifier)
    {
        uint64_t base = HGHCA_HCR_BASE;
        hghca_core_hcr_write(core, base + HGHCA_HCR_IN_PARAM_L, uint32_t(mailbox), 4);
        hghca_core_hcr_write(core, base + HGHCA_HCR_OUT_PARAM_L, uint32_t(mailbox), 4);
        hghca_core_hcr_write(core, base + HGHCA_HCR_IN_MODIFIER, modifier, 4);
        hghca_core_hcr_write(core, base + HGHCA_HCR_STATUS, HGHCA_HCR_GO | op, 4);
        return unsigned(hghca_core_hcr_read(core, base + HGHCA_HCR_STATUS, 4) >> 24);
    }

    FakeHost host{1 << 20};
    hghca_core *core;
    uint64_t mailbox;
};

TEST_F(CApi, CommandsAndReset)
{
    ASSERT_NE(core, nullptr);
    EXPECT_EQ(run(HGHCA_CMD_QUERY_PORT, 1), 0u);
    EXPECT_EQ(be16(host.as<hghca_port>(mailbox)->mac_l), 9);
    EXPECT_EQ(run(0x777, 0), HGHCA_CMD_STAT_BAD_OP);
    hghca_core_reset(core);
    EXPECT_EQ(hghca_core_hcr_read(core, HGHCA_HCR_BASE + HGHCA_HCR_STATUS, 4), 0u);
}

TEST_F(CApi, OneCommandFailsWhenAskedFor)
{
    EXPECT_EQ(hghca_core_until_fault(core), 0u);
    hghca_core_fail_command(core, 2);
    hghca_core_reset(core);
    EXPECT_EQ(hghca_core_until_fault(core), 2u);
    EXPECT_EQ(run(HGHCA_CMD_QUERY_PORT, 1), 0u);
    std::memset(host.at(mailbox), 0xee, HGHCA_MAILBOX_SIZE);
    EXPECT_EQ(run(HGHCA_CMD_QUERY_PORT, 1), HGHCA_CMD_STAT_INTERNAL_ERR);
    EXPECT_EQ(*host.at(mailbox), 0xee);
    EXPECT_EQ(hghca_core_until_fault(core), 0u);
    EXPECT_EQ(run(HGHCA_CMD_QUERY_PORT, 1), 0u);
    EXPECT_EQ(hghca_core_commands(core), 3u);
    hghca_core_fail_command(core, 1);
    hghca_core_fail_command(core, 0);
    EXPECT_EQ(run(HGHCA_CMD_QUERY_PORT, 1), 0u);
}

TEST_F(CApi, EveryEntryIsSafeWhenNothingIsSetUp)
{
    uint8_t bytes[64] = {};
    iovec part{bytes, sizeof(bytes)};
    hghca_core_uar_write(core, 0, ~0ull, 8);
    hghca_core_receive(core, &part, 1);
    EXPECT_FALSE(hghca_core_run(core));
    EXPECT_FALSE(hghca_core_has_work(core));
    hghca_core_timer(core);
    hghca_core_link_ready(core);
    hghca_core_set_link(core, false);
    hghca_core_dma_changed(core);
    hghca_core_free(nullptr);
}

TEST_F(CApi, CountersByName)
{
    ASSERT_EQ(hghca_core_counters(), unsigned(HGHCA_COUNTER_NUM));
    for (unsigned i = 0; i < hghca_core_counters(); i++) {
        EXPECT_NE(hghca_core_counter_name(i), nullptr);
        EXPECT_EQ(hghca_core_counter(core, i), 0u);
    }
    EXPECT_STREQ(hghca_core_counter_name(0), "tx_packets");
    EXPECT_STREQ(hghca_core_counter_name(HGHCA_COUNTER_context_evictions), "context_evictions");
    EXPECT_EQ(hghca_core_counter_name(HGHCA_COUNTER_NUM), nullptr);
    EXPECT_EQ(hghca_core_counter(core, HGHCA_COUNTER_NUM), 0u);
    hghca_core_uar_write(core, 0, uint64_t(9 << 8) << 32, 8);
    EXPECT_EQ(hghca_core_counter(core, HGHCA_COUNTER_db_bad_object), 1u);
}

TEST_F(CApi, AnExceptionStopsTheDeviceUntilReset)
{
    hghca_host_ops ops = kOps;
    ops.read = [](void *, uint64_t, void *, uint64_t) -> bool { throw std::bad_alloc(); };
    hghca_config config{};
    hghca_core *broken = hghca_core_new(&ops, &host, &config);
    ASSERT_NE(broken, nullptr);
    std::swap(core, broken);
    run(HGHCA_CMD_INIT_HCA, 0);
    // It answers nothing, and go does not stay set either.
    EXPECT_EQ(hghca_core_hcr_read(core, HGHCA_HCR_BASE + HGHCA_HCR_STATUS, 4), 0u);
    EXPECT_FALSE(hghca_core_run(core));
    hghca_core_hcr_write(core, HGHCA_RESET, HGHCA_RESET_START, 4);
    EXPECT_EQ(run(HGHCA_CMD_QUERY_DEV_LIM, 0), 0u);
    std::swap(core, broken);
    hghca_core_free(broken);
}

}  // namespace
}  // namespace hghca::test
