/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* JingZhao HCA: CQEs; docs/reference/hardware-interface.rst, 7. */
#ifndef HGHCA_INTERFACE_CQE_H
#define HGHCA_INTERFACE_CQE_H

#include <hghca/types.h>

struct hghca_cqe {
	__le32	my_qpn;			/* 00h */
	__le32	my_ee;			/* 04h, extension: SRQ of a receive, or 0 */
	__le32	rqpn;			/* 08h: of a receive: source QP */
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
	__u8	vendor_err;		/* 11h: always 0 */
	__le16	db_cnt;			/* 12h */
	__le32	rsvd14;
	__le32	wqe;			/* 18h */
	__u8	opcode;			/* 1Ch: HGHCA_OPCODE_INVALID */
	__u8	is_send;		/* 1Dh */
	__u8	rsvd1e;
	__u8	owner;			/* 1Fh */
};
HGHCA_ASSERT_SIZE(hghca_err_cqe, 32);
HGHCA_ASSERT_OFFSET(hghca_err_cqe, syndrome, 0x10);
HGHCA_ASSERT_OFFSET(hghca_err_cqe, wqe, 0x18);

/* Entry of a CQ with timestamps, extension CLOCK. */
struct hghca_timed_cqe {
	__le64	timestamp;		/* 00h: value of the device clock */
	__le32	rsvd08[6];
	struct hghca_cqe cqe;		/* 20h: or struct hghca_err_cqe */
};
HGHCA_ASSERT_SIZE(hghca_timed_cqe, 64);
HGHCA_ASSERT_OFFSET(hghca_timed_cqe, cqe, 0x20);

#define HGHCA_CQE_SL_MASK		HGHCA_MASK(7, 4)
#define HGHCA_CQE_NETWORK_MASK		HGHCA_MASK(9, 8)	/* datagram: HGHCA_CQE_IPV* */
#define HGHCA_CQE_IPV6			1
#define HGHCA_CQE_IPV4			2
#define HGHCA_CQE_GRH			HGHCA_MASK(15, 15)
#define HGHCA_CQE_VLAN_ID_MASK		HGHCA_MASK(27, 16)	/* datagram */
#define HGHCA_CQE_VLAN_VALID		HGHCA_MASK(31, 31)
#define HGHCA_CQ_ENTRY_OWNER_SW		0x00
#define HGHCA_CQ_ENTRY_OWNER_HW		0x80
/* The opcode of a receive CQE is the BTH opcode of the last packet. Mask of its low five bits: */
#define HGHCA_CQE_RECV_OPCODE_MASK	0x1f

/*
 * HGHCA_SYNDROMES(X) - every syndrome of an error CQE, as X(name, status, value)
 *
 * status: the name in enum ib_wc_status and enum ibv_wc_status, without the prefix.
 */
#define HGHCA_SYNDROMES(X) \
	X(LOCAL_LENGTH_ERR, LOC_LEN_ERR, 0x01) \
	X(LOCAL_QP_OP_ERR, LOC_QP_OP_ERR, 0x02) \
	X(LOCAL_EEC_OP_ERR, LOC_EEC_OP_ERR, 0x03) \
	X(LOCAL_PROT_ERR, LOC_PROT_ERR, 0x04) \
	X(WR_FLUSH_ERR, WR_FLUSH_ERR, 0x05) \
	X(MW_BIND_ERR, MW_BIND_ERR, 0x06) \
	X(BAD_RESP_ERR, BAD_RESP_ERR, 0x10) \
	X(LOCAL_ACCESS_ERR, LOC_ACCESS_ERR, 0x11) \
	X(REMOTE_INVAL_REQ_ERR, REM_INV_REQ_ERR, 0x12) \
	X(REMOTE_ACCESS_ERR, REM_ACCESS_ERR, 0x13) \
	X(REMOTE_OP_ERR, REM_OP_ERR, 0x14) \
	X(RETRY_EXC_ERR, RETRY_EXC_ERR, 0x15) \
	X(RNR_RETRY_EXC_ERR, RNR_RETRY_EXC_ERR, 0x16) \
	X(LOCAL_RDD_VIOL_ERR, LOC_RDD_VIOL_ERR, 0x20) \
	X(REMOTE_INVAL_RD_REQ_ERR, REM_INV_RD_REQ_ERR, 0x21) \
	X(REMOTE_ABORTED_ERR, REM_ABORT_ERR, 0x22) \
	X(INVAL_EECN_ERR, INV_EECN_ERR, 0x23) \
	X(INVAL_EEC_STATE_ERR, INV_EEC_STATE_ERR, 0x24)

enum hghca_syndrome {
#define HGHCA_SYNDROME(name, status, value) HGHCA_SYNDROME_##name = value,
	HGHCA_SYNDROMES(HGHCA_SYNDROME)
#undef HGHCA_SYNDROME
};

#endif /* HGHCA_INTERFACE_CQE_H */
