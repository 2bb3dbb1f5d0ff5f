/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * ERNIC and ETRNIC: registers and formats; docs/reference/ernic.rst.
 *
 * All words are little-endian.
 */
#ifndef ERNIC_HW_H
#define ERNIC_HW_H

#include <hghca/types.h>

/* The PCI function that carries the registers in BAR0. */
#define ERNIC_PCI_VENDOR_ID		0x1af4
#define ERNIC_PCI_DEVICE_ID		0x10f3
#define ERNIC_PCI_CLASS			0x020700
#define ERNIC_BAR			0

/*
 * The personalities of the device: name, bit, bytes of registers, offset of the global ones, QPs at
 * most with QP 1.
 */
#define ERNIC_PERSONALITIES(X) \
	X(ETRNIC, 1, 0x10000, 0x00000, 128) \
	X(ERNIC,  2, 0x40000, 0x20000, 255)

enum ernic_personality {
#define ERNIC_PERSONALITY_ENUM(name, bit, bytes, globals, qps) \
	ERNIC_PERSONALITY_##name = bit, \
	ERNIC_APERTURE_##name = bytes, \
	ERNIC_GLOBALS_##name = globals, \
	ERNIC_QPS_##name = qps,
	ERNIC_PERSONALITIES(ERNIC_PERSONALITY_ENUM)
#undef ERNIC_PERSONALITY_ENUM
	ERNIC_PERSONALITY_BOTH = 3
};

#define ERNIC_QPS_MIN			8

/*
 * Global registers: name, offset from the first one, access, bits that exist, personality.
 *	RW	stored
 *	RO	writes are ignored
 *	W1C	each bit that is written as 1 becomes 0
 */
