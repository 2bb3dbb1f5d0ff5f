// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * PART, READ_POINTER and READ_CONSISTENT of RSNIC (docs/reference/rsnic.rst, section 9), through hghcadv.h.
 *
 * vendorops DEVICE GID-INDEX [DEVICE GID-INDEX NETNS] [-- CASE...]
 *
 * With one device the pairs are on this device; with two, the requester is on the first. The cases that need another
 * device, or an impaired link, are run by name: tests/vendorops.py.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "vendorops.h"

#define CQ_ENTRIES	256

struct tb_side vo_asker;
struct tb_side *vo_owner = &vo_asker;
const char *vo_asker_device;
const char *vo_owner_netns;

static struct tb_side other_side;

void vo_errno(int error, int expected, const char *what)
{
	if (error != expected)
		tb_fail("%s: \"%s\", expected \"%s\"", what, strerror(error), strerror(expected));
}

uint32_t vo_noise(void)
{
	static uint32_t state = 1;

	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state;
}

void vo_fill(uint8_t *to, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		to[i] = vo_noise() >> 11;
}

void vo_is_all(const uint8_t *memory, size_t bytes, uint8_t value, const char *what)
{
	size_t i;

	for (i = 0; i < bytes; i++) {
		if (memory[i] == value)
			continue;
		tb_fail("%s: byte %zu is 0x%02x, expected 0x%02x", what, i, memory[i], value);
		return;
	}
}

/* ------------------------------------------------------------------ */
/* Pairs                                                                */

struct ibv_qp *vo_create_qp(struct tb_side *side, struct ibv_cq *cq, enum ibv_qp_type type, uint32_t flags)
{
	struct hghcadv_qp_init_attr dv_attr = { .flags = flags };
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = VO_SQ_WRS, .max_recv_wr = 4, .max_send_sge = 2, .max_recv_sge = 1,
			 .max_inline_data = 128 },
		.qp_type = type,
		.sq_sig_all = 1,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = side->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};

	if (type == IBV_QPT_RC)
		attr.send_ops_flags |= IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ;
	errno = 0;
	return hghcadv_create_qp(side->ctx, &attr, &dv_attr);
}

static void open_end(struct tb_qp *q, struct tb_side *side, uint32_t flags)
{
	memset(q, 0, sizeof(*q));
	q->side = side;
	q->scq = ibv_create_cq(side->ctx, CQ_ENTRIES, NULL, NULL, 0);
	q->rcq = q->scq;
	q->borrowed_rcq = true;
	q->qp = q->scq ? vo_create_qp(side, q->scq, IBV_QPT_RC, flags) : NULL;
	if (!q->qp)
		tb_die("hghcadv_create_qp: %s", strerror(errno));
	q->buf = aligned_alloc(4096, TB_BUF_BYTES);
	if (!q->buf)
		tb_die("aligned_alloc");
	memset(q->buf, 0, TB_BUF_BYTES);
	q->mr = ibv_reg_mr(side->pd, q->buf, TB_BUF_BYTES, VO_ACCESS);
	if (!q->mr)
		tb_die("ibv_reg_mr");
}

static void connect_pair(struct vo_pair *t, const struct vo_opts *opts)
{
	struct tb_opts link = tb_pair_defaults();

	tb_qp_connect(&t->a, &t->b, &link, VO_REMOTE, 0);
	tb_qp_connect(&t->b, &t->a, &link, VO_REMOTE & ~opts->lacking, 0);
}

void vo_open_with(struct vo_pair *t, const struct vo_opts *opts)
{
	struct tb_opts foreign = tb_pair_defaults();

	foreign.mr_access = VO_ACCESS;
	open_end(&t->a, &vo_asker, HGHCADV_QP_VENDOR_OPS);
	if (opts->foreign_owner)
		tb_qp_create(&t->b, vo_owner, IBV_QPT_RC, &foreign);
	else
		open_end(&t->b, vo_owner, opts->plain_owner ? 0 : HGHCADV_QP_VENDOR_OPS);
	t->ex = ibv_qp_to_qp_ex(t->a.qp);
	t->dv = t->ex ? hghcadv_qp_ex_from_ibv_qp_ex(t->ex) : NULL;
	if (!t->dv)
		tb_die("hghcadv_qp_ex_from_ibv_qp_ex");
	connect_pair(t, opts);
}

void vo_open(struct vo_pair *t)
{
	const struct vo_opts usual = { 0 };

	vo_open_with(t, &usual);
}

void vo_close(struct vo_pair *t)
{
	tb_qp_destroy(&t->a);
	tb_qp_destroy(&t->b);
}

static void to_reset(struct tb_qp *q)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_wc wc;

	if (ibv_modify_qp(q->qp, &attr, IBV_QP_STATE))
		tb_die("QP to RESET");
	while (ibv_poll_cq(q->scq, 1, &wc) > 0)
		;
}

