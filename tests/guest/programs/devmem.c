// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Device memory, and imported contexts, PDs and regions:
 * PROGRAM plain|extended DEVICE GID-INDEX [DEVICE GID-INDEX NETNS] [-- CASE...]
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "link.h"

#define PAGE		4096
#define BYTES		(3 * PAGE)
#define ACCESS		(TB_ACCESS_ALL | IBV_ACCESS_ZERO_BASED)

static size_t device_bytes(void)
{
	struct ibv_device_attr_ex attr;

	if (ibv_query_device_ex(link_owner->ctx, NULL, &attr))
		tb_die("ibv_query_device_ex");
	return attr.max_dm_size;
}

static struct ibv_dm *try_alloc(struct ibv_context *ctx, size_t bytes, uint32_t log_align)
{
	struct ibv_alloc_dm_attr attr = { .length = bytes, .log_align_req = log_align };

	errno = 0;
	return ibv_alloc_dm(ctx, &attr);
}

static struct ibv_dm *alloc(size_t bytes)
{
	struct ibv_dm *dm = try_alloc(link_owner->ctx, bytes, 0);

	if (!dm)
		tb_die("ibv_alloc_dm of %zu bytes: %s", bytes, strerror(errno));
	return dm;
}

static void release(struct ibv_dm *dm)
{
	int err = ibv_free_dm(dm);

	if (err)
		tb_fail("ibv_free_dm: %s", strerror(err));
}

static struct ibv_mr *reg(struct ibv_dm *dm, uint64_t offset, size_t length, unsigned int access)
{
	errno = 0;
	return ibv_reg_dm_mr(link_owner->pd, dm, offset, length, access);
}

static struct ibv_mr *must_reg(struct ibv_dm *dm, uint64_t offset, size_t length)
{
	struct ibv_mr *mr = reg(dm, offset, length, ACCESS);

	if (!mr)
		tb_die("ibv_reg_dm_mr: %s", strerror(errno));
	return mr;
}

/* The CPU reads the content of the image from the memory. */
static void check(struct ibv_dm *dm, const uint8_t *image, size_t bytes, const char *what)
{
	uint8_t *seen = malloc(bytes);
	size_t i;

	if (ibv_memcpy_from_dm(seen, dm, 0, bytes))
		tb_fail("%s: it cannot be read", what);
	for (i = 0; i < bytes && seen[i] == image[i]; i++)
		;
	if (i < bytes)
		tb_fail("%s: byte %zu is 0x%02x, expected 0x%02x", what, i, seen[i], image[i]);
	free(seen);
}

/* ------------------------------------------------------------------ */
/* Allocation                                                           */

static void sizes(void)
{
	size_t all = device_bytes();
	static const uint8_t zeros[64];
	struct ibv_dm *dm;

	if (try_alloc(link_owner->ctx, 0, 0) || errno != EINVAL)
		tb_fail("no bytes: %s", strerror(errno));
	if (try_alloc(link_owner->ctx, all + 1, 0) || errno != ENOMEM)
		tb_fail("a byte more than there is: %s", strerror(errno));
	if (try_alloc(link_owner->ctx, (size_t)1 << 40, 0) || errno != ENOMEM)
		tb_fail("a terabyte: %s", strerror(errno));
	if (try_alloc(link_owner->ctx, 64, 31) || errno != EINVAL)
		tb_fail("aligned to 2 GB: %s", strerror(errno));
	dm = alloc(all);
	if (try_alloc(link_owner->ctx, 1, 0) || errno != ENOMEM)
		tb_fail("a byte when all is taken: %s", strerror(errno));
	release(dm);
	dm = alloc(64);
	check(dm, zeros, sizeof(zeros), "after all was taken and given back");
	release(dm);
}

/* The next owner does not see data of the previous one. */
static void zeroed(void)
{
	size_t all = device_bytes();
	uint8_t *image = malloc(all);
	struct ibv_dm *dm = alloc(all);

	memset(image, 0xa5, all);
	if (ibv_memcpy_to_dm(dm, 0, image, all))
		tb_fail("all of it cannot be written");
	check(dm, image, all, "as it was written");
	release(dm);
	dm = alloc(all);
	memset(image, 0, all);
	check(dm, image, all, "allocated again");
	release(dm);
	free(image);
}