#define ERNIC_GLOBAL_REGISTERS(X) \
	X(XRNICCONF,             0x000, RW,  0xffffff39, BOTH) \
	X(XRNICADCONF,           0x004, RW,  0xff0f0005, BOTH) \
	X(BUF_THRESHOLD_ROCE,    0x008, RW,  0xffffffff, ERNIC) \
	X(PAUSE_CONF,            0x00c, RW,  0x00002ff3, ERNIC) \
	X(MACXADDLSB,            0x010, RW,  0xffffffff, BOTH) \
	X(MACXADDMSB,            0x014, RW,  0x0000ffff, BOTH) \
	X(BUF_THRESHOLD_NON_ROCE, 0x018, RW, 0xffffffff, ERNIC) \
	X(IPV6XADD1,             0x020, RW,  0xffffffff, BOTH) \
	X(IPV6XADD2,             0x024, RW,  0xffffffff, BOTH) \
	X(IPV6XADD3,             0x028, RW,  0xffffffff, BOTH) \
	X(IPV6XADD4,             0x02c, RW,  0xffffffff, BOTH) \
	X(TXBUFBA,               0x030, RW,  0xffffffff, ETRNIC) \
	X(TXBUFSZ,               0x038, RW,  0xffffffff, ETRNIC) \
	X(TXSGLBUFBA,            0x040, RW,  0xffffffff, ETRNIC) \
	X(TXSGLBUFSZ,            0x048, RW,  0xffffffff, ETRNIC) \
	X(ERRBUFBA,              0x060, RW,  0xffffffff, BOTH) \
	X(ERRBUFBAMSB,           0x064, RW,  0xffffffff, ERNIC) \
	X(ERRBUFSZ,              0x068, RW,  0xffffffff, BOTH) \
	X(ERRBUFWPTR,            0x06c, RO,  0x0000ffff, BOTH) \
	X(IPV4XADD,              0x070, RW,  0xffffffff, BOTH) \
	X(OPKTERRQBA,            0x078, RW,  0xffffffff, BOTH) \
	X(OPKTERRQBAMSB,         0x07c, RW,  0xffffffff, ERNIC) \
	X(OPKTERRQSZ,            0x080, RW,  0x0000ffff, BOTH) \
	X(OPKTERRQWPTR,          0x084, RO,  0x0000ffff, BOTH) \
	X(IPKTERRQBA,            0x088, RW,  0xffffffff, BOTH) \
	X(IPKTERRQBAMSB,         0x08c, RW,  0xffffffff, ERNIC) \
	X(IPKTERRQSZ,            0x090, RW,  0x0000ffff, BOTH) \
	X(IPKTERRQWPTR,          0x094, RO,  0x0000ffff, BOTH) \
	X(DATBUFBA,              0x0a0, RW,  0xffffffff, BOTH) \
	X(DATBUFBAMSB,           0x0a4, RW,  0xffffffff, ERNIC) \
	X(DATBUFSZ,              0x0a8, RW,  0xffffffff, BOTH) \
	X(CON_IO_CONF,           0x0ac, RW,  0xffffffff, ERNIC) \
	X(RESPERRPKTBA,          0x0b0, RW,  0xffffffff, ERNIC) \
	X(RESPERRPKTBAMSB,       0x0b4, RW,  0xffffffff, ERNIC) \
	X(RESPERRSZ,             0x0b8, RW,  0xffffffff, ERNIC) \
	X(INSRRPKTCNT,           0x100, RO,  0xffffffff, BOTH) \
	X(INAMPKTCNT,            0x104, RO,  0xffffffff, BOTH) \
	X(OUTIOPKTCNT,           0x108, RO,  0xffffffff, BOTH) \
	X(OUTAMPKTCNT,           0x10c, RO,  0xffffffff, BOTH) \
	X(LSTINPKT,              0x110, RO,  0xffffffff, BOTH) \
	X(LSTOUTPKT,             0x114, RO,  0xffffffff, BOTH) \
	X(ININVDUPCNT,           0x118, RO,  0xffffffff, BOTH) \
	X(INNCKPKTSTS,           0x11c, RO,  0xffff00ff, BOTH) \
	X(OUTRNRPKTSTS,          0x120, RO,  0xffff00ff, BOTH) \
	X(WQEPROCSTS,            0x124, RO,  0xffffefff, BOTH) \
	X(QPMSTS,                0x12c, RO,  0xffff0003, BOTH) \
	X(INALLDRPPKTCNT,        0x130, RO,  0xffffffff, BOTH) \
	X(INNAKPKTCNT,           0x134, RO,  0x0000ffff, BOTH) \
	X(OUTNAKPKTCNT,          0x138, RO,  0x0000ffff, BOTH) \
	X(RESPHNDSTS,            0x13c, RO,  0x00033fff, BOTH) \
	X(RETRYCNTSTS,           0x140, RO,  0xffffffff, BOTH) \
	X(INCNPPKTCNT,           0x174, RO,  0xffffffff, ERNIC) \
	X(OUTCNPPKTCNT,          0x178, RO,  0xffffffff, ERNIC) \
	X(OUTRDRSPPKTCNT,        0x17c, RO,  0xffffffff, ERNIC) \
	X(INTEN,                 0x180, RW,  0x000000ff, BOTH) \
	X(INTSTS,                0x184, W1C, 0x000000ff, BOTH) \
	X(EXTENSIONS,            0x1e0, RW,  0xffffffff, BOTH) \
	X(RECORDBA,              0x1e4, RW,  0xffffffff, BOTH) \
	X(RECORDBAMSB,           0x1e8, RW,  0xffffffff, ERNIC) \
	X(RECORDSZ,              0x1ec, RW,  0x0000ffff, BOTH) \
	X(RECORDWPTR,            0x1f0, RO,  0x0000ffff, BOTH)

enum ernic_global {
#define ERNIC_GLOBAL_ENUM(name, offset, access, bits, personality) ERNIC_##name = offset,
	ERNIC_GLOBAL_REGISTERS(ERNIC_GLOBAL_ENUM)
#undef ERNIC_GLOBAL_ENUM
};

#define ERNIC_GLOBALS_SIZE		0x200

/* Bit q of bank n is that of QP 32 n + q. */
#define ERNIC_RQINTSTS1			0x190	/* W1C */
#define ERNIC_CQINTSTS1			0x1b0	/* W1C */
#define ERNIC_INTERRUPT_BANKS		8

