// SPDX-License-Identifier: GPL-2.0-or-later
// The retransmission buffer: a packet goes again as it went for the first time.
#include <gtest/gtest.h>

#include "transport/transport.h"
#include "verbs.h"

namespace hghca::test {
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

}  // namespace
}  // namespace hghca::test
