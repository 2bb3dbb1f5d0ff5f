// SPDX-License-Identifier: GPL-2.0-or-later
/* PART: each record is in the region that its key selects, once, and in order. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "vendorops.h"

#define RECORD		64
#define REGIONS		16

/* The region is selected by the middle of a number in the middle of a record. */
static const struct hghcadv_partition_attr usual = {
	.record_size = RECORD, .num_regions = REGIONS, .key_offset = 10, .key_size = 4, .key_shift = 5,
};

/* The region is the first byte of a record. */
static struct hghcadv_partition_attr of_two_regions(void)
{
	return (struct hghcadv_partition_attr) { .record_size = RECORD, .num_regions = 2, .key_size = 1 };
}

static void send_and_check(struct vo_pair *t, struct vo_part *part, size_t at, uint32_t bytes, const char *what)
{
	if (!vo_part_send(t, part->partition->key, at, bytes, IBV_WC_SUCCESS, what))
		return;
	vo_part_append(part, t->a.buf + at, bytes);
	vo_part_check(part, what);
}

/* A list of two pieces, of which neither is a number of records; and a record in the WQE. */
static void send_otherwise(struct vo_pair *t, struct vo_part *part)
{
	const uint32_t bytes = 2 * VO_MTU + RECORD, first = VO_MTU - 5;
	struct ibv_sge list[2] = {
		{ (uintptr_t)t->a.buf, first, t->a.mr->lkey },
		{ (uintptr_t)t->a.buf + first, bytes - first, t->a.mr->lkey },
	};
	uint8_t record[RECORD];

	vo_fill(record, sizeof(record));
	ibv_wr_start(t->ex);
	vo_next(t, PART_ID);
	hghcadv_wr_part(t->dv, part->partition->key);
	ibv_wr_set_sge_list(t->ex, 2, list);
	vo_next(t, PART_ID);
	hghcadv_wr_part(t->dv, part->partition->key);
	ibv_wr_set_inline_data(t->ex, record, sizeof(record));
	vo_errno(ibv_wr_complete(t->ex), 0, "a list and inline data");
	vo_part_append(part, t->a.buf, bytes);
	vo_part_append(part, record, sizeof(record));
	memset(record, 0, sizeof(record));
	if (vo_done(t, PART_ID, IBV_WC_SUCCESS, 0, "a list") &&
	    vo_done(t, PART_ID, IBV_WC_SUCCESS, 0, "inline data"))
		vo_part_check(part, "a list and inline data");
}

void part_messages(void)
{
	static const uint32_t sizes[] = {
		RECORD, 2 * RECORD, VO_MTU, VO_MTU + RECORD, 2 * VO_MTU - RECORD, 5 * VO_MTU, 7 * VO_MTU + 5 * RECORD,
	};
	struct vo_part part;
	struct vo_pair t;
	size_t i;

	vo_open(&t);
	vo_part_open(&part, &usual, 16384);
	vo_part_check(&part, "before the first record");
	for (i = 0; i < ARRAY_SIZE(sizes) && !tb_failed(); i++) {
		vo_fill(t.a.buf, sizes[i]);
		send_and_check(&t, &part, 0, sizes[i], "a message");
	}
	if (!tb_failed())
		send_otherwise(&t, &part);
	vo_part_close(&part);
	vo_close(&t);
}

void part_shapes(void)
{
	static const struct hghcadv_partition_attr shapes[] = {
		{ .record_size = 8, .num_regions = 1, .key_size = 1 },
		{ .record_size = 8, .num_regions = 128, .key_offset = 7, .key_size = 1, .key_shift = 1 },
		{ .record_size = 8, .num_regions = 8, .key_size = 8, .key_shift = 13 },
		{ .record_size = 16, .num_regions = 2, .key_offset = 8, .key_size = 8, .key_shift = 63 },
		{ .record_size = 32, .num_regions = 64, .key_offset = 3, .key_size = 2, .key_shift = 10 },
		{ .record_size = 64, .num_regions = 128, .key_offset = 60, .key_size = 4, .key_shift = 25 },
		{ .record_size = 128, .num_regions = 4, .key_offset = 120, .key_size = 8 },
		{ .record_size = 256, .num_regions = 128, .key_size = 8, .key_shift = 57 },
		{ .record_size = 256, .num_regions = 16, .key_offset = 255, .key_size = 1, .key_shift = 4 },
	};
	const uint32_t bytes = 2 * VO_MTU + 512;
	struct vo_part part;
	struct vo_pair t;
	size_t i;

	vo_open(&t);
	for (i = 0; i < ARRAY_SIZE(shapes) && !tb_failed(); i++) {
		vo_part_open(&part, &shapes[i], 2 * bytes);
		vo_fill(t.a.buf, bytes);
		send_and_check(&t, &part, 0, bytes, "a message");
		send_and_check(&t, &part, 0, bytes, "the same again");
		vo_part_close(&part);
	}
	vo_close(&t);
}