/*
 * Registers of a QP: name, offset, access, bits that exist, personality, first QP that has it.
 * Those of QP n begin at ERNIC_GLOBALS_SIZE + (n - 1) * ERNIC_QP_SIZE behind the first global one.
 *	OVERRIDE	RO, but RW under the software override
 *	STOPPED		RO, but RW under the software override and while the QP is not enabled
 */
#define ERNIC_QP_REGISTERS(X) \
	X(QPCONF,         0x00, RW,       0xffff07fd, BOTH,  1) \
	X(QPADVCONF,      0x04, RW,       0xffffff3f, BOTH,  2) \
	X(RQBA,           0x08, RW,       0xffffff00, BOTH,  1) \
	X(SQBA,           0x10, RW,       0xffffffe0, BOTH,  1) \
	X(CQBA,           0x18, RW,       0xffffffe0, BOTH,  1) \
	X(RQWPTRDBADD,    0x20, RW,       0xffffffff, BOTH,  1) \
	X(RQWPTRDBADDMSB, 0x24, RW,       0xffffffff, ERNIC, 1) \
	X(CQDBADD,        0x28, RW,       0xffffffff, BOTH,  1) \
	X(CQDBADDMSB,     0x2c, RW,       0xffffffff, ERNIC, 1) \
	X(CQHEAD,         0x30, OVERRIDE, 0x0000ffff, BOTH,  1) \
	X(RQCI,           0x34, RW,       0x0000ffff, BOTH,  1) \
	X(SQPI,           0x38, RW,       0x0000ffff, BOTH,  1) \
	X(QDEPTH,         0x3c, RW,       0xffffffff, BOTH,  1) \
	X(SQPSN,          0x40, RW,       0x00ffffff, BOTH,  2) \
	X(LSTRQREQ,       0x44, STOPPED,  0xffffffff, BOTH,  2) \
	X(DESTQPCONF,     0x48, RW,       0x00ffffff, BOTH,  1) \
	X(TIMEOUTCONF,    0x4c, RW,       0x001f3f3f, BOTH,  2) \
	X(MACDESADDLSB,   0x50, RW,       0xffffffff, BOTH,  1) \
	X(MACDESADDMSB,   0x54, RW,       0x0000ffff, BOTH,  1) \
	X(IPDESADDR1,     0x60, RW,       0xffffffff, BOTH,  1) \
	X(IPDESADDR2,     0x64, RW,       0xffffffff, BOTH,  1) \
	X(IPDESADDR3,     0x68, RW,       0xffffffff, BOTH,  1) \
	X(IPDESADDR4,     0x6c, RW,       0xffffffff, BOTH,  1) \
	X(STATSSN,        0x80, RO,       0x00ffffff, BOTH,  2) \
	X(STATMSN,        0x84, STOPPED,  0x00ffffff, BOTH,  2) \
	X(STATQP,         0x88, RO,       0x777f0e1f, BOTH,  1) \
	X(STATCURSQPTR,   0x8c, OVERRIDE, 0x0000ffff, BOTH,  2) \
	X(STATRESPSN,     0x90, RO,       0x00ffffff, BOTH,  2) \
	X(STATRQBUFCA,    0x94, RO,       0xffffff00, BOTH,  2) \
	X(STATWQE,        0x98, RO,       0x0000ffff, BOTH,  2) \
	X(STATRQPIDB,     0x9c, OVERRIDE, 0x0000ffff, BOTH,  2) \
	X(PD,             0xb0, RW,       0x00ffffff, ERNIC, 1) \
	X(RQBAMSB,        0xc0, RW,       0xffffffff, ERNIC, 1) \
	X(SQBAMSB,        0xc8, RW,       0xffffffff, ERNIC, 1) \
	X(CQBAMSB,        0xd0, RW,       0xffffffff, ERNIC, 1) \
	X(STATRQBUFCAMSB, 0xd8, RO,       0xffffffff, ERNIC, 2)

enum ernic_qp_register {
#define ERNIC_QP_ENUM(name, offset, access, bits, personality, first) ERNIC_##name = offset,
	ERNIC_QP_REGISTERS(ERNIC_QP_ENUM)
#undef ERNIC_QP_ENUM
};

