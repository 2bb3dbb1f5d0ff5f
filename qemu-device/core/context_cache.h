// SPDX-License-Identifier: GPL-2.0-or-later
// Contexts of one kind: the device's cache in front of their entries in ICM.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "context_fields.h"
#include "counters.h"
#include "icm.h"

namespace hghca {

// An entry in ICM is this header and then the fields of the context (context_fields.h). All of it is private to the
// device; a zeroed entry is absent.
struct ContextHeader {
    uint32_t magic;
    uint32_t owner;
    uint32_t index;
    uint32_t epoch;   // Icm::epoch(): what an earlier life of the device left is not ours
};

template <>
struct Layout<ContextHeader> {
    static constexpr auto kFields = fields(field("magic", &ContextHeader::magic, 0x00, FieldAccess::ReadOnly),
                                           field("owner", &ContextHeader::owner, 0x04, FieldAccess::ReadOnly),
                                           field("index", &ContextHeader::index, 0x08, FieldAccess::ReadOnly),
                                           field("epoch", &ContextHeader::epoch, 0x0c, FieldAccess::ReadOnly));
};
constexpr uint32_t kHeaderBytes = 16;
static_assert(stored_bytes<ContextHeader>() == kHeaderBytes);

constexpr uint32_t kOwnerHardware = 0x48573168;

// Stored is what goes to ICM, by its table. Cached is Stored or derived from it, with what
// need not outlive an eviction. Policy gives
//   kSpace, kEntrySize, kMagic, kReserved (indices below are nobody's).
//
// References are stable until trim(), flush(), erase() or clear().
template <class Stored, class Cached, class Policy>
class ContextCache {
    static constexpr uint32_t kStoredBytes = stored_bytes<Stored>();
    static_assert(first_field<Stored>() >= kHeaderBytes && kStoredBytes <= Policy::kEntrySize);

public:
    ContextCache(Icm &icm, Counters &counters) : icm_(icm), counters_(counters) {}
    ContextCache(const ContextCache &) = delete;
    ContextCache &operator=(const ContextCache &) = delete;

    void configure(uint64_t base, uint64_t count)
    {
        clear();
        base_ = base;
        count_ = count;
    }
    // Forgets everything and writes nothing.
    void clear()
    {
        entries_.clear();
        newest_ = oldest_ = nullptr;
        count_ = 0;
    }
    uint64_t count() const { return count_; }
    size_t cached() const { return entries_.size(); }

    // For a command about entry `index`: is there such an entry, and memory for it?
    uint8_t check(uint32_t index) const
    {
        if (index < Policy::kReserved || index >= count_)
            return HGHCA_CMD_STAT_BAD_INDEX;
        return icm_.mapped(Policy::kSpace, address(index), Policy::kEntrySize) ? HGHCA_CMD_STAT_OK
                                                                               : HGHCA_CMD_STAT_LAM_NOT_PRE;
    }

    // The context, from the cache or from ICM. nullptr: absent, or what is there
    // is not what this device wrote; valid(stored, index) judges that.
    template <class Valid>
    Cached *find(uint32_t index, Valid &&valid)
    {
        auto it = entries_.find(index);
        if (it != entries_.end()) {
            counters_.context_hits++;
            touch(it->second);
            return &it->second;
        }
        if (check(index))
            return nullptr;
        // Validated in the copy: the guest may write to the original meanwhile.
        Image image;
        ContextHeader header;
        if (!icm_.load(Policy::kSpace, address(index), image.data(), image.size()) ||
            !decode(image.data(), header) || header.magic != Policy::kMagic || header.owner != kOwnerHardware ||
            header.index != index || header.epoch != icm_.epoch())
            return nullptr;
        Cached context{};
        Stored &stored = context;
        if (!decode(image.data(), stored) || !valid(static_cast<const Stored &>(stored), index))
            return nullptr;
        counters_.context_misses++;
        return &add(index, context);
    }

    // A new context; the caller has seen that there is none.
    Cached &insert(uint32_t index, const Stored &stored)
    {
        Cached context{};
        static_cast<Stored &>(context) = stored;
        Entry &entry = add(index, context);
        entry.dirty = true;
        return entry;
    }

    // The context will be changed, or was.
    void mark_dirty(Cached &context) { static_cast<Entry &>(context).dirty = true; }

    // Makes the entry absent, in the cache and in ICM.
    void erase(uint32_t index)
    {
        auto it = entries_.find(index);
        if (it != entries_.end())
            drop(it);
        constexpr std::array<uint8_t, kHeaderBytes> kAbsent{};
        icm_.store(Policy::kSpace, address(index), kAbsent.data(), kAbsent.size());
    }

    // Writes back and drops what stands in [from, from + length) of ICM.
    void flush(uint64_t from, uint64_t length)
    {
        for (auto it = entries_.begin(); it != entries_.end();) {
            uint64_t at = address(it->first);
            if (at < from + length && from < at + Policy::kEntrySize) {
                write_back(it->first, it->second);
                it = drop(it);
            } else {
                ++it;
            }
        }
    }

    // Puts out the least recently used until `capacity` are left.
    void trim(size_t capacity)
    {
        while (entries_.size() > capacity) {
            auto it = entries_.find(oldest_->index);
            if (write_back(it->first, it->second))
                counters_.context_evictions++;
            drop(it);
        }
    }

private:
    using Image = std::array<uint8_t, kStoredBytes>;
    struct Entry : Cached {
        uint32_t index;
        bool dirty;
        Entry *newer, *older;
    };

    uint64_t address(uint32_t index) const { return base_ + uint64_t(index) * Policy::kEntrySize; }

    Entry &add(uint32_t index, const Cached &context)
    {
        Entry &entry = entries_.insert_or_assign(index, Entry{{context}, index, false, nullptr, nullptr}).first->second;
        link(entry);
        return entry;
    }
    auto drop(typename std::unordered_map<uint32_t, Entry>::iterator it)
    {
        unlink(it->second);
        return entries_.erase(it);
    }
    bool write_back(uint32_t index, Entry &entry)
    {
        if (!entry.dirty)
            return false;
        Image image{};
        encode(ContextHeader{Policy::kMagic, kOwnerHardware, index, icm_.epoch()}, image.data());
        encode<Stored>(entry, image.data());
        entry.dirty = false;
        return icm_.store(Policy::kSpace, address(index), image.data(), image.size());
    }

    void link(Entry &entry)
    {
        entry.newer = nullptr;
        entry.older = newest_;
        (newest_ ? newest_->newer : oldest_) = &entry;
        newest_ = &entry;
    }
    void unlink(Entry &entry)
    {
        (entry.newer ? entry.newer->older : newest_) = entry.older;
        (entry.older ? entry.older->newer : oldest_) = entry.newer;
    }
    void touch(Entry &entry)
    {
        if (&entry == newest_)
            return;
        unlink(entry);
        link(entry);
    }

    Icm &icm_;
    Counters &counters_;
    uint64_t base_ = 0;
    uint64_t count_ = 0;
    std::unordered_map<uint32_t, Entry> entries_;
    Entry *newest_ = nullptr, *oldest_ = nullptr;
};

}  // namespace hghca
