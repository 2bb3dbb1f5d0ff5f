// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory regions that are changed or created in other ways: reregistered, zero-based,
 * of 0 bytes, imported, of a dma-buf, of many pages.  Every byte is compared.
 *
 * mr plain|extended|dma-buf|many DEVICE GID-INDEX [DEVICE GID-INDEX NETNS] [-- CASE...]
 *
 * `dma-buf` has the cases that need a dma-buf heap, which not every kernel has. `many`
 * has the cases that take too long under a debug kernel.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/dma-heap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "link.h"

/* ------------------------------------------------------------------ */
/* Regions that are changed                                             */

/* A page-aligned buffer, the second memory of a region. */
static uint8_t *spare_buffer(void)
{
	uint8_t *buf;

	if (posix_memalign((void **)&buf, 4096, TB_BUF_BYTES))
		tb_die("posix_memalign");
	memset(buf, 0x5a, TB_BUF_BYTES);
	return buf;
}

/* The peer's WRITE with the key of a region changes the buffer and no other memory. */
static void lands_in(struct link *l, struct ibv_mr *mr, uint64_t addr, uint8_t *where, const char *what)
{
	link_fill(l->p.a.buf, LINK_LONG);
	if (!link_ask(l, IBV_WR_RDMA_WRITE, mr->rkey, addr, LINK_LONG, IBV_WC_SUCCESS, what))
		return;
	if (memcmp(where, l->p.a.buf, LINK_LONG))
		tb_fail("%s: the data are not where they should be", what);
	if (where >= l->p.b.buf && where < l->p.b.buf + TB_BUF_BYTES)
		memcpy(l->image + (where - l->p.b.buf), l->p.a.buf, LINK_LONG);
	link_check(l, what);
}

/* b can send from that memory with the lkey of the region. */
static void sends_from(struct link *l, struct ibv_mr *mr, uint64_t addr, const uint8_t *data, const char *what)
{
	struct ibv_sge sge = { addr, LINK_LONG, mr->lkey };
	struct ibv_send_wr wr = { .wr_id = SEND_ID, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };
	struct ibv_wc want = { .wr_id = RECV_ID, .opcode = IBV_WC_RECV, .byte_len = LINK_LONG };

	memset(l->p.a.buf + LINK_RECEIVES, 0, LINK_LONG);
	link_post_recv(&l->p.a, LINK_RECEIVES, LINK_LONG);
	if (!link_posted(&l->p.b, &wr, what))
		return;
	link_expect_sent(&l->p.b, SEND_ID, IBV_WC_SEND, IBV_WC_SUCCESS, 0, what);
	link_expect_wc(&l->p.a, l->p.a.rcq, &want, what);
	if (memcmp(l->p.a.buf + LINK_RECEIVES, data, LINK_LONG))
		tb_fail("%s: wrong data were sent", what);
}

static void rereg(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access,
		  const char *what)
{
	int code;

	errno = 0;
	code = ibv_rereg_mr(mr, flags, pd, addr, length, access);
	if (code)
		tb_fail("%s: ibv_rereg_mr gave %d, %s", what, code, strerror(errno));
}

/*
 * Replaces the region of the link by one with this access, which is closed with the link.  With two at once, the DMA
 * debugging of the kernel would report every page that is mapped twice.
 */
static struct ibv_mr *region_at(struct link *l, struct ibv_pd *pd, size_t at, size_t length, int access)
{
	if (ibv_dereg_mr(l->p.b.mr))
		tb_die("ibv_dereg_mr");
	l->p.b.mr = ibv_reg_mr(pd, l->p.b.buf + at, length, access);
	if (!l->p.b.mr)
		tb_die("ibv_reg_mr of %zu bytes: %s", length, strerror(errno));
	return l->p.b.mr;
}

static struct ibv_mr *region_in(struct link *l, struct ibv_pd *pd, int access)
{
	return region_at(l, pd, 0, LINK_WINDOWS, access);
}

static struct ibv_mr *region(struct link *l, int access)
{
	return region_in(l, link_owner->pd, access);
}

