/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * JingZhao HCA driver: the hardware as the layers above see it.
 *
 *	caps.c		limits from QUERY_DEV_LIM, layout of ICM
 *	cmd.c		the command interface (HCR); giving up a failed device
 *	cmds.c		one typed function per command
 *	icm.c		host memory for contexts and tables, allocated on demand
 *	objects.c	numbers of CQs, QPs and SRQs, and their lookup by events
 *	eq.c		event queues
 *	mpt.c		MPTs and MTTs: memory regions in the device
 *	queue.c		memory of queues
 *	uar.c, dbr.c	doorbell pages; doorbell records
 *	qpc.c		the context of a QP as it leaves RST
 *	rsnic.c		RSNIC's segment, command queue and retransmission buffer
 *	wqe.c		encoding of work queue elements; wqe.h
 *
 * hghca.h includes this file.  This file does not depend on the layers above.
 */
#ifndef HGHCA_HW_LAYER_H
#define HGHCA_HW_LAYER_H

#include <linux/bitfield.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/dma-mapping.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/semaphore.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

#include <hghca_hw.h>

#include "wqe.h"

struct hghca_dev;

/**
 * struct hghca_limits - capabilities and limits of the device, checked and decoded
 * @caps: HGHCA_CAP_* that are enabled
 * @num_qps: QPs, a power of two, as are the other counts of table entries
 * @num_cqs: CQs
 * @num_eqs: EQs
 * @num_mpts: memory regions and windows; at most 24 bits with HGHCA_CAP_MEM_MGT
 * @num_mtts: translation entries
 * @num_srqs: shared receive queues; 0 without HGHCA_CAP_SRQ
 * @num_counter_sets: counter sets, 0 without HGHCA_CAP_QP_COUNTERS; set 0 means no set
 * @num_mcgs: entries of the table of multicast groups; 0 without HGHCA_CAP_MULTICAST
 * @num_flows: flow rules; 0 without HGHCA_CAP_RAW_PACKET
 * @num_rss: RSS groups; 0 without HGHCA_CAP_RSS
 * @log_max_rss_size: log2 of the entries of a group
 * @moderation_scale: of periods of moderation that the kernel chooses
 * @clock_khz: frequency of the device clock; 0 without HGHCA_CAP_CLOCK
 * @device_memory: bytes, 0 without HGHCA_CAP_DEVICE_MEMORY
 * @num_pds: protection domains
 * @max_xrcdn: largest number of an XRC domain
 * @num_uars: UAR pages
 * @first_qpn: first QPN for ordinary QPs, as are the other firsts
 * @first_cqn: first CQN
 * @first_eqn: first EQN
 * @first_mpt: first MPT index
 * @first_mtt: first MTT index
 * @first_srqn: first SRQ number
 * @first_pdn: first PD number
 * @max_qp_wr: WQEs per queue
 * @max_cqe: CQEs per CQ; one less than the largest buffer
 * @max_sge: entries of a gather list
 * @max_desc_sz: bytes of a send WQE
 * @max_sge_rq: entries of a receive's scatter list
 * @max_desc_sz_rq: bytes of a receive WQE
 * @max_srq_wr: work requests per SRQ; one less than the WQEs of the longest queue
 * @max_srq_sge: entries of a scatter list of an SRQ
 * @max_mcg_qps: QPs of a multicast group
 * @max_rd_atomic: outstanding READs and atomics, as initiator
 * @max_dest_rd_atomic: the same as target
 * @num_gids: entries of the GID table
 * @max_mtu: largest path MTU
 * @ack_delay: Local CA ACK Delay, code
 * @log_max_msg: log2 of the longest message
 * @log_min_page: log2 of the smallest page of an MR
 * @log_max_page: log2 of the largest page of an MR
 * @atomics: there are atomic operations
 * @qpc_entry_sz: bytes of ICM per QP
 * @cqc_entry_sz: bytes of ICM per CQ
 * @eqc_entry_sz: bytes of ICM per EQ
 * @mpt_entry_sz: bytes of ICM per MPT
 * @mtt_entry_sz: bytes of ICM per MTT
 * @icm_size: bytes of an ICM space
 * @num_vectors: MSI-X vectors of the device
 */
struct hghca_limits {
	u32 caps;
	u32 num_qps;
	u32 num_cqs;
	u32 num_eqs;
	u32 num_mpts;
	u32 num_mtts;
	u32 num_srqs;
	u32 num_counter_sets;
	u32 num_mcgs;
	u32 num_flows;
	u32 num_rss;
	u32 log_max_rss_size;
	u32 moderation_scale;
	u32 clock_khz;
	u32 device_memory;
	u32 num_pds;
	u32 max_xrcdn;
	u32 num_uars;
	u32 first_qpn;
	u32 first_cqn;
	u32 first_eqn;
	u32 first_mpt;
	u32 first_mtt;
	u32 first_srqn;
	u32 first_pdn;
	u32 max_qp_wr;
	u32 max_cqe;
	u32 max_sge;
	u32 max_desc_sz;
	u32 max_sge_rq;
	u32 max_desc_sz_rq;
	u32 max_srq_wr;
	u32 max_srq_sge;
	u32 max_mcg_qps;
	u32 max_rd_atomic;
	u32 max_dest_rd_atomic;
	u32 num_gids;
	enum ib_mtu max_mtu;
	u8 ack_delay;
	u8 log_max_msg;
	u8 log_min_page;
	u8 log_max_page;
	bool atomics;
	u32 qpc_entry_sz;
	u32 cqc_entry_sz;
	u32 eqc_entry_sz;
	u32 mpt_entry_sz;
	u32 mtt_entry_sz;
	u64 icm_size;
	u32 num_vectors;
};

