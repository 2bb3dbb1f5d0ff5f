/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * JingZhao HCA driver: verbs objects, and the verbs.
 *
 *	ucontext.c, gid.c, port.c	smaller verbs
 *	mmap.c		mappings of users
 *	access.c, mr.c, fastreg.c, mw.c, dm.c	memory regions; regions for
 *			REG_MR; memory windows; device memory
 *	odp.c, odptree.c	on-demand regions; on-demand regions of all memory; odp.h
 *	partition.c	partitions, to whose regions PART appends records
 *	uapi.c		additions of the driver to the user verbs
 *	cq.c, poll.c	completion queues; their consumer side
 *	qp.c, qpstate.c	queue pairs; their states and attributes
 *	srq.c, xrcd.c	shared receive queues; XRC domains
 *	rwq.c		receive work queues, and QPs that distribute frames over them
 *	post.c		posting
 *	ah.c		address handles
 *	mcast.c, flow.c	multicast groups; flow rules of raw packet QPs
 *	counters.c, restrack.c, mad.c	counters; data of objects; performance
 *			management of the port
 */
#ifndef HGHCA_VERBS_H
#define HGHCA_VERBS_H

#include <rdma/ib_verbs.h>
#include <rdma/rdma_counter.h>

#include "hghca.h"

struct hghca_ucontext {
	struct ib_ucontext ibuctx;
	struct hghca_uar uar;
	struct rdma_user_mmap_entry *uar_entry;
	struct hghca_user_pages dbr_pages;
};

/**
 * struct hghca_mmap_entry - memory of the device that a user can map
 * @rdma_entry: its offset and size
 * @phys: its physical address
 * @free: frees it, and the entry, after its last user
 */
struct hghca_mmap_entry {
	struct rdma_user_mmap_entry rdma_entry;
	phys_addr_t phys;
	void (*free)(struct hghca_dev *hdev, struct hghca_mmap_entry *entry);
};

/* Device memory of a user; @mmap exists until it has no mapping either. */
struct hghca_dm {
	struct ib_dm ibdm;
	struct hghca_mmap_entry *mmap;
};

/**
 * struct hghca_user_partition - a partition; struct hghca_partition is that of the device
 * @ibpd: its PD, which it keeps
 * @key: its index and a tag
 * @log_regions: log2 of the number of its regions
 */
struct hghca_user_partition {
	struct ib_pd *ibpd;
	u32 key;
	u8 log_regions;
};

/* @windows: number of windows, bound or not. */
struct hghca_pd {
	struct ib_pd ibpd;
	u32 pdn;
	atomic_t windows;
};

struct hghca_xrcd {
	struct ib_xrcd ibxrcd;
	u32 xrcdn;
};

/**
 * struct hghca_fast_pages - the page list of a region for fast registration
 * @list: DMA addresses of pages, for REG_MR; NULL for another region
 * @dma: DMA address of @list
 * @max: capacity of @list
 * @count: pages that hghca_map_mr_sg() has listed
 */
struct hghca_fast_pages {
	__le64 *list;
	dma_addr_t dma;
	u32 max;
	u32 count;
};

struct hghca_odp;

/**
 * struct hghca_mr - a memory region
 * @ibmr: the verbs object
 * @hw: the region in the device
 * @umem: user region: the memory, NULL for no bytes; otherwise NULL
 * @attr: user region: its attributes
 * @virt_addr: user region: its I/O virtual address
 * @access: user region: its IB_ACCESS_* without optional flags
 * @kernel: kernel region: for fast registration, or all memory
 * @pages: region for fast registration: its page list
 * @odp: of an on-demand region, otherwise NULL; @umem is its umem then, that of no memory
 *	for a region of all
 */
struct hghca_mr {
	struct ib_mr ibmr;
	struct hghca_hwmr hw;
	struct ib_umem *umem;
	struct hghca_hwmr_attr attr;
	u64 virt_addr;
	int access;
	bool kernel;
	struct hghca_fast_pages pages;
	struct hghca_odp *odp;
};

struct hghca_mw {
	struct ib_mw ibmw;
	struct hghca_hwmr hw;
};

