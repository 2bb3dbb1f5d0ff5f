// SPDX-License-Identifier: GPL-2.0-or-later
// Paging on demand (interface document, 4.23): what becomes of a QP that needs a page which is not there.
#pragma once

#include <cstdint>

#include "jingzhao/memory.h"
#include "transport/qp.h"

namespace hghca {

class Engine;

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
    explicit PageFaults(Engine &engine) : engine_(engine) {}

    // The send side needs a page, and waits for it. False: it cannot be had, so the WQE fails.
    bool wait(Qp &qp, const AbsentPage &absent);
    // The receive side needs a page for what came, which has to come again. False: it cannot be had.
    bool defer(Qp &qp, const AbsentPage &absent);
    // RESUME_QP; `what` is HGHCA_RESUME_*. An HGHCA_CMD_STAT_*.
    uint8_t resume(Qp &qp, uint32_t what);

    // The side has what it needed: a page that could not be brought is of no account any more.
    static void satisfied(PageFault &page)
    {
        if (page.state == PageFault::State::Failed)
            page = {};
    }
    // Does the send side wait?
    static bool waits(const Qp &qp) { return qp.req.page.state == PageFault::State::Told; }

private:
    enum class Answer {
        Told,      // software knows, now or since before
        Lost,      // the event found no room
        Refused,   // nobody brings pages, or this one could not be brought
    };
    Answer ask(const Qp &qp, PageFault &page, const AbsentPage &absent, uint32_t side);

    Engine &engine_;
    uint16_t token_ = 0;   // of the last event: also that of a QP which has the number of another one since
};

}  // namespace hghca
