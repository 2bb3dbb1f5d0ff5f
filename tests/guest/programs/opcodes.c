// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sends a packet of every opcode, and few others, for tests that check the frames.
 * Every byte is compared.
 *
 * opcodes plain DEVICE GID-INDEX DEVICE GID-INDEX NETNS [-- CASE...]
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "link.h"

#define GRH_BYTES	40
#define SHORT		101	/* of one packet, and padded */
#define IMMEDIATE	0x12345678
#define QKEY		0x11111111
#define OPS_CONNECTED	(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE | \
			 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
#define OPS_RELIABLE	(OPS_CONNECTED | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | \
			 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_SEND_WITH_INV | \
			 IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE)
#define OPS_DATAGRAM	(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)

enum request { SENT, SENT_IMM, SENT_INV, WRITTEN, WRITTEN_IMM, READ, SWAPPED, ADDED, STORED, FLUSHED };

/* a is the requester, b the responder. With XRC, b is a target, and rcq gets the completions of its SRQ. */
struct ends {
	enum ibv_qp_type type;
	struct tb_qp a, b;
	struct ibv_mr *mr;		/* of b's buffer, with all rights */
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;
	uint32_t srqn;
	struct ibv_ah *ah;
	uint32_t key;			/* the key of SEND_INV */
};

/* ------------------------------------------------------------------ */
/* Both ends                                                            */

static void open_end(struct tb_qp *q, struct tb_side *side)
{
	memset(q, 0, sizeof(*q));
	q->side = side;
	q->scq = link_make_cq(side, NULL);
	q->rcq = link_make_cq(side, NULL);
	q->buf = aligned_alloc(4096, TB_BUF_BYTES);
	if (!q->scq || !q->rcq || !q->buf)
		tb_die("opening an end");
	memset(q->buf, 0x5a, TB_BUF_BYTES);
	q->mr = ibv_reg_mr(side->pd, q->buf, TB_BUF_BYTES, TB_ACCESS_ALL);
	if (!q->mr)
		tb_die("ibv_reg_mr");
}

static void create_qp(struct tb_qp *q, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = q->side->pd,
		.send_cq = q->scq,
		.recv_cq = q->rcq,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1 },
		.send_ops_flags = type == IBV_QPT_UD ? OPS_DATAGRAM : type == IBV_QPT_UC ? OPS_CONNECTED :
				  OPS_RELIABLE | (type == IBV_QPT_RC ? IBV_QP_EX_WITH_BIND_MW : 0),
	};

	q->qp = ibv_create_qp_ex(q->side->ctx, &attr);
	if (!q->qp)
		tb_die("ibv_create_qp_ex: %s", strerror(errno));
}

static void create_target(struct ends *e)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT,
	};
	struct ibv_srq_init_attr_ex srq = {
		.attr = { .max_wr = 8, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ |
			     IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_XRC, .pd = e->b.side->pd, .cq = e->b.rcq,
	};
	struct ibv_qp_init_attr_ex target = { .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD };

	e->xrcd = ibv_open_xrcd(e->b.side->ctx, &domain);
	if (!e->xrcd)
		tb_die("ibv_open_xrcd");
	srq.xrcd = e->xrcd;
	target.xrcd = e->xrcd;
	e->srq = ibv_create_srq_ex(e->b.side->ctx, &srq);
	e->b.qp = ibv_create_qp_ex(e->b.side->ctx, &target);
	if (!e->srq || !e->b.qp || ibv_get_srq_num(e->srq, &e->srqn))
		tb_die("an XRC target and its SRQ");
}

static struct ibv_ah_attr path_to(const struct tb_side *own, const struct tb_side *peer)
{
	return (struct ibv_ah_attr) {
		.is_global = 1,
		.port_num = 1,
		.grh = { .dgid = peer->gid, .sgid_index = own->gid_index, .hop_limit = 64 },
	};
}

