// SPDX-License-Identifier: GPL-2.0-or-later
#include "ernic/adapter.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>

#include "byte_order.h"
#include "port/steering.h"

namespace hghca::ernic {

namespace {

class InvariantBroken : public std::exception {
public:
    explicit InvariantBroken(const char *invariant) : invariant_(invariant) {}
    const char *what() const noexcept override { return invariant_; }

private:
    const char *invariant_;
};

constexpr uint32_t kMaxMtuCode = 4;   // 4096 bytes; the codes behind it are reserved
// Entries of the port's GID table.
enum GidIndex : uint8_t { kIpv4Gid, kIpv6Gid };

constexpr uint32_t kMaxRetries = 7;
constexpr uint32_t kUnitNs = 4096, kLeastUnitNs = 1000;
constexpr uint64_t kPaceGrainNs = 20'000;

std::array<uint8_t, 6> mac_of(uint32_t msb, uint32_t lsb)
{
    return {uint8_t(msb >> 8), uint8_t(msb), uint8_t(lsb >> 24), uint8_t(lsb >> 16), uint8_t(lsb >> 8), uint8_t(lsb)};
}

// Words of an address of which the last has the first four bytes.
template <class Word>
std::array<uint8_t, 16> ipv6_of(Word &&word)
{
    std::array<uint8_t, 16> gid;
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t wire = be32(word(3 - i));
        std::memcpy(gid.data() + size_t(4) * i, &wire, sizeof(wire));
    }
    return gid;
}

std::array<uint8_t, 16> ipv4_of(uint32_t address)
{
    std::array<uint8_t, 16> gid{};
    gid[10] = gid[11] = 0xff;
    const uint32_t wire = be32(address);
    std::memcpy(gid.data() + 12, &wire, sizeof(wire));
    return gid;
}

// The bit of the syndrome for what the transport finds; 0: it has none.
uint32_t syndrome_of(Drop why)
{
    switch (why) {
    case Drop::Sequence:
        return 1u << ERNIC_SYNDROME_SEQUENCE;
    case Drop::Opcode:
    case Drop::Request:
    case Drop::Service:
        return 1u << ERNIC_SYNDROME_OPCODE;
    case Drop::Pad:
        return 1u << ERNIC_SYNDROME_PAD;
    case Drop::Length:
    case Drop::Headers:
    case Drop::TooLong:
        return 1u << ERNIC_SYNDROME_LENGTH;
    case Drop::Rnr:
        return 1u << ERNIC_SYNDROME_RNR;
    case Drop::Psn:
        return 1u << ERNIC_SYNDROME_PSN;
    case Drop::Syndrome:
        return 1u << ERNIC_SYNDROME_AETH;
    case Drop::Response:
        return 1u << ERNIC_SYNDROME_RESPONSE;
    default:
        return 0;
    }
}

size_t payload_bytes(const Incoming &packet)
{
    const size_t headers = packet.layout.transport_offset + sizeof(hghca_bth) + extension_bytes(packet.flags());
    return packet.layout.frame_bytes - headers - HGHCA_ICRC_SIZE;
}

// Has a packet in its place the length that it may have?
bool fits(const QueuePair &pair, const Incoming &packet)
{
    const size_t payload = payload_bytes(packet);
    return packet.flags() & kLast ? payload <= pair.qp.a.mtu : payload == pair.qp.a.mtu;
}

FrameView view_of(std::span<const iovec> parts)
{
    FrameView frame{parts, 0, 0};
    for (const iovec &part : parts)
        frame.length += part.iov_len;
    return frame;
}

constexpr bool is_nak(const Incoming &packet)
{
    return packet.opcode == (HGHCA_BTH_RC | HGHCA_BTH_OP_ACK) && packet.syndrome & HGHCA_AETH_TYPE_MASK;
}

}  // namespace

Adapter::Adapter(Host &host, const Config &config)
    : host(host), config(config), registers(config.personality, config.qps), link(port_, *this),
      pairs_(config.qps + 1)
{
    features_.memory_management = features_.immediates = config.personality == Personality::Ernic;
    features_.atomics = features_.empty_sends = features_.pkeys = false;
    port_.addresses.use_gids(true);
    port_.hop_limit = 0;   // a QP has its own
    for (unsigned c = 0; c < kTrafficClasses; c++)
        buffers_[c] = {config.drain_mbps[c], ERNIC_BUFFER_LINES * ERNIC_BUFFER_LINE_BYTES};
    transport = std::make_unique<Transport>(function());
    reset();
}

