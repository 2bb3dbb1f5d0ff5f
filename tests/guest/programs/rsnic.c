// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * HCAs of the RSNIC document (docs/reference/rsnic.rst): all their QPs at once, atomics,
 * the retransmission buffer, congestion control of each QP, and commands of many threads.
 *
 * rsnic DEVICE GID-INDEX [DEVICE GID-INDEX NETNS] [-- CASE...]
 *
 * With one device the pairs are on this device; with two, the requester is on the first.
 * tests/rsnic.py sets how the link is impaired, which a case states, and runs each case by
 * itself.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "testbed.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define MTU		4096

static struct tb_side side_a, side_b;
static struct tb_side *peer_side;

static void sleep_ms(long ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

static void fill(uint8_t *to, size_t bytes, uint8_t seed)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		to[i] = seed + i * 13 + (i >> 8);
}

/* ------------------------------------------------------------------ */
/* From RESET to RTS, with errors as errno                              */

static int to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

/* Both directions start with the same PSN. */
static int to_rts(struct ibv_qp *qp, const struct tb_side *side, const struct tb_side *peer, uint32_t dest_qpn,
		  uint32_t psn)
{
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = side->mtu,
		.dest_qp_num = dest_qpn,
		.rq_psn = psn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = {
			.is_global = 1,
			.port_num = 1,
			.grh = { .dgid = peer->gid, .sgid_index = side->gid_index, .hop_limit = 64 },
		},
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS,
		.timeout = 17,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.sq_psn = psn,
		.max_rd_atomic = 1,
	};
	int error;

	error = ibv_modify_qp(qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (error)
		return error;
	return ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static void connect_at(struct tb_qp *q, const struct tb_qp *peer, uint32_t psn)
{
	int error = to_init(q->qp);

	if (!error)
		error = to_rts(q->qp, q->side, peer->side, peer->qp->qp_num, psn);
	if (error)
		tb_die("connecting a QP: %s", strerror(error));
}

/* ------------------------------------------------------------------ */
/* All QPs at once, on the first device                                 */

/* 255, of which the driver has QP 1 for the CM and QP 2 for its Ethernet device. */
#define QPS		253

static struct tb_qp qps[QPS + 1];
static uint64_t sent[QPS] __attribute__((aligned(4096)));
static uint64_t received[QPS] __attribute__((aligned(4096)));

static uint64_t value_of(unsigned int number)
{
	return 0x1122334400000000 + number * 0x10001ULL;
}

/* The QP that number n is connected to: its neighbour, and of the last one itself. */
static unsigned int peer_of(unsigned int n)
{
	return (n ^ 1) < QPS ? n ^ 1 : n;
}

static struct ibv_qp *make(struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	errno = 0;
	return ibv_create_qp(side_a.pd, &init);
}

/* As many as there are; one more is refused. */
static unsigned int make_all(struct ibv_cq *cq)
{
	unsigned int n;

	for (n = 0; n < ARRAY_SIZE(qps); n++) {
		qps[n] = (struct tb_qp) { .side = &side_a, .qp = make(cq) };
		if (!qps[n].qp)
			break;
	}
	if (n != QPS || errno != ENOMEM)
		tb_fail("%u QPs and then \"%s\", expected %d and \"%s\"", n, strerror(errno), QPS, strerror(ENOMEM));
	return n;
}

/* Each writes its value where its peer has room for it. */
static void write_from_all(struct ibv_cq *cq)
{
	struct ibv_mr *from = ibv_reg_mr(side_a.pd, sent, sizeof(sent), 0);
	struct ibv_mr *to = ibv_reg_mr(side_a.pd, received, sizeof(received), TB_ACCESS_ALL);
	unsigned int n;

	if (!from || !to)
		tb_die("ibv_reg_mr");
	memset(received, 0, sizeof(received));
	for (n = 0; n < QPS && !tb_failed(); n++) {
		struct ibv_sge sge = { (uintptr_t)&sent[n], sizeof(sent[n]), from->lkey };
		struct ibv_send_wr wr = { .wr_id = n, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE };
		struct ibv_send_wr *bad;

		sent[n] = value_of(n);
		wr.wr.rdma.remote_addr = (uintptr_t)&received[n];
		wr.wr.rdma.rkey = to->rkey;
		if (ibv_post_send(qps[n].qp, &wr, &bad))
			tb_fail("QP %u: ibv_post_send", n);
	}
	for (n = 0; n < QPS && !tb_failed(); n++) {
		struct ibv_wc wc;

		if (tb_poll(cq, &wc, "a WRITE of each QP") && wc.status != IBV_WC_SUCCESS)
			tb_fail("QP %llu: %s", (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status));
	}
	for (n = 0; n < QPS && !tb_failed(); n++)
		if (received[n] != value_of(n))
			tb_fail("QP %u wrote 0x%llx, expected 0x%llx", n, (unsigned long long)received[n],
				(unsigned long long)value_of(n));
	if (ibv_dereg_mr(from) || ibv_dereg_mr(to))
		tb_die("ibv_dereg_mr");
}

static void destroy_all(unsigned int count)
{
	while (count--)
		if (ibv_destroy_qp(qps[count].qp))
			tb_die("ibv_destroy_qp");
}

static void all_qps(void)
{
	struct ibv_cq *cq = ibv_create_cq(side_a.ctx, QPS, NULL, NULL, 0);
	struct ibv_device_attr dev;
	unsigned int n, count;
	struct ibv_qp *again;

	if (!cq || ibv_query_device(side_a.ctx, &dev))
		tb_die("ibv_create_cq or ibv_query_device");
	if (dev.max_qp != QPS)
		tb_fail("the device is said to have %d QPs, expected %d", dev.max_qp, QPS);
	count = make_all(cq);
	for (n = 0; n < QPS && !tb_failed(); n++)
		connect_at(&qps[n], &qps[peer_of(n)], n / 2 << 16);
	if (!tb_failed())
		write_from_all(cq);
	if (!tb_failed()) {
		if (ibv_destroy_qp(qps[--count].qp))
			tb_die("ibv_destroy_qp");
		again = make(cq);
		if (!again || ibv_destroy_qp(again))
			tb_fail("a QP in the place of one that is destroyed: %s", strerror(errno));
	}
	destroy_all(count);
	if (ibv_destroy_cq(cq))
		tb_die("ibv_destroy_cq");
}

/* ------------------------------------------------------------------ */
/* What the document lacks                                              */

static void atomics(void)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP };
	const struct tb_opts opts = tb_pair_defaults();
	struct tb_pair p;
	size_t i, j;

	for (i = 0; i < ARRAY_SIZE(opcodes); i++) {
		struct ibv_sge sge;
		struct ibv_send_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = opcodes[i] }, *bad;

		tb_pair_create(&p, &side_a, peer_side, &opts);
		sge = (struct ibv_sge) { (uintptr_t)p.a.buf, 8, p.a.mr->lkey };
		wr.wr.atomic.remote_addr = (uintptr_t)p.b.buf;
		wr.wr.atomic.rkey = p.b.mr->rkey;
		wr.wr.atomic.compare_add = i ? 0 : 5;
		wr.wr.atomic.swap = 5;
		if (ibv_post_send(p.a.qp, &wr, &bad))
			tb_die("ibv_post_send");
		tb_expect(p.a.scq, 1, IBV_WC_LOC_QP_OP_ERR, "an atomic");
		tb_expect_state(&p.a, IBV_QPS_ERR, "an atomic");
		for (j = 0; j < 8; j++)
			if (p.a.buf[j] || p.b.buf[j])
				tb_fail("an atomic that was refused has changed byte %zu", j);
		tb_pair_destroy(&p);
	}
}