/* Each type has its own attributes of table A1-2. */
static void connect(struct tb_qp *q, const struct tb_qp *peer)
{
	enum ibv_qp_type type = q->qp->qp_type;
	bool asks = type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND;
	bool answers = type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = answers ? LINK_REMOTE | IBV_ACCESS_FLUSH_GLOBAL : IBV_ACCESS_REMOTE_WRITE,
	};

	if (ibv_modify_qp(q->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		tb_die("QP to INIT");
	attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp->qp_num,
		.rq_psn = 0xfffffe,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.ah_attr = path_to(q->side, peer->side),
	};
	if (ibv_modify_qp(q->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			  (answers ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)))
		tb_die("QP to RTR");
	attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTS, .sq_psn = 0xfffffe, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
		.max_rd_atomic = 4,
	};
	if (ibv_modify_qp(q->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | (asks || answers ? IBV_QP_TIMEOUT : 0) |
			  (asks ? IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0)))
		tb_die("QP to RTS");
}

static void open_ends(struct ends *e, enum ibv_qp_type type)
{
	struct ibv_ah_attr path = path_to(&link_asker, link_owner);

	memset(e, 0, sizeof(*e));
	e->type = type;
	open_end(&e->a, &link_asker);
	open_end(&e->b, link_owner);
	e->mr = ibv_reg_mr(link_owner->pd, e->b.buf, TB_BUF_BYTES, LINK_BINDABLE | IBV_ACCESS_FLUSH_GLOBAL);
	if (!e->mr)
		tb_die("ibv_reg_mr with all rights");
	create_qp(&e->a, type);
	if (type == IBV_QPT_XRC_SEND)
		create_target(e);
	else
		create_qp(&e->b, type);
	if (type == IBV_QPT_UD) {
		tb_ud_start(&e->a, QKEY);
		tb_ud_start(&e->b, QKEY);
		e->ah = ibv_create_ah(link_asker.pd, &path);
		if (!e->ah)
			tb_die("ibv_create_ah");
	} else {
		connect(&e->a, &e->b);
		connect(&e->b, &e->a);
	}
}

static void close_ends(struct ends *e)
{
	if ((e->ah && ibv_destroy_ah(e->ah)) || ibv_dereg_mr(e->mr))
		tb_die("closing");
	tb_qp_destroy(&e->a);
	if (e->srq && (ibv_destroy_qp(e->b.qp) || ibv_destroy_srq(e->srq) || ibv_close_xrcd(e->xrcd)))
		tb_die("closing a target");
	if (e->srq) {
		if (ibv_destroy_cq(e->b.scq) || ibv_destroy_cq(e->b.rcq) || ibv_dereg_mr(e->b.mr))
			tb_die("closing a target");
		free(e->b.buf);
	} else {
		tb_qp_destroy(&e->b);
	}
}

/* ------------------------------------------------------------------ */
/* One request                                                          */

static bool is_message(enum request request)
{
	return request == SENT || request == SENT_IMM || request == SENT_INV;
}

