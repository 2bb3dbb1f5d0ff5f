/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Common functions of the tests of keys.  A link is two connected QPs: a sends requests,
 * and b owns memory.  A second image of that memory has the expected content, and every
 * byte is compared with it.  Posting and polling use one of two interfaces:
 * ibv_post_send and ibv_poll_cq, or struct ibv_qp_ex and struct ibv_cq_ex.
 */
#ifndef LINK_H
#define LINK_H

#include "testbed.h"

#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))
#define LINK_SQ_WRS		32
#define LINK_WINDOWS		(32 * 1024)	/* of b's buffer; receive buffers follow */
#define LINK_RECEIVES		(40 * 1024)
#define LINK_LONG		20000		/* bytes of some packets at every MTU */
#define LINK_REMOTE		(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define LINK_BINDABLE		(TB_ACCESS_ALL | IBV_ACCESS_MW_BIND)

/* wr_id of each kind of work request. */
enum { SEND_ID = 1, RECV_ID, BIND_ID, INV_ID, ASK_ID };

struct link {
	struct tb_pair p;
	struct tb_opts opts;
	uint8_t *image;			/* expected content of b's buffer */
};

struct end_opts {
	enum ibv_qp_type type;
	int sq_wrs;
	bool signal_some;		/* not every send generates a completion */
	struct ibv_comp_channel *channel;
};

extern const struct end_opts link_usual;
extern struct tb_side link_asker;	/* where a is */
extern struct tb_side *link_owner;	/* where b is: the same side, or another */
/* Opens another context of the owner's device, as another process would. */
void link_open_owner_again(struct tb_side *side);
/* Like tb_visit_netns(): enters the network namespace of the owner's device. */
int link_visit_owner(void);
extern bool link_extended;		/* use the second interface */

/*
 * The whole program: PROGRAM plain|extended DEVICE GID-INDEX [DEVICE GID-INDEX NETNS] [-- CASE...]
 * With one device, a and b are on it; with two, a is on the first, b on the second.
 */
int link_run(const struct tb_case *cases, size_t count, int argc, char **argv);

void link_errno(int error, int expected, const char *what);
/* Posts a list; returns an errno. */
int link_post(struct tb_qp *q, struct ibv_send_wr *wr);
bool link_posted(struct tb_qp *q, struct ibv_send_wr *wr, const char *what);
void link_post_recv(struct tb_qp *q, size_t at, uint32_t length);
bool link_next_wc(struct ibv_cq *cq, struct ibv_wc *wc, const char *what);
/* Checks the next completion: all valid fields are compared. */
bool link_expect_wc(struct tb_qp *q, struct ibv_cq *cq, const struct ibv_wc *want, const char *what);
bool link_expect_sent(struct tb_qp *q, uint64_t wr_id, enum ibv_wc_opcode opcode, enum ibv_wc_status status,
		      uint32_t bytes, const char *what);

struct ibv_cq *link_make_cq(struct tb_side *side, struct ibv_comp_channel *channel);
void link_end_open(struct tb_qp *q, struct tb_side *side, const struct end_opts *opts);
void link_open_with(struct link *l, const struct end_opts *opts);
void link_connect(struct link *l);
void link_open(struct link *l);
void link_close(struct link *l);
/* After an error: reconnects both ends. */
void link_revive(struct link *l);
/* Compares b's memory with the image. */
void link_check(const struct link *l, const char *what);
/* The address of a byte of b's buffer. */
uint64_t link_at(const struct link *l, size_t at);
void link_fill(uint8_t *to, size_t length);

/* A request of a for b's memory that must succeed, for the bytes at `at` of b's buffer. */
bool link_ask(struct link *l, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t addr, uint32_t length,
	      enum ibv_wc_status status, const char *what);
void link_write(struct link *l, uint32_t rkey, uint64_t addr, size_t at, uint32_t length, const char *what);
void link_read(struct link *l, uint32_t rkey, uint64_t addr, size_t at, uint32_t length, const char *what);
void link_add(struct link *l, uint32_t rkey, uint64_t addr, size_t at, const char *what);
void link_opens(struct link *l, uint32_t rkey, uint64_t addr, size_t at, uint32_t length, const char *what);
void link_check_bounds(struct link *l, uint32_t rkey, uint64_t base, size_t at, uint32_t length);
/* The same that must fail with a remote access error; then the link is reconnected. */
void link_refused(struct link *l, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t addr, uint32_t length,
		  const char *what);
void link_dead(struct link *l, uint32_t rkey, uint64_t addr, const char *what);

/* Windows of b. */
struct ibv_mw *link_window_in(struct ibv_pd *pd, enum ibv_mw_type type);
struct ibv_mw *link_window(enum ibv_mw_type type);
void link_close_window(struct ibv_mw *mw);
struct ibv_send_wr link_bind_wr(struct ibv_mw *mw, struct ibv_mr *mr, uint64_t addr, uint64_t length,
				unsigned int access);
int link_post_bind(struct tb_qp *q, struct ibv_mw *mw, struct ibv_mr *mr, uint64_t addr, uint64_t length,
		   unsigned int access);
void link_bind_region(struct link *l, struct ibv_mw *mw, struct ibv_mr *mr, uint64_t addr, uint64_t length,
		      unsigned int access, const char *what);

#endif /* LINK_H */
