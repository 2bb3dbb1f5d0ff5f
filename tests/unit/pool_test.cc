// SPDX-License-Identifier: GPL-2.0-or-later
// Memory that is allocated once: pools of objects, rings of frames, lines of CQs. Each against a container of the
// standard library, over random sequences of operations.
#include <algorithm>
#include <deque>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "allocations.h"
#include "jingzhao/waiting_cqs.h"
#include "pool.h"
#include "port/frame_ring.h"

namespace hghca::test::pool_test {
namespace {

struct Object {
    uint64_t value;
    uint64_t other[5];
};

TEST(Pool, KeepsWhatItHolds)
{
    constexpr size_t kCapacity = 50;
    Pool<Object> pool(kCapacity);
    std::vector<std::pair<Object *, uint64_t>> held;
    std::minstd_rand random(1);
    for (uint64_t n = 0; n < 20000; n++) {
        if (held.size() < kCapacity && random() % 2) {
            held.emplace_back(&pool.take({n, {n, n, n, n, n}}), n);
        } else if (!held.empty()) {
            std::swap(held[random() % held.size()], held.back());
            ASSERT_EQ(held.back().first->value, held.back().second);
            ASSERT_EQ(held.back().first->other[4], held.back().second);
            pool.give(*held.back().first);
            held.pop_back();
        }
    }
    std::sort(held.begin(), held.end());
    for (size_t i = 1; i < held.size(); i++)
        ASSERT_GE(held[i].first - held[i - 1].first, 1);
}

TEST(Pool, AnArrayBeginsWithZeros)
{
    ZeroedArray<uint32_t> array(1000);
    ASSERT_EQ(array.size(), 1000u);
    for (size_t i = 0; i < array.size(); i++) {
        ASSERT_EQ(array[i], 0u);
        array[i] = 0xffffffff;
    }
    array = ZeroedArray<uint32_t>(1000);
    EXPECT_EQ(array[999], 0u);
    EXPECT_EQ(ZeroedArray<uint32_t>().size(), 0u);
}

#if HGHCA_ADDRESS_SANITIZER
TEST(PoolDeathTest, AnObjectThatWasGivenBackIsNotLookedAt)
{
    Pool<Object> pool(2);
    Object &object = pool.take({});
    pool.give(object);
    EXPECT_DEATH(object.value = 1, "use-after-poison");
    pool.take({7, {}}).value = 8;
}

TEST(Pool, AnAllocationInsideIsCounted)
{
    ASSERT_TRUE(Allocations::watched);
    const uint64_t before = Allocations::count;
    std::vector<int> outside(10);
    EXPECT_EQ(Allocations::count, before);
    {
        const Inside inside;
        std::vector<int> counted(10);
        const Outside elsewhere;
        std::vector<int> not_counted(10);
    }
    EXPECT_EQ(Allocations::count, before + 1);
}
#endif

TEST(FrameRing, GivesFramesBackInOrderAndWhole)
{
    constexpr size_t kBytes = 1000, kLeast = 60;
    FrameRing ring(kBytes / kLeast, kBytes);
    std::deque<std::vector<uint8_t>> reference;
    size_t held = 0;
    unsigned wrapped = 0;
    std::minstd_rand random(1);
    for (unsigned n = 0; n < 20000; n++) {
        const size_t bytes = kLeast + random() % 300;
        if (held + bytes <= kBytes && random() % 2) {
            std::vector<uint8_t> frame(bytes);
            std::generate(frame.begin(), frame.end(), [&] { return uint8_t(random()); });
            // In two parts, and behind an offset.
            const iovec parts[2] = {{frame.data(), 20}, {frame.data() + 20, bytes - 20}};
            ring.push({parts, 5, bytes - 5});
            reference.emplace_back(frame.begin() + 5, frame.end());
            held += bytes;
        } else if (!reference.empty()) {
            ASSERT_FALSE(ring.empty());
            const FrameRing::Frame frame = ring.pop();
            std::vector<uint8_t> got;
            for (size_t i = 0; i < frame.count; i++) {
                const auto *part = static_cast<const uint8_t *>(frame.parts[i].iov_base);
                got.insert(got.end(), part, part + frame.parts[i].iov_len);
            }
            wrapped += frame.count == 2;
            ASSERT_EQ(got, reference.front());
            ASSERT_EQ(frame.bytes, got.size());
            held -= got.size() + 5;
            reference.pop_front();
        }
        ASSERT_EQ(ring.empty(), reference.empty());
    }
    EXPECT_GT(wrapped, 100u);
    ring.clear();
    EXPECT_TRUE(ring.empty());
}

TEST(WaitingCqs, StandInTheirLinesInOrder)
{
    constexpr uint32_t kCqs = 40, kEqs = 4;
    WaitingCqs waiting(kCqs, kEqs);
    std::vector<std::deque<Cqn>> reference(kEqs);
    std::minstd_rand random(1);
    EXPECT_TRUE(waiting.exists(Cqn(kCqs - 1)));
    EXPECT_FALSE(waiting.exists(Cqn(kCqs)));
    for (unsigned n = 0; n < 20000; n++) {
        const auto cqn = Cqn(random() % kCqs);
        const uint32_t eqn = random() % kEqs;
        if (n % 500 == 499) {
            waiting.clear(eqn);
            reference[eqn].clear();
        } else if (!waiting.waits(cqn)) {
            waiting.push(eqn, cqn);
            reference[eqn].push_back(cqn);
        } else {
            waiting.remove(cqn);
            for (auto &line : reference)
                line.erase(std::remove(line.begin(), line.end(), cqn), line.end());
        }
        for (uint32_t e = 0; e < kEqs; e++) {
            ASSERT_EQ(waiting.count(e), reference[e].size());
            ASSERT_EQ(waiting.empty(e), reference[e].empty());
            if (!reference[e].empty()) {
                ASSERT_EQ(waiting.front(e), reference[e].front());
            }
        }
    }
    for (uint32_t e = 0; e < kEqs; e++)
        for (; !reference[e].empty(); reference[e].pop_front()) {
            ASSERT_EQ(waiting.front(e), reference[e].front());
            waiting.remove(waiting.front(e));
        }
    waiting.push(1, Cqn(7));
    waiting.clear();
    EXPECT_FALSE(waiting.waits(Cqn(7)));
    EXPECT_TRUE(waiting.empty(1));
}

}  // namespace
}  // namespace hghca::test::pool_test
