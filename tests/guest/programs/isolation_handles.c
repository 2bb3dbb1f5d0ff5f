// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Handles of objects of another process, in every command of the kernel's interface
 * that has a handle.  Each command is also executed with handles of this process and
 * must succeed, so that the handle is the reason of the refusal.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include "isolation.h"

#define LAST_HANDLE	2000

#define PD	(1U << ISO_PD)
#define CQ	(1U << ISO_CQ)
#define QP	(1U << ISO_QP)
#define SRQ	(1U << ISO_SRQ)
#define MR	(1U << ISO_MR)
#define MW	(1U << ISO_MW)
#define AH	(1U << ISO_AH)
#define WQ	(1U << ISO_WQ)
#define TABLE	(1U << ISO_TABLE)

static const char *const kind_names[ISO_KINDS] = { "PD", "CQ", "QP", "SRQ", "MR", "MW", "AH", "WQ", "table" };

/* One object of each kind of this process, created again for every command. */
struct own_set {
	struct raw_ctx *ctx;
	uint32_t handles[ISO_KINDS];
	struct raw_cq cq;
	struct raw_qp qp;		/* UD, in RTS */
	struct raw_srq srq;
	uint8_t *spare;			/* memory for queues that a command creates: RAW_WQ_BYTES */
};

static void make_own(struct own_set *own, struct raw_ctx *ctx)
{
	struct {
		struct ib_uverbs_alloc_pd_resp core;
		struct hghca_alloc_pd_resp driver;
	} pd = {};
	struct ib_uverbs_alloc_pd alloc_pd = {};
	struct ib_uverbs_reg_mr reg = { .start = (uintptr_t)ctx->buf, .hca_va = (uintptr_t)ctx->buf,
					.length = PAGE_BYTES, .access_flags = TB_ACCESS_ALL,
					.pd_handle = ctx->pd_handle };
	struct ib_uverbs_reg_mr_resp mr = {};
	struct ib_uverbs_alloc_mw alloc_mw = { .pd_handle = ctx->pd_handle, .mw_type = IBV_MW_TYPE_2 };
	struct ib_uverbs_alloc_mw_resp mw = {};
	struct ib_uverbs_create_ah create_ah = {
		.pd_handle = ctx->pd_handle,
		.attr = { .is_global = 1, .port_num = 1,
			  .grh = { .sgid_index = iso.board->gid_index, .hop_limit = 64 } },
	};
	struct {
		struct ib_uverbs_create_ah_resp core;
		struct hghca_create_ah_resp driver;
	} ah = {};
	uint32_t in_table;

	memset(own, 0, sizeof(*own));
	own->ctx = ctx;
	own->spare = raw_pages(RAW_WQ_BYTES);
	/* A PD without objects: it can be deallocated. */
	raw_must(ctx->fd, IB_USER_VERBS_CMD_ALLOC_PD, &alloc_pd, sizeof(alloc_pd), &pd, sizeof(pd), "ALLOC_PD");
	raw_must(ctx->fd, IB_USER_VERBS_CMD_REG_MR, &reg, sizeof(reg), &mr, sizeof(mr), "REG_MR");
	raw_must(ctx->fd, IB_USER_VERBS_CMD_ALLOC_MW, &alloc_mw, sizeof(alloc_mw), &mw, sizeof(mw), "ALLOC_MW");
	memcpy(create_ah.attr.grh.dgid, iso.board->gid.raw, sizeof(create_ah.attr.grh.dgid));
	raw_must(ctx->fd, IB_USER_VERBS_CMD_CREATE_AH, &create_ah, sizeof(create_ah), &ah, sizeof(ah), "CREATE_AH");
	raw_cq_create(&own->cq, ctx);
	raw_qp_create_of(&own->qp, ctx, IBV_QPT_UD, NULL);
	raw_ud_start(&own->qp, ISO_QKEY);
	raw_srq_create(&own->srq, ctx);
	/* No object uses the first queue, or the CQ that is `cq`. */
	if (raw_try_create_wq(ctx, ctx->pd_handle, own->qp.cq.handle, raw_pages(RAW_WQ_BYTES),
			      &own->handles[ISO_WQ]) ||
	    raw_try_create_wq(ctx, ctx->pd_handle, own->qp.cq.handle, raw_pages(RAW_WQ_BYTES), &in_table) ||
	    raw_try_create_table(ctx, in_table, &own->handles[ISO_TABLE]))
		tb_die("CREATE_WQ, CREATE_RWQ_IND_TBL");
	own->handles[ISO_PD] = pd.core.pd_handle;
	own->handles[ISO_CQ] = own->cq.handle;
	own->handles[ISO_QP] = own->qp.handle;
	own->handles[ISO_SRQ] = own->srq.handle;
	own->handles[ISO_MR] = mr.mr_handle;
	own->handles[ISO_MW] = mw.mw_handle;
	own->handles[ISO_AH] = ah.core.ah_handle;
}

/* ---- commands, written */

