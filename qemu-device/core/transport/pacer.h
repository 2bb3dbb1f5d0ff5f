// SPDX-License-Identifier: GPL-2.0-or-later
// Rate control (interface document, section 9): a QP whose path has a rate below the port's own, or whose rate
// congestion control has reduced, sends no faster than the lower of both.
#pragma once

#include <cstdint>

#include "transport/qp.h"

namespace hghca {

class Transport;
struct Route;

// Each packet puts off the next one by the time that it takes on a link of that rate:
//
//          a packet too early                     next_ns
//    Free --------------------> Held ---------------------------------> Late
//     ^                          ^         a packet too early            |
//     |                          +---------------------------------------+
//     +------------------------------------------------------------------+
//                               nothing to send
//
// A QP in Held is not scheduled; its timer, which its other waits have as well, puts it back.
class Pacer {
public:
    explicit Pacer(Transport &transport) : transport_(transport) {}

    // Is it too early for a packet along `path`? Then the QP waits.
    bool holds(Qp &qp, const Path &path) { return may_hold(qp, path) && hold(qp, path); }
    // A packet has gone along `path` by `route`; nullptr: no route, and nothing has gone.
    void sent(Qp &qp, const Path &path, const Route *route)
    {
        if (route && may_hold(qp, path))
            put_off(qp, path, *route);
    }
    // What the path's static rate leaves of the port's speed, in kbit/s; 0: all of it.
    uint64_t static_kbps(const Path &path) const;
    // The time of `bytes` of the QP along `path`; 0: nothing holds them back.
    uint64_t time_ns(Qp &qp, const Path &path, uint32_t bytes) const;
    // A time has come that the timer of the QP was set to.
    void expire(Qp &qp);
    // The turn of the QP has ended, and it is not to have another one now.
    static void rest(Qp &qp)
    {
        if (qp.pace.phase == Pace::Phase::Late)
            qp.pace.phase = Pace::Phase::Free;
    }

private:
    static bool may_hold(const Qp &qp, const Path &path)
    {
        return path.static_rate || qp.congestion.rate == CongestionState::Rate::Reduced;
    }
    bool hold(Qp &qp, const Path &path);
    void put_off(Qp &qp, const Path &path, const Route &route);

    Transport &transport_;
};

}  // namespace hghca
