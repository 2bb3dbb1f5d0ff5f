/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The JingZhao HCA: PCI function, registers, properties and statistics.
 *
 *   -device hghca[,netdev=ID][,mac=MAC][,profile=full|base|rsnic][,cache-entries=N][,slice=N][,bql-hook=BOOL][,node-guid=N]
 *                [,device-memory=SIZE][,fail-command=N][,faults=RULES][,fault-seed=N]
 *                [,roce-drain=MBPS][,roce-buffer=SIZE][,other-drain=MBPS][,other-buffer=SIZE]
 *                [,verify=all|remote][,pcap=FILE][,pcap-snaplen=N][,pcap-size=SIZE][,link=shm:PATH]
 *
 * docs/reference/hardware-interface.rst of the project describes the device.
 */

#include "qemu/osdep.h"
#include "hw/pci/msix.h"
#include "hw/pci/pcie.h"
#include "migration/vmstate.h"
#include "net/eth.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "qemu/guest-random.h"
#include "qemu/log.h"
#include "qemu/module.h"
#include "qemu/units.h"
#include "hghca_hw.h"
#include "hghca_shim.h"
#include "trace.h"

#define HGHCA_BAR_MSIX_SIZE     (8 * KiB)
#define HGHCA_MSIX_TABLE        0
#define HGHCA_MSIX_PBA          (4 * KiB)
#define HGHCA_QPS_SHOWN         64
#define HGHCA_SLICE_DEFAULT     32
#define HGHCA_SLICE_MAX         65536
#define HGHCA_MEMORY_DEFAULT    (1 * MiB)
#define HGHCA_MODERATION_SCALE_TCG 32
#define HGHCA_BUFFER_DEFAULT    (512 * KiB)
#define HGHCA_BUFFER_MIN        (16 * KiB)
#define HGHCA_BUFFER_MAX        (64 * MiB)
#define HGHCA_MEMORY_MIN        (4 * KiB)
/* The values of the property 'profile'. */
static const char *const hghca_profiles[] = {
    [HGHCA_PROFILE_FULL] = "full",
    [HGHCA_PROFILE_BASE] = "base",
    [HGHCA_PROFILE_RSNIC] = "rsnic",
};

/* ------------------------------------------------------------------ */
/* Functions that the core calls (host.h)                              */

static void hghca_raise_vector(void *opaque, unsigned vector)
{
    HghcaState *s = opaque;

    if (vector < HGHCA_VECTORS) {
        s->vectors_due |= BIT_ULL(vector);
    }
}

static void hghca_lower_interrupt(void *opaque)
{
    HghcaState *s = opaque;

    if (s->intx) {
        pci_set_irq(PCI_DEVICE(s), 0);
    }
}

static void hghca_set_timer(void *opaque, uint64_t deadline_ns)
{
    HghcaState *s = opaque;

    if (s->closing) {
        return;
    }
    if (deadline_ns == UINT64_MAX) {
        timer_del(s->timer);
    } else {
        timer_mod_ns(s->timer, MIN(deadline_ns, INT64_MAX));
    }
}

static void hghca_timer_fired(void *opaque)
{
    HghcaState *s = opaque;

    if (hghca_enter(s)) {
        hghca_core_timer(s->core);
        hghca_leave(s);
    }
}

static uint64_t hghca_random(void *opaque)
{
    uint64_t value;

    qemu_guest_getrandom_nofail(&value, sizeof(value));
    return value;
}

static bool hghca_tracing(void *opaque)
{
    return trace_event_get_state_backends(TRACE_HGHCA_SUCCESS) ||
           trace_event_get_state_backends(TRACE_HGHCA_ERR) ||
           trace_event_get_state_backends(TRACE_HGHCA_UB) ||
           qemu_loglevel_mask(LOG_GUEST_ERROR);
}

static void hghca_trace(void *opaque, enum hghca_trace_level level, const char *text)
{
    HghcaState *s = opaque;

    switch (level) {
    case HGHCA_TRACE_SUCCESS:
        trace_hghca_success(s->name, text);
        break;
    case HGHCA_TRACE_ERROR:
        trace_hghca_err(s->name, text);
        break;
    case HGHCA_TRACE_UNDEFINED:
        trace_hghca_ub(s->name, text);
        qemu_log_mask(LOG_GUEST_ERROR, "%s: %s\n", s->name, text);
        break;
    }
}

