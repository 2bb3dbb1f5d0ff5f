// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Calls that must fail at once: wrong state, wrong value, zero, one more than the
 * maximum, a full queue, an object in use. Each has one exact errno. The maximum
 * itself is accepted. A refused call leaves its object unchanged.
 *
 * badcalls DEVICE GID-INDEX OTHER-DEVICE GID-INDEX NETNS [CASE...]
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "testbed.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define INIT_MASK	(IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define RTR_MASK	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
			 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_MASK	(IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | \
			 IBV_QP_MAX_QP_RD_ATOMIC)
#define HELD_MS		200
#define QKEY		0x1234
#define DATAGRAMS	8

static struct tb_side side, other_side;
static struct ibv_device_attr dev;
static struct tb_pair neighbour;

static void expect(int error, int wanted, const char *what)
{
	if (error != wanted)
		tb_fail("%s: %s, expected %s", what, strerror(error), strerror(wanted));
}

/* ------------------------------------------------------------------ */
/* Posting                                                              */

static int post_send(struct tb_qp *q, const struct tb_qp *peer, enum ibv_wr_opcode opcode, uint32_t bytes,
		     unsigned int flags)
{
	struct ibv_sge sge = { (uintptr_t)q->buf, bytes, q->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = flags };
	struct ibv_send_wr *bad = NULL;
	int error;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)peer->buf;
		wr.wr.atomic.rkey = peer->mr->rkey;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)peer->buf;
		wr.wr.rdma.rkey = peer->mr->rkey;
	}
	error = ibv_post_send(q->qp, &wr, &bad);
	if (error && bad != &wr)
		tb_fail("bad_wr is not the request that was refused");
	return error;
}

static int post_recv(struct tb_qp *q, int num_sge)
{
	struct ibv_sge sge[256] = { 0 };
	struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = sge, .num_sge = num_sge }, *bad = NULL;
	int error, i;

	for (i = 0; i < num_sge; i++)
		sge[i] = (struct ibv_sge) { (uintptr_t)q->buf, 16, q->mr->lkey };
	error = ibv_post_recv(q->qp, &wr, &bad);
	if (error && bad != &wr)
		tb_fail("bad_wr is not the receive that was refused");
	return error;
}

static struct ibv_qp_attr init_attr(void)
{
	return (struct ibv_qp_attr) { .qp_state = IBV_QPS_INIT, .port_num = 1,
				      .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };
}

static struct ibv_qp_attr rtr_attr(const struct tb_qp *peer)
{
	return (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTR, .path_mtu = side.mtu, .dest_qp_num = peer->qp->qp_num,
		.max_dest_rd_atomic = 1, .min_rnr_timer = 1,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .dgid = side.gid, .sgid_index = side.gid_index, .hop_limit = 64 } },
	};
}

static struct ibv_qp_attr rts_attr(void)
{
	return (struct ibv_qp_attr) { .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
				      .max_rd_atomic = 1 };
}

/* Receives cannot be posted before INIT, and sends not before RTS. */
static void posted_early(void)
{
	struct tb_opts opts = tb_pair_defaults();
	struct ibv_qp_attr attr = init_attr();
	struct tb_qp q;

	tb_qp_create(&q, &side, IBV_QPT_RC, &opts);
	expect(post_recv(&q, 1), EINVAL, "a receive in RESET");
	expect(post_send(&q, &q, IBV_WR_SEND, 8, 0), EINVAL, "a send in RESET");
	expect(ibv_modify_qp(q.qp, &attr, INIT_MASK), 0, "RESET to INIT");
	expect(post_recv(&q, 1), 0, "a receive in INIT");
	expect(post_send(&q, &q, IBV_WR_SEND, 8, 0), EINVAL, "a send in INIT");
	attr = rtr_attr(&q);
	expect(ibv_modify_qp(q.qp, &attr, RTR_MASK), 0, "INIT to RTR");
	expect(post_recv(&q, 1), 0, "a receive in RTR");
	expect(post_send(&q, &q, IBV_WR_SEND, 8, 0), EINVAL, "a send in RTR");
	tb_expect_none(q.scq, "what was refused");
	/* The QP is connected to itself and receives its own messages. */
	attr = rts_attr();
	expect(ibv_modify_qp(q.qp, &attr, RTS_MASK), 0, "RTR to RTS");
	expect(post_send(&q, &q, IBV_WR_SEND, 8, 0), 0, "a send in RTS");
	tb_expect(q.scq, 1, IBV_WC_SUCCESS, "the send in RTS");
	tb_expect(q.rcq, 1, IBV_WC_SUCCESS, "the receive of INIT");
	tb_qp_destroy(&q);
}

