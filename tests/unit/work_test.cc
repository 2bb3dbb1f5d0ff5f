// SPDX-License-Identifier: GPL-2.0-or-later
// However much a guest or a peer asks for, an entry does about one slice of it, and the rest is not forgotten.
#include "work.h"

#include <gtest/gtest.h>

#include <utility>

#include "fixture.h"
#include "verbs.h"

namespace hghca::test::work_test {
namespace {

// Config::slice_work, and what the last step of a slice may do beyond it.
constexpr uint64_t kSlice = 128;
constexpr uint64_t kStep = 128;
constexpr uint64_t kMs = 1'000'000;

TEST(Work, ASliceEndsWhenItsUnitsAreDone)
{
    Work work;
    EXPECT_TRUE(work.over());
    work.begin_slice(2);
    EXPECT_FALSE(work.over());
    work.add();
    EXPECT_FALSE(work.over());
    work.add(5);
    EXPECT_TRUE(work.over());
    EXPECT_EQ(work.done(), 6u);
    work.begin_slice(1);   // what was too much is not missing in the next one
    EXPECT_FALSE(work.over());
}

// What one call into the device does.
template <class Call>
uint64_t cost(const Device &device, Call &&call)
{
    const uint64_t before = device.work_done();
    call();
    return device.work_done() - before;
}

class SliceTest : public ::testing::Test {
protected:
    // Runs the device to its rest, slice by slice; the number of slices.
    unsigned finish(Device &device)
    {
        unsigned slices = 0;
        while (device.has_work() && slices < 100000) {
            EXPECT_LE(cost(device, [&] { device.run(); }), 3 * kSlice + kStep);
            slices++;
        }
        EXPECT_FALSE(device.has_work());
        return slices;
    }
    static Endpoint::Options deep(uint8_t service = HGHCA_QP_ST_RC)
    {
        Endpoint::Options options;
        options.service = service;
        options.sq_wqes = options.rq_wqes = 4096;
        options.stride_log = 7;
        options.cq_log = 14;
        return options;
    }
    static bool in_order(const std::vector<Completion> &all)
    {
        for (size_t i = 0; i < all.size(); i++)
            if (all[i].slot != i % 4096)
                return false;
        return true;
    }

