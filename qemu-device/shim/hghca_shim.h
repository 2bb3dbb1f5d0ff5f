/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The JingZhao HCA in QEMU: what the files of the shim share.
 *
 * The shim adapts the device core (hghca_core.h) to QEMU and holds no device
 * logic. Everything here runs under the BQL.
 */
#ifndef HW_HGHCA_SHIM_H
#define HW_HGHCA_SHIM_H

#include "exec/memory.h"
#include "hw/pci/pci_device.h"
#include "net/net.h"
#include "qemu/timer.h"
#include "hghca_core.h"

#define TYPE_HGHCA "hghca"
OBJECT_DECLARE_SIMPLE_TYPE(HghcaState, HGHCA)

#define HGHCA_VECTORS 64

typedef struct HghcaRam HghcaRam;

/* The plain RAM that the device reaches: a table sorted by DMA address. */
typedef struct HghcaDma {
    MemoryListener listener;
    HghcaRam *ram;
    unsigned count;
    unsigned last;      /* where the last look-up ended */
    bool changed;       /* the transaction under way changes the address space */
    bool stale;         /* changed during an entry: only the copy path is right */
} HghcaDma;

struct HghcaState {
    PCIDevice parent_obj;

    /* Properties */
    NICConf nic_conf;
    uint32_t cache_entries;
    uint32_t slice_work;
    bool bql_hook;
    uint64_t node_guid;
    uint64_t memory_bytes;
    uint64_t fail_command;
    uint32_t roce_drain_mbps;
    uint32_t other_drain_mbps;
    uint64_t roce_buffer_bytes;
    uint64_t other_buffer_bytes;
    uint32_t capture_snap_bytes;
    uint64_t capture_max_bytes;
    char *capture_file;             /* NULL: no frames are captured */
    char *faults;
    uint64_t fault_seed;

    MemoryRegion hcr;
    MemoryRegion uar;
    MemoryRegion memory;            /* on the device */
    MemoryRegion bar2;              /* UAR pages and memory */
    MemoryRegion msix;
    struct hghca_core *core;
    char *name;                     /* in messages and traces */
    HghcaDma dma;

    NICState *nic;
    bool tx_pending;                /* the net layer keeps a frame of ours */
    bool rx_waiting;                /* it may keep frames for us */
    struct hghca_capture *capture;

    QEMUTimer *timer;

    /* Entries and turns, see hghca_entry.c */
    bool closing;
    bool busy;                      /* in the core */
    bool due;                       /* in the list of those that want a turn */
    bool reset_due;
    bool link_change_due;
    bool link_ready_due;
    uint64_t vectors_due;           /* bit n: message n is to be sent */
    VMChangeStateEntry *vm_state;
    QTAILQ_ENTRY(HghcaState) next_due;
};

/* hghca_entry.c */
/* Who is refused must not call the core: an answer that is ignored does not compile. */
#pragma GCC diagnostic error "-Wunused-result"
bool hghca_enter(HghcaState *s) G_GNUC_WARN_UNUSED_RESULT;
void hghca_leave(HghcaState *s);
void hghca_leave_quietly(HghcaState *s);
void hghca_poke(void *opaque);
void hghca_reset(HghcaState *s);
void hghca_link_changed(HghcaState *s);
void hghca_entry_open(HghcaState *s);
void hghca_entry_close(HghcaState *s);
void hghca_end(HghcaState *s);

/* hghca_bql.c */
void hghca_bql_open(void);
void hghca_bql_give_way(void);
bool hghca_bql_is_wanted(void);

/* hghca_dma.c */
void hghca_dma_open(HghcaState *s);
void hghca_dma_close(HghcaState *s);
void hghca_dma_rebuild(HghcaState *s);
uint8_t *hghca_dma_map(void *opaque, uint64_t dma, uint64_t len, bool write);
void hghca_dma_dirty(void *opaque, uint64_t dma, uint64_t len);
bool hghca_dma_read(void *opaque, uint64_t dma, void *buffer, uint64_t len);
bool hghca_dma_write(void *opaque, uint64_t dma, const void *buffer, uint64_t len);
bool hghca_dma_update(void *opaque, uint64_t dma, void (*change)(uint64_t *word, void *context), void *context);

/* hghca_capture.c */
bool hghca_capture_open(HghcaState *s, Error **errp);
void hghca_capture_close(HghcaState *s);
void hghca_capture_add(HghcaState *s, bool sent, const struct iovec *parts, int count);
char *hghca_capture_get(Object *object, Error **errp);
void hghca_capture_set(Object *object, const char *file, Error **errp);

/* hghca_faults.c */
void hghca_faults_class_init(ObjectClass *class);
bool hghca_faults_open(HghcaState *s, Error **errp);

/* hghca_net.c */
void hghca_net_open(HghcaState *s);
void hghca_net_close(HghcaState *s);
bool hghca_net_link_up(HghcaState *s);
bool hghca_net_send(void *opaque, const struct iovec *parts, int count);

#endif