static int reg_mr(struct own_set *own, const uint32_t *h)
{
	struct ib_uverbs_reg_mr cmd = { .start = (uintptr_t)own->ctx->buf, .hca_va = (uintptr_t)own->ctx->buf,
					.length = PAGE_BYTES, .pd_handle = h[ISO_PD] };
	struct ib_uverbs_reg_mr_resp resp;

	return raw_command(own->ctx->fd, IB_USER_VERBS_CMD_REG_MR, &cmd, sizeof(cmd), &resp, sizeof(resp));
}

static int rereg_mr(struct own_set *own, const uint32_t *h)
{
	struct ib_uverbs_rereg_mr cmd = { .mr_handle = h[ISO_MR], .pd_handle = h[ISO_PD],
					  .flags = IBV_REREG_MR_CHANGE_PD };
	struct ib_uverbs_rereg_mr_resp resp;

	return raw_command(own->ctx->fd, IB_USER_VERBS_CMD_REREG_MR, &cmd, sizeof(cmd), &resp, sizeof(resp));
}

static int dereg_mr(struct own_set *own, const uint32_t *h)
{
	struct ib_uverbs_dereg_mr cmd = { .mr_handle = h[ISO_MR] };

	return raw_command(own->ctx->fd, IB_USER_VERBS_CMD_DEREG_MR, &cmd, sizeof(cmd), NULL, 0);
}

static int alloc_mw(struct own_set *own, const uint32_t *h)
{
	struct ib_uverbs_alloc_mw cmd = { .pd_handle = h[ISO_PD], .mw_type = IBV_MW_TYPE_1 };
	struct ib_uverbs_alloc_mw_resp resp;

	return raw_command(own->ctx->fd, IB_USER_VERBS_CMD_ALLOC_MW, &cmd, sizeof(cmd), &resp, sizeof(resp));
}

static int dealloc_mw(struct own_set *own, const uint32_t *h)
{
	struct ib_uverbs_dealloc_mw cmd = { .mw_handle = h[ISO_MW] };

	return raw_command(own->ctx->fd, IB_USER_VERBS_CMD_DEALLOC_MW, &cmd, sizeof(cmd), NULL, 0);
}

static int dealloc_pd(struct own_set *own, const uint32_t *h)
{
	struct ib_uverbs_dealloc_pd cmd = { .pd_handle = h[ISO_PD] };

	return raw_command(own->ctx->fd, IB_USER_VERBS_CMD_DEALLOC_PD, &cmd, sizeof(cmd), NULL, 0);
}

static int create_qp(struct own_set *own, struct ib_uverbs_create_qp *core)
{
	struct hghca_create_qp driver;
	struct raw_qp qp = { .ctx = own->ctx, .queues = own->spare, .dbr = (void *)(own->spare + 32768) };
	uint32_t handle, qpn;

	qp.srq = core->is_srq ? &own->srq : NULL;
	driver = raw_qp_driver_data(&qp);
	return raw_try_create_qp_of(own->ctx, core, &driver, sizeof(driver), &handle, &qpn);
}

static void qp_data(struct own_set *own, struct raw_srq *srq, struct ib_uverbs_create_qp *core)
{
	struct raw_qp qp = { .ctx = own->ctx, .type = IBV_QPT_RC, .cq = own->cq, .srq = srq };

	raw_qp_core_data(&qp, core);
}

static int create_qp_in_pd(struct own_set *own, const uint32_t *h)
{
	struct ib_uverbs_create_qp core;

	qp_data(own, NULL, &core);
	core.pd_handle = h[ISO_PD];
	return create_qp(own, &core);
}

static int create_qp_send_cq(struct own_set *own, const uint32_t *h)
{
	struct ib_uverbs_create_qp core;

	qp_data(own, NULL, &core);
	core.send_cq_handle = h[ISO_CQ];
	return create_qp(own, &core);
}

static int create_qp_recv_cq(struct own_set *own, const uint32_t *h)
{
	struct ib_uverbs_create_qp core;

	qp_data(own, NULL, &core);
	core.recv_cq_handle = h[ISO_CQ];
	return create_qp(own, &core);
}

static int create_qp_on_srq(struct own_set *own, const uint32_t *h)
{
	struct ib_uverbs_create_qp core;

	qp_data(own, &own->srq, &core);
	core.srq_handle = h[ISO_SRQ];
	return create_qp(own, &core);
}

static int modify_qp(struct own_set *own, const uint32_t *h)
{
	struct ib_uverbs_modify_qp cmd = { .qp_handle = h[ISO_QP], .attr_mask = IBV_QP_QKEY, .qkey = ISO_QKEY + 1 };

	return raw_command(own->ctx->fd, IB_USER_VERBS_CMD_MODIFY_QP, &cmd, sizeof(cmd), NULL, 0);
}

static int modify_qp_to_error(struct own_set *own, const uint32_t *h)
{
	struct ib_uverbs_modify_qp cmd = { .qp_handle = h[ISO_QP], .attr_mask = IBV_QP_STATE,
					   .qp_state = IBV_QPS_ERR };

	return raw_command(own->ctx->fd, IB_USER_VERBS_CMD_MODIFY_QP, &cmd, sizeof(cmd), NULL, 0);
}

