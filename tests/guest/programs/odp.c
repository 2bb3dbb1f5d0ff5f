// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * On-demand regions, of some memory or of all memory of the process: pages that are untouched, read-only,
 * unmapped under traffic, or freed with their process.  Every byte is compared.
 * PROGRAM plain|extended DEVICE GID-INDEX [DEVICE GID-INDEX NETNS] [-- CASE...]
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "link.h"

#define PAGE		4096
#define PAGES		64
#define BYTES		(PAGES * PAGE)
#define AT		100		/* start of messages */
#define LENGTH		(20 * PAGE + 123)
#define ROUNDS		60
#define ON_DEMAND	(TB_ACCESS_ALL | IBV_ACCESS_ON_DEMAND)

/* Bits that the headers of rdma-core 56.1 do not name. */
#define DEVICE_ATOMIC_WRITE		(1ull << 40)
#define ODP_SUPPORT_FLUSH		(1u << 6)
#define ODP_SUPPORT_ATOMIC_WRITE	(1u << 7)

/* An address without mappings: in the lower half of the address space, above the program. */
#define FAR(gib)	((uint8_t *)((uintptr_t)(gib) << 30))

/* Regions are of all memory. */
static bool all_memory;

/* New memory, and its region. */
struct area {
	uint8_t *at;
	struct ibv_mr *mr;
};

struct pair {
	struct tb_pair p;
	struct area a, b;
};

static uint8_t *fresh(size_t length)
{
	void *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		tb_die("mmap of %zu bytes: %s", length, strerror(errno));
	return at;
}

static void area_register(struct area *area, struct tb_side *side, uint8_t *at, size_t length, int access)
{
	area->at = at;
	area->mr = all_memory ? ibv_reg_mr(side->pd, NULL, SIZE_MAX, access) : ibv_reg_mr(side->pd, at, length, access);
	if (!area->mr)
		tb_die("ibv_reg_mr on demand: %s", strerror(errno));
}

static void area_close(struct area *area)
{
	link_errno(ibv_dereg_mr(area->mr), 0, "ibv_dereg_mr");
	munmap(area->at, BYTES);
}

static void pair_connect(struct pair *t)
{
	struct tb_opts opts = tb_pair_defaults();

	opts.rnr_retry = 7;
	tb_pair_create(&t->p, &link_asker, link_owner, &opts);
}

static void pair_open(struct pair *t)
{
	pair_connect(t);
	area_register(&t->a, &link_asker, fresh(BYTES), BYTES, ON_DEMAND);
	area_register(&t->b, link_owner, fresh(BYTES), BYTES, ON_DEMAND);
}

static void pair_close(struct pair *t)
{
	tb_pair_destroy(&t->p);
	area_close(&t->a);
	area_close(&t->b);
}

static void receive_into(struct pair *t, void *to, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)to, length, t->b.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = RECV_ID, .sg_list = &sge, .num_sge = 1 }, *bad;

	link_errno(ibv_post_recv(t->p.b.qp, &wr, &bad), 0, "ibv_post_recv");
}

static void receive(struct pair *t, size_t at, uint32_t length)
{
	receive_into(t, t->b.at + at, length);
}

static void post_between(struct pair *t, enum ibv_wr_opcode opcode, void *here, void *there, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)here, length, t->a.mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = ASK_ID, .sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
	}, *bad;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = (uintptr_t)there;
		wr.wr.atomic.rkey = t->b.mr->rkey;
		wr.wr.atomic.compare_add = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 7 : 0;
		wr.wr.atomic.swap = 9;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)there;
		wr.wr.rdma.rkey = t->b.mr->rkey;
	}
	link_errno(ibv_post_send(t->p.a.qp, &wr, &bad), 0, "ibv_post_send");
}

static void post(struct pair *t, enum ibv_wr_opcode opcode, size_t from, size_t to, uint32_t length)
{
	post_between(t, opcode, t->a.at + from, t->b.at + to, length);
}

static bool done(struct pair *t, enum ibv_wc_status status, const char *what)
{
	return tb_expect(t->p.a.scq, ASK_ID, status, what);
}

/* Checks that `length` bytes at `to` equal those at `from`, and that all bytes around them are still 0. */
static void compare(const uint8_t *to, const uint8_t *from, size_t at, size_t length, const char *what)
{
	size_t i;

	if (memcmp(to + at, from + at, length))
		tb_fail("%s: other bytes", what);
	for (i = 0; i < BYTES; i++)
		if ((i < at || i >= at + length) && to[i]) {
			tb_fail("%s: byte %zu was written", what, i);
			return;
		}
}

/* ------------------------------------------------------------------ */

static void abilities(void)
{
	struct ibv_device_attr_ex attr;
	uint32_t placement;

	if (ibv_query_device_ex(link_asker.ctx, NULL, &attr))
		tb_die("ibv_query_device_ex");
	/* Of a kernel that has these operations. */
	placement = attr.device_cap_flags_ex & DEVICE_ATOMIC_WRITE ? ODP_SUPPORT_FLUSH | ODP_SUPPORT_ATOMIC_WRITE : 0;
	if (attr.odp_caps.general_caps != (IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT))
		tb_fail("general abilities 0x%llx", (unsigned long long)attr.odp_caps.general_caps);
	if (attr.odp_caps.per_transport_caps.rc_odp_caps !=
	    (IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
	     IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV | placement))
		tb_fail("abilities of RC 0x%x", attr.odp_caps.per_transport_caps.rc_odp_caps);
	if (attr.odp_caps.per_transport_caps.uc_odp_caps != IBV_ODP_SUPPORT_SEND ||
	    attr.odp_caps.per_transport_caps.ud_odp_caps != IBV_ODP_SUPPORT_SEND)
		tb_fail("abilities of UC and UD 0x%x, 0x%x", attr.odp_caps.per_transport_caps.uc_odp_caps,
			attr.odp_caps.per_transport_caps.ud_odp_caps);
}

