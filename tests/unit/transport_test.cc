// SPDX-License-Identifier: GPL-2.0-or-later
// Rules of chapter 9 that concern all connections: credits, events, timers, what a path puts into its packets.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <utility>

#include "jingzhao/cq.h"
#include "jingzhao/eq.h"
#include "jingzhao/qp_table.h"
#include "verbs.h"

namespace hghca::test::transport_test {
namespace {

using Options = Endpoint::Options;

class Transport : public ::testing::Test {
protected:
    // The one completion there is, without error.
    static Completion good(Endpoint &e)
    {
        auto all = e.poll_all();
        EXPECT_EQ(all.size(), 1u);
        if (all.empty())
            return {};
        EXPECT_FALSE(all[0].error) << "syndrome " << int(all[0].syndrome);
        return all[0];
    }
    static void expect_good(Endpoint &e, size_t n)
    {
        auto all = e.poll_all();
        EXPECT_EQ(all.size(), n);
        for (const Completion &c : all)
            EXPECT_FALSE(c.error) << int(c.syndrome);
    }
    uint64_t sent() { return net.a.counters().tx_packets; }
    uint64_t naks() { return net.b.counters().rnr_nak_sent; }
    Network net;
};

// ---- end-to-end credits (9.7.7.2)

class Credits : public Transport {
protected:
    // B has `posted` receives, and A knows.
    static void grant(Network &net, Pair &p, unsigned posted, uint32_t bytes = 4096)
    {
        for (unsigned i = 0; i < posted; i++)
            p.b.post_recv(p.b.sge(0, bytes));
        p.a.post(write_to(p.a.sge(0, 0), 0, 0));
        net.pump();
        expect_good(p.a, 1);
    }
    static Wqe small(Pair &p) { return send(p.a.sge(0, 10)); }
    static std::vector<Wqe> many(Pair &p, size_t n) { return std::vector<Wqe>(n, small(p)); }
    // All that A may send before a frame of B comes.
    static void send_all(Network &net)
    {
        while (net.a.device.has_work())
            net.a.device.run();
    }
};

TEST_F(Credits, TellHowManyReceivesArePosted)
{
    constexpr uint32_t kCounts[] = HGHCA_AETH_CREDITS;
    static_assert(std::size(kCounts) == HGHCA_AETH_CREDIT_UNLIMITED);
    Options options;
    options.rq_wqes = 256;
    Pair p(net.a, net.b, options);
    net.keep_log = true;
    for (uint32_t posted = 0; posted <= 256; posted++) {
        p.a.post(write_to(p.a.sge(0, 0), 0, 0));
        net.pump();
        good(p.a);
        View ack(net.log.back());
        ASSERT_EQ(ack.opcode, HGHCA_BTH_OP_ACK);
        const unsigned code = ack.syndrome;
        ASSERT_LT(code, std::size(kCounts)) << posted;
        EXPECT_LE(kCounts[code], posted);
        EXPECT_GT(kCounts[code + 1], posted);   // the most that can be said
        p.b.post_recv(p.b.sge(0, 10));
    }
}

TEST_F(Credits, StandInEveryAnswer)
{
    Options options;
    options.mtu_code = 1;
    Pair p(net.a, net.b, options);
    for (int i = 0; i < 6; i++)
        p.b.post_recv(p.b.sge(0, 10));
    net.keep_log = true;
    p.a.post({read_from(p.a.sge(0, 600), p.b.va(0), p.b.buffer.key),
              Wqe(HGHCA_OPCODE_ATOMIC_FA).raddr(p.b.va(0), p.b.buffer.key).atomic(1, 0).data(p.a.sge(0, 8)),
              small(p)});
    net.pump();
    expect_good(p.a, 3);
    unsigned seen = 0;
    for (const Frame &f : net.log) {
        View v(f);
        if (v.is_request() || v.opcode == HGHCA_BTH_OP_READ_RESPONSE_MIDDLE)
            continue;
        // Code 5 says six, 4 four; one of the six is taken by the SEND, sooner or later.
        const int code = f[v.bth + 12];
        EXPECT_TRUE(code == 5 || code == 4) << int(v.opcode) << " " << code;
        seen |= 1u << v.opcode;
    }
    EXPECT_EQ(seen, 1u << HGHCA_BTH_OP_READ_RESPONSE_FIRST | 1u << HGHCA_BTH_OP_READ_RESPONSE_LAST |
                         1u << HGHCA_BTH_OP_ATOMIC_ACK | 1u << HGHCA_BTH_OP_ACK);
}

TEST_F(Credits, ASharedReceiveQueueGivesNone)
{
    auto srq = net.b.driver.create_srq();
    Options options;
    options.srqn = srq.srqn;
    Pair p(net.a, net.b, Options{}, options);
    net.keep_log = true;
    p.a.post(write_to(p.a.sge(0, 0), 0, 0));
    net.pump();
    good(p.a);
    EXPECT_EQ(View(net.log.back()).syndrome, HGHCA_AETH_ACK | HGHCA_AETH_CREDIT_UNLIMITED);
    // Without a count there is no limit.
    p.a.post(many(p, 20));
    send_all(net);
    EXPECT_EQ(sent(), 21u);
}

TEST_F(Credits, WithoutADoorbellRecordNobodyCounts)
{
    Options options;
    options.dbr = false;
    Pair p(net.a, net.b, options);
    net.keep_log = true;
    p.b.post_recv(p.b.sge(0, 10));
    p.a.post(small(p));
    net.pump();
    good(p.a);
    EXPECT_EQ(View(net.log.back()).syndrome, HGHCA_AETH_ACK | HGHCA_AETH_CREDIT_UNLIMITED);
}

TEST_F(Credits, NoMoreThanGrantedIsSentAtOnce)
{
    for (unsigned posted : {1u, 2u, 4u, 16u}) {
        SCOPED_TRACE(posted);
        Pair p(net.a, net.b, Options{});
        grant(net, p, posted);
        const uint64_t before = sent(), nak = naks();
        p.a.post(many(p, 32));
        send_all(net);
        EXPECT_EQ(sent() - before, posted);
        for (unsigned i = posted; i < 32; i++)
            p.b.post_recv(p.b.sge(0, 10));
        net.settle();
        expect_good(p.a, 32);
        expect_good(p.b, 32);
        EXPECT_EQ(sent() - before, 32u);   // none twice
        EXPECT_EQ(naks(), nak);
    }
}

TEST_F(Credits, WithoutOneAPacketGoesAndAsks)
{
    Options options;
    options.mtu_code = 1;
    Pair p(net.a, net.b, options);
    grant(net, p, 0);
    p.b.post_recv(p.b.sge(0, 4096));   // A has not been told
    const uint64_t before = sent();
    net.keep_log = true;
    p.a.fill(0, 256 * 5, 1);
    p.a.post(send(p.a.sge(0, 256 * 5)));
    ASSERT_EQ(sent() - before, 1u);
    net.pump();
    EXPECT_TRUE(View(net.log.front()).ack_request);
    good(p.a);
    good(p.b);
    EXPECT_TRUE(p.b.holds(0, 256 * 5, 1));
    EXPECT_EQ(sent() - before, 5u);
    // Nothing is there: the one packet is answered by an RNR NAK, and goes again until something is.
    p.a.post(many(p, 3));
    EXPECT_EQ(sent() - before, 6u);
    net.settle(1'000'000);
    EXPECT_GT(naks(), 0u);
    for (int i = 0; i < 3; i++)
        p.b.post_recv(p.b.sge(0, 10));
    net.settle();
    expect_good(p.a, 3);
    expect_good(p.b, 3);
}

TEST_F(Credits, OnlyWhatTakesAReceiveNeedsThem)
{
    Options options;
    options.mtu_code = 1;
    Pair p(net.a, net.b, options);
    grant(net, p, 0);
    const uint64_t before = sent();
    p.a.post({write_to(p.a.sge(0, 600), p.b.va(0), p.b.buffer.key),
              read_from(p.a.sge(0, 600), p.b.va(0), p.b.buffer.key),
              Wqe(HGHCA_OPCODE_ATOMIC_FA).raddr(p.b.va(0), p.b.buffer.key).atomic(1, 0).data(p.a.sge(0, 8)),
              Wqe(HGHCA_OPCODE_RDMA_WRITE_IMM).raddr(p.b.va(0), p.b.buffer.key).data(p.a.sge(0, 600)), small(p)});
    // The WRITE with immediate data is the one message beyond the credits.
    EXPECT_EQ(sent() - before, 3u + 1 + 1 + 3);
    p.b.post_recv(p.b.sge(0, 10));
    p.b.post_recv(p.b.sge(0, 10));
    net.settle();
    expect_good(p.a, 5);
    expect_good(p.b, 2);
    EXPECT_EQ(naks(), 0u);
}

// The first count comes while packets are under way that have not asked for an ACK.
TEST_F(Credits, ComeInTheMiddleOfAMessage)
{
    Options options;
    options.mtu_code = 1;
    Pair p(net.a, net.b, options);
    p.b.post_recv(p.b.sge(0, 256 * 30));
    p.a.fill(0, 256 * 30, 1);
    bool acked = false;
    net.filter = [&](const Node &from, Frame &f) {
        if (&from == &net.a) {
            // A stops in the middle of the SEND, and is acknowledged meanwhile.
            net.a.host.link_full = View(f).psn == 0x105 && !acked;
        } else if (!acked) {
            acked = true;
            f[View(f).bth + 12] = HGHCA_AETH_ACK;   // no credit at all
            seal(f);
        }
        return Fate{};
    };
    p.a.post({write_to(p.a.sge(0, 0), 0, 0), send(p.a.sge(0, 256 * 30))});
    net.pump();
    EXPECT_TRUE(acked);
    net.a.host.link_full = false;
    net.a.device.link_ready();
    net.pump();
    expect_good(p.a, 2);
    EXPECT_TRUE(p.b.holds(0, 256 * 30, 1));
    EXPECT_EQ(net.a.counters().retransmitted, 0u);
}

TEST_F(Credits, CountOnWhereMessageNumbersWrap)
{
    Pair p(net.a, net.b, Options{});
    hghca::Qp *a = net.a.device.qps->find(Qpn(p.a.qp.qpn)), *b = net.b.device.qps->find(Qpn(p.b.qp.qpn));
    a->req.messages_done = a->req.messages_sent = b->resp.msn = Msn(0xfffffe);
    grant(net, p, 4);
    for (int round = 0; round < 5; round++) {
        const uint64_t before = sent();
        p.a.post(many(p, 6));
        EXPECT_EQ(sent() - before, 4u);
        p.b.post_recv(p.b.sge(0, 10));
        p.b.post_recv(p.b.sge(0, 10));
        net.settle();
        expect_good(p.a, 6);
        expect_good(p.b, 6);
        grant(net, p, 4);
    }
    EXPECT_EQ(naks(), 0u);
}

// Codes round down: what is told later may be less.
TEST_F(Credits, WhatWasGrantedStaysGranted)
{
    Pair p(net.a, net.b, Options{});
    grant(net, p, 33);   // told as 32
    const hghca::Qp *a = net.a.device.qps->find(Qpn(p.a.qp.qpn));
    ASSERT_EQ(a->req.message_limit, Msn(33));
    uint32_t limit = 33;
    for (int i = 0; i < 33; i++) {
        p.a.post(small(p));
        net.pump();
        good(p.a);
        good(p.b);
        EXPECT_GE(number(a->req.message_limit), limit) << i;
        limit = number(a->req.message_limit);
    }
    EXPECT_EQ(limit, 34u);   // the WRITE before, and one for each receive
}

// An ACK that comes when all is about to be sent again.
TEST_F(Credits, AcknowledgedBeforeItIsSentAgain)
{
    Pair p(net.a, net.b, Options{});
    for (int i = 0; i < 3; i++)
        p.b.post_recv(p.b.sge(0, 10));
    std::vector<Frame> acks;
    net.filter = [&](const Node &from, Frame &f) {
        if (&from == &net.a)
            return Fate{};
        acks.push_back(f);
        return Fate{0};
    };
    p.a.post(many(p, 3));
    net.pump();
    ASSERT_FALSE(acks.empty());
    net.a.host.link_full = true;
    net.at(net.a.host.deadline_ns);
    Network::deliver(net.a, acks.front());
    const hghca::Qp *a = net.a.device.qps->find(Qpn(p.a.qp.qpn));
    EXPECT_GT(number(a->req.messages_done), 0u);
    EXPECT_EQ(a->req.messages_sent, a->req.messages_done);
    net.filter = nullptr;
    net.a.host.link_full = false;
    net.a.device.link_ready();
    net.settle();
    expect_good(p.a, 3);
    EXPECT_EQ(a->req.messages_sent, Msn(3));
}

TEST_F(Credits, WhatIsSentAgainCountsOnce)
{
    Options options;
    options.sq_wqes = options.rq_wqes = 16;
    Pair p(net.a, net.b, options);
    unsigned n = 0;
    net.filter = [&](const Node &, Frame &) { return Fate{++n % 7 ? 1u : 0u}; };
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < 3; i++)
            p.b.post_recv(p.b.sge(0, 10));
        p.a.post({small(p), read_from(p.a.sge(0, 10), p.b.va(0), p.b.buffer.key), small(p),
                  write_to(p.a.sge(0, 10), p.b.va(0), p.b.buffer.key), small(p)});
        net.settle();
        expect_good(p.a, 5);
        expect_good(p.b, 3);
    }
    const hghca::Qp *a = net.a.device.qps->find(Qpn(p.a.qp.qpn)), *b = net.b.device.qps->find(Qpn(p.b.qp.qpn));
    EXPECT_EQ(a->req.messages_done, Msn(500));
    EXPECT_EQ(a->req.messages_sent, Msn(500));
    EXPECT_EQ(b->resp.msn, Msn(500));
}

