// SPDX-License-Identifier: GPL-2.0-or-later
// Memory protection and translation: MPT and MTT (interface document, 4.5, 4.6).
#pragma once

#include <cstdint>
#include <vector>

#include "hghca_hw.h"
#include "host.h"
#include "jingzhao/context_cache.h"
#include "jingzhao/mtt.h"
#include "transport/function.h"
#include "transport/segment.h"
#include "transport/types.h"
#include "wire/number.h"
#include "work.h"

namespace hghca {

// Memory on the device (interface document, 4.24). It is the Host's; none: 0 bytes.
struct DeviceMemory {
    uint8_t *pointer = nullptr;
    uint64_t bytes = 0;  // 0, or a power of two from 4096 to HGHCA_DEVICE_MEMORY_MAX
};
// Where it stands among DMA addresses, which the Host knows from Host::dirty(): no bus reaches up to there.
constexpr uint64_t kDeviceMemoryBase = 1ull << 63;

// A validated MPT, in host byte order, as it stands in the device's cache: a
// region, or a window on one.
struct Mpt {
    uint32_t flags;        // HGHCA_MPT_FLAG_* and HGHCA_ACCESS_*
    Key key;
    uint32_t pd;
    uint32_t page_shift;
    uint64_t start;        // address of the first byte; of a zero-based region its offset in the first page
    uint64_t length;
    union {
        uint64_t mtt_first;  // of a tree: of its root
        uint64_t offset;   // region in memory on the device: where it begins
        uint64_t base;     // window: address in the region at which it begins
    };
    union {
        uint32_t mtt_count;   // of a region for fast registration
        Key lkey;             // window: the region's
    };
    union {
        uint32_t windows;  // bound to the region
        Qpn qpn;           // window of type 2B: the QP it was bound through
    };

    bool is_zero_based() const { return flags & HGHCA_ACCESS_ZERO_BASED; }
    // The address of the first byte.
    uint64_t first() const { return is_zero_based() ? 0 : start; }
    bool contains(uint64_t va, uint64_t bytes) const
    {
        return va >= first() && bytes <= length && va - first() <= length - bytes;
    }
    bool is_region() const { return flags & HGHCA_MPT_FLAG_REGION; }
    bool is_free() const { return flags & HGHCA_MPT_FLAG_FREE; }
    bool is_on_device() const { return flags & HGHCA_MPT_FLAG_DEVICE; }
    bool is_on_demand() const { return flags & HGHCA_ACCESS_ON_DEMAND; }
    bool is_tree() const { return flags & HGHCA_MPT_FLAG_TREE; }
};

// Where members share their place, one of them names it.
template <>
struct Layout<Mpt> {
    static constexpr auto kFields =
        fields(field("flags", &Mpt::flags, 0x10, FieldAccess::Command),
               field("key", &Mpt::key, 0x14, FieldAccess::Command), field("pd", &Mpt::pd, 0x18, FieldAccess::ReadOnly),
               field("page_shift", &Mpt::page_shift, 0x1c, FieldAccess::Command, {12, kMaxPageShift}),
               field("start", &Mpt::start, 0x20, FieldAccess::Command),
               field("length", &Mpt::length, 0x28, FieldAccess::Command),
               field("mtt_first", &Mpt::mtt_first, 0x30, FieldAccess::Command),
               field("mtt_count", &Mpt::mtt_count, 0x38, FieldAccess::Command),
               field("windows", &Mpt::windows, 0x3c, FieldAccess::Device));
};

// What a REG_MR WQE says.
struct Registration {
    Key key;
    uint32_t access;      // HGHCA_ACCESS_*
    uint64_t start;
    uint64_t length;
    uint64_t list;        // DMA address of `pages` little-endian DMA addresses
    uint32_t pages;
    uint32_t page_size;   // log2(bytes) - 12
    uint32_t first_byte;  // of one that is zero-based: its offset in the first page
};

// What a BIND_MW WQE says.
struct Binding {
    uint32_t access;
    Key rkey;
    Key lkey;
    uint64_t va;
    uint64_t length;
};

class MemoryTable final : public KeySpace {
public:
    MemoryTable(Host &host, Icm &icm, Counters &counters, Work &work, const DeviceMemory &on_device);

