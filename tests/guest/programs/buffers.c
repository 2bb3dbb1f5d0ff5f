// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * CQs, QPs and SRQs whose buffer is an attribute of the method that creates them: memory of the process, or of a
 * dma-buf. The address in the driver's data counts for nothing then. Linux has the attributes since 7.3; an older
 * kernel must refuse them.
 *
 * buffers DEVICE GID-INDEX [CASE...]
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <linux/dma-heap.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include "raw.h"
#include "testbed.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define BYTES		65536		/* of each buffer: more than any object here needs */
#define CQES		128
#define MESSAGE		64
#define NOWHERE		0x1000		/* an address at which the process has nothing */

/* Linux 7.3: ib_user_ioctl_cmds.h, ib_user_ioctl_verbs.h. */
enum { CREATE_CQ_BUF_UMEM = 12, CREATE_QP_BUF_UMEM = 15, CREATE_SRQ_BUF_UMEM = 14 };
enum { BUFFER_DMABUF, BUFFER_VA };

struct buffer_desc {
	uint32_t type;
	int32_t fd;
	uint32_t flags;
	uint32_t optional_flags;
	uint64_t addr;
	uint64_t length;
};

struct call {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[16];
};

static struct tb_side side;
static struct raw_ctx ctx;

/* ---- methods */

static struct ib_uverbs_attr *add(struct call *call, unsigned int id)
{
	struct ib_uverbs_attr *attr = &call->attrs[call->hdr.num_attrs++];

	attr->attr_id = id;
	attr->flags = UVERBS_ATTR_F_MANDATORY;
	return attr;
}

static void add_handle(struct call *call, unsigned int id, uint32_t handle)
{
	add(call, id)->data = handle;
}

/* Input of up to 8 bytes is in the attribute itself. */
static void add_in(struct call *call, unsigned int id, const void *data, size_t bytes)
{
	struct ib_uverbs_attr *attr = add(call, id);

	attr->len = bytes;
	if (bytes <= sizeof(attr->data))
		memcpy(&attr->data, data, bytes);
	else
		attr->data = (uintptr_t)data;
}

static void add_u32(struct call *call, unsigned int id, uint32_t value)
{
	add_in(call, id, &value, sizeof(value));
}

static void add_u64(struct call *call, unsigned int id, uint64_t value)
{
	add_in(call, id, &value, sizeof(value));
}

static void add_out(struct call *call, unsigned int id, void *data, size_t bytes)
{
	struct ib_uverbs_attr *attr = add(call, id);

	attr->len = bytes;
	attr->data = (uintptr_t)data;
}

/* Returns 0 or an errno. The first attribute is the handle of a new object, the second its buffer. */
static int invoke(struct call *call, unsigned int object, unsigned int method)
{
	call->hdr.object_id = object;
	call->hdr.method_id = method;
	call->hdr.length = sizeof(call->hdr) + call->hdr.num_attrs * sizeof(call->attrs[0]);
	return raw_method(ctx.fd, &call->hdr);
}

static int create_cq(struct raw_cq *cq, const struct buffer_desc *desc)
{
	struct hghca_create_cq driver = { .buf_addr = NOWHERE, .dbr_addr = (uintptr_t)cq->dbr };
	struct hghca_create_cq_resp resp = {};
	struct call call = {};
	uint32_t cqe = 0;
	int error;

	add_handle(&call, UVERBS_ATTR_CREATE_CQ_HANDLE, 0);
	add_in(&call, CREATE_CQ_BUF_UMEM, desc, sizeof(*desc));
	add_u32(&call, UVERBS_ATTR_CREATE_CQ_CQE, CQES - 1);
	add_u64(&call, UVERBS_ATTR_CREATE_CQ_USER_HANDLE, 0);
	add_u32(&call, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, 0);
	add_out(&call, UVERBS_ATTR_CREATE_CQ_RESP_CQE, &cqe, sizeof(cqe));
	add_in(&call, UVERBS_ATTR_UHW_IN, &driver, sizeof(driver));
	add_out(&call, UVERBS_ATTR_UHW_OUT, &resp, sizeof(resp));
	error = invoke(&call, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE);
	if (error)
		return error;
	if (cqe != CQES - 1)
		tb_fail("a CQ of %u CQEs, not %u", cqe, CQES - 1);
	cq->handle = call.attrs[0].data;
	cq->cqn = resp.cqn;
	cq->entries = CQES;
	return 0;
}