// ---- solicited events (9.2)

TEST_F(Transport, TheSolicitedBitStandsWhereACompletionIs)
{
    constexpr uint32_t kFlags = HGHCA_WQE_CQ_UPDATE | HGHCA_WQE_SOLICIT;
    for (uint8_t service : {HGHCA_QP_ST_RC, HGHCA_QP_ST_UC}) {
        struct {
            uint8_t opcode;
            bool asks;
        } cases[] = {
            {HGHCA_OPCODE_SEND, true},         {HGHCA_OPCODE_SEND_IMM, true},  {HGHCA_OPCODE_RDMA_WRITE, false},
            {HGHCA_OPCODE_RDMA_WRITE_IMM, true}, {HGHCA_OPCODE_RDMA_READ, false}, {HGHCA_OPCODE_ATOMIC_FA, false},
        };
        for (auto &c : cases) {
            if (service == HGHCA_QP_ST_UC && c.opcode >= HGHCA_OPCODE_RDMA_READ)
                continue;
            SCOPED_TRACE(int(service) * 256 + c.opcode);
            Options options;
            options.service = service;
            options.mtu_code = 1;
            Pair p(net.a, net.b, options);
            p.b.post_recv(p.b.sge(0, 1000));
            net.keep_log = true;
            net.log.clear();
            Wqe wqe(c.opcode, kFlags);
            if (c.opcode != HGHCA_OPCODE_SEND && c.opcode != HGHCA_OPCODE_SEND_IMM)
                wqe.raddr(p.b.va(0), p.b.buffer.key);
            if (c.opcode == HGHCA_OPCODE_ATOMIC_FA)
                wqe.atomic(1, 0);
            p.a.post(wqe.data(p.a.sge(0, c.opcode == HGHCA_OPCODE_ATOMIC_FA ? 8 : 1000)));
            net.pump();
            good(p.a);
            unsigned bits = 0;
            uint32_t last = 0, marked = 0;
            for (const Frame &f : net.log) {
                View v(f);
                if (f[5] != 2)
                    continue;   // not from A
                last = v.psn;
                if (f[v.bth + 1] & HGHCA_BTH_SOLICITED) {
                    bits++;
                    marked = v.psn;
                }
            }
            EXPECT_EQ(bits, c.asks ? 1u : 0u);
            if (c.asks) {
                EXPECT_EQ(marked, last);
            }
        }
    }
}

