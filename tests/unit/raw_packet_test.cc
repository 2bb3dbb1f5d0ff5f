// SPDX-License-Identifier: GPL-2.0-or-later
// Flow rules, and the raw Ethernet QPs they name (interface document, 4.20).
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "jingzhao/flow.h"
#include "raw_frames.h"

namespace hghca::test::raw_packet_test {
namespace {

// Node b has the rules; frames come from the link, and from QPs of its own.
class Flows : public ::testing::TestWithParam<uint32_t> {
protected:
    explicit Flows(uint32_t cache_entries)
        : net(cache_entries), nic(net.b, raw()), sender(net.b, raw()), driver(net.b.driver)
    {
        TestDriver::must(driver.command(HGHCA_CMD_CONF_SPECIAL_QP, 0, nic.qp.qpn, HGHCA_SPECIAL_QP_RAW_ETH).status,
                         "RAW");
        TestDriver::must(driver.set_port(Node::mac_of(2).data(), 1500, HGHCA_PORT_PROMISC), "SET_PORT");
        stock(nic);
    }
    Flows() : Flows(GetParam()) {}

    static Endpoint::Options raw()
    {
        Endpoint::Options options;
        options.service = HGHCA_QP_ST_RAW;
        options.cq_log = 6;
        options.buffer_bytes = 64 << 10;
        options.sq_wqes = options.rq_wqes = 16;
        return options;
    }
    static void stock(Endpoint &e)
    {
        for (int i = 0; i < 12; i++)
            e.post_recv(e.sge(4096u + 2048u * unsigned(i), 2048));
    }
    std::unique_ptr<Endpoint> receiver()
    {
        auto e = std::make_unique<Endpoint>(net.b, raw());
        stock(*e);
        return e;
    }
    uint8_t attach(uint32_t index, const hghca_flow &rule) { return driver.post(HGHCA_CMD_FLOW_ATTACH, rule, index); }
    uint8_t detach(uint32_t index) { return driver.command(HGHCA_CMD_FLOW_DETACH, 0, index).status; }
    // Lengths of the frames received since the last call.
    static std::vector<uint32_t> received(Endpoint &e)
    {
        std::vector<uint32_t> lengths;
        for (const Completion &c : e.poll_all())
            if (!c.is_send && !c.error)
                lengths.push_back(c.bytes);
        for (size_t i = 0; i < lengths.size(); i++)
            e.post_recv(e.sge(4096, 2048));
        return lengths;
    }
    // Which of them had a copy, as a string of 1 and 0; the net device last.
    std::string copies(const std::vector<Endpoint *> &all)
    {
        std::string said;
        for (Endpoint *e : all)
            said += char('0' + received(*e).size());
        return said + char('0' + received(nic).size());
    }
    void arrive(const Packet &p) { Network::deliver(net.b, make(p)); }
    // From a QP of node b itself.
    void send_here(Endpoint &e, const Packet &p)
    {
        const Frame f = make(p);
        std::memcpy(e.at(0), f.data(), f.size());
        e.post(send(e.sge(0, uint32_t(f.size()))));
        net.pump();
    }
    const Counters &counters() { return net.b.counters(); }

