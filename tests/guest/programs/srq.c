// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Shared receive queues: messages of many QPs with every byte compared, the
 * events, resizing, and what must be refused.
 *
 * srq DEVICE GID-INDEX [DEVICE GID-INDEX NETNS] [-- CASE...]
 *
 * With one device everything is on this device; with two, the senders are on
 * the first, and the SRQ with the receivers on the second.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "testbed.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define LANES		16
#define WINDOW		4	/* outstanding messages of a lane */
#define WINDOW_BYTES	(TB_BUF_BYTES / WINDOW)
#define MESSAGE_MAX	9000
#define SLOT_BYTES	10240
#define SLOTS_MAX	2047
#define SGES_MAX	8
#define LONG_BYTES	(32 << 20)
#define LONG_SGES	32	/* a long message is LONG_BYTES times this */
#define CQ_ENTRIES	4096
#define QUIET_MS	50	/* time without a further event */
#define QKEY		0x1234
#define GRH_BYTES	40
#define NO_SUCH_KEY	0xdeadbeefU

static struct tb_side side_a, side_b;
static struct tb_side *peer_side;
static struct tb_pair neighbour;

/* ------------------------------------------------------------------ */
/* The SRQ and its receive buffers: wr_id is the number of the slot     */

static struct ibv_srq *srq;
static struct ibv_srq_attr size;	/* granted size of the SRQ */
static uint8_t *slots;
static struct ibv_mr *slots_mr;
static bool posted[SLOTS_MAX];

static uint8_t *slot_data(uint64_t slot)
{
	return slots + slot * SLOT_BYTES;
}

static void srq_open_in(struct ibv_pd *pd, uint32_t max_wr, uint32_t max_sge)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = max_wr, .max_sge = max_sge } };

	srq = ibv_create_srq(pd, &init);
	if (!srq)
		tb_die("ibv_create_srq");
	size = init.attr;
	if (posix_memalign((void **)&slots, 4096, SLOTS_MAX * SLOT_BYTES))
		tb_die("posix_memalign");
	slots_mr = ibv_reg_mr(pd, slots, SLOTS_MAX * SLOT_BYTES, IBV_ACCESS_LOCAL_WRITE);
	if (!slots_mr)
		tb_die("ibv_reg_mr");
	memset(posted, 0, sizeof(posted));
}

static void srq_open(uint32_t max_wr, uint32_t max_sge)
{
	srq_open_in(peer_side->pd, max_wr, max_sge);
}

static void srq_close(void)
{
	int error = ibv_destroy_srq(srq);

	if (error)
		tb_die("ibv_destroy_srq: %s", strerror(error));
	if (ibv_dereg_mr(slots_mr))
		tb_die("ibv_dereg_mr");
	free(slots);
}

/* Posts a slot in one to max_sge pieces; returns an errno. */
static int try_post(uint32_t slot)
{
	uint32_t pieces = 1 + slot % (size.max_sge < SGES_MAX ? size.max_sge : SGES_MAX);
	struct ibv_sge sge[SGES_MAX];
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = sge, .num_sge = pieces }, *bad = NULL;
	uint32_t i, at = 0;
	int error;

	for (i = 0; i < pieces; i++) {
		uint32_t end = i + 1 == pieces ? SLOT_BYTES : at + 100 + i * 333 + slot % 50;

		sge[i] = (struct ibv_sge) { (uintptr_t)slot_data(slot) + at, end - at, slots_mr->lkey };
		at = end;
	}
	posted[slot] = true;
	error = ibv_post_srq_recv(srq, &wr, &bad);
	if (!error)
		return 0;
	posted[slot] = false;
	if (bad != &wr)
		tb_fail("bad_wr does not name the receive that was refused");
	return error;
}

static bool post(uint32_t slot)
{
	int error = try_post(slot);

	if (error)
		tb_fail("slot %u: ibv_post_srq_recv: %s", slot, strerror(error));
	return !error;
}

static void post_range(uint32_t first, uint32_t count)
{
	uint32_t slot;

	for (slot = first; slot < first + count && post(slot); slot++)
		;
}

/* Posts until the SRQ is full; returns the number posted. */
static uint32_t fill_up(void)
{
	uint32_t slot, count = 0;
	int error = 0;

	for (slot = 0; slot < SLOTS_MAX && !error; slot++) {
		if (posted[slot])
			continue;
		error = try_post(slot);
		count += !error;
	}
	if (error != ENOMEM)
		tb_fail("a full SRQ: \"%s\", expected \"%s\"", strerror(error), strerror(ENOMEM));
	return count;
}

static int set_limit(uint32_t limit)
{
	struct ibv_srq_attr attr = { .srq_limit = limit };

	return ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT);
}

static int resize(uint32_t max_wr)
{
	struct ibv_srq_attr attr = { .max_wr = max_wr };

	return ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
}

static void expect_errno(int error, int expected, const char *what)
{
	if (error != expected)
		tb_fail("%s: \"%s\", expected \"%s\"", what, strerror(error), strerror(expected));
}

static void expect_attr(uint32_t max_wr, uint32_t limit)
{
	struct ibv_srq_attr attr;

	if (ibv_query_srq(srq, &attr))
		tb_fail("ibv_query_srq failed");
	else if (attr.max_wr != max_wr || attr.max_sge != size.max_sge || attr.srq_limit != limit)
		tb_fail("the SRQ says: %u WRs, %u SGEs, limit %u; expected %u, %u, %u", attr.max_wr, attr.max_sge,
			attr.srq_limit, max_wr, size.max_sge, limit);
}

/* ------------------------------------------------------------------ */
/* Events                                                               */

/* Returns the number of events of a type for an object: waits for `least`, then some time for more. */
static int count_events(enum ibv_event_type type, const void *object, int least)
{
	struct pollfd pfd = { .fd = peer_side->ctx->async_fd, .events = POLLIN };
	int64_t limit = tb_now_ms() + (least ? TB_WAIT_MS : QUIET_MS), left;
	struct ibv_async_event event;
	int count = 0;

	while ((left = limit - tb_now_ms()) > 0) {
		if (poll(&pfd, 1, left) <= 0 || ibv_get_async_event(peer_side->ctx, &event))
			continue;
		if (event.event_type == type && (void *)event.element.qp == object && ++count == least)
			limit = tb_now_ms() + QUIET_MS;
		ibv_ack_async_event(&event);
	}
	return count;
}

static void expect_events(enum ibv_event_type type, const void *object, int expected, const char *what)
{
	int count = count_events(type, object, expected);

	if (count != expected)
		tb_fail("%s: %d events \"%s\", expected %d", what, count, ibv_event_type_str(type), expected);
}

/* ------------------------------------------------------------------ */
/* Lanes: each has a sender, and a receiver on the SRQ                  */

static struct lane {
	struct tb_pair p;
	uint32_t sent, acked, received;
} lanes[LANES];

