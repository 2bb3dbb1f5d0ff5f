// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <array>
#include <cstdint>

namespace hghca {

// Where packets go, in host byte order where it is a number. Addresses are wire order.
struct Path {
    bool by_gid;  // rgid and sgid_index; otherwise sip, dip, smac
    uint8_t sgid_index;
    uint8_t hop_limit;
    uint8_t tclass;
    uint8_t sl;
    uint8_t static_rate;   // its code; 0: the port's own
    uint32_t flow_label;
    std::array<uint8_t, 16> dgid;
    std::array<uint8_t, 6> dmac;
    std::array<uint8_t, 6> smac;
    uint32_t sip, dip;  // IPv4, host order
};

}  // namespace hghca
