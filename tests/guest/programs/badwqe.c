// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * WQEs, doorbells and driver calls that no provider makes. Each must end in exactly
 * the completion that the interface document specifies, or in no completion. It must
 * not affect other QPs, which use the real provider.
 *
 * badwqe DEVICE GID-INDEX COUNTERS [CASE...]
 *
 * COUNTERS is the folder of the device's counters in sysfs, or "" without counters.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "raw.h"
#include "testbed.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define OK		0
#define SIGNALED	HGHCA_WQE_CQ_UPDATE
#define WRITE_UNITS	3
#define REG_UNITS	4
#define FUZZ_ROUNDS	100

static const char *device;
static const char *counters;
static struct tb_side side;
static struct tb_pair neighbour;
static struct raw_ctx ctx;

/* A requester and a responder on the device under test, each with one CQ. */
struct pair {
	struct raw_qp a, b;
};

static void pair_create(struct pair *p)
{
	raw_qp_create(&p->a, &ctx);
	raw_qp_create(&p->b, &ctx);
}

static void pair_to_rtr(struct pair *p)
{
	raw_qp_to_init(&p->a);
	raw_qp_to_init(&p->b);
	raw_qp_to_rtr(&p->a, side.gid.raw, side.gid_index, side.mtu, p->b.qpn);
	raw_qp_to_rtr(&p->b, side.gid.raw, side.gid_index, side.mtu, p->a.qpn);
}

static void pair_to_rts(struct pair *p)
{
	pair_to_rtr(p);
	raw_qp_to_rts(&p->a);
	raw_qp_to_rts(&p->b);
}

static void pair_destroy(struct pair *p)
{
	raw_qp_destroy(&p->a);
	raw_qp_destroy(&p->b);
}

static void connected(struct pair *p)
{
	pair_create(p);
	pair_to_rts(p);
}

static long counter(const char *name)
{
	return *counters ? raw_counter(counters, name) : 0;
}

static void counted(const char *name, long before, long by)
{
	long now = counter(name);

	if (*counters && now != before + by)
		tb_fail("counter %s rose by %ld, expected %ld", name, now - before, by);
}

static bool expect(struct raw_qp *qp, unsigned int slot, uint8_t syndrome, const char *what)
{
	return raw_expect(qp, slot, syndrome, what);
}

static void expect_state(struct raw_qp *qp, int state, const char *what)
{
	int now = raw_qp_state(qp);

	if (now != state)
		tb_fail("%s: the QP is in state %d, expected %d", what, now, state);
}

/* The traffic of another pair has completed meanwhile: a completion would have arrived by now. */
static void expect_none(struct raw_qp *qp, const char *what)
{
	struct raw_wc wc;

	tb_check_traffic(&neighbour, "the neighbour");
	if (raw_cq_poll(&qp->cq, &wc))
		tb_fail("%s: a completion, slot %u syndrome 0x%02x, expected none", what, wc.slot, wc.syndrome);
}

/* A valid RDMA WRITE of 64 bytes in slot `index`, from the first page to the second. */
static void build_write(struct pair *p, unsigned int index)
{
	uint8_t *slot = raw_send_slot(&p->a, index);

	memset(slot, 0, RAW_STRIDE);
	raw_put_next(slot, SIGNALED);
	raw_put_raddr(slot, 1, (uintptr_t)ctx.buf + 4096, ctx.mr.rkey);
	raw_put_data(slot, 2, ctx.buf, 64, ctx.mr.lkey);
}

static void ring(struct raw_qp *qp, unsigned int head, unsigned int opcode, unsigned int size)
{
	raw_ring(ctx.uar, raw_sq_doorbell(qp->qpn, head, opcode, size, 1));
}

static void write_works(struct pair *p, unsigned int index, const char *what)
{
	build_write(p, index);
	memset(ctx.buf, 0x40 + index, 64);
	memset(ctx.buf + 4096, 0, 64);
	ring(&p->a, index, HGHCA_OPCODE_RDMA_WRITE, WRITE_UNITS);
	if (expect(&p->a, index % RAW_WQES, OK, what) && memcmp(ctx.buf, ctx.buf + 4096, 64))
		tb_fail("%s: wrong data", what);
}

