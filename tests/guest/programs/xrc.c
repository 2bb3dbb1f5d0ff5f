// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Extended reliable connections: initiators that choose an SRQ of their target's
 * domain for each request, processes that share a target, and requests that must be
 * refused.  Every byte is compared.
 *
 * xrc plain|extended DEVICE GID-INDEX [DEVICE GID-INDEX NETNS] [-- CASE...]
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "link.h"

#define SERVICES	3
#define LANES		4
#define ROUNDS		200
#define SLOTS		8
#define SLOT_BYTES	40000
#define MESSAGE_MAX	33000
#define NO_SRQ		0xfffff0

/* ------------------------------------------------------------------ */
/* A domain and its objects                                             */

static struct ibv_xrcd *open_domain(struct ibv_context *ctx, int fd)
{
	struct ibv_xrcd_init_attr init = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = O_CREAT,
	};
	struct ibv_xrcd *xrcd = ibv_open_xrcd(ctx, &init);

	if (!xrcd)
		tb_die("ibv_open_xrcd");
	return xrcd;
}

static void close_domain(struct ibv_xrcd *xrcd)
{
	int error = ibv_close_xrcd(xrcd);

	if (error)
		tb_fail("ibv_close_xrcd: %s", strerror(error));
}

/* An SRQ with its CQ and receive buffers: wr_id is the number of the slot. */
struct service {
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	uint32_t srqn;
	uint8_t *slots;
	struct ibv_mr *mr;
};

static void open_service(struct service *s, struct ibv_context *ctx, struct ibv_pd *pd, struct ibv_xrcd *xrcd)
{
	struct tb_side side = { .ctx = ctx };
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 2 * SLOTS, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ |
			     IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_XRC,
		.pd = pd,
		.xrcd = xrcd,
	};

	s->cq = link_make_cq(&side, NULL);
	if (!s->cq)
		tb_die("creating a CQ");
	init.cq = s->cq;
	s->srq = ibv_create_srq_ex(ctx, &init);
	if (!s->srq)
		tb_die("ibv_create_srq_ex");
	if (ibv_get_srq_num(s->srq, &s->srqn) || !s->srqn)
		tb_die("ibv_get_srq_num");
	if (posix_memalign((void **)&s->slots, 4096, SLOTS * SLOT_BYTES))
		tb_die("posix_memalign");
	memset(s->slots, 0, SLOTS * SLOT_BYTES);
	s->mr = ibv_reg_mr(pd, s->slots, SLOTS * SLOT_BYTES, TB_ACCESS_ALL);
	if (!s->mr)
		tb_die("ibv_reg_mr");
}

static void close_service(struct service *s)
{
	if (ibv_destroy_srq(s->srq) || ibv_destroy_cq(s->cq) || ibv_dereg_mr(s->mr))
		tb_die("taking down an SRQ");
	free(s->slots);
}

static uint8_t *slot_of(const struct service *s, uint64_t slot)
{
	return s->slots + slot * SLOT_BYTES;
}

static void receive(struct service *s, uint64_t slot)
{
	struct ibv_sge sge = { (uintptr_t)slot_of(s, slot), SLOT_BYTES, s->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_srq_recv(s->srq, &wr, &bad))
		tb_fail("ibv_post_srq_recv");
}

/* ------------------------------------------------------------------ */
/* Connections                                                          */

/* pd: without effect, as librdmacm passes it, or NULL. */
static struct ibv_qp *create_target(struct ibv_context *ctx, struct ibv_xrcd *xrcd, struct ibv_pd *pd)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD | (pd ? IBV_QP_INIT_ATTR_PD : 0),
		.pd = pd,
		.xrcd = xrcd,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(ctx, &init);

	if (!qp)
		tb_die("creating a target");
	if (qp->pd != pd)
		tb_fail("the target has another PD than it was given");
	return qp;
}

static void to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = TB_ACCESS_ALL & ~IBV_ACCESS_LOCAL_WRITE,
	};

	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		tb_die("XRC QP to INIT");
}

