// SPDX-License-Identifier: GPL-2.0-or-later
// Interconnect context memory: host memory lent to the device by MAP_ICM
// (interface document, 4.4).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "hghca_hw.h"
#include "host.h"

namespace hghca {

enum class IcmSpace : uint8_t { Context, Tpt };

// Two address spaces of 4 KB pages, each a two-level map: a look-up is two array
// accesses. An access may cross pages.
class Icm {
public:
    static constexpr uint64_t kSize = 1ull << 32;  // bytes of each space, max_icm_sz
    static constexpr uint64_t kPage = HGHCA_ICM_PAGE_SIZE;

    struct Chunk {
        uint64_t address;  // ICM
        uint64_t dma;
        uint32_t pages;
    };

    explicit Icm(Host &host) : host_(host) { clear(); }

    // Unmaps all, and starts a new epoch: entries of the one before are void.
    void clear();
    uint32_t epoch() const { return epoch_; }
    void dma_changed() { generation_++; }

    // Commands: each returns an HGHCA_CMD_STAT_* and changes all or nothing.
    uint8_t map(IcmSpace space, const Chunk *chunks, uint32_t count);
    // Whether [address, address + pages) could be unmapped.
    uint8_t check_unmap(IcmSpace space, uint64_t address, uint64_t pages) const;
    void unmap(IcmSpace space, uint64_t address, uint64_t pages);

    bool mapped(IcmSpace space, uint64_t address, uint64_t length) const;
    // False: not mapped, or the host has no memory there.
    bool load(IcmSpace space, uint64_t address, void *buffer, uint64_t length);
    bool store(IcmSpace space, uint64_t address, const void *buffer, uint64_t length);

    // `what`, which belongs there, could not be `done`, as the host has no memory there: for the trace, and for
    // take_trouble().
    void report_error(IcmSpace space, uint64_t address, const char *what, const char *done);

    // The page of something in use is not mapped.
    void report_missing() { trouble_ = HGHCA_HEALTH_ICM_PAGE_ERR; }
    // The last of these, once.
    hghca_health take_trouble() { return std::exchange(trouble_, HGHCA_HEALTH_NONE); }

    // The host's pointer to the byte at `address`, good to the end of its page;
    // nullptr where no such pointer exists: the caller uses load() and store().
    uint8_t *pointer(IcmSpace space, uint64_t address);

private:
    static constexpr unsigned kLeafBits = 10;
    static constexpr uint64_t kLeafPages = 1u << kLeafBits;
    static constexpr uint64_t kMapped = 1;  // in Page::dma, whose low bits are free

    struct Page {
        uint64_t dma = 0;
        uint8_t *pointer = nullptr;   // as of `generation`
        uint32_t generation = 0;
    };
    struct Leaf {
        std::array<Page, kLeafPages> pages;
        uint32_t mapped = 0;
    };
    using Map = std::array<std::unique_ptr<Leaf>, kSize / kPage / kLeafPages>;

    const Page *find(IcmSpace space, uint64_t address) const;
    Page *find(IcmSpace space, uint64_t address)
    {
        return const_cast<Page *>(static_cast<const Icm *>(this)->find(space, address));
    }
    uint8_t *pointer(Page &page);
    void unmap_page(IcmSpace space, uint64_t address);

    Host &host_;
    uint32_t generation_ = 1;
    uint32_t epoch_ = 0;
    hghca_health trouble_ = HGHCA_HEALTH_NONE;
    Map maps_[2];
};

}  // namespace hghca
