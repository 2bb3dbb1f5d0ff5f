// SPDX-License-Identifier: GPL-2.0-or-later
// Contexts live in ICM: eviction, unmapping, reset, and what a guest can do to the memory.
#include <cstdio>

#include "fixture.h"
#include "jingzhao/multicast.h"
#include "jingzhao/srq.h"

namespace hghca::test::context_cache_test {
namespace {

// The size of the cache; 0: no limit.
class CacheTest : public DeviceTest, public ::testing::WithParamInterface<uint32_t> {
protected:
    CacheTest() : DeviceTest(GetParam()) { driver.start(); }
};

TEST_P(CacheTest, ContextsComeBackAsTheyWere)
{
    constexpr unsigned kEach = 6;
    std::vector<TestDriver::Cq> cqs;
    std::vector<TestDriver::Eq> eqs;
    std::vector<TestDriver::Qp> qps;
    std::vector<TestDriver::Mr> mrs;
    for (unsigned i = 0; i < kEach; i++) {
        eqs.push_back(driver.create_eq(4, 10 + i));
        cqs.push_back(driver.create_cq(4, eqs[i].eqn));
        qps.push_back(driver.create_qp(i % 2 ? HGHCA_QP_ST_RC : HGHCA_QP_ST_UD, cqs[i], cqs[i]));
        mrs.push_back(driver.create_mr(0x1000 * (i + 1), 4096));
    }
    host.vectors.clear();
    TestDriver::Peer peer{8, {}, {}, 1, 2};
    for (unsigned i = 1; i < kEach; i += 2)
        driver.rc_to_rts(qps[i], peer, i, 0xff0000 + i);
    for (unsigned round = 0; round < 5; round++) {
        for (unsigned i = 0; i < kEach; i++) {
            driver.arm(cqs[i]);
            hghca_cqe cqe{};
            cqe.my_qpn = le32(round * 100 + i);
            ASSERT_EQ(device.cqs->post(Cqn(cqs[i].cqn), cqe, round % 2), Completed::Yes);
            device.run();  // the end of an entry: the caches shrink
            hghca_cqe out;
            ASSERT_TRUE(driver.poll(cqs[i], out));
            EXPECT_EQ(le32(out.my_qpn), round * 100 + i);
            hghca_eqe eqe;
            ASSERT_TRUE(driver.poll(eqs[i], eqe));
            EXPECT_EQ(be32(eqe.event.comp.cqn), cqs[i].cqn);
            EXPECT_EQ(host.take_vectors(10 + i), 1u);
            driver.arm(eqs[i]);
            EXPECT_EQ(host.take_vectors(10 + i), 0u);
            hghca_qpc q;
            ASSERT_EQ(driver.query(HGHCA_CMD_QUERY_QP, q, qps[i].qpn), 0);
            EXPECT_EQ(be32(q.flags) >> 28, i % 2 ? 3u : 1u);
            EXPECT_EQ(be32(q.rnr_nextrecvpsn) & 0xffffff, i % 2 ? i : 0);
            EXPECT_EQ(be32(q.snd_wqe_base_l), qps[i].sq.key);
            uint32_t word = round, back = ~0u;
            ASSERT_TRUE(device.memory->write(Key(mrs[i].key), TestDriver::kPd, 0x1000 * (i + 1) + 8, &word, 4));
            device.run();
            ASSERT_TRUE(device.memory->read(Key(mrs[i].key), TestDriver::kPd, 0x1000 * (i + 1) + 8, &back, 4));
            EXPECT_EQ(back, round);
        }
    }
    for (unsigned i = 0; i < kEach; i++) {
        EXPECT_EQ(driver.to_reset(qps[i].qpn), 0);
        EXPECT_EQ(driver.state(qps[i].qpn), 0u);
        EXPECT_EQ(driver.command(HGHCA_CMD_HW2SW_CQ, 0, cqs[i].cqn).status, 0);
        EXPECT_FALSE(device.cqs->exists(Cqn(cqs[i].cqn)));
        EXPECT_EQ(driver.command(HGHCA_CMD_HW2SW_EQ, 0, eqs[i].eqn).status, 0);
        EXPECT_EQ(driver.destroy_mr(mrs[i]), 0);
        EXPECT_EQ(device.memory->find(Key(mrs[i].key)), nullptr);
    }
    const Counters &c = device.counters();
    if (GetParam()) {
        EXPECT_GT(c.context_evictions, 0u);
        EXPECT_GT(c.context_misses, 0u);
    } else {
        EXPECT_EQ(c.context_evictions, 0u);
        EXPECT_EQ(c.context_misses, 0u);
    }
    EXPECT_GT(c.context_hits, 0u);
}

TEST_P(CacheTest, ResetWithLiveObjectsWritesNothing)
{
    auto cq = driver.create_cq(4);
    auto qp = driver.create_qp(HGHCA_QP_ST_RC, cq, cq);
    auto mr = driver.create_mr(0, 4096);
    host.record_dirty = true;
    driver.reset();
    EXPECT_TRUE(host.dirtied.empty());
    EXPECT_EQ(device.qps->find(Qpn(qp.qpn)), nullptr);
    EXPECT_EQ(device.memory->find(Key(mr.key)), nullptr);
    EXPECT_FALSE(device.cqs->exists(Cqn(cq.cqn)));
    host.record_dirty = false;
    driver.start();
    EXPECT_EQ(driver.state(qp.qpn), 0u);
}

TEST_P(CacheTest, WhatAnEarlierLifeLeftInIcmIsNotOurs)
{
    auto cq = driver.create_cq(4);
    auto qp = driver.create_qp(HGHCA_QP_ST_RC, cq, cq);
    auto mr = driver.create_mr(0, 4096);
    // Written back by unmapping, and mapped again as it is, without the zeroes a driver owes.
    auto remap = [&] {
        driver.map_chunk(HGHCA_ICM_CONTEXT, driver.layout.qpc, driver.qpc_dma, 128);
        driver.map_chunk(HGHCA_ICM_CONTEXT, driver.layout.cqc, driver.cqc_dma, 8);
        driver.map_chunk(HGHCA_ICM_CONTEXT, driver.layout.eqc, driver.eqc_dma, 1);
        driver.map_chunk(HGHCA_ICM_TPT, driver.layout.mpt, driver.mpt_dma, 16);
    };
    ASSERT_EQ(driver.unmap_icm(HGHCA_ICM_CONTEXT, driver.layout.qpc, 128), 0);
    ASSERT_EQ(driver.unmap_icm(HGHCA_ICM_CONTEXT, driver.layout.cqc, 8), 0);
    ASSERT_EQ(driver.unmap_icm(HGHCA_ICM_CONTEXT, driver.layout.eqc, 1), 0);
    ASSERT_EQ(driver.unmap_icm(HGHCA_ICM_TPT, driver.layout.mpt, 16), 0);
    driver.reset();
    ASSERT_EQ(driver.init_hca(), 0);
    remap();
    EXPECT_EQ(device.qps->find(Qpn(qp.qpn)), nullptr);
    EXPECT_FALSE(device.cqs->exists(Cqn(cq.cqn)));
    EXPECT_EQ(device.memory->find(Key(mr.key)), nullptr);
}

TEST_P(CacheTest, UnmapWithLiveContexts)
{
    auto cq = driver.create_cq(4);
    auto qp = driver.create_qp(HGHCA_QP_ST_UD, cq, cq);
    auto mr = driver.create_mr(0, 4096);
    auto eq = driver.create_eq(4, 1);
    host.record_dirty = true;
    ASSERT_EQ(driver.unmap_icm(HGHCA_ICM_CONTEXT, driver.layout.qpc, 128), 0);
    ASSERT_EQ(driver.unmap_icm(HGHCA_ICM_CONTEXT, driver.layout.cqc, 8), 0);
    ASSERT_EQ(driver.unmap_icm(HGHCA_ICM_CONTEXT, driver.layout.eqc, 1), 0);
    ASSERT_EQ(driver.unmap_icm(HGHCA_ICM_TPT, driver.layout.mpt, 16), 0);
    // From here on the memory is the driver's.
    host.dirtied.clear();
    EXPECT_EQ(device.qps->find(Qpn(qp.qpn)), nullptr);
    EXPECT_EQ(device.memory->find(Key(mr.key)), nullptr);
    hghca_cqe cqe{};
    EXPECT_EQ(device.cqs->post(Cqn(cq.cqn), cqe, true), Completed::CqFailed);
    device.eqs->post_completion(eq.eqn, Cqn(1));
    device.eqs->post_qp(HGHCA_EVENT_COMM_EST, Qpn(1));
    driver.arm(cq);
    driver.arm(eq);
    driver.ring_sq(qp, 0, HGHCA_OPCODE_SEND, 4);
    EXPECT_EQ(driver.to_reset(qp.qpn), HGHCA_CMD_STAT_LAM_NOT_PRE);
    EXPECT_EQ(driver.destroy_mr(mr), HGHCA_CMD_STAT_LAM_NOT_PRE);
    device.run();
    EXPECT_TRUE(host.dirtied.empty());
    // Mapped again with its content, all is as before.
    driver.map_chunk(HGHCA_ICM_CONTEXT, driver.layout.qpc, driver.qpc_dma, 128);
    driver.map_chunk(HGHCA_ICM_CONTEXT, driver.layout.cqc, driver.cqc_dma, 8);
    driver.map_chunk(HGHCA_ICM_CONTEXT, driver.layout.eqc, driver.eqc_dma, 1);
    driver.map_chunk(HGHCA_ICM_TPT, driver.layout.mpt, driver.mpt_dma, 16);
    EXPECT_NE(device.memory->find(Key(mr.key)), nullptr);
    EXPECT_EQ(device.cqs->post(Cqn(cq.cqn), cqe, true), Completed::Yes);
    EXPECT_EQ(driver.state(qp.qpn), unsigned(HGHCA_QP_STATE_INIT));
}

TEST_P(CacheTest, UnmappingHalfAnEntryTakesItAway)
{
    // QPC entries that straddle pages: the base is 256-aligned, no more.
    driver.layout.qpc = 0x100;
    driver.layout.cqc = 4 << 20;
    driver.reset();
    ASSERT_EQ(driver.init_hca(), 0);
    driver.map_icm(HGHCA_ICM_CONTEXT, 0, 129 * 4096);
    driver.map_icm(HGHCA_ICM_CONTEXT, driver.layout.cqc, 8 * 4096);
    driver.map_icm(HGHCA_ICM_TPT, driver.layout.mpt, 16 * 4096);
    driver.map_icm(HGHCA_ICM_TPT, driver.layout.mtt, 4096);
    auto cq = driver.create_cq(4);
    for (int i = 0; i < 8; i++) {
        auto qp = driver.create_qp(HGHCA_QP_ST_UD, cq, cq);
        hghca_qpc q;
        ASSERT_EQ(driver.query(HGHCA_CMD_QUERY_QP, q, qp.qpn), 0);
        EXPECT_EQ(be32(q.snd_wqe_base_l), qp.sq.key);
    }
    // QP 9 stands at 0x4900 to 0x5100.
    EXPECT_NE(device.qps->find(Qpn(9)), nullptr);
    ASSERT_EQ(driver.unmap_icm(HGHCA_ICM_CONTEXT, 0x5000, 1), 0);
    EXPECT_EQ(device.qps->find(Qpn(9)), nullptr);
    EXPECT_EQ(device.qps->find(Qpn(10)), nullptr);
    EXPECT_NE(device.qps->find(Qpn(8)), nullptr);
    EXPECT_NE(device.qps->find(Qpn(12)), nullptr);
    EXPECT_EQ(driver.to_reset(9), HGHCA_CMD_STAT_LAM_NOT_PRE);
}

INSTANTIATE_TEST_SUITE_P(Sizes, CacheTest, ::testing::Values(0u, 1u, 2u, 5u));

// ---- the guest writes to ICM

class ScribbleTest : public DeviceTest {
protected:
    ScribbleTest() : DeviceTest(1) { driver.start(); }