/* ------------------------------------------------------------------ */
/* cmd.c: commands                                                      */

/**
 * struct hghca_mailbox - 4096 bytes for a command's input or output
 * @buf: its memory
 * @dma: its DMA address
 * @node: member of &hghca_cmd_if.lost if the device did not return it
 * @lost: the command timed out; the device may still use the memory
 */
struct hghca_mailbox {
	void *buf;
	dma_addr_t dma;
	struct list_head node;
	bool lost;
};

/**
 * struct hghca_cmd - one command
 * @op: enum hghca_cmd_op
 * @op_modifier: op_modifier
 * @in_modifier: in_modifier
 * @in: input mailbox, or NULL for @in_param
 * @out: output mailbox, or NULL
 * @in_param: immediate input
 * @out_param: immediate output, set by hghca_cmd_exec()
 * @token: identifies the command in its EQE; set by hghca_cmd_exec()
 * @used: the words of the HCR that the device reads for it, as bits; set by hghca_cmd_exec()
 * @recorded: its status was in the status record; set by hghca_cmd_exec()
 */
struct hghca_cmd {
	u16 op;
	u8 op_modifier;
	u32 in_modifier;
	struct hghca_mailbox *in;
	struct hghca_mailbox *out;
	u64 in_param;
	u64 out_param;
	u16 token;
	u32 used;
	bool recorded;
};

/* The words of the HCR for a command: document 3.1. */
static inline void hghca_hcr_words(const struct hghca_cmd *cmd, u16 token, bool event,
				   u32 *words)
{
	u64 in_param = cmd->in ? cmd->in->dma : cmd->in_param;
	u64 out_param = cmd->out ? cmd->out->dma : 0;

	words[HGHCA_HCR_IN_PARAM_H / 4] = upper_32_bits(in_param);
	words[HGHCA_HCR_IN_PARAM_L / 4] = lower_32_bits(in_param);
	words[HGHCA_HCR_IN_MODIFIER / 4] = cmd->in_modifier;
	words[HGHCA_HCR_OUT_PARAM_H / 4] = upper_32_bits(out_param);
	words[HGHCA_HCR_OUT_PARAM_L / 4] = lower_32_bits(out_param);
	words[HGHCA_HCR_TOKEN / 4] = FIELD_PREP(HGHCA_HCR_TOKEN_MASK, token);
	words[HGHCA_HCR_STATUS / 4] = HGHCA_HCR_GO | (event ? HGHCA_HCR_EVENT : 0) |
				      FIELD_PREP(HGHCA_HCR_OPMOD_MASK, cmd->op_modifier) |
				      FIELD_PREP(HGHCA_HCR_OP_MASK, cmd->op);
}

enum hghca_cmd_slot_state {
	HGHCA_CMD_SLOT_FREE,
	HGHCA_CMD_SLOT_BUSY,
	HGHCA_CMD_SLOT_DONE,
	HGHCA_CMD_SLOT_LOST,	/* timed out: not reused */
};

/* An outstanding command in event mode. */
struct hghca_cmd_slot {
	enum hghca_cmd_slot_state state;
	u16 token;
	u8 status;
	u64 out_param;
	struct completion done;
};

#define HGHCA_CMD_SLOTS		16	/* a power of two */
#define HGHCA_CMD_CHAIN_MAX	4	/* commands of hghca_cmd_exec_chain() */

/* rsnic.c: the command queue, in the place of the HCR; without entries if the device has none */
struct hghca_cmdq {
	struct hghca_cmdq_entry *entries;
	dma_addr_t dma;
	void *packets;			/* the retransmission buffer */
	dma_addr_t packets_dma;
};

