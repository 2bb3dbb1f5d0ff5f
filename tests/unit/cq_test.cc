// SPDX-License-Identifier: GPL-2.0-or-later
// Completion queues (interface document, 4.8, 5.3, 7).
#include <functional>
#include <vector>

#include "fixture.h"

namespace hghca::test::cq_test {
namespace {

class CqTest : public DeviceTest {
protected:
    CqTest()
    {
        driver.start();
        eq = driver.create_eq(6, 1);
    }

    bool post(const TestDriver::Cq &cq, uint32_t qpn, bool solicited = false)
    {
        hghca_cqe cqe{};
        cqe.my_qpn = le32(qpn);
        cqe.byte_cnt = le32(~qpn);
        cqe.owner = 0x55;  // must not matter
        return device.cqs->post(Cqn(cq.cqn), cqe, solicited) == Completed::Yes;
    }
    // The QPN of the next CQE; ~0: none.
    uint32_t next(TestDriver::Cq &cq)
    {
        hghca_cqe cqe;
        if (!driver.poll(cq, cqe))
            return ~0u;
        EXPECT_EQ(le32(cqe.byte_cnt), ~le32(cqe.my_qpn));
        return le32(cqe.my_qpn);
    }
    unsigned events() { return take_events(driver, eq, HGHCA_EVENT_COMP); }
    uint8_t sw2hw(uint32_t cqn, const hghca_cqc &cqc) { return driver.post(HGHCA_CMD_SW2HW_CQ, cqc, cqn); }
    uint8_t hw2sw(uint32_t cqn) { return driver.command(HGHCA_CMD_HW2SW_CQ, 0, cqn).status; }
    uint8_t resize(uint32_t cqn, unsigned log, uint32_t key)
    {
        hghca_resize_cq r{};
        r.logsize = be32(log << 24);
        r.lkey = be32(key);
        return driver.post(HGHCA_CMD_RESIZE_CQ, r, cqn);
    }
    // What a driver does around RESIZE_CQ.
    void resize(TestDriver::Cq &cq, unsigned log)
    {
        auto buffer = driver.cq_buffer(log);
        ASSERT_EQ(resize(cq.cqn, log, buffer.key), 0);
        auto *old = host.as<hghca_cqe>(cq.buffer.dma);
        auto *now = host.as<hghca_cqe>(buffer.dma);
        for (uint32_t i = cq.consumer; old[i & ((1u << cq.log) - 1)].owner == 0; i++) {
            now[i & ((1u << log) - 1)] = old[i & ((1u << cq.log) - 1)];
            old[i & ((1u << cq.log) - 1)].owner = 0x80;
        }
        cq.buffer = buffer;
        cq.log = log;
    }

