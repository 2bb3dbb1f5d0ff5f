/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * DMA. A MemoryListener on the device's address space maintains a table of the RAM
 * in it. Each section of RAM has a MemoryRegionCache, so that the core gets host
 * pointers without a walk of the memory tree. With bus mastering disabled, the
 * address space is empty. Behind a vIOMMU it has no RAM: then all DMA except atomics
 * uses the copy path. The copy path and atomics look up the address space each time.
 */

#include "qemu/osdep.h"
#include "hw/pci/pci_device.h"
#include "qemu/rcu.h"
#include "system/dma.h"
#include "hghca_shim.h"
#include "trace.h"

#define HGHCA_DMA_PAGE 4096

struct HghcaRam {
    hwaddr start;
    hwaddr size;
    uint8_t *pointer;
    bool writable;
    MemoryRegionCache cache;
};

static AddressSpace *hghca_address_space(HghcaState *s)
{
    return pci_get_address_space(PCI_DEVICE(s));
}

static HghcaRam *hghca_ram_find(HghcaDma *d, hwaddr dma)
{
    unsigned low = 0, high = d->count;

    if (d->last < d->count && dma - d->ram[d->last].start < d->ram[d->last].size) {
        return &d->ram[d->last];
    }
    while (low < high) {
        unsigned middle = (low + high) / 2;
        HghcaRam *ram = &d->ram[middle];

        if (dma < ram->start) {
            high = middle;
        } else if (dma - ram->start >= ram->size) {
            low = middle + 1;
        } else {
            d->last = middle;
            return ram;
        }
    }
    return NULL;
}

uint8_t *hghca_dma_map(void *opaque, uint64_t dma, uint64_t len, bool write)
{
    HghcaState *s = opaque;
    HghcaRam *ram = s->dma.stale ? NULL : hghca_ram_find(&s->dma, dma);

    if (!ram || len > ram->size - (dma - ram->start) || (write && !ram->writable)) {
        return NULL;
    }
    /* QEMU's fuzzer writes the data that the device reads here; no effect in other builds. */
    fuzz_dma_read_cb(dma, len, ram->cache.mrs.mr);
    return ram->pointer + (dma - ram->start);
}

/*
 * The core has written [dma, dma + len) through pointers. Invalidates translated code
 * there and updates the dirty logs.
 */
void hghca_dma_dirty(void *opaque, uint64_t dma, uint64_t len)
{
    HghcaState *s = opaque;

    if (dma >= HGHCA_DEVICE_MEMORY_BASE) {
        memory_region_set_dirty(&s->memory, dma - HGHCA_DEVICE_MEMORY_BASE, len);
        return;
    }
    /* Two sections can also be adjacent in the host; the core may write both at once. */
    while (len) {
        HghcaRam *ram = hghca_ram_find(&s->dma, dma);
        uint64_t part;

        if (!ram || !ram->writable) {
            return;
        }
        part = MIN(len, ram->size - (dma - ram->start));
        address_space_cache_invalidate(&ram->cache, dma - ram->start, part);
        dma += part;
        len -= part;
    }
}

static bool hghca_dma_copy(HghcaState *s, uint64_t dma, void *buffer, uint64_t len,
                           DMADirection direction)
{
    /* RAM only: DMA to registers could reenter this device or unplug it. */
    MemTxAttrs attrs = { .memory = true };
    bool ok = len <= UINT64_MAX - dma;

    if (ok && dma / HGHCA_DMA_PAGE != (dma + len - 1) / HGHCA_DMA_PAGE) {
        /* Access the whole range or nothing. */
        ok = dma_memory_valid(hghca_address_space(s), dma, len, direction, attrs);
    }
    ok = ok && pci_dma_rw(PCI_DEVICE(s), dma, buffer, len, direction, attrs) == MEMTX_OK;
    if (!ok) {
        trace_hghca_err_dma(s->name, dma, len, direction == DMA_DIRECTION_FROM_DEVICE);
    }
    return ok;
}

bool hghca_dma_read(void *opaque, uint64_t dma, void *buffer, uint64_t len)
{
    return hghca_dma_copy(opaque, dma, buffer, len, DMA_DIRECTION_TO_DEVICE);
}