struct hghca_cmd_if {
	struct hghca_cmdq queue;
	struct mutex hcr_lock;		/* the HCR; in polling mode, the whole command */
	struct semaphore event_sem;	/* free slots */
	struct mutex chain_lock;	/* held to wait for more than one slot */
	spinlock_t slot_lock;		/* slots[] and lost; taken in interrupts */
	struct hghca_cmd_slot slots[HGHCA_CMD_SLOTS];
	u16 next_gen;
	u16 last_token;			/* of the command in the HCR; under hcr_lock */
	bool use_events;
	bool sync;			/* see hghca_cmd_use_sync() */
	bool use_record;		/* see hghca_cmd_use_record() */
	__be32 *status;			/* the status record, or NULL; under hcr_lock */
	dma_addr_t status_dma;
	u32 kept;			/* words of the HCR in hcr[], as bits; under hcr_lock */
	u32 hcr[HGHCA_HCR_SIZE / 4];	/* what the device keeps there */
	void (*poll_events)(struct hghca_dev *hdev);	/* see hghca_cmd_use_events() */
	unsigned int timeout_ms;	/* for the end of a command */
	unsigned int look_ms;		/* interval at which a waiting caller reads the HCR */
	unsigned int hcr_timeout_us;	/* for go to become 0 */
	struct dma_pool *pool;
	struct hghca_mailbox *spare;	/* for the next command, or NULL; taken by xchg() */
	struct list_head lost;		/* mailboxes kept until the device is reset */
};

/* ------------------------------------------------------------------ */
/* icm.c: memory for the device's contexts and tables                   */

enum hghca_icm_kind {
	HGHCA_ICM_QPC,
	HGHCA_ICM_CQC,
	HGHCA_ICM_EQC,
	HGHCA_ICM_SRQC,		/* no entries without HGHCA_CAP_SRQ */
	HGHCA_ICM_MCG,		/* no entries without HGHCA_CAP_MULTICAST */
	HGHCA_ICM_MPT,
	HGHCA_ICM_MTT,
	HGHCA_ICM_KINDS
};

#define HGHCA_ICM_BLOCK_SHIFT	18
#define HGHCA_ICM_BLOCK_SIZE	BIT(HGHCA_ICM_BLOCK_SHIFT)

struct hghca_icm_block;

/**
 * struct hghca_icm_slot - the place of a block
 * @users: entries in use; from and to 0 under the lock of the table
 * @block: NULL: not mapped; changes under the lock, and only without users
 */
struct hghca_icm_slot {
	refcount_t users;
	struct hghca_icm_block *block;
};

/**
 * struct hghca_icm_table - one table in ICM
 * @lock: protects the blocks, idle, and the first and last users
 * @space: HGHCA_ICM_CONTEXT or HGHCA_ICM_TPT
 * @base: ICM address
 * @entry_sz: bytes per entry
 * @num_entries: entries, a power of two, or 0
 * @slots: by offset >> HGHCA_ICM_BLOCK_SHIFT
 * @num_slots: number of slots
 * @idle: the block without users that is kept, or NULL
 */
struct hghca_icm_table {
	struct mutex lock;		/* see above */
	u8 space;
	u64 base;
	u32 entry_sz;
	u32 num_entries;
	struct hghca_icm_slot *slots;
	u32 num_slots;
	struct hghca_icm_block *idle;
};

/* ------------------------------------------------------------------ */
/* mpt.c, queue.c: memory regions, and the memory of queues             */

/**
 * struct hghca_mtts - a run of MTTs
 * @first: index of the first
 * @count: number of MTTs, may be 0
 */
struct hghca_mtts {
	u32 first;
	u32 count;
};

#define HGHCA_IDLE_KEYS		8

/**
 * struct hghca_idle_key - what a region that is gone has left
 * @index: the MPT index, with its ICM
 * @first_mtt: index of the first MTT
 * @units: units of MTTs, with their ICM; may be 0
 */
struct hghca_idle_key {
	u32 index;
	u32 first_mtt;
	u32 units;
};

/**
 * struct hghca_idle_keys - idle keys of a device
 * @lock: protects the others; no other lock is taken under it
 * @count: number of idle keys
 * @turn: the one that was replaced last, when all were in use
 * @keys: the idle keys
 */
struct hghca_idle_keys {
	spinlock_t lock;		/* see above */
	u32 count;
	u32 turn;
	struct hghca_idle_key keys[HGHCA_IDLE_KEYS];
};

/**
 * struct hghca_hwmr - a memory region or window in the device
 * @key: lkey and rkey; 0 without a region
 * @mtts: its MTTs; those of the root for a tree; empty for a physical region, a region
 *	in device memory, and a window
 * @enabled: the device has it; otherwise the key gives no access
 */
struct hghca_hwmr {
	u32 key;
	struct hghca_mtts mtts;
	bool enabled;
};

enum hghca_hwmr_kind {
	HGHCA_HWMR_MAPPED,	/* its MTTs are its pages */
	HGHCA_HWMR_PHYSICAL,	/* all DMA addresses */
	HGHCA_HWMR_DEVICE,	/* in device memory */
	HGHCA_HWMR_ON_DEMAND,	/* as MAPPED, but MTTs may be absent */
	HGHCA_HWMR_TREE,	/* as ON_DEMAND, with a tree of MTTs */
	HGHCA_HWMR_FAST_REG,	/* REG_MR defines it */
	HGHCA_HWMR_WINDOW_1,	/* BIND_MW defines it */
	HGHCA_HWMR_WINDOW_2B,
};