/* ------------------------------------------------------------------ */
/* The retransmission buffer                                            */

/*
 * A packet that is not lost is answered within LOST_MS; one that is lost goes again after
 * the timeout, 4096 ns << 17 = 537 ms.
 */
#define LOST_MS		100
#define ACK_TIMEOUT	17
#define SECOND_PIECE	(TB_BUF_BYTES / 2 + 3)
#define TARGET		16

struct message {
	const char *name;
	enum ibv_wr_opcode opcode;
	uint32_t pieces[2];
};

static struct tb_pair pair;

static void pair_open(void)
{
	struct tb_opts opts = tb_pair_defaults();

	if (side_a.mtu != IBV_MTU_4096 || peer_side->mtu != IBV_MTU_4096)
		tb_die("the path MTU is not %d bytes", MTU);
	opts.timeout = ACK_TIMEOUT;
	tb_pair_create(&pair, &side_a, peer_side, &opts);
}

static bool post(const struct message *m)
{
	struct ibv_sge sges[2] = {
		{ (uintptr_t)pair.a.buf, m->pieces[0], pair.a.mr->lkey },
		{ (uintptr_t)pair.a.buf + SECOND_PIECE, m->pieces[1], pair.a.mr->lkey },
	};
	struct ibv_sge place = { (uintptr_t)pair.b.buf + TARGET, m->pieces[0] + m->pieces[1], pair.b.mr->lkey };
	struct ibv_recv_wr recv = { .wr_id = 2, .sg_list = &place, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .wr_id = 1, .sg_list = sges, .num_sge = m->pieces[1] ? 2 : 1, .opcode = m->opcode };
	struct ibv_send_wr *bad_send;

	send.wr.rdma.remote_addr = place.addr;
	send.wr.rdma.rkey = pair.b.mr->rkey;
	if ((m->opcode != IBV_WR_SEND || !ibv_post_recv(pair.b.qp, &recv, &bad_recv)) &&
	    !ibv_post_send(pair.a.qp, &send, &bad_send))
		return true;
	tb_fail("%s: posting failed", m->name);
	return false;
}