#define ERNIC_QP_SIZE			0x100
#define ERNIC_QP1			1	/* MADs */

/* Registers of an entry of the protection domain table, at offset 0: name, offset, bits. */
#define ERNIC_PD_REGISTERS(X) \
	X(PDPDNUM,        0x00, 0x00ffffff) \
	X(VIRTADDRLSB,    0x04, 0xffffffff) \
	X(VIRTADDRMSB,    0x08, 0xffffffff) \
	X(BUFBASEADDRLSB, 0x0c, 0xffffffff) \
	X(BUFBASEADDRMSB, 0x10, 0xffffffff) \
	X(BUFRKEY,        0x14, 0x000000ff) \
	X(WRRDBUFLEN,     0x18, 0xffffffff) \
	X(ACCESSDESC,     0x1c, 0xffff0007)

enum ernic_pd_register {
#define ERNIC_PD_ENUM(name, offset, bits) ERNIC_##name = offset,
	ERNIC_PD_REGISTERS(ERNIC_PD_ENUM)
#undef ERNIC_PD_ENUM
};

#define ERNIC_PD_SIZE			0x100
#define ERNIC_PDS			256
#define ERNIC_RKEY(entry, key)		((entry) << 8 | (key))

/* XRNICCONF */
#define ERNIC_CONF_ENABLE		HGHCA_MASK(0, 0)
#define ERNIC_CONF_ACK			HGHCA_MASK(4, 3)
#define ERNIC_CONF_ERROR_BUFFER		HGHCA_MASK(5, 5)
#define ERNIC_CONF_QPS			HGHCA_MASK(15, 8)
#define ERNIC_CONF_UDP_PORT		HGHCA_MASK(31, 16)

enum ernic_ack_mode {
	ERNIC_ACK_REQUEST_OR_TIMEOUT,
	ERNIC_ACK_TIMEOUT,
	ERNIC_ACK_REQUEST	/* 3 is undefined: as ERNIC_ACK_REQUEST_OR_TIMEOUT */
};

/* XRNICADCONF */
#define ERNIC_ADCONF_OVERRIDE		HGHCA_MASK(0, 0)
#define ERNIC_ADCONF_RETRY_NOT_FATAL	HGHCA_MASK(2, 2)
#define ERNIC_ADCONF_COUNT_WIDTH	HGHCA_MASK(19, 16)
#define ERNIC_ADCONF_QP			HGHCA_MASK(31, 24)	/* 0: each QP */

/* Buffers of a number and a size each: TXBUFSZ, TXSGLBUFSZ, ERRBUFSZ, DATBUFSZ, RESPERRSZ */
#define ERNIC_BUFFERS			HGHCA_MASK(15, 0)
#define ERNIC_BUFFER_BYTES		HGHCA_MASK(31, 16)

/* BUF_THRESHOLD_ROCE, BUF_THRESHOLD_NON_ROCE: free lines of the receive buffer */
#define ERNIC_THRESHOLD_XON		HGHCA_MASK(15, 0)	/* fewer: the peer is to stop */
#define ERNIC_THRESHOLD_XOFF		HGHCA_MASK(31, 16)	/* so many: it may go on */
#define ERNIC_BUFFER_LINES		512u
#define ERNIC_BUFFER_LINE_BYTES		1024u			/* ours */

/* PAUSE_CONF */
#define ERNIC_PAUSE_ROCE		HGHCA_MASK(0, 0)
#define ERNIC_PAUSE_NON_ROCE		HGHCA_MASK(1, 1)
#define ERNIC_PAUSE_ROCE_PRIORITY	HGHCA_MASK(7, 4)
#define ERNIC_PAUSE_NON_ROCE_PRIORITY	HGHCA_MASK(11, 8)
#define ERNIC_PAUSE_ANY_PRIORITY	HGHCA_MASK(13, 13)

