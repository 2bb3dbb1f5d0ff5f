// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Every verb that returns an errno also sets errno, as in the manual pages, if the
 * kernel or the provider refuses. Each verb that destroys an object fails once
 * because the object is in use. Other verbs fail because of invalid values.
 *
 * errnos DEVICE GID-INDEX [CASE...]
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "testbed.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define KEY_BYTES	40
#define NOBODYS		12345	/* an errno that no verb returns */

static struct tb_side side;
static struct ibv_cq *cq;

/* The verb fails with the expected errno, and errno has the same value. */
#define FAILS(wanted, call) do {								\
	int returned_;										\
												\
	errno = NOBODYS;									\
	returned_ = (call);									\
	if (returned_ != (wanted) || errno != returned_)					\
		tb_fail("%s: returned %d, errno %d, expected %d", #call, returned_, errno, (wanted));	\
} while (0)

#define WORKS(call) do {									\
	int returned_ = (call);									\
												\
	if (returned_)										\
		tb_fail("%s: %s", #call, strerror(returned_));					\
} while (0)

/* A handle that the kernel does not have: a verb that ends with its command returns the kernel's errno. */
#define GONE	0x7fffffff

#define GONE_FAILS(wanted, handle, call) do {							\
	uint32_t kept_ = (handle);								\
												\
	(handle) = GONE;									\
	FAILS(wanted, call);									\
	(handle) = kept_;									\
} while (0)

static void *made(void *object, const char *what)
{
	if (!object)
		tb_die("%s", what);
	return object;
}

static struct ibv_qp *make_qp_in(struct ibv_pd *pd, enum ibv_qp_type type, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .srq = srq, .cap = { 1, 1, 1, 1, 0 },
					 .qp_type = type };

	return made(ibv_create_qp(pd, &init), "ibv_create_qp");
}

static struct ibv_srq *make_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 1, .max_sge = 1 } };

	return made(ibv_create_srq(side.pd, &init), "ibv_create_srq");
}

/* ------------------------------------------------------------------ */
/* Objects in use                                                       */

static void pd_with_region(void)
{
	static uint8_t memory[64];
	struct ibv_pd *pd = made(ibv_alloc_pd(side.ctx), "ibv_alloc_pd");
	struct ibv_mr *mr = made(ibv_reg_mr(pd, memory, sizeof(memory), 0), "ibv_reg_mr");

	FAILS(EBUSY, ibv_dealloc_pd(pd));
	WORKS(ibv_dereg_mr(mr));
	WORKS(ibv_dealloc_pd(pd));
}

/* The address of a group: only the provider knows it. */
static void pd_with_address(void)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1,
				    .grh = { .dgid = { .raw = { [10] = 0xff, 0xff, 239, 1, 2, 3 } },
					     .sgid_index = side.gid_index, .hop_limit = 64 } };
	struct ibv_pd *pd = made(ibv_alloc_pd(side.ctx), "ibv_alloc_pd");
	struct ibv_ah *ah = made(ibv_create_ah(pd, &attr), "ibv_create_ah");

	FAILS(EBUSY, ibv_dealloc_pd(pd));
	WORKS(ibv_destroy_ah(ah));
	WORKS(ibv_dealloc_pd(pd));
}

static void parent_domain(void)
{
	struct ibv_td_init_attr td_attr = {};
	struct ibv_td *td = made(ibv_alloc_td(side.ctx, &td_attr), "ibv_alloc_td");
	struct ibv_pd *pd = made(ibv_alloc_pd(side.ctx), "ibv_alloc_pd");
	struct ibv_parent_domain_init_attr attr = { .pd = pd, .td = td };
	struct ibv_pd *parent = made(ibv_alloc_parent_domain(side.ctx, &attr), "ibv_alloc_parent_domain");
	struct ibv_qp *qp = make_qp_in(parent, IBV_QPT_RC, NULL);

	FAILS(EBUSY, ibv_dealloc_pd(pd));
	FAILS(EBUSY, ibv_dealloc_td(td));
	FAILS(EBUSY, ibv_dealloc_pd(parent));
	WORKS(ibv_destroy_qp(qp));
	WORKS(ibv_dealloc_pd(parent));
	WORKS(ibv_dealloc_td(td));
	WORKS(ibv_dealloc_pd(pd));
}

