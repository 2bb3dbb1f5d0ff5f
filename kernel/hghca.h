/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * JingZhao HCA driver: the device.
 *
 * Each layer has a header.  Calls go down: to files further down in this list,
 * or in the same folder.  Events go up through callbacks.
 *
 *	pci.c		the bus: BARs, DMA mask, vectors; the only file that knows PCI
 *	main.c		start and stop of a device, its ib_device
 *	devlink.c	versions and settings of the device for devlink
 *	verbs/verbs.h, net/netdev.h	what ib_core calls; the Ethernet device of the
 *			port.  Neither calls the other.
 *	hw/hw.h		registers, commands, ICM, event queues, keys, queues
 *	trace.h		tracepoints
 *
 * <hghca_hw.h> defines the hardware interface.  These headers define only data of
 * the driver.
 */
#ifndef HGHCA_H
#define HGHCA_H

#include <linux/bitfield.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/dma-mapping.h>
#include <linux/idr.h>
#include <linux/io.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/netdevice.h>
#include <linux/rbtree.h>
#include <linux/refcount.h>
#include <linux/semaphore.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <net/devlink.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

#include <hghca_hw.h>
#include <uapi/rdma/hghca-abi.h>

#include "trace.h"
#include "hw/hw.h"

#define HGHCA_DRV_NAME		"hghca"

#define HGHCA_PORT_NUM		1

/* Queue pair numbers with a fixed use.  Other QPs start at the number of reserved ones. */
#define HGHCA_QPN_GSI		1
#define HGHCA_QPN_RAW_ETH	2

struct hghca_dev;
struct hghca_ucontext;

/* ------------------------------------------------------------------ */
/* mcast.c: multicast groups                                            */

/**
 * struct hghca_mcast - the table of multicast groups
 * @lock: protects this structure and the table in the device
 * @groups: struct hghca_mcast_group, by GID
 * @entries: struct hghca_mcast_group, by index of their entries
 * @mailbox: for WRITE_MGM
 */
struct hghca_mcast {
	struct mutex lock;		/* see above */
	struct rb_root groups;
	struct xarray entries;
	struct hghca_mailbox *mailbox;
};

/* ------------------------------------------------------------------ */
/* The device                                                           */

/**
 * struct hghca_bus - data from the bus front; see pci.c
 * @dev: the device for the DMA API
 * @enable_dma: allows DMA and interrupts of the device, or blocks both, even if the device
 *	does not respond; blocking works in any context
 * @regs: BAR0, mapped
 * @uar_phys: BAR2, bus address for the CPU
 * @uar_size: BAR2, bytes
 * @num_irqs: interrupts allocated; the first is for command and asynchronous events
 * @irqs: Linux interrupt numbers
 * @hw_rev: revision of the device on its bus
 * @vendor_id: for ib_device_attr
 * @vendor_part_id: for ib_device_attr
 * @rsnic: it is the device of the RSNIC document
 * @name: name on the bus
 */
struct hghca_bus {
	struct device *dev;
	void (*enable_dma)(struct device *dev, bool enable);
	void __iomem *regs;
	phys_addr_t uar_phys;
	resource_size_t uar_size;
	unsigned int num_irqs;
	int irqs[64];
	u32 hw_rev;
	u32 vendor_id;
	u32 vendor_part_id;
	bool rsnic;
	const char *name;
};

