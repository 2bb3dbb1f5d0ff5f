// SPDX-License-Identifier: GPL-2.0-or-later
// RoCE v2 over Ethernet, IPv4 or IPv6, and UDP (interface document, section 9).
#include "port/roce_v2.h"

#include <algorithm>
#include <cstring>

#include "byte_order.h"
#include "hghca_wire.h"
#include "wire/packet.h"
#include "wire/wire_object.h"

namespace hghca {

namespace {

constexpr std::array<uint8_t, 12> kMappedPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

std::array<uint8_t, 16> mapped(const uint8_t ipv4[4])
{
    std::array<uint8_t, 16> gid;
    std::copy(kMappedPrefix.begin(), kMappedPrefix.end(), gid.begin());
    std::copy(ipv4, ipv4 + 4, gid.begin() + 12);
    return gid;
}

std::array<uint8_t, 16> mapped(uint32_t ipv4)
{
    uint32_t wire = be32(ipv4);
    uint8_t bytes[4];
    std::memcpy(bytes, &wire, 4);
    return mapped(bytes);
}

// RFC 1071: the sum of 16-bit words, in the byte order of the wire, which comes out in that of the host.
template <class T>
uint32_t sum_of_words(const T &bytes)
{
    static_assert(sizeof(T) % 4 == 0);
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof(T); i += 4) {
        uint32_t word;
        std::memcpy(&word, reinterpret_cast<const uint8_t *>(&bytes) + i, sizeof(word));
        sum += word;
    }
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    return be16(uint16_t(sum + (sum >> 16)));
}

uint16_t checksum_of(uint32_t sum)
{
    sum = (sum & 0xffff) + (sum >> 16);
    return uint16_t(~(sum + (sum >> 16)));
}

// Annex A17.3.3: the ICRC takes these fields for ones, and of the BTH (IBA vol 1, 9.2) the byte before the QPN.
template <bool ipv6>
constexpr auto make_variant_bits()
{
    constexpr size_t ip_bytes = ipv6 ? sizeof(hghca_ipv6_header) : sizeof(hghca_ipv4_header);
    constexpr size_t udp = ip_bytes, bth = udp + sizeof(hghca_udp_header);
    std::array<uint8_t, bth + kMaxTransportHeader> ones{};
    if (ipv6) {
        // Traffic class and flow label: all but the version.
        ones[0] = 0x0f;
        ones[1] = ones[2] = ones[3] = 0xff;
        ones[offsetof(hghca_ipv6_header, hop_limit)] = 0xff;
    } else {
        ones[offsetof(hghca_ipv4_header, tos)] = 0xff;
        ones[offsetof(hghca_ipv4_header, ttl)] = 0xff;
        ones[offsetof(hghca_ipv4_header, checksum)] = ones[offsetof(hghca_ipv4_header, checksum) + 1] = 0xff;
    }
    ones[udp + offsetof(hghca_udp_header, checksum)] = ones[udp + offsetof(hghca_udp_header, checksum) + 1] = 0xff;
    ones[bth + offsetof(hghca_bth, qpn)] = 0xff;
    return ones;
}
constexpr auto kVariantV4 = make_variant_bits<false>();
constexpr auto kVariantV6 = make_variant_bits<true>();

// Spreads flows over what hashes the UDP source port: by the flow label, all 20 bits of which count, where the path has
// one, otherwise by what tells the flow apart.
uint16_t source_port(uint32_t flow_label, uint32_t flow)
{
    const uint32_t h = flow_label ? (flow_label ^ flow_label >> 14) & 0x3fff : flow * 0x9e3779b1u >> 18;
    return uint16_t(HGHCA_ROCE_SRC_PORT_BASE | h);
}

// Where frames to a multicast group go: RFC 1112, 6.4, and RFC 2464, 7.
std::array<uint8_t, 6> group_mac(const std::array<uint8_t, 16> &gid)
{
    if (is_mapped(gid))
        return {0x01, 0x00, 0x5e, uint8_t(gid[13] & 0x7f), gid[14], gid[15]};
    return {0x33, 0x33, gid[12], gid[13], gid[14], gid[15]};
}

}  // namespace

bool is_mapped(const std::array<uint8_t, 16> &gid)
{
    return std::equal(kMappedPrefix.begin(), kMappedPrefix.end(), gid.begin());
}

bool is_multicast(const std::array<uint8_t, 16> &gid)
{
    return gid[0] == 0xff || (is_mapped(gid) && gid[12] >> 4 == 0xe);
}

bool RoceV2::own_address(const uint8_t *mac) const
{
    return port_.addresses.is_own(mac);
}

