// SPDX-License-Identifier: GPL-2.0-or-later
/* Doorbells for objects of another process, and UAR pages of another process. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "isolation.h"

#define QPNS		65536
#define CQNS		131072
#define EQNS		256

/* A QP of the owner with an RDMA WRITE in its queue, without a doorbell. */
struct victim {
	struct iso_link link;
	uint32_t qpn;		/* the board's, before */
};

static void victim_create(struct victim *v)
{
	v->qpn = iso.board->qpn;
	iso_link_create(&v->link, &iso.ctx, IBV_QPT_RC, NULL);
	iso_link_connect(&v->link);
	memset(iso.ctx.buf, 0x21, WQE_BYTES);
	memset(iso.ctx.buf + PAGE_BYTES, 0, WQE_BYTES);
	iso_build_write(&v->link.a, 0, iso.ctx.buf, iso.ctx.mr.lkey, (uintptr_t)iso.ctx.buf + PAGE_BYTES,
			iso.ctx.mr.rkey);
	iso.board->qpn = v->link.a.qpn;
}

/* The QP has not sent; the doorbell of the owner sends the WRITE. */
static void victim_check(struct victim *v)
{
	struct raw_wc wc;

	iso_traffic();
	if (raw_cq_poll(&v->link.a.cq, &wc))
		tb_fail("the owner's request was completed, syndrome 0x%02x", wc.syndrome);
	if (iso.ctx.buf[PAGE_BYTES])
		tb_fail("the owner's request was executed");
	if (raw_qp_state(&v->link.a) != IBV_QPS_RTS)
		tb_fail("the owner's QP has left RTS");
	iso_ring(&v->link.a, 0, HGHCA_OPCODE_RDMA_WRITE, WRITE_UNITS);
	raw_expect(&v->link.a, 0, 0, "the owner's doorbell");
	iso.board->qpn = v->qpn;
	iso_link_destroy(&v->link);
}

static uint64_t sq_bell(uint32_t qpn)
{
	return raw_sq_doorbell(qpn, 0, HGHCA_OPCODE_RDMA_WRITE, WRITE_UNITS, 1);
}

static uint64_t arm_bell(uint32_t command, uint32_t number, uint32_t consumer)
{
	return (uint64_t)(command << 24 | number) << 32 | consumer;
}

static void write_at(struct raw_ctx *own, size_t offset, uint64_t value)
{
	*(volatile uint64_t *)((uint8_t *)own->uar + offset) = htole64(value);
}

/* Whole, and in two halves with other things between. */
static void ring_the_qp(struct raw_ctx *own)
{
	volatile uint32_t *words = own->uar;
	uint64_t bell = sq_bell(iso.board->qpn);

	raw_ring(own->uar, bell);
	words[0] = bell;
	words[HGHCA_UAR_CQ_ARM / 4] = 0;
	words[HGHCA_UAR_EQ_ARM / 4] = bell;
	words[1] = bell >> 32;
	iso.board->step++;
}

static void qp_rung(void)
{
	long before = iso_counter("db_bad_page");
	struct victim v;

	victim_create(&v);
	iso_intrude(ring_the_qp);
	iso_counted("db_bad_page", before, 2);
	victim_check(&v);
}

/* The doorbell, at every offset of the page, in every width. */
static void ring_everywhere(struct raw_ctx *own)
{
	volatile uint8_t *page = own->uar;
	uint64_t bells[] = { sq_bell(iso.board->qpn), arm_bell(HGHCA_CQ_ARM_NEXT, iso.board->cqn, 0),
			     arm_bell(HGHCA_EQ_ARM_ARM, 1, 0) };
	size_t i, at;

	for (i = 0; i < ARRAY_SIZE(bells); i++) {
		for (at = 0; at < PAGE_BYTES; at++)
			page[at] = bells[i] >> at % 8 * 8;
		for (at = 0; at + 2 <= PAGE_BYTES; at++)
			*(volatile uint16_t *)(page + at) = bells[i] >> at % 8 * 8;
		for (at = 0; at + 4 <= PAGE_BYTES; at++)
			*(volatile uint32_t *)(page + at) = bells[i] >> at % 8 * 8;
		for (at = 0; at + 8 <= PAGE_BYTES; at++)
			*(volatile uint64_t *)(page + at) = bells[i];
		iso.board->step++;
	}
}

