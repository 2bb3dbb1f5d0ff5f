/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* JingZhao HCA: what the verbs provider and the kernel driver say to each other. */
#ifndef HGHCA_ABI_USER_H
#define HGHCA_ABI_USER_H

#include <linux/types.h>
#include <rdma/ib_user_ioctl_cmds.h>

#define HGHCA_UVERBS_ABI_VERSION	1

/*
 * A user context: its UAR page is mapped with mmap at uar_mmap_offset,
 * one page, writable, not readable by need.
 */
struct hghca_alloc_ucontext_resp {
	__aligned_u64 uar_mmap_offset;
	__u32 uar_index;
	__u32 caps;		/* HGHCA_CAP_* turned on */
	__u32 max_qp_wr;
	__u32 max_cqe;
	__u16 max_sge;
	__u16 max_desc_sz;	/* bytes, send */
	__u16 max_sge_rq;
	__u16 max_desc_sz_rq;
	__u32 max_srq_wr;	/* work requests an SRQ takes; 0 without HGHCA_CAP_SRQ */
	__u16 max_srq_sge;
	__u16 reserved;
};

/* UVERBS_METHOD_QUERY_CONTEXT gives the same again: struct hghca_alloc_ucontext_resp. */
enum hghca_query_context_attrs {
	HGHCA_ATTR_QUERY_CONTEXT_RESP = (1U << UVERBS_ID_NS_SHIFT),
};

/*
 * Device memory of length bytes: mapped with mmap at mmap_offset, as many whole
 * pages as it takes.
 */
struct hghca_dm_resp {
	__aligned_u64 mmap_offset;
	__aligned_u64 length;
};

/* UVERBS_METHOD_DM_ALLOC tells of it, and so does a method of the driver's own. */
enum hghca_dm_alloc_attrs {
	HGHCA_ATTR_DM_ALLOC_RESP = (1U << UVERBS_ID_NS_SHIFT),		/* hghca_dm_resp */
};

enum hghca_dm_methods {
	HGHCA_METHOD_DM_QUERY = (1U << UVERBS_ID_NS_SHIFT),
};

enum hghca_dm_query_attrs {
	HGHCA_ATTR_DM_QUERY_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
	HGHCA_ATTR_DM_QUERY_RESP,					/* hghca_dm_resp */
};

struct hghca_alloc_pd_resp {
	__u32 pdn;
	__u32 reserved;
};

/*
 * buf_addr: the CQ buffer, page-aligned, of the smallest power of two of CQEs
 * above the number asked for; dbr_addr: its struct hghca_cq_dbr, 8-byte aligned.
 */
struct hghca_create_cq {
	__aligned_u64 buf_addr;
	__aligned_u64 dbr_addr;
};

struct hghca_create_cq_resp {
	__u32 cqn;
	__u32 reserved;
};

struct hghca_resize_cq_cmd {
	__aligned_u64 buf_addr;
};

/*
 * buf_addr: page-aligned; the send queue of sq_wqe_cnt << log_sq_stride bytes
 * at its start, the receive queue of rq_wqe_cnt << log_rq_stride bytes at the
 * next multiple of 4096.  Counts are powers of two, or 0 for no such queue.
 */
struct hghca_create_qp {
	__aligned_u64 buf_addr;
	__aligned_u64 dbr_addr;
	__u32 sq_wqe_cnt;
	__u32 rq_wqe_cnt;
	__u8 log_sq_stride;
	__u8 log_rq_stride;
	__u8 reserved[6];
};

/*
 * A raw packet QP with a table of receive work queues, in the place of struct
 * hghca_create_qp: how frames are spread.  rx_hash_function: enum
 * hghca_rss_function; rx_hash_fields_mask: HGHCA_RSS_*; both as verbs have them.
 */
struct hghca_create_rss_qp {
	__aligned_u64 rx_hash_fields_mask;
	__u8 rx_hash_function;
	__u8 rx_hash_key_len;	/* bytes: 40 */
	__u8 reserved[6];
	__u8 rx_hash_key[40];
};

struct hghca_create_qp_resp {
	__u32 qpn;
	__u32 reserved;
};

/*
 * buf_addr: page-aligned, wqe_cnt << log_stride bytes; dbr_addr: its struct
 * hghca_srq_dbr, 8-byte aligned.  wqe_cnt is a power of two of at least 2, and
 * more than the work requests asked for: the chain of WQEs keeps one free.
 */
struct hghca_create_srq {
	__aligned_u64 buf_addr;
	__aligned_u64 dbr_addr;
	__u32 wqe_cnt;
	__u8 log_stride;
	__u8 reserved[3];
};

struct hghca_create_srq_resp {
	__u32 srqn;
	__u32 reserved;
};

/*
 * For IBV_SRQ_MAX_WR: the new buffer, with the WQEs of the old one at the same
 * offsets; wqe_cnt, a power of two, is not below the old one.
 */
struct hghca_modify_srq {
	__aligned_u64 buf_addr;
	__u32 wqe_cnt;
	__u32 reserved;
};

/*
 * buf_addr: page-aligned, wqe_cnt << log_stride bytes; dbr_addr: its struct
 * hghca_qp_dbr, 8-byte aligned.  wqe_cnt is a power of two.
 */
struct hghca_create_wq {
	__aligned_u64 buf_addr;
	__aligned_u64 dbr_addr;
	__u32 wqe_cnt;
	__u8 log_stride;
	__u8 reserved[3];
};

struct hghca_create_ah_resp {
	__u8 dmac[6];
	__u8 reserved[2];
};

#endif /* HGHCA_ABI_USER_H */
