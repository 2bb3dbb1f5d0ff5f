// SPDX-License-Identifier: GPL-2.0-or-later
// Paging on demand (interface document, 4.23).
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "page_fault.h"
#include "shared_queue.h"
#include "verbs.h"

namespace hghca::test::odp_test {
namespace {

constexpr uint32_t kPd = TestDriver::kPd;
constexpr uint32_t kOnDemand = TestDriver::kRw | HGHCA_ACCESS_ON_DEMAND;
constexpr uint64_t kPage = 4096;
constexpr uint64_t kVa = 0x123456789000;
constexpr uint64_t kSecond = 1'000'000'000;

// A region on demand, and what its software does.
class Pages {
public:
    Pages(Node &node, unsigned count, uint32_t access = kOnDemand, uint64_t va = kVa)
        : node(node), count(count), dma(node.host.alloc(count * kPage))
    {
        TestDriver &d = node.driver;
        mr = d.create_mr_without_pages(va, count * kPage);
        TestDriver::must(d.destroy_mr(mr), "HW2SW_MPT");
        mr.key = d.new_key();
        TestDriver::must(sw2hw(access), "SW2HW_MPT");
    }
    uint8_t sw2hw(uint32_t access)
    {
        return node.driver.post(HGHCA_CMD_SW2HW_MPT,
                                node.driver.mpt_mailbox(mr.key, mr.va, mr.length, mr.first_mtt, access),
                                node.driver.mpt_index(mr.key));
    }
    void bring(unsigned page, unsigned n = 1, uint64_t flags = 0)
    {
        for (unsigned i = page; i < page + n; i++) {
            const uint64_t entry = (dma + i * kPage) | flags;
            TestDriver::must(node.driver.write_mtt(mr.first_mtt + i, &entry, 1), "WRITE_MTT");
        }
    }
    uint8_t clear(unsigned page, unsigned n = 1)
    {
        return node.driver.command(HGHCA_CMD_CLEAR_MTT, mr.first_mtt + page, n).status;
    }
    Sge sge(uint64_t offset, uint32_t length) const { return {length, mr.key, mr.va + offset}; }
    uint64_t va(uint64_t offset) const { return mr.va + offset; }
    uint8_t *at(uint64_t offset) { return node.host.at(dma + offset); }
    void fill(uint64_t offset, size_t length, uint32_t seed)
    {
        for (size_t i = 0; i < length; i++)
            at(offset)[i] = Endpoint::pattern(seed, i);
    }
    bool holds(uint64_t offset, size_t length, uint32_t seed)
    {
        for (size_t i = 0; i < length; i++)
            if (at(offset)[i] != Endpoint::pattern(seed, i))
                return false;
        return true;
    }

    Node &node;
    unsigned count;
    uint64_t dma;
    TestDriver::Mr mr;
};

class Odp : public ::testing::Test {
protected:
    explicit Odp(uint32_t cache_entries = 0) : net(cache_entries) {}