static int query_qp(struct own_set *own, const uint32_t *h)
{
	struct ib_uverbs_query_qp cmd = { .qp_handle = h[ISO_QP], .attr_mask = IBV_QP_STATE };
	struct ib_uverbs_query_qp_resp resp;

	return raw_command(own->ctx->fd, IB_USER_VERBS_CMD_QUERY_QP, &cmd, sizeof(cmd), &resp, sizeof(resp));
}

static int destroy_qp(struct own_set *own, const uint32_t *h)
{
	return raw_destroy_qp_handle(own->ctx, h[ISO_QP]);
}

static int multicast(struct own_set *own, uint32_t command, uint32_t qp)
{
	struct ib_uverbs_attach_mcast cmd = { .qp_handle = qp, .gid = { 0xff, 0x0e, [10] = 0xff, 0xff, 239, 1, 2, 3 } };

	return raw_command(own->ctx->fd, command, &cmd, sizeof(cmd), NULL, 0);
}

static int attach(struct own_set *own, const uint32_t *h)
{
	return multicast(own, IB_USER_VERBS_CMD_ATTACH_MCAST, h[ISO_QP]);
}

static int detach(struct own_set *own, const uint32_t *h)
{
	int error = multicast(own, IB_USER_VERBS_CMD_ATTACH_MCAST, own->handles[ISO_QP]);

	return error ? error : multicast(own, IB_USER_VERBS_CMD_DETACH_MCAST, h[ISO_QP]);
}

static int create_srq(struct own_set *own, const uint32_t *h)
{
	struct hghca_create_srq driver = { .buf_addr = (uintptr_t)own->spare, .wqe_cnt = RAW_WQES,
					   .dbr_addr = (uintptr_t)own->spare + 32768, .log_stride = RAW_LOG_STRIDE };
	uint32_t handle, srqn;

	return raw_try_create_srq(own->ctx, h[ISO_PD], &driver, &handle, &srqn);
}

static int create_xsrq(struct own_set *own, const uint32_t *h)
{
	struct {
		struct ib_uverbs_create_xsrq core;
		struct hghca_create_srq driver;
	} cmd = {
		.core = { .pd_handle = h[ISO_PD], .srq_type = IBV_SRQT_BASIC, .max_wr = RAW_WQES - 1, .max_sge = 2 },
		.driver = { .buf_addr = (uintptr_t)own->spare, .wqe_cnt = RAW_WQES,
			    .dbr_addr = (uintptr_t)own->spare + 32768, .log_stride = RAW_LOG_STRIDE },
	};
	struct {
		struct ib_uverbs_create_srq_resp core;
		struct hghca_create_srq_resp driver;
	} resp;

	return raw_command(own->ctx->fd, IB_USER_VERBS_CMD_CREATE_XSRQ, &cmd, sizeof(cmd), &resp, sizeof(resp));
}

static int modify_srq(struct own_set *own, const uint32_t *h)
{
	struct ib_uverbs_modify_srq cmd = { .srq_handle = h[ISO_SRQ], .attr_mask = IBV_SRQ_LIMIT, .srq_limit = 3 };

	return raw_command(own->ctx->fd, IB_USER_VERBS_CMD_MODIFY_SRQ, &cmd, sizeof(cmd), NULL, 0);
}

static int query_srq(struct own_set *own, const uint32_t *h)
{
	struct ib_uverbs_query_srq cmd = { .srq_handle = h[ISO_SRQ] };
	struct ib_uverbs_query_srq_resp resp;

	return raw_command(own->ctx->fd, IB_USER_VERBS_CMD_QUERY_SRQ, &cmd, sizeof(cmd), &resp, sizeof(resp));
}

static int destroy_srq(struct own_set *own, const uint32_t *h)
{
	struct ib_uverbs_destroy_srq cmd = { .srq_handle = h[ISO_SRQ] };
	struct ib_uverbs_destroy_srq_resp resp;

	return raw_command(own->ctx->fd, IB_USER_VERBS_CMD_DESTROY_SRQ, &cmd, sizeof(cmd), &resp, sizeof(resp));
}

static int create_ah(struct own_set *own, const uint32_t *h)
{
	struct ib_uverbs_create_ah cmd = {
		.pd_handle = h[ISO_PD],
		.attr = { .is_global = 1, .port_num = 1,
			  .grh = { .sgid_index = iso.board->gid_index, .hop_limit = 64 } },
	};
	struct {
		struct ib_uverbs_create_ah_resp core;
		struct hghca_create_ah_resp driver;
	} resp;

	memcpy(cmd.attr.grh.dgid, iso.board->gid.raw, sizeof(cmd.attr.grh.dgid));
	return raw_command(own->ctx->fd, IB_USER_VERBS_CMD_CREATE_AH, &cmd, sizeof(cmd), &resp, sizeof(resp));
}

static int destroy_ah(struct own_set *own, const uint32_t *h)
{
	struct ib_uverbs_destroy_ah cmd = { .ah_handle = h[ISO_AH] };

	return raw_command(own->ctx->fd, IB_USER_VERBS_CMD_DESTROY_AH, &cmd, sizeof(cmd), NULL, 0);
}