/* `build` writes slot 0; the doorbell has opcode and size. */
static void refused(void (*build)(struct pair *p), unsigned int opcode, unsigned int size, uint8_t syndrome)
{
	long before = counter("wqe_bad");
	struct pair p;

	connected(&p);
	build_write(&p, 0);
	if (build)
		build(&p);
	ring(&p.a, 0, opcode, size);
	expect(&p.a, 0, syndrome, "the request");
	expect_state(&p.a, IBV_QPS_ERR, "the requester");
	if (syndrome == HGHCA_SYNDROME_LOCAL_QP_OP_ERR)
		counted("wqe_bad", before, 1);
	build_write(&p, 1);
	ring(&p.a, 1, HGHCA_OPCODE_RDMA_WRITE, WRITE_UNITS);
	expect(&p.a, 1, HGHCA_SYNDROME_WR_FLUSH_ERR, "a request in ERR");
	expect_none(&p.a, "nothing else was posted");
	pair_destroy(&p);
}

static void sound(void)
{
	struct pair p;
	unsigned int i;

	connected(&p);
	for (i = 0; i < 3 * RAW_WQES && !tb_failed(); i++)
		write_works(&p, i, "a sound request");
	pair_destroy(&p);
}

static void two_halves(void)
{
	struct pair p;
	uint64_t bell;

	connected(&p);
	build_write(&p, 0);
	bell = raw_sq_doorbell(p.a.qpn, 0, HGHCA_OPCODE_RDMA_WRITE, WRITE_UNITS, 1);
	((volatile uint32_t *)ctx.uar)[0] = bell;
	((volatile uint32_t *)ctx.uar)[1] = bell >> 32;
	expect(&p.a, 0, OK, "a doorbell in two halves");
	pair_destroy(&p);
}

static void opcode_unknown(void)
{
	static const unsigned int opcodes[] = { 0x01, 0x07, 0x0d, 0x0f, 0x15, 0x17, 0x1b, 0x1f };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(opcodes); i++)
		refused(NULL, opcodes[i], WRITE_UNITS, HGHCA_SYNDROME_LOCAL_QP_OP_ERR);
}

/* Registration of pages by their DMA addresses would give access to all memory. */
static void registration(void)
{
	refused(NULL, HGHCA_OPCODE_REG_MR, REG_UNITS, HGHCA_SYNDROME_LOCAL_QP_OP_ERR);
}

static void opcode_unknown_linked(void)
{
	struct pair p;

	connected(&p);
	build_write(&p, 0);
	build_write(&p, 1);
	raw_put_link(raw_send_slot(&p.a, 0), RAW_STRIDE, 0x1f, WRITE_UNITS);
	ring(&p.a, 0, HGHCA_OPCODE_RDMA_WRITE, WRITE_UNITS);
	expect(&p.a, 0, OK, "the first of the list");
	expect(&p.a, 1, HGHCA_SYNDROME_LOCAL_QP_OP_ERR, "the second, of an unknown opcode");
	expect_state(&p.a, IBV_QPS_ERR, "the requester");
	pair_destroy(&p);
}

/* WQE 0 links to itself, or to a slot other than the next one. */
static void link_elsewhere(void)
{
	static const uint32_t targets[] = { 0, 2 * RAW_STRIDE, (RAW_WQES - 1) * RAW_STRIDE, RAW_WQES * RAW_STRIDE,
					    0xffffffc0, RAW_STRIDE + 64 };
	struct pair p;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(targets); i++) {
		connected(&p);
		build_write(&p, 0);
		build_write(&p, 1);
		raw_put_link(raw_send_slot(&p.a, 0), targets[i], HGHCA_OPCODE_RDMA_WRITE, WRITE_UNITS);
		ring(&p.a, 0, HGHCA_OPCODE_RDMA_WRITE, WRITE_UNITS);
		expect(&p.a, 0, OK, "the first of the list");
		expect(&p.a, 1, HGHCA_SYNDROME_LOCAL_QP_OP_ERR, "the one behind a wrong link");
		expect_state(&p.a, IBV_QPS_ERR, "the requester");
		pair_destroy(&p);
	}
}

