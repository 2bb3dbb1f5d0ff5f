/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The port: frames to and from the netdev, and the state of its link. */

#include "qemu/osdep.h"
#include "net/hub.h"
#include "net/net.h"
#include "qemu/iov.h"
#include "system/runstate.h"
#include "hghca_shim.h"
#include "trace.h"

/* With more netdevs, the search for the other HCA on the hub takes too long. */
#define HGHCA_WIRE_CLIENTS 16

static bool hghca_net_can_receive(NetClientState *nc)
{
    HghcaState *s = qemu_get_nic_opaque(nc);

    s->rx_waiting |= s->busy;
    return !s->busy;
}

/* A frame from the link. The core is busy. */
void hghca_net_receive_frame(HghcaState *s, const struct iovec *parts, int count, bool trusted)
{
    trace_hghca_frame_receive(s->name, iov_size(parts, count));
    if (s->capture) {
        hghca_capture_add(s, false, parts, count);
    }
    hghca_core_receive(s->core, parts, count, trusted);
}

static ssize_t hghca_net_take(HghcaState *s, const struct iovec *parts, int count, bool trusted)
{
    ssize_t size = iov_size(parts, count);

    if (!hghca_net_can_receive(qemu_get_queue(s->nic))) {
        return 0;
    }
    if (!hghca_enter(s)) {
        /*
         * The device is closing: the frame is lost, as on a link that goes down. No test
         * reaches this, because hghca_exit() deletes the NIC in the call that begins closing.
         */
        return size;
    }
    hghca_net_receive_frame(s, parts, count, trusted);
    /* The sender may be a netdev that cannot receive a frame within its call. */
    hghca_leave_quietly(s);
    return size;
}

static ssize_t hghca_net_receive_iov(NetClientState *nc, const struct iovec *parts,
                                     int count)
{
    return hghca_net_take(qemu_get_nic_opaque(nc), parts, count, false);
}

static ssize_t hghca_net_receive(NetClientState *nc, const uint8_t *frame, size_t size)
{
    struct iovec part = { .iov_base = (void *)frame, .iov_len = size };

    return hghca_net_receive_iov(nc, &part, 1);
}

bool hghca_net_link_up(HghcaState *s)
{
    NetClientState *nc = qemu_get_queue(s->nic);

    return !nc->link_down && (s->link ? hghca_link_is_up(s->link) : !!nc->peer);
}

static void hghca_net_link_changed(NetClientState *nc)
{
    HghcaState *s = qemu_get_nic_opaque(nc);

    if (!hghca_net_link_up(s)) {
        qemu_purge_queued_packets(nc);  /* no frame may wait for a link that is down */
    }
    hghca_link_changed(s);
}

/* The net layer has forwarded or dropped the frame that it had queued. */
static void hghca_net_sent(NetClientState *nc, ssize_t size)
{
    HghcaState *s = qemu_get_nic_opaque(nc);

    trace_hghca_link_ready(s->name);
    s->tx_pending = false;
    s->link_ready_due = true;
    hghca_poke(s);
}

static bool hghca_wire_is_bare(NetClientState *nc)
{
    return !nc->link_down && QTAILQ_EMPTY(&nc->filters);
}

/* The other HCA on the hub, if there is nothing else between the two; NULL if there is. */
static HghcaState *hghca_wire_find(HghcaState *s)
{
    NetClientState *nc = qemu_get_queue(s->nic), *port = nc->peer, *other = NULL;
    NetClientState *clients[HGHCA_WIRE_CLIENTS];
    int hub, count;

    if (!runstate_is_running() || !port || net_hub_id_for_client(port, &hub)) {
        return NULL;
    }
    count = qemu_find_net_clients_except(NULL, clients, NET_CLIENT_DRIVER_NIC, HGHCA_WIRE_CLIENTS);
    if (count > HGHCA_WIRE_CLIENTS) {
        return NULL;
    }
    for (int i = 0; i < count; i++) {
        int its_hub;

        if (clients[i] == port || clients[i]->info->type != NET_CLIENT_DRIVER_HUBPORT ||
            net_hub_id_for_client(clients[i], &its_hub) || its_hub != hub) {
            continue;
        }
        if (other) {
            return NULL;
        }
        other = clients[i];
    }
    if (!other || !other->peer || other->peer->info->receive_iov != hghca_net_receive_iov ||
        !hghca_wire_is_bare(nc) || !hghca_wire_is_bare(port) ||
        !hghca_wire_is_bare(other) || !hghca_wire_is_bare(other->peer)) {
        return NULL;
    }
    return qemu_get_nic_opaque(other->peer);
}

