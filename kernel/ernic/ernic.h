/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The driver of ERNIC and ETRNIC: declarations that its files share.
 * include/ernic_hw.h has the registers and formats.
 *
 *	pci.c		the PCI function that carries the registers
 *	main.c, bind.c	the platform device; the net device with its MAC address
 *	ibdev.c, gid.c	the RDMA device; its GIDs
 *	hw.c, irq.c	registers; the interrupt
 *	qptable.c	QPs by number
 *	records.c	records of messages
 *	errors.c	the queue of fatal errors
 *	mr.c		memory regions, and the copies to and from them
 *	cq.c, qp.c, qpstate.c	completion queues, QPs and their states
 *	queue.c		what the hardware has of the queues of a QP
 *	post.c, poll.c	work requests, and their completions
 *	gsi.c		frames of QP 1
 *
 * Locks, each taken before the next ones: &ernic_qp.mutex, &ernic_cq.list_lock, the
 * locks of &ernic_qp.sq and &ernic_qp.rq, &ernic_dev.error_lock, then &ernic_cq.lock or
 * &ernic_dev.table_lock.
 */
#ifndef ERNIC_H
#define ERNIC_H

#include <linux/bitfield.h>
#include <linux/idr.h>
#include <linux/if_ether.h>
#include <linux/interrupt.h>
#include <linux/netdevice.h>
#include <linux/workqueue.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>
#include <uapi/rdma/ernic-abi.h>
#include "ernic_hw.h"

#define ERNIC_DRV_NAME		"ernic"
#define ERNIC_PORT		1
#define ERNIC_GIDS		8
#define ERNIC_MAX_WR		1023
#define ERNIC_MAX_SGE		16
#define ERNIC_MAX_CQE		65535
#define ERNIC_MAX_INLINE	1024
#define ERNIC_MAX_LENGTH	BIT_ULL(31)
#define ERNIC_PAGE		4096	/* of a list of pages */
#define ERNIC_QP_TABLE		256
#define ERNIC_NO_PD		0xffffff	/* of a QP: no region has it */

/* A message takes a record, and a receive queue entry that is posted: so many of all QPs. */
#define ERNIC_RECORDS_MAX	32768
/* Fatal errors that are not handled yet: at most one of each QP. */
#define ERNIC_ERRORS_MAX	1024

/* What &ernic_qp.fatal has for a code that does not exist. */
#define ERNIC_FATAL_UNKNOWN	U16_MAX

/* A QP 1 slot has room for a frame with a MAD. */
#define ERNIC_GSI_SLOT		512

/* What the driver serves.  A MAD is a message of QP 1 too. */
#define ERNIC_INTERRUPTS_USED \
	(BIT(ERNIC_INT_COMPLETION) | BIT(ERNIC_INT_RECEIVE) | BIT(ERNIC_INT_FATAL))

struct ernic_dev;

/* Coherent memory of the device. */
struct ernic_mem {
	void *cpu;
	dma_addr_t dma;
	size_t bytes;
};

/**
 * struct ernic_func - the function, whether or not there is an RDMA device
 * @dev: the platform device
 * @sysdev: the device that does the DMA
 * @registers: its registers
 * @irq: its interrupt
 * @is_ernic: the personality
 * @mac: its MAC address
 * @netdev_nb: of net devices
 * @netdev: that with the same MAC address, or NULL; under RTNL
 * @tracker: of the reference to @netdev
 * @edev: the RDMA device, or NULL; under RTNL, changed only by @work
 * @port_active: as last told; under RTNL
 * @work: makes and removes @edev when @netdev comes and goes
 * @leaving: the function is removed: no RDMA device is made any more
 */
struct ernic_func {
	struct device *dev;
	struct device *sysdev;
	void __iomem *registers;
	int irq;
	bool is_ernic;
	u8 mac[ETH_ALEN];
	struct notifier_block netdev_nb;
	struct net_device *netdev;
	netdevice_tracker tracker;
	struct ernic_dev *edev;
	bool port_active;
	struct delayed_work work;
	bool leaving;
};

/* A process has nothing of the device. */
struct ernic_ucontext {
	struct ib_ucontext ibuctx;
};

struct ernic_pd {
	struct ib_pd ibpd;
	u32 pdn;
};