/* Each role has its own attributes of table A1-2. */
static void to_rts(struct ibv_qp *qp, const struct tb_side *own, const struct tb_side *peer, uint32_t dest_qpn)
{
	bool target = qp->qp_type == IBV_QPT_XRC_RECV;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = own->mtu < peer->mtu ? own->mtu : peer->mtu,
		.dest_qp_num = dest_qpn,
		.rq_psn = 0xfffff0,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.ah_attr = {
			.is_global = 1,
			.port_num = 1,
			.grh = { .dgid = peer->gid, .sgid_index = own->gid_index, .hop_limit = 64 },
		},
	};

	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			  (target ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)))
		tb_die("XRC QP to RTR");
	attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.sq_psn = 0xfffff0,
		.max_rd_atomic = 4,
	};
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN |
			  (target ? 0 : IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)))
		tb_die("XRC QP to RTS");
}

/* An initiator and its target. */
struct lane {
	struct tb_qp a;
	struct ibv_qp *target;
};

static void connect_lane(struct lane *l)
{
	to_init(l->a.qp);
	to_init(l->target);
	to_rts(l->target, link_owner, &link_asker, l->a.qp->qp_num);
	to_rts(l->a.qp, &link_asker, link_owner, l->target->qp_num);
}

static void open_lane(struct lane *l, struct ibv_xrcd *xrcd)
{
	static bool with_pd;	/* for every second target */
	const struct end_opts opts = { .type = IBV_QPT_XRC_SEND, .sq_wrs = LINK_SQ_WRS };

	link_end_open(&l->a, &link_asker, &opts);
	with_pd = !with_pd;
	l->target = create_target(link_owner->ctx, xrcd, with_pd ? link_owner->pd : NULL);
	connect_lane(l);
}

static void close_lane(struct lane *l)
{
	if (ibv_destroy_qp(l->target))
		tb_die("destroying a target");
	tb_qp_destroy(&l->a);
}

/* One domain with its services and lanes. */
struct domain {
	struct ibv_xrcd *xrcd;
	struct service services[SERVICES];
	struct lane lanes[LANES];
};

static void open_all(struct domain *d)
{
	int i;

	d->xrcd = open_domain(link_owner->ctx, -1);
	for (i = 0; i < SERVICES; i++)
		open_service(&d->services[i], link_owner->ctx, link_owner->pd, d->xrcd);
	for (i = 0; i < LANES; i++)
		open_lane(&d->lanes[i], d->xrcd);
}

static void close_all(struct domain *d)
{
	int i;

	for (i = 0; i < LANES; i++)
		close_lane(&d->lanes[i]);
	for (i = 0; i < SERVICES; i++)
		close_service(&d->services[i]);
	close_domain(d->xrcd);
}

/* ------------------------------------------------------------------ */
/* Messages                                                             */

static bool sends(struct lane *l, uint32_t srqn, uint32_t length, uint32_t imm, const char *what)
{
	struct ibv_sge sge = { (uintptr_t)l->a.buf, length, l->a.mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = SEND_ID,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
		.imm_data = imm,
		.qp_type.xrc.remote_srqn = srqn,
	};

	link_fill(l->a.buf, length);
	return link_posted(&l->a, &wr, what);
}

static bool arrives(struct service *s, uint32_t qpn, uint64_t slot, const uint8_t *data, uint32_t length, uint32_t imm,
		    const char *what)
{
	struct ibv_qp qp = { .qp_num = qpn };
	struct tb_qp target = { .qp = &qp };
	struct ibv_wc want = {
		.wr_id = slot,
		.opcode = IBV_WC_RECV,
		.byte_len = length,
		.wc_flags = imm ? IBV_WC_WITH_IMM : 0,
		.imm_data = imm,
	};

	if (!link_expect_wc(&target, s->cq, &want, what))
		return false;
	if (memcmp(slot_of(s, slot), data, length)) {
		tb_fail("%s: wrong data", what);
		return false;
	}
	return true;
}

