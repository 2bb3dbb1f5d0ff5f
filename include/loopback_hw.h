/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The RDMA loopback controller: registers and formats; docs/reference/loopback.rst.
 *
 * All words are little-endian.
 */
#ifndef LOOPBACK_HW_H
#define LOOPBACK_HW_H

#include <hghca/types.h>

/* The PCI function that carries the register block in BAR0. */
#define LOOPBACK_PCI_VENDOR_ID		0x1af4
#define LOOPBACK_PCI_DEVICE_ID		0x10f2
#define LOOPBACK_PCI_CLASS		0x088000
#define LOOPBACK_BAR			0
#define LOOPBACK_BAR_SIZE		0x1000	/* a page, which a user program can map */
#define LOOPBACK_APERTURE		0x80	/* bytes; the rest reads 0 */

/*
 * Registers, 32 bits each: name, offset, access.
 *	RW	stored
 *	INDEX	RW, of 16 bits
 *	RO	writes are ignored
 *	WO	reads 0
 */
#define LOOPBACK_REGISTERS(X) \
	X(CONTROL,     0x00, RW) \
	X(HW_STATUS,   0x04, RO) \
	X(IRQ_ENABLE,  0x08, RW) \
	X(IRQ_STATUS,  0x0c, RW) \
	X(GLOBAL_CFG,  0x10, RW) \
	X(TEST_REG,    0x1c, RW) \
	X(SQ_BASE_LO,  0x20, RW) \
	X(SQ_BASE_HI,  0x24, RW) \
	X(SQ_SIZE,     0x28, INDEX) \
	X(SQ_HEAD,     0x2c, RO) \
	X(SQ_TAIL,     0x30, INDEX) \
	X(SQ_DOORBELL, 0x34, WO) \
	X(CQ_BASE_LO,  0x40, RW) \
	X(CQ_BASE_HI,  0x44, RW) \
	X(CQ_SIZE,     0x48, INDEX) \
	X(CQ_HEAD,     0x4c, INDEX) \
	X(CQ_TAIL,     0x50, RO) \
	X(RDMA_STATE,  0x5c, RO) \
	X(CMD_STATE,   0x60, RO) \
	X(LOCAL_HI,    0x64, RO) \
	X(REMOTE_LO,   0x68, RO) \
	X(REMOTE_HI,   0x6c, RO) \
	X(BTT_0,       0x70, RO) \
	X(BTT_1,       0x74, RO) \
	X(BTT_2,       0x78, RO) \
	X(BTT_3,       0x7c, RO)

enum loopback_register {
#define LOOPBACK_REGISTER_ENUM(name, offset, access) LOOPBACK_##name = offset,
	LOOPBACK_REGISTERS(LOOPBACK_REGISTER_ENUM)
#undef LOOPBACK_REGISTER_ENUM
};

#define LOOPBACK_HW_STATUS_SIZES	HGHCA_MASK(0, 0)	/* with CHECKS */
#define LOOPBACK_CONTROL_ENABLE		HGHCA_MASK(0, 0)
#define LOOPBACK_CONTROL_RESET		HGHCA_MASK(1, 1)	/* with SOFT_RESET */
#define LOOPBACK_CONTROL_IRQ		HGHCA_MASK(8, 8)	/* with IRQ */

/*
 * Extensions.  HW_STATUS 31:16 has those that the device has; software enables some of them
 * in GLOBAL_CFG 31:16, while CONTROL.enable is 0.
 */
#define LOOPBACK_EXTENSIONS(X) \
	X(CHECKS,     0, "addresses, lengths and time are checked, with status codes") \
	X(CQ_STALL,   1, "a full CQ stops the controller") \
	X(SOFT_RESET, 2, "CONTROL bit 1 resets the controller") \
	X(IRQ,        3, "an interrupt at each completion") \
	X(PLACED,     4, "a completion is written after its data is placed") \
	X(WIDE,       5, "addresses of 48 bits, fragment offsets of 32 bits")

enum loopback_extension {
#define LOOPBACK_EXTENSION_ENUM(name, bit, text) LOOPBACK_EXT_##name = 1 << (bit),
	LOOPBACK_EXTENSIONS(LOOPBACK_EXTENSION_ENUM)
#undef LOOPBACK_EXTENSION_ENUM
#define LOOPBACK_EXTENSION_BIT(name, bit, text) | 1 << (bit)
	LOOPBACK_EXT_ALL = 0 LOOPBACK_EXTENSIONS(LOOPBACK_EXTENSION_BIT)
#undef LOOPBACK_EXTENSION_BIT
};

