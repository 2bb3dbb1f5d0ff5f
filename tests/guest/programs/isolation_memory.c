// SPDX-License-Identifier: GPL-2.0-or-later
/* Memory that a process must not pass to the device: for queues, doorbell records and regions. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "isolation.h"

#define SPARE_BYTES	65536
#define SPARE_RECORDS	32768		/* offset of doorbell records in the spare memory */
#define HOLE		0x10000000000	/* far from all mappings that the kernel places */

static uint64_t noise_state;

static uint32_t noise(void)
{
	noise_state = noise_state * 6364136223846793005 + 1442695040888963407;
	return noise_state >> 33;
}

/* ---- objects at an address */

static int cq_at(struct raw_ctx *own, uint64_t buf, uint64_t dbr)
{
	struct hghca_create_cq driver = { .buf_addr = buf, .dbr_addr = dbr };
	uint32_t handle;
	int error = raw_try_create_cq(own, 63, &driver, sizeof(driver), &handle);

	if (!error && raw_destroy_cq_handle(own, handle))
		tb_fail("DESTROY_CQ");
	return error;
}

static int srq_at(struct raw_ctx *own, uint64_t buf, uint64_t dbr)
{
	struct hghca_create_srq driver = { .buf_addr = buf, .dbr_addr = dbr, .wqe_cnt = RAW_WQES,
					   .log_stride = RAW_LOG_STRIDE };
	struct ib_uverbs_destroy_srq cmd;
	struct ib_uverbs_destroy_srq_resp resp;
	uint32_t srqn;
	int error = raw_try_create_srq(own, own->pd_handle, &driver, &cmd.srq_handle, &srqn);

	if (!error)
		raw_must(own->fd, IB_USER_VERBS_CMD_DESTROY_SRQ, &cmd, sizeof(cmd), &resp, sizeof(resp), "DESTROY_SRQ");
	return error;
}

static int qp_at(struct raw_ctx *own, uint64_t buf, uint64_t dbr)
{
	struct hghca_create_qp driver;
	struct raw_qp qp = { .ctx = own };
	uint32_t handle, qpn;
	struct raw_cq cq;
	int error;

	raw_cq_create(&cq, own);
	driver = raw_qp_driver_data(&qp);
	driver.buf_addr = buf;
	driver.dbr_addr = dbr;
	error = raw_try_create_qp(own, &cq, &driver, sizeof(driver), &handle, &qpn);
	if (!error && raw_destroy_qp_handle(own, handle))
		tb_fail("DESTROY_QP");
	raw_cq_destroy(&cq, own);
	return error;
}

static int resized_at(struct raw_ctx *own, uint64_t buf)
{
	struct {
		struct ib_uverbs_resize_cq core;
		struct hghca_resize_cq_cmd driver;
	} cmd = { .core = { .cqe = 63 }, .driver = { .buf_addr = buf } };
	struct ib_uverbs_resize_cq_resp resp;
	struct raw_cq cq;
	int error;

	raw_cq_create(&cq, own);
	cmd.core.cq_handle = cq.handle;
	error = raw_command(own->fd, IB_USER_VERBS_CMD_RESIZE_CQ, &cmd, sizeof(cmd), &resp, sizeof(resp));
	raw_cq_destroy(&cq, own);
	return error;
}

static int srq_resized_at(struct raw_ctx *own, uint64_t buf)
{
	struct {
		struct ib_uverbs_modify_srq core;
		struct hghca_modify_srq driver;
	} cmd = {
		.core = { .attr_mask = IBV_SRQ_MAX_WR, .max_wr = 2 * RAW_WQES - 1 },
		.driver = { .buf_addr = buf, .wqe_cnt = 2 * RAW_WQES },
	};
	struct raw_srq srq;
	int error;

	raw_srq_create(&srq, own);
	cmd.core.srq_handle = srq.handle;
	error = raw_command(own->fd, IB_USER_VERBS_CMD_MODIFY_SRQ, &cmd, sizeof(cmd), NULL, 0);
	raw_srq_destroy(&srq);
	return error;
}