static void rereg_access(void)
{
	struct ibv_mr *mr;
	struct link l;

	link_open(&l);
	mr = region(&l, TB_ACCESS_ALL);
	link_opens(&l, mr->rkey, link_at(&l, 0), 0, LINK_WINDOWS, "the region");
	rereg(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ,
	      "READ alone");
	link_refused(&l, IBV_WR_RDMA_WRITE, mr->rkey, link_at(&l, 0), 8, "WRITE, no more allowed");
	link_refused(&l, IBV_WR_ATOMIC_FETCH_AND_ADD, mr->rkey, link_at(&l, 0), 8, "FETCH ADD, no more allowed");
	link_read(&l, mr->rkey, link_at(&l, 0), 0, LINK_WINDOWS, "READ, still allowed");
	rereg(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0, "local reading alone");
	link_dead(&l, mr->rkey, link_at(&l, 0), "a region that is only read, and locally");
	sends_from(&l, mr, link_at(&l, 0), l.image, "local reading");
	rereg(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, TB_ACCESS_ALL, "all access again");
	link_opens(&l, mr->rkey, link_at(&l, 0), 0, LINK_WINDOWS, "the region as it was");
	link_close(&l);
}

static void rereg_pd(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(link_owner->ctx);
	struct ibv_mr *mr;
	struct link l;

	if (!pd)
		tb_die("ibv_alloc_pd");
	link_open(&l);
	mr = region(&l, TB_ACCESS_ALL);
	rereg(mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0, "another PD");
	if (mr->pd != pd)
		tb_fail("the region does not say its new PD");
	link_dead(&l, mr->rkey, link_at(&l, 0), "a region of another PD");
	link_errno(ibv_dealloc_pd(pd), EBUSY, "ibv_dealloc_pd of the region's new PD");
	rereg(mr, IBV_REREG_MR_CHANGE_PD, link_owner->pd, NULL, 0, 0, "the old PD");
	link_opens(&l, mr->rkey, link_at(&l, 0), 0, LINK_WINDOWS, "the region back in its PD");
	link_errno(ibv_dealloc_pd(pd), 0, "ibv_dealloc_pd of the PD it has left");
	link_close(&l);
}

static void rereg_address(void)
{
	uint8_t *spare = spare_buffer();
	struct ibv_mr *mr;
	struct link l;

	link_open(&l);
	mr = region(&l, TB_ACCESS_ALL);
	link_opens(&l, mr->rkey, link_at(&l, 0), 0, LINK_WINDOWS, "the region");
	rereg(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, spare, TB_BUF_BYTES, 0, "another place, longer");
	if (mr->addr != spare || mr->length != TB_BUF_BYTES)
		tb_fail("the region does not say its new place");
	link_dead(&l, mr->rkey, link_at(&l, 0), "the old addresses");
	lands_in(&l, mr, (uintptr_t)spare + LINK_WINDOWS, spare + LINK_WINDOWS, "the new place, where it is longer");
	sends_from(&l, mr, (uintptr_t)spare + LINK_WINDOWS, spare + LINK_WINDOWS, "from the new place");
	rereg(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, spare + 123, LINK_LONG, 0, "shorter, between pages");
	lands_in(&l, mr, (uintptr_t)spare + 123, spare + 123, "the shorter place");
	link_refused(&l, IBV_WR_RDMA_WRITE, mr->rkey, (uintptr_t)spare + 122, 1, "the byte before it");
	link_refused(&l, IBV_WR_RDMA_WRITE, mr->rkey, (uintptr_t)spare + 123 + LINK_LONG, 1, "the byte behind it");
	rereg(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, l.p.b.buf, LINK_WINDOWS, 0, "the old place");
	link_opens(&l, mr->rkey, link_at(&l, 0), 0, LINK_WINDOWS, "the region as it was");
	link_close(&l);
	free(spare);
}

