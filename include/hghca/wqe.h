/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* JingZhao HCA: doorbell records and WQEs; docs/reference/hardware-interface.rst, 5 and 6. */
#ifndef HGHCA_INTERFACE_WQE_H
#define HGHCA_INTERFACE_WQE_H

#include <hghca/types.h>

/* ------------------------------------------------------------------ */
/* Doorbell records, in host memory, 8-byte aligned                     */

struct hghca_qp_dbr {
	__le32	rq_head;		/* receive WQEs posted, free-running; only 15:0 are used */
	__le32	rsvd;
};
HGHCA_ASSERT_SIZE(hghca_qp_dbr, 8);

struct hghca_srq_dbr {
	__le32	posted;			/* WQEs posted, free-running; only 15:0 are used */
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

/* HGHCA_OPCODES(X) - every opcode of WQEs and of error CQEs, as X(name, value) */
#define HGHCA_OPCODES(X) \
	X(NOP, 0x00) \
	X(RDMA_WRITE, 0x08) \
	X(RDMA_WRITE_IMM, 0x09) \
	X(SEND, 0x0a) \
	X(SEND_IMM, 0x0b) \
	X(SEND_INV, 0x0c) \
	X(PART, 0x0d) \
	X(RDMA_READ, 0x10) \
	X(ATOMIC_CS, 0x11) \
	X(ATOMIC_FA, 0x12) \
	X(ATOMIC_WRITE, 0x13) \
	X(FLUSH, 0x14) \
	X(READ_POINTER, 0x15) \
	X(READ_CONSISTENT, 0x16) \
	X(BIND_MW, 0x18) \
	X(REG_MR, 0x19) \
	X(LOCAL_INV, 0x1a) \
	X(INVALID, 0xff)

enum hghca_opcode {
#define HGHCA_OPCODE(name, value) HGHCA_OPCODE_##name = value,
	HGHCA_OPCODES(HGHCA_OPCODE)
#undef HGHCA_OPCODE
};

#define HGHCA_WQE_UNIT			16
#define HGHCA_WQE_MIN_STRIDE_LOG	6
#define HGHCA_WQE_MAX_STRIDE_LOG	10

struct hghca_next_unit {
	__le32	nda_nop;		/* 00h: offset 31:6 and opcode 4:0 of the next WQE */
	__le32	nee_nds;		/* 04h: fence 6, size 5:0 of the next WQE in units */
	__le32	flags;			/* 08h: HGHCA_WQE_* of this WQE */
	__be32	imm_data;		/* 0Ch: immediate data or, of SEND_INV, key; wire order */
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
#define HGHCA_WQE_XRC_SRQN_MASK		HGHCA_MASK(31, 8)	/* XRC: remote SRQ */

struct hghca_raddr_unit {
	__le64	raddr;			/* 00h */
	__le32	rkey;			/* 08h */
	__le32	rsvd0c;
};
HGHCA_ASSERT_SIZE(hghca_raddr_unit, 16);

/* Follows the raddr unit of a FLUSH, extension. */
struct hghca_flush_unit {
	__le32	length;			/* 00h: bytes of the range */
	__le32	what;			/* 04h: HGHCA_FLUSH_*, as in the FETH */
	__le32	rsvd08[2];
};
HGHCA_ASSERT_SIZE(hghca_flush_unit, 16);

/* Placement type and selectivity level of a FLUSH (IBA vol 1, A19). */
#define HGHCA_FLUSH_TYPE_MASK		HGHCA_MASK(3, 0)
#define HGHCA_FLUSH_GLOBAL		(1U << 0)	/* type: to global visibility */
#define HGHCA_FLUSH_PERSISTENT		(1U << 1)	/* type: to persistence */
#define HGHCA_FLUSH_SELECTIVITY_MASK	HGHCA_MASK(5, 4)
#define HGHCA_FLUSH_RANGE		0	/* selectivity: the range in the request */
#define HGHCA_FLUSH_REGION		1	/* selectivity: the whole region */

/* Follows the raddr unit of a READ_POINTER, extension VENDOR_OPS. */
struct hghca_pointer_unit {
	__le64	key;			/* 00h: what an element's key is compared with */
	__le32	search;			/* 08h: HGHCA_POINTER_*, as in the header of the packet */
	__le32	rsvd0c;
};
HGHCA_ASSERT_SIZE(hghca_pointer_unit, 16);

/* Positions in an element of the search: words of 32 bits, from 0. */
#define HGHCA_POINTER_KEYS_MASK		HGHCA_MASK(15, 0)	/* bit w: a key is at word w */
#define HGHCA_POINTER_PREDICATE_MASK	HGHCA_MASK(17, 16)	/* HGHCA_PREDICATE_* */
#define HGHCA_POINTER_VALUE_MASK	HGHCA_MASK(22, 18)	/* position of the pointer */
#define HGHCA_POINTER_RELATIVE		HGHCA_MASK(23, 23)	/* it counts from the key */
#define HGHCA_POINTER_NEXT_MASK		HGHCA_MASK(28, 24)	/* position of the next element */
#define HGHCA_POINTER_HAS_NEXT		HGHCA_MASK(29, 29)

#define HGHCA_POINTER_ELEMENT		64	/* bytes */
#define HGHCA_POINTER_LAST_WORD		14	/* where 64 bits may start */
#define HGHCA_POINTER_ELEMENTS_MAX	256	/* of one search */

/* An element matches if its key <predicate> the key of the request. */
#define HGHCA_PREDICATE_EQUAL		0
#define HGHCA_PREDICATE_LESS		1
#define HGHCA_PREDICATE_GREATER		2
#define HGHCA_PREDICATE_NOT_EQUAL	3

/* READ_CONSISTENT: the last bytes of an object are the CRC-64/XZ of those before, as __le64. */
#define HGHCA_CONSISTENT_CRC		8	/* bytes */
#define HGHCA_CONSISTENT_TRIES		256

struct hghca_atomic_unit {
	__le64	swap_add;		/* 00h */
	__le64	cmp;			/* 08h */
};
HGHCA_ASSERT_SIZE(hghca_atomic_unit, 16);

/* Extension: REG_MR. */
struct hghca_reg_unit {
	__le32	key;			/* 00h: key of the region, with the new tag */
	__le32	access;			/* 04h: HGHCA_ACCESS_* */
	__le64	start;			/* 08h: virtual address */
	__le64	length;			/* 10h: bytes */
	__le64	list;			/* 18h: DMA address of the list of page addresses, __le64 */
	__le32	pages;			/* 20h: entries of the list */
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
	__le32	key;			/* 00h: key of the region or window */
	__le32	rsvd04[3];
};
HGHCA_ASSERT_SIZE(hghca_inv_unit, 16);

/* Extension: BIND_MW. */
struct hghca_bind_unit {
	__le32	access;			/* 00h: HGHCA_ACCESS_REMOTE_*, HGHCA_ACCESS_ZERO_BASED */
	__le32	rsvd04;
	__le32	rkey;			/* 08h: key of the window, with the new tag */
	__le32	lkey;			/* 0Ch: key of the region */
	__le64	addr;			/* 10h: address in the region */
	__le64	length;			/* 18h: bytes; 0 unbinds a window of type 1 */
};
HGHCA_ASSERT_SIZE(hghca_bind_unit, 32);
HGHCA_ASSERT_OFFSET(hghca_bind_unit, addr, 0x10);

#define HGHCA_REG_MR_PAGES_MAX		65536

/* UD unit, base form, table 3-4-8: the WQE has the MAC and IPv4 addresses. */
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

/* UD unit, extended form: addresses by GID. The first word has HGHCA_UD_GRH. */
struct hghca_ud_gid_unit {
	__le32	port;			/* 00h: HGHCA_UD_* */
	__le32	dmac_l;			/* 04h: destination MAC 15:0 at 31:16 */
	__le32	sl_tclass_flowlabel;	/* 08h: as in the QPC */
	__le32	dmac_h;			/* 0Ch: destination MAC 47:16 */
	__u8	dgid[16];		/* 10h: in wire order */
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

/* An inline unit is this word and the data, padded together to a multiple of 16 bytes. */
#define HGHCA_INLINE_FLAG		HGHCA_MASK(31, 31)
#define HGHCA_INLINE_LENGTH_MASK	HGHCA_MASK(30, 0)

struct hghca_data_unit {
	__le32	byte_cnt;		/* 00h: bit 31 clear */
	__le32	lkey;			/* 04h */
	__le64	addr;			/* 08h */
};
HGHCA_ASSERT_SIZE(hghca_data_unit, 16);

/* An entry with this lkey and a byte count of 0 ends the scatter list of a receive WQE. */
#define HGHCA_INVALID_LKEY		0x100

#endif /* HGHCA_INTERFACE_WQE_H */
