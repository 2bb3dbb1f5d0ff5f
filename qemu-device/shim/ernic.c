/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ERNIC and ETRNIC as a PCI function.
 *
 *   -device ernic,netdev=ID[,ethernet=ID][,personality=ernic|etrnic][,qps=N][,extensions=MASK][,mac=MAC]
 *
 * docs/reference/ernic.rst of the project describes the device. This file adapts the core
 * (ernic_core.h) to QEMU. It has no device logic. All of its code runs under the BQL.
 */

#include "qemu/osdep.h"
#include "hw/pci/msi.h"
#include "hw/pci/pci_device.h"
#include "hw/pci/pcie.h"
#include "migration/vmstate.h"
#include "net/net.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "qemu/guest-random.h"
#include "qemu/iov.h"
#include "qemu/module.h"
#include "qemu/timer.h"
#include "ernic_core.h"
#include "ernic_hw.h"
#include "hghca_compat.h"
#include "trace.h"

#define TYPE_ERNIC "ernic"
OBJECT_DECLARE_SIMPLE_TYPE(ErnicState, ERNIC)

/* The time between two turns, in which virtual CPUs can take the BQL. */
#define ERNIC_REST_NS 20000
/* Frames for the Ethernet side that the net layer may hold at most: the core counts those that are lost then. */
#define ERNIC_ETHERNET_QUEUE 256

struct ErnicState {
    PCIDevice parent_obj;

    /* Properties */
    NICConf nic_conf;
    NICConf ethernet_conf;          /* the side of the Ethernet adapter, if it has a peer */
    char *personality;              /* NULL: ernic */
    uint32_t qps;                   /* 0: as many as the personality has */
    uint32_t extensions;
    bool strict;
    uint32_t clock_mhz;
    uint32_t roce_drain_mbps;       /* 0: the device takes frames at once */
    uint32_t other_drain_mbps;

    MemoryRegion registers;
    struct ernic_core *core;
    char *name;                     /* in traces */
    NICState *nic;
    NICState *ethernet;             /* NULL: no adapter is behind the device */
    bool busy;                      /* the core is executing */
    bool tx_pending;                /* the net layer has queued a frame from this device to the link */
    bool rx_waiting;                /* the net layer may have queued frames from the link */
    bool ethernet_waiting;          /* the net layer may have queued frames from the Ethernet side */
    bool ethernet_first;            /* the Ethernet side is the next one to send when the link takes frames again */
    uint32_t ethernet_queued;       /* frames for the Ethernet side that the net layer has queued */
    bool asserted;                  /* the interrupt line, while MSI is off */
    QEMUTimer *turn;                /* of the next turn */
    QEMUTimer *deadline;            /* of the core */
};

/* ------------------------------------------------------------------ */
/* Functions that the core calls                                       */

static uint8_t *ernic_map(void *opaque, uint64_t dma, uint64_t len, bool write)
{
    return NULL;    /* all is copied */
}

static void ernic_dirty(void *opaque, uint64_t dma, uint64_t len)
{
}

static bool ernic_dma(ErnicState *s, uint64_t address, void *buffer, size_t len, DMADirection direction)
{
    /* RAM only: DMA to registers could reenter this device. */
    MemTxAttrs attrs = { .memory = true };
    bool ok = pci_dma_rw(PCI_DEVICE(s), address, buffer, len, direction, attrs) == MEMTX_OK;

    if (!ok) {
        trace_ernic_err_dma(s->name, address, len, direction == DMA_DIRECTION_FROM_DEVICE);
    }
    return ok;
}

static bool ernic_dma_read(void *opaque, uint64_t dma, void *buffer, uint64_t len)
{
    return ernic_dma(opaque, dma, buffer, len, DMA_DIRECTION_TO_DEVICE);
}

static bool ernic_dma_write(void *opaque, uint64_t dma, const void *buffer, uint64_t len)
{
    return ernic_dma(opaque, dma, (void *)buffer, len, DMA_DIRECTION_FROM_DEVICE);
}