/* Requests posted in SQD are accepted, and wait for RTS. */
static void drained(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct tb_opts opts = tb_pair_defaults();
	struct tb_pair p;
	struct ibv_wc wc;
	int64_t until;

	tb_pair_create(&p, &side, &side, &opts);
	expect(ibv_modify_qp(p.a.qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0, "RTS to SQD");
	tb_expect_async(&side, IBV_EVENT_SQ_DRAINED, p.a.qp, "RTS to SQD");
	tb_expect_state(&p.a, IBV_QPS_SQD, "the drained QP");
	expect(post_send(&p.a, &p.b, IBV_WR_RDMA_WRITE, 8, 0), 0, "a write in SQD");
	for (until = tb_now_ms() + HELD_MS; tb_now_ms() < until;)
		if (ibv_poll_cq(p.a.scq, 1, &wc) != 0)
			tb_fail("the write was not held in SQD");
	attr.qp_state = IBV_QPS_INIT;
	expect(ibv_modify_qp(p.a.qp, &attr, IBV_QP_STATE), EINVAL, "SQD to INIT");
	tb_expect_state(&p.a, IBV_QPS_SQD, "after a refused step");
	attr.qp_state = IBV_QPS_RTS;
	expect(ibv_modify_qp(p.a.qp, &attr, IBV_QP_STATE), 0, "SQD to RTS");
	tb_expect(p.a.scq, 1, IBV_WC_SUCCESS, "the write of SQD");
	tb_check_traffic(&p, "the resumed QP");
	tb_pair_destroy(&p);
}

/* The receive queue accepts max_recv_wr requests; the next is ENOMEM, and no posted request is lost. */
static void receive_queue(void)
{
	struct ibv_qp_attr attr = init_attr();
	struct tb_opts opts = tb_pair_defaults();
	struct ibv_qp_init_attr init;
	uint32_t posted = 0, flushed;
	struct tb_qp q;

	tb_qp_create(&q, &side, IBV_QPT_RC, &opts);
	expect(ibv_modify_qp(q.qp, &attr, INIT_MASK), 0, "RESET to INIT");
	expect(ibv_query_qp(q.qp, &attr, IBV_QP_CAP, &init), 0, "ibv_query_qp");
	expect(post_recv(&q, (int)attr.cap.max_recv_sge + 1), EINVAL, "a receive of one SGE too many");
	while (posted <= 65536 && post_recv(&q, (int)attr.cap.max_recv_sge) == 0)
		posted++;
	if (posted != attr.cap.max_recv_wr)
		tb_fail("%u receives fitted in a queue of %u", posted, attr.cap.max_recv_wr);
	expect(post_recv(&q, 1), ENOMEM, "one receive more");
	attr.qp_state = IBV_QPS_ERR;
	expect(ibv_modify_qp(q.qp, &attr, IBV_QP_STATE), 0, "INIT to ERR");
	for (flushed = 0; flushed < posted && tb_expect(q.rcq, 1, IBV_WC_WR_FLUSH_ERR, "a receive"); flushed++)
		;
	tb_expect_none(q.rcq, "the receive that was refused");
	tb_qp_destroy(&q);
}

static void shapes(void)
{
	struct tb_opts opts = tb_pair_defaults();
	static const uint32_t wrong[] = { 0, 4, 7, 9, 16 };
	struct tb_pair p;
	size_t i;

	opts.max_inline = 64;
	tb_pair_create(&p, &side, &side, &opts);
	expect(post_send(&p.a, &p.b, IBV_WR_RDMA_WRITE, p.a.max_inline + 1, IBV_SEND_INLINE), EINVAL,
	       "one byte more inline than the most");
	expect(post_send(&p.a, &p.b, IBV_WR_RDMA_READ, 8, IBV_SEND_INLINE), EINVAL, "an inline READ");
	expect(post_send(&p.a, &p.b, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, IBV_SEND_INLINE), EINVAL, "an inline atomic");
	tb_expect_none(p.a.scq, "what was refused");
	expect(post_send(&p.a, &p.b, IBV_WR_RDMA_WRITE, p.a.max_inline, IBV_SEND_INLINE), 0, "the most inline");
	tb_expect(p.a.scq, 1, IBV_WC_SUCCESS, "the most inline");
	tb_check_traffic(&p, "the same QP");
	tb_pair_destroy(&p);
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		tb_pair_create(&p, &side, &side, &opts);
		expect(post_send(&p.a, &p.b, IBV_WR_ATOMIC_FETCH_AND_ADD, wrong[i], 0), 0, "an atomic not of 8 bytes");
		tb_expect(p.a.scq, 1, IBV_WC_LOC_LEN_ERR, "an atomic not of 8 bytes");
		tb_expect_state(&p.a, IBV_QPS_ERR, "its QP");
		tb_pair_destroy(&p);
	}
}

/* A request has up to the granted number of SGEs; one more is refused. */
static void send_sges(void)
{
	struct ibv_send_wr wr = { .wr_id = 1, .opcode = IBV_WR_RDMA_WRITE }, *bad = NULL;
	struct tb_opts opts = tb_pair_defaults();
	struct ibv_qp_init_attr init;
	struct ibv_sge sge[256];
	struct ibv_qp_attr attr;
	struct tb_pair p;
	uint32_t i, most;

	tb_pair_create(&p, &side, &side, &opts);
	expect(ibv_query_qp(p.a.qp, &attr, IBV_QP_CAP, &init), 0, "ibv_query_qp");
	most = attr.cap.max_send_sge;
	if (most >= ARRAY_SIZE(sge))
		tb_die("a QP of %u SGEs", most);
	for (i = 0; i <= most; i++) {
		sge[i] = (struct ibv_sge) { (uintptr_t)p.a.buf + 64 * i, 8, p.a.mr->lkey };
		memset(p.a.buf + 64 * i, 1 + i, 8);
	}
	wr.sg_list = sge;
	wr.wr.rdma.remote_addr = (uintptr_t)p.b.buf;
	wr.wr.rdma.rkey = p.b.mr->rkey;
	wr.num_sge = most + 1;
	expect(ibv_post_send(p.a.qp, &wr, &bad), EINVAL, "one SGE more than the most");
	if (bad != &wr)
		tb_fail("bad_wr is not the request that was refused");
	tb_expect_none(p.a.scq, "what was refused");
	wr.num_sge = most;
	expect(ibv_post_send(p.a.qp, &wr, &bad), 0, "the most SGEs");
	tb_expect(p.a.scq, 1, IBV_WC_SUCCESS, "the most SGEs");
	for (i = 0; i < 8 * (most + 1); i++)
		if (p.b.buf[i] != (i < 8 * most ? 1 + i / 8 : 0))
			tb_fail("byte %u of %u SGEs: %u", i, most, p.b.buf[i]);
	tb_pair_destroy(&p);
}

