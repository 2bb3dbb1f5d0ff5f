// SPDX-License-Identifier: GPL-2.0-or-later
// Unreliable connections.
#include <gtest/gtest.h>

#include "verbs.h"

namespace hghca::test::uc_test {
namespace {

using Options = Endpoint::Options;

Options uc()
{
    Options options;
    options.service = HGHCA_QP_ST_UC;
    return options;
}

class Uc : public ::testing::Test {
protected:
    explicit Uc(uint32_t cache_entries = 0) : net(cache_entries) {}
    // Loses the nth frame, from 0 on, that the first node sends.
    void lose(unsigned nth)
    {
        seen = 0;
        net.filter = [this, nth](const Node &from, Frame &) { return Fate{from.number == 1 && seen++ == nth ? 0u : 1u}; };
    }
    static Wqe write_imm(const Sge &s, uint64_t va, uint32_t rkey, uint32_t imm)
    {
        return Wqe(HGHCA_OPCODE_RDMA_WRITE_IMM, HGHCA_WQE_CQ_UPDATE, imm).raddr(va, rkey).data(s);
    }
    Network net;
    unsigned seen = 0;
};

class UcWithSmallCache : public Uc {
protected:
    UcWithSmallCache() : Uc(1) {}
};

void all_sizes(Network &net)
{
    for (unsigned mtu_code : {1u, 3u, 5u}) {
        Options options = uc();
        options.mtu_code = mtu_code;
        Pair pair(net.a, net.b, options);
        uint32_t round = 0;
        for (uint32_t size : {0u, 1u, 3u, 255u, 256u, 257u, 4096u, 4097u, 70001u, 300000u}) {
            SCOPED_TRACE(size);
            pair.a.fill(0, size, ++round);
            pair.b.post_recv({pair.b.sge(0, size / 2), pair.b.sge(400000, 300000)});
            pair.a.post(Wqe(HGHCA_OPCODE_SEND_IMM, HGHCA_WQE_CQ_UPDATE, be32(round)).data(pair.a.sge(0, size)));
            net.settle();
            auto sent = pair.a.poll();
            ASSERT_TRUE(sent);
            EXPECT_FALSE(sent->error);
            EXPECT_EQ(sent->bytes, size);
            auto got = pair.b.poll();
            ASSERT_TRUE(got);
            EXPECT_FALSE(got->error);
            EXPECT_EQ(got->bytes, size);
            EXPECT_EQ(got->imm, be32(round));
            EXPECT_EQ(got->opcode & 0xe0, HGHCA_BTH_UC);
            EXPECT_TRUE(pair.b.holds(0, size / 2, round));
            for (uint32_t i = size / 2; i < size; i++)
                ASSERT_EQ(pair.b.at(400000)[i - size / 2], Endpoint::pattern(round, i));

            pair.a.fill(0, size, ++round);
            pair.a.post(write_to(pair.a.sge(0, size), pair.b.va(7), pair.b.buffer.key));
            net.settle();
            ASSERT_TRUE(pair.a.poll());
            EXPECT_TRUE(pair.b.holds(7, size, round));
            EXPECT_FALSE(pair.b.poll());
        }
    }
    EXPECT_EQ(net.b.counters().uc_dropped, 0u);
}

TEST_F(Uc, MessagesOfAllSizes) { all_sizes(net); }

TEST_F(UcWithSmallCache, MessagesOfAllSizesFromIcm) { all_sizes(net); }

// It completes when its packets have gone, with no word from the other end.
TEST_F(Uc, NothingIsAcknowledged)
{
    Pair pair(net.a, net.b, uc());
    net.keep_log = true;
    net.filter = [](const Node &, Frame &) { return Fate{0}; };
    pair.a.post({send(pair.a.sge(0, 5000)), write_to(pair.a.sge(0, 10), pair.b.va(0), 1)});
    net.settle();
    EXPECT_EQ(pair.a.poll_all().size(), 2u);
    EXPECT_EQ(net.log.size(), 6u);
    for (const Frame &frame : net.log)
        EXPECT_EQ(frame[42] & 0xe0, HGHCA_BTH_UC);
}

// Whichever packet is lost: the message is not delivered, and the next one is, in the same receive WQE.
TEST_F(Uc, ALostPacketCostsItsMessage)
{
    for (uint8_t opcode : {HGHCA_OPCODE_SEND, HGHCA_OPCODE_RDMA_WRITE_IMM}) {
        for (unsigned lost = 0; lost < 4; lost++) {
            SCOPED_TRACE(lost);
            Pair pair(net.a, net.b, uc());
            const bool is_send = opcode == HGHCA_OPCODE_SEND;
            auto message = [&](uint32_t imm) {
                return is_send ? Wqe(HGHCA_OPCODE_SEND_IMM, HGHCA_WQE_CQ_UPDATE, imm).data(pair.a.sge(0, 4000))
                               : write_imm(pair.a.sge(0, 4000), pair.b.va(0), pair.b.buffer.key, imm);
            };
            pair.b.post_recv(pair.b.sge(0, 4000));
            lose(lost);
            const uint64_t dropped = net.b.counters().uc_dropped;
            pair.a.post(message(be32(1)));
            net.settle();
            EXPECT_FALSE(pair.b.poll());
            net.filter = nullptr;
            pair.a.fill(0, 4000, lost);
            pair.a.post(message(be32(2)));
            net.settle();
            auto got = pair.b.poll();
            ASSERT_TRUE(got);
            EXPECT_FALSE(got->error);
            EXPECT_EQ(got->imm, be32(2));
            EXPECT_EQ(got->slot, 0u);
            EXPECT_EQ(got->bytes, 4000u);
            EXPECT_TRUE(pair.b.holds(0, 4000, lost));
            EXPECT_FALSE(pair.b.poll());
            // Of one that lost its first packet nothing was under way.
            EXPECT_EQ(net.b.counters().uc_dropped - dropped, lost ? 1u : 0u);
        }
    }
}

TEST_F(Uc, PacketsOutOfOrderAndTwiceAreNoMessage)
{
    Pair pair(net.a, net.b, uc());
    pair.b.post_recv(pair.b.sge(0, 4000));
    net.filter = [this](const Node &, Frame &) { return Fate{1, seen++ == 1 ? 2u : 0u}; };
    pair.a.post(send(pair.a.sge(0, 4000)));
    net.settle();
    EXPECT_FALSE(pair.b.poll());
    net.filter = [this](const Node &, Frame &) { return Fate{seen++ % 2 + 1}; };
    pair.a.post(send(pair.a.sge(0, 4000)));
    net.settle();
    EXPECT_FALSE(pair.b.poll());
    net.filter = nullptr;
    pair.a.post(send(pair.a.sge(0, 4000)));
    net.settle();
    EXPECT_FALSE(pair.b.poll()->error);
}

TEST_F(Uc, NoReceiveMeansDropped)
{
    Pair pair(net.a, net.b, uc());
    pair.a.post({send(pair.a.sge(0, 3000)), write_imm(pair.a.sge(0, 10), pair.b.va(0), pair.b.buffer.key, 1)});
    net.settle();
    EXPECT_EQ(net.b.counters().rx_no_wqe, 2u);
    EXPECT_EQ(pair.b.state(), HGHCA_QP_STATE_RTS);
    pair.b.post_recv(pair.b.sge(0, 4000));
    pair.a.post(send(pair.a.sge(0, 3000)));
    net.settle();
    EXPECT_FALSE(pair.b.poll()->error);
}

TEST_F(Uc, WritesThatAreNotAllowedAreDropped)
{
    Options closed = uc();
    closed.access = 0;
    Pair allowed(net.a, net.b, uc()), forbidden(net.a, net.b, uc(), closed);
    const uint32_t key = allowed.b.buffer.key;
    for (Pair *pair : {&allowed, &forbidden}) {
        const uint32_t rkey = pair == &allowed ? key + 0x10000 : pair->b.buffer.key;
        pair->a.post(write_to(pair->a.sge(0, 3000), pair->b.va(0), rkey));
        net.settle();
        EXPECT_FALSE(pair->a.poll()->error);
        EXPECT_EQ(pair->b.state(), HGHCA_QP_STATE_RTS);
    }
    allowed.a.post(write_to(allowed.a.sge(0, 3000), allowed.b.va(allowed.b.options.buffer_bytes - 2999), key));
    net.settle();
    EXPECT_EQ(allowed.b.state(), HGHCA_QP_STATE_RTS);
    EXPECT_EQ(net.b.counters().uc_dropped, 3u);
    EXPECT_EQ(net.b.events(HGHCA_EVENT_WQ_ACCESS_ERROR), 0u);
}

// What is wrong with a receive WQE is software's own error.
TEST_F(Uc, ReceivesThatCannotHoldTheMessageFail)
{
    struct {
        Sge sge;
        uint8_t syndrome;
    } rows[] = {{{100, 0, 0}, HGHCA_SYNDROME_LOCAL_LENGTH_ERR}, {{8192, 0xdead01, 0}, HGHCA_SYNDROME_LOCAL_PROT_ERR}};
    for (const auto &row : rows) {
        Pair pair(net.a, net.b, uc());
        Sge sge = row.sge;
        if (!sge.key)
            sge = pair.b.sge(0, sge.length);
        pair.b.post_recv(sge);
        pair.b.post_recv(sge);
        pair.a.post(send(pair.a.sge(0, 3000)));
        net.settle();
        auto all = pair.b.poll_all();
        ASSERT_EQ(all.size(), 2u);
        EXPECT_EQ(all[0].syndrome, row.syndrome);
        EXPECT_EQ(all[1].syndrome, HGHCA_SYNDROME_WR_FLUSH_ERR);
        EXPECT_EQ(pair.b.state(), HGHCA_QP_STATE_ERR);
        EXPECT_FALSE(pair.a.poll()->error);
    }
}

TEST_F(Uc, ASendThatFailsLeadsToSqe)
{
    Pair pair(net.a, net.b, uc());
    pair.b.post_recv(pair.b.sge(0, 100));
    pair.a.post({Wqe(HGHCA_OPCODE_SEND).data({10, 0xdead01, 0}), send(pair.a.sge(0, 10))});
    net.settle();
    auto all = pair.a.poll_all();
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].syndrome, HGHCA_SYNDROME_LOCAL_PROT_ERR);
    EXPECT_EQ(all[1].syndrome, HGHCA_SYNDROME_WR_FLUSH_ERR);
    EXPECT_EQ(pair.a.state(), HGHCA_QP_STATE_SQE);
    pair.a.modify(HGHCA_CMD_SQERR2RTS_QPEE);
    pair.a.post(send(pair.a.sge(0, 10)));
    net.settle();
    EXPECT_FALSE(pair.a.poll()->error);
    EXPECT_FALSE(pair.b.poll()->error);
}

