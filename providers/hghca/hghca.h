/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * JingZhao HCA: structures and functions of the verbs provider.
 *
 * A file calls no function of a file that is listed above it:
 *
 *	dv.c		the functions of hghcadv.h
 *	hghca.c		registration of the provider; user contexts
 *	rwq.c		receive work queues and tables of them
 *	qp.c		queue pairs
 *	rss.c		QPs that distribute frames over receive work queues
 *	cq.c		completion queues
 *	poll.c		polling of completion queues
 *	srq.c		shared receive queues
 *	mw.c		memory windows
 *	post.c, wr.c	ibv_post_send and ibv_post_recv; ibv_wr_*
 *	cqe.c, wqe.c	arrays of CQEs; sizes of WQEs
 *	dbr.c		doorbell records
 *	buf.c, table.c	memory of queues; objects by number
 *	pd.c, xrcd.c, ah.c, mr.c, dm.c, flow.c, device.c	the other verbs
 */
#ifndef HGHCA_PROVIDER_H
#define HGHCA_PROVIDER_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/driver.h>
#include <ccan/list.h>
#include <util/mmio.h>
#include <util/udma_barrier.h>
#include <util/util.h>

#include "hghca_hw.h"
#include "hghcadv.h"

/* A table of objects by number: a root of leaves, 12 bits of the number each. */
#define HGHCA_TABLE_LEAF_LOG	12
#define HGHCA_TABLE_LEAF_SIZE	(1U << HGHCA_TABLE_LEAF_LOG)
#define HGHCA_TABLE_ROOT_SIZE	(1U << (24 - HGHCA_TABLE_LEAF_LOG))
#define HGHCA_NUMBER_MASK	0xffffffU

/* Queues of a QP start at multiples of this. */
#define HGHCA_QUEUE_ALIGN	4096

/* Values of resource_type, which is passed to the allocator of a parent domain. */
enum hghca_res_type {
	HGHCA_RES_DBR = 0,
	HGHCA_RES_QP = 1,
	HGHCA_RES_CQ = 2,
	HGHCA_RES_SRQ = 3,
};

/* A spinlock, or nothing if the application uses one thread. */
struct hghca_lock {
	pthread_spinlock_t spin;
	bool elided;
};

struct hghca_qp;
typedef _Atomic(void *) hghca_table_slot;

/* Readers take no lock: leaves are not freed before the context is closed. */
struct hghca_table {
	_Atomic(hghca_table_slot *) leaves[HGHCA_TABLE_ROOT_SIZE];
};

struct hghca_pd;

/* Pages that the device reads and writes. */
struct hghca_buf {
	void *addr;
	size_t size;
	struct hghca_pd *parent;	/* the parent domain that allocated them, or NULL */
	enum hghca_res_type res_type;
};

/* Buffers without an object, the one that has been idle for longest first. */
#define HGHCA_IDLE_BUFS		16
#define HGHCA_IDLE_BYTES	(1 << 20)	/* of all of them */

struct hghca_idle {
	pthread_mutex_t lock;		/* protects all of it */
	struct hghca_buf bufs[HGHCA_IDLE_BUFS];
	unsigned int count;
	size_t bytes;
};

struct hghca_context {
	struct verbs_context vctx;
	void *uar;
	uint32_t uar_index;		/* of the UAR page, which no other context has */
	size_t page_size;
	uint32_t max_qp_wr;
	uint32_t max_cqe;
	uint16_t max_sge;
	uint16_t max_desc_sz;
	uint16_t max_sge_rq;
	uint16_t max_desc_sz_rq;
	uint32_t max_srq_wr;
	uint16_t max_srq_sge;
	bool has_gid_table;		/* addresses by index of a GID */
	bool has_dbr;			/* doorbell records of receive queues */
	bool has_cq_arm;		/* doorbells that arm CQs */
	bool has_cq_update;		/* sends without a CQE */
	bool has_mem_mgt;		/* windows, invalidation, tags in the keys' low bits */
	bool has_xrc;
	bool has_clock;			/* timestamps of completions */
	bool has_placement;		/* FLUSH, ATOMIC WRITE */
	bool has_raw;			/* raw packet QPs */
	bool has_device_memory;
	bool has_rss;			/* receive work queues, QPs with tables of them */
	bool has_vendor_ops;		/* partitions, PART, READ_POINTER, READ_CONSISTENT */
	bool single_threaded;