static const struct hghca_host_ops hghca_host_ops = {
    .map = hghca_dma_map,
    .dirty = hghca_dma_dirty,
    .read = hghca_dma_read,
    .write = hghca_dma_write,
    .update = hghca_dma_update,
    .raise_vector = hghca_raise_vector,
    .lower_interrupt = hghca_lower_interrupt,
    .send_frame = hghca_net_send,
    .set_timer = hghca_set_timer,
    .now_ns = hghca_entry_time_ns,
    .random = hghca_random,
    .schedule = hghca_poke,
    .tracing = hghca_tracing,
    .trace = hghca_trace,
};

/* ------------------------------------------------------------------ */
/* BARs: accesses of every width reach the core, which decides on them */

/*
 * A read returns all ones while the core is busy or the device is closing. No test
 * reaches this: QEMU refuses a reentrant access to a device, DMA of the core accesses
 * only RAM, and the regions are removed before the device closes. Two cases remain:
 * a virtual CPU that has looked up a region waits for the BQL, or another device
 * reads registers while the timer has entered the core.
 */
static uint64_t hghca_hcr_read(void *opaque, hwaddr offset, unsigned size)
{
    HghcaState *s = opaque;
    uint64_t value = UINT64_MAX;    /* as from a PCI device that is gone */

    if (!s->busy && !s->closing) {
        value = hghca_core_hcr_read(s->core, offset, size);
    }
    trace_hghca_hcr_read(s->name, offset, size, value);
    return value;
}

static void hghca_hcr_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    HghcaState *s = opaque;

    trace_hghca_hcr_write(s->name, offset, size, value);
    if (hghca_enter(s)) {
        if (hghca_core_hcr_write(s->core, offset, value, size)) {
            hghca_forget_interrupts(s);     /* as in hghca_reset_core() */
        }
        hghca_leave(s);
    }
}

static uint64_t hghca_uar_read(void *opaque, hwaddr offset, unsigned size)
{
    HghcaState *s = opaque;
    uint64_t value = UINT64_MAX;

    if (!s->busy && !s->closing) {
        value = hghca_core_uar_read(s->core, offset, size);
    }
    trace_hghca_uar_read(s->name, offset / HGHCA_UAR_PAGE_SIZE,
                         offset % HGHCA_UAR_PAGE_SIZE, size, value);
    return value;
}

static void hghca_uar_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    HghcaState *s = opaque;

    trace_hghca_uar_write(s->name, offset / HGHCA_UAR_PAGE_SIZE,
                          offset % HGHCA_UAR_PAGE_SIZE, size, value);
    if (hghca_enter(s)) {
        hghca_core_uar_write(s->core, offset, value, size);
        hghca_leave_doorbell(s);
    }
}

static const MemoryRegionOps hghca_hcr_ops = {
    .read = hghca_hcr_read,
    .write = hghca_hcr_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 1, .max_access_size = 8, .unaligned = true },
    .impl = { .min_access_size = 1, .max_access_size = 8, .unaligned = true },
};

static const MemoryRegionOps hghca_uar_ops = {
    .read = hghca_uar_read,
    .write = hghca_uar_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 1, .max_access_size = 8, .unaligned = true },
    .impl = { .min_access_size = 1, .max_access_size = 8, .unaligned = true },
};

/* ------------------------------------------------------------------ */
/* PCI                                                                 */

static void hghca_write_config(PCIDevice *pci, uint32_t address, uint32_t value, int len)
{
    pci_default_write_config(pci, address, value, len);
    pcie_cap_flr_write_config(pci, address, value, len);
}