Function Adapter::function()
{
    return {.host = host,
            .work = work,
            .counters = counters,
            .counter_sets = sets_,
            .port = port_,
            .features = features_,
            .control = congestion_,
            .receive_buffers = buffers_,
            .link = link,
            .outlet = *this,
            .qps = *this,
            .sends = sends,
            .receives = receives,
            .keys = protection,
            .partitions = *this,
            .events = *this,
            .raw_frames = *this,
            .qp_count = ERNIC_QPS_ERNIC + 1,
            .pace_grain_ns = kPaceGrainNs,
            .rewind = Rewind::Message,
            .observer = this,
            .receiver = this,
            .keeps_writes_alone = true};
}

// A broken invariant, or no memory for data buffers, ends the entry; the device is silent then.
template <class Entry>
void Adapter::enter(Entry &&entry)
{
    if (failed_)
        return;
    begin_slice();
    try {
        entry();
        finish_entry();
    } catch (const InvariantBroken &) {
        fail();
    } catch (const std::bad_alloc &) {
        fail();
    }
    incoming_ = nullptr;
}

void Adapter::fail()
{
    failed_ = true;
    host.set_timer(UINT64_MAX);
    host.lower_interrupt();
}

void Adapter::finish_entry()
{
    host.set_timer(std::min(transport->next_deadline(), acks.next_deadline()));
    if (has_work())
        host.schedule();
}

void Adapter::broken(const char *invariant) { throw InvariantBroken(invariant); }

void Adapter::reset()
{
    failed_ = false;
    registers.reset();
    registers.global(ERNIC_EXTENSIONS) = field_put(ERNIC_EXT_HAS, config.extensions);
    registers.global(ERNIC_QPMSTS) = ERNIC_QPMSTS_EMPTY;
    counters = {};
    sets_.reset();
    transport->clear();
    std::fill(pairs_.begin(), pairs_.end(), QueuePair{});
    for (uint32_t qpn = 0; qpn < pairs_.size(); qpn++)
        pairs_[qpn].qp.a.qpn = Qpn(qpn);
    interrupts.reset();
    mads.link_ready();
    receives.phase_ = true;
    acks.reset();
    headers.reset();
    configure_port();
    configure_timeouts();
    configure_flow_control();
    host.set_timer(UINT64_MAX);
    host.lower_interrupt();
}

// ---- registers

uint32_t Adapter::read(uint64_t offset, unsigned size)
{
    if (failed_)
        return UINT32_MAX;
    const RegisterPlace place = registers.place(offset);
    if (size != 4 || offset % 4) {
        stats.bad_accesses++;
        return 0;
    }
    switch (place.access == AccessKind::None ? RegisterPlace::Block::None : place.block) {
    case RegisterPlace::Block::Global:
        return read_global(place.offset) & place.bits;
    case RegisterPlace::Block::Qp:
        return read_qp(place.index, place.offset) & place.bits;
    case RegisterPlace::Block::Pd:
        return registers.pd(place.index, place.offset) & place.bits;
    case RegisterPlace::Block::None:
        break;
    }
    return 0;
}

uint32_t Adapter::read_global(uint32_t offset) const
{
    const uint32_t word = registers.global(offset);
    switch (offset) {
    case ERNIC_ININVDUPCNT:
        return word | field_put(ERNIC_COUNT_HIGH, uint32_t(counters.duplicate_request));
    case ERNIC_RESPHNDSTS:
        return word | 1u << 16;
    default:
        return word;
    }
}

uint32_t Adapter::read_qp(uint32_t qpn, uint32_t offset) const
{
    const QueuePair &pair = pairs_[qpn];
    const RequesterState &req = pair.qp.req;
    const ResponderState &resp = pair.qp.resp;
    const uint32_t word = registers.qp(qpn, offset);
    if (offset == ERNIC_STATQP)
        return status_of(pair, qpn);
    if (!pair.enabled || qpn == ERNIC_QP1)
        return word;
    switch (offset) {
    case ERNIC_SQPSN:
        return number(req.next_psn);
    case ERNIC_LSTRQREQ:
        return number(psn_before(resp.expected_psn)) | field_put(ERNIC_LSTRQREQ_OPCODE, pair.last_opcode);
    case ERNIC_STATSSN:
        return number(req.messages_sent);
    case ERNIC_STATMSN:
        return number(resp.msn);
    case ERNIC_STATCURSQPTR:
        return uint16_t(req.started_index - pair.sq.index);
    case ERNIC_STATRESPSN:
        return number(req.unacked_psn);
    case ERNIC_STATRQBUFCA:
        return pair.rq.depth ? uint32_t(receives.slot_address(pair)) : word;
    case ERNIC_STATRQBUFCAMSB:
        return pair.rq.depth ? uint32_t(receives.slot_address(pair) >> 32) : word;
    case ERNIC_STATWQE:
        return pair.wqes;
    default:
        return word;
    }
}

