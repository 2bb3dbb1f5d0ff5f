/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Packets on the wire: Ethernet, IP, UDP and the InfiniBand transport headers
 * of RoCE v2 (docs/reference/hardware-interface.rst, section 9).
 *
 * The structures have no padding. All fields are big-endian, except the ICRC. Clauses
 * without another source are those of the InfiniBand Architecture Specification, volume 1.
 */
#ifndef HGHCA_WIRE_H
#define HGHCA_WIRE_H

#include "hghca_hw.h"

#define HGHCA_PACKED __attribute__((packed))

/* ------------------------------------------------------------------ */
/* Ethernet, IP, UDP                                                    */

#define HGHCA_ETH_TYPE_IPV4		0x0800
#define HGHCA_ETH_TYPE_VLAN		0x8100
#define HGHCA_ETH_TYPE_IPV6		0x86dd
#define HGHCA_ETH_TYPE_MAC_CONTROL	0x8808

struct hghca_eth_header {
	__u8	dmac[6];
	__u8	smac[6];
	__be16	type;
} HGHCA_PACKED;
HGHCA_ASSERT_SIZE(hghca_eth_header, 14);

/* Follows an Ethernet header of type HGHCA_ETH_TYPE_VLAN. */
struct hghca_vlan_tag {
	__be16	tci;			/* PCP 15:13, DEI 12, VLAN id 11:0 */
	__be16	type;
} HGHCA_PACKED;
HGHCA_ASSERT_SIZE(hghca_vlan_tag, 4);

#define HGHCA_VLAN_PCP_MASK		0xe000
#define HGHCA_VLAN_ID_MASK		0x0fff

/* Pause frames without FCS: IEEE 802.3, annex 31B; annex 31D for those of one priority. */
#define HGHCA_MAC_CONTROL_ADDRESS	{ 0x01, 0x80, 0xc2, 0x00, 0x00, 0x01 }
#define HGHCA_MAC_CONTROL_PAUSE		0x0001
#define HGHCA_MAC_CONTROL_PFC		0x0101

struct hghca_pause_frame {
	struct hghca_eth_header eth;
	__be16	opcode;			/* HGHCA_MAC_CONTROL_PAUSE */
	__be16	quanta;			/* 512 bit times each; 0: resume */
	__u8	rsvd[42];
} HGHCA_PACKED;
HGHCA_ASSERT_SIZE(hghca_pause_frame, 60);
HGHCA_ASSERT_OFFSET(hghca_pause_frame, quanta, 16);

struct hghca_pfc_frame {
	struct hghca_eth_header eth;
	__be16	opcode;			/* HGHCA_MAC_CONTROL_PFC */
	__be16	priorities;		/* bit p: quanta[p] is valid */
	__be16	quanta[8];
	__u8	rsvd[26];
} HGHCA_PACKED;
HGHCA_ASSERT_SIZE(hghca_pfc_frame, 60);
HGHCA_ASSERT_OFFSET(hghca_pfc_frame, priorities, 16);

struct hghca_ipv4_header {
	__u8	version_ihl;
	__u8	tos;
	__be16	length;			/* of this header and the payload */
	__be16	id;
	__be16	fragment;
	__u8	ttl;
	__u8	protocol;
	__be16	checksum;
	__u8	src[4];
	__u8	dst[4];
} HGHCA_PACKED;
HGHCA_ASSERT_SIZE(hghca_ipv4_header, 20);
HGHCA_ASSERT_OFFSET(hghca_ipv4_header, ttl, 8);
HGHCA_ASSERT_OFFSET(hghca_ipv4_header, src, 12);

/* Explicit congestion notification, RFC 3168: bits 1:0 of the traffic class or the IPv4 TOS. */
#define HGHCA_ECN_MASK			0x03
#define HGHCA_ECN_ECT0			0x02	/* ECN-capable transport */
#define HGHCA_ECN_CE			0x03	/* congestion experienced */
#define HGHCA_DSCP_SHIFT		2