static int create_qp(struct raw_qp *qp, const struct buffer_desc *desc)
{
	struct ib_uverbs_qp_cap cap = { .max_send_wr = RAW_WQES, .max_send_sge = 2, .max_recv_wr = RAW_WQES,
					.max_recv_sge = 2 };
	struct hghca_create_qp driver = raw_qp_driver_data(qp);
	struct hghca_create_qp_resp resp = {};
	struct ib_uverbs_qp_cap granted;
	struct call call = {};
	uint32_t number;
	int error;

	driver.buf_addr = NOWHERE;
	if (qp->srq)
		cap.max_recv_wr = cap.max_recv_sge = 0;
	add_handle(&call, UVERBS_ATTR_CREATE_QP_HANDLE, 0);
	add_in(&call, CREATE_QP_BUF_UMEM, desc, sizeof(*desc));
	add_handle(&call, UVERBS_ATTR_CREATE_QP_PD_HANDLE, ctx.pd_handle);
	add_handle(&call, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, qp->cq.handle);
	add_handle(&call, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, qp->cq.handle);
	if (qp->srq)
		add_handle(&call, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, qp->srq->handle);
	add_u64(&call, UVERBS_ATTR_CREATE_QP_USER_HANDLE, 0);
	add_in(&call, UVERBS_ATTR_CREATE_QP_CAP, &cap, sizeof(cap));
	add_u64(&call, UVERBS_ATTR_CREATE_QP_TYPE, IB_UVERBS_QPT_RC);
	add_u64(&call, UVERBS_ATTR_CREATE_QP_FLAGS, IB_UVERBS_QP_CREATE_SQ_SIG_ALL);
	add_out(&call, UVERBS_ATTR_CREATE_QP_RESP_CAP, &granted, sizeof(granted));
	add_out(&call, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &number, sizeof(number));
	add_in(&call, UVERBS_ATTR_UHW_IN, &driver, sizeof(driver));
	add_out(&call, UVERBS_ATTR_UHW_OUT, &resp, sizeof(resp));
	error = invoke(&call, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE);
	if (error)
		return error;
	qp->handle = call.attrs[0].data;
	qp->qpn = resp.qpn;
	return 0;
}

static int create_srq(struct raw_srq *srq, const struct buffer_desc *desc)
{
	struct hghca_create_srq driver = { .buf_addr = NOWHERE, .dbr_addr = (uintptr_t)srq->dbr, .wqe_cnt = RAW_WQES,
					   .log_stride = RAW_LOG_STRIDE };
	struct hghca_create_srq_resp resp = {};
	uint32_t max_wr, max_sge;
	struct call call = {};
	int error;

	add_handle(&call, UVERBS_ATTR_CREATE_SRQ_HANDLE, 0);
	add_in(&call, CREATE_SRQ_BUF_UMEM, desc, sizeof(*desc));
	add_handle(&call, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, ctx.pd_handle);
	add_u64(&call, UVERBS_ATTR_CREATE_SRQ_TYPE, IB_UVERBS_SRQT_BASIC);
	add_u64(&call, UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, 0);
	add_u32(&call, UVERBS_ATTR_CREATE_SRQ_MAX_WR, RAW_WQES - 1);
	add_u32(&call, UVERBS_ATTR_CREATE_SRQ_MAX_SGE, 2);
	add_u32(&call, UVERBS_ATTR_CREATE_SRQ_LIMIT, 0);
	add_out(&call, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, &max_wr, sizeof(max_wr));
	add_out(&call, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, &max_sge, sizeof(max_sge));
	add_in(&call, UVERBS_ATTR_UHW_IN, &driver, sizeof(driver));
	add_out(&call, UVERBS_ATTR_UHW_OUT, &resp, sizeof(resp));
	error = invoke(&call, UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE);
	if (error)
		return error;
	srq->handle = call.attrs[0].data;
	srq->srqn = resp.srqn;
	return 0;
}

/* ---- objects */

/* A buffer of BYTES bytes, mapped at `addr`. */
struct buffer {
	struct buffer_desc desc;
	uint8_t *addr;
};

static void buffer_va(struct buffer *buffer)
{
	buffer->addr = raw_pages(BYTES);
	buffer->desc = (struct buffer_desc) {
		.type = BUFFER_VA, .fd = -1, .addr = (uintptr_t)buffer->addr, .length = BYTES,
	};
}

/* Its second half is the buffer. */
static void buffer_dmabuf(struct buffer *buffer)
{
	struct dma_heap_allocation_data alloc = { .len = 2 * BYTES, .fd_flags = O_RDWR | O_CLOEXEC };
	int heap = open("/dev/dma_heap/system", O_RDONLY | O_CLOEXEC);

	if (heap < 0 || ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &alloc))
		tb_die("/dev/dma_heap/system");
	close(heap);
	buffer->addr = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, alloc.fd, BYTES);
	if (buffer->addr == MAP_FAILED)
		tb_die("mmap");
	buffer->desc = (struct buffer_desc) {
		.type = BUFFER_DMABUF, .fd = alloc.fd, .addr = BYTES, .length = BYTES,
	};
}