    Network net;
};

// Zero bytes, to itself: nothing goes over the link, and no byte of payload is moved.
TEST_F(SliceTest, ADoorbellForManySmallMessagesDoesOneSlice)
{
    Endpoint x(net.a, deep());
    x.to_rtr(x);
    x.to_rts();
    std::vector<Wqe> list(4000, Wqe(HGHCA_OPCODE_RDMA_WRITE).raddr(x.va(0), x.buffer.key));
    EXPECT_LE(cost(net.a.device, [&] { x.post(list); }), kSlice + kStep);
    EXPECT_GT(finish(net.a.device), 4000 / kSlice);
    const auto all = x.poll_all();
    EXPECT_EQ(all.size(), 4000u);
    EXPECT_TRUE(in_order(all));
}

TEST_F(SliceTest, WhatIsExecutedHereIsWorkToo)
{
    Endpoint x(net.a, deep());
    x.to_rtr(x);
    x.to_rts();
    EXPECT_LE(cost(net.a.device, [&] { x.post(std::vector<Wqe>(4000, Wqe(HGHCA_OPCODE_NOP))); }), kSlice + kStep);
    finish(net.a.device);
    EXPECT_EQ(x.poll_all().size(), 4000u);
}

TEST_F(SliceTest, UcAndDatagramsEndWithTheSlice)
{
    Pair uc(net.a, net.b, deep(HGHCA_QP_ST_UC));
    const std::vector<Wqe> writes(1000, write_to(uc.a.sge(0, 8), uc.b.va(0), uc.b.buffer.key));
    EXPECT_LE(cost(net.a.device, [&] { uc.a.post(writes); }), kSlice + kStep);
    finish(net.a.device);
    EXPECT_EQ(uc.a.poll_all().size(), 1000u);
    Endpoint ud(net.a, deep(HGHCA_QP_ST_UD)), other(net.b, deep(HGHCA_QP_ST_UD));
    const Wqe wqe = Wqe(HGHCA_OPCODE_SEND).ud(other.qp.qpn, 0x11111111, 2).data(ud.sge(0, 8));
    EXPECT_LE(cost(net.a.device, [&] { ud.post(std::vector<Wqe>(1000, wqe)); }), kSlice + kStep);
    finish(net.a.device);
    EXPECT_EQ(ud.poll_all().size(), 1000u);
}

TEST_F(SliceTest, RawFramesEndWithTheSlice)
{
    Endpoint x(net.a, deep(HGHCA_QP_ST_RAW));
    std::memset(x.at(0), 0x22, 64);   // for nobody here
    EXPECT_LE(cost(net.a.device, [&] { x.post(std::vector<Wqe>(1000, send(x.sge(0, 64)))); }), kSlice + kStep);
    finish(net.a.device);
    EXPECT_EQ(x.poll_all().size(), 1000u);
    EXPECT_EQ(net.sent, 1000u);
}

// One acknowledgement completes all that waits for it.
TEST_F(SliceTest, FewWqesWaitForOneAcknowledgement)
{
    Pair p(net.a, net.b, deep());
    net.filter = [](const Node &from, Frame &) { return from.number == 2 ? Fate{0} : Fate{}; };   // no ACK comes back
    std::vector<Wqe> list(4000, Wqe(HGHCA_OPCODE_NOP));
    list.front() = Wqe(HGHCA_OPCODE_RDMA_WRITE).raddr(p.b.va(0), p.b.buffer.key);
    p.a.post(list);
    net.pump();
    EXPECT_TRUE(p.a.poll_all().empty());
    net.filter = nullptr;
    net.a.host.clock_ns += 1000 * kMs;
    net.a.host.deadline_ns = UINT64_MAX;
    net.a.device.timer();   // sends it again
    uint64_t most = 0;
    net.filter = [&](const Node &from, Frame &frame) {
        if (from.number == 2)
            most = std::max(most, cost(net.a.device, [&] { Network::deliver(net.a, frame); }));
        return Fate{from.number == 1};
    };
    net.pump();
    // Each is read once more, and a look at its page counts as well.
    EXPECT_LE(most, 2 * 512u + kStep);
    EXPECT_EQ(p.a.poll_all().size(), 4000u);
}

TEST_F(SliceTest, AFlushIsDoneInSlices)
{
    Pair p(net.a, net.b, deep());
    net.filter = [](const Node &, Frame &) { return Fate{0}; };
    p.a.post(std::vector<Wqe>(4000, Wqe(HGHCA_OPCODE_RDMA_WRITE).raddr(p.b.va(0), p.b.buffer.key)));
    for (unsigned i = 0; i < 3000; i++)
        p.a.post_recv(p.a.sge(0, 8));
    net.pump();
    EXPECT_LE(cost(net.a.device, [&] { p.a.modify(HGHCA_CMD_2ERR_QPEE); }), kSlice + kStep);
    EXPECT_GT(finish(net.a.device), 7000 / (3 * kSlice + kStep));
    unsigned sends = 0, receives = 0;
    for (const Completion &c : p.a.poll_all()) {
        EXPECT_EQ(c.syndrome, HGHCA_SYNDROME_WR_FLUSH_ERR);
        EXPECT_EQ(c.slot, c.is_send ? sends : receives);
        (c.is_send ? sends : receives)++;
    }
    EXPECT_EQ(sends, 4000u);
    EXPECT_EQ(receives, 3000u);
}

TEST_F(SliceTest, AFlushNeedsNoLink)
{
    Pair p(net.a, net.b, deep());
    net.a.host.link_full = true;
    p.a.post(std::vector<Wqe>(4000, Wqe(HGHCA_OPCODE_RDMA_WRITE).raddr(p.b.va(0), p.b.buffer.key)));
    p.a.modify(HGHCA_CMD_2ERR_QPEE);
    EXPECT_GT(finish(net.a.device), 4000 / (3 * kSlice));
    EXPECT_EQ(p.a.poll_all().size(), 4000u);
}

// What stood behind a failed send is flushed, also when software leaves SQE before that is done.
TEST_F(SliceTest, SqeIsLeftWithNothingUnflushed)
{
    Endpoint x(net.a, deep(HGHCA_QP_ST_UD));
    std::vector<Wqe> list(3000, Wqe(HGHCA_OPCODE_RDMA_READ));   // no opcode of UD
    EXPECT_LE(cost(net.a.device, [&] { x.post(list); }), kSlice + kStep);
    EXPECT_EQ(x.state(), HGHCA_QP_STATE_SQE);
    EXPECT_TRUE(net.a.device.has_work());
    x.modify(HGHCA_CMD_SQERR2RTS_QPEE);
    finish(net.a.device);
    EXPECT_EQ(x.state(), HGHCA_QP_STATE_RTS);
    const auto all = x.poll_all();
    ASSERT_EQ(all.size(), 3000u);
    EXPECT_TRUE(in_order(all));
    EXPECT_EQ(all[0].syndrome, HGHCA_SYNDROME_LOCAL_QP_OP_ERR);
    EXPECT_EQ(all[2999].syndrome, HGHCA_SYNDROME_WR_FLUSH_ERR);
}

// QPs that have gone before their turn to flush the rest.
TEST_F(SliceTest, TheLineOfThoseThatFlushIsWork)
{
    constexpr unsigned kQps = 10;
    Endpoint::Options options;
    options.rq_wqes = 256;
    for (unsigned i = 0; i < kQps; i++) {
        Endpoint x(net.a, options);
        for (unsigned n = 0; n < 200; n++)
            x.post_recv(x.sge(0, 8));
        x.modify(HGHCA_CMD_2ERR_QPEE);
        ASSERT_EQ(net.a.driver.to_reset(x.qp.qpn), HGHCA_CMD_STAT_OK);
    }
    EXPECT_TRUE(net.a.device.has_work());
    // Each is one, and so is the look for it in ICM.
    EXPECT_EQ(cost(net.a.device, [&] { net.a.device.run(); }), 2 * kQps);
    EXPECT_FALSE(net.a.device.has_work());
}

// The time-outs of many QPs at one moment.
TEST_F(SliceTest, TimersAreEndedInSlices)
{
    constexpr unsigned kQps = 200;
    std::vector<std::unique_ptr<Endpoint>> all;
    Endpoint::Options options;
    options.sq_wqes = options.rq_wqes = 2;
    options.cq_log = 2;
    options.buffer_bytes = 4096;
    options.retry = 0;
    Endpoint peer(net.b, options);
    net.filter = [](const Node &, Frame &) { return Fate{0}; };
    for (unsigned i = 0; i < kQps; i++) {
        all.push_back(std::make_unique<Endpoint>(net.a, options));
        all.back()->to_rtr(peer);
        all.back()->to_rts();
        all.back()->post(Wqe(HGHCA_OPCODE_RDMA_WRITE).raddr(peer.va(0), peer.buffer.key));
    }
    net.pump();
    net.a.host.clock_ns += 1000 * kMs;
    net.a.host.deadline_ns = UINT64_MAX;
    EXPECT_LE(cost(net.a.device, [&] { net.a.device.timer(); }), 2 * kSlice + kStep);
    EXPECT_TRUE(net.a.device.has_work());
    EXPECT_EQ(net.a.host.deadline_ns, UINT64_MAX);   // nobody has to wait for what is due already
    finish(net.a.device);
    for (auto &x : all) {
        const auto completions = x->poll_all();
        ASSERT_EQ(completions.size(), 1u);
        EXPECT_EQ(completions[0].syndrome, HGHCA_SYNDROME_RETRY_EXC_ERR);
    }
}

// Frames that have waited in the receive buffer while the host slept.
TEST(Slice, AReceiveBufferIsEmptiedInSlices)
{
    ReceiveBuffers buffers{};
    buffers[kOther] = {1, 64 << 10};
    Network net(0, kFullCaps, {}, 64u << 20, buffers);
    const Frame frame(64, 0);
    for (unsigned i = 0; i < 600; i++)
        Network::deliver(net.b, frame);
    net.b.host.clock_ns += 1000 * kMs;
    net.b.host.deadline_ns = UINT64_MAX;
    unsigned entries = 0;
    const uint64_t before = net.b.device.work_done();
    net.b.device.timer();
    EXPECT_EQ(net.b.host.deadline_ns, UINT64_MAX);   // what is due already needs no timer
    for (; net.b.device.has_work() && entries < 1000; entries++) {
        const uint64_t at = net.b.device.work_done();
        net.b.device.run();
        EXPECT_LE(net.b.device.work_done() - at, 2 * kSlice + kStep);
    }
    EXPECT_GE(net.b.device.work_done() - before, 599u);
    EXPECT_GT(entries, 0u);
    EXPECT_EQ(net.b.host.deadline_ns, UINT64_MAX);
}

class EventSliceTest : public DeviceTest {};

// A full EQ is emptied, and there is room for the events of many CQs at once.
TEST_F(EventSliceTest, EventsThatWaitedAreWrittenInSlices)
{
    TestDriver::Layout layout;
    layout.log_cqs = 10;
    driver.layout = layout;
    driver.start();
    TestDriver::Eq small = driver.create_eq(10, 1);
    // All of it is software's: no event can be written.
    for (unsigned i = 0; i < 1024; i++)
        host.as<hghca_eqe>(small.buffer.dma)[i].owner = 0;
    constexpr unsigned kCqs = 600;
    for (unsigned i = 0; i < kCqs; i++) {
        const TestDriver::Cq cq = driver.create_cq(1, small.eqn);
        driver.arm(cq);
        hghca_cqe cqe{};
        ASSERT_EQ(device.cqs->post(Cqn(cq.cqn), cqe, false), Completed::Yes);
    }
    for (unsigned i = 0; i < 1024; i++)
        host.as<hghca_eqe>(small.buffer.dma)[i].owner = HGHCA_CQ_ENTRY_OWNER_HW;
    const uint64_t before = device.work_done();
    driver.arm(small);
    EXPECT_LE(device.work_done() - before, kSlice + kStep);
    EXPECT_TRUE(device.has_work());
    while (device.has_work()) {
        const uint64_t at = device.work_done();
        device.run();
        EXPECT_LE(device.work_done() - at, 2 * kSlice + kStep);
    }
    hghca_eqe eqe;
    uint32_t last = 0;
    unsigned n = 0;
    for (; driver.poll(small, eqe); n++) {
        EXPECT_GT(be32(eqe.event.comp.cqn), last);
        last = be32(eqe.event.comp.cqn);
    }
    EXPECT_EQ(n, kCqs);
}

// Its events wait for more completions, and all of them no longer.
TEST_F(EventSliceTest, ModeratedEventsAreSentInSlices)
{
    TestDriver::Layout layout;
    layout.log_cqs = 10;
    driver.layout = layout;
    driver.start();
    TestDriver::Eq eq = driver.create_eq(10, 1);
    constexpr unsigned kCqs = 600;
    for (unsigned i = 0; i < kCqs; i++) {
        const TestDriver::Cq cq = driver.create_cq(1, eq.eqn);
        ASSERT_EQ(device.cqs->moderate(Cqn(cq.cqn), 10, 1000), HGHCA_CMD_STAT_OK);
        driver.arm(cq);
        hghca_cqe cqe{};
        ASSERT_EQ(device.cqs->post(Cqn(cq.cqn), cqe, false), Completed::Yes);
    }
    host.clock_ns += 10 * kMs;
    const uint64_t before = device.work_done();
    device.timer();
    EXPECT_LE(device.work_done() - before, 2 * kSlice + kStep);
    EXPECT_TRUE(device.has_work());
    unsigned slices = 0;
    while (device.has_work() && ++slices < 1000)
        device.run();
    EXPECT_EQ(take_events(driver, eq, HGHCA_EVENT_COMP), kCqs);
}

// Their timers end, but software has seen all and waits for what comes next.
TEST_F(EventSliceTest, AModeratedCqThatHasNothingToTellIsAUnit)
{
    driver.start();
    TestDriver::Eq eq = driver.create_eq(10, 1);
    constexpr unsigned kCqs = 10;
    for (unsigned i = 0; i < kCqs; i++) {
        TestDriver::Cq cq = driver.create_cq(1, eq.eqn);
        ASSERT_EQ(device.cqs->moderate(Cqn(cq.cqn), 10, 1000), HGHCA_CMD_STAT_OK);
        driver.arm(cq);
        hghca_cqe cqe{};
        ASSERT_EQ(device.cqs->post(Cqn(cq.cqn), cqe, false), Completed::Yes);
        ASSERT_TRUE(driver.poll(cq, cqe));
        driver.arm(cq);
    }
    host.clock_ns += 10 * kMs;
    const uint64_t before = device.work_done();
    device.timer();
    EXPECT_EQ(device.work_done() - before, kCqs);
    EXPECT_EQ(take_events(driver, eq, HGHCA_EVENT_COMP), 0u);
}

// Without a doorbell record the owner of each CQE says what is consumed. All of them are not looked at.
TEST_F(EventSliceTest, ResizingAFullCqLooksAtFewOfItsEntries)
{
    driver.start();
    constexpr unsigned kLog = 15;
    TestDriver::Mr buffer = driver.cq_buffer(kLog), larger = driver.cq_buffer(kLog);
    ASSERT_EQ(driver.post(HGHCA_CMD_SW2HW_CQ, driver.cqc_mailbox(7, kLog, buffer.key, driver.async.eqn), 7), HGHCA_CMD_STAT_OK);
    hghca_cqe cqe{};
    for (unsigned i = 0; i < 1u << kLog; i++)
        ASSERT_EQ(device.cqs->post(Cqn(7), cqe, false), Completed::Yes);
    const uint64_t before = device.work_done();
    ASSERT_EQ(device.cqs->resize(Cqn(7), kLog - 1, Key(larger.key)), HGHCA_CMD_STAT_BAD_SIZE);
    ASSERT_EQ(device.cqs->resize(Cqn(7), kLog, Key(larger.key)), HGHCA_CMD_STAT_OK);
    // Each look at another page is one.
    EXPECT_LT(device.work_done() - before, 64u);
}

// Each SGE names another region, and none of them has MTTs: to look for it is all the work there is.
TEST(Slice, LooksForContextsAreWork)
{
    constexpr unsigned kSges = 28, kWqes = 64;
    TestDriver::Layout layout;
    layout.log_mpts = 12;
    Network net(1, kFullCaps, layout);
    Endpoint::Options options;
    options.stride_log = 9;
    Endpoint x(net.a, options);
    x.to_rtr(x);
    x.to_rts();
    std::vector<Wqe> list;
    for (unsigned i = 0; i < kWqes; i++) {
        Wqe wqe = Wqe(HGHCA_OPCODE_RDMA_WRITE).raddr(x.va(4096), x.buffer.key);
        for (unsigned n = 0; n < kSges; n++) {
            TestDriver &d = net.a.driver;
            const uint32_t key = d.new_key();
            hghca_mpt mpt = d.mpt_mailbox(key, x.buffer.dma, 64, 0);
            mpt.flags |= be32(HGHCA_MPT_FLAG_PHYSICAL);
            ASSERT_EQ(d.post(HGHCA_CMD_SW2HW_MPT, mpt, d.mpt_index(key)), 0);
            wqe.data({1, key, x.buffer.dma});
        }
        list.push_back(wqe);
    }
    const Counters &c = net.a.counters();
    unsigned slices = 0;
    uint64_t missed = c.context_misses, done = net.a.device.work_done(), most = 0;
    const uint64_t first = missed;
    auto slice_over = [&] {
        EXPECT_GE(net.a.device.work_done() - done, c.context_misses - missed);
        most = std::max(most, c.context_misses - missed);
        missed = c.context_misses;
        done = net.a.device.work_done();
        slices++;
    };
    x.post(list);
    for (slice_over(); net.a.device.has_work() && slices < 1000; slice_over())
        net.a.device.run();
    EXPECT_EQ(x.poll_all().size(), kWqes);
    EXPECT_GE(missed - first, kWqes * kSges);
    EXPECT_LE(most, kSlice + kStep);
    EXPECT_GT(slices, kWqes * kSges / (kSlice + kStep));
}

// However long the message and its list are: a packet looks at what it takes.
TEST_F(SliceTest, APacketLooksAtWhatItTakes)
{
    constexpr uint32_t kMtu = 1024, kSge = 28000;
    Endpoint::Options options;
    options.stride_log = 10;
    Pair p(net.a, net.b, options);
    auto total = [&](const Wqe &wqe) {
        const uint64_t before = net.a.device.work_done() + net.b.device.work_done();
        p.a.post(wqe);
        net.settle();
        const auto done = p.a.poll_all();
        EXPECT_EQ(done.size(), 1u);
        EXPECT_FALSE(done.front().error);
        return net.a.device.work_done() + net.b.device.work_done() - before;
    };
    // A packet is work for both sides and crosses a page on each at times; its acknowledgement is, too.
    constexpr uint64_t kEach = 12;
    EXPECT_LE(total(write_to(p.a.sge(0, 32 * kSge), p.b.va(0), p.b.buffer.key)), 32 * kSge / kMtu * kEach);
    Wqe list = Wqe(HGHCA_OPCODE_RDMA_WRITE).raddr(p.b.va(0), p.b.buffer.key);
    for (uint32_t i = 0; i < 32; i++)
        list.data(p.a.sge(i * kSge, kSge));
    EXPECT_LE(total(list), 32 * kSge / kMtu * kEach);
    // Nothing in a packet is smaller than a byte: 32 entries, each of them in two pages.
    Wqe small = Wqe(HGHCA_OPCODE_RDMA_WRITE).raddr(p.b.va(0), p.b.buffer.key);
    for (uint32_t i = 0; i < 32; i++)
        small.data(p.a.sge((i + 1) * 8192 - 1, 2));
    const uint64_t pages = total(small);
    EXPECT_GE(pages, 64u);
    EXPECT_LE(pages, 64 + 2 * kEach);
}

// What has changed goes back to ICM when its place is wanted.
TEST(Slice, WritesOfContextsAreWork)
{
    FakeHost host;
    Device device(host, test_config(host));
    TestDriver driver(host, device);
    driver.start();
    constexpr unsigned kRegions = 100;
    for (unsigned i = 0; i < kRegions; i++)
        driver.create_mr(0, 4096);
    const uint64_t before = device.work_done();
    device.memory->trim(0);
    EXPECT_GE(device.work_done() - before, kRegions);
    EXPECT_LE(device.work_done() - before, kRegions + 2);   // the EQ's, too
}

class CommandWorkTest : public DeviceTest {
protected:
    uint64_t unmap(uint32_t space, uint64_t address, uint32_t pages)
    {
        const uint64_t before = device.work_done();
        EXPECT_EQ(driver.unmap_icm(space, address, pages), HGHCA_CMD_STAT_OK);
        return device.work_done() - before;
    }
};

// Each page is a unit of work, however many one command has.
TEST_F(CommandWorkTest, PagesOfIcmAreCounted)
{
    constexpr uint32_t kChunks = 256, kPages = 4095;
    hghca_icm_chunk chunks[kChunks];
    for (uint32_t i = 0; i < kChunks; i++)
        chunks[HGHCA_ICM_CHUNK_SLOT(i)] = {be64(uint64_t(i) * kPages * 4096), be64(FakeHost::kBase | kPages)};
    driver.reset();
    const uint64_t before = device.work_done();
    ASSERT_EQ(driver.post(HGHCA_CMD_MAP_ICM, chunks, kChunks, HGHCA_ICM_TPT), HGHCA_CMD_STAT_OK);
    EXPECT_EQ(device.work_done() - before, kChunks * kPages);
    EXPECT_EQ(unmap(HGHCA_ICM_TPT, 0, 1), 1u);
    EXPECT_EQ(unmap(HGHCA_ICM_TPT, 4096, kChunks * kPages - 1), kChunks * kPages - 1);
}

// 512 MTTs are a unit, also where there are fewer.
TEST_F(CommandWorkTest, MttsAreCounted)
{
    driver.start();
    const std::vector<uint64_t> list(100, FakeHost::kBase);
    const uint64_t before = device.work_done();
    ASSERT_EQ(driver.write_mtt(8, list.data(), 100), HGHCA_CMD_STAT_OK);
    EXPECT_EQ(device.work_done() - before, 1u);
    ASSERT_EQ(driver.command(HGHCA_CMD_CLEAR_MTT, 1024, 1025).status, HGHCA_CMD_STAT_OK);
    EXPECT_EQ(device.work_done() - before, 1u + 3u);
}

// The contexts that stand in a page, and not all that there are: who unmaps page by page does not pay for the square.
TEST_F(CommandWorkTest, AnUnmappedPageCostsItsContextsAlone)
{
    constexpr uint32_t kRegions = 4000, kInPage = 4096 / 64, kPages = 128, kLooks = 2 * kInPage / 16;
    driver.layout.log_mpts = 13;
    driver.start();
    for (unsigned i = 0; i < kRegions; i++)
        driver.create_mr_without_pages(0, 4096);
    EXPECT_LE(unmap(HGHCA_ICM_TPT, driver.layout.mpt + (kPages - 1) * 4096, 1), 1 + kLooks);
    // Written there, and dropped.
    const uint64_t full = unmap(HGHCA_ICM_TPT, driver.layout.mpt + 10 * 4096, 1);
    EXPECT_GE(full, 1 + 2 * kInPage);
    EXPECT_LE(full, 1 + 2 * kInPage + kLooks);
    uint64_t sum = full;
    for (unsigned page = 0; page < kPages - 1; page++)
        if (page != 10)
            sum += unmap(HGHCA_ICM_TPT, driver.layout.mpt + page * 4096, 1);
    EXPECT_LE(sum, 2 * (kRegions + 1) + kPages * (1 + kLooks));
    EXPECT_EQ(device.memory->find(Key(5 << 8 | 0xab)), nullptr);
}

// The other way round: few contexts, and a range of many indices. MTTs stand in the same space.
TEST_F(CommandWorkTest, ALargeRangeCostsWhatIsCached)
{
    driver.layout.log_mpts = 13;
    driver.start();
    for (unsigned i = 0; i < 20; i++)
        driver.create_mr_without_pages(0, 4096);
    // Each of them is written and dropped, and looked at for both.
    EXPECT_EQ(unmap(HGHCA_ICM_TPT, driver.layout.mpt, 128), 128 + 2 * 21 + 2 * (21 / 16));
}

// Each CQ waits once, however often it has something to report.
TEST_F(CommandWorkTest, AnEqThatGoesCostsTheCqsThatWaitAndACqCostsNone)
{
    constexpr unsigned kCqs = 800;
    driver.layout.log_cqs = 10;
    driver.start();
    TestDriver::Eq small = driver.create_eq(2, 1);
    for (unsigned i = 0; i < 4; i++)
        host.as<hghca_eqe>(small.buffer.dma)[i].owner = 0;
    std::vector<TestDriver::Cq> cqs;
    for (unsigned i = 0; i < kCqs; i++)
        cqs.push_back(driver.create_cq(4, small.eqn));
    const hghca_cqe cqe{};
    for (unsigned round = 0; round < 8; round++)
        for (TestDriver::Cq &cq : cqs) {
            driver.arm(cq);
            ASSERT_EQ(device.cqs->post(Cqn(cq.cqn), cqe, false), Completed::Yes);
        }
    auto cost = [&](uint32_t op, uint32_t number) {
        const uint64_t before = device.work_done();
        EXPECT_EQ(driver.command(op, 0, number).status, HGHCA_CMD_STAT_OK);
        return device.work_done() - before;
    };
    EXPECT_LE(cost(HGHCA_CMD_HW2SW_CQ, cqs[kCqs / 2].cqn), 2u);
    const uint64_t all = cost(HGHCA_CMD_HW2SW_EQ, small.eqn);
    EXPECT_GE(all, (kCqs - 1) / 16);
    EXPECT_LE(all, (kCqs - 1) / 16 + 2);
}

// What one step costs: the units are counted, and none of them twice. Slices are long here, so that nothing is divided.
class WorkUnitTest : public ::testing::Test {
protected:
    static constexpr unsigned kMany = 10;