/* Attributes of a region. */
struct hghca_hwmr_attr {
	enum hghca_hwmr_kind kind;
	u32 pdn;
	u32 access;		/* HGHCA_ACCESS_* */
	u64 start;
	u64 length;
	u32 first_byte;		/* zero-based region: its offset in the first page */
	u32 device_offset;	/* region in device memory: its start */
	u8 page_shift;
};

#define HGHCA_QUEUE_CHUNK_SHIFT	15
#define HGHCA_QUEUE_CHUNK_SIZE	BIT(HGHCA_QUEUE_CHUNK_SHIFT)

struct hghca_queue_chunk {
	void *va;
	dma_addr_t dma;
};

/**
 * struct hghca_queue - the buffer of a SQ, RQ, SRQ, CQ or EQ, under its own zero-based MR
 * @mr: the region; the context of the queue has its key
 * @size: bytes, a multiple of 4096
 * @num_chunks: number of chunks of kernel memory; 0 for user memory.  Chunks have
 *	HGHCA_QUEUE_CHUNK_SIZE bytes; a single chunk may be smaller
 * @chunks: kernel memory
 *
 * An element (at most 1024 bytes, a power of two, aligned to its size) never
 * crosses a chunk.  hghca_queue_at() returns its address.
 */
struct hghca_queue {
	struct hghca_hwmr mr;
	size_t size;
	u32 num_chunks;
	struct hghca_queue_chunk *chunks;
};

/*
 * Return an entry of a CQ or an EQ to the device.  @by_owner: the device has no record and no
 * doorbell that does it, so all reads and writes of the entry come before.
 */
static inline void hghca_return_entry(u8 *owner, bool by_owner)
{
	if (by_owner)
		dma_mb();
	WRITE_ONCE(*owner, HGHCA_CQ_ENTRY_OWNER_HW);
}

/* Element of a kernel queue at @offset bytes (below queue->size). */
static inline void *hghca_queue_at(const struct hghca_queue *queue, u32 offset)
{
	return queue->chunks[offset >> HGHCA_QUEUE_CHUNK_SHIFT].va +
	       (offset & (HGHCA_QUEUE_CHUNK_SIZE - 1));
}

/* ------------------------------------------------------------------ */
/* dbr.c: doorbell records                                              */

struct hghca_user_page;

/* Pages with doorbell records of one user; @lock protects @list and the pages in it. */
struct hghca_user_pages {
	struct mutex lock;		/* see above */
	struct list_head list;
};

/**
 * struct hghca_dbr - a doorbell record
 * @record: kernel record, two words as in struct hghca_qp_dbr; NULL for a user's
 * @dma: its DMA address; put @dma | HGHCA_DBR_VALID into the context
 * @page: user record: the pinned page
 */
struct hghca_dbr {
	__le32 *record;
	dma_addr_t dma;
	struct hghca_user_page *page;
};

/* ------------------------------------------------------------------ */
/* objects.c: lookup of CQs, QPs and SRQs by events                     */

/**
 * struct hghca_obj - the common part of a CQ, a QP and an SRQ
 * @number: CQN, QPN or SRQN
 * @refs: one, plus one for each event that uses it now
 * @released: completed with the last reference
 */
struct hghca_obj {
	u32 number;
	refcount_t refs;
	struct completion released;
};

/**
 * struct hghca_obj_table - the objects of one kind
 * @objs: struct hghca_obj, by number; its lock is taken in interrupts
 * @name: name of the kind, for the log
 * @icm: the table of their contexts
 * @first: first number that is allocated
 * @count: numbers of the device, including those below @first
 * @cyclic: numbers are allocated cyclically
 * @next: start of the search for a number, with @cyclic
 */
struct hghca_obj_table {
	struct xarray objs;
	const char *name;
	enum hghca_icm_kind icm;
	u32 first;
	u32 count;
	bool cyclic;
	u32 next;
};

/**
 * struct hghca_hwcq - the part of a CQ that events use
 * @obj: in hdev->cqs
 * @cqn: its number, set by hghca_hwcq_add()
 * @comp: completion event; interrupt context
 * @event: CQ_ERROR event with its syndrome; interrupt context
 */
struct hghca_hwcq {
	struct hghca_obj obj;
	u32 cqn;
	void (*comp)(struct hghca_hwcq *hwcq);
	void (*event)(struct hghca_hwcq *hwcq, u8 syndrome);
};

struct hghca_hwqp;

/**
 * struct hghca_page - pages that a QP needs, from a PAGE_FAULT event
 * @key: key of the region
 * @addr: address in the region
 * @length: bytes required from @addr on
 * @what: HGHCA_PAGE_FAULT_*
 */
struct hghca_page {
	u32 key;
	u64 addr;
	u32 length;
	u32 what;
};

/**
 * struct hghca_fault - page fault of the requester or the responder of a QP
 * @hdev: the device
 * @hwqp: the QP; a reference is held while @busy
 * @busy: @work is queued or running
 * @page: the pages needed
 * @work: maps the pages
 */
