// SPDX-License-Identifier: GPL-2.0-or-later
// The clock, completion queues with timestamps, and their moderation (interface document, 4.21, 5.5).
#include <vector>

#include "fixture.h"

namespace hghca::test::cq_clock_test {
namespace {

class CqClock : public DeviceTest {
protected:
    explicit CqClock(uint32_t cache_entries = 0) : DeviceTest(cache_entries)
    {
        driver.start();
        eq = driver.create_eq(6, 1);
    }

    bool post(uint32_t cqn, uint32_t qpn, bool solicited = false)
    {
        hghca_cqe cqe{};
        cqe.my_qpn = le32(qpn);
        cqe.byte_cnt = le32(~qpn);
        return device.cqs->post(Cqn(cqn), cqe, solicited) == Completed::Yes;
    }
    unsigned events() { return take_events(driver, eq, HGHCA_EVENT_COMP); }
    uint64_t read(uint64_t offset, unsigned size) { return device.uar_read(offset, size); }

    TestDriver::Eq eq;
};

// ---- the clock

TEST_F(CqClock, IsReadInEachPageAtOnceOrByHalves)
{
    host.clock_ns = 0x123456789abcdef0;
    for (uint64_t page : {0u, 3u, 2047u}) {
        const uint64_t at = page * 4096 + HGHCA_UAR_CLOCK;
        EXPECT_EQ(read(at, 8), 0x123456789abcdef0u);
        EXPECT_EQ(read(at, 4), 0x9abcdef0u);
        EXPECT_EQ(read(at + 4, 4), 0x12345678u);
        for (unsigned size : {1u, 2u})
            EXPECT_EQ(read(at, size), 0u);
        EXPECT_EQ(read(at + 4, 8), 0u);
        EXPECT_EQ(read(at + 2, 4), 0u);
    }
    for (uint64_t offset : {0x00u, 0x08u, 0x10u, 0x20u, 0x28u, 0x38u, 0xff8u})
        EXPECT_EQ(read(offset, 8), 0u) << offset;
    EXPECT_EQ(read(HGHCA_BAR_UAR_SIZE + HGHCA_UAR_CLOCK, 8), 0u);
}

TEST_F(CqClock, StandsStillForNobody)
{
    host.clock_ns = 5000;
    const uint64_t before = read(HGHCA_UAR_CLOCK, 8);
    host.clock_ns += 250;
    EXPECT_EQ(read(HGHCA_UAR_CLOCK, 8), before + 250);
    // Without the capability nothing answers; the clock has gone on.
    driver.init(kFullCaps & ~HGHCA_CAP_CLOCK);
    EXPECT_EQ(read(HGHCA_UAR_CLOCK, 8), 0u);
    driver.init();
    EXPECT_EQ(read(HGHCA_UAR_CLOCK, 8), before + 250);
}

// ---- timestamps

class TimedCq : public CqClock {
protected:
    explicit TimedCq(uint32_t cache_entries = 0) : CqClock(cache_entries) {}