#define LOOPBACK_EXT_MASK		HGHCA_MASK(31, 16)	/* of HW_STATUS and GLOBAL_CFG */
#define LOOPBACK_IRQ_COMPLETION		HGHCA_MASK(0, 0)	/* of IRQ_ENABLE and IRQ_STATUS */

/* Opcodes whose payload the receiver writes. */
#define LOOPBACK_OPCODES(X) \
	X(WRITE,       0x01) \
	X(WRITE_FIRST, 0x06) \
	X(WRITE_MIDDLE, 0x07) \
	X(WRITE_LAST,  0x08) \
	X(WRITE_ONLY,  0x0a)

enum loopback_opcode {
#define LOOPBACK_OPCODE_ENUM(name, value) LOOPBACK_OPCODE_##name = value,
	LOOPBACK_OPCODES(LOOPBACK_OPCODE_ENUM)
#undef LOOPBACK_OPCODE_ENUM
};

/* A descriptor of the SQ, 64 bytes. */
struct loopback_sqe {
	__le32	id;			/* 00h: 23:0 are the destination QP of the header */
	__le16	opcode;			/* 04h: 7:0 */
	__le16	flags;			/* 06h: not used */
	__le64	local_addr;		/* 08h: source */
	__le64	remote_addr;		/* 10h: destination */
	__le32	length;			/* 18h: bytes */
	__le32	length_hi[3];		/* 1Ch: not used */
	__le32	rsvd28[6];
};
HGHCA_ASSERT_SIZE(loopback_sqe, 64);
HGHCA_ASSERT_OFFSET(loopback_sqe, local_addr, 0x08);
HGHCA_ASSERT_OFFSET(loopback_sqe, length, 0x18);

/* An entry of the CQ, 32 bytes. */
struct loopback_cqe {
	__le32	sq_index;		/* 00h: 7:0 of the index in the SQ */
	__le32	status;			/* 04h: 7:0, LOOPBACK_STATUS_* */
	__le32	bytes_sent;		/* 08h */
	__le32	sq_index_copy;		/* 0Ch */
	__le32	id;			/* 10h: of the descriptor */
	__le32	length;			/* 14h: of the descriptor */
	__le32	rsvd18[2];
};
HGHCA_ASSERT_SIZE(loopback_cqe, 32);
HGHCA_ASSERT_OFFSET(loopback_cqe, id, 0x10);

/* Status codes; without CHECKS all are SUCCESS. */
#define LOOPBACK_STATUSES(X) \
	X(SUCCESS,       0x00, "the transfer is complete") \
	X(LOCAL_ACCESS,  0x01, "the source cannot be read") \
	X(REMOTE_ACCESS, 0x02, "the destination cannot be written") \
	X(LENGTH,        0x03, "the length is 0 or above the limit") \
	X(TIMEOUT,       0x04, "the payload was not moved in time")

enum loopback_status {
#define LOOPBACK_STATUS_ENUM(name, value, text) LOOPBACK_STATUS_##name = value,
	LOOPBACK_STATUSES(LOOPBACK_STATUS_ENUM)
#undef LOOPBACK_STATUS_ENUM
};

/* The header of a fragment: seven beats of 32 bits, each low byte first. */
#define LOOPBACK_HEADER_BEATS		7
#define LOOPBACK_HEADER_PSN		0x000001
#define LOOPBACK_HEADER_PKEY		0xffff
#define LOOPBACK_HEADER_SL		0x00
#define LOOPBACK_HEADER_FILL		0xababab	/* beat 6, 31:8 */

#define LOOPBACK_BLOCK_SIZE		4096	/* the most bytes of a fragment */
#define LOOPBACK_PAGE			4096	/* no fragment crosses one of the source */
/* Without WIDE, a longer transfer overwrites its own beginning. */
#define LOOPBACK_LENGTH_MAX		65536
#define LOOPBACK_LENGTH_WIDE_MAX	0x7fffff	/* BTT has 23 bits */

#endif /* LOOPBACK_HW_H */
