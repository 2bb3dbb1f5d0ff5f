/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* JingZhao HCA: command mailboxes; docs/reference/hardware-interface.rst, 4. */
#ifndef HGHCA_INTERFACE_MAILBOX_H
#define HGHCA_INTERFACE_MAILBOX_H

#include <hghca/context.h>
#include <hghca/regs.h>

/* QUERY_DEV_LIM output, table 3-2-3 of the seed document. Fields named log_* are log2 values. */
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
	__u8	mtu_width;		/* 21h: max_mtu 7:4, max_port_width 3:0 */
	__u8	rsvd22;
	__u8	vl_ports;		/* 23h: max_vl 7:4, num_ports 3:0 */
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
	__u8	max_rd_atomic;		/* per QP, as initiator; a number, not log2 */
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
	__u8	qps_per_mcg;		/* a number, not log2 */
	__be16	mcg_entry_sz;		/* 56h, bytes */
	__be16	num_counter_sets;	/* 58h, extension QP_COUNTERS; 0 means no set */
	__be16	rsvd5a;
	__u8	log_max_flows;		/* 5Ch, extension RAW_PACKET: flow rules */
	__u8	max_flow_masks;		/* a number, not log2 */
	__u8	qps_per_flow;		/* a number, not log2 */
	__u8	rsvd5f;
	__be32	clock_khz;		/* 60h, extension CLOCK: ticks per millisecond */
	__u8	log_device_memory;	/* 64h, extension DEVICE_MEMORY: bytes */
	__u8	rsvd65[3];
	__u8	log_max_rss;		/* 68h, extension RSS: groups */
	__u8	log_max_rss_size;	/* entries per group */
	__u8	moderation_scale;	/* 6Ah, extension MODERATION; 0 means 1 */
	__u8	rsvd6b;
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
HGHCA_ASSERT_OFFSET(hghca_dev_lim, moderation_scale, 0x6a);

/* Valid bits of the log2 fields. The bits above them are undefined. */
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

/* INIT_HCA input, table 3-2-9. A base has the ICM address in bits 63:8, log2(entries) in 7:0. */
struct hghca_init_hca {
	__be64	mcg_base;		/* 00h, extension MULTICAST */
	__be64	qpc_base;		/* 08h */
	__be64	cqc_base;		/* 10h */
	__be64	eqc_base;		/* 18h */
	__be32	caps;			/* 20h, extension: HGHCA_CAP_* to enable */
	__be32	rsvd24;
	__be64	srqc_base;		/* 28h, extension SRQ */
	__be64	mpt_base;		/* 30h */
	__be64	mtt_base;		/* 38h, only the address */
	__be64	packet_base;		/* 40h, RSNIC: DMA address; log2(pages of 4096 bytes) */
};
HGHCA_ASSERT_SIZE(hghca_init_hca, 0x48);
HGHCA_ASSERT_OFFSET(hghca_init_hca, eqc_base, 0x18);
HGHCA_ASSERT_OFFSET(hghca_init_hca, caps, 0x20);
HGHCA_ASSERT_OFFSET(hghca_init_hca, srqc_base, 0x28);
HGHCA_ASSERT_OFFSET(hghca_init_hca, mpt_base, 0x30);

#define HGHCA_INIT_HCA_LOG_MASK		0xffULL

/* MAP_ICM input, table 3-2-13: pairs of entries. The lower entry has the higher offset. */
struct hghca_icm_chunk {
	__be64	virt;			/* ICM address, 4096-aligned */
	__be64	page;			/* DMA address 63:12, number of 4096-byte pages 11:0 */
};
HGHCA_ASSERT_SIZE(hghca_icm_chunk, 16);

#define HGHCA_ICM_PAGE_SIZE		4096
#define HGHCA_ICM_CHUNK_PAGES_MASK	0xfffULL
#define HGHCA_ICM_CHUNKS_MAX		(HGHCA_MAILBOX_SIZE / 16)
/* Position of entry i in a MAP_ICM mailbox. */
#define HGHCA_ICM_CHUNK_SLOT(i)		((i) ^ 1)

/* WRITE_MTT input, table 3-2-22: groups of four entries. The lower entry has the higher offset. */
struct hghca_mtt_mailbox {
	__be64	rsvd00[3];
	__be64	start_index;		/* 18h */
	__be64	entry[508];		/* 20h */
};
HGHCA_ASSERT_SIZE(hghca_mtt_mailbox, HGHCA_MAILBOX_SIZE);
HGHCA_ASSERT_OFFSET(hghca_mtt_mailbox, entry, 0x20);

