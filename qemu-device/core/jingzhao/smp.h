// SPDX-License-Identifier: GPL-2.0-or-later
// Subnet management packets of MAD_IFC (interface document, 4.11; IBA vol 1, 13.4 and 14.2).
#pragma once

#include <array>
#include <cstdint>

namespace hghca {

constexpr unsigned kMadBytes = 256;
using Mad = std::array<uint8_t, kMadBytes>;

// The values of the HCA and its only port.
struct SubnetAttributes {
    uint64_t node_guid;
    uint64_t port_guid;
    uint16_t device_id;
    uint16_t pkey;
    bool link_up;
};

// Replaces a SubnGet or a SubnSet by its response, whose status says why it failed. False: `mad` is not of a subnet
// management class, or has no response.
bool answer_smp(Mad &mad, const SubnetAttributes &attributes);

}  // namespace hghca
