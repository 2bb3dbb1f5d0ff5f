// SPDX-License-Identifier: GPL-2.0-or-later
// The rings of a link in shared memory: frames in order, full rings, kicks, two threads, and a peer that writes anything.
#include "link/shared_ring.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

namespace hghca::test::shared_ring_test {
namespace {

constexpr size_t kRing = SharedRings::kMinBytes;

// Both sides, and the memory between them.
struct Rig {
    explicit Rig(size_t ring_bytes = kRing)
        : ring_bytes(ring_bytes), memory(static_cast<uint8_t *>(std::aligned_alloc(64, SharedRings::bytes(ring_bytes))))
    {
        std::memset(memory.get(), 0, SharedRings::bytes(ring_bytes));
        a = std::make_unique<RingPair>(memory.get(), ring_bytes, true);
        b = std::make_unique<RingPair>(memory.get(), ring_bytes, false);
    }
    // The words of the ring from a to b, and its data.
    SharedRing &words() { return *reinterpret_cast<SharedRing *>(memory.get()); }
    uint8_t *data() { return memory.get() + SharedRings::kHeadBytes; }

    struct Free {
        void operator()(uint8_t *bytes) const { std::free(bytes); }
    };
    size_t ring_bytes;
    std::unique_ptr<uint8_t, Free> memory;
    std::unique_ptr<RingPair> a, b;
};

std::vector<uint8_t> numbered(size_t bytes, uint32_t seed)
{
    std::vector<uint8_t> out(bytes);
    for (size_t i = 0; i < bytes; i++)
        out[i] = uint8_t(seed * 31 + i * 7);
    return out;
}

// In two parts.
RingResult write(RingProducer &to, std::vector<uint8_t> frame)
{
    const size_t first = frame.size() / 3;
    const iovec parts[] = {{frame.data(), first}, {frame.data() + first, frame.size() - first}};
    return to.write(parts, 2);
}

std::vector<uint8_t> frame_of(RingConsumer &from)
{
    const auto frame = from.frame();
    return {frame.begin(), frame.end()};
}

size_t size_of(uint32_t i) { return 1 + i * 977 % SharedRings::kMaxFrame; }

TEST(SharedRing, FramesOfAllSizesAroundTheEnd)
{
    Rig rig;
    for (uint32_t i = 0; i < 1000; i++) {
        ASSERT_EQ(write(rig.a->out, numbered(size_of(i), i)), RingResult::Done);
        ASSERT_EQ(write(rig.b->out, numbered(size_of(i + 5), i)), RingResult::Done);
        ASSERT_EQ(rig.b->in.read(), RingResult::Done);
        ASSERT_EQ(frame_of(rig.b->in), numbered(size_of(i), i));
        ASSERT_EQ(rig.a->in.read(), RingResult::Done);
        ASSERT_EQ(frame_of(rig.a->in), numbered(size_of(i + 5), i));
        rig.a->in.end_burst();
        rig.b->in.end_burst();
    }
    EXPECT_EQ(rig.b->in.read(), RingResult::None);
    EXPECT_FALSE(rig.b->in.pending());
}

TEST(SharedRing, WhatCannotBeSentIsLost)
{
    Rig rig;
    EXPECT_EQ(write(rig.a->out, numbered(SharedRings::kMaxFrame + 1, 1)), RingResult::Done);
    EXPECT_EQ(write(rig.a->out, {}), RingResult::Done);
    EXPECT_EQ(rig.b->in.read(), RingResult::None);
    EXPECT_EQ(write(rig.a->out, numbered(SharedRings::kMaxFrame, 1)), RingResult::Done);
    EXPECT_EQ(rig.b->in.read(), RingResult::Done);
    EXPECT_EQ(rig.b->in.frame().size(), SharedRings::kMaxFrame);
}

TEST(SharedRing, AFullRingKicksWhenHalfIsFree)
{
    Rig rig;
    for (int round = 0; round < 20; round++) {
        uint32_t sent = 0;
        while (write(rig.a->out, numbered(5000, sent)) == RingResult::Done)
            sent++;
        ASSERT_GE(sent, kRing / 5008 - 1);
        EXPECT_EQ(write(rig.a->out, numbered(5000, sent)), RingResult::None);
        uint32_t kicks = 0, before = 0;
        for (uint32_t i = 0; i < sent; i++) {
            ASSERT_EQ(rig.b->in.read(), RingResult::Done);
            ASSERT_EQ(frame_of(rig.b->in), numbered(5000, i));
            kicks += rig.b->in.end_burst();
            before += !kicks;
        }
        EXPECT_EQ(kicks, 1u);
        EXPECT_GT(before, sent / 3);
        EXPECT_LT(before, 2 * sent / 3);
    }
}

TEST(SharedRing, AKickForEachBurstThatFindsTheConsumerWaiting)
{
    Rig rig;
    EXPECT_TRUE(rig.b->in.pending());
    EXPECT_EQ(rig.b->in.read(), RingResult::None);
    for (uint32_t round = 0; round < 5; round++) {
        EXPECT_FALSE(rig.a->out.end_burst());
        ASSERT_EQ(write(rig.a->out, numbered(100, 1)), RingResult::Done);
        ASSERT_EQ(write(rig.a->out, numbered(100, 2)), RingResult::Done);
        EXPECT_TRUE(rig.a->out.in_burst());
        EXPECT_TRUE(rig.a->out.end_burst());
        // Before it is awake, and while it reads, it is not kicked again.
        ASSERT_EQ(write(rig.a->out, numbered(100, 3)), RingResult::Done);
        EXPECT_FALSE(rig.a->out.end_burst());
        EXPECT_EQ(rig.b->in.read(), RingResult::Done);
        ASSERT_EQ(write(rig.a->out, numbered(100, 4)), RingResult::Done);
        EXPECT_FALSE(rig.a->out.end_burst());
        for (int i = 0; i < 3; i++)
            EXPECT_EQ(rig.b->in.read(), RingResult::Done);
        EXPECT_TRUE(rig.b->in.pending());
        EXPECT_EQ(rig.b->in.read(), RingResult::None);
        EXPECT_FALSE(rig.b->in.pending());
    }
}

TEST(SharedRing, NoKickForFramesThatAreTaken)
{
    Rig rig;
    EXPECT_EQ(rig.b->in.read(), RingResult::None);
    for (uint32_t round = 0; round < 5; round++) {
        ASSERT_EQ(write(rig.a->out, numbered(100, 1)), RingResult::Done);
        ASSERT_EQ(rig.b->in.read(), RingResult::Done);
        ASSERT_EQ(rig.b->in.read(), RingResult::None);
        EXPECT_FALSE(rig.a->out.end_burst());
        // The consumer still waits, and this frame is the first that it has to be kicked for.
        ASSERT_EQ(write(rig.a->out, numbered(100, 2)), RingResult::Done);
        EXPECT_TRUE(rig.a->out.end_burst());
        ASSERT_EQ(rig.b->in.read(), RingResult::Done);
        ASSERT_EQ(rig.b->in.read(), RingResult::None);
    }
}

// ---- two threads

// What a process sleeps on.
class Bell {
public:
    void ring()
    {
        std::lock_guard guard(mutex_);
        rung_ = true;
        condition_.notify_one();
    }
    bool wait()
    {
        std::unique_lock guard(mutex_);
        const bool rung = condition_.wait_for(guard, std::chrono::seconds(20), [this] { return rung_; });
        rung_ = false;
        return rung;
    }

private:
    std::mutex mutex_;
    std::condition_variable condition_;
    bool rung_ = false;
};

TEST(SharedRing, TwoThreadsLoseNoFrameAndNoKick)
{
    constexpr uint32_t kFrames = 20000;
    Rig rig;
    Bell data, room;
    std::atomic<bool> failed = false;
    std::thread producer([&] {
        for (uint32_t i = 0; i < kFrames && !failed;) {
            if (write(rig.a->out, numbered(size_of(i) % 3000 + 1, i)) == RingResult::Done) {
                i++;
                if (i % 7 && i < kFrames)
                    continue;
                if (rig.a->out.end_burst())
                    data.ring();
            } else {
                if (rig.a->out.end_burst())
                    data.ring();
                if (!room.wait()) {
                    ADD_FAILURE() << "no kick for room, frame " << i;
                    failed = true;
                }
            }
        }
    });
    for (uint32_t i = 0; i < kFrames && !failed;) {
        const RingResult result = rig.b->in.read();
        if (result == RingResult::Done) {
            EXPECT_EQ(frame_of(rig.b->in), numbered(size_of(i) % 3000 + 1, i));
            i++;
        }
        if (result == RingResult::None || i % 5 == 0) {
            if (rig.b->in.end_burst())
                room.ring();
        }
        if (result == RingResult::None && !data.wait()) {
            ADD_FAILURE() << "no kick for data, frame " << i;
            failed = true;
        }
        ASSERT_NE(result, RingResult::Broken);
    }
    producer.join();
}

// ---- a peer that writes anything

TEST(HostileRing, PositionsThatCannotBe)
{
    for (uint64_t produced : {uint64_t(4), uint64_t(kRing + 8), ~uint64_t(7), uint64_t(1) << 63}) {
        Rig rig;
        rig.words().produced = produced;
        EXPECT_EQ(rig.b->in.read(), RingResult::Broken) << produced;
    }
    for (uint64_t consumed : {uint64_t(kRing * 2), ~uint64_t(0), uint64_t(1) << 63}) {
        Rig rig;
        rig.words().consumed = consumed;
        RingResult result;
        for (unsigned i = 0; (result = write(rig.a->out, numbered(5000, 1))) == RingResult::Done; i++)
            ASSERT_LT(i, kRing / 5000 + 1);
        EXPECT_EQ(result, RingResult::Broken) << consumed;
    }
}

TEST(HostileRing, LengthsThatCannotBe)
{
    for (uint32_t length : {uint32_t(0), uint32_t(17), uint32_t(SharedRings::kMaxFrame + 1), uint32_t(INT32_MAX),
                            SharedRings::kPad - 1, SharedRings::kPad}) {
        Rig rig;
        std::memcpy(rig.data(), &length, sizeof(length));
        rig.words().produced = 24;
        EXPECT_EQ(rig.b->in.read(), RingResult::Broken) << length;
    }
}

TEST(HostileRing, ARecordAcrossTheEndAndPadsAlone)
{
    for (uint32_t length : {uint32_t(100), SharedRings::kPad}) {
        Rig rig;
        while (rig.words().produced + 5008 + 8 <= kRing) {
            ASSERT_EQ(write(rig.a->out, numbered(5000, 1)), RingResult::Done);
            ASSERT_EQ(rig.b->in.read(), RingResult::Done);
        }
        const uint64_t at = rig.words().produced;
        while (rig.words().produced + 16 < kRing) {
            ASSERT_EQ(write(rig.a->out, numbered(8, 1)), RingResult::Done);
            ASSERT_EQ(rig.b->in.read(), RingResult::Done);
        }
        const size_t left = kRing - rig.words().produced;
        ASSERT_GT(left, 0u) << at;
        ASSERT_LE(left, 16u);
        std::memcpy(rig.data() + rig.words().produced, &length, sizeof(length));
        // A record that does not end before the end of the ring; a pad with nothing behind it.
        rig.words().produced += length == SharedRings::kPad ? left : 112;
        EXPECT_EQ(rig.b->in.read(), RingResult::Broken) << length;
    }
}

// Whatever the words and records are, a call ends, and gives nothing, a frame of a length that can be, or Broken. The
// address sanitizer looks at the rest: the memory ends with the rings.
TEST(HostileRing, AnythingAtAnyTime)
{
    std::mt19937_64 random(1);
    unsigned good = 0, broken = 0, none = 0;
    auto number = [&random](uint64_t near) -> uint64_t {
        switch (random() % 6) {
        case 0:
            return random();
        case 1:
            return random() % (2 * kRing);
        case 2:
            return near + random() % 64;
        default:
            return near + random() % (kRing / 8) * 8;
        }
    };
    for (unsigned run = 0; run < 3000; run++) {
        Rig rig;
        for (unsigned step = 0; step < 60; step++) {
            SharedRing *const words = &rig.words();
            for (uint64_t *word : {&words[0].produced, &words[0].kick_at_room, &words[1].consumed, &words[1].kick_at_data})
                if (random() % 40 == 0)
                    *word = number(*word);
            // Between lies it keeps to the rules.
            if (random() % 4)
                write(rig.a->out, numbered(size_of(step), step));
            for (unsigned i = 0; i < random() % 3; i++) {
                const uint32_t length = random() % 4 ? uint32_t(random() % 2000) : uint32_t(number(SharedRings::kMaxFrame));
                std::memcpy(rig.data() + random() % (kRing / 8) * 8, &length, sizeof(length));
            }
            const RingResult in = rig.b->in.read();
            const RingResult out = write(rig.b->out, numbered(size_of(step), step));
            if (in == RingResult::Done) {
                ASSERT_GE(rig.b->in.frame().size(), 1u);
                ASSERT_LE(rig.b->in.frame().size(), SharedRings::kMaxFrame);
            }
            rig.b->in.end_burst();
            rig.b->out.end_burst();
            good += in == RingResult::Done;
            none += in == RingResult::None;
            broken += in == RingResult::Broken;
            if (in == RingResult::Broken || out == RingResult::Broken)
                break;
        }
    }
    EXPECT_GT(good, 100u);
    EXPECT_GT(none, 10u);
    EXPECT_GT(broken, 100u);
}

}  // namespace
}  // namespace hghca::test::shared_ring_test