TEST_F(Uc, HasNoReadsAndNoAtomics)
{
    for (uint8_t opcode : {HGHCA_OPCODE_RDMA_READ, HGHCA_OPCODE_ATOMIC_CS, HGHCA_OPCODE_ATOMIC_FA}) {
        Pair pair(net.a, net.b, uc());
        pair.a.post(Wqe(opcode).raddr(pair.b.va(0), pair.b.buffer.key).atomic(1, 2).data(pair.a.sge(0, 8)));
        net.settle();
        EXPECT_EQ(pair.a.poll()->syndrome, HGHCA_SYNDROME_LOCAL_QP_OP_ERR) << int(opcode);
    }
}

TEST_F(Uc, NopsCompleteInOrderWithoutPackets)
{
    Pair pair(net.a, net.b, uc());
    pair.b.post_recv(pair.b.sge(0, 10));
    pair.a.post({Wqe(HGHCA_OPCODE_NOP), send(pair.a.sge(0, 10)), Wqe(HGHCA_OPCODE_NOP), Wqe(HGHCA_OPCODE_NOP, 0)});
    net.settle();
    const auto all = pair.a.poll_all();
    ASSERT_EQ(all.size(), 3u);
    EXPECT_EQ(all[0].opcode, HGHCA_OPCODE_NOP);
    EXPECT_EQ(all[1].opcode, HGHCA_OPCODE_SEND);
    EXPECT_EQ(all[2].opcode, HGHCA_OPCODE_NOP);
    EXPECT_EQ(net.a.counters().tx_packets, 1u);
}