static struct tb_opts lane_opts(void)
{
	struct tb_opts opts = tb_pair_defaults();

	opts.rnr_retry = 7;
	opts.srq = srq;
	return opts;
}

static void lane_open_with(struct lane *lane, const struct tb_opts *opts)
{
	memset(lane, 0, sizeof(*lane));
	tb_pair_create(&lane->p, &side_a, peer_side, opts);
}

static void lane_open(struct lane *lane)
{
	struct tb_opts opts = lane_opts();

	lane_open_with(lane, &opts);
}

static uint32_t message_size(uint32_t lane, uint32_t seq)
{
	return 1 + (lane * 977 + seq * 331) % MESSAGE_MAX;
}

static uint8_t message_byte(uint32_t lane, uint32_t seq, uint32_t at)
{
	return lane * 31 + seq + at * 7 + (at >> 8);
}

static bool send_as(struct lane *lane, enum ibv_wr_opcode opcode, uint32_t bytes)
{
	uint8_t *from = lane->p.a.buf + lane->sent % WINDOW * WINDOW_BYTES;
	struct ibv_sge sge = { (uintptr_t)from, bytes, lane->p.a.mr->lkey };
	struct ibv_send_wr wr = { .wr_id = lane->sent, .sg_list = &sge, .num_sge = 1, .opcode = opcode }, *bad;
	uint32_t i;
	int error;

	for (i = 0; i < bytes; i++)
		from[i] = message_byte(lane - lanes, lane->sent, i);
	wr.imm_data = lane->sent;
	wr.wr.rdma.remote_addr = (uintptr_t)lane->p.b.buf;
	wr.wr.rdma.rkey = lane->p.b.mr->rkey;
	error = ibv_post_send(lane->p.a.qp, &wr, &bad);
	if (error)
		tb_fail("ibv_post_send: %s", strerror(error));
	else
		lane->sent++;
	return !error;
}

static bool send_next(struct lane *lane)
{
	return send_as(lane, IBV_WR_SEND, message_size(lane - lanes, lane->sent));
}

static bool check_message(const struct lane *lane, const struct ibv_wc *wc, const uint8_t *data)
{
	uint32_t number = lane - lanes, seq = lane->received, i;

	if (wc->byte_len != message_size(number, seq)) {
		tb_fail("lane %u, message %u: %u bytes, expected %u", number, seq, wc->byte_len,
			message_size(number, seq));
		return false;
	}
	for (i = 0; i < wc->byte_len; i++) {
		if (data[i] == message_byte(number, seq, i))
			continue;
		tb_fail("lane %u, message %u: wrong byte %u in slot %llu", number, seq, i,
			(unsigned long long)wc->wr_id);
		return false;
	}
	return true;
}

static bool take_slot(const struct ibv_wc *wc)
{
	if (wc->wr_id >= SLOTS_MAX || !posted[wc->wr_id]) {
		tb_fail("wr_id %llu was not posted", (unsigned long long)wc->wr_id);
		return false;
	}
	posted[wc->wr_id] = false;
	return true;
}

/* Checks a successful receive: it is the next message of the QP's lane. */
static bool receive(const struct ibv_wc *wc)
{
	uint32_t i;

	if (!take_slot(wc))
		return false;
	if (wc->status != IBV_WC_SUCCESS || wc->opcode != IBV_WC_RECV) {
		tb_fail("slot %llu: status \"%s\", opcode %d", (unsigned long long)wc->wr_id,
			ibv_wc_status_str(wc->status), wc->opcode);
		return false;
	}
	for (i = 0; i < LANES; i++) {
		if (!lanes[i].p.b.qp || lanes[i].p.b.qp->qp_num != wc->qp_num)
			continue;
		if (!check_message(&lanes[i], wc, slot_data(wc->wr_id)))
			return false;
		lanes[i].received++;
		return true;
	}
	tb_fail("a receive of QP 0x%x, which is not ours", wc->qp_num);
	return false;
}

static bool acknowledged(struct lane *lane)
{
	if (!tb_expect(lane->p.a.scq, lane->acked, IBV_WC_SUCCESS, "a send"))
		return false;
	lane->acked++;
	return true;
}

/* One message from end to end. */
static bool deliver(struct lane *lane)
{
	struct ibv_wc wc;

	return send_next(lane) && acknowledged(lane) && tb_poll(lane->p.b.rcq, &wc, "a receive") && receive(&wc);
}

static void deliver_many(struct lane *lane, uint32_t count)
{
	while (count-- && deliver(lane))
		;
}

/* Polls as many receives with this status; their slots are free again. */
static void expect_receive(struct lane *lane, enum ibv_wc_status status, const char *what)
{
	struct ibv_wc wc;

	if (!tb_poll(lane->p.b.rcq, &wc, what) || !take_slot(&wc))
		return;
	if (wc.status != status || wc.qp_num != lane->p.b.qp->qp_num)
		tb_fail("%s: status \"%s\", QP 0x%x; expected \"%s\", 0x%x", what, ibv_wc_status_str(wc.status),
			wc.qp_num, ibv_wc_status_str(status), lane->p.b.qp->qp_num);
}

static void to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
		tb_fail("QP to state %d was refused", state);
}

static void lane_close(struct lane *lane)
{
	tb_pair_destroy(&lane->p);
	memset(lane, 0, sizeof(*lane));
}

/* ------------------------------------------------------------------ */
/* Many lanes at once                                                   */

static struct ibv_cq *shared_cq;
static struct ibv_cq_ex *extended_cq;

static int poll_extended(struct ibv_wc *wc, int max)
{
	struct ibv_poll_cq_attr attr = {};
	int n = 0, error;

	error = ibv_start_poll(extended_cq, &attr);
	if (error)
		return error == ENOENT ? 0 : -error;
	while (!error && n < max) {
		wc[n].wr_id = extended_cq->wr_id;
		wc[n].status = extended_cq->status;
		wc[n].opcode = ibv_wc_read_opcode(extended_cq);
		wc[n].byte_len = ibv_wc_read_byte_len(extended_cq);
		wc[n].qp_num = ibv_wc_read_qp_num(extended_cq);
		if (++n < max)
			error = ibv_next_poll(extended_cq);
	}
	ibv_end_poll(extended_cq);
	return error && error != ENOENT ? -error : n;
}

static int poll_receives(struct ibv_wc *wc, int max)
{
	static unsigned int turn;

	if (extended_cq)
		return poll_extended(wc, max);
	if (shared_cq)
		return ibv_poll_cq(shared_cq, max, wc);
	return ibv_poll_cq(lanes[turn++ % LANES].p.b.rcq, max, wc);
}

