// SPDX-License-Identifier: GPL-2.0-or-later
/* Keys of another process, in every field of a work request that contains a key. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "isolation.h"

#define SCANNED_INDEXES		256	/* of MPTs, from 1 on; each with every tag */
#define TAGS			256
#define LIST			8	/* requests per doorbell */

/* Keys that an intruder tries, with an address that each could access. */
static uint32_t key_of(unsigned int i)
{
	const uint32_t keys[] = { iso.board->region, iso.board->bindable, iso.board->windows[0],
				  iso.board->windows[1] };

	return i < ARRAY_SIZE(keys) ? keys[i] : 0;
}

static void put_send(struct raw_qp *qp, unsigned int index, const void *from, uint32_t lkey)
{
	uint8_t *slot = raw_send_slot(qp, index);

	memset(slot, 0, RAW_STRIDE);
	raw_put_next(slot, HGHCA_WQE_CQ_UPDATE);
	raw_put_data(slot, 1, from, WQE_BYTES, lkey);
}

static void put_atomic(struct raw_qp *qp, uint64_t to, uint32_t rkey, const void *answer, uint32_t lkey)
{
	uint8_t *slot = raw_send_slot(qp, 0);
	struct hghca_atomic_unit *atomic = (struct hghca_atomic_unit *)(slot + 2 * HGHCA_WQE_UNIT);

	memset(slot, 0, RAW_STRIDE);
	raw_put_next(slot, HGHCA_WQE_CQ_UPDATE);
	raw_put_raddr(slot, 1, to, rkey);
	atomic->swap_add = htole64(1);
	raw_put_data(slot, 3, answer, 8, lkey);
}

/* The request in slot 0 of a new own pair completes with this syndrome. */
static void ring_and_expect(struct iso_link *l, unsigned int opcode, unsigned int units, uint8_t syndrome,
			    const char *what)
{
	iso_ring(&l->a, 0, opcode, units);
	raw_expect(&l->a, 0, syndrome, what);
	if (syndrome && raw_qp_state(&l->a) != IBV_QPS_ERR)
		tb_fail("%s: the QP is not in error", what);
}

static void connected(struct iso_link *l, struct raw_ctx *own, struct raw_srq *srq)
{
	iso_link_create(l, own, IBV_QPT_RC, srq);
	iso_link_connect(l);
}

/* Local use by an own QP: the key of the owner gives no access in another PD. */
static void local_use(struct raw_ctx *own, uint32_t key)
{
	const uint8_t bad = HGHCA_SYNDROME_LOCAL_PROT_ERR;
	void *foreign = (void *)ISO_ADDRESS;
	uint64_t target = (uintptr_t)own->buf;
	struct iso_link l;

	connected(&l, own, NULL);
	put_send(&l.a, 0, foreign, key);
	ring_and_expect(&l, HGHCA_OPCODE_SEND, 2, bad, "SEND");
	iso_link_destroy(&l);

	connected(&l, own, NULL);
	iso_build_write(&l.a, 0, foreign, key, target, own->mr.rkey);
	ring_and_expect(&l, HGHCA_OPCODE_RDMA_WRITE, WRITE_UNITS, bad, "RDMA WRITE");
	iso_link_destroy(&l);

	connected(&l, own, NULL);
	iso_build_write(&l.a, 0, foreign, key, target, own->mr.rkey);
	ring_and_expect(&l, HGHCA_OPCODE_RDMA_READ, WRITE_UNITS, bad, "RDMA READ into it");
	iso_link_destroy(&l);

	connected(&l, own, NULL);
	put_atomic(&l.a, target, own->mr.rkey, foreign, key);
	ring_and_expect(&l, HGHCA_OPCODE_ATOMIC_FA, 4, bad, "an atomic's answer into it");
	iso_link_destroy(&l);
	iso.board->step++;
}

static void receive_into(struct raw_ctx *own, uint32_t key, struct raw_srq *srq, const char *what)
{
	struct iso_link l;

	connected(&l, own, srq);
	raw_post_recv(&l.b, 0, (void *)ISO_ADDRESS, WQE_BYTES, key);
	put_send(&l.a, 0, own->buf, own->mr.lkey);
	ring_and_expect(&l, HGHCA_OPCODE_SEND, 2, HGHCA_SYNDROME_REMOTE_OP_ERR, what);
	raw_expect(&l.b, 0, HGHCA_SYNDROME_LOCAL_PROT_ERR, what);
	iso_link_destroy(&l);
	iso.board->step++;
}

