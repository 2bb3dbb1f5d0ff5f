// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: the net device of a port that is not an Ethernet adapter itself.
 *
 * Without HGHCA_CAP_PORT the HCA sends and receives only RoCE packets.  The RDMA device
 * binds to the net device of an Ethernet adapter on the same link that has the same MAC
 * address.  This net device has the IP addresses, and its link is that of the port.
 */
#include <linux/if_arp.h>
#include <linux/rtnetlink.h>
#include <rdma/ib_smi.h>

#include "netdev.h"

/* Attribute NodeInfo of a SubnGet: IBA 14.2.5.3. */
#define HGHCA_NODE_INFO_NODE_GUID	12
#define HGHCA_NODE_INFO_PORT_GUID	20

/* Get the GUIDs of the node and of the port. */
static int hghca_bind_query_guids(struct hghca_dev *hdev, __be64 *node, __be64 *port)
{
	struct ib_smp smp = {
		.base_version = IB_MGMT_BASE_VERSION,
		.mgmt_class = IB_MGMT_CLASS_SUBN_LID_ROUTED,
		.class_version = 1,
		.method = IB_MGMT_METHOD_GET,
		.attr_id = IB_SMP_ATTR_NODE_INFO,
	};
	int err;

	err = hghca_cmd_mad_ifc(hdev, HGHCA_PORT_NUM, &smp);
	if (err)
		return err;
	if (smp.method != IB_MGMT_METHOD_GET_RESP || smp.status)
		return -EPROTO;
	memcpy(node, smp.data + HGHCA_NODE_INFO_NODE_GUID, sizeof(*node));
	memcpy(port, smp.data + HGHCA_NODE_INFO_PORT_GUID, sizeof(*port));
	return 0;
}

/* The GUID of an Ethernet port is the EUI-64 of its MAC address (RFC 4291, appendix A). */
static int hghca_bind_mac_of(__be64 guid, u8 *mac)
{
	u8 eui[sizeof(guid)];

	memcpy(eui, &guid, sizeof(eui));
	if (eui[3] != 0xff || eui[4] != 0xfe)
		return -EPROTO;
	memcpy(mac, eui, 3);
	memcpy(mac + 3, eui + 5, 3);
	mac[0] ^= 2;
	return is_valid_ether_addr(mac) ? 0 : -EPROTO;
}

static bool hghca_bind_matches(const struct hghca_dev *hdev, const struct net_device *netdev)
{
	/* VLANs, bridges and other virtual net devices have no parent. */
	return netdev->dev.parent && netdev->type == ARPHRD_ETHER &&
	       ether_addr_equal(netdev->dev_addr, hdev->mac);
}

/* Report a change of the link. */
static void hghca_bind_link(struct hghca_dev *hdev)
{
	bool active = hdev->netdev && netif_running(hdev->netdev) &&
		      netif_carrier_ok(hdev->netdev);

	ASSERT_RTNL();

	if (active == hdev->port_active)
		return;
	hdev->port_active = active;
	hdev->port_event(hdev, active);
}

static void hghca_bind_attach(struct hghca_dev *hdev, struct net_device *netdev)
{
	int err;

	err = ib_device_set_netdev(&hdev->ibdev, netdev, HGHCA_PORT_NUM);
	if (err) {
		dev_err(hdev->bus.dev, "failed to bind to %s: %d\n", netdev_name(netdev), err);
		return;
	}
	WRITE_ONCE(hdev->netdev, netdev);
	dev_info(hdev->bus.dev, "bound to %s\n", netdev_name(netdev));
	hghca_bind_link(hdev);
}

static void hghca_bind_detach(struct hghca_dev *hdev)
{
	WRITE_ONCE(hdev->netdev, NULL);
	ib_device_set_netdev(&hdev->ibdev, NULL, HGHCA_PORT_NUM);
	hghca_bind_link(hdev);
}

/*
 * Detach a net device that has another MAC address now, and stays.  ib_core removes the
 * GIDs of this net device only from the device that is bound to it.
 */
static void hghca_bind_leave(struct hghca_dev *hdev, struct net_device *netdev)
{
	hghca_bind_detach(hdev);
	if (READ_ONCE(hdev->registered))
		roce_del_all_netdev_gids(&hdev->ibdev, HGHCA_PORT_NUM, netdev);
}

/* Under RTNL.  The registration reports all net devices that exist. */
static int hghca_bind_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct hghca_dev *hdev = container_of(nb, struct hghca_dev, netdev_nb);
	struct net_device *netdev = netdev_notifier_info_to_dev(ptr);

	switch (event) {
	case NETDEV_REGISTER:
	case NETDEV_CHANGEADDR:
		if (netdev == hdev->netdev && !hghca_bind_matches(hdev, netdev))
			hghca_bind_leave(hdev, netdev);
		else if (!hdev->netdev && hghca_bind_matches(hdev, netdev))
			hghca_bind_attach(hdev, netdev);
		break;
	case NETDEV_UNREGISTER:
		if (netdev == hdev->netdev)
			hghca_bind_detach(hdev);
		break;
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
		if (netdev == hdev->netdev)
			hghca_bind_link(hdev);
		break;
	}
	return NOTIFY_DONE;
}

/**
 * hghca_bind_register - bind to the net device with the MAC address of the port
 * @hdev: the device, whose ib_device is not registered yet
 *
 * The net device may come later, and may go.
 *
 * Return: 0, -EPROTO for a device that does not tell its address, or another negative errno.
 */
int hghca_bind_register(struct hghca_dev *hdev)
{
	__be64 node, port;
	int err;

	err = hghca_bind_query_guids(hdev, &node, &port);
	if (!err)
		err = hghca_bind_mac_of(port, hdev->mac);
	if (err) {
		dev_err(hdev->bus.dev, "failed to get the MAC address from NodeInfo: %d\n", err);
		return err;
	}
	if (!hdev->node_guid)
		hdev->node_guid = node;

	/*
	 * Allocates the data of the port: later, the notifier and ib_register_device() could
	 * both do it at the same time.
	 */
	err = ib_device_set_netdev(&hdev->ibdev, NULL, HGHCA_PORT_NUM);
	if (err)
		return err;

	hdev->netdev_nb.notifier_call = hghca_bind_event;
	/* ib_core reads the addresses of a new net device after this notifier has bound to it. */
	hdev->netdev_nb.priority = 1;
	err = register_netdevice_notifier(&hdev->netdev_nb);
	if (err)
		return err;
	if (!hdev->netdev)
		dev_warn(hdev->bus.dev, "no net device has MAC address %pM yet\n", hdev->mac);
	return 0;
}

/**
 * hghca_bind_unregister - undo hghca_bind_register()
 * @hdev: the device, whose ib_device is unregistered
 */
void hghca_bind_unregister(struct hghca_dev *hdev)
{
	/* Reports the end of all net devices. */
	unregister_netdevice_notifier(&hdev->netdev_nb);
}