static bool done(const struct message *m)
{
	return tb_expect(pair.a.scq, 1, IBV_WC_SUCCESS, m->name) &&
	       (m->opcode != IBV_WR_SEND || tb_expect(pair.b.rcq, 2, IBV_WC_SUCCESS, m->name));
}

/* The bytes of both pieces, one behind the other. */
static void gather(const struct message *m, uint8_t *to)
{
	memcpy(to, pair.a.buf, m->pieces[0]);
	memcpy(to + m->pieces[0], pair.a.buf + SECOND_PIECE, m->pieces[1]);
}

/*
 * All packets of the message are lost when it is sent for the first time, and then its
 * memory changes.  The peer gets the bytes of the first time if @kept, otherwise those of
 * the second.
 */
static void send_lost(const struct message *m, uint8_t seed, bool kept)
{
	static uint8_t before[TB_BUF_BYTES], after[TB_BUF_BYTES];
	size_t bytes = m->pieces[0] + m->pieces[1];
	struct ibv_wc wc;

	memset(pair.b.buf, 0, TB_BUF_BYTES);
	fill(pair.a.buf, TB_BUF_BYTES, seed);
	gather(m, before);
	if (!post(m))
		return;
	sleep_ms(LOST_MS);
	if (ibv_poll_cq(pair.a.scq, 1, &wc)) {
		tb_fail("%s: it was not lost", m->name);
		return;
	}
	fill(pair.a.buf, TB_BUF_BYTES, seed + 101);
	gather(m, after);
	if (!done(m))
		return;
	if (memcmp(pair.b.buf + TARGET, kept ? before : after, bytes))
		tb_fail("%s: the bytes are %s", m->name,
			memcmp(pair.b.buf + TARGET, kept ? after : before, bytes) ? "of neither time" :
			kept ? "of the second time" : "of the first time");
	if (pair.b.buf[TARGET - 1] || pair.b.buf[TARGET + bytes])
		tb_fail("%s: bytes beside it have changed", m->name);
}

/* The link loses every second packet of the requester, so each of these once, but for the first. */
static void each_packet(bool kept)
{
	static const struct message whole = { "a packet before", IBV_WR_RDMA_WRITE, { 8, 0 } };
	static const struct message messages[] = {
		{ "WRITE of 1 byte", IBV_WR_RDMA_WRITE, { 1, 0 } },
		{ "WRITE of a whole packet", IBV_WR_RDMA_WRITE, { MTU, 0 } },
		{ "SEND of 100 bytes", IBV_WR_SEND, { 100, 0 } },
		{ "WRITE of two pieces", IBV_WR_RDMA_WRITE, { 1001, 2002 } },
	};
	size_t i;

	pair_open();
	if (post(&whole) && done(&whole))
		for (i = 0; i < ARRAY_SIZE(messages) && !tb_failed(); i++)
			send_lost(&messages[i], 3 + 7 * i, kept);
	tb_pair_destroy(&pair);
}