/* EXTENSIONS: those that the device has, which are read-only, and those that software enables. */
#define ERNIC_EXT_HAS			HGHCA_MASK(31, 16)
#define ERNIC_EXT_ENABLE		HGHCA_MASK(15, 0)
#define ERNIC_EXTENSIONS_TABLE(X) \
	X(RECORDS, 0, "a record of 16 bytes for each message received, with its length") \
	X(PAGES,   1, "an entry of the protection domain table names a list of pages")

enum ernic_extension {
#define ERNIC_EXTENSION_ENUM(name, bit, text) ERNIC_EXT_##name = 1 << (bit),
	ERNIC_EXTENSIONS_TABLE(ERNIC_EXTENSION_ENUM)
#undef ERNIC_EXTENSION_ENUM
#define ERNIC_EXTENSION_BIT(name, bit, text) | 1 << (bit)
	ERNIC_EXT_ALL = 0 ERNIC_EXTENSIONS_TABLE(ERNIC_EXTENSION_BIT)
#undef ERNIC_EXTENSION_BIT
};

/* INTEN and INTSTS: name, bit, what is pending. */
#define ERNIC_INTERRUPTS(X) \
	X(VALIDATION,  0, "a packet that is received is invalid") \
	X(MAD,         1, "a MAD is received") \
	X(BYPASS,      2, "reserved") \
	X(RNR_NAK,     3, "an RNR NAK is sent") \
	X(COMPLETION,  4, "a WQE is complete") \
	X(BAD_OPCODE,  5, "a WQE has an illegal opcode") \
	X(RECEIVE,     6, "a SEND is received") \
	X(FATAL,       7, "a QP is fatal")

enum ernic_interrupt {
#define ERNIC_INTERRUPT_ENUM(name, bit, text) ERNIC_INT_##name = bit,
	ERNIC_INTERRUPTS(ERNIC_INTERRUPT_ENUM)
#undef ERNIC_INTERRUPT_ENUM
};

/* QPCONF */
#define ERNIC_QPCONF_ENABLE		HGHCA_MASK(0, 0)
#define ERNIC_QPCONF_RQ_INTERRUPT	HGHCA_MASK(2, 2)
#define ERNIC_QPCONF_CQ_INTERRUPT	HGHCA_MASK(3, 3)
#define ERNIC_QPCONF_NO_HANDSHAKE	HGHCA_MASK(4, 4)
#define ERNIC_QPCONF_CQE		HGHCA_MASK(5, 5)
#define ERNIC_QPCONF_RECOVERY		HGHCA_MASK(6, 6)	/* ERNIC */
#define ERNIC_QPCONF_IPV6		HGHCA_MASK(7, 7)
#define ERNIC_QPCONF_PMTU		HGHCA_MASK(10, 8)	/* 256 << code, 4 at most */
#define ERNIC_QPCONF_SLOT		HGHCA_MASK(31, 16)	/* 256 bytes */

/* QPADVCONF */
#define ERNIC_QPADVCONF_TRAFFIC_CLASS	HGHCA_MASK(5, 0)
#define ERNIC_QPADVCONF_TTL		HGHCA_MASK(15, 8)
#define ERNIC_QPADVCONF_PKEY		HGHCA_MASK(31, 16)

/* QDEPTH */
#define ERNIC_QDEPTH_SQ			HGHCA_MASK(15, 0)
#define ERNIC_QDEPTH_RQ			HGHCA_MASK(31, 16)

/* LSTRQREQ */
#define ERNIC_LSTRQREQ_PSN		HGHCA_MASK(23, 0)
#define ERNIC_LSTRQREQ_OPCODE		HGHCA_MASK(31, 24)

/* TIMEOUTCONF */
#define ERNIC_TIMEOUT_VALUE		HGHCA_MASK(4, 0)
#define ERNIC_TIMEOUT_RETRIES		HGHCA_MASK(10, 8)
#define ERNIC_TIMEOUT_RNR_RETRIES	HGHCA_MASK(13, 11)
#define ERNIC_TIMEOUT_RNR_TIMER		HGHCA_MASK(20, 16)

