// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory windows and invalidation: the accesses that a key allows, and when it is
 * invalid. The opcode, flags and key of every completion and every byte of the region
 * are compared.
 *
 * mw plain|extended DEVICE GID-INDEX [DEVICE GID-INDEX NETNS] [-- CASE...]
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "link.h"

#define QUIET_MS	50		/* time without a further completion or event */
#define QKEY		0x1234
/* Bytes of a region beside the link's own: few, as the debugging of DMA has a word on each page mapped twice. */
#define SECOND		8192

static void bind_at(struct link *l, struct ibv_mw *mw, size_t at, uint64_t length, unsigned int access,
		    const char *what)
{
	link_bind_region(l, mw, l->p.b.mr, link_at(l, at), length, access, what);
}

/* The bind is accepted and fails; the window keeps its old key. */
static void bind_fails(struct link *l, struct ibv_mw *mw, struct ibv_mr *mr, uint64_t addr, uint64_t length,
		       unsigned int access, const char *what)
{
	uint32_t old = mw->rkey;

	link_errno(link_post_bind(&l->p.b, mw, mr, addr, length, access), 0, what);
	link_expect_sent(&l->p.b, BIND_ID, IBV_WC_BIND_MW, IBV_WC_MW_BIND_ERR, 0, what);
	tb_expect_state(&l->p.b, IBV_QPS_ERR, what);
	mw->rkey = old;
	link_revive(l);
}

static void local_inv(struct link *l, uint32_t rkey, enum ibv_wc_status status, const char *what)
{
	struct ibv_send_wr wr = { .wr_id = INV_ID, .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED };

	wr.invalidate_rkey = rkey;
	if (link_posted(&l->p.b, &wr, what))
		link_expect_sent(&l->p.b, INV_ID, IBV_WC_LOCAL_INV, status, 0, what);
	if (status != IBV_WC_SUCCESS)
		link_revive(l);
}

/* Posts a SEND with Invalidate of a, whose message is received at LINK_RECEIVES. */
static void post_send_inv(struct link *l, uint32_t rkey, uint32_t length, unsigned int flags, const char *what)
{
	struct tb_qp *a = &l->p.a;
	struct ibv_sge sge = { (uintptr_t)a->buf, length, a->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = SEND_ID, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND_WITH_INV };

	wr.send_flags = flags | IBV_SEND_SIGNALED;
	wr.invalidate_rkey = rkey;
	link_fill(a->buf, length);
	link_post_recv(&l->p.b, LINK_RECEIVES, TB_BUF_BYTES - LINK_RECEIVES);
	link_posted(a, &wr, what);
}

static void expect_invalidated(struct link *l, uint32_t rkey, uint32_t length, const char *what)
{
	struct ibv_wc want = { .wr_id = RECV_ID, .opcode = IBV_WC_RECV, .wc_flags = IBV_WC_WITH_INV };

	want.byte_len = length;
	want.invalidated_rkey = rkey;
	link_expect_sent(&l->p.a, SEND_ID, IBV_WC_SEND, IBV_WC_SUCCESS, 0, what);
	link_expect_wc(&l->p.b, l->p.b.rcq, &want, what);
	memcpy(l->image + LINK_RECEIVES, l->p.a.buf, length);
	link_check(l, what);
}

static void send_inv(struct link *l, uint32_t rkey, uint32_t length, unsigned int flags, const char *what)
{
	post_send_inv(l, rkey, length, flags, what);
	expect_invalidated(l, rkey, length, what);
}

/* It fails at both ends, and both can be used again. */
static void send_inv_fails(struct link *l, uint32_t rkey, const char *what)
{
	struct ibv_wc want = { .wr_id = RECV_ID, .status = IBV_WC_LOC_ACCESS_ERR };

	post_send_inv(l, rkey, 0, 0, what);
	link_expect_sent(&l->p.a, SEND_ID, IBV_WC_SEND, IBV_WC_REM_ACCESS_ERR, 0, what);
	link_expect_wc(&l->p.b, l->p.b.rcq, &want, what);
	link_check(l, what);
	link_revive(l);
}

/* ------------------------------------------------------------------ */
/* The life of windows                                                  */

static void capabilities(void)
{
	const unsigned int wanted = IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
				    IBV_DEVICE_MEM_MGT_EXTENSIONS;
	struct ibv_device_attr dev;

	if (ibv_query_device(link_owner->ctx, &dev))
		tb_die("ibv_query_device");
	if ((dev.device_cap_flags & wanted) != wanted || (dev.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2A))
		tb_fail("device_cap_flags 0x%x", dev.device_cap_flags);
	if (dev.max_mw < 1)
		tb_fail("%d windows at most", dev.max_mw);
}

static void life(void)
{
	struct ibv_mw *mw[200];
	struct ibv_pd *pd = ibv_alloc_pd(link_owner->ctx);
	size_t i, k;

	if (!pd)
		tb_die("ibv_alloc_pd");
	for (i = 0; i < ARRAY_SIZE(mw); i++) {
		mw[i] = link_window_in(pd, i % 2 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
		for (k = 0; k < i; k++)
			if (mw[k]->rkey >> 8 == mw[i]->rkey >> 8)
				tb_fail("windows %zu and %zu share their key 0x%x", k, i, mw[i]->rkey);
	}
	link_errno(ibv_dealloc_pd(pd), EBUSY, "ibv_dealloc_pd of a PD with windows");
	for (i = 0; i < ARRAY_SIZE(mw); i++)
		link_close_window(mw[i]);
	link_errno(ibv_dealloc_pd(pd), 0, "ibv_dealloc_pd");
}

static void wrong_types(void)
{
	static const int types[] = { 0, 3, 256, -1 };
	struct ibv_mw *mw;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		errno = 0;
		mw = ibv_alloc_mw(link_owner->pd, types[i]);
		if (mw) {
			tb_fail("a window of type %d was made", types[i]);
			link_close_window(mw);
		} else {
			link_errno(errno, EINVAL, "a type that is not there");
		}
	}
}

/* Before the window is bound, its key gives no access. */
static void unbound(struct link *l, struct ibv_mw *mw)
{
	link_dead(l, mw->rkey, link_at(l, 0), "a window that was never bound");
	link_dead(l, mw->rkey, 0, "a window that was never bound, address 0");
}

static void type1(void)
{
	struct ibv_mw *mw = link_window(IBV_MW_TYPE_1);
	uint32_t first;
	struct link l;

	link_open(&l);
	unbound(&l, mw);
	bind_at(&l, mw, 4096, LINK_LONG, LINK_REMOTE, "bind");
	link_opens(&l, mw->rkey, link_at(&l, 4096), 4096, LINK_LONG, "a bound window");
	first = mw->rkey;
	bind_at(&l, mw, 64, 128, LINK_REMOTE, "bind again");
	link_opens(&l, mw->rkey, link_at(&l, 64), 64, 128, "a window bound again");
	link_dead(&l, first, link_at(&l, 4096), "the key before");
	link_dead(&l, first, link_at(&l, 64), "the key before, in the new bounds");
	link_refused(&l, IBV_WR_RDMA_WRITE, mw->rkey, link_at(&l, 4096), 8, "the old bounds");
	link_opens(&l, mw->rkey, link_at(&l, 64), 64, 128, "the window after all that");
	link_close_window(mw);
	link_close(&l);
}

static void type1_unbound(void)
{
	struct ibv_mw *mw = link_window(IBV_MW_TYPE_1);
	uint32_t bound;
	struct link l;
	int way;

	link_open(&l);
	for (way = 0; way < 2; way++) {
		bind_at(&l, mw, 0, 4096, LINK_REMOTE, "bind");
		link_opens(&l, mw->rkey, link_at(&l, 0), 0, 4096, "a bound window");
		bound = mw->rkey;
		link_bind_region(&l, mw, way ? NULL : l.p.b.mr, way ? 0 : link_at(&l, 0), 0, 0, "bind with length 0");
		link_dead(&l, bound, link_at(&l, 0), "the key before");
		link_dead(&l, mw->rkey, link_at(&l, 0), "the key of the unbound window");
		link_bind_region(&l, mw, NULL, 0, 0, 0, "an unbound window unbound");
	}
	bind_at(&l, mw, 0, 4096, LINK_REMOTE, "bind again");
	link_opens(&l, mw->rkey, link_at(&l, 0), 0, 4096, "the window bound again");
	link_close_window(mw);
	link_close(&l);
}

