// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Work requests that must fail, posted through libibverbs: each has one exact
 * completion status at the requester and, where the specification requires it,
 * at the responder. Other QPs are not affected.
 *
 * badverbs DEVICE GID-INDEX [DEVICE GID-INDEX NETNS] [-- CASE...]
 *
 * With one device the pair is on this device; with two, the requester is on
 * the first and the responder on the second.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "testbed.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define FIRST		1
#define SECOND		2
#define NO_SUCH_KEY	0xdeadbeefU

static struct tb_side side_a, side_b;
static struct tb_side *peer_side;
static struct tb_pair neighbour;

static struct ibv_sge sge_of(const struct tb_qp *q, size_t offset, size_t size)
{
	return (struct ibv_sge) { (uintptr_t)q->buf + offset, size, q->mr->lkey };
}

static struct ibv_send_wr wr_of(enum ibv_wr_opcode opcode, struct ibv_sge *sge, uint64_t addr, uint32_t rkey)
{
	struct ibv_send_wr wr = { .wr_id = FIRST, .sg_list = sge, .num_sge = 1, .opcode = opcode };

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = addr;
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.rkey = rkey;
	} else {
		wr.wr.rdma.remote_addr = addr;
		wr.wr.rdma.rkey = rkey;
	}
	return wr;
}

static bool post_send(struct tb_qp *q, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int error = ibv_post_send(q->qp, wr, &bad);

	if (error)
		tb_fail("ibv_post_send: %s", strerror(error));
	return !error;
}

static bool post_recv(struct tb_qp *q, uint64_t id, struct ibv_sge sge)
{
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;
	int error = ibv_post_recv(q->qp, &wr, &bad);

	if (error)
		tb_fail("ibv_post_recv: %s", strerror(error));
	return !error;
}

/*
 * Posts wr and after it a valid SEND. wr must complete with `status`, the SEND
 * must be flushed, and the QP must be in ERR.
 */
static void must_fail(struct tb_pair *p, struct ibv_send_wr wr, enum ibv_wc_status status)
{
	struct ibv_sge sge = sge_of(&p->a, 0, 64);
	struct ibv_send_wr second = { .wr_id = SECOND, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };

	wr.next = &second;
	if (!post_send(&p->a, &wr))
		return;
	tb_expect(p->a.scq, FIRST, status, "the request");
	tb_expect(p->a.scq, SECOND, IBV_WC_WR_FLUSH_ERR, "the request behind it");
	tb_expect_state(&p->a, IBV_QPS_ERR, "the requester");
}

static void create(struct tb_pair *p)
{
	struct tb_opts opts = tb_pair_defaults();

	tb_pair_create(p, &side_a, peer_side, &opts);
}

/* A request whose local data cannot be read or written. */
static void local_fault(enum ibv_wr_opcode opcode, struct ibv_sge (*make)(struct tb_pair *p))
{
	struct tb_pair p;
	struct ibv_sge sge;

	create(&p);
	sge = make(&p);
	must_fail(&p, wr_of(opcode, &sge, (uintptr_t)p.b.buf, p.b.mr->rkey), IBV_WC_LOC_PROT_ERR);
	tb_expect_state(&p.b, IBV_QPS_RTS, "the responder, which saw nothing wrong");
	tb_pair_destroy(&p);
}

static struct ibv_sge wrong_lkey(struct tb_pair *p)
{
	struct ibv_sge sge = sge_of(&p->a, 0, 64);

	sge.lkey = NO_SUCH_KEY;
	return sge;
}

/* The index of an existing MR with a wrong tag. */
static struct ibv_sge wrong_tag(struct tb_pair *p)
{
	struct ibv_sge sge = sge_of(&p->a, 0, 64);

	sge.lkey ^= 1U << 31;
	return sge;
}

static struct ibv_sge one_past_end(struct tb_pair *p)
{
	return sge_of(&p->a, TB_BUF_BYTES - 63, 64);
}

static struct ibv_sge before_start(struct tb_pair *p)
{
	struct ibv_sge sge = sge_of(&p->a, 0, 64);

	sge.addr -= 1;
	return sge;
}

static struct ibv_sge wraps(struct tb_pair *p)
{
	struct ibv_sge sge = sge_of(&p->a, 0, 4096);

	sge.addr = -64ULL;
	return sge;
}

