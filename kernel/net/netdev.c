// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* JingZhao HCA: the net device of the port. */
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <linux/unaligned.h>

#include "netdev.h"

/* Set MAC, MTU and filter in the device. */
static int hghca_net_set_port(struct hghca_netdev *nd)
{
	struct hghca_port port = {};

	lockdep_assert_held(&nd->port_lock);

	port.flags = cpu_to_be32(nd->filter);
	port.mac_h = cpu_to_be32(get_unaligned_be32(nd->mac));
	port.mac_l = cpu_to_be16(get_unaligned_be16(nd->mac + 4));
	port.mtu = cpu_to_be32(nd->mtu);
	return hghca_cmd_set_port(nd->hdev, &port);
}

static void hghca_net_filter_work(struct work_struct *work)
{
	struct hghca_netdev *nd = container_of(work, struct hghca_netdev, filter_work);
	unsigned int flags;
	u32 filter = 0;

	netif_addr_lock_bh(nd->netdev);
	flags = nd->netdev->flags;
	if (flags & IFF_PROMISC)
		filter |= HGHCA_PORT_PROMISC;
	/* The device has no list of multicast addresses: one address enables all of them. */
	if (flags & IFF_ALLMULTI || !netdev_mc_empty(nd->netdev))
		filter |= HGHCA_PORT_ALLMULTI;
	/* It has no list of unicast addresses either. */
	if (!netdev_uc_empty(nd->netdev))
		filter |= HGHCA_PORT_PROMISC;
	netif_addr_unlock_bh(nd->netdev);

	mutex_lock(&nd->port_lock);
	if (filter != nd->filter) {
		nd->filter = filter;
		if (hghca_net_set_port(nd))
			netdev_err(nd->netdev, "failed to set receive filter %#x\n", filter);
	}
	mutex_unlock(&nd->port_lock);
}

static void hghca_net_set_rx_mode(struct net_device *netdev)
{
	struct hghca_netdev *nd = netdev_priv(netdev);

	/* A command sleeps, which this context does not allow. */
	schedule_work(&nd->filter_work);
}

/* Query the link state, and report a change to the network stack and to ib_core. */
static void hghca_net_link(struct hghca_dev *hdev)
{
	struct net_device *netdev = READ_ONCE(hdev->netdev);
	struct hghca_port port;
	bool up;

	if (!netdev || !(hdev->limits.caps & HGHCA_CAP_PORT) || hghca_cmd_query_port(hdev, &port))
		return;

	up = be32_to_cpu(port.flags) & HGHCA_PORT_LINK_UP;
	WRITE_ONCE(hdev->port_mbps, be32_to_cpu(port.speed));
	if (up == netif_carrier_ok(netdev))
		return;

	if (up)
		netif_carrier_on(netdev);
	else
		netif_carrier_off(netdev);
	if (netif_running(netdev))
		hdev->port_event(hdev, up);
}

static void hghca_net_link_work(struct work_struct *work)
{
	hghca_net_link(container_of(work, struct hghca_dev, link_work));
}

/* Work queries the port, because a command sleeps. */
static void hghca_port_change_event(struct hghca_dev *hdev, u32 number,
				    const struct hghca_eqe *eqe)
{
	schedule_work(&hdev->link_work);
}

/**
 * hghca_netdev_init - register the handler of port events
 * @hdev: the device
 */
void hghca_netdev_init(struct hghca_dev *hdev)
{
	INIT_WORK(&hdev->link_work, hghca_net_link_work);
	hghca_handle_event(hdev, HGHCA_EVENT_PORT_CHANGE, hghca_port_change_event);
}

static int hghca_net_open(struct net_device *netdev)
{
	struct hghca_netdev *nd = netdev_priv(netdev);
	int err;

	err = hghca_netring_open(nd);
	if (err) {
		netdev_err(netdev, "failed to open rings: %d\n", err);
		return err;
	}
	hghca_net_link(nd->hdev);
	if (netif_carrier_ok(netdev))
		nd->hdev->port_event(nd->hdev, true);
	return 0;
}

static int hghca_net_stop(struct net_device *netdev)
{
	struct hghca_netdev *nd = netdev_priv(netdev);

	hghca_netring_close(nd);
	nd->hdev->port_event(nd->hdev, false);
	return 0;
}

