// SPDX-License-Identifier: GPL-2.0-or-later
// The link and network layers under the transport. Ethernet with IP and UDP (port/roce_v2.h) is
// the one there is; LRH and GRH would be another.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/drop.h"
#include "wire/path.h"

namespace hghca {

constexpr size_t kMaxLinkHeader = 72;   // Ethernet, VLAN, IPv6, UDP; rounded up
constexpr size_t kGrhBytes = 40;
constexpr uint32_t kFcsBytes = 4;       // of a frame on the link; the link makes it and checks it

// Where the parts of a packet stand, in bytes from the start of the frame.
struct NetworkLayout {
    uint8_t network_offset;    // IP header
    uint8_t transport_offset;  // BTH
    bool ipv6;
    uint32_t frame_bytes;      // without padding of the link
};

// A way out for the packets of one path: their link headers, but for lengths.
struct Route {
    std::array<uint8_t, kMaxLinkHeader> header;
    NetworkLayout layout;
    uint32_t invariant_sum;  // of the network header's checksum: the words that no packet changes
    uint32_t finished_bytes;   // of the packet that the header was made for last; 0: none
    uint32_t icrc;             // icrc_of_link_header() of that
    bool to_self;   // the destination is this port
    bool to_group;  // it is a multicast group
};

// The QPNs attached to a multicast group; 0 is a free place.
constexpr size_t kGroupPlaces = 56;
using GroupMembers = std::array<uint16_t, kGroupPlaces>;

// The multicast groups of a function.
class MulticastStore {
public:
    // nullptr: there is no such group.
    virtual const GroupMembers *find(const std::array<uint8_t, 16> &gid) = 0;

protected:
    ~MulticastStore() = default;
};

// What the network headers of a received frame say.
struct Arrival {
    NetworkLayout layout;
    std::array<uint8_t, 16> sgid, dgid;   // IPv4 as ::ffff:a.b.c.d
    uint8_t sl;
    uint8_t ecn;                          // HGHCA_ECN_*
    int vlan;                             // VLAN id; -1: none
    int gid_index;                        // of dgid; -1: no GID table, or a multicast group
    const GroupMembers *members;          // of the group dgid; nullptr: dgid is not a group
    uint32_t icrc;                        // icrc_of_link_header()
};

enum class Verdict { Engine, Other, Drop };

class Link {
public:
    virtual ~Link() = default;

    // False: the path has no source address now. `flow` tells flows apart.
    virtual bool route(const Path &path, uint32_t flow, Route &out) const = 0;
    // Fits the headers to a packet of `transport_bytes`, BTH to ICRC.
    virtual void finish(Route &route, uint32_t transport_bytes) const = 0;
    // Ones where bits may change on the way, from the network header to the end of the longest transport header.
    virtual const uint8_t *variant_bits(const NetworkLayout &layout) const = 0;

    // Engine: a packet for the RDMA engine, described in `out`. Drop: it was
    // meant for it, but is wrong as `why` says. `head` holds the first
    // of the frame's `frame_bytes`.
    virtual Verdict classify(std::span<const uint8_t> head, size_t frame_bytes, Arrival &out, Drop &why) = 0;
    // Does the packet come from the other end of `path`, to this end? None: it does.
    virtual Drop check_peer(const Arrival &arrival, const Path &path) const = 0;
    // What precedes the data of a received datagram.
    virtual void global_header(const uint8_t *head, const Arrival &arrival,
                               std::array<uint8_t, kGrhBytes> &out) const = 0;
    // Is this one of the port's own addresses?
    virtual bool own_address(const uint8_t *mac) const = 0;
};

}  // namespace hghca
