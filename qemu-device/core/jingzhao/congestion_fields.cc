// SPDX-License-Identifier: GPL-2.0-or-later
#include "jingzhao/congestion_fields.h"

#include "byte_order.h"

namespace hghca {

bool decode_congestion(const hghca_congestion &in, uint32_t port_mbps, CongestionControl &out)
{
    const uint32_t flags = be32(in.flags);
    CongestionControl c;
    c.react = flags & HGHCA_CONGESTION_REACT;
    c.notify = flags & HGHCA_CONGESTION_NOTIFY;
    c.cnp_interval_us = be32(in.cnp_interval);
    c.cnp_dscp = in.cnp_dscp;
    c.cnp_priority = in.cnp_priority;
    c.threshold = in.threshold;
    c.gain = be32(in.gain);
    c.alpha_period_us = be32(in.alpha_period);
    c.decrease_period_us = be32(in.decrease_period);
    c.increase_period_us = be32(in.increase_period);
    c.increase_bytes = be32(in.increase_bytes);
    c.additive_mbps = be32(in.additive);
    c.hyper_mbps = be32(in.hyper);
    c.min_mbps = be32(in.min_rate);
    if (flags & ~(HGHCA_CONGESTION_REACT | HGHCA_CONGESTION_NOTIFY) || !c.valid(port_mbps))
        return false;
    out = c;
    return true;
}

hghca_congestion encode_congestion(const CongestionControl &control)
{
    hghca_congestion out{};
    out.flags = be32((control.react ? HGHCA_CONGESTION_REACT : 0) | (control.notify ? HGHCA_CONGESTION_NOTIFY : 0));
    out.cnp_interval = be32(control.cnp_interval_us);
    out.cnp_dscp = control.cnp_dscp;
    out.cnp_priority = control.cnp_priority;
    out.threshold = control.threshold;
    out.gain = be32(control.gain);
    out.alpha_period = be32(control.alpha_period_us);
    out.decrease_period = be32(control.decrease_period_us);
    out.increase_period = be32(control.increase_period_us);
    out.increase_bytes = be32(control.increase_bytes);
    out.additive = be32(control.additive_mbps);
    out.hyper = be32(control.hyper_mbps);
    out.min_rate = be32(control.min_mbps);
    return out;
}

}  // namespace hghca