/* The tag of the key has 8 bits: after 256 binds it has its first value again. */
static void many_binds(void)
{
	struct ibv_mw *mw = link_window(IBV_MW_TYPE_1);
	uint32_t start = mw->rkey, i;
	struct link l;

	link_open(&l);
	for (i = 1; i <= 300 && !tb_failed(); i++) {
		size_t at = i * 40 % LINK_WINDOWS;

		bind_at(&l, mw, at, 40, IBV_ACCESS_REMOTE_WRITE, "bind");
		if (mw->rkey != ((start & ~0xffU) | ((start + i) & 0xff)))
			tb_fail("bind %u: the key is 0x%x, the first was 0x%x", i, mw->rkey, start);
		link_write(&l, mw->rkey, link_at(&l, at), at, 40, "a window bound many times");
	}
	link_close_window(mw);
	link_close(&l);
}

static void many_windows(void)
{
	enum { COUNT = 64, BYTES = LINK_WINDOWS / COUNT };
	struct ibv_mw *mw[COUNT];
	struct link l;
	size_t i;

	link_open(&l);
	for (i = 0; i < COUNT; i++) {
		mw[i] = link_window(i % 2 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
		bind_at(&l, mw[i], i * BYTES, BYTES, LINK_REMOTE, "bind");
	}
	for (i = 0; i < COUNT; i++)
		link_opens(&l, mw[i]->rkey, link_at(&l, i * BYTES), i * BYTES, BYTES, "one of many windows");
	link_refused(&l, IBV_WR_RDMA_WRITE, mw[3]->rkey, link_at(&l, 4 * BYTES), 1, "the next window's memory");
	for (i = 0; i < COUNT; i++)
		link_close_window(mw[i]);
	link_opens(&l, l.p.b.mr->rkey, link_at(&l, 0), 0, LINK_WINDOWS, "the region itself");
	link_close(&l);
}

static void type2(void)
{
	struct ibv_mw *mw = link_window(IBV_MW_TYPE_2);
	uint32_t first;
	struct link l;

	link_open(&l);
	unbound(&l, mw);
	bind_at(&l, mw, 4096, LINK_LONG, LINK_REMOTE, "bind");
	link_opens(&l, mw->rkey, link_at(&l, 4096), 4096, LINK_LONG, "a bound window");
	bind_fails(&l, mw, l.p.b.mr, link_at(&l, 0), 64, LINK_REMOTE, "a bound window bound");
	link_opens(&l, mw->rkey, link_at(&l, 4096), 4096, LINK_LONG, "the window as it was");
	first = mw->rkey;
	local_inv(&l, first, IBV_WC_SUCCESS, "LOCAL_INV");
	link_dead(&l, first, link_at(&l, 4096), "an invalidated window");
	bind_at(&l, mw, 64, 128, LINK_REMOTE, "bind again");
	link_opens(&l, mw->rkey, link_at(&l, 64), 64, 128, "a window bound again");
	link_dead(&l, first, link_at(&l, 64), "the key before");
	local_inv(&l, mw->rkey, IBV_WC_SUCCESS, "LOCAL_INV");
	local_inv(&l, mw->rkey, IBV_WC_SUCCESS, "LOCAL_INV of what is invalid");
	link_close_window(mw);
	link_close(&l);
}

/* The program chooses the tag, and every tag is valid.  The other bits of the requested key are ignored. */
static void type2_tags(void)
{
	static const uint8_t tags[] = { 0, 255, 1, 128, 127, 2, 77 };
	struct ibv_mw *mw = link_window(IBV_MW_TYPE_2), *other = link_window(IBV_MW_TYPE_2);
	const uint32_t others[] = { mw->rkey, 0, UINT32_MAX, other->rkey, 0x12345600, 0x100, mw->rkey };
	const uint32_t own = mw->rkey & ~0xffU;
	struct ibv_send_wr wr;
	struct link l;
	size_t i;

	link_open(&l);
	for (i = 0; i < ARRAY_SIZE(tags); i++) {
		wr = link_bind_wr(mw, l.p.b.mr, link_at(&l, 0), 64, LINK_REMOTE);
		wr.bind_mw.rkey = (others[i] & ~0xffU) | tags[i];
		link_posted(&l.p.b, &wr, "bind");
		link_expect_sent(&l.p.b, BIND_ID, IBV_WC_BIND_MW, IBV_WC_SUCCESS, 0, "bind");
		if (mw->rkey != (own | tags[i]))
			tb_fail("the key is 0x%x, expected 0x%x", mw->rkey, own | tags[i]);
		link_opens(&l, mw->rkey, link_at(&l, 0), 0, 64, "a key of our own");
		link_refused(&l, IBV_WR_RDMA_WRITE, mw->rkey ^ 0x40, link_at(&l, 0), 8, "another tag");
		local_inv(&l, mw->rkey ^ 1, IBV_WC_MW_BIND_ERR, "LOCAL_INV with another tag");
		link_opens(&l, mw->rkey, link_at(&l, 0), 0, 64, "the window after that");
		local_inv(&l, mw->rkey, IBV_WC_SUCCESS, "LOCAL_INV");
	}
	link_close_window(mw);
	link_close_window(other);
	link_close(&l);
}

static void type2_by_peer(void)
{
	static const uint32_t sizes[] = { 1, 0, 100, LINK_LONG, 4096 };
	struct ibv_mw *mw = link_window(IBV_MW_TYPE_2);
	struct link l;
	size_t i;

	link_open(&l);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		bind_at(&l, mw, 0, 4096, LINK_REMOTE, "bind");
		link_opens(&l, mw->rkey, link_at(&l, 0), 0, 4096, "a bound window");
		send_inv(&l, mw->rkey, sizes[i], 0, "SEND with Invalidate");
		link_dead(&l, mw->rkey, link_at(&l, 0), "a window invalidated by the peer");
	}
	bind_at(&l, mw, 0, 4096, LINK_REMOTE, "bind");
	send_inv(&l, mw->rkey, 24, IBV_SEND_INLINE, "SEND with Invalidate, inline");
	link_dead(&l, mw->rkey, link_at(&l, 0), "a window invalidated by the peer");
	link_close_window(mw);
	link_close(&l);
}

/* ------------------------------------------------------------------ */
/* Accesses through a window                                            */

static void rights_of(enum ibv_mw_type type)
{
	static const struct {
		unsigned int right;
		enum ibv_wr_opcode opcode;
	} asked[] = {
		{ IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_WRITE },
		{ IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_READ },
		{ IBV_ACCESS_REMOTE_ATOMIC, IBV_WR_ATOMIC_FETCH_AND_ADD },
	};
	unsigned int set, right;
	struct ibv_mw *mw;
	struct link l;
	size_t i;

	link_open(&l);
	for (set = 0; set < 8; set++) {
		for (right = 0, i = 0; i < ARRAY_SIZE(asked); i++)
			right |= set & 1U << i ? asked[i].right : 0;
		mw = link_window(type);
		bind_at(&l, mw, 0, 256, right, "bind");
		for (i = 0; i < ARRAY_SIZE(asked); i++)
			if (!(set & 1U << i))
				link_refused(&l, asked[i].opcode, mw->rkey, link_at(&l, 8), 8, "what is not allowed");
		if (right & IBV_ACCESS_REMOTE_WRITE)
			link_write(&l, mw->rkey, link_at(&l, 8), 8, 200, "a window for writing");
		if (right & IBV_ACCESS_REMOTE_READ)
			link_read(&l, mw->rkey, link_at(&l, 8), 8, 200, "a window for reading");
		if (right & IBV_ACCESS_REMOTE_ATOMIC)
			link_add(&l, mw->rkey, link_at(&l, 8), 8, "a window for atomics");
		link_close_window(mw);
	}
	link_close(&l);
}

static void rights_1(void)	{ rights_of(IBV_MW_TYPE_1); }
static void rights_2(void)	{ rights_of(IBV_MW_TYPE_2); }

