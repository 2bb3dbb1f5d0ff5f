/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * JingZhao HCA: the Ethernet side of the port.
 *
 *	netdev.c	the net device
 *	netring.c	its raw Ethernet QP and CQ, straight over the commands
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

/* The device takes frames of MTU bytes with a VLAN tag. */
#define HGHCA_NET_OVERHEAD	(ETH_HLEN + VLAN_HLEN)

struct hghca_net_tx_slot {
	struct sk_buff *skb;
	dma_addr_t dma;
	u32 len;
};

/* head, batch: the transmit lock; tail: NAPI. */
struct hghca_net_tx {
	struct hghca_queue queue;
	struct hghca_net_tx_slot *slots;
	u32 head;			/* WQEs posted, free-running */
	u32 tail;			/* WQEs completed, free-running */
	u32 batch_first;		/* first WQE the device was not told of */
	u32 batch_count;
	u64 stops;			/* frames that found the queue full or made it so */
};

/* NAPI alone. */
struct hghca_net_rx {
	struct hghca_queue queue;
	struct hghca_dbr dbr;
	struct page_pool *pool;
	struct page **pages;
	u32 buf_len;			/* longest frame, bytes; of both directions */
	u32 head;
	u32 tail;
	u64 no_memory;			/* buffers that there was no memory for */
	struct timer_list refill_timer;	/* after such */
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
	bool open;			/* the rings are there; under RTNL */

	struct hghca_hwmr mr;		/* all memory, for the QP's PD */
	struct hghca_net_cq cq;
	struct hghca_hwqp hwqp;
	struct hghca_net_tx tx;
	struct hghca_net_rx rx;

	struct mutex port_lock;		/* SET_PORT and what it says */
	u8 mac[ETH_ALEN];
	u32 mtu;
	u32 filter;			/* HGHCA_PORT_PROMISC, HGHCA_PORT_ALLMULTI */
	struct work_struct filter_work;
	struct delayed_work restart_work;	/* after a fault of the QP */
	u64 restarts;			/* under RTNL */
};

/* netdev.c */
void hghca_netdev_init(struct hghca_dev *hdev);
int hghca_netdev_register(struct hghca_dev *hdev);
void hghca_netdev_unregister(struct hghca_dev *hdev);

/* netring.c */
int hghca_netring_open(struct hghca_netdev *nd);
void hghca_netring_close(struct hghca_netdev *nd);
netdev_tx_t hghca_netring_xmit(struct sk_buff *skb, struct net_device *netdev);
void hghca_netring_refill(struct timer_list *timer);
int hghca_netring_poll(struct napi_struct *napi, int budget);

/* dcb.c */
extern const struct dcbnl_rtnl_ops hghca_dcbnl_ops;

/* A QP that fails again and again does not keep the system busy. */
#define HGHCA_NET_RESTART_DELAY	HZ

/* The raw Ethernet QP or its CQ failed.  Any context. */
static inline void hghca_netdev_fault(struct hghca_netdev *nd)
{
	schedule_delayed_work(&nd->restart_work, HGHCA_NET_RESTART_DELAY);
}

#endif /* HGHCA_NETDEV_H */