static void each_packet_kept(void)	{ each_packet(true); }
static void each_packet_read_again(void) { each_packet(false); }

/* The link loses the first 8 packets of the requester, which are those of this message. */
static void whole_message_kept(void)
{
	static const struct message message = {
		"WRITE of 8 packets", IBV_WR_RDMA_WRITE, { 20000, 7 * MTU + 1 - 20000 },
	};

	pair_open();
	send_lost(&message, 5, true);
	tb_pair_destroy(&pair);
}

/* ------------------------------------------------------------------ */
/* Congestion control of each QP                                        */

/* The link marks packets with PSNs from MARKED_PSN on; their QP is then held at 40 Mbit/s. */
#define MARKED_PSN	0x800000
#define UNDER_WAY	32
#define MESSAGES	64
#define STREAM_LIMIT_MS	(30000 * tb_slowness())
/*
 * What is under way at once, 2 MiB, may leave before the first CNP is back.  At 40 Mbit/s,
 * the other 2 MiB take 419 ms.
 */
#define MARKED_MS	400

struct stream {
	struct tb_pair p;
	unsigned int posted, done;
	int64_t end;
};

static void stream_open(struct stream *s, uint32_t psn)
{
	struct tb_opts opts = tb_pair_defaults();

	memset(s, 0, sizeof(*s));
	opts.max_send_wr = UNDER_WAY;
	tb_qp_create(&s->p.a, &side_a, IBV_QPT_RC, &opts);
	tb_qp_create(&s->p.b, peer_side, IBV_QPT_RC, &opts);
	connect_at(&s->p.a, &s->p.b, psn);
	connect_at(&s->p.b, &s->p.a, psn);
	fill(s->p.a.buf, TB_BUF_BYTES, psn >> 16);
}

static void stream_on(struct stream *s, int64_t now)
{
	struct ibv_sge sge = { (uintptr_t)s->p.a.buf, TB_BUF_BYTES, s->p.a.mr->lkey };
	struct ibv_wc wc;

	for (; s->posted < MESSAGES && s->posted < s->done + UNDER_WAY; s->posted++) {
		struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE }, *bad;

		wr.wr.rdma.remote_addr = (uintptr_t)s->p.b.buf;
		wr.wr.rdma.rkey = s->p.b.mr->rkey;
		if (ibv_post_send(s->p.a.qp, &wr, &bad))
			tb_die("ibv_post_send");
	}
	while (ibv_poll_cq(s->p.a.scq, 1, &wc) > 0) {
		if (wc.status != IBV_WC_SUCCESS)
			tb_fail("a WRITE: %s", ibv_wc_status_str(wc.status));
		s->done++;
		s->end = now;
	}
}

static void each_qp_has_its_rate(void)
{
	int64_t start = tb_now_ms(), now = start;
	struct stream plain, marked;

	stream_open(&plain, 0);
	stream_open(&marked, MARKED_PSN);
	start = tb_now_ms();
	while (!tb_failed() && (plain.done < MESSAGES || marked.done < MESSAGES)) {
		now = tb_now_ms();
		stream_on(&plain, now);
		stream_on(&marked, now);
		if (now > start + STREAM_LIMIT_MS)
			tb_fail("%u and %u of %d WRITEs in %lld ms", plain.done, marked.done, MESSAGES,
				(long long)(now - start));
	}
	if (!tb_failed()) {
		plain.end -= start;
		marked.end -= start;
		printf("# %d KiB took %lld ms, and with marks %lld ms\n", MESSAGES * TB_BUF_BYTES / 1024,
		       (long long)plain.end, (long long)marked.end);
		if (marked.end < MARKED_MS || plain.end * 2 > marked.end)
			tb_fail("%lld ms, and with marks %lld ms, expected at least %d and twice as many",
				(long long)plain.end, (long long)marked.end, MARKED_MS);
		if (memcmp(plain.p.a.buf, plain.p.b.buf, TB_BUF_BYTES) ||
		    memcmp(marked.p.a.buf, marked.p.b.buf, TB_BUF_BYTES))
			tb_fail("wrong data");
	}
	tb_pair_destroy(&plain.p);
	tb_pair_destroy(&marked.p);
}