/**
 * struct ernic_mr - a memory region
 * @ibmr: the verbs object
 * @edev: its device, which outlives it
 * @ref: the verbs object, and work requests that name it
 * @release: frees it
 * @umem: its memory; NULL for all memory of the kernel
 * @access: its IB_ACCESS_*
 * @first_byte: offset of its first byte in the first page
 * @pages: the pages, for the CPU
 * @bus: bus addresses of its parts of ERNIC_PAGE bytes
 * @num_bus: their number
 * @list: the same for the device, of a region with an entry that names pages
 * @entry: its entry of the protection domain table, or -1
 */
struct ernic_mr {
	struct ib_mr ibmr;
	struct ernic_dev *edev;
	struct kref ref;
	struct work_struct release;
	struct ib_umem *umem;
	int access;
	u32 first_byte;
	struct page **pages;
	u64 *bus;
	size_t num_bus;
	struct ernic_mem list;
	int entry;
};

/* A part of local memory; @mr is NULL for the kernel's own, of which @addr is the address. */
struct ernic_sge {
	struct ernic_mr *mr;
	u64 addr;
	u32 length;
};

/* A completion.  @is_send: with it, the sends before &ernic_sq.completed @behind make room. */
struct ernic_cqe {
	struct ib_wc wc;
	bool is_send;
	u32 behind;
};

/**
 * struct ernic_cq - a completion queue, which the hardware does not know
 * @ibcq: the verbs object
 * @lock: protects @ring to @lost
 * @ring: completions
 * @size: completions that it holds at most
 * @mask: for an index of @ring
 * @head: completions added, free-running
 * @tail: completions taken, free-running
 * @armed: raise an event for the next completion, or for the next solicited one
 * @armed_any: @armed: the next one, solicited or not
 * @notify: the event is due
 * @overrun: a completion found no place, which is told once
 * @lost: the event that tells it is due, when the QP has stopped
 * @list_lock: protects @sqs and @rqs
 * @sqs: QPs whose sends complete here
 * @rqs: QPs whose receives complete here
 * @event_work: raises the event of a completion when that is not possible where it became due
 */
struct ernic_cq {
	struct ib_cq ibcq;
	spinlock_t lock;		/* see above */
	struct ernic_cqe *ring;
	u32 size;
	u32 mask;
	u32 head;
	u32 tail;
	bool armed;
	bool armed_any;
	bool notify;
	bool overrun;
	bool lost;
	spinlock_t list_lock;		/* see above */
	struct list_head sqs;
	struct list_head rqs;
	struct work_struct event_work;
};

/**
 * struct ernic_swqe - a send that is posted
 * @wr_id: of the user
 * @bounce: memory that the WQE names in place of @sge, or NULL
 * @dma: address of what is mapped for it
 * @mapped: bytes that are mapped
 * @dir: the direction
 * @length: bytes of the message
 * @opcode: of its completion
 * @hw_opcode: ERNIC_OPCODE_*
 * @status: an error of its own, with which it completes in its turn; the hardware does not
 *	get it
 * @num_sge: parts in @sge
 * @signaled: its success completes too
 * @fence: the READs before it complete first
 * @scatter: of a READ: @bounce is copied to @sge when it completes
 * @sge: its memory, which it holds
 */
struct ernic_swqe {
	u64 wr_id;
	void *bounce;
	dma_addr_t dma;
	u32 mapped;
	enum dma_data_direction dir;
	u32 length;
	enum ib_wc_opcode opcode;
	u8 hw_opcode;
	enum ib_wc_status status;
	u8 num_sge;
	bool signaled;
	bool fence;
	bool scatter;
	struct ernic_sge *sge;
};

/* A receive that is posted.  @status: an error of its own, with which a SEND finds it. */
struct ernic_rwqe {
	u64 wr_id;
	enum ib_wc_status status;
	u8 num_sge;
	struct ernic_sge *sge;
};

/**
 * struct ernic_sq - a send queue
 * @lock: protects all that follows
 * @node: in &ernic_cq.sqs
 * @depth: a power of two
 * @max_wr: as many are posted at most
 * @posted: posted, free-running
 * @completed: complete, free-running
 * @retired: those of which a completion is polled that is not before theirs, free-running;
 *	under the lock of the CQ
 * @rung: those behind @completed that the hardware has, free-running
 * @reads: READs among them that are not complete
 * @wqes: the WQEs, the CQEs behind them, and the doorbell behind those
 * @cqes: of @wqes
 * @doorbell: of @wqes
 * @swqes: by slot
 * @sges: what @swqes point to
 * @failed: one has completed with an error: what is behind it is flushed
 * @dead: flushed: what is posted is flushed at once
 */
