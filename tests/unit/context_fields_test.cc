// SPDX-License-Identifier: GPL-2.0-or-later
// How contexts are stored in ICM (interface document, 4.4): the tables of their fields, and the codec that follows them.
#include <cstring>
#include <numeric>
#include <vector>

#include "fixture.h"
#include "jingzhao/context_cache.h"
#include "jingzhao/icm.h"
#include "jingzhao/multicast.h"
#include "jingzhao/srq.h"

namespace hghca::test {
namespace {

using Image = std::vector<uint8_t>;

void put_number(Image &image, uint32_t at, uint32_t bytes, uint64_t n)
{
    for (uint32_t i = 0; i < bytes; i++)
        image[at + i] = uint8_t(n >> 8 * i);
}
uint64_t largest(uint32_t bytes) { return bytes == 8 ? UINT64_MAX : (uint64_t(1) << 8 * bytes) - 1; }

template <class T>
std::vector<FieldPlace> places()
{
    std::vector<FieldPlace> all;
    for_each_field<T>([&](const FieldPlace &f) { all.push_back(f); });
    return all;
}

template <class T>
class ContextFields : public ::testing::Test {
protected:
    // Each field has some value within its bounds.
    Image random_image()
    {
        Image image(stored_bytes<T>());
        for (const FieldPlace &f : places<T>()) {
            const uint64_t max = std::min(f.bounds.max, largest(f.bytes));
            const uint64_t span = max - f.bounds.min + 1;
            put_number(image, f.at, f.bytes, f.bounds.min + (span ? host.random() % span : host.random()));
        }
        return image;
    }
    FakeHost host{4096};
};

using Kinds = ::testing::Types<ContextHeader, Qp, CqContext, EqContext, SrqContext, McgContext, Mpt>;
TYPED_TEST_SUITE(ContextFields, Kinds);

TYPED_TEST(ContextFields, ComeBackAsTheyWere)
{
    for (int round = 0; round < 200; round++) {
        const Image image = this->random_image();
        TypeParam context;
        ASSERT_TRUE(decode(image.data(), context));
        Image back(image.size());
        encode(context, back.data());
        ASSERT_EQ(back, image);
    }
}

// What stood in the memory of the context before, its padding with it, is not stored.
TYPED_TEST(ContextFields, PaddingIsNotStored)
{
    const Image image = this->random_image();
    for (uint8_t before : {0x00, 0xff, 0xa5}) {
        TypeParam context;
        std::memset(static_cast<void *>(&context), before, sizeof(context));
        ASSERT_TRUE(decode(image.data(), context));
        Image back(image.size());
        encode(context, back.data());
        EXPECT_EQ(back, image);
    }
}

TYPED_TEST(ContextFields, OutOfBoundsIsRefused)
{
    unsigned refused = 0;
    const Image good = this->random_image();
    TypeParam context;
    for (const FieldPlace &f : places<TypeParam>()) {
        auto with = [&](uint64_t n) {
            Image image = good;
            put_number(image, f.at, f.bytes, n);
            return decode(image.data(), context);
        };
        EXPECT_TRUE(with(f.bounds.min)) << f.name;
        EXPECT_TRUE(with(std::min(f.bounds.max, largest(f.bytes)))) << f.name;
        if (f.bounds.min) {
            EXPECT_FALSE(with(f.bounds.min - 1)) << f.name;
            refused++;
        }
        if (f.bounds.max < largest(f.bytes)) {
            EXPECT_FALSE(with(f.bounds.max + 1)) << f.name;
            EXPECT_FALSE(with(largest(f.bytes))) << f.name;
            refused++;
        }
    }
    constexpr bool kHasBounds = !std::is_same_v<TypeParam, ContextHeader> && !std::is_same_v<TypeParam, McgContext>;
    EXPECT_EQ(refused > 0, kHasBounds);
}

// No two fields share a byte, the header of the entry is nobody's, and a byte that is no field's does not count.
TYPED_TEST(ContextFields, EachByteIsOneFields)
{
    Image owner(stored_bytes<TypeParam>());
    for (const FieldPlace &f : places<TypeParam>()) {
        ASSERT_LE(f.at + f.bytes, owner.size()) << f.name;
        EXPECT_TRUE(f.at >= 16 || (std::is_same_v<TypeParam, ContextHeader>)) << f.name;
        for (uint32_t i = 0; i < f.bytes; i++)
            EXPECT_EQ(owner[f.at + i]++, 0) << f.name;
    }
    const Image image = this->random_image();
    Image noisy = image;
    for (size_t i = 0; i < noisy.size(); i++)
        if (!owner[i])
            noisy[i] = 0xff;
    TypeParam context;
    ASSERT_TRUE(decode(noisy.data(), context));
    Image back(image.size());
    encode(context, back.data());
    EXPECT_EQ(back, image);
}

// ---- tables that do not cover their struct, which encode() and decode() refuse to compile

struct Three {
    uint32_t a;
    bool b;
    std::array<uint16_t, 4> c;
};
struct Twice {
    uint32_t a, b;
};
struct Overlap {
    uint32_t a;
    uint16_t b;
};

}  // namespace
}  // namespace hghca::test