static void buffer_free(struct buffer *buffer)
{
	munmap(buffer->addr, BYTES);
	if (buffer->desc.type == BUFFER_DMABUF)
		close(buffer->desc.fd);
}

/* A QP with its CQ, and an SRQ if `srq` is; all in buffers that are attributes. */
struct set {
	struct buffer cq_buffer, qp_buffer, srq_buffer;
	struct raw_srq srq;
	struct raw_qp qp;
};

static void same(int error, int expected, const char *what)
{
	if (error != expected)
		tb_fail("%s: errno %d (%s), expected %d", what, error, strerror(error), expected);
}

static bool older_kernel(void)
{
	unsigned int major, minor;
	struct utsname name;

	if (uname(&name) || sscanf(name.release, "%u.%u", &major, &minor) != 2)
		tb_die("uname");
	return major < 7 || (major == 7 && minor < 3);
}

/* Zeroed but for what every attempt needs. */
static void set_prepare(struct set *set, bool srq, void (*make)(struct buffer *buffer))
{
	unsigned int i;

	memset(set, 0, sizeof(*set));
	/* Debian's 6.1 has no heap of dma-bufs; the attribute is refused before it is read. */
	if (older_kernel())
		make = buffer_va;
	make(&set->cq_buffer);
	make(&set->qp_buffer);
	make(&set->srq_buffer);
	set->qp.ctx = &ctx;
	set->qp.type = IBV_QPT_RC;
	set->qp.srq = srq ? &set->srq : NULL;
	set->qp.queues = set->qp_buffer.addr;
	set->qp.dbr = raw_pages(4096);
	set->qp.cq.cqe = (struct hghca_cqe *)set->cq_buffer.addr;
	set->qp.cq.dbr = raw_pages(4096);
	for (i = 0; i < CQES; i++)
		set->qp.cq.cqe[i].owner = HGHCA_CQ_ENTRY_OWNER_HW;
	set->srq.ctx = &ctx;
	set->srq.queue = set->srq_buffer.addr;
	set->srq.dbr = raw_pages(4096);
	/* The chain of slots is in the order of the queue. */
	for (i = 0; i < RAW_WQES; i++)
		((struct hghca_next_unit *)(set->srq.queue + i * RAW_STRIDE))->nda_nop =
			htole32((i + 1) % RAW_WQES * RAW_STRIDE);
}

static void set_free(struct set *set)
{
	munmap(set->qp.dbr, 4096);
	munmap(set->qp.cq.dbr, 4096);
	munmap(set->srq.dbr, 4096);
	buffer_free(&set->cq_buffer);
	buffer_free(&set->qp_buffer);
	buffer_free(&set->srq_buffer);
}

/* Messages of the QP to itself, more than the queues have slots. */
static void send_messages(struct raw_qp *qp)
{
	uint8_t *from = ctx.buf, *to = ctx.buf + 4096;
	unsigned int i;
	uint8_t *slot;

	raw_qp_to_init(qp);
	raw_qp_to_rtr(qp, side.gid.raw, side.gid_index, side.mtu, qp->qpn);
	raw_qp_to_rts(qp);
	for (i = 0; i < 3 * RAW_WQES && !tb_failed(); i++) {
		memset(from, 0x40 + i, MESSAGE);
		memset(to, 0, MESSAGE);
		raw_post_recv(qp, i, to, MESSAGE, ctx.mr.lkey);
		slot = raw_send_slot(qp, i);
		memset(slot, 0, RAW_STRIDE);
		raw_put_next(slot, HGHCA_WQE_CQ_UPDATE);
		raw_put_data(slot, 1, from, MESSAGE, ctx.mr.lkey);
		raw_ring(ctx.uar, raw_sq_doorbell(qp->qpn, i, HGHCA_OPCODE_SEND, 2, 1));
		if (raw_expect(qp, i % RAW_WQES, 0, "the first completion of a message") &&
		    raw_expect(qp, i % RAW_WQES, 0, "the second completion of a message") &&
		    memcmp(from, to, MESSAGE))
			tb_fail("message %u: wrong data", i);
	}
}

static void destroy_srq(struct raw_srq *srq)
{
	struct ib_uverbs_destroy_srq cmd = { .srq_handle = srq->handle };
	struct ib_uverbs_destroy_srq_resp resp;

	raw_must(ctx.fd, IB_USER_VERBS_CMD_DESTROY_SRQ, &cmd, sizeof(cmd), &resp, sizeof(resp), "DESTROY_SRQ");
}

