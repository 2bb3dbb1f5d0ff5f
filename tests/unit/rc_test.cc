// SPDX-License-Identifier: GPL-2.0-or-later
// Reliable connections between two devices on a link that works.
#include <gtest/gtest.h>

#include "verbs.h"

namespace hghca::test::rc_test {
namespace {

using Options = Endpoint::Options;

constexpr uint64_t kHere = 0, kThere = 256 << 10;

class Rc : public ::testing::Test {
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
    Network net;
};

TEST_F(Rc, SendArrives)
{
    Pair p(net.a, net.b, Options{});
    p.a.fill(0, 100, 7);
    p.b.post_recv(p.b.sge(4096, 200));
    p.a.post(send(p.a.sge(0, 100)));
    net.pump();
    Completion sent = good(p.a);
    EXPECT_EQ(sent.opcode, HGHCA_OPCODE_SEND);
    EXPECT_TRUE(sent.is_send);
    EXPECT_EQ(sent.bytes, 100u);
    EXPECT_EQ(sent.qpn, p.a.qp.qpn);
    Completion got = good(p.b);
    EXPECT_FALSE(got.is_send);
    EXPECT_EQ(got.bytes, 100u);
    EXPECT_EQ(got.opcode, HGHCA_BTH_OP_SEND_ONLY);
    EXPECT_FALSE(got.grh);
    EXPECT_EQ(got.network, 0u);
    EXPECT_TRUE(p.b.holds(4096, 100, 7));
    EXPECT_EQ(net.b.events(HGHCA_EVENT_COMM_EST), 0u);
}

// Both queues in one region: neither takes the other's WQEs, also where they begin again.
TEST_F(Rc, QueuesInOneRegion)
{
    net.a.driver.one_region = net.b.driver.one_region = true;
    Pair p(net.a, net.b, Endpoint::Options{});
    ASSERT_EQ(p.b.qp.rq_offset, 64u << p.b.qp.stride_log);
    for (uint32_t i = 0; i < 150; i++) {
        SCOPED_TRACE(i);
        for (auto [from, to] : {std::pair{&p.a, &p.b}, std::pair{&p.b, &p.a}}) {
            from->fill(0, 100, i);
            to->post_recv(to->sge(4096, 200));
            from->post(send(from->sge(0, 100)));
            net.pump();
            for (const auto &[side, is_send] : {std::pair{from, true}, std::pair{to, false}}) {
                auto all = side->poll_all();
                ASSERT_EQ(all.size(), 1u);
                EXPECT_FALSE(all[0].error);
                EXPECT_EQ(all[0].is_send, is_send);
            }
            EXPECT_TRUE(to->holds(4096, 100, i));
        }
    }
    EXPECT_EQ(net.a.counters().retransmitted, 0u);
}

// Every opcode with sizes on both sides of the MTU, under each MTU.
struct SizeCase {
    uint8_t opcode;
    unsigned mtu_code;
};
class RcSizes : public Rc, public ::testing::WithParamInterface<std::tuple<uint8_t, unsigned, unsigned>> {};

TEST_P(RcSizes, DataIsExact)
{
    auto [opcode, mtu_code, sgid_index] = GetParam();
    Options options;
    options.mtu_code = mtu_code;
    options.sgid_index = sgid_index;
    Pair p(net.a, net.b, options);
    const uint32_t mtu = 128u << mtu_code;
    const bool consumes = opcode == HGHCA_OPCODE_SEND || opcode == HGHCA_OPCODE_SEND_IMM ||
                          opcode == HGHCA_OPCODE_RDMA_WRITE_IMM;
    const bool has_imm = opcode == HGHCA_OPCODE_SEND_IMM || opcode == HGHCA_OPCODE_RDMA_WRITE_IMM;
    for (uint32_t size : {0u, 1u, 2u, 3u, 4u, mtu - 1, mtu, mtu + 1, 2 * mtu - 1, 2 * mtu, 2 * mtu + 1, 70 * mtu + 5}) {
        SCOPED_TRACE(size);
        // Odd addresses: page borders fall anywhere.
        const uint64_t here = kHere + 4091, there = kThere + 13;
        const bool read = opcode == HGHCA_OPCODE_RDMA_READ;
        Endpoint &source = read ? p.b : p.a, &target = read ? p.a : p.b;
        const uint64_t source_at = read ? there : here, target_at = read ? here : there;
        source.fill(source_at, size, size);
        std::memset(target.at(target_at - 1), 0xee, size + 2);
        if (consumes)
            p.b.post_recv(p.b.sge(there, size + 10));
        Wqe wqe(opcode, HGHCA_WQE_CQ_UPDATE, has_imm ? be32(0x12345678) : 0);
        if (opcode != HGHCA_OPCODE_SEND && opcode != HGHCA_OPCODE_SEND_IMM)
            wqe.raddr(p.b.va(there), p.b.buffer.key);
        wqe.data(p.a.sge(here, size));
        p.a.post(wqe);
        net.pump();
        Completion sent = good(p.a);
        EXPECT_EQ(sent.opcode, opcode);
        EXPECT_EQ(sent.bytes, size);
        EXPECT_TRUE(target.holds(target_at, size, size));
        EXPECT_EQ(*target.at(target_at - 1), 0xee);
        EXPECT_EQ(*target.at(target_at + size), 0xee);
        if (consumes) {
            Completion got = good(p.b);
            EXPECT_EQ(got.bytes, size);
            EXPECT_EQ(got.imm, has_imm ? be32(0x12345678) : 0);
        } else {
            EXPECT_FALSE(p.b.poll());
        }
    }
    EXPECT_EQ(net.a.counters().retransmitted, 0u);
    EXPECT_EQ(net.b.counters().rx_bad_icrc, 0u);
}

INSTANTIATE_TEST_SUITE_P(All, RcSizes,
                         ::testing::Combine(::testing::Values(HGHCA_OPCODE_SEND, HGHCA_OPCODE_SEND_IMM,
                                                              HGHCA_OPCODE_RDMA_WRITE, HGHCA_OPCODE_RDMA_WRITE_IMM,
                                                              HGHCA_OPCODE_RDMA_READ),
                                            ::testing::Values(1u, 2u, 3u, 4u, 5u),   // MTU 256 to 4096
                                            ::testing::Values(0u, 1u, 2u)));         // IPv4, IPv6, VLAN

TEST_F(Rc, ManyEntriesOnBothSides)
{
    Options options;
    options.stride_log = 10;
    Pair p(net.a, net.b, options);
    // 32 entries of sizes that have nothing to do with each other, some of them empty.
    std::vector<Sge> from, to;
    uint32_t total = 0;
    for (uint32_t i = 0; i < 32; i++) {
        from.push_back(p.a.sge(i * 5000 + i, 97 * i + 1));
        for (uint32_t j = 0; j < from.back().length; j++)
            *p.a.at(i * 5000 + i + j) = Endpoint::pattern(5, total + j);
        total += from.back().length;
    }
    uint32_t left = total;
    for (uint32_t i = 0; i < 32; i++) {
        uint32_t n = i == 31 ? left : std::min(left, 31 * i + 700);
        to.push_back(p.b.sge(i * 7000 + 3, n));
        left -= n;
    }
    Wqe wqe(HGHCA_OPCODE_SEND);
    for (const Sge &s : from) {
        wqe.data(s);
        if (s.length % 2 && wqe.bytes.size() < 900)
            wqe.data({0, 0xdead, 0});   // skipped, whatever its key
    }
    p.b.post_recv(to);
    p.a.post(wqe);
    net.pump();
    EXPECT_EQ(good(p.a).bytes, total);
    EXPECT_EQ(good(p.b).bytes, total);
    uint32_t at = 0;
    for (uint32_t i = 0; i < 32; i++)
        for (uint32_t j = 0; j < to[i].length; j++, at++)
            ASSERT_EQ(*p.b.at(i * 7000 + 3 + j), Endpoint::pattern(5, at)) << at;
}

// A program may write to what it sends at any time, and to what its peer reads.
TEST_F(Rc, MemoryThatChangesWhileItIsSent)
{
    Pair p(net.a, net.b, Options{});
    constexpr uint32_t kSize = 3001;
    for (const uint8_t opcode : {HGHCA_OPCODE_SEND, HGHCA_OPCODE_RDMA_WRITE, HGHCA_OPCODE_RDMA_READ}) {
        SCOPED_TRACE(int(opcode));
        const bool reads = opcode == HGHCA_OPCODE_RDMA_READ;
        Endpoint &source = reads ? p.b : p.a, &target = reads ? p.a : p.b;
        source.fill(0, kSize, opcode);
        // In each frame the bytes of the moment at which it was made.
        (reads ? net.b : net.a).host.meanwhile = [&source] {
            for (uint32_t i = 0; i < kSize; i++)
                *source.at(i) ^= 0xff;
        };
        if (opcode == HGHCA_OPCODE_SEND)
            p.b.post_recv(p.b.sge(8192, kSize));
        Wqe wqe(opcode, HGHCA_WQE_CQ_UPDATE, 0);
        if (opcode != HGHCA_OPCODE_SEND)
            wqe.raddr(p.b.va(reads ? 0 : 8192), p.b.buffer.key);
        p.a.post(wqe.data(p.a.sge(reads ? 8192 : 0, kSize)));
        net.pump();
        EXPECT_EQ(good(p.a).bytes, kSize);
        if (opcode == HGHCA_OPCODE_SEND) {
            EXPECT_EQ(good(p.b).bytes, kSize);
        }
        for (uint32_t i = 0; i < kSize; i++) {
            const uint8_t was = Endpoint::pattern(opcode, i), flips = uint8_t(i / 1024 % 2 ? 0xff : 0);
            ASSERT_EQ(*target.at(8192 + i), was ^ flips) << i;
        }
        net.a.host.meanwhile = net.b.host.meanwhile = nullptr;
    }
    EXPECT_EQ(net.a.counters().rx_bad_icrc + net.b.counters().rx_bad_icrc, 0u);
    EXPECT_EQ(net.a.counters().retransmitted, 0u);
}

// Software links the requests of a list one by one and rings at the end; the device may come along the chain before.
class RcListInTheMaking : public Rc {
protected:
    // The first request waits for the link, the first of a list is linked to it.
    void begin(Pair &p)
    {
        net.a.host.link_full = true;
        p.a.post(request(p));
        p.a.write(request(p));
    }
    void end_list(Pair &p)
    {
        p.a.write(request(p));
        p.a.write(request(p));
        p.a.ring(1, request(p), 3);
        net.pump();
    }
    void let_go()
    {
        net.a.host.link_full = false;
        net.a.device.link_ready();
        net.pump();
    }
    static Wqe request(Pair &p) { return write_to(p.a.sge(0, 100), p.b.va(0), p.b.buffer.key); }
};

TEST_F(RcListInTheMaking, IsSentToItsEnd)
{
    Pair p(net.a, net.b, Options{});
    begin(p);
    let_go();
    EXPECT_EQ(p.a.poll_all().size(), 2u);
    end_list(p);
    p.a.post(request(p));
    net.pump();
    const auto rest = p.a.poll_all();
    ASSERT_EQ(rest.size(), 3u);
    for (const Completion &c : rest)
        EXPECT_FALSE(c.error) << int(c.syndrome);
    EXPECT_EQ(net.a.counters().wqe_bad, 0u);
}

TEST_F(RcListInTheMaking, IsFlushedToItsEnd)
{
    Pair p(net.a, net.b, Options{});
    begin(p);
    p.a.modify(HGHCA_CMD_2ERR_QPEE);
    EXPECT_EQ(p.a.poll_all().size(), 2u);
    end_list(p);
    const auto rest = p.a.poll_all();
    ASSERT_EQ(rest.size(), 2u);
    for (const Completion &c : rest)
        EXPECT_EQ(c.syndrome, HGHCA_SYNDROME_WR_FLUSH_ERR);
}

TEST_F(RcListInTheMaking, LeadsElsewhere)
{
    Pair p(net.a, net.b, Options{});
    begin(p);
    let_go();
    EXPECT_EQ(p.a.poll_all().size(), 2u);
    p.a.write(request(p));
    *reinterpret_cast<uint32_t *>(p.a.send_slot(1)) ^= le32(1u << p.a.qp.stride_log);
    p.a.ring(1, request(p), 2);
    net.pump();
    const auto rest = p.a.poll_all();
    ASSERT_FALSE(rest.empty());
    EXPECT_EQ(rest.front().syndrome, HGHCA_SYNDROME_LOCAL_QP_OP_ERR);
    EXPECT_EQ(net.a.counters().wqe_bad, 1u);
}

TEST_F(Rc, InlineOfEverySizeThatFits)
{
    Options options;
    options.stride_log = 10;
    Pair p(net.a, net.b, options);
    for (uint32_t size : {0u, 1u, 11u, 12u, 13u, 27u, 28u, 29u, 500u, 987u, 988u}) {
        SCOPED_TRACE(size);
        Bytes data(size);
        for (uint32_t i = 0; i < size; i++)
            data[i] = Endpoint::pattern(size, i);
        p.b.post_recv(p.b.sge(0, 2000));
        p.a.post(Wqe(HGHCA_OPCODE_SEND).inline_data(data));
        net.pump();
        EXPECT_EQ(good(p.a).bytes, size);
        EXPECT_EQ(good(p.b).bytes, size);
        EXPECT_TRUE(p.b.holds(0, size, size));
    }
}

TEST_F(Rc, InlineAndMemoryMix)
{
    Pair p(net.a, net.b, Options{});
    p.a.fill(0, 3000, 1);
    Bytes data(50, 0x5a);
    p.b.post_recv(p.b.sge(0, 4000));
    p.a.post(Wqe(HGHCA_OPCODE_SEND).data(p.a.sge(0, 1500)).inline_data(data).data(p.a.sge(1500, 1500)));
    net.pump();
    EXPECT_EQ(good(p.b).bytes, 3050u);
    EXPECT_TRUE(p.b.holds(0, 1500, 1));
    EXPECT_EQ(std::memcmp(p.b.at(1500), data.data(), 50), 0);
    EXPECT_EQ(*p.b.at(1550), Endpoint::pattern(1, 1500));
}

TEST_F(Rc, AtomicsReturnTheValueBefore)
{
    Pair p(net.a, net.b, Options{});
    auto *word = reinterpret_cast<uint64_t *>(p.b.at(64));
    *word = 40;
    p.a.post(Wqe(HGHCA_OPCODE_ATOMIC_FA).raddr(p.b.va(64), p.b.buffer.key).atomic(2, 0).data(p.a.sge(8, 8)));
    net.pump();
    EXPECT_EQ(good(p.a).bytes, 8u);
    EXPECT_EQ(*word, 42u);
    EXPECT_EQ(*reinterpret_cast<uint64_t *>(p.a.at(8)), 40u);
    // Compare fails, compare succeeds.
    p.a.post({Wqe(HGHCA_OPCODE_ATOMIC_CS).raddr(p.b.va(64), p.b.buffer.key).atomic(7, 41).data(p.a.sge(16, 8)),
              Wqe(HGHCA_OPCODE_ATOMIC_CS)
                  .raddr(p.b.va(64), p.b.buffer.key)
                  .atomic(0x1122334455667788, 42)
                  .data(p.a.sge(24, 8))});
    net.pump();
    EXPECT_EQ(p.a.poll_all().size(), 2u);
    EXPECT_EQ(*reinterpret_cast<uint64_t *>(p.a.at(16)), 42u);
    EXPECT_EQ(*reinterpret_cast<uint64_t *>(p.a.at(24)), 42u);
    EXPECT_EQ(*word, 0x1122334455667788u);
}

// Table 3-2-40: ssn at 80h, the messages sent, and rmsn at 9Ch, those received. A packet that comes again changes
// neither.
TEST_F(Rc, QueryShowsTheNumbersOfMessages)
{
    Pair p(net.a, net.b, Options{});
    const auto numbers = [](Endpoint &e) {
        TestDriver &d = e.node.driver;
        TestDriver::must(d.command(0x22, 0, e.qp.qpn, 0, d.out_mailbox()).status, "QUERY_QP");
        const auto word = [&](unsigned offset) { return be32(*d.host.as<uint32_t>(d.out_mailbox() + offset)); };
        return std::pair(word(0x80), word(0x9c));
    };
    EXPECT_EQ(numbers(p.a), std::pair(0u, 0u));
    EXPECT_EQ(numbers(p.b), std::pair(0u, 0u));
    unsigned frames = 0;
    net.filter = [&](const Node &from, Frame &) { return Fate{from.number == 1 && frames++ % 4 == 2 ? 0u : 1u}; };
    for (uint32_t n = 1; n <= 6; n++) {
        p.b.post_recv(p.b.sge(0, 3000));
        const Wqe messages[] = {send(p.a.sge(0, 3000)), write_to(p.a.sge(0, 3000), p.b.va(0), p.b.buffer.key),
                                read_from(p.a.sge(0, 3000), p.b.va(0), p.b.buffer.key)};
        p.a.post(messages[n % 3]);
        net.settle();
        EXPECT_EQ(numbers(p.a), std::pair(n, 0u)) << n;
        EXPECT_EQ(numbers(p.b), std::pair(0u, n)) << n;
    }
    EXPECT_GT(net.a.counters().tx_packets, 14u) << "some went twice";
    p.a.post_recv(p.a.sge(0, 10));
    p.b.post(send(p.b.sge(0, 10)));
    net.settle();
    EXPECT_EQ(numbers(p.a), std::pair(6u, 1u));
    EXPECT_EQ(numbers(p.b), std::pair(1u, 6u));
}

TEST_F(Rc, NopsCompleteInOrderWithoutPackets)
{
    Pair p(net.a, net.b, Options{});
    p.b.post_recv(p.b.sge(0, 10));
    p.a.post({Wqe(HGHCA_OPCODE_NOP), send(p.a.sge(0, 10)), Wqe(HGHCA_OPCODE_NOP), Wqe(HGHCA_OPCODE_NOP)});
    // The first is done, the others wait for the SEND before them.
    auto early = p.a.poll_all();
    ASSERT_EQ(early.size(), 1u);
    EXPECT_EQ(early[0].opcode, HGHCA_OPCODE_NOP);
    net.pump();
    auto late = p.a.poll_all();
    ASSERT_EQ(late.size(), 3u);
    EXPECT_EQ(late[0].opcode, HGHCA_OPCODE_SEND);
    EXPECT_EQ(late[2].slot, 3u);
    EXPECT_EQ(net.a.counters().tx_packets, 1u);
}

TEST_F(Rc, OnlySignaledWorkMakesACompletion)
{
    Pair p(net.a, net.b, Options{});
    for (int i = 0; i < 3; i++)
        p.b.post_recv(p.b.sge(0, 10));
    p.a.post({send(p.a.sge(0, 10), 0), send(p.a.sge(0, 10), 0), send(p.a.sge(0, 10))});
    net.pump();
    EXPECT_EQ(good(p.a).slot, 2u);
    EXPECT_EQ(p.b.poll_all().size(), 3u);
}

TEST(RcBase, EveryWorkRequestCompletesWithoutTheExtension)
{
    Network net(0, kFullCaps & ~HGHCA_CAP_CQ_UPDATE);
    Pair p(net.a, net.b, Options{});
    p.b.post_recv(p.b.sge(0, 10));
    p.a.post(send(p.a.sge(0, 10), 0));
    net.pump();
    EXPECT_EQ(p.a.poll_all().size(), 1u);
}

// A driver that knows no extension: addresses in the QPC, no doorbell record.
TEST(RcBase, WorksWithoutAnyExtension)
{
    Network net(0, 0);
    Options options;
    options.dbr = options.by_gid = false;
    Pair p(net.a, net.b, options);
    for (unsigned i = 0; i < 200; i++) {
        p.a.fill(0, 3000, i);
        p.b.post_recv(p.b.sge(0, 3000));
        p.a.post(send(p.a.sge(0, 3000)));
        net.pump();
        EXPECT_EQ(p.a.poll_all().size(), 1u);
        EXPECT_EQ(p.b.poll_all().size(), 1u);
        EXPECT_TRUE(p.b.holds(0, 3000, i));
    }
    // None posted: RNR NAK until there is one.
    p.a.post(send(p.a.sge(0, 10)));
    net.settle(1'000'000);
    EXPECT_GT(net.b.counters().rnr_nak_sent, 0u);
    p.b.post_recv(p.b.sge(0, 3000));
    net.settle(1'000'000);
    EXPECT_EQ(p.a.poll_all().size(), 1u);
}

TEST_F(Rc, QueuesAndPsnsWrap)
{
    Options options;
    options.sq_wqes = options.rq_wqes = 4;
    options.sq_psn = options.rq_psn = 0xfffff0;
    options.mtu_code = 1;
    Pair p(net.a, net.b, options);
    // More than 2^16 WQEs, so that their indices wrap as well.
    for (unsigned i = 0; i < 70000 / 3; i++) {
        for (int k = 0; k < 3; k++)
            p.b.post_recv(p.b.sge(4096u * unsigned(k), 300));
        p.a.fill(0, 300, i);
        p.a.post({send(p.a.sge(0, 300), 0), send(p.a.sge(1, 100), 0), send(p.a.sge(2, 0))});
        net.pump();
        ASSERT_EQ(good(p.a).error, false);
        ASSERT_EQ(p.b.poll_all().size(), 3u);
    }
    EXPECT_TRUE(p.b.holds(0, 300, 70000 / 3 - 1));
    EXPECT_EQ(net.b.counters().out_of_sequence, 0u);
}

TEST_F(Rc, AQueueOfOneWorks)
{
    Options options;
    options.sq_wqes = 1;
    options.rq_wqes = 1;
    Pair p(net.a, net.b, options);
    for (int i = 0; i < 10; i++) {
        p.b.post_recv(p.b.sge(0, 10));
        p.a.post(send(p.a.sge(0, 10)));
        net.pump();
        EXPECT_EQ(p.a.poll_all().size(), 1u);
        EXPECT_EQ(p.b.poll_all().size(), 1u);
    }
}

TEST_F(Rc, LateDoorbellsForWhatTheWalkHasPassedDoNothing)
{
    Pair p(net.a, net.b, Options{});
    for (int i = 0; i < 8; i++)
        p.b.post_recv(p.b.sge(0, 10));
    // Both are linked before the first doorbell, so one walk takes both.
    Wqe w = send(p.a.sge(0, 10));
    p.a.write(w);
    p.a.write(w);
    p.a.ring(0, w, 1);
    p.a.ring(1, w, 1);
    net.pump();
    EXPECT_EQ(p.a.poll_all().size(), 2u);
    p.a.ring(0, w, 2);
    p.a.ring(1, w, 1);
    net.pump();
    EXPECT_FALSE(p.a.poll());
    p.a.post(w);
    net.pump();
    EXPECT_EQ(p.a.poll_all().size(), 1u);
}

TEST_F(Rc, FenceWaitsForReads)
{
    Pair p(net.a, net.b, Options{});
    p.b.fill(0, 8, 3);
    net.keep_log = true;
    p.a.post({read_from(p.a.sge(0, 8), p.b.va(0), p.b.buffer.key),
              write_to(p.a.sge(0, 8), p.b.va(100), p.b.buffer.key).with_fence()});
    // Nothing of the WRITE before the answer.
    EXPECT_EQ(net.a.counters().tx_packets, 1u);
    net.pump();
    EXPECT_EQ(p.a.poll_all().size(), 2u);
    EXPECT_TRUE(p.b.holds(100, 8, 3));
    // Without a fence it goes at once.
    p.a.post({read_from(p.a.sge(0, 8), p.b.va(0), p.b.buffer.key), write_to(p.a.sge(0, 8), p.b.va(100), p.b.buffer.key)});
    EXPECT_EQ(net.a.counters().tx_packets, 4u);
    // A fence with nothing before it holds nothing up; so does one on the doorbell.
    net.pump();
    p.a.poll_all();
    p.a.post(write_to(p.a.sge(0, 8), p.b.va(100), p.b.buffer.key).with_fence());
    net.pump();
    EXPECT_EQ(p.a.poll_all().size(), 1u);
}

TEST_F(Rc, NoMoreReadsThanAgreed)
{
    for (uint32_t limit : {1u, 2u, 16u}) {
        SCOPED_TRACE(limit);
        Options options;
        options.rd_atomic = options.dest_rd_atomic = limit;
        Pair p(net.a, net.b, options);
        const uint64_t before = net.a.counters().tx_packets;
        std::vector<Wqe> list;
        for (unsigned i = 0; i < 20; i++) {
            p.b.fill(i * 4096, 3000, i);
            list.push_back(read_from(p.a.sge(i * 4096, 3000), p.b.va(i * 4096), p.b.buffer.key));
        }
        p.a.post(list);
        EXPECT_EQ(net.a.counters().tx_packets - before, limit);
        net.pump();
        EXPECT_EQ(p.a.poll_all().size(), 20u);
        for (unsigned i = 0; i < 20; i++)
            EXPECT_TRUE(p.a.holds(i * 4096, 3000, i));
        EXPECT_EQ(net.b.counters().remote_invalid_nak_sent, 0u);
    }
}

TEST_F(Rc, SolicitedEventOnlyWhenAsked)
{
    Pair p(net.a, net.b, Options{});
    auto eq = net.b.driver.create_eq(4, 5);
    Endpoint::Options options;
    TestDriver::Cq cq = net.b.driver.create_cq(4, eq.eqn);
    p.b.cq = cq;   // its number is not the QP's, so make one whose CQ it is
    Endpoint c(net.a, options), d(net.b, options);
    c.to_rtr(d);
    d.to_rtr(c);
    c.to_rts();
    net.b.driver.arm(d.cq, HGHCA_CQ_ARM_SOLICITED);
    auto completions = [&] { return net.b.events(HGHCA_EVENT_COMP); };
    completions();
    d.post_recv(d.sge(0, 10));
    c.post(send(c.sge(0, 10)));
    net.pump();
    EXPECT_EQ(completions(), 0u);
    d.post_recv(d.sge(0, 10));
    c.post(send(c.sge(0, 10), HGHCA_WQE_CQ_UPDATE | HGHCA_WQE_SOLICIT));
    net.pump();
    EXPECT_EQ(completions(), 1u);
}

TEST_F(Rc, CommunicationEstablishedOnceInRtr)
{
    Pair p(net.a, net.b, Options{}, false);
    p.a.to_rtr(p.b);
    p.b.to_rtr(p.a);
    p.a.to_rts();
    for (int i = 0; i < 2; i++) {
        p.b.post_recv(p.b.sge(0, 10));
        p.a.post(send(p.a.sge(0, 10)));
    }
    net.pump();
    EXPECT_EQ(net.b.events(HGHCA_EVENT_COMM_EST), 1u);
    EXPECT_EQ(p.a.poll_all().size(), 2u);
}

TEST_F(Rc, AckIsAskedForOnTheLastAndEvery64)
{
    Options options;
    options.mtu_code = 1;
    Pair p(net.a, net.b, options);
    net.keep_log = true;
    p.a.post(write_to(p.a.sge(0, 256 * 150), p.b.va(0), p.b.buffer.key));
    net.pump();
    std::vector<unsigned> asked;
    unsigned n = 0;
    for (const Frame &f : net.log) {
        View v(f);
        if (v.is_request() && ++n && v.ack_request)
            asked.push_back(n);
    }
    EXPECT_EQ(asked, (std::vector<unsigned>{64, 128, 150}));
}

TEST_F(Rc, TheWindowIs256Packets)
{
    Options options;
    options.mtu_code = 1;
    Pair p(net.a, net.b, options);
    net.filter = [](const Node &from, Frame &) { return from.number == 2 ? Fate{0} : Fate{}; };   // no ACK comes back
    p.a.post(write_to(p.a.sge(0, 256 * 600), p.b.va(0), p.b.buffer.key));
    net.pump();
    EXPECT_EQ(net.a.counters().tx_packets, 256u);
}

// One device, a QP connected to itself and two connected to each other.
TEST_F(Rc, LoopbackNeverTouchesTheLink)
{
    for (bool itself : {false, true}) {
        SCOPED_TRACE(itself);
        Endpoint x(net.a, Options{}), y(net.a, Options{});
        Endpoint &peer = itself ? x : y;
        x.to_rtr(peer);
        if (!itself)
            y.to_rtr(x);
        x.to_rts();
        if (!itself)
            y.to_rts();
        const uint64_t on_link = net.sent, worked = net.a.device.work_done();
        x.fill(0, 100000, 9);
        peer.fill(400000, 50000, 10);
        peer.post_recv(peer.sge(200000, 100000));
        x.post({send(x.sge(0, 100000)), read_from(x.sge(500000, 50000), peer.va(400000), peer.buffer.key),
                write_to(x.sge(0, 5000), peer.va(600000), peer.buffer.key),
                Wqe(HGHCA_OPCODE_ATOMIC_FA).raddr(peer.va(700000), peer.buffer.key).atomic(5, 0).data(x.sge(800000, 8))});
        net.pump();
        EXPECT_EQ(x.poll_all().size(), itself ? 5u : 4u);
        EXPECT_EQ(y.poll_all().size(), itself ? 0u : 1u);
        EXPECT_TRUE(peer.holds(200000, 100000, 9));
        EXPECT_TRUE(x.holds(500000, 50000, 10));
        EXPECT_TRUE(peer.holds(600000, 5000, 9));
        EXPECT_EQ(*reinterpret_cast<uint64_t *>(peer.at(700000)), 5u);
        EXPECT_EQ(net.sent, on_link);
        // 98 packets of SEND, 49 of READ and 5 of WRITE at an MTU of 1024, each sent and received.
        EXPECT_GE(net.a.device.work_done() - worked, 2u * (98 + 49 + 5));
    }
}

TEST_F(Rc, LoopbackToItselfFailsCleanly)
{
    Endpoint x(net.a, Options{});
    x.to_rtr(x);
    x.to_rts();
    x.post_recv(x.sge(0, 10));
    // Too long for its own receive WQE, with more behind it.
    x.post({send(x.sge(0, 1000)), send(x.sge(0, 10)), send(x.sge(0, 10))});
    net.pump();
    auto all = x.poll_all();
    ASSERT_EQ(all.size(), 4u);
    unsigned flushed = 0;
    for (const Completion &c : all) {
        EXPECT_TRUE(c.error);
        flushed += c.syndrome == HGHCA_SYNDROME_WR_FLUSH_ERR;
    }
    EXPECT_EQ(flushed, 3u);
    EXPECT_EQ(x.state(), unsigned(HGHCA_QP_STATE_ERR));
}

// Source and destination share memory: each packet is read whole before any of it is written.
class RcOverItself : public Rc, public ::testing::WithParamInterface<uint8_t> {};

TEST_P(RcOverItself, APacketIsReadBeforeItIsWritten)
{
    const bool read = GetParam() == HGHCA_OPCODE_RDMA_READ, send_it = GetParam() == HGHCA_OPCODE_SEND;
    for (const uint8_t service : {HGHCA_QP_ST_RC, HGHCA_QP_ST_UC}) {
        if (read && service == HGHCA_QP_ST_UC)
            continue;
        for (const int64_t shift : {-700, -1, 1, 700}) {
            SCOPED_TRACE(std::to_string(service) + " " + std::to_string(shift));
            Options options;
            options.service = service;
            Endpoint x(net.a, options);
            x.to_rtr(x);
            x.to_rts();
            // In one piece.
            const uint64_t from = 4096, to = uint64_t(int64_t(from) + shift);
            x.fill(from, 1000, 5);
            if (send_it)
                x.post_recv(x.sge(to, 1000));
            x.post(read      ? read_from(x.sge(to, 1000), x.va(from), x.buffer.key)
                   : send_it ? send(x.sge(from, 1000))
                             : write_to(x.sge(from, 1000), x.va(to), x.buffer.key));
            net.pump();
            for (const Completion &c : x.poll_all())
                EXPECT_FALSE(c.error);
            EXPECT_TRUE(x.holds(to, 1000, 5));
            // In two pieces on one side: the second is read from where the first is written to.
            x.fill(40000, 500, 6);
            x.fill(20000, 500, 7);
            const std::vector<uint8_t> first(x.at(40000), x.at(40500)), second(x.at(20000), x.at(20500));
            const std::initializer_list<Sge> pieces = {x.sge(40000, 500), x.sge(20000, 500)};
            if (read)
                continue;   // its pieces are places, not sources
            if (send_it)
                x.post_recv(x.sge(20000, 1000));
            x.post(send_it ? Wqe(HGHCA_OPCODE_SEND).data(pieces)
                           : Wqe(HGHCA_OPCODE_RDMA_WRITE).raddr(x.va(20000), x.buffer.key).data(pieces));
            net.pump();
            for (const Completion &c : x.poll_all())
                EXPECT_FALSE(c.error);
            EXPECT_EQ(std::memcmp(x.at(20000), first.data(), 500), 0);
            EXPECT_EQ(std::memcmp(x.at(20500), second.data(), 500), 0);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Operations, RcOverItself,
                         ::testing::Values(HGHCA_OPCODE_SEND, HGHCA_OPCODE_RDMA_WRITE, HGHCA_OPCODE_RDMA_READ),
                         [](const auto &param) {
                             return std::string(param.param == HGHCA_OPCODE_SEND         ? "Send"
                                                : param.param == HGHCA_OPCODE_RDMA_WRITE ? "Write"
                                                                                         : "Read");
                         });

// A CPU changes the word while the device carries out atomics on it, where the host gives no pointer: nothing is lost.
TEST_F(Rc, AtomicsAreAtomicWhereNothingCanBeMapped)
{
    net.b.host.copy_only = true;
    net.b.device.dma_changed();
    Pair p(net.a, net.b, Options{});
    const uint64_t word = p.b.buffer.dma + 64;
    uint64_t by_cpu = 0;
    net.b.host.after_read = [&](uint64_t dma, uint64_t len) {
        if (dma <= word && word < dma + len) {
            ++*net.b.host.as<uint64_t>(word);
            by_cpu++;
        }
    };
    const auto add = [&](uint64_t n) {
        return Wqe(HGHCA_OPCODE_ATOMIC_FA).raddr(p.b.va(64), p.b.buffer.key).atomic(n, 0).data(p.a.sge(0, 8));
    };
    const auto swap = [&](uint64_t compare, uint64_t with) {
        return Wqe(HGHCA_OPCODE_ATOMIC_CS).raddr(p.b.va(64), p.b.buffer.key).atomic(with, compare).data(p.a.sge(8, 8));
    };
    p.a.post({add(5), add(7)});
    net.pump();
    EXPECT_EQ(*net.b.host.as<uint64_t>(word), 12 + by_cpu);
    const uint64_t now = *net.b.host.as<uint64_t>(word);
    p.a.post({swap(now, 100), swap(now, 200)});
    net.pump();
    EXPECT_EQ(*net.b.host.as<uint64_t>(word), 100u);
    EXPECT_EQ(*reinterpret_cast<uint64_t *>(p.a.at(8)), 100u);
    for (const Completion &c : p.a.poll_all())
        EXPECT_FALSE(c.error);
    EXPECT_EQ(net.b.host.updates, 4u);
}

// Everything by copy: what the host cannot map.
TEST_F(Rc, WorksWhereNothingCanBeMapped)
{
    net.a.host.copy_only = net.b.host.copy_only = true;
    net.a.device.dma_changed();
    net.b.device.dma_changed();
    Pair p(net.a, net.b, Options{});
    p.a.fill(3, 9001, 4);
    p.b.fill(200003, 9001, 5);
    p.b.post_recv(p.b.sge(1, 10000));
    *reinterpret_cast<uint64_t *>(p.b.at(300000)) = 11;
    p.a.post({send(p.a.sge(3, 9001)), read_from(p.a.sge(100001, 9001), p.b.va(200003), p.b.buffer.key),
              Wqe(HGHCA_OPCODE_ATOMIC_FA).raddr(p.b.va(300000), p.b.buffer.key).atomic(2, 0).data(p.a.sge(300000, 8))});
    net.pump();
    EXPECT_EQ(p.a.poll_all().size(), 3u);
    EXPECT_EQ(p.b.poll_all().size(), 1u);
    EXPECT_TRUE(p.b.holds(1, 9001, 4));
    EXPECT_TRUE(p.a.holds(100001, 9001, 5));
    EXPECT_EQ(*reinterpret_cast<uint64_t *>(p.b.at(300000)), 13u);
    EXPECT_EQ(*reinterpret_cast<uint64_t *>(p.a.at(300000)), 11u);
}

TEST_F(Rc, WhatIsWrittenIsToldAsDirty)
{
    Pair p(net.a, net.b, Options{});
    net.b.host.record_dirty = true;
    p.a.post(write_to(p.a.sge(0, 3000), p.b.va(5000), p.b.buffer.key));
    net.pump();
    uint64_t covered = 0;
    for (const Range &r : net.b.host.dirtied)
        if (r.dma >= p.b.buffer.dma + 5000 && r.dma + r.length <= p.b.buffer.dma + 8000)
            covered += r.length;
    EXPECT_EQ(covered, 3000u);
}

// With the smallest context cache every packet finds its QP in ICM.
TEST(RcCache, StateSurvivesEviction)
{
    Network net(1);
    std::vector<std::unique_ptr<Pair>> pairs;
    for (int i = 0; i < 4; i++)
        pairs.push_back(std::make_unique<Pair>(net.a, net.b, Options{}));
    for (unsigned round = 0; round < 5; round++) {
        for (auto &p : pairs) {
            p->a.fill(0, 20000, round);
            p->b.post_recv(p->b.sge(0, 20000));
            p->a.post({send(p->a.sge(0, 20000)), read_from(p->a.sge(100000, 9000), p->b.va(0), p->b.buffer.key)});
        }
        net.pump();
        for (auto &p : pairs) {
            EXPECT_EQ(p->a.poll_all().size(), 2u);
            EXPECT_EQ(p->b.poll_all().size(), 1u);
            EXPECT_TRUE(p->b.holds(0, 20000, round));
            EXPECT_TRUE(p->a.holds(100000, 9000, round));
        }
    }
    EXPECT_GT(net.a.counters().context_evictions, 0u);
}

TEST_F(Rc, AFullLinkLosesNothing)
{
    Pair p(net.a, net.b, Options{});
    p.a.fill(0, 50000, 1);
    net.a.host.link_full = true;
    p.a.post(write_to(p.a.sge(0, 50000), p.b.va(0), p.b.buffer.key));
    EXPECT_FALSE(net.a.device.has_work());   // until the link says so
    net.pump();
    EXPECT_EQ(net.a.counters().tx_packets, 0u);
    net.a.host.link_full = false;
    // It stops and goes, in the middle of messages and of READ responses.
    unsigned n = 0;
    net.filter = [&](const Node &from, Frame &) {
        FakeHost &host = from.number == 1 ? net.a.host : net.b.host;
        host.link_full = ++n % 3 == 0;
        return Fate{};
    };
    net.a.device.link_ready();
    auto unblock = [&] {
        for (int i = 0; i < 2000; i++) {
            net.a.host.link_full = net.b.host.link_full = false;
            net.a.device.link_ready();
            net.b.device.link_ready();
            net.pump();
        }
    };
    unblock();
    EXPECT_EQ(good(p.a).bytes, 50000u);
    EXPECT_TRUE(p.b.holds(0, 50000, 1));
    p.b.fill(500000, 30000, 2);
    p.a.post(read_from(p.a.sge(500000, 30000), p.b.va(500000), p.b.buffer.key));
    unblock();
    EXPECT_EQ(good(p.a).bytes, 30000u);
    EXPECT_TRUE(p.a.holds(500000, 30000, 2));
    EXPECT_EQ(net.a.counters().retransmitted, 0u);
}

TEST_F(Rc, DoorbellsThatWaitForTheirTurnAreAllHeard)
{
    Pair first(net.a, net.b, Options{}), second(net.a, net.b, Options{});
    net.a.host.link_full = true;
    first.a.post(write_to(first.a.sge(0, 8), first.b.va(0), first.b.buffer.key));
    // The one in front cannot go on, so these are not looked at before the third is rung.
    for (unsigned i = 0; i < 3; i++) {
        second.a.fill(100 * i, 100, i);
        second.a.post(write_to(second.a.sge(100 * i, 100), second.b.va(100 * i), second.b.buffer.key));
    }
    net.a.host.link_full = false;
    net.a.device.link_ready();
    net.pump();
    EXPECT_EQ(good(first.a).bytes, 8u);
    auto all = second.a.poll_all();
    ASSERT_EQ(all.size(), 3u);
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_FALSE(all[i].error);
        EXPECT_EQ(all[i].slot, i);
        EXPECT_TRUE(second.b.holds(100 * i, 100, i));
    }
}

TEST_F(Rc, QpsTakeTurns)
{
    Options options;
    options.mtu_code = 5;
    options.buffer_bytes = 4 << 20;
    Pair p(net.a, net.b, options), q(net.a, net.b, options);
    net.keep_log = true;
    // A message of 4 MB does not hold up a small one that comes later.
    p.a.post(write_to(p.a.sge(0, 4 << 20), p.b.va(0), p.b.buffer.key));
    q.a.post(write_to(q.a.sge(0, 64), q.b.va(0), q.b.buffer.key));
    net.pump();
    size_t place = 0;
    for (size_t i = 0; i < net.log.size(); i++)
        if (View(net.log[i]).opcode == HGHCA_BTH_OP_WRITE_ONLY)
            place = i;
    EXPECT_LT(place, 600u);
    EXPECT_EQ(p.a.poll_all().size(), 1u);
    EXPECT_EQ(q.a.poll_all().size(), 1u);
}

}  // namespace
}  // namespace hghca::test::rc_test
