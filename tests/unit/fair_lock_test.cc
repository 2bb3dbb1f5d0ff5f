// SPDX-License-Identifier: GPL-2.0-or-later
// Waiting for a lock that one thread takes again and again (qemu-device/shim/hghca_fair.c): nobody starves.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "../../qemu-device/shim/hghca_fair.c"

namespace {

constexpr uint64_t kHoldNs = 100'000, kBoundNs = 1'000'000;
// How often the lock may be taken by one who came later, by the clock of these tests, before it is a sleeper's turn.
constexpr uint64_t kBoundHolds = kBoundNs / kHoldNs + 2;

// A lock that goes to whoever tries first; a sleeper wakes up late, as one of the kernel does. The clock goes on with each
// time that the lock is taken.
struct Lock {
    std::mutex mutex;
    std::atomic<uint64_t> taken{0};
    static inline std::atomic<uint64_t> clock_ns{0};

    void hold()
    {
        taken++;
        clock_ns += kHoldNs;
    }
};

struct Waiter {
    Lock *lock;
    uint64_t others = 0;   // how often the lock was taken while this one slept

    static bool try_lock(void *opaque) { return static_cast<Waiter *>(opaque)->lock->mutex.try_lock(); }
    static void sleep(void *opaque)
    {
        auto *w = static_cast<Waiter *>(opaque);
        const uint64_t before = w->lock->taken;
        while (!w->lock->mutex.try_lock())
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        w->others = w->lock->taken - before;
    }
    static uint64_t now_ns() { return Lock::clock_ns; }
};

const hghca_fair_ops kOps = {Waiter::try_lock, Waiter::sleep, Waiter::now_ns};

struct Fair : hghca_fair {
    explicit Fair(unsigned tries) { hghca_fair_init(this, &kOps, tries, kBoundNs); }
};

void run_hog(Fair &fair, Lock &lock, const std::atomic<bool> &end, bool gives_way)
{
    Waiter w{&lock};
    while (!end) {
        hghca_fair_lock(&fair, &w, gives_way);
        lock.hold();
        for (std::atomic<unsigned> i{0}; i < 5000; i++)
            ;
        lock.mutex.unlock();
    }
}

// `waiters` threads that take the lock so often beside a hog; the most that the lock was taken while one of them slept.
uint64_t most_others(unsigned waiters, unsigned times, bool gives_way)
{
    Fair fair(4);
    Lock lock;
    std::atomic<bool> end{false};
    std::vector<uint64_t> most(waiters, 0);
    std::thread hog([&] { run_hog(fair, lock, end, gives_way); });
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < waiters; t++) {
        threads.emplace_back([&, t] {
            for (unsigned i = 0; i < times; i++) {
                Waiter w{&lock};
                hghca_fair_lock(&fair, &w, false);
                most[t] = std::max(most[t], w.others);
                lock.hold();
                lock.mutex.unlock();
            }
        });
    }
    for (std::thread &thread : threads)
        thread.join();
    end = true;
    hog.join();
    EXPECT_FALSE(hghca_fair_sleeping(&fair));
    EXPECT_EQ(fair.oldest, nullptr);
    EXPECT_EQ(fair.standing_back, 0u);
    return *std::max_element(most.begin(), most.end());
}

TEST(FairLock, WhoHasWaitedLongGoesFirst)
{
    EXPECT_LE(most_others(1, 100, false), kBoundHolds);
}

// Each sleeps at most until those have had it that slept before, each of whom has its bound.
TEST(FairLock, NobodyOfManyStarves)
{
    constexpr unsigned kWaiters = 5;
    EXPECT_LE(most_others(kWaiters, 50, false), (kWaiters + 1) * kBoundHolds);
}

TEST(FairLock, WhoGivesWayGoesLast)
{
    // The hog has it at most once more: it may have been on its way.
    EXPECT_LE(most_others(1, 100, true), 2u);
}

// Who finds the lock free, with nobody asleep, has it at the first try.
TEST(FairLock, AFreeLockCostsOneTry)
{
    Fair fair(1);
    Lock lock;
    Waiter w{&lock};
    for (unsigned i = 0; i < 10; i++) {
        hghca_fair_lock(&fair, &w, i % 2);
        EXPECT_FALSE(lock.mutex.try_lock());
        lock.mutex.unlock();
    }
    EXPECT_EQ(fair.next_number, 0u);   // nobody has slept
}

}  // namespace
