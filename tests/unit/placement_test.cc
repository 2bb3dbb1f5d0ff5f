// SPDX-License-Identifier: GPL-2.0-or-later
// FLUSH and ATOMIC WRITE (interface document, 4.22; IBA vol 1, annex A19).
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "shared_queue.h"

namespace hghca::test::placement_test {
namespace {

using Options = Endpoint::Options;

constexpr uint32_t kAll = TestDriver::kRw | HGHCA_ACCESS_FLUSH_GLOBAL;
constexpr uint32_t kRegion = 8192;

Options placing()
{
    Options options;
    options.access = kAll & ~uint32_t(HGHCA_ACCESS_LOCAL_WRITE);
    return options;
}

// A pair, and a region at b that may be flushed.
struct Placement {
    explicit Placement(Network &net, const Options &options = placing())
        : p(net.a, net.b, options), region(net.b.driver.create_mr(0x9000000000, kRegion, kAll))
    {
    }
    uint8_t *at(uint64_t offset) { return p.b.node.host.at(region.dma + offset); }
    uint64_t &word(uint64_t offset) { return *reinterpret_cast<uint64_t *>(at(offset)); }
    Wqe store(uint64_t to, uint64_t from = 0) const
    {
        return Wqe(HGHCA_OPCODE_ATOMIC_WRITE).raddr(region.va + to, region.key).data(p.a.sge(from, 8));
    }
    Wqe flush(uint64_t at, uint32_t length, uint32_t type = HGHCA_FLUSH_GLOBAL,
              uint32_t selectivity = HGHCA_FLUSH_RANGE) const
    {
        return Wqe(HGHCA_OPCODE_FLUSH).raddr(region.va + at, region.key).flush(length, type, selectivity);
    }
    Pair p;
    TestDriver::Mr region;
};

class Placing : public ::testing::Test {
protected:
    explicit Placing(uint32_t cache_entries = 0) : net(cache_entries) {}
    // All is done, and well: the opcodes of the completions.
    static void expect_done(Endpoint &e, const std::vector<uint8_t> &opcodes)
    {
        auto all = e.poll_all();
        ASSERT_EQ(all.size(), opcodes.size());
        for (size_t i = 0; i < all.size(); i++) {
            EXPECT_FALSE(all[i].error) << i << ": " << int(all[i].syndrome);
            EXPECT_EQ(all[i].opcode, opcodes[i]);
        }
    }
    static void expect_failed(Endpoint &e, uint8_t syndrome)
    {
        auto c = e.poll();
        ASSERT_TRUE(c);
        EXPECT_EQ(int(c->syndrome), int(syndrome));
        EXPECT_EQ(e.state(), unsigned(HGHCA_QP_STATE_ERR));
    }
    Network net;
};

TEST_F(Placing, AnAtomicWriteStoresEightBytes)
{
    Placement s(net);
    s.p.a.fill(0, 64, 3);
    for (uint64_t at : {0u, 8u, 4088u, 4096u, 8184u}) {
        s.word(at) = 0;
        s.p.a.post(s.store(at, 16));
        net.pump();
        auto c = s.p.a.poll();
        ASSERT_TRUE(c);
        EXPECT_FALSE(c->error);
        EXPECT_EQ(c->opcode, HGHCA_OPCODE_ATOMIC_WRITE);
        EXPECT_EQ(c->bytes, 8u);
        EXPECT_EQ(std::memcmp(s.at(at), s.p.a.at(16), 8), 0);
    }
    EXPECT_FALSE(s.p.b.poll());   // the peer's software hears nothing of it
    EXPECT_EQ(net.b.counters().rx_write_requests, 5u);
}

TEST_F(Placing, InlineOrOfSeveralPieces)
{
    Placement s(net);
    s.p.a.fill(0, 64, 5);
    s.p.a.post(Wqe(HGHCA_OPCODE_ATOMIC_WRITE).raddr(s.region.va, s.region.key).inline_data({1, 2, 3, 4, 5, 6, 7, 8}));
    s.p.a.post(Wqe(HGHCA_OPCODE_ATOMIC_WRITE).raddr(s.region.va + 8, s.region.key)
                   .data({s.p.a.sge(0, 3), s.p.a.sge(10, 5)}));
    net.pump();
    expect_done(s.p.a, {HGHCA_OPCODE_ATOMIC_WRITE, HGHCA_OPCODE_ATOMIC_WRITE});
    EXPECT_EQ(s.word(0), le64(0x0807060504030201));
    EXPECT_EQ(std::memcmp(s.at(8), s.p.a.at(0), 3), 0);
    EXPECT_EQ(std::memcmp(s.at(11), s.p.a.at(10), 5), 0);
}

TEST_F(Placing, WithoutPointersToo)
{
    Placement s(net);
    net.b.host.copy_only = true;
    net.b.device.dma_changed();
    s.p.a.fill(0, 8, 9);
    s.p.a.post({s.store(24), s.flush(0, 100)});
    net.pump();
    expect_done(s.p.a, {HGHCA_OPCODE_ATOMIC_WRITE, HGHCA_OPCODE_FLUSH});
    EXPECT_EQ(std::memcmp(s.at(24), s.p.a.at(0), 8), 0);
    EXPECT_EQ(net.b.host.updates, 1u) << "the eight bytes at one stroke, not by copy";
}

TEST_F(Placing, AFlushIsDoneWhenAllBeforeItIs)
{
    Placement s(net);
    s.p.a.fill(0, 5000, 1);
    s.p.a.post({Wqe(HGHCA_OPCODE_RDMA_WRITE).raddr(s.region.va, s.region.key).data(s.p.a.sge(0, 5000)),
                s.flush(0, 5000), s.store(5000), s.flush(0, kRegion, HGHCA_FLUSH_GLOBAL, HGHCA_FLUSH_REGION)});
    net.pump();
    auto all = s.p.a.poll_all();
    ASSERT_EQ(all.size(), 4u);
    EXPECT_EQ(all[1].opcode, HGHCA_OPCODE_FLUSH);
    EXPECT_EQ(all[1].bytes, 0u);
    EXPECT_EQ(std::memcmp(s.at(0), s.p.a.at(0), 5000), 0);
}

TEST_F(Placing, RangesAndRegions)
{
    Placement s(net);
    // A range of no bytes; all of the region, by range and by name: then the range is not looked at.
    s.p.a.post({s.flush(0, 0), s.flush(0, kRegion), s.flush(100, kRegion - 100),
                s.flush(1u << 30, 77, HGHCA_FLUSH_GLOBAL, HGHCA_FLUSH_REGION)});
    net.pump();
    expect_done(s.p.a, std::vector<uint8_t>(4, HGHCA_OPCODE_FLUSH));
}

TEST_F(Placing, NoMoreAtATimeThanReads)
{
    Options options = placing();
    options.rd_atomic = options.dest_rd_atomic = 2;
    Placement s(net, options);
    for (int i = 0; i < 20; i++)
        s.p.a.post(i % 2 ? s.store(8 * uint64_t(i)) : s.flush(0, 10));
    net.pump();
    EXPECT_EQ(s.p.a.poll_all().size(), 20u);
    EXPECT_EQ(s.p.a.state(), unsigned(HGHCA_QP_STATE_RTS));
}

TEST_F(Placing, OnXrc)
{
    Options from = placing(), to = placing();
    from.service = to.service = HGHCA_QP_ST_XRC;
    to.xrcd = 5;
    const auto cq = net.b.driver.create_cq(6);
    SharedQueue queue(net.b, 4, 7, TestDriver::kPd, 5, cq.cqn);
    Pair p(net.a, net.b, from, to);
    auto region = net.b.driver.create_mr(0x9000000000, kRegion, kAll);
    const uint32_t flags = HGHCA_WQE_CQ_UPDATE | field_put(HGHCA_WQE_XRC_SRQN_MASK, queue.srq.srqn);
    p.a.fill(0, 8, 2);
    p.a.post({Wqe(HGHCA_OPCODE_ATOMIC_WRITE, flags).raddr(region.va, region.key).data(p.a.sge(0, 8)),
              Wqe(HGHCA_OPCODE_FLUSH, flags).raddr(region.va, region.key).flush(8)});
    net.pump();
    expect_done(p.a, {HGHCA_OPCODE_ATOMIC_WRITE, HGHCA_OPCODE_FLUSH});
    EXPECT_EQ(std::memcmp(net.b.host.at(region.dma), p.a.at(0), 8), 0);
}

// A reader at the same time sees the value before or the one after, never a mixture.
TEST_F(Placing, NobodySeesHalfAValue)
{
    Placement s(net);
    std::memset(s.at(0), 0, 8);
    std::memset(s.p.a.at(0), 0xff, 8);
    std::memset(s.p.a.at(8), 0x00, 8);
    std::atomic<bool> stop = false;
    unsigned mixed = 0, seen = 0;
    std::thread reader([&] {
        while (!stop) {
            const uint64_t value = __atomic_load_n(&s.word(0), __ATOMIC_ACQUIRE);
            mixed += value && ~value;
            seen++;
        }
    });
    for (int i = 0; i < 20000; i++) {
        s.p.a.post(s.store(0, 8 * uint64_t(i % 2)));
        net.pump();
        s.p.a.poll_all();
    }
    stop = true;
    reader.join();
    EXPECT_EQ(mixed, 0u);
    EXPECT_GT(seen, 0u);
}

// ---- losses: each packet and each answer once

class Lossy : public Placing, public ::testing::WithParamInterface<unsigned> {};

TEST_P(Lossy, EachPacketLostOnce)
{
    Placement s(net);
    unsigned n = 0;
    net.filter = [&](const Node &, Frame &) { return Fate{n++ == GetParam() ? 0u : 1u}; };
    s.p.a.fill(0, 64, 4);
    std::vector<Wqe> list;
    for (uint64_t i = 0; i < 4; i++) {
        list.push_back(s.store(8 * i, 8 * i));
        list.push_back(s.flush(8 * i, 8));
    }
    s.p.a.post(list);
    net.settle();
    EXPECT_EQ(s.p.a.poll_all().size(), 8u);
    EXPECT_EQ(s.p.a.state(), unsigned(HGHCA_QP_STATE_RTS));
    EXPECT_EQ(std::memcmp(s.at(0), s.p.a.at(0), 32), 0);
}
INSTANTIATE_TEST_SUITE_P(Placement, Lossy, ::testing::Range(0u, 16u));

// What was executed is not executed again: another value stands there by then.
TEST_F(Placing, ADuplicateIsAnsweredAndNotExecuted)
{
    Placement s(net);
    bool lost = false;
    net.filter = [&](const Node &from, Frame &) {
        if (from.number != 2 || lost)
            return Fate{1};
        lost = true;
        s.word(0) = 0x1234;   // software at b changes it before the request comes again
        return Fate{0};
    };
    s.p.a.fill(0, 8, 4);
    s.p.a.post(s.store(0));
    net.settle();
    expect_done(s.p.a, {HGHCA_OPCODE_ATOMIC_WRITE});
    EXPECT_TRUE(lost);
    EXPECT_EQ(s.word(0), 0x1234u);
    EXPECT_GT(net.b.counters().duplicate_request, 0u);
}

// ---- what must be refused

TEST_F(Placing, RefusedByThePeer)
{
    struct {
        const char *what;
        std::function<Wqe(Placement &)> wqe;
        uint8_t syndrome;
    } cases[] = {
        {"store, not aligned", [](Placement &s) { return s.store(4); }, HGHCA_SYNDROME_REMOTE_INVAL_REQ_ERR},
        {"store beyond the region", [](Placement &s) { return s.store(kRegion); }, HGHCA_SYNDROME_REMOTE_ACCESS_ERR},
        {"store, wrong key",
         [](Placement &s) {
             return Wqe(HGHCA_OPCODE_ATOMIC_WRITE).raddr(s.region.va, s.region.key ^ 1).data(s.p.a.sge(0, 8));
         },
         HGHCA_SYNDROME_REMOTE_ACCESS_ERR},
        {"flush beyond the region", [](Placement &s) { return s.flush(8000, 193); }, HGHCA_SYNDROME_REMOTE_ACCESS_ERR},
        {"flush over 2 GB", [](Placement &s) { return s.flush(0, 0x80000001); }, HGHCA_SYNDROME_REMOTE_INVAL_REQ_ERR},
        {"flush of no type", [](Placement &s) { return s.flush(0, 10, 0); }, HGHCA_SYNDROME_REMOTE_INVAL_REQ_ERR},
        {"flush to persistence", [](Placement &s) { return s.flush(0, 10, HGHCA_FLUSH_PERSISTENT); },
         HGHCA_SYNDROME_REMOTE_ACCESS_ERR},
        {"flush of both types", [](Placement &s) { return s.flush(0, 10, 3); }, HGHCA_SYNDROME_REMOTE_ACCESS_ERR},
        {"flush, unknown selectivity", [](Placement &s) { return s.flush(0, 10, HGHCA_FLUSH_GLOBAL, 2); },
         HGHCA_SYNDROME_REMOTE_INVAL_REQ_ERR},
        {"flush, wrong key",
         [](Placement &s) { return Wqe(HGHCA_OPCODE_FLUSH).raddr(s.region.va, s.region.key ^ 1).flush(10); },
         HGHCA_SYNDROME_REMOTE_ACCESS_ERR},
        {"flush of a region, wrong key",
         [](Placement &s) {
             return Wqe(HGHCA_OPCODE_FLUSH)
                 .raddr(s.region.va, s.region.key ^ 1)
                 .flush(10, HGHCA_FLUSH_GLOBAL, HGHCA_FLUSH_REGION);
         },
         HGHCA_SYNDROME_REMOTE_ACCESS_ERR},
        {"flush of a region without the right",
         [](Placement &s) { return Wqe(HGHCA_OPCODE_FLUSH).raddr(s.p.b.va(0), s.p.b.buffer.key).flush(10); },
         HGHCA_SYNDROME_REMOTE_ACCESS_ERR},
    };
    for (auto &c : cases) {
        SCOPED_TRACE(c.what);
        Placement s(net);
        std::memset(s.at(0), 0xee, kRegion);
        s.p.a.post(c.wqe(s));
        net.pump();
        expect_failed(s.p.a, c.syndrome);
        EXPECT_EQ(s.p.b.state(), unsigned(HGHCA_QP_STATE_ERR));
        for (unsigned i = 0; i < kRegion; i++)
            ASSERT_EQ(*s.at(i), 0xee) << i;
    }
}

TEST_F(Placing, AQpWithoutTheRight)
{
    for (auto [right, opcode] : {std::pair{HGHCA_ACCESS_REMOTE_WRITE, HGHCA_OPCODE_ATOMIC_WRITE},
                                 {HGHCA_ACCESS_FLUSH_GLOBAL, HGHCA_OPCODE_FLUSH}}) {
        Options options = placing();
        options.access &= ~uint32_t(right);
        Placement s(net, options);
        s.p.a.post(opcode == HGHCA_OPCODE_FLUSH ? s.flush(0, 8) : s.store(0));
        net.pump();
        expect_failed(s.p.a, HGHCA_SYNDROME_REMOTE_INVAL_REQ_ERR);
    }
}

TEST_F(Placing, MalformedWorkRequests)
{
    const struct {
        std::function<Wqe(Placement &)> wqe;
        uint8_t syndrome;
    } cases[] = {
        {[](Placement &s) {
             return Wqe(HGHCA_OPCODE_ATOMIC_WRITE).raddr(s.region.va, s.region.key).data(s.p.a.sge(0, 7));
         },
         HGHCA_SYNDROME_LOCAL_LENGTH_ERR},
        {[](Placement &s) {
             return Wqe(HGHCA_OPCODE_ATOMIC_WRITE).raddr(s.region.va, s.region.key).data(s.p.a.sge(0, 9));
         },
         HGHCA_SYNDROME_LOCAL_LENGTH_ERR},
        {[](Placement &s) { return Wqe(HGHCA_OPCODE_ATOMIC_WRITE).raddr(s.region.va, s.region.key); },
         HGHCA_SYNDROME_LOCAL_LENGTH_ERR},
        {[](Placement &s) { return s.flush(0, 8).data(s.p.a.sge(0, 8)); }, HGHCA_SYNDROME_LOCAL_QP_OP_ERR},
        {[](Placement &s) { return Wqe(HGHCA_OPCODE_FLUSH).raddr(s.region.va, s.region.key); },
         HGHCA_SYNDROME_LOCAL_QP_OP_ERR},
    };
    for (const auto &c : cases) {
        SCOPED_TRACE(&c - cases);
        Placement s(net);
        s.p.a.post(c.wqe(s));
        net.pump();
        expect_failed(s.p.a, c.syndrome);
    }
}

TEST_F(Placing, OtherServicesHaveNone)
{
    for (uint8_t opcode : {HGHCA_OPCODE_ATOMIC_WRITE, HGHCA_OPCODE_FLUSH}) {
        Options options;
        options.service = HGHCA_QP_ST_UC;
        Placement s(net, options);
        s.p.a.post(opcode == HGHCA_OPCODE_FLUSH ? s.flush(0, 8) : s.store(0));
        net.pump();
        auto c = s.p.a.poll();
        ASSERT_TRUE(c);
        EXPECT_EQ(int(c->syndrome), HGHCA_SYNDROME_LOCAL_QP_OP_ERR);
    }
}

TEST(PlacementBase, IsNothingWithoutTheCapability)
{
    Network net(0, kFullCaps & ~HGHCA_CAP_PLACEMENT);
    Placement s(net);
    s.p.a.post(s.flush(0, 8));
    net.pump();
    auto c = s.p.a.poll();
    ASSERT_TRUE(c);
    EXPECT_EQ(int(c->syndrome), HGHCA_SYNDROME_LOCAL_QP_OP_ERR);
    EXPECT_EQ(net.sent, 0u);
}

class PlacingOnASmallChip : public Placing {
protected:
    PlacingOnASmallChip() : Placing(1) {}
};

TEST_F(PlacingOnASmallChip, OutlivesEviction)
{
    Placement s(net), other(net);
    for (int i = 0; i < 50; i++) {
        SCOPED_TRACE(i);
        s.p.a.fill(0, 8, uint32_t(i));
        other.p.a.fill(0, 8, uint32_t(i + 1));
        s.p.a.post({s.store(0), s.flush(0, 8)});
        other.p.a.post({other.store(8), other.flush(0, 16)});
        net.pump();
        EXPECT_EQ(s.p.a.poll_all().size(), 2u);
        EXPECT_EQ(other.p.a.poll_all().size(), 2u);
        ASSERT_EQ(std::memcmp(s.at(0), s.p.a.at(0), 8), 0);
        ASSERT_EQ(std::memcmp(other.at(8), other.p.a.at(0), 8), 0);
    }
}

}  // namespace
}  // namespace hghca::test::placement_test