    // A buffer of 1 << log timed CQEs, all the device's.
    TestDriver::Mr timed_buffer(unsigned log)
    {
        auto mr = driver.create_mr(0, uint64_t(64) << log, HGHCA_ACCESS_LOCAL_WRITE);
        for (unsigned i = 0; i < 1u << log; i++)
            host.as<hghca_timed_cqe>(mr.dma)[i].cqe.owner = HGHCA_CQ_ENTRY_OWNER_HW;
        return mr;
    }
    void create(unsigned log)
    {
        cq = {20, log, timed_buffer(log), host.alloc(64, 64)};
        hghca_cqc cqc = driver.cqc_mailbox(cq.cqn, log, cq.buffer.key, eq.eqn, cq.dbr);
        cqc.flags = be32(HGHCA_CQ_FLAG_TIMESTAMP);
        ASSERT_EQ(driver.post(HGHCA_CMD_SW2HW_CQ, cqc, cq.cqn), 0);
    }
    // The next entry; false: none.
    bool next(hghca_timed_cqe &out)
    {
        auto *entry = host.as<hghca_timed_cqe>(cq.buffer.dma) + (cq.consumer & ((1u << cq.log) - 1));
        if (entry->cqe.owner != HGHCA_CQ_ENTRY_OWNER_SW)
            return false;
        out = *entry;
        entry->cqe.owner = HGHCA_CQ_ENTRY_OWNER_HW;
        cq.consumer++;
        host.as<hghca_cq_dbr>(cq.dbr)->consumer_index = le32(cq.consumer);
        return true;
    }
    void expect(uint32_t qpn, uint64_t ns)
    {
        hghca_timed_cqe entry;
        ASSERT_TRUE(next(entry)) << qpn;
        EXPECT_EQ(le32(entry.cqe.my_qpn), qpn);
        EXPECT_EQ(le32(entry.cqe.byte_cnt), ~qpn);
        EXPECT_EQ(le64(entry.timestamp), ns) << qpn;
        for (uint32_t word : entry.rsvd08)
            EXPECT_EQ(word, 0u);
    }

