// SPDX-License-Identifier: GPL-2.0-or-later
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "link.h"

#define CQ_ENTRIES	256

const struct end_opts link_usual = { .type = IBV_QPT_RC, .sq_wrs = LINK_SQ_WRS };
struct tb_side link_asker;
struct tb_side *link_owner = &link_asker;
bool link_extended;

static struct tb_side other_side;
static const char *owner_device, *owner_netns;	/* netns NULL: that of the program */
static int owner_gid_index;
static struct tb_pair neighbour;

void link_errno(int error, int expected, const char *what)
{
	if (error != expected)
		tb_fail("%s: \"%s\", expected \"%s\"", what, strerror(error), strerror(expected));
}

/* ------------------------------------------------------------------ */
/* Posting and polling, by either interface                             */

static void build(struct ibv_qp_ex *qp, const struct ibv_send_wr *wr)
{
	qp->wr_id = wr->wr_id;
	qp->wr_flags = wr->send_flags;
	switch (wr->opcode) {
	case IBV_WR_BIND_MW:
		ibv_wr_bind_mw(qp, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
		return;
	case IBV_WR_LOCAL_INV:
		ibv_wr_local_inv(qp, wr->invalidate_rkey);
		return;
	case IBV_WR_SEND_WITH_INV:
		ibv_wr_send_inv(qp, wr->invalidate_rkey);
		break;
	case IBV_WR_SEND:
		ibv_wr_send(qp);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(qp, wr->imm_data);
		break;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, wr->imm_data);
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ibv_wr_atomic_fetch_add(qp, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr, wr->wr.atomic.compare_add);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(qp, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr, wr->wr.atomic.compare_add,
				      wr->wr.atomic.swap);
		break;
	default:
		tb_die("opcode %d", wr->opcode);
	}
	if (qp->qp_base.qp_type == IBV_QPT_XRC_SEND)
		ibv_wr_set_xrc_srqn(qp, wr->qp_type.xrc.remote_srqn);
	if (wr->send_flags & IBV_SEND_INLINE)
		ibv_wr_set_inline_data(qp, (void *)(uintptr_t)wr->sg_list[0].addr, wr->sg_list[0].length);
	else
		ibv_wr_set_sge_list(qp, wr->num_sge, wr->sg_list);
}

/* Posts a list; returns an errno. */
int link_post(struct tb_qp *q, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;
	struct ibv_qp_ex *qp;
	int error;

	if (!link_extended) {
		error = ibv_post_send(q->qp, wr, &bad);
		if (error && !bad)
			tb_fail("ibv_post_send: \"%s\", and bad_wr is not set", strerror(error));
		return error;
	}
	qp = ibv_qp_to_qp_ex(q->qp);
	ibv_wr_start(qp);
	for (; wr; wr = wr->next)
		build(qp, wr);
	return ibv_wr_complete(qp);
}

bool link_posted(struct tb_qp *q, struct ibv_send_wr *wr, const char *what)
{
	int error = link_post(q, wr);

	if (error)
		tb_fail("%s: posting: %s", what, strerror(error));
	return !error;
}

/* The current completion of an extended CQ. */
static void read_wc(struct ibv_cq_ex *cq, struct ibv_wc *wc)
{
	memset(wc, 0, sizeof(*wc));
	wc->wr_id = cq->wr_id;
	wc->status = cq->status;
	wc->qp_num = ibv_wc_read_qp_num(cq);
	if (wc->status != IBV_WC_SUCCESS)
		return;
	wc->opcode = ibv_wc_read_opcode(cq);
	wc->wc_flags = ibv_wc_read_wc_flags(cq);
	wc->byte_len = ibv_wc_read_byte_len(cq);
	if (wc->wc_flags & IBV_WC_WITH_INV)
		wc->invalidated_rkey = ibv_wc_read_invalidated_rkey(cq);
	else
		wc->imm_data = ibv_wc_read_imm_data(cq);
}