    // Puts all contexts out of the cache, into ICM.
    void evict()
    {
        device.qps->trim(0);
        device.cqs->trim(0);
        device.eqs->trim(0);
        device.memory->trim(0);
    }
};

TEST_F(ScribbleTest, EveryByteOfAQpContext)
{
    auto cq = driver.create_cq(4);
    auto qp = driver.create_qp(HGHCA_QP_ST_RC, cq, cq);
    TestDriver::Peer peer{8, {}, {}, 1, 2};
    driver.rc_to_rts(qp, peer);
    evict();
    uint8_t *entry = host.at(driver.qpc_dma + qp.qpn * 2048ull);
    std::vector<uint8_t> good(entry, entry + 2048);
    unsigned refused = 0, taken = 0;
    for (size_t i = 0; i < stored_bytes<Qp>(); i++) {
        for (uint8_t byte : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
            memcpy(entry, good.data(), good.size());
            entry[i] = byte;
            uint64_t misses = device.counters().context_misses;
            // Whatever is there: found whole and sane, or absent and not counted.
            if (const Qp *q = device.qps->find(Qpn(qp.qpn))) {
                taken++;
                EXPECT_EQ(q->a.qpn, Qpn(qp.qpn));
                EXPECT_TRUE(q->a.mtu >= 256 && q->a.mtu <= 4096);
                EXPECT_LE(q->a.sq.length, 16384u);
                EXPECT_LT(q->a.path.sgid_index, Port::kGids);
                EXPECT_LT(q->resp.reply_head, q->resp.replies.size());
                EXPECT_LE(q->resp.reply_count, q->resp.replies.size());
                EXPECT_LT(q->resp.atomic_head, q->resp.atomics.size());
                EXPECT_TRUE(q->state >= QpState::Init && q->state <= QpState::Error);
            } else {
                refused++;
                EXPECT_EQ(device.counters().context_misses, misses);
            }
            // Dropped without being written back.
            driver.unmap_icm(HGHCA_ICM_CONTEXT, driver.layout.qpc, 128);
            driver.map_chunk(HGHCA_ICM_CONTEXT, driver.layout.qpc, driver.qpc_dma, 128);
        }
    }
    EXPECT_GT(refused, 200u);
    EXPECT_GT(taken, 200u);
}

TEST_F(ScribbleTest, NoiseInEveryTable)
{
    auto cq = driver.create_cq(4);
    auto qp = driver.create_qp(HGHCA_QP_ST_RC, cq, cq);
    auto mr = driver.create_mr(0, 4096);
    auto eq = driver.create_eq(4, 1);
    struct {
        uint64_t dma;
        uint64_t length;
    } tables[] = {{driver.qpc_dma + qp.qpn * 2048ull, 2048},
                  {driver.cqc_dma + cq.cqn * 128ull, 128},
                  {driver.eqc_dma + eq.eqn * 64ull, 64},
                  {driver.mpt_dma + driver.mpt_index(mr.key) * 64ull, 64}};
    // What the guest has done to its EQs may be a reason for the device to fail, and then for nothing else.
    auto attempt = [&](auto &&entry) {
        try {
            entry();
        } catch (const DeviceFailed &) {
            EXPECT_TRUE(device.failed());
        }
    };
    unsigned failures = 0;
    for (int round = 0; round < 3000; round++) {
        evict();
        auto &table = tables[round % 4];
        // A few random bytes, behind the header mostly: the header is easy to get wrong.
        for (int n = 0; n < 1 + round % 7; n++)
            *host.at(table.dma + (round % 50 ? 16 : 0) + host.random() % (table.length - 16)) = uint8_t(host.random());
        hghca_cqe cqe{};
        hghca_qpc q;
        uint32_t word;
        attempt([&] { (void)device.cqs->post(Cqn(cq.cqn), cqe, true); });
        driver.arm(cq);
        attempt([&] { device.eqs->post_completion(eq.eqn, Cqn(cq.cqn)); });
        driver.arm(eq);
        driver.query(HGHCA_CMD_QUERY_QP, q, qp.qpn);
        driver.ring_sq(qp, uint16_t(round), HGHCA_OPCODE_SEND, 4);
        device.memory->read(Key(mr.key), TestDriver::kPd, 0, &word, 4);
        device.memory->read(Key(mr.key), TestDriver::kPd, 4000, &word, 4);
        hghca_cqe out;
        driver.poll(cq, out);
        take_events(driver, eq, 0);
        take_events(driver, driver.async, 0);
        host.vectors.clear();
        host.frames.clear();
        if (device.failed()) {
            failures++;
            driver.start();
            cq = driver.create_cq(4);
            qp = driver.create_qp(HGHCA_QP_ST_RC, cq, cq);
            mr = driver.create_mr(0, 4096);
            eq = driver.create_eq(4, 1);
        }
        if (round % 10 == 9) {  // fresh again
            driver.to_reset(qp.qpn);
            driver.command(HGHCA_CMD_HW2SW_CQ, 0, cq.cqn);
            driver.command(HGHCA_CMD_HW2SW_EQ, 0, eq.eqn);
            driver.destroy_mr(mr);
            driver.post(HGHCA_CMD_SW2HW_MPT, driver.mpt_mailbox(mr.key, 0, 4096, mr.first_mtt), driver.mpt_index(mr.key));
            driver.post(HGHCA_CMD_SW2HW_EQ, driver.eqc_mailbox(4, eq.buffer.key, 1), eq.eqn);
            driver.post(HGHCA_CMD_SW2HW_CQ, driver.cqc_mailbox(cq.cqn, 4, cq.buffer.key, eq.eqn), cq.cqn);
            driver.modify(HGHCA_CMD_RST2INIT_QPEE, qp.qpn, driver.init_qpc(qp, HGHCA_QP_ST_RC, cq, cq));
            TestDriver::Peer peer{8, {}, {}, 1, 2};
            driver.modify(HGHCA_CMD_INIT2RTR_QPEE, qp.qpn, driver.rtr_qpc(peer, 0));
            driver.modify(HGHCA_CMD_RTR2RTS_QPEE, qp.qpn, driver.rts_qpc(0));
            cq.consumer = eq.consumer = 0;
            for (unsigned i = 0; i < 16; i++) {
                host.as<hghca_cqe>(cq.buffer.dma)[i].owner = 0x80;
                host.as<hghca_eqe>(eq.buffer.dma)[i].owner = 0x80;
            }
        }
    }
    EXPECT_LT(failures, 300u);
}

TEST_F(ScribbleTest, MttsAndIcmPagesThatPointNowhere)
{
    auto mr = driver.create_mr(0, 8192);
    for (uint64_t entry : std::initializer_list<uint64_t>{1, ~0ull, 0x1001, host.end() | 1}) {
        *host.as<uint64_t>(driver.mtt_dma + mr.first_mtt * 8) = le64(entry);
        uint32_t word = 0;
        EXPECT_FALSE(device.memory->read(Key(mr.key), TestDriver::kPd, 0, &word, 4));
        EXPECT_FALSE(device.memory->write(Key(mr.key), TestDriver::kPd, 4092, &word, 4));
        EXPECT_TRUE(device.memory->read(Key(mr.key), TestDriver::kPd, 4096, &word, 4));
    }
    // ICM itself where there is no memory.
    ASSERT_EQ(driver.unmap_icm(HGHCA_ICM_CONTEXT, driver.layout.qpc, 128), 0);
    ASSERT_EQ(driver.map_chunk(HGHCA_ICM_CONTEXT, driver.layout.qpc, 0x1000, 128), 0);
    EXPECT_EQ(device.qps->find(Qpn(9)), nullptr);
    auto cq = driver.create_cq(4);
    auto qp = driver.new_qp();
    EXPECT_EQ(driver.modify(HGHCA_CMD_RST2INIT_QPEE, qp.qpn, driver.init_qpc(qp, HGHCA_QP_ST_UD, cq, cq)),
              HGHCA_CMD_STAT_INTERNAL_ERR);
    EXPECT_EQ(device.qps->find(Qpn(qp.qpn)), nullptr);
    EXPECT_EQ(device.counters().context_read_errors, 3u);
}

TEST_F(ScribbleTest, BusMasterOff)
{
    auto cq = driver.create_cq(4);
    auto qp = driver.create_qp(HGHCA_QP_ST_RC, cq, cq);
    auto mr = driver.create_mr(0, 4096);
    host.bus_master = false;
    device.dma_changed();
    hghca_cqe cqe{};
    uint32_t word = 0;
    EXPECT_FALSE(device.memory->read(Key(mr.key), TestDriver::kPd, 0, &word, 4));
    evict();
    EXPECT_NE(device.qps->find(Qpn(qp.qpn)), nullptr) << "it stays where it is";
    EXPECT_EQ(driver.to_error(qp.qpn), 0);
    EXPECT_EQ(device.qps->find(Qpn(qp.qpn))->state, QpState::Error);
    host.bus_master = true;
    device.dma_changed();
    EXPECT_EQ(driver.state(qp.qpn), unsigned(HGHCA_QP_STATE_ERR));
    host.bus_master = false;
    device.dma_changed();
    EXPECT_THROW((void)device.cqs->post(Cqn(cq.cqn), cqe, false), DeviceFailed)
        << "the event of its failure has no place either";
}

// ---- memory that takes no writes: a context is never lost

class RefusingIcm : public DeviceTest {
protected:
    RefusingIcm() : DeviceTest(1)
    {
        driver.start();
        cq = driver.create_cq(4);
    }
    void refuse(uint64_t dma, uint64_t bytes)
    {
        host.read_only = {{dma, bytes}};
        device.dma_changed();
    }
    void refuse_qps() { refuse(driver.qpc_dma, 2048ull << driver.layout.log_qps); }
    void accept()
    {
        host.read_only.clear();
        device.dma_changed();
    }
    uint64_t errors() const { return device.counters().context_write_errors; }
    // One entry after another, so that each kind is beyond its capacity of one.
    void use(unsigned entries)
    {
        for (unsigned i = 0; i < entries; i++)
            device.run();
    }