struct ernic_sq {
	spinlock_t lock;		/* see above */
	struct list_head node;
	u32 depth;
	u32 max_wr;
	u32 posted;
	u32 completed;
	u32 retired;
	u32 rung;
	u32 reads;
	struct ernic_mem wqes;
	__le32 *cqes;
	__le32 *doorbell;
	struct ernic_swqe *swqes;
	struct ernic_sge *sges;
	bool failed;
	bool dead;
};

/**
 * struct ernic_rq - a receive queue
 * @lock: protects all that follows, but for @records and @recorded
 * @node: in &ernic_cq.rqs
 * @depth: slots, of which one stays free
 * @slot: bytes of a slot
 * @max_wr: as many are posted at most
 * @posted: posted, free-running
 * @completed: complete, free-running
 * @next_wqe: the place in @rwqes of @posted
 * @oldest_wqe: the place in @rwqes of @completed
 * @next_slot: the slot of the next message
 * @given: the index that RQCI has or, of a disabled QP, will have
 * @slots: the slots
 * @door: the doorbell
 * @rwqes: receives that are posted
 * @sges: what @rwqes point to
 * @records: records of messages, by slot; under &ernic_dev.table_lock.  Without RECORDS,
 *	opcode and immediate data, and opcode 0 of a plain SEND
 * @recorded: the slot of the next record; the same
 * @failed: one has completed with an error: what is behind it is flushed
 * @dead: flushed: what is posted is flushed at once
 */
struct ernic_rq {
	spinlock_t lock;		/* see above */
	struct list_head node;
	u32 depth;
	u32 slot;
	u32 max_wr;
	u32 posted;
	u32 completed;
	u32 next_wqe;
	u32 oldest_wqe;
	u32 next_slot;
	u32 given;
	struct ernic_mem slots;
	struct ernic_mem door;
	struct ernic_rwqe *rwqes;
	struct ernic_sge *sges;
	struct ernic_record *records;
	u32 recorded;
	bool failed;
	bool dead;
};

/**
 * struct ernic_qp - a queue pair
 * @ibqp: the verbs object
 * @edev: its device
 * @qpn: its number
 * @user: it is a process's
 * @mutex: protects @state to @enabled
 * @state: its state; posting reads it without the mutex
 * @attr: its attributes
 * @dmac: the peer's MAC address
 * @conf: QPCONF
 * @enabled: the hardware executes it
 * @sq: send queue
 * @rq: receive queue
 * @max_sge: of each work request, send and receive
 * @max_recv_sge: the same
 * @sig_all: each send is signaled
 * @fatal: ERNIC_FATAL_*, or 0; under &ernic_dev.error_lock
 * @lost: a CQ had no place for a completion of it
 * @psn: of the next frame of QP 1
 * @error_work: moves the QP to the error state
 * @refs: the verbs object, and the interrupt
 * @unused: no more references
 */
struct ernic_qp {
	struct ib_qp ibqp;
	struct ernic_dev *edev;
	u32 qpn;
	bool user;
	struct mutex mutex;		/* see above */
	enum ib_qp_state state;
	struct ib_qp_attr attr;
	u8 dmac[ETH_ALEN];
	u32 conf;
	bool enabled;
	struct ernic_sq sq;
	struct ernic_rq rq;
	u32 max_sge;
	u32 max_recv_sge;
	bool sig_all;
	u16 fatal;
	bool lost;
	u32 psn;
	struct work_struct error_work;
	refcount_t refs;
	struct completion unused;
};

/* An address of a MAD. */
struct ernic_ah {
	struct ib_ah ibah;
	u8 dmac[ETH_ALEN];
	u8 smac[ETH_ALEN];
	union ib_gid sgid;
	union ib_gid dgid;
	u8 hop_limit;
	u8 tclass;
	u32 flow_label;
};