// ---- timers (9.7.6.1.3)

TEST(AckTimer, HasAllItsValues)
{
    for (unsigned code = 1; code < 32; code++) {
        SCOPED_TRACE(code);
        Network net;
        Options options;
        options.ack_timeout = code;
        Pair p(net.a, net.b, options);
        net.filter = [](const Node &, Frame &) { return Fate{0}; };
        p.a.post(write_to(p.a.sge(0, 10), p.b.va(0), p.b.buffer.key));
        net.pump();
        EXPECT_EQ(net.a.host.deadline_ns, net.now() + (4096ull << code));
        net.filter = nullptr;
        net.settle(4096ull << code);
        auto done = p.a.poll();
        ASSERT_TRUE(done);
        EXPECT_FALSE(done->error);
        EXPECT_EQ(net.a.counters().local_ack_timeout_err, 1u);
    }
}

// ---- messages of no bytes

TEST_F(Transport, MessagesOfNoBytes)
{
    for (uint8_t service : {HGHCA_QP_ST_RC, HGHCA_QP_ST_UC, HGHCA_QP_ST_UD}) {
        Options options;
        options.service = service;
        Endpoint a(net.a, options), b(net.b, options);
        if (service != HGHCA_QP_ST_UD) {
            a.to_rtr(b);
            b.to_rtr(a);
            a.to_rts();
            b.to_rts();
        }
        for (uint8_t opcode : {HGHCA_OPCODE_SEND, HGHCA_OPCODE_SEND_IMM, HGHCA_OPCODE_RDMA_WRITE,
                               HGHCA_OPCODE_RDMA_WRITE_IMM, HGHCA_OPCODE_RDMA_READ}) {
            const bool sends = opcode == HGHCA_OPCODE_SEND || opcode == HGHCA_OPCODE_SEND_IMM;
            if ((service == HGHCA_QP_ST_UD && !sends) ||
                (service == HGHCA_QP_ST_UC && opcode == HGHCA_OPCODE_RDMA_READ))
                continue;
            SCOPED_TRACE(int(service) * 256 + opcode);
            for (bool with_list : {false, true}) {
                b.post_recv(b.sge(0, 40));
                Wqe wqe(opcode, HGHCA_WQE_CQ_UPDATE, be32(9));
                if (service == HGHCA_QP_ST_UD)
                    wqe.ud(b.qp.qpn, 0x11111111, 2);
                if (!sends)
                    wqe.raddr(0, 0x999);   // a key nobody looks at
                if (with_list)
                    wqe.data(a.sge(0, 0));
                a.post(wqe);
                net.pump();
                EXPECT_EQ(good(a).bytes, 0u);
                if (!sends && opcode != HGHCA_OPCODE_RDMA_WRITE_IMM) {
                    EXPECT_FALSE(b.poll());
                    continue;
                }
                const Completion got = good(b);
                EXPECT_EQ(got.bytes, service == HGHCA_QP_ST_UD ? 40u : 0u);
                if (opcode != HGHCA_OPCODE_SEND) {
                    EXPECT_EQ(got.imm, be32(9));
                }
            }
        }
    }
}