bool link_next_wc(struct ibv_cq *cq, struct ibv_wc *wc, const char *what)
{
	struct ibv_cq_ex *ex = (struct ibv_cq_ex *)cq;
	int64_t limit = tb_now_ms() + TB_WAIT_MS;
	struct ibv_poll_cq_attr attr = {};
	int error;

	if (!link_extended)
		return tb_poll(cq, wc, what);
	do {
		error = ibv_start_poll(ex, &attr);
		if (!error) {
			read_wc(ex, wc);
			ibv_end_poll(ex);
			return true;
		}
	} while (error == ENOENT && tb_now_ms() < limit);
	tb_fail("%s: no completion: %s", what, strerror(error));
	return false;
}

bool link_expect_wc(struct tb_qp *q, struct ibv_cq *cq, const struct ibv_wc *want, const char *what)
{
	struct ibv_wc wc;
	bool same;

	if (!link_next_wc(cq, &wc, what))
		return false;
	same = wc.wr_id == want->wr_id && wc.status == want->status && wc.qp_num == q->qp->qp_num;
	if (same && want->status == IBV_WC_SUCCESS) {
		same = wc.opcode == want->opcode && wc.wc_flags == want->wc_flags;
		if (want->opcode & IBV_WC_RECV || want->opcode == IBV_WC_RDMA_READ)
			same = same && wc.byte_len == want->byte_len;
		if (want->wc_flags & IBV_WC_WITH_INV)
			same = same && wc.invalidated_rkey == want->invalidated_rkey;
		if (want->wc_flags & IBV_WC_WITH_IMM)
			same = same && wc.imm_data == want->imm_data;
	}
	if (!same)
		tb_fail("%s: id %llu, \"%s\", opcode %d, flags 0x%x, %u bytes, key 0x%x; expected id %llu, \"%s\", "
			"opcode %d, flags 0x%x, %u bytes, key 0x%x", what, (unsigned long long)wc.wr_id,
			ibv_wc_status_str(wc.status), wc.opcode, wc.wc_flags, wc.byte_len, wc.invalidated_rkey,
			(unsigned long long)want->wr_id, ibv_wc_status_str(want->status), want->opcode,
			want->wc_flags, want->byte_len, want->invalidated_rkey);
	return same;
}

/* Checks the completion of a send. After an error it has no opcode. */
bool link_expect_sent(struct tb_qp *q, uint64_t wr_id, enum ibv_wc_opcode opcode, enum ibv_wc_status status,
		      uint32_t bytes, const char *what)
{
	struct ibv_wc want = { .wr_id = wr_id, .opcode = opcode, .status = status, .byte_len = bytes };

	return link_expect_wc(q, q->scq, &want, what);
}

static void drain(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(cq, 1, &wc) > 0)
		;
}

/* ------------------------------------------------------------------ */
/* A link: a sends requests, b owns the memory                          */

struct ibv_cq *link_make_cq(struct tb_side *side, struct ibv_comp_channel *channel)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = CQ_ENTRIES,
		.channel = channel,
		.wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM,
	};
	struct ibv_cq_ex *ex;

	if (!link_extended)
		return ibv_create_cq(side->ctx, CQ_ENTRIES, NULL, channel, 0);
	ex = ibv_create_cq_ex(side->ctx, &attr);
	return ex ? ibv_cq_ex_to_cq(ex) : NULL;
}

static uint64_t send_ops(enum ibv_qp_type type)
{
	uint64_t ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;

	if (type == IBV_QPT_UD)
		return ops;
	ops |= IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_BIND_MW |
	       IBV_QP_EX_WITH_LOCAL_INV;
	if (type == IBV_QPT_UC)
		return ops;
	return ops | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
	       IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP;
}

