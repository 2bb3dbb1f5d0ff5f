// SPDX-License-Identifier: GPL-2.0-or-later
// RoCE v2 over Ethernet, with the GID table of the port and the multicast groups of the function.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "port/port.h"
#include "wire/link.h"

namespace hghca {

// ::ffff:a.b.c.d
bool is_mapped(const std::array<uint8_t, 16> &gid);
// ff00::/8, or ::ffff:224.0.0.0/100.
bool is_multicast(const std::array<uint8_t, 16> &gid);

class RoceV2 final : public Link {
public:
    RoceV2(const Port &port, MulticastStore &groups) : port_(port), groups_(groups) {}

    bool route(const Path &path, uint32_t flow, Route &out) const override;
    void finish(Route &route, uint32_t transport_bytes) const override;
    const uint8_t *variant_bits(const NetworkLayout &layout) const override;
    Verdict classify(std::span<const uint8_t> head, size_t frame_bytes, Arrival &out, Drop &why) override;
    Drop check_peer(const Arrival &arrival, const Path &path) const override;
    void global_header(const uint8_t *head, const Arrival &arrival, std::array<uint8_t, kGrhBytes> &out) const override;
    bool own_address(const uint8_t *mac) const override;

private:
    // A header that was found good, and what it says: most packets have the same as one before.
    struct Known {
        uint64_t generation = 0;   // of the addresses; 0: none
        std::array<uint8_t, kMaxLinkHeader> header;
        Arrival arrival;
    };

    Known &place_of(const uint8_t *head);
    Verdict classify_unknown(std::span<const uint8_t> head, size_t frame_bytes, Arrival &out, Drop &why);
    // Index of the GID that is `gid` in VLAN `vlan` (-1: untagged), or -1.
    int find_gid(const std::array<uint8_t, 16> &gid, int vlan);
    // Has the port a GID in VLAN `vlan` (-1: untagged)?
    bool in_vlan(int vlan);
    // The members of the group that a frame to `dmac` is for; nullptr: it is for none.
    const GroupMembers *find_group(const uint8_t *dmac, const Arrival &arrival);

    const Port &port_;
    MulticastStore &groups_;
    std::array<Known, 16> known_;
    unsigned last_gid_ = 0;   // the one that matched last, most often the next one too
    unsigned last_vlan_ = 0;  // the same for in_vlan()
};

}  // namespace hghca
