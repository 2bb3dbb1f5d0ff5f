/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* JingZhao HCA: queue pairs. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hghca.h"
#include "hghca_abi.h"
#include "wqe.h"

/* The WQE before a WQE links to it: that WQE must be in another slot. */
#define HGHCA_SQ_MIN_WQES	2

#define HGHCA_QP_COMP_MASK	(IBV_QP_INIT_ATTR_PD | \
				 IBV_QP_INIT_ATTR_CREATE_FLAGS | \
				 IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)

/* A PD has no effect, but librdmacm passes one and expects it in the QP. */
#define HGHCA_TARGET_COMP_MASK	(IBV_QP_INIT_ATTR_PD | \
				 IBV_QP_INIT_ATTR_XRCD | \
				 IBV_QP_INIT_ATTR_CREATE_FLAGS)

/* Bytes before the data list of a send WQE: the largest header of the service. */
#define HGHCA_RC_HEADER_BYTES	(sizeof(struct hghca_next_unit) + \
				 sizeof(struct hghca_raddr_unit))
#define HGHCA_UD_HEADER_BYTES	(sizeof(struct hghca_next_unit) + \
				 sizeof(struct hghca_ud_gid_unit))
#define HGHCA_SEND_LIST_MIN	(2 * HGHCA_WQE_UNIT)

/* An atomic has one more unit and one data unit: it fits the smallest slot. */
static_assert(HGHCA_RC_HEADER_BYTES + sizeof(struct hghca_atomic_unit) +
	      sizeof(struct hghca_data_unit) <= 1 << HGHCA_WQE_MIN_STRIDE_LOG,
	      "an atomic needs more than the smallest slot");
static_assert(sizeof(struct hghca_next_unit) + sizeof(struct hghca_bind_unit) <=
	      1 << HGHCA_WQE_MIN_STRIDE_LOG,
	      "a bind needs more than the smallest slot");
static_assert(HGHCA_RC_HEADER_BYTES + sizeof(struct hghca_pointer_unit) +
	      sizeof(struct hghca_data_unit) <= 1 << HGHCA_WQE_MIN_STRIDE_LOG,
	      "a READ_POINTER of one SGE needs more than the smallest slot");

/* ------------------------------------------------------------------ */
/* Sizes                                                                */

/*
 * The bytes of the data list for the SGEs and the inline data of cap.  A list for
 * one SGE also has room for 16 bytes of inline data: some programs use them without
 * requesting them, because other adapters grant them.
 */
static uint32_t hghca_send_list_bytes(const struct ibv_qp_cap *cap)
{
	uint32_t sges = cap->max_send_sge * sizeof(struct hghca_data_unit);
	uint32_t data;

	if (sges && sges < HGHCA_SEND_LIST_MIN)
		sges = HGHCA_SEND_LIST_MIN;
	if (!cap->max_inline_data)
		return sges;
	data = align(HGHCA_INLINE_WORD + cap->max_inline_data, HGHCA_WQE_UNIT);
	return data > sges ? data : sges;
}

/* The bytes of the largest WQE.  A READ_POINTER has one more unit, but no inline data. */
static uint32_t hghca_send_wqe_bytes(const struct hghca_qp *qp,
				     const struct ibv_qp_cap *cap, uint32_t list)
{
	uint32_t bytes = list + (qp->is_ud ? HGHCA_UD_HEADER_BYTES : HGHCA_RC_HEADER_BYTES);
	uint32_t pointer = HGHCA_RC_HEADER_BYTES + sizeof(struct hghca_pointer_unit) +
			   cap->max_send_sge * sizeof(struct hghca_data_unit);

	return qp->has_vendor_ops && pointer > bytes ? pointer : bytes;
}

/*
 * Compute the size of the send queue for cap, and store the granted values in cap: the
 * requested number of SGEs, because a program may have an array of that size, and the
 * inline data that fits the list.  The slot may have more space.
 */