void vo_revive(struct vo_pair *t)
{
	const struct vo_opts usual = { 0 };

	to_reset(&t->a);
	to_reset(&t->b);
	connect_pair(t, &usual);
}

/* ------------------------------------------------------------------ */
/* Work requests                                                        */

void vo_next(struct vo_pair *t, uint64_t id)
{
	t->ex->wr_id = id;
	t->ex->wr_flags = IBV_SEND_SIGNALED;
}

void vo_sge(struct vo_pair *t, size_t at, uint32_t length)
{
	ibv_wr_set_sge(t->ex, t->a.mr->lkey, (uintptr_t)t->a.buf + at, length);
}

bool vo_done(struct vo_pair *t, uint64_t id, enum ibv_wc_status status, uint32_t bytes, const char *what)
{
	enum ibv_wc_opcode opcode = id == PART_ID || id == WRITE_ID ? IBV_WC_RDMA_WRITE : IBV_WC_RDMA_READ;
	struct ibv_wc wc;

	if (!tb_poll(t->a.scq, &wc, what))
		return false;
	if (wc.wr_id == id && wc.status == status && wc.qp_num == t->a.qp->qp_num &&
	    (status != IBV_WC_SUCCESS || (wc.opcode == opcode && !wc.wc_flags &&
					  (opcode == IBV_WC_RDMA_WRITE || wc.byte_len == bytes))))
		return true;
	tb_fail("%s: id %llu, \"%s\", opcode %d, %u bytes; expected id %llu, \"%s\", opcode %d, %u bytes", what,
		(unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status), wc.opcode, wc.byte_len,
		(unsigned long long)id, ibv_wc_status_str(status), opcode, bytes);
	return false;
}

void vo_works(struct vo_pair *t, const char *what)
{
	const size_t at = TB_BUF_BYTES - 64;

	vo_fill(t->a.buf + at, 64);
	ibv_wr_start(t->ex);
	vo_next(t, WRITE_ID);
	ibv_wr_rdma_write(t->ex, t->b.mr->rkey, (uintptr_t)t->b.buf + at);
	vo_sge(t, at, 64);
	vo_errno(ibv_wr_complete(t->ex), 0, what);
	if (vo_done(t, WRITE_ID, IBV_WC_SUCCESS, 0, what) && memcmp(t->a.buf + at, t->b.buf + at, 64))
		tb_fail("%s: a WRITE brought other bytes", what);
}

/* ------------------------------------------------------------------ */
/* Partitions                                                           */

void vo_part_open(struct vo_part *part, const struct hghcadv_partition_attr *attr, uint32_t region_bytes)
{
	size_t bytes = (size_t)attr->num_regions * region_bytes;
	uint32_t i;

	*part = (struct vo_part) { .attr = *attr, .region_bytes = region_bytes };
	part->memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
	part->expected = malloc(bytes);
	part->filled = calloc(attr->num_regions, sizeof(*part->filled));
	part->regions = calloc(attr->num_regions, sizeof(*part->regions));
	if (!part->memory || !part->expected || !part->filled || !part->regions)
		tb_die("memory of a partition");
	memset(part->memory, VO_UNTOUCHED, bytes);
	memset(part->expected, VO_UNTOUCHED, bytes);
	part->mr = ibv_reg_mr(vo_owner->pd, part->memory, bytes, VO_ACCESS);
	if (!part->mr)
		tb_die("ibv_reg_mr");
	for (i = 0; i < attr->num_regions; i++)
		part->regions[i] = (struct hghcadv_region) {
			(uintptr_t)part->memory + (size_t)i * region_bytes, region_bytes, part->mr->rkey
		};
	part->attr.regions = part->regions;
	part->partition = hghcadv_create_partition(vo_owner->pd, &part->attr);
	if (!part->partition)
		tb_die("hghcadv_create_partition");
	if (part->partition->pd != vo_owner->pd || part->partition->context != vo_owner->ctx ||
	    part->partition->num_regions != attr->num_regions)
		tb_fail("the partition is of another PD or context, or has %u regions", part->partition->num_regions);
}

void vo_part_close(struct vo_part *part)
{
	vo_errno(hghcadv_destroy_partition(part->partition), 0, "hghcadv_destroy_partition");
	if (ibv_dereg_mr(part->mr))
		tb_die("ibv_dereg_mr");
	free(part->regions);
	free(part->filled);
	free(part->expected);
	free(part->memory);
}

static uint32_t region_of(const struct hghcadv_partition_attr *attr, const uint8_t *record)
{
	uint64_t key = 0;
	unsigned int i;

	for (i = 0; i < attr->key_size; i++)
		key |= (uint64_t)record[attr->key_offset + i] << 8 * i;
	return key >> attr->key_shift & (attr->num_regions - 1);
}

