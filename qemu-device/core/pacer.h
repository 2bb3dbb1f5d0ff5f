// SPDX-License-Identifier: GPL-2.0-or-later
// Static rate control (interface document, section 9): a QP whose path has a rate below the port's own sends no
// faster than that.
#pragma once

#include <cstdint>

#include "qp.h"

namespace hghca {

class Engine;
struct Route;

// Each packet puts off the next one by the time that it takes on a link of the path's rate:
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
    explicit Pacer(Engine &engine) : engine_(engine) {}

    // Is it too early for a packet along `path`? Then the QP waits.
    bool holds(Qp &qp, const Path &path) { return path.static_rate && hold(qp, path); }
    // A packet has gone along `path` by `route`; nullptr: there is none, and nothing has gone.
    void sent(Qp &qp, const Path &path, const Route *route)
    {
        if (path.static_rate && route)
            put_off(qp, path, *route);
    }
    // The time of `bytes` at the path's rate; 0: nothing holds them back.
    uint64_t time_ns(const Path &path, uint32_t bytes) const;
    // A time has come that the timer of the QP was set to.
    void expire(Qp &qp);
    // The turn of the QP has ended, and it is not to have another one now.
    static void rest(Qp &qp)
    {
        if (qp.pace.phase == Pace::Phase::Late)
            qp.pace.phase = Pace::Phase::Free;
    }

private:
    bool hold(Qp &qp, const Path &path);
    void put_off(Qp &qp, const Path &path, const Route &route);

    Engine &engine_;
};

}  // namespace hghca
