// SPDX-License-Identifier: GPL-2.0-or-later
// Fast registration, invalidation and memory windows (interface document, 4.16).
#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "verbs.h"

namespace hghca::test::registration_test {
namespace {

using Options = Endpoint::Options;

constexpr uint32_t kPd = TestDriver::kPd;
constexpr uint32_t kLocalWrite = HGHCA_ACCESS_LOCAL_WRITE;
constexpr uint32_t kRemote = HGHCA_ACCESS_REMOTE_WRITE | HGHCA_ACCESS_REMOTE_READ | HGHCA_ACCESS_REMOTE_ATOMIC;
constexpr uint32_t kAll = kLocalWrite | kRemote;

Options trusted()
{
    Options options;
    options.trusted = true;
    return options;
}

Wqe reg_mr(const hghca_reg_unit &unit) { return Wqe(HGHCA_OPCODE_REG_MR).put(unit); }
Wqe local_inv(uint32_t key) { return Wqe(HGHCA_OPCODE_LOCAL_INV).put(hghca_inv_unit{le32(key), {}}); }
Wqe send_inv(const Sge &s, uint32_t key) { return Wqe(HGHCA_OPCODE_SEND_INV, HGHCA_WQE_CQ_UPDATE, be32(key)).data(s); }
Wqe bind(uint32_t rkey, uint32_t lkey, uint64_t va, uint64_t length, uint32_t access = kRemote)
{
    return Wqe(HGHCA_OPCODE_BIND_MW)
        .put(hghca_bind_unit{le32(access), 0, le32(rkey), le32(lkey), le64(va), le64(length)});
}
uint32_t with_tag(uint32_t key, uint32_t tag) { return (key & HGHCA_KEY_INDEX_MASK) | tag; }

class Registration : public ::testing::Test {
protected:
    explicit Registration(uint32_t cache_entries = 0) : net(cache_entries), p(net.a, net.b, trusted()) {}

    // Memory of `pages` pages in reverse order, and the list of them.
    struct Memory {
        uint64_t dma;
        uint32_t pages;
        uint64_t list;
    };
    static Memory reversed_pages(Node &node, uint32_t pages)
    {
        Memory m{node.host.alloc(pages * 4096ull), pages, node.host.alloc(pages * 8ull, 8)};
        for (uint32_t i = 0; i < pages; i++)
            node.host.as<uint64_t>(m.list)[i] = le64(m.dma + (pages - 1 - i) * 4096ull);
        return m;
    }
    static uint8_t *at(Node &node, const Memory &m, uint64_t offset)
    {
        return node.host.at(m.dma + (m.pages - 1 - offset / 4096) * 4096 + offset % 4096);
    }
    static hghca_reg_unit unit(uint32_t key, const Memory &m, uint64_t va, uint64_t length, uint32_t access = kAll)
    {
        return {le32(key), le32(access), le64(va), le64(length), le64(m.list), le32(m.pages), 0, 0, {}};
    }
    static void expect(Endpoint &e, const Wqe &wqe, Network &net, uint8_t syndrome = 0)
    {
        e.post(wqe);
        net.settle();
        auto done = e.poll();
        ASSERT_TRUE(done);
        EXPECT_EQ(done->syndrome, syndrome);
        EXPECT_EQ(done->error, syndrome != 0);
        if (!syndrome) {
            EXPECT_EQ(done->opcode, wqe.opcode);
        }
    }
    void good(Endpoint &e, const Wqe &wqe) { expect(e, wqe, net); }
    void refused(const Wqe &wqe, uint8_t syndrome = HGHCA_SYNDROME_MW_BIND_ERR)
    {
        Pair fresh(net.a, net.b, trusted());
        expect(fresh.a, wqe, net, syndrome);
        EXPECT_EQ(fresh.a.state(), unsigned(HGHCA_QP_STATE_ERR));
    }
    // A WRITE of 8 bytes by a fresh pair that must end with `syndrome`.
    void peer_writes(uint64_t va, uint32_t rkey, uint8_t syndrome = 0)
    {
        Pair fresh(net.a, net.b, trusted());
        expect(fresh.a, write_to(fresh.a.sge(0, 8), va, rkey), net, syndrome);
    }

