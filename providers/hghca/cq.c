/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* JingZhao HCA: completion queues. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include "cqe.h"
#include "hghca.h"
#include "hghca_abi.h"

#define HGHCA_CQ_MIN_CQES	2
#define HGHCA_LOG_CQE		5	/* bytes */
#define HGHCA_LOG_TIMED_CQE	6

static_assert(sizeof(struct hghca_cqe) == 1 << HGHCA_LOG_CQE, "size of a CQE");
static_assert(sizeof(struct hghca_timed_cqe) == 1 << HGHCA_LOG_TIMED_CQE,
	      "size of a CQE with a timestamp");

#define HGHCA_CQ_WC_FLAGS	(IBV_WC_STANDARD_FLAGS | \
				 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
#define HGHCA_CQ_COMP_MASK	(IBV_CQ_INIT_ATTR_MASK_FLAGS | \
				 IBV_CQ_INIT_ATTR_MASK_PD)

/* ------------------------------------------------------------------ */
/* Create, resize, destroy                                              */

/*
 * The number of CQEs of the buffer, which the kernel computes in the same way: a
 * power of two, and at least one more than asked for.  Returns 0 or EINVAL.
 */
static int hghca_cq_round(struct hghca_context *ctx, int64_t asked, uint32_t *cnt)
{
	if (asked < 1 || asked > ctx->max_cqe)
		return EINVAL;
	*cnt = roundup_pow_of_two(asked + 1);
	if (*cnt < HGHCA_CQ_MIN_CQES)
		*cnt = HGHCA_CQ_MIN_CQES;
	return 0;
}

/* Returns NULL and sets errno if it fails. */
static struct hghca_cq *hghca_cq_create(struct ibv_context *context,
					const struct ibv_cq_init_attr_ex *asked,
					bool single_threaded,
					struct hghca_pd *parent)
{
	bool timed = asked->wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
	struct hghca_context *ctx = to_hctx(context);
	struct hghca_ucmd_create_cq_resp resp = {};
	struct ibv_cq_init_attr_ex attr = *asked;
	struct hghca_ucmd_create_cq cmd = {};
	struct hghca_cq *cq;
	uint32_t cnt;
	int err;

	if (timed && !ctx->has_clock) {
		err = EOPNOTSUPP;
		goto err_errno;
	}
	err = hghca_cq_round(ctx, asked->cqe, &cnt);
	if (err)
		goto err_errno;

	cq = calloc(1, sizeof(*cq));
	if (!cq) {
		err = ENOMEM;
		goto err_errno;
	}
	cq->log_cqe = timed ? HGHCA_LOG_TIMED_CQE : HGHCA_LOG_CQE;
	cq->parent = parent;
	err = hghca_cqes_alloc(ctx, cq, &cq->buf, &cq->cqes, cnt);
	if (err)
		goto err_cq;
	cq->dbr = hghca_dbr_alloc(ctx);
	if (!cq->dbr) {
		err = ENOMEM;
		goto err_buf;
	}
	hghca_lock_init(&cq->lock, single_threaded || ctx->single_threaded);
	pthread_mutex_init(&cq->resizing, NULL);

	cmd.drv_payload.buf_addr = (uintptr_t)cq->buf.addr;
	cmd.drv_payload.dbr_addr = (uintptr_t)cq->dbr;
	attr.cqe = cnt - 1;
	err = ibv_cmd_create_cq_ex(context, &attr, NULL, &cq->vcq,
				   &cmd.ibv_cmd, sizeof(cmd),
				   &resp.ibv_resp, sizeof(resp), 0);
	if (err)
		goto err_lock;
	cq->cqn = resp.drv_payload.cqn;
	if (parent)
		atomic_fetch_add(&parent->users, 1);
	return cq;

err_lock:
	pthread_mutex_destroy(&cq->resizing);
	hghca_lock_destroy(&cq->lock);
	hghca_dbr_free(ctx, cq->dbr);
err_buf:
	hghca_buf_free(ctx, &cq->buf);
err_cq:
	free(cq);
err_errno:
	errno = err;
	return NULL;
}

struct ibv_cq *hghca_create_cq(struct ibv_context *context, int cqe,
			       struct ibv_comp_channel *channel, int comp_vector)
{
	struct ibv_cq_init_attr_ex attr = {
		.channel = channel,
		.comp_vector = comp_vector,
	};
	struct hghca_cq *cq;

	/* A negative number must not become a large one. */
	attr.cqe = cqe < 0 ? 0 : cqe;
	cq = hghca_cq_create(context, &attr, false, NULL);
	return cq ? &cq->vcq.cq : NULL;
}

struct ibv_cq_ex *hghca_create_cq_ex(struct ibv_context *context,
				     struct ibv_cq_init_attr_ex *attr)
{
	struct hghca_pd *parent = NULL;
	uint32_t flags = 0;
	struct hghca_cq *cq;
	bool single;