static bool delivers(struct lane *l, struct service *s, uint64_t slot, uint32_t length, uint32_t imm, const char *what)
{
	receive(s, slot);
	return sends(l, s->srqn, length, imm, what) &&
	       link_expect_sent(&l->a, SEND_ID, IBV_WC_SEND, IBV_WC_SUCCESS, 0, what) &&
	       arrives(s, l->target->qp_num, slot, l->a.buf, length, imm, what);
}

static void messages(void)
{
	struct domain d;
	int i, k;

	open_all(&d);
	for (i = 0; i < ROUNDS; i++) {
		if (!delivers(&d.lanes[i % LANES], &d.services[i % SERVICES], i % SLOTS, i * 331 % MESSAGE_MAX,
			      i % 2 ? i : 0, "a message"))
			break;
		for (k = 0; k < SERVICES; k++)
			tb_expect_none(d.services[k].cq, "the other SRQs");
	}
	close_all(&d);
}

/* All lanes at once, each to another SRQ: each arriving message belongs to one of them, complete. */
static void messages_at_once(void)
{
	struct ibv_wc wc;
	struct domain d;
	int i, k, lane;

	open_all(&d);
	for (i = 0; i < 2 * LANES; i++)
		receive(&d.services[0], i);
	for (k = 0; k < 2; k++)
		for (i = 0; i < LANES; i++)
			sends(&d.lanes[i], d.services[0].srqn, 30000, 1 + i, "lanes at once");
	for (k = 0; k < 2 * LANES; k++) {
		if (!link_next_wc(d.services[0].cq, &wc, "lanes at once"))
			break;
		lane = wc.imm_data - 1;
		if (wc.status != IBV_WC_SUCCESS || lane < 0 || lane >= LANES ||
		    wc.qp_num != d.lanes[lane].target->qp_num || wc.byte_len != 30000)
			tb_fail("lanes at once: %s, lane %d, QP 0x%x", ibv_wc_status_str(wc.status), lane, wc.qp_num);
	}
	for (i = 0; i < LANES; i++)
		for (k = 0; k < 2; k++)
			link_expect_sent(&d.lanes[i].a, SEND_ID, IBV_WC_SEND, IBV_WC_SUCCESS, 0, "lanes at once");
	close_all(&d);
}

static bool asks(struct lane *l, struct ibv_send_wr *wr, enum ibv_wc_opcode opcode, uint32_t bytes,
		 enum ibv_wc_status status, const char *what)
{
	wr->wr_id = ASK_ID;
	return link_posted(&l->a, wr, what) && link_expect_sent(&l->a, ASK_ID, opcode, status, bytes, what);
}

static void remote_memory(void)
{
	struct domain d;
	struct lane *l = &d.lanes[0];
	struct service *s = &d.services[1];
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1 };
	uint64_t word;

	open_all(&d);
	wr.qp_type.xrc.remote_srqn = s->srqn;
	wr.wr.rdma.remote_addr = (uintptr_t)s->slots;
	wr.wr.rdma.rkey = s->mr->rkey;

	link_fill(l->a.buf, MESSAGE_MAX);
	sge = (struct ibv_sge) { (uintptr_t)l->a.buf, MESSAGE_MAX, l->a.mr->lkey };
	wr.opcode = IBV_WR_RDMA_WRITE;
	asks(l, &wr, IBV_WC_RDMA_WRITE, 0, IBV_WC_SUCCESS, "WRITE");
	if (memcmp(s->slots, l->a.buf, MESSAGE_MAX))
		tb_fail("WRITE: wrong data");
	sge.addr += MESSAGE_MAX;
	sge.length = 20000;
	wr.opcode = IBV_WR_RDMA_READ;
	asks(l, &wr, IBV_WC_RDMA_READ, 20000, IBV_WC_SUCCESS, "READ");
	if (memcmp(s->slots, l->a.buf + MESSAGE_MAX, 20000))
		tb_fail("READ: wrong data");

	sge.length = 8;
	word = 1000;
	memcpy(s->slots, &word, sizeof(word));
	wr.wr.atomic.remote_addr = (uintptr_t)s->slots;
	wr.wr.atomic.rkey = s->mr->rkey;
	wr.wr.atomic.compare_add = 7;
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	asks(l, &wr, IBV_WC_FETCH_ADD, 8, IBV_WC_SUCCESS, "fetch and add");
	memcpy(&word, s->slots, sizeof(word));
	if (word != 1007)
		tb_fail("fetch and add: the word is %llu", (unsigned long long)word);
	wr.wr.atomic.compare_add = 1007;
	wr.wr.atomic.swap = 42;
	wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	asks(l, &wr, IBV_WC_COMP_SWAP, 8, IBV_WC_SUCCESS, "compare and swap");
	memcpy(&word, s->slots, sizeof(word));
	if (word != 42)
		tb_fail("compare and swap: the word is %llu", (unsigned long long)word);
	delivers(l, s, 2, 5000, 0, "a message after that");
	close_all(&d);
}