static void alignment(void)
{
	struct ibv_dm *small = alloc(4), *dm;
	uint32_t log;

	/* The offset is not visible; if memory were allocated twice, the data would differ. */
	for (log = 0; log <= 19; log++) {
		dm = try_alloc(link_owner->ctx, 16, log);
		if (!dm)
			tb_fail("aligned to 2^%u: %s", log, strerror(errno));
		else
			release(dm);
	}
	release(small);
}

static void copies(void)
{
	struct ibv_dm *dm = alloc(BYTES);
	uint8_t image[BYTES] = { 0 }, odd[101];
	static const struct {
		uint64_t offset;
		size_t length;
	} bad[] = {
		{ 1, 4 }, { 2, 4 }, { 0, 3 }, { 4, 1 }, { BYTES, 4 }, { BYTES - 4, 8 }, { 0, BYTES + 4 },
		{ UINT64_MAX - 3, 4 }, { 4, SIZE_MAX - 3 },
	};
	size_t i;

	link_fill(odd, sizeof(odd));
	if (ibv_memcpy_to_dm(dm, 4092, odd + 1, 100))
		tb_fail("100 bytes over the end of a page");
	memcpy(image + 4092, odd + 1, 100);
	if (ibv_memcpy_to_dm(dm, BYTES - 4, odd, 4))
		tb_fail("the last word");
	memcpy(image + BYTES - 4, odd, 4);
	if (ibv_memcpy_to_dm(dm, BYTES, odd, 0) || ibv_memcpy_from_dm(odd, dm, BYTES, 0))
		tb_fail("nothing at the end");
	check(dm, image, BYTES, "after copies");
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		if (ibv_memcpy_to_dm(dm, bad[i].offset, odd, bad[i].length) != EINVAL ||
		    ibv_memcpy_from_dm(odd, dm, bad[i].offset, bad[i].length) != EINVAL)
			tb_fail("%zu bytes at %llu are not refused", bad[i].length, (unsigned long long)bad[i].offset);
	}
	check(dm, image, BYTES, "after refused copies");
	release(dm);
}

/* ------------------------------------------------------------------ */
/* Regions                                                              */

static void registrations(void)
{
	struct ibv_dm *dm = alloc(BYTES);
	static const struct {
		uint64_t offset;
		size_t length;
		unsigned int access;
		int error;
	} bad[] = {
		{ 0, BYTES + 4, ACCESS, EINVAL }, { BYTES, 4, ACCESS, EINVAL }, { 4, BYTES, ACCESS, EINVAL },
		{ 2, 4, ACCESS, EINVAL }, { 0, 2, ACCESS, EINVAL }, { UINT64_MAX - 3, 8, ACCESS, EINVAL },
		{ 0, 8, TB_ACCESS_ALL, EINVAL },
		{ 0, 8, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_WRITE, EINVAL },
	};
	struct ibv_mr *mr;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		mr = reg(dm, bad[i].offset, bad[i].length, bad[i].access);
		if (mr || errno != bad[i].error)
			tb_fail("%zu bytes at %llu with rights 0x%x: %s", bad[i].length,
				(unsigned long long)bad[i].offset, bad[i].access, strerror(errno));
	}
	mr = must_reg(dm, 0, BYTES);
	link_errno(ibv_free_dm(dm), EBUSY, "freeing what is registered");
	link_errno(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE) ? EINVAL : 0,
		   EINVAL, "registering it again");
	ibv_dereg_mr(mr);
	release(dm);
}

/* A request of the link that transfers `length` bytes between a's buffer and the region. */
static void move(struct link *l, enum ibv_wr_opcode opcode, struct ibv_mr *mr, uint64_t addr, uint32_t length)
{
	link_ask(l, opcode, mr->rkey, addr, length, IBV_WC_SUCCESS, "a region in device memory");
}

