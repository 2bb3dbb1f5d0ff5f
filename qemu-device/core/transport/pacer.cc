// SPDX-License-Identifier: GPL-2.0-or-later
#include "transport/pacer.h"

#include <algorithm>

#include "transport/transport.h"
#include "wire/link.h"
#include "wire/static_rate.h"

namespace hghca {

namespace {

// What a timer was late is made good, so that the rate is reached; but not all of a long sleep of the host at once.
constexpr uint64_t kLatestNs = 1'000'000;

}  // namespace

uint64_t Pacer::static_kbps(const Path &path) const
{
    const uint64_t mbps = kStaticRateMbps[path.static_rate];
    return mbps < transport_.port.speed_mbps ? mbps * 1000 : 0;
}

uint64_t Pacer::time_ns(Qp &qp, const Path &path, uint32_t bytes) const
{
    uint64_t kbps = static_kbps(path);
    if (const uint64_t reduced = transport_.congestion.reduced_kbps(qp))
        kbps = kbps ? std::min(kbps, reduced) : reduced;
    return kbps ? (uint64_t(bytes) * 8 * 1'000'000 + kbps - 1) / kbps : 0;
}

bool Pacer::hold(Qp &qp, const Path &path)
{
    Pace &pace = qp.pace;
    if (!time_ns(qp, path, 1)) {
        if (pace.phase == Pace::Phase::Held)
            pace.phase = Pace::Phase::Free;   // its rate has recovered meanwhile
        return false;
    }
    if (pace.phase == Pace::Phase::Held)
        return true;
    if (transport_.now_ns >= pace.next_ns)
        return false;
    pace.phase = Pace::Phase::Held;
    transport_.timers.arm(qp.a.qpn, std::max(pace.next_ns, transport_.now_ns + transport_.pace_grain_ns));
    return true;
}

void Pacer::put_off(Qp &qp, const Path &path, const Route &route)
{
    Pace &pace = qp.pace;
    const uint32_t bytes = route.layout.frame_bytes + kFcsBytes;
    const uint64_t time = time_ns(qp, path, bytes);
    if (!time)
        return;
    const uint64_t now = transport_.now_ns;
    const uint64_t late = pace.phase == Pace::Phase::Late ? std::min(now, kLatestNs) : 0;
    pace.next_ns = std::max(pace.next_ns, now - late) + time;
    if (transport_.congestion.reduces(qp))
        transport_.congestion.sent(qp, bytes);
}

void Pacer::expire(Qp &qp)
{
    Pace &pace = qp.pace;
    if (pace.phase != Pace::Phase::Held)
        return;
    if (pace.next_ns > transport_.now_ns) {
        transport_.timers.arm(qp.a.qpn, pace.next_ns);   // another of the QP's waits has ended
        return;
    }
    pace.phase = Pace::Phase::Late;
    transport_.schedule(qp);
}

}  // namespace hghca
