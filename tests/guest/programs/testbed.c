// SPDX-License-Identifier: GPL-2.0-or-later
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>
#include "ernic_hw.h"
#include "testbed.h"

#define CQ_ENTRIES	64
#define RQ_ENTRIES	32
#define LOCAL_PSN	0xfffff0	/* wraps within a few packets */

static bool failed;

void tb_die(const char *what, ...)
{
	int error = errno;
	va_list args;

	va_start(args, what);
	printf("Bail out! ");
	vprintf(what, args);
	printf(" (%s)\n", strerror(error));
	va_end(args);
	exit(2);
}

void tb_fail(const char *what, ...)
{
	va_list args;

	failed = true;
	va_start(args, what);
	printf("# ");
	vprintf(what, args);
	printf("\n");
	va_end(args);
}

bool tb_failed(void)
{
	return failed;
}

static bool matches(const char *name, const char *argument)
{
	return argument[0] == '=' ? !strcmp(name, argument + 1) : !!strstr(name, argument);
}

/*
 * An argument selects names that contain it, or, after `=`, one complete name.  After `!`, it
 * excludes them.
 */
static bool wanted(const char *name, int argc, char **argv)
{
	bool selects = false, found = false;
	int i;

	for (i = 0; i < argc; i++) {
		if (argv[i][0] == '!') {
			if (matches(name, argv[i] + 1))
				return false;
			continue;
		}
		selects = true;
		found |= matches(name, argv[i]);
	}
	return found || !selects;
}

int tb_run(const struct tb_case *cases, size_t count, int argc, char **argv, void (*after_each)(void))
{
	int number = 0, bad = 0;
	size_t i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 0; i < count; i++) {
		if (!wanted(cases[i].name, argc, argv))
			continue;
		failed = false;
		cases[i].run();
		if (after_each)
			after_each();
		bad += failed;
		printf("%sok %d - %s\n", failed ? "not " : "", ++number, cases[i].name);
	}
	printf("1..%d\n", number);
	return bad || !number;
}

int64_t tb_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

int tb_slowness(void)
{
	const char *value = getenv("SLOWNESS");

	return value ? atoi(value) : 1;
}

static void set_netns(int fd)
{
	if (setns(fd, CLONE_NEWNET))
		tb_die("setns");
	if (umount2("/sys", MNT_DETACH) || mount("sysfs", "/sys", "sysfs", 0, NULL))
		tb_die("mounting sysfs of the namespace");
}

/* Like `ip netns exec`, with a sysfs that shows the devices of the namespace. */
void tb_enter_netns(const char *netns)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "/run/netns/%s", netns);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		tb_die("%s", path);
	if (unshare(CLONE_NEWNS) || mount("", "/", "none", MS_SLAVE | MS_REC, NULL))
		tb_die("unshare");
	set_netns(fd);
	close(fd);
}

int tb_visit_netns(const char *netns)
{
	int home;

	if (!netns)
		return -1;
	home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (home < 0)
		tb_die("/proc/self/ns/net");
	tb_enter_netns(netns);
	return home;
}

