// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * QPs that are created and destroyed in many threads while completions are polled: no
 * completion belongs to another QP or to a destroyed QP; no thread waits for a command
 * of another thread, or forever.
 *
 * The program replaces functions of libibverbs that providers call. So it can delay a
 * command, and let the kernel reuse a number at once. By itself the kernel reuses a
 * number only after 65,000 others.
 *
 * tables DEVICE GID-INDEX [CASE...]
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "testbed.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define HELD_MS		300	/* time in which a wrong event would occur */

static struct tb_side side;

static void sleep_ms(long ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

static bool comes(atomic_bool *flag)
{
	int64_t limit = tb_now_ms() + TB_WAIT_MS;

	while (!*flag && tb_now_ms() < limit)
		sleep_ms(1);
	return *flag;
}

static void *real(const char *name)
{
	void *function = dlsym(RTLD_NEXT, name);

	if (!function)
		tb_die("no %s", name);
	return function;
}

/* ------------------------------------------------------------------ */
/* The same number again                                                */

static atomic_bool hold_destroy, destroyed, release_destroy;
static atomic_uint number_given_back;
static atomic_bool repeat_number, created;

/* The kernel has completed the command; the provider gets the result when the test allows it. */
int ibv_cmd_destroy_qp(struct ibv_qp *qp)
{
	int (*next)(struct ibv_qp *) = real("ibv_cmd_destroy_qp");
	int error = next(qp);

	if (!error && atomic_exchange(&hold_destroy, false)) {
		destroyed = true;
		if (!comes(&release_destroy))
			tb_fail("the command that was held back was never released");
	}
	return error;
}

/* The private structures do not matter: each begins with the QP. */
int ibv_cmd_create_qp_ex(struct ibv_context *context, void *qp, struct ibv_qp_init_attr_ex *attr, void *cmd,
			 size_t cmd_size, void *resp, size_t resp_size)
{
	int (*next)(struct ibv_context *, void *, struct ibv_qp_init_attr_ex *, void *, size_t, void *, size_t) =
		real("ibv_cmd_create_qp_ex");
	int error = next(context, qp, attr, cmd, cmd_size, resp, resp_size);

	if (!error && atomic_exchange(&repeat_number, false)) {
		((struct ibv_qp *)qp)->qp_num = number_given_back;
		created = true;
	}
	return error;
}

static void *destroy_one(void *q)
{
	tb_qp_destroy(q);
	return NULL;
}

static atomic_bool second_is_there;

static void *create_one(void *cq)
{
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct ibv_qp *qp = ibv_create_qp(side.pd, &init);

	second_is_there = true;
	return qp;
}

/*
 * The command that destroys a QP has completed, but the completions of the QP are not
 * removed yet, and another QP gets its number.  The command of the second QP must not
 * wait for the first.  The second must not exist before the first is removed.
 */
static void same_number(void)
{
	struct tb_opts opts = tb_pair_defaults();
	pthread_t destroying, creating;
	struct ibv_cq *cq;
	struct ibv_qp *second;
	struct tb_qp first;

	cq = ibv_create_cq(side.ctx, 16, NULL, NULL, 0);
	if (!cq)
		tb_die("ibv_create_cq");
	tb_qp_create(&first, &side, IBV_QPT_RC, &opts);
	destroyed = release_destroy = created = second_is_there = false;
	number_given_back = first.qp->qp_num;
	hold_destroy = true;
	if (pthread_create(&destroying, NULL, destroy_one, &first))
		tb_die("pthread_create");
	if (!comes(&destroyed))
		tb_fail("the provider did not destroy the QP");

	repeat_number = true;
	if (pthread_create(&creating, NULL, create_one, cq))
		tb_die("pthread_create");
	if (!comes(&created))
		tb_fail("creating a QP waits for a command of another thread");
	sleep_ms(HELD_MS);
	if (second_is_there)
		tb_fail("a QP has the number of one that is still there");
	release_destroy = true;
	if (!comes(&second_is_there))
		tb_fail("creating a QP does not go on when the number is free");
	pthread_join(destroying, NULL);
	pthread_join(creating, (void **)&second);
	repeat_number = false;
	if (!second)
		tb_die("ibv_create_qp");
	if (ibv_destroy_qp(second) || ibv_destroy_cq(cq))
		tb_die("taking down a QP");
}

#define TURNS	100

static pthread_barrier_t turns;
static atomic_uint turns_done;

static void *destroy_in_turns(void *qps)
{
	struct ibv_qp **first = qps;
	unsigned int i;

	for (i = 0; i < TURNS; i++) {
		number_given_back = first[i]->qp_num;
		pthread_barrier_wait(&turns);
		if (ibv_destroy_qp(first[i]))
			tb_die("ibv_destroy_qp");
		pthread_barrier_wait(&turns);
	}
	return NULL;
}

static void *create_in_turns(void *cq)
{
	struct ibv_qp *qp;
	unsigned int i;

	for (i = 0; i < TURNS; i++) {
		pthread_barrier_wait(&turns);
		repeat_number = true;
		qp = create_one(cq);
		if (!qp || ibv_destroy_qp(qp))
			tb_die("a QP with the number of another");
		turns_done++;
		pthread_barrier_wait(&turns);
	}
	return NULL;
}

/* The same without a delayed command: a thread that waits for a number is woken, at any timing. */
static void same_number_at_once(void)
{
	struct ibv_qp_init_attr init = { .cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	unsigned int i, done = 0;
	struct ibv_qp *first[TURNS];
	pthread_t destroying, creating;
	struct ibv_cq *cq;
	int64_t limit;

	cq = ibv_create_cq(side.ctx, 16, NULL, NULL, 0);
	if (!cq)
		tb_die("ibv_create_cq");
	init.send_cq = init.recv_cq = cq;
	for (i = 0; i < TURNS; i++) {
		first[i] = ibv_create_qp(side.pd, &init);
		if (!first[i])
			tb_die("ibv_create_qp");
	}
	turns_done = 0;
	pthread_barrier_init(&turns, NULL, 2);
	if (pthread_create(&destroying, NULL, destroy_in_turns, first) ||
	    pthread_create(&creating, NULL, create_in_turns, cq))
		tb_die("pthread_create");
	for (limit = tb_now_ms() + TB_WAIT_MS; done < TURNS; sleep_ms(1)) {
		if (turns_done != done)
			limit = tb_now_ms() + TB_WAIT_MS;
		else if (tb_now_ms() > limit)
			tb_die("turn %u: creating a QP does not go on when the number is free", done);
		done = turns_done;
	}
	pthread_join(destroying, NULL);
	pthread_join(creating, NULL);
	pthread_barrier_destroy(&turns);
	if (ibv_destroy_cq(cq))
		tb_die("ibv_destroy_cq");
}

/* ------------------------------------------------------------------ */
/* Created while a CQ is polled                                         */

#define POLLS		5
#define CREATED		3	/* QPs during each poll */

static struct ibv_cq_ex *extended;
static atomic_bool polled;

/* Posts a receive, which is flushed: there is a completion to poll. */
static void complete_one(struct tb_qp *q)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;
	struct tb_opts opts = tb_pair_defaults();

	opts.recv_cq = ibv_cq_ex_to_cq(extended);
	tb_qp_create(q, &side, IBV_QPT_RC, &opts);
	tb_qp_connect(q, q, &opts, opts.qp_access, 0);
	if (ibv_post_recv(q->qp, &wr, &bad) || ibv_modify_qp(q->qp, &attr, IBV_QP_STATE))
		tb_die("a receive that is flushed");
}

/* Between ibv_start_poll() and ibv_end_poll() the CQ is locked. */
static void *create_while_polling(void *arg)
{
	struct ibv_qp_init_attr init = { .send_cq = ibv_cq_ex_to_cq(extended), .recv_cq = ibv_cq_ex_to_cq(extended),
					 .cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	int64_t limit = tb_now_ms() + TB_WAIT_MS;
	struct ibv_poll_cq_attr attr = {};
	struct ibv_qp *qps[CREATED];
	int i, error;

	do {
		error = ibv_start_poll(extended, &attr);
	} while (error == ENOENT && tb_now_ms() < limit);
	if (error)
		tb_die("ibv_start_poll: %s", strerror(error));
	hold_destroy = true;
	polled = true;
	/* The kernel has destroyed the QP of the other thread, whose completions this CQ may have. */
	if (!comes(&destroyed))
		tb_fail("the provider did not destroy the QP");
	release_destroy = true;
	sleep_ms(5);
	for (i = 0; i < CREATED; i++) {
		qps[i] = ibv_create_qp(side.pd, &init);
		if (!qps[i])
			tb_die("ibv_create_qp");
	}
	ibv_end_poll(extended);
	for (i = 0; i < CREATED; i++)
		if (ibv_destroy_qp(qps[i]))
			tb_die("ibv_destroy_qp");
	created = true;
	return arg;
}

static void *destroy_while_polled(void *qp)
{
	if (!comes(&polled))
		tb_fail("nobody polls");
	if (ibv_destroy_qp(qp))
		tb_die("ibv_destroy_qp");
	second_is_there = true;
	return NULL;
}

/* A thread that polls a CQ creates QPs, and another one destroys a QP of this CQ: they do not deadlock. */
static void created_while_polling(void)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 64 };
	struct ibv_qp_init_attr init = { .cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	pthread_t polling_thread, destroying;
	struct tb_qp completes;
	struct ibv_qp *gone;
	int i;

	extended = ibv_create_cq_ex(side.ctx, &attr);
	if (!extended)
		tb_die("ibv_create_cq_ex");
	init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(extended);
	for (i = 0; i < POLLS && !tb_failed(); i++) {
		complete_one(&completes);
		gone = ibv_create_qp(side.pd, &init);
		if (!gone)
			tb_die("ibv_create_qp");
		polled = destroyed = release_destroy = created = second_is_there = false;
		if (pthread_create(&polling_thread, NULL, create_while_polling, NULL) ||
		    pthread_create(&destroying, NULL, destroy_while_polled, gone))
			tb_die("pthread_create");
		if (!comes(&created) || !comes(&second_is_there))
			tb_die("poll %d: %s waits for ever", i, created ? "destroying a QP" : "creating a QP");
		pthread_join(polling_thread, NULL);
		pthread_join(destroying, NULL);
		tb_qp_destroy(&completes);
	}
	hold_destroy = false;
	if (ibv_destroy_cq(ibv_cq_ex_to_cq(extended)))
		tb_die("ibv_destroy_cq");
}

/* ------------------------------------------------------------------ */
/* QPs created and destroyed, on one CQ that is polled and resized      */

#define WORKERS		3
#define ROUNDS		24
#define WRITES		8
#define GONE		UINT32_MAX

/* The requests of a worker's QP that are not completed. */
struct worker {
	unsigned int number;
	uint32_t round;		/* or GONE */
	uint32_t qpn;
	uint32_t next;		/* of its WRITEs */
};

static struct worker workers[WORKERS];
static pthread_mutex_t polling = PTHREAD_MUTEX_INITIALIZER;	/* protects workers, held around polls */
static struct ibv_cq *shared;
static atomic_int working;
static atomic_uint resizes, completions;

static uint64_t id_of(unsigned int worker, uint32_t round, uint32_t index)
{
	return (uint64_t)worker << 48 | (uint64_t)round << 16 | index;
}

static void check(const struct ibv_wc *wc)
{
	struct worker *w = &workers[wc->wr_id >> 48];
	uint32_t round = wc->wr_id >> 16;

	completions++;
	if (wc->status != IBV_WC_SUCCESS || round != w->round || wc->qp_num != w->qpn ||
	    (wc->wr_id & 0xffff) != w->next++)
		tb_fail("worker %u: WRITE %u of round %u, QP 0x%x, \"%s\"; expected are WRITE %u of round %u, QP 0x%x",
			w->number, (unsigned int)(wc->wr_id & 0xffff), round, wc->qp_num,
			ibv_wc_status_str(wc->status), w->next - 1, w->round, w->qpn);
}

static void poll_once(void)
{
	struct ibv_wc wc[4];
	int i, n;

	pthread_mutex_lock(&polling);
	n = ibv_poll_cq(shared, ARRAY_SIZE(wc), wc);
	if (n < 0)
		tb_fail("ibv_poll_cq: %d", n);
	for (i = 0; i < n; i++)
		check(&wc[i]);
	pthread_mutex_unlock(&polling);
}

static void *poll_on_and_on(void *arg)
{
	while (working && !tb_failed())
		poll_once();
	return arg;
}

/* No size is too small for all that may be outstanding. */
static void *resize_on_and_on(void *arg)
{
	static const int entries[] = { 200, 33, 1000, 40 };
	unsigned int i;

	for (i = 0; working && !tb_failed(); i++) {
		if (ibv_resize_cq(shared, entries[i % ARRAY_SIZE(entries)]))
			tb_fail("ibv_resize_cq to %d", entries[i % ARRAY_SIZE(entries)]);
		resizes++;
	}
	return arg;
}

static void set_worker(struct worker *w, uint32_t round, uint32_t qpn)
{
	pthread_mutex_lock(&polling);
	w->round = round;
	w->qpn = qpn;
	w->next = 0;
	pthread_mutex_unlock(&polling);
}

static uint32_t completed(struct worker *w)
{
	uint32_t next;

	pthread_mutex_lock(&polling);
	next = w->next;
	pthread_mutex_unlock(&polling);
	return next;
}

static void post_write(struct tb_qp *q, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)q->buf, 64, q->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)q->buf + 4096;
	wr.wr.rdma.rkey = q->mr->rkey;
	if (ibv_post_send(q->qp, &wr, &bad))
		tb_fail("ibv_post_send");
}