static void rereg_all(void)
{
	const int all = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS;
	struct ibv_pd *pd = ibv_alloc_pd(link_owner->ctx);
	uint8_t *spare = spare_buffer();
	struct ibv_mr *mr;
	struct link l;
	int i;

	if (!pd)
		tb_die("ibv_alloc_pd");
	link_open(&l);
	mr = region(&l, TB_ACCESS_ALL);
	for (i = 0; i < 20 && !tb_failed(); i++) {
		rereg(mr, all, pd, spare, LINK_LONG, 0, "PD, place and access at once");
		link_dead(&l, mr->rkey, (uintptr_t)spare, "a region of another PD");
		rereg(mr, IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS, link_owner->pd, NULL, 0,
		      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, "PD and access");
		lands_in(&l, mr, (uintptr_t)spare, spare, "WRITE to the new place");
		link_refused(&l, IBV_WR_RDMA_READ, mr->rkey, (uintptr_t)spare, 8, "READ from there");
		rereg(mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS, NULL, l.p.b.buf, LINK_WINDOWS,
		      TB_ACCESS_ALL, "place and access");
		link_opens(&l, mr->rkey, link_at(&l, 0), 0, LINK_WINDOWS, "the region as it was");
	}
	link_errno(ibv_dealloc_pd(pd), 0, "ibv_dealloc_pd");
	link_close(&l);
	free(spare);
}

static void expect_rereg(struct ibv_mr *mr, int flags, void *addr, size_t length, int access, int code, int error,
			 const char *what)
{
	int got;

	errno = 0;
	got = ibv_rereg_mr(mr, flags, NULL, addr, length, access);
	if (got != code || errno != error)
		tb_fail("%s: ibv_rereg_mr gave %d, \"%s\"; expected %d, \"%s\"", what, got, strerror(errno), code,
			strerror(error));
}

static void rereg_refused(void)
{
	struct ibv_mw *mw = link_window(IBV_MW_TYPE_2);
	struct ibv_mr *mr;
	struct link l;

	link_open(&l);
	mr = region(&l, LINK_BINDABLE);
	expect_rereg(mr, 1 << 5, NULL, 0, 0, IBV_REREG_MR_ERR_INPUT, EINVAL, "a flag that is not there");
	expect_rereg(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, 4096, 0, IBV_REREG_MR_ERR_INPUT, EINVAL, "no address");
	expect_rereg(mr, IBV_REREG_MR_CHANGE_TRANSLATION, l.p.b.buf, 0, 0, IBV_REREG_MR_ERR_INPUT, EINVAL, "no length");
	expect_rereg(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, 0, IBV_ACCESS_REMOTE_WRITE, IBV_REREG_MR_ERR_CMD, EINVAL,
		     "remote write without local write");
	link_opens(&l, mr->rkey, link_at(&l, 0), 0, LINK_WINDOWS, "the region after that");
	link_bind_region(&l, mw, mr, link_at(&l, 0), 64, LINK_REMOTE, "bind");
	expect_rereg(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, 0, TB_ACCESS_ALL, IBV_REREG_MR_ERR_CMD, EBUSY,
		     "a region with a window");
	link_opens(&l, mr->rkey, link_at(&l, 0), 0, LINK_WINDOWS, "the region with a window");
	link_opens(&l, mw->rkey, link_at(&l, 0), 0, 64, "its window");
	link_close_window(mw);
	link_close(&l);
}

/* ------------------------------------------------------------------ */
/* Other kinds of regions                                               */

