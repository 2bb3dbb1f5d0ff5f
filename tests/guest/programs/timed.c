// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The device clock, CQs with timestamps, moderation of the events of a CQ, and
 * static rates, on an HCA that sends to itself: PROGRAM DEVICE GID-INDEX [-- CASE...]
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "link.h"

#define CQ_ENTRIES	64
#define MESSAGE		100
#define PERIOD_US	60000		/* of moderation */
#define NS_PER_US	1000ull

/* A pair whose receiver b completes to a CQ with timestamps. */
struct timed {
	struct ibv_comp_channel *channel;
	struct ibv_cq_ex *cq;
	struct tb_pair pair;
	unsigned int armed_events;	/* read, not acknowledged yet */
};

static struct tb_side side;
static struct timed neighbour;

static uint64_t now(void)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	if (ibv_query_rt_values_ex(side.ctx, &values) || values.comp_mask != IBV_VALUES_MASK_RAW_CLOCK)
		tb_die("ibv_query_rt_values_ex");
	return values.raw_clock.tv_nsec;
}

static struct ibv_cq_ex *make_cq(int entries, uint64_t wc_flags, struct ibv_comp_channel *channel)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = entries, .channel = channel, .wc_flags = wc_flags };

	return ibv_create_cq_ex(side.ctx, &attr);
}

static void open_timed(struct timed *t)
{
	struct tb_opts opts = tb_pair_defaults();

	memset(t, 0, sizeof(*t));
	t->channel = ibv_create_comp_channel(side.ctx);
	if (!t->channel)
		tb_die("ibv_create_comp_channel");
	t->cq = make_cq(CQ_ENTRIES, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_BYTE_LEN, t->channel);
	if (!t->cq)
		tb_die("ibv_create_cq_ex: %s", strerror(errno));
	opts.recv_cq = ibv_cq_ex_to_cq(t->cq);
	tb_pair_create(&t->pair, &side, &side, &opts);
}

static void close_timed(struct timed *t)
{
	ibv_ack_cq_events(ibv_cq_ex_to_cq(t->cq), t->armed_events);
	tb_pair_destroy(&t->pair);
	if (ibv_destroy_cq(ibv_cq_ex_to_cq(t->cq)) || ibv_destroy_comp_channel(t->channel))
		tb_die("closing: %s", strerror(errno));
}

static void post_recv(struct timed *t, uint64_t wr_id)
{
	struct ibv_sge sge = { .addr = (uintptr_t)t->pair.b.buf, .length = MESSAGE, .lkey = t->pair.b.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(t->pair.b.qp, &wr, &bad))
		tb_die("ibv_post_recv");
}

/* Sends a message to b, which is complete when this returns. */
static void send_one(struct timed *t, uint64_t wr_id)
{
	struct ibv_sge sge = { .addr = (uintptr_t)t->pair.a.buf, .length = MESSAGE, .lkey = t->pair.a.mr->lkey };
	struct ibv_send_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;

	post_recv(t, wr_id);
	if (ibv_post_send(t->pair.a.qp, &wr, &bad))
		tb_die("ibv_post_send");
	tb_expect(t->pair.a.scq, wr_id, IBV_WC_SUCCESS, "a send");
}

/* Checks the next completion; returns its timestamp. */
static uint64_t take(struct timed *t, uint64_t wr_id, enum ibv_wc_status status)
{
	int64_t limit = tb_now_ms() + TB_WAIT_MS;
	struct ibv_poll_cq_attr attr = {};
	uint64_t timestamp;
	int error;

	do {
		error = ibv_start_poll(t->cq, &attr);
	} while (error == ENOENT && tb_now_ms() < limit);
	if (error) {
		tb_fail("no completion %llu: %s", (unsigned long long)wr_id, strerror(error));
		return 0;
	}
	timestamp = ibv_wc_read_completion_ts(t->cq);
	if (t->cq->wr_id != wr_id || t->cq->status != status ||
	    (status == IBV_WC_SUCCESS && ibv_wc_read_byte_len(t->cq) != MESSAGE))
		tb_fail("completion %llu, \"%s\"; expected %llu, \"%s\"", (unsigned long long)t->cq->wr_id,
			ibv_wc_status_str(t->cq->status), (unsigned long long)wr_id, ibv_wc_status_str(status));
	ibv_end_poll(t->cq);
	return timestamp;
}