static struct ibv_sge deregistered(struct tb_pair *p)
{
	struct ibv_mr *mr = ibv_reg_mr(p->a.side->pd, p->a.buf, 4096, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge;

	if (!mr)
		tb_die("ibv_reg_mr");
	sge = (struct ibv_sge) { (uintptr_t)p->a.buf, 64, mr->lkey };
	if (ibv_dereg_mr(mr))
		tb_die("ibv_dereg_mr");
	return sge;
}

static void lkey_wrong(void)		{ local_fault(IBV_WR_SEND, wrong_lkey); }
static void lkey_wrong_tag(void)	{ local_fault(IBV_WR_RDMA_WRITE, wrong_tag); }
static void lkey_deregistered(void)	{ local_fault(IBV_WR_SEND, deregistered); }
static void sge_past_end(void)		{ local_fault(IBV_WR_SEND, one_past_end); }
static void sge_before_start(void)	{ local_fault(IBV_WR_RDMA_WRITE, before_start); }
static void sge_wraps(void)		{ local_fault(IBV_WR_SEND, wraps); }

/* An MR of another PD, or with other rights, used by requester a. */
static void with_own_mr(struct ibv_pd *pd, unsigned int access, enum ibv_wr_opcode opcode)
{
	struct tb_pair p;
	struct ibv_sge sge;
	struct ibv_mr *mr;

	create(&p);
	mr = ibv_reg_mr(pd, p.a.buf, 4096, access);
	if (!mr)
		tb_die("ibv_reg_mr");
	sge = (struct ibv_sge) { (uintptr_t)p.a.buf, 64, mr->lkey };
	must_fail(&p, wr_of(opcode, &sge, (uintptr_t)p.b.buf, p.b.mr->rkey), IBV_WC_LOC_PROT_ERR);
	if (ibv_dereg_mr(mr))
		tb_die("ibv_dereg_mr");
	tb_pair_destroy(&p);
}

static void lkey_of_other_pd(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(side_a.ctx);

	if (!pd)
		tb_die("ibv_alloc_pd");
	with_own_mr(pd, TB_ACCESS_ALL, IBV_WR_SEND);
	if (ibv_dealloc_pd(pd))
		tb_die("ibv_dealloc_pd");
}

static void read_into_read_only(void)
{
	with_own_mr(side_a.pd, 0, IBV_WR_RDMA_READ);
}

/* The second entry of a list is wrong: the whole message must fail. */
static void second_sge_wrong(void)
{
	struct tb_pair p;
	struct ibv_sge sge[2];
	struct ibv_send_wr wr;

	create(&p);
	sge[0] = sge_of(&p.a, 0, 5000);
	sge[1] = wrong_lkey(&p);
	wr = wr_of(IBV_WR_RDMA_WRITE, sge, (uintptr_t)p.b.buf, p.b.mr->rkey);
	wr.num_sge = 2;
	must_fail(&p, wr, IBV_WC_LOC_PROT_ERR);
	tb_pair_destroy(&p);
}

/*
 * The memory of a response is checked when the response arrives: by then the peer has executed or refused the
 * request.
 */
static void no_place(enum ibv_wr_opcode opcode, struct ibv_sge (*make)(struct tb_pair *p))
{
	const bool atomic = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	uint64_t value;
	struct tb_pair p;
	struct ibv_sge sge;

	create(&p);
	memset(p.b.buf, 0, 64);
	sge = make(&p);
	sge.length = atomic ? 8 : 64;
	must_fail(&p, wr_of(opcode, &sge, (uintptr_t)p.b.buf, p.b.mr->rkey), IBV_WC_LOC_PROT_ERR);
	memcpy(&value, p.b.buf, sizeof(value));
	if (value != atomic)
		tb_fail("the peer's word is %" PRIu64 ", not %d", value, atomic);
	tb_expect_state(&p.b, IBV_QPS_RTS, "the responder, which saw nothing wrong");
	tb_pair_destroy(&p);

	create(&p);
	sge = make(&p);
	sge.length = atomic ? 8 : 64;
	must_fail(&p, wr_of(opcode, &sge, (uintptr_t)p.b.buf, NO_SUCH_KEY), IBV_WC_REM_ACCESS_ERR);
	tb_expect_async(p.b.side, IBV_EVENT_QP_ACCESS_ERR, p.b.qp, "the responder");
	tb_pair_destroy(&p);
}

static void read_without_a_place(void)
{
	no_place(IBV_WR_RDMA_READ, wrong_lkey);
	no_place(IBV_WR_RDMA_READ, one_past_end);
	no_place(IBV_WR_RDMA_READ, deregistered);
}

static void atomic_without_a_place(void)
{
	no_place(IBV_WR_ATOMIC_FETCH_AND_ADD, wrong_lkey);
	no_place(IBV_WR_ATOMIC_FETCH_AND_ADD, before_start);
	no_place(IBV_WR_ATOMIC_FETCH_AND_ADD, deregistered);
}

/* A request that the responder must refuse. */
struct remote_case {
	enum ibv_wr_opcode opcode;
	unsigned int mr_access;		/* 0: all rights */
	unsigned int qp_access;		/* 0: all rights */
	bool bad_key;
	bool bad_tag;
	int64_t offset;
	uint32_t size;
	enum ibv_wc_status status;
};

static void remote_fault(struct remote_case c)
{
	enum ibv_event_type event = c.status == IBV_WC_REM_ACCESS_ERR ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR;
	struct tb_opts opts = tb_pair_defaults();
	struct tb_pair p;
	struct ibv_sge sge;
	uint8_t *image;
	uint32_t rkey;

	if (c.mr_access)
		opts.mr_access = c.mr_access;
	if (c.qp_access)
		opts.qp_access = c.qp_access;
	tb_pair_create(&p, &side_a, peer_side, &opts);
	rkey = c.bad_key ? NO_SUCH_KEY : p.b.mr->rkey ^ (c.bad_tag ? 1U << 31 : 0);
	memset(p.a.buf, 0x5a, TB_BUF_BYTES);
	image = malloc(TB_BUF_BYTES);
	memset(p.b.buf, 0xc3, TB_BUF_BYTES);
	memcpy(image, p.b.buf, TB_BUF_BYTES);
	sge = sge_of(&p.a, 0, c.size);
	must_fail(&p, wr_of(c.opcode, &sge, (uintptr_t)p.b.buf + c.offset, rkey), c.status);
	if (memcmp(image, p.b.buf, TB_BUF_BYTES))
		tb_fail("the responder's memory was changed");
	tb_expect_async(p.b.side, event, p.b.qp, "the responder");
	tb_expect_state(&p.b, IBV_QPS_ERR, "the responder");
	free(image);
	tb_pair_destroy(&p);
}

static void rkey_wrong_write(void)
{
	remote_fault((struct remote_case) { .opcode = IBV_WR_RDMA_WRITE, .bad_key = true, .size = 64,
					    .status = IBV_WC_REM_ACCESS_ERR });
}

static void rkey_wrong_read(void)
{
	remote_fault((struct remote_case) { .opcode = IBV_WR_RDMA_READ, .bad_key = true, .size = 64,
					    .status = IBV_WC_REM_ACCESS_ERR });
}

static void rkey_wrong_atomic(void)
{
	remote_fault((struct remote_case) { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .bad_key = true, .size = 8,
					    .status = IBV_WC_REM_ACCESS_ERR });
}

static void rkey_wrong_tag(void)
{
	remote_fault((struct remote_case) { .opcode = IBV_WR_RDMA_WRITE, .bad_tag = true, .size = 64,
					    .status = IBV_WC_REM_ACCESS_ERR });
}

static void write_past_end(void)
{
	remote_fault((struct remote_case) { .opcode = IBV_WR_RDMA_WRITE, .offset = TB_BUF_BYTES - 63, .size = 64,
					    .status = IBV_WC_REM_ACCESS_ERR });
}

/* Of many packets only the last would be outside the region: the first is refused. */
static void write_long_past_end(void)
{
	remote_fault((struct remote_case) { .opcode = IBV_WR_RDMA_WRITE, .offset = 1, .size = TB_BUF_BYTES,
					    .status = IBV_WC_REM_ACCESS_ERR });
}

static void read_past_end(void)
{
	remote_fault((struct remote_case) { .opcode = IBV_WR_RDMA_READ, .offset = TB_BUF_BYTES - 63, .size = 64,
					    .status = IBV_WC_REM_ACCESS_ERR });
}

static void read_before_start(void)
{
	remote_fault((struct remote_case) { .opcode = IBV_WR_RDMA_READ, .offset = -1, .size = 64,
					    .status = IBV_WC_REM_ACCESS_ERR });
}

static void write_not_allowed_by_mr(void)
{
	remote_fault((struct remote_case) { .opcode = IBV_WR_RDMA_WRITE, .size = 64,
					    .mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ,
					    .status = IBV_WC_REM_ACCESS_ERR });
}

static void read_not_allowed_by_mr(void)
{
	remote_fault((struct remote_case) { .opcode = IBV_WR_RDMA_READ, .size = 64,
					    .mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
					    .status = IBV_WC_REM_ACCESS_ERR });
}

static void atomic_not_allowed_by_mr(void)
{
	remote_fault((struct remote_case) { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .size = 8,
					    .mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
							 IBV_ACCESS_REMOTE_READ,
					    .status = IBV_WC_REM_ACCESS_ERR });
}

/* Table 58 of the InfiniBand specification: a request that is not enabled for the QP is an invalid request. */
static void write_not_allowed_by_qp(void)
{
	remote_fault((struct remote_case) { .opcode = IBV_WR_RDMA_WRITE, .size = 64,
					    .qp_access = IBV_ACCESS_REMOTE_READ, .status = IBV_WC_REM_INV_REQ_ERR });
}

static void read_not_allowed_by_qp(void)
{
	remote_fault((struct remote_case) { .opcode = IBV_WR_RDMA_READ, .size = 64,
					    .qp_access = IBV_ACCESS_REMOTE_WRITE, .status = IBV_WC_REM_INV_REQ_ERR });
}

/* A device that compares PDs says that the peer may not access the region. */
static void nothing_allowed_by_qp(enum ibv_wr_opcode opcode)
{
	remote_fault((struct remote_case) { .opcode = opcode, .size = 64, .qp_access = IBV_ACCESS_LOCAL_WRITE,
					    .status = peer_side->is_ernic ? IBV_WC_REM_ACCESS_ERR :
									    IBV_WC_REM_INV_REQ_ERR });
}

static void no_write_allowed_by_qp(void)	{ nothing_allowed_by_qp(IBV_WR_RDMA_WRITE); }
static void no_read_allowed_by_qp(void)		{ nothing_allowed_by_qp(IBV_WR_RDMA_READ); }

static void atomic_not_allowed_by_qp(void)
{
	remote_fault((struct remote_case) { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .size = 8,
					    .qp_access = IBV_ACCESS_REMOTE_WRITE, .status = IBV_WC_REM_INV_REQ_ERR });
}

static void atomic_misaligned(void)
{
	remote_fault((struct remote_case) { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .offset = 4, .size = 8,
					    .status = IBV_WC_REM_INV_REQ_ERR });
}

static void rkey_of_other_pd(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(peer_side->ctx);
	struct tb_pair p;
	struct ibv_sge sge;
	struct ibv_mr *mr;

	create(&p);
	mr = pd ? ibv_reg_mr(pd, p.b.buf, 4096, TB_ACCESS_ALL) : NULL;
	if (!mr)
		tb_die("ibv_reg_mr");
	sge = sge_of(&p.a, 0, 64);
	must_fail(&p, wr_of(IBV_WR_RDMA_WRITE, &sge, (uintptr_t)p.b.buf, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	if (ibv_dereg_mr(mr) || ibv_dealloc_pd(pd))
		tb_die("ibv_dereg_mr");
	tb_pair_destroy(&p);
}

static void rkey_of_deregistered_mr(void)
{
	struct tb_pair p;
	struct ibv_sge sge;
	struct ibv_mr *mr;
	uint32_t rkey;

	create(&p);
	mr = ibv_reg_mr(peer_side->pd, p.b.buf, 4096, TB_ACCESS_ALL);
	if (!mr)
		tb_die("ibv_reg_mr");
	rkey = mr->rkey;
	if (ibv_dereg_mr(mr))
		tb_die("ibv_dereg_mr");
	sge = sge_of(&p.a, 0, 64);
	must_fail(&p, wr_of(IBV_WR_RDMA_WRITE, &sge, (uintptr_t)p.b.buf, rkey), IBV_WC_REM_ACCESS_ERR);
	tb_pair_destroy(&p);
}

/* A request of 0 bytes does not check the key. */
static void rkey_wrong_zero_bytes(void)
{
	struct tb_pair p;
	struct ibv_send_wr wr;

	create(&p);
	wr = wr_of(IBV_WR_RDMA_WRITE, NULL, 0, NO_SUCH_KEY);
	wr.num_sge = 0;
	if (post_send(&p.a, &wr))
		tb_expect(p.a.scq, FIRST, IBV_WC_SUCCESS, "a WRITE of 0 bytes");
	tb_check_traffic(&p, "the same QP");
	tb_pair_destroy(&p);
}

/*
 * A SEND that its receive cannot take.  An ERNIC acknowledges a message when it is in a slot, before
 * the receive fails.
 */
static void receive_must_fail(struct tb_pair *p, struct ibv_sge into, uint32_t size, enum ibv_wc_status status,
			      enum ibv_wc_status remote_status)
{
	struct ibv_sge sge = sge_of(&p->a, 0, size);
	struct ibv_send_wr wr = wr_of(IBV_WR_SEND, &sge, 0, 0);

	if (!post_recv(&p->b, 9, into) || !post_recv(&p->b, 10, sge_of(&p->b, 0, 64)))
		return;
	if (!p->b.side->is_ernic)
		must_fail(p, wr, remote_status);
	else if (post_send(&p->a, &wr))
		tb_expect(p->a.scq, FIRST, IBV_WC_SUCCESS, "the request");
	tb_expect(p->b.rcq, 9, status, "the receive");
	tb_expect(p->b.rcq, 10, IBV_WC_WR_FLUSH_ERR, "the receive behind it");
	tb_expect_state(&p->b, IBV_QPS_ERR, "the responder");
}

static void send_too_long(void)
{
	const uint32_t size = peer_side->max_send < 5001 ? peer_side->max_send - 1 : 5000;
	struct tb_pair p;

	create(&p);
	memset(p.a.buf, 0x5a, TB_BUF_BYTES);
	receive_must_fail(&p, sge_of(&p.b, 0, size), size + 1, IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR);
	if (p.b.buf[size])
		tb_fail("data was written behind the receive buffer");
	tb_pair_destroy(&p);
}

static void receive_into(struct ibv_sge (*make)(struct tb_pair *p))
{
	struct tb_pair p, turned;

	create(&p);
	turned = (struct tb_pair) { p.b, p.a };
	receive_must_fail(&p, make(&turned), 64, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
	tb_pair_destroy(&p);
}

static void receive_wrong_lkey(void)	{ receive_into(wrong_lkey); }
static void receive_past_end(void)	{ receive_into(one_past_end); }

static void receive_lkey_of_other_pd(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(peer_side->ctx);
	struct tb_pair p;
	struct ibv_mr *mr;

	create(&p);
	mr = pd ? ibv_reg_mr(pd, p.b.buf, 4096, TB_ACCESS_ALL) : NULL;
	if (!mr)
		tb_die("ibv_reg_mr");
	memset(p.a.buf, 0x5a, 64);
	receive_must_fail(&p, (struct ibv_sge) { (uintptr_t)p.b.buf, 64, mr->lkey }, 64, IBV_WC_LOC_PROT_ERR,
			  IBV_WC_REM_OP_ERR);
	if (p.b.buf[0] || p.b.buf[63])
		tb_fail("data was written to a region of another PD");
	if (ibv_dereg_mr(mr) || ibv_dealloc_pd(pd))
		tb_die("ibv_dereg_mr");
	tb_pair_destroy(&p);
}

static void no_receive(void)
{
	struct tb_pair p;
	struct ibv_sge sge;

	create(&p);
	sge = sge_of(&p.a, 0, 64);
	must_fail(&p, wr_of(IBV_WR_SEND, &sge, 0, 0), IBV_WC_RNR_RETRY_EXC_ERR);
	tb_expect_state(&p.b, IBV_QPS_RTS, "the responder");
	tb_pair_destroy(&p);
}

static void no_such_peer(void)
{
	struct tb_opts opts = tb_pair_defaults();
	struct tb_pair p;
	struct ibv_sge sge;

	opts.dest_qpn = 0xabcdef;
	opts.timeout = 10;
	opts.retry_cnt = 1;
	tb_pair_create(&p, &side_a, peer_side, &opts);
	sge = sge_of(&p.a, 0, 64);
	must_fail(&p, wr_of(IBV_WR_RDMA_WRITE, &sge, (uintptr_t)p.b.buf, p.b.mr->rkey), IBV_WC_RETRY_EXC_ERR);
	tb_expect_state(&p.b, IBV_QPS_RTS, "the QP that was not addressed");
	tb_pair_destroy(&p);
}

/* Both queues are flushed in order, and so are requests that are posted afterwards. */
static void flush_in_order(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct tb_pair p;
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	int i;

	create(&p);
	for (i = 0; i < 5; i++)
		post_recv(&p.a, 100 + i, sge_of(&p.a, 0, 64));
	if (ibv_modify_qp(p.a.qp, &attr, IBV_QP_STATE))
		tb_fail("the QP cannot be put into ERR");
	for (i = 0; i < 5; i++)
		tb_expect(p.a.rcq, 100 + i, IBV_WC_WR_FLUSH_ERR, "a receive posted before");
	for (i = 0; i < 3; i++) {
		sge = sge_of(&p.a, 0, 64);
		wr = wr_of(IBV_WR_SEND, &sge, 0, 0);
		wr.wr_id = 200 + i;
		post_send(&p.a, &wr);
		post_recv(&p.a, 300 + i, sge_of(&p.a, 0, 64));
	}
	for (i = 0; i < 3; i++) {
		tb_expect(p.a.scq, 200 + i, IBV_WC_WR_FLUSH_ERR, "a send posted in ERR");
		tb_expect(p.a.rcq, 300 + i, IBV_WC_WR_FLUSH_ERR, "a receive posted in ERR");
	}
	tb_expect_none(p.a.scq, "sends");
	tb_expect_none(p.a.rcq, "receives");
	tb_pair_destroy(&p);
}

/* Posting refuses requests that it can check, and sets bad_wr to them. */
static void post_refused(void)
{
	struct ibv_send_wr wr[64], *bad = NULL;
	struct tb_pair p;
	struct ibv_sge sge[64];
	int i, error;

	create(&p);
	for (i = 0; i < 64; i++) {
		sge[i] = sge_of(&p.a, 0, 1);
		wr[i] = wr_of(IBV_WR_RDMA_WRITE, &sge[i], (uintptr_t)p.b.buf, p.b.mr->rkey);
		wr[i].wr_id = i;
	}
	wr[1].num_sge = 64;
	wr[0].next = &wr[1];
	wr[1].next = &wr[2];
	error = ibv_post_send(p.a.qp, &wr[0], &bad);
	if (!error || bad != &wr[1])
		tb_fail("64 SGEs: error %d, bad_wr is number %td, expected 1", error, bad ? bad - wr : -1);
	tb_expect(p.a.scq, 0, IBV_WC_SUCCESS, "the one before it");
	wr[1].num_sge = 1;
	wr[1].opcode = 99;
	wr[0].next = &wr[1];
	error = ibv_post_send(p.a.qp, &wr[0], &bad);
	if (!error || bad != &wr[1])
		tb_fail("unknown opcode: error %d, bad_wr is number %td, expected 1", error, bad ? bad - wr : -1);
	tb_expect(p.a.scq, 0, IBV_WC_SUCCESS, "the one before it");
	tb_expect_none(p.a.scq, "nothing else was posted");
	tb_check_traffic(&p, "the same QP");
	tb_pair_destroy(&p);
}

/* The send queue accepts max_send_wr requests, and refuses the next one. */
static void queue_full(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_send_wr wr, *bad = NULL;
	struct ibv_qp_attr attr;
	struct tb_pair p;
	struct ibv_sge sge;
	uint32_t posted = 0;
	int error = 0;

	create(&p);
	if (ibv_query_qp(p.a.qp, &attr, IBV_QP_CAP, &init))
		tb_die("ibv_query_qp");
	sge = sge_of(&p.a, 0, 8);
	wr = wr_of(IBV_WR_RDMA_WRITE, &sge, (uintptr_t)p.b.buf, p.b.mr->rkey);
	while (posted <= 65536 && !error) {
		error = ibv_post_send(p.a.qp, &wr, &bad);
		posted += !error;
	}
	if (error != ENOMEM || bad != &wr)
		tb_fail("a request to a full queue: %s", strerror(error));
	if (posted < attr.cap.max_send_wr || posted > 65535)
		tb_fail("%u requests fitted in a queue of %u", posted, attr.cap.max_send_wr);
	if (posted > 64)
		posted = 0;	/* more than the entries of the CQ */
	while (posted--)
		tb_expect(p.a.scq, FIRST, IBV_WC_SUCCESS, "a request that fitted");
	tb_check_traffic(&p, "the same QP");
	tb_pair_destroy(&p);
}

static void objects_refused(void)
{
	struct ibv_device_attr dev;
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC };
	struct ibv_cq *cq;
	uint8_t *gone;

	if (ibv_query_device(side_a.ctx, &dev))
		tb_die("ibv_query_device");
	cq = ibv_create_cq(side_a.ctx, 16, NULL, NULL, 0);
	init.send_cq = cq;
	init.recv_cq = cq;
	init.cap = (struct ibv_qp_cap) { .max_send_wr = dev.max_qp_wr + 1, .max_recv_wr = 1, .max_send_sge = 1,
					 .max_recv_sge = 1 };
	if (ibv_create_qp(side_a.pd, &init))
		tb_fail("a QP with %d send requests was made", init.cap.max_send_wr);
	init.cap = (struct ibv_qp_cap) { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = dev.max_sge + 1,
					 .max_recv_sge = 1 };
	if (ibv_create_qp(side_a.pd, &init))
		tb_fail("a QP with %d SGEs was made", init.cap.max_send_sge);
	if (ibv_destroy_cq(cq))
		tb_die("ibv_destroy_cq");
	if (ibv_create_cq(side_a.ctx, dev.max_cqe + 1, NULL, NULL, 0))
		tb_fail("a CQ with %d entries was made", dev.max_cqe + 1);
	if (ibv_create_cq(side_a.ctx, 0, NULL, NULL, 0))
		tb_fail("a CQ with 0 entries was made");
	if (ibv_create_cq(side_a.ctx, 16, NULL, NULL, side_a.ctx->num_comp_vectors))
		tb_fail("a CQ on a vector that does not exist was made");
	gone = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(gone, 65536);
	if (ibv_reg_mr(side_a.pd, gone, 65536, IBV_ACCESS_LOCAL_WRITE))
		tb_fail("memory that is not there was registered");
	if (ibv_reg_mr(side_a.pd, &dev, sizeof(dev), IBV_ACCESS_REMOTE_WRITE))
		tb_fail("REMOTE_WRITE without LOCAL_WRITE was granted");
}

/* Invalid transitions are refused and leave the state unchanged. */
static void transitions_refused(void)
{
	static const struct { enum ibv_qp_state to; int mask; } steps[] = {
		{ IBV_QPS_INIT, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS },
		{ IBV_QPS_RTR, IBV_QP_STATE },
		{ IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_PATH_MTU },
		{ IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_QKEY },
		{ IBV_QPS_SQE, IBV_QP_STATE },
	};
	struct ibv_qp_attr attr = { .port_num = 1 };
	struct tb_pair p;
	size_t i;

	create(&p);
	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		attr.qp_state = steps[i].to;
		if (!ibv_modify_qp(p.a.qp, &attr, steps[i].mask))
			tb_fail("step %zu, RTS to %d, was taken", i, steps[i].to);
		tb_expect_state(&p.a, IBV_QPS_RTS, "after a refused step");
	}
	tb_check_traffic(&p, "the same QP");
	tb_pair_destroy(&p);
}

struct ud_pair {
	struct tb_qp a, b;
	struct ibv_ah *ah;
};

static void ud_create(struct ud_pair *p)
{
	struct tb_opts opts = tb_pair_defaults();
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh = { .dgid = peer_side->gid, .sgid_index = side_a.gid_index, .hop_limit = 64 },
	};

	tb_qp_create(&p->a, &side_a, IBV_QPT_UD, &opts);
	tb_qp_create(&p->b, peer_side, IBV_QPT_UD, &opts);
	tb_ud_start(&p->a, 0x1234);
	tb_ud_start(&p->b, 0x1234);
	p->ah = ibv_create_ah(side_a.pd, &attr);
	if (!p->ah)
		tb_die("ibv_create_ah");
}

static void ud_destroy(struct ud_pair *p)
{
	if (ibv_destroy_ah(p->ah))
		tb_die("ibv_destroy_ah");
	tb_qp_destroy(&p->a);
	tb_qp_destroy(&p->b);
}

static bool ud_send(struct ud_pair *p, struct ibv_sge sge, uint32_t qpn, uint32_t qkey)
{
	struct ibv_send_wr wr = { .wr_id = FIRST, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };

	wr.wr.ud.ah = p->ah;
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = qkey;
	return post_send(&p->a, &wr);
}

/* A valid datagram must arrive, and no other one. */
static void ud_only_good_arrives(struct ud_pair *p)
{
	memset(p->a.buf, 0x77, 64);
	if (!ud_send(p, sge_of(&p->a, 0, 64), p->b.qp->qp_num, 0x1234))
		return;
	tb_expect(p->a.scq, FIRST, IBV_WC_SUCCESS, "a good datagram");
	tb_expect(p->b.rcq, 9, IBV_WC_SUCCESS, "the receive of the good datagram");
	if (p->b.buf[40] != 0x77 || p->b.buf[40 + 63] != 0x77)
		tb_fail("the receive holds other data");
	tb_expect_none(p->b.rcq, "the bad datagrams");
}

static void ud_dropped(void)
{
	struct ud_pair p;

	ud_create(&p);
	post_recv(&p.b, 9, sge_of(&p.b, 0, 1024));
	if (ud_send(&p, sge_of(&p.a, 0, 64), p.b.qp->qp_num, 0x4321))
		tb_expect(p.a.scq, FIRST, IBV_WC_SUCCESS, "a datagram with a wrong Q_Key");
	if (ud_send(&p, sge_of(&p.a, 0, 64), 0xabcdef, 0x1234))
		tb_expect(p.a.scq, FIRST, IBV_WC_SUCCESS, "a datagram to a QP that is not there");
	ud_only_good_arrives(&p);
	if (ud_send(&p, sge_of(&p.a, 0, 64), p.b.qp->qp_num, 0x1234))
		tb_expect(p.a.scq, FIRST, IBV_WC_SUCCESS, "a datagram without a receive");
	post_recv(&p.b, 9, sge_of(&p.b, 0, 1024));
	ud_only_good_arrives(&p);
	ud_destroy(&p);
}

/* An error of a send moves a UD QP to SQE, from which it can return to RTS. */
static void ud_send_error(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE };
	struct ibv_sge sge;
	struct ud_pair p;

