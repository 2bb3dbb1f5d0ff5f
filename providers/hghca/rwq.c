/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * JingZhao HCA: receive work queues, and tables of them (interface document,
 * section 4.25).
 *
 * A receive work queue is a QP without a send queue, as in the device: completions
 * have its number, and it is flushed in the same way.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include "hghca.h"
#include "hghca_abi.h"

#define HGHCA_WQ_COMP_MASK	IBV_WQ_INIT_ATTR_FLAGS

struct hghca_rwq {
	struct ibv_wq ibwq;
	struct hghca_qp qp;		/* its number, receive queue and state of flushing */
};

static inline struct hghca_rwq *to_hrwq(struct ibv_wq *ibwq)
{
	return container_of(ibwq, struct hghca_rwq, ibwq);
}

/* ------------------------------------------------------------------ */
/* Queues                                                               */

static int hghca_post_wq_recv(struct ibv_wq *ibwq, struct ibv_recv_wr *wr,
			      struct ibv_recv_wr **bad_wr)
{
	if (ibwq->state == IBV_WQS_RESET) {
		*bad_wr = wr;
		return hghca_errno(EINVAL);
	}
	return hghca_errno(hghca_qp_post_recv(&to_hrwq(ibwq)->qp, wr, bad_wr));
}

static int hghca_wq_check_attr(const struct hghca_context *ctx,
			       const struct ibv_wq_init_attr *attr)
{
	if (!ctx->has_rss || attr->wq_type != IBV_WQT_RQ ||
	    !check_comp_mask(attr->comp_mask, HGHCA_WQ_COMP_MASK) ||
	    ((attr->comp_mask & IBV_WQ_INIT_ATTR_FLAGS) && attr->create_flags))
		return EOPNOTSUPP;
	if (!attr->pd || !attr->cq || !attr->max_wr)
		return EINVAL;
	return 0;
}

static int hghca_rwq_register(struct ibv_context *context, struct hghca_rwq *rwq,
			      struct ibv_wq_init_attr *attr)
{
	struct hghca_context *ctx = to_hctx(context);
	struct ib_uverbs_ex_create_wq_resp resp = {};
	struct hghca_ucmd_create_wq cmd = {};
	struct hghca_qp *qp = &rwq->qp;
	int err;

	cmd.drv_payload.buf_addr = (uintptr_t)qp->buf.addr;
	cmd.drv_payload.dbr_addr = (uintptr_t)qp->dbr;
	cmd.drv_payload.wqe_cnt = qp->rq.cnt;
	cmd.drv_payload.log_stride = qp->rq.stride_log;

	err = ibv_cmd_create_wq(context, attr, &rwq->ibwq, &cmd.ibv_cmd, sizeof(cmd),
				&resp, sizeof(resp));
	if (err)
		return err;
	qp->vqp.qp.qp_num = rwq->ibwq.wq_num;
	err = hghca_table_add(ctx, &ctx->qps, rwq->ibwq.wq_num, qp);
	if (err)
		ibv_cmd_destroy_wq(&rwq->ibwq);
	return err;
}

struct ibv_wq *hghca_create_wq(struct ibv_context *context, struct ibv_wq_init_attr *attr)
{
	struct ibv_qp_cap cap = { .max_recv_wr = attr->max_wr, .max_recv_sge = attr->max_sge };
	struct ibv_qp_init_attr_ex qp_attr = { .send_cq = attr->cq, .recv_cq = attr->cq };
	struct hghca_context *ctx = to_hctx(context);
	struct hghca_pd *parent;
	struct hghca_rwq *rwq;
	int err;

	err = hghca_wq_check_attr(ctx, attr);
	if (err)
		goto err_errno;

	rwq = calloc(1, sizeof(*rwq));
	if (!rwq) {
		err = ENOMEM;
		goto err_errno;
	}
	rwq->qp.uar = ctx->uar;
	rwq->qp.is_raw = true;
	err = hghca_rq_size(ctx, &rwq->qp, &cap);
	if (err)
		goto err_rwq;
	parent = to_hpd(attr->pd)->parent_of ? to_hpd(attr->pd) : NULL;
	err = hghca_qp_alloc(ctx, &rwq->qp, &qp_attr, parent);
	if (err)
		goto err_rwq;

