/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The RDMA loopback controller as a PCI function.
 *
 *   -device rdma-loopback[,extensions=MASK][,late-receiver=BOOL][,timeout=MS]
 *
 * docs/reference/loopback.rst of the project describes the device. This file adapts the core
 * (loopback_core.h) to QEMU. It has no device logic. All of its code runs under the BQL.
 */

#include "qemu/osdep.h"
#include "hw/pci/pci_device.h"
#include "hw/pci/pcie.h"
#include "migration/vmstate.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "qemu/module.h"
#include "qemu/timer.h"
#include "hghca_compat.h"
#include "loopback_core.h"
#include "loopback_hw.h"
#include "trace.h"

#define TYPE_RDMA_LOOPBACK "rdma-loopback"
OBJECT_DECLARE_SIMPLE_TYPE(LoopbackState, RDMA_LOOPBACK)

/* A write of a register does so much of the work before it returns; a turn does as much. */
#define LOOPBACK_STEPS 32
/* The time between two turns, in which virtual CPUs can take the BQL. */
#define LOOPBACK_REST_NS 20000

struct LoopbackState {
    PCIDevice parent_obj;

    /* Properties */
    uint32_t extensions;
    bool late_receiver;
    uint32_t timeout_ms;
    bool stalled;

    MemoryRegion registers;
    struct loopback_core *core;
    char *name;                     /* in traces */
    /* Both stand still while the machine is stopped. */
    QEMUTimer *timer;               /* of the next turn */
    QEMUTimer *watchdog;            /* of the transfer that waits */
};

/* ------------------------------------------------------------------ */
/* Functions that the core calls                                       */

static bool loopback_dma(LoopbackState *s, uint64_t address, void *buffer, size_t len, DMADirection direction)
{
    /* RAM only: DMA to registers could reenter this device. */
    MemTxAttrs attrs = { .memory = true };
    bool ok = pci_dma_rw(PCI_DEVICE(s), address, buffer, len, direction, attrs) == MEMTX_OK;

    if (!ok) {
        trace_loopback_err_dma(s->name, address, len, direction == DMA_DIRECTION_FROM_DEVICE);
    }
    return ok;
}

static bool loopback_dma_read(void *opaque, uint64_t address, void *buffer, size_t len)
{
    return loopback_dma(opaque, address, buffer, len, DMA_DIRECTION_TO_DEVICE);
}

static bool loopback_dma_write(void *opaque, uint64_t address, const void *buffer, size_t len)
{
    return loopback_dma(opaque, address, (void *)buffer, len, DMA_DIRECTION_FROM_DEVICE);
}

static void loopback_set_interrupt(void *opaque, bool asserted)
{
    pci_set_irq(PCI_DEVICE(opaque), asserted);
}

static void loopback_trace(void *opaque, const uint8_t *header)
{
    LoopbackState *s = opaque;
    char text[9 * LOOPBACK_HEADER_BEATS + 1];

    if (!trace_event_get_state_backends(TRACE_LOOPBACK_HEADER)) {
        return;
    }
    for (unsigned i = 0; i < LOOPBACK_HEADER_BEATS; i++) {
        const uint8_t *beat = header + 4 * i;

        snprintf(text + 9 * i, sizeof(text) - 9 * i, " %02x%02x%02x%02x", beat[0], beat[1], beat[2], beat[3]);
    }
    trace_loopback_header(s->name, text);
}

static const struct loopback_host_ops loopback_ops = {
    .read = loopback_dma_read,
    .write = loopback_dma_write,
    .set_interrupt = loopback_set_interrupt,
    .trace = loopback_trace,
};

/* ------------------------------------------------------------------ */
/* Turns and registers                                                 */

static void loopback_watch(LoopbackState *s)
{
    if (!loopback_core_awaits_time_out(s->core)) {
        timer_del(s->watchdog);
    } else if (!timer_pending(s->watchdog)) {
        timer_mod_ns(s->watchdog, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) + s->timeout_ms * (int64_t)SCALE_MS);
    }
}

