// SPDX-License-Identifier: GPL-2.0-or-later
// WQEs that are kept until they complete: what the guest writes to them meanwhile, QPs whose WQEs take each other's
// place, and a QP that begins again.
#include <gtest/gtest.h>

#include <memory>

#include "transport/sent_wqes.h"
#include "verbs.h"

namespace hghca::test::sent_wqes_test {
namespace {

using Options = Endpoint::Options;

class SentWqesTest : public ::testing::Test {
protected:
    static void to_reset_and_init(Endpoint &e)
    {
        TestDriver &d = e.node.driver;
        TestDriver::must(d.to_reset(e.qp.qpn), "2RST");
        hghca_qpc c = d.init_qpc(e.qp, HGHCA_QP_ST_RC, e.cq, e.cq);
        c.pd = be32(TestDriver::kPd);
        c.limits = be32(e.options.access);
        c.mtu_msgmax = e.options.mtu_msgmax;
        TestDriver::must(d.modify(HGHCA_CMD_RST2INIT_QPEE, e.qp.qpn, c), "RST2INIT");
        e.sq_head = e.rq_head = 0;
    }

    Network net;
};

// A WRITE is the device's from its doorbell to its completion, which says what was sent.
TEST_F(SentWqesTest, CompletesAsItWasSent)
{
    Pair p(net.a, net.b, Options{});
    const Wqe wqe = write_to(p.a.sge(0, 3000), p.b.va(0), p.b.buffer.key);
    net.filter = [&](const Node &from, Frame &) {
        if (from.number == 2)   // the acknowledgement is on its way
            for (uint16_t slot = 0; slot < 3; slot++)
                std::memset(p.a.send_slot(slot) + 8, 0xff, 56);
        return Fate{};
    };
    p.a.post({wqe, wqe, wqe});
    net.pump();
    const auto all = p.a.poll_all();
    ASSERT_EQ(all.size(), 3u);
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_FALSE(all[i].error);
        EXPECT_EQ(all[i].opcode, HGHCA_OPCODE_RDMA_WRITE);
        EXPECT_EQ(all[i].bytes, 3000u);
        EXPECT_EQ(all[i].slot, i);
    }
}

// A READ brings its data to where its WQE says, so that is read once more: it has to be the same request.
TEST_F(SentWqesTest, AReadThatWasRewrittenFails)
{
    Pair p(net.a, net.b, Options{});
    p.b.fill(0, 3000, 1);
    net.filter = [&](const Node &from, Frame &) {
        if (from.number == 2)
            p.a.send_slot(0)[33] ^= 0x1;   // its length
        return Fate{};
    };
    p.a.post(read_from(p.a.sge(0, 3000), p.b.va(0), p.b.buffer.key));
    net.pump();
    const auto all = p.a.poll_all();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(int(all[0].syndrome), HGHCA_SYNDROME_LOCAL_QP_OP_ERR);
    EXPECT_EQ(net.a.counters().wqe_bad, 1u);
}

// Of two QPs whose WQEs have the same places, the one that sends first has its WQEs read again.
TEST_F(SentWqesTest, TwoQpsWithTheSamePlaces)
{
    constexpr unsigned kWqes = 60;
    Options options;
    options.buffer_bytes = 64 << 10;
    std::vector<std::unique_ptr<Pair>> pairs;
    SentWqes places;
    auto keep = [&](Endpoint &e) {
        for (uint16_t i = 0; i < kWqes; i++) {
            WqeRef ref{};
            ref.index = i;
            places.keep(Qpn(e.qp.qpn), ref, {});
        }
    };
    auto collide = [&](Endpoint &x, Endpoint &y) {
        keep(x);
        keep(y);
        return !places.find(Qpn(x.qp.qpn), kWqes / 2);
    };
    do
        pairs.push_back(std::make_unique<Pair>(net.a, net.b, options));
    while (pairs.size() < 64 && (pairs.size() < 2 || !collide(pairs.front()->a, pairs.back()->a)));
    ASSERT_LT(pairs.size(), 64u);

    Endpoint &x = pairs.front()->a, &y = pairs.back()->a;
    for (Pair *p : {pairs.front().get(), pairs.back().get()}) {
        std::vector<Wqe> list;
        for (unsigned i = 0; i < kWqes; i++)
            list.push_back(i % 7 == 3 ? read_from(p->a.sge(0, 500 + i), p->b.va(0), p->b.buffer.key)
                                      : write_to(p->a.sge(0, 100 + i), p->b.va(0), p->b.buffer.key));
        p->a.post(list);
    }
    net.settle();
    for (Endpoint *e : {&x, &y}) {
        const auto all = e->poll_all();
        ASSERT_EQ(all.size(), kWqes);
        for (unsigned i = 0; i < kWqes; i++) {
            EXPECT_FALSE(all[i].error);
            EXPECT_EQ(all[i].bytes, (i % 7 == 3 ? 500 : 100) + i);
        }
    }
}

// A QP that is reset in the middle of a READ begins with another one, at the same index.
TEST_F(SentWqesTest, AQpThatBeginsAgain)
{
    Options options;
    options.mtu_code = 1;   // 256
    Pair p(net.a, net.b, options);
    p.b.fill(0, 1024, 1);
    p.b.fill(4096, 1024, 2);
    unsigned responses = 0;
    net.filter = [&](const Node &from, Frame &) { return Fate{from.number == 2 && responses++ >= 2 ? 0u : 1u}; };
    p.a.post(read_from(p.a.sge(0, 1024), p.b.va(0), p.b.buffer.key));
    net.pump();
    EXPECT_TRUE(p.a.holds(0, 512, 1));
    std::memset(p.a.at(0), 0xee, 1024);

    net.clear();
    net.filter = nullptr;
    to_reset_and_init(p.a);
    to_reset_and_init(p.b);
    p.connect();
    p.a.post(read_from(p.a.sge(8192, 1024), p.b.va(4096), p.b.buffer.key));
    net.settle();
    const auto all = p.a.poll_all();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_FALSE(all[0].error);
    EXPECT_TRUE(p.a.holds(8192, 1024, 2));
    EXPECT_EQ(*p.a.at(0), 0xee);
    EXPECT_EQ(*p.a.at(1023), 0xee);
}

}  // namespace
}  // namespace hghca::test::sent_wqes_test