    WorkUnitTest() : usual_(std::exchange(Node::slice_work, 100000)) { Node::slice_work = usual_; }

    // Queues of a page or two, and CQs that hold all.
    static Endpoint::Options small(uint8_t service = HGHCA_QP_ST_RC)
    {
        Endpoint::Options options;
        options.service = service;
        options.sq_wqes = options.rq_wqes = 16;
        options.cq_log = 5;
        options.buffer_bytes = 4096;
        return options;
    }

    const uint32_t usual_;
    Network net;
};

TEST_F(WorkUnitTest, ADatagramIsAWqeAndAPacket)
{
    Endpoint ud(net.a, small(HGHCA_QP_ST_UD)), peer(net.b, small(HGHCA_QP_ST_UD));
    const Wqe wqe = Wqe(HGHCA_OPCODE_SEND).ud(peer.qp.qpn, 0x11111111, 2);
    auto of = [&](unsigned n) { return cost(net.a.device, [&] { ud.post(std::vector<Wqe>(n, wqe)); }); };
    of(1);   // whatever is looked at for the first time
    const uint64_t one = of(1);
    // The page of the queue was looked up before.
    EXPECT_EQ(of(1 + kMany) - one, 2 * kMany);
}

TEST_F(WorkUnitTest, ARawFrameIsAWqeAndAPacket)
{
    Endpoint x(net.a, small(HGHCA_QP_ST_RAW));
    std::memset(x.at(0), 0x22, 64);
    const Wqe wqe = send(x.sge(0, 64));
    auto of = [&](unsigned n) { return cost(net.a.device, [&] { x.post(std::vector<Wqe>(n, wqe)); }); };
    of(1);
    const uint64_t one = of(1);
    // The MTT of the frame is looked at, too.
    EXPECT_EQ(of(1 + kMany) - one, (2 + 1) * kMany);
}

// Executed by the HCA itself: it is begun and completed, and no packet counts.
TEST_F(WorkUnitTest, AConnectedWqeIsCompletedToo)
{
    Pair p(net.a, net.b, small());
    const Wqe nop(HGHCA_OPCODE_NOP);
    auto of = [&](unsigned n) { return cost(net.a.device, [&] { p.a.post(std::vector<Wqe>(n, nop)); }); };
    of(1);
    const uint64_t one = of(1);
    EXPECT_EQ(of(1 + kMany) - one, 2 * kMany);
    EXPECT_EQ(p.a.poll_all().size(), kMany + 3);
}

// QPs that have failed while they waited for the link have nothing to send, and still their turns.
TEST_F(WorkUnitTest, ATurnWithNothingToSend)
{
    std::vector<std::unique_ptr<Endpoint>> all;
    net.a.host.link_full = true;
    for (unsigned i = 0; i < kMany; i++) {
        all.push_back(std::make_unique<Endpoint>(net.a, small(HGHCA_QP_ST_UD)));
        all[i]->post(Wqe(HGHCA_OPCODE_SEND).ud(1, 0x11111111, 2));
    }
    for (auto &x : all)
        x->modify(HGHCA_CMD_2ERR_QPEE);
    net.a.host.link_full = false;
    EXPECT_EQ(cost(net.a.device, [&] { net.a.device.link_ready(); }), kMany);
}

// The timers of QPs that wait for nothing any more.
TEST_F(WorkUnitTest, ATimerThatEnds)
{
    std::vector<std::unique_ptr<Pair>> all;
    net.filter = [](const Node &, Frame &) { return Fate{0}; };
    for (unsigned i = 0; i < kMany; i++) {
        all.push_back(std::make_unique<Pair>(net.a, net.b, small()));
        all[i]->a.post(Wqe(HGHCA_OPCODE_RDMA_WRITE).raddr(all[i]->b.va(0), all[i]->b.buffer.key));
        net.pump();
        all[i]->a.modify(HGHCA_CMD_2ERR_QPEE);
    }
    net.a.host.clock_ns += 1000 * kMs;
    EXPECT_EQ(cost(net.a.device, [&] { net.a.device.timer(); }), kMany);
}

TEST_F(WorkUnitTest, AFlushedWqe)
{
    net.a.host.link_full = true;
    auto of = [this](unsigned sends, unsigned receives) {
        Pair p(net.a, net.b, small());
        if (sends)
            p.a.post(std::vector<Wqe>(sends, Wqe(HGHCA_OPCODE_RDMA_WRITE).raddr(p.b.va(0), p.b.buffer.key)));
        for (unsigned i = 0; i < receives; i++)
            p.a.post_recv(p.a.sge(0, 8));
        return cost(net.a.device, [&] { p.a.modify(HGHCA_CMD_2ERR_QPEE); });
    };
    EXPECT_EQ(of(2 + kMany, 0) - of(2, 0), kMany);
    EXPECT_EQ(of(0, 2 + kMany) - of(0, 2), kMany);
}

// The least slice still gets on.
TEST(Slice, ASliceOfOneUnitGetsEverythingDone)
{
    const uint32_t usual = std::exchange(Node::slice_work, 1);
    Network net;
    Node::slice_work = usual;
    Pair p(net.a, net.b, {});
    p.a.fill(0, 20000, 3);
    p.b.fill(50000, 20000, 4);
    p.b.post_recv(p.b.sge(0, 20000));
    p.a.post({send(p.a.sge(0, 20000)), read_from(p.a.sge(50000, 20000), p.b.va(50000), p.b.buffer.key)});
    net.settle(10 * kMs);
    EXPECT_EQ(p.a.poll_all().size(), 2u);
    EXPECT_EQ(p.b.poll_all().size(), 1u);
    EXPECT_TRUE(p.b.holds(0, 20000, 3));
    EXPECT_TRUE(p.a.holds(50000, 20000, 4));
    // The command flushes one itself, and leaves the others to the slices behind it.
    for (unsigned i = 0; i < 3; i++)
        p.a.post_recv(p.a.sge(0, 8));
    p.a.modify(HGHCA_CMD_2ERR_QPEE);
    EXPECT_TRUE(net.a.device.has_work());
    net.pump();
    EXPECT_EQ(p.a.poll_all().size(), 3u);
}

// ---- the work of the last doorbell

TEST(RungQueue, HasWorkUntilItsWqesAreComplete)
{
    Network net;
    Pair p(net.a, net.b, {});
    EXPECT_FALSE(net.a.device.rung_has_work());
    p.a.post(Wqe(HGHCA_OPCODE_RDMA_WRITE).raddr(p.b.va(0), p.b.buffer.key));
    EXPECT_TRUE(net.a.device.rung_has_work());     // no acknowledgement yet
    net.pump();
    EXPECT_EQ(p.a.poll_all().size(), 1u);
    EXPECT_FALSE(net.a.device.rung_has_work());
}

TEST(RungQueue, IsThatOfTheLastDoorbell)
{
    Network net;
    Pair p(net.a, net.b, {}), q(net.a, net.b, {});
    net.filter = [](const Node &, Frame &) { return Fate{0}; };
    p.a.post(Wqe(HGHCA_OPCODE_RDMA_WRITE).raddr(p.b.va(0), p.b.buffer.key));
    q.a.post(Wqe(HGHCA_OPCODE_NOP));
    EXPECT_FALSE(net.a.device.rung_has_work());
    p.a.post(Wqe(HGHCA_OPCODE_NOP));
    EXPECT_TRUE(net.a.device.rung_has_work());
    // A doorbell of an EQ has no such queue.
    net.a.driver.eq_doorbell(net.a.driver.async, HGHCA_EQ_ARM_UPDATE);
    EXPECT_FALSE(net.a.device.rung_has_work());
}

// The QP has had no turn: its WQE was not looked at.
TEST(RungQueue, HasWorkWhileItWaitsForItsTurn)
{
    Network net;
    Pair p(net.a, net.b, {}), q(net.a, net.b, {});
    net.a.host.link_full = true;
    p.a.post(Wqe(HGHCA_OPCODE_RDMA_WRITE).raddr(p.b.va(0), p.b.buffer.key));
    q.a.post(Wqe(HGHCA_OPCODE_RDMA_WRITE).raddr(q.b.va(0), q.b.buffer.key));
    EXPECT_TRUE(net.a.device.rung_has_work());
    net.a.host.link_full = false;
    net.a.device.link_ready();
    net.pump();
    EXPECT_FALSE(net.a.device.rung_has_work());
}

TEST(RungQueue, HasNoWorkOnceItsContextIsGoneOrTheDeviceHasFailed)
{
    Network net(2);
    Pair p(net.a, net.b, {}), q(net.a, net.b, {}), r(net.a, net.b, {});
    net.pump();   // QPs that have just come to RTS have a turn
    net.filter = [](const Node &, Frame &) { return Fate{0}; };
    p.a.post(Wqe(HGHCA_OPCODE_RDMA_WRITE).raddr(p.b.va(0), p.b.buffer.key));
    EXPECT_TRUE(net.a.device.rung_has_work());
    hghca_qpc context{};   // those of the others take both places of the cache
    for (const Endpoint *other : {&q.a, &r.a})
        net.a.driver.must(net.a.driver.query(HGHCA_CMD_QUERY_QP, context, other->qp.qpn), "QUERY_QP");
    const uint64_t misses = net.a.counters().context_misses;
    EXPECT_FALSE(net.a.device.rung_has_work());
    EXPECT_EQ(net.a.counters().context_misses, misses);
    q.a.post(Wqe(HGHCA_OPCODE_RDMA_WRITE).raddr(q.b.va(0), q.b.buffer.key));
    EXPECT_TRUE(net.a.device.rung_has_work());
    net.a.device.fail("a test", HGHCA_HEALTH_HW_FATAL_ERR);
    EXPECT_FALSE(net.a.device.rung_has_work());
}

}  // namespace
}  // namespace hghca::test::work_test