static bool ernic_dma_update(void *opaque, uint64_t dma, void (*change)(uint64_t *word, void *context), void *context)
{
    return false;   /* it has no atomic operations */
}

static void ernic_raise(void *opaque, unsigned vector)
{
    ErnicState *s = opaque;

    trace_ernic_interrupt(s->name, true);
    if (msi_enabled(PCI_DEVICE(s))) {
        msi_notify(PCI_DEVICE(s), 0);
    } else {
        s->asserted = true;
        pci_set_irq(PCI_DEVICE(s), 1);
    }
}

static void ernic_lower(void *opaque)
{
    ErnicState *s = opaque;

    if (s->asserted) {
        trace_ernic_interrupt(s->name, false);
        s->asserted = false;
        pci_set_irq(PCI_DEVICE(s), 0);
    }
}

static void ernic_set_timer(void *opaque, uint64_t deadline_ns)
{
    ErnicState *s = opaque;

    if (deadline_ns >= INT64_MAX) {
        timer_del(s->deadline);
    } else {
        timer_mod_ns(s->deadline, deadline_ns);
    }
}

static uint64_t ernic_now_ns(void *opaque)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

static uint64_t ernic_random(void *opaque)
{
    uint64_t value;

    qemu_guest_getrandom_nofail(&value, sizeof(value));
    return value;
}

static void ernic_schedule(void *opaque)
{
    ErnicState *s = opaque;

    if (!timer_pending(s->turn)) {
        timer_mod_ns(s->turn, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL));
    }
}

/* ------------------------------------------------------------------ */
/* Entries: the core is not called while it executes                   */

static void ernic_enter(ErnicState *s)
{
    s->busy = true;
}

static void ernic_flush_ethernet(ErnicState *s)
{
    if (s->ethernet_waiting && !s->tx_pending) {
        s->ethernet_waiting = false;
        qemu_flush_queued_packets(qemu_get_queue(s->ethernet));
    }
}

static void ernic_leave(ErnicState *s)
{
    s->busy = false;
    ernic_flush_ethernet(s);
    if (s->rx_waiting) {
        s->rx_waiting = false;
        qemu_flush_queued_packets(qemu_get_queue(s->nic));
    }
}

static void ernic_take_turn(void *opaque)
{
    ErnicState *s = opaque;

    ernic_enter(s);
    if (ernic_core_run(s->core)) {
        timer_mod_ns(s->turn, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) + ERNIC_REST_NS);
    }
    ernic_leave(s);
}

static void ernic_expire(void *opaque)
{
    ErnicState *s = opaque;

    ernic_enter(s);
    ernic_core_timer(s->core);
    ernic_leave(s);
}

static uint64_t ernic_read(void *opaque, hwaddr offset, unsigned size)
{
    ErnicState *s = opaque;
    uint32_t value = ernic_core_read(s->core, offset, size);

    trace_ernic_read(s->name, offset, value);
    return value;
}

static void ernic_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    ErnicState *s = opaque;

    trace_ernic_write(s->name, offset, value);
    ernic_enter(s);
    ernic_core_write(s->core, offset, value, size);
    ernic_leave(s);
}

/* The core counts accesses that do not fit a register. */
static const MemoryRegionOps ernic_register_ops = {
    .read = ernic_read,
    .write = ernic_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 1, .max_access_size = 8, .unaligned = true },
    .impl = { .min_access_size = 1, .max_access_size = 8, .unaligned = true },
};

/* ------------------------------------------------------------------ */
/* The port                                                            */

static bool ernic_net_can_receive(NetClientState *nc)
{
    ErnicState *s = qemu_get_nic_opaque(nc);

    s->rx_waiting |= s->busy;
    return !s->busy;
}

static ssize_t ernic_net_receive_iov(NetClientState *nc, const struct iovec *parts, int count)
{
    ErnicState *s = qemu_get_nic_opaque(nc);

    if (!ernic_net_can_receive(nc)) {
        return 0;
    }
    ernic_enter(s);
    ernic_core_receive(s->core, parts, count);
    s->busy = false;    /* the sender may be a netdev that cannot receive a frame within its call */
    if (s->ethernet_waiting) {
        ernic_schedule(s);
    }
    return iov_size(parts, count);
}