/* The CPU writes the pages that are sent; the device is the first to access all others. */
static void untouched_send(void)
{
	struct pair t;

	pair_open(&t);
	link_fill(t.a.at + AT, LENGTH);
	receive(&t, AT, LENGTH);
	post(&t, IBV_WR_SEND, AT, 0, LENGTH);
	done(&t, IBV_WC_SUCCESS, "SEND");
	tb_expect(t.p.b.rcq, RECV_ID, IBV_WC_SUCCESS, "receive");
	compare(t.b.at, t.a.at, AT, LENGTH, "SEND");
	pair_close(&t);
}

static void untouched_write(void)
{
	struct pair t;

	pair_open(&t);
	link_fill(t.a.at + AT, LENGTH);
	post(&t, IBV_WR_RDMA_WRITE, AT, AT, LENGTH);
	done(&t, IBV_WC_SUCCESS, "WRITE");
	compare(t.b.at, t.a.at, AT, LENGTH, "WRITE");
	pair_close(&t);
}

static void untouched_read(void)
{
	struct pair t;

	pair_open(&t);
	link_fill(t.b.at + AT, LENGTH);
	post(&t, IBV_WR_RDMA_READ, AT, AT, LENGTH);
	done(&t, IBV_WC_SUCCESS, "READ");
	compare(t.a.at, t.b.at, AT, LENGTH, "READ");
	/* Pages that neither end has accessed are zeros. */
	memset(t.a.at, 0xee, BYTES);
	post(&t, IBV_WR_RDMA_READ, 40 * PAGE, 40 * PAGE, 10 * PAGE);
	done(&t, IBV_WC_SUCCESS, "READ of nothing");
	memset(t.b.at, 0, BYTES);
	memset(t.a.at, 0, 40 * PAGE);
	memset(t.a.at + 50 * PAGE, 0, 14 * PAGE);
	compare(t.a.at, t.b.at, 40 * PAGE, 10 * PAGE, "READ of nothing");
	pair_close(&t);
}

static void untouched_atomics(void)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP };
	static const uint64_t stored[] = { 7, 9 };
	struct pair t;
	uint64_t value;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(opcodes); i++) {
		pair_open(&t);
		post(&t, opcodes[i], 8, 16, 8);
		done(&t, IBV_WC_SUCCESS, "atomic");
		memcpy(&value, t.b.at + 16, sizeof(value));
		if (value != stored[i])
			tb_fail("atomic %zu: stored %llu", i, (unsigned long long)value);
		memcpy(&value, t.a.at + 8, sizeof(value));
		if (value)
			tb_fail("atomic %zu: answered %llu", i, (unsigned long long)value);
		pair_close(&t);
	}
}

/* A zero-based region may start and end anywhere in a page: each operation covers all of its bytes. */
static void zero_based(void)
{
	static const size_t skips[] = { 8, 1000, PAGE - 8 };
	uint8_t *here = fresh(BYTES), *there = fresh(BYTES);
	void *const first = NULL;
	struct pair t;
	uint64_t value;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(skips) && !tb_failed(); i++) {
		const size_t skip = skips[i], length = BYTES - skip - 24;
		void *const last = (void *)(uintptr_t)(length - 8);

		pair_connect(&t);
		area_register(&t.a, &link_asker, here + skip, length, ON_DEMAND | IBV_ACCESS_ZERO_BASED);
		area_register(&t.b, link_owner, there + skip, length, ON_DEMAND | IBV_ACCESS_ZERO_BASED);
		/* Pages that are absent at both ends. */
		if (madvise(here, BYTES, MADV_DONTNEED) || madvise(there, BYTES, MADV_DONTNEED))
			tb_die("MADV_DONTNEED");
		link_fill(here + skip, length);
		post_between(&t, IBV_WR_RDMA_WRITE, first, first, length);
		done(&t, IBV_WC_SUCCESS, "WRITE");
		compare(there, here, skip, length, "WRITE");
		memset(here, 0, BYTES);
		post_between(&t, IBV_WR_RDMA_READ, first, first, length);
		done(&t, IBV_WC_SUCCESS, "READ");
		compare(here, there, skip, length, "READ");
		memset(there, 0, BYTES);
		receive_into(&t, first, length);
		post_between(&t, IBV_WR_SEND, first, NULL, length);
		done(&t, IBV_WC_SUCCESS, "SEND");
		tb_expect(t.p.b.rcq, RECV_ID, IBV_WC_SUCCESS, "receive");
		compare(there, here, skip, length, "SEND");
		memset(there, 0, BYTES);
		post_between(&t, IBV_WR_ATOMIC_FETCH_AND_ADD, first, last, 8);
		done(&t, IBV_WC_SUCCESS, "fetch and add");
		memcpy(&value, there + skip + length - 8, sizeof(value));
		if (value != 7)
			tb_fail("fetch and add: stored %llu", (unsigned long long)value);
		memcpy(&value, here + skip, sizeof(value));
		if (value)
			tb_fail("fetch and add: returned %llu", (unsigned long long)value);
		post_between(&t, IBV_WR_RDMA_WRITE, first, (uint8_t *)last + 1, 8);
		done(&t, IBV_WC_REM_ACCESS_ERR, "WRITE past the last byte");
		tb_pair_destroy(&t.p);
		link_errno(ibv_dereg_mr(t.a.mr), 0, "ibv_dereg_mr");
		link_errno(ibv_dereg_mr(t.b.mr), 0, "ibv_dereg_mr");
	}
	munmap(here, BYTES);
	munmap(there, BYTES);
}