/* gid.c: the addresses of a path over IPv4 */
struct hghca_path {
	u8 smac[ETH_ALEN];
	__be32 sip;
	__be32 dip;
};

/**
 * struct hghca_ah - an address handle
 * @ibah: the verbs object
 * @ud: the UD unit of a send to this address, without dqpn and qkey
 * @base: the same in the form without GIDs, for a device without a GID table; otherwise 0
 */
struct hghca_ah {
	struct ib_ah ibah;
	struct hghca_ud_gid_unit ud;
	struct hghca_ud_unit base;
};

/**
 * struct hghca_cq - a completion queue
 * @ibcq: the verbs object
 * @hw: the part that events use, with its number
 * @uctx: the context of the user, or NULL for a kernel CQ
 * @umem: user CQ: the buffer
 * @dbr: the doorbell record with the consumer index
 * @resize_lock: serializes RESIZE_CQ and hghca_cq_purge(); taken before @lock
 * @lock: protects the consumer side, which is all fields below; taken in interrupts,
 *	before &hghca_wq.lock of a receive queue and &hghca_srq.lock
 * @queue: the buffer
 * @log_size: log2 of its CQEs
 * @log_cqe: log2 of a CQE's bytes; the CQEs of a kernel CQ have no timestamps
 * @resize: the new buffer during RESIZE_CQ, otherwise NULL
 * @resize_log_size: log2 of the CQEs of @resize
 * @cons_index: CQEs consumed, free-running
 * @dead: being destroyed; must not be armed
 * @armed: without HGHCA_CAP_CQ_ARM: the next event calls the handler; see
 *	hghca_cq_takes_event()
 * @missed: the same: an event of a user CQ came while it was not armed
 * @event_work: calls the handler of a CQ that was armed too late for the event
 * @reserved: CQEs of unsignaled sends, for which a kernel buffer has room beyond cqe of
 *	@ibcq; under @resize_lock
 * @qps: kernel QPs that complete to this CQ, by QPN; entries are removed
 *	under @lock, so that a QP found under @lock stays valid
 */
struct hghca_cq {
	struct ib_cq ibcq;
	struct hghca_hwcq hw;
	struct hghca_ucontext *uctx;
	struct ib_umem *umem;
	struct hghca_dbr dbr;
	struct mutex resize_lock;	/* see above */
	spinlock_t lock;		/* see above */
	struct hghca_queue queue;
	u32 log_size;
	u32 log_cqe;
	struct hghca_queue *resize;
	u32 resize_log_size;
	u32 cons_index;
	bool dead;
	bool armed;
	bool missed;
	struct work_struct event_work;
	u32 reserved;
	struct xarray qps;
};

/**
 * struct hghca_wr - data of a posted work request, kept until it completes
 * @wr_id: wr_id of the ULP
 * @length: bytes of its data list
 * @opcode: HGHCA_OPCODE_* of a send
 * @silent: an unsignaled send, whose CQE is dropped: the device generates one for each
 *	WQE, without HGHCA_CAP_CQ_UPDATE
 */
struct hghca_wr {
	u64 wr_id;
	u32 length;
	u8 opcode;
	bool silent;
};

/**
 * struct hghca_wq - one direction of a QP
 * @lock: protects posting: @head, and the slots and @wrs that are not posted; taken in
 *	interrupts
 * @queue: the buffer
 * @num_wqes: a power of two, or 0
 * @spare: slots that stay free: one of a receive queue without a doorbell record, whose
 *	first 16 bytes of zero end the WQEs posted
 * @log_stride: log2 of a slot's bytes
 * @room: limits of a WQE; for a user, only whether all WQEs are signaled
 * @wrs: kernel QP: posted requests, by slot
 * @head: kernel QP: WQEs posted, free-running
 * @tail: kernel QP: WQEs completed, free-running; written only by the poller,
 *	under the lock of the CQ
 */
struct hghca_wq {
	spinlock_t lock;		/* see above */
	struct hghca_queue queue;
	u32 num_wqes;
	u32 spare;
	u32 log_stride;
	struct hghca_wqe_room room;
	struct hghca_wr *wrs;
	u32 head;
	u32 tail;
};

/* Slots that stay free in a receive queue; see struct hghca_wq. */
static inline u32 hghca_rq_spare(const struct hghca_dev *hdev)
{
	return hdev->limits.caps & HGHCA_CAP_DBR ? 0 : 1;
}