/* A UD QP of the plain interface and of struct ibv_qp_ex, with receives for some datagrams. */
static void datagram_qp(struct tb_qp *q)
{
	struct ibv_qp_init_attr_ex init = {
		.cap = { .max_send_wr = 4, .max_recv_wr = DATAGRAMS, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_UD, .sq_sig_all = 1, .pd = side.pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct tb_opts opts = tb_pair_defaults();
	struct ibv_recv_wr wr = { .num_sge = 1 }, *bad;
	struct ibv_sge sge;

	tb_qp_create(q, &side, IBV_QPT_UD, &opts);
	expect(ibv_destroy_qp(q->qp), 0, "ibv_destroy_qp");
	init.send_cq = q->scq;
	init.recv_cq = q->rcq;
	q->qp = ibv_create_qp_ex(side.ctx, &init);
	if (!q->qp)
		tb_die("ibv_create_qp_ex");
	tb_ud_start(q, QKEY);
	sge = (struct ibv_sge) { (uintptr_t)q->buf, 64, q->mr->lkey };
	wr.sg_list = &sge;
	for (wr.wr_id = 0; wr.wr_id < DATAGRAMS; wr.wr_id++)
		expect(ibv_post_recv(q->qp, &wr, &bad), 0, "a receive");
}

/* Posts datagrams to the QP itself, one for each handle; returns the index of the refused one, or their number. */
static int post_datagrams(struct tb_qp *q, struct ibv_ah **ahs, int count)
{
	struct ibv_sge sge = { (uintptr_t)q->buf + 1024, 8, q->mr->lkey };
	struct ibv_send_wr wr[DATAGRAMS], *bad = NULL;
	int error, i;

	for (i = 0; i < count; i++) {
		wr[i] = (struct ibv_send_wr) { .wr_id = i, .next = i + 1 < count ? &wr[i + 1] : NULL,
					       .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };
		wr[i].wr.ud.ah = ahs[i];
		wr[i].wr.ud.remote_qpn = q->qp->qp_num;
		wr[i].wr.ud.remote_qkey = QKEY;
	}
	error = ibv_post_send(q->qp, wr, &bad);
	if (!error)
		return count;
	expect(error, EINVAL, "a datagram");
	return bad ? (int)(bad - wr) : -1;
}

/* Posts one datagram through struct ibv_qp_ex; returns an errno. */
static int build_datagram(struct tb_qp *q, struct ibv_ah *ah)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(q->qp);

	ibv_wr_start(ex);
	ex->wr_id = 0;
	ex->wr_flags = 0;
	ibv_wr_send(ex);
	ibv_wr_set_ud_addr(ex, ah, q->qp->qp_num, QKEY);
	ibv_wr_set_sge(ex, q->mr->lkey, (uintptr_t)q->buf + 1024, 8);
	return ibv_wr_complete(ex);
}

static struct ibv_ah *address_in(struct ibv_pd *pd)
{
	struct ibv_ah_attr attr = rtr_attr(&neighbour.a).ah_attr;
	struct ibv_ah *ah = pd ? ibv_create_ah(pd, &attr) : NULL;

	if (!ah)
		tb_die("ibv_create_ah");
	return ah;
}

static void back_from_sqe(struct tb_qp *q)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE };

	tb_expect_state(q, IBV_QPS_SQE, "a QP whose send has failed");
	expect(ibv_modify_qp(q->qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE), 0, "SQE to RTS");
}

/* Operations that UD does not support complete in error, in order, and the QP can be used again. */
static void no_datagrams(void)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	struct ibv_ah *ah = address_in(side.pd);
	struct tb_qp q;
	size_t i;

	datagram_qp(&q);
	for (i = 0; i < ARRAY_SIZE(opcodes); i++) {
		struct ibv_sge sge = { (uintptr_t)q.buf + 1024, 8, q.mr->lkey };
		struct ibv_send_wr wr = { .wr_id = 7, .sg_list = &sge, .num_sge = 1, .opcode = opcodes[i] }, *bad;

		wr.wr.rdma.remote_addr = (uintptr_t)q.buf;
		wr.wr.rdma.rkey = q.mr->rkey;
		expect(ibv_post_send(q.qp, &wr, &bad), 0, "what datagrams lack");
		tb_expect(q.scq, 7, IBV_WC_LOC_QP_OP_ERR, "what datagrams lack");
		back_from_sqe(&q);
	}
	tb_expect_none(q.rcq, "what datagrams lack");
	if (post_datagrams(&q, &ah, 1) != 1)
		tb_fail("a datagram was refused afterwards");
	tb_expect(q.scq, 0, IBV_WC_SUCCESS, "a datagram afterwards");
	tb_expect(q.rcq, 0, IBV_WC_SUCCESS, "its receive");
	tb_qp_destroy(&q);
	expect(ibv_destroy_ah(ah), 0, "ibv_destroy_ah");
}

/* The same for operations that UC does not support. */
static void no_uc(void)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	struct tb_opts opts = tb_pair_defaults();
	struct ibv_qp_attr attr = init_attr();
	struct tb_qp q;
	size_t i;

	tb_qp_create(&q, &side, IBV_QPT_UC, &opts);
	expect(ibv_modify_qp(q.qp, &attr, INIT_MASK), 0, "RESET to INIT");
	attr = rtr_attr(&q);
	expect(ibv_modify_qp(q.qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			     IBV_QP_RQ_PSN), 0, "INIT to RTR");
	attr = rts_attr();
	expect(ibv_modify_qp(q.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0, "RTR to RTS");
	for (i = 0; i < ARRAY_SIZE(opcodes); i++) {
		expect(post_send(&q, &q, opcodes[i], 8, IBV_SEND_SIGNALED), 0, "what UC lacks");
		tb_expect(q.scq, 1, IBV_WC_LOC_QP_OP_ERR, "what UC lacks");
		back_from_sqe(&q);
	}
	expect(post_send(&q, &q, IBV_WR_RDMA_WRITE, 8, IBV_SEND_SIGNALED), 0, "a WRITE afterwards");
	tb_expect(q.scq, 1, IBV_WC_SUCCESS, "a WRITE afterwards");
	tb_qp_destroy(&q);
}

