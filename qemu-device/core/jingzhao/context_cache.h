// SPDX-License-Identifier: GPL-2.0-or-later
// Contexts of one kind: the device's cache in front of their entries in ICM.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "counters.h"
#include "jingzhao/context_fields.h"
#include "jingzhao/icm.h"
#include "pool.h"
#include "work.h"

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

// The result of a search for a context. If neither member is set, it is absent, or this device did not write the entry.
template <class Cached>
struct Lookup {
    Cached *context = nullptr;
    bool unreadable = false;   // there is no memory at its entry in ICM: nobody knows whether it is there
};

// Stored is what goes to ICM, by its table. Cached is Stored or derived from it, with what
// need not outlive an eviction. Policy gives
//   kSpace, kEntrySize, kMagic, kReserved (indices below are nobody's).
//
// A context is never lost: one that ICM does not take stays here, beyond any capacity, and so does the mark of one that
// was erased while its entry in ICM could not be made absent.
//
// References are stable until trim(), forget(), erase() or clear().
//
// The members that read or write an entry take seconds to compile for a table of a QP's size. So the owner of a cache
// calls them in its .cc file: those that its header calls, every file that includes it compiles again.
template <class Stored, class Cached, class Policy>
class ContextCache {
    static constexpr uint32_t kStoredBytes = stored_bytes<Stored>();
    static_assert(first_field<Stored>() >= kHeaderBytes && kStoredBytes <= Policy::kEntrySize);

public:
    ContextCache(Icm &icm, Counters &counters, Work &work) : icm_(icm), counters_(counters), work_(work) {}
    ContextCache(const ContextCache &) = delete;
    ContextCache &operator=(const ContextCache &) = delete;

    // Allocates the memory for all contexts. Throws std::bad_alloc.
    void configure(uint64_t base, uint64_t count)
    {
        clear();
        places_ = ZeroedArray<Entry *>(count);
        entries_ = Pool<Entry>(count);
        base_ = base;
        count_ = count;
    }
    // Forgets everything and writes nothing.
    void clear()
    {
        places_ = {};
        entries_ = {};
        newest_ = oldest_ = nullptr;
        cached_ = 0;
        count_ = 0;
    }
    uint64_t count() const { return count_; }
    size_t cached() const { return cached_; }

    // The context if it is in the cache, which does not count as a use of it.
    const Cached *peek(uint32_t index) const
    {
        const Entry *entry = index < count_ ? places_[index] : nullptr;
        return entry && !entry->erased ? entry : nullptr;
    }

    // The context, from the cache or from ICM. valid(stored, index) checks whether this device wrote it.
    template <class Valid>
    Lookup<Cached> find(uint32_t index, Valid &&valid)
    {
        if (Entry *entry = look_up(index)) {
            fetch(*entry);
            if (entry->erased)
                return {};
            counters_.context_hits++;
            touch(*entry);
            return {entry};
        }
        if (check(index))
            return {};
        // Validated in the copy: the guest may write to the original meanwhile.
        Image image;
        work_.add();
        if (!icm_.load(Policy::kSpace, address(index), image.data(), image.size())) {
            counters_.context_read_errors++;
            icm_.report_error(Policy::kSpace, address(index), "context", "read");
            return {nullptr, true};
        }
        ContextHeader header{};
        if (!decode(image.data(), header) || header.magic != Policy::kMagic || header.owner != kOwnerHardware ||
            header.index != index || header.epoch != icm_.epoch())
            return {};
        Cached context{};
        Stored &stored = context;
        if (!decode(image.data(), stored) || !valid(static_cast<const Stored &>(stored), index))
            return {};
        counters_.context_misses++;
        return {&add(index, context)};
    }

    // The same for a command about entry `index`, which ends with the status unless that is OK. `out` is nullptr if
    // the index is valid and has no context.
    template <class Valid>
    uint8_t find_for_command(uint32_t index, Valid &&valid, Cached *&out)
    {
        out = nullptr;
        if (uint8_t status = check(index))
            return status;
        const Lookup<Cached> found = find(index, valid);
        out = found.context;
        return found.unreadable ? HGHCA_CMD_STAT_INTERNAL_ERR : HGHCA_CMD_STAT_OK;
    }

    // A new context; the caller has seen that the number has none.
    Cached &insert(uint32_t index, const Stored &stored)
    {
        Cached context{};
        static_cast<Stored &>(context) = stored;
        if (Entry *mark = look_up(index))
            drop(*mark);   // of one that was erased
        Entry &entry = add(index, context);
        entry.dirty = true;
        return entry;
    }

    // The context will be changed, or was.
    void mark_dirty(Cached &context) { static_cast<Entry &>(context).dirty = true; }

    // Calls use(context) for those in the cache that were used last, the last first, `most` at most.
    template <class Use>
    void for_each_recent(size_t most, Use &&use) const
    {
        size_t n = 0;
        for (const Entry *entry = newest_; entry && n < most; entry = entry->older, n++)
            if (!entry->erased)
                use(static_cast<const Cached &>(*entry));
    }