    // The table layout of INIT_HCA; clear() forgets all.
    // With `tags_below` the index of a key stands above its tag (MEM_MGT); with `uses_device` regions may be in
    // memory on the device (DEVICE_MEMORY), with `uses_demand` paged on demand (ODP), with `uses_first_byte`
    // zero-based from any byte of a page on (FIRST_BYTE).
    void configure(uint64_t mpt_base, unsigned log_mpts, uint64_t mtt_base, uint64_t mtt_count, bool tags_below,
                   bool uses_device, bool uses_demand, bool uses_first_byte);
    void clear();
    // Host pointers that are cached may be wrong from now on.
    void dma_changed();
    // Another number whenever a translation made before may be wrong.
    uint64_t generation() const { return generation_; }

    // Commands: each returns an HGHCA_CMD_STAT_*.
    uint8_t sw2hw_mpt(uint32_t index, const hghca_mpt &mpt) { return sw2hw_mpt(index, mpt, {}); }
    // Writes the MTTs too, from the region's first on: both, or nothing.
    uint8_t sw2hw_mpt(uint32_t index, const hghca_mpt &mpt, std::span<const uint64_t> mtts);
    uint8_t hw2sw_mpt(uint32_t index);
    uint8_t query_mpt(uint32_t index, hghca_mpt &out);
    // `entries`: DMA addresses, with HGHCA_MTT_* in their low bits where ODP is on.
    uint8_t write_mtt(uint64_t first, const uint64_t *entries, uint32_t count);
    // No access is made by the old entries once this returns: what was translated before was moved, too.
    uint8_t clear_mtt(uint64_t first, uint32_t count);

    // WQEs of the memory management extensions (interface document, 4.16). False:
    // refused, and nothing has changed. O(pages) for the first, O(1) for the others.
    Allowed register_region(uint32_t pd, const Registration &r);
    Allowed bind_window(KeyUser user, const Binding &b);
    Allowed invalidate(KeyUser user, Key key);
    // By a SEND with Invalidate of a peer.
    Allowed invalidate_remotely(KeyUser user, Key key) override;

    // The MPT of `key`, or nullptr: no such key, stale tag, not in hardware
    // ownership, ICM not mapped or not readable. Stable until trim().
    const Mpt *find(Key key) { return look_up(key).context; }

    // True when [va, va + length) of `key` may be used by `user` for `access`.
    // Length 0 checks the key, the PD and the right, not the bounds.
    Allowed check(Key key, KeyUser user, uint64_t va, uint64_t length, Access access) override;
    // check() for a region that is always there: a queue must not be paged on demand.
    bool check_queue(Key key, uint32_t pd, uint64_t va, uint64_t bytes, Access access);
    // Is the region behind `key`, if there is one, paged on demand?
    bool on_demand(Key key) override;

    // check(), and appends the memory itself to `out`. No also when `out` is full. `absent` is set with Absent
    // alone, `out` is undefined with all but Yes. O(pages).
    Found locate(Key key, KeyUser user, uint64_t va, uint64_t length, Access access, PacketSegments &out,
                 AbsentPage &absent) override
    {
        return find_segments(key, user, va, length, access, out, absent);
    }
    template <size_t N>
    Found find_segments(Key key, KeyUser user, uint64_t va, uint64_t length, Access access, SegmentArray<N> &out,
                        AbsentPage &absent)
    {
        const Mpt *mpt;
        if (const Found found = usable(key, user, va, length, access, mpt); found != Found::Yes)
            return found;
        const bool write = access != Access::LocalRead && access != Access::RemoteRead;
        while (length) {
            Segment s;
            const Found found = run(*mpt, va, length, write, s);
            if (found == Found::Absent)
                absent = {mpt->key, va, length, write};
            if (found != Found::Yes)
                return found;
            if (!out.push(s))
                return Found::No;
            va += s.length;
            length -= s.length;
        }
        return Found::Yes;
    }
    // The same for queues. False also for a region on demand.
    template <size_t N>
    bool translate(Key key, KeyUser user, uint64_t va, uint64_t length, Access access, SegmentArray<N> &out)
    {
        AbsentPage absent;
        return !on_demand(key) && find_segments(key, user, va, length, access, out, absent) == Found::Yes;
    }

    // Small control reads and writes (WQEs, CQEs, EQEs) through a key; none in a region on demand.
    bool read(Key key, uint32_t pd, uint64_t va, void *buffer, uint32_t length);
    bool write(Key key, uint32_t pd, uint64_t va, const void *buffer, uint32_t length);

