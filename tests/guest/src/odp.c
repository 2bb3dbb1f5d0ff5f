// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Regions paged on demand: pages that nobody has touched, that are read alone, that go under
 * traffic and with their process.  Every byte is compared.
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
#define AT		100		/* where messages begin */
#define LENGTH		(20 * PAGE + 123)
#define ROUNDS		200
#define ON_DEMAND	(RIG_ACCESS_ALL | IBV_ACCESS_ON_DEMAND)

/* Fresh memory, and a region on it. */
struct area {
	uint8_t *at;
	struct ibv_mr *mr;
};

struct pair {
	struct rig_pair p;
	struct area a, b;
};

static uint8_t *fresh(size_t length)
{
	void *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		rig_die("mmap of %zu bytes: %s", length, strerror(errno));
	return at;
}

static void area_register(struct area *area, struct rig_side *side, uint8_t *at, size_t length, int access)
{
	area->at = at;
	area->mr = ibv_reg_mr(side->pd, at, length, access);
	if (!area->mr)
		rig_die("ibv_reg_mr on demand: %s", strerror(errno));
}

static void area_close(struct area *area)
{
	link_errno(ibv_dereg_mr(area->mr), 0, "ibv_dereg_mr");
	munmap(area->at, BYTES);
}

static void pair_connect(struct pair *t)
{
	struct rig_opts opts = rig_pair_defaults();

	opts.rnr_retry = 7;
	rig_pair_create(&t->p, &link_asker, link_owner, &opts);
}

static void pair_open(struct pair *t)
{
	pair_connect(t);
	area_register(&t->a, &link_asker, fresh(BYTES), BYTES, ON_DEMAND);
	area_register(&t->b, link_owner, fresh(BYTES), BYTES, ON_DEMAND);
}

static void pair_close(struct pair *t)
{
	rig_pair_destroy(&t->p);
	area_close(&t->a);
	area_close(&t->b);
}

static void receive(struct pair *t, size_t at, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)t->b.at + at, length, t->b.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = RECV_ID, .sg_list = &sge, .num_sge = 1 }, *bad;

	link_errno(ibv_post_recv(t->p.b.qp, &wr, &bad), 0, "ibv_post_recv");
}

static void post(struct pair *t, enum ibv_wr_opcode opcode, size_t from, size_t to, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)t->a.at + from, length, t->a.mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = ASK_ID, .sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
	}, *bad;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = (uintptr_t)t->b.at + to;
		wr.wr.atomic.rkey = t->b.mr->rkey;
		wr.wr.atomic.compare_add = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 7 : 0;
		wr.wr.atomic.swap = 9;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)t->b.at + to;
		wr.wr.rdma.rkey = t->b.mr->rkey;
	}
	link_errno(ibv_post_send(t->p.a.qp, &wr, &bad), 0, "ibv_post_send");
}

static bool done(struct pair *t, enum ibv_wc_status status, const char *what)
{
	return rig_expect(t->p.a.scq, ASK_ID, status, what);
}

/* `length` bytes at `to` are those at `from`, and none around them has changed from 0. */
static void compare(const uint8_t *to, const uint8_t *from, size_t at, size_t length, const char *what)
{
	size_t i;

	if (memcmp(to + at, from + at, length))
		rig_fail("%s: other bytes", what);
	for (i = 0; i < BYTES; i++)
		if ((i < at || i >= at + length) && to[i]) {
			rig_fail("%s: byte %zu was written", what, i);
			return;
		}
}

/* ------------------------------------------------------------------ */

static void abilities(void)
{
	struct ibv_device_attr_ex attr;

	if (ibv_query_device_ex(link_asker.ctx, NULL, &attr))
		rig_die("ibv_query_device_ex");
	if (attr.odp_caps.general_caps != IBV_ODP_SUPPORT)
		rig_fail("general abilities 0x%llx", (unsigned long long)attr.odp_caps.general_caps);
	if (attr.odp_caps.per_transport_caps.rc_odp_caps !=
	    (IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
	     IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV))
		rig_fail("abilities of RC 0x%x", attr.odp_caps.per_transport_caps.rc_odp_caps);
	if (attr.odp_caps.per_transport_caps.uc_odp_caps != IBV_ODP_SUPPORT_SEND ||
	    attr.odp_caps.per_transport_caps.ud_odp_caps != IBV_ODP_SUPPORT_SEND)
		rig_fail("abilities of UC and UD 0x%x, 0x%x", attr.odp_caps.per_transport_caps.uc_odp_caps,
			 attr.odp_caps.per_transport_caps.ud_odp_caps);
}

