// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * FLUSH and ATOMIC WRITE, through struct ibv_qp_ex, and atomics concurrent with those of CPUs:
 * PROGRAM extended DEVICE GID-INDEX [DEVICE GID-INDEX NETNS] [-- CASE...]
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "link.h"

#define ACCESS		(TB_ACCESS_ALL | IBV_ACCESS_FLUSH_GLOBAL)
#define QP_ACCESS	(LINK_REMOTE | IBV_ACCESS_FLUSH_GLOBAL)
#define MANY		200

enum { STORE_ID = 20, FLUSH_ID, WRITE_ID };

/* A connected pair; b's memory may be flushed. */
struct pair {
	struct tb_pair p;
	struct ibv_mr *mr;		/* of b's buffer, with the right to flush it */
};

static void open_end(struct tb_qp *q, struct tb_side *side)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = side->pd,
		.cap = { .max_send_wr = 32, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE,
	};

	memset(q, 0, sizeof(*q));
	q->side = side;
	q->scq = link_make_cq(side, NULL);
	q->rcq = link_make_cq(side, NULL);
	attr.send_cq = q->scq;
	attr.recv_cq = q->rcq;
	q->qp = ibv_create_qp_ex(side->ctx, &attr);
	if (!q->qp)
		tb_die("ibv_create_qp_ex: %s", strerror(errno));
	q->buf = aligned_alloc(4096, TB_BUF_BYTES);
	memset(q->buf, 0x5a, TB_BUF_BYTES);
	q->mr = ibv_reg_mr(side->pd, q->buf, TB_BUF_BYTES, TB_ACCESS_ALL);
	if (!q->mr)
		tb_die("ibv_reg_mr");
}

static void open_pair(struct pair *t, unsigned int qp_access)
{
	struct tb_opts opts = tb_pair_defaults();

	open_end(&t->p.a, &link_asker);
	open_end(&t->p.b, link_owner);
	t->mr = ibv_reg_mr(link_owner->pd, t->p.b.buf, TB_BUF_BYTES, ACCESS);
	if (!t->mr)
		tb_die("ibv_reg_mr with the right to flush: %s", strerror(errno));
	tb_qp_connect(&t->p.a, &t->p.b, &opts, LINK_REMOTE, 0);
	tb_qp_connect(&t->p.b, &t->p.a, &opts, qp_access, 0);
}

static void close_pair(struct pair *t)
{
	ibv_dereg_mr(t->mr);
	tb_pair_destroy(&t->p);
}

static void build_store(struct pair *t, size_t at, const void *value)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(t->p.a.qp);

	qp->wr_id = STORE_ID;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_write(qp, t->mr->rkey, (uintptr_t)t->p.b.buf + at, value);
}

static void build_flush(struct pair *t, size_t at, size_t length, uint8_t type, uint8_t level)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(t->p.a.qp);

	qp->wr_id = FLUSH_ID;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_flush(qp, t->mr->rkey, (uintptr_t)t->p.b.buf + at, length, type, level);
}

static void build_write(struct pair *t, size_t at, size_t length)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(t->p.a.qp);

	qp->wr_id = WRITE_ID;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(qp, t->mr->rkey, (uintptr_t)t->p.b.buf + at);
	ibv_wr_set_sge(qp, t->p.a.mr->lkey, (uintptr_t)t->p.a.buf, length);
}

static void start(struct pair *t)
{
	ibv_wr_start(ibv_qp_to_qp_ex(t->p.a.qp));
}

static int finish(struct pair *t)
{
	return ibv_wr_complete(ibv_qp_to_qp_ex(t->p.a.qp));
}

static void done(struct pair *t, uint64_t id, enum ibv_wc_opcode opcode, const char *what)
{
	link_expect_sent(&t->p.a, id, opcode, IBV_WC_SUCCESS, 0, what);
}

/* ------------------------------------------------------------------ */

static void abilities(void)
{
	struct ibv_device_attr_ex attr;

	if (ibv_query_device_ex(link_asker.ctx, NULL, &attr))
		tb_die("ibv_query_device_ex");
	if (!(attr.device_cap_flags_ex & IB_UVERBS_DEVICE_FLUSH_GLOBAL) ||
	    !(attr.device_cap_flags_ex & IB_UVERBS_DEVICE_ATOMIC_WRITE) ||
	    attr.device_cap_flags_ex & IB_UVERBS_DEVICE_FLUSH_PERSISTENT)
		tb_fail("abilities 0x%llx", (unsigned long long)attr.device_cap_flags_ex);
}