void tb_return_netns(int home)
{
	if (home < 0)
		return;
	set_netns(home);
	close(home);
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_context *ctx = NULL;
	struct ibv_device **list;
	int i;

	list = ibv_get_device_list(NULL);
	if (!list)
		tb_die("ibv_get_device_list");
	for (i = 0; list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			ctx = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	if (!ctx)
		tb_die("no device %s", name);
	return ctx;
}

void tb_side_open(struct tb_side *side, const char *device, int gid_index, const char *netns)
{
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	int home = tb_visit_netns(netns);

	side->ctx = open_device(device);
	side->gid_index = gid_index;
	if (ibv_query_gid(side->ctx, 1, gid_index, &side->gid))
		tb_die("%s has no GID %d", device, gid_index);
	if (ibv_query_port(side->ctx, 1, &port) || port.state != IBV_PORT_ACTIVE)
		tb_die("%s: port 1 is not active", device);
	side->mtu = port.active_mtu;
	side->max_send = port.max_msg_sz;
	if (ibv_query_device(side->ctx, &attr))
		tb_die("ibv_query_device");
	side->is_ernic = attr.vendor_id == ERNIC_PCI_VENDOR_ID && attr.vendor_part_id == ERNIC_PCI_DEVICE_ID;
	side->pd = ibv_alloc_pd(side->ctx);
	if (!side->pd)
		tb_die("ibv_alloc_pd");
	if (fcntl(side->ctx->async_fd, F_SETFL, O_NONBLOCK))
		tb_die("fcntl");
	tb_return_netns(home);
}

int tb_open_sides(struct tb_side *a, struct tb_side *b, struct tb_side **peer, int argc, char **argv)
{
	int split;

	for (split = 1; split < argc && strcmp(argv[split], "--"); split++)
		;
	if (split != 3 && split != 6) {
		fprintf(stderr, "usage: %s DEVICE GID-INDEX [DEVICE GID-INDEX NETNS] [-- CASE...]\n",
			program_invocation_short_name);
		exit(2);
	}
	tb_side_open(a, argv[1], atoi(argv[2]), NULL);
	*peer = a;
	if (split == 6) {
		tb_side_open(b, argv[3], atoi(argv[4]), argv[5]);
		*peer = b;
	}
	return split < argc ? split + 1 : argc;
}

struct tb_opts tb_pair_defaults(void)
{
	return (struct tb_opts) {
		.qp_access = TB_ACCESS_ALL & ~IBV_ACCESS_LOCAL_WRITE,
		.mr_access = TB_ACCESS_ALL,
		.own_access = TB_ACCESS_ALL,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 0,
		.max_send_wr = 32,
		.max_send_sge = 2,
	};
}

void tb_qp_create(struct tb_qp *q, struct tb_side *side, enum ibv_qp_type type, const struct tb_opts *opts)
{
	struct ibv_qp_init_attr init = {
		.cap = {
			.max_send_wr = opts->max_send_wr,
			.max_recv_wr = RQ_ENTRIES,
			.max_send_sge = opts->max_send_sge,
			.max_recv_sge = 2,
			.max_inline_data = opts->max_inline,
		},
		.qp_type = type,
		.sq_sig_all = 1,
	};

	memset(q, 0, sizeof(*q));
	q->side = side;
	q->scq = ibv_create_cq(side->ctx, CQ_ENTRIES, NULL, NULL, 0);
	q->borrowed_rcq = opts->recv_cq;
	q->rcq = opts->recv_cq ? opts->recv_cq : ibv_create_cq(side->ctx, CQ_ENTRIES, NULL, NULL, 0);
	if (!q->scq || !q->rcq)
		tb_die("ibv_create_cq");
	init.send_cq = q->scq;
	init.recv_cq = q->rcq;
	init.srq = opts->srq;
	q->qp = ibv_create_qp(side->pd, &init);
	if (!q->qp)
		tb_die("ibv_create_qp");
	q->max_inline = init.cap.max_inline_data;
	if (posix_memalign((void **)&q->buf, 4096, TB_BUF_BYTES))
		tb_die("posix_memalign");
	memset(q->buf, 0, TB_BUF_BYTES);
	q->mr = ibv_reg_mr(side->pd, q->buf, TB_BUF_BYTES, opts->mr_access);
	if (!q->mr)
		tb_die("ibv_reg_mr");
}

/* Events are acknowledged when they are read, so this does not wait. */
void tb_qp_destroy(struct tb_qp *q)
{
	if (ibv_destroy_qp(q->qp) || ibv_destroy_cq(q->scq) || (!q->borrowed_rcq && ibv_destroy_cq(q->rcq)) ||
	    ibv_dereg_mr(q->mr))
		tb_die("taking down a QP");
	free(q->buf);
}

/* READs and atomics of a QP under way: four, or as many as the device takes. */
static uint8_t reads_of(struct ibv_context *ctx)
{
	struct ibv_device_attr attr;

	if (ibv_query_device(ctx, &attr))
		tb_die("ibv_query_device");
	return attr.max_qp_rd_atom < 4 ? attr.max_qp_rd_atom : 4;
}

void tb_qp_connect(struct tb_qp *q, const struct tb_qp *peer, const struct tb_opts *opts, unsigned int access,
		   uint32_t dest_qpn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = access,
	};
	uint8_t reads = reads_of(q->qp->context);

	if (ibv_modify_qp(q->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		tb_die("QP to INIT");
	attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = q->side->mtu < peer->side->mtu ? q->side->mtu : peer->side->mtu,
		.dest_qp_num = dest_qpn ? dest_qpn : peer->qp->qp_num,
		.rq_psn = LOCAL_PSN,
		.max_dest_rd_atomic = reads,
		.min_rnr_timer = 1,
		.ah_attr = {
			.is_global = 1,
			.port_num = 1,
			.static_rate = opts->static_rate,
			.grh = {
				.dgid = peer->side->gid,
				.sgid_index = q->side->gid_index,
				.hop_limit = 64,
			},
		},
	};
	if (ibv_modify_qp(q->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		tb_die("QP to RTR");
	attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTS,
		.timeout = opts->timeout,
		.retry_cnt = opts->retry_cnt,
		.rnr_retry = opts->rnr_retry,
		.sq_psn = LOCAL_PSN,
		.max_rd_atomic = reads,
	};
	if (ibv_modify_qp(q->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		tb_die("QP to RTS");
}

void tb_ud_start(struct tb_qp *q, uint32_t qkey)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = qkey };

	if (ibv_modify_qp(q->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY))
		tb_die("UD QP to INIT");
	attr = (struct ibv_qp_attr) { .qp_state = IBV_QPS_RTR };
	if (ibv_modify_qp(q->qp, &attr, IBV_QP_STATE))
		tb_die("UD QP to RTR");
	attr = (struct ibv_qp_attr) { .qp_state = IBV_QPS_RTS };
	if (ibv_modify_qp(q->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN))
		tb_die("UD QP to RTS");
}

void tb_pair_create(struct tb_pair *p, struct tb_side *a, struct tb_side *b, const struct tb_opts *opts)
{
	struct tb_opts plain = tb_pair_defaults();

	plain.max_send_wr = opts->max_send_wr;
	plain.max_send_sge = opts->max_send_sge;
	plain.max_inline = opts->max_inline;
	plain.mr_access = opts->own_access;
	tb_qp_create(&p->a, a, IBV_QPT_RC, &plain);
	tb_qp_create(&p->b, b, IBV_QPT_RC, opts);
	tb_qp_connect(&p->a, &p->b, opts, opts->own_access & ~IBV_ACCESS_LOCAL_WRITE, opts->dest_qpn);
	tb_qp_connect(&p->b, &p->a, opts, opts->qp_access, 0);
}

static void drain_events(struct tb_side *side)
{
	struct ibv_async_event event;

	while (!ibv_get_async_event(side->ctx, &event))
		ibv_ack_async_event(&event);
}

void tb_pair_destroy(struct tb_pair *p)
{
	drain_events(p->a.side);
	drain_events(p->b.side);
	tb_qp_destroy(&p->a);
	tb_qp_destroy(&p->b);
	drain_events(p->a.side);
	drain_events(p->b.side);
}

bool tb_poll(struct ibv_cq *cq, struct ibv_wc *wc, const char *what)
{
	int64_t limit = tb_now_ms() + TB_WAIT_MS;
	int n;

	do {
		n = ibv_poll_cq(cq, 1, wc);
		if (n < 0) {
			tb_fail("%s: ibv_poll_cq failed", what);
			return false;
		}
		if (n)
			return true;
	} while (tb_now_ms() < limit);
	tb_fail("%s: no completion within %d ms", what, TB_WAIT_MS);
	return false;
}

bool tb_expect(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status, const char *what)
{
	struct ibv_wc wc;

	if (!tb_poll(cq, &wc, what))
		return false;
	if (wc.wr_id == wr_id && wc.status == status)
		return true;
	tb_fail("%s: wr_id %llu, status \"%s\"; expected wr_id %llu, \"%s\"", what, (unsigned long long)wc.wr_id,
		ibv_wc_status_str(wc.status), (unsigned long long)wr_id, ibv_wc_status_str(status));
	return false;
}

/* Call this after a later request has completed. */
bool tb_expect_none(struct ibv_cq *cq, const char *what)
{
	struct ibv_wc wc;

	if (!ibv_poll_cq(cq, 1, &wc))
		return true;
	tb_fail("%s: a completion too many: wr_id %llu, status \"%s\"", what, (unsigned long long)wc.wr_id,
		ibv_wc_status_str(wc.status));
	return false;
}

bool tb_expect_state(struct tb_qp *q, enum ibv_qp_state state, const char *what)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(q->qp, &attr, IBV_QP_STATE, &init)) {
		tb_fail("%s: ibv_query_qp failed", what);
		return false;
	}
	if (attr.qp_state == state)
		return true;
	tb_fail("%s: the QP is in state %d, expected %d", what, attr.qp_state, state);
	return false;
}