/**
 * struct hghca_dev - one adapter
 * @ibdev: must be first
 * @bus: data from the bus front
 * @uar: the kernel's UAR page, mapped
 * @db_lock: keeps the two writes of a doorbell together on a system without
 *	64-bit writes; see hghca_ring()
 * @limits: see &struct hghca_limits
 * @fail_lock: protects @failed, and the HCR from a command after @failed is set
 * @failed: the device was given up and does no more DMA; commands return -EIO
 * @cmd: the command interface
 * @icm: tables
 * @icm_node: in the list of the shrinker of ICM
 * @cqs: CQs
 * @qps: QPs, and receive work queues
 * @srqs: SRQs
 * @mcast: multicast groups
 * @pd_ida: PD numbers
 * @xrcd_ida: numbers of XRC domains
 * @uar_ida: UAR pages
 * @mpt_ida: MPT indices
 * @counter_ida: counter sets
 * @flow_ida: flow rules
 * @rss_ida: RSS groups
 * @rwq_table_ida: tables of receive work queues
 * @partition_ida: indices of partitions
 * @partition_tags: last tag used, by index of the partition; the owner of the index writes it
 * @mpt_tags: last tag used, by MPT index; the owner of the index writes it
 * @idle_keys: keys and MTTs of regions that are gone
 * @mtt_pool: MTT indices
 * @odp_mrs: on-demand regions by MPT index, struct hghca_mr
 * @odp_wq: handles their page faults; NULL without HGHCA_CAP_ODP
 * @dm_pool: device memory, by its offset in BAR2; NULL without device memory
 * @dm: device memory, mapped
 * @dbr_pool: kernel doorbell records
 * @pdn: PD of the driver's own objects: EQs, CQs, the raw Ethernet QP
 * @num_comp_eqs: completion EQs
 * @cmd_eq: command events
 * @async_eq: asynchronous events
 * @fault_eq: PAGE_FAULT events, with HGHCA_CAP_ODP
 * @comp_eqs: completion EQs; see hghca_comp_eqn()
 * @event_handlers: by event type; see hghca_handle_event(); NULL without a handler
 * @netdev: the net device of the port; NULL as long as hghca_bind_register() finds none
 * @mac: without HGHCA_CAP_PORT: the MAC address of the port
 * @netdev_nb: the same: finds the net device with this address
 * @port_active: the same: the port is active; under RTNL
 * @port_event: raises IB_EVENT_PORT_ACTIVE or IB_EVENT_PORT_ERR
 * @port_mbps: speed of the link
 * @link_work: queries the port after PORT_CHANGE
 * @fail_work: raises IB_EVENT_DEVICE_FATAL
 * @flush_work: flushes requests posted to a failed device; see hghca_flush_work()
 * @fw_version: major 31:16, minor 15:0
 * @board_id: from QUERY_ADAPTER
 * @node_guid: from QUERY_ADAPTER; of a device of revision 0 from NodeInfo
 * @registered: ib_register_device() has succeeded
 * @devlink: see devlink.c
 */
struct hghca_dev {
	struct ib_device ibdev;
	struct hghca_bus bus;
	void __iomem *uar;
	spinlock_t db_lock;		/* see above */
	struct hghca_limits limits;
	spinlock_t fail_lock;		/* see above; taken in interrupts */
	bool failed;
	struct hghca_cmd_if cmd;
	struct hghca_icm_table icm[HGHCA_ICM_KINDS];
	struct list_head icm_node;

	struct hghca_obj_table cqs;
	struct hghca_obj_table qps;
	struct hghca_obj_table srqs;
	struct hghca_mcast mcast;
	struct ida pd_ida;
	struct ida xrcd_ida;
	struct ida uar_ida;
	struct ida mpt_ida;
	struct ida counter_ida;
	struct ida flow_ida;
	struct ida rss_ida;
	struct ida rwq_table_ida;
	struct ida partition_ida;
	u32 partition_tags[HGHCA_PARTITIONS];
	u16 *mpt_tags;
	struct hghca_idle_keys idle_keys;
	struct gen_pool *mtt_pool;
	struct xarray odp_mrs;
	struct workqueue_struct *odp_wq;
	struct gen_pool *dm_pool;
	void __iomem *dm;
	struct dma_pool *dbr_pool;
	u32 pdn;

	unsigned int num_comp_eqs;
	struct hghca_eq cmd_eq;
	struct hghca_eq async_eq;
	struct hghca_eq fault_eq;
	struct hghca_eq *comp_eqs;
	hghca_event_handler event_handlers[HGHCA_EVENT_TYPES];

	struct net_device *netdev;
	u8 mac[ETH_ALEN];
	struct notifier_block netdev_nb;
	bool port_active;
	void (*port_event)(struct hghca_dev *hdev, bool active);
	u32 port_mbps;
	struct work_struct link_work;
	struct work_struct fail_work;
	struct work_struct flush_work;

	u32 fw_version;
	u64 board_id;
	__be64 node_guid;
	bool registered;
	struct devlink *devlink;
};

/* The device was given up: it does not respond, and memory that it used may be freed. */
static inline bool hghca_dev_has_failed(const struct hghca_dev *hdev)
{
	/* Pairs with the release in hghca_dev_cut_off(). */
	return smp_load_acquire(&hdev->failed);
}

