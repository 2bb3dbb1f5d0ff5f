// SPDX-License-Identifier: GPL-2.0-or-later
#include "machine.h"

#include <algorithm>
#include <bit>

#include "random.h"

namespace hghca::sim {

namespace {

constexpr uint64_t kPage = FakeHost::kPage;
constexpr uint64_t kDeviceDelayNs = 200;      // from a packet to what the device does about it
constexpr uint64_t kInterruptNs = 2'000;      // from an interrupt to the driver, up to twice as long
constexpr uint16_t kVlan = 5;

unsigned log2_up(uint64_t n) { return unsigned(std::bit_width(std::max<uint64_t>(n, 2) - 1)); }

uint64_t mix(uint64_t digest, uint64_t value) { return (digest ^ value) * 0x100000001b3; }

}  // namespace

Block::Block(FakeHost &host, uint64_t bytes, uint64_t lead, uint64_t guard_pages)
    : bytes_(bytes), lead_(guard_pages * kPage + lead % kPage)
{
    const uint64_t pages = (lead_ + bytes + kPage - 1) / kPage + guard_pages;
    dma_ = host.alloc(pages * kPage);
    memory_ = host.at(dma_);
    shadow_.resize(pages * kPage);
}

void Block::fill(Random &random)
{
    for (size_t i = 0; i < shadow_.size(); i += 8) {
        const uint64_t word = random.next();
        std::memcpy(memory_ + i, &word, 8);
    }
    accept_all();
}

Config Machine::device_config(FakeHost &host, uint32_t number, const MachineConfig &config)
{
    Config c{};
    c.mac = mac_of(number);
    c.cache_entries = config.cache_entries;
    c.device_memory = host.on_device();
    // A timer of virtual time costs nothing, so packets need not go in bursts.
    c.pace_grain_ns = 500;
    return c;
}

std::array<uint8_t, 16> Machine::gid_of(uint32_t n, unsigned index)
{
    const auto high = uint8_t((n + 1) >> 8), low = uint8_t(n + 1);
    if (index == 1)
        return {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, high, low};
    return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, uint8_t(index == 2 ? 20 : 10), high, low};
}

Machine::Machine(World &world, uint32_t number, const MachineConfig &config, uint64_t seed)
    : FakeHost(config.memory_bytes, 4096), number(number), config(config), device(*this, device_config(*this, number, config)),
      driver(*this, device), world_(world), writable_(config.memory_bytes / kPage), random_(seed)
{
    random_state = seed ^ 0x5851f42d4c957f2d;
    copy_only = config.copy_only;
    TestDriver::Layout &layout = driver.layout;
    layout.log_qps = log2_up(config.first_qpn + config.qps + 1);
    layout.log_cqs = log2_up(config.cqs + 2);
    layout.log_mpts = log2_up(config.mrs + 64);
    layout.mtt_bytes = (config.mtts + 4096) * 8;
    // In the order of the default layout, as large as they are.
    layout.cqc = std::max<uint64_t>(layout.cqc, 2048ull << layout.log_qps);
    layout.eqc = layout.cqc + std::max<uint64_t>(1 << 20, 128ull << layout.log_cqs);
    layout.srqc = layout.eqc + (1 << 20);
    layout.mcg = layout.srqc + (2 << 20);
    layout.mtt = std::max<uint64_t>(1 << 20, 64ull << layout.log_mpts);
    driver.first_qpn = config.first_qpn;
}

void Machine::start()
{
    checking_ = false;
    std::fill(writable_.begin(), writable_.end(), false);
    run_due_ = blocked_ = false;
    vectors.clear();
    driver.start(HGHCA_CAP_ALL);
    allow_dma(driver.async.buffer.dma, 32ull << driver.async.log);
    completions = driver.create_eq(std::max(8u, log2_up(config.cqs * 2)), 1);
    allow_dma(completions.buffer.dma, 32ull << completions.log);
    cqs.clear();
    for (uint32_t i = 0; i < config.cqs; i++) {
        cqs.push_back(driver.create_cq(config.cq_log, completions.eqn));
        allow_dma(cqs.back().buffer.dma, 32ull << config.cq_log);
        driver.arm(cqs.back());
    }
    for (unsigned i = 0; i < 3; i++)
        TestDriver::must(driver.set_gid(i, gid_of(number, i).data(), mac_of(number).data(), i == 2 ? kVlan : -1),
                         "SET_GID");
    const TestDriver::Layout &layout = driver.layout;
    allow_dma(driver.qpc_dma, 2048ull << layout.log_qps);
    allow_dma(driver.cqc_dma, 128ull << layout.log_cqs);
    allow_dma(driver.eqc_dma, 64ull << layout.log_eqs);
    allow_dma(driver.srqc_dma, 128ull << layout.log_srqs);
    allow_dma(driver.mcg_dma, 256ull << layout.log_mcgs);
    allow_dma(driver.mpt_dma, 64ull << layout.log_mpts);
    allow_dma(driver.mtt_dma, layout.mtt_bytes);
    allow_dma(driver.out_mailbox(), HGHCA_MAILBOX_SIZE);
    checking_ = true;
}

