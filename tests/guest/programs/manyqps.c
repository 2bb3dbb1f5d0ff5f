// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Ten thousand QPs, one after another and all at once, until their numbers are reused.
 * A number is not reused at once, no two QPs have the same number, and a QP gets no
 * completions or events of a previous QP.  On an HCA that sends to itself.
 *
 * manyqps DEVICE GID-INDEX [-- CASE...]
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "testbed.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define MANY		10000
#define FIRST_QPN	8		/* interface document, 4.1 */
#define QPNS		65536
#define CQ_ENTRIES	64
#define MESSAGE		100

static struct tb_side side;
static struct ibv_cq *cq;		/* of all QPs except the pairs */
static struct tb_pair bystander;	/* exists and works all the time */
static struct ibv_qp *qps[MANY];
static struct ibv_qp *owner[QPNS];	/* the QP with the number now */
static unsigned int made[QPNS];		/* when it was last assigned, counted from 1 */
static unsigned int created;

/* A QP of so many sends and without receives. */
static struct ibv_qp *make(int sends)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = sends, .max_send_sge = sends },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(side.pd, &init);

	if (!qp)
		tb_die("QP %u: %s", created, strerror(errno));
	return qp;
}

/* The number belongs to one QP, and at least MANY other numbers were assigned since its last use. */
static void enter(struct ibv_qp *qp)
{
	uint32_t qpn = qp->qp_num;

	if (qpn < FIRST_QPN || qpn >= QPNS)
		tb_die("QPN %#x is out of range", qpn);
	if (owner[qpn])
		tb_fail("QPN %#x has an owner already", qpn);
	created++;
	if (made[qpn] && created - made[qpn] <= MANY)
		tb_fail("QPN %#x comes back after %u others", qpn, created - made[qpn] - 1);
	made[qpn] = created;
	owner[qpn] = qp;
}

static void leave(struct ibv_qp *qp)
{
	owner[qp->qp_num] = NULL;
}

static void destroy(struct ibv_qp *qp)
{
	int error;

	leave(qp);
	error = ibv_destroy_qp(qp);
	if (error)
		tb_die("ibv_destroy_qp: %s", strerror(error));
}

static void make_pair(struct tb_pair *p, const struct tb_opts *opts)
{
	tb_pair_create(p, &side, &side, opts);
	enter(p->a.qp);
	enter(p->b.qp);
}

static void destroy_pair(struct tb_pair *p)
{
	leave(p->a.qp);
	leave(p->b.qp);
	tb_pair_destroy(p);
}

static void one_after_the_other(void)
{
	int i;

	for (i = 0; i < MANY && !tb_failed(); i++) {
		struct ibv_qp *qp = make(1);

		enter(qp);
		destroy(qp);
	}
	tb_check_traffic(&bystander, "a pair beside them");
}

/* MANY QPs at a time, destroyed in another order than created. */
static void make_all(int sends)
{
	int i;

	for (i = 0; i < MANY; i++) {
		qps[i] = make(sends);
		enter(qps[i]);
	}
}

static void destroy_all(void)
{
	int i;

	for (i = 0; i < MANY; i += 2)
		destroy(qps[i]);
	for (i = MANY - 1; i > 0; i -= 2)
		destroy(qps[i]);
}

static void all_at_once(void)
{
	struct tb_opts opts = tb_pair_defaults();
	struct tb_pair last;

	make_all(1);
	make_pair(&last, &opts);
	tb_check_traffic(&last, "the last pair of them");
	tb_check_traffic(&bystander, "a pair beside them");
	destroy_pair(&last);
	destroy_all();
	tb_check_traffic(&bystander, "a pair that stays");
}

static void post_recv(struct tb_qp *q, uint64_t wr_id)
{
	struct ibv_sge sge = { .addr = (uintptr_t)q->buf, .length = MESSAGE, .lkey = q->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(q->qp, &wr, &bad))
		tb_die("ibv_post_recv");
}

static void post(struct tb_pair *p, uint64_t wr_id, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = { .addr = (uintptr_t)p->a.buf, .length = MESSAGE, .lkey = p->a.mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = opcode,
		/* An invalid key: a WRITE with it raises an asynchronous event at the responder. */
		.wr.rdma = { .remote_addr = (uintptr_t)p->b.buf, .rkey = p->b.mr->rkey ^ 0x55 },
	}, *bad;

	if (ibv_post_send(p->a.qp, &wr, &bad))
		tb_die("ibv_post_send");
}

/*
 * Destroys a pair with an unpolled completion, flushed receives, and an event that was not
 * read; returns the number of its receiver.
 */