    // Brings one page for each fault, until nothing more is asked for; the number of faults.
    unsigned serve(std::initializer_list<Pages *> regions, uint64_t flags = 0)
    {
        unsigned n = 0;
        for (unsigned idle = 0; idle < 3; idle++) {
            net.settle(100'000'000);
            for (Node *node : {&net.a, &net.b}) {
                while (auto f = next_fault(*node)) {
                    for (Pages *p : regions)
                        if (&p->node == node && p->mr.key == f->key)
                            p->bring(unsigned((f->va - p->mr.va) / kPage), 1, f->write() ? 0 : flags);
                    EXPECT_EQ(resume(*node, *f), 0);
                    n++;
                    idle = 0;
                }
            }
            if (n > 1000)
                throw std::runtime_error("faults without end");
        }
        return n;
    }
    static void expect_good(Endpoint &e, size_t n)
    {
        auto all = e.poll_all();
        EXPECT_EQ(all.size(), n);
        for (const Completion &c : all)
            EXPECT_FALSE(c.error) << int(c.syndrome);
    }
    static int syndrome_of(Endpoint &e)
    {
        auto c = e.poll();
        return !c ? -1 : c->error ? c->syndrome : 0;
    }
    // Options whose time-outs are never the reason why something goes on.
    static Endpoint::Options patient(uint8_t service = HGHCA_QP_ST_RC)
    {
        Endpoint::Options o;
        o.service = service;
        o.ack_timeout = 0;
        o.rnr_timer = 12;   // 0.64 ms
        return o;
    }
    Network net;
};

// ---- commands

TEST_F(Odp, WhatARegionMayBe)
{
    struct {
        const char *what;
        uint32_t flags;
        uint8_t status;
    } cases[] = {
        {"on demand", 0, 0},
        {"physical as well", HGHCA_MPT_FLAG_PHYSICAL, HGHCA_CMD_STAT_BAD_PARAM},
        {"on the device", HGHCA_MPT_FLAG_DEVICE, HGHCA_CMD_STAT_BAD_PARAM},
        {"for fast registration", HGHCA_MPT_FLAG_FAST_REG, HGHCA_CMD_STAT_BAD_PARAM},
        {"free", HGHCA_MPT_FLAG_FREE, HGHCA_CMD_STAT_BAD_PARAM},
        {"for one QP", HGHCA_MPT_FLAG_WINDOW_QP, HGHCA_CMD_STAT_BAD_PARAM},
    };
    Pages pages(net.a, 4);
    hghca_mpt mpt;
    ASSERT_EQ(net.a.driver.query(HGHCA_CMD_QUERY_MPT, mpt, net.a.driver.mpt_index(pages.mr.key)), 0);
    EXPECT_TRUE(be32(mpt.flags) & HGHCA_ACCESS_ON_DEMAND);
    ASSERT_EQ(net.a.driver.destroy_mr(pages.mr), 0);
    for (const auto &c : cases) {
        EXPECT_EQ(pages.sw2hw(kOnDemand | c.flags), c.status) << c.what;
        if (!c.status) {
            ASSERT_EQ(net.a.driver.destroy_mr(pages.mr), 0);
        }
    }
    hghca_mpt window = net.a.driver.mpt_mailbox(pages.mr.key, 0, 0, 0);
    window.flags = be32(HGHCA_MPT_FLAG_FREE | HGHCA_ACCESS_ON_DEMAND);
    EXPECT_EQ(net.a.driver.post(HGHCA_CMD_SW2HW_MPT, window, net.a.driver.mpt_index(pages.mr.key)),
              HGHCA_CMD_STAT_BAD_PARAM);
}

TEST_F(Odp, CommandsAreRefused)
{
    TestDriver &d = net.a.driver;
    Pair p(net.a, net.b, patient());
    auto clear = [&](uint64_t first, uint32_t n) { return d.command(HGHCA_CMD_CLEAR_MTT, first, n).status; };
    auto resume_raw = [&](uint64_t what, uint32_t qpn, uint32_t modifier = 0) {
        return d.command(HGHCA_CMD_RESUME_QP, what, qpn, modifier).status;
    };
    EXPECT_EQ(clear(1, 0), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(clear(1, 65537), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(clear(1ull << 27, 1), HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(clear(~0ull, 1), HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(clear((1ull << 27) - 1, 2), HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(clear(131072 - 1, 2), HGHCA_CMD_STAT_LAM_NOT_PRE);   // the ICM of the table ends there
    EXPECT_EQ(clear(131072 - 65536, 65536), 0);
    EXPECT_EQ(resume_raw(0, 0), HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(resume_raw(0, 1u << 16), HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(resume_raw(0, 100), HGHCA_CMD_STAT_BAD_QPEE_STATE);
    EXPECT_EQ(resume_raw(1ull << 32, p.a.qp.qpn), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(resume_raw(1ull << 2, p.a.qp.qpn), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(resume_raw(0, p.a.qp.qpn, 1), HGHCA_CMD_STAT_BAD_PARAM);
    for (uint64_t what = 0; what < 4; what++)
        EXPECT_EQ(resume_raw(what, p.a.qp.qpn), HGHCA_CMD_STAT_BAD_RES_STATE);
    EXPECT_EQ(p.a.state(), unsigned(HGHCA_QP_STATE_RTS));
}

TEST_F(Odp, OnlyWhereItIsTurnedOn)
{
    Network without(0, kFullCaps & ~HGHCA_CAP_ODP);
    TestDriver &d = without.a.driver;
    EXPECT_EQ(d.command(HGHCA_CMD_CLEAR_MTT, 1, 1).status, HGHCA_CMD_STAT_BAD_OP);
    EXPECT_EQ(d.command(HGHCA_CMD_RESUME_QP, 0, 8).status, HGHCA_CMD_STAT_BAD_OP);
    // As in the base the bits say nothing, and neither do the low ones of an MTT.
    Pages pages(without.a, 1, kOnDemand | HGHCA_MPT_FLAG_TREE);
    const uint64_t entry = pages.dma | HGHCA_MTT_ABSENT | HGHCA_MTT_READ_ONLY;
    ASSERT_EQ(d.write_mtt(pages.mr.first_mtt, &entry, 1), 0);
    SegmentArray<1> s;
    ASSERT_TRUE(without.a.device.memory->translate(Key(pages.mr.key), kPd, kVa, 8, Access::LocalWrite, s));
    EXPECT_EQ(s[0].dma, pages.dma);
}

TEST_F(Odp, EntriesAreThereOrNot)
{
    Pages pages(net.a, 4);
    MemoryTable &memory = *net.a.device.memory;
    AbsentPage absent{};
    auto look = [&](uint64_t offset, uint64_t length, Access access) {
        PacketSegments s;
        return memory.locate(Key(pages.mr.key), kPd, pages.va(offset), length, access, s, absent);
    };
    EXPECT_EQ(look(100, 8, Access::LocalRead), Found::Absent);
    EXPECT_EQ(absent.key, Key(pages.mr.key));
    EXPECT_EQ(absent.va, pages.va(100));
    EXPECT_EQ(absent.length, 8u);
    EXPECT_FALSE(absent.write);
    pages.bring(0, 2, HGHCA_MTT_READ_ONLY);
    EXPECT_EQ(look(0, 2 * kPage, Access::LocalRead), Found::Yes);
    EXPECT_EQ(look(0, 2 * kPage, Access::RemoteRead), Found::Yes);
    EXPECT_EQ(look(4000, 100, Access::RemoteWrite), Found::Absent);
    EXPECT_TRUE(absent.write);
    pages.bring(0);
    EXPECT_EQ(look(4000, 100, Access::RemoteWrite), Found::Absent);
    EXPECT_EQ(absent.va, pages.va(kPage));
    EXPECT_EQ(absent.length, 4u);
    EXPECT_EQ(look(4000, 96, Access::RemoteAtomic), Found::Yes);
    pages.bring(1, 1, HGHCA_MTT_ABSENT);
    EXPECT_EQ(look(kPage, 1, Access::LocalRead), Found::Absent);
    pages.bring(0, 4);
    EXPECT_EQ(look(0, 4 * kPage, Access::LocalWrite), Found::Yes);
    EXPECT_EQ(pages.clear(1, 2), 0);
    EXPECT_EQ(look(0, kPage, Access::LocalWrite), Found::Yes);
    EXPECT_EQ(look(kPage, 1, Access::LocalRead), Found::Absent);
    EXPECT_EQ(look(3 * kPage - 1, 1, Access::LocalRead), Found::Absent);
    EXPECT_EQ(look(3 * kPage, kPage, Access::LocalWrite), Found::Yes);
    // What is wrong is not absent.
    EXPECT_EQ(look(4 * kPage - 1, 2, Access::LocalRead), Found::No);
    PacketSegments s;
    EXPECT_EQ(memory.locate(Key(pages.mr.key), kPd + 1, pages.va(kPage), 1, Access::LocalRead, s, absent), Found::No);
}

TEST_F(Odp, HoldsNoQueueAndNoWindow)
{
    TestDriver &d = net.a.driver;
    Pages pages(net.a, 64, kOnDemand | HGHCA_ACCESS_MW_BIND, 0);
    pages.bring(0, 64);
    EXPECT_EQ(d.post(HGHCA_CMD_SW2HW_EQ, d.eqc_mailbox(4, pages.mr.key, 1), 5), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(d.post(HGHCA_CMD_SW2HW_CQ, d.cqc_mailbox(100, 4, pages.mr.key, d.async.eqn), 100),
              HGHCA_CMD_STAT_BAD_PARAM);
    TestDriver::Cq cq = d.create_cq(4);
    hghca_resize_cq resize{};
    resize.logsize = be32(5u << 24);
    resize.lkey = be32(pages.mr.key);
    EXPECT_EQ(d.post(HGHCA_CMD_RESIZE_CQ, resize, cq.cqn), HGHCA_CMD_STAT_BAD_PARAM);
    TestDriver::Srq srq = d.new_srq();
    srq.buffer = pages.mr;
    EXPECT_EQ(d.post(HGHCA_CMD_SW2HW_SRQ, d.srqc_mailbox(srq), srq.srqn), HGHCA_CMD_STAT_BAD_PARAM);
    TestDriver::Srq good = d.create_srq();
    hghca_resize_srq larger{};
    larger.logsize = 5;
    larger.lkey = be32(pages.mr.key);
    EXPECT_EQ(d.post(HGHCA_CMD_RESIZE_SRQ, larger, good.srqn), HGHCA_CMD_STAT_BAD_PARAM);
    MemoryTable &memory = *net.a.device.memory;
    uint32_t word = 0;
    EXPECT_FALSE(memory.read(Key(pages.mr.key), kPd, 0, &word, sizeof(word)));
    EXPECT_FALSE(memory.write(Key(pages.mr.key), kPd, 0, &word, sizeof(word)));

    const uint32_t window = d.create_window(true);
    EXPECT_EQ(memory.bind_window({kPd, Qpn(8)}, {HGHCA_ACCESS_REMOTE_READ, Key(window), Key(pages.mr.key), 0, kPage}),
              Allowed::No);
}

// ---- each operation onto pages nobody has touched, one at a time

struct Operation {
    const char *name;
    uint8_t opcode;
    uint32_t length;
};

class OdpEach : public Odp, public ::testing::WithParamInterface<std::tuple<Operation, uint32_t>> {
protected:
    OdpEach() : Odp(std::get<1>(GetParam())) {}
};

TEST_P(OdpEach, IsTheSameAsOnPagesThatAreThere)
{
    const Operation op = std::get<0>(GetParam());
    const unsigned count = op.length / kPage + 3;
    Pair p(net.a, net.b, patient());
    Pages from(net.a, count), to(net.b, count, kOnDemand, kVa + (1ull << 40));
    const bool inward = op.opcode == HGHCA_OPCODE_RDMA_READ;
    Pages &source = inward ? to : from, &target = inward ? from : to;
    source.fill(100, op.length, 7);
    uint64_t before = 0x1122334455667788;
    std::memcpy(to.at(104), &before, 8);
    if (op.opcode == HGHCA_OPCODE_RDMA_READ)
        to.fill(100, op.length, 7);

    Wqe wqe(op.opcode);
    const bool atomic = op.opcode == HGHCA_OPCODE_ATOMIC_FA;
    if (op.opcode != HGHCA_OPCODE_SEND)
        wqe.raddr(to.va(atomic || op.opcode == HGHCA_OPCODE_ATOMIC_WRITE ? 104 : 100), to.mr.key);
    if (atomic)
        wqe.atomic(5, 0);
    wqe.data(from.sge(100, op.length));
    if (op.opcode == HGHCA_OPCODE_SEND)
        p.b.post_recv(to.sge(100, op.length));
    if (op.opcode == HGHCA_OPCODE_RDMA_WRITE_IMM)
        p.b.post_recv(std::vector<Sge>{});
    p.a.post(wqe);
    net.pump();
    EXPECT_FALSE(p.a.poll());
    const unsigned faults = serve({&from, &to});
    expect_good(p.a, 1);
    const unsigned pages = unsigned((100 + op.length + kPage - 1) / kPage);
    EXPECT_EQ(faults, 2 * pages);
    EXPECT_EQ(net.a.counters().page_faults + net.b.counters().page_faults, faults);
    expect_good(p.b, op.opcode == HGHCA_OPCODE_SEND || op.opcode == HGHCA_OPCODE_RDMA_WRITE_IMM ? 1 : 0);
    if (atomic) {
        uint64_t now, got;
        std::memcpy(&now, to.at(104), 8);
        std::memcpy(&got, from.at(100), 8);
        EXPECT_EQ(now, before + 5);
        EXPECT_EQ(got, before);
    } else if (op.opcode == HGHCA_OPCODE_ATOMIC_WRITE) {
        EXPECT_TRUE(to.holds(104, 8, 7));
    } else {
        EXPECT_TRUE(target.holds(100, op.length, 7));
    }
    EXPECT_EQ(p.a.state(), unsigned(HGHCA_QP_STATE_RTS));
    EXPECT_EQ(p.b.state(), unsigned(HGHCA_QP_STATE_RTS));
    EXPECT_EQ(net.a.host.deadline_ns, UINT64_MAX);
}

INSTANTIATE_TEST_SUITE_P(
    Operations, OdpEach,
    ::testing::Combine(::testing::Values(Operation{"send", HGHCA_OPCODE_SEND, 20000},
                                         Operation{"short_send", HGHCA_OPCODE_SEND, 8},
                                         Operation{"write", HGHCA_OPCODE_RDMA_WRITE, 20000},
                                         Operation{"write_imm", HGHCA_OPCODE_RDMA_WRITE_IMM, 20000},
                                         Operation{"read", HGHCA_OPCODE_RDMA_READ, 20000},
                                         Operation{"short_read", HGHCA_OPCODE_RDMA_READ, 8},
                                         Operation{"atomic", HGHCA_OPCODE_ATOMIC_FA, 8},
                                         Operation{"atomic_write", HGHCA_OPCODE_ATOMIC_WRITE, 8}),
                       ::testing::Values(0u, 1u)),
    [](const auto &info) {
        return std::string(std::get<0>(info.param).name) + (std::get<1>(info.param) ? "_evicted" : "");
    });

// What an event says.
TEST_F(Odp, TheEventNamesAllThatIsWanted)
{
    Pair p(net.a, net.b, patient());
    Pages from(net.a, 8), to(net.b, 8);
    from.bring(0);
    p.a.post(write_to(from.sge(10, 20000), to.va(4090), to.mr.key));
    net.pump();
    auto f = next_fault(net.b);
    ASSERT_TRUE(f);
    EXPECT_EQ(f->qpn, p.b.qp.qpn);
    EXPECT_TRUE(f->responder());
    EXPECT_TRUE(f->write());
    EXPECT_EQ(f->key, to.mr.key);
    EXPECT_EQ(f->va, to.va(4090));
    EXPECT_EQ(f->length, 20000u);
    auto own = next_fault(net.a);
    ASSERT_TRUE(own);
    EXPECT_EQ(own->qpn, p.a.qp.qpn);
    EXPECT_FALSE(own->responder());
    EXPECT_FALSE(own->write());
    EXPECT_EQ(own->va, from.va(kPage));
    EXPECT_EQ(own->length, 20010 - kPage);
    EXPECT_NE(f->what & ~HGHCA_PAGE_FAULT_TOKEN_MASK, own->what & ~HGHCA_PAGE_FAULT_TOKEN_MASK);

    // A peer that goes on asking makes no second event.
    net.settle(kSecond / 100);
    EXPECT_FALSE(next_fault(net.b));
    EXPECT_FALSE(next_fault(net.a));
    to.bring(0, 8);
    from.bring(0, 8);
    EXPECT_EQ(resume(net.b, *f), 0);
    EXPECT_EQ(resume(net.a, *own), 0);
    net.settle(kSecond);
    expect_good(p.a, 1);
}

// A page that is read alone is asked for once more when it is written.
TEST_F(Odp, AReadOnlyPageIsAskedForToWriteTo)
{
    Pair p(net.a, net.b, patient());
    Pages to(net.b, 1);
    to.fill(0, 100, 3);
    p.a.post(read_from(p.a.sge(0, 100), to.va(0), to.mr.key));
    EXPECT_EQ(serve({&to}, HGHCA_MTT_READ_ONLY), 1u);
    EXPECT_TRUE(p.a.holds(0, 100, 3));
    p.a.fill(200, 100, 4);
    p.a.post(write_to(p.a.sge(200, 100), to.va(0), to.mr.key));
    EXPECT_EQ(serve({&to}, HGHCA_MTT_READ_ONLY), 1u);
    EXPECT_TRUE(to.holds(0, 100, 4));
    expect_good(p.a, 2);
}

// The place of a READ's answer goes while the answer is on its way.
TEST_F(Odp, AnAnswerWithoutAPlaceIsAskedForAgain)
{
    for (bool atomic : {false, true}) {
        Pair p(net.a, net.b, patient());
        Pages to(net.a, 4);
        to.bring(0, 4);
        p.b.fill(0, 9000, 5);
        *reinterpret_cast<uint64_t *>(p.b.at(16384)) = 40;
        bool cleared = false;
        net.filter = [&](const Node &from, Frame &) {
            if (&from == &net.b && !std::exchange(cleared, true)) {
                EXPECT_EQ(to.clear(0, 4), 0);
            }
            return Fate{};
        };
        const uint64_t lost = net.a.counters().implied_nak_seq_err;
        if (atomic)
            p.a.post(Wqe(HGHCA_OPCODE_ATOMIC_FA).raddr(p.b.va(16384), p.b.buffer.key).atomic(2, 0).data(to.sge(0, 8)));
        else
            p.a.post(read_from(to.sge(0, 9000), p.b.va(0), p.b.buffer.key));
        EXPECT_EQ(serve({&to}), atomic ? 1u : 3u);
        EXPECT_TRUE(cleared);
        expect_good(p.a, 1);
        if (atomic) {
            EXPECT_EQ(*reinterpret_cast<uint64_t *>(to.at(0)), 40u);
            EXPECT_EQ(*reinterpret_cast<uint64_t *>(p.b.at(16384)), 42u) << "executed once";
        } else {
            EXPECT_TRUE(to.holds(0, 9000, 5));
        }
        EXPECT_EQ(net.a.counters().implied_nak_seq_err, lost);
        net.filter = nullptr;
    }
}

// Pages go in the middle of a READ's answer, with more work behind it.
TEST_F(Odp, AnAnswerIsCutShortAndGoesOn)
{
    Endpoint::Options options = patient();
    options.mtu_code = 1;
    Pair p(net.a, net.b, options);
    Pages source(net.b, 16);
    source.bring(0, 1);
    source.fill(0, 16 * kPage, 9);
    p.a.fill(200000, 100, 1);
    p.b.post_recv(p.b.sge(0, 100));
    *reinterpret_cast<uint64_t *>(p.b.at(8192)) = 0;
    p.a.post({read_from(p.a.sge(0, 16 * kPage), source.va(0), source.mr.key), send(p.a.sge(200000, 100)),
              Wqe(HGHCA_OPCODE_ATOMIC_FA).raddr(p.b.va(8192), p.b.buffer.key).atomic(1, 0).data(p.a.sge(300000, 8))});
    EXPECT_EQ(serve({&source}), 15u);
    expect_good(p.a, 3);
    expect_good(p.b, 1);
    EXPECT_TRUE(p.a.holds(0, 16 * kPage, 9));
    EXPECT_EQ(*reinterpret_cast<uint64_t *>(p.b.at(8192)), 1u);
}

TEST_F(Odp, ASharedReceiveIsNotTakenBeforeItCanBeFilled)
{
    SharedQueue shared(net.b, 3);
    Endpoint::Options left = patient(), right = patient();
    right.srqn = shared.srq.srqn;
    Pair p(net.a, net.b, left, right);
    Pages to(net.b, 3);
    shared.post(to.sge(0, 3 * kPage));
    p.a.fill(0, 9000, 2);
    p.a.post(send(p.a.sge(0, 9000)));
    net.settle(1'000'000);
    EXPECT_EQ(be16(shared.query().taken), 0u);
    // Nor does the QP keep it when it goes.
    EXPECT_EQ(serve({&to}), 3u);
    EXPECT_EQ(be16(shared.query().taken), 1u);
    expect_good(p.a, 1);
    expect_good(p.b, 1);
    EXPECT_TRUE(to.holds(0, 9000, 2));
}

// Pages come and go under traffic: all bytes arrive, and none anywhere else.
TEST_F(Odp, InvalidationsUnderTraffic)
{
    Endpoint::Options options = patient();
    options.mtu_code = 2;
    Pair p(net.a, net.b, options);
    Pages from(net.a, 16), to(net.b, 16), back(net.a, 16);
    FakeHost &ha = net.a.host;
    uint32_t n = 0;
    net.filter = [&](const Node &, Frame &) {
        if (n++ % 7 == 0) {
            Pages *each[] = {&from, &to, &back};
            EXPECT_EQ(each[ha.random() % 3]->clear(unsigned(ha.random() % 16)), 0);
        }
        return Fate{};
    };
    for (uint32_t round = 0; round < 20; round++) {
        from.fill(0, 60000, round);
        p.a.post({write_to(from.sge(0, 60000), to.va(17), to.mr.key, 0),
                  read_from(back.sge(3, 60000), to.va(17), to.mr.key)});
        serve({&from, &to, &back});
        expect_good(p.a, 1);
        ASSERT_TRUE(to.holds(17, 60000, round));
        ASSERT_TRUE(back.holds(3, 60000, round));
    }
    EXPECT_EQ(net.a.counters().cqe_error, 0u);
}

// ---- UC, UD and XRC

TEST_F(Odp, UnreliableSendsWait)
{
    for (uint8_t service : {HGHCA_QP_ST_UC, HGHCA_QP_ST_UD}) {
        Pair p(net.a, net.b, patient(service), service == HGHCA_QP_ST_UC);
        Pages from(net.a, 4);
        from.fill(0, 4 * kPage, service);
        const uint32_t length = service == HGHCA_QP_ST_UC ? 12000 : 1000;
        const uint32_t grh = service == HGHCA_QP_ST_UC ? 0 : 40;
        p.b.post_recv(p.b.sge(0, length + grh));
        Wqe wqe(HGHCA_OPCODE_SEND);
        if (grh)
            wqe.ud(p.b.qp.qpn, 0x11111111, 2);
        p.a.post(wqe.data(from.sge(3500, length)));
        EXPECT_EQ(serve({&from}), service == HGHCA_QP_ST_UC ? 4u : 2u) << int(service);
        expect_good(p.a, 1);
        expect_good(p.b, 1);
        EXPECT_EQ(std::memcmp(p.b.at(grh), from.at(3500), length), 0);
    }
}

TEST_F(Odp, UnreliableReceivesAreDroppedAndAskedFor)
{
    for (uint8_t service : {HGHCA_QP_ST_UC, HGHCA_QP_ST_UD}) {
        Pair p(net.a, net.b, patient(service), service == HGHCA_QP_ST_UC);
        Pages to(net.b, 1);
        const uint32_t grh = service == HGHCA_QP_ST_UC ? 0 : 40;
        const uint64_t dropped = net.b.counters().rx_page_absent;
        p.a.fill(0, 500, 6);
        p.b.post_recv(to.sge(0, 600));
        for (unsigned i = 0; i < 3; i++) {
            Wqe wqe(HGHCA_OPCODE_SEND);
            if (grh)
                wqe.ud(p.b.qp.qpn, 0x11111111, 2);
            p.a.post(wqe.data(p.a.sge(0, 500)));
            net.pump();
            EXPECT_EQ(net.b.counters().rx_page_absent - dropped, std::min(i + 1, 2u));
            if (i == 1) {
                EXPECT_EQ(serve({&to}), 1u);   // one event for both
            }
        }
        expect_good(p.a, 3);
        expect_good(p.b, 1);
        EXPECT_TRUE(to.holds(grh, 500, 6));
    }
}

TEST_F(Odp, AnUnreliableWriteIsDropped)
{
    Pair p(net.a, net.b, patient(HGHCA_QP_ST_UC));
    Pages to(net.b, 2);
    p.a.fill(0, 5000, 1);
    for (unsigned i = 0; i < 3; i++) {
        p.a.post(write_to(p.a.sge(0, 5000), to.va(0), to.mr.key));
        serve({&to});
    }
    expect_good(p.a, 3);
    EXPECT_EQ(net.b.counters().rx_page_absent, 2u);   // a page each
    EXPECT_TRUE(to.holds(0, 5000, 1));
}

// ---- pages that there are not

struct Failure {
    const char *name;
    uint8_t opcode;
    bool remote;
    uint8_t sender, receiver;   // syndromes; receiver 0: no receive
};

class OdpFailed : public Odp, public ::testing::WithParamInterface<Failure> {};

TEST_P(OdpFailed, TheWqeFails)
{
    const Failure c = GetParam();
    Pair p(net.a, net.b, patient());
    Pages local(net.a, 2), remote(net.b, 2);
    const bool atomic = c.opcode == HGHCA_OPCODE_ATOMIC_FA;
    const uint32_t length = atomic ? 8 : 100;
    Wqe wqe(c.opcode);
    if (c.opcode == HGHCA_OPCODE_SEND)
        p.b.post_recv(c.remote ? remote.sge(0, 100) : p.b.sge(0, 100));
    else
        wqe.raddr(c.remote ? remote.va(0) : p.b.va(0), c.remote ? remote.mr.key : p.b.buffer.key);
    if (atomic)
        wqe.atomic(1, 0);
    wqe.data(c.remote ? p.a.sge(0, length) : local.sge(0, length));
    p.a.post(wqe);
    net.settle(1'000'000);
    Node &at = c.remote ? net.b : net.a;
    auto f = next_fault(at);
    ASSERT_TRUE(f);
    ASSERT_EQ(resume(at, *f, true), 0);
    net.settle(kSecond);
    EXPECT_EQ(syndrome_of(p.a), c.sender);
    EXPECT_EQ(p.a.state(), unsigned(HGHCA_QP_STATE_ERR));
    if (c.receiver) {
        EXPECT_EQ(syndrome_of(p.b), c.receiver);
    }
    EXPECT_EQ(p.b.state(), unsigned(c.remote ? HGHCA_QP_STATE_ERR : HGHCA_QP_STATE_RTS));
    EXPECT_FALSE(next_fault(at));
    // The peer has carried out what there was no place for here, once.
    EXPECT_EQ(*reinterpret_cast<uint64_t *>(p.b.at(0)), atomic && !c.remote ? 1u : 0u);
    if (!c.remote) {
        EXPECT_LE(net.a.counters().tx_packets, 1u);
    }
}

// There is no page for the response, and the peer does not allow the request: its error is what is reported.
TEST_F(Odp, ThePeersErrorComesBeforeThatOfAPageThatThereIsNot)
{
    for (const bool atomic : {false, true}) {
        Pair p(net.a, net.b, patient());
        Pages to(net.a, 1);
        if (atomic)
            p.a.post(Wqe(HGHCA_OPCODE_ATOMIC_FA).raddr(p.b.va(0), 0x77777).atomic(2, 0).data(to.sge(0, 8)));
        else
            p.a.post(read_from(to.sge(0, 100), p.b.va(0), 0x77777));
        net.settle(1'000'000);
        auto f = next_fault(net.a);
        ASSERT_TRUE(f);
        ASSERT_EQ(resume(net.a, *f, true), 0);
        net.settle(kSecond);
        EXPECT_EQ(syndrome_of(p.a), HGHCA_SYNDROME_REMOTE_ACCESS_ERR);
        EXPECT_FALSE(next_fault(net.a));
    }
}

// The page of a response that there was not comes after all, and has gone again the next time.
TEST_F(Odp, APlaceThatComesAfterAll)
{
    Pair p(net.a, net.b, patient());
    Pages to(net.a, 1);
    p.b.fill(0, 100, 3);
    for (unsigned round = 0; round < 3; round++) {
        p.a.post(read_from(to.sge(0, 100), p.b.va(0), p.b.buffer.key));
        net.pump();
        auto f = next_fault(net.a);
        ASSERT_TRUE(f) << round;
        to.bring(0);
        ASSERT_EQ(resume(net.a, *f, true), 0);
        net.settle(100'000'000);
        expect_good(p.a, 1);
        EXPECT_TRUE(to.holds(0, 100, 3));
        ASSERT_EQ(to.clear(0), 0);
    }
}

// Nobody brings pages: the request goes, and fails with its response.
TEST_F(Odp, NobodyWhoBringsAPlace)
{
    ASSERT_EQ(net.a.driver.map_eq(net.a.driver.async.eqn, 1ull << HGHCA_EVENT_PAGE_FAULT, true), 0);
    Pair p(net.a, net.b, patient());
    Pages to(net.a, 1);
    p.a.post(Wqe(HGHCA_OPCODE_ATOMIC_FA).raddr(p.b.va(0), p.b.buffer.key).atomic(2, 0).data(to.sge(0, 8)));
    net.pump();
    EXPECT_EQ(syndrome_of(p.a), HGHCA_SYNDROME_LOCAL_PROT_ERR);
    EXPECT_EQ(*reinterpret_cast<uint64_t *>(p.b.at(0)), 2u);
}

INSTANTIATE_TEST_SUITE_P(
    Operations, OdpFailed,
    ::testing::Values(
        Failure{"send", HGHCA_OPCODE_SEND, false, HGHCA_SYNDROME_LOCAL_PROT_ERR, 0},
        Failure{"write", HGHCA_OPCODE_RDMA_WRITE, false, HGHCA_SYNDROME_LOCAL_PROT_ERR, 0},
        Failure{"read", HGHCA_OPCODE_RDMA_READ, false, HGHCA_SYNDROME_LOCAL_PROT_ERR, 0},
        Failure{"atomic", HGHCA_OPCODE_ATOMIC_FA, false, HGHCA_SYNDROME_LOCAL_PROT_ERR, 0},
        Failure{"receive", HGHCA_OPCODE_SEND, true, HGHCA_SYNDROME_REMOTE_OP_ERR, HGHCA_SYNDROME_LOCAL_PROT_ERR},
        Failure{"target_of_write", HGHCA_OPCODE_RDMA_WRITE, true, HGHCA_SYNDROME_REMOTE_ACCESS_ERR, 0},
        Failure{"source_of_read", HGHCA_OPCODE_RDMA_READ, true, HGHCA_SYNDROME_REMOTE_ACCESS_ERR, 0},
        Failure{"target_of_atomic", HGHCA_OPCODE_ATOMIC_FA, true, HGHCA_SYNDROME_REMOTE_ACCESS_ERR, 0}),
    [](const auto &info) { return std::string(info.param.name); });

// There was none, but there is one when the side looks again: nothing fails, neither then nor when it has gone once more.
TEST_F(Odp, APageThatComesAfterAll)
{
    for (const uint8_t service : {HGHCA_QP_ST_RC, HGHCA_QP_ST_UC, HGHCA_QP_ST_UD}) {
        for (const bool receives : {false, true}) {
            const bool reliable = service == HGHCA_QP_ST_RC, datagram = service == HGHCA_QP_ST_UD;
            Pair p(net.a, net.b, patient(service), !datagram);
            Node &node = receives ? net.b : net.a;
            Pages pages(node, 1);
            auto ask = [&] {
                Wqe wqe(HGHCA_OPCODE_SEND);
                if (datagram)
                    wqe.ud(p.b.qp.qpn, 0x11111111, 2);
                p.a.post(wqe.data(receives ? p.a.sge(0, 100) : pages.sge(0, 100)));
                net.pump();
                auto f = next_fault(node);
                if (f)
                    pages.bring(0);
                return f;
            };
            // What is lost for want of a page is sent once more.
            const bool again = receives && !reliable;
            for (unsigned round = 0; round < 3; round++) {
                p.b.post_recv(receives ? pages.sge(0, 200) : p.b.sge(0, 200));
                auto f = ask();
                ASSERT_TRUE(f) << int(service) << receives << round;
                ASSERT_EQ(resume(node, *f, true), 0);
                if (again) {
                    EXPECT_FALSE(ask());
                }
                net.settle(100'000'000);
                expect_good(p.a, again ? 2 : 1);
                expect_good(p.b, 1);
                ASSERT_EQ(pages.clear(0), 0);
            }
        }
    }
}

// A message of UC that is dropped comes again from its first packet on: that its page is there says nothing of the hole
// behind it.
TEST_F(Odp, AHoleBehindAPageThatIsThere)
{
    Pair p(net.a, net.b, patient(HGHCA_QP_ST_UC));
    Pages to(net.b, 2);
    to.bring(0);
    p.a.fill(0, 2 * kPage, 6);
    p.b.post_recv(to.sge(0, 2 * kPage));
    p.a.post(send(p.a.sge(0, 2 * kPage)));
    net.settle(1'000'000);
    auto f = next_fault(net.b);
    ASSERT_TRUE(f);
    EXPECT_EQ(f->va, to.va(kPage));
    ASSERT_EQ(resume(net.b, *f, true), 0);
    p.a.post(send(p.a.sge(0, 2 * kPage)));
    net.settle(1'000'000);
    EXPECT_FALSE(next_fault(net.b));
    expect_good(p.a, 2);
    EXPECT_EQ(syndrome_of(p.b), HGHCA_SYNDROME_LOCAL_PROT_ERR);
    EXPECT_EQ(p.b.state(), unsigned(HGHCA_QP_STATE_ERR));
}

// The region goes while its page is awaited: its key is wrong then.
TEST_F(Odp, ARegionThatGoesWhileAPageIsAwaited)
{
    Pair p(net.a, net.b, patient());
    Pages from(net.a, 1);
    p.a.post(send(from.sge(0, 100)));
    net.pump();
    auto f = next_fault(net.a);
    ASSERT_TRUE(f);
    ASSERT_EQ(net.a.driver.destroy_mr(from.mr), 0);
    ASSERT_EQ(resume(net.a, *f), 0);
    net.pump();
    EXPECT_EQ(syndrome_of(p.a), HGHCA_SYNDROME_LOCAL_PROT_ERR);
}

// ---- tokens, events that are lost, QPs that go

TEST_F(Odp, AStaleResumeChangesNothing)
{
    Pair p(net.a, net.b, patient());
    Pages from(net.a, 2);
    p.a.post(send(from.sge(0, 100)));
    net.pump();
    auto f = next_fault(net.a);
    ASSERT_TRUE(f);
    Fault wrong = *f;
    wrong.what += 1u << 16;
    EXPECT_EQ(resume(net.a, wrong, true), HGHCA_CMD_STAT_BAD_RES_STATE);
    wrong = *f;
    wrong.what ^= HGHCA_PAGE_FAULT_RESPONDER;
    EXPECT_EQ(resume(net.a, wrong, true), HGHCA_CMD_STAT_BAD_RES_STATE);
    // Without the page: asked for again, under another token.
    EXPECT_EQ(resume(net.a, *f), 0);
    net.pump();
    auto again = next_fault(net.a);
    ASSERT_TRUE(again);
    EXPECT_NE(again->token(), f->token());
    EXPECT_EQ(resume(net.a, *f, true), HGHCA_CMD_STAT_BAD_RES_STATE);
    p.b.post_recv(p.b.sge(0, 100));
    from.bring(0);
    EXPECT_EQ(resume(net.a, *again), 0);
    EXPECT_EQ(resume(net.a, *again), HGHCA_CMD_STAT_BAD_RES_STATE);
    net.settle(kSecond);
    expect_good(p.a, 1);
}

TEST_F(Odp, AQpThatGoesDoesNotWait)
{
    Pair p(net.a, net.b, patient());
    Pages from(net.a, 2), to(net.b, 2);
    p.a.post(send(from.sge(0, 100)));
    net.pump();
    auto f = next_fault(net.a);
    ASSERT_TRUE(f);
    ASSERT_EQ(net.a.driver.to_error(p.a.qp.qpn), 0);
    EXPECT_EQ(syndrome_of(p.a), HGHCA_SYNDROME_WR_FLUSH_ERR);
    EXPECT_EQ(resume(net.a, *f), HGHCA_CMD_STAT_BAD_RES_STATE);
    ASSERT_EQ(net.a.driver.to_reset(p.a.qp.qpn), 0);
    EXPECT_EQ(resume(net.a, *f), HGHCA_CMD_STAT_BAD_QPEE_STATE);

    // The QP that gets its number is not resumed by what is left of it.
    TestDriver &d = net.a.driver;
    hghca_qpc c = d.init_qpc(p.a.qp, HGHCA_QP_ST_RC, p.a.cq, p.a.cq);
    ASSERT_EQ(d.modify(HGHCA_CMD_RST2INIT_QPEE, p.a.qp.qpn, c), 0);
    p.a.sq_head = 0;
    Endpoint other(net.b, patient());
    p.a.to_rtr(other);
    other.to_rtr(p.a);
    p.a.to_rts();
    p.a.post(send(from.sge(0, 100)));
    net.pump();
    auto second = next_fault(net.a);
    ASSERT_TRUE(second);
    EXPECT_EQ(resume(net.a, *f, true), HGHCA_CMD_STAT_BAD_RES_STATE);
    EXPECT_EQ(p.a.state(), unsigned(HGHCA_QP_STATE_RTS));
}

TEST_F(Odp, NobodyWhoBringsPages)
{
    for (Node *node : {&net.a, &net.b})
        ASSERT_EQ(node->driver.map_eq(node->driver.async.eqn, 1ull << HGHCA_EVENT_PAGE_FAULT, true), 0);
    Pages from(net.a, 1), to(net.b, 1);
    Pair p(net.a, net.b, patient());
    p.a.post(send(from.sge(0, 100)));
    net.pump();
    EXPECT_EQ(syndrome_of(p.a), HGHCA_SYNDROME_LOCAL_PROT_ERR);
    Pair q(net.a, net.b, patient());
    q.a.post(write_to(q.a.sge(0, 100), to.va(0), to.mr.key));
    net.pump();
    EXPECT_EQ(syndrome_of(q.a), HGHCA_SYNDROME_REMOTE_ACCESS_ERR);
    EXPECT_EQ(net.a.counters().page_faults + net.b.counters().page_faults, 0u);
}

// An EQ of two entries that is full: each side asks again once there is room.
class OdpFull : public Odp {
protected:
    // The EQ of faults of a node, full.
    TestDriver::Eq full_eq(Node &node)
    {
        TestDriver &d = node.driver;
        TestDriver::Eq eq = d.create_eq(1, 2);
        for (unsigned i = 0; i < 2; i++)
            node.host.as<hghca_eqe>(eq.buffer.dma)[i].owner = 0;
        TestDriver::must(d.map_eq(eq.eqn, 1ull << HGHCA_EVENT_PAGE_FAULT), "MAP_EQ");
        return eq;
    }
    // Makes room, and brings what is asked for.
    unsigned make_room(Node &node, TestDriver::Eq &eq, Pages &pages)
    {
        for (unsigned i = 0; i < 2; i++)
            node.host.as<hghca_eqe>(eq.buffer.dma)[i].owner = HGHCA_CQ_ENTRY_OWNER_HW;
        unsigned n = 0;
        for (unsigned round = 0; round < 10; round++) {
            net.settle(10'000'000);
            hghca_eqe eqe;
            while (node.driver.poll(eq, eqe)) {
                if (eqe.type != HGHCA_EVENT_PAGE_FAULT)
                    continue;
                n++;
                pages.bring(0, pages.count);
                const auto &e = eqe.event.page_fault;
                EXPECT_EQ(resume(node, Fault{be32(e.qpn), be32(e.what), 0, 0, 0}), 0);
            }
        }
        return n;
    }
};

TEST_F(OdpFull, TheSendSideAsksAgain)
{
    for (uint8_t service : {HGHCA_QP_ST_RC, HGHCA_QP_ST_UC, HGHCA_QP_ST_UD}) {
        Pair p(net.a, net.b, patient(service), service != HGHCA_QP_ST_UD);
        Pages from(net.a, 1);
        from.fill(0, 100, 1);
        TestDriver::Eq eq = full_eq(net.a);
        const uint32_t grh = service == HGHCA_QP_ST_UD ? 40 : 0;
        p.b.post_recv(p.b.sge(0, 200));
        Wqe wqe(HGHCA_OPCODE_SEND);
        if (grh)
            wqe.ud(p.b.qp.qpn, 0x11111111, 2);
        p.a.post(wqe.data(from.sge(0, 100)));
        const uint64_t overruns = net.a.counters().eq_overrun;
        net.settle(20'000'000);
        // Once a millisecond, not more.
        EXPECT_GE(net.a.counters().eq_overrun - overruns, 10u);
        EXPECT_LE(net.a.counters().eq_overrun - overruns, 40u);
        EXPECT_FALSE(p.a.poll());
        EXPECT_EQ(make_room(net.a, eq, from), 1u);
        expect_good(p.a, 1);
        expect_good(p.b, 1);
        EXPECT_TRUE(p.b.holds(grh, 100, 1));
    }
}

TEST_F(OdpFull, TheReceiveSideAsksAgain)
{
    Pair p(net.a, net.b, patient());
    Pages to(net.b, 1);
    TestDriver::Eq eq = full_eq(net.b);
    p.a.fill(0, 100, 1);
    p.a.post(write_to(p.a.sge(0, 100), to.va(0), to.mr.key));
    net.settle(1'000'000);
    EXPECT_FALSE(p.a.poll());
    EXPECT_EQ(make_room(net.b, eq, to), 1u);
    expect_good(p.a, 1);
    EXPECT_TRUE(to.holds(0, 100, 1));
}

TEST_F(OdpFull, APlaceForAnAnswerIsAskedForAgain)
{
    Pair p(net.a, net.b, patient());
    Pages to(net.a, 4);
    to.bring(0, 4);
    p.b.fill(0, 9000, 5);
    TestDriver::Eq eq = full_eq(net.a);
    bool cleared = false;
    net.filter = [&](const Node &from, Frame &) {
        if (&from == &net.b && !std::exchange(cleared, true)) {
            EXPECT_EQ(to.clear(0, 4), 0);
        }
        return Fate{};
    };
    p.a.post(read_from(to.sge(0, 9000), p.b.va(0), p.b.buffer.key));
    net.settle(20'000'000);
    EXPECT_FALSE(p.a.poll());
    EXPECT_GE(make_room(net.a, eq, to), 1u);
    expect_good(p.a, 1);
    EXPECT_TRUE(to.holds(0, 9000, 5));
}

// ---- what else goes on meanwhile

TEST_F(Odp, RequestsBeforeItAreAcknowledgedWhileOneWaits)
{
    Pair p(net.a, net.b, Endpoint::Options{});
    Pages from(net.a, 1);
    p.a.fill(0, 100, 1);
    p.a.post({write_to(p.a.sge(0, 100), p.b.va(0), p.b.buffer.key), write_to(from.sge(0, 100), p.b.va(200), p.b.buffer.key),
              write_to(p.a.sge(0, 100), p.b.va(400), p.b.buffer.key)});
    net.settle(20 * kSecond);   // longer than all time-outs together
    expect_good(p.a, 1);
    EXPECT_TRUE(p.b.holds(0, 100, 1));
    EXPECT_FALSE(p.b.holds(400, 100, 1));
    EXPECT_EQ(serve({&from}), 1u);
    expect_good(p.a, 2);
    EXPECT_TRUE(p.b.holds(400, 100, 1));
}

TEST_F(Odp, WhatIsLostIsSentAgainThoughOneWaits)
{
    Pair p(net.a, net.b, Endpoint::Options{});
    Pages from(net.a, 1);
    p.a.fill(0, 100, 1);
    bool lost = false;
    net.filter = [&](const Node &node, Frame &) { return Fate{&node == &net.a && !std::exchange(lost, true) ? 0u : 1u}; };
    p.a.post({write_to(p.a.sge(0, 100), p.b.va(0), p.b.buffer.key), write_to(from.sge(0, 100), p.b.va(200), p.b.buffer.key)});
    net.settle(20 * kSecond);
    EXPECT_FALSE(p.a.poll());
    EXPECT_EQ(serve({&from}), 1u);
    net.settle(kSecond);
    expect_good(p.a, 2);
    EXPECT_TRUE(p.b.holds(0, 100, 1));
}

TEST_F(Odp, ASendQueueDrainsOnceItsPageIsThere)
{
    Pair p(net.a, net.b, patient());
    Pages from(net.a, 1);
    p.b.post_recv(p.b.sge(0, 100));
    p.a.post(send(from.sge(0, 100)));
    net.pump();
    p.a.to_sqd(true);
    net.pump();
    hghca_qpc c;
    ASSERT_EQ(net.a.driver.query(HGHCA_CMD_QUERY_QP, c, p.a.qp.qpn), 0);
    EXPECT_TRUE(be32(c.flags) & HGHCA_QPC_SQ_DRAINING);
    serve({&from});
    ASSERT_EQ(net.a.driver.query(HGHCA_CMD_QUERY_QP, c, p.a.qp.qpn), 0);
    EXPECT_FALSE(be32(c.flags) & HGHCA_QPC_SQ_DRAINING);
    expect_good(p.a, 1);
}

// A QP connected to itself: both its sides wait at the same time.
TEST_F(Odp, BothSidesOfOneQp)
{
    Endpoint e(net.a, patient());
    e.to_rtr(e);
    e.to_rts();
    Pages from(net.a, 2), to(net.a, 2, kOnDemand, 0x5000000);
    from.fill(0, 8000, 1);
    e.post_recv(to.sge(0, 8000));
    e.post(send(from.sge(0, 8000)));
    EXPECT_EQ(serve({&from, &to}), 4u);
    expect_good(e, 2);
    EXPECT_TRUE(to.holds(0, 8000, 1));
}

// ---- what a guest makes of contexts that were put out to its memory

class OdpForged : public Odp {
protected:
    OdpForged() : Odp(1) {}
};

TEST_F(OdpForged, ARegionIsNone)
{
    constexpr uint32_t kMptMagic = 0x4d505431, kHeader = 16;
    constexpr uint32_t kForged[] = {HGHCA_MPT_FLAG_PHYSICAL, HGHCA_MPT_FLAG_FAST_REG, HGHCA_MPT_FLAG_FREE,
                                    HGHCA_MPT_FLAG_DEVICE};
    Pages pages(net.a, 1);
    pages.bring(0);
    MemoryTable &memory = *net.a.device.memory;
    auto look = [&] {
        PacketSegments s;
        AbsentPage absent;
        return memory.locate(Key(pages.mr.key), kPd, kVa, 8, Access::LocalRead, s, absent);
    };
    for (const uint32_t flag : kForged) {
        memory.trim(0);
        uint32_t *flags = nullptr;
        for (uint64_t dma = FakeHost::kBase; dma < net.a.host.end() && !flags; dma += 64) {
            auto *at = net.a.host.as<uint32_t>(dma + kHeader);
            if (*net.a.host.as<uint32_t>(dma) == kMptMagic && *at & HGHCA_ACCESS_ON_DEMAND)
                flags = at;
        }
        ASSERT_NE(flags, nullptr);
        *flags |= flag;
        EXPECT_EQ(look(), Found::No) << flag;
        *flags &= ~flag;
        EXPECT_EQ(look(), Found::Yes) << flag;
    }
}

// Any address may stand in an MTT, and none is followed beyond what there is.
TEST_F(Odp, AnEntryThatLeadsNowhere)
{
    Pair p(net.a, net.b, patient());
    Pages from(net.a, 1);
    const uint64_t nowhere = net.a.host.end() + 0x100000;
    ASSERT_EQ(net.a.driver.write_mtt(from.mr.first_mtt, &nowhere, 1), 0);
    p.a.post(send(from.sge(0, 100)));
    net.pump();
    EXPECT_EQ(syndrome_of(p.a), HGHCA_SYNDROME_LOCAL_PROT_ERR);
    EXPECT_FALSE(next_fault(net.a));
}

// Resumed again and again without a page: one event each, and the device comes to rest between them.
TEST_F(Odp, ResumedWithoutAPage)
{
    Pair p(net.a, net.b, patient());
    Pages from(net.a, 1);
    p.a.post(send(from.sge(0, 100)));
    for (unsigned i = 0; i < 100; i++) {
        net.pump();
        auto f = next_fault(net.a);
        ASSERT_TRUE(f);
        ASSERT_FALSE(next_fault(net.a));
        ASSERT_EQ(resume(net.a, *f), 0);
    }
    EXPECT_EQ(net.a.counters().page_faults, 100u);
}

}  // namespace
}  // namespace hghca::test::odp_test