// ---- what the device may write to

void Machine::allow_dma(uint64_t dma, uint64_t bytes)
{
    for (uint64_t page = (dma - kBase) / kPage; page <= (dma - kBase + bytes - 1) / kPage; page++)
        writable_[page] = true;
}

void Machine::check_dma(uint64_t dma, uint64_t len) const
{
    if (!checking_ || !len || dma >= kDeviceMemoryBase)
        return;
    for (uint64_t page = (dma - kBase) / kPage; page <= (dma - kBase + len - 1) / kPage; page++)
        if (page >= writable_.size() || !writable_[page])
            fail("host ", number, ": the device writes ", len, " bytes to memory that nobody has lent it, at page ",
                 page);
}

void Machine::dirty(uint64_t dma, uint64_t len) { check_dma(dma, len); }

bool Machine::write(uint64_t dma, const void *buffer, uint64_t len)
{
    check_dma(dma, len);
    return FakeHost::write(dma, buffer, len);
}

// ---- what the device asks for

bool Machine::send_frame(const iovec *parts, int count)
{
    const test::Outside outside;
    uint32_t length = 0;
    for (int i = 0; i < count; i++)
        length += uint32_t(parts[i].iov_len);
    if (length > kMaxFrame)
        fail("host ", number, ": a frame of ", length, " bytes");
    const uint64_t queued = world_.fabric->queued_bytes(number, world_.now_ns);
    if (queued >= config.tx_queue_bytes) {
        if (!blocked_) {
            blocked_ = true;
            const uint64_t drained_ns = (queued - config.tx_queue_bytes / 2) * LinkSpeed{}.ps_per_byte / 1000;
            world_.events.put(world_.now_ns + drained_ns + 1, Event::Kind::LinkReady, number);
        }
        return false;
    }
    Frame *frame = world_.pool.take(length);
    uint8_t *to = frame->data;
    for (int i = 0; i < count; i++) {
        std::memcpy(to, parts[i].iov_base, parts[i].iov_len);
        to += parts[i].iov_len;
    }
    sent_frames++;
    if (world_.recording)
        world_.recording->sent(*frame, world_.now_ns);
    world_.fabric->send(number, frame, world_.now_ns);
    return true;
}

void Machine::set_timer(uint64_t deadline)
{
    const test::Outside outside;
    deadline_ns = deadline;
    // An event that comes too early puts another one.
    if (deadline < timer_ns_) {
        timer_ns_ = std::max(deadline, world_.now_ns);
        world_.events.put(timer_ns_, Event::Kind::Timer, number);
    }
}

void Machine::schedule()
{
    const test::Outside outside;
    if (run_due_)
        return;
    run_due_ = true;
    world_.events.put(world_.now_ns + kDeviceDelayNs, Event::Kind::Run, number);
}

void Machine::raise_vector(unsigned)
{
    const test::Outside outside;
    if (interrupt_due_)
        return;
    interrupt_due_ = true;
    world_.events.put(world_.now_ns + kInterruptNs + random_.below(kInterruptNs), Event::Kind::Interrupt, number);
}

// ---- events

void Machine::receive(Frame *frame)
{
    world_.frames_received++;
    uint64_t words[3];
    std::memcpy(words, frame->data + 36, sizeof(words));
    world_.digest = mix(mix(mix(world_.digest, world_.now_ns), uint64_t(number) << 32 | frame->length), words[1] ^ words[2]);
    const iovec part{frame->data, frame->length};
    test::bounded(device, [&] { device.receive(&part, 1); });
    world_.pool.give_back(frame);
}

void Machine::run()
{
    run_due_ = false;
    if (!blocked_ && device.has_work())
        test::bounded(device, [&] { device.run(); });
}

void Machine::fire_timer()
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
    test::bounded(device, [&] { device.timer(); });
}

void Machine::link_ready()
{
    blocked_ = false;
    test::bounded(device, [&] { device.link_ready(); });
}

bool Machine::poll(TestDriver::Cq &cq)
{
    hghca_cqe cqe;
    if (!driver.poll(cq, cqe))
        return false;
    if (lose_completion && !--lose_completion)
        return true;
    handler->completion(*this, cqe);
    if (double_completion && !--double_completion)
        handler->completion(*this, cqe);
    return true;
}

void Machine::interrupt()
{
    interrupt_due_ = false;
    if (deaf_interrupts) {
        deaf_interrupts--;
        return;
    }
    hghca_eqe eqe;
    while (driver.poll(driver.async, eqe))
        handler->event(*this, eqe);
    while (driver.poll(completions, eqe)) {
        const uint32_t cqn = be32(eqe.event.comp.cqn);
        if (eqe.type != HGHCA_EVENT_COMP || cqn == 0 || cqn > cqs.size())
            fail("host ", number, ": event ", unsigned(eqe.type), " in the EQ of completions, CQ ", cqn);
        TestDriver::Cq &cq = cqs[cqn - 1];
        while (poll(cq))
            ;
        driver.arm(cq);
    }
    driver.arm(driver.async);
    driver.arm(completions);
    handler->idle(*this);
}

}  // namespace hghca::sim