static bool step_lane(struct lane *lane, uint32_t messages)
{
	struct ibv_wc wc;

	if (lane->sent < messages && lane->sent - lane->acked < WINDOW && !send_next(lane))
		return false;
	switch (ibv_poll_cq(lane->p.a.scq, 1, &wc)) {
	case 0:
		return true;
	case 1:
		if (wc.status == IBV_WC_SUCCESS && wc.wr_id == lane->acked) {
			lane->acked++;
			return true;
		}
		tb_fail("lane %td, send %llu: %s", lane - lanes, (unsigned long long)wc.wr_id,
			ibv_wc_status_str(wc.status));
		return false;
	default:
		tb_fail("ibv_poll_cq failed");
		return false;
	}
}

static bool step_receives(void)
{
	struct ibv_wc wc[8];
	int n, i;

	n = poll_receives(wc, ARRAY_SIZE(wc));
	if (n < 0)
		tb_fail("polling failed: %d", n);
	for (i = 0; i < n; i++)
		if (!receive(&wc[i]) || !post(wc[i].wr_id))
			return false;
	return n >= 0;
}

static bool all_done(uint32_t messages)
{
	uint32_t i;

	for (i = 0; i < LANES; i++)
		if (lanes[i].acked < messages || lanes[i].received < messages)
			return false;
	return true;
}

/* All lanes send so many messages; `each_turn` is called repeatedly. */
static void run_lanes(uint32_t messages, void (*each_turn)(void))
{
	int64_t limit = tb_now_ms() + 6 * TB_WAIT_MS;
	uint32_t i;

	while (!all_done(messages)) {
		for (i = 0; i < LANES; i++)
			if (!step_lane(&lanes[i], messages))
				return;
		if (!step_receives())
			return;
		if (each_turn)
			each_turn();
		if (tb_now_ms() > limit) {
			tb_fail("the messages do not come to an end");
			return;
		}
	}
}

static void open_lanes(void)
{
	struct tb_opts opts = lane_opts();
	uint32_t i;

	opts.recv_cq = shared_cq;
	for (i = 0; i < LANES; i++)
		lane_open_with(&lanes[i], &opts);
}

static void close_lanes(void)
{
	uint32_t i;

	for (i = 0; i < LANES; i++)
		lane_close(&lanes[i]);
	if (shared_cq && ibv_destroy_cq(shared_cq))
		tb_die("ibv_destroy_cq");
	shared_cq = NULL;
	extended_cq = NULL;
}

static void open_shared_cq(void)
{
	shared_cq = ibv_create_cq(peer_side->ctx, CQ_ENTRIES, NULL, NULL, 0);
	if (!shared_cq)
		tb_die("ibv_create_cq");
}

static void open_extended_cq(void)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = CQ_ENTRIES,
		.wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_QP_NUM,
	};

	extended_cq = ibv_create_cq_ex(peer_side->ctx, &attr);
	if (!extended_cq)
		tb_die("ibv_create_cq_ex");
	shared_cq = ibv_cq_ex_to_cq(extended_cq);
}

/* The SRQ is always filled as far as possible, and sometimes empty. */
static void many_lanes(uint32_t max_wr, uint32_t max_sge, uint32_t messages, void (*open_cq)(void))
{
	srq_open(max_wr, max_sge);
	if (open_cq)
		open_cq();
	open_lanes();
	post_range(0, size.max_wr);
	run_lanes(messages, NULL);
	close_lanes();
	srq_close();
}

static void many_qps(void)		{ many_lanes(63, 3, 100, NULL); }
static void many_qps_one_cq(void)	{ many_lanes(40, 8, 100, open_shared_cq); }
static void many_qps_extended_cq(void)	{ many_lanes(100, 1, 100, open_extended_cq); }
static void more_qps_than_receives(void) { many_lanes(1, 1, 10, open_shared_cq); }

/* ------------------------------------------------------------------ */
/* The life of an SRQ                                                   */

static void life(void)
{
	struct ibv_srq *more[200];
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 10, .max_sge = 1 } };
	size_t i;

	srq_open(100, 3);
	if (size.max_wr < 100 || size.max_sge < 3)
		tb_fail("asked for 100 WRs of 3 SGEs, got %u of %u", size.max_wr, size.max_sge);
	expect_attr(size.max_wr, 0);
	post_range(0, 60);
	expect_errno(set_limit(50), 0, "a limit");
	expect_attr(size.max_wr, 50);
	expect_errno(set_limit(0), 0, "no limit");
	expect_attr(size.max_wr, 0);
	for (i = 0; i < ARRAY_SIZE(more); i++) {
		more[i] = ibv_create_srq(peer_side->pd, &init);
		if (!more[i])
			tb_die("SRQ %zu", i);
	}
	for (i = 0; i < ARRAY_SIZE(more); i++)
		if (ibv_destroy_srq(more[i]))
			tb_fail("SRQ %zu cannot be destroyed", i);
	expect_events(IBV_EVENT_SRQ_LIMIT_REACHED, srq, 0, "nothing was received");
	srq_close();
}

static void extended_create(void)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 10, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_BASIC,
		.pd = peer_side->pd,
	};
	struct ibv_srq *made;

	made = ibv_create_srq_ex(peer_side->ctx, &init);
	if (!made)
		tb_die("ibv_create_srq_ex");
	if (init.attr.max_wr < 10 || made->pd != peer_side->pd)
		tb_fail("an SRQ of %u WRs", init.attr.max_wr);
	if (ibv_destroy_srq(made))
		tb_fail("it cannot be destroyed");

	init.srq_type = IBV_SRQT_TM;
	init.comp_mask |= IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
	errno = 0;
	if (ibv_create_srq_ex(peer_side->ctx, &init))
		tb_fail("an SRQ with tag matching was made");
	expect_errno(errno, EOPNOTSUPP, "tag matching");
	init.comp_mask = IBV_SRQ_INIT_ATTR_PD | 1 << 10;
	errno = 0;
	if (ibv_create_srq_ex(peer_side->ctx, &init))
		tb_fail("an SRQ with an unknown attribute was made");
	expect_errno(errno, EOPNOTSUPP, "an unknown attribute");
}

/* A QP with an SRQ has no receive queue. */
static void qp_without_receives(void)
{
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 4, .max_send_sge = 1, .max_recv_wr = 100, .max_recv_sge = 2 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad = NULL;
	struct ibv_qp_attr attr;
	struct tb_qp q = { .side = peer_side };

	srq_open(10, 1);
	lane_open(&lanes[0]);
	init.send_cq = lanes[0].p.b.scq;
	init.recv_cq = lanes[0].p.b.scq;
	init.srq = srq;
	q.qp = ibv_create_qp(peer_side->pd, &init);
	if (!q.qp)
		tb_die("ibv_create_qp");
	if (init.cap.max_recv_wr || init.cap.max_recv_sge)
		tb_fail("made with %u receives of %u SGEs", init.cap.max_recv_wr, init.cap.max_recv_sge);
	if (ibv_query_qp(q.qp, &attr, IBV_QP_CAP, &init))
		tb_fail("ibv_query_qp failed");
	if (init.cap.max_recv_wr || init.cap.max_recv_sge || init.srq != srq)
		tb_fail("it says: %u receives of %u SGEs, %s SRQ", init.cap.max_recv_wr, init.cap.max_recv_sge,
			init.srq ? "another" : "no");
	expect_errno(ibv_post_recv(lanes[0].p.b.qp, &wr, &bad), EINVAL, "ibv_post_recv");
	if (bad != &wr)
		tb_fail("bad_wr does not name the receive that was refused");
	expect_errno(ibv_destroy_srq(srq), EBUSY, "ibv_destroy_srq with QPs");
	post_range(0, 2);
	deliver_many(&lanes[0], 2);
	if (ibv_destroy_qp(q.qp))
		tb_fail("the QP cannot be destroyed");
	expect_errno(ibv_destroy_srq(srq), EBUSY, "ibv_destroy_srq with a QP");
	lane_close(&lanes[0]);
	srq_close();
}