static void queues_with_qp(void)
{
	struct ibv_srq *srq = make_srq();
	struct ibv_qp *qp = make_qp_in(side.pd, IBV_QPT_RC, srq);

	FAILS(EBUSY, ibv_destroy_cq(cq));
	FAILS(EBUSY, ibv_destroy_srq(srq));
	WORKS(ibv_destroy_qp(qp));
	WORKS(ibv_destroy_srq(srq));
}

static void qp_in_group(void)
{
	union ibv_gid group = { .raw = { [10] = 0xff, 0xff, 239, 1, 2, 4 } };
	struct ibv_qp *qp = make_qp_in(side.pd, IBV_QPT_UD, NULL);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1 };

	WORKS(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
	WORKS(ibv_attach_mcast(qp, &group, 0));
	FAILS(EBUSY, ibv_destroy_qp(qp));
	WORKS(ibv_detach_mcast(qp, &group, 0));
	FAILS(EINVAL, ibv_detach_mcast(qp, &group, 0));
	WORKS(ibv_destroy_qp(qp));
}

static void xrc_domain_with_srq(void)
{
	struct ibv_xrcd_init_attr domain = { .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1,
					     .oflags = 0100 /* O_CREAT */ };
	struct ibv_xrcd *xrcd = made(ibv_open_xrcd(side.ctx, &domain), "ibv_open_xrcd");
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 1, .max_sge = 1 }, .srq_type = IBV_SRQT_XRC, .pd = side.pd, .xrcd = xrcd, .cq = cq,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ,
	};
	struct ibv_srq *srq = made(ibv_create_srq_ex(side.ctx, &init), "ibv_create_srq_ex");

	FAILS(EBUSY, ibv_close_xrcd(xrcd));
	FAILS(EBUSY, ibv_destroy_cq(cq));
	WORKS(ibv_destroy_srq(srq));
	WORKS(ibv_close_xrcd(xrcd));
}

static void receive_work_queue(void)
{
	struct ibv_wq_init_attr init = { .wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = side.pd, .cq = cq };
	struct ibv_wq *wq = made(ibv_create_wq(side.ctx, &init), "ibv_create_wq");
	struct ibv_rwq_ind_table_init_attr table_attr = { .log_ind_tbl_size = 0, .ind_tbl = &wq };
	struct ibv_wq_attr ready = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY };
	struct ibv_wq_attr none = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = 99 };
	uint8_t key[KEY_BYTES] = { 1 };
	struct ibv_flow_attr all = { .type = IBV_FLOW_ATTR_ALL_DEFAULT, .size = sizeof(all), .port = 1 };
	struct ibv_qp_attr to_init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_rwq_ind_table *table;
	struct ibv_recv_wr wr = {}, *bad;
	struct ibv_flow *flow;
	struct ibv_qp *qp;

	FAILS(EINVAL, ibv_post_wq_recv(wq, &wr, &bad));
	FAILS(EINVAL, ibv_modify_wq(wq, &none));
	WORKS(ibv_modify_wq(wq, &ready));
	table = made(ibv_create_rwq_ind_table(side.ctx, &table_attr), "ibv_create_rwq_ind_table");
	qp = made(ibv_create_qp_ex(side.ctx, &(struct ibv_qp_init_attr_ex) {
		.qp_type = IBV_QPT_RAW_PACKET, .pd = side.pd, .rwq_ind_tbl = table,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
		.rx_hash_conf = { .rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ, .rx_hash_key_len = KEY_BYTES,
				  .rx_hash_key = key, .rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4 |
				  IBV_RX_HASH_DST_IPV4 },
	}), "ibv_create_qp_ex");
	FAILS(EBUSY, ibv_destroy_wq(wq));
	FAILS(EBUSY, ibv_destroy_rwq_ind_table(table));
	FAILS(EOPNOTSUPP, ibv_modify_qp(qp, &to_init, IBV_QP_STATE | IBV_QP_PORT));
	GONE_FAILS(ENOENT, qp->handle, ibv_modify_qp(qp, &to_init, IBV_QP_STATE | IBV_QP_PORT));
	GONE_FAILS(ENOENT, qp->handle, ibv_destroy_qp(qp));
	flow = made(ibv_create_flow(qp, &all), "ibv_create_flow");
	GONE_FAILS(ENOENT, flow->handle, ibv_destroy_flow(flow));
	WORKS(ibv_destroy_flow(flow));
	WORKS(ibv_destroy_qp(qp));
	WORKS(ibv_destroy_rwq_ind_table(table));
	WORKS(ibv_destroy_wq(wq));
}

