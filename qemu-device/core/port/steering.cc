// SPDX-License-Identifier: GPL-2.0-or-later
#include "port/steering.h"

#include <algorithm>
#include <cstddef>

#include "hghca_wire.h"

namespace hghca {

namespace {

constexpr uint16_t kFragmentOffset = 0x1fff;

uint16_t get16(const uint8_t *at) { return uint16_t(at[0] << 8 | at[1]); }

}  // namespace

bool is_for_rdma(std::span<const uint8_t> head, const std::array<uint8_t, 6> &mac)
{
    if (head.size() < sizeof(hghca_eth_header) + sizeof(hghca_ipv4_header) ||
        !std::equal(mac.begin(), mac.end(), head.data()))
        return false;
    const uint8_t *ip = head.data() + sizeof(hghca_eth_header);
    size_t ip_bytes;
    uint8_t protocol;
    switch (get16(head.data() + offsetof(hghca_eth_header, type))) {
    case HGHCA_ETH_TYPE_IPV4:
        ip_bytes = std::max(ip[0] & 0xf, 5) * size_t(4);
        protocol = ip[offsetof(hghca_ipv4_header, protocol)];
        if (get16(ip + offsetof(hghca_ipv4_header, fragment)) & kFragmentOffset)
            return false;
        break;
    case HGHCA_ETH_TYPE_IPV6:
        ip_bytes = sizeof(hghca_ipv6_header);
        protocol = ip[offsetof(hghca_ipv6_header, next_header)];
        break;
    default:
        return false;
    }
    const size_t udp = sizeof(hghca_eth_header) + ip_bytes;
    return protocol == HGHCA_IP_UDP && head.size() >= udp + sizeof(hghca_udp_header) &&
           get16(head.data() + udp + offsetof(hghca_udp_header, dst_port)) == HGHCA_ROCE_UDP_PORT;
}

}  // namespace hghca
