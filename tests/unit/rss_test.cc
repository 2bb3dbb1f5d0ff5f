// SPDX-License-Identifier: GPL-2.0-or-later
// RSS groups: frames spread over receive work queues (interface document, 4.25).
#include "jingzhao/rss.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "jingzhao/flow.h"
#include "raw_frames.h"

namespace hghca::test::rss_test {
namespace {

// ---- the hash

constexpr RssKey kPublishedKey = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
                                  0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
                                  0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};

// Bit by bit, as the definition has it.
uint32_t reference(const RssKey &key, const Bytes &input)
{
    auto bit = [](const auto &bytes, size_t n) { return uint32_t(bytes[n / 8] >> (7 - n % 8) & 1); };
    uint32_t hash = 0;
    for (size_t n = 0; n < input.size() * 8; n++)
        for (size_t b = 0; bit(input, n) && b < 32; b++)
            hash ^= bit(key, n + b) << (31 - b);
    return hash;
}

// Microsoft, "Verifying the RSS Hash Calculation": the input ends with the ports.
const struct {
    Bytes input;
    uint32_t addresses, all;
} kPublished[] = {
    {{66, 9, 149, 187, 161, 142, 100, 80, 0x0a, 0xea, 0x06, 0xe6}, 0x323e8fc2, 0x51ccc178},
    {{199, 92, 111, 2, 65, 69, 140, 83, 0x37, 0x96, 0x12, 0x83}, 0xd718262a, 0xc626b0ea},
    {{24, 19, 198, 95, 12, 22, 207, 184, 0x32, 0x62, 0x94, 0x88}, 0xd2d0a5de, 0x5c2b394a},
    {{38, 27, 205, 30, 209, 142, 163, 6, 0xbc, 0x64, 0x08, 0xa9}, 0x82989176, 0xafc7327f},
    {{153, 39, 163, 191, 202, 188, 127, 2, 0xac, 0xdb, 0x05, 0x17}, 0x5d1809c5, 0x10e828a2},
    {{0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x1f, 0xff, 0, 0, 0, 0, 0, 0, 0, 7,
      0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x00, 0x03, 0, 0, 0, 0, 0, 0, 0, 1, 0x0a, 0xea, 0x06, 0xe6},
     0x2cc18cd5, 0x40207d3d},
    {{0x3f, 0xfe, 0x05, 0x01, 0x00, 0x08, 0, 0, 0x02, 0x60, 0x97, 0xff, 0xfe, 0x40, 0xef, 0xab,
      0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0x37, 0x96, 0x12, 0x83},
     0x0f0c461c, 0xdde51bbf},
    {{0x3f, 0xfe, 0x19, 0x00, 0x45, 0x45, 0x00, 0x03, 0x02, 0x00, 0xf8, 0xff, 0xfe, 0x21, 0x67, 0xcf,
      0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x02, 0x00, 0xf8, 0xff, 0xfe, 0x21, 0x67, 0xcf, 0xac, 0xdb, 0x94, 0x88},
     0x4b61e985, 0x02d1feef},
};

TEST(Toeplitz, PublishedValues)
{
    for (const auto &v : kPublished) {
        EXPECT_EQ(toeplitz(kPublishedKey, v.input.data(), v.input.size() - 4), v.addresses);
        EXPECT_EQ(toeplitz(kPublishedKey, v.input.data(), v.input.size()), v.all);
        EXPECT_EQ(reference(kPublishedKey, v.input), v.all);
    }
    EXPECT_EQ(toeplitz(kPublishedKey, nullptr, 0), 0u);
}

// Every bit that an input may have meets its 32 bits of the key.
TEST(Toeplitz, EachBit)
{
    for (size_t n = 0; n < kMaxRssInput * 8; n++) {
        Bytes input(kMaxRssInput);
        input[n / 8] = uint8_t(0x80 >> n % 8);
        EXPECT_EQ(toeplitz(kPublishedKey, input.data(), input.size()), reference(kPublishedKey, input)) << n;
    }
}

// ---- groups

struct Group : hghca_rss {
    explicit Group(const std::vector<uint32_t> &qpns, uint32_t fields_ = HGHCA_RSS_FIELDS) : hghca_rss{}
    {
        fields = be32(fields_);
        function = HGHCA_RSS_TOEPLITZ;
        std::copy(kPublishedKey.begin(), kPublishedKey.end(), key);
        while (1u << log_size < qpns.size())
            log_size++;
        for (size_t i = 0; i < qpns.size(); i++)
            qpn[i] = be32(qpns[i]);
    }
};

// What of a frame is hashed.
Bytes input_of(const Packet &p, uint32_t fields)
{
    const bool ipv4 = p.ether_type == 0x0800, ipv6 = p.ether_type == 0x86dd;
    const bool ports = (ipv4 && !(p.fragment & 0x3fff)) || ipv6;
    const bool tcp = ports && p.protocol == 6, udp = ports && p.protocol == 17;
    Frame in;
    auto has = [fields](uint32_t field) { return fields & field; };
    if (ipv4 && has(HGHCA_RSS_SRC_IPV4))
        put(in, p.sip, 4);
    if (ipv4 && has(HGHCA_RSS_DST_IPV4))
        put(in, p.dip, 4);
    if (ipv6 && has(HGHCA_RSS_SRC_IPV6))
        put_ipv6_address(in, p.sip);
    if (ipv6 && has(HGHCA_RSS_DST_IPV6))
        put_ipv6_address(in, p.dip);
    if ((tcp && has(HGHCA_RSS_SRC_PORT_TCP)) || (udp && has(HGHCA_RSS_SRC_PORT_UDP)))
        put(in, p.sport, 2);
    if ((tcp && has(HGHCA_RSS_DST_PORT_TCP)) || (udp && has(HGHCA_RSS_DST_PORT_UDP)))
        put(in, p.dport, 2);
    return in;
}

size_t index_of(const Packet &p, uint32_t fields, size_t entries)
{
    return reference(kPublishedKey, input_of(p, fields)) % entries;
}

using Queues = std::vector<std::unique_ptr<Endpoint>>;

// Node b has the groups; frames come from the link, and from a QP of its own.
class Rss : public ::testing::TestWithParam<uint32_t> {
protected:
    explicit Rss(uint32_t cache_entries)
        : net(cache_entries), nic(net.b, raw(16)), sender(net.b, raw(16)), driver(net.b.driver)
    {
        TestDriver::must(driver.command(HGHCA_CMD_CONF_SPECIAL_QP, 0, nic.qp.qpn, HGHCA_SPECIAL_QP_RAW_ETH).status,
                         "RAW");
        TestDriver::must(driver.set_port(Node::mac_of(2).data(), 1500, HGHCA_PORT_PROMISC), "SET_PORT");
        stock(nic);
    }
    Rss() : Rss(GetParam()) {}