/**
 * struct hghca_qp - a queue pair
 * @ibqp: the verbs object
 * @hw: the part that events use, with its number
 * @user: a QP of a user, or an XRC target, which ib_core keeps for users
 * @vendor_ops: sends and accepts PART, READ_POINTER and READ_CONSISTENT
 * @uctx: the context of the user; NULL for a kernel QP, and for an XRC target, which
 *	may outlive the process that created it
 * @umem: user QP: the buffer of both queues
 * @rq_offset: user QP: bytes before the receive queue in the MR of @sq, which is then that
 *	of both queues; or 0
 * @dbr: the doorbell record with the number of WQEs posted to @rq; a device without
 *	HGHCA_CAP_DBR does not read it
 * @lock: protects @state, @qpc and @special
 * @state: state as last set or queried; posting reads it without the lock
 * @qpc: the context as last set, with which the next transition starts
 * @special: the device directs packets to QP 1 to this QP
 * @cap: the granted capabilities
 * @sq: send queue
 * @rq: receive queue, without WQEs if the QP has an SRQ
 * @flush_recv: the QP is in ERR: a receive posted now needs a doorbell to be
 *	flushed; under @rq.lock
 * @faults: page faults of the requester and the responder
 * @rss_group: group of a QP with a table of receive work queues; such a QP uses only
 *	@ibqp, @hw, @user, @uctx, and the signaling of @sq
 */
struct hghca_qp {
	struct ib_qp ibqp;
	struct hghca_hwqp hw;
	bool user;
	bool vendor_ops;
	struct hghca_ucontext *uctx;
	struct ib_umem *umem;
	u32 rq_offset;
	struct hghca_dbr dbr;
	struct mutex lock;		/* see above */
	enum ib_qp_state state;
	struct hghca_qpc qpc;
	bool special;
	struct ib_qp_cap cap;
	struct hghca_wq sq;
	struct hghca_wq rq;
	bool flush_recv;
	struct hghca_fault faults[2];
	u32 rss_group;
};

/**
 * struct hghca_rwq - a receive work queue of a user
 * @ibwq: the verbs object
 * @hw: the part that events use, with its number, which is a QPN
 * @uctx: the context of the user
 * @umem: the buffer
 * @dbr: the doorbell record with the number of WQEs posted
 * @lock: protects the state in @ibwq and in the device
 * @rq: the queue over the buffer
 */
struct hghca_rwq {
	struct ib_wq ibwq;
	struct hghca_hwqp hw;
	struct hghca_ucontext *uctx;
	struct ib_umem *umem;
	struct hghca_dbr dbr;
	struct mutex lock;		/* see above */
	struct hghca_wq rq;
};

/* A table of receive work queues.  ib_core has all of its data. */
struct hghca_rwq_table {
	struct ib_rwq_ind_table ibtable;
};

/**
 * struct hghca_srq_slot - a slot of a kernel SRQ
 * @wr_id: posted slot: wr_id of the ULP
 * @length: posted slot: bytes of its scatter list
 * @next: free slot: its successor in the chain
 * @posted: the WQE is posted; otherwise the slot is in the chain of free slots
 */
struct hghca_srq_slot {
	u64 wr_id;
	u32 length;
	u32 next;
	bool posted;
};

/**
 * struct hghca_srq - a shared receive queue
 * @ibsrq: the verbs object
 * @hw: the part that events use, with its number
 * @uctx: the context of the user, or NULL for a kernel SRQ
 * @umem: user SRQ: the buffer
 * @dbr: the doorbell record with the number of WQEs posted
 * @modify_lock: protects @queue, @umem and @num_wqes, which RESIZE_SRQ changes
 *	for a user
 * @queue: the buffer
 * @num_wqes: a power of two of at least 2; one WQE always stays free
 * @log_stride: log2 of a slot's bytes
 * @room: limits of a WQE
 * @lock: kernel SRQ: protects the chain of free slots, which is all fields below;
 *	taken in interrupts, after &hghca_cq.lock
 * @slots: the slots of the queue
 * @first_free: the slot to post next
 * @last_free: the slot after which completed ones are appended
 * @posted: WQEs posted, free-running
 */