static bool hghca_init_capabilities(PCIDevice *pci, Error **errp)
{
    int pm = pci_pm_init(pci, 0, errp);

    if (pm < 0) {
        return false;
    }
    pci_set_word(pci->config + pm + PCI_PM_PMC, 3);     /* PCI PM 1.2: D0 and D3hot */
    pci_set_word(pci->config + pm + PCI_PM_CTRL, PCI_PM_CTRL_NO_SOFT_RESET);
    pci_set_word(pci->wmask + pm + PCI_PM_CTRL, PCI_PM_CTRL_STATE_MASK);

    if (pcie_endpoint_cap_init(pci, 0) < 0) {
        error_setg(errp, "there is no room for the PCI Express capability");
        return false;
    }
    pcie_cap_fill_link_ep_usp(pci, QEMU_PCI_EXP_LNK_X16, QEMU_PCI_EXP_LNK_16GT);
    pcie_cap_deverr_init(pci);
    pcie_cap_flr_init(pci);
    return true;
}

static bool hghca_init_msix(HghcaState *s, Error **errp)
{
    PCIDevice *pci = PCI_DEVICE(s);

    memory_region_init(&s->msix, OBJECT(s), "hghca-msix", HGHCA_BAR_MSIX_SIZE);
    if (msix_init(pci, HGHCA_VECTORS, &s->msix, HGHCA_BAR_MSIX, HGHCA_MSIX_TABLE,
                  &s->msix, HGHCA_BAR_MSIX, HGHCA_MSIX_PBA, 0, errp) < 0) {
        return false;
    }
    for (unsigned i = 0; i < HGHCA_VECTORS; i++) {
        msix_vector_use(pci, i);
    }
    return true;
}

/* The profile, or -1 if no profile has that name. */
static int hghca_profile(const HghcaState *s)
{
    for (int i = 0; s->profile && i < ARRAY_SIZE(hghca_profiles); i++) {
        if (!strcmp(s->profile, hghca_profiles[i])) {
            return i;
        }
    }
    return s->profile ? -1 : HGHCA_PROFILE_FULL;
}

static bool hghca_init_memory(HghcaState *s, Error **errp)
{
    return !s->memory_bytes ||
           memory_region_init_ram(&s->memory, OBJECT(s), "hghca-memory", s->memory_bytes, errp);
}

static void hghca_init_bars(HghcaState *s)
{
    PCIDevice *pci = PCI_DEVICE(s);
    uint8_t type = PCI_BASE_ADDRESS_SPACE_MEMORY | PCI_BASE_ADDRESS_MEM_TYPE_64;

    memory_region_init_io(&s->hcr, OBJECT(s), &hghca_hcr_ops, s, "hghca-hcr",
                          HGHCA_BAR_HCR_SIZE);
    memory_region_init_io(&s->uar, OBJECT(s), &hghca_uar_ops, s, "hghca-uar",
                          HGHCA_BAR_UAR_SIZE);
    memory_region_init(&s->bar2, OBJECT(s), "hghca-bar2",
                       s->memory_bytes ? HGHCA_BAR2_SIZE : HGHCA_BAR_UAR_SIZE);
    memory_region_add_subregion(&s->bar2, 0, &s->uar);
    if (s->memory_bytes) {
        memory_region_add_subregion(&s->bar2, HGHCA_DEVICE_MEMORY_OFFSET, &s->memory);
    }
    pci_register_bar(pci, HGHCA_BAR_HCR, type, &s->hcr);
    pci_register_bar(pci, HGHCA_BAR_UAR, type, &s->bar2);
    pci_register_bar(pci, HGHCA_BAR_MSIX, type, &s->msix);
}

static bool hghca_check_buffer(uint64_t bytes, const char *name, Error **errp)
{
    if (bytes < HGHCA_BUFFER_MIN || bytes > HGHCA_BUFFER_MAX) {
        error_setg(errp, "property '%s' must be from 16 KiB to 64 MiB, not %" PRIu64 " bytes",
                   name, bytes);
        return false;
    }
    return true;
}