static int resize_cq(struct own_set *own, const uint32_t *h)
{
	struct {
		struct ib_uverbs_resize_cq core;
		struct hghca_resize_cq_cmd driver;
	} cmd = {
		.core = { .cq_handle = h[ISO_CQ], .cqe = 63 },
		.driver = { .buf_addr = (uintptr_t)own->spare },
	};
	struct ib_uverbs_resize_cq_resp resp;

	return raw_command(own->ctx->fd, IB_USER_VERBS_CMD_RESIZE_CQ, &cmd, sizeof(cmd), &resp, sizeof(resp));
}

static int destroy_cq(struct own_set *own, const uint32_t *h)
{
	return raw_destroy_cq_handle(own->ctx, h[ISO_CQ]);
}

/* The provider does this without the kernel, and the kernel must refuse it to all processes. */
static int poll_cq(struct own_set *own, const uint32_t *h)
{
	struct ib_uverbs_poll_cq cmd = { .cq_handle = h[ISO_CQ], .ne = 1 };
	uint8_t resp[256];

	return raw_command(own->ctx->fd, IB_USER_VERBS_CMD_POLL_CQ, &cmd, sizeof(cmd), resp, sizeof(resp));
}

static int req_notify_cq(struct own_set *own, const uint32_t *h)
{
	struct ib_uverbs_req_notify_cq cmd = { .cq_handle = h[ISO_CQ] };

	return raw_command(own->ctx->fd, IB_USER_VERBS_CMD_REQ_NOTIFY_CQ, &cmd, sizeof(cmd), NULL, 0);
}

static int post_send(struct own_set *own, const uint32_t *h)
{
	struct {
		struct ib_uverbs_post_send core;
		struct ib_uverbs_send_wr wr;
	} cmd = {
		.core = { .qp_handle = h[ISO_QP], .wr_count = 1, .wqe_size = sizeof(cmd.wr) },
		.wr = { .opcode = IBV_WR_SEND, .wr.ud = { .ah = h[ISO_AH], .remote_qpn = own->qp.qpn } },
	};
	struct ib_uverbs_post_send_resp resp;

	return raw_command(own->ctx->fd, IB_USER_VERBS_CMD_POST_SEND, &cmd, sizeof(cmd), &resp, sizeof(resp));
}

static int post_recv(struct own_set *own, const uint32_t *h)
{
	struct {
		struct ib_uverbs_post_recv core;
		struct ib_uverbs_recv_wr wr;
	} cmd = { .core = { .qp_handle = h[ISO_QP], .wr_count = 1, .wqe_size = sizeof(cmd.wr) } };
	struct ib_uverbs_post_recv_resp resp;

	return raw_command(own->ctx->fd, IB_USER_VERBS_CMD_POST_RECV, &cmd, sizeof(cmd), &resp, sizeof(resp));
}

static int post_srq_recv(struct own_set *own, const uint32_t *h)
{
	struct {
		struct ib_uverbs_post_srq_recv core;
		struct ib_uverbs_recv_wr wr;
	} cmd = { .core = { .srq_handle = h[ISO_SRQ], .wr_count = 1, .wqe_size = sizeof(cmd.wr) } };
	struct ib_uverbs_post_srq_recv_resp resp;

	return raw_command(own->ctx->fd, IB_USER_VERBS_CMD_POST_SRQ_RECV, &cmd, sizeof(cmd), &resp, sizeof(resp));
}

/* ---- extended commands */

static int ex_create_qp(struct own_set *own, const uint32_t *h)
{
	struct raw_qp qp = { .ctx = own->ctx, .queues = own->spare, .dbr = (void *)(own->spare + 32768) };
	struct {
		struct ib_uverbs_ex_create_qp core;
		struct hghca_create_qp driver;
	} cmd = {
		.core = {
			.pd_handle = h[ISO_PD], .send_cq_handle = h[ISO_CQ], .recv_cq_handle = own->handles[ISO_CQ],
			.max_send_wr = RAW_WQES, .max_recv_wr = RAW_WQES, .max_send_sge = 1, .max_recv_sge = 1,
			.qp_type = IBV_QPT_RC,
		},
		.driver = raw_qp_driver_data(&qp),
	};
	struct {
		struct ib_uverbs_ex_create_qp_resp core;
		struct hghca_create_qp_resp driver;
	} resp;

	return raw_ex_command(own->ctx->fd, IB_USER_VERBS_EX_CMD_CREATE_QP, &cmd, sizeof(cmd.core),
			      sizeof(cmd.driver), &resp, sizeof(resp.core), sizeof(resp.driver));
}

static int ex_modify_qp(struct own_set *own, const uint32_t *h)
{
	struct ib_uverbs_ex_modify_qp cmd = {
		.base = { .qp_handle = h[ISO_QP], .attr_mask = IBV_QP_QKEY, .qkey = ISO_QKEY + 1 },
	};
	struct ib_uverbs_ex_modify_qp_resp resp;

	return raw_ex_command(own->ctx->fd, IB_USER_VERBS_EX_CMD_MODIFY_QP, &cmd, sizeof(cmd), 0, &resp,
			      sizeof(resp), 0);
}

