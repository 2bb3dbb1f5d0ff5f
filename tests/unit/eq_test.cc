// SPDX-License-Identifier: GPL-2.0-or-later
// Event queues (interface document, 4.7, 5.4, 10).
#include <cstring>
#include <utility>
#include <vector>

#include "fixture.h"

namespace hghca::test::eq_test {
namespace {

class EqTest : public DeviceTest {
protected:
    EqTest() { driver.start(); }

    uint8_t sw2hw(uint32_t eqn, const hghca_eqc &eqc) { return driver.post(HGHCA_CMD_SW2HW_EQ, eqc, eqn); }
    uint8_t hw2sw(uint32_t eqn) { return driver.command(HGHCA_CMD_HW2SW_EQ, 0, eqn).status; }
    uint8_t query(uint32_t eqn, hghca_eqc &eqc) { return driver.query(HGHCA_CMD_QUERY_EQ, eqc, eqn); }
    void post(uint32_t eqn, uint32_t cqn) { device.eqs->post_completion(eqn, Cqn(cqn)); }
    void post_async(uint32_t qpn) { device.eqs->post_qp(HGHCA_EVENT_COMM_EST, Qpn(qpn)); }
};

TEST_F(EqTest, Commands)
{
    auto buffer = driver.create_mr(0, 32 << 4, HGHCA_ACCESS_LOCAL_WRITE);
    auto read_only = driver.create_mr(0, 32 << 4, 0);
    auto based = driver.create_mr(64, 32 << 4, HGHCA_ACCESS_LOCAL_WRITE);
    auto foreign = driver.create_mr(0, 32 << 4, HGHCA_ACCESS_LOCAL_WRITE, 2);
    struct {
        const char *what;
        uint32_t eqn;
        unsigned log;
        uint32_t key;
        unsigned vector;
        uint8_t status;
    } cases[] = {
        {"good", 5, 4, buffer.key, 3, 0},
        {"last vector", 5, 4, buffer.key, 63, 0},
        {"no such vector", 5, 4, buffer.key, 64, HGHCA_CMD_STAT_BAD_PARAM},
        {"smallest", 5, 1, buffer.key, 0, 0},
        {"one entry", 5, 0, buffer.key, 0, HGHCA_CMD_STAT_BAD_SIZE},
        {"too large", 5, 21, buffer.key, 0, HGHCA_CMD_STAT_BAD_SIZE},
        {"log 255", 5, 255, buffer.key, 0, HGHCA_CMD_STAT_BAD_SIZE},
        {"larger than the MR", 5, 5, buffer.key, 0, HGHCA_CMD_STAT_BAD_PARAM},
        {"no key", 5, 4, 0xffffffff, 0, HGHCA_CMD_STAT_BAD_PARAM},
        {"read only", 5, 4, read_only.key, 0, HGHCA_CMD_STAT_BAD_PARAM},
        {"not zero-based", 5, 4, based.key, 0, HGHCA_CMD_STAT_BAD_PARAM},
        {"PD of another", 5, 4, foreign.key, 0, HGHCA_CMD_STAT_BAD_PARAM},
        {"reserved", 0, 4, buffer.key, 0, HGHCA_CMD_STAT_BAD_INDEX},
        {"last", 15, 4, buffer.key, 0, 0},
        {"beyond", 16, 4, buffer.key, 0, HGHCA_CMD_STAT_BAD_INDEX},
        {"far beyond", ~0u, 4, buffer.key, 0, HGHCA_CMD_STAT_BAD_INDEX},
        {"in use", driver.async.eqn, 4, buffer.key, 0, HGHCA_CMD_STAT_BAD_RES_STATE},
    };
    for (auto &c : cases) {
        EXPECT_EQ(sw2hw(c.eqn, driver.eqc_mailbox(c.log, c.key, c.vector)), c.status) << c.what;
        if (!c.status) {
            EXPECT_EQ(sw2hw(c.eqn, driver.eqc_mailbox(c.log, c.key, c.vector)), HGHCA_CMD_STAT_BAD_RES_STATE);
            EXPECT_EQ(hw2sw(c.eqn), 0) << c.what;
        }
    }
    EXPECT_EQ(hw2sw(5), HGHCA_CMD_STAT_BAD_RES_STATE);
    EXPECT_EQ(hw2sw(16), HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(driver.map_eq(5, 1), HGHCA_CMD_STAT_BAD_RES_STATE);
    EXPECT_EQ(driver.map_eq(16, 1), HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(driver.map_eq(0, 1), HGHCA_CMD_STAT_BAD_INDEX);
    ASSERT_EQ(hw2sw(driver.async.eqn), 0);
    ASSERT_EQ(driver.unmap_icm(HGHCA_ICM_CONTEXT, driver.layout.eqc, 1), 0);
    EXPECT_EQ(sw2hw(5, driver.eqc_mailbox(4, buffer.key, 3)), HGHCA_CMD_STAT_LAM_NOT_PRE);
    EXPECT_EQ(hw2sw(5), HGHCA_CMD_STAT_LAM_NOT_PRE);
    EXPECT_EQ(driver.map_eq(5, 1), HGHCA_CMD_STAT_LAM_NOT_PRE);
}

TEST_F(EqTest, TheBufferIsAtItsAddress)
{
    constexpr uint64_t kRegion = 0x7f1234567040, kStart = 0x7f1234567fe0;
    const auto mr = driver.create_mr(kRegion, 8192, HGHCA_ACCESS_LOCAL_WRITE);
    std::memset(host.at(mr.dma), 0x80, 8192);
    hghca_eqc eqc = driver.eqc_mailbox(3, mr.key, 3);
    for (uint64_t wrong : {kRegion - 32, kRegion + 8192 - 7 * 32, kStart + 16, ~uint64_t(31)}) {
        eqc.start = be64(wrong);
        EXPECT_EQ(sw2hw(5, eqc), HGHCA_CMD_STAT_BAD_PARAM) << wrong;
    }
    eqc.start = be64(kStart);
    ASSERT_EQ(sw2hw(5, eqc), 0);
    hghca_eqc shown;
    ASSERT_EQ(query(5, shown), 0);
    EXPECT_EQ(be64(shown.start), kStart);
    ASSERT_EQ(driver.map_eq(5, 1ull << HGHCA_EVENT_COMM_EST), 0);
    TestDriver::Eq eq{5, 3, mr, 3};
    eq.buffer.dma += kStart - kRegion;
    for (uint32_t i = 1; i < 30; i++) {
        post_async(i);
        hghca_eqe eqe;
        ASSERT_TRUE(driver.poll(eq, eqe)) << i;
        EXPECT_EQ(be32(eqe.event.qp.qpn), i);
    }
    for (uint64_t at : {kStart - kRegion - 1, kStart - kRegion + 8 * 32})
        EXPECT_EQ(host.at(mr.dma)[at], 0x80) << at;
}

TEST_F(EqTest, Query)
{
    constexpr uint32_t kFlags = 1u << 24 | 1u << 18, kArmed = 1u << 8;
    TestDriver::Eq eq{6, 4, driver.create_mr(0, 32 << 4, HGHCA_ACCESS_LOCAL_WRITE), 63, 0xfffffffe};
    for (unsigned i = 0; i < 16; i++)
        host.as<hghca_eqe>(eq.buffer.dma)[i].owner = 0x80;
    // As SW2HW_EQ took it; TR is there in any case.
    hghca_eqc taken = driver.eqc_mailbox(eq.log, eq.buffer.key, eq.vector);
    taken.producer_index = taken.consumer_index = be32(eq.consumer);
    ASSERT_EQ(sw2hw(eq.eqn, taken), 0);
    taken.flags = be32(kFlags | kArmed);
    hghca_eqc c;
    ASSERT_EQ(query(eq.eqn, c), 0);
    EXPECT_EQ(std::memcmp(&c, &taken, sizeof(c)), 0);
    // Three EQEs, of which the first disarms it, and the consumer index of either doorbell.
    for (uint32_t cqn = 1; cqn <= 3; cqn++)
        post(eq.eqn, cqn);
    ASSERT_EQ(query(eq.eqn, c), 0);
    EXPECT_EQ(be32(c.flags), kFlags);
    EXPECT_EQ(be32(c.producer_index), 1u);
    EXPECT_EQ(be32(c.consumer_index), 0xfffffffe);
    EXPECT_EQ(take_events(driver, eq, HGHCA_EVENT_COMP), 3u);
    driver.eq_doorbell(eq, HGHCA_EQ_ARM_UPDATE);
    ASSERT_EQ(query(eq.eqn, c), 0);
    EXPECT_EQ(be32(c.flags), kFlags);
    EXPECT_EQ(be32(c.consumer_index), 1u);
    driver.arm(eq);
    ASSERT_EQ(query(eq.eqn, c), 0);
    EXPECT_EQ(be32(c.flags), kFlags | kArmed);
    EXPECT_EQ(be32(c.producer_index), 1u);
    // None there, none possible.
    ASSERT_EQ(hw2sw(eq.eqn), 0);
    for (uint32_t eqn : {5u, 6u, 15u})
        EXPECT_EQ(query(eqn, c), HGHCA_CMD_STAT_BAD_RES_STATE) << eqn;
    for (uint32_t eqn : {0u, 16u, ~0u})
        EXPECT_EQ(query(eqn, c), HGHCA_CMD_STAT_BAD_INDEX) << eqn;
    ASSERT_EQ(hw2sw(driver.async.eqn), 0);
    ASSERT_EQ(driver.unmap_icm(HGHCA_ICM_CONTEXT, driver.layout.eqc, 1), 0);
    EXPECT_EQ(query(5, c), HGHCA_CMD_STAT_LAM_NOT_PRE);
}

TEST_F(EqTest, MappedTypesAlone)
{
    auto eq = driver.create_eq(4, 1);
    // Section 10: every asynchronous type.
    for (unsigned type : {0x02u, 0x03u, 0x04u, 0x05u, 0x08u, 0x09u, 0x0au, 0x0fu, 0x10u, 0x11u}) {
        EXPECT_TRUE(device.eqs->takes(hghca_event_type(type)));
        ASSERT_EQ(driver.map_eq(eq.eqn, 1ull << type), 0);
        hghca_eqe eqe{};
        eqe.type = uint8_t(type);
        device.eqs->post_async(eqe);
        EXPECT_EQ(take_events(driver, eq, type), 1u);
        EXPECT_EQ(take_events(driver, driver.async, type), 0u);
        // Withdrawing from an EQ that does not have it changes nothing.
        ASSERT_EQ(driver.map_eq(driver.async.eqn, 1ull << type, true), 0);
        EXPECT_TRUE(device.eqs->takes(hghca_event_type(type)));
        ASSERT_EQ(driver.map_eq(eq.eqn, 1ull << type, true), 0);
        EXPECT_FALSE(device.eqs->takes(hghca_event_type(type)));
        device.eqs->post_async(eqe);
        EXPECT_EQ(take_events(driver, eq, type), 0u);
    }
    EXPECT_EQ(device.counters().eq_overrun, 0u);
}

TEST_F(EqTest, ContentOfEqes)
{
    hghca_eqe eqe;
    device.eqs->post_qp(HGHCA_EVENT_WQ_ACCESS_ERROR, Qpn(0x123456));
    ASSERT_TRUE(driver.poll(driver.async, eqe));
    EXPECT_EQ(eqe.type, 0x11);
    EXPECT_EQ(be32(eqe.event.qp.qpn), 0x123456u);
    device.eqs->post_cq_error(Cqn(0x1ffff), HGHCA_CQ_ERROR_ACCESS);
    ASSERT_TRUE(driver.poll(driver.async, eqe));
    EXPECT_EQ(eqe.type, 0x04);
    EXPECT_EQ(be32(eqe.event.cq_err.cqn), 0x1ffffu);
    EXPECT_EQ(eqe.event.cq_err.syndrome, 2);
    post(driver.async.eqn, 77);
    ASSERT_TRUE(driver.poll(driver.async, eqe));
    EXPECT_EQ(eqe.type, 0x00);
    EXPECT_EQ(be32(eqe.event.comp.cqn), 77u);
}

TEST_F(EqTest, AnEqeDisarmsAndRaisesOnce)
{
    auto eq = driver.create_eq(4, 9);
    post(eq.eqn, 1);
    EXPECT_EQ(host.take_vectors(9), 1u);
    post(eq.eqn, 2);
    EXPECT_EQ(host.take_vectors(9), 0u);
    EXPECT_EQ(take_events(driver, eq, HGHCA_EVENT_COMP), 2u);
    driver.arm(eq);
    EXPECT_EQ(host.take_vectors(9), 0u);
    post(eq.eqn, 3);
    post(eq.eqn, 4);
    EXPECT_EQ(host.take_vectors(9), 1u);
    // Two EQEs are unseen: arming raises at once, and does not arm.
    driver.arm(eq);
    EXPECT_EQ(host.take_vectors(9), 1u);
    post(eq.eqn, 5);
    EXPECT_EQ(host.take_vectors(9), 0u);
    EXPECT_EQ(take_events(driver, eq, HGHCA_EVENT_COMP), 3u);
    // An update says what was seen and arms nothing.
    driver.eq_doorbell(eq, HGHCA_EQ_ARM_UPDATE);
    post(eq.eqn, 6);
    EXPECT_EQ(host.take_vectors(9), 0u);
}

TEST_F(EqTest, StartsUnarmedWhenAsked)
{
    auto buffer = driver.create_mr(0, 32 << 4, HGHCA_ACCESS_LOCAL_WRITE);
    for (unsigned i = 0; i < 16; i++)
        host.as<hghca_eqe>(buffer.dma)[i].owner = 0x80;
    hghca_eqc eqc = driver.eqc_mailbox(4, buffer.key, 2);
    eqc.flags = be32(HGHCA_EQ_OWNER_HW);
    ASSERT_EQ(sw2hw(6, eqc), 0);
    post(6, 1);
    EXPECT_TRUE(host.vectors.empty());
    EXPECT_EQ(host.as<hghca_eqe>(buffer.dma)->owner, 0);
}

TEST_F(EqTest, Doorbells)
{
    auto eq = driver.create_eq(4, 1);
    uint64_t arm = uint64_t(HGHCA_EQ_ARM_ARM << 24 | eq.eqn) << 32;
    post(eq.eqn, 1);
    host.vectors.clear();
    for (uint64_t page : {1ull, 3ull, 2047ull}) {
        uint64_t before = device.counters().db_bad_page;
        device.uar_write(page * 4096 + HGHCA_UAR_EQ_ARM, arm, 8);
        EXPECT_EQ(device.counters().db_bad_page, before + 1);
    }
    for (uint32_t eqn : {0u, 9u, 15u, 16u, 255u}) {
        uint64_t before = device.counters().db_bad_object;
        device.uar_write(HGHCA_UAR_EQ_ARM, uint64_t(HGHCA_EQ_ARM_ARM << 24 | eqn) << 32, 8);
        EXPECT_EQ(device.counters().db_bad_object, before + 1) << eqn;
    }
    for (uint32_t command : {2u, 0x80u, 0xffu})
        driver.eq_doorbell(eq, command);
    EXPECT_TRUE(host.vectors.empty());
    driver.arm(eq);
    EXPECT_EQ(host.take_vectors(1), 1u);
}

TEST_F(EqTest, WrapsAtItsSize)
{
    auto eq = driver.create_eq(3, 1);
    for (uint32_t i = 1; i <= 100; i++) {
        device.run();   // another slice
        post(eq.eqn, i);
        hghca_eqe eqe;
        ASSERT_TRUE(driver.poll(eq, eqe));
        ASSERT_EQ(be32(eqe.event.comp.cqn), i);
    }
}

TEST_F(EqTest, CompletionsWaitForRoomAndNoneIsLost)
{
    auto eq = driver.create_eq(2, 1);
    for (uint32_t cqn = 1; cqn <= 20; cqn++)
        post(eq.eqn, cqn);
    post(eq.eqn, 20);  // waits already
    std::vector<uint32_t> seen;
    hghca_eqe eqe;
    for (int round = 0; round < 10; round++) {
        while (driver.poll(eq, eqe))
            seen.push_back(be32(eqe.event.comp.cqn));
        driver.eq_doorbell(eq, round % 2 ? HGHCA_EQ_ARM_UPDATE : HGHCA_EQ_ARM_ARM);
    }
    ASSERT_EQ(seen.size(), 20u);
    for (uint32_t i = 0; i < 20; i++)
        EXPECT_EQ(seen[i], i + 1);
    EXPECT_EQ(device.counters().eq_overrun, 0u);
    // And one that waited may wait again.
    post(eq.eqn, 20);
    EXPECT_EQ(take_events(driver, eq, HGHCA_EVENT_COMP), 1u);
}

TEST_F(EqTest, ArmingAFullEqRaisesOnceForWhatWaited)
{
    auto eq = driver.create_eq(1, 1);
    for (uint32_t cqn = 1; cqn <= 3; cqn++)
        post(eq.eqn, cqn);
    host.vectors.clear();
    EXPECT_EQ(take_events(driver, eq, HGHCA_EVENT_COMP), 2u);
    driver.arm(eq);
    EXPECT_EQ(host.take_vectors(1), 1u);
    EXPECT_EQ(take_events(driver, eq, HGHCA_EVENT_COMP), 1u);
}

TEST_F(EqTest, RoomIsFoundByTheNextEventToo)
{
    auto eq = driver.create_eq(1, 1);
    for (uint32_t cqn = 1; cqn <= 3; cqn++)
        post(eq.eqn, cqn);
    hghca_eqe eqe;
    ASSERT_TRUE(driver.poll(eq, eqe));
    post(eq.eqn, 4);
    for (uint32_t cqn : {2u, 3u}) {
        ASSERT_TRUE(driver.poll(eq, eqe));
        EXPECT_EQ(be32(eqe.event.comp.cqn), cqn);  // in order: 4 came after 3
    }
}

TEST_F(EqTest, AsynchronousEventsAreLostCountedAndTold)
{
    auto eq = driver.create_eq(2, 1);
    ASSERT_EQ(driver.map_eq(eq.eqn, 1ull << HGHCA_EVENT_COMM_EST | 1ull << HGHCA_EVENT_EQ_OVERFLOW), 0);
    for (uint32_t i = 0; i < 7; i++)
        post_async(i);
    EXPECT_EQ(device.counters().eq_overrun, 3u);
    hghca_eqe eqe;
    for (uint32_t i = 0; i < 4; i++) {
        ASSERT_TRUE(driver.poll(eq, eqe));
        EXPECT_EQ(eqe.type, HGHCA_EVENT_COMM_EST);
        EXPECT_EQ(be32(eqe.event.qp.qpn), i);
    }
    EXPECT_FALSE(driver.poll(eq, eqe));
    driver.arm(eq);
    ASSERT_TRUE(driver.poll(eq, eqe));
    EXPECT_EQ(eqe.type, HGHCA_EVENT_EQ_OVERFLOW);
    EXPECT_EQ(be32(eqe.event.eq_overflow.eqn), eq.eqn);
    EXPECT_FALSE(driver.poll(eq, eqe));
    post_async(9);
    EXPECT_EQ(take_events(driver, eq, HGHCA_EVENT_COMM_EST), 1u);
}

TEST_F(EqTest, OverflowCanBeToldByAnotherEq)
{
    auto eq = driver.create_eq(1, 1);
    ASSERT_EQ(driver.map_eq(eq.eqn, 1ull << HGHCA_EVENT_COMM_EST), 0);
    for (uint32_t i = 0; i < 3; i++)
        post_async(i);
    EXPECT_EQ(device.counters().eq_overrun, 1u);
    driver.eq_doorbell(eq, HGHCA_EQ_ARM_UPDATE);
    EXPECT_EQ(take_events(driver, driver.async, HGHCA_EVENT_EQ_OVERFLOW), 1u);
    driver.eq_doorbell(eq, HGHCA_EQ_ARM_UPDATE);
    EXPECT_EQ(take_events(driver, driver.async, HGHCA_EVENT_EQ_OVERFLOW), 0u);
}

TEST_F(EqTest, NothingIsWrittenAfterHw2sw)
{
    auto eq = driver.create_eq(1, 1);
    ASSERT_EQ(driver.map_eq(eq.eqn, 1ull << HGHCA_EVENT_COMM_EST), 0);
    for (uint32_t cqn = 1; cqn <= 5; cqn++)
        post(eq.eqn, cqn);
    ASSERT_EQ(hw2sw(eq.eqn), 0);
    EXPECT_FALSE(device.eqs->takes(HGHCA_EVENT_COMM_EST));
    for (unsigned i = 0; i < 2; i++)
        host.as<hghca_eqe>(eq.buffer.dma)[i].owner = 0x80;
    host.vectors.clear();
    post(eq.eqn, 1);
    post_async(1);
    driver.arm(eq);
    EXPECT_EQ(host.as<hghca_eqe>(eq.buffer.dma)[0].owner, 0x80);
    EXPECT_TRUE(host.vectors.empty());
    // What waited died with it: a new EQ of that number starts empty.
    ASSERT_EQ(sw2hw(eq.eqn, driver.eqc_mailbox(1, eq.buffer.key, 1)), 0);
    EXPECT_EQ(host.as<hghca_eqe>(eq.buffer.dma)[0].owner, 0x80);
    post(eq.eqn, 5);
    EXPECT_EQ(host.as<hghca_eqe>(eq.buffer.dma)[0].owner, 0);
}

TEST_F(EqTest, ABufferThatGoesAwayLosesAsyncAndKeepsCompletions)
{
    auto eq = driver.create_eq(4, 1);
    ASSERT_EQ(driver.map_eq(eq.eqn, 1ull << HGHCA_EVENT_COMM_EST), 0);
    ASSERT_EQ(driver.destroy_mr(eq.buffer), 0);
    host.vectors.clear();
    post_async(1);
    post(eq.eqn, 1);
    EXPECT_EQ(host.take_vectors(1), 0u);
    EXPECT_EQ(device.counters().eq_overrun, 1u);
    EXPECT_EQ(host.as<hghca_eqe>(eq.buffer.dma)->owner, 0x80);
}

// The document's base: an EQ reports by owner bytes, and an armed one raises its vector for each EQE.
TEST_F(EqTest, WithoutDoorbellsAnArmedEqStaysArmed)
{
    driver.init(0);
    auto eq = driver.create_eq(4, 5);
    ASSERT_EQ(driver.map_eq(eq.eqn, 1ull << HGHCA_EVENT_COMM_EST | 1ull << HGHCA_EVENT_CMD), 0);
    for (uint32_t i = 1; i < 20; i++) {
        host.vectors.clear();
        post(eq.eqn, i);
        EXPECT_EQ(host.take_vectors(5), 1u);
        post_async(i);
        EXPECT_EQ(host.take_vectors(5), 1u);
        driver.command(HGHCA_CMD_NOP, 0, HGHCA_NOP_IN_MODIFIER, 0, 0, true, uint16_t(i));
        EXPECT_EQ(host.take_vectors(5), 1u);
        hghca_eqe eqe;
        ASSERT_TRUE(driver.poll(eq, eqe));
        EXPECT_EQ(eqe.type, HGHCA_EVENT_COMP);
        EXPECT_EQ(be32(eqe.event.comp.cqn), i);
        ASSERT_TRUE(driver.poll(eq, eqe));
        EXPECT_EQ(eqe.type, HGHCA_EVENT_COMM_EST);
        ASSERT_TRUE(driver.poll(eq, eqe));
        EXPECT_EQ(eqe.type, HGHCA_EVENT_CMD);
        EXPECT_EQ(be16(eqe.event.cmd.token), i);
        EXPECT_EQ(eqe.event.cmd.status, HGHCA_CMD_STAT_OK);
    }
    // Doorbells are not there, and one that was not armed raises nothing.
    host.vectors.clear();
    driver.arm(eq);
    ASSERT_EQ(hw2sw(eq.eqn), 0);
    hghca_eqc eqc = driver.eqc_mailbox(4, eq.buffer.key, 5);
    eqc.flags = be32(HGHCA_EQ_OWNER_HW);
    eqc.producer_index = be32(eq.consumer);
    ASSERT_EQ(sw2hw(eq.eqn, eqc), 0);
    driver.arm(eq);
    post(eq.eqn, 1);
    EXPECT_EQ(take_events(driver, eq, HGHCA_EVENT_COMP), 1u);
    EXPECT_TRUE(host.vectors.empty());
}

// No doorbell tells that there is room again, so the device looks by itself.
TEST_F(EqTest, WithoutDoorbellsWhatWaitsForRoomComesAfterAWhile)
{
    driver.init(0);
    auto eq = driver.create_eq(1, 5);
    ASSERT_EQ(driver.map_eq(eq.eqn, 1ull << HGHCA_EVENT_COMM_EST | 1ull << HGHCA_EVENT_EQ_OVERFLOW), 0);
    for (uint32_t cqn = 1; cqn <= 3; cqn++)
        post(eq.eqn, cqn);
    post_async(7);
    EXPECT_EQ(device.counters().eq_overrun, 1u);
    // Still full when it looks.
    host.clock_ns += 2'000'000;
    device.timer();
    while (device.run())
        ;
    hghca_eqe eqe;
    for (uint32_t cqn = 1; cqn <= 2; cqn++) {
        ASSERT_TRUE(driver.poll(eq, eqe));
        EXPECT_EQ(be32(eqe.event.comp.cqn), cqn);
    }
    EXPECT_FALSE(driver.poll(eq, eqe));
    EXPECT_LE(host.deadline_ns, host.clock_ns + 2'000'000);
    host.clock_ns = std::exchange(host.deadline_ns, UINT64_MAX);
    device.timer();
    while (device.run())
        ;
    ASSERT_TRUE(driver.poll(eq, eqe));
    EXPECT_EQ(eqe.type, HGHCA_EVENT_EQ_OVERFLOW);
    ASSERT_TRUE(driver.poll(eq, eqe));
    EXPECT_EQ(eqe.type, HGHCA_EVENT_COMP);
    EXPECT_EQ(be32(eqe.event.comp.cqn), 3u);
    EXPECT_FALSE(driver.poll(eq, eqe));
    // Nothing waits, and nothing looks.
    EXPECT_EQ(host.deadline_ns, UINT64_MAX);
}

TEST_F(EqTest, ByCopy)
{
    host.copy_only = true;
    driver.start();
    auto eq = driver.create_eq(2, 1);
    for (uint32_t cqn = 1; cqn <= 6; cqn++)
        post(eq.eqn, cqn);
    EXPECT_EQ(take_events(driver, eq, HGHCA_EVENT_COMP), 4u);
    driver.arm(eq);
    EXPECT_EQ(take_events(driver, eq, HGHCA_EVENT_COMP), 2u);
}

TEST_F(EqTest, ManyPages)
{
    auto eq = driver.create_eq(10, 1);  // 8 pages of 128 EQEs
    for (uint32_t i = 0; i < 3000; i++) {
        post(eq.eqn, 1 + i % 100);
        device.run();   // the slice may be over
        hghca_eqe eqe;
        ASSERT_TRUE(driver.poll(eq, eqe));
        ASSERT_EQ(be32(eqe.event.comp.cqn), 1 + i % 100);
    }
}

}  // namespace
}  // namespace hghca::test::eq_test