static void hghca_net_restart_work(struct work_struct *work)
{
	struct hghca_netdev *nd = container_of(to_delayed_work(work), struct hghca_netdev,
					       restart_work);

	rtnl_lock();
	if (netif_running(nd->netdev) && !hghca_dev_has_failed(nd->hdev)) {
		netdev_warn(nd->netdev, "restarting rings after a fault\n");
		nd->restarts++;
		hghca_netring_close(nd);
		if (hghca_netring_open(nd)) {
			netdev_err(nd->netdev, "failed to restart rings\n");
			hghca_netdev_fault(nd);
		}
	}
	rtnl_unlock();
}

static void hghca_net_tx_timeout(struct net_device *netdev, unsigned int txqueue)
{
	hghca_netdev_fault(netdev_priv(netdev));
}

static int hghca_net_set_mac(struct net_device *netdev, void *addr)
{
	struct hghca_netdev *nd = netdev_priv(netdev);
	const struct sockaddr *sa = addr;
	u8 old[ETH_ALEN];
	int err;

	err = eth_prepare_mac_addr_change(netdev, addr);
	if (err)
		return err;

	mutex_lock(&nd->port_lock);
	ether_addr_copy(old, nd->mac);
	ether_addr_copy(nd->mac, sa->sa_data);
	err = hghca_net_set_port(nd);
	if (err)
		ether_addr_copy(nd->mac, old);
	mutex_unlock(&nd->port_lock);
	if (err)
		return err;

	eth_commit_mac_addr_change(netdev, addr);
	return 0;
}

/* Set the MTU of the device and of the network stack. */
static int hghca_net_set_mtu(struct hghca_netdev *nd, int mtu)
{
	u32 old = nd->mtu;
	int err;

	mutex_lock(&nd->port_lock);
	nd->mtu = mtu;
	err = hghca_net_set_port(nd);
	if (err)
		nd->mtu = old;
	mutex_unlock(&nd->port_lock);

	if (!err)
		WRITE_ONCE(nd->netdev->mtu, mtu);
	return err;
}

/* The rings have buffers and frames of the old length, so they are closed first. */
static int hghca_net_change_mtu(struct net_device *netdev, int mtu)
{
	struct hghca_netdev *nd = netdev_priv(netdev);
	int old = netdev->mtu;
	int err;

	if (!netif_running(netdev))
		return hghca_net_set_mtu(nd, mtu);

	hghca_netring_close(nd);
	err = hghca_net_set_mtu(nd, mtu);
	if (err)
		goto out_open;

	err = hghca_netring_open(nd);
	if (!err)
		return 0;
	hghca_net_set_mtu(nd, old);
out_open:
	if (hghca_netring_open(nd))
		hghca_netdev_fault(nd);
	return err;
}

static const struct net_device_ops hghca_net_ops = {
	.ndo_open = hghca_net_open,
	.ndo_stop = hghca_net_stop,
	.ndo_start_xmit = hghca_netring_xmit,
	.ndo_tx_timeout = hghca_net_tx_timeout,
	.ndo_set_rx_mode = hghca_net_set_rx_mode,
	.ndo_set_mac_address = hghca_net_set_mac,
	.ndo_validate_addr = eth_validate_addr,
	.ndo_change_mtu = hghca_net_change_mtu,
};

static void hghca_net_get_drvinfo(struct net_device *netdev, struct ethtool_drvinfo *info)
{
	struct hghca_netdev *nd = netdev_priv(netdev);
	u32 version = nd->hdev->fw_version;

	strscpy(info->driver, HGHCA_DRV_NAME, sizeof(info->driver));
	strscpy(info->bus_info, nd->hdev->bus.name, sizeof(info->bus_info));
	snprintf(info->fw_version, sizeof(info->fw_version), "%u.%u", version >> 16,
		 version & 0xffff);
}

static int hghca_net_get_link_ksettings(struct net_device *netdev,
					struct ethtool_link_ksettings *ks)
{
	struct hghca_netdev *nd = netdev_priv(netdev);

	ethtool_link_ksettings_zero_link_mode(ks, supported);
	ethtool_link_ksettings_zero_link_mode(ks, advertising);
	ks->base.speed = READ_ONCE(nd->hdev->port_mbps) ?: SPEED_UNKNOWN;
	ks->base.duplex = DUPLEX_FULL;
	ks->base.autoneg = AUTONEG_DISABLE;
	ks->base.port = PORT_OTHER;
	return 0;
}