    static Endpoint::Options raw(uint32_t sq_wqes, uint32_t pd = TestDriver::kPd)
    {
        Endpoint::Options options;
        options.service = HGHCA_QP_ST_RAW;
        options.cq_log = 6;
        options.buffer_bytes = 64 << 10;
        options.sq_wqes = sq_wqes;
        options.rq_wqes = 16;
        options.pd = pd;
        return options;
    }
    static void stock(Endpoint &e)
    {
        for (int i = 0; i < 12; i++)
            e.post_recv(e.sge(4096u + 2048u * unsigned(i), 2048));
    }
    // From RST to RTR, as a driver that makes a WQ ready: empty.
    void ready(Endpoint &e)
    {
        hghca_qpc c = driver.init_qpc(e.qp, HGHCA_QP_ST_RAW, e.cq, e.cq);
        c.pd = be32(e.options.pd);
        e.rq_head = 0;
        store_release(net.b.host.as<hghca_qp_dbr>(e.qp.dbr)->rq_head, 0u);
        TestDriver::must(driver.modify(HGHCA_CMD_RST2INIT_QPEE, e.qp.qpn, c), "RST2INIT");
        TestDriver::must(driver.modify(HGHCA_CMD_INIT2RTR_QPEE, e.qp.qpn, hghca_qpc{}), "INIT2RTR");
    }
    std::unique_ptr<Endpoint> queue(uint32_t pd = TestDriver::kPd)
    {
        auto e = std::make_unique<Endpoint>(net.b, raw(0, pd));
        TestDriver::must(driver.to_reset(e->qp.qpn), "ERR2RST");
        ready(*e);
        stock(*e);
        return e;
    }
    Queues queues(size_t n)
    {
        Queues all;
        for (size_t i = 0; i < n; i++)
            all.push_back(queue());
        return all;
    }
    static std::vector<uint32_t> numbers(const Queues &all)
    {
        std::vector<uint32_t> qpns;
        for (const auto &e : all)
            qpns.push_back(e->qp.qpn);
        return qpns;
    }
    uint8_t create(uint32_t index, const hghca_rss &group) { return driver.post(HGHCA_CMD_CREATE_RSS, group, index); }
    uint8_t destroy(uint32_t index) { return driver.command(HGHCA_CMD_DESTROY_RSS, 0, index).status; }
    uint8_t attach(uint32_t index, const hghca_flow &rule) { return driver.post(HGHCA_CMD_FLOW_ATTACH, rule, index); }
    uint8_t detach(uint32_t index) { return driver.command(HGHCA_CMD_FLOW_DETACH, 0, index).status; }
    static Rule rule_of(uint32_t group, uint16_t priority = 0) { return Rule(HGHCA_FLOW_RSS | group, priority); }

