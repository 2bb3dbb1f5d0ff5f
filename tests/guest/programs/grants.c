// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The sizes that queues are granted for requested sizes (docs/reference/verbs.md):
 * for each request the exact values, the same from a query as from the creation.
 * All granted SGEs, bytes and requests are accepted, and one more is refused.
 *
 * grants DEVICE GID-INDEX [CASE...]
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "testbed.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define QKEY		0x4711
#define SGES_MAX	64
#define PIECE		8	/* bytes of an SGE */
/* A data unit of a WQE, and the bytes before inline data in the first (reference, 5.1). */
#define UNIT		16
#define INLINE_WORD	4

static struct tb_side side;
static struct ibv_device_attr dev;

static void expect(int error, int wanted, const char *what, uint32_t ask)
{
	if (error != wanted)
		tb_fail("%s, %u asked for: %s, expected %s", what, ask, strerror(error), strerror(wanted));
}

static void expect_number(uint32_t number, uint32_t wanted, const char *what, uint32_t ask)
{
	if (number != wanted)
		tb_fail("%s, %u asked for: %u, expected %u", what, ask, number, wanted);
}

static uint32_t max_of(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* The smallest power of two of at least n. */
static uint32_t power_of_two(uint32_t n)
{
	uint32_t power = 1;

	while (power < n)
		power *= 2;
	return power;
}

/* ------------------------------------------------------------------ */
/* A QP connected to itself, of any requested size                      */

struct own {
	struct tb_qp q;
	struct ibv_qp_cap cap;
	struct ibv_ah *ah;
	/* Only of an XRC initiator. */
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;
	struct ibv_qp *target;
	uint32_t srqn;
};

/* Sends are posted through struct ibv_qp_ex. */
static bool extended;

/* UC, XRC initiators and XRC targets have other attributes than RC.  A target does not send. */
static void connect_to(struct ibv_qp *qp, uint32_t dest_qpn)
{
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR, .path_mtu = side.mtu, .dest_qp_num = dest_qpn,
				   .max_dest_rd_atomic = 1, .min_rnr_timer = 1,
				   .ah_attr = { .is_global = 1, .port_num = 1,
						.grh = { .dgid = side.gid, .sgid_index = side.gid_index,
							 .hop_limit = 64 } } };
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
				   .max_rd_atomic = 1 };
	bool target = qp->qp_type == IBV_QPT_XRC_RECV, initiator = qp->qp_type == IBV_QPT_XRC_SEND;

	if (ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ||
	    ibv_modify_qp(qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			  (target ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)) ||
	    (!target && ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN | (initiator ? IBV_QP_TIMEOUT |
				      IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0))))
		tb_die("connecting a QP of type %d", qp->qp_type);
}

/* It sends to a target, whose SRQ determines the PD of the written memory. */
static void connect_xrc(struct own *o)
{
	struct ibv_xrcd_init_attr domain = { .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1,
					     .oflags = O_CREAT };
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 1, .max_sge = 1 }, .srq_type = IBV_SRQT_XRC, .pd = side.pd, .cq = o->q.rcq,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ,
	};
	struct ibv_qp_init_attr_ex target = { .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD };

	o->xrcd = target.xrcd = init.xrcd = ibv_open_xrcd(side.ctx, &domain);
	if (!o->xrcd)
		tb_die("ibv_open_xrcd");
	o->srq = ibv_create_srq_ex(side.ctx, &init);
	o->target = ibv_create_qp_ex(side.ctx, &target);
	if (!o->srq || !o->target || ibv_get_srq_num(o->srq, &o->srqn))
		tb_die("creating an XRC SRQ and a target");
	connect_to(o->target, o->q.qp->qp_num);
	connect_to(o->q.qp, o->target->qp_num);
}

