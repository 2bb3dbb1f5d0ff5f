// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * No process can use a key, QP, CQ, AH or doorbell of another process:
 * isolation.h describes the tests.
 *
 * isolation DEVICE GID-INDEX COUNTERS [CASE...]
 *
 * COUNTERS is the folder of the device's counters in sysfs; its lifespan must be 0.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "isolation.h"

struct iso iso;

/* The objects that an intruder attacks; after every case they must work as before. */
static struct {
	uint8_t *memory;
	struct iso_link rc;		/* the windows were bound through rc.b */
	struct iso_link shared;		/* shared.b receives through the SRQ */
	struct iso_link datagrams;
	struct raw_srq srq;
	uint8_t dmac[6];
	unsigned int rc_posts, bind_posts, shared_posts, datagram_posts;
} estate;

/* ---- links */

void iso_link_create(struct iso_link *l, struct raw_ctx *ctx, enum ibv_qp_type type, struct raw_srq *srq_of_b)
{
	raw_qp_create_of(&l->a, ctx, type, NULL);
	raw_qp_create_of(&l->b, ctx, type, srq_of_b);
}

void iso_link_connect(struct iso_link *l)
{
	const struct iso_board *board = iso.board;

	if (l->a.type == IBV_QPT_UD) {
		raw_ud_start(&l->a, ISO_QKEY);
		raw_ud_start(&l->b, ISO_QKEY);
		return;
	}
	raw_qp_to_init(&l->a);
	raw_qp_to_init(&l->b);
	raw_qp_to_rtr(&l->a, board->gid.raw, board->gid_index, board->mtu, l->b.qpn);
	raw_qp_to_rtr(&l->b, board->gid.raw, board->gid_index, board->mtu, l->a.qpn);
	raw_qp_to_rts(&l->a);
	raw_qp_to_rts(&l->b);
}

void iso_link_destroy(struct iso_link *l)
{
	raw_qp_destroy(&l->a);
	raw_qp_destroy(&l->b);
}

void iso_build_write(struct raw_qp *qp, unsigned int index, const void *from, uint32_t lkey, uint64_t to,
		     uint32_t rkey)
{
	uint8_t *slot = raw_send_slot(qp, index);

	memset(slot, 0, RAW_STRIDE);
	raw_put_next(slot, HGHCA_WQE_CQ_UPDATE);
	raw_put_raddr(slot, 1, to, rkey);
	raw_put_data(slot, 2, from, WQE_BYTES, lkey);
}

void iso_ring(struct raw_qp *qp, unsigned int index, unsigned int opcode, unsigned int units)
{
	raw_ring(qp->ctx->uar, raw_sq_doorbell(qp->qpn, index, opcode, units, 1));
}

/* ---- the intruder */

struct order {
	iso_act *act;
	bool bare;			/* the process opens no device */
	bool for_ever;
};

static int nursery;

static void run_act(const struct order *order)
{
	struct raw_ctx own = {};

	setvbuf(stdout, NULL, _IOLBF, 0);
	do {
		if (!order->bare)
			raw_open(&own, iso.device);
		order->act(order->bare ? NULL : &own);
		if (!order->bare)
			raw_close(&own);
	} while (order->for_ever);
	exit(tb_failed());
}

/* A process that was forked before the device was opened: its children have no descriptor or memory of the owner. */
static void serve(int line)
{
	struct order order;
	int status;
	pid_t pid;

	while (read(line, &order, sizeof(order)) == sizeof(order)) {
		pid = fork();
		if (!pid) {
			close(line);
			run_act(&order);
		}
		if (pid < 0 || write(line, &pid, sizeof(pid)) != sizeof(pid) || waitpid(pid, &status, 0) != pid ||
		    write(line, &status, sizeof(status)) != sizeof(status))
			_exit(2);
	}
	_exit(0);
}

