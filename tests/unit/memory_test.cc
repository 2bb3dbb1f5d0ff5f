// SPDX-License-Identifier: GPL-2.0-or-later
// MPTs and MTTs: commands and translation (interface document, 4.5, 4.6).
#include <cstring>
#include <utility>
#include <vector>

#include "fixture.h"

namespace hghca::test::memory_test {
namespace {

constexpr uint32_t kPd = TestDriver::kPd;
// The rule of the seed: the index in the low bits of a key.
constexpr uint32_t kSeedKeys = kFullCaps & ~HGHCA_CAP_MEM_MGT;

class MemoryTest : public DeviceTest {
protected:
    MemoryTest() { driver.init(kSeedKeys); }

    MemoryTable &memory() { return *device.memory; }
    uint8_t sw2hw(const hghca_mpt &mpt, uint32_t index) { return driver.post(HGHCA_CMD_SW2HW_MPT, mpt, index); }
    uint8_t hw2sw(uint32_t index) { return driver.command(HGHCA_CMD_HW2SW_MPT, 0, index).status; }
    // The DMA address of one byte, or 0.
    uint64_t dma_of(uint32_t key, uint64_t va, Access access = Access::LocalRead, uint32_t pd = kPd)
    {
        SegmentArray<1> s;
        return memory().translate(Key(key), pd, va, 1, access, s) ? s[0].dma : 0;
    }
};

// ---- SW2HW_MPT, HW2SW_MPT

TEST_F(MemoryTest, MptCommands)
{
    struct {
        const char *what;
        uint32_t index;
        void (*change)(hghca_mpt &);
        uint8_t status;
    } cases[] = {
        {"good", 5, [](hghca_mpt &) {}, 0},
        {"tag", 5, [](hghca_mpt &m) { m.key = be32(0xfffffc00 | 5); }, 0},
        {"last index", 1023, [](hghca_mpt &m) { m.key = be32(1023); }, 0},
        {"index beyond the table", 1024, [](hghca_mpt &m) { m.key = be32(1024); }, HGHCA_CMD_STAT_BAD_INDEX},
        {"far index", ~0u, [](hghca_mpt &m) { m.key = be32(~0u); }, HGHCA_CMD_STAT_BAD_INDEX},
        {"reserved index", 0, [](hghca_mpt &m) { m.key = 0; }, HGHCA_CMD_STAT_BAD_INDEX},
        {"key of another index", 6, [](hghca_mpt &) {}, HGHCA_CMD_STAT_BAD_PARAM},
        {"no REGION", 5, [](hghca_mpt &m) { m.flags = be32(1); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"SW_OWNS", 5, [](hghca_mpt &m) { m.flags |= be32(1u << 28); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"SW_OWNS high", 5, [](hghca_mpt &m) { m.flags |= be32(8u << 28); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"1 GB pages", 5, [](hghca_mpt &m) { m.page_size = be32(18); }, 0},
        {"2 GB pages", 5, [](hghca_mpt &m) { m.page_size = be32(19); }, HGHCA_CMD_STAT_BAD_SEG_PARAM},
        {"page size far out", 5, [](hghca_mpt &m) { m.page_size = be32(~0u); }, HGHCA_CMD_STAT_BAD_SEG_PARAM},
        {"empty", 5, [](hghca_mpt &m) { m.length = 0; }, 0},
        {"wraps", 5, [](hghca_mpt &m) { m.start = be64(~0ull - 100); }, HGHCA_CMD_STAT_BAD_SEG_PARAM},
        {"length wraps", 5, [](hghca_mpt &m) { m.length = be64(~0ull); }, HGHCA_CMD_STAT_BAD_SEG_PARAM},
        {"MTTs beyond the table", 5, [](hghca_mpt &m) { m.mtt_seg_h = be32(1); }, HGHCA_CMD_STAT_BAD_SEG_PARAM},
        {"physical, everything", 5,
         [](hghca_mpt &m) {
             m.flags |= be32(HGHCA_MPT_FLAG_PHYSICAL);
             m.start = 0;
             m.length = be64(~0ull);
         },
         0},
        {"physical up to the last byte", 5,
         [](hghca_mpt &m) {
             m.flags |= be32(HGHCA_MPT_FLAG_PHYSICAL);
             m.start = be64(~0ull - 0xfff);
             m.length = be64(0x1000);
         },
         0},
    };
    for (auto &c : cases) {
        driver.init(kSeedKeys);
        hghca_mpt mpt = driver.mpt_mailbox(5, 0x10000, 0x1000, 1);
        c.change(mpt);
        EXPECT_EQ(sw2hw(mpt, c.index), c.status) << c.what;
        EXPECT_EQ(memory().find(Key(be32(mpt.key))) != nullptr, c.status == 0) << c.what;
        if (c.index < 1024 && c.index) {
            EXPECT_EQ(hw2sw(c.index), c.status ? HGHCA_CMD_STAT_BAD_RES_STATE : 0) << c.what;
        }
    }
}

TEST_F(MemoryTest, OwnershipOfAnMpt)
{
    EXPECT_EQ(hw2sw(5), HGHCA_CMD_STAT_BAD_RES_STATE);
    EXPECT_EQ(sw2hw(driver.mpt_mailbox(5, 0, 4096, 1), 5), 0);
    EXPECT_EQ(sw2hw(driver.mpt_mailbox(5, 0, 4096, 1), 5), HGHCA_CMD_STAT_BAD_RES_STATE);
    EXPECT_EQ(sw2hw(driver.mpt_mailbox(0x405, 0, 4096, 1), 5), HGHCA_CMD_STAT_BAD_RES_STATE);
    EXPECT_NE(memory().find(Key(5)), nullptr);
    EXPECT_EQ(hw2sw(5), 0);
    EXPECT_EQ(memory().find(Key(5)), nullptr);
    EXPECT_EQ(hw2sw(5), HGHCA_CMD_STAT_BAD_RES_STATE);
    for (uint32_t index : {0u, 1024u, ~0u})
        EXPECT_EQ(hw2sw(index), HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(sw2hw(driver.mpt_mailbox(0x405, 0, 4096, 1), 5), 0);
}

TEST_F(MemoryTest, StaleKeysFail)
{
    for (uint32_t tag = 1; tag < 5; tag++) {
        ASSERT_EQ(sw2hw(driver.mpt_mailbox(tag << 10 | 7, 0, 4096, 1), 7), 0);
        for (uint32_t other = 0; other < 6; other++)
            EXPECT_EQ(memory().find(Key(other << 10 | 7)) != nullptr, other == tag);
        ASSERT_EQ(hw2sw(7), 0);
        EXPECT_EQ(memory().find(Key(tag << 10 | 7)), nullptr);
    }
}

TEST_F(MemoryTest, NeedsItsIcm)
{
    ASSERT_EQ(driver.unmap_icm(HGHCA_ICM_TPT, driver.layout.mpt, 1), 0);
    EXPECT_EQ(sw2hw(driver.mpt_mailbox(5, 0, 4096, 1), 5), HGHCA_CMD_STAT_LAM_NOT_PRE);
    EXPECT_EQ(hw2sw(5), HGHCA_CMD_STAT_LAM_NOT_PRE);
    EXPECT_EQ(sw2hw(driver.mpt_mailbox(64, 0, 4096, 1), 64), 0);  // in the next page
    ASSERT_EQ(driver.unmap_icm(HGHCA_ICM_TPT, driver.layout.mtt, 1), 0);
    uint64_t dma = FakeHost::kBase;
    EXPECT_EQ(driver.write_mtt(1, &dma, 1), HGHCA_CMD_STAT_LAM_NOT_PRE);
    EXPECT_EQ(driver.write_mtt(512, &dma, 1), 0);
    EXPECT_EQ(dma_of(64, 0), 0u);  // its MTT is not there
}

// ---- WRITE_MTT

TEST_F(MemoryTest, QuadsStandHighToLow)
{
    ASSERT_EQ(sw2hw(driver.mpt_mailbox(5, 0, 600 * 4096, 100), 5), 0);
    for (uint32_t n : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 507u, 508u}) {
        std::array<uint64_t, 512> words;
        words.fill(~0ull);
        words[3] = be64(100);
        for (uint32_t i = 0; i < n; i++)
            words[4 + i / 4 * 4 + (3 - i % 4)] = be64(FakeHost::kBase + (n + i) % 97 * 4096);
        ASSERT_EQ(driver.post(HGHCA_CMD_WRITE_MTT, words, n), 0);
        for (uint32_t i = 0; i < n; i++)
            ASSERT_EQ(dma_of(5, i * 4096ull + 5), FakeHost::kBase + (n + i) % 97 * 4096 + 5) << n << " " << i;
    }
    EXPECT_EQ(dma_of(5, 508 * 4096), 0u);
}

TEST_F(MemoryTest, WriteMttLimits)
{
    std::vector<uint64_t> dma(508, FakeHost::kBase);
    uint64_t count = ((1ull << 32) - driver.layout.mtt) / 8;
    count = std::min<uint64_t>(count, 1u << 27);
    for (uint32_t n : {0u, 509u, ~0u})
        EXPECT_EQ(driver.command(HGHCA_CMD_WRITE_MTT, driver.in_mailbox(), n).status, HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(driver.write_mtt(count - 1, dma.data(), 1), HGHCA_CMD_STAT_LAM_NOT_PRE);
    EXPECT_EQ(driver.write_mtt(count - 1, dma.data(), 2), HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(driver.write_mtt(count, dma.data(), 1), HGHCA_CMD_STAT_BAD_INDEX);
    EXPECT_EQ(driver.write_mtt(~0ull, dma.data(), 2), HGHCA_CMD_STAT_BAD_INDEX);
    // Across the end of what is mapped: nothing is written.
    uint64_t mapped = driver.layout.mtt_bytes / 8;
    EXPECT_EQ(driver.write_mtt(mapped - 2, dma.data(), 4), HGHCA_CMD_STAT_LAM_NOT_PRE);
    ASSERT_EQ(sw2hw(driver.mpt_mailbox(5, 0, 4096, mapped - 2), 5), 0);
    EXPECT_EQ(dma_of(5, 0), 0u);
    EXPECT_EQ(driver.write_mtt(mapped - 2, dma.data(), 2), 0);
    EXPECT_EQ(dma_of(5, 0), FakeHost::kBase);
}

// ---- SW2HW_MPT with MTTs

class InlineMttsTest : public MemoryTest {
protected:
    static constexpr uint32_t kFirst = 20;

    // Of pages from `first` on; all beyond them is something else.
    static hghca_mpt_mtts region(const hghca_mpt &mpt, uint32_t count, uint64_t first = FakeHost::kBase)
    {
        hghca_mpt_mtts mailbox;
        std::memset(&mailbox, 0x5a, sizeof(mailbox));
        mailbox.mpt = mpt;
        mailbox.mpt.mtt_sz = be32(count);
        for (uint32_t i = 0; i < std::min(count, 504u); i++)
            mailbox.entry[i] = be64(first + i * 4096ull);
        return mailbox;
    }
    hghca_mpt mpt(uint32_t pages) { return driver.mpt_mailbox(5, 0, pages * 4096ull, kFirst); }
    uint8_t sw2hw(const hghca_mpt_mtts &mailbox, uint32_t index)
    {
        return driver.post(HGHCA_CMD_SW2HW_MPT, mailbox, index, 1);
    }
};

TEST_F(InlineMttsTest, BothAreWritten)
{
    for (uint32_t n : {1u, 2u, 503u, 504u}) {
        const uint64_t other = FakeHost::kBase + 0x5000;
        ASSERT_EQ(driver.write_mtt(kFirst + n, &other, 1), 0);
        ASSERT_EQ(sw2hw(region(mpt(n + 1), n), 5), 0) << n;
        for (uint32_t i = 0; i < n; i++)
            ASSERT_EQ(dma_of(5, i * 4096ull + 9), FakeHost::kBase + i * 4096ull + 9) << n << " " << i;
        EXPECT_EQ(dma_of(5, n * 4096ull), other) << "only " << n << " are written";
        ASSERT_EQ(hw2sw(5), 0);
    }
}

TEST_F(InlineMttsTest, WhatIsRefused)
{
    struct {
        const char *what;
        uint32_t count;
        void (*change)(hghca_mpt &);
        uint8_t status;
    } cases[] = {
        {"no MTTs", 0, [](hghca_mpt &) {}, HGHCA_CMD_STAT_BAD_PARAM},
        {"505 of them", 505, [](hghca_mpt &) {}, HGHCA_CMD_STAT_BAD_PARAM},
        {"2^32 - 1", ~0u, [](hghca_mpt &) {}, HGHCA_CMD_STAT_BAD_PARAM},
        {"PHYSICAL", 1, [](hghca_mpt &m) { m.flags |= be32(HGHCA_MPT_FLAG_PHYSICAL); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"DEVICE", 1, [](hghca_mpt &m) { m.flags |= be32(HGHCA_MPT_FLAG_DEVICE); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"FAST_REG", 1, [](hghca_mpt &m) { m.flags |= be32(HGHCA_MPT_FLAG_FAST_REG); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"TREE", 1, [](hghca_mpt &m) { m.flags |= be32(HGHCA_MPT_FLAG_TREE); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"a window", 1, [](hghca_mpt &m) { m.flags &= ~be32(HGHCA_MPT_FLAG_REGION); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"a key of another index", 1, [](hghca_mpt &m) { m.key = be32(6); }, HGHCA_CMD_STAT_BAD_PARAM},
        {"a region that wraps", 1, [](hghca_mpt &m) { m.start = be64(~0ull - 100); }, HGHCA_CMD_STAT_BAD_SEG_PARAM},
    };
    const uint64_t before = FakeHost::kBase + 0x7000;
    ASSERT_EQ(driver.write_mtt(kFirst, &before, 1), 0);
    for (auto &c : cases) {
        hghca_mpt_mtts mailbox = region(mpt(1), c.count);
        c.change(mailbox.mpt);
        EXPECT_EQ(sw2hw(mailbox, 5), c.status) << c.what;
        EXPECT_EQ(memory().find(Key(5)), nullptr) << c.what;
    }
    EXPECT_EQ(driver.post(HGHCA_CMD_SW2HW_MPT, region(mpt(1), 1), 5, 2), HGHCA_CMD_STAT_BAD_PARAM);
    ASSERT_EQ(MemoryTest::sw2hw(mpt(1), 5), 0);
    EXPECT_EQ(dma_of(5, 0), before);
}

TEST_F(InlineMttsTest, NothingIsWrittenIfEitherFails)
{
    const uint64_t before[2] = {FakeHost::kBase + 0x7000, FakeHost::kBase + 0x9000};
    const uint64_t mapped = driver.layout.mtt_bytes / 8;
    ASSERT_EQ(driver.write_mtt(kFirst, before, 2), 0);
    ASSERT_EQ(MemoryTest::sw2hw(mpt(2), 5), 0);
    EXPECT_EQ(sw2hw(region(mpt(2), 2), 5), HGHCA_CMD_STAT_BAD_RES_STATE);
    EXPECT_EQ(dma_of(5, 0), before[0]);
    EXPECT_EQ(dma_of(5, 4096), before[1]);
    // The last of the MTTs has no memory.
    ASSERT_EQ(driver.write_mtt(mapped - 1, before, 1), 0);
    EXPECT_EQ(sw2hw(region(driver.mpt_mailbox(6, 0, 8192, mapped - 1), 2), 6), HGHCA_CMD_STAT_LAM_NOT_PRE);
    ASSERT_EQ(MemoryTest::sw2hw(driver.mpt_mailbox(6, 0, 4096, mapped - 1), 6), 0);
    EXPECT_EQ(dma_of(6, 0), before[0]);
}

TEST_F(InlineMttsTest, WithoutTheCapability)
{
    driver.init(kSeedKeys & ~HGHCA_CAP_INLINE_MTTS);
    EXPECT_EQ(sw2hw(region(mpt(1), 1), 5), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(memory().find(Key(5)), nullptr);
}

TEST_F(MemoryTest, TheMptsEndTheMtts)
{
    driver.layout.mtt = 0;
    driver.layout.mpt = 1 << 20;
    driver.init(kSeedKeys);
    uint64_t dma[2] = {FakeHost::kBase, FakeHost::kBase};
    EXPECT_EQ(driver.write_mtt((1 << 17) - 1, dma, 1), 0);
    EXPECT_EQ(driver.write_mtt((1 << 17) - 1, dma, 2), HGHCA_CMD_STAT_BAD_INDEX);
}

TEST_F(MemoryTest, LowBitsOfAnMttAreIgnored)
{
    // Bits 1:0 have a meaning for who knows of paging on demand.
    for (const auto &[caps, low] : {std::pair{kSeedKeys & ~HGHCA_CAP_ODP, 0xfffu}, std::pair{kSeedKeys, 0xffcu}}) {
        driver.init(caps);
        uint64_t dma = FakeHost::kBase + 0x5000 + low;
        ASSERT_EQ(driver.write_mtt(1, &dma, 1), 0);
        ASSERT_EQ(sw2hw(driver.mpt_mailbox(5, 0, 4096, 1), 5), 0);
        EXPECT_EQ(dma_of(5, 1), FakeHost::kBase + 0x5001) << std::hex << low;
    }
}

TEST_F(MemoryTest, MttsOfALiveRegionMayBeRewritten)
{
    auto mr = driver.create_mr(0, 4096);
    uint64_t other = host.alloc(4096);
    EXPECT_EQ(dma_of(mr.key, 8), mr.dma + 8);
    ASSERT_EQ(driver.write_mtt(mr.first_mtt, &other, 1), 0);
    EXPECT_EQ(dma_of(mr.key, 8), other + 8);
}

// Pages are kept as they were translated; each page is found where its own region has it, also when more pages are in use
// than are kept, and when a key comes again.
TEST_F(MemoryTest, ManyPagesOfManyRegions)
{
    std::vector<TestDriver::Mr> regions;
    for (int i = 0; i < 40; i++)
        regions.push_back(driver.create_mr(uint64_t(i % 3) << 32, 60 * 4096));
    for (int round = 0; round < 3; round++)
        for (const auto &mr : regions)
            for (uint64_t page = 0; page < 60; page++) {
                const Access access = (page + uint64_t(round)) % 2 ? Access::LocalWrite : Access::LocalRead;
                ASSERT_EQ(dma_of(mr.key, mr.va + page * 4096 + 9, access), mr.dma + page * 4096 + 9) << page;
            }
    const auto &mr = regions[7];
    ASSERT_EQ(hw2sw(mr.key % 1024), 0);
    EXPECT_EQ(dma_of(mr.key, mr.va), 0u);
    ASSERT_EQ(sw2hw(driver.mpt_mailbox(mr.key, mr.va, 60 * 4096, regions[8].first_mtt), mr.key % 1024), 0);
    for (uint64_t page = 0; page < 60; page++)
        ASSERT_EQ(dma_of(mr.key, mr.va + page * 4096), regions[8].dma + page * 4096) << page;
}

// A page that was read may not be written for that: the host may map it for reading alone.
TEST_F(MemoryTest, APageIsMappedForEachUse)
{
    const auto mr = driver.create_mr(0, 4096);
    host.read_only = {{mr.dma, 4096}};
    SegmentArray<1> s;
    for (int round = 0; round < 2; round++) {
        s.clear();
        ASSERT_TRUE(memory().translate(Key(mr.key), kPd, 8, 8, Access::LocalWrite, s));
        EXPECT_EQ(s[0].pointer, nullptr);
        EXPECT_EQ(s[0].dma, mr.dma + 8);
    }
}

TEST_F(MemoryTest, AnMttThatWasNeverWrittenIsAbsent)
{
    uint64_t dma = FakeHost::kBase;
    ASSERT_EQ(driver.write_mtt(10, &dma, 1), 0);
    ASSERT_EQ(sw2hw(driver.mpt_mailbox(5, 0, 3 * 4096, 9), 5), 0);
    SegmentArray<4> s;
    EXPECT_FALSE(memory().translate(Key(5), kPd, 0, 1, Access::LocalRead, s));
    s.clear();
    EXPECT_TRUE(memory().translate(Key(5), kPd, 4096, 4096, Access::LocalRead, s));
    s.clear();
    EXPECT_FALSE(memory().translate(Key(5), kPd, 4096, 4097, Access::LocalRead, s));
}

// ---- checks

TEST_F(MemoryTest, RightsAndPd)
{
    struct {
        Access access;
        uint32_t right;
    } kinds[] = {
        {Access::LocalRead, 0},
        {Access::LocalWrite, HGHCA_ACCESS_LOCAL_WRITE},
        {Access::RemoteWrite, HGHCA_ACCESS_REMOTE_WRITE},
        {Access::RemoteRead, HGHCA_ACCESS_REMOTE_READ},
        {Access::RemoteAtomic, HGHCA_ACCESS_REMOTE_ATOMIC},
    };
    for (uint32_t rights = 0; rights < 128; rights++) {
        const uint64_t va = rights & HGHCA_ACCESS_ZERO_BASED ? 0 : 0x1000;
        auto mr = driver.create_mr_at(va, 64, FakeHost::kBase, rights, 7);
        for (auto &k : kinds) {
            bool allowed = (rights & k.right) == k.right;
            EXPECT_EQ(memory().check(Key(mr.key), 7, va, 64, k.access) == Allowed::Yes, allowed)
                << rights << " " << k.right;
            EXPECT_EQ(memory().check(Key(mr.key), 7, 0, 0, k.access) == Allowed::Yes, allowed);
            EXPECT_EQ(memory().check(Key(mr.key), 8, va, 64, k.access), Allowed::No);
            EXPECT_EQ(memory().check(Key(mr.key), 0, 0x1000, 0, k.access), Allowed::No);
            SegmentArray<1> s;
            // No queue is paged on demand.
            EXPECT_EQ(memory().translate(Key(mr.key), 7, va, 64, k.access, s),
                      allowed && !(rights & HGHCA_ACCESS_ON_DEMAND));
        }
        ASSERT_EQ(driver.destroy_mr(mr), 0);
    }
}

// ---- zero-based regions from any byte of a page on (FIRST_BYTE)

class FirstByteTest : public MemoryTest {
protected:
    FirstByteTest()
    {
        list = {FakeHost::kBase + 0x7000, FakeHost::kBase + 0x3000, FakeHost::kBase + 0x5000};
        TestDriver::must(driver.write_mtt(kFirstMtt, list.data(), uint32_t(list.size())), "WRITE_MTT");
    }
    static constexpr uint64_t kFirstMtt = 40;
    hghca_mpt zero_based(uint32_t first_byte, uint64_t length)
    {
        hghca_mpt mpt = driver.mpt_mailbox(5, 0, length, kFirstMtt, TestDriver::kRw | HGHCA_ACCESS_ZERO_BASED);
        mpt.first_byte = be32(first_byte);
        return mpt;
    }
    std::vector<uint64_t> list;
};

TEST_F(FirstByteTest, AddressesCountFromThere)
{
    constexpr uint64_t kLength = 0x1800;
    ASSERT_EQ(sw2hw(zero_based(0x123, kLength), 5), 0);
    EXPECT_EQ(dma_of(5, 0), list[0] + 0x123);
    EXPECT_EQ(dma_of(5, 0xedc), list[0] + 0xfff);
    EXPECT_EQ(dma_of(5, 0xedd), list[1]);
    EXPECT_EQ(dma_of(5, kLength - 1), list[1] + 0x922);
    EXPECT_EQ(dma_of(5, kLength), 0u);
    EXPECT_EQ(dma_of(5, ~0ull), 0u);
    EXPECT_EQ(memory().check(Key(5), kPd, 0, kLength, Access::LocalRead), Allowed::Yes);
    EXPECT_EQ(memory().check(Key(5), kPd, 1, kLength, Access::LocalRead), Allowed::No);
    hghca_mpt out;
    ASSERT_EQ(driver.query(HGHCA_CMD_QUERY_MPT, out, 5), 0);
    EXPECT_EQ(be64(out.start), 0u);
    EXPECT_EQ(be64(out.length), kLength);
    EXPECT_EQ(be32(out.first_byte), 0x123u);
}

TEST_F(FirstByteTest, SurvivesAnEviction)
{
    ASSERT_EQ(sw2hw(zero_based(0xfff, 0x1001), 5), 0);
    memory().trim(0);
    EXPECT_EQ(dma_of(5, 0), list[0] + 0xfff);
    EXPECT_EQ(dma_of(5, 0x1000), list[1] + 0xfff);
}

// A page fault is about an address, too.
TEST_F(FirstByteTest, PagedOnDemand)
{
    hghca_mpt mpt = zero_based(0x123, 0x2000);
    mpt.flags |= be32(HGHCA_ACCESS_ON_DEMAND);
    ASSERT_EQ(sw2hw(mpt, 5), 0);
    PacketSegments s;
    AbsentPage absent{};
    EXPECT_EQ(memory().locate(Key(5), kPd, 0, 0x2000, Access::LocalRead, s, absent), Found::Yes);
    ASSERT_EQ(driver.command(HGHCA_CMD_CLEAR_MTT, kFirstMtt + 1, 1).status, 0);
    s.clear();
    EXPECT_EQ(memory().locate(Key(5), kPd, 0, 0xedd, Access::LocalRead, s, absent), Found::Yes);
    s.clear();
    ASSERT_EQ(memory().locate(Key(5), kPd, 0xedc, 2, Access::LocalRead, s, absent), Found::Absent);
    EXPECT_EQ(absent.key, Key(5));
    EXPECT_EQ(absent.va, 0xeddu);
    EXPECT_EQ(absent.length, 1u);
}

TEST_F(FirstByteTest, InLargerPages)
{
    hghca_mpt mpt = zero_based(0x1ffff, 2);
    mpt.page_size = be32(17 - 12);
    uint64_t pages[2] = {FakeHost::kBase, FakeHost::kBase + 0x40000};
    ASSERT_EQ(driver.write_mtt(kFirstMtt, pages, 2), 0);
    ASSERT_EQ(sw2hw(mpt, 5), 0);
    EXPECT_EQ(dma_of(5, 0), pages[0] + 0x1ffff);
    EXPECT_EQ(dma_of(5, 1), pages[1]);
}

TEST_F(FirstByteTest, WhatSw2hwRefuses)
{
    const uint64_t mtts = std::min<uint64_t>(((1ull << 32) - driver.layout.mtt) / 8, 1u << 27);
    hghca_mpt mpt = zero_based(0, 0x1000);
    mpt.start = be64(0x1000);
    EXPECT_EQ(sw2hw(mpt, 5), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(sw2hw(zero_based(0x1000, 1), 5), HGHCA_CMD_STAT_BAD_SEG_PARAM);   // not in the first page
    EXPECT_EQ(sw2hw(zero_based(~0u, 1), 5), HGHCA_CMD_STAT_BAD_SEG_PARAM);
    EXPECT_EQ(sw2hw(zero_based(1, ~0ull), 5), HGHCA_CMD_STAT_BAD_SEG_PARAM);
    mpt = zero_based(1, 0x1000);   // two pages, and one MTT is left
    mpt.mtt_seg_l = be32(uint32_t(mtts - 1));
    EXPECT_EQ(sw2hw(mpt, 5), HGHCA_CMD_STAT_BAD_SEG_PARAM);
    EXPECT_EQ(sw2hw(zero_based(0xfff, 1), 5), 0);
}

TEST_F(FirstByteTest, NobodyLooksAtItOfOtherRegions)
{
    hghca_mpt mpt = driver.mpt_mailbox(5, 0x10, 0x100, kFirstMtt);
    mpt.first_byte = be32(0x123);
    ASSERT_EQ(sw2hw(mpt, 5), 0);
    EXPECT_EQ(dma_of(5, 0x10), list[0] + 0x10);
    mpt = zero_based(0x12345, 0x100000);   // beyond the first page
    mpt.key = be32(6);
    mpt.flags |= be32(HGHCA_MPT_FLAG_PHYSICAL);
    ASSERT_EQ(sw2hw(mpt, 6), 0);
    EXPECT_EQ(dma_of(6, 0x5000), 0x5000u);
}

TEST_F(FirstByteTest, WithoutTheCapabilityTheWordIsReserved)
{
    driver.init(kSeedKeys & ~HGHCA_CAP_FIRST_BYTE);
    ASSERT_EQ(driver.write_mtt(kFirstMtt, list.data(), 3), 0);
    ASSERT_EQ(sw2hw(zero_based(0x123, 0x100), 5), 0);
    EXPECT_EQ(dma_of(5, 0), list[0]);
    hghca_mpt mpt = zero_based(0, 0x100);
    mpt.start = be64(0x10020);
    mpt.key = be32(6);
    ASSERT_EQ(sw2hw(mpt, 6), 0);
    EXPECT_EQ(dma_of(6, 0x10020), list[0] + 0x20);
}

TEST_F(MemoryTest, BoundsAndWrap)
{
    constexpr uint64_t kStart = 0x7fff12345678, kLength = 10000;
    auto mr = driver.create_mr(kStart, kLength);
    struct {
        uint64_t va, length;
        bool allowed;
    } cases[] = {
        {kStart, 1, true},
        {kStart, kLength, true},
        {kStart, kLength + 1, false},
        {kStart - 1, 1, false},
        {kStart - 1, 2, false},
        {kStart + kLength - 1, 1, true},
        {kStart + kLength - 1, 2, false},
        {kStart + kLength, 1, false},
        {kStart + kLength, 0, true},
        {kStart - 4096, 0, true},  // length 0: no bounds
        {kStart + 1, ~0ull, false},
        {kStart, ~0ull, false},
        {~0ull, 1, false},
        {~0ull, 2, false},
        {0, ~0ull, false},
        {kStart + 100, uint64_t(0) - 100, false},
    };
    for (auto &c : cases)
        EXPECT_EQ(memory().check(Key(mr.key), kPd, c.va, c.length, Access::LocalRead) == Allowed::Yes, c.allowed)
            << std::hex << c.va << " " << c.length;
}

TEST_F(MemoryTest, TopOfTheAddressSpace)
{
    auto mr = driver.create_mr(uint64_t(0) - 8192, 8192);
    EXPECT_EQ(memory().check(Key(mr.key), kPd, uint64_t(0) - 8192, 8192, Access::LocalRead), Allowed::Yes);
    EXPECT_EQ(dma_of(mr.key, ~0ull), mr.dma + 8191);
    EXPECT_EQ(memory().check(Key(mr.key), kPd, ~0ull, 2, Access::LocalRead), Allowed::No);
    EXPECT_EQ(memory().check(Key(mr.key), kPd, 0, 1, Access::LocalRead), Allowed::No);
}

// ---- translation

TEST_F(MemoryTest, PageSizesAndOddOffsets)
{
    for (unsigned shift = 12; shift <= 30; shift++) {
        uint64_t page = 1ull << shift;
        for (uint64_t lead : std::initializer_list<uint64_t>{0, 1, 0x123, page / 2 + 7, page - 1}) {
            // Three pages, far apart and not in order; addresses only, no memory.
            driver.init(kSeedKeys);
            uint64_t start = 0x10000000000 + lead;
            const uint64_t pages[3] = {0x20000000000, 0x10000000000, 0x30000000000};
            ASSERT_EQ(driver.write_mtt(50, pages, 3), 0);
            ASSERT_EQ(sw2hw(driver.mpt_mailbox(5, start, 3 * page - lead, 50, TestDriver::kRw, kPd, shift), 5), 0);
            for (uint64_t at : std::initializer_list<uint64_t>{lead, page - 1, page, page + 1, 2 * page - 1,
                                                               2 * page, 3 * page - 1}) {
                if (at < lead)
                    continue;
                EXPECT_EQ(dma_of(5, 0x10000000000 + at), pages[at / page] + at % page) << shift << " " << lead;
            }
            EXPECT_EQ(dma_of(5, 0x10000000000 + 3 * page), 0u);
        }
    }
}

TEST_F(MemoryTest, SegmentsMergeWhereMemoryIsContiguous)
{
    auto mr = driver.create_mr(0x123, 5 * 4096);
    SegmentArray<1> one;
    ASSERT_TRUE(memory().translate(Key(mr.key), kPd, 0x200, 4 * 4096, Access::LocalWrite, one));
    EXPECT_EQ(one[0].dma, mr.dma + 0x200 - 0x123);
    EXPECT_EQ(one[0].length, 4u * 4096);
    EXPECT_EQ(one[0].pointer, host.at(one[0].dma));

    // Scattered: 4096 bytes at an odd offset touch two pages.
    uint64_t pages[2];
    pages[1] = host.alloc(4096);
    pages[0] = host.alloc(4096);
    ASSERT_EQ(driver.write_mtt(1000, pages, 2), 0);
    ASSERT_EQ(sw2hw(driver.mpt_mailbox(900, 0, 8192, 1000), 900), 0);
    SegmentArray<2> two;
    ASSERT_TRUE(memory().translate(Key(900), kPd, 100, 4096, Access::LocalWrite, two));
    ASSERT_EQ(two.size(), 2u);
    EXPECT_EQ(two[0].dma, pages[0] + 100);
    EXPECT_EQ(two[0].length, 3996u);
    EXPECT_EQ(two[1].dma, pages[1]);
    EXPECT_EQ(two[1].length, 100u);
    one.clear();
    EXPECT_FALSE(memory().translate(Key(900), kPd, 100, 4096, Access::LocalWrite, one));
}

TEST_F(MemoryTest, Physical)
{
    hghca_mpt mpt = driver.mpt_mailbox(5, 0, ~0ull, 0);
    mpt.flags |= be32(HGHCA_MPT_FLAG_PHYSICAL);
    ASSERT_EQ(sw2hw(mpt, 5), 0);
    uint64_t at = host.alloc(8192);
    SegmentArray<2> s;
    ASSERT_TRUE(memory().translate(Key(5), kPd, at + 100, 8000, Access::LocalWrite, s));
    ASSERT_EQ(s.size(), 1u);
    EXPECT_EQ(s[0].pointer, host.at(at + 100));
    // Where there is no memory there is an address, and no pointer.
    s.clear();
    ASSERT_TRUE(memory().translate(Key(5), kPd, 0x1000, 16, Access::LocalWrite, s));
    EXPECT_EQ(s[0].pointer, nullptr);
    uint32_t word = 0;
    EXPECT_FALSE(memory().read(Key(5), kPd, 0x1000, &word, 4));
    EXPECT_FALSE(memory().write(Key(5), kPd, 0x1000, &word, 4));
}

TEST_F(MemoryTest, ReadAndWriteDirectAndByCopy)
{
    uint64_t a = host.alloc(4096), gap = host.alloc(4096), b = host.alloc(4096);
    (void)gap;
    uint64_t pages[2] = {b, a};
    ASSERT_EQ(driver.write_mtt(1000, pages, 2), 0);
    ASSERT_EQ(sw2hw(driver.mpt_mailbox(900, 0x100, 8192 - 0x100, 1000), 900), 0);
    for (int mode = 0; mode < 3; mode++) {
        host.unmappable.clear();
        host.copy_only = mode == 2;
        if (mode == 1)
            host.unmappable.push_back({a, 4096});
        device.dma_changed();
        std::vector<uint8_t> out(3000), in(3000);
        for (size_t i = 0; i < out.size(); i++)
            out[i] = uint8_t(i * 7 + mode);
        ASSERT_TRUE(memory().write(Key(900), kPd, 3000, out.data(), 3000));
        EXPECT_EQ(*host.at(b + 3000), out[0]);
        EXPECT_EQ(*host.at(a), out[1096]);
        ASSERT_TRUE(memory().read(Key(900), kPd, 3000, in.data(), 3000));
        EXPECT_EQ(in, out);
        EXPECT_FALSE(memory().write(Key(900), kPd, 8000, out.data(), 193));
        EXPECT_FALSE(memory().read(Key(900), kPd, 0xff, in.data(), 1));
        EXPECT_FALSE(memory().read(Key(900), kPd + 1, 3000, in.data(), 1));
    }
    // A mapped and an unmapped page do not merge.
    host.copy_only = false;
    host.unmappable = {{a, 4096}};
    device.dma_changed();
    SegmentArray<2> s;
    ASSERT_TRUE(memory().translate(Key(900), kPd, 4000, 200, Access::LocalWrite, s));
    EXPECT_NE(s[0].pointer, nullptr);
    EXPECT_EQ(s[1].pointer, nullptr);
}

TEST_F(MemoryTest, ReadOnlyRegionsAreNotWritten)
{
    auto mr = driver.create_mr(0, 4096, 0);
    uint32_t word = 5;
    EXPECT_FALSE(memory().write(Key(mr.key), kPd, 0, &word, 4));
    EXPECT_TRUE(memory().read(Key(mr.key), kPd, 0, &word, 4));
    EXPECT_EQ(word, 0u);
}

TEST_F(MemoryTest, PointersAreAskedForOnceUntilDmaChanges)
{
    auto mr = driver.create_mr(0, 64 * 4096);
    SegmentArray<1> s;
    ASSERT_TRUE(memory().translate(Key(mr.key), kPd, 0, 64 * 4096, Access::LocalWrite, s));
    uint64_t maps = host.maps;
    for (int i = 0; i < 100; i++) {
        s.clear();
        ASSERT_TRUE(memory().translate(Key(mr.key), kPd, 0, 64 * 4096, Access::LocalWrite, s));
    }
    EXPECT_EQ(host.maps, maps);
    host.copy_only = true;
    device.dma_changed();
    s.clear();
    ASSERT_TRUE(memory().translate(Key(mr.key), kPd, 0, 64 * 4096, Access::LocalWrite, s));
    EXPECT_EQ(s[0].pointer, nullptr);
}

TEST_F(MemoryTest, TableSizeOfOneAndBeforeInit)
{
    driver.reset();
    EXPECT_EQ(memory().find(Key(0)), nullptr);
    EXPECT_EQ(memory().find(Key(5)), nullptr);
    driver.layout.log_mpts = 0;
    driver.init(kSeedKeys);
    EXPECT_EQ(memory().find(Key(5)), nullptr);
    EXPECT_EQ(sw2hw(driver.mpt_mailbox(0, 0, 4096, 1), 0), HGHCA_CMD_STAT_BAD_INDEX);
}

}  // namespace
}  // namespace hghca::test::memory_test