void link_end_open(struct tb_qp *q, struct tb_side *side, const struct end_opts *opts)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = opts->type,
		.sq_sig_all = !opts->signal_some,
		.cap = {
			.max_send_wr = opts->sq_wrs,
			.max_recv_wr = 8,
			.max_send_sge = 2,
			.max_recv_sge = 1,
			.max_inline_data = 32,
		},
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = side->pd,
	};

	memset(q, 0, sizeof(*q));
	q->side = side;
	q->scq = link_make_cq(side, NULL);
	q->rcq = link_make_cq(side, opts->channel);
	if (!q->scq || !q->rcq)
		tb_die("creating a CQ");
	init.send_cq = q->scq;
	init.recv_cq = q->rcq;
	if (link_extended) {
		init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		init.send_ops_flags = send_ops(opts->type);
	}
	q->qp = ibv_create_qp_ex(side->ctx, &init);
	if (!q->qp)
		tb_die("ibv_create_qp_ex");
	if (posix_memalign((void **)&q->buf, 4096, TB_BUF_BYTES))
		tb_die("posix_memalign");
	memset(q->buf, 0, TB_BUF_BYTES);
	q->mr = ibv_reg_mr(side->pd, q->buf, TB_BUF_BYTES, LINK_BINDABLE);
	if (!q->mr)
		tb_die("ibv_reg_mr");
}

void link_connect(struct link *l)
{
	tb_qp_connect(&l->p.a, &l->p.b, &l->opts, l->opts.qp_access, 0);
	tb_qp_connect(&l->p.b, &l->p.a, &l->opts, l->opts.qp_access, 0);
}

void link_open_with(struct link *l, const struct end_opts *opts)
{
	struct end_opts asker = *opts;

	asker.channel = NULL;
	l->opts = tb_pair_defaults();
	link_end_open(&l->p.a, &link_asker, &asker);
	link_end_open(&l->p.b, link_owner, opts);
	l->image = calloc(1, TB_BUF_BYTES);
	if (!l->image)
		tb_die("calloc");
}

void link_open(struct link *l)
{
	link_open_with(l, &link_usual);
	link_connect(l);
}

void link_close(struct link *l)
{
	tb_pair_destroy(&l->p);
	free(l->image);
}

static void to_reset(struct tb_qp *q)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	if (ibv_modify_qp(q->qp, &attr, IBV_QP_STATE))
		tb_die("QP to RESET");
	drain(q->scq);
	drain(q->rcq);
}

/* After an error: reconnects both ends. */
void link_revive(struct link *l)
{
	to_reset(&l->p.a);
	to_reset(&l->p.b);
	link_connect(l);
}

void link_check(const struct link *l, const char *what)
{
	size_t i;

	if (!memcmp(l->p.b.buf, l->image, TB_BUF_BYTES))
		return;
	for (i = 0; i < TB_BUF_BYTES; i++) {
		if (l->p.b.buf[i] == l->image[i])
			continue;
		tb_fail("%s: byte %zu of the region is 0x%02x, expected 0x%02x", what, i, l->p.b.buf[i], l->image[i]);
		return;
	}
}

uint64_t link_at(const struct link *l, size_t at)
{
	return (uintptr_t)l->p.b.buf + at;
}

/* ------------------------------------------------------------------ */
/* Requests of a for memory of b                                        */

void link_fill(uint8_t *to, size_t length)
{
	static uint8_t seed;
	size_t i;

	seed += 37;
	for (i = 0; i < length; i++)
		to[i] = seed + i * 11 + (i >> 8);
}

static enum ibv_wc_opcode wc_opcode(enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	case IBV_WR_RDMA_WRITE:
		return IBV_WC_RDMA_WRITE;
	default:
		tb_die("opcode %d", opcode);
	}
}

bool link_ask(struct link *l, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t addr, uint32_t length,
	      enum ibv_wc_status status, const char *what)
{
	struct tb_qp *a = &l->p.a;
	struct ibv_sge sge = { (uintptr_t)a->buf, length, a->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = ASK_ID, .sg_list = &sge, .num_sge = 1, .opcode = opcode };

	wr.send_flags = IBV_SEND_SIGNALED;
	wr.wr.rdma.remote_addr = addr;
	wr.wr.rdma.rkey = rkey;
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = addr;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 7;
	}
	return link_posted(a, &wr, what) && link_expect_sent(a, ASK_ID, wc_opcode(opcode), status, length, what);
}