/* STATQP */
#define ERNIC_STATQP_FATAL		HGHCA_MASK(0, 0)
#define ERNIC_STATQP_RQ_OVERFLOW	HGHCA_MASK(1, 1)
#define ERNIC_STATQP_SQ_FULL		HGHCA_MASK(2, 2)
#define ERNIC_STATQP_OSQ_FULL		HGHCA_MASK(3, 3)
#define ERNIC_STATQP_CQ_FULL		HGHCA_MASK(4, 4)
#define ERNIC_STATQP_SQ_EMPTY		HGHCA_MASK(9, 9)
#define ERNIC_STATQP_OSQ_EMPTY		HGHCA_MASK(10, 10)
#define ERNIC_STATQP_RETRIED		HGHCA_MASK(11, 11)
#define ERNIC_STATQP_SYNDROME		HGHCA_MASK(22, 16)	/* AETH of the last NAK */
#define ERNIC_STATQP_RETRIES		HGHCA_MASK(26, 24)
#define ERNIC_STATQP_RNR_RETRIES	HGHCA_MASK(30, 28)

/* Counters of two halves. */
#define ERNIC_COUNT_LOW			HGHCA_MASK(15, 0)
#define ERNIC_COUNT_HIGH		HGHCA_MASK(31, 16)
#define ERNIC_LAST_OPCODE		HGHCA_MASK(7, 0)
#define ERNIC_LAST_QP			HGHCA_MASK(15, 8)
#define ERNIC_LAST_PSN			HGHCA_MASK(31, 16)
#define ERNIC_NAK_QP			HGHCA_MASK(7, 0)
#define ERNIC_NAK_COUNT			HGHCA_MASK(31, 16)
#define ERNIC_WQEPROCSTS_OPCODE		HGHCA_MASK(11, 3)
#define ERNIC_WQEPROCSTS_SGL_TAIL	HGHCA_MASK(23, 16)
#define ERNIC_WQEPROCSTS_SGL_HEAD	HGHCA_MASK(31, 24)
#define ERNIC_QPMSTS_EMPTY		HGHCA_MASK(1, 1)
#define ERNIC_QPMSTS_WQES		HGHCA_MASK(31, 16)

/* ACCESSDESC */
#define ERNIC_ACCESS			HGHCA_MASK(1, 0)
#define ERNIC_ACCESS_PAGES		HGHCA_MASK(2, 2)	/* with PAGES */
#define ERNIC_ACCESS_LENGTH_MSB		HGHCA_MASK(31, 16)

enum ernic_access {
	ERNIC_ACCESS_READ,
	ERNIC_ACCESS_WRITE,
	ERNIC_ACCESS_BOTH,
	ERNIC_ACCESS_RESERVED
};

/* Opcodes of send WQEs and of CQEs: name, value, personality. */
#define ERNIC_OPCODES(X) \
	X(WRITE,     0x00, BOTH) \
	X(WRITE_IMM, 0x01, ERNIC) \
	X(SEND,      0x02, BOTH) \
	X(SEND_IMM,  0x03, ERNIC) \
	X(READ,      0x04, BOTH) \
	X(SEND_INV,  0x0c, ERNIC)

enum ernic_opcode {
#define ERNIC_OPCODE_ENUM(name, value, personality) ERNIC_OPCODE_##name = value,
	ERNIC_OPCODES(ERNIC_OPCODE_ENUM)
#undef ERNIC_OPCODE_ENUM
};

#define ERNIC_SDATA_BYTES		16

/* A send WQE, 64 bytes. */
struct ernic_wqe {
	__le16	wrid;			/* 00h */
	__le16	rsvd02;
	__le32	laddr[2];		/* 04h: bus address, low word first */
	__le32	length;			/* 0Ch: bytes */
	__u8	opcode;			/* 10h: ERNIC_OPCODE_* */
	__u8	rsvd11[3];
	__le32	roffset[2];		/* 14h: address at the peer, low word first */
	__le32	rtag;			/* 1Ch: R_Key; SEND_INV: to invalidate */
	__u8	sdata[ERNIC_SDATA_BYTES];	/* 20h: of a SEND of up to 16 bytes */
	__be32	imm;			/* 30h: ERNIC */
	__le32	rsvd34[3];
};
HGHCA_ASSERT_SIZE(ernic_wqe, 64);
HGHCA_ASSERT_OFFSET(ernic_wqe, laddr, 0x04);
HGHCA_ASSERT_OFFSET(ernic_wqe, opcode, 0x10);
HGHCA_ASSERT_OFFSET(ernic_wqe, roffset, 0x14);
HGHCA_ASSERT_OFFSET(ernic_wqe, sdata, 0x20);
HGHCA_ASSERT_OFFSET(ernic_wqe, imm, 0x30);