static ssize_t ernic_net_receive(NetClientState *nc, const uint8_t *frame, size_t size)
{
    struct iovec part = { .iov_base = (void *)frame, .iov_len = size };

    return ernic_net_receive_iov(nc, &part, 1);
}

static bool ernic_net_link_up(ErnicState *s)
{
    NetClientState *nc = qemu_get_queue(s->nic);

    return nc->peer && !nc->link_down;
}

static void ernic_net_link_changed(NetClientState *nc)
{
    ErnicState *s = qemu_get_nic_opaque(nc);

    if (!ernic_net_link_up(s)) {
        qemu_purge_queued_packets(nc);  /* no frame may wait for a link that is down */
    }
    ernic_enter(s);
    ernic_core_set_link(s->core, ernic_net_link_up(s));
    ernic_leave(s);
}

/* The net layer has forwarded or dropped the frame that it had queued. */
static void ernic_net_sent(NetClientState *nc, ssize_t size)
{
    ErnicState *s = qemu_get_nic_opaque(nc);

    s->tx_pending = false;
    /* Both sides send to the link: neither may keep the other one from it. */
    s->ethernet_first = !s->ethernet_first;
    if (s->ethernet_first) {
        ernic_flush_ethernet(s);
    }
    ernic_enter(s);
    ernic_core_link_ready(s->core);
    ernic_leave(s);
}

static bool ernic_send_frame(void *opaque, const struct iovec *parts, int count, bool device_icrc)
{
    ErnicState *s = opaque;

    if (s->tx_pending) {
        return false;
    }
    /* 0: the net layer has queued this frame. It does not accept another one. */
    s->tx_pending = !qemu_sendv_packet_async(qemu_get_queue(s->nic), parts, count, ernic_net_sent);
    return true;
}

/* ------------------------------------------------------------------ */
/* The side of the Ethernet adapter                                    */

/* Called by the net layer when the adapter has the frame, or when the frame is purged. */
static void ernic_ethernet_sent(NetClientState *nc, ssize_t size)
{
    ErnicState *s = qemu_get_nic_opaque(nc);

    s->ethernet_queued--;
}

static bool ernic_pass_frame(void *opaque, const struct iovec *parts, int count)
{
    ErnicState *s = opaque;

    if (s->ethernet_queued >= ERNIC_ETHERNET_QUEUE) {
        return false;
    }
    /* 0: the adapter takes nothing now, and the net layer has queued the frame. */
    s->ethernet_queued += !qemu_sendv_packet_async(qemu_get_queue(s->ethernet), parts, count, ernic_ethernet_sent);
    return true;
}

static bool ernic_ethernet_can_receive(NetClientState *nc)
{
    ErnicState *s = qemu_get_nic_opaque(nc);
    bool can = !s->busy && !s->tx_pending;

    s->ethernet_waiting |= !can;
    return can;
}

static ssize_t ernic_ethernet_receive_iov(NetClientState *nc, const struct iovec *parts, int count)
{
    ErnicState *s = qemu_get_nic_opaque(nc);
    bool sent;

    if (!ernic_ethernet_can_receive(nc)) {
        return 0;
    }
    ernic_enter(s);
    sent = ernic_core_forward(s->core, parts, count);
    s->busy = false;    /* as for frames from the link */
    if (s->rx_waiting) {
        ernic_schedule(s);
    }
    s->ethernet_waiting |= !sent;
    return sent ? iov_size(parts, count) : 0;
}

static ssize_t ernic_ethernet_receive(NetClientState *nc, const uint8_t *frame, size_t size)
{
    struct iovec part = { .iov_base = (void *)frame, .iov_len = size };

    return ernic_ethernet_receive_iov(nc, &part, 1);
}

static void ernic_ethernet_link_changed(NetClientState *nc)
{
    if (nc->link_down) {
        qemu_purge_queued_packets(nc);
    }
}