static int hghca_sq_size(struct hghca_context *ctx, struct hghca_qp *qp,
			 struct ibv_qp_cap *cap)
{
	uint32_t list, bytes;

	if (cap->max_send_wr > ctx->max_qp_wr ||
	    cap->max_send_sge > ctx->max_sge ||
	    cap->max_inline_data > ctx->max_desc_sz)
		return EINVAL;
	list = hghca_send_list_bytes(cap);
	bytes = hghca_send_wqe_bytes(qp, cap, list);
	if (bytes > ctx->max_desc_sz)
		return EINVAL;

	qp->sq.stride_log = hghca_wqe_stride_log(bytes);
	qp->sq.max_sge = cap->max_send_sge;
	qp->max_inline = list ? list - HGHCA_INLINE_WORD : 0;
	if (cap->max_send_wr) {
		qp->sq.cnt = roundup_pow_of_two(cap->max_send_wr);
		if (qp->sq.cnt < HGHCA_SQ_MIN_WQES)
			qp->sq.cnt = HGHCA_SQ_MIN_WQES;
	}
	qp->sq.mask = qp->sq.cnt - 1;

	cap->max_send_wr = qp->sq.cnt;
	cap->max_inline_data = qp->max_inline;
	return 0;
}

static bool hghca_qp_receives(const struct hghca_qp *qp)
{
	return !qp->srq && !qp->is_xrc;
}

/* The same for the receive queue. */
int hghca_rq_size(struct hghca_context *ctx, struct hghca_qp *qp, struct ibv_qp_cap *cap)
{
	uint32_t bytes;

	/* For a QP without a receive queue, the requested values are ignored. */
	if (!hghca_qp_receives(qp)) {
		cap->max_recv_wr = 0;
		cap->max_recv_sge = 0;
	}
	if (cap->max_recv_wr > ctx->max_qp_wr ||
	    cap->max_recv_sge > ctx->max_sge_rq)
		return EINVAL;

	bytes = sizeof(struct hghca_next_unit) +
		cap->max_recv_sge * sizeof(struct hghca_data_unit);
	if (bytes > ctx->max_desc_sz_rq)
		return EINVAL;

	qp->rq.stride_log = hghca_wqe_stride_log(bytes);
	qp->rq.max_sge = cap->max_recv_sge;
	if (cap->max_recv_wr) {
		qp->rq.max_sge = hghca_wqe_recv_sge_grant(cap->max_recv_sge);
		qp->rq.spare = ctx->has_dbr ? 0 : 1;
		qp->rq.cnt = roundup_pow_of_two(cap->max_recv_wr + qp->rq.spare);
	}
	qp->rq.mask = qp->rq.cnt - 1;

	cap->max_recv_wr = qp->rq.cnt - qp->rq.spare;
	cap->max_recv_sge = qp->rq.max_sge;
	return 0;
}

/* ------------------------------------------------------------------ */
/* Memory                                                               */

static int hghca_wq_init(const struct hghca_context *ctx, struct hghca_wq *wq,
			 struct hghca_cq *cq, bool elided)
{
	wq->cq = cq;
	if (wq->cnt) {
		wq->wr_ids = calloc(wq->cnt, sizeof(*wq->wr_ids));
		if (!wq->wr_ids)
			return ENOMEM;
		hghca_prefault(ctx, wq->wr_ids, wq->cnt * sizeof(*wq->wr_ids));
	}
	hghca_lock_init(&wq->lock, elided);
	return 0;
}

static void hghca_wq_fini(struct hghca_wq *wq)
{
	hghca_lock_destroy(&wq->lock);
	free(wq->wr_ids);
}

/* Prepare for CQEs that the application has not asked for.  Returns 0 or an errno. */
static int hghca_sq_init_silent(struct hghca_context *ctx, struct hghca_wq *sq)
{
	int err;

	if (ctx->has_cq_update || !sq->cnt)
		return 0;
	sq->silent = calloc(sq->cnt, sizeof(*sq->silent));
	if (!sq->silent)
		return ENOMEM;
	err = hghca_cq_reserve(sq->cq, sq->cnt);
	if (err) {
		free(sq->silent);
		sq->silent = NULL;
	}
	return err;
}