static int ex_modify_cq(struct own_set *own, const uint32_t *h)
{
	struct ib_uverbs_ex_modify_cq cmd = { .cq_handle = h[ISO_CQ], .attr_mask = IBV_CQ_ATTR_MODERATE };

	return raw_ex_command(own->ctx->fd, IB_USER_VERBS_EX_CMD_MODIFY_CQ, &cmd, sizeof(cmd), 0, NULL, 0, 0);
}

static int ex_create_flow(struct own_set *own, const uint32_t *h)
{
	struct ib_uverbs_create_flow cmd = {
		.qp_handle = h[ISO_QP],
		.flow_attr = { .type = IBV_FLOW_ATTR_ALL_DEFAULT, .port = 1 },
	};
	struct ib_uverbs_create_flow_resp resp;

	return raw_ex_command(own->ctx->fd, IB_USER_VERBS_EX_CMD_CREATE_FLOW, &cmd, sizeof(cmd), 0, &resp,
			      sizeof(resp), 0);
}

static int ex_create_wq(struct own_set *own, const uint32_t *h)
{
	uint32_t handle;

	return raw_try_create_wq(own->ctx, h[ISO_PD], h[ISO_CQ], own->spare, &handle);
}

static int ex_modify_wq(struct own_set *own, const uint32_t *h)
{
	struct ib_uverbs_ex_modify_wq cmd = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_handle = h[ISO_WQ],
					      .wq_state = IBV_WQS_RDY };

	return raw_ex_command(own->ctx->fd, IB_USER_VERBS_EX_CMD_MODIFY_WQ, &cmd, sizeof(cmd), 0, NULL, 0, 0);
}

static int ex_destroy_wq(struct own_set *own, const uint32_t *h)
{
	struct ib_uverbs_ex_destroy_wq cmd = { .wq_handle = h[ISO_WQ] };
	struct ib_uverbs_ex_destroy_wq_resp resp;

	return raw_ex_command(own->ctx->fd, IB_USER_VERBS_EX_CMD_DESTROY_WQ, &cmd, sizeof(cmd), 0, &resp,
			      sizeof(resp), 0);
}

static int ex_create_table(struct own_set *own, const uint32_t *h)
{
	uint32_t handle;

	return raw_try_create_table(own->ctx, h[ISO_WQ], &handle);
}

static int ex_destroy_table(struct own_set *own, const uint32_t *h)
{
	struct ib_uverbs_ex_destroy_rwq_ind_table cmd = { .ind_tbl_handle = h[ISO_TABLE] };

	return raw_ex_command(own->ctx->fd, IB_USER_VERBS_EX_CMD_DESTROY_RWQ_IND_TBL, &cmd, sizeof(cmd), 0, NULL, 0,
			      0);
}

/* A QP that distributes frames over the queues of a table. */
static int ex_create_rss_qp(struct own_set *own, const uint32_t *h)
{
	struct {
		struct ib_uverbs_ex_create_qp core;
		struct hghca_create_rss_qp driver;
	} cmd = {
		.core = {
			.pd_handle = h[ISO_PD], .qp_type = IBV_QPT_RAW_PACKET, .rwq_ind_tbl_handle = h[ISO_TABLE],
			.comp_mask = IB_UVERBS_CREATE_QP_MASK_IND_TABLE,
		},
		.driver = {
			.rx_hash_fields_mask = HGHCA_RSS_FIELDS, .rx_hash_function = HGHCA_RSS_TOEPLITZ,
			.rx_hash_key_len = HGHCA_RSS_KEY_BYTES,
		},
	};
	struct {
		struct ib_uverbs_ex_create_qp_resp core;
		struct hghca_create_qp_resp driver;
	} resp;

	return raw_ex_command(own->ctx->fd, IB_USER_VERBS_EX_CMD_CREATE_QP, &cmd, sizeof(cmd.core),
			      sizeof(cmd.driver), &resp, sizeof(resp.core), sizeof(resp.driver));
}

/* ---- methods */

struct method {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[5];
};

/* A method whose attribute `id` is a handle and whose next `outs` attributes are outputs of 4 or 8 bytes. */
static int invoke(int fd, uint16_t object, uint16_t method, uint16_t id, uint32_t handle, unsigned int outs,
		  const uint16_t *out_bytes)
{
	static uint64_t answers[4];
	struct method call = {
		.hdr = { .object_id = object, .method_id = method, .num_attrs = 1 + outs },
		.attrs = { { .attr_id = id, .flags = UVERBS_ATTR_F_MANDATORY, .data = handle } },
	};
	unsigned int i;

	for (i = 0; i < outs; i++)
		call.attrs[1 + i] = (struct ib_uverbs_attr) {
			.attr_id = id + 1 + i,
			.len = out_bytes[i],
			.flags = UVERBS_ATTR_F_MANDATORY,
			.data = (uintptr_t)&answers[i],
		};
	call.hdr.length = sizeof(call.hdr) + call.hdr.num_attrs * sizeof(call.attrs[0]);
	return raw_method(fd, &call.hdr);
}

static int pd_destroy(struct own_set *own, const uint32_t *h)
{
	return invoke(own->ctx->fd, UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, UVERBS_ATTR_DESTROY_PD_HANDLE,
		      h[ISO_PD], 0, NULL);
}