static NetClientInfo ernic_ethernet_info = {
    .type = NET_CLIENT_DRIVER_NIC,
    .size = sizeof(NICState),
    .can_receive = ernic_ethernet_can_receive,
    .receive = ernic_ethernet_receive,
    .receive_iov = ernic_ethernet_receive_iov,
    .link_status_changed = ernic_ethernet_link_changed,
};

static NetClientInfo ernic_net_info = {
    .type = NET_CLIENT_DRIVER_NIC,
    .size = sizeof(NICState),
    .can_receive = ernic_net_can_receive,
    .receive = ernic_net_receive,
    .receive_iov = ernic_net_receive_iov,
    .link_status_changed = ernic_net_link_changed,
};

static const struct hghca_host_ops ernic_ops = {
    .map = ernic_map,
    .dirty = ernic_dirty,
    .read = ernic_dma_read,
    .write = ernic_dma_write,
    .update = ernic_dma_update,
    .raise_vector = ernic_raise,
    .lower_interrupt = ernic_lower,
    .send_frame = ernic_send_frame,
    .set_timer = ernic_set_timer,
    .now_ns = ernic_now_ns,
    .random = ernic_random,
    .schedule = ernic_schedule,
};

/* ------------------------------------------------------------------ */
/* PCI                                                                 */

static void ernic_write_config(PCIDevice *pci, uint32_t address, uint32_t value, int len)
{
    pci_default_write_config(pci, address, value, len);
    pcie_cap_flr_write_config(pci, address, value, len);
}

/* False: the properties do not fit each other. */
static bool ernic_configure(ErnicState *s, struct ernic_config *config, Error **errp)
{
    const char *personality = s->personality ? s->personality : "ernic";
    uint32_t most;

    config->etrnic = !strcmp(personality, "etrnic");
    if (!config->etrnic && strcmp(personality, "ernic")) {
        error_setg(errp, "property 'personality' must be ernic or etrnic, not '%s'", personality);
        return false;
    }
    most = config->etrnic ? ERNIC_QPS_ETRNIC : ERNIC_QPS_ERNIC;
    config->qps = s->qps ? s->qps : most;
    if (config->qps < ERNIC_QPS_MIN || config->qps > most) {
        error_setg(errp, "property 'qps' must be %u to %" PRIu32 " for personality %s, not %" PRIu32, ERNIC_QPS_MIN,
                   most, personality, s->qps);
        return false;
    }
    if (s->extensions & ~ERNIC_EXT_ALL) {
        error_setg(errp, "property 'extensions' must be at most 0x%x, not 0x%" PRIx32, ERNIC_EXT_ALL, s->extensions);
        return false;
    }
    if (s->clock_mhz < ERNIC_CLOCK_MHZ_MIN || s->clock_mhz > ERNIC_CLOCK_MHZ_MAX) {
        error_setg(errp, "property 'clock-mhz' must be %u to %u, not %" PRIu32, ERNIC_CLOCK_MHZ_MIN,
                   ERNIC_CLOCK_MHZ_MAX, s->clock_mhz);
        return false;
    }
    config->extensions = s->extensions;
    config->strict = s->strict;
    config->clock_mhz = s->clock_mhz;
    config->roce_drain_mbps = s->roce_drain_mbps;
    config->other_drain_mbps = s->other_drain_mbps;
    config->pass_frame = s->ethernet_conf.peers.ncs[0] ? ernic_pass_frame : NULL;
    return true;
}

/* The EUI-64 of a MAC address, which the Device Serial Number capability has: no register gives the address. */
static uint64_t ernic_serial_number(const MACAddr *mac)
{
    const uint8_t *a = mac->a;
    const uint8_t eui[8] = { a[0], a[1], a[2], 0xff, 0xfe, a[3], a[4], a[5] };

    return ldq_be_p(eui);
}

