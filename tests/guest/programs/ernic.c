// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * An ERNIC (docs/reference/ernic.rst, 9): what the hardware lacks is refused, and a process
 * reads and writes only what it has registered.
 *
 * ernic DEVICE GID-INDEX DEVICE GID-INDEX NETNS [-- CASE...]
 *
 * The first device is the ERNIC.  An intruder is another process, which opens the devices
 * itself.  It knows the keys and addresses of the owner.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "testbed.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define FIRST		1
#define BYTES		64
#define OWNED_AT	((uint8_t *)0x600000000000)	/* the intruder has no memory there */
#define OWNED_BYTES	65536
#define OWNED		0x5c
#define KEYS		16	/* L_Keys that are tried on each side of the owner's */
#define TAGS		256	/* low bytes of an R_Key */
#define PAGES_TRIED	512	/* more than the registers have */

static char **arguments;
static struct tb_side side, peer;

/* ------------------------------------------------------------------ */
/* Requests                                                             */

static struct ibv_send_wr wr_of(enum ibv_wr_opcode opcode, struct ibv_sge *sge, const void *to, uint32_t rkey)
{
	struct ibv_send_wr wr = { .wr_id = FIRST, .sg_list = sge, .num_sge = 1, .opcode = opcode };

	wr.wr.rdma.remote_addr = (uintptr_t)to;
	wr.wr.rdma.rkey = rkey;
	return wr;
}

static int post(struct tb_qp *q, struct ibv_send_wr wr)
{
	struct ibv_send_wr *bad;

	return ibv_post_send(q->qp, &wr, &bad);
}

/* The request completes with this status; one that fails takes the QP to the error state. */
static void completes(struct tb_qp *q, struct ibv_send_wr wr, enum ibv_wc_status status, const char *what)
{
	if (post(q, wr))
		tb_fail("%s: posting failed", what);
	else if (tb_expect(q->scq, FIRST, status, what))
		tb_expect_state(q, status ? IBV_QPS_ERR : IBV_QPS_RTS, what);
}

static void connect_pair(struct tb_pair *p, struct tb_side *a, struct tb_side *b)
{
	struct tb_opts opts = tb_pair_defaults();

	tb_pair_create(p, a, b, &opts);
}

/* ------------------------------------------------------------------ */
/* The owner and the intruder                                           */

static struct {
	uint32_t lkey, rkey;
} owned;

static void intrude(void (*act)(void))
{
	pid_t pid;
	int status;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		setvbuf(stdout, NULL, _IOLBF, 0);
		tb_side_open(&side, arguments[0], atoi(arguments[1]), NULL);
		tb_side_open(&peer, arguments[2], atoi(arguments[3]), arguments[4]);
		act();
		exit(tb_failed());
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		tb_die("the intruder");
	if (status)
		tb_fail("the intruder ended with status 0x%x", status);
}

/* The owner's region, to which a peer of the owner can write, and which no intruder has changed. */
static void owner(void (*act)(void))
{
	struct tb_pair p;
	struct ibv_mr *mr;
	struct ibv_sge sge;
	size_t i;

	if (mmap(OWNED_AT, OWNED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
		 0) != OWNED_AT || madvise(OWNED_AT, OWNED_BYTES, MADV_DONTFORK))
		tb_die("mmap");
	memset(OWNED_AT, OWNED, OWNED_BYTES);
	mr = ibv_reg_mr(side.pd, OWNED_AT, OWNED_BYTES, TB_ACCESS_ALL);
	if (!mr)
		tb_die("ibv_reg_mr");
	owned.lkey = mr->lkey;
	owned.rkey = mr->rkey;
	intrude(act);
	for (i = 0; i < OWNED_BYTES && OWNED_AT[i] == OWNED; i++)
		;
	if (i < OWNED_BYTES)
		tb_fail("byte %zu of the owner's memory has changed", i);
	connect_pair(&p, &peer, &side);
	memset(p.a.buf, 0x11, BYTES);
	sge = (struct ibv_sge) { (uintptr_t)p.a.buf, BYTES, p.a.mr->lkey };
	completes(&p.a, wr_of(IBV_WR_RDMA_WRITE, &sge, OWNED_AT, owned.rkey), IBV_WC_SUCCESS, "the owner's peer");
	if (memcmp(OWNED_AT, p.a.buf, BYTES) || OWNED_AT[BYTES] != OWNED)
		tb_fail("the owner's peer: wrong data");
	tb_pair_destroy(&p);
	if (ibv_dereg_mr(mr) || munmap(OWNED_AT, OWNED_BYTES))
		tb_die("ibv_dereg_mr");
}

