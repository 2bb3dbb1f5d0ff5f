// SPDX-License-Identifier: GPL-2.0-or-later
// Whose ICRC is verified: which frames the device vouches for, and what it does with one that somebody vouches for.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "raw_frames.h"

namespace hghca::test::verify_test {
namespace {

using Options = Endpoint::Options;

Options of_service(unsigned service)
{
    Options options;
    options.service = service;
    return options;
}

class Verify : public ::testing::Test {
protected:
    // Sends with `act`; who has made the ICRC of each frame, by what the device says.
    template <class Act>
    std::vector<Icrc> made(Act act)
    {
        std::vector<Icrc> found;
        net.filter = [&found](const Node &from, Frame &) {
            found.push_back(from.host.last_icrc);
            return Fate{};
        };
        act();
        net.settle(1'000'000);
        net.filter = nullptr;
        return found;
    }
    // A WRITE of one packet, and whether what arrives of it has changed.
    void write(unsigned bytes = 100)
    {
        p.a.post(write_to(p.a.sge(0, bytes), p.b.va(0), p.b.buffer.key));
    }
    static void set_rules(Node &node, const char *rules)
    {
        std::string error;
        ASSERT_TRUE(node.device.impairment.set_rules(rules, error)) << error;
    }

    Network net;
    Pair p{net.a, net.b, {}};
};

TEST_F(Verify, TheDeviceVouchesForWhatItsTransportHasMade)
{
    const auto all = made([this] {
        write(5000);
        p.a.post(read_from(p.a.sge(0, 5000), p.b.va(0), p.b.buffer.key));
        p.a.post(Wqe(HGHCA_OPCODE_ATOMIC_FA).raddr(p.b.va(0), p.b.buffer.key).atomic(1, 0).data(p.a.sge(0, 8)));
    });
    // Requests, responses and acknowledgements.
    EXPECT_GT(all.size(), 10u);
    EXPECT_EQ(std::count(all.begin(), all.end(), Icrc::Device), std::ptrdiff_t(all.size()));
}

// A frame of the raw packet QP is software's, even if it is the copy of a packet.
TEST_F(Verify, AFrameOfARawQpIsVerified)
{
    Endpoint raw(net.a, of_service(HGHCA_QP_ST_RAW));
    net.keep_log = true;
    write();
    net.pump();
    ASSERT_FALSE(net.log.empty());
    const Frame copy = net.log.front();
    std::memcpy(raw.at(0), copy.data(), copy.size());
    const auto all = made([&] { raw.post(Wqe(HGHCA_OPCODE_SEND).data(raw.sge(0, uint32_t(copy.size())))); });
    ASSERT_FALSE(all.empty());
    EXPECT_EQ(all.front(), Icrc::Unknown);
}

TEST_F(Verify, AFrameThatWentThroughRulesIsVerified)
{
    // A rule that selects no frame, and one that changes each.
    for (const char *rules : {"drop,opcode=fetch_add", "delay,us=5"}) {
        SCOPED_TRACE(rules);
        set_rules(net.a, rules);
        const auto all = made([this] { write(); });
        ASSERT_EQ(all.size(), 2u);
        EXPECT_EQ(all[0], Icrc::Unknown);
        EXPECT_EQ(all[1], Icrc::Device);   // b's acknowledgement
    }
    // A frame that is still held back when the rules go.
    set_rules(net.a, "delay,us=5");
    const auto all = made([this] {
        write();
        set_rules(net.a, "");
    });
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0], Icrc::Unknown);
}

// The last byte of a packet is of the ICRC.
class Corrupted : public Verify {
protected:
    Corrupted()
    {
        net.filter = [this](const Node &from, Frame &frame) {
            if (&from != &net.a)
                return Fate{};
            frame.back() ^= 1;
            kept = frame;
            return Fate{0};
        };
        write();
        net.pump();
        net.filter = nullptr;
    }
    void receive(Icrc icrc)
    {
        const iovec part{kept.data(), kept.size()};
        net.b.device.receive({&part, 1}, icrc);
    }
    uint64_t dropped() const { return net.b.counters().rx_bad_icrc; }

    Frame kept;
};

TEST_F(Corrupted, IsDropped)
{
    receive(Icrc::Unknown);
    EXPECT_EQ(dropped(), 1u);
    EXPECT_EQ(net.b.counters().rx_packets, 0u);
}

TEST_F(Corrupted, IsTakenFromADeviceThatVouchesForIt)
{
    receive(Icrc::Device);
    EXPECT_EQ(dropped(), 0u);
    EXPECT_EQ(net.b.counters().rx_packets, 1u);
}

TEST_F(Corrupted, IsDroppedWhereTheReceiverHasRules)
{
    set_rules(net.b, "drop,opcode=fetch_add");
    receive(Icrc::Device);
    EXPECT_EQ(dropped(), 1u);
}

// What is no packet at all is dropped, whoever vouches for it.
TEST_F(Corrupted, ItsLengthsAreCheckedAllTheSame)
{
    kept.resize(kept.size() - 8);
    receive(Icrc::Device);
    EXPECT_EQ(net.b.counters().rx_packets, 0u);
    EXPECT_EQ(dropped(), 0u);
}

TEST(VerifyLate, AFrameThatHasWaitedInTheReceiveBuffer)
{
    // 8 Mbit/s: a byte takes 1 us.
    Network net(0, kFullCaps, {}, 64u << 20, {ReceiveBuffer{8, 64u << 10}, ReceiveBuffer{}});
    Pair p(net.a, net.b, {});
    std::vector<Frame> sent;
    net.filter = [&](const Node &from, Frame &frame) {
        if (&from == &net.a)
            sent.push_back(frame);
        return Fate{0};
    };
    for (unsigned i = 0; i < 2; i++)
        p.a.post(write_to(p.a.sge(0, 100), p.b.va(0), p.b.buffer.key));
    net.pump();
    ASSERT_GE(sent.size(), 2u);
    for (Frame &frame : sent) {
        frame.back() ^= 1;
        const iovec part{frame.data(), frame.size()};
        net.b.device.receive({&part, 1}, Icrc::Device);
    }
    net.settle(1'000'000);
    EXPECT_EQ(net.b.counters().rx_packets, 1u);
    EXPECT_EQ(net.b.counters().rx_bad_icrc, sent.size() - 1);
}

}  // namespace
}  // namespace hghca::test::verify_test