uint32_t Adapter::status_of(const QueuePair &pair, uint32_t qpn) const
{
    const RequesterState &req = pair.qp.req;
    const bool idle = !pair.enabled || pair.fatal || is_recovering(pair);
    const uint16_t begun = qpn == ERNIC_QP1 ? 0 : uint16_t(req.started_index - pair.sq.index);
    const bool nothing_left = idle || (qpn == ERNIC_QP1 ? !pair.posted() : req.next_index == pair.sq_end);
    // Software disables a QP that is fatal, or under recovery, when both queues are empty: not before its NAK has gone.
    const bool replies = pair.enabled && idle && pair.qp.resp.reply_count;
    uint32_t word = 0;
    word |= field_put(ERNIC_STATQP_FATAL, pair.fatal);
    word |= field_put(ERNIC_STATQP_RQ_OVERFLOW, pair.rq_overflow);
    word |= field_put(ERNIC_STATQP_SQ_FULL, pair.enabled && pair.sq.depth && pair.posted() + 1u == pair.sq.depth);
    word |= field_put(ERNIC_STATQP_OSQ_FULL, !idle && begun >= ERNIC_OUTSTANDING);
    word |= field_put(ERNIC_STATQP_SQ_EMPTY, nothing_left && !replies);
    word |= field_put(ERNIC_STATQP_OSQ_EMPTY, (idle || !begun) && !replies);
    word |= field_put(ERNIC_STATQP_RETRIED, pair.retried);
    word |= field_put(ERNIC_STATQP_SYNDROME, pair.nak_syndrome);
    // Since the last progress.
    word |= field_put(ERNIC_STATQP_RETRIES, uint32_t(pair.qp.a.retry_count - req.retries_left));
    word |= field_put(ERNIC_STATQP_RNR_RETRIES, std::min<uint32_t>(req.rnr_in_row, kMaxRetries));
    return word;
}

bool Adapter::may_write(const RegisterPlace &place) const
{
    const uint32_t conf = registers.global(ERNIC_XRNICADCONF);
    const uint32_t qpn = field_get(ERNIC_ADCONF_QP, conf);
    const bool overridden = conf & ERNIC_ADCONF_OVERRIDE && (!qpn || qpn == place.index);
    switch (place.access) {
    case AccessKind::Rw:
    case AccessKind::W1c:
        return true;
    case AccessKind::Override:
        return overridden;
    case AccessKind::Stopped:
        return overridden || !pairs_[place.index].enabled;
    case AccessKind::Ro:
    case AccessKind::None:
        break;
    }
    return false;
}

void Adapter::write(uint64_t offset, uint32_t value, unsigned size)
{
    if (size != 4 || offset % 4) {
        stats.bad_accesses++;
        return;
    }
    enter([&] {
        const RegisterPlace place = registers.place(offset);
        if (!may_write(place))
            return;
        switch (place.block) {
        case RegisterPlace::Block::Global:
            write_global(place, value & place.bits);
            break;
        case RegisterPlace::Block::Qp:
            write_qp(place, value & place.bits);
            break;
        case RegisterPlace::Block::Pd:
            registers.pd(place.index, place.offset) = value & place.bits;
            break;
        case RegisterPlace::Block::None:
            break;
        }
    });
}

void Adapter::write_global(const RegisterPlace &place, uint32_t value)
{
    if (place.access == AccessKind::W1c) {
        interrupts.write_one_to_clear(place.offset, value);
        return;
    }
    uint32_t &word = registers.global(place.offset);
    const uint32_t before = word;
    word = place.offset == ERNIC_EXTENSIONS ? (before & ERNIC_EXT_HAS) | (value & ERNIC_EXT_ENABLE) : value;
    switch (place.offset) {
    case ERNIC_XRNICCONF:
        if (value & ~before & ERNIC_CONF_ENABLE)
            configure_buffers();
        configure_port();
        update_enabled();
        break;
    case ERNIC_XRNICADCONF:
        configure_timeouts();
        break;
    case ERNIC_PAUSE_CONF:
    case ERNIC_BUF_THRESHOLD_ROCE:
    case ERNIC_BUF_THRESHOLD_NON_ROCE:
        configure_flow_control();
        break;
    case ERNIC_MACXADDLSB:
    case ERNIC_MACXADDMSB:
    case ERNIC_IPV4XADD:
    case ERNIC_IPV6XADD1:
    case ERNIC_IPV6XADD2:
    case ERNIC_IPV6XADD3:
    case ERNIC_IPV6XADD4:
        configure_port();
        break;
    case ERNIC_RECORDBA:
    case ERNIC_RECORDBAMSB:
    case ERNIC_RECORDSZ:
        configure_records();
        break;
    case ERNIC_INTEN:
        interrupts.update();
        break;
    default:
        break;
    }
}