/* An address handle is valid for QPs of its PD, through any structure of that PD. */
static void foreign_addresses(void)
{
	struct ibv_parent_domain_init_attr parent = { .pd = side.pd };
	struct ibv_pd *pds[] = { side.pd, ibv_alloc_parent_domain(side.ctx, &parent),
				 ibv_import_pd(side.ctx, side.pd->handle), ibv_alloc_pd(side.ctx) };
	enum { OWN, PARENT, IMPORTED, FOREIGN };
	struct ibv_ah *ahs[ARRAY_SIZE(pds)];
	struct tb_qp q;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(pds); i++)
		ahs[i] = address_in(pds[i]);
	datagram_qp(&q);
	if (post_datagrams(&q, (struct ibv_ah *[]) { ahs[OWN], NULL, ahs[OWN] }, 3) != 1)
		tb_fail("bad_wr is not the datagram that was refused");
	expect(build_datagram(&q, NULL), EINVAL, "no address, extended");
	tb_expect(q.scq, 0, IBV_WC_SUCCESS, "the datagram before");
	tb_expect(q.rcq, 0, IBV_WC_SUCCESS, "its receive");
	/* IBA C10-10: a completion in error, in order. */
	if (post_datagrams(&q, (struct ibv_ah *[]) { ahs[FOREIGN], ahs[OWN] }, 2) != 2)
		tb_fail("another PD's address was refused at once");
	tb_expect(q.scq, 0, IBV_WC_LOC_QP_OP_ERR, "another PD's address");
	tb_expect(q.scq, 1, IBV_WC_WR_FLUSH_ERR, "the datagram behind it");
	back_from_sqe(&q);
	expect(build_datagram(&q, ahs[FOREIGN]), 0, "another PD's address, extended");
	tb_expect(q.scq, 0, IBV_WC_LOC_QP_OP_ERR, "another PD's address, extended");
	back_from_sqe(&q);
	tb_expect_none(q.rcq, "what was refused");
	if (post_datagrams(&q, (struct ibv_ah *[]) { ahs[OWN], ahs[PARENT], ahs[IMPORTED] }, 3) != 3)
		tb_fail("an address of the QP's PD was refused");
	for (i = 0; i < 3; i++) {
		tb_expect(q.scq, i, IBV_WC_SUCCESS, "a datagram");
		tb_expect(q.rcq, 1 + i, IBV_WC_SUCCESS, "a receive");
	}
	expect(build_datagram(&q, ahs[PARENT]), 0, "an address of a parent domain, extended");
	tb_expect(q.scq, 0, IBV_WC_SUCCESS, "a datagram, extended");
	tb_expect(q.rcq, 4, IBV_WC_SUCCESS, "the last receive");
	tb_expect_none(q.scq, "what was refused");
	tb_expect_none(q.rcq, "what was refused");
	tb_qp_destroy(&q);
	for (i = 0; i < ARRAY_SIZE(pds); i++)
		expect(ibv_destroy_ah(ahs[i]), 0, "ibv_destroy_ah");
	ibv_unimport_pd(pds[IMPORTED]);
	expect(ibv_dealloc_pd(pds[PARENT]), 0, "the parent domain");
	expect(ibv_dealloc_pd(pds[FOREIGN]), 0, "the other PD");
}

/* A PD of another context with the same handle as that of the side: each context has its own numbers. */
static struct ibv_pd *pd_of_same_handle(struct tb_side *another)
{
	struct ibv_pd *pd = another->pd;

	while (pd && pd->handle < side.pd->handle)
		pd = ibv_alloc_pd(another->ctx);
	if (!pd || pd->handle != side.pd->handle)
		tb_die("a PD of the same handle");
	return pd;
}

/* The address of a multicast group, which needs no resolution. */
static struct ibv_ah *group_in(struct ibv_pd *pd)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1,
				    .grh = { .dgid = { .raw = { [10] = 0xff, 0xff, 239, 1, 2, 5 } },
					     .sgid_index = side.gid_index, .hop_limit = 64 } };
	struct ibv_ah *ah = ibv_create_ah(pd, &attr);

	if (!ah)
		tb_die("ibv_create_ah");
	return ah;
}

/* PDs of other contexts and devices differ, even with the same handle. PDs of an imported context do not. */
static void foreign_contexts(void)
{
	struct ibv_context *imported = ibv_import_device(dup(side.ctx->cmd_fd));
	struct ibv_pd *pd = imported ? ibv_import_pd(imported, side.pd->handle) : NULL;
	struct ibv_ah *own = address_in(pd), *foreign;
	struct tb_side again, *others[] = { &again, &other_side };
	struct tb_qp q;
	size_t i;

	tb_side_open(&again, ibv_get_device_name(side.ctx->device), side.gid_index, NULL);
	datagram_qp(&q);
	for (i = 0; i < ARRAY_SIZE(others); i++) {
		foreign = group_in(pd_of_same_handle(others[i]));
		if (post_datagrams(&q, &foreign, 1) != 1)
			tb_fail("another context's address was refused at once");
		tb_expect(q.scq, 0, IBV_WC_LOC_QP_OP_ERR, i ? "another device's address" : "another context's address");
		back_from_sqe(&q);
		expect(build_datagram(&q, foreign), 0, "another context's address, extended");
		tb_expect(q.scq, 0, IBV_WC_LOC_QP_OP_ERR, i ? "another device's, extended" : "another context's, extended");
		back_from_sqe(&q);
		expect(ibv_destroy_ah(foreign), 0, "ibv_destroy_ah");
	}
	if (post_datagrams(&q, &own, 1) != 1)
		tb_fail("an imported context's address was refused");
	tb_expect(q.scq, 0, IBV_WC_SUCCESS, "a datagram");
	tb_expect(q.rcq, 0, IBV_WC_SUCCESS, "its receive");
	expect(build_datagram(&q, own), 0, "an imported context's address, extended");
	tb_expect(q.scq, 0, IBV_WC_SUCCESS, "a datagram, extended");
	tb_expect(q.rcq, 1, IBV_WC_SUCCESS, "its receive");
	tb_qp_destroy(&q);
	expect(ibv_destroy_ah(own), 0, "ibv_destroy_ah");
	ibv_unimport_pd(pd);
	ibv_close_device(imported);
	ibv_close_device(again.ctx);
}