    Network net;
    Endpoint nic, sender;
    TestDriver &driver;
};

INSTANTIATE_TEST_SUITE_P(Cache, Flows, ::testing::Values(0u, 1u));

// ---- what a rule matches

struct Case {
    const char *what;
    std::function<void(Rule &)> rule;
    std::function<void(Packet &)> hit, miss;   // changes to a Packet
};

const std::function<void(Packet &)> kAsItIs = [](Packet &) {};

const Case kCases[] = {
    {"destination MAC", [](Rule &r) { r.dmac(Node::mac_of(2)); }, kAsItIs, [](Packet &p) { p.dmac = kStranger; }},
    {"part of a MAC", [](Rule &r) { r.dmac(kStranger, {0xff, 0, 0, 0, 0, 0x0f}); },
     [](Packet &p) { p.dmac = {2, 7, 7, 7, 7, 0x79}; }, [](Packet &p) { p.dmac = {2, 7, 7, 7, 7, 0x78}; }},
    {"source MAC", [](Rule &r) { r.smac(Node::mac_of(1)); }, kAsItIs, [](Packet &p) { p.smac = kStranger; }},
    {"type", [](Rule &r) { r.ether_type(0x88b5); }, [](Packet &p) { p.ether_type = 0x88b5; }, kAsItIs},
    {"type behind a tag", [](Rule &r) { r.ether_type(0x88b5); },
     [](Packet &p) { p.ether_type = 0x88b5, p.vlan = 5; }, [](Packet &p) { p.vlan = 5; }},
    {"VLAN id", [](Rule &r) { r.vlan(5); }, [](Packet &p) { p.vlan = 0xe005; }, [](Packet &p) { p.vlan = 6; }},
    {"VLAN 0", [](Rule &r) { r.vlan(0); }, [](Packet &p) { p.vlan = 0x2000; }, kAsItIs},
    {"priority of a tag", [](Rule &r) { r.vlan(0x6000, 0xe000); }, [](Packet &p) { p.vlan = 0x6abc; },
     [](Packet &p) { p.vlan = 0x4abc; }},
    {"any tag", [](Rule &r) { r.kinds(HGHCA_FLOW_TAGGED); }, [](Packet &p) { p.vlan = 1; }, kAsItIs},
    {"IPv4", [](Rule &r) { r.kinds(HGHCA_FLOW_IPV4); }, kAsItIs, [](Packet &p) { p.ether_type = 0x86dd; }},
    {"IPv4 of another version", [](Rule &r) { r.kinds(HGHCA_FLOW_IPV4); }, kAsItIs, [](Packet &p) { p.version = 5; }},
    {"IPv4 with too short a header", [](Rule &r) { r.kinds(HGHCA_FLOW_IPV4); }, kAsItIs,
     [](Packet &p) { p.bytes = 33; }},
    {"IPv4 source", [](Rule &r) { r.kinds(HGHCA_FLOW_IPV4).src(0x0a0a0001); }, kAsItIs,
     [](Packet &p) { p.sip = 0x0a0a0003; }},
    {"IPv4 destination", [](Rule &r) { r.kinds(HGHCA_FLOW_IPV4).dst(0x0a0a0002); }, kAsItIs,
     [](Packet &p) { p.dip = 0x0a0a0003; }},
    {"IPv4 network", [](Rule &r) { r.kinds(HGHCA_FLOW_IPV4).dst(0x0a0a0000, 0xffff0000); },
     [](Packet &p) { p.dip = 0x0a0affff; }, [](Packet &p) { p.dip = 0x0a0bffff; }},
    {"IPv4 protocol", [](Rule &r) { r.kinds(HGHCA_FLOW_IPV4).protocol(132); }, [](Packet &p) { p.protocol = 132; },
     kAsItIs},
    {"TOS", [](Rule &r) { r.kinds(HGHCA_FLOW_IPV4).tclass(0x10, 0xfc); }, kAsItIs, [](Packet &p) { p.tclass = 0x22; }},
    {"TTL", [](Rule &r) { r.kinds(HGHCA_FLOW_IPV4).ttl(33); }, kAsItIs, [](Packet &p) { p.ttl = 32; }},
    {"IPv4 in a VLAN", [](Rule &r) { r.vlan(7).kinds(HGHCA_FLOW_IPV4).dst(0x0a0a0002); },
     [](Packet &p) { p.vlan = 7; }, kAsItIs},
    {"IPv6 address", [](Rule &r) { r.kinds(HGHCA_FLOW_IPV6).dst(0x0a0a0002); },
     [](Packet &p) { p.ether_type = 0x86dd; }, kAsItIs},
    {"IPv6 of another version", [](Rule &r) { r.kinds(HGHCA_FLOW_IPV6); }, [](Packet &p) { p.ether_type = 0x86dd; },
     [](Packet &p) { p.ether_type = 0x86dd, p.version = 4; }},
    {"IPv6 with too short a header", [](Rule &r) { r.kinds(HGHCA_FLOW_IPV6); },
     [](Packet &p) { p.ether_type = 0x86dd, p.bytes = 54; }, [](Packet &p) { p.ether_type = 0x86dd, p.bytes = 53; }},
    {"whole IPv6 address",
     [](Rule &r) {
         r.kinds(HGHCA_FLOW_IPV6).src(0x0a0a0001);
         std::memset(r.mask.src_ip, 0xff, 16);
         r.value.src_ip[0] = 0xfd;
     },
     [](Packet &p) { p.ether_type = 0x86dd; }, [](Packet &p) { p.ether_type = 0x86dd, p.sip = 1; }},
    {"flow label", [](Rule &r) { r.kinds(HGHCA_FLOW_IPV6).flow_label(0x54321); },
     [](Packet &p) { p.ether_type = 0x86dd; }, [](Packet &p) { p.ether_type = 0x86dd, p.flow_label = 0x54320; }},
    {"traffic class and hop limit", [](Rule &r) { r.kinds(HGHCA_FLOW_IPV6).tclass(0x12).ttl(33); },
     [](Packet &p) { p.ether_type = 0x86dd; }, [](Packet &p) { p.ether_type = 0x86dd, p.tclass = 0x13; }},
    {"next header", [](Rule &r) { r.kinds(HGHCA_FLOW_IPV6).protocol(58); },
     [](Packet &p) { p.ether_type = 0x86dd, p.protocol = 58; }, [](Packet &p) { p.ether_type = 0x86dd; }},
    {"UDP ports", [](Rule &r) { r.kinds(HGHCA_FLOW_UDP).sport(1000).dport(2000); }, kAsItIs,
     [](Packet &p) { p.sport = 1001; }},
    {"UDP destination alone", [](Rule &r) { r.kinds(HGHCA_FLOW_UDP).dport(2000); }, [](Packet &p) { p.sport = 1; },
     [](Packet &p) { p.dport = 2001; }},
    {"UDP, not TCP", [](Rule &r) { r.kinds(HGHCA_FLOW_UDP).dport(2000); }, kAsItIs, [](Packet &p) { p.protocol = 6; }},
    {"some UDP ports", [](Rule &r) { r.kinds(HGHCA_FLOW_UDP).dport(2000, 0xfff0); }, [](Packet &p) { p.dport = 2007; },
     [](Packet &p) { p.dport = 2016; }},
    {"TCP ports", [](Rule &r) { r.kinds(HGHCA_FLOW_IPV4 | HGHCA_FLOW_TCP).sport(1000).dport(2000); },
     [](Packet &p) { p.protocol = 6; }, kAsItIs},
    {"UDP behind options", [](Rule &r) { r.kinds(HGHCA_FLOW_UDP).dport(2000); }, [](Packet &p) { p.options = 10; },
     [](Packet &p) { p.options = 10, p.dport = 2001; }},
    {"UDP, not in a fragment", [](Rule &r) { r.kinds(HGHCA_FLOW_UDP).dport(2000); },
     [](Packet &p) { p.fragment = 0x4000; }, [](Packet &p) { p.fragment = 0x2000; }},
    {"UDP, not behind a fragment", [](Rule &r) { r.kinds(HGHCA_FLOW_UDP).dport(2000); }, kAsItIs,
     [](Packet &p) { p.fragment = 100; }},
    {"UDP over IPv6 in a VLAN", [](Rule &r) { r.vlan(5).kinds(HGHCA_FLOW_IPV6 | HGHCA_FLOW_UDP).dport(2000); },
     [](Packet &p) { p.ether_type = 0x86dd, p.vlan = 5; },
     [](Packet &p) { p.ether_type = 0x86dd, p.vlan = 5, p.dport = 1; }},
    {"UDP over anything", [](Rule &r) { r.kinds(HGHCA_FLOW_UDP).dport(2000); },
     [](Packet &p) { p.ether_type = 0x86dd; }, [](Packet &p) { p.ether_type = 0x88b5; }},
    {"half a UDP header", [](Rule &r) { r.kinds(HGHCA_FLOW_UDP).dport(2000); }, [](Packet &p) { p.bytes = 42; },
     [](Packet &p) { p.bytes = 41; }},
    {"half a TCP header", [](Rule &r) { r.kinds(HGHCA_FLOW_TCP).dport(2000); },
     [](Packet &p) { p.protocol = 6, p.bytes = 54; }, [](Packet &p) { p.protocol = 6, p.bytes = 53; }},
    {"a header that its options end", [](Rule &r) { r.kinds(HGHCA_FLOW_UDP).dport(2000); },
     [](Packet &p) { p.options = 10, p.bytes = 82; }, [](Packet &p) { p.options = 10, p.bytes = 81; }},
    {"multicast by default", [](Rule &r) { r.type = HGHCA_FLOW_MC_DEFAULT; }, [](Packet &p) { p.dmac = kGroup; },
     kAsItIs},
    {"broadcast is multicast", [](Rule &r) { r.type = HGHCA_FLOW_MC_DEFAULT; },
     [](Packet &p) { p.dmac = kBroadcast; }, [](Packet &p) { p.dmac = kStranger; }},
};

TEST_P(Flows, WhatARuleMatches)
{
    auto e = receiver();
    for (const Case &c : kCases) {
        SCOPED_TRACE(c.what);
        Rule rule(e->qp.qpn);
        Packet hit, miss;
        c.rule(rule);
        c.hit(hit);
        c.miss(miss);
        ASSERT_EQ(attach(77, rule), 0);
        arrive(hit);
        EXPECT_EQ(copies({e.get()}), "10");
        arrive(miss);
        EXPECT_EQ(copies({e.get()}), "01");
        ASSERT_EQ(detach(77), 0);
        arrive(hit);
        EXPECT_EQ(copies({e.get()}), "01");
    }
}

TEST_P(Flows, EverythingAndTheFrameAsItIs)
{
    auto e = receiver();
    ASSERT_EQ(attach(0, Rule(e->qp.qpn, 0, HGHCA_FLOW_ALL_DEFAULT)), 0);
    Packet p;
    for (uint32_t bytes : {14u, 15u, 17u, 18u, 60u, 1514u, 2048u}) {
        p.bytes = bytes;
        p.vlan = bytes == 18 ? 5 : -1;
        const Frame f = make(p);
        Network::deliver(net.b, f);
        auto all = e->poll_all();
        ASSERT_EQ(all.size(), 1u) << bytes;
        EXPECT_FALSE(all[0].error);
        EXPECT_FALSE(all[0].grh);
        EXPECT_EQ(all[0].vlan, -1);
        EXPECT_EQ(all[0].imm, 0u);
        EXPECT_EQ(all[0].qpn, e->qp.qpn);
        EXPECT_EQ(all[0].bytes, bytes);
        EXPECT_EQ(std::memcmp(e->at(4096u + 2048u * all[0].slot), f.data(), f.size()), 0);
    }
    EXPECT_TRUE(received(nic).empty());
    EXPECT_EQ(counters().flow_rx_packets, 7u);
    EXPECT_EQ(counters().raw_rx_packets, 7u);
}

// ---- who comes first

TEST_P(Flows, PrioritiesAndTypes)
{
    auto a = receiver(), b = receiver(), c = receiver(), d = receiver();
    const std::vector<Endpoint *> all = {a.get(), b.get(), c.get(), d.get()};
    Packet group;
    group.dmac = kGroup;

    ASSERT_EQ(attach(0, Rule(d->qp.qpn, 0, HGHCA_FLOW_ALL_DEFAULT)), 0);
    arrive({});
    EXPECT_EQ(copies(all), "00010");
    ASSERT_EQ(attach(1, Rule(c->qp.qpn, 65535, HGHCA_FLOW_MC_DEFAULT)), 0);
    arrive({});
    EXPECT_EQ(copies(all), "00010");
    arrive(group);
    EXPECT_EQ(copies(all), "00100");
    ASSERT_EQ(attach(2, Rule(b->qp.qpn, 65535).kinds(HGHCA_FLOW_UDP).dport(2000)), 0);
    arrive(group);
    EXPECT_EQ(copies(all), "01000");
    ASSERT_EQ(attach(3, Rule(a->qp.qpn, 65534).ether_type(0x0800)), 0);
    arrive(group);
    EXPECT_EQ(copies(all), "10000");
    // Another QP with the same match, once behind and once before.
    ASSERT_EQ(attach(4, Rule(c->qp.qpn, 65535).ether_type(0x0800)), 0);
    arrive({});
    EXPECT_EQ(copies(all), "10000");
    ASSERT_EQ(attach(5, Rule(d->qp.qpn, 0).ether_type(0x0800)), 0);
    arrive({});
    EXPECT_EQ(copies(all), "00010");
    ASSERT_EQ(detach(5), 0);
    arrive({});
    EXPECT_EQ(copies(all), "10000");
    ASSERT_EQ(detach(3), 0);
    arrive({});
    EXPECT_EQ(copies(all), "01100") << "two masks of one priority";
    ASSERT_EQ(detach(2), 0);
    ASSERT_EQ(detach(4), 0);
    arrive(group);
    EXPECT_EQ(copies(all), "00100");
    ASSERT_EQ(detach(1), 0);
    arrive(group);
    EXPECT_EQ(copies(all), "00010");
    ASSERT_EQ(detach(0), 0);
    arrive(group);
    EXPECT_EQ(copies(all), "00001");
}

TEST_P(Flows, EachQpHasOneCopy)
{
    auto a = receiver(), b = receiver();
    for (Endpoint *e : {a.get(), b.get()}) {
        const uint32_t at = e == a.get() ? 0 : 100;
        ASSERT_EQ(attach(at, Rule(e->qp.qpn).dmac(kGroup)), 0);
        ASSERT_EQ(attach(at + 1, Rule(e->qp.qpn).ether_type(0x0800)), 0);
        ASSERT_EQ(attach(at + 2, Rule(e->qp.qpn).kinds(HGHCA_FLOW_UDP)), 0);
    }
    Packet p;
    p.dmac = kGroup;
    arrive(p);
    EXPECT_EQ(copies({a.get(), b.get()}), "110");
    p.dmac = Node::mac_of(2);
    arrive(p);
    EXPECT_EQ(copies({a.get(), b.get()}), "110");
    EXPECT_EQ(counters().flow_rx_packets, 4u);
}

TEST_P(Flows, WhatOneLacksIsNoMatterOfOthers)
{
    auto a = receiver(), b = receiver();
    Endpoint empty(net.b, raw()), small(net.b, raw()), broken(net.b, raw()), gone(net.b, raw());
    small.post_recv(small.sge(0, 99));
    broken.post_recv(Sge{2048, 0x12345, 0});
    uint32_t index = 0;
    for (Endpoint *e : {a.get(), &empty, &small, &broken, &gone, b.get()})
        ASSERT_EQ(attach(index++, Rule(e->qp.qpn)), 0);
    ASSERT_EQ(driver.to_reset(gone.qp.qpn), 0);
    arrive({});
    EXPECT_EQ(copies({a.get(), &empty, &small, &broken, b.get()}), "100010");
    EXPECT_EQ(counters().raw_rx_dropped, 1u);
    EXPECT_EQ(counters().rx_too_long, 1u);
    EXPECT_EQ(counters().flow_rx_no_qp, 1u);
    EXPECT_EQ(broken.state(), unsigned(HGHCA_QP_STATE_ERR));
    // The WQE that was too short is there for a shorter frame.
    Packet p;
    p.bytes = 99;
    arrive(p);
    EXPECT_EQ(received(small).size(), 1u);
    EXPECT_EQ(counters().flow_rx_no_qp, 3u) << "the one in ERR too";
    EXPECT_EQ(counters().raw_rx_packets, counters().flow_rx_packets);
}

TEST_P(Flows, AFullCqIsTheReceiversError)
{
    Endpoint::Options options = raw();
    options.cq_log = 1;
    Endpoint e(net.b, options);
    stock(e);
    ASSERT_EQ(attach(0, Rule(e.qp.qpn)), 0);
    for (int i = 0; i < 4; i++)
        arrive({});
    EXPECT_EQ(e.state(), unsigned(HGHCA_QP_STATE_ERR));
    EXPECT_EQ(net.b.events(HGHCA_EVENT_CQ_ERROR), 1u);
    EXPECT_TRUE(received(nic).empty()) << "the rule still takes them";
}

// ---- the engine, and the way round

TEST_P(Flows, TheEngineComesFirst)
{
    auto e = receiver();
    ASSERT_EQ(attach(0, Rule(e->qp.qpn)), 0);
    ASSERT_EQ(attach(1, Rule(e->qp.qpn).kinds(HGHCA_FLOW_UDP).dport(HGHCA_ROCE_UDP_PORT)), 0);
    Pair pair(net.a, net.b, Endpoint::Options{});
    pair.b.post_recv(pair.b.sge(0, 100));
    pair.a.post(send(pair.a.sge(0, 100)));
    net.settle();
    EXPECT_EQ(pair.b.poll_all().size(), 1u);
    EXPECT_EQ(pair.a.poll_all().size(), 1u);
    EXPECT_EQ(copies({e.get()}), "00");
    // Even when it is wrong.
    net.keep_log = true;
    pair.b.post_recv(pair.b.sge(0, 100));
    pair.a.post(send(pair.a.sge(0, 100)));
    net.settle();
    Frame f = net.log.at(0);
    f.back() ^= 1;
    Network::deliver(net.b, f);
    EXPECT_EQ(counters().rx_bad_icrc, 1u);
    EXPECT_EQ(copies({e.get()}), "00");
    // RoCE to nobody here is not the engine's.
    Packet p;
    p.dport = HGHCA_ROCE_UDP_PORT;
    p.dip = 0x0a0a0063;
    arrive(p);
    EXPECT_EQ(copies({e.get()}), "10");
}

TEST_P(Flows, NopsCompleteInOrderWithoutFrames)
{
    Packet p;
    p.dmac = kStranger;
    const Frame f = make(p);
    std::memcpy(sender.at(0), f.data(), f.size());
    sender.post({Wqe(HGHCA_OPCODE_NOP), send(sender.sge(0, uint32_t(f.size()))), Wqe(HGHCA_OPCODE_NOP),
                 Wqe(HGHCA_OPCODE_NOP, 0)});
    net.pump();
    const auto all = sender.poll_all();
    ASSERT_EQ(all.size(), 3u);
    EXPECT_EQ(all[0].opcode, 0x00);   // NOP
    EXPECT_EQ(all[1].opcode, 0x0a);   // SEND
    EXPECT_EQ(all[2].opcode, 0x00);
    EXPECT_EQ(net.sent, 1u);
    EXPECT_EQ(sender.state(), unsigned(HGHCA_QP_STATE_RTS));
}

TEST_P(Flows, MulticastOfOnesOwn)
{
    auto a = receiver();
    stock(sender);
    ASSERT_EQ(attach(0, Rule(a->qp.qpn).dmac(kGroup)), 0);
    ASSERT_EQ(attach(1, Rule(sender.qp.qpn).dmac(kGroup)), 0);
    Packet p;
    p.dmac = kGroup;
    send_here(sender, p);
    EXPECT_EQ(net.sent, 1u);
    EXPECT_EQ(copies({a.get(), &sender}), "100") << "neither the sender nor the net device";
    // The net device's are seen as well.
    send_here(nic, p);
    EXPECT_EQ(net.sent, 2u);
    EXPECT_EQ(copies({a.get(), &sender}), "110");
    // One that nobody wants.
    p.dmac = kBroadcast;
    send_here(sender, p);
    EXPECT_EQ(net.sent, 3u);
    EXPECT_EQ(copies({a.get(), &sender}), "000");
    // No link, which loses what goes there.
    net.b.device.set_link(false);
    p.dmac = kGroup;
    send_here(sender, p);
    EXPECT_EQ(net.sent, 3u);
    EXPECT_EQ(copies({a.get()}), "10");
    net.b.device.set_link(true);
    // A link that takes nothing: it is sent later, and then once.
    net.b.host.link_full = true;
    send_here(sender, p);
    EXPECT_EQ(copies({a.get()}), "00");
    net.b.host.link_full = false;
    net.b.device.link_ready();
    net.pump();
    EXPECT_EQ(copies({a.get()}), "10");
    EXPECT_EQ(received(sender).size(), 0u);
}

TEST_P(Flows, ToItself)
{
    auto a = receiver();
    stock(sender);
    Packet p;
    p.smac = p.dmac;
    ASSERT_EQ(attach(0, Rule(sender.qp.qpn).dmac(p.dmac)), 0);
    send_here(sender, p);
    EXPECT_EQ(net.sent, 0u);
    EXPECT_EQ(copies({a.get(), &sender}), "010");
    ASSERT_EQ(attach(1, Rule(a->qp.qpn).dmac(p.dmac)), 0);
    send_here(nic, p);
    EXPECT_EQ(copies({a.get(), &sender}), "110");
    ASSERT_EQ(detach(0), 0);
    ASSERT_EQ(detach(1), 0);
    send_here(sender, p);
    EXPECT_EQ(copies({a.get(), &sender}), "001");
    // Somebody else's frame is the link's alone, though a rule would take it.
    ASSERT_EQ(attach(0, Rule(a->qp.qpn)), 0);
    p.dmac = kStranger;
    send_here(sender, p);
    EXPECT_EQ(net.sent, 1u);
    EXPECT_EQ(copies({a.get(), &sender}), "000");
}

TEST_P(Flows, ASenderThatReceivesItsOwnAndFails)
{
    sender.post_recv(Sge{2048, 0x12345, 0});
    ASSERT_EQ(attach(0, Rule(sender.qp.qpn)), 0);
    send_here(sender, {});
    auto all = sender.poll_all();
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(int(all[0].syndrome), HGHCA_SYNDROME_LOCAL_PROT_ERR);
    EXPECT_EQ(int(all[1].syndrome), HGHCA_SYNDROME_WR_FLUSH_ERR);
    EXPECT_EQ(sender.state(), unsigned(HGHCA_QP_STATE_ERR));
}

TEST_P(Flows, StatesOfTheQp)
{
    Endpoint e(net.b, raw());
    stock(e);
    ASSERT_EQ(attach(0, Rule(e.qp.qpn)), 0);
    e.to_sqd(false);
    arrive({});
    EXPECT_EQ(copies({&e}), "10");
    // RST and back: the rule has stayed.
    ASSERT_EQ(driver.to_reset(e.qp.qpn), 0);
    arrive({});
    EXPECT_EQ(copies({&e}), "00");
    EXPECT_EQ(counters().flow_rx_no_qp, 1u);
    hghca_qpc c = driver.init_qpc(e.qp, HGHCA_QP_ST_RAW, e.cq, e.cq);
    ASSERT_EQ(driver.modify(HGHCA_CMD_RST2INIT_QPEE, e.qp.qpn, c), 0);
    arrive({});
    EXPECT_EQ(copies({&e}), "00");
    EXPECT_EQ(counters().flow_rx_no_qp, 2u);
    driver.to_rts(e.qp);
    arrive({});
    EXPECT_EQ(copies({&e}), "10");
    // The number as a QP of another service, and as the net device's.
    ASSERT_EQ(driver.to_reset(e.qp.qpn), 0);
    c = driver.init_qpc(e.qp, HGHCA_QP_ST_UD, e.cq, e.cq);
    ASSERT_EQ(driver.modify(HGHCA_CMD_RST2INIT_QPEE, e.qp.qpn, c), 0);
    driver.to_rts(e.qp);
    arrive({});
    EXPECT_EQ(copies({&e}), "00");
    ASSERT_EQ(attach(1, Rule(sender.qp.qpn).ether_type(0x0800)), 0);
    ASSERT_EQ(detach(0), 0);
    stock(sender);
    TestDriver::must(driver.command(HGHCA_CMD_CONF_SPECIAL_QP, 0, sender.qp.qpn, HGHCA_SPECIAL_QP_RAW_ETH).status,
                     "RAW");
    arrive({});
    EXPECT_EQ(copies({&sender}), "00") << "a rule of the net device's QP gives nothing";
    ASSERT_EQ(detach(1), 0);
    arrive({});
    EXPECT_EQ(copies({&sender}), "10") << "as the net device";
}

// ---- commands

TEST_P(Flows, WhatACommandMayAskFor)
{
    Endpoint ud(net.b, [] {
        Endpoint::Options options;
        options.service = HGHCA_QP_ST_UD;
        return options;
    }());
    const uint32_t qpn = sender.qp.qpn;
    struct {
        const char *what;
        std::function<void(Rule &)> rule;
        uint8_t status;
    } cases[] = {
        {"nothing", [](Rule &) {}, 0},
        {"QP 0", [](Rule &r) { r.qpn = 0; }, HGHCA_CMD_STAT_BAD_PARAM},
        {"a QP beyond the table", [](Rule &r) { r.qpn = be32(256); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"a QP far beyond", [](Rule &r) { r.qpn = be32(0x10000 + 9); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"the net device's QP", [this](Rule &r) { r.qpn = be32(nic.qp.qpn); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"a UD QP", [&](Rule &r) { r.qpn = be32(ud.qp.qpn); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"a QP in RST", [](Rule &r) { r.qpn = be32(200); }, 0},
        {"a type that there is not", [](Rule &r) { r.type = 3; }, HGHCA_CMD_STAT_BAD_PARAM},
        {"a value outside its mask", [](Rule &r) { r.value.ether_type = 1; }, HGHCA_CMD_STAT_BAD_PARAM},
        {"a default with a mask", [](Rule &r) { r.ether_type(8).type = HGHCA_FLOW_ALL_DEFAULT; },
         HGHCA_CMD_STAT_BAD_PARAM},
        {"another default with a mask", [](Rule &r) { r.dmac(kGroup).type = HGHCA_FLOW_MC_DEFAULT; },
         HGHCA_CMD_STAT_BAD_PARAM},
        {"a TCI without a tag", [](Rule &r) { r.mask.vlan_tci = 1; }, HGHCA_CMD_STAT_BAD_PARAM},
        {"no tag, and a TCI",
         [](Rule &r) {
             r.mask.kinds = HGHCA_FLOW_TAGGED;
             r.mask.vlan_tci = 1;
         },
         HGHCA_CMD_STAT_BAD_PARAM},
        {"no tag", [](Rule &r) { r.mask.kinds = HGHCA_FLOW_TAGGED; }, 0},
        {"an address without IP", [](Rule &r) { r.dst(1); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"a source without IP", [](Rule &r) { r.src(1); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"a protocol without IP", [](Rule &r) { r.protocol(1); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"a TOS without IP", [](Rule &r) { r.tclass(1); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"a TTL without IP", [](Rule &r) { r.ttl(1); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"a long IPv4 address", [](Rule &r) { r.kinds(HGHCA_FLOW_IPV4).mask.dst_ip[11] = 1; },
         HGHCA_CMD_STAT_BAD_PARAM},
        {"a long IPv4 source", [](Rule &r) { r.kinds(HGHCA_FLOW_IPV4).mask.src_ip[0] = 1; },
         HGHCA_CMD_STAT_BAD_PARAM},
        {"a flow label of IPv4", [](Rule &r) { r.kinds(HGHCA_FLOW_IPV4).flow_label(1); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"a flow label of 21 bits", [](Rule &r) { r.kinds(HGHCA_FLOW_IPV6).mask.flow_label = be32(1 << 20); },
         HGHCA_CMD_STAT_BAD_PARAM},
        {"a port without UDP or TCP", [](Rule &r) { r.kinds(HGHCA_FLOW_IPV4).dport(1); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"a source port without", [](Rule &r) { r.kinds(HGHCA_FLOW_IPV4).sport(1); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"an unknown kind", [](Rule &r) { r.kinds(1 << 5); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"a reserved bit in the mask", [](Rule &r) { r.mask.rsvd3c = 1; }, HGHCA_CMD_STAT_BAD_PARAM},
        {"reserved bits beside", [](Rule &r) { r.rsvd07 = 1, r.rsvd08[1] = 1; }, 0},
    };
    for (const auto &c : cases) {
        Rule rule(qpn);
        c.rule(rule);
        EXPECT_EQ(int(attach(4095, rule)), int(c.status)) << c.what;
        EXPECT_EQ(detach(4095), c.status ? HGHCA_CMD_STAT_BAD_RES_STATE : 0) << c.what;
    }
    EXPECT_EQ(attach(4096, Rule(qpn)), HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(attach(~0u, Rule(qpn)), HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(detach(4096), HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(attach(5, Rule(qpn)), 0);
    EXPECT_EQ(attach(5, Rule(qpn).ether_type(1)), HGHCA_CMD_STAT_BAD_RES_STATE);
    // The same for the same QP; not with another priority or type.
    EXPECT_EQ(attach(6, Rule(qpn)), HGHCA_CMD_STAT_RESOURCE_BUSY);
    EXPECT_EQ(attach(6, Rule(qpn, 1)), 0);
    EXPECT_EQ(attach(7, Rule(qpn, 0, HGHCA_FLOW_ALL_DEFAULT)), 0);
    EXPECT_EQ(attach(8, Rule(qpn, 0, HGHCA_FLOW_ALL_DEFAULT)), HGHCA_CMD_STAT_RESOURCE_BUSY);
    EXPECT_EQ(detach(8), HGHCA_CMD_STAT_BAD_RES_STATE);
}

TEST_P(Flows, SoManyMasks)
{
    auto mask = [this](unsigned n) {
        Rule r(sender.qp.qpn);
        r.mask.dmac[0] = uint8_t(n + 1);
        return r;
    };
    for (unsigned n = 0; n < 64; n++)
        ASSERT_EQ(attach(n, mask(n)), 0) << n;
    EXPECT_EQ(attach(64, mask(64)), HGHCA_CMD_STAT_EXCEED_LIM);
    EXPECT_EQ(attach(64, Rule(sender.qp.qpn, 0, HGHCA_FLOW_MC_DEFAULT)), 0) << "the mask 01 is there";
    EXPECT_EQ(attach(65, Rule(sender.qp.qpn, 0, HGHCA_FLOW_ALL_DEFAULT)), HGHCA_CMD_STAT_EXCEED_LIM);
    EXPECT_EQ(attach(65, mask(7)), HGHCA_CMD_STAT_RESOURCE_BUSY);
    ASSERT_EQ(detach(9), 0);
    EXPECT_EQ(attach(65, Rule(sender.qp.qpn, 0, HGHCA_FLOW_ALL_DEFAULT)), 0);
    EXPECT_EQ(attach(9, mask(9)), HGHCA_CMD_STAT_EXCEED_LIM);
    // All of them at work: 2 has none of the bits of half of them.
    stock(sender);
    arrive({});
    EXPECT_EQ(copies({&sender}), "10");
}

TEST_P(Flows, SoManyQps)
{
    for (uint32_t n = 0; n < 56; n++)
        ASSERT_EQ(attach(n, Rule(100 + n).ether_type(0x0800)), 0);
    EXPECT_EQ(attach(56, Rule(sender.qp.qpn).ether_type(0x0800)), HGHCA_CMD_STAT_EXCEED_LIM);
    EXPECT_EQ(attach(56, Rule(sender.qp.qpn, 1).ether_type(0x0800)), 0);
    EXPECT_EQ(attach(57, Rule(sender.qp.qpn).ether_type(0x0801)), 0);
    arrive({});
    EXPECT_EQ(counters().flow_rx_no_qp, 56u);
    ASSERT_EQ(detach(30), 0);
    EXPECT_EQ(attach(30, Rule(sender.qp.qpn).ether_type(0x0800)), 0);
    stock(sender);
    arrive({});
    EXPECT_EQ(copies({&sender}), "10");
}

// All rules that fit, in one chain; there is no number for another.
TEST_P(Flows, AChainOfAllRules)
{
    constexpr uint32_t kRules = 4096;
    auto cost = [this](auto &&command) {
        const uint64_t before = net.b.device.work_done();
        EXPECT_EQ(int(command()), 0);
        return net.b.device.work_done() - before;
    };
    auto rule = [this](uint32_t n) { return Rule(sender.qp.qpn, uint16_t(n)).ether_type(0x0800); };
    for (uint32_t n = 0; n < kRules - 1; n++)
        ASSERT_EQ(attach(n, rule(n)), 0);
    const uint64_t last = cost([&] { return attach(kRules - 1, rule(kRules - 1)); });
    EXPECT_GE(last, (kRules - 1) / 16);
    EXPECT_LE(last, kRules / 16 + 4);   // the QP's context, too
    EXPECT_EQ(attach(kRules, rule(kRules)), HGHCA_CMD_STAT_BAD_INDEX);
    stock(sender);
    arrive({});
    EXPECT_EQ(copies({&sender}), "10");
    const uint64_t gone = cost([&] { return detach(kRules - 1); });
    EXPECT_GE(gone, (kRules - 1) / 16);
    EXPECT_LE(gone, kRules / 16 + 4);
}

// All rules that fit, of all priorities, made and taken away in any order; each
// frame is compared with a plain list.
TEST_P(Flows, AgainstAList)
{
    struct Entry {
        bool live;
        uint32_t mac;
        uint16_t priority;
        unsigned who;
        bool whole;   // the mask
    };
    std::vector<Entry> list(4096, Entry{});
    std::vector<std::unique_ptr<Endpoint>> all;
    for (unsigned i = 0; i < 4; i++)
        all.push_back(receiver());
    uint64_t state = 7;
    auto random = [&state](uint32_t below) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        return uint32_t(state >> 33) % below;
    };
    auto mac_of = [](uint32_t n) { return Mac{4, 0, 0, 0, uint8_t(n >> 4), uint8_t(n)}; };
    auto same = [&](const Entry &x, const Entry &y) {
        return x.live && y.live && x.whole == y.whole && (x.mac == y.mac || (!x.whole && x.mac >> 4 == y.mac >> 4)) &&
               x.priority == y.priority && x.who == y.who;
    };
    for (unsigned step = 0; step < 12000; step++) {
        const uint32_t index = random(4096);
        if (list[index].live) {
            ASSERT_EQ(detach(index), 0);
            list[index].live = false;
        } else {
            Entry e{true, random(256), uint16_t(random(3)), random(4), random(2) == 0};
            Rule rule(all[e.who]->qp.qpn, e.priority);
            rule.dmac(mac_of(e.mac), e.whole ? kBroadcast : Mac{0xff, 0xff, 0xff, 0xff, 0xff, 0});
            const bool twice =
                std::any_of(list.begin(), list.end(), [&](const Entry &other) { return same(e, other); });
            ASSERT_EQ(int(attach(index, rule)), twice ? HGHCA_CMD_STAT_RESOURCE_BUSY : 0);
            list[index] = e;
            list[index].live = !twice;
        }
        if (step % 40)
            continue;
        const uint32_t mac = random(256);
        uint32_t best = 3;
        std::string expected = "00001";
        for (const Entry &e : list) {
            if (!e.live || (e.whole ? e.mac != mac : e.mac >> 4 != mac >> 4) || e.priority > best)
                continue;
            if (e.priority < best)
                expected = "00000";
            best = e.priority;
            expected[e.who] = '1';
        }
        Packet p;
        p.dmac = mac_of(mac);
        arrive(p);
        ASSERT_EQ(copies({all[0].get(), all[1].get(), all[2].get(), all[3].get()}), expected) << step;
    }
    for (uint32_t index = 0; index < 4096; index++)
        ASSERT_EQ(detach(index), list[index].live ? 0 : HGHCA_CMD_STAT_BAD_RES_STATE);
    EXPECT_TRUE(net.b.device.flows->empty());
}

TEST_P(Flows, CloseAndResetForgetThem)
{
    ASSERT_EQ(attach(0, Rule(sender.qp.qpn)), 0);
    EXPECT_FALSE(net.b.device.flows->empty());
    ASSERT_EQ(driver.command(HGHCA_CMD_CLOSE_HCA).status, 0);
    EXPECT_TRUE(net.b.device.flows->empty());
    EXPECT_EQ(detach(0), HGHCA_CMD_STAT_BAD_SYS_STATE);
    driver.start();
    EXPECT_EQ(detach(0), HGHCA_CMD_STAT_BAD_RES_STATE);
    EXPECT_EQ(attach(0, Rule(200)), 0);
    driver.reset();
    EXPECT_TRUE(net.b.device.flows->empty());
}

TEST(FlowCommands, OnlyWhereTheyAreTurnedOn)
{
    Node plain(1, 0, kFullCaps & ~HGHCA_CAP_RAW_PACKET);
    EXPECT_EQ(plain.driver.post(HGHCA_CMD_FLOW_ATTACH, Rule(9), 0), HGHCA_CMD_STAT_BAD_OP);
    EXPECT_EQ(plain.driver.command(HGHCA_CMD_FLOW_DETACH).status, HGHCA_CMD_STAT_BAD_OP);
    // The net device's QP needs no more than PORT.
    Endpoint::Options options;
    options.service = HGHCA_QP_ST_RAW;
    Endpoint nic(plain, options);
    EXPECT_EQ(plain.driver.command(HGHCA_CMD_CONF_SPECIAL_QP, 0, nic.qp.qpn, HGHCA_SPECIAL_QP_RAW_ETH).status, 0);
    nic.post_recv(nic.sge(0, 2048));
    Network::deliver(plain, make({Node::mac_of(1)}));
    EXPECT_EQ(nic.poll_all().size(), 1u);
}

// ---- contexts that a guest has written to

TEST(FlowContexts, AQpThatSaysItIsAnother)
{
    Network net(1);   // so that contexts go to ICM
    Endpoint::Options options;
    options.service = HGHCA_QP_ST_RAW;
    Endpoint victim(net.b, options), other(net.b, options);
    TestDriver &driver = net.b.driver;
    victim.post_recv(victim.sge(0, 2048));
    ASSERT_EQ(driver.post(HGHCA_CMD_FLOW_ATTACH, Rule(victim.qp.qpn), 0), 0);
    driver.state(other.qp.qpn);   // pushes the other one out
    // Another one's entry in its place: its own number says that it is not.
    uint8_t *qpc = net.b.host.at(driver.qpc_dma);
    std::memcpy(qpc + 2048 * victim.qp.qpn, qpc + 2048 * (victim.qp.qpn + 1), 2048);
    Network::deliver(net.b, make({}));
    EXPECT_EQ(net.b.counters().flow_rx_no_qp, 1u);
    EXPECT_TRUE(victim.poll_all().empty());
    EXPECT_TRUE(other.poll_all().empty());
}

// ---- commands and frames that mean harm

// Rules of any bytes, made and taken away while frames come.
TEST_P(Flows, HostileCommands)
{
    auto e = receiver();
    uint64_t state = 11;
    auto random = [&state](uint32_t below) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        return uint32_t(state >> 33) % below;
    };
    std::vector<bool> live(32);
    unsigned made = 0, refused = 0;
    for (unsigned n = 0; n < 20000; n++) {
        Rule rule(random(4) ? e->qp.qpn : random(300), uint16_t(random(4)), uint8_t(random(4)));
        auto *bytes = reinterpret_cast<uint8_t *>(static_cast<hghca_flow *>(&rule));
        for (unsigned changes = random(6); changes; changes--) {
            const size_t at = offsetof(hghca_flow, mask) + random(sizeof(rule.mask));
            bytes[at] = uint8_t(random(256));
            if (random(2))
                bytes[at - sizeof(rule.value)] = bytes[at] & uint8_t(random(256));
        }
        if (random(2))
            rule.kinds(uint8_t(random(32)));
        const uint32_t index = random(32);
        if (live[index]) {
            ASSERT_EQ(attach(index, rule), HGHCA_CMD_STAT_BAD_RES_STATE);
            ASSERT_EQ(detach(index), 0);
            live[index] = false;
        } else {
            const uint8_t status = attach(index, rule);
            live[index] = !status;
            (status ? refused : made)++;
        }
        if (n % 8 == 0) {
            Packet p;
            p.dmac[0] = uint8_t(random(256));
            p.ether_type = random(2) ? 0x0800 : 0x86dd;
            arrive(p);
            ASSERT_LE(received(*e).size() + received(nic).size(), 1u);
        }
    }
    EXPECT_GT(made, 1000u);
    EXPECT_GT(refused, 1000u);
    for (uint32_t index = 0; index < live.size(); index++)
        ASSERT_EQ(detach(index), live[index] ? 0 : HGHCA_CMD_STAT_BAD_RES_STATE);
    EXPECT_TRUE(net.b.device.flows->empty());
}

TEST_P(Flows, HostileFrames)
{
    auto e = receiver();
    uint32_t index = 0;
    for (const Case &c : kCases) {
        Rule rule(e->qp.qpn, uint16_t(index));
        c.rule(rule);
        ASSERT_EQ(attach(index++, rule), 0) << c.what;
    }
    uint64_t state = 3;
    auto random = [&state](uint32_t below) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        return uint32_t(state >> 33) % below;
    };
    uint64_t taken = 0;
    for (unsigned n = 0; n < 4000; n++) {
        Packet p;
        p.vlan = random(2) ? int(random(65536)) : -1;
        p.ether_type = random(3) ? (random(2) ? 0x0800 : 0x86dd) : uint16_t(random(65536));
        p.version = uint8_t(random(16));
        p.options = random(16) - 5;
        p.options = p.options > 10 ? 0 : p.options;
        p.fragment = uint16_t(random(65536));
        Frame f = make(p);
        f.resize(random(130));
        for (unsigned flips = random(8); flips && !f.empty(); flips--)
            f[random(uint32_t(f.size()))] = uint8_t(random(256));
        const uint64_t before = counters().raw_rx_packets;
        Network::deliver(net.b, f);
        EXPECT_LE(counters().raw_rx_packets - before, f.size() < 14 ? 0u : 1u);
        taken += received(*e).size();
        received(nic);
    }
    EXPECT_GT(taken, 1000u);
    EXPECT_EQ(counters().flow_rx_packets, taken);
    EXPECT_EQ(e->state(), unsigned(HGHCA_QP_STATE_RTS));
}

// ---- many QPs

// A frame costs the same with one QP and with many: contexts looked at are those of its takers.
TEST(FlowWork, DoesNotGrowWithTheNumberOfQps)
{
    Network net;
    Endpoint::Options options;
    options.service = HGHCA_QP_ST_RAW;
    options.sq_wqes = options.rq_wqes = 1;
    options.cq_log = 1;
    options.buffer_bytes = 4096;
    std::vector<std::unique_ptr<Endpoint>> all;
    for (uint32_t n = 0; n < 200; n++) {
        all.push_back(std::make_unique<Endpoint>(net.b, options));
        Rule rule(all.back()->qp.qpn);
        rule.kinds(HGHCA_FLOW_UDP).dport(uint16_t(n));
        ASSERT_EQ(net.b.driver.post(HGHCA_CMD_FLOW_ATTACH, rule, n), 0);
        all.back()->post_recv(all.back()->sge(0, 2048));
    }
    for (uint32_t n : {0u, 99u, 199u}) {
        const uint64_t before = net.b.counters().context_hits + net.b.counters().context_misses;
        Packet p;
        p.dport = uint16_t(n);
        Network::deliver(net.b, make(p));
        EXPECT_EQ(all[n]->poll_all().size(), 1u);
        EXPECT_LE(net.b.counters().context_hits + net.b.counters().context_misses - before, 8u);
    }
    EXPECT_EQ(net.b.counters().flow_rx_packets, 3u);
}

// 64 masks with 56 rules each, for 400 QPs: a frame that matches all of them has few takers.
TEST(FlowWork, RulesOfAllMasksTogether)
{
    TestDriver::Layout layout;
    layout.log_qps = 9;
    Network net(0, kFullCaps, layout);
    TestDriver &driver = net.b.driver;
    const auto rule = [](uint32_t mask, uint32_t qpn, uint16_t priority) {
        Rule r(qpn, priority);
        r.mask.dmac[0] = uint8_t(mask + 1);   // none of the bits
        return r;
    };
    for (uint32_t n = 0; n < 64 * 56; n++)
        ASSERT_EQ(driver.post(HGHCA_CMD_FLOW_ATTACH, rule(n / 56, 100 + n % 400, 1), n), 0) << n;
    Packet p;
    p.dmac = {0, 0, 0, 0, 0, 1};
    const Counters &counters = net.b.counters();
    const uint64_t before = net.b.device.work_done();
    Network::deliver(net.b, make(p));
    // The frame; for each taker its copy, and a look in ICM for a QP that is not there.
    EXPECT_EQ(net.b.device.work_done() - before, 1 + 2 * 56u);
    EXPECT_EQ(counters.flow_rx_no_qp, 56u);
    EXPECT_EQ(counters.flow_rx_exceeded, 1u);
    // A better rule of the last mask takes it alone.
    Endpoint::Options options;
    options.service = HGHCA_QP_ST_RAW;
    Endpoint e(net.b, options);
    e.post_recv(e.sge(0, 2048));
    ASSERT_EQ(driver.post(HGHCA_CMD_FLOW_ATTACH, rule(63, e.qp.qpn, 0), 4000), 0);
    Network::deliver(net.b, make(p));
    EXPECT_EQ(e.poll_all().size(), 1u);
    EXPECT_EQ(counters.flow_rx_no_qp, 56u);
    EXPECT_EQ(counters.flow_rx_exceeded, 1u);
    // As many rules as may take it are not too many.
    for (uint32_t n = 0; n < 63 * 56; n++)
        ASSERT_EQ(driver.command(HGHCA_CMD_FLOW_DETACH, 0, n).status, 0);
    ASSERT_EQ(driver.command(HGHCA_CMD_FLOW_DETACH, 0, 4000).status, 0);
    Network::deliver(net.b, make(p));
    EXPECT_EQ(counters.flow_rx_no_qp, 2 * 56u);
    EXPECT_EQ(counters.flow_rx_exceeded, 1u);
}

}  // namespace
}  // namespace hghca::test::raw_packet_test