/* It sends the same frame repeatedly, to no receiver: only the length is checked. */
static void start_raw(struct tb_qp *q)
{
	static const uint8_t header[] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5 };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	memcpy(q->buf, header, sizeof(header));
	if (ibv_modify_qp(q->qp, &attr, IBV_QP_STATE | IBV_QP_PORT))
		tb_die("a raw QP to INIT");
	for (attr.qp_state = IBV_QPS_RTR; attr.qp_state <= IBV_QPS_RTS; attr.qp_state++)
		if (ibv_modify_qp(q->qp, &attr, IBV_QP_STATE))
			tb_die("a raw QP to RTR and RTS");
}

static void own_start(struct own *o)
{
	struct ibv_ah_attr address = { .is_global = 1, .port_num = 1,
				       .grh = { .dgid = side.gid, .sgid_index = side.gid_index, .hop_limit = 64 } };
	struct tb_opts opts = tb_pair_defaults();

	switch (o->q.qp->qp_type) {
	case IBV_QPT_UD:
		tb_ud_start(&o->q, QKEY);
		o->ah = ibv_create_ah(side.pd, &address);
		if (!o->ah)
			tb_die("ibv_create_ah");
		break;
	case IBV_QPT_UC:
		connect_to(o->q.qp, o->q.qp->qp_num);
		break;
	case IBV_QPT_XRC_SEND:
		connect_xrc(o);
		break;
	case IBV_QPT_RAW_PACKET:
		start_raw(&o->q);
		break;
	default:
		tb_qp_connect(&o->q, &o->q, &opts, opts.qp_access, 0);
	}
}

static bool is_datagram(enum ibv_qp_type type)
{
	return type == IBV_QPT_UD || type == IBV_QPT_RAW_PACKET;
}