/* Read-only memory of the process can be read, but not written. */
static void read_only_pages(void)
{
	struct pair t;

	pair_open(&t);
	link_fill(t.b.at, BYTES);
	if (mprotect(t.b.at, BYTES, PROT_READ))
		tb_die("mprotect");
	post(&t, IBV_WR_RDMA_READ, 0, 0, BYTES);
	done(&t, IBV_WC_SUCCESS, "READ of memory to be read");
	if (memcmp(t.a.at, t.b.at, BYTES))
		tb_fail("READ of memory to be read: other bytes");
	post(&t, IBV_WR_RDMA_WRITE, 0, 0, 8);
	done(&t, IBV_WC_REM_ACCESS_ERR, "WRITE to memory to be read");
	pair_close(&t);
}

/* Unmapped memory. */
static void unmapped(void)
{
	struct pair t;

	pair_open(&t);
	munmap(t.b.at + PAGE, PAGE);
	post(&t, IBV_WR_RDMA_WRITE, 0, 0, PAGE);
	done(&t, IBV_WC_SUCCESS, "WRITE before the gap");
	post(&t, IBV_WR_RDMA_WRITE, 0, PAGE, 8);
	done(&t, IBV_WC_REM_ACCESS_ERR, "WRITE into the gap");
	tb_pair_destroy(&t.p);
	pair_connect(&t);
	munmap(t.a.at + 2 * PAGE, PAGE);
	post(&t, IBV_WR_RDMA_WRITE, PAGE, 3 * PAGE, 2 * PAGE);
	done(&t, IBV_WC_LOC_PROT_ERR, "WRITE from a gap");
	pair_close(&t);
}

/* ---- mappings that change under traffic */

static void drop(struct pair *t, unsigned int round)
{
	uint8_t *at = round % 2 ? t->a.at : t->b.at;

	if (madvise(at + (round * 7 % 20) * PAGE, 8 * PAGE, MADV_DONTNEED))
		tb_die("MADV_DONTNEED");
}

static void page_out(struct pair *t, unsigned int round)
{
	/* Without swap, or without the advice in the kernel, this has no effect. */
	madvise(round % 2 ? t->a.at : t->b.at, BYTES, MADV_PAGEOUT);
}