	/* ibv_cmd_destroy_wq() uses them; libibverbs initializes them only after this call. */
	pthread_mutex_init(&rwq->ibwq.mutex, NULL);
	pthread_cond_init(&rwq->ibwq.cond, NULL);
	err = hghca_rwq_register(context, rwq, attr);
	if (err)
		goto err_alloc;
	rwq->ibwq.post_recv = hghca_post_wq_recv;
	if (parent) {
		rwq->qp.pd = parent;
		atomic_fetch_add(&parent->users, 1);
	}
	attr->max_wr = cap.max_recv_wr;
	attr->max_sge = cap.max_recv_sge;
	return &rwq->ibwq;

err_alloc:
	hghca_qp_free(ctx, &rwq->qp);
err_rwq:
	free(rwq);
err_errno:
	errno = err;
	return NULL;
}

/*
 * The kernel rejects other states, too.  But it then keeps a reference to the queue, which
 * cannot be destroyed any more.
 */
static bool hghca_wq_states_exist(const struct ibv_wq_attr *attr)
{
	if ((attr->attr_mask & IBV_WQ_ATTR_STATE) && attr->wq_state > IBV_WQS_ERR)
		return false;
	return !(attr->attr_mask & IBV_WQ_ATTR_CURR_STATE) ||
	       attr->curr_wq_state <= IBV_WQS_ERR;
}

int hghca_modify_wq(struct ibv_wq *ibwq, struct ibv_wq_attr *attr)
{
	bool sets_state = attr->attr_mask & IBV_WQ_ATTR_STATE;
	bool to_error = sets_state && attr->wq_state == IBV_WQS_ERR;
	struct hghca_qp *qp = &to_hrwq(ibwq)->qp;
	struct ibv_modify_wq cmd;
	bool was_flushing = false;
	int err;

	if (!hghca_wq_states_exist(attr))
		return hghca_errno(EINVAL);

	/* Before the command: no receive is posted between it and the flag. */
	if (to_error)
		was_flushing = hghca_qp_set_flushing(qp, true);

	err = ibv_cmd_modify_wq(ibwq, attr, &cmd, sizeof(cmd));
	if (err) {
		if (to_error)
			hghca_qp_set_flushing(qp, was_flushing);
		return hghca_errno(err);
	}
	if (sets_state && attr->wq_state == IBV_WQS_RESET) {
		hghca_qp_reset(qp);
		hghca_qp_set_flushing(qp, false);
	}
	return 0;
}

int hghca_destroy_wq(struct ibv_wq *ibwq)
{
	struct hghca_context *ctx = to_hctx(ibwq->context);
	struct hghca_rwq *rwq = to_hrwq(ibwq);
	int err;

	err = ibv_cmd_destroy_wq(ibwq);
	if (err)
		return hghca_errno(err);

	hghca_qp_unregister(ctx, &rwq->qp);
	hghca_qp_free(ctx, &rwq->qp);
	if (rwq->qp.pd)
		atomic_fetch_sub(&rwq->qp.pd->users, 1);
	free(rwq);
	return 0;
}

/* ------------------------------------------------------------------ */
/* Tables                                                               */

struct ibv_rwq_ind_table *hghca_create_rwq_ind_table(struct ibv_context *context,
						     struct ibv_rwq_ind_table_init_attr *attr)
{
	struct ib_uverbs_ex_create_rwq_ind_table_resp resp = {};
	struct ibv_rwq_ind_table *table;
	int err = 0;

	if (!to_hctx(context)->has_rss || attr->comp_mask)
		err = EOPNOTSUPP;
	/* The command is on the stack, so its size is limited; the kernel checks the device's. */
	else if (attr->log_ind_tbl_size > HGHCA_RSS_LOG_MAX_SIZE)
		err = EINVAL;
	if (err) {
		errno = err;
		return NULL;
	}

	table = calloc(1, sizeof(*table));
	if (!table)
		return NULL;
	err = ibv_cmd_create_rwq_ind_table(context, attr, table, &resp, sizeof(resp));
	if (err) {
		free(table);
		errno = err;
		return NULL;
	}
	return table;
}

int hghca_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table)
{
	int err = ibv_cmd_destroy_rwq_ind_table(table);

	if (!err)
		free(table);
	return hghca_errno(err);
}