#define HGHCA_IPV4_VERSION_IHL		0x45
#define HGHCA_IPV4_DF			0x4000
#define HGHCA_IPV4_FRAGMENT_MASK	0x3fff	/* MF and the offset; not 0 in a fragment */
#define HGHCA_IP_TCP			6
#define HGHCA_IP_UDP			17

struct hghca_ipv6_header {
	__be32	version_class_flow;
	__be16	length;			/* of the payload */
	__u8	next_header;
	__u8	hop_limit;
	__u8	src[16];
	__u8	dst[16];
} HGHCA_PACKED;
HGHCA_ASSERT_SIZE(hghca_ipv6_header, 40);
HGHCA_ASSERT_OFFSET(hghca_ipv6_header, src, 8);

#define HGHCA_IPV6_VERSION_MASK		HGHCA_MASK(31, 28)
#define HGHCA_IPV6_CLASS_MASK		HGHCA_MASK(27, 20)
#define HGHCA_IPV6_FLOW_MASK		HGHCA_MASK(19, 0)

struct hghca_udp_header {
	__be16	src_port;
	__be16	dst_port;
	__be16	length;			/* of this header and the payload */
	__be16	checksum;
} HGHCA_PACKED;
HGHCA_ASSERT_SIZE(hghca_udp_header, 8);

#define HGHCA_TCP_HEADER_SIZE		20	/* without options */

#define HGHCA_ROCE_UDP_PORT		4791
#define HGHCA_ROCE_SRC_PORT_BASE	0xc000	/* the low 14 bits depend on the flow */

/* ------------------------------------------------------------------ */
/* InfiniBand transport headers (chapter 9)                             */

/* Base transport header, 9.2. */
struct hghca_bth {
	__u8	opcode;			/* service 7:5, HGHCA_BTH_OP_* */
	__u8	flags;			/* HGHCA_BTH_* */
	__be16	pkey;
	__be32	qpn;			/* FECN 31, BECN 30, reserved 29:24, destination QP 23:0 */
	__be32	psn;			/* AckReq 31, PSN 23:0 */
} HGHCA_PACKED;
HGHCA_ASSERT_SIZE(hghca_bth, 12);
HGHCA_ASSERT_OFFSET(hghca_bth, qpn, 4);
HGHCA_ASSERT_OFFSET(hghca_bth, psn, 8);

#define HGHCA_BTH_SOLICITED		0x80
#define HGHCA_BTH_MIGREQ		0x40
#define HGHCA_BTH_PAD_MASK		0x30
#define HGHCA_BTH_VERSION_MASK		0x0f
#define HGHCA_BTH_BECN			HGHCA_MASK(30, 30)
#define HGHCA_BTH_QPN_MASK		HGHCA_MASK(23, 0)
#define HGHCA_BTH_ACKREQ		HGHCA_MASK(31, 31)
#define HGHCA_BTH_PSN_MASK		HGHCA_MASK(23, 0)

/* RDMA extended transport header, 9.3.3. */
struct hghca_reth {
	__be64	va;
	__be32	rkey;
	__be32	length;
} HGHCA_PACKED;
HGHCA_ASSERT_SIZE(hghca_reth, 16);

/* FLUSH extended transport header, annex A19. */
struct hghca_feth {
	__be32	what;			/* HGHCA_FLUSH_* */
} HGHCA_PACKED;
HGHCA_ASSERT_SIZE(hghca_feth, 4);

/* Follows the RETH of a READ_POINTER; docs/reference/rsnic.rst, section 9. */
struct hghca_pointer_eth {
	__be64	key;
	__be32	search;			/* HGHCA_POINTER_* */
} HGHCA_PACKED;
HGHCA_ASSERT_SIZE(hghca_pointer_eth, 12);

/* Atomic extended transport header, 9.3.4. */
struct hghca_atomic_eth {
	__be64	va;
	__be32	rkey;
	__be64	swap_add;
	__be64	compare;
} HGHCA_PACKED;
HGHCA_ASSERT_SIZE(hghca_atomic_eth, 28);

