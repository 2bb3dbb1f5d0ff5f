/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* JingZhao HCA: EQEs; docs/reference/hardware-interface.rst, 4 and 5.4. */
#ifndef HGHCA_INTERFACE_EQE_H
#define HGHCA_INTERFACE_EQE_H

#include <hghca/types.h>

/* HGHCA_EVENTS(X) - every event type, as X(name, value) */
#define HGHCA_EVENTS(X) \
	X(COMP, 0x00) \
	X(COMM_EST, 0x02) \
	X(SQ_DRAINED, 0x03) \
	X(CQ_ERROR, 0x04) \
	X(WQ_CATAS_ERROR, 0x05) \
	X(LOCAL_CATAS_ERROR, 0x08) \
	X(PORT_CHANGE, 0x09) \
	X(CMD, 0x0a) \
	X(EQ_OVERFLOW, 0x0f) \
	X(WQ_INVAL_REQ_ERROR, 0x10) \
	X(WQ_ACCESS_ERROR, 0x11) \
	X(SRQ_CATAS_ERROR, 0x12) \
	X(SRQ_QP_LAST_WQE, 0x13) \
	X(SRQ_LIMIT, 0x14) \
	X(PAGE_FAULT, 0x18)

enum hghca_event_type {
#define HGHCA_EVENT(name, value) HGHCA_EVENT_##name = value,
	HGHCA_EVENTS(HGHCA_EVENT)
#undef HGHCA_EVENT
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
			__be32	port;		/* 0Ch: port in bits 31:28 */
		} port_change;
		struct {
			__be32	qpn;		/* 04h */
			__be32	what;		/* 08h: HGHCA_PAGE_FAULT_* */
			__be32	key;		/* 0Ch: key of the region */
			__be32	addr_h;		/* 10h: address in the region */
			__be32	addr_l;
			__be32	length;		/* 18h: bytes required from that address on */
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
#define HGHCA_PAGE_FAULT_RESPONDER	(1U << 1)	/* set: responder; clear: requester */
#define HGHCA_PAGE_FAULT_WRITE		(1U << 0)	/* set: write access; clear: read access */

#endif /* HGHCA_INTERFACE_EQE_H */
