// SPDX-License-Identifier: GPL-2.0-or-later
#include "jingzhao/flow.h"
#include "jingzhao/qp_table.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>

#include "byte_order.h"
#include "device.h"
#include "hghca_wire.h"
#include "jingzhao/rss.h"

namespace hghca {

static_assert(kMaxFlowMasks <= 64);       // the bits of used_masks_
static_assert(kLogMaxFlows < 16);         // kNone is no rule's number

namespace {

constexpr size_t kIpv4AtEnd = sizeof(hghca_flow_fields::src_ip) - 4;

// How the types stand in rank, whatever their priorities.
constexpr uint32_t rank_of(uint8_t type, uint16_t priority)
{
    const uint32_t above = type == HGHCA_FLOW_NORMAL ? 0 : type == HGHCA_FLOW_MC_DEFAULT ? 1 : 2;
    return above << 16 | priority;
}

// Ports, where the whole header is there and no fragment hides it.
void put_ports(std::span<const uint8_t> head, size_t at, hghca_flow_fields &out)
{
    const bool tcp = out.protocol == HGHCA_IP_TCP;
    const size_t bytes = tcp ? size_t(HGHCA_TCP_HEADER_SIZE) : sizeof(hghca_udp_header);
    if (!(tcp || out.protocol == HGHCA_IP_UDP) || head.size() < at + bytes)
        return;
    out.kinds |= tcp ? HGHCA_FLOW_TCP : HGHCA_FLOW_UDP;
    std::memcpy(&out.src_port, head.data() + at, 2);
    std::memcpy(&out.dst_port, head.data() + at + 2, 2);
}

void put_ipv4(std::span<const uint8_t> head, size_t at, hghca_flow_fields &out)
{
    hghca_ipv4_header ip;
    if (head.size() < at + sizeof(ip))
        return;
    std::memcpy(&ip, head.data() + at, sizeof(ip));
    const size_t bytes = size_t(ip.version_ihl & 0xf) * 4;
    if (ip.version_ihl >> 4 != 4 || bytes < sizeof(ip))
        return;
    out.kinds |= HGHCA_FLOW_IPV4;
    std::copy(ip.src, ip.src + 4, out.src_ip + kIpv4AtEnd);
    std::copy(ip.dst, ip.dst + 4, out.dst_ip + kIpv4AtEnd);
    out.protocol = ip.protocol;
    out.tclass = ip.tos;
    out.hop_limit = ip.ttl;
    if (!(be16(ip.fragment) & HGHCA_IPV4_FRAGMENT_MASK))
        put_ports(head, at + bytes, out);
}

void put_ipv6(std::span<const uint8_t> head, size_t at, hghca_flow_fields &out)
{
    hghca_ipv6_header ip;
    if (head.size() < at + sizeof(ip))
        return;
    std::memcpy(&ip, head.data() + at, sizeof(ip));
    const uint32_t word = be32(ip.version_class_flow);
    if (word >> 28 != 6)
        return;
    out.kinds |= HGHCA_FLOW_IPV6;
    std::copy(ip.src, ip.src + 16, out.src_ip);
    std::copy(ip.dst, ip.dst + 16, out.dst_ip);
    out.flow_label = be32(word & HGHCA_FLOW_LABEL_MASK);
    out.protocol = ip.next_header;
    out.tclass = uint8_t(field_get(HGHCA_IPV6_CLASS_MASK, word));
    out.hop_limit = ip.hop_limit;
    put_ports(head, at + sizeof(ip), out);
}

bool any(const uint8_t *bytes, size_t count)
{
    return std::any_of(bytes, bytes + count, [](uint8_t byte) { return byte; });
}

// Must the frame be of one of `kinds`, by the rule's own words?
bool wants(const hghca_flow &rule, uint32_t kinds)
{
    return rule.mask.kinds & rule.value.kinds & kinds;
}

// Does each field that counts belong to something the frame must have?
bool consistent(const hghca_flow &rule)
{
    const hghca_flow_fields &m = rule.mask;
    constexpr uint32_t kKinds =
        HGHCA_FLOW_TAGGED | HGHCA_FLOW_IPV4 | HGHCA_FLOW_IPV6 | HGHCA_FLOW_UDP | HGHCA_FLOW_TCP;
    const bool ip = wants(rule, HGHCA_FLOW_IPV4 | HGHCA_FLOW_IPV6);
    const bool ipv6 = wants(rule, HGHCA_FLOW_IPV6);
    const bool ports = wants(rule, HGHCA_FLOW_UDP | HGHCA_FLOW_TCP);
    return !(m.kinds & ~kKinds) && !m.rsvd3c && !(be32(m.flow_label) & ~HGHCA_FLOW_LABEL_MASK) &&
           (!m.vlan_tci || wants(rule, HGHCA_FLOW_TAGGED)) &&
           (ip || (!any(m.src_ip, 16) && !any(m.dst_ip, 16) && !m.protocol && !m.tclass && !m.hop_limit)) &&
           (ipv6 || (!any(m.src_ip, kIpv4AtEnd) && !any(m.dst_ip, kIpv4AtEnd) && !m.flow_label)) &&
           (ports || (!m.src_port && !m.dst_port));
}

}  // namespace

hghca_flow_fields flow_fields(std::span<const uint8_t> head)
{
    hghca_flow_fields out{};
    hghca_eth_header eth;
    hghca_vlan_tag tag;
    size_t at = sizeof(eth);
    std::memcpy(&eth, head.data(), sizeof(eth));
    std::copy(eth.dmac, eth.dmac + 6, out.dmac);
    std::copy(eth.smac, eth.smac + 6, out.smac);
    out.ether_type = eth.type;
    if (be16(eth.type) == HGHCA_ETH_TYPE_VLAN && head.size() >= at + sizeof(tag)) {
        std::memcpy(&tag, head.data() + at, sizeof(tag));
        at += sizeof(tag);
        out.kinds |= HGHCA_FLOW_TAGGED;
        out.vlan_tci = tag.tci;
        out.ether_type = tag.type;
    }
    if (be16(out.ether_type) == HGHCA_ETH_TYPE_IPV4)
        put_ipv4(head, at, out);
    else if (be16(out.ether_type) == HGHCA_ETH_TYPE_IPV6)
        put_ipv6(head, at, out);
    return out;
}

FlowTable::FlowTable(Device &device) : device_(device), rules_(kRules), buckets_(kBuckets, kNone)
{
    takers_.reserve(kRulesPerFrame);
}

void FlowTable::configure()
{
    clear();
    seed_ = device_.host.random();
}

void FlowTable::clear()
{
    if (empty())
        return;
    used_masks_ = 0;
    masks_ = {};
    std::fill(rules_.begin(), rules_.end(), Rule{});
    std::fill(buckets_.begin(), buckets_.end(), kNone);
}

FlowTable::Key FlowTable::key_of(const hghca_flow_fields &fields)
{
    Key key;
    static_assert(sizeof(key) == sizeof(fields));
    std::memcpy(key.data(), &fields, sizeof(key));
    return key;
}

FlowTable::Key FlowTable::masked(const Key &key, const Key &mask)
{
    Key out;
    std::transform(key.begin(), key.end(), mask.begin(), out.begin(), std::bit_and<uint64_t>());
    return out;
}

uint32_t FlowTable::bucket_of(unsigned mask, const Key &value) const
{
    uint64_t h = seed_ ^ mask;
    for (uint64_t word : value) {
        h = (h ^ word) * 0x9e3779b97f4a7c15ull;
        h ^= h >> 32;
    }
    return uint32_t(h) & (kBuckets - 1);
}

uint16_t &FlowTable::place_of(unsigned mask, const Key &value)
{
    uint16_t *place = &buckets_[bucket_of(mask, value)];
    while (*place != kNone && !(rules_[*place].mask == mask && rules_[*place].value == value))
        place = &rules_[*place].next_key;
    return *place;
}

// ---- commands

bool FlowTable::exists(uint32_t taker) const
{
    return taker & HGHCA_FLOW_RSS ? device_.rss->exists(taker & ~HGHCA_FLOW_RSS) : device_.qps->may_be_raw(Qpn(taker));
}

unsigned FlowTable::find_mask(const Key &bits) const
{
    for (uint64_t left = used_masks_; left; left &= left - 1) {
        const auto m = unsigned(std::countr_zero(left));
        if (masks_[m].bits == bits)
            return m;
    }
    return unsigned(std::countr_one(used_masks_));
}

uint8_t FlowTable::check_room(uint16_t first, uint32_t rank, uint32_t taker) const
{
    unsigned alike = 0;
    for (uint16_t i = first; i != kNone; i = rules_[i].next_same) {
        if (rules_[i].rank != rank)
            continue;
        if (rules_[i].taker == taker)
            return HGHCA_CMD_STAT_RESOURCE_BUSY;
        alike++;
    }
    return alike < kQpsPerFlow ? HGHCA_CMD_STAT_OK : HGHCA_CMD_STAT_EXCEED_LIM;
}

void FlowTable::link(uint16_t index)
{
    Rule &rule = rules_[index];
    uint16_t *place = &place_of(rule.mask, rule.value);
    if (*place != kNone && rules_[*place].rank <= rule.rank) {
        while (*place != kNone && rules_[*place].rank <= rule.rank)
            place = &rules_[*place].next_same;
        rule.next_key = kNone;
        rule.next_same = *place;
    } else {
        // The first of its key, new or before the one that was.
        rule.next_same = *place;
        rule.next_key = *place == kNone ? kNone : rules_[*place].next_key;
    }
    *place = index;
}

uint8_t FlowTable::attach(uint32_t index, const hghca_flow &in)
{
    if (index >= kRules)
        return HGHCA_CMD_STAT_BAD_INDEX;
    if (rules_[index].live)
        return HGHCA_CMD_STAT_BAD_RES_STATE;

    Key bits = key_of(in.mask), value = key_of(in.value);
    constexpr Key kZero{};
    if (in.type > HGHCA_FLOW_MC_DEFAULT || masked(value, bits) != value ||
        (in.type != HGHCA_FLOW_NORMAL && bits != kZero) || !consistent(in))
        return HGHCA_CMD_STAT_BAD_PARAM;
    const uint32_t taker = be32(in.qpn);
    if (!exists(taker))
        return HGHCA_CMD_STAT_BAD_PARAM;
    if (in.type == HGHCA_FLOW_MC_DEFAULT) {
        hghca_flow_fields group{};
        group.dmac[0] = 1;
        bits = value = key_of(group);
    }

    const unsigned mask = find_mask(bits);
    if (mask == kMaxFlowMasks)
        return HGHCA_CMD_STAT_EXCEED_LIM;
    const uint32_t rank = rank_of(in.type, be16(in.priority));
    if (used_masks_ >> mask & 1)
        if (uint8_t status = check_room(place_of(mask, value), rank, taker))
            return status;

    used_masks_ |= 1ull << mask;
    masks_[mask].bits = bits;
    // All of them may have one key, and stand in one chain.
    device_.work.add_looks(masks_[mask].rules++);
    rules_[index] = {true, uint8_t(mask), taker, rank, value, kNone, kNone};
    link(uint16_t(index));
    if (taker & HGHCA_FLOW_RSS)
        device_.rss->hold(taker & ~HGHCA_FLOW_RSS);
    return HGHCA_CMD_STAT_OK;
}

uint8_t FlowTable::detach(uint32_t index)
{
    if (index >= kRules)
        return HGHCA_CMD_STAT_BAD_INDEX;
    Rule &rule = rules_[index];
    if (!rule.live)
        return HGHCA_CMD_STAT_BAD_RES_STATE;

    device_.work.add_looks(masks_[rule.mask].rules);
    uint16_t *place = &place_of(rule.mask, rule.value);
    if (*place == index) {
        *place = rule.next_same == kNone ? rule.next_key : rule.next_same;
        if (rule.next_same != kNone)
            rules_[rule.next_same].next_key = rule.next_key;
    } else {
        while (*place != index)
            place = &rules_[*place].next_same;
        *place = rule.next_same;
    }
    if (!--masks_[rule.mask].rules)
        used_masks_ &= ~(1ull << rule.mask);
    if (rule.taker & HGHCA_FLOW_RSS)
        device_.rss->release(rule.taker & ~HGHCA_FLOW_RSS);
    rule = {};
    return HGHCA_CMD_STAT_OK;
}

// ---- for frames

const std::vector<uint32_t> &FlowTable::find(const hghca_flow_fields &frame)
{
    const Key key = key_of(frame);
    uint32_t best = kNoRank;
    bool exceeded = false;
    takers_.clear();
    for (uint64_t left = used_masks_; left; left &= left - 1) {
        const auto m = unsigned(std::countr_zero(left));
        uint16_t i = place_of(m, masked(key, masks_[m].bits));
        if (i == kNone || rules_[i].rank > best)
            continue;
        if (rules_[i].rank < best) {
            best = rules_[i].rank;
            exceeded = false;
            takers_.clear();
        }
        for (; i != kNone && rules_[i].rank == best && !exceeded; i = rules_[i].next_same) {
            exceeded = takers_.size() == kRulesPerFrame;
            if (!exceeded)
                takers_.push_back(rules_[i].taker);
        }
    }
    device_.counters_.flow_rx_exceeded += exceeded;
    // Rules of several masks may name the same QP or group, which has one copy.
    std::sort(takers_.begin(), takers_.end());
    takers_.erase(std::unique(takers_.begin(), takers_.end()), takers_.end());
    return takers_;
}

}  // namespace hghca