void Adapter::configure_port()
{
    port_.source_port = int(field_get(ERNIC_CONF_UDP_PORT, registers.global(ERNIC_XRNICCONF)));
    const auto mac = mac_of(registers.global(ERNIC_MACXADDMSB), registers.global(ERNIC_MACXADDLSB));
    port_.permanent_mac = mac;
    port_.addresses.set_mac(mac);
    port_.addresses.set_gid(kIpv4Gid, {true, false, 0, ipv4_of(registers.global(ERNIC_IPV4XADD)), mac});
    port_.addresses.set_gid(
        kIpv6Gid, {true, false, 0, ipv6_of([this](uint32_t i) { return registers.global(ERNIC_IPV6XADD1 + 4 * i); }), mac});
}

// The unit of time-outs is 2^width clocks. The document means 4.096 us by that, which it has with width 0 too.
void Adapter::configure_timeouts()
{
    const uint32_t width = field_get(ERNIC_ADCONF_COUNT_WIDTH, registers.global(ERNIC_XRNICADCONF));
    const uint32_t unit_ns = uint32_t((uint64_t(1000) << width) / config.clock_mhz);
    transport->timeout_unit_ns = width ? std::max(unit_ns, kLeastUnitNs) : kUnitNs;
}

// The document counts lines that are free: at XON it pauses the peer, and no more at XOFF (004:74).
void Adapter::configure_flow_control()
{
    constexpr uint32_t kMaxPriority = 7;   // the fields have four bits
    const uint32_t conf = registers.global(ERNIC_PAUSE_CONF);
    auto class_of = [&](uint32_t thresholds, uint32_t enabled, uint32_t priority) {
        const uint32_t xon = std::min(field_get(ERNIC_THRESHOLD_XON, thresholds), ERNIC_BUFFER_LINES);
        const uint32_t xoff = std::clamp(field_get(ERNIC_THRESHOLD_XOFF, thresholds), xon, ERNIC_BUFFER_LINES);
        return FlowControlSettings::Class{.priority = uint8_t(std::min(priority, kMaxPriority)),
                                          .xoff = (ERNIC_BUFFER_LINES - xon) * ERNIC_BUFFER_LINE_BYTES,
                                          .xon = (ERNIC_BUFFER_LINES - xoff) * ERNIC_BUFFER_LINE_BYTES,
                                          .pfc = enabled && priority <= kMaxPriority};
    };
    FlowControlSettings settings;
    settings.classes[kRoce] =
        class_of(registers.global(ERNIC_BUF_THRESHOLD_ROCE), conf & ERNIC_PAUSE_ROCE,
                 field_get(ERNIC_PAUSE_ROCE_PRIORITY, conf));
    settings.classes[kOther] =
        class_of(registers.global(ERNIC_BUF_THRESHOLD_NON_ROCE), conf & ERNIC_PAUSE_NON_ROCE,
                 field_get(ERNIC_PAUSE_NON_ROCE_PRIORITY, conf));
    settings.pfc_rx = settings.pfc_tx = settings.classes[kRoce].pfc || settings.classes[kOther].pfc;
    // Frames that name no priority.
    settings.pause_rx = settings.pfc_rx && conf & ERNIC_PAUSE_ANY_PRIORITY;
    port_.flow_control = settings;
    transport->restart_flow_control();
}

// A data buffer holds a packet; one that is smaller than 4 KB holds none.
void Adapter::configure_buffers()
{
    const uint32_t size = registers.global(ERNIC_DATBUFSZ);
    const uint32_t places =
        field_get(ERNIC_BUFFER_BYTES, size) < ERNIC_DATA_BUFFER_BYTES ? 0 : field_get(ERNIC_BUFFERS, size);
    transport->store.configure(registers.global_address(ERNIC_DATBUFBA, ERNIC_DATBUFBAMSB), places,
                               ERNIC_QPS_ERNIC + 1);
}

void Adapter::configure_records()
{
    registers.global(ERNIC_RECORDWPTR) = 0;
    receives.phase_ = true;
}

void Adapter::write_qp(const RegisterPlace &place, uint32_t value)
{
    const uint32_t qpn = place.index;
    if (place.offset == ERNIC_SQPI && pairs_[qpn].enabled) {
        write_sqpi(qpn, uint16_t(value));
        return;
    }
    if (place.offset == ERNIC_RQCI && pairs_[qpn].enabled) {
        write_rqci(qpn, uint16_t(value));
        return;
    }
    registers.qp(qpn, place.offset) = value;
    if (place.offset == ERNIC_QPCONF)
        update_enabled();
    if (pairs_[qpn].enabled && place.offset == ERNIC_SQPSN)
        write_sqpsn(pairs_[qpn], psn_of(value));
    if (pairs_[qpn].enabled)
        pairs_[qpn].qp.a = attributes(qpn);
    // As for SQPSN below: software may write the limits after it has enabled the QP.
    if (pairs_[qpn].enabled && place.offset == ERNIC_TIMEOUTCONF && qpn != ERNIC_QP1)
        transport->requester.reset_retries(pairs_[qpn].qp);
}

