// SPDX-License-Identifier: GPL-2.0-or-later
// Congestion control (interface document, 4.26, 9.1): marks, notifications, and the rate of the QP that they reach.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>

#include "icm_entry.h"
#include "shared_queue.h"

namespace hghca::test::congestion_test {
namespace {

using Options = Endpoint::Options;

constexpr uint32_t kOn = HGHCA_CONGESTION_REACT | HGHCA_CONGESTION_NOTIFY;
constexpr uint64_t kUs = 1000, kMs = 1'000'000;
constexpr uint32_t kLine = 100'000'000;   // of the port, kbit/s
constexpr uint32_t kQkey = 0x11111111;    // of every QP that TestDriver makes

uint8_t traffic_class(const Frame &f)
{
    const View v(f);
    return v.ipv6 ? uint8_t(f[v.ip] << 4 | f[v.ip + 1] >> 4) : f[v.ip + 1];
}

// What a queue does that is too long: the ECN field of an ECN-capable packet says so. The ICRC stays as it is.
bool mark(Frame &f)
{
    const View v(f);
    if (!(traffic_class(f) & HGHCA_ECN_MASK))
        return false;
    if (v.ipv6) {
        f[v.ip + 1] |= HGHCA_ECN_CE << 4;
        return true;
    }
    f[v.ip + 1] |= HGHCA_ECN_CE;
    f[v.ip + 10] = f[v.ip + 11] = 0;
    uint32_t sum = 0;
    for (size_t i = v.ip; i < v.ip + 20; i += 2)
        sum += uint32_t(f[i] << 8 | f[i + 1]);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~(sum + (sum >> 16));
    f[v.ip + 10] = uint8_t(sum >> 8);
    f[v.ip + 11] = uint8_t(sum);
    return true;
}

bool is_cnp(const Frame &f) { return View(f).opcode == HGHCA_BTH_CNP; }

class CongestionTest : public ::testing::Test {
protected:
    explicit CongestionTest(uint32_t cache_entries = 0) : net(cache_entries) { net.keep_log = true; }
    void turn_on()
    {
        for (Node *node : {&net.a, &net.b})
            node->driver.turn_congestion(kOn);
    }
    // Marks what node 1 sends, all but notifications.
    void mark_requests()
    {
        net.filter = [](const Node &from, Frame &f) {
            const bool wanted = from.number == 1 && !is_cnp(f);
            EXPECT_EQ(wanted && mark(f), wanted);
            return Fate{};
        };
    }
    std::vector<Frame> cnps() const
    {
        std::vector<Frame> found;
        for (const Frame &f : net.log)
            if (is_cnp(f))
                found.push_back(f);
        return found;
    }
    // A notification for the QP as its peer would send it; `change` may spoil it.
    Frame cnp_for(const Endpoint &e, const Endpoint &peer)
    {
        Frame f = {2, 0, 0, 0, 0, uint8_t(e.node.number), 2, 0, 0, 0, 0, uint8_t(peer.node.number), 8, 0,
                   0x45, 0xc0, 0, 60, 0, 0, 0x40, 0, 64, 17, 0, 0,
                   10, 10, 0, uint8_t(peer.node.number), 10, 10, 0, uint8_t(e.node.number),
                   0xc0, 0, 0x12, 0xb7, 0, 40, 0, 0,
                   0x81, 0, 0xff, 0xff, 0x40, uint8_t(e.qp.qpn >> 16), uint8_t(e.qp.qpn >> 8), uint8_t(e.qp.qpn)};
        f.resize(42 + 12 + 16 + 4);
        seal(f);
        return f;
    }
    void notify(const Endpoint &e, const Endpoint &peer) { Network::deliver(e.node, cnp_for(e, peer)); }
    // What QUERY_QP says of it.
    static uint32_t rate(Endpoint &e)
    {
        hghca_qpc c;
        TestDriver::must(e.node.driver.query(HGHCA_CMD_QUERY_QP, c, e.qp.qpn), "QUERY_QP");
        return be32(c.rate);
    }
    static void expect_good(Endpoint &e, size_t n)
    {
        const auto all = e.poll_all();
        EXPECT_EQ(all.size(), n);
        for (const Completion &c : all)
            EXPECT_FALSE(c.error) << int(c.syndrome);
    }

