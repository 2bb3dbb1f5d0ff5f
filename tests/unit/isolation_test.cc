// SPDX-License-Identifier: GPL-2.0-or-later
// One process against another on the same device, which has any of the profiles: every doorbell of every UAR page, and
// every key of the key space (interface document, 4.5, 4.16, 5). The owner is in PD kPd and rings in kUarPage; the
// intruder has the rest.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "profiles.h"

namespace hghca::test::isolation_test {
namespace {

using Options = Endpoint::Options;

constexpr uint32_t kPd = TestDriver::kPd;
constexpr uint32_t kOther = kPd + 1;
constexpr uint64_t kOwnPage = TestDriver::kUarPage;
constexpr uint32_t kRemote = HGHCA_ACCESS_REMOTE_WRITE | HGHCA_ACCESS_REMOTE_READ | HGHCA_ACCESS_REMOTE_ATOMIC;

class Isolation : public ::testing::TestWithParam<Profile> {
protected:
    static Options in_pd(uint32_t pd, uint8_t service = HGHCA_QP_ST_RC)
    {
        Options options = options_of(GetParam());
        options.pd = pd;
        options.service = service;
        options.buffer_bytes = 65536;
        return options;
    }

    NetworkOf net{GetParam()};
};

// ---- doorbells

class ForeignDoorbells : public Isolation {
protected:
    ForeignDoorbells() : p(net.a, net.b, in_pd(kPd)) {}

    uint64_t ignored() const { return net.a.counters().db_bad_page + net.a.counters().db_bad_object; }
    // Writes the doorbell at every offset of every page but the owner's, in every width. One profile has all pages, the
    // others some.
    void ring_everywhere(uint64_t bell)
    {
        Device &device = net.a.device;
        for (uint64_t page = 0; page < HGHCA_UAR_PAGES; page += GetParam() == Profile::Full ? 1 : 89) {
            if (page == kOwnPage)
                continue;
            for (uint64_t offset = 0; offset < HGHCA_UAR_PAGE_SIZE; offset++)
                for (unsigned size : {1u, 2u, 8u})
                    device.uar_write(page * HGHCA_UAR_PAGE_SIZE + offset, bell, size);
            // Torn: low halves alone, then low and high half.
            for (uint64_t offset = 0; offset < HGHCA_UAR_PAGE_SIZE; offset += 8)
                device.uar_write(page * HGHCA_UAR_PAGE_SIZE + offset, uint32_t(bell), 4);
            for (uint64_t offset = 0; offset < HGHCA_UAR_PAGE_SIZE; offset++)
                device.uar_write(page * HGHCA_UAR_PAGE_SIZE + offset, bell >> (offset & 4 ? 32 : 0), 4);
        }
    }
    // Writes a doorbell whole, and in two halves, at its place in every page but the owner's.
    void ring_in_place(uint64_t place, uint64_t bell)
    {
        for (uint64_t page = 0; page < HGHCA_UAR_PAGES; page++) {
            if (page == kOwnPage)
                continue;
            const uint64_t at = page * HGHCA_UAR_PAGE_SIZE + place;
            net.a.device.uar_write(at, bell, 8);
            net.a.device.uar_write(at, uint32_t(bell), 4);
            net.a.device.uar_write(at + 4, bell >> 32, 4);
        }
    }
    static constexpr uint64_t kRings = 2 * (HGHCA_UAR_PAGES - 1);   // of ring_in_place()