bool RoceV2::route(const Path &path, uint32_t flow, Route &out) const
{
    std::array<uint8_t, 16> sgid = mapped(path.sip), dgid = mapped(path.dip);
    const uint8_t *smac = path.smac.data();
    int vlan = -1;
    if (path.by_gid) {
        if (path.sgid_index >= Port::kGids || !port_.addresses.gids()[path.sgid_index].valid)
            return false;
        const GidEntry &source = port_.addresses.gids()[path.sgid_index];
        sgid = source.gid;
        dgid = path.dgid;
        smac = source.mac.data();
        vlan = source.tagged ? source.vlan : -1;
    }
    out.to_self = own_address(path.dmac.data());
    out.to_group = is_multicast(dgid);
    out.layout.ipv6 = !(is_mapped(sgid) && is_mapped(dgid));

    uint8_t *at = out.header.data();
    std::memcpy(at, path.dmac.data(), 6);
    std::memcpy(at + 6, smac, 6);
    at += 12;
    auto put16 = [&at](uint16_t value) {
        value = be16(value);
        std::memcpy(at, &value, 2);
        at += 2;
    };
    if (vlan >= 0) {
        put16(HGHCA_ETH_TYPE_VLAN);
        put16(uint16_t(field_put(HGHCA_VLAN_PCP_MASK, path.sl) | (unsigned(vlan) & HGHCA_VLAN_ID_MASK)));
    }
    put16(out.layout.ipv6 ? HGHCA_ETH_TYPE_IPV6 : HGHCA_ETH_TYPE_IPV4);
    out.layout.network_offset = uint8_t(at - out.header.data());

    const uint8_t hops = path.hop_limit ? path.hop_limit : port_.hop_limit;
    if (out.layout.ipv6) {
        hghca_ipv6_header ip{};
        ip.version_class_flow = be32(6u << 28 | field_put(HGHCA_IPV6_CLASS_MASK, path.tclass) |
                                     (path.flow_label & HGHCA_IPV6_FLOW_MASK));
        ip.next_header = HGHCA_IP_UDP;
        ip.hop_limit = hops;
        std::copy(sgid.begin(), sgid.end(), ip.src);
        std::copy(dgid.begin(), dgid.end(), ip.dst);
        at = append(at, ip);
    } else {
        hghca_ipv4_header ip{};
        ip.version_ihl = HGHCA_IPV4_VERSION_IHL;
        ip.tos = path.tclass;
        ip.fragment = be16(HGHCA_IPV4_DF);
        ip.ttl = hops;
        ip.protocol = HGHCA_IP_UDP;
        std::copy(sgid.begin() + 12, sgid.end(), ip.src);
        std::copy(dgid.begin() + 12, dgid.end(), ip.dst);
        out.invariant_sum = sum_of_words(ip);
        at = append(at, ip);
    }
    // UDP checksum 0: none. The ICRC covers more than it would.
    const uint16_t from = port_.source_port < 0 ? source_port(path.flow_label, flow) : uint16_t(port_.source_port);
    hghca_udp_header udp{be16(from), be16(HGHCA_ROCE_UDP_PORT), 0, 0};
    at = append(at, udp);
    out.layout.transport_offset = uint8_t(at - out.header.data());
    out.finished_bytes = 0;
    return true;
}

void RoceV2::finish(Route &route, uint32_t transport_bytes) const
{
    if (route.finished_bytes == transport_bytes)
        return;
    const uint16_t udp_bytes = uint16_t(sizeof(hghca_udp_header) + transport_bytes);
    const uint16_t udp_wire = be16(udp_bytes);
    uint8_t *ip = route.header.data() + route.layout.network_offset;
    uint8_t *udp = route.header.data() + route.layout.transport_offset - sizeof(hghca_udp_header);
    std::memcpy(udp + offsetof(hghca_udp_header, length), &udp_wire, 2);
    if (route.layout.ipv6) {
        std::memcpy(ip + offsetof(hghca_ipv6_header, length), &udp_wire, 2);
    } else {
        const uint16_t length = be16(uint16_t(sizeof(hghca_ipv4_header) + udp_bytes));
        std::memcpy(ip + offsetof(hghca_ipv4_header, length), &length, 2);
        const uint16_t checksum = be16(checksum_of(route.invariant_sum + be16(length)));
        std::memcpy(ip + offsetof(hghca_ipv4_header, checksum), &checksum, 2);
    }
    route.layout.frame_bytes = route.layout.transport_offset + transport_bytes;
    route.icrc = icrc_of_link_header(variant_bits(route.layout), route.header.data(), route.layout);
    route.finished_bytes = transport_bytes;
}

const uint8_t *RoceV2::variant_bits(const NetworkLayout &layout) const
{
    return layout.ipv6 ? kVariantV6.data() : kVariantV4.data();
}