/* Every slot links to the next, in a ring: the device executes one queue past sq_head, not more. */
static void link_ring(void)
{
	int64_t limit = tb_now_ms() + TB_WAIT_MS;
	unsigned int i, done = 0;
	struct raw_wc wc = {};
	struct pair p;

	connected(&p);
	for (i = 0; i < RAW_WQES; i++) {
		build_write(&p, i);
		raw_put_link(raw_send_slot(&p.a, i), (i + 1) % RAW_WQES * RAW_STRIDE, HGHCA_OPCODE_RDMA_WRITE,
			     WRITE_UNITS);
	}
	ring(&p.a, 0, HGHCA_OPCODE_RDMA_WRITE, WRITE_UNITS);
	while (tb_now_ms() < limit && wc.syndrome == OK) {
		if (!raw_cq_poll(&p.a.cq, &wc))
			continue;
		done += wc.syndrome == OK;
	}
	if (wc.syndrome != HGHCA_SYNDROME_LOCAL_QP_OP_ERR)
		tb_fail("the loop ended with syndrome 0x%02x after %u requests", wc.syndrome, done);
	if (done < RAW_WQES || done > RAW_WQES + 1)
		tb_fail("%u requests of the loop were executed, expected %u", done, RAW_WQES);
	expect_state(&p.a, IBV_QPS_ERR, "the requester");
	pair_destroy(&p);
}

static void size_over_slot(void)
{
	refused(NULL, HGHCA_OPCODE_RDMA_WRITE, RAW_UNITS + 1, HGHCA_SYNDROME_LOCAL_QP_OP_ERR);
	refused(NULL, HGHCA_OPCODE_RDMA_WRITE, 63, HGHCA_SYNDROME_LOCAL_QP_OP_ERR);
	refused(NULL, HGHCA_OPCODE_SEND, 255, HGHCA_SYNDROME_LOCAL_QP_OP_ERR);
}

static void size_below_units(void)
{
	refused(NULL, HGHCA_OPCODE_RDMA_WRITE, 1, HGHCA_SYNDROME_LOCAL_QP_OP_ERR);
	refused(NULL, HGHCA_OPCODE_RDMA_READ, 1, HGHCA_SYNDROME_LOCAL_QP_OP_ERR);
	refused(NULL, HGHCA_OPCODE_ATOMIC_FA, 2, HGHCA_SYNDROME_LOCAL_QP_OP_ERR);
}

static void put_inline(struct pair *p, uint32_t bytes)
{
	uint32_t word = htole32(HGHCA_INLINE_FLAG | bytes);

	memcpy((uint8_t *)raw_send_slot(&p->a, 0) + 32, &word, 4);
}

static void inline_short(struct pair *p)	{ put_inline(p, 12); }
static void inline_long(struct pair *p)		{ put_inline(p, 13); }
static void inline_huge(struct pair *p)		{ put_inline(p, 0x7fffffff); }

static void inline_over_slot(void)
{
	refused(inline_long, HGHCA_OPCODE_RDMA_WRITE, WRITE_UNITS, HGHCA_SYNDROME_LOCAL_QP_OP_ERR);
	refused(inline_huge, HGHCA_OPCODE_RDMA_WRITE, WRITE_UNITS, HGHCA_SYNDROME_LOCAL_QP_OP_ERR);
	refused(inline_huge, HGHCA_OPCODE_RDMA_WRITE, RAW_UNITS, HGHCA_SYNDROME_LOCAL_QP_OP_ERR);
}

static void inline_read(void)
{
	refused(inline_short, HGHCA_OPCODE_RDMA_READ, WRITE_UNITS, HGHCA_SYNDROME_LOCAL_QP_OP_ERR);
}

static void atomic_of(struct pair *p, uint32_t bytes)
{
	void *slot = raw_send_slot(&p->a, 0);

	memset((uint8_t *)slot + 32, 0, 16);
	raw_put_data(slot, 3, ctx.buf, bytes, ctx.mr.lkey);
}

static void atomic_of_4(struct pair *p)		{ atomic_of(p, 4); }
static void atomic_of_16(struct pair *p)	{ atomic_of(p, 16); }

static void atomic_size(void)
{
	refused(NULL, HGHCA_OPCODE_ATOMIC_FA, 3, HGHCA_SYNDROME_LOCAL_LENGTH_ERR);
	refused(atomic_of_4, HGHCA_OPCODE_ATOMIC_FA, 4, HGHCA_SYNDROME_LOCAL_LENGTH_ERR);
	refused(atomic_of_16, HGHCA_OPCODE_ATOMIC_CS, 4, HGHCA_SYNDROME_LOCAL_LENGTH_ERR);
}

/* Two entries of 2^31 - 1 bytes each. */
static void huge_message(struct pair *p)
{
	void *slot = raw_send_slot(&p->a, 0);

	raw_put_data(slot, 2, ctx.buf, 0x7fffffff, ctx.mr.lkey);
	raw_put_data(slot, 3, ctx.buf, 0x7fffffff, ctx.mr.lkey);
}

