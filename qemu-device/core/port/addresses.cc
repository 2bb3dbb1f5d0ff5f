// SPDX-License-Identifier: GPL-2.0-or-later
#include "port/addresses.h"

#include <algorithm>

namespace hghca {

namespace {

constexpr std::array<uint8_t, 12> kMappedIpv4 = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

}  // namespace

bool GidEntry::is_ipv4() const { return std::equal(kMappedIpv4.begin(), kMappedIpv4.end(), gid.begin()); }

uint32_t GidEntry::ipv4() const
{
    return uint32_t(gid[12]) << 24 | uint32_t(gid[13]) << 16 | uint32_t(gid[14]) << 8 | gid[15];
}

void Addresses::changed()
{
    generation_++;
    own_[0] = mac_;
    own_count_ = 1;
    for (const GidEntry &entry : gids_)
        if (entry.valid && !is_own(entry.mac.data()))
            own_[own_count_++] = entry.mac;
}

}  // namespace hghca