struct hghca_fault {
	struct hghca_dev *hdev;
	struct hghca_hwqp *hwqp;
	unsigned long busy;
	struct hghca_page page;
	struct work_struct work;
};

/**
 * struct hghca_hwqp - the part of a QP that events use
 * @obj: in hdev->qps
 * @qpn: its number, set by hghca_hwqp_add()
 * @event: asynchronous event of type enum hghca_event_type; interrupt context
 * @faults: those of the requester and of the responder, or NULL for a QP without
 *	on-demand regions; set by hghca_odp_init_qp()
 */
struct hghca_hwqp {
	struct hghca_obj obj;
	u32 qpn;
	void (*event)(struct hghca_hwqp *hwqp, u8 type);
	struct hghca_fault *faults;
};

/**
 * struct hghca_hwsrq - the part of an SRQ that events use
 * @obj: in hdev->srqs
 * @srqn: its number, set by hghca_hwsrq_add()
 * @event: asynchronous event of type enum hghca_event_type; interrupt context
 */
struct hghca_hwsrq {
	struct hghca_obj obj;
	u32 srqn;
	void (*event)(struct hghca_hwsrq *hwsrq, u8 type);
};

/* ------------------------------------------------------------------ */
/* qpc.c: contexts of QPs                                               */

/* One of the queues of a QP; all zeros without that queue. */
struct hghca_qpc_queue {
	u32 cqn;
	u32 key;		/* key of its MR */
	u32 offset;		/* bytes of the MR before the queue; only the receive queue */
	u32 bytes;
	u8 log_stride;
};

/**
 * struct hghca_qpc_attr - attributes of a QP when it leaves RST
 * @service: HGHCA_QP_ST_*
 * @mtu: enum ib_mtu, or 0 if a later transition sets it
 * @log_max_msg: log2 of the longest message
 * @reg_mr: may register memory by REG_MR; never a user's
 * @vendor_ops: sends and accepts PART, READ_POINTER and READ_CONSISTENT; only RC
 * @qpn: its number
 * @pdn: its PD
 * @uar: the UAR page of its doorbells
 * @srqn: its SRQ, or 0
 * @xrcdn: XRC domain of an XRC target, otherwise 0
 * @send: send queue
 * @recv: receive queue
 * @dbr: DMA address of its doorbell record, or 0
 */
struct hghca_qpc_attr {
	u8 service;
	u8 mtu;
	u8 log_max_msg;
	bool reg_mr;
	bool vendor_ops;
	u32 qpn;
	u32 pdn;
	u32 uar;
	u32 srqn;
	u32 xrcdn;
	struct hghca_qpc_queue send;
	struct hghca_qpc_queue recv;
	dma_addr_t dbr;
};

/* ------------------------------------------------------------------ */
/* eq.c: event queues                                                   */

#define HGHCA_EQ_NAME_LEN	32

/* Event types are bits of MAP_EQ's mask. */
#define HGHCA_EVENT_TYPES	64

/*
 * Handle an event of one type.  @number is the CQN, QPN, SRQN or EQN of the event.
 * @number and the rest of @eqe come from the device and are not checked.
 * Interrupt context.
 */
typedef void (*hghca_event_handler)(struct hghca_dev *hdev, u32 number,
				    const struct hghca_eqe *eqe);

struct hghca_eq {
	struct hghca_dev *hdev;
	spinlock_t lock;		/* the consumer side */
	u32 eqn;
	u32 vector;			/* index of the interrupt */
	u32 log_size;
	u32 cons_index;
	bool live;			/* the device writes to it */
	struct hghca_queue queue;
	char name[HGHCA_EQ_NAME_LEN];
};

/* ------------------------------------------------------------------ */
/* uar.c: doorbell pages                                                */

struct hghca_uar {
	u32 index;		/* page of HGHCA_UAR_PAGE_SIZE in BAR2 */
};

/* ------------------------------------------------------------------ */
/* Functions                                                            */

/* caps.c */
int hghca_profile_init(struct hghca_dev *hdev);
void hghca_profile_layout(const struct hghca_dev *hdev, struct hghca_init_hca *init);

/*
 * cmd.c.  All may sleep.  hghca_cmd_exec() returns 0, the errno for the status of the
 * command (document 3.2), -ETIMEDOUT, or -EIO on a device that was given up.
 */
int hghca_cmd_init(struct hghca_dev *hdev);
void hghca_cmd_cleanup(struct hghca_dev *hdev);
void hghca_cmd_use_events(struct hghca_dev *hdev,
			  void (*poll_events)(struct hghca_dev *hdev));
void hghca_cmd_use_polling(struct hghca_dev *hdev);
void hghca_cmd_use_sync(struct hghca_dev *hdev);
int hghca_cmd_alloc_record(struct hghca_dev *hdev);
void hghca_cmd_use_record(struct hghca_dev *hdev);
int hghca_cmd_exec(struct hghca_dev *hdev, struct hghca_cmd *cmd);
int hghca_cmd_exec_chain(struct hghca_dev *hdev, struct hghca_cmd *cmds, unsigned int count);
bool hghca_cmd_is_gone(struct hghca_dev *hdev);
void hghca_dev_reset(struct hghca_dev *hdev);
void hghca_dev_fail(struct hghca_dev *hdev, const char *why);
void hghca_dev_shutdown(struct hghca_dev *hdev);
struct hghca_mailbox *hghca_mailbox_alloc(struct hghca_dev *hdev, size_t zeroed);
void hghca_mailbox_free(struct hghca_dev *hdev, struct hghca_mailbox *mailbox);