	if (!check_comp_mask(attr->comp_mask, HGHCA_CQ_COMP_MASK) ||
	    (attr->wc_flags & ~(uint64_t)HGHCA_CQ_WC_FLAGS)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS)
		flags = attr->flags;
	if (flags & ~IBV_CREATE_CQ_ATTR_SINGLE_THREADED) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) {
		parent = to_hpd(attr->parent_domain);
		if (!parent->parent_of) {
			errno = EINVAL;
			return NULL;
		}
	}

	single = (flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) ||
		 (parent && parent->td);
	cq = hghca_cq_create(context, attr, single, parent);
	if (!cq)
		return NULL;
	hghca_cq_set_readers(&cq->vcq.cq_ex, attr->wc_flags);
	return &cq->vcq.cq_ex;
}

/* With `resizing` held.  The device counts completions during the command itself. */
static int hghca_cq_resize(struct hghca_cq *cq, uint32_t cnt)
{
	struct ibv_cq *ibcq = &cq->vcq.cq;
	struct hghca_context *ctx = to_hctx(ibcq->context);
	struct ib_uverbs_resize_cq_resp resp = {};
	struct hghca_ucmd_resize_cq cmd = {};
	struct hghca_buf buf, old = cq->buf;
	struct hghca_cqes cqes;
	int err;

	if (cnt == cq->cqes.mask + 1)
		return 0;
	err = hghca_cqes_alloc(ctx, cq, &buf, &cqes, cnt);
	if (err)
		return err;

	err = hghca_cq_announce_cqes(cq, &cqes);
	if (err)
		goto err_buf;
	cmd.drv_payload.buf_addr = (uintptr_t)buf.addr;
	err = ibv_cmd_resize_cq(ibcq, cnt - 1, &cmd.ibv_cmd, sizeof(cmd),
				&resp, sizeof(resp));
	if (err)
		goto err_withdraw;
	hghca_cq_switch_cqes(cq);
	cq->buf = buf;
	hghca_buf_free(ctx, &old);
	return 0;

err_withdraw:
	hghca_cq_withdraw_cqes(cq);
err_buf:
	hghca_buf_free(ctx, &buf);
	return err;
}

int hghca_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct hghca_cq *cq = to_hcq(ibcq);
	uint32_t cnt;
	int err = EINVAL;

	pthread_mutex_lock(&cq->resizing);
	if (cqe > 0)
		err = hghca_cq_round(to_hctx(ibcq->context), (int64_t)cqe + cq->reserved, &cnt);
	if (!err)
		err = hghca_cq_resize(cq, cnt);
	if (!err)
		ibcq->cqe = cnt - 1 - cq->reserved;
	pthread_mutex_unlock(&cq->resizing);
	return hghca_errno(err);
}

/* Make room for the CQEs of `cqes` unsignaled sends.  Returns 0 or an errno. */
int hghca_cq_reserve(struct hghca_cq *cq, uint32_t cqes)
{
	struct ibv_cq *ibcq = &cq->vcq.cq;
	uint32_t cnt;
	int cqe;
	int err;

	pthread_mutex_lock(&cq->resizing);
	cqe = ibcq->cqe;
	err = hghca_cq_round(to_hctx(ibcq->context), (int64_t)cqe + cq->reserved + cqes, &cnt);
	if (!err && cnt > cq->cqes.mask + 1)
		err = hghca_cq_resize(cq, cnt);
	/* What the application asked for. */
	ibcq->cqe = cqe;
	if (!err) {
		cq->reserved += cqes;
		cq->has_silent = true;
	}
	pthread_mutex_unlock(&cq->resizing);
	return err;
}

/* Undo hghca_cq_reserve(): the CQ keeps its size. */
void hghca_cq_unreserve(struct hghca_cq *cq, uint32_t cqes)
{
	pthread_mutex_lock(&cq->resizing);
	cq->reserved -= cqes;
	pthread_mutex_unlock(&cq->resizing);
}

int hghca_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr)
{
	struct ibv_modify_cq cmd = {};

	return hghca_errno(ibv_cmd_modify_cq(ibcq, attr, &cmd, sizeof(cmd)));
}

int hghca_destroy_cq(struct ibv_cq *ibcq)
{
	struct hghca_context *ctx = to_hctx(ibcq->context);
	struct hghca_cq *cq = to_hcq(ibcq);
	int err;

	err = ibv_cmd_destroy_cq(ibcq);
	if (err)
		return hghca_errno(err);

	pthread_mutex_destroy(&cq->resizing);
	hghca_lock_destroy(&cq->lock);
	hghca_dbr_free(ctx, cq->dbr);
	hghca_buf_free(ctx, &cq->buf);
	if (cq->parent)
		atomic_fetch_sub(&cq->parent->users, 1);
	free(cq);
	return 0;
}

/* ------------------------------------------------------------------ */
/* Both CQs of a QP                                                     */

/* In the order of their numbers, so that two threads cannot deadlock. */
void hghca_cq_lock_pair(struct hghca_cq *a, struct hghca_cq *b)
{
	if (a == b) {
		hghca_lock(&a->lock);
	} else if (a->cqn < b->cqn) {
		hghca_lock(&a->lock);
		hghca_lock(&b->lock);
	} else {
		hghca_lock(&b->lock);
		hghca_lock(&a->lock);
	}
}

void hghca_cq_unlock_pair(struct hghca_cq *a, struct hghca_cq *b)
{
	hghca_unlock(&a->lock);
	if (a != b)
		hghca_unlock(&b->lock);
}
