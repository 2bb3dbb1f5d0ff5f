// SPDX-License-Identifier: GPL-2.0-or-later
// Regions in memory on the device (interface document, 4.24).
#include <gtest/gtest.h>

#include <cstring>

#include "verbs.h"

namespace hghca::test::device_memory_test {
namespace {

constexpr uint32_t kPd = TestDriver::kPd;
constexpr uint32_t kRw = TestDriver::kRw;
constexpr uint64_t kSize = 64 << 10;

hghca_mpt on_device(TestDriver &driver, uint32_t key, uint64_t start, uint64_t length, uint64_t offset,
                    uint32_t access = kRw)
{
    hghca_mpt mpt = driver.mpt_mailbox(key, start, length, offset, access);
    mpt.flags |= be32(HGHCA_MPT_FLAG_DEVICE);
    return mpt;
}

class OnDevice : public ::testing::Test {
protected:
    explicit OnDevice(uint32_t cache_entries = 0) : net(cache_entries) {}

    static uint8_t sw2hw(Node &node, const hghca_mpt &mpt)
    {
        return node.driver.post(HGHCA_CMD_SW2HW_MPT, mpt, node.driver.mpt_index(be32(mpt.key)));
    }
    // A region of all of it, but for its first and last bytes.
    static uint32_t region(Node &node, uint64_t start = 0)
    {
        const uint32_t key = node.driver.new_key();
        EXPECT_EQ(sw2hw(node, on_device(node.driver, key, start, kSize - 40, 20)), 0);
        return key;
    }
    static uint8_t *at(Node &node, uint64_t offset) { return node.host.on_device().pointer + offset; }