/* Do commands come by the command queue? */
static inline bool hghca_cmdq_is_on(const struct hghca_dev *hdev)
{
	return hdev->cmd.queue.entries;
}

/* The net device of the port with a reference, or NULL. */
static inline struct net_device *hghca_netdev_get(struct hghca_dev *hdev)
{
	struct net_device *netdev;

	rcu_read_lock();
	netdev = READ_ONCE(hdev->netdev);
	dev_hold(netdev);
	rcu_read_unlock();
	return netdev;
}

/* Register @handler for events of @type.  Call this before hghca_eqs_init(). */
static inline void hghca_handle_event(struct hghca_dev *hdev, enum hghca_event_type type,
				      hghca_event_handler handler)
{
	hdev->event_handlers[type] = handler;
}

/* EQN for completion vector @vector, which must be below num_comp_vectors. */
static inline u32 hghca_comp_eqn(const struct hghca_dev *hdev, u32 vector)
{
	return hdev->comp_eqs[vector].eqn;
}

/**
 * hghca_ring - ring a doorbell in the kernel's UAR page
 * @hdev: the device
 * @offset: HGHCA_UAR_*
 * @low: low word
 * @high: high word, written last
 *
 * Orders all earlier writes to coherent memory before the doorbell, as
 * writeq() and writel() do.  Any context.
 */
static inline void hghca_ring(struct hghca_dev *hdev, u32 offset, u32 low, u32 high)
{
#ifdef CONFIG_64BIT
	writeq((u64)high << 32 | low, hdev->uar + offset);
#else
	unsigned long flags;

	spin_lock_irqsave(&hdev->db_lock, flags);
	writel(low, hdev->uar + offset);
	writel(high, hdev->uar + offset + 4);
	spin_unlock_irqrestore(&hdev->db_lock, flags);
#endif
}

/* @doorbell: both words. */
static inline void hghca_ring_sq_words(struct hghca_dev *hdev, u64 doorbell)
{
	trace_hghca_ring_sq(hdev, doorbell);
	hghca_ring(hdev, HGHCA_UAR_SQ_DB, lower_32_bits(doorbell), upper_32_bits(doorbell));
}

static inline void hghca_ring_sq(struct hghca_dev *hdev, u32 low, u32 qpn, u32 size0)
{
	u32 high = FIELD_PREP(HGHCA_SQ_DB_QPN_MASK, qpn) |
		   FIELD_PREP(HGHCA_SQ_DB_SIZE0_MASK, size0);

	hghca_ring_sq_words(hdev, (u64)high << 32 | low);
}

/* @cmd: HGHCA_CQ_ARM_SOLICITED or HGHCA_CQ_ARM_NEXT. */
static inline void hghca_ring_cq(struct hghca_dev *hdev, u32 cqn, u32 cons_index, u32 cmd)
{
	trace_hghca_ring_cq(hdev, cqn, cons_index, cmd);
	hghca_ring(hdev, HGHCA_UAR_CQ_ARM, cons_index,
		   FIELD_PREP(HGHCA_CQ_ARM_CMD_MASK, cmd) |
		   FIELD_PREP(HGHCA_CQ_ARM_CQN_MASK, cqn));
}

/* devlink.c */
#define HGHCA_DEVLINK_PARAMS	14	/* all of congestion control */

/**
 * struct hghca_devlink_param - a setting of congestion control
 * @param: for devlink
 * @offset: of its field in &struct hghca_congestion: one byte, or a big-endian word
 * @bit: the only bit of the word, if the parameter is a Boolean
 */
struct hghca_devlink_param {
	struct devlink_param param;
	size_t offset;
	u32 bit;
};

extern const struct hghca_devlink_param hghca_devlink_params[HGHCA_DEVLINK_PARAMS];

int hghca_devlink_register(struct hghca_dev *hdev);
void hghca_devlink_unregister(struct hghca_dev *hdev);

/* main.c */
struct hghca_dev *hghca_dev_alloc(void);
void hghca_dev_free(struct hghca_dev *hdev);
int hghca_hca_open(struct hghca_dev *hdev);
void hghca_hca_close(struct hghca_dev *hdev);
int hghca_dev_start(struct hghca_dev *hdev);
void hghca_dev_stop(struct hghca_dev *hdev);

#endif /* HGHCA_H */
