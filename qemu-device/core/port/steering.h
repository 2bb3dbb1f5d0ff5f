// SPDX-License-Identifier: GPL-2.0-or-later
// A port that an RDMA function shares with an Ethernet adapter: which frames are whose.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace hghca {

// Is a frame from the link for the RDMA function alone? It is one to UDP port 4791, over IPv4 or IPv6, for MAC address
// `mac`. All others are the Ethernet adapter's: also those to groups, those with a VLAN tag, and fragments behind the
// first, which have no UDP header. `head`: the first bytes of the frame.
bool is_for_rdma(std::span<const uint8_t> head, const std::array<uint8_t, 6> &mac);

}  // namespace hghca
