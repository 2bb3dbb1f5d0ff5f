// SPDX-License-Identifier: GPL-2.0-or-later
// The physical port as commands and the link set it.
#pragma once

#include <array>
#include <cstdint>

#include "port/flow_control.h"

namespace hghca {

constexpr uint32_t kMaxGids = 128;

struct GidEntry {
    bool valid;
    bool tagged;
    uint16_t vlan;
    std::array<uint8_t, 16> gid;
    std::array<uint8_t, 6> mac;
    bool is_ipv4() const;      // ::ffff:a.b.c.d
    uint32_t ipv4() const;     // host order
};

struct Port {
    std::array<uint8_t, 6> permanent_mac;
    std::array<uint8_t, 6> mac;
    uint32_t mtu = 1500;
    uint32_t max_mtu = 9216;
    uint32_t speed_mbps = 100000;
    bool link_up = true;
    bool promisc = false;
    bool allmulti = false;
    bool has_gids = false;     // packets are for its GIDs alone; otherwise only a QP knows its address
    bool multicast = false;    // groups exist
    static constexpr unsigned kGids = kMaxGids;
    std::array<GidEntry, kGids> gids{};
    uint16_t pkey = 0xffff;
    int source_port = -1;      // of UDP, for all packets; -1: it tells flows apart
    uint8_t hop_limit = 64;    // of a path that has none
    FlowControlSettings flow_control;
};

}  // namespace hghca