static int mr_destroy(struct own_set *own, const uint32_t *h)
{
	return invoke(own->ctx->fd, UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, UVERBS_ATTR_DESTROY_MR_HANDLE,
		      h[ISO_MR], 0, NULL);
}

static int mw_destroy(struct own_set *own, const uint32_t *h)
{
	return invoke(own->ctx->fd, UVERBS_OBJECT_MW, UVERBS_METHOD_MW_DESTROY, UVERBS_ATTR_DESTROY_MW_HANDLE,
		      h[ISO_MW], 0, NULL);
}

static int ah_destroy(struct own_set *own, const uint32_t *h)
{
	return invoke(own->ctx->fd, UVERBS_OBJECT_AH, UVERBS_METHOD_AH_DESTROY, UVERBS_ATTR_DESTROY_AH_HANDLE,
		      h[ISO_AH], 0, NULL);
}

static int cq_destroy(struct own_set *own, const uint32_t *h)
{
	static const uint16_t bytes[] = { sizeof(struct ib_uverbs_destroy_cq_resp) };

	return invoke(own->ctx->fd, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY, UVERBS_ATTR_DESTROY_CQ_HANDLE,
		      h[ISO_CQ], 1, bytes);
}

static int qp_destroy(struct own_set *own, const uint32_t *h)
{
	static const uint16_t bytes[] = { sizeof(struct ib_uverbs_destroy_qp_resp) };

	return invoke(own->ctx->fd, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY, UVERBS_ATTR_DESTROY_QP_HANDLE,
		      h[ISO_QP], 1, bytes);
}

static int srq_destroy(struct own_set *own, const uint32_t *h)
{
	static const uint16_t bytes[] = { sizeof(struct ib_uverbs_destroy_srq_resp) };

	return invoke(own->ctx->fd, UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY, UVERBS_ATTR_DESTROY_SRQ_HANDLE,
		      h[ISO_SRQ], 1, bytes);
}

static int wq_destroy(struct own_set *own, const uint32_t *h)
{
	static const uint16_t bytes[] = { sizeof(uint32_t) };

	return invoke(own->ctx->fd, UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_DESTROY, UVERBS_ATTR_DESTROY_WQ_HANDLE,
		      h[ISO_WQ], 1, bytes);
}

static int table_destroy(struct own_set *own, const uint32_t *h)
{
	return invoke(own->ctx->fd, UVERBS_OBJECT_RWQ_IND_TBL, UVERBS_METHOD_RWQ_IND_TBL_DESTROY,
		      UVERBS_ATTR_DESTROY_RWQ_IND_TBL_HANDLE, h[ISO_TABLE], 0, NULL);
}

static int mr_query(struct own_set *own, const uint32_t *h)
{
	static const uint16_t bytes[] = { 4, 4, 8, 8 };

	return invoke(own->ctx->fd, UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR, UVERBS_ATTR_QUERY_MR_HANDLE,
		      h[ISO_MR], ARRAY_SIZE(bytes), bytes);
}

/* ---- each with our own handles, and with the owner's */

/* An optional feature of the device. */
#define MAYBE	(-1)

struct command {
	const char *what;
	int (*run)(struct own_set *own, const uint32_t *handles);
	unsigned int kinds;		/* kinds of its handles */
	int with_own;			/* errno with own handles; MAYBE: 0 or EOPNOTSUPP */
};