/* A WRITE with the key; it must change the bytes at `at` of the region, and no others. */
void link_write(struct link *l, uint32_t rkey, uint64_t addr, size_t at, uint32_t length, const char *what)
{
	link_fill(l->p.a.buf, length);
	if (!link_ask(l, IBV_WR_RDMA_WRITE, rkey, addr, length, IBV_WC_SUCCESS, what))
		return;
	memcpy(l->image + at, l->p.a.buf, length);
	link_check(l, what);
}

void link_read(struct link *l, uint32_t rkey, uint64_t addr, size_t at, uint32_t length, const char *what)
{
	memset(l->p.a.buf, 0xee, length + 1);
	if (!link_ask(l, IBV_WR_RDMA_READ, rkey, addr, length, IBV_WC_SUCCESS, what))
		return;
	if (memcmp(l->p.a.buf, l->image + at, length) || l->p.a.buf[length] != 0xee)
		tb_fail("%s: wrong data were read", what);
}

void link_add(struct link *l, uint32_t rkey, uint64_t addr, size_t at, const char *what)
{
	uint64_t before, after;

	memcpy(&before, l->image + at, 8);
	after = before + 7;
	if (!link_ask(l, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, addr, 8, IBV_WC_SUCCESS, what))
		return;
	if (memcmp(l->p.a.buf, &before, 8))
		tb_fail("%s: FETCH ADD gave a wrong answer", what);
	memcpy(l->image + at, &after, 8);
	link_check(l, what);
}

/* WRITE, READ and atomic, at both ends of the range. */
void link_opens(struct link *l, uint32_t rkey, uint64_t addr, size_t at, uint32_t length, const char *what)
{
	link_write(l, rkey, addr, at, length, what);
	link_read(l, rkey, addr, at, length, what);
	link_add(l, rkey, addr, at, what);
	link_write(l, rkey, addr + length - 1, at + length - 1, 1, what);
}

/* The request is refused, the memory is unchanged, and the QPs can be used again. */
void link_refused(struct link *l, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t addr, uint32_t length,
		  const char *what)
{
	link_fill(l->p.a.buf, length);
	link_ask(l, opcode, rkey, addr, length, IBV_WC_REM_ACCESS_ERR, what);
	link_check(l, what);
	link_revive(l);
}

void link_dead(struct link *l, uint32_t rkey, uint64_t addr, const char *what)
{
	link_refused(l, IBV_WR_RDMA_WRITE, rkey, addr, 8, what);
	link_refused(l, IBV_WR_RDMA_READ, rkey, addr, 8, what);
	link_refused(l, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, addr, 8, what);
}

/* ------------------------------------------------------------------ */
/* Windows                                                              */

struct ibv_mw *link_window_in(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ibv_mw *mw = ibv_alloc_mw(pd, type);

	if (!mw)
		tb_die("ibv_alloc_mw");
	if (mw->type != type || mw->pd != pd || mw->context != pd->context)
		tb_fail("the window is of another type, PD or context than was asked for");
	return mw;
}

struct ibv_mw *link_window(enum ibv_mw_type type)
{
	return link_window_in(link_owner->pd, type);
}

void link_close_window(struct ibv_mw *mw)
{
	link_errno(ibv_dealloc_mw(mw), 0, "ibv_dealloc_mw");
}

struct ibv_send_wr link_bind_wr(struct ibv_mw *mw, struct ibv_mr *mr, uint64_t addr, uint64_t length,
				unsigned int access)
{
	struct ibv_send_wr wr = { .wr_id = BIND_ID, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED };

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info) { mr, addr, length, access };
	return wr;
}

/* Posts a bind, as the window's type requires; returns an errno. mw->rkey is then the new key or still the old one. */
int link_post_bind(struct tb_qp *q, struct ibv_mw *mw, struct ibv_mr *mr, uint64_t addr, uint64_t length,
		   unsigned int access)
{
	struct ibv_send_wr wr = link_bind_wr(mw, mr, addr, length, access);
	struct ibv_mw_bind bind = { BIND_ID, IBV_SEND_SIGNALED, wr.bind_mw.bind_info };
	uint32_t old = mw->rkey, key = wr.bind_mw.rkey;
	int error;

	error = mw->type == IBV_MW_TYPE_1 ? ibv_bind_mw(q->qp, mw, &bind) : link_post(q, &wr);
	if (mw->rkey != (error ? old : key))
		tb_fail("a bind posted: the key is 0x%x, expected 0x%x", mw->rkey, error ? old : key);
	return error;
}