/* A region without remote access, of which a window gives the peer access to a part. */
static void private_region(void)
{
	struct ibv_mw *mw = link_window(IBV_MW_TYPE_2);
	struct ibv_mr *mr;
	struct link l;

	link_open(&l);
	mr = ibv_reg_mr(link_owner->pd, l.p.b.buf, SECOND, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	if (!mr)
		tb_die("ibv_reg_mr");
	link_dead(&l, mr->rkey, link_at(&l, 0), "a region without remote access");
	link_bind_region(&l, mw, mr, link_at(&l, 512), 512, LINK_REMOTE, "bind");
	link_opens(&l, mw->rkey, link_at(&l, 512), 512, 512, "a window on it");
	link_dead(&l, mr->rkey, link_at(&l, 512), "the region without remote access");
	link_close_window(mw);
	link_errno(ibv_dereg_mr(mr), 0, "ibv_dereg_mr");
	link_close(&l);
}

static void bounds(void)
{
	static const struct {
		size_t at;
		uint32_t length;
	} places[] = { { 4096, 4096 }, { 4095, 2 }, { 1, 1 }, { 3000, 10001 }, { 0, LINK_WINDOWS } };
	struct ibv_mw *mw;
	struct link l;
	size_t i;

	link_open(&l);
	for (i = 0; i < ARRAY_SIZE(places) && !tb_failed(); i++) {
		mw = link_window(i % 2 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
		bind_at(&l, mw, places[i].at, places[i].length, LINK_REMOTE, "bind");
		link_check_bounds(&l, mw->rkey, link_at(&l, places[i].at), places[i].at, places[i].length);
		link_close_window(mw);
	}
	link_close(&l);
}

static void zero_based_of(enum ibv_mw_type type)
{
	struct ibv_mw *mw;
	struct link l;
	size_t at;

	link_open(&l);
	for (at = 1000; at < 10000; at += 3096) {
		mw = link_window(type);
		bind_at(&l, mw, at, 5000, LINK_REMOTE | IBV_ACCESS_ZERO_BASED, "bind");
		link_check_bounds(&l, mw->rkey, 0, at, 5000);
		link_add(&l, mw->rkey, 8, at + 8, "an atomic");
		link_refused(&l, IBV_WR_RDMA_WRITE, mw->rkey, link_at(&l, at), 8, "the address in the region");
		link_close_window(mw);
	}
	link_close(&l);
}

static void zero_based_1(void)	{ zero_based_of(IBV_MW_TYPE_1); }
static void zero_based_2(void)	{ zero_based_of(IBV_MW_TYPE_2); }

/* A window of type 2B is valid for the QP that bound it, one of type 1 for its PD. */
static void another_qp(void)
{
	struct ibv_mw *one = link_window(IBV_MW_TYPE_1), *two = link_window(IBV_MW_TYPE_2);
	struct link l, other;

	link_open(&l);
	link_open(&other);
	bind_at(&l, one, 0, 4096, LINK_REMOTE, "bind, type 1");
	bind_at(&l, two, 4096, 4096, LINK_REMOTE, "bind, type 2");
	link_opens(&l, one->rkey, link_at(&l, 0), 0, 4096, "type 1, the same QP");
	link_opens(&l, two->rkey, link_at(&l, 4096), 4096, 4096, "type 2, the same QP");

	link_dead(&other, two->rkey, link_at(&l, 4096), "type 2, another QP");
	send_inv_fails(&other, two->rkey, "type 2, invalidated through another QP");
	link_fill(other.p.a.buf, 64);
	if (link_ask(&other, IBV_WR_RDMA_WRITE, one->rkey, link_at(&l, 0), 64, IBV_WC_SUCCESS, "type 1, another QP"))
		memcpy(l.image, other.p.a.buf, 64);
	link_check(&l, "type 1, another QP");
	link_opens(&l, two->rkey, link_at(&l, 4096), 4096, 4096, "type 2, the same QP, after that");

	local_inv(&other, two->rkey, IBV_WC_MW_BIND_ERR, "LOCAL_INV through another QP of the PD");
	link_opens(&l, two->rkey, link_at(&l, 4096), 4096, 4096, "type 2 after that");
	local_inv(&l, two->rkey, IBV_WC_SUCCESS, "LOCAL_INV through its own QP");
	link_dead(&l, two->rkey, link_at(&l, 4096), "an invalidated window");
	local_inv(&other, two->rkey, IBV_WC_SUCCESS, "LOCAL_INV of a window that is bound to no QP");
	link_close_window(one);
	link_close_window(two);
	link_close(&other);
	link_close(&l);
}

/* The key of a window is only an R_Key, not an L_Key. */
static void not_local(void)
{
	enum ibv_mw_type type;

	for (type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++) {
		struct ibv_mw *mw = link_window(type);
		struct ibv_send_wr wr = { .wr_id = SEND_ID, .opcode = IBV_WR_SEND, .num_sge = 1 };
		struct ibv_sge sge;
		struct link l;

		link_open(&l);
		bind_at(&l, mw, 0, 4096, LINK_REMOTE, "bind");
		sge = (struct ibv_sge) { link_at(&l, 0), 8, mw->rkey };
		wr.sg_list = &sge;
		link_post_recv(&l.p.a, 0, 8);
		link_posted(&l.p.b, &wr, "a window's key as lkey");
		link_expect_sent(&l.p.b, SEND_ID, IBV_WC_SEND, IBV_WC_LOC_PROT_ERR, 0, "a window's key as lkey");
		link_revive(&l);
		link_opens(&l, mw->rkey, link_at(&l, 0), 0, 4096, "the window after that");
		link_close_window(mw);
		link_close(&l);
	}
}

/* ------------------------------------------------------------------ */
/* Binds that must fail                                                 */

static void bind_fails_both(struct link *l, struct ibv_mr *mr, uint64_t addr, uint64_t length, unsigned int access,
			    const char *what)
{
	enum ibv_mw_type type;

	for (type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++) {
		struct ibv_mw *mw = link_window(type);
		uint32_t next = ibv_inc_rkey(mw->rkey);

		bind_fails(l, mw, mr, addr, length, access, what);
		link_refused(l, IBV_WR_RDMA_WRITE, mw->rkey, addr, 1, what);
		link_refused(l, IBV_WR_RDMA_WRITE, next, addr, 1, what);
		bind_at(l, mw, 0, 64, LINK_REMOTE, "a bind after one that failed");
		link_opens(l, mw->rkey, link_at(l, 0), 0, 64, "the window after a bind that failed");
		link_close_window(mw);
	}
}

static void region_rights(void)
{
	struct ibv_mr *no_bind, *read_only;
	struct ibv_mw *mw;
	struct link l;

	link_open(&l);
	no_bind = ibv_reg_mr(link_owner->pd, l.p.b.buf, SECOND, TB_ACCESS_ALL);
	read_only = ibv_reg_mr(link_owner->pd, l.p.b.buf, SECOND, IBV_ACCESS_MW_BIND);
	if (!no_bind || !read_only)
		tb_die("ibv_reg_mr");
	bind_fails_both(&l, no_bind, link_at(&l, 0), 64, IBV_ACCESS_REMOTE_READ, "a region without MW_BIND");
	bind_fails_both(&l, read_only, link_at(&l, 0), 64, IBV_ACCESS_REMOTE_WRITE, "WRITE without LOCAL_WRITE");
	bind_fails_both(&l, read_only, link_at(&l, 0), 64, IBV_ACCESS_REMOTE_ATOMIC, "atomics without LOCAL_WRITE");
	bind_fails_both(&l, read_only, link_at(&l, 0), 64, LINK_REMOTE, "everything without LOCAL_WRITE");
	mw = link_window(IBV_MW_TYPE_2);
	link_bind_region(&l, mw, read_only, link_at(&l, 0), 64, IBV_ACCESS_REMOTE_READ, "READ without LOCAL_WRITE");
	link_read(&l, mw->rkey, link_at(&l, 0), 0, 64, "a window on a region that is only read");
	link_refused(&l, IBV_WR_RDMA_WRITE, mw->rkey, link_at(&l, 0), 8, "a window on a region that is only read");
	link_close_window(mw);
	link_errno(ibv_dereg_mr(no_bind), 0, "ibv_dereg_mr");
	link_errno(ibv_dereg_mr(read_only), 0, "ibv_dereg_mr");
	link_close(&l);
}

static void beyond_the_region(void)
{
	struct ibv_mr *mr;
	struct link l;
	uint64_t start;

	link_open(&l);
	start = link_at(&l, 4096);
	mr = ibv_reg_mr(link_owner->pd, l.p.b.buf + 4096, 8192, LINK_BINDABLE);
	if (!mr)
		tb_die("ibv_reg_mr");
	bind_fails_both(&l, mr, start - 1, 64, LINK_REMOTE, "from the byte before the region");
	bind_fails_both(&l, mr, start, 8193, LINK_REMOTE, "a byte more than the region");
	bind_fails_both(&l, mr, start + 8192, 1, LINK_REMOTE, "the byte behind the region");
	bind_fails_both(&l, mr, start + 8191, 2, LINK_REMOTE, "over the end of the region");
	bind_fails_both(&l, mr, start, UINT64_MAX, LINK_REMOTE, "all bytes there are");
	bind_fails_both(&l, mr, start + 64, UINT64_MAX - 63, LINK_REMOTE, "around the end of all addresses");
	bind_fails_both(&l, mr, UINT64_MAX, 1, LINK_REMOTE, "the last address");
	link_errno(ibv_dereg_mr(mr), 0, "ibv_dereg_mr");
	link_close(&l);
}

static void wrong_regions(void)
{
	struct ibv_mw *mw = link_window(IBV_MW_TYPE_2);
	struct ibv_mw *bound = link_window(IBV_MW_TYPE_2);
	struct ibv_mr gone, no_region;
	struct ibv_mr *mr;
	struct link l;

	link_open(&l);
	mr = ibv_reg_mr(link_owner->pd, l.p.b.buf, SECOND, LINK_BINDABLE);
	if (!mr)
		tb_die("ibv_reg_mr");
	gone = *mr;
	link_errno(ibv_dereg_mr(mr), 0, "ibv_dereg_mr");
	bind_fails_both(&l, &gone, link_at(&l, 0), 64, LINK_REMOTE, "a region that is gone");
	no_region = *l.p.b.mr;
	no_region.lkey ^= 0x55;
	bind_fails_both(&l, &no_region, link_at(&l, 0), 64, LINK_REMOTE, "a wrong tag in the region's key");
	no_region.lkey = 0xffffff00;
	bind_fails_both(&l, &no_region, link_at(&l, 0), 64, LINK_REMOTE, "a key beyond the table");
	bind_at(&l, bound, 0, 4096, LINK_REMOTE, "bind");
	no_region.lkey = bound->rkey;
	bind_fails_both(&l, &no_region, link_at(&l, 0), 64, LINK_REMOTE, "a window in place of a region");
	no_region.lkey = mw->rkey;
	bind_fails(&l, mw, &no_region, link_at(&l, 0), 64, LINK_REMOTE, "a window bound to itself");
	link_close_window(bound);
	link_close_window(mw);
	link_close(&l);
}

static void other_pds(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(link_owner->ctx);
	enum ibv_mw_type type;
	struct ibv_mr *mr;
	struct link l;

	if (!pd)
		tb_die("ibv_alloc_pd");
	link_open(&l);
	mr = ibv_reg_mr(pd, l.p.b.buf, SECOND, LINK_BINDABLE);
	if (!mr)
		tb_die("ibv_reg_mr");
	for (type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++) {
		struct ibv_mw *mine = link_window(type), *foreign = link_window_in(pd, type);

		bind_fails(&l, foreign, mr, link_at(&l, 0), 64, LINK_REMOTE, "both of another PD than the QP");
		if (type == IBV_MW_TYPE_1) {
			link_errno(link_post_bind(&l.p.b, mine, mr, link_at(&l, 0), 64, LINK_REMOTE), EPERM,
				   "window and region of two PDs");
			link_errno(link_post_bind(&l.p.b, foreign, l.p.b.mr, link_at(&l, 0), 64, LINK_REMOTE), EPERM,
				   "region and window of two PDs");
		} else {
			bind_fails(&l, mine, mr, link_at(&l, 0), 64, LINK_REMOTE, "a region of another PD");
			bind_fails(&l, foreign, l.p.b.mr, link_at(&l, 0), 64, LINK_REMOTE, "a window of another PD");
			local_inv(&l, foreign->rkey, IBV_WC_MW_BIND_ERR, "LOCAL_INV in another PD");
		}
		bind_at(&l, mine, 0, 64, LINK_REMOTE, "bind");
		link_opens(&l, mine->rkey, link_at(&l, 0), 0, 64, "the window after that");
		link_close_window(mine);
		link_close_window(foreign);
	}
	link_errno(ibv_dereg_mr(mr), 0, "ibv_dereg_mr");
	link_errno(ibv_dealloc_pd(pd), 0, "ibv_dealloc_pd");
	link_close(&l);
}

/* ------------------------------------------------------------------ */
/* Invalidations that must fail                                         */

static void wrong_keys(void)
{
	struct ibv_mw *one = link_window(IBV_MW_TYPE_1), *two = link_window(IBV_MW_TYPE_2);
	struct ibv_mw *free_one = link_window(IBV_MW_TYPE_2);
	uint32_t keys[7];
	struct link l;
	size_t i;

	link_open(&l);
	bind_at(&l, one, 0, 4096, LINK_REMOTE, "bind, type 1");
	bind_at(&l, two, 4096, 4096, LINK_REMOTE, "bind, type 2");
	keys[0] = 0;
	keys[1] = UINT32_MAX;
	keys[2] = two->rkey ^ 1;
	keys[3] = one->rkey;
	keys[4] = l.p.b.mr->rkey;
	keys[5] = l.p.b.mr->rkey ^ 1;
	keys[6] = free_one->rkey;
	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		send_inv_fails(&l, keys[i], "SEND with Invalidate of a wrong key");
		if (i < 6)
			local_inv(&l, keys[i], IBV_WC_MW_BIND_ERR, "LOCAL_INV of a wrong key");
	}
	link_opens(&l, one->rkey, link_at(&l, 0), 0, 4096, "the window of type 1 after all that");
	link_opens(&l, two->rkey, link_at(&l, 4096), 4096, 4096, "the window of type 2 after all that");
	link_opens(&l, l.p.b.mr->rkey, link_at(&l, 0), 0, 4096, "the region after all that");
	send_inv(&l, two->rkey, 8, 0, "the right key");
	send_inv_fails(&l, two->rkey, "the same key a second time");
	link_close_window(one);
	link_close_window(two);
	link_close_window(free_one);
	link_close(&l);
}

/* ------------------------------------------------------------------ */
/* Regions with windows, and destruction of windows                     */

static void region_held(void)
{
	enum ibv_mw_type type;

	for (type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++) {
		struct ibv_mw *mw[2] = { link_window(type), link_window(type) };
		struct ibv_mr *mr;
		struct link l;

		link_open(&l);
		mr = ibv_reg_mr(link_owner->pd, l.p.b.buf, SECOND, LINK_BINDABLE);
		if (!mr)
			tb_die("ibv_reg_mr");
		link_bind_region(&l, mw[0], mr, link_at(&l, 0), 4096, LINK_REMOTE, "bind");
		link_bind_region(&l, mw[1], mr, link_at(&l, 4096), 4096, LINK_REMOTE, "bind");
		link_errno(ibv_dereg_mr(mr), EBUSY, "ibv_dereg_mr with two windows");
		link_opens(&l, mr->rkey, link_at(&l, 0), 0, SECOND, "the region");
		link_opens(&l, mw[0]->rkey, link_at(&l, 0), 0, 4096, "the first window");
		if (type == IBV_MW_TYPE_1)
			link_bind_region(&l, mw[0], NULL, 0, 0, 0, "unbind");
		else
			local_inv(&l, mw[0]->rkey, IBV_WC_SUCCESS, "LOCAL_INV");
		link_errno(ibv_dereg_mr(mr), EBUSY, "ibv_dereg_mr with one window");
		link_opens(&l, mw[1]->rkey, link_at(&l, 4096), 4096, 4096, "the second window");
		link_opens(&l, mr->rkey, link_at(&l, 0), 0, SECOND, "the region");
		if (type == IBV_MW_TYPE_1)
			bind_at(&l, mw[1], 0, 4096, LINK_REMOTE, "bind to another region");
		else
			link_close_window(mw[1]);
		link_errno(ibv_dereg_mr(mr), 0, "ibv_dereg_mr without a window");
		link_close_window(mw[0]);
		if (type == IBV_MW_TYPE_1) {
			link_opens(&l, mw[1]->rkey, link_at(&l, 0), 0, 4096, "the window in another region");
			link_close_window(mw[1]);
		}
		link_close(&l);
	}
}

static void bound_window_closed(void)
{
	enum ibv_mw_type type;

	for (type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++) {
		struct ibv_mw *mw = link_window(type);
		struct link l;
		uint32_t key;

		link_open(&l);
		bind_at(&l, mw, 0, 4096, LINK_REMOTE, "bind");
		link_opens(&l, mw->rkey, link_at(&l, 0), 0, 4096, "a bound window");
		key = mw->rkey;
		link_close_window(mw);
		link_dead(&l, key, link_at(&l, 0), "a window that is gone");
		mw = link_window(type);
		link_dead(&l, key, link_at(&l, 0), "a window that is gone, its place taken");
		link_close_window(mw);
		link_opens(&l, l.p.b.mr->rkey, link_at(&l, 0), 0, 4096, "its region");
		link_close(&l);
	}
}

/* A region without bound windows can be deregistered, in any state of the QP that bound the window. */
static void qp_gone(void)
{
	struct ibv_mw *mw = link_window(IBV_MW_TYPE_2);
	struct link l, next;
	uint32_t key;

	link_open(&l);
	bind_at(&l, mw, 0, 4096, LINK_REMOTE, "bind");
	key = mw->rkey;
	link_close_window(mw);
	link_close(&l);
	link_open(&next);
	link_dead(&next, key, link_at(&next, 0), "a window of a QP that is gone");
	link_close(&next);
}

/* A process that exits with bound windows leaves no objects: the testbed checks the kernel's list after the test. */
static void exit_with_windows(const char *device, int gid_index)
{
	struct ibv_mw *one, *two;
	struct link l;

	tb_side_open(&link_asker, device, gid_index, NULL);
	link_owner = &link_asker;
	one = link_window(IBV_MW_TYPE_1);
	two = link_window(IBV_MW_TYPE_2);
	link_open(&l);
	bind_at(&l, one, 0, 4096, LINK_REMOTE, "bind");
	bind_at(&l, two, 0, 4096, LINK_REMOTE, "bind");
	_exit(tb_failed() ? 1 : 0);
}

static void ended(void)
{
	int gid_index = link_asker.gid_index, status = -1;
	char device[64];
	pid_t child;

	snprintf(device, sizeof(device), "%s", ibv_get_device_name(link_asker.ctx->device));
	child = fork();
	if (!child)
		exit_with_windows(device, gid_index);
	if (child < 0 || waitpid(child, &status, 0) != child)
		tb_die("fork");
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		tb_fail("the process ended with status 0x%x", status);
}

/* ------------------------------------------------------------------ */
/* Order                                                                */

/* The key is sent directly after the bind, in one list. */
static void bind_and_send(void)
{
	struct ibv_mw *mw = link_window(IBV_MW_TYPE_2);
	struct ibv_send_wr wr[2];
	struct ibv_wc want = { .wr_id = RECV_ID, .opcode = IBV_WC_RECV, .byte_len = 4 };
	struct ibv_sge sge;
	struct link l;
	uint32_t key, i;

	link_open(&l);
	for (i = 0; i < 50 && !tb_failed(); i++) {
		wr[0] = link_bind_wr(mw, l.p.b.mr, link_at(&l, 0), 4096, LINK_REMOTE);
		wr[0].next = &wr[1];
		mw->rkey = wr[0].bind_mw.rkey;
		memcpy(l.p.b.buf + LINK_RECEIVES, &mw->rkey, 4);
		memcpy(l.image + LINK_RECEIVES, &mw->rkey, 4);
		sge = (struct ibv_sge) { link_at(&l, LINK_RECEIVES), 4, l.p.b.mr->lkey };
		wr[1] = (struct ibv_send_wr) { .wr_id = SEND_ID, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };
		wr[1].send_flags = IBV_SEND_SIGNALED;
		link_post_recv(&l.p.a, LINK_RECEIVES, 64);
		link_posted(&l.p.b, wr, "BIND_MW and SEND");
		link_expect_wc(&l.p.a, l.p.a.rcq, &want, "the message with the key");
		memcpy(&key, l.p.a.buf + LINK_RECEIVES, 4);
		link_write(&l, key, link_at(&l, 0), 0, 4096, "the key that was sent");
		link_expect_sent(&l.p.b, BIND_ID, IBV_WC_BIND_MW, IBV_WC_SUCCESS, 0, "BIND_MW");
		link_expect_sent(&l.p.b, SEND_ID, IBV_WC_SEND, IBV_WC_SUCCESS, 0, "SEND");
		send_inv(&l, key, 100, 0, "the peer has done");
	}
	link_close_window(mw);
	link_close(&l);
}

/* A READ through the window, then its fenced invalidation: the response is complete. */
static void fenced(void)
{
	struct ibv_mw *mw = link_window(IBV_MW_TYPE_2);
	struct ibv_wc want = { .wr_id = RECV_ID, .opcode = IBV_WC_RECV, .wc_flags = IBV_WC_WITH_INV, .byte_len = 16 };
	struct ibv_send_wr wr[2];
	struct ibv_sge sge[2];
	struct link l;
	int i;

	link_open(&l);
	for (i = 0; i < 20 && !tb_failed(); i++) {
		bind_at(&l, mw, 0, LINK_WINDOWS, LINK_REMOTE, "bind");
		link_write(&l, mw->rkey, link_at(&l, 0), 0, LINK_WINDOWS, "the whole window");
		memset(l.p.a.buf, 0, LINK_WINDOWS);
		sge[0] = (struct ibv_sge) { (uintptr_t)l.p.a.buf, LINK_WINDOWS, l.p.a.mr->lkey };
		sge[1] = (struct ibv_sge) { (uintptr_t)l.p.a.buf, 16, l.p.a.mr->lkey };
		wr[0] = (struct ibv_send_wr) { .wr_id = ASK_ID, .next = &wr[1], .sg_list = &sge[0], .num_sge = 1,
					       .opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED };
		wr[0].wr.rdma.remote_addr = link_at(&l, 0);
		wr[0].wr.rdma.rkey = mw->rkey;
		wr[1] = (struct ibv_send_wr) { .wr_id = SEND_ID, .sg_list = &sge[1], .num_sge = 1,
					       .opcode = IBV_WR_SEND_WITH_INV,
					       .send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE };
		wr[1].invalidate_rkey = mw->rkey;
		want.invalidated_rkey = mw->rkey;
		link_post_recv(&l.p.b, LINK_RECEIVES, 64);
		link_posted(&l.p.a, wr, "READ and a fenced SEND with Invalidate");
		link_expect_sent(&l.p.a, ASK_ID, IBV_WC_RDMA_READ, IBV_WC_SUCCESS, LINK_WINDOWS, "READ");
		link_expect_sent(&l.p.a, SEND_ID, IBV_WC_SEND, IBV_WC_SUCCESS, 0, "SEND with Invalidate");
		link_expect_wc(&l.p.b, l.p.b.rcq, &want, "the receive");
		if (memcmp(l.p.a.buf, l.image, LINK_WINDOWS))
			tb_fail("the READ before the invalidation brought wrong data");
		/* The fence also delayed the gathering: these are bytes from the response of the READ. */
		memcpy(l.image + LINK_RECEIVES, l.p.a.buf, 16);
		link_check(&l, "the message behind the fence");
	}
	link_close_window(mw);
	link_close(&l);
}

/* READ, then without a fence LOCAL_INV, BIND_MW, LOCAL_INV: each waits for the requests that it must follow. */
static void in_order(void)
{
	struct ibv_mw *mw = link_window(IBV_MW_TYPE_2);
	struct ibv_send_wr wr[4];
	struct ibv_sge sge;
	struct link l;
	int i;

	link_open(&l);
	for (i = 0; i < 20 && !tb_failed(); i++) {
		bind_at(&l, mw, 0, 64, LINK_REMOTE, "bind");
		link_fill(l.p.a.buf, LINK_LONG);
		memcpy(l.image, l.p.a.buf, LINK_LONG);
		sge = (struct ibv_sge) { link_at(&l, 0), LINK_LONG, l.p.b.mr->lkey };
		wr[0] = (struct ibv_send_wr) { .wr_id = ASK_ID, .next = &wr[1], .sg_list = &sge, .num_sge = 1,
					       .opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED };
		wr[0].wr.rdma.remote_addr = (uintptr_t)l.p.a.buf;
		wr[0].wr.rdma.rkey = l.p.a.mr->rkey;
		wr[1] = (struct ibv_send_wr) { .wr_id = INV_ID, .next = &wr[2], .opcode = IBV_WR_LOCAL_INV,
					       .send_flags = IBV_SEND_SIGNALED };
		wr[1].invalidate_rkey = mw->rkey;
		wr[2] = link_bind_wr(mw, l.p.b.mr, link_at(&l, 0), LINK_LONG, LINK_REMOTE);
		wr[2].next = &wr[3];
		wr[2].send_flags |= IBV_SEND_FENCE;
		wr[3] = (struct ibv_send_wr) { .wr_id = INV_ID, .opcode = IBV_WR_LOCAL_INV,
					       .send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE };
		mw->rkey = wr[2].bind_mw.rkey;
		wr[3].invalidate_rkey = mw->rkey;
		link_posted(&l.p.b, wr, "READ, LOCAL_INV, BIND_MW, LOCAL_INV");
		link_expect_sent(&l.p.b, ASK_ID, IBV_WC_RDMA_READ, IBV_WC_SUCCESS, LINK_LONG, "READ");
		link_expect_sent(&l.p.b, INV_ID, IBV_WC_LOCAL_INV, IBV_WC_SUCCESS, 0, "LOCAL_INV");
		link_expect_sent(&l.p.b, BIND_ID, IBV_WC_BIND_MW, IBV_WC_SUCCESS, 0, "BIND_MW");
		link_expect_sent(&l.p.b, INV_ID, IBV_WC_LOCAL_INV, IBV_WC_SUCCESS, 0, "LOCAL_INV");
		link_check(&l, "the READ");
	}
	link_dead(&l, mw->rkey, link_at(&l, 0), "the window after that");
	link_close_window(mw);
	link_close(&l);
}

/* Only the last request of each list is signaled, and only its completion is generated. */
static void unsignalled(void)
{
	struct end_opts opts = link_usual;
	struct ibv_mw *mw = link_window(IBV_MW_TYPE_2);
	struct ibv_send_wr wr[LINK_SQ_WRS] = {};
	struct link l;
	int round, i;

	opts.signal_some = true;
	link_open_with(&l, &opts);
	link_connect(&l);
	for (round = 0; round < 10 && !tb_failed(); round++) {
		for (i = 0; i < LINK_SQ_WRS; i += 2) {
			wr[i] = link_bind_wr(mw, l.p.b.mr, link_at(&l, 0), 4096, LINK_REMOTE);
			wr[i].send_flags = 0;
			wr[i].next = &wr[i + 1];
			mw->rkey = wr[i].bind_mw.rkey;
			wr[i + 1] = (struct ibv_send_wr) { .wr_id = INV_ID, .opcode = IBV_WR_LOCAL_INV };
			wr[i + 1].invalidate_rkey = mw->rkey;
			wr[i + 1].next = i + 2 < LINK_SQ_WRS ? &wr[i + 2] : NULL;
		}
		wr[LINK_SQ_WRS - 1].send_flags = IBV_SEND_SIGNALED;
		link_posted(&l.p.b, wr, "a list of BIND_MW and LOCAL_INV");
		link_expect_sent(&l.p.b, INV_ID, IBV_WC_LOCAL_INV, IBV_WC_SUCCESS, 0, "the last of the list");
		tb_expect_none(l.p.b.scq, "the others asked for none");
	}
	link_dead(&l, mw->rkey, link_at(&l, 0), "the window after that");
	link_close_window(mw);
	link_close(&l);
}

static int events(struct ibv_comp_channel *channel, int timeout_ms)
{
	struct pollfd pfd = { .fd = channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;
	int count = 0;

	while (poll(&pfd, 1, timeout_ms) > 0 && !ibv_get_cq_event(channel, &cq, &context)) {
		ibv_ack_cq_events(cq, 1);
		count++;
		timeout_ms = QUIET_MS;
	}
	return count;
}

static void expect_events(struct ibv_comp_channel *channel, int expected, const char *what)
{
	int count = events(channel, expected ? TB_WAIT_MS : QUIET_MS);

	if (count != expected)
		tb_fail("%s: %d events, expected %d", what, count, expected);
}

static void solicited(void)
{
	struct end_opts opts = link_usual;
	struct ibv_mw *mw = link_window(IBV_MW_TYPE_2);
	struct link l;

	opts.channel = ibv_create_comp_channel(link_owner->ctx);
	if (!opts.channel)
		tb_die("ibv_create_comp_channel");
	link_open_with(&l, &opts);
	link_connect(&l);
	link_errno(ibv_req_notify_cq(l.p.b.rcq, 1), 0, "ibv_req_notify_cq");
	bind_at(&l, mw, 0, 64, LINK_REMOTE, "bind");
	send_inv(&l, mw->rkey, 100, 0, "SEND with Invalidate");
	expect_events(opts.channel, 0, "not solicited");
	bind_at(&l, mw, 0, 64, LINK_REMOTE, "bind");
	send_inv(&l, mw->rkey, LINK_LONG, IBV_SEND_SOLICITED, "solicited SEND with Invalidate");
	expect_events(opts.channel, 1, "solicited");
	link_close_window(mw);
	link_close(&l);
	if (ibv_destroy_comp_channel(opts.channel))
		tb_die("ibv_destroy_comp_channel");
}

/* ------------------------------------------------------------------ */
/* Requests that posting must refuse                                    */

static void post_refused(struct tb_qp *q, struct ibv_send_wr *wr, const char *what)
{
	link_errno(link_post(q, wr), EINVAL, what);
	tb_expect_none(q->scq, what);
}

static void posts_refused(void)
{
	struct ibv_mw *one = link_window(IBV_MW_TYPE_1), *two = link_window(IBV_MW_TYPE_2);
	struct ibv_mw_bind bind = { .wr_id = BIND_ID };
	struct ibv_send_wr wr;
	uint32_t key = one->rkey;
	struct link l;

	link_open(&l);
	wr = link_bind_wr(one, l.p.b.mr, link_at(&l, 0), 64, LINK_REMOTE);
	post_refused(&l.p.b, &wr, "type 1 in a work request");
	bind.bind_info = wr.bind_mw.bind_info;
	link_errno(ibv_bind_mw(l.p.b.qp, two, &bind), EINVAL, "type 2 with ibv_bind_mw");
	bind.send_flags = IBV_SEND_INLINE;
	link_errno(ibv_bind_mw(l.p.b.qp, one, &bind), EINVAL, "ibv_bind_mw, inline");
	bind.send_flags = 0;
	bind.bind_info.mw_access_flags |= IBV_ACCESS_ON_DEMAND;
	link_errno(ibv_bind_mw(l.p.b.qp, one, &bind), EINVAL, "ibv_bind_mw, a right that is no window's");
	bind.bind_info = (struct ibv_mw_bind_info) { .length = 64 };
	link_errno(ibv_bind_mw(l.p.b.qp, one, &bind), EINVAL, "ibv_bind_mw, a length without a region");
	if (one->rkey != key)
		tb_fail("the key of a window that was never bound has changed");

	wr = link_bind_wr(two, l.p.b.mr, link_at(&l, 0), 0, LINK_REMOTE);
	post_refused(&l.p.b, &wr, "type 2 of length 0");
	wr = link_bind_wr(two, NULL, 0, 64, LINK_REMOTE);
	post_refused(&l.p.b, &wr, "type 2 without a region");
	wr = link_bind_wr(two, l.p.b.mr, link_at(&l, 0), 64, IBV_ACCESS_MW_BIND);
	post_refused(&l.p.b, &wr, "a right that is no window's");

	wr = link_bind_wr(two, l.p.b.mr, link_at(&l, 0), 64, LINK_REMOTE);
	if (!link_extended) {
		wr.send_flags |= IBV_SEND_INLINE;
		post_refused(&l.p.b, &wr, "BIND_MW, inline");
		wr = (struct ibv_send_wr) { .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_INLINE };
		post_refused(&l.p.b, &wr, "LOCAL_INV, inline");
	} else {
		struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(l.p.b.qp);
		struct ibv_sge sge[2] = {
			{ link_at(&l, 0), 4, l.p.b.mr->lkey },
			{ link_at(&l, 4), 4, l.p.b.mr->lkey },
		};

		ibv_wr_start(qp);
		ibv_wr_bind_mw(qp, two, wr.bind_mw.rkey, &wr.bind_mw.bind_info);
		ibv_wr_set_sge(qp, l.p.b.mr->lkey, link_at(&l, 0), 8);
		link_errno(ibv_wr_complete(qp), EINVAL, "BIND_MW with data");
		ibv_wr_start(qp);
		ibv_wr_local_inv(qp, two->rkey);
		ibv_wr_set_inline_data(qp, &wr, 8);
		link_errno(ibv_wr_complete(qp), EINVAL, "LOCAL_INV with inline data");
		ibv_wr_start(qp);
		ibv_wr_atomic_fetch_add(qp, l.p.a.mr->rkey, (uintptr_t)l.p.a.buf, 1);
		ibv_wr_set_sge_list(qp, 2, sge);
		link_errno(ibv_wr_complete(qp), EINVAL, "an atomic with two pieces");
		ibv_wr_start(qp);
		ibv_wr_bind_mw(qp, two, wr.bind_mw.rkey, &wr.bind_mw.bind_info);
		ibv_wr_abort(qp);
		tb_expect_none(l.p.b.scq, "a bind that was dropped");
		link_dead(&l, wr.bind_mw.rkey, link_at(&l, 0), "a bind that was dropped");
	}
	bind_at(&l, one, 0, 64, LINK_REMOTE, "bind");
	bind_at(&l, two, 64, 64, LINK_REMOTE, "bind");
	link_opens(&l, one->rkey, link_at(&l, 0), 0, 64, "type 1 after all that");
	link_opens(&l, two->rkey, link_at(&l, 64), 64, 64, "type 2 after all that");
	link_close_window(one);
	link_close_window(two);
	link_close(&l);
}

/* After a batch is dropped, its windows have the keys with which they are bound. */
static void dropped(void)
{
	static const char *const ways[] = { "a batch that was aborted", "a batch with an error", "a batch too long" };
	struct ibv_mw *mw = link_window(IBV_MW_TYPE_2), *fresh = link_window(IBV_MW_TYPE_2);
	const uint32_t fresh_key = fresh->rkey;
	struct ibv_mw_bind_info info;
	struct ibv_qp_ex *qp;
	struct link l;
	uint32_t key;
	size_t i, n;

	link_open(&l);
	bind_at(&l, mw, 0, 64, LINK_REMOTE, "bind");
	key = mw->rkey;
	info = link_bind_wr(mw, l.p.b.mr, link_at(&l, 0), 64, LINK_REMOTE).bind_mw.bind_info;
	qp = ibv_qp_to_qp_ex(l.p.b.qp);
	for (i = 0; link_extended && i < ARRAY_SIZE(ways); i++) {
		ibv_wr_start(qp);
		ibv_wr_bind_mw(qp, fresh, ibv_inc_rkey(fresh->rkey), &info);
		for (n = 0; n < (i == 2 ? 2 * LINK_SQ_WRS : 2); n++) {
			ibv_wr_local_inv(qp, mw->rkey);
			ibv_wr_bind_mw(qp, mw, ibv_inc_rkey(mw->rkey), &info);
		}
		if (mw->rkey == key || fresh->rkey == fresh_key)
			tb_fail("%s: mw->rkey is not the new key at once", ways[i]);
		if (i == 1)
			ibv_wr_set_sge(qp, l.p.b.mr->lkey, link_at(&l, 0), 8);
		if (i == 0)
			ibv_wr_abort(qp);
		else
			link_errno(ibv_wr_complete(qp), i == 1 ? EINVAL : ENOMEM, ways[i]);
		tb_expect_none(l.p.b.scq, ways[i]);
		if (mw->rkey != key || fresh->rkey != fresh_key)
			tb_fail("%s: keys 0x%x and 0x%x, they were 0x%x and 0x%x", ways[i], mw->rkey, fresh->rkey,
				key, fresh_key);
		link_opens(&l, mw->rkey, link_at(&l, 0), 0, 64, ways[i]);
	}
	/* The same for a list whose bind is refused. */
	info.mw_access_flags |= IBV_ACCESS_MW_BIND;
	if (!link_extended) {
		struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW, .bind_mw = { mw, ibv_inc_rkey(key), info } };

		post_refused(&l.p.b, &wr, "a right that is no window's");
		if (mw->rkey != key)
			tb_fail("a bind that was refused: key 0x%x, it was 0x%x", mw->rkey, key);
	}
	link_opens(&l, key, link_at(&l, 0), 0, 64, "the window after all that");
	link_close_window(mw);
	link_close_window(fresh);
	link_close(&l);
}

/* The state of the QP is checked first. */
static void not_ready(void)
{
	struct ibv_mw *one = link_window(IBV_MW_TYPE_1), *two = link_window(IBV_MW_TYPE_2);
	uint32_t key = one->rkey;
	struct ibv_send_wr wr;
	struct link l;

	link_open_with(&l, &link_usual);
	link_errno(link_post_bind(&l.p.b, one, l.p.b.mr, link_at(&l, 0), 64, LINK_REMOTE), EINVAL,
		   "ibv_bind_mw, QP in RESET");
	wr = link_bind_wr(two, l.p.b.mr, link_at(&l, 0), 64, LINK_REMOTE);
	post_refused(&l.p.b, &wr, "BIND_MW, QP in RESET");
	wr = (struct ibv_send_wr) { .opcode = IBV_WR_LOCAL_INV };
	post_refused(&l.p.b, &wr, "LOCAL_INV, QP in RESET");
	if (one->rkey != key)
		tb_fail("the key has changed");
	link_close_window(one);
	link_close_window(two);
	link_close(&l);
}

static void full_queue(void)
{
	struct end_opts opts = link_usual;
	struct ibv_mw *one = link_window(IBV_MW_TYPE_1), *two = link_window(IBV_MW_TYPE_2);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_send_wr wr;
	uint32_t i, key;
	struct link l;

	opts.sq_wrs = 8;
	link_open_with(&l, &opts);
	link_connect(&l);
	if (ibv_query_qp(l.p.b.qp, &attr, IBV_QP_CAP, &init))
		tb_die("ibv_query_qp");
	for (i = 0; i < init.cap.max_send_wr; i++)
		link_errno(link_post_bind(&l.p.b, one, l.p.b.mr, link_at(&l, i * 64), 64, LINK_REMOTE), 0,
			   "a bind that fits");
	key = one->rkey;
	link_errno(link_post_bind(&l.p.b, one, l.p.b.mr, link_at(&l, 0), 64, LINK_REMOTE), ENOMEM, "a bind too many");
	if (one->rkey != key)
		tb_fail("a bind that did not fit has changed the key");
	wr = link_bind_wr(two, l.p.b.mr, link_at(&l, 0), 64, LINK_REMOTE);
	link_errno(link_post(&l.p.b, &wr), ENOMEM, "BIND_MW, queue full");
	wr = (struct ibv_send_wr) { .opcode = IBV_WR_LOCAL_INV };
	link_errno(link_post(&l.p.b, &wr), ENOMEM, "LOCAL_INV, queue full");
	for (i = 0; i < init.cap.max_send_wr; i++)
		link_expect_sent(&l.p.b, BIND_ID, IBV_WC_BIND_MW, IBV_WC_SUCCESS, 0, "a bind that fitted");
	tb_expect_none(l.p.b.scq, "the queue was full");
	i = (init.cap.max_send_wr - 1) * 64;
	link_opens(&l, one->rkey, link_at(&l, i), i, 64, "the last bind");
	link_close_window(one);
	link_close_window(two);
	link_close(&l);
}

/* Requests after a failed one are flushed, and change no key. */
static void flushed(void)
{
	struct ibv_mw *bad = link_window(IBV_MW_TYPE_2), *good = link_window(IBV_MW_TYPE_2);
	struct ibv_mw *bound = link_window(IBV_MW_TYPE_2);
	struct ibv_send_wr wr[3];
	struct link l;

	link_open(&l);
	bind_at(&l, bound, 4096, 64, LINK_REMOTE, "bind");
	wr[0] = link_bind_wr(bad, l.p.b.mr, link_at(&l, TB_BUF_BYTES), 64, LINK_REMOTE);
	wr[0].next = &wr[1];
	wr[1] = link_bind_wr(good, l.p.b.mr, link_at(&l, 0), 64, LINK_REMOTE);
	wr[1].next = &wr[2];
	wr[2] = (struct ibv_send_wr) { .wr_id = INV_ID, .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED };
	wr[2].invalidate_rkey = bound->rkey;
	link_posted(&l.p.b, wr, "a bind that fails, one that does not, LOCAL_INV");
	link_expect_sent(&l.p.b, BIND_ID, IBV_WC_BIND_MW, IBV_WC_MW_BIND_ERR, 0, "a bind beyond the region");
	link_expect_sent(&l.p.b, BIND_ID, IBV_WC_BIND_MW, IBV_WC_WR_FLUSH_ERR, 0, "the bind behind it");
	link_expect_sent(&l.p.b, INV_ID, IBV_WC_LOCAL_INV, IBV_WC_WR_FLUSH_ERR, 0, "the LOCAL_INV behind it");
	link_revive(&l);
	link_dead(&l, wr[1].bind_mw.rkey, link_at(&l, 0), "a bind that was flushed");
	link_opens(&l, bound->rkey, link_at(&l, 4096), 4096, 64, "a LOCAL_INV that was flushed");
	link_close_window(bad);
	link_close_window(good);
	link_close_window(bound);
	link_close(&l);
}

/* ------------------------------------------------------------------ */
/* Other services                                                       */

static void datagrams_refused(void)
{
	struct end_opts opts = link_usual;
	struct ibv_mw *one = link_window(IBV_MW_TYPE_1), *two = link_window(IBV_MW_TYPE_2);
	struct ibv_send_wr wr, *bad;
	struct ibv_mw_bind bind = { .wr_id = BIND_ID };
	uint32_t key = one->rkey;
	struct tb_qp q;

	opts.type = IBV_QPT_UD;
	link_end_open(&q, link_owner, &opts);
	tb_ud_start(&q, QKEY);
	bind.bind_info = (struct ibv_mw_bind_info) { q.mr, (uintptr_t)q.buf, 64, LINK_REMOTE };
	link_errno(ibv_bind_mw(q.qp, one, &bind), EINVAL, "ibv_bind_mw on a UD QP");
	wr = link_bind_wr(two, q.mr, (uintptr_t)q.buf, 64, LINK_REMOTE);
	link_errno(ibv_post_send(q.qp, &wr, &bad), EINVAL, "BIND_MW on a UD QP");
	wr = (struct ibv_send_wr) { .opcode = IBV_WR_LOCAL_INV };
	link_errno(ibv_post_send(q.qp, &wr, &bad), EINVAL, "LOCAL_INV on a UD QP");
	wr = (struct ibv_send_wr) { .opcode = IBV_WR_SEND_WITH_INV };
	link_errno(ibv_post_send(q.qp, &wr, &bad), EINVAL, "SEND_WITH_INV on a UD QP");
	if (bad != &wr || one->rkey != key)
		tb_fail("bad_wr is not set, or the key has changed");
	tb_expect_none(q.scq, "all was refused");
	link_close_window(one);
	link_close_window(two);
	tb_qp_destroy(&q);
}

/* Operations that a service lacks cannot be requested at creation either. */
static void extended_ops(void)
{
	static const struct {
		enum ibv_qp_type type;
		uint64_t ops;
		bool taken;
	} asked[] = {
		{ IBV_QPT_RC, IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_SEND_WITH_INV, true },
		{ IBV_QPT_UC, IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV, true },
		{ IBV_QPT_UC, IBV_QP_EX_WITH_SEND_WITH_INV, false },
		{ IBV_QPT_UD, IBV_QP_EX_WITH_BIND_MW, false },
		{ IBV_QPT_UD, IBV_QP_EX_WITH_LOCAL_INV, false },
		{ IBV_QPT_UD, IBV_QP_EX_WITH_SEND_WITH_INV, false },
	};
	struct ibv_cq *cq = link_make_cq(link_owner, NULL);
	struct ibv_qp *qp;
	size_t i;

	if (!cq)
		tb_die("creating a CQ");
	for (i = 0; i < ARRAY_SIZE(asked); i++) {
		struct ibv_qp_init_attr_ex init = {
			.qp_type = asked[i].type,
			.send_cq = cq,
			.recv_cq = cq,
			.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
			.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
			.pd = link_owner->pd,
			.send_ops_flags = asked[i].ops,
		};

		errno = 0;
		qp = ibv_create_qp_ex(link_owner->ctx, &init);
		if (!qp != !asked[i].taken)
			tb_fail("QP type %d, send_ops_flags 0x%llx: %s", asked[i].type,
				(unsigned long long)asked[i].ops, qp ? "made" : strerror(errno));
		if (!qp && !asked[i].taken)
			link_errno(errno, EOPNOTSUPP, "operations that the service lacks");
		if (qp && ibv_destroy_qp(qp))
			tb_die("ibv_destroy_qp");
	}
	if (ibv_destroy_cq(cq))
		tb_die("ibv_destroy_cq");
}

static void uc_connect(struct tb_qp *q, const struct tb_qp *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};

	if (ibv_modify_qp(q->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		tb_die("UC QP to INIT");
	attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = q->side->mtu < peer->side->mtu ? q->side->mtu : peer->side->mtu,
		.dest_qp_num = peer->qp->qp_num,
		.rq_psn = 0xfffffe,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .dgid = peer->side->gid,
								     .sgid_index = q->side->gid_index,
								     .hop_limit = 64 } },
	};
	if (ibv_modify_qp(q->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN))
		tb_die("UC QP to RTR");
	attr = (struct ibv_qp_attr) { .qp_state = IBV_QPS_RTS, .sq_psn = 0xfffffe };
	if (ibv_modify_qp(q->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN))
		tb_die("UC QP to RTS");
}

