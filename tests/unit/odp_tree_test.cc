// SPDX-License-Identifier: GPL-2.0-or-later
// Regions on demand whose MTTs are a tree (interface document, 4.23).
#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "page_fault.h"
#include "verbs.h"

namespace hghca::test::odp_tree_test {
namespace {

constexpr uint32_t kPd = TestDriver::kPd;
constexpr uint32_t kTree = TestDriver::kRw | HGHCA_ACCESS_ON_DEMAND | HGHCA_MPT_FLAG_TREE;
constexpr uint64_t kPage = 4096;
constexpr uint64_t kEntries = 4096;              // of a table
constexpr uint64_t kLeaf = kEntries * kPage;     // bytes behind a table of pages: 16 MB
constexpr uint64_t kMiddle = kEntries * kLeaf;   // behind one of these: 64 GB
constexpr uint64_t kMost = kEntries * kMiddle;   // 256 TB
constexpr uint64_t kUser = 1ull << 47;           // what a process has on x86
constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kNoTable = (1ull << 27) - kEntries + 1;   // one MTT too far

// A region that is a tree, and what its software does. Tables and pages are made as they are needed.
class Tree {
public:
    explicit Tree(Node &node, uint64_t length = kUser) : node(node), root(new_table()), key_(node.driver.new_key())
    {
        TestDriver::must(sw2hw(kTree, 0, length, root), "SW2HW_MPT");
    }
    uint32_t key() const { return key_; }
    uint8_t sw2hw(uint32_t flags, uint64_t start, uint64_t length, uint64_t first, unsigned page_shift = 12)
    {
        TestDriver &d = node.driver;
        return d.post(HGHCA_CMD_SW2HW_MPT, d.mpt_mailbox(key_, start, length, first, flags, kPd, page_shift),
                      d.mpt_index(key_));
    }
    uint8_t hw2sw() { return node.driver.destroy_key(key_); }
    uint64_t new_table()
    {
        const TestDriver::Mr run = node.driver.create_mr_without_pages(0, kLeaf);
        TestDriver::must(node.driver.destroy_mr(run), "HW2SW_MPT");
        TestDriver::must(node.driver.command(HGHCA_CMD_CLEAR_MTT, run.first_mtt, kEntries).status, "CLEAR_MTT");
        return run.first_mtt;
    }
    // Where the MTT stands through which `va` is found: level 0 that of its page, 2 in the root.
    uint64_t mtt(unsigned level, uint64_t va)
    {
        return table(level, va) + (va / kPage >> 12 * level) % kEntries;
    }
    void write(uint64_t mtt, uint64_t entry) { TestDriver::must(node.driver.write_mtt(mtt, &entry, 1), "WRITE_MTT"); }
    void clear(unsigned level, uint64_t va)
    {
        TestDriver::must(node.driver.command(HGHCA_CMD_CLEAR_MTT, mtt(level, va), 1).status, "CLEAR_MTT");
    }
    // Undoes clear().
    void restore(unsigned level, uint64_t va)
    {
        if (level)
            write(mtt(level, va), table(level - 1, va) << HGHCA_MTT_TABLE_INDEX_SHIFT);
        else
            bring(va);
    }
    void bring(uint64_t va, uint64_t flags = 0) { write(mtt(0, va), dma_of(va) | flags); }
    uint64_t dma_of(uint64_t va)
    {
        auto [at, fresh] = pages_.try_emplace(va / kPage, 0);
        if (fresh)
            at->second = node.host.alloc(kPage);
        return at->second;
    }
    uint8_t *at(uint64_t va) { return node.host.at(dma_of(va) + va % kPage); }
    void fill(uint64_t va, size_t length, uint32_t seed)
    {
        for (size_t i = 0; i < length; i++)
            *at(va + i) = Endpoint::pattern(seed, i);
    }
    bool holds(uint64_t va, size_t length, uint32_t seed)
    {
        for (size_t i = 0; i < length; i++)
            if (*at(va + i) != Endpoint::pattern(seed, i))
                return false;
        return true;
    }
    Sge sge(uint64_t va, uint32_t length) const { return {length, key_, va}; }
    Found look(uint64_t va, uint64_t length, Access access, PacketSegments &to, AbsentPage &absent)
    {
        to.clear();
        return node.device.memory->locate(Key(key_), kPd, va, length, access, to, absent);
    }
    Found look(uint64_t va, uint64_t length = 1, Access access = Access::LocalRead)
    {
        PacketSegments to;
        AbsentPage absent;
        return look(va, length, access, to, absent);
    }