static const struct command commands[] = {
	{ "REG_MR", reg_mr, PD, 0 },
	{ "REREG_MR", rereg_mr, MR | PD, 0 },
	{ "DEREG_MR", dereg_mr, MR, 0 },
	{ "ALLOC_MW", alloc_mw, PD, 0 },
	{ "DEALLOC_MW", dealloc_mw, MW, 0 },
	{ "DEALLOC_PD", dealloc_pd, PD, 0 },
	{ "CREATE_QP", create_qp_in_pd, PD, 0 },
	{ "CREATE_QP, CQ of sends", create_qp_send_cq, CQ, 0 },
	{ "CREATE_QP, CQ of receives", create_qp_recv_cq, CQ, 0 },
	{ "CREATE_QP, SRQ", create_qp_on_srq, SRQ, 0 },
	{ "MODIFY_QP", modify_qp, QP, 0 },
	{ "MODIFY_QP to ERR", modify_qp_to_error, QP, 0 },
	{ "QUERY_QP", query_qp, QP, 0 },
	{ "DESTROY_QP", destroy_qp, QP, 0 },
	{ "ATTACH_MCAST", attach, QP, MAYBE },
	{ "DETACH_MCAST", detach, QP, MAYBE },
	{ "CREATE_SRQ", create_srq, PD, 0 },
	{ "CREATE_XSRQ", create_xsrq, PD, MAYBE },
	{ "MODIFY_SRQ", modify_srq, SRQ, 0 },
	{ "QUERY_SRQ", query_srq, SRQ, 0 },
	{ "DESTROY_SRQ", destroy_srq, SRQ, 0 },
	{ "CREATE_AH", create_ah, PD, 0 },
	{ "DESTROY_AH", destroy_ah, AH, 0 },
	{ "RESIZE_CQ", resize_cq, CQ, 0 },
	{ "DESTROY_CQ", destroy_cq, CQ, 0 },
	{ "POLL_CQ", poll_cq, CQ, EOPNOTSUPP },
	{ "REQ_NOTIFY_CQ", req_notify_cq, CQ, EOPNOTSUPP },
	{ "POST_SEND", post_send, QP | AH, EOPNOTSUPP },
	{ "POST_RECV", post_recv, QP, EOPNOTSUPP },
	{ "POST_SRQ_RECV", post_srq_recv, SRQ, EOPNOTSUPP },
	{ "extended CREATE_QP", ex_create_qp, PD | CQ, 0 },
	{ "extended MODIFY_QP", ex_modify_qp, QP, 0 },
	{ "extended MODIFY_CQ", ex_modify_cq, CQ, MAYBE },
	{ "extended CREATE_FLOW", ex_create_flow, QP, EOPNOTSUPP },
	{ "extended CREATE_WQ", ex_create_wq, PD | CQ, 0 },
	{ "extended MODIFY_WQ", ex_modify_wq, WQ, 0 },
	{ "extended DESTROY_WQ", ex_destroy_wq, WQ, 0 },
	{ "extended CREATE_RWQ_IND_TBL", ex_create_table, WQ, 0 },
	{ "extended DESTROY_RWQ_IND_TBL", ex_destroy_table, TABLE, 0 },
	{ "extended CREATE_QP, table", ex_create_rss_qp, PD | TABLE, 0 },
	{ "PD_DESTROY", pd_destroy, PD, 0 },
	{ "MR_DESTROY", mr_destroy, MR, 0 },
	{ "MW_DESTROY", mw_destroy, MW, 0 },
	{ "AH_DESTROY", ah_destroy, AH, 0 },
	{ "CQ_DESTROY", cq_destroy, CQ, 0 },
	{ "QP_DESTROY", qp_destroy, QP, 0 },
	{ "SRQ_DESTROY", srq_destroy, SRQ, 0 },
	{ "WQ_DESTROY", wq_destroy, WQ, 0 },
	{ "RWQ_IND_TBL_DESTROY", table_destroy, TABLE, 0 },
	{ "QUERY_MR", mr_query, MR, 0 },
};

static bool is_refusal(int error)
{
	return error == EINVAL || error == ENOENT || error == EBADF;
}

/* With own handles, except one of `kind`. */
static void must_refuse(const struct command *c, struct own_set *own, unsigned int kind, uint32_t handle,
			const char *whose)
{
	uint32_t handles[ISO_KINDS];
	int error;

	memcpy(handles, own->handles, sizeof(handles));
	handles[kind] = handle;
	error = c->run(own, handles);
	if (!is_refusal(error) && !(error == EOPNOTSUPP && c->with_own))
		tb_fail("%s with %s %s: %s", c->what, whose, kind_names[kind], error ? strerror(error) : "success");
}

static void try_command(struct raw_ctx *ctx, const struct command *c)
{
	unsigned int kind, other;
	struct own_set own;
	int error;

	make_own(&own, ctx);
	for (kind = 0; kind < ISO_KINDS; kind++) {
		if (!(c->kinds & 1U << kind))
			continue;
		if (own.handles[kind] >= ISO_FIRST_HANDLE)
			tb_fail("our own handles are as large as the owner's");
		must_refuse(c, &own, kind, iso.board->handles[kind], "the owner's");
		must_refuse(c, &own, kind, ISO_FIRST_HANDLE * 7, "nobody's");
		must_refuse(c, &own, kind, UINT32_MAX, "an impossible");
		for (other = 0; other < ISO_KINDS; other++)
			if (other != kind)
				must_refuse(c, &own, kind, own.handles[other], "for another kind's,");
	}
	error = c->run(&own, own.handles);
	if (error != c->with_own && !(c->with_own == MAYBE && (!error || error == EOPNOTSUPP)))
		tb_fail("%s with our own handles: %s", c->what, error ? strerror(error) : "success");
	iso.board->step++;
}

static void try_commands(struct raw_ctx *own)
{
	struct raw_ctx each;
	size_t i;

	(void)own;
	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		raw_open(&each, iso.device);
		try_command(&each, &commands[i]);
		raw_close(&each);
	}
}

static uint32_t limit_of_srq(void)
{
	struct ib_uverbs_query_srq cmd = { .srq_handle = iso.board->handles[ISO_SRQ] };
	struct ib_uverbs_query_srq_resp resp = {};

	raw_must(iso.ctx.fd, IB_USER_VERBS_CMD_QUERY_SRQ, &cmd, sizeof(cmd), &resp, sizeof(resp), "QUERY_SRQ");
	return resp.srq_limit;
}

static void foreign_handles(void)
{
	int kind;

	for (kind = 0; kind < ISO_KINDS; kind++)
		if (iso.board->handles[kind] < ISO_FIRST_HANDLE)
			tb_fail("the owner's %s has handle %u", kind_names[kind], iso.board->handles[kind]);
	iso_intrude(try_commands);
	if (limit_of_srq())
		tb_fail("the owner's SRQ has a limit of %u", limit_of_srq());
}