	/*
	 * Protects insertion into the tables.  The kernel may assign a number
	 * again while the previous object of that number is still in the table
	 * and its completions are in CQs.  The insertion of the new object waits
	 * for table_cleared then.  No other lock is taken while this one is held.
	 */
	pthread_mutex_t table_lock;
	pthread_cond_t table_cleared;
	struct hghca_table qps;		/* QPs with queues, and receive work queues */
	struct hghca_table xrc_srqs;

	pthread_mutex_t dbr_lock;	/* protects dbr_pages */
	struct list_head dbr_pages;
	struct hghca_idle idle;
};

/* Device memory, mapped. */
struct hghca_dm {
	struct verbs_dm vdm;
	void *mapped;
	size_t mapped_bytes;
	uint64_t length;		/* as requested */
};

struct hghca_td {
	struct ibv_td td;
	atomic_int users;
};

/* A protection domain, or with `parent_of` set a parent domain. */
struct hghca_pd {
	struct ibv_pd pd;
	atomic_int users;
	bool imported;			/* may be unimported while objects of it exist */
	struct hghca_pd *parent_of;
	struct hghca_td *td;
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size,
		       size_t alignment, uint64_t resource_type);
	void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr,
		     uint64_t resource_type);
	void *pd_context;
};

/* An array of CQEs. */
struct hghca_cqes {
	uint8_t *first;			/* after its timestamp, if any; NULL without an array */
	uint32_t mask;			/* number of CQEs - 1 */
};

/* CQEs of one poll without an outstanding WQE: their number, and the first one. */
struct hghca_cq_dropped {
	uint32_t count;
	uint32_t index;
	uint32_t qpn;
	uint32_t wqe_offset;
};

struct hghca_cq {
	struct verbs_cq vcq;
	struct hghca_lock lock;		/* protects fields that a poll changes */
	struct hghca_cqes cqes;
	/* While the CQ is resized: the new array, to which the device switches at some CQE. */
	struct hghca_cqes next_cqes;
	uint32_t log_cqe;		/* bytes from one CQE to the next */
	uint32_t consumer_index;	/* free-running */
	struct hghca_cq_dbr *dbr;
	struct hghca_qp *last_qp;	/* of the last CQE; the next CQE is often of the same QP */
	struct hghca_cqe *current;	/* between start_poll and end_poll */
	struct hghca_cq_dropped dropped;	/* logged at the end of the poll */
	uint32_t cqn;
	struct hghca_buf buf;
	struct hghca_pd *parent;
	pthread_mutex_t resizing;	/* serializes resizing; taken before lock */
	/*
	 * CQEs of unsignaled sends, for which the array has room beyond the CQEs that the
	 * application asked for.  Polls drop them.  Protected by resizing.
	 */
	uint32_t reserved;
	bool has_silent;		/* a QP has ever reserved CQEs */
};

struct hghca_wq {
	struct hghca_lock lock;		/* protects fields that a post changes */
	void *slots;
	uint64_t *wr_ids;
	bool *silent;			/* unsignaled WQEs of a device without CQ_UPDATE, or NULL */
	struct hghca_cq *cq;
	uint32_t cnt;			/* WQEs, a power of two, or 0 */
	/*
	 * Slots that stay free: one in a receive queue without a doorbell record, whose first
	 * 16 bytes of zero end the WQEs posted.
	 */
	uint32_t spare;
	uint32_t mask;			/* cnt - 1 */
	uint32_t max_sge;
	uint32_t stride_log;
	/*
	 * Free-running; WQEs from tail to head are outstanding.  A post advances
	 * head before it rings the doorbell.  A poll advances tail after it has
	 * read the wr_id.
	 */
	atomic_uint head;
	atomic_uint tail;
};

/* The state of a slot of a shared receive queue. */
struct hghca_srq_slot {
	uint64_t wr_id;
	uint32_t next;			/* the slot that its WQE links to */
	bool outstanding;		/* posted, and not completed */
};

/*
 * WQEs complete in any order, so the free slots are a linked list: a post takes
 * the first slot, and a poll appends one after the last.  The last slot is never
 * posted: a posted WQE must hold the link to the next, and the last has none.
 */