static void immediate(void)
{
	static const struct { enum ibv_wr_opcode send; enum ibv_wc_opcode receive; } ways[] = {
		{ IBV_WR_SEND_WITH_IMM, IBV_WC_RECV },
		{ IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RECV_RDMA_WITH_IMM },
	};
	struct lane *lane = &lanes[0];
	struct ibv_wc wc;
	uint32_t i, seq;

	srq_open(10, 1);
	lane_open(lane);
	post_range(0, 8);
	for (i = 0; i < 8; i++) {
		seq = lane->sent;
		if (!send_as(lane, ways[i % 2].send, 5000) || !acknowledged(lane) ||
		    !tb_poll(lane->p.b.rcq, &wc, "a receive") || !take_slot(&wc))
			break;
		if (wc.status != IBV_WC_SUCCESS || wc.opcode != ways[i % 2].receive ||
		    !(wc.wc_flags & IBV_WC_WITH_IMM) || wc.imm_data != seq || wc.byte_len != 5000)
			tb_fail("receive %u: %s, opcode %d, flags 0x%x, immediate data %u, %u bytes", i,
				ibv_wc_status_str(wc.status), wc.opcode, wc.wc_flags, wc.imm_data, wc.byte_len);
		if ((i % 2 ? lane->p.b.buf : slot_data(wc.wr_id))[4999] != message_byte(0, seq, 4999))
			tb_fail("receive %u: wrong data", i);
	}
	lane_close(lane);
	srq_close();
}

/* Keys are checked against the PD of the SRQ, not against that of the QP. */
static void other_pd(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(peer_side->ctx);
	struct tb_opts opts;
	struct ibv_mr *own_mr;
	uint8_t *own;

	if (!pd)
		tb_die("ibv_alloc_pd");
	srq_open_in(pd, 10, 1);
	opts = lane_opts();
	opts.rnr_retry = 0;
	lane_open_with(&lanes[0], &opts);
	post_range(0, 3);
	deliver_many(&lanes[0], 3);

	own_mr = slots_mr;
	own = slots;
	slots_mr = lanes[0].p.b.mr;
	slots = lanes[0].p.b.buf;
	post_range(0, 1);
	slots_mr = own_mr;
	slots = own;
	if (send_next(&lanes[0])) {
		tb_expect(lanes[0].p.a.scq, lanes[0].acked, IBV_WC_REM_OP_ERR, "a send");
		expect_receive(&lanes[0], IBV_WC_LOC_PROT_ERR, "a receive with a key of the QP's PD");
	}
	lane_close(&lanes[0]);
	srq_close();
	if (ibv_dealloc_pd(pd))
		tb_die("ibv_dealloc_pd");
}

/* ------------------------------------------------------------------ */
/* Events                                                               */

static void limit_once(void)
{
	srq_open(20, 1);
	lane_open(&lanes[0]);
	post_range(0, 20);
	expect_errno(set_limit(10), 0, "a limit");
	deliver_many(&lanes[0], 10);
	expect_events(IBV_EVENT_SRQ_LIMIT_REACHED, srq, 0, "10 left");
	expect_attr(size.max_wr, 10);
	deliver_many(&lanes[0], 1);
	expect_events(IBV_EVENT_SRQ_LIMIT_REACHED, srq, 1, "9 left");
	expect_attr(size.max_wr, 0);
	deliver_many(&lanes[0], 9);
	expect_events(IBV_EVENT_SRQ_LIMIT_REACHED, srq, 0, "none left");
	post_range(0, 20);
	deliver_many(&lanes[0], 20);
	expect_events(IBV_EVENT_SRQ_LIMIT_REACHED, srq, 0, "not armed again");
	post_range(0, 20);
	expect_errno(set_limit(20), 0, "a limit");
	deliver_many(&lanes[0], 1);
	expect_events(IBV_EVENT_SRQ_LIMIT_REACHED, srq, 1, "armed again");
	lane_close(&lanes[0]);
	srq_close();
}

static void limit_at_once(void)
{
	srq_open(20, 1);
	post_range(0, 5);
	expect_errno(set_limit(10), 0, "a limit");
	expect_events(IBV_EVENT_SRQ_LIMIT_REACHED, srq, 1, "5 posted, limit 10");
	expect_attr(size.max_wr, 0);
	expect_errno(set_limit(5), 0, "a limit");
	expect_events(IBV_EVENT_SRQ_LIMIT_REACHED, srq, 0, "5 posted, limit 5");
	expect_errno(set_limit(6), 0, "a limit");
	expect_events(IBV_EVENT_SRQ_LIMIT_REACHED, srq, 1, "5 posted, limit 6");
	srq_close();
}

/* A QP in ERR consumes no more WQEs, and the other QPs use the remaining ones. */
static void last_wqe(void)
{
	srq_open(8, 1);
	lane_open(&lanes[0]);
	lane_open(&lanes[1]);
	post_range(0, 8);
	deliver_many(&lanes[0], 2);
	to_state(lanes[0].p.b.qp, IBV_QPS_ERR);
	expect_events(IBV_EVENT_QP_LAST_WQE_REACHED, lanes[0].p.b.qp, 1, "a QP in ERR");
	tb_expect_none(lanes[0].p.b.rcq, "the QP in ERR held nothing");
	deliver_many(&lanes[1], 6);
	post_range(0, 8);
	lane_close(&lanes[0]);
	deliver_many(&lanes[1], 8);
	tb_expect_none(lanes[1].p.b.rcq, "all has been received");
	lane_close(&lanes[1]);
	srq_close();
}