static void hghca_sq_fini_silent(struct hghca_wq *sq)
{
	if (!sq->silent)
		return;
	hghca_cq_unreserve(sq->cq, sq->cnt);
	free(sq->silent);
}

/* The send queue at the start, the receive queue at the next multiple of 4096. */
static int hghca_qp_alloc_queues(struct hghca_context *ctx, struct hghca_qp *qp,
				 struct hghca_pd *parent)
{
	size_t sq_bytes = (size_t)qp->sq.cnt << qp->sq.stride_log;
	size_t rq_bytes = (size_t)qp->rq.cnt << qp->rq.stride_log;
	size_t rq_offset = align(sq_bytes, HGHCA_QUEUE_ALIGN);
	int err;

	err = hghca_buf_alloc(ctx, &qp->buf, rq_offset + rq_bytes, parent,
			      HGHCA_RES_QP);
	if (err)
		return err;
	/* The kernel pins the pages for reading only: the first write would fault. */
	hghca_prefault(ctx, qp->buf.addr, qp->buf.size);
	qp->sq.slots = qp->buf.addr;
	qp->rq.slots = (char *)qp->buf.addr + rq_offset;
	return 0;
}

/* Allocate the queues, whose sizes are already computed.  Only the CQs of attr are used. */
int hghca_qp_alloc(struct hghca_context *ctx, struct hghca_qp *qp,
		   const struct ibv_qp_init_attr_ex *attr, struct hghca_pd *parent)
{
	bool elided = ctx->single_threaded || (parent && parent->td);
	int err;

	err = hghca_qp_alloc_queues(ctx, qp, parent);
	if (err)
		return err;
	qp->dbr = hghca_dbr_alloc(ctx);
	if (!qp->dbr) {
		err = ENOMEM;
		goto err_buf;
	}
	err = hghca_wq_init(ctx, &qp->sq, to_hcq(attr->send_cq), elided);
	if (err)
		goto err_dbr;
	err = hghca_sq_init_silent(ctx, &qp->sq);
	if (err)
		goto err_sq;
	/* An XRC initiator receives no messages and may have no receive CQ. */
	err = hghca_wq_init(ctx, &qp->rq,
			    to_hcq(qp->is_xrc ? attr->send_cq : attr->recv_cq), elided);
	if (err)
		goto err_silent;
	if (qp->sq.cnt && qp->vqp.qp_ex.wr_bind_mw) {
		qp->wr.binds = calloc(qp->sq.cnt, sizeof(*qp->wr.binds));
		if (!qp->wr.binds) {
			err = ENOMEM;
			goto err_rq;
		}
	}
	return 0;

err_rq:
	hghca_wq_fini(&qp->rq);
err_silent:
	hghca_sq_fini_silent(&qp->sq);
err_sq:
	hghca_wq_fini(&qp->sq);
err_dbr:
	hghca_dbr_free(ctx, qp->dbr);
err_buf:
	hghca_buf_free(ctx, &qp->buf);
	return err;
}

void hghca_qp_free(struct hghca_context *ctx, struct hghca_qp *qp)
{
	free(qp->wr.binds);
	hghca_wq_fini(&qp->rq);
	hghca_sq_fini_silent(&qp->sq);
	hghca_wq_fini(&qp->sq);
	hghca_dbr_free(ctx, qp->dbr);
	hghca_buf_free(ctx, &qp->buf);
}

/* ------------------------------------------------------------------ */
/* Create                                                               */

static bool hghca_qp_has_type(const struct hghca_context *ctx, enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_UD:
		return true;
	case IBV_QPT_XRC_SEND:
		return ctx->has_xrc;
	case IBV_QPT_RAW_PACKET:
		return ctx->has_raw;
	default:
		return false;
	}
}

