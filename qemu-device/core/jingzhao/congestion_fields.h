// SPDX-License-Identifier: GPL-2.0-or-later
// The mailbox of SET_CONGESTION and QUERY_CONGESTION (interface document, 4.26).
#pragma once

#include <cstdint>

#include "hghca_hw.h"
#include "transport/congestion.h"

namespace hghca {

// False: a value has no meaning on a port of `port_mbps`, and `out` is as it was.
[[nodiscard]] bool decode_congestion(const hghca_congestion &in, uint32_t port_mbps, CongestionControl &out);
hghca_congestion encode_congestion(const CongestionControl &control);

}  // namespace hghca