/* A CQE, 4 bytes. */
#define ERNIC_CQE_WRID			HGHCA_MASK(15, 0)
#define ERNIC_CQE_OPCODE		HGHCA_MASK(23, 16)
#define ERNIC_CQE_ERROR			HGHCA_MASK(31, 24)	/* 1: the WQE has failed */
#define ERNIC_CQE_BYTES			4

/*
 * An entry of a scatter gather list of the ETRNIC, 8 bytes.  A list has two: the headers
 * of a packet, and what is behind them, which has no address.
 */
struct ernic_sgl_entry {
	__le32	address;		/* 00h */
	__le32	bytes;			/* 04h */
};
HGHCA_ASSERT_SIZE(ernic_sgl_entry, 8);

#define ERNIC_SGL_BYTES			16

/* An entry of a packet error queue, 8 bytes. */
struct ernic_packet_error {
	__le16	code;			/* 00h: ERNIC_FATAL_*; of a WQE: its opcode */
	__le16	qp;			/* 02h */
	__le32	rsvd04;
};
HGHCA_ASSERT_SIZE(ernic_packet_error, 8);

/* A record of a message received, 16 bytes; with RECORDS. */
struct ernic_record {
	__le16	qp;			/* 00h */
	__le16	slot;			/* 02h: STATRQPIDB behind it */
	__u8	opcode;			/* 04h: of the BTH of its last packet */
	__u8	flags;			/* 05h: ERNIC_RECORD_* */
	__le16	rsvd06;
	__le32	length;			/* 08h: bytes; of a WRITE those written */
	__be32	imm;			/* 0Ch: immediate data, or the R_Key to invalidate */
};
HGHCA_ASSERT_SIZE(ernic_record, 16);
HGHCA_ASSERT_OFFSET(ernic_record, length, 0x08);

#define ERNIC_RECORD_SOLICITED		HGHCA_MASK(0, 0)
#define ERNIC_RECORD_PHASE		HGHCA_MASK(7, 7)	/* 1 in the first round, then 0 */

/* An invalidate/immediate data entry of the ERNIC, 8 bytes; without RECORDS. */
struct ernic_immdt_entry {
	__be32	imm;			/* 00h: immediate data, or the R_Key to invalidate */
	__u8	type;			/* 04h: opcode of the BTH of the message's last packet */
	__u8	qp;			/* 05h */
	__le16	slot;			/* 06h: STATRQPIDB behind it */
};
HGHCA_ASSERT_SIZE(ernic_immdt_entry, 8);

/* Why a QP is fatal: name, code. */
#define ERNIC_FATALS(X) \
	X(SEQUENCE,        0x01, "the opcode of a request does not follow the one before") \
	X(LENGTH,          0x02, "a request does not fit the path MTU, or the receive slot") \
	X(SEQUENCE_LENGTH, 0x03, "both") \
	X(OPCODE,          0x04, "the opcode of a request is not supported") \
	X(RETRIES,         0x06, "the retries have run out") \
	X(NAK,             0x0a, "a NAK that is not of the sequence") \
	X(ACK_OPCODE,      0x0c, "the opcode of an acknowledgment is wrong") \
	X(RNR_RETRIES,     0x0d, "the RNR retries have run out") \
	X(READ_SYNDROME,   0x19, "the AETH of a READ response is no ACK") \
	X(READ_LENGTH,     0x1a, "the length of a READ response is wrong") \
	X(READ_OPCODE,     0x1c, "the opcode of a READ response is wrong") \
	X(ACCESS,          0x20, "a peer may not access what its R_Key names") \
	X(MEMORY,          0x21, "memory that a WQE or a queue names is not there")