// ---- what a path puts into its packets

struct PathCase {
    uint8_t tclass, hops;
    uint32_t flow_label;
    uint16_t port;   // 0: of the QPs' numbers
};
constexpr PathCase kPaths[] = {
    {0, 1, 0, 0},           {0x02, 64, 1, 0xc001},       {0xb9, 255, 0x3fff, 0xffff},
    {0xff, 2, 0x4000, 0xc001}, {0x68, 3, 0xfffff, 0xffc0}, {0x01, 4, 0x12345, 0xe341},
};

class Paths : public Transport {
protected:
    static uint32_t word(const PathCase &c)
    {
        return field_put(HGHCA_QPC_TCLASS_MASK, c.tclass) | c.flow_label;
    }
    void expect_path(const PathCase &c, const Frame &f)
    {
        View v(f);
        const uint16_t port = uint16_t(f[v.bth - 8] << 8 | f[v.bth - 7]);
        if (c.port) {
            EXPECT_EQ(port, c.port);
        } else {
            EXPECT_GE(port, 0xc000);
        }
        if (v.ipv6) {
            EXPECT_EQ(uint8_t(f[v.ip] << 4 | f[v.ip + 1] >> 4), c.tclass);
            EXPECT_EQ(uint32_t(f[v.ip + 1] & 0xf) << 16 | f[v.ip + 2] << 8 | f[v.ip + 3], c.flow_label);
            EXPECT_EQ(f[v.ip + 7], c.hops);
        } else {
            EXPECT_EQ(f[v.ip + 1], c.tclass);   // the two bits of ECN as well
            EXPECT_EQ(f[v.ip + 8], c.hops);
        }
    }
};