/* What holds the bytes that are sent is written by the CPU; all else is touched by the device first. */
static void untouched_send(void)
{
	struct pair t;

	pair_open(&t);
	link_fill(t.a.at + AT, LENGTH);
	receive(&t, AT, LENGTH);
	post(&t, IBV_WR_SEND, AT, 0, LENGTH);
	done(&t, IBV_WC_SUCCESS, "SEND");
	rig_expect(t.p.b.rcq, RECV_ID, IBV_WC_SUCCESS, "receive");
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
	/* Pages that neither end has ever seen are zeros. */
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
			rig_fail("atomic %zu: stored %llu", i, (unsigned long long)value);
		memcpy(&value, t.a.at + 8, sizeof(value));
		if (value)
			rig_fail("atomic %zu: answered %llu", i, (unsigned long long)value);
		pair_close(&t);
	}
}

/* Memory that its process only reads is read, and not written. */
static void read_only_pages(void)
{
	struct pair t;

	pair_open(&t);
	link_fill(t.b.at, BYTES);
	if (mprotect(t.b.at, BYTES, PROT_READ))
		rig_die("mprotect");
	post(&t, IBV_WR_RDMA_READ, 0, 0, BYTES);
	done(&t, IBV_WC_SUCCESS, "READ of memory to be read");
	if (memcmp(t.a.at, t.b.at, BYTES))
		rig_fail("READ of memory to be read: other bytes");
	post(&t, IBV_WR_RDMA_WRITE, 0, 0, 8);
	done(&t, IBV_WC_REM_ACCESS_ERR, "WRITE to memory to be read");
	pair_close(&t);
}

/* What there is not. */
static void unmapped(void)
{
	struct pair t;

	pair_open(&t);
	munmap(t.b.at + PAGE, PAGE);
	post(&t, IBV_WR_RDMA_WRITE, 0, 0, PAGE);
	done(&t, IBV_WC_SUCCESS, "WRITE before the gap");
	post(&t, IBV_WR_RDMA_WRITE, 0, PAGE, 8);
	done(&t, IBV_WC_REM_ACCESS_ERR, "WRITE into the gap");
	rig_pair_destroy(&t.p);
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
		rig_die("MADV_DONTNEED");
}

static void page_out(struct pair *t, unsigned int round)
{
	/* Without swap nothing happens, and without the advice in the kernel neither. */
	madvise(round % 2 ? t->a.at : t->b.at, BYTES, MADV_PAGEOUT);
}

