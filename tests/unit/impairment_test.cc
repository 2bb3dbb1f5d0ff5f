// SPDX-License-Identifier: GPL-2.0-or-later
// Link impairment: each fault and each selector alone, and whole connections under them.
#include "port/impairment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "verbs.h"

namespace hghca::test::impairment_test {
namespace {

constexpr uint64_t kUs = 1000;

// ---- frames of our own making

void put16(Frame &f, unsigned value)
{
    f.push_back(uint8_t(value >> 8));
    f.push_back(uint8_t(value));
}
void put32(Frame &f, uint32_t value)
{
    put16(f, value >> 16);
    put16(f, value & 0xffff);
}

struct Shape {
    uint8_t opcode = 0x04;
    uint32_t qpn = 18;
    uint32_t psn = 100;
    size_t payload = 64;
    bool ipv6 = false, vlan = false;
    unsigned options = 0;   // words in the IPv4 header
    size_t padding = 0;     // of the link
};

Frame roce(const Shape &shape)
{
    Frame f(12, 2);
    if (shape.vlan) {
        put16(f, 0x8100);
        put16(f, 5);
    }
    const unsigned udp = unsigned(8 + 12 + shape.payload + 4);
    if (shape.ipv6) {
        put16(f, 0x86dd);
        put32(f, 6u << 28);
        put16(f, udp);
        put16(f, 17 << 8 | 64);
        f.resize(f.size() + 32, 0xfd);
    } else {
        put16(f, 0x0800);
        put16(f, (0x45 + shape.options) << 8);
        put16(f, 20 + 4 * shape.options + udp);
        put32(f, 0x4000);
        put32(f, 64 << 24 | 17 << 16);
        f.resize(f.size() + 8 + size_t(4) * shape.options, 10);
    }
    put16(f, 0xc000);
    put16(f, 4791);
    put16(f, udp);
    put16(f, 0);
    put32(f, uint32_t(shape.opcode) << 24 | 0xffff);
    put32(f, shape.qpn);
    put32(f, shape.psn);
    f.resize(f.size() + shape.payload + 4, 0x5a);
    f.resize(f.size() + shape.padding, 0);
    return f;
}
size_t bth_of(const Shape &s) { return 14 + (s.vlan ? 4 : 0) + (s.ipv6 ? 40 : 20 + 4 * s.options) + 8; }

// A packet that its PSN tells from others.
Frame numbered(uint32_t psn) { return roce({.psn = psn}); }
uint32_t number_of(const Frame &f) { return View(f).psn; }

Frame arp()
{
    Frame f(12, 0xff);
    put16(f, 0x0806);
    f.resize(60, 7);
    return f;
}
Frame udp_to(unsigned port)
{
    Frame f = roce({});
    f[36] = uint8_t(port >> 8);
    f[37] = uint8_t(port);
    return f;
}

// ---- an impaired link and nothing else

class ImpairmentTest : public ::testing::Test, private Impairment::Ends {
protected:
    ImpairmentTest() { work.begin_slice(1 << 20); }
    void rules(std::string_view text)
    {
        std::string error;
        ASSERT_TRUE(impairment.set_rules(text, error)) << error;
    }
    static std::string error_of(std::string_view text)
    {
        std::vector<FaultRule> rules;
        std::string error;
        return read_fault_rules(text, rules, error) ? "good" : error;
    }
    // In pieces, as a device has them.
    static std::vector<iovec> pieces(Frame &f)
    {
        std::vector<iovec> parts;
        for (size_t at = 0; at < f.size();) {
            const size_t n = std::min<size_t>(at ? 17 : 33, f.size() - at);
            parts.push_back({f.data() + at, n});
            at += n;
        }
        return parts;
    }
    bool send(Frame f)
    {
        const auto parts = pieces(f);
        return impairment.send(parts) == FrameSent::Yes;
    }
    void receive(Frame f)
    {
        const auto parts = pieces(f);
        impairment.receive(parts);
    }
    // Sends packets with the PSNs [0, n); what came out.
    std::vector<Frame> frames_of(uint32_t n)
    {
        sent.clear();
        for (uint32_t psn = 0; psn < n; psn++)
            send(numbered(psn));
        return sent;
    }
    std::vector<uint32_t> psns_of(uint32_t n)
    {
        frames_of(n);
        return sent_psns();
    }
    std::vector<uint32_t> sent_psns() const
    {
        std::vector<uint32_t> psns(sent.size());
        std::transform(sent.begin(), sent.end(), psns.begin(), number_of);
        return psns;
    }
    // Does it come out as it is?
    bool passes(const Frame &f)
    {
        sent.clear();
        send(f);
        return sent == std::vector<Frame>{f};
    }
    void at(uint64_t us)
    {
        clock_ns = us * kUs;
        impairment.expire(clock_ns);
    }