/**
 * struct ernic_dev - an RDMA device
 * @ibdev: the verbs object
 * @func: the function
 * @regs: its global registers; those of QPs lie behind them
 * @is_ernic: the personality
 * @num_qps: its QPs with QP 1
 * @extensions: ERNIC_EXT_* that are enabled
 * @slot: bytes of a receive slot
 * @wq: for works that may free or wait
 * @conf_lock: protects XRNICADCONF, and @gid_* below
 * @table_lock: protects @qps, @next_record, @record_phase and @records_taken, and
 *	the records of receive queues
 * @qps: by QPN
 * @records: the ring of records, or of invalidate/immediate data entries
 * @next_record: the next one
 * @record_phase: its ERNIC_RECORD_PHASE
 * @records_taken: places of @records that receive queues may fill
 * @error_lock: protects @next_error and &ernic_qp.fatal
 * @errors: the ring of fatal errors
 * @next_error: the next one
 * @qpn_ida: numbers of RC QPs
 * @pdn_ida: numbers of PDs
 * @entry_ida: entries of the protection domain table
 * @lkeys: regions by L_Key
 * @next_lkey: where the next L_Key is looked for
 * @key8: low byte of the next R_Key of each entry
 * @gid_v4: the index of the GID that IPV4XADD has, or -1
 * @gid_v6: the same of IPV6XADD
 * @gsi_slot: of QP 1, the slot of the next message, which the hardware keeps
 */
struct ernic_dev {
	struct ib_device ibdev;
	struct ernic_func *func;
	void __iomem *regs;
	bool is_ernic;
	u32 num_qps;
	u32 extensions;
	u32 slot;
	struct workqueue_struct *wq;
	struct mutex conf_lock;		/* see above */
	spinlock_t table_lock;		/* see above */
	struct ernic_qp *qps[ERNIC_QP_TABLE];
	struct ernic_mem records;
	u32 next_record;
	bool record_phase;
	u32 records_taken;
	spinlock_t error_lock;		/* see above */
	struct ernic_mem errors;
	u32 next_error;
	struct ida qpn_ida;
	struct ida pdn_ida;
	struct ida entry_ida;
	struct xarray lkeys;
	u32 next_lkey;
	u8 key8[ERNIC_PDS];
	int gid_v4;
	int gid_v6;
	u32 gsi_slot;
};

static inline struct ernic_dev *to_edev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct ernic_dev, ibdev);
}

static inline struct ernic_pd *to_epd(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct ernic_pd, ibpd);
}

static inline struct ernic_mr *to_emr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct ernic_mr, ibmr);
}

static inline struct ernic_cq *to_ecq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct ernic_cq, ibcq);
}

static inline struct ernic_qp *to_eqp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct ernic_qp, ibqp);
}

static inline struct ernic_ah *to_eah(struct ib_ah *ibah)
{
	return container_of(ibah, struct ernic_ah, ibah);
}

static inline bool ernic_is_gsi(const struct ernic_qp *qp)
{
	return qp->qpn == ERNIC_QP1;
}

/* The device tells of immediate data and R_Keys by entries of their own. */
static inline bool ernic_has_immdts(const struct ernic_dev *edev)
{
	return edev->is_ernic && !(edev->extensions & ERNIC_EXT_RECORDS);
}

/* Of &ernic_dev.records; 0: the device tells nothing of a message but its slot. */
static inline size_t ernic_record_bytes(const struct ernic_dev *edev)
{
	if (edev->extensions & ERNIC_EXT_RECORDS)
		return sizeof(struct ernic_record);
	return ernic_has_immdts(edev) ? sizeof(struct ernic_immdt_entry) : 0;
}

/* pci.c */
#if IS_ENABLED(CONFIG_PCI)
int ernic_pci_register(void);
void ernic_pci_unregister(void);
#else
static inline int ernic_pci_register(void)
{
	return 0;
}

static inline void ernic_pci_unregister(void)
{
}
#endif

/* bind.c */
int ernic_bind_register(struct ernic_func *func);
void ernic_bind_unregister(struct ernic_func *func);

/* main.c */

/* ibdev.c */
struct ernic_dev *ernic_dev_create(struct ernic_func *func);
int ernic_dev_register(struct ernic_dev *edev);
void ernic_dev_destroy(struct ernic_dev *edev);

/* gid.c */
int ernic_add_gid(const struct ib_gid_attr *attr, void **context);
int ernic_del_gid(const struct ib_gid_attr *attr, void **context);

