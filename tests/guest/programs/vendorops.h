/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Common parts of the tests of PART, READ_POINTER and READ_CONSISTENT. A pair is two connected QPs with
 * HGHCADV_QP_VENDOR_OPS, unless a case says otherwise: a sends requests, and b owns the memory.
 */
#ifndef VENDOROPS_H
#define VENDOROPS_H

#include <infiniband/hghcadv.h>
#include "testbed.h"

#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))
#define VO_REMOTE		(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)
#define VO_ACCESS		(IBV_ACCESS_LOCAL_WRITE | VO_REMOTE)
#define VO_MTU			4096
#define VO_SQ_WRS		32
#define VO_UNTOUCHED		0xee		/* content of memory before an operation */

/* wr_id of each kind of work request. */
enum { PART_ID = 1, POINTER_ID, OBJECT_ID, WRITE_ID };

extern struct tb_side vo_asker;		/* where a is */
extern struct tb_side *vo_owner;	/* where b is: the same side, or another */
extern const char *vo_asker_device;
extern const char *vo_owner_netns;	/* of the owner's device; NULL: that of the program */

struct vo_pair {
	struct tb_qp a, b;
	struct ibv_qp_ex *ex;		/* of a */
	struct hghcadv_qp_ex *dv;	/* of a; NULL without the flag */
};

/* What is not usual; all 0 is. */
struct vo_opts {
	bool plain_owner;		/* b is a QP without the flag */
	bool foreign_owner;		/* b is a QP of ibv_create_qp, for a device of any kind */
	unsigned int lacking;		/* rights that b's QP does not have, of VO_REMOTE */
};

struct ibv_qp *vo_create_qp(struct tb_side *side, struct ibv_cq *cq, enum ibv_qp_type type, uint32_t flags);
void vo_open_with(struct vo_pair *t, const struct vo_opts *opts);
void vo_open(struct vo_pair *t);
void vo_close(struct vo_pair *t);
/* After an error: reconnects both ends. */
void vo_revive(struct vo_pair *t);

void vo_errno(int error, int expected, const char *what);
/* Starts the next work request of a, after ibv_wr_start(). */
void vo_next(struct vo_pair *t, uint64_t id);
/* The next completion of a; after a READ it has so many bytes. */
bool vo_done(struct vo_pair *t, uint64_t id, enum ibv_wc_status status, uint32_t bytes, const char *what);
/* One WRITE of a few bytes at the end of b's buffer works. */
void vo_works(struct vo_pair *t, const char *what);
void vo_sge(struct vo_pair *t, size_t at, uint32_t length);

uint32_t vo_noise(void);
void vo_fill(uint8_t *to, size_t bytes);
/* Fails if a byte of the memory is not this one. */
void vo_is_all(const uint8_t *memory, size_t bytes, uint8_t value, const char *what);

/* A partition of b's, with memory of its own and what is expected to be in it. */
struct vo_part {
	struct hghcadv_partition_attr attr;
	struct hghcadv_partition *partition;
	struct hghcadv_region *regions;
	struct ibv_mr *mr;
	uint8_t *memory;		/* the regions, one behind the other */
	uint8_t *expected;
	uint32_t *filled;		/* bytes, expected */
	uint32_t region_bytes;
};

void vo_part_open(struct vo_part *part, const struct hghcadv_partition_attr *attr, uint32_t region_bytes);
void vo_part_close(struct vo_part *part);
/* Appends records to what is expected. */
void vo_part_append(struct vo_part *part, const uint8_t *records, uint32_t bytes);
/* Compares memory, and what the device says. */
void vo_part_check(struct vo_part *part, const char *what);
/* Posts one PART of bytes of a's buffer and waits for its completion. */
bool vo_part_send(struct vo_pair *t, uint32_t key, size_t at, uint32_t bytes, enum ibv_wc_status status,
		  const char *what);

/* vendorops_part.c */
void part_messages(void);
void part_shapes(void);
void part_empty(void);
void part_many_qps(void);
void part_full(void);
void part_refused(void);
void part_lossy(void);
void part_lossy_singly(void);
/* vendorops_read.c */
void pointer_found(void);
void pointer_predicates(void);
void pointer_lists(void);
void pointer_endless(void);
void pointer_lengths(void);
void pointer_many(void);
void pointer_refused(void);
void object_read(void);
void object_many(void);
void object_changes(void);
void object_broken(void);
void object_refused(void);
/* vendorops_bad.c */
void abilities(void);
void abilities_lacking(void);
void checksum(void);
void bad_partitions(void);
void bad_methods(void);
void all_partitions(void);
void partition_in_use(void);
void bad_qps(void);
void bad_requests(void);
void plain_requester(void);
void plain_responder(void);
void foreign_responder(void);

#endif /* VENDOROPS_H */