// Software enables a QP when it knows the peer's PSN, and tells its own later: before the QP sends.
void Adapter::write_sqpsn(QueuePair &pair, Psn psn)
{
    RequesterState &r = pair.qp.req;
    if (!pair.posted() && r.next_psn == r.unacked_psn)
        r.next_psn = r.next_wqe_psn = r.unacked_psn = r.highest_psn = r.oldest_psn = psn;
}

// ---- queue pairs

void Adapter::update_enabled()
{
    const uint32_t conf = registers.global(ERNIC_XRNICCONF);
    const uint32_t enabled = is_on() ? field_get(ERNIC_CONF_QPS, conf) : 0;
    for (uint32_t qpn = 1; qpn < pairs_.size(); qpn++) {
        const bool wanted = qpn <= enabled && registers.qp(qpn, ERNIC_QPCONF) & ERNIC_QPCONF_ENABLE;
        if (wanted && !pairs_[qpn].enabled)
            enable(qpn);
        else if (!wanted && pairs_[qpn].enabled)
            disable(qpn);
    }
}

QpAttributes Adapter::attributes(uint32_t qpn) const
{
    const uint32_t conf = registers.qp(qpn, ERNIC_QPCONF), advanced = registers.qp(qpn, ERNIC_QPADVCONF);
    const uint32_t timeout = registers.qp(qpn, ERNIC_TIMEOUTCONF);
    QpAttributes a{};
    a.qpn = Qpn(qpn);
    a.service = Service::Rc;
    a.mtu = 256u << std::min(field_get(ERNIC_QPCONF_PMTU, conf), kMaxMtuCode);
    a.log_max_msg = 31;
    a.pd = registers.qp(qpn, ERNIC_PD);
    a.sq.length = pairs_[qpn].sq.depth;
    a.rq.length = pairs_[qpn].rq.depth;
    a.remote_qpn = Qpn(registers.qp(qpn, ERNIC_DESTQPCONF));
    a.pkey = uint16_t(field_get(ERNIC_QPADVCONF_PKEY, advanced));
    a.path.by_gid = true;
    const bool ipv6 = conf & ERNIC_QPCONF_IPV6;
    a.path.sgid_index = ipv6 ? kIpv6Gid : kIpv4Gid;
    a.path.hop_limit = uint8_t(field_get(ERNIC_QPADVCONF_TTL, advanced));
    a.path.tclass = uint8_t(field_get(ERNIC_QPADVCONF_TRAFFIC_CLASS, advanced));
    a.path.dgid = ipv6 ? ipv6_of([&](uint32_t i) { return registers.qp(qpn, ERNIC_IPDESADDR1 + 4 * i); })
                       : ipv4_of(registers.qp(qpn, ERNIC_IPDESADDR1));
    a.path.dmac = mac_of(registers.qp(qpn, ERNIC_MACDESADDMSB), registers.qp(qpn, ERNIC_MACDESADDLSB));
    a.ack_timeout = uint8_t(field_get(ERNIC_TIMEOUT_VALUE, timeout));
    a.retry_count = uint8_t(field_get(ERNIC_TIMEOUT_RETRIES, timeout));
    a.rnr_retry = uint8_t(field_get(ERNIC_TIMEOUT_RNR_RETRIES, timeout));
    a.min_rnr_timer = uint8_t(field_get(ERNIC_TIMEOUT_RNR_TIMER, timeout));
    a.retries_forever = registers.global(ERNIC_XRNICADCONF) & ERNIC_ADCONF_RETRY_NOT_FATAL;
    a.max_rd_atomic = a.max_dest_rd_atomic = ERNIC_OUTSTANDING;
    if (registers.is_ernic())
        a.access = uint8_t(uint32_t(Access::RemoteWrite) | uint32_t(Access::RemoteRead));
    return a;
}