#define HGHCA_MTT_PER_MAILBOX		508

/* SW2HW_MPT input with INLINE_MTTS.  The entries are in ascending order. */
struct hghca_mpt_mtts {
	struct hghca_mpt mpt;		/* 00h */
	__be64	entry[504];		/* 40h */
};
HGHCA_ASSERT_SIZE(hghca_mpt_mtts, HGHCA_MAILBOX_SIZE);
HGHCA_ASSERT_OFFSET(hghca_mpt_mtts, entry, 0x40);

#define HGHCA_MPT_MTTS_MAX		504
#define HGHCA_MTT_ADDR_MASK		(~0xfffULL)
#define HGHCA_MTT_ABSENT		(1ULL << 0)	/* extension ODP: the page is absent */
#define HGHCA_MTT_READ_ONLY		(1ULL << 1)	/* extension ODP: the page is read only */
/* Position of entry i in a WRITE_MTT mailbox. */
#define HGHCA_MTT_SLOT(i)		((i) ^ 3)

/*
 * A tree of MTTs, extension ODP. Tables of three levels reach 2^36 pages. Other MTTs have the
 * number of a page; in the same bits, an entry of the upper two levels has the index of the
 * first MTT of a table of the next level.
 */
#define HGHCA_MTT_TREE_LEVELS		3
#define HGHCA_MTT_TABLE_SHIFT		12
#define HGHCA_MTT_TABLE_ENTRIES		(1U << HGHCA_MTT_TABLE_SHIFT)
#define HGHCA_MTT_TABLE_INDEX_SHIFT	12	/* in an entry */

/* CLEAR_MTT, extension ODP: in_param is the index of the first MTT, in_modifier the number. */
#define HGHCA_CLEAR_MTT_MAX		65536

/* in_param of RESUME_QP, extension ODP. Bits 63:32 are 0. */
#define HGHCA_RESUME_TOKEN_MASK		HGHCA_MASK(31, 16)	/* of the PAGE_FAULT event */
#define HGHCA_RESUME_RESPONDER		(1U << 1)	/* set: responder; clear: requester */
#define HGHCA_RESUME_FAILED		(1U << 0)	/* the page does not exist */

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

/* RESIZE_SRQ input, extension. */
struct hghca_resize_srq {
	__u8	logsize;		/* 00h: WQEs */
	__u8	rsvd01[3];
	__be32	lkey;			/* 04h */
	__be32	rsvd08[6];
};
HGHCA_ASSERT_SIZE(hghca_resize_srq, 0x20);

/* MGID_HASH input, extension. */
struct hghca_mgid {
	__u8	gid[16];
};
HGHCA_ASSERT_SIZE(hghca_mgid, 16);

/*
 * Fields of a frame that a flow rule compares, in wire order, extension.  Fields that a frame
 * does not have are 0.
 */
struct hghca_flow_fields {
	__u8	dmac[6];		/* 00h */
	__u8	smac[6];		/* 06h */
	__be16	ether_type;		/* 0Ch: after the VLAN tag, if there is one */
	__be16	vlan_tci;		/* 0Eh: of the VLAN tag */
	__u8	src_ip[16];		/* 10h: the last four bytes are an IPv4 address */
	__u8	dst_ip[16];		/* 20h */
	__be32	flow_label;		/* 30h: IPv6 flow label in bits 19:0 */
	__u8	protocol;		/* 34h: IPv4 protocol or IPv6 next header */
	__u8	tclass;			/* IPv4 TOS or IPv6 traffic class */
	__u8	hop_limit;		/* IPv4 TTL or IPv6 hop limit */
	__u8	kinds;			/* HGHCA_FLOW_*: tag and headers of the frame */
	__be16	src_port;		/* 38h: UDP or TCP port */
	__be16	dst_port;
	__be32	rsvd3c;
};
HGHCA_ASSERT_SIZE(hghca_flow_fields, 64);
HGHCA_ASSERT_OFFSET(hghca_flow_fields, src_ip, 0x10);
HGHCA_ASSERT_OFFSET(hghca_flow_fields, flow_label, 0x30);
HGHCA_ASSERT_OFFSET(hghca_flow_fields, kinds, 0x37);