static void local_uses(struct raw_ctx *own)
{
	struct raw_srq srq;
	unsigned int i;

	for (i = 0; key_of(i); i++) {
		local_use(own, key_of(i));
		receive_into(own, key_of(i), NULL, "a receive");
		raw_srq_create(&srq, own);
		receive_into(own, key_of(i), &srq, "a receive of an SRQ");
		raw_srq_destroy(&srq);
	}
}

static void datagram_uses(struct raw_ctx *own)
{
	unsigned int i;

	for (i = 0; key_of(i); i++) {
		struct raw_qp qp;
		uint8_t *slot;

		raw_qp_create_of(&qp, own, IBV_QPT_UD, NULL);
		raw_ud_start(&qp, ISO_QKEY);
		slot = raw_send_slot(&qp, 0);
		memset(slot, 0, RAW_STRIDE);
		raw_put_next(slot, HGHCA_WQE_CQ_UPDATE);
		((uint32_t *)slot)[4] = htole32(HGHCA_UD_GRH | iso.board->gid_index << 8 | 1);
		raw_put_data(slot, 4, (void *)ISO_ADDRESS, WQE_BYTES, key_of(i));
		iso_ring(&qp, 0, HGHCA_OPCODE_SEND, 5);
		raw_expect(&qp, 0, HGHCA_SYNDROME_LOCAL_PROT_ERR, "a datagram");
		if (raw_qp_state(&qp) != IBV_QPS_SQE)
			tb_fail("the UD QP is not in SQE");
		raw_qp_destroy(&qp);
		iso.board->step++;
	}
}

static void lkeys(void)
{
	iso_intrude(local_uses);
	iso_intrude(datagram_uses);
}

/* Remote requests to an own QP with the key of the owner. */
static void remote_uses(struct raw_ctx *own)
{
	const uint8_t bad = HGHCA_SYNDROME_REMOTE_ACCESS_ERR;
	struct iso_link l;
	unsigned int i;

	for (i = 0; key_of(i); i++) {
		connected(&l, own, NULL);
		iso_build_write(&l.a, 0, own->buf, own->mr.lkey, ISO_ADDRESS, key_of(i));
		ring_and_expect(&l, HGHCA_OPCODE_RDMA_WRITE, WRITE_UNITS, bad, "RDMA WRITE");
		iso_link_destroy(&l);

		connected(&l, own, NULL);
		iso_build_write(&l.a, 0, own->buf, own->mr.lkey, ISO_ADDRESS, key_of(i));
		ring_and_expect(&l, HGHCA_OPCODE_RDMA_READ, WRITE_UNITS, bad, "RDMA READ");
		iso_link_destroy(&l);

		connected(&l, own, NULL);
		put_atomic(&l.a, ISO_ADDRESS, key_of(i), own->buf, own->mr.lkey);
		ring_and_expect(&l, HGHCA_OPCODE_ATOMIC_FA, 4, bad, "an atomic");
		iso_link_destroy(&l);
		iso.board->step++;
	}
}

static void rkeys(void)
{
	iso_intrude(remote_uses);
}