// The registers have the indices of the queues. A queue with an invalid index has no entries.
void Adapter::open_rings(QueuePair &pair, uint32_t qpn)
{
    const uint32_t depths = registers.qp(qpn, ERNIC_QDEPTH);
    const uint16_t sq_depth = uint16_t(field_get(ERNIC_QDEPTH_SQ, depths));
    const uint16_t rq_depth = uint16_t(field_get(ERNIC_QDEPTH_RQ, depths));
    const uint16_t cqhead = uint16_t(registers.qp(qpn, ERNIC_CQHEAD));
    const uint16_t written = uint16_t(registers.qp(qpn, ERNIC_STATRQPIDB));
    uint16_t posted = 0, unread = 0;
    pair.sq = pair.rq = {};
    if (entries_between(cqhead, uint16_t(registers.qp(qpn, ERNIC_SQPI)), sq_depth, posted))
        pair.sq = {sq_depth, cqhead, uint16_t(cqhead % sq_depth)};
    if (entries_between(uint16_t(registers.qp(qpn, ERNIC_RQCI)), written, rq_depth, unread))
        pair.rq = {rq_depth, written, uint16_t(written % rq_depth)};
    stats.bad_indices += (sq_depth && !pair.sq.depth) + (rq_depth && !pair.rq.depth);
    pair.sq_end = uint16_t(pair.sq.index + posted);
    pair.rq_read = uint16_t(pair.rq.index - unread);
}

void Adapter::enable(uint32_t qpn)
{
    QueuePair &pair = pairs_[qpn];
    const uint16_t wqes = pair.wqes;
    pair = {};
    pair.wqes = wqes;
    pair.enabled = true;
    pair.qp.a.qpn = Qpn(qpn);
    open_rings(pair, qpn);
    if (qpn == ERNIC_QP1)
        return;
    Qp &qp = pair.qp;
    qp.a = attributes(qpn);
    RequesterState &r = qp.req;
    r.next_psn = r.next_wqe_psn = r.unacked_psn = r.highest_psn = r.oldest_psn = psn_of(registers.qp(qpn, ERNIC_SQPSN));
    r.next_index = pair.sq.index;
    qp.resp.expected_psn = psn_add(psn_of(registers.qp(qpn, ERNIC_LSTRQREQ)), 1);
    qp.resp.msn = msn_of(registers.qp(qpn, ERNIC_STATMSN));
    qp.resp.rq_index = pair.rq.index;
    QpState from = QpState::Reset;
    for (const QpState to : {QpState::Init, QpState::Rtr, QpState::Rts}) {
        qp.state = to;
        transport->state_changed(qp, from);
        from = to;
    }
}

void Adapter::disable(uint32_t qpn)
{
    QueuePair &pair = pairs_[qpn];
    // What the registers show of a QP that is enabled they keep.
    for (const uint32_t offset : {ERNIC_SQPSN, ERNIC_LSTRQREQ, ERNIC_STATSSN, ERNIC_STATMSN, ERNIC_STATRESPSN})
        registers.qp(qpn, offset) = read_qp(qpn, offset);
    if (!pair.fatal)
        Acknowledgements::end(pair);
    pair.enabled = pair.fatal = false;
    const QpState from = pair.qp.state;
    pair.qp.state = QpState::Reset;
    if (qpn != ERNIC_QP1)
        transport->state_changed(pair.qp, from);
}

void Adapter::write_sqpi(uint32_t qpn, uint16_t value)
{
    QueuePair &pair = pairs_[qpn];
    uint16_t more;
    if (!value || !entries_between(uint16_t(registers.qp(qpn, ERNIC_SQPI)), value, pair.sq.depth, more) ||
        pair.posted() + more >= pair.sq.depth) {
        stats.bad_indices++;
        return;
    }
    registers.qp(qpn, ERNIC_SQPI) = value;
    pair.sq_end = uint16_t(pair.sq_end + more);
    if (qpn == ERNIC_QP1)
        mads.run();
    else
        transport->posted(pair.qp);
    transport->run();
}

void Adapter::write_rqci(uint32_t qpn, uint16_t value)
{
    QueuePair &pair = pairs_[qpn];
    uint16_t more;
    if (!value || !entries_between(uint16_t(registers.qp(qpn, ERNIC_RQCI)), value, pair.rq.depth, more) ||
        more > pair.unread()) {
        stats.bad_indices++;
        return;
    }
    registers.qp(qpn, ERNIC_RQCI) = value;
    pair.rq_read = uint16_t(pair.rq_read + more);
    pair.rq_overflow = pair.rq_overflow && !more;
}

uint32_t Adapter::expected_psn(uint32_t qpn) const { return number(pairs_[qpn].qp.resp.expected_psn); }

void Adapter::ring(uint32_t qpn, uint32_t low, uint32_t high, uint32_t value)
{
    if (!(registers.qp(qpn, ERNIC_QPCONF) & ERNIC_QPCONF_NO_HANDSHAKE)) {
        stats.pin_doorbells++;
        return;
    }
    const uint32_t word = le32(value);
    stats.dma_errors += !host.write(registers.qp_address(qpn, low, high), &word, sizeof(word));
}