/* qp NULL: an event of the device or of a CQ. Events of other types are ignored. */
bool tb_expect_async(struct tb_side *side, enum ibv_event_type type, const struct ibv_qp *qp, const char *what)
{
	struct pollfd pfd = { .fd = side->ctx->async_fd, .events = POLLIN };
	int64_t limit = tb_now_ms() + TB_WAIT_MS;
	struct ibv_async_event event;
	int64_t left;
	bool found;

	while ((left = limit - tb_now_ms()) > 0) {
		if (poll(&pfd, 1, left) <= 0 || ibv_get_async_event(side->ctx, &event))
			continue;
		found = event.event_type == type && (!qp || event.element.qp == qp);
		ibv_ack_async_event(&event);
		if (found)
			return true;
	}
	tb_fail("%s: no asynchronous event \"%s\"", what, ibv_event_type_str(type));
	return false;
}

static void fill(uint8_t *buf, size_t size, uint8_t seed)
{
	size_t i;

	for (i = 0; i < size; i++)
		buf[i] = seed + i * 7 + (i >> 8);
}

static bool post(struct tb_qp *q, enum ibv_wr_opcode opcode, size_t offset, size_t size, const struct tb_qp *peer,
		 size_t remote_offset)
{
	struct ibv_sge sge = { (uintptr_t)q->buf + offset, size, q->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = opcode + 1, .sg_list = &sge, .num_sge = 1, .opcode = opcode };
	struct ibv_send_wr *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)peer->buf + remote_offset;
	wr.wr.rdma.rkey = peer->mr->rkey;
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)peer->buf + remote_offset;
		wr.wr.atomic.compare_add = 5;
		wr.wr.atomic.rkey = peer->mr->rkey;
	}
	if (!ibv_post_send(q->qp, &wr, &bad))
		return tb_expect(q->scq, opcode + 1, IBV_WC_SUCCESS, "sound traffic");
	tb_fail("sound traffic: ibv_post_send failed");
	return false;
}

