// SPDX-License-Identifier: GPL-2.0-or-later
// Multicast groups and the QPs attached to them (interface document, 4.18).
#pragma once

#include <array>
#include <cstdint>

#include "hghca_hw.h"
#include "jingzhao/context_cache.h"
#include "wire/link.h"

namespace hghca {

class Device;

constexpr unsigned kLogMaxMcgs = 13;
constexpr uint32_t kMcgEntrySize = 256;

static_assert(kGroupPlaces == HGHCA_MGM_QPS);

// A group, as cached.
struct McgContext {
    uint32_t next;
    std::array<uint8_t, 16> gid;   // zeros without members
    GroupMembers members;
};

template <>
struct Layout<McgContext> {
    static constexpr auto kFields = fields(field("next", &McgContext::next, 0x10, FieldAccess::Command),
                                           field("gid", &McgContext::gid, 0x14, FieldAccess::Command),
                                           field("members", &McgContext::members, 0x24, FieldAccess::Command));
};

// A hash table in ICM. Its lower half are buckets, from each of which a chain
// leads through entries of the upper half.
class MulticastGroups final : public MulticastStore {
public:
    explicit MulticastGroups(Device &device);
    void configure(uint64_t base, unsigned log_count);
    void clear();
    uint8_t read(uint32_t index, hghca_mgm &out);
    uint8_t write(uint32_t index, const hghca_mgm &in);
    uint8_t hash(const hghca_mgid &in, uint32_t &bucket) const;

    // The QPs attached to group `gid`; nullptr: none. Good until the next command or trim().
    const GroupMembers *find(const std::array<uint8_t, 16> &gid) override;

    void trim(size_t capacity);
    bool write_back(uint64_t from, uint64_t length);
    void forget(uint64_t from, uint64_t length);

private:
    using Context = McgContext;
    struct Policy {
        static constexpr IcmSpace kSpace = IcmSpace::Context;
        static constexpr uint32_t kEntrySize = kMcgEntrySize;
        static constexpr uint32_t kMagic = 0x4d434731;
        static constexpr uint32_t kReserved = 0;
    };

    uint32_t buckets() const { return uint32_t(cache_.count() / 2); }
    uint32_t bucket_of(const std::array<uint8_t, 16> &gid) const;
    bool valid(const Context &entry, uint32_t index) const;
    Context *find(uint32_t index);
    // As ContextCache::find_for_command().
    uint8_t find_for_command(uint32_t index, Context *&out);

    Device &device_;
    ContextCache<Context, Context, Policy> cache_;
};

}  // namespace hghca
