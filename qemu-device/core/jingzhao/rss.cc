// SPDX-License-Identifier: GPL-2.0-or-later
#include "jingzhao/rss.h"

#include <algorithm>
#include <cstring>

#include "byte_order.h"
#include "device.h"
#include "jingzhao/qp_table.h"

namespace hghca {

static_assert(kLogMaxQps <= 16);                         // as groups keep them
static_assert(kMaxRssInput + 4 <= HGHCA_RSS_KEY_BYTES);  // each bit of the input meets 32 of the key

namespace {

// What may be of the input, in its order.
struct InputField {
    uint32_t rss;    // HGHCA_RSS_*
    uint8_t kind;    // HGHCA_FLOW_*: frames that have it
    uint8_t at;      // in hghca_flow_fields
    uint8_t bytes;
};

constexpr uint8_t kIpv4Offset = 12;   // of an address of 16 bytes

constexpr InputField kFields[] = {
    {HGHCA_RSS_SRC_IPV4, HGHCA_FLOW_IPV4, offsetof(hghca_flow_fields, src_ip) + kIpv4Offset, 4},
    {HGHCA_RSS_DST_IPV4, HGHCA_FLOW_IPV4, offsetof(hghca_flow_fields, dst_ip) + kIpv4Offset, 4},
    {HGHCA_RSS_SRC_IPV6, HGHCA_FLOW_IPV6, offsetof(hghca_flow_fields, src_ip), 16},
    {HGHCA_RSS_DST_IPV6, HGHCA_FLOW_IPV6, offsetof(hghca_flow_fields, dst_ip), 16},
    {HGHCA_RSS_SRC_PORT_TCP, HGHCA_FLOW_TCP, offsetof(hghca_flow_fields, src_port), 2},
    {HGHCA_RSS_DST_PORT_TCP, HGHCA_FLOW_TCP, offsetof(hghca_flow_fields, dst_port), 2},
    {HGHCA_RSS_SRC_PORT_UDP, HGHCA_FLOW_UDP, offsetof(hghca_flow_fields, src_port), 2},
    {HGHCA_RSS_DST_PORT_UDP, HGHCA_FLOW_UDP, offsetof(hghca_flow_fields, dst_port), 2},
};

}  // namespace

uint32_t toeplitz(const RssKey &key, const uint8_t *input, size_t bytes)
{
    // Its upper half is what the next bit of the input meets.
    uint64_t window = 0;
    for (size_t i = 0; i < sizeof(window); i++)
        window = window << 8 | key[i];
    uint32_t hash = 0;
    for (size_t i = 0; i < bytes; i++) {
        for (uint32_t bit = 0x80; bit; bit >>= 1) {
            if (input[i] & bit)
                hash ^= uint32_t(window >> 32);
            window <<= 1;
        }
        const size_t next = i + sizeof(window);
        window |= next < key.size() ? key[next] : 0;
    }
    return hash;
}

RssTable::RssTable(Device &device) : device_(device), groups_(1u << kLogMaxRss) {}

void RssTable::clear() { std::fill(groups_.begin(), groups_.end(), Group{}); }

uint8_t RssTable::create(uint32_t index, const hghca_rss &in)
{
    if (index >= groups_.size())
        return HGHCA_CMD_STAT_BAD_INDEX;
    if (exists(index))
        return HGHCA_CMD_STAT_BAD_RES_STATE;
    if (in.log_size > kLogMaxRssSize)
        return HGHCA_CMD_STAT_BAD_SIZE;
    Group group{};
    group.fields = be32(in.fields);
    if (in.function != HGHCA_RSS_TOEPLITZ || group.fields & ~HGHCA_RSS_FIELDS)
        return HGHCA_CMD_STAT_BAD_PARAM;
    std::copy(std::begin(in.key), std::end(in.key), group.key.begin());
    for (size_t i = 0; i < 1u << in.log_size; i++) {
        const uint32_t qpn = be32(in.qpn[i]);
        if (!device_.qps->may_be_raw(Qpn(qpn)))
            return HGHCA_CMD_STAT_BAD_PARAM;
        group.qpns.push_back(uint16_t(qpn));
    }
    groups_[index] = std::move(group);
    return HGHCA_CMD_STAT_OK;
}

uint8_t RssTable::destroy(uint32_t index)
{
    if (index >= groups_.size())
        return HGHCA_CMD_STAT_BAD_INDEX;
    if (!exists(index))
        return HGHCA_CMD_STAT_BAD_RES_STATE;
    if (groups_[index].rules)
        return HGHCA_CMD_STAT_RESOURCE_BUSY;
    groups_[index] = {};
    return HGHCA_CMD_STAT_OK;
}

Qpn RssTable::select(uint32_t index, const hghca_flow_fields &frame) const
{
    const Group &group = groups_[index];
    const auto *from = reinterpret_cast<const uint8_t *>(&frame);
    uint8_t input[kMaxRssInput];
    size_t bytes = 0;
    // A frame has one network and one transport layer at most, so all of it fits.
    for (const InputField &field : kFields) {
        if (!(group.fields & field.rss) || !(frame.kinds & field.kind))
            continue;
        std::memcpy(input + bytes, from + field.at, field.bytes);
        bytes += field.bytes;
    }
    return Qpn(group.qpns[toeplitz(group.key, input, bytes) & (group.qpns.size() - 1)]);
}

}  // namespace hghca