/* rsnic.c */
void hghca_cmdq_place_packets(struct hghca_dev *hdev, struct hghca_init_hca *init);
int hghca_cmdq_open(struct hghca_dev *hdev);
void hghca_cmdq_close(struct hghca_dev *hdev);
int hghca_cmdq_post_slots(struct hghca_dev *hdev, struct hghca_cmd *cmds,
			  struct hghca_cmd_slot **slots, unsigned int count);
int hghca_cmdq_post_polled(struct hghca_dev *hdev, struct hghca_cmd *cmd);
int hghca_cmdq_poll(struct hghca_dev *hdev, struct hghca_cmd *cmd, u8 *status);
int hghca_cmdq_look(struct hghca_dev *hdev);
void hghca_cmdq_report_health(struct hghca_dev *hdev);

/*
 * cmds.c: typed commands.  They copy the structure to a mailbox that they allocate.
 * Commands that take objects from the device succeed on a device that was given up,
 * because its reset has dropped the objects.
 */
int hghca_cmd_query_dev_lim(struct hghca_dev *hdev, struct hghca_dev_lim *lim);
int hghca_cmd_query_adapter(struct hghca_dev *hdev, struct hghca_adapter *adapter);
int hghca_cmd_init_hca(struct hghca_dev *hdev, const struct hghca_init_hca *init);
int hghca_cmd_close_hca(struct hghca_dev *hdev);
int hghca_cmd_map_icm(struct hghca_dev *hdev, u8 space, struct hghca_mailbox *mailbox,
		      u32 num_chunks);
int hghca_cmd_unmap_icm(struct hghca_dev *hdev, u8 space, u64 virt, u32 num_pages);
int hghca_cmd_sw2hw_mpt(struct hghca_dev *hdev, u32 index, const struct hghca_mpt *mpt);
int hghca_cmd_sw2hw_mpt_mtts(struct hghca_dev *hdev, u32 index, struct hghca_mailbox *mailbox);
int hghca_cmd_hw2sw_mpt(struct hghca_dev *hdev, u32 index);
int hghca_cmd_query_mpt(struct hghca_dev *hdev, u32 index, struct hghca_mpt *mpt);
int hghca_cmd_write_mtt(struct hghca_dev *hdev, struct hghca_mailbox *mailbox, u32 num_mtts);
int hghca_cmd_clear_mtt(struct hghca_dev *hdev, u32 first, u32 num_mtts);
int hghca_cmd_resume_qp(struct hghca_dev *hdev, u32 qpn, u32 what);
int hghca_cmd_map_eq(struct hghca_dev *hdev, u32 eqn, u64 mask, bool unmap);
int hghca_cmd_sw2hw_eq(struct hghca_dev *hdev, u32 eqn, const struct hghca_eqc *eqc);
int hghca_cmd_hw2sw_eq(struct hghca_dev *hdev, u32 eqn);
int hghca_cmd_query_eq(struct hghca_dev *hdev, u32 eqn, struct hghca_eqc *eqc);
int hghca_cmd_sw2hw_cq(struct hghca_dev *hdev, u32 cqn, const struct hghca_cqc *cqc);
int hghca_cmd_hw2sw_cq(struct hghca_dev *hdev, u32 cqn);
int hghca_cmd_query_cq(struct hghca_dev *hdev, u32 cqn, struct hghca_cqc *cqc);
int hghca_cmd_resize_cq(struct hghca_dev *hdev, u32 cqn, const struct hghca_resize_cq *resize);
int hghca_cmd_set_status_record(struct hghca_dev *hdev, dma_addr_t record);
int hghca_cmd_moderate_cq(struct hghca_dev *hdev, u32 cqn, u16 count, u16 period);
int hghca_cmd_start_qp(struct hghca_dev *hdev, u32 qpn, const struct hghca_qpc *init,
		       const struct hghca_qpc *rest);
int hghca_cmd_modify_qp(struct hghca_dev *hdev, enum hghca_cmd_op op, u32 qpn,
			const struct hghca_qpc *qpc);