static void own_open(struct own *o, enum ibv_qp_type type, struct ibv_qp_cap cap)
{
	struct ibv_qp_init_attr_ex init = {
		.cap = cap, .qp_type = type, .sq_sig_all = 1, .pd = side.pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | (extended ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
		.send_ops_flags = is_datagram(type) ? IBV_QP_EX_WITH_SEND : IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct tb_opts opts = tb_pair_defaults();

	memset(o, 0, sizeof(*o));
	/* Use its CQs, buffer and region; the QP itself is replaced. */
	tb_qp_create(&o->q, &side, IBV_QPT_RC, &opts);
	if (ibv_destroy_qp(o->q.qp))
		tb_die("ibv_destroy_qp");
	init.send_cq = o->q.scq;
	init.recv_cq = o->q.rcq;
	o->q.qp = ibv_create_qp_ex(side.ctx, &init);
	if (!o->q.qp)
		tb_die("creating a QP of type %d", type);
	o->cap = init.cap;
	own_start(o);
}

static void own_close(struct own *o)
{
	if (o->ah && ibv_destroy_ah(o->ah))
		tb_die("ibv_destroy_ah");
	if (o->xrcd && (ibv_destroy_qp(o->target) || ibv_destroy_srq(o->srq) || ibv_close_xrcd(o->xrcd)))
		tb_die("taking down a target and its SRQ");
	tb_qp_destroy(&o->q);
}

static int build(struct own *o, const struct ibv_send_wr *wr)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(o->q.qp);
	struct ibv_data_buf bufs[SGES_MAX];
	int i;

	for (i = 0; i < wr->num_sge; i++)
		bufs[i] = (struct ibv_data_buf) { (void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length };
	ibv_wr_start(ex);
	ex->wr_id = wr->wr_id;
	ex->wr_flags = 0;
	if (wr->opcode == IBV_WR_SEND)
		ibv_wr_send(ex);
	else
		ibv_wr_rdma_write(ex, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
	if (o->ah)
		ibv_wr_set_ud_addr(ex, wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
	if (o->target)
		ibv_wr_set_xrc_srqn(ex, wr->qp_type.xrc.remote_srqn);
	if (wr->send_flags & IBV_SEND_INLINE)
		ibv_wr_set_inline_data_list(ex, wr->num_sge, bufs);
	else
		ibv_wr_set_sge_list(ex, wr->num_sge, wr->sg_list);
	return ibv_wr_complete(ex);
}

static int own_send(struct own *o, struct ibv_sge *sges, uint32_t num_sge, unsigned int flags)
{
	struct ibv_send_wr wr = { .wr_id = 1, .sg_list = sges, .num_sge = num_sge, .send_flags = flags }, *bad = NULL;
	int error;

	if (is_datagram(o->q.qp->qp_type)) {
		wr.opcode = IBV_WR_SEND;
		wr.wr.ud.ah = o->ah;
		wr.wr.ud.remote_qpn = o->q.qp->qp_num;
		wr.wr.ud.remote_qkey = QKEY;
	} else {
		wr.opcode = IBV_WR_RDMA_WRITE;
		wr.wr.rdma.remote_addr = (uintptr_t)o->q.buf + TB_BUF_BYTES / 2;
		wr.wr.rdma.rkey = o->q.mr->rkey;
		wr.qp_type.xrc.remote_srqn = o->srqn;
	}
	if (extended)
		return build(o, &wr);
	error = ibv_post_send(o->q.qp, &wr, &bad);
	if (error && bad != &wr)
		tb_fail("bad_wr is not the request that was refused");
	return error;
}

/* Only the first is long enough for the header of a frame. */
static void fill_sges(const struct tb_qp *q, struct ibv_sge *sges)
{
	uint32_t i;

	for (i = 0; i < SGES_MAX; i++)
		sges[i] = (struct ibv_sge) { (uintptr_t)q->buf + PIECE * i, i ? PIECE : 2 * PIECE, q->mr->lkey };
}

static void take_sends(struct own *o, uint32_t ask)
{
	/* struct ibv_qp_ex does not count pieces of inline data as SGEs: only their bytes count. */
	const bool pieces = extended && PIECE * (o->cap.max_send_sge + 2) <= o->cap.max_inline_data;
	struct ibv_sge sges[SGES_MAX], data;

	fill_sges(&o->q, sges);
	expect(own_send(o, sges, o->cap.max_send_sge + 1, 0), EINVAL, "one SGE more than granted", ask);
	expect(own_send(o, sges, o->cap.max_send_sge + 1, IBV_SEND_INLINE), pieces ? 0 : EINVAL,
	       "one SGE more than granted, inline", ask);
	if (pieces)
		tb_expect(o->q.scq, 1, IBV_WC_SUCCESS, "one SGE more than granted, inline");
	expect(own_send(o, sges, o->cap.max_send_sge, 0), 0, "the SGEs that are granted", ask);
	tb_expect(o->q.scq, 1, IBV_WC_SUCCESS, "the SGEs that are granted");
	if (!o->cap.max_send_sge)
		return;
	data = (struct ibv_sge) { (uintptr_t)o->q.buf, o->cap.max_inline_data + 1, 0 };
	expect(own_send(o, &data, 1, IBV_SEND_INLINE), EINVAL, "a byte more inline than granted", ask);
	data.length--;
	expect(own_send(o, &data, 1, IBV_SEND_INLINE), 0, "the inline data that is granted", ask);
	tb_expect(o->q.scq, 1, IBV_WC_SUCCESS, "the inline data that is granted");
	tb_expect_none(o->q.scq, "what was refused");
}

static int own_receive(struct own *o, struct ibv_sge *sges, uint32_t num_sge)
{
	struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = sges, .num_sge = num_sge }, *bad = NULL;
	int error = ibv_post_recv(o->q.qp, &wr, &bad);

	if (error && bad != &wr)
		tb_fail("bad_wr is not the receive that was refused");
	return error;
}

static void expect_same(const struct own *o)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(o->q.qp, &attr, IBV_QP_CAP, &init))
		tb_die("ibv_query_qp");
	if (memcmp(&attr.cap, &o->cap, sizeof(o->cap)) || memcmp(&init.cap, &o->cap, sizeof(o->cap)))
		tb_fail("a query says something else than the creation");
}

/* ------------------------------------------------------------------ */
/* QPs                                                                  */

static const enum ibv_qp_type types[] = {
	IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND, IBV_QPT_RAW_PACKET,
};

static void sges_of_type(enum ibv_qp_type type)
{
	const bool receives = type != IBV_QPT_XRC_SEND;
	struct ibv_sge sges[SGES_MAX];
	struct own o;
	uint32_t ask;

	/* A frame cannot have 0 bytes. */
	for (ask = type == IBV_QPT_RAW_PACKET; ask <= (uint32_t)dev.max_sge && !tb_failed(); ask++) {
		own_open(&o, type, (struct ibv_qp_cap) { 4, 4, ask, ask, 0 });
		expect_number(o.cap.max_send_sge, ask, "SGEs of a send", ask);
		expect_number(o.cap.max_recv_sge, receives ? max_of(ask, 1) : 0, "SGEs of a receive", ask);
		expect_number(o.cap.max_inline_data, ask ? max_of(ask, 2) * UNIT - INLINE_WORD : 0, "inline data", ask);
		expect_same(&o);
		take_sends(&o, ask);
		fill_sges(&o.q, sges);
		expect(own_receive(&o, sges, o.cap.max_recv_sge + 1), EINVAL, "one SGE more, received", ask);
		expect(own_receive(&o, sges, o.cap.max_recv_sge), receives ? 0 : EINVAL,
		       "the SGEs that are granted, received", ask);
		own_close(&o);
	}
}

static void queue_pair_sges(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(types); i++)
		sges_of_type(types[i]);
}