static void open_nursery(void)
{
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		tb_die("socketpair");
	pid = fork();
	if (pid < 0)
		tb_die("fork");
	if (!pid) {
		close(ends[0]);
		serve(ends[1]);
	}
	close(ends[1]);
	nursery = ends[0];
}

static pid_t begin(struct order order)
{
	pid_t pid;

	fflush(stdout);
	if (write(nursery, &order, sizeof(order)) != sizeof(order) || read(nursery, &pid, sizeof(pid)) != sizeof(pid))
		tb_die("no intruder");
	return pid;
}

static int end(void)
{
	int status;

	if (read(nursery, &status, sizeof(status)) != sizeof(status))
		tb_die("the intruder was lost");
	return status;
}

static void intrude(struct order order)
{
	int status;

	begin(order);
	status = end();
	if (status)
		tb_fail("the other process ended with status 0x%x", status);
}

void iso_intrude(iso_act *act)
{
	intrude((struct order) { .act = act });
}

void iso_intrude_bare(iso_act *act)
{
	intrude((struct order) { .act = act, .bare = true });
}

static uint32_t steps_done(void)
{
	return __atomic_load_n(&iso.board->step, __ATOMIC_RELAXED);
}

void iso_kill_amidst(iso_act *act, int rounds)
{
	uint32_t first = steps_done(), target;
	int64_t limit;
	int i, status;
	pid_t pid;

	for (i = 0; i < rounds && !tb_failed(); i++) {
		pid = begin((struct order) { .act = act, .for_ever = true });
		target = first + i * 7 % 5 + 1;
		for (limit = tb_now_ms() + TB_WAIT_MS; steps_done() < target && tb_now_ms() < limit;)
			;
		if (steps_done() < target)
			tb_fail("the other process does not get on");
		/* At some time within the step, not always at its beginning. */
		nanosleep(&(struct timespec) { .tv_nsec = i * 130000 % 900000 }, NULL);
		kill(pid, SIGKILL);
		status = end();
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
			tb_fail("the other process ended by itself, with status 0x%x", status);
		first = steps_done();
	}
}

/* ---- the owner */

long iso_counter(const char *name)
{
	return raw_counter(iso.counters, name);
}

void iso_counted(const char *name, long before, long by)
{
	long now = iso_counter(name);

	if (now != before + by)
		tb_fail("counter %s rose by %ld, expected %ld", name, now - before, by);
}

void iso_traffic(void)
{
	tb_check_traffic(&iso.neighbour, "the owner's traffic");
}

/* Handles are numbers from 0 on: after so many PDs, the other handles of the owner differ from all of an intruder. */
static void raise_handles(struct raw_ctx *ctx)
{
	struct {
		struct ib_uverbs_alloc_pd_resp core;
		struct hghca_alloc_pd_resp driver;
	} resp = {};
	struct ib_uverbs_alloc_pd cmd = {};
	int i;

	for (i = 0; i <= ISO_FIRST_HANDLE; i++)
		raw_must(ctx->fd, IB_USER_VERBS_CMD_ALLOC_PD, &cmd, sizeof(cmd), &resp, sizeof(resp), "ALLOC_PD");
	ctx->pd_handle = resp.core.pd_handle;
	ctx->pdn = resp.driver.pdn;
}

static void register_memory(struct raw_ctx *ctx, void *start, size_t bytes, unsigned int access,
			    struct ib_uverbs_reg_mr_resp *mr)
{
	struct ib_uverbs_reg_mr cmd = {
		.start = (uintptr_t)start,
		.hca_va = (uintptr_t)start,
		.length = bytes,
		.access_flags = access,
		.pd_handle = ctx->pd_handle,
	};

	raw_must(ctx->fd, IB_USER_VERBS_CMD_REG_MR, &cmd, sizeof(cmd), mr, sizeof(*mr), "REG_MR");
}

