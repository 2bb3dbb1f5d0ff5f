/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The JingZhao HCA in QEMU: declarations that the files of the shim share.
 *
 * The shim adapts the device core (hghca_core.h) to QEMU. It has no device logic.
 * All of its code runs under the BQL.
 */
#ifndef HW_HGHCA_SHIM_H
#define HW_HGHCA_SHIM_H

#include "hw/pci/pci_device.h"
#include "net/net.h"
#include "qemu/timer.h"
#include "hghca_compat.h"
#include "hghca_core.h"

#define TYPE_HGHCA "hghca"
OBJECT_DECLARE_SIMPLE_TYPE(HghcaState, HGHCA)

#define HGHCA_VECTORS 64

typedef struct HghcaRam HghcaRam;
typedef struct HghcaLink HghcaLink;

/* The RAM that the device can access, as a table sorted by DMA address. */
typedef struct HghcaDma {
    MemoryListener listener;
    HghcaRam *ram;
    unsigned count;
    unsigned last;      /* index that the last look-up found */
    bool changed;       /* the current transaction changes the address space */
    bool stale;         /* changed during an entry: only the copy path is valid */
} HghcaDma;

/* Where the frames of the current entry or turn go directly. */
typedef struct HghcaWire {
    uint64_t entry;             /* hghca_entry_number() */
    unsigned frames;            /* sent in it; counted up to 2 */
    struct HghcaState *end;     /* NULL: they go through the net layer */
} HghcaWire;

struct HghcaState {
    PCIDevice parent_obj;

    /* Properties */
    NICConf nic_conf;
    uint32_t cache_entries;
    uint32_t slice_work;
    bool bql_hook;
    uint64_t node_guid;
    char *profile;                  /* NULL: full */
    uint32_t init_delay_ms;
    uint64_t memory_bytes;
    uint8_t moderation_scale;   /* 0: by the accelerator */
    uint64_t fail_command;
    uint32_t no_capabilities;       /* mask of those that are not advertised */
    uint32_t roce_drain_mbps;
    uint32_t other_drain_mbps;
    uint64_t roce_buffer_bytes;
    uint64_t other_buffer_bytes;
    uint32_t capture_snap_bytes;
    uint64_t capture_max_bytes;
    char *capture_file;             /* NULL: no frames are captured */
    char *link_name;                /* NULL: the netdev */
    char *faults;
    uint64_t fault_seed;
    bool verify_remote;             /* only, as hghca_net_send_direct() has it */

    MemoryRegion hcr;
    MemoryRegion uar;
    MemoryRegion memory;            /* device memory */
    MemoryRegion bar2;              /* UAR pages and device memory */
    MemoryRegion msix;
    struct hghca_core *core;
    char *name;                     /* in messages and traces */
    HghcaDma dma;

    NICState *nic;
    bool tx_pending;                /* the net layer has queued a frame from this device */
    bool rx_waiting;                /* the net layer may have queued frames for this device */
    HghcaWire wire;
    HghcaLink *link;                /* NULL: the netdev */
    struct hghca_capture *capture;
    uint64_t capture_dropped;       /* frames for which the FIFO had no place */

    QEMUTimer *timer;

    /* Entries and turns; see hghca_entry.c */
    bool closing;
    bool busy;                      /* the core is executing */
    bool due;                       /* in the list of devices that need a turn */
    bool reset_due;
    bool link_change_due;
    bool link_ready_due;
    uint64_t vectors_due;           /* bit n: send MSI-X message n */
    uint64_t interrupts;            /* sent since the device was created */
    bool intx;                      /* while MSI-X is off, a message asserts INTA */
    VMChangeStateEntry *vm_state;
    QTAILQ_ENTRY(HghcaState) next_due;
};

/* hghca_entry.c */
/* After false the caller must not call the core. The compiler rejects an ignored result. */
#pragma GCC diagnostic error "-Wunused-result"
bool hghca_enter(HghcaState *s) G_GNUC_WARN_UNUSED_RESULT;
void hghca_leave(HghcaState *s);
void hghca_leave_doorbell(HghcaState *s);
void hghca_leave_quietly(HghcaState *s);
void hghca_poke(void *opaque);
uint64_t hghca_entry_time_ns(void *opaque);
uint64_t hghca_entry_number(void);
void hghca_reset(HghcaState *s);
void hghca_link_changed(HghcaState *s);
void hghca_entry_open(HghcaState *s);
void hghca_entry_close(HghcaState *s);
void hghca_forget_interrupts(HghcaState *s);
void hghca_end(HghcaState *s);

/* hghca_bql.c */
void hghca_bql_open(void);
void hghca_bql_give_way(void);
bool hghca_bql_is_hooked(void);
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

/* hghca_link.c */
bool hghca_link_check(HghcaState *s, Error **errp);
bool hghca_link_open(HghcaState *s, Error **errp);
void hghca_link_close(HghcaState *s);
bool hghca_link_is_up(const HghcaLink *l);
bool hghca_link_has_work(const HghcaLink *l);
bool hghca_link_send(HghcaLink *l, const struct iovec *parts, int count);
void hghca_link_receive(HghcaLink *l);
void hghca_link_settle(HghcaLink *l);

/* hghca_net.c */
void hghca_net_open(HghcaState *s);
void hghca_net_close(HghcaState *s);
bool hghca_net_link_up(HghcaState *s);
void hghca_net_receive_frame(HghcaState *s, const struct iovec *parts, int count, bool trusted);
bool hghca_net_send(void *opaque, const struct iovec *parts, int count, bool device_icrc);

#endif