static uint32_t leave_traces(const struct tb_opts *opts)
{
	struct tb_pair p;
	uint32_t qpn;

	make_pair(&p, opts);
	qpn = p.b.qp->qp_num;
	post_recv(&p.b, 1);
	post_recv(&p.b, 2);
	post(&p, 10, IBV_WR_SEND);
	tb_expect(p.a.scq, 10, IBV_WC_SUCCESS, "a send");
	post(&p, 11, IBV_WR_RDMA_WRITE);
	tb_expect(p.a.scq, 11, IBV_WC_REM_ACCESS_ERR, "a WRITE without a region");
	tb_expect_state(&p.b, IBV_QPS_ERR, "the end that receives");
	leave(p.a.qp);
	leave(p.b.qp);
	/* Not tb_pair_destroy(), which takes the events. */
	tb_qp_destroy(&p.b);
	tb_qp_destroy(&p.a);
	return qpn;
}

static uint32_t number_before(uint32_t qpn)
{
	do {
		qpn = qpn > FIRST_QPN ? qpn - 1 : QPNS - 1;
	} while (owner[qpn]);
	return qpn;
}

/* Creates QPs without queues until the next number is @qpn; returns how often the numbers wrapped. */
static unsigned int go_round(uint32_t qpn)
{
	uint32_t before = number_before(qpn);
	unsigned int rounds = 0;
	uint32_t last = 0;
	int i, n;

	do {
		for (n = 0; n < MANY && (!n || last != before); n++) {
			qps[n] = make(0);
			enter(qps[n]);
			rounds += qps[n]->qp_num < last;
			last = qps[n]->qp_num;
		}
		for (i = 0; i < n; i++)
			destroy(qps[i]);
	} while (last != before && rounds < 2 && !tb_failed());
	return rounds;
}

static void numbers_come_round(void)
{
	struct tb_opts opts = tb_pair_defaults();
	struct ibv_async_event event;
	struct tb_pair p;
	unsigned int rounds;
	uint32_t qpn;

	opts.recv_cq = ibv_create_cq(side.ctx, CQ_ENTRIES, NULL, NULL, 0);
	if (!opts.recv_cq)
		tb_die("ibv_create_cq");
	/* The b of the pair is created after its a. */
	qpn = leave_traces(&opts);
	rounds = go_round(number_before(qpn));
	if (rounds != 1)
		tb_fail("the numbers began again %u times", rounds);

	make_pair(&p, &opts);
	if (p.b.qp->qp_num != qpn)
		tb_fail("QPN %#x comes back as %#x", qpn, p.b.qp->qp_num);
	tb_expect_none(opts.recv_cq, "a new QP of an old number");
	if (!ibv_get_async_event(side.ctx, &event)) {
		tb_fail("a new QP of an old number: event \"%s\"", ibv_event_type_str(event.event_type));
		ibv_ack_async_event(&event);
	}
	post_recv(&p.b, 3);
	post(&p, 12, IBV_WR_SEND);
	tb_expect(p.a.scq, 12, IBV_WC_SUCCESS, "a send to a number that came back");
	tb_expect(opts.recv_cq, 3, IBV_WC_SUCCESS, "a receive on it");
	tb_expect_none(opts.recv_cq, "behind it");
	tb_check_traffic(&p, "the new owner");
	tb_check_traffic(&bystander, "a pair that has kept its numbers");
	destroy_pair(&p);
	if (ibv_destroy_cq(opts.recv_cq))
		tb_die("ibv_destroy_cq");
}

static const struct tb_case cases[] = {
	{ "ten thousand QPs, one after the other", one_after_the_other },
	{ "ten thousand QPs, all at once", all_at_once },
	{ "ten thousand QPs at a time, until the numbers come round", numbers_come_round },
};

int main(int argc, char **argv)
{
	struct tb_opts opts = tb_pair_defaults();
	int failed;

	if (argc < 3)
		tb_die("usage: %s DEVICE GID-INDEX [-- CASE...]", argv[0]);
	tb_side_open(&side, argv[1], atoi(argv[2]), NULL);
	cq = ibv_create_cq(side.ctx, CQ_ENTRIES, NULL, NULL, 0);
	if (!cq)
		tb_die("ibv_create_cq");
	make_pair(&bystander, &opts);
	failed = tb_run(cases, ARRAY_SIZE(cases), argc - 3, argv + 3, NULL);
	destroy_pair(&bystander);
	if (ibv_destroy_cq(cq) || ibv_dealloc_pd(side.pd) || ibv_close_device(side.ctx))
		tb_die("closing");
	return failed;
}
