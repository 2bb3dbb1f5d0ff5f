/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* JingZhao HCA: contexts; docs/reference/hardware-interface.rst, 4. */
#ifndef HGHCA_INTERFACE_CONTEXT_H
#define HGHCA_INTERFACE_CONTEXT_H

#include <hghca/types.h>

/* MPT, table 3-2-17. */
struct hghca_mpt {
	__be32	flags;			/* 00h */
	__be32	page_size;		/* 04h, log2(bytes) - 12 */
	__be32	key;			/* 08h: index and tag; see HGHCA_KEY_* */
	__be32	pd;			/* 0Ch */
	__be64	start;			/* 10h, virtual address */
	__be64	length;			/* 18h, bytes */
	__be32	lkey;			/* 20h */
	__be32	window_count;		/* 24h */
	__be32	window_count_limit;	/* 28h */
	__be32	mtt_seg_h;		/* 2Ch, index of the first MTT; DEVICE: byte offset */
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

/*
 * Fields of a key with HGHCA_CAP_MEM_MGT. Without it, the index is in the low bits and the tag
 * above them.
 */
#define HGHCA_KEY_INDEX_MASK		HGHCA_MASK(31, 8)
#define HGHCA_KEY_TAG_MASK		HGHCA_MASK(7, 0)

#define HGHCA_MPT_FLAG_SW_OWNS		(0xfU << 28)
#define HGHCA_MPT_FLAG_MIO		(1U << 17)
#define HGHCA_MPT_FLAG_BIND_ENABLE	(1U << 15)
#define HGHCA_MPT_FLAG_TREE		(1U << 14)	/* extension ODP: the MTTs form a tree */
#define HGHCA_MPT_FLAG_DEVICE		(1U << 13)	/* extension: a region in device memory */
#define HGHCA_MPT_FLAG_WINDOW_QP	(1U << 12)	/* extension: a window of type 2B */
#define HGHCA_MPT_FLAG_FREE		(1U << 11)	/* extension: the key gives no access */
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
	__be32	solicited_index;	/* 20h, extension: QUERY_CQ, as the next two */
	__be32	consumer_index;		/* 24h, from the doorbell record */
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

/* SRQ context, extension. */
struct hghca_srqc {
	__be32	flags;			/* 00h: HGHCA_SRQ_* */
	__be32	srqn;			/* 04h */
	__be32	pd;			/* 08h */
	__be32	lkey;			/* 0Ch: key of the queue's MR */
	__u8	logsize;		/* 10h: WQEs */
	__u8	entry_sz_log;		/* bytes */
	__be16	limit;			/* 12h: WQEs; 0: not armed */
	__be32	next;			/* 14h: byte offset of the next WQE to consume */
	__be16	taken;			/* 18h: WQEs consumed, free-running */
	__be16	rsvd1a;
	__be32	rsvd1c;
	__be64	dbr_addr;		/* 20h: struct hghca_srq_dbr; bit 0: valid */
	__be32	xrcd;			/* 28h: XRC domain; only with HGHCA_SRQ_XRC */
	__be32	cqn;			/* 2Ch: CQ; only with HGHCA_SRQ_XRC */
	__be32	rsvd30[4];
};
HGHCA_ASSERT_SIZE(hghca_srqc, 64);
HGHCA_ASSERT_OFFSET(hghca_srqc, logsize, 0x10);
HGHCA_ASSERT_OFFSET(hghca_srqc, next, 0x14);
HGHCA_ASSERT_OFFSET(hghca_srqc, taken, 0x18);
HGHCA_ASSERT_OFFSET(hghca_srqc, dbr_addr, 0x20);

#define HGHCA_SRQ_FAILED		(1U << 31)	/* read only */
#define HGHCA_SRQ_XRC			(1U << 0)

/* QP context, preceded by the mask of the attributes to modify, table 3-2-40. */
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
	__u8	g_mylmc;		/* 21h: bit 7: address by GID index */
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
	__be32	wqe_base;		/* 60h, extension: offset of the receive queue in its MR */
	__be32	wqe_lkey;		/* 64h */
	__be32	rate;			/* 68h, ext.: QUERY_QP: limit by CNPs, kbit/s; 0: none */
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
	__be32	srqn;			/* ACh, extension: SRQ; 0: the QP has a receive queue */
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

#define HGHCA_QPC_TRUST_REG_MR		HGHCA_MASK(31, 31)	/* may pass DMA addresses */
#define HGHCA_QPC_TRUST_VENDOR_OPS	HGHCA_MASK(30, 30)	/* sends and accepts them */
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
 * Mbit/s of each static rate, indexed by its code (IBA vol 1, 15.2.5.16, with the codes added
 * later). Code 0 is the rate of the port and code 1 is not a rate: their entries are 0.
 */
#define HGHCA_STATIC_RATE_MBPS { \
	0, 0, 2500, 10000, 30000, 5000, 20000, 40000, \
	60000, 80000, 120000, 14000, 56000, 112000, 168000, 25000, \
	100000, 200000, 300000, 28000, 50000, 400000, 600000, 800000, \
	1200000 }
#define HGHCA_STATIC_RATE_MAX		24
#define HGHCA_STATIC_RATE_NONE		1

/* READ_MGM output and WRITE_MGM input, extension: an entry of the multicast group table. */
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
#define HGHCA_MGM_CHAIN_MAX		32	/* entries of a chain that the device searches */

#endif /* HGHCA_INTERFACE_CONTEXT_H */