static void works(bool srq, void (*make)(struct buffer *buffer))
{
	struct set set;

	set_prepare(&set, srq, make);
	if (older_kernel()) {
		same(create_cq(&set.qp.cq, &set.cq_buffer.desc), EPROTONOSUPPORT, "a CQ");
		same(create_qp(&set.qp, &set.qp_buffer.desc), EPROTONOSUPPORT, "a QP");
		same(create_srq(&set.srq, &set.srq_buffer.desc), EPROTONOSUPPORT, "an SRQ");
		goto out;
	}
	errno = create_cq(&set.qp.cq, &set.cq_buffer.desc);
	if (errno)
		tb_die("a CQ");
	if (srq) {
		errno = create_srq(&set.srq, &set.srq_buffer.desc);
		if (errno)
			tb_die("an SRQ");
	}
	errno = create_qp(&set.qp, &set.qp_buffer.desc);
	if (errno)
		tb_die("a QP");
	send_messages(&set.qp);
	same(raw_destroy_qp_handle(&ctx, set.qp.handle), 0, "to destroy the QP");
	if (srq)
		destroy_srq(&set.srq);
	same(raw_destroy_cq_handle(&ctx, set.qp.cq.handle), 0, "to destroy the CQ");
out:
	set_free(&set);
}

/* ---- cases */

static void memory(void)
{
	works(false, buffer_va);
}

static void memory_srq(void)
{
	works(true, buffer_va);
}

static void dmabuf(void)
{
	works(false, buffer_dmabuf);
}

static void dmabuf_srq(void)
{
	works(true, buffer_dmabuf);
}

static void not_aligned(struct buffer_desc *desc) { desc->addr += 64; desc->length -= 64; }
static void too_short(struct buffer_desc *desc) { desc->length = 1024; }
static void empty(struct buffer_desc *desc) { desc->length = 0; }
static void no_memory(struct buffer_desc *desc) { desc->addr = NOWHERE; }
static void beyond(struct buffer_desc *desc) { desc->addr = 3 * BYTES; }
static void no_fd(struct buffer_desc *desc) { desc->fd = -1; }
static void another_file(struct buffer_desc *desc) { desc->fd = ctx.fd; }
static void unknown_type(struct buffer_desc *desc) { desc->type = 2; }
static void unknown_flag(struct buffer_desc *desc) { desc->flags = 1; }

static const struct wrong {
	const char *what;
	void (*make)(struct buffer *buffer);
	void (*change)(struct buffer_desc *desc);
	int error;
} wrong[] = {
	{ "memory that is not page-aligned", buffer_va, not_aligned, EINVAL },
	{ "memory that is too short", buffer_va, too_short, EINVAL },
	{ "memory of no bytes", buffer_va, empty, EINVAL },
	{ "memory that is not there", buffer_va, no_memory, EFAULT },
	{ "an unknown kind of memory", buffer_va, unknown_type, EINVAL },
	{ "an unknown flag", buffer_va, unknown_flag, EINVAL },
	{ "a dma-buf that is too short", buffer_dmabuf, too_short, EINVAL },
	{ "bytes beyond a dma-buf", buffer_dmabuf, beyond, EINVAL },
	{ "a part of a dma-buf that is not page-aligned", buffer_dmabuf, not_aligned, EINVAL },
	{ "no file", buffer_dmabuf, no_fd, EBADF },
	{ "a file that is no dma-buf", buffer_dmabuf, another_file, EINVAL },
};

/* Nothing is left of an object that was refused: the same memory then serves a good one. */
static void refused(void)
{
	int older = older_kernel() ? EPROTONOSUPPORT : 0;
	struct buffer_desc desc;
	struct raw_qp good;
	unsigned int i;

	raw_qp_create(&good, &ctx);
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct set set;

		set_prepare(&set, false, wrong[i].make);
		desc = set.cq_buffer.desc;
		wrong[i].change(&desc);
		same(create_cq(&set.qp.cq, &desc), older ?: wrong[i].error, wrong[i].what);
		desc = set.srq_buffer.desc;
		wrong[i].change(&desc);
		same(create_srq(&set.srq, &desc), older ?: wrong[i].error, wrong[i].what);
		set.qp.cq.handle = good.cq.handle;
		desc = set.qp_buffer.desc;
		wrong[i].change(&desc);
		same(create_qp(&set.qp, &desc), older ?: wrong[i].error, wrong[i].what);
		set_free(&set);
	}
	raw_qp_destroy(&good);
}

static const struct tb_case cases[] = {
	{ "memory of the process", memory },
	{ "memory of the process, SRQ", memory_srq },
	{ "dma-buf", dmabuf },
	{ "dma-buf, SRQ", dmabuf_srq },
	{ "refused", refused },
};

int main(int argc, char **argv)
{
	int status;

	if (argc < 3) {
		fprintf(stderr, "usage: buffers DEVICE GID-INDEX [CASE...]\n");
		return 2;
	}
	tb_side_open(&side, argv[1], atoi(argv[2]), NULL);
	raw_open(&ctx, argv[1]);
	status = tb_run(cases, ARRAY_SIZE(cases), argc - 3, argv + 3, NULL);
	raw_close(&ctx);
	return status;
}