static bool hghca_check_properties(HghcaState *s, Error **errp)
{
    if (hghca_profile(s) < 0) {
        error_setg(errp, "property 'profile' must be 'full', 'base' or 'rsnic', not '%s'", s->profile);
        return false;
    }
    if (!s->slice_work || s->slice_work > HGHCA_SLICE_MAX) {
        error_setg(errp, "property 'slice' must be from 1 to %d, not %" PRIu32, HGHCA_SLICE_MAX,
                   s->slice_work);
        return false;
    }
    if (s->memory_bytes && (!is_power_of_2(s->memory_bytes) || s->memory_bytes < HGHCA_MEMORY_MIN ||
                            s->memory_bytes > HGHCA_DEVICE_MEMORY_MAX)) {
        error_setg(errp, "property 'device-memory' must be 0 or a power of two from 4 KiB to 8 MiB,"
                   " not %" PRIu64 " bytes", s->memory_bytes);
        return false;
    }
    if (!hghca_check_buffer(s->roce_buffer_bytes, "roce-buffer", errp) ||
        !hghca_check_buffer(s->other_buffer_bytes, "other-buffer", errp)) {
        return false;
    }
    if (!hghca_link_check(s, errp)) {
        return false;
    }
    if (is_multicast_ether_addr(s->nic_conf.macaddr.a)) {
        error_setg(errp, "property 'mac' must be a unicast address");
        return false;
    }
    return true;
}

/*
 * Tables of moderation, as the kernel's, are made for computers. A CPU that TCG emulates takes
 * some 30 times as long for a completion.
 */
static uint8_t hghca_moderation_scale(const HghcaState *s)
{
    if (s->moderation_scale) {
        return s->moderation_scale;
    }
    return tcg_enabled() ? HGHCA_MODERATION_SCALE_TCG : 1;
}

static bool hghca_new_core(HghcaState *s, Error **errp)
{
    struct hghca_config config = {
        .profile = hghca_profile(s),
        .init_delay_ns = s->init_delay_ms * SCALE_MS,
        .node_guid = s->node_guid,
        .cache_entries = s->cache_entries,
        .slice_work = s->slice_work,
        .moderation_scale = hghca_moderation_scale(s),
        .roce_buffer = { s->roce_drain_mbps, s->roce_buffer_bytes },
        .other_buffer = { s->other_drain_mbps, s->other_buffer_bytes },
        .device_memory = s->memory_bytes ? memory_region_get_ram_ptr(&s->memory) : NULL,
        .device_memory_bytes = s->memory_bytes,
    };

    memcpy(config.mac, s->nic_conf.macaddr.a, sizeof(config.mac));
    s->core = hghca_core_new(&hghca_host_ops, s, &config);
    if (!s->core) {
        error_setg(errp, "out of memory for the device core");
        return false;
    }
    hghca_core_fail_command(s->core, s->fail_command);
    hghca_core_set_capabilities(s->core, ~s->no_capabilities);
    if (!hghca_faults_open(s, errp)) {
        hghca_core_free(s->core);
        s->core = NULL;
        return false;
    }
    return true;
}

static void hghca_realize(PCIDevice *pci, Error **errp)
{
    HghcaState *s = HGHCA(pci);
    DeviceState *dev = DEVICE(pci);

    g_free(s->name);
    s->name = dev->id ? g_strdup(dev->id)
                      : g_strdup_printf("hghca@%02x.%x", PCI_SLOT(pci->devfn),
                                        PCI_FUNC(pci->devfn));
    if (!hghca_check_properties(s, errp)) {
        return;
    }
    if (hghca_profile(s) != HGHCA_PROFILE_FULL) {
        s->memory_bytes = 0;
    }
    if (hghca_profile(s) == HGHCA_PROFILE_BASE) {
        pci_config_set_revision(pci->config, 0);
    }
    s->intx = hghca_profile(s) == HGHCA_PROFILE_RSNIC;
    if (s->intx) {
        pci_config_set_interrupt_pin(pci->config, 1);
        pci_set_word(pci->config + PCI_SUBSYSTEM_ID, HGHCA_PCI_SUBSYSTEM_ID_RSNIC);
    }
    if (!hghca_init_memory(s, errp) ||
        !hghca_capture_open(s, errp) || !hghca_init_capabilities(pci, errp) ||
        !hghca_init_msix(s, errp)) {
        return;
    }
    qemu_macaddr_default_if_unset(&s->nic_conf.macaddr);
    s->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, hghca_timer_fired, s);
    if (!hghca_new_core(s, errp) || !hghca_link_open(s, errp)) {
        hghca_core_free(s->core);
        s->core = NULL;
        timer_free(s->timer);
        msix_uninit(pci, &s->msix, &s->msix);
        return;
    }
    hghca_init_bars(s);
    if (s->bql_hook) {
        hghca_bql_open();
    }
    hghca_entry_open(s);
    hghca_net_open(s);
    hghca_dma_open(s);
}