static void expect_between(uint64_t low, uint64_t timestamp, uint64_t high, const char *what)
{
	if (timestamp < low || timestamp > high)
		tb_fail("%s: %llu, not from %llu to %llu", what, (unsigned long long)timestamp,
			(unsigned long long)low, (unsigned long long)high);
}

/* ------------------------------------------------------------------ */
/* The clock, and timestamps                                            */

static uint64_t monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* The clock runs at the rate that the device reports; the clock of the guest may be less exact. */
static void raw_clock(void)
{
	struct ibv_device_attr_ex attr;
	uint64_t start, start_ns, last, ticks, expected;
	int i;

	if (ibv_query_device_ex(side.ctx, NULL, &attr))
		tb_die("ibv_query_device_ex");
	if (attr.completion_timestamp_mask != UINT64_MAX || !attr.hca_core_clock) {
		tb_fail("mask 0x%llx, clock %llu kHz", (unsigned long long)attr.completion_timestamp_mask,
			(unsigned long long)attr.hca_core_clock);
		return;
	}
	start_ns = monotonic_ns();
	start = last = now();
	for (i = 0; i < 2000; i++) {
		uint64_t tick = now();

		expect_between(last, tick, UINT64_MAX, "the next tick");
		last = tick;
	}
	usleep(300000);
	ticks = now() - start;
	expected = (monotonic_ns() - start_ns) * attr.hca_core_clock / 1000000;
	expect_between(expected - expected / 5, ticks, expected + expected / 5, "ticks since the start");
}

static void timestamps(void)
{
	uint64_t before, after, timestamp, last = 0;
	struct timed t;
	int i;

	open_timed(&t);
	for (i = 0; i < 3 * CQ_ENTRIES; i++) {
		before = now();
		send_one(&t, i);
		after = now();
		timestamp = take(&t, i, IBV_WC_SUCCESS);
		expect_between(before, timestamp, after, "timestamp");
		expect_between(last, timestamp, UINT64_MAX, "timestamp after the one before");
		last = timestamp;
	}
	close_timed(&t);
}

/* A timestamp is the time of the completion, not of a later poll. */
static void polled_late(void)
{
	uint64_t after[8], timestamp;
	struct timed t;
	int i;

	open_timed(&t);
	for (i = 0; i < 8; i++) {
		send_one(&t, i);
		after[i] = now();
		usleep(2000);
	}
	for (i = 0; i < 8; i++) {
		timestamp = take(&t, i, IBV_WC_SUCCESS);
		expect_between(i ? after[i - 1] : 0, timestamp, after[i], "timestamp");
	}
	close_timed(&t);
}

static void of_flushed(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	uint64_t before;
	struct timed t;

	open_timed(&t);
	post_recv(&t, 1);
	post_recv(&t, 2);
	before = now();
	if (ibv_modify_qp(t.pair.b.qp, &attr, IBV_QP_STATE))
		tb_die("to error");
	expect_between(before, take(&t, 1, IBV_WC_WR_FLUSH_ERR), now(), "the first flushed");
	expect_between(before, take(&t, 2, IBV_WC_WR_FLUSH_ERR), now(), "the second flushed");
	close_timed(&t);
}

/* Unpolled CQEs move with their timestamps. */
static void resized(void)
{
	static const int sizes[] = { 200, 20, 63, 1000 };
	uint64_t before, after, number = 0;
	struct timed t;
	size_t i;
	int k;

	open_timed(&t);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		before = now();
		for (k = 0; k < 10; k++)
			send_one(&t, number + k);
		after = now();
		if (ibv_resize_cq(ibv_cq_ex_to_cq(t.cq), sizes[i]))
			tb_fail("resizing to %d", sizes[i]);
		send_one(&t, number + 10);
		for (k = 0; k < 10; k++)
			expect_between(before, take(&t, number + k, IBV_WC_SUCCESS), after, "timestamp");
		expect_between(after, take(&t, number + 10, IBV_WC_SUCCESS), now(), "timestamp after resizing");
		number += 11;
	}
	close_timed(&t);
}

