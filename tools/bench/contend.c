// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RC QPs that contend for a device: WRITEs from DEVICE to PEER, which may be in another network namespace.
 *
 * contend fairness DEVICE GID-INDEX PEER GID-INDEX [NETNS]
 *	64 QPs with messages of 64 B to 64 KiB, by turns. All have much posted before the first may send. Until
 *	the first of them has sent all, and from when the last has begun, prints how far the QP that is farthest from it is from the
 *	mean of the bytes a QP, in percent: of the bytes on the link, then of the payloads; the mean of the bytes on
 *	the link; and the time in ms.
 * contend latency DEVICE GID-INDEX PEER GID-INDEX [NETNS]
 *	A WRITE of 8 bytes from its post to its completion, alone and beside WRITEs of 1 MiB on another QP from another
 *	thread. Prints how many times the 90th percentile alone the one beside them is, and the same of the medians; the
 *	medians and the 90th percentiles, alone and beside them, in us; MB/s of the others. The median depends on how much
 *	of the time the host lets the others go on; the 90th percentile has the WRITEs that wait for them.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>

#include "device.h"

#define QPS		64
#define SIZES		11		/* 64 B << 0 to 64 B << 10 */
#define BACKLOG		(9 << 18)	/* bytes posted of each QP, if its queue holds as many */
#define BATCH_BYTES	(4 << 10)	/* of WRITEs with one completion, or one WRITE */
#define CQ_ENTRIES	30000		/* 64 QPs have 24,000 completions at most; rxe has no longer CQ */
#define MIB		(1 << 20)
#define BULK_DEPTH	1024		/* WRITEs of 1 MiB that are posted at all times */
#define PERIOD_NS	100000		/* from one sample to the next */
#define ACCESS		(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
#define WARM_UP		16		/* WRITEs of 1 MiB */
#define SPAN_NS		3000000000LL
#define SAMPLES		20000
#define SILENCE_NS	20000000000LL

struct side {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	union ibv_gid gid;
	int gid_index;
	enum ibv_mtu mtu;
	const char *netns;
};

/* A QP of DEVICE, with a list of WRITEs of one size of which the last is signalled. */
struct sender {
	struct ibv_qp *qp, *peer;
	struct ibv_cq *cq;
	struct ibv_send_wr *wrs;
	struct ibv_sge sge;
	uint32_t batch;			/* WRITEs in the list */
	uint32_t depth;			/* lists that the queue holds */
	uint64_t bytes;			/* of one WRITE */
	uint64_t done;			/* WRITEs completed */
	uint32_t batches;		/* that are posted, and not done */
};

static struct side near, far;

/* Enters a network namespace, whose devices sysfs then shows. */
static void set_netns(int fd)
{
	if (setns(fd, CLONE_NEWNET) || umount2("/sys", MNT_DETACH) || mount("sysfs", "/sys", "sysfs", 0, NULL))
		die("setns");
}

static int visit(const char *netns)
{
	char path[256];
	int home, fd;

	if (!netns)
		return -1;
	home = open("/proc/self/ns/net", O_RDONLY);
	snprintf(path, sizeof(path), "/run/netns/%s", netns);
	fd = open(path, O_RDONLY);
	if (home < 0 || fd < 0 || unshare(CLONE_NEWNS) || mount("", "/", "none", MS_SLAVE | MS_REC, NULL))
		die(path);
	set_netns(fd);
	close(fd);
	return home;
}

static void come_home(int home)
{
	if (home < 0)
		return;
	set_netns(home);
	close(home);
}

static void open_side(struct side *s, const char *name, const char *gid_index, const char *netns)
{
	int home = visit(netns);
	struct ibv_port_attr port;
	void *memory = aligned_alloc(4096, MIB);

	memset(memory, 1, MIB);
	s->netns = netns;
	s->gid_index = atoi(gid_index);
	s->ctx = open_device(name);
	s->pd = ibv_alloc_pd(s->ctx);
	s->cq = ibv_create_cq(s->ctx, CQ_ENTRIES, NULL, NULL, 0);
	s->mr = s->pd ? ibv_reg_mr(s->pd, memory, MIB, ACCESS) : NULL;
	if (!s->cq || !s->mr || ibv_query_gid(s->ctx, 1, s->gid_index, &s->gid) || ibv_query_port(s->ctx, 1, &port))
		die(name);
	s->mtu = port.active_mtu;
	come_home(home);
}

static struct ibv_qp *make_qp(struct side *s, struct ibv_cq *cq, uint32_t depth)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = depth, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(s->pd, &init);

	if (!qp)
		die("ibv_create_qp");
	return qp;
}