static void device_memory_with_region(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 4096 };
	struct ibv_dm *dm = made(ibv_alloc_dm(side.ctx, &attr), "ibv_alloc_dm");
	struct ibv_mr *mr = made(ibv_reg_dm_mr(side.pd, dm, 0, 4096, IBV_ACCESS_ZERO_BASED), "ibv_reg_dm_mr");
	uint32_t word = 0;

	FAILS(EBUSY, ibv_free_dm(dm));
	FAILS(EINVAL, ibv_memcpy_to_dm(dm, 4096, &word, sizeof(word)));
	FAILS(EINVAL, ibv_memcpy_from_dm(&word, dm, 4096, sizeof(word)));
	WORKS(ibv_dereg_mr(mr));
	WORKS(ibv_free_dm(dm));
}

/* ------------------------------------------------------------------ */
/* Handles that are gone                                                */

static void handles_that_are_gone(void)
{
	static uint8_t memory[64];
	struct ibv_mr *mr = made(ibv_reg_mr(side.pd, memory, sizeof(memory), 0), "ibv_reg_mr");
	struct ibv_mw *mw = made(ibv_alloc_mw(side.pd, IBV_MW_TYPE_2), "ibv_alloc_mw");
	struct ibv_pd *pd = made(ibv_alloc_pd(side.ctx), "ibv_alloc_pd");
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1,
				    .grh = { .dgid = side.gid, .sgid_index = side.gid_index, .hop_limit = 64 } };
	struct ibv_ah *ah = made(ibv_create_ah(pd, &attr), "ibv_create_ah");
	struct ibv_srq *srq = make_srq();
	struct ibv_qp *qp = make_qp_in(side.pd, IBV_QPT_RC, NULL);
	struct ibv_modify_cq_attr moderation = { .attr_mask = IBV_CQ_ATTR_MODERATE };
	struct ibv_srq_attr limit = { .srq_limit = 1 }, srq_attr;
	struct ibv_qp_attr init_attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 }, qp_attr;
	struct ibv_qp_init_attr init;

	GONE_FAILS(ENOENT, mr->handle, ibv_dereg_mr(mr));
	GONE_FAILS(ENOENT, mw->handle, ibv_dealloc_mw(mw));
	GONE_FAILS(ENOENT, qp->handle, ibv_modify_qp(qp, &init_attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						     IBV_QP_ACCESS_FLAGS));
	GONE_FAILS(ENOENT, qp->handle, ibv_query_qp(qp, &qp_attr, IBV_QP_STATE, &init));
	GONE_FAILS(ENOENT, qp->handle, ibv_destroy_qp(qp));
	GONE_FAILS(ENOENT, srq->handle, ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT));
	GONE_FAILS(ENOENT, srq->handle, ibv_query_srq(srq, &srq_attr));
	GONE_FAILS(ENOENT, srq->handle, ibv_destroy_srq(srq));
	GONE_FAILS(ENOENT, cq->handle, ibv_modify_cq(cq, &moderation));
	GONE_FAILS(ENOENT, cq->handle, ibv_resize_cq(cq, 100));
	GONE_FAILS(ENOENT, cq->handle, ibv_destroy_cq(cq));
	WORKS(ibv_dereg_mr(mr));
	WORKS(ibv_dealloc_mw(mw));
	WORKS(ibv_destroy_qp(qp));
	WORKS(ibv_destroy_srq(srq));
	WORKS(ibv_destroy_ah(ah));
	GONE_FAILS(ENOENT, pd->handle, ibv_dealloc_pd(pd));
	WORKS(ibv_dealloc_pd(pd));
}

/* QPs without queues. */
static void targets_that_are_gone(void)
{
	struct ibv_xrcd_init_attr domain = { .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1,
					     .oflags = 0100 /* O_CREAT */ };
	struct ibv_xrcd *xrcd = made(ibv_open_xrcd(side.ctx, &domain), "ibv_open_xrcd");
	struct ibv_qp *qp = made(ibv_create_qp_ex(side.ctx, &(struct ibv_qp_init_attr_ex) {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd,
	}), "ibv_create_qp_ex");
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	GONE_FAILS(ENOENT, qp->handle, ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						     IBV_QP_ACCESS_FLAGS));
	GONE_FAILS(ENOENT, qp->handle, ibv_destroy_qp(qp));
	FAILS(EBUSY, ibv_close_xrcd(xrcd));
	WORKS(ibv_destroy_qp(qp));
	WORKS(ibv_close_xrcd(xrcd));
}

/* ------------------------------------------------------------------ */
/* Bad values                                                           */

