// SPDX-License-Identifier: GPL-2.0-or-later
// Paging on demand (interface document, 4.23): what becomes of a QP that needs a page which is not there.
#pragma once

#include <cstdint>

#include "transport/function.h"
#include "transport/segment.h"
#include "transport/qp.h"

namespace hghca {

class Transport;

//                     needs a page                RESUME_QP
//              None ----------------> Told -----------------------> None
//               ^      PAGE_FAULT          RESUME_QP with FAILED
//               |                          -------------------> Failed
//               +--- the same page again: refused ----------------+
//               +--- all that was needed is there ----------------+
//
// Nothing is kept of a request but this: the send side goes on from its WQE, the receive side has what came
// sent again by the peer.
class PageFaults {
public:
    explicit PageFaults(Transport &transport) : transport_(transport) {}

    enum class [[nodiscard]] Outcome : uint8_t {
        Waits,     // for the page
        Refused,   // the page cannot be had
    };
    // The send side needs a page. Refused: the WQE fails.
    Outcome wait(Qp &qp, const AbsentPage &absent);
    // The receive side needs a page for what came. Waits: it has to come again.
    Outcome defer(Qp &qp, const AbsentPage &absent);
    // Software has brought the page that it was asked for with `token`, or there is no such page (`failed`).
    Resumed resume(Qp &qp, Side side, uint16_t token, bool failed);

    // The side has what it needed: a page that could not be brought is of no account any more.
    static void satisfied(PageFault &page)
    {
        if (page.state == PageFault::State::Failed)
            page = {};
    }
    // Does the send side wait?
    static bool waits(const Qp &qp) { return qp.req.page.state == PageFault::State::Told; }

private:
    enum class [[nodiscard]] Answer {
        Told,      // software knows, now or since before
        Lost,      // the event found no room
        Refused,   // nobody brings pages, or this one could not be brought
    };
    Answer ask(const Qp &qp, PageFault &page, const AbsentPage &absent, Side side);

    Transport &transport_;
    uint16_t token_ = 0;   // of the last event: also that of a QP which has the number of another one since
};

}  // namespace hghca