/* ACK extended transport header, 9.3.5. */
struct hghca_aeth {
	__be32	syndrome_msn;		/* syndrome 31:24, MSN 23:0 */
} HGHCA_PACKED;
HGHCA_ASSERT_SIZE(hghca_aeth, 4);

#define HGHCA_AETH_SYNDROME_MASK	HGHCA_MASK(31, 24)
#define HGHCA_AETH_MSN_MASK		HGHCA_MASK(23, 0)

/* Atomic ACK extended transport header, 9.5.3. */
struct hghca_atomic_ack_eth {
	__be64	original;
} HGHCA_PACKED;
HGHCA_ASSERT_SIZE(hghca_atomic_ack_eth, 8);

/* Immediate extended transport header, 9.3.6. */
struct hghca_immdt {
	__be32	imm;
} HGHCA_PACKED;
HGHCA_ASSERT_SIZE(hghca_immdt, 4);

/* Invalidate extended transport header, 9.3.7. */
struct hghca_ieth {
	__be32	rkey;
} HGHCA_PACKED;
HGHCA_ASSERT_SIZE(hghca_ieth, 4);

/* Datagram extended transport header, 9.3.2. */
struct hghca_deth {
	__be32	qkey;
	__be32	src_qpn;		/* reserved 31:24, source QP 23:0 */
} HGHCA_PACKED;
HGHCA_ASSERT_SIZE(hghca_deth, 8);

/* XRC extended transport header, annex A14. */
struct hghca_xrceth {
	__be32	srqn;			/* reserved 31:24, XRC SRQ 23:0 */
} HGHCA_PACKED;
HGHCA_ASSERT_SIZE(hghca_xrceth, 4);
#define HGHCA_XRCETH_SRQN_MASK		0xffffffU

/* Reserved bytes after the BTH of a congestion notification packet, annex A17.9.3; all 0. */
#define HGHCA_CNP_RESERVED		16

/* Invariant CRC, after the payload and its padding; little-endian. */
#define HGHCA_ICRC_SIZE			4

/* BTH opcodes, table 38. Bits 7:5 are the transport service. */
#define HGHCA_BTH_SERVICE_MASK		0xe0
#define HGHCA_BTH_OP_MASK		0x1f
#define HGHCA_BTH_RC			0x00
#define HGHCA_BTH_UC			0x20
#define HGHCA_BTH_UD			0x60
#define HGHCA_BTH_XRC			0xa0

/* Congestion notification packet, annex A17.9.3: of no transport service. */
#define HGHCA_BTH_CNP			0x81

/*
 * Manufacturer-specific opcodes of RSNIC; docs/reference/rsnic.rst, section 9. Table 38 has
 * C0 to FF for them. READ responses answer the requests that read.
 */
#define HGHCA_BTH_VENDOR		0xc0
enum hghca_bth_vendor {
	HGHCA_BTH_PART_FIRST			= 0xc0,
	HGHCA_BTH_PART_MIDDLE			= 0xc1,
	HGHCA_BTH_PART_LAST			= 0xc2,
	HGHCA_BTH_PART_ONLY			= 0xc3,
	HGHCA_BTH_READ_POINTER_REQUEST		= 0xc4,
	HGHCA_BTH_READ_CONSISTENT_REQUEST	= 0xc5,
};