static void zero_based_region(void)
{
	struct ibv_mw *one = link_window(IBV_MW_TYPE_1), *two = link_window(IBV_MW_TYPE_2);
	uint8_t *spare = spare_buffer();
	struct ibv_mr *mr;
	struct link l;

	link_open(&l);
	mr = region(&l, LINK_BINDABLE | IBV_ACCESS_ZERO_BASED);
	link_check_bounds(&l, mr->rkey, 0, 0, LINK_WINDOWS);
	link_opens(&l, mr->rkey, 0, 0, LINK_WINDOWS, "the region by offsets");
	link_refused(&l, IBV_WR_RDMA_WRITE, mr->rkey, link_at(&l, 0), 8, "the region by address");
	sends_from(&l, mr, 4097, l.image + 4097, "local use by offset");
	link_bind_region(&l, one, mr, 1000, 5000, LINK_REMOTE, "bind by offset");
	link_check_bounds(&l, one->rkey, 1000, 1000, 5000);
	link_bind_region(&l, two, mr, 1000, 5000, LINK_REMOTE | IBV_ACCESS_ZERO_BASED, "bind, zero-based both");
	link_check_bounds(&l, two->rkey, 0, 1000, 5000);
	link_close_window(one);
	link_close_window(two);
	rereg(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, spare, TB_BUF_BYTES, 0, "another place");
	lands_in(&l, mr, 0, spare, "the region in another place, by offsets");
	link_close(&l);
	free(spare);
}

/* From any byte of a page on, also after changes of the region. */
static void zero_based_anywhere(void)
{
	static const size_t places[] = { 1, 123, 4095, 4096, 5000 };
	struct ibv_mw *one = link_window(IBV_MW_TYPE_1), *two = link_window(IBV_MW_TYPE_2);
	uint8_t *spare = spare_buffer();
	struct ibv_mr *mr;
	struct link l;
	size_t i;

	link_open(&l);
	for (i = 0; i < ARRAY_SIZE(places) && !tb_failed(); i++) {
		size_t at = places[i], length = LINK_WINDOWS - at;

		mr = region_at(&l, link_owner->pd, at, length, LINK_BINDABLE | IBV_ACCESS_ZERO_BASED);
		link_check_bounds(&l, mr->rkey, 0, at, length);
		link_refused(&l, IBV_WR_RDMA_WRITE, mr->rkey, link_at(&l, at), 8, "the region by address");
		/* A multiple of 8 in the region is not necessarily a multiple of 8 in memory. */
		if (at % 8)
			link_refused(&l, IBV_WR_ATOMIC_FETCH_AND_ADD, mr->rkey, 8, 8, "an atomic");
		else
			link_add(&l, mr->rkey, 8, at + 8, "an atomic");
		sends_from(&l, mr, 4097, l.image + at + 4097, "local use by offset");
		link_bind_region(&l, one, mr, 1000, 5000, LINK_REMOTE, "bind by offset");
		link_check_bounds(&l, one->rkey, 1000, at + 1000, 5000);
		link_bind_region(&l, two, mr, 1001, 5000, LINK_REMOTE | IBV_ACCESS_ZERO_BASED, "bind, zero-based both");
		link_check_bounds(&l, two->rkey, 0, at + 1001, 5000);
		link_close_window(one);
		link_close_window(two);
		one = link_window(IBV_MW_TYPE_1);
		two = link_window(IBV_MW_TYPE_2);
		rereg(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, spare + at + 7, LINK_LONG, 0, "another place");
		lands_in(&l, mr, 0, spare + at + 7, "the region in another place, by offsets");
		rereg(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, TB_ACCESS_ALL, "no more zero-based");
		lands_in(&l, mr, (uintptr_t)spare + at + 7, spare + at + 7, "the region by address");
		rereg(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, TB_ACCESS_ALL | IBV_ACCESS_ZERO_BASED,
		      "zero-based again");
		lands_in(&l, mr, 0, spare + at + 7, "the region by offsets again");
	}
	link_close_window(one);
	link_close_window(two);
	link_close(&l);
	free(spare);
}

/* A message of 0 bytes from b, with an SGE in the region, to an SGE of 0 bytes of a. */
static void send_nothing(struct link *l, struct ibv_mr *mr, const char *what)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, 0, mr->lkey };
	struct ibv_send_wr wr = { .wr_id = SEND_ID, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };
	struct ibv_wc want = { .wr_id = RECV_ID, .opcode = IBV_WC_RECV };

	link_post_recv(&l->p.a, LINK_RECEIVES, 0);
	if (!link_posted(&l->p.b, &wr, what))
		return;
	link_expect_sent(&l->p.b, SEND_ID, IBV_WC_SEND, IBV_WC_SUCCESS, 0, what);
	link_expect_wc(&l->p.a, l->p.a.rcq, &want, what);
}

