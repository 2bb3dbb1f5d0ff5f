// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* JingZhao HCA: the port. */
#include <rdma/ib_addr.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_pma.h>

#include "verbs/verbs.h"

#define HGHCA_PKEY		0xffff
#define HGHCA_MBPS_PER_SPEED	100	/* of the verb that queries the speed alone */

/**
 * hghca_query_port - query state and attributes of the port
 * @ibdev: the device
 * @port: port number, which the core has checked
 * @attr: output; the core has cleared it
 *
 * Return: 0.
 */
int hghca_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr)
{
	struct hghca_dev *hdev = to_hdev(ibdev);
	struct net_device *netdev = hghca_netdev_get(hdev);

	/* The net device may be another adapter's, which does not fail with the HCA. */
	if (!hghca_dev_has_failed(hdev) && netdev && netif_running(netdev) &&
	    netif_carrier_ok(netdev)) {
		attr->state = IB_PORT_ACTIVE;
		attr->phys_state = IB_PORT_PHYS_STATE_LINK_UP;
	} else {
		attr->state = IB_PORT_DOWN;
		attr->phys_state = IB_PORT_PHYS_STATE_DISABLED;
	}

	attr->max_mtu = hdev->limits.max_mtu;
	attr->active_mtu = IB_MTU_256;
	if (netdev)
		attr->active_mtu = iboe_get_mtu(READ_ONCE(netdev->mtu)) ?: IB_MTU_256;
	attr->active_mtu = min(attr->active_mtu, attr->max_mtu);
	attr->phys_mtu = ib_mtu_enum_to_int(attr->active_mtu);
	attr->gid_tbl_len = hdev->limits.num_gids;
	attr->ip_gids = true;
	attr->port_cap_flags = IB_PORT_CM_SUP;
	attr->max_msg_sz = BIT(hdev->limits.log_max_msg);
	attr->pkey_tbl_len = 1;
	attr->max_vl_num = 1;
	dev_put(netdev);
	/* There may be no net device: the lowest values. */
	if (ib_get_eth_speed(ibdev, port, &attr->active_speed, &attr->active_width)) {
		attr->active_width = IB_WIDTH_1X;
		attr->active_speed = IB_SPEED_SDR;
	}
	return 0;
}

/**
 * hghca_query_port_speed - query the speed of the port
 * @ibdev: the device
 * @port: port number, which the core has checked
 * @speed: output, in units of 100 Mbit/s
 *
 * Return: 0, or -EOPNOTSUPP if the HCA does not report it.
 */
int hghca_query_port_speed(struct ib_device *ibdev, u32 port, u64 *speed)
{
	struct hghca_dev *hdev = to_hdev(ibdev);

	if (!(hdev->limits.caps & HGHCA_CAP_PORT))
		return -EOPNOTSUPP;
	*speed = READ_ONCE(hdev->port_mbps) / HGHCA_MBPS_PER_SPEED;
	return 0;
}

/**
 * hghca_query_pkey - query a P_Key of the port
 * @ibdev: the device
 * @port: port number
 * @index: index
 * @pkey: output
 *
 * Return: 0, or -EINVAL for another index than 0.
 */
int hghca_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = HGHCA_PKEY;
	return 0;
}

/**
 * hghca_get_port_immutable - get the constant attributes of the port
 * @ibdev: the device
 * @port: port number
 * @immutable: output
 *
 * Return: 0.
 */
int hghca_get_port_immutable(struct ib_device *ibdev, u32 port,
			     struct ib_port_immutable *immutable)
{
	immutable->pkey_tbl_len = 1;
	immutable->gid_tbl_len = to_hdev(ibdev)->limits.num_gids;
	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

/**
 * hghca_get_link_layer - the port's link layer
 * @ibdev: the device
 * @port: port number
 *
 * Return: Ethernet.
 */
enum rdma_link_layer hghca_get_link_layer(struct ib_device *ibdev, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

/**
 * hghca_report_port_event - ib_core saw an event of the net device's link
 * @ibdev: the device
 * @netdev: its net device
 * @event: NETDEV_*
 *
 * The device reports the changes of its port itself: see hghca_port_dispatch().
 */
void hghca_report_port_event(struct ib_device *ibdev, struct net_device *netdev,
			     unsigned long event)
{
}

/**
 * hghca_port_dispatch - raise IB_EVENT_PORT_ACTIVE or IB_EVENT_PORT_ERR
 * @hdev: the device
 * @active: the port came up
 */
void hghca_port_dispatch(struct hghca_dev *hdev, bool active)
{
	struct ib_event event = {
		.device = &hdev->ibdev,
		.event = active ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR,
		.element.port_num = HGHCA_PORT_NUM,
	};

	if (READ_ONCE(hdev->registered))
		ib_dispatch_event(&event);
}
