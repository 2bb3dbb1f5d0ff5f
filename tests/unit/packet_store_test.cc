// SPDX-License-Identifier: GPL-2.0-or-later
// The retransmission buffer: a packet goes again as it went for the first time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "icm_entry.h"
#include "transport/transport.h"
#include "verbs.h"

namespace hghca::test::packet_store_test {
namespace {

using Options = Endpoint::Options;

constexpr uint32_t kQps = 256;

// BTH, behind Ethernet, IPv4 and UDP: the destination QP.
uint32_t dqpn_of(const Frame &f) { return uint32_t(f[47]) << 16 | uint32_t(f[48]) << 8 | f[49]; }

class Retransmission : public ::testing::Test {
protected:
    // A buffer of so many packets for device a.
    void use(uint32_t places)
    {
        const uint64_t at = net.a.host.alloc(uint64_t(places) * 4096, 4096);
        net.a.device.transport->store.configure(at, places, kQps);
    }
    // Of what a sends, the first `count` frames are lost, and `then` is called for each.
    template <class Then>
    void lose(unsigned count, Then then)
    {
        net.filter = [this, count, then](const Node &from, Frame &) mutable {
            if (&from != &net.a || !count)
                return Fate{};
            then();
            count--;
            return Fate{0, 0};
        };
    }