static void uc_write_imm(struct link *l, uint32_t rkey, uint32_t length, uint32_t imm)
{
	struct ibv_sge sge = { (uintptr_t)l->p.a.buf, length, l->p.a.mr->lkey };
	struct ibv_send_wr wr = { .wr_id = ASK_ID, .sg_list = &sge, .num_sge = 1 };

	wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr.imm_data = imm;
	wr.wr.rdma.remote_addr = link_at(l, 0);
	wr.wr.rdma.rkey = rkey;
	link_fill(l->p.a.buf, length);
	link_posted(&l->p.a, &wr, "WRITE with immediate data");
	link_expect_sent(&l->p.a, ASK_ID, IBV_WC_RDMA_WRITE, IBV_WC_SUCCESS, 0, "WRITE with immediate data");
}

/* A WRITE with an invalid key is silently dropped, and the next one with a valid key arrives. */
static void unreliable(void)
{
	struct end_opts opts = link_usual;
	enum ibv_mw_type type;

	opts.type = IBV_QPT_UC;
	for (type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++) {
		struct ibv_wc want = {
			.wr_id = RECV_ID,
			.opcode = IBV_WC_RECV_RDMA_WITH_IMM,
			.wc_flags = IBV_WC_WITH_IMM,
		};
		struct ibv_send_wr wr = { .opcode = IBV_WR_SEND_WITH_INV }, *bad;
		struct ibv_mw *mw = link_window(type);
		struct link l;
		uint32_t key;

		link_open_with(&l, &opts);
		uc_connect(&l.p.a, &l.p.b);
		uc_connect(&l.p.b, &l.p.a);
		link_errno(ibv_post_send(l.p.b.qp, &wr, &bad), EINVAL, "SEND with Invalidate on a UC QP");

		bind_at(&l, mw, 0, LINK_LONG, IBV_ACCESS_REMOTE_WRITE, "bind");
		key = mw->rkey;
		link_post_recv(&l.p.b, LINK_RECEIVES, 8);
		uc_write_imm(&l, key, LINK_LONG, 1);
		want.byte_len = LINK_LONG;
		want.imm_data = 1;
		link_expect_wc(&l.p.b, l.p.b.rcq, &want, "a window");
		memcpy(l.image, l.p.a.buf, LINK_LONG);
		link_check(&l, "a window");

		if (type == IBV_MW_TYPE_1)
			link_bind_region(&l, mw, NULL, 0, 0, 0, "unbind");
		else
			local_inv(&l, key, IBV_WC_SUCCESS, "LOCAL_INV");
		link_post_recv(&l.p.b, LINK_RECEIVES, 8);
		uc_write_imm(&l, key, LINK_LONG, 2);
		uc_write_imm(&l, l.p.b.mr->rkey, 8, 3);
		want.byte_len = 8;
		want.imm_data = 3;
		link_expect_wc(&l.p.b, l.p.b.rcq, &want, "the WRITE behind the lost one");
		memcpy(l.image, l.p.a.buf, 8);
		link_check(&l, "a window that is dead");
		link_close_window(mw);
		link_close(&l);
	}
}

