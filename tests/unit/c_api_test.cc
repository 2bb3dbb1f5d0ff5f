// SPDX-License-Identifier: GPL-2.0-or-later
// The device core as C sees it.
#include "hghca_core.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "byte_order.h"
#include "fake_host.h"
#include "hghca_hw.h"

namespace hghca::test::c_api_test {
namespace {

FakeHost &host_of(void *opaque) { return *static_cast<FakeHost *>(opaque); }

const hghca_host_ops kOps = {
    [](void *o, uint64_t dma, uint64_t len, bool write) { return host_of(o).map(dma, len, write); },
    [](void *o, uint64_t dma, uint64_t len) { host_of(o).dirty(dma, len); },
    [](void *o, uint64_t dma, void *buffer, uint64_t len) { return host_of(o).read(dma, buffer, len); },
    [](void *o, uint64_t dma, const void *buffer, uint64_t len) { return host_of(o).write(dma, buffer, len); },
    [](void *o, uint64_t dma, void (*change)(uint64_t *, void *), void *context) {
        return host_of(o).update(dma, change, context);
    },
    [](void *o, unsigned vector) { host_of(o).raise_vector(vector); },
    [](void *o) { host_of(o).lower_interrupt(); },
    [](void *o, const iovec *parts, int count, bool device_icrc) {
        return host_of(o).send_frame({parts, size_t(count)}, device_icrc ? Icrc::Device : Icrc::Unknown) ==
               FrameSent::Yes;
    },
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
        config.device_memory = host.on_device().pointer;
        config.device_memory_bytes = host.on_device().bytes;
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

TEST_F(CApi, FaultsOnTheLink)
{
    char error[HGHCA_FAULTS_ERROR_BYTES];
    EXPECT_TRUE(hghca_core_set_faults(nullptr, "drop,rate=1%", error, sizeof(error)));
    EXPECT_FALSE(hghca_core_set_faults(nullptr, "dorp", error, sizeof(error)));
    EXPECT_STREQ(error,
                 "rule 1: there is no fault 'dorp'; there are drop, duplicate, reorder, delay, corrupt, mark, truncate");
    EXPECT_FALSE(hghca_core_set_faults(core, "dorp", error, 9));
    EXPECT_STREQ(error, "rule 1: ");
    // The longest there is.
    const std::string opcode = "drop,opcode=" + std::string(100, 'x');
    EXPECT_FALSE(hghca_core_set_faults(core, opcode.c_str(), error, sizeof(error)));
    EXPECT_TRUE(std::string(error).ends_with(", read_consistent_request"));

    auto count = [this](const std::string &name) {
        unsigned i = 0;
        while (hghca_core_fault_count_name(i) && hghca_core_fault_count_name(i) != name)
            i++;
        return hghca_core_fault_count(core, i);
    };
    EXPECT_EQ(hghca_core_fault_count_name(hghca_core_fault_counts()), nullptr);
    uint8_t frame[60] = {};
    const iovec part{frame, sizeof(frame)};
    ASSERT_TRUE(hghca_core_set_faults(core, "drop,every=2;delay,us=10", error, sizeof(error)));
    for (unsigned i = 0; i < 3; i++)
        hghca_core_receive(core, &part, 1, false);
    EXPECT_EQ(count("dropped"), 1u);
    EXPECT_EQ(count("delayed"), 2u);
    EXPECT_EQ(hghca_core_held_frames(core), 2u);
    EXPECT_EQ(host.deadline_ns, host.clock_ns + 10000);
    host.clock_ns = host.deadline_ns;
    hghca_core_timer(core);
    EXPECT_EQ(hghca_core_held_frames(core), 0u);
    hghca_core_set_fault_seed(core, 5);   // begins again: the third is no second
    hghca_core_receive(core, &part, 1, false);
    EXPECT_EQ(count("dropped"), 1u);
    hghca_core_receive(core, &part, 1, false);
    EXPECT_EQ(count("dropped"), 2u);
    hghca_core_reset(core);
    EXPECT_EQ(count("purged"), 1u);
    EXPECT_EQ(count("none such"), 0u);
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

// An event goes by way of most of what the core asks of its host: memory, written and dirty, and a vector.
TEST_F(CApi, AnEventReachesTheHost)
{
    auto post = [&](uint32_t op, const auto &input, uint32_t modifier = 0, uint32_t op_modifier = 0) {
        std::memset(host.at(mailbox), 0, HGHCA_MAILBOX_SIZE);
        std::memcpy(host.at(mailbox), &input, sizeof(input));
        return run(op | op_modifier << 12, modifier);
    };
    auto map = [&](uint64_t address, unsigned space) {
        hghca_icm_chunk chunk[2]{};
        chunk[HGHCA_ICM_CHUNK_SLOT(0)] = {be64(address), be64(host.alloc(4096) | 1)};
        return post(HGHCA_CMD_MAP_ICM, chunk, 1, space);
    };
    constexpr uint64_t kEqc = 2 << 20, kMtt = 1 << 20;
    hghca_init_hca init{};
    init.qpc_base = be64(3);
    init.cqc_base = be64(1 << 20 | 1);
    init.eqc_base = be64(kEqc | 1);
    init.srqc_base = be64(3 << 20);
    init.mcg_base = be64(5 << 20 | 1);
    init.mpt_base = be64(1);
    init.mtt_base = be64(kMtt);
    init.caps = be32(HGHCA_CAP_ALL & ~HGHCA_CAP_VENDOR_OPS);
    ASSERT_EQ(post(HGHCA_CMD_INIT_HCA, init), 0u);
    ASSERT_EQ(map(kEqc, HGHCA_ICM_CONTEXT), 0u);
    ASSERT_EQ(map(0, HGHCA_ICM_TPT), 0u);
    ASSERT_EQ(map(kMtt, HGHCA_ICM_TPT), 0u);

    const uint64_t ring = host.alloc(4096);
    hghca_mtt_mailbox mtt{};
    mtt.entry[HGHCA_MTT_SLOT(0)] = be64(ring);
    ASSERT_EQ(post(HGHCA_CMD_WRITE_MTT, mtt, 1), 0u);
    hghca_mpt mpt{};
    mpt.flags = be32(HGHCA_MPT_FLAG_REGION | HGHCA_ACCESS_LOCAL_WRITE);
    mpt.key = be32(1 << 8);
    mpt.length = be64(4096);
    ASSERT_EQ(post(HGHCA_CMD_SW2HW_MPT, mpt, 1), 0u);
    auto *eqe = host.as<hghca_eqe>(ring);
    eqe->owner = HGHCA_CQ_ENTRY_OWNER_HW;
    hghca_eqc eqc{};
    eqc.flags = be32(HGHCA_EQ_OWNER_HW | HGHCA_EQ_STATE_ARMED);
    eqc.logsize = 1;
    eqc.intr = 5;
    eqc.lkey = be32(1 << 8);
    ASSERT_EQ(post(HGHCA_CMD_SW2HW_EQ, eqc, 1), 0u);
    // MAP_EQ's mask is the input parameter itself.
    const uint64_t base = HGHCA_HCR_BASE;
    hghca_core_hcr_write(core, base + HGHCA_HCR_IN_PARAM_L, 1u << HGHCA_EVENT_PORT_CHANGE, 4);
    hghca_core_hcr_write(core, base + HGHCA_HCR_IN_MODIFIER, 1, 4);
    hghca_core_hcr_write(core, base + HGHCA_HCR_STATUS, HGHCA_HCR_GO | HGHCA_CMD_MAP_EQ, 4);
    ASSERT_EQ(hghca_core_hcr_read(core, base + HGHCA_HCR_STATUS, 4) >> 24, 0u);

    host.record_dirty = true;
    hghca_core_set_link(core, false);
    EXPECT_EQ(eqe->type, HGHCA_EVENT_PORT_CHANGE);
    EXPECT_EQ(eqe->subtype, HGHCA_PORT_CHANGE_DOWN);
    EXPECT_EQ(eqe->owner, HGHCA_CQ_ENTRY_OWNER_SW);
    EXPECT_EQ(host.vectors, std::vector<unsigned>{5});
    ASSERT_EQ(host.dirtied.size(), 1u);
    EXPECT_EQ(host.dirtied[0].dma, ring);
}

TEST_F(CApi, OutOfMemoryAtTheStart)
{
    hghca_host_ops ops = kOps;
    ops.random = [](void *) -> uint64_t { throw std::bad_alloc(); };
    hghca_config config{};
    EXPECT_EQ(hghca_core_new(&ops, &host, &config), nullptr);
}

TEST_F(CApi, AProfileThatDoesNotExist)
{
    hghca_config config{};
    config.profile = HGHCA_PROFILE_RSNIC;
    hghca_core *rsnic = hghca_core_new(&kOps, &host, &config);
    EXPECT_NE(rsnic, nullptr);
    hghca_core_free(rsnic);
    config.profile = hghca_profile(HGHCA_PROFILE_RSNIC + 1);
    EXPECT_EQ(hghca_core_new(&kOps, &host, &config), nullptr);
}

TEST_F(CApi, EveryEntryIsSafeWhenNothingIsSetUp)
{
    uint8_t bytes[64] = {};
    iovec part{bytes, sizeof(bytes)};
    hghca_core_uar_write(core, 0, ~0ull, 8);
    hghca_core_receive(core, &part, 1, false);
    EXPECT_FALSE(hghca_core_run(core));
    EXPECT_FALSE(hghca_core_has_work(core));
    EXPECT_FALSE(hghca_core_rung_has_work(core));
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

TEST_F(CApi, TheErrorBuffer)
{
    hghca_core_error error{};
    EXPECT_EQ(hghca_core_next_error(core), 0u);
    EXPECT_FALSE(hghca_core_get_error(core, 0, &error));
    hghca_init_hca init{};
    init.qpc_base = be64(3);
    init.cqc_base = be64(1 << 20 | 1);
    init.eqc_base = be64(2 << 20 | 1);
    init.mpt_base = be64(1);
    init.mtt_base = be64(1 << 20);
    std::memset(host.at(mailbox), 0, HGHCA_MAILBOX_SIZE);
    std::memcpy(host.at(mailbox), &init, sizeof(init));
    ASSERT_EQ(run(HGHCA_CMD_INIT_HCA, 0), 0u);
    // To UDP port 4791 of the port's MAC, and with no checksum.
    uint8_t frame[60] = {0, 0, 0, 0, 0, 9};
    frame[12] = 8;
    frame[14] = 0x45;
    frame[17] = 46;
    frame[23] = 17;
    frame[36] = 4791 >> 8;
    frame[37] = 4791 & 0xff;
    frame[49] = 77;
    iovec part{frame, sizeof(frame)};
    for (unsigned i = 1; i <= 100; i++) {
        host.clock_ns = i;
        hghca_core_receive(core, &part, 1, false);
    }
    EXPECT_EQ(hghca_core_next_error(core), 100u);
    EXPECT_EQ(hghca_core_first_error(core), 36u);
    EXPECT_FALSE(hghca_core_get_error(core, 35, &error));
    EXPECT_FALSE(hghca_core_get_error(core, 100, &error));
    ASSERT_TRUE(hghca_core_get_error(core, 36, &error));
    EXPECT_EQ(error.time_ns, 37u);
    EXPECT_EQ(error.frame_bytes, 60u);
    EXPECT_EQ(error.qpn, 77u);
    EXPECT_STREQ(error.why, "IP_CHECKSUM");
    ASSERT_EQ(error.header_bytes, 54u);
    EXPECT_EQ(std::memcmp(error.header, frame, 54), 0);
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
    // It answers as a device that is gone, for 0 would read as success.
    EXPECT_TRUE(hghca_core_failed(core));
    EXPECT_EQ(hghca_core_hcr_read(core, HGHCA_HCR_BASE + HGHCA_HCR_STATUS, 4), 0xffffffffu);
    EXPECT_EQ(hghca_core_uar_read(core, 0, 8), ~0ull);
    EXPECT_FALSE(hghca_core_run(core));
    hghca_core_hcr_write(core, HGHCA_RESET, HGHCA_RESET_START, 4);
    EXPECT_FALSE(hghca_core_failed(core));
    EXPECT_EQ(run(HGHCA_CMD_QUERY_DEV_LIM, 0), 0u);
    hghca_core_fail(core, "a test", HGHCA_HEALTH_HW_FATAL_ERR);
    EXPECT_TRUE(hghca_core_failed(core));
    EXPECT_EQ(hghca_core_hcr_read(core, HGHCA_HCR_BASE + HGHCA_HCR_STATUS, 4), 0xffffffffu);
    hghca_core_reset(core);
    EXPECT_FALSE(hghca_core_failed(core));
    EXPECT_EQ(run(HGHCA_CMD_QUERY_DEV_LIM, 0), 0u);
    std::swap(core, broken);
    hghca_core_free(broken);
}

}  // namespace
}  // namespace hghca::test::c_api_test