static int hghca_qp_check_attr(const struct hghca_context *ctx,
			       const struct ibv_qp_init_attr_ex *attr)
{
	bool receives = attr->qp_type != IBV_QPT_XRC_SEND;

	if (!check_comp_mask(attr->comp_mask, HGHCA_QP_COMP_MASK))
		return EOPNOTSUPP;
	/* No QP receives its own multicast packets, with or without the flag. */
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && attr->create_flags &&
	    (attr->create_flags != IBV_QP_CREATE_BLOCK_SELF_MCAST_LB ||
	     (attr->qp_type != IBV_QPT_UD && attr->qp_type != IBV_QPT_RAW_PACKET)))
		return EOPNOTSUPP;
	if (!hghca_qp_has_type(ctx, attr->qp_type) ||
	    (attr->qp_type == IBV_QPT_RAW_PACKET && attr->srq))
		return EOPNOTSUPP;
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd ||
	    !attr->send_cq || (receives && !attr->recv_cq) || (!receives && attr->srq))
		return EINVAL;
	return 0;
}

static int hghca_qp_register(struct ibv_context *context, struct hghca_qp *qp,
			     struct ibv_qp_init_attr_ex *attr)
{
	struct hghca_context *ctx = to_hctx(context);
	struct hghca_ucmd_create_qp_resp resp = {};
	struct hghca_ucmd_create_qp cmd = {};
	int err;

	cmd.drv_payload.buf_addr = (uintptr_t)qp->buf.addr;
	cmd.drv_payload.dbr_addr = (uintptr_t)qp->dbr;
	cmd.drv_payload.sq_wqe_cnt = qp->sq.cnt;
	cmd.drv_payload.rq_wqe_cnt = qp->rq.cnt;
	cmd.drv_payload.log_sq_stride = qp->sq.stride_log;
	cmd.drv_payload.log_rq_stride = qp->rq.stride_log;
	if (qp->has_vendor_ops)
		cmd.drv_payload.flags = HGHCA_CREATE_QP_VENDOR_OPS;

	err = ibv_cmd_create_qp_ex(context, &qp->vqp, attr,
				   &cmd.ibv_cmd, sizeof(cmd),
				   &resp.ibv_resp, sizeof(resp));
	if (err)
		return err;
	err = hghca_table_add(ctx, &ctx->qps, qp->vqp.qp.qp_num, qp);
	if (err)
		ibv_cmd_destroy_qp(&qp->vqp.qp);
	return err;
}

/* A target has no queue and is not mapped: it is only a handle. */
static struct ibv_qp *hghca_create_xrc_target(struct ibv_context *context,
					      struct ibv_qp_init_attr_ex *attr)
{
	struct ib_uverbs_create_qp_resp resp = {};
	struct ibv_qp_init_attr_ex kattr = *attr;
	struct ibv_create_qp cmd = {};
	struct hghca_qp *qp;
	int err;

	if (!check_comp_mask(attr->comp_mask, HGHCA_TARGET_COMP_MASK) ||
	    ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && attr->create_flags)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) || !attr->xrcd) {
		errno = EINVAL;
		return NULL;
	}

	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	qp->is_handle = true;
	kattr.comp_mask &= ~IBV_QP_INIT_ATTR_CREATE_FLAGS;
	kattr.cap = (struct ibv_qp_cap) {};
	err = ibv_cmd_create_qp_ex(context, &qp->vqp, &kattr, &cmd, sizeof(cmd),
				   &resp, sizeof(resp));
	if (err) {
		free(qp);
		errno = err;
		return NULL;
	}
	attr->cap = qp->cap;
	return &qp->vqp.qp;
}

/* With vendor_ops, a QP that sends and accepts PART, READ_POINTER and READ_CONSISTENT. */
struct ibv_qp *hghca_create_qp_with(struct ibv_context *context,
				    struct ibv_qp_init_attr_ex *attr, bool vendor_ops)
{
	struct hghca_context *ctx = to_hctx(context);
	struct ibv_qp_init_attr_ex kattr = *attr;
	uint64_t send_ops = 0;
	bool extended = vendor_ops;
	struct hghca_pd *parent;
	struct hghca_qp *qp;
	int err;

