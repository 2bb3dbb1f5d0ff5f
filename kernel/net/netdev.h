/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * JingZhao HCA: the Ethernet side of the port.
 *
 *	netdev.c	the net device
 *	bind.c		the net device of another adapter, on a device without HGHCA_CAP_PORT
 *	netring.c	its raw Ethernet QP and CQ, created directly by commands
 *	dcb.c		priority flow control
 *
 * Frames go through a raw Ethernet QP.  One CQ serves both of its queues, and
 * one NAPI instance serves the CQ.
 */
#ifndef HGHCA_NETDEV_H
#define HGHCA_NETDEV_H

#include <linux/if_vlan.h>
#include <linux/netdevice.h>
#include <net/page_pool/types.h>

#include "hghca.h"

#define HGHCA_NET_TX_LOG	9
#define HGHCA_NET_RX_LOG	9
#define HGHCA_NET_TX_SLOTS	BIT(HGHCA_NET_TX_LOG)
#define HGHCA_NET_RX_SLOTS	BIT(HGHCA_NET_RX_LOG)
/* Room for every WQE of both queues. */
#define HGHCA_NET_CQ_LOG	(max(HGHCA_NET_TX_LOG, HGHCA_NET_RX_LOG) + 1)
#define HGHCA_NET_STRIDE_LOG	HGHCA_WQE_MIN_STRIDE_LOG

/* The device handles frames of MTU bytes plus a VLAN tag. */
#define HGHCA_NET_OVERHEAD	(ETH_HLEN + VLAN_HLEN)

struct hghca_net_tx_slot {
	struct sk_buff *skb;
	dma_addr_t dma;
	u32 len;
};

/* The transmit lock protects head and batch.  NAPI owns tail. */
struct hghca_net_tx {
	struct hghca_queue queue;
	struct hghca_net_tx_slot *slots;
	u32 head;			/* WQEs posted, free-running */
	u32 tail;			/* WQEs completed, free-running */
	u32 batch_first;		/* first WQE without a doorbell */
	u32 batch_count;
	u64 stops;			/* frames that filled the queue, or found it full */
};

/* Used only by NAPI. */
struct hghca_net_rx {
	struct hghca_queue queue;
	struct hghca_dbr dbr;
	struct page_pool *pool;
	struct page **pages;
	u32 buf_len;			/* longest frame of both directions, bytes */
	u32 head;
	u32 tail;
	u64 no_memory;			/* failed allocations of buffers */
	struct timer_list refill_timer;	/* after a failed allocation */
};

struct hghca_net_cq {
	struct hghca_hwcq hw;
	struct hghca_queue queue;
	struct hghca_dbr dbr;
	u32 cons_index;
};

struct hghca_netdev {
	struct hghca_dev *hdev;
	struct net_device *netdev;
	struct napi_struct napi;
	bool open;			/* the rings exist; under RTNL */

	struct hghca_hwmr mr;		/* all memory, in the PD of the QP */
	struct hghca_net_cq cq;
	struct hghca_hwqp hwqp;
	struct hghca_net_tx tx;
	struct hghca_net_rx rx;

	struct mutex port_lock;		/* SET_PORT and its input */
	u8 mac[ETH_ALEN];
	u32 mtu;
	u32 filter;			/* HGHCA_PORT_PROMISC, HGHCA_PORT_ALLMULTI */
	struct work_struct filter_work;
	struct delayed_work restart_work;	/* after a failure of the QP */
	u64 restarts;			/* under RTNL */
};

/* netdev.c */
void hghca_netdev_init(struct hghca_dev *hdev);
int hghca_netdev_register(struct hghca_dev *hdev);
void hghca_netdev_unregister(struct hghca_dev *hdev);

/* bind.c */
int hghca_bind_register(struct hghca_dev *hdev);
void hghca_bind_unregister(struct hghca_dev *hdev);

/* netring.c */
int hghca_netring_open(struct hghca_netdev *nd);
void hghca_netring_close(struct hghca_netdev *nd);
netdev_tx_t hghca_netring_xmit(struct sk_buff *skb, struct net_device *netdev);
void hghca_netring_refill(struct timer_list *timer);
int hghca_netring_poll(struct napi_struct *napi, int budget);

/* dcb.c */
extern const struct dcbnl_rtnl_ops hghca_dcbnl_ops;

/* Limits the rate of restarts of a QP that fails repeatedly. */
#define HGHCA_NET_RESTART_DELAY	HZ

/* The raw Ethernet QP or its CQ failed.  Any context. */
static inline void hghca_netdev_fault(struct hghca_netdev *nd)
{
	schedule_delayed_work(&nd->restart_work, HGHCA_NET_RESTART_DELAY);
}

#endif /* HGHCA_NETDEV_H */