static void hghca_net_get_ringparam(struct net_device *netdev, struct ethtool_ringparam *ring,
				    struct kernel_ethtool_ringparam *kernel_ring,
				    struct netlink_ext_ack *extack)
{
	ring->rx_max_pending = HGHCA_NET_RX_SLOTS;
	ring->rx_pending = HGHCA_NET_RX_SLOTS;
	ring->tx_max_pending = HGHCA_NET_TX_SLOTS;
	ring->tx_pending = HGHCA_NET_TX_SLOTS;
}

static void hghca_net_get_channels(struct net_device *netdev, struct ethtool_channels *channels)
{
	channels->max_combined = 1;
	channels->combined_count = 1;
}

static void hghca_net_get_eth_mac_stats(struct net_device *netdev,
					struct ethtool_eth_mac_stats *mac)
{
	struct rtnl_link_stats64 stats;

	dev_get_stats(netdev, &stats);
	mac->FramesTransmittedOK = stats.tx_packets;
	mac->FramesReceivedOK = stats.rx_packets;
	mac->OctetsTransmittedOK = stats.tx_bytes;
	mac->OctetsReceivedOK = stats.rx_bytes;
}

static const struct {
	const char *name;
} hghca_net_counters[HGHCA_COUNTER_NUM] = {
#define HGHCA_NET_COUNTER(counter, ...) { .name = #counter },
	HGHCA_COUNTERS(HGHCA_NET_COUNTER)
#undef HGHCA_NET_COUNTER
};

/* Counters of the rings, which follow those of the device. */
enum {
	HGHCA_RING_TX_PACKETS,
	HGHCA_RING_TX_BYTES,
	HGHCA_RING_TX_DROPPED,
	HGHCA_RING_TX_STOPS,
	HGHCA_RING_RX_PACKETS,
	HGHCA_RING_RX_BYTES,
	HGHCA_RING_RX_DROPPED,
	HGHCA_RING_RX_NO_MEMORY,
	HGHCA_RING_RESTARTS,
	HGHCA_RING_STATS
};

static const char * const hghca_ring_stats[HGHCA_RING_STATS] = {
	[HGHCA_RING_TX_PACKETS]		= "ring_tx_packets",
	[HGHCA_RING_TX_BYTES]		= "ring_tx_bytes",
	[HGHCA_RING_TX_DROPPED]		= "ring_tx_dropped",
	[HGHCA_RING_TX_STOPS]		= "ring_tx_stops",
	[HGHCA_RING_RX_PACKETS]		= "ring_rx_packets",
	[HGHCA_RING_RX_BYTES]		= "ring_rx_bytes",
	[HGHCA_RING_RX_DROPPED]		= "ring_rx_dropped",
	[HGHCA_RING_RX_NO_MEMORY]	= "ring_rx_no_memory",
	[HGHCA_RING_RESTARTS]		= "ring_restarts",
};

static void hghca_net_get_ring_stats(struct hghca_netdev *nd, u64 *data)
{
	struct rtnl_link_stats64 stats;

	dev_get_stats(nd->netdev, &stats);
	data[HGHCA_RING_TX_PACKETS] = stats.tx_packets;
	data[HGHCA_RING_TX_BYTES] = stats.tx_bytes;
	data[HGHCA_RING_TX_DROPPED] = stats.tx_dropped;
	data[HGHCA_RING_TX_STOPS] = READ_ONCE(nd->tx.stops);
	data[HGHCA_RING_RX_PACKETS] = stats.rx_packets;
	data[HGHCA_RING_RX_BYTES] = stats.rx_bytes;
	data[HGHCA_RING_RX_DROPPED] = stats.rx_dropped;
	data[HGHCA_RING_RX_NO_MEMORY] = READ_ONCE(nd->rx.no_memory);
	data[HGHCA_RING_RESTARTS] = nd->restarts;
}

/* Number of counters of the device. */
static unsigned int hghca_net_num_counters(const struct hghca_netdev *nd)
{
	return nd->hdev->limits.caps & HGHCA_CAP_STATS ? HGHCA_COUNTER_NUM : 0;
}