/* ------------------------------------------------------------------ */

static const struct tb_case cases[] = {
	{ "what the device says", capabilities },
	{ "200 windows at once", life },
	{ "types that are not there", wrong_types },
	{ "type 1: bound and bound again", type1 },
	{ "type 1: unbound by length 0", type1_unbound },
	{ "type 1: 600 binds", many_binds },
	{ "type 2: bound and invalidated", type2 },
	{ "type 2: keys of the program's choice", type2_tags },
	{ "type 2: invalidated by the peer", type2_by_peer },
	{ "64 windows on one region", many_windows },
	{ "rights of type 1", rights_1 },
	{ "rights of type 2", rights_2 },
	{ "windows on a private region", private_region },
	{ "bounds", bounds },
	{ "zero-based windows of type 1", zero_based_1 },
	{ "zero-based windows of type 2", zero_based_2 },
	{ "windows and another QP", another_qp },
	{ "a window's key is no lkey", not_local },
	{ "regions without the rights", region_rights },
	{ "beyond the region", beyond_the_region },
	{ "wrong regions", wrong_regions },
	{ "other PDs", other_pds },
	{ "invalidations of wrong keys", wrong_keys },
	{ "a region is held by its windows", region_held },
	{ "bound windows closed", bound_window_closed },
	{ "QP of a window gone", qp_gone },
	{ "process ended with windows bound", ended },
	{ "bind and send", bind_and_send },
	{ "fence", fenced },
	{ "order of a list", in_order },
	{ "without completions", unsignalled },
	{ "solicited events", solicited },
	{ "posts refused", posts_refused },
	{ "binds dropped", dropped },
	{ "QP not ready", not_ready },
	{ "full queue", full_queue },
	{ "flushed", flushed },
	{ "datagrams refused", datagrams_refused },
	{ "extended operations", extended_ops },
	{ "unreliable connections", unreliable },
};

int main(int argc, char **argv)
{
	return link_run(cases, ARRAY_SIZE(cases), argc, argv);
}