/* A region of 0 bytes can be used only for messages of 0 bytes. */
static void no_bytes(void)
{
	static const int accesses[] = { LINK_BINDABLE, LINK_BINDABLE | IBV_ACCESS_ZERO_BASED, 0 };
	static const size_t places[] = { 0, 123 };
	struct ibv_mw *one = link_window(IBV_MW_TYPE_1);
	struct ibv_mr *mr;
	struct link l;
	size_t i, k;

	link_open(&l);
	for (i = 0; i < ARRAY_SIZE(accesses) && !tb_failed(); i++) {
		for (k = 0; k < ARRAY_SIZE(places); k++) {
			uint64_t addr = accesses[i] & IBV_ACCESS_ZERO_BASED ? 0 : link_at(&l, places[k]);

			mr = region_at(&l, link_owner->pd, places[k], 0, accesses[i]);
			if (mr->length)
				tb_fail("the region has %zu bytes", mr->length);
			send_nothing(&l, mr, "a message of no bytes");
			if (accesses[i]) {
				link_ask(&l, IBV_WR_RDMA_WRITE, mr->rkey, addr, 0, IBV_WC_SUCCESS, "WRITE of no bytes");
				link_ask(&l, IBV_WR_RDMA_READ, mr->rkey, addr, 0, IBV_WC_SUCCESS, "READ of no bytes");
			}
			link_refused(&l, IBV_WR_RDMA_WRITE, mr->rkey, addr, 1, "WRITE of a byte");
			link_refused(&l, IBV_WR_RDMA_READ, mr->rkey, addr, 1, "READ of a byte");
			link_refused(&l, IBV_WR_ATOMIC_FETCH_AND_ADD, mr->rkey, addr & ~7ULL, 8, "FETCH ADD");
			if (accesses[i])
				link_bind_region(&l, one, mr, addr, 0, 0, "a window on it: none");
		}
	}
	/* It may be reregistered with some bytes, and with other bytes again. */
	mr = region_at(&l, link_owner->pd, 0, 0, TB_ACCESS_ALL);
	rereg(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, TB_ACCESS_ALL | IBV_ACCESS_ZERO_BASED, "other rights");
	link_refused(&l, IBV_WR_RDMA_WRITE, mr->rkey, 0, 1, "still no byte");
	rereg(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, l.p.b.buf, LINK_WINDOWS, 0, "some bytes");
	link_opens(&l, mr->rkey, 0, 0, LINK_WINDOWS, "the region with bytes");
	link_close_window(one);
	link_close(&l);
}

/* The device may reorder writes; the data are the same. */
static void relaxed(void)
{
	struct ibv_mr *mr;
	struct link l;

	link_open(&l);
	mr = region(&l, TB_ACCESS_ALL | IBV_ACCESS_RELAXED_ORDERING);
	link_opens(&l, mr->rkey, link_at(&l, 0), 0, LINK_WINDOWS, "a region with relaxed ordering");
	sends_from(&l, mr, link_at(&l, 0), l.image, "local use");
	link_close(&l);
}

static void imported(void)
{
	struct ibv_mr *mr, *again;
	struct ibv_pd *pd;
	struct link l;

	link_open(&l);
	pd = ibv_import_pd(link_owner->ctx, link_owner->pd->handle);
	if (!pd)
		tb_die("ibv_import_pd");
	mr = region_in(&l, pd, TB_ACCESS_ALL);
	link_opens(&l, mr->rkey, link_at(&l, 0), 0, LINK_WINDOWS, "a region of an imported PD");
	again = ibv_import_mr(pd, mr->handle);
	if (!again)
		tb_die("ibv_import_mr");
	if (again->lkey != mr->lkey || again->rkey != mr->rkey || again->length != mr->length || again->addr)
		tb_fail("the imported region is another");
	link_opens(&l, again->rkey, link_at(&l, 0), 0, LINK_WINDOWS, "an imported region");
	ibv_unimport_mr(again);
	link_opens(&l, mr->rkey, link_at(&l, 0), 0, LINK_WINDOWS, "the region after that");
	errno = 0;
	again = ibv_import_mr(pd, mr->handle + 1000);
	if (again)
		tb_fail("a region that is not there was imported");
	else
		link_errno(errno, ENOENT, "ibv_import_mr of what is not there");
	mr = region(&l, TB_ACCESS_ALL);
	ibv_unimport_pd(pd);
	link_opens(&l, mr->rkey, link_at(&l, 0), 0, LINK_WINDOWS, "the PD after that");
	link_close(&l);
}