    Node &node;
    const uint64_t root;

private:
    uint64_t table(unsigned level, uint64_t va)
    {
        if (level == HGHCA_MTT_TREE_LEVELS - 1)
            return root;
        auto [at, fresh] = tables_.try_emplace({level, va / kPage >> 12 * (level + 1)}, 0);
        if (fresh) {
            at->second = new_table();
            restore(level + 1, va);
        }
        return at->second;
    }

    uint32_t key_;
    std::map<std::pair<unsigned, uint64_t>, uint64_t> tables_;
    std::map<uint64_t, uint64_t> pages_;
};

Endpoint::Options patient()
{
    Endpoint::Options o;
    o.ack_timeout = 0;
    o.rnr_timer = 12;   // 0.64 ms
    return o;
}

class OdpTree : public ::testing::Test {
protected:
    explicit OdpTree(uint32_t cache_entries = 0) : net(cache_entries) {}

    // Brings one page for each fault, until nothing more is asked for; the number of faults.
    unsigned serve(std::initializer_list<Tree *> trees)
    {
        unsigned n = 0;
        for (unsigned idle = 0; idle < 3; idle++) {
            net.settle(100'000'000);
            for (Node *node : {&net.a, &net.b}) {
                while (auto f = next_fault(*node)) {
                    for (Tree *t : trees)
                        if (&t->node == node && t->key() == f->key)
                            t->bring(f->va, f->write() ? 0 : HGHCA_MTT_READ_ONLY);
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
    Network net;
};

TEST_F(OdpTree, WhatOneMayBe)
{
    Tree tree(net.a);
    hghca_mpt mpt;
    ASSERT_EQ(net.a.driver.query(HGHCA_CMD_QUERY_MPT, mpt, net.a.driver.mpt_index(tree.key())), 0);
    EXPECT_TRUE(be32(mpt.flags) & HGHCA_MPT_FLAG_TREE);
    EXPECT_EQ(be32(mpt.mtt_seg_l), tree.root);
    ASSERT_EQ(tree.hw2sw(), 0);

    const uint32_t rw = TestDriver::kRw;
    struct {
        const char *what;
        uint32_t flags;
        uint64_t start, length, first;
        unsigned page_shift;
        uint8_t status;
    } cases[] = {
        {"all there can be", kTree, 0, kMost, tree.root, 12, 0},
        {"a byte more", kTree, 0, kMost + 1, tree.root, 12, HGHCA_CMD_STAT_BAD_SEG_PARAM},
        {"a page begun more", kTree, 1, kMost, tree.root, 12, HGHCA_CMD_STAT_BAD_SEG_PARAM},
        {"beginning anywhere", kTree, kUser + 1, kMost - 1, tree.root, 12, 0},
        {"with larger pages", kTree, 0, 2 * kMost, tree.root, 13, 0},
        {"all addresses", kTree, 0, ~0ull, tree.root, 30, 0},
        {"one that wraps", kTree, ~0ull, 2, tree.root, 12, HGHCA_CMD_STAT_BAD_SEG_PARAM},
        {"small", kTree, 0, 1, tree.root, 12, 0},
        {"the last table", kTree, 0, 1, kNoTable - 1, 12, 0},
        {"a root that passes the table", kTree, 0, 1, kNoTable, 12, HGHCA_CMD_STAT_BAD_SEG_PARAM},
        {"a root far away", kTree, 0, 1, ~0ull, 12, HGHCA_CMD_STAT_BAD_SEG_PARAM},
        {"not on demand", rw | HGHCA_MPT_FLAG_TREE, 0, 1, tree.root, 12, HGHCA_CMD_STAT_BAD_PARAM},
        {"physical", kTree | HGHCA_MPT_FLAG_PHYSICAL, 0, 1, tree.root, 12, HGHCA_CMD_STAT_BAD_PARAM},
        {"on the device", rw | HGHCA_MPT_FLAG_TREE | HGHCA_MPT_FLAG_DEVICE, 0, 1, 0, 12, HGHCA_CMD_STAT_BAD_PARAM},
        {"for fast registration", rw | HGHCA_MPT_FLAG_TREE | HGHCA_MPT_FLAG_FAST_REG | HGHCA_MPT_FLAG_FREE, 0, 1,
         tree.root, 12, HGHCA_CMD_STAT_BAD_PARAM},
    };
    for (const auto &c : cases) {
        EXPECT_EQ(tree.sw2hw(c.flags, c.start, c.length, c.first, c.page_shift), c.status) << c.what;
        if (!c.status) {
            EXPECT_EQ(tree.hw2sw(), 0) << c.what;
        }
    }
    hghca_mpt window = net.a.driver.mpt_mailbox(tree.key(), 0, 0, 0);
    window.flags = be32(HGHCA_MPT_FLAG_FREE | HGHCA_MPT_FLAG_TREE);
    EXPECT_EQ(net.a.driver.post(HGHCA_CMD_SW2HW_MPT, window, net.a.driver.mpt_index(tree.key())),
              HGHCA_CMD_STAT_BAD_PARAM);
}

TEST_F(OdpTree, EachLevelMayBeAbsent)
{
    const uint64_t va = 0x7f1234567123;
    Tree tree(net.a);
    PacketSegments to;
    AbsentPage absent{};
    EXPECT_EQ(tree.look(va, 8, Access::RemoteWrite, to, absent), Found::Absent);
    EXPECT_EQ(absent.key, Key(tree.key()));
    EXPECT_EQ(absent.va, va);
    EXPECT_EQ(absent.length, 8u);
    EXPECT_TRUE(absent.write);
    tree.mtt(1, va);   // the root leads to a table
    EXPECT_EQ(tree.look(va), Found::Absent);
    tree.mtt(0, va);   // and that to one of pages
    EXPECT_EQ(tree.look(va), Found::Absent);
    tree.bring(va, HGHCA_MTT_READ_ONLY);
    EXPECT_EQ(tree.look(va, 8, Access::RemoteWrite), Found::Absent);
    EXPECT_EQ(tree.look(va, 8, Access::LocalRead, to, absent), Found::Yes);
    ASSERT_EQ(to.size(), 1u);
    EXPECT_EQ(to[0].dma, tree.dma_of(va) + va % kPage);
    tree.bring(va);
    EXPECT_EQ(tree.look(va, 8, Access::RemoteWrite), Found::Yes);
    // Its neighbours on each level are not.
    for (const uint64_t away : {kPage, kLeaf, kMiddle}) {
        EXPECT_EQ(tree.look(va + away), Found::Absent) << away;
        EXPECT_EQ(tree.look(va - away), Found::Absent) << away;
    }
    for (const unsigned level : {0u, 1u, 2u}) {
        tree.clear(level, va);
        EXPECT_EQ(tree.look(va), Found::Absent) << level;
        tree.restore(level, va);
        EXPECT_EQ(tree.look(va), Found::Yes) << level;
    }
    // What is wrong is not absent.
    EXPECT_EQ(tree.look(kUser), Found::No);
    EXPECT_EQ(tree.look(kUser - 1, 2), Found::No);
    EXPECT_EQ(tree.look(~0ull), Found::No);
    EXPECT_EQ(net.a.device.memory->locate(Key(tree.key()), kPd + 1, va, 8, Access::LocalRead, to, absent), Found::No);
}

TEST_F(OdpTree, RunsCrossTables)
{
    Tree tree(net.a);
    for (const uint64_t border : {5 * kLeaf, 3 * kMiddle}) {
        tree.bring(border - kPage);
        EXPECT_EQ(tree.look(border - 100, 200), Found::Absent);
        tree.bring(border);
        PacketSegments to;
        AbsentPage absent;
        ASSERT_EQ(tree.look(border - 100, 200, Access::LocalWrite, to, absent), Found::Yes);
        uint64_t bytes = 0;
        for (const Segment &s : to)
            bytes += s.length;
        EXPECT_EQ(bytes, 200u);
        EXPECT_EQ(to[0].dma, tree.dma_of(border - kPage) + kPage - 100);
    }
    // The first and the last page that there can be.
    tree.bring(0);
    tree.bring(kUser - 1);
    EXPECT_EQ(tree.look(0, kPage), Found::Yes);
    EXPECT_EQ(tree.look(kUser - kPage, kPage), Found::Yes);
}

// A region need not begin at 0, nor its pages be of 4 KB.
TEST_F(OdpTree, BeginsAnywhere)
{
    Tree tree(net.a);
    const uint64_t dma = net.a.host.alloc(4 * kPage, 4 * kPage), start = kUser + 5000;
    ASSERT_EQ(tree.hw2sw(), 0);
    ASSERT_EQ(tree.sw2hw(kTree, start, kUser, tree.root, 14), 0);
    tree.write(tree.mtt(0, kPage), dma);   // page 1 of the region
    PacketSegments to;
    AbsentPage absent;
    EXPECT_EQ(tree.look(start), Found::Absent);
    EXPECT_EQ(tree.look(start - 1), Found::No);
    ASSERT_EQ(tree.look(kUser + 4 * kPage + 100, 8, Access::LocalWrite, to, absent), Found::Yes);
    EXPECT_EQ(to[0].dma, dma + 100);
    EXPECT_EQ(tree.look(kUser + 8 * kPage - 1), Found::Yes);
    EXPECT_EQ(tree.look(kUser + 8 * kPage), Found::Absent);
}

TEST_F(OdpTree, AnEntryThatLeadsNowhere)
{
    const uint64_t va = 0x7f1234567000;
    // The last one has no ICM.
    const uint64_t tables[] = {kNoTable, 1ull << 27, (1ull << 52) - 1, 131072};
    for (const unsigned level : {1u, 2u}) {
        for (const uint64_t table : tables) {
            Pair p(net.a, net.b, patient()), beside(net.a, net.b, patient());
            Tree tree(net.a), remote(net.b);
            tree.bring(va);
            remote.bring(va);
            ASSERT_EQ(tree.look(va), Found::Yes);
            for (Tree *t : {&tree, &remote})
                t->write(t->mtt(level, va), table << HGHCA_MTT_TABLE_INDEX_SHIFT);
            EXPECT_EQ(tree.look(va), Found::No) << table;
            p.a.post(send(tree.sge(va, 8)));
            beside.a.post(write_to(beside.a.sge(0, 8), va, remote.key()));
            net.pump();
            EXPECT_EQ(syndrome_of(p.a), HGHCA_SYNDROME_LOCAL_PROT_ERR);
            EXPECT_EQ(syndrome_of(beside.a), HGHCA_SYNDROME_REMOTE_ACCESS_ERR);
            EXPECT_FALSE(next_fault(net.a));
            EXPECT_FALSE(next_fault(net.b));
        }
    }
}

TEST_F(OdpTree, HoldsNoQueueAndNoWindow)
{
    TestDriver &d = net.a.driver;
    Tree tree(net.a);
    ASSERT_EQ(tree.hw2sw(), 0);
    ASSERT_EQ(tree.sw2hw(kTree | HGHCA_ACCESS_MW_BIND, 0, kUser, tree.root), 0);
    for (uint64_t va = 0; va < 8 * kPage; va += kPage)
        tree.bring(va);
    EXPECT_EQ(d.post(HGHCA_CMD_SW2HW_EQ, d.eqc_mailbox(4, tree.key(), 1), 5), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(d.post(HGHCA_CMD_SW2HW_CQ, d.cqc_mailbox(100, 4, tree.key(), d.async.eqn), 100),
              HGHCA_CMD_STAT_BAD_PARAM);
    MemoryTable &memory = *net.a.device.memory;
    uint32_t word = 0;
    EXPECT_FALSE(memory.read(Key(tree.key()), kPd, 0, &word, sizeof(word)));
    EXPECT_FALSE(memory.write(Key(tree.key()), kPd, 0, &word, sizeof(word)));
    const uint32_t window = d.create_window(true);
    EXPECT_EQ(memory.bind_window({kPd, Qpn(8)}, {HGHCA_ACCESS_REMOTE_READ, Key(window), Key(tree.key()), 0, kPage}),
              Allowed::No);
}

// ---- traffic

struct Operation {
    const char *name;
    uint8_t opcode;
    uint32_t length;
};

class OdpTreeEach : public OdpTree, public ::testing::WithParamInterface<std::tuple<Operation, uint32_t>> {
protected:
    OdpTreeEach() : OdpTree(std::get<1>(GetParam())) {}
};

// All pages of both ends are absent, and so are the tables: one border of the source is one of tables, too.
TEST_P(OdpTreeEach, IsTheSameAsOnPagesThatAreThere)
{
    const Operation op = std::get<0>(GetParam());
    const uint64_t here = 9 * kMiddle - 5000, there = 0x7fff00000000 + 104;
    Pair p(net.a, net.b, patient());
    Tree from(net.a), to(net.b);
    const bool inward = op.opcode == HGHCA_OPCODE_RDMA_READ, atomic = op.opcode == HGHCA_OPCODE_ATOMIC_FA;
    const uint64_t before = 0x1122334455667788;
    if (atomic)
        std::memcpy(to.at(there), &before, sizeof(before));
    else if (inward)
        to.fill(there, op.length, 7);
    else
        from.fill(here, op.length, 7);

    Wqe wqe(op.opcode);
    if (op.opcode != HGHCA_OPCODE_SEND)
        wqe.raddr(there, to.key());
    if (atomic)
        wqe.atomic(5, 0);
    wqe.data(from.sge(here, op.length));
    const bool receives = op.opcode == HGHCA_OPCODE_SEND || op.opcode == HGHCA_OPCODE_RDMA_WRITE_IMM;
    if (op.opcode == HGHCA_OPCODE_SEND)
        p.b.post_recv(to.sge(there, op.length));
    else if (receives)
        p.b.post_recv(std::vector<Sge>{});
    p.a.post(wqe);
    const unsigned faults = serve({&from, &to});
    auto pages = [&](uint64_t va) { return unsigned((va + op.length - 1) / kPage - va / kPage + 1); };
    EXPECT_EQ(faults, pages(here) + pages(there));
    expect_good(p.a, 1);
    expect_good(p.b, receives);
    if (atomic) {
        uint64_t now, got;
        std::memcpy(&now, to.at(there), sizeof(now));
        std::memcpy(&got, from.at(here), sizeof(got));
        EXPECT_EQ(now, before + 5);
        EXPECT_EQ(got, before);
    } else {
        EXPECT_TRUE(inward ? from.holds(here, op.length, 7) : to.holds(there, op.length, 7));
    }
}

INSTANTIATE_TEST_SUITE_P(
    Operations, OdpTreeEach,
    ::testing::Combine(::testing::Values(Operation{"send", HGHCA_OPCODE_SEND, 20000},
                                         Operation{"write", HGHCA_OPCODE_RDMA_WRITE, 20000},
                                         Operation{"write_imm", HGHCA_OPCODE_RDMA_WRITE_IMM, 20000},
                                         Operation{"read", HGHCA_OPCODE_RDMA_READ, 20000},
                                         Operation{"atomic", HGHCA_OPCODE_ATOMIC_FA, 8},
                                         Operation{"atomic_write", HGHCA_OPCODE_ATOMIC_WRITE, 8}),
                       ::testing::Values(0u, 1u)),
    [](const auto &info) {
        return std::string(std::get<0>(info.param).name) + (std::get<1>(info.param) ? "_evicted" : "");
    });

// A table is taken out under traffic and comes back: meanwhile none of its pages is touched.
TEST_F(OdpTree, ATableTakenOut)
{
    const uint64_t va = 77 * kLeaf - 3000;
    Pair p(net.a, net.b, patient());
    Tree to(net.b);
    for (uint32_t round = 0; round < 10; round++) {
        p.a.fill(0, 6000, round);
        p.a.post(write_to(p.a.sge(0, 6000), va, to.key()));
        serve({&to});
        expect_good(p.a, 1);
        ASSERT_TRUE(to.holds(va, 6000, round));
        to.clear(1, va);
        EXPECT_EQ(to.look(va), Found::Absent);
        p.a.fill(0, 6000, round + 100);
        p.a.post(write_to(p.a.sge(0, 6000), va, to.key()));
        net.settle(kSecond / 100);
        EXPECT_TRUE(to.holds(va, 6000, round));
        auto f = next_fault(net.b);
        ASSERT_TRUE(f);
        EXPECT_EQ(f->va, va);
        to.restore(1, va);
        ASSERT_EQ(resume(net.b, *f), 0);
        EXPECT_EQ(serve({&to}), 0u);
        expect_good(p.a, 1);
        ASSERT_TRUE(to.holds(va, 6000, round + 100));
        to.clear(0, va);
    }
}

// A hole: who asks for it fails, and nobody else.
TEST_F(OdpTree, AHoleIsTheAskersAlone)
{
    Pair p(net.a, net.b, patient()), beside(net.a, net.b, patient());
    Tree to(net.b);
    p.a.fill(0, 100, 1);
    beside.a.fill(0, 100, 2);
    p.a.post(write_to(p.a.sge(0, 100), 5 * kMiddle, to.key()));
    net.pump();
    auto f = next_fault(net.b);
    ASSERT_TRUE(f);
    beside.a.post(write_to(beside.a.sge(0, 100), 6 * kMiddle, to.key()));
    ASSERT_EQ(resume(net.b, *f, true), 0);
    EXPECT_EQ(serve({&to}), 1u);
    EXPECT_EQ(syndrome_of(p.a), HGHCA_SYNDROME_REMOTE_ACCESS_ERR);
    expect_good(beside.a, 1);
    EXPECT_TRUE(to.holds(6 * kMiddle, 100, 2));
    EXPECT_EQ(beside.b.state(), unsigned(HGHCA_QP_STATE_RTS));
}

// ---- what a guest makes of contexts that were put out to its memory

class OdpTreeForged : public OdpTree {
protected:
    OdpTreeForged() : OdpTree(1) {}
    // The only tree's MPT in ICM.
    uint8_t *entry()
    {
        constexpr uint32_t kMptMagic = 0x4d505431, kHeader = 16;
        net.a.device.memory->trim(0);
        for (uint64_t dma = FakeHost::kBase; dma < net.a.host.end(); dma += 64)
            if (*net.a.host.as<uint32_t>(dma) == kMptMagic &&
                *net.a.host.as<uint32_t>(dma + kHeader) & HGHCA_MPT_FLAG_TREE)
                return net.a.host.at(dma + kHeader);
        throw std::runtime_error("no tree in ICM");
    }
    template <class T>
    void forge(size_t offset, T value)
    {
        uint8_t *at = entry() + offset;
        T good;
        std::memcpy(&good, at, sizeof(good));
        std::memcpy(at, &value, sizeof(value));
        EXPECT_EQ(tree.look(0), Found::No);
        std::memcpy(at, &good, sizeof(good));
        EXPECT_EQ(tree.look(0), Found::Yes);
    }
    Tree tree{net.a};
};

TEST_F(OdpTreeForged, ATreeIsNone)
{
    tree.bring(0);
    ASSERT_EQ(tree.look(0), Found::Yes);
    const uint32_t flags = kTree | HGHCA_MPT_FLAG_REGION;
    forge(offsetof(Mpt, flags), flags & ~HGHCA_ACCESS_ON_DEMAND);
    forge(offsetof(Mpt, flags), flags & ~HGHCA_MPT_FLAG_REGION);
    forge(offsetof(Mpt, flags), flags | HGHCA_MPT_FLAG_PHYSICAL);
    forge(offsetof(Mpt, flags), flags | HGHCA_MPT_FLAG_DEVICE);
    forge(offsetof(Mpt, flags), flags | HGHCA_MPT_FLAG_FREE);
    forge(offsetof(Mpt, mtt_first), uint64_t(kNoTable));
    forge(offsetof(Mpt, mtt_first), ~uint64_t(0));
    forge(offsetof(Mpt, length), uint64_t(kMost + 1));
    forge(offsetof(Mpt, length), ~uint64_t(0));
}

}  // namespace
}  // namespace hghca::test::odp_tree_test
