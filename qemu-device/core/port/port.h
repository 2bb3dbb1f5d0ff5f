// SPDX-License-Identifier: GPL-2.0-or-later
// The physical port as commands and the link set it.
#pragma once

#include <array>
#include <cstdint>

#include "port/addresses.h"
#include "port/flow_control.h"

namespace hghca {

struct Port {
    std::array<uint8_t, 6> permanent_mac;
    Addresses addresses;
    uint32_t mtu = 1500;
    uint32_t max_mtu = 9216;
    uint32_t speed_mbps = 100000;
    bool link_up = true;
    bool promisc = false;
    bool allmulti = false;
    bool multicast = false;    // groups exist
    static constexpr unsigned kGids = kMaxGids;
    uint16_t pkey = 0xffff;
    int source_port = -1;      // of UDP, for all packets; -1: it tells flows apart
    uint8_t hop_limit = 64;    // of a path that has none
    FlowControlSettings flow_control;
};

}  // namespace hghca