static int region_at(struct raw_ctx *own, uint64_t start, uint64_t bytes, unsigned int access)
{
	struct ib_uverbs_reg_mr cmd = { .start = start, .hca_va = start, .length = bytes, .access_flags = access,
					.pd_handle = own->pd_handle };
	struct ib_uverbs_reg_mr_resp resp;
	struct ib_uverbs_dereg_mr dereg;
	int error = raw_command(own->fd, IB_USER_VERBS_CMD_REG_MR, &cmd, sizeof(cmd), &resp, sizeof(resp));

	if (error)
		return error;
	dereg.mr_handle = resp.mr_handle;
	raw_must(own->fd, IB_USER_VERBS_CMD_DEREG_MR, &dereg, sizeof(dereg), NULL, 0, "DEREG_MR");
	return 0;
}

static bool is_refusal(int error)
{
	return error == EFAULT || error == EINVAL || error == ENOMEM;
}

static void refused(int error, const char *what, const char *where, uint64_t address)
{
	if (!is_refusal(error))
		tb_fail("%s %s, 0x%llx: %s", what, where, (unsigned long long)address,
			error ? strerror(error) : "success");
}

/* No object can be there; `read_only`: only objects that the device does not write to. */
static void try_address(struct raw_ctx *own, uint64_t at, const char *where, bool read_only)
{
	uint64_t good = (uintptr_t)raw_pages(SPARE_BYTES);
	int error;

	refused(cq_at(own, at, good), "a CQ", where, at);
	refused(resized_at(own, at), "a CQ's new buffer", where, at);
	refused(cq_at(own, good, at), "a CQ's record", where, at);
	refused(qp_at(own, good, at), "a QP's record", where, at);
	refused(srq_at(own, good, at), "an SRQ's record", where, at);
	refused(region_at(own, at, PAGE_BYTES, TB_ACCESS_ALL), "a region", where, at);
	if (read_only) {
		error = qp_at(own, at, good);
		if (error)
			tb_fail("a QP's queues %s: %s", where, strerror(error));
		error = region_at(own, at, PAGE_BYTES, 0);
		if (error)
			tb_fail("a region to be read %s: %s", where, strerror(error));
	} else {
		refused(qp_at(own, at, good), "a QP's queues", where, at);
		refused(srq_at(own, at, good), "an SRQ", where, at);
		refused(srq_resized_at(own, at), "an SRQ's new buffer", where, at);
		refused(region_at(own, at, PAGE_BYTES, 0), "a region to be read", where, at);
	}
	munmap((void *)good, SPARE_BYTES);
	iso.board->step++;
}