#define HGHCA_FLOW_TAGGED		(1U << 0)	/* has a VLAN tag */
#define HGHCA_FLOW_IPV4			(1U << 1)
#define HGHCA_FLOW_IPV6			(1U << 2)
#define HGHCA_FLOW_UDP			(1U << 3)
#define HGHCA_FLOW_TCP			(1U << 4)
#define HGHCA_FLOW_LABEL_MASK		HGHCA_MASK(19, 0)

/* FLOW_ATTACH input, extension. */
struct hghca_flow {
	__be32	qpn;			/* 00h: QPN, or HGHCA_FLOW_RSS and the index of a group */
	__be16	priority;		/* 04h: 0 is the highest */
	__u8	type;			/* 06h: enum hghca_flow_type */
	__u8	rsvd07;
	__be32	rsvd08[2];
	struct hghca_flow_fields value;	/* 10h */
	struct hghca_flow_fields mask;	/* 50h: bits of value to compare */
};
HGHCA_ASSERT_SIZE(hghca_flow, 0x90);
HGHCA_ASSERT_OFFSET(hghca_flow, type, 0x06);
HGHCA_ASSERT_OFFSET(hghca_flow, value, 0x10);
HGHCA_ASSERT_OFFSET(hghca_flow, mask, 0x50);

enum hghca_flow_type {
	HGHCA_FLOW_NORMAL	= 0,
	HGHCA_FLOW_ALL_DEFAULT	= 1,	/* frames that match no other rule */
	HGHCA_FLOW_MC_DEFAULT	= 2,	/* multicast that matches no NORMAL rule */
};

#define HGHCA_FLOW_RSS			HGHCA_MASK(31, 31)	/* extension RSS */

/* CREATE_RSS input, extension: QPs to which a hash distributes frames. */
#define HGHCA_RSS_KEY_BYTES		40
#define HGHCA_RSS_LOG_MAX_SIZE		9	/* capacity of the mailbox */