struct hghca_srq {
	struct verbs_srq vsrq;
	struct hghca_lock lock;		/* of the variable fields below; taken after a CQ's lock */
	void *wqes;
	void *next_wqes;		/* while the queue grows: new array with the same WQEs */
	struct hghca_srq_slot *slots;
	uint32_t cnt;			/* slots, a power of two */
	uint32_t first_free;
	uint32_t last_free;
	uint32_t outstanding;		/* number of such slots */
	uint32_t posted;		/* free-running */
	struct hghca_buf buf;
	struct hghca_srq_dbr *dbr;	/* constant from here on */
	uint32_t max_sge;
	uint32_t stride_log;
	uint32_t srqn;
	struct hghca_cq *cq;		/* of an XRC SRQ, otherwise NULL */
	struct hghca_pd *parent;
	pthread_mutex_t resizing;	/* serializes resizing; taken before lock */
};

/*
 * WQEs from index wq.head on that are written and not posted.  They are linked to
 * each other, but the WQE before them has no link to the first one yet.
 */
struct hghca_sq_batch {
	uint32_t count;
	uint8_t first_opcode;
	uint8_t first_units;
	bool first_fence;
};

/* A bind of an unfinished batch. */
struct hghca_wr_bind {
	struct ibv_mw *mw;
	uint32_t old_rkey;
};

/* The unfinished batch between ibv_wr_start and ibv_wr_complete. */
struct hghca_wr_builder {
	struct hghca_sq_batch batch;
	struct hghca_wr_bind *binds;	/* one for each WQE; NULL if the QP cannot bind */
	uint32_t num_binds;		/* of this batch */
	void *wqe;			/* the WQE that setters write to, or NULL */
	uint32_t header_units;		/* where its data list starts */
	uint32_t units;
	uint32_t max_sge;		/* of this WQE */
	uint8_t opcode;
	bool fence;
	bool may_inline;
	int err;
};

struct hghca_qp {
	struct verbs_qp vqp;
	struct hghca_wq sq;
	struct hghca_wq rq;		/* without slots if the QP has an SRQ */
	struct hghca_srq *srq;		/* or NULL */
	void *uar;
	struct hghca_qp_dbr *dbr;
	uint32_t max_inline;
	bool is_ud;
	bool is_uc;
	bool is_raw;
	bool is_xrc;			/* initiator */
	/* An XRC target or an RSS QP, which has no queues: only vqp and cap are used. */
	bool is_handle;
	bool has_mem_mgt;
	bool has_placement;
	bool has_vendor_ops;		/* as requested; only then dv has functions */
	bool signal_all;
	uint32_t pd_handle;
	/*
	 * The QP is in ERR or about to enter it: each post of receives is followed
	 * by hghca_qp_flush().  Written with rq.lock held.
	 */
	bool flushing;
	struct hghca_wr_builder wr;
	struct hghcadv_qp_ex dv;
	struct ibv_qp_cap cap;
	struct hghca_buf buf;
	struct hghca_pd *pd;
};

struct hghca_ah {
	struct ibv_ah ah;
	struct hghca_pd *holds;		/* the PD that counts it as a user, or NULL */
	bool in_kernel;
	uint32_t pd_handle;
	/* Without dqpn and qkey, which are in the same places of both forms. */
	union {
		struct hghca_ud_gid_unit unit;
		struct hghca_ud_unit base;	/* of a device without GID table */
	};
};

static_assert(sizeof(struct hghca_ud_unit) == sizeof(struct hghca_ud_gid_unit) &&
	      offsetof(struct hghca_ud_unit, dqpn) == offsetof(struct hghca_ud_gid_unit, dqpn) &&
	      offsetof(struct hghca_ud_unit, qkey) == offsetof(struct hghca_ud_gid_unit, qkey),
	      "the forms of the UD unit differ");

static inline struct hghca_context *to_hctx(struct ibv_context *context)
{
	return container_of(context, struct hghca_context, vctx.context);
}

static inline struct hghca_pd *to_hpd(struct ibv_pd *pd)
{
	return container_of(pd, struct hghca_pd, pd);
}

static inline struct hghca_dm *to_hdm(struct ibv_dm *dm)
{
	return container_of(dm, struct hghca_dm, vdm.dm);
}