static bool same(const void *a, const void *b, size_t size, const char *what)
{
	if (!memcmp(a, b, size))
		return true;
	tb_fail("sound traffic: wrong data after %s", what);
	return false;
}

static bool send_and_check(struct tb_qp *from, struct tb_qp *to, uint8_t seed)
{
	uint32_t size = to->side->max_send < 10000 ? to->side->max_send : 10000;
	struct ibv_sge sge = { (uintptr_t)to->buf + 32768, size, to->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 77, .sg_list = &sge, .num_sge = 1 }, *bad;

	fill(from->buf, size, seed);
	memset(to->buf + 32768, 0, size);
	if (ibv_post_recv(to->qp, &wr, &bad)) {
		tb_fail("sound traffic: ibv_post_recv failed");
		return false;
	}
	return post(from, IBV_WR_SEND, 0, size, to, 0) &&
	       tb_expect(to->rcq, 77, IBV_WC_SUCCESS, "sound traffic, receive") &&
	       same(from->buf, to->buf + 32768, size, "SEND");
}

static bool has_atomics(struct ibv_context *ctx)
{
	struct ibv_device_attr attr;

	if (ibv_query_device(ctx, &attr))
		tb_die("ibv_query_device");
	return attr.atomic_cap != IBV_ATOMIC_NONE;
}

bool tb_check_traffic(struct tb_pair *p, const char *who)
{
	enum { SIZE = 12345 };
	static uint8_t seed;
	uint64_t before = 0x1122334455667788, after = before + 5;
	bool ok;

	seed += 17;
	ok = send_and_check(&p->a, &p->b, seed) && send_and_check(&p->b, &p->a, seed + 3);
	fill(p->a.buf, SIZE, seed + 1);
	ok = ok && post(&p->a, IBV_WR_RDMA_WRITE, 0, SIZE, &p->b, 16384) &&
	     same(p->a.buf, p->b.buf + 16384, SIZE, "RDMA WRITE");
	fill(p->b.buf, SIZE, seed + 2);
	ok = ok && post(&p->a, IBV_WR_RDMA_READ, 16384, SIZE, &p->b, 0) &&
	     same(p->b.buf, p->a.buf + 16384, SIZE, "RDMA READ");
	memcpy(p->b.buf + 64, &before, 8);
	if (has_atomics(p->a.qp->context) && has_atomics(p->b.qp->context))
		ok = ok && post(&p->a, IBV_WR_ATOMIC_FETCH_AND_ADD, 128, 8, &p->b, 64) &&
		     same(p->a.buf + 128, &before, 8, "FETCH ADD, the answer") &&
		     same(p->b.buf + 64, &after, 8, "FETCH ADD, the target");
	if (!ok)
		tb_fail("%s does not work", who);
	return ok;
}