/* The next multiple of a unit for each request, at least two units, less the word before the data. */
static void queue_pair_inline(void)
{
	static const uint32_t asks[] = { 1, 11, 12, 13, 27, 28, 29, 60, 61, 64, 100, 124, 125, 220, 256, 512, 900 };
	struct own o;
	size_t i, j;

	for (i = 0; i < ARRAY_SIZE(types); i++)
		for (j = 0; j < ARRAY_SIZE(asks) && !tb_failed(); j++) {
			uint32_t units = max_of((asks[j] + INLINE_WORD + UNIT - 1) / UNIT, 2);

			own_open(&o, types[i], (struct ibv_qp_cap) { 4, 4, 1, 1, asks[j] });
			expect_number(o.cap.max_send_sge, 1, "SGEs beside inline data", asks[j]);
			expect_number(o.cap.max_inline_data, units * UNIT - INLINE_WORD, "inline data", asks[j]);
			expect_same(&o);
			take_sends(&o, asks[j]);
			own_close(&o);
		}
}

static const uint32_t depths[] = { 1, 2, 3, 4, 5, 31, 32, 33, 1000 };

/* Powers of two; a send queue has at least two. All requests are accepted, and one more is ENOMEM. */
static void queue_pair_depths(void)
{
	struct ibv_sge sges[SGES_MAX];
	struct own o;
	uint32_t n;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(depths) && !tb_failed(); i++) {
		const uint32_t ask = depths[i];

		own_open(&o, IBV_QPT_RC, (struct ibv_qp_cap) { ask, ask, 1, 1, 0 });
		expect_number(o.cap.max_send_wr, max_of(power_of_two(ask), 2), "requests of a send queue", ask);
		expect_number(o.cap.max_recv_wr, power_of_two(ask), "requests of a receive queue", ask);
		expect_same(&o);
		fill_sges(&o.q, sges);
		for (n = 0; n < o.cap.max_recv_wr && !own_receive(&o, sges, 1); n++)
			;
		expect_number(n, o.cap.max_recv_wr, "receives posted", ask);
		expect(own_receive(&o, sges, 1), ENOMEM, "one receive more", ask);
		/* The CQ of the sends has 64 entries. */
		for (n = 0; ask <= 32 && n < o.cap.max_send_wr && !own_send(&o, sges, 1, 0); n++)
			;
		if (ask <= 32) {
			expect_number(n, o.cap.max_send_wr, "sends posted", ask);
			expect(own_send(&o, sges, 1, 0), ENOMEM, "one send more", ask);
		}
		own_close(&o);
	}
}