bool hghca_dma_write(void *opaque, uint64_t dma, const void *buffer, uint64_t len)
{
    return hghca_dma_copy(opaque, dma, (void *)buffer, len, DMA_DIRECTION_FROM_DEVICE);
}

/*
 * Changes RAM in place, also behind a vIOMMU, so that the operation is atomic for
 * CPUs, too.  A mapping that is not RAM is a bounce buffer of QEMU, which this does
 * not change.
 */
bool hghca_dma_update(void *opaque, uint64_t dma, void (*change)(uint64_t *word, void *context), void *context)
{
    HghcaState *s = opaque;
    MemTxAttrs attrs = { .memory = true };
    dma_addr_t len = sizeof(uint64_t);
    ram_addr_t offset;
    void *word;
    bool ok;

    word = dma_memory_map(hghca_address_space(s), dma, &len, DMA_DIRECTION_FROM_DEVICE, attrs);
    ok = word && len == sizeof(uint64_t) && memory_region_from_host(word, &offset);
    if (ok) {
        change(word, context);
    } else {
        trace_hghca_err_dma(s->name, dma, sizeof(uint64_t), true);
    }
    if (word) {
        dma_memory_unmap(hghca_address_space(s), word, len, DMA_DIRECTION_FROM_DEVICE, ok ? len : 0);
    }
    return ok;
}

typedef struct HghcaRamList {
    HghcaState *s;
    GArray *sections;
} HghcaRamList;

static bool hghca_ram_add(Int128 start, Int128 length, const MemoryRegion *mr,
                          hwaddr offset, void *opaque)
{
    HghcaRamList *list = opaque;
    MemoryRegion *region = (MemoryRegion *)mr;
    HghcaRam ram = { .start = int128_get64(start), .writable = !mr->readonly };

    if (!memory_region_is_ram(region) || memory_region_is_ram_device(region)) {
        return false;
    }
    ram.size = address_space_cache_init(&ram.cache, hghca_address_space(list->s),
                                        ram.start, int128_get64(length), ram.writable);
    ram.pointer = ram.cache.ptr;
    ram.writable &= !ram.cache.mrs.readonly;
    if (!ram.pointer) {
        address_space_cache_destroy(&ram.cache);
        return false;
    }
    trace_hghca_dma_ram(list->s->name, ram.start, ram.size, ram.writable);
    g_array_append_val(list->sections, ram);
    return false;
}

/* Rebuilds the table. The core must not be busy, because a busy core holds pointers. */
void hghca_dma_rebuild(HghcaState *s)
{
    HghcaDma *d = &s->dma;
    HghcaRamList list = {
        .s = s,
        .sections = g_array_new(false, false, sizeof(HghcaRam)),
    };
    HghcaRam *old = d->ram;
    unsigned old_count = d->count;

    if (!s->closing) {
        RCU_READ_LOCK_GUARD();
        flatview_for_each_range(address_space_to_flatview(hghca_address_space(s)),
                                hghca_ram_add, &list);
    }
    d->count = list.sections->len;
    d->ram = (HghcaRam *)g_array_free(list.sections, false);
    d->last = 0;
    d->stale = false;
    hghca_core_dma_changed(s->core);
    /* From here on the core does not hold the old pointers. */
    for (unsigned i = 0; i < old_count; i++) {
        address_space_cache_destroy(&old[i].cache);
    }
    g_free(old);
}

static void hghca_region_changed(MemoryListener *listener, MemoryRegionSection *section)
{
    container_of(listener, HghcaState, dma.listener)->dma.changed = true;
}

static void hghca_regions_commit(MemoryListener *listener)
{
    HghcaState *s = container_of(listener, HghcaState, dma.listener);

    if (!s->dma.changed) {
        return;
    }
    s->dma.changed = false;
    if (s->busy) {
        s->dma.stale = true;    /* the core holds pointers: hghca_settle() rebuilds */
    } else {
        hghca_dma_rebuild(s);
    }
}

void hghca_dma_open(HghcaState *s)
{
    s->dma.listener = (MemoryListener) {
        .name = "hghca",
        .region_add = hghca_region_changed,
        .region_del = hghca_region_changed,
        .commit = hghca_regions_commit,
    };
    memory_listener_register(&s->dma.listener, hghca_address_space(s));
}

/* hghca_end() empties the table. */
void hghca_dma_close(HghcaState *s)
{
    memory_listener_unregister(&s->dma.listener);
}