static void map_anew(struct pair *t, unsigned int round)
{
	uint8_t *at = (round % 2 ? t->a.at : t->b.at) + (round % 16) * PAGE;

	if (mmap(at, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at)
		rig_die("mmap over a region");
}

/* Pages move away and back: what was in them has to come along. */
static void move(struct pair *t, unsigned int round)
{
	uint8_t *at = (round % 2 ? t->a.at : t->b.at) + (round % 16) * PAGE;
	uint8_t *away = mremap(at, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, fresh(4 * PAGE));

	if (away == MAP_FAILED || mremap(away, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at) != at)
		rig_die("mremap: %s", strerror(errno));
}

/* Afterwards each page is another's until it is written. */
static void have_a_child(struct pair *t, unsigned int round)
{
	pid_t pid = fork();

	if (pid < 0)
		rig_die("fork");
	if (!pid) {
		memset(t->a.at, 0x11, BYTES);
		memset(t->b.at, (int)round, BYTES);
		_exit(0);
	}
	if (waitpid(pid, NULL, 0) != pid)
		rig_die("waitpid");
}

static void under_traffic(void (*change)(struct pair *t, unsigned int round), unsigned int rounds)
{
	unsigned int round;
	struct pair t;

	pair_open(&t);
	for (round = 0; round < rounds && !rig_failed(); round++) {
		change(&t, round);
		link_fill(t.a.at + AT, LENGTH);
		post(&t, IBV_WR_RDMA_WRITE, AT, AT, LENGTH);
		if (!done(&t, IBV_WC_SUCCESS, "WRITE"))
			break;
		if (memcmp(t.b.at + AT, t.a.at + AT, LENGTH))
			rig_fail("round %u: other bytes after the WRITE", round);
		link_fill(t.b.at + AT, LENGTH);
		post(&t, IBV_WR_RDMA_READ, AT, AT, LENGTH);
		if (!done(&t, IBV_WC_SUCCESS, "READ"))
			break;
		if (memcmp(t.a.at + AT, t.b.at + AT, LENGTH))
			rig_fail("round %u: other bytes after the READ", round);
	}
	pair_close(&t);
}

static void dropped(void) { under_traffic(drop, ROUNDS); }
static void paged_out(void) { under_traffic(page_out, ROUNDS / 4); }
static void mapped_anew(void) { under_traffic(map_anew, ROUNDS); }
static void moved(void) { under_traffic(move, ROUNDS); }
static void forked(void) { under_traffic(have_a_child, ROUNDS / 10); }

/* While messages are on their way: which bytes come is open, but all messages do, and the pair is as good as before. */
static void dropped_meanwhile(void)
{
	unsigned int round, i;
	struct pair t;

	pair_open(&t);
	for (round = 0; round < ROUNDS / 2 && !rig_failed(); round++) {
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

/* A region goes while its pages are asked for. */
static void deregistered_meanwhile(void)
{
	unsigned int round;
	struct ibv_wc wc;
	struct pair t;

	for (round = 0; round < 20; round++) {
		pair_open(&t);
		post(&t, IBV_WR_RDMA_WRITE, AT, AT, LENGTH);
		link_errno(ibv_dereg_mr(t.b.mr), 0, "deregistering the target");
		if (rig_poll(t.p.a.scq, &wc, "WRITE") && wc.status != IBV_WC_SUCCESS && wc.status != IBV_WC_REM_ACCESS_ERR)
			rig_fail("round %u: status %s", round, ibv_wc_status_str(wc.status));
		rig_pair_destroy(&t.p);
		munmap(t.b.at, BYTES);
		area_close(&t.a);
	}
}

/* A process is killed while the pages of both ends are asked for; its neighbours notice nothing. */
static void killed(void)
{
	unsigned int round;

	for (round = 0; round < 20; round++) {
		int ready[2];
		char byte;
		pid_t pid;

		if (pipe(ready))
			rig_die("pipe");
		pid = fork();
		if (pid < 0)
			rig_die("fork");
		if (!pid) {
			struct rig_side asker = link_asker, owner;
			struct rig_opts opts = rig_pair_defaults();
			struct pair t;
			unsigned int i;

			/* Contexts of its own, for these are the parent's. */
			rig_side_open(&asker, ibv_get_device_name(link_asker.ctx->device), link_asker.gid_index, NULL);
			link_open_owner_again(&owner);
			opts.rnr_retry = 7;
			rig_pair_create(&t.p, &asker, &owner, &opts);
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
			rig_fail("round %u: the process did not begin", round);
		close(ready[0]);
		usleep(1000 + round * 731);
		kill(pid, SIGKILL);
		if (waitpid(pid, NULL, 0) != pid)
			rig_die("waitpid");
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
	struct ibv_sge sge;
	struct area area;

	area_register(&area, &link_asker, fresh(BYTES), BYTES, IBV_ACCESS_ON_DEMAND);
	sge = (struct ibv_sge) { (uintptr_t)area.at, BYTES, area.mr->lkey };
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
		rig_fail("a region for windows: %s", strerror(errno));
	if (ibv_reg_mr(link_asker.pd, NULL, SIZE_MAX, ON_DEMAND) || errno != EOPNOTSUPP)
		rig_fail("a region of all memory: %s", strerror(errno));
	area_register(&area, &link_asker, at, BYTES, ON_DEMAND);
	if (!ibv_rereg_mr(area.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE))
		rig_fail("a region on demand became another");
	area_close(&area);
}

static const struct rig_case cases[] = {
	{ "abilities", abilities },
	{ "SEND onto untouched pages", untouched_send },
	{ "WRITE onto untouched pages", untouched_write },
	{ "READ onto untouched pages", untouched_read },
	{ "atomics onto untouched pages", untouched_atomics },
	{ "read-only pages", read_only_pages },
	{ "unmapped pages", unmapped },
	{ "pages dropped under traffic", dropped },
	{ "pages dropped while messages are on their way", dropped_meanwhile },
	{ "pages paged out under traffic", paged_out },
	{ "pages mapped anew under traffic", mapped_anew },
	{ "pages moved under traffic", moved },
	{ "pages shared with a child under traffic", forked },
	{ "deregistered while pages are asked for", deregistered_meanwhile },
	{ "killed while pages are asked for", killed },
	{ "advice", advice },
	{ "bad advice", bad_advice },
	{ "refused", refused },
};

int main(int argc, char **argv)
{
	return link_run(cases, ARRAY_SIZE(cases), argc, argv);
}