static void connect_qp(struct side *s, struct ibv_qp *qp, struct side *peer, uint32_t peer_qpn)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ACCESS };
	int home = visit(s->netns);

	if (ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		die("INIT");
	a.qp_state = IBV_QPS_RTR;
	a.path_mtu = s->mtu < peer->mtu ? s->mtu : peer->mtu;
	a.dest_qp_num = peer_qpn;
	a.ah_attr = (struct ibv_ah_attr) { .is_global = 1, .port_num = 1,
		.grh = { .dgid = peer->gid, .sgid_index = s->gid_index, .hop_limit = 64 } };
	if (ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		die("RTR");
	a.qp_state = IBV_QPS_RTS;
	a.timeout = 18;
	a.retry_cnt = 7;
	a.rnr_retry = 7;
	if (ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		die("RTS");
	come_home(home);
}

static void open_sender(struct sender *s, struct ibv_cq *cq, uint32_t bytes, uint32_t batch, uint32_t batches)
{
	uint32_t i;

	*s = (struct sender) { .cq = cq, .bytes = bytes, .batch = batch, .depth = batches };
	s->qp = make_qp(&near, cq, batch * batches + 1);
	s->peer = make_qp(&far, far.cq, 1);
	connect_qp(&near, s->qp, &far, s->peer->qp_num);
	connect_qp(&far, s->peer, &near, s->qp->qp_num);
	s->sge = (struct ibv_sge) { (uintptr_t)near.mr->addr, bytes, near.mr->lkey };
	s->wrs = calloc(batch, sizeof(*s->wrs));
	for (i = 0; i < batch; i++)
		s->wrs[i] = (struct ibv_send_wr) {
			.wr_id = (uintptr_t)s,
			.next = i + 1 < batch ? &s->wrs[i + 1] : NULL,
			.sg_list = &s->sge,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = i + 1 < batch ? 0 : IBV_SEND_SIGNALED,
			.wr.rdma = { (uintptr_t)far.mr->addr, far.mr->rkey },
		};
}

static void post(struct sender *s)
{
	struct ibv_send_wr *bad;

	s->batches++;
	if (ibv_post_send(s->qp, s->wrs, &bad))
		die("ibv_post_send");
}

/* The sender whose batch is done; NULL: none is. */
static struct sender *poll_once(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	struct sender *s;
	int n = ibv_poll_cq(cq, 1, &wc);

	if (n < 0 || (n && wc.status != IBV_WC_SUCCESS)) {
		fprintf(stderr, "completion: %s\n", n < 0 ? "ibv_poll_cq" : ibv_wc_status_str(wc.status));
		exit(1);
	}
	if (!n)
		return NULL;
	s = (struct sender *)(uintptr_t)wc.wr_id;
	s->done += s->batch;
	s->batches--;
	return s;
}

/* ---- fairness */

/* Of a WRITE on the link: Ethernet, IPv4, UDP, BTH and ICRC of each packet; RETH of the first. */
static uint64_t link_bytes(uint64_t payload)
{
	uint64_t mtu = 128 << (near.mtu < far.mtu ? near.mtu : far.mtu);

	return payload + (payload + mtu - 1) / mtu * (14 + 20 + 8 + 12 + 4) + 16;
}

static double deviation(const struct sender *senders, bool on_link)
{
	double sum = 0, least = 0, most = 0;
	int i;

	for (i = 0; i < QPS; i++) {
		double bytes = senders[i].done * (double)(on_link ? link_bytes(senders[i].bytes) : senders[i].bytes);

		sum += bytes;
		least = !i || bytes < least ? bytes : least;
		most = bytes > most ? bytes : most;
	}
	sum /= QPS;
	return 100 * (most - sum > sum - least ? most - sum : sum - least) / sum;
}

/* A SEND without a receive, which the peer refuses for 655 ms (IBA vol 1, table 45: code 0). */
static void close_gate(struct sender *s)
{
	struct ibv_send_wr *bad, wr = { .wr_id = 0, .opcode = IBV_WR_SEND };

	if (ibv_post_send(s->qp, &wr, &bad))
		die("ibv_post_send");
}

static void open_gate(struct sender *s)
{
	struct ibv_recv_wr *bad, wr = { .wr_id = 0 };

	if (ibv_post_recv(s->peer, &wr, &bad))
		die("ibv_post_recv");
}

/*
 * Takes completions, which are in the order of the device, until all QPs have sent a batch, or until
 * one of them has one batch left to send.
 */
static void follow(bool to_begin)
{
	int64_t end = now_ns() + SILENCE_NS;
	struct sender *s = NULL;
	int behind = QPS;

	while (to_begin ? behind : !s || s->batches > 1) {
		if (now_ns() > end)
			die("the QPs do not go on");
		s = poll_once(near.cq);
		behind -= s && s->batches + 1 == s->depth;
	}
}

static int fairness(void)
{
	static struct sender senders[QPS];
	struct ibv_device_attr attr;
	double mean = 0;
	int64_t start;
	int i, n;

	if (ibv_query_device(near.ctx, &attr))
		die("ibv_query_device");
	for (i = 0; i < QPS; i++) {
		uint32_t bytes = 64 << i % SIZES, batch = bytes < BATCH_BYTES ? BATCH_BYTES / bytes : 1;
		uint32_t batches = BACKLOG / (batch * bytes), room = (attr.max_qp_wr - 1) / batch;

		open_sender(&senders[i], near.cq, bytes, batch, batches < room ? batches : room);
	}
	for (i = 0; i < QPS; i++)
		close_gate(&senders[i]);
	for (i = 0; i < QPS; i++)
		for (n = senders[i].depth; n; n--)
			post(&senders[i]);
	for (i = 0; i < QPS; i++)
		open_gate(&senders[i]);
	follow(true);
	for (i = 0; i < QPS; i++)
		senders[i].done = 0;
	start = now_ns();
	follow(false);
	for (i = 0; i < QPS; i++)
		mean += senders[i].done * (double)link_bytes(senders[i].bytes) / QPS;
	printf("%.3g %.3g %.4g %.4g\n", deviation(senders, true), deviation(senders, false), mean,
	       (now_ns() - start) / 1e6);
	return 0;
}

/* ---- latency */

static atomic_bool stop;

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void *send_bulk(void *argument)
{
	struct sender *bulk = argument, *s;
	int i;

	pin(1);
	for (i = 0; i < BULK_DEPTH; i++)
		post(bulk);
	while (!stop) {
		s = poll_once(bulk->cq);
		if (s)
			post(s);
	}
	return NULL;
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/*
 * The times of WRITEs that are posted in a rhythm, in order; how many. One after the other, most
 * would be posted while the device has time.
 */
static int take_samples(struct sender *s, int64_t *samples)
{
	int64_t end = now_ns() + SPAN_NS, begin = now_ns();
	int n;

	for (n = 0; n < SAMPLES && now_ns() < end; n++) {
		int64_t start = begin + n * PERIOD_NS;

		if (now_ns() > start)	/* the one before has taken longer */
			begin += now_ns() - start;
		while (now_ns() < start)
			;
		start = now_ns();
		post(s);
		while (!poll_once(s->cq))
			if (now_ns() - start > SILENCE_NS)
				die("a WRITE does not complete");
		samples[n] = now_ns() - start;
	}
	qsort(samples, n, sizeof(*samples), by_value);
	return n;
}

static int latency(void)
{
	static int64_t alone[SAMPLES], beside[SAMPLES];
	static struct sender small, bulk;
	struct ibv_cq *bulk_cq = ibv_create_cq(near.ctx, BULK_DEPTH, NULL, NULL, 0);
	pthread_t thread;
	int64_t start, spent;
	int m, n;

	if (!bulk_cq)
		die("ibv_create_cq");
	pin(0);
	open_sender(&small, near.cq, 8, 1, 1);
	open_sender(&bulk, bulk_cq, MIB, 1, BULK_DEPTH);
	take_samples(&small, alone);	/* to warm up */
	m = take_samples(&small, alone);
	if (pthread_create(&thread, NULL, send_bulk, &bulk))
		die("pthread_create");
	while (bulk.done < WARM_UP)
		sched_yield();
	start = now_ns();
	bulk.done = 0;
	n = take_samples(&small, beside);
	spent = now_ns() - start;
	stop = true;
	pthread_join(thread, NULL);
	printf("%.4g %.4g %.4g %.4g %.4g %.4g %.0f\n", (double)beside[n * 9 / 10] / alone[m * 9 / 10],
	       (double)beside[n / 2] / alone[m / 2], alone[m / 2] / 1e3, beside[n / 2] / 1e3, alone[m * 9 / 10] / 1e3,
	       beside[n * 9 / 10] / 1e3, bulk.done * bulk.bytes * 1e3 / spent);
	return 0;
}

int main(int argc, char **argv)
{
	bool fair = argc > 1 && !strcmp(argv[1], "fairness");

	if ((argc != 6 && argc != 7) || (!fair && strcmp(argv[1], "latency"))) {
		fprintf(stderr, "usage: contend fairness|latency DEVICE GID-INDEX PEER GID-INDEX [NETNS]\n");
		return 2;
	}
	open_side(&near, argv[2], argv[3], NULL);
	open_side(&far, argv[4], argv[5], argv[6]);
	return fair ? fairness() : latency();
}