    static size_t received(Endpoint &e)
    {
        size_t n = 0;
        for (const Completion &c : e.poll_all())
            n += !c.is_send && !c.error;
        for (size_t i = 0; i < n; i++)
            e.post_recv(e.sge(4096, 2048));
        return n;
    }
    // How many each has received; the net device last.
    std::string copies(const Queues &all)
    {
        std::string said;
        for (const auto &e : all)
            said += char('0' + received(*e));
        return said + char('0' + received(nic));
    }
    // That one alone has received a copy.
    static std::string only(size_t which, size_t of)
    {
        std::string said(of + 1, '0');
        said[which] = '1';
        return said;
    }
    void arrive(const Packet &p) { Network::deliver(net.b, make(p)); }
    void send_here(const Packet &p)
    {
        const Frame f = make(p);
        std::memcpy(sender.at(0), f.data(), f.size());
        sender.post(send(sender.sge(0, uint32_t(f.size()))));
        net.pump();
    }
    const Counters &counters() { return net.b.counters(); }

    Network net;
    Endpoint nic, sender;
    TestDriver &driver;
};

INSTANTIATE_TEST_SUITE_P(Cache, Rss, ::testing::Values(0u, 1u));

const struct {
    const char *what;
    std::function<void(Packet &)> change;
} kFrames[] = {
    {"UDP over IPv4", [](Packet &) {}},
    {"TCP over IPv4", [](Packet &p) { p.protocol = 6; }},
    {"another protocol", [](Packet &p) { p.protocol = 50; }},
    {"a fragment", [](Packet &p) { p.fragment = 0x2000; }},
    {"the end of fragments", [](Packet &p) { p.protocol = 6, p.fragment = 9; }},
    {"behind options, in a VLAN", [](Packet &p) { p.options = 5, p.vlan = 7; }},
    {"UDP over IPv6", [](Packet &p) { p.ether_type = 0x86dd; }},
    {"TCP over IPv6 in a VLAN", [](Packet &p) { p.ether_type = 0x86dd, p.protocol = 6, p.vlan = 9; }},
    {"another next header", [](Packet &p) { p.ether_type = 0x86dd, p.protocol = 58; }},
    {"no IP", [](Packet &p) { p.ether_type = 0x88b5; }},
};

// Each choice of fields, each kind of frame: the copy goes where the definition says, and nowhere else.
TEST_P(Rss, EachFieldAndFrame)
{
    const Queues all = queues(8);
    uint32_t seed = 1;
    std::set<size_t> used;
    for (uint32_t fields = 0; fields <= HGHCA_RSS_FIELDS; fields++) {
        ASSERT_EQ(create(3, Group(numbers(all), fields)), 0);
        ASSERT_EQ(attach(7, rule_of(3)), 0);
        for (const auto &f : kFrames) {
            Packet p;
            seed = seed * 1664525 + 1013904223;
            p.sip = seed;
            p.dip = ~seed * 3;
            p.sport = uint16_t(seed >> 7);
            p.dport = uint16_t(seed >> 11);
            f.change(p);
            const size_t index = index_of(p, fields, 8);
            used.insert(index);
            arrive(p);
            ASSERT_EQ(copies(all), only(index, 8)) << f.what << ", fields " << fields;
        }
        ASSERT_EQ(detach(7), 0);
        ASSERT_EQ(destroy(3), 0);
    }
    EXPECT_EQ(used.size(), 8u);
    EXPECT_EQ(counters().flow_rx_packets, 256 * std::size(kFrames));
    EXPECT_EQ(counters().flow_rx_no_qp, 0u);
}

TEST_P(Rss, TheFrameAsItIs)
{
    const Queues all = queues(4);
    ASSERT_EQ(create(0, Group(numbers(all))), 0);
    ASSERT_EQ(attach(0, rule_of(0)), 0);
    Packet p;
    for (uint16_t port = 1; port <= 40; port++) {
        p.sport = port;
        p.bytes = 60 + port * 30u;
        const Frame f = make(p);
        Network::deliver(net.b, f);
        Endpoint &e = *all[index_of(p, HGHCA_RSS_FIELDS, 4)];
        const auto got = e.poll_all();
        ASSERT_EQ(got.size(), 1u) << port;
        EXPECT_FALSE(got[0].error);
        EXPECT_FALSE(got[0].is_send);
        EXPECT_EQ(got[0].qpn, e.qp.qpn) << "the queue's number";
        EXPECT_EQ(got[0].bytes, f.size());
        EXPECT_EQ(std::memcmp(e.at(4096u + 2048u * (got[0].slot % 12)), f.data(), f.size()), 0);
        e.post_recv(e.sge(4096u + 2048u * (e.rq_head % 16 % 12), 2048));
    }
}

// Of every size; a queue may stand there more than once.
TEST_P(Rss, SizesOfTables)
{
    const Queues all = queues(3);
    for (size_t log = 0; log <= 9; log++) {
        std::vector<uint32_t> qpns;
        for (size_t i = 0; i < size_t(1) << log; i++)
            qpns.push_back(all[i * i % 3]->qp.qpn);
        ASSERT_EQ(create(1023, Group(qpns)), 0);
        ASSERT_EQ(attach(0, rule_of(1023)), 0);
        for (uint16_t port = 1; port < 30; port++) {
            Packet p;
            p.dport = port;
            arrive(p);
            const size_t index = index_of(p, HGHCA_RSS_FIELDS, qpns.size());
            ASSERT_EQ(copies(all), only(index * index % 3, 3)) << log;
        }
        ASSERT_EQ(detach(0), 0);
        ASSERT_EQ(destroy(1023), 0);
    }
}

TEST_P(Rss, RulesAndGroups)
{
    const Queues all = queues(4);
    const Packet p;
    ASSERT_EQ(create(0, Group({all[0]->qp.qpn})), 0);
    ASSERT_EQ(create(1, Group({all[1]->qp.qpn, all[1]->qp.qpn})), 0);
    ASSERT_EQ(attach(0, rule_of(0).ether_type(0x0800)), 0);
    arrive(p);
    EXPECT_EQ(copies(all), "10000");
    // A second rule of the group makes no second copy, another group and a QP have their own.
    ASSERT_EQ(attach(1, rule_of(0).kinds(HGHCA_FLOW_UDP)), 0);
    arrive(p);
    EXPECT_EQ(copies(all), "10000");
    ASSERT_EQ(attach(2, rule_of(1).ether_type(0x0800)), 0);
    ASSERT_EQ(attach(3, Rule(all[2]->qp.qpn).ether_type(0x0800)), 0);
    arrive(p);
    EXPECT_EQ(copies(all), "11100");
    // A queue of a group that a rule names by itself too.
    ASSERT_EQ(attach(4, Rule(all[0]->qp.qpn).ether_type(0x0800)), 0);
    arrive(p);
    EXPECT_EQ(copies(all), "21100");
    // Priorities are the rules'.
    ASSERT_EQ(detach(0), 0);
    ASSERT_EQ(detach(1), 0);
    ASSERT_EQ(attach(0, rule_of(0, 1).ether_type(0x0800)), 0);
    arrive(p);
    EXPECT_EQ(copies(all), "11100");
    for (uint32_t index : {2u, 3u, 4u})
        ASSERT_EQ(detach(index), 0);
    arrive(p);
    EXPECT_EQ(copies(all), "10000");
    ASSERT_EQ(detach(0), 0);
    arrive(p);
    EXPECT_EQ(copies(all), "00001");
}

// A multicast frame of an HCA's own: the QP that sends has no copy, though it is of the group.
TEST_P(Rss, WhoSendsHasNoCopy)
{
    const Queues all = queues(1);
    Packet p;
    p.dmac = kGroup;
    stock(sender);
    ASSERT_EQ(create(0, Group({all[0]->qp.qpn})), 0);
    ASSERT_EQ(create(1, Group({sender.qp.qpn})), 0);
    ASSERT_EQ(attach(0, rule_of(0)), 0);
    ASSERT_EQ(attach(1, rule_of(1)), 0);
    send_here(p);
    EXPECT_EQ(copies(all), "10");
    EXPECT_EQ(received(sender), 0u);
    EXPECT_EQ(net.sent, 1u);
    arrive(p);
    EXPECT_EQ(copies(all), "10");
    EXPECT_EQ(received(sender), 1u);
}

// ---- states of a queue

TEST_P(Rss, StatesOfAQueue)
{
    const Queues all = queues(2);
    Endpoint &e = *all[0];
    Packet first;   // one that goes to `e`
    while (index_of(first, HGHCA_RSS_FIELDS, 2))
        first.sport++;
    ASSERT_EQ(create(0, Group(numbers(all))), 0);
    ASSERT_EQ(attach(0, rule_of(0)), 0);
    arrive(first);
    EXPECT_EQ(copies(all), "100");

    // ERR: what is posted is flushed, what is posted later too when the doorbell rings.
    ASSERT_EQ(driver.to_error(e.qp.qpn), 0);
    auto flushed = e.poll_all();
    ASSERT_EQ(flushed.size(), 12u);
    for (const Completion &c : flushed) {
        EXPECT_EQ(int(c.syndrome), HGHCA_SYNDROME_WR_FLUSH_ERR);
        EXPECT_EQ(c.qpn, e.qp.qpn);
    }
    e.post_recv(e.sge(4096, 2048));
    EXPECT_TRUE(e.poll_all().empty());
    driver.ring_sq(e.qp, 0, 0, 0);
    flushed = e.poll_all();
    ASSERT_EQ(flushed.size(), 1u);
    EXPECT_EQ(int(flushed[0].syndrome), HGHCA_SYNDROME_WR_FLUSH_ERR);
    // Its frames go to nobody else.
    arrive(first);
    EXPECT_EQ(copies(all), "000");
    EXPECT_EQ(counters().flow_rx_no_qp, 1u);

    ASSERT_EQ(driver.to_reset(e.qp.qpn), 0);
    arrive(first);
    EXPECT_EQ(copies(all), "000");
    EXPECT_EQ(counters().flow_rx_no_qp, 2u);
    // Back, without a receive, and with one.
    ready(e);
    arrive(first);
    EXPECT_EQ(copies(all), "000");
    EXPECT_EQ(counters().flow_rx_no_qp, 2u);
    EXPECT_EQ(counters().raw_rx_dropped, 1u);
    stock(e);
    arrive(first);
    EXPECT_EQ(copies(all), "100");

    // Its number as that of a QP of another service, and as the net device's.
    ASSERT_EQ(driver.to_reset(e.qp.qpn), 0);
    ASSERT_EQ(driver.modify(HGHCA_CMD_RST2INIT_QPEE, e.qp.qpn, driver.init_qpc(e.qp, HGHCA_QP_ST_UD, e.cq, e.cq)), 0);
    driver.to_rts(e.qp);
    arrive(first);
    EXPECT_EQ(copies(all), "000");
    EXPECT_EQ(counters().flow_rx_no_qp, 3u);
    ASSERT_EQ(driver.to_reset(e.qp.qpn), 0);
    ready(e);
    stock(e);
    ASSERT_EQ(driver.command(HGHCA_CMD_CONF_SPECIAL_QP, 0, e.qp.qpn, HGHCA_SPECIAL_QP_RAW_ETH).status, 0);
    arrive(first);
    EXPECT_EQ(copies(all), "000") << "a group gives the net device nothing";
    EXPECT_EQ(counters().flow_rx_no_qp, 4u);
}

// Memory is that of the queue's own PD; a queue that fails takes no other with it.
TEST_P(Rss, EachQueueHasItsPd)
{
    Queues all = queues(1);
    all.push_back(queue(TestDriver::kPd + 1));
    ASSERT_EQ(create(0, Group(numbers(all))), 0);
    ASSERT_EQ(attach(0, rule_of(0)), 0);
    Packet to[2];
    for (size_t i = 0; i < 2; i++) {
        while (index_of(to[i], HGHCA_RSS_FIELDS, 2) != i)
            to[i].sport++;
        arrive(to[i]);
        EXPECT_EQ(copies(all), only(i, 2));
    }
    // The key of one in a receive of the other: behind the twelve that are there.
    Endpoint &e = *all[1];
    e.post_recv(all[0]->sge(4096, 2048));
    for (int i = 0; i < 12; i++)
        arrive(to[1]);
    EXPECT_EQ(e.poll_all().size(), 12u);
    arrive(to[1]);
    const auto failed = e.poll_all();
    ASSERT_EQ(failed.size(), 1u);
    EXPECT_EQ(int(failed[0].syndrome), HGHCA_SYNDROME_LOCAL_PROT_ERR);
    EXPECT_EQ(e.state(), unsigned(HGHCA_QP_STATE_ERR));
    EXPECT_EQ(all[0]->state(), unsigned(HGHCA_QP_STATE_RTR));
    arrive(to[0]);
    EXPECT_EQ(copies(all), "100");
}

// ---- commands

TEST_P(Rss, WhatACommandMayAskFor)
{
    Endpoint ud(net.b, [] {
        Endpoint::Options options;
        options.service = HGHCA_QP_ST_UD;
        return options;
    }());
    const uint32_t qpn = sender.qp.qpn;
    struct {
        const char *what;
        std::function<void(hghca_rss &)> change;
        uint8_t status;
    } cases[] = {
        {"as it is", [](hghca_rss &) {}, 0},
        {"no fields", [](hghca_rss &g) { g.fields = 0; }, 0},
        {"another function", [](hghca_rss &g) { g.function = 2; }, HGHCA_CMD_STAT_BAD_PARAM},
        {"no function", [](hghca_rss &g) { g.function = 0; }, HGHCA_CMD_STAT_BAD_PARAM},
        {"an unknown field", [](hghca_rss &g) { g.fields = be32(1 << 8); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"inner headers", [](hghca_rss &g) { g.fields = be32(1u << 31); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"one entry", [](hghca_rss &g) { g.log_size = 0; }, 0},
        {"too many entries", [](hghca_rss &g) { g.log_size = 10; }, HGHCA_CMD_STAT_BAD_SIZE},
        {"far too many", [](hghca_rss &g) { g.log_size = 255; }, HGHCA_CMD_STAT_BAD_SIZE},
        {"an entry that nobody wrote", [](hghca_rss &g) { g.log_size = 2; }, HGHCA_CMD_STAT_BAD_PARAM},
        {"QP 0", [](hghca_rss &g) { g.qpn[1] = 0; }, HGHCA_CMD_STAT_BAD_PARAM},
        {"a QP beyond the table", [](hghca_rss &g) { g.qpn[1] = be32(256); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"a QP far beyond", [](hghca_rss &g) { g.qpn[1] = be32(0x10000 + 9); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"a group in a group", [](hghca_rss &g) { g.qpn[1] = be32(HGHCA_FLOW_RSS); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"the net device's QP", [this](hghca_rss &g) { g.qpn[0] = be32(nic.qp.qpn); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"a UD QP", [&](hghca_rss &g) { g.qpn[0] = be32(ud.qp.qpn); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"a QP in RST", [](hghca_rss &g) { g.qpn[0] = be32(200); }, 0},
        {"reserved bits, entries behind the last", [](hghca_rss &g) { g.rsvd06 = 1, g.qpn[2] = ~0u; }, 0},
    };
    for (const auto &c : cases) {
        Group group({qpn, qpn});
        c.change(group);
        EXPECT_EQ(int(create(1023, group)), int(c.status)) << c.what;
        EXPECT_EQ(int(destroy(1023)), c.status ? HGHCA_CMD_STAT_BAD_RES_STATE : 0) << c.what;
    }
    EXPECT_EQ(create(1024, Group({qpn})), HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(create(~0u, Group({qpn})), HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(destroy(1024), HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(destroy(HGHCA_FLOW_RSS), HGHCA_CMD_STAT_BAD_INDEX);

    // Rules of groups.
    EXPECT_EQ(attach(0, rule_of(5)), HGHCA_CMD_STAT_BAD_PARAM) << "no table yet";
    EXPECT_EQ(attach(0, rule_of(1024)), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(attach(0, rule_of(0x7fffffff)), HGHCA_CMD_STAT_BAD_PARAM);
    ASSERT_EQ(create(5, Group({qpn})), 0);
    EXPECT_EQ(create(5, Group({qpn})), HGHCA_CMD_STAT_BAD_RES_STATE);
    EXPECT_EQ(attach(0, rule_of(5 | 1 << 24)), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(attach(0, rule_of(5)), 0);
    EXPECT_EQ(attach(1, rule_of(5)), HGHCA_CMD_STAT_RESOURCE_BUSY);
    EXPECT_EQ(attach(1, rule_of(5, 1)), 0);
    EXPECT_EQ(attach(2, Rule(5)), 0) << "QP 5 is another";
    EXPECT_EQ(destroy(5), HGHCA_CMD_STAT_RESOURCE_BUSY);
    EXPECT_EQ(detach(0), 0);
    EXPECT_EQ(destroy(5), HGHCA_CMD_STAT_RESOURCE_BUSY);
    EXPECT_EQ(detach(1), 0);
    EXPECT_EQ(destroy(5), 0);
    EXPECT_EQ(destroy(5), HGHCA_CMD_STAT_BAD_RES_STATE);
    EXPECT_EQ(attach(0, rule_of(5)), HGHCA_CMD_STAT_BAD_PARAM);
}

// All there may be, each of the largest size.
TEST_P(Rss, AllGroups)
{
    const Queues all = queues(2);
    const std::vector<uint32_t> to[2] = {std::vector<uint32_t>(512, all[0]->qp.qpn),
                                         std::vector<uint32_t>(512, all[1]->qp.qpn)};
    for (uint32_t index = 0; index < 1024; index++)
        ASSERT_EQ(create(index, Group(to[index % 2])), 0);
    for (uint32_t index : {0u, 511u, 1023u}) {
        ASSERT_EQ(attach(9, rule_of(index)), 0);
        arrive({});
        EXPECT_EQ(copies(all), only(index % 2, 2));
        ASSERT_EQ(detach(9), 0);
    }
    for (uint32_t index = 0; index < 1024; index++)
        ASSERT_EQ(destroy(index), 0);
}

TEST_P(Rss, CloseAndResetForgetThem)
{
    ASSERT_EQ(create(2, Group({sender.qp.qpn})), 0);
    ASSERT_EQ(attach(0, rule_of(2)), 0);
    ASSERT_EQ(driver.command(HGHCA_CMD_CLOSE_HCA).status, 0);
    EXPECT_FALSE(net.b.device.rss->exists(2));
    EXPECT_EQ(destroy(2), HGHCA_CMD_STAT_BAD_SYS_STATE);
    driver.start();
    EXPECT_EQ(destroy(2), HGHCA_CMD_STAT_BAD_RES_STATE);
    // Of the rule nothing is left either: the group can go.
    ASSERT_EQ(create(2, Group({200})), 0);
    EXPECT_EQ(destroy(2), 0);
    ASSERT_EQ(create(2, Group({200})), 0);
    driver.reset();
    EXPECT_FALSE(net.b.device.rss->exists(2));
}

TEST(RssCommands, OnlyWhereTheyAreTurnedOn)
{
    Node plain(1, 0, kFullCaps & ~HGHCA_CAP_RSS);
    EXPECT_EQ(plain.driver.post(HGHCA_CMD_CREATE_RSS, Group({9}), 0), HGHCA_CMD_STAT_BAD_OP);
    EXPECT_EQ(plain.driver.command(HGHCA_CMD_DESTROY_RSS).status, HGHCA_CMD_STAT_BAD_OP);
    EXPECT_EQ(plain.driver.post(HGHCA_CMD_FLOW_ATTACH, Rule(HGHCA_FLOW_RSS), 0), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(plain.driver.post(HGHCA_CMD_FLOW_ATTACH, Rule(9), 0), 0);
}

// ---- contexts that a guest has written to

TEST(RssContexts, AQueueThatSaysItIsAnother)
{
    Network net(1);   // so that contexts go to ICM
    Endpoint::Options options;
    options.service = HGHCA_QP_ST_RAW;
    options.sq_wqes = 0;
    Endpoint victim(net.b, options), other(net.b, options);
    TestDriver &driver = net.b.driver;
    victim.post_recv(victim.sge(0, 2048));
    other.post_recv(other.sge(0, 2048));
    ASSERT_EQ(driver.post(HGHCA_CMD_CREATE_RSS, Group({victim.qp.qpn}), 0), 0);
    ASSERT_EQ(driver.post(HGHCA_CMD_FLOW_ATTACH, Rule(HGHCA_FLOW_RSS), 0), 0);
    driver.state(other.qp.qpn);   // pushes the other one out
    uint8_t *qpc = net.b.host.at(driver.qpc_dma);
    std::memcpy(qpc + kQpcEntrySize * victim.qp.qpn, qpc + kQpcEntrySize * other.qp.qpn, kQpcEntrySize);
    Network::deliver(net.b, make({}));
    EXPECT_EQ(net.b.counters().flow_rx_no_qp, 1u);
    EXPECT_TRUE(victim.poll_all().empty());
    EXPECT_TRUE(other.poll_all().empty());
}

// ---- commands that mean harm

// Groups and rules of any bytes, made and taken away while frames come.
TEST_P(Rss, HostileCommands)
{
    const Queues all = queues(2);
    uint64_t state = 5;
    auto random = [&state](uint32_t below) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        return uint32_t(state >> 33) % below;
    };
    unsigned made = 0, refused = 0;
    uint64_t taken = 0;
    for (unsigned n = 0; n < 8000; n++) {
        const uint32_t index = random(8);
        Group group(random(3) ? numbers(all) : std::vector<uint32_t>{random(300), all[0]->qp.qpn}, random(512));
        auto *bytes = reinterpret_cast<uint8_t *>(static_cast<hghca_rss *>(&group));
        for (unsigned changes = random(4); changes; changes--)
            bytes[random(2) ? random(sizeof(hghca_rss)) : random(8)] = uint8_t(random(256));
        switch (random(4)) {
        case 0:
            (create(index, group) ? refused : made)++;
            break;
        case 1:
            destroy(index);
            break;
        case 2:
            attach(random(16), rule_of(random(10), uint16_t(random(3))));
            break;
        default:
            detach(random(16));
        }
        if (n % 4)
            continue;
        Packet p;
        p.sip = random(1000);
        p.protocol = random(2) ? 6 : 17;
        p.ether_type = random(2) ? 0x0800 : 0x86dd;
        arrive(p);
        for (const auto &e : all)
            taken += received(*e);
        received(nic);
    }
    EXPECT_GT(made, 100u);
    EXPECT_GT(refused, 100u);
    EXPECT_GT(taken, 100u);
    EXPECT_EQ(counters().flow_rx_packets, taken);
    for (uint32_t index = 0; index < 16; index++)
        detach(index);
    EXPECT_TRUE(net.b.device.flows->empty());
    // Nothing holds a group any more.
    for (uint32_t index = 0; index < 8; index++) {
        const bool existed = net.b.device.rss->exists(index);
        EXPECT_EQ(int(destroy(index)), existed ? 0 : HGHCA_CMD_STAT_BAD_RES_STATE);
    }
}

// ---- many queues

// A frame costs the same with one queue and with many: the one context looked at is its queue's.
TEST(RssWork, DoesNotGrowWithTheNumberOfQueues)
{
    Network net;
    Endpoint::Options options;
    options.service = HGHCA_QP_ST_RAW;
    options.sq_wqes = 0;
    options.rq_wqes = 1;
    options.cq_log = 1;
    options.buffer_bytes = 4096;
    Queues all;
    std::vector<uint32_t> qpns;
    for (uint32_t n = 0; n < 128; n++) {
        all.push_back(std::make_unique<Endpoint>(net.b, options));
        all.back()->post_recv(all.back()->sge(0, 2048));
        qpns.push_back(all.back()->qp.qpn);
    }
    ASSERT_EQ(net.b.driver.post(HGHCA_CMD_CREATE_RSS, Group(qpns), 0), 0);
    ASSERT_EQ(net.b.driver.post(HGHCA_CMD_FLOW_ATTACH, Rule(HGHCA_FLOW_RSS), 0), 0);
    for (uint32_t port : {1u, 2u, 3u}) {
        Packet p;
        p.sport = uint16_t(port);
        const uint64_t before = net.b.counters().context_hits + net.b.counters().context_misses;
        Network::deliver(net.b, make(p));
        EXPECT_EQ(all[index_of(p, HGHCA_RSS_FIELDS, 128)]->poll_all().size(), 1u);
        EXPECT_LE(net.b.counters().context_hits + net.b.counters().context_misses - before, 8u);
    }
    EXPECT_EQ(net.b.counters().flow_rx_packets, 3u);
}

}  // namespace
}  // namespace hghca::test::rss_test
