// SPDX-License-Identifier: GPL-2.0-or-later
#include "jingzhao/smp.h"

#include <algorithm>
#include <span>
#include <string_view>

namespace hghca {

namespace {

// IBA vol 1, 13.4.4 and 14.2.1: offsets in the packet.
constexpr unsigned kBaseVersion = 0, kClass = 1, kClassVersion = 2, kMethod = 3, kStatus = 4, kAttribute = 16,
                   kModifier = 20, kData = 64;
constexpr unsigned kDataBytes = 64;
constexpr uint8_t kSubnLidRouted = 0x01, kSubnDirectedRoute = 0x81;
constexpr uint8_t kGet = 0x01, kSet = 0x02, kGetResponse = 0x81;
// 13.4.7, and for directed routes the bit of the way back (14.2.1.2).
constexpr uint16_t kBadVersion = 0x04, kNoSuchAttribute = 0x0c, kBadModifier = 0x1c;
constexpr uint16_t kReturning = 0x8000;

using Data = std::span<uint8_t, kDataBytes>;

// 14.2.5
// Attributes
constexpr uint16_t kNodeDescription = 0x0010, kNodeInfo = 0x0011, kGuidInfo = 0x0014, kPortInfo = 0x0015, kPkeyTable = 0x0016;

uint64_t get(std::span<const uint8_t> bytes)
{
    uint64_t value = 0;
    for (uint8_t byte : bytes)
        value = value << 8 | byte;
    return value;
}

void put(std::span<uint8_t> bytes, uint64_t value)
{
    for (size_t i = bytes.size(); i--; value >>= 8)
        bytes[i] = uint8_t(value);
}

void node_description(Data data)
{
    constexpr std::string_view kText = "JingZhao HCA";
    std::copy(kText.begin(), kText.end(), data.begin());
}

// 14.2.5.3
void node_info(const SubnetAttributes &a, Data data)
{
    constexpr uint8_t kChannelAdapter = 1;
    constexpr uint32_t kOui = 0x525400;
    data[0] = 1;   // versions of MADs and of the class
    data[1] = 1;
    data[2] = kChannelAdapter;
    data[3] = 1;   // ports
    put(data.subspan(4, 8), a.node_guid);    // of the system image
    put(data.subspan(12, 8), a.node_guid);
    put(data.subspan(20, 8), a.port_guid);
    put(data.subspan(28, 2), 1);             // P_Keys
    put(data.subspan(30, 2), a.device_id);
    data[36] = 1;                            // the local port
    put(data.subspan(37, 3), kOui);
}

// 14.2.5.6. An Ethernet port has neither LIDs nor an SM.
void port_info(const SubnetAttributes &a, Data data)
{
    constexpr uint64_t kLinkLocal = 0xfe80000000000000;
    constexpr uint8_t kWidth4x = 2, kSpeeds = 7, kSpeedQdr = 4, kMtu4096 = 5, kOneLane = 1;
    constexpr uint8_t kDown = 1, kActive = 4, kPolling = 2, kLinkUp = 5;
    put(data.subspan(8, 8), kLinkLocal);     // GidPrefix
    data[28] = 1;                            // the local port
    data[29] = kWidth4x;                     // enabled, supported, active
    data[30] = kWidth4x;
    data[31] = kWidth4x;
    data[32] = uint8_t(kSpeeds << 4 | (a.link_up ? kActive : kDown));
    data[33] = uint8_t((a.link_up ? kLinkUp : kPolling) << 4 | kPolling);
    data[35] = uint8_t(kSpeedQdr << 4 | kSpeeds);
    data[36] = uint8_t(kMtu4096 << 4);       // neighbor
    data[37] = uint8_t(kOneLane << 4);       // VLCap
    data[41] = kMtu4096;                     // MTUCap
    data[43] = uint8_t(kOneLane << 4);       // OperationalVLs
    data[50] = 1;                            // GUIDCap
}

// 14.2.5.5, 14.2.5.7: blocks of 8 GUIDs and of 32 P_Keys; the tables have one entry.
bool first_entry(uint32_t block, Data data, size_t bytes, uint64_t value)
{
    if (block)
        return false;
    put(data.first(bytes), value);
    return true;
}

uint16_t get_attribute(uint16_t attribute, uint32_t modifier, const SubnetAttributes &a, Data data)
{
    switch (attribute) {
    case kNodeDescription:
        node_description(data);
        return 0;
    case kNodeInfo:
        node_info(a, data);
        return 0;
    case kPortInfo:
        // 0: the port that the request came through.
        if (modifier > 1)
            return kBadModifier;
        port_info(a, data);
        return 0;
    case kGuidInfo:
        return first_entry(modifier, data, 8, a.port_guid) ? 0 : kBadModifier;
    case kPkeyTable:
        return first_entry(modifier, data, 2, a.pkey) ? 0 : kBadModifier;
    default:
        return kNoSuchAttribute;
    }
}

}  // namespace

bool answer_smp(Mad &mad, const SubnetAttributes &attributes)
{
    const bool directed = mad[kClass] == kSubnDirectedRoute;
    const uint8_t method = mad[kMethod];
    // A response, a trap or a repressed trap has no response.
    if ((!directed && mad[kClass] != kSubnLidRouted) || method & 0x80 || (method != kGet && method != kSet))
        return false;
    std::span<uint8_t, kMadBytes> bytes = mad;
    Data data = bytes.subspan<kData, kDataBytes>();
    uint16_t status = kNoSuchAttribute;   // of each SubnSet: an Ethernet port has no subnet manager
    if (mad[kBaseVersion] != 1 || mad[kClassVersion] != 1) {
        status = kBadVersion;
    } else if (method == kGet) {
        std::ranges::fill(data, uint8_t(0));
        status = get_attribute(uint16_t(get(bytes.subspan<kAttribute, 2>())),
                               uint32_t(get(bytes.subspan<kModifier, 4>())), attributes, data);
    }
    mad[kMethod] = kGetResponse;
    put(bytes.subspan<kStatus, 2>(), status | (directed ? kReturning : 0));
    return true;
}

}  // namespace hghca
