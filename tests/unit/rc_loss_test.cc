// SPDX-License-Identifier: GPL-2.0-or-later
// Reliable connections on a link that loses, doubles, reorders and corrupts.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

#include "verbs.h"

namespace hghca::test::rc_loss_test {
namespace {

using Options = Endpoint::Options;

class RcLoss : public ::testing::Test {
protected:
    // Loses the frames that `which` picks, each PSN the first time only.
    void lose_once(std::function<bool(const Node &, const View &)> which)
    {
        net.filter = [this, which](const Node &from, Frame &frame) {
            View v(frame);
            bool picked = which(from, v) && lost_.insert({from.number, v.psn}).second;
            return Fate{picked ? 0u : 1u};
        };
    }
    static void expect_good(Endpoint &e, size_t n)
    {
        auto all = e.poll_all();
        EXPECT_EQ(all.size(), n);
        for (const Completion &c : all)
            EXPECT_FALSE(c.error) << int(c.syndrome);
    }
    Network net;

private:
    std::set<std::pair<unsigned, uint32_t>> lost_;
};

// Software that has seen the last completion destroys its QP: the peer has its ACK all the same.
TEST_F(RcLoss, ALastMessageIsAcknowledgedByAQpThatGoes)
{
    for (const bool reset : {false, true}) {
        SCOPED_TRACE(reset);
        Pair p(net.a, net.b, Options());
        Frame request;
        net.filter = [&](const Node &, Frame &f) {
            request = f;
            return Fate{0u};
        };
        p.b.post_recv(p.b.sge(0, 100));
        p.a.post(send(p.a.sge(0, 100)));
        net.filter = nullptr;
        Network::deliver(net.b, request);
        EXPECT_EQ(p.b.poll_all().size(), 1u);
        ASSERT_EQ(reset ? net.b.driver.to_reset(p.b.qp.qpn) : net.b.driver.to_error(p.b.qp.qpn), 0);
        net.settle();
        expect_good(p.a, 1);
    }
}

// One lost packet in each place of each kind of message.
class RcLossEach : public RcLoss, public ::testing::WithParamInterface<uint8_t> {};

TEST_P(RcLossEach, OneLostPacketAnywhereIsMadeGood)
{
    const uint8_t opcode = GetParam();
    for (unsigned place = 0; place < 14; place++) {
        SCOPED_TRACE(place);
        Options options;
        options.mtu_code = 1;
        options.sq_psn = options.rq_psn = 0xfffffc;   // the PSNs wrap under way
        Pair p(net.a, net.b, options);
        unsigned n = 0;
        net.filter = [&](const Node &, Frame &) { return Fate{n++ == place ? 0u : 1u}; };
        const uint32_t size = 256 * 5 + 1;
        p.a.fill(0, size, place);
        p.b.fill(100000, size, place + 100);
        *reinterpret_cast<uint64_t *>(p.b.at(200000)) = 5;
        std::vector<Wqe> list;
        for (unsigned i = 0; i < 2; i++) {
            if (opcode == HGHCA_OPCODE_SEND) {
                p.b.post_recv(p.b.sge(i * 4096, size));
                list.push_back(send(p.a.sge(0, size)));
            } else if (opcode == HGHCA_OPCODE_RDMA_WRITE) {
                list.push_back(write_to(p.a.sge(0, size), p.b.va(i * 4096), p.b.buffer.key));
            } else if (opcode == HGHCA_OPCODE_RDMA_READ) {
                list.push_back(read_from(p.a.sge(8192 + i * 4096, size), p.b.va(100000), p.b.buffer.key));
            } else {
                list.push_back(Wqe(HGHCA_OPCODE_ATOMIC_FA)
                                   .raddr(p.b.va(200000), p.b.buffer.key)
                                   .atomic(10, 0)
                                   .data(p.a.sge(300000 + i * 8, 8)));
            }
        }
        p.a.post(list);
        net.settle();
        expect_good(p.a, 2);
        for (unsigned i = 0; i < 2; i++) {
            if (opcode == HGHCA_OPCODE_RDMA_READ) {
                EXPECT_TRUE(p.a.holds(8192 + i * 4096, size, place + 100));
            } else if (opcode == HGHCA_OPCODE_ATOMIC_FA) {
                EXPECT_EQ(*reinterpret_cast<uint64_t *>(p.a.at(300000 + i * 8)), 5 + i * 10);
                EXPECT_EQ(*reinterpret_cast<uint64_t *>(p.b.at(200000)), 25u);   // executed once each
            } else {
                EXPECT_TRUE(p.b.holds(i * 4096, size, place));
            }
        }
        expect_good(p.b, opcode == HGHCA_OPCODE_SEND ? 2 : 0);
        EXPECT_EQ(net.a.host.deadline_ns, UINT64_MAX);   // nothing left behind
    }
}

INSTANTIATE_TEST_SUITE_P(Opcodes, RcLossEach,
                         ::testing::Values(HGHCA_OPCODE_SEND, HGHCA_OPCODE_RDMA_WRITE, HGHCA_OPCODE_RDMA_READ,
                                           HGHCA_OPCODE_ATOMIC_FA));

TEST_F(RcLoss, AGapIsToldByOneNakAndNoTimeout)
{
    Options options;
    options.mtu_code = 1;
    Pair p(net.a, net.b, options);
    unsigned n = 0;
    net.filter = [&](const Node &from, Frame &) { return Fate{from.number == 1 && n++ == 3 ? 0u : 1u}; };
    p.a.fill(0, 256 * 20, 1);
    p.a.post(write_to(p.a.sge(0, 256 * 20), p.b.va(0), p.b.buffer.key));
    net.pump();
    expect_good(p.a, 1);
    EXPECT_TRUE(p.b.holds(0, 256 * 20, 1));
    EXPECT_EQ(net.a.counters().packet_seq_err, 1u);
    EXPECT_EQ(net.a.counters().local_ack_timeout_err, 0u);
    EXPECT_EQ(net.a.counters().retransmitted, 17u);
    EXPECT_EQ(net.b.counters().out_of_sequence, 16u);
}

TEST_F(RcLoss, ALostReadResponseIsAskedForFromTheRightPlace)
{
    Options options;
    options.mtu_code = 1;
    Pair p(net.a, net.b, options);
    p.b.fill(0, 256 * 20, 1);
    std::map<uint32_t, unsigned> times;
    net.filter = [&](const Node &from, Frame &f) {
        const uint32_t psn = View(f).psn;
        const unsigned time = from.number == 2 ? ++times[psn] : 0;
        return Fate{(psn == 0x105 && time == 1) || (psn == 0x10b && time == 2) ? 0u : 1u};
    };
    net.keep_log = true;
    p.a.post(read_from(p.a.sge(0, 256 * 20), p.b.va(0), p.b.buffer.key));
    net.pump();
    expect_good(p.a, 1);
    EXPECT_TRUE(p.a.holds(0, 256 * 20, 1));
    EXPECT_EQ(net.a.counters().implied_nak_seq_err, 2u);
    std::vector<uint32_t> requests;
    for (const Frame &f : net.log)
        if (View v(f); v.opcode == HGHCA_BTH_OP_READ_REQUEST)
            requests.push_back(v.psn);
    EXPECT_EQ(requests, (std::vector<uint32_t>{0x100, 0x105, 0x10b}));
}

TEST_F(RcLoss, ADuplicateReadWhoseKeyGoesBeforeItIsAnsweredIsForgotten)
{
    Pair p(net.a, net.b, Options{});
    const TestDriver::Mr region = net.b.driver.create_mr(0x9000000000, 4096);
    net.keep_log = true;
    p.a.post(read_from(p.a.sge(0, 3000), region.va, region.key));
    net.pump();
    expect_good(p.a, 1);
    net.b.events(HGHCA_EVENT_COMM_EST);
    // It comes once more, and the peer, which has its answer, is done with the key.
    Network::deliver(net.b, net.log.front());
    TestDriver::must(net.b.driver.destroy_mr(region), "HW2SW_MPT");
    net.log.clear();
    net.pump();
    EXPECT_TRUE(net.log.empty());
    EXPECT_EQ(net.b.events(HGHCA_EVENT_WQ_ACCESS_ERROR), 0u);
    EXPECT_EQ(p.b.state(), unsigned(HGHCA_QP_STATE_RTS));
    p.b.post_recv(p.b.sge(0, 100));
    p.a.post(send(p.a.sge(0, 100)));
    net.pump();
    expect_good(p.a, 1);
    expect_good(p.b, 1);
}

// With one READ at a time: the response to a duplicate of the last one is still under way when the next one comes.
TEST_F(RcLoss, ALateDuplicateReadDoesNotCountAsOutstanding)
{
    Options options;
    options.rd_atomic = options.dest_rd_atomic = 1;
    Pair p(net.a, net.b, options);
    const uint32_t size = 800000;
    Frame request;
    net.filter = [&](const Node &from, Frame &frame) {
        if (&from == &net.a && request.empty())
            request = frame;
        return Fate{};
    };
    p.a.post(read_from(p.a.sge(0, size), p.b.va(0), p.b.buffer.key));
    net.settle();
    expect_good(p.a, 1);
    p.a.post(read_from(p.a.sge(0, 100), p.b.va(0), p.b.buffer.key));
    Network::deliver(net.b, request);
    net.settle();
    expect_good(p.a, 1);
    EXPECT_EQ(p.b.state(), unsigned(HGHCA_QP_STATE_RTS));
}

TEST_F(RcLoss, TheLastPacketOrItsAckLostTakesATimeout)
{
    Pair p(net.a, net.b, Options{});
    p.a.fill(0, 10, 1);
    // The request.
    lose_once([](const Node &from, const View &) { return from.number == 1; });
    p.a.post(write_to(p.a.sge(0, 10), p.b.va(0), p.b.buffer.key));
    net.pump();
    EXPECT_EQ(net.a.host.deadline_ns, net.now() + (4096ull << 14));
    net.settle();
    expect_good(p.a, 1);
    EXPECT_EQ(net.a.counters().local_ack_timeout_err, 1u);
    // The ACK: the request comes twice and is acknowledged again.
    lose_once([](const Node &from, const View &) { return from.number == 2; });
    p.b.post_recv(p.b.sge(100, 100));
    p.a.post(send(p.a.sge(0, 10)));
    net.settle();
    expect_good(p.a, 1);
    expect_good(p.b, 1);   // executed once
    EXPECT_EQ(net.b.counters().duplicate_request, 1u);
}

TEST_F(RcLoss, RetriesAreExhausted)
{
    for (unsigned retry : {0u, 1u, 7u}) {
        SCOPED_TRACE(retry);
        Options options;
        options.retry = retry;
        options.ack_timeout = 10;
        Pair p(net.a, net.b, options);
        net.filter = [](const Node &, Frame &) { return Fate{0}; };
        const uint64_t before = net.a.counters().tx_packets, start = net.now();
        p.a.post({write_to(p.a.sge(0, 10), p.b.va(0), p.b.buffer.key, 0), write_to(p.a.sge(0, 10), p.b.va(0), p.b.buffer.key)});
        net.settle(60 * (4096ull << 10));
        auto all = p.a.poll_all();
        ASSERT_EQ(all.size(), 2u);
        EXPECT_EQ(all[0].syndrome, HGHCA_SYNDROME_RETRY_EXC_ERR);
        EXPECT_EQ(all[0].slot, 0u);
        EXPECT_EQ(all[1].syndrome, HGHCA_SYNDROME_WR_FLUSH_ERR);
        EXPECT_EQ(net.a.counters().tx_packets - before, 2 * (retry + 1));
        EXPECT_EQ(p.a.state(), unsigned(HGHCA_QP_STATE_ERR));
        EXPECT_GE(net.now() - start, (retry + 1) * (4096ull << 10));
        EXPECT_EQ(net.a.host.deadline_ns, UINT64_MAX);
    }
}

TEST_F(RcLoss, TimeoutZeroWaitsForEver)
{
    Options options;
    options.ack_timeout = 0;
    Pair p(net.a, net.b, options);
    net.filter = [](const Node &, Frame &) { return Fate{0}; };
    p.a.post(write_to(p.a.sge(0, 10), p.b.va(0), p.b.buffer.key));
    net.pump();
    EXPECT_EQ(net.a.host.deadline_ns, UINT64_MAX);
}

TEST_F(RcLoss, ProgressGivesNewRetries)
{
    Options options;
    options.retry = 1;
    options.mtu_code = 1;
    Pair p(net.a, net.b, options);
    // Each packet is lost once, which is more often in all than there are retries.
    lose_once([](const Node &from, const View &) { return from.number == 1; });
    p.a.fill(0, 256 * 30, 1);
    std::vector<Wqe> list;
    for (unsigned i = 0; i < 30; i++)
        list.push_back(write_to(p.a.sge(i * 256, 256), p.b.va(i * 256), p.b.buffer.key));
    for (const Wqe &w : list) {
        p.a.post(w);
        net.settle(4 * (4096ull << 14));
    }
    expect_good(p.a, 30);
    EXPECT_TRUE(p.b.holds(0, 256 * 30, 1));
}

// ---- receiver not ready

TEST_F(RcLoss, RnrNakWaitsForTheTimeItSays)
{
    constexpr uint32_t kTimer[32] = HGHCA_RNR_TIMER_US;
    for (unsigned code = 0; code < 32; code++) {
        SCOPED_TRACE(code);
        Options options;
        options.rnr_timer = code;
        options.ack_timeout = 31;
        Pair p(net.a, net.b, options);
        p.a.post(send(p.a.sge(0, 10)));
        net.pump();
        EXPECT_EQ(net.a.host.deadline_ns, net.now() + kTimer[code] * 1000ull);
        net.pump();
        p.b.post_recv(p.b.sge(0, 10));
        net.settle(kTimer[code] * 1000ull);
        expect_good(p.a, 1);
        expect_good(p.b, 1);
    }
}

TEST_F(RcLoss, RnrRetriesAreExhausted)
{
    for (unsigned retry : {0u, 1u, 6u}) {
        SCOPED_TRACE(retry);
        Options options;
        options.rnr_retry = retry;
        Pair p(net.a, net.b, options);
        const uint64_t naks = net.b.counters().rnr_nak_sent;
        p.a.post(send(p.a.sge(0, 10)));
        net.settle(1'000'000);
        auto all = p.a.poll_all();
        ASSERT_EQ(all.size(), 1u);
        EXPECT_EQ(all[0].syndrome, HGHCA_SYNDROME_RNR_RETRY_EXC_ERR);
        EXPECT_EQ(net.b.counters().rnr_nak_sent - naks, retry + 1);
        EXPECT_EQ(p.b.state(), unsigned(HGHCA_QP_STATE_RTS));
    }
}

TEST_F(RcLoss, RnrRetrySevenIsForEver)
{
    Pair p(net.a, net.b, Options{});
    p.a.post(send(p.a.sge(0, 10)));
    net.settle(100'000'000);
    EXPECT_GT(net.b.counters().rnr_nak_sent, 50u);
    EXPECT_FALSE(p.a.poll());
    p.b.post_recv(p.b.sge(0, 10));
    net.settle(1'000'000);
    expect_good(p.a, 1);
}

TEST_F(RcLoss, RnrWaitsDoubleUpToAMillisecondUntilThereIsProgress)
{
    constexpr uint32_t kTimer[32] = HGHCA_RNR_TIMER_US;
    for (unsigned code : {1u, 12u, 14u, 15u, 31u, 0u}) {
        SCOPED_TRACE(code);
        Options options;
        options.rnr_timer = code;
        options.ack_timeout = 31;
        Pair p(net.a, net.b, options);
        const uint64_t timer = kTimer[code] * 1000ull;
        for (int message = 0; message < 2; message++) {
            p.a.post(send(p.a.sge(0, 10)));
            net.pump();
            uint64_t wait = timer;
            for (int i = 0; i < 300; i++) {
                ASSERT_EQ(net.a.host.deadline_ns, net.now() + wait) << i;
                net.settle(wait);
                wait = std::max(timer, std::min<uint64_t>(2 * wait, 1'000'000));
            }
            p.b.post_recv(p.b.sge(0, 10));
            net.settle(wait);
            expect_good(p.a, 1);
            expect_good(p.b, 1);
        }
    }
}

TEST_F(RcLoss, AWriteWithImmediateWaitsWithItsLastPacketAlone)
{
    Options options;
    options.mtu_code = 1;
    Pair p(net.a, net.b, options);
    p.a.fill(0, 256 * 4, 1);
    p.a.post(Wqe(HGHCA_OPCODE_RDMA_WRITE_IMM, HGHCA_WQE_CQ_UPDATE, be32(77))
                 .raddr(p.b.va(0), p.b.buffer.key)
                 .data(p.a.sge(0, 256 * 4)));
    net.settle(5'000);
    EXPECT_TRUE(p.b.holds(0, 256 * 3, 1));
    EXPECT_FALSE(p.b.holds(0, 256 * 4, 1));   // not before there is a receive WQE
    p.b.post_recv(std::vector<Sge>{});
    net.settle(1'000'000);
    expect_good(p.a, 1);
    auto got = p.b.poll();
    ASSERT_TRUE(got);
    EXPECT_EQ(got->imm, be32(77));
    EXPECT_EQ(got->bytes, 1024u);
    EXPECT_EQ(got->opcode, HGHCA_BTH_OP_WRITE_LAST_IMM);
    EXPECT_TRUE(p.b.holds(0, 256 * 4, 1));
    EXPECT_EQ(net.a.counters().retransmitted, net.b.counters().rnr_nak_sent);
}

TEST_F(RcLoss, RequestsBehindAnRnrNakAreDroppedSilently)
{
    Pair p(net.a, net.b, Options{});
    p.a.post({send(p.a.sge(0, 10)), send(p.a.sge(0, 10)), send(p.a.sge(0, 10))});
    net.pump();
    EXPECT_EQ(net.a.counters().rnr_nak_received, 1u);
    EXPECT_EQ(net.a.counters().packet_seq_err, 0u);
    for (int i = 0; i < 3; i++)
        p.b.post_recv(p.b.sge(0, 10));
    net.settle(1'000'000);
    expect_good(p.a, 3);
    expect_good(p.b, 3);
}

TEST_F(RcLoss, AfterAnRnrNakOnePacketGoesUntilItIsAcknowledged)
{
    constexpr uint32_t kPackets = 16;
    Options options;
    options.mtu_code = 1;
    Pair p(net.a, net.b, options);
    p.a.fill(0, 256 * kPackets, 1);
    p.a.post(send(p.a.sge(0, 256 * kPackets)));
    net.settle(1'000'000);
    const uint64_t naks = net.b.counters().rnr_nak_sent;
    EXPECT_GT(naks, 1u);
    // All packets the first time, later the first alone.
    EXPECT_EQ(net.a.counters().tx_packets, kPackets + naks - 1);
    p.b.post_recv(p.b.sge(0, 256 * kPackets));
    net.settle(1'000'000);
    expect_good(p.a, 1);
    expect_good(p.b, 1);
    EXPECT_TRUE(p.b.holds(0, 256 * kPackets, 1));
    EXPECT_EQ(net.a.counters().tx_packets, kPackets + naks + kPackets - 1);
}

TEST_F(RcLoss, ALostProbeAfterAnRnrNakIsSentAgain)
{
    Pair p(net.a, net.b, Options{});
    p.a.post({send(p.a.sge(0, 10)), send(p.a.sge(0, 10))});
    net.pump();
    ASSERT_EQ(net.a.counters().rnr_nak_received, 1u);
    p.b.post_recv(p.b.sge(0, 10));
    p.b.post_recv(p.b.sge(0, 10));
    bool lost = false;
    net.filter = [&](const Node &from, Frame &) {
        return Fate{&from == &net.a && !std::exchange(lost, true) ? 0u : 1u};
    };
    net.settle(1'000'000'000);
    EXPECT_TRUE(lost);
    EXPECT_EQ(net.a.counters().local_ack_timeout_err, 1u);
    expect_good(p.a, 2);
    expect_good(p.b, 2);
}

// A NAK for a lost request that comes late, out of turn with an RNR NAK: sends again at once, and goes on.
TEST_F(RcLoss, ASequenceNakWhileAnRnrTimerRuns)
{
    Options options;
    options.ack_timeout = 0;
    options.rnr_timer = 12;
    Pair p(net.a, net.b, options);
    Frame nak;
    net.filter = [&](const Node &from, Frame &frame) {
        if (&from == &net.b && nak.empty())
            nak = frame;
        return Fate{};
    };
    p.a.post(send(p.a.sge(0, 10)));
    net.pump();
    ASSERT_EQ(net.a.counters().rnr_nak_received, 1u);
    View v(nak);
    ASSERT_EQ(v.syndrome & HGHCA_AETH_TYPE_MASK, HGHCA_AETH_RNR_NAK);
    nak[v.bth + 12] = HGHCA_AETH_NAK | HGHCA_NAK_PSN_SEQUENCE;
    seal(nak);

    p.b.post_recv(p.b.sge(0, 10));
    Network::deliver(net.a, nak);
    EXPECT_EQ(net.a.counters().packet_seq_err, 1u);
    net.settle(1'000'000'000);
    expect_good(p.a, 1);
    expect_good(p.b, 1);
}

// ---- duplicates and disorder

TEST_F(RcLoss, EveryFrameTwice)
{
    net.filter = [](const Node &, Frame &) { return Fate{2}; };
    Options options;
    options.mtu_code = 1;
    Pair p(net.a, net.b, options);
    p.a.fill(0, 2000, 1);
    p.b.fill(4096, 2000, 2);
    *reinterpret_cast<uint64_t *>(p.b.at(8192)) = 0;
    for (int i = 0; i < 8; i++)
        p.b.post_recv(p.b.sge(0, 2000));
    for (int i = 0; i < 8; i++) {
        p.a.post({send(p.a.sge(0, 2000)), read_from(p.a.sge(4096, 2000), p.b.va(4096), p.b.buffer.key),
                  Wqe(HGHCA_OPCODE_ATOMIC_FA).raddr(p.b.va(8192), p.b.buffer.key).atomic(1, 0).data(p.a.sge(8192, 8))});
        net.settle();
    }
    expect_good(p.a, 24);
    expect_good(p.b, 8);
    EXPECT_EQ(*reinterpret_cast<uint64_t *>(p.b.at(8192)), 8u);
    EXPECT_TRUE(p.a.holds(4096, 2000, 2));
}

// The link of the responder takes nothing: replies wait, and none is lost.
TEST_F(RcLoss, RepliesWaitForTheLink)
{
    Options options;
    options.mtu_code = 1;
    Pair p(net.a, net.b, options);
    const Wqe fetch = Wqe(HGHCA_OPCODE_ATOMIC_FA).raddr(p.b.va(8192), p.b.buffer.key).atomic(5, 0)
                          .data(p.a.sge(8192, 8));
    p.b.fill(4096, 600, 2);
    p.a.fill(0, 600, 1);
    *reinterpret_cast<uint64_t *>(p.b.at(8192)) = 7;
    for (const Wqe &wqe : {write_to(p.a.sge(0, 600), p.b.va(0), p.b.buffer.key),
                           read_from(p.a.sge(4096, 600), p.b.va(4096), p.b.buffer.key), fetch}) {
        SCOPED_TRACE(int(wqe.opcode));
        net.b.host.link_full = true;
        p.a.post(wqe);
        net.pump();
        EXPECT_FALSE(p.a.poll());
        net.b.host.link_full = false;
        net.b.device.link_ready();
        net.pump();
        expect_good(p.a, 1);
    }
    EXPECT_TRUE(p.b.holds(0, 600, 1));
    EXPECT_TRUE(p.a.holds(4096, 600, 2));
    EXPECT_EQ(*reinterpret_cast<uint64_t *>(p.a.at(8192)), 7u);
    EXPECT_EQ(net.a.counters().retransmitted, 0u);
}

// Requests come again while their replies still wait for the link.
class RcWaiting : public RcLoss {
protected:
    static constexpr uint32_t kBytes = 600;   // three responses

    RcWaiting() : p(net.a, net.b, options())
    {
        p.b.fill(4096, kBytes, 2);
        *reinterpret_cast<uint64_t *>(p.b.at(8192)) = 7;
        net.keep_log = true;
    }
    static Options options()
    {
        Options o;
        o.mtu_code = 1;
        return o;
    }
    Wqe request(uint64_t to, bool atomic)
    {
        if (atomic)
            return Wqe(HGHCA_OPCODE_ATOMIC_FA).raddr(p.b.va(8192), p.b.buffer.key).atomic(1, 0).data(p.a.sge(to, 8));
        return read_from(p.a.sge(to, kBytes), p.b.va(4096), p.b.buffer.key);
    }
    // The requests that were sent so far.
    std::vector<Frame> requests() const
    {
        std::vector<Frame> found;
        for (const Frame &f : net.log)
            if (View(f).is_request())
                found.push_back(f);
        return found;
    }
    // PSNs of the responses that were sent so far.
    std::vector<uint32_t> responses() const
    {
        std::vector<uint32_t> found;
        for (const Frame &f : net.log)
            if (!View(f).is_request())
                found.push_back(View(f).psn);
        return found;
    }
    void unblock()
    {
        net.b.host.link_full = false;
        net.b.device.link_ready();
        net.pump();
    }
    Pair p;
};
class RcWaitingEach : public RcWaiting, public ::testing::WithParamInterface<bool> {};

INSTANTIATE_TEST_SUITE_P(ReadAndAtomic, RcWaitingEach, ::testing::Bool());

TEST_P(RcWaitingEach, AreAnsweredOnce)
{
    net.b.host.link_full = true;
    p.a.post({request(0, GetParam()), request(1024, GetParam())});
    net.pump();
    // The first alone: the second keeps its place behind it.
    Network::deliver(net.b, requests().at(0));
    EXPECT_EQ(net.b.counters().duplicate_request, 1u);
    unblock();
    expect_good(p.a, 2);
    EXPECT_EQ(responses().size(), GetParam() ? 2u : 6u);
    EXPECT_EQ(*reinterpret_cast<uint64_t *>(p.b.at(8192)), GetParam() ? 9u : 7u);
}

TEST_P(RcWaitingEach, TheOlderOneIsAnsweredFirst)
{
    // The first reply is lost, the second waits; then both requests come again, in their order.
    const uint32_t span = GetParam() ? 1 : 3;
    uint32_t sent = 0;
    net.filter = [&](const Node &from, Frame &) {
        if (from.number == 1)
            return Fate{};
        net.b.host.link_full = ++sent == span;
        return Fate{sent <= span ? 0u : 1u};
    };
    p.a.post({request(0, GetParam()), request(1024, GetParam())});
    net.pump();
    ASSERT_EQ(sent, span);
    for (const Frame &f : requests())
        Network::deliver(net.b, f);
    net.log.clear();
    unblock();
    expect_good(p.a, 2);
    std::vector<uint32_t> psns;
    for (uint32_t i = 0; i < 2 * span; i++)
        psns.push_back(0x100 + i);
    EXPECT_EQ(responses(), psns);
    EXPECT_EQ(*reinterpret_cast<uint64_t *>(p.b.at(8192)), GetParam() ? 9u : 7u);
    if (!GetParam()) {
        EXPECT_TRUE(p.a.holds(0, kBytes, 2));
        EXPECT_TRUE(p.a.holds(1024, kBytes, 2));
    }
}

TEST_F(RcWaiting, AReadHalfSentStartsOver)
{
    unsigned sent = 0;
    net.filter = [&](const Node &from, Frame &) {
        if (from.number == 2)
            net.b.host.link_full = ++sent == 1;
        return Fate{from.number == 2 && sent == 1 ? 0u : 1u};
    };
    p.a.post(request(0, false));
    net.pump();
    ASSERT_EQ(sent, 1u);
    Network::deliver(net.b, requests().at(0));
    unblock();
    expect_good(p.a, 1);
    EXPECT_EQ(responses(), (std::vector<uint32_t>{0x100, 0x100, 0x101, 0x102}));
    EXPECT_TRUE(p.a.holds(0, kBytes, 2));
}

// An ACK comes after the time-out, when its packets wait to be sent again: what it
// acknowledges is not.
TEST_F(RcLoss, ALateAckSparesTheRetransmission)
{
    constexpr uint32_t kPackets = 70, kMtu = 256;
    Options options;
    options.mtu_code = 1;
    for (unsigned late : {0u, 1u, 2u}) {   // of a part of the first message, of one, of both
        SCOPED_TRACE(late);
        Pair p(net.a, net.b, options);
        std::vector<Frame> acks;
        net.filter = [&](const Node &from, Frame &f) {
            if (from.number == 1)
                return Fate{};
            acks.push_back(f);
            return Fate{0};
        };
        p.a.fill(0, kPackets * kMtu, late);
        const Wqe wqe = write_to(p.a.sge(0, kPackets * kMtu), p.b.va(0), p.b.buffer.key);
        p.a.post({wqe, wqe});
        net.pump();
        auto end_of = [&](const Frame &f) { return (View(f).psn - options.sq_psn) + 1; };
        const uint32_t wanted = late * kPackets;
        const auto ack = std::find_if(acks.begin(), acks.end(), [&](const Frame &f) {
            return late ? end_of(f) == wanted : end_of(f) < kPackets;
        });
        ASSERT_NE(ack, acks.end());
        const uint32_t acked = end_of(*ack);
        const uint64_t before = net.a.counters().retransmitted;
        net.a.host.link_full = true;
        net.at(net.a.host.deadline_ns);
        Network::deliver(net.a, *ack);
        EXPECT_EQ(p.a.poll_all().size(), acked / kPackets);
        net.a.host.link_full = false;
        net.filter = nullptr;
        net.a.device.link_ready();
        net.pump();
        expect_good(p.a, 2 - acked / kPackets);
        EXPECT_EQ(net.a.counters().retransmitted - before, 2 * kPackets - acked);
        EXPECT_TRUE(p.b.holds(0, kPackets * kMtu, late));
    }
}

TEST_F(RcLoss, ACorruptPacketHasNoEffect)
{
    Pair p(net.a, net.b, Options{});
    p.a.fill(0, 500, 1);
    std::memset(p.b.at(0), 0xee, 1000);
    // A bit in the middle of the payload, in the RETH, and in the ICRC.
    for (int where : {200, 60, -1}) {
        SCOPED_TRACE(where);
        const uint64_t bad = net.b.counters().rx_bad_icrc;
        bool first = true;
        net.filter = [&](const Node &from, Frame &f) {
            if (from.number == 1 && first) {
                f[where < 0 ? f.size() - 1 : size_t(where)] ^= 1;
                first = false;
            }
            return Fate{};
        };
        p.a.post(write_to(p.a.sge(0, 500), p.b.va(0), p.b.buffer.key));
        net.pump();
        EXPECT_EQ(net.b.counters().rx_bad_icrc, bad + 1);
        EXPECT_EQ(*p.b.at(0), 0xee);
        EXPECT_EQ(*p.b.at(499), 0xee);
        net.settle();
        expect_good(p.a, 1);
        EXPECT_TRUE(p.b.holds(0, 500, 1));
        std::memset(p.b.at(0), 0xee, 1000);
    }
}

// All faults at once, in both directions, with all kinds of work, over and over.
class RcStorm : public RcLoss, public ::testing::WithParamInterface<unsigned> {};

TEST_P(RcStorm, EverythingArrivesOnceAndInOrder)
{
    uint64_t seed = GetParam();
    auto random = [&seed](unsigned n) {
        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
        return unsigned(seed >> 33) % n;
    };
    Options options;
    options.mtu_code = 1 + GetParam() % 5;
    options.sq_psn = options.rq_psn = 0xffffff - random(300);
    options.ack_timeout = 8;
    options.rd_atomic = 1 + random(16);
    options.sq_wqes = options.rq_wqes = 16;
    Pair p(net.a, net.b, options);
    const uint32_t mtu = 128u << options.mtu_code;
    net.filter = [&](const Node &, Frame &f) {
        Fate fate;
        switch (random(30)) {
        case 0:
            fate.copies = 0;
            break;
        case 1:
            fate.copies = 2;
            break;
        case 2:
            f[random(unsigned(f.size()))] ^= uint8_t(1 << random(8));
            break;
        case 3:
            fate.behind = 1 + random(4);
            break;
        }
        return fate;
    };
    uint64_t sum = 0;
    *reinterpret_cast<uint64_t *>(p.b.at(900000)) = 0;
    for (unsigned round = 0; round < 60; round++) {
        SCOPED_TRACE(round);
        const unsigned n = 1 + random(8);
        std::vector<Wqe> list;
        std::vector<std::function<void()>> checks;
        unsigned receives = 0;
        std::vector<uint32_t> sizes;
        for (unsigned i = 0; i < n; i++) {
            const uint32_t size = random(3) ? random(6 * mtu) : random(100);
            const uint64_t here = i * 30000, there = i * 30000;
            const uint32_t mark = round * 100 + i;
            switch (random(4)) {
            case 0:
                p.a.fill(here, size, mark);
                p.b.post_recv(p.b.sge(there, 30000));
                sizes.push_back(size);
                list.push_back(send(p.a.sge(here, size)));
                checks.push_back([&, there, size, mark] { EXPECT_TRUE(p.b.holds(there, size, mark)); });
                receives++;
                break;
            case 1:
                p.a.fill(here, size, mark);
                list.push_back(write_to(p.a.sge(here, size), p.b.va(there), p.b.buffer.key));
                checks.push_back([&, there, size, mark] { EXPECT_TRUE(p.b.holds(there, size, mark)); });
                break;
            case 2:
                p.b.fill(there + 500000, size % 30000, mark);
                list.push_back(read_from(p.a.sge(here, size % 30000), p.b.va(there + 500000), p.b.buffer.key));
                checks.push_back([&, here, size, mark] { EXPECT_TRUE(p.a.holds(here, size % 30000, mark)); });
                break;
            case 3:
                list.push_back(Wqe(HGHCA_OPCODE_ATOMIC_FA)
                                   .raddr(p.b.va(900000), p.b.buffer.key)
                                   .atomic(mark, 0)
                                   .data(p.a.sge(900000 + i * 8, 8)));
                checks.push_back([&, i, sum] {
                    EXPECT_EQ(*reinterpret_cast<uint64_t *>(p.a.at(900000 + i * 8)), sum);
                });
                sum += mark;
                break;
            }
        }
        p.a.post(list);
        for (int i = 0; i < 40 && net.a.host.deadline_ns != UINT64_MAX; i++)
            net.settle(4096ull << 8);
        // A last frame may be held back with nothing behind to overtake it.
        net.settle();
        auto done = p.a.poll_all();
        ASSERT_EQ(done.size(), n);
        for (const Completion &c : done)
            ASSERT_FALSE(c.error) << int(c.syndrome);
        auto got = p.b.poll_all();
        ASSERT_EQ(got.size(), receives);
        for (unsigned i = 0; i < receives; i++) {
            ASSERT_FALSE(got[i].error);
            ASSERT_EQ(got[i].bytes, sizes[i]);
        }
        for (auto &check : checks)
            check();
        if (HasFailure())
            return;
    }
    EXPECT_EQ(*reinterpret_cast<uint64_t *>(p.b.at(900000)), sum);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RcStorm, ::testing::Range(0u, 40u));

}  // namespace
}  // namespace hghca::test::rc_loss_test
