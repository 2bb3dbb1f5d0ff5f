// SPDX-License-Identifier: GPL-2.0-or-later
#include "device.h"

#include <algorithm>

#include "byte_order.h"
#include "jingzhao/cq.h"
#include "jingzhao/eq.h"
#include "port/roce_v2.h"
#include "jingzhao/events.h"
#include "jingzhao/flow.h"
#include "jingzhao/hcr.h"
#include "jingzhao/icm.h"
#include "jingzhao/multicast.h"
#include "jingzhao/qp_table.h"
#include "jingzhao/raw_eth.h"
#include "jingzhao/receive_queue.h"
#include "jingzhao/rss.h"
#include "jingzhao/srq.h"
#include "jingzhao/wqe_chain.h"
#include "rsnic/caps.h"
#include "rsnic/init_segment.h"
#include "rsnic/partition.h"
#include "transport/transport.h"

namespace hghca {

namespace {

constexpr uint32_t kDoorbells = 3;  // at 0x00, 0x10 and 0x20 of a UAR page
constexpr uint32_t kDoorbellStride = 0x10;

// What a read of `size` bytes gives when nobody answers.
uint64_t all_ones(unsigned size) { return size >= 8 ? UINT64_MAX : (uint64_t(1) << 8 * size) - 1; }

}  // namespace

Device::Device(Host &host, const Config &config)
    : host(host), config(config), icm(std::make_unique<Icm>(host)),
      memory(std::make_unique<MemoryTable>(host, *icm, counters_, work, config.device_memory)),
      eqs(std::make_unique<EventQueues>(*this)), cqs(std::make_unique<CompletionQueues>(*this)),
      srqs(std::make_unique<SharedReceiveQueues>(*this)), groups(std::make_unique<MulticastGroups>(*this)),
      flows(std::make_unique<FlowTable>(*this)), rss(std::make_unique<RssTable>(*this)),
      partitions(std::make_unique<PartitionTable>(*this)),
      qps(std::make_unique<QpTable>(*this)), commands(std::make_unique<CommandInterface>(*this)),
      hcr(std::make_unique<Hcr>(*commands)),
      segment(config.profile == Profile::Rsnic ? std::make_unique<InitSegment>(*this) : nullptr),
      link(std::make_unique<RoceV2>(port, *groups)), sends(std::make_unique<WqeChain>(*this)),
      receives(std::make_unique<ReceiveQueue>(*this)), raw(std::make_unique<RawEthernet>(*this)),
      events(std::make_unique<Events>(*this)), transport(std::make_unique<Transport>(function())),
      uar_low_(size_t(HGHCA_UAR_PAGES) * kDoorbells)
{
    port.permanent_mac = config.mac;
    reset();
}

Device::~Device() = default;

Function Device::function()
{
    return {.host = host,
            .work = work,
            .counters = counters_,
            .counter_sets = counter_sets,
            .port = port,
            .features = features,
            .control = congestion,
            .receive_buffers = config.receive_buffers,
            .link = *link,
            .outlet = *this,
            .qps = *qps,
            .sends = *sends,
            .receives = *receives,
            .keys = *memory,
            .partitions = *partitions,
            .events = *events,
            .raw_frames = *raw,
            .qp_count = 1u << kLogMaxQps,
            .pace_grain_ns = config.pace_grain_ns,
            .rewind = Rewind::Packet};
}

void Device::close()
{
    commands->forget_record();
    // The transport first: it may look at what it forgets.
    transport->clear();
    qps->clear();
    srqs->clear();
    groups->clear();
    flows->clear();
    rss->clear();
    partitions->clear();
    cqs->clear();
    eqs->clear();
    memory->clear();
    icm->clear();
    counter_sets.clear();
    gsi_qpn = raw_qpn = kNoQpn;
    caps = 0;
    features = {};
    initialized = false;
    if (segment)
        segment->close();
    // What the capabilities that were on have set up goes with them.
    Port fresh;
    fresh.permanent_mac = port.permanent_mac;
    fresh.addresses = port.addresses;
    fresh.addresses.reset(port.permanent_mac);
    fresh.link_up = port.link_up;
    fresh.flow_control = FlowControlSettings::defaults(config.receive_buffers);
    port = fresh;
    congestion = {};
}

void Device::reset()
try {
    failed_ = false;
    close();
    impairment.clear();
    expiring_ = false;
    hcr->reset();
    if (segment)
        segment->reset();
    counters_ = {};
    counter_sets.reset();
    errors.clear();
    std::fill(uar_low_.begin(), uar_low_.end(), 0);
    armed_ns_ = UINT64_MAX;
    host.set_timer(UINT64_MAX);
} catch (const std::exception &e) {
    fail(e.what());
}

void Device::fail(const char *reason, hghca_health syndrome) noexcept
{
    if (failed_)
        return;
    if (segment)
        segment->stop(syndrome);
    failed_ = true;   // first: what goes wrong from here on does not come back here
    counters_.catastrophic_errors++;
    commands->forget_record();
    try {
        if (host.tracing())
            host.trace(Host::Trace::Error, reason);
        eqs->post_catastrophic();
    } catch (const std::exception &) {
        counters_.eqe_write_errors++;   // the event is lost: its memory has run out
    }
    armed_ns_ = UINT64_MAX;
    host.set_timer(UINT64_MAX);
}

// ---- BAR0

uint64_t Device::hcr_read(uint64_t offset, unsigned size)
{
    if (segment && offset < HGHCA_SEG_SIZE)
        return size == 4 && offset % 4 == 0 ? segment->read(uint32_t(offset)) : 0;
    if (failed_)
        return all_ones(size);
    if (size != 4 || offset % 4 || offset < HGHCA_HCR_BASE || offset >= HGHCA_HCR_BASE + HGHCA_HCR_SIZE)
        return 0;
    const auto reg = unsigned(offset - HGHCA_HCR_BASE);
    // A device that is initializing has not begun the command.
    const bool busy = segment && segment->initializing() && reg == HGHCA_HCR_STATUS;
    return hcr->read(reg) | (busy ? HGHCA_HCR_GO : 0);
}

bool Device::hcr_write(uint64_t offset, uint64_t value, unsigned size)
try {
    if (size != 4 || offset % 4)
        return false;
    if (offset == HGHCA_RESET) {
        if (uint32_t(value) != HGHCA_RESET_START)
            return false;
        reset();
        return !failed_;
    }
    const bool in_segment = segment && offset < HGHCA_SEG_SIZE;
    if (in_segment && offset == HGHCA_SEG_CLEAR_INT) {   // also of a device that has failed
        segment->clear_interrupt(uint32_t(value));
        return false;
    }
    const bool in_hcr = offset >= HGHCA_HCR_BASE && offset < HGHCA_HCR_BASE + HGHCA_HCR_SIZE;
    if (failed_ || !(in_segment || in_hcr) || (in_hcr && segment && segment->initializing()))
        return false;
    begin_slice();
    if (in_segment)
        segment->write(uint32_t(offset), uint32_t(value));
    else
        hcr->write(unsigned(offset - HGHCA_HCR_BASE), uint32_t(value));
    finish_entry();
    return false;
} catch (const std::exception &e) {
    fail(e.what());
    return false;
}

// ---- BAR2

uint64_t Device::uar_read(uint64_t offset, unsigned size)
{
    if (failed_)
        return all_ones(size);
    const uint64_t within = offset % HGHCA_UAR_PAGE_SIZE;
    if (!(caps & HGHCA_CAP_CLOCK) || offset >= HGHCA_BAR_UAR_SIZE)
        return 0;
    if (within == HGHCA_UAR_CLOCK && size == 8)
        return host.now_ns();
    if (within == HGHCA_UAR_CLOCK && size == 4)
        return uint32_t(host.now_ns());
    return within == HGHCA_UAR_CLOCK + 4 && size == 4 ? host.now_ns() >> 32 : 0;
}

void Device::uar_write(uint64_t offset, uint64_t value, unsigned size)
try {
    if (failed_ || offset >= HGHCA_BAR_UAR_SIZE)
        return;
    auto page = uint32_t(offset / HGHCA_UAR_PAGE_SIZE);
    auto within = uint32_t(offset % HGHCA_UAR_PAGE_SIZE);
    uint32_t doorbell = within / kDoorbellStride;
    uint32_t half = within % kDoorbellStride;
    if (doorbell >= kDoorbells)
        return;
    uint32_t &latch = uar_low_[page * kDoorbells + doorbell];
    rung_ = kNoQpn;
    if (size == 8 && half == 0)
        ring(page, doorbell, uint32_t(value), uint32_t(value >> 32));
    else if (size == 4 && half == 0)
        latch = uint32_t(value);
    else if (size == 4 && half == 4)
        ring(page, doorbell, latch, uint32_t(value));
} catch (const std::exception &e) {
    fail(e.what());
}

void Device::ring(uint32_t page, uint32_t doorbell, uint32_t low, uint32_t high)
{
    begin_slice();
    switch (doorbell * kDoorbellStride) {
    case HGHCA_UAR_SQ_DB:
        rung_ = Qpn(field_get(HGHCA_SQ_DB_QPN_MASK, high));
        sends->ring({page, rung_, uint16_t(field_get(HGHCA_SQ_DB_HEAD_MASK, low)),
                     uint8_t(field_get(HGHCA_SQ_DB_COUNT_MASK, low)), uint8_t(field_get(HGHCA_SQ_DB_OPCODE_MASK, low)),
                     uint8_t(field_get(HGHCA_SQ_DB_SIZE0_MASK, high)), bool(low & HGHCA_SQ_DB_FENCE)});
        // The first slice is done in the context that rang.
        send();
        break;
    case HGHCA_UAR_CQ_ARM:
        cqs->doorbell(page, low, high);
        break;
    case HGHCA_UAR_EQ_ARM:
        eqs->doorbell(page, low, high);
        break;
    default:
        break;   // uar_write() lets no other through
    }
    finish_entry();
}

// ---- the link, time

void Device::receive(std::span<const iovec> parts, Icrc icrc)
try {
    if (failed_)
        return;
    begin_slice();
    if (impairment.active())
        impairment.receive(parts);
    else if (initialized)
        transport->receive(parts, icrc);
    finish_entry();
} catch (const std::exception &e) {
    fail(e.what());
}

// What has been through the impairment may be changed: its ICRC is for the receiver to verify, here as at the other end.
FrameSent Device::to_link(std::span<const iovec> parts) { return host.send_frame(parts, Icrc::Unknown); }

void Device::to_device(std::span<const iovec> parts)
{
    if (initialized)
        transport->receive(parts, Icrc::Unknown);
}

void Device::send()
{
    if (initialized)
        transport->run();
}

uint64_t Device::now_ns() { return host.now_ns(); }

bool Device::run()
try {
    if (failed_)
        return false;
    begin_slice();
    if (segment)
        segment->turn();
    if (expiring_) {
        expire();
        begin_slice();   // timers that end again and again do not keep others from their turns
    }
    eqs->run();
    if (segment)
        segment->run();
    if (initialized)
        transport->flush();
    if (work.over())
        begin_slice();
    send();
    finish_entry();
    return has_work();
} catch (const std::exception &e) {
    fail(e.what());
    return false;
}

bool Device::has_work() const
{
    return !failed_ && (expiring_ || eqs->has_work() || transport->has_work() || (segment && segment->has_work()));
}

bool Device::rung_has_work() const
{
    // The caller asks after every turn: a context that has gone to ICM is not fetched for it.
    const Qp *qp = failed_ || !initialized || rung_ == kNoQpn ? nullptr : qps->cached(rung_);
    return qp && Transport::outstanding(*qp);
}

void Device::timer()
try {
    if (failed_)
        return;
    armed_ns_ = UINT64_MAX;  // it has fired
    begin_slice();
    expire();
    begin_slice();
    send();
    finish_entry();
} catch (const std::exception &e) {
    fail(e.what());
}

void Device::expire()
{
    const uint64_t now = host.now_ns();
    impairment.expire(now);
    if (initialized)
        transport->expire(now);
    cqs->expire(now);
    eqs->expire(now);
    expiring_ = next_deadline() <= now;
}

uint64_t Device::next_deadline() const
{
    return std::min({transport->next_deadline(), cqs->next_deadline(), eqs->next_deadline(), impairment.next_deadline()});
}

void Device::link_ready()
try {
    if (failed_)
        return;
    begin_slice();
    impairment.link_ready();
    send();
    finish_entry();
} catch (const std::exception &e) {
    fail(e.what());
}

void Device::set_link(bool up)
try {
    if (up == port.link_up)
        return;
    begin_slice();
    port.link_up = up;
    if (failed_)
        return;
    if (!up)
        impairment.clear();   // nothing is on its way over a link that is down
    transport->restart_flow_control();
    eqs->post_port_change(up);
    finish_entry();
} catch (const std::exception &e) {
    fail(e.what());
}

void Device::dma_changed()
{
    icm->dma_changed();
    memory->dma_changed();
}

void Device::finish_entry()
{
    if (segment) {
        // RSNIC's cache is of QPs.
        qps->trim(config.cache_entries ? config.cache_entries : kRsnicCachedQps);
    } else if (size_t capacity = config.cache_entries) {
        memory->trim(capacity);
        eqs->trim(capacity);
        cqs->trim(capacity);
        srqs->trim(capacity);
        groups->trim(capacity);
        qps->trim(capacity);
    }
    // RSNIC says what has happened to its memory; other devices go on.
    if (const hghca_health trouble = icm->take_trouble(); segment && trouble)
        fail_entry("no memory at ICM", trouble);
    const uint64_t deadline = expiring_ ? UINT64_MAX : next_deadline();
    if (deadline != armed_ns_) {
        armed_ns_ = deadline;
        host.set_timer(deadline);
    }
    const bool more = has_work();
    if (segment)
        segment->wait(more);
    if (more)
        host.schedule();
}

}  // namespace hghca