/* What a key gives access to, as local memory of each operation. */
static void local_use(const void *at, uint32_t lkey)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };
	struct ibv_sge sge = { (uintptr_t)at, BYTES, lkey };
	struct ibv_recv_wr recv = { .wr_id = FIRST, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_sge from;
	struct tb_pair p;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(opcodes); i++) {
		connect_pair(&p, &side, &peer);
		completes(&p.a, wr_of(opcodes[i], &sge, p.b.buf, p.b.mr->rkey), IBV_WC_LOC_PROT_ERR, "local memory");
		tb_expect_state(&p.b, IBV_QPS_RTS, "the peer, which has got nothing");
		tb_pair_destroy(&p);
	}
	connect_pair(&p, &peer, &side);
	from = (struct ibv_sge) { (uintptr_t)p.a.buf, BYTES, p.a.mr->lkey };
	if (ibv_post_recv(p.b.qp, &recv, &bad))
		tb_fail("ibv_post_recv");
	completes(&p.a, wr_of(IBV_WR_SEND, &from, NULL, 0), IBV_WC_SUCCESS, "a SEND");
	tb_expect(p.b.rcq, FIRST, IBV_WC_LOC_PROT_ERR, "a receive");
	tb_expect_state(&p.b, IBV_QPS_ERR, "the receiver");
	tb_pair_destroy(&p);
}

static void use_lkey(void)
{
	local_use(OWNED_AT, owned.lkey);
}

/* The intruder's own region has one of these keys. */
static void use_all_lkeys(void)
{
	uint32_t first = owned.lkey > KEYS ? owned.lkey - KEYS : 0, key;
	struct ibv_sge sge = { (uintptr_t)OWNED_AT, BYTES, 0 };
	struct tb_pair p;

	for (key = first; key < owned.lkey + KEYS && !tb_failed(); key++) {
		connect_pair(&p, &side, &peer);
		sge.lkey = key;
		completes(&p.a, wr_of(IBV_WR_RDMA_READ, &sge, p.b.buf, p.b.mr->rkey), IBV_WC_LOC_PROT_ERR, "an L_Key");
		tb_pair_destroy(&p);
	}
}

/* By the intruder's own peer: the owner's region is of another PD. */
static void use_rkey(void)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };
	struct ibv_sge sge;
	struct tb_pair p;
	uint32_t tag;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(opcodes); i++) {
		for (tag = 0; tag < (i ? 1 : TAGS) && !tb_failed(); tag++) {
			connect_pair(&p, &peer, &side);
			sge = (struct ibv_sge) { (uintptr_t)p.a.buf, BYTES, p.a.mr->lkey };
			completes(&p.a, wr_of(opcodes[i], &sge, OWNED_AT, owned.rkey ^ tag), IBV_WC_REM_ACCESS_ERR,
				  "an R_Key");
			tb_pair_destroy(&p);
		}
	}
}

static void other_lkey(void)		{ owner(use_lkey); }
static void other_lkeys(void)		{ owner(use_all_lkeys); }
static void other_rkey(void)		{ owner(use_rkey); }

/* Memory of its own that it has not registered, and memory of the kernel. */
static void not_registered(void)
{
	static uint8_t own[BYTES];
	/* 0: of the kernel's users, which have all memory. */
	static const uint32_t keys[] = { 0, ~0U };
	static const uint64_t addresses[] = { 0, 0x1000000, 0xffff888000000000, 0xffffffff81000000 };
	size_t i, j;

	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		local_use(own, keys[i]);
		for (j = 0; j < ARRAY_SIZE(addresses) && !tb_failed(); j++)
			local_use((void *)(uintptr_t)addresses[j], keys[i]);
	}
}