static inline struct hghca_td *to_htd(struct ibv_td *td)
{
	return container_of(td, struct hghca_td, td);
}

static inline struct hghca_cq *to_hcq(struct ibv_cq *cq)
{
	return container_of(cq, struct hghca_cq, vcq.cq);
}

static inline struct hghca_cq *to_hcq_ex(struct ibv_cq_ex *cq)
{
	return container_of(cq, struct hghca_cq, vcq.cq_ex);
}

static inline struct hghca_qp *to_hqp(struct ibv_qp *qp)
{
	return container_of(qp, struct hghca_qp, vqp.qp);
}

static inline struct hghca_qp *to_hqp_ex(struct ibv_qp_ex *qp)
{
	return container_of(qp, struct hghca_qp, vqp.qp_ex);
}

static inline struct hghca_qp *to_hqp_dv(struct hghcadv_qp_ex *dv)
{
	return container_of(dv, struct hghca_qp, dv);
}

static inline struct hghca_srq *to_hsrq(struct ibv_srq *srq)
{
	return container_of(srq, struct hghca_srq, vsrq.srq);
}

static inline struct hghca_ah *to_hah(struct ibv_ah *ah)
{
	return container_of(ah, struct hghca_ah, ah);
}

/* Verbs return the value of errno; see their manual pages. */
static inline int hghca_errno(int err)
{
	if (err)
		errno = err;
	return err;
}

static inline void hghca_lock_init(struct hghca_lock *lock, bool elided)
{
	pthread_spin_init(&lock->spin, PTHREAD_PROCESS_PRIVATE);
	lock->elided = elided;
}

static inline void hghca_lock_destroy(struct hghca_lock *lock)
{
	pthread_spin_destroy(&lock->spin);
}

static inline void hghca_lock(struct hghca_lock *lock)
{
	if (!lock->elided)
		pthread_spin_lock(&lock->spin);
}

static inline void hghca_unlock(struct hghca_lock *lock)
{
	if (!lock->elided)
		pthread_spin_unlock(&lock->spin);
}

/*
 * Barriers, one for each purpose.  The UAR page is mapped uncached, so a
 * doorbell leaves the CPU in order and needs no flush.
 */

/* Before a link or a doorbell: the device sees WQEs and payload no later than it. */
static inline void hghca_wqe_before_announcement(void)
{
	udma_to_device_barrier();
}

/* Between the words of a link: the device sees nda_nop no later than nee_nds. */
static inline void hghca_link_in_order(void)
{
	udma_ordering_write_barrier();
}

/* Before a doorbell record: the device sees WQEs or freed CQEs no later than it. */
static inline void hghca_queue_before_record(void)
{
	udma_ordering_write_barrier();
}

/* Before a doorbell: the device sees the link or doorbell record no later than it. */
static inline void hghca_memory_before_doorbell(void)
{
	udma_to_device_barrier();
}

/* After the owner of a CQE: its body and the payload are not read earlier. */
static inline void hghca_owner_before_body(void)
{
	udma_from_device_barrier();
}

/* A doorbell is one 64-bit write, or two 32-bit writes with the low word first. */
static inline void hghca_ring(void *doorbell, uint32_t low, uint32_t high)
{
	mmio_write64_le(doorbell, htole64((uint64_t)high << 32 | low));
}

static inline void *hghca_wq_slot(const struct hghca_wq *wq, uint32_t index)
{
	return (char *)wq->slots + ((size_t)(index & wq->mask) << wq->stride_log);
}

/* Only a post writes head, and only a poll writes tail. */
static inline uint32_t hghca_wq_head(struct hghca_wq *wq)
{
	return atomic_load_explicit(&wq->head, memory_order_relaxed);
}

static inline void hghca_wq_set_head(struct hghca_wq *wq, uint32_t head)
{
	atomic_store_explicit(&wq->head, head, memory_order_relaxed);
}

static inline uint32_t hghca_wq_tail(struct hghca_wq *wq)
{
	return atomic_load_explicit(&wq->tail, memory_order_acquire);
}

static inline void hghca_wq_set_tail(struct hghca_wq *wq, uint32_t tail)
{
	atomic_store_explicit(&wq->tail, tail, memory_order_release);
}

/* Whether the queue has no room for the WQE of this index. */
static inline bool hghca_wq_full(struct hghca_wq *wq, uint32_t index)
{
	return index - hghca_wq_tail(wq) >= wq->cnt - wq->spare;
}