static void hghca_exit(PCIDevice *pci)
{
    HghcaState *s = HGHCA(pci);

    hghca_entry_close(s);
    hghca_dma_close(s);
    hghca_net_close(s);
    hghca_link_close(s);
    hghca_capture_close(s);
    timer_free(s->timer);
    s->timer = NULL;
    msix_uninit(pci, &s->msix, &s->msix);
    pcie_cap_exit(pci);
    hghca_end(s);
}

static void hghca_finalize(Object *object)
{
    HghcaState *s = HGHCA(object);

    hghca_capture_close(s);
    g_free(s->name);
    g_free(s->faults);
}

static void hghca_reset_hold(Object *object, ResetType type)
{
    pcie_cap_deverr_reset(PCI_DEVICE(object));
    hghca_reset(HGHCA(object));
}

/* ------------------------------------------------------------------ */
/* The type                                                            */

/* Returns all counters of the core as one object of names and numbers. */
static void hghca_get_stats(Object *object, Visitor *v, const char *name, void *opaque,
                            Error **errp)
{
    HghcaState *s = HGHCA(object);
    bool ok = true;

    if (!visit_start_struct(v, name, NULL, 0, errp)) {
        return;
    }
    for (unsigned i = 0; ok && i < hghca_core_counters(); i++) {
        uint64_t value = s->core ? hghca_core_counter(s->core, i) : 0;

        ok = visit_type_uint64(v, hghca_core_counter_name(i), &value, errp);
    }
    if (ok) {
        visit_check_struct(v, errp);
    }
    visit_end_struct(v, NULL);
}

static bool hghca_visit_error(Visitor *v, const struct hghca_core_error *e, Error **errp)
{
    g_autoptr(GString) header = g_string_new(NULL);
    uint64_t time_ns = e->time_ns, length = e->frame_bytes, qpn = e->qpn;
    char *why = (char *)e->why;
    bool ok;

    for (size_t i = 0; i < e->header_bytes; i++) {
        g_string_append_printf(header, "%02x", e->header[i]);
    }
    if (!visit_start_struct(v, NULL, NULL, 0, errp)) {
        return false;
    }
    ok = visit_type_str(v, "why", &why, errp) &&
         visit_type_uint64(v, "time", &time_ns, errp) &&
         visit_type_uint64(v, "length", &length, errp) &&
         visit_type_uint64(v, "qpn", &qpn, errp) &&
         visit_type_str(v, "header", &header->str, errp) &&
         visit_check_struct(v, errp);
    visit_end_struct(v, NULL);
    return ok;
}

/* Returns the packets that the core dropped last, the oldest first. */
static void hghca_get_errors(Object *object, Visitor *v, const char *name, void *opaque,
                             Error **errp)
{
    HghcaState *s = HGHCA(object);
    uint64_t next = s->core ? hghca_core_next_error(s->core) : 0;
    struct hghca_core_error error;
    bool ok = true;

    if (!visit_start_list(v, name, NULL, 0, errp)) {
        return;
    }
    for (uint64_t n = s->core ? hghca_core_first_error(s->core) : 0; ok && n < next; n++) {
        if (hghca_core_get_error(s->core, n, &error)) {
            ok = hghca_visit_error(v, &error, errp);
        }
    }
    if (ok) {
        visit_check_list(v, errp);
    }
    visit_end_list(v, NULL);
}