static int hghca_net_get_sset_count(struct net_device *netdev, int sset)
{
	struct hghca_netdev *nd = netdev_priv(netdev);

	if (sset != ETH_SS_STATS)
		return -EOPNOTSUPP;
	return hghca_net_num_counters(nd) + HGHCA_RING_STATS;
}

static void hghca_net_get_strings(struct net_device *netdev, u32 sset, u8 *data)
{
	unsigned int num_counters = hghca_net_num_counters(netdev_priv(netdev));
	unsigned int i;

	if (sset != ETH_SS_STATS)
		return;
	for (i = 0; i < num_counters; i++)
		ethtool_puts(&data, hghca_net_counters[i].name);
	for (i = 0; i < HGHCA_RING_STATS; i++)
		ethtool_puts(&data, hghca_ring_stats[i]);
}

static void hghca_net_get_ethtool_stats(struct net_device *netdev, struct ethtool_stats *stats,
					u64 *data)
{
	struct hghca_netdev *nd = netdev_priv(netdev);
	unsigned int num_counters = hghca_net_num_counters(nd);

	if (num_counters &&
	    hghca_cmd_query_stats(nd->hdev, HGHCA_STATS_ALL, data, num_counters))
		memset(data, 0, num_counters * sizeof(*data));
	hghca_net_get_ring_stats(nd, data + num_counters);
}

static void hghca_net_get_pauseparam(struct net_device *netdev, struct ethtool_pauseparam *pause)
{
	struct hghca_netdev *nd = netdev_priv(netdev);
	struct hghca_flow_control control;
	u32 flags;

	if (!(nd->hdev->limits.caps & HGHCA_CAP_FLOW_CONTROL) ||
	    hghca_cmd_query_flow_control(nd->hdev, &control))
		return;
	flags = be32_to_cpu(control.flags);
	pause->rx_pause = !!(flags & HGHCA_FLOW_PAUSE_RX);
	pause->tx_pause = !!(flags & HGHCA_FLOW_PAUSE_TX);
}

static int hghca_net_set_pauseparam(struct net_device *netdev, struct ethtool_pauseparam *pause)
{
	struct hghca_netdev *nd = netdev_priv(netdev);
	struct hghca_flow_control control;
	u32 flags = 0;
	int err;

	if (!(nd->hdev->limits.caps & HGHCA_CAP_FLOW_CONTROL))
		return -EOPNOTSUPP;
	if (pause->autoneg)
		return -EINVAL;
	err = hghca_cmd_query_flow_control(nd->hdev, &control);
	if (err)
		return err;
	if (pause->rx_pause)
		flags |= HGHCA_FLOW_PAUSE_RX;
	if (pause->tx_pause)
		flags |= HGHCA_FLOW_PAUSE_TX;
	/* Enabling link-level pause disables PFC.  Disabling pause leaves PFC unchanged. */
	if (!flags)
		flags = be32_to_cpu(control.flags) & (HGHCA_FLOW_PFC_RX | HGHCA_FLOW_PFC_TX);
	control.flags = cpu_to_be32(flags);
	return hghca_cmd_set_flow_control(nd->hdev, &control);
}

static const struct ethtool_ops hghca_net_ethtool_ops = {
	.get_channels = hghca_net_get_channels,
	.get_drvinfo = hghca_net_get_drvinfo,
	.get_eth_mac_stats = hghca_net_get_eth_mac_stats,
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = hghca_net_get_link_ksettings,
	.get_pauseparam = hghca_net_get_pauseparam,
	.get_ringparam = hghca_net_get_ringparam,
	.get_sset_count = hghca_net_get_sset_count,
	.get_strings = hghca_net_get_strings,
	.get_ethtool_stats = hghca_net_get_ethtool_stats,
	.set_pauseparam = hghca_net_set_pauseparam,
};