/* Each round has its own QP, which is destroyed when some or all of its WRITEs have been polled. */
static void *come_and_go(void *arg)
{
	struct ibv_qp_init_attr init = { .send_cq = shared, .recv_cq = shared, .cap = { WRITES, 1, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC };
	struct tb_opts opts = tb_pair_defaults();
	struct worker *w = arg;
	struct tb_qp own;
	struct ibv_qp *spare;
	uint32_t round, i;

	tb_qp_create(&own, &side, IBV_QPT_RC, &opts);
	spare = own.qp;
	for (round = 0; round < ROUNDS && !tb_failed(); round++) {
		int64_t limit = tb_now_ms() + TB_WAIT_MS;

		own.qp = ibv_create_qp(side.pd, &init);
		if (!own.qp)
			tb_die("ibv_create_qp");
		set_worker(w, round, own.qp->qp_num);
		tb_qp_connect(&own, &own, &opts, opts.qp_access, 0);
		for (i = 0; i < WRITES; i++)
			post_write(&own, id_of(w->number, round, i));
		while (completed(w) < round % (WRITES + 1) && !tb_failed())
			if (tb_now_ms() > limit)
				tb_fail("worker %u: %u WRITEs completed", w->number, completed(w));
		if (ibv_destroy_qp(own.qp))
			tb_die("ibv_destroy_qp");
		set_worker(w, GONE, 0);
	}
	own.qp = spare;
	tb_qp_destroy(&own);
	working--;
	return NULL;
}

static void come_and_gone(void)
{
	pthread_t threads[WORKERS], poller, resizer;
	unsigned int i;

	shared = ibv_create_cq(side.ctx, 100, NULL, NULL, 0);
	if (!shared)
		tb_die("ibv_create_cq");
	working = WORKERS;
	resizes = completions = 0;
	for (i = 0; i < WORKERS; i++) {
		workers[i] = (struct worker) { .number = i, .round = GONE };
		if (pthread_create(&threads[i], NULL, come_and_go, &workers[i]))
			tb_die("pthread_create");
	}
	if (pthread_create(&poller, NULL, poll_on_and_on, NULL) ||
	    pthread_create(&resizer, NULL, resize_on_and_on, NULL))
		tb_die("pthread_create");
	for (i = 0; i < WORKERS; i++)
		pthread_join(threads[i], NULL);
	pthread_join(poller, NULL);
	pthread_join(resizer, NULL);
	/* The remaining completions belonged to destroyed QPs. */
	poll_once();
	if (!resizes || completions < WORKERS * ROUNDS)
		tb_fail("%u completions, %u sizes", completions, resizes);
	printf("# %u QPs, %u completions, %u sizes\n", WORKERS * ROUNDS, completions, resizes);
	if (ibv_destroy_cq(shared))
		tb_die("ibv_destroy_cq");
}

/* ------------------------------------------------------------------ */
/* Buffers of QPs that are gone                                         */

#define AT_ONCE		4
#define AGAIN		100
#define LONGEST		4096	/* work requests */
#define KEPT_MAX	(3 << 20)

static void qps_of(struct ibv_cq *cq, uint32_t wrs)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .cap = { wrs, wrs, 1, 1, 0 }, .qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qps[AT_ONCE];
	unsigned int i;

	for (i = 0; i < AT_ONCE; i++) {
		qps[i] = ibv_create_qp(side.pd, &init);
		if (!qps[i])
			tb_die("ibv_create_qp");
	}
	for (i = 0; i < AT_ONCE; i++)
		if (ibv_destroy_qp(qps[i]))
			tb_die("ibv_destroy_qp");
}

