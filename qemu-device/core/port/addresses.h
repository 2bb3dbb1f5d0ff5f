// SPDX-License-Identifier: GPL-2.0-or-later
// The addresses of the port: its MAC, and its GIDs with theirs.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

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

class Addresses {
public:
    using Mac = std::array<uint8_t, 6>;

    const Mac &mac() const { return mac_; }
    const std::array<GidEntry, kMaxGids> &gids() const { return gids_; }
    // Packets are for the GIDs alone; otherwise only a QP knows its address.
    bool has_gids() const { return has_gids_; }
    // The port's own MAC, or that of a GID? Looks at each MAC once, however many GIDs have it.
    bool is_own(const uint8_t *mac) const
    {
        return std::any_of(own_.begin(), own_.begin() + own_count_,
                           [mac](const Mac &own) { return !std::memcmp(mac, own.data(), own.size()); });
    }
    // Another number after each change.
    uint64_t generation() const { return generation_; }

    void set_mac(const Mac &mac)
    {
        mac_ = mac;
        changed();
    }
    void set_gid(uint32_t index, const GidEntry &entry)
    {
        gids_[index] = entry;
        changed();
    }
    void use_gids(bool has_gids)
    {
        has_gids_ = has_gids;
        changed();
    }
    // No GIDs.
    void reset(const Mac &mac)
    {
        gids_ = {};
        has_gids_ = false;
        set_mac(mac);
    }

private:
    void changed();

    Mac mac_{};
    std::array<GidEntry, kMaxGids> gids_{};
    bool has_gids_ = false;
    uint64_t generation_ = 1;
    // The different MACs.
    std::array<Mac, 1 + kMaxGids> own_{};
    size_t own_count_ = 1;
};

}  // namespace hghca