struct hghca_rss {
	__be32	fields;			/* 00h: HGHCA_RSS_* */
	__u8	function;		/* 04h: enum hghca_rss_function */
	__u8	log_size;		/* 05h: valid entries of qpn */
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

/* Fields of a frame that are hashed, in this order, if the frame has them. */
#define HGHCA_RSS_SRC_IPV4		(1U << 0)
#define HGHCA_RSS_DST_IPV4		(1U << 1)
#define HGHCA_RSS_SRC_IPV6		(1U << 2)
#define HGHCA_RSS_DST_IPV6		(1U << 3)
#define HGHCA_RSS_SRC_PORT_TCP		(1U << 4)
#define HGHCA_RSS_DST_PORT_TCP		(1U << 5)
#define HGHCA_RSS_SRC_PORT_UDP		(1U << 6)
#define HGHCA_RSS_DST_PORT_UDP		(1U << 7)
#define HGHCA_RSS_FIELDS		HGHCA_MASK(7, 0)

/* SW2HW_PART input and QUERY_PART output, extension VENDOR_OPS: a partition. */
#define HGHCA_PARTITIONS		64
#define HGHCA_PARTITION_LOG_MAX_REGIONS	7
#define HGHCA_PARTITION_LOG_MIN_RECORD	3	/* log2(bytes) */
#define HGHCA_PARTITION_LOG_MAX_RECORD	8
#define HGHCA_PARTITION_INDEX_MASK	HGHCA_MASK(5, 0)	/* of a key */

struct hghca_partition_region {
	__be64	va;			/* 00h */
	__be32	rkey;			/* 08h */
	__be32	length;			/* 0Ch: bytes */
	__be32	filled;			/* 10h: bytes of records; QUERY_PART */
	__be32	rsvd14;
};
HGHCA_ASSERT_SIZE(hghca_partition_region, 24);

struct hghca_partition {
	__be32	key;			/* 00h: packets name it */
	__be32	pd;			/* 04h */
	__u8	log_record;		/* 08h: log2 of the bytes of a record */
	__u8	log_regions;		/* 09h: valid entries of region */
	__u8	key_offset;		/* 0Ah: byte of a record where its key is */
	__u8	key_size;		/* 0Bh: bytes of that key: 1, 2, 4 or 8 */
	__u8	key_shift;		/* 0Ch: lowest bit of that key that selects the region */
	__u8	rsvd0d[3];
	__be32	rsvd10[4];
	/* 20h */
	struct hghca_partition_region region[1 << HGHCA_PARTITION_LOG_MAX_REGIONS];
};
HGHCA_ASSERT_SIZE(hghca_partition, 0xc20);
HGHCA_ASSERT_OFFSET(hghca_partition, log_record, 0x08);
HGHCA_ASSERT_OFFSET(hghca_partition, key_shift, 0x0c);
HGHCA_ASSERT_OFFSET(hghca_partition, region, 0x20);

/* SET_GID input, extension. */
struct hghca_gid_entry {
	__u8	gid[16];		/* 00h; ::ffff:a.b.c.d is sent as IPv4 */
	__be32	mac_h;			/* 10h: MAC 47:16 */
	__be16	mac_l;			/* 14h: MAC 15:0 */
	__be16	rsvd16;
	__be32	vlan;			/* 18h: bit 31: VLAN tag; 11:0: VLAN id */
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
	__be32	mtu;			/* 0Ch: bytes after the Ethernet header */
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
	__be32	cnp_interval;		/* 04h: us between two CNPs of a QP */
	__u8	cnp_dscp;		/* 08h: DSCP of CNPs */
	__u8	cnp_priority;		/* 09h: VLAN priority of CNPs */
	__u8	threshold;		/* 0Ah: F, stages of fast recovery */
	__u8	rsvd0b;
	__be32	gain;			/* 0Ch: g, in 1/65536 */
	__be32	alpha_period;		/* 10h: K, us */
	__be32	decrease_period;	/* 14h: us between two reductions */
	__be32	increase_period;	/* 18h: T, us: time of a stage */
	__be32	increase_bytes;		/* 1Ch: B, bytes sent in a stage */
	__be32	additive;		/* 20h: R_AI, Mbit/s */
	__be32	hyper;			/* 24h: R_HAI, Mbit/s */
	__be32	min_rate;		/* 28h: Mbit/s */
	__be32	rsvd2c[5];
};
HGHCA_ASSERT_SIZE(hghca_congestion, 0x40);
HGHCA_ASSERT_OFFSET(hghca_congestion, cnp_dscp, 0x08);
HGHCA_ASSERT_OFFSET(hghca_congestion, gain, 0x0c);
HGHCA_ASSERT_OFFSET(hghca_congestion, min_rate, 0x28);

#define HGHCA_CONGESTION_REACT		(1U << 0)	/* send ECN-capable, react to CNPs */
#define HGHCA_CONGESTION_NOTIFY		(1U << 1)	/* send CNPs for marked packets */

/* SET_FLOW_CONTROL input and QUERY_FLOW_CONTROL output, extension: pause frames. */
struct hghca_flow_control {
	__be32	flags;			/* 00h, HGHCA_FLOW_PAUSE_* or HGHCA_FLOW_PFC_* */
	__be16	quanta;			/* 04h: of pause frames sent; 512 bit times each */
	__u8	roce_priority;		/* 06h: PFC priority of RoCE packets */
	__u8	other_priority;		/* 07h: PFC priority of other frames */
	__be32	roce_xoff;		/* 08h: buffered bytes above which XOFF is sent */
	__be32	roce_xon;		/* 0Ch: buffered bytes at which XON is sent */
	__be32	other_xoff;		/* 10h */
	__be32	other_xon;		/* 14h */
	__be32	roce_buffer;		/* 18h: bytes; read only */
	__be32	other_buffer;		/* 1Ch: bytes; read only */
	__u8	pfc_classes;		/* 20h: HGHCA_FLOW_CLASS_*: classes under PFC */
	__u8	rsvd21[3];
	__be32	rsvd24[7];
};
HGHCA_ASSERT_SIZE(hghca_flow_control, 0x40);
HGHCA_ASSERT_OFFSET(hghca_flow_control, roce_priority, 0x06);
HGHCA_ASSERT_OFFSET(hghca_flow_control, other_buffer, 0x1c);
HGHCA_ASSERT_OFFSET(hghca_flow_control, rsvd24, 0x24);

#define HGHCA_FLOW_PAUSE_RX		(1U << 0)	/* obey IEEE 802.3 pause frames */
#define HGHCA_FLOW_PAUSE_TX		(1U << 1)	/* send them */
#define HGHCA_FLOW_PFC_RX		(1U << 2)	/* obey IEEE 802.1Qbb pause frames */
#define HGHCA_FLOW_PFC_TX		(1U << 3)	/* send them */

#define HGHCA_FLOW_CLASS_ROCE		(1U << 0)
#define HGHCA_FLOW_CLASS_OTHER		(1U << 1)

#endif /* HGHCA_INTERFACE_MAILBOX_H */