/* Read MAC and limits from the device, and set its MTU to the default. */
static int hghca_net_init_port(struct hghca_netdev *nd)
{
	struct net_device *netdev = nd->netdev;
	struct hghca_port port;
	u32 max_mtu;
	int err;

	err = hghca_cmd_query_port(nd->hdev, &port);
	if (err)
		return err;

	max_mtu = be32_to_cpu(port.max_mtu);
	if (max_mtu < ETH_DATA_LEN || max_mtu > ETH_MAX_MTU) {
		dev_err(nd->hdev->bus.dev, "QUERY_PORT: invalid max_mtu %u\n", max_mtu);
		return -EPROTO;
	}
	netdev->mtu = ETH_DATA_LEN;
	netdev->min_mtu = ETH_MIN_MTU;
	netdev->max_mtu = max_mtu;

	put_unaligned_be32(be32_to_cpu(port.mac_h), nd->mac);
	put_unaligned_be16(be16_to_cpu(port.mac_l), nd->mac + 4);
	if (is_valid_ether_addr(nd->mac)) {
		eth_hw_addr_set(netdev, nd->mac);
	} else {
		eth_hw_addr_random(netdev);
		ether_addr_copy(nd->mac, netdev->dev_addr);
	}
	WRITE_ONCE(nd->hdev->port_mbps, be32_to_cpu(port.speed));

	mutex_lock(&nd->port_lock);
	nd->mtu = netdev->mtu;
	err = hghca_net_set_port(nd);
	mutex_unlock(&nd->port_lock);
	return err;
}

/**
 * hghca_netdev_register - create the net device of the port, or bind to that of an adapter
 * @hdev: the device
 *
 * Return: 0 or a negative errno.
 */
int hghca_netdev_register(struct hghca_dev *hdev)
{
	struct net_device *netdev;
	struct hghca_netdev *nd;
	int err;

	if (!(hdev->limits.caps & HGHCA_CAP_PORT))
		return hghca_bind_register(hdev);

	netdev = alloc_etherdev(sizeof(*nd));
	if (!netdev)
		return -ENOMEM;

	nd = netdev_priv(netdev);
	nd->hdev = hdev;
	nd->netdev = netdev;
	mutex_init(&nd->port_lock);
	timer_setup(&nd->rx.refill_timer, hghca_netring_refill, 0);
	INIT_WORK(&nd->filter_work, hghca_net_filter_work);
	INIT_DELAYED_WORK(&nd->restart_work, hghca_net_restart_work);

	SET_NETDEV_DEV(netdev, hdev->bus.dev);
	netdev->netdev_ops = &hghca_net_ops;
	netdev->ethtool_ops = &hghca_net_ethtool_ops;
#ifdef CONFIG_DCB
	if (hdev->limits.caps & HGHCA_CAP_FLOW_CONTROL)
		netdev->dcbnl_ops = &hghca_dcbnl_ops;
#endif
	netdev->pcpu_stat_type = NETDEV_PCPU_STAT_TSTATS;
	netdev->features = NETIF_F_HIGHDMA;
	netdev->hw_features = 0;
	netdev->priv_flags |= IFF_LIVE_ADDR_CHANGE;
	netif_napi_add(netdev, &nd->napi, hghca_netring_poll);
	netif_carrier_off(netdev);

	err = hghca_net_init_port(nd);
	if (err)
		goto err_free_netdev;

	/* Buffers may be anywhere in memory. */
	err = hghca_hwmr_create_physical(hdev, &nd->mr, hdev->pdn, HGHCA_ACCESS_LOCAL_WRITE);
	if (err)
		goto err_free_netdev;

	err = register_netdev(netdev);
	if (err)
		goto err_destroy_mr;

	WRITE_ONCE(hdev->netdev, netdev);
	hghca_net_link(hdev);
	return 0;

err_destroy_mr:
	hghca_hwmr_take(hdev, &nd->mr);
err_free_netdev:
	netif_napi_del(&nd->napi);
	free_netdev(netdev);
	return err;
}

/**
 * hghca_netdev_unregister - undo hghca_netdev_register()
 * @hdev: the device
 */
void hghca_netdev_unregister(struct hghca_dev *hdev)
{
	struct net_device *netdev = hdev->netdev;
	struct hghca_netdev *nd;

	if (!(hdev->limits.caps & HGHCA_CAP_PORT)) {
		hghca_bind_unregister(hdev);
		return;
	}
	nd = netdev_priv(netdev);

	/* From here on, work of events does not find the net device. */
	WRITE_ONCE(hdev->netdev, NULL);
	flush_work(&hdev->link_work);
	flush_work(&hdev->fail_work);

	unregister_netdev(netdev);
	cancel_work_sync(&nd->filter_work);
	cancel_delayed_work_sync(&nd->restart_work);
	hghca_hwmr_take(hdev, &nd->mr);
	netif_napi_del(&nd->napi);
	free_netdev(netdev);
}