/* An error of a receive moves only its QP to ERR. */
static void receive_fails(bool too_long)
{
	struct lane *lane = &lanes[0];
	struct ibv_sge sge;
	struct ibv_recv_wr wr = { .wr_id = 0, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct tb_opts opts;

	srq_open(8, 1);
	opts = lane_opts();
	opts.rnr_retry = 0;
	lane_open_with(&lanes[0], &opts);
	lane_open(&lanes[1]);
	sge = (struct ibv_sge) { (uintptr_t)slots, too_long ? 99 : 5000, too_long ? slots_mr->lkey : NO_SUCH_KEY };
	if (ibv_post_srq_recv(srq, &wr, &bad))
		tb_fail("ibv_post_srq_recv failed");
	posted[0] = true;
	post_range(1, 4);
	if (send_as(lane, IBV_WR_SEND, 100)) {
		tb_expect(lane->p.a.scq, 0, too_long ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_OP_ERR, "the send");
		expect_receive(lane, too_long ? IBV_WC_LOC_LEN_ERR : IBV_WC_LOC_PROT_ERR, "the receive");
		tb_expect_state(&lane->p.b, IBV_QPS_ERR, "the receiver");
		expect_events(IBV_EVENT_QP_LAST_WQE_REACHED, lane->p.b.qp, 1, "the receiver");
	}
	deliver_many(&lanes[1], 4);
	post_range(0, 8);
	lane_close(&lanes[0]);
	deliver_many(&lanes[1], 8);
	lane_close(&lanes[1]);
	srq_close();
}

static void receive_too_short(void)	{ receive_fails(true); }
static void receive_wrong_lkey(void)	{ receive_fails(false); }

/* ------------------------------------------------------------------ */
/* Empty                                                                */

static void empty_and_refilled(void)
{
	struct lane *lane = &lanes[0];
	struct ibv_wc wc;
	int i;

	srq_open(8, 1);
	lane_open(lane);
	for (i = 0; i < 3; i++)
		send_next(lane);
	usleep(100000);
	tb_expect_none(lane->p.a.scq, "nothing has been received");
	post_range(0, 1);
	if (tb_poll(lane->p.b.rcq, &wc, "the first"))
		receive(&wc);
	usleep(20000);
	tb_expect_none(lane->p.b.rcq, "one was posted");
	post_range(1, 2);
	for (i = 0; i < 2; i++)
		if (tb_poll(lane->p.b.rcq, &wc, "the others"))
			receive(&wc);
	for (i = 0; i < 3; i++)
		acknowledged(lane);
	lane_close(lane);
	srq_close();
}

static void empty_for_too_long(void)
{
	struct tb_opts opts;

	srq_open(8, 1);
	opts = lane_opts();
	opts.rnr_retry = 0;
	lane_open_with(&lanes[0], &opts);
	lane_open(&lanes[1]);
	if (send_next(&lanes[0]))
		tb_expect(lanes[0].p.a.scq, 0, IBV_WC_RNR_RETRY_EXC_ERR, "a send to an empty SRQ");
	tb_expect_state(&lanes[0].p.b, IBV_QPS_RTS, "the receiver");
	post_range(0, 8);
	deliver_many(&lanes[1], 8);
	lane_close(&lanes[0]);
	lane_close(&lanes[1]);
	srq_close();
}

/* ------------------------------------------------------------------ */
/* No slot is lost                                                      */

/* WQEs of unpolled receives become free when their QP is destroyed or reset. */
static void not_polled(bool reset)
{
	struct lane *lane = &lanes[0];
	uint32_t i;

	srq_open(8, 1);
	lane_open(lane);
	lane_open(&lanes[1]);
	fill_up();
	for (i = 0; i < 6 && send_next(lane) && acknowledged(lane); i++)
		posted[i] = false;
	if (fill_up())
		tb_fail("the SRQ took more while it was full");
	if (reset)
		to_state(lane->p.b.qp, IBV_QPS_RESET);
	else
		lane_close(lane);
	if (fill_up() != 6)
		tb_fail("6 slots should have come back");
	deliver_many(&lanes[1], 4);
	if (reset)
		lane_close(lane);
	lane_close(&lanes[1]);
	srq_close();
}

static void not_polled_destroy(void)	{ not_polled(false); }
static void not_polled_reset(void)	{ not_polled(true); }

/*
 * Messages that take seconds, because they consist of the same bytes many times, in
 * the smallest packets: there is time to interrupt one.
 */
static void long_list(struct ibv_sge *sge, const struct ibv_mr *mr)
{
	int i;

	for (i = 0; i < LONG_SGES; i++)
		sge[i] = (struct ibv_sge) { (uintptr_t)mr->addr, LONG_BYTES, mr->lkey };
}

static struct ibv_mr *long_mr(struct ibv_pd *pd)
{
	struct ibv_mr *mr;
	void *memory;

	if (posix_memalign(&memory, 4096, LONG_BYTES))
		tb_die("posix_memalign");
	mr = ibv_reg_mr(pd, memory, LONG_BYTES, IBV_ACCESS_LOCAL_WRITE);
	if (!mr)
		tb_die("ibv_reg_mr");
	return mr;
}

static void free_long_mr(struct ibv_mr *mr)
{
	void *memory = mr->addr;

	if (ibv_dereg_mr(mr))
		tb_die("ibv_dereg_mr");
	free(memory);
}

static void post_long(const struct ibv_mr *to)
{
	struct ibv_sge sge[LONG_SGES];
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = LONG_SGES }, *bad;

	long_list(sge, to);
	for (wr.wr_id = 0; wr.wr_id < size.max_wr; wr.wr_id++) {
		if (ibv_post_srq_recv(srq, &wr, &bad))
			tb_fail("ibv_post_srq_recv failed");
		posted[wr.wr_id] = true;
	}
}

/* Sends as many messages as there are receives, and stops the sender after the first byte has arrived. */
static void send_broken(struct lane *lane, const struct ibv_mr *from, const struct ibv_mr *to)
{
	volatile uint8_t *arrived = to->addr;
	struct ibv_sge sge[LONG_SGES];
	struct ibv_send_wr wr = { .sg_list = sge, .num_sge = LONG_SGES, .opcode = IBV_WR_SEND }, *bad;
	int64_t limit = tb_now_ms() + TB_WAIT_MS;

	*arrived = 0;
	memset(from->addr, 1, LONG_BYTES);
	long_list(sge, from);
	for (wr.wr_id = 0; wr.wr_id < size.max_wr; wr.wr_id++)
		if (ibv_post_send(lane->p.a.qp, &wr, &bad))
			tb_fail("ibv_post_send failed");
	while (!*arrived && tb_now_ms() < limit)
		;
	if (!*arrived)
		tb_fail("nothing arrives");
	to_state(lane->p.a.qp, IBV_QPS_ERR);
}

/* Polls all completions of a QP in ERR: at most one receive, the last, was flushed. */
static int poll_flushed(struct lane *lane)
{
	int flushed = 0;
	struct ibv_wc wc;

	while (ibv_poll_cq(lane->p.b.rcq, 1, &wc) == 1 && take_slot(&wc)) {
		if (flushed || (wc.status != IBV_WC_SUCCESS && wc.status != IBV_WC_WR_FLUSH_ERR))
			tb_fail("a receive ended with \"%s\"", ibv_wc_status_str(wc.status));
		flushed += wc.status == IBV_WC_WR_FLUSH_ERR;
	}
	return flushed;
}