static void ernic_realize(PCIDevice *pci, Error **errp)
{
    ErnicState *s = ERNIC(pci);
    DeviceState *dev = DEVICE(pci);
    struct ernic_config config = { 0 };

    if (!ernic_configure(s, &config, errp)) {
        return;
    }
    if (pcie_endpoint_cap_init(pci, 0) < 0) {
        error_setg(errp, "there is no room for the PCI Express capability");
        return;
    }
    if (msi_init(pci, 0, 1, true, false, errp) < 0) {
        return;
    }
    pcie_cap_deverr_init(pci);
    pcie_cap_flr_init(pci);
    qemu_macaddr_default_if_unset(&s->nic_conf.macaddr);
    pcie_dev_ser_num_init(pci, PCI_CONFIG_SPACE_SIZE, ernic_serial_number(&s->nic_conf.macaddr));
    g_free(s->name);
    s->name = dev->id ? g_strdup(dev->id)
                      : g_strdup_printf("ernic@%02x.%x", PCI_SLOT(pci->devfn), PCI_FUNC(pci->devfn));
    s->turn = timer_new_ns(QEMU_CLOCK_VIRTUAL, ernic_take_turn, s);
    s->deadline = timer_new_ns(QEMU_CLOCK_VIRTUAL, ernic_expire, s);
    s->core = ernic_core_new(&ernic_ops, s, &config);
    if (!s->core) {
        error_setg(errp, "out of memory for the device core");
        return;
    }
    pci_config_set_interrupt_pin(pci->config, 1);
    memory_region_init_io(&s->registers, OBJECT(s), &ernic_register_ops, s, "ernic-registers",
                          config.etrnic ? ERNIC_APERTURE_ETRNIC : ERNIC_APERTURE_ERNIC);
    pci_register_bar(pci, ERNIC_BAR, PCI_BASE_ADDRESS_SPACE_MEMORY, &s->registers);
    s->nic = qemu_new_nic(&ernic_net_info, &s->nic_conf, object_get_typename(OBJECT(s)), dev->id,
                          &dev->mem_reentrancy_guard, s);
    qemu_format_nic_info_str(qemu_get_queue(s->nic), s->nic_conf.macaddr.a);
    if (config.pass_frame) {
        g_autofree char *name = g_strdup_printf("%s.ethernet", qemu_get_queue(s->nic)->name);

        s->ethernet_conf.macaddr = s->nic_conf.macaddr;
        s->ethernet = qemu_new_nic(&ernic_ethernet_info, &s->ethernet_conf, object_get_typename(OBJECT(s)), name,
                                   &dev->mem_reentrancy_guard, s);
        qemu_format_nic_info_str(qemu_get_queue(s->ethernet), s->ethernet_conf.macaddr.a);
    }
    ernic_core_set_link(s->core, ernic_net_link_up(s));
}

static void ernic_exit(PCIDevice *pci)
{
    ErnicState *s = ERNIC(pci);

    /* Otherwise the net layer would keep a frame of this device after the device is freed. */
    qemu_purge_queued_packets(qemu_get_queue(s->nic));
    if (s->ethernet) {
        qemu_purge_queued_packets(qemu_get_queue(s->ethernet));
        qemu_del_nic(s->ethernet);
    }
    qemu_del_nic(s->nic);
    timer_free(s->deadline);
    timer_free(s->turn);
    ernic_core_free(s->core);
    s->core = NULL;
    msi_uninit(pci);
    pcie_cap_exit(pci);
}

static void ernic_finalize(Object *object)
{
    g_free(ERNIC(object)->name);
}

static void ernic_reset_hold(Object *object, ResetType type)
{
    ErnicState *s = ERNIC(object);

    pcie_cap_deverr_reset(PCI_DEVICE(object));
    timer_del(s->turn);
    ernic_core_reset(s->core);
    ernic_core_set_link(s->core, ernic_net_link_up(s));
}

/* ------------------------------------------------------------------ */
/* The type                                                            */