static void message_too_long(void)
{
	refused(huge_message, HGHCA_OPCODE_RDMA_WRITE, 4, HGHCA_SYNDROME_LOCAL_LENGTH_ERR);
}

static void sge_outside(struct pair *p)
{
	raw_put_data(raw_send_slot(&p->a, 0), 2, ctx.buf + RAW_BUF_BYTES - 63, 64, ctx.mr.lkey);
}

static void sge_of_the_queue_itself(struct pair *p)
{
	raw_put_data(raw_send_slot(&p->a, 0), 2, p->a.queues, 64, ctx.mr.lkey);
}

static void sge_bad(void)
{
	refused(sge_outside, HGHCA_OPCODE_RDMA_WRITE, WRITE_UNITS, HGHCA_SYNDROME_LOCAL_PROT_ERR);
	refused(sge_of_the_queue_itself, HGHCA_OPCODE_RDMA_WRITE, WRITE_UNITS, HGHCA_SYNDROME_LOCAL_PROT_ERR);
}

static void head_ahead(void)
{
	static const unsigned int heads[] = { 5, RAW_WQES, 0x7fff };
	struct pair p;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(heads); i++) {
		connected(&p);
		build_write(&p, 0);
		ring(&p.a, heads[i], HGHCA_OPCODE_RDMA_WRITE, WRITE_UNITS);
		expect(&p.a, 0, HGHCA_SYNDROME_LOCAL_QP_OP_ERR, "a head that cannot be reached");
		expect_state(&p.a, IBV_QPS_ERR, "the requester");
		pair_destroy(&p);
	}
}

static void head_passed(void)
{
	struct pair p;

	connected(&p);
	write_works(&p, 0, "the first request");
	write_works(&p, 1, "the second request");
	ring(&p.a, 0, HGHCA_OPCODE_RDMA_WRITE, WRITE_UNITS);
	ring(&p.a, 1, HGHCA_OPCODE_RDMA_WRITE, WRITE_UNITS);
	expect_none(&p.a, "doorbells for what is done");
	write_works(&p, 2, "the third request");
	pair_destroy(&p);
}

static void doorbell_size_0(void)
{
	struct pair p;

	connected(&p);
	build_write(&p, 0);
	ring(&p.a, 0, HGHCA_OPCODE_RDMA_WRITE, 0);
	expect_none(&p.a, "a doorbell that asks for no send");
	write_works(&p, 0, "the request itself");
	pair_destroy(&p);
}

static void doorbell_early(void)
{
	long before = counter("db_bad_state");
	struct pair p;

	pair_create(&p);
	build_write(&p, 0);
	ring(&p.a, 0, HGHCA_OPCODE_RDMA_WRITE, WRITE_UNITS);
	raw_qp_to_init(&p.a);
	ring(&p.a, 0, HGHCA_OPCODE_RDMA_WRITE, WRITE_UNITS);
	expect_none(&p.a, "doorbells in RESET and INIT");
	pair_to_rtr(&p);
	ring(&p.a, 0, HGHCA_OPCODE_RDMA_WRITE, WRITE_UNITS);
	expect_none(&p.a, "a doorbell in RTR");
	/* In RESET the device may not have the QP. */
	if (*counters && (counter("db_bad_state") < before + 2 || counter("db_bad_state") > before + 3))
		tb_fail("counter db_bad_state rose by %ld", counter("db_bad_state") - before);
	raw_qp_to_rts(&p.a);
	raw_qp_to_rts(&p.b);
	expect_none(&p.a, "RTS after doorbells that did not count");
	write_works(&p, 0, "a doorbell in RTS");
	pair_destroy(&p);
}