static uint64_t read_only_pages(void)
{
	void *pages = mmap(NULL, SPARE_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		tb_die("mmap");
	return (uintptr_t)pages;
}

static uint64_t closed_pages(void)
{
	void *pages = mmap(NULL, SPARE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		tb_die("mmap");
	return (uintptr_t)pages;
}

static void try_addresses(struct raw_ctx *own)
{
	uint64_t read_only = read_only_pages(), closed = closed_pages();

	try_address(own, 0xffff888000000000, "in the kernel's map of all memory", false);
	try_address(own, 0xffffffff81000000, "in the kernel's code", false);
	try_address(own, 0xfffffffffffff000, "in the last page there is", false);
	try_address(own, 0x8000000000000000, "at no canonical address", false);
	try_address(own, 0x7ffffffff000, "behind the memory of programs", false);
	try_address(own, 0, "at 0", false);
	try_address(own, HOLE, "in a hole", false);
	try_address(own, ISO_ADDRESS, "in the owner's region", false);
	try_address(own, (uintptr_t)own->uar, "in our own UAR page", false);
	try_address(own, closed, "in memory that nobody may read", false);
	try_address(own, read_only, "in memory to be read", true);
	munmap((void *)read_only, SPARE_BYTES);
	munmap((void *)closed, SPARE_BYTES);
}

/* Lengths with an invalid end. */
static void try_lengths(struct raw_ctx *own)
{
	uint8_t *pages = raw_pages(SPARE_BYTES);
	uint64_t at = (uintptr_t)pages;

	munmap(pages + PAGE_BYTES, SPARE_BYTES - PAGE_BYTES);
	refused(region_at(own, at, PAGE_BYTES + 1, 0), "a region", "with a hole at its end", at);
	refused(region_at(own, at, 1ULL << 40, 0), "a region", "of 1 TiB", at);
	refused(region_at(own, at, -at, 0), "a region", "up to the end of all addresses", at);
	refused(region_at(own, at, ~0ULL, 0), "a region", "around all addresses", at);
	refused(qp_at(own, at, at), "a QP's queues", "with a hole in them", at);
	munmap(pages, PAGE_BYTES);
	iso.board->step++;
}

static void addresses(void)
{
	iso_intrude(try_addresses);
	iso_intrude(try_lengths);
}

/* ---- memory of two objects, or memory that changes while the device uses it: only its owner is affected */

static void ring_some(struct iso_link *l)
{
	unsigned int i;

	for (i = 0; i < 6; i++) {
		iso_build_write(&l->a, i, l->a.ctx->buf, l->a.ctx->mr.lkey, (uintptr_t)l->a.ctx->buf + PAGE_BYTES,
				l->a.ctx->mr.rkey);
		iso_ring(&l->a, i, HGHCA_OPCODE_RDMA_WRITE, WRITE_UNITS);
	}
}

/* A pair whose QPs have their queues, records and CQ at addresses of the caller. */
static void link_in(struct raw_ctx *own, uint8_t *queues, uint8_t *record, uint8_t *cqes, uint8_t *cq_record)
{
	struct hghca_create_cq cq_data = { .buf_addr = (uintptr_t)cqes, .dbr_addr = (uintptr_t)cq_record };
	struct iso_link l = { .a = { .ctx = own, .type = IBV_QPT_RC }, .b = { .ctx = own, .type = IBV_QPT_RC } };
	struct raw_qp *ends[] = { &l.a, &l.b };
	struct hghca_create_qp driver;
	size_t i;

	memset(cqes, HGHCA_CQ_ENTRY_OWNER_HW, 64 * sizeof(struct hghca_cqe));
	for (i = 0; i < 2; i++) {
		errno = raw_try_create_cq(own, 63, &cq_data, sizeof(cq_data), &ends[i]->cq.handle);
		if (errno)
			tb_die("CREATE_CQ");
		ends[i]->queues = queues;
		ends[i]->dbr = (void *)record;
		driver = raw_qp_driver_data(ends[i]);
		errno = raw_try_create_qp(own, &ends[i]->cq, &driver, sizeof(driver), &ends[i]->handle, &ends[i]->qpn);
		if (errno)
			tb_die("CREATE_QP");
	}
	iso_link_connect(&l);
	ring_some(&l);
	for (i = 0; i < 2; i++)
		if (raw_destroy_qp_handle(own, ends[i]->handle) || raw_destroy_cq_handle(own, ends[i]->cq.handle))
			tb_die("taking down a QP");
	iso.board->step++;
}

static void overlap(struct raw_ctx *own)
{
	uint8_t *pages = raw_pages(SPARE_BYTES);
	uint8_t *apart = pages + 16384;

	link_in(own, pages, apart, pages, apart + 8);			/* queues in the CQ */
	link_in(own, pages, pages, apart, apart + PAGE_BYTES);		/* the record in the queue */
	link_in(own, pages, apart, apart, apart);			/* all records in the CQ */
	link_in(own, pages, apart, pages + PAGE_BYTES, pages + 2 * PAGE_BYTES);
	link_in(own, pages, pages, pages, pages);
	link_in(own, own->buf, own->buf, own->buf, own->buf);		/* in the buffer that is written to */
	munmap(pages, SPARE_BYTES);
}

static void overlapping(void)
{
	iso_intrude(overlap);
}

static int shrink(struct raw_ctx *own, struct raw_cq *cq, uint8_t *pages)
{
	struct {
		struct ib_uverbs_resize_cq core;
		struct hghca_resize_cq_cmd driver;
	} cmd = { .core = { .cq_handle = cq->handle, .cqe = 3 }, .driver = { .buf_addr = (uintptr_t)pages } };
	struct ib_uverbs_resize_cq_resp resp;

	return raw_command(own->fd, IB_USER_VERBS_CMD_RESIZE_CQ, &cmd, sizeof(cmd), &resp, sizeof(resp));
}

/* Records have invalid values all the time while requests are outstanding. */
static void garble_records(struct raw_ctx *own)
{
	uint8_t *pages = raw_pages(SPARE_BYTES);
	struct raw_srq srq;
	struct iso_link l;
	int i, error;

	noise_state = iso.board->step;
	raw_srq_create(&srq, own);
	iso_link_create(&l, own, IBV_QPT_RC, &srq);
	iso_link_connect(&l);
	for (i = 0; i < 200; i++) {
		l.a.dbr->rq_head = htole32(noise());
		srq.dbr->posted = htole32(noise() % 4 ? noise() : RAW_WQES + noise() % 8);
		l.a.cq.dbr->consumer_index = htole32(noise());
		iso_build_write(&l.a, i, own->buf, own->mr.lkey, (uintptr_t)own->buf + PAGE_BYTES, own->mr.rkey);
		iso_ring(&l.a, i, i % 3 ? HGHCA_OPCODE_RDMA_WRITE : HGHCA_OPCODE_SEND, i % 3 ? WRITE_UNITS : 2);
		if (i % 10)
			continue;
		error = shrink(own, &l.a.cq, pages);
		if (error && error != EINVAL)
			tb_fail("RESIZE_CQ: %s", strerror(error));
		iso.board->step++;
	}
	iso_link_destroy(&l);
	raw_srq_destroy(&srq);
	munmap(pages, SPARE_BYTES);
}

/* A CQ whose record is ahead of the producer index: a resize to a smaller size reports it. */
static void record_ahead(struct raw_ctx *own)
{
	uint8_t *pages = raw_pages(SPARE_BYTES);
	struct raw_cq cq;
	int error;

	raw_cq_create(&cq, own);
	cq.dbr->consumer_index = htole32(5);
	error = shrink(own, &cq, pages);
	if (error != EINVAL)
		tb_fail("a CQ with more consumed than produced was resized: %s", strerror(error));
	cq.dbr->consumer_index = 0;
	error = shrink(own, &cq, pages);
	if (error)
		tb_fail("a CQ could not be resized: %s", strerror(error));
	errno = raw_destroy_cq_handle(own, cq.handle);
	if (errno)
		tb_die("DESTROY_CQ");
	munmap(pages, SPARE_BYTES);
}

static void garbled(void)
{
	iso_intrude(garble_records);
	iso_intrude(record_ahead);
}

/* ---- */

static void killed(void)
{
	static iso_act *const acts[] = { try_addresses, try_lengths, overlap, garble_records };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(acts); i++)
		iso_kill_amidst(acts[i], 3);
}

const struct tb_case iso_memory_cases[] = {
	{ "memory: addresses that are not ours", addresses },
	{ "memory: for two purposes at once", overlapping },
	{ "memory: records that say what cannot be", garbled },
	{ "memory: killed amidst", killed },
};
const size_t iso_memory_count = ARRAY_SIZE(iso_memory_cases);