/* Destroying a QP removes its completions; those of other QPs keep their timestamps. */
static void purged(void)
{
	struct tb_opts opts = tb_pair_defaults();
	struct tb_pair gone;
	uint64_t times[2];
	struct timed t;

	open_timed(&t);
	opts.recv_cq = ibv_cq_ex_to_cq(t.cq);
	tb_pair_create(&gone, &side, &side, &opts);
	if (!tb_check_traffic(&gone, "the pair that goes"))
		tb_fail("no traffic");
	times[0] = now();
	send_one(&t, 1);
	{
		struct ibv_sge sge = { .addr = (uintptr_t)gone.b.buf, .length = MESSAGE, .lkey = gone.b.mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = 99, .sg_list = &sge, .num_sge = 1 }, *bad;
		struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

		if (ibv_post_recv(gone.b.qp, &wr, &bad) || ibv_modify_qp(gone.b.qp, &attr, IBV_QP_STATE))
			tb_die("the pair that goes");
	}
	times[1] = now();
	send_one(&t, 2);
	tb_pair_destroy(&gone);
	expect_between(times[0], take(&t, 1, IBV_WC_SUCCESS), times[1], "before those of the QP that went");
	expect_between(times[1], take(&t, 2, IBV_WC_SUCCESS), now(), "after those of the QP that went");
	tb_expect_none(ibv_cq_ex_to_cq(t.cq), "of the QP that went");
	close_timed(&t);
}

/* ibv_poll_cq of a CQ with timestamps returns all fields except the timestamps. */
static void polled_plainly(void)
{
	struct timed t;

	open_timed(&t);
	send_one(&t, 7);
	tb_expect(ibv_cq_ex_to_cq(t.cq), 7, IBV_WC_SUCCESS, "polled plainly");
	send_one(&t, 8);
	take(&t, 8, IBV_WC_SUCCESS);
	close_timed(&t);
}

/* ------------------------------------------------------------------ */
/* Moderation                                                           */

static void moderate(struct timed *t, uint16_t count, uint16_t period_us)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { .cq_count = count, .cq_period = period_us },
	};

	if (ibv_modify_cq(ibv_cq_ex_to_cq(t->cq), &attr))
		tb_fail("ibv_modify_cq %u %u: %s", count, period_us, strerror(errno));
}

static void arm(struct timed *t)
{
	if (ibv_req_notify_cq(ibv_cq_ex_to_cq(t->cq), 0))
		tb_die("ibv_req_notify_cq");
}