static void traffic(void)
{
	struct ibv_dm *dm = alloc(BYTES);
	/* From an offset that is not page-aligned. */
	struct ibv_mr *mr = must_reg(dm, 200, BYTES - 300);
	uint8_t image[BYTES] = { 0 };
	uint64_t before, after;
	struct link l;

	link_open(&l);
	link_fill(l.p.a.buf, 9000);
	move(&l, IBV_WR_RDMA_WRITE, mr, 13, 9000);
	memcpy(image + 213, l.p.a.buf, 9000);
	check(dm, image, BYTES, "written by the peer");

	memset(l.p.a.buf, 0xee, TB_BUF_BYTES);
	move(&l, IBV_WR_RDMA_READ, mr, 1, 9100);
	if (memcmp(l.p.a.buf, image + 201, 9100) || l.p.a.buf[9100] != 0xee)
		tb_fail("the peer has read something else");

	memcpy(&before, image + 200 + 4000, sizeof(before));
	after = before + 7;
	move(&l, IBV_WR_ATOMIC_FETCH_AND_ADD, mr, 4000, 8);
	if (memcmp(l.p.a.buf, &before, sizeof(before)))
		tb_fail("FETCH ADD gave a wrong answer");
	memcpy(image + 4200, &after, sizeof(after));
	check(dm, image, BYTES, "after FETCH ADD");

	link_refused(&l, IBV_WR_RDMA_WRITE, mr->rkey, BYTES - 300, 1, "the byte behind");
	link_refused(&l, IBV_WR_RDMA_READ, mr->rkey, BYTES - 304, 8, "over its end");
	link_ask(&l, IBV_WR_ATOMIC_FETCH_AND_ADD, mr->rkey, 4004, 8, IBV_WC_REM_INV_REQ_ERR,
		 "an address that is no multiple of 8");
	link_revive(&l);
	link_refused(&l, IBV_WR_RDMA_WRITE, mr->rkey, UINT64_MAX, 1, "the byte before");
	check(dm, image, BYTES, "after refusals");
	ibv_dereg_mr(mr);
	link_refused(&l, IBV_WR_RDMA_WRITE, mr->rkey, 0, 8, "a region that is gone");
	check(dm, image, BYTES, "after its region is gone");
	link_close(&l);
	release(dm);
}

/* Sends from and receives to device memory, without a copy in system memory. */
static void local_use(void)
{
	struct ibv_dm *dm = alloc(BYTES);
	struct ibv_mr *mr = must_reg(dm, 0, BYTES);
	uint8_t image[BYTES];
	struct ibv_sge sge = { 0, 4096, mr->lkey };
	struct ibv_recv_wr recv = { .wr_id = RECV_ID, .sg_list = &sge, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .wr_id = SEND_ID, .num_sge = 1, .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_SIGNALED };
	struct ibv_sge from;
	struct link l;

	link_fill(image, BYTES);
	if (ibv_memcpy_to_dm(dm, 0, image, BYTES))
		tb_fail("it cannot be written");
	link_open(&l);
	if (ibv_post_recv(l.p.b.qp, &recv, &bad_recv))
		tb_die("ibv_post_recv");
	from = (struct ibv_sge) { (uintptr_t)l.p.a.buf, 4096, l.p.a.mr->lkey };
	link_fill(l.p.a.buf, 4096);
	send.sg_list = &from;
	link_posted(&l.p.a, &send, "a SEND into device memory");
	link_expect_sent(&l.p.a, SEND_ID, IBV_WC_SEND, IBV_WC_SUCCESS, 4096, "a SEND into device memory");
	tb_expect(l.p.b.rcq, RECV_ID, IBV_WC_SUCCESS, "a receive into device memory");
	memcpy(image, l.p.a.buf, 4096);
	check(dm, image, BYTES, "received");

	/* The owner writes from its device memory to the other end. */
	sge = (struct ibv_sge) { 4096, 8192, mr->lkey };
	send.sg_list = &sge;
	send.opcode = IBV_WR_RDMA_WRITE;
	send.wr.rdma.remote_addr = (uintptr_t)l.p.a.buf;
	send.wr.rdma.rkey = l.p.a.mr->rkey;
	link_posted(&l.p.b, &send, "a WRITE from device memory");
	link_expect_sent(&l.p.b, SEND_ID, IBV_WC_RDMA_WRITE, IBV_WC_SUCCESS, 8192, "a WRITE from device memory");
	if (memcmp(l.p.a.buf, image + 4096, 8192))
		tb_fail("other data than the device memory's were sent");
	link_close(&l);
	ibv_dereg_mr(mr);
	release(dm);
}

