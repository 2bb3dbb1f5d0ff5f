/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * JingZhao HCA: registers, commands, contexts, descriptors and events.
 *
 * docs/hardware-interface.rst is normative; this header follows it section by
 * section and is shared by the kernel driver, the verbs provider and the
 * device model.  It compiles as kernel C, as C11 and as C++20.
 *
 * Byte order: HCR registers, doorbells, WQEs and CQEs are little-endian;
 * mailboxes and EQEs are big-endian.
 */
#ifndef HGHCA_HW_H
#define HGHCA_HW_H

#include <linux/types.h>
#include <hghca/cmd.h>
#include <hghca/qp.h>
#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/stddef.h>
#else
#include <stddef.h>
#include <assert.h>
#endif

/* The bits high..low of a 32-bit word. */
#define HGHCA_MASK(high, low) ((0xffffffffU >> (31 - (high))) & (0xffffffffU << (low)))

#define HGHCA_ASSERT_SIZE(type, bytes) \
	static_assert(sizeof(struct type) == (bytes), #type ": wrong size")
#define HGHCA_ASSERT_OFFSET(type, field, bytes) \
	static_assert(offsetof(struct type, field) == (bytes), #type "." #field ": wrong offset")

/* ------------------------------------------------------------------ */
/* PCI                                                                  */

#define HGHCA_PCI_VENDOR_ID		0x1af4
#define HGHCA_PCI_DEVICE_ID		0x10f1
#define HGHCA_PCI_CLASS			0x020700
#define HGHCA_INTERFACE_REVISION	1

#define HGHCA_BAR_HCR			0
#define HGHCA_BAR_UAR			2
#define HGHCA_BAR_MSIX			4
#define HGHCA_BAR_HCR_SIZE		0x100000
#define HGHCA_BAR_UAR_SIZE		0x800000
#define HGHCA_DEVICE_MEMORY_OFFSET	HGHCA_BAR_UAR_SIZE	/* in BAR2, extension */
#define HGHCA_DEVICE_MEMORY_MAX		0x800000		/* bytes */
#define HGHCA_BAR2_SIZE			(HGHCA_DEVICE_MEMORY_OFFSET + HGHCA_DEVICE_MEMORY_MAX)

/* ------------------------------------------------------------------ */
/* BAR0: HCR and reset                                                  */

#define HGHCA_HCR_BASE			0x80000
#define HGHCA_HCR_SIZE			0x1c
#define HGHCA_RESET			0xf0010
#define HGHCA_RESET_START		1

/* Offsets in the HCR. */
#define HGHCA_HCR_IN_PARAM_H		0x00
#define HGHCA_HCR_IN_PARAM_L		0x04
#define HGHCA_HCR_IN_MODIFIER		0x08
#define HGHCA_HCR_OUT_PARAM_H		0x0c
#define HGHCA_HCR_OUT_PARAM_L		0x10
#define HGHCA_HCR_TOKEN			0x14
#define HGHCA_HCR_STATUS		0x18

#define HGHCA_HCR_TOKEN_MASK		HGHCA_MASK(31, 16)
#define HGHCA_HCR_STATUS_MASK		HGHCA_MASK(31, 24)
#define HGHCA_HCR_GO			HGHCA_MASK(23, 23)
#define HGHCA_HCR_EVENT			HGHCA_MASK(22, 22)
#define HGHCA_HCR_OPMOD_MASK		HGHCA_MASK(19, 12)
#define HGHCA_HCR_OP_MASK		HGHCA_MASK(11, 0)

#define HGHCA_CMD_POLL_TOKEN		0xffff
#define HGHCA_MAILBOX_SIZE		4096

/* ------------------------------------------------------------------ */
/* BAR2: UAR pages                                                      */

#define HGHCA_UAR_PAGE_SIZE		4096
#define HGHCA_UAR_PAGES			(HGHCA_BAR_UAR_SIZE / HGHCA_UAR_PAGE_SIZE)

/* Offsets in a UAR page: each a 64-bit doorbell, or two 32-bit writes, low first. */
#define HGHCA_UAR_SQ_DB			0x00
#define HGHCA_UAR_CQ_ARM		0x10
#define HGHCA_UAR_EQ_ARM		0x20
#define HGHCA_UAR_CLOCK			0x30	/* extension CLOCK: 64 bits, to read */

/* SQ doorbell, low word. */
#define HGHCA_SQ_DB_COUNT_MASK		HGHCA_MASK(31, 24)
#define HGHCA_SQ_DB_HEAD_MASK		HGHCA_MASK(23, 8)
#define HGHCA_SQ_DB_FENCE		HGHCA_MASK(5, 5)
#define HGHCA_SQ_DB_OPCODE_MASK		HGHCA_MASK(4, 0)
/* SQ doorbell, high word. */
#define HGHCA_SQ_DB_QPN_MASK		HGHCA_MASK(31, 8)
#define HGHCA_SQ_DB_SIZE0_MASK		HGHCA_MASK(7, 0)

/* CQ arm doorbell: low word is the consumer index; high word: */
#define HGHCA_CQ_ARM_CMD_MASK		HGHCA_MASK(31, 24)
#define HGHCA_CQ_ARM_CQN_MASK		HGHCA_MASK(23, 0)
#define HGHCA_CQ_ARM_SOLICITED		1
#define HGHCA_CQ_ARM_NEXT		2

/* EQ arm doorbell: low word is the consumer index; high word: */
#define HGHCA_EQ_ARM_CMD_MASK		HGHCA_MASK(31, 24)
#define HGHCA_EQ_ARM_EQN_MASK		HGHCA_MASK(7, 0)
#define HGHCA_EQ_ARM_UPDATE		0
#define HGHCA_EQ_ARM_ARM		1

/* QUERY_DEV_LIM output, table 3-2-3 of the seed. Counts are log2 unless said otherwise. */
struct hghca_dev_lim {
	__u8	log_reserved_qps;	/* 00h */
	__u8	log_reserved_cqs;
	__u8	log_reserved_eqs;
	__u8	log_reserved_mtts;
	__u8	rsvd04;			/* 04h */
	__u8	log_reserved_pds;
	__u8	rsvd06;
	__u8	log_reserved_lkeys;
	__be16	log_max_qp_sz;		/* 08h */
	__be16	log_max_cq_sz;
	__u8	log_max_qps;		/* 0Ch */
	__u8	log_max_cqs;
	__u8	log_max_eqs;
	__u8	log_max_mpts;
	__u8	log_max_pds;		/* 10h */
	__u8	rsvd11;
	__u8	log_max_gids;
	__u8	log_max_pkeys;
	__u8	rsvd14;			/* 14h */
	__u8	mtt_entry_sz;		/* bytes */
	__be16	rsvd16;
	__be16	qpc_entry_sz;		/* 18h, bytes */
	__be16	cqc_entry_sz;
	__be16	eqc_entry_sz;		/* 1Ch, bytes */
	__be16	mpt_entry_sz;
	__u8	ack_delay;		/* 20h, low nibble */
	__u8	mtu_width;		/* max_mtu 7:4, max_port_width 3:0 */
	__u8	rsvd22;
	__u8	vl_ports;		/* max_vl 7:4, num_ports 3:0 */
	__u8	rsvd24;			/* 24h */
	__u8	log_min_page_sz;
	__be16	rsvd26;
	__u8	rsvd28;			/* 28h */
	__u8	max_sg;			/* entries */
	__be16	max_desc_sz;		/* bytes */
	__u8	rsvd2c;			/* 2Ch */
	__u8	max_sg_rq;
	__be16	max_desc_sz_rq;
	__be64	max_icm_sz;		/* 30h, bytes */
	__be32	revision;		/* 38h, extension: HGHCA_INTERFACE_REVISION */
	__be32	caps;			/* 3Ch, extension: HGHCA_CAP_* */
	__u8	log_max_mtts;		/* 40h, extension */
	__u8	max_rd_atomic;		/* per QP, as initiator; a number, not a log */
	__u8	max_dest_rd_atomic;	/* per QP, as target */
	__u8	log_max_uars;
	__u8	log_max_msg;		/* 44h, extension: bytes */
	__u8	log_max_page_sz;
	__be16	num_vectors;		/* MSI-X vectors */
	__u8	log_max_srqs;		/* 48h, extension SRQ */
	__u8	log_max_srq_sz;		/* WQEs */
	__u8	max_sg_srq;		/* entries */
	__u8	rsvd4b;
	__be16	srqc_entry_sz;		/* 4Ch, bytes */
	__be16	rsvd4e;
	__u8	log_max_xrcds;		/* 50h, extension XRC */
	__u8	rsvd51[3];
	__u8	log_max_mcgs;		/* 54h, extension MULTICAST: entries of the group table */
	__u8	qps_per_mcg;		/* a number, not a log */
	__be16	mcg_entry_sz;		/* 56h, bytes */
	__be16	num_counter_sets;	/* 58h, extension QP_COUNTERS; set 0 is none */
	__be16	rsvd5a;
	__u8	log_max_flows;		/* 5Ch, extension RAW_PACKET: flow rules */
	__u8	max_flow_masks;		/* a number, not a log, as is the next */
	__u8	qps_per_flow;
	__u8	rsvd5f;
	__be32	clock_khz;		/* 60h, extension CLOCK: ticks a millisecond */
	__u8	log_device_memory;	/* 64h, extension DEVICE_MEMORY: bytes */
	__u8	rsvd65[3];
	__u8	log_max_rss;		/* 68h, extension RSS: groups */
	__u8	log_max_rss_size;	/* entries of a group */
	__be16	rsvd6a;
	__be32	rsvd6c[5];
};
HGHCA_ASSERT_SIZE(hghca_dev_lim, 0x80);
HGHCA_ASSERT_OFFSET(hghca_dev_lim, log_max_qps, 0x0c);
HGHCA_ASSERT_OFFSET(hghca_dev_lim, qpc_entry_sz, 0x18);
HGHCA_ASSERT_OFFSET(hghca_dev_lim, ack_delay, 0x20);
HGHCA_ASSERT_OFFSET(hghca_dev_lim, max_sg, 0x29);
HGHCA_ASSERT_OFFSET(hghca_dev_lim, max_icm_sz, 0x30);
HGHCA_ASSERT_OFFSET(hghca_dev_lim, caps, 0x3c);
HGHCA_ASSERT_OFFSET(hghca_dev_lim, log_max_mtts, 0x40);
HGHCA_ASSERT_OFFSET(hghca_dev_lim, num_vectors, 0x46);
HGHCA_ASSERT_OFFSET(hghca_dev_lim, srqc_entry_sz, 0x4c);
HGHCA_ASSERT_OFFSET(hghca_dev_lim, log_max_mcgs, 0x54);
HGHCA_ASSERT_OFFSET(hghca_dev_lim, mcg_entry_sz, 0x56);
HGHCA_ASSERT_OFFSET(hghca_dev_lim, num_counter_sets, 0x58);
HGHCA_ASSERT_OFFSET(hghca_dev_lim, log_max_flows, 0x5c);
HGHCA_ASSERT_OFFSET(hghca_dev_lim, clock_khz, 0x60);
HGHCA_ASSERT_OFFSET(hghca_dev_lim, log_device_memory, 0x64);
HGHCA_ASSERT_OFFSET(hghca_dev_lim, log_max_rss, 0x68);

/* Valid bits of the logs; those above may be anything. */
#define HGHCA_DEV_LIM_RESERVED_MASK	0x0f	/* all log_reserved_* */
#define HGHCA_DEV_LIM_QPS_MASK		0x1f	/* log_max_qps, log_max_cqs */
#define HGHCA_DEV_LIM_EQS_MASK		0x07
#define HGHCA_DEV_LIM_MPTS_MASK		0x3f	/* log_max_mpts, log_max_pds */
#define HGHCA_DEV_LIM_GIDS_MASK		0x0f	/* log_max_gids, log_max_pkeys */
#define HGHCA_DEV_LIM_MTU_MASK		0xf0
#define HGHCA_DEV_LIM_WIDTH_MASK	0x0f
#define HGHCA_DEV_LIM_VL_MASK		0xf0
#define HGHCA_DEV_LIM_PORTS_MASK	0x0f

/* QUERY_ADAPTER output, table 3-2-6. */
struct hghca_adapter {
	__be32	rsvd00[6];
	__be64	board_id;		/* 18h */
	__be64	node_guid;		/* 20h, extension */
	__be32	fw_version;		/* 28h, extension: major 31:16, minor 15:0 */
	__be32	rsvd2c[5];
};
HGHCA_ASSERT_SIZE(hghca_adapter, 0x40);
HGHCA_ASSERT_OFFSET(hghca_adapter, board_id, 0x18);
HGHCA_ASSERT_OFFSET(hghca_adapter, node_guid, 0x20);

/* INIT_HCA input, table 3-2-9. Bases: bits 63:8 the ICM address, bits 7:0 log2 of the entries. */
struct hghca_init_hca {
	__be64	mcg_base;		/* 00h, extension MULTICAST */
	__be64	qpc_base;		/* 08h */
	__be64	cqc_base;		/* 10h */
	__be64	eqc_base;		/* 18h */
	__be32	caps;			/* 20h, extension: HGHCA_CAP_* to turn on */
	__be32	rsvd24;
	__be64	srqc_base;		/* 28h, extension SRQ */
	__be64	mpt_base;		/* 30h */
	__be64	mtt_base;		/* 38h, the address alone */
};
HGHCA_ASSERT_SIZE(hghca_init_hca, 0x40);
HGHCA_ASSERT_OFFSET(hghca_init_hca, eqc_base, 0x18);
HGHCA_ASSERT_OFFSET(hghca_init_hca, caps, 0x20);
HGHCA_ASSERT_OFFSET(hghca_init_hca, srqc_base, 0x28);
HGHCA_ASSERT_OFFSET(hghca_init_hca, mpt_base, 0x30);

#define HGHCA_INIT_HCA_LOG_MASK		0xffULL

/* MAP_ICM input, table 3-2-13: pairs, the lower number at the higher offset. */
struct hghca_icm_chunk {
	__be64	virt;			/* ICM address, 4096-aligned */
	__be64	page;			/* DMA address 63:12, number of 4096-byte pages 11:0 */
};
HGHCA_ASSERT_SIZE(hghca_icm_chunk, 16);

#define HGHCA_ICM_PAGE_SIZE		4096
#define HGHCA_ICM_CHUNK_PAGES_MASK	0xfffULL
#define HGHCA_ICM_CHUNKS_MAX		(HGHCA_MAILBOX_SIZE / 16)
/* Where entry i of a MAP_ICM mailbox stands. */
#define HGHCA_ICM_CHUNK_SLOT(i)		((i) ^ 1)

/* WRITE_MTT input, table 3-2-22: quads, the lower number at the higher offset. */
struct hghca_mtt_mailbox {
	__be64	rsvd00[3];
	__be64	start_index;		/* 18h */
	__be64	entry[508];		/* 20h */
};
HGHCA_ASSERT_SIZE(hghca_mtt_mailbox, HGHCA_MAILBOX_SIZE);
HGHCA_ASSERT_OFFSET(hghca_mtt_mailbox, entry, 0x20);

#define HGHCA_MTT_PER_MAILBOX		508
#define HGHCA_MTT_ADDR_MASK		(~0xfffULL)
#define HGHCA_MTT_ABSENT		(1ULL << 0)	/* extension ODP: there is no page */
#define HGHCA_MTT_READ_ONLY		(1ULL << 1)	/* extension ODP: none to write to */
/* Where entry i of a WRITE_MTT mailbox stands. */
#define HGHCA_MTT_SLOT(i)		((i) ^ 3)

/*
 * A tree of MTTs, extension ODP: tables of three levels reach 2^36 pages. An entry of the
 * upper two has the index of the first MTT of a table below where others have a page's number.
 */
#define HGHCA_MTT_TREE_LEVELS		3
#define HGHCA_MTT_TABLE_SHIFT		12
#define HGHCA_MTT_TABLE_ENTRIES		(1U << HGHCA_MTT_TABLE_SHIFT)
#define HGHCA_MTT_TABLE_INDEX_SHIFT	12	/* in an entry */

/* CLEAR_MTT, extension ODP: in_param is the index of the first, in_modifier their number. */
#define HGHCA_CLEAR_MTT_MAX		65536

/* in_param of RESUME_QP, extension ODP; the bits above are 0. */
#define HGHCA_RESUME_TOKEN_MASK		HGHCA_MASK(31, 16)	/* of the PAGE_FAULT event */
#define HGHCA_RESUME_RESPONDER		(1U << 1)	/* the receive side, or the send side */
#define HGHCA_RESUME_FAILED		(1U << 0)	/* there is no such page */

/* MPT, table 3-2-17. */
struct hghca_mpt {
	__be32	flags;			/* 00h */
	__be32	page_size;		/* 04h, log2(bytes) - 12 */
	__be32	key;			/* 08h: an index and a tag, by HGHCA_KEY_* or the seed */
	__be32	pd;			/* 0Ch */
	__be64	start;			/* 10h, virtual address */
	__be64	length;			/* 18h, bytes */
	__be32	lkey;			/* 20h */
	__be32	window_count;		/* 24h */
	__be32	window_count_limit;	/* 28h */
	__be32	mtt_seg_h;		/* 2Ch, index of the first MTT; with DEVICE a byte's */
	__be32	mtt_seg_l;		/* 30h */
	__be32	mtt_sz;			/* 34h */
	__be32	first_byte;		/* 38h: offset in the first page, extension FIRST_BYTE */
	__be32	rsvd3c;
};
HGHCA_ASSERT_SIZE(hghca_mpt, 64);
HGHCA_ASSERT_OFFSET(hghca_mpt, start, 0x10);
HGHCA_ASSERT_OFFSET(hghca_mpt, mtt_seg_h, 0x2c);
HGHCA_ASSERT_OFFSET(hghca_mpt, mtt_sz, 0x34);
HGHCA_ASSERT_OFFSET(hghca_mpt, first_byte, 0x38);

/* Keys with HGHCA_CAP_MEM_MGT; without, the index stands in the low bits, the tag above. */
#define HGHCA_KEY_INDEX_MASK		HGHCA_MASK(31, 8)
#define HGHCA_KEY_TAG_MASK		HGHCA_MASK(7, 0)

#define HGHCA_MPT_FLAG_SW_OWNS		(0xfU << 28)
#define HGHCA_MPT_FLAG_MIO		(1U << 17)
#define HGHCA_MPT_FLAG_BIND_ENABLE	(1U << 15)
#define HGHCA_MPT_FLAG_TREE		(1U << 14)	/* extension ODP: its MTTs are a tree */
#define HGHCA_MPT_FLAG_DEVICE		(1U << 13)	/* extension: in memory on the device */
#define HGHCA_MPT_FLAG_WINDOW_QP	(1U << 12)	/* extension: a window of type 2B */
#define HGHCA_MPT_FLAG_FREE		(1U << 11)	/* extension: its key opens nothing */
#define HGHCA_MPT_FLAG_FAST_REG		(1U << 10)	/* extension: a region for REG_MR */
#define HGHCA_MPT_FLAG_PHYSICAL		(1U << 9)
#define HGHCA_MPT_FLAG_REGION		(1U << 8)
#define HGHCA_ACCESS_LOCAL_WRITE	(1U << 0)
#define HGHCA_ACCESS_REMOTE_WRITE	(1U << 1)
#define HGHCA_ACCESS_REMOTE_READ	(1U << 2)
#define HGHCA_ACCESS_REMOTE_ATOMIC	(1U << 3)
#define HGHCA_ACCESS_MW_BIND		(1U << 4)
#define HGHCA_ACCESS_ZERO_BASED		(1U << 5)
#define HGHCA_ACCESS_ON_DEMAND		(1U << 6)	/* extension ODP: pages may be absent */
#define HGHCA_ACCESS_FLUSH_GLOBAL	(1U << 7)	/* extension PLACEMENT */

/* EQ context, table 3-2-27. */
struct hghca_eqc {
	__be32	flags;			/* 00h */
	__be64	start __attribute__((packed, aligned(4)));	/* 04h */
	__u8	logsize;		/* 0Ch */
	__u8	rsvd0d[3];
	__be32	rsvd10;
	__u8	rsvd14[3];
	__u8	intr;			/* 17h, MSI-X vector */
	__be32	pd;			/* 18h */
	__be32	lkey;			/* 1Ch */
	__be32	rsvd20[2];
	__be32	consumer_index;		/* 28h */
	__be32	producer_index;		/* 2Ch */
	__be32	rsvd30[4];
};
HGHCA_ASSERT_SIZE(hghca_eqc, 64);
HGHCA_ASSERT_OFFSET(hghca_eqc, start, 0x04);
HGHCA_ASSERT_OFFSET(hghca_eqc, intr, 0x17);
HGHCA_ASSERT_OFFSET(hghca_eqc, consumer_index, 0x28);

#define HGHCA_EQ_OWNER_HW		(1U << 24)
#define HGHCA_EQ_FLAG_TR		(1U << 18)
#define HGHCA_EQ_STATE_ARMED		(1U << 8)

/* MAP_EQ in_modifier. */
#define HGHCA_MAP_EQ_UNMAP		(1U << 31)

/* CQ context, table 3-2-32. */
struct hghca_cqc {
	__be32	flags;			/* 00h */
	__be64	start __attribute__((packed, aligned(4)));	/* 04h */
	__be32	logsize_usrpage;	/* 0Ch: logsize 31:24, usrpage 23:0 */
	__be32	comp_eqn;		/* 10h */
	__be32	pd;			/* 14h */
	__be32	lkey;			/* 18h */
	__be32	rsvd1c;
	__be32	solicited_index;	/* 20h, extension, as the next two: QUERY_CQ */
	__be32	consumer_index;		/* 24h, of the doorbell record */
	__be32	producer_index;		/* 28h */
	__be32	cqn;			/* 2Ch */
	__be64	dbr_addr;		/* 30h, extension: struct hghca_cq_dbr; bit 0: valid */
	__be32	rsvd38[2];
};
HGHCA_ASSERT_SIZE(hghca_cqc, 64);
HGHCA_ASSERT_OFFSET(hghca_cqc, logsize_usrpage, 0x0c);
HGHCA_ASSERT_OFFSET(hghca_cqc, producer_index, 0x28);
HGHCA_ASSERT_OFFSET(hghca_cqc, cqn, 0x2c);
HGHCA_ASSERT_OFFSET(hghca_cqc, dbr_addr, 0x30);

#define HGHCA_CQ_FLAG_TR		(1U << 18)
#define HGHCA_CQ_FLAG_TIMESTAMP		(1U << 19)	/* ext. CLOCK: struct hghca_timed_cqe */
#define HGHCA_CQ_STATE_ARMED		(1U << 8)
#define HGHCA_CQ_STATE_ARMED_SOL	(1U << 10)	/* QUERY_CQ */
#define HGHCA_CQ_FAILED			(1U << 31)	/* QUERY_CQ */
#define HGHCA_CQC_LOGSIZE_MASK		HGHCA_MASK(31, 24)
#define HGHCA_CQC_USRPAGE_MASK		HGHCA_MASK(23, 0)

/* RESIZE_CQ input, table 3-2-37. */
struct hghca_resize_cq {
	__be32	logsize;		/* 00h: logsize 31:24 */
	__be32	lkey;			/* 04h */
	__be32	rsvd08[6];
};
HGHCA_ASSERT_SIZE(hghca_resize_cq, 0x20);

/* in_param of MODERATE_CQ, extension. */
#define HGHCA_CQ_MODERATION_COUNT_MASK	HGHCA_MASK(31, 16)	/* completions */
#define HGHCA_CQ_MODERATION_PERIOD_MASK	HGHCA_MASK(15, 0)	/* us */

/* SRQ context, extension. */
struct hghca_srqc {
	__be32	flags;			/* 00h: HGHCA_SRQ_* */
	__be32	srqn;			/* 04h */
	__be32	pd;			/* 08h */
	__be32	lkey;			/* 0Ch: key of the queue's MR */
	__u8	logsize;		/* 10h: WQEs */
	__u8	entry_sz_log;		/* bytes */
	__be16	limit;			/* 12h: WQEs; 0: not armed */
	__be32	next;			/* 14h: byte offset of the WQE to be taken next */
	__be16	taken;			/* 18h: WQEs taken so far, free-running */
	__be16	rsvd1a;
	__be32	rsvd1c;
	__be64	dbr_addr;		/* 20h: struct hghca_srq_dbr; bit 0: valid */
	__be32	xrcd;			/* 28h: its XRC domain, with HGHCA_SRQ_XRC */
	__be32	cqn;			/* 2Ch: its CQ, likewise */
	__be32	rsvd30[4];
};
HGHCA_ASSERT_SIZE(hghca_srqc, 64);
HGHCA_ASSERT_OFFSET(hghca_srqc, logsize, 0x10);
HGHCA_ASSERT_OFFSET(hghca_srqc, next, 0x14);
HGHCA_ASSERT_OFFSET(hghca_srqc, taken, 0x18);
HGHCA_ASSERT_OFFSET(hghca_srqc, dbr_addr, 0x20);

#define HGHCA_SRQ_FAILED		(1U << 31)	/* read only */
#define HGHCA_SRQ_XRC			(1U << 0)

/* RESIZE_SRQ input, extension. */
struct hghca_resize_srq {
	__u8	logsize;		/* 00h: WQEs */
	__u8	rsvd01[3];
	__be32	lkey;			/* 04h */
	__be32	rsvd08[6];
};
HGHCA_ASSERT_SIZE(hghca_resize_srq, 0x20);

/* QP context with its modify mask, table 3-2-40. */
struct hghca_qpc {
	__be32	opt_param_mask;		/* 00h, HGHCA_QP_ATTR_* */
	__be32	rsvd04;
	__be32	flags;			/* 08h */
	__u8	mtu_msgmax;		/* 0Ch: MTU 7:5, log2 of the longest message 4:0 */
	__u8	rq_entry_sz_log;
	__u8	sq_entry_sz_log;
	__u8	rlkey_sched_queue;
	__be32	usr_page;		/* 10h, UAR page index */
	__be32	local_qpn;		/* 14h */
	__be32	remote_qpn;		/* 18h */
	__be32	port_pkey;		/* 1Ch: port 26:24, P_Key index 6:0 */
	__u8	rnr_retry;		/* 20h */
	__u8	g_mylmc;		/* 21h: bit 7: addressed by GID index */
	__be16	rsvd22;
	__u8	ackto;			/* 24h: Local ACK Timeout 4:0 */
	__u8	mgid_index;		/* source GID index */
	__u8	static_rate;
	__u8	hop_limit;
	__be32	sl_tclass_flowlabel;	/* 28h: SL 31:28, traffic class 27:20, flow label 19:0 */
	__u8	rgid[16];		/* 2Ch */
	__be16	dlid;			/* 3Ch: destination MAC 15:0 */
	__be16	slid;			/* 3Eh: source MAC 15:0 */
	__be32	smac_h;			/* 40h: source MAC 47:16 */
	__be32	dmac_h;			/* 44h: destination MAC 47:16 */
	__be32	sip;			/* 48h */
	__be32	dip;			/* 4Ch */
	__be32	rsvd50[3];
	__be32	pd;			/* 5Ch */
	__be32	wqe_base;		/* 60h */
	__be32	wqe_lkey;		/* 64h */
	__be32	rate;			/* 68h, extension: QUERY_QP: kbit/s left by CNPs; 0: all */
	__be32	next_send_psn;		/* 6Ch */
	__be32	cqn_snd;		/* 70h */
	__be32	snd_wqe_base_l;		/* 74h: key of the send queue's MR */
	__be32	snd_wqe_len;		/* 78h: bytes */
	__be32	last_acked_psn;		/* 7Ch */
	__be32	ssn;			/* 80h */
	__be32	rnr_nextrecvpsn;	/* 84h: min RNR timer 31:24, expected PSN 23:0 */
	__be32	ra_buff_indx;		/* 88h */
	__be32	cqn_rcv;		/* 8Ch */
	__be32	rcv_wqe_base_l;		/* 90h: key of the receive queue's MR */
	__be32	rcv_wqe_len;		/* 94h: bytes */
	__be32	qkey;			/* 98h */
	__be32	rmsn;			/* 9Ch */
	__be64	dbr_addr;		/* A0h, extension: struct hghca_qp_dbr; bit 0: valid */
	__be32	limits;			/* A8h, extension: HGHCA_QPC_LIMITS_* */
	__be32	srqn;			/* ACh, extension: its SRQ; 0: a receive queue of its own */
	__be32	trust;			/* B0h, extension: HGHCA_QPC_TRUST_* */
	__be32	xrcd;			/* B4h, extension: XRC domain of a target; 0: none */
	__be32	counter_set;		/* B8h, extension: 0: none */
	__be16	rq_wqe_counter;		/* BCh */
	__be16	sq_wqe_counter;		/* BEh */
};
HGHCA_ASSERT_SIZE(hghca_qpc, 192);
HGHCA_ASSERT_OFFSET(hghca_qpc, flags, 0x08);
HGHCA_ASSERT_OFFSET(hghca_qpc, port_pkey, 0x1c);
HGHCA_ASSERT_OFFSET(hghca_qpc, rgid, 0x2c);
HGHCA_ASSERT_OFFSET(hghca_qpc, dlid, 0x3c);
HGHCA_ASSERT_OFFSET(hghca_qpc, pd, 0x5c);
HGHCA_ASSERT_OFFSET(hghca_qpc, next_send_psn, 0x6c);
HGHCA_ASSERT_OFFSET(hghca_qpc, cqn_rcv, 0x8c);
HGHCA_ASSERT_OFFSET(hghca_qpc, dbr_addr, 0xa0);
HGHCA_ASSERT_OFFSET(hghca_qpc, srqn, 0xac);
HGHCA_ASSERT_OFFSET(hghca_qpc, trust, 0xb0);
HGHCA_ASSERT_OFFSET(hghca_qpc, counter_set, 0xb8);
HGHCA_ASSERT_OFFSET(hghca_qpc, rq_wqe_counter, 0xbc);

#define HGHCA_QPC_TRUST_REG_MR		HGHCA_MASK(31, 31)	/* may name DMA addresses */
#define HGHCA_QPC_STATE_MASK		HGHCA_MASK(31, 28)
#define HGHCA_QPC_SQ_DRAINING		HGHCA_MASK(27, 27)	/* QUERY_QP */
#define HGHCA_QPC_ST_MASK		HGHCA_MASK(23, 16)
#define HGHCA_QPC_MTU_MASK		0xe0
#define HGHCA_QPC_MSGMAX_MASK		0x1f
#define HGHCA_QPC_PORT_MASK		HGHCA_MASK(26, 24)
#define HGHCA_QPC_PKEY_INDEX_MASK	HGHCA_MASK(6, 0)
#define HGHCA_QPC_GRH			0x80
#define HGHCA_QPC_SL_MASK		HGHCA_MASK(31, 28)
#define HGHCA_QPC_TCLASS_MASK		HGHCA_MASK(27, 20)
#define HGHCA_QPC_FLOWLABEL_MASK	HGHCA_MASK(19, 0)
#define HGHCA_QPC_RNR_TIMER_MASK	HGHCA_MASK(31, 24)
#define HGHCA_QPC_PSN_MASK		HGHCA_MASK(23, 0)
#define HGHCA_QPC_LIMITS_RD_ATOMIC	HGHCA_MASK(31, 24)	/* as initiator */
#define HGHCA_QPC_LIMITS_DEST_RD_ATOMIC	HGHCA_MASK(23, 16)	/* as target */
#define HGHCA_QPC_LIMITS_SQD_NOTIFY	HGHCA_MASK(15, 15)
#define HGHCA_QPC_LIMITS_RETRY_CNT	HGHCA_MASK(10, 8)
#define HGHCA_QPC_LIMITS_ACCESS		HGHCA_MASK(7, 0)	/* HGHCA_ACCESS_REMOTE_* */

/*
 * Mbit/s of each static rate, by its code (IBA vol 1, 15.2.5.16, and rates since): 0 for code 0,
 * which is the port's own, and for code 1, which is none.
 */
#define HGHCA_STATIC_RATE_MBPS { \
	0, 0, 2500, 10000, 30000, 5000, 20000, 40000, \
	60000, 80000, 120000, 14000, 56000, 112000, 168000, 25000, \
	100000, 200000, 300000, 28000, 50000, 400000, 600000, 800000, \
	1200000 }
#define HGHCA_STATIC_RATE_MAX		24
#define HGHCA_STATIC_RATE_NONE		1

/* READ_MGM output and WRITE_MGM input, extension: an entry of the table of multicast groups. */
#define HGHCA_MGM_QPS			56

struct hghca_mgm {
	__be32	next;			/* 00h: index of the next entry of the chain; 0: none */
	__be32	rsvd04[3];
	__u8	gid[16];		/* 10h */
	__be32	qp[HGHCA_MGM_QPS];	/* 20h: HGHCA_MGM_QP_VALID and a QPN each */
};
HGHCA_ASSERT_SIZE(hghca_mgm, 256);
HGHCA_ASSERT_OFFSET(hghca_mgm, gid, 0x10);
HGHCA_ASSERT_OFFSET(hghca_mgm, qp, 0x20);

#define HGHCA_MGM_QP_VALID		HGHCA_MASK(31, 31)
#define HGHCA_MGM_QPN_MASK		HGHCA_MASK(23, 0)
#define HGHCA_MGM_CHAIN_MAX		32	/* entries of a chain that the device looks at */

/* MGID_HASH input, extension. */
struct hghca_mgid {
	__u8	gid[16];
};
HGHCA_ASSERT_SIZE(hghca_mgid, 16);

/*
 * What a flow rule compares, extension: fields of a frame, in wire order.  A frame that has
 * none of a kind has zeros there.
 */
struct hghca_flow_fields {
	__u8	dmac[6];		/* 00h */
	__u8	smac[6];		/* 06h */
	__be16	ether_type;		/* 0Ch: behind the VLAN tag, if there is one */
	__be16	vlan_tci;		/* 0Eh: of the tag */
	__u8	src_ip[16];		/* 10h: an IPv4 address in the last four bytes */
	__u8	dst_ip[16];		/* 20h */
	__be32	flow_label;		/* 30h: 19:0, of IPv6 */
	__u8	protocol;		/* 34h: of IPv4; the next header of IPv6 */
	__u8	tclass;			/* TOS or traffic class */
	__u8	hop_limit;		/* TTL or hop limit */
	__u8	kinds;			/* HGHCA_FLOW_*: what the frame has */
	__be16	src_port;		/* 38h: of UDP or TCP */
	__be16	dst_port;
	__be32	rsvd3c;
};
HGHCA_ASSERT_SIZE(hghca_flow_fields, 64);
HGHCA_ASSERT_OFFSET(hghca_flow_fields, src_ip, 0x10);
HGHCA_ASSERT_OFFSET(hghca_flow_fields, flow_label, 0x30);
HGHCA_ASSERT_OFFSET(hghca_flow_fields, kinds, 0x37);

#define HGHCA_FLOW_TAGGED		(1U << 0)	/* a VLAN tag */
#define HGHCA_FLOW_IPV4			(1U << 1)
#define HGHCA_FLOW_IPV6			(1U << 2)
#define HGHCA_FLOW_UDP			(1U << 3)
#define HGHCA_FLOW_TCP			(1U << 4)
#define HGHCA_FLOW_LABEL_MASK		HGHCA_MASK(19, 0)

/* FLOW_ATTACH input, extension. */
struct hghca_flow {
	__be32	qpn;			/* 00h: or HGHCA_FLOW_RSS and the index of a group */
	__be16	priority;		/* 04h: 0 is the highest */
	__u8	type;			/* 06h: enum hghca_flow_type */
	__u8	rsvd07;
	__be32	rsvd08[2];
	struct hghca_flow_fields value;	/* 10h */
	struct hghca_flow_fields mask;	/* 50h: the bits of them that count */
};
HGHCA_ASSERT_SIZE(hghca_flow, 0x90);
HGHCA_ASSERT_OFFSET(hghca_flow, type, 0x06);
HGHCA_ASSERT_OFFSET(hghca_flow, value, 0x10);
HGHCA_ASSERT_OFFSET(hghca_flow, mask, 0x50);

enum hghca_flow_type {
	HGHCA_FLOW_NORMAL	= 0,
	HGHCA_FLOW_ALL_DEFAULT	= 1,	/* what no other rule takes */
	HGHCA_FLOW_MC_DEFAULT	= 2,	/* multicast that no NORMAL rule takes */
};

#define HGHCA_FLOW_RSS			HGHCA_MASK(31, 31)	/* extension RSS */

/* CREATE_RSS input, extension: QPs over which frames are spread by a hash. */
#define HGHCA_RSS_KEY_BYTES		40
#define HGHCA_RSS_LOG_MAX_SIZE		9	/* what the mailbox has room for */

struct hghca_rss {
	__be32	fields;			/* 00h: HGHCA_RSS_* */
	__u8	function;		/* 04h: enum hghca_rss_function */
	__u8	log_size;		/* 05h: entries of qpn that count */
	__be16	rsvd06;
	__u8	key[HGHCA_RSS_KEY_BYTES];	/* 08h */
	__be32	qpn[1 << HGHCA_RSS_LOG_MAX_SIZE];	/* 30h */
};
HGHCA_ASSERT_SIZE(hghca_rss, 0x830);
HGHCA_ASSERT_OFFSET(hghca_rss, function, 0x04);
HGHCA_ASSERT_OFFSET(hghca_rss, key, 0x08);
HGHCA_ASSERT_OFFSET(hghca_rss, qpn, 0x30);

enum hghca_rss_function {
	HGHCA_RSS_TOEPLITZ	= 1,
};

/* What of a frame is hashed, as far as it has it; in this order. */
#define HGHCA_RSS_SRC_IPV4		(1U << 0)
#define HGHCA_RSS_DST_IPV4		(1U << 1)
#define HGHCA_RSS_SRC_IPV6		(1U << 2)
#define HGHCA_RSS_DST_IPV6		(1U << 3)
#define HGHCA_RSS_SRC_PORT_TCP		(1U << 4)
#define HGHCA_RSS_DST_PORT_TCP		(1U << 5)
#define HGHCA_RSS_SRC_PORT_UDP		(1U << 6)
#define HGHCA_RSS_DST_PORT_UDP		(1U << 7)
#define HGHCA_RSS_FIELDS		HGHCA_MASK(7, 0)

/* SET_GID input, extension. */
struct hghca_gid_entry {
	__u8	gid[16];		/* 00h; ::ffff:a.b.c.d goes out as IPv4 */
	__be32	mac_h;			/* 10h: MAC 47:16 */
	__be16	mac_l;			/* 14h: MAC 15:0 */
	__be16	rsvd16;
	__be32	vlan;			/* 18h: bit 31: tagged; 11:0 VLAN id */
	__be32	rsvd1c;
};
HGHCA_ASSERT_SIZE(hghca_gid_entry, 0x20);
HGHCA_ASSERT_OFFSET(hghca_gid_entry, vlan, 0x18);

#define HGHCA_GID_VLAN_VALID		(1U << 31)
#define HGHCA_GID_VLAN_ID_MASK		HGHCA_MASK(11, 0)

/* QUERY_PORT output and SET_PORT input, extension. */
struct hghca_port {
	__be32	flags;			/* 00h, HGHCA_PORT_* */
	__be32	mac_h;			/* 04h: MAC 47:16 */
	__be16	mac_l;			/* 08h: MAC 15:0 */
	__be16	rsvd0a;
	__be32	mtu;			/* 0Ch: bytes above the Ethernet header */
	__be32	speed;			/* 10h: Mbit/s; read only */
	__be32	max_mtu;		/* 14h: bytes; read only */
	__be32	rsvd18[10];
};
HGHCA_ASSERT_SIZE(hghca_port, 0x40);
HGHCA_ASSERT_OFFSET(hghca_port, mtu, 0x0c);

#define HGHCA_PORT_LINK_UP		(1U << 0)	/* QUERY_PORT */
#define HGHCA_PORT_PROMISC		(1U << 1)	/* both */
#define HGHCA_PORT_ALLMULTI		(1U << 2)	/* both */

/* SET_CONGESTION input and QUERY_CONGESTION output, extension: DCQCN and its parameters. */
struct hghca_congestion {
	__be32	flags;			/* 00h, HGHCA_CONGESTION_* */
	__be32	cnp_interval;		/* 04h: us between CNPs of a QP */
	__u8	cnp_dscp;		/* 08h: of CNPs */
	__u8	cnp_priority;		/* 09h: of CNPs in a VLAN */
	__u8	threshold;		/* 0Ah: F, stages of fast recovery */
	__u8	rsvd0b;
	__be32	gain;			/* 0Ch: g, in 1/65536 */
	__be32	alpha_period;		/* 10h: K, us */
	__be32	decrease_period;	/* 14h: us between two reductions */
	__be32	increase_period;	/* 18h: T, us of a stage by time */
	__be32	increase_bytes;		/* 1Ch: B, bytes of a stage by what was sent */
	__be32	additive;		/* 20h: R_AI, Mbit/s */
	__be32	hyper;			/* 24h: R_HAI, Mbit/s */
	__be32	min_rate;		/* 28h: Mbit/s */
	__be32	rsvd2c[5];
};
HGHCA_ASSERT_SIZE(hghca_congestion, 0x40);
HGHCA_ASSERT_OFFSET(hghca_congestion, cnp_dscp, 0x08);
HGHCA_ASSERT_OFFSET(hghca_congestion, gain, 0x0c);
HGHCA_ASSERT_OFFSET(hghca_congestion, min_rate, 0x28);

#define HGHCA_CONGESTION_REACT		(1U << 0)	/* ECN-capable, slowed down by CNPs */
#define HGHCA_CONGESTION_NOTIFY		(1U << 1)	/* marked packets are answered by CNPs */

/* SET_FLOW_CONTROL input and QUERY_FLOW_CONTROL output, extension: pause frames, both ways. */
struct hghca_flow_control {
	__be32	flags;			/* 00h, HGHCA_FLOW_PAUSE_* or HGHCA_FLOW_PFC_* */
	__be16	quanta;			/* 04h: of what is sent, 512 bit times each */
	__u8	roce_priority;		/* 06h: of PFC */
	__u8	other_priority;		/* 07h */
	__be32	roce_xoff;		/* 08h: bytes waiting above which the peer is to stop */
	__be32	roce_xon;		/* 0Ch: ... down to which it is to go on */
	__be32	other_xoff;		/* 10h */
	__be32	other_xon;		/* 14h */
	__be32	roce_buffer;		/* 18h: bytes; read only */
	__be32	other_buffer;		/* 1Ch: bytes; read only */
	__u8	pfc_classes;		/* 20h: HGHCA_FLOW_CLASS_*, those that PFC is for */
	__u8	rsvd21[3];
	__be32	rsvd24[7];
};
HGHCA_ASSERT_SIZE(hghca_flow_control, 0x40);
HGHCA_ASSERT_OFFSET(hghca_flow_control, roce_priority, 0x06);
HGHCA_ASSERT_OFFSET(hghca_flow_control, other_buffer, 0x1c);
HGHCA_ASSERT_OFFSET(hghca_flow_control, rsvd24, 0x24);

#define HGHCA_FLOW_PAUSE_RX		(1U << 0)	/* IEEE 802.3 pause frames are obeyed */
#define HGHCA_FLOW_PAUSE_TX		(1U << 1)	/* ... and sent */
#define HGHCA_FLOW_PFC_RX		(1U << 2)	/* IEEE 802.1Qbb pause frames are obeyed */
#define HGHCA_FLOW_PFC_TX		(1U << 3)	/* ... and sent */

#define HGHCA_FLOW_CLASS_ROCE		(1U << 0)
#define HGHCA_FLOW_CLASS_OTHER		(1U << 1)

/* ------------------------------------------------------------------ */
/* Doorbell records, in host memory, 8-byte aligned                     */

struct hghca_qp_dbr {
	__le32	rq_head;		/* receive WQEs posted, free-running; low 16 bits count */
	__le32	rsvd;
};
HGHCA_ASSERT_SIZE(hghca_qp_dbr, 8);

struct hghca_srq_dbr {
	__le32	posted;			/* WQEs posted, free-running; low 16 bits count */
	__le32	rsvd;
};
HGHCA_ASSERT_SIZE(hghca_srq_dbr, 8);

struct hghca_cq_dbr {
	__le32	consumer_index;		/* CQEs consumed, free-running */
	__le32	rsvd;
};
HGHCA_ASSERT_SIZE(hghca_cq_dbr, 8);

#define HGHCA_DBR_VALID			1ULL

/* ------------------------------------------------------------------ */
/* Work queue elements: units of 16 bytes                               */

enum hghca_opcode {
	HGHCA_OPCODE_NOP		= 0x00,
	HGHCA_OPCODE_RDMA_WRITE		= 0x08,
	HGHCA_OPCODE_RDMA_WRITE_IMM	= 0x09,
	HGHCA_OPCODE_SEND		= 0x0a,
	HGHCA_OPCODE_SEND_IMM		= 0x0b,
	HGHCA_OPCODE_SEND_INV		= 0x0c,	/* extension */
	HGHCA_OPCODE_RDMA_READ		= 0x10,
	HGHCA_OPCODE_ATOMIC_CS		= 0x11,
	HGHCA_OPCODE_ATOMIC_FA		= 0x12,
	HGHCA_OPCODE_ATOMIC_WRITE	= 0x13,	/* extension */
	HGHCA_OPCODE_FLUSH		= 0x14,	/* extension */
	HGHCA_OPCODE_BIND_MW		= 0x18,
	HGHCA_OPCODE_REG_MR		= 0x19,	/* extension */
	HGHCA_OPCODE_LOCAL_INV		= 0x1a,	/* extension */
	HGHCA_OPCODE_RECV_ERROR		= 0xfe,
	HGHCA_OPCODE_INVALID		= 0xff,
};

#define HGHCA_WQE_UNIT			16
#define HGHCA_WQE_MIN_STRIDE_LOG	6
#define HGHCA_WQE_MAX_STRIDE_LOG	10

struct hghca_next_unit {
	__le32	nda_nop;		/* 00h: next WQE's offset 31:6, its opcode 4:0 */
	__le32	nee_nds;		/* 04h: fence 6, next WQE's size in units 5:0 */
	__le32	flags;			/* 08h: HGHCA_WQE_* of this WQE */
	__be32	imm_data;		/* 0Ch: immediate data or (SEND_INV) key, as on the wire */
};
HGHCA_ASSERT_SIZE(hghca_next_unit, 16);

#define HGHCA_NEXT_NDA_MASK		HGHCA_MASK(31, 6)
#define HGHCA_NEXT_NOP_MASK		HGHCA_MASK(4, 0)
#define HGHCA_NEXT_DBD			HGHCA_MASK(7, 7)
#define HGHCA_NEXT_FENCE		HGHCA_MASK(6, 6)
#define HGHCA_NEXT_NDS_MASK		HGHCA_MASK(5, 0)
#define HGHCA_WQE_SOLICIT		(1U << 1)
#define HGHCA_WQE_EVENT			(1U << 2)
#define HGHCA_WQE_CQ_UPDATE		(1U << 3)
#define HGHCA_WQE_XRC_SRQN_MASK		HGHCA_MASK(31, 8)	/* XRC: SRQ at the peer */

struct hghca_raddr_unit {
	__le64	raddr;			/* 00h */
	__le32	rkey;			/* 08h */
	__le32	rsvd0c;
};
HGHCA_ASSERT_SIZE(hghca_raddr_unit, 16);

/* Behind the raddr unit of a FLUSH, extension. */
struct hghca_flush_unit {
	__le32	length;			/* 00h: of the range */
	__le32	what;			/* 04h: HGHCA_FLUSH_*, as on the wire */
	__le32	rsvd08[2];
};
HGHCA_ASSERT_SIZE(hghca_flush_unit, 16);

/* What a FLUSH is of and to (IBA vol 1, A19). */
#define HGHCA_FLUSH_TYPE_MASK		HGHCA_MASK(3, 0)
#define HGHCA_FLUSH_GLOBAL		(1U << 0)	/* type: global visibility */
#define HGHCA_FLUSH_PERSISTENT		(1U << 1)	/* and persistence */
#define HGHCA_FLUSH_SELECTIVITY_MASK	HGHCA_MASK(5, 4)
#define HGHCA_FLUSH_RANGE		0	/* selectivity: the range that is named */
#define HGHCA_FLUSH_REGION		1	/* all of the region */

struct hghca_atomic_unit {
	__le64	swap_add;		/* 00h */
	__le64	cmp;			/* 08h */
};
HGHCA_ASSERT_SIZE(hghca_atomic_unit, 16);

/* Extension: REG_MR. */
struct hghca_reg_unit {
	__le32	key;			/* 00h: the region, with its tag from now on */
	__le32	access;			/* 04h: HGHCA_ACCESS_* */
	__le64	start;			/* 08h: virtual address */
	__le64	length;			/* 10h: bytes */
	__le64	list;			/* 18h: DMA address of those of the pages, __le64 each */
	__le32	pages;			/* 20h: their number */
	__le32	page_size;		/* 24h: log2(bytes) - 12 */
	__le32	first_byte;		/* 28h: as in the MPT */
	__le32	rsvd2c;
};
HGHCA_ASSERT_SIZE(hghca_reg_unit, 48);
HGHCA_ASSERT_OFFSET(hghca_reg_unit, list, 0x18);
HGHCA_ASSERT_OFFSET(hghca_reg_unit, page_size, 0x24);
HGHCA_ASSERT_OFFSET(hghca_reg_unit, first_byte, 0x28);

/* Extension: LOCAL_INV. */
struct hghca_inv_unit {
	__le32	key;			/* 00h: the region or window */
	__le32	rsvd04[3];
};
HGHCA_ASSERT_SIZE(hghca_inv_unit, 16);

/* Extension: BIND_MW. */
struct hghca_bind_unit {
	__le32	access;			/* 00h: HGHCA_ACCESS_REMOTE_*, HGHCA_ACCESS_ZERO_BASED */
	__le32	rsvd04;
	__le32	rkey;			/* 08h: the window, with its tag from now on */
	__le32	lkey;			/* 0Ch: the region */
	__le64	addr;			/* 10h: in the region */
	__le64	length;			/* 18h: bytes; 0 unbinds a window of type 1 */
};
HGHCA_ASSERT_SIZE(hghca_bind_unit, 32);
HGHCA_ASSERT_OFFSET(hghca_bind_unit, addr, 0x10);

#define HGHCA_REG_MR_PAGES_MAX		65536

/* The base form, table 3-4-8: MAC and IPv4 addresses stand in the WQE. */
struct hghca_ud_unit {
	__le32	port;			/* 00h */
	__le32	lids;			/* 04h: 31:16 destination, 15:0 source MAC 15:0 */
	__le32	smac_h;			/* 08h: source MAC 47:16 */
	__le32	dmac_h;			/* 0Ch: destination MAC 47:16 */
	__le32	sip;			/* 10h */
	__le32	dip;			/* 14h */
	__le32	rsvd18[2];
	__le32	dqpn;			/* 20h */
	__le32	qkey;			/* 24h */
	__le32	rsvd28[2];
};
HGHCA_ASSERT_SIZE(hghca_ud_unit, 48);
HGHCA_ASSERT_OFFSET(hghca_ud_unit, dqpn, 0x20);

/* The extended form (HGHCA_UD_GRH set in the first word): by GID. */
struct hghca_ud_gid_unit {
	__le32	port;			/* 00h: HGHCA_UD_* */
	__le32	dmac_l;			/* 04h: destination MAC 15:0 at 31:16 */
	__le32	sl_tclass_flowlabel;	/* 08h: as in the QPC */
	__le32	dmac_h;			/* 0Ch: destination MAC 47:16 */
	__u8	dgid[16];		/* 10h: wire order */
	__le32	dqpn;			/* 20h */
	__le32	qkey;			/* 24h */
	__le32	rsvd28[2];
};
HGHCA_ASSERT_SIZE(hghca_ud_gid_unit, 48);
HGHCA_ASSERT_OFFSET(hghca_ud_gid_unit, dgid, 0x10);
HGHCA_ASSERT_OFFSET(hghca_ud_gid_unit, dqpn, 0x20);

#define HGHCA_UD_GRH			HGHCA_MASK(31, 31)
#define HGHCA_UD_STATIC_RATE_MASK	HGHCA_MASK(29, 24)
#define HGHCA_UD_HOP_LIMIT_MASK		HGHCA_MASK(23, 16)
#define HGHCA_UD_SGID_INDEX_MASK	HGHCA_MASK(15, 8)
#define HGHCA_UD_PORT_MASK		HGHCA_MASK(7, 0)
#define HGHCA_UD_DMAC_L_MASK		HGHCA_MASK(31, 16)

/* An inline unit: this word, then the data, padded to a multiple of 16 bytes in all. */
#define HGHCA_INLINE_FLAG		HGHCA_MASK(31, 31)
#define HGHCA_INLINE_LENGTH_MASK	HGHCA_MASK(30, 0)

struct hghca_data_unit {
	__le32	byte_cnt;		/* 00h: bit 31 clear */
	__le32	lkey;			/* 04h */
	__le64	addr;			/* 08h */
};
HGHCA_ASSERT_SIZE(hghca_data_unit, 16);

/* lkey that, with a byte count of 0, ends a receive WQE's scatter list. */
#define HGHCA_INVALID_LKEY		0x100

/* ------------------------------------------------------------------ */
/* Completion queue elements                                            */

struct hghca_cqe {
	__le32	my_qpn;			/* 00h */
	__le32	my_ee;			/* 04h, extension: of a receive, its SRQ, or 0 */
	__le32	rqpn;			/* 08h: source QP number of a datagram */
	__le32	rlid_path_sl;		/* 0Ch: HGHCA_CQE_* */
	__be32	imm;			/* 10h: immediate data or invalidated key, as on the wire */
	__le32	byte_cnt;		/* 14h */
	__le32	wqe;			/* 18h: byte offset of the WQE in its queue */
	__u8	opcode;			/* 1Ch */
	__u8	is_send;		/* 1Dh */
	__u8	rsvd1e;
	__u8	owner;			/* 1Fh */
};
HGHCA_ASSERT_SIZE(hghca_cqe, 32);
HGHCA_ASSERT_OFFSET(hghca_cqe, byte_cnt, 0x14);
HGHCA_ASSERT_OFFSET(hghca_cqe, owner, 0x1f);

struct hghca_err_cqe {
	__le32	my_qpn;			/* 00h */
	__le32	my_ee;			/* 04h, as in a CQE */
	__le32	rsvd08[2];
	__u8	syndrome;		/* 10h */
	__u8	vendor_err;		/* 11h: 0, the syndrome says all */
	__le16	db_cnt;			/* 12h */
	__le32	rsvd14;
	__le32	wqe;			/* 18h */
	__u8	opcode;			/* 1Ch: HGHCA_OPCODE_INVALID or _RECV_ERROR */
	__u8	is_send;		/* 1Dh */
	__u8	rsvd1e;
	__u8	owner;			/* 1Fh */
};
HGHCA_ASSERT_SIZE(hghca_err_cqe, 32);
HGHCA_ASSERT_OFFSET(hghca_err_cqe, syndrome, 0x10);
HGHCA_ASSERT_OFFSET(hghca_err_cqe, wqe, 0x18);

/* An entry of a CQ with timestamps, extension CLOCK. */
struct hghca_timed_cqe {
	__le64	timestamp;		/* 00h: of the device's clock */
	__le32	rsvd08[6];
	struct hghca_cqe cqe;		/* 20h: or an hghca_err_cqe */
};
HGHCA_ASSERT_SIZE(hghca_timed_cqe, 64);
HGHCA_ASSERT_OFFSET(hghca_timed_cqe, cqe, 0x20);

#define HGHCA_CQE_SL_MASK		HGHCA_MASK(7, 4)
#define HGHCA_CQE_NETWORK_MASK		HGHCA_MASK(9, 8)	/* a datagram's: HGHCA_CQE_IPV* */
#define HGHCA_CQE_IPV6			1
#define HGHCA_CQE_IPV4			2
#define HGHCA_CQE_GRH			HGHCA_MASK(15, 15)
#define HGHCA_CQE_VLAN_ID_MASK		HGHCA_MASK(27, 16)	/* a datagram's */
#define HGHCA_CQE_VLAN_VALID		HGHCA_MASK(31, 31)
#define HGHCA_CQ_ENTRY_OWNER_SW		0x00
#define HGHCA_CQ_ENTRY_OWNER_HW		0x80
/* A receive CQE's opcode is the BTH opcode of the last packet; its low five bits: */
#define HGHCA_CQE_RECV_OPCODE_MASK	0x1f

enum hghca_syndrome {
	HGHCA_SYNDROME_LOCAL_LENGTH_ERR		= 0x01,
	HGHCA_SYNDROME_LOCAL_QP_OP_ERR		= 0x02,
	HGHCA_SYNDROME_LOCAL_EEC_OP_ERR		= 0x03,
	HGHCA_SYNDROME_LOCAL_PROT_ERR		= 0x04,
	HGHCA_SYNDROME_WR_FLUSH_ERR		= 0x05,
	HGHCA_SYNDROME_MW_BIND_ERR		= 0x06,
	HGHCA_SYNDROME_BAD_RESP_ERR		= 0x10,
	HGHCA_SYNDROME_LOCAL_ACCESS_ERR		= 0x11,
	HGHCA_SYNDROME_REMOTE_INVAL_REQ_ERR	= 0x12,
	HGHCA_SYNDROME_REMOTE_ACCESS_ERR	= 0x13,
	HGHCA_SYNDROME_REMOTE_OP_ERR		= 0x14,
	HGHCA_SYNDROME_RETRY_EXC_ERR		= 0x15,
	HGHCA_SYNDROME_RNR_RETRY_EXC_ERR	= 0x16,
	HGHCA_SYNDROME_LOCAL_RDD_VIOL_ERR	= 0x20,
	HGHCA_SYNDROME_REMOTE_INVAL_RD_REQ_ERR	= 0x21,
	HGHCA_SYNDROME_REMOTE_ABORTED_ERR	= 0x22,
	HGHCA_SYNDROME_INVAL_EECN_ERR		= 0x23,
	HGHCA_SYNDROME_INVAL_EEC_STATE_ERR	= 0x24,
};

/* ------------------------------------------------------------------ */
/* Event queue elements: big-endian                                     */

enum hghca_event_type {
	HGHCA_EVENT_COMP		= 0x00,
	HGHCA_EVENT_COMM_EST		= 0x02,
	HGHCA_EVENT_SQ_DRAINED		= 0x03,
	HGHCA_EVENT_CQ_ERROR		= 0x04,
	HGHCA_EVENT_WQ_CATAS_ERROR	= 0x05,
	HGHCA_EVENT_LOCAL_CATAS_ERROR	= 0x08,
	HGHCA_EVENT_PORT_CHANGE		= 0x09,
	HGHCA_EVENT_CMD			= 0x0a,
	HGHCA_EVENT_EQ_OVERFLOW		= 0x0f,
	HGHCA_EVENT_WQ_INVAL_REQ_ERROR	= 0x10,
	HGHCA_EVENT_WQ_ACCESS_ERROR	= 0x11,
	HGHCA_EVENT_SRQ_CATAS_ERROR	= 0x12,
	HGHCA_EVENT_SRQ_QP_LAST_WQE	= 0x13,
	HGHCA_EVENT_SRQ_LIMIT		= 0x14,
	HGHCA_EVENT_PAGE_FAULT		= 0x18,		/* extension */
};

/* subtype of HGHCA_EVENT_PORT_CHANGE */
#define HGHCA_PORT_CHANGE_DOWN		1
#define HGHCA_PORT_CHANGE_UP		4

/* syndrome of HGHCA_EVENT_CQ_ERROR */
#define HGHCA_CQ_ERROR_OVERRUN		1
#define HGHCA_CQ_ERROR_ACCESS		2

struct hghca_eqe {
	__u8	rsvd00;
	__u8	type;			/* 01h */
	__u8	rsvd02;
	__u8	subtype;		/* 03h */
	union {
		__be32 raw[6];
		struct {
			__be32	cqn;		/* 04h */
		} comp;
		struct {
			__be16	rsvd04;
			__be16	token;		/* 06h */
			__be32	rsvd08;
			__u8	rsvd0c[3];
			__u8	status;		/* 0Fh */
			__be32	out_param_h;	/* 10h */
			__be32	out_param_l;	/* 14h */
		} cmd;
		struct {
			__be32	qpn;		/* 04h */
		} qp;
		struct {
			__be32	srqn;		/* 04h */
		} srq;
		struct {
			__be32	cqn;		/* 04h */
			__be32	rsvd08;
			__u8	rsvd0c[3];
			__u8	syndrome;	/* 0Fh */
		} cq_err;
		struct {
			__be32	eqn;		/* 04h */
		} eq_overflow;
		struct {
			__be32	rsvd04[2];
			__be32	port;		/* 0Ch: port 31:28 */
		} port_change;
		struct {
			__be32	qpn;		/* 04h */
			__be32	what;		/* 08h: HGHCA_PAGE_FAULT_* */
			__be32	key;		/* 0Ch: of the region */
			__be32	addr_h;		/* 10h: in it */
			__be32	addr_l;
			__be32	length;		/* 18h: bytes wanted from there on */
		} page_fault;
	} event;
	__u8	rsvd1c[3];
	__u8	owner;			/* 1Fh, as in a CQE */
};
HGHCA_ASSERT_SIZE(hghca_eqe, 32);
HGHCA_ASSERT_OFFSET(hghca_eqe, event.cmd.token, 0x06);
HGHCA_ASSERT_OFFSET(hghca_eqe, event.cmd.status, 0x0f);
HGHCA_ASSERT_OFFSET(hghca_eqe, event.cmd.out_param_l, 0x14);
HGHCA_ASSERT_OFFSET(hghca_eqe, event.port_change.port, 0x0c);
HGHCA_ASSERT_OFFSET(hghca_eqe, event.page_fault.length, 0x18);
HGHCA_ASSERT_OFFSET(hghca_eqe, owner, 0x1f);

#define HGHCA_EVENT_PORT_MASK		HGHCA_MASK(31, 28)
#define HGHCA_PAGE_FAULT_TOKEN_MASK	HGHCA_MASK(31, 16)	/* for RESUME_QP */
#define HGHCA_PAGE_FAULT_RESPONDER	(1U << 1)	/* the receive side, or the send side */
#define HGHCA_PAGE_FAULT_WRITE		(1U << 0)	/* to be written to */

/* ------------------------------------------------------------------ */
/* Packets that were dropped or refused, and why                        */

/*
 * Up to 31: as the bits of the error syndrome of the LogiCORE ETRNIC guide, table 2-3.
 * From 32 on: ours.
 */
#define HGHCA_DROPS(X) \
	X(IP_VERSION,		2,	"IP version against the Ethernet type") \
	X(IP_HEADER_LENGTH,	3,	"IPv4 header is not of 20 bytes") \
	X(DESTINATION,		8,	"destination address is not the QP's") \
	X(IP_CHECKSUM,		9,	"IPv4 header checksum") \
	X(IP_LENGTH,		10,	"IP length beyond the frame, or below the headers") \
	X(UDP_LENGTH,		12,	"UDP length against IP length") \
	X(BTH_VERSION,		13,	"BTH version is not 0") \
	X(NO_QP,		14,	"no such QP") \
	X(QP_STATE,		15,	"QP does not receive in its state") \
	X(SEQUENCE,		16,	"opcode does not follow the one before") \
	X(OPCODE,		17,	"unknown opcode") \
	X(PAD,			18,	"pad in a packet that is not the last") \
	X(LENGTH,		19,	"payload against path MTU and place in the message") \
	X(RNR,			20,	"no receive WQE") \
	X(PSN,			21,	"PSN ahead of the expected") \
	X(SYNDROME,		22,	"reserved AETH syndrome") \
	X(RESPONSE,		23,	"response does not fit the request") \
	X(SOURCE,		27,	"source address is not the peer's") \
	X(ICRC,			30,	"ICRC") \
	X(HEADERS,		32,	"no room for the headers of the opcode") \
	X(SERVICE,		33,	"opcode of another service than the QP's") \
	X(PKEY,			34,	"P_Key") \
	X(QKEY,			35,	"Q_Key") \
	X(TOO_LONG,		36,	"longer than the receive WQE") \
	X(REQUEST,		37,	"request that the QP does not take, or not so many of") \
	X(ACCESS,		38,	"remote access error") \
	X(OPERATION,		39,	"receive WQE, or what it names, is at fault") \
	X(CNP,			40,	"CNP without BECN, or of another length")

enum hghca_drop {
	HGHCA_DROP_NONE,
#define HGHCA_DROP_ENUM(name, value, text) HGHCA_DROP_##name = value,
	HGHCA_DROPS(HGHCA_DROP_ENUM)
#undef HGHCA_DROP_ENUM
};

/* Ethernet with a VLAN tag, IPv6, UDP, BTH and the longest extension headers. */
#define HGHCA_ERROR_HEADER_MAX		120

struct hghca_packet_error {
	__be64	time;			/* 00h: of the clock (5.5) */
	__be32	length;			/* 08h: bytes of the frame */
	__be32	qpn;			/* 0Ch: destination QP, as the BTH has it */
	__u8	why;			/* 10h: enum hghca_drop */
	__u8	header_len;		/* 11h: bytes of header that are live */
	__u8	rsvd12[6];
	__u8	header[HGHCA_ERROR_HEADER_MAX];	/* 18h */
};
HGHCA_ASSERT_SIZE(hghca_packet_error, 144);
HGHCA_ASSERT_OFFSET(hghca_packet_error, header, 0x18);

#define HGHCA_ERRORS_PER_MAILBOX	28

/* READ_ERROR_BUFFER output, extension. Packets are numbered from 0 on, since reset. */
struct hghca_error_buffer {
	__be64	total;			/* 00h: number of the next packet */
	__be64	first;			/* 08h: of entries[0] */
	__be32	count;			/* 10h: of entries */
	__u8	rsvd14[44];
	struct hghca_packet_error entries[HGHCA_ERRORS_PER_MAILBOX];	/* 40h */
};
HGHCA_ASSERT_SIZE(hghca_error_buffer, 4096);
HGHCA_ASSERT_OFFSET(hghca_error_buffer, entries, 0x40);

/* ------------------------------------------------------------------ */
/* Counters: QUERY_STATS returns them as __be64 in this order           */

#define HGHCA_COUNTERS(X) \
	X(tx_packets,			"RoCE packets sent") \
	X(rx_packets,			"RoCE packets accepted") \
	X(tx_bytes,			"bytes of RoCE packets sent, without Ethernet FCS") \
	X(rx_bytes,			"bytes of RoCE packets accepted") \
	X(rx_too_short,			"packets dropped: shorter than their headers say") \
	X(rx_bad_header,		"packets dropped: wrong IP, UDP or BTH field") \
	X(rx_bad_icrc,			"packets dropped: wrong ICRC") \
	X(rx_unknown_qp,		"packets dropped: no such QP, or it does not receive") \
	X(rx_bad_address,		"packets dropped: source or destination not the QP's") \
	X(rx_bad_pkey,			"packets dropped: P_Key mismatch") \
	X(rx_bad_qkey,			"packets dropped: Q_Key mismatch") \
	X(rx_no_wqe,			"UD and UC messages dropped: no receive WQE") \
	X(rx_too_long,			"datagrams, frames dropped: longer than the receive WQE") \
	X(duplicate_request,		"duplicate requests received") \
	X(out_of_sequence,		"requests received ahead of the expected PSN") \
	X(rnr_nak_sent,			"RNR NAKs sent") \
	X(rnr_nak_received,		"RNR NAKs received") \
	X(packet_seq_err,		"NAKs for a PSN sequence error received") \
	X(implied_nak_seq_err,		"responses lost, as later ones tell") \
	X(local_ack_timeout_err,	"Local ACK Timeouts") \
	X(retransmitted,		"packets sent again") \
	X(remote_access_nak_sent,	"NAKs sent for remote access errors") \
	X(remote_invalid_nak_sent,	"NAKs sent for invalid requests") \
	X(cqe_error,			"completions in error, flushes not counted") \
	X(cqe_flush,			"completions flushed") \
	X(cq_overrun,			"completions lost to a full CQ") \
	X(eq_overrun,			"events lost to a full EQ") \
	X(db_bad_page,			"doorbells ignored: not in the UAR page of the object") \
	X(db_bad_object,		"doorbells ignored: no such QP, CQ or EQ") \
	X(db_bad_state,			"doorbells ignored: the QP takes none in its state") \
	X(wqe_bad,			"work requests refused as malformed") \
	X(raw_tx_packets,		"frames sent by raw Ethernet QPs") \
	X(raw_rx_packets,		"frames delivered to raw Ethernet QPs") \
	X(raw_rx_dropped,		"frames for raw Ethernet QPs dropped: no receive WQE") \
	X(context_hits,			"context cache hits") \
	X(context_misses,		"context cache misses") \
	X(context_evictions,		"context cache write-backs") \
	X(uc_dropped,			"UC messages dropped: cut short or refused") \
	X(regions_registered,		"REG_MR and BIND_MW executed") \
	X(keys_invalidated,		"keys invalidated by LOCAL_INV or by a peer") \
	X(rx_send_requests,		"SENDs received whole, datagrams among them") \
	X(rx_write_requests,		"WRITEs received whole") \
	X(rx_read_requests,		"READs accepted") \
	X(rx_atomic_requests,		"atomics executed") \
	X(multicast_sent,		"datagrams sent to multicast groups") \
	X(multicast_received,		"datagrams of multicast groups received") \
	X(multicast_copies,		"copies of them handed to QPs") \
	X(multicast_extra_bytes,	"bytes of rx_bytes that are of second and further copies") \
	X(flow_rx_packets,		"those of raw_rx_packets that flow rules have steered") \
	X(flow_rx_no_qp,		"frames of flow rules dropped: the QP does not receive") \
	X(page_faults,			"PAGE_FAULT events sent") \
	X(rx_page_absent,		"datagrams and UC messages dropped: a page was absent") \
	X(np_ecn_marked_roce_packets,	"RoCE packets accepted, marked on the way") \
	X(np_cnp_sent,			"congestion notifications sent") \
	X(rp_cnp_handled,		"congestion notifications that QPs reacted to") \
	X(rp_cnp_ignored,		"congestion notifications dropped: turned off") \
	X(rx_ip_version,		"those of rx_bad_header with another IP version") \
	X(rx_ip_header_length,		"those of rx_bad_header with IPv4 options") \
	X(rx_ip_checksum,		"those of rx_bad_header with a wrong IPv4 checksum") \
	X(rx_udp_length,		"those of rx_bad_header whose UDP and IP lengths differ") \
	X(rx_bth_version,		"those of rx_bad_header with another BTH version") \
	X(rx_ip_length,			"those of rx_too_short whose IP length is out of range") \
	X(rx_short_headers,		"those of rx_too_short without room for BTH and the rest") \
	X(rx_no_qp,			"those of rx_unknown_qp without such a QP") \
	X(rx_qp_state,			"those of rx_unknown_qp whose QP does not receive now") \
	X(rx_wrong_service,		"those of rx_unknown_qp for a QP of another service") \
	X(rx_bad_source,		"those of rx_bad_address from another than the peer") \
	X(rx_bad_destination,		"those of rx_bad_address to another of the port's") \
	X(rx_unknown_opcode,		"requests, datagrams with an unknown opcode") \
	X(rx_opcode_sequence,		"requests refused, UC messages cut: opcode out of turn") \
	X(rx_bad_pad,			"requests refused: padding in the middle of a message") \
	X(rx_bad_length,		"requests, datagrams with a length against the MTU") \
	X(rx_bad_syndrome,		"acknowledgements dropped: reserved AETH syndrome") \
	X(rx_bad_response,		"responses that did not fit their request: the QP failed") \
	X(rx_pause,			"pause frames obeyed, PFC among them") \
	X(tx_pause,			"pause frames sent, PFC among them") \
	X(rx_mac_control,		"MAC control frames dropped: not obeyed, or unknown") \
	X(rx_buffer_overflow,		"frames dropped: their receive buffer was full") \
	X(context_write_errors,		"contexts kept in the device, as ICM did not take them") \
	X(eqe_write_errors,		"events lost: no memory at their EQE") \
	X(catastrophic_errors,		"failures of the device, until it is reset") \
	X(context_read_errors,		"contexts and MTTs that ICM did not give") \
	X(flow_rx_exceeded,		"frames that more flow rules match than may take one")

enum hghca_counter {
#define HGHCA_COUNTER_ENUM(name, text) HGHCA_COUNTER_##name,
	HGHCA_COUNTERS(HGHCA_COUNTER_ENUM)
#undef HGHCA_COUNTER_ENUM
	HGHCA_COUNTER_NUM
};

/* Those of a counter set: QUERY_COUNTER_SET returns them as __be64 in this order. */
#define HGHCA_QP_COUNTERS(X) \
	X(tx_packets) \
	X(rx_packets) \
	X(tx_bytes) \
	X(rx_bytes) \
	X(rx_bad_address) \
	X(rx_bad_pkey) \
	X(rx_bad_qkey) \
	X(rx_no_wqe) \
	X(rx_too_long) \
	X(duplicate_request) \
	X(out_of_sequence) \
	X(rnr_nak_sent) \
	X(rnr_nak_received) \
	X(packet_seq_err) \
	X(implied_nak_seq_err) \
	X(local_ack_timeout_err) \
	X(retransmitted) \
	X(remote_access_nak_sent) \
	X(remote_invalid_nak_sent) \
	X(cqe_error) \
	X(cqe_flush) \
	X(wqe_bad) \
	X(uc_dropped) \
	X(rx_send_requests) \
	X(rx_write_requests) \
	X(rx_read_requests) \
	X(rx_atomic_requests)

enum hghca_qp_counter {
#define HGHCA_COUNTER_ENUM(name) HGHCA_QP_COUNTER_##name,
	HGHCA_QP_COUNTERS(HGHCA_COUNTER_ENUM)
#undef HGHCA_COUNTER_ENUM
	HGHCA_QP_COUNTER_NUM
};

#endif /* HGHCA_HW_H */