/* buf.c */
int hghca_buf_alloc(struct hghca_context *ctx, struct hghca_buf *buf,
		    size_t size, struct hghca_pd *parent,
		    enum hghca_res_type res_type);
void hghca_buf_free(struct hghca_context *ctx, struct hghca_buf *buf);
void hghca_idle_init(struct hghca_idle *idle);
void hghca_idle_free(struct hghca_idle *idle);
void hghca_prefault(const struct hghca_context *ctx, void *zeroes, size_t size);

/* dbr.c */
void *hghca_dbr_alloc(struct hghca_context *ctx);
void hghca_dbr_free(struct hghca_context *ctx, void *record);

/* table.c */
int hghca_table_add(struct hghca_context *ctx, struct hghca_table *table,
		    uint32_t number, void *object);
void hghca_table_clear(struct hghca_table *table, uint32_t number);
void hghca_table_wake(struct hghca_context *ctx);
void hghca_table_free(struct hghca_table *table);

static inline void *hghca_table_find(struct hghca_table *table, uint32_t number)
{
	hghca_table_slot *leaf;

	leaf = atomic_load_explicit(&table->leaves[number >> HGHCA_TABLE_LEAF_LOG],
				    memory_order_acquire);
	if (!leaf)
		return NULL;
	return atomic_load_explicit(&leaf[number & (HGHCA_TABLE_LEAF_SIZE - 1)],
				    memory_order_acquire);
}

/* device.c */
int hghca_query_device_ex(struct ibv_context *context,
			  const struct ibv_query_device_ex_input *input,
			  struct ibv_device_attr_ex *attr, size_t attr_size);
int hghca_query_rt_values(struct ibv_context *context,
			  struct ibv_values_ex *values);
int hghca_query_port(struct ibv_context *context, uint8_t port,
		     struct ibv_port_attr *attr);
int hghca_query_port_speed(struct ibv_context *context, uint32_t port, uint64_t *speed);

/* pd.c */
struct ibv_pd *hghca_alloc_pd(struct ibv_context *context);
int hghca_dealloc_pd(struct ibv_pd *pd);
struct ibv_pd *hghca_import_pd(struct ibv_context *context, uint32_t pd_handle);
void hghca_unimport_pd(struct ibv_pd *pd);
struct ibv_td *hghca_alloc_td(struct ibv_context *context,
			      struct ibv_td_init_attr *attr);
int hghca_dealloc_td(struct ibv_td *td);
struct ibv_pd *hghca_alloc_parent_domain(struct ibv_context *context,
					 struct ibv_parent_domain_init_attr *attr);

/* mr.c */
struct ibv_mr *hghca_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			    uint64_t hca_va, int access);
int hghca_dereg_mr(struct verbs_mr *vmr);
int hghca_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		    struct ibv_sge *sg_list, uint32_t num_sge);
int hghca_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd, void *addr,
		   size_t length, int access);
struct ibv_mr *hghca_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
				   uint64_t iova, int fd, int access);
struct ibv_mr *hghca_import_mr(struct ibv_pd *pd, uint32_t mr_handle);
void hghca_unimport_mr(struct ibv_mr *mr);

/* dm.c */
struct ibv_dm *hghca_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);
int hghca_free_dm(struct ibv_dm *dm);
struct ibv_dm *hghca_import_dm(struct ibv_context *context, uint32_t dm_handle);
void hghca_unimport_dm(struct ibv_dm *dm);
struct ibv_mr *hghca_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset,
			       size_t length, unsigned int access);

/* mw.c */
struct ibv_mw *hghca_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int hghca_dealloc_mw(struct ibv_mw *mw);
int hghca_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

/* ah.c */
struct ibv_ah *hghca_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int hghca_destroy_ah(struct ibv_ah *ah);

/* cq.c */
struct ibv_cq *hghca_create_cq(struct ibv_context *context, int cqe,
			       struct ibv_comp_channel *channel,
			       int comp_vector);
struct ibv_cq_ex *hghca_create_cq_ex(struct ibv_context *context,
				     struct ibv_cq_init_attr_ex *attr);
