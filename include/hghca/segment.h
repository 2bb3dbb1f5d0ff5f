/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * RSNIC: the initialization segment and the command queue;
 * docs/reference/rsnic.rst, 2 to 4.
 */
#ifndef HGHCA_INTERFACE_SEGMENT_H
#define HGHCA_INTERFACE_SEGMENT_H

#include <hghca/types.h>

/* BAR0, from its beginning on; words of 32 bits, little-endian. */
#define HGHCA_SEG_SIZE			0x2000

/*
 * HGHCA_SEG_REGISTERS(X) - every register, as X(name, offset, access)
 *	RO	writes are ignored
 *	RW	see the page
 *	WO	reads 0
 */
#define HGHCA_SEG_REGISTERS(X) \
	X(FW_REV,         0x0000, RO) \
	X(CMD_REV,        0x0004, RO) \
	X(CMDQ_H,         0x0010, RW) \
	X(CMDQ_L,         0x0014, RW) \
	X(CMDQ_DB,        0x0018, WO) \
	X(INIT,           0x01fc, RO) \
	X(FAILURE,        0x0200, RO) \
	X(FAILURE_TIME_H, 0x0204, RO) \
	X(FAILURE_TIME_L, 0x0208, RO) \
	X(TIMER_H,        0x1000, RO) \
	X(TIMER_L,        0x1004, RO) \
	X(CLEAR_INT,      0x100c, WO) \
	X(HEALTH,         0x1010, RO)

enum hghca_seg_register {
#define HGHCA_SEG_ENUM(name, offset, access) HGHCA_SEG_##name = offset,
	HGHCA_SEG_REGISTERS(HGHCA_SEG_ENUM)
#undef HGHCA_SEG_ENUM
};

#define HGHCA_SEG_FW_MINOR_MASK		HGHCA_MASK(31, 16)
#define HGHCA_SEG_FW_MAJOR_MASK		HGHCA_MASK(15, 0)
#define HGHCA_SEG_CMD_REV_MASK		HGHCA_MASK(31, 16)
#define HGHCA_SEG_FW_SUBMINOR_MASK	HGHCA_MASK(15, 0)
#define HGHCA_SEG_CMDQ_ADDR_MASK	HGHCA_MASK(31, 12)
#define HGHCA_SEG_NIC_INTERFACE_MASK	HGHCA_MASK(9, 8)
#define HGHCA_SEG_LOG_SIZE_MASK		HGHCA_MASK(7, 4)
#define HGHCA_SEG_LOG_STRIDE_MASK	HGHCA_MASK(3, 0)
#define HGHCA_SEG_INITIALIZING		HGHCA_MASK(31, 31)
#define HGHCA_SEG_NIC_SUPPORTED_MASK	HGHCA_MASK(26, 24)
#define HGHCA_SEG_CLEAR			HGHCA_MASK(0, 0)	/* of CLEAR_INT */
#define HGHCA_SEG_SYNDROME_MASK		HGHCA_MASK(31, 24)
#define HGHCA_SEG_HEALTH_COUNTER_MASK	HGHCA_MASK(23, 0)

/* nic_interface. */
#define HGHCA_SEG_FULL_DRIVER		0
#define HGHCA_SEG_DISABLED		1

/* Raised at each incompatible change of commands or of the queue. */
#define HGHCA_SEG_CMD_INTERFACE		1

/* The health counter. */
#define HGHCA_SEG_HEALTH_HZ		100

#define HGHCA_CMDQ_LOG_SIZE		5
#define HGHCA_CMDQ_LOG_STRIDE		6
#define HGHCA_CMDQ_ENTRIES		(1 << HGHCA_CMDQ_LOG_SIZE)

/* An entry of the command queue: the words of the HCR, then the owner.  Little-endian. */
struct hghca_cmdq_entry {
	__le32	hcr[7];			/* 00h: as HGHCA_HCR_*; go is not used */
	__le32	owner;			/* 1Ch: HGHCA_CMDQ_HW */
	__le32	rsvd20[8];
};
HGHCA_ASSERT_SIZE(hghca_cmdq_entry, 64);
HGHCA_ASSERT_OFFSET(hghca_cmdq_entry, owner, 0x1c);

#define HGHCA_CMDQ_HW			HGHCA_MASK(0, 0)

/* HGHCA_HEALTH_SYNDROMES(X) - every health syndrome, as X(name, value) */
#define HGHCA_HEALTH_SYNDROMES(X) \
	X(NONE,               0x00) \
	X(FW_INTERNAL_ERR,    0x01) \
	X(DEAD_IRISC,         0x07) \
	X(HW_FATAL_ERR,       0x08) \
	X(FW_CRC_ERR,         0x09) \
	X(ICM_FETCH_PCI_ERR,  0x0a) \
	X(ICM_PAGE_ERR,       0x0b) \
	X(ASYNC_EQ_OVERRUN,   0x0c) \
	X(EQ_IN_ERR,          0x0d) \
	X(EQ_INV,             0x0e) \
	X(FFSER_ERR,          0x0f) \
	X(HIGH_TEMP_ERR,      0x10)

enum hghca_health {
#define HGHCA_HEALTH_ENUM(name, value) HGHCA_HEALTH_##name = value,
	HGHCA_HEALTH_SYNDROMES(HGHCA_HEALTH_ENUM)
#undef HGHCA_HEALTH_ENUM
};

#endif /* HGHCA_INTERFACE_SEGMENT_H */
