// SPDX-License-Identifier: GPL-2.0-or-later
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "wire/icrc.h"

namespace hghca {
namespace {

// The definition, bit by bit (IEEE 802.3, 3.2.9).
uint32_t by_bits(uint32_t crc, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return crc;
}

std::vector<uint8_t> noise(size_t n)
{
    std::vector<uint8_t> bytes(n);
    uint32_t x = 12345;
    for (uint8_t &b : bytes)
        b = uint8_t((x = x * 1664525 + 1013904223) >> 24);
    return bytes;
}

TEST(Icrc, CheckValue)
{
    // The check value that catalogues of CRCs give for CRC-32.
    EXPECT_EQ(~crc32_update(kCrcStart, "123456789", 9), 0xcbf43926u);
    EXPECT_EQ(crc32_update(kCrcStart, nullptr, 0), kCrcStart);
}

TEST(Icrc, BothWaysAgreeWithTheDefinition)
{
    std::vector<uint8_t> bytes = noise(9300);
    for (size_t n : {0, 1, 7, 8, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 79, 80, 127, 128, 129, 191, 192, 193,
                     255, 256, 511, 512, 513, 767, 768, 1023, 1024, 1025, 4095, 4096, 4097, 9216})
        for (size_t at : {0, 1, 7, 9}) {
            uint32_t expected = by_bits(kCrcStart ^ uint32_t(n), &bytes[at], n);
            EXPECT_EQ(crc32_by_tables(kCrcStart ^ uint32_t(n), &bytes[at], n), expected) << n;
            if (crc32_has_folding()) {
                EXPECT_EQ(crc32_by_folding(kCrcStart ^ uint32_t(n), &bytes[at], n), expected) << n;
            }
        }
}

// With a place in front and one behind that a copy must not change.
TEST(Icrc, ACopyHasAllBytesAndTheirCrc)
{
    const std::vector<uint8_t> bytes = noise(9300);
    for (size_t n = 0; n <= 1100; n++)
        for (const size_t at : {0u, 7u, 64u}) {
            std::vector<uint8_t> to(n + 2, 0xee);
            const uint32_t crc = crc32_copy(kCrcStart ^ uint32_t(n), &to[1], &bytes[at], n);
            ASSERT_EQ(crc, by_bits(kCrcStart ^ uint32_t(n), &bytes[at], n)) << n;
            ASSERT_TRUE(std::equal(bytes.begin() + ptrdiff_t(at), bytes.begin() + ptrdiff_t(at + n), to.begin() + 1)) << n;
            ASSERT_EQ(to.front(), 0xee);
            ASSERT_EQ(to.back(), 0xee);
        }
    std::vector<uint8_t> to(4096);
    EXPECT_EQ(crc32_copy(kCrcStart, to.data(), bytes.data(), 4096), by_bits(kCrcStart, bytes.data(), 4096));
    EXPECT_TRUE(std::equal(to.begin(), to.end(), bytes.begin()));
}

TEST(Icrc, AnySplitGivesTheSame)
{
    std::vector<uint8_t> bytes = noise(1500);
    uint32_t whole = crc32_update(kCrcStart, bytes.data(), bytes.size());
    for (size_t cut = 0; cut <= bytes.size(); cut++) {
        uint32_t crc = crc32_update(kCrcStart, bytes.data(), cut);
        EXPECT_EQ(crc32_update(crc, bytes.data() + cut, bytes.size() - cut), whole);
    }
}

}  // namespace
}  // namespace hghca