void vo_part_append(struct vo_part *part, const uint8_t *records, uint32_t bytes)
{
	uint32_t size = part->attr.record_size, region;

	for (; bytes; records += size, bytes -= size) {
		region = region_of(&part->attr, records);
		if (part->filled[region] + size > part->region_bytes)
			tb_die("region %u of the test is too small", region);
		memcpy(part->expected + (size_t)region * part->region_bytes + part->filled[region], records, size);
		part->filled[region] += size;
	}
}

void vo_part_check(struct vo_part *part, const char *what)
{
	uint32_t filled[128 + 1], count = part->attr.num_regions, i;

	memset(filled, VO_UNTOUCHED, sizeof(filled));
	vo_errno(hghcadv_query_partition(part->partition, filled, count + 1), 0, "hghcadv_query_partition");
	if (filled[count] != 0xeeeeeeee)
		tb_fail("%s: the number behind those of the regions has changed", what);
	for (i = 0; i < count && !tb_failed(); i++) {
		if (filled[i] != part->filled[i])
			tb_fail("%s: region %u is filled with %u bytes, expected %u", what, i, filled[i], part->filled[i]);
		if (memcmp(part->memory + (size_t)i * part->region_bytes,
			   part->expected + (size_t)i * part->region_bytes, part->region_bytes))
			tb_fail("%s: region %u has other bytes", what, i);
	}
}

bool vo_part_send(struct vo_pair *t, uint32_t key, size_t at, uint32_t bytes, enum ibv_wc_status status,
		  const char *what)
{
	ibv_wr_start(t->ex);
	vo_next(t, PART_ID);
	hghcadv_wr_part(t->dv, key);
	vo_sge(t, at, bytes);
	vo_errno(ibv_wr_complete(t->ex), 0, what);
	return vo_done(t, PART_ID, status, 0, what);
}

/* ------------------------------------------------------------------ */
/* The program                                                          */

static const struct tb_case cases[] = {
	{ "abilities", abilities },
	{ "checksum", checksum },
	{ "PART: messages of some packets", part_messages },
	{ "PART: sizes of records and keys", part_shapes },
	{ "PART: no bytes", part_empty },
	{ "PART: several QPs, one partition", part_many_qps },
	{ "PART: full region", part_full },
	{ "PART: refused by the peer", part_refused },
	{ "READ_POINTER: found and not found", pointer_found },
	{ "READ_POINTER: predicates", pointer_predicates },
	{ "READ_POINTER: lists", pointer_lists },
	{ "READ_POINTER: list without an end", pointer_endless },
	{ "READ_POINTER: lengths", pointer_lengths },
	{ "READ_POINTER: many at once", pointer_many },
	{ "READ_POINTER: refused", pointer_refused },
	{ "READ_CONSISTENT: objects of all sizes", object_read },
	{ "READ_CONSISTENT: many at once", object_many },
	{ "READ_CONSISTENT: object that changes", object_changes },
	{ "READ_CONSISTENT: object that stays inconsistent", object_broken },
	{ "READ_CONSISTENT: refused", object_refused },
	{ "bad input: partitions", bad_partitions },
	{ "bad input: methods of partitions", bad_methods },
	{ "as many partitions as there are", all_partitions },
	{ "PD with a partition", partition_in_use },
	{ "bad input: QPs", bad_qps },
	{ "bad input: work requests", bad_requests },
	{ "requester without the operations", plain_requester },
	{ "responder without the operations", plain_responder },
};

/* These are run by name alone. */
static const struct tb_case special[] = {
	{ "lossy link: many messages", part_lossy },
	{ "lossy link: one message at a time", part_lossy_singly },
	{ "lossy link: many searches", pointer_many },
	{ "lossy link: many objects", object_many },
	{ "device without the operations: refused", abilities_lacking },
	{ "device without the operations: as the peer", foreign_responder },
};

int main(int argc, char **argv)
{
	int split, i;

	for (split = 1; split < argc && strcmp(argv[split], "--"); split++)
		;
	if (split != 3 && split != 6) {
		fprintf(stderr, "usage: vendorops DEVICE GID-INDEX [DEVICE GID-INDEX NETNS] [-- CASE...]\n");
		return 2;
	}
	vo_asker_device = argv[1];
	tb_side_open(&vo_asker, argv[1], atoi(argv[2]), NULL);
	if (split == 6) {
		vo_owner_netns = argv[5];
		tb_side_open(&other_side, argv[3], atoi(argv[4]), vo_owner_netns);
		vo_owner = &other_side;
	}
	i = split < argc ? split + 1 : argc;
	for (split = 0; i < argc && split < (int)ARRAY_SIZE(special); split++)
		if (argv[i][0] == '=' && !strcmp(argv[i] + 1, special[split].name))
			return tb_run(&special[split], 1, 0, NULL, NULL);
	return tb_run(cases, ARRAY_SIZE(cases), argc - i, argv + i, NULL);
}