/* No partition is looked for. */
void part_empty(void)
{
	struct vo_part part;
	struct vo_pair t;

	vo_open(&t);
	vo_part_open(&part, &usual, 4096);
	send_and_check(&t, &part, 0, 0, "no bytes");
	vo_part_send(&t, ~part.partition->key, 0, 0, IBV_WC_SUCCESS, "no bytes, and no partition");
	ibv_wr_start(t.ex);
	vo_next(&t, PART_ID);
	hghcadv_wr_part(t.dv, part.partition->key);
	vo_errno(ibv_wr_complete(t.ex), 0, "no list");
	vo_done(&t, PART_ID, IBV_WC_SUCCESS, 0, "no list");
	vo_part_check(&part, "no bytes");
	vo_part_close(&part);
	vo_close(&t);
}

/* ------------------------------------------------------------------ */
/* Several QPs                                                          */

#define QPS			4
#define MESSAGES		4
#define PACKETS			3	/* of a message */
#define PACKET_RECORDS		(VO_MTU / RECORD)

/* What a record of this case begins with; the rest of it is 0. */
struct mark {
	uint32_t qp, packet, record;
};

static void mark_records(struct vo_pair *t, uint32_t qp)
{
	struct mark mark = { .qp = qp };
	uint32_t i;

	memset(t->a.buf, 0, TB_BUF_BYTES);
	for (i = 0; i < MESSAGES * PACKETS * PACKET_RECORDS; i++) {
		mark.packet = i / PACKET_RECORDS;
		mark.record = i % PACKET_RECORDS;
		memcpy(t->a.buf + (size_t)i * RECORD, &mark, sizeof(mark));
	}
}

static void post_all(struct vo_pair *t, uint32_t key)
{
	unsigned int i;

	ibv_wr_start(t->ex);
	for (i = 0; i < MESSAGES; i++) {
		vo_next(t, PART_ID);
		hghcadv_wr_part(t->dv, key);
		vo_sge(t, (size_t)i * PACKETS * VO_MTU, PACKETS * VO_MTU);
	}
	vo_errno(ibv_wr_complete(t->ex), 0, "messages");
}

/* The packets are whole, and those of each QP in order. */
static void check_packets(const struct vo_part *part)
{
	uint32_t next[QPS] = { 0 }, packet, i;
	struct mark first, mark;

	for (packet = 0; packet < QPS * MESSAGES * PACKETS && !tb_failed(); packet++) {
		memcpy(&first, part->memory + (size_t)packet * VO_MTU, sizeof(first));
		if (first.qp >= QPS || first.packet != next[first.qp]++) {
			tb_fail("packet %u is number %u of QP %u", packet, first.packet, first.qp);
			return;
		}
		for (i = 0; i < PACKET_RECORDS; i++) {
			memcpy(&mark, part->memory + ((size_t)packet * PACKET_RECORDS + i) * RECORD, sizeof(mark));
			if (mark.qp != first.qp || mark.packet != first.packet || mark.record != i)
				tb_fail("packet %u: record %u of it is number %u of packet %u of QP %u", packet, i,
					mark.record, mark.packet, mark.qp);
		}
	}
}

void part_many_qps(void)
{
	const struct hghcadv_partition_attr attr = { .record_size = RECORD, .num_regions = 1, .key_size = 8 };
	const uint32_t bytes = QPS * MESSAGES * PACKETS * VO_MTU;
	struct vo_pair pairs[QPS];
	struct vo_part part;
	uint32_t filled;
	unsigned int i, j;

	vo_part_open(&part, &attr, bytes);
	for (i = 0; i < QPS; i++) {
		vo_open(&pairs[i]);
		mark_records(&pairs[i], i);
	}
	for (i = 0; i < QPS; i++)
		post_all(&pairs[i], part.partition->key);
	for (i = 0; i < QPS; i++)
		for (j = 0; j < MESSAGES && !tb_failed(); j++)
			vo_done(&pairs[i], PART_ID, IBV_WC_SUCCESS, 0, "a message");
	vo_errno(hghcadv_query_partition(part.partition, &filled, 1), 0, "hghcadv_query_partition");
	if (filled != bytes)
		tb_fail("%u bytes, expected %u", filled, bytes);
	check_packets(&part);
	for (i = 0; i < QPS; i++)
		vo_close(&pairs[i]);
	vo_part_close(&part);
}