/* QPs of the owner, with a key of another PD of the owner. */
static void rkeys_of_other_pd(void)
{
	struct ib_uverbs_reg_mr reg = { .start = (uintptr_t)iso.ctx.buf, .hca_va = (uintptr_t)iso.ctx.buf,
					.length = RAW_BUF_BYTES, .access_flags = TB_ACCESS_ALL };
	const uint8_t bad = HGHCA_SYNDROME_REMOTE_ACCESS_ERR;
	struct ib_uverbs_alloc_pd alloc = {};
	struct {
		struct ib_uverbs_alloc_pd_resp core;
		struct hghca_alloc_pd_resp driver;
	} pd = {};
	struct ib_uverbs_reg_mr_resp mr = {};
	struct ib_uverbs_dereg_mr dereg;
	struct ib_uverbs_dealloc_pd dealloc;
	struct iso_link l;

	raw_must(iso.ctx.fd, IB_USER_VERBS_CMD_ALLOC_PD, &alloc, sizeof(alloc), &pd, sizeof(pd), "ALLOC_PD");
	reg.pd_handle = pd.core.pd_handle;
	raw_must(iso.ctx.fd, IB_USER_VERBS_CMD_REG_MR, &reg, sizeof(reg), &mr, sizeof(mr), "REG_MR");

	connected(&l, &iso.ctx, NULL);
	iso_build_write(&l.a, 0, iso.ctx.buf, iso.ctx.mr.lkey, reg.hca_va, mr.rkey);
	ring_and_expect(&l, HGHCA_OPCODE_RDMA_READ, WRITE_UNITS, bad, "RDMA READ");
	iso_link_destroy(&l);
	connected(&l, &iso.ctx, NULL);
	put_atomic(&l.a, reg.hca_va, mr.rkey, iso.ctx.buf, iso.ctx.mr.lkey);
	ring_and_expect(&l, HGHCA_OPCODE_ATOMIC_FA, 4, bad, "an atomic");
	iso_link_destroy(&l);

	dereg.mr_handle = mr.mr_handle;
	raw_must(iso.ctx.fd, IB_USER_VERBS_CMD_DEREG_MR, &dereg, sizeof(dereg), NULL, 0, "DEREG_MR");
	dealloc.pd_handle = pd.core.pd_handle;
	raw_must(iso.ctx.fd, IB_USER_VERBS_CMD_DEALLOC_PD, &dealloc, sizeof(dealloc), NULL, 0, "DEALLOC_PD");
}

/* ---- all keys */

/*
 * On UC, a refused WRITE is silently dropped and counted, so one pair can try many
 * keys. This builds a list of requests with inline data, of which only the last
 * generates a completion.
 */
static void write_list(struct raw_qp *qp, unsigned int first, const uint32_t *keys, uint64_t to)
{
	unsigned int i;
	uint8_t *slot;
	uint32_t word = htole32(HGHCA_INLINE_FLAG | 8);

	for (i = 0; i < LIST; i++) {
		slot = raw_send_slot(qp, first + i);
		memset(slot, 0, RAW_STRIDE);
		raw_put_next(slot, i == LIST - 1 ? HGHCA_WQE_CQ_UPDATE : 0);
		raw_put_raddr(slot, 1, to, keys[i]);
		memcpy(slot + 2 * HGHCA_WQE_UNIT, &word, sizeof(word));
		memset(slot + 2 * HGHCA_WQE_UNIT + sizeof(word), 0xee, 8);
		if (i)
			raw_put_link(raw_send_slot(qp, first + i - 1), (first + i) % RAW_WQES * RAW_STRIDE,
				     HGHCA_OPCODE_RDMA_WRITE, WRITE_UNITS);
	}
	raw_ring(qp->ctx->uar, raw_sq_doorbell(qp->qpn, first, HGHCA_OPCODE_RDMA_WRITE, WRITE_UNITS, LIST));
	raw_expect(qp, (first + LIST - 1) % RAW_WQES, 0, "a list of WRITEs");
}

/* Tries `count` keys from `first` on at an address; count is a multiple of LIST. */
static void try_keys(struct raw_ctx *ctx, uint32_t first, uint32_t count, uint64_t to)
{
	uint32_t done, i, keys[LIST];
	struct iso_link l;

	iso_link_create(&l, ctx, IBV_QPT_UC, NULL);
	iso_link_connect(&l);
	for (done = 0; done < count && !tb_failed(); done += LIST) {
		for (i = 0; i < LIST; i++)
			keys[i] = first + done + i;
		write_list(&l.a, done, keys, to);
		iso.board->step++;
	}
	iso_link_destroy(&l);
}

static void try_all_keys(struct raw_ctx *own)
{
	try_keys(own, 1 << 8, SCANNED_INDEXES * TAGS, ISO_ADDRESS);
}