TEST_F(Paths, OfConnections)
{
    for (unsigned sgid_index : {0u, 1u}) {
        for (const PathCase &c : kPaths) {
            SCOPED_TRACE(sgid_index * 256 + c.hops);
            Options options;
            options.sgid_index = sgid_index;
            Pair p(net.a, net.b, options, false);
            for (auto [self, other] : {std::pair(&p.a, &p.b), std::pair(&p.b, &p.a)}) {
                const Gid gid = Node::gid_of(other->node.number, sgid_index);
                hghca_qpc q = self->node.driver.rtr_qpc(Endpoint::peer_of(*self, *other, gid), 0x100);
                q.hop_limit = c.hops;
                q.sl_tclass_flowlabel = be32(word(c));
                TestDriver::must(self->node.driver.modify(HGHCA_CMD_INIT2RTR_QPEE, self->qp.qpn, q), "INIT2RTR");
                self->to_rts();
            }
            net.keep_log = true;
            net.log.clear();
            p.a.post(write_to(p.a.sge(0, 8), p.b.va(0), p.b.buffer.key));
            net.pump();
            good(p.a);
            ASSERT_EQ(net.log.size(), 2u);   // the request and its ACK
            for (const Frame &f : net.log)
                expect_path(c, f);
        }
    }
}