/* ------------------------------------------------------------------ */
/* Errors                                                               */

/* Records for one region. */
static void fill_for(struct vo_pair *t, uint8_t region, uint32_t records)
{
	uint32_t i;

	vo_fill(t->a.buf, (size_t)records * RECORD);
	for (i = 0; i < records; i++)
		t->a.buf[(size_t)i * RECORD] = region;
}

/* Nothing of a packet is appended if one of its records does not fit. */
static void part_full_in_one_packet(struct vo_pair *t)
{
	const struct hghcadv_partition_attr attr = of_two_regions();
	const uint32_t room = 10;
	struct vo_part part;

	vo_part_open(&part, &attr, room * RECORD);
	fill_for(t, 0, room - 1);
	send_and_check(t, &part, 0, (room - 1) * RECORD, "records that fit");
	fill_for(t, 0, 2);
	vo_part_send(t, part.partition->key, 0, 2 * RECORD, IBV_WC_REM_OP_ERR, "a record too many");
	vo_part_check(&part, "a record too many");
	vo_revive(t);
	send_and_check(t, &part, 0, RECORD, "the last record");
	vo_part_send(t, part.partition->key, 0, RECORD, IBV_WC_REM_OP_ERR, "a full region");
	vo_part_check(&part, "a full region");
	vo_revive(t);
	fill_for(t, 1, room);
	send_and_check(t, &part, 0, room * RECORD, "the other region");
	vo_part_close(&part);
}

/* The packets before it are appended. */
static void part_full_in_second_packet(struct vo_pair *t)
{
	const struct hghcadv_partition_attr attr = of_two_regions();
	struct vo_part part;

	vo_part_open(&part, &attr, VO_MTU + RECORD);
	fill_for(t, 0, 3 * PACKET_RECORDS);
	vo_part_send(t, part.partition->key, 0, 3 * VO_MTU, IBV_WC_REM_OP_ERR, "a message too long");
	vo_part_append(&part, t->a.buf, VO_MTU);
	vo_part_check(&part, "a message too long");
	vo_revive(t);
	send_and_check(t, &part, 0, RECORD, "the last record");
	vo_part_close(&part);
}

void part_full(void)
{
	struct vo_pair t;

	vo_open(&t);
	part_full_in_one_packet(&t);
	part_full_in_second_packet(&t);
	vo_close(&t);
}

/* A partition of which region 0 is of another kind than region 1. */
static struct hghcadv_partition *make(struct ibv_pd *pd, const struct vo_part *like, uint64_t addr, uint32_t rkey)
{
	struct hghcadv_region regions[2] = {
		{ addr, like->region_bytes, rkey },
		{ (uintptr_t)like->memory, like->region_bytes, like->mr->rkey },
	};
	struct hghcadv_partition_attr attr = of_two_regions();
	struct hghcadv_partition *partition;

	attr.regions = regions;
	partition = hghcadv_create_partition(pd, &attr);
	if (!partition)
		tb_die("hghcadv_create_partition");
	return partition;
}

/* One message that the peer refuses; then both ends are connected again. */
static void refuse(struct vo_pair *t, struct vo_part *part, uint32_t key, uint32_t bytes, enum ibv_wc_status status,
		   const char *what)
{
	fill_for(t, 0, 2 * PACKET_RECORDS);
	vo_part_send(t, key, 0, bytes, status, what);
	vo_part_check(part, what);
	vo_revive(t);
}

static void refuse_region(struct vo_pair *t, struct vo_part *part, uint64_t addr, uint32_t rkey, const char *what)
{
	struct hghcadv_partition *partition = make(vo_owner->pd, part, addr, rkey);

	refuse(t, part, partition->key, RECORD, IBV_WC_REM_ACCESS_ERR, what);
	vo_errno(hghcadv_destroy_partition(partition), 0, what);
}

static void refuse_regions(struct vo_pair *t, struct vo_part *part, struct ibv_pd *other_pd)
{
	uint64_t addr = (uintptr_t)part->memory;
	size_t bytes = 2 * part->region_bytes;
	struct ibv_mr *readable = ibv_reg_mr(vo_owner->pd, part->memory, bytes, IBV_ACCESS_REMOTE_READ);
	struct ibv_mr *other = ibv_reg_mr(other_pd, part->memory, bytes, VO_ACCESS);
	struct ibv_mr *gone = ibv_reg_mr(vo_owner->pd, part->memory, bytes, VO_ACCESS);
	uint32_t key_of_gone = gone ? gone->rkey : 0;

	if (!readable || !other || !gone || ibv_dereg_mr(gone))
		tb_die("regions");
	refuse_region(t, part, addr, key_of_gone, "a region that is deregistered");
	refuse_region(t, part, addr, readable->rkey, "a region that is read-only");
	refuse_region(t, part, addr, other->rkey, "a region of another PD");
	refuse_region(t, part, addr + bytes, part->mr->rkey, "memory behind the region");
	refuse_region(t, part, addr - RECORD, part->mr->rkey, "memory before the region");
	if (ibv_dereg_mr(other) || ibv_dereg_mr(readable))
		tb_die("ibv_dereg_mr");
}