static void loopback_take_turn(void *opaque)
{
    LoopbackState *s = opaque;

    if (loopback_core_run(s->core, LOOPBACK_STEPS)) {
        timer_mod_ns(s->timer, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) + LOOPBACK_REST_NS);
    }
    loopback_watch(s);
}

/* A turn now, unless one is due. */
static void loopback_kick(LoopbackState *s)
{
    if (timer_pending(s->timer)) {
        loopback_watch(s);
    } else {
        loopback_take_turn(s);
    }
}

static void loopback_time_out(void *opaque)
{
    LoopbackState *s = opaque;

    trace_loopback_err_timeout(s->name, s->timeout_ms);
    loopback_core_time_out(s->core);
    loopback_kick(s);
}

static uint64_t loopback_read(void *opaque, hwaddr offset, unsigned size)
{
    LoopbackState *s = opaque;
    uint32_t value = loopback_core_read(s->core, offset);

    trace_loopback_read(s->name, offset, value);
    return value;
}

static void loopback_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    LoopbackState *s = opaque;

    trace_loopback_write(s->name, offset, value);
    loopback_core_write(s->core, offset, value);
    loopback_kick(s);
}

static const MemoryRegionOps loopback_register_ops = {
    .read = loopback_read,
    .write = loopback_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 4, .max_access_size = 4 },
    .impl = { .min_access_size = 4, .max_access_size = 4 },
};

/* ------------------------------------------------------------------ */
/* PCI                                                                 */

static void loopback_write_config(PCIDevice *pci, uint32_t address, uint32_t value, int len)
{
    pci_default_write_config(pci, address, value, len);
    pcie_cap_flr_write_config(pci, address, value, len);
}

static void loopback_realize(PCIDevice *pci, Error **errp)
{
    LoopbackState *s = RDMA_LOOPBACK(pci);
    DeviceState *dev = DEVICE(pci);
    struct loopback_config config = { .extensions = s->extensions, .late_receiver = s->late_receiver };

    if (s->extensions & ~LOOPBACK_EXT_ALL) {
        error_setg(errp, "property 'extensions' must be at most 0x%x, not 0x%" PRIx32, LOOPBACK_EXT_ALL,
                   s->extensions);
        return;
    }
    if (pcie_endpoint_cap_init(pci, 0) < 0) {
        error_setg(errp, "there is no room for the PCI Express capability");
        return;
    }
    pcie_cap_deverr_init(pci);
    pcie_cap_flr_init(pci);
    s->core = loopback_core_new(&loopback_ops, s, &config);
    if (!s->core) {
        error_setg(errp, "out of memory for the device core");
        return;
    }
    g_free(s->name);
    s->name = dev->id ? g_strdup(dev->id)
                      : g_strdup_printf("rdma-loopback@%02x.%x", PCI_SLOT(pci->devfn), PCI_FUNC(pci->devfn));
    s->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, loopback_take_turn, s);
    s->watchdog = timer_new_ns(QEMU_CLOCK_VIRTUAL, loopback_time_out, s);
    loopback_core_stall(s->core, s->stalled);
    pci_config_set_interrupt_pin(pci->config, 1);
    memory_region_init_io(&s->registers, OBJECT(s), &loopback_register_ops, s, "rdma-loopback-registers",
                          LOOPBACK_BAR_SIZE);
    pci_register_bar(pci, LOOPBACK_BAR, PCI_BASE_ADDRESS_SPACE_MEMORY, &s->registers);
}

static void loopback_exit(PCIDevice *pci)
{
    LoopbackState *s = RDMA_LOOPBACK(pci);

    timer_free(s->watchdog);
    timer_free(s->timer);
    loopback_core_free(s->core);
    s->core = NULL;
    pcie_cap_exit(pci);
}

static void loopback_finalize(Object *object)
{
    g_free(RDMA_LOOPBACK(object)->name);
}

static void loopback_reset_hold(Object *object, ResetType type)
{
    LoopbackState *s = RDMA_LOOPBACK(object);

    pcie_cap_deverr_reset(PCI_DEVICE(object));
    timer_del(s->watchdog);
    timer_del(s->timer);
    loopback_core_reset(s->core);
}