    // Keeps the cache within its size; no reference survives it.
    void trim(size_t capacity);
    // ICM [from, from + length) of the TPT space is about to be unmapped. False: a context could not be written there.
    bool write_back(uint64_t from, uint64_t length);
    void forget(uint64_t from, uint64_t length);

private:
    struct Policy {
        static constexpr IcmSpace kSpace = IcmSpace::Tpt;
        static constexpr uint32_t kEntrySize = 64;
        static constexpr uint32_t kMagic = 0x4d505431;
        static constexpr uint32_t kReserved = 1;
    };
    // The host's pointer to a 4 KB page of guest memory, as last asked for.
    struct HostPage {
        uint64_t tag = 0;
        uint64_t generation = 0;
        uint8_t *pointer = nullptr;
    };
    static constexpr size_t kHostPages = 4096;  // 16 MB of guest memory
    // A page of 4 KB behind a key, as last translated. Alone in its line of the host's cache.
    struct alignas(64) Translation {
        uint64_t generation = 0;   // of the table; 0: none
        uint64_t number = 0;       // of the page in what place_of() counts in
        Key key{};
        bool write = false;        // it may be written
        uint8_t *pointer = nullptr;
        uint64_t dma = 0;
    };
    static constexpr size_t kTranslations = 1024;

    Lookup<const Mpt> look_up(Key key);
    // With Yes `out` is the region, and `va` is in it where the key is that of a window.
    Found usable(Key key, KeyUser user, uint64_t &va, uint64_t length, Access access, const Mpt *&out);
    Found behind_window(const Mpt &window, KeyUser user, uint64_t &va, uint64_t length, Access access, const Mpt *&out);
    uint32_t index_of(Key key) const;
    // The MPT of `key`'s index, whatever its tag.
    Lookup<Mpt> entry(Key key);
    // As ContextCache::find_for_command().
    uint8_t find_for_command(uint32_t index, Mpt *&out);
    // The same, to be changed.
    Mpt *entry_to_change(Key key);
    bool can_invalidate(const Mpt &mpt, KeyUser user) const;
    // False: its region cannot be read, and still counts the window.
    bool release_region(const Mpt &window);
    void make_free(Mpt &mpt);
    bool copy_pages(const Mpt &mpt, const Registration &r);
    // A run from va on that ends with `length` or the 4 KB page.
    Found run(const Mpt &mpt, uint64_t va, uint64_t length, bool write, Segment &out);
    static uint64_t place_of(const Mpt &mpt, uint64_t va);
    // The same where translations_ has no page of it. `place` is that of `va`.
    Found translate_page(const Mpt &mpt, uint64_t place, bool write, Translation &out);
    // The DMA address of `place`.
    Found page_of(const Mpt &mpt, uint64_t place, bool write, uint64_t &dma);
    // The index of the MTT of page `number` of a region.
    Found mtt_of(const Mpt &mpt, uint64_t number, uint64_t &index);
    // Yes, No or Unreadable.
    Found load_mtt(uint64_t index, uint64_t &entry);
    bool good_flags(uint32_t flags) const;
    uint64_t mtt_address(uint64_t index) const;
    // For a command about MTTs: are there such, and memory for them?
    uint8_t check_mtts(uint64_t first, uint64_t count) const;
    uint8_t *host_page(uint64_t dma, bool write);
    bool valid(const Mpt &mpt, uint32_t index) const;
    bool mtts_exist(uint64_t first, uint64_t count) const { return first <= mtt_count_ && count <= mtt_count_ - first; }
    void forget();

    Host &host_;
    Icm &icm_;
    const DeviceMemory on_device_;
    uint64_t mtt_base_ = 0;
    uint64_t mtt_count_ = 0;
    bool tags_below_ = false;
    bool uses_device_ = false;
    bool uses_demand_ = false;
    bool uses_first_byte_ = false;
    uint64_t generation_ = 1;
    uint64_t host_generation_ = 1;
    ContextCache<Mpt, Mpt, Policy> cache_;
    const Mpt *last_ = nullptr;  // the last one found
    Key last_key_{};
    Counters &counters_;
    Work &work_;
    std::vector<HostPage> host_pages_;
    std::vector<Translation> translations_;
};

}  // namespace hghca