    Network net;
};

TEST_F(OnDevice, WhatACommandMayAskFor)
{
    struct {
        const char *what;
        uint64_t offset, length;
        uint32_t flags;
        uint8_t status;
    } cases[] = {
        {"all of it", 0, kSize, 0, 0},
        {"a byte at the end", kSize - 1, 1, 0, 0},
        {"nothing at the end", kSize, 0, 0, 0},
        {"nothing beyond the end", kSize + 1, 0, 0, HGHCA_CMD_STAT_BAD_SEG_PARAM},
        {"one byte too many", 0, kSize + 1, 0, HGHCA_CMD_STAT_BAD_SEG_PARAM},
        {"beyond the end", kSize, 1, 0, HGHCA_CMD_STAT_BAD_SEG_PARAM},
        {"far beyond", 1ull << 40, 1, 0, HGHCA_CMD_STAT_BAD_SEG_PARAM},
        {"so long that its end wraps", kSize - 1, ~0ull - 0x1000, 0, HGHCA_CMD_STAT_BAD_SEG_PARAM},
        {"so far that its end wraps", ~0ull, 2, 0, HGHCA_CMD_STAT_BAD_SEG_PARAM},
        {"physical as well", 0, 64, HGHCA_MPT_FLAG_PHYSICAL, HGHCA_CMD_STAT_BAD_PARAM},
        {"for fast registration", 0, 64, HGHCA_MPT_FLAG_FAST_REG, HGHCA_CMD_STAT_BAD_PARAM},
        {"free", 0, 64, HGHCA_MPT_FLAG_FREE, HGHCA_CMD_STAT_BAD_PARAM},
    };
    TestDriver &driver = net.a.driver;
    for (const auto &c : cases) {
        hghca_mpt mpt = on_device(driver, driver.new_key(), 0x1000, c.length, c.offset);
        mpt.flags |= be32(c.flags);
        EXPECT_EQ(sw2hw(net.a, mpt), c.status) << c.what;
    }
    hghca_mpt window = on_device(driver, driver.new_key(), 0, 64, 0);
    window.flags = be32(HGHCA_MPT_FLAG_DEVICE | HGHCA_MPT_FLAG_FREE);
    EXPECT_EQ(sw2hw(net.a, window), HGHCA_CMD_STAT_BAD_PARAM);
}

TEST_F(OnDevice, OnlyWhereItIsTurnedOnAndThere)
{
    Network without(0, kFullCaps & ~HGHCA_CAP_DEVICE_MEMORY);
    EXPECT_EQ(sw2hw(without.a, on_device(without.a.driver, without.a.driver.new_key(), 0, 64, 0)),
              HGHCA_CMD_STAT_BAD_PARAM);

    FakeHost host;
    Device device(host, Config{});
    TestDriver driver(host, device);
    hghca_dev_lim lim;
    ASSERT_EQ(driver.query(HGHCA_CMD_QUERY_DEV_LIM, lim), 0);
    EXPECT_EQ(be32(lim.caps), kFullCaps & ~HGHCA_CAP_DEVICE_MEMORY);
    EXPECT_EQ(lim.log_device_memory, 0);
    EXPECT_EQ(driver.init_hca(kFullCaps), HGHCA_CMD_STAT_BAD_PARAM);
    EXPECT_EQ(driver.init_hca(kFullCaps & ~HGHCA_CAP_DEVICE_MEMORY), 0);
}

TEST_F(OnDevice, TranslatesFromAnyByteOn)
{
    const uint32_t key = region(net.a, 0x12345);
    MemoryTable &memory = *net.a.device.memory;
    PacketSegments s;
    ASSERT_TRUE(memory.translate(Key(key), kPd, 0x12345 + 4070, 4096, Access::LocalWrite, s));
    ASSERT_EQ(s.size(), 1u);
    EXPECT_EQ(s[0].pointer, at(net.a, 20 + 4070));
    EXPECT_EQ(s[0].dma, kDeviceMemoryBase + 20 + 4070);
    EXPECT_EQ(s[0].length, 4096u);
    s.clear();
    EXPECT_FALSE(memory.translate(Key(key), kPd, 0x12345 + kSize - 40, 1, Access::LocalRead, s));
    EXPECT_FALSE(memory.translate(Key(key), kPd, 0x12344, 1, Access::LocalRead, s));
    EXPECT_FALSE(memory.translate(Key(key), kPd + 1, 0x12345, 1, Access::LocalRead, s));
}

TEST_F(OnDevice, WhatIsWrittenIsToldToTheHost)
{
    const uint32_t key = region(net.a);
    net.a.host.record_dirty = true;
    const uint32_t word = 0x11223344;
    ASSERT_TRUE(net.a.device.memory->write(Key(key), kPd, 4, &word, sizeof(word)));
    EXPECT_EQ(std::memcmp(at(net.a, 24), &word, sizeof(word)), 0);
    ASSERT_EQ(net.a.host.dirtied.size(), 1u);
    EXPECT_EQ(net.a.host.dirtied[0].dma, kDeviceMemoryBase + 24);
    EXPECT_EQ(net.a.host.dirtied[0].length, 4u);
}

TEST_F(OnDevice, AQueryGivesTheOffset)
{
    const uint32_t key = region(net.a, 0x100);
    hghca_mpt mpt;
    ASSERT_EQ(net.a.driver.query(HGHCA_CMD_QUERY_MPT, mpt, net.a.driver.mpt_index(key)), 0);
    EXPECT_EQ(be32(mpt.flags) & HGHCA_MPT_FLAG_DEVICE, HGHCA_MPT_FLAG_DEVICE);
    EXPECT_EQ(be32(mpt.mtt_seg_l), 20u);
    EXPECT_EQ(be64(mpt.length), kSize - 40);
}

// What a guest has made of an entry that was put out to its memory, where no command would have let it.
class OnDeviceForged : public OnDevice {
protected:
    OnDeviceForged() : OnDevice(1) {}

    // The flags of the one entry in ICM that is a region on the device.
    static uint32_t *flags_in_icm(FakeHost &host)
    {
        constexpr uint32_t kMptMagic = 0x4d505431, kHeader = 16;
        for (uint64_t dma = FakeHost::kBase; dma < host.end(); dma += 64) {
            auto *flags = host.as<uint32_t>(dma + kHeader);
            if (*host.as<uint32_t>(dma) == kMptMagic && *flags & HGHCA_MPT_FLAG_DEVICE)
                return flags;
        }
        return nullptr;
    }
};

TEST_F(OnDeviceForged, IsNoRegion)
{
    constexpr uint32_t kForged[] = {HGHCA_MPT_FLAG_PHYSICAL, HGHCA_MPT_FLAG_FAST_REG, HGHCA_MPT_FLAG_FREE};
    MemoryTable &memory = *net.a.device.memory;
    const uint32_t key = region(net.a);
    const auto other = net.a.driver.create_mr(0x1000, 4096);
    PacketSegments s;
    for (const uint32_t flag : kForged) {
        memory.trim(0);
        uint32_t *flags = flags_in_icm(net.a.host);
        ASSERT_NE(flags, nullptr);
        *flags |= flag;
        s.clear();
        EXPECT_FALSE(memory.translate(Key(key), kPd, 0, 8, Access::LocalRead, s)) << flag;
        *flags &= ~flag;
        s.clear();
        EXPECT_TRUE(memory.translate(Key(key), kPd, 0, 8, Access::LocalRead, s)) << flag;
        EXPECT_EQ(memory.check(Key(other.key), kPd, 0x1000, 8, Access::LocalRead), Allowed::Yes);
    }
}

// All that goes over the link, from device memory to device memory, also where contexts are evicted all the time.
class OnDeviceTraffic : public OnDevice, public ::testing::WithParamInterface<uint32_t> {
protected:
    OnDeviceTraffic() : OnDevice(GetParam()), p(net.a, net.b, Endpoint::Options{}), from(region(net.a)), to(region(net.b))
    {
        for (uint64_t i = 0; i < kSize; i++) {
            *at(net.a, i) = uint8_t(i * 7 + i / 256);
            *at(net.b, i) = 0xee;
        }
    }
    // The syndrome of the one completion there is at a; 0 is success.
    int done()
    {
        net.pump();
        const auto all = p.a.poll_all();
        EXPECT_EQ(all.size(), 1u);
        return all.empty() ? -1 : all[0].error ? all[0].syndrome : 0;
    }
    // What the region at b begins with, at `offset`.
    uint64_t word(uint64_t offset)
    {
        uint64_t value;
        std::memcpy(&value, at(net.b, 20 + offset), sizeof(value));
        return value;
    }