    TestDriver::Cq cq;
};

TEST_F(TimedCq, TellsWhenEachWasWritten)
{
    create(3);
    for (uint32_t i = 0; i < 100; i++) {
        host.clock_ns = 7000000000ull + i * 1001;
        ASSERT_TRUE(post(cq.cqn, i));
        if (i % 3 == 2)
            for (uint32_t k = i - 2; k <= i; k++)
                expect(k, 7000000000ull + k * 1001);
    }
}

TEST_F(TimedCq, WithoutPointersToo)
{
    host.copy_only = true;
    create(3);
    host.clock_ns = 12345;
    ASSERT_TRUE(post(cq.cqn, 1));
    expect(1, 12345);
}

TEST_F(TimedCq, TheOwnerIsTheLastByteAndIsWrittenLast)
{
    create(2);
    host.copy_only = true;
    host.record_dirty = true;
    ASSERT_TRUE(post(cq.cqn, 1));
    ASSERT_GE(host.dirtied.size(), 2u);
    const Range body = host.dirtied[host.dirtied.size() - 2], owner = host.dirtied.back();
    EXPECT_EQ(body.dma, cq.buffer.dma);
    EXPECT_EQ(body.length, 63u);
    EXPECT_EQ(owner.dma, cq.buffer.dma + 63);
    EXPECT_EQ(owner.length, 1u);
}

TEST_F(TimedCq, FullAtItsSize)
{
    create(2);
    for (uint32_t i = 0; i < 4; i++)
        ASSERT_TRUE(post(cq.cqn, i));
    EXPECT_FALSE(post(cq.cqn, 4));
    EXPECT_EQ(device.counters().cq_overrun, 1u);
    for (uint32_t i = 0; i < 4; i++)
        expect(i, host.clock_ns);
}

// Entries of several pages, and no look-up for most of them.
TEST_F(TimedCq, ManyPages)
{
    create(10);
    for (uint32_t i = 0; i < 3000; i++) {
        host.clock_ns += 10;
        ASSERT_TRUE(post(cq.cqn, i));
        expect(i, host.clock_ns);
    }
}

TEST_F(TimedCq, TheBufferMustHoldEntriesOfThatSize)
{
    auto small = driver.create_mr(0, 32 << 4, HGHCA_ACCESS_LOCAL_WRITE);
    hghca_cqc cqc = driver.cqc_mailbox(21, 4, small.key, eq.eqn);
    cqc.flags = be32(HGHCA_CQ_FLAG_TIMESTAMP);
    EXPECT_EQ(driver.post(HGHCA_CMD_SW2HW_CQ, cqc, 21), HGHCA_CMD_STAT_BAD_PARAM);
    cqc.flags = 0;
    EXPECT_EQ(driver.post(HGHCA_CMD_SW2HW_CQ, cqc, 21), 0);
    create(4);
    hghca_resize_cq r{};
    r.logsize = be32(4u << 24);
    r.lkey = be32(small.key);
    EXPECT_EQ(driver.post(HGHCA_CMD_RESIZE_CQ, r, cq.cqn), HGHCA_CMD_STAT_BAD_PARAM);
}

TEST_F(TimedCq, ResizeKeepsTheForm)
{
    create(2);
    host.clock_ns = 100;
    ASSERT_TRUE(post(cq.cqn, 0));
    expect(0, 100);
    auto buffer = timed_buffer(4);
    hghca_resize_cq r{};
    r.logsize = be32(4u << 24);
    r.lkey = be32(buffer.key);
    ASSERT_EQ(driver.post(HGHCA_CMD_RESIZE_CQ, r, cq.cqn), 0);
    cq.buffer = buffer;
    cq.log = 4;
    for (uint32_t i = 1; i < 40; i++) {
        host.clock_ns = 100 + i;
        ASSERT_TRUE(post(cq.cqn, i));
        expect(i, 100 + i);
    }
    hghca_cqc out;
    ASSERT_EQ(driver.query(HGHCA_CMD_QUERY_CQ, out, cq.cqn), 0);
    EXPECT_EQ(be32(out.flags), HGHCA_CQ_FLAG_TIMESTAMP);
}

TEST_F(TimedCq, TheFlagIsNothingWithoutTheCapability)
{
    driver.init(kFullCaps & ~HGHCA_CAP_CLOCK);
    auto buffer = driver.cq_buffer(4);
    hghca_cqc cqc = driver.cqc_mailbox(21, 4, buffer.key, 0);
    cqc.flags = be32(HGHCA_CQ_FLAG_TIMESTAMP);
    ASSERT_EQ(driver.post(HGHCA_CMD_SW2HW_CQ, cqc, 21), 0);
    ASSERT_TRUE(post(21, 5));
    EXPECT_EQ(le32(host.as<hghca_cqe>(buffer.dma)->my_qpn), 5u);
}

// ---- moderation

class Moderation : public CqClock {
protected:
    explicit Moderation(uint32_t cache_entries = 0) : CqClock(cache_entries)
    {
        cq = driver.create_cq(8, eq.eqn);
    }
    uint8_t moderate(uint32_t cqn, uint64_t count, uint64_t period_us)
    {
        return driver.command(HGHCA_CMD_MODERATE_CQ, count << 16 | period_us, cqn).status;
    }
    // Arms with all consumed that is there.
    void arm(uint32_t command = HGHCA_CQ_ARM_NEXT)
    {
        hghca_cqe cqe;
        while (driver.poll(cq, cqe))
            ;
        driver.arm(cq, command);
    }
    // Lets time pass, and the timer fire when it is due.
    void pass(uint64_t us)
    {
        const uint64_t end = host.clock_ns + us * 1000;
        while (host.deadline_ns <= end) {
            host.clock_ns = std::max(host.clock_ns, host.deadline_ns);
            host.deadline_ns = UINT64_MAX;
            device.timer();
        }
        host.clock_ns = end;
    }
    // One by one, the first at once: how many are written when the event comes.
    unsigned count_until_event(unsigned most)
    {
        for (unsigned i = 1; i <= most; i++) {
            EXPECT_TRUE(post(cq.cqn, i));
            driver.command(HGHCA_CMD_NOP, 0, HGHCA_NOP_IN_MODIFIER);   // any entry
            if (events())
                return i;
        }
        return 0;
    }