/* Another QP uses the remaining WQEs until the SRQ is empty: then all slots are free. */
static void use_up(struct lane *lane)
{
	struct ibv_wc sent, received;

	while (send_as(lane, IBV_WR_SEND, 64) && tb_poll(lane->p.a.scq, &sent, "a send")) {
		if (sent.status == IBV_WC_RNR_RETRY_EXC_ERR)
			break;
		if (sent.status != IBV_WC_SUCCESS || !tb_poll(lane->p.b.rcq, &received, "a receive") ||
		    received.status != IBV_WC_SUCCESS) {
			tb_fail("a message of 64 bytes: %s", ibv_wc_status_str(sent.status));
			break;
		}
	}
	memset(posted, 0, sizeof(posted));
	if (fill_up() != size.max_wr)
		tb_fail("a slot of %u is lost", size.max_wr);
}

static int break_off(const struct ibv_mr *from, const struct ibv_mr *to, bool polled, bool reset)
{
	struct lane *lane = &lanes[0];
	struct tb_opts opts;
	int flushed = 0;

	srq_open(3, LONG_SGES);
	opts = lane_opts();
	opts.max_send_sge = LONG_SGES;
	lane_open_with(lane, &opts);
	opts.rnr_retry = 0;
	lane_open_with(&lanes[1], &opts);
	post_long(to);
	send_broken(lane, from, to);
	to_state(lane->p.b.qp, IBV_QPS_ERR);
	expect_events(IBV_EVENT_QP_LAST_WQE_REACHED, lane->p.b.qp, 1, "a QP in ERR");
	if (polled)
		flushed = poll_flushed(lane);
	if (reset)
		to_state(lane->p.b.qp, IBV_QPS_RESET);
	lane_close(lane);
	use_up(&lanes[1]);
	lane_close(&lanes[1]);
	srq_close();
	return flushed;
}

/*
 * The WQE that a QP in ERR holds is flushed and becomes free, polled or not.  An HCA
 * that sends to itself executes no command before the messages are complete.
 */
static void broken_off(void)
{
	enum ibv_mtu mtu = side_a.mtu;
	struct ibv_mr *from, *to;
	int round, flushed = 0;

	if (peer_side == &side_a) {
		printf("# only between two HCAs\n");
		return;
	}
	from = long_mr(side_a.pd);
	to = long_mr(peer_side->pd);
	side_a.mtu = IBV_MTU_256;
	for (round = 0; round < 8 && !tb_failed(); round++)
		flushed += break_off(from, to, round % 2, round % 4 >= 2);
	side_a.mtu = mtu;
	free_long_mr(from);
	free_long_mr(to);
	/* The number of interrupted messages is random; that no slot is lost is not. */
	printf("# %d of 4 messages were broken off in their midst\n", flushed);
}

/* ------------------------------------------------------------------ */
/* Sizes                                                                */

static atomic_uint grown_to;
static atomic_bool stop;

static void *grow(void *unused)
{
	struct ibv_srq_attr attr;
	uint32_t max_wr;

	for (max_wr = 2 * size.max_wr; max_wr <= 1023 && !stop; max_wr *= 2) {
		usleep(20000);
		if (resize(max_wr) || ibv_query_srq(srq, &attr) || attr.max_wr < max_wr) {
			tb_fail("resizing to %u failed", max_wr);
			break;
		}
		grown_to = attr.max_wr;
	}
	return unused;
}

static void use_what_grew(void)
{
	uint32_t max_wr = grown_to;

	if (max_wr > size.max_wr) {
		post_range(size.max_wr, max_wr - size.max_wr);
		size.max_wr = max_wr;
	}
}

static void resize_under_traffic(void)
{
	pthread_t thread;

	srq_open(7, 3);
	open_shared_cq();
	open_lanes();
	post_range(0, size.max_wr);
	grown_to = size.max_wr;
	stop = false;
	if (pthread_create(&thread, NULL, grow, NULL))
		tb_die("pthread_create");
	run_lanes(400, use_what_grew);
	stop = tb_failed();
	pthread_join(thread, NULL);
	use_what_grew();
	run_lanes(500, NULL);
	if (size.max_wr < 511)
		tb_fail("the SRQ grew to %u only", size.max_wr);
	if (fill_up())
		tb_fail("more than %u receives fitted", size.max_wr);
	close_lanes();
	srq_close();
}

/* Receives posted before stay valid, also if the order of the chain has changed. */
static void resize_when_full(void)
{
	uint32_t old;

	srq_open(30, 1);
	lane_open(&lanes[0]);
	fill_up();
	deliver_many(&lanes[0], size.max_wr / 2);
	fill_up();
	old = size.max_wr;
	expect_errno(resize(4 * old), 0, "resizing a full SRQ");
	size.max_wr = 4 * old;
	if (fill_up() < 3 * old)
		tb_fail("the new slots cannot be posted");
	deliver_many(&lanes[0], size.max_wr);
	lane_close(&lanes[0]);
	srq_close();
}

static void resize_and_limit(void)
{
	struct ibv_srq_attr attr = { .max_wr = 100, .srq_limit = 50 };

	srq_open(10, 1);
	fill_up();
	expect_errno(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0, "size and limit at once");
	expect_events(IBV_EVENT_SRQ_LIMIT_REACHED, srq, 1, "15 posted, limit 50");
	if (ibv_query_srq(srq, &attr) || attr.max_wr < 100)
		tb_fail("the SRQ did not grow");
	srq_close();
}

static void resize_smaller(void)
{
	srq_open(100, 1);
	lane_open(&lanes[0]);
	post_range(0, 20);
	expect_errno(resize(20), 0, "20 posted, 20 asked for");
	expect_errno(resize(size.max_wr), 0, "as many as before");
	expect_errno(resize(19), EINVAL, "20 posted, 19 asked for");
	expect_attr(size.max_wr, 0);
	deliver_many(&lanes[0], 1);
	expect_errno(resize(19), 0, "19 posted, 19 asked for");
	deliver_many(&lanes[0], 19);
	lane_close(&lanes[0]);
	srq_close();
}

/* ------------------------------------------------------------------ */
/* Bad input                                                            */

static void full(void)
{
	struct ibv_recv_wr wr[4], *bad = NULL;
	struct ibv_sge sge[4];
	int i;

	srq_open(100, 2);
	lane_open(&lanes[0]);
	if (fill_up() != size.max_wr)
		tb_fail("an SRQ of %u WRs holds another number", size.max_wr);
	deliver_many(&lanes[0], 2);
	for (i = 0; i < 4; i++) {
		sge[i] = (struct ibv_sge) { (uintptr_t)slot_data(i), SLOT_BYTES, slots_mr->lkey };
		wr[i] = (struct ibv_recv_wr) { .wr_id = i, .next = i < 3 ? &wr[i + 1] : NULL, .sg_list = &sge[i],
					       .num_sge = 1 };
	}
	expect_errno(ibv_post_srq_recv(srq, wr, &bad), ENOMEM, "4 receives for 2 slots");
	if (bad != &wr[2])
		tb_fail("bad_wr is number %td, expected 2", bad ? bad - wr : -1);
	posted[0] = true;
	posted[1] = true;
	deliver_many(&lanes[0], size.max_wr);
	lane_close(&lanes[0]);
	srq_close();
}