	if (vendor_ops && (!ctx->has_vendor_ops || attr->qp_type != IBV_QPT_RC)) {
		err = EOPNOTSUPP;
		goto err_errno;
	}
	if (attr->qp_type == IBV_QPT_XRC_RECV && ctx->has_xrc)
		return hghca_create_xrc_target(context, attr);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_IND_TABLE)
		return hghca_create_rss_qp(context, attr);
	err = hghca_qp_check_attr(ctx, attr);
	if (err)
		goto err_errno;

	qp = calloc(1, sizeof(*qp));
	if (!qp) {
		err = ENOMEM;
		goto err_errno;
	}
	qp->uar = ctx->uar;
	qp->is_ud = attr->qp_type == IBV_QPT_UD;
	qp->is_uc = attr->qp_type == IBV_QPT_UC;
	qp->is_raw = attr->qp_type == IBV_QPT_RAW_PACKET;
	qp->is_xrc = attr->qp_type == IBV_QPT_XRC_SEND;
	qp->has_mem_mgt = ctx->has_mem_mgt;
	qp->has_placement = ctx->has_placement;
	qp->has_vendor_ops = vendor_ops;
	qp->signal_all = attr->sq_sig_all;
	qp->pd_handle = attr->pd->handle;
	qp->srq = attr->srq ? to_hsrq(attr->srq) : NULL;
	qp->cap = attr->cap;
	err = hghca_sq_size(ctx, qp, &qp->cap);
	if (err)
		goto err_qp;
	err = hghca_rq_size(ctx, qp, &qp->cap);
	if (err)
		goto err_qp;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
		send_ops = attr->send_ops_flags;
		extended = true;
	}
	if (extended) {
		err = hghca_wr_set_ops(qp, send_ops);
		if (err)
			goto err_qp;
	}

	parent = to_hpd(attr->pd)->parent_of ? to_hpd(attr->pd) : NULL;
	err = hghca_qp_alloc(ctx, qp, attr, parent);
	if (err)
		goto err_qp;

	/* The kernel does not need the flag, and the plain command has no field for it. */
	kattr.comp_mask &= ~IBV_QP_INIT_ATTR_CREATE_FLAGS;
	if (!hghca_qp_receives(qp)) {
		kattr.cap.max_recv_wr = 0;
		kattr.cap.max_recv_sge = 0;
	}
	err = hghca_qp_register(context, qp, &kattr);
	if (err)
		goto err_alloc;

	if (extended)
		qp->vqp.comp_mask |= VERBS_QP_EX;
	if (parent) {
		qp->pd = parent;
		atomic_fetch_add(&parent->users, 1);
	}
	attr->cap = qp->cap;
	return &qp->vqp.qp;

err_alloc:
	hghca_qp_free(ctx, qp);
err_qp:
	free(qp);
err_errno:
	errno = err;
	return NULL;
}

struct ibv_qp *hghca_create_qp_ex(struct ibv_context *context,
				  struct ibv_qp_init_attr_ex *attr)
{
	return hghca_create_qp_with(context, attr, false);
}

struct ibv_qp *hghca_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex attr_ex = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp *qp;

	qp = hghca_create_qp_ex(pd->context, &attr_ex);
	if (qp)
		attr->cap = attr_ex.cap;
	return qp;
}

