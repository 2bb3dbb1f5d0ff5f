/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* JingZhao HCA: PCI, registers and doorbells; docs/reference/hardware-interface.rst, 2, 3 and 5. */
#ifndef HGHCA_INTERFACE_REGS_H
#define HGHCA_INTERFACE_REGS_H

#include <hghca/types.h>

/* ------------------------------------------------------------------ */
/* PCI                                                                  */

#define HGHCA_PCI_VENDOR_ID		0x1af4
#define HGHCA_PCI_DEVICE_ID		0x10f1
/* The subsystem has the same vendor. */
#define HGHCA_PCI_SUBSYSTEM_ID		0x1100
#define HGHCA_PCI_SUBSYSTEM_ID_RSNIC	0x10f3
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

/* Offsets in a UAR page. A doorbell is one 64-bit write, or two 32-bit writes, low word first. */
#define HGHCA_UAR_SQ_DB			0x00
#define HGHCA_UAR_CQ_ARM		0x10
#define HGHCA_UAR_EQ_ARM		0x20
#define HGHCA_UAR_CLOCK			0x30	/* extension CLOCK: 64 bits, read only */

/* SQ doorbell, low word. */
#define HGHCA_SQ_DB_COUNT_MASK		HGHCA_MASK(31, 24)
#define HGHCA_SQ_DB_HEAD_MASK		HGHCA_MASK(23, 8)
#define HGHCA_SQ_DB_FENCE		HGHCA_MASK(5, 5)
#define HGHCA_SQ_DB_OPCODE_MASK		HGHCA_MASK(4, 0)
/* SQ doorbell, high word. */
#define HGHCA_SQ_DB_QPN_MASK		HGHCA_MASK(31, 8)
#define HGHCA_SQ_DB_SIZE0_MASK		HGHCA_MASK(7, 0)

/* CQ arm doorbell. The low word is the consumer index. The high word: */
#define HGHCA_CQ_ARM_CMD_MASK		HGHCA_MASK(31, 24)
#define HGHCA_CQ_ARM_CQN_MASK		HGHCA_MASK(23, 0)
#define HGHCA_CQ_ARM_SOLICITED		1
#define HGHCA_CQ_ARM_NEXT		2

/* EQ arm doorbell. The low word is the consumer index. The high word: */
#define HGHCA_EQ_ARM_CMD_MASK		HGHCA_MASK(31, 24)
#define HGHCA_EQ_ARM_EQN_MASK		HGHCA_MASK(7, 0)
#define HGHCA_EQ_ARM_UPDATE		0
#define HGHCA_EQ_ARM_ARM		1

#endif /* HGHCA_INTERFACE_REGS_H */