void link_bind_region(struct link *l, struct ibv_mw *mw, struct ibv_mr *mr, uint64_t addr, uint64_t length,
		      unsigned int access, const char *what)
{
	link_errno(link_post_bind(&l->p.b, mw, mr, addr, length, access), 0, what);
	link_expect_sent(&l->p.b, BIND_ID, IBV_WC_BIND_MW, IBV_WC_SUCCESS, 0, what);
}

void link_post_recv(struct tb_qp *q, size_t at, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)q->buf + at, length, q->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = RECV_ID, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(q->qp, &wr, &bad))
		tb_fail("ibv_post_recv failed");
}

/* Checks the bounds of a window of `length` bytes from `base` on, which is at `at` of the region. */
void link_check_bounds(struct link *l, uint32_t rkey, uint64_t base, size_t at, uint32_t length)
{
	link_write(l, rkey, base, at, length, "the whole window");
	link_read(l, rkey, base, at, length, "the whole window");
	link_write(l, rkey, base, at, 1, "its first byte");
	link_write(l, rkey, base + length - 1, at + length - 1, 1, "its last byte");
	link_refused(l, IBV_WR_RDMA_WRITE, rkey, base, length + 1, "a byte more");
	link_refused(l, IBV_WR_RDMA_WRITE, rkey, base + length, 1, "the byte behind");
	link_refused(l, IBV_WR_RDMA_WRITE, rkey, base - 1, 1, "the byte before");
	link_refused(l, IBV_WR_RDMA_WRITE, rkey, base - 1, length, "from the byte before");
	link_refused(l, IBV_WR_RDMA_READ, rkey, base + length - 1, 2, "over its end");
	link_refused(l, IBV_WR_RDMA_READ, rkey, base - 1, 2, "over its start");
	link_refused(l, IBV_WR_RDMA_WRITE, rkey, UINT64_MAX, 1, "the last address");
	link_refused(l, IBV_WR_RDMA_WRITE, rkey, UINT64_MAX - 3, 8, "around the end of all addresses");
}

/* ------------------------------------------------------------------ */
/* The program                                                          */

static void check_neighbour(void)
{
	tb_check_traffic(&neighbour, "the neighbour");
}

void link_open_owner_again(struct tb_side *side)
{
	tb_side_open(side, owner_device, owner_gid_index, owner_netns);
}

int link_visit_owner(void)
{
	return tb_visit_netns(owner_netns);
}

int link_run(const struct tb_case *cases, size_t count, int argc, char **argv)
{
	struct tb_opts opts = tb_pair_defaults();
	int split, i, status;

	for (split = 1; split < argc && strcmp(argv[split], "--"); split++)
		;
	if (split != 4 && split != 7) {
		fprintf(stderr, "usage: %s WAY DEVICE GID-INDEX [DEVICE GID-INDEX NETNS] [-- CASE...]\n", argv[0]);
		return 2;
	}
	link_extended = !strcmp(argv[1], "extended");
	tb_side_open(&link_asker, argv[2], atoi(argv[3]), NULL);
	owner_device = argv[split == 7 ? 4 : 2];
	owner_gid_index = atoi(argv[split == 7 ? 5 : 3]);
	if (split == 7) {
		owner_netns = argv[6];
		tb_side_open(&other_side, owner_device, owner_gid_index, owner_netns);
		link_owner = &other_side;
	}
	tb_pair_create(&neighbour, &link_asker, link_owner, &opts);
	i = split < argc ? split + 1 : argc;
	status = tb_run(cases, count, argc - i, argv + i, check_neighbour);
	tb_pair_destroy(&neighbour);
	return status;
}