TEST_F(Paths, OfDatagrams)
{
    Options options;
    options.service = HGHCA_QP_ST_UD;
    Endpoint a(net.a, options), b(net.b, options);
    for (unsigned sgid_index : {0u, 1u}) {
        for (const PathCase &c : kPaths) {
            SCOPED_TRACE(sgid_index * 256 + c.hops);
            Wqe wqe = Wqe(HGHCA_OPCODE_SEND).ud(b.qp.qpn, 0x11111111, 2, sgid_index);
            const size_t at = wqe.bytes.size() - sizeof(hghca_ud_gid_unit);
            auto *unit = reinterpret_cast<hghca_ud_gid_unit *>(&wqe.bytes[at]);
            unit->sl_tclass_flowlabel = le32(word(c));
            unit->port = le32((le32(unit->port) & ~HGHCA_UD_HOP_LIMIT_MASK) |
                              field_put(HGHCA_UD_HOP_LIMIT_MASK, c.hops));
            b.post_recv(b.sge(0, 100));
            net.keep_log = true;
            net.log.clear();
            a.post(wqe.data(a.sge(0, 9)));
            net.pump();
            good(a);
            ASSERT_EQ(net.log.size(), 1u);
            expect_path(c, net.log[0]);
            // The receiver sees it: in the last 20 of the 40 bytes when it is IPv4.
            good(b);
            const size_t ip = View(net.log[0]).ip, bytes = sgid_index ? 40 : 20;
            EXPECT_EQ(std::memcmp(b.at(40 - bytes), &net.log[0][ip], bytes), 0);
        }
    }
}

TEST_F(Paths, WithoutAFlowLabelEachConnectionHasItsPort)
{
    net.keep_log = true;
    std::map<uint16_t, unsigned> ports;
    constexpr unsigned kPairs = 32;
    std::vector<std::unique_ptr<Pair>> pairs;
    for (unsigned i = 0; i < kPairs; i++) {
        Options options;
        options.buffer_bytes = 4096;
        pairs.push_back(std::make_unique<Pair>(net.a, net.b, options));
        Pair &p = *pairs.back();
        net.log.clear();
        for (int n = 0; n < 2; n++)
            p.a.post(write_to(p.a.sge(0, 8), p.b.va(0), p.b.buffer.key));
        net.pump();
        std::map<uint16_t, unsigned> own;
        for (const Frame &f : net.log)
            if (View v(f); v.is_request())
                own[uint16_t(f[v.bth - 8] << 8 | f[v.bth - 7])]++;
        ASSERT_EQ(own.size(), 1u);   // packets of one connection keep their order
        ports[own.begin()->first]++;
    }
    EXPECT_GT(ports.size(), kPairs * 3 / 4);
}

}  // namespace
}  // namespace hghca::test::transport_test
