// SPDX-License-Identifier: GPL-2.0-or-later
// Shared receive queues (interface document, 4.15 and 5.2).
#include <gtest/gtest.h>

#include "shared_queue.h"

namespace hghca::test::srq_test {
namespace {

using Options = Endpoint::Options;

class Srq : public ::testing::Test {
protected:
    explicit Srq(uint32_t cache_entries = 0) : net(cache_entries) {}
    static Options with(const SharedQueue &queue, uint8_t service = HGHCA_QP_ST_RC)
    {
        Options options;
        options.service = service;
        options.srqn = queue.srq.srqn;
        return options;
    }
    static Options service(uint8_t type)
    {
        Options options;
        options.service = type;
        return options;
    }
    static uint32_t slot_of(const SharedQueue &queue, const hghca_cqe &cqe)
    {
        return le32(cqe.wqe) >> queue.srq.stride_log;
    }
    Network net;
};

class SrqWithSmallCache : public Srq {
protected:
    SrqWithSmallCache() : Srq(1) {}
};

void messages_of_many_qps(Network &net)
{
    SharedQueue queue(net.b, 4);
    Options left, right;
    right.srqn = queue.srq.srqn;
    std::vector<std::unique_ptr<Pair>> pairs;
    for (int i = 0; i < 5; i++)
        pairs.push_back(std::make_unique<Pair>(net.a, net.b, left, right));
    TestDriver::Mr memory = net.b.driver.create_mr(0x9000000000, 16 * 8192);
    std::vector<unsigned> place(16);
    unsigned next = 0;
    for (unsigned round = 0; round < 200; round++) {
        Pair &pair = *pairs[round * 7 % 5];
        const uint32_t size = round % 3 ? round * 13 : 4000 + round;
        const unsigned at = next++ % 16;
        place[queue.post({8192, memory.key, memory.va + at * 8192})] = at;
        pair.a.fill(0, size, round);
        pair.a.post(send(pair.a.sge(0, size)));
        net.pump();
        ASSERT_TRUE(pair.a.poll());
        hghca_cqe cqe;
        ASSERT_TRUE(net.b.driver.poll(pair.b.cq, cqe)) << round;
        EXPECT_EQ(le32(cqe.my_qpn), pair.b.qp.qpn);
        EXPECT_EQ(le32(cqe.my_ee), queue.srq.srqn);
        EXPECT_EQ(le32(cqe.byte_cnt), size);
        const uint32_t slot = le32(cqe.wqe) >> queue.srq.stride_log;
        ASSERT_LT(slot, 16u);
        const uint8_t *got = net.b.host.at(memory.dma + place[slot] * 8192);
        for (uint32_t i = 0; i < size; i++)
            ASSERT_EQ(got[i], Endpoint::pattern(round, i)) << "round " << round << " byte " << i;
        queue.give_back(slot);
    }
    EXPECT_EQ(be16(queue.query().taken), 200);
}

TEST_F(Srq, ServesManyQps) { messages_of_many_qps(net); }

TEST_F(SrqWithSmallCache, ServesManyQpsFromIcm)
{
    messages_of_many_qps(net);
    EXPECT_GT(net.b.counters().context_evictions, 100u);
}

// Messages of several packets whose packets alternate hold a WQE each.
TEST_F(Srq, MessagesThatMixHoldTheirOwnWqe)
{
    SharedQueue queue(net.b, 3);
    Pair one(net.a, net.b, {}, with(queue)), two(net.a, net.b, {}, with(queue));
    TestDriver::Mr memory = net.b.driver.create_mr(0x9000000000, 4 << 20);
    constexpr uint32_t kSize = 300000;   // several turns of the scheduler
    queue.post({kSize, memory.key, memory.va});
    queue.post({kSize, memory.key, memory.va + (1 << 20)});
    one.a.fill(0, kSize, 1);
    two.a.fill(0, kSize, 2);
    one.a.post(send(one.a.sge(0, kSize)));
    two.a.post(send(two.a.sge(0, kSize)));
    net.settle();
    hghca_cqe first, second;
    ASSERT_TRUE(net.b.driver.poll(one.b.cq, first));
    ASSERT_TRUE(net.b.driver.poll(two.b.cq, second));
    EXPECT_NE(first.wqe, second.wqe);
    for (auto [cqe, seed] : {std::pair{first, 1u}, std::pair{second, 2u}}) {
        EXPECT_EQ(le32(cqe.byte_cnt), kSize);
        const uint8_t *got = net.b.host.at(memory.dma + (uint64_t(slot_of(queue, cqe)) << 20));
        for (uint32_t i = 0; i < kSize; i++)
            ASSERT_EQ(got[i], Endpoint::pattern(seed, i));
    }
}

TEST_F(Srq, WritesWithImmediateTakeOne)
{
    SharedQueue queue(net.b, 3);
    Pair pair(net.a, net.b, {}, with(queue));
    const uint32_t slot = queue.post(pair.b.sge(0, 8));
    pair.a.fill(0, 5000, 3);
    pair.a.post(Wqe(HGHCA_OPCODE_RDMA_WRITE_IMM, HGHCA_WQE_CQ_UPDATE, be32(9))
                    .raddr(pair.b.va(1000), pair.b.buffer.key)
                    .data(pair.a.sge(0, 5000)));
    net.pump();
    hghca_cqe cqe;
    ASSERT_TRUE(net.b.driver.poll(pair.b.cq, cqe));
    EXPECT_EQ(slot_of(queue, cqe), slot);
    EXPECT_EQ(cqe.imm, be32(9));
    EXPECT_TRUE(pair.b.holds(1000, 5000, 3));
    EXPECT_EQ(be16(queue.query().taken), 1);
}

TEST_F(Srq, DatagramsComeThroughIt)
{
    SharedQueue queue(net.b, 3);
    Endpoint a(net.a, service(HGHCA_QP_ST_UD)), b(net.b, with(queue, HGHCA_QP_ST_UD));
    Wqe datagram = Wqe(HGHCA_OPCODE_SEND).ud(b.qp.qpn, 0x11111111, 2).data(a.sge(0, 100));
    a.post(datagram);
    net.pump();
    EXPECT_EQ(net.b.counters().rx_no_wqe, 1u);
    const uint32_t small = queue.post(b.sge(0, 139));
    a.post(datagram);
    net.pump();
    EXPECT_EQ(net.b.counters().rx_too_long, 1u);
    EXPECT_EQ(be16(queue.query().taken), 0) << "a datagram that does not fit takes no WQE";
    a.post(Wqe(HGHCA_OPCODE_SEND).ud(b.qp.qpn, 0x11111111, 2).data(a.sge(0, 99)));
    net.pump();
    hghca_cqe cqe;
    ASSERT_TRUE(net.b.driver.poll(b.cq, cqe));
    EXPECT_EQ(slot_of(queue, cqe), small);
    EXPECT_EQ(le32(cqe.byte_cnt), 139u);
    EXPECT_EQ(le32(cqe.my_ee), queue.srq.srqn);
}

// The scatter list is the SRQ's: its PD counts, not that of the QP.
TEST_F(Srq, ItsProtectionDomainCounts)
{
    constexpr uint32_t kOther = 7;
    SharedQueue queue(net.b, 3, 7, kOther);
    Pair pair(net.a, net.b, {}, with(queue));
    TestDriver::Mr memory = net.b.driver.create_mr(0x9000000000, 4096, TestDriver::kRw, kOther);
    queue.post({4096, memory.key, memory.va});
    pair.a.post(send(pair.a.sge(0, 64)));
    net.pump();
    auto good = pair.b.poll();
    ASSERT_TRUE(good);
    EXPECT_FALSE(good->error);
    queue.post(pair.b.sge(0, 4096));   // of the QP's PD
    pair.a.post(send(pair.a.sge(0, 64)));
    net.settle();
    auto bad = pair.b.poll();
    ASSERT_TRUE(bad);
    EXPECT_EQ(bad->syndrome, HGHCA_SYNDROME_LOCAL_PROT_ERR);
}

TEST_F(Srq, EmptyMeansRnr)
{
    SharedQueue queue(net.b, 3);
    Pair pair(net.a, net.b, {}, with(queue));
    pair.a.post(send(pair.a.sge(0, 64)));
    net.pump();
    EXPECT_EQ(net.b.counters().rnr_nak_sent, 1u);
    EXPECT_FALSE(pair.a.poll());
    queue.post(pair.b.sge(0, 64));
    net.settle(1'000'000'000);
    auto sent = pair.a.poll();
    ASSERT_TRUE(sent);
    EXPECT_FALSE(sent->error);
    EXPECT_TRUE(pair.b.poll());
}

TEST_F(Srq, TellsItsLimitOnce)
{
    SharedQueue queue(net.b, 4);
    Pair pair(net.a, net.b, {}, with(queue));
    for (int i = 0; i < 6; i++)
        queue.post(pair.b.sge(0, 64));
    ASSERT_EQ(queue.arm(5), HGHCA_CMD_STAT_OK);
    EXPECT_EQ(net.b.events(HGHCA_EVENT_SRQ_LIMIT), 0u);
    EXPECT_EQ(be16(queue.query().limit), 5);
    for (int i = 0; i < 4; i++) {
        pair.a.post(send(pair.a.sge(0, 8)));
        net.pump();
        // Six, then five, four: fewer than five when the second has been taken.
        EXPECT_EQ(net.b.events(HGHCA_EVENT_SRQ_LIMIT), i == 1 ? 1u : 0u) << i;
    }
    EXPECT_EQ(be16(queue.query().limit), 0);
    ASSERT_EQ(queue.arm(3), HGHCA_CMD_STAT_OK);
    EXPECT_EQ(net.b.events(HGHCA_EVENT_SRQ_LIMIT), 1u) << "it is below its limit already";
    EXPECT_EQ(queue.arm(0x10000), HGHCA_CMD_STAT_BAD_PARAM);
}

TEST_F(Srq, LastWqeIsToldAndTheHeldOneFlushed)
{
    SharedQueue queue(net.b, 3);
    Pair pair(net.a, net.b, {}, with(queue)), other(net.a, net.b, {}, with(queue));
    const uint32_t held = queue.post(pair.b.sge(0, 8192));
    queue.post(other.b.sge(0, 8192));
    // Only the first packet arrives.
    unsigned seen = 0;
    net.filter = [&](const Node &from, Frame &) { return Fate{from.number == 1 && seen++ ? 0u : 1u}; };
    pair.a.post(send(pair.a.sge(0, 4096)));
    net.pump();
    EXPECT_EQ(be16(queue.query().taken), 1);
    net.filter = nullptr;
    TestDriver::must(net.b.driver.to_error(pair.b.qp.qpn), "2ERR");
    hghca_cqe cqe;
    ASSERT_TRUE(net.b.driver.poll(pair.b.cq, cqe));
    EXPECT_EQ(cqe.opcode, HGHCA_OPCODE_INVALID);
    EXPECT_EQ(cqe.is_send, 0);
    EXPECT_EQ(reinterpret_cast<hghca_err_cqe &>(cqe).syndrome, HGHCA_SYNDROME_WR_FLUSH_ERR);
    EXPECT_EQ(slot_of(queue, cqe), held);
    EXPECT_EQ(le32(cqe.my_ee), queue.srq.srqn);
    EXPECT_FALSE(net.b.driver.poll(pair.b.cq, cqe));
    EXPECT_EQ(net.b.events(HGHCA_EVENT_SRQ_QP_LAST_WQE), 1u);
    net.b.driver.ring_sq(pair.b.qp, 0, 0, 0);
    EXPECT_EQ(net.b.events(HGHCA_EVENT_SRQ_QP_LAST_WQE), 0u) << "told once";
    // The others go on with what is left.
    other.a.post(send(other.a.sge(0, 100)));
    net.pump();
    ASSERT_TRUE(net.b.driver.poll(other.b.cq, cqe));
    EXPECT_EQ(cqe.opcode & HGHCA_CQE_RECV_OPCODE_MASK, HGHCA_BTH_OP_SEND_ONLY);
}

TEST_F(Srq, TooShortAWqeFailsItsMessageAlone)
{
    SharedQueue queue(net.b, 3);
    Pair pair(net.a, net.b, {}, with(queue)), other(net.a, net.b, {}, with(queue));
    const uint32_t small = queue.post(pair.b.sge(0, 10));
    queue.post(other.b.sge(0, 100));
    pair.a.post(send(pair.a.sge(0, 64)));
    net.settle();
    hghca_cqe cqe;
    ASSERT_TRUE(net.b.driver.poll(pair.b.cq, cqe));
    EXPECT_EQ(slot_of(queue, cqe), small);
    EXPECT_EQ(reinterpret_cast<hghca_err_cqe &>(cqe).syndrome, HGHCA_SYNDROME_LOCAL_LENGTH_ERR);
    EXPECT_EQ(pair.b.state(), HGHCA_QP_STATE_ERR);
    EXPECT_EQ(pair.a.poll()->syndrome, HGHCA_SYNDROME_REMOTE_INVAL_REQ_ERR);
    other.a.post(send(other.a.sge(0, 64)));
    net.pump();
    EXPECT_FALSE(other.b.poll()->error);
}

TEST_F(Srq, GrowsUnderItsQps)
{
    SharedQueue queue(net.b, 2);
    Pair pair(net.a, net.b, {}, with(queue));
    queue.post(pair.b.sge(0, 64));
    queue.post(pair.b.sge(100, 64));
    hghca_resize_srq resize{};
    TestDriver &driver = net.b.driver;
    TestDriver::Mr larger = driver.create_mr(0, 16 << 7, 0);
    resize.logsize = 1;
    resize.lkey = be32(larger.key);
    EXPECT_EQ(driver.post(HGHCA_CMD_RESIZE_SRQ, resize, queue.srq.srqn), HGHCA_CMD_STAT_BAD_SIZE);
    resize.logsize = 15;
    EXPECT_EQ(driver.post(HGHCA_CMD_RESIZE_SRQ, resize, queue.srq.srqn), HGHCA_CMD_STAT_BAD_SIZE);
    resize.logsize = 5;
    EXPECT_EQ(driver.post(HGHCA_CMD_RESIZE_SRQ, resize, queue.srq.srqn), HGHCA_CMD_STAT_BAD_PARAM);
    std::memcpy(net.b.host.at(larger.dma), queue.slot(0), 4 << 7);
    std::memset(queue.slot(0), 0xff, 4 << 7);   // nobody looks there any more
    resize.logsize = 4;
    ASSERT_EQ(driver.post(HGHCA_CMD_RESIZE_SRQ, resize, queue.srq.srqn), HGHCA_CMD_STAT_OK);
    queue.srq.buffer = larger;
    queue.srq.log = 4;
    for (uint32_t i = 4; i < 16; i++)
        queue.give_back(i);
    for (int i = 0; i < 12; i++)
        queue.post(pair.b.sge(0, 64));
    for (int i = 0; i < 14; i++)
        pair.a.post(send(pair.a.sge(0, 64)));
    net.settle();
    for (int i = 0; i < 14; i++) {
        auto c = pair.b.poll();
        ASSERT_TRUE(c) << i;
        EXPECT_FALSE(c->error);
    }
    EXPECT_EQ(queue.query().logsize, 4);
}

// ---- what must be refused

TEST_F(Srq, CommandsAreChecked)
{
    TestDriver &d = net.a.driver;
    TestDriver::Srq srq = d.new_srq();
    const hghca_srqc good = d.srqc_mailbox(srq);
    auto sw2hw = [&](auto &&change) {
        hghca_srqc c = good;
        change(c);
        return d.post(HGHCA_CMD_SW2HW_SRQ, c, srq.srqn);
    };
    EXPECT_EQ(sw2hw([](auto &c) { c.logsize = 15; }), HGHCA_CMD_STAT_BAD_SIZE);
    EXPECT_EQ(sw2hw([](auto &c) { c.logsize = 5; }), HGHCA_CMD_STAT_BAD_PARAM) << "larger than its memory";
    EXPECT_EQ(sw2hw([](auto &c) { c.entry_sz_log = 5; }), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(sw2hw([](auto &c) { c.entry_sz_log = 11; }), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(sw2hw([](auto &c) { c.next = be32(64); }), HGHCA_CMD_STAT_BAD_PARAM) << "not at a slot";
    EXPECT_EQ(sw2hw([](auto &c) { c.next = be32(16 << 7); }), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(sw2hw([](auto &c) { c.srqn = be32(9); }), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(sw2hw([](auto &c) { c.pd = be32(9); }), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(sw2hw([](auto &c) { c.lkey = be32(0xdead01); }), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(sw2hw([](auto &c) { c.dbr_addr = 0; }), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(sw2hw([](auto &c) { c.dbr_addr = be64(HGHCA_DBR_VALID); }), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(sw2hw([](auto &c) { c.dbr_addr = be64(be64(c.dbr_addr) + 4); }), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(d.post(HGHCA_CMD_SW2HW_SRQ, good, 0), HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(d.post(HGHCA_CMD_SW2HW_SRQ, good, 16), HGHCA_CMD_STAT_BAD_INDEX);

    EXPECT_EQ(d.command(HGHCA_CMD_HW2SW_SRQ, 0, srq.srqn).status, HGHCA_CMD_STAT_BAD_RES_STATE);
    EXPECT_EQ(d.command(HGHCA_CMD_ARM_SRQ, 1, srq.srqn).status, HGHCA_CMD_STAT_BAD_RES_STATE);
    EXPECT_EQ(d.post(HGHCA_CMD_RESIZE_SRQ, hghca_resize_srq{}, srq.srqn), HGHCA_CMD_STAT_BAD_RES_STATE);
    hghca_srqc out;
    EXPECT_EQ(d.query(HGHCA_CMD_QUERY_SRQ, out, srq.srqn), HGHCA_CMD_STAT_BAD_RES_STATE);
    for (uint32_t op : {HGHCA_CMD_HW2SW_SRQ, HGHCA_CMD_ARM_SRQ})
        EXPECT_EQ(d.command(op, 0, 99).status, HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(d.post(HGHCA_CMD_RESIZE_SRQ, hghca_resize_srq{}, 99), HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(d.query(HGHCA_CMD_QUERY_SRQ, out, 99), HGHCA_CMD_STAT_BAD_INDEX);

    EXPECT_EQ(sw2hw([](auto &) {}), HGHCA_CMD_STAT_OK);
    EXPECT_EQ(sw2hw([](auto &) {}), HGHCA_CMD_STAT_BAD_RES_STATE);
    TestDriver::must(d.query(HGHCA_CMD_QUERY_SRQ, out, srq.srqn), "QUERY_SRQ");
    EXPECT_EQ(std::memcmp(&out, &good, sizeof(out)), 0) << "what was written comes back";
    EXPECT_EQ(d.command(HGHCA_CMD_HW2SW_SRQ, 0, srq.srqn).status, HGHCA_CMD_STAT_OK);
    EXPECT_EQ(d.command(HGHCA_CMD_HW2SW_SRQ, 0, srq.srqn).status, HGHCA_CMD_STAT_BAD_RES_STATE);
}

TEST_F(Srq, QpsThatNameOneAreChecked)
{
    TestDriver &d = net.a.driver;
    TestDriver::Cq cq = d.create_cq(4);
    TestDriver::Srq srq = d.create_srq();
    auto create = [&](uint8_t service, uint32_t srqn, uint32_t rq_wqes) {
        TestDriver::Qp qp = d.new_qp(4, rq_wqes);
        hghca_qpc c = d.init_qpc(qp, service, cq, cq);
        c.srqn = be32(srqn);
        return d.modify(HGHCA_CMD_RST2INIT_QPEE, qp.qpn, c);
    };
    EXPECT_EQ(create(HGHCA_QP_ST_RC, srq.srqn, 4), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(create(HGHCA_QP_ST_RC, 2, 0), HGHCA_CMD_STAT_BAD_PARAM) << "not in hardware ownership";
    EXPECT_EQ(create(HGHCA_QP_ST_RC, 16, 0), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(create(HGHCA_QP_ST_RC, 0xffffffff, 0), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(create(HGHCA_QP_ST_RC, srq.srqn, 0), HGHCA_CMD_STAT_OK);
    EXPECT_EQ(create(HGHCA_QP_ST_UD, srq.srqn, 0), HGHCA_CMD_STAT_OK);
    EXPECT_EQ(create(HGHCA_QP_ST_RAW, 99, 4), HGHCA_CMD_STAT_OK) << "the word is not looked at";
}

TEST_F(Srq, OffWithoutItsCapability)
{
    constexpr uint32_t kWithout = kFullCaps & ~(HGHCA_CAP_SRQ | HGHCA_CAP_XRC);
    TestDriver &d = net.a.driver;
    d.start(kWithout);
    TestDriver::Cq cq = d.create_cq(4);
    TestDriver::Srq srq = d.new_srq();
    EXPECT_EQ(d.post(HGHCA_CMD_SW2HW_SRQ, d.srqc_mailbox(srq), srq.srqn), HGHCA_CMD_STAT_BAD_OP);
    TestDriver::Qp qp = d.new_qp();
    hghca_qpc c = d.init_qpc(qp, HGHCA_QP_ST_RC, cq, cq);
    c.srqn = be32(1);
    EXPECT_EQ(d.modify(HGHCA_CMD_RST2INIT_QPEE, qp.qpn, c), HGHCA_CMD_STAT_OK);
    // The base may be any address: this device has no table of SRQs.
    d.reset();
    hghca_init_hca init = d.init_mailbox(kWithout);
    init.srqc_base = init.qpc_base;
    EXPECT_EQ(d.post(HGHCA_CMD_INIT_HCA, init), HGHCA_CMD_STAT_OK);
}

TEST_F(Srq, ItsTableMustNotOverlap)
{
    TestDriver &d = net.a.driver;
    for (uint64_t base : {d.layout.qpc, d.layout.cqc, d.layout.eqc, uint64_t(1) << 32}) {
        d.reset();
        hghca_init_hca init = d.init_mailbox();
        init.srqc_base = be64(base | 4);
        EXPECT_EQ(d.post(HGHCA_CMD_INIT_HCA, init), HGHCA_CMD_STAT_BAD_PARAM) << base;
    }
    hghca_init_hca init = d.init_mailbox();
    init.srqc_base = be64(d.layout.srqc | 17);
    EXPECT_EQ(d.post(HGHCA_CMD_INIT_HCA, init), HGHCA_CMD_STAT_BAD_PARAM);
}

// ---- what the guest may do behind the device's back

TEST_F(Srq, ABadLinkFailsTheWqeBehindIt)
{
    for (uint32_t link : {64u, 8u << 7, 0xffffffc0u}) {
        SharedQueue queue(net.b, 3);
        Pair pair(net.a, net.b, {}, with(queue));
        const uint32_t slot = queue.post(pair.b.sge(0, 64));
        queue.post(pair.b.sge(0, 64));
        uint32_t word = le32(link);
        std::memcpy(queue.slot(slot), &word, sizeof(word));
        pair.a.post(send(pair.a.sge(0, 64)));
        net.pump();
        auto first = pair.b.poll();
        ASSERT_TRUE(first);
        EXPECT_FALSE(first->error);
        EXPECT_TRUE(be32(queue.query().flags) & HGHCA_SRQ_FAILED);
        EXPECT_EQ(net.b.events(HGHCA_EVENT_SRQ_CATAS_ERROR), 1u);
        pair.a.post(send(pair.a.sge(0, 64)));
        net.settle();
        EXPECT_EQ(pair.b.state(), HGHCA_QP_STATE_ERR);
        EXPECT_FALSE(pair.b.poll());
    }
}

TEST_F(Srq, ARecordThatCannotBeReadFailsIt)
{
    TestDriver &d = net.b.driver;
    TestDriver::Srq srq = d.new_srq();
    srq.dbr = uint64_t(1) << 60;
    TestDriver::must(d.post(HGHCA_CMD_SW2HW_SRQ, d.srqc_mailbox(srq), srq.srqn), "SW2HW_SRQ");
    Options options;
    options.srqn = srq.srqn;
    Pair pair(net.a, net.b, {}, options);
    pair.a.post(send(pair.a.sge(0, 64)));
    net.settle();
    EXPECT_EQ(net.b.events(HGHCA_EVENT_SRQ_CATAS_ERROR), 1u);
    EXPECT_EQ(pair.b.state(), HGHCA_QP_STATE_ERR);
    EXPECT_EQ(pair.a.poll()->syndrome, HGHCA_SYNDROME_REMOTE_OP_ERR);
}

TEST_F(Srq, MoreThanItHoldsIsNothing)
{
    SharedQueue queue(net.b, 3);
    Pair pair(net.a, net.b, {}, with(queue));
    for (uint32_t posted : {9u, 0x8000u, 0xffffu}) {
        queue.announce(posted);
        pair.a.post(send(pair.a.sge(0, 64)));
        net.pump();
        EXPECT_FALSE(pair.b.poll()) << posted;
    }
    EXPECT_EQ(be16(queue.query().taken), 0);
}

TEST_F(Srq, OneThatIsGoneFailsItsQps)
{
    SharedQueue queue(net.b, 3);
    Pair pair(net.a, net.b, {}, with(queue));
    Endpoint ud(net.b, with(queue, HGHCA_QP_ST_UD)), from(net.a, service(HGHCA_QP_ST_UD));
    queue.post(pair.b.sge(0, 8192));
    // In the middle of a message.
    unsigned seen = 0;
    net.filter = [&](const Node &node, Frame &) { return Fate{node.number == 1 && seen++ ? 0u : 1u}; };
    pair.a.post(send(pair.a.sge(0, 3000)));
    net.pump();
    EXPECT_EQ(net.b.driver.command(HGHCA_CMD_HW2SW_SRQ, 0, queue.srq.srqn).status, HGHCA_CMD_STAT_OK);
    net.filter = nullptr;
    net.settle();
    EXPECT_EQ(pair.b.state(), HGHCA_QP_STATE_ERR);
    from.post(Wqe(HGHCA_OPCODE_SEND).ud(ud.qp.qpn, 0x11111111, 2).data(from.sge(0, 64)));
    net.pump();
    EXPECT_EQ(ud.state(), HGHCA_QP_STATE_ERR);
}

TEST_F(SrqWithSmallCache, WhatStandsInIcmIsNotTrusted)
{
    SharedQueue queue(net.b, 3);
    SharedQueue other(net.b, 3);   // puts the first one out
    uint8_t *entry = net.b.host.at(net.b.driver.srqc_dma + queue.srq.srqn * 128ull);
    EXPECT_EQ(queue.query().logsize, 3);
    other.query();
    for (size_t at = 16; at < 60; at++) {
        const uint8_t was = entry[at];
        entry[at] = 0xff;
        hghca_srqc c;
        const uint8_t status = net.b.driver.query(HGHCA_CMD_QUERY_SRQ, c, queue.srq.srqn);
        if (!status) {
            EXPECT_LE(c.logsize, 14) << at;
            EXPECT_GE(c.entry_sz_log, 6) << at;
            EXPECT_LE(c.entry_sz_log, 10) << at;
            EXPECT_LT(be32(c.next), 1u << (c.logsize + c.entry_sz_log)) << at;
        } else {
            EXPECT_EQ(status, HGHCA_CMD_STAT_BAD_RES_STATE) << at;
        }
        other.query();
        entry[at] = was;
    }
}

}  // namespace
}  // namespace hghca::test::srq_test
