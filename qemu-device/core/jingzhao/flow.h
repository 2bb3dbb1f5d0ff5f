// SPDX-License-Identifier: GPL-2.0-or-later
// Flow rules: which frames go to which raw Ethernet QPs (interface document, 4.20).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "hghca_hw.h"

namespace hghca {

class Device;

constexpr unsigned kLogMaxFlows = 12;
constexpr unsigned kMaxFlowMasks = 64;
constexpr unsigned kQpsPerFlow = 56;   // or groups, with the same fields, mask, type and priority
constexpr unsigned kRulesPerFrame = kQpsPerFlow;   // that take it, of all masks together

// What the first bytes of a frame say; at least an Ethernet header.
hghca_flow_fields flow_fields(std::span<const uint8_t> head);

// One hash table of what rules want, over all masks. A frame is looked up once
// for each mask that is in use, however many rules and QPs there are.
//
//   bucket -> key -> key            keys of the same hash, whatever their mask
//              |      |
//             rule   rule           rules of the same key, best rank first
//              |
//             rule
class FlowTable {
public:
    explicit FlowTable(Device &device);
    // Empty, and with another hash: who makes rules must not know which collide.
    void configure();
    void clear();
    uint8_t attach(uint32_t index, const hghca_flow &in);
    uint8_t detach(uint32_t index);

    bool empty() const { return !used_masks_; }
    // Whom the rules name that take such a frame, each once: QPNs, and HGHCA_FLOW_RSS with
    // the index of a group; empty: none does. Good until the next call of anything here.
    // Counts the frame when there are more rules than may take it.
    const std::vector<uint32_t> &find(const hghca_flow_fields &frame);

private:
    using Key = std::array<uint64_t, sizeof(hghca_flow_fields) / 8>;
    static constexpr uint16_t kNone = 0xffff;
    static constexpr uint32_t kRules = 1u << kLogMaxFlows;
    static constexpr uint32_t kBuckets = 2 * kRules;
    static constexpr uint32_t kNoRank = UINT32_MAX;

    // Plain numbers alone: all that there is to save of a rule.
    struct Rule {
        bool live;
        uint8_t mask;         // index in masks_
        uint32_t taker;       // a QPN, or HGHCA_FLOW_RSS and the index of a group
        uint32_t rank;        // type above priority; the lowest is best
        Key value;
        uint16_t next_key;    // of the first rule of a key: the first of the next one
        uint16_t next_same;   // the next rule of the same key
    };
    struct Mask {
        Key bits;
        uint32_t rules;
    };

    static Key key_of(const hghca_flow_fields &fields);
    static Key masked(const Key &key, const Key &mask);
    uint32_t bucket_of(unsigned mask, const Key &value) const;
    // Where the number of the first rule of a key stands, or would be put.
    uint16_t &place_of(unsigned mask, const Key &value);
    bool exists(uint32_t taker) const;
    // The index of `bits`, or of a free place for it; kMaxFlowMasks: neither exists.
    unsigned find_mask(const Key &bits) const;
    uint8_t check_room(uint16_t first, uint32_t rank, uint32_t taker) const;
    void link(uint16_t index);

    Device &device_;
    uint64_t seed_ = 0;
    uint64_t used_masks_ = 0;   // bit m: masks_[m] has rules
    std::array<Mask, kMaxFlowMasks> masks_{};
    std::vector<Rule> rules_;
    std::vector<uint16_t> buckets_;
    std::vector<uint32_t> takers_;
};

}  // namespace hghca