/* ------------------------------------------------------------------ */
/* Objects                                                              */

static int try_qp(struct ibv_cq *cq, struct ibv_qp_cap cap)
{
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .cap = cap, .qp_type = IBV_QPT_RC };
	struct ibv_qp *qp;

	errno = 0;
	qp = ibv_create_qp(side.pd, &init);
	if (!qp)
		return errno;
	if (init.cap.max_send_wr < cap.max_send_wr || init.cap.max_recv_wr < cap.max_recv_wr ||
	    init.cap.max_send_sge < cap.max_send_sge || init.cap.max_recv_sge < cap.max_recv_sge)
		tb_fail("the QP has less than was asked for");
	expect(ibv_destroy_qp(qp), 0, "ibv_destroy_qp");
	return 0;
}

static void queue_pairs(void)
{
	const struct ibv_qp_cap least = { 1, 1, 1, 1, 0 };
	const uint32_t wrs = dev.max_qp_wr, sges = dev.max_sge;
	struct ibv_cq *cq = ibv_create_cq(side.ctx, 16, NULL, NULL, 0);
	struct {
		uint32_t *field;
		uint32_t most;
		const char *what;
	} limits[4];
	struct ibv_qp_cap cap = least;
	size_t i;

	if (!cq)
		tb_die("ibv_create_cq");
	memcpy(limits, (typeof(limits)) {
		{ &cap.max_send_wr, wrs, "send requests" }, { &cap.max_recv_wr, wrs, "receives" },
		{ &cap.max_send_sge, sges, "SGEs of a request" }, { &cap.max_recv_sge, sges, "SGEs of a receive" },
	}, sizeof(limits));
	expect(try_qp(cq, (struct ibv_qp_cap) { 0 }), 0, "a QP with nothing");
	for (i = 0; i < ARRAY_SIZE(limits); i++) {
		cap = least;
		*limits[i].field = limits[i].most;
		expect(try_qp(cq, cap), 0, limits[i].what);
		*limits[i].field = limits[i].most + 1;
		expect(try_qp(cq, cap), EINVAL, limits[i].what);
		*limits[i].field = UINT32_MAX;
		expect(try_qp(cq, cap), EINVAL, limits[i].what);
	}
	cap = least;
	cap.max_inline_data = 1U << 20;
	expect(try_qp(cq, cap), EINVAL, "a MiB of inline data");
	expect(ibv_destroy_cq(cq), 0, "ibv_destroy_cq");
}

/* Types of the kernel, types of other vendors, and invalid types. */
static void queue_pair_types(void)
{
	static const int none[] = { -1, 0, 1, 5, 6, 7, 11, IBV_QPT_DRIVER, 256 };
	struct ibv_qp_init_attr init = { .send_cq = neighbour.a.scq, .recv_cq = neighbour.a.rcq,
					 .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_qp_init_attr_ex ex = { .send_cq = neighbour.a.scq, .recv_cq = neighbour.a.rcq,
					  .cap = { 1, 1, 1, 1, 0 }, .pd = side.pd,
					  .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(none); i++) {
		init.qp_type = none[i];
		errno = 0;
		if (ibv_create_qp(side.pd, &init))
			tb_fail("a QP of type %d was made", none[i]);
		expect(errno, EOPNOTSUPP, "ibv_create_qp");
		ex.qp_type = none[i];
		errno = 0;
		if (ibv_create_qp_ex(side.ctx, &ex))
			tb_fail("an extended QP of type %d was made", none[i]);
		expect(errno, EOPNOTSUPP, "ibv_create_qp_ex");
	}
}

static int try_cq(int entries, int vector)
{
	struct ibv_cq *cq;

	errno = 0;
	cq = ibv_create_cq(side.ctx, entries, NULL, NULL, vector);
	if (!cq)
		return errno;
	if (cq->cqe < entries)
		tb_fail("a CQ of %d entries has %d", entries, cq->cqe);
	expect(ibv_destroy_cq(cq), 0, "ibv_destroy_cq");
	return 0;
}

static void completion_queues(void)
{
	struct ibv_cq *cq = ibv_create_cq(side.ctx, 16, NULL, NULL, 0);
	int before;

	if (!cq)
		tb_die("ibv_create_cq");
	expect(try_cq(1, 0), 0, "a CQ of one entry");
	expect(try_cq(dev.max_cqe, 0), 0, "the largest CQ");
	expect(try_cq(dev.max_cqe + 1, 0), EINVAL, "one entry more");
	expect(try_cq(0, 0), EINVAL, "a CQ of nothing");
	expect(try_cq(-1, 0), EINVAL, "a CQ of -1");
	expect(try_cq(16, side.ctx->num_comp_vectors - 1), 0, "the last vector");
	expect(try_cq(16, side.ctx->num_comp_vectors), EINVAL, "one vector more");
	expect(try_cq(16, -1), EINVAL, "vector -1");
	before = cq->cqe;
	expect(ibv_resize_cq(cq, 0), EINVAL, "resized to nothing");
	expect(ibv_resize_cq(cq, dev.max_cqe + 1), EINVAL, "resized to one more than the most");
	if (cq->cqe != before)
		tb_fail("the CQ of %d entries has %d after what was refused", before, cq->cqe);
	expect(ibv_resize_cq(cq, dev.max_cqe), 0, "resized to the most");
	expect(ibv_destroy_cq(cq), 0, "ibv_destroy_cq");
}

static int try_mr(void *address, size_t bytes, unsigned int access)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_mr(side.pd, address, bytes, access);
	if (!mr)
		return errno;
	expect(ibv_dereg_mr(mr), 0, "ibv_dereg_mr");
	return 0;
}