    Network net;
};

// The memory changes between the loss and the second time.
TEST_F(Retransmission, OfAPacketWhoseMemoryHasChanged)
{
    use(64);
    for (uint32_t size : {1u, 100u, 1024u}) {
        SCOPED_TRACE(size);
        Pair p(net.a, net.b, Options{});
        p.a.fill(0, size, 7);
        const uint64_t before = net.a.device.counters().retransmitted;
        lose(3, [&] { p.a.fill(0, size, 8); });
        p.a.post(write_to(p.a.sge(0, size), p.b.va(100), p.b.buffer.key));
        net.settle();
        EXPECT_EQ(p.a.poll_all().size(), 1u);
        EXPECT_TRUE(p.b.holds(100, size, 7));
        EXPECT_EQ(net.a.device.counters().retransmitted, before + 3);
    }
}

TEST_F(Retransmission, WithoutABufferTheMemoryIsReadAgain)
{
    Pair p(net.a, net.b, Options{});
    p.a.fill(0, 100, 7);
    lose(1, [&] { p.a.fill(0, 100, 8); });
    p.a.post(write_to(p.a.sge(0, 100), p.b.va(100), p.b.buffer.key));
    net.settle();
    EXPECT_TRUE(p.b.holds(100, 100, 8));
}

// Every packet of a window that is lost as a whole goes again as it was.
TEST_F(Retransmission, OfAWholeWindow)
{
    use(512);
    Pair p(net.a, net.b, Options{});
    const uint32_t size = 30000;
    p.a.fill(0, size, 7);
    bool changed = false;
    net.filter = [&](const Node &from, Frame &) { return Fate{&from == &net.a && !changed ? 0u : 1u, 0}; };
    p.a.post(write_to(p.a.sge(0, size), p.b.va(100), p.b.buffer.key));
    net.pump();
    p.a.fill(0, size, 8);
    changed = true;
    net.settle();
    ASSERT_EQ(p.a.poll_all().size(), 1u);
    EXPECT_TRUE(p.b.holds(100, size, 7));
}

// A buffer of two packets: the QP waits for acknowledgements, and nothing is lost.
TEST_F(Retransmission, AFullBufferDelays)
{
    use(2);
    Pair p(net.a, net.b, Options{}), q(net.a, net.b, Options{});
    for (Pair *pair : {&p, &q}) {
        pair->a.fill(0, 50000, 3);
        for (unsigned i = 0; i < 4; i++)
            pair->a.post(write_to(pair->a.sge(0, 50000), pair->b.va(100), pair->b.buffer.key));
    }
    net.settle();
    for (Pair *pair : {&p, &q}) {
        EXPECT_EQ(pair->a.poll_all().size(), 4u);
        EXPECT_TRUE(pair->b.holds(100, 50000, 3));
    }
}

// Connections to peers that do not answer take all places but one for each other QP.
TEST_F(Retransmission, DeadPeersDoNotStopTheOthers)
{
    use(kQps + 4);
    Pair dead(net.a, net.b, Options{.ack_timeout = 0}), good(net.a, net.b, Options{});
    net.filter = [&](const Node &from, Frame &f) {
        return Fate{&from == &net.a && dqpn_of(f) == dead.b.qp.qpn ? 0u : 1u, 0};
    };
    dead.a.post(write_to(dead.a.sge(0, 50000), dead.b.va(0), dead.b.buffer.key));
    net.settle(1'000'000'000);
    good.a.fill(0, 50000, 3);
    good.a.post(write_to(good.a.sge(0, 50000), good.b.va(100), good.b.buffer.key));
    net.settle();
    EXPECT_EQ(good.a.poll_all().size(), 1u);
    EXPECT_TRUE(good.b.holds(100, 50000, 3));
    EXPECT_TRUE(dead.a.poll_all().empty());
}

// More QPs than places: they wait in turn, and one that ends while it waits stops nobody.
TEST_F(Retransmission, ManyQpsShareAFullBuffer)
{
    use(2);
    const Options options{.buffer_bytes = 64 << 10};
    std::vector<std::unique_ptr<Pair>> pairs;
    for (unsigned i = 0; i < 8; i++) {
        pairs.push_back(std::make_unique<Pair>(net.a, net.b, options));
        pairs[i]->a.fill(0, 20000, i);
    }
    for (auto &pair : pairs)
        pair->a.post(write_to(pair->a.sge(0, 20000), pair->b.va(100), pair->b.buffer.key));
    ASSERT_EQ(net.a.driver.command(HGHCA_CMD_ERR2RST_QPEE, 0, pairs[3]->a.qp.qpn, HGHCA_QP_OPMOD_NO_INBOX).status, 0);
    net.settle();
    for (unsigned i = 0; i < 8; i++) {
        if (i == 3)
            continue;
        EXPECT_EQ(pairs[i]->a.poll_all().size(), 1u) << i;
        EXPECT_TRUE(pairs[i]->b.holds(100, 20000, i)) << i;
    }
    EXPECT_EQ(net.a.counters().local_ack_timeout_err, 0u);
}

// What a QP holds is free again when it fails or is reset.
TEST_F(Retransmission, AQpThatEndsFreesItsPackets)
{
    use(2);
    for (unsigned round = 0; round < 5; round++) {
        Pair p(net.a, net.b, Options{});
        net.filter = [&](const Node &from, Frame &) { return Fate{&from == &net.a ? 0u : 1u, 0}; };
        p.a.post(write_to(p.a.sge(0, 5000), p.b.va(100), p.b.buffer.key));
        net.pump();
        if (round % 2)
            net.settle(100'000'000'000);   // until it gives up
        else
            ASSERT_EQ(net.a.driver.command(HGHCA_CMD_ERR2RST_QPEE, 0, p.a.qp.qpn, HGHCA_QP_OPMOD_NO_INBOX).status, 0);
        net.filter = nullptr;
        Pair good(net.a, net.b, Options{});
        good.a.fill(0, 5000, round);
        good.a.post(write_to(good.a.sge(0, 5000), good.b.va(100), good.b.buffer.key));
        net.settle();
        EXPECT_TRUE(good.b.holds(100, 5000, round)) << round;
    }
}

// The guest overwrites the context of a QP that holds all places. They are free again when the QP's timer ends, or when
// its number is reset or used again.
TEST(RetransmissionIcm, AQpWhoseContextIsLostFreesItsPackets)
{
    Network net(1);
    TestDriver &d = net.a.driver;
    net.a.device.transport->store.configure(net.a.host.alloc(2 * 4096, 4096), 2, kQps);
    Pair other(net.a, net.b, Options{});
    for (unsigned round = 0; round < 3; round++) {
        SCOPED_TRACE(round);
        Pair lost(net.a, net.b, Options{.ack_timeout = round ? 0u : 14u});
        net.filter = [&](const Node &from, Frame &) { return Fate{&from == &net.a ? 0u : 1u, 0}; };
        lost.a.post(write_to(lost.a.sge(0, 5000), lost.b.va(100), lost.b.buffer.key));
        net.pump();
        EXPECT_TRUE(net.a.device.transport->store.full());
        hghca_qpc c;
        TestDriver::must(d.query(HGHCA_CMD_QUERY_QP, c, other.a.qp.qpn), "QUERY_QP");   // so the other one leaves the cache
        const uint32_t qpn = lost.a.qp.qpn;
        uint8_t *entry = net.a.host.at(d.qpc_dma + 2048 * uint64_t(qpn));
        ASSERT_EQ(get_field<Qp>(entry, "a.qpn"), qpn);
        std::memset(entry, 0, 16);
        if (round == 0) {
            net.settle(1'000'000'000);
        } else if (round == 1) {
            TestDriver::must(d.command(HGHCA_CMD_ERR2RST_QPEE, 0, qpn, HGHCA_QP_OPMOD_NO_INBOX).status, "2RST");
        } else {
            c = d.init_qpc(lost.a.qp, HGHCA_QP_ST_RC, lost.a.cq, lost.a.cq);
            c.pd = be32(TestDriver::kPd);
            TestDriver::must(d.modify(HGHCA_CMD_RST2INIT_QPEE, qpn, c), "RST2INIT");
        }
        EXPECT_FALSE(net.a.device.transport->store.full());
        net.filter = nullptr;
        Pair good(net.a, net.b, Options{});
        good.a.fill(0, 5000, round);
        good.a.post(write_to(good.a.sge(0, 5000), good.b.va(100), good.b.buffer.key));
        net.settle();
        EXPECT_EQ(good.a.poll_all().size(), 1u);
        EXPECT_TRUE(good.b.holds(100, 5000, round));
    }
}

// The store alone.
class StoreTest : public ::testing::Test {
protected:
    using Copy = PacketStore::Copy;
    using Kept = PacketStore::Kept;
    static constexpr Qpn kQp{3};

    void configure(uint32_t places, uint32_t qps)
    {
        store.configure(host.alloc(uint64_t(places) * 4096, 4096), places, qps);
    }
    Kept keep(Qpn qpn, Psn psn, uint32_t bytes, uint8_t value = 0)
    {
        const std::vector<uint8_t> payload(bytes, value);
        return store.keep(qpn, psn, payload.data(), bytes, out);
    }
    Copy find(Qpn qpn, Psn psn, uint32_t bytes) { return store.find(qpn, psn, bytes, out); }
    // Is `out` so many bytes of this value?
    bool holds(uint32_t bytes, uint8_t value) const
    {
        return out.size() == 1 && out[0].length == bytes &&
               std::all_of(out[0].pointer, out[0].pointer + bytes, [value](uint8_t byte) { return byte == value; });
    }
    void share()
    {
        store.wake_next([this](Qpn qpn) { woken.push_back(number(qpn)); });
    }
    void release(Qpn qpn, Psn unacked)
    {
        store.release(qpn, unacked, [this](Qpn other) { woken.push_back(number(other)); });
    }
    void release_all(Qpn qpn)
    {
        store.release_all(qpn, [this](Qpn other) { woken.push_back(number(other)); });
    }

    FakeHost host;
    PacketStore store{host};
    PacketSegments out;
    std::vector<uint32_t> woken;
};

// The PSNs of READs are between those of the packets, which go around the end of the space and of the queue.
TEST_F(StoreTest, FindsEachPacketBetweenGaps)
{
    configure(1024, kQps);
    for (const uint32_t every : {1u, 3u, 7u, 1000u}) {
        for (unsigned round = 0; round < 3; round++) {
            SCOPED_TRACE(testing::Message() << every << ", round " << round);
            std::vector<Psn> psns;
            std::vector<Psn> gaps;
            Psn psn = psn_of(0xffff80);
            EXPECT_EQ(find(kQp, psn, 1), Copy::Absent);
            for (uint32_t i = 0; i < 100 + round; i++) {
                psns.push_back(psn);
                ASSERT_EQ(keep(kQp, psn, i + 1, uint8_t(i)), Kept::Yes);
                psn = psn_add(psn, 1);
                if (i % every == every - 1) {
                    gaps.push_back(psn);
                    psn = psn_add(psn, 1 + i);
                }
            }
            for (uint32_t i = 0; i < psns.size(); i++) {
                ASSERT_EQ(find(kQp, psns[i], i + 1), Copy::Here) << i;
                EXPECT_TRUE(holds(i + 1, uint8_t(i))) << i;
                EXPECT_EQ(find(kQp, psns[i], i + 2), Copy::Differs) << i;
            }
            for (const Psn gap : gaps)
                EXPECT_EQ(find(kQp, gap, 1), psn_distance(gap, psns.back()) < kPsnHalf ? Copy::Absent : Copy::Forgotten);
            EXPECT_EQ(find(kQp, psn_before(psns[0]), 1), Copy::Forgotten);
            EXPECT_EQ(find(kQp, psn_add(psns.back(), 1), 1), Copy::Absent);
            EXPECT_EQ(find(Qpn{4}, psns[0], 1), Copy::Absent);
            release(kQp, psns[50]);
            EXPECT_EQ(find(kQp, psns[49], 50), Copy::Forgotten);
            EXPECT_EQ(find(kQp, psns[50], 51), Copy::Here);
            EXPECT_EQ(find(kQp, psns.back(), uint32_t(psns.size())), Copy::Here);
            release_all(kQp);
            EXPECT_EQ(find(kQp, psns.back(), uint32_t(psns.size())), Copy::Absent);
        }
    }
}

// Only a guest that rewrites its WQEs has more under way. They go from its memory, and take no place.
TEST_F(StoreTest, AWindowOfPacketsIsAll)
{
    configure(600, 300);
    for (uint32_t i = 0; i < 256; i++)
        ASSERT_EQ(keep(kQp, psn_of(i), 100), Kept::Yes) << i;
    out.clear();
    EXPECT_EQ(keep(kQp, psn_of(256), 100), Kept::Yes);
    EXPECT_EQ(out.size(), 0u);
    EXPECT_EQ(find(kQp, psn_of(256), 100), Copy::Absent);
    EXPECT_EQ(find(kQp, psn_of(255), 100), Copy::Here);
    release(kQp, psn_of(1));
    EXPECT_EQ(keep(kQp, psn_of(256), 100), Kept::Yes);
    EXPECT_EQ(find(kQp, psn_of(256), 100), Copy::Here);
    EXPECT_EQ(find(kQp, psn_of(1), 100), Copy::Here);
}

// As many wake as there is room for, the longest waiting first, and each once.
TEST_F(StoreTest, AsManyWakeAsThereAreFreePlaces)
{
    configure(2, 8);
    ASSERT_EQ(keep(Qpn{1}, psn_of(7), 10), Kept::Yes);
    ASSERT_EQ(keep(Qpn{1}, psn_of(8), 10), Kept::Yes);
    for (const uint32_t n : {2u, 3u, 4u, 2u})
        EXPECT_EQ(keep(Qpn{n}, psn_of(7), 10), Kept::Full);
    share();
    EXPECT_EQ(woken, std::vector<uint32_t>{});
    release(Qpn{1}, psn_of(8));
    EXPECT_EQ(woken, (std::vector<uint32_t>{2}));
    share();   // QP 2 has not used the place
    EXPECT_EQ(woken, (std::vector<uint32_t>{2, 3}));
    EXPECT_EQ(keep(Qpn{3}, psn_of(7), 10), Kept::Yes);
    share();
    EXPECT_EQ(woken, (std::vector<uint32_t>{2, 3}));
    EXPECT_EQ(keep(Qpn{2}, psn_of(7), 10), Kept::Full);
    release_all(Qpn{1});
    EXPECT_EQ(woken, (std::vector<uint32_t>{2, 3, 4}));
    EXPECT_EQ(keep(Qpn{4}, psn_of(7), 10), Kept::Yes);
    release(Qpn{4}, psn_of(8));
    EXPECT_EQ(woken, (std::vector<uint32_t>{2, 3, 4, 2}));
    share();
    EXPECT_EQ(woken, (std::vector<uint32_t>{2, 3, 4, 2}));
}

// Each QP may wait, and the places of those who wait are used again and again.
TEST_F(StoreTest, AllQpsWait)
{
    constexpr uint32_t kFew = 8;
    configure(1, kFew);
    ASSERT_EQ(keep(Qpn{0}, psn_of(0), 10), Kept::Yes);
    for (uint32_t i = 0; i < 5 * kFew; i++) {
        const Qpn user{i % kFew}, next{(i + 1) % kFew};
        for (uint32_t n = i + 1; n < i + kFew; n++)
            ASSERT_EQ(keep(Qpn{n % kFew}, psn_of(i + 1), 10), Kept::Full);
        release_all(user);
        ASSERT_EQ(woken, (std::vector<uint32_t>{number(next)}));
        woken.clear();
        ASSERT_EQ(keep(next, psn_of(i + 1), 10), Kept::Yes);
    }
}

}  // namespace
}  // namespace hghca::test::packet_store_test
