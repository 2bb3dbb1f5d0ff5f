// SPDX-License-Identifier: GPL-2.0-or-later
#include "fabric.h"

#include <algorithm>

#include "hghca_wire.h"

namespace hghca::sim {

namespace {

constexpr uint8_t kEcnMask = 3;
constexpr uint8_t kEcnNotCapable = 0;
constexpr uint8_t kEcnExperienced = 3;

// Where the IP header stands; 0: no IP header.
size_t ip_offset(const Frame &frame)
{
    size_t at = sizeof(hghca_eth_header);
    if (frame.length < at + sizeof(hghca_vlan_tag) + sizeof(hghca_ipv6_header))
        return 0;
    auto type = uint16_t(frame.data[at - 2] << 8 | frame.data[at - 1]);
    if (type == HGHCA_ETH_TYPE_VLAN) {
        at += sizeof(hghca_vlan_tag);
        type = uint16_t(frame.data[at - 2] << 8 | frame.data[at - 1]);
    }
    return type == HGHCA_ETH_TYPE_IPV4 || type == HGHCA_ETH_TYPE_IPV6 ? at : 0;
}

// RFC 1624: the checksum after one word has changed.
void update_checksum(uint8_t *sum, uint16_t before, uint16_t after)
{
    uint32_t s = uint16_t(~(sum[0] << 8 | sum[1]));
    s += uint16_t(~before) + uint32_t(after);
    s = (s & 0xffff) + (s >> 16);
    s = uint16_t(~(s + (s >> 16)));
    sum[0] = uint8_t(s >> 8);
    sum[1] = uint8_t(s);
}

// Sets Congestion Experienced (RFC 3168). False: the sender does not take part.
bool set_congestion_experienced(Frame &frame)
{
    const size_t at = ip_offset(frame);
    if (!at)
        return false;
    uint8_t *ip = frame.data + at;
    if (ip[0] >> 4 == 4) {
        if ((ip[1] & kEcnMask) == kEcnNotCapable)
            return false;
        const auto before = uint16_t(ip[0] << 8 | ip[1]);
        ip[1] |= kEcnExperienced;
        update_checksum(ip + 10, before, uint16_t(ip[0] << 8 | ip[1]));
        return true;
    }
    // Traffic class: the low four bits of byte 0 and the high four of byte 1.
    if ((ip[1] >> 4 & kEcnMask) == kEcnNotCapable)
        return false;
    ip[1] |= kEcnExperienced << 4;
    return true;
}

// Frames of one flow go one way: the UDP source port tells flows apart.
uint32_t flow_of(const Frame &frame)
{
    const size_t at = ip_offset(frame);
    if (!at)
        return 0;
    const uint8_t *udp = frame.data + at + (frame.data[at] >> 4 == 4 ? 20 : 40);
    return (uint32_t(udp[0]) << 8 | udp[1]) * 2654435761u >> 16;
}

}  // namespace

uint32_t host_of(const uint8_t *mac)
{
    return mac[0] == 2 && !mac[1] && !mac[2] && !mac[3] ? uint32_t(mac[4] << 8 | mac[5]) - 1 : UINT32_MAX;
}

Fabric::Fabric(EventQueue &events, FramePool &pool, const Shape &shape, Random random)
    : events_(events), pool_(pool), shape_(shape), random_(random),
      leaves_((shape.hosts + shape.per_leaf - 1) / shape.per_leaf)
{
    Port port;
    port.speed = shape.speed;
    port.room_bytes = shape.room_bytes;
    const uint32_t spines = leaves_ > 1 ? shape.spines : 0;
    switches_.resize(leaves_ + spines);
    for (uint32_t host = 0; host < shape.hosts; host++) {
        port.to = shape.hosts + leaf_of(host);
        out_of_host_.push_back(port);
        port.to = host;
        switches_[leaf_of(host)].ports.push_back(port);
    }
    for (uint32_t leaf = 0; leaf < leaves_; leaf++) {
        switches_[leaf].ports.resize(shape.per_leaf, port);
        for (uint32_t spine = 0; spine < spines; spine++) {
            port.to = shape.hosts + leaves_ + spine;
            switches_[leaf].ports.push_back(port);
            port.to = shape.hosts + leaf;
            switches_[leaves_ + spine].ports.push_back(port);
        }
    }
}

void Fabric::send(uint32_t host, Frame *frame, uint64_t now_ns)
{
    Port &port = out_of_host_[host];
    if (!port.up) {
        link_down++;
        pool_.give_back(frame);
        return;
    }
    port.free_ns = std::max(port.free_ns, now_ns) + port.speed.time_ns(frame->length);
    port.frames++;
    port.bytes += frame->length;
    events_.put(port.free_ns + port.speed.propagation_ns, Event::Kind::Arrive, port.to, frame);
}

Port *Fabric::way_out(uint32_t number, const Frame &frame)
{
    const uint32_t host = host_of(frame.data);
    if (host >= shape_.hosts)
        return nullptr;
    const uint32_t leaf = leaf_of(host);
    Switch &here = switches_[number];
    if (number >= leaves_)
        return &here.ports[leaf];
    if (leaf == number)
        return &here.ports[host % shape_.per_leaf];
    return &here.ports[shape_.per_leaf + flow_of(frame) % shape_.spines];
}

void Fabric::arrive(uint32_t node, Frame *frame, uint64_t now_ns)
{
    Port *port = way_out(node - shape_.hosts, *frame);
    if (!port) {
        unroutable++;
        pool_.give_back(frame);
        return;
    }
    uint64_t late_ns = 0;
    const bool last_hop = is_host(port->to);
    if (last_hop && broken && !broken(*frame)) {
        pool_.give_back(frame);
        return;
    }
    if (last_hop && faults.any()) {
        if (random_.chance(faults.duplicate)) {
            duplicated++;
            forward(*port, pool_.copy(*frame), now_ns, random_.below(faults.reorder_ns));
        }
        if (!suffer(*frame, late_ns)) {
            pool_.give_back(frame);
            return;
        }
    }
    forward(*port, frame, now_ns, late_ns);
}

bool Fabric::suffer(Frame &frame, uint64_t &late_ns)
{
    if (random_.chance(faults.drop)) {
        dropped++;
        return false;
    }
    if (random_.chance(faults.reorder)) {
        reordered++;
        late_ns = random_.below(faults.reorder_ns);
    }
    if (random_.chance(faults.delay)) {
        delayed++;
        late_ns = random_.below(faults.delay_ns);
    }
    if (random_.chance(faults.mark) && set_congestion_experienced(frame))
        marks++;
    if (random_.chance(faults.corrupt)) {
        corrupted++;
        // Up to three bits: a CRC of 32 bits finds them all. Not in the MACs, which it does not cover, nor in what
        // changes on the way.
        for (uint64_t n = random_.between(1, 3); n; n--)
            frame.data[random_.between(sizeof(hghca_eth_header), frame.length - 1)] ^= uint8_t(1u << random_.below(8));
    }
    if (random_.chance(faults.truncate)) {
        truncated++;
        frame.length = uint32_t(random_.between(1, frame.length - 1));
    }
    return true;
}

void Fabric::mark(Port &port, Frame &frame, uint64_t depth)
{
    const EcnMarking &ecn = shape_.ecn;
    if (!ecn.on || depth < ecn.low_bytes)
        return;
    const uint64_t span = ecn.high_bytes - ecn.low_bytes;
    const bool marked = depth >= ecn.high_bytes ||
                        random_.chance(uint32_t((depth - ecn.low_bytes) * ecn.high_ppm / span));
    if (marked && set_congestion_experienced(frame)) {
        port.marks++;
        marks++;
    }
}

void Fabric::forward(Port &port, Frame *frame, uint64_t now_ns, uint64_t late_ns)
{
    const uint64_t depth = port.queued_bytes(now_ns);
    if (!port.up || depth + frame->length > port.room_bytes) {
        (port.up ? overflows : link_down)++;
        port.overflows += port.up;
        pool_.give_back(frame);
        return;
    }
    port.depth_max = std::max(port.depth_max, depth);
    port.depth_sum += depth;
    port.frames++;
    port.bytes += frame->length;
    mark(port, *frame, depth);
    port.free_ns = std::max(port.free_ns, now_ns) + port.speed.time_ns(frame->length);
    events_.put(port.free_ns + port.speed.propagation_ns + late_ns, Event::Kind::Arrive, port.to, frame);
}

void Fabric::set_link(uint32_t host, bool up)
{
    out_of_host_[host].up = up;
    into_host(host).up = up;
}

}  // namespace hghca::sim