struct hghca_srq {
	struct ib_srq ibsrq;
	struct hghca_hwsrq hw;
	struct hghca_ucontext *uctx;
	struct ib_umem *umem;
	struct hghca_dbr dbr;
	struct mutex modify_lock;	/* see above */
	struct hghca_queue queue;
	u32 num_wqes;
	u32 log_stride;
	struct hghca_wqe_room room;
	spinlock_t lock;		/* see above */
	struct hghca_srq_slot *slots;
	u32 first_free;
	u32 last_free;
	u32 posted;
};

static inline u32 hghca_wq_bytes(const struct hghca_wq *wq)
{
	return wq->num_wqes << wq->log_stride;
}

static inline struct hghca_dev *to_hdev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct hghca_dev, ibdev);
}

static inline struct hghca_ucontext *to_huctx(struct ib_ucontext *ibuctx)
{
	return container_of(ibuctx, struct hghca_ucontext, ibuctx);
}

static inline struct hghca_pd *to_hpd(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct hghca_pd, ibpd);
}

static inline struct hghca_dm *to_hdm(struct ib_dm *ibdm)
{
	return container_of(ibdm, struct hghca_dm, ibdm);
}

static inline struct hghca_mr *to_hmr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct hghca_mr, ibmr);
}

static inline struct hghca_mw *to_hmw(struct ib_mw *ibmw)
{
	return container_of(ibmw, struct hghca_mw, ibmw);
}

/* A value of enum ib_rate, or a faster rate that the kernel does not define yet. */
static inline bool hghca_is_static_rate(u8 rate)
{
	return rate <= HGHCA_STATIC_RATE_MAX && rate != HGHCA_STATIC_RATE_NONE;
}

static inline struct hghca_ah *to_hah(struct ib_ah *ibah)
{
	return container_of(ibah, struct hghca_ah, ibah);
}

static_assert(sizeof(struct hghca_ud_unit) == sizeof(struct hghca_ud_gid_unit) &&
	      offsetof(struct hghca_ud_unit, dqpn) == offsetof(struct hghca_ud_gid_unit, dqpn) &&
	      offsetof(struct hghca_ud_unit, qkey) == offsetof(struct hghca_ud_gid_unit, qkey));

/* The UD unit that the device reads, in one of its forms. */
static inline const struct hghca_ud_gid_unit *hghca_ah_unit(const struct hghca_ah *hah)
{
	return hah->base.port ? (const void *)&hah->base : &hah->ud;
}

static inline struct hghca_cq *to_hcq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct hghca_cq, ibcq);
}

static inline struct hghca_qp *to_hqp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct hghca_qp, ibqp);
}

/* 0 without a CQ: XRC initiators do not receive, and targets use the CQs of their SRQs. */
static inline u32 hghca_cqn_of(struct ib_cq *ibcq)
{
	return ibcq ? to_hcq(ibcq)->hw.cqn : 0;
}

static inline struct hghca_xrcd *to_hxrcd(struct ib_xrcd *ibxrcd)
{
	return container_of(ibxrcd, struct hghca_xrcd, ibxrcd);
}

static inline struct hghca_srq *to_hsrq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct hghca_srq, ibsrq);
}

/* ucontext.c */
int hghca_pdn_alloc(struct hghca_dev *hdev, u32 *pdn);
void hghca_pdn_free(struct hghca_dev *hdev, u32 pdn);
int hghca_query_ucontext(struct ib_ucontext *ibuctx, struct uverbs_attr_bundle *attrs);
int hghca_alloc_ucontext(struct ib_ucontext *ibuctx, struct ib_udata *udata);
void hghca_dealloc_ucontext(struct ib_ucontext *ibuctx);
void hghca_disassociate_ucontext(struct ib_ucontext *ibuctx);
int hghca_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int hghca_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int hghca_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
		       struct ib_udata *udata);
void hghca_get_dev_fw_str(struct ib_device *ibdev, char *str);
extern const struct attribute_group hghca_attr_group;

/* gid.c */
int hghca_add_gid(const struct ib_gid_attr *attr, void **context);
int hghca_del_gid(const struct ib_gid_attr *attr, void **context);
int hghca_path_resolve(const struct rdma_ah_attr *ah, struct hghca_path *path);