/* ------------------------------------------------------------------ */
/* Commands of many threads                                             */

#define THREADS		4
#define THREADS_MS	(1000 * tb_slowness())
#define INIT_ONLY_MS	(3000 * tb_slowness())
#define FAILURE_MS	(20000 * tb_slowness())

static atomic_uint lives;
static atomic_bool enough;
static bool in_init_only;

/* Creates a QP, connects it to itself, unless @in_init_only, and destroys it; an errno. */
static int live(struct ibv_cq *cq)
{
	struct ibv_qp *qp = make(cq);
	int error, error_of_end;

	if (!qp)
		return errno ? errno : -1;
	error = to_init(qp);
	if (!error && !in_init_only)
		error = to_rts(qp, &side_a, &side_a, qp->qp_num, 0);
	error_of_end = ibv_destroy_qp(qp);
	return error ? error : error_of_end;
}

/* Returns the errno that ended it, or 0. */
static void *live_on_and_on(void *arg)
{
	struct ibv_cq *cq = arg;
	int error = 0;

	while (!error && !enough) {
		error = live(cq);
		lives += !error;
	}
	return (void *)(intptr_t)error;
}

/* Whether all threads end with this error within the time; without one they are told to end then. */
static void many_threads(int64_t ms, int wanted)
{
	struct ibv_cq *cqs[THREADS];
	pthread_t threads[THREADS];
	int64_t end = tb_now_ms() + ms;
	void *ended;
	int i;

	lives = 0;
	enough = false;
	for (i = 0; i < THREADS; i++) {
		cqs[i] = ibv_create_cq(side_a.ctx, 1, NULL, NULL, 0);
		if (!cqs[i] || pthread_create(&threads[i], NULL, live_on_and_on, cqs[i]))
			tb_die("a CQ and a thread");
	}
	for (i = 0; i < THREADS; i++) {
		while (pthread_tryjoin_np(threads[i], &ended)) {
			enough = enough || tb_now_ms() > end;
			sleep_ms(5);
		}
		if ((intptr_t)ended != wanted)
			tb_fail("thread %d ended with \"%s\", expected \"%s\"", i, strerror((intptr_t)ended),
				strerror(wanted));
	}
	printf("# %u QPs\n", lives);
	if (!lives)
		tb_fail("no QP");
	/* A device that has failed destroys nothing. */
	for (i = 0; i < THREADS && !wanted; i++)
		if (ibv_destroy_cq(cqs[i]))
			tb_die("ibv_destroy_cq");
}

static void in_threads(void)
{
	many_threads(THREADS_MS, 0);
}

/* Also while the port is down, and has no GIDs. */
static void in_threads_init_only(void)
{
	in_init_only = true;
	many_threads(INIT_ONLY_MS, 0);
	in_init_only = false;
}

static void until_failure(void)
{
	many_threads(FAILURE_MS, EIO);
}

static const struct tb_case cases[] = {
	{ "as many QPs as there are", all_qps },
	{ "atomics", atomics },
	{ "each packet lost once, sent again as it was", each_packet_kept },
	{ "each packet lost once, read again", each_packet_read_again },
	{ "a message lost as a whole, sent again as it was", whole_message_kept },
	{ "congestion control of each QP", each_qp_has_its_rate },
	{ "QPs come and go in threads", in_threads },
	{ "QPs in INIT come and go in threads", in_threads_init_only },
	{ "QPs come and go until the device fails", until_failure },
};

int main(int argc, char **argv)
{
	int first = tb_open_sides(&side_a, &side_b, &peer_side, argc, argv);

	return tb_run(cases, ARRAY_SIZE(cases), argc - first, argv + first, NULL);
}
