// SPDX-License-Identifier: GPL-2.0-or-later
#include "jingzhao/icm.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace hghca {

void Icm::clear()
{
    for (Map &map : maps_)
        for (auto &leaf : map)
            leaf.reset();
    epoch_ = uint32_t(host_.random());
    trouble_ = HGHCA_HEALTH_NONE;
}

const Icm::Page *Icm::find(IcmSpace space, uint64_t address) const
{
    if (address >= kSize)
        return nullptr;
    uint64_t number = address / kPage;
    const Leaf *leaf = maps_[unsigned(space)][number / kLeafPages].get();
    if (!leaf)
        return nullptr;
    const Page &page = leaf->pages[number % kLeafPages];
    return page.dma & kMapped ? &page : nullptr;
}

void Icm::unmap_page(IcmSpace space, uint64_t address)
{
    uint64_t number = address / kPage;
    auto &leaf = maps_[unsigned(space)][number / kLeafPages];
    leaf->pages[number % kLeafPages] = {};
    if (--leaf->mapped == 0)
        leaf.reset();
}

uint8_t Icm::map(IcmSpace space, const Chunk *chunks, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const Chunk &c = chunks[i];
        uint64_t length = c.pages * kPage;
        if (!c.pages || c.address % kPage || c.dma % kPage || c.address >= kSize || length > kSize - c.address ||
            c.dma + length - 1 < c.dma)
            return HGHCA_CMD_STAT_BAD_PARAM;
    }
    // A page that is taken may be one of this very command: undo on refusal.
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t n = 0; n < chunks[i].pages; n++) {
            uint64_t number = chunks[i].address / kPage + n;
            auto &leaf = maps_[unsigned(space)][number / kLeafPages];
            if (!leaf)
                leaf = std::make_unique<Leaf>();
            Page &page = leaf->pages[number % kLeafPages];
            if (page.dma & kMapped) {
                while (n--)
                    unmap_page(space, chunks[i].address + n * kPage);
                while (i--)
                    unmap(space, chunks[i].address, chunks[i].pages);
                return HGHCA_CMD_STAT_RESOURCE_BUSY;
            }
            page = {(chunks[i].dma + n * kPage) | kMapped, nullptr, 0};
            leaf->mapped++;
        }
    }
    return HGHCA_CMD_STAT_OK;
}

uint8_t Icm::check_unmap(IcmSpace space, uint64_t address, uint64_t pages) const
{
    if (!pages || address % kPage || pages > kSize / kPage || !mapped(space, address, pages * kPage))
        return HGHCA_CMD_STAT_BAD_PARAM;
    return HGHCA_CMD_STAT_OK;
}

void Icm::unmap(IcmSpace space, uint64_t address, uint64_t pages)
{
    for (uint64_t n = 0; n < pages; n++)
        unmap_page(space, address + n * kPage);
}

bool Icm::mapped(IcmSpace space, uint64_t address, uint64_t length) const
{
    if (!length || address >= kSize || length > kSize - address)
        return false;
    for (uint64_t at = address & ~(kPage - 1); at < address + length; at += kPage)
        if (!find(space, at))
            return false;
    return true;
}

uint8_t *Icm::pointer(Page &page)
{
    if (page.generation != generation_) {
        page.pointer = host_.map(page.dma & ~kMapped, kPage, true);
        page.generation = generation_;
    }
    return page.pointer;
}

uint8_t *Icm::pointer(IcmSpace space, uint64_t address)
{
    Page *page = find(space, address);
    uint8_t *p = page ? pointer(*page) : nullptr;
    return p ? p + address % kPage : nullptr;
}

bool Icm::load(IcmSpace space, uint64_t address, void *buffer, uint64_t length)
{
    auto *out = static_cast<uint8_t *>(buffer);
    while (length) {
        Page *page = find(space, address);
        if (!page)
            return false;
        uint64_t offset = address % kPage;
        uint64_t n = std::min(length, kPage - offset);
        if (const uint8_t *p = pointer(*page))
            std::memcpy(out, p + offset, n);
        else if (!host_.read((page->dma & ~kMapped) + offset, out, n))
            return false;
        out += n;
        address += n;
        length -= n;
    }
    return true;
}

bool Icm::store(IcmSpace space, uint64_t address, const void *buffer, uint64_t length)
{
    auto *in = static_cast<const uint8_t *>(buffer);
    if (!mapped(space, address, length))
        return false;
    while (length) {
        Page *page = find(space, address);
        uint64_t offset = address % kPage;
        uint64_t n = std::min(length, kPage - offset);
        uint64_t dma = (page->dma & ~kMapped) + offset;
        if (uint8_t *p = pointer(*page)) {
            std::memcpy(p + offset, in, n);
            host_.dirty(dma, n);
        } else if (!host_.write(dma, in, n)) {
            return false;
        }
        in += n;
        address += n;
        length -= n;
    }
    return true;
}

void Icm::report_error(IcmSpace space, uint64_t address, const char *what, const char *done)
{
    trouble_ = HGHCA_HEALTH_ICM_FETCH_PCI_ERR;
    if (!host_.tracing())
        return;
    char text[80];
    (void)std::snprintf(text, sizeof(text), "%s at 0x%llx of ICM space %u not %s: no memory there", what,
                        static_cast<unsigned long long>(address), unsigned(space) + 1, done);
    host_.trace(Host::Trace::Error, text);
}

}  // namespace hghca