static void refuse_keys(struct vo_pair *t, struct vo_part *part, struct ibv_pd *other_pd)
{
	struct hghcadv_partition *other = make(other_pd, part, (uintptr_t)part->memory, part->mr->rkey);
	uint32_t key = other->key;

	refuse(t, part, key, RECORD, IBV_WC_REM_ACCESS_ERR, "a partition of another PD");
	vo_errno(hghcadv_destroy_partition(other), 0, "hghcadv_destroy_partition");
	refuse(t, part, key, RECORD, IBV_WC_REM_ACCESS_ERR, "a partition that is destroyed");
	refuse(t, part, part->partition->key + 64, RECORD, IBV_WC_REM_ACCESS_ERR, "another tag");
}

void part_refused(void)
{
	const struct vo_opts no_right = { .lacking = IBV_ACCESS_REMOTE_WRITE };
	const struct hghcadv_partition_attr attr = of_two_regions();
	struct ibv_pd *other_pd = ibv_alloc_pd(vo_owner->ctx);
	struct vo_part part;
	struct vo_pair t;

	if (!other_pd)
		tb_die("ibv_alloc_pd");
	vo_part_open(&part, &attr, 2 * VO_MTU);
	vo_open(&t);
	refuse(&t, &part, part.partition->key, 1, IBV_WC_REM_INV_REQ_ERR, "a byte");
	refuse(&t, &part, part.partition->key, RECORD + 1, IBV_WC_REM_INV_REQ_ERR, "a record and a byte");
	refuse(&t, &part, part.partition->key, VO_MTU + RECORD - 1, IBV_WC_REM_INV_REQ_ERR, "two packets, a byte too few");
	refuse_keys(&t, &part, other_pd);
	refuse_regions(&t, &part, other_pd);
	fill_for(&t, 1, 2 * PACKET_RECORDS);
	send_and_check(&t, &part, 0, 2 * VO_MTU, "records after all that");
	vo_close(&t);

	vo_open_with(&t, &no_right);
	vo_part_send(&t, part.partition->key, 0, RECORD, IBV_WC_REM_INV_REQ_ERR, "a QP without the right");
	vo_part_check(&part, "a QP without the right");
	vo_close(&t);
	vo_part_close(&part);
	if (ibv_dealloc_pd(other_pd))
		tb_die("ibv_dealloc_pd");
}

/* ------------------------------------------------------------------ */
/* Lost packets                                                         */

#define LOSSY_BYTES		(PACKETS * VO_MTU)

static size_t lossy_at(unsigned int message)
{
	return (size_t)message * 7 * RECORD % (TB_BUF_BYTES - LOSSY_BYTES);
}

/* The link loses and duplicates packets. Records that came twice would not be at their place. */
static void send_many(unsigned int messages, unsigned int under_way)
{
	unsigned int posted = 0, done = 0;
	struct vo_part part;
	struct vo_pair t;

	vo_open(&t);
	vo_part_open(&part, &usual, messages * LOSSY_BYTES / REGIONS * 2);
	vo_fill(t.a.buf, TB_BUF_BYTES);
	while (done < messages && !tb_failed()) {
		for (; posted < messages && posted < done + under_way; posted++) {
			ibv_wr_start(t.ex);
			vo_next(&t, PART_ID);
			hghcadv_wr_part(t.dv, part.partition->key);
			vo_sge(&t, lossy_at(posted), LOSSY_BYTES);
			vo_errno(ibv_wr_complete(t.ex), 0, "a message");
			vo_part_append(&part, t.a.buf + lossy_at(posted), LOSSY_BYTES);
		}
		if (vo_done(&t, PART_ID, IBV_WC_SUCCESS, 0, "a message"))
			done++;
	}
	vo_part_check(&part, "all messages");
	vo_part_close(&part);
	vo_close(&t);
}

void part_lossy(void)		{ send_many(256, 16); }
void part_lossy_singly(void)	{ send_many(32, 1); }