/* The sender waits for a receive, because of RNR NAKs. */
static void late_receive(void)
{
	struct domain d;

	open_all(&d);
	sends(&d.lanes[0], d.services[0].srqn, 1000, 0, "a send too early");
	usleep(20000);
	receive(&d.services[0], 3);
	link_expect_sent(&d.lanes[0].a, SEND_ID, IBV_WC_SEND, IBV_WC_SUCCESS, 0, "a send too early");
	arrives(&d.services[0], d.lanes[0].target->qp_num, 3, d.lanes[0].a.buf, 1000, 0, "a send too early");
	close_all(&d);
}

/* ------------------------------------------------------------------ */
/* Processes that share                                                 */

static int domain_file(char *path)
{
	int fd;

	strcpy(path, "/tmp/xrcd-XXXXXX");
	fd = mkstemp(path);
	if (fd < 0)
		tb_die("mkstemp");
	return fd;
}

/* The SRQ is in a context that has neither created nor opened the target. */
static void shared_domain(void)
{
	char path[32];
	int fd = domain_file(path);
	struct ibv_qp_open_attr open = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_type = IBV_QPT_XRC_RECV,
	};
	struct ibv_xrcd *first, *second;
	struct ibv_qp *opened;
	struct tb_side again;
	struct service s;
	struct lane l;

	link_open_owner_again(&again);
	first = open_domain(link_owner->ctx, fd);
	second = open_domain(again.ctx, fd);
	open.xrcd = second;
	open_service(&s, again.ctx, again.pd, second);
	open_lane(&l, first);
	delivers(&l, &s, 0, MESSAGE_MAX, 7, "to another process");

	open.qp_num = l.target->qp_num;
	opened = ibv_open_qp(again.ctx, &open);
	if (!opened)
		tb_die("ibv_open_qp");
	if (opened->qp_num != l.target->qp_num)
		tb_fail("ibv_open_qp gave QP 0x%x, not 0x%x", opened->qp_num, l.target->qp_num);
	/* Its creator destroys it, and it continues to exist. */
	if (ibv_destroy_qp(l.target))
		tb_fail("destroying the creator's target");
	l.target = opened;
	delivers(&l, &s, 1, 12345, 0, "after the creator has gone");

	open.qp_num = NO_SRQ;
	errno = 0;
	if (ibv_open_qp(again.ctx, &open))
		tb_fail("a QP that does not exist was opened");
	close_lane(&l);
	close_service(&s);
	close_domain(second);
	close_domain(first);
	ibv_dealloc_pd(again.pd);
	ibv_close_device(again.ctx);
	close(fd);
	unlink(path);
}

/* ------------------------------------------------------------------ */
/* Refused requests                                                     */

