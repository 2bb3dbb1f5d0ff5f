// SPDX-License-Identifier: GPL-2.0-or-later
#include "network_host.h"

#include <algorithm>

namespace hghca::sim {

namespace {

constexpr uint64_t kPage = FakeHost::kPage;
constexpr uint64_t kDeviceDelayNs = 200;      // from a packet to what the device does about it
constexpr uint64_t kInterruptNs = 2'000;      // from an interrupt to the driver, up to twice as long

uint64_t mix(uint64_t digest, uint64_t value) { return (digest ^ value) * 0x100000001b3; }

}  // namespace

NetworkHost::NetworkHost(World &world, uint32_t number, uint64_t memory_bytes, uint64_t tx_queue_bytes, uint64_t seed)
    : FakeHost(memory_bytes, 4096), number(number), world_(world), tx_queue_bytes_(tx_queue_bytes),
      writable_(memory_bytes / kPage), random_(seed)
{
    random_state = seed ^ 0x5851f42d4c957f2d;
}

std::array<uint8_t, 16> NetworkHost::gid_of(uint32_t n, unsigned index)
{
    const auto high = uint8_t((n + 1) >> 8), low = uint8_t(n + 1);
    if (index == 1)
        return {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, high, low};
    return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, uint8_t(index == 2 ? 20 : 10), high, low};
}

// ---- what the device may write to

void NetworkHost::allow_dma(uint64_t dma, uint64_t bytes)
{
    for (uint64_t page = (dma - kBase) / kPage; page <= (dma - kBase + bytes - 1) / kPage; page++)
        writable_[page] = true;
}

void NetworkHost::check_dma(uint64_t dma, uint64_t len) const
{
    if (!checking_ || !len || dma >= kDeviceMemoryBase)
        return;
    for (uint64_t page = (dma - kBase) / kPage; page <= (dma - kBase + len - 1) / kPage; page++)
        if (page >= writable_.size() || !writable_[page])
            fail("host ", number, ": the device writes ", len, " bytes to memory that nobody has lent it, at page ",
                 page);
}

void NetworkHost::dirty(uint64_t dma, uint64_t len) { check_dma(dma, len); }

bool NetworkHost::write(uint64_t dma, const void *buffer, uint64_t len)
{
    check_dma(dma, len);
    return FakeHost::write(dma, buffer, len);
}

void NetworkHost::forget_device()
{
    checking_ = false;
    std::fill(writable_.begin(), writable_.end(), false);
    run_due_ = blocked_ = false;
    vectors.clear();
}

// ---- what the device asks for

FrameSent NetworkHost::send_frame(std::span<const iovec> parts, Icrc)
{
    const test::Outside outside;
    uint32_t length = 0;
    for (const iovec &part : parts)
        length += uint32_t(part.iov_len);
    if (length > kMaxFrame)
        fail("host ", number, ": a frame of ", length, " bytes");
    const uint64_t queued = world_.fabric->queued_bytes(number, world_.now_ns);
    if (queued >= tx_queue_bytes_) {
        if (!blocked_) {
            blocked_ = true;
            const uint64_t drained_ns = (queued - tx_queue_bytes_ / 2) * LinkSpeed{}.ps_per_byte / 1000;
            world_.events.put(world_.now_ns + drained_ns + 1, Event::Kind::LinkReady, number);
        }
        return FrameSent::LinkFull;
    }
    Frame *frame = world_.pool.take(length);
    uint8_t *to = frame->data;
    for (const iovec &part : parts) {
        std::memcpy(to, part.iov_base, part.iov_len);
        to += part.iov_len;
    }
    sent_frames++;
    sent(*frame);
    if (world_.recording)
        world_.recording->sent(*frame, world_.now_ns);
    world_.fabric->send(number, frame, world_.now_ns);
    return FrameSent::Yes;
}

void NetworkHost::set_timer(uint64_t deadline)
{
    const test::Outside outside;
    deadline_ns = deadline;
    // An event that comes too early puts another one.
    if (deadline < timer_ns_) {
        timer_ns_ = std::max(deadline, world_.now_ns);
        world_.events.put(timer_ns_, Event::Kind::Timer, number);
    }
}

void NetworkHost::schedule()
{
    const test::Outside outside;
    if (run_due_)
        return;
    run_due_ = true;
    world_.events.put(world_.now_ns + kDeviceDelayNs, Event::Kind::Run, number);
}

void NetworkHost::raise_vector(unsigned)
{
    const test::Outside outside;
    if (interrupt_due_)
        return;
    interrupt_due_ = true;
    world_.events.put(world_.now_ns + kInterruptNs + random_.below(kInterruptNs), Event::Kind::Interrupt, number);
}

// ---- events

void NetworkHost::receive(Frame *frame)
{
    world_.frames_received++;
    uint64_t words[3];
    std::memcpy(words, frame->data + 36, sizeof(words));
    for (const uint64_t word : {world_.now_ns, uint64_t(number) << 32 | frame->length, words[1] ^ words[2]})
        world_.digest = mix(world_.digest, word);
    const iovec part{frame->data, frame->length};
    device_receives(part);
    world_.pool.give_back(frame);
}

void NetworkHost::run()
{
    run_due_ = false;
    if (!blocked_ && device_has_work())
        device_runs();
}

void NetworkHost::fire_timer()
{
    if (world_.now_ns < timer_ns_)
        return;   // a later one replaced it
    timer_ns_ = UINT64_MAX;
    if (deadline_ns == UINT64_MAX)
        return;
    if (deadline_ns > world_.now_ns) {
        set_timer(deadline_ns);
        return;
    }
    deadline_ns = UINT64_MAX;
    device_timer();
}

void NetworkHost::link_ready()
{
    blocked_ = false;
    device_link_ready();
}

void NetworkHost::interrupt()
{
    interrupt_due_ = false;
    if (deaf_interrupts) {
        deaf_interrupts--;
        return;
    }
    driver_interrupt();
}

}  // namespace hghca::sim
