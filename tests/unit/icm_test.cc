// SPDX-License-Identifier: GPL-2.0-or-later
// MAP_ICM and UNMAP_ICM (interface document, 4.4).
#include <vector>

#include "fixture.h"
#include "jingzhao/icm.h"

namespace hghca::test::icm_test {
namespace {

class IcmTest : public DeviceTest {
protected:
    IcmTest() { driver.reset(); }

    struct Chunk {
        uint64_t address, dma;
        uint32_t pages;
    };
    // The mailbox of 4.4: pairs, the lower number at the higher offset.
    uint8_t map(const std::vector<Chunk> &chunks, uint32_t space = HGHCA_ICM_TPT)
    {
        std::array<uint64_t, 512> words{};
        for (size_t i = 0; i < chunks.size(); i++) {
            size_t entry = i % 2 ? i - 1 : i + 1;
            words[2 * entry] = be64(chunks[i].address);
            words[2 * entry + 1] = be64(chunks[i].dma | chunks[i].pages);
        }
        return driver.post(HGHCA_CMD_MAP_ICM, words, uint32_t(chunks.size()), space);
    }
    bool mapped(uint64_t address, uint64_t length, IcmSpace space = IcmSpace::Tpt)
    {
        return device.icm->mapped(space, address, length);
    }
    // Where the device would write the byte at `address`.
    uint64_t dma_of(uint64_t address, IcmSpace space = IcmSpace::Tpt)
    {
        uint8_t *p = device.icm->pointer(space, address);
        return p ? FakeHost::kBase + uint64_t(p - host.at(FakeHost::kBase)) : 0;
    }
};

TEST_F(IcmTest, PairsStandHighToLow)
{
    uint64_t memory = host.alloc(16 * 4096);
    // Even and odd numbers of chunks, up to a whole mailbox.
    for (size_t n : {1u, 2u, 3u, 4u, 5u, 255u, 256u}) {
        driver.reset();
        std::vector<Chunk> chunks;
        for (size_t i = 0; i < n; i++)
            chunks.push_back({(3 * i + 1) * 4096, memory + (i * 5 % 16) * 4096, 1});
        ASSERT_EQ(map(chunks), 0) << n;
        for (size_t i = 0; i < n; i++) {
            EXPECT_EQ(dma_of(chunks[i].address), chunks[i].dma) << n << " " << i;
            EXPECT_FALSE(mapped(chunks[i].address - 4096, 1));
            EXPECT_FALSE(mapped(chunks[i].address + 4096, 1));
        }
    }
}

TEST_F(IcmTest, TheUnusedHalfOfAnOddTailIsNotLookedAt)
{
    uint64_t memory = host.alloc(4096);
    std::array<uint64_t, 512> words;
    words.fill(~0ull);
    words[2] = be64(0x5000);
    words[3] = be64(memory | 1);
    EXPECT_EQ(driver.post(HGHCA_CMD_MAP_ICM, words, 1, HGHCA_ICM_CONTEXT), 0);
    EXPECT_TRUE(mapped(0x5000, 4096, IcmSpace::Context));
}

TEST_F(IcmTest, TheSpacesAreApart)
{
    uint64_t a = host.alloc(4096), b = host.alloc(4096);
    ASSERT_EQ(map({{0x1000, a, 1}}, HGHCA_ICM_CONTEXT), 0);
    EXPECT_FALSE(mapped(0x1000, 1));
    ASSERT_EQ(map({{0x1000, b, 1}}, HGHCA_ICM_TPT), 0);
    EXPECT_EQ(dma_of(0x1000, IcmSpace::Context), a);
    EXPECT_EQ(dma_of(0x1000, IcmSpace::Tpt), b);
    EXPECT_EQ(driver.unmap_icm(HGHCA_ICM_CONTEXT, 0x1000, 1), 0);
    EXPECT_TRUE(mapped(0x1000, 1));
}

TEST_F(IcmTest, WhatIsRefused)
{
    uint64_t m = host.alloc(16 * 4096);
    constexpr uint64_t kEnd = 1ull << 32;
    struct {
        const char *what;
        std::vector<Chunk> chunks;
        uint8_t status;
    } cases[] = {
        {"no pages", {{0, m, 0}}, HGHCA_CMD_STAT_BAD_PARAM},
        {"no pages, second", {{0, m, 1}, {4096, m, 0}}, HGHCA_CMD_STAT_BAD_PARAM},
        {"not aligned", {{0x800, m, 1}}, HGHCA_CMD_STAT_BAD_PARAM},
        {"at the end", {{kEnd, m, 1}}, HGHCA_CMD_STAT_BAD_PARAM},
        {"past the end", {{kEnd - 4096, m, 2}}, HGHCA_CMD_STAT_BAD_PARAM},
        {"far out", {{~0xfffull, m, 1}}, HGHCA_CMD_STAT_BAD_PARAM},
        {"DMA wraps", {{0, ~0xfffull, 2}}, HGHCA_CMD_STAT_BAD_PARAM},
        {"last page", {{kEnd - 4096, m, 1}}, 0},
        {"twice in one command", {{0, m, 4}, {3 * 4096, m, 2}}, HGHCA_CMD_STAT_RESOURCE_BUSY},
        {"third on first", {{0, m, 1}, {4096, m, 1}, {0, m, 1}}, HGHCA_CMD_STAT_RESOURCE_BUSY},
        {"bad after good", {{0, m, 1}, {4096, m, 1}, {8192 + 1, m, 1}}, HGHCA_CMD_STAT_BAD_PARAM},
    };
    for (auto &c : cases) {
        driver.reset();
        EXPECT_EQ(map(c.chunks), c.status) << c.what;
        for (const Chunk &chunk : c.chunks)
            EXPECT_EQ(mapped(chunk.address & ~0xfffull, 1), c.status == 0) << c.what;
    }
}

TEST_F(IcmTest, BusyLeavesTheOldMapping)
{
    uint64_t a = host.alloc(4096), b = host.alloc(4 * 4096);
    ASSERT_EQ(map({{0x3000, a, 1}}), 0);
    EXPECT_EQ(map({{0x8000, b, 1}, {0x1000, b, 4}}), HGHCA_CMD_STAT_RESOURCE_BUSY);
    EXPECT_EQ(dma_of(0x3000), a);
    EXPECT_FALSE(mapped(0x1000, 1));
    EXPECT_FALSE(mapped(0x2000, 1));
    EXPECT_FALSE(mapped(0x4000, 1));
    EXPECT_FALSE(mapped(0x8000, 1));
}

TEST_F(IcmTest, NumberOfChunks)
{
    for (uint32_t n : {0u, 257u, ~0u})
        EXPECT_EQ(driver.command(HGHCA_CMD_MAP_ICM, driver.in_mailbox(), n, HGHCA_ICM_TPT).status,
                  HGHCA_CMD_STAT_BAD_PARAM)
            << n;
}

TEST_F(IcmTest, AChunkOf4095PagesAcrossManyLeaves)
{
    ASSERT_EQ(map({{0x1000, FakeHost::kBase, 4095}, {0x1000000, FakeHost::kBase, 4095}}), 0);
    EXPECT_TRUE(mapped(0x1000, 2 * 4095ull * 4096));
    EXPECT_EQ(dma_of(0x1000000 + 4094 * 4096ull + 77), FakeHost::kBase + 4094 * 4096ull + 77);
    EXPECT_EQ(driver.unmap_icm(HGHCA_ICM_TPT, 0x1000, 2 * 4095), 0);
    EXPECT_FALSE(mapped(0x1000000, 1));
}

TEST_F(IcmTest, Unmap)
{
    uint64_t m = host.alloc(8 * 4096);
    ASSERT_EQ(map({{0x2000, m, 4}}), 0);
    EXPECT_EQ(driver.unmap_icm(HGHCA_ICM_TPT, 0x2000, 5), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(driver.unmap_icm(HGHCA_ICM_TPT, 0x1000, 2), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(driver.unmap_icm(HGHCA_ICM_TPT, 0x2800, 1), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(driver.unmap_icm(HGHCA_ICM_TPT, 0x2000, 0), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(driver.unmap_icm(HGHCA_ICM_TPT, 0x2000, ~0u), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(driver.unmap_icm(HGHCA_ICM_TPT, ~0xfffull, 1), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(driver.unmap_icm(HGHCA_ICM_CONTEXT, 0x2000, 1), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_TRUE(mapped(0x2000, 4 * 4096));
    // Part of a chunk, and then the rest.
    EXPECT_EQ(driver.unmap_icm(HGHCA_ICM_TPT, 0x3000, 2), 0);
    EXPECT_TRUE(mapped(0x2000, 4096));
    EXPECT_FALSE(mapped(0x3000, 1));
    EXPECT_TRUE(mapped(0x5000, 4096));
    EXPECT_EQ(map({{0x3000, m, 2}}), 0);
    EXPECT_EQ(driver.unmap_icm(HGHCA_ICM_TPT, 0x2000, 4), 0);
}

TEST_F(IcmTest, LoadAndStoreAcrossPagesDirectAndByCopy)
{
    uint64_t a = host.alloc(4096), b = host.alloc(4096);
    ASSERT_EQ(map({{0x1000, b, 1}, {0x2000, a, 1}}), 0);
    for (bool copy : {false, true}) {
        host.copy_only = copy;
        device.dma_changed();
        uint8_t out[64], in[64];
        for (unsigned i = 0; i < 64; i++)
            out[i] = uint8_t(i + copy);
        EXPECT_TRUE(device.icm->store(IcmSpace::Tpt, 0x2000 - 32, out, 64));
        EXPECT_EQ(host.at(b)[4095], 31 + copy);
        EXPECT_EQ(host.at(a)[0], 32 + copy);
        EXPECT_TRUE(device.icm->load(IcmSpace::Tpt, 0x2000 - 32, in, 64));
        EXPECT_EQ(memcmp(in, out, 64), 0);
        // Half mapped: nothing is moved.
        memset(out, 0xee, 64);
        EXPECT_FALSE(device.icm->store(IcmSpace::Tpt, 0x3000 - 32, out, 64));
        EXPECT_NE(host.at(a)[4095], 0xee);
        EXPECT_FALSE(device.icm->load(IcmSpace::Tpt, 0x3000 - 32, in, 64));
    }
}

TEST_F(IcmTest, WritesThroughPointersAreMarkedDirty)
{
    uint64_t a = host.alloc(4096);
    ASSERT_EQ(map({{0x1000, a, 1}}), 0);
    host.record_dirty = true;
    uint64_t word = 1;
    ASSERT_TRUE(device.icm->store(IcmSpace::Tpt, 0x1010, &word, 8));
    ASSERT_EQ(host.dirtied.size(), 1u);
    EXPECT_EQ(host.dirtied[0].dma, a + 0x10);
    EXPECT_EQ(host.dirtied[0].length, 8u);
}

}  // namespace
}  // namespace hghca::test::icm_test