	ud_create(&p);
	post_recv(&p.b, 9, sge_of(&p.b, 0, 1024));
	sge = sge_of(&p.a, 0, 64);
	sge.lkey = NO_SUCH_KEY;
	if (ud_send(&p, sge, p.b.qp->qp_num, 0x1234))
		tb_expect(p.a.scq, FIRST, IBV_WC_LOC_PROT_ERR, "a datagram with a wrong lkey");
	tb_expect_state(&p.a, IBV_QPS_SQE, "the sender");
	if (ud_send(&p, sge_of(&p.a, 0, 64), p.b.qp->qp_num, 0x1234))
		tb_expect(p.a.scq, FIRST, IBV_WC_WR_FLUSH_ERR, "a send in SQE");
	if (ibv_modify_qp(p.a.qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE))
		tb_fail("SQE to RTS was refused");
	ud_only_good_arrives(&p);
	ud_destroy(&p);
}

static void ud_too_long(void)
{
	uint32_t mtu = 128U << side_a.mtu;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE };
	struct ud_pair p;

	ud_create(&p);
	post_recv(&p.b, 9, sge_of(&p.b, 0, 8192));
	if (ud_send(&p, sge_of(&p.a, 0, mtu + 1), p.b.qp->qp_num, 0x1234))
		tb_expect(p.a.scq, FIRST, IBV_WC_LOC_LEN_ERR, "a datagram longer than the MTU");
	tb_expect_state(&p.a, IBV_QPS_SQE, "the sender");
	if (ibv_modify_qp(p.a.qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE))
		tb_fail("SQE to RTS was refused");
	ud_only_good_arrives(&p);
	ud_destroy(&p);
}