static void *map(size_t bytes, int protection)
{
	void *memory = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		tb_die("mmap");
	return memory;
}

static void regions(void)
{
	const size_t bytes = 65536;
	void *writable = map(bytes, PROT_READ | PROT_WRITE);
	void *constant = map(bytes, PROT_READ);
	void *gone = map(bytes, PROT_READ);

	if (munmap(gone, bytes))
		tb_die("munmap");
	expect(try_mr(writable, 1, 0), 0, "one byte");
	expect(try_mr(writable, 0, 0), 0, "nothing");
	expect(try_mr(gone, 0, 0), 0, "nothing, of what is not there");
	expect(try_mr(writable, 0, IBV_ACCESS_REMOTE_WRITE), EINVAL, "nothing, with rights that cannot be");
	expect(try_mr(writable, SIZE_MAX, 0), EINVAL, "more than there are addresses");
	expect(try_mr(gone, bytes, 0), EFAULT, "what is not there");
	expect(try_mr(constant, bytes, 0), 0, "to be read only");
	expect(try_mr(constant, bytes, IBV_ACCESS_LOCAL_WRITE), EFAULT, "to be written, where nobody may write");
	expect(try_mr(writable, bytes, IBV_ACCESS_REMOTE_WRITE), EINVAL, "REMOTE_WRITE without LOCAL_WRITE");
	expect(try_mr(writable, bytes, IBV_ACCESS_REMOTE_ATOMIC), EINVAL, "REMOTE_ATOMIC without LOCAL_WRITE");
	if (!try_mr(writable, bytes, 1U << 19))
		tb_fail("an undefined access right was granted");
	munmap(writable, bytes);
	munmap(constant, bytes);
}

static void *make_region(struct ibv_pd *pd)
{
	static uint8_t memory[64];

	return ibv_reg_mr(pd, memory, sizeof(memory), 0);
}

static void *make_window(struct ibv_pd *pd)
{
	return ibv_alloc_mw(pd, IBV_MW_TYPE_2);
}

static void *make_srq(struct ibv_pd *pd)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 1, .max_sge = 1 } };

	return ibv_create_srq(pd, &init);
}

static void *make_qp(struct ibv_pd *pd)
{
	struct ibv_qp_init_attr init = { .send_cq = neighbour.a.scq, .recv_cq = neighbour.a.rcq,
					 .cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC };

	return ibv_create_qp(pd, &init);
}

/* Addresses of a neighbour, which the kernel resolves, and of a group, whose GID determines the MAC. */
static void *make_address(struct ibv_pd *pd)
{
	return address_in(pd);
}

static void *make_group_address(struct ibv_pd *pd)
{
	struct ibv_ah_attr attr = rtr_attr(&neighbour.a).ah_attr;

	attr.grh.dgid = (union ibv_gid) { .raw = { [10] = 0xff, 0xff, 239, 1, 2, 3 } };
	return ibv_create_ah(pd, &attr);
}

static void *make_parent(struct ibv_pd *pd)
{
	struct ibv_parent_domain_init_attr attr = { .pd = pd };

	return ibv_alloc_parent_domain(side.ctx, &attr);
}

static int destroy_region(void *region)		{ return ibv_dereg_mr(region); }
static int destroy_window(void *window)		{ return ibv_dealloc_mw(window); }
static int destroy_srq(void *srq)		{ return ibv_destroy_srq(srq); }
static int destroy_qp(void *qp)			{ return ibv_destroy_qp(qp); }
static int destroy_address(void *ah)		{ return ibv_destroy_ah(ah); }
static int destroy_parent(void *pd)		{ return ibv_dealloc_pd(pd); }

static const struct pd_user {
	const char *what;
	void *(*make)(struct ibv_pd *pd);
	int (*destroy)(void *object);
	bool in_parent;		/* a parent domain also counts it */
} pd_users[] = {
	{ "a PD with a region", make_region, destroy_region, false },
	{ "a PD with a window", make_window, destroy_window, false },
	{ "a PD with an SRQ", make_srq, destroy_srq, true },
	{ "a PD with a QP", make_qp, destroy_qp, true },
	{ "a PD with an address", make_address, destroy_address, true },
	{ "a PD with the address of a group", make_group_address, destroy_address, true },
	{ "a PD with a parent domain", make_parent, destroy_parent, false },
};

static void held_by(const struct pd_user *user, struct ibv_pd *pd)
{
	void *object = pd ? user->make(pd) : NULL;

	if (!object)
		tb_die("%s", user->what);
	expect(ibv_dealloc_pd(pd), EBUSY, user->what);
	expect(user->destroy(object), 0, user->what);
	expect(ibv_dealloc_pd(pd), 0, user->what);
}

/* An object in use cannot be destroyed, and still works. */
static void in_use(void)
{
	struct tb_opts opts = tb_pair_defaults();
	struct ibv_pd *pd;
	struct tb_pair p;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(pd_users); i++) {
		pd = ibv_alloc_pd(side.ctx);
		if (pd && pd_users[i].in_parent)
			held_by(&pd_users[i], make_parent(pd));
		held_by(&pd_users[i], pd);
	}
	tb_pair_create(&p, &side, &side, &opts);
	expect(ibv_dealloc_pd(side.pd), EBUSY, "the PD of QPs at work");
	expect(ibv_destroy_cq(p.a.scq), EBUSY, "a CQ of a send queue");
	expect(ibv_destroy_cq(p.b.rcq), EBUSY, "a CQ of a receive queue");
	tb_check_traffic(&p, "the same QP");
	tb_pair_destroy(&p);
}