int RoceV2::find_gid(const std::array<uint8_t, 16> &gid, int vlan)
{
    auto matches = [&](const GidEntry &e) { return e.valid && e.gid == gid && (e.tagged ? e.vlan : -1) == vlan; };
    const auto &gids = port_.addresses.gids();
    if (matches(gids[last_gid_]))
        return int(last_gid_);
    for (unsigned i = 0; i < Port::kGids; i++) {
        if (matches(gids[i])) {
            last_gid_ = i;
            return int(i);
        }
    }
    return -1;
}

bool RoceV2::in_vlan(int vlan)
{
    auto matches = [vlan](const GidEntry &e) { return e.valid && (e.tagged ? e.vlan : -1) == vlan; };
    const auto &gids = port_.addresses.gids();
    if (matches(gids[last_vlan_]))
        return true;
    const auto found = std::find_if(gids.begin(), gids.end(), matches);
    if (found == gids.end())
        return false;
    last_vlan_ = unsigned(found - gids.begin());
    return true;
}

const GroupMembers *RoceV2::find_group(const uint8_t *dmac, const Arrival &arrival)
{
    if (!is_multicast(arrival.dgid) || std::memcmp(dmac, group_mac(arrival.dgid).data(), 6) != 0 ||
        (port_.addresses.has_gids() && !in_vlan(arrival.vlan)))
        return nullptr;
    return groups_.find(arrival.dgid);
}

namespace {

constexpr size_t kMinLinkHeader = sizeof(hghca_eth_header) + sizeof(hghca_ipv4_header) + sizeof(hghca_udp_header);

}  // namespace

// Where a header like this one may be kept: by its lengths, addresses and ports, as most headers have them.
RoceV2::Known &RoceV2::place_of(const uint8_t *head)
{
    uint32_t hash = 0;
    for (const size_t offset : {16u, 28u, 34u, 38u}) {
        uint32_t word;
        std::memcpy(&word, head + offset, sizeof(word));
        hash = (hash ^ word) * 0x9e3779b1u;
    }
    return known_[hash >> 28];
}

Verdict RoceV2::classify(std::span<const uint8_t> head, size_t frame_bytes, Arrival &out, Drop &why)
{
    if (head.size() < kMinLinkHeader)
        return classify_unknown(head, frame_bytes, out, why);
    Known &known = place_of(head.data());
    const NetworkLayout &layout = known.arrival.layout;
    if (known.generation == port_.addresses.generation() && frame_bytes >= layout.frame_bytes &&
        head.size() >= layout.transport_offset &&
        !std::memcmp(known.header.data(), head.data(), layout.transport_offset)) {
        out = known.arrival;
        why = Drop::None;
        return Verdict::Engine;
    }
    const Verdict verdict = classify_unknown(head, frame_bytes, out, why);
    // Groups come and go by themselves.
    if (verdict == Verdict::Engine && !out.members) {
        known.generation = port_.addresses.generation();
        std::memcpy(known.header.data(), head.data(), out.layout.transport_offset);
        known.arrival = out;
    }
    return verdict;
}

