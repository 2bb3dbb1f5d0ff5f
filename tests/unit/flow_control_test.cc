// SPDX-License-Identifier: GPL-2.0-or-later
// Flow control of the link (interface document, 4.27, 9.2): what pause frames stop, and when they are sent.
#include <gtest/gtest.h>

#include "raw_frames.h"

namespace hghca::test::flow_control_test {
namespace {

using Options = Endpoint::Options;

constexpr uint64_t kUs = 1000, kMs = 1'000'000;
constexpr uint64_t kQuantumPs = 5120;   // 512 bits at 100 Gbit/s
constexpr uint32_t kPauseBoth = HGHCA_FLOW_PAUSE_RX | HGHCA_FLOW_PAUSE_TX;
constexpr uint32_t kPfcBoth = HGHCA_FLOW_PFC_RX | HGHCA_FLOW_PFC_TX;
constexpr unsigned kRocePriority = 3, kOtherPriority = 0;   // as after a reset
const Mac kControl = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x01};

Frame control(const Mac &dmac, std::initializer_list<uint16_t> words, size_t bytes = 60)
{
    Frame f(dmac.begin(), dmac.end());
    const Mac smac = Node::mac_of(9);
    f.insert(f.end(), smac.begin(), smac.end());
    put(f, 0x8808, 2);
    for (uint16_t word : words)
        put(f, word, 2);
    f.resize(bytes);
    return f;
}

Frame pause(uint16_t quanta) { return control(kControl, {0x0001, quanta}); }

Frame pfc(uint16_t priorities, uint16_t quanta)
{
    return control(kControl, {0x0101, priorities, quanta, quanta, quanta, quanta, quanta, quanta, quanta, quanta});
}

uint64_t quanta_ns(uint64_t quanta) { return (quanta * kQuantumPs + 999) / 1000; }

Options raw()
{
    Options options;
    options.service = HGHCA_QP_ST_RAW;
    options.buffer_bytes = 128 << 10;
    return options;
}

// Node a has a connection to node b, and the net device's QP; so has b.
class FlowControlTest : public ::testing::Test {
protected:
    explicit FlowControlTest(const ReceiveBuffers &buffers = {}, Options options = {})
        : net(0, kFullCaps, {}, 64u << 20, buffers), p(net.a, net.b, options), nic(net.a, raw()), far_nic(net.b, raw())
    {
        for (Endpoint *e : {&nic, &far_nic}) {
            TestDriver &d = e->node.driver;
            TestDriver::must(d.command(HGHCA_CMD_CONF_SPECIAL_QP, 0, e->qp.qpn, HGHCA_SPECIAL_QP_RAW_ETH).status,
                             "CONF_SPECIAL_QP");
            TestDriver::must(d.set_port(Node::mac_of(e->node.number).data(), 1500,
                                        HGHCA_PORT_PROMISC | HGHCA_PORT_ALLMULTI), "SET_PORT");
            for (unsigned i = 0; i < 60; i++)
                e->post_recv(e->sge(2048 * i, 2048));
        }
        net.keep_log = true;
        net.pump();
        net.log.clear();
    }
    void arrive(const Frame &f)
    {
        Network::deliver(net.a, f);
        net.pump();
    }
    // One packet of RoCE, and one frame of the net device.
    void send_both()
    {
        p.a.post(write_to(p.a.sge(0, 100), p.b.va(0), p.b.buffer.key));
        const Frame f = make(Packet{});
        std::memcpy(nic.at(0), f.data(), f.size());
        nic.post(send(nic.sge(0, uint32_t(f.size()))));
        net.pump();
    }
    // What of it has gone: R and O.
    std::string gone()
    {
        std::string all;
        for (const Frame &f : net.log)
            if (f[11] == 1)
                all += f.size() == 100 && View(f).opcode != HGHCA_BTH_OP_WRITE_ONLY ? 'O' : 'R';
        net.log.clear();
        return all;
    }
    const Counters &counters() { return net.a.counters(); }
    TestDriver &driver() { return net.a.driver; }