static void page_rung(void)
{
	struct victim v;

	victim_create(&v);
	iso_intrude(ring_everywhere);
	victim_check(&v);
}

static void ring_every_qpn(struct raw_ctx *own)
{
	uint32_t qpn;

	for (qpn = 0; qpn < QPNS; qpn++)
		raw_ring(own->uar, sq_bell(qpn));
	iso.board->step++;
}

/* Each doorbell is counted as refused: the QP does not exist, or it has another UAR page. */
static void every_qpn(void)
{
	long page = iso_counter("db_bad_page"), object = iso_counter("db_bad_object");
	struct victim v;

	victim_create(&v);
	iso_intrude(ring_every_qpn);
	page = iso_counter("db_bad_page") - page;
	object = iso_counter("db_bad_object") - object;
	if (page + object != QPNS)
		tb_fail("of %d doorbells %ld found no QP and %ld another's", QPNS, object, page);
	/* At least the QPs of this program: two each of 5 pairs. */
	if (page < 10)
		tb_fail("%ld QPs were there, not even the owner's", page);
	victim_check(&v);
}

/* ---- CQs: arming one would wake the owner without need, or lose an arming by the owner */

/* A pair whose receives make events on a channel. */
struct watched {
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct tb_pair pair;
};

static void watched_create(struct watched *w)
{
	struct tb_opts opts = tb_pair_defaults();

	w->channel = ibv_create_comp_channel(iso.side.ctx);
	w->cq = w->channel ? ibv_create_cq(iso.side.ctx, 64, NULL, w->channel, 0) : NULL;
	if (!w->cq || fcntl(w->channel->fd, F_SETFL, O_NONBLOCK))
		tb_die("a CQ with events");
	opts.recv_cq = w->cq;
	tb_pair_create(&w->pair, &iso.side, &iso.side, &opts);
}

static void watched_destroy(struct watched *w)
{
	tb_pair_destroy(&w->pair);
	if (ibv_destroy_cq(w->cq) || ibv_destroy_comp_channel(w->channel))
		tb_die("taking down a CQ");
}

