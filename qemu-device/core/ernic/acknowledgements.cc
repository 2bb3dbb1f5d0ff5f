// SPDX-License-Identifier: GPL-2.0-or-later
#include "ernic/acknowledgements.h"

#include <algorithm>

#include "byte_order.h"
#include "ernic/adapter.h"

namespace hghca::ernic {

namespace {

// The document does not say when the time for an ACK is out. It must be before the peer's own time-out.
constexpr unsigned kPartOfTimeout = 4;

}  // namespace

void Acknowledgements::executed(QueuePair &pair, bool asks, bool was_due)
{
    const uint32_t mode = field_get(ERNIC_CONF_ACK, device_.registers.global(ERNIC_XRNICCONF));
    ResponderState &resp = pair.qp.resp;
    // 3 is undefined: it is as 0.
    if (mode == ERNIC_ACK_REQUEST || (asks && mode != ERNIC_ACK_TIMEOUT))
        return;
    // A QP without a time-out has nothing to wait for.
    const uint8_t timeout = pair.qp.a.ack_timeout;
    if (!timeout) {
        resp.ack_due = true;
        return;
    }
    resp.ack_due = was_due;
    pair.ack_ns = std::min(pair.ack_ns, device_.transport->now_ns +
                                            (uint64_t(device_.transport->timeout_unit_ns) << timeout) / kPartOfTimeout);
    next_ns_ = std::min(next_ns_, pair.ack_ns);
}

void Acknowledgements::end(QueuePair &pair)
{
    pair.qp.resp.ack_due |= pair.ack_ns != UINT64_MAX;
    pair.ack_ns = UINT64_MAX;
}

void Acknowledgements::expire(uint64_t now_ns)
{
    if (next_ns_ > now_ns)
        return;
    next_ns_ = UINT64_MAX;
    for (uint32_t qpn = ERNIC_QP1 + 1; qpn <= device_.registers.qps(); qpn++) {
        QueuePair &pair = device_.pair(qpn);
        if (pair.ack_ns <= now_ns) {
            pair.ack_ns = UINT64_MAX;
            if (pair.enabled && !pair.fatal) {
                pair.qp.resp.ack_due = true;
                device_.transport->schedule(pair.qp);
            }
        }
        next_ns_ = std::min(next_ns_, pair.ack_ns);
    }
}

}  // namespace hghca::ernic