/* Nothing is requested: the QP has no queues and no capabilities. */
static void queue_pair_of_nothing(void)
{
	static const struct ibv_qp_cap nothing;
	struct ibv_sge sges[SGES_MAX];
	struct own o;

	own_open(&o, IBV_QPT_RC, nothing);
	if (memcmp(&o.cap, &nothing, sizeof(nothing)))
		tb_fail("something is granted where nothing was asked for");
	expect_same(&o);
	fill_sges(&o.q, sges);
	expect(own_send(&o, sges, 0, 0), ENOMEM, "a send without a queue", 0);
	expect(own_receive(&o, sges, 0), ENOMEM, "a receive without a queue", 0);
	own_close(&o);
}

/* The same through struct ibv_qp_ex. */
static void in_extended(void (*run)(void))
{
	extended = true;
	run();
	extended = false;
}

static void extended_sges(void) { in_extended(queue_pair_sges); }
static void extended_inline(void) { in_extended(queue_pair_inline); }
static void extended_depths(void) { in_extended(queue_pair_depths); }

/* ------------------------------------------------------------------ */
/* Other queues                                                         */

static int srq_receive(struct ibv_srq *srq, uint32_t num_sge)
{
	struct ibv_sge sges[SGES_MAX] = { 0 };
	struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = sges, .num_sge = num_sge }, *bad = NULL;

	return ibv_post_srq_recv(srq, &wr, &bad);
}

/* A power of two less one, which stays free. */
static void shared_queues(void)
{
	struct ibv_srq_attr queried;
	struct ibv_srq *srq;
	uint32_t ask, n;
	size_t i;

	for (ask = 0; ask <= (uint32_t)dev.max_srq_sge && !tb_failed(); ask++) {
		struct ibv_srq_init_attr init = { .attr = { .max_wr = 3, .max_sge = ask } };

		srq = ibv_create_srq(side.pd, &init);
		if (!srq)
			tb_die("ibv_create_srq");
		expect_number(init.attr.max_sge, max_of(ask, 1), "SGEs of an SRQ", ask);
		expect(srq_receive(srq, init.attr.max_sge + 1), EINVAL, "one SGE more than granted", ask);
		expect(srq_receive(srq, init.attr.max_sge), 0, "the SGEs that are granted", ask);
		if (ibv_query_srq(srq, &queried))
			tb_die("ibv_query_srq");
		expect_number(queried.max_sge, init.attr.max_sge, "SGEs of an SRQ, queried", ask);
		expect(ibv_destroy_srq(srq), 0, "ibv_destroy_srq", ask);
	}
	for (i = 0; i < ARRAY_SIZE(depths) && !tb_failed(); i++) {
		struct ibv_srq_init_attr init = { .attr = { .max_wr = depths[i], .max_sge = 1 } };

		srq = ibv_create_srq(side.pd, &init);
		if (!srq)
			tb_die("ibv_create_srq");
		expect_number(init.attr.max_wr, power_of_two(depths[i] + 1) - 1, "requests of an SRQ", depths[i]);
		for (n = 0; n <= init.attr.max_wr && !srq_receive(srq, 1); n++)
			;
		expect_number(n, init.attr.max_wr, "receives posted", depths[i]);
		expect(srq_receive(srq, 1), ENOMEM, "one receive more", depths[i]);
		if (ibv_query_srq(srq, &queried))
			tb_die("ibv_query_srq");
		expect_number(queried.max_wr, init.attr.max_wr, "requests of an SRQ, queried", depths[i]);
		expect(ibv_destroy_srq(srq), 0, "ibv_destroy_srq", depths[i]);
	}
}

static int wq_receive(struct ibv_wq *wq, uint32_t num_sge)
{
	struct ibv_sge sges[SGES_MAX] = { 0 };
	struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = sges, .num_sge = num_sge }, *bad = NULL;

	return ibv_post_wq_recv(wq, &wr, &bad);
}