/* The key of no memory, and what is not the process's, given as inline data. */
static void inline_of_others(void)
{
	static const uint64_t addresses[] = { 0, 0x600000000000, 0xffff888000000000, 0xffffffff81000000,
					      0xffffffffffffffff };
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE };
	struct tb_pair p;
	size_t i, j;
	int error;

	connect_pair(&p, &side, &peer);
	for (i = 0; i < ARRAY_SIZE(addresses); i++) {
		for (j = 0; j < ARRAY_SIZE(opcodes); j++) {
			struct ibv_sge sge = { addresses[i], BYTES, 0 };
			struct ibv_send_wr wr = wr_of(opcodes[j], &sge, p.b.buf, p.b.mr->rkey);

			wr.send_flags = IBV_SEND_INLINE;
			error = post(&p.a, wr);
			if (error != EFAULT)
				tb_fail("inline data at 0x%llx: %s", (unsigned long long)addresses[i], strerror(error));
		}
	}
	tb_check_traffic(&p, "the same QP");
	tb_pair_destroy(&p);
}

static void no_mapping(void)
{
	static const int protections[] = { PROT_READ, PROT_WRITE, PROT_READ | PROT_WRITE };
	size_t i, page;

	for (i = 0; i < ARRAY_SIZE(protections); i++)
		for (page = 0; page < PAGES_TRIED; page++)
			if (mmap(NULL, 4096, protections[i], MAP_SHARED, side.ctx->cmd_fd, page * 4096) != MAP_FAILED ||
			    errno != EINVAL)
				tb_fail("page %zu of the device: %s", page, strerror(errno));
}

/* ------------------------------------------------------------------ */
/* The peer's invalidation                                              */

/* The region is invalid when the completion is there, and no other region is. */
static void invalidated(void)
{
	static uint8_t memory[4096] __attribute__((aligned(4096)));
	struct tb_pair p;
	struct ibv_mr *mr;
	struct ibv_sge sge, place;
	struct ibv_send_wr wr;
	struct ibv_recv_wr recv = { .wr_id = 9, .sg_list = &place, .num_sge = 1 }, *bad;
	struct ibv_wc wc;

	connect_pair(&p, &peer, &side);
	mr = ibv_reg_mr(side.pd, memory, sizeof(memory), TB_ACCESS_ALL);
	place = (struct ibv_sge) { (uintptr_t)p.b.buf + 8192, BYTES, p.b.mr->lkey };
	if (!mr || ibv_post_recv(p.b.qp, &recv, &bad))
		tb_die("a region and a receive");
	sge = (struct ibv_sge) { (uintptr_t)p.a.buf, BYTES, p.a.mr->lkey };
	memset(p.a.buf, 0x21, BYTES);
	completes(&p.a, wr_of(IBV_WR_RDMA_WRITE, &sge, memory, mr->rkey), IBV_WC_SUCCESS, "a WRITE before");
	wr = wr_of(IBV_WR_SEND_WITH_INV, &sge, NULL, 0);
	wr.invalidate_rkey = mr->rkey;
	completes(&p.a, wr, IBV_WC_SUCCESS, "SEND with invalidate");
	if (tb_poll(p.b.rcq, &wc, "its receive") &&
	    (wc.status != IBV_WC_SUCCESS || !(wc.wc_flags & IBV_WC_WITH_INV) || wc.invalidated_rkey != mr->rkey))
		tb_fail("the receive: status \"%s\", flags 0x%x, R_Key 0x%x of 0x%x", ibv_wc_status_str(wc.status),
			wc.wc_flags, wc.invalidated_rkey, mr->rkey);
	completes(&p.a, wr_of(IBV_WR_RDMA_WRITE, &sge, p.b.buf, p.b.mr->rkey), IBV_WC_SUCCESS, "the other region");
	memset(p.a.buf, 0x33, BYTES);
	completes(&p.a, wr_of(IBV_WR_RDMA_WRITE, &sge, memory, mr->rkey), IBV_WC_REM_ACCESS_ERR, "a WRITE behind");
	if (memory[0] != 0x21)
		tb_fail("a region that is invalid was written to");
	tb_pair_destroy(&p);
	if (ibv_dereg_mr(mr))
		tb_die("ibv_dereg_mr");
}

/* ------------------------------------------------------------------ */
/* The peer's immediate data                                            */