void Adapter::discard_wqe(const QueuePair &pair, uint8_t opcode)
{
    stats.illegal_wqes++;
    counts.illegal_opcode(opcode);
    errors.illegal_wqe(number(pair.qp.a.qpn), opcode);
    interrupts.raise(ERNIC_INT_BAD_OPCODE);
}

void Adapter::become_fatal(QueuePair &pair, ernic_fatal code)
{
    if (pair.fatal)
        return;
    pair.fatal = true;
    stats.fatal++;
    if (incoming_) {
        const uint32_t syndrome = syndrome_of(pair.last_drop);
        errors.keep_packet(syndrome ? syndrome : 1u << ERNIC_SYNDROME_RESPONSE,
                           {incoming_->head.data(), incoming_->head_bytes}, true);
    }
    errors.fatal(number(pair.qp.a.qpn), code);
    interrupts.raise(ERNIC_INT_FATAL);
}

ernic_fatal Adapter::fatal_of(const QueuePair &pair, Status status, const ernic_wqe &wqe) const
{
    switch (status) {
    case Status::RetryExceeded:
        return ERNIC_FATAL_RETRIES;
    case Status::RnrRetryExceeded:
        return ERNIC_FATAL_RNR_RETRIES;
    case Status::RemoteInvalidRequest:
    case Status::RemoteAccess:
    case Status::RemoteOperation:
        return ERNIC_FATAL_NAK;
    case Status::BadResponse:
        break;
    default:
        return ERNIC_FATAL_MEMORY;
    }
    if (wqe.opcode != ERNIC_OPCODE_READ || !incoming_)
        return ERNIC_FATAL_ACK_OPCODE;
    return fatal_of_response(pair, le32(wqe.length));
}

// 11y2y1y0: all that is wrong with a READ response.
ernic_fatal Adapter::fatal_of_response(const QueuePair &pair, uint64_t read_bytes) const
{
    const uint64_t mtu = pair.qp.a.mtu;
    const uint64_t place = pair.qp.req.before(psn_of(incoming_->psn));
    const uint64_t packets = std::max<uint64_t>(1, (read_bytes + mtu - 1) / mtu);
    const bool is_last = place + 1 == packets;
    uint32_t code = 0;
    if (incoming_->flags() & kAeth && incoming_->syndrome & HGHCA_AETH_TYPE_MASK)
        code |= ERNIC_FATAL_READ_SYNDROME;
    // The opcode is correct if the packet begins and ends the response where the READ does.
    if (is_last != bool(incoming_->flags() & kLast) || !place != bool(incoming_->flags() & kFirst))
        code |= ERNIC_FATAL_READ_OPCODE;
    if (payload_bytes(*incoming_) != (is_last ? read_bytes - place * mtu : mtu))
        code |= ERNIC_FATAL_READ_LENGTH;
    return code ? ernic_fatal(code) : ERNIC_FATAL_READ_LENGTH;
}

// ---- what is received

bool Adapter::is_for_ethernet(const FrameView &frame) const
{
    std::array<uint8_t, kMaxHeader> head;
    const size_t bytes = std::min(frame.length, head.size());
    frame.copy(0, head.data(), bytes);
    return !is_for_rdma({head.data(), bytes}, port_.addresses.mac());
}

void Adapter::pass(const FrameView &frame)
{
    const bool passed = host.pass_frame(frame.parts);
    stats.frames_passed += passed;
    stats.frames_overrun += !passed;
}

FrameSent Adapter::forward(std::span<const iovec> parts)
{
    if (transport->flow_control.paused(kOther))
        return FrameSent::LinkFull;
    const FrameSent sent = host.send_frame(parts, Icrc::Unknown);
    stats.frames_forwarded += sent == FrameSent::Yes;
    return sent;
}

void Adapter::receive(std::span<const iovec> parts)
{
    const FrameView frame = view_of(parts);
    // The Ethernet adapter works even when this device has failed.
    if (failed_ && config.ethernet && is_for_ethernet(frame))
        pass(frame);
    enter([&] {
        transport->now_ns = host.now_ns();
        if (!transport->flow_control.takes(frame))
            accept(frame);
        // A pause does not wait for a turn: until then, a sender could fill the buffer.
        if (transport->flow_control.due())
            transport->flow_control.send();
    });
}

FrameSent Adapter::send_mad(std::span<const iovec> parts)
{
    const FrameView frame = view_of(parts);
    std::array<uint8_t, 6> destination{};
    frame.copy(0, destination.data(), destination.size());
    if (destination != port_.addresses.mac())
        return headers.send(parts);
    receive_packet(frame);
    incoming_ = nullptr;
    return FrameSent::Yes;
}