int hghca_cmd_query_qp(struct hghca_dev *hdev, u32 qpn, struct hghca_qpc *qpc);
int hghca_cmd_conf_special_qp(struct hghca_dev *hdev, u8 type, u32 qpn);
int hghca_cmd_mad_ifc(struct hghca_dev *hdev, u32 port, void *mad);
int hghca_cmd_sw2hw_srq(struct hghca_dev *hdev, u32 srqn, const struct hghca_srqc *srqc);
int hghca_cmd_hw2sw_srq(struct hghca_dev *hdev, u32 srqn);
int hghca_cmd_query_srq(struct hghca_dev *hdev, u32 srqn, struct hghca_srqc *srqc);
int hghca_cmd_arm_srq(struct hghca_dev *hdev, u32 srqn, u16 limit);
int hghca_cmd_resize_srq(struct hghca_dev *hdev, u32 srqn, const struct hghca_resize_srq *resize);
int hghca_cmd_write_mgm(struct hghca_dev *hdev, u32 index, struct hghca_mailbox *mailbox,
			bool take);
int hghca_cmd_mgid_hash(struct hghca_dev *hdev, const struct hghca_mgid *mgid, u64 *hash);
int hghca_cmd_flow_attach(struct hghca_dev *hdev, u32 index, const struct hghca_flow *flow);
int hghca_cmd_flow_detach(struct hghca_dev *hdev, u32 index);
int hghca_cmd_create_rss(struct hghca_dev *hdev, u32 index, const struct hghca_rss *rss);
int hghca_cmd_destroy_rss(struct hghca_dev *hdev, u32 index);
int hghca_cmd_sw2hw_part(struct hghca_dev *hdev, u32 index,
			 const struct hghca_partition *partition);
int hghca_cmd_hw2sw_part(struct hghca_dev *hdev, u32 index);
int hghca_cmd_query_part(struct hghca_dev *hdev, u32 index, struct hghca_partition *partition);
int hghca_cmd_set_congestion(struct hghca_dev *hdev, const struct hghca_congestion *congestion);
int hghca_cmd_query_congestion(struct hghca_dev *hdev, struct hghca_congestion *congestion);
int hghca_cmd_set_flow_control(struct hghca_dev *hdev, const struct hghca_flow_control *control);
int hghca_cmd_query_flow_control(struct hghca_dev *hdev, struct hghca_flow_control *control);
int hghca_cmd_set_gid(struct hghca_dev *hdev, u32 index, const struct hghca_gid_entry *gid);
int hghca_cmd_query_port(struct hghca_dev *hdev, struct hghca_port *port);
int hghca_cmd_set_port(struct hghca_dev *hdev, const struct hghca_port *port);
int hghca_cmd_query_stats(struct hghca_dev *hdev, u8 which, u64 *values, u32 count);
int hghca_cmd_set_qp_counter(struct hghca_dev *hdev, u32 qpn, u32 set);
int hghca_cmd_query_counter_set(struct hghca_dev *hdev, u32 set, u64 *values, bool clear);
int hghca_cmd_nop(struct hghca_dev *hdev);

/* icm.c.  May sleep.  Each get needs one put with the same arguments. */
int hghca_icm_init(struct hghca_dev *hdev);
void hghca_icm_cleanup(struct hghca_dev *hdev);
void hghca_icm_trim(struct hghca_dev *hdev);
int hghca_icm_get(struct hghca_dev *hdev, enum hghca_icm_kind kind, u32 first, u32 count);
void hghca_icm_put(struct hghca_dev *hdev, enum hghca_icm_kind kind, u32 first, u32 count);

/*
 * objects.c.  May sleep.  add: allocates a number (a QP: @qpn, or any if it is 0) and
 * its ICM, and enables the lookup by events; comp and event must be set.  del: call it
 * after the device has dropped the object; it returns when no event uses the object.
 */
void hghca_res_init(struct hghca_dev *hdev);
void hghca_res_cleanup(struct hghca_dev *hdev);
int hghca_hwcq_add(struct hghca_dev *hdev, struct hghca_hwcq *hwcq);
void hghca_hwcq_del(struct hghca_dev *hdev, struct hghca_hwcq *hwcq);
int hghca_hwqp_add(struct hghca_dev *hdev, struct hghca_hwqp *hwqp, u32 qpn);
void hghca_hwqp_del(struct hghca_dev *hdev, struct hghca_hwqp *hwqp);
int hghca_hwsrq_add(struct hghca_dev *hdev, struct hghca_hwsrq *hwsrq);
void hghca_hwsrq_del(struct hghca_dev *hdev, struct hghca_hwsrq *hwsrq);
void hghca_cq_dispatch_comp(struct hghca_dev *hdev, u32 cqn);
struct hghca_hwqp *hghca_hwqp_get(struct hghca_dev *hdev, u32 qpn, u8 type);
void hghca_qp_dispatch_event(struct hghca_dev *hdev, u32 qpn, u8 type);
void hghca_hwqp_put(struct hghca_hwqp *hwqp);
void hghca_srq_dispatch_event(struct hghca_dev *hdev, u32 srqn, u8 type);

/* eq.c */
int hghca_eqs_init(struct hghca_dev *hdev);
void hghca_eqs_cleanup(struct hghca_dev *hdev);

/* shrinker.c */
int hghca_icm_shrinker_init(void);
void hghca_icm_shrinker_exit(void);
void hghca_icm_list(struct hghca_dev *hdev);
void hghca_icm_unlist(struct hghca_dev *hdev);