    TestDriver::Cq cq;
};

TEST_F(Moderation, TheEventWaitsForSoManyCompletions)
{
    ASSERT_EQ(moderate(cq.cqn, 5, 1000), 0);
    for (int round = 0; round < 3; round++) {
        arm();
        EXPECT_EQ(count_until_event(10), 5u);
        EXPECT_EQ(events(), 0u);
    }
}

TEST_F(Moderation, ButNoLongerThanItsPeriodAfterTheFirst)
{
    ASSERT_EQ(moderate(cq.cqn, 5, 1000), 0);
    arm();
    pass(5000);   // nothing is there: no event, and no clock
    EXPECT_EQ(events(), 0u);
    EXPECT_EQ(count_until_event(2), 0u);
    pass(999);
    EXPECT_EQ(events(), 0u);
    pass(1);
    EXPECT_EQ(events(), 1u);
    pass(5000);
    EXPECT_EQ(events(), 0u);   // one event for each arming
    arm();
    EXPECT_EQ(count_until_event(10), 5u);
}

// What software has not seen counts from the doorbell on.
TEST_F(Moderation, CompletionsThatAreThereAlready)
{
    ASSERT_EQ(moderate(cq.cqn, 4, 1000), 0);
    for (uint32_t i = 0; i < 2; i++)
        ASSERT_TRUE(post(cq.cqn, i));
    driver.arm(cq);
    EXPECT_EQ(events(), 0u);
    EXPECT_EQ(count_until_event(10), 2u);
    driver.arm(cq);   // four unseen
    EXPECT_EQ(events(), 1u);
    ASSERT_TRUE(post(cq.cqn, 9));
    arm();
    ASSERT_TRUE(post(cq.cqn, 9));
    pass(999);
    EXPECT_EQ(events(), 0u);
    pass(1);
    EXPECT_EQ(events(), 1u);
}

TEST_F(Moderation, SolicitedOnesDoNotWait)
{
    ASSERT_EQ(moderate(cq.cqn, 5, 1000), 0);
    arm(HGHCA_CQ_ARM_SOLICITED);
    ASSERT_TRUE(post(cq.cqn, 1));
    EXPECT_EQ(events(), 0u);
    ASSERT_TRUE(post(cq.cqn, 2, true));
    EXPECT_EQ(events(), 1u);
}

TEST_F(Moderation, NoneWithZeroForEither)
{
    for (auto [count, period] : {std::pair{0, 0}, {0, 1000}, {1, 1000}, {5, 0}}) {
        ASSERT_EQ(moderate(cq.cqn, uint64_t(count), uint64_t(period)), 0);
        arm();
        EXPECT_EQ(count_until_event(3), 1u) << count << ' ' << period;
    }
    EXPECT_EQ(host.deadline_ns, UINT64_MAX);
}

TEST_F(Moderation, ALargestCountAndPeriod)
{
    ASSERT_EQ(moderate(cq.cqn, 0xffff, 0xffff), 0);
    arm();
    EXPECT_EQ(count_until_event(200), 0u);
    pass(65534);
    EXPECT_EQ(events(), 0u);
    pass(1);
    EXPECT_EQ(events(), 1u);
}

TEST_F(Moderation, NewValuesForAnEventThatWaits)
{
    ASSERT_EQ(moderate(cq.cqn, 10, 50000), 0);
    arm();
    EXPECT_EQ(count_until_event(4), 0u);
    ASSERT_EQ(moderate(cq.cqn, 4, 50000), 0);
    EXPECT_EQ(events(), 1u);
    arm();
    EXPECT_EQ(count_until_event(3), 0u);
    ASSERT_EQ(moderate(cq.cqn, 4, 10), 0);
    EXPECT_EQ(events(), 0u);
    pass(10);
    EXPECT_EQ(events(), 1u);
    arm();
    EXPECT_EQ(count_until_event(3), 0u);
    ASSERT_EQ(moderate(cq.cqn, 0, 0), 0);
    EXPECT_EQ(events(), 1u);
    pass(1000);   // what the timer was set for has been told
    EXPECT_EQ(events(), 0u);
}

TEST_F(Moderation, RefusedCommands)
{
    EXPECT_EQ(moderate(9, 1, 1), HGHCA_CMD_STAT_BAD_RES_STATE);
    EXPECT_EQ(moderate(0, 1, 1), HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(moderate(256, 1, 1), HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(driver.command(HGHCA_CMD_MODERATE_CQ, 1ull << 32, cq.cqn).status, HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(driver.command(HGHCA_CMD_MODERATE_CQ, 1, cq.cqn, 1).status, HGHCA_CMD_STAT_BAD_PARAM);
    driver.init(kFullCaps & ~HGHCA_CAP_MODERATION);
    EXPECT_EQ(moderate(1, 1, 1), HGHCA_CMD_STAT_BAD_OP);
}

// A CQ that goes takes its clock along; the next one of its number does not inherit it.
TEST_F(Moderation, OfACqThatGoes)
{
    ASSERT_EQ(moderate(cq.cqn, 5, 1000), 0);
    arm();
    ASSERT_TRUE(post(cq.cqn, 1));
    ASSERT_EQ(driver.command(HGHCA_CMD_HW2SW_CQ, 0, cq.cqn).status, 0);
    auto buffer = driver.cq_buffer(4);
    ASSERT_EQ(driver.post(HGHCA_CMD_SW2HW_CQ, driver.cqc_mailbox(cq.cqn, 4, buffer.key, eq.eqn), cq.cqn), 0);
    pass(5000);
    EXPECT_EQ(events(), 0u);
    device.uar_write(TestDriver::kUarPage * 4096ull + HGHCA_UAR_CQ_ARM,
                     uint64_t(HGHCA_CQ_ARM_NEXT << 24 | cq.cqn) << 32, 8);
    ASSERT_TRUE(post(cq.cqn, 2));
    EXPECT_EQ(events(), 1u);
}

TEST_F(Moderation, AWildConsumerIndexOnlyCostsTime)
{
    ASSERT_EQ(moderate(cq.cqn, 5, 1000), 0);
    for (uint32_t index : {0x7fffffffu, 0x80000000u, 0xffffffffu, 12345u}) {
        TestDriver::Cq wild = cq;
        wild.consumer = index;
        driver.arm(wild);
        ASSERT_TRUE(post(cq.cqn, 1));
        pass(1000);
        EXPECT_LE(events(), 1u) << index;
        driver.arm(cq);
        pass(1000);
        events();
    }
    arm();
    EXPECT_EQ(count_until_event(10), 5u);
}

// With one context on chip the moderation goes to memory and comes back.
class ModerationOnASmallChip : public Moderation {
protected:
    ModerationOnASmallChip() : Moderation(1) {}
};

TEST_F(ModerationOnASmallChip, OutlivesEviction)
{
    auto other = driver.create_cq(4, eq.eqn);
    ASSERT_EQ(moderate(cq.cqn, 3, 1000), 0);
    arm();
    ASSERT_TRUE(post(cq.cqn, 1));
    ASSERT_TRUE(post(other.cqn, 1));
    driver.command(HGHCA_CMD_NOP, 0, HGHCA_NOP_IN_MODIFIER);
    EXPECT_EQ(events(), 0u);
    pass(1000);
    EXPECT_EQ(events(), 1u);
    arm();
    EXPECT_EQ(count_until_event(5), 3u);
    EXPECT_GT(device.counters().context_evictions, 0u);
}

TEST_F(Moderation, ManyAtATimeEachByItsOwnClock)
{
    constexpr unsigned kCqs = 100;
    std::vector<TestDriver::Cq> cqs;
    for (unsigned i = 0; i < kCqs; i++) {
        cqs.push_back(driver.create_cq(2, eq.eqn));
        ASSERT_EQ(moderate(cqs[i].cqn, 3, 1000 - 7 * i), 0);
        driver.arm(cqs[i]);
        ASSERT_TRUE(post(cqs[i].cqn, i));
    }
    driver.command(HGHCA_CMD_NOP, 0, HGHCA_NOP_IN_MODIFIER);
    const uint64_t start = host.clock_ns;
    unsigned reported = 0;
    for (unsigned us = 1; us <= 1000; us++) {
        pass(1);
        reported += events();
        unsigned due = 0;
        for (unsigned i = 0; i < kCqs; i++)
            due += host.clock_ns - start >= (1000 - 7 * i) * 1000ull;
        ASSERT_EQ(reported, due) << us;
    }
    EXPECT_EQ(reported, kCqs);
}

}  // namespace
}  // namespace hghca::test::cq_clock_test