static void map_again(struct pair *t, unsigned int round)
{
	uint8_t *at = (round % 2 ? t->a.at : t->b.at) + (round % 16) * PAGE;

	if (mmap(at, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at)
		tb_die("mmap over a region");
}

/* Pages are moved to another address and back: they must keep their content. */
static void move(struct pair *t, unsigned int round)
{
	uint8_t *at = (round % 2 ? t->a.at : t->b.at) + (round % 16) * PAGE;
	uint8_t *away = mremap(at, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, fresh(4 * PAGE));

	if (away == MAP_FAILED || mremap(away, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at) != at)
		tb_die("mremap: %s", strerror(errno));
}

/* Afterwards the child shares each page until it is written. */
static void have_a_child(struct pair *t, unsigned int round)
{
	pid_t pid = fork();

	if (pid < 0)
		tb_die("fork");
	if (!pid) {
		memset(t->a.at, 0x11, BYTES);
		memset(t->b.at, (int)round, BYTES);
		_exit(0);
	}
	if (waitpid(pid, NULL, 0) != pid)
		tb_die("waitpid");
}

static void under_traffic(void (*change)(struct pair *t, unsigned int round), unsigned int rounds)
{
	unsigned int round;
	struct pair t;

	pair_open(&t);
	for (round = 0; round < rounds && !tb_failed(); round++) {
		change(&t, round);
		link_fill(t.a.at + AT, LENGTH);
		post(&t, IBV_WR_RDMA_WRITE, AT, AT, LENGTH);
		if (!done(&t, IBV_WC_SUCCESS, "WRITE"))
			break;
		if (memcmp(t.b.at + AT, t.a.at + AT, LENGTH))
			tb_fail("round %u: other bytes after the WRITE", round);
		link_fill(t.b.at + AT, LENGTH);
		post(&t, IBV_WR_RDMA_READ, AT, AT, LENGTH);
		if (!done(&t, IBV_WC_SUCCESS, "READ"))
			break;
		if (memcmp(t.a.at + AT, t.b.at + AT, LENGTH))
			tb_fail("round %u: other bytes after the READ", round);
	}
	pair_close(&t);
}

static void dropped(void) { under_traffic(drop, ROUNDS); }
static void paged_out(void) { under_traffic(page_out, ROUNDS / 4); }
static void mapped_again(void) { under_traffic(map_again, ROUNDS); }
static void moved(void) { under_traffic(move, ROUNDS); }
static void forked(void) { under_traffic(have_a_child, ROUNDS / 10); }

/* While messages are sent: their bytes are undefined, but all messages complete, and the pair still works. */
static void dropped_meanwhile(void)
{
	unsigned int round, i;
	struct pair t;

	pair_open(&t);
	for (round = 0; round < ROUNDS / 2 && !tb_failed(); round++) {
		for (i = 0; i < 4; i++)
			post(&t, i % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, AT, AT, LENGTH);
		for (i = 0; i < 8; i++)
			drop(&t, round + i);
		for (i = 0; i < 4; i++)
			done(&t, IBV_WC_SUCCESS, "a message whose pages go");
	}
	link_fill(t.a.at + AT, LENGTH);
	memset(t.b.at, 0, BYTES);
	post(&t, IBV_WR_RDMA_WRITE, AT, AT, LENGTH);
	done(&t, IBV_WC_SUCCESS, "WRITE afterwards");
	compare(t.b.at, t.a.at, AT, LENGTH, "WRITE afterwards");
	pair_close(&t);
}

/* A region is deregistered during page faults on it. */
static void deregistered_meanwhile(void)
{
	unsigned int round;
	struct ibv_wc wc;
	struct pair t;

	for (round = 0; round < 20; round++) {
		pair_open(&t);
		post(&t, IBV_WR_RDMA_WRITE, AT, AT, LENGTH);
		link_errno(ibv_dereg_mr(t.b.mr), 0, "deregistering the target");
		if (tb_poll(t.p.a.scq, &wc, "WRITE") && wc.status != IBV_WC_SUCCESS && wc.status != IBV_WC_REM_ACCESS_ERR)
			tb_fail("round %u: status %s", round, ibv_wc_status_str(wc.status));
		tb_pair_destroy(&t.p);
		munmap(t.b.at, BYTES);
		area_close(&t.a);
	}
}

/* A process is killed during page faults at both ends; other processes are not affected. */
static void killed(void)
{
	unsigned int round;

	for (round = 0; round < 20; round++) {
		int ready[2];
		char byte;
		pid_t pid;

		if (pipe(ready))
			tb_die("pipe");
		pid = fork();
		if (pid < 0)
			tb_die("fork");
		if (!pid) {
			struct tb_side asker = link_asker, owner;
			struct tb_opts opts = tb_pair_defaults();
			struct pair t;
			unsigned int i;

			/* The child opens its own contexts, because these belong to the parent. */
			tb_side_open(&asker, ibv_get_device_name(link_asker.ctx->device), link_asker.gid_index, NULL);
			link_open_owner_again(&owner);
			opts.rnr_retry = 7;
			tb_pair_create(&t.p, &asker, &owner, &opts);
			area_register(&t.a, &asker, fresh(BYTES), BYTES, ON_DEMAND);
			area_register(&t.b, &owner, fresh(BYTES), BYTES, ON_DEMAND);
			if (write(ready[1], "", 1) != 1)
				_exit(1);
			for (i = 0;; i++) {
				struct ibv_wc wc;

				post(&t, i % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, AT, AT, LENGTH);
				while (!ibv_poll_cq(t.p.a.scq, 1, &wc))
					;
				madvise(t.a.at, BYTES, MADV_DONTNEED);
				madvise(t.b.at, BYTES, MADV_DONTNEED);
			}
		}
		close(ready[1]);
		if (read(ready[0], &byte, 1) != 1)
			tb_fail("round %u: the process did not begin", round);
		close(ready[0]);
		usleep(1000 + round * 731);
		kill(pid, SIGKILL);
		if (waitpid(pid, NULL, 0) != pid)
			tb_die("waitpid");
	}
	untouched_write();
}

/* ------------------------------------------------------------------ */

static void advice(void)
{
	static const enum ibv_advise_mr_advice kinds[] = {
		IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT,
	};
	struct ibv_sge sge;
	struct pair t;
	size_t i;
	int flags;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		for (flags = 0; flags <= IBV_ADVISE_MR_FLAG_FLUSH; flags++) {
			pair_open(&t);
			sge = (struct ibv_sge) { (uintptr_t)t.a.at, BYTES, t.a.mr->lkey };
			link_errno(ibv_advise_mr(link_asker.pd, kinds[i], flags, &sge, 1), 0, "advice");
			link_fill(t.a.at + AT, LENGTH);
			post(&t, IBV_WR_RDMA_WRITE, AT, AT, LENGTH);
			done(&t, IBV_WC_SUCCESS, "WRITE");
			compare(t.b.at, t.a.at, AT, LENGTH, "WRITE");
			pair_close(&t);
		}
	}
}

