// SPDX-License-Identifier: GPL-2.0-or-later
// RSNIC's partitions: their commands, and what PART does to them (docs/reference/rsnic.rst, 9.2 and 9.6).
#include <algorithm>
#include <string>
#include <utility>

#include "transport/transport.h"
#include "vendor_ops.h"

namespace hghca::test::partition_test {
namespace {

// ---- commands

TEST_F(VendorOps, APartitionIsMadeQueriedAndEnded)
{
    Partition made{.key = 0x12345678, .pd = 7, .log_record = 8, .log_regions = 7, .key_offset = 200, .key_size = 4,
                   .key_shift = 25};
    for (uint32_t i = 0; i < 128; i++)
        made.regions.push_back({0x1122334455660000u + i, 0xa0000000 + i, 0xb0000000 + i});
    EXPECT_EQ(made.index(), 0x38u);
    ASSERT_EQ(make(net.b, made), 0);
    Mailbox read;
    ASSERT_EQ(net.b.driver.query(kQueryPart, read, 0x38), 0);
    EXPECT_EQ(read, made.mailbox());
    EXPECT_EQ(net.b.driver.command(kHw2swPart, 0, 0x38).status, 0);
    EXPECT_EQ(net.b.driver.query(kQueryPart, read, 0x38), 0x09);
    EXPECT_EQ(make(net.b, made), 0);
}

// 9.6, row by row.
TEST_F(VendorOps, WhatACommandMayNotSay)
{
    Mailbox read;
    TestDriver &driver = net.b.driver;
    for (uint32_t index : {64u, 128u, ~0u}) {
        EXPECT_EQ(driver.post(kSw2hwPart, Partition{.key = 0x40, .regions = {{}}}.mailbox(), index), 0x0a);
        EXPECT_EQ(driver.command(kHw2swPart, 0, index).status, 0x0a);
        EXPECT_EQ(driver.query(kQueryPart, read, index), 0x0a);
    }
    EXPECT_EQ(driver.command(kHw2swPart, 0, 5).status, 0x09);
    EXPECT_EQ(driver.query(kQueryPart, read, 5), 0x09);
    const Partition good{.regions = {{}}};
    ASSERT_EQ(make(net.b, good), 0);
    EXPECT_EQ(make(net.b, good), 0x09);
    ASSERT_EQ(driver.command(kHw2swPart, 0, 5).status, 0);

    struct {
        const char *what;
        std::function<void(Mailbox &)> change;
    } bad[] = {
        {"log_record 2", [](Mailbox &m) { m[0x08] = 2; m[0x0b] = 4; }},
        {"log_record 9", [](Mailbox &m) { m[0x08] = 9; }},
        {"log_record 255", [](Mailbox &m) { m[0x08] = 255; }},
        {"log_regions 8", [](Mailbox &m) { m[0x09] = 8; }},
        {"key_size 0", [](Mailbox &m) { m[0x0b] = 0; }},
        {"key_size 3", [](Mailbox &m) { m[0x0b] = 3; }},
        {"key_size 16", [](Mailbox &m) { m[0x08] = 5; m[0x0b] = 16; }},
        {"key beyond the record", [](Mailbox &m) { m[0x0a] = 1; }},
        {"key beyond the record, by much", [](Mailbox &m) { m[0x0a] = 255; }},
        {"shift beyond the key", [](Mailbox &m) { m[0x0c] = 65; }},
        {"shift and regions beyond the key", [](Mailbox &m) { m[0x09] = 2; m[0x0c] = 63; }},
        {"shift 255", [](Mailbox &m) { m[0x0c] = 255; }},
        {"another index in the key", [](Mailbox &m) { m[0x03] ^= 1; }},
        {"0Dh", [](Mailbox &m) { m[0x0d] = 1; }},
        {"0Fh", [](Mailbox &m) { m[0x0f] = 1; }},
        {"10h", [](Mailbox &m) { m[0x10] = 1; }},
        {"1Fh", [](Mailbox &m) { m[0x1f] = 1; }},
        {"filled", [](Mailbox &m) { m[0x33] = 8; }},
        {"14h of a region", [](Mailbox &m) { m[0x37] = 1; }},
        {"filled of the last region", [](Mailbox &m) { m[0x09] = 1; m[0x20 + 24 + 0x10] = 1; }},
    };
    for (const auto &row : bad) {
        SCOPED_TRACE(row.what);
        Mailbox m = good.mailbox();
        row.change(m);
        EXPECT_EQ(driver.post(kSw2hwPart, m, 5), 0x03);
        EXPECT_EQ(driver.query(kQueryPart, read, 5), 0x09);
    }
    // What stands behind the regions is not looked at. With one region, the shift may be that of all bits.
    Mailbox m = good.mailbox();
    m[0x20 + 24 + 0x10] = 1;
    m[0x0c] = 64;
    EXPECT_EQ(driver.post(kSw2hwPart, m, 5), 0);
}

TEST_F(VendorOps, CloseEndsPartitions)
{
    ASSERT_EQ(make(net.b, {.regions = {{}}}), 0);
    ASSERT_EQ(net.b.driver.command(HGHCA_CMD_CLOSE_HCA).status, 0);
    EXPECT_EQ(net.b.driver.command(kHw2swPart, 0, 5).status, 0x04);   // BAD_SYS_STATE
    net.b.driver.start(kRsnicCaps);
    EXPECT_EQ(net.b.driver.command(kHw2swPart, 0, 5).status, 0x09);
}

// ---- PART

struct KeyCase {
    const char *name;
    uint8_t log_record, log_regions, key_offset, key_size, key_shift;
    uint32_t bytes;
};

class PartKeys : public VendorOps, public ::testing::WithParamInterface<KeyCase> {};

// Each record is in its region, in its order, and nothing else is anywhere.
TEST_P(PartKeys, RecordsGoToTheirRegionsInOrder)
{
    const KeyCase &c = GetParam();
    Partition to{.log_record = c.log_record, .log_regions = c.log_regions, .key_offset = c.key_offset,
                 .key_size = c.key_size, .key_shift = c.key_shift};
    const uint32_t regions = 1u << c.log_regions, each = (c.bytes / 4096 + 1) * 4096 / (regions > 16 ? 8 : 1);
    const TestDriver::Mr memory = net.b.driver.create_mr(0x9000000000, uint64_t(regions) * each);
    // Regions are not in the order of their addresses, and one may begin anywhere in a page.
    for (uint32_t i = 0; i < regions; i++)
        to.regions.push_back({memory.va + uint64_t(regions - 1 - i) * each, memory.key, each});
    ASSERT_EQ(make(net.b, to), 0);
    std::vector<Bytes> expected(regions);
    p.a.fill(0, c.bytes, 77);
    for (size_t at = 0; at < c.bytes; at += to.record()) {
        Bytes &place = expected[to.region_of(p.a.at(at))];
        place.insert(place.end(), p.a.at(at), p.a.at(at) + to.record());
    }
    expect_good(part(p.a.sge(0, c.bytes), to.key), c.bytes);
    for (uint32_t i = 0; i < regions; i++) {
        SCOPED_TRACE(i);
        EXPECT_EQ(filled(net.b, 5, i), expected[i].size());
        const uint8_t *at = net.b.host.at(memory.dma + uint64_t(regions - 1 - i) * each);
        EXPECT_EQ(Bytes(at, at + expected[i].size()), expected[i]);
        EXPECT_TRUE(std::all_of(at + expected[i].size(), at + each, [](uint8_t byte) { return !byte; }));
    }
}

INSTANTIATE_TEST_SUITE_P(Shapes, PartKeys,
                         ::testing::Values(KeyCase{"OneRegion", 3, 0, 0, 8, 0, 3000},
                                           KeyCase{"OneRegionShiftOfAllBits", 3, 0, 0, 8, 64, 256},
                                           KeyCase{"TwoByTheHighestBit", 3, 1, 0, 8, 63, 2048},
                                           KeyCase{"AByteInTheMiddle", 4, 3, 7, 1, 2, 4000},
                                           KeyCase{"AByteAtTheEnd", 4, 4, 15, 1, 4, 4096},
                                           KeyCase{"TwoBytes", 5, 4, 9, 2, 6, 9600},
                                           KeyCase{"FourBytes", 6, 5, 1, 4, 27, 12800},
                                           KeyCase{"LargeRecords", 8, 2, 248, 8, 31, 20480},
                                           KeyCase{"AllRegions", 3, 7, 2, 4, 5, 30000}),
                         [](const auto &param) { return std::string(param.param.name); });

TEST_F(VendorOps, PartOfInlineData)
{
    ASSERT_EQ(make(net.b, {.regions = {region(0, 64)}}), 0);
    expect_good(Wqe(kPart).raddr(0, 0xabcd0005).inline_data(Bytes(24, 0x5a)), 24);
    EXPECT_EQ(Bytes(p.b.at(0), p.b.at(24)), Bytes(24, 0x5a));
    EXPECT_EQ(p.b.at(24)[0], 0);
}

// It does nothing, whatever its key.
TEST_F(VendorOps, PartOfNoBytes)
{
    expect_good(Wqe(kPart).raddr(0, 0x77777777), 0);
    EXPECT_EQ(opcodes(), (std::vector<uint8_t>{0xc3, kAcknowledge}));
}

TEST_F(VendorOps, ARegionThatIsFull)
{
    // Two regions by the lowest bit, for one record and for ten.
    Partition to{.log_regions = 1, .key_size = 1, .regions = {region(0, 8), region(4096, 80)}};
    ASSERT_EQ(make(net.b, to), 0);
    const auto put_records = [this](std::vector<uint8_t> keys) {
        for (size_t i = 0; i < keys.size(); i++)
            std::memset(p.a.at(8 * i), keys[i], 8);
        return part(p.a.sge(0, uint32_t(8 * keys.size())), 0xabcd0005);
    };
    expect_good(put_records({2, 1, 3}), 24);
    // Nothing of the packet is placed, nor what would fit.
    EXPECT_EQ(status_of(put_records({5, 7, 4, 9})), kRemoteOperation);
    EXPECT_EQ(filled(net.b, 5, 0), 8u);
    EXPECT_EQ(filled(net.b, 5, 1), 16u);
    EXPECT_EQ(p.b.at(4096 + 16)[0], 0);
    EXPECT_EQ(p.b.state(), unsigned(HGHCA_QP_STATE_ERR));
    connect_again();
    expect_good(put_records({5, 7, 9, 11, 13, 15, 17, 19}), 64);
    EXPECT_EQ(filled(net.b, 5, 1), 80u);
    EXPECT_EQ(status_of(put_records({1})), kRemoteOperation);
}

// Of a message of several packets, those before stay.
TEST_F(VendorOps, ARegionThatIsFullWithTheSecondPacket)
{
    ASSERT_EQ(make(net.b, {.regions = {region(0, 2047)}}), 0);
    p.a.fill(0, 3072, 9);
    EXPECT_EQ(status_of(part(p.a.sge(0, 3072), 0xabcd0005)), kRemoteOperation);
    EXPECT_EQ(filled(net.b, 5, 0), 1024u);
    EXPECT_TRUE(p.b.holds(0, 1024, 9));
    EXPECT_EQ(p.b.at(1024)[0], 0);
}

TEST_F(VendorOps, WhatPartMayNotName)
{
    const TestDriver::Mr read_only = net.b.driver.create_mr(0x9000000000, 4096, HGHCA_ACCESS_REMOTE_READ);
    const TestDriver::Mr foreign = net.b.driver.create_mr(0x9100000000, 4096, TestDriver::kRw, 99);
    const TestDriver::Mr gone = net.b.driver.create_mr(0x9200000000, 4096);
    TestDriver::must(net.b.driver.destroy_mr(gone), "HW2SW_MPT");
    const TestDriver::Mr good = net.b.driver.create_mr(0x9300000000, 4096);
    const TestDriver::Mr unmapped = net.b.driver.create_mr_without_pages(0x9400000000, 4096);
    struct {
        const char *what;
        Partition partition;
        uint32_t key, bytes;
        unsigned status;
    } rows[] = {
        {"no multiple of a record", {.regions = {{good.va, good.key, 4096}}}, 0xabcd0005, 12, kRemoteInvalid},
        {"no multiple of a record, several packets", {.regions = {{good.va, good.key, 4096}}}, 0xabcd0005, 2052,
         kRemoteInvalid},
        {"no partition at the index", {.regions = {{good.va, good.key, 4096}}}, 0xabcd0006, 16, kRemoteAccess},
        {"another key of the index", {.regions = {{good.va, good.key, 4096}}}, 0xabcd0045, 16, kRemoteAccess},
        {"another PD", {.pd = 99, .regions = {{foreign.va, foreign.key, 4096}}}, 0xabcd0005, 16, kRemoteAccess},
        {"a region of another PD", {.regions = {{foreign.va, foreign.key, 4096}}}, 0xabcd0005, 16, kRemoteAccess},
        {"without REMOTE_WRITE", {.regions = {{read_only.va, read_only.key, 4096}}}, 0xabcd0005, 16, kRemoteAccess},
        {"a region that has gone", {.regions = {{gone.va, gone.key, 4096}}}, 0xabcd0005, 16, kRemoteAccess},
        {"no such key", {.regions = {{good.va, 0x12345, 4096}}}, 0xabcd0005, 16, kRemoteAccess},
        {"beyond the end", {.regions = {{good.va + 4088, good.key, 4096}}}, 0xabcd0005, 16, kRemoteAccess},
        {"before the start", {.regions = {{good.va - 8, good.key, 4096}}}, 0xabcd0005, 16, kRemoteAccess},
        {"around the end of addresses", {.regions = {{~uint64_t(7), good.key, 4096}}}, 0xabcd0005, 16, kRemoteAccess},
        {"no memory", {.regions = {{unmapped.va, unmapped.key, 4096}}}, 0xabcd0005, 16, kRemoteAccess},
        // Its key counts before its being full.
        {"a full region with a wrong key", {.regions = {{good.va, 0x12345, 0}}}, 0xabcd0005, 16, kRemoteAccess},
        {"an empty region", {.regions = {{good.va, good.key, 0}}}, 0xabcd0005, 16, kRemoteOperation},
    };
    for (const auto &row : rows) {
        SCOPED_TRACE(row.what);
        connect_again();
        ASSERT_EQ(make(net.b, row.partition), 0);
        p.a.fill(0, row.bytes, 1);
        EXPECT_EQ(status_of(part(p.a.sge(0, row.bytes), row.key)), row.status);
        EXPECT_EQ(filled(net.b, 5, 0), 0u);
        EXPECT_EQ(p.b.state(), unsigned(HGHCA_QP_STATE_ERR));
        ASSERT_EQ(net.b.driver.command(kHw2swPart, 0, 5).status, 0);
    }
    EXPECT_EQ(*net.b.host.at(good.dma), 0);
    EXPECT_EQ(*net.b.host.at(read_only.dma), 0);
    EXPECT_EQ(*net.b.host.at(foreign.dma), 0);
}

// One region is wrong: the records of the other one are not placed either.
TEST_F(VendorOps, OneRegionOfSeveralIsWrong)
{
    const Partition to{.log_regions = 1, .key_size = 1, .regions = {region(0, 4096), {p.b.va(4096), 0x12345, 64}}};
    ASSERT_EQ(make(net.b, to), 0);
    p.a.at(8)[0] = 1;   // the second record is for the second region
    EXPECT_EQ(status_of(part(p.a.sge(0, 16), 0xabcd0005)), kRemoteAccess);
    EXPECT_EQ(filled(net.b, 5, 0), 0u);
}

// Lost once, be it a packet or the acknowledgement: each record is there once.
TEST_F(VendorOps, PartIsNotExecutedTwice)
{
    for (unsigned lost = 0; lost < 4; lost++) {
        SCOPED_TRACE(lost);
        connect_again();
        ASSERT_EQ(make(net.b, {.regions = {region(0, 8192)}}), 0);
        std::memset(p.b.at(0), 0, 8192);
        p.a.fill(0, 3000, lost);
        unsigned n = 0;
        net.filter = [&](const Node &, Frame &) { return Fate{n++ == lost ? 0u : 1u, 0}; };
        expect_good(part(p.a.sge(0, 3000), 0xabcd0005), 3000);
        net.filter = nullptr;
        EXPECT_EQ(filled(net.b, 5, 0), 3000u);
        EXPECT_TRUE(p.b.holds(0, 3000, lost));
        EXPECT_EQ(p.b.at(3000)[0], 0);
        ASSERT_EQ(net.b.driver.command(kHw2swPart, 0, 5).status, 0);
    }
    EXPECT_GT(net.b.counters().duplicate_request, 0u);
}

// Every frame comes twice.
TEST_F(VendorOps, PartThatComesTwice)
{
    ASSERT_EQ(make(net.b, {.regions = {region(0, 8192)}}), 0);
    net.filter = [](const Node &, Frame &) { return Fate{2, 0}; };
    p.a.fill(0, 3000, 5);
    expect_good(part(p.a.sge(0, 3000), 0xabcd0005), 3000);
    EXPECT_EQ(filled(net.b, 5, 0), 3000u);
    EXPECT_TRUE(p.b.holds(0, 3000, 5));
}

// Each packet is appended as a whole, whoever else appends.
TEST_F(VendorOps, TwoQpsAppendToOnePartition)
{
    Pair q(net.a, net.b, options());
    ASSERT_EQ(make(net.b, {.regions = {region(0, 64 << 10)}}), 0);
    std::memset(p.a.at(0), 1, 20480);
    std::memset(q.a.at(0), 2, 20480);
    p.a.post(part(p.a.sge(0, 20480), 0xabcd0005));
    q.a.post(part(q.a.sge(0, 20480), 0xabcd0005));
    net.settle();
    EXPECT_EQ(p.a.poll_all().size(), 1u);
    EXPECT_EQ(q.a.poll_all().size(), 1u);
    EXPECT_EQ(filled(net.b, 5, 0), 40960u);
    unsigned of_p = 0;
    for (unsigned packet = 0; packet < 40; packet++) {
        const uint8_t *at = p.b.at(1024 * packet);
        of_p += at[0] == 1;
        EXPECT_TRUE(at[0] == 1 || at[0] == 2) << packet;
        EXPECT_EQ(std::memcmp(at, at + 1, 1023), 0) << packet;
    }
    EXPECT_EQ(of_p, 20u);
}

// The partition is looked up with each packet.
TEST_F(VendorOps, APartitionThatEndsInTheMiddleOfAMessage)
{
    ASSERT_EQ(make(net.b, {.regions = {region(0, 8192)}}), 0);
    before_the_last_packet([&] { TestDriver::must(net.b.driver.command(kHw2swPart, 0, 5).status, "HW2SW_PART"); });
    p.a.fill(0, 2056, 6);
    EXPECT_EQ(status_of(part(p.a.sge(0, 2056), 0xabcd0005)), kRemoteAccess);
    EXPECT_TRUE(p.b.holds(0, 2048, 6));
    EXPECT_EQ(p.b.at(2048)[0], 0);
}

// The next partition of the same index may have larger records.
TEST_F(VendorOps, APartitionThatIsMadeAgainInTheMiddleOfAMessage)
{
    ASSERT_EQ(make(net.b, {.regions = {region(0, 8192)}}), 0);
    before_the_last_packet([&] {
        TestDriver::must(net.b.driver.command(kHw2swPart, 0, 5).status, "HW2SW_PART");
        TestDriver::must(make(net.b, {.log_record = 8, .regions = {region(16384, 8192)}}), "SW2HW_PART");
    });
    EXPECT_EQ(status_of(part(p.a.sge(0, 2056), 0xabcd0005)), kRemoteInvalid);
    EXPECT_EQ(filled(net.b, 5, 0), 0u);
}

// Behind the first packet of a message only packets of the same kind go on with it.
TEST_F(VendorOps, AMessageGoesOnAsItHasBegun)
{
    ASSERT_EQ(make(net.b, {.regions = {region(0, 8192)}}), 0);
    net.filter = [](const Node &, Frame &f) {
        if (View(f).opcode == 0xc1) {
            f[View(f).bth] = HGHCA_BTH_OP_WRITE_MIDDLE;
            seal(f);
        }
        return Fate{};
    };
    EXPECT_EQ(status_of(part(p.a.sge(0, 4096), 0xabcd0005)), kRemoteInvalid);
    EXPECT_EQ(filled(net.b, 5, 0), 1024u);
    net.filter = [](const Node &, Frame &f) {
        if (View(f).opcode == HGHCA_BTH_OP_WRITE_MIDDLE) {
            f[View(f).bth] = 0xc1;
            seal(f);
        }
        return Fate{};
    };
    connect_again();
    EXPECT_EQ(status_of(write_to(p.a.sge(0, 4096), p.b.va(0), p.b.buffer.key)), kRemoteInvalid);
    EXPECT_EQ(filled(net.b, 5, 0), 1024u);
}

// A packet that is lost goes again as it was.
TEST_F(VendorOps, PartFromTheRetransmissionBuffer)
{
    const uint64_t at = net.a.host.alloc(64 * 4096, 4096);
    net.a.device.transport->store.configure(at, 64, 256);
    ASSERT_EQ(make(net.b, {.regions = {region(0, 8192)}}), 0);
    p.a.fill(0, 800, 1);
    bool lost = false;
    net.filter = [&](const Node &, Frame &) {
        if (std::exchange(lost, true))
            return Fate{};
        p.a.fill(0, 800, 2);
        return Fate{0, 0};
    };
    expect_good(part(p.a.sge(0, 800), 0xabcd0005), 800);
    EXPECT_TRUE(p.b.holds(0, 800, 1));
}

// A QP that appends from the memory that it appends to.
TEST_F(VendorOps, PartToItself)
{
    Pair own(net.b, net.b, options());
    ASSERT_EQ(make(net.b, {.log_regions = 1, .key_size = 1, .regions = {{own.a.va(0), own.a.buffer.key, 4096},
                                                                        {own.a.va(4), own.a.buffer.key, 4096}}}), 0);
    for (unsigned i = 0; i < 64; i++)
        std::memset(own.a.at(8 * i), int(i), 8);
    EXPECT_FALSE(done(net, own.a, part(own.a.sge(0, 512), 0xabcd0005)).error);
    EXPECT_EQ(filled(net.b, 5, 0), 256u);
    EXPECT_EQ(filled(net.b, 5, 1), 256u);
    // The last region is placed last.
    for (unsigned i = 0; i < 32; i++)
        EXPECT_EQ(own.a.at(4 + 8 * i)[0], 2 * i + 1) << i;
}

// ---- bounds of loops

// A packet of the smallest records, each for another region, is within what one entry may do.
TEST_F(VendorOps, APacketForAllRegions)
{
    Options large = options();
    large.mtu_code = 5;
    Pair other(net.a, net.b, large);
    Partition to{.log_regions = 7, .key_size = 1};
    const TestDriver::Mr memory = net.b.driver.create_mr(0x9000000000, 128 * 4096);
    // Each crosses a page.
    for (uint32_t i = 0; i < 128; i++)
        to.regions.push_back({memory.va + 4096ull * i + 4096 - 16, memory.key, 32});
    to.regions[127].va -= 16;
    ASSERT_EQ(make(net.b, to), 0);
    for (unsigned i = 0; i < 512; i++)
        std::memset(other.a.at(8 * i), int(i % 128), 8);
    EXPECT_FALSE(done(net, other.a, part(other.a.sge(0, 4096), to.key)).error);
    for (uint32_t i = 0; i < 128; i++)
        EXPECT_EQ(filled(net.b, 5, i), 32u);
}

}  // namespace
}  // namespace hghca::test::partition_test
