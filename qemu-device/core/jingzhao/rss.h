// SPDX-License-Identifier: GPL-2.0-or-later
// RSS groups: raw Ethernet QPs over which frames are spread by a hash (interface document, 4.25).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hghca_hw.h"
#include "wire/number.h"

namespace hghca {

class Device;

constexpr unsigned kLogMaxRss = 10;
constexpr unsigned kLogMaxRssSize = HGHCA_RSS_LOG_MAX_SIZE;
constexpr size_t kMaxRssInput = 36;   // bytes: the addresses of IPv6 and two ports

using RssKey = std::array<uint8_t, HGHCA_RSS_KEY_BYTES>;

// The Toeplitz hash of `bytes` bytes of input, kMaxRssInput at most, as Microsoft's "RSS
// Hashing Functions" has it.
uint32_t toeplitz(const RssKey &key, const uint8_t *input, size_t bytes);

class RssTable {
public:
    explicit RssTable(Device &device);
    void clear();
    // Statuses are HGHCA_CMD_STAT_*.
    uint8_t create(uint32_t index, const hghca_rss &in);
    uint8_t destroy(uint32_t index);

    bool exists(uint32_t index) const { return index < groups_.size() && !groups_[index].qpns.empty(); }
    // A flow rule names the group, which stays as long as it does.
    void hold(uint32_t index) { groups_[index].rules++; }
    void release(uint32_t index) { groups_[index].rules--; }
    // The QPN that such a frame goes to; the group exists.
    Qpn select(uint32_t index, const hghca_flow_fields &frame) const;

private:
    struct Group {
        uint32_t fields;
        RssKey key;
        uint32_t rules;               // flow rules that name it
        std::vector<uint16_t> qpns;   // a power of two of them; none: there is no such group
    };

    Device &device_;
    std::vector<Group> groups_;
};

}  // namespace hghca