static bool hghca_visit_qp(Visitor *v, const struct hghca_core_qp *qp, Error **errp)
{
    uint64_t qpn = qp->qpn, peer = qp->peer, sent = qp->sent, received = qp->received;
    uint64_t outstanding = qp->outstanding;
    char *service = (char *)qp->service, *state = (char *)qp->state;
    bool ok;

    if (!visit_start_struct(v, NULL, NULL, 0, errp)) {
        return false;
    }
    ok = visit_type_uint64(v, "qpn", &qpn, errp) &&
         visit_type_str(v, "service", &service, errp) &&
         visit_type_str(v, "state", &state, errp) &&
         visit_type_uint64(v, "peer", &peer, errp) &&
         visit_type_uint64(v, "sent", &sent, errp) &&
         visit_type_uint64(v, "received", &received, errp) &&
         visit_type_uint64(v, "outstanding", &outstanding, errp) &&
         visit_check_struct(v, errp);
    visit_end_struct(v, NULL);
    return ok;
}

/* Returns the QPs that the core used last, the last first. */
static void hghca_get_qps(Object *object, Visitor *v, const char *name, void *opaque,
                          Error **errp)
{
    HghcaState *s = HGHCA(object);
    struct hghca_core_qp qps[HGHCA_QPS_SHOWN];
    size_t count = s->core ? hghca_core_recent_qps(s->core, qps, HGHCA_QPS_SHOWN) : 0;
    bool ok = true;

    if (!visit_start_list(v, name, NULL, 0, errp)) {
        return;
    }
    for (size_t i = 0; ok && i < count; i++) {
        ok = hghca_visit_qp(v, &qps[i], errp);
    }
    if (ok) {
        visit_check_list(v, errp);
    }
    visit_end_list(v, NULL);
}

static void hghca_get_interrupts(Object *object, Visitor *v, const char *name, void *opaque,
                                 Error **errp)
{
    HghcaState *s = HGHCA(object);

    visit_type_uint64(v, name, &s->interrupts, errp);
}

static void hghca_get_fail_command(Object *object, Visitor *v, const char *name, void *opaque,
                                   Error **errp)
{
    HghcaState *s = HGHCA(object);
    uint64_t nth = s->core ? hghca_core_until_fault(s->core) : s->fail_command;

    visit_type_uint64(v, name, &nth, errp);
}

/* Before the core exists, the shim keeps the number for it. */
static void hghca_set_fail_command(Object *object, Visitor *v, const char *name, void *opaque,
                                   Error **errp)
{
    HghcaState *s = HGHCA(object);

    if (visit_type_uint64(v, name, &s->fail_command, errp) && s->core) {
        hghca_core_fail_command(s->core, s->fail_command);
    }
}

static void hghca_get_capabilities(Object *object, Visitor *v, const char *name, void *opaque,
                                   Error **errp)
{
    HghcaState *s = HGHCA(object);
    uint32_t mask = s->core ? hghca_core_capabilities(s->core) : ~s->no_capabilities;

    visit_type_uint32(v, name, &mask, errp);
}

static void hghca_set_capabilities(Object *object, Visitor *v, const char *name, void *opaque,
                                   Error **errp)
{
    HghcaState *s = HGHCA(object);
    uint32_t mask;

    if (!visit_type_uint32(v, name, &mask, errp)) {
        return;
    }
    s->no_capabilities = ~mask;
    if (s->core) {
        hghca_core_set_capabilities(s->core, mask);
    }
}

static char *hghca_get_fail(Object *object, Error **errp)
{
    HghcaState *s = HGHCA(object);

    return g_strdup(s->core && hghca_core_failed(s->core) ? "failed" : "ok");
}

/* Names of failures, and the syndrome that RSNIC reports of each. */
static const struct {
    const char *name;
    unsigned syndrome;
} hghca_failures[] = {
    { "now", HGHCA_HEALTH_HW_FATAL_ERR },
#define HGHCA_FAILURE(name, value) { #name, value },
    HGHCA_HEALTH_SYNDROMES(HGHCA_FAILURE)
#undef HGHCA_FAILURE
};

/* The syndrome of a failure; HGHCA_HEALTH_NONE: no failure has that name. */
static unsigned hghca_failure(const char *name)
{
    for (unsigned i = 0; i < ARRAY_SIZE(hghca_failures); i++) {
        if (!strcmp(name, hghca_failures[i].name)) {
            return hghca_failures[i].syndrome;
        }
    }
    return HGHCA_HEALTH_NONE;
}

