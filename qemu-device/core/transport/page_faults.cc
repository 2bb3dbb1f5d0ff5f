// SPDX-License-Identifier: GPL-2.0-or-later
#include "transport/page_faults.h"

#include "transport/transport.h"

namespace hghca {

namespace {

constexpr uint64_t kFaultPage = 4096;
constexpr uint64_t kAskAgainNs = 1'000'000;

}  // namespace

PageFaults::Answer PageFaults::ask(const Qp &qp, PageFault &page, const AbsentPage &absent, Side side)
{
    if (page.state == PageFault::State::Told)
        return Answer::Told;
    const uint64_t va = absent.va & ~(kFaultPage - 1);
    const bool failed = page.state == PageFault::State::Failed && page.key == absent.key && page.va == va;
    // Refused once: memory that is there by the next time is found.
    page = {};
    if (failed || !transport_.events.brings_pages())
        return Answer::Refused;
    const uint16_t token = ++token_;
    if (transport_.events.ask_for_page(qp, side, token, absent) == PageAsked::NoRoom)
        return Answer::Lost;
    transport_.counters.page_faults++;
    page = {PageFault::State::Told, token, absent.key, va};
    return Answer::Told;
}

PageFaults::Outcome PageFaults::wait(Qp &qp, const AbsentPage &absent)
{
    switch (ask(qp, qp.req.page, absent, Side::Requester)) {
    case Answer::Told:
        return Outcome::Waits;
    case Answer::Lost:
        // The timer of requests under way is needed for this, so they go again.
        if (is_reliable(qp.a.service))
            transport_.send_queue.go_back(qp);
        qp.req.waiting_timer = true;
        transport_.set_deadline(qp, transport_.now_ns + kAskAgainNs);
        return Outcome::Waits;
    case Answer::Refused:
        break;
    }
    return Outcome::Refused;
}

PageFaults::Outcome PageFaults::defer(Qp &qp, const AbsentPage &absent)
{
    const Answer answer = ask(qp, qp.resp.page, absent, Side::Responder);
    return answer == Answer::Refused ? Outcome::Refused : Outcome::Waits;
}

Resumed PageFaults::resume(Qp &qp, Side side, uint16_t token, bool failed)
{
    PageFault &page = side == Side::Responder ? qp.resp.page : qp.req.page;
    if (page.state != PageFault::State::Told || page.token != token)
        return Resumed::NotAsked;
    page.state = failed ? PageFault::State::Failed : PageFault::State::None;
    if (side == Side::Requester)
        transport_.schedule(qp);
    return Resumed::Yes;
}

}  // namespace hghca