enum ernic_fatal {
#define ERNIC_FATAL_ENUM(name, value, text) ERNIC_FATAL_##name = value,
	ERNIC_FATALS(ERNIC_FATAL_ENUM)
#undef ERNIC_FATAL_ENUM
};

/* Of a READ response, several can be wrong at a time: 11y2y1y0, a bit of each. */
#define ERNIC_FATAL_READ		0x18
#define ERNIC_FATAL_READ_BITS		(0x7fULL << (ERNIC_FATAL_READ + 1))

/* A bit of each code. */
#define ERNIC_FATAL_BIT(name, value, text) | 1ULL << (value)
#define ERNIC_FATAL_BITS		(ERNIC_FATAL_READ_BITS ERNIC_FATALS(ERNIC_FATAL_BIT))

/* Bits of the syndrome of an invalid packet: name, bit, precedence, what is wrong. */
#define ERNIC_SYNDROMES(X) \
	X(MAC_DESTINATION, 0,  4,  "MAC destination address is not the device's") \
	X(IP_VERSION,      2,  5,  "IP version is not the QP's") \
	X(IP_HEADER,       3,  7,  "length of the IPv4 header is not 20 bytes") \
	X(ECN,             4,  8,  "ECN is 3") \
	X(IP_FLAGS,        5,  8,  "flags of the IPv4 header are not 2") \
	X(IP_FRAGMENT,     6,  8,  "fragment offset is not 0") \
	X(IP_DESTINATION,  8,  8,  "IP destination address is not the device's") \
	X(IP_CHECKSUM,     9,  6,  "IPv4 header checksum is wrong") \
	X(IP_LENGTH,       10, 8,  "IP length is out of range") \
	X(UDP_LENGTH,      12, 9,  "UDP length does not fit the IP length") \
	X(BTH_VERSION,     13, 10, "BTH version is not 0") \
	X(QP,              14, 10, "no such QP") \
	X(QP_DISABLED,     15, 11, "QP is not enabled") \
	X(SEQUENCE,        16, 14, "opcode does not follow the one before") \
	X(OPCODE,          17, 10, "opcode is not supported") \
	X(PAD,             18, 14, "padding in a packet that is not the last of its message") \
	X(LENGTH,          19, 14, "payload does not fit the path MTU") \
	X(RNR,             20, 13, "receive queue is full") \
	X(PSN,             21, 12, "PSN is ahead of the expected PSN") \
	X(AETH,            22, 14, "AETH syndrome is reserved") \
	X(RESPONSE,        23, 14, "response is wrong, or a NAK that is fatal") \
	X(IP_SOURCE,       27, 5,  "IP source address is not the peer's") \
	X(MAC_SOURCE,      28, 4,  "MAC source address is not the peer's") \
	X(ICRC,            30, 2,  "ICRC is wrong")

enum ernic_syndrome {
#define ERNIC_SYNDROME_ENUM(name, bit, precedence, text) ERNIC_SYNDROME_##name = bit,
	ERNIC_SYNDROMES(ERNIC_SYNDROME_ENUM)
#undef ERNIC_SYNDROME_ENUM
};

#define ERNIC_OUTSTANDING		16	/* WQEs of a QP, and READs of its peer */
#define ERNIC_DATA_BUFFER_BYTES		4096
#define ERNIC_HEADER_BUFFER_BYTES	128

/* Limits of the real core, with the model's property strict. */
#define ERNIC_STRICT_MESSAGE_BYTES	(8u << 20)
/* Addresses and lengths of incoming WRITEs and READs are multiples of it. */
#define ERNIC_STRICT_UNIT_BYTES		64u
#define ERNIC_STRICT_READ_BYTES		4u			/* an incoming READ is longer */

/* The model's property clock-mhz. */
#define ERNIC_CLOCK_MHZ_MIN		1
#define ERNIC_CLOCK_MHZ_MAX		1000

#endif /* ERNIC_HW_H */