    Network net;
};

class CongestionWithSmallCache : public CongestionTest {
protected:
    CongestionWithSmallCache() : CongestionTest(1) {}
};

// ---- parameters

TEST_F(CongestionTest, IsOffAndHasThePublishedValues)
{
    const hghca_congestion c = net.a.driver.congestion();
    EXPECT_EQ(be32(c.flags), 0u);
    EXPECT_EQ(be32(c.cnp_interval), 50u);
    EXPECT_EQ(c.cnp_dscp, 48);
    EXPECT_EQ(c.cnp_priority, 6);
    EXPECT_EQ(c.threshold, 5);
    EXPECT_EQ(be32(c.gain), 65536u / 256);
    EXPECT_EQ(be32(c.alpha_period), 55u);
    EXPECT_EQ(be32(c.decrease_period), 50u);
    EXPECT_EQ(be32(c.increase_period), 55u);
    EXPECT_EQ(be32(c.increase_bytes), 10'000'000u);
    EXPECT_EQ(be32(c.additive), 40u);
    EXPECT_EQ(be32(c.hyper), 400u);
    EXPECT_EQ(be32(c.min_rate), 10u);
    EXPECT_EQ(net.a.driver.set_congestion(c), 0);
}

struct ParameterCase {
    const char *name;
    void (*spoil)(hghca_congestion &);
};

const ParameterCase kSenseless[] = {
    {"an unknown flag", [](hghca_congestion &c) { c.flags = be32(4); }},
    {"no interval of CNPs", [](hghca_congestion &c) { c.cnp_interval = 0; }},
    {"CNPs more than a second apart", [](hghca_congestion &c) { c.cnp_interval = be32(1'000'001); }},
    {"a DSCP of more than six bits", [](hghca_congestion &c) { c.cnp_dscp = 64; }},
    {"a priority of more than three bits", [](hghca_congestion &c) { c.cnp_priority = 8; }},
    {"no fast recovery", [](hghca_congestion &c) { c.threshold = 0; }},
    {"fast recovery for ever", [](hghca_congestion &c) { c.threshold = 32; }},
    {"a gain of 0", [](hghca_congestion &c) { c.gain = 0; }},
    {"a gain above 1", [](hghca_congestion &c) { c.gain = be32(65537); }},
    {"no period of alpha", [](hghca_congestion &c) { c.alpha_period = 0; }},
    {"a period of alpha above a second", [](hghca_congestion &c) { c.alpha_period = be32(1'000'001); }},
    {"no period of reductions", [](hghca_congestion &c) { c.decrease_period = 0; }},
    {"reductions more than a second apart", [](hghca_congestion &c) { c.decrease_period = be32(1'000'001); }},
    {"no period of increases", [](hghca_congestion &c) { c.increase_period = 0; }},
    {"increases more than a second apart", [](hghca_congestion &c) { c.increase_period = be32(1'000'001); }},
    {"a byte stage of less than a few packets", [](hghca_congestion &c) { c.increase_bytes = be32(16383); }},
    {"a byte stage above 2^31", [](hghca_congestion &c) { c.increase_bytes = be32((1u << 31) + 1); }},
    {"no additive increase", [](hghca_congestion &c) { c.additive = 0; }},
    {"hyper increase below the additive one", [](hghca_congestion &c) { c.hyper = be32(39); }},
    {"hyper increase above the port's speed", [](hghca_congestion &c) { c.hyper = be32(100'001); }},
    {"a least rate of 0", [](hghca_congestion &c) { c.min_rate = 0; }},
    {"a least rate above the port's speed", [](hghca_congestion &c) { c.min_rate = be32(100'001); }},
};

TEST_F(CongestionTest, SenselessParametersAreRefused)
{
    TestDriver &d = net.a.driver;
    hghca_congestion set = d.congestion();
    set.gain = be32(512);
    set.flags = be32(kOn);
    ASSERT_EQ(d.set_congestion(set), 0);
    for (const ParameterCase &c : kSenseless) {
        hghca_congestion spoilt = set;
        spoilt.additive = be32(41);
        c.spoil(spoilt);
        EXPECT_EQ(d.set_congestion(spoilt), HGHCA_CMD_STAT_BAD_PARAM) << c.name;
        const hghca_congestion now = d.congestion();
        EXPECT_EQ(std::memcmp(&now, &set, sizeof(now)), 0) << c.name << " has changed something";
    }
    EXPECT_EQ(d.post(HGHCA_CMD_SET_CONGESTION, set, 2), HGHCA_CMD_STAT_BAD_PARAM);
}

TEST_F(CongestionTest, ExtremeParametersAreTaken)
{
    TestDriver &d = net.a.driver;
    hghca_congestion c = d.congestion();
    c.cnp_interval = c.alpha_period = c.decrease_period = c.increase_period = be32(1);
    c.threshold = 1;
    c.gain = be32(1);
    c.increase_bytes = be32(16384);
    c.additive = c.hyper = c.min_rate = be32(1);
    EXPECT_EQ(d.set_congestion(c), 0);
    c.cnp_interval = c.alpha_period = c.decrease_period = c.increase_period = be32(1'000'000);
    c.cnp_dscp = 63;
    c.cnp_priority = 7;
    c.threshold = 31;
    c.gain = be32(65536);
    c.increase_bytes = be32(1u << 31);
    c.additive = c.hyper = c.min_rate = be32(100'000);
    EXPECT_EQ(d.set_congestion(c), 0);
}

TEST_F(CongestionTest, CloseAndResetSetThemBack)
{
    TestDriver &d = net.a.driver;
    d.turn_congestion(kOn);
    ASSERT_EQ(d.command(HGHCA_CMD_CLOSE_HCA).status, 0);
    d.init();
    EXPECT_EQ(be32(d.congestion().flags), 0u);
    d.turn_congestion(kOn);
    d.init();
    EXPECT_EQ(be32(d.congestion().flags), 0u);
}

TEST_F(CongestionTest, WithoutTheCapability)
{
    Network plain(0, kFullCaps & ~HGHCA_CAP_CONGESTION);
    hghca_congestion c{};
    EXPECT_EQ(plain.a.driver.query(HGHCA_CMD_QUERY_CONGESTION, c, 1), HGHCA_CMD_STAT_BAD_OP);
    EXPECT_EQ(plain.a.driver.set_congestion(net.a.driver.congestion()), HGHCA_CMD_STAT_BAD_OP);
    Pair p(plain.a, plain.b, Options{});
    Network::deliver(plain.a, cnp_for(p.a, p.b));
    EXPECT_EQ(plain.a.counters().rx_unknown_qp, 1u);
    EXPECT_EQ(plain.a.counters().rp_cnp_ignored, 0u);
}

// ---- marks

TEST_F(CongestionTest, OffNothingIsEcnCapable)
{
    Pair p(net.a, net.b, Options{});
    p.a.post(write_to(p.a.sge(0, 5000), p.b.va(0), p.b.buffer.key));
    net.pump();
    expect_good(p.a, 1);
    for (const Frame &f : net.log)
        EXPECT_EQ(traffic_class(f), 0);
}

// All of a connection: requests, acknowledgements, answers. The DSCP stays.
TEST_F(CongestionTest, OnConnectionsAreEcnCapable)
{
    turn_on();
    for (unsigned sgid_index : {0u, 1u, 2u}) {
        SCOPED_TRACE(sgid_index);
        Options options;
        options.sgid_index = sgid_index;
        Pair p(net.a, net.b, options, false);
        p.a.to_rtr(p.b);
        p.b.to_rtr(p.a);
        for (Endpoint *e : {&p.a, &p.b})
            // DSCP 26, and a mark that is not ours to make.
            e->node.device.qps->find(Qpn(e->qp.qpn))->a.path.tclass = 0x6b;
        p.a.to_rts();
        p.b.to_rts();
        net.log.clear();
        p.a.post({write_to(p.a.sge(0, 5000), p.b.va(0), p.b.buffer.key),
                  read_from(p.a.sge(0, 5000), p.b.va(0), p.b.buffer.key)});
        net.settle();
        expect_good(p.a, 2);
        EXPECT_GE(net.log.size(), 12u);
        for (const Frame &f : net.log)
            EXPECT_EQ(traffic_class(f), 0x6a);
    }
}

TEST_F(CongestionTest, OfEachService)
{
    turn_on();
    Options uc, xrc, target;
    uc.service = HGHCA_QP_ST_UC;
    xrc.service = target.service = HGHCA_QP_ST_XRC;
    target.xrcd = 5;
    Pair u(net.a, net.b, uc), x(net.a, net.b, xrc, target);
    const uint32_t srqn = net.b.driver.create_srq(4, 7, TestDriver::kPd, target.xrcd, x.b.cq.cqn).srqn;
    for (Pair *p : {&u, &x}) {
        const uint32_t flags = HGHCA_WQE_CQ_UPDATE | (p == &x ? field_put(HGHCA_WQE_XRC_SRQN_MASK, srqn) : 0);
        net.log.clear();
        p->a.post(write_to(p->a.sge(0, 5000), p->b.va(0), p->b.buffer.key, flags));
        net.settle();
        expect_good(p->a, 1);
        EXPECT_GE(net.log.size(), 5u);
        for (const Frame &f : net.log)
            EXPECT_EQ(traffic_class(f), HGHCA_ECN_ECT0);
    }
    // A datagram has no flow that could be slowed down: its traffic class is the sender's.
    Options ud;
    ud.service = HGHCA_QP_ST_UD;
    Endpoint from(net.a, ud), to(net.b, ud);
    net.log.clear();
    from.post(Wqe(HGHCA_OPCODE_SEND).ud(to.qp.qpn, kQkey, 2).data(from.sge(0, 100)));
    net.pump();
    ASSERT_EQ(net.log.size(), 1u);
    EXPECT_EQ(traffic_class(net.log[0]), 0);
}

TEST_F(CongestionTest, MarksWithoutNotification)
{
    net.a.driver.turn_congestion(HGHCA_CONGESTION_REACT);
    mark_requests();
    Pair p(net.a, net.b, Options{});
    p.a.fill(0, 5000, 3);
    p.a.post(write_to(p.a.sge(0, 5000), p.b.va(0), p.b.buffer.key));
    net.settle();
    expect_good(p.a, 1);
    EXPECT_TRUE(p.b.holds(0, 5000, 3));
    EXPECT_EQ(net.b.counters().np_ecn_marked_roce_packets, 5u);
    EXPECT_EQ(net.b.counters().rx_bad_icrc, 0u);
    EXPECT_TRUE(cnps().empty());
    EXPECT_EQ(net.b.counters().np_cnp_sent, 0u);
}

// ---- notifications

// As ConnectX-4 Lx sends it, but for what tells its flow; its capture is checked in packet_test.cc.
TEST_F(CongestionTest, ANotificationByteForByte)
{
    turn_on();
    mark_requests();
    Options options;
    options.sq_psn = options.rq_psn = 0x123456;
    Pair p(net.a, net.b, options);
    p.a.post(write_to(p.a.sge(0, 100), p.b.va(0), p.b.buffer.key));
    net.pump();
    ASSERT_EQ(cnps().size(), 1u);
    Frame got = cnps()[0];
    Frame want = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00,
                  0x45, 0xc2, 0, 60, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 10, 0, 2, 10, 10, 0, 1,
                  got[34], got[35], 0x12, 0xb7, 0, 40, 0, 0,
                  0x81, 0x00, 0xff, 0xff, 0x40, 0, 0, uint8_t(p.a.qp.qpn), 0, 0, 0, 0};
    want.resize(want.size() + HGHCA_CNP_RESERVED + HGHCA_ICRC_SIZE);
    seal(want);
    EXPECT_EQ(got, want);
    EXPECT_GE(got[34], 0xc0);
    EXPECT_EQ(net.b.counters().np_cnp_sent, 1u);
    EXPECT_EQ(net.a.counters().rp_cnp_handled, 1u);
}

TEST_F(CongestionTest, NotificationsByIpv6AndInAVlan)
{
    turn_on();
    hghca_congestion c = net.b.driver.congestion();
    c.cnp_dscp = 42;
    c.cnp_priority = 3;
    ASSERT_EQ(net.b.driver.set_congestion(c), 0);
    mark_requests();
    for (unsigned sgid_index : {1u, 2u}) {
        net.log.clear();
        Options options;
        options.sgid_index = sgid_index;
        Pair p(net.a, net.b, options);
        p.a.post(write_to(p.a.sge(0, 100), p.b.va(0), p.b.buffer.key));
        net.pump();
        ASSERT_EQ(cnps().size(), 1u) << sgid_index;
        const Frame f = cnps()[0];
        const View v(f);
        EXPECT_EQ(v.ipv6, sgid_index == 1);
        EXPECT_EQ(traffic_class(f), 42 << 2 | HGHCA_ECN_ECT0);
        EXPECT_EQ(f.size(), v.bth + 32);
        if (sgid_index == 2) {
            EXPECT_EQ(f[14] << 8 | f[15], 3 << 13 | 5);
        }
        EXPECT_NE(rate(p.a), 0u) << "the QP has not taken it";
    }
}

TEST_F(CongestionTest, OneNotificationAnInterval)
{
    turn_on();
    net.a.driver.turn_congestion(0);   // so that the sender does not slow down
    net.filter = [](const Node &from, Frame &f) {
        if (from.number == 1)
            f[View(f).ip + 1] |= HGHCA_ECN_ECT0, mark(f);
        return Fate{};
    };
    Pair p(net.a, net.b, Options{}), q(net.a, net.b, Options{});
    const uint64_t start = net.now();
    uint64_t sent = 0;
    for (uint64_t t = 0; t < 500; t++) {
        net.at(start + t * kUs);
        p.a.post(write_to(p.a.sge(0, 2000), p.b.va(0), p.b.buffer.key));
        net.pump();
        p.a.poll_all();
        EXPECT_EQ(cnps().size(), 1 + t / 50) << t;
        sent = cnps().size();
    }
    EXPECT_EQ(sent, 10u);
    EXPECT_EQ(net.b.counters().np_ecn_marked_roce_packets, 1000u);
    // Another QP has an interval of its own.
    q.a.post(write_to(q.a.sge(0, 2000), q.b.va(0), q.b.buffer.key));
    net.pump();
    EXPECT_EQ(cnps().size(), 11u);
    EXPECT_EQ(net.a.counters().rp_cnp_ignored, 11u);
    EXPECT_EQ(rate(p.a), 0u);

    hghca_congestion c = net.b.driver.congestion();
    c.cnp_interval = be32(200);
    ASSERT_EQ(net.b.driver.set_congestion(c), 0);
    net.log.clear();
    for (uint64_t t = 1000; t < 2000; t += 10) {
        net.at(start + t * kUs);
        p.a.post(write_to(p.a.sge(0, 2000), p.b.va(0), p.b.buffer.key));
        net.pump();
        p.a.poll_all();
    }
    EXPECT_EQ(cnps().size(), 5u);
}

TEST_F(CongestionTest, ANotificationWaitsForTheLink)
{
    turn_on();
    mark_requests();
    Pair p(net.a, net.b, Options{});
    net.b.host.link_full = true;
    p.a.post(write_to(p.a.sge(0, 100), p.b.va(0), p.b.buffer.key));
    net.pump();
    EXPECT_TRUE(cnps().empty());
    EXPECT_EQ(net.b.counters().np_cnp_sent, 0u);
    net.b.host.link_full = false;
    net.b.device.link_ready();
    net.pump();
    EXPECT_EQ(cnps().size(), 1u);
    EXPECT_EQ(net.b.counters().np_cnp_sent, 1u);
    expect_good(p.a, 1);
}

TEST_F(CongestionTest, MarkedAnswersToReadsSlowTheResponderDown)
{
    turn_on();
    net.filter = [](const Node &from, Frame &f) {
        if (from.number == 2 && !is_cnp(f))
            mark(f);
        return Fate{};
    };
    Pair p(net.a, net.b, Options{});
    p.b.fill(0, 50'000, 7);
    p.a.post(read_from(p.a.sge(0, 50'000), p.b.va(0), p.b.buffer.key));
    net.pump();
    EXPECT_EQ(rate(p.b), kLine / 2);
    EXPECT_EQ(rate(p.a), 0u);
    net.settle();
    expect_good(p.a, 1);
    EXPECT_TRUE(p.a.holds(0, 50'000, 7));
}

// Within one port: nothing marks there, but a sender may say that something did.
TEST_F(CongestionTest, AQpThatSendsToItsOwnPort)
{
    turn_on();
    Pair p(net.a, net.a, Options{});
    net.a.driver.turn_congestion(HGHCA_CONGESTION_NOTIFY);
    net.a.device.qps->find(Qpn(p.a.qp.qpn))->a.path.tclass = HGHCA_ECN_CE;
    p.a.post(write_to(p.a.sge(0, 100), p.b.va(0), p.b.buffer.key));
    net.pump();
    expect_good(p.a, 1);
    EXPECT_EQ(net.a.counters().np_ecn_marked_roce_packets, 1u);
    EXPECT_EQ(net.a.counters().np_cnp_sent, 1u);
    EXPECT_EQ(net.a.counters().rp_cnp_ignored, 1u);
}

struct ForgedCase {
    const char *name;
    uint64_t Counters::*counted;
    void (*forge)(Frame &);
};

const ForgedCase kForged[] = {
    {"without BECN", &Counters::rx_bad_header, [](Frame &f) { f[46] = 0; }},
    {"with data", &Counters::rx_bad_header, [](Frame &f) {
         f.insert(f.end() - 4, 4, 0);
         f[17] += 4;
         f[39] += 4;
     }},
    {"cut short", &Counters::rx_too_short, [](Frame &f) {
         f.erase(f.end() - 8, f.end() - 4);
         f[17] -= 4;
         f[39] -= 4;
     }},
    {"of another address", &Counters::rx_bad_address, [](Frame &f) { f[29] = 9; }},
    {"of another partition", &Counters::rx_bad_pkey, [](Frame &f) { f[44] = 0x80; }},
    {"for no QP", &Counters::rx_unknown_qp, [](Frame &f) { f[47] = 0x10; }},
    {"for QP 0", &Counters::rx_unknown_qp, [](Frame &f) { f[49] = 0; }},
    {"for QP 1", &Counters::rx_unknown_qp, [](Frame &f) { f[49] = 1; }},
    {"of an opcode beside it", &Counters::rx_unknown_qp, [](Frame &f) { f[42] = 0x80; }},
};

TEST_F(CongestionTest, ForgedNotificationsAreDropped)
{
    turn_on();
    Pair p(net.a, net.b, Options{});
    for (const ForgedCase &c : kForged) {
        const uint64_t before = net.a.counters().*c.counted;
        Frame f = cnp_for(p.a, p.b);
        c.forge(f);
        seal(f);
        Network::deliver(net.a, f);
        EXPECT_EQ(net.a.counters().*c.counted, before + 1) << c.name;
        EXPECT_EQ(rate(p.a), 0u) << c.name;
    }
    Frame f = cnp_for(p.a, p.b);
    f.back() ^= 1;
    Network::deliver(net.a, f);
    EXPECT_EQ(net.a.counters().rx_bad_icrc, 1u);
    EXPECT_EQ(net.a.counters().rp_cnp_handled, 0u);
    notify(p.a, p.b);
    EXPECT_EQ(net.a.counters().rp_cnp_handled, 1u);
}

TEST_F(CongestionTest, QpsThatTakeNoNotification)
{
    turn_on();
    Options ud;
    ud.service = HGHCA_QP_ST_UD;
    Endpoint datagrams(net.a, ud), peer(net.b, ud);
    notify(datagrams, peer);
    Pair p(net.a, net.b, Options{}, false);
    notify(p.a, p.b);   // in INIT
    p.connect();
    TestDriver::must(net.a.driver.modify(HGHCA_CMD_2ERR_QPEE, p.a.qp.qpn, hghca_qpc{}), "2ERR");
    notify(p.a, p.b);
    EXPECT_EQ(net.a.counters().rx_unknown_qp, 3u);
    EXPECT_EQ(net.a.counters().rp_cnp_handled, 0u);
}

// ---- the reaction

// DCQCN as the paper has it, step by step and in real numbers.
struct Model {
    double current = kLine, target = kLine, alpha = 1, line = kLine;
    unsigned time_stage = 0, byte_stage = 0;

    void cut()
    {
        target = current;
        current *= 1 - alpha / 2;
        alpha = (1 - 1 / 256.0) * alpha + 1 / 256.0;
        time_stage = byte_stage = 0;
    }
    void without_cnp() { alpha *= 1 - 1 / 256.0; }
    void increase()
    {
        if (std::min(time_stage, byte_stage) > 5)
            target += 400'000;
        else if (std::max(time_stage, byte_stage) > 5)
            target += 40'000;
        target = std::min(target, line);
        current = (current + target) / 2;
    }
    void by_time()
    {
        time_stage++;
        increase();
    }
    void by_bytes()
    {
        byte_stage++;
        increase();
    }
};

class Reaction : public CongestionTest {
protected:
    Reaction() : p(net.a, net.b, Options{}) { turn_on(); }
    // Within a millionth, and the rounding of each step.
    void expect_rate(double kbps, const char *what)
    {
        EXPECT_NEAR(rate(p.a), kbps, 64 + kbps / 1e6) << what;
    }
    void pass(uint64_t ns) { net.at(net.now() + ns); }
    CongestionState &state() { return net.a.device.qps->find(Qpn(p.a.qp.qpn))->congestion; }

    Pair p;
    Model model;
};

TEST_F(Reaction, TheFirstNotificationHalves)
{
    EXPECT_EQ(rate(p.a), 0u);
    notify(p.a, p.b);
    EXPECT_EQ(rate(p.a), kLine / 2);
    EXPECT_EQ(rate(p.b), 0u);
}

TEST_F(Reaction, EachPeriodOnce)
{
    for (unsigned i = 0; i < 10; i++) {
        notify(p.a, p.b);
        EXPECT_EQ(rate(p.a), kLine / 2);
        pass(4 * kUs);
    }
    pass(10 * kUs);
    notify(p.a, p.b);
    EXPECT_EQ(rate(p.a), kLine / 4);
    EXPECT_EQ(net.a.counters().rp_cnp_handled, 11u);
}

TEST_F(Reaction, AsAlphaSays)
{
    for (unsigned i = 0; i < 40; i++) {
        notify(p.a, p.b);
        model.cut();
        expect_rate(model.current, "cut");
        EXPECT_NEAR(double(state().alpha) / kAlphaOne, model.alpha, 1e-5);
        // A notification after 20 periods without one: alpha has decayed, and the rate has recovered by stages.
        for (unsigned n = 0; n < 20; n++) {
            pass(55 * kUs);
            model.without_cnp();
            model.by_time();
        }
        expect_rate(model.current, "recovery");
    }
    EXPECT_LT(model.alpha, 0.1);
}

TEST_F(Reaction, NeverBelowTheLeastRate)
{
    for (unsigned i = 0; i < 100; i++) {
        notify(p.a, p.b);
        pass(50 * kUs);
    }
    EXPECT_EQ(rate(p.a), 10'000u);
}

// Fast recovery: five stages, each halves the distance. Then 40 Mbit/s a stage, until the line's rate is there again.
TEST_F(Reaction, RecoversByStagesOfTime)
{
    for (unsigned i = 0; i < 3; i++) {
        notify(p.a, p.b);
        model.cut();
        pass(50 * kUs);
    }
    net.at(net.now() + 5 * kUs);
    for (unsigned stage = 1; stage <= 5; stage++) {
        model.by_time();
        expect_rate(model.current, "fast recovery");
        EXPECT_NEAR(rate(p.a), kLine / 4 - kLine / 8 / (1 << stage), 64);
        pass(55 * kUs);
    }
    unsigned stages = 5;
    for (; rate(p.a) && stages < 5000; stages++) {
        model.by_time();
        expect_rate(model.current, "additive increase");
        pass(55 * kUs);
    }
    // 75 Gbit/s of target at 40 Mbit/s a stage, and the last halves.
    EXPECT_GE(stages, 5 + 75'000u / 40);
    EXPECT_LE(stages, 5 + 75'000u / 40 + 30);
    EXPECT_EQ(state().rate, CongestionState::Rate::Recovered);
}

// Nobody looks at the QP meanwhile: the same comes out.
TEST_F(Reaction, StagesThatNobodyHasSeen)
{
    for (unsigned jump : {1u, 2u, 3u, 5u, 6u, 7u, 40u, 300u, 1000u, 1900u}) {
        SCOPED_TRACE(jump);
        Pair q(net.a, net.b, Options{});
        Model m;
        for (unsigned i = 0; i < 4; i++) {
            notify(q.a, q.b);
            m.cut();
            if (i < 3)
                pass(50 * kUs);
        }
        pass(jump * 55 * kUs);
        for (unsigned i = 0; i < jump; i++)
            m.by_time();
        EXPECT_NEAR(rate(q.a), m.current, 64);
    }
    notify(p.a, p.b);
    pass(3'600'000 * kMs);
    EXPECT_EQ(rate(p.a), 0u);
    // An hour is more than alpha remembers.
    notify(p.a, p.b);
    EXPECT_EQ(rate(p.a), kLine);
}

// Bytes that were sent end stages as well; past F in both the increase is the hyper one.
TEST_F(Reaction, RecoversByStagesOfBytes)
{
    hghca_congestion c = net.a.driver.congestion();
    c.increase_bytes = be32(100'000);
    c.increase_period = be32(1'000'000);
    ASSERT_EQ(net.a.driver.set_congestion(c), 0);
    notify(p.a, p.b);
    model.cut();
    pass(50 * kUs);
    notify(p.a, p.b);
    model.cut();
    Qp &qp = *net.a.device.qps->find(Qpn(p.a.qp.qpn));
    uint64_t bytes = 0, stages = 0;
    net.filter = [&](const Node &from, Frame &f) {
        if (from.number == 1) {
            bytes += f.size() + 4;
            for (; stages < bytes / 100'000; stages++)
                model.by_bytes();
        }
        return Fate{};
    };
    for (unsigned i = 0; i < 20; i++) {
        p.a.post(write_to(p.a.sge(0, 100'000), p.b.va(0), p.b.buffer.key));
        net.settle(2 * kMs);
        EXPECT_EQ(stages, bytes / 100'000);
        EXPECT_NEAR(qp.congestion.current_kbps, model.current, 64) << stages;
    }
    EXPECT_GE(stages, 20u);
    EXPECT_EQ(qp.congestion.time_stage, 0);
    // Six stages of time: from the sixth on both are past F.
    c.increase_period = be32(1000);
    qp.congestion.stage_ns = net.now();
    ASSERT_EQ(net.a.driver.set_congestion(c), 0);
    for (unsigned i = 1; i <= 8; i++) {
        pass(kMs);
        model.by_time();
        expect_rate(model.current, "both");
    }
    expect_good(p.a, 20);
}

// On the wire: in each stage no more and hardly less than the rate of the stage.
TEST_F(Reaction, TheRateIsKeptOnTheWire)
{
    hghca_congestion c = net.a.driver.congestion();
    c.increase_period = be32(1'000'000);
    c.increase_bytes = be32(1u << 31);
    ASSERT_EQ(net.a.driver.set_congestion(c), 0);
    for (unsigned cuts = 1; cuts <= 7; cuts++) {
        Options options;
        options.service = cuts % 2 ? HGHCA_QP_ST_UC : HGHCA_QP_ST_RC;
        Pair q(net.a, net.b, options);
        for (unsigned i = 0; i < cuts; i++) {
            notify(q.a, q.b);
            pass(60 * kUs);
        }
        const uint64_t kbps = rate(q.a);
        ASSERT_GT(kbps, 0u);
        uint64_t first = 0, last = 0, bytes = 0, ahead = 0;
        net.filter = [&](const Node &from, Frame &f) {
            if (from.number == 1) {
                first = first ? first : net.now();
                last = net.now();
                EXPECT_GE((last - first) * kbps + 1'000'000, bytes * 8'000'000) << "faster than the rate";
                ahead = f.size() + 4;
                bytes += ahead;
            }
            return Fate{};
        };
        q.a.post(write_to(q.a.sge(0, 1'000'000), q.b.va(0), q.b.buffer.key));
        net.settle();
        expect_good(q.a, 1);
        // Waits are 20 us at least.
        EXPECT_LE(last - first, (bytes - ahead) * 8'000'000 / kbps + 21 * kUs) << "slower than the rate";
        net.filter = nullptr;
    }
    EXPECT_EQ(net.a.counters().retransmitted, 0u);
}

TEST_F(Reaction, TheLowerOfBothRates)
{
    Options slow;
    slow.static_rate = 3;   // 10 Gbit/s
    Pair q(net.a, net.b, slow);
    notify(q.a, q.b);
    EXPECT_EQ(rate(q.a), 5'000'000u) << "half of what it had";
    for (unsigned i = 0; i < 100; i++) {
        pass(55 * kUs);
        if (!rate(q.a))
            break;
        EXPECT_LT(rate(q.a), 10'000'000u);
    }
    EXPECT_EQ(rate(q.a), 0u) << "as fast as its static rate lets it";
    uint64_t first = 0, last = 0, bytes = 0, ahead = 0;
    net.filter = [&](const Node &from, Frame &f) {
        if (from.number == 1) {
            first = first ? first : net.now();
            last = net.now();
            bytes += ahead;
            ahead = f.size() + 4;
        }
        return Fate{};
    };
    q.a.post(write_to(q.a.sge(0, 100'000), q.b.va(0), q.b.buffer.key));
    net.settle();
    expect_good(q.a, 1);
    EXPECT_GE((last - first) * 10'000, bytes * 8000);
}

// A QP that waits by a rate that it no longer has goes on when its wait is over.
TEST_F(Reaction, RecoversWhileItWaits)
{
    hghca_congestion c = net.a.driver.congestion();
    c.min_rate = be32(1);
    ASSERT_EQ(net.a.driver.set_congestion(c), 0);
    for (unsigned i = 0; i < 20; i++) {
        notify(p.a, p.b);
        pass(50 * kUs);
    }
    p.a.post({write_to(p.a.sge(0, 3000), p.b.va(0), p.b.buffer.key),
              write_to(p.a.sge(0, 3000), p.b.va(0), p.b.buffer.key)});
    net.pump();
    EXPECT_FALSE(p.a.poll());
    net.a.driver.turn_congestion(HGHCA_CONGESTION_NOTIFY);
    net.settle();
    expect_good(p.a, 2);
}

// A reduction makes what is under way take longer: that is no loss.
TEST_F(Reaction, NoTimeOutForBeingSlow)
{
    Options options;
    options.ack_timeout = 1;
    Pair q(net.a, net.b, options);
    hghca_congestion c = net.a.driver.congestion();
    c.increase_period = be32(1'000'000);
    ASSERT_EQ(net.a.driver.set_congestion(c), 0);
    notify(q.a, q.b);
    q.a.post(write_to(q.a.sge(0, 300'000), q.b.va(0), q.b.buffer.key));
    net.pump();
    for (unsigned i = 0; i < 12; i++) {
        net.settle(51 * kUs);
        notify(q.a, q.b);
    }
    net.settle();
    expect_good(q.a, 1);
    EXPECT_EQ(net.a.counters().local_ack_timeout_err, 0u);
    EXPECT_EQ(net.a.counters().retransmitted, 0u);
}

TEST_F(Reaction, AnotherPathStartsAfresh)
{
    notify(p.a, p.b);
    p.a.to_sqd(false);
    const Gid gid = Node::gid_of(2, 0);
    hghca_qpc c = net.a.driver.rtr_qpc(Endpoint::peer_of(p.a, p.b, gid), 0, 3, 16);
    c.opt_param_mask = be32(HGHCA_QP_ATTR_AV);
    TestDriver::must(net.a.driver.modify(HGHCA_CMD_SQD2SQD_QPEE, p.a.qp.qpn, c), "SQD2SQD");
    EXPECT_EQ(rate(p.a), 0u);
}

// Nothing runs for a QP that has nothing to send, however slow it is.
TEST_F(Reaction, AnIdleQpHasNoTimer)
{
    net.pump();
    notify(p.a, p.b);
    EXPECT_EQ(net.a.host.deadline_ns, UINT64_MAX);
    EXPECT_FALSE(net.a.device.has_work());
}

// ---- what comes back from ICM

using CongestionIcm = CongestionWithSmallCache;

TEST_F(CongestionIcm, TheRateOutlivesTheContext)
{
    turn_on();
    Pair p(net.a, net.b, Options{}), q(net.a, net.b, Options{});
    notify(p.a, p.b);
    EXPECT_EQ(rate(q.a), 0u);   // takes the place of the other
    EXPECT_EQ(rate(p.a), kLine / 2);
}

struct ScribbleCase {
    const char *name;
    bool taken;   // as it is
    std::vector<std::pair<const char *, uint64_t>> fields;
};

const ScribbleCase kScribbles[] = {
    {"an undefined state", false, {{"congestion.rate", 3}}},
    {"a bool that is 2", false, {{"congestion.cnp_due", 2}}},
    {"no rate at all", false, {{"congestion.current_kbps", 0}}},
    {"a rate above its target", false, {{"congestion.target_kbps", kLine / 2 - 1}}},
    {"alpha above 1", false, {{"congestion.alpha", (1u << 30) + 1}}},
    {"an undefined phase", false, {{"pace.phase", 3}}},
    {"rates beyond the port's", true,
     {{"congestion.current_kbps", UINT32_MAX}, {"congestion.target_kbps", UINT32_MAX}}},
    {"the lowest rate", true, {{"congestion.current_kbps", 1}, {"congestion.target_kbps", 1}}},
    {"times to come", true,
     {{"congestion.cut_ns", UINT64_MAX}, {"congestion.stage_ns", UINT64_MAX}, {"congestion.next_cnp_ns", UINT64_MAX}}},
    {"times long ago", true,
     {{"congestion.cut_ns", 0}, {"congestion.stage_ns", 0}, {"congestion.next_cnp_ns", 0}}},
    {"all stages", true, {{"congestion.time_stage", UINT8_MAX}, {"congestion.byte_stage", UINT8_MAX}}},
    {"bytes of many stages", true, {{"congestion.bytes", UINT32_MAX}}},
    {"a notification that nobody asked for", true, {{"congestion.cnp_due", 1}}},
    {"a packet at the end of time", true, {{"pace.next_ns", UINT64_MAX}}},
    {"a wait without a timer", true, {{"pace.phase", 1}}},
};

TEST_F(CongestionIcm, WhatTheGuestWritesThere)
{
    turn_on();
    for (const ScribbleCase &c : kScribbles) {
        SCOPED_TRACE(c.name);
        Pair p(net.a, net.b, Options{}), other(net.a, net.b, Options{});
        notify(p.a, p.b);
        ASSERT_EQ(rate(other.a), 0u);   // the context of p.a is in ICM now
        uint8_t *entry = net.a.host.at(net.a.driver.qpc_dma + 2048 * uint64_t(p.a.qp.qpn));
        ASSERT_EQ(get_field<Qp>(entry, "a.qpn"), p.a.qp.qpn);
        ASSERT_EQ(get_field<Qp>(entry, "congestion.current_kbps"), kLine / 2);
        for (const auto &[field, value] : c.fields)
            put_field<Qp>(entry, field, value);

        hghca_qpc context;
        TestDriver::must(net.a.driver.query(HGHCA_CMD_QUERY_QP, context, p.a.qp.qpn), "QUERY_QP");
        EXPECT_EQ(field_get(HGHCA_QPC_STATE_MASK, be32(context.flags)),
                  c.taken ? unsigned(HGHCA_QP_STATE_RTS) : unsigned(HGHCA_QP_STATE_RST));
        EXPECT_LE(be32(context.rate), kLine);
        // Whatever it is now, it is the guest's own loss: others go on, and all comes to rest.
        p.a.post(write_to(p.a.sge(0, 20'000), p.b.va(0), p.b.buffer.key));
        other.a.post(write_to(other.a.sge(0, 20'000), other.b.va(0), other.b.buffer.key));
        net.settle(100 * kMs);
        notify(p.a, p.b);
        net.settle(100 * kMs);
        expect_good(other.a, 1);
    }
}

// ---- two senders into a queue that marks

// Devices 1 and 2 send to device 3 through one port of a switch, which takes `kbps` and marks as RED does: never below
// kMin, always above kMax, between with a probability that grows to kPmax. What comes back takes no time.
class Incast {
public:
    static constexpr uint64_t kKbps = 10'000'000;
    static constexpr uint64_t kMin = 5'000, kMax = 200'000, kLimit = 4'000'000;
    static constexpr double kPmax = 0.01;

    explicit Incast(bool on)
    {
        for (unsigned i = 0; i < 3; i++) {
            nodes.push_back(std::make_unique<Node>(i + 1));
            nodes[i]->device.congestion.react = nodes[i]->device.congestion.notify = on;
            nodes[i]->host.on_frame = [this, i](const Frame &f) { i < 2 ? enqueue(f) : back(f); };
        }
        Options options;
        options.mtu_code = 5;
        for (unsigned i = 0; i < 2; i++)
            pairs.push_back(std::make_unique<Pair>(*nodes[i], *nodes[2], options));
    }
    // Both senders have work all the time from `start` on.
    void run(uint64_t from_ns, uint64_t until_ns, bool first, bool second)
    {
        const bool sends[2] = {first, second};
        while (now < until_ns) {
            for (unsigned i = 0; i < 2; i++) {
                Endpoint &e = pairs[i]->a;
                posted[i] -= unsigned(e.poll_all().size());
                for (; sends[i] && posted[i] < 8; posted[i]++)
                    e.post(write_to(e.sge(0, 64'000), pairs[i]->b.va(0), pairs[i]->b.buffer.key));
            }
            for (auto &node : nodes)
                while (node->device.has_work())
                    node->device.run();
            // The next thing that happens: a packet has left the queue, or a timer ends.
            uint64_t next = queue.empty() ? UINT64_MAX : free_at;
            for (auto &node : nodes)
                next = std::min(next, node->host.deadline_ns);
            now = std::min(std::max(next, now), until_ns);
            for (auto &node : nodes) {
                node->host.clock_ns = now;
                if (node->host.deadline_ns <= now) {
                    node->host.deadline_ns = UINT64_MAX;
                    node->device.timer();
                }
            }
            while (!queue.empty() && free_at <= now) {
                const Frame f = std::move(queue.front());
                queue.pop_front();
                depth -= f.size();
                if (now >= from_ns)
                    got[f[29] - 1] += f.size();
                if (!queue.empty())
                    free_at = std::max(free_at, now) + time(queue.front());
                Network::deliver(*nodes[2], f);
            }
        }
    }

    std::vector<std::unique_ptr<Node>> nodes;
    std::vector<std::unique_ptr<Pair>> pairs;
    uint64_t now = 1'000'000;
    uint64_t got[2] = {};   // bytes that have left the queue, by sender
    uint64_t depth = 0, deepest = 0, marked = 0, dropped = 0;

private:
    static uint64_t time(const Frame &f) { return f.size() * 8'000'000 / kKbps; }
    void enqueue(Frame f)
    {
        if (depth + f.size() > kLimit) {
            dropped++;
            return;
        }
        random_ = random_ * 6364136223846793005ull + 1442695040888963407ull;
        const double p = depth < kMin ? 0 : depth > kMax ? 1 : kPmax * double(depth - kMin) / double(kMax - kMin);
        if (double(random_ >> 33) / double(1u << 31) < p && mark(f))
            marked++;
        depth += f.size();
        deepest = std::max(deepest, depth);
        if (queue.empty())
            free_at = now + time(f);
        queue.push_back(std::move(f));
    }
    void back(const Frame &f) { Network::deliver(*nodes[f[33] - 1], f); }

    std::deque<Frame> queue;
    uint64_t free_at = 0;
    unsigned posted[2] = {};
    uint64_t random_ = 1;
};

TEST(CongestionIncast, TwoSendersShareAndTheQueueStaysShort)
{
    Incast net(true);
    net.run(50 * kMs, 60 * kMs, true, false);    // the second comes when the first has all
    EXPECT_GT(double(net.got[0]), 0.7 * 10 * kMs * Incast::kKbps / 8'000'000);
    net.run(0, 80 * kMs, true, true);
    net.got[0] = net.got[1] = net.deepest = 0;
    net.run(0, 120 * kMs, true, true);
    const double all = double(net.got[0] + net.got[1]);
    const double line = 40.0 * kMs * Incast::kKbps / 8'000'000;
    EXPECT_GT(all, 0.85 * line) << "the port was idle";
    // Jain's index of two: 1 when equal, 1/2 when one has all.
    const double first = double(net.got[0]), second = double(net.got[1]);
    const double index = all * all / 2 / (first * first + second * second);
    EXPECT_GT(index, 0.9);
    EXPECT_LT(net.deepest, 400'000u);
    EXPECT_EQ(net.dropped, 0u);
    EXPECT_GT(net.marked, 0u);
    EXPECT_EQ(net.nodes[0]->counters().retransmitted + net.nodes[1]->counters().retransmitted, 0u);

    // Without, the windows of both stand in the queue all the time.
    Incast off(false);
    off.run(0, 20 * kMs, true, true);
    EXPECT_GT(off.deepest, 450'000u);
    EXPECT_EQ(off.marked, 0u);
}

}  // namespace
}  // namespace hghca::test::congestion_test