    // Makes the entry absent, in the cache and in ICM.
    void erase(uint32_t index)
    {
        Entry *cached = look_up(index);
        Entry &entry = cached ? *cached : add(index, {});
        entry.erased = entry.dirty = true;
        if (write_back(entry))
            drop(entry);
    }

    // Writes back what stands in [from, from + length) of ICM. False: something could not be written.
    bool write_back(uint64_t from, uint64_t length)
    {
        bool good = true;
        for_each_in(from, length, [&](Entry &entry) { good &= write_back(entry); });
        return good;
    }
    // Drops what stands there, and what write_back() has written.
    void forget(uint64_t from, uint64_t length)
    {
        for_each_in(from, length, [this](Entry &entry) {
            work_.add();
            drop(entry);
        });
    }

    // Puts out the least recently used until `capacity` are left. Those that ICM does not take go behind all others,
    // and after a few of them the rest waits for the next time.
    void trim(size_t capacity)
    {
        constexpr unsigned kRefusals = 8;
        for (unsigned refused = 0; oldest_ && cached_ > capacity && refused < kRefusals;) {
            Entry &entry = *oldest_;
            const bool dirty = entry.dirty;
            if (write_back(entry)) {
                counters_.context_evictions += dirty;
                drop(entry);
            } else {
                refused++;
                touch(entry);
            }
        }
    }

private:
    using Image = std::array<uint8_t, kStoredBytes>;
    struct Entry;
    struct Links {
        uint32_t index;
        bool dirty;
        bool erased;   // absent, but ICM does not say so yet
        Entry *newer, *older;
    };
    // The links come first, beside what is used of each context.
    struct Entry : Links, Cached {};

    // Is there such an entry, and is ICM mapped there?
    uint8_t check(uint32_t index) const
    {
        if (index < Policy::kReserved || index >= count_)
            return HGHCA_CMD_STAT_BAD_INDEX;
        return icm_.mapped(Policy::kSpace, address(index), Policy::kEntrySize) ? HGHCA_CMD_STAT_OK
                                                                               : HGHCA_CMD_STAT_LAM_NOT_PRE;
    }
    uint64_t address(uint32_t index) const { return base_ + uint64_t(index) * Policy::kEntrySize; }
    Entry *look_up(uint32_t index) { return index < count_ ? places_[index] : nullptr; }
    // Calls use(entry), which may drop it, for each cached context that stands in [from, from + length) of ICM, be it in
    // part. All that are cached or all indices there are looked at, whichever is less.
    template <class Use>
    void for_each_in(uint64_t from, uint64_t length, Use &&use)
    {
        const uint64_t to = from + length;
        const uint64_t first = from <= base_ ? 0 : (from - base_) / Policy::kEntrySize;
        const uint64_t end = to <= base_ ? 0 : std::min(count_, (to - base_ - 1) / Policy::kEntrySize + 1);
        if (first >= end)
            return;
        work_.add_looks(std::min<uint64_t>(end - first, cached_));
        if (end - first < cached_) {
            for (uint64_t index = first; index < end; index++)
                if (Entry *entry = places_[index])
                    use(*entry);
        } else {
            for (Entry *next = newest_; next;) {
                Entry &entry = *next;
                next = entry.older;
                if (entry.index >= first && entry.index < end)
                    use(entry);
            }
        }
    }

    Entry &add(uint32_t index, const Cached &context)
    {
        Entry &entry = entries_.take(Entry{{index, false, false, nullptr, nullptr}, {context}});
        places_[index] = &entry;
        cached_++;
        link(entry);
        return entry;
    }
    void drop(Entry &entry)
    {
        unlink(entry);
        places_[entry.index] = nullptr;
        cached_--;
        entries_.give(entry);
    }
    // False: ICM did not take it, and it is as dirty as before.
    bool write_back(Entry &entry)
    {
        if (!entry.dirty)
            return true;
        work_.add();
        Image image{};
        if (!entry.erased) {
            encode(ContextHeader{Policy::kMagic, kOwnerHardware, entry.index, icm_.epoch()}, image.data());
            encode<Stored>(entry, image.data());
        }
        entry.dirty = !icm_.store(Policy::kSpace, address(entry.index), image.data(),
                                  entry.erased ? kHeaderBytes : kStoredBytes);
        if (entry.dirty) {
            counters_.context_write_errors++;
            icm_.report_error(Policy::kSpace, address(entry.index), "context", "written");
        }
        return !entry.dirty;
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
    // Where many contexts are in use, the host's cache has none of the lines: they come together.
    void fetch(const Entry &entry) const
    {
        constexpr size_t kLine = 64, kHotBytes = std::min<size_t>(sizeof(Entry), 512);
        if (&entry == newest_)
            return;
        for (size_t at = kLine; at < kHotBytes; at += kLine)
            __builtin_prefetch(reinterpret_cast<const uint8_t *>(&entry) + at);
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
    Work &work_;
    uint64_t base_ = 0;
    uint64_t count_ = 0;
    ZeroedArray<Entry *> places_;   // of each index; nullptr: not cached
    Pool<Entry> entries_;
    Entry *newest_ = nullptr, *oldest_ = nullptr;
    size_t cached_ = 0;
};

}  // namespace hghca
