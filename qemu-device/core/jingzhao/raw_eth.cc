// SPDX-License-Identifier: GPL-2.0-or-later
#include "jingzhao/raw_eth.h"

#include "device.h"
#include "jingzhao/flow.h"
#include "jingzhao/qp_table.h"
#include "jingzhao/rss.h"
#include "transport/transport.h"

namespace hghca {

namespace {

// Does the QP take frames in its state?
bool receives(const Qp *qp)
{
    return qp && qp->a.service == Service::Raw && qp->state >= QpState::Rtr &&
           qp->state != QpState::Error;
}

}  // namespace

bool RawEthernet::wanted(const uint8_t *dmac) const
{
    const Port &port = device_.port;
    constexpr uint8_t kBroadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    return port.promisc || !std::memcmp(dmac, port.addresses.mac().data(), 6) || !std::memcmp(dmac, kBroadcast, 6) ||
           (port.allmulti && dmac[0] & 1);
}

void RawEthernet::receive(const FrameView &frame, std::span<const uint8_t> head)
{
    if (frame.length < sizeof(hghca_eth_header) || steer(frame, head, kNoQpn) || device_.raw_qpn == kNoQpn ||
        !wanted(head.data()))
        return;
    Qp *qp = device_.qps->find(device_.raw_qpn);
    if (receives(qp))
        device_.transport->deliver_raw(*qp, frame);
}

void RawEthernet::receive_own(const FrameView &frame, std::span<const uint8_t> head, Qpn sender)
{
    steer(frame, head, sender);
}

// True: there are rules that take the frame, whatever has become of it.
bool RawEthernet::steer(const FrameView &frame, std::span<const uint8_t> head, Qpn sender)
{
    FlowTable &flows = *device_.flows;
    if (flows.empty())
        return false;
    const hghca_flow_fields fields = flow_fields(head);
    const std::vector<uint32_t> &takers = flows.find(fields);
    for (const uint32_t taker : takers) {
        const Qpn qpn = taker & HGHCA_FLOW_RSS ? device_.rss->select(taker & ~HGHCA_FLOW_RSS, fields) : Qpn(taker);
        if (qpn == sender)
            continue;
        Qp *qp = device_.qps->find(qpn);
        device_.work.add();
        // Its number may have been another QP's when the rule or the group was made.
        if (!receives(qp) || qp->a.special != Special::None)
            device_.counters_.flow_rx_no_qp++;
        else if (device_.transport->deliver_raw(*qp, frame))
            device_.counters_.flow_rx_packets++;
    }
    return !takers.empty();
}

}  // namespace hghca