/* Posts a receive to the whole buffer of b; the data of a datagram follow its header. */
static void receive(struct ends *e)
{
	struct ibv_sge sge = { (uintptr_t)e->b.buf, TB_BUF_BYTES, e->b.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = RECV_ID, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (e->srq ? ibv_post_srq_recv(e->srq, &wr, &bad) : ibv_post_recv(e->b.qp, &wr, &bad))
		tb_fail("posting a receive failed");
}

static void build(struct ends *e, struct ibv_qp_ex *qp, enum request request, uint32_t length)
{
	uint64_t at = (uintptr_t)e->b.buf, value = 0x1122334455667788;
	uint32_t rkey = e->mr->rkey;

	switch (request) {
	case SENT:
		return ibv_wr_send(qp);
	case SENT_IMM:
		return ibv_wr_send_imm(qp, IMMEDIATE);
	case SENT_INV:
		return ibv_wr_send_inv(qp, e->key);
	case WRITTEN:
		return ibv_wr_rdma_write(qp, rkey, at);
	case WRITTEN_IMM:
		return ibv_wr_rdma_write_imm(qp, rkey, at, IMMEDIATE);
	case READ:
		return ibv_wr_rdma_read(qp, rkey, at);
	case SWAPPED:
		return ibv_wr_atomic_cmp_swp(qp, rkey, at, 7, 8);
	case ADDED:
		return ibv_wr_atomic_fetch_add(qp, rkey, at, 5);
	case STORED:
		return ibv_wr_atomic_write(qp, rkey, at, &value);
	case FLUSHED:
		return ibv_wr_flush(qp, rkey, at, length, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	}
}

static void post(struct ends *e, enum request request, uint32_t length, const char *what)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(e->a.qp);

	ibv_wr_start(qp);
	qp->wr_id = ASK_ID;
	qp->wr_flags = IBV_SEND_SIGNALED;
	build(e, qp, request, length);
	if (e->srq)
		ibv_wr_set_xrc_srqn(qp, e->srqn);
	if (e->ah)
		ibv_wr_set_ud_addr(qp, e->ah, e->b.qp->qp_num, QKEY);
	if (request != STORED && request != FLUSHED)
		ibv_wr_set_sge(qp, e->a.mr->lkey, (uintptr_t)e->a.buf, length);
	link_errno(ibv_wr_complete(qp), 0, what);
}

/* Checks the receive completion of a message, or of a WRITE with immediate data. */
static void check_received(struct ends *e, enum request request, uint32_t length, const char *what)
{
	const uint32_t header = e->type == IBV_QPT_UD ? GRH_BYTES : 0;
	struct ibv_wc wc;

	if (!tb_poll(e->b.rcq, &wc, what))
		return;
	if (wc.status != IBV_WC_SUCCESS || wc.byte_len != length + header)
		tb_fail("%s: received %u bytes, %s", what, wc.byte_len, ibv_wc_status_str(wc.status));
	if ((request == SENT_IMM || request == WRITTEN_IMM) &&
	    (!(wc.wc_flags & IBV_WC_WITH_IMM) || wc.imm_data != IMMEDIATE))
		tb_fail("%s: no immediate data", what);
	if (request == SENT_INV && (!(wc.wc_flags & IBV_WC_WITH_INV) || wc.invalidated_rkey != e->key))
		tb_fail("%s: no invalidated key", what);
}

/* A request that must succeed, with its data at the right addresses. */
static void ask(struct ends *e, enum request request, uint32_t length, const char *what)
{
	bool receives = is_message(request) || request == WRITTEN_IMM;
	const uint32_t header = e->type == IBV_QPT_UD ? GRH_BYTES : 0;

	link_fill(request == READ ? e->b.buf : e->a.buf, length);
	if (receives)
		receive(e);
	post(e, request, length, what);
	tb_expect(e->a.scq, ASK_ID, IBV_WC_SUCCESS, what);
	if (receives)
		check_received(e, request, length, what);
	if (request <= READ && memcmp(e->b.buf + header, e->a.buf, length))
		tb_fail("%s: wrong data", what);
}

/* Of one packet, and of several. */
static void ask_both(struct ends *e, enum request request, const char *what)
{
	ask(e, request, SHORT, what);
	ask(e, request, LINK_LONG, what);
}

/* ------------------------------------------------------------------ */
/* The cases                                                            */

static void connected_requests(struct ends *e)
{
	ask_both(e, SENT, "SEND");
	ask_both(e, SENT_IMM, "SEND with immediate data");
	ask_both(e, WRITTEN, "WRITE");
	ask_both(e, WRITTEN_IMM, "WRITE with immediate data");
}

static void check_word(struct ends *e, uint64_t value, const char *what)
{
	if (memcmp(e->b.buf, &value, sizeof(value)))
		tb_fail("%s: another value", what);
}

static void reliable_requests(struct ends *e)
{
	const uint64_t seven = 7;

	ask_both(e, READ, "READ");
	memcpy(e->b.buf, &seven, sizeof(seven));
	ask(e, SWAPPED, 8, "compare and swap");
	check_word(e, 8, "compare and swap");
	ask(e, ADDED, 8, "fetch and add");
	check_word(e, 13, "fetch and add");
	ask(e, STORED, 8, "ATOMIC WRITE");
	check_word(e, 0x1122334455667788, "ATOMIC WRITE");
	ask(e, FLUSHED, LINK_LONG, "FLUSH");
}

static void rc(void)
{
	struct ibv_mw *mw = link_window(IBV_MW_TYPE_2);
	struct ends e;
	uint32_t length;

	open_ends(&e, IBV_QPT_RC);
	connected_requests(&e);
	reliable_requests(&e);
	for (length = SHORT; length <= LINK_LONG; length += LINK_LONG - SHORT) {
		struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(e.b.qp);
		struct ibv_mw_bind_info info = { e.mr, (uintptr_t)e.b.buf, 4096, IBV_ACCESS_REMOTE_READ };

		ibv_wr_start(qp);
		qp->wr_id = BIND_ID;
		qp->wr_flags = IBV_SEND_SIGNALED;
		e.key = ibv_inc_rkey(mw->rkey);
		ibv_wr_bind_mw(qp, mw, e.key, &info);
		link_errno(ibv_wr_complete(qp), 0, "binding a window");
		tb_expect(e.b.scq, BIND_ID, IBV_WC_SUCCESS, "binding a window");
		mw->rkey = e.key;
		ask(&e, SENT_INV, length, "SEND with Invalidate");
	}
	close_ends(&e);
	link_close_window(mw);
}

/* A program cannot bind a window through a target, so an invalidation is refused when it arrives. */
static void xrc(void)
{
	struct ends e;
	struct ibv_wc wc;
	uint32_t length;

	open_ends(&e, IBV_QPT_XRC_SEND);
	connected_requests(&e);
	reliable_requests(&e);
	close_ends(&e);
	for (length = SHORT; length <= LINK_LONG; length += LINK_LONG - SHORT) {
		open_ends(&e, IBV_QPT_XRC_SEND);
		e.key = e.mr->rkey;
		receive(&e);
		post(&e, SENT_INV, length, "SEND with Invalidate of a region");
		tb_expect(e.a.scq, ASK_ID, IBV_WC_REM_ACCESS_ERR, "SEND with Invalidate of a region");
		if (tb_poll(e.b.rcq, &wc, "the receive") && wc.status == IBV_WC_SUCCESS)
			tb_fail("the region was invalidated");
		close_ends(&e);
	}
}

static void uc(void)
{
	struct ends e;

	open_ends(&e, IBV_QPT_UC);
	connected_requests(&e);
	close_ends(&e);
}

static void ud(void)
{
	struct ends e;

	open_ends(&e, IBV_QPT_UD);
	ask(&e, SENT, SHORT, "datagram");
	ask(&e, SENT, 0, "datagram of no bytes");
	ask(&e, SENT_IMM, 1024, "datagram with immediate data");
	close_ends(&e);
}

static void rnr(void)
{
	struct ends e;

	open_ends(&e, IBV_QPT_RC);
	link_fill(e.a.buf, SHORT);
	post(&e, SENT, SHORT, "a SEND too early");
	usleep(5000);
	receive(&e);
	tb_expect(e.a.scq, ASK_ID, IBV_WC_SUCCESS, "a SEND too early");
	check_received(&e, SENT, SHORT, "a SEND too early");
	close_ends(&e);
}

/* A request that gets a NAK as response, for either end. */
static void refused(enum ibv_wc_status status)
{
	struct ibv_recv_wr wr = { .wr_id = RECV_ID, .num_sge = 1 }, *bad;
	struct ibv_sge sge = { .length = SHORT };
	enum request request = SENT;
	struct ends e;

	open_ends(&e, IBV_QPT_RC);
	switch (status) {
	case IBV_WC_REM_OP_ERR:
		sge.lkey = ~e.mr->lkey;
		wr.sg_list = &sge;
		if (ibv_post_recv(e.b.qp, &wr, &bad))
			tb_fail("posting a receive failed");
		break;
	case IBV_WC_REM_INV_REQ_ERR:
		request = ADDED;
		e.b.buf++;	/* an unaligned address for an atomic */
		break;
	default:
		request = WRITTEN;
		e.b.buf += TB_BUF_BYTES;
		break;
	}
	post(&e, request, request == ADDED ? 8 : SHORT, "a request to be refused");
	tb_expect(e.a.scq, ASK_ID, status, "a request to be refused");
	e.b.buf -= request == ADDED ? 1 : request == WRITTEN ? TB_BUF_BYTES : 0;
	close_ends(&e);
}

static void naks(void)
{
	refused(IBV_WC_REM_OP_ERR);
	refused(IBV_WC_REM_INV_REQ_ERR);
	refused(IBV_WC_REM_ACCESS_ERR);
}

static const struct tb_case cases[] = {
	{ "reliable connections", rc },
	{ "unreliable connections", uc },
	{ "datagrams", ud },
	{ "extended connections", xrc },
	{ "a receiver that is not ready", rnr },
	{ "refused", naks },
};

int main(int argc, char **argv)
{
	return link_run(cases, ARRAY_SIZE(cases), argc, argv);
}
