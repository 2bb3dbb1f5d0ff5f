// SPDX-License-Identifier: GPL-2.0-or-later
// Extended reliable connections (interface document, 4.17; IBA vol 1, annex A14).
#include <gtest/gtest.h>

#include "shared_queue.h"

namespace hghca::test::xrc_test {
namespace {

using Options = Endpoint::Options;

constexpr uint32_t kDomain = 5;

Options initiator()
{
    Options options;
    options.service = HGHCA_QP_ST_XRC;
    return options;
}

Options target(uint32_t xrcd = kDomain)
{
    Options options = initiator();
    options.xrcd = xrcd;
    return options;
}

uint32_t to_srq(uint32_t srqn, uint32_t flags = HGHCA_WQE_CQ_UPDATE)
{
    return flags | field_put(HGHCA_WQE_XRC_SRQN_MASK, srqn);
}

// An XRC SRQ with its CQ.
struct Service {
    explicit Service(Node &node, uint32_t xrcd = kDomain, uint32_t pd = TestDriver::kPd)
        : node(node), cq(node.driver.create_cq(6)), queue(node, 4, 7, pd, xrcd, cq.cqn)
    {
    }
    bool poll(hghca_cqe &cqe) { return node.driver.poll(cq, cqe); }
    // The syndrome of the next completion, which is an error; 0: it is not one.
    uint8_t poll_error()
    {
        hghca_cqe cqe{};
        if (!poll(cqe) || cqe.opcode != HGHCA_OPCODE_INVALID || cqe.is_send)
            return 0;
        return reinterpret_cast<hghca_err_cqe &>(cqe).syndrome;
    }
    uint32_t srqn() const { return queue.srq.srqn; }