/* ------------------------------------------------------------------ */
/* Attributes                                                           */

struct wrong_value {
	const char *what;
	void (*set)(struct ibv_qp_attr *attr);
	int error;
	int more;	/* attributes in addition to those of the transition */
};

static void port_0(struct ibv_qp_attr *a)	{ a->port_num = 0; }
static void port_2(struct ibv_qp_attr *a)	{ a->port_num = 2; }
static void pkey_1(struct ibv_qp_attr *a)	{ a->pkey_index = 1; }
static void qkey(struct ibv_qp_attr *a)		{ a->qkey = 1; }

static void mtu_0(struct ibv_qp_attr *a)	{ a->path_mtu = 0; }
static void mtu_8192(struct ibv_qp_attr *a)	{ a->path_mtu = IBV_MTU_4096 + 1; }
static void qpn(struct ibv_qp_attr *a)		{ a->dest_qp_num = 1U << 24; }
static void responders(struct ibv_qp_attr *a)	{ a->max_dest_rd_atomic = dev.max_qp_rd_atom + 1; }
static void rnr_timer(struct ibv_qp_attr *a)	{ a->min_rnr_timer = 32; }
static void no_grh(struct ibv_qp_attr *a)	{ a->ah_attr.is_global = 0; }
static void ah_port_0(struct ibv_qp_attr *a)	{ a->ah_attr.port_num = 0; }
static void ah_port_2(struct ibv_qp_attr *a)	{ a->ah_attr.port_num = 2; }
static void sgid(struct ibv_qp_attr *a)		{ a->ah_attr.grh.sgid_index = 255; }
static void rate_1(struct ibv_qp_attr *a)	{ a->ah_attr.static_rate = 1; }
static void rate_25(struct ibv_qp_attr *a)	{ a->ah_attr.static_rate = 25; }
static void alternate(struct ibv_qp_attr *a)	{ a->alt_ah_attr = a->ah_attr; a->alt_port_num = 1; }

static void timeout(struct ibv_qp_attr *a)	{ a->timeout = 32; }
static void retries(struct ibv_qp_attr *a)	{ a->retry_cnt = 8; }
static void rnr_retries(struct ibv_qp_attr *a)	{ a->rnr_retry = 8; }
static void initiators(struct ibv_qp_attr *a)	{ a->max_rd_atomic = dev.max_qp_init_rd_atom + 1; }

static const struct wrong_value to_init[] = {
	{ .what = "port 0", port_0, EINVAL }, { .what = "port 2", port_2, EINVAL },
	{ .what = "P_Key index 1", pkey_1, EINVAL }, { .what = "a Q_Key of an RC QP", qkey, EINVAL, IBV_QP_QKEY },
};

static const struct wrong_value to_rtr[] = {
	{ .what = "path MTU 0", mtu_0, EINVAL }, { .what = "path MTU 8192", mtu_8192, EINVAL },
	{ .what = "QPN of 25 bits", qpn, EINVAL }, { .what = "too many responders", responders, EINVAL },
	{ .what = "RNR timer 32", rnr_timer, EINVAL }, { .what = "no GRH", no_grh, EINVAL },
	{ .what = "port 0 of a path", ah_port_0, EINVAL }, { .what = "port 2 of a path", ah_port_2, EINVAL },
	{ .what = "GID index 255", sgid, EINVAL }, { .what = "static rate 1", rate_1, EINVAL },
	{ .what = "static rate 25", rate_25, EINVAL },
};

static const struct wrong_value to_rts[] = {
	{ .what = "timeout 32", timeout, EINVAL }, { .what = "8 retries", retries, EINVAL },
	{ .what = "8 RNR retries", rnr_retries, EINVAL }, { .what = "too many initiators", initiators, EINVAL },
};

/* Each wrong value is refused, and afterwards the right values are accepted. */
static void step(struct tb_qp *q, struct ibv_qp_attr right, int mask, const struct wrong_value *wrong, size_t count)
{
	struct ibv_qp_attr now, attr;
	struct ibv_qp_init_attr init;
	enum ibv_qp_state before;
	size_t i;

	expect(ibv_query_qp(q->qp, &now, IBV_QP_STATE, &init), 0, "ibv_query_qp");
	before = now.qp_state;
	for (i = 0; i < count; i++) {
		attr = right;
		wrong[i].set(&attr);
		expect(ibv_modify_qp(q->qp, &attr, mask | wrong[i].more), wrong[i].error, wrong[i].what);
		tb_expect_state(q, before, wrong[i].what);
	}
	for (i = 0; i < 32; i++) {
		if (!(mask & 1 << i) || 1 << i == IBV_QP_STATE)
			continue;
		attr = right;
		expect(ibv_modify_qp(q->qp, &attr, mask & ~(1 << i)), EINVAL, "one attribute missing");
		tb_expect_state(q, before, "one attribute missing");
	}
	attr = right;
	expect(ibv_modify_qp(q->qp, &attr, mask), 0, "the right values");
	tb_expect_state(q, right.qp_state, "the right values");
}

