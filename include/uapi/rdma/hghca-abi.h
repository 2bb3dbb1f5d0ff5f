/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB) */
/* JingZhao HCA: the ABI between the verbs provider and the kernel driver. */
#ifndef HGHCA_ABI_USER_H
#define HGHCA_ABI_USER_H

#include <linux/types.h>
#include <rdma/ib_user_ioctl_cmds.h>

#define HGHCA_UVERBS_ABI_VERSION	1

/*
 * A user context. The user maps its UAR page with mmap at uar_mmap_offset:
 * one page, writable. It need not be readable.
 */
struct hghca_alloc_ucontext_resp {
	__aligned_u64 uar_mmap_offset;
	__u32 uar_index;
	__u32 caps;		/* HGHCA_CAP_* that are enabled */
	__u32 max_qp_wr;
	__u32 max_cqe;
	__u16 max_sge;
	__u16 max_desc_sz;	/* bytes, send */
	__u16 max_sge_rq;
	__u16 max_desc_sz_rq;
	__u32 max_srq_wr;	/* work requests of an SRQ; 0 without HGHCA_CAP_SRQ */
	__u16 max_srq_sge;
	__u16 reserved;
};

/* UVERBS_METHOD_QUERY_CONTEXT returns the same: struct hghca_alloc_ucontext_resp. */
enum hghca_query_context_attrs {
	HGHCA_ATTR_QUERY_CONTEXT_RESP = (1U << UVERBS_ID_NS_SHIFT),
};

/*
 * Device memory. length is its size in bytes. The user maps it with mmap at
 * mmap_offset. The mapping is length rounded up to whole pages.
 */
struct hghca_dm_resp {
	__aligned_u64 mmap_offset;
	__aligned_u64 length;
};

/* UVERBS_METHOD_DM_ALLOC returns struct hghca_dm_resp, and so does HGHCA_METHOD_DM_QUERY. */
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

/* A partition, to whose regions PART appends records. */
enum hghca_objects {
	HGHCA_OBJECT_PARTITION = (1U << UVERBS_ID_NS_SHIFT),
};

enum hghca_partition_methods {
	HGHCA_METHOD_PARTITION_CREATE = (1U << UVERBS_ID_NS_SHIFT),
	HGHCA_METHOD_PARTITION_DESTROY,
	HGHCA_METHOD_PARTITION_QUERY,
};

/*
 * log_record: log2 of the bytes of a record
 * log_regions: log2 of the number of regions
 * key_offset, key_size: bytes of a record that are its key, little-endian
 * key_shift: lowest bit of the key that selects the region
 */
struct hghca_partition_desc {
	__u8 log_record;
	__u8 log_regions;
	__u8 key_offset;
	__u8 key_size;
	__u8 key_shift;
	__u8 reserved[3];
};

/* length: bytes */
struct hghca_partition_range {
	__aligned_u64 addr;
	__u32 rkey;
	__u32 length;
};

enum hghca_partition_create_attrs {
	HGHCA_ATTR_PARTITION_CREATE_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
	HGHCA_ATTR_PARTITION_CREATE_PD_HANDLE,
	HGHCA_ATTR_PARTITION_CREATE_DESC,		/* hghca_partition_desc */
	HGHCA_ATTR_PARTITION_CREATE_RANGES,		/* 1 << log_regions hghca_partition_range */
	HGHCA_ATTR_PARTITION_CREATE_RESP_KEY,		/* __u32: what PART names */
};

enum hghca_partition_destroy_attrs {
	HGHCA_ATTR_PARTITION_DESTROY_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
};

enum hghca_partition_query_attrs {
	HGHCA_ATTR_PARTITION_QUERY_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
	HGHCA_ATTR_PARTITION_QUERY_RESP_FILLED,		/* __u32 for each region: bytes */
};

struct hghca_alloc_pd_resp {
	__u32 pdn;
	__u32 reserved;
};

/*
 * For CQs, QPs and SRQs: buf_addr is not used if the buffer is an attribute of the method,
 * and the first byte of that buffer is page-aligned.
 *
 * buf_addr: the CQ buffer, page-aligned.  The number of its CQEs is the smallest
 * power of two above the number requested.
 * dbr_addr: struct hghca_cq_dbr of the CQ, 8-byte aligned.
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
 * buf_addr: the QP buffer, page-aligned.  The send queue of sq_wqe_cnt <<
 * log_sq_stride bytes is at its start.  The receive queue of rq_wqe_cnt <<
 * log_rq_stride bytes is at the next multiple of 4096.  A count is a power of
 * two, or 0 without such a queue.
 * dbr_addr: struct hghca_qp_dbr of the QP, 8-byte aligned.
 * flags: HGHCA_CREATE_QP_*
 */
struct hghca_create_qp {
	__aligned_u64 buf_addr;
	__aligned_u64 dbr_addr;
	__u32 sq_wqe_cnt;
	__u32 rq_wqe_cnt;
	__u8 log_sq_stride;
	__u8 log_rq_stride;
	__u8 reserved[2];
	__u32 flags;
};

/* An RC QP with PART, READ_POINTER and READ_CONSISTENT; needs HGHCA_CAP_VENDOR_OPS. */
#define HGHCA_CREATE_QP_VENDOR_OPS	(1U << 0)

/*
 * Replaces struct hghca_create_qp for a raw packet QP with a table of receive
 * work queues: the hash that distributes the frames.
 * rx_hash_fields_mask: HGHCA_RSS_*, the same values as in verbs.
 * rx_hash_function: enum hghca_rss_function, the same values as in verbs.
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
 * buf_addr: the SRQ buffer, page-aligned, wqe_cnt << log_stride bytes.
 * dbr_addr: struct hghca_srq_dbr of the SRQ, 8-byte aligned.
 * wqe_cnt: a power of two of at least 2.  It exceeds the number of work requests
 * requested, because the chain of WQEs keeps one free.
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
 * For IBV_SRQ_MAX_WR.
 * buf_addr: the new buffer, with the WQEs of the old one at the same offsets.
 * wqe_cnt: a power of two, not less than the old one.
 */
struct hghca_modify_srq {
	__aligned_u64 buf_addr;
	__u32 wqe_cnt;
	__u32 reserved;
};

/*
 * buf_addr: the WQ buffer, page-aligned, wqe_cnt << log_stride bytes.
 * dbr_addr: struct hghca_qp_dbr of the WQ, 8-byte aligned.
 * wqe_cnt: a power of two.
 */
struct hghca_create_wq {
	__aligned_u64 buf_addr;
	__aligned_u64 dbr_addr;
	__u32 wqe_cnt;
	__u8 log_stride;
	__u8 reserved[3];
};

/*
 * dmac: the destination MAC
 * smac, sip: source MAC and IPv4 address, in network byte order, of a device without
 * HGHCA_CAP_GID_TABLE; otherwise 0
 */
struct hghca_create_ah_resp {
	__u8 dmac[6];
	__u8 smac[6];
	__be32 sip;
};

#endif /* HGHCA_ABI_USER_H */