static void bad_advice(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(link_asker.ctx);
	struct ibv_sge sge;
	struct area area;

	if (!pd)
		tb_die("ibv_alloc_pd");
	area_register(&area, &link_asker, fresh(BYTES), BYTES, IBV_ACCESS_ON_DEMAND);
	sge = (struct ibv_sge) { (uintptr_t)area.at, BYTES, area.mr->lkey };
	link_errno(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1), EPERM, "by another PD");
	link_errno(ibv_advise_mr(link_asker.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 0), EINVAL, "on nothing");
	link_errno(ibv_advise_mr(link_asker.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 1 << 5, &sge, 1), EINVAL,
		   "with an undefined flag");
	link_errno(ibv_advise_mr(link_asker.pd, (enum ibv_advise_mr_advice)99, 0, &sge, 1), EOPNOTSUPP,
		   "of an undefined kind");
	link_errno(ibv_dealloc_pd(pd), 0, "ibv_dealloc_pd");
	link_errno(ibv_advise_mr(link_asker.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, &sge, 1), EPERM,
		   "to write where nobody may");
	sge.length = BYTES - 1;
	sge.addr += 2;
	link_errno(ibv_advise_mr(link_asker.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1), EFAULT,
		   "beyond the region");
	sge = (struct ibv_sge) { (uintptr_t)area.at, 1, area.mr->lkey ^ 1 };
	link_errno(ibv_advise_mr(link_asker.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1), ENOENT, "another key");
	munmap(area.at, PAGE);
	sge = (struct ibv_sge) { (uintptr_t)area.at, 1, area.mr->lkey };
	link_errno(ibv_advise_mr(link_asker.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1), EFAULT,
		   "what there is not");
	area_close(&area);
}

static void refused(void)
{
	uint8_t *at = fresh(BYTES);
	struct area area;

	if (ibv_reg_mr(link_asker.pd, at, BYTES, ON_DEMAND | IBV_ACCESS_MW_BIND) || errno != EOPNOTSUPP)
		tb_fail("a region for windows: %s", strerror(errno));
	if (ibv_reg_mr(link_asker.pd, at, 0, ON_DEMAND) || errno != EINVAL)
		tb_fail("a region of no bytes: %s", strerror(errno));
	area_register(&area, &link_asker, at, BYTES, ON_DEMAND);
	if (!ibv_rereg_mr(area.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE))
		tb_fail("a region on demand became another");
	area_close(&area);
}

/* ---- regions of all memory */

static void in_all_memory(void (*run)(void))
{
	all_memory = true;
	run();
	all_memory = false;
}

static void all_untouched_send(void) { in_all_memory(untouched_send); }
static void all_untouched_write(void) { in_all_memory(untouched_write); }
static void all_untouched_read(void) { in_all_memory(untouched_read); }
static void all_untouched_atomics(void) { in_all_memory(untouched_atomics); }
static void all_read_only_pages(void) { in_all_memory(read_only_pages); }
static void all_unmapped(void) { in_all_memory(unmapped); }
static void all_dropped(void) { in_all_memory(dropped); }
static void all_dropped_meanwhile(void) { in_all_memory(dropped_meanwhile); }
static void all_paged_out(void) { in_all_memory(paged_out); }
static void all_mapped_again(void) { in_all_memory(mapped_again); }
static void all_moved(void) { in_all_memory(moved); }
static void all_forked(void) { in_all_memory(forked); }
static void all_deregistered_meanwhile(void) { in_all_memory(deregistered_meanwhile); }
static void all_killed(void) { in_all_memory(killed); }
static void all_advice(void) { in_all_memory(advice); }

