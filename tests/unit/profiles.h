// SPDX-License-Identifier: GPL-2.0-or-later
// The profiles of a device, for tests of what each of them has to stand.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "fixture.h"
#include "verbs.h"

namespace hghca::test {

inline std::string name_of(Profile profile)
{
    return profile == Profile::Full ? "full" : profile == Profile::Base ? "base" : "rsnic";
}

// All that a device of it offers.
inline uint32_t all_caps(Profile profile)
{
    FakeHost host(1 << 20);
    Config config = test_config(host);
    config.profile = profile;
    Device device(host, config);
    return TestDriver(host, device).offered();
}

// Of a QP: the base has no doorbell records and no GIDs.
inline Endpoint::Options options_of(Profile profile)
{
    Endpoint::Options options;
    options.dbr = options.by_gid = profile != Profile::Base;
    return options;
}

// Two devices of one profile, with all that it offers.
struct NetworkOf : Network {
    explicit NetworkOf(Profile profile, uint32_t cache_entries = 0)
        : Network(prepared(profile, cache_entries), all_caps(profile))
    {
        Node::profile = Profile::Full;
    }

private:
    static uint32_t prepared(Profile profile, uint32_t cache_entries)
    {
        Node::profile = profile;
        return cache_entries;
    }
};

// The address of a datagram to `to`, in the form that the device has.
inline Wqe &put_address(Wqe &wqe, const Node &from, uint32_t dqpn, unsigned to, unsigned sgid_index = 0)
{
    constexpr uint32_t kQkey = 0x11111111;
    if (from.device.caps & HGHCA_CAP_GID_TABLE)
        return wqe.ud(dqpn, kQkey, to, sgid_index);
    hghca_ud_unit unit{};
    unit.port = le32(1);
    unit.smac_h = unit.dmac_h = le32(0x02000000);
    unit.lids = le32(to << 16 | from.number);
    unit.sip = le32(0x0a0a0000 | from.number);
    unit.dip = le32(0x0a0a0000 | to);
    unit.dqpn = le32(dqpn);
    unit.qkey = le32(kQkey);
    return wqe.put(unit);
}

inline auto profiles() { return ::testing::Values(Profile::Full, Profile::Base, Profile::Rsnic); }
inline std::string name_of_profile(const ::testing::TestParamInfo<Profile> &info) { return name_of(info.param); }

}  // namespace hghca::test