static void behind_a_window(void)
{
	struct ibv_dm *dm = alloc(BYTES);
	struct ibv_mr *mr = reg(dm, 0, BYTES, ACCESS | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = link_window(IBV_MW_TYPE_2);
	uint8_t image[BYTES] = { 0 };
	struct link l;

	if (!mr)
		tb_die("ibv_reg_dm_mr for windows: %s", strerror(errno));
	link_open(&l);
	link_bind_region(&l, mw, mr, 4000, 1000, LINK_REMOTE, "a window on device memory");
	link_fill(l.p.a.buf, 1000);
	link_ask(&l, IBV_WR_RDMA_WRITE, mw->rkey, 4000, 1000, IBV_WC_SUCCESS, "through the window");
	memcpy(image + 4000, l.p.a.buf, 1000);
	check(dm, image, BYTES, "written through a window");
	link_refused(&l, IBV_WR_RDMA_WRITE, mw->rkey, 5000, 1, "behind the window");
	check(dm, image, BYTES, "after the window refused");
	link_close_window(mw);
	link_close(&l);
	ibv_dereg_mr(mr);
	release(dm);
}

/* ------------------------------------------------------------------ */
/* Others                                                               */

/* Another context: its handles are not valid here, and neither is a region in its PD. */
static void of_another_context(void)
{
	struct ibv_dm *dm = alloc(BYTES);
	struct tb_side other;
	struct ibv_mr *mr;

	link_open_owner_again(&other);
	mr = ibv_reg_dm_mr(other.pd, dm, 0, 8, ACCESS);
	if (mr)
		tb_fail("another context registers it");
	if (ibv_import_dm(other.ctx, dm->handle))
		tb_fail("another context imports it by its handle");
	ibv_dealloc_pd(other.pd);
	ibv_close_device(other.ctx);
	release(dm);
}

/* A killed process leaves no memory allocated. */
static void killed(void)
{
	size_t all = device_bytes();
	struct ibv_dm *dm;
	int64_t end;
	int ready[2];
	pid_t pid;
	char byte;

	if (pipe(ready))
		tb_die("pipe");
	pid = fork();
	if (!pid) {
		struct tb_side own;

		link_open_owner_again(&own);
		dm = try_alloc(own.ctx, all, 0);
		if (dm && ibv_reg_dm_mr(own.pd, dm, 0, all, ACCESS) && write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	if (read(ready[0], &byte, 1) != 1)
		tb_die("the process that is to be killed did not start");
	if (try_alloc(link_owner->ctx, 4, 0))
		tb_fail("what another has taken is given out");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(ready[0]);
	close(ready[1]);
	for (end = tb_now_ms() + TB_WAIT_MS; !(dm = try_alloc(link_owner->ctx, all, 0)) && tb_now_ms() < end;)
		usleep(1000);
	if (!dm)
		tb_fail("what a killed process had is not given out again: %s", strerror(errno));
	else
		release(dm);
}

/* ------------------------------------------------------------------ */
/* Imported                                                             */

static struct ibv_context *import(struct ibv_context *ctx)
{
	int file = dup(ctx->cmd_fd), home = link_visit_owner();
	struct ibv_context *imported = ibv_import_device(file);

	tb_return_netns(home);
	if (!imported || fcntl(imported->async_fd, F_SETFL, O_NONBLOCK))
		tb_die("ibv_import_device: %s", strerror(errno));
	return imported;
}

/* Each sees the writes of the other; the memory exists until it is freed. */
static void imported_memory(void)
{
	struct ibv_dm *dm = alloc(BYTES), *again;
	struct ibv_context *ctx = import(link_owner->ctx);
	uint8_t image[BYTES];

	again = ibv_import_dm(ctx, dm->handle);
	if (!again)
		tb_die("ibv_import_dm: %s", strerror(errno));
	link_fill(image, BYTES);
	if (ibv_memcpy_to_dm(dm, 0, image, BYTES))
		tb_fail("it cannot be written");
	check(again, image, BYTES, "imported");
	link_fill(image, BYTES);
	if (ibv_memcpy_to_dm(again, 0, image, BYTES))
		tb_fail("the imported cannot be written");
	check(dm, image, BYTES, "written through the import");
	if (ibv_memcpy_to_dm(again, BYTES, image, 4) != EINVAL)
		tb_fail("the import is longer than the memory");
	ibv_unimport_dm(again);
	check(dm, image, BYTES, "after the import is gone");
	errno = 0;
	if (ibv_import_dm(ctx, dm->handle + 1000) || errno != ENOENT)
		tb_fail("an invalid handle: %s", strerror(errno));
	ibv_close_device(ctx);
	release(dm);
}

/* A page that is still mapped is not allocated again. */
static void freed_while_mapped(void)
{
	struct ibv_dm *dm = alloc(device_bytes()), *again;
	struct ibv_context *ctx = import(link_owner->ctx);

	again = ibv_import_dm(ctx, dm->handle);
	if (!again)
		tb_die("ibv_import_dm: %s", strerror(errno));
	release(dm);
	if (try_alloc(link_owner->ctx, 4, 0))
		tb_fail("pages that are mapped are given out");
	ibv_unimport_dm(again);
	dm = alloc(4);
	release(dm);
	ibv_close_device(ctx);
}

/* A context on another's file: QPs, with the PD and the region of the first. */
static void imported_context(void)
{
	struct tb_side shared = *link_owner;
	struct tb_side *owner = link_owner;
	struct ibv_mr *mr;
	struct link l;

	shared.ctx = import(owner->ctx);
	shared.pd = ibv_import_pd(shared.ctx, owner->pd->handle);
	if (!shared.pd)
		tb_die("ibv_import_pd: %s", strerror(errno));
	link_owner = &shared;
	link_open(&l);
	mr = ibv_import_mr(shared.pd, l.p.b.mr->handle);
	if (!mr)
		tb_die("ibv_import_mr: %s", strerror(errno));
	link_opens(&l, mr->rkey, link_at(&l, 0), 0, LINK_LONG, "an imported region");
	tb_check_traffic(&l.p, "QPs of an imported context");
	ibv_unimport_mr(mr);
	link_close(&l);
	link_owner = owner;
	ibv_unimport_pd(shared.pd);
	ibv_close_device(shared.ctx);
}

/* Files that are not those of a device. */
static void no_context(void)
{
	int fd = open("/dev/null", O_RDWR);

	if (ibv_import_device(fd))
		tb_fail("/dev/null is a device");
	close(fd);
	if (ibv_import_device(-1))
		tb_fail("no file is a device");
}

static const struct tb_case cases[] = {
	{ "sizes", sizes },
	{ "zeroed when given out", zeroed },
	{ "alignments", alignment },
	{ "copies by the CPU", copies },
	{ "registrations", registrations },
	{ "traffic of the peer", traffic },
	{ "receives and sends of its own", local_use },
	{ "behind a window", behind_a_window },
	{ "another context", of_another_context },
	{ "a process is killed", killed },
	{ "imported", imported_memory },
	{ "freed while it is mapped", freed_while_mapped },
	{ "a context imported, with PD and region", imported_context },
	{ "what is no context is not imported", no_context },
};

int main(int argc, char **argv)
{
	return link_run(cases, ARRAY_SIZE(cases), argc, argv);
}
