/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The port: frames to and from the netdev, and the state of its link. */

#include "qemu/osdep.h"
#include "net/net.h"
#include "qemu/iov.h"
#include "hghca_shim.h"
#include "trace.h"

static bool hghca_net_can_receive(NetClientState *nc)
{
    HghcaState *s = qemu_get_nic_opaque(nc);

    s->rx_waiting |= s->busy;
    return !s->busy;
}

static ssize_t hghca_net_receive_iov(NetClientState *nc, const struct iovec *parts,
                                     int count)
{
    HghcaState *s = qemu_get_nic_opaque(nc);
    ssize_t size = iov_size(parts, count);

    if (!hghca_net_can_receive(nc)) {
        return 0;
    }
    if (!hghca_enter(s)) {
        /*
         * The device is closing: the frame is lost, as on a link that goes down. No test
         * reaches this, because hghca_exit() deletes the NIC in the call that begins closing.
         */
        return size;
    }
    trace_hghca_frame_receive(s->name, size);
    if (s->capture) {
        hghca_capture_add(s, false, parts, count);
    }
    hghca_core_receive(s->core, parts, count);
    /* The sender may be a netdev that cannot receive a frame within its call. */
    hghca_leave_quietly(s);
    return size;
}

static ssize_t hghca_net_receive(NetClientState *nc, const uint8_t *frame, size_t size)
{
    struct iovec part = { .iov_base = (void *)frame, .iov_len = size };

    return hghca_net_receive_iov(nc, &part, 1);
}

bool hghca_net_link_up(HghcaState *s)
{
    NetClientState *nc = qemu_get_queue(s->nic);

    return nc->peer && !nc->link_down;
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

bool hghca_net_send(void *opaque, const struct iovec *parts, int count)
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
    trace_hghca_frame_send(s->name, size);
    if (s->capture) {
        hghca_capture_add(s, true, parts, count);
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
