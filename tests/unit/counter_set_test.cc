// SPDX-License-Identifier: GPL-2.0-or-later
// Counter sets, QUERY_CQ and QUERY_MPT (interface document, 4.19).
#include <array>

#include <gtest/gtest.h>

#include "icm_entry.h"
#include "verbs.h"

namespace hghca::test::counter_set_test {
namespace {

using Set = std::array<uint64_t, HGHCA_QP_COUNTER_NUM>;

constexpr uint32_t kBasic = kFullCaps & ~HGHCA_CAP_QP_COUNTERS;
constexpr uint64_t kAckBytes = 14 + 20 + 8 + 12 + 4 + 4;   // Ethernet, IPv4, UDP, BTH, AETH, ICRC
constexpr uint64_t kSendBytes = 14 + 20 + 8 + 12 + 4;      // of a SEND without its payload

uint8_t bind(Node &node, uint32_t qpn, uint64_t set)
{
    return node.driver.command(HGHCA_CMD_SET_QP_COUNTER, set, qpn).status;
}

Set read(Node &node, uint32_t set, uint32_t op_modifier = HGHCA_COUNTER_SET_READ)
{
    Set values;
    TestDriver::must(node.driver.query(HGHCA_CMD_QUERY_COUNTER_SET, values, set, op_modifier), "QUERY_COUNTER_SET");
    for (uint64_t &v : values)
        v = be64(v);
    return values;
}

std::array<uint64_t, 512> stats(Node &node, uint32_t op_modifier)
{
    std::array<uint64_t, 512> values;
    TestDriver::must(node.driver.query(HGHCA_CMD_QUERY_STATS, values, 0, op_modifier), "QUERY_STATS");
    for (uint64_t &v : values)
        v = be64(v);
    return values;
}

uint32_t set_of(Node &node, uint32_t qpn)
{
    hghca_qpc c;
    TestDriver::must(node.driver.query(HGHCA_CMD_QUERY_QP, c, qpn), "QUERY_QP");
    return be32(c.counter_set);
}

// What differs from `rest`, as text that a failure shows.
void expect_only(const Set &set, const std::map<unsigned, uint64_t> &counted)
{
    for (unsigned i = 0; i < set.size(); i++)
        EXPECT_EQ(set[i], counted.contains(i) ? counted.at(i) : 0) << "counter " << i << " of the set";
}

class CounterSetTest : public ::testing::Test {
protected:
    void exchange(Pair &p, unsigned messages, uint32_t bytes = 256)
    {
        for (unsigned i = 0; i < messages; i++) {
            p.b.post_recv(p.b.sge(4096, bytes));
            p.a.post(send(p.a.sge(0, bytes)));
            net.pump();
            ASSERT_EQ(p.a.poll_all().size(), 1u);
            ASSERT_EQ(p.b.poll_all().size(), 1u);
        }
    }
    Network net;
};

TEST_F(CounterSetTest, CountsExactlyTheQpsThatNameIt)
{
    Pair counted(net.a, net.b, {}), other(net.a, net.b, {});
    ASSERT_EQ(bind(net.a, counted.a.qp.qpn, 7), 0);
    ASSERT_EQ(bind(net.b, counted.b.qp.qpn, 255), 0);
    EXPECT_EQ(set_of(net.a, counted.a.qp.qpn), 7u);
    EXPECT_EQ(set_of(net.a, other.a.qp.qpn), 0u);
    exchange(counted, 5);
    exchange(other, 3);
    expect_only(read(net.a, 7), {{HGHCA_QP_COUNTER_tx_packets, 5},
                                 {HGHCA_QP_COUNTER_tx_bytes, 5 * (kSendBytes + 256)},
                                 {HGHCA_QP_COUNTER_rx_packets, 5},
                                 {HGHCA_QP_COUNTER_rx_bytes, 5 * kAckBytes}});
    expect_only(read(net.b, 255), {{HGHCA_QP_COUNTER_rx_packets, 5},
                                   {HGHCA_QP_COUNTER_rx_bytes, 5 * (kSendBytes + 256)},
                                   {HGHCA_QP_COUNTER_tx_packets, 5},
                                   {HGHCA_QP_COUNTER_tx_bytes, 5 * kAckBytes},
                                   {HGHCA_QP_COUNTER_rx_send_requests, 5}});
    expect_only(read(net.a, 8), {});
    // In total as ever; outside of sets what is left.
    EXPECT_EQ(stats(net.a, HGHCA_STATS_ALL)[HGHCA_COUNTER_tx_packets], 8u);
    EXPECT_EQ(stats(net.a, HGHCA_STATS_OUTSIDE_SETS)[HGHCA_COUNTER_tx_packets], 3u);
    EXPECT_EQ(stats(net.b, HGHCA_STATS_OUTSIDE_SETS)[HGHCA_COUNTER_rx_send_requests], 3u);
    EXPECT_EQ(stats(net.b, HGHCA_STATS_ALL)[HGHCA_COUNTER_context_hits] > 0,
              stats(net.b, HGHCA_STATS_OUTSIDE_SETS)[HGHCA_COUNTER_context_hits] > 0);
}

TEST_F(CounterSetTest, SharedMovedAndTakenAway)
{
    Pair p(net.a, net.b, {}), q(net.a, net.b, {});
    ASSERT_EQ(bind(net.a, p.a.qp.qpn, 1), 0);
    ASSERT_EQ(bind(net.a, q.a.qp.qpn, 1), 0);
    exchange(p, 2);
    exchange(q, 3);
    EXPECT_EQ(read(net.a, 1)[HGHCA_QP_COUNTER_tx_packets], 5u);
    ASSERT_EQ(bind(net.a, q.a.qp.qpn, 2), 0);
    exchange(q, 1);
    ASSERT_EQ(bind(net.a, p.a.qp.qpn, 0), 0);
    exchange(p, 4);
    EXPECT_EQ(read(net.a, 1)[HGHCA_QP_COUNTER_tx_packets], 5u);
    EXPECT_EQ(read(net.a, 2)[HGHCA_QP_COUNTER_tx_packets], 1u);
    EXPECT_EQ(stats(net.a, HGHCA_STATS_OUTSIDE_SETS)[HGHCA_COUNTER_tx_packets], 4u);
    // Cleared after reading; what was counted outside does not change by that.
    EXPECT_EQ(read(net.a, 1, HGHCA_COUNTER_SET_CLEAR)[HGHCA_QP_COUNTER_tx_packets], 5u);
    expect_only(read(net.a, 1), {});
    EXPECT_EQ(read(net.a, 2)[HGHCA_QP_COUNTER_tx_packets], 1u);
    EXPECT_EQ(stats(net.a, HGHCA_STATS_OUTSIDE_SETS)[HGHCA_COUNTER_tx_packets], 4u);
}

// Each kind of request, counted when it is handled; a duplicate does not count.
TEST_F(CounterSetTest, RequestsByKind)
{
    Pair p(net.a, net.b, {});
    ASSERT_EQ(bind(net.b, p.b.qp.qpn, 9), 0);
    const uint32_t rkey = p.b.buffer.key;
    p.b.post_recv(p.b.sge(0, 4096));
    p.a.post({send(p.a.sge(0, 3000)), write_to(p.a.sge(0, 5000), p.b.va(8192), rkey),
              write_to(p.a.sge(0, 10), p.b.va(8192), rkey), read_from(p.a.sge(0, 2500), p.b.va(8192), rkey),
              Wqe(HGHCA_OPCODE_ATOMIC_FA).raddr(p.b.va(64), rkey).atomic(1, 0).data(p.a.sge(0, 8))});
    net.pump();
    ASSERT_EQ(p.a.poll_all().size(), 5u);
    const Set set = read(net.b, 9);
    EXPECT_EQ(set[HGHCA_QP_COUNTER_rx_send_requests], 1u);
    EXPECT_EQ(set[HGHCA_QP_COUNTER_rx_write_requests], 2u);
    EXPECT_EQ(set[HGHCA_QP_COUNTER_rx_read_requests], 1u);
    EXPECT_EQ(set[HGHCA_QP_COUNTER_rx_atomic_requests], 1u);
    EXPECT_EQ(set[HGHCA_QP_COUNTER_rx_packets], 3u + 5 + 1 + 1 + 1);
    EXPECT_EQ(net.b.counters().rx_write_requests, 2u);
}

TEST_F(CounterSetTest, WhatGoesWrongIsTheQpsOwn)
{
    Pair p(net.a, net.b, {});
    ASSERT_EQ(bind(net.a, p.a.qp.qpn, 3), 0);
    ASSERT_EQ(bind(net.b, p.b.qp.qpn, 4), 0);
    // No receive, then one: an RNR NAK, and the SEND again.
    p.a.post(send(p.a.sge(0, 100)));
    net.pump();
    // The second one is for the next message, all of which goes at once as the sender has a credit for it.
    p.b.post_recv(p.b.sge(0, 100));
    p.b.post_recv(p.b.sge(0, 4096));
    net.settle();
    ASSERT_EQ(p.a.poll_all().size(), 1u);
    // The first packet of a message is lost.
    unsigned seen = 0;
    net.filter = [&](const Node &from, Frame &) { return Fate{from.number == 1 && !seen++ ? 0u : 1u, 0}; };
    p.a.post(send(p.a.sge(0, 4096)));
    net.settle();
    ASSERT_EQ(p.a.poll_all().size(), 1u);
    const Set sender = read(net.a, 3), receiver = read(net.b, 4);
    EXPECT_EQ(receiver[HGHCA_QP_COUNTER_rnr_nak_sent], 1u);
    EXPECT_EQ(sender[HGHCA_QP_COUNTER_rnr_nak_received], 1u);
    EXPECT_EQ(receiver[HGHCA_QP_COUNTER_out_of_sequence], 3u);
    EXPECT_EQ(sender[HGHCA_QP_COUNTER_packet_seq_err], 1u);
    EXPECT_EQ(sender[HGHCA_QP_COUNTER_retransmitted], 1u + 4);
    EXPECT_EQ(sender[HGHCA_QP_COUNTER_rnr_nak_received], net.a.counters().rnr_nak_received);
    EXPECT_EQ(sender[HGHCA_QP_COUNTER_retransmitted], net.a.counters().retransmitted);
    // A key that does not exist: the responder refuses, the requester completes in error and flushes.
    p.a.post({write_to(p.a.sge(0, 8), p.b.va(0), p.b.buffer.key ^ 1), send(p.a.sge(0, 8))});
    net.settle();
    EXPECT_EQ(read(net.b, 4)[HGHCA_QP_COUNTER_remote_access_nak_sent], 1u);
    EXPECT_EQ(read(net.a, 3)[HGHCA_QP_COUNTER_cqe_error], 1u);
    EXPECT_EQ(read(net.a, 3)[HGHCA_QP_COUNTER_cqe_flush], 1u);
}

TEST_F(CounterSetTest, DatagramsAndUnreliableConnections)
{
    Endpoint::Options ud{.service = HGHCA_QP_ST_UD}, uc{.service = HGHCA_QP_ST_UC};
    Endpoint from(net.a, ud), to(net.b, ud);
    Pair p(net.a, net.b, uc);
    ASSERT_EQ(bind(net.b, to.qp.qpn, 5), 0);
    ASSERT_EQ(bind(net.b, p.b.qp.qpn, 6), 0);
    for (unsigned i = 0; i < 3; i++)
        from.post(Wqe(HGHCA_OPCODE_SEND).ud(to.qp.qpn, i == 2 ? 0x22222222 : 0x11111111, 2).data(from.sge(0, 64)));
    net.pump();
    to.post_recv(to.sge(0, 4096));
    to.post_recv(to.sge(0, 50));
    for (unsigned i = 0; i < 2; i++)
        from.post(Wqe(HGHCA_OPCODE_SEND).ud(to.qp.qpn, 0x11111111, 2).data(from.sge(0, 64)));
    net.pump();
    Set set = read(net.b, 5);
    EXPECT_EQ(set[HGHCA_QP_COUNTER_rx_packets], 4u);
    EXPECT_EQ(set[HGHCA_QP_COUNTER_rx_bad_qkey], 1u);
    EXPECT_EQ(set[HGHCA_QP_COUNTER_rx_no_wqe], 2u);
    EXPECT_EQ(set[HGHCA_QP_COUNTER_rx_too_long], 1u);
    EXPECT_EQ(set[HGHCA_QP_COUNTER_rx_send_requests], 1u);

    p.b.post_recv(p.b.sge(0, 4096));
    p.a.post({send(p.a.sge(0, 2000)), send(p.a.sge(0, 10)),
              write_to(p.a.sge(0, 2000), p.b.va(8192), p.b.buffer.key)});
    net.pump();
    set = read(net.b, 6);
    EXPECT_EQ(set[HGHCA_QP_COUNTER_rx_packets], 5u);
    EXPECT_EQ(set[HGHCA_QP_COUNTER_rx_send_requests], 1u);
    EXPECT_EQ(set[HGHCA_QP_COUNTER_rx_write_requests], 1u);
    EXPECT_EQ(set[HGHCA_QP_COUNTER_rx_no_wqe], 1u);
    EXPECT_EQ(set[HGHCA_QP_COUNTER_uc_dropped], 1u);
}

TEST_F(CounterSetTest, ARefusedFrameIsNotCountedAsSent)
{
    Pair p(net.a, net.b, {});
    ASSERT_EQ(bind(net.a, p.a.qp.qpn, 1), 0);
    p.b.post_recv(p.b.sge(0, 4096));
    net.a.host.link_full = true;
    p.a.post(send(p.a.sge(0, 100)));
    net.pump();
    expect_only(read(net.a, 1), {});
    EXPECT_EQ(net.a.counters().tx_packets, 0u);
    net.a.host.link_full = false;
    net.a.device.link_ready();
    net.pump();
    EXPECT_EQ(read(net.a, 1)[HGHCA_QP_COUNTER_tx_packets], 1u);
    EXPECT_EQ(net.a.counters().tx_packets, 1u);
}

TEST_F(CounterSetTest, TakenAtRst2Init)
{
    Endpoint e(net.a, {});
    TestDriver &d = net.a.driver;
    TestDriver::Qp qp = d.new_qp();
    hghca_qpc c = d.init_qpc(qp, HGHCA_QP_ST_RC, e.cq, e.cq);
    c.counter_set = be32(256);
    EXPECT_EQ(d.modify(HGHCA_CMD_RST2INIT_QPEE, qp.qpn, c), HGHCA_CMD_STAT_BAD_PARAM);
    c.counter_set = be32(1u << 16 | 1);
    EXPECT_EQ(d.modify(HGHCA_CMD_RST2INIT_QPEE, qp.qpn, c), HGHCA_CMD_STAT_BAD_PARAM);
    c.counter_set = be32(12);
    ASSERT_EQ(d.modify(HGHCA_CMD_RST2INIT_QPEE, qp.qpn, c), 0);
    EXPECT_EQ(set_of(net.a, qp.qpn), 12u);
    // No later transition takes it.
    c.counter_set = be32(13);
    ASSERT_EQ(d.modify(HGHCA_CMD_INIT2INIT_QPEE, qp.qpn, c), 0);
    EXPECT_EQ(set_of(net.a, qp.qpn), 12u);
    // And RST lets go of it.
    ASSERT_EQ(d.modify(HGHCA_CMD_ERR2RST_QPEE, qp.qpn, hghca_qpc{}), 0);
    EXPECT_EQ(set_of(net.a, qp.qpn), 0u);
}

TEST_F(CounterSetTest, WhatIsRefused)
{
    Pair p(net.a, net.b, {});
    const uint32_t qpn = p.a.qp.qpn;
    ASSERT_EQ(bind(net.a, qpn, 3), 0);
    EXPECT_EQ(bind(net.a, qpn, 256), HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(bind(net.a, qpn, 1ull << 32 | 1), HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(bind(net.a, qpn, ~0ull), HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(bind(net.a, 0, 1), HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(bind(net.a, 1u << 8, 1), HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(bind(net.a, 200, 1), HGHCA_CMD_STAT_BAD_QPEE_STATE);
    EXPECT_EQ(set_of(net.a, qpn), 3u);
    Set set;
    for (uint32_t bad : {0u, 256u, 0x10001u, ~0u})
        EXPECT_EQ(net.a.driver.query(HGHCA_CMD_QUERY_COUNTER_SET, set, bad), HGHCA_CMD_STAT_BAD_INDEX) << bad;
    ASSERT_EQ(net.a.driver.unmap_icm(HGHCA_ICM_CONTEXT, net.a.driver.layout.qpc, 1), 0);
    EXPECT_EQ(bind(net.a, 1, 1), HGHCA_CMD_STAT_LAM_NOT_PRE);
}

TEST_F(CounterSetTest, ClosingAndResetting)
{
    Pair p(net.a, net.b, {});
    ASSERT_EQ(bind(net.a, p.a.qp.qpn, 3), 0);
    exchange(p, 2);
    ASSERT_EQ(net.a.driver.command(HGHCA_CMD_CLOSE_HCA).status, 0);
    ASSERT_EQ(net.a.driver.init_hca(), 0);
    expect_only(read(net.a, 3), {});
    EXPECT_EQ(stats(net.a, HGHCA_STATS_ALL)[HGHCA_COUNTER_tx_packets], 2u);
    EXPECT_EQ(stats(net.a, HGHCA_STATS_OUTSIDE_SETS)[HGHCA_COUNTER_tx_packets], 0u);
    net.a.driver.init();
    EXPECT_EQ(stats(net.a, HGHCA_STATS_ALL)[HGHCA_COUNTER_tx_packets], 0u);
    EXPECT_EQ(stats(net.a, HGHCA_STATS_OUTSIDE_SETS)[HGHCA_COUNTER_tx_packets], 0u);
}

// The set goes to ICM with the QP, and what comes back is looked at.
TEST(CounterSetEviction, TheSetComesBackAndIsValidated)
{
    Network net(1);
    Pair p(net.a, net.b, {}), other(net.a, net.b, {});
    ASSERT_EQ(bind(net.a, p.a.qp.qpn, 0xa5), 0);
    for (Pair *pair : {&p, &other, &p}) {
        pair->b.post_recv(pair->b.sge(0, 64));
        pair->a.post(send(pair->a.sge(0, 64)));
        net.pump();
        ASSERT_EQ(pair->a.poll_all().size(), 1u);
    }
    EXPECT_GT(net.a.counters().context_evictions, 0u);
    EXPECT_EQ(read(net.a, 0xa5)[HGHCA_QP_COUNTER_tx_packets], 2u);
    // Out again, and then the guest writes a set that cannot be.
    EXPECT_EQ(set_of(net.a, other.a.qp.qpn), 0u);
    uint8_t *entry = net.a.host.at(net.a.driver.qpc_dma + 2048 * uint64_t(p.a.qp.qpn));
    ASSERT_EQ(get_field<Qp>(entry, "a.counter_set"), 0xa5u);
    put_field<Qp>(entry, "a.counter_set", 256);
    EXPECT_EQ(bind(net.a, p.a.qp.qpn, 1), HGHCA_CMD_STAT_BAD_QPEE_STATE);
}

TEST(CounterSetMailbox, WhatCannotBeToldIsNotCleared)
{
    Network net;
    Pair p(net.a, net.b, {});
    ASSERT_EQ(bind(net.a, p.a.qp.qpn, 7), 0);
    p.b.post_recv(p.b.sge(0, 64));
    p.a.post(send(p.a.sge(0, 64)));
    net.pump();
    TestDriver &d = net.a.driver;
    for (uint64_t nowhere : {net.a.host.end(), d.out_mailbox() + 8})
        EXPECT_EQ(d.command(HGHCA_CMD_QUERY_COUNTER_SET, 0, 7, HGHCA_COUNTER_SET_CLEAR, nowhere).status,
                  HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(read(net.a, 7)[HGHCA_QP_COUNTER_tx_packets], 1u);
    EXPECT_EQ(d.command(HGHCA_CMD_QUERY_COUNTER_SET, 0, 7, HGHCA_COUNTER_SET_CLEAR, d.out_mailbox()).status, 0);
    EXPECT_EQ(read(net.a, 7)[HGHCA_QP_COUNTER_tx_packets], 0u);
}

TEST(CounterSetsOff, EverythingIsAsWithoutThem)
{
    Network net(0, kBasic);
    Pair p(net.a, net.b, {});
    TestDriver &d = net.a.driver;
    EXPECT_EQ(bind(net.a, p.a.qp.qpn, 1), HGHCA_CMD_STAT_BAD_OP);
    uint64_t out[512];
    for (uint32_t op : {HGHCA_CMD_QUERY_COUNTER_SET, HGHCA_CMD_QUERY_CQ, HGHCA_CMD_QUERY_EQ, HGHCA_CMD_QUERY_MPT})
        EXPECT_EQ(d.query(op, out, 1), HGHCA_CMD_STAT_BAD_OP);
    EXPECT_EQ(d.query(HGHCA_CMD_QUERY_STATS, out, 0, HGHCA_STATS_OUTSIDE_SETS), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(d.query(HGHCA_CMD_QUERY_STATS, out, 0, HGHCA_STATS_ALL), 0);
    // The word of the context is reserved.
    TestDriver::Qp qp = d.new_qp();
    hghca_qpc c = d.init_qpc(qp, HGHCA_QP_ST_RC, p.a.cq, p.a.cq);
    c.counter_set = be32(~0u);
    ASSERT_EQ(d.modify(HGHCA_CMD_RST2INIT_QPEE, qp.qpn, c), 0);
    EXPECT_EQ(set_of(net.a, qp.qpn), 0u);
}

// ---- QUERY_CQ

TEST_F(CounterSetTest, QueryCq)
{
    Pair p(net.a, net.b, {});
    TestDriver &d = net.b.driver;
    exchange(p, 3);
    hghca_cqc c;
    ASSERT_EQ(d.query(HGHCA_CMD_QUERY_CQ, c, p.b.cq.cqn), 0);
    const hghca_cqc made = d.cqc_mailbox(p.b.cq.cqn, p.b.cq.log, p.b.cq.buffer.key, 1, p.b.cq.dbr);
    EXPECT_EQ(c.logsize_usrpage, made.logsize_usrpage);
    EXPECT_EQ(c.comp_eqn, made.comp_eqn);
    EXPECT_EQ(c.pd, made.pd);
    EXPECT_EQ(c.lkey, made.lkey);
    EXPECT_EQ(c.cqn, made.cqn);
    EXPECT_EQ(be64(c.dbr_addr), be64(made.dbr_addr));
    EXPECT_EQ(be32(c.flags), 0u);
    EXPECT_EQ(be32(c.producer_index), 3u);
    EXPECT_EQ(be32(c.consumer_index), 3u);
    EXPECT_EQ(be32(c.solicited_index), 0u);
    // One that is solicited and waits; then armed either way.
    p.b.post_recv(p.b.sge(0, 64));
    p.a.post(send(p.a.sge(0, 64), HGHCA_WQE_CQ_UPDATE | HGHCA_WQE_SOLICIT));
    net.pump();
    ASSERT_EQ(d.query(HGHCA_CMD_QUERY_CQ, c, p.b.cq.cqn), 0);
    EXPECT_EQ(be32(c.producer_index), 4u);
    EXPECT_EQ(be32(c.consumer_index), 3u);
    EXPECT_EQ(be32(c.solicited_index), 4u);
    p.b.poll_all();
    d.arm(p.b.cq, HGHCA_CQ_ARM_SOLICITED);
    ASSERT_EQ(d.query(HGHCA_CMD_QUERY_CQ, c, p.b.cq.cqn), 0);
    EXPECT_EQ(be32(c.flags), 1u << 10);
    d.arm(p.b.cq, HGHCA_CQ_ARM_NEXT);
    ASSERT_EQ(d.query(HGHCA_CMD_QUERY_CQ, c, p.b.cq.cqn), 0);
    EXPECT_EQ(be32(c.flags), 1u << 8);
    // None there, none possible.
    EXPECT_EQ(d.query(HGHCA_CMD_QUERY_CQ, c, 100), HGHCA_CMD_STAT_BAD_RES_STATE);
    EXPECT_EQ(d.query(HGHCA_CMD_QUERY_CQ, c, 0), HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(d.query(HGHCA_CMD_QUERY_CQ, c, 1u << 8), HGHCA_CMD_STAT_BAD_INDEX);
}

TEST_F(CounterSetTest, QueryCqThatHasFailed)
{
    Endpoint::Options small;
    small.cq_log = 1;
    Pair p(net.a, net.b, {}, small);
    for (unsigned i = 0; i < 3; i++) {
        p.b.post_recv(p.b.sge(0, 64));
        p.a.post(send(p.a.sge(0, 64)));
    }
    net.settle();
    hghca_cqc c;
    ASSERT_EQ(net.b.driver.query(HGHCA_CMD_QUERY_CQ, c, p.b.cq.cqn), 0);
    EXPECT_EQ(be32(c.flags), 1u << 31);
    EXPECT_EQ(be32(c.producer_index), 2u);
    // Without a record that can be read there is no consumer index.
    net.b.host.holes.push_back({p.b.cq.dbr, 8});
    ASSERT_EQ(net.b.driver.query(HGHCA_CMD_QUERY_CQ, c, p.b.cq.cqn), 0);
    EXPECT_EQ(be32(c.consumer_index), 0u);
}

// ---- QUERY_MPT

TEST_F(CounterSetTest, QueryMpt)
{
    TestDriver &d = net.a.driver;
    const TestDriver::Mr mr = d.create_mr(0x123456789000, 70000, TestDriver::kRw, 5);
    hghca_mpt m;
    ASSERT_EQ(d.query(HGHCA_CMD_QUERY_MPT, m, d.mpt_index(mr.key)), 0);
    EXPECT_EQ(be32(m.flags), HGHCA_MPT_FLAG_REGION | TestDriver::kRw);
    EXPECT_EQ(be32(m.key), mr.key);
    EXPECT_EQ(be32(m.pd), 5u);
    EXPECT_EQ(be32(m.page_size), 0u);
    EXPECT_EQ(be64(m.start), mr.va);
    EXPECT_EQ(be64(m.length), 70000u);
    EXPECT_EQ(be32(m.mtt_seg_h), 0u);
    EXPECT_EQ(be32(m.mtt_seg_l), mr.first_mtt);
    EXPECT_EQ(be32(m.window_count), 0u);
    EXPECT_EQ(be32(m.lkey), 0u);

    EXPECT_EQ(d.query(HGHCA_CMD_QUERY_MPT, m, 0), HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(d.query(HGHCA_CMD_QUERY_MPT, m, 1u << 10), HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(d.query(HGHCA_CMD_QUERY_MPT, m, 1000), HGHCA_CMD_STAT_BAD_RES_STATE);
    ASSERT_EQ(d.destroy_mr(mr), 0);
    EXPECT_EQ(d.query(HGHCA_CMD_QUERY_MPT, m, d.mpt_index(mr.key)), HGHCA_CMD_STAT_BAD_RES_STATE);
}

TEST_F(CounterSetTest, QueryMptOfAWindowAndOfItsRegion)
{
    Pair p(net.a, net.b, {});
    TestDriver &d = net.a.driver;
    const TestDriver::Mr mr = d.create_mr(0x10000, 8192, TestDriver::kRw | HGHCA_ACCESS_MW_BIND);
    const uint32_t window = d.create_window(true);
    hghca_mpt m;
    ASSERT_EQ(d.query(HGHCA_CMD_QUERY_MPT, m, d.mpt_index(window)), 0);
    EXPECT_EQ(be32(m.flags), HGHCA_MPT_FLAG_FREE | HGHCA_MPT_FLAG_WINDOW_QP);
    hghca_bind_unit unit{le32(HGHCA_ACCESS_REMOTE_READ), 0, le32(window), le32(mr.key), le64(0x10100), le64(256)};
    p.a.post(Wqe(HGHCA_OPCODE_BIND_MW).put(unit));
    net.pump();
    ASSERT_FALSE(p.a.poll()->error);
    ASSERT_EQ(d.query(HGHCA_CMD_QUERY_MPT, m, d.mpt_index(window)), 0);
    EXPECT_EQ(be32(m.flags), HGHCA_MPT_FLAG_WINDOW_QP | HGHCA_ACCESS_REMOTE_READ);
    EXPECT_EQ(be64(m.start), 0x10100u);
    EXPECT_EQ(be64(m.length), 256u);
    EXPECT_EQ(be32(m.lkey), mr.key);
    EXPECT_EQ(be32(m.mtt_seg_l), 0u);
    ASSERT_EQ(d.query(HGHCA_CMD_QUERY_MPT, m, d.mpt_index(mr.key)), 0);
    EXPECT_EQ(be32(m.window_count), 1u);
    const TestDriver::Mr fast = d.create_fast_mr(7);
    ASSERT_EQ(d.query(HGHCA_CMD_QUERY_MPT, m, d.mpt_index(fast.key)), 0);
    EXPECT_EQ(be32(m.mtt_sz), 7u);
    EXPECT_EQ(be32(m.mtt_seg_l), fast.first_mtt);
}

}  // namespace
}  // namespace hghca::test::counter_set_test