static void too_many_sges(void)
{
	struct ibv_recv_wr wr[2], *bad = NULL;
	struct ibv_device_attr dev;
	struct ibv_sge *sge;
	uint32_t i;

	if (ibv_query_device(peer_side->ctx, &dev))
		tb_die("ibv_query_device");
	srq_open(10, 2);
	lane_open(&lanes[0]);
	sge = calloc(dev.max_srq_sge + 1, sizeof(*sge));
	for (i = 0; i <= (uint32_t)dev.max_srq_sge; i++)
		sge[i] = (struct ibv_sge) { (uintptr_t)slots + i, 1, slots_mr->lkey };
	sge[0].length = SLOT_BYTES;
	wr[0] = (struct ibv_recv_wr) { .wr_id = 0, .next = &wr[1], .sg_list = sge, .num_sge = 1 };
	wr[1] = (struct ibv_recv_wr) { .wr_id = 1, .sg_list = sge, .num_sge = size.max_sge + 1 };
	posted[0] = true;
	expect_errno(ibv_post_srq_recv(srq, wr, &bad), EINVAL, "more SGEs than the SRQ takes");
	if (bad != &wr[1])
		tb_fail("bad_wr is number %td, expected 1", bad ? bad - wr : -1);
	wr[1].num_sge = -1;
	expect_errno(ibv_post_srq_recv(srq, &wr[1], &bad), EINVAL, "-1 SGEs");
	deliver_many(&lanes[0], 1);
	free(sge);
	lane_close(&lanes[0]);
	srq_close();
}

static void limits_refused(void)
{
	struct ibv_srq_attr attr = { .max_wr = 20, .srq_limit = 1 };

	srq_open(20, 1);
	post_range(0, 20);
	expect_errno(set_limit(size.max_wr + 1), EINVAL, "a limit above the size");
	expect_errno(set_limit(65536), EINVAL, "a limit of 65536");
	expect_errno(set_limit(UINT32_MAX), EINVAL, "a limit of 2^32 - 1");
	expect_errno(resize(0), EINVAL, "size 0");
	expect_errno(resize(UINT32_MAX), EINVAL, "size 2^32 - 1");
	expect_errno(ibv_modify_srq(srq, &attr, 1 << 5), EINVAL, "an attribute that is not there");
	expect_attr(size.max_wr, 0);
	expect_events(IBV_EVENT_SRQ_LIMIT_REACHED, srq, 0, "all was refused");
	srq_close();
}

static void expect_no_srq(uint32_t max_wr, uint32_t max_sge)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = max_wr, .max_sge = max_sge } };
	struct ibv_srq *made;

	errno = 0;
	made = ibv_create_srq(peer_side->pd, &init);
	if (made) {
		tb_fail("an SRQ of %u WRs of %u SGEs was made", max_wr, max_sge);
		ibv_destroy_srq(made);
	} else {
		expect_errno(errno, EINVAL, "an SRQ that is too large or too small");
	}
}

static void sizes_refused(void)
{
	struct ibv_device_attr dev;

	if (ibv_query_device(peer_side->ctx, &dev))
		tb_die("ibv_query_device");
	if (dev.max_srq < 1 || dev.max_srq_wr < 1 || dev.max_srq_sge < 1)
		tb_fail("the device says: %d SRQs of %d WRs of %d SGEs", dev.max_srq, dev.max_srq_wr,
			dev.max_srq_sge);
	expect_no_srq(0, 1);
	expect_no_srq(dev.max_srq_wr + 1, 1);
	expect_no_srq(UINT32_MAX, 1);
	expect_no_srq(10, dev.max_srq_sge + 1);
	expect_no_srq(10, UINT32_MAX);
	srq_open(10, 1);
	expect_errno(resize(dev.max_srq_wr + 1), EINVAL, "one more than the most");
	srq_close();
}

/* Posts receives until there are `count`, or the SRQ is full; returns their number. */
static uint32_t post_up_to(uint32_t first, uint32_t count)
{
	struct ibv_recv_wr wr = {}, *bad;

	for (wr.wr_id = first; wr.wr_id < count; wr.wr_id++)
		if (ibv_post_srq_recv(srq, &wr, &bad))
			break;
	return wr.wr_id;
}

/* The largest SRQ: created with that size, grown from the smallest, and grown from half the size when full. */
static void largest(void)
{
	struct ibv_device_attr dev;
	uint32_t start[3], i, count;

	if (ibv_query_device(peer_side->ctx, &dev))
		tb_die("ibv_query_device");
	start[0] = dev.max_srq_wr;
	start[1] = 1;
	start[2] = dev.max_srq_wr / 2;
	for (i = 0; i < ARRAY_SIZE(start); i++) {
		srq_open(start[i], dev.max_srq_sge);
		count = post_up_to(0, i == 2 ? size.max_wr : 0);
		if (i)
			expect_errno(resize(dev.max_srq_wr), 0, "growing to the largest");
		count = post_up_to(count, dev.max_srq_wr);
		if (count < (uint32_t)dev.max_srq_wr)
			tb_fail("%u receives fitted in the largest SRQ, of %d", count, dev.max_srq_wr);
		srq_close();
	}
}

/* ------------------------------------------------------------------ */
/* Datagrams                                                            */