    TestDriver::Cq cq;
};

TEST_F(RefusingIcm, WhatIsNotTakenStays)
{
    std::vector<TestDriver::Qp> qps;
    for (unsigned i = 0; i < 5; i++)
        qps.push_back(driver.create_qp(HGHCA_QP_ST_UD, cq, cq));
    refuse_qps();
    for (auto &qp : qps)
        driver.to_rts(qp, 0x100);
    use(10);
    EXPECT_GT(errors(), 0u);
    for (auto &qp : qps)
        EXPECT_EQ(driver.state(qp.qpn), unsigned(HGHCA_QP_STATE_RTS));
    accept();
    use(1);
    // All of them are in ICM now, or can go there.
    device.qps->trim(0);
    const uint64_t before = errors();
    for (auto &qp : qps)
        EXPECT_EQ(driver.state(qp.qpn), unsigned(HGHCA_QP_STATE_RTS));
    EXPECT_EQ(errors(), before);
    EXPECT_GT(device.counters().context_misses, 4u);
}

TEST_F(RefusingIcm, AFailureIsTracedWithItsPlace)
{
    auto qp = driver.create_qp(HGHCA_QP_ST_UD, cq, cq);
    driver.to_rts(qp, 0x100);
    refuse_qps();
    host.trace_on = true;
    device.qps->trim(0);
    host.trace_on = false;
    ASSERT_FALSE(host.traces.empty());
    EXPECT_EQ(host.traces.back(), "context at 0x4000 of ICM space 1 not written: no memory there");
    EXPECT_EQ(qp.qpn, 8u);   // of 2048 bytes each
}

// However many cannot be written: an entry tries a few of them.
TEST_F(RefusingIcm, OneEntryTriesAFew)
{
    std::vector<TestDriver::Qp> qps;
    for (unsigned i = 0; i < 40; i++)
        qps.push_back(driver.create_qp(HGHCA_QP_ST_UD, cq, cq));
    refuse_qps();
    for (auto &qp : qps)
        driver.to_rts(qp, 0x100);
    const uint64_t before = errors();
    device.run();
    EXPECT_GT(errors(), before);
    EXPECT_LE(errors(), before + 16);
}

TEST_F(RefusingIcm, UnmapIsRefusedWhileAContextIsOnlyInTheDevice)
{
    auto qp = driver.create_qp(HGHCA_QP_ST_UD, cq, cq);
    auto mr = driver.create_mr(0, 4096);
    driver.to_rts(qp, 0x100);
    refuse_qps();
    driver.to_error(qp.qpn);
    EXPECT_EQ(driver.unmap_icm(HGHCA_ICM_CONTEXT, driver.layout.qpc, 128), HGHCA_CMD_STAT_INTERNAL_ERR);
    EXPECT_EQ(driver.state(qp.qpn), unsigned(HGHCA_QP_STATE_ERR));
    EXPECT_NE(device.memory->find(Key(mr.key)), nullptr);
    accept();
    EXPECT_EQ(driver.unmap_icm(HGHCA_ICM_CONTEXT, driver.layout.qpc, 128), 0);
    driver.map_chunk(HGHCA_ICM_CONTEXT, driver.layout.qpc, driver.qpc_dma, 128);
    EXPECT_EQ(driver.state(qp.qpn), unsigned(HGHCA_QP_STATE_ERR));

    refuse(driver.mpt_dma, 16 * 4096);
    auto second = driver.create_mr(0, 4096);
    EXPECT_EQ(driver.unmap_icm(HGHCA_ICM_TPT, driver.layout.mpt, 16), HGHCA_CMD_STAT_INTERNAL_ERR);
    EXPECT_NE(device.memory->find(Key(second.key)), nullptr);
    accept();
    EXPECT_EQ(driver.unmap_icm(HGHCA_ICM_TPT, driver.layout.mpt, 16), 0);
}

TEST_F(RefusingIcm, WhatIsDestroyedDoesNotComeBack)
{
    auto qp = driver.create_qp(HGHCA_QP_ST_UD, cq, cq);
    auto mr = driver.create_mr(0, 4096);
    driver.to_rts(qp, 0x100);
    device.qps->trim(0);
    device.memory->trim(0);
    host.read_only = {{driver.qpc_dma, 2048ull << driver.layout.log_qps}, {driver.mpt_dma, 16 * 4096}};
    device.dma_changed();
    EXPECT_EQ(driver.to_reset(qp.qpn), 0);
    EXPECT_EQ(driver.destroy_mr(mr), 0);
    for (unsigned i = 0; i < 5; i++) {
        use(3);
        device.qps->trim(0);
        device.memory->trim(0);
        EXPECT_EQ(driver.state(qp.qpn), 0u);
        EXPECT_EQ(device.qps->find(Qpn(qp.qpn)), nullptr);
        EXPECT_EQ(device.memory->find(Key(mr.key)), nullptr);
    }
    EXPECT_GT(errors(), 0u);
    // The number can be used again, even now.
    ASSERT_EQ(driver.modify(HGHCA_CMD_RST2INIT_QPEE, qp.qpn, driver.init_qpc(qp, HGHCA_QP_ST_UD, cq, cq)), 0);
    EXPECT_EQ(driver.state(qp.qpn), unsigned(HGHCA_QP_STATE_INIT));
    EXPECT_EQ(driver.to_reset(qp.qpn), 0);
    accept();
    use(2);
    device.qps->trim(0);
    device.memory->trim(0);
    EXPECT_EQ(device.qps->find(Qpn(qp.qpn)), nullptr);
    EXPECT_EQ(device.memory->find(Key(mr.key)), nullptr);
    EXPECT_EQ(*host.as<uint32_t>(driver.qpc_dma + qp.qpn * 2048ull), 0u);
}

// ---- memory that cannot be read: whether there is a context is not known

class UnreadableIcm : public DeviceTest {
protected:
    UnreadableIcm() : DeviceTest(1)
    {
        driver.start();
        eq = driver.create_eq(4, 1);
        cq = driver.create_cq(4);
        qp = driver.create_qp(HGHCA_QP_ST_UD, cq, cq);
        srq = driver.create_srq();
        mr = driver.create_mr(0, 4096);
        group.gid[0] = 0xff;
        group.qp[0] = be32(HGHCA_MGM_QP_VALID | qp.qpn);
        TestDriver::must(driver.post(HGHCA_CMD_WRITE_MGM, group, kGroup), "WRITE_MGM");
        driver.to_rts(qp, 0x100);
        while (device.has_work())
            device.run();
        evict();
    }
    void evict()
    {
        device.qps->trim(0);
        device.cqs->trim(0);
        device.eqs->trim(0);
        device.srqs->trim(0);
        device.groups->trim(0);
        device.memory->trim(0);
    }
    // From here on nobody gives any table of contexts.
    void take_away()
    {
        const TestDriver::Layout &l = driver.layout;
        host.holes = {{driver.qpc_dma, 2048ull << l.log_qps}, {driver.cqc_dma, 128ull << l.log_cqs},
                      {driver.eqc_dma, 64ull << l.log_eqs},   {driver.srqc_dma, 128ull << l.log_srqs},
                      {driver.mcg_dma, 256ull << l.log_mcgs}, {driver.mpt_dma, 64ull << l.log_mpts}};
        device.dma_changed();
    }
    void bring_back()
    {
        host.holes.clear();
        device.dma_changed();
    }
    uint64_t errors() const { return device.counters().context_read_errors; }