static void all_keys(void)
{
	long before = iso_counter("uc_dropped");

	if (iso.board->windows[1] >> 8 > SCANNED_INDEXES)
		tb_fail("the owner's keys are beyond those tried");
	iso_intrude(try_all_keys);
	iso_counted("uc_dropped", before, SCANNED_INDEXES * TAGS);
}

/* In the PD of the owner, exactly the keys of the owner give access: so the PD was the reason of the refusal. */
static void all_keys_of_owner(void)
{
	long before = iso_counter("uc_dropped");

	try_keys(&iso.ctx, 1 << 8, SCANNED_INDEXES * TAGS, ISO_ADDRESS);
	/* Two regions, and the window of type 1; that of type 2B was bound through another QP. */
	iso_counted("uc_dropped", before, SCANNED_INDEXES * TAGS - 3);
	memset((void *)ISO_ADDRESS, ISO_PATTERN, 8);
}

/* After deregistration, the key of a region gives no access with any tag, also not to its owner. */
static void deregistered(void)
{
	struct ib_uverbs_reg_mr reg = { .start = ISO_ADDRESS, .hca_va = ISO_ADDRESS, .length = ISO_BYTES,
					.access_flags = TB_ACCESS_ALL, .pd_handle = iso.ctx.pd_handle };
	struct ib_uverbs_reg_mr_resp mr = {};
	struct ib_uverbs_dereg_mr dereg;
	long before;

	raw_must(iso.ctx.fd, IB_USER_VERBS_CMD_REG_MR, &reg, sizeof(reg), &mr, sizeof(mr), "REG_MR");
	before = iso_counter("uc_dropped");
	try_keys(&iso.ctx, mr.rkey & ~(TAGS - 1U), TAGS, ISO_ADDRESS);
	iso_counted("uc_dropped", before, TAGS - 1);
	memset((void *)ISO_ADDRESS, ISO_PATTERN, 8);
	dereg.mr_handle = mr.mr_handle;
	raw_must(iso.ctx.fd, IB_USER_VERBS_CMD_DEREG_MR, &dereg, sizeof(dereg), NULL, 0, "DEREG_MR");
	before = iso_counter("uc_dropped");
	try_keys(&iso.ctx, mr.rkey & ~(TAGS - 1U), TAGS, ISO_ADDRESS);
	iso_counted("uc_dropped", before, TAGS);
}

/* ---- changes of keys by other processes */

static void put_invalidate(struct raw_qp *qp, uint32_t key)
{
	uint8_t *slot = raw_send_slot(qp, 0);

	memset(slot, 0, RAW_STRIDE);
	raw_put_next(slot, HGHCA_WQE_CQ_UPDATE);
	((struct hghca_inv_unit *)(slot + HGHCA_WQE_UNIT))->key = htole32(key);
}

static void put_bind(struct raw_qp *qp, uint32_t window, uint32_t region, uint64_t addr, uint64_t length)
{
	uint8_t *slot = raw_send_slot(qp, 0);

	memset(slot, 0, RAW_STRIDE);
	raw_put_next(slot, HGHCA_WQE_CQ_UPDATE);
	*(struct hghca_bind_unit *)(slot + HGHCA_WQE_UNIT) = (struct hghca_bind_unit) {
		.access = htole32(HGHCA_ACCESS_REMOTE_WRITE | HGHCA_ACCESS_REMOTE_READ),
		.rkey = htole32(window),
		.lkey = htole32(region),
		.addr = htole64(addr),
		.length = htole64(length),
	};
}

static void put_register(struct raw_qp *qp, uint32_t key, uint64_t list)
{
	uint8_t *slot = raw_send_slot(qp, 0);

	memset(slot, 0, RAW_STRIDE);
	raw_put_next(slot, HGHCA_WQE_CQ_UPDATE);
	*(struct hghca_reg_unit *)(slot + HGHCA_WQE_UNIT) = (struct hghca_reg_unit) {
		.key = htole32(key),
		.access = htole32(HGHCA_ACCESS_LOCAL_WRITE | HGHCA_ACCESS_REMOTE_WRITE | HGHCA_ACCESS_REMOTE_READ),
		.length = htole64(PAGE_BYTES),
		.list = htole64(list),
		.pages = htole32(1),
	};
}