static void hghca_set_fail(Object *object, const char *value, Error **errp)
{
    HghcaState *s = HGHCA(object);
    unsigned syndrome = hghca_failure(value);

    if (!syndrome) {
        error_setg(errp, "property 'fail' must be 'now' or the name of a health syndrome, not '%s'", value);
    } else if (!s->core || !hghca_enter(s)) {
        error_setg(errp, "the device cannot fail now: it is not realized, closing or busy");
    } else {
        hghca_core_fail(s->core, "a failure was asked for", syndrome);
        hghca_leave(s);
    }
}

static char *hghca_get_verify(Object *object, Error **errp)
{
    return g_strdup(HGHCA(object)->verify_remote ? "remote" : "all");
}

static void hghca_set_verify(Object *object, const char *value, Error **errp)
{
    bool remote = !strcmp(value, "remote");

    if (!remote && strcmp(value, "all")) {
        error_setg(errp, "property 'verify' must be 'all' or 'remote', not '%s'", value);
        return;
    }
    HGHCA(object)->verify_remote = remote;
}

static void hghca_get_commands(Object *object, Visitor *v, const char *name, void *opaque,
                               Error **errp)
{
    HghcaState *s = HGHCA(object);
    uint64_t count = s->core ? hghca_core_commands(s->core) : 0;

    visit_type_uint64(v, name, &count, errp);
}

static const Property hghca_properties[] = {
    DEFINE_NIC_PROPERTIES(HghcaState, nic_conf),
    DEFINE_PROP_STRING("profile", HghcaState, profile),
    DEFINE_PROP_UINT32("init-delay", HghcaState, init_delay_ms, 0),
    DEFINE_PROP_UINT32("cache-entries", HghcaState, cache_entries, 0),
    DEFINE_PROP_BOOL("bql-hook", HghcaState, bql_hook, true),
    DEFINE_PROP_UINT32("slice", HghcaState, slice_work, HGHCA_SLICE_DEFAULT),
    DEFINE_PROP_UINT64("node-guid", HghcaState, node_guid, 0),
    DEFINE_PROP_SIZE("device-memory", HghcaState, memory_bytes, HGHCA_MEMORY_DEFAULT),
    DEFINE_PROP_UINT8("moderation-scale", HghcaState, moderation_scale, 0),
    DEFINE_PROP_UINT32("roce-drain", HghcaState, roce_drain_mbps, 0),
    DEFINE_PROP_SIZE("roce-buffer", HghcaState, roce_buffer_bytes, HGHCA_BUFFER_DEFAULT),
    DEFINE_PROP_UINT32("other-drain", HghcaState, other_drain_mbps, 0),
    DEFINE_PROP_SIZE("other-buffer", HghcaState, other_buffer_bytes, HGHCA_BUFFER_DEFAULT),
    DEFINE_PROP_STRING("link", HghcaState, link_name),
    DEFINE_PROP_UINT32("pcap-snaplen", HghcaState, capture_snap_bytes, 0),
    DEFINE_PROP_SIZE("pcap-size", HghcaState, capture_max_bytes, 0),
};

/* The core cannot save its state. */
static const VMStateDescription hghca_vmstate = {
    .name = "hghca",
    .unmigratable = 1,
};