/* Runs `act` in a child that has opened the device itself, and so has its own UAR page. */
static void in_other_process(void (*act)(struct raw_ctx *other, struct pair *p), struct pair *p)
{
	struct raw_ctx other;
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (!child) {
		raw_open(&other, device);
		if (other.caps.uar_index == ctx.caps.uar_index)
			_exit(3);
		act(&other, p);
		raw_close(&other);
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		tb_fail("the other process ended with status 0x%x", status);
}

static void ring_foreign(struct raw_ctx *other, struct pair *p)
{
	raw_ring(other->uar, raw_sq_doorbell(p->a.qpn, 0, HGHCA_OPCODE_RDMA_WRITE, WRITE_UNITS, 1));
}

static void doorbell_in_other_page(void)
{
	long before = counter("db_bad_page");
	struct pair p;

	connected(&p);
	build_write(&p, 0);
	in_other_process(ring_foreign, &p);
	expect_none(&p.a, "a doorbell in another process's page");
	counted("db_bad_page", before, 1);
	write_works(&p, 0, "the owner's doorbell");
	pair_destroy(&p);
}

static void doorbell_for_others(void)
{
	long page = counter("db_bad_page"), object = counter("db_bad_object");
	struct pair p;

	connected(&p);
	build_write(&p, 0);
	raw_ring(ctx.uar, raw_sq_doorbell(neighbour.a.qp->qp_num, 0, HGHCA_OPCODE_RDMA_WRITE, WRITE_UNITS, 1));
	raw_ring(ctx.uar, raw_sq_doorbell(1, 0, HGHCA_OPCODE_SEND, 4, 1));
	raw_ring(ctx.uar, raw_sq_doorbell(2, 0, HGHCA_OPCODE_SEND, 4, 1));
	counted("db_bad_page", page, 3);
	raw_ring(ctx.uar, raw_sq_doorbell(0xfffff0, 0, HGHCA_OPCODE_SEND, 4, 1));
	raw_ring(ctx.uar, raw_sq_doorbell(0, 0, HGHCA_OPCODE_SEND, 4, 1));
	counted("db_bad_object", object, 2);
	expect_none(&p.a, "doorbells for QPs that are not ours");
	write_works(&p, 0, "our own doorbell");
	pair_destroy(&p);
}

/* Writes of a wrong width or to a wrong offset are not doorbells. */
static void doorbell_malformed(void)
{
	volatile uint8_t *page = ctx.uar;
	struct pair p;
	uint64_t bell;
	size_t offset;
	int i;

	connected(&p);
	build_write(&p, 0);
	bell = raw_sq_doorbell(p.a.qpn, 0, HGHCA_OPCODE_RDMA_WRITE, WRITE_UNITS, 1);
	for (i = 0; i < 8; i++)
		page[i] = bell >> 8 * i;
	for (i = 0; i < 8; i += 2)
		*(volatile uint16_t *)(page + i) = bell >> 8 * i;
	for (offset = 0x28; offset < 4096; offset += 8)
		*(volatile uint64_t *)(page + offset) = bell;
	*(volatile uint64_t *)(page + 0x08) = bell;
	*(volatile uint64_t *)(page + 0x04) = bell;
	expect_none(&p.a, "writes that are no doorbells");
	write_works(&p, 0, "a real doorbell");
	pair_destroy(&p);
}

/* CQ and EQ doorbells with numbers of other contexts, and an own CQ with an invalid consumer index. */
static void arm_malformed(void)
{
	volatile uint64_t *cq_arm = (volatile uint64_t *)((uint8_t *)ctx.uar + HGHCA_UAR_CQ_ARM);
	volatile uint64_t *eq_arm = (volatile uint64_t *)((uint8_t *)ctx.uar + HGHCA_UAR_EQ_ARM);
	struct pair p;
	uint32_t n;

	connected(&p);
	for (n = 0; n < 64; n++) {
		*eq_arm = (uint64_t)(HGHCA_EQ_ARM_ARM << 24 | n) << 32 | 12345;
		*cq_arm = (uint64_t)(HGHCA_CQ_ARM_NEXT << 24 | (n * 7919)) << 32 | n;
	}
	*cq_arm = (uint64_t)(HGHCA_CQ_ARM_NEXT << 24 | p.a.cq.cqn) << 32 | 0x80000000;
	*cq_arm = (uint64_t)(0xff << 24 | p.a.cq.cqn) << 32;
	expect_none(&p.a, "doorbells of CQs and EQs");
	write_works(&p, 0, "a request");
	pair_destroy(&p);
}

static void build_recv(struct raw_qp *qp, unsigned int index, uint32_t bytes, uint32_t lkey)
{
	uint8_t *slot = raw_recv_slot(qp, index);

	memset(slot, 0, RAW_STRIDE);
	raw_put_data(slot, 1, ctx.buf + 8192, bytes, lkey);
	raw_put_data(slot, 2, NULL, 0, HGHCA_INVALID_LKEY);
}

static void send_one(struct pair *p, unsigned int index)
{
	uint8_t *slot = raw_send_slot(&p->a, index);

	memset(slot, 0, RAW_STRIDE);
	raw_put_next(slot, SIGNALED);
	raw_put_data(slot, 1, ctx.buf, 64, ctx.mr.lkey);
	ring(&p->a, index, HGHCA_OPCODE_SEND, 2);
}

static void receive_inline(void)
{
	struct pair p;
	uint32_t word = htole32(HGHCA_INLINE_FLAG | 64);

	connected(&p);
	build_recv(&p.b, 0, 64, ctx.mr.lkey);
	memcpy((uint8_t *)raw_recv_slot(&p.b, 0) + 16, &word, 4);
	p.b.dbr->rq_head = htole32(1);
	send_one(&p, 0);
	expect(&p.b, 0, HGHCA_SYNDROME_LOCAL_QP_OP_ERR, "a receive with inline data");
	expect(&p.a, 0, HGHCA_SYNDROME_REMOTE_OP_ERR, "the send to it");
	pair_destroy(&p);
}

/* rq_head counts more receives than the queue has slots: the device uses no receive. */
static void receive_head_absurd(void)
{
	static const unsigned int heads[] = { RAW_WQES + 1, 20000, 0x8000, 0xffff };
	struct pair p;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(heads); i++) {
		connected(&p);
		build_recv(&p.b, 0, 64, ctx.mr.lkey);
		p.b.dbr->rq_head = htole32(heads[i]);
		send_one(&p, 0);
		expect(&p.a, 0, HGHCA_SYNDROME_RNR_RETRY_EXC_ERR, "a send to a receive queue with an absurd record");
		expect_state(&p.b, IBV_QPS_RTS, "the responder");
		pair_destroy(&p);
	}
}