struct ibv_qp *hghca_open_qp(struct ibv_context *context,
			     struct ibv_qp_open_attr *attr)
{
	struct ib_uverbs_create_qp_resp resp = {};
	struct ibv_open_qp cmd = {};
	struct hghca_qp *qp;
	int err;

	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	qp->is_handle = true;
	err = ibv_cmd_open_qp(context, &qp->vqp, sizeof(qp->vqp), attr,
			      &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (err) {
		free(qp);
		errno = err;
		return NULL;
	}
	return &qp->vqp.qp;
}

/* ------------------------------------------------------------------ */
/* Modify, query, destroy                                               */

static void hghca_wq_reset(struct hghca_wq *wq)
{
	hghca_wq_set_head(wq, 0);
	hghca_wq_set_tail(wq, 0);
}

/* The device has dropped all WQEs and counts from 0 again. */
void hghca_qp_reset(struct hghca_qp *qp)
{
	hghca_cq_lock_pair(qp->sq.cq, qp->rq.cq);
	hghca_cq_purge(qp->sq.cq, qp);
	if (qp->rq.cq != qp->sq.cq)
		hghca_cq_purge(qp->rq.cq, qp);
	hghca_wq_reset(&qp->sq);
	hghca_wq_reset(&qp->rq);
	hghca_cq_unlock_pair(qp->sq.cq, qp->rq.cq);
	qp->dbr->rq_head = 0;
	hghca_wq_clear_marks(&qp->rq);
}

int hghca_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int attr_mask)
{
	struct hghca_qp *qp = to_hqp(ibqp);
	struct ibv_modify_qp cmd = {};
	bool was_flushing = false;
	int err;

	if (qp->is_handle)
		return hghca_errno(ibv_cmd_modify_qp(ibqp, attr, attr_mask, &cmd, sizeof(cmd)));

	/* Before the command: no receive is posted between it and the flag. */
	if ((attr_mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_ERR)
		was_flushing = hghca_qp_set_flushing(qp, true);

	err = ibv_cmd_modify_qp(ibqp, attr, attr_mask, &cmd, sizeof(cmd));

	if (!(attr_mask & IBV_QP_STATE))
		return hghca_errno(err);
	if (attr->qp_state == IBV_QPS_ERR) {
		if (err)
			hghca_qp_set_flushing(qp, was_flushing);
		return hghca_errno(err);
	}
	if (err)
		return hghca_errno(err);

	if (attr->qp_state == IBV_QPS_RESET)
		hghca_qp_reset(qp);
	hghca_qp_set_flushing(qp, false);
	return 0;
}

int hghca_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int attr_mask,
		   struct ibv_qp_init_attr *init_attr)
{
	struct hghca_qp *qp = to_hqp(ibqp);
	struct ibv_query_qp cmd;
	int err;

	err = ibv_cmd_query_qp(ibqp, attr, attr_mask, init_attr,
			       &cmd, sizeof(cmd));
	if (err)
		return hghca_errno(err);
	init_attr->cap = qp->cap;
	attr->cap = qp->cap;
	return 0;
}

/*
 * The device has destroyed the QP: polls must not find it any more, as its number
 * may be assigned to another QP.
 */
void hghca_qp_unregister(struct hghca_context *ctx, struct hghca_qp *qp)
{
	hghca_cq_lock_pair(qp->sq.cq, qp->rq.cq);
	hghca_cq_purge(qp->sq.cq, qp);
	if (qp->rq.cq != qp->sq.cq)
		hghca_cq_purge(qp->rq.cq, qp);
	hghca_table_clear(&ctx->qps, qp->vqp.qp.qp_num);
	hghca_cq_unlock_pair(qp->sq.cq, qp->rq.cq);
	hghca_table_wake(ctx);
}

static int hghca_destroy_handle(struct hghca_qp *qp)
{
	int err = ibv_cmd_destroy_qp(&qp->vqp.qp);

	if (!err)
		free(qp);
	return err;
}

int hghca_destroy_qp(struct ibv_qp *ibqp)
{
	struct hghca_context *ctx = to_hctx(ibqp->context);
	struct hghca_qp *qp = to_hqp(ibqp);
	int err;

	if (qp->is_handle)
		return hghca_errno(hghca_destroy_handle(qp));

	err = ibv_cmd_destroy_qp(ibqp);
	if (err)
		return hghca_errno(err);

	hghca_qp_unregister(ctx, qp);
	hghca_qp_free(ctx, qp);
	if (qp->pd)
		atomic_fetch_sub(&qp->pd->users, 1);
	free(qp);
	return 0;
}