static void no_dma_buf(int fd, uint64_t offset, size_t length, int error, const char *what)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_dmabuf_mr(link_owner->pd, offset, length, offset, fd, TB_ACCESS_ALL);
	if (mr) {
		tb_fail("%s: it was registered", what);
		ibv_dereg_mr(mr);
	} else {
		link_errno(errno, error, what);
	}
}

static void dma_buf(void)
{
	struct dma_heap_allocation_data alloc = { .len = TB_BUF_BYTES, .fd_flags = O_RDWR | O_CLOEXEC };
	static const uint64_t iova = 0x7000000000;
	int heap = open("/dev/dma_heap/system", O_RDONLY | O_CLOEXEC);
	struct ibv_mr *mr;
	struct link l;
	uint8_t *buf;
	size_t at;

	if (heap < 0 || ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &alloc))
		tb_die("/dev/dma_heap/system");
	buf = mmap(NULL, TB_BUF_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, alloc.fd, 0);
	if (buf == MAP_FAILED)
		tb_die("mmap of a dma-buf");
	link_open(&l);
	for (at = 0; at <= 8192; at += 4096) {
		mr = ibv_reg_dmabuf_mr(link_owner->pd, at, TB_BUF_BYTES - at, iova + at, alloc.fd, TB_ACCESS_ALL);
		if (!mr) {
			tb_fail("ibv_reg_dmabuf_mr: %s", strerror(errno));
			break;
		}
		lands_in(&l, mr, iova + at + 100, buf + at + 100, "a dma-buf");
		sends_from(&l, mr, iova + at + 100, buf + at + 100, "from a dma-buf");
		link_refused(&l, IBV_WR_RDMA_WRITE, mr->rkey, iova + TB_BUF_BYTES, 1, "the byte behind it");
		link_errno(ibv_dereg_mr(mr), 0, "ibv_dereg_mr");
	}
	no_dma_buf(alloc.fd, 0, 0, EINVAL, "nothing of the dma-buf");
	no_dma_buf(alloc.fd, 0, TB_BUF_BYTES + 4096, EINVAL, "more than the dma-buf");
	no_dma_buf(alloc.fd, TB_BUF_BYTES, 4096, EINVAL, "behind the dma-buf");
	no_dma_buf(heap, 0, 4096, EINVAL, "a file that is no dma-buf");
	no_dma_buf(-1, 0, 4096, EBADF, "no file");
	link_close(&l);
	munmap(buf, TB_BUF_BYTES);
	close(alloc.fd);
	close(heap);
}

/* ------------------------------------------------------------------ */
/* Many pages                                                           */

#define MANY_BYTES	(4UL << 30)	/* of addresses: a million pages */
#define FEWER		16		/* times fewer pages, to compare with */
#define PIECE_BYTES	(1UL << 20)	/* of memory, mapped at all of the addresses */
#define REGISTER_TRIES	3
/* Tolerance for a busy host. If the time grew with the square of the pages, the factor would be FEWER. */
#define SLACK		4

static void map_piece(uint8_t *at, int flags, int fd)
{
	if (mmap(at, PIECE_BYTES, PROT_READ | PROT_WRITE, MAP_FIXED | flags, fd, 0) == MAP_FAILED)
		tb_die("mmap");
}