int hghca_resize_cq(struct ibv_cq *cq, int cqe);
int hghca_cq_reserve(struct hghca_cq *cq, uint32_t cqes);
void hghca_cq_unreserve(struct hghca_cq *cq, uint32_t cqes);
int hghca_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int hghca_destroy_cq(struct ibv_cq *cq);
void hghca_cq_lock_pair(struct hghca_cq *a, struct hghca_cq *b);
void hghca_cq_unlock_pair(struct hghca_cq *a, struct hghca_cq *b);

/* poll.c */
int hghca_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int hghca_req_notify_cq(struct ibv_cq *cq, int solicited_only);
void hghca_cq_set_readers(struct ibv_cq_ex *ex, uint64_t wc_flags);
void hghca_cq_purge(struct hghca_cq *cq, const struct hghca_qp *qp);

/* srq.c */
struct ibv_srq *hghca_create_srq(struct ibv_pd *pd,
				 struct ibv_srq_init_attr *attr);
struct ibv_srq *hghca_create_srq_ex(struct ibv_context *context,
				    struct ibv_srq_init_attr_ex *attr);
int hghca_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr,
		     int attr_mask);
int hghca_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int hghca_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num);
int hghca_destroy_srq(struct ibv_srq *srq);
int hghca_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			struct ibv_recv_wr **bad_wr);
int hghca_srq_complete(struct hghca_srq *srq, uint32_t offset, uint64_t *wr_id);

/* flow.c */
struct ibv_flow *hghca_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr);
int hghca_destroy_flow(struct ibv_flow *flow);

/* qp.c */
struct ibv_qp *hghca_create_qp(struct ibv_pd *pd,
			       struct ibv_qp_init_attr *attr);
struct ibv_qp *hghca_create_qp_ex(struct ibv_context *context,
				  struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *hghca_create_qp_with(struct ibv_context *context,
				    struct ibv_qp_init_attr_ex *attr, bool vendor_ops);
struct ibv_qp *hghca_open_qp(struct ibv_context *context,
			     struct ibv_qp_open_attr *attr);
int hghca_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr,
		    int attr_mask);
int hghca_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		   struct ibv_qp_init_attr *init_attr);
int hghca_destroy_qp(struct ibv_qp *qp);
int hghca_rq_size(struct hghca_context *ctx, struct hghca_qp *qp, struct ibv_qp_cap *cap);
int hghca_qp_alloc(struct hghca_context *ctx, struct hghca_qp *qp,
		   const struct ibv_qp_init_attr_ex *attr, struct hghca_pd *parent);
void hghca_qp_free(struct hghca_context *ctx, struct hghca_qp *qp);
void hghca_qp_reset(struct hghca_qp *qp);
void hghca_qp_unregister(struct hghca_context *ctx, struct hghca_qp *qp);

/* xrcd.c */
struct ibv_xrcd *hghca_open_xrcd(struct ibv_context *context,
				 struct ibv_xrcd_init_attr *attr);
int hghca_close_xrcd(struct ibv_xrcd *xrcd);

/* rwq.c */
struct ibv_wq *hghca_create_wq(struct ibv_context *context, struct ibv_wq_init_attr *attr);
int hghca_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr);
int hghca_destroy_wq(struct ibv_wq *wq);
struct ibv_rwq_ind_table *hghca_create_rwq_ind_table(struct ibv_context *context,
						     struct ibv_rwq_ind_table_init_attr *attr);
int hghca_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table);

/* rss.c */
struct ibv_qp *hghca_create_rss_qp(struct ibv_context *context,
				   struct ibv_qp_init_attr_ex *attr);

/* post.c */
int hghca_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		    struct ibv_send_wr **bad_wr);
int hghca_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		    struct ibv_recv_wr **bad_wr);
int hghca_qp_post_recv(struct hghca_qp *qp, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad_wr);
int hghca_post_bind(struct hghca_qp *qp, const struct ibv_send_wr *wr);
bool hghca_qp_set_flushing(struct hghca_qp *qp, bool flushing);
void hghca_qp_start_flush(struct hghca_qp *qp);
void hghca_qp_flush(struct hghca_qp *qp);

/* wr.c */
int hghca_wr_set_ops(struct hghca_qp *qp, uint64_t send_ops);

/* hghca.c */
bool hghca_is_device(struct ibv_device *device);

#endif /* HGHCA_PROVIDER_H */