/* A receive that the peer's request completes: with its immediate data, or without any. */
static void received(struct tb_pair *p, enum ibv_wr_opcode opcode, uint32_t imm)
{
	bool has_imm = opcode != IBV_WR_SEND, is_write = opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	struct ibv_sge sge = { (uintptr_t)p->a.buf, BYTES, p->a.mr->lkey };
	struct ibv_sge place = { (uintptr_t)p->b.buf + 8192, BYTES, p->b.mr->lkey };
	struct ibv_recv_wr recv = { .wr_id = 9, .sg_list = &place, .num_sge = 1 }, *bad;
	struct ibv_send_wr wr = wr_of(opcode, &sge, p->b.buf, p->b.mr->rkey);
	const uint8_t *at = p->b.buf + (is_write ? 0 : 8192);
	struct ibv_wc wc;

	wr.imm_data = htobe32(imm);
	memset(p->a.buf, imm, BYTES);
	if (ibv_post_recv(p->b.qp, &recv, &bad))
		tb_die("ibv_post_recv");
	completes(&p->a, wr, IBV_WC_SUCCESS, "the request");
	if (!tb_poll(p->b.rcq, &wc, "its receive"))
		return;
	if (wc.status != IBV_WC_SUCCESS || wc.opcode != (is_write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV) ||
	    wc.wc_flags != (has_imm ? IBV_WC_WITH_IMM : 0) || (has_imm && be32toh(wc.imm_data) != imm))
		tb_fail("request %d: status \"%s\", opcode %d, flags 0x%x, immediate data 0x%x of 0x%x", opcode,
			ibv_wc_status_str(wc.status), wc.opcode, wc.wc_flags, be32toh(wc.imm_data), imm);
	if (memcmp(at, p->a.buf, BYTES))
		tb_fail("request %d: wrong data", opcode);
}

/* More than there are receive slots. */
static void immediate(void)
{
	struct tb_pair p;
	uint32_t i;

	connect_pair(&p, &peer, &side);
	for (i = 0; i < 100; i++) {
		received(&p, IBV_WR_SEND, i);
		received(&p, IBV_WR_SEND_WITH_IMM, 0x80000000 | i);
		received(&p, IBV_WR_RDMA_WRITE_WITH_IMM, 0x01020300 | i);
		received(&p, IBV_WR_RDMA_WRITE_WITH_IMM, ~i);
	}
	tb_pair_destroy(&p);
}

/* ------------------------------------------------------------------ */
/* What the hardware lacks                                              */

static void is(int error, int expected, const char *what)
{
	if (error != expected)
		tb_fail("%s: %s, expected %s", what, error ? strerror(error) : "success", strerror(expected));
}

/* The errno with which a constructor fails, or 0: then the object stays, and the case has failed. */
#define ENDED(made)	(errno = 0, (made) ? 0 : errno)

static void objects(void)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND, IBV_QPT_RAW_PACKET };
	struct ibv_xrcd_init_attr xrcd = { .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1,
					   .oflags = 0100 /* O_CREAT */ };
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_cq_init_attr_ex timed = { .cqe = 4, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP };
	struct ibv_ah_attr ah = { .is_global = 1, .port_num = 1,
				  .grh = { .dgid = peer.gid, .sgid_index = side.gid_index, .hop_limit = 64 } };
	struct ibv_alloc_dm_attr memory = { .length = 4096 };
	struct ibv_cq *cq = ibv_create_cq(side.ctx, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_wq_init_attr wq = { .wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = side.pd, .cq = cq };
	size_t i;

	if (!cq)
		tb_die("ibv_create_cq");
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		init.qp_type = types[i];
		is(ENDED(ibv_create_qp(side.pd, &init)), EOPNOTSUPP, "a QP of another type than RC");
	}
	is(ENDED(ibv_create_srq(side.pd, &srq)), EOPNOTSUPP, "ibv_create_srq");
	is(ENDED(ibv_open_xrcd(side.ctx, &xrcd)), EOPNOTSUPP, "ibv_open_xrcd");
	is(ENDED(ibv_alloc_mw(side.pd, IBV_MW_TYPE_1)), EOPNOTSUPP, "a window of type 1");
	is(ENDED(ibv_alloc_mw(side.pd, IBV_MW_TYPE_2)), EOPNOTSUPP, "a window of type 2");
	is(ENDED(ibv_create_ah(side.pd, &ah)), EOPNOTSUPP, "ibv_create_ah");
	is(ENDED(ibv_create_cq_ex(side.ctx, &timed)), EOPNOTSUPP, "a CQ with timestamps");
	is(ENDED(ibv_create_wq(side.ctx, &wq)), EOPNOTSUPP, "ibv_create_wq");
	is(ENDED(ibv_alloc_dm(side.ctx, &memory)), EOPNOTSUPP, "ibv_alloc_dm");
	if (ibv_destroy_cq(cq))
		tb_die("ibv_destroy_cq");
}