    Network net;
    Pair p;
};

class RegistrationWithSmallCache : public Registration {
protected:
    RegistrationWithSmallCache() : Registration(1) {}
};

// ---- REG_MR

void registers_and_is_used(Network &net, Pair &p)
{
    const auto mr = net.b.driver.create_fast_mr(8);
    Endpoint &owner = p.b;
    const uint64_t memory = net.b.host.alloc(8 * 4096), list = net.b.host.alloc(64, 8);
    for (unsigned i = 0; i < 8; i++)
        net.b.host.as<uint64_t>(list)[i] = le64(memory + (7 - i) * 4096ull);
    uint32_t key = with_tag(mr.key, 0x17);
    const uint64_t va = 0x123450ff0, length = 7 * 4096 + 5;
    owner.post(reg_mr({le32(key), le32(kAll), le64(va), le64(length), le64(list), le32(8), 0, 0, {}}));
    auto done = owner.poll();
    ASSERT_TRUE(done);
    EXPECT_FALSE(done->error) << int(done->syndrome);
    EXPECT_EQ(done->opcode, HGHCA_OPCODE_REG_MR);
    std::memset(net.b.host.at(list), 0xff, 64);   // it was copied

    p.a.fill(0, length, 3);
    p.a.post(write_to(p.a.sge(0, uint32_t(length)), va, key));
    net.settle();
    done = p.a.poll();
    ASSERT_TRUE(done);
    EXPECT_FALSE(done->error) << int(done->syndrome);
    for (uint64_t i = 0; i < length; i++) {
        const uint64_t offset = (va & 4095) + i;
        ASSERT_EQ(net.b.host.at(memory + (7 - offset / 4096) * 4096 + offset % 4096)[0], Endpoint::pattern(3, i)) << i;
    }
    // As a local key too.
    owner.post(write_to({100, key, va + 4000}, p.a.va(500000), p.a.buffer.key));
    net.settle();
    done = owner.poll();
    ASSERT_TRUE(done);
    EXPECT_FALSE(done->error);
    for (unsigned i = 0; i < 100; i++)
        EXPECT_EQ(p.a.at(500000)[i], Endpoint::pattern(3, 4000 + i));
}

TEST_F(Registration, RegistersAListOfPages) { registers_and_is_used(net, p); }
TEST_F(RegistrationWithSmallCache, RegistersAListOfPages) { registers_and_is_used(net, p); }

TEST_F(Registration, OfLargerPages)
{
    const auto mr = net.b.driver.create_fast_mr(2);
    const uint64_t memory = net.b.host.alloc(2 * 65536, 65536), list = net.b.host.alloc(16, 8);
    net.b.host.as<uint64_t>(list)[0] = le64(memory + 65536);
    net.b.host.as<uint64_t>(list)[1] = le64(memory);
    good(p.b, reg_mr({le32(mr.key), le32(kAll), le64(0x50000 + 65530), le64(12), le64(list), le32(2), le32(4), 0, {}}));
    p.a.fill(0, 12, 9);
    good(p.a, write_to(p.a.sge(0, 12), 0x50000 + 65530, mr.key));
    for (unsigned i = 0; i < 6; i++) {
        EXPECT_EQ(net.b.host.at(memory + 65536 + 65530)[i], Endpoint::pattern(9, i));
        EXPECT_EQ(net.b.host.at(memory)[i], Endpoint::pattern(9, 6 + i));
    }
}

TEST_F(Registration, ManyPagesAreCopiedWhole)
{
    constexpr uint32_t kPages = 1500;
    const auto mr = net.b.driver.create_fast_mr(kPages);
    const Memory m = reversed_pages(net.b, kPages);
    good(p.b, reg_mr(unit(mr.key, m, 0, kPages * 4096ull)));
    for (uint32_t page : {0u, 511u, 512u, 1023u, 1024u, 1499u}) {
        p.a.fill(0, 8, page);
        good(p.a, write_to(p.a.sge(0, 8), page * 4096ull + 8, mr.key));
        EXPECT_EQ(std::memcmp(at(net.b, m, page * 4096ull + 8), p.a.at(0), 8), 0) << page;
    }
}

// However many MTTs the region has.
TEST_F(Registration, SoManyPages)
{
    constexpr uint32_t kMost = 65536;
    TestDriver &d = net.a.driver;
    const auto fast = d.create_fast_mr(kMost + 1);
    const Memory list{0, kMost + 1, net.a.host.alloc((kMost + 1) * 8ull, 8)};
    auto cost = [&](auto &&post) {
        const uint64_t before = net.a.device.work_done();
        post();
        return net.a.device.work_done() - before;
    };
    hghca_reg_unit wanted = unit(fast.key, list, 0, kMost * 4096ull);
    EXPECT_LE(cost([&] { refused(reg_mr(wanted)); }), 64u);   // what the QP of the test costs
    wanted.pages = le32(kMost);
    const uint64_t copied = cost([&] { good(p.a, reg_mr(wanted)); });
    EXPECT_GE(copied, kMost / 512);
    EXPECT_LE(copied, kMost / 512 + 64);
}

TEST_F(Registration, WhatRegMrRefuses)
{
    TestDriver &d = net.a.driver;
    const Memory m = reversed_pages(net.a, 4);
    const auto fast = d.create_fast_mr(4);
    const auto foreign = d.create_fast_mr(4, kPd + 1);
    const auto plain = d.create_mr(0, 4096);
    const uint32_t window = d.create_window(true);
    const auto good_unit = unit(fast.key, m, 0, 4 * 4096);
    struct {
        const char *what;
        std::function<void(hghca_reg_unit &)> change;
    } const rows[] = {
        {"no such key", [](auto &u) { u.key = le32(0x3ff00); }},
        {"beyond the table", [](auto &u) { u.key = ~0u; }},
        {"another PD", [&](auto &u) { u.key = le32(foreign.key); }},
        {"not for fast registration", [&](auto &u) { u.key = le32(plain.key); }},
        {"a window", [&](auto &u) { u.key = le32(window); }},
        {"too many pages", [](auto &u) { u.pages = le32(5); }},
        {"too few pages", [](auto &u) { u.pages = le32(3); }},
        {"addresses of too many pages", [](auto &u) { u.start = le64(1); }},
        {"addresses that wrap", [](auto &u) { u.start = le64(~0ull - 4095); }},
        {"pages too large", [](auto &u) { u.page_size = le32(19); }},
        {"a list that is not there", [](auto &u) { u.list = le64(0x1000); }},
        {"a list at the end of addresses", [](auto &u) { u.list = le64(~0ull - 7); }},
    };
    for (const auto &row : rows) {
        SCOPED_TRACE(row.what);
        hghca_reg_unit bad = good_unit;
        row.change(bad);
        refused(reg_mr(bad));
    }
    refused(Wqe(HGHCA_OPCODE_REG_MR), HGHCA_SYNDROME_LOCAL_QP_OP_ERR);   // too short
    good(p.a, reg_mr(good_unit));                                        // nothing of it has changed the region
    refused(reg_mr(good_unit));                                          // not FREE any more
}

TEST_F(Registration, OnlyATrustedQpMayRegister)
{
    const auto fast = net.a.driver.create_fast_mr(1);
    const Memory m = reversed_pages(net.a, 1);
    Pair plain(net.a, net.b, Options{});
    expect(plain.a, reg_mr(unit(fast.key, m, 0, 4096)), net, HGHCA_SYNDROME_LOCAL_QP_OP_ERR);
    hghca_qpc c;
    TestDriver::must(net.a.driver.query(HGHCA_CMD_QUERY_QP, c, p.a.qp.qpn), "QUERY_QP");
    EXPECT_EQ(be32(c.trust), uint32_t(HGHCA_QPC_TRUST_REG_MR));
    TestDriver::must(net.a.driver.query(HGHCA_CMD_QUERY_QP, c, plain.a.qp.qpn), "QUERY_QP");
    EXPECT_EQ(be32(c.trust), 0u);
}

// ---- LOCAL_INV

TEST_F(Registration, InvalidatedAndRegisteredAgain)
{
    TestDriver &d = net.b.driver;
    const auto fast = d.create_fast_mr(2);
    const Memory m = reversed_pages(net.b, 2), other = reversed_pages(net.b, 2);
    peer_writes(0, fast.key, HGHCA_SYNDROME_REMOTE_ACCESS_ERR);   // FREE
    const uint32_t first = with_tag(fast.key, 1), second_key = with_tag(fast.key, 2);
    good(p.b, reg_mr(unit(first, m, 0, 8192)));
    peer_writes(0, first);
    good(p.b, local_inv(first));
    peer_writes(0, first, HGHCA_SYNDROME_REMOTE_ACCESS_ERR);
    good(p.b, reg_mr(unit(second_key, other, 0x10000, 8192)));
    peer_writes(0x10000, second_key);
    peer_writes(0x10000, first, HGHCA_SYNDROME_REMOTE_ACCESS_ERR);
    EXPECT_EQ(net.b.counters().regions_registered, 2u);
    EXPECT_EQ(net.b.counters().keys_invalidated, 1u);
    EXPECT_EQ(d.destroy_mr(fast), 0);
}

TEST_F(Registration, WhatLocalInvRefuses)
{
    TestDriver &d = net.a.driver;
    const Memory m = reversed_pages(net.a, 1);
    const auto fast = d.create_fast_mr(1), foreign = d.create_fast_mr(1, kPd + 1);
    const auto plain = d.create_mr(0, 4096);
    const uint32_t type_1 = d.create_window(false), type_2 = d.create_window(true);
    good(p.a, reg_mr(unit(fast.key, m, 0, 4096)));
    for (uint32_t key : {fast.key ^ 1, foreign.key, plain.key, type_1, type_2 ^ 1, 0x3ff00u, 0u, ~0u}) {
        SCOPED_TRACE(key);
        refused(local_inv(key));
    }
    refused(Wqe(HGHCA_OPCODE_LOCAL_INV), HGHCA_SYNDROME_LOCAL_QP_OP_ERR);   // too short
    good(p.a, local_inv(type_2));
    good(p.a, local_inv(fast.key));
    good(p.a, local_inv(fast.key));   // FREE already
}

// What was sent with the key is acknowledged first, however often it takes.
TEST_F(Registration, LocalInvWaitsForWhatIsUnderWay)
{
    const auto fast = net.a.driver.create_fast_mr(1);
    const Memory m = reversed_pages(net.a, 1);
    std::memset(net.a.host.at(m.dma), 0x5a, 4096);
    good(p.a, reg_mr(unit(fast.key, m, 0, 4096)));
    unsigned lost = 0;
    net.filter = [&](const Node &from, Frame &) { return Fate{from.number == 1 && lost++ < 3 ? 0u : 1u}; };
    p.a.post({write_to({4096, fast.key, 0}, p.b.va(0), p.b.buffer.key), local_inv(fast.key),
              reg_mr(unit(with_tag(fast.key, 9), m, 0x8000, 4096)),
              write_to({8, with_tag(fast.key, 9), 0x8000}, p.b.va(8192), p.b.buffer.key)});
    net.settle();
    const auto all = p.a.poll_all();
    ASSERT_EQ(all.size(), 4u);
    const uint8_t opcodes[] = {HGHCA_OPCODE_RDMA_WRITE, HGHCA_OPCODE_LOCAL_INV, HGHCA_OPCODE_REG_MR,
                               HGHCA_OPCODE_RDMA_WRITE};
    for (unsigned i = 0; i < 4; i++) {
        EXPECT_FALSE(all[i].error) << i << ": " << int(all[i].syndrome);
        EXPECT_EQ(all[i].opcode, opcodes[i]);
    }
    EXPECT_EQ(p.b.at(4095)[0], 0x5a);
    EXPECT_EQ(p.b.at(8192)[0], 0x5a);
    EXPECT_GE(net.a.counters().retransmitted, 1u);
}

// Going back does not execute it a second time.
TEST_F(Registration, GoingBackRegistersOnce)
{
    const auto fast = net.a.driver.create_fast_mr(1);
    const Memory m = reversed_pages(net.a, 1);
    unsigned lost = 0;
    net.filter = [&](const Node &from, Frame &) { return Fate{from.number == 1 && lost++ < 2 ? 0u : 1u}; };
    p.a.post({write_to(p.a.sge(0, 8), p.b.va(0), p.b.buffer.key), reg_mr(unit(fast.key, m, 0, 4096)),
              write_to({8, fast.key, 0}, p.b.va(64), p.b.buffer.key)});
    net.settle();
    const auto all = p.a.poll_all();
    ASSERT_EQ(all.size(), 3u);
    for (const Completion &c : all)
        EXPECT_FALSE(c.error) << int(c.syndrome);
    EXPECT_EQ(net.a.counters().regions_registered, 1u);
}

// ---- SEND with Invalidate

TEST_F(Registration, APeerInvalidates)
{
    const auto fast = net.b.driver.create_fast_mr(1);
    const Memory m = reversed_pages(net.b, 1);
    for (uint32_t size : {0u, 8u, 5000u}) {
        SCOPED_TRACE(size);
        const uint32_t key = with_tag(fast.key, size & 0x7f);
        good(p.b, reg_mr(unit(key, m, 0, 4096)));
        p.a.fill(0, size, size);
        p.b.post_recv(p.b.sge(0, 8192));
        good(p.a, send_inv(p.a.sge(0, size), key));
        const auto got = p.b.poll();
        ASSERT_TRUE(got);
        EXPECT_FALSE(got->error);
        EXPECT_EQ(got->imm, be32(key));
        EXPECT_EQ(got->bytes, size);
        EXPECT_EQ(got->opcode, size > 1024 ? HGHCA_BTH_OP_SEND_LAST_INV : HGHCA_BTH_OP_SEND_ONLY_INV);
        EXPECT_TRUE(p.b.holds(0, size, size));
        peer_writes(0, key, HGHCA_SYNDROME_REMOTE_ACCESS_ERR);
    }
    EXPECT_EQ(net.b.counters().keys_invalidated, 3u);
}

TEST_F(Registration, WhatAPeerMayNotInvalidate)
{
    TestDriver &d = net.b.driver;
    const Memory m = reversed_pages(net.b, 1);
    const auto local_only = d.create_fast_mr(1), free = d.create_fast_mr(1), foreign = d.create_fast_mr(1, kPd + 1);
    const auto plain = d.create_mr(0, 4096, kAll | HGHCA_ACCESS_MW_BIND);
    const uint32_t type_1 = d.create_window(false), type_2 = d.create_window(true);
    good(p.b, reg_mr(unit(local_only.key, m, 0, 4096, kLocalWrite)));
    good(p.b, bind(type_1, plain.key, 0, 4096));
    good(p.b, bind(type_2, plain.key, 0, 4096));   // through p.b, not the QPs below
    for (uint32_t key : {local_only.key, local_only.key ^ 1, free.key, foreign.key, plain.key, type_1, type_2, 0u, ~0u}) {
        SCOPED_TRACE(key);
        Pair fresh(net.a, net.b, trusted());
        fresh.b.post_recv(fresh.b.sge(0, 100));
        expect(fresh.a, send_inv(fresh.a.sge(0, 8), key), net, HGHCA_SYNDROME_REMOTE_ACCESS_ERR);
        const auto got = fresh.b.poll();
        ASSERT_TRUE(got);
        EXPECT_EQ(got->syndrome, HGHCA_SYNDROME_LOCAL_ACCESS_ERR);
        EXPECT_EQ(fresh.b.state(), unsigned(HGHCA_QP_STATE_ERR));
    }
    EXPECT_EQ(net.b.counters().keys_invalidated, 0u);
    peer_writes(0, type_1);
}

TEST_F(Registration, ALostAcknowledgementInvalidatesOnce)
{
    const auto fast = net.b.driver.create_fast_mr(1);
    const Memory m = reversed_pages(net.b, 1);
    good(p.b, reg_mr(unit(fast.key, m, 0, 4096)));
    p.b.post_recv(p.b.sge(0, 100));
    bool lost = false;
    net.filter = [&](const Node &from, Frame &) {
        return Fate{from.number == 2 && !std::exchange(lost, true) ? 0u : 1u};
    };
    good(p.a, send_inv(p.a.sge(0, 8), fast.key));
    EXPECT_TRUE(lost);
    EXPECT_EQ(net.b.counters().keys_invalidated, 1u);
    EXPECT_EQ(p.b.poll_all().size(), 1u);
}

// ---- windows

class Windows : public Registration {
protected:
    Windows() : region(net.b.driver.create_mr(0x100000, 65536, kAll | HGHCA_ACCESS_MW_BIND)) {}
    TestDriver::Mr region;
};

TEST_F(Windows, OpenWhatTheySayAndNoMore)
{
    for (bool one_qp : {false, true}) {
        SCOPED_TRACE(one_qp);
        const uint32_t window = net.b.driver.create_window(one_qp);
        Pair user(net.a, net.b, trusted());
        good(user.b, bind(window, region.key, 0x101000, 4096, HGHCA_ACCESS_REMOTE_WRITE));
        user.a.fill(0, 4096, 7);
        good(user.a, write_to(user.a.sge(0, 4096), 0x101000, window));
        for (unsigned i = 0; i < 4096; i++)
            ASSERT_EQ(net.b.host.at(region.dma + 0x1000)[i], Endpoint::pattern(7, i));
        struct {
            uint64_t va;
            uint32_t length;
        } const outside[] = {{0x100fff, 1}, {0x101fff, 2}, {0x102000, 1}, {0, 8}};
        for (const auto &o : outside) {
            const uint32_t tagged = with_tag(net.b.driver.create_window(one_qp), uint32_t(o.va & 0x7f));
            Pair each(net.a, net.b, trusted());
            good(each.b, bind(tagged, region.key, 0x101000, 4096, HGHCA_ACCESS_REMOTE_WRITE));
            expect(each.a, write_to(each.a.sge(0, o.length), o.va, tagged), net, HGHCA_SYNDROME_REMOTE_ACCESS_ERR);
        }
    }
    // Neither another right nor the owner's own use.
    const uint32_t window = net.b.driver.create_window(false);
    good(p.b, bind(window, region.key, 0x101000, 4096, HGHCA_ACCESS_REMOTE_WRITE));
    Pair reader(net.a, net.b, trusted());
    expect(reader.a, read_from(reader.a.sge(0, 8), 0x101000, window), net, HGHCA_SYNDROME_REMOTE_ACCESS_ERR);
    expect(p.b, write_to({8, window, 0x101000}, p.a.va(0), p.a.buffer.key), net, HGHCA_SYNDROME_LOCAL_PROT_ERR);
}

TEST_F(Windows, ZeroBasedBeginAtZero)
{
    const uint32_t window = net.b.driver.create_window(false);
    good(p.b, bind(window, region.key, 0x102004, 100, kRemote | HGHCA_ACCESS_ZERO_BASED));
    p.a.fill(0, 100, 4);
    good(p.a, write_to(p.a.sge(0, 100), 0, window));
    EXPECT_EQ(std::memcmp(net.b.host.at(region.dma + 0x2004), p.a.at(0), 100), 0);
    peer_writes(93, window, HGHCA_SYNDROME_REMOTE_ACCESS_ERR);
    peer_writes(0x102004, window, HGHCA_SYNDROME_REMOTE_ACCESS_ERR);
}

TEST_F(Windows, TypeOneIsBoundAnewAndUnbound)
{
    const uint32_t window = net.b.driver.create_window(false), second_key = with_tag(window, 3);
    peer_writes(0x100000, window, HGHCA_SYNDROME_REMOTE_ACCESS_ERR);
    good(p.b, bind(window, region.key, 0x100000, 4096));
    peer_writes(0x100000, window);
    EXPECT_EQ(net.b.driver.destroy_mr(region), HGHCA_CMD_STAT_REG_BOUND);
    good(p.b, bind(second_key, region.key, 0x104000, 4096));
    peer_writes(0x104000, second_key);
    peer_writes(0x100000, window, HGHCA_SYNDROME_REMOTE_ACCESS_ERR);
    good(p.b, bind(with_tag(window, 4), 0, 0, 0));
    peer_writes(0x104000, second_key, HGHCA_SYNDROME_REMOTE_ACCESS_ERR);
    peer_writes(0x104000, with_tag(window, 4), HGHCA_SYNDROME_REMOTE_ACCESS_ERR);
    good(p.b, bind(with_tag(window, 5), 0, 0, 0));   // twice
    EXPECT_EQ(net.b.driver.destroy_mr(region), 0);
    EXPECT_EQ(net.b.driver.destroy_key(window), 0);
}

TEST_F(Windows, TypeTwoBelongsToItsQp)
{
    const uint32_t window = net.b.driver.create_window(true);
    good(p.b, bind(window, region.key, 0x100000, 4096));
    good(p.a, write_to(p.a.sge(0, 8), 0x100000, window));
    peer_writes(0x100000, window, HGHCA_SYNDROME_REMOTE_ACCESS_ERR);   // by way of another QP
    {
        Pair other(net.b, net.a, trusted());
        expect(other.a, bind(with_tag(window, 1), region.key, 0x100000, 8), net, HGHCA_SYNDROME_MW_BIND_ERR);   // bound
    }
    // The peer's SEND takes it back.
    p.b.post_recv(p.b.sge(0, 64));
    good(p.a, send_inv(p.a.sge(0, 8), window));
    EXPECT_EQ(p.b.poll_all().size(), 1u);
    good(p.b, bind(with_tag(window, 2), region.key, 0x100000, 8));
    good(p.a, write_to(p.a.sge(0, 8), 0x100000, with_tag(window, 2)));
    good(p.b, local_inv(with_tag(window, 2)));
    expect(p.a, write_to(p.a.sge(0, 8), 0x100000, with_tag(window, 2)), net, HGHCA_SYNDROME_REMOTE_ACCESS_ERR);
    EXPECT_EQ(net.b.driver.destroy_mr(region), 0);
}

// IBA vol 1, 10.6.7.2: a window of type 2B is one of a PD and a QP.
TEST_F(Windows, TypeTwoIsInvalidatedThroughItsQpAlone)
{
    const uint32_t window = net.b.driver.create_window(true), free = net.b.driver.create_window(true);
    good(p.b, bind(window, region.key, 0x100000, 4096));
    {
        Pair other(net.b, net.a, trusted());
        good(other.a, local_inv(free));   // not bound: it is nobody's
        expect(other.a, local_inv(window), net, HGHCA_SYNDROME_MW_BIND_ERR);
        EXPECT_EQ(other.a.state(), unsigned(HGHCA_QP_STATE_ERR));
    }
    EXPECT_EQ(net.b.counters().keys_invalidated, 1u);
    good(p.a, write_to(p.a.sge(0, 8), 0x100000, window));   // it is what it was
    EXPECT_EQ(net.b.driver.destroy_mr(region), HGHCA_CMD_STAT_REG_BOUND);
    good(p.b, local_inv(window));
    EXPECT_EQ(net.b.counters().keys_invalidated, 2u);
    EXPECT_EQ(net.b.driver.destroy_mr(region), 0);
}

// o10-37.2.40
TEST_F(Windows, TypeTwoIsNotUnboundByABind)
{
    const uint32_t window = net.b.driver.create_window(true);
    for (const Wqe &wqe : {bind(window, region.key, 0x100000, 0), bind(window, 0, 0, 0)}) {
        Pair fresh(net.b, net.a, trusted());
        expect(fresh.a, wqe, net, HGHCA_SYNDROME_MW_BIND_ERR);
    }
    EXPECT_EQ(net.b.driver.destroy_mr(region), 0);
}

TEST_F(Windows, OnARegionOfNoBytes)
{
    TestDriver &d = net.b.driver;
    const auto empty = d.create_mr_without_pages(0x5000, 0);
    const uint32_t one = d.create_window(false), two = d.create_window(true);
    ASSERT_EQ(d.destroy_mr(empty), 0);
    ASSERT_EQ(d.post(HGHCA_CMD_SW2HW_MPT,
                     d.mpt_mailbox(empty.key, 0x5000, 0, empty.first_mtt, kAll | HGHCA_ACCESS_MW_BIND),
                     d.mpt_index(empty.key)),
              0);
    for (uint32_t window : {one, two}) {
        for (uint64_t length : {1ull, ~0ull}) {
            Pair fresh(net.b, net.a, trusted());
            expect(fresh.a, bind(window, empty.key, 0x5000, length), net, HGHCA_SYNDROME_MW_BIND_ERR);
        }
    }
    good(p.b, bind(one, empty.key, 0x5000, 0));   // unbinds, whatever the region
    EXPECT_EQ(d.destroy_mr(empty), 0);
}

TEST_F(Registration, ARegionOfNoBytesIsGoodForNone)
{
    // Their MTTs are those of a region that is there: nothing but the length keeps anybody out.
    const auto empty = [](Endpoint &x, uint64_t va) {
        TestDriver &d = x.node.driver;
        const auto mr = d.create_mr_without_pages(va, 0);
        TestDriver::must(d.destroy_mr(mr), "HW2SW_MPT");
        TestDriver::must(d.post(HGHCA_CMD_SW2HW_MPT, d.mpt_mailbox(mr.key, va, 0, x.buffer.first_mtt, kAll),
                                d.mpt_index(mr.key)),
                         "SW2HW_MPT");
        return mr;
    };
    const auto far = empty(p.b, 0x5001), near = empty(p.a, 0x6001);
    good(p.a, write_to({0, near.key, 0x6001}, 0x5001, far.key));
    good(p.a, read_from({0, near.key, 0x6001}, 0x5001, far.key));
    good(p.a, read_from({0, near.key, 0}, 0, far.key));
    p.b.post_recv({0, far.key, 0x5001});
    good(p.a, Wqe(HGHCA_OPCODE_SEND).data({0, near.key, 0x6001}));
    EXPECT_EQ(p.b.poll_all().size(), 1u);
    peer_writes(0x5001, far.key, HGHCA_SYNDROME_REMOTE_ACCESS_ERR);
    Pair fresh(net.a, net.b, trusted());
    expect(fresh.a, write_to({1, near.key, 0x6001}, p.b.va(0), p.b.buffer.key), net, HGHCA_SYNDROME_LOCAL_PROT_ERR);
}

// ---- zero-based, from any byte of a page on (FIRST_BYTE)

class FirstByte : public Windows {
protected:
    static constexpr uint32_t kFirstByte = 0x0ffb;
    static constexpr uint64_t kBytes = 3 * 4096;
    // A region for fast registration that is zero-based; its memory of four pages in reverse order is in `m`.
    uint32_t registered(uint32_t access)
    {
        m = reversed_pages(net.b, 4);
        const auto fast = net.b.driver.create_fast_mr(4);
        hghca_reg_unit u = unit(fast.key, m, 0, kBytes, access | HGHCA_ACCESS_ZERO_BASED);
        u.first_byte = le32(kFirstByte);
        good(p.b, reg_mr(u));
        return fast.key;
    }
    void expect_bytes(uint64_t offset, uint64_t length, uint32_t seed)
    {
        for (uint64_t i = 0; i < length; i++)
            ASSERT_EQ(at(net.b, m, kFirstByte + offset + i)[0], Endpoint::pattern(seed, i)) << i;
    }
    Memory m{};
};

TEST_F(FirstByte, RegisteredByAWqe)
{
    const uint32_t key = registered(kAll);
    p.a.fill(0, kBytes, 6);
    good(p.a, write_to(p.a.sge(0, kBytes), 0, key));
    expect_bytes(0, kBytes, 6);
    good(p.a, read_from(p.a.sge(100000, 8), 3, key));
    for (unsigned i = 0; i < 8; i++)
        EXPECT_EQ(p.a.at(100000)[i], Endpoint::pattern(6, 3 + i));
    good(p.b, write_to({16, key, 4}, p.a.va(200000), p.a.buffer.key));   // as a local key too
    for (unsigned i = 0; i < 16; i++)
        EXPECT_EQ(p.a.at(200000)[i], Endpoint::pattern(6, 4 + i));
    peer_writes(kBytes - 8, key);
    peer_writes(kBytes - 7, key, HGHCA_SYNDROME_REMOTE_ACCESS_ERR);
    peer_writes(~0ull - 7, key, HGHCA_SYNDROME_REMOTE_ACCESS_ERR);
}

TEST_F(FirstByte, BehindWindows)
{
    const uint32_t key = registered(kAll | HGHCA_ACCESS_MW_BIND);
    const uint32_t one = net.b.driver.create_window(false), two = net.b.driver.create_window(true);
    good(p.b, bind(one, key, 3, 4096));
    good(p.b, bind(two, key, 3, kBytes - 3, kRemote | HGHCA_ACCESS_ZERO_BASED));
    p.a.fill(0, 4096, 7);
    good(p.a, write_to(p.a.sge(0, 4096), 3, one));
    expect_bytes(3, 4096, 7);
    p.a.fill(0, 4096, 8);
    good(p.a, write_to(p.a.sge(0, 4096), 0, two));
    expect_bytes(3, 4096, 8);
    peer_writes(2, one, HGHCA_SYNDROME_REMOTE_ACCESS_ERR);
    Pair fresh(net.b, net.a, trusted());
    expect(fresh.a, bind(one, key, 3, kBytes - 2), net, HGHCA_SYNDROME_MW_BIND_ERR);
}

TEST_F(FirstByte, WhatRegMrRefuses)
{
    const Memory pages = reversed_pages(net.a, 2);
    const auto fast = net.a.driver.create_fast_mr(2);
    hghca_reg_unit u = unit(fast.key, pages, 0, 4096, kAll | HGHCA_ACCESS_ZERO_BASED);
    u.first_byte = le32(4096);
    refused(reg_mr(u));
    u.first_byte = le32(4095);
    u.start = le64(1);
    refused(reg_mr(u));
    u.start = 0;
    u.length = le64(4098);   // touches a third page
    refused(reg_mr(u));
    u.length = le64(4097);
    good(p.a, reg_mr(u));
}

TEST_F(Windows, WhatBindRefuses)
{
    TestDriver &d = net.a.driver;
    const auto bindable = d.create_mr(0x100000, 65536, kAll | HGHCA_ACCESS_MW_BIND);
    const auto not_bindable = d.create_mr(0x100000, 65536, kAll);
    const auto read_only = d.create_mr(0x100000, 65536, HGHCA_ACCESS_REMOTE_READ | HGHCA_ACCESS_MW_BIND);
    const auto foreign = d.create_mr(0x100000, 65536, kAll | HGHCA_ACCESS_MW_BIND, kPd + 1);
    const auto fast = d.create_fast_mr(4);
    const uint32_t window = d.create_window(false), foreign_window = d.create_window(false, kPd + 1);
    const Wqe rows[] = {
        bind(0x3ff00, bindable.key, 0x100000, 8),          bind(~0u, bindable.key, 0x100000, 8),
        bind(bindable.key, bindable.key, 0x100000, 8),     bind(foreign_window, bindable.key, 0x100000, 8),
        bind(window, not_bindable.key, 0x100000, 8),       bind(window, foreign.key, 0x100000, 8),
        bind(window, fast.key, 0, 8),                      bind(window, window, 0, 8),
        bind(window, bindable.key ^ 1, 0x100000, 8),       bind(window, 0, 0x100000, 8),
        bind(window, read_only.key, 0x100000, 8),          bind(window, bindable.key, 0xfffff, 8),
        bind(window, bindable.key, 0x10fff9, 8),           bind(window, bindable.key, 0x100000, 65537),
        bind(window, bindable.key, ~0ull, 2),              bind(window, bindable.key, 0x100000, ~0ull),
    };
    for (unsigned i = 0; i < std::size(rows); i++) {
        SCOPED_TRACE(i);
        refused(rows[i]);
    }
    refused(Wqe(HGHCA_OPCODE_BIND_MW), HGHCA_SYNDROME_LOCAL_QP_OP_ERR);   // too short
    good(p.a, bind(window, read_only.key, 0x100000, 65536, HGHCA_ACCESS_REMOTE_READ));
    EXPECT_EQ(d.destroy_mr(bindable), 0);   // none of the refused is bound
    EXPECT_EQ(d.destroy_mr(read_only), HGHCA_CMD_STAT_REG_BOUND);
    EXPECT_EQ(d.destroy_key(window), 0);
    EXPECT_EQ(d.destroy_mr(read_only), 0);
}

TEST_F(Windows, ARegionWithWindowsIsNotInvalidated)
{
    const auto fast = net.b.driver.create_fast_mr(1);
    const Memory m = reversed_pages(net.b, 1);
    const uint32_t window = net.b.driver.create_window(false);
    good(p.b, reg_mr(unit(fast.key, m, 0, 4096, kAll | HGHCA_ACCESS_MW_BIND)));
    good(p.b, bind(window, fast.key, 0, 4096));
    {
        Pair other(net.b, net.a, trusted());
        expect(other.a, local_inv(fast.key), net, HGHCA_SYNDROME_MW_BIND_ERR);
    }
    peer_writes(0, window);
    EXPECT_EQ(net.b.driver.destroy_key(window), 0);
    good(p.b, local_inv(fast.key));
}

TEST_F(Windows, OnUnreliableConnections)
{
    Options uc = trusted();
    uc.service = HGHCA_QP_ST_UC;
    Pair pair(net.a, net.b, uc);
    const uint32_t window = net.b.driver.create_window(true);
    good(pair.b, bind(window, region.key, 0x100000, 4096));
    pair.a.fill(0, 100, 5);
    good(pair.a, write_to(pair.a.sge(0, 100), 0x100000, window));
    EXPECT_EQ(std::memcmp(net.b.host.at(region.dma), pair.a.at(0), 100), 0);
    good(pair.b, local_inv(window));
    pair.a.fill(0, 100, 6);
    good(pair.a, write_to(pair.a.sge(0, 100), 0x100000, window));
    EXPECT_EQ(net.b.counters().uc_dropped, 1u);
    expect(pair.b, bind(window, 0, 0, 8), net, HGHCA_SYNDROME_MW_BIND_ERR);
    EXPECT_EQ(pair.b.state(), unsigned(HGHCA_QP_STATE_SQE));
}

// ---- commands, and a device without

TEST_F(Registration, WhatSw2hwRefuses)
{
    TestDriver &d = net.a.driver;
    constexpr uint32_t kFast = HGHCA_MPT_FLAG_REGION | HGHCA_MPT_FLAG_FAST_REG | HGHCA_MPT_FLAG_FREE;
    struct {
        const char *what;
        uint32_t flags, first, count;
        uint8_t status;
    } const rows[] = {
        {"a region that is FREE", HGHCA_MPT_FLAG_REGION | HGHCA_MPT_FLAG_FREE, 0, 1, HGHCA_CMD_STAT_BAD_PARAM},
        {"a region of one QP", HGHCA_MPT_FLAG_REGION | HGHCA_MPT_FLAG_WINDOW_QP, 0, 1, HGHCA_CMD_STAT_BAD_PARAM},
        {"fast and physical", kFast | HGHCA_MPT_FLAG_PHYSICAL, 0, 1, HGHCA_CMD_STAT_BAD_PARAM},
        {"fast, of one QP", kFast | HGHCA_MPT_FLAG_WINDOW_QP, 0, 1, HGHCA_CMD_STAT_BAD_PARAM},
        {"a window that is bound", 0, 0, 0, HGHCA_CMD_STAT_BAD_PARAM},
        {"a fast window", HGHCA_MPT_FLAG_FREE | HGHCA_MPT_FLAG_FAST_REG, 0, 0, HGHCA_CMD_STAT_BAD_PARAM},
        {"a physical window", HGHCA_MPT_FLAG_FREE | HGHCA_MPT_FLAG_PHYSICAL, 0, 0, HGHCA_CMD_STAT_BAD_PARAM},
        {"one MTT too far", kFast, 131000, 1u << 27, HGHCA_CMD_STAT_BAD_SEG_PARAM},
        {"MTTs beyond all", kFast, ~0u, 1, HGHCA_CMD_STAT_BAD_SEG_PARAM},
        {"fast", kFast, 1000, 64, 0},
        {"a window", HGHCA_MPT_FLAG_FREE, 0, 0, 0},
        {"a window of one QP", HGHCA_MPT_FLAG_FREE | HGHCA_MPT_FLAG_WINDOW_QP, 0, 0, 0},
    };
    for (const auto &row : rows) {
        SCOPED_TRACE(row.what);
        hghca_mpt mpt{};
        const uint32_t key = d.new_key();
        mpt.flags = be32(row.flags);
        mpt.key = be32(key);
        mpt.pd = be32(kPd);
        mpt.mtt_seg_l = be32(row.first);
        mpt.mtt_sz = be32(row.count);
        EXPECT_EQ(d.post(HGHCA_CMD_SW2HW_MPT, mpt, key >> 8), row.status);
        EXPECT_EQ(d.destroy_key(key), row.status ? HGHCA_CMD_STAT_BAD_RES_STATE : 0);
    }
    hghca_mpt wrong{};
    wrong.flags = be32(HGHCA_MPT_FLAG_REGION);
    wrong.key = be32(500);   // the seed's rule
    EXPECT_EQ(d.post(HGHCA_CMD_SW2HW_MPT, wrong, 500), HGHCA_CMD_STAT_BAD_PARAM);
}

TEST(WithoutMemoryManagement, NothingOfItIsThere)
{
    Network net(0, kFullCaps & ~HGHCA_CAP_MEM_MGT);
    for (const Wqe &wqe : {reg_mr({}), local_inv(0), bind(0, 0, 0, 0), send_inv({0, 0, 0}, 0)}) {
        Pair p(net.a, net.b, trusted());
        p.a.post(wqe);
        net.settle();
        const auto done = p.a.poll();
        ASSERT_TRUE(done);
        EXPECT_EQ(done->syndrome, HGHCA_SYNDROME_LOCAL_QP_OP_ERR);
    }
    hghca_mpt window{};
    window.flags = be32(HGHCA_MPT_FLAG_FREE);
    window.key = be32(5);
    EXPECT_EQ(net.a.driver.post(HGHCA_CMD_SW2HW_MPT, window, 5), HGHCA_CMD_STAT_BAD_PARAM);
    window.flags = be32(HGHCA_MPT_FLAG_REGION | HGHCA_MPT_FLAG_FAST_REG);
    EXPECT_EQ(net.a.driver.post(HGHCA_CMD_SW2HW_MPT, window, 5), HGHCA_CMD_STAT_BAD_PARAM);
}

}  // namespace
}  // namespace hghca::test::registration_test