static uint8_t *fresh_at(uint8_t *at, size_t length)
{
	if (mmap(at, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != at)
		tb_die("mmap of %zu bytes at %p: %s", length, (void *)at, strerror(errno));
	return at;
}

static void pair_open_all(struct pair *t)
{
	all_memory = true;
	pair_open(t);
	all_memory = false;
}

/* Each operation between two untouched areas of BYTES bytes. */
static void each_operation(struct pair *t, uint8_t *here, uint8_t *there)
{
	uint64_t value;

	link_fill(here + AT, LENGTH);
	post_between(t, IBV_WR_RDMA_WRITE, here + AT, there + AT, LENGTH);
	done(t, IBV_WC_SUCCESS, "WRITE");
	compare(there, here, AT, LENGTH, "WRITE");
	memset(here, 0, BYTES);
	post_between(t, IBV_WR_RDMA_READ, here + AT, there + AT, LENGTH);
	done(t, IBV_WC_SUCCESS, "READ");
	compare(here, there, AT, LENGTH, "READ");
	memset(there, 0, BYTES);
	receive_into(t, there + AT, LENGTH);
	post_between(t, IBV_WR_SEND, here + AT, NULL, LENGTH);
	done(t, IBV_WC_SUCCESS, "SEND");
	tb_expect(t->p.b.rcq, RECV_ID, IBV_WC_SUCCESS, "receive");
	compare(there, here, AT, LENGTH, "SEND");
	memset(there, 0, 8);
	post_between(t, IBV_WR_ATOMIC_FETCH_AND_ADD, here, there, 8);
	done(t, IBV_WC_SUCCESS, "fetch and add");
	memcpy(&value, there, sizeof(value));
	if (value != 7)
		tb_fail("fetch and add: stored %llu", (unsigned long long)value);
	memset(there, 0, 8);
	post_between(t, IBV_WR_ATOMIC_CMP_AND_SWP, here + 8, there, 8);
	done(t, IBV_WC_SUCCESS, "compare and swap");
	memcpy(&value, there, sizeof(value));
	if (value != 9)
		tb_fail("compare and swap: stored %llu", (unsigned long long)value);
}

/*
 * Memory that is mapped after the registration of the region: some of it crosses a multiple of 16 MB or 64 GB, where
 * another table of its translation begins.
 */
static void mapped_later(void)
{
	uint8_t *places[] = {
		FAR(512), FAR(1024) - 10 * PAGE, FAR(1025) + (16 << 20) - 10 * PAGE, FAR(2048) + 5 * PAGE, NULL, NULL,
	};
	struct pair t;
	size_t i, j;

	pair_open_all(&t);
	for (i = 0; i < ARRAY_SIZE(places); i++)
		for (j = 0; j < ARRAY_SIZE(places) && !tb_failed(); j++) {
			uint8_t *here, *there;

			if (places[i] && i == j)
				continue;
			here = places[i] ? fresh_at(places[i], BYTES) : fresh(BYTES);
			there = places[j] ? fresh_at(places[j], BYTES) : fresh(BYTES);
			each_operation(&t, here, there);
			munmap(here, BYTES);
			munmap(there, BYTES);
		}
	pair_close(&t);
}

/* A page at each of many addresses, unmapped again: over time a region uses more tables than exist at once. */
static void scattered(void)
{
	const size_t apart = 16 << 20;
	unsigned int round, i;
	struct pair t;

	pair_open_all(&t);
	for (round = 0; round < 5; round++) {
		uint8_t *base = FAR(512 + 64 * round);

		link_fill(t.a.at, PAGE);
		for (i = 0; i < 100 && !tb_failed(); i++) {
			uint8_t *at = fresh_at(base + i * apart, PAGE);

			post_between(&t, IBV_WR_RDMA_WRITE, t.a.at + i, at + i, 1000);
			done(&t, IBV_WC_SUCCESS, "WRITE far away");
			if (memcmp(at + i, t.a.at + i, 1000))
				tb_fail("round %u: other bytes in place %u", round, i);
		}
		for (i = 0; i < 100; i++)
			munmap(base + i * apart, PAGE);
	}
	pair_close(&t);
}

/* Memory is moved to another address: an address refers to the memory that is mapped there now. */
static void mapped_elsewhere(void)
{
	uint8_t *first = FAR(700), *second = FAR(900);
	struct pair t;

	pair_open_all(&t);
	link_fill(t.a.at, BYTES);
	fresh_at(first, BYTES);
	post_between(&t, IBV_WR_RDMA_WRITE, t.a.at, first, BYTES);
	done(&t, IBV_WC_SUCCESS, "WRITE");
	if (mremap(first, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, second) != second)
		tb_die("mremap: %s", strerror(errno));
	memset(t.a.at, 0, BYTES);
	post_between(&t, IBV_WR_RDMA_READ, t.a.at, second, BYTES);
	done(&t, IBV_WC_SUCCESS, "READ where it is now");
	if (memcmp(t.a.at, second, BYTES))
		tb_fail("READ where it is now: other bytes");
	fresh_at(first, BYTES);
	post_between(&t, IBV_WR_RDMA_READ, t.a.at, first, PAGE);
	done(&t, IBV_WC_SUCCESS, "READ of what is new");
	if (memcmp(t.a.at, first, PAGE) || t.a.at[0] || t.a.at[PAGE - 1])
		tb_fail("READ of what is new: other bytes");
	munmap(first, BYTES);
	post_between(&t, IBV_WR_RDMA_READ, t.a.at, first, 8);
	done(&t, IBV_WC_REM_ACCESS_ERR, "READ where it was");
	munmap(second, BYTES);
	pair_close(&t);
}

/* A request for unmapped memory fails; another QP that uses the same region is not affected. */
static void hole(void)
{
	static const struct {
		const char *what;
		enum ibv_wr_opcode opcode;
		bool here;			/* the hole is at the requester */
		enum ibv_wc_status sender;
		enum ibv_wc_status receiver;
	} asks[] = {
		{ "WRITE into a hole", IBV_WR_RDMA_WRITE, false, IBV_WC_REM_ACCESS_ERR, IBV_WC_SUCCESS },
		{ "READ of a hole", IBV_WR_RDMA_READ, false, IBV_WC_REM_ACCESS_ERR, IBV_WC_SUCCESS },
		{ "atomic in a hole", IBV_WR_ATOMIC_FETCH_AND_ADD, false, IBV_WC_REM_ACCESS_ERR, IBV_WC_SUCCESS },
		{ "SEND into a hole", IBV_WR_SEND, false, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR },
		{ "WRITE from a hole", IBV_WR_RDMA_WRITE, true, IBV_WC_LOC_PROT_ERR, IBV_WC_SUCCESS },
		{ "READ into a hole", IBV_WR_RDMA_READ, true, IBV_WC_LOC_PROT_ERR, IBV_WC_SUCCESS },
		{ "SEND from a hole", IBV_WR_SEND, true, IBV_WC_LOC_PROT_ERR, IBV_WC_SUCCESS },
	};
	/* Far from all mappings, next to a mapping, and outside the address space of processes. */
	uint8_t *const holes[] = { FAR(777), FAR(600) + BYTES, NULL, (uint8_t *)(UINTPTR_MAX - 4095) };
	struct tb_opts opts = tb_pair_defaults();
	struct tb_pair beside;
	struct pair t;
	size_t i, j;

	pair_open_all(&t);
	opts.rnr_retry = 7;
	tb_pair_create(&beside, &link_asker, link_owner, &opts);
	fresh_at(FAR(600), BYTES);
	for (i = 0; i < ARRAY_SIZE(asks) * ARRAY_SIZE(holes) && !tb_failed(); i++) {
		uint8_t *nothing = holes[i / ARRAY_SIZE(asks)];
		struct tb_pair whole = t.p;

		j = i % ARRAY_SIZE(asks);
		if (asks[j].opcode == IBV_WR_SEND)
			receive_into(&t, asks[j].here ? t.b.at : nothing, 8);
		post_between(&t, asks[j].opcode, asks[j].here ? nothing : t.a.at, asks[j].here ? t.b.at : nothing, 8);
		/* Meanwhile the other pair uses the same regions. */
		link_fill(t.a.at, LENGTH);
		memset(t.b.at, 0, LENGTH);
		t.p = beside;
		post(&t, IBV_WR_RDMA_WRITE, 0, 0, LENGTH);
		done(&t, IBV_WC_SUCCESS, "WRITE beside a hole");
		if (memcmp(t.a.at, t.b.at, LENGTH))
			tb_fail("%s: other bytes beside it", asks[j].what);
		t.p = whole;
		done(&t, asks[j].sender, asks[j].what);
		if (asks[j].receiver != IBV_WC_SUCCESS)
			tb_expect(t.p.b.rcq, RECV_ID, asks[j].receiver, asks[j].what);
		tb_pair_destroy(&t.p);
		pair_connect(&t);
	}
	tb_pair_destroy(&beside);
	munmap(FAR(600), BYTES);
	pair_close(&t);
}

/* Each region has its own access rights and its own end. */
static void two_regions(void)
{
	struct ibv_mr *all, *reading;
	struct pair t;

	pair_open_all(&t);
	all = t.b.mr;
	reading = ibv_reg_mr(link_owner->pd, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_REMOTE_READ);
	if (!reading)
		tb_die("a second region of all memory: %s", strerror(errno));
	link_fill(t.a.at + AT, 1000);
	post(&t, IBV_WR_RDMA_WRITE, AT, AT, 1000);
	done(&t, IBV_WC_SUCCESS, "WRITE through the first");
	t.b.mr = reading;
	post(&t, IBV_WR_RDMA_READ, PAGE, AT, 1000);
	done(&t, IBV_WC_SUCCESS, "READ through the second");
	if (memcmp(t.a.at + PAGE, t.a.at + AT, 1000))
		tb_fail("READ through the second: other bytes");
	post(&t, IBV_WR_RDMA_WRITE, PAGE, 0, 8);
	done(&t, IBV_WC_REM_ACCESS_ERR, "WRITE through the second");
	tb_pair_destroy(&t.p);
	pair_connect(&t);
	link_errno(ibv_dereg_mr(all), 0, "deregistering the first");
	post(&t, IBV_WR_RDMA_READ, 2 * PAGE, AT, 1000);
	done(&t, IBV_WC_SUCCESS, "READ through the second alone");
	if (memcmp(t.a.at + 2 * PAGE, t.a.at + AT, 1000))
		tb_fail("READ through the second alone: other bytes");
	pair_close(&t);
}

static void all_bad_advice(void)
{
	struct ibv_mr *mr = ibv_reg_mr(link_asker.pd, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND);
	struct ibv_sge sge = { 0, 1, 0 };

	if (!mr)
		tb_die("a region of all memory: %s", strerror(errno));
	sge.lkey = mr->lkey;
	link_errno(ibv_advise_mr(link_asker.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1), EFAULT,
		   "the page at 0");
	sge.addr = (uintptr_t)FAR(777);
	link_errno(ibv_advise_mr(link_asker.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1), EFAULT,
		   "a hole");
	link_errno(ibv_advise_mr(link_asker.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1), 0, "a hole, some day");
	sge.addr = UINT64_MAX;
	link_errno(ibv_advise_mr(link_asker.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1), EFAULT, "the last byte");
	sge.addr = (uintptr_t)&mr;
	link_errno(ibv_advise_mr(link_asker.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, &sge, 1), EPERM,
		   "to write where nobody may");
	link_errno(ibv_dereg_mr(mr), 0, "ibv_dereg_mr");
}

/* Advice on memory at many addresses, some of it across tables. */
static void scattered_advice(void)
{
	uint8_t *places[] = { FAR(512), FAR(1024) - 20 * PAGE, FAR(1025) + (16 << 20) - 20 * PAGE };
	struct ibv_sge sges[ARRAY_SIZE(places)];
	struct pair t;
	size_t i;
	int flags;

	for (flags = 0; flags <= IBV_ADVISE_MR_FLAG_FLUSH; flags++) {
		pair_open_all(&t);
		for (i = 0; i < ARRAY_SIZE(places); i++)
			sges[i] = (struct ibv_sge) { (uintptr_t)fresh_at(places[i], BYTES), BYTES, t.b.mr->lkey };
		link_errno(ibv_advise_mr(link_owner->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, flags, sges,
					 ARRAY_SIZE(sges)), 0, "advice on many places");
		for (i = 0; i < ARRAY_SIZE(places); i++) {
			link_fill(t.a.at + AT, LENGTH);
			post_between(&t, IBV_WR_RDMA_WRITE, t.a.at + AT, places[i] + AT, LENGTH);
			done(&t, IBV_WC_SUCCESS, "WRITE");
			compare(places[i], t.a.at, AT, LENGTH, "WRITE");
			munmap(places[i], BYTES);
		}
		pair_close(&t);
	}
}

static void all_refused(void)
{
	struct ibv_mr *mr;

	if (ibv_reg_mr(link_asker.pd, NULL, SIZE_MAX, ON_DEMAND | IBV_ACCESS_MW_BIND) || errno != EOPNOTSUPP)
		tb_fail("for windows: %s", strerror(errno));
	if (ibv_reg_mr(link_asker.pd, NULL, SIZE_MAX, ON_DEMAND | IBV_ACCESS_HUGETLB) || errno != EINVAL)
		tb_fail("of huge pages: %s", strerror(errno));
	if (ibv_reg_mr_iova(link_asker.pd, NULL, SIZE_MAX, PAGE, ON_DEMAND) || errno != EINVAL)
		tb_fail("elsewhere for the device: %s", strerror(errno));
	if (ibv_reg_mr(link_asker.pd, (void *)PAGE, SIZE_MAX, ON_DEMAND) || errno != EINVAL)
		tb_fail("all but a page: %s", strerror(errno));
	if (ibv_reg_dmabuf_mr(link_asker.pd, 0, SIZE_MAX, 0, 0, ON_DEMAND) || errno != EINVAL)
		tb_fail("of a dma-buf: %s", strerror(errno));
	mr = ibv_reg_mr(link_asker.pd, NULL, SIZE_MAX, ON_DEMAND);
	if (!mr)
		tb_die("a region of all memory: %s", strerror(errno));
	if (ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE) != IBV_REREG_MR_ERR_CMD ||
	    errno != EOPNOTSUPP)
		tb_fail("registered again: %s", strerror(errno));
	link_errno(ibv_dereg_mr(mr), 0, "ibv_dereg_mr");
}