/* Returns the number of events, after a time for outstanding ones. */
static int events_of(struct watched *w, bool expected)
{
	struct pollfd pfd = { .fd = w->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;
	int count = 0;

	poll(&pfd, 1, expected ? TB_WAIT_MS : 300);
	while (!ibv_get_cq_event(w->channel, &cq, &context)) {
		ibv_ack_cq_events(cq, 1);
		count++;
	}
	return count;
}

static void watched_expect(struct watched *w, int events, const char *what)
{
	int found;

	tb_check_traffic(&w->pair, what);
	found = events_of(w, events);
	if (found != events)
		tb_fail("%s: %d events, expected %d", what, found, events);
}

static void arm_every_cq(struct raw_ctx *own)
{
	static const uint32_t consumers[] = { 0, 0x7fffffff };
	uint32_t cqn, i;

	for (i = 0; i < ARRAY_SIZE(consumers); i++)
		for (cqn = 0; cqn < CQNS; cqn++)
			write_at(own, HGHCA_UAR_CQ_ARM, arm_bell(HGHCA_CQ_ARM_NEXT, cqn, consumers[i]));
	for (cqn = 0; cqn < CQNS; cqn++)
		write_at(own, HGHCA_UAR_CQ_ARM, arm_bell(HGHCA_CQ_ARM_SOLICITED, cqn, 0));
	iso.board->step++;
}

static void arm_every_eq(struct raw_ctx *own)
{
	uint32_t eqn;

	for (eqn = 0; eqn < EQNS; eqn++) {
		write_at(own, HGHCA_UAR_EQ_ARM, arm_bell(HGHCA_EQ_ARM_UPDATE, eqn, 0x12345678));
		write_at(own, HGHCA_UAR_EQ_ARM, arm_bell(HGHCA_EQ_ARM_ARM, eqn, 0x12345678));
	}
	iso.board->step++;
}

static void cqs_armed(void)
{
	long page = iso_counter("db_bad_page"), object = iso_counter("db_bad_object");
	struct watched w;

	watched_create(&w);
	watched_expect(&w, 0, "a CQ that is not armed");
	iso_intrude(arm_every_cq);
	page = iso_counter("db_bad_page") - page;
	object = iso_counter("db_bad_object") - object;
	if (page + object != 3 * CQNS || page < 3 * 10)
		tb_fail("of %d doorbells %ld found no CQ and %ld another's", 3 * CQNS, object, page);
	watched_expect(&w, 0, "a CQ that another process armed");
	if (ibv_req_notify_cq(w.cq, 0))
		tb_fail("ibv_req_notify_cq");
	iso_intrude(arm_every_cq);
	if (events_of(&w, false))
		tb_fail("an event without a completion");
	watched_expect(&w, 1, "a CQ that its owner armed");
	watched_destroy(&w);
}

static void eqs_armed(void)
{
	long before = iso_counter("db_bad_page");
	struct watched w;
	int i;

	watched_create(&w);
	iso_intrude(arm_every_eq);
	iso_counted("db_bad_page", before, 2 * EQNS);
	/* The EQ reports more than one event. */
	for (i = 0; i < 3; i++) {
		if (ibv_req_notify_cq(w.cq, 0))
			tb_fail("ibv_req_notify_cq");
		watched_expect(&w, 1, "a CQ that its owner armed");
	}
	watched_destroy(&w);
}

/* ---- pages */

static void map_refused(struct raw_ctx *own, uint64_t offset, size_t bytes, int protection, int flags, int expected,
			const char *what)
{
	void *page = mmap(NULL, bytes, protection, flags, own->fd, offset);

	if (page == MAP_FAILED) {
		if (errno != expected)
			tb_fail("mmap of %s at 0x%llx: %s", what, (unsigned long long)offset, strerror(errno));
		return;
	}
	tb_fail("mmap of %s at 0x%llx was allowed", what, (unsigned long long)offset);
	munmap(page, bytes);
}

static void map_others(struct raw_ctx *own)
{
	const uint64_t mine = own->caps.uar_mmap_offset;
	const uint64_t far[] = { (uint64_t)iso.board->uar_index * PAGE_BYTES, 0xfe000000, 1ULL << 32, 1ULL << 44,
				 1ULL << 50, (1ULL << 63) - PAGE_BYTES };
	uint64_t offset;
	size_t i;

	for (offset = 0; offset < 4096 * PAGE_BYTES; offset += PAGE_BYTES)
		if (offset != mine)
			map_refused(own, offset, PAGE_BYTES, PROT_WRITE, MAP_SHARED, EINVAL, "another page");
	for (i = 0; i < ARRAY_SIZE(far); i++)
		if (far[i] != mine)
			map_refused(own, far[i], PAGE_BYTES, PROT_WRITE, MAP_SHARED, EINVAL, "a page far away");
	for (i = 2; i <= 2048; i *= 2)
		map_refused(own, mine, i * PAGE_BYTES, PROT_WRITE, MAP_SHARED, EINVAL, "our page and others");
	map_refused(own, mine, PAGE_BYTES, PROT_WRITE, MAP_PRIVATE, EINVAL, "our page, private");
	map_refused(own, mine, PAGE_BYTES, PROT_READ, MAP_PRIVATE, EINVAL, "our page, private and read");
	map_refused(own, mine, PAGE_BYTES, PROT_EXEC, MAP_SHARED, EPERM, "our page, to be executed");
	map_refused(own, mine, PAGE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED, EPERM,
		    "our page, to be executed too");
	iso.board->step++;
}

/* The mapping cannot be extended. */
static void stretch_page(struct raw_ctx *own)
{
	volatile uint32_t *words;
	void *page;
	int i;

	if (!mprotect(own->uar, PAGE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC))
		tb_fail("the page was made executable");
	page = mremap(own->uar, PAGE_BYTES, 2 * PAGE_BYTES, MREMAP_MAYMOVE);
	if (page != MAP_FAILED)
		tb_fail("the page was stretched");
	page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, own->fd, own->caps.uar_mmap_offset);
	if (page == MAP_FAILED)
		tb_fail("our own page cannot be mapped a second time");
	words = page;
	for (i = 0; page != MAP_FAILED && i < PAGE_BYTES / 4; i++)
		if (words[i] && i != HGHCA_UAR_CLOCK / 4 && i != HGHCA_UAR_CLOCK / 4 + 1)
			tb_fail("word %d of the page reads 0x%x", i, words[i]);
	if (page != MAP_FAILED)
		munmap(page, PAGE_BYTES);
	iso.board->step++;
}