/* The value is read when the request is posted; later changes of its memory have no effect. */
static void stores(void)
{
	struct pair t;
	uint64_t value;
	size_t i;

	open_pair(&t, QP_ACCESS);
	for (i = 0; i < MANY; i++) {
		size_t at = 8 * (i * 37 % (TB_BUF_BYTES / 8));

		link_fill((uint8_t *)&value, sizeof(value));
		uint64_t expected = value;

		start(&t);
		build_store(&t, at, &value);
		link_errno(finish(&t), 0, "posting a store");
		value = ~value;
		done(&t, STORE_ID, IBV_WC_ATOMIC_WRITE, "a store");
		if (memcmp(t.p.b.buf + at, &expected, sizeof(expected)))
			tb_fail("store %zu: other bytes", i);
	}
	close_pair(&t);
}

static void flushes(void)
{
	struct pair t;
	int round;

	open_pair(&t, QP_ACCESS);
	for (round = 0; round < 50; round++) {
		link_fill(t.p.a.buf, LINK_LONG);
		start(&t);
		build_write(&t, 100, LINK_LONG);
		build_flush(&t, 100, LINK_LONG, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
		build_flush(&t, 0, 0, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
		build_flush(&t, 0, 0, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR);
		link_errno(finish(&t), 0, "posting");
		done(&t, WRITE_ID, IBV_WC_RDMA_WRITE, "the WRITE");
		done(&t, FLUSH_ID, IBV_WC_FLUSH, "the flush of its range");
		if (memcmp(t.p.b.buf + 100, t.p.a.buf, LINK_LONG))
			tb_fail("round %d: other bytes after the flush", round);
		done(&t, FLUSH_ID, IBV_WC_FLUSH, "a flush of no bytes");
		done(&t, FLUSH_ID, IBV_WC_FLUSH, "a flush of the region");
	}
	close_pair(&t);
}

/* Requests that the peer refuses. */
static void refused_by_peer(void)
{
	static const struct {
		const char *what;
		bool store;
		size_t at, length;
		uint8_t type;
		unsigned int access;
		enum ibv_wc_status status;
	} refusals[] = {
		{ "a store that is not aligned", true, 4, 0, 0, QP_ACCESS, IBV_WC_REM_INV_REQ_ERR },
		{ "a store beyond the region", true, TB_BUF_BYTES, 0, 0, QP_ACCESS, IBV_WC_REM_ACCESS_ERR },
		{ "a store to a QP that takes no WRITE", true, 0, 0, 0, IBV_ACCESS_FLUSH_GLOBAL,
		  IBV_WC_REM_INV_REQ_ERR },
		{ "a flush beyond the region", false, 8, TB_BUF_BYTES, IBV_FLUSH_GLOBAL, QP_ACCESS,
		  IBV_WC_REM_ACCESS_ERR },
		{ "a flush to persistence", false, 0, 8, IBV_FLUSH_PERSISTENT, QP_ACCESS, IBV_WC_REM_ACCESS_ERR },
		{ "a flush to a QP without the right", false, 0, 8, IBV_FLUSH_GLOBAL, LINK_REMOTE,
		  IBV_WC_REM_INV_REQ_ERR },
	};
	const uint64_t value = 1;
	struct pair t;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(refusals); i++) {
		open_pair(&t, refusals[i].access);
		start(&t);
		if (refusals[i].store)
			build_store(&t, refusals[i].at, &value);
		else
			build_flush(&t, refusals[i].at, refusals[i].length, refusals[i].type, IBV_FLUSH_RANGE);
		link_errno(finish(&t), 0, refusals[i].what);
		link_expect_sent(&t.p.a, refusals[i].store ? STORE_ID : FLUSH_ID, 0, refusals[i].status, 0,
				 refusals[i].what);
		close_pair(&t);
	}
}

/* Requests that posting refuses; no request of the list is posted, and the QP still works. */
static void refused_at_once(void)
{
	const uint64_t value = 2;
	struct ibv_mr *mr;
	struct pair t;

	open_pair(&t, QP_ACCESS);
	start(&t);
	build_store(&t, 0, &value);
	build_flush(&t, 0, 8, 0, IBV_FLUSH_RANGE);
	link_errno(finish(&t), EINVAL, "a flush of no type");
	start(&t);
	build_flush(&t, 0, 8, 1 << 3, IBV_FLUSH_RANGE);
	link_errno(finish(&t), EINVAL, "a flush of an unknown type");
	start(&t);
	build_flush(&t, 0, 8, IBV_FLUSH_GLOBAL, 2);
	link_errno(finish(&t), EINVAL, "a flush of an unknown level");
	start(&t);
	build_flush(&t, 0, (1ull << 31) + 1, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	link_errno(finish(&t), EINVAL, "a flush of more than 2 GiB");
	tb_expect_none(t.p.a.scq, "of what was refused");
	errno = 0;
	mr = ibv_reg_mr(link_owner->pd, t.p.b.buf, 4096, IBV_ACCESS_FLUSH_PERSISTENT);
	link_errno(mr ? 0 : errno, EOPNOTSUPP, "a region that may be made persistent");
	start(&t);
	build_store(&t, 0, &value);
	link_errno(finish(&t), 0, "a store after all that");
	done(&t, STORE_ID, IBV_WC_ATOMIC_WRITE, "a store after all that");
	close_pair(&t);
}

static void other_services(void)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_UC, IBV_QPT_UD };
	struct ibv_qp_init_attr_ex attr = {
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = link_asker.pd,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp *qp;
	size_t i;

	attr.send_cq = link_make_cq(&link_asker, NULL);
	attr.recv_cq = attr.send_cq;
	for (i = 0; i < 2 * ARRAY_SIZE(types); i++) {
		attr.qp_type = types[i / 2];
		attr.send_ops_flags = i % 2 ? IBV_QP_EX_WITH_FLUSH : IBV_QP_EX_WITH_ATOMIC_WRITE;
		errno = 0;
		qp = ibv_create_qp_ex(link_asker.ctx, &attr);
		link_errno(qp ? 0 : errno, EOPNOTSUPP, "a QP of another service");
	}
	ibv_destroy_cq(attr.send_cq);
}

/* ------------------------------------------------------------------ */

/* A thread that adds 1 to a word until it is stopped. */
struct adder {
	uint64_t *word;
	uint64_t added;
	bool stop;
};

static void *add_by_cpu(void *arg)
{
	struct adder *adder = arg;

	while (!__atomic_load_n(&adder->stop, __ATOMIC_ACQUIRE)) {
		__atomic_fetch_add(adder->word, 1, __ATOMIC_SEQ_CST);
		adder->added++;
	}
	return NULL;
}

/* One atomic of a on b's first word; returns the value before. */
static uint64_t atomic(struct tb_pair *p, enum ibv_wr_opcode opcode, uint64_t compare_add, uint64_t swap)
{
	struct ibv_sge sge = { (uintptr_t)p->a.buf, sizeof(uint64_t), p->a.mr->lkey };
	struct ibv_send_wr wr = { .wr_id = SEND_ID, .sg_list = &sge, .num_sge = 1, .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;
	uint64_t before;

	wr.wr.atomic.remote_addr = (uintptr_t)p->b.buf;
	wr.wr.atomic.rkey = p->b.mr->rkey;
	wr.wr.atomic.compare_add = compare_add;
	wr.wr.atomic.swap = swap;
	link_errno(ibv_post_send(p->a.qp, &wr, &bad), 0, "posting an atomic");
	tb_expect(p->a.scq, SEND_ID, IBV_WC_SUCCESS, "an atomic");
	memcpy(&before, p->a.buf, sizeof(before));
	return before;
}

/*
 * A CPU of the guest and the peer change one word at the same time, and no change is lost. The CPU adds to the lower
 * half, and the peer to the upper half, by both kinds of atomics.
 */
static void beside_a_cpu(void)
{
	const uint64_t unit = 1ULL << 40;
	struct tb_opts opts = tb_pair_defaults();
	struct adder adder = { 0 };
	uint64_t added = 0, value;
	pthread_t thread;
	struct tb_pair p;
	int i;

	tb_pair_create(&p, &link_asker, link_owner, &opts);
	adder.word = (uint64_t *)p.b.buf;
	*adder.word = 0;
	if (pthread_create(&thread, NULL, add_by_cpu, &adder))
		tb_die("pthread_create");
	for (i = 0; i < 1000; i++) {
		value = atomic(&p, IBV_WR_ATOMIC_FETCH_AND_ADD, unit, 0);
		if (value / unit != added)
			tb_fail("%" PRIu64 " additions of the peer, not %" PRIu64, value / unit, added);
		added++;
		/* It has swapped only if the CPU has not changed the word meanwhile. */
		value = __atomic_load_n(adder.word, __ATOMIC_SEQ_CST);
		if (atomic(&p, IBV_WR_ATOMIC_CMP_AND_SWP, value, value + unit) == value)
			added++;
	}
	__atomic_store_n(&adder.stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	value = *adder.word;
	if (value != added * unit + adder.added)
		tb_fail("the word is %" PRIu64 " * 2^40 + %" PRIu64 " after %" PRIu64 " and %" PRIu64 " additions",
			value / unit, value % unit, added, adder.added);
	tb_pair_destroy(&p);
}

static const struct tb_case cases[] = {
	{ "abilities", abilities },
	{ "stores", stores },
	{ "flushes", flushes },
	{ "refused by the peer", refused_by_peer },
	{ "refused at once", refused_at_once },
	{ "other services", other_services },
	{ "atomics beside a CPU", beside_a_cpu },
};

int main(int argc, char **argv)
{
	return link_run(cases, ARRAY_SIZE(cases), argc, argv);
}