static void try_to_change(struct raw_ctx *own, uint32_t key)
{
	const uint8_t bad = HGHCA_SYNDROME_MW_BIND_ERR;
	struct iso_link l;

	connected(&l, own, NULL);
	put_invalidate(&l.a, key);
	ring_and_expect(&l, HGHCA_OPCODE_LOCAL_INV, 2, bad, "LOCAL_INV");
	iso_link_destroy(&l);

	connected(&l, own, NULL);
	put_bind(&l.a, key ^ 1, own->mr.lkey, (uintptr_t)own->buf, PAGE_BYTES);
	ring_and_expect(&l, HGHCA_OPCODE_BIND_MW, 3, bad, "BIND_MW of it");
	iso_link_destroy(&l);

	connected(&l, own, NULL);
	put_bind(&l.a, key ^ 1, 0, 0, 0);
	ring_and_expect(&l, HGHCA_OPCODE_BIND_MW, 3, bad, "BIND_MW that unbinds it");
	iso_link_destroy(&l);

	connected(&l, own, NULL);
	put_register(&l.a, key ^ 1, ISO_ADDRESS);
	ring_and_expect(&l, HGHCA_OPCODE_REG_MR, 4, HGHCA_SYNDROME_LOCAL_QP_OP_ERR, "REG_MR");
	iso_link_destroy(&l);

	connected(&l, own, NULL);
	raw_post_recv(&l.b, 0, own->buf, WQE_BYTES, own->mr.lkey);
	put_send(&l.a, 0, own->buf, own->mr.lkey);
	((struct hghca_next_unit *)raw_send_slot(&l.a, 0))->imm_data = htobe32(key);
	ring_and_expect(&l, HGHCA_OPCODE_SEND_INV, 2, HGHCA_SYNDROME_REMOTE_ACCESS_ERR, "SEND with Invalidate");
	raw_expect(&l.b, 0, HGHCA_SYNDROME_LOCAL_ACCESS_ERR, "its receive");
	iso_link_destroy(&l);
	iso.board->step++;
}

static void change_keys(struct raw_ctx *own)
{
	struct ib_uverbs_alloc_mw cmd = { .pd_handle = own->pd_handle };
	struct ib_uverbs_alloc_mw_resp mw = {};
	struct iso_link l;
	unsigned int i;

	for (i = 0; key_of(i); i++)
		try_to_change(own, key_of(i));
	/* Own windows, on the region of the owner. */
	for (cmd.mw_type = 1; cmd.mw_type <= 2; cmd.mw_type++) {
		raw_must(own->fd, IB_USER_VERBS_CMD_ALLOC_MW, &cmd, sizeof(cmd), &mw, sizeof(mw), "ALLOC_MW");
		connected(&l, own, NULL);
		put_bind(&l.a, mw.rkey, iso.board->bindable, ISO_ADDRESS, PAGE_BYTES);
		ring_and_expect(&l, HGHCA_OPCODE_BIND_MW, 3, HGHCA_SYNDROME_MW_BIND_ERR, "BIND_MW onto it");
		iso_link_destroy(&l);
		iso.board->step++;
	}
}

static void changed(void)
{
	long registered = iso_counter("regions_registered"), invalidated = iso_counter("keys_invalidated");

	iso_intrude(change_keys);
	iso_counted("regions_registered", registered, 0);
	iso_counted("keys_invalidated", invalidated, 0);
}

static void killed(void)
{
	static iso_act *const acts[] = { local_uses, datagram_uses, remote_uses, try_all_keys, change_keys };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(acts); i++)
		iso_kill_amidst(acts[i], 3);
}

const struct tb_case iso_key_cases[] = {
	{ "keys: of the owner, in our gather and scatter lists", lkeys },
	{ "keys: of the owner, asked of our QPs", rkeys },
	{ "keys: of another PD of the owner", rkeys_of_other_pd },
	{ "keys: every index and tag, from another process", all_keys },
	{ "keys: every index and tag, by the owner", all_keys_of_owner },
	{ "keys: of a deregistered region, every tag", deregistered },
	{ "keys: of the owner, invalidated, bound, registered", changed },
	{ "keys: killed amidst", killed },
};
const size_t iso_key_count = ARRAY_SIZE(iso_key_cases);