/* ------------------------------------------------------------------ */
/* The type                                                            */

/* Returns all counters of the core as one object of names and numbers. */
static void loopback_get_stats(Object *object, Visitor *v, const char *name, void *opaque, Error **errp)
{
    LoopbackState *s = RDMA_LOOPBACK(object);
    bool ok = true;

    if (!visit_start_struct(v, name, NULL, 0, errp)) {
        return;
    }
    for (unsigned i = 0; ok && i < loopback_core_counters(); i++) {
        uint64_t value = s->core ? loopback_core_counter(s->core, i) : 0;

        ok = visit_type_uint64(v, loopback_core_counter_name(i), &value, errp);
    }
    if (ok) {
        visit_check_struct(v, errp);
    }
    visit_end_struct(v, NULL);
}

static bool loopback_get_stalled(Object *object, Error **errp)
{
    return RDMA_LOOPBACK(object)->stalled;
}

static void loopback_set_stalled(Object *object, bool stalled, Error **errp)
{
    LoopbackState *s = RDMA_LOOPBACK(object);

    s->stalled = stalled;
    if (s->core) {
        loopback_core_stall(s->core, stalled);
        loopback_kick(s);
    }
}

static const Property loopback_properties[] = {
    DEFINE_PROP_UINT32("extensions", LoopbackState, extensions, LOOPBACK_EXT_ALL),
    DEFINE_PROP_BOOL("late-receiver", LoopbackState, late_receiver, false),
    DEFINE_PROP_UINT32("timeout", LoopbackState, timeout_ms, 1000),
};

static const VMStateDescription loopback_vmstate = {
    .name = "rdma-loopback",
    .unmigratable = 1,
};

static void loopback_class_init(ObjectClass *class, const void *data)
{
    DeviceClass *dc = DEVICE_CLASS(class);
    PCIDeviceClass *pc = PCI_DEVICE_CLASS(class);
    ResettableClass *rc = RESETTABLE_CLASS(class);

    pc->vendor_id = LOOPBACK_PCI_VENDOR_ID;
    pc->device_id = LOOPBACK_PCI_DEVICE_ID;
    pc->class_id = LOOPBACK_PCI_CLASS >> 8;
    pc->realize = loopback_realize;
    pc->exit = loopback_exit;
    pc->config_write = loopback_write_config;
    rc->phases.hold = loopback_reset_hold;
    dc->desc = "RDMA loopback controller";
    dc->vmsd = &loopback_vmstate;
    device_class_set_props(dc, loopback_properties);
    set_bit(DEVICE_CATEGORY_MISC, dc->categories);

    object_class_property_set_description(class, "extensions",
        "Extensions that software can enable, as a mask; 0: the document's device alone");
    object_class_property_set_description(class, "late-receiver",
        "Without the extension PLACED, data is written after the completion of its transfer");
    object_class_property_set_description(class, "timeout",
        "With the extension CHECKS, milliseconds after which a transfer that stalls ends");
    object_class_property_add_bool(class, "stalled", loopback_get_stalled, loopback_set_stalled);
    object_class_property_set_description(class, "stalled",
        "While it is on, no payload is moved, for tests of software");
    object_class_property_add(class, "stats", "LoopbackStats", loopback_get_stats, NULL, NULL, NULL);
    object_class_property_set_description(class, "stats", "Counters of the device since its start");
}

static const TypeInfo loopback_info = {
    .name = TYPE_RDMA_LOOPBACK,
    .parent = TYPE_PCI_DEVICE,
    .instance_size = sizeof(LoopbackState),
    .instance_finalize = loopback_finalize,
    .class_init = HGHCA_CLASS_INIT(loopback_class_init),
    .interfaces = (InterfaceInfo[]) {
        { INTERFACE_PCIE_DEVICE },
        { }
    },
};

static void loopback_register_types(void)
{
    type_register_static(&loopback_info);
}

type_init(loopback_register_types)
