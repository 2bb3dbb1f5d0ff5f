// SPDX-License-Identifier: GPL-2.0-or-later
#include "transport/congestion.h"

#include <algorithm>

#include "byte_order.h"
#include "transport/transport.h"

namespace hghca {

namespace {

constexpr uint32_t kMaxPeriodUs = 1'000'000;
constexpr uint32_t kMaxThreshold = 31;
constexpr uint32_t kGainOne = 1u << 16;
// No packet is so long that it ends two stages.
constexpr uint32_t kMinIncreaseBytes = 16 << 10;
constexpr uint32_t kMaxIncreaseBytes = 1u << 31;
constexpr uint64_t kNsPerUs = 1000;
constexpr uint32_t kKbpsPerMbps = 1000;

constexpr bool is_period(uint32_t us) { return us >= 1 && us <= kMaxPeriodUs; }

// Since `from_ns`, which may be what software made of it.
constexpr uint64_t elapsed(uint64_t now_ns, uint64_t from_ns) { return now_ns > from_ns ? now_ns - from_ns : 0; }

// `alpha` after `periods` in which no CNP came: (1 - g) to that power of it.
uint32_t decayed(uint32_t alpha, uint32_t gain, uint64_t periods)
{
    uint64_t factor = (uint64_t(kGainOne) - gain) << 16;   // 32 bits behind the point, below 1
    uint64_t value = alpha;
    for (; periods && value; periods >>= 1) {
        if (periods & 1)
            value = value * factor >> 32;
        factor = factor * factor >> 32;
    }
    return uint32_t(value);
}

// So many times: the target grows by `add`, and the rate goes half of the way to it. No step depends on the others but
// by halves of the distance, so that all are one.
void approach(CongestionState &c, uint64_t steps, uint32_t add)
{
    const unsigned halves = unsigned(std::min<uint64_t>(steps, 62));
    const int64_t distance = int64_t(c.target_kbps) - c.current_kbps;
    const int64_t left = add + ((distance - int64_t(add)) >> halves);
    c.target_kbps = uint32_t(c.target_kbps + steps * add);
    c.current_kbps = uint32_t(c.target_kbps - left);
}

// The same, but for a target that the line's rate ends.
void climb(CongestionState &c, uint32_t line_kbps, uint64_t steps, uint32_t add)
{
    if (add && steps) {
        const uint64_t whole = std::min<uint64_t>((line_kbps - c.target_kbps) / add, steps);
        approach(c, whole, add);
        steps -= whole;
        if (steps) {
            approach(c, 1, line_kbps - c.target_kbps);
            steps--;
        }
    }
    approach(c, steps, 0);
}

}  // namespace

// ---- parameters

bool CongestionControl::valid(uint32_t port_mbps) const
{
    return is_period(cnp_interval_us) && cnp_dscp <= 63 && cnp_priority <= 7 && threshold >= 1 &&
           threshold <= kMaxThreshold && gain >= 1 && gain <= kGainOne && is_period(alpha_period_us) &&
           is_period(decrease_period_us) && is_period(increase_period_us) && increase_bytes >= kMinIncreaseBytes &&
           increase_bytes <= kMaxIncreaseBytes && additive_mbps >= 1 && additive_mbps <= hyper_mbps &&
           hyper_mbps <= port_mbps && min_mbps >= 1 && min_mbps <= port_mbps;
}

// ---- receiver

bool Congestion::reacts() const { return transport_.control.react; }

Path Congestion::capable(const Path &path) const
{
    Path out = path;
    out.tclass = uint8_t((path.tclass & ~HGHCA_ECN_MASK) | HGHCA_ECN_ECT0);
    return out;
}

void Congestion::marked(Qp &qp)
{
    const CongestionControl &control = transport_.control;
    CongestionState &c = qp.congestion;
    if (!control.notify || c.cnp_due || transport_.now_ns < c.next_cnp_ns)
        return;
    c.cnp_due = true;
    c.next_cnp_ns = transport_.now_ns + control.cnp_interval_us * kNsPerUs;
    transport_.schedule(qp);
}

Turn Congestion::notify(Qp &qp, int32_t &credit)
{
    const CongestionControl &control = transport_.control;
    // ECN-capable, so that a queue that is full of marked packets marks it, too, and does not drop it.
    Path path = qp.a.path;
    path.tclass = uint8_t(control.cnp_dscp << HGHCA_DSCP_SHIFT | HGHCA_ECN_ECT0);
    path.sl = control.cnp_priority;
    TransportHeader h{};
    h.opcode = HGHCA_BTH_CNP;
    h.becn = true;
    h.pkey = transport_.pkey_of(qp);
    h.qpn = qp.a.remote_qpn;
    Route route;
    const bool reachable = transport_.link.route(path, Transport::flow_of(qp), route);
    qp.congestion.cnp_due = false;
    if (transport_.send_packet(qp, reachable ? &route : nullptr, h, {}, 0) == Sent::Blocked) {
        qp.congestion.cnp_due = true;
        return Turn::Blocked;
    }
    transport_.counters.np_cnp_sent++;
    credit -= kMaxHeader;
    return Turn::More;
}

// ---- sender

uint32_t Congestion::line_kbps(const Qp &qp) const
{
    const uint64_t held = transport_.pacer.static_kbps(qp.a.path);
    return held ? uint32_t(held) : transport_.port.speed_mbps * kKbpsPerMbps;
}

void Congestion::react(Qp &qp)
{
    const CongestionControl &control = transport_.control;
    CongestionState &c = qp.congestion;
    if (!control.react) {
        transport_.counters.rp_cnp_ignored++;
        return;
    }
    transport_.counters.rp_cnp_handled++;
    const uint64_t since_cut = elapsed(transport_.now_ns, c.cut_ns);
    if (c.rate == CongestionState::Rate::Untouched)
        c.alpha = kAlphaOne;
    else if (since_cut < control.decrease_period_us * kNsPerUs)
        return;   // of the same congestion
    else
        c.alpha = decayed(c.alpha, control.gain, since_cut / (control.alpha_period_us * kNsPerUs));

    const uint32_t reduced = reduced_kbps(qp);
    c.target_kbps = reduced ? reduced : line_kbps(qp);
    const uint32_t cut = uint32_t(uint64_t(c.target_kbps) * c.alpha / (2 * uint64_t(kAlphaOne)));
    c.current_kbps = std::max(c.target_kbps - cut, std::min(control.min_mbps * kKbpsPerMbps, c.target_kbps));
    c.alpha = uint32_t(c.alpha - uint64_t(c.alpha) * control.gain / kGainOne +
                       uint64_t(kAlphaOne) * control.gain / kGainOne);
    c.rate = CongestionState::Rate::Reduced;
    c.time_stage = c.byte_stage = 0;
    c.bytes = 0;
    c.cut_ns = c.stage_ns = transport_.now_ns;
    transport_.requester.slowed(qp);
}

// Fast recovery until either kind of stage has come to F, then additive increase; hyper increase when both have.
void Congestion::increase(Qp &qp, uint8_t &stage, uint8_t other_stage, uint64_t stages)
{
    const CongestionControl &control = transport_.control;
    CongestionState &c = qp.congestion;
    const uint32_t line = line_kbps(qp);
    c.target_kbps = std::min(c.target_kbps, line);
    c.current_kbps = std::min(c.current_kbps, line);
    const uint32_t additive = control.additive_mbps * kKbpsPerMbps;
    const bool other_past = other_stage > control.threshold;
    const uint64_t early = stage < control.threshold ? std::min<uint64_t>(stages, control.threshold - stage) : 0;
    climb(c, line, early, other_past ? additive : 0);
    climb(c, line, stages - early, other_past ? control.hyper_mbps * kKbpsPerMbps : additive);
    stage = uint8_t(std::min<uint64_t>(stage + stages, UINT8_MAX));
    if (c.current_kbps >= line)
        c.rate = CongestionState::Rate::Recovered;
}

uint32_t Congestion::reduced_kbps(Qp &qp)
{
    CongestionState &c = qp.congestion;
    if (!reduces(qp))
        return 0;
    const uint64_t period_ns = transport_.control.increase_period_us * kNsPerUs;
    if (const uint64_t stages = elapsed(transport_.now_ns, c.stage_ns) / period_ns) {
        c.stage_ns += stages * period_ns;
        increase(qp, c.time_stage, c.byte_stage, stages);
    }
    return c.rate == CongestionState::Rate::Reduced ? std::min(c.current_kbps, line_kbps(qp)) : 0;
}

void Congestion::sent(Qp &qp, uint32_t bytes)
{
    CongestionState &c = qp.congestion;
    const uint32_t stage_bytes = transport_.control.increase_bytes;
    const uint64_t all = uint64_t(c.bytes) + bytes;
    if (all < stage_bytes) {
        c.bytes = uint32_t(all);
        return;
    }
    c.bytes = uint32_t(std::min<uint64_t>(all - stage_bytes, stage_bytes));
    increase(qp, c.byte_stage, c.time_stage, 1);
}

}  // namespace hghca