    TestDriver::Eq eq;
};

TEST_F(CqTest, Commands)
{
    auto buffer = driver.cq_buffer(4);
    auto read_only = driver.create_mr(0, 32 << 4, 0);
    auto based = driver.create_mr(64, 32 << 4, HGHCA_ACCESS_LOCAL_WRITE);
    auto foreign = driver.create_mr(0, 32 << 4, HGHCA_ACCESS_LOCAL_WRITE, 2);
    auto taken = driver.create_cq(4);
    uint64_t dbr = host.alloc(64);
    struct {
        const char *what;
        uint32_t cqn;
        std::function<void(hghca_cqc &)> change;
        uint8_t status;
    } cases[] = {
        {"good", 9, [](hghca_cqc &) {}, 0},
        {"no doorbell record", 9, [](hghca_cqc &c) { c.dbr_addr = 0; }, 0},
        {"doorbell record not valid", 9, [](hghca_cqc &c) { c.dbr_addr = be64(0x1234); }, 0},
        {"doorbell record not aligned", 9, [&](hghca_cqc &c) { c.dbr_addr = be64((dbr + 4) | 1); },
         HGHCA_CMD_STAT_BAD_PARAM},
        {"last", 255, [](hghca_cqc &c) { c.cqn = be32(255); }, 0},
        {"beyond", 256, [](hghca_cqc &c) { c.cqn = be32(256); }, HGHCA_CMD_STAT_BAD_INDEX},
        {"far beyond", ~0u, [](hghca_cqc &c) { c.cqn = be32(~0u); }, HGHCA_CMD_STAT_BAD_INDEX},
        {"reserved", 0, [](hghca_cqc &c) { c.cqn = 0; }, HGHCA_CMD_STAT_BAD_INDEX},
        {"another number", 9, [](hghca_cqc &c) { c.cqn = be32(10); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"smallest", 9, [](hghca_cqc &c) { c.logsize_usrpage = be32(1 << 24 | 3); }, 0},
        {"one entry", 9, [](hghca_cqc &c) { c.logsize_usrpage = be32(3); }, HGHCA_CMD_STAT_BAD_SIZE},
        {"too large", 9, [](hghca_cqc &c) { c.logsize_usrpage = be32(23 << 24 | 3); }, HGHCA_CMD_STAT_BAD_SIZE},
        {"log 255", 9, [](hghca_cqc &c) { c.logsize_usrpage = be32(255u << 24); }, HGHCA_CMD_STAT_BAD_SIZE},
        {"larger than the MR", 9, [](hghca_cqc &c) { c.logsize_usrpage = be32(5 << 24); },
         HGHCA_CMD_STAT_BAD_PARAM},
        {"last UAR page", 9, [](hghca_cqc &c) { c.logsize_usrpage = be32(4 << 24 | 2047); }, 0},
        {"a page frame number", 9, [](hghca_cqc &c) { c.logsize_usrpage = be32(4 << 24 | 0xbf0803); }, 0},
        {"last EQ", 9, [](hghca_cqc &c) { c.comp_eqn = be32(15); }, 0},
        {"no such EQ", 9, [](hghca_cqc &c) { c.comp_eqn = be32(16); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"no key", 9, [](hghca_cqc &c) { c.lkey = be32(0x12345678); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"read only", 9, [&](hghca_cqc &c) { c.lkey = be32(read_only.key); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"not zero-based", 9, [&](hghca_cqc &c) { c.lkey = be32(based.key); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"at its address", 9, [&](hghca_cqc &c) { c.lkey = be32(based.key), c.start = be64(64); }, 0},
        {"an entry behind it", 9, [&](hghca_cqc &c) { c.lkey = be32(based.key), c.start = be64(96); },
         HGHCA_CMD_STAT_BAD_PARAM},
        {"between entries", 9,
         [&](hghca_cqc &c) { c.lkey = be32(based.key), c.start = be64(80), c.logsize_usrpage = be32(3 << 24); },
         HGHCA_CMD_STAT_BAD_PARAM},
        {"at the last address", 9, [&](hghca_cqc &c) { c.start = be64(~31ull); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"PD of another", 9, [&](hghca_cqc &c) { c.lkey = be32(foreign.key); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"other PD", 9, [&](hghca_cqc &c) { c.pd = be32(2); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"in use", taken.cqn, [&](hghca_cqc &c) { c.cqn = be32(taken.cqn); }, HGHCA_CMD_STAT_BAD_RES_STATE},
    };
    for (auto &c : cases) {
        hghca_cqc cqc = driver.cqc_mailbox(9, 4, buffer.key, eq.eqn, dbr);
        c.change(cqc);
        EXPECT_EQ(sw2hw(c.cqn, cqc), c.status) << c.what;
        if (!c.status) {
            EXPECT_TRUE(device.cqs->exists(Cqn(c.cqn)));
            EXPECT_EQ(sw2hw(c.cqn, cqc), HGHCA_CMD_STAT_BAD_RES_STATE);
            EXPECT_EQ(hw2sw(c.cqn), 0) << c.what;
            EXPECT_FALSE(device.cqs->exists(Cqn(c.cqn)));
        }
    }
    EXPECT_TRUE(device.cqs->exists(Cqn(taken.cqn)));
    EXPECT_EQ(hw2sw(9), HGHCA_CMD_STAT_BAD_RES_STATE);
    EXPECT_EQ(hw2sw(256), HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(hw2sw(0), HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(resize(9, 4, buffer.key), HGHCA_CMD_STAT_BAD_RES_STATE);
    EXPECT_EQ(resize(256, 4, buffer.key), HGHCA_CMD_STAT_BAD_INDEX);
    ASSERT_EQ(driver.unmap_icm(HGHCA_ICM_CONTEXT, driver.layout.cqc, 1), 0);
    EXPECT_EQ(sw2hw(9, driver.cqc_mailbox(9, 4, buffer.key, eq.eqn)), HGHCA_CMD_STAT_LAM_NOT_PRE);
    EXPECT_EQ(hw2sw(9), HGHCA_CMD_STAT_LAM_NOT_PRE);
    EXPECT_EQ(resize(9, 4, buffer.key), HGHCA_CMD_STAT_LAM_NOT_PRE);
}

TEST_F(CqTest, BaseModeLooksAtNoExtension)
{
    driver.init(0);
    auto buffer = driver.cq_buffer(4);
    hghca_cqc cqc = driver.cqc_mailbox(9, 4, buffer.key, 0, 0);
    cqc.dbr_addr = be64(0x1234567 | 1);
    cqc.logsize_usrpage |= be32(0xffffff);
    cqc.flags = be32(HGHCA_CQ_STATE_ARMED);
    EXPECT_EQ(sw2hw(9, cqc), 0);
    hghca_cqe cqe{};
    EXPECT_EQ(device.cqs->post(Cqn(9), cqe, true), Completed::Yes);
}

// The document does not use the PD of a CQ.
TEST_F(CqTest, BaseModeTakesThePdOfTheRegion)
{
    driver.init(0);
    const auto foreign = driver.create_mr(0, 32 << 5, HGHCA_ACCESS_LOCAL_WRITE, 77);
    std::memset(host.at(foreign.dma), HGHCA_CQ_ENTRY_OWNER_HW, 32 << 5);
    EXPECT_EQ(sw2hw(9, driver.cqc_mailbox(9, 4, foreign.key, 0, 0, 0)), 0);
    EXPECT_EQ(device.cqs->post(Cqn(9), hghca_cqe{}, false), Completed::Yes);
    EXPECT_EQ(host.at(foreign.dma)[31], 0);
    const auto other = driver.create_mr(0, 32 << 4, HGHCA_ACCESS_LOCAL_WRITE, 78);
    EXPECT_EQ(resize(9, 4, other.key), 0);
}

// It begins neither with its region nor with a page, and ends in another page.
TEST_F(CqTest, TheBufferIsAtItsAddress)
{
    constexpr uint64_t kRegion = 0x7f1234567040, kStart = 0x7f1234567fc0;
    const auto mr = driver.create_mr(kRegion, 8192, HGHCA_ACCESS_LOCAL_WRITE);
    TestDriver::Mr buffer = mr;
    buffer.dma += kStart - kRegion;
    std::memset(host.at(mr.dma), 0x80, 8192);
    hghca_cqc cqc = driver.cqc_mailbox(9, 7, mr.key, eq.eqn, host.alloc(64, 64));
    cqc.start = be64(kStart);
    ASSERT_EQ(sw2hw(9, cqc), 0);
    hghca_cqc shown;
    ASSERT_EQ(driver.query(HGHCA_CMD_QUERY_CQ, shown, 9), 0);
    EXPECT_EQ(be64(shown.start), kStart);
    TestDriver::Cq cq{9, 7, buffer, be64(cqc.dbr_addr) & ~1ull};
    for (bool copy : {false, true}) {
        host.copy_only = copy;
        device.dma_changed();
        for (uint32_t i = 0; i < 300; i++) {
            ASSERT_TRUE(post(cq, i));
            ASSERT_EQ(next(cq), i);
        }
    }
    for (uint64_t at : {kStart - kRegion - 1, kStart - kRegion + 128 * 32})
        EXPECT_EQ(host.at(mr.dma)[at], 0x80) << at;
    // RESIZE_CQ has no address: a buffer begins where its region does.
    const auto larger = driver.create_mr(0x5000, 32 << 8, HGHCA_ACCESS_LOCAL_WRITE);
    std::memset(host.at(larger.dma), 0x80, 32 << 8);
    ASSERT_EQ(resize(9, 8, larger.key), 0);
    cq.buffer = larger;
    cq.log = 8;
    ASSERT_TRUE(post(cq, 7));
    EXPECT_EQ(next(cq), 7u);
}

TEST_F(CqTest, CqesInOrderAroundTheRing)
{
    for (bool copy : {false, true}) {
        host.copy_only = copy;
        device.dma_changed();
        auto cq = driver.create_cq(3);
        for (uint32_t i = 0; i < 100; i++) {
            ASSERT_TRUE(post(cq, 2 * i));
            ASSERT_TRUE(post(cq, 2 * i + 1));
            ASSERT_EQ(next(cq), 2 * i);
            ASSERT_EQ(next(cq), 2 * i + 1);
            ASSERT_EQ(next(cq), ~0u);
        }
    }
}

TEST_F(CqTest, NoSuchCq)
{
    hghca_cqe cqe{};
    for (uint32_t cqn : {0u, 77u, 256u, ~0u}) {
        EXPECT_EQ(device.cqs->post(Cqn(cqn), cqe, false), Completed::CqFailed);
        EXPECT_FALSE(device.cqs->exists(Cqn(cqn)));
    }
}

TEST_F(CqTest, PostingCostsNoWalk)
{
    auto cq = driver.create_cq(6);
    ASSERT_TRUE(post(cq, 0));
    uint64_t lookups = device.counters().context_hits, maps = host.maps;
    for (uint32_t i = 1; i < 64; i++)
        ASSERT_TRUE(post(cq, i));
    EXPECT_EQ(device.counters().context_hits - lookups, 63u);  // the CQ alone, no MPT
    EXPECT_EQ(host.maps, maps);
}

TEST_F(CqTest, Overrun)
{
    for (bool copy : {false, true}) {
        host.copy_only = copy;
        device.dma_changed();
        auto cq = driver.create_cq(2);
        uint64_t lost = device.counters().cq_overrun;
        for (uint32_t i = 0; i < 4; i++)
            ASSERT_TRUE(post(cq, i));
        EXPECT_FALSE(post(cq, 4));
        EXPECT_EQ(device.counters().cq_overrun, lost + 1);
        hghca_eqe eqe;
        ASSERT_TRUE(driver.poll(driver.async, eqe));
        EXPECT_EQ(eqe.type, HGHCA_EVENT_CQ_ERROR);
        EXPECT_EQ(be32(eqe.event.cq_err.cqn), cq.cqn);
        EXPECT_EQ(eqe.event.cq_err.syndrome, HGHCA_CQ_ERROR_OVERRUN);
        // What was there stays; nothing follows, and nothing more is told.
        for (uint32_t i = 0; i < 4; i++)
            EXPECT_EQ(next(cq), i);
        EXPECT_FALSE(post(cq, 5));
        EXPECT_EQ(next(cq), ~0u);
        EXPECT_FALSE(driver.poll(driver.async, eqe));
        EXPECT_TRUE(device.cqs->exists(Cqn(cq.cqn)));
        EXPECT_EQ(hw2sw(cq.cqn), 0);
    }
}

TEST_F(CqTest, AnOwnerThatIsNeither)
{
    auto cq = driver.create_cq(2);
    host.as<hghca_cqe>(cq.buffer.dma)->owner = 0x81;
    EXPECT_FALSE(post(cq, 1));
    EXPECT_EQ(host.as<hghca_cqe>(cq.buffer.dma)->owner, 0x81);
}

TEST_F(CqTest, ABufferThatGoesAwayIsAnAccessError)
{
    auto cq = driver.create_cq(4);
    ASSERT_TRUE(post(cq, 1));
    ASSERT_EQ(driver.destroy_mr(cq.buffer), 0);
    EXPECT_FALSE(post(cq, 2));
    hghca_eqe eqe;
    ASSERT_TRUE(driver.poll(driver.async, eqe));
    EXPECT_EQ(eqe.type, HGHCA_EVENT_CQ_ERROR);
    EXPECT_EQ(eqe.event.cq_err.syndrome, HGHCA_CQ_ERROR_ACCESS);
    EXPECT_EQ(host.as<hghca_cqe>(cq.buffer.dma)[1].owner, 0x80);
}

TEST_F(CqTest, TheCachedPageFollowsTheMtts)
{
    auto cq = driver.create_cq(4);
    ASSERT_TRUE(post(cq, 1));
    uint64_t other = host.alloc(4096);
    for (unsigned i = 0; i < 16; i++)
        host.as<hghca_cqe>(other)[i].owner = 0x80;
    ASSERT_EQ(driver.write_mtt(cq.buffer.first_mtt, &other, 1), 0);
    ASSERT_TRUE(post(cq, 2));
    EXPECT_EQ(host.as<hghca_cqe>(cq.buffer.dma)[1].owner, 0x80);
    EXPECT_EQ(host.as<hghca_cqe>(other)[1].owner, 0);
    // Memory that is no longer plain RAM is written by copy.
    host.copy_only = true;
    device.dma_changed();
    uint64_t writes = host.writes;
    ASSERT_TRUE(post(cq, 3));
    EXPECT_EQ(host.writes, writes + 2);  // the body, then the owner
    EXPECT_EQ(host.as<hghca_cqe>(other)[2].owner, 0);
    // ICM of its MTT gone.
    ASSERT_EQ(driver.unmap_icm(HGHCA_ICM_TPT, driver.layout.mtt, 1), 0);
    EXPECT_FALSE(post(cq, 4));
}

TEST_F(CqTest, DirtyIsToldForWritesThroughPointers)
{
    auto cq = driver.create_cq(4);
    host.record_dirty = true;
    ASSERT_TRUE(post(cq, 1));
    ASSERT_EQ(host.dirtied.size(), 1u);
    EXPECT_EQ(host.dirtied[0].dma, cq.buffer.dma);
    EXPECT_EQ(host.dirtied[0].length, 32u);
}

// ---- 5.3 arming

TEST_F(CqTest, NotArmedNoEvent)
{
    auto cq = driver.create_cq(4, eq.eqn);
    post(cq, 1, true);
    EXPECT_EQ(events(), 0u);
}

// usrpage is taken modulo 2048, so a page frame number names the page that rings the CQ, and no other page does.
TEST_F(CqTest, ThePageOfAPageFrameNumber)
{
    TestDriver::Cq cq{9, 4, driver.cq_buffer(4), host.alloc(64, 64)};
    hghca_cqc cqc = driver.cqc_mailbox(9, 4, cq.buffer.key, eq.eqn, cq.dbr);
    cqc.logsize_usrpage = be32(4 << 24 | 0xbf0fab);
    ASSERT_EQ(sw2hw(9, cqc), 0);
    hghca_cqc shown;
    ASSERT_EQ(driver.query(HGHCA_CMD_QUERY_CQ, shown, 9), 0);
    EXPECT_EQ(be32(shown.logsize_usrpage), uint32_t(4 << 24 | 0x7ab));
    for (uint32_t page : {0u, 3u, 0x3abu, 0x7aau, 0x7acu, 0x7ffu})
        driver.arm(cq, HGHCA_CQ_ARM_NEXT, page);
    EXPECT_EQ(device.counters().db_bad_page, 6u);
    post(cq, 1);
    EXPECT_EQ(events(), 0u);
    EXPECT_EQ(next(cq), 1u);
    driver.arm(cq, HGHCA_CQ_ARM_NEXT, 0x7ab);
    EXPECT_EQ(device.counters().db_bad_page, 6u);
    post(cq, 2);
    EXPECT_EQ(events(), 1u);
}

TEST_F(CqTest, ArmedNext)
{
    auto cq = driver.create_cq(4, eq.eqn);
    driver.arm(cq);
    EXPECT_EQ(events(), 0u);
    post(cq, 1);
    EXPECT_EQ(events(), 1u);
    post(cq, 2);
    EXPECT_EQ(events(), 0u);  // one event for each arming
    next(cq);
    driver.arm(cq);           // CQE 2 is there
    EXPECT_EQ(events(), 1u);
    post(cq, 3);
    EXPECT_EQ(events(), 0u);
    next(cq);
    next(cq);
    driver.arm(cq);
    EXPECT_EQ(events(), 0u);
    post(cq, 4, true);
    EXPECT_EQ(events(), 1u);
}

TEST_F(CqTest, ArmedSolicited)
{
    auto cq = driver.create_cq(4, eq.eqn);
    driver.arm(cq, HGHCA_CQ_ARM_SOLICITED);
    post(cq, 1);
    EXPECT_EQ(events(), 0u);
    post(cq, 2, true);
    EXPECT_EQ(events(), 1u);
    post(cq, 3, true);
    EXPECT_EQ(events(), 0u);
    // Software has seen 1 and 2: 3 is solicited and unseen.
    next(cq);
    next(cq);
    driver.arm(cq, HGHCA_CQ_ARM_SOLICITED);
    EXPECT_EQ(events(), 1u);
    // It has seen 3; the unsolicited 4 does not count.
    next(cq);
    post(cq, 4);
    driver.arm(cq, HGHCA_CQ_ARM_SOLICITED);
    EXPECT_EQ(events(), 0u);
    post(cq, 5, true);
    EXPECT_EQ(events(), 1u);
}

TEST_F(CqTest, ArmingWider)
{
    auto cq = driver.create_cq(4, eq.eqn);
    driver.arm(cq, HGHCA_CQ_ARM_SOLICITED);
    driver.arm(cq, HGHCA_CQ_ARM_NEXT);
    post(cq, 1);
    EXPECT_EQ(events(), 1u);
    next(cq);
    driver.arm(cq, HGHCA_CQ_ARM_NEXT);
    driver.arm(cq, HGHCA_CQ_ARM_SOLICITED);
    post(cq, 2);
    EXPECT_EQ(events(), 1u);
}

TEST_F(CqTest, ArmedFromTheStart)
{
    auto buffer = driver.cq_buffer(4);
    hghca_cqc cqc = driver.cqc_mailbox(9, 4, buffer.key, eq.eqn);
    cqc.flags = be32(HGHCA_CQ_STATE_ARMED);
    ASSERT_EQ(sw2hw(9, cqc), 0);
    hghca_cqe cqe{};
    EXPECT_EQ(device.cqs->post(Cqn(9), cqe, false), Completed::Yes);
    EXPECT_EQ(events(), 1u);
}

TEST_F(CqTest, ArmDoorbellsThatDoNotCount)
{
    auto cq = driver.create_cq(4, eq.eqn);
    post(cq, 1);
    uint64_t bad = device.counters().db_bad_page;
    for (uint32_t page : {0u, 2u, 4u, 2047u})
        driver.arm(cq, HGHCA_CQ_ARM_NEXT, page);
    EXPECT_EQ(device.counters().db_bad_page, bad + 4);
    uint64_t none = device.counters().db_bad_object;
    for (uint32_t cqn : {0u, 99u, 256u, 0xffffffu})
        device.uar_write(TestDriver::kUarPage * 4096 + HGHCA_UAR_CQ_ARM,
                         uint64_t(HGHCA_CQ_ARM_NEXT << 24 | cqn) << 32, 8);
    EXPECT_EQ(device.counters().db_bad_object, none + 4);
    for (uint32_t command : {0u, 3u, 0xffu})
        driver.arm(cq, command);
    EXPECT_EQ(events(), 0u);
    driver.arm(cq);
    EXPECT_EQ(events(), 1u);
}

TEST_F(CqTest, AWildConsumerIndexArmsOrFiresAndNoMore)
{
    auto cq = driver.create_cq(2, eq.eqn);
    for (uint32_t wild : {1000u, 0x7fffffffu, 0x80000001u, ~0u}) {
        cq.consumer = wild;
        driver.arm(cq);
    }
    EXPECT_LE(events(), 4u);
}

TEST_F(CqTest, EventsOfAFullEqWait)
{
    auto small = driver.create_eq(1, 5);
    std::vector<TestDriver::Cq> cqs;
    for (int i = 0; i < 5; i++) {
        cqs.push_back(driver.create_cq(4, small.eqn));
        driver.arm(cqs.back());
        post(cqs.back(), 1);
    }
    // One CQ that waits goes away: its event with it.
    ASSERT_EQ(hw2sw(cqs[3].cqn), 0);
    std::vector<uint32_t> seen;
    hghca_eqe eqe;
    for (int i = 0; i < 4; i++) {
        while (driver.poll(small, eqe))
            seen.push_back(be32(eqe.event.comp.cqn));
        driver.arm(small);
    }
    EXPECT_EQ(seen, (std::vector<uint32_t>{cqs[0].cqn, cqs[1].cqn, cqs[2].cqn, cqs[4].cqn}));
}

// ---- RESIZE_CQ

TEST_F(CqTest, ResizeKeepsAllInOrder)
{
    for (bool dbr : {true, false}) {
        auto cq = driver.create_cq(3);
        if (!dbr) {
            hw2sw(cq.cqn);
            ASSERT_EQ(sw2hw(cq.cqn, driver.cqc_mailbox(cq.cqn, 3, cq.buffer.key, 1)), 0);
        }
        uint32_t in = 0, out = 0;
        for (unsigned log : {3u, 5u, 4u, 3u, 8u, 3u}) {
            for (int i = 0; i < 6; i++) {
                ASSERT_TRUE(post(cq, in++));
                if (i % 3 == 0) {
                    ASSERT_EQ(next(cq), out++);
                }
            }
            resize(cq, log);
            ASSERT_TRUE(post(cq, in++));
            ASSERT_TRUE(post(cq, in++));
            while (out < in)
                ASSERT_EQ(next(cq), out++);
            ASSERT_EQ(next(cq), ~0u);
        }
    }
}

TEST_F(CqTest, ResizeRefused)
{
    auto cq = driver.create_cq(4);
    auto buffer = driver.cq_buffer(4);
    auto foreign = driver.create_mr(0, 32 << 4, HGHCA_ACCESS_LOCAL_WRITE, 2);
    EXPECT_EQ(resize(cq.cqn, 0, buffer.key), HGHCA_CMD_STAT_BAD_SIZE);
    EXPECT_EQ(resize(cq.cqn, 23, buffer.key), HGHCA_CMD_STAT_BAD_SIZE);
    EXPECT_EQ(resize(cq.cqn, 5, buffer.key), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(resize(cq.cqn, 4, 0xffffffff), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(resize(cq.cqn, 4, foreign.key), HGHCA_CMD_STAT_BAD_PARAM);
    for (uint32_t i = 0; i < 5; i++)
        post(cq, i);
    // Five are outstanding by the doorbell record: no room in four, room in eight.
    EXPECT_EQ(resize(cq.cqn, 2, buffer.key), HGHCA_CMD_STAT_BAD_SIZE);
    EXPECT_EQ(next(cq), 0u);
    EXPECT_EQ(resize(cq.cqn, 2, buffer.key), 0);
}

TEST_F(CqTest, ResizeWithABadDoorbellRecord)
{
    auto cq = driver.create_cq(4);
    post(cq, 1);
    host.as<hghca_cq_dbr>(cq.dbr)->consumer_index = le32(1000);  // ahead of the device
    EXPECT_EQ(resize(cq.cqn, 4, cq.buffer.key), HGHCA_CMD_STAT_BAD_SIZE);
    host.holes.push_back({cq.dbr, 8});
    EXPECT_EQ(resize(cq.cqn, 4, cq.buffer.key), HGHCA_CMD_STAT_BAD_PARAM);
}

TEST_F(CqTest, ResizeWithoutARecordCountsWhatIsThere)
{
    auto cq = driver.create_cq(4);
    hw2sw(cq.cqn);
    ASSERT_EQ(sw2hw(cq.cqn, driver.cqc_mailbox(cq.cqn, 4, cq.buffer.key, 1)), 0);
    auto buffer = driver.cq_buffer(4);
    for (uint32_t i = 0; i < 16; i++)
        post(cq, i);
    EXPECT_EQ(resize(cq.cqn, 3, buffer.key), HGHCA_CMD_STAT_BAD_SIZE);
    EXPECT_EQ(resize(cq.cqn, 4, buffer.key), 0);
}

TEST_F(CqTest, LargeCq)
{
    auto cq = driver.create_cq(14);  // 128 pages
    for (uint32_t i = 0; i < 16384; i++)
        ASSERT_TRUE(post(cq, i));
    EXPECT_FALSE(post(cq, 0));
    for (uint32_t i = 0; i < 16384; i++)
        ASSERT_EQ(next(cq), i);
}

}  // namespace
}  // namespace hghca::test::cq_test
