// SPDX-License-Identifier: GPL-2.0-or-later
// Frames for raw Ethernet QPs, and the flow rules that steer them (interface document, 4.20).
#pragma once

#include <algorithm>
#include <cstring>

#include "verbs.h"

namespace hghca::test {

inline const Mac kGroup = {0x01, 0x00, 0x5e, 1, 2, 3};
inline const Mac kBroadcast = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
inline const Mac kStranger = {2, 0, 0, 0, 0, 9};

// ---- frames

struct Packet {
    Mac dmac = Node::mac_of(2);
    Mac smac = Node::mac_of(1);
    int vlan = -1;                 // TCI; -1: no tag
    uint16_t ether_type = 0x0800;
    unsigned options = 0;          // words behind the IPv4 header
    uint16_t fragment = 0;
    uint8_t version = 0;           // 0: the right one
    uint8_t tclass = 0x12, ttl = 33, protocol = 17;
    uint32_t flow_label = 0x54321;
    uint32_t sip = 0x0a0a0001, dip = 0x0a0a0002;   // IPv6: fd00::sip
    uint16_t sport = 1000, dport = 2000;
    size_t bytes = 100;            // of the frame
};

inline void put(Frame &f, uint64_t value, unsigned bytes)
{
    while (bytes--)
        f.push_back(uint8_t(value >> 8 * bytes));
}

inline void put_ipv6_address(Frame &f, uint32_t last)
{
    put(f, 0xfd00, 2);
    put(f, 0, 8);
    put(f, 0, 2);
    put(f, last, 4);
}

inline Frame make(const Packet &p)
{
    Frame f(p.dmac.begin(), p.dmac.end());
    f.insert(f.end(), p.smac.begin(), p.smac.end());
    if (p.vlan >= 0)
        put(f, 0x81000000u | unsigned(p.vlan), 4);
    put(f, p.ether_type, 2);
    if (p.ether_type == 0x86dd) {
        put(f, uint32_t(p.version ? p.version : 6) << 28 | uint32_t(p.tclass) << 20 | p.flow_label, 4);
        put(f, 40, 2);
        put(f, p.protocol, 1);
        put(f, p.ttl, 1);
        put_ipv6_address(f, p.sip);
        put_ipv6_address(f, p.dip);
    } else if (p.ether_type == 0x0800) {
        put(f, (p.version ? p.version : 4u) << 4 | (5 + p.options), 1);
        put(f, p.tclass, 1);
        put(f, 80, 2);
        put(f, 7, 2);
        put(f, p.fragment, 2);
        put(f, p.ttl, 1);
        put(f, p.protocol, 1);
        put(f, 0, 2);
        put(f, p.sip, 4);
        put(f, p.dip, 4);
        f.insert(f.end(), p.options * 4, 0x5a);
    }
    put(f, p.sport, 2);
    put(f, p.dport, 2);
    while (f.size() < p.bytes)
        f.push_back(uint8_t(f.size() * 37));
    f.resize(p.bytes);
    return f;
}

// ---- rules

struct Rule : hghca_flow {
    explicit Rule(uint32_t qpn_, uint16_t priority_ = 0, uint8_t type_ = HGHCA_FLOW_NORMAL) : hghca_flow{}
    {
        qpn = be32(qpn_);
        priority = be16(priority_);
        type = type_;
    }
    Rule &kinds(uint8_t bits)
    {
        value.kinds |= bits;
        mask.kinds |= bits;
        return *this;
    }
    Rule &dmac(const Mac &mac, const Mac &bits = kBroadcast)
    {
        for (size_t i = 0; i < 6; i++) {
            value.dmac[i] = mac[i] & bits[i];
            mask.dmac[i] = bits[i];
        }
        return *this;
    }
    Rule &smac(const Mac &mac)
    {
        std::copy(mac.begin(), mac.end(), value.smac);
        std::memset(mask.smac, 0xff, 6);
        return *this;
    }
    Rule &ether_type(uint16_t t)
    {
        value.ether_type = be16(t);
        mask.ether_type = 0xffff;
        return *this;
    }
    Rule &vlan(uint16_t tci, uint16_t bits = 0x0fff)
    {
        value.vlan_tci = be16(tci & bits);
        mask.vlan_tci = be16(bits);
        return kinds(HGHCA_FLOW_TAGGED);
    }
    static void address(uint8_t *value, uint8_t *mask, uint32_t address, uint32_t bits)
    {
        for (int i = 0; i < 4; i++) {
            value[12 + i] = uint8_t((address & bits) >> (24 - 8 * i));
            mask[12 + i] = uint8_t(bits >> (24 - 8 * i));
        }
    }
    Rule &src(uint32_t ip, uint32_t bits = ~0u)
    {
        address(value.src_ip, mask.src_ip, ip, bits);
        return *this;
    }
    Rule &dst(uint32_t ip, uint32_t bits = ~0u)
    {
        address(value.dst_ip, mask.dst_ip, ip, bits);
        return *this;
    }
    Rule &protocol(uint8_t number)
    {
        value.protocol = number;
        mask.protocol = 0xff;
        return *this;
    }
    Rule &tclass(uint8_t octet, uint8_t bits = 0xff)
    {
        value.tclass = octet & bits;
        mask.tclass = bits;
        return *this;
    }
    Rule &ttl(uint8_t hops)
    {
        value.hop_limit = hops;
        mask.hop_limit = 0xff;
        return *this;
    }
    Rule &flow_label(uint32_t label)
    {
        value.flow_label = be32(label);
        mask.flow_label = be32(0xfffff);
        return *this;
    }
    Rule &sport(uint16_t port, uint16_t bits = 0xffff)
    {
        value.src_port = be16(port & bits);
        mask.src_port = be16(bits);
        return *this;
    }
    Rule &dport(uint16_t port, uint16_t bits = 0xffff)
    {
        value.dst_port = be16(port & bits);
        mask.dst_port = be16(bits);
        return *this;
    }
};

}  // namespace hghca::test
