/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One process against another.  The owner is the program itself, with its objects
 * and traffic between them.  The intruder is another process, which has opened the
 * device itself.  It knows every number of the owner from a board in shared memory:
 * UAR page, QPs, CQs, keys, addresses and handles.  It attacks the objects, and
 * exits or is killed.  Then the owner checks its objects.
 */
#ifndef ISOLATION_H
#define ISOLATION_H

#include <sys/types.h>
#include "raw.h"
#include "testbed.h"

#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))
#define PAGE_BYTES		4096
#define ISO_ADDRESS		0x600000000000ULL /* of the owner's region; no other process has memory there */
#define ISO_BYTES		65536
#define ISO_PATTERN		0x5c		/* content of the owner's region */
#define ISO_QKEY		0x1234
#define ISO_FIRST_HANDLE	300		/* larger than all handles of an intruder */
#define WRITE_UNITS		3
#define WQE_BYTES		64		/* of data that a request moves */

/* A kind of object that commands identify by a handle. */
enum iso_kind { ISO_PD, ISO_CQ, ISO_QP, ISO_SRQ, ISO_MR, ISO_MW, ISO_AH, ISO_WQ, ISO_TABLE, ISO_KINDS };

/* Data that the intruder knows; the owner writes it, except `left_qpn` and `step`. */
struct iso_board {
	union ibv_gid gid;
	int gid_index;
	enum ibv_mtu mtu;
	uint32_t uar_index;
	uint32_t qpn;			/* a QP with an RDMA WRITE in slot 0 that is not rung */
	uint32_t cqn;			/* a CQ that is not armed */
	uint32_t region;		/* key of the region at ISO_ADDRESS */
	uint32_t bindable;		/* of a region there that has windows */
	uint32_t windows[2];		/* of type 1 and 2B, bound */
	uint32_t handles[ISO_KINDS];
	int channel;			/* descriptor of a completion channel */
	uint32_t cm_id;			/* of the connection manager */
	char node[64];			/* path of the device's node */
	uint32_t left_qpn;		/* a QP that a process left behind */
	uint32_t step;			/* counts the steps of the intruder, so that it can be killed within one */
};

/* The owner's program. */
struct iso {
	const char *device;
	const char *counters;		/* folder in sysfs */
	struct tb_side side;
	struct tb_pair neighbour;	/* traffic over the provider */
	struct raw_ctx ctx;
	struct iso_board *board;
};

extern struct iso iso;

/* Two QPs of one context, connected. */
struct iso_link {
	struct raw_qp a, b;
};

void iso_link_create(struct iso_link *l, struct raw_ctx *ctx, enum ibv_qp_type type, struct raw_srq *srq_of_b);
void iso_link_connect(struct iso_link *l);
void iso_link_destroy(struct iso_link *l);

typedef void iso_act(struct raw_ctx *own);

/* Runs act in another process, to its end.  An error there fails the case. */
void iso_intrude(iso_act *act);
/* The same in a process that does not open the device: act gets NULL. */
void iso_intrude_bare(iso_act *act);
/* Runs act repeatedly in processes that are killed, `rounds` times, each time at another step. */
void iso_kill_amidst(iso_act *act, int rounds);

long iso_counter(const char *name);
void iso_counted(const char *name, long before, long by);
/* The traffic of the owner continues, in every operation. */
void iso_traffic(void);

/* A request in slot `index`; it is rung by raw_ring or iso_ring. */
void iso_build_write(struct raw_qp *qp, unsigned int index, const void *from, uint32_t lkey, uint64_t to,
		     uint32_t rkey);
void iso_ring(struct raw_qp *qp, unsigned int index, unsigned int opcode, unsigned int units);

extern const struct tb_case iso_doorbell_cases[], iso_key_cases[], iso_handle_cases[], iso_memory_cases[],
	iso_right_cases[];
extern const size_t iso_doorbell_count, iso_key_count, iso_handle_count, iso_memory_count, iso_right_count;

#endif /* ISOLATION_H */
