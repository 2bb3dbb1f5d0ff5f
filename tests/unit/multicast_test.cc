// SPDX-License-Identifier: GPL-2.0-or-later
// Multicast groups (interface document, 4.18 and 9).
#include <gtest/gtest.h>

#include <algorithm>

#include "jingzhao/multicast.h"
#include "verbs.h"

namespace hghca::test::multicast_test {
namespace {

using Options = Endpoint::Options;

constexpr uint32_t kQkey = 0x11111111;   // of every QP that TestDriver makes
constexpr uint32_t kValid = 1u << 31;
constexpr uint32_t kEntries = 16;        // of the table that TestDriver lays out, half of them buckets
constexpr uint32_t kBuckets = kEntries / 2;

// 239.1.b.c as a GID; ff0e::1:b:c.
Gid ipv4_group(unsigned n) { return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 1, uint8_t(n >> 8), uint8_t(n)}; }
Gid ipv6_group(unsigned n)
{
    return {0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, uint8_t(n >> 8), uint8_t(n)};
}
// RFC 1112 takes 23 bits of the IPv4 address, RFC 2464 the last four bytes.
Mac mac_of(const Gid &group)
{
    if (group[0] != 0xff)
        return {0x01, 0x00, 0x5e, uint8_t(group[13] & 0x7f), group[14], group[15]};
    return {0x33, 0x33, group[12], group[13], group[14], group[15]};
}

hghca_mgm entry_of(const Gid &group, const std::vector<uint32_t> &qpns, uint32_t next = 0)
{
    hghca_mgm entry{};
    entry.next = be32(next);
    std::copy(group.begin(), group.end(), entry.gid);
    for (size_t i = 0; i < qpns.size(); i++)
        entry.qp[i] = be32(kValid | qpns[i]);
    return entry;
}

uint32_t bucket_of(TestDriver &driver, const Gid &group)
{
    hghca_mgid mgid;
    std::copy(group.begin(), group.end(), mgid.gid);
    TestDriver::must(driver.post(HGHCA_CMD_MGID_HASH, mgid), "MGID_HASH");
    return driver.hcr(HGHCA_HCR_OUT_PARAM_L);
}

// The group stands in its bucket, alone.
void join(Node &node, const Gid &group, const std::vector<uint32_t> &qpns)
{
    TestDriver &d = node.driver;
    TestDriver::must(d.post(HGHCA_CMD_WRITE_MGM, entry_of(group, qpns), bucket_of(d, group)), "WRITE_MGM");
}

// ---- commands

class GroupCommands : public ::testing::Test {
protected:
    GroupCommands() : node(1), driver(node.driver) {}
    uint8_t write(const hghca_mgm &entry, uint32_t index) { return driver.post(HGHCA_CMD_WRITE_MGM, entry, index); }
    hghca_mgm read(uint32_t index)
    {
        hghca_mgm entry;
        TestDriver::must(driver.query(HGHCA_CMD_READ_MGM, entry, index), "READ_MGM");
        return entry;
    }
    bool holds(uint32_t index, const hghca_mgm &entry)
    {
        const hghca_mgm there = read(index);
        return !std::memcmp(&there, &entry, sizeof(entry));
    }
    Node node;
    TestDriver &driver;
};

TEST_F(GroupCommands, AreOffWithoutTheCapability)
{
    driver.start(kFullCaps & ~HGHCA_CAP_MULTICAST);
    for (uint32_t op : {0x025, 0x026, 0x027})
        EXPECT_EQ(driver.command(op, driver.in_mailbox(), 0, 0, driver.out_mailbox()).status, HGHCA_CMD_STAT_BAD_OP);
    driver.start();
    std::memset(node.host.at(driver.in_mailbox()), 0, HGHCA_MAILBOX_SIZE);
    for (uint32_t op : {0x025, 0x026})
        EXPECT_EQ(driver.command(op, driver.in_mailbox(), 0, 0, driver.out_mailbox()).status, 0);
}

TEST_F(GroupCommands, Layouts)
{
    struct {
        const char *what;
        uint64_t base;
        uint8_t status;
    } cases[] = {
        {"two entries", 5 << 20 | 1, 0},
        {"one entry: no bucket", 5 << 20, HGHCA_CMD_STAT_BAD_PARAM},
        {"as many as there can be", 5 << 20 | 13, 0},
        {"one more", 5 << 20 | 14, HGHCA_CMD_STAT_BAD_PARAM},
        {"up to the end", ((1ull << 32) - 256 * kEntries) | 4, 0},
        {"past it", ((1ull << 32) - 256 * (kEntries - 1)) | 4, HGHCA_CMD_STAT_BAD_PARAM},
        {"outside", 1ull << 32 | 4, HGHCA_CMD_STAT_BAD_PARAM},
        {"over the QPCs", 0 | 4, HGHCA_CMD_STAT_BAD_PARAM},
        {"over the CQCs", 1 << 20 | 4, HGHCA_CMD_STAT_BAD_PARAM},
        {"over the EQCs", 2 << 20 | 4, HGHCA_CMD_STAT_BAD_PARAM},
        {"over the SRQCs", 3 << 20 | 4, HGHCA_CMD_STAT_BAD_PARAM},
    };
    for (const auto &c : cases) {
        driver.reset();
        hghca_init_hca init = driver.init_mailbox();
        init.mcg_base = be64(c.base);
        EXPECT_EQ(driver.post(HGHCA_CMD_INIT_HCA, init), c.status) << c.what;
        // Nobody looks at it without the capability.
        driver.reset();
        init.caps = be32(kFullCaps & ~HGHCA_CAP_MULTICAST);
        EXPECT_EQ(driver.post(HGHCA_CMD_INIT_HCA, init), 0) << c.what;
    }
}

TEST_F(GroupCommands, HashIsABucketOfAGroup)
{
    std::vector<unsigned> hits(kBuckets);
    for (unsigned n = 0; n < 1000; n++) {
        for (const Gid &group : {ipv4_group(n), ipv6_group(n)}) {
            const uint32_t bucket = bucket_of(driver, group);
            ASSERT_LT(bucket, kBuckets);
            EXPECT_EQ(bucket_of(driver, group), bucket);
            hits[bucket]++;
        }
    }
    // Evenly: of 2000 groups 250 each.
    for (unsigned n : hits) {
        EXPECT_GT(n, 200u);
        EXPECT_LT(n, 300u);
    }
    for (const Gid &gid : {Node::gid_of(1, 0), Node::gid_of(1, 1), Gid{},
                           Gid{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 240, 0, 0, 1},
                           Gid{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 223, 255, 255, 255},
                           Gid{0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 239, 0, 0, 1}}) {
        hghca_mgid mgid;
        std::copy(gid.begin(), gid.end(), mgid.gid);
        EXPECT_EQ(driver.post(HGHCA_CMD_MGID_HASH, mgid), HGHCA_CMD_STAT_BAD_PARAM);
    }
    hghca_mgid mgid{};
    mgid.gid[0] = 0xff;
    EXPECT_EQ(driver.post(HGHCA_CMD_MGID_HASH, mgid), 0);
    EXPECT_EQ(driver.post(HGHCA_CMD_MGID_HASH, mgid, 1), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(driver.post(HGHCA_CMD_MGID_HASH, mgid, 0, 1), HGHCA_CMD_STAT_BAD_PARAM);
}

TEST_F(GroupCommands, HashIsToldByAnEvent)
{
    hghca_mgid mgid;
    const Gid group = ipv4_group(3);
    const uint32_t bucket = bucket_of(driver, group);
    std::copy(group.begin(), group.end(), mgid.gid);
    std::memcpy(node.host.at(driver.in_mailbox()), &mgid, sizeof(mgid));
    driver.command(HGHCA_CMD_MGID_HASH, driver.in_mailbox(), 0, 0, ~0ull, true, 7);
    hghca_eqe eqe;
    ASSERT_TRUE(driver.poll(driver.async, eqe));
    EXPECT_EQ(eqe.event.cmd.status, 0);
    EXPECT_EQ(be32(eqe.event.cmd.out_param_h), 0u);
    EXPECT_EQ(be32(eqe.event.cmd.out_param_l), bucket);
}

TEST_F(GroupCommands, AnEntryIsReadAsItWasWritten)
{
    const hghca_mgm nothing{};
    for (uint32_t index : {0u, kBuckets - 1, kBuckets, kEntries - 1}) {
        EXPECT_TRUE(holds(index, nothing));
        hghca_mgm entry = entry_of(ipv6_group(index), {9, 8, 255}, index == 8 ? 9 : 8);
        std::swap(entry.qp[2], entry.qp[55]);   // places need not follow each other
        ASSERT_EQ(write(entry, index), 0);
        EXPECT_TRUE(holds(index, entry));
        const hghca_mgm other = entry_of(ipv4_group(index), {7});
        ASSERT_EQ(write(other, index), 0);
        EXPECT_TRUE(holds(index, other));
        // Without QPs a GID says nothing, and a chain goes on.
        ASSERT_EQ(write(entry_of(ipv4_group(1), {}, index == 8 ? 9 : 8), index), 0);
        EXPECT_TRUE(holds(index, entry_of(Gid{}, {}, index == 8 ? 9 : 8)));
        ASSERT_EQ(write(entry_of(Node::gid_of(1, 0), {}), index), 0);
        EXPECT_TRUE(holds(index, nothing));
    }
}

TEST_F(GroupCommands, WhatIsRefusedChangesNothing)
{
    const Gid group = ipv4_group(1);
    const hghca_mgm before = entry_of(group, {8}, 12);
    ASSERT_EQ(write(before, 9), 0);
    struct {
        const char *what;
        hghca_mgm entry;
    } cases[] = {
        {"next in a bucket", entry_of(group, {8}, kBuckets - 1)},
        {"next beyond the table", entry_of(group, {8}, kEntries)},
        {"next far beyond it", entry_of(group, {8}, ~0u)},
        {"next is itself", entry_of(group, {8}, 9)},
        {"QP 0", entry_of(group, {0})},
        {"a QP beyond the table", entry_of(group, {256})},
        {"a QP far beyond it", entry_of(group, {0xffffff})},
        {"a QP twice", entry_of(group, {8, 9, 8})},
        {"no group's GID", entry_of(Node::gid_of(1, 0), {8})},
        {"no GID", entry_of(Gid{}, {8})},
    };
    for (const auto &c : cases) {
        EXPECT_EQ(write(c.entry, 9), HGHCA_CMD_STAT_BAD_PARAM) << c.what;
        EXPECT_TRUE(holds(9, before)) << c.what;
    }
    hghca_mgm entry;
    EXPECT_EQ(write(entry_of(group, {8}), kEntries), HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(driver.query(HGHCA_CMD_READ_MGM, entry, kEntries), HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(write(entry_of(group, {8}), ~0u), HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(driver.post(HGHCA_CMD_WRITE_MGM, before, 9, 1), HGHCA_CMD_STAT_BAD_PARAM);
    // Reserved bits are not looked at.
    entry = entry_of(group, {8});
    entry.rsvd04[1] = be32(5);
    entry.qp[0] |= be32(0x7f000000);
    EXPECT_EQ(write(entry, 9), 0);
    EXPECT_TRUE(holds(9, entry_of(group, {8})));
    ASSERT_EQ(driver.unmap_icm(HGHCA_ICM_CONTEXT, driver.layout.mcg, 1), 0);
    EXPECT_EQ(write(before, 9), HGHCA_CMD_STAT_LAM_NOT_PRE);
    EXPECT_EQ(driver.query(HGHCA_CMD_READ_MGM, entry, 9), HGHCA_CMD_STAT_LAM_NOT_PRE);
}

// ---- packets; with room for so many contexts on chip, 0: no limit

class Groups : public ::testing::TestWithParam<uint32_t> {
protected:
    Groups() : net(GetParam()) {}
    static Options ud(unsigned sgid_index = 0)
    {
        Options options;
        options.service = HGHCA_QP_ST_UD;
        options.sgid_index = sgid_index;
        options.buffer_bytes = 64 << 10;
        return options;
    }
    // For many: queues of few WQEs.
    static Options small(uint64_t buffer_bytes)
    {
        Options options = ud();
        options.sq_wqes = options.rq_wqes = 4;
        options.cq_log = 3;
        options.buffer_bytes = buffer_bytes;
        return options;
    }
    static Wqe to_group(const Gid &group, const Sge &s, uint32_t qkey = kQkey, unsigned sgid_index = 0,
                        uint32_t dqpn = HGHCA_QPN_MULTICAST)
    {
        hghca_ud_gid_unit unit{};
        const Mac mac = mac_of(group);
        unit.port = le32(HGHCA_UD_GRH | field_put(HGHCA_UD_HOP_LIMIT_MASK, 64) |
                         field_put(HGHCA_UD_SGID_INDEX_MASK, sgid_index) | 1);
        unit.dmac_h = le32(uint32_t(mac[0]) << 24 | mac[1] << 16 | mac[2] << 8 | mac[3]);
        unit.dmac_l = le32(uint32_t(mac[4] << 8 | mac[5]) << 16);
        std::copy(group.begin(), group.end(), unit.dgid);
        unit.dqpn = le32(dqpn);
        unit.qkey = le32(qkey);
        return Wqe(HGHCA_OPCODE_SEND_IMM, HGHCA_WQE_CQ_UPDATE, be32(5)).put(unit).data(s);
    }
    // One datagram of `bytes` with pattern `seed`, from the sender's buffer; it is sent.
    void send_one(Endpoint &from, const Gid &group, uint32_t bytes, uint32_t seed, unsigned sgid_index = 0)
    {
        from.fill(0, bytes, seed);
        from.post(to_group(group, from.sge(0, bytes), kQkey, sgid_index));
        net.pump();
        auto sent = from.poll();
        ASSERT_TRUE(sent);
        EXPECT_TRUE(sent->is_send);
        EXPECT_FALSE(sent->error) << int(sent->syndrome);
    }
    // Each Endpoint with a receive at offset 10000 of its buffer.
    static void post_receives(std::initializer_list<Endpoint *> members)
    {
        for (Endpoint *e : members) {
            std::memset(e->at(10000), 0, 5000);
            e->post_recv(e->sge(10000, 5000));
        }
    }
    // It got one datagram, and no other.
    static bool got_one(Endpoint &e, uint32_t bytes, uint32_t seed)
    {
        auto all = e.poll_all();
        return all.size() == 1 && !all[0].error && !all[0].is_send && all[0].bytes == bytes + 40 &&
               e.holds(10040, bytes, seed);
    }
    Network net;
};

TEST_P(Groups, EachMemberHasItsCopy)
{
    for (unsigned sgid_index : {0u, 1u, 2u}) {
        SCOPED_TRACE(sgid_index);
        const Gid group = sgid_index == 1 ? ipv6_group(7) : ipv4_group(7);
        Endpoint a(net.a, ud(sgid_index)), b(net.b, ud()), c(net.b, ud()), stranger(net.b, ud());
        join(net.b, group, {b.qp.qpn, c.qp.qpn});
        net.sent = 0;
        for (uint32_t size : {0u, 1u, 1000u, 4096u}) {
            SCOPED_TRACE(size);
            post_receives({&b, &c, &stranger});
            a.fill(0, size, size);
            a.post(to_group(group, a.sge(0, size), kQkey, sgid_index));
            net.pump();
            EXPECT_EQ(a.poll_all().size(), 1u);
            for (Endpoint *e : {&b, &c}) {
                auto got = e->poll();
                ASSERT_TRUE(got);
                EXPECT_FALSE(got->error);
                EXPECT_EQ(got->bytes, size + 40);
                EXPECT_EQ(got->imm, be32(5));
                EXPECT_EQ(got->src_qpn, a.qp.qpn);
                EXPECT_EQ(got->qpn, e->qp.qpn);
                EXPECT_TRUE(got->grh);
                EXPECT_EQ(got->vlan, sgid_index == 2 ? 5 : -1);
                EXPECT_TRUE(e->holds(10040, size, size));
                const uint8_t *grh = e->at(10000);
                if (sgid_index == 1) {
                    EXPECT_EQ(grh[0] >> 4, 6);
                    EXPECT_EQ(std::memcmp(grh + 8, Node::gid_of(1, 1).data(), 16), 0);
                    EXPECT_EQ(std::memcmp(grh + 24, group.data(), 16), 0);
                } else {
                    EXPECT_EQ(grh[20], 0x45);
                    EXPECT_EQ(std::memcmp(grh + 32, Node::gid_of(1, sgid_index).data() + 12, 4), 0);
                    EXPECT_EQ(std::memcmp(grh + 36, group.data() + 12, 4), 0);
                }
                EXPECT_FALSE(e->poll());
            }
            EXPECT_FALSE(stranger.poll());
        }
        EXPECT_EQ(net.sent, 4u);
    }
    EXPECT_EQ(net.a.counters().multicast_sent, 12u);
    EXPECT_EQ(net.a.counters().multicast_received, 0u);
    EXPECT_EQ(net.b.counters().multicast_received, 12u);
    EXPECT_EQ(net.b.counters().multicast_copies, 24u);
    // Each copy is counted; what the link has carried can be told.
    EXPECT_EQ(net.b.counters().rx_packets, 24u);
    EXPECT_EQ(net.b.counters().rx_bytes - net.b.counters().multicast_extra_bytes, net.a.counters().tx_bytes);
}

TEST_P(Groups, TheSenderGetsNoneAndItsNeighboursDo)
{
    const Gid group = ipv4_group(1);
    Endpoint a(net.a, ud()), neighbour(net.a, ud()), b(net.b, ud());
    join(net.a, group, {a.qp.qpn, neighbour.qp.qpn});
    join(net.b, group, {b.qp.qpn});
    post_receives({&a, &neighbour, &b});
    send_one(a, group, 500, 1);
    EXPECT_FALSE(a.poll());
    EXPECT_TRUE(got_one(neighbour, 500, 1));
    EXPECT_TRUE(got_one(b, 500, 1));
    EXPECT_EQ(net.sent, 1u);
    EXPECT_EQ(net.a.counters().tx_packets, 1u);
    EXPECT_EQ(net.a.counters().multicast_copies, 1u);
    EXPECT_EQ(net.a.counters().rx_packets, 1u);
    // Who is no member may send, too.
    Endpoint guest(net.a, ud());
    post_receives({&neighbour, &b});
    send_one(guest, group, 600, 2);
    EXPECT_TRUE(got_one(a, 600, 2));
    EXPECT_TRUE(got_one(neighbour, 600, 2));
    EXPECT_TRUE(got_one(b, 600, 2));
    EXPECT_EQ(net.sent, 2u);
}

TEST_P(Groups, TheGsiIsOneQpWhateverItsNumber)
{
    const Gid group = ipv4_group(1);
    Endpoint a(net.a, ud()), neighbour(net.a, ud());
    TestDriver::must(net.a.driver.command(HGHCA_CMD_CONF_SPECIAL_QP, 0, a.qp.qpn, HGHCA_SPECIAL_QP_GSI).status,
                     "CONF_SPECIAL_QP");
    join(net.a, group, {a.qp.qpn, neighbour.qp.qpn});
    post_receives({&a, &neighbour});
    send_one(a, group, 10, 1);
    EXPECT_FALSE(a.poll());
    EXPECT_TRUE(got_one(neighbour, 10, 1));
}

TEST_P(Groups, BothFormsOfTheAddress)
{
    const Gid group = ipv4_group(1);
    Endpoint a(net.a, ud()), neighbour(net.a, ud()), b(net.b, ud());
    join(net.a, group, {neighbour.qp.qpn});
    join(net.b, group, {b.qp.qpn});
    post_receives({&neighbour, &b});
    a.fill(0, 10, 3);
    hghca_ud_unit unit{};
    unit.smac_h = le32(0x02000000);
    unit.dmac_h = le32(0x01005e01);
    unit.lids = le32(1u << 16 | 1u);
    unit.sip = le32(0x0a0a0001);
    unit.dip = le32(0xef010001);
    unit.dqpn = le32(HGHCA_QPN_MULTICAST);
    unit.qkey = le32(kQkey);
    a.post(Wqe(HGHCA_OPCODE_SEND).put(unit).data(a.sge(0, 10)));
    net.pump();
    EXPECT_TRUE(got_one(neighbour, 10, 3));
    EXPECT_TRUE(got_one(b, 10, 3));
}

// What one member lacks is no matter of the others.
TEST_P(Groups, MembersThatCannotTakeIt)
{
    const Gid group = ipv4_group(1);
    Options options = ud();
    options.mtu_msgmax = uint8_t(3 << 5 | 31);   // 1024
    Endpoint a(net.a, ud()), first(net.b, ud()), empty(net.b, ud()), stopped(net.b, ud()), small(net.b, options),
        last(net.b, ud());
    Endpoint connected(net.b, Options{});
    TestDriver &d = net.b.driver;
    Endpoint other_key(net.b, ud());
    hghca_qpc c{};
    c.opt_param_mask = be32(HGHCA_QP_ATTR_QKEY);
    c.qkey = be32(kQkey + 1);
    TestDriver::must(d.modify(HGHCA_CMD_RTS2RTS_QPEE, other_key.qp.qpn, c), "RTS2RTS");
    TestDriver::must(d.to_error(stopped.qp.qpn), "2ERR");
    post_receives({&first, &last, &other_key, &small});
    join(net.b, group, {first.qp.qpn, empty.qp.qpn, stopped.qp.qpn, connected.qp.qpn, 200, other_key.qp.qpn,
                        small.qp.qpn, last.qp.qpn});
    send_one(a, group, 2000, 4);
    EXPECT_TRUE(got_one(first, 2000, 4));
    EXPECT_TRUE(got_one(last, 2000, 4));
    for (Endpoint *e : {&empty, &stopped, &connected, &other_key, &small})
        EXPECT_TRUE(e->poll_all().empty());
    const Counters &counters = net.b.counters();
    EXPECT_EQ(counters.rx_no_wqe, 1u);
    EXPECT_EQ(counters.rx_unknown_qp, 3u);   // in ERR, of another service, none at all
    EXPECT_EQ(counters.rx_bad_qkey, 1u);
    EXPECT_EQ(counters.rx_bad_header, 1u);   // longer than its MTU
    EXPECT_EQ(counters.multicast_copies, 4u);
    EXPECT_EQ(counters.rx_packets, 4u);
    // One whose receive is at fault goes to ERR alone.
    first.post_recv(Sge{5000, 0x12345, 0});
    post_receives({&last});
    send_one(a, group, 2000, 5);
    EXPECT_EQ(first.state(), unsigned(HGHCA_QP_STATE_ERR));
    EXPECT_TRUE(got_one(last, 2000, 5));
}

TEST_P(Groups, NobodyTakesIt)
{
    const Gid group = ipv4_group(1);
    Endpoint a(net.a, ud());
    join(net.b, group, {77});
    send_one(a, group, 100, 1);
    EXPECT_EQ(net.b.counters().rx_unknown_qp, 1u);
    EXPECT_EQ(net.b.counters().rx_packets, 0u);
    EXPECT_EQ(net.b.counters().multicast_received, 0u);
}

TEST_P(Groups, FirstPacketInRtr)
{
    const Gid group = ipv4_group(1);
    Endpoint a(net.a, ud());
    auto cq = net.b.driver.create_cq(4);
    auto qp = net.b.driver.create_qp(HGHCA_QP_ST_UD, cq, cq);
    TestDriver::must(net.b.driver.modify(HGHCA_CMD_INIT2RTR_QPEE, qp.qpn, hghca_qpc{}), "INIT2RTR");
    join(net.b, group, {qp.qpn});
    send_one(a, group, 100, 1);
    send_one(a, group, 100, 1);
    EXPECT_EQ(net.b.events(HGHCA_EVENT_COMM_EST), 1u);
    EXPECT_EQ(net.b.counters().rx_no_wqe, 2u);
}

TEST_P(Groups, FiftySixMembersOnBothSides)
{
    const Gid group = ipv6_group(1);
    const Options options = small(16384);
    std::vector<std::unique_ptr<Endpoint>> here, there;
    std::vector<uint32_t> qpns[2];
    for (unsigned i = 0; i < HGHCA_MGM_QPS; i++) {
        here.push_back(std::make_unique<Endpoint>(net.a, options));
        there.push_back(std::make_unique<Endpoint>(net.b, options));
        qpns[0].push_back(here[i]->qp.qpn);
        qpns[1].push_back(there[i]->qp.qpn);
        post_receives({here[i].get(), there[i].get()});
    }
    join(net.a, group, qpns[0]);
    join(net.b, group, qpns[1]);
    const uint64_t before = net.a.device.work_done();
    send_one(*here[3], group, 1000, 9, 1);
    for (unsigned i = 0; i < HGHCA_MGM_QPS; i++) {
        SCOPED_TRACE(i);
        EXPECT_EQ(got_one(*here[i], 1000, 9), i != 3);
        EXPECT_TRUE(got_one(*there[i], 1000, 9));
    }
    EXPECT_EQ(net.sent, 1u);
    // All of it is work that counts, once on the wire and 55 times here.
    EXPECT_GE(net.a.device.work_done() - before, 56u);
}

// Also for members that have no WQE for it: they are looked at all the same.
TEST_P(Groups, EachCopyIsWork)
{
    const Gid group = ipv4_group(7);
    const Options options = small(4096);
    Endpoint from(net.a, options);
    std::vector<std::unique_ptr<Endpoint>> members;
    std::vector<uint32_t> qpns;
    for (unsigned i = 0; i < HGHCA_MGM_QPS; i++) {
        members.push_back(std::make_unique<Endpoint>(net.b, options));
        qpns.push_back(members[i]->qp.qpn);
    }
    join(net.b, group, qpns);
    net.pump();   // the turns of those that have just been made
    const uint64_t before = net.b.device.work_done(), dropped = net.b.counters().rx_no_wqe;
    send_one(from, group, 0, 9);
    EXPECT_EQ(net.b.counters().rx_no_wqe - dropped, HGHCA_MGM_QPS);
    // The frame, and its copies; contexts that do not fit are read as well.
    const uint64_t done = net.b.device.work_done() - before;
    EXPECT_GE(done, 1u + HGHCA_MGM_QPS);
    if (!GetParam()) {
        EXPECT_EQ(done, 1u + HGHCA_MGM_QPS);
    }
}

TEST_P(Groups, ManyCopiesGoOnInOtherTurns)
{
    const Gid group = ipv4_group(1);
    Endpoint a(net.a, ud()), c(net.a, ud());
    Options options = ud();
    options.rq_wqes = 128;
    options.cq_log = 7;
    std::vector<std::unique_ptr<Endpoint>> members;
    std::vector<uint32_t> qpns;
    for (unsigned i = 0; i < 20; i++) {
        members.push_back(std::make_unique<Endpoint>(net.a, options));
        qpns.push_back(members[i]->qp.qpn);
        for (unsigned n = 0; n < 80; n++)
            members[i]->post_recv(members[i]->sge(10000, 5000));
    }
    join(net.a, group, qpns);
    net.a.host.link_full = true;
    a.post(std::vector<Wqe>(40, to_group(group, a.sge(0, 4096))));
    c.post(std::vector<Wqe>(40, to_group(group, c.sge(0, 4096))));
    net.a.host.link_full = false;
    net.a.device.link_ready();
    // 20 copies of 4096 bytes are more than a turn has: they alternate.
    std::vector<uint32_t> order;
    for (const Completion &got : members[0]->poll_all())
        order.push_back(got.src_qpn);
    net.pump();
    for (const Completion &got : members[0]->poll_all())
        order.push_back(got.src_qpn);
    ASSERT_EQ(order.size(), 80u);
    EXPECT_EQ(std::count(order.begin(), order.end(), a.qp.qpn), 40);
    EXPECT_LE(std::find(order.begin(), order.end(), c.qp.qpn) - order.begin(), 1);
    for (auto &e : members)
        EXPECT_EQ(e->rq_head, 80);
    EXPECT_EQ(net.sent, 80u);
}

TEST_P(Groups, ABlockedLinkHoldsAllCopies)
{
    const Gid group = ipv4_group(1);
    Endpoint a(net.a, ud()), neighbour(net.a, ud()), b(net.b, ud());
    join(net.a, group, {neighbour.qp.qpn});
    join(net.b, group, {b.qp.qpn});
    post_receives({&neighbour, &b});
    post_receives({&neighbour, &b});
    a.fill(0, 100, 3);
    net.a.host.link_full = true;
    a.post(to_group(group, a.sge(0, 100)));
    net.pump();
    EXPECT_FALSE(neighbour.poll());
    EXPECT_EQ(net.a.counters().multicast_sent, 0u);
    net.a.host.link_full = false;
    net.a.device.link_ready();
    net.pump();
    EXPECT_TRUE(got_one(neighbour, 100, 3));
    EXPECT_TRUE(got_one(b, 100, 3));
    EXPECT_EQ(net.a.counters().multicast_sent, 1u);
}

TEST_P(Groups, NeighboursNeedNoLink)
{
    const Gid group = ipv4_group(1);
    Endpoint a(net.a, ud()), neighbour(net.a, ud());
    join(net.a, group, {neighbour.qp.qpn});
    post_receives({&neighbour});
    net.a.device.set_link(false);
    send_one(a, group, 100, 3);
    EXPECT_TRUE(got_one(neighbour, 100, 3));
    EXPECT_EQ(net.sent, 0u);
}

// ---- what is for a group, and what is not

class Strays : public Groups {
protected:
    Strays() : raw(net.b, raw_options()), a(net.a, ud()), b(net.b, ud())
    {
        TestDriver &d = net.b.driver;
        TestDriver::must(d.command(HGHCA_CMD_CONF_SPECIAL_QP, 0, raw.qp.qpn, HGHCA_SPECIAL_QP_RAW_ETH).status,
                         "CONF_SPECIAL_QP");
        TestDriver::must(d.set_port(Node::mac_of(2).data(), 4200, HGHCA_PORT_ALLMULTI), "SET_PORT");
        join(net.b, group, {b.qp.qpn});
        for (int i = 0; i < 4; i++)
            b.post_recv(b.sge(10000, 5000));
        for (int i = 0; i < 8; i++)
            raw.post_recv(raw.sge(0, 5000));
    }
    static Options raw_options()
    {
        Options options;
        options.service = HGHCA_QP_ST_RAW;
        return options;
    }
    // One datagram to the group, changed on the way.
    void send_changed(const std::function<void(Frame &)> &change)
    {
        net.filter = [&](const Node &, Frame &f) {
            change(f);
            return Fate{};
        };
        send_one(a, group, 100, 1);
        net.filter = nullptr;
    }
    const Gid group = ipv4_group(0x102);
    Endpoint raw, a, b;
};

TEST_P(Strays, WhatIsForAGroupIsNotForTheNetDevice)
{
    send_one(a, group, 100, 1);
    EXPECT_TRUE(got_one(b, 100, 1));
    EXPECT_FALSE(raw.poll());
}

TEST_P(Strays, WhatIsForNoGroupGoesToTheNetDevice)
{
    struct {
        const char *what;
        std::function<void(Frame &)> change;
    } cases[] = {
        {"another group, the same MAC", [](Frame &f) { f[30] = 238; }},   // 32 groups share one
        {"another MAC", [](Frame &f) { f[5] ^= 1; }},
        {"broadcast", [](Frame &f) { std::fill(f.begin(), f.begin() + 6, 0xff); }},
        {"IPv6's MAC", [](Frame &f) { f[0] = f[1] = 0x33; }},
        {"another port", [](Frame &f) { f[37] ^= 1; }},
        {"TCP", [](Frame &f) { f[23] = 6; }},
        {"a fragment", [](Frame &f) { f[20] = 0x20; }},
        {"the port's own address, a group's MAC", [](Frame &f) { std::copy_n(&Node::gid_of(2, 0)[12], 4, &f[30]); }},
        {"a VLAN the port has no address in",
         [](Frame &f) {
             const uint8_t tag[4] = {0x81, 0x00, 0x00, 0x06};
             f.insert(f.begin() + 12, tag, tag + 4);
         }},
    };
    for (const auto &c : cases) {
        SCOPED_TRACE(c.what);
        send_changed(c.change);
        EXPECT_TRUE(b.poll_all().empty());
        EXPECT_EQ(raw.poll_all().size(), 1u);
        raw.post_recv(raw.sge(0, 5000));
    }
    EXPECT_EQ(net.b.counters().rx_packets, 0u);
    // The sender's own net device hears nothing of it, as of no frame that it sends.
    Endpoint own_raw(net.a, raw_options());
    TestDriver &d = net.a.driver;
    TestDriver::must(d.command(HGHCA_CMD_CONF_SPECIAL_QP, 0, own_raw.qp.qpn, HGHCA_SPECIAL_QP_RAW_ETH).status,
                     "CONF_SPECIAL_QP");
    TestDriver::must(d.set_port(Node::mac_of(1).data(), 4200, HGHCA_PORT_PROMISC), "SET_PORT");
    own_raw.post_recv(own_raw.sge(0, 5000));
    send_one(a, group, 100, 1);
    EXPECT_FALSE(own_raw.poll());
}

TEST_P(Strays, APriorityTagIsNoVlan)
{
    send_changed([](Frame &f) {
        const uint8_t tag[4] = {0x81, 0x00, 0x60, 0x00};
        f.insert(f.begin() + 12, tag, tag + 4);
    });
    auto got = b.poll();
    ASSERT_TRUE(got);
    EXPECT_EQ(got->vlan, -1);
}

TEST_P(Strays, WhatIsForAGroupAndWrongIsCountedOnce)
{
    Endpoint second(net.b, ud());
    join(net.b, group, {b.qp.qpn, second.qp.qpn});
    const Counters &counters = net.b.counters();
    send_changed([](Frame &f) { f[60] ^= 1; });
    EXPECT_EQ(counters.rx_bad_icrc, 1u);
    send_changed([](Frame &f) { f[24] ^= 1; });
    EXPECT_EQ(counters.rx_bad_header, 1u);   // the IPv4 checksum
    send_changed([](Frame &f) { f.resize(80); });
    EXPECT_EQ(counters.rx_too_short, 1u);
    a.post(to_group(group, a.sge(0, 10), kQkey, 0, b.qp.qpn));
    net.pump();
    EXPECT_EQ(counters.rx_unknown_qp, 1u);   // a group, but one QP
    net.a.device.port.pkey = 0x8001;
    a.post(to_group(group, a.sge(0, 10)));
    net.pump();
    EXPECT_EQ(counters.rx_bad_pkey, 1u);
    net.a.device.port.pkey = 0xffff;
    EXPECT_TRUE(b.poll_all().empty());
    EXPECT_FALSE(raw.poll());
    EXPECT_EQ(counters.multicast_received, 0u);
    EXPECT_EQ(counters.rx_packets, 0u);
}

TEST_P(Strays, OtherServicesHaveNoGroups)
{
    for (uint8_t service : {HGHCA_QP_ST_RC, HGHCA_QP_ST_UC}) {
        SCOPED_TRACE(int(service));
        Options options;
        options.service = service;
        options.ack_timeout = 0;
        Endpoint c(net.a, options);
        TestDriver::Peer peer = Endpoint::peer_of(c, b, group);
        peer.qpn = HGHCA_QPN_MULTICAST;
        std::memcpy(peer.dmac, mac_of(group).data(), 6);
        hghca_qpc context = net.a.driver.rtr_qpc(peer, 0);
        if (service == HGHCA_QP_ST_UC)
            context.opt_param_mask &= ~be32(HGHCA_QP_ATTR_MAX_DEST_RD_ATOMIC | HGHCA_QP_ATTR_MIN_RNR_TIMER);
        TestDriver::must(net.a.driver.modify(HGHCA_CMD_INIT2RTR_QPEE, c.qp.qpn, context), "INIT2RTR");
        c.to_rts();
        join(net.a, group, {c.qp.qpn});
        const uint64_t unknown = net.b.counters().rx_unknown_qp;
        c.post(send(c.sge(0, 10)));
        net.pump();
        EXPECT_EQ(net.b.counters().rx_unknown_qp, unknown + 1);
        EXPECT_EQ(net.a.counters().multicast_sent, 0u);
    }
    // An opcode that datagrams have not.
    net.filter = [](const Node &, Frame &f) {
        f[42] = HGHCA_BTH_UD | HGHCA_BTH_OP_WRITE_ONLY;
        return Fate{};
    };
    a.post(to_group(group, a.sge(0, 0)));
    net.pump();
    EXPECT_EQ(net.b.counters().rx_bad_icrc + net.b.counters().rx_bad_header, 1u);
    EXPECT_TRUE(b.poll_all().empty());
}

TEST_P(Strays, WithoutTheCapabilityNobodyIsInAGroup)
{
    Network plain(GetParam(), kFullCaps & ~HGHCA_CAP_MULTICAST);
    Endpoint from(plain.a, ud()), to(plain.b, ud());
    to.post_recv(to.sge(10000, 5000));
    from.post(to_group(group, from.sge(0, 10)));
    plain.pump();
    EXPECT_EQ(plain.sent, 1u);
    EXPECT_FALSE(to.poll());
    EXPECT_EQ(plain.a.counters().multicast_sent, 0u);
}

TEST_P(Strays, ABaseDriverHasGroupsInEveryVlan)
{
    Network base(GetParam(), kFullCaps & ~HGHCA_CAP_GID_TABLE);
    Endpoint from(base.a, ud()), to(base.b, ud());
    join(base.b, group, {to.qp.qpn});
    to.post_recv(to.sge(10000, 5000));
    hghca_ud_unit unit{};
    unit.smac_h = le32(0x02000000);
    unit.dmac_h = le32(0x01005e01);
    unit.lids = le32(0x102u << 16 | 1u);
    unit.sip = le32(0x0a0a0001);
    unit.dip = le32(0xef010102);
    unit.dqpn = le32(HGHCA_QPN_MULTICAST);
    unit.qkey = le32(kQkey);
    from.post(Wqe(HGHCA_OPCODE_SEND).put(unit).data(from.sge(0, 10)));
    base.pump();
    EXPECT_EQ(to.poll_all().size(), 1u);
}

// ---- the table

class Chains : public Groups {
protected:
    Chains() : a(net.a, ud()), b(net.b, ud()), c(net.b, ud()), d(net.b.driver) {}
    void write(uint32_t index, const hghca_mgm &entry)
    {
        TestDriver::must(d.post(HGHCA_CMD_WRITE_MGM, entry, index), "WRITE_MGM");
    }
    // `count` groups in the bucket of the first.
    std::vector<Gid> of_one_bucket(unsigned count)
    {
        std::vector<Gid> groups;
        for (unsigned n = 1; groups.size() < count; n++)
            if (groups.empty() || bucket_of(d, ipv4_group(n)) == bucket_of(d, groups[0]))
                groups.push_back(ipv4_group(n));
        return groups;
    }
    bool reaches(Endpoint &e, const Gid &group)
    {
        post_receives({&e});
        send_one(a, group, 64, group[15]);
        if (got_one(e, 64, group[15]))
            return true;
        e.rq_head--;   // for the next one
        store_release(e.node.host.as<hghca_qp_dbr>(e.qp.dbr)->rq_head, le32(e.rq_head));
        return false;
    }
    Endpoint a, b, c;
    TestDriver &d;
};

TEST_P(Chains, GroupsOfOneBucket)
{
    const auto groups = of_one_bucket(5);
    const uint32_t bucket = bucket_of(d, groups[0]);
    write(bucket, entry_of(groups[0], {b.qp.qpn}, 15));
    write(15, entry_of(groups[1], {c.qp.qpn}, 8));
    write(8, entry_of(groups[2], {}, 10));   // nobody there, and the chain goes on
    write(10, entry_of(groups[3], {b.qp.qpn, c.qp.qpn}));
    EXPECT_TRUE(reaches(b, groups[0]));
    EXPECT_FALSE(reaches(c, groups[0]));
    EXPECT_TRUE(reaches(c, groups[1]));
    EXPECT_FALSE(reaches(b, groups[1]));
    EXPECT_FALSE(reaches(b, groups[2]));
    EXPECT_TRUE(reaches(b, groups[3]));
    EXPECT_TRUE(got_one(c, 64, groups[3][15]) || net.b.counters().rx_no_wqe);
    EXPECT_FALSE(reaches(b, groups[4]));
    // Taken out of the middle, and out of the bucket.
    write(15, entry_of(groups[1], {c.qp.qpn}, 10));
    EXPECT_TRUE(reaches(b, groups[3]));
    write(bucket, entry_of(groups[1], {c.qp.qpn}, 10));
    EXPECT_FALSE(reaches(b, groups[0]));
    EXPECT_TRUE(reaches(c, groups[1]));
    write(bucket, entry_of(Gid{}, {}));
    EXPECT_FALSE(reaches(c, groups[1]));
    EXPECT_FALSE(reaches(b, groups[3]));
}

TEST_P(Chains, ALoopEnds)
{
    const auto groups = of_one_bucket(3);
    write(bucket_of(d, groups[0]), entry_of(groups[0], {b.qp.qpn}, 9));
    write(9, entry_of(groups[1], {b.qp.qpn}, 10));
    write(10, entry_of(Gid{}, {}, 9));
    EXPECT_TRUE(reaches(b, groups[1]));
    EXPECT_FALSE(reaches(b, groups[2]));
}

TEST_P(Chains, AreLookedAtUpToTheirLimit)
{
    // A table of 128 entries: long enough for a chain of 33.
    d.layout.log_mcgs = 7;
    d.start();
    for (unsigned i = 0; i < 3; i++)
        TestDriver::must(d.set_gid(i, Node::gid_of(2, i).data(), Node::mac_of(2).data(), i == 2 ? 5 : -1), "SET_GID");
    Endpoint e(net.b, ud());
    const auto groups = of_one_bucket(HGHCA_MGM_CHAIN_MAX + 1);
    write(bucket_of(d, groups[0]), entry_of(groups[0], {e.qp.qpn}, 64));
    for (unsigned n = 1; n < groups.size(); n++)
        write(63 + n, entry_of(groups[n], {e.qp.qpn}, n + 1 < groups.size() ? 64 + n : 0));
    EXPECT_TRUE(reaches(e, groups[0]));
    EXPECT_TRUE(reaches(e, groups[HGHCA_MGM_CHAIN_MAX - 1]));
    EXPECT_FALSE(reaches(e, groups[HGHCA_MGM_CHAIN_MAX]));
}

TEST_P(Chains, WithoutIcmThereAreNone)
{
    const Gid group = ipv4_group(1);
    write(bucket_of(d, group), entry_of(group, {b.qp.qpn}));
    EXPECT_TRUE(reaches(b, group));
    ASSERT_EQ(d.unmap_icm(HGHCA_ICM_CONTEXT, d.layout.mcg, 1), 0);
    net.b.host.record_dirty = true;
    EXPECT_FALSE(reaches(b, group));
    for (const Range &r : net.b.host.dirtied)
        EXPECT_FALSE(r.overlaps(d.mcg_dma, 4096));
    net.b.host.record_dirty = false;
    // Mapped again with its content, it is as before; with zeros there is nothing.
    ASSERT_EQ(d.map_chunk(HGHCA_ICM_CONTEXT, d.layout.mcg, d.mcg_dma, 1), 0);
    EXPECT_TRUE(reaches(b, group));
    ASSERT_EQ(d.unmap_icm(HGHCA_ICM_CONTEXT, d.layout.mcg, 1), 0);
    d.map_icm(HGHCA_ICM_CONTEXT, d.layout.mcg, 4096, d.mcg_dma);
    EXPECT_FALSE(reaches(b, group));
}

TEST_P(Chains, ClosingDropsThem)
{
    const Gid group = ipv4_group(1);
    write(bucket_of(d, group), entry_of(group, {b.qp.qpn}));
    ASSERT_EQ(d.command(HGHCA_CMD_CLOSE_HCA).status, 0);
    d.start();
    hghca_mgm entry;
    TestDriver::must(d.query(HGHCA_CMD_READ_MGM, entry, bucket_of(d, group)), "READ_MGM");
    const hghca_mgm nothing{};
    EXPECT_EQ(std::memcmp(&entry, &nothing, sizeof(entry)), 0);
}

// A guest can write to its ICM: nothing it finds there is believed.
TEST_P(Chains, WhatAGuestMakesOfItsIcm)
{
    const Gid group = ipv4_group(1);
    const uint32_t bucket = bucket_of(d, group);
    write(bucket, entry_of(group, {b.qp.qpn}));
    for (unsigned at = 0; at < kMcgEntrySize; at++) {
        for (uint8_t value : {0x00, 0x01, 0x7f, 0xff}) {
            ASSERT_EQ(d.unmap_icm(HGHCA_ICM_CONTEXT, d.layout.mcg, 1), 0);
            uint8_t &byte = net.b.host.at(d.mcg_dma + bucket * kMcgEntrySize)[at];
            const uint8_t before = byte;
            byte = value;
            ASSERT_EQ(d.map_chunk(HGHCA_ICM_CONTEXT, d.layout.mcg, d.mcg_dma, 1), 0);
            a.post(to_group(group, a.sge(0, 10)));
            net.pump();
            a.poll_all();
            ASSERT_EQ(d.unmap_icm(HGHCA_ICM_CONTEXT, d.layout.mcg, 1), 0);
            byte = before;
            ASSERT_EQ(d.map_chunk(HGHCA_ICM_CONTEXT, d.layout.mcg, d.mcg_dma, 1), 0);
        }
    }
    EXPECT_TRUE(reaches(b, group));
}

// Tables that nobody would make: whatever stands there, each datagram comes to an end.
TEST_P(Chains, RandomTables)
{
    uint32_t state = 7;
    auto random = [&state](uint32_t n) {
        state = state * 1664525 + 1013904223;
        return (state >> 8) % n;
    };
    constexpr unsigned kRounds = 5000;
    unsigned taken = 0, refused = 0;
    const uint64_t sent = net.a.counters().multicast_sent;
    for (unsigned round = 0; round < kRounds; round++) {
        // One call a statement: the order of two in one is the compiler's.
        const bool ipv4 = random(4);
        const uint32_t number = random(20);
        hghca_mgm entry = entry_of(ipv4 ? ipv4_group(number) : ipv6_group(number), {});
        const bool linked = random(8);
        entry.next = be32(linked ? random(kEntries + 2) : 0);
        for (unsigned i = random(6); i; i--) {
            const uint32_t valid = random(8) ? kValid : 0;
            const uint32_t qpn = 8 + random(3);
            entry.qp[random(HGHCA_MGM_QPS)] = be32(valid | qpn);
        }
        const uint8_t status = d.post(HGHCA_CMD_WRITE_MGM, entry, random(kEntries));
        ASSERT_TRUE(status == 0 || status == HGHCA_CMD_STAT_BAD_PARAM) << int(status);
        (status ? refused : taken)++;
        const Gid group = ipv4_group(random(20));
        a.post(to_group(group, a.sge(0, 10)));
        net.pump();
        ASSERT_EQ(a.poll_all().size(), 1u);
    }
    EXPECT_GT(taken, 200u);
    EXPECT_GT(refused, 200u);
    EXPECT_EQ(net.a.counters().multicast_sent - sent, kRounds);
    EXPECT_GT(net.b.counters().multicast_copies, 100u);
}

constexpr auto kCaches = {0u, 1u};
INSTANTIATE_TEST_SUITE_P(Multicast, Groups, ::testing::ValuesIn(kCaches));
INSTANTIATE_TEST_SUITE_P(Multicast, Strays, ::testing::ValuesIn(kCaches));
INSTANTIATE_TEST_SUITE_P(Multicast, Chains, ::testing::ValuesIn(kCaches));

}  // namespace
}  // namespace hghca::test::multicast_test