    Work work;
    Impairment impairment{*this, work};
    std::vector<Frame> sent, received;
    uint64_t clock_ns = 0;
    bool full = false;
    size_t room = SIZE_MAX;   // frames that the link takes until it is full

private:
    static Frame gather(std::span<const iovec> parts)
    {
        Frame f;
        for (const iovec &part : parts) {
            const auto *p = static_cast<const uint8_t *>(part.iov_base);
            f.insert(f.end(), p, p + part.iov_len);
        }
        return f;
    }
    FrameSent to_link(std::span<const iovec> parts) override
    {
        if (full || !room)
            return FrameSent::LinkFull;
        room--;
        sent.push_back(gather(parts));
        return FrameSent::Yes;
    }
    void to_device(std::span<const iovec> parts) override { received.push_back(gather(parts)); }
    uint64_t now_ns() override { return clock_ns; }
};

using List = std::vector<uint32_t>;

List all_of(uint32_t n)
{
    List list(n);
    std::iota(list.begin(), list.end(), 0);
    return list;
}

TEST_F(ImpairmentTest, WithoutRulesThereIsNothingToDo)
{
    EXPECT_FALSE(impairment.active());
    rules("");
    rules(" ;; \n ");
    EXPECT_FALSE(impairment.active());
    EXPECT_EQ(impairment.next_deadline(), UINT64_MAX);
    EXPECT_EQ(psns_of(3), all_of(3));
    rules("drop");
    EXPECT_TRUE(impairment.active());
    EXPECT_TRUE(psns_of(3).empty());
    rules("");
    EXPECT_FALSE(impairment.active());
    EXPECT_EQ(impairment.counts().dropped, 3u);
}

// ---- which ones

TEST_F(ImpairmentTest, EveryNthOfEachDirection)
{
    rules("drop,every=3");
    for (uint32_t psn = 0; psn < 7; psn++) {
        send(numbered(psn));
        receive(numbered(psn));
    }
    EXPECT_EQ(sent_psns(), (List{0, 1, 3, 4, 6}));
    EXPECT_EQ(received, sent);
}

TEST_F(ImpairmentTest, NoMoreThanTheCount)
{
    rules("drop count=2");
    EXPECT_EQ(psns_of(5), (List{2, 3, 4}));
    rules("drop,every=2,count=1");
    EXPECT_EQ(psns_of(5), (List{0, 2, 3, 4}));
    // In all, of both directions.
    rules("drop,count=2");
    sent.clear();
    send(numbered(0));
    receive(numbered(0));
    receive(numbered(1));
    EXPECT_TRUE(sent.empty());
    EXPECT_EQ(received.size(), 1u);
}

TEST_F(ImpairmentTest, RatesAreKept)
{
    for (const auto &[text, rate] : {std::pair("drop,rate=0.01", 0.01), {"drop,rate=20%", 0.2}, {"drop,rate=0.5", 0.5},
                                     {"drop,rate=0", 0.0}, {"drop,rate=1", 1.0}, {"drop,rate=100%", 1.0},
                                     {"drop,rate=0.1%", 0.001}}) {
        SCOPED_TRACE(text);
        constexpr unsigned kFrames = 20000;
        rules(text);
        sent.clear();
        const Frame frame = numbered(1);
        for (unsigned i = 0; i < kFrames; i++)
            send(frame);
        const double lost = kFrames - double(sent.size());
        // Six standard deviations.
        EXPECT_NEAR(lost, rate * kFrames, 6 * std::sqrt(kFrames * rate * (1 - rate)));
    }
}

TEST_F(ImpairmentTest, RateAmongEveryNth)
{
    rules("drop,rate=0.5,every=2");
    const List left = psns_of(200);
    EXPECT_EQ(std::count_if(left.begin(), left.end(), [](uint32_t psn) { return psn % 2 == 0; }), 100);
    EXPECT_GT(left.size(), 120u);
    EXPECT_LT(left.size(), 180u);
}

TEST_F(ImpairmentTest, Directions)
{
    rules("drop,dir=tx");
    send(numbered(0));
    receive(numbered(0));
    EXPECT_EQ(sent.size(), 0u);
    EXPECT_EQ(received.size(), 1u);
    rules("drop,dir=rx");
    send(numbered(0));
    receive(numbered(0));
    EXPECT_EQ(sent.size(), 1u);
    EXPECT_EQ(received.size(), 1u);
    rules("drop,dir=both");
    send(numbered(0));
    receive(numbered(0));
    EXPECT_EQ(sent.size(), 1u);
    EXPECT_EQ(received.size(), 1u);
}

// Each form of a packet of RoCE is seen for what it is.
TEST_F(ImpairmentTest, HeadersOfRoce)
{
    for (const bool ipv6 : {false, true}) {
        for (const bool vlan : {false, true}) {
            for (const unsigned options : {0u, 10u}) {
                Shape shape{.opcode = 0x11, .qpn = 0x123456, .psn = 0xfffffe, .payload = 4, .ipv6 = ipv6, .vlan = vlan,
                            .options = ipv6 ? 0 : options};
                const Frame f = roce(shape);
                for (const char *hit : {"drop,qp=0x123456", "drop,qp=0x123450-0x123456", "drop,psn=16777214",
                                        "drop,psn=0xfffff0-3", "drop,opcode=ack", "drop,opcode=0x11", "drop,opcode=17",
                                        "drop,frames=roce", "drop,frames=all",
                                        "drop,qp=0x123456,psn=0xfffffe,opcode=ack"}) {
                    SCOPED_TRACE(hit);
                    rules(hit);
                    EXPECT_FALSE(passes(f));
                }
                for (const char *miss :
                     {"drop,qp=0x123457", "drop,qp=0x123457-0x123455,psn=0", "drop,qp=0x123457-0xffffff", "drop,psn=4-5",
                      "drop,psn=0xffffff-0xfffffd", "drop,opcode=atomic_ack", "drop,opcode=0x31", "drop,frames=other",
                      "drop,qp=0x123456,psn=1", "drop,psn=0xfffffe,opcode=0x12"}) {
                    SCOPED_TRACE(miss);
                    rules(miss);
                    EXPECT_TRUE(passes(f));
                }
            }
        }
    }
    // By name of every service, by number of one.
    rules("drop,opcode=send_only");
    for (const uint8_t service : {0x00, 0x20, 0x60, 0xa0})
        EXPECT_FALSE(passes(roce({.opcode = uint8_t(service | 4)})));
    // Those of the manufacturer are of no service: 0xc4 is no SEND.
    EXPECT_TRUE(passes(roce({.opcode = 0xc4})));
    rules("drop,opcode=read_pointer_request");
    EXPECT_FALSE(passes(roce({.opcode = 0xc4})));
    for (const uint8_t service : {0x00, 0x20, 0x60, 0xa0})
        EXPECT_TRUE(passes(roce({.opcode = uint8_t(service | 4)})));
    rules("drop,opcode=0x64");
    EXPECT_TRUE(passes(roce({.opcode = 0x04})));
    EXPECT_FALSE(passes(roce({.opcode = 0x64})));
}

TEST_F(ImpairmentTest, OtherFramesAreLeftAloneByWhoAsksForRoce)
{
    Frame fragment = roce({}), tcp = roce({}), cut = roce({}), tiny(5, 1);
    fragment[20] = 0x20;
    tcp[23] = 6;
    cut.resize(14 + 20 + 8 + 11);
    for (const Frame &other : {arp(), udp_to(4790), fragment, tcp, cut, tiny}) {
        for (const char *rule : {"drop,frames=roce", "drop,qp=0-0xffffff", "drop,psn=0-0xffffff", "drop,opcode=0x04",
                                 "duplicate,opcode=send_only", "delay,us=5,qp=18"}) {
            rules(rule);
            EXPECT_TRUE(passes(other)) << rule;
        }
        for (const char *rule : {"drop", "drop,frames=other", "drop,frames=all", "duplicate", "delay,us=5"}) {
            rules(rule);
            EXPECT_FALSE(passes(other)) << rule;
        }
        impairment.clear();
    }
}

// ---- the same again

TEST_F(ImpairmentTest, TheSeedSaysWhatHappens)
{
    constexpr const char *kRules = "drop,rate=0.1;corrupt,rate=0.2,bits=3;truncate,rate=0.1;duplicate,rate=0.1";
    auto outcome = [&](uint64_t seed) {
        impairment.set_seed(seed);
        return frames_of(500);
    };
    rules(kRules);
    const auto first = outcome(7);
    EXPECT_NE(outcome(8), first);
    EXPECT_EQ(outcome(7), first);
    // Setting the rules is a beginning as well.
    rules(kRules);
    EXPECT_EQ(frames_of(500), first);
    EXPECT_NE(outcome(0), first);
}

TEST_F(ImpairmentTest, DirectionsAndRulesHaveChancesOfTheirOwn)
{
    rules("drop,rate=0.5");
    const List alone = psns_of(200);
    rules("drop,rate=0.5");
    sent.clear();
    for (uint32_t psn = 0; psn < 200; psn++) {
        receive(numbered(psn));
        send(numbered(psn));
        receive(numbered(psn));
    }
    EXPECT_EQ(sent_psns(), alone);
    EXPECT_NE(received.size(), 2 * alone.size());
    // A rule behind it takes no chance from it.
    rules("drop,rate=0.5;truncate,rate=0.5,bytes=4");
    EXPECT_EQ(psns_of(200), alone);
    // Two of the same kind are not one.
    rules("drop,rate=0.5;drop,rate=0.5");
    EXPECT_LT(psns_of(200).size(), alone.size() * 3 / 4);
}

// ---- what is done

TEST_F(ImpairmentTest, Duplicate)
{
    rules("duplicate,every=2");
    EXPECT_EQ(psns_of(4), (List{0, 1, 1, 2, 3, 3}));
    EXPECT_EQ(sent[1], sent[2]);
    EXPECT_EQ(sent[1], numbered(1));
    EXPECT_EQ(impairment.counts().duplicated, 2u);
    // A copy of long ago.
    rules("duplicate,us=70,count=1");
    EXPECT_EQ(psns_of(3), all_of(3));
    EXPECT_EQ(impairment.next_deadline(), 70 * kUs);
    at(70);
    EXPECT_EQ(sent_psns(), (List{0, 1, 2, 0}));
    EXPECT_FALSE(impairment.held_frames());
    // Each goes through the rules that follow by itself.
    rules("duplicate;drop,every=2");
    EXPECT_EQ(psns_of(3), all_of(3));
}

TEST_F(ImpairmentTest, CopiesOfCopiesHaveAnEnd)
{
    std::string text;
    for (unsigned i = 0; i < kMaxFaultRules; i++)
        text += "duplicate;";
    rules(text);
    const uint64_t before = impairment.counts().duplicated;
    EXPECT_EQ(psns_of(1).size(), 17u);
    EXPECT_EQ(impairment.counts().duplicated - before, 16u);
}

TEST_F(ImpairmentTest, Reorder)
{
    rules("reorder,every=3,by=2");
    EXPECT_EQ(psns_of(8), (List{0, 1, 3, 4, 2, 6, 7, 5}));
    EXPECT_EQ(impairment.counts().reordered, 2u);
    EXPECT_EQ(impairment.held_frames(), 0u);
    EXPECT_EQ(impairment.next_deadline(), UINT64_MAX);
    // Nobody overtakes it: it waits no longer than it is told, or a millisecond.
    rules("reorder,count=1");
    send(numbered(9));
    EXPECT_EQ(impairment.next_deadline(), 1000 * kUs);
    impairment.clear();
    rules("reorder,us=30,count=1");
    send(numbered(9));
    EXPECT_EQ(impairment.next_deadline(), 30 * kUs);
    sent.clear();
    at(29);
    EXPECT_EQ(sent.size(), 0u);
    at(30);
    EXPECT_EQ(sent.size(), 1u);
    // What goes the other way overtakes nothing, and neither does what is lost.
    rules("reorder,count=1,dir=tx;drop,every=1,psn=1");
    sent.clear();
    send(numbered(0));
    receive(numbered(0));
    send(numbered(1));
    EXPECT_TRUE(sent.empty());
    send(numbered(2));
    EXPECT_EQ(sent_psns(), (List{2, 0}));
}

TEST_F(ImpairmentTest, Delay)
{
    rules("delay,us=500");
    for (uint32_t psn = 0; psn < 3; psn++) {
        clock_ns = psn * 10 * kUs;
        send(numbered(psn));
        receive(numbered(psn));
    }
    EXPECT_EQ(impairment.held_frames(), 6u);
    EXPECT_EQ(impairment.held_bytes(), 6 * numbered(0).size());
    EXPECT_EQ(impairment.next_deadline(), 500 * kUs);
    at(499);
    EXPECT_TRUE(sent.empty());
    at(510);
    EXPECT_EQ(sent_psns(), (List{0, 1}));
    EXPECT_EQ(received, sent);
    EXPECT_EQ(impairment.next_deadline(), 520 * kUs);
    at(10000);
    EXPECT_EQ(sent_psns(), (List{0, 1, 2}));
    EXPECT_EQ(sent[2], numbered(2));
    EXPECT_EQ(impairment.held_bytes(), 0u);
    EXPECT_EQ(impairment.counts().delayed, 6u);
    // Once is enough.
    rules("delay,us=5;delay,us=100;reorder");
    send(numbered(3));
    EXPECT_EQ(impairment.next_deadline(), clock_ns + 5 * kUs);
}

TEST_F(ImpairmentTest, JitterIsWithinItsBounds)
{
    rules("delay,us=100,jitter=50");
    psns_of(1000);
    EXPECT_GE(impairment.next_deadline(), 100 * kUs);
    EXPECT_LT(impairment.next_deadline(), 101 * kUs);
    at(125);
    EXPECT_GT(sent.size(), 400u);
    EXPECT_LT(sent.size(), 600u);
    const List psns = sent_psns();
    EXPECT_FALSE(std::is_sorted(psns.begin(), psns.end()));
    at(150);
    EXPECT_EQ(sent.size(), 1000u);
}

TEST_F(ImpairmentTest, CorruptInvertsSoManyBitsThatTheIcrcCovers)
{
    for (const unsigned bits : {1u, 3u, 64u}) {
        for (const Shape &shape : {Shape{}, Shape{.payload = 0, .ipv6 = true}, Shape{.vlan = true, .padding = 9}}) {
            rules("corrupt,bits=" + std::to_string(bits));
            const Frame before = roce(shape);
            for (unsigned round = 0; round < 300; round++) {
                sent.clear();
                send(before);
                ASSERT_EQ(sent.size(), 1u);
                ASSERT_EQ(sent[0].size(), before.size());
                unsigned inverted = 0;
                for (size_t i = 0; i < before.size(); i++) {
                    const auto changed = uint8_t(before[i] ^ sent[0][i]);
                    inverted += unsigned(std::popcount(changed));
                    // Not what may change on the way, nor what the link has put behind the packet.
                    const bool covered = i >= bth_of(shape) && i != bth_of(shape) + 4 && i < before.size() - shape.padding;
                    ASSERT_TRUE(covered || !changed) << i;
                }
                ASSERT_EQ(inverted, bits);
            }
        }
    }
    // All of it, to the first and the last byte.
    rules("corrupt");
    const Frame before = roce({.payload = 0});
    Frame touched(before.size(), 0);
    for (unsigned round = 0; round < 3000; round++) {
        sent.clear();
        send(before);
        for (size_t i = 0; i < before.size(); i++)
            touched[i] |= uint8_t(before[i] ^ sent.at(0)[i]);
    }
    for (size_t i = 42; i < before.size(); i++)
        EXPECT_EQ(touched[i], i == 46 ? 0 : 0xff) << i;
    // Other frames behind their Ethernet header.
    for (unsigned round = 0; round < 300; round++) {
        sent.clear();
        send(arp());
        EXPECT_NE(sent.at(0), arp());
        EXPECT_TRUE(std::equal(sent[0].begin(), sent[0].begin() + 14, arp().begin()));
    }
}

TEST_F(ImpairmentTest, Truncate)
{
    rules("truncate,bytes=5");
    const Frame before = numbered(1);
    send(before);
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent[0], Frame(before.begin(), before.end() - 5));
    // Of the packet itself, not of what pads it.
    sent.clear();
    send(roce({.payload = 8, .padding = 20}));
    EXPECT_EQ(sent.at(0).size(), roce({.payload = 8}).size() - 5);
    // The Ethernet header stays.
    rules("truncate,bytes=65535");
    sent.clear();
    send(before);
    EXPECT_EQ(sent.at(0), Frame(before.begin(), before.begin() + 14));
    const uint64_t count = impairment.counts().truncated;
    EXPECT_TRUE(passes(Frame(14, 1)));
    EXPECT_TRUE(passes(Frame(3, 1)));
    EXPECT_EQ(impairment.counts().truncated, count);
    // By whatever.
    rules("truncate");
    size_t least = SIZE_MAX, most = 0;
    for (unsigned round = 0; round < 5000; round++) {
        sent.clear();
        send(before);
        least = std::min(least, sent.at(0).size());
        most = std::max(most, sent.at(0).size());
    }
    EXPECT_EQ(least, 14u);
    EXPECT_EQ(most, before.size() - 1);
    // The rules that follow do not take what is no longer a packet of RoCE for one.
    rules("truncate,bytes=70;drop,frames=roce");
    sent.clear();
    send(before);
    EXPECT_EQ(sent.size(), 1u);
}

// ---- bounds, the link, the end

TEST_F(ImpairmentTest, HeldFramesAreBoundedInNumber)
{
    rules("delay,us=1000");
    for (size_t i = 0; i < Impairment::kHeldFrames + 10; i++)
        i % 2 ? receive(numbered(1)) : void(send(numbered(1)));
    EXPECT_EQ(impairment.held_frames(), Impairment::kHeldFrames);
    EXPECT_EQ(impairment.counts().overflowed, 10u);
    at(1000);
    EXPECT_EQ(sent.size() + received.size(), Impairment::kHeldFrames);
    send(numbered(1));
    EXPECT_EQ(impairment.held_frames(), 1u);
}

TEST_F(ImpairmentTest, HeldFramesAreBoundedInBytes)
{
    rules("reorder,by=1000,us=1000");
    const Frame large = roce({.payload = 60000});
    unsigned sends = 0;
    while (!impairment.counts().overflowed && sends < 1000) {
        send(large);
        sends++;
    }
    EXPECT_EQ(sends, Impairment::kHeldBytes / large.size() + 1);
    EXPECT_LE(impairment.held_bytes(), Impairment::kHeldBytes);
    EXPECT_TRUE(sent.empty());
    // One entry lets go no more than a slice.
    clock_ns = 1000 * kUs;
    work.begin_slice(16);
    impairment.expire(clock_ns);
    EXPECT_EQ(sent.size(), 16u);
    EXPECT_LE(impairment.next_deadline(), clock_ns);
}

TEST_F(ImpairmentTest, ALinkThatTakesNothingLosesNothing)
{
    rules("duplicate,every=2");
    room = 2;
    EXPECT_TRUE(send(numbered(0)));
    EXPECT_TRUE(send(numbered(1)));   // its copy waits
    EXPECT_FALSE(send(numbered(2)));
    EXPECT_FALSE(send(numbered(2)));
    EXPECT_EQ(impairment.next_deadline(), UINT64_MAX);
    EXPECT_EQ(sent_psns(), (List{0, 1}));
    room = 1;
    impairment.link_ready();
    EXPECT_EQ(sent_psns(), (List{0, 1, 1}));
    EXPECT_TRUE(send(numbered(2)));   // waits itself
    EXPECT_FALSE(send(numbered(3)));
    room = SIZE_MAX;
    // The link need not say so first.
    EXPECT_TRUE(send(numbered(3)));
    EXPECT_EQ(sent_psns(), (List{0, 1, 1, 2, 3, 3}));
    EXPECT_EQ(impairment.held_frames(), 0u);
    // What comes in does not ask the link.
    full = true;
    receive(numbered(0));
    EXPECT_EQ(received.size(), 1u);
}

TEST_F(ImpairmentTest, WhatIsDueWaitsForTheLinkInItsOrder)
{
    rules("delay,us=10");
    psns_of(4);
    rules("duplicate;duplicate");
    full = true;
    at(10);   // 0 is refused
    EXPECT_TRUE(sent.empty());
    EXPECT_EQ(impairment.held_frames(), 4u);
    EXPECT_EQ(impairment.next_deadline(), UINT64_MAX);
    EXPECT_FALSE(send(numbered(4)));
    full = false;
    room = 0;
    impairment.link_ready();   // and is not
    EXPECT_EQ(impairment.next_deadline(), UINT64_MAX);
    room = 3;
    impairment.link_ready();
    EXPECT_LE(impairment.next_deadline(), 10 * kUs);
    at(11);
    EXPECT_EQ(sent_psns(), (List{0, 1, 2}));
    EXPECT_EQ(impairment.next_deadline(), UINT64_MAX);
    EXPECT_FALSE(send(numbered(4)));
    room = SIZE_MAX;
    EXPECT_TRUE(send(numbered(4)));
    EXPECT_EQ(sent_psns(), (List{0, 1, 2, 3, 4, 4, 4, 4}));
    // Four copies on a link that has no room: they keep their order in any number of tries.
    rules("duplicate;duplicate");
    sent.clear();
    room = 0;
    EXPECT_TRUE(send(numbered(5)));
    EXPECT_EQ(impairment.held_frames(), 4u);
    for (unsigned i = 0; i < 4; i++) {
        room = 1;
        impairment.link_ready();
    }
    rules("");
    room = 0;
    send(numbered(6));
    impairment.link_ready();
    room = 1;
    impairment.link_ready();
    EXPECT_EQ(sent_psns(), (List{5, 5, 5, 5, 6}));
    EXPECT_FALSE(impairment.active());
}

TEST_F(ImpairmentTest, ManyThatWaitForTheLinkKeepTheirOrder)
{
    rules("reorder,us=50,by=3,psn=0-2");
    room = 0;
    send(numbered(0));
    send(numbered(1));
    send(numbered(2));
    EXPECT_EQ(impairment.held_frames(), 3u);
    EXPECT_TRUE(send(numbered(3)));   // refused; 0, overtaken, waits behind it
    EXPECT_FALSE(send(numbered(4)));
    EXPECT_FALSE(send(numbered(4)));
    room = 1;
    impairment.link_ready();
    EXPECT_EQ(sent_psns(), (List{3}));
    EXPECT_FALSE(send(numbered(4)));
    room = SIZE_MAX;
    EXPECT_TRUE(send(numbered(4)));
    EXPECT_TRUE(send(numbered(5)));
    EXPECT_EQ(sent_psns(), (List{3, 0, 4, 1, 5, 2}));
}

TEST_F(ImpairmentTest, OtherRulesLeaveWhatIsOnItsWay)
{
    rules("delay,us=10");
    send(numbered(0));
    rules("");
    EXPECT_TRUE(impairment.active());
    send(numbered(1));
    at(10);
    EXPECT_EQ(sent_psns(), (List{1, 0}));
    EXPECT_FALSE(impairment.active());
}

TEST_F(ImpairmentTest, ClearLosesWhatIsHeldBack)
{
    rules("delay,us=10;reorder");
    full = true;
    send(numbered(0));
    rules("reorder");
    send(numbered(1));
    receive(numbered(2));
    EXPECT_EQ(impairment.held_frames(), 3u);
    impairment.clear();
    EXPECT_EQ(impairment.counts().purged, 3u);
    EXPECT_EQ(impairment.held_frames(), 0u);
    EXPECT_EQ(impairment.held_bytes(), 0u);
    EXPECT_EQ(impairment.next_deadline(), UINT64_MAX);
    full = false;
    at(100);
    EXPECT_TRUE(sent.empty());
    rules("");
    EXPECT_TRUE(send(numbered(3)));
    EXPECT_EQ(sent_psns(), (List{3}));
}

// ---- text

TEST_F(ImpairmentTest, BadTextIsToldWithTheChoicesThereAre)
{
    const std::pair<const char *, const char *> kBad[] = {
        {"dorp", "rule 1: there is no fault 'dorp'; there are drop, duplicate, reorder, delay, corrupt, mark, truncate"},
        {"drop;;lose,rate=1", "rule 2: there is no fault 'lose'"},
        {"rate=0.1", "there is no fault 'rate=0.1'"},
        {"drop,us=5", "rule 1: 'drop' has no word 'us'; it has dir, frames, rate, every, count, qp, opcode, psn"},
        {"corrupt,bytes=5", "'corrupt' has no word 'bytes'; it has dir, frames, rate, every, count, qp, opcode, psn, bits"},
        {"drop,rate", "'rate': 'rate' takes 0 to 1, such as 0.01, or 0% to 100%"},
        {"drop,rate=", "takes 0 to 1"},
        {"drop,rate=2", "'rate=2': 'rate' takes"},
        {"drop,rate=1.000000001", "takes 0 to 1"},
        {"drop,rate=101%", "takes 0 to 1"},
        {"drop,rate=-1", "takes 0 to 1"},
        {"drop,rate=.5", "takes 0 to 1"},
        {"drop,rate=0.1.1", "takes 0 to 1"},
        {"drop,rate=0.0000000001", "takes 0 to 1"},
        {"drop,rate=1e-3", "takes 0 to 1"},
        {"drop,every=0", "'every' takes a number from 1 on"},
        {"drop,every=18446744073709551616", "a number from 1 on"},
        {"drop,count=0", "'count' takes a number from 1 on"},
        {"drop,count=1x", "'count' takes a number from 1 on"},
        {"drop,qp=0x1000000", "'qp' takes a number of 24 bits"},
        {"drop,qp=5-", "'qp' takes a number of 24 bits"},
        {"drop,qp=-5", "'qp' takes a number of 24 bits"},
        {"drop,psn=1-2-3", "'psn' takes a number of 24 bits"},
        {"drop,opcode=256", "'opcode' takes a number from 0 to 255, or one of send_first, "},
        {"drop,opcode=Ack", "flush, atomic_write, part_first, part_middle, part_last, part_only, read_pointer_request, "
                            "read_consistent_request"},
        {"drop,dir=out", "'dir' takes tx, rx or both"},
        {"drop,frames=tcp", "'frames' takes roce, other or all"},
        {"drop,frames=other,qp=4", "pick no frame at all"},
        {"drop,rate=0.1,rate=0.2", "'rate=0.2': 'rate' was given before in the same rule"},
        {"delay", "'delay' wants a time"},
        {"delay,us=0", "'delay' wants a time"},
        {"delay,us=10000001", "'us' takes 0 to 10000000"},
        {"delay,us=5,jitter=5ms", "'jitter' takes 0 to 10000000, in microseconds"},
        {"reorder,by=0", "'by' takes 1 to 1000"},
        {"reorder,by=1001", "'by' takes 1 to 1000"},
        {"corrupt,bits=65", "'bits' takes 1 to 64"},
        {"truncate,bytes=0", "'bytes' takes 1 to 65535"},
        {"drop=1", "there is no fault 'drop=1'"},
    };
    for (const auto &[text, words] : kBad)
        EXPECT_NE(error_of(text).find(words), std::string::npos) << text << ": " << error_of(text);
    std::string many;
    for (unsigned i = 0; i <= kMaxFaultRules; i++)
        many += "drop;";
    EXPECT_EQ(error_of(many), "there are more than 16 rules");
    // Nothing of a long word that is no use to anybody.
    EXPECT_LT(error_of(std::string(100000, 'x')).size(), 200u);
    EXPECT_LT(error_of("drop,opcode=" + std::string(100000, 'x')).size(), 1000u);
}

TEST_F(ImpairmentTest, BadTextChangesNothing)
{
    rules("drop,every=2");
    EXPECT_EQ(psns_of(3), (List{0, 2}));
    std::string error;
    EXPECT_FALSE(impairment.set_rules("drop;dorp", error));
    EXPECT_EQ(psns_of(3), (List{1}));   // where it was
}

TEST_F(ImpairmentTest, GoodText)
{
    for (const char *text :
         {"drop", " drop , rate=0.5 ", "drop rate=0.5\tevery=3;", "drop,rate=0.000000001", "drop,rate=0.5000000000",
          "drop,rate=1.", "drop,rate=33.3333333%", "drop,count=18446744073709551615", "duplicate,us=0,jitter=5",
          "delay,jitter=5", "drop\nreorder,by=1000,us=10000000\n", "corrupt,bits=64", "truncate,bytes=65535",
          "drop,qp=0xabc-0xABD,psn=5-5,opcode=0xff,dir=rx,frames=roce,rate=1%,every=2,count=3"})
        EXPECT_EQ(error_of(text), "good") << text;
    std::vector<FaultRule> rules;
    std::string error;
    ASSERT_TRUE(read_fault_rules("drop,rate=33.3333333%;drop,rate=0.000000001", rules, error));
    EXPECT_EQ(rules[0].rate_ppb, 333'333'333u);
    EXPECT_EQ(rules[1].rate_ppb, 1u);
}

// ---- devices

class ImpairmentOnDevices : public ::testing::TestWithParam<const char *> {
protected:
    static void set(Node &node, const char *text, uint64_t seed = 0)
    {
        std::string error;
        ASSERT_TRUE(node.device.impairment.set_rules(text, error)) << error;
        node.device.impairment.set_seed(seed);
    }
    Network net;
};

class EachImpairment : public ImpairmentOnDevices {};

// SENDs, WRITEs, READs and atomics both ways: each ends once, in order, with the right data.
TEST_P(EachImpairment, AWholeConnectionIsRight)
{
    for (const uint64_t seed : {1, 2}) {
        SCOPED_TRACE(seed);
        Endpoint::Options options;
        options.mtu_code = 1;
        options.sq_psn = options.rq_psn = 0xfffff0;
        options.ack_timeout = 12;
        Pair p(net.a, net.b, options);
        set(net.a, GetParam(), seed);
        set(net.b, GetParam(), seed + 100);
        constexpr uint32_t kSize = 256 * 8 + 3;
        constexpr unsigned kRounds = 5;
        *reinterpret_cast<uint64_t *>(p.b.at(900000)) = 1000;
        *reinterpret_cast<uint64_t *>(p.a.at(900000)) = 1000;
        for (Endpoint *e : {&p.a, &p.b}) {
            Endpoint &other = e == &p.a ? p.b : p.a;
            const unsigned mark = e == &p.a ? 0 : 1000;
            e->fill(0, kSize, mark);
            std::vector<Wqe> list;
            for (unsigned i = 0; i < kRounds; i++) {
                other.post_recv(other.sge(100000 + i * 8192, kSize));
                list.push_back(send(e->sge(0, kSize)));
                list.push_back(write_to(e->sge(0, kSize), other.va(200000 + i * 8192), other.buffer.key));
                list.push_back(read_from(e->sge(300000 + i * 8192, kSize), other.va(0), other.buffer.key));
                list.push_back(Wqe(HGHCA_OPCODE_ATOMIC_FA)
                                   .raddr(other.va(900000), other.buffer.key)
                                   .atomic(1, 0)
                                   .data(e->sge(800000 + i * 8, 8)));
            }
            e->post(list);
        }
        net.settle(60'000'000'000);
        for (Endpoint *e : {&p.a, &p.b}) {
            const unsigned mark = e == &p.a ? 0 : 1000;
            unsigned sends = 0, receives = 0;
            for (const Completion &c : e->poll_all()) {
                EXPECT_FALSE(c.error) << int(c.syndrome);
                EXPECT_EQ(c.slot, (c.is_send ? sends++ : receives++));
            }
            EXPECT_EQ(sends, 4 * kRounds);
            EXPECT_EQ(receives, kRounds);
            for (unsigned i = 0; i < kRounds; i++) {
                EXPECT_TRUE(e->holds(100000 + i * 8192, kSize, 1000 - mark));
                EXPECT_TRUE(e->holds(200000 + i * 8192, kSize, 1000 - mark));
                EXPECT_TRUE(e->holds(300000 + i * 8192, kSize, 1000 - mark));
                EXPECT_EQ(*reinterpret_cast<uint64_t *>(e->at(800000 + i * 8)), 1000u + i);
            }
            EXPECT_EQ(*reinterpret_cast<uint64_t *>(e->at(900000)), 1000u + kRounds);
            EXPECT_EQ(e->node.device.impairment.held_frames(), 0u);
        }
        const FaultCounts &counts = net.a.device.impairment.counts();
        EXPECT_GT(counts.dropped + counts.duplicated + counts.reordered + counts.delayed + counts.corrupted +
                      counts.truncated, 0u);
    }
}

// What comes every so often and for ever may meet the same packet in every retry: there `count` ends it.
INSTANTIATE_TEST_SUITE_P(
    All, EachImpairment,
    ::testing::Values("drop,rate=0.05", "drop,every=7,count=20", "duplicate,rate=0.2", "duplicate,rate=0.1,us=3000,jitter=5000",
                      "reorder,rate=0.1,by=3", "reorder,every=4,by=1", "delay,us=700,jitter=600", "corrupt,rate=0.05",
                      "corrupt,every=9,bits=7,count=20", "truncate,rate=0.05", "truncate,every=11,bytes=1,count=20",
                      "drop,opcode=ack,rate=0.5", "drop,psn=0xfffffe-3,count=9",
                      "drop,rate=2%;duplicate,rate=2%;reorder,rate=2%,by=5;delay,rate=20%,us=200,jitter=400;"
                      "corrupt,rate=2%;truncate,rate=2%"));

// Whatever is corrupted or cut is seen by who receives it, and counted there.
TEST_F(ImpairmentOnDevices, WhatIsDamagedIsSeen)
{
    Endpoint::Options options;
    options.service = HGHCA_QP_ST_UC;
    Pair p(net.a, net.b, options);
    set(net.a, "corrupt,rate=0.5,bits=3;truncate,frames=roce,every=5,bytes=1");
    for (unsigned i = 0; i < 60; i++)
        p.a.post(write_to(p.a.sge(0, 1000), p.b.va(0), p.b.buffer.key));
    net.settle();
    const FaultCounts &done = net.a.device.impairment.counts();
    const Counters &seen = net.b.counters();
    EXPECT_EQ(done.truncated, 12u);
    EXPECT_GT(done.corrupted, 15u);
    const uint64_t damaged = seen.rx_bad_icrc + seen.rx_too_short + seen.rx_bad_header;
    EXPECT_EQ(damaged + seen.rx_packets, 60u);
    EXPECT_GE(damaged, std::max(done.corrupted, done.truncated));
    EXPECT_LE(damaged, done.corrupted + done.truncated);
}

// A switch's mark: the packet passes all checks, and is taken for one that met congestion.
TEST_F(ImpairmentOnDevices, WhatIsMarkedIsSeen)
{
    net.a.driver.turn_congestion(HGHCA_CONGESTION_REACT | HGHCA_CONGESTION_NOTIFY);
    net.b.driver.turn_congestion(HGHCA_CONGESTION_REACT | HGHCA_CONGESTION_NOTIFY);
    set(net.a, "mark,every=2,dir=tx");
    uint64_t marked = 0;
    for (const unsigned gid : {0u, 1u, 2u}) {
        Endpoint::Options options;
        options.sgid_index = gid;
        Pair p(net.a, net.b, options);
        for (unsigned i = 0; i < 10; i++) {
            p.a.post(write_to(p.a.sge(0, 100), p.b.va(0), p.b.buffer.key));
            net.settle(1'000'000);
        }
        EXPECT_EQ(net.a.device.impairment.counts().marked, marked += 5) << gid;
        EXPECT_EQ(net.b.counters().np_ecn_marked_roce_packets, marked) << gid;
    }
    EXPECT_EQ(net.b.counters().rx_ip_checksum + net.b.counters().rx_bad_icrc, 0u);
    EXPECT_GT(net.a.counters().rp_cnp_handled, 2u);
}

TEST_F(ImpairmentOnDevices, WhoDoesNotHeedCongestionIsNotMarked)
{
    Pair p(net.a, net.b, Endpoint::Options{});
    set(net.a, "mark");
    p.a.post(write_to(p.a.sge(0, 100), p.b.va(0), p.b.buffer.key));
    net.settle();
    EXPECT_EQ(net.a.device.impairment.counts().marked, 0u);
    EXPECT_EQ(net.b.counters().rx_packets, 1u);
    EXPECT_EQ(net.b.counters().np_ecn_marked_roce_packets, 0u);
}

TEST_F(ImpairmentOnDevices, OneRunIsLikeTheOther)
{
    constexpr const char *kRules = "drop,rate=5%;duplicate,rate=5%;corrupt,rate=5%;delay,rate=10%,us=50,jitter=100";
    auto run = [](uint64_t seed) {
        Network other;
        other.keep_log = true;
        Pair p(other.a, other.b, {});
        set(other.a, kRules, seed);
        set(other.b, kRules, seed);
        std::vector<Wqe> list;
        for (unsigned i = 0; i < 30; i++)
            list.push_back(write_to(p.a.sge(0, 5000), p.b.va(0), p.b.buffer.key));
        p.a.post(list);
        other.settle();
        return other.log;
    };
    EXPECT_EQ(run(1), run(1));
    EXPECT_NE(run(1), run(2));
}

TEST_F(ImpairmentOnDevices, ALinkThatIsFullLosesNothing)
{
    Pair p(net.a, net.b, {});
    set(net.a, "duplicate,every=2;delay,every=3,us=20");
    auto deliver = net.a.host.on_frame;
    unsigned frames = 0;
    net.a.host.on_frame = [&](const Frame &f) {
        deliver(f);
        net.a.host.link_full = ++frames % 4 == 0;   // the next one is refused
    };
    p.a.fill(0, 50000, 3);
    p.a.post(write_to(p.a.sge(0, 50000), p.b.va(0), p.b.buffer.key));
    for (unsigned i = 0; i < 200; i++) {
        net.settle(5 * kUs);
        net.a.host.link_full = false;
        net.a.device.link_ready();
    }
    net.a.host.on_frame = deliver;
    net.a.host.link_full = false;
    net.a.device.link_ready();
    net.settle();
    EXPECT_EQ(p.a.poll_all().size(), 1u);
    EXPECT_TRUE(p.b.holds(0, 50000, 3));
    EXPECT_GT(net.a.device.impairment.counts().duplicated, 20u);
    EXPECT_EQ(net.a.device.impairment.held_frames(), 0u);
}

TEST_F(ImpairmentOnDevices, ResetAndCableTakeWhatIsHeldBack)
{
    Pair p(net.a, net.b, {});
    set(net.a, "delay,us=300");
    p.a.post(write_to(p.a.sge(0, 5000), p.b.va(0), p.b.buffer.key));
    const size_t held = net.a.device.impairment.held_frames();
    EXPECT_EQ(held, 5u);
    EXPECT_EQ(net.a.host.deadline_ns, net.a.host.clock_ns + 300 * kUs);
    net.a.device.set_link(false);
    EXPECT_EQ(net.a.device.impairment.held_frames(), 0u);
    EXPECT_EQ(net.a.device.impairment.counts().purged, held);
    EXPECT_GT(net.a.host.deadline_ns, net.a.host.clock_ns + 300 * kUs);   // the ACK timeout is left
    net.a.device.set_link(true);
    net.settle();
    EXPECT_EQ(p.a.poll_all().size(), 1u);
    // The reset of a device is no matter of the link's, nor of what its user has set.
    p.a.post(write_to(p.a.sge(0, 5000), p.b.va(0), p.b.buffer.key));
    EXPECT_EQ(net.a.device.impairment.held_frames(), held);
    net.a.device.reset();
    EXPECT_EQ(net.a.device.impairment.held_frames(), 0u);
    EXPECT_EQ(net.a.device.impairment.counts().purged, 2 * held);
    EXPECT_EQ(net.a.host.deadline_ns, UINT64_MAX);
    EXPECT_TRUE(net.a.device.impairment.active());
    const uint64_t before = net.b.counters().rx_packets;
    net.settle();
    EXPECT_EQ(net.b.counters().rx_packets, before);
}

TEST_F(ImpairmentOnDevices, ADeviceGoesWithFramesHeldBack)
{
    FakeHost host;
    {
        Device device(host, Node::config_of(host, 9, 0));
        std::string error;
        ASSERT_TRUE(device.impairment.set_rules("delay,us=300", error));
        Frame f = numbered(1);
        const iovec part{f.data(), f.size()};
        device.receive({&part, 1});
        EXPECT_EQ(device.send_frame({&part, 1}, Icrc::Unknown), FrameSent::Yes);
        EXPECT_EQ(device.impairment.held_frames(), 2u);
    }
    EXPECT_TRUE(host.frames.empty());
}

}  // namespace
}  // namespace hghca::test::impairment_test