    Network net;
    Pair p;
    Endpoint nic, far_nic;
};

// ---- settings

TEST_F(FlowControlTest, IsOffAtFirst)
{
    const hghca_flow_control c = driver().flow_control();
    EXPECT_EQ(be32(c.flags), 0u);
    EXPECT_EQ(be16(c.quanta), 0xffff);
    EXPECT_EQ(c.roce_priority, kRocePriority);
    EXPECT_EQ(c.other_priority, kOtherPriority);
    EXPECT_EQ(be32(c.roce_buffer), 512u << 10);
    EXPECT_EQ(be32(c.roce_xoff), 256u << 10);
    EXPECT_EQ(be32(c.roce_xon), 128u << 10);
    EXPECT_EQ(be32(c.other_buffer), 512u << 10);
    EXPECT_EQ(be32(c.other_xoff), 256u << 10);
    EXPECT_EQ(be32(c.other_xon), 128u << 10);
    EXPECT_EQ(c.pfc_classes, HGHCA_FLOW_CLASS_ROCE | HGHCA_FLOW_CLASS_OTHER);
    EXPECT_EQ(driver().set_flow_control(c), 0);
}

struct SettingCase {
    const char *name;
    void (*spoil)(hghca_flow_control &);
};

const SettingCase kSenseless[] = {
    {"an unknown flag", [](hghca_flow_control &c) { c.flags = be32(16); }},
    {"pauses of all and of priorities", [](hghca_flow_control &c) { c.flags = be32(1 | 8); }},
    {"no quanta", [](hghca_flow_control &c) { c.quanta = 0; }},
    {"RoCE at priority 8", [](hghca_flow_control &c) { c.roce_priority = 8; }},
    {"the rest at priority 8", [](hghca_flow_control &c) { c.other_priority = 8; }},
    {"PFC for a third class", [](hghca_flow_control &c) { c.pfc_classes |= 4; }},
    {"PFC for nobody", [](hghca_flow_control &c) { c.pfc_classes = 0; }},
    {"both at one priority", [](hghca_flow_control &c) { c.other_priority = c.roce_priority; }},
    {"RoCE goes on where it stops", [](hghca_flow_control &c) { c.roce_xon = c.roce_xoff; }},
    {"RoCE stops when nothing waits", [](hghca_flow_control &c) { c.roce_xoff = c.roce_xon = 0; }},
    {"RoCE stops beyond its buffer", [](hghca_flow_control &c) { c.roce_xoff = be32((512 << 10) + 1); }},
    {"the rest goes on where it stops", [](hghca_flow_control &c) { c.other_xon = c.other_xoff; }},
    {"the rest stops beyond its buffer", [](hghca_flow_control &c) { c.other_xoff = be32((512 << 10) + 1); }},
};

TEST_F(FlowControlTest, SenselessSettingsAreRefused)
{
    hghca_flow_control set = driver().flow_control();
    set.flags = be32(kPfcBoth);
    ASSERT_EQ(driver().set_flow_control(set), 0);
    for (const SettingCase &c : kSenseless) {
        hghca_flow_control spoilt = set;
        c.spoil(spoilt);
        EXPECT_EQ(driver().set_flow_control(spoilt), HGHCA_CMD_STAT_BAD_PARAM) << c.name;
        const hghca_flow_control now = driver().flow_control();
        EXPECT_EQ(std::memcmp(&now, &set, sizeof(now)), 0) << c.name << " has changed something";
    }
    // One priority is enough for pauses of all, and none has PFC then.
    set.flags = be32(kPauseBoth);
    set.other_priority = set.roce_priority;
    set.pfc_classes = 0;
    EXPECT_EQ(driver().set_flow_control(set), 0);
    driver().init();
    EXPECT_EQ(be32(driver().flow_control().flags), 0u);
}

TEST_F(FlowControlTest, WithoutTheCapability)
{
    Network plain(0, kFullCaps & ~HGHCA_CAP_FLOW_CONTROL);
    hghca_flow_control c{};
    EXPECT_EQ(plain.a.driver.query(HGHCA_CMD_QUERY_FLOW_CONTROL, c, 1), HGHCA_CMD_STAT_BAD_OP);
    EXPECT_EQ(plain.a.driver.set_flow_control(c), HGHCA_CMD_STAT_BAD_OP);
}

// ---- pauses that come

TEST_F(FlowControlTest, OffNothingStopsAndSoftwareSeesNoPause)
{
    for (const Frame &f : {pause(0xffff), pfc(0xff, 0xffff)})
        arrive(f);
    EXPECT_EQ(counters().rx_mac_control, 2u);
    EXPECT_EQ(counters().rx_pause, 0u);
    send_both();
    EXPECT_EQ(gone(), "RO");
    EXPECT_EQ(counters().raw_rx_packets, 0u);
}

TEST_F(FlowControlTest, StopsForItsQuanta)
{
    driver().turn_flow_control(HGHCA_FLOW_PAUSE_RX);
    for (uint16_t quanta : {1, 1000, 0xffff}) {
        SCOPED_TRACE(quanta);
        const uint64_t start = net.now();
        arrive(pause(quanta));
        send_both();
        EXPECT_EQ(gone(), "");
        EXPECT_FALSE(net.a.device.has_work()) << "it would spin";
        EXPECT_EQ(net.a.host.deadline_ns, start + quanta_ns(quanta));
        net.at(start + quanta_ns(quanta) - 1);
        net.pump();
        EXPECT_EQ(gone(), "");
        net.at(start + quanta_ns(quanta));
        net.pump();
        EXPECT_EQ(gone(), "RO");
        EXPECT_EQ(p.a.poll_all().size(), 1u);
    }
    EXPECT_EQ(counters().rx_pause, 3u);
    EXPECT_EQ(counters().raw_rx_packets, 0u);
    EXPECT_EQ(counters().rx_mac_control, 0u);
}

TEST_F(FlowControlTest, ZeroLetsGo)
{
    driver().turn_flow_control(HGHCA_FLOW_PAUSE_RX);
    arrive(pause(0));
    send_both();
    EXPECT_EQ(gone(), "RO");
    arrive(pause(0xffff));
    send_both();
    EXPECT_EQ(gone(), "");
    arrive(pause(0));
    EXPECT_EQ(gone(), "RO");
    EXPECT_LT(net.now(), 2 * kMs);
}

TEST_F(FlowControlTest, ANewPauseTakesThePlaceOfTheOld)
{
    driver().turn_flow_control(HGHCA_FLOW_PAUSE_RX);
    const uint64_t start = net.now();
    arrive(pause(0xffff));
    send_both();
    net.at(start + kUs);
    arrive(pause(100));
    net.at(start + kUs + quanta_ns(100));
    net.pump();
    EXPECT_EQ(gone(), "RO");
    arrive(pause(100));
    send_both();
    net.at(net.now() + quanta_ns(50));
    const uint64_t again = net.now();
    arrive(pause(100));
    net.at(again + quanta_ns(60));
    net.pump();
    EXPECT_EQ(gone(), "");
    net.at(again + quanta_ns(100));
    net.pump();
    EXPECT_EQ(gone(), "RO");
}

TEST_F(FlowControlTest, EachPriorityAlone)
{
    driver().turn_flow_control(HGHCA_FLOW_PFC_RX);
    for (unsigned priority = 0; priority < 8; priority++) {
        SCOPED_TRACE(priority);
        arrive(pfc(uint16_t(1 << priority), 1000));
        send_both();
        EXPECT_EQ(gone(), priority == kRocePriority ? "O" : priority == kOtherPriority ? "R" : "RO");
        net.settle(10 * kUs);
        EXPECT_EQ(gone(), priority == kRocePriority ? "R" : priority == kOtherPriority ? "O" : "");
        p.a.poll_all();
    }
    arrive(pfc(0, 1000));
    send_both();
    EXPECT_EQ(gone(), "RO") << "no priority counts";
    arrive(pfc(0xff, 1000));
    send_both();
    EXPECT_EQ(gone(), "");
    arrive(pfc(1 << kRocePriority, 0));
    EXPECT_EQ(gone(), "R");
    net.settle(10 * kUs);
    EXPECT_EQ(gone(), "O");

    hghca_flow_control c = driver().flow_control();
    c.roce_priority = 6;
    ASSERT_EQ(driver().set_flow_control(c), 0);
    arrive(pfc(1 << kRocePriority, 1000));
    send_both();
    EXPECT_EQ(gone(), "RO");
    arrive(pfc(1 << 6, 1000));
    send_both();
    EXPECT_EQ(gone(), "O");
}

TEST_F(FlowControlTest, PfcForOneClassAlone)
{
    for (const uint8_t classes : {HGHCA_FLOW_CLASS_ROCE, HGHCA_FLOW_CLASS_OTHER}) {
        hghca_flow_control c = driver().flow_control();
        c.flags = be32(HGHCA_FLOW_PFC_RX);
        c.pfc_classes = classes;
        ASSERT_EQ(driver().set_flow_control(c), 0);
        arrive(pfc(0xff, 1000));
        send_both();
        EXPECT_EQ(gone(), classes == HGHCA_FLOW_CLASS_ROCE ? "O" : "R");
        net.settle(10 * kUs);
        EXPECT_EQ(gone(), classes == HGHCA_FLOW_CLASS_ROCE ? "R" : "O");
        p.a.poll_all();
    }
}

struct ControlCase {
    const char *name;
    Frame frame;
};

// None of them stops anything, none gets to software.
TEST_F(FlowControlTest, WhatIsNoPause)
{
    const Mac own = Node::mac_of(1), broadcast = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    Frame other_type = pause(0xffff);
    other_type[12] = 8, other_type[13] = 0;
    const ControlCase cases[] = {
        {"an undefined opcode", control(kControl, {0x0002, 0xffff})},
        {"cut behind its opcode", control(kControl, {0x0001}, 16)},
        {"cut in its quanta", control(kControl, {0x0001, 0xffff}, 17)},
        {"a PFC cut in its quanta", control(kControl, {0x0101, 0xff, 1, 1, 1, 1, 1, 1, 1}, 33)},
        {"a header alone", control(kControl, {}, 14)},
        {"to all", control(broadcast, {0x0001, 0xffff})},
        {"to another group", control(kGroup, {0x0001, 0xffff})},
        {"to a stranger", control(kStranger, {0x0001, 0xffff})},
        {"a PFC to one port", control(own, {0x0101, 0xff, 9, 9, 9, 9, 9, 9, 9, 9})},
        {"another type", other_type},
    };
    for (uint32_t flags : {HGHCA_FLOW_PAUSE_RX, HGHCA_FLOW_PFC_RX}) {
        driver().turn_flow_control(flags);
        for (const ControlCase &c : cases) {
            const uint64_t before = counters().rx_mac_control;
            arrive(c.frame);
            EXPECT_EQ(counters().rx_mac_control, before + 1) << c.name;
            send_both();
            EXPECT_EQ(gone(), "RO") << c.name;
            p.a.poll_all();
            nic.poll_all();
        }
    }
    arrive(pause(0xffff));
    EXPECT_EQ(counters().rx_pause, 0u) << "only priorities are obeyed";
    driver().turn_flow_control(HGHCA_FLOW_PAUSE_RX);
    arrive(pfc(0xff, 0xffff));
    EXPECT_EQ(counters().rx_pause, 0u) << "only pauses of all are obeyed";
    arrive(control(own, {0x0001, 0xffff}));
    EXPECT_EQ(counters().rx_pause, 1u) << "to the port itself is as good";
    EXPECT_EQ(counters().raw_rx_packets, 0u);
}

TEST_F(FlowControlTest, AllThatWaitsGoesOnInItsOrder)
{
    driver().turn_flow_control(HGHCA_FLOW_PAUSE_RX);
    arrive(pause(0xffff));
    std::vector<std::unique_ptr<Pair>> pairs;
    for (unsigned i = 0; i < 5; i++) {
        pairs.push_back(std::make_unique<Pair>(net.a, net.b, Options{}));
        pairs[i]->a.post(write_to(pairs[i]->a.sge(0, 3000), pairs[i]->b.va(0), pairs[i]->b.buffer.key));
    }
    // One of them ends while it waits, one has more to do, and the peers go on.
    pairs[1]->a.modify(HGHCA_CMD_ERR2RST_QPEE);
    pairs[0]->a.post(write_to(pairs[0]->a.sge(0, 3000), pairs[0]->b.va(0), pairs[0]->b.buffer.key));
    net.pump();
    net.log.clear();
    arrive(pause(0));
    std::vector<uint8_t> order;
    for (const Frame &f : net.log)
        if (f[11] == 1 && (order.empty() || order.back() != f[View(f).bth + 7]))
            order.push_back(f[View(f).bth + 7]);
    std::vector<uint8_t> want;
    for (unsigned i : {0u, 2u, 3u, 4u})
        want.push_back(uint8_t(pairs[i]->b.qp.qpn));
    EXPECT_EQ(order, want);
    EXPECT_EQ(pairs[0]->a.poll_all().size(), 2u);
    EXPECT_EQ(pairs[4]->a.poll_all().size(), 1u);
}

TEST_F(FlowControlTest, WhatEndsAPause)
{
    driver().turn_flow_control(HGHCA_FLOW_PAUSE_RX);
    arrive(pause(0xffff));
    send_both();
    net.a.device.set_link(false);
    net.a.device.set_link(true);
    net.pump();
    EXPECT_EQ(gone(), "RO") << "the link has gone down and up";
    arrive(pause(0xffff));
    send_both();
    driver().turn_flow_control(0);
    net.pump();
    EXPECT_EQ(gone(), "RO") << "it is turned off";
    driver().turn_flow_control(HGHCA_FLOW_PAUSE_RX);
    arrive(pause(0xffff));
    send_both();
    net.a.device.reset();
    EXPECT_EQ(net.a.host.deadline_ns, UINT64_MAX);
    EXPECT_FALSE(net.a.device.has_work());
    driver().start();
    Endpoint fresh(net.a, raw());
    const Frame f = make(Packet{});
    std::memcpy(fresh.at(0), f.data(), f.size());
    net.log.clear();
    fresh.post(send(fresh.sge(0, uint32_t(f.size()))));
    net.pump();
    EXPECT_EQ(net.log.size(), 1u) << "the device was reset";
}

// ---- receive buffers

constexpr uint32_t kDrainMbps = 1000;
constexpr uint32_t kBuffer = 20'000, kXoff = 10'000, kXon = 4'000;

ReceiveBuffers slow() { return {{{kDrainMbps, kBuffer}, {kDrainMbps, kBuffer}}}; }

class ReceiveBufferTest : public FlowControlTest {
protected:
    ReceiveBufferTest() : FlowControlTest(slow()) {}
    void turn_on(uint32_t flags)
    {
        hghca_flow_control c = net.b.driver.flow_control();
        EXPECT_EQ(be32(c.roce_buffer), kBuffer);
        c.flags = be32(flags);
        c.quanta = be16(0x1234);
        c.roce_xoff = c.other_xoff = be32(kXoff);
        c.roce_xon = c.other_xon = be32(kXon);
        TestDriver::must(net.b.driver.set_flow_control(c), "SET_FLOW_CONTROL");
    }
    // `n` frames of 1000 bytes for software of node b.
    void flood(unsigned n)
    {
        Packet packet;
        packet.bytes = 1000;
        for (unsigned i = 0; i < n; i++)
            Network::deliver(net.b, make(packet));
        net.pump();
    }
    uint64_t got() { return net.b.counters().raw_rx_packets; }
    // MAC control frames that b has sent since the last call.
    std::vector<Frame> control_frames()
    {
        std::vector<Frame> found;
        for (const Frame &f : net.log)
            if (f[12] == 0x88 && f[13] == 0x08)
                found.push_back(f);
        net.log.clear();
        return found;
    }
    static Frame from_b(std::initializer_list<uint16_t> words)
    {
        Frame f = control(kControl, words);
        const Mac smac = Node::mac_of(2);
        std::copy(smac.begin(), smac.end(), f.begin() + 6);
        return f;
    }
    static constexpr uint64_t kFrameNs = 1004 * 8;   // at the drain's rate
};

TEST_F(FlowControlTest, WithoutADrainNothingWaits)
{
    net.b.driver.turn_flow_control(kPauseBoth);
    Packet packet;
    packet.bytes = 1000;
    for (unsigned i = 0; i < 50; i++)
        Network::deliver(net.b, make(packet));
    EXPECT_EQ(net.b.counters().raw_rx_packets, 50u);
    EXPECT_EQ(net.b.counters().tx_pause, 0u);
}

TEST_F(ReceiveBufferTest, FramesWaitForTheirTurn)
{
    flood(5);
    EXPECT_EQ(got(), 1u);
    const uint64_t start = net.now();
    for (unsigned i = 1; i < 5; i++) {
        net.at(start + i * kFrameNs - 1);
        EXPECT_EQ(got(), i);
        net.at(start + i * kFrameNs);
        EXPECT_EQ(got(), i + 1);
    }
    EXPECT_EQ(net.b.host.deadline_ns, UINT64_MAX);
    net.settle(kMs);
    flood(1);
    EXPECT_EQ(got(), 6u) << "the device has nothing to do";
    // In their order, and whole.
    const auto all = far_nic.poll_all();
    ASSERT_EQ(all.size(), 6u);
    for (unsigned i = 0; i < 6; i++) {
        EXPECT_EQ(all[i].slot, i);
        EXPECT_EQ(all[i].bytes, 1000u);
    }
    Packet packet;
    packet.bytes = 1000;
    const Frame f = make(packet);
    EXPECT_EQ(std::memcmp(far_nic.at(4 * 2048), f.data(), f.size()), 0);
}

TEST_F(ReceiveBufferTest, AFullBufferDropsAndCounts)
{
    flood(30);
    EXPECT_EQ(net.b.counters().rx_buffer_overflow, 9u);   // one is with the device, 20 wait
    EXPECT_EQ(net.b.counters().tx_pause, 0u) << "nobody has asked for pauses";
    net.settle(kMs);
    EXPECT_EQ(got(), 21u);
    // The shortest frames count as 64 bytes.
    Packet packet;
    packet.bytes = 20;
    for (unsigned i = 0; i < 400; i++)
        Network::deliver(net.b, make(packet));
    EXPECT_EQ(net.b.counters().rx_buffer_overflow, 9u + 400 - 1 - kBuffer / 64);
}

TEST_F(ReceiveBufferTest, ADriverThatResetsTheDeviceFindsItEmpty)
{
    turn_on(HGHCA_FLOW_PAUSE_TX);
    flood(15);
    net.b.driver.start();
    EXPECT_EQ(net.b.host.deadline_ns, UINT64_MAX);
    net.log.clear();
    net.settle(10 * kMs);
    EXPECT_EQ(got(), 0u);
    EXPECT_TRUE(control_frames().empty());
}

TEST_F(ReceiveBufferTest, StopsAboveXoffAndLetsGoAtXon)
{
    turn_on(HGHCA_FLOW_PAUSE_TX);
    flood(11);   // one is with the device
    EXPECT_TRUE(control_frames().empty()) << "not above XOFF";
    const uint64_t start = net.now();
    flood(1);
    EXPECT_EQ(control_frames(), std::vector<Frame>{from_b({0x0001, 0x1234})});
    flood(3);
    EXPECT_TRUE(control_frames().empty()) << "sent already";
    // 14 wait; at XON 4.
    while (net.now() < start + 10 * kFrameNs - 1)
        net.settle(std::min(kFrameNs, start + 10 * kFrameNs - 1 - net.now()));
    for (const Frame &f : control_frames())
        EXPECT_EQ(f, from_b({0x0001, 0x1234})) << "before XON";
    net.settle(1);
    EXPECT_EQ(control_frames(), std::vector<Frame>{from_b({0x0001, 0})});
    net.settle(kMs);
    EXPECT_TRUE(control_frames().empty());
    EXPECT_EQ(got(), 15u);
    EXPECT_EQ(net.b.counters().rx_buffer_overflow, 0u);
}

// The peer would go on by itself when the quanta are over.
TEST_F(ReceiveBufferTest, TellsAgainInTime)
{
    turn_on(HGHCA_FLOW_PAUSE_TX);
    flood(20);
    EXPECT_EQ(control_frames().size(), 1u);
    const uint64_t repeat = quanta_ns(0x1234) / 2;
    const uint64_t start = net.now();
    uint64_t last = start;
    unsigned stops = 0;
    bool over = false;
    while (!over && net.now() < start + kMs) {
        net.settle(100);
        for (const Frame &f : control_frames()) {
            EXPECT_LE(net.now() - last, repeat + 200);
            over = f[16] == 0 && f[17] == 0;
            stops += !over;
            last = net.now();
        }
    }
    EXPECT_TRUE(over);
    EXPECT_EQ(stops, (last - start) / repeat);
    EXPECT_EQ(net.b.counters().tx_pause, stops + 2);
}

// A host that is busy calls timer() late, and the peer goes on: its next frame is told to wait at once.
TEST_F(ReceiveBufferTest, TellsAgainWhenAFrameComesBeforeALateTimer)
{
    turn_on(HGHCA_FLOW_PAUSE_TX);
    flood(20);
    EXPECT_EQ(control_frames().size(), 1u);
    const uint64_t repeat = quanta_ns(0x1234) / 2;
    net.b.host.clock_ns += repeat - 1;
    flood(1);
    EXPECT_TRUE(control_frames().empty()) << "the pause lasts";
    net.b.host.clock_ns += 1;
    flood(1);
    EXPECT_EQ(control_frames(), std::vector<Frame>{from_b({0x0001, 0x1234})});
    flood(1);
    EXPECT_TRUE(control_frames().empty()) << "sent already";
}

TEST_F(ReceiveBufferTest, EachBufferHasItsPriority)
{
    turn_on(HGHCA_FLOW_PFC_TX);
    flood(12);
    EXPECT_EQ(control_frames(), std::vector<Frame>{from_b({0x0101, 1 << kOtherPriority, 0x1234})});
    // RoCE has a buffer of its own.
    p.a.post(write_to(p.a.sge(0, 9'000), p.b.va(0), p.b.buffer.key));
    net.pump();
    EXPECT_TRUE(control_frames().empty());
    p.a.post(write_to(p.a.sge(0, 5'000), p.b.va(0), p.b.buffer.key));
    net.pump();
    EXPECT_EQ(control_frames(), std::vector<Frame>{from_b({0x0101, 1 << kRocePriority, 0x1234, 0, 0, 0x1234})});
    std::vector<Frame> all;
    for (unsigned i = 0; i < 1000 && all.size() < 2; i++) {
        net.settle(kUs);
        for (const Frame &f : control_frames())
            if (f[18 + 2 * kOtherPriority] == 0 || f[18 + 2 * kRocePriority] == 0)
                all.push_back(f);
    }
    ASSERT_GE(all.size(), 2u);
    EXPECT_EQ(all[0], from_b({0x0101, 1 << kOtherPriority, 0, 0, 0, 0x1234}));
    net.settle(kMs);
    EXPECT_EQ(p.a.poll_all().size(), 2u);
    EXPECT_EQ(net.b.counters().rx_buffer_overflow, 0u);
}

TEST_F(ReceiveBufferTest, TellsNothingOfAClassWithoutPfc)
{
    hghca_flow_control c = net.b.driver.flow_control();
    c.pfc_classes = HGHCA_FLOW_CLASS_ROCE;
    ASSERT_EQ(net.b.driver.set_flow_control(c), 0);
    turn_on(HGHCA_FLOW_PFC_TX);
    flood(30);
    EXPECT_TRUE(control_frames().empty());
    EXPECT_EQ(net.b.counters().rx_buffer_overflow, 9u);
    p.a.post(write_to(p.a.sge(0, 14'000), p.b.va(0), p.b.buffer.key));
    net.pump();
    EXPECT_EQ(control_frames(), std::vector<Frame>{from_b({0x0101, 1 << kRocePriority, 0, 0, 0, 0x1234})});
    net.settle(kMs);
    EXPECT_EQ(p.a.poll_all().size(), 1u);
}

TEST_F(ReceiveBufferTest, APauseWaitsForTheLinkAndGoesFirst)
{
    turn_on(HGHCA_FLOW_PAUSE_TX);
    net.b.host.link_full = true;
    flood(12);
    EXPECT_TRUE(control_frames().empty());
    Packet packet;
    packet.dmac = Node::mac_of(1);
    const Frame f = make(packet);
    std::memcpy(far_nic.at(0), f.data(), f.size());
    far_nic.post(send(far_nic.sge(0, uint32_t(f.size()))));
    net.b.host.link_full = false;
    net.b.device.link_ready();
    net.pump();
    ASSERT_EQ(net.log.size(), 2u);
    EXPECT_EQ(net.log[0], from_b({0x0001, 0x1234}));
}

// Four flows that are twice as fast as the receiver. Each may send 12.5 KB in a burst, as rates are kept by the 20 us.
class Overload : public FlowControlTest {
protected:
    static Options paced()
    {
        Options options;
        options.service = HGHCA_QP_ST_UC;
        options.static_rate = 5;   // 5 Gbit/s
        return options;
    }
    Overload() : FlowControlTest({{{10'000, 200'000}, {}}}, paced())
    {
        for (unsigned i = 0; i < 4; i++)
            pairs.push_back(std::make_unique<Pair>(net.a, net.b, paced()));
        net.keep_log = false;
    }
    void run()
    {
        for (auto &q : pairs) {
            q->a.fill(0, 500'000, 5);
            q->a.post(write_to(q->a.sge(0, 500'000), q->b.va(0), q->b.buffer.key));
        }
        net.settle(20 * kMs);
        for (auto &q : pairs)
            EXPECT_EQ(q->a.poll_all().size(), 1u);
    }
    std::vector<std::unique_ptr<Pair>> pairs;
};

TEST_F(Overload, LosesPacketsWithoutFlowControl)
{
    run();
    EXPECT_GT(net.b.counters().rx_buffer_overflow, 500u);
}

TEST_F(Overload, LosesNoneWithIt)
{
    for (uint32_t flags : {kPauseBoth, kPfcBoth}) {
        for (Node *node : {&net.a, &net.b})
            node->driver.turn_flow_control(flags);
        const uint64_t start = net.now();
        run();
        EXPECT_EQ(net.b.counters().rx_buffer_overflow, 0u);
        for (auto &q : pairs)
            EXPECT_TRUE(q->b.holds(0, 500'000, 5));
        EXPECT_GE(net.b.counters().tx_pause, 10u);
        EXPECT_EQ(net.a.counters().rx_pause, net.b.counters().tx_pause);
        EXPECT_GE(net.now() - start, 4 * 500'000ull * 8000 / 10'000);
    }
}

}  // namespace
}  // namespace hghca::test::flow_control_test
