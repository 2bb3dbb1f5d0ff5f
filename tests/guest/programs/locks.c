// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Operations during which a provider must not make system calls with a spinlock held.
 * programs/spinwatch.c, preloaded, detects them.
 *
 * locks DEVICE GID-INDEX [CASE...]
 */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <hghca_hw.h>
#include "testbed.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

static struct tb_side side;

/* A list that fills the largest receive queue is posted with its lock taken once. */
static void long_list(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_init_attr init = { .cap = { 1, 0, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct ibv_recv_wr *list, *bad;
	struct ibv_device_attr dev;
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	int i;

	if (ibv_query_device(side.ctx, &dev))
		tb_die("ibv_query_device");
	cq = ibv_create_cq(side.ctx, 16, NULL, NULL, 0);
	if (!cq)
		tb_die("ibv_create_cq");
	init.send_cq = init.recv_cq = cq;
	init.cap.max_recv_wr = dev.max_qp_wr;
	qp = ibv_create_qp(side.pd, &init);
	if (!qp)
		tb_die("ibv_create_qp");
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		tb_die("QP to INIT");
	list = calloc(dev.max_qp_wr, sizeof(*list));
	if (!list)
		tb_die("calloc");
	for (i = 0; i < dev.max_qp_wr; i++)
		list[i] = (struct ibv_recv_wr) { .wr_id = i, .next = i + 1 < dev.max_qp_wr ? &list[i + 1] : NULL };
	if (ibv_post_recv(qp, list, &bad))
		tb_fail("a list of %d receives was refused at number %td", dev.max_qp_wr, bad - list);
	free(list);
	if (ibv_destroy_qp(qp) || ibv_destroy_cq(cq))
		tb_die("taking down a QP");
}

/* ------------------------------------------------------------------ */
/* CQEs without an outstanding WQE, which are logged                    */

#define ENTRIES		16
#define MESSAGES	4
#define NO_SUCH_WQE	0xffffff00U

/* A pair whose receiver b completes to a CQ in memory of this program. */
static struct {
	struct ibv_pd *domain;
	struct ibv_cq_ex *cq;
	struct hghca_cqe *cqes;
	uint32_t seen;		/* of them, and polled */
	struct tb_pair pair;
} own;

static void *give(struct ibv_pd *pd, void *pd_context, size_t bytes, size_t alignment, uint64_t type)
{
	void *memory;

	(void)pd;
	(void)pd_context;
	(void)type;
	if (posix_memalign(&memory, alignment, bytes))
		return NULL;
	own.cqes = memory;
	return memory;
}

static void take_back(struct ibv_pd *pd, void *pd_context, void *memory, uint64_t type)
{
	(void)pd;
	(void)pd_context;
	(void)type;
	free(memory);
}

static void open_own(void)
{
	struct ibv_parent_domain_init_attr domain_attr = {
		.pd = side.pd,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS,
		.alloc = give,
		.free = take_back,
	};
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = ENTRIES - 1, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD };
	struct tb_opts opts = tb_pair_defaults();

	own.domain = ibv_alloc_parent_domain(side.ctx, &domain_attr);
	if (!own.domain)
		tb_die("ibv_alloc_parent_domain");
	own.seen = 0;
	own.cqes = NULL;
	cq_attr.parent_domain = own.domain;
	own.cq = ibv_create_cq_ex(side.ctx, &cq_attr);
	if (!own.cq || !own.cqes)
		tb_die("ibv_create_cq_ex");
	opts.recv_cq = ibv_cq_ex_to_cq(own.cq);
	tb_pair_create(&own.pair, &side, &side, &opts);
}

static void close_own(void)
{
	tb_pair_destroy(&own.pair);
	if (ibv_destroy_cq(ibv_cq_ex_to_cq(own.cq)) || ibv_dealloc_pd(own.domain))
		tb_die("taking down a CQ");
}

/* Sends messages of 0 bytes, numbered from 0 on, to b, and does not poll them. */
static void receive_messages(void)
{
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *bad_send;
	struct ibv_recv_wr recv = {}, *bad_recv;

	for (recv.wr_id = 0; recv.wr_id < MESSAGES; recv.wr_id++) {
		send.wr_id = recv.wr_id;
		if (ibv_post_recv(own.pair.b.qp, &recv, &bad_recv) ||
		    ibv_post_send(own.pair.a.qp, &send, &bad_send))
			tb_die("a message");
		tb_expect(own.pair.a.scq, send.wr_id, IBV_WC_SUCCESS, "a send");
	}
}

static struct hghca_cqe *cqe_of(uint32_t message)
{
	return &own.cqes[(own.seen + message) % ENTRIES];
}

/* The device has written the CQEs; this changes some of them to refer to no WQE. */
static void open_wrong(const uint32_t *wrong, size_t count)
{
	int64_t limit = tb_now_ms() + TB_WAIT_MS;
	volatile uint8_t *last_owner;
	size_t i;

	open_own();
	receive_messages();
	last_owner = &cqe_of(MESSAGES - 1)->owner;
	while (*last_owner != HGHCA_CQ_ENTRY_OWNER_SW)
		if (tb_now_ms() > limit)
			tb_die("no CQE of the last message");
	for (i = 0; i < count; i++)
		cqe_of(wrong[i])->wqe = htole32(NO_SUCH_WQE);
}

/* All valid CQEs have been polled, and later ones are valid, too. */
static void close_wrong(void)
{
	tb_expect_none(ibv_cq_ex_to_cq(own.cq), "all messages were polled");
	own.seen += MESSAGES;
	tb_check_traffic(&own.pair, "afterwards");
	close_own();
}

static void expect_poll(int expected, uint64_t wr_id)
{
	struct ibv_wc wc = {};
	int n;

	n = ibv_poll_cq(ibv_cq_ex_to_cq(own.cq), 1, &wc);
	if (n != expected || (n == 1 && (wc.status != IBV_WC_SUCCESS || wc.wr_id != wr_id)))
		tb_fail("ibv_poll_cq: %d, message %llu; expected %d, %llu", n, (unsigned long long)wc.wr_id, expected,
			(unsigned long long)wr_id);
}

static void wrong_plain(void)
{
	static const uint32_t wrong[] = { 1 };
	struct ibv_wc wc[MESSAGES];
	int n;

	open_wrong(wrong, ARRAY_SIZE(wrong));
	n = ibv_poll_cq(ibv_cq_ex_to_cq(own.cq), MESSAGES, wc);
	if (n != 1 || wc[0].wr_id != 0)
		tb_fail("ibv_poll_cq: %d before the CQE that is wrong, expected 1", n);
	expect_poll(-EIO, 0);
	expect_poll(1, 2);
	expect_poll(1, 3);
	close_wrong();
}

static void expect_start(int expected, uint64_t wr_id)
{
	struct ibv_poll_cq_attr attr = {};
	int error;

	error = ibv_start_poll(own.cq, &attr);
	if (error != expected || (!error && own.cq->wr_id != wr_id))
		tb_fail("ibv_start_poll: %d, message %llu; expected %d, %llu", error,
			(unsigned long long)own.cq->wr_id, expected, (unsigned long long)wr_id);
}

static void expect_next(int expected, uint64_t wr_id)
{
	int error;

	error = ibv_next_poll(own.cq);
	if (error != expected || (!error && own.cq->wr_id != wr_id))
		tb_fail("ibv_next_poll: %d, message %llu; expected %d, %llu", error,
			(unsigned long long)own.cq->wr_id, expected, (unsigned long long)wr_id);
}

static void wrong_first(void)
{
	static const uint32_t wrong[] = { 0 };

	open_wrong(wrong, ARRAY_SIZE(wrong));
	expect_start(EIO, 0);
	expect_start(0, 1);
	expect_next(0, 2);
	expect_next(0, 3);
	ibv_end_poll(own.cq);
	close_wrong();
}

/* A program may continue with ibv_next_poll() after an error. */
static void wrong_next(void)
{
	static const uint32_t wrong[] = { 1, 2 };

	open_wrong(wrong, ARRAY_SIZE(wrong));
	expect_start(0, 0);
	expect_next(EIO, 0);
	expect_next(EIO, 0);
	expect_next(0, 3);
	ibv_end_poll(own.cq);
	close_wrong();
}

static const struct tb_case cases[] = {
	{ "a list that fills the largest queue", long_list },
	{ "a CQE that is wrong, ibv_poll_cq", wrong_plain },
	{ "a CQE that is wrong, ibv_start_poll", wrong_first },
	{ "CQEs that are wrong, ibv_next_poll", wrong_next },
};

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: locks DEVICE GID-INDEX [CASE...]\n");
		return 2;
	}
	tb_side_open(&side, argv[1], atoi(argv[2]), NULL);
	return tb_run(cases, ARRAY_SIZE(cases), argc - 3, argv + 3, NULL);
}