/* Bits 4:0 are the operation. */
enum hghca_bth_op {
	HGHCA_BTH_OP_SEND_FIRST			= 0x00,
	HGHCA_BTH_OP_SEND_MIDDLE		= 0x01,
	HGHCA_BTH_OP_SEND_LAST			= 0x02,
	HGHCA_BTH_OP_SEND_LAST_IMM		= 0x03,
	HGHCA_BTH_OP_SEND_ONLY			= 0x04,
	HGHCA_BTH_OP_SEND_ONLY_IMM		= 0x05,
	HGHCA_BTH_OP_WRITE_FIRST		= 0x06,
	HGHCA_BTH_OP_WRITE_MIDDLE		= 0x07,
	HGHCA_BTH_OP_WRITE_LAST			= 0x08,
	HGHCA_BTH_OP_WRITE_LAST_IMM		= 0x09,
	HGHCA_BTH_OP_WRITE_ONLY			= 0x0a,
	HGHCA_BTH_OP_WRITE_ONLY_IMM		= 0x0b,
	HGHCA_BTH_OP_READ_REQUEST		= 0x0c,
	HGHCA_BTH_OP_READ_RESPONSE_FIRST	= 0x0d,
	HGHCA_BTH_OP_READ_RESPONSE_MIDDLE	= 0x0e,
	HGHCA_BTH_OP_READ_RESPONSE_LAST		= 0x0f,
	HGHCA_BTH_OP_READ_RESPONSE_ONLY		= 0x10,
	HGHCA_BTH_OP_ACK			= 0x11,
	HGHCA_BTH_OP_ATOMIC_ACK			= 0x12,
	HGHCA_BTH_OP_COMPARE_SWAP		= 0x13,
	HGHCA_BTH_OP_FETCH_ADD			= 0x14,
	HGHCA_BTH_OP_SEND_LAST_INV		= 0x16,
	HGHCA_BTH_OP_SEND_ONLY_INV		= 0x17,
	HGHCA_BTH_OP_FLUSH		= 0x1c,
	HGHCA_BTH_OP_ATOMIC_WRITE	= 0x1d,
};

/* AETH syndrome, table 43. Bits 6:5 are the type, bits 4:0 the value. */
#define HGHCA_AETH_TYPE_MASK		0x60
#define HGHCA_AETH_VALUE_MASK		0x1f
#define HGHCA_AETH_ACK			0x00
#define HGHCA_AETH_RNR_NAK		0x20	/* value: timer code */
#define HGHCA_AETH_NAK			0x60	/* value: HGHCA_NAK_* */
#define HGHCA_AETH_CREDIT_UNLIMITED	0x1f	/* value of an ACK: no end-to-end flow control */

/* Credit counts of the other values of an ACK, 9.7.7.2. A credit is one receive WQE. */
#define HGHCA_AETH_CREDITS { \
	0, 1, 2, 3, 4, 6, 8, 12, \
	16, 24, 32, 48, 64, 96, 128, 192, \
	256, 384, 512, 768, 1024, 1536, 2048, 3072, \
	4096, 6144, 8192, 12288, 16384, 24576, 32768 }

/* NAK codes, table 44. */
#define HGHCA_NAK_PSN_SEQUENCE		0
#define HGHCA_NAK_INVALID_REQUEST	1
#define HGHCA_NAK_REMOTE_ACCESS		2
#define HGHCA_NAK_REMOTE_OPERATION	3

/* RNR NAK timer codes 0 to 31 in microseconds, table 45. */
#define HGHCA_RNR_TIMER_US { \
	655360, 10, 20, 30, 40, 60, 80, 120, \
	160, 240, 320, 480, 640, 960, 1280, 1920, \
	2560, 3840, 5120, 7680, 10240, 15360, 20480, 30720, \
	40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520 }

/* Q_Key of QP 1 (10.2.4.4), and the bit of a Q_Key that selects the Q_Key of the QP (10.2.5). */
#define HGHCA_QP1_QKEY			0x80010000U
#define HGHCA_QKEY_OWN			0x80000000U
/* The default P_Key. Bit 15: full member. */
#define HGHCA_PKEY_DEFAULT		0xffff
#define HGHCA_PKEY_FULL			0x8000

#define HGHCA_QPN_GSI			1U
#define HGHCA_QPN_MULTICAST		0xffffffU

/* Size of the global route header, which precedes the data of a received datagram. */
#define HGHCA_GRH_SIZE			40

#endif /* HGHCA_WIRE_H */
