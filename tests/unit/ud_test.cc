// SPDX-License-Identifier: GPL-2.0-or-later
// Datagrams, QP 1 and the raw Ethernet QP.
#include <gtest/gtest.h>

#include <algorithm>

#include "verbs.h"

namespace hghca::test::ud_test {
namespace {

using Options = Endpoint::Options;

constexpr uint32_t kQkey = 0x11111111;   // of every QP that TestDriver makes

class Ud : public ::testing::Test {
protected:
    static Options ud(unsigned sgid_index = 0)
    {
        Options options;
        options.service = HGHCA_QP_ST_UD;
        options.sgid_index = sgid_index;
        return options;
    }
    static void configure_special(Endpoint &e, uint8_t type)
    {
        TestDriver::must(e.node.driver.command(HGHCA_CMD_CONF_SPECIAL_QP, 0, e.qp.qpn, type).status, "CONF_SPECIAL_QP");
    }
    Wqe to(const Endpoint &target, const Sge &s, uint32_t qkey = kQkey, unsigned sgid_index = 0)
    {
        return Wqe(HGHCA_OPCODE_SEND).ud(target.qp.qpn, qkey, target.node.number, sgid_index).data(s);
    }
    Network net;
};

TEST_F(Ud, DatagramsArriveWithAGlobalHeader)
{
    for (unsigned sgid_index : {0u, 1u, 2u}) {
        SCOPED_TRACE(sgid_index);
        Endpoint a(net.a, ud()), b(net.b, ud());
        for (uint32_t size : {0u, 1u, 3u, 1000u, 4095u, 4096u}) {
            SCOPED_TRACE(size);
            a.fill(0, size, size);
            b.post_recv({b.sge(1000, 7), b.sge(2000, 5000)});
            a.post(Wqe(HGHCA_OPCODE_SEND_IMM, HGHCA_WQE_CQ_UPDATE, be32(5))
                       .ud(b.qp.qpn, kQkey, 2, sgid_index)
                       .data(a.sge(0, size)));
            net.pump();
            auto sent = a.poll();
            ASSERT_TRUE(sent);
            EXPECT_FALSE(sent->error) << int(sent->syndrome);
            EXPECT_EQ(sent->bytes, size);
            auto got = b.poll();
            ASSERT_TRUE(got);
            EXPECT_FALSE(got->error);
            EXPECT_EQ(got->bytes, size + 40);
            EXPECT_EQ(got->imm, be32(5));
            EXPECT_EQ(got->src_qpn, a.qp.qpn);
            EXPECT_TRUE(got->grh);
            EXPECT_EQ(got->network, sgid_index == 1 ? HGHCA_CQE_IPV6 : HGHCA_CQE_IPV4);
            EXPECT_EQ(got->vlan, sgid_index == 2 ? 5 : -1);
            EXPECT_EQ(got->opcode, HGHCA_BTH_UD | HGHCA_BTH_OP_SEND_ONLY_IMM);
            EXPECT_TRUE(b.holds(2033, size, size));
            uint8_t grh[40];
            std::memcpy(grh, b.at(1000), 7);
            std::memcpy(grh + 7, b.at(2000), 33);
            if (sgid_index == 1) {
                EXPECT_EQ(grh[0] >> 4, 6);
                EXPECT_EQ(std::memcmp(grh + 8, Node::gid_of(1, 1).data(), 16), 0);
                EXPECT_EQ(std::memcmp(grh + 24, Node::gid_of(2, 1).data(), 16), 0);
            } else {
                EXPECT_EQ(grh[19], 0);
                EXPECT_EQ(grh[20], 0x45);
                EXPECT_EQ(std::memcmp(grh + 32, Node::gid_of(1, sgid_index).data() + 12, 4), 0);
                EXPECT_EQ(std::memcmp(grh + 36, Node::gid_of(2, sgid_index).data() + 12, 4), 0);
            }
        }
    }
}

// To machine 2, with the addresses inline.
hghca_ud_unit unit_to(const Endpoint &b)
{
    hghca_ud_unit unit{};
    unit.smac_h = le32(0x02000000);
    unit.dmac_h = le32(0x02000000);
    unit.lids = le32(2u << 16 | 1u);
    unit.sip = le32(0x0a0a0001);
    unit.dip = le32(0x0a0a0002);
    unit.dqpn = le32(b.qp.qpn);
    unit.qkey = le32(kQkey);
    return unit;
}

TEST_F(Ud, BothFormsOfTheAddress)
{
    Endpoint a(net.a, ud()), b(net.b, ud());
    b.post_recv(b.sge(0, 100));
    a.post(Wqe(HGHCA_OPCODE_SEND).put(unit_to(b)).data(a.sge(0, 10)));
    net.pump();
    EXPECT_EQ(b.poll_all().size(), 1u);
}

// Bit 31 of the first word, which is reserved then.
TEST_F(Ud, WithoutGidsTheGrhBitHasNoEffect)
{
    Network bare(0, kFullCaps & ~uint32_t(HGHCA_CAP_GID_TABLE));
    Options options = ud();
    options.by_gid = false;
    Endpoint a(bare.a, options), b(bare.b, options);
    hghca_ud_unit unit = unit_to(b);
    unit.port = le32(0x80000001);
    b.post_recv(b.sge(0, 100));
    a.post(Wqe(HGHCA_OPCODE_SEND).put(unit).data(a.sge(0, 10)));
    bare.pump();
    EXPECT_EQ(b.poll_all().size(), 1u);
}

TEST_F(Ud, LongerThanTheMtuPutsTheQpIntoSqe)
{
    Options options = ud();
    options.mtu_msgmax = uint8_t(3 << 5 | 31);   // 1024
    Endpoint a(net.a, options), b(net.b, ud());
    for (int i = 0; i < 3; i++)
        b.post_recv(b.sge(0, 5000));
    a.post_recv(a.sge(0, 5000));
    a.post({to(b, a.sge(0, 1024)), to(b, a.sge(0, 1025)), to(b, a.sge(0, 10))});
    net.pump();
    auto all = a.poll_all();
    ASSERT_EQ(all.size(), 3u);
    EXPECT_FALSE(all[0].error);
    EXPECT_EQ(int(all[1].syndrome), HGHCA_SYNDROME_LOCAL_LENGTH_ERR);
    EXPECT_EQ(int(all[2].syndrome), HGHCA_SYNDROME_WR_FLUSH_ERR);
    EXPECT_EQ(a.state(), unsigned(HGHCA_QP_STATE_SQE));
    // Sends are flushed, receives go on.
    a.post(to(b, a.sge(0, 10)));
    net.pump();
    all = a.poll_all();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(int(all[0].syndrome), HGHCA_SYNDROME_WR_FLUSH_ERR);
    b.post(to(a, b.sge(0, 10)));
    net.pump();
    all = a.poll_all();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_FALSE(all[0].error);
    // And back.
    a.modify(HGHCA_CMD_SQERR2RTS_QPEE);
    a.post(to(b, a.sge(0, 10)));
    net.pump();
    all = a.poll_all();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_FALSE(all[0].error);
}

TEST_F(Ud, NopsCompleteInOrderWithoutPackets)
{
    Options raw;
    raw.service = HGHCA_QP_ST_RAW;
    for (const Options &options : {ud(), raw}) {
        Endpoint a(net.a, options);
        const uint64_t sent = net.a.counters().tx_packets + net.a.counters().raw_tx_packets;
        a.post({Wqe(HGHCA_OPCODE_NOP), Wqe(HGHCA_OPCODE_NOP, 0), Wqe(HGHCA_OPCODE_NOP)});
        net.pump();
        const auto all = a.poll_all();
        ASSERT_EQ(all.size(), 2u);
        for (unsigned i : {0u, 1u}) {
            EXPECT_FALSE(all[i].error);
            EXPECT_EQ(all[i].opcode, HGHCA_OPCODE_NOP);
            EXPECT_EQ(all[i].slot, 2 * i);
            EXPECT_EQ(all[i].bytes, 0u);
        }
        EXPECT_EQ(net.a.counters().tx_packets + net.a.counters().raw_tx_packets, sent);
        EXPECT_EQ(a.state(), HGHCA_QP_STATE_RTS);
    }
}

TEST_F(Ud, FaultsOfASend)
{
    struct {
        std::function<Wqe(Endpoint &, Endpoint &)> wqe;
        int syndrome;
    } cases[] = {
        {[this](Endpoint &, Endpoint &b) { return to(b, {10, 0x12345, 0}); }, HGHCA_SYNDROME_LOCAL_PROT_ERR},
        {[](Endpoint &a, Endpoint &) { return send(a.sge(0, 10)); }, HGHCA_SYNDROME_LOCAL_QP_OP_ERR},
        {[](Endpoint &a, Endpoint &b) { return write_to(a.sge(0, 10), b.va(0), b.buffer.key); },
         HGHCA_SYNDROME_LOCAL_QP_OP_ERR},
        // What software posts for an address of another PD: a good datagram as a READ.
        {[this](Endpoint &a, Endpoint &b) {
             Wqe wqe = to(b, a.sge(0, 10));
             wqe.opcode = HGHCA_OPCODE_RDMA_READ;
             return wqe;
         },
         HGHCA_SYNDROME_LOCAL_QP_OP_ERR},
        // What datagrams lack, by opcode alone.
        {[](Endpoint &, Endpoint &) { return Wqe(HGHCA_OPCODE_RDMA_WRITE); }, HGHCA_SYNDROME_LOCAL_QP_OP_ERR},
        {[](Endpoint &, Endpoint &) { return Wqe(HGHCA_OPCODE_RDMA_WRITE_IMM); }, HGHCA_SYNDROME_LOCAL_QP_OP_ERR},
        {[](Endpoint &, Endpoint &) { return Wqe(HGHCA_OPCODE_RDMA_READ); }, HGHCA_SYNDROME_LOCAL_QP_OP_ERR},
        {[](Endpoint &, Endpoint &) { return Wqe(HGHCA_OPCODE_ATOMIC_CS); }, HGHCA_SYNDROME_LOCAL_QP_OP_ERR},
        {[](Endpoint &, Endpoint &) { return Wqe(HGHCA_OPCODE_ATOMIC_FA); }, HGHCA_SYNDROME_LOCAL_QP_OP_ERR},
    };
    for (auto &c : cases) {
        Endpoint a(net.a, ud()), b(net.b, ud());
        b.post_recv(b.sge(0, 100));
        a.post(c.wqe(a, b));
        net.pump();
        auto all = a.poll_all();
        ASSERT_EQ(all.size(), 1u);
        EXPECT_EQ(int(all[0].syndrome), c.syndrome);
        EXPECT_EQ(a.state(), unsigned(HGHCA_QP_STATE_SQE));
        EXPECT_FALSE(b.poll());
    }
}

TEST_F(Ud, WhatDoesNotFitIsDroppedSilentlyAndCounted)
{
    Endpoint a(net.a, ud()), b(net.b, ud());
    a.post(to(b, a.sge(0, 10)));
    net.pump();
    EXPECT_EQ(net.b.counters().rx_no_wqe, 1u);
    b.post_recv(b.sge(0, 49));
    a.post(to(b, a.sge(0, 10)));
    net.pump();
    EXPECT_EQ(net.b.counters().rx_too_long, 1u);
    a.post(to(b, a.sge(0, 9), kQkey + 1));
    net.pump();
    EXPECT_EQ(net.b.counters().rx_bad_qkey, 1u);
    a.post(Wqe(HGHCA_OPCODE_SEND).ud(0xfffff, kQkey, 2).data(a.sge(0, 9)));
    net.pump();
    EXPECT_EQ(net.b.counters().rx_unknown_qp, 1u);
    a.post(Wqe(HGHCA_OPCODE_SEND).ud(HGHCA_QPN_MULTICAST, kQkey, 2).data(a.sge(0, 9)));
    net.pump();
    EXPECT_EQ(net.b.counters().rx_unknown_qp, 2u);
    // The receive is still there, and a datagram of nine bytes fits.
    EXPECT_FALSE(b.poll());
    a.post(to(b, a.sge(0, 9), HGHCA_QKEY_OWN | 77));   // its own Q_Key
    net.pump();
    EXPECT_EQ(b.poll_all().size(), 1u);
    for (const Completion &c : a.poll_all())
        EXPECT_FALSE(c.error);
}

TEST_F(Ud, ABadReceiveEntryIsTheReceiversError)
{
    Endpoint a(net.a, ud()), b(net.b, ud());
    b.post_recv(Sge{100, 0x12345, 0});
    b.post_recv(b.sge(0, 100));
    a.post(to(b, a.sge(0, 10)));
    net.pump();
    auto all = b.poll_all();
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(int(all[0].syndrome), HGHCA_SYNDROME_LOCAL_PROT_ERR);
    EXPECT_EQ(int(all[1].syndrome), HGHCA_SYNDROME_WR_FLUSH_ERR);
    EXPECT_EQ(b.state(), unsigned(HGHCA_QP_STATE_ERR));
}

// The keys are good, and the memory behind them is not there.
TEST_F(Ud, MemoryThatIsNotThere)
{
    Endpoint a(net.a, ud()), b(net.b, ud());
    auto no_pages = net.a.driver.create_mr_without_pages(0x10000, 4096);
    net.a.host.holes.push_back({a.buffer.dma + 8192, 4096});
    for (const Sge &s : {Sge{10, no_pages.key, no_pages.va}, a.sge(8192, 10)}) {
        a.post(to(b, s));
        net.pump();
        auto all = a.poll_all();
        ASSERT_EQ(all.size(), 1u);
        EXPECT_EQ(int(all[0].syndrome), HGHCA_SYNDROME_LOCAL_PROT_ERR);
        EXPECT_EQ(a.state(), unsigned(HGHCA_QP_STATE_SQE));
        a.modify(HGHCA_CMD_SQERR2RTS_QPEE);
    }
    EXPECT_EQ(net.sent, 0u);
}

TEST_F(Ud, ABlockedLinkHoldsDatagrams)
{
    Endpoint a(net.a, ud()), b(net.b, ud());
    b.post_recv(b.sge(0, 1000));
    a.fill(0, 100, 9);
    net.a.host.link_full = true;
    a.post(to(b, a.sge(0, 100)));
    net.pump();
    EXPECT_FALSE(a.poll());
    EXPECT_EQ(net.a.counters().tx_packets, 0u);
    net.a.host.link_full = false;
    net.a.device.link_ready();
    net.pump();
    EXPECT_EQ(a.poll_all().size(), 1u);
    EXPECT_TRUE(b.holds(40, 100, 9));
    EXPECT_EQ(net.a.counters().tx_packets, 1u);
}

TEST_F(Ud, LongListsTakeTurns)
{
    Endpoint a(net.a, ud()), c(net.a, ud()), b(net.b, ud());
    std::vector<Wqe> list(40, to(b, a.sge(0, 4096)));
    // Both wait for the link; then neither is done before the other has begun.
    net.a.host.link_full = true;
    a.post(list);
    c.post(std::vector<Wqe>(40, to(b, c.sge(0, 4096))));
    net.a.host.link_full = false;
    std::vector<uint32_t> order;
    net.filter = [&](const Node &, Frame &f) {
        const View view(f);
        order.push_back(uint32_t(f.at(view.bth + 17) << 16 | f.at(view.bth + 18) << 8 | f.at(view.bth + 19)));
        return Fate{};
    };
    net.a.device.link_ready();
    net.pump();
    ASSERT_EQ(order.size(), 80u);
    EXPECT_EQ(std::count(order.begin(), order.end(), a.qp.qpn), 40);
    const auto first_of_c = std::find(order.begin(), order.end(), c.qp.qpn);
    EXPECT_LT(first_of_c - order.begin(), 40);
    EXPECT_EQ(a.poll_all().size(), 40u);
    EXPECT_EQ(c.poll_all().size(), 40u);
}

TEST_F(Ud, ACqThatIsFull)
{
    Options small = ud();
    small.cq_log = 1;
    Endpoint a(net.a, small), b(net.b, small);
    for (int i = 0; i < 5; i++)
        b.post_recv(b.sge(0, 100));
    a.post(std::vector<Wqe>(4, to(b, a.sge(0, 10))));
    net.pump();
    for (Endpoint *e : {&a, &b}) {
        SCOPED_TRACE(e->node.number);
        EXPECT_EQ(e->poll_all().size(), 2u);
        EXPECT_EQ(e->state(), unsigned(HGHCA_QP_STATE_ERR));
        EXPECT_EQ(e->node.events(HGHCA_EVENT_WQ_CATAS_ERROR), 1u);
    }
}

// The message fails, and its completion finds no room.
TEST_F(Ud, ACqThatIsFullWhenAMessageFails)
{
    Options small = ud();
    small.cq_log = 1;
    Endpoint a(net.a, ud()), b(net.b, small);
    for (const Sge &to : {b.sge(0, 100), b.sge(0, 100), Sge{100, 0x12345, 0}})
        b.post_recv(to);
    a.post(std::vector<Wqe>(3, to(b, a.sge(0, 10))));
    net.pump();
    EXPECT_EQ(b.poll_all().size(), 2u);
    EXPECT_EQ(b.state(), unsigned(HGHCA_QP_STATE_ERR));
    EXPECT_EQ(net.b.events(HGHCA_EVENT_WQ_CATAS_ERROR), 1u);
}

TEST_F(Ud, MoreThanTheReceiversMtuIsDropped)
{
    Options small = ud();
    small.mtu_msgmax = uint8_t(3 << 5 | 31);   // 1024
    Endpoint a(net.a, ud()), b(net.b, small);
    b.post_recv(b.sge(0, 5000));
    a.post(to(b, a.sge(0, 1025)));
    net.pump();
    EXPECT_EQ(net.b.counters().rx_bad_header, 1u);
    EXPECT_FALSE(b.poll());
}

TEST_F(Ud, AReceiveQueueThatCannotBeRead)
{
    for (bool record : {true, false}) {
        SCOPED_TRACE(record);
        Endpoint a(net.a, ud()), b(net.b, ud());
        b.post_recv(b.sge(0, 100));
        if (record)
            net.b.host.holes.push_back({b.qp.dbr, 8});
        else
            TestDriver::must(net.b.driver.destroy_mr(b.qp.rq), "HW2SW_MPT");
        a.post(to(b, a.sge(0, 10)));
        net.pump();
        EXPECT_EQ(b.state(), unsigned(HGHCA_QP_STATE_ERR));
        EXPECT_EQ(net.b.events(HGHCA_EVENT_WQ_CATAS_ERROR), 1u);
    }
}

TEST_F(Ud, AnRcPacketToADatagramQpIsDropped)
{
    Endpoint b(net.b, ud());
    Options options;
    Endpoint a(net.a, options);
    a.to_rtr(b);
    a.to_rts();
    a.post(write_to(a.sge(0, 0), 0, 0));
    net.pump();
    EXPECT_EQ(net.b.counters().rx_unknown_qp, 1u);
}

TEST_F(Ud, LoopbackToItselfAndAnother)
{
    Endpoint a(net.a, ud()), c(net.a, ud());
    for (Endpoint *target : {&a, &c}) {
        a.fill(0, 2000, 1);
        target->post_recv(target->sge(5000, 3000));
        a.post(to(*target, a.sge(0, 2000)));
        net.pump();
        EXPECT_TRUE(target->holds(5040, 2000, 1));
        EXPECT_EQ(a.poll_all().size(), target == &a ? 2u : 1u);
        EXPECT_EQ(c.poll_all().size(), target == &a ? 0u : 1u);
    }
    EXPECT_EQ(net.sent, 0u);
}

// Where the header is written to, the payload stands: it has been read by then.
TEST_F(Ud, LoopbackOverItself)
{
    Endpoint a(net.a, ud());
    a.fill(100, 500, 1);
    a.post_recv(a.sge(80, 1000));
    a.post(to(a, a.sge(100, 500)));
    net.pump();
    EXPECT_TRUE(a.holds(80 + 40, 500, 1));
    for (const Completion &c : a.poll_all())
        EXPECT_FALSE(c.error);
}

TEST_F(Ud, LoopbackToItselfThatFailsThere)
{
    Endpoint a(net.a, ud());
    a.post_recv(Sge{100, 0x12345, 0});
    a.post({to(a, a.sge(0, 10)), to(a, a.sge(0, 10))});
    net.pump();
    auto all = a.poll_all();
    EXPECT_EQ(all.size(), 3u);
    for (const Completion &c : all)
        EXPECT_TRUE(c.error);
}

TEST_F(Ud, Qp1IsTheGsi)
{
    Endpoint a(net.a, ud()), b(net.b, ud());
    Wqe mad = Wqe(HGHCA_OPCODE_SEND).ud(HGHCA_QPN_GSI, HGHCA_QP1_QKEY, 2).data(a.sge(0, 256));
    // Nobody there yet.
    a.post(mad);
    net.pump();
    EXPECT_EQ(net.b.counters().rx_unknown_qp, 1u);
    configure_special(a, HGHCA_SPECIAL_QP_GSI);
    configure_special(b, HGHCA_SPECIAL_QP_GSI);
    b.post_recv(b.sge(0, 1000));
    a.post(mad);
    net.pump();
    auto got = b.poll();
    ASSERT_TRUE(got);
    EXPECT_EQ(got->src_qpn, HGHCA_QPN_GSI);
    EXPECT_EQ(got->qpn, b.qp.qpn);
    // Not without the Q_Key of QP 1, and not with the QP's own number's.
    a.post(Wqe(HGHCA_OPCODE_SEND).ud(HGHCA_QPN_GSI, kQkey, 2).data(a.sge(0, 256)));
    net.pump();
    EXPECT_EQ(net.b.counters().rx_bad_qkey, 0u + 1);
}

// ---- raw Ethernet

class Raw : public Ud {
protected:
    Raw() : a(net.a, raw()), b(net.b, raw())
    {
        configure_special(a, HGHCA_SPECIAL_QP_RAW_ETH);
        configure_special(b, HGHCA_SPECIAL_QP_RAW_ETH);
    }
    static Options raw()
    {
        Options options;
        options.service = HGHCA_QP_ST_RAW;
        return options;
    }
    // A frame of a kind that nobody knows.
    void frame(Endpoint &e, const Mac &to, uint32_t size, uint16_t type = 0x88b5)
    {
        e.fill(0, size, size);
        std::memcpy(e.at(0), to.data(), 6);
        std::memcpy(e.at(6), Node::mac_of(e.node.number).data(), 6);
        *e.at(12) = uint8_t(type >> 8);
        *e.at(13) = uint8_t(type);
        e.post(send(e.sge(0, size)));
        net.pump();
    }
    // Sizes of the frames that were received.
    std::vector<uint32_t> received(Endpoint &e)
    {
        std::vector<uint32_t> sizes;
        for (const Completion &c : e.poll_all())
            if (!c.is_send)
                sizes.push_back(c.bytes);
        return sizes;
    }
    using Sizes = std::vector<uint32_t>;
    Endpoint a, b;
};

const Mac kBroadcast = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
const Mac kMulticast = {0x33, 0x33, 0, 0, 0, 1};

TEST_F(Raw, FramesGoThrough)
{
    for (uint32_t size : {14u, 60u, 1514u, 1518u}) {
        b.post_recv(b.sge(10000, 2000));
        frame(a, Node::mac_of(2), size);
        EXPECT_EQ(received(b), Sizes{size});
        EXPECT_EQ(std::memcmp(b.at(10000), a.at(0), size), 0);
        EXPECT_EQ(a.poll_all().size(), 1u);
    }
    EXPECT_EQ(net.a.counters().raw_tx_packets, 4u);
    EXPECT_EQ(net.b.counters().raw_rx_packets, 4u);
}

// To its own port, over what it sends.
TEST_F(Raw, AFrameOverItself)
{
    for (const uint64_t place : {1u, 500u}) {
        a.post_recv(a.sge(place, 2000));
        Bytes sent(1000);
        a.fill(0, 1000, 1000);
        std::copy(a.at(0), a.at(1000), sent.begin());
        std::copy_n(Node::mac_of(1).begin(), 6, sent.begin());
        std::copy_n(Node::mac_of(1).begin(), 6, sent.begin() + 6);
        sent[12] = 0x88;
        sent[13] = 0xb5;
        frame(a, Node::mac_of(1), 1000);
        EXPECT_EQ(received(a), Sizes{1000});
        EXPECT_EQ(std::memcmp(a.at(place), sent.data(), 1000), 0);
    }
}

TEST_F(Raw, TooShortOrTooLongIsNotSent)
{
    for (uint32_t size : {13u, 1519u}) {
        frame(a, Node::mac_of(2), size);
        auto all = a.poll_all();
        ASSERT_EQ(all.size(), 1u);
        EXPECT_EQ(int(all[0].syndrome), HGHCA_SYNDROME_LOCAL_LENGTH_ERR);
        EXPECT_EQ(a.state(), unsigned(HGHCA_QP_STATE_SQE));
        a.modify(HGHCA_CMD_SQERR2RTS_QPEE);
    }
    EXPECT_EQ(net.sent, 0u);
    // A larger MTU, larger frames.
    TestDriver::must(net.a.driver.set_port(Node::mac_of(1).data(), 9216), "SET_PORT");
    TestDriver::must(net.b.driver.set_port(Node::mac_of(2).data(), 9216), "SET_PORT");
    b.post_recv(b.sge(20000, 10000));
    frame(a, Node::mac_of(2), 9234);
    EXPECT_EQ(received(b), Sizes{9234});
}

TEST_F(Raw, TheFilter)
{
    for (int i = 0; i < 20; i++)
        b.post_recv(b.sge(10000, 2000));
    auto arrives = [&](const Mac &mac) {
        frame(a, mac, 100);
        return received(b).size() == 1;
    };
    const Mac stranger = {2, 0, 0, 0, 0, 9};
    EXPECT_TRUE(arrives(Node::mac_of(2)));
    EXPECT_TRUE(arrives(kBroadcast));
    EXPECT_FALSE(arrives(kMulticast));
    EXPECT_FALSE(arrives(stranger));
    TestDriver::must(net.b.driver.set_port(Node::mac_of(2).data(), 1500, HGHCA_PORT_ALLMULTI), "SET_PORT");
    EXPECT_TRUE(arrives(kMulticast));
    EXPECT_FALSE(arrives(stranger));
    TestDriver::must(net.b.driver.set_port(Node::mac_of(2).data(), 1500, HGHCA_PORT_PROMISC), "SET_PORT");
    EXPECT_TRUE(arrives(kMulticast));
    EXPECT_TRUE(arrives(stranger));
    // Another MAC than the one it was born with.
    TestDriver::must(net.b.driver.set_port(stranger.data(), 1500), "SET_PORT");
    EXPECT_TRUE(arrives(stranger));
}

TEST_F(Raw, NoReceiveMeansDropped)
{
    frame(a, Node::mac_of(2), 100);
    EXPECT_EQ(net.b.counters().raw_rx_dropped, 1u);
    b.post_recv(b.sge(10000, 99));
    frame(a, Node::mac_of(2), 100);
    EXPECT_EQ(net.b.counters().rx_too_long, 1u);
    EXPECT_TRUE(received(b).empty());
}

TEST_F(Raw, ANicDoesNotHearItself)
{
    a.post_recv(a.sge(10000, 2000));
    frame(a, kBroadcast, 100);
    EXPECT_TRUE(received(a).empty());
    EXPECT_EQ(net.sent, 1u);
    // Unicast to itself comes back without the link.
    frame(a, Node::mac_of(1), 100);
    EXPECT_EQ(received(a), Sizes{100});
    EXPECT_EQ(net.sent, 1u);
}

TEST_F(Raw, RoceForOthersIsANicsBusiness)
{
    // UDP to port 4791 of an address that is no GID: to the raw QP. The same to a GID: to the engine.
    b.post_recv(b.sge(10000, 2000));
    Endpoint u(net.a, ud()), v(net.b, ud());
    net.filter = [](const Node &, Frame &f) {
        if (f.size() > 40 && f[12] == 8) {
            f[33] = 99;   // 10.10.0.99
            uint32_t sum = 0;
            f[24] = f[25] = 0;
            for (int i = 14; i < 34; i += 2)
                sum += uint32_t(f[size_t(i)] << 8 | f[size_t(i) + 1]);
            sum = (sum & 0xffff) + (sum >> 16);
            f[24] = uint8_t(~sum >> 8);
            f[25] = uint8_t(~sum);
        }
        return Fate{};
    };
    u.post(to(v, u.sge(0, 10)));
    net.pump();
    EXPECT_EQ(received(b).size(), 1u);
    net.filter = nullptr;
    v.post_recv(v.sge(0, 100));
    u.post(to(v, u.sge(0, 10)));
    net.pump();
    EXPECT_TRUE(received(b).empty());
    EXPECT_EQ(v.poll_all().size(), 1u);
}

TEST_F(Raw, RoceMadeBySoftwareIsCheckedEvenWhenItComesBack)
{
    Endpoint v(net.a, ud());
    v.post_recv(v.sge(0, 1000));
    // A packet from the link, replayed by the raw QP with a wrong ICRC, then with a good one.
    Endpoint u(net.b, ud());
    net.keep_log = true;
    u.post(to(v, u.sge(0, 10)));
    net.pump();
    ASSERT_EQ(net.log.size(), 1u);
    EXPECT_EQ(v.poll_all().size(), 1u);
    Frame copy = net.log[0];
    v.post_recv(v.sge(0, 1000));
    copy.back() ^= 1;
    std::memcpy(a.at(0), copy.data(), copy.size());
    a.post(send(a.sge(0, uint32_t(copy.size()))));
    EXPECT_EQ(net.a.counters().rx_bad_icrc, 1u);
    EXPECT_FALSE(v.poll());
    *a.at(copy.size() - 1) ^= 1;
    a.post(send(a.sge(0, uint32_t(copy.size()))));
    EXPECT_EQ(v.poll_all().size(), 1u);
}

TEST_F(Raw, MemoryThatIsNotThere)
{
    auto no_pages = net.a.driver.create_mr_without_pages(0x10000, 4096);
    net.a.host.holes.push_back({a.buffer.dma + 8192, 4096});
    for (const Sge &s : {Sge{60, no_pages.key, no_pages.va}, a.sge(8192, 60)}) {
        a.post(send(s));
        net.pump();
        auto all = a.poll_all();
        ASSERT_EQ(all.size(), 1u);
        EXPECT_EQ(int(all[0].syndrome), HGHCA_SYNDROME_LOCAL_PROT_ERR);
        EXPECT_EQ(a.state(), unsigned(HGHCA_QP_STATE_SQE));
        a.modify(HGHCA_CMD_SQERR2RTS_QPEE);
    }
    EXPECT_EQ(net.sent, 0u);
}

// Two HCAs of one machine, on a link that hands a frame on where it is, as QEMU's hub does. The frame is received in the
// memory that it is sent from, and a program writes to that while the frame leaves.
TEST_F(Raw, AFrameToAnotherHcaOfTheMachine)
{
    Node other(3, net.a);
    Endpoint c(other, raw());
    configure_special(c, HGHCA_SPECIAL_QP_RAW_ETH);
    const auto shared = other.driver.create_mr_at(0x10000, 8192, a.buffer.dma);
    c.post_recv(Sge{1000, shared.key, shared.va + 100});
    net.a.host.meanwhile = [this] { *a.at(500) ^= 0xff; };
    net.a.host.on_parts = [&other](std::span<const iovec> parts) { other.device.receive(parts); };
    frame(a, Node::mac_of(3), 1000);
    EXPECT_EQ(received(c), Sizes({1000}));
    for (size_t i = 14; i < 1000; i++)
        ASSERT_EQ(*a.at(100 + i), Endpoint::pattern(1000, i)) << i;
}

// The frame of another network device, which is where that has found it.
TEST_F(Raw, AFrameInTheMemoryThatItIsReceivedIn)
{
    b.fill(0, 1000, 7);
    std::memcpy(b.at(0), Node::mac_of(2).data(), 6);
    b.post_recv(b.sge(100, 1000));
    const iovec part{b.at(0), 1000};
    net.b.device.receive({&part, 1});
    EXPECT_EQ(received(b), Sizes({1000}));
    for (size_t i = 6; i < 1000; i++)
        ASSERT_EQ(*b.at(100 + i), Endpoint::pattern(7, i)) << i;
}

TEST_F(Raw, ABadReceiveEntryIsTheReceiversError)
{
    for (bool malformed : {false, true}) {
        SCOPED_TRACE(malformed);
        Endpoint c(net.b, raw());
        configure_special(c, HGHCA_SPECIAL_QP_RAW_ETH);
        c.post_recv(Sge{malformed ? HGHCA_INLINE_FLAG | 100 : 100, 0x12345, 0});
        c.post_recv(c.sge(0, 100));
        frame(a, Node::mac_of(2), 60);
        auto all = c.poll_all();
        ASSERT_EQ(all.size(), 2u);
        EXPECT_EQ(int(all[0].syndrome),
                  malformed ? HGHCA_SYNDROME_LOCAL_QP_OP_ERR : HGHCA_SYNDROME_LOCAL_PROT_ERR);
        EXPECT_EQ(int(all[1].syndrome), HGHCA_SYNDROME_WR_FLUSH_ERR);
        EXPECT_EQ(c.state(), unsigned(HGHCA_QP_STATE_ERR));
        // Such a QP takes nothing more, not even into a drop that is counted.
        frame(a, Node::mac_of(2), 60);
        EXPECT_EQ(net.b.counters().raw_rx_dropped, 0u);
    }
}

TEST_F(Raw, ASendToItselfThatFailsThere)
{
    a.post_recv(Sge{100, 0x12345, 0});
    frame(a, Node::mac_of(1), 60);
    auto all = a.poll_all();
    ASSERT_EQ(all.size(), 2u);
    EXPECT_FALSE(all[0].is_send);
    EXPECT_EQ(int(all[0].syndrome), HGHCA_SYNDROME_LOCAL_PROT_ERR);
    EXPECT_TRUE(all[1].is_send);
    EXPECT_EQ(int(all[1].syndrome), HGHCA_SYNDROME_WR_FLUSH_ERR);
    EXPECT_EQ(a.state(), unsigned(HGHCA_QP_STATE_ERR));
}

TEST_F(Raw, AReceiveQueueThatCannotBeRead)
{
    b.post_recv(b.sge(0, 100));
    TestDriver::must(net.b.driver.destroy_mr(b.qp.rq), "HW2SW_MPT");
    frame(a, Node::mac_of(2), 60);
    EXPECT_EQ(b.state(), unsigned(HGHCA_QP_STATE_ERR));
    EXPECT_EQ(net.b.events(HGHCA_EVENT_WQ_CATAS_ERROR), 1u);
}

TEST_F(Raw, ACqThatIsFull)
{
    Options small = raw();
    small.cq_log = 1;
    Endpoint c(net.a, small), d(net.b, small);
    configure_special(c, HGHCA_SPECIAL_QP_RAW_ETH);
    configure_special(d, HGHCA_SPECIAL_QP_RAW_ETH);
    for (int i = 0; i < 5; i++)
        d.post_recv(d.sge(0, 100));
    for (int i = 0; i < 4; i++)
        frame(c, Node::mac_of(2), 60);
    for (Endpoint *e : {&c, &d}) {
        SCOPED_TRACE(e->node.number);
        EXPECT_EQ(e->poll_all().size(), 2u);
        EXPECT_EQ(e->state(), unsigned(HGHCA_QP_STATE_ERR));
        EXPECT_EQ(e->node.events(HGHCA_EVENT_WQ_CATAS_ERROR), 1u);
    }
}

TEST_F(Raw, ACqThatIsFullWhenAFrameFails)
{
    Options small = raw();
    small.cq_log = 1;
    Endpoint c(net.b, small);
    configure_special(c, HGHCA_SPECIAL_QP_RAW_ETH);
    for (const Sge &to : {c.sge(0, 100), c.sge(0, 100), Sge{100, 0x12345, 0}})
        c.post_recv(to);
    for (int i = 0; i < 3; i++)
        frame(a, Node::mac_of(2), 60);
    EXPECT_EQ(c.poll_all().size(), 2u);
    EXPECT_EQ(c.state(), unsigned(HGHCA_QP_STATE_ERR));
    EXPECT_EQ(net.b.events(HGHCA_EVENT_WQ_CATAS_ERROR), 1u);
}

TEST_F(Raw, LongListsTakeTurnsWithDatagrams)
{
    Endpoint u(net.a, ud()), v(net.b, ud());
    a.fill(0, 1514, 1);
    std::memcpy(a.at(0), Node::mac_of(2).data(), 6);
    std::vector<Wqe> list(60, send(a.sge(0, 1514)));
    net.a.host.link_full = true;
    a.post(list);
    u.post(to(v, u.sge(0, 10)));
    net.a.host.link_full = false;
    std::vector<size_t> sizes;
    net.filter = [&](const Node &, Frame &f) {
        sizes.push_back(f.size());
        return Fate{};
    };
    net.a.device.link_ready();
    net.pump();
    ASSERT_EQ(sizes.size(), 61u);
    EXPECT_EQ(sizes.back(), 1514u) << "the datagram came last";
    EXPECT_EQ(a.poll_all().size(), 60u);
}

TEST_F(Raw, ABlockedLinkHoldsFrames)
{
    b.post_recv(b.sge(10000, 2000));
    net.a.host.link_full = true;
    frame(a, Node::mac_of(2), 100);
    EXPECT_FALSE(a.poll());
    net.a.host.link_full = false;
    net.a.device.link_ready();
    net.pump();
    EXPECT_EQ(a.poll_all().size(), 1u);
    EXPECT_EQ(received(b), Sizes{100});
}

TEST_F(Raw, ALinkThatIsDownLosesFrames)
{
    net.a.device.set_link(false);
    frame(a, Node::mac_of(2), 100);
    EXPECT_EQ(a.poll_all().size(), 1u);
    EXPECT_EQ(net.sent, 0u);
}

}  // namespace
}  // namespace hghca::test::ud_test