static void regions(void)
{
	static const struct { int access, error; const char *what; } kinds[] = {
		{ IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND, EOPNOTSUPP, "a region for windows" },
		{ IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND, EOPNOTSUPP, "a region on demand" },
		{ IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED, EOPNOTSUPP, "a zero-based region" },
		{ IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_FLUSH_GLOBAL, EOPNOTSUPP, "a region for FLUSH" },
	};
	uint8_t *memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		is(ENDED(ibv_reg_mr(side.pd, memory, 4096, kinds[i].access)), kinds[i].error, kinds[i].what);
	mr = ibv_reg_mr(side.pd, memory, 4096, TB_ACCESS_ALL);
	if (!mr)
		tb_die("ibv_reg_mr");
	is(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE), IBV_REREG_MR_ERR_CMD,
	   "ibv_rereg_mr");
	if (ibv_dereg_mr(mr))
		tb_die("ibv_dereg_mr");
	munmap(memory, 8192);
}

/* The hardware has so many entries for regions of peers: one more is refused, and there is room for one that has gone. */
static void region_entries(void)
{
	enum { ENTRIES = 256 };
	static uint8_t memory[ENTRIES + 1][4096] __attribute__((aligned(4096)));
	struct ibv_mr *mrs[ENTRIES + 1] = {}, *local;
	int n;

	for (n = 0; n <= ENTRIES; n++) {
		errno = 0;
		mrs[n] = ibv_reg_mr(side.pd, memory[n], sizeof(memory[n]), TB_ACCESS_ALL);
		if (!mrs[n])
			break;
	}
	/* The kernel's users have none: all are the process's. */
	if (n != ENTRIES || errno != ENOMEM)
		tb_fail("%d regions of peers, and then \"%s\"", n, strerror(errno));
	local = ibv_reg_mr(side.pd, memory[ENTRIES], sizeof(memory[ENTRIES]), IBV_ACCESS_LOCAL_WRITE);
	if (!local || ibv_dereg_mr(local))
		tb_fail("a region without remote access needs an entry");
	if (n && ibv_dereg_mr(mrs[--n]))
		tb_die("ibv_dereg_mr");
	mrs[n] = ibv_reg_mr(side.pd, memory[n], sizeof(memory[n]), TB_ACCESS_ALL);
	if (!mrs[n++])
		tb_fail("no region in the place of one that has gone");
	while (n--)
		if (mrs[n] && ibv_dereg_mr(mrs[n]))
			tb_die("ibv_dereg_mr");
}

static void operations(void)
{
	/* The kernel's uverbs refuses what it does not know itself. */
	static const struct { enum ibv_wr_opcode opcode; int error; const char *what; } kinds[] = {
		{ IBV_WR_ATOMIC_FETCH_AND_ADD, EOPNOTSUPP, "FETCH ADD" },
		{ IBV_WR_ATOMIC_CMP_AND_SWP, EOPNOTSUPP, "COMPARE SWAP" },
		{ IBV_WR_LOCAL_INV, EINVAL, "LOCAL INVALIDATE" },
		{ IBV_WR_BIND_MW, EINVAL, "BIND" },
	};
	struct tb_pair p;
	size_t i;

	connect_pair(&p, &side, &peer);
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct ibv_sge sge = { (uintptr_t)p.a.buf, 8, p.a.mr->lkey };
		struct ibv_send_wr wr = { .wr_id = FIRST, .sg_list = &sge, .num_sge = 1, .opcode = kinds[i].opcode };

		wr.wr.atomic.remote_addr = (uintptr_t)p.b.buf;
		wr.wr.atomic.rkey = p.b.mr->rkey;
		is(post(&p.a, wr), kinds[i].error, kinds[i].what);
	}
	is(post(&p.a, (struct ibv_send_wr) { .wr_id = FIRST, .opcode = IBV_WR_SEND }), EINVAL, "an empty SEND");
	tb_check_traffic(&p, "the same QP");
	tb_pair_destroy(&p);
}