/* A window cannot be bound to it. */
static void all_window(void)
{
	struct ibv_mw *mw = link_window(IBV_MW_TYPE_2);
	struct ibv_wc wc;
	struct pair t;

	pair_open_all(&t);
	link_errno(link_post_bind(&t.p.b, mw, t.b.mr, (uintptr_t)t.b.at, PAGE, IBV_ACCESS_REMOTE_READ), 0, "a bind");
	if (tb_poll(t.p.b.scq, &wc, "a bind") && wc.status != IBV_WC_MW_BIND_ERR)
		tb_fail("a bind: status %s", ibv_wc_status_str(wc.status));
	tb_pair_destroy(&t.p);
	link_close_window(mw);
	pair_connect(&t);
	pair_close(&t);
}

static const struct tb_case cases[] = {
	{ "abilities", abilities },
	{ "SEND onto untouched pages", untouched_send },
	{ "WRITE onto untouched pages", untouched_write },
	{ "READ onto untouched pages", untouched_read },
	{ "atomics onto untouched pages", untouched_atomics },
	{ "zero-based, from any byte on", zero_based },
	{ "read-only pages", read_only_pages },
	{ "unmapped pages", unmapped },
	{ "pages dropped under traffic", dropped },
	{ "pages dropped while messages are on their way", dropped_meanwhile },
	{ "pages paged out under traffic", paged_out },
	{ "pages mapped again under traffic", mapped_again },
	{ "pages moved under traffic", moved },
	{ "pages shared with a child under traffic", forked },
	{ "deregistered while pages are asked for", deregistered_meanwhile },
	{ "killed while pages are asked for", killed },
	{ "advice", advice },
	{ "bad advice", bad_advice },
	{ "refused", refused },
	{ "all memory: SEND onto untouched pages", all_untouched_send },
	{ "all memory: WRITE onto untouched pages", all_untouched_write },
	{ "all memory: READ onto untouched pages", all_untouched_read },
	{ "all memory: atomics onto untouched pages", all_untouched_atomics },
	{ "all memory: read-only pages", all_read_only_pages },
	{ "all memory: unmapped pages", all_unmapped },
	{ "all memory: pages dropped under traffic", all_dropped },
	{ "all memory: pages dropped while messages are on their way", all_dropped_meanwhile },
	{ "all memory: pages paged out under traffic", all_paged_out },
	{ "all memory: pages mapped again under traffic", all_mapped_again },
	{ "all memory: pages moved under traffic", all_moved },
	{ "all memory: pages shared with a child under traffic", all_forked },
	{ "all memory: deregistered while pages are asked for", all_deregistered_meanwhile },
	{ "all memory: killed while pages are asked for", all_killed },
	{ "all memory: mapped later", mapped_later },
	{ "all memory: in many places", scattered },
	{ "all memory: mapped elsewhere", mapped_elsewhere },
	{ "all memory: holes", hole },
	{ "all memory: two regions", two_regions },
	{ "all memory: advice", all_advice },
	{ "all memory: advice on many places", scattered_advice },
	{ "all memory: bad advice", all_bad_advice },
	{ "all memory: refused", all_refused },
	{ "all memory: a window", all_window },
};

int main(int argc, char **argv)
{
	return link_run(cases, ARRAY_SIZE(cases), argc, argv);
}