static void changes_and_posts(void)
{
	struct ibv_srq *srq = make_srq();
	struct ibv_mw *mw = made(ibv_alloc_mw(side.pd, IBV_MW_TYPE_1), "ibv_alloc_mw");
	struct ibv_qp *qp = made(ibv_create_qp_ex(side.ctx, &(struct ibv_qp_init_attr_ex) {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .cap = { 1, 1, 1, 1, 0 }, .pd = side.pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	}), "ibv_create_qp_ex");
	struct ibv_srq_attr too_many = { .max_wr = UINT32_MAX };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
	struct ibv_values_ex values = { .comp_mask = 1U << 31 };
	struct ibv_sge sges[64] = {};	/* more than any queue accepts */
	struct ibv_recv_wr recv = { .sg_list = sges, .num_sge = ARRAY_SIZE(sges) }, *bad_recv;
	struct ibv_send_wr send = {}, *bad_send;
	struct ibv_modify_cq_attr no_such = { .attr_mask = 1 << 7 };
	struct ibv_qp_init_attr init;
	struct ibv_device_attr_ex device;
	struct ibv_mw_bind bind = {};
	struct ibv_port_attr port;
	int file = side.ctx->cmd_fd;
	uint32_t number;

	FAILS(EINVAL, ibv_resize_cq(cq, 0));
	FAILS(EINVAL, ibv_modify_cq(cq, &no_such));
	FAILS(EINVAL, ibv_modify_srq(srq, &too_many, IBV_SRQ_MAX_WR));
	FAILS(EINVAL, ibv_modify_srq(srq, &too_many, 1 << 7));
	FAILS(EOPNOTSUPP, ibv_get_srq_num(srq, &number));
	FAILS(EINVAL, ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	FAILS(EOPNOTSUPP, ibv_query_qp(qp, &attr, IBV_QP_RATE_LIMIT, &init));
	FAILS(EINVAL, ibv_post_send(qp, &send, &bad_send));
	FAILS(EINVAL, ibv_bind_mw(qp, mw, &bind));	/* in RESET */
	bind.bind_info.mw_access_flags = IBV_ACCESS_MW_BIND;
	FAILS(EINVAL, ibv_bind_mw(qp, mw, &bind));
	ibv_wr_start(ibv_qp_to_qp_ex(qp));
	FAILS(EINVAL, ibv_wr_complete(ibv_qp_to_qp_ex(qp)));
	FAILS(EINVAL, ibv_post_recv(qp, &recv, &bad_recv));
	FAILS(EINVAL, ibv_post_srq_recv(srq, &recv, &bad_recv));
	FAILS(EINVAL, ibv_query_rt_values_ex(side.ctx, &values));
	FAILS(EINVAL, ibv_query_port(side.ctx, 2, &port));
	side.ctx->cmd_fd = -1;
	FAILS(EBADF, ibv_query_device_ex(side.ctx, NULL, &device));
	side.ctx->cmd_fd = file;
	FAILS(ENOENT, ibv_advise_mr(side.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, sges, 1));
	WORKS(ibv_dealloc_mw(mw));
	WORKS(ibv_destroy_qp(qp));
	WORKS(ibv_destroy_srq(srq));
}

static const struct tb_case cases[] = {
	{ "a PD with a region", pd_with_region },
	{ "a PD with the address of a group", pd_with_address },
	{ "a PD, a thread domain and a parent domain", parent_domain },
	{ "a CQ and an SRQ with a QP", queues_with_qp },
	{ "a QP in a group", qp_in_group },
	{ "an XRC domain with an SRQ", xrc_domain_with_srq },
	{ "a receive work queue and its table", receive_work_queue },
	{ "device memory with a region", device_memory_with_region },
	{ "handles that are gone", handles_that_are_gone },
	{ "targets that are gone", targets_that_are_gone },
	{ "changes and posts", changes_and_posts },
};

int main(int argc, char **argv)
{
	int status;

	if (argc < 3) {
		fprintf(stderr, "usage: errnos DEVICE GID-INDEX [CASE...]\n");
		return 2;
	}
	tb_side_open(&side, argv[1], atoi(argv[2]), NULL);
	cq = made(ibv_create_cq(side.ctx, 16, NULL, NULL, 0), "ibv_create_cq");
	status = tb_run(cases, ARRAY_SIZE(cases), argc - 3, argv + 3, NULL);
	if (ibv_destroy_cq(cq))
		tb_die("ibv_destroy_cq");
	return status;
}
