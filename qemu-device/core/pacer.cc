// SPDX-License-Identifier: GPL-2.0-or-later
#include "pacer.h"

#include <algorithm>

#include "engine.h"

namespace hghca {

namespace {

constexpr uint32_t kMbps[HGHCA_STATIC_RATE_MAX + 1] = HGHCA_STATIC_RATE_MBPS;
constexpr uint32_t kFcsBytes = 4;
// Waits are at least so long: packets go in bursts, not each at the price of a timer.
constexpr uint64_t kGrainNs = 20'000;
// What a timer was late is made good, so that the rate is reached; but not all of a long sleep of the host at once.
constexpr uint64_t kLatestNs = 1'000'000;

}  // namespace

uint64_t Pacer::time_ns(const Path &path, uint32_t bytes) const
{
    const uint64_t mbps = kMbps[path.static_rate];
    if (!mbps || mbps >= engine_.device.port.speed_mbps)
        return 0;
    return (uint64_t(bytes) * 8 * 1000 + mbps - 1) / mbps;
}

bool Pacer::hold(Qp &qp, const Path &path)
{
    Pace &pace = qp.pace;
    if (!time_ns(path, 1))
        return false;
    if (pace.phase == Pace::Phase::Held)
        return true;
    if (engine_.now_ns >= pace.next_ns)
        return false;
    pace.phase = Pace::Phase::Held;
    engine_.timers.arm(qp.a.qpn, std::max(pace.next_ns, engine_.now_ns + kGrainNs));
    return true;
}

void Pacer::put_off(Qp &qp, const Path &path, const Route &route)
{
    Pace &pace = qp.pace;
    const uint64_t time = time_ns(path, route.layout.frame_bytes + kFcsBytes);
    if (!time)
        return;
    const uint64_t now = engine_.now_ns;
    const uint64_t late = pace.phase == Pace::Phase::Late ? std::min(now, kLatestNs) : 0;
    pace.next_ns = std::max(pace.next_ns, now - late) + time;
}

void Pacer::expire(Qp &qp)
{
    Pace &pace = qp.pace;
    if (pace.phase != Pace::Phase::Held)
        return;
    if (pace.next_ns > engine_.now_ns) {
        engine_.timers.arm(qp.a.qpn, pace.next_ns);   // another of the QP's waits has ended
        return;
    }
    pace.phase = Pace::Phase::Late;
    engine_.schedule(qp);
}

}  // namespace hghca