/* Returns all counters of the core as one object of names and numbers. */
static void ernic_get_stats(Object *object, Visitor *v, const char *name, void *opaque, Error **errp)
{
    ErnicState *s = ERNIC(object);
    bool ok = true;

    if (!visit_start_struct(v, name, NULL, 0, errp)) {
        return;
    }
    for (unsigned i = 0; ok && i < ernic_core_counters(); i++) {
        uint64_t value = s->core ? ernic_core_counter(s->core, i) : 0;

        ok = visit_type_uint64(v, ernic_core_counter_name(i), &value, errp);
    }
    if (ok) {
        visit_check_struct(v, errp);
    }
    visit_end_struct(v, NULL);
}

static const Property ernic_properties[] = {
    DEFINE_NIC_PROPERTIES(ErnicState, nic_conf),
    DEFINE_PROP_NETDEV("ethernet", ErnicState, ethernet_conf.peers),
    DEFINE_PROP_STRING("personality", ErnicState, personality),
    DEFINE_PROP_UINT32("qps", ErnicState, qps, 0),
    DEFINE_PROP_UINT32("extensions", ErnicState, extensions, ERNIC_EXT_ALL),
    DEFINE_PROP_BOOL("strict", ErnicState, strict, false),
    DEFINE_PROP_UINT32("clock-mhz", ErnicState, clock_mhz, 200),
    DEFINE_PROP_UINT32("roce-drain", ErnicState, roce_drain_mbps, 0),
    DEFINE_PROP_UINT32("other-drain", ErnicState, other_drain_mbps, 0),
};

static const VMStateDescription ernic_vmstate = {
    .name = "ernic",
    .unmigratable = 1,
};

static void ernic_class_init(ObjectClass *class, const void *data)
{
    DeviceClass *dc = DEVICE_CLASS(class);
    PCIDeviceClass *pc = PCI_DEVICE_CLASS(class);
    ResettableClass *rc = RESETTABLE_CLASS(class);

    pc->vendor_id = ERNIC_PCI_VENDOR_ID;
    pc->device_id = ERNIC_PCI_DEVICE_ID;
    pc->class_id = ERNIC_PCI_CLASS >> 8;
    pc->realize = ernic_realize;
    pc->exit = ernic_exit;
    pc->config_write = ernic_write_config;
    rc->phases.hold = ernic_reset_hold;
    dc->desc = "Embedded RDMA NIC (ERNIC, ETRNIC)";
    dc->vmsd = &ernic_vmstate;
    device_class_set_props(dc, ernic_properties);
    set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);

    object_class_property_set_description(class, "ethernet",
        "ID of the netdev that the Ethernet adapter of the same MAC address is behind; it has all frames but RoCE v2");
    object_class_property_set_description(class, "personality",
        "ernic: 256 KB of registers, 255 QPs; etrnic: 64 KB, 128 QPs, incoming SEND alone");
    object_class_property_set_description(class, "qps", "Number of QPs with QP 1");
    object_class_property_set_description(class, "extensions",
        "Extensions that software can enable, as a mask; 0: the device of the documents alone");
    object_class_property_set_description(class, "clock-mhz",
        "Clock in MHz that the base count of time-outs counts");
    object_class_property_set_description(class, "strict",
        "The public limits of the real core hold: 8 MB, and 64 bytes for addresses and lengths of a peer");
    object_class_property_set_description(class, "roce-drain",
        "Rate at which the device takes packets of RoCE v2, in Mbit/s; 0: at once");
    object_class_property_set_description(class, "other-drain",
        "Rate at which frames for the Ethernet adapter pass, in Mbit/s; 0: at once");
    object_class_property_add(class, "stats", "ErnicStats", ernic_get_stats, NULL, NULL, NULL);
    object_class_property_set_description(class, "stats", "Counters of the device since its start");
}

static const TypeInfo ernic_info = {
    .name = TYPE_ERNIC,
    .parent = TYPE_PCI_DEVICE,
    .instance_size = sizeof(ErnicState),
    .instance_finalize = ernic_finalize,
    .class_init = HGHCA_CLASS_INIT(ernic_class_init),
    .interfaces = (InterfaceInfo[]) {
        { INTERFACE_PCIE_DEVICE },
        { }
    },
};

static void ernic_register_types(void)
{
    type_register_static(&ernic_info);
}

type_init(ernic_register_types)