/* Addresses at which one piece of memory is mapped repeatedly, except at their middle and end. */
static uint8_t *many_pages(void)
{
	int fd = memfd_create("piece", MFD_CLOEXEC);
	uint8_t *at = mmap(NULL, MANY_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t i;

	if (at == MAP_FAILED || fd < 0 || ftruncate(fd, PIECE_BYTES))
		tb_die("4 GB of addresses");
	for (i = 0; i < MANY_BYTES; i += PIECE_BYTES)
		map_piece(at + i, MAP_SHARED, fd);
	map_piece(at + MANY_BYTES / 2, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	map_piece(at + MANY_BYTES - PIECE_BYTES, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	close(fd);
	return at;
}

/* Time to register and deregister, in ms: the best of some tries, because the first one faults in the pages. */
static int64_t registering_ms(uint8_t *at, size_t bytes)
{
	int64_t start, took, best = INT64_MAX;
	struct ibv_mr *mr;
	int i;

	for (i = 0; i < REGISTER_TRIES; i++) {
		start = tb_now_ms();
		mr = ibv_reg_mr(link_owner->pd, at, bytes, TB_ACCESS_ALL);
		if (!mr || ibv_dereg_mr(mr))
			tb_die("ibv_reg_mr of %zu bytes", bytes);
		took = tb_now_ms() - start;
		best = took < best ? took : best;
	}
	return best;
}

/* Pages are registered in a time that is proportional to their number, and each is found. */
static void million_pages(void)
{
	static const size_t places[] = { 0, MANY_BYTES / 2, MANY_BYTES - LINK_LONG };
	uint8_t *at = many_pages();
	int64_t many, few;
	struct ibv_mr *mr;
	struct link l;
	size_t i;

	few = registering_ms(at, MANY_BYTES / FEWER);
	many = registering_ms(at, MANY_BYTES);
	printf("# %lu pages: %lld ms, %lu pages: %lld ms\n", MANY_BYTES / FEWER / 4096, (long long)few,
	       MANY_BYTES / 4096, (long long)many);
	if (many > SLACK * FEWER * (few + 1))
		tb_fail("a million pages take %lld ms, one in %d of them %lld ms", (long long)many, FEWER,
			(long long)few);
	link_open(&l);
	mr = ibv_reg_mr(link_owner->pd, at, MANY_BYTES, TB_ACCESS_ALL);
	if (!mr)
		tb_die("ibv_reg_mr of a million pages");
	for (i = 0; i < ARRAY_SIZE(places) && !tb_failed(); i++) {
		lands_in(&l, mr, (uintptr_t)at + places[i], at + places[i], "one of a million pages");
		sends_from(&l, mr, (uintptr_t)at + places[i], at + places[i], "from one of a million pages");
	}
	link_refused(&l, IBV_WR_RDMA_WRITE, mr->rkey, (uintptr_t)at + MANY_BYTES, 1, "the byte behind them");
	link_errno(ibv_dereg_mr(mr), 0, "ibv_dereg_mr");
	link_close(&l);
	munmap(at, MANY_BYTES);
}

/* ------------------------------------------------------------------ */

static const struct tb_case cases[] = {
	{ "re-registered: access", rereg_access },
	{ "re-registered: PD", rereg_pd },
	{ "re-registered: address", rereg_address },
	{ "re-registered: all at once", rereg_all },
	{ "re-registered: refused", rereg_refused },
	{ "zero-based region", zero_based_region },
	{ "zero-based from any byte on", zero_based_anywhere },
	{ "no bytes", no_bytes },
	{ "relaxed ordering", relaxed },
	{ "imported PD and region", imported },
};

static const struct tb_case dma_buf_cases[] = {
	{ "dma-buf", dma_buf },
};

static const struct tb_case many_cases[] = {
	{ "a million pages", million_pages },
};

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "dma-buf"))
		return link_run(dma_buf_cases, ARRAY_SIZE(dma_buf_cases), argc, argv);
	if (argc > 1 && !strcmp(argv[1], "many"))
		return link_run(many_cases, ARRAY_SIZE(many_cases), argc, argv);
	return link_run(cases, ARRAY_SIZE(cases), argc, argv);
}