/*
 * Where the frame may go directly. The net layer takes as long for a frame as a third of
 * the core. The first frame of an entry or round goes through the net layer all the same:
 * the search takes as long as one.
 */
static HghcaState *hghca_wire_end(HghcaState *s)
{
    HghcaWire *wire = &s->wire;
    uint64_t entry = hghca_entry_number();

    if (!entry) {
        return NULL;
    }
    if (wire->entry != entry) {
        wire->entry = entry;
        wire->frames = 0;
        wire->end = NULL;
    }
    if (wire->frames < 2 && wire->frames++ == 1) {
        wire->end = hghca_wire_find(s);
    }
    /* Frames that wait for it in the net layer go first. */
    return wire->end && !wire->end->rx_waiting ? wire->end : NULL;
}

/*
 * Hands the frame to the core of the other HCA within this call: nothing has it in between.
 * With verify=remote that does not verify an ICRC that this core has made. False: the frame
 * goes through the net layer.
 */
static bool hghca_net_send_direct(HghcaState *s, const struct iovec *parts, int count,
                                  bool device_icrc)
{
    HghcaState *end = hghca_wire_end(s);
    bool trusted = end && end->verify_remote && device_icrc;
    ssize_t size = end ? hghca_net_take(end, parts, count, trusted) : 0;

    if (size) {
        trace_hghca_frame_direct(s->name, size, trusted ? "trusted" : "verified");
    }
    return size;
}

bool hghca_net_send(void *opaque, const struct iovec *parts, int count, bool device_icrc)
{
    HghcaState *s = opaque;
    size_t size;

    if (s->tx_pending) {
        return false;
    }
    size = iov_size(parts, count);
    if (!size || s->closing) {
        return true;
    }
    if (s->link) {
        s->tx_pending = !hghca_link_send(s->link, parts, count);
        if (s->tx_pending) {
            return false;
        }
    }
    trace_hghca_frame_send(s->name, size);
    if (s->capture) {
        hghca_capture_add(s, true, parts, count);
    }
    if (s->link) {
        return true;
    }
    if (hghca_net_send_direct(s, parts, count, device_icrc)) {
        return true;
    }
    if (!qemu_sendv_packet_async(qemu_get_queue(s->nic), parts, count, hghca_net_sent)) {
        /* The net layer has queued this frame. It does not accept another one. */
        trace_hghca_link_full(s->name);
        s->tx_pending = true;
    }
    return true;
}

static NetClientInfo hghca_net_info = {
    .type = NET_CLIENT_DRIVER_NIC,
    .size = sizeof(NICState),
    .can_receive = hghca_net_can_receive,
    .receive = hghca_net_receive,
    .receive_iov = hghca_net_receive_iov,
    .link_status_changed = hghca_net_link_changed,
};

void hghca_net_open(HghcaState *s)
{
    DeviceState *dev = DEVICE(s);

    s->nic = qemu_new_nic(&hghca_net_info, &s->nic_conf, object_get_typename(OBJECT(s)),
                          dev->id, &dev->mem_reentrancy_guard, s);
    qemu_format_nic_info_str(qemu_get_queue(s->nic), s->nic_conf.macaddr.a);
}

void hghca_net_close(HghcaState *s)
{
    /* Otherwise the net layer would keep a frame of this device after the device is freed. */
    qemu_purge_queued_packets(qemu_get_queue(s->nic));
    qemu_del_nic(s->nic);
    s->nic = NULL;
}