    Pair p;
};

// Those by which CQs and EQs are armed, which the base does not have.
class ForeignArming : public ForeignDoorbells {};

INSTANTIATE_TEST_SUITE_P(Profiles, ForeignDoorbells, profiles(), name_of_profile);
INSTANTIATE_TEST_SUITE_P(Profiles, ForeignArming, ::testing::Values(Profile::Full, Profile::Rsnic), name_of_profile);

// A WQE stands in the queue; only its owner's page sends it.
TEST_P(ForeignDoorbells, OfAQp)
{
    const Wqe wqe = write_to(p.a.sge(0, 64), p.b.va(0), p.b.buffer.key);
    const uint64_t units = wqe.bytes.size() / 16;
    const uint64_t bell = (uint64_t(p.a.qp.qpn) << 8 | units) << 32 | 1u << 24 | wqe.opcode;
    p.a.fill(0, 64, 1);
    p.a.write(wqe);

    ring_in_place(HGHCA_UAR_SQ_DB, bell);
    EXPECT_EQ(net.a.counters().db_bad_page, kRings);
    EXPECT_EQ(net.a.counters().db_bad_object, 0u);
    ring_everywhere(bell);
    net.settle();
    EXPECT_EQ(net.a.counters().tx_packets, 0u);
    EXPECT_FALSE(p.a.poll());
    EXPECT_EQ(p.a.state(), unsigned(HGHCA_QP_STATE_RTS));

    net.a.device.uar_write(kOwnPage * HGHCA_UAR_PAGE_SIZE, bell, 8);
    net.pump();
    auto done = p.a.poll();
    ASSERT_TRUE(done);
    EXPECT_FALSE(done->error);
    EXPECT_TRUE(p.b.holds(0, 64, 1));
}

// In its own page too a QP is rung at one place alone.
TEST_P(ForeignDoorbells, OfAQpAtOtherPlaces)
{
    const Wqe wqe = write_to(p.a.sge(0, 64), p.b.va(0), p.b.buffer.key);
    const uint64_t bell = (uint64_t(p.a.qp.qpn) << 8 | wqe.bytes.size() / 16) << 32 | 1u << 24 | wqe.opcode;
    p.a.write(wqe);
    for (uint64_t offset = 0; offset < HGHCA_UAR_PAGE_SIZE; offset++)
        for (unsigned size : {1u, 2u, 4u, 8u})
            if ((offset || size != 8) && (offset != 4 || size != 4))
                net.a.device.uar_write(kOwnPage * HGHCA_UAR_PAGE_SIZE + offset, bell, size);
    net.settle();
    EXPECT_EQ(net.a.counters().tx_packets, 0u);
    EXPECT_FALSE(p.a.poll());
}

// Every QP number in a page that is nobody's.
TEST_P(ForeignDoorbells, OfEveryQpn)
{
    const uint32_t beyond = 1u << 17;
    for (uint64_t qpn = 0; qpn < beyond; qpn++)
        net.a.device.uar_write(77 * HGHCA_UAR_PAGE_SIZE, (qpn << 8 | 3) << 32 | 1u << 24 | HGHCA_OPCODE_RDMA_WRITE, 8);
    EXPECT_EQ(ignored(), beyond);
    EXPECT_EQ(net.a.counters().db_bad_page, 1u);   // there is one QP
    EXPECT_EQ(net.a.counters().tx_packets, 0u);
}

// Nobody else arms a CQ, and nobody else's arming takes the owner's away.
TEST_P(ForeignArming, OfACq)
{
    for (uint64_t command : {HGHCA_CQ_ARM_SOLICITED, HGHCA_CQ_ARM_NEXT}) {
        const uint64_t before = net.a.counters().db_bad_page;
        const uint64_t bell = (command << 24 | p.a.cq.cqn) << 32;
        ring_in_place(HGHCA_UAR_CQ_ARM, bell);
        EXPECT_EQ(net.a.counters().db_bad_page, before + kRings);
        ring_everywhere(bell);
    }
    net.a.events(HGHCA_EVENT_COMP);   // takes all
    p.a.post(write_to(p.a.sge(0, 8), p.b.va(0), p.b.buffer.key));
    net.pump();
    EXPECT_EQ(net.a.events(HGHCA_EVENT_COMP), 0u);

    ASSERT_TRUE(p.a.poll());
    net.a.driver.arm(p.a.cq);
    // Had this one counted, its consumer index ahead would fire no event at all, or one too early.
    for (uint32_t consumer : {0u, 1u, 0x7fffffffu, ~0u})
        ring_in_place(HGHCA_UAR_CQ_ARM, uint64_t(HGHCA_CQ_ARM_NEXT << 24 | p.a.cq.cqn) << 32 | consumer);
    EXPECT_EQ(net.a.events(HGHCA_EVENT_COMP), 0u);
    p.a.post(write_to(p.a.sge(0, 8), p.b.va(0), p.b.buffer.key));
    net.pump();
    EXPECT_EQ(net.a.events(HGHCA_EVENT_COMP), 1u);
}

TEST_P(ForeignArming, OfEveryCqn)
{
    const uint32_t beyond = 1u << 18;
    for (uint64_t cqn = 0; cqn < beyond; cqn++)
        net.a.device.uar_write(77 * HGHCA_UAR_PAGE_SIZE + HGHCA_UAR_CQ_ARM, (HGHCA_CQ_ARM_NEXT << 24 | cqn) << 32, 8);
    EXPECT_EQ(ignored(), beyond);
    EXPECT_EQ(net.a.counters().db_bad_page, 1u);
}

// EQs are the kernel's: page 0 alone, whatever the EQ.
TEST_P(ForeignArming, OfEveryEq)
{
    TestDriver &d = net.a.driver;
    auto eq = d.create_eq(4, 9);
    net.a.device.eqs->post_completion(eq.eqn, Cqn(p.a.cq.cqn));   // it is not armed now
    hghca_eqe eqe;
    ASSERT_TRUE(d.poll(eq, eqe));
    net.a.host.vectors.clear();
    for (uint64_t page = 1; page < HGHCA_UAR_PAGES; page++)
        for (uint64_t eqn = 0; eqn < 256; eqn++)
            for (uint64_t command : {HGHCA_EQ_ARM_UPDATE, HGHCA_EQ_ARM_ARM})
                net.a.device.uar_write(page * HGHCA_UAR_PAGE_SIZE + HGHCA_UAR_EQ_ARM, (command << 24 | eqn) << 32, 8);
    EXPECT_EQ(net.a.counters().db_bad_page, (HGHCA_UAR_PAGES - 1) * 512u);
    EXPECT_TRUE(net.a.host.vectors.empty());
    net.a.device.eqs->post_completion(eq.eqn, Cqn(p.a.cq.cqn));
    EXPECT_EQ(net.a.host.take_vectors(9), 0u);   // still not armed
    ASSERT_TRUE(d.poll(eq, eqe));
    d.arm(eq);
    net.a.device.eqs->post_completion(eq.eqn, Cqn(p.a.cq.cqn));
    EXPECT_EQ(net.a.host.take_vectors(9), 1u);
}

// A low half that one process has left behind rings nothing by itself for the page's next owner.
TEST_P(ForeignDoorbells, AHalfLeftBehind)
{
    const Wqe wqe = write_to(p.a.sge(0, 64), p.b.va(0), p.b.buffer.key);
    p.a.write(wqe);
    for (uint64_t page = 0; page < HGHCA_UAR_PAGES; page++)
        net.a.device.uar_write(page * HGHCA_UAR_PAGE_SIZE, 1u << 24 | wqe.opcode, 4);
    net.pump();
    EXPECT_EQ(ignored(), 0u);
    EXPECT_EQ(net.a.counters().tx_packets, 0u);
}

// ---- keys

constexpr Access kAccesses[] = {Access::LocalRead, Access::LocalWrite, Access::RemoteWrite, Access::RemoteRead,
                                Access::RemoteAtomic};

class ForeignKeys : public Isolation {
protected:
    // What a PD has: a region, and with MEM_MGT a region for fast registration, and a window of each type on the first.
    struct Tenant {
        uint32_t pd;
        std::unique_ptr<Pair> pair;
        TestDriver::Mr region, fast{};
        std::vector<uint32_t> windows{};
        // All keys of its making.
        std::vector<uint32_t> keys() const
        {
            std::vector<uint32_t> all{region.key};
            if (fast.key)
                all.push_back(fast.key);
            all.insert(all.end(), windows.begin(), windows.end());
            return all;
        }
    };
    bool mem_mgt() const { return net.b.device.caps & HGHCA_CAP_MEM_MGT; }
    static bool atomics() { return GetParam() != Profile::Rsnic; }
    Tenant tenant(uint32_t pd)
    {
        TestDriver &d = net.b.driver;
        const uint32_t access = TestDriver::kRw | (mem_mgt() ? HGHCA_ACCESS_MW_BIND : 0);
        Tenant t{pd, std::make_unique<Pair>(net.a, net.b, in_pd(kPd), in_pd(pd)),
                 d.create_mr(0x100000, 8192, access, pd)};
        if (!mem_mgt())
            return t;
        t.fast = d.create_fast_mr(2, pd);
        t.windows = {d.create_window(false, pd), d.create_window(true, pd)};
        for (uint32_t window : t.windows)
            must(t.pair->b, bind(window, t.region.key));
        return t;
    }
    // The key of the same index with another tag: the low byte with MEM_MGT, otherwise what stands above the index.
    uint32_t tagged(uint32_t key, uint32_t tag) const
    {
        return mem_mgt() ? (key & ~0xffu) | tag : (key & 0xffffff) | tag << 24;
    }
    static Wqe bind(uint32_t rkey, uint32_t lkey)
    {
        return Wqe(HGHCA_OPCODE_BIND_MW)
            .put(hghca_bind_unit{le32(kRemote), 0, le32(rkey), le32(lkey), le64(0x100000), le64(4096)});
    }
    static Wqe local_inv(uint32_t key) { return Wqe(HGHCA_OPCODE_LOCAL_INV).put(hghca_inv_unit{le32(key), {}}); }
    // Of one page.
    static Wqe reg_mr(uint32_t key, uint64_t list)
    {
        return Wqe(HGHCA_OPCODE_REG_MR)
            .put(hghca_reg_unit{le32(key), le32(TestDriver::kRw), 0, le64(4096), le64(list), le32(1), 0, 0, {}});
    }
    void must(Endpoint &e, const Wqe &wqe)
    {
        e.post(wqe);
        net.settle();
        auto done = e.poll();
        ASSERT_TRUE(done);
        ASSERT_FALSE(done->error) << int(done->syndrome);
    }
    // A fresh pair whose QP b is in `pd`: its request ends with the syndrome.
    void refused(uint32_t pd, uint8_t syndrome, const std::function<Wqe(Pair &)> &wqe, bool from_b = false)
    {
        Pair fresh(net.a, net.b, in_pd(kPd), in_pd(pd));
        Endpoint &requester = from_b ? fresh.b : fresh.a;
        requester.post(wqe(fresh));
        net.settle();
        auto done = requester.poll();
        ASSERT_TRUE(done);
        EXPECT_EQ(int(done->syndrome), syndrome);
    }
    // All that the tenant has is what it was.
    void still_good(Tenant &t)
    {
        Endpoint &peer = t.pair->a;
        std::vector<uint32_t> keys = t.windows;
        keys.push_back(t.region.key);
        for (uint32_t key : keys)
            must(peer, write_to(peer.sge(0, 64), 0x100000, key));
        must(t.pair->b, send_self(t));
    }
    static Wqe send_self(Tenant &t)
    {
        return write_to({64, t.region.key, 0x100000}, t.pair->a.va(0), t.pair->a.buffer.key);
    }
};

// RSNIC has datagrams for its QP 1 alone.
class ForeignKeysOfDatagrams : public ForeignKeys {};
// What MEM_MGT brings.
class ForeignKeysThatChange : public ForeignKeys {};

INSTANTIATE_TEST_SUITE_P(Profiles, ForeignKeys, profiles(), name_of_profile);
INSTANTIATE_TEST_SUITE_P(Profiles, ForeignKeysOfDatagrams, ::testing::Values(Profile::Full, Profile::Base),
                         name_of_profile);
INSTANTIATE_TEST_SUITE_P(Profiles, ForeignKeysThatChange, ::testing::Values(Profile::Full), name_of_profile);

// Every index, every tag, every right, for every PD: a key opens what it was made for, in its PD, and nothing else.
TEST_P(ForeignKeys, TheWholeKeySpace)
{
    // Numbers that differ in one bit each, low and high.
    const uint32_t pds[] = {kPd, 3, 0x101, 0x10001, 0x80001, 0x01000001, 0x80000001, 0};
    std::vector<Tenant> tenants;
    for (uint32_t pd : {kPd, 3u, 0x101u, 0x10001u})
        tenants.push_back(tenant(pd));
    MemoryTable &memory = *net.b.device.memory;
    auto owner_of = [&](uint32_t key) -> std::pair<const Tenant *, int> {
        for (const Tenant &t : tenants) {
            if (key == t.region.key)
                return {&t, -1};
            for (size_t i = 0; i < t.windows.size(); i++)
                if (key == t.windows[i])
                    return {&t, int(i)};
        }
        return {nullptr, 0};
    };
    unsigned opened = 0;
    auto look = [&](uint32_t key, uint32_t pd, Access access) {
        const auto [owner, window] = owner_of(key);
        const bool remote = access != Access::LocalRead && access != Access::LocalWrite;
        const bool allowed = owner && owner->pd == pd && (window < 0 || remote);
        const uint32_t qpn = owner ? owner->pair->b.qp.qpn : 8;
        opened += allowed;
        auto opens = [&](Qpn user) {
            return memory.check(Key(key), {pd, user}, 0x100000, 64, access) == Allowed::Yes;
        };
        return opens(Qpn(qpn)) == allowed && (window != 1 || !opens(Qpn(qpn + 1)));
    };
    // Each index with tags that differ little from the right one: with MEM_MGT all of the low byte, and as many indices
    // again beyond the table.
    const uint64_t keys = 1ull << (net.b.driver.layout.log_mpts + (mem_mgt() ? 9 : 5));
    for (uint64_t number = 0; number < keys; number++) {
        const uint32_t key = uint32_t(number) ^ (mem_mgt() ? 0 : 0xab000000);
        const bool has_owner = owner_of(key).first;
        // Each QP's own buffer and queues are keys too; they do not reach 0x100000.
        for (uint32_t pd : pds) {
            ASSERT_TRUE(look(key, pd, Access::RemoteWrite)) << std::hex << key << " PD " << pd;
            for (Access access : kAccesses)
                if (has_owner && access != Access::RemoteWrite) {
                    ASSERT_TRUE(look(key, pd, access)) << std::hex << key << " PD " << pd << " " << uint32_t(access);
                }
        }
        ASSERT_TRUE(has_owner || look(key, kPd, Access::LocalRead)) << std::hex << key;
    }
    EXPECT_EQ(opened, tenants.size() * (mem_mgt() ? 5 + 3 + 3 : 5));
    for (uint32_t high = 1; high < 256; high++)   // the bits above the table's size count
        EXPECT_EQ(memory.check(Key(tenants[0].region.key ^ high << 24), {kPd, Qpn(8)}, 0x100000, 64, Access::LocalRead),
                  Allowed::No);
}

// A key whose region or window is gone stays shut, with every tag, though the index lives on in another PD.
TEST_P(ForeignKeys, AfterTheEnd)
{
    Tenant t = tenant(kPd);
    TestDriver &d = net.b.driver;
    MemoryTable &memory = *net.b.device.memory;
    std::vector<uint32_t> gone = t.windows;
    gone.push_back(t.region.key);
    for (uint32_t key : gone)
        ASSERT_EQ(d.destroy_key(key), 0);
    auto none_opens = [&](uint32_t pd) {
        for (uint32_t key : gone)
            for (uint32_t tag = 0; tag < 256; tag++)
                for (Access access : kAccesses)
                    if (memory.check(Key(tagged(key, tag)), {pd, Qpn(t.pair->b.qp.qpn)}, 0x100000, 64, access) ==
                        Allowed::Yes)
                        return false;
        return true;
    };
    EXPECT_TRUE(none_opens(kPd));
    for (uint32_t key : gone)
        TestDriver::must(d.post(HGHCA_CMD_SW2HW_MPT, d.mpt_mailbox(key, 0x100000, 4096, 1, TestDriver::kRw, kOther),
                                d.mpt_index(key)), "SW2HW_MPT");
    EXPECT_TRUE(none_opens(kPd));
    EXPECT_EQ(memory.check(Key(gone[0]), kOther, 0x100000, 64, Access::RemoteWrite), Allowed::Yes);
}

// Each place of a work request that takes a key, with every key of another PD.
TEST_P(ForeignKeys, InEveryPlaceOfAWorkRequest)
{
    Tenant t = tenant(kOther);
    std::vector<uint32_t> keys = t.keys();
    keys.insert(keys.end(), {t.pair->b.qp.sq.key, t.pair->b.qp.rq.key, t.pair->b.buffer.key});
    std::memset(net.b.host.at(t.region.dma), 0x5c, 8192);
    std::memset(t.pair->b.at(0), 0x5c, 4096);
    for (uint32_t key : keys) {
        SCOPED_TRACE(key);
        const uint64_t va = key == t.pair->b.buffer.key ? t.pair->b.buffer.va
                            : key == t.pair->b.qp.sq.key || key == t.pair->b.qp.rq.key ? 0 : 0x100000;
        const Sge foreign{8, key, va};
        const auto local = HGHCA_SYNDROME_LOCAL_PROT_ERR;
        const auto remote = HGHCA_SYNDROME_REMOTE_ACCESS_ERR;
        // By the intruder's own QP b, in PD kPd on the same device.
        refused(kPd, local, [&](Pair &) { return send(foreign); }, true);
        refused(kPd, local, [&](Pair &f) { return write_to(foreign, f.a.va(0), f.a.buffer.key); }, true);
        refused(kPd, local, [&](Pair &f) { return read_from(foreign, f.a.va(0), f.a.buffer.key); }, true);
        if (atomics())
            refused(kPd, local, [&](Pair &f) {
                return Wqe(HGHCA_OPCODE_ATOMIC_FA).raddr(f.a.va(0), f.a.buffer.key).atomic(1, 0).data(foreign);
            }, true);
        // By a peer of the intruder's.
        refused(kPd, remote, [&](Pair &f) { return write_to(f.a.sge(0, 8), va, key); });
        refused(kPd, remote, [&](Pair &f) { return read_from(f.a.sge(0, 8), va, key); });
        if (atomics())
            refused(kPd, remote, [&](Pair &f) {
                return Wqe(HGHCA_OPCODE_ATOMIC_FA).raddr(va, key).atomic(1, 0).data(f.a.sge(0, 8));
            });
        // In a receive, and in one of an SRQ.
        Pair receiving(net.a, net.b, in_pd(kPd));
        receiving.b.post_recv(foreign);
        receiving.a.post(send(receiving.a.sge(0, 8)));
        net.settle();
        auto got = receiving.b.poll();
        ASSERT_TRUE(got);
        EXPECT_EQ(int(got->syndrome), local);
    }
    for (unsigned i = 0; i < 4096; i++) {
        ASSERT_EQ(net.b.host.at(t.region.dma)[i], 0x5c);
        ASSERT_EQ(t.pair->b.at(0)[i], 0x5c);
    }
    still_good(t);
}

// Datagrams too: UD gathers, and scatters, in the PD of its QP.
TEST_P(ForeignKeysOfDatagrams, InDatagrams)
{
    Tenant t = tenant(kOther);
    Endpoint to(net.a, in_pd(kPd, HGHCA_QP_ST_UD)), from(net.b, in_pd(kPd, HGHCA_QP_ST_UD));
    to.post_recv(to.sge(0, 200));
    Wqe wqe(HGHCA_OPCODE_SEND);
    from.post(put_address(wqe, net.b, to.qp.qpn, 1).data({8, t.region.key, t.region.va}));
    net.settle();
    auto sent = from.poll();
    ASSERT_TRUE(sent);
    EXPECT_EQ(int(sent->syndrome), HGHCA_SYNDROME_LOCAL_PROT_ERR);
    EXPECT_EQ(from.state(), unsigned(HGHCA_QP_STATE_SQE));
    EXPECT_FALSE(to.poll());

    Endpoint receiver(net.b, in_pd(kPd, HGHCA_QP_ST_UD));
    std::memset(net.b.host.at(t.region.dma), 0x5c, 4096);
    receiver.post_recv({200, t.region.key, t.region.va});
    Wqe good(HGHCA_OPCODE_SEND);
    to.post(put_address(good, net.a, receiver.qp.qpn, 2).data(to.sge(0, 8)));
    net.settle();
    auto got = receiver.poll();
    ASSERT_TRUE(got);
    EXPECT_EQ(int(got->syndrome), HGHCA_SYNDROME_LOCAL_PROT_ERR);
    for (unsigned i = 0; i < 200; i++)
        ASSERT_EQ(net.b.host.at(t.region.dma)[i], 0x5c);
}

// Nobody else changes what a key opens: by REG_MR, LOCAL_INV, BIND_MW, nor a peer by SEND with Invalidate.
TEST_P(ForeignKeysThatChange, AreNotChanged)
{
    Tenant t = tenant(kOther);
    TestDriver &d = net.b.driver;
    const uint64_t list = net.b.host.alloc(4096);
    const auto own = d.create_mr(0x100000, 8192, TestDriver::kRw | HGHCA_ACCESS_MW_BIND, kPd);
    const uint32_t own_windows[] = {d.create_window(false), d.create_window(true)};
    const auto denied = HGHCA_SYNDROME_MW_BIND_ERR;
    const uint32_t keys[] = {t.region.key, t.fast.key, t.windows[0], t.windows[1]};
    const uint64_t registered = net.b.counters().regions_registered;
    for (uint32_t key : keys) {
        SCOPED_TRACE(key);
        for (uint32_t either : {key, key ^ 1}) {
            refused(kPd, denied, [&](Pair &) { return local_inv(either); }, true);
            refused(kPd, denied, [&](Pair &) { return bind(either, own.key); }, true);
            refused(kPd, HGHCA_SYNDROME_LOCAL_QP_OP_ERR, [&](Pair &) {   // no trust, no look at the key
                return reg_mr(either, list);
            }, true);
        }
        for (uint32_t window : own_windows)
            refused(kPd, denied, [&](Pair &) { return bind(window, key); }, true);
        refused(kPd, HGHCA_SYNDROME_REMOTE_ACCESS_ERR, [&](Pair &f) {
            f.b.post_recv(f.b.sge(0, 64));
            return Wqe(HGHCA_OPCODE_SEND_INV, HGHCA_WQE_CQ_UPDATE, be32(key)).data(f.a.sge(0, 8));
        });
    }
    EXPECT_EQ(net.b.counters().regions_registered, registered);
    EXPECT_EQ(net.b.counters().keys_invalidated, 0u);
    still_good(t);
    // The owner's own QP changes them, though not by way of another one's window.
    must(t.pair->b, local_inv(t.windows[1]));
    EXPECT_EQ(net.b.counters().keys_invalidated, 1u);
}

// A QP in the kernel's trust does not reach into another PD either.
TEST_P(ForeignKeysThatChange, TrustIsNoOtherPd)
{
    Options trusted = in_pd(kPd);
    trusted.trusted = true;
    Pair pair(net.a, net.b, in_pd(kPd), trusted);
    const auto fast = net.b.driver.create_fast_mr(1, kOther);
    const uint64_t list = net.b.host.alloc(4096);
    pair.b.post(reg_mr(fast.key, list));
    auto done = pair.b.poll();
    ASSERT_TRUE(done);
    EXPECT_EQ(int(done->syndrome), HGHCA_SYNDROME_MW_BIND_ERR);
}

// ---- queues and contexts

// Queues are read through keys of the QP's PD, wherever the memory is.
TEST_P(ForeignKeys, OfQueues)
{
    TestDriver &d = net.b.driver;
    Tenant t = tenant(kOther);
    const bool base = GetParam() == Profile::Base;
    const uint8_t service = GetParam() == Profile::Rsnic ? HGHCA_QP_ST_RAW : HGHCA_QP_ST_UD;
    Endpoint intruder(net.b, in_pd(kPd, service));
    auto qp = d.new_qp(64, 64, 8);
    if (base)
        qp.dbr = 0;
    hghca_qpc c = d.init_qpc(qp, service, intruder.cq, intruder.cq);
    c.snd_wqe_base_l = be32(t.pair->b.qp.sq.key);
    TestDriver::must(d.modify(HGHCA_CMD_RST2INIT_QPEE, qp.qpn, c), "RST2INIT");
    d.to_rts(qp);
    const uint64_t before = net.b.counters().tx_packets;
    d.ring_sq(qp, 0, HGHCA_OPCODE_SEND, 4, 1);
    net.settle();
    EXPECT_EQ(net.b.counters().tx_packets, before);
    EXPECT_EQ(net.b.events(HGHCA_EVENT_WQ_CATAS_ERROR), 1u);

    hghca_cqc cqc = d.cqc_mailbox(100, 4, t.region.key, d.async.eqn);   // PD kPd, key of kOther
    cqc.start = be64(t.region.va);
    // The document does not use the PD of a CQ: whose queue it is, the region says.
    EXPECT_EQ(d.post(HGHCA_CMD_SW2HW_CQ, cqc, 100), base ? HGHCA_CMD_STAT_OK : HGHCA_CMD_STAT_BAD_PARAM);
    hghca_eqc eqc = d.eqc_mailbox(4, t.region.key, 1);
    eqc.start = be64(t.region.va);
    EXPECT_EQ(d.post(HGHCA_CMD_SW2HW_EQ, eqc, 9), HGHCA_CMD_STAT_BAD_PARAM);
    eqc.pd = be32(kOther);
    EXPECT_EQ(d.post(HGHCA_CMD_SW2HW_EQ, eqc, 9), HGHCA_CMD_STAT_OK);
    if (net.b.device.caps & HGHCA_CAP_SRQ) {
        auto srq = d.new_srq();
        srq.buffer.key = t.region.key;
        EXPECT_EQ(d.post(HGHCA_CMD_SW2HW_SRQ, d.srqc_mailbox(srq), srq.srqn), HGHCA_CMD_STAT_BAD_PARAM);
    }
    still_good(t);
}

}  // namespace
}  // namespace hghca::test::isolation_test