/* Tries to destroy all possible handles, and so those of all other processes. */
static void destroy_all_numbers(struct raw_ctx *own)
{
	static int (*const destroyers[])(struct own_set *own, const uint32_t *handles) = {
		dereg_mr, dealloc_mw, dealloc_pd, destroy_qp, destroy_srq, destroy_ah, destroy_cq, pd_destroy,
		mr_destroy, mw_destroy, ah_destroy, cq_destroy, qp_destroy, srq_destroy, ex_destroy_table,
		table_destroy, ex_destroy_wq, wq_destroy,
	};
	struct own_set all = { .ctx = own };
	uint32_t number, handles[ISO_KINDS];
	size_t i, kind;

	for (i = 0; i < ARRAY_SIZE(destroyers); i++) {
		for (number = ISO_FIRST_HANDLE; number < LAST_HANDLE; number++) {
			for (kind = 0; kind < ISO_KINDS; kind++)
				handles[kind] = number;
			if (!is_refusal(destroyers[i](&all, handles)))
				tb_fail("destroyer %zu took handle %u", i, number);
		}
		iso.board->step++;
	}
}

static void all_numbers(void)
{
	iso_intrude(destroy_all_numbers);
}

/* ---- descriptors of completion channels */

static int channel_of(struct raw_ctx *ctx)
{
	struct ib_uverbs_create_comp_channel cmd = {};
	struct ib_uverbs_create_comp_channel_resp resp = {};

	raw_must(ctx->fd, IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, &cmd, sizeof(cmd), &resp, sizeof(resp),
		 "CREATE_COMP_CHANNEL");
	return resp.fd;
}

static int create_cq_on(struct raw_ctx *ctx, int channel, bool extended)
{
	uint8_t *pages = raw_pages(65536);
	struct hghca_create_cq driver = { .buf_addr = (uintptr_t)pages, .dbr_addr = (uintptr_t)pages + 32768 };
	struct {
		struct ib_uverbs_create_cq core;
		struct hghca_create_cq driver;
	} cmd = { .core = { .cqe = 63, .comp_channel = channel }, .driver = driver };
	struct {
		struct ib_uverbs_ex_create_cq core;
		struct hghca_create_cq driver;
	} ex_cmd = { .core = { .cqe = 63, .comp_channel = channel }, .driver = driver };
	struct {
		struct ib_uverbs_create_cq_resp core;
		struct hghca_create_cq_resp driver;
	} resp = {};
	struct {
		struct ib_uverbs_ex_create_cq_resp core;
		struct hghca_create_cq_resp driver;
	} ex_resp = {};
	uint32_t handle;
	int error;

	if (extended)
		error = raw_ex_command(ctx->fd, IB_USER_VERBS_EX_CMD_CREATE_CQ, &ex_cmd, sizeof(ex_cmd.core),
				       sizeof(ex_cmd.driver), &ex_resp, sizeof(ex_resp.core), sizeof(ex_resp.driver));
	else
		error = raw_command(ctx->fd, IB_USER_VERBS_CMD_CREATE_CQ, &cmd, sizeof(cmd), &resp, sizeof(resp));
	handle = extended ? ex_resp.core.base.cq_handle : resp.core.cq_handle;
	if (!error && raw_destroy_cq_handle(ctx, handle))
		tb_fail("a CQ with a channel could not be destroyed");
	munmap(pages, 65536);
	return error;
}

static void try_channels(struct raw_ctx *own)
{
	int null = open("/dev/null", O_RDWR), mine = channel_of(own), foreign, extended;
	struct raw_ctx other;

	raw_open(&other, iso.device);
	foreign = channel_of(&other);
	for (extended = 0; extended < 2; extended++) {
		if (create_cq_on(own, mine, extended))
			tb_fail("a CQ with our own channel was refused");
		if (!is_refusal(create_cq_on(own, foreign, extended)))
			tb_fail("a CQ with a channel of another context was made");
		if (!is_refusal(create_cq_on(own, iso.board->channel, extended)))
			tb_fail("a CQ with the owner's channel was made");
		if (!is_refusal(create_cq_on(own, null, extended)))
			tb_fail("a CQ with /dev/null as its channel was made");
		if (!is_refusal(create_cq_on(own, own->fd, extended)))
			tb_fail("a CQ with the device as its channel was made");
		if (!is_refusal(create_cq_on(own, own->async_fd, extended)))
			tb_fail("a CQ with the asynchronous events as its channel was made");
	}
	close(mine);
	close(foreign);
	close(null);
	raw_close(&other);
	iso.board->step++;
}

static void foreign_channels(void)
{
	iso.board->channel = channel_of(&iso.ctx);
	iso_intrude(try_channels);
	close(iso.board->channel);
}

static void killed(void)
{
	iso_kill_amidst(try_commands, 5);
	iso_kill_amidst(destroy_all_numbers, 3);
	iso_kill_amidst(try_channels, 3);
}

const struct tb_case iso_handle_cases[] = {
	{ "handles: of the owner, in every command", foreign_handles },
	{ "handles: all numbers destroyed", all_numbers },
	{ "handles: completion channels", foreign_channels },
	{ "handles: killed amidst", killed },
};
const size_t iso_handle_count = ARRAY_SIZE(iso_handle_cases);