static void refused(struct lane *l, uint32_t srqn, const char *what)
{
	sends(l, srqn, 5000, 0, what);
	link_expect_sent(&l->a, SEND_ID, IBV_WC_SEND, IBV_WC_REM_ACCESS_ERR, 0, what);
	tb_expect_async(link_owner, IBV_EVENT_QP_ACCESS_ERR, l->target, what);
}

static void other_domains(void)
{
	struct ibv_srq_init_attr plain = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *basic = ibv_create_srq(link_owner->pd, &plain);
	struct ibv_xrcd *xrcd = open_domain(link_owner->ctx, -1);
	struct service foreign;
	struct domain d;
	uint32_t srqn;
	int i;

	open_all(&d);
	open_service(&foreign, link_owner->ctx, link_owner->pd, xrcd);
	for (i = 0; i < SLOTS; i++)
		receive(&foreign, i);
	refused(&d.lanes[0], foreign.srqn, "an SRQ of another domain");
	refused(&d.lanes[1], NO_SRQ, "no SRQ of this number");
	refused(&d.lanes[2], 0, "SRQ 0");
	tb_expect_none(foreign.cq, "an SRQ of another domain");
	if (!basic)
		tb_die("ibv_create_srq");
	link_errno(ibv_get_srq_num(basic, &srqn), EOPNOTSUPP, "the number of a basic SRQ");
	delivers(&d.lanes[3], &d.services[2], 0, 100, 0, "a lane that has asked for nothing bad");
	ibv_destroy_srq(basic);
	close_all(&d);
	close_service(&foreign);
	close_domain(xrcd);
}

/* A request must not use memory of another PD than the SRQ's. */
static void other_pd(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(link_owner->ctx);
	struct domain d;
	struct lane *l = &d.lanes[0];
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE };
	struct service s;

	open_all(&d);
	open_service(&s, link_owner->ctx, pd, d.xrcd);
	sge = (struct ibv_sge) { (uintptr_t)l->a.buf, 100, l->a.mr->lkey };
	wr.wr.rdma.remote_addr = (uintptr_t)s.slots;
	wr.wr.rdma.rkey = s.mr->rkey;
	wr.qp_type.xrc.remote_srqn = s.srqn;
	asks(l, &wr, IBV_WC_RDMA_WRITE, 0, IBV_WC_SUCCESS, "memory of the SRQ's PD");
	wr.qp_type.xrc.remote_srqn = d.services[0].srqn;
	asks(l, &wr, IBV_WC_RDMA_WRITE, 0, IBV_WC_REM_ACCESS_ERR, "memory of another SRQ's PD");
	close_service(&s);
	close_all(&d);
	ibv_dealloc_pd(pd);
}

/* Destroying an SRQ removes its completions; the next SRQ of its number starts without completions. */
static void srq_destroyed(void)
{
	struct domain d;
	struct service *s = &d.services[0];
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = SLOTS, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ |
			     IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_XRC,
		.pd = link_owner->pd,
	};

	open_all(&d);
	receive(s, 0);
	sends(&d.lanes[0], s->srqn, 3000, 0, "before the SRQ goes");
	link_expect_sent(&d.lanes[0].a, SEND_ID, IBV_WC_SEND, IBV_WC_SUCCESS, 0, "before the SRQ goes");
	if (ibv_destroy_srq(s->srq))
		tb_die("ibv_destroy_srq");
	tb_expect_none(s->cq, "completions of an SRQ that has gone");
	init.cq = s->cq;
	init.xrcd = d.xrcd;
	s->srq = ibv_create_srq_ex(link_owner->ctx, &init);
	if (!s->srq || ibv_get_srq_num(s->srq, &s->srqn))
		tb_die("ibv_create_srq_ex");
	delivers(&d.lanes[0], s, 4, 3000, 0, "to the new SRQ");
	close_all(&d);
}