/* Returns whether an event arrives within so many ms; `when` is its time by the device clock. */
static bool event(struct timed *t, int ms, uint64_t *when)
{
	struct pollfd fd = { .fd = t->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (poll(&fd, 1, ms) != 1)
		return false;
	*when = now();
	if (ibv_get_cq_event(t->channel, &cq, &context))
		tb_die("ibv_get_cq_event");
	t->armed_events++;
	return true;
}

/* With fewer completions than the count, the event is raised at the end of the period, not earlier. */
static void by_time(void)
{
	uint64_t when, first;
	struct timed t;

	open_timed(&t);
	moderate(&t, 30, PERIOD_US);
	arm(&t);
	if (event(&t, 200, &when))
		tb_fail("an event of nothing");
	send_one(&t, 1);
	send_one(&t, 2);
	if (!event(&t, TB_WAIT_MS, &when)) {
		tb_fail("no event");
	} else {
		first = take(&t, 1, IBV_WC_SUCCESS);
		expect_between(first + PERIOD_US * NS_PER_US, when, UINT64_MAX, "the event");
		take(&t, 2, IBV_WC_SUCCESS);
	}
	if (event(&t, 200, &when))
		tb_fail("a second event for one arming");
	close_timed(&t);
}

/* The completion that reaches the count raises the event, without waiting for the period. */
static void by_number(void)
{
	enum { COUNT = 5 };
	uint64_t when, stamps[COUNT];
	bool early = false;
	struct timed t;
	int round, i;

	open_timed(&t);
	moderate(&t, COUNT, UINT16_MAX);
	for (round = 0; round < 20 && !early; round++) {
		arm(&t);
		for (i = 0; i < COUNT; i++)
			send_one(&t, i);
		if (!event(&t, TB_WAIT_MS, &when)) {
			tb_fail("no event of %d completions", COUNT);
			break;
		}
		for (i = 0; i < COUNT; i++)
			stamps[i] = take(&t, i, IBV_WC_SUCCESS);
		/* In at least one of many rounds, regardless of other load. */
		early = when < stamps[0] + UINT16_MAX * NS_PER_US;
	}
	if (!early)
		tb_fail("each event has waited for its period");
	close_timed(&t);
}

static void none(void)
{
	uint64_t when;
	struct timed t;

	open_timed(&t);
	moderate(&t, 1000, UINT16_MAX);
	moderate(&t, 0, 0);
	arm(&t);
	send_one(&t, 1);
	if (!event(&t, TB_WAIT_MS, &when))
		tb_fail("no event");
	take(&t, 1, IBV_WC_SUCCESS);
	close_timed(&t);
}

/* ------------------------------------------------------------------ */
/* Static rates                                                         */

/* Sends as many messages as the send queue holds, each of the whole buffer, until all have completed. */
static void transfer(struct tb_pair *p, enum ibv_wr_opcode opcode, int count)
{
	struct ibv_sge sge = { .addr = (uintptr_t)p->a.buf, .length = TB_BUF_BYTES, .lkey = p->a.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	int i;

	wr.wr.rdma.remote_addr = (uintptr_t)p->b.buf;
	wr.wr.rdma.rkey = p->b.mr->rkey;
	for (i = 0; i < count; i++) {
		wr.wr_id = i;
		if (ibv_post_send(p->a.qp, &wr, &bad))
			tb_die("ibv_post_send");
	}
	for (i = 0; i < count && !tb_failed(); i++)
		tb_expect(p->a.scq, i, IBV_WC_SUCCESS, "a message at a static rate");
}

/* The minimum time of the data at 2.5 Gbit/s, by the device clock; headers add to it. */
static void expect_rate(uint64_t start, uint64_t bytes, const char *what)
{
	uint64_t took = now() - start, least = bytes * 8 * 10 / 25;

	if (took < least)
		tb_fail("%s: %llu bytes in %llu ns, not %llu", what, (unsigned long long)bytes,
			(unsigned long long)took, (unsigned long long)least);
}

/* 8 MiB each way of an RC QP at 2.5 Gbit/s. */
static void static_rate(void)
{
	enum { MESSAGES = 32, ROUNDS = 4 };
	struct tb_opts opts = tb_pair_defaults();
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct tb_pair pair;
	uint64_t start;
	int i;

	opts.static_rate = IBV_RATE_2_5_GBPS;
	tb_pair_create(&pair, &side, &side, &opts);
	if (ibv_query_qp(pair.a.qp, &attr, IBV_QP_AV, &init) || attr.ah_attr.static_rate != IBV_RATE_2_5_GBPS)
		tb_fail("the QP's rate is not told");
	start = now();
	for (i = 0; i < ROUNDS; i++)
		transfer(&pair, IBV_WR_RDMA_WRITE, MESSAGES);
	expect_rate(start, (uint64_t)ROUNDS * MESSAGES * TB_BUF_BYTES, "WRITEs");
	start = now();
	for (i = 0; i < ROUNDS; i++)
		transfer(&pair, IBV_WR_RDMA_READ, MESSAGES);
	expect_rate(start, (uint64_t)ROUNDS * MESSAGES * TB_BUF_BYTES, "READs");
	tb_check_traffic(&pair, "a pair at a static rate");
	tb_pair_destroy(&pair);
}

/* A QP that waits for its rate is stopped at once, by each kind of transition. */
static void static_rate_stopped(void)
{
	static const enum ibv_qp_state states[] = { IBV_QPS_ERR, IBV_QPS_RESET };
	struct tb_opts opts = tb_pair_defaults();
	size_t i;

	opts.static_rate = IBV_RATE_2_5_GBPS;
	for (i = 0; i < ARRAY_SIZE(states); i++) {
		struct ibv_sge sge = { .length = TB_BUF_BYTES };
		struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
					  .send_flags = IBV_SEND_SIGNALED }, *bad;
		struct ibv_qp_attr attr = { .qp_state = states[i] };
		struct tb_pair pair;
		struct ibv_wc wc;
		int k;

		tb_pair_create(&pair, &side, &side, &opts);
		sge.addr = (uintptr_t)pair.a.buf;
		sge.lkey = pair.a.mr->lkey;
		wr.wr.rdma.remote_addr = (uintptr_t)pair.b.buf;
		wr.wr.rdma.rkey = pair.b.mr->rkey;
		for (k = 0; k < opts.max_send_wr; k++)
			if (ibv_post_send(pair.a.qp, &wr, &bad))
				tb_die("ibv_post_send");
		if (ibv_modify_qp(pair.a.qp, &attr, IBV_QP_STATE))
			tb_fail("ibv_modify_qp: %s", strerror(errno));
		for (k = 0; states[i] == IBV_QPS_ERR && k < opts.max_send_wr; k++) {
			if (!tb_poll(pair.a.scq, &wc, "a WRITE, done or flushed"))
				break;
			if (wc.status != IBV_WC_SUCCESS && wc.status != IBV_WC_WR_FLUSH_ERR)
				tb_fail("a WRITE: %s", ibv_wc_status_str(wc.status));
		}
		/* Completions of a QP in RESET are removed. */
		tb_expect_none(pair.a.scq, "of a QP that was stopped");
		tb_pair_destroy(&pair);
	}
}

/* 2 MiB in datagrams to an address at 2.5 Gbit/s. */
static void static_rate_ud(void)
{
	enum { BYTES = 1024, DATAGRAMS = 2048, QKEY = 0x1234 };
	struct ibv_ah_attr address = {
		.is_global = 1,
		.port_num = 1,
		.static_rate = IBV_RATE_2_5_GBPS,
		.grh = { .dgid = side.gid, .sgid_index = side.gid_index, .hop_limit = 64 },
	};
	struct tb_opts opts = tb_pair_defaults();
	struct ibv_sge sge = { .length = BYTES };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct tb_qp q;
	uint64_t start;
	int i;

	tb_qp_create(&q, &side, IBV_QPT_UD, &opts);
	tb_ud_start(&q, QKEY);
	wr.wr.ud.ah = ibv_create_ah(side.pd, &address);
	if (!wr.wr.ud.ah)
		tb_die("ibv_create_ah: %s", strerror(errno));
	/* To a wrong Q_Key: the datagrams are sent, but not received. */
	wr.wr.ud.remote_qpn = q.qp->qp_num;
	wr.wr.ud.remote_qkey = QKEY + 1;
	sge.addr = (uintptr_t)q.buf;
	sge.lkey = q.mr->lkey;
	start = now();
	for (i = 0; i < DATAGRAMS && !tb_failed(); i++) {
		wr.wr_id = i;
		if (i >= opts.max_send_wr)
			tb_expect(q.scq, i - opts.max_send_wr, IBV_WC_SUCCESS, "a datagram at a static rate");
		if (ibv_post_send(q.qp, &wr, &bad))
			tb_die("ibv_post_send");
	}
	for (i = DATAGRAMS - opts.max_send_wr; i < DATAGRAMS && !tb_failed(); i++)
		tb_expect(q.scq, i, IBV_WC_SUCCESS, "a datagram at a static rate");
	expect_rate(start, (uint64_t)DATAGRAMS * BYTES, "datagrams");
	if (ibv_destroy_ah(wr.wr.ud.ah))
		tb_fail("ibv_destroy_ah");
	tb_qp_destroy(&q);
}

/* ------------------------------------------------------------------ */
/* Bad input                                                            */

static void refused(void)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK | 1 << 5 };
	struct ibv_modify_cq_attr attr = { .attr_mask = 1 << 7 };
	struct ibv_cq_ex *cq;
	struct timed t;

	errno = 0;
	cq = make_cq(10, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK, NULL);
	link_errno(cq ? 0 : errno, EOPNOTSUPP, "timestamps of the wall clock");
	link_errno(ibv_query_rt_values_ex(side.ctx, &values), EINVAL, "undefined values");
	open_timed(&t);
	link_errno(ibv_modify_cq(ibv_cq_ex_to_cq(t.cq), &attr), EINVAL, "an undefined attribute");
	link_errno(ibv_resize_cq(ibv_cq_ex_to_cq(t.cq), 0), EINVAL, "no entries");
	send_one(&t, 1);
	take(&t, 1, IBV_WC_SUCCESS);
	close_timed(&t);
}

static const struct tb_case cases[] = {
	{ "raw clock", raw_clock },
	{ "timestamps", timestamps },
	{ "polled late", polled_late },
	{ "of flushed", of_flushed },
	{ "resized", resized },
	{ "purged", purged },
	{ "polled plainly", polled_plainly },
	{ "moderation by time", by_time },
	{ "moderation by number", by_number },
	{ "no moderation", none },
	{ "static rate", static_rate },
	{ "static rate: stopped", static_rate_stopped },
	{ "static rate: datagrams", static_rate_ud },
	{ "refused", refused },
};

static void check_neighbour(void)
{
	send_one(&neighbour, 1);
	take(&neighbour, 1, IBV_WC_SUCCESS);
}

int main(int argc, char **argv)
{
	int status;

	if (argc < 3)
		tb_die("timed DEVICE GID-INDEX [-- CASE...]");
	tb_side_open(&side, argv[1], atoi(argv[2]), NULL);
	open_timed(&neighbour);
	status = tb_run(cases, ARRAY_SIZE(cases), argc - 3, argv + 3, check_neighbour);
	close_timed(&neighbour);
	return status;
}