/* hw.c */
u32 ernic_read(struct ernic_dev *edev, u32 offset);
void ernic_write(struct ernic_dev *edev, u32 offset, u32 value);
void ernic_write_address(struct ernic_dev *edev, u32 low, u32 high, dma_addr_t dma);
u32 ernic_qp_read(struct ernic_qp *qp, u32 offset);
void ernic_qp_write(struct ernic_qp *qp, u32 offset, u32 value);
void ernic_pd_write(struct ernic_dev *edev, u32 entry, u32 offset, u32 value);
int ernic_mem_alloc(struct ernic_dev *edev, struct ernic_mem *mem, size_t bytes);
void ernic_mem_free(struct ernic_dev *edev, struct ernic_mem *mem);
int ernic_hw_start(struct ernic_dev *edev);
void ernic_hw_stop(struct ernic_dev *edev);
void ernic_hw_enable_qp(struct ernic_qp *qp);
void ernic_write_pd(struct ernic_qp *qp);
void ernic_hw_disable_qp(struct ernic_qp *qp);

/* irq.c */
int ernic_irq_start(struct ernic_dev *edev);
void ernic_irq_stop(struct ernic_dev *edev);

/* qptable.c */
struct ernic_qp *ernic_qp_get(struct ernic_dev *edev, u32 qpn);
void ernic_qp_put(struct ernic_qp *qp);

/* records.c */
u32 ernic_take_records(struct ernic_dev *edev, struct ernic_qp *qp, u32 behind);
void ernic_take_immdts(struct ernic_dev *edev);
void ernic_drop_records(struct ernic_dev *edev);

/* errors.c */
void ernic_take_errors(struct ernic_dev *edev);

/* mr.c */
struct ib_mr *ernic_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *ernic_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 virt_addr,
				int access, struct ib_dmah *dmah, struct ib_udata *udata);
int ernic_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);
bool ernic_sges_hold(struct ernic_qp *qp, struct ernic_sge *to, const struct ib_sge *from,
		     int num_sge, bool writable);
void ernic_sges_put(struct ernic_sge *sge, int num_sge);
void ernic_sges_copy(const struct ernic_sge *sge, int num_sge, void *buffer, u32 bytes,
		     bool to_sges);
bool ernic_sge_bus(const struct ernic_sge *sge, dma_addr_t *bus);
bool ernic_mr_invalidate(struct ernic_qp *qp, u32 rkey);

/* cq.c */
int ernic_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		    struct uverbs_attr_bundle *attrs);
int ernic_resize_user_cq(struct ib_cq *ibcq, unsigned int cqe, struct ib_udata *udata);
int ernic_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int ernic_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);
void ernic_cq_add(struct ernic_cq *cq, const struct ib_wc *wc, bool solicited);
void ernic_cq_add_send(struct ernic_cq *cq, const struct ib_wc *wc, u32 behind);
void ernic_cq_notify(struct ernic_cq *cq);
void ernic_cq_notify_later(struct ernic_cq *cq);
void ernic_cq_raise_lost(struct ernic_cq *cq);
void ernic_cq_purge(struct ernic_cq *cq, struct ib_qp *ibqp);

/* qp.c */
int ernic_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init, struct ib_udata *udata);
int ernic_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);
int ernic_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_qp_init_attr *init);

/* qpstate.c */
int ernic_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		    struct ib_udata *udata);
void ernic_qp_reset_queues(struct ernic_qp *qp);
void ernic_qp_stop(struct ernic_qp *qp);
void ernic_qp_settle(struct ernic_qp *qp);
void ernic_qp_error_work(struct work_struct *work);

/* post.c */
int ernic_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		    const struct ib_send_wr **bad_wr);
int ernic_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		    const struct ib_recv_wr **bad_wr);

/* queue.c */
void ernic_swqe_release(struct ernic_dev *edev, struct ernic_swqe *swqe);
void ernic_complete_send(struct ernic_qp *qp, struct ernic_swqe *swqe, enum ib_wc_status status);
void ernic_ring_sends(struct ernic_qp *qp);
void ernic_free_slot(struct ernic_qp *qp);

/* poll.c */
int ernic_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc);
void ernic_poll_sends(struct ernic_qp *qp);
void ernic_poll_receives(struct ernic_qp *qp);
void ernic_flush(struct ernic_qp *qp);

/* gsi.c */
int ernic_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init, struct ib_udata *udata);
int ernic_destroy_ah(struct ib_ah *ibah, u32 flags);
int ernic_gsi_frame(struct ernic_qp *qp, const struct ib_send_wr *wr,
		    const struct ernic_sge *sge, u32 length, void **frame, u32 *bytes);
u32 ernic_gsi_take(struct ernic_qp *qp, const u8 *frame, struct ib_wc *wc, u8 *grh,
		   const u8 **mad);

#endif /* ERNIC_H */