static void in_use(void)
{
	struct domain d;

	open_all(&d);
	link_errno(ibv_close_xrcd(d.xrcd), EBUSY, "closing a domain in use");
	link_errno(ibv_destroy_cq(d.services[0].cq), EBUSY, "destroying the CQ of an SRQ");
	delivers(&d.lanes[0], &d.services[0], 0, 100, 0, "after both");
	close_all(&d);
}

static void no_target(struct ibv_qp_init_attr_ex *init, int error, const char *what)
{
	struct ibv_qp *qp;

	errno = 0;
	qp = ibv_create_qp_ex(link_owner->ctx, init);
	if (qp) {
		tb_fail("%s: it was created", what);
		ibv_destroy_qp(qp);
	} else {
		link_errno(errno, error, what);
	}
}

static void no_srq(struct ibv_srq_init_attr_ex *init, int error, const char *what)
{
	struct ibv_srq *srq;

	errno = 0;
	srq = ibv_create_srq_ex(link_owner->ctx, init);
	if (srq) {
		tb_fail("%s: it was created", what);
		ibv_destroy_srq(srq);
	} else {
		link_errno(errno, error, what);
	}
}

static void bad_input(void)
{
	struct ibv_cq *cq = ibv_create_cq(link_owner->ctx, 8, NULL, NULL, 0);
	struct ibv_xrcd *xrcd = open_domain(link_owner->ctx, -1);
	struct ibv_srq_init_attr plain = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *basic = ibv_create_srq(link_owner->pd, &plain);
	struct ibv_qp_init_attr_ex qp = { .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_PD,
					  .pd = link_owner->pd };
	struct ibv_srq_init_attr_ex srq = {
		.attr = plain.attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_XRC,
		.pd = link_owner->pd,
		.xrcd = xrcd,
		.cq = cq,
	};
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *bad_send;
	struct ibv_recv_wr recv = { 0 }, *bad_recv;
	struct lane l;

	if (!cq || !basic)
		tb_die("creating a CQ and an SRQ");
	no_target(&qp, EINVAL, "a target with a PD and no domain");
	qp.comp_mask = 0;
	no_target(&qp, EINVAL, "a target without a domain");
	qp = (struct ibv_qp_init_attr_ex) {
		.qp_type = IBV_QPT_XRC_SEND, .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = link_owner->pd,
		.cap = { .max_send_wr = 4, .max_send_sge = 1 }, .send_cq = cq, .srq = basic,
	};
	no_target(&qp, EINVAL, "an initiator with an SRQ");
	qp.srq = NULL;
	qp.send_cq = NULL;
	no_target(&qp, EINVAL, "an initiator without a CQ");
	no_srq(&srq, EINVAL, "an XRC SRQ without domain and CQ");
	srq.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD;
	no_srq(&srq, EINVAL, "an XRC SRQ without a CQ");
	srq.comp_mask ^= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	no_srq(&srq, EINVAL, "an XRC SRQ without a domain");

	open_lane(&l, xrcd);
	link_errno(ibv_post_recv(l.a.qp, &recv, &bad_recv), EINVAL, "a receive posted to an initiator");
	link_errno(ibv_post_recv(l.target, &recv, &bad_recv), EINVAL, "a receive posted to a target");
	link_errno(ibv_post_send(l.target, &send, &bad_send), EINVAL, "a send posted to a target");
	close_lane(&l);
	ibv_destroy_srq(basic);
	ibv_destroy_cq(cq);
	close_domain(xrcd);
}

static const struct tb_case cases[] = {
	{ "messages to three SRQs", messages },
	{ "messages at once", messages_at_once },
	{ "WRITE, READ, atomics", remote_memory },
	{ "late receive", late_receive },
	{ "shared domain", shared_domain },
	{ "SRQs of other domains", other_domains },
	{ "memory of another PD", other_pd },
	{ "SRQ destroyed", srq_destroyed },
	{ "in use", in_use },
	{ "bad input", bad_input },
};

int main(int argc, char **argv)
{
	return link_run(cases, ARRAY_SIZE(cases), argc, argv);
}