static void work_queue(struct ibv_cq *cq, uint32_t wrs, uint32_t sges)
{
	struct ibv_wq_init_attr init = { .wq_type = IBV_WQT_RQ, .max_wr = wrs, .max_sge = sges, .pd = side.pd,
					 .cq = cq };
	struct ibv_wq_attr ready = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY };
	struct ibv_wq *wq = ibv_create_wq(side.ctx, &init);
	uint32_t n;

	if (!wq)
		tb_die("ibv_create_wq");
	expect_number(init.max_wr, power_of_two(wrs), "requests of a WQ", wrs);
	expect_number(init.max_sge, max_of(sges, 1), "SGEs of a WQ", sges);
	expect(ibv_modify_wq(wq, &ready), 0, "a WQ to RDY", wrs);
	expect(wq_receive(wq, init.max_sge + 1), EINVAL, "one SGE more than granted", sges);
	for (n = 0; n <= init.max_wr && !wq_receive(wq, init.max_sge); n++)
		;
	expect_number(n, init.max_wr, "receives posted", wrs);
	expect(wq_receive(wq, 1), ENOMEM, "one receive more", wrs);
	expect(ibv_destroy_wq(wq), 0, "ibv_destroy_wq", wrs);
}

static void work_queues(void)
{
	struct ibv_cq *cq = ibv_create_cq(side.ctx, 1, NULL, NULL, 0);
	uint32_t sges;
	size_t i;

	if (!cq)
		tb_die("ibv_create_cq");
	for (i = 0; i < ARRAY_SIZE(depths) && !tb_failed(); i++)
		work_queue(cq, depths[i], 1);
	for (sges = 0; sges <= (uint32_t)dev.max_sge && !tb_failed(); sges++)
		work_queue(cq, 2, sges);
	expect(ibv_destroy_cq(cq), 0, "ibv_destroy_cq", 1);
}

/* A power of two less one, as with most adapters; also after a resize. */
static void completion_queues(void)
{
	struct ibv_cq *cq, *resized = ibv_create_cq(side.ctx, 1, NULL, NULL, 0);
	size_t i;

	if (!resized)
		tb_die("ibv_create_cq");
	for (i = 0; i < ARRAY_SIZE(depths) && !tb_failed(); i++) {
		cq = ibv_create_cq(side.ctx, depths[i], NULL, NULL, 0);
		if (!cq)
			tb_die("ibv_create_cq");
		expect_number(cq->cqe, power_of_two(depths[i] + 1) - 1, "entries of a CQ", depths[i]);
		expect(ibv_destroy_cq(cq), 0, "ibv_destroy_cq", depths[i]);
		expect(ibv_resize_cq(resized, depths[i]), 0, "ibv_resize_cq", depths[i]);
		expect_number(resized->cqe, power_of_two(depths[i] + 1) - 1, "entries of a resized CQ", depths[i]);
	}
	expect(ibv_destroy_cq(resized), 0, "ibv_destroy_cq", 1);
}

static const struct tb_case cases[] = {
	{ "SGEs of QPs", queue_pair_sges },
	{ "inline data of QPs", queue_pair_inline },
	{ "requests of QPs", queue_pair_depths },
	{ "a QP of nothing", queue_pair_of_nothing },
	{ "SGEs of QPs, extended", extended_sges },
	{ "inline data of QPs, extended", extended_inline },
	{ "requests of QPs, extended", extended_depths },
	{ "SRQs", shared_queues },
	{ "receive work queues", work_queues },
	{ "CQs", completion_queues },
};

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: grants DEVICE GID-INDEX [CASE...]\n");
		return 2;
	}
	tb_side_open(&side, argv[1], atoi(argv[2]), NULL);
	if (ibv_query_device(side.ctx, &dev))
		tb_die("ibv_query_device");
	if (dev.max_sge + 1 > SGES_MAX || dev.max_srq_sge + 1 > SGES_MAX)
		tb_die("%d SGEs are more than this program has", dev.max_sge);
	return tb_run(cases, ARRAY_SIZE(cases), argc - 3, argv + 3, NULL);
}
