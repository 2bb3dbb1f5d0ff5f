/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* After 6.1: exported to drivers. */
#ifndef COMPAT_HAS_IB_DEVICE_GET_NETDEV
#include <rdma/ib_verbs.h>

static inline struct net_device *ib_device_get_netdev(struct ib_device *device, u32 port)
{
	struct net_device *netdev;

	if (!rdma_is_port_valid(device, port))
		return NULL;
	rcu_read_lock();
	netdev = rcu_dereference(device->port_data[port].netdev);
	dev_hold(netdev);
	rcu_read_unlock();
	return netdev;
}
#endif