TEST_F(Uc, DrainsAtTheEndOfAMessage)
{
    Options options = uc();
    options.sqd_notify = true;
    Pair pair(net.a, net.b, options);
    pair.b.post_recv(pair.b.sge(0, 1 << 20));
    net.a.host.link_full = true;
    pair.a.post({send(pair.a.sge(0, 200000)), send(pair.a.sge(0, 10))});
    net.pump();
    pair.a.to_sqd(true);
    EXPECT_EQ(net.a.events(HGHCA_EVENT_SQ_DRAINED), 0u);
    net.a.host.link_full = false;
    net.a.device.link_ready();
    net.settle();
    EXPECT_EQ(net.a.events(HGHCA_EVENT_SQ_DRAINED), 1u);
    EXPECT_EQ(pair.a.poll_all().size(), 1u);
    EXPECT_EQ(pair.b.poll()->bytes, 200000u);
    pair.b.post_recv(pair.b.sge(0, 10));
    pair.a.modify(HGHCA_CMD_SQD2RTS_QPEE);
    net.settle();
    EXPECT_EQ(pair.b.poll()->bytes, 10u);
}

TEST_F(Uc, SharedReceiveKeepsTheWqeOfAMessageCutShort)
{
    TestDriver &driver = net.b.driver;
    TestDriver::Srq srq = driver.create_srq(2);
    Options right = uc();
    right.srqn = srq.srqn;
    Pair pair(net.a, net.b, uc(), right);
    hghca_data_unit unit{le32(8192), le32(pair.b.buffer.key), le64(pair.b.va(0))};
    uint32_t link = le32(1u << srq.stride_log);
    std::memcpy(net.b.host.at(srq.buffer.dma), &link, sizeof(link));
    std::memcpy(net.b.host.at(srq.buffer.dma) + 16, &unit, sizeof(unit));
    store_release(net.b.host.as<hghca_srq_dbr>(srq.dbr)->posted, le32(1));
    lose(1);
    pair.a.post(send(pair.a.sge(0, 3000)));
    net.settle();
    EXPECT_FALSE(pair.b.poll());
    net.filter = nullptr;
    pair.a.post(send(pair.a.sge(0, 3000)));
    net.settle();
    auto got = pair.b.poll();
    ASSERT_TRUE(got);
    EXPECT_FALSE(got->error);
    EXPECT_EQ(got->slot, 0u);
}

// UC is a service of the base.
TEST(UcBase, WorksWithoutAnyExtension)
{
    Network net(0, 0);
    Options options = uc();
    options.dbr = options.by_gid = false;
    Pair p(net.a, net.b, options);
    for (unsigned i = 0; i < 20; i++) {
        p.a.fill(0, 3000, i);
        p.b.post_recv(p.b.sge(4096, 3000));
        p.a.post(send(p.a.sge(0, 3000)));
        net.pump();
        EXPECT_EQ(p.a.poll_all().size(), 1u);
        EXPECT_EQ(p.b.poll_all().size(), 1u);
        EXPECT_TRUE(p.b.holds(4096, 3000, i));
    }
    p.a.fill(0, 5000, 1);
    p.a.post(Wqe(HGHCA_OPCODE_RDMA_WRITE).raddr(p.b.va(8192), p.b.buffer.key).data(p.a.sge(0, 5000)));
    net.pump();
    EXPECT_EQ(p.a.poll_all().size(), 1u);
    EXPECT_TRUE(p.b.holds(8192, 5000, 1));
}

}  // namespace
}  // namespace hghca::test::uc_test