static void attributes(void)
{
	struct tb_opts opts = tb_pair_defaults();
	struct ibv_qp_attr attr;
	struct tb_qp q;

	tb_qp_create(&q, &side, IBV_QPT_RC, &opts);
	step(&q, init_attr(), INIT_MASK, to_init, ARRAY_SIZE(to_init));
	step(&q, rtr_attr(&q), RTR_MASK, to_rtr, ARRAY_SIZE(to_rtr));
	step(&q, rts_attr(), RTS_MASK, to_rts, ARRAY_SIZE(to_rts));
	/* ib_core does not support alternate paths on Ethernet. */
	attr = rtr_attr(&q);
	alternate(&attr);
	expect(ibv_modify_qp(q.qp, &attr, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE), EINVAL, "an alternate path");
	expect(post_recv(&q, 1), 0, "a receive");
	expect(post_send(&q, &q, IBV_WR_SEND, 8, 0), 0, "a send");
	tb_expect(q.scq, 1, IBV_WC_SUCCESS, "the send");
	tb_expect(q.rcq, 1, IBV_WC_SUCCESS, "the receive");
	tb_qp_destroy(&q);
}

static int try_ah(struct ibv_ah_attr attr)
{
	struct ibv_ah *ah;

	errno = 0;
	ah = ibv_create_ah(side.pd, &attr);
	if (!ah)
		return errno;
	expect(ibv_destroy_ah(ah), 0, "ibv_destroy_ah");
	return 0;
}

static void addresses(void)
{
	const struct ibv_qp_attr right = rtr_attr(&neighbour.a);
	struct ibv_ah_attr attr = right.ah_attr;

	expect(try_ah(attr), 0, "an address");
	attr.is_global = 0;
	expect(try_ah(attr), EINVAL, "an address without a GRH");
	attr = right.ah_attr;
	attr.port_num = 0;
	expect(try_ah(attr), EINVAL, "an address at port 0");
	attr.port_num = 2;
	expect(try_ah(attr), EINVAL, "an address at port 2");
	attr = right.ah_attr;
	attr.grh.sgid_index = 255;
	expect(try_ah(attr), EINVAL, "an address from GID 255");
	attr = right.ah_attr;
	attr.static_rate = 1;
	expect(try_ah(attr), EINVAL, "an address with static rate 1");
	attr.static_rate = IBV_RATE_1200_GBPS + 1;
	expect(try_ah(attr), EINVAL, "an address with static rate 25");
	attr.static_rate = IBV_RATE_1200_GBPS;
	expect(try_ah(attr), 0, "an address with the highest static rate");
	attr = right.ah_attr;
	memset(&attr.grh.dgid, 0, sizeof(attr.grh.dgid));
	if (!try_ah(attr))
		tb_fail("an address of nobody was made");
}

static void queries(void)
{
	struct ibv_port_attr port;
	union ibv_gid gid;
	__be16 pkey;

	expect(ibv_query_port(side.ctx, 0, &port), EINVAL, "port 0");
	expect(ibv_query_port(side.ctx, 2, &port), EINVAL, "port 2");
	expect(ibv_query_port(side.ctx, 1, &port), 0, "port 1");
	if (ibv_query_gid(side.ctx, 1, port.gid_tbl_len - 1, &gid) ||
	    !ibv_query_gid(side.ctx, 1, port.gid_tbl_len, &gid))
		tb_fail("GIDs do not end at %d", port.gid_tbl_len);
	if (ibv_query_pkey(side.ctx, 1, port.pkey_tbl_len - 1, &pkey) ||
	    !ibv_query_pkey(side.ctx, 1, port.pkey_tbl_len, &pkey))
		tb_fail("P_Keys do not end at %d", port.pkey_tbl_len);
}

/* The device has no enhanced connection establishment: the errno is the one that the CM expects. */
static void no_ece(void)
{
	struct ibv_ece ece = { .vendor_id = 1 };

	expect(ibv_query_ece(neighbour.a.qp, &ece), EOPNOTSUPP, "ibv_query_ece");
	ece.vendor_id = 1;
	expect(ibv_set_ece(neighbour.a.qp, &ece), EOPNOTSUPP, "ibv_set_ece");
	if (ibv_query_qp_data_in_order(neighbour.a.qp, IBV_WR_RDMA_WRITE, 0))
		tb_fail("data are promised to be written in order");
}

static void check_neighbour(void)
{
	tb_check_traffic(&neighbour, "the neighbour");
}

static const struct tb_case cases[] = {
	{ "posted in RESET, INIT and RTR", posted_early },
	{ "posted in SQD", drained },
	{ "receive queue full, receive of too many SGEs", receive_queue },
	{ "inline data and atomics of wrong shapes", shapes },
	{ "requests of the most SGEs and one more", send_sges },
	{ "datagrams to addresses of other PDs", foreign_addresses },
	{ "datagrams to addresses of other contexts' PDs", foreign_contexts },
	{ "READ, WRITE and atomics of a UD QP", no_datagrams },
	{ "READ and atomics of a UC QP", no_uc },
	{ "QPs of the most and one more", queue_pairs },
	{ "QPs of unknown types", queue_pair_types },
	{ "CQs of the most and one more", completion_queues },
	{ "regions that cannot be", regions },
	{ "PDs and CQs in use", in_use },
	{ "QP attributes wrong or missing", attributes },
	{ "invalid addresses", addresses },
	{ "ports, GIDs and P_Keys that do not exist", queries },
	{ "ECE and order of data, which are not supported", no_ece },
};

int main(int argc, char **argv)
{
	struct tb_opts opts = tb_pair_defaults();
	int status;

	if (argc < 6) {
		fprintf(stderr, "usage: badcalls DEVICE GID-INDEX OTHER-DEVICE GID-INDEX NETNS [CASE...]\n");
		return 2;
	}
	tb_side_open(&side, argv[1], atoi(argv[2]), NULL);
	tb_side_open(&other_side, argv[3], atoi(argv[4]), argv[5]);
	if (ibv_query_device(side.ctx, &dev))
		tb_die("ibv_query_device");
	tb_pair_create(&neighbour, &side, &side, &opts);
	status = tb_run(cases, ARRAY_SIZE(cases), argc - 6, argv + 6, check_neighbour);
	tb_pair_destroy(&neighbour);
	return status;
}