Verdict RoceV2::classify_unknown(std::span<const uint8_t> head, size_t frame_bytes, Arrival &out, Drop &why)
{
    // First: is it for the engine at all? Whatever cannot be told is not.
    NetworkLayout &layout = out.layout;
    size_t at = sizeof(hghca_eth_header);
    if (head.size() < at + sizeof(hghca_ipv4_header) + sizeof(hghca_udp_header))
        return Verdict::Other;
    const bool to_group = head[0] & 1 && port_.multicast;
    if (!to_group && !own_address(head.data()))
        return Verdict::Other;
    auto get16 = [head](size_t offset) { return uint16_t(head[offset] << 8 | head[offset + 1]); };
    uint16_t type = get16(12);
    out.vlan = -1;
    out.sl = 0;
    if (type == HGHCA_ETH_TYPE_VLAN) {
        const uint16_t tci = get16(14);
        out.sl = uint8_t(field_get(HGHCA_VLAN_PCP_MASK, tci));
        // VLAN 0 is a priority tag alone (IEEE 802.1Q, 9.6).
        if (tci & HGHCA_VLAN_ID_MASK)
            out.vlan = tci & HGHCA_VLAN_ID_MASK;
        type = get16(16);
        at += sizeof(hghca_vlan_tag);
    }
    layout.network_offset = uint8_t(at);
    layout.ipv6 = type == HGHCA_ETH_TYPE_IPV6;
    size_t ip_bytes;
    size_t ip_length;
    uint32_t ipv4_sum = 0;
    if (layout.ipv6) {
        ip_bytes = sizeof(hghca_ipv6_header);
        if (head.size() < at + ip_bytes + sizeof(hghca_udp_header))
            return Verdict::Other;
        hghca_ipv6_header ip;
        std::memcpy(&ip, head.data() + at, sizeof(ip));
        if (ip.next_header != HGHCA_IP_UDP)
            return Verdict::Other;
        std::copy(ip.src, ip.src + 16, out.sgid.begin());
        std::copy(ip.dst, ip.dst + 16, out.dgid.begin());
        out.ecn = field_get(HGHCA_IPV6_CLASS_MASK, be32(ip.version_class_flow)) & HGHCA_ECN_MASK;
        ip_length = ip_bytes + be16(ip.length);
    } else if (type == HGHCA_ETH_TYPE_IPV4) {
        if (head.size() < at + sizeof(hghca_ipv4_header) + sizeof(hghca_udp_header))
            return Verdict::Other;
        hghca_ipv4_header ip;
        std::memcpy(&ip, head.data() + at, sizeof(ip));
        ipv4_sum = sum_of_words(ip);
        ip_bytes = size_t(ip.version_ihl & 0xf) * 4;
        if (ip.protocol != HGHCA_IP_UDP || be16(ip.fragment) & HGHCA_IPV4_FRAGMENT_MASK ||
            ip_bytes < sizeof(hghca_ipv4_header) || head.size() < at + ip_bytes + sizeof(hghca_udp_header))
            return Verdict::Other;
        out.sgid = mapped(ip.src);
        out.dgid = mapped(ip.dst);
        out.ecn = ip.tos & HGHCA_ECN_MASK;
        ip_length = be16(ip.length);
    } else {
        return Verdict::Other;
    }
    hghca_udp_header udp;
    std::memcpy(&udp, head.data() + at + ip_bytes, sizeof(udp));
    if (be16(udp.dst_port) != HGHCA_ROCE_UDP_PORT)
        return Verdict::Other;
    out.gid_index = -1;
    out.members = nullptr;
    if (to_group) {
        out.members = find_group(head.data(), out);
        if (!out.members)
            return Verdict::Other;
    } else if (port_.addresses.has_gids()) {   // a base driver has no GIDs: the QP alone knows its address
        out.gid_index = find_gid(out.dgid, out.vlan);
        if (out.gid_index < 0)
            return Verdict::Other;
    }

    // From here on it is for the engine, and must be right.
    layout.transport_offset = uint8_t(at + sizeof(hghca_ipv4_header) + sizeof(udp));
    if (layout.ipv6)
        layout.transport_offset = uint8_t(at + sizeof(hghca_ipv6_header) + sizeof(udp));
    layout.frame_bytes = uint32_t(at + ip_length);
    why = Drop::None;
    if (head[at] >> 4 != (layout.ipv6 ? 6 : 4))
        why = Drop::IpVersion;
    else if (!layout.ipv6 && head[at] != HGHCA_IPV4_VERSION_IHL)
        why = Drop::IpHeaderLength;
    else if (!layout.ipv6 && checksum_of(ipv4_sum))
        why = Drop::IpChecksum;
    else if (at + ip_length > frame_bytes || ip_length < ip_bytes + sizeof(udp))
        why = Drop::IpLength;
    else if (be16(udp.length) != ip_length - ip_bytes)
        why = Drop::UdpLength;
    if (why != Drop::None)
        return Verdict::Drop;
    out.icrc = icrc_of_link_header(variant_bits(layout), head.data(), layout);
    return Verdict::Engine;
}

Drop RoceV2::check_peer(const Arrival &arrival, const Path &path) const
{
    if (!path.by_gid) {
        if (arrival.sgid != mapped(path.dip))
            return Drop::Source;
        return arrival.dgid == mapped(path.sip) ? Drop::None : Drop::Destination;
    }
    if (arrival.sgid != path.dgid)
        return Drop::Source;
    if (path.sgid_index >= Port::kGids || arrival.gid_index < 0)
        return Drop::Destination;
    const auto &gids = port_.addresses.gids();
    const GidEntry &own = gids[path.sgid_index], &hit = gids[size_t(arrival.gid_index)];
    const bool to_own = arrival.dgid == own.gid && hit.tagged == own.tagged && hit.vlan == own.vlan;
    return to_own ? Drop::None : Drop::Destination;
}

void RoceV2::global_header(const uint8_t *head, const Arrival &arrival, std::array<uint8_t, kGrhBytes> &out) const
{
    const uint8_t *ip = head + arrival.layout.network_offset;
    out.fill(0);
    // Annex A17.4.5.1: an IPv4 header stands in the last 20 of the 40 bytes.
    if (arrival.layout.ipv6)
        std::memcpy(out.data(), ip, sizeof(hghca_ipv6_header));
    else
        std::memcpy(out.data() + kGrhBytes - sizeof(hghca_ipv4_header), ip, sizeof(hghca_ipv4_header));
}

}  // namespace hghca