    Node &node;
    TestDriver::Cq cq;
    SharedQueue queue;
};

class Xrc : public ::testing::Test {
protected:
    explicit Xrc(uint32_t cache_entries = 0) : net(cache_entries) {}
    // The next completion of the initiator, all sent.
    static uint8_t syndrome_at(Endpoint &a)
    {
        auto c = a.poll();
        return c ? c->syndrome : 0xfe;
    }
    // Delivers the first `count` frames of node a, and no other of it.
    void pass(unsigned count)
    {
        seen_ = 0;
        net.filter = [this, count](const Node &from, Frame &) {
            return Fate{from.number == 1 && seen_++ >= count ? 0u : 1u};
        };
    }
    Network net;

private:
    unsigned seen_ = 0;
};

class XrcWithSmallCache : public Xrc {
protected:
    XrcWithSmallCache() : Xrc(1) {}
};

void sends_choose_their_srq(Network &net)
{
    Service services[3] = {Service(net.b), Service(net.b), Service(net.b)};
    Pair one(net.a, net.b, initiator(), target()), two(net.a, net.b, initiator(), target());
    Pair *const pairs[] = {&one, &two};
    TestDriver::Mr memory = net.b.driver.create_mr(0x9000000000, 8192);
    for (unsigned round = 0; round < 60; round++) {
        Pair &pair = *pairs[round % 2];
        Service &service = services[round % 3];
        const uint32_t size = round * 131;
        const uint32_t slot = service.queue.post({8192, memory.key, memory.va});
        pair.a.fill(0, size, round);
        pair.a.post(Wqe(HGHCA_OPCODE_SEND_IMM, to_srq(service.srqn()), be32(round)).data(pair.a.sge(0, size)));
        net.settle();
        EXPECT_EQ(pair.a.poll_all().size(), 1u) << round;
        hghca_cqe cqe;
        ASSERT_TRUE(service.poll(cqe)) << round;
        EXPECT_EQ(le32(cqe.my_qpn), pair.b.qp.qpn);
        EXPECT_EQ(le32(cqe.my_ee), service.srqn());
        EXPECT_EQ(le32(cqe.rqpn), pair.a.qp.qpn);
        EXPECT_EQ(le32(cqe.byte_cnt), size);
        EXPECT_EQ(cqe.imm, be32(round));
        EXPECT_EQ(le32(cqe.wqe) >> 7, slot);
        for (uint32_t i = 0; i < size; i++)
            ASSERT_EQ(net.b.host.at(memory.dma)[i], Endpoint::pattern(round, i)) << round;
        for (Service &other : services)
            EXPECT_FALSE(other.poll(cqe)) << round;
        service.queue.give_back(slot);
    }
    EXPECT_FALSE(one.b.poll()) << "its own CQ takes no part";
}

TEST_F(Xrc, SendsChooseTheirSrq) { sends_choose_their_srq(net); }

TEST_F(XrcWithSmallCache, SendsChooseTheirSrqFromIcm)
{
    sends_choose_their_srq(net);
    EXPECT_GT(net.b.counters().context_evictions, 50u);
}

// IBA vol 1, A14.3: the opcodes of RC with 101b in the service bits, and four bytes behind the BTH of each request.
TEST_F(Xrc, RequestsCarryTheHeader)
{
    Service service(net.b);
    Pair pair(net.a, net.b, initiator(), target());
    service.queue.post(pair.b.sge(0, 8192));
    net.keep_log = true;
    pair.a.fill(100, 3000, 1);
    pair.a.post(Wqe(HGHCA_OPCODE_SEND, to_srq(service.srqn())).data(pair.a.sge(100, 3000)));
    pair.a.post(Wqe(HGHCA_OPCODE_RDMA_READ, to_srq(service.srqn()))
                    .raddr(pair.b.va(0), pair.b.buffer.key)
                    .data(pair.a.sge(8192, 2000)));
    net.settle();
    EXPECT_TRUE(pair.a.holds(8192, 2000, 1));
    unsigned requests = 0, responses = 0;
    for (const Frame &frame : net.log) {
        const View view(frame);
        EXPECT_EQ(view.opcode & HGHCA_BTH_SERVICE_MASK, HGHCA_BTH_XRC);
        const uint8_t op = view.opcode & HGHCA_BTH_OP_MASK;
        if (op >= HGHCA_BTH_OP_READ_RESPONSE_FIRST && op <= HGHCA_BTH_OP_ATOMIC_ACK) {
            responses++;
            continue;
        }
        requests++;
        const uint8_t *xrceth = &frame[view.bth + 12];
        EXPECT_EQ(uint32_t(xrceth[0] << 24 | xrceth[1] << 16 | xrceth[2] << 8 | xrceth[3]), service.srqn());
    }
    EXPECT_EQ(requests, 4u);   // First, Middle, Last; READ
    EXPECT_GE(responses, 2u);
}

TEST_F(Xrc, WritesReadsAndAtomicsUseTheKeysOfTheSrq)
{
    constexpr uint32_t kOther = 9;
    Service service(net.b, kDomain, kOther);
    Pair pair(net.a, net.b, initiator(), target());
    TestDriver::Mr theirs = net.b.driver.create_mr(0x9000000000, 65536, TestDriver::kRw, kOther);
    const uint32_t flags = to_srq(service.srqn());
    pair.a.fill(0, 9000, 4);
    service.queue.post({64, theirs.key, theirs.va});
    pair.a.post(Wqe(HGHCA_OPCODE_RDMA_WRITE_IMM, flags, be32(77)).raddr(theirs.va, theirs.key).data(pair.a.sge(0, 9000)));
    pair.a.post(Wqe(HGHCA_OPCODE_RDMA_READ, flags).raddr(theirs.va, theirs.key).data(pair.a.sge(20000, 9000)));
    auto *word = reinterpret_cast<uint64_t *>(net.b.host.at(theirs.dma + 40000));
    *word = le64(1000);
    pair.a.post(Wqe(HGHCA_OPCODE_ATOMIC_FA, flags).raddr(theirs.va + 40000, theirs.key).atomic(5, 0).data(
        pair.a.sge(40000, 8)));
    pair.a.post(Wqe(HGHCA_OPCODE_ATOMIC_CS, flags).raddr(theirs.va + 40000, theirs.key).atomic(7, 1005).data(
        pair.a.sge(40008, 8)));
    net.settle();
    EXPECT_EQ(pair.a.poll_all().size(), 4u);
    EXPECT_TRUE(pair.a.holds(20000, 9000, 4));
    EXPECT_EQ(*word, le64(7));
    EXPECT_EQ(le64(*reinterpret_cast<uint64_t *>(pair.a.at(40000))), 1000u);
    EXPECT_EQ(le64(*reinterpret_cast<uint64_t *>(pair.a.at(40008))), 1005u);
    hghca_cqe cqe;
    ASSERT_TRUE(service.poll(cqe));
    EXPECT_EQ(cqe.imm, be32(77));
    // The keys of the QP's own PD are not the SRQ's.
    pair.a.post(write_to(pair.a.sge(0, 8), pair.b.va(0), pair.b.buffer.key, flags));
    net.settle();
    EXPECT_EQ(syndrome_at(pair.a), HGHCA_SYNDROME_REMOTE_ACCESS_ERR);
}

TEST_F(Xrc, NopsCompleteInOrderWithoutPackets)
{
    Service service(net.b);
    Pair pair(net.a, net.b, initiator(), target());
    service.queue.post(pair.b.sge(0, 64));
    pair.a.post({Wqe(HGHCA_OPCODE_NOP), Wqe(HGHCA_OPCODE_SEND, to_srq(service.srqn())).data(pair.a.sge(0, 8)),
                 Wqe(HGHCA_OPCODE_NOP), Wqe(HGHCA_OPCODE_NOP, 0)});
    net.settle();
    const auto all = pair.a.poll_all();
    ASSERT_EQ(all.size(), 3u);
    EXPECT_EQ(all[0].opcode, 0x00);   // NOP
    EXPECT_EQ(all[1].opcode, 0x0a);   // SEND
    EXPECT_EQ(all[2].opcode, 0x00);
    EXPECT_EQ(net.a.counters().tx_packets, 1u);
    EXPECT_EQ(pair.a.state(), unsigned(HGHCA_QP_STATE_RTS));
}

TEST_F(Xrc, SendsWithInvalidate)
{
    Service service(net.b);
    Pair pair(net.a, net.b, initiator(), target());
    TestDriver::Mr region = net.b.driver.create_mr(0x9000000000, 4096);
    service.queue.post(pair.b.sge(0, 64));
    pair.a.post(Wqe(HGHCA_OPCODE_SEND_INV, to_srq(service.srqn()), be32(region.key)).data(pair.a.sge(0, 8)));
    net.settle();
    EXPECT_EQ(syndrome_at(pair.a), HGHCA_SYNDROME_REMOTE_ACCESS_ERR) << "it is no region for fast registration";
    EXPECT_EQ(service.poll_error(), HGHCA_SYNDROME_LOCAL_ACCESS_ERR);
}

TEST_F(Xrc, EmptyMeansRnr)
{
    Service service(net.b);
    Pair pair(net.a, net.b, initiator(), target());
    pair.a.post(Wqe(HGHCA_OPCODE_SEND, to_srq(service.srqn())).data(pair.a.sge(0, 8)));
    net.pump();
    EXPECT_EQ(net.b.counters().rnr_nak_sent, 1u);
    service.queue.post(pair.b.sge(0, 8));
    net.settle(1'000'000'000);
    EXPECT_EQ(syndrome_at(pair.a), 0);
    hghca_cqe cqe;
    EXPECT_TRUE(service.poll(cqe));
}

TEST_F(Xrc, LostPacketsAreSentAgain)
{
    Service service(net.b);
    Pair pair(net.a, net.b, initiator(), target());
    TestDriver::Mr memory = net.b.driver.create_mr(0x9000000000, 1 << 16);
    unsigned number = 0;
    net.filter = [&](const Node &, Frame &) { return Fate{number++ % 5 == 3 ? 0u : 1u}; };
    for (uint32_t round = 0; round < 20; round++) {
        const uint32_t slot = service.queue.post({1 << 16, memory.key, memory.va});
        pair.a.fill(0, 20000, round);
        pair.a.post(Wqe(HGHCA_OPCODE_SEND, to_srq(service.srqn())).data(pair.a.sge(0, 20000)));
        pair.a.post(Wqe(HGHCA_OPCODE_RDMA_READ, to_srq(service.srqn()))
                        .raddr(memory.va, memory.key)
                        .data(pair.a.sge(1 << 17, 20000)));
        net.settle(60'000'000'000);
        auto done = pair.a.poll_all();
        ASSERT_EQ(done.size(), 2u) << round;
        EXPECT_FALSE(done[0].error || done[1].error) << round;
        hghca_cqe cqe;
        ASSERT_TRUE(service.poll(cqe)) << round;
        EXPECT_FALSE(service.poll(cqe)) << round;
        ASSERT_TRUE(pair.a.holds(1 << 17, 20000, round)) << round;
        service.queue.give_back(slot);
    }
    EXPECT_GT(net.b.counters().duplicate_request, 0u);
}

// ---- what a target must refuse

TEST_F(Xrc, AnSrqOfAnotherDomainIsNotIts)
{
    Service service(net.b, kDomain + 1);
    SharedQueue basic(net.b, 3);
    for (uint32_t srqn : {service.srqn(), basic.srq.srqn, 15u, 0u, 0xffffffu}) {
        Pair pair(net.a, net.b, initiator(), target());
        pair.a.post(Wqe(HGHCA_OPCODE_SEND, to_srq(srqn)).data(pair.a.sge(0, 8)));
        net.settle();
        EXPECT_EQ(syndrome_at(pair.a), HGHCA_SYNDROME_REMOTE_ACCESS_ERR) << srqn;
        EXPECT_EQ(pair.b.state(), HGHCA_QP_STATE_ERR) << srqn;
        EXPECT_EQ(net.b.events(HGHCA_EVENT_WQ_ACCESS_ERROR), 1u) << srqn;
    }
    hghca_cqe cqe;
    EXPECT_FALSE(service.poll(cqe));
}

// Each packet of a message names the same SRQ.
TEST_F(Xrc, AMessageDoesNotChangeItsSrq)
{
    Service service(net.b), other(net.b);
    Pair pair(net.a, net.b, initiator(), target());
    service.queue.post(pair.b.sge(0, 8192));
    other.queue.post(pair.b.sge(8192, 8192));
    unsigned number = 0;
    net.filter = [&](const Node &from, Frame &frame) {
        if (from.number == 1 && number++ == 1) {
            frame[View(frame).bth + 15] = uint8_t(other.srqn());
            seal(frame);
        }
        return Fate{};
    };
    pair.a.post(Wqe(HGHCA_OPCODE_SEND, to_srq(service.srqn())).data(pair.a.sge(0, 3000)));
    net.settle();
    EXPECT_EQ(syndrome_at(pair.a), HGHCA_SYNDROME_REMOTE_INVAL_REQ_ERR);
    EXPECT_EQ(service.poll_error(), HGHCA_SYNDROME_REMOTE_INVAL_REQ_ERR);
    EXPECT_EQ(be16(other.queue.query().taken), 0);
}

// An initiator serves nobody, a target asks for nothing.
TEST_F(Xrc, InitiatorsTakeNoRequests)
{
    Pair pair(net.a, net.b, initiator(), initiator());
    pair.a.post(Wqe(HGHCA_OPCODE_SEND, to_srq(1)).data(pair.a.sge(0, 8)));
    net.pump();
    EXPECT_EQ(net.b.counters().rx_unknown_qp, 1u);
    EXPECT_EQ(pair.b.state(), HGHCA_QP_STATE_RTS);
}

TEST_F(Xrc, TargetsSendNothing)
{
    Pair pair(net.a, net.b, initiator(), target());
    net.b.driver.ring_sq(pair.b.qp, 0, HGHCA_OPCODE_SEND, 2);
    net.settle();
    EXPECT_EQ(net.sent, 0u);
    EXPECT_EQ(pair.b.state(), HGHCA_QP_STATE_RTS);
}

TEST_F(Xrc, OtherServicesDoNotMix)
{
    Pair rc(net.a, net.b, {}, target());
    rc.a.post(send(rc.a.sge(0, 8)));
    net.pump();
    EXPECT_EQ(net.b.counters().rx_unknown_qp, 1u) << "RC to XRC";
    Pair xrc(net.a, net.b, initiator(), Options{});
    xrc.a.post(Wqe(HGHCA_OPCODE_SEND, to_srq(1)).data(xrc.a.sge(0, 8)));
    net.pump();
    EXPECT_EQ(net.b.counters().rx_unknown_qp, 2u) << "XRC to RC";
}

// ---- the end of an SRQ or a QP in the middle of a message

TEST_F(Xrc, TheHeldWqeIsFlushedAndTheLastOneTold)
{
    Service service(net.b);
    Pair pair(net.a, net.b, initiator(), target());
    service.queue.post(pair.b.sge(0, 8192));
    pass(1);
    pair.a.post(Wqe(HGHCA_OPCODE_SEND, to_srq(service.srqn())).data(pair.a.sge(0, 3000)));
    net.pump();
    EXPECT_EQ(be16(service.queue.query().taken), 1);
    TestDriver::must(net.b.driver.to_error(pair.b.qp.qpn), "2ERR");
    EXPECT_EQ(service.poll_error(), HGHCA_SYNDROME_WR_FLUSH_ERR);
    EXPECT_EQ(net.b.events(HGHCA_EVENT_SRQ_QP_LAST_WQE), 1u);
}

// Software has all WQEs of an SRQ back once it has taken it; another one of its number is another one.
TEST_F(Xrc, AnSrqThatIsMadeAnewHoldsNoOldMessage)
{
    for (bool again : {false, true}) {
        Service service(net.b);
        TestDriver &d = net.b.driver;
        Pair pair(net.a, net.b, initiator(), target());
        service.queue.post(pair.b.sge(0, 8192));
        pass(1);
        pair.a.post(Wqe(HGHCA_OPCODE_SEND, to_srq(service.srqn())).data(pair.a.sge(0, 3000)));
        net.pump();
        TestDriver::must(d.command(HGHCA_CMD_HW2SW_SRQ, 0, service.srqn()).status, "HW2SW_SRQ");
        if (again)
            TestDriver::must(d.post(HGHCA_CMD_SW2HW_SRQ, d.srqc_mailbox(service.queue.srq), service.srqn()),
                             "SW2HW_SRQ");
        net.filter = nullptr;
        net.settle(10'000'000'000);
        hghca_cqe cqe;
        EXPECT_EQ(pair.b.state(), HGHCA_QP_STATE_ERR) << again;
        EXPECT_NE(syndrome_at(pair.a), 0) << again;
        if (!again) {
            EXPECT_FALSE(service.poll(cqe));
        }
    }
}

TEST_F(Xrc, AFailedCqFailsTheTarget)
{
    Service service(net.b);
    Pair pair(net.a, net.b, initiator(), target());
    service.queue.post(pair.b.sge(0, 64));
    TestDriver::must(net.b.driver.command(HGHCA_CMD_HW2SW_CQ, 0, service.cq.cqn).status, "HW2SW_CQ");
    pair.a.post(Wqe(HGHCA_OPCODE_SEND, to_srq(service.srqn())).data(pair.a.sge(0, 8)));
    net.settle(10'000'000'000);
    EXPECT_EQ(pair.b.state(), HGHCA_QP_STATE_ERR);
    EXPECT_EQ(net.b.events(HGHCA_EVENT_WQ_CATAS_ERROR), 1u);
}

// ---- commands

TEST_F(Xrc, SrqCommandsAreChecked)
{
    TestDriver &d = net.a.driver;
    TestDriver::Cq cq = d.create_cq(4);
    TestDriver::Srq srq = d.new_srq();
    srq.xrcd = kDomain;
    srq.cqn = cq.cqn;
    const hghca_srqc good = d.srqc_mailbox(srq);
    auto sw2hw = [&](auto &&change) {
        hghca_srqc c = good;
        change(c);
        return d.post(HGHCA_CMD_SW2HW_SRQ, c, srq.srqn);
    };
    EXPECT_EQ(sw2hw([](auto &c) { c.xrcd = 0; }), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(sw2hw([](auto &c) { c.xrcd = be32(1 << 24); }), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(sw2hw([](auto &c) { c.cqn = 0; }), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(sw2hw([](auto &c) { c.cqn = be32(99); }), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(sw2hw([](auto &) {}), HGHCA_CMD_STAT_OK);
    hghca_srqc out;
    TestDriver::must(d.query(HGHCA_CMD_QUERY_SRQ, out, srq.srqn), "QUERY_SRQ");
    EXPECT_EQ(std::memcmp(&out, &good, sizeof(out)), 0) << "what was written comes back";
}

TEST_F(Xrc, QpsAreChecked)
{
    TestDriver &d = net.a.driver;
    TestDriver::Cq cq = d.create_cq(4);
    TestDriver::Srq basic = d.create_srq(), shared = d.create_srq(4, 7, TestDriver::kPd, kDomain, cq.cqn);
    struct Case {
        uint8_t service;
        uint32_t xrcd, srqn, sq_wqes, rq_wqes;
        uint8_t status;
    };
    const Case cases[] = {
        {HGHCA_QP_ST_XRC, 0, 0, 4, 0, HGHCA_CMD_STAT_OK},
        {HGHCA_QP_ST_XRC, 0xffffff, 0, 0, 0, HGHCA_CMD_STAT_OK},
        {HGHCA_QP_ST_XRC, 0, 0, 4, 4, HGHCA_CMD_STAT_BAD_PARAM},
        {HGHCA_QP_ST_XRC, kDomain, 0, 4, 0, HGHCA_CMD_STAT_BAD_PARAM},
        {HGHCA_QP_ST_XRC, kDomain, 0, 0, 4, HGHCA_CMD_STAT_BAD_PARAM},
        {HGHCA_QP_ST_XRC, 1 << 24, 0, 0, 0, HGHCA_CMD_STAT_BAD_PARAM},
        {HGHCA_QP_ST_XRC, kDomain, basic.srqn, 0, 0, HGHCA_CMD_STAT_BAD_PARAM},
        {HGHCA_QP_ST_RC, 0, shared.srqn, 4, 0, HGHCA_CMD_STAT_BAD_PARAM},
        {HGHCA_QP_ST_RC, kDomain, 0, 4, 4, HGHCA_CMD_STAT_OK},   // the word is not looked at
    };
    for (const Case &c : cases) {
        TestDriver::Qp qp = d.new_qp(4, 4);
        hghca_qpc context = d.init_qpc(qp, c.service, cq, cq);
        context.xrcd = be32(c.xrcd);
        context.srqn = be32(c.srqn);
        context.snd_wqe_len = be32(c.sq_wqes << qp.stride_log);
        context.rcv_wqe_len = be32(c.rq_wqes << qp.stride_log);
        EXPECT_EQ(d.modify(HGHCA_CMD_RST2INIT_QPEE, qp.qpn, context), c.status)
            << "service " << unsigned(c.service) << ", domain " << c.xrcd << ", SRQ " << c.srqn;
        if (c.status == HGHCA_CMD_STAT_OK) {
            hghca_qpc out;
            TestDriver::must(d.query(HGHCA_CMD_QUERY_QP, out, qp.qpn), "QUERY_QP");
            EXPECT_EQ(be32(out.xrcd), c.service == HGHCA_QP_ST_XRC ? c.xrcd : 0);
        }
    }
}

TEST_F(Xrc, OffWithoutItsCapability)
{
    TestDriver &d = net.a.driver;
    d.start(kFullCaps & ~HGHCA_CAP_XRC);
    TestDriver::Cq cq = d.create_cq(4);
    TestDriver::Srq srq = d.new_srq();
    srq.xrcd = kDomain;
    srq.cqn = cq.cqn;
    EXPECT_EQ(d.post(HGHCA_CMD_SW2HW_SRQ, d.srqc_mailbox(srq), srq.srqn), HGHCA_CMD_STAT_BAD_PARAM);
    TestDriver::Qp qp = d.new_qp(4, 0);
    EXPECT_EQ(d.modify(HGHCA_CMD_RST2INIT_QPEE, qp.qpn, d.init_qpc(qp, HGHCA_QP_ST_XRC, cq, cq)),
              HGHCA_CMD_STAT_BAD_PARAM);
    d.reset();
    EXPECT_EQ(d.init_hca(kFullCaps & ~HGHCA_CAP_SRQ), HGHCA_CMD_STAT_BAD_PARAM) << "XRC needs SRQ";
}

}  // namespace
}  // namespace hghca::test::xrc_test