void Adapter::accept(const FrameView &frame)
{
    if (config.ethernet && is_for_ethernet(frame))
        pass(frame);
    else
        receive_packet(frame);
    incoming_ = nullptr;
}

void Adapter::receive_packet(const FrameView &frame)
{
    Incoming packet;
    if (!is_on())
        return;
    if (!take_apart(frame.parts, packet)) {
        stats.frames_ignored++;
        return;
    }
    incoming_ = &packet;
    counts.received(packet);
    if (const uint32_t syndrome = validate(packet, registers, *this, link)) {
        drop(syndrome);
        return;
    }
    counts.accepted(packet);
    if (packet.qpn == ERNIC_QP1) {
        mads.receive(packet);
        return;
    }
    QueuePair &pair = pairs_[packet.qpn];
    pair.last_drop = Drop::None;
    if (is_nak(packet))
        pair.nak_syndrome = packet.syndrome;
    const Psn expected = pair.qp.resp.expected_psn;
    const bool was_due = pair.qp.resp.ack_due;
    transport->receive_frame({frame.parts, 0, packet.frame.length}, true);
    if (!(packet.flags() & kResponse) && pair.last_drop == Drop::None) {
        pair.last_opcode = packet.opcode;
        // A READ has its response, and a duplicate is acknowledged at once.
        if (pair.qp.resp.expected_psn != expected && !(packet.flags() & kRead))
            acks.executed(pair, packet.asks_for_ack, was_due);
    }
    if (pair.qp.state == QpState::Error)
        become_fatal(pair, fatal_of_request(pair, fits(pair, packet)));
}

ernic_fatal Adapter::fatal_of_request(const QueuePair &pair, bool length_fits)
{
    switch (pair.last_drop) {
    case Drop::Sequence:
        return length_fits ? ERNIC_FATAL_SEQUENCE : ERNIC_FATAL_SEQUENCE_LENGTH;
    case Drop::Pad:
    case Drop::Length:
    case Drop::TooLong:
        return ERNIC_FATAL_LENGTH;
    case Drop::Opcode:
    case Drop::Request:
        return ERNIC_FATAL_OPCODE;
    case Drop::Access:
        return ERNIC_FATAL_ACCESS;
    default:
        return ERNIC_FATAL_MEMORY;
    }
}

// Invalid: nobody but the error buffer has it.
void Adapter::drop(uint32_t syndrome)
{
    counts.dropped(true);
    errors.keep_packet(syndrome, {incoming_->head.data(), incoming_->head_bytes}, false);
    interrupts.raise(ERNIC_INT_VALIDATION);
}

void Adapter::dropped(const Packet &packet, Drop why, uint64_t)
{
    if (number(packet.h.qpn) < pairs_.size())
        pairs_[number(packet.h.qpn)].last_drop = why;
    if (!incoming_)   // a QP has sent it to this device
        return;
    const uint32_t syndrome = syndrome_of(why);
    if (syndrome)
        drop(syndrome);
    else
        counts.dropped(true);
}

// ---- what the transport asks for

Qp *Adapter::find(Qpn qpn)
{
    if (number(qpn) >= pairs_.size() || number(qpn) <= ERNIC_QP1 || !pairs_[number(qpn)].enabled)
        return nullptr;
    return &pairs_[number(qpn)].qp;
}

void Adapter::post(Event event, const Qp &qp)
{
    if (event == Event::QueueFailed)
        become_fatal(pair(qp), ERNIC_FATAL_MEMORY);
}

void Adapter::sent(const Qp &qp, const TransportHeader &h)
{
    counts.sent(number(qp.a.qpn), h);
    if (kOpcodes[h.opcode] & kResponse)
        Acknowledgements::sent(pair(qp));
    // A NAK to a QP of this device, whose request did not come from the link.
    if (qp.state == QpState::Error)
        become_fatal(pair(qp), fatal_of_request(pair(qp), true));
}

void Adapter::went_back(const Qp &qp)
{
    pair(qp).retried = true;
    counts.retried();
}

void Adapter::begun(const Qp &qp)
{
    pair(qp).wqes++;
    counts.wqe_begun();
}

// ---- time and the link

bool Adapter::run()
{
    enter([&] {
        transport->flush();
        mads.run();
        transport->run();
    });
    return has_work();
}

void Adapter::timer()
{
    enter([&] {
        transport->expire(host.now_ns());
        acks.expire(transport->now_ns);
    });
}

void Adapter::link_ready()
{
    mads.link_ready();
    run();
}

void Adapter::set_link(bool up)
{
    enter([&] {
        port_.link_up = up;
        transport->restart_flow_control();
    });
}

}  // namespace hghca::ernic