/* mmap.c */
int hghca_uar_create(struct hghca_ucontext *uctx);
void hghca_uar_destroy(struct hghca_ucontext *uctx);
int hghca_mmap(struct ib_ucontext *ibuctx, struct vm_area_struct *vma);
void hghca_mmap_free(struct rdma_user_mmap_entry *rdma_entry);

/* access.c */
#define HGHCA_MR_ACCESS_SUPPORTED	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | \
					 IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC | \
					 IB_ZERO_BASED)
u32 hghca_access_from_ib(int ib_access);
int hghca_mr_check_access(struct hghca_dev *hdev, int ib_access);

/* mr.c */
struct ib_mr *hghca_get_dma_mr(struct ib_pd *ibpd, int ib_access);
int hghca_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);
struct ib_mr *hghca_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 virt_addr,
				int ib_access, struct ib_dmah *dmah, struct ib_udata *udata);
struct ib_mr *hghca_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 virt_addr,
				       int fd, int ib_access, struct ib_dmah *dmah,
				       struct uverbs_attr_bundle *attrs);
struct ib_mr *hghca_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start, u64 length,
				  u64 virt_addr, int ib_access, struct ib_pd *ibpd,
				  struct ib_udata *udata);

/*
 * odp.c, odptree.c: on-demand regions, if kernel and device support them.
 * advise and stats: for ib_device_ops.
 */
#if IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING)
int hghca_odp_init(struct hghca_dev *hdev);
void hghca_odp_cleanup(struct hghca_dev *hdev);
void hghca_odp_init_qp(struct hghca_dev *hdev, struct hghca_qp *hqp);
void hghca_odp_describe(const struct hghca_dev *hdev, struct ib_device_attr *attr);
struct ib_mr *hghca_odp_reg_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 virt_addr,
			       int ib_access);
void hghca_odp_dereg_mr(struct hghca_mr *mr);
int hghca_advise_mr(struct ib_pd *ibpd, enum ib_uverbs_advise_mr_advice advice, u32 flags,
		    struct ib_sge *sg_list, u32 num_sge, struct uverbs_attr_bundle *attrs);
int hghca_fill_stat_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr);
#else
static inline int hghca_odp_init(struct hghca_dev *hdev)
{
	return 0;
}

static inline void hghca_odp_cleanup(struct hghca_dev *hdev) {}
static inline void hghca_odp_init_qp(struct hghca_dev *hdev, struct hghca_qp *hqp) {}
static inline void hghca_odp_describe(const struct hghca_dev *hdev, struct ib_device_attr *attr) {}

static inline struct ib_mr *hghca_odp_reg_mr(struct ib_pd *ibpd, u64 start, u64 length,
					     u64 virt_addr, int ib_access)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static inline void hghca_odp_dereg_mr(struct hghca_mr *mr) {}
#endif

/* dm.c */
int hghca_dm_init(struct hghca_dev *hdev);
void hghca_dm_cleanup(struct hghca_dev *hdev);
struct ib_dm *hghca_alloc_dm(struct ib_device *ibdev, struct ib_ucontext *ibuctx,
			     struct ib_dm_alloc_attr *attr, struct uverbs_attr_bundle *attrs);
void hghca_dm_describe(const struct hghca_dm *dm, u64 length, struct hghca_dm_resp *resp);
int hghca_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs);
struct ib_mr *hghca_reg_dm_mr(struct ib_pd *ibpd, struct ib_dm *ibdm, struct ib_dm_mr_attr *attr,
			      struct uverbs_attr_bundle *attrs);

/* partition.c.  May sleep. */
struct hghca_user_partition *hghca_create_partition(struct ib_pd *ibpd,
						    const struct hghca_partition_desc *desc,
						    const struct hghca_partition_range *ranges,
						    u32 num_ranges);
void hghca_destroy_partition(struct hghca_user_partition *upart);
int hghca_query_partition(const struct hghca_user_partition *upart, u32 *filled);

/* uapi.c: additions of the driver to the user verbs */
extern const struct uapi_definition hghca_uapi_defs[];