static void hghca_class_init(ObjectClass *class, const void *data)
{
    DeviceClass *dc = DEVICE_CLASS(class);
    PCIDeviceClass *pc = PCI_DEVICE_CLASS(class);
    ResettableClass *rc = RESETTABLE_CLASS(class);

    pc->vendor_id = HGHCA_PCI_VENDOR_ID;
    pc->device_id = HGHCA_PCI_DEVICE_ID;
    pc->subsystem_vendor_id = HGHCA_PCI_VENDOR_ID;
    pc->subsystem_id = HGHCA_PCI_SUBSYSTEM_ID;
    pc->class_id = HGHCA_PCI_CLASS >> 8;
    pc->revision = HGHCA_INTERFACE_REVISION;
    pc->realize = hghca_realize;
    pc->exit = hghca_exit;
    pc->config_write = hghca_write_config;
    rc->phases.hold = hghca_reset_hold;
    dc->desc = "JingZhao HCA (RDMA over Ethernet)";
    dc->vmsd = &hghca_vmstate;
    device_class_set_props(dc, hghca_properties);
    set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);

    object_class_property_set_description(class, "profile",
        "'full'; 'base': without what is not in the JingZhao document; 'rsnic': the device of the RSNIC document");
    object_class_property_set_description(class, "init-delay",
        "Milliseconds after a reset in which a device of profile 'rsnic' is initializing");
    object_class_property_set_description(class, "cache-entries",
        "Contexts of each kind that the device keeps on chip; 0: no limit");
    object_class_property_set_description(class, "bql-hook",
        "Threads retry for microseconds before they sleep on QEMU's global lock");
    object_class_property_set_description(class, "slice",
        "Packets, WQEs and MTT look-ups, together, after which the device reads the time");
    object_class_property_set_description(class, "node-guid",
        "Node GUID; 0: derived from the MAC");
    object_class_property_set_description(class, "device-memory",
        "Bytes of device memory that programs can allocate");
    object_class_property_set_description(class, "link",
        "shm:PATH: shared memory with an HCA of another process, by a UNIX socket at PATH; empty: the netdev");
    object_class_property_set_description(class, "pcap-snaplen",
        "Limit of the bytes of each captured frame; 0: no limit");
    object_class_property_set_description(class, "pcap-size",
        "Limit of the bytes of the capture file, which ends the capture; 0: no limit");
    object_class_property_add_str(class, "verify", hghca_get_verify, hghca_set_verify);
    object_class_property_set_description(class, "verify",
        "Packets whose ICRC the device verifies: 'all', or 'remote': not those directly from another HCA of this process");
    object_class_property_add_str(class, "pcap", hghca_capture_get, hghca_capture_set);
    object_class_property_set_description(class, "pcap",
        "File for every frame that the port sends or receives, as pcapng; empty: no capture");
    object_class_property_add(class, "stats", "HghcaStats", hghca_get_stats, NULL,
                              NULL, NULL);
    object_class_property_set_description(class, "stats",
        "Counters of the device since reset");
    object_class_property_add(class, "errors", "HghcaErrors", hghca_get_errors, NULL,
                              NULL, NULL);
    object_class_property_set_description(class, "errors",
        "Headers of the last packets dropped, with the reasons");
    object_class_property_add(class, "qps", "HghcaQps", hghca_get_qps, NULL, NULL, NULL);
    object_class_property_set_description(class, "qps",
        "The QPs that were used last, with their PSNs");
    object_class_property_add(class, "interrupts", "uint64", hghca_get_interrupts, NULL, NULL, NULL);
    object_class_property_set_description(class, "interrupts",
        "Number of MSI-X messages, or INTA assertions, since the device was created");
    object_class_property_add(class, "fail-command", "uint64", hghca_get_fail_command,
                              hghca_set_fail_command, NULL, NULL);
    object_class_property_set_description(class, "fail-command",
        "For tests of drivers: the Nth command from now on fails, once; 0: no command fails");
    object_class_property_add(class, "capabilities", "uint32", hghca_get_capabilities,
                              hghca_set_capabilities, NULL, NULL);
    object_class_property_set_description(class, "capabilities",
        "For tests of drivers: mask of the capabilities that the device advertises, of those it has");
    object_class_property_add_str(class, "fail", hghca_get_fail, hghca_set_fail);
    object_class_property_set_description(class, "fail",
        "For tests of drivers: set to 'now', the device fails until it is reset; reads 'ok' or 'failed'");
    object_class_property_add(class, "commands", "uint64", hghca_get_commands, NULL, NULL,
                              NULL);
    object_class_property_set_description(class, "commands", "Number of commands since the device was created");
    hghca_faults_class_init(class);
}

static const TypeInfo hghca_info = {
    .name = TYPE_HGHCA,
    .parent = TYPE_PCI_DEVICE,
    .instance_size = sizeof(HghcaState),
    .instance_finalize = hghca_finalize,
    .class_init = HGHCA_CLASS_INIT(hghca_class_init),
    .interfaces = (InterfaceInfo[]) {
        { INTERFACE_PCIE_DEVICE },
        { }
    },
};

static void hghca_register_types(void)
{
    type_register_static(&hghca_info);
}

type_init(hghca_register_types)
