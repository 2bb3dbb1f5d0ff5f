// SPDX-License-Identifier: GPL-2.0-or-later
#include "jingzhao/page_faults.h"

#include <algorithm>

#include "byte_order.h"
#include "jingzhao/queues.h"
#include "transport/engine.h"

namespace hghca {

namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kAskAgainNs = 1'000'000;

}  // namespace

PageFaults::Answer PageFaults::ask(const Qp &qp, PageFault &page, const AbsentPage &absent, uint32_t side)
{
    if (page.state == PageFault::State::Told)
        return Answer::Told;
    const uint64_t va = absent.va & ~(kPage - 1);
    const bool failed = page.state == PageFault::State::Failed && page.key == absent.key && page.va == va;
    // Refused once: memory that is there by the next time is found.
    page = {};
    EventQueues &eqs = *engine_.device.eqs;
    if (failed || !eqs.takes(HGHCA_EVENT_PAGE_FAULT))
        return Answer::Refused;
    const uint16_t token = ++token_;
    hghca_eqe eqe{};
    eqe.type = HGHCA_EVENT_PAGE_FAULT;
    eqe.event.page_fault.qpn = be32(qp.a.qpn);
    eqe.event.page_fault.what = be32(field_put(HGHCA_PAGE_FAULT_TOKEN_MASK, token) | side |
                                     (absent.write ? HGHCA_PAGE_FAULT_WRITE : 0));
    eqe.event.page_fault.key = be32(absent.key);
    eqe.event.page_fault.addr_h = be32(uint32_t(absent.va >> 32));
    eqe.event.page_fault.addr_l = be32(uint32_t(absent.va));
    eqe.event.page_fault.length = be32(uint32_t(std::min<uint64_t>(absent.length, UINT32_MAX)));
    if (!eqs.post_async(eqe))
        return Answer::Lost;
    engine_.counters.page_faults++;
    page = {PageFault::State::Told, token, absent.key, va};
    return Answer::Told;
}

bool PageFaults::wait(Qp &qp, const AbsentPage &absent)
{
    switch (ask(qp, qp.req.page, absent, 0)) {
    case Answer::Told:
        return true;
    case Answer::Lost:
        // The timer of requests under way is needed for this, so they go again.
        if (is_reliable(qp.a.service))
            engine_.send_queue.go_back(qp);
        qp.req.waiting_timer = true;
        engine_.set_deadline(qp, engine_.now_ns + kAskAgainNs);
        return true;
    case Answer::Refused:
        break;
    }
    return false;
}

bool PageFaults::defer(Qp &qp, const AbsentPage &absent)
{
    return ask(qp, qp.resp.page, absent, HGHCA_PAGE_FAULT_RESPONDER) != Answer::Refused;
}

uint8_t PageFaults::resume(Qp &qp, uint32_t what)
{
    const bool responder = what & HGHCA_RESUME_RESPONDER;
    PageFault &page = responder ? qp.resp.page : qp.req.page;
    if (page.state != PageFault::State::Told || page.token != field_get(HGHCA_RESUME_TOKEN_MASK, what))
        return HGHCA_CMD_STAT_BAD_RES_STATE;
    page.state = what & HGHCA_RESUME_FAILED ? PageFault::State::Failed : PageFault::State::None;
    if (!responder)
        engine_.schedule(qp);
    return HGHCA_CMD_STAT_OK;
}

}  // namespace hghca
