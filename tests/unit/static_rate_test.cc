// SPDX-License-Identifier: GPL-2.0-or-later
// Static rates (interface document, 4.9, 6, 9): what the wire carries of a QP, and when.
#include <gtest/gtest.h>

#include <map>

#include "paced.h"
#include "verbs.h"

namespace hghca::test::static_rate_test {
namespace {

using Options = Endpoint::Options;

constexpr uint8_t k2500 = 2, k10000 = 3;   // codes of Mbit/s
constexpr uint64_t kMs = 1'000'000;
constexpr uint32_t kQkey = 0x11111111;     // of every QP that TestDriver makes

class StaticRate : public ::testing::Test {
protected:
    explicit StaticRate(uint32_t cache_entries = 0) : net(cache_entries)
    {
        net.filter = [this](const Node &from, Frame &frame) {
            const View v(frame);
            const uint8_t *qpn = &frame.at(v.bth + 5);
            sent[{from.number, uint32_t(qpn[0] << 16 | qpn[1] << 8 | qpn[2])}].push_back(Sent::now(net, frame));
            return Fate{};
        };
    }
    static Options at_rate(uint8_t code, uint8_t service = HGHCA_QP_ST_RC)
    {
        Options options;
        options.service = service;
        options.static_rate = code;
        return options;
    }
    // What node `from` has sent to the QP.
    std::vector<Sent> &to(unsigned from, const Endpoint &e) { return sent[{from, e.qp.qpn}]; }

    static void expect_good(Endpoint &e, size_t n)
    {
        const auto all = e.poll_all();
        EXPECT_EQ(all.size(), n);
        for (const Completion &c : all)
            EXPECT_FALSE(c.error) << int(c.syndrome);
    }