    Pair p;
    const uint32_t from, to;
};

constexpr uint32_t kLength = 50000;

TEST_P(OnDeviceTraffic, WriteAndRead)
{
    p.a.post(Wqe(HGHCA_OPCODE_RDMA_WRITE).raddr(8, to).data({kLength, from, 100}));
    ASSERT_EQ(done(), 0);
    EXPECT_EQ(std::memcmp(at(net.b, 28), at(net.a, 120), kLength), 0);
    EXPECT_EQ(*at(net.b, 27), 0xee);
    EXPECT_EQ(*at(net.b, 28 + kLength), 0xee);

    std::memset(at(net.a, 0), 0, kSize);
    p.a.post(Wqe(HGHCA_OPCODE_RDMA_READ).raddr(8, to).data({kLength, from, 3}));
    ASSERT_EQ(done(), 0);
    EXPECT_EQ(std::memcmp(at(net.a, 23), at(net.b, 28), kLength), 0);
    EXPECT_EQ(*at(net.a, 22), 0);
    EXPECT_EQ(*at(net.a, 23 + kLength), 0);
}

TEST_P(OnDeviceTraffic, SendAndReceive)
{
    p.b.post_recv({9000, to, 4});
    p.a.post(Wqe(HGHCA_OPCODE_SEND).data({9000, from, 0}));
    ASSERT_EQ(done(), 0);
    const auto received = p.b.poll();
    ASSERT_TRUE(received);
    EXPECT_FALSE(received->error);
    EXPECT_EQ(std::memcmp(at(net.b, 24), at(net.a, 20), 9000), 0);
}

TEST_P(OnDeviceTraffic, BeyondTheRegionIsRefused)
{
    p.a.post(Wqe(HGHCA_OPCODE_RDMA_WRITE).raddr(kSize - 40, to).data({1, from, 0}));
    EXPECT_EQ(done(), HGHCA_SYNDROME_REMOTE_ACCESS_ERR);
    EXPECT_EQ(*at(net.b, kSize - 20), 0xee);
}

// Its place in the memory must be a multiple of 8, too: here that is so from 4 on, not from 8 on.
TEST_P(OnDeviceTraffic, AnAtomicWhereItsWordIsOne)
{
    const uint32_t key = net.b.driver.new_key();
    ASSERT_EQ(sw2hw(net.b, on_device(net.b.driver, key, 0x1000, 64, 24)), 0);
    const uint64_t before = word(4);
    p.a.post(Wqe(HGHCA_OPCODE_ATOMIC_FA).raddr(0x1000, key).atomic(2, 0).data({8, from, 4}));
    ASSERT_EQ(done(), 0);
    EXPECT_EQ(word(4), before + 2);
    EXPECT_EQ(std::memcmp(at(net.a, 24), &before, sizeof(before)), 0);

    p.a.post(Wqe(HGHCA_OPCODE_ATOMIC_FA).raddr(8, to).atomic(2, 0).data({8, from, 4}));
    EXPECT_EQ(done(), HGHCA_SYNDROME_REMOTE_ACCESS_ERR);
    EXPECT_EQ(word(8), before);
}

INSTANTIATE_TEST_SUITE_P(CacheEntries, OnDeviceTraffic, ::testing::Values(0u, 1u));

}  // namespace
}  // namespace hghca::test::device_memory_test