static void datagrams(void)
{
	struct tb_opts opts = tb_pair_defaults();
	struct ibv_ah_attr ah_attr = {
		.is_global = 1,
		.port_num = 1,
		.grh = { .dgid = peer_side->gid, .sgid_index = side_a.gid_index, .hop_limit = 64 },
	};
	struct tb_qp from, to[2];
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .num_sge = 1 }, *bad;
	struct ibv_sge sge;
	struct ibv_wc wc;
	struct ibv_ah *ah;
	uint32_t i, at;

	srq_open(60, 3);
	tb_qp_create(&from, &side_a, IBV_QPT_UD, &opts);
	opts.srq = srq;
	tb_qp_create(&to[0], peer_side, IBV_QPT_UD, &opts);
	tb_qp_create(&to[1], peer_side, IBV_QPT_UD, &opts);
	tb_ud_start(&from, QKEY);
	tb_ud_start(&to[0], QKEY);
	tb_ud_start(&to[1], QKEY);
	ah = ibv_create_ah(side_a.pd, &ah_attr);
	if (!ah)
		tb_die("ibv_create_ah");
	fill_up();
	expect_errno(set_limit(10), 0, "a limit");

	sge = (struct ibv_sge) { (uintptr_t)from.buf, 0, from.mr->lkey };
	wr.sg_list = &sge;
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qkey = QKEY;
	for (i = 0; i < size.max_wr && !tb_failed(); i++) {
		struct tb_qp *target = &to[i * 7 % 3 % 2];

		sge.length = 1 + i * 37 % 900;
		for (at = 0; at < sge.length; at++)
			from.buf[at] = message_byte(1, i, at);
		wr.wr_id = i;
		wr.wr.ud.remote_qpn = target->qp->qp_num;
		if (ibv_post_send(from.qp, &wr, &bad)) {
			tb_fail("ibv_post_send failed");
			break;
		}
		tb_expect(from.scq, i, IBV_WC_SUCCESS, "a datagram");
		if (!tb_poll(target->rcq, &wc, "a datagram's receive") || !take_slot(&wc))
			break;
		if (wc.status != IBV_WC_SUCCESS || wc.byte_len != GRH_BYTES + sge.length ||
		    !(wc.wc_flags & IBV_WC_GRH) || wc.src_qp != from.qp->qp_num || wc.qp_num != target->qp->qp_num)
			tb_fail("datagram %u: %s, %u bytes, flags 0x%x", i, ibv_wc_status_str(wc.status), wc.byte_len,
				wc.wc_flags);
		if (memcmp(slot_data(wc.wr_id) + GRH_BYTES, from.buf, sge.length))
			tb_fail("datagram %u: wrong data", i);
	}
	expect_events(IBV_EVENT_SRQ_LIMIT_REACHED, srq, 1, "no receive is left");

	/* A datagram that finds the SRQ empty is lost; later ones are not. */
	wr.wr_id = 1000;
	if (ibv_post_send(from.qp, &wr, &bad))
		tb_fail("ibv_post_send failed");
	tb_expect(from.scq, 1000, IBV_WC_SUCCESS, "a datagram to an empty SRQ");
	usleep(20000);
	post_range(5, 1);
	wr.wr_id = 1001;
	wr.wr.ud.remote_qpn = to[1].qp->qp_num;
	if (ibv_post_send(from.qp, &wr, &bad))
		tb_fail("ibv_post_send failed");
	tb_expect(from.scq, 1001, IBV_WC_SUCCESS, "a datagram");
	tb_expect(to[1].rcq, 5, IBV_WC_SUCCESS, "its receive");
	tb_expect_none(to[0].rcq, "all has been received");

	if (ibv_destroy_ah(ah))
		tb_die("ibv_destroy_ah");
	tb_qp_destroy(&from);
	tb_qp_destroy(&to[0]);
	tb_qp_destroy(&to[1]);
	srq_close();
}

/* ------------------------------------------------------------------ */
/* Parent domains                                                       */

static int given, taken_back;

static void *give(struct ibv_pd *pd, void *pd_context, size_t bytes, size_t alignment, uint64_t type)
{
	void *memory;

	(void)pd;
	(void)type;
	if (pd_context != &given || posix_memalign(&memory, alignment, bytes))
		return NULL;
	memset(memory, 0xff, bytes);
	given++;
	return memory;
}

static void take_back(struct ibv_pd *pd, void *pd_context, void *memory, uint64_t type)
{
	(void)pd;
	(void)pd_context;
	(void)type;
	free(memory);
	taken_back++;
}

/* The program allocates its buffers, and no lock is needed. */
static void parent_domain(void)
{
	struct ibv_td_init_attr td_attr = {};
	struct ibv_td *td = ibv_alloc_td(peer_side->ctx, &td_attr);
	struct ibv_parent_domain_init_attr attr = {
		.pd = peer_side->pd,
		.td = td,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
		.alloc = give,
		.free = take_back,
		.pd_context = &given,
	};
	struct ibv_pd *domain;

	if (!td)
		tb_die("ibv_alloc_td");
	domain = ibv_alloc_parent_domain(peer_side->ctx, &attr);
	if (!domain)
		tb_die("ibv_alloc_parent_domain");
	given = 0;
	taken_back = 0;
	srq_open_in(domain, 10, 1);
	if (given != 1)
		tb_fail("%d buffers were asked for, expected 1", given);
	lane_open(&lanes[0]);
	fill_up();
	deliver_many(&lanes[0], 5);
	expect_errno(resize(50), 0, "resizing");
	if (given != 2 || taken_back != 1)
		tb_fail("%d buffers asked for, %d given back; expected 2 and 1", given, taken_back);
	fill_up();
	deliver_many(&lanes[0], 50);
	lane_close(&lanes[0]);
	expect_errno(ibv_dealloc_pd(domain), EBUSY, "ibv_dealloc_pd of an SRQ's parent domain");
	srq_close();
	if (taken_back != 2)
		tb_fail("%d buffers given back, expected 2", taken_back);
	expect_errno(ibv_dealloc_pd(domain), 0, "ibv_dealloc_pd");
	expect_errno(ibv_dealloc_td(td), 0, "ibv_dealloc_td");
}

/* ------------------------------------------------------------------ */

static void check_neighbour(void)
{
	tb_check_traffic(&neighbour, "the neighbour");
}

static const struct tb_case cases[] = {
	{ "create, query, limit, destroy; 200 at once", life },
	{ "extended creation, types that are not there", extended_create },
	{ "a QP with an SRQ has no receives of its own, and holds the SRQ", qp_without_receives },
	{ "16 QPs, a CQ each", many_qps },
	{ "16 QPs, one CQ", many_qps_one_cq },
	{ "16 QPs, one extended CQ", many_qps_extended_cq },
	{ "16 QPs, fewer receives than QPs", more_qps_than_receives },
	{ "immediate data", immediate },
	{ "SRQ in another PD than the QP", other_pd },
	{ "limit: one event", limit_once },
	{ "limit: at once when it is passed already", limit_at_once },
	{ "last WQE reached, and the others go on", last_wqe },
	{ "receive shorter than the message", receive_too_short },
	{ "receive with a wrong lkey", receive_wrong_lkey },
	{ "empty, and refilled", empty_and_refilled },
	{ "empty for too long", empty_for_too_long },
	{ "receives not polled, QP destroyed", not_polled_destroy },
	{ "receives not polled, QP reset", not_polled_reset },
	{ "messages broken off lose no receive", broken_off },
	{ "resize under traffic", resize_under_traffic },
	{ "resize when full", resize_when_full },
	{ "resize and limit at once", resize_and_limit },
	{ "resize to a smaller size", resize_smaller },
	{ "full", full },
	{ "too many SGEs", too_many_sges },
	{ "limits and sizes refused when modified", limits_refused },
	{ "sizes refused when created", sizes_refused },
	{ "the largest", largest },
	{ "datagrams", datagrams },
	{ "parent domain", parent_domain },
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