    static constexpr uint32_t kGroup = 1;
    TestDriver::Eq eq;
    TestDriver::Cq cq;
    TestDriver::Qp qp;
    TestDriver::Srq srq;
    TestDriver::Mr mr;
    hghca_mgm group{};
};

TEST_F(UnreadableIcm, CommandsEndWithInternalErr)
{
    const uint64_t in = driver.in_mailbox();
    const uint32_t mpt = driver.mpt_index(mr.key);
    const struct {
        uint32_t op;
        uint64_t in;
        uint32_t index;
        uint32_t op_modifier;
    } commands[] = {
        {HGHCA_CMD_SW2HW_MPT, in, mpt, 0},
        {HGHCA_CMD_HW2SW_MPT, 0, mpt, 0},
        {HGHCA_CMD_QUERY_MPT, 0, mpt, 0},
        {HGHCA_CMD_SW2HW_EQ, in, eq.eqn, 0},
        {HGHCA_CMD_HW2SW_EQ, 0, eq.eqn, 0},
        {HGHCA_CMD_QUERY_EQ, 0, eq.eqn, 0},
        {HGHCA_CMD_MAP_EQ, 0, eq.eqn, 0},
        {HGHCA_CMD_SW2HW_CQ, in, cq.cqn, 0},
        {HGHCA_CMD_HW2SW_CQ, 0, cq.cqn, 0},
        {HGHCA_CMD_QUERY_CQ, 0, cq.cqn, 0},
        {HGHCA_CMD_RESIZE_CQ, in, cq.cqn, 0},
        {HGHCA_CMD_MODERATE_CQ, 0, cq.cqn, 0},
        {HGHCA_CMD_RST2INIT_QPEE, in, qp.qpn, 0},
        {HGHCA_CMD_RTR2RTS_QPEE, in, qp.qpn, 0},
        {HGHCA_CMD_2ERR_QPEE, 0, qp.qpn, HGHCA_QP_OPMOD_NO_INBOX},
        {HGHCA_CMD_ERR2RST_QPEE, 0, qp.qpn, HGHCA_QP_OPMOD_NO_INBOX},
        {HGHCA_CMD_QUERY_QP, 0, qp.qpn, 0},
        {HGHCA_CMD_RESUME_QP, 0, qp.qpn, 0},
        {HGHCA_CMD_CONF_SPECIAL_QP, 0, qp.qpn, HGHCA_SPECIAL_QP_GSI},
        {HGHCA_CMD_SET_QP_COUNTER, 1, qp.qpn, 0},
        {HGHCA_CMD_SW2HW_SRQ, in, srq.srqn, 0},
        {HGHCA_CMD_HW2SW_SRQ, 0, srq.srqn, 0},
        {HGHCA_CMD_QUERY_SRQ, 0, srq.srqn, 0},
        {HGHCA_CMD_ARM_SRQ, 1, srq.srqn, 0},
        {HGHCA_CMD_RESIZE_SRQ, in, srq.srqn, 0},
        {HGHCA_CMD_READ_MGM, 0, kGroup, 0},
        {HGHCA_CMD_WRITE_MGM, in, kGroup, 0},
    };
    take_away();
    uint64_t expected = 0;
    for (const auto &c : commands) {
        EXPECT_EQ(driver.command(c.op, c.in, c.index, c.op_modifier, driver.out_mailbox()).status,
                  HGHCA_CMD_STAT_INTERNAL_ERR) << std::hex << c.op;
        EXPECT_EQ(errors(), ++expected) << std::hex << c.op;
    }
    EXPECT_FALSE(device.failed());

    // Nothing has changed meanwhile.
    bring_back();
    EXPECT_EQ(driver.state(qp.qpn), unsigned(HGHCA_QP_STATE_RTS));
    hghca_mgm read;
    EXPECT_EQ(driver.query(HGHCA_CMD_READ_MGM, read, kGroup), 0);
    EXPECT_EQ(std::memcmp(&read, &group, sizeof(group)), 0);
    EXPECT_EQ(driver.to_reset(qp.qpn), 0);
    EXPECT_EQ(driver.command(HGHCA_CMD_HW2SW_SRQ, 0, srq.srqn).status, 0);
    EXPECT_EQ(driver.command(HGHCA_CMD_HW2SW_CQ, 0, cq.cqn).status, 0);
    EXPECT_EQ(driver.command(HGHCA_CMD_HW2SW_EQ, 0, eq.eqn).status, 0);
    EXPECT_EQ(driver.destroy_mr(mr), 0);
    evict();
    EXPECT_EQ(device.qps->find(Qpn(qp.qpn)), nullptr);
    EXPECT_EQ(errors(), expected);
}

TEST_F(UnreadableIcm, TrafficFindsNothingAndThatIsCounted)
{
    hghca_cqe cqe{};
    uint32_t word;
    take_away();
    driver.ring_sq(qp, 0, HGHCA_OPCODE_SEND, 4);
    EXPECT_EQ(device.counters().db_bad_object, 1u);
    EXPECT_EQ(errors(), 1u);
    EXPECT_EQ(device.cqs->post(Cqn(cq.cqn), cqe, false), Completed::CqFailed);
    EXPECT_EQ(errors(), 2u);
    EXPECT_FALSE(device.srqs->is_basic(Srqn(srq.srqn)));
    EXPECT_EQ(errors(), 3u);
    EXPECT_FALSE(device.memory->read(Key(mr.key), TestDriver::kPd, 0, &word, 4));
    EXPECT_GT(errors(), 3u);
    bring_back();
    // Its MTT alone.
    const uint64_t before = errors();
    host.holes = {{driver.mtt_dma + mr.first_mtt * 8, 8}};
    device.dma_changed();
    EXPECT_FALSE(device.memory->read(Key(mr.key), TestDriver::kPd, 0, &word, 4));
    EXPECT_EQ(errors(), before + 1);
    bring_back();
    EXPECT_TRUE(device.memory->read(Key(mr.key), TestDriver::kPd, 0, &word, 4));
    EXPECT_EQ(device.cqs->post(Cqn(cq.cqn), cqe, false), Completed::Yes);
}

// What is not mapped is absent, and no error.
TEST_F(UnreadableIcm, UnmappedIsAnotherMatter)
{
    uint32_t word;
    ASSERT_EQ(driver.unmap_icm(HGHCA_ICM_CONTEXT, driver.layout.qpc, 128), 0);
    ASSERT_EQ(driver.unmap_icm(HGHCA_ICM_TPT, driver.layout.mtt, 1), 0);
    EXPECT_EQ(driver.to_reset(qp.qpn), HGHCA_CMD_STAT_LAM_NOT_PRE);
    EXPECT_EQ(device.qps->find(Qpn(qp.qpn)), nullptr);
    EXPECT_FALSE(device.memory->read(Key(mr.key), TestDriver::kPd, 0, &word, 4));
    EXPECT_EQ(errors(), 0u);
}

TEST_F(UnreadableIcm, AFailureIsTracedWithItsPlace)
{
    take_away();
    host.trace_on = true;
    EXPECT_EQ(device.qps->find(Qpn(8)), nullptr);
    ASSERT_FALSE(host.traces.empty());
    EXPECT_EQ(host.traces.back(), "context at 0x4000 of ICM space 1 not read: no memory there");
    bring_back();
    host.holes = {{driver.mtt_dma + mr.first_mtt * 8, 8}};
    device.dma_changed();
    uint32_t word;
    EXPECT_FALSE(device.memory->read(Key(mr.key), TestDriver::kPd, 0, &word, 4));
    char text[80];
    std::snprintf(text, sizeof(text), "MTT at 0x%x of ICM space 2 not read: no memory there",
                  unsigned(driver.layout.mtt + mr.first_mtt * 8));
    EXPECT_EQ(host.traces.back(), text);
    host.trace_on = false;
}

// A region counts its windows: one that cannot be told keeps its window.
TEST_F(UnreadableIcm, AWindowGoesWithItsRegionAlone)
{
    const TestDriver::Mr region = driver.create_mr(0, 4096, TestDriver::kRw | HGHCA_ACCESS_MW_BIND);
    const uint32_t window = driver.create_window(false);
    ASSERT_EQ(device.memory->bind_window(KeyUser(TestDriver::kPd),
                                         {HGHCA_ACCESS_REMOTE_READ, Key(window), Key(region.key), region.va, 64}),
              Allowed::Yes);
    evict();
    host.holes = {{driver.mpt_dma + driver.mpt_index(region.key) * 64ull, 64}};
    device.dma_changed();
    EXPECT_EQ(driver.destroy_key(window), HGHCA_CMD_STAT_INTERNAL_ERR);
    bring_back();
    EXPECT_EQ(driver.destroy_mr(region), HGHCA_CMD_STAT_REG_BOUND);
    EXPECT_EQ(driver.destroy_key(window), 0);
    EXPECT_EQ(driver.destroy_mr(region), 0);
}

}  // namespace
}  // namespace hghca::test::context_cache_test
