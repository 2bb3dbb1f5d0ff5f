// SPDX-License-Identifier: GPL-2.0-or-later
// Devices used from several threads, as the CPUs of a guest use them: what host.h says
// about threads, under ThreadSanitizer. That build runs the disabled tests too, which
// break the rules, and must find each of them.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "verbs.h"

namespace hghca::test::threads_test {
namespace {

constexpr unsigned kMessages = 300;
constexpr unsigned kWindow = 8;                // messages one end may be ahead of the other
constexpr unsigned kReceives = 2 * kWindow;    // so many are posted at any time
constexpr uint32_t kBytes = 2500;              // three packets
constexpr uint32_t kSlotBytes = 4096;
constexpr uint64_t kReceiveBuffer = 512 << 10;

// In the place of the lock where a test leaves it out.
struct NoLock {
    void lock() {}
    void unlock() {}
};

// One end of a connection and the thread that uses it. The thread takes the lock for
// each call into a device; queues, doorbell records and buffers it uses without.
template <class Lock>
class Talker {
public:
    Talker(Endpoint &end, Network &net, Lock &lock, uint32_t seed) : end_(end), net_(net), lock_(lock), seed_(seed) {}

    void prepare()
    {
        for (unsigned i = 0; i < kReceives; i++)
            post_recv(i);
    }
    void run(uint32_t peer_seed)
    {
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        unsigned posted = 0, sent = 0, received = 0;
        while (sent < kMessages || received < kMessages) {
            ASSERT_LT(std::chrono::steady_clock::now(), limit) << posted << " " << sent << " " << received;
            if (posted < kMessages && posted < received + kWindow)
                post(posted++);
            auto completion = end_.poll();
            if (!completion) {
                wait_for_event();
                continue;
            }
            ASSERT_FALSE(completion->error) << int(completion->syndrome);
            if (completion->is_send) {
                sent++;
                continue;
            }
            ASSERT_EQ(completion->bytes, kBytes);
            ASSERT_TRUE(end_.holds(receive_place(received), kBytes, peer_seed + received)) << received;
            post_recv(received++);
        }
    }

private:
    static uint64_t receive_place(unsigned i) { return kReceiveBuffer + i % kReceives * kSlotBytes; }
    void post_recv(unsigned i) { end_.post_recv(end_.sge(receive_place(i), kSlotBytes)); }

    void post(unsigned i)
    {
        const uint64_t place = i % 64 * kSlotBytes;
        const uint16_t head = end_.sq_head;
        end_.fill(place, kBytes, seed_ + i);
        const Wqe wqe = send(end_.sge(place, kBytes));
        end_.write(wqe);
        std::lock_guard guard(lock_);
        end_.ring(head, wqe, 1);
    }
    // As a driver does between polling and sleeping. Only here frames move, so that
    // either thread makes the device of the other work on WQEs that it is linking to.
    void wait_for_event()
    {
        TestDriver &driver = end_.node.driver;
        {
            std::lock_guard guard(lock_);
            driver.arm(end_.cq);
            net_.pump();
        }
        hghca_eqe eqe;
        while (driver.poll(driver.async, eqe))
            EXPECT_EQ(eqe.type, HGHCA_EVENT_COMP);
        std::lock_guard guard(lock_);
        driver.arm(driver.async);
    }

    Endpoint &end_;
    Network &net_;
    Lock &lock_;
    uint32_t seed_;
};

// When the counters are read. A reader that breaks the rule does it once, when the
// talkers are through and their last writes are the newest that ThreadSanitizer knows:
// it drops a race whose older side has left its history, and one that reads all along
// without the lock may fill its own before the talkers have had a processor.
enum class Reads { all_along, at_the_end };

// Two connected devices, a thread for each, and one that reads their counters, as a
// management interface does.
template <class Lock, class CounterLock>
void talk(Network &net, Lock &lock, CounterLock &counter_lock, Reads reads)
{
    Pair pair(net.a, net.b, Endpoint::Options{});
    Talker<Lock> a(pair.a, net, lock, 1000), b(pair.b, net, lock, 2000);
    a.prepare();
    b.prepare();
    std::atomic<bool> over = false;
    uint64_t packets = 0;
    std::thread left([&] { a.run(2000); });
    std::thread right([&] { b.run(1000); });
    std::thread reader([&] {
        while (reads == Reads::at_the_end && !over.load(std::memory_order_relaxed))
            std::this_thread::yield();
        do {
            std::lock_guard guard(counter_lock);
            packets = net.a.counters().tx_packets + net.b.counters().tx_packets;
        } while (!over.load(std::memory_order_relaxed));
    });
    left.join();
    right.join();
    over.store(true, std::memory_order_relaxed);
    reader.join();
    EXPECT_GE(packets, 2 * 3 * kMessages);
}

TEST(Threads, TwoDevicesOnOneLinkUnderOneLock)
{
    Network net;
    std::mutex lock;
    talk(net, lock, lock, Reads::all_along);
}

TEST(Threads, DevicesOnOtherLinksShareNothing)
{
    auto world = [] {
        Network net;
        std::mutex lock;
        talk(net, lock, lock, Reads::all_along);
    };
    std::thread one(world), other(world);
    one.join();
    other.join();
}

TEST(Threads, DISABLED_EntriesWithoutTheLock)
{
    Network net;
    NoLock none;
    talk(net, none, none, Reads::at_the_end);
}

TEST(Threads, DISABLED_CountersWithoutTheLock)
{
    Network net;
    std::mutex lock;
    NoLock none;
    talk(net, lock, none, Reads::at_the_end);
}

}  // namespace
}  // namespace hghca::test::threads_test