static long page_faults(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage))
		tb_die("getrusage");
	return usage.ru_minflt;
}

static size_t mapped_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	size_t pages;

	if (!file || fscanf(file, "%zu", &pages) != 1)
		tb_die("/proc/self/statm");
	fclose(file);
	return pages * sysconf(_SC_PAGESIZE);
}

/* The next QPs of the same size fault no pages in, and what is kept for them has a bound. */
static void buffers_stay(void)
{
	struct ibv_cq *cq = ibv_create_cq(side.ctx, 16, NULL, NULL, 0);
	size_t before, after;
	uint32_t wrs;
	long faults;
	int i;

	if (!cq)
		tb_die("ibv_create_cq");
	before = mapped_bytes();
	for (wrs = 1; wrs <= LONGEST; wrs *= 2)
		qps_of(cq, wrs);
	after = mapped_bytes();
	if (after > before + KEPT_MAX)
		tb_fail("%zu bytes more are mapped than before", after - before);

	qps_of(cq, 64);
	faults = page_faults();
	for (i = 0; i < AGAIN; i++)
		qps_of(cq, 64);
	faults = page_faults() - faults;
	printf("# %ld page faults, %zd bytes more\n", faults, (ssize_t)(after - before));
	if (faults > AGAIN)
		tb_fail("%ld page faults for %d QPs", faults, AGAIN * AT_ONCE);
	if (ibv_destroy_cq(cq))
		tb_die("ibv_destroy_cq");
}

static const struct tb_case cases[] = {
	{ "a number that comes again at once", same_number },
	{ "a number that comes again at once, many times", same_number_at_once },
	{ "QPs created while a CQ is polled", created_while_polling },
	{ "QPs that come and go on one CQ", come_and_gone },
	{ "buffers of QPs that are gone", buffers_stay },
};

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: tables DEVICE GID-INDEX [CASE...]\n");
		return 2;
	}
	tb_side_open(&side, argv[1], atoi(argv[2]), NULL);
	return tb_run(cases, ARRAY_SIZE(cases), argc - 3, argv + 3, NULL);
}