static void others_mapped(void)
{
	iso_intrude(map_others);
	iso_intrude(stretch_page);
}

/* Leaves a QP with a WQE in its queue, and half of a doorbell in its page. */
static void leave_page(struct raw_ctx *own)
{
	struct iso_link l;

	iso_link_create(&l, own, IBV_QPT_RC, NULL);
	iso_link_connect(&l);
	iso_build_write(&l.a, 0, own->buf, own->mr.lkey, (uintptr_t)own->buf + PAGE_BYTES, own->mr.rkey);
	iso.board->uar_index = own->caps.uar_index;
	iso.board->left_qpn = l.a.qpn;
	((volatile uint32_t *)own->uar)[0] = sq_bell(l.a.qpn);
}

/* Gets the same page, and the number of the QP whose doorbell was half written. */
static void take_page(struct raw_ctx *own)
{
	uint64_t bell = sq_bell(iso.board->left_qpn);
	struct iso_link l;

	if (own->caps.uar_index != iso.board->uar_index)
		tb_fail("the page is number %u, not %u", own->caps.uar_index, iso.board->uar_index);
	((volatile uint32_t *)own->uar)[1] = bell >> 32;
	raw_ring(own->uar, bell);
	iso_link_create(&l, own, IBV_QPT_RC, NULL);
	if (l.a.qpn == iso.board->left_qpn)
		tb_fail("QP 0x%x came back at once", l.a.qpn);
	iso_link_connect(&l);
	iso_build_write(&l.a, 0, own->buf, own->mr.lkey, (uintptr_t)own->buf + PAGE_BYTES, own->mr.rkey);
	iso_ring(&l.a, 0, HGHCA_OPCODE_RDMA_WRITE, WRITE_UNITS);
	raw_expect(&l.a, 0, 0, "a QP of the page's new owner");
	iso_link_destroy(&l);
}

static void page_handed_on(void)
{
	uint32_t index = iso.board->uar_index;
	long before;
	int i;

	for (i = 0; i < 3; i++) {
		iso_intrude(leave_page);
		before = iso_counter("db_bad_object");
		iso_intrude(take_page);
		iso_counted("db_bad_object", before, 2);
	}
	iso.board->uar_index = index;
}

static void killed(void)
{
	static iso_act *const acts[] = { ring_the_qp, ring_everywhere, ring_every_qpn, arm_every_cq, arm_every_eq,
					 map_others, stretch_page };
	struct victim v;
	size_t i;

	victim_create(&v);
	for (i = 0; i < ARRAY_SIZE(acts); i++)
		iso_kill_amidst(acts[i], 3);
	victim_check(&v);
}

const struct tb_case iso_doorbell_cases[] = {
	{ "doorbells: of the owner's QP", qp_rung },
	{ "doorbells: everywhere in the page, in every width", page_rung },
	{ "doorbells: of every QP number", every_qpn },
	{ "doorbells: of every CQ number", cqs_armed },
	{ "doorbells: of every EQ number", eqs_armed },
	{ "pages: mmap of any other", others_mapped },
	{ "pages: handed on to another process", page_handed_on },
	{ "doorbells: killed amidst", killed },
};
const size_t iso_doorbell_count = ARRAY_SIZE(iso_doorbell_cases);