/* key.c.  May sleep, except index.  mtts: runs of MTTs with their ICM. */
int hghca_mr_init(struct hghca_dev *hdev);
void hghca_mr_cleanup(struct hghca_dev *hdev);
u32 hghca_key_index(const struct hghca_dev *hdev, u32 key);
int hghca_key_alloc(struct hghca_dev *hdev, u32 *key);
void hghca_key_free(struct hghca_dev *hdev, u32 key);
bool hghca_idle_key_take(struct hghca_dev *hdev, struct hghca_hwmr *mr, u64 num_mtts);
bool hghca_idle_key_put(struct hghca_dev *hdev, const struct hghca_hwmr *mr);
bool hghca_idle_keys_trim(struct hghca_dev *hdev);
int hghca_mtts_alloc(struct hghca_dev *hdev, struct hghca_mtts *mtts, u64 count);
void hghca_mtts_free(struct hghca_dev *hdev, const struct hghca_mtts *mtts);

/*
 * mpt.c.  May sleep.  A region over user memory starts @offset bytes (a multiple
 * of the page size) into @umem.  disable: the device drops it, and its MTTs stay.
 * mtts: clear does not allocate memory.
 */
int hghca_hwmr_create(struct hghca_dev *hdev, struct hghca_hwmr *mr,
		      const struct hghca_hwmr_attr *attr, u32 num_mtts);
int hghca_hwmr_create_physical(struct hghca_dev *hdev, struct hghca_hwmr *mr, u32 pdn, u32 access);
int hghca_hwmr_create_umem(struct hghca_dev *hdev, struct hghca_hwmr *mr,
			   const struct hghca_hwmr_attr *attr, struct ib_umem *umem, u64 offset);
int hghca_hwmr_create_chunks(struct hghca_dev *hdev, struct hghca_hwmr *mr,
			     const struct hghca_hwmr_attr *attr,
			     const struct hghca_queue_chunk *chunks, u32 num_chunks);
int hghca_hwmr_change(struct hghca_dev *hdev, struct hghca_hwmr *mr,
		      const struct hghca_hwmr_attr *from, const struct hghca_hwmr_attr *to,
		      struct ib_umem *umem, bool new_pages);
int hghca_hwmr_query(struct hghca_dev *hdev, const struct hghca_hwmr *mr, struct hghca_mpt *mpt);
int hghca_hwmr_disable(struct hghca_dev *hdev, struct hghca_hwmr *mr);
int hghca_hwmr_destroy(struct hghca_dev *hdev, struct hghca_hwmr *mr);
void hghca_hwmr_take(struct hghca_dev *hdev, struct hghca_hwmr *mr);
int hghca_mtts_clear(struct hghca_dev *hdev, const struct hghca_mtts *mtts, u32 from, u32 count);

/*
 * queue.c.  May sleep.
 * alloc: zeroed kernel memory, rounded up to a power of two, under an MR in PD @pdn.
 * map_user: an MR over @size bytes of @umem from @offset on, a multiple of 4096;
 *	the caller releases @umem after hghca_queue_free().
 * @hw_writes: CQs and EQs; the device only reads SQs, RQs and SRQs.
 * The MR of a CQ is in hdev->pdn; those of a QP's queues and of an SRQ are in its PD.
 * free: also on a queue that is all zeros.
 */
int hghca_queue_alloc(struct hghca_dev *hdev, struct hghca_queue *queue, u32 pdn,
		      size_t size, bool hw_writes);
int hghca_queue_map_user(struct hghca_dev *hdev, struct hghca_queue *queue, u32 pdn,
			 struct ib_umem *umem, u64 offset, size_t size, bool hw_writes);
void hghca_queue_free(struct hghca_dev *hdev, struct hghca_queue *queue);

/* qpc.c */
void hghca_qpc_init(struct hghca_qpc *qpc, const struct hghca_qpc_attr *attr);

/* uar.c */
int hghca_uar_map_kernel(struct hghca_dev *hdev);
void hghca_uar_unmap_kernel(struct hghca_dev *hdev);
int hghca_uar_alloc(struct hghca_dev *hdev, struct hghca_uar *uar);
void hghca_uar_free(struct hghca_dev *hdev, const struct hghca_uar *uar);

/*
 * dbr.c.  May sleep.  User records: @addr must be 8-byte aligned.
 * free: both kinds, and a record that is all zeros.
 */
int hghca_dbr_init(struct hghca_dev *hdev);
void hghca_dbr_cleanup(struct hghca_dev *hdev);
int hghca_dbr_alloc(struct hghca_dev *hdev, struct hghca_dbr *dbr);
void hghca_user_pages_init(struct hghca_user_pages *pages);
int hghca_dbr_map_user(struct hghca_dev *hdev, struct hghca_user_pages *pages,
		       struct hghca_dbr *dbr, u64 addr);
void hghca_dbr_free(struct hghca_dev *hdev, struct hghca_dbr *dbr);

#endif /* HGHCA_HW_LAYER_H */