    Network net;
    std::map<std::pair<unsigned, uint32_t>, std::vector<Sent>> sent;
};

class StaticRateWithSmallCache : public StaticRate {
protected:
    StaticRateWithSmallCache() : StaticRate(1) {}
};

// ---- connections

void requests_are_paced(Network &net, Pair &p)
{
    p.a.fill(0, 200'000, 1);
    p.b.post_recv(p.b.sge(500'000, 100'000));
    p.a.post({write_to(p.a.sge(0, 100'000), p.b.va(0), p.b.buffer.key), send(p.a.sge(100'000, 100'000))});
    net.settle();
    EXPECT_TRUE(p.b.holds(0, 100'000, 1));
}

TEST_F(StaticRate, RequestsOfEachService)
{
    for (uint8_t service : {HGHCA_QP_ST_RC, HGHCA_QP_ST_UC}) {
        SCOPED_TRACE(int(service));
        Pair p(net.a, net.b, at_rate(k2500, service));
        requests_are_paced(net, p);
        expect_good(p.a, 2);
        expect_good(p.b, 1);
        expect_paced(to(1, p.b), 2500);
    }
    EXPECT_EQ(net.a.counters().retransmitted, 0u);
}

TEST_F(StaticRateWithSmallCache, RequestsFromIcm)
{
    Pair p(net.a, net.b, at_rate(k2500)), q(net.a, net.b, at_rate(k2500));
    q.a.post(write_to(q.a.sge(0, 100'000), q.b.va(0), q.b.buffer.key));
    requests_are_paced(net, p);
    expect_good(p.a, 2);
    expect_good(q.a, 1);
    expect_paced(to(1, p.b), 2500);
    expect_paced(to(1, q.b), 2500);
}

TEST_F(StaticRate, OfAQpThatSendsToItsOwnPort)
{
    Pair p(net.a, net.a, at_rate(k2500));
    p.a.post(write_to(p.a.sge(0, 100'000), p.b.va(0), p.b.buffer.key));
    net.pump();
    EXPECT_FALSE(p.a.poll());
    net.settle(100'000 * 8000ull / 2500 * 99 / 100);
    EXPECT_FALSE(p.a.poll());
    net.settle(kMs);
    expect_good(p.a, 1);
}

struct Rate {
    uint8_t code;
    uint64_t mbps;   // 0: nothing holds the QP back, for the port has 100 Gbit/s
};

class StaticRateEach : public StaticRate, public ::testing::WithParamInterface<Rate> {};

TEST_P(StaticRateEach, IsKept)
{
    Options options = at_rate(GetParam().code);
    options.mtu_code = 5;
    Pair p(net.a, net.b, options);
    p.a.post(write_to(p.a.sge(0, 1'000'000), p.b.va(0), p.b.buffer.key));
    net.pump();
    EXPECT_EQ(p.a.poll_all().size(), GetParam().mbps ? 0u : 1u);
    net.settle();
    EXPECT_EQ(to(1, p.b).size(), 245u);
    if (GetParam().mbps)
        expect_paced(to(1, p.b), GetParam().mbps);
    else
        EXPECT_EQ(to(1, p.b).front().at_ns, to(1, p.b).back().at_ns);
}

INSTANTIATE_TEST_SUITE_P(Rates, StaticRateEach,
                         ::testing::Values(Rate{0, 0}, Rate{2, 2500}, Rate{3, 10000}, Rate{4, 30000}, Rate{5, 5000},
                                           Rate{6, 20000}, Rate{7, 40000}, Rate{8, 60000}, Rate{9, 80000},
                                           Rate{10, 0}, Rate{11, 14000}, Rate{12, 56000}, Rate{13, 0}, Rate{14, 0},
                                           Rate{15, 25000}, Rate{16, 0}, Rate{17, 0}, Rate{18, 0}, Rate{19, 28000},
                                           Rate{20, 50000}, Rate{21, 0}, Rate{22, 0}, Rate{23, 0}, Rate{24, 0}),
                         [](const auto &test) { return "code" + std::to_string(test.param.code); });

TEST_F(StaticRate, QpsDoNotHoldEachOtherBack)
{
    Pair slow(net.a, net.b, at_rate(k2500)), fast(net.a, net.b, at_rate(k10000)), free(net.a, net.b, Options{});
    const uint64_t start = net.now();
    for (Pair *p : {&slow, &fast, &free})
        p->a.post(write_to(p->a.sge(0, 500'000), p->b.va(0), p->b.buffer.key));
    net.pump();
    EXPECT_EQ(net.now(), start);
    expect_good(free.a, 1);
    net.settle();
    expect_good(slow.a, 1);
    expect_good(fast.a, 1);
    expect_paced(to(1, slow.b), 2500);
    expect_paced(to(1, fast.b), 10000);
}

// What a QP does not send while it has nothing to send it cannot send faster later.
TEST_F(StaticRate, IdleTimeIsNotSaved)
{
    Pair p(net.a, net.b, at_rate(k2500));
    for (unsigned i = 0; i < 3; i++) {
        to(1, p.b).clear();
        p.a.post(write_to(p.a.sge(0, 50'000), p.b.va(0), p.b.buffer.key));
        net.settle(50 * kMs);
        expect_good(p.a, 1);
        expect_paced(to(1, p.b), 2500);
    }
}

// A timer that comes late costs nothing of the rate, as long as it is not very late.
TEST_F(StaticRate, LateTimersAreMadeUpFor)
{
    Pair p(net.a, net.b, at_rate(k2500, HGHCA_QP_ST_UC));   // no window ends its bursts
    p.a.post(write_to(p.a.sge(0, 1'000'000), p.b.va(0), p.b.buffer.key));
    net.pump();
    const uint64_t start = net.now();
    auto bytes = [&] {
        uint64_t n = 0;
        for (const Sent &s : to(1, p.b))
            n += s.bytes;
        return n;
    };
    for (unsigned i = 1; i <= 5; i++) {
        net.at(start + i * 200'000);
        net.pump();
        const uint64_t due = i * 200'000ull * 2500 / 8000;
        EXPECT_GE(bytes(), due);
        EXPECT_LE(bytes(), due + 2000);
    }
    // A host that sleeps does not let go of all that it has missed.
    const uint64_t before = bytes();
    net.at(start + 100 * kMs);
    net.pump();
    EXPECT_LE(bytes() - before, kMs * 2500 / 8000 + 2000);
    net.settle();
    expect_good(p.a, 1);
}

// ---- responses

TEST_F(StaticRate, ResponsesOfReads)
{
    Pair p(net.a, net.b, Options{}, at_rate(k2500));
    p.b.fill(0, 200'000, 7);
    p.a.post({read_from(p.a.sge(0, 100'000), p.b.va(0), p.b.buffer.key),
              read_from(p.a.sge(100'000, 100'000), p.b.va(100'000), p.b.buffer.key)});
    net.settle();
    expect_good(p.a, 2);
    EXPECT_TRUE(p.a.holds(0, 200'000, 7));
    EXPECT_EQ(to(2, p.a).size(), 196u);
    expect_paced(to(2, p.a), 2500);
    EXPECT_EQ(net.a.counters().retransmitted, 0u);
}

TEST_F(StaticRate, AcknowledgementsAreNotHeldBack)
{
    Pair p(net.a, net.b, Options{}, at_rate(k2500));
    p.b.post(write_to(p.b.sge(0, 100'000), p.a.va(0), p.a.buffer.key));
    net.pump();
    EXPECT_FALSE(p.b.poll());
    p.a.post(write_to(p.a.sge(0, 10), p.b.va(0), p.b.buffer.key));
    net.pump();
    expect_good(p.a, 1);
    net.settle();
    expect_good(p.b, 1);
}

TEST_F(StaticRate, RequestsAndResponsesShareTheRate)
{
    Pair p(net.a, net.b, Options{}, at_rate(k2500));
    std::vector<Wqe> reads;
    for (unsigned i = 0; i < 16; i++)
        reads.push_back(read_from(p.a.sge(0, 50'000), p.b.va(0), p.b.buffer.key));
    p.a.post(reads);
    net.pump();
    p.b.post(write_to(p.b.sge(100'000, 50'000), p.a.va(100'000), p.a.buffer.key));
    size_t reads_done = 0;
    while (!p.b.poll() && reads_done < 16) {
        net.settle(100'000);
        reads_done += p.a.poll_all().size();
    }
    EXPECT_GE(reads_done, 1u);
    EXPECT_LE(reads_done, 4u);
    net.settle();
    EXPECT_EQ(reads_done + p.a.poll_all().size(), 16u);
    std::vector<Sent> data;
    for (const Sent &s : to(2, p.a))
        if (s.opcode != HGHCA_BTH_OP_ACK)
            data.push_back(s);
    expect_paced(data, 2500);
}

// A NAK behind responses that wait goes when they have gone.
TEST_F(StaticRate, AnErrorBehindResponses)
{
    Pair p(net.a, net.b, Options{}, at_rate(k2500));
    p.b.fill(0, 50'000, 3);
    p.a.post({read_from(p.a.sge(0, 50'000), p.b.va(0), p.b.buffer.key),
              write_to(p.a.sge(0, 10), p.b.va(0), p.b.buffer.key + 1)});
    net.settle();
    const auto all = p.a.poll_all();
    ASSERT_EQ(all.size(), 2u);
    EXPECT_FALSE(all[0].error);
    EXPECT_EQ(int(all[1].syndrome), HGHCA_SYNDROME_REMOTE_ACCESS_ERR);
    EXPECT_TRUE(p.a.holds(0, 50'000, 3));
    EXPECT_EQ(p.b.state(), unsigned(HGHCA_QP_STATE_ERR));
}

// ---- timers

// The shortest time-out is shorter than a packet takes; nothing is lost, so nothing goes again.
TEST_F(StaticRate, NoTimeOutBeforeThePacketHasGone)
{
    Options options = at_rate(k2500);
    options.mtu_code = 5;
    options.ack_timeout = 1;
    Pair p(net.a, net.b, options);
    p.a.post(write_to(p.a.sge(0, 1'000'000), p.b.va(0), p.b.buffer.key));
    net.settle();
    expect_good(p.a, 1);
    EXPECT_EQ(net.a.counters().local_ack_timeout_err, 0u);
    EXPECT_EQ(to(1, p.b).size(), 245u);
}

// One timer serves both waits, whichever ends first.
TEST_F(StaticRate, TimeOutsWhileItWaits)
{
    auto record = net.filter;
    for (unsigned mtu_code : {4u, 5u}) {
        for (unsigned ack_timeout = 1; ack_timeout < 5; ack_timeout++) {
            SCOPED_TRACE(mtu_code * 100 + ack_timeout);
            Options options = at_rate(k2500);
            options.mtu_code = mtu_code;
            options.ack_timeout = ack_timeout;
            Pair p(net.a, net.b, options);
            const uint64_t before = net.a.counters().local_ack_timeout_err;
            net.filter = [&](const Node &from, Frame &frame) {
                record(from, frame);
                return Fate{net.a.counters().local_ack_timeout_err > before ? 1u : 0u};
            };
            p.a.post(write_to(p.a.sge(0, 200 * (128u << mtu_code)), p.b.va(0), p.b.buffer.key));
            net.settle(100 * kMs);
            expect_good(p.a, 1);
            EXPECT_EQ(net.a.counters().local_ack_timeout_err, before + 1);
        }
    }
    net.filter = nullptr;
}

TEST_F(StaticRate, WhatIsLostIsSentAgainAtTheRate)
{
    Pair p(net.a, net.b, at_rate(k2500));
    auto record = net.filter;
    unsigned n = 0;
    net.filter = [&](const Node &from, Frame &frame) {
        record(from, frame);
        return Fate{from.number == 1 && (++n == 98 || n == 50) ? 0u : 1u};
    };
    p.a.fill(0, 100'000, 9);
    p.a.post(write_to(p.a.sge(0, 100'000), p.b.va(0), p.b.buffer.key));
    net.settle();
    expect_good(p.a, 1);
    EXPECT_TRUE(p.b.holds(0, 100'000, 9));
    EXPECT_GT(net.a.counters().retransmitted, 0u);
    uint64_t bytes = 0;
    for (const Sent &s : to(1, p.b)) {
        EXPECT_GE((s.at_ns - to(1, p.b)[0].at_ns) * 2500, bytes * 8000);
        bytes += s.bytes;
    }
    net.filter = nullptr;
}

TEST_F(StaticRate, WithAReceiverThatIsNotReady)
{
    Pair p(net.a, net.b, at_rate(k2500));
    for (unsigned i = 0; i < 4; i++)
        p.a.post(send(p.a.sge(0, 5000)));
    net.settle(5 * kMs);
    EXPECT_FALSE(p.a.poll());
    for (unsigned i = 0; i < 4; i++)
        p.b.post_recv(p.b.sge(0, 5000));
    net.settle();
    expect_good(p.a, 4);
    expect_good(p.b, 4);
}

// ---- what becomes of a QP that waits

class StaticRateHeld : public StaticRate {
protected:
    StaticRateHeld() : p(net.a, net.b, at_rate(k2500))
    {
        p.a.post({write_to(p.a.sge(0, 10'000), p.b.va(0), p.b.buffer.key),
                  write_to(p.a.sge(0, 10'000), p.b.va(0), p.b.buffer.key)});
        net.pump();
        EXPECT_EQ(to(1, p.b).size(), 1u);
        EXPECT_LT(net.a.host.deadline_ns, net.now() + kMs);
    }
    Pair p;
};

TEST_F(StaticRateHeld, Reset)
{
    p.a.modify(HGHCA_CMD_ERR2RST_QPEE);
    net.settle();
    EXPECT_EQ(to(1, p.b).size(), 1u);
    EXPECT_FALSE(p.a.poll());
    // The next QP of that number knows nothing of it.
    TestDriver &d = net.a.driver;
    hghca_qpc c = d.init_qpc(p.a.qp, HGHCA_QP_ST_RC, p.a.cq, p.a.cq);
    TestDriver::must(d.modify(HGHCA_CMD_RST2INIT_QPEE, p.a.qp.qpn, c), "RST2INIT");
    p.a.options.static_rate = 0;
    p.a.sq_head = 0;
    Endpoint other(net.b, Options{});
    p.a.to_rtr(other);
    other.to_rtr(p.a);
    p.a.to_rts();
    other.to_rts();
    p.a.post(write_to(p.a.sge(0, 10'000), other.va(0), other.buffer.key));
    net.pump();
    expect_good(p.a, 1);
}

TEST_F(StaticRateHeld, ResetOfTheDevice)
{
    net.a.device.reset();
    EXPECT_EQ(net.a.host.deadline_ns, UINT64_MAX);
    net.settle();
    EXPECT_EQ(to(1, p.b).size(), 1u);
}

TEST_F(StaticRateHeld, Error)
{
    TestDriver::must(net.a.driver.modify(HGHCA_CMD_2ERR_QPEE, p.a.qp.qpn, hghca_qpc{}), "2ERR");
    const auto all = p.a.poll_all();
    ASSERT_EQ(all.size(), 2u);
    for (const Completion &c : all)
        EXPECT_EQ(int(c.syndrome), HGHCA_SYNDROME_WR_FLUSH_ERR);
    net.settle();
    EXPECT_EQ(to(1, p.b).size(), 1u);
}

TEST_F(StaticRateHeld, Drained)
{
    net.a.events(HGHCA_EVENT_SQ_DRAINED);
    p.a.to_sqd(true);
    EXPECT_EQ(net.a.events(HGHCA_EVENT_SQ_DRAINED), 0u);
    net.settle();
    // The first has begun, the second has not.
    EXPECT_EQ(net.a.events(HGHCA_EVENT_SQ_DRAINED), 1u);
    expect_good(p.a, 1);
    EXPECT_EQ(to(1, p.b).size(), 10u);
    p.a.modify(HGHCA_CMD_SQD2RTS_QPEE);
    net.settle();
    expect_good(p.a, 1);
    EXPECT_EQ(to(1, p.b).size(), 20u);
}

TEST_F(StaticRateHeld, AnotherRate)
{
    p.a.to_sqd(false);
    const Gid gid = Node::gid_of(2, 0);
    hghca_qpc c = net.a.driver.rtr_qpc(Endpoint::peer_of(p.a, p.b, gid), 0, 3, 16);
    c.opt_param_mask = be32(HGHCA_QP_ATTR_AV);
    for (uint8_t code : {1, 25, 255}) {
        c.static_rate = code;
        EXPECT_EQ(net.a.driver.modify(HGHCA_CMD_SQD2SQD_QPEE, p.a.qp.qpn, c), HGHCA_CMD_STAT_BAD_PARAM);
    }
    c.static_rate = 0;
    TestDriver::must(net.a.driver.modify(HGHCA_CMD_SQD2SQD_QPEE, p.a.qp.qpn, c), "SQD2SQD");
    net.pump();
    expect_good(p.a, 1);
    EXPECT_EQ(to(1, p.b).size(), 10u);
    net.settle();
    p.a.modify(HGHCA_CMD_SQD2RTS_QPEE);
    net.pump();
    expect_good(p.a, 1);
}

// ---- datagrams

class StaticRateUd : public StaticRate {
protected:
    StaticRateUd() : a(net.a, at_rate(0, HGHCA_QP_ST_UD)), b(net.b, at_rate(0, HGHCA_QP_ST_UD)) {}
    Wqe datagram(uint8_t code, uint32_t bytes = 1000)
    {
        return Wqe(HGHCA_OPCODE_SEND).ud(b.qp.qpn, kQkey, 2).static_rate(code).data(a.sge(0, bytes));
    }
    Endpoint a, b;
};

TEST_F(StaticRateUd, OfItsAddress)
{
    a.post(std::vector<Wqe>(60, datagram(k2500)));
    net.settle();
    expect_good(a, 60);
    expect_paced(to(1, b), 2500);
}

// Only a datagram with a rate waits, and only for those with one.
TEST_F(StaticRateUd, AddressesAreMixed)
{
    a.post({datagram(0), datagram(k2500), datagram(0), datagram(16), datagram(k10000), datagram(0)});
    net.pump();
    expect_good(a, 4);
    const uint64_t start = net.now();
    net.settle();
    expect_good(a, 2);
    const uint64_t bytes = to(1, b)[1].bytes;
    EXPECT_GE((to(1, b)[4].at_ns - start) * 2500, bytes * 8000);
    EXPECT_EQ(to(1, b)[4].at_ns, to(1, b)[5].at_ns);
}

TEST_F(StaticRateUd, RatesThatAreNone)
{
    for (uint8_t code : {1, 25, 63}) {
        SCOPED_TRACE(int(code));
        a.post(datagram(code));
        net.pump();
        const auto all = a.poll_all();
        ASSERT_EQ(all.size(), 1u);
        EXPECT_EQ(int(all[0].syndrome), HGHCA_SYNDROME_LOCAL_QP_OP_ERR);
        EXPECT_EQ(a.state(), unsigned(HGHCA_QP_STATE_SQE));
        a.modify(HGHCA_CMD_SQERR2RTS_QPEE);
    }
    EXPECT_TRUE(to(1, b).empty());
}

// A QP in SQE while it waits: it starts again with what is posted then.
TEST_F(StaticRateUd, AnErrorWhileItWaits)
{
    a.post({datagram(k2500), datagram(k2500, 5000)});   // longer than the MTU
    net.settle();
    auto all = a.poll_all();
    ASSERT_EQ(all.size(), 2u);
    EXPECT_TRUE(all[1].error);
    a.modify(HGHCA_CMD_SQERR2RTS_QPEE);
    a.post(datagram(k2500));
    net.settle();
    expect_good(a, 1);
}

}  // namespace
}  // namespace hghca::test::static_rate_test