/* A peer's atomic is an invalid request, though the region and the QP grant it. */
static void atomics_of_peer(void)
{
	struct tb_pair p;
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	uint64_t word = 7;

	connect_pair(&p, &peer, &side);
	memcpy(p.b.buf, &word, sizeof(word));
	sge = (struct ibv_sge) { (uintptr_t)p.a.buf, 8, p.a.mr->lkey };
	wr = wr_of(IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, NULL, 0);
	wr.wr.atomic.remote_addr = (uintptr_t)p.b.buf;
	wr.wr.atomic.rkey = p.b.mr->rkey;
	wr.wr.atomic.compare_add = 1;
	completes(&p.a, wr, IBV_WC_REM_INV_REQ_ERR, "a peer's atomic");
	if (memcmp(p.b.buf, &word, sizeof(word)))
		tb_fail("a peer's atomic was executed");
	tb_expect_async(&side, IBV_EVENT_QP_REQ_ERR, p.b.qp, "the responder");
	tb_pair_destroy(&p);
}

/* A message that is longer than a slot is refused, whatever its receive is. */
static void longer_than_slot(void)
{
	struct tb_pair p;
	struct ibv_sge sge, place;
	struct ibv_recv_wr recv = { .wr_id = 9, .sg_list = &place, .num_sge = 1 }, *bad;

	connect_pair(&p, &peer, &side);
	place = (struct ibv_sge) { (uintptr_t)p.b.buf, TB_BUF_BYTES, p.b.mr->lkey };
	sge = (struct ibv_sge) { (uintptr_t)p.a.buf, side.max_send + 1, p.a.mr->lkey };
	if (ibv_post_recv(p.b.qp, &recv, &bad))
		tb_die("ibv_post_recv");
	completes(&p.a, wr_of(IBV_WR_SEND, &sge, NULL, 0), IBV_WC_REM_INV_REQ_ERR, "the SEND");
	tb_expect_async(&side, IBV_EVENT_QP_REQ_ERR, p.b.qp, "the responder");
	tb_expect(p.b.rcq, 9, IBV_WC_WR_FLUSH_ERR, "the receive");
	tb_expect_state(&p.b, IBV_QPS_ERR, "the responder");
	tb_pair_destroy(&p);
}

/* What the device lacks, its attributes report as absent. */
static void limits(void)
{
	struct ibv_device_attr dev;

	if (ibv_query_device(side.ctx, &dev))
		tb_die("ibv_query_device");
	if (dev.atomic_cap != IBV_ATOMIC_NONE || dev.max_mw || dev.max_srq || dev.max_ah || dev.max_mcast_grp ||
	    dev.device_cap_flags & (IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_XRC))
		tb_fail("the device says that it has what it lacks");
	if (dev.max_mr != 256 || dev.max_qp != 254)
		tb_fail("%d regions and %d QPs, expected 256 and 254", dev.max_mr, dev.max_qp);
}

static const struct tb_case cases[] = {
	{ "isolation: the L_Key of another process", other_lkey },
	{ "isolation: L_Keys beside it", other_lkeys },
	{ "isolation: the R_Key of another process, with each tag", other_rkey },
	{ "isolation: memory that is not registered, the kernel's", not_registered },
	{ "isolation: inline data of memory that is not the process's", inline_of_others },
	{ "isolation: nothing of the device can be mapped", no_mapping },
	{ "invalidated by the peer", invalidated },
	{ "the peer's immediate data", immediate },
	{ "lacking: limits", limits },
	{ "lacking: objects", objects },
	{ "lacking: regions", regions },
	{ "lacking: more regions than entries", region_entries },
	{ "lacking: operations", operations },
	{ "lacking: a peer's atomics", atomics_of_peer },
	{ "lacking: a message longer than a slot", longer_than_slot },
};

int main(int argc, char **argv)
{
	if (argc < 6 || (argc > 6 && strcmp(argv[6], "--"))) {
		fprintf(stderr, "usage: ernic DEVICE GID-INDEX DEVICE GID-INDEX NETNS [-- CASE...]\n");
		return 2;
	}
	arguments = argv + 1;
	tb_side_open(&side, argv[1], atoi(argv[2]), NULL);
	tb_side_open(&peer, argv[3], atoi(argv[4]), argv[5]);
	return tb_run(cases, ARRAY_SIZE(cases), argc > 6 ? argc - 7 : 0, argv + 7, NULL);
}
