// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The net device of the function.  The hardware has RoCE packets alone.  The RDMA device
 * exists while there is a net device with the same MAC address, in any namespace: its IP
 * addresses and its link are those of the port.
 *
 * The notifier runs under RTNL, which the registration of an RDMA device takes: so it
 * only notes the net device, and a work follows.
 */
#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/rtnetlink.h>
#include <rdma/ib_cache.h>
#include "ernic.h"

/* A net device that moves to another namespace goes and comes: the RDMA device stays. */
#define ERNIC_BIND_GRACE	HZ

static bool ernic_bind_matches(const struct ernic_func *func, const struct net_device *netdev)
{
	/* VLANs, bridges and other virtual net devices have no parent. */
	return netdev->dev.parent && netdev->type == ARPHRD_ETHER &&
	       ether_addr_equal(netdev->dev_addr, func->mac);
}

/* Report a change of the link. */
static void ernic_bind_link(struct ernic_func *func)
{
	bool active = func->netdev && netif_running(func->netdev) &&
		      netif_carrier_ok(func->netdev);
	struct ib_event event = {
		.event = active ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR,
		.element.port_num = ERNIC_PORT,
	};

	ASSERT_RTNL();

	if (active == func->port_active)
		return;
	func->port_active = active;
	if (!func->edev || !ib_device_try_get(&func->edev->ibdev))
		return;
	event.device = &func->edev->ibdev;
	ib_dispatch_event(&event);
	ib_device_put(&func->edev->ibdev);
}

static void ernic_bind_attach(struct ernic_func *func, struct net_device *netdev)
{
	func->netdev = netdev;
	netdev_hold(netdev, &func->tracker, GFP_KERNEL);
	if (func->edev)
		ib_device_set_netdev(&func->edev->ibdev, netdev, ERNIC_PORT);
	ernic_bind_link(func);
	mod_delayed_work(system_long_wq, &func->work, 0);
}

static void ernic_bind_detach(struct ernic_func *func)
{
	if (func->edev)
		ib_device_set_netdev(&func->edev->ibdev, NULL, ERNIC_PORT);
	netdev_put(func->netdev, &func->tracker);
	func->netdev = NULL;
	ernic_bind_link(func);
	mod_delayed_work(system_long_wq, &func->work, func->leaving ? 0 : ERNIC_BIND_GRACE);
}

/* Under RTNL.  The registration reports all net devices that exist. */
static int ernic_bind_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct ernic_func *func = container_of(nb, struct ernic_func, netdev_nb);
	struct net_device *netdev = netdev_notifier_info_to_dev(ptr);

	switch (event) {
	case NETDEV_REGISTER:
	case NETDEV_CHANGEADDR:
		if (netdev == func->netdev && !ernic_bind_matches(func, netdev))
			ernic_bind_detach(func);
		else if (!func->netdev && ernic_bind_matches(func, netdev))
			ernic_bind_attach(func, netdev);
		break;
	case NETDEV_UNREGISTER:
		if (netdev == func->netdev)
			ernic_bind_detach(func);
		break;
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
		if (netdev == func->netdev)
			ernic_bind_link(func);
		break;
	}
	return NOTIFY_DONE;
}

static void ernic_bind_create(struct ernic_func *func)
{
	struct ernic_dev *edev;
	bool bound = false;
	int err;

	edev = ernic_dev_create(func);
	if (IS_ERR(edev)) {
		dev_err(func->dev, "failed to start the device: %ld\n", PTR_ERR(edev));
		return;
	}
	rtnl_lock();
	if (func->netdev && !ib_device_set_netdev(&edev->ibdev, func->netdev, ERNIC_PORT)) {
		func->edev = edev;
		bound = true;
	}
	rtnl_unlock();
	if (!bound) {
		ernic_dev_destroy(edev);
		return;
	}
	err = ernic_dev_register(edev);
	if (!err)
		return;
	dev_err(func->dev, "failed to register the RDMA device: %d\n", err);
	rtnl_lock();
	func->edev = NULL;
	rtnl_unlock();
	ernic_dev_destroy(edev);
}

static void ernic_bind_work(struct work_struct *work)
{
	struct ernic_func *func = container_of(work, struct ernic_func, work.work);
	struct ernic_dev *edev = func->edev;
	struct net_device *wanted;

	/* The RDMA device of a net device that went is not that of one which came since. */
	rtnl_lock();
	wanted = func->leaving ? NULL : func->netdev;
	rtnl_unlock();
	if (edev) {
		struct net_device *bound = ib_device_get_netdev(&edev->ibdev, ERNIC_PORT);

		dev_put(bound);
		if (wanted && bound == wanted)
			return;
		ib_unregister_device(&edev->ibdev);
		rtnl_lock();
		func->edev = NULL;
		rtnl_unlock();
		ernic_dev_destroy(edev);
	}
	if (wanted)
		ernic_bind_create(func);
}

int ernic_bind_register(struct ernic_func *func)
{
	int err;

	INIT_DELAYED_WORK(&func->work, ernic_bind_work);
	func->netdev_nb.notifier_call = ernic_bind_event;
	/* ib_core reads the addresses of a net device after this notifier has seen it. */
	func->netdev_nb.priority = 1;
	err = register_netdevice_notifier(&func->netdev_nb);
	if (err)
		return err;
	if (!func->netdev)
		dev_warn(func->dev, "no net device has MAC address %pM yet\n", func->mac);
	/* So that the RDMA device is there when the driver is. */
	flush_delayed_work(&func->work);
	return 0;
}

void ernic_bind_unregister(struct ernic_func *func)
{
	rtnl_lock();
	func->leaving = true;
	rtnl_unlock();
	/* Reports the end of all net devices, which detaches. */
	unregister_netdevice_notifier(&func->netdev_nb);
	mod_delayed_work(system_long_wq, &func->work, 0);
	flush_delayed_work(&func->work);
}