/* Binds it through rc.b, to the region that peers access. */
static void bind_window(int which)
{
	struct ib_uverbs_alloc_mw cmd = { .pd_handle = iso.ctx.pd_handle, .mw_type = which + 1 };
	unsigned int index = estate.bind_posts++;
	struct raw_qp *qp = &estate.rc.b;
	struct ib_uverbs_alloc_mw_resp resp = {};
	uint8_t *slot = raw_send_slot(qp, index);
	struct hghca_bind_unit *bind = (struct hghca_bind_unit *)(slot + HGHCA_WQE_UNIT);

	raw_must(iso.ctx.fd, IB_USER_VERBS_CMD_ALLOC_MW, &cmd, sizeof(cmd), &resp, sizeof(resp), "ALLOC_MW");
	memset(slot, 0, RAW_STRIDE);
	raw_put_next(slot, HGHCA_WQE_CQ_UPDATE);
	*bind = (struct hghca_bind_unit) {
		.access = htole32(HGHCA_ACCESS_REMOTE_WRITE | HGHCA_ACCESS_REMOTE_READ | HGHCA_ACCESS_REMOTE_ATOMIC),
		.rkey = htole32(resp.rkey),
		.lkey = htole32(iso.board->bindable),
		.addr = htole64(ISO_ADDRESS),
		.length = htole64(ISO_BYTES),
	};
	iso_ring(qp, index, HGHCA_OPCODE_BIND_MW, 3);
	if (!raw_expect(qp, index, 0, "binding a window"))
		tb_die("BIND_MW");
	iso.board->windows[which] = resp.rkey;
	iso.board->handles[ISO_MW] = resp.mw_handle;
}

static void create_ah(void)
{
	struct ib_uverbs_create_ah cmd = {
		.pd_handle = iso.ctx.pd_handle,
		.attr = { .is_global = 1, .port_num = 1,
			  .grh = { .sgid_index = iso.board->gid_index, .hop_limit = 64 } },
	};
	struct {
		struct ib_uverbs_create_ah_resp core;
		struct hghca_create_ah_resp driver;
	} resp = {};

	memcpy(cmd.attr.grh.dgid, iso.board->gid.raw, sizeof(cmd.attr.grh.dgid));
	raw_must(iso.ctx.fd, IB_USER_VERBS_CMD_CREATE_AH, &cmd, sizeof(cmd), &resp, sizeof(resp), "CREATE_AH");
	iso.board->handles[ISO_AH] = resp.core.ah_handle;
	memcpy(estate.dmac, resp.driver.dmac, sizeof(estate.dmac));
}

/* A receive work queue, and another one in a table. */
static void create_queues(void)
{
	uint32_t *handles = iso.board->handles, cq = estate.rc.a.cq.handle, in_table;

	if (raw_try_create_wq(&iso.ctx, iso.ctx.pd_handle, cq, raw_pages(RAW_WQ_BYTES), &handles[ISO_WQ]) ||
	    raw_try_create_wq(&iso.ctx, iso.ctx.pd_handle, cq, raw_pages(RAW_WQ_BYTES), &in_table))
		tb_die("CREATE_WQ");
	if (raw_try_create_table(&iso.ctx, in_table, &handles[ISO_TABLE]))
		tb_die("CREATE_RWQ_IND_TBL");
}