namespace hghca {

template <>
struct Layout<test::Three> {
    static constexpr auto kFields = fields(field("a", &test::Three::a, 0, FieldAccess::Device),
                                           field("b", &test::Three::b, 4, FieldAccess::Device));
};
template <>
struct Layout<test::Twice> {
    static constexpr auto kFields = fields(field("a", &test::Twice::a, 0, FieldAccess::Device),
                                           field("a", &test::Twice::a, 4, FieldAccess::Device));
};
template <>
struct Layout<test::Overlap> {
    static constexpr auto kFields = fields(field("a", &test::Overlap::a, 0, FieldAccess::Device),
                                           field("b", &test::Overlap::b, 3, FieldAccess::Device));
};

namespace test {
namespace {

TEST(ContextFieldTables, AMemberWithoutARowIsSeen)
{
    EXPECT_TRUE(is_covered<Qp>());
    EXPECT_TRUE(is_covered<Mpt>());
    EXPECT_FALSE(is_covered<Three>());
    EXPECT_FALSE(is_covered<Twice>());
    EXPECT_FALSE(is_covered<Overlap>());
}

// ---- entries, byte for byte

// The bytes of an entry: where a field stands, and its bytes in the order of their addresses.
struct Piece {
    uint32_t at;
    std::vector<uint8_t> bytes;
};
Image entry_of(uint32_t bytes, std::initializer_list<Piece> pieces)
{
    Image image(bytes);
    for (const Piece &p : pieces)
        std::copy(p.bytes.begin(), p.bytes.end(), image.begin() + p.at);
    return image;
}
template <class T>
Image stored(const T &context)
{
    Image image(stored_bytes<T>());
    encode(context, image.data());
    return image;
}

TEST(ContextImage, Header)
{
    EXPECT_EQ(stored(ContextHeader{0x01020304, 0x05060708, 0x090a0b0c, 0x0d0e0f10}),
              (Image{4, 3, 2, 1, 8, 7, 6, 5, 0xc, 0xb, 0xa, 9, 0x10, 0xf, 0xe, 0xd}));
}

TEST(ContextImage, EventQueue)
{
    EqContext eq{};
    eq.ring = {Key(0x11223344), 0x00abcdef, 7, kLogEntry, 0x6162636465666768};
    eq.producer = 0x01020304;
    eq.consumer = 0x05060708;
    eq.vector = 63;
    eq.armed = true;
    EXPECT_EQ(stored(eq), entry_of(0x33, {{0x10, {0x44, 0x33, 0x22, 0x11, 0xef, 0xcd, 0xab, 0, 7, 5}},
                                          {0x20, {0x68, 0x67, 0x66, 0x65, 0x64, 0x63, 0x62, 0x61}},
                                          {0x28, {4, 3, 2, 1, 8, 7, 6, 5, 63, 1, 0}}}));
}

TEST(ContextImage, CompletionQueue)
{
    CqContext cq{};
    cq.ring = {Key(0x11223344), 2, 22, kLogTimedEntry, 0x6162636465666768};
    cq.eqn = 5;
    cq.usr_page = 0x3ff;
    cq.producer = 0x01020304;
    cq.solicited_end = 0x05060708;
    cq.armed = 2;
    cq.failed = true;
    cq.dbr_addr = 0x1122334455667788;
    cq.max_count = 0x0a0b;
    cq.period_us = 0x0c0d;
    cq.armed_index = 0x21222324;
    cq.deadline_ns = 0x3132333435363738;
    EXPECT_EQ(stored(cq),
              entry_of(0x58, {{0x10, {0x44, 0x33, 0x22, 0x11, 2, 0, 0, 0, 22, 6}},
                              {0x20, {0x68, 0x67, 0x66, 0x65, 0x64, 0x63, 0x62, 0x61}},
                              {0x28, {5, 0, 0, 0, 0xff, 3, 0, 0, 4, 3, 2, 1, 8, 7, 6, 5, 2, 1}},
                              {0x40, {0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0xb, 0xa, 0xd, 0xc}},
                              {0x4c, {0x24, 0x23, 0x22, 0x21, 0x38, 0x37, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31}}}));
}

TEST(ContextImage, SharedReceiveQueue)
{
    SrqContext srq{};
    srq.lkey = Key(0x11223344);
    srq.pd = 3;
    srq.log_wqes = 14;
    srq.stride_log = 7;
    srq.taken = 0x0102;
    srq.limit = 0x0304;
    srq.failed = true;
    srq.epoch = 0x05060708;
    srq.xrcd = 0x090a0b;
    srq.cqn = Cqn(0x0c0d0e);
    srq.next = 0x80;
    srq.dbr_addr = 0x1122334455667788;
    EXPECT_EQ(stored(srq), entry_of(0x38, {{0x10, {0x44, 0x33, 0x22, 0x11, 3, 0, 0, 0, 14, 7, 2, 1, 4, 3, 1, 0}},
                                           {0x20, {8, 7, 6, 5, 0xb, 0xa, 9, 0, 0xe, 0xd, 0xc, 0, 0x80, 0, 0, 0}},
                                           {0x30, {0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11}}}));
}

TEST(ContextImage, MulticastGroup)
{
    McgContext group{};
    group.next = 0x1234;
    std::iota(group.gid.begin(), group.gid.end(), uint8_t(0xf0));
    group.members[0] = 0x0102;
    group.members[55] = 0x0304;
    EXPECT_EQ(stored(group), entry_of(0x94, {{0x10, {0x34, 0x12, 0, 0, 0xf0, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7,
                                                     0xf8, 0xf9, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff, 2, 1}},
                                             {0x92, {4, 3}}}));
}

TEST(ContextImage, MemoryRegion)
{
    Mpt mpt{};
    mpt.flags = 0x01020304;
    mpt.key = Key(0x05060708);
    mpt.pd = 9;
    mpt.page_shift = 21;
    mpt.start = 0x1112131415161718;
    mpt.length = 0x2122232425262728;
    mpt.mtt_first = 0x3132333435363738;
    mpt.mtt_count = 0x41424344;
    mpt.windows = 0x51525354;
    EXPECT_EQ(stored(mpt), entry_of(0x40, {{0x10, {4, 3, 2, 1, 8, 7, 6, 5, 9, 0, 0, 0, 21, 0, 0, 0}},
                                           {0x20, {0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11}},
                                           {0x28, {0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21}},
                                           {0x30, {0x38, 0x37, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31}},
                                           {0x38, {0x44, 0x43, 0x42, 0x41, 0x54, 0x53, 0x52, 0x51}}}));
}

TEST(ContextImage, QueuePair)
{
    Qp qp{};
    qp.state = QpState::Rts;
    qp.drained_sent = true;
    qp.a.qpn = Qpn(0x00abcdef);
    qp.a.service = Service::Ud;
    qp.a.mtu = 4096;
    qp.a.sq = {Key(0x11223344), 64, 8, 0};
    qp.a.rq = {Key(0x55667788), 128, 6, 0x0abc};
    qp.a.dbr_addr = 0x0102030405060708;
    qp.a.path.dmac = {1, 2, 3, 4, 5, 6};
    qp.a.path.dip = 0x0a0b0c0d;
    qp.a.max_rd_atomic = 16;
    qp.a.counter_set = 255;
    qp.pace.phase = Pace::Phase::Late;
    qp.congestion.alpha = 0x01020304;
    qp.req.oldest = {0x1234, 0x0a, 3, true, true};
    qp.req.next_psn = Psn(0x00fedcba);
    qp.req.deadline_ns = 0x1112131415161718;
    qp.resp.expected_psn = Psn(0x00123456);
    qp.resp.atomics[15] = {Psn(0x010203), true, 0x2122232425262728};
    qp.resp.replies[16] = {ReplyKind::Nak, 0x62, Psn(0x00030201), Msn(0x00060504), Key(0x0a090807), 0x3132333435363738,
                           100, 5, 6, true, true, 0x0102, 0x03040506};
    const Image image = stored(qp);
    ASSERT_EQ(image.size(), 0x5f8u);
    EXPECT_EQ(image,
              entry_of(0x5f8, {{0x10, {3, 0, 1}},
                               {0x18, {0xef, 0xcd, 0xab, 0, HGHCA_QP_ST_UD}},
                               {0x24, {0, 0x10, 0, 0}},
                               {0x30, {0x44, 0x33, 0x22, 0x11, 64, 0, 0, 0, 8}},
                               {0x3c, {0x88, 0x77, 0x66, 0x55, 128, 0, 0, 0, 6, 0, 0xbc, 0x0a}},
                               {0x50, {8, 7, 6, 5, 4, 3, 2, 1}},
                               {0x84, {1, 2, 3, 4, 5, 6}},
                               {0x94, {0xd, 0xc, 0xb, 0xa}},
                               {0x9c, {16}},
                               {0xa2, {255, 0}},
                               {0xc0, {2}},
                               {0xdc, {4, 3, 2, 1}},
                               {0x100, {0x34, 0x12, 0x0a, 3, 1, 1}},
                               {0x120, {0xba, 0xdc, 0xfe, 0}},
                               {0x150, {0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11}},
                               {0x180, {0x56, 0x34, 0x12, 0}},
                               {0x2b8, {3, 2, 1, 0, 1, 0, 0, 0, 0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21}},
                               {0x5c8, {3, 0x62, 1, 1, 1, 2, 3, 0, 4, 5, 6, 0, 7, 8, 9, 10,
                                        0x38, 0x37, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31, 100, 0, 0, 0, 5, 0, 0, 0, 6}},
                               {0x5f0, {2, 1, 0, 0, 6, 5, 4, 3}}}));
}

// The entry itself: header and context where the command says, and nothing behind the context.
TEST(ContextImage, AnEntryInIcm)
{
    FakeHost host;
    Device device(host, test_config(host));
    TestDriver driver(host, device);
    driver.start();
    const auto eq = driver.create_eq(4, 9);
    uint8_t *entry = host.at(driver.eqc_dma + eq.eqn * 64ull);
    std::memset(entry, 0xcc, 64);
    device.eqs->trim(0);
    const uint32_t key = eq.buffer.key;
    Image expected = entry_of(0x33, {{0x00, {0x31, 0x43, 0x51, 0x45, 0x68, 0x31, 0x57, 0x48}},
                                     {0x08, {uint8_t(eq.eqn), 0, 0, 0}},
                                     {0x10, {uint8_t(key), uint8_t(key >> 8), uint8_t(key >> 16), uint8_t(key >> 24)}},
                                     {0x14, {TestDriver::kPd, 0, 0, 0, 4, 5}},
                                     {0x30, {9, 1, 0}}});
    const uint32_t epoch = device.icm->epoch();
    put_number(expected, 0x0c, 4, epoch);
    expected.resize(64, 0xcc);
    EXPECT_EQ(Image(entry, entry + 64), expected);
}

}  // namespace
}  // namespace test
}  // namespace hghca