static void receive_head_full(void)
{
	struct pair p;
	unsigned int i;

	connected(&p);
	for (i = 0; i < RAW_WQES; i++)
		build_recv(&p.b, i, 64, ctx.mr.lkey);
	p.b.dbr->rq_head = htole32(RAW_WQES);
	for (i = 0; i < RAW_WQES && !tb_failed(); i++) {
		send_one(&p, i);
		expect(&p.a, i, OK, "a send");
		expect(&p.b, i, OK, "its receive");
	}
	send_one(&p, i);
	expect(&p.a, i % RAW_WQES, HGHCA_SYNDROME_RNR_RETRY_EXC_ERR, "a send more than there are receives");
	pair_destroy(&p);
}

/* The consumer index in the record is invalid; only this CQ may be affected. */
static void cq_record_absurd(void)
{
	struct pair p;

	connected(&p);
	p.a.cq.dbr->consumer_index = htole32(0x80000001);
	build_write(&p, 0);
	ring(&p.a, 0, HGHCA_OPCODE_RDMA_WRITE, WRITE_UNITS);
	tb_check_traffic(&neighbour, "the neighbour");
	pair_destroy(&p);
}

static uint64_t seed;

static uint64_t noise(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static void fuzz_slots(struct raw_qp *qp)
{
	uint64_t *queue = (uint64_t *)qp->queues;
	size_t i;

	for (i = 0; i < 2 * RAW_WQES * RAW_STRIDE / 8; i++) {
		queue[i] = noise();
		if (noise() % 4 == 0)
			queue[i] = (uint64_t)ctx.mr.lkey << 32 | noise() % 128;
		if (noise() % 4 == 0)
			queue[i] = (uintptr_t)ctx.buf + noise() % RAW_BUF_BYTES;
	}
}

/* Random WQEs, records and doorbells of every kind in the own UAR page. */
static void fuzz(void)
{
	struct pair p;
	int round, i;

	seed = 0x9e3779b97f4a7c15;
	for (round = 0; round < FUZZ_ROUNDS && !tb_failed(); round++) {
		connected(&p);
		fuzz_slots(&p.a);
		fuzz_slots(&p.b);
		p.a.dbr->rq_head = noise();
		p.b.dbr->rq_head = noise();
		for (i = 0; i < 8; i++) {
			ring(noise() % 2 ? &p.a : &p.b, i, noise() % 32, noise() % (RAW_UNITS + 2));
			((volatile uint64_t *)ctx.uar)[noise() % 512] = noise();
		}
		if (round % 50 == 0)
			tb_check_traffic(&neighbour, "the neighbour");
		pair_destroy(&p);
		if (tb_failed())
			tb_fail("in round %d", round);
	}
}

static void map_elsewhere(uint64_t offset, size_t bytes, int protection, const char *what)
{
	void *page = mmap(NULL, bytes, protection, MAP_SHARED, ctx.fd, offset);

	if (page == MAP_FAILED)
		return;
	tb_fail("mmap of %s was allowed", what);
	munmap(page, bytes);
}

static void mmap_refused(void)
{
	uint64_t own = ctx.caps.uar_mmap_offset;
	int i;

	for (i = 1; i < 16; i++)
		map_elsewhere(own + i * 4096, 4096, PROT_WRITE, "a page behind our own");
	if (own >= 4096)
		map_elsewhere(own - 4096, 4096, PROT_WRITE, "the page before our own");
	if (own)
		map_elsewhere(0, 4096, PROT_WRITE, "offset 0");
	map_elsewhere(own, 8192, PROT_WRITE, "two pages");
	map_elsewhere(own, 4096, PROT_WRITE | PROT_EXEC, "an executable page");
}

/* The creation of a QP or CQ with wrong driver data is refused, and leaves nothing allocated. */
struct qp_fault {
	const char *what;
	void (*spoil)(struct hghca_create_qp *driver);
};

static void stride_small(struct hghca_create_qp *d)	{ d->log_sq_stride = 5; }
static void stride_large(struct hghca_create_qp *d)	{ d->log_sq_stride = 11; }
static void rq_stride_small(struct hghca_create_qp *d)	{ d->log_rq_stride = 0; }
static void rq_stride_large(struct hghca_create_qp *d)	{ d->log_rq_stride = 255; }
static void count_odd(struct hghca_create_qp *d)	{ d->sq_wqe_cnt = 17; }
static void count_large(struct hghca_create_qp *d)	{ d->sq_wqe_cnt = 32768; }
static void count_wraps(struct hghca_create_qp *d)	{ d->rq_wqe_cnt = 1U << 31; }
static void count_small(struct hghca_create_qp *d)	{ d->sq_wqe_cnt = RAW_WQES / 2; }
static void buf_crooked(struct hghca_create_qp *d)	{ d->buf_addr += 64; }
static void buf_gone(struct hghca_create_qp *d)		{ d->buf_addr = 0x1000; }
static void buf_kernel(struct hghca_create_qp *d)	{ d->buf_addr = 0xffff888000000000; }
static void dbr_crooked(struct hghca_create_qp *d)	{ d->dbr_addr += 4; }
static void dbr_gone(struct hghca_create_qp *d)		{ d->dbr_addr = 0x1000; }
static void reserved_set(struct hghca_create_qp *d)	{ d->reserved[1] = 1; }
static void flag_unknown(struct hghca_create_qp *d)	{ d->flags = 1U << 31; }
/* This HCA has no such operations. */
static void flag_vendor_ops(struct hghca_create_qp *d)	{ d->flags = HGHCA_CREATE_QP_VENDOR_OPS; }

static void create_qp_refused(void)
{
	static const struct qp_fault faults[] = {
		{ "SQ stride 32", stride_small }, { "SQ stride 2048", stride_large },
		{ "RQ stride 1", rq_stride_small }, { "RQ stride 2^255", rq_stride_large },
		{ "17 WQEs", count_odd }, { "32768 WQEs", count_large }, { "2^31 WQEs", count_wraps },
		{ "fewer WQEs than asked for", count_small }, { "a crooked buffer", buf_crooked },
		{ "a buffer that is not there", buf_gone }, { "a buffer in the kernel", buf_kernel },
		{ "a crooked record", dbr_crooked }, { "a record that is not there", dbr_gone },
		{ "a reserved byte set", reserved_set }, { "an unknown flag", flag_unknown },
		{ "manufacturer-specific operations", flag_vendor_ops },
	};
	struct hghca_create_qp driver;
	struct raw_qp good;
	uint32_t handle, qpn;
	size_t i;

	raw_qp_create(&good, &ctx);
	for (i = 0; i < ARRAY_SIZE(faults); i++) {
		driver = raw_qp_driver_data(&good);
		faults[i].spoil(&driver);
		if (raw_try_create_qp(&ctx, &good.cq, &driver, sizeof(driver), &handle, &qpn))
			continue;
		tb_fail("a QP with %s was made", faults[i].what);
		raw_destroy_qp_handle(&ctx, handle);
	}
	driver = raw_qp_driver_data(&good);
	if (!raw_try_create_qp(&ctx, &good.cq, &driver, 16, &handle, &qpn))
		tb_fail("a QP with half the driver's data was made");
	raw_qp_destroy(&good);
}

static void create_cq_refused(void)
{
	struct {
		struct hghca_create_cq known;
		uint64_t unknown;
	} longer = {};
	struct hghca_create_cq good, bad;
	uint8_t *pages = raw_pages(65536);
	uint32_t handle;

	good = (struct hghca_create_cq) { .buf_addr = (uintptr_t)pages, .dbr_addr = (uintptr_t)pages + 32768 };
	bad = good;
	bad.buf_addr = 0x1000;
	if (!raw_try_create_cq(&ctx, 63, &bad, sizeof(bad), &handle))
		tb_fail("a CQ in memory that is not there was made");
	bad = good;
	bad.dbr_addr += 2;
	if (!raw_try_create_cq(&ctx, 63, &bad, sizeof(bad), &handle))
		tb_fail("a CQ with a crooked record was made");
	bad = good;
	bad.dbr_addr = 0x1000;
	if (!raw_try_create_cq(&ctx, 63, &bad, sizeof(bad), &handle))
		tb_fail("a CQ with a record that is not there was made");
	if (!raw_try_create_cq(&ctx, 63, &good, 8, &handle))
		tb_fail("a CQ with half the driver's data was made");
	longer.known = good;
	longer.unknown = 1;
	if (!raw_try_create_cq(&ctx, 63, (struct hghca_create_cq *)&longer, sizeof(longer), &handle))
		tb_fail("a CQ with driver data that is not known was made");
	longer.unknown = 0;
	if (raw_try_create_cq(&ctx, 63, (struct hghca_create_cq *)&longer, sizeof(longer), &handle))
		tb_fail("a CQ with trailing zeros was refused");
	else if (raw_destroy_cq_handle(&ctx, handle))
		tb_fail("a CQ could not be destroyed");
	munmap(pages, 65536);
}

/* The program unmaps the memory of the queues: the pages stay pinned. */
static void queues_unmapped(void)
{
	uint8_t *hole;
	struct pair p;

	connected(&p);
	write_works(&p, 0, "before");
	hole = mmap(raw_send_slot(&p.a, 0), 4096, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (hole == MAP_FAILED)
		tb_die("mmap");
	build_write(&p, 1);
	ring(&p.a, 1, HGHCA_OPCODE_RDMA_WRITE, WRITE_UNITS);
	tb_check_traffic(&neighbour, "the neighbour");
	pair_destroy(&p);
}

static void check_neighbour(void)
{
	tb_check_traffic(&neighbour, "the neighbour");
}

static const struct tb_case cases[] = {
	{ "valid requests", sound },
	{ "doorbell in two halves", two_halves },
	{ "unknown opcodes", opcode_unknown },
	{ "unknown opcode, linked", opcode_unknown_linked },
	{ "registration by DMA addresses", registration },
	{ "link to a wrong slot", link_elsewhere },
	{ "chain that loops", link_ring },
	{ "size over the slot", size_over_slot },
	{ "size below the units", size_below_units },
	{ "inline data over the slot", inline_over_slot },
	{ "inline data in a read", inline_read },
	{ "atomic not of 8 bytes", atomic_size },
	{ "message too long", message_too_long },
	{ "SGE outside its MR", sge_bad },
	{ "head that cannot be reached", head_ahead },
	{ "head that was passed", head_passed },
	{ "doorbell that asks for no send", doorbell_size_0 },
	{ "doorbells in RESET, INIT and RTR", doorbell_early },
	{ "doorbell in another process's page", doorbell_in_other_page },
	{ "doorbells for QPs not ours", doorbell_for_others },
	{ "writes that are no doorbells", doorbell_malformed },
	{ "arming what is not ours", arm_malformed },
	{ "receive with inline data", receive_inline },
	{ "absurd receive record", receive_head_absurd },
	{ "full receive queue", receive_head_full },
	{ "absurd CQ record", cq_record_absurd },
	{ "queue memory unmapped", queues_unmapped },
	{ "mmap of other pages", mmap_refused },
	{ "QPs with wrong driver data", create_qp_refused },
	{ "CQs with wrong driver data", create_cq_refused },
	{ "random descriptors and doorbells", fuzz },
};

int main(int argc, char **argv)
{
	struct tb_opts opts = tb_pair_defaults();
	int status;

	if (argc < 4) {
		fprintf(stderr, "usage: badwqe DEVICE GID-INDEX COUNTERS [CASE...]\n");
		return 2;
	}
	device = argv[1];
	counters = argv[3];
	tb_side_open(&side, device, atoi(argv[2]), NULL);
	tb_pair_create(&neighbour, &side, &side, &opts);
	raw_open(&ctx, device);
	status = tb_run(cases, ARRAY_SIZE(cases), argc - 4, argv + 4, check_neighbour);
	raw_close(&ctx);
	tb_pair_destroy(&neighbour);
	return status;
}