static void create_estate(void)
{
	const unsigned int bindable = TB_ACCESS_ALL | IBV_ACCESS_MW_BIND;
	struct iso_board *board = iso.board;
	struct ib_uverbs_reg_mr_resp mr;

	raw_open(&iso.ctx, iso.device);
	raise_handles(&iso.ctx);
	register_memory(&iso.ctx, iso.ctx.buf, RAW_BUF_BYTES, TB_ACCESS_ALL, &iso.ctx.mr);
	estate.memory = mmap((void *)ISO_ADDRESS, ISO_BYTES, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (estate.memory != (void *)ISO_ADDRESS)
		tb_die("mmap");
	memset(estate.memory, ISO_PATTERN, ISO_BYTES);
	register_memory(&iso.ctx, estate.memory, ISO_BYTES, TB_ACCESS_ALL, &mr);
	board->region = mr.rkey;
	board->handles[ISO_MR] = mr.mr_handle;
	register_memory(&iso.ctx, estate.memory, ISO_BYTES, bindable, &mr);
	board->bindable = mr.rkey;
	raw_srq_create(&estate.srq, &iso.ctx);
	iso_link_create(&estate.rc, &iso.ctx, IBV_QPT_RC, NULL);
	iso_link_create(&estate.shared, &iso.ctx, IBV_QPT_RC, &estate.srq);
	iso_link_create(&estate.datagrams, &iso.ctx, IBV_QPT_UD, NULL);
	iso_link_connect(&estate.rc);
	iso_link_connect(&estate.shared);
	iso_link_connect(&estate.datagrams);
	bind_window(0);
	bind_window(1);
	create_ah();
	create_queues();
	board->uar_index = iso.ctx.caps.uar_index;
	memcpy(board->node, iso.ctx.node, sizeof(board->node));
	board->handles[ISO_PD] = iso.ctx.pd_handle;
	board->handles[ISO_CQ] = estate.rc.a.cq.handle;
	board->handles[ISO_QP] = estate.rc.a.handle;
	board->handles[ISO_SRQ] = estate.srq.handle;
	board->qpn = estate.rc.a.qpn;
	board->cqn = estate.rc.a.cq.cqn;
}

static void close_estate(void)
{
	raw_close(&iso.ctx);
	munmap(estate.memory, ISO_BYTES);
}

static void write_to_region(uint32_t rkey, const char *what)
{
	unsigned int index = estate.rc_posts++;

	memset(iso.ctx.buf, index + 1, WQE_BYTES);
	iso_build_write(&estate.rc.a, index, iso.ctx.buf, iso.ctx.mr.lkey, ISO_ADDRESS, rkey);
	iso_ring(&estate.rc.a, index, HGHCA_OPCODE_RDMA_WRITE, WRITE_UNITS);
	if (raw_expect(&estate.rc.a, index % RAW_WQES, 0, what) && memcmp(iso.ctx.buf, estate.memory, WQE_BYTES))
		tb_fail("%s: wrong data", what);
	memset(estate.memory, ISO_PATTERN, WQE_BYTES);
}

static void send_to_srq(void)
{
	unsigned int index = estate.shared_posts++;
	uint8_t *slot = raw_send_slot(&estate.shared.a, index);

	memset(iso.ctx.buf, index + 1, WQE_BYTES);
	memset(iso.ctx.buf + PAGE_BYTES, 0, WQE_BYTES);
	raw_post_recv(&estate.shared.b, index, iso.ctx.buf + PAGE_BYTES, WQE_BYTES, iso.ctx.mr.lkey);
	memset(slot, 0, RAW_STRIDE);
	raw_put_next(slot, HGHCA_WQE_CQ_UPDATE);
	raw_put_data(slot, 1, iso.ctx.buf, WQE_BYTES, iso.ctx.mr.lkey);
	iso_ring(&estate.shared.a, index, HGHCA_OPCODE_SEND, 2);
	raw_expect(&estate.shared.a, index % RAW_WQES, 0, "the owner's SEND");
	if (raw_expect(&estate.shared.b, index % RAW_WQES, 0, "its receive, of the owner's SRQ") &&
	    memcmp(iso.ctx.buf, iso.ctx.buf + PAGE_BYTES, WQE_BYTES))
		tb_fail("the owner's SRQ: wrong data");
}

static void send_datagram(void)
{
	unsigned int index = estate.datagram_posts++;
	struct raw_qp *from = &estate.datagrams.a, *to = &estate.datagrams.b;
	uint8_t *slot = raw_send_slot(from, index);
	struct hghca_ud_gid_unit *ud = (struct hghca_ud_gid_unit *)(slot + HGHCA_WQE_UNIT);
	const uint8_t *mac = estate.dmac;

	memset(iso.ctx.buf, index + 1, WQE_BYTES);
	memset(iso.ctx.buf + PAGE_BYTES, 0, 40 + WQE_BYTES);
	raw_post_recv(to, index, iso.ctx.buf + PAGE_BYTES, 40 + WQE_BYTES, iso.ctx.mr.lkey);
	memset(slot, 0, RAW_STRIDE);
	raw_put_next(slot, HGHCA_WQE_CQ_UPDATE);
	*ud = (struct hghca_ud_gid_unit) {
		.port = htole32(HGHCA_UD_GRH | 64 << 16 | iso.board->gid_index << 8 | 1),
		.dmac_h = htole32((uint32_t)mac[0] << 24 | mac[1] << 16 | mac[2] << 8 | mac[3]),
		.dmac_l = htole32((uint32_t)mac[4] << 24 | mac[5] << 16),
		.dqpn = htole32(to->qpn),
		.qkey = htole32(ISO_QKEY),
	};
	memcpy(ud->dgid, iso.board->gid.raw, sizeof(ud->dgid));
	raw_put_data(slot, 4, iso.ctx.buf, WQE_BYTES, iso.ctx.mr.lkey);
	iso_ring(from, index, HGHCA_OPCODE_SEND, 5);
	raw_expect(from, index % RAW_WQES, 0, "the owner's datagram");
	if (raw_expect(to, index % RAW_WQES, 0, "its receive") &&
	    memcmp(iso.ctx.buf, iso.ctx.buf + PAGE_BYTES + 40, WQE_BYTES))
		tb_fail("the owner's datagram: wrong data");
}

/* The memory of the owner is unchanged, and all of its keys, queues and QPs work. */
static void check_estate(void)
{
	size_t i;

	for (i = 0; i < ISO_BYTES && estate.memory[i] == ISO_PATTERN; i++)
		;
	if (i < ISO_BYTES)
		tb_fail("byte %zu of the owner's memory has changed", i);
	write_to_region(iso.board->region, "a WRITE to the owner's region");
	write_to_region(iso.board->windows[0], "a WRITE through the owner's window of type 1");
	write_to_region(iso.board->windows[1], "a WRITE through the owner's window of type 2B");
	send_to_srq();
	send_datagram();
	iso_traffic();
}

int main(int argc, char **argv)
{
	static const struct { const struct tb_case *cases; const size_t *count; } tables[] = {
		{ iso_doorbell_cases, &iso_doorbell_count }, { iso_key_cases, &iso_key_count },
		{ iso_handle_cases, &iso_handle_count }, { iso_memory_cases, &iso_memory_count },
		{ iso_right_cases, &iso_right_count },
	};
	struct tb_opts opts = tb_pair_defaults();
	struct tb_case all[128];
	size_t i, count = 0;
	int status;

	if (argc < 4) {
		fprintf(stderr, "usage: isolation DEVICE GID-INDEX COUNTERS [CASE...]\n");
		return 2;
	}
	iso.device = argv[1];
	iso.counters = argv[3];
	iso.board = raw_pages(sizeof(*iso.board));
	open_nursery();
	tb_side_open(&iso.side, iso.device, atoi(argv[2]), NULL);
	iso.board->gid = iso.side.gid;
	iso.board->gid_index = iso.side.gid_index;
	iso.board->mtu = iso.side.mtu;
	tb_pair_create(&iso.neighbour, &iso.side, &iso.side, &opts);
	create_estate();
	for (i = 0; i < ARRAY_SIZE(tables); i++) {
		if (count + *tables[i].count > ARRAY_SIZE(all))
			tb_die("too many cases");
		memcpy(all + count, tables[i].cases, *tables[i].count * sizeof(*all));
		count += *tables[i].count;
	}
	status = tb_run(all, count, argc - 4, argv + 4, check_estate);
	close_estate();
	tb_pair_destroy(&iso.neighbour);
	close(nursery);
	return status;
}