/* fastreg.c.  describe: any context. */
#define HGHCA_FAST_REG_PAGES_MAX	1024
struct ib_mr *hghca_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_num_sg);
int hghca_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int sg_nents,
		    unsigned int *sg_offset);
void hghca_fast_pages_free(struct hghca_dev *hdev, struct hghca_fast_pages *pages);
int hghca_fast_reg_describe(const struct hghca_limits *limits, const struct ib_reg_wr *wr,
			    struct hghca_wqe_reg *reg);

/* mw.c */
int hghca_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata);
int hghca_dealloc_mw(struct ib_mw *ibmw);

/* port.c */
void hghca_port_dispatch(struct hghca_dev *hdev, bool active);
void hghca_report_port_event(struct ib_device *ibdev, struct net_device *netdev,
			     unsigned long event);
int hghca_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr);
int hghca_query_port_speed(struct ib_device *ibdev, u32 port, u64 *speed);
int hghca_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey);
int hghca_get_port_immutable(struct ib_device *ibdev, u32 port,
			     struct ib_port_immutable *immutable);
enum rdma_link_layer hghca_get_link_layer(struct ib_device *ibdev, u32 port);

/* counters.c */
struct rdma_hw_stats *hghca_alloc_hw_device_stats(struct ib_device *ibdev);
struct rdma_hw_stats *hghca_alloc_hw_port_stats(struct ib_device *ibdev, u32 port);
int hghca_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port, int index);

/* A counter of QPs, which ib_core allocates. */
struct hghca_rdma_counter {
	struct rdma_counter rdma_counter;
};

void hghca_counter_init(struct rdma_counter *counter);
int hghca_counter_bind_qp(struct rdma_counter *counter, struct ib_qp *ibqp, u32 port);
int hghca_counter_unbind_qp(struct ib_qp *ibqp, u32 port);
int hghca_counter_dealloc(struct rdma_counter *counter);
struct rdma_hw_stats *hghca_counter_alloc_stats(struct rdma_counter *counter);
int hghca_counter_update_stats(struct rdma_counter *counter);

/* restrack.c */
int hghca_fill_res_qp_entry(struct sk_buff *msg, struct ib_qp *ibqp);
int hghca_fill_res_qp_entry_raw(struct sk_buff *msg, struct ib_qp *ibqp);
int hghca_fill_res_cq_entry(struct sk_buff *msg, struct ib_cq *ibcq);
int hghca_fill_res_cq_entry_raw(struct sk_buff *msg, struct ib_cq *ibcq);
int hghca_fill_res_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr);
int hghca_fill_res_mr_entry_raw(struct sk_buff *msg, struct ib_mr *ibmr);
int hghca_fill_res_srq_entry(struct sk_buff *msg, struct ib_srq *ibsrq);
int hghca_fill_res_srq_entry_raw(struct sk_buff *msg, struct ib_srq *ibsrq);

/* mad.c */
int hghca_process_mad(struct ib_device *ibdev, int flags, u32 port, const struct ib_wc *in_wc,
		      const struct ib_grh *in_grh, const struct ib_mad *in, struct ib_mad *out,
		      size_t *out_size, u16 *out_pkey_index);

/* cq.c */
int hghca_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		    struct uverbs_attr_bundle *attrs);
int hghca_create_user_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
			 struct uverbs_attr_bundle *attrs);
int hghca_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int hghca_pre_destroy_cq(struct ib_cq *ibcq);
void hghca_post_destroy_cq(struct ib_cq *ibcq);
int hghca_resize_user_cq(struct ib_cq *ibcq, unsigned int cqe, struct ib_udata *udata);
int hghca_modify_cq(struct ib_cq *ibcq, u16 count, u16 period);
int hghca_cq_reserve(struct hghca_cq *hcq, u32 cqes);
void hghca_cq_unreserve(struct hghca_cq *hcq, u32 cqes);
void hghca_cq_completion(struct hghca_hwcq *hwcq);
void hghca_cq_event(struct hghca_hwcq *hwcq, u8 syndrome);

/*
 * poll.c.  attach and detach: a kernel QP to and from its CQs; detach also purges.
 * purge: drops the completions of a QP in RESET.
 */