/* More completions than entries of the CQ: an event, the QP in ERR, other objects unaffected. */
static void cq_overrun(void)
{
	struct ibv_send_wr wr, *bad;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct tb_opts opts = tb_pair_defaults();
	struct tb_pair p;
	struct ibv_sge sge;
	int i;

	opts.max_send_wr = 256;
	tb_pair_create(&p, &side_a, peer_side, &opts);
	if (ibv_query_qp(p.a.qp, &attr, IBV_QP_CAP, &init))
		tb_die("ibv_query_qp");
	sge = sge_of(&p.a, 0, 8);
	wr = wr_of(IBV_WR_RDMA_WRITE, &sge, (uintptr_t)p.b.buf, p.b.mr->rkey);
	for (i = 0; i < 256; i++)
		if (ibv_post_send(p.a.qp, &wr, &bad))
			tb_fail("request %d was refused", i);
	tb_expect_async(&side_a, IBV_EVENT_CQ_ERR, NULL, "a CQ that ran over");
	tb_expect_state(&p.a, IBV_QPS_ERR, "its QP");
	tb_pair_destroy(&p);
}

static void check_neighbour(void)
{
	tb_check_traffic(&neighbour, "the neighbour");
}

static const struct tb_case cases[] = {
	{ "send, wrong lkey", lkey_wrong },
	{ "write, lkey with a wrong tag", lkey_wrong_tag },
	{ "send, lkey of a deregistered MR", lkey_deregistered },
	{ "send, lkey of another PD", lkey_of_other_pd },
	{ "send, SGE one byte past the end of its MR", sge_past_end },
	{ "write, SGE one byte before the start of its MR", sge_before_start },
	{ "send, SGE that wraps around the address space", sge_wraps },
	{ "write, second SGE wrong", second_sge_wrong },
	{ "read into an MR without LOCAL_WRITE", read_into_read_only },
	{ "read, wrong lkey, then wrong rkey too", read_without_a_place },
	{ "atomic, wrong lkey, then wrong rkey too", atomic_without_a_place },
	{ "write, wrong rkey", rkey_wrong_write },
	{ "read, wrong rkey", rkey_wrong_read },
	{ "atomic, wrong rkey", rkey_wrong_atomic },
	{ "write, rkey with a wrong tag", rkey_wrong_tag },
	{ "write, rkey of another PD", rkey_of_other_pd },
	{ "write, rkey of a deregistered MR", rkey_of_deregistered_mr },
	{ "write of 0 bytes, wrong rkey", rkey_wrong_zero_bytes },
	{ "write one byte past the end of the MR", write_past_end },
	{ "write of many packets past the end of the MR", write_long_past_end },
	{ "read one byte past the end of the MR", read_past_end },
	{ "read one byte before the start of the MR", read_before_start },
	{ "write, MR without REMOTE_WRITE", write_not_allowed_by_mr },
	{ "read, MR without REMOTE_READ", read_not_allowed_by_mr },
	{ "atomic, MR without REMOTE_ATOMIC", atomic_not_allowed_by_mr },
	{ "write, QP without REMOTE_WRITE", write_not_allowed_by_qp },
	{ "read, QP without REMOTE_READ", read_not_allowed_by_qp },
	{ "write, QP without remote access", no_write_allowed_by_qp },
	{ "read, QP without remote access", no_read_allowed_by_qp },
	{ "atomic, QP without REMOTE_ATOMIC", atomic_not_allowed_by_qp },
	{ "atomic, address not a multiple of 8", atomic_misaligned },
	{ "send longer than the receive", send_too_long },
	{ "receive with a wrong lkey", receive_wrong_lkey },
	{ "receive past the end of its MR", receive_past_end },
	{ "receive with an lkey of another PD", receive_lkey_of_other_pd },
	{ "send without a receive", no_receive },
	{ "request to a QP that is not there", no_such_peer },
	{ "flush in order", flush_in_order },
	{ "requests refused when posted", post_refused },
	{ "send queue full", queue_full },
	{ "objects beyond the limits", objects_refused },
	{ "wrong transitions", transitions_refused },
	{ "datagrams that must be dropped", ud_dropped },
	{ "datagram with a wrong lkey", ud_send_error },
	{ "datagram longer than the MTU", ud_too_long },
	{ "CQ overrun", cq_overrun },
};

int main(int argc, char **argv)
{
	int first = tb_open_sides(&side_a, &side_b, &peer_side, argc, argv);
	struct tb_opts opts = tb_pair_defaults();
	int status;

	tb_pair_create(&neighbour, &side_a, peer_side, &opts);
	status = tb_run(cases, ARRAY_SIZE(cases), argc - first, argv + first, check_neighbour);
	tb_pair_destroy(&neighbour);
	return status;
}
