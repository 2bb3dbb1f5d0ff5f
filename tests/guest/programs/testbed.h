/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Common functions of the test programs: a verbs side (one device, one GID, one
 * protection domain), a pair of connected RC QPs, and a table of cases that are
 * printed as TAP.
 *
 * The setup must succeed: a failure there ends the program with status 2. A case
 * reports an error with tb_fail, which makes the case "not ok".
 */
#ifndef TESTBED_H
#define TESTBED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <infiniband/verbs.h>

#define TB_WAIT_MS		(10000 * tb_slowness())
#define TB_BUF_BYTES		(64 * 1024)
#define TB_ACCESS_ALL		(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
				 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* One opened device. */
struct tb_side {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	int gid_index;
	union ibv_gid gid;
	enum ibv_mtu mtu;
	bool is_ernic;		/* it has no empty SEND, and checks the rights of a QP by its PD */
	uint32_t max_send;	/* bytes of the longest SEND that it receives */
};

/* One QP with its own CQs and buffer. */
struct tb_qp {
	struct tb_side *side;
	struct ibv_cq *scq;
	struct ibv_cq *rcq;
	bool borrowed_rcq;
	struct ibv_qp *qp;
	uint8_t *buf;
	struct ibv_mr *mr;
	uint32_t max_inline;	/* bytes granted to the QP */
};

/* How a pair is connected; tb_pair_defaults fills it. */
struct tb_opts {
	unsigned int qp_access;		/* of the responder, b */
	unsigned int mr_access;		/* of b's buffer */
	unsigned int own_access;	/* of the requester, a, and its buffer */
	uint32_t dest_qpn;		/* destination of a; 0: b */
	enum ibv_rate static_rate;	/* of both */
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	int max_send_wr;
	int max_send_sge;
	int max_inline;
	struct ibv_srq *srq;		/* of b; NULL: b has a receive queue */
	struct ibv_cq *recv_cq;		/* of b, owned by the caller; NULL: the pair creates one */
};

struct tb_pair {
	struct tb_qp a;	/* the requester */
	struct tb_qp b;	/* the responder */
};

struct tb_case {
	const char *name;
	void (*run)(void);
};

void tb_die(const char *what, ...) __attribute__((noreturn, format(printf, 1, 2)));
void tb_fail(const char *what, ...) __attribute__((format(printf, 1, 2)));
bool tb_failed(void);
int tb_run(const struct tb_case *cases, size_t count, int argc, char **argv, void (*after_each)(void));

int64_t tb_now_ms(void);
/* Factor of time limits under a debug kernel, from $SLOWNESS; 1 without it. */
int tb_slowness(void);

/* netns: name of the network namespace of the device, NULL for that of the program. */
void tb_side_open(struct tb_side *side, const char *device, int gid_index, const char *netns);
/*
 * Opens what a program is called with: PROGRAM DEVICE GID-INDEX [DEVICE GID-INDEX NETNS] [-- CASE...].
 * *peer is where the peers are: b with two devices, a with one.  Returns the index of the first case in argv;
 * other arguments end the program with status 2.
 */
int tb_open_sides(struct tb_side *a, struct tb_side *b, struct tb_side **peer, int argc, char **argv);
void tb_enter_netns(const char *netns);
/* Enter a namespace temporarily, or with NULL no namespace; the result is needed to return. */
int tb_visit_netns(const char *netns);
void tb_return_netns(int home);

struct tb_opts tb_pair_defaults(void);
void tb_qp_create(struct tb_qp *q, struct tb_side *side, enum ibv_qp_type type, const struct tb_opts *opts);
void tb_qp_destroy(struct tb_qp *q);
void tb_qp_connect(struct tb_qp *q, const struct tb_qp *peer, const struct tb_opts *opts, unsigned int access,
		   uint32_t dest_qpn);
void tb_ud_start(struct tb_qp *q, uint32_t qkey);
void tb_pair_create(struct tb_pair *p, struct tb_side *a, struct tb_side *b, const struct tb_opts *opts);
void tb_pair_destroy(struct tb_pair *p);

/* Waits for one completion; without one it returns false and the case fails. */
bool tb_poll(struct ibv_cq *cq, struct ibv_wc *wc, const char *what);
bool tb_expect(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status, const char *what);
bool tb_expect_none(struct ibv_cq *cq, const char *what);
bool tb_expect_state(struct tb_qp *q, enum ibv_qp_state state, const char *what);
bool tb_expect_async(struct tb_side *side, enum ibv_event_type type, const struct ibv_qp *qp, const char *what);

/* SEND, WRITE, READ and, if both devices have it, an atomic over the pair, with the data checked. */
bool tb_check_traffic(struct tb_pair *p, const char *who);

#endif /* TESTBED_H */