void hghca_flush_work(struct work_struct *work);
int hghca_poll_cq(struct ib_cq *ibcq, int num_entries, struct ib_wc *wc);
int hghca_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);
bool hghca_cq_takes_event(struct hghca_cq *hcq);
int hghca_cq_attach(struct hghca_cq *hcq, struct hghca_qp *hqp);
void hghca_cq_detach(struct hghca_cq *hcq, struct hghca_qp *hqp);
void hghca_cq_purge(struct hghca_cq *hcq, struct hghca_qp *hqp);
void hghca_cq_hand_over(struct hghca_queue *queue, u32 log_size);
void hghca_cq_switch(struct hghca_cq *hcq);

/* qp.c */
int hghca_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr, struct ib_udata *udata);
int hghca_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);

/* qpstate.c.  May sleep, except event.  reset: from any state to RESET; cannot fail. */
void hghca_qp_event(struct hghca_hwqp *hwqp, u8 type);
void hghca_qp_reset(struct hghca_qp *hqp);
u8 hghca_qp_service(const struct hghca_qp *hqp);
int hghca_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int attr_mask,
		    struct ib_udata *udata);
int hghca_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int attr_mask,
		   struct ib_qp_init_attr *init_attr);

/* post.c.  flush: the QP is in ERR; flushes receives that are posted from now on. */
void hghca_qp_flush(struct hghca_qp *hqp);
void hghca_wq_clear(const struct hghca_wq *rq);
int hghca_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		    const struct ib_send_wr **bad_wr);
int hghca_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		    const struct ib_recv_wr **bad_wr);

/* srq.c.  complete: returns a posted WQE; any context, interrupts off. */
void hghca_srq_event(struct hghca_hwsrq *hwsrq, u8 type);
int hghca_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init, struct ib_udata *udata);
int hghca_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		     enum ib_srq_attr_mask attr_mask, struct ib_udata *udata);
int hghca_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int hghca_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);
int hghca_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			const struct ib_recv_wr **bad_wr);
int hghca_srq_complete(struct hghca_srq *hsrq, u32 offset, struct hghca_wr *wr);

/* xrcd.c */
int hghca_alloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata);
int hghca_dealloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata);

/* mcast.c.  May sleep. */
int hghca_mcast_init(struct hghca_dev *hdev);
void hghca_mcast_cleanup(struct hghca_dev *hdev);
int hghca_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);
int hghca_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);

/* flow.c.  May sleep. */
int hghca_flow_from_ib(struct hghca_flow *flow, const struct ib_flow_attr *attr);
struct ib_flow *hghca_create_flow(struct ib_qp *ibqp, struct ib_flow_attr *attr,
				  struct ib_udata *udata);
int hghca_destroy_flow(struct ib_flow *ibflow);

/*
 * rwq.c.  May sleep, except event.  wq_init_user: sets the size of one queue of a user.
 */
void hghca_rwq_event(struct hghca_hwqp *hwqp, u8 type);
int hghca_wq_init_user(struct hghca_dev *hdev, struct hghca_wq *wq, u32 num_wqes, u8 log_stride,
		       u32 max_wr);
struct ib_wq *hghca_create_wq(struct ib_pd *ibpd, struct ib_wq_init_attr *init,
			      struct ib_udata *udata);
int hghca_modify_wq(struct ib_wq *ibwq, struct ib_wq_attr *attr, u32 attr_mask,
		    struct ib_udata *udata);
int hghca_destroy_wq(struct ib_wq *ibwq, struct ib_udata *udata);
int hghca_create_rwq_ind_table(struct ib_rwq_ind_table *ibtable,
			       struct ib_rwq_ind_table_init_attr *init, struct ib_udata *udata);
int hghca_destroy_rwq_ind_table(struct ib_rwq_ind_table *ibtable);
int hghca_create_rss_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init, struct ib_udata *udata);
void hghca_destroy_rss_qp(struct ib_qp *ibqp);
void hghca_query_rss_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr,
			struct ib_qp_init_attr *init);

/* ah.c */
int hghca_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *attr, struct ib_udata *udata);
int hghca_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int hghca_destroy_ah(struct ib_ah *ibah, u32 flags);

#endif /* HGHCA_VERBS_H */
