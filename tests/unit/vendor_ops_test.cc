// SPDX-License-Identifier: GPL-2.0-or-later
// The manufacturer-specific operations of RSNIC: who may use them, their packets, and READ_POINTER and READ_CONSISTENT
// (docs/reference/rsnic.rst, 9). PART itself is in partition_test.cc.
#include <algorithm>
#include <string>
#include <utility>

#include "icm_entry.h"
#include "jingzhao/error_buffer.h"
#include "jingzhao/qp_fields.h"
#include "jingzhao/qp_table.h"
#include "paced.h"
#include "vendor_ops.h"
#include "wire/crc64.h"

namespace hghca::test::vendor_ops_test {
namespace {

// ---- who may

TEST_F(VendorOps, OnlyRsnicHasThemAndOnlyIfInitHcaSaysSo)
{
    EXPECT_TRUE(net.a.driver.offered() & kVendorOps);
    net.b.driver.start(kRsnicCaps & ~kVendorOps);
    Mailbox read;
    EXPECT_EQ(make(net.b, {.regions = {{}}}), 0x02);
    EXPECT_EQ(net.b.driver.command(kHw2swPart, 0, 5).status, 0x02);
    EXPECT_EQ(net.b.driver.query(kQueryPart, read, 5), 0x02);
    Network full;
    EXPECT_FALSE(full.a.driver.offered() & kVendorOps);
    EXPECT_EQ(full.a.driver.command(kHw2swPart, 0, 5).status, 0x02);
    full.a.driver.reset();
    EXPECT_EQ(full.a.driver.init_hca(kVendorOps), 0x03);
}

// Bit 30 of word B0h; a reserved one without the capability.
TEST_F(VendorOps, TheBitOfAQp)
{
    TestDriver &driver = net.b.driver;
    for (const bool on : {false, true}) {
        Options o = options();
        o.vendor_ops = on;
        const Endpoint e(net.b, o);
        Mailbox context;
        ASSERT_EQ(driver.query(HGHCA_CMD_QUERY_QP, context, e.qp.qpn), 0);
        EXPECT_EQ(be32_at(&context[0xb0]), on ? 0x40000000u : 0u);
    }
    const TestDriver::Cq cq = driver.create_cq(4);
    const auto try_it = [&](uint8_t service) {
        const TestDriver::Qp qp = driver.new_qp(4, 4);
        hghca_qpc c = driver.init_qpc(qp, service, cq, cq);
        c.trust = be32(0x40000000);
        return driver.modify(HGHCA_CMD_RST2INIT_QPEE, qp.qpn, c);
    };
    EXPECT_EQ(try_it(HGHCA_QP_ST_RC), 0);
    EXPECT_EQ(try_it(HGHCA_QP_ST_UD), 0x03);
    EXPECT_EQ(try_it(HGHCA_QP_ST_RAW), 0x03);
    driver.start(kRsnicCaps & ~kVendorOps);
    const TestDriver::Cq other = driver.create_cq(4);
    const TestDriver::Qp qp = driver.new_qp(4, 4);
    hghca_qpc c = driver.init_qpc(qp, HGHCA_QP_ST_RC, other, other);
    c.trust = be32(0x40000000);
    EXPECT_EQ(driver.modify(HGHCA_CMD_RST2INIT_QPEE, qp.qpn, c), 0);
    Mailbox context;
    ASSERT_EQ(driver.query(HGHCA_CMD_QUERY_QP, context, qp.qpn), 0);
    EXPECT_EQ(be32_at(&context[0xb0]), 0u);
}

std::vector<Wqe> one_of_each(Pair &p)
{
    return {part(p.a.sge(0, 8), 0xabcd0005),
            read_pointer(p.a.sge(0, 8), p.b.va(0), p.b.buffer.key, 0, search_for(1, 2)),
            read_consistent(p.a.sge(0, 16), p.b.va(0), p.b.buffer.key)};
}

TEST_F(VendorOps, AQpWithoutThem)
{
    for (size_t i = 0; i < 3; i++) {
        SCOPED_TRACE(i);
        Options without = options();
        without.vendor_ops = false;
        Pair own(net.a, net.b, without, options());
        EXPECT_EQ(done(net, own.a, one_of_each(own)[i]).syndrome, kLocalOperation);
        Pair peers(net.a, net.b, options(), without);
        EXPECT_EQ(done(net, peers.a, one_of_each(peers)[i]).syndrome, kRemoteInvalid);
        EXPECT_EQ(peers.b.state(), unsigned(HGHCA_QP_STATE_ERR));
    }
}

// REMOTE_WRITE for PART, REMOTE_READ for the others.
TEST_F(VendorOps, RightsOfTheQp)
{
    ASSERT_EQ(make(net.b, {.regions = {region(0, 64)}}), 0);
    make_object(64, 16, 1);
    for (size_t i = 0; i < 3; i++) {
        SCOPED_TRACE(i);
        Options less = options();
        less.access &= ~uint32_t(i ? HGHCA_ACCESS_REMOTE_READ : HGHCA_ACCESS_REMOTE_WRITE);
        Pair refused(net.a, net.b, options(), less);
        EXPECT_EQ(done(net, refused.a, one_of_each(refused)[i]).syndrome, kRemoteInvalid);
        EXPECT_EQ(filled(net.b, 5, 0), 0u);
    }
}

// A device without the capability has never heard of them: no NAK, as of an unknown service.
TEST_F(VendorOps, ADeviceWithoutThem)
{
    Options impatient = options(), without = options();
    impatient.retry = 1;
    without.vendor_ops = false;
    net.b.start(kRsnicCaps & ~kVendorOps);
    for (size_t i = 0; i < 3; i++) {
        SCOPED_TRACE(i);
        Pair pair(net.a, net.b, impatient, without);
        net.log.clear();
        EXPECT_EQ(done(net, pair.a, one_of_each(pair)[i]).syndrome, kRetryExceeded);
        EXPECT_EQ(net.log.size(), 2u);   // the request, twice
        EXPECT_EQ(pair.b.state(), unsigned(HGHCA_QP_STATE_RTS));
        EXPECT_EQ(net.b.device.errors.at(net.b.device.errors.total() - 1).why, Drop::Service);
        // Without its headers it is one too.
        Frame cut = net.log.front();
        const size_t bth = View(cut).bth;
        cut.resize(bth + 12);
        cut.resize(bth + 16);
        const size_t ip_bytes = cut.size() - View(cut).ip, udp_bytes = ip_bytes - 20;
        cut[View(cut).ip + 2] = uint8_t(ip_bytes >> 8);
        cut[View(cut).ip + 3] = uint8_t(ip_bytes);
        cut[bth - 4] = uint8_t(udp_bytes >> 8);
        cut[bth - 3] = uint8_t(udp_bytes);
        cut[bth + 1] &= 0xcf;   // no pad
        seal(cut);
        const uint64_t before = net.b.device.errors.total();
        Network::deliver(net.b, cut);
        EXPECT_EQ(net.b.device.errors.total(), before + 1);
        EXPECT_EQ(net.b.device.errors.at(before).why, Drop::Service);
    }
}

// Other manufacturer-specific opcodes stay unknown.
TEST_F(VendorOps, OtherOpcodesOfTheManufacturer)
{
    net.filter = [&](const Node &from, Frame &f) {
        if (&from == &net.a) {
            f[View(f).bth] = 0xc6;
            seal(f);
        }
        return Fate{};
    };
    p.a.post(read_consistent(p.a.sge(0, 16), p.b.va(0), p.b.buffer.key));
    net.pump();
    EXPECT_EQ(opcodes(), (std::vector<uint8_t>{0xc6}));
    EXPECT_EQ(net.b.device.errors.at(0).why, Drop::Service);
}

// ---- packets, byte for byte

// What stands behind the BTH.
Bytes behind_bth(const Frame &f, size_t bytes)
{
    const auto at = f.begin() + ptrdiff_t(View(f).bth + 12);
    return {at, at + ptrdiff_t(bytes)};
}

TEST_F(VendorOps, PacketsOfPart)
{
    ASSERT_EQ(make(net.b, {.regions = {region(0, 4096)}}), 0);
    p.a.fill(0, 2056, 1);
    expect_good(part(p.a.sge(0, 2056), 0xabcd0005), 2056);
    EXPECT_EQ(opcodes(), (std::vector<uint8_t>{0xc0, 0xc1, 0xc2, kAcknowledge}));
    // Address 0, the key of the partition, the length of the message.
    EXPECT_EQ(behind_bth(net.log[0], 16), (Bytes{0, 0, 0, 0, 0, 0, 0, 0, 0xab, 0xcd, 0x00, 0x05, 0, 0, 0x08, 0x08}));
    EXPECT_EQ(behind_bth(net.log[1], 8), Bytes(p.a.at(1024), p.a.at(1032)));
    EXPECT_EQ(View(net.log[0]).psn, 0x100u);
    EXPECT_EQ(View(net.log[2]).psn, 0x102u);
    EXPECT_EQ(View(net.log[3]).psn, 0x102u);
    net.log.clear();
    expect_good(part(p.a.sge(0, 8), 0xabcd0005), 8);
    EXPECT_EQ(opcodes(), (std::vector<uint8_t>{0xc3, kAcknowledge}));
    EXPECT_EQ(behind_bth(net.log[0], 16), (Bytes{0, 0, 0, 0, 0, 0, 0, 0, 0xab, 0xcd, 0x00, 0x05, 0, 0, 0, 0x08}));
    EXPECT_EQ(filled(net.b, 5, 0), 2064u);
    EXPECT_EQ(net.b.counters().rx_write_requests, 2u);
}

TEST_F(VendorOps, PacketsOfReadPointer)
{
    make_list(1, p.b.va(4096));
    p.b.fill(4096, 13, 3);
    expect_good(read_pointer(p.a.sge(0, 13), p.b.va(0), p.b.buffer.key, 1000, search_for(1, 2)), 13);
    EXPECT_TRUE(p.a.holds(0, 13, 3));
    EXPECT_EQ(opcodes(), (std::vector<uint8_t>{0xc4, kReadResponseOnly}));
    const uint32_t key = p.b.buffer.key;
    EXPECT_EQ(behind_bth(net.log[0], 28),
              (Bytes{0, 0, 0, 0x70, 0, 0, 0, 0, uint8_t(key >> 24), uint8_t(key >> 16), uint8_t(key >> 8), uint8_t(key),
                     0, 0, 0, 13, 0, 0, 0, 0, 0, 0, 0x03, 0xe8, 0, 0x08, 0, 0x01}));
    EXPECT_EQ(net.log[0].size(), View(net.log[0]).bth + 12 + 28 + 4);
    EXPECT_EQ(View(net.log[1]).psn, 0x100u);
    EXPECT_EQ(net.b.counters().rx_read_requests, 1u);
}

TEST_F(VendorOps, PacketsOfReadConsistent)
{
    make_object(0, 100, 4);
    expect_good(read_consistent(p.a.sge(200, 100), p.b.va(0), p.b.buffer.key), 100);
    EXPECT_EQ(std::memcmp(p.a.at(200), p.b.at(0), 100), 0);
    EXPECT_EQ(opcodes(), (std::vector<uint8_t>{0xc5, kReadResponseOnly}));
    const uint32_t key = p.b.buffer.key;
    EXPECT_EQ(behind_bth(net.log[0], 16),
              (Bytes{0, 0, 0, 0x70, 0, 0, 0, 0, uint8_t(key >> 24), uint8_t(key >> 16), uint8_t(key >> 8), uint8_t(key),
                     0, 0, 0, 100}));
    EXPECT_EQ(net.b.counters().rx_read_requests, 1u);
}

// ---- READ_POINTER

struct PredicateCase {
    const char *name;
    uint32_t predicate;
    uint64_t key;
    int found;   // element of a list with the keys 1000 to 1009; -1: none
};

class Predicates : public VendorOps, public ::testing::WithParamInterface<PredicateCase> {};

TEST_P(Predicates, TheFirstElementThatMatches)
{
    const PredicateCase &c = GetParam();
    make_list(10, 0);
    for (unsigned i = 0; i < 10; i++) {
        put64(i, 2, p.b.va(8192 + 16 * i));
        p.b.fill(8192 + 16 * i, 16, i);
    }
    p.a.fill(0, 16, 99);
    const uint32_t search = search_for(1, 2, c.predicate) | next_at(4);
    expect_good(read_pointer(p.a.sge(0, 16), p.b.va(0), p.b.buffer.key, c.key, search), c.found < 0 ? 0 : 16);
    EXPECT_TRUE(p.a.holds(0, 16, c.found < 0 ? 99 : uint32_t(c.found)));
}

INSTANTIATE_TEST_SUITE_P(
    All, Predicates,
    ::testing::Values(PredicateCase{"EqualFirst", kEqual, 1000, 0}, PredicateCase{"EqualLast", kEqual, 1009, 9},
                      PredicateCase{"EqualNone", kEqual, 1010, -1}, PredicateCase{"Less", kLess, 1001, 0},
                      PredicateCase{"LessNone", kLess, 1000, -1}, PredicateCase{"Greater", kGreater, 1004, 5},
                      PredicateCase{"GreaterNone", kGreater, 1009, -1},
                      // Unsigned: no key is above all ones, each is below.
                      PredicateCase{"GreaterThanOnes", kGreater, ~uint64_t(0), -1},
                      PredicateCase{"LessThanOnes", kLess, ~uint64_t(0), 0},
                      PredicateCase{"NotEqual", kNotEqual, 1000, 1}, PredicateCase{"NotEqualFirst", kNotEqual, 5, 0}),
    [](const auto &param) { return std::string(param.param.name); });

// All 64 bits of a key count.
TEST_F(VendorOps, KeysHave64Bits)
{
    make_list(2, p.b.va(8192));
    put64(0, 0, 0x8000000000000001);
    put64(1, 0, 1);
    put64(0, 2, p.b.va(8192));
    put64(1, 2, p.b.va(8200));
    p.b.fill(8192, 8, 1);
    p.b.fill(8200, 8, 2);
    expect_good(read_pointer(p.a.sge(0, 8), p.b.va(0), p.b.buffer.key, 1, kListSearch), 8);
    EXPECT_TRUE(p.a.holds(0, 8, 2));
}

// Keys at several words are looked at in ascending order, and a relative pointer counts from the one that matches.
TEST_F(VendorOps, SeveralKeysOfAnElement)
{
    put64(0, 1, 10);
    put64(0, 3, p.b.va(8192));
    put64(0, 5, 20);
    put64(0, 7, p.b.va(8200));
    put64(0, 12, 30);
    put64(0, 14, p.b.va(8208));
    for (unsigned i = 0; i < 3; i++)
        p.b.fill(8192 + 8 * i, 8, i);
    const uint32_t keys = 1 << 1 | 1 << 5 | 1 << 12;
    for (unsigned i = 0; i < 3; i++) {
        SCOPED_TRACE(i);
        const uint32_t search = search_for(keys, 2) | kRelative;
        expect_good(read_pointer(p.a.sge(0, 8), p.b.va(0), p.b.buffer.key, 10 * (i + 1), search), 8);
        EXPECT_TRUE(p.a.holds(0, 8, i));
        // At a fixed place it is the same, whatever matches.
        expect_good(read_pointer(p.a.sge(0, 8), p.b.va(0), p.b.buffer.key, 10 * (i + 1), search_for(keys, 7)), 8);
        EXPECT_TRUE(p.a.holds(0, 8, 1));
    }
    // The first one that matches, not the best.
    const uint32_t greater = search_for(keys, 2, kGreater) | kRelative;
    expect_good(read_pointer(p.a.sge(0, 8), p.b.va(0), p.b.buffer.key, 15, greater), 8);
    EXPECT_TRUE(p.a.holds(0, 8, 1));
}

// Without has_next, at a next address of 0, and from address 0 on: nothing is found, which is a success.
TEST_F(VendorOps, NothingIsFound)
{
    make_list(3, p.b.va(8192));
    p.a.fill(0, 16, 1);
    expect_good(read_pointer(p.a.sge(0, 16), p.b.va(0), p.b.buffer.key, 1001, search_for(1, 2)), 0);
    expect_good(read_pointer(p.a.sge(0, 16), p.b.va(0), p.b.buffer.key, 5, kListSearch), 0);
    expect_good(read_pointer(p.a.sge(0, 16), 0, p.b.buffer.key, 1001, kListSearch), 0);
    // What `next` would say does not count without has_next.
    expect_good(read_pointer(p.a.sge(0, 16), p.b.va(0), p.b.buffer.key, 1001, search_for(1, 2) | 31u << 24), 0);
    EXPECT_TRUE(p.a.holds(0, 16, 1));
    EXPECT_EQ(p.a.state(), unsigned(HGHCA_QP_STATE_RTS));
    // Requests before and behind it go their way.
    p.a.post({read_from(p.a.sge(100, 2000), p.b.va(0), p.b.buffer.key),
              read_pointer(p.a.sge(0, 16), p.b.va(0), p.b.buffer.key, 5, kListSearch),
              read_from(p.a.sge(3000, 2000), p.b.va(0), p.b.buffer.key)});
    net.settle();
    const auto all = p.a.poll_all();
    ASSERT_EQ(all.size(), 3u);
    EXPECT_EQ(all[0].bytes, 2000u);
    EXPECT_EQ(all[1].bytes, 0u);
    EXPECT_EQ(all[2].bytes, 2000u);
}

TEST_F(VendorOps, AListWithoutAnEnd)
{
    make_circle(7);
    EXPECT_EQ(status_of(read_pointer(p.a.sge(0, 16), p.b.va(0), p.b.buffer.key, 5, kListSearch)), kRemoteOperation);
    EXPECT_EQ(p.b.state(), unsigned(HGHCA_QP_STATE_ERR));
}

TEST_F(VendorOps, ASearchLooksAt256Elements)
{
    make_list(257, p.b.va(100000));
    p.b.fill(100000, 16, 3);
    expect_good(read_pointer(p.a.sge(0, 16), p.b.va(0), p.b.buffer.key, 1255, kListSearch), 16);
    EXPECT_TRUE(p.a.holds(0, 16, 3));
    EXPECT_EQ(status_of(read_pointer(p.a.sge(0, 16), p.b.va(0), p.b.buffer.key, 1256, kListSearch)), kRemoteOperation);
}

TEST_F(VendorOps, AListOf256ElementsHasAnEnd)
{
    make_list(256, p.b.va(100000));
    expect_good(read_pointer(p.a.sge(0, 16), p.b.va(0), p.b.buffer.key, 5, kListSearch), 0);
}

TEST_F(VendorOps, WhatASearchMayNotSay)
{
    make_list(2, p.b.va(8192));
    const uint64_t first = p.b.va(0);
    const uint32_t key = p.b.buffer.key;
    struct {
        const char *what;
        uint32_t search, length;
        unsigned status;
    } rows[] = {
        {"no key", search_for(0, 2), 8, kRemoteInvalid},
        {"a key at word 15", search_for(1 << 15, 2), 8, kRemoteInvalid},
        {"a key at word 15 too", search_for(1 | 1 << 15, 2), 8, kRemoteInvalid},
        {"pointer at word 15", search_for(1, 15), 8, kRemoteInvalid},
        {"pointer at word 31", search_for(1, 31), 8, kRemoteInvalid},
        {"next at word 15", search_for(1, 2) | next_at(15), 8, kRemoteInvalid},
        {"bit 30", kListSearch | 1u << 30, 8, kRemoteInvalid},
        {"bit 31", kListSearch | 1u << 31, 8, kRemoteInvalid},
        {"no bytes", kListSearch, 0, kRemoteInvalid},
        {"a relative pointer that is beyond", search_for(1, 15) | kRelative | next_at(4), 8, kRemoteInvalid},
        {"a list longer than the MTU", kListSearch, 1025, kLocalLength},
    };
    for (const auto &row : rows) {
        SCOPED_TRACE(row.what);
        connect_again();
        make_list(2, p.b.va(8192));
        EXPECT_EQ(status_of(read_pointer(p.a.sge(0, row.length), first, key, 1000, row.search)), row.status);
    }
    // As long as the key does not match, nobody looks for that pointer.
    connect_again();
    make_list(2, p.b.va(8192));
    expect_good(read_pointer(p.a.sge(0, 8), first, key, 1, search_for(1, 15) | kRelative | next_at(4)), 0);
    expect_good(read_pointer(p.a.sge(0, 1024), first, key, 1000, kListSearch), 1024);
}

// The MTU of the responder counts too.
TEST_F(VendorOps, LongerThanTheMtuOfTheResponder)
{
    Options small = options();
    small.mtu_code = 1;   // 256
    for (const bool consistent : {false, true}) {
        SCOPED_TRACE(consistent);
        Pair other(net.a, net.b, options(), small);
        const Wqe wqe = consistent ? read_consistent(other.a.sge(0, 257), other.b.va(0), other.b.buffer.key)
                                   : read_pointer(other.a.sge(0, 257), other.b.va(0), other.b.buffer.key, 0, 1);
        EXPECT_EQ(done(net, other.a, wqe).syndrome, kRemoteInvalid);
    }
}

TEST_F(VendorOps, MemoryThatASearchMayNotRead)
{
    const TestDriver::Mr no_read = net.b.driver.create_mr(0x9000000000, 4096, HGHCA_ACCESS_REMOTE_WRITE);
    const TestDriver::Mr foreign = net.b.driver.create_mr(0x9100000000, 4096, TestDriver::kRw, 99);
    const TestDriver::Mr short_one = net.b.driver.create_mr(0x9200000000, 100);
    const auto put = [&](uint64_t at, uint64_t value) {
        value = le64(value);
        std::memcpy(net.b.host.at(short_one.dma + at), &value, 8);
    };
    put(0, 1000);
    put(16, short_one.va + 64);
    struct {
        const char *what;
        uint64_t va;
        uint32_t rkey;
        std::function<void()> prepare;
    } rows[] = {
        {"no such key", short_one.va, 0x12345, [] {}},
        {"no right", no_read.va, no_read.key, [] {}},
        {"another PD", foreign.va, foreign.key, [] {}},
        {"before the start", short_one.va - 1, short_one.key, [] {}},
        {"the first element is beyond the end", short_one.va + 37, short_one.key, [] {}},
        {"what is found is beyond the end", short_one.va, short_one.key, [&] { put(8, short_one.va + 93); }},
        {"what is found is elsewhere", short_one.va, short_one.key, [&] { put(8, no_read.va); }},
        {"what is found is at address 0", short_one.va, short_one.key, [&] { put(8, 0); }},
        {"the next element is beyond the end", short_one.va, short_one.key, [&] { put(0, 7); }},
    };
    for (const auto &row : rows) {
        SCOPED_TRACE(row.what);
        connect_again();
        row.prepare();
        EXPECT_EQ(status_of(read_pointer(p.a.sge(0, 8), row.va, row.rkey, 1000, kListSearch)), kRemoteAccess);
        EXPECT_EQ(p.b.state(), unsigned(HGHCA_QP_STATE_ERR));
    }
}

// What can be told at once is told before a request behind it is executed.
TEST_F(VendorOps, NothingIsExecutedBehindARequestThatIsRefusedAtOnce)
{
    p.a.fill(0, 100, 1);
    p.a.post({read_pointer(p.a.sge(200, 8), p.b.va(0), 0x12345, 1000, kListSearch),
              write_to(p.a.sge(0, 100), p.b.va(8192), p.b.buffer.key)});
    net.settle();
    EXPECT_EQ(p.b.at(8192)[0], 0);
    EXPECT_EQ(p.a.poll_all().size(), 2u);
}

TEST_F(VendorOps, ALostRequestOrResponseOfASearch)
{
    for (unsigned lost = 0; lost < 2; lost++) {
        SCOPED_TRACE(lost);
        make_list(5, p.b.va(8192));
        p.b.fill(8192, 16, lost);
        unsigned n = 0;
        net.filter = [&](const Node &, Frame &) { return Fate{n++ == lost ? 0u : 1u, 0}; };
        expect_good(read_pointer(p.a.sge(0, 16), p.b.va(0), p.b.buffer.key, 1003, kListSearch), 16);
        EXPECT_TRUE(p.a.holds(0, 16, lost));
        net.filter = nullptr;
    }
}

// A duplicate is searched for again: another element may match by then.
TEST_F(VendorOps, ADuplicateIsSearchedForAgain)
{
    make_list(2, p.b.va(8192));
    put64(1, 2, p.b.va(8200));
    p.b.fill(8192, 8, 1);
    p.b.fill(8200, 8, 2);
    bool lost = false;
    net.filter = [&](const Node &from, Frame &) {
        if (&from == &net.a || std::exchange(lost, true))
            return Fate{};
        put64(0, 0, 5);
        put64(1, 0, 1000);
        return Fate{0, 0};
    };
    expect_good(read_pointer(p.a.sge(0, 8), p.b.va(0), p.b.buffer.key, 1000, kListSearch), 8);
    EXPECT_TRUE(p.a.holds(0, 8, 2));
}

// The peer has its answer and is done with the memory; what comes late does no harm.
TEST_F(VendorOps, ADuplicateThatComesLate)
{
    make_list(2, p.b.va(8192));
    make_object(16384, 16, 1);
    expect_good(read_pointer(p.a.sge(0, 8), p.b.va(0), p.b.buffer.key, 1000, kListSearch), 8);
    expect_good(read_consistent(p.a.sge(0, 16), p.b.va(16384), p.b.buffer.key), 16);
    std::vector<Frame> requests;
    for (const Frame &f : net.log)
        if (View(f).opcode >= kPartFirst)
            requests.push_back(f);
    ASSERT_EQ(requests.size(), 2u);
    make_circle(2);
    put64(0, 0, 5);
    p.b.at(16384)[0] ^= 1;
    for (const Frame &f : requests)
        Network::deliver(net.b, f);
    net.log.clear();
    net.settle();
    EXPECT_EQ(p.b.state(), unsigned(HGHCA_QP_STATE_RTS));
    EXPECT_TRUE(net.log.empty());
    EXPECT_EQ(net.b.counters().duplicate_request, 2u);
}

// A duplicate of a request whose search goes on is answered once.
TEST_F(VendorOps, ADuplicateOfASearchThatGoesOn)
{
    make_list(200, p.b.va(100000));
    Frame request;
    net.filter = [&](const Node &, Frame &f) {
        request = f;
        return Fate{0, 0};
    };
    p.a.post(read_pointer(p.a.sge(0, 8), p.b.va(0), p.b.buffer.key, 1199, kListSearch));
    net.filter = nullptr;
    net.log.clear();
    Network::deliver(net.b, request);
    net.b.device.run();
    Network::deliver(net.b, request);
    net.pump();
    EXPECT_EQ(opcodes(), (std::vector<uint8_t>{kReadResponseOnly}));
    EXPECT_EQ(p.a.poll_all().size(), 1u);
}

class ShortSlices : public VendorOps {
protected:
    ShortSlices() : VendorOps(shortened()) { Node::slice_work = Config{}.slice_work; }
    static uint32_t shortened()
    {
        Node::slice_work = 4;
        return 0;
    }
};

// Another QP of the responder sends while the search goes on, however short a slice is.
TEST_F(ShortSlices, OthersHaveTheirTurnsBetweenElements)
{
    Pair q(net.a, net.b, options());
    make_circle(3);
    bring_request(read_pointer(p.a.sge(0, 8), p.b.va(0), p.b.buffer.key, 5, kListSearch));
    for (unsigned i = 0; i < 3; i++)
        net.b.device.run();
    EXPECT_TRUE(net.log.empty());
    q.b.post(write_to(q.b.sge(0, 8), q.a.va(0), q.a.buffer.key));
    unsigned slices = 0;
    while (net.log.empty() && slices < 1000) {
        net.b.device.run();
        slices++;
    }
    EXPECT_LT(slices, 20u);   // a turn is 16 steps
    EXPECT_EQ(opcodes(), (std::vector<uint8_t>{HGHCA_BTH_OP_WRITE_ONLY}));
    EXPECT_TRUE(net.b.device.has_work());
    net.settle();
    const auto all = p.a.poll_all();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(unsigned(all[0].syndrome), kRemoteOperation);
}

// So do the requests of the QP that searches.
TEST_F(ShortSlices, OwnRequestsHaveTheirTurnsBetweenElements)
{
    make_circle(3);
    bring_request(read_pointer(p.a.sge(0, 8), p.b.va(0), p.b.buffer.key, 5, kListSearch));
    p.b.post(write_to(p.b.sge(8192, 8), p.a.va(8192), p.a.buffer.key));
    unsigned slices = 0;
    while (net.log.empty() && slices < 1000) {
        net.b.device.run();
        slices++;
    }
    EXPECT_LT(slices, 40u);
    EXPECT_EQ(opcodes(), (std::vector<uint8_t>{HGHCA_BTH_OP_WRITE_ONLY}));
    EXPECT_EQ(p.b.state(), unsigned(HGHCA_QP_STATE_RTS));   // the search goes on
    net.settle();
    EXPECT_EQ(p.b.state(), unsigned(HGHCA_QP_STATE_ERR));
}

// Requests behind a search wait for their turn, and are executed.
TEST_F(ShortSlices, RequestsBehindASearch)
{
    make_list(100, p.b.va(100000));
    p.b.fill(100000, 16, 4);
    p.a.fill(0, 100, 8);
    p.a.post({read_pointer(p.a.sge(2000, 16), p.b.va(0), p.b.buffer.key, 1099, kListSearch),
              write_to(p.a.sge(0, 100), p.b.va(65536), p.b.buffer.key),
              read_from(p.a.sge(4000, 100), p.b.va(65536), p.b.buffer.key)});
    net.settle();
    const auto all = p.a.poll_all();
    ASSERT_EQ(all.size(), 3u);
    for (const Completion &c : all)
        EXPECT_FALSE(c.error);
    EXPECT_EQ(all[0].opcode, kReadPointer);
    EXPECT_TRUE(p.a.holds(2000, 16, 4));
    EXPECT_TRUE(p.a.holds(4000, 100, 8));
}

// ---- READ_CONSISTENT

TEST(Crc64, IsThatOfThePage)
{
    const auto *check = reinterpret_cast<const uint8_t *>("123456789");
    EXPECT_EQ(crc64(check, 9), 0x995dc9bbdf1939fa);
    EXPECT_EQ(crc64(check, 0), 0u);
    Bytes bytes(100);
    for (size_t i = 0; i < bytes.size(); i++)
        bytes[i] = Endpoint::pattern(3, i);
    for (size_t n = 0; n <= bytes.size(); n++)
        EXPECT_EQ(crc64(bytes.data(), n), slow_crc64(bytes.data(), n)) << n;
}

TEST_F(VendorOps, AConsistentObject)
{
    for (uint32_t bytes : {9u, 16u, 64u, 1000u, 1024u}) {
        SCOPED_TRACE(bytes);
        make_object(3, bytes, bytes);
        expect_good(read_consistent(p.a.sge(1, bytes), p.b.va(3), p.b.buffer.key), bytes);
        EXPECT_EQ(std::memcmp(p.a.at(1), p.b.at(3), bytes), 0);
    }
}

TEST_F(ShortSlices, AnObjectThatBecomesConsistent)
{
    make_object(0, 512, 1);
    p.b.at(100)[0] ^= 0x80;   // somebody writes to it
    bring_request(read_consistent(p.a.sge(0, 512), p.b.va(0), p.b.buffer.key));
    for (unsigned i = 0; i < 10; i++)
        net.b.device.run();
    EXPECT_TRUE(net.log.empty());
    EXPECT_TRUE(net.b.device.has_work());
    make_object(0, 512, 2);
    net.settle();
    EXPECT_EQ(opcodes(), (std::vector<uint8_t>{kReadResponseOnly}));
    const auto all = p.a.poll_all();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_FALSE(all[0].error);
    EXPECT_TRUE(p.a.holds(0, 504, 2));
}

TEST_F(VendorOps, AnObjectThatStaysInconsistent)
{
    make_object(0, 64, 1);
    p.b.at(63)[0] ^= 1;
    unsigned reads = 0;
    net.b.host.unmappable.push_back({p.b.buffer.dma, 4096});
    net.b.device.dma_changed();
    net.b.host.after_read = [&](uint64_t dma, uint64_t) { reads += dma == p.b.buffer.dma; };
    EXPECT_EQ(status_of(read_consistent(p.a.sge(0, 64), p.b.va(0), p.b.buffer.key)), kRemoteOperation);
    EXPECT_EQ(reads, 256u);
    EXPECT_EQ(p.b.state(), unsigned(HGHCA_QP_STATE_ERR));
}

// An ACK behind the NAK would be for what the NAK refuses.
TEST_F(VendorOps, NothingIsAcknowledgedBehindANak)
{
    make_object(0, 64, 1);
    p.b.at(63)[0] ^= 1;
    std::vector<Frame> requests;
    net.filter = [&](const Node &, Frame &f) {
        requests.push_back(f);
        return Fate{0, 0};
    };
    p.a.post(std::vector<Wqe>{write_to(p.a.sge(0, 8), p.b.va(4096), p.b.buffer.key),
                              read_consistent(p.a.sge(0, 64), p.b.va(0), p.b.buffer.key)});
    net.filter = nullptr;
    net.log.clear();
    // Both are there before the responder has its turn.
    for (const Frame &request : requests)
        Network::deliver(net.b, request);
    net.settle();
    ASSERT_FALSE(net.log.empty());
    const View last(net.log.back());
    EXPECT_EQ(last.opcode, kAcknowledge);
    EXPECT_EQ(last.syndrome, 0x63);
    const auto all = p.a.poll_all();
    ASSERT_EQ(all.size(), 2u);
    EXPECT_FALSE(all[0].error);
    EXPECT_EQ(unsigned(all[1].syndrome), kRemoteOperation);
}

TEST_F(VendorOps, WhatAnObjectMayNotBe)
{
    const TestDriver::Mr no_read = net.b.driver.create_mr(0x9000000000, 4096, HGHCA_ACCESS_REMOTE_WRITE);
    const TestDriver::Mr foreign = net.b.driver.create_mr(0x9100000000, 4096, TestDriver::kRw, 99);
    const TestDriver::Mr good = net.b.driver.create_mr(0x9200000000, 4096);
    struct {
        const char *what;
        uint64_t va;
        uint32_t rkey, length;
        unsigned status;
    } rows[] = {
        {"no bytes", good.va, good.key, 0, kRemoteInvalid},
        {"the CRC alone", good.va, good.key, 8, kRemoteInvalid},
        {"longer than the MTU", good.va, good.key, 1025, kLocalLength},
        {"no such key", good.va, 0x12345, 16, kRemoteAccess},
        {"no right", no_read.va, no_read.key, 16, kRemoteAccess},
        {"another PD", foreign.va, foreign.key, 16, kRemoteAccess},
        {"beyond the end", good.va + 4081, good.key, 16, kRemoteAccess},
    };
    for (const auto &row : rows) {
        SCOPED_TRACE(row.what);
        connect_again();
        EXPECT_EQ(status_of(read_consistent(p.a.sge(0, row.length), row.va, row.rkey)), row.status);
    }
}

// What is sent is what was found good: memory is read once.
TEST_F(VendorOps, WhatIsSentIsWhatWasChecked)
{
    make_object(0, 64, 1);
    net.b.host.unmappable.push_back({p.b.buffer.dma, 4096});
    net.b.device.dma_changed();
    net.b.host.after_read = [&](uint64_t dma, uint64_t) {
        if (dma == p.b.buffer.dma)
            p.b.fill(0, 64, 2);
    };
    expect_good(read_consistent(p.a.sge(0, 64), p.b.va(0), p.b.buffer.key), 64);
    EXPECT_TRUE(p.a.holds(0, 56, 1));
}

// A region that goes while the responder tries.
TEST_F(ShortSlices, ARegionThatGoesBetweenTries)
{
    const TestDriver::Mr region = net.b.driver.create_mr(0x9000000000, 4096);
    *net.b.host.at(region.dma) = 1;
    bring_request(read_consistent(p.a.sge(0, 64), region.va, region.key));
    net.b.device.run();
    EXPECT_TRUE(net.log.empty());
    TestDriver::must(net.b.driver.destroy_mr(region), "HW2SW_MPT");
    net.settle();
    const auto all = p.a.poll_all();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(unsigned(all[0].syndrome), kRemoteAccess);
}

TEST_F(VendorOps, ALostResponseOfAnObject)
{
    make_object(0, 64, 1);
    bool lost = false;
    net.filter = [&](const Node &from, Frame &) {
        if (&from == &net.a || std::exchange(lost, true))
            return Fate{};
        make_object(0, 64, 2);
        return Fate{0, 0};
    };
    expect_good(read_consistent(p.a.sge(0, 64), p.b.va(0), p.b.buffer.key), 64);
    EXPECT_TRUE(p.a.holds(0, 56, 2));
}

// Both count against the limit of outstanding READs.
TEST_F(VendorOps, NoMoreOutstandingThanWasAgreed)
{
    Options one = options();
    one.rd_atomic = one.dest_rd_atomic = 1;
    Pair other(net.a, net.b, one);
    for (unsigned i = 0; i < 4; i++)
        other.a.post(read_pointer(other.a.sge(0, 8), other.b.va(0), other.b.buffer.key, 1, search_for(1, 2)));
    net.settle();
    const auto all = other.a.poll_all();
    ASSERT_EQ(all.size(), 4u);
    for (const Completion &c : all)
        EXPECT_FALSE(c.error);
    // One request, one response.
    ASSERT_EQ(net.log.size(), 8u);
    for (size_t i = 0; i < 8; i++)
        EXPECT_EQ(View(net.log[i]).opcode, i % 2 ? kReadResponseOnly : kPointerRequest);
}

// ---- the static rate of the responder

// Responses with what was found, and those with nothing; a search takes several turns.
TEST_F(VendorOps, ResponsesOfSearchesKeepTheStaticRate)
{
    Options slow = options();
    slow.static_rate = 2;   // 2.5 Gbit/s
    Pair q(net.a, net.b, options(), slow);
    // As make_list(), in the buffer of q.
    for (unsigned i = 0; i < 3; i++) {
        const uint64_t words[] = {le64(1000 + i), le64(q.b.va(8192)), le64(i < 2 ? q.b.va(64 * (i + 1)) : 0)};
        std::memcpy(q.b.at(64 * i), words, sizeof(words));
    }
    q.b.fill(8192, 1000, 7);
    std::vector<Sent> responses;
    net.filter = [&](const Node &from, Frame &f) {
        if (&from == &net.b)
            responses.push_back(Sent::now(net, f));
        return Fate{};
    };
    std::vector<Wqe> searches;
    for (unsigned i = 0; i < 60; i++)
        searches.push_back(
            read_pointer(q.a.sge(1000 * i, 1000), q.b.va(0), q.b.buffer.key, i % 4 ? 1002 : 5, kListSearch));
    q.a.post(searches);
    net.pump();
    EXPECT_EQ(responses.size(), 1u);
    net.settle();
    const auto all = q.a.poll_all();
    ASSERT_EQ(all.size(), 60u);
    for (size_t i = 0; i < all.size(); i++) {
        EXPECT_FALSE(all[i].error);
        EXPECT_EQ(all[i].bytes, i % 4 ? 1000u : 0u) << i;
    }
    EXPECT_TRUE(q.a.holds(59000, 1000, 7));
    ASSERT_EQ(responses.size(), 60u);
    for (const Sent &response : responses)
        EXPECT_EQ(response.opcode, kReadResponseOnly);
    expect_paced(responses, 2500);
    EXPECT_EQ(net.a.counters().retransmitted, 0u);
}

TEST_F(VendorOps, ResponsesOfObjectsKeepTheStaticRate)
{
    Options slow = options();
    slow.static_rate = 2;
    Pair q(net.a, net.b, options(), slow);
    make_object(0, 1000, 3);
    std::memcpy(q.b.at(0), p.b.at(0), 1000);
    std::vector<Sent> responses;
    net.filter = [&](const Node &from, Frame &f) {
        if (&from == &net.b)
            responses.push_back(Sent::now(net, f));
        return Fate{};
    };
    q.a.post(std::vector<Wqe>(60, read_consistent(q.a.sge(0, 1000), q.b.va(0), q.b.buffer.key)));
    net.pump();
    EXPECT_EQ(responses.size(), 1u);
    net.settle();
    EXPECT_EQ(q.a.poll_all().size(), 60u);
    EXPECT_TRUE(q.a.holds(0, 992, 3));
    ASSERT_EQ(responses.size(), 60u);
    expect_paced(responses, 2500);
}

// ---- contexts in ICM

class OneContext : public VendorOps {
protected:
    OneContext() : VendorOps(shortened()) { Node::slice_work = Config{}.slice_work; }
    static uint32_t shortened()
    {
        Node::slice_work = 4;
        return 1;   // context on chip
    }
    uint8_t *entry() { return net.b.host.at(net.b.driver.qpc_dma + p.b.qp.qpn * 2048ull); }
};

// The state of a search goes to ICM and comes back between any two slices.
TEST_F(OneContext, ASearchGoesOnFromIcm)
{
    Pair q(net.a, net.b, options());
    make_list(100, p.b.va(100000));
    p.b.fill(100000, 16, 4);
    for (unsigned i = 0; i < 60; i++) {
        // Alike, but for their pointers.
        const uint64_t next = le64(i < 59 ? q.b.va(64 * (i + 1)) : 0), pointer = le64(q.b.va(65536)), key = le64(i);
        std::memcpy(q.b.at(64 * i), &key, 8);
        std::memcpy(q.b.at(64 * i + 8), &pointer, 8);
        std::memcpy(q.b.at(64 * i + 16), &next, 8);
    }
    q.b.fill(65536, 16, 5);
    const uint64_t before = net.b.counters().context_misses;
    p.a.post(read_pointer(p.a.sge(0, 16), p.b.va(0), p.b.buffer.key, 1099, kListSearch));
    q.a.post(read_pointer(q.a.sge(0, 16), q.b.va(0), q.b.buffer.key, 59, kListSearch));
    net.settle();
    EXPECT_GT(net.b.counters().context_misses, before + 6);   // 7 and 4 turns of 16 elements
    for (Endpoint *e : {&p.a, &q.a}) {
        const auto all = e->poll_all();
        ASSERT_EQ(all.size(), 1u);
        EXPECT_FALSE(all[0].error);
        EXPECT_EQ(all[0].bytes, 16u);
    }
    EXPECT_TRUE(p.a.holds(0, 16, 4));
    EXPECT_TRUE(q.a.holds(0, 16, 5));
}

TEST_F(OneContext, ATamperedSearchIsRefused)
{
    make_list(200, p.b.va(100000));
    bring_request(read_pointer(p.a.sge(0, 16), p.b.va(0), p.b.buffer.key, 5, kListSearch));
    net.b.device.run();
    EXPECT_TRUE(net.log.empty());
    net.b.device.qps->trim(0);
    const Bytes good(entry(), entry() + 2048);
    const std::string reply = "resp.replies[0].";
    ASSERT_EQ(get_field<Qp>(entry(), reply + "kind"), 5u);
    EXPECT_GT(get_field<Qp>(entry(), reply + "steps"), 0u);
    EXPECT_EQ(get_field<Qp>(entry(), reply + "search"), kListSearch);
    EXPECT_EQ(get_field<Qp>(entry(), "a.vendor_ops"), 1u);
    struct {
        std::string field;
        uint64_t value;
    } bad[] = {{reply + "kind", 7},       {reply + "steps", 256},       {reply + "steps", 0xffff},
               {reply + "length", 0},     {reply + "length", 1025},     {reply + "length", 4097},
               {reply + "search", 0},     {reply + "search", 0x8000},   {reply + "search", search_for(1, 15)},
               {reply + "search", 1u << 31 | kListSearch},              {"a.vendor_ops", 0},
               {"a.vendor_ops", 2},       {"resp.message", 3},          {"a.service", HGHCA_QP_ST_UC}};
    for (const auto &row : bad) {
        SCOPED_TRACE(row.field + " " + std::to_string(row.value));
        std::copy(good.begin(), good.end(), entry());
        put_field<Qp>(entry(), row.field, row.value);
        EXPECT_EQ(net.b.device.qps->find(Qpn(p.b.qp.qpn)), nullptr);
        std::copy(good.begin(), good.end(), entry());
        EXPECT_NE(net.b.device.qps->find(Qpn(p.b.qp.qpn)), nullptr);
        net.b.device.qps->trim(0);
        std::copy(good.begin(), good.end(), entry());
    }
    // That of a try has an object with its CRC.
    put_field<Qp>(entry(), reply + "kind", 6);
    EXPECT_NE(net.b.device.qps->find(Qpn(p.b.qp.qpn)), nullptr);
    net.b.device.qps->trim(0);
    put_field<Qp>(entry(), reply + "length", 8);
    EXPECT_EQ(net.b.device.qps->find(Qpn(p.b.qp.qpn)), nullptr);
}

// Without the capability no QP has the operations, whatever ICM says.
TEST_F(OneContext, ABitThatIcmMakesUp)
{
    net.b.start(kRsnicCaps & ~kVendorOps);
    Options without = options();
    without.vendor_ops = false;
    const Endpoint e(net.b, without);
    net.b.device.qps->trim(0);
    uint8_t *at = net.b.host.at(net.b.driver.qpc_dma + e.qp.qpn * 2048ull);
    put_field<Qp>(at, "a.vendor_ops", 1);
    EXPECT_EQ(net.b.device.qps->find(Qpn(e.qp.qpn)), nullptr);
    put_field<Qp>(at, "a.vendor_ops", 0);
    EXPECT_NE(net.b.device.qps->find(Qpn(e.qp.qpn)), nullptr);
}

}  // namespace
}  // namespace hghca::test::vendor_ops_test
