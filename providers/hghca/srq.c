/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* JingZhao HCA: shared receive queues (interface document, section 5.2, Shared). */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cqe.h"
#include "hghca.h"
#include "hghca_abi.h"
#include "wqe.h"

#define HGHCA_SRQ_COMP_MASK	(IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD)
#define HGHCA_XRC_SRQ_COMP_MASK	(HGHCA_SRQ_COMP_MASK | IBV_SRQ_INIT_ATTR_XRCD | \
				 IBV_SRQ_INIT_ATTR_CQ)
#define HGHCA_SRQ_ATTR_MASK	(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)

#define HGHCA_SRQ_COPY_WQES	64	/* copied with the lock held, when a queue grows */

/* ------------------------------------------------------------------ */
/* Slots                                                                */

static inline void *hghca_srq_wqe(const struct hghca_srq *srq, uint32_t slot)
{
	return (char *)srq->wqes + ((size_t)slot << srq->stride_log);
}

/*
 * Link the slots from `first` to the last of `cnt` to each other, before the device or
 * another thread uses them.
 */
static void hghca_srq_link_new(struct hghca_srq_slot *slots, void *wqes,
			       uint32_t stride_log, uint32_t first, uint32_t cnt)
{
	struct hghca_next_unit *unit;
	uint32_t slot;

	for (slot = first; slot + 1 < cnt; slot++) {
		unit = (void *)((char *)wqes + ((size_t)slot << stride_log));
		slots[slot].next = slot + 1;
		unit->nda_nop = htole32((slot + 1) << stride_log);
	}
}

/* While the queue grows, the device reads from either array: both must have every WQE. */
static inline void hghca_srq_write_both(struct hghca_srq *srq, uint32_t slot)
{
	size_t offset = (size_t)slot << srq->stride_log;

	if (srq->next_wqes)
		memcpy((char *)srq->next_wqes + offset, hghca_srq_wqe(srq, slot),
		       (size_t)1 << srq->stride_log);
}

/* Link `slot` to `next`, in the slot's state and in its WQE. */
static inline void hghca_srq_link(struct hghca_srq *srq, uint32_t slot, uint32_t next)
{
	struct hghca_next_unit *unit = hghca_srq_wqe(srq, slot);

	srq->slots[slot].next = next;
	unit->nda_nop = htole32(next << srq->stride_log);
	hghca_srq_write_both(srq, slot);
}

static inline void hghca_srq_append_free(struct hghca_srq *srq, uint32_t slot)
{
	hghca_srq_link(srq, srq->last_free, slot);
	srq->last_free = slot;
}

/*
 * The WQE at an offset has completed: its slot is free.  The offset comes from the
 * device and is checked.  Returns 0, or EIO with nothing changed if no WQE is
 * outstanding there.
 */
int hghca_srq_complete(struct hghca_srq *srq, uint32_t offset, uint64_t *wr_id)
{
	uint32_t slot = offset >> srq->stride_log;
	int err = EIO;

	hghca_lock(&srq->lock);
	if (slot < srq->cnt && srq->slots[slot].outstanding) {
		*wr_id = srq->slots[slot].wr_id;
		srq->slots[slot].outstanding = false;
		srq->outstanding--;
		hghca_srq_append_free(srq, slot);
		err = 0;
	}
	hghca_unlock(&srq->lock);
	return err;
}

/* Write one WQE, but not its link, which is there already.  Returns 0 or an errno. */
static inline int hghca_srq_encode(struct hghca_srq *srq, const struct ibv_recv_wr *wr)
{
	uint32_t slot = srq->first_free;
	int err;

	if (slot == srq->last_free)
		return ENOMEM;

	err = hghca_wqe_set_scatter(hghca_srq_wqe(srq, slot), srq->stride_log,
				    srq->max_sge, wr);
	if (err)
		return err;
	hghca_srq_write_both(srq, slot);
	srq->slots[slot].wr_id = wr->wr_id;
	srq->slots[slot].outstanding = true;
	srq->outstanding++;
	srq->first_free = srq->slots[slot].next;
	return 0;
}

int hghca_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
			struct ibv_recv_wr **bad_wr)
{
	struct hghca_srq *srq = to_hsrq(ibsrq);
	uint32_t posted;
	int err = 0;

	hghca_lock(&srq->lock);
	for (posted = srq->posted; wr; wr = wr->next, posted++) {
		err = hghca_srq_encode(srq, wr);
		if (err) {
			*bad_wr = wr;
			break;
		}
	}
	if (posted != srq->posted) {
		srq->posted = posted;
		hghca_queue_before_record();
		srq->dbr->posted = htole32(posted);
	}
	hghca_unlock(&srq->lock);
	return hghca_errno(err);
}

/* ------------------------------------------------------------------ */
/* Sizes and memory                                                     */

/* The number of slots for `asked` work requests, with one more.  Returns 0 or an errno. */
static int hghca_srq_round(const struct hghca_context *ctx, uint32_t asked, uint32_t *cnt)
{
	if (!asked || asked > ctx->max_srq_wr)
		return EINVAL;
	*cnt = roundup_pow_of_two(asked + 1);
	return 0;
}

/* Compute the number and the size of slots for attr. */
static int hghca_srq_size(const struct hghca_context *ctx, struct hghca_srq *srq,
			  const struct ibv_srq_attr *attr)
{
	uint32_t bytes;

	if (attr->max_sge > ctx->max_srq_sge)
		return EINVAL;
	bytes = sizeof(struct hghca_next_unit) +
		attr->max_sge * sizeof(struct hghca_data_unit);
	if (bytes > ctx->max_desc_sz_rq)
		return EINVAL;

	srq->stride_log = hghca_wqe_stride_log(bytes);
	srq->max_sge = hghca_wqe_recv_sge_grant(attr->max_sge);
	return hghca_srq_round(ctx, attr->max_wr, &srq->cnt);
}

static int hghca_srq_alloc(struct hghca_context *ctx, struct hghca_srq *srq)
{
	int err;

	err = hghca_buf_alloc(ctx, &srq->buf, (size_t)srq->cnt << srq->stride_log,
			      srq->parent, HGHCA_RES_SRQ);
	if (err)
		return err;
	err = ENOMEM;
	srq->dbr = hghca_dbr_alloc(ctx);
	if (!srq->dbr)
		goto err_buf;
	srq->slots = calloc(srq->cnt, sizeof(*srq->slots));
	if (!srq->slots)
		goto err_dbr;
	srq->wqes = srq->buf.addr;
	hghca_lock_init(&srq->lock, ctx->single_threaded ||
			(srq->parent && srq->parent->td));
	pthread_mutex_init(&srq->resizing, NULL);
	return 0;

err_dbr:
	hghca_dbr_free(ctx, srq->dbr);
err_buf:
	hghca_buf_free(ctx, &srq->buf);
	return err;
}

static void hghca_srq_free(struct hghca_context *ctx, struct hghca_srq *srq)
{
	pthread_mutex_destroy(&srq->resizing);
	hghca_lock_destroy(&srq->lock);
	free(srq->slots);
	hghca_dbr_free(ctx, srq->dbr);
	hghca_buf_free(ctx, &srq->buf);
}

/* The attributes that are granted. */
static void hghca_srq_get_attr(const struct hghca_srq *srq, struct ibv_srq_attr *attr)
{
	attr->max_wr = srq->cnt - 1;
	attr->max_sge = srq->max_sge;
}

/* ------------------------------------------------------------------ */
/* Create, query, destroy                                               */

/* The driver's part of the command. */
static struct hghca_create_srq hghca_srq_cmd(const struct hghca_srq *srq)
{
	return (struct hghca_create_srq) {
		.buf_addr = (uintptr_t)srq->buf.addr,
		.dbr_addr = (uintptr_t)srq->dbr,
		.wqe_cnt = srq->cnt,
		.log_stride = srq->stride_log,
	};
}

static int hghca_srq_register(struct hghca_srq *srq, struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq_init_attr plain = { attr->srq_context, attr->attr };
	struct hghca_ucmd_create_srq_resp resp = {};
	struct hghca_ucmd_create_srq cmd = { .drv_payload = hghca_srq_cmd(srq) };
	int err;

	err = ibv_cmd_create_srq(attr->pd, &srq->vsrq.srq, &plain,
				 &cmd.ibv_cmd, sizeof(cmd),
				 &resp.ibv_resp, sizeof(resp));
	if (err)
		return err;
	srq->srqn = resp.drv_payload.srqn;
	return 0;
}

static int hghca_srq_register_xrc(struct ibv_context *context, struct hghca_srq *srq,
				  struct ibv_srq_init_attr_ex *attr)
{
	struct hghca_context *ctx = to_hctx(context);
	struct hghca_ucmd_create_xrc_srq_resp resp = {};
	struct hghca_ucmd_create_xrc_srq cmd = { .drv_payload = hghca_srq_cmd(srq) };
	int err;

	err = ibv_cmd_create_srq_ex(context, &srq->vsrq, attr,
				    &cmd.ibv_cmd, sizeof(cmd),
				    &resp.ibv_resp, sizeof(resp));
	if (err)
		return err;
	srq->srqn = resp.drv_payload.srqn;
	srq->cq = to_hcq(attr->cq);
	err = hghca_table_add(ctx, &ctx->xrc_srqs, srq->srqn, srq);
	if (err)
		ibv_cmd_destroy_srq(&srq->vsrq.srq);
	return err;
}

static bool hghca_srq_is_xrc(const struct ibv_srq_init_attr_ex *attr)
{
	return (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) &&
	       attr->srq_type == IBV_SRQT_XRC;
}

static int hghca_srq_check_attr(const struct hghca_context *ctx,
				const struct ibv_srq_init_attr_ex *attr)
{
	bool xrc = hghca_srq_is_xrc(attr);

	if (!ctx->max_srq_wr || (xrc && !ctx->has_xrc) ||
	    !check_comp_mask(attr->comp_mask, xrc ? HGHCA_XRC_SRQ_COMP_MASK :
						    HGHCA_SRQ_COMP_MASK) ||
	    ((attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) && !xrc &&
	     attr->srq_type != IBV_SRQT_BASIC))
		return EOPNOTSUPP;
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd)
		return EINVAL;
	if (xrc && (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) || !attr->xrcd ||
		    !(attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ) || !attr->cq))
		return EINVAL;
	return 0;
}

struct ibv_srq *hghca_create_srq_ex(struct ibv_context *context,
				    struct ibv_srq_init_attr_ex *attr)
{
	struct hghca_context *ctx = to_hctx(context);
	struct hghca_srq *srq;
	int err;

	err = hghca_srq_check_attr(ctx, attr);
	if (err)
		goto err_errno;
	srq = calloc(1, sizeof(*srq));
	if (!srq) {
		err = ENOMEM;
		goto err_errno;
	}
	srq->parent = to_hpd(attr->pd)->parent_of ? to_hpd(attr->pd) : NULL;
	err = hghca_srq_size(ctx, srq, &attr->attr);
	if (err)
		goto err_srq;
	err = hghca_srq_alloc(ctx, srq);
	if (err)
		goto err_srq;
	/* At first all slots are free, in order. */
	hghca_srq_link_new(srq->slots, srq->wqes, srq->stride_log, 0, srq->cnt);
	srq->last_free = srq->cnt - 1;

	err = hghca_srq_is_xrc(attr) ? hghca_srq_register_xrc(context, srq, attr) :
				       hghca_srq_register(srq, attr);
	if (err)
		goto err_alloc;
	if (srq->parent)
		atomic_fetch_add(&srq->parent->users, 1);
	srq->vsrq.srq.srq_context = attr->srq_context;
	srq->vsrq.srq.pd = attr->pd;
	hghca_srq_get_attr(srq, &attr->attr);
	return &srq->vsrq.srq;

err_alloc:
	hghca_srq_free(ctx, srq);
err_srq:
	free(srq);
err_errno:
	errno = err;
	return NULL;
}

struct ibv_srq *hghca_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex attr_ex = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_srq *srq;

	srq = hghca_create_srq_ex(pd->context, &attr_ex);
	if (srq)
		attr->attr = attr_ex.attr;
	return srq;
}

/* The number by which requesters address an XRC SRQ; other SRQs have none. */
int hghca_get_srq_num(struct ibv_srq *ibsrq, uint32_t *srq_num)
{
	const struct hghca_srq *srq = to_hsrq(ibsrq);

	if (!srq->cq)
		return hghca_errno(EOPNOTSUPP);
	*srq_num = srq->srqn;
	return 0;
}

int hghca_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
	struct hghca_srq *srq = to_hsrq(ibsrq);
	struct ibv_query_srq cmd;
	int err;

	err = ibv_cmd_query_srq(ibsrq, attr, &cmd, sizeof(cmd));
	if (err)
		return hghca_errno(err);
	hghca_lock(&srq->lock);
	hghca_srq_get_attr(srq, attr);
	hghca_unlock(&srq->lock);
	return 0;
}

static bool hghca_cqe_is_of_srq(struct hghca_cq *cq, const void *owner,
				const struct hghca_cqe *cqe)
{
	return hghca_cq_xrc_srq(cq, cqe) == owner;
}

/* Remove the CQEs of an XRC SRQ, with the lock held, after the device has destroyed the SRQ. */
static void hghca_cq_purge_srq(struct hghca_cq *cq, const struct hghca_srq *srq)
{
	hghca_cq_remove_cqes(cq, srq, hghca_cqe_is_of_srq);
}

/* Remaining CQEs would complete WQEs of the next SRQ of that number. */
static int hghca_srq_unregister_xrc(struct hghca_context *ctx, struct hghca_srq *srq)
{
	int err;

	err = ibv_cmd_destroy_srq(&srq->vsrq.srq);
	if (err)
		return err;

	hghca_lock(&srq->cq->lock);
	hghca_cq_purge_srq(srq->cq, srq);
	hghca_table_clear(&ctx->xrc_srqs, srq->srqn);
	hghca_unlock(&srq->cq->lock);
	hghca_table_wake(ctx);
	return 0;
}

int hghca_destroy_srq(struct ibv_srq *ibsrq)
{
	struct hghca_context *ctx = to_hctx(ibsrq->context);
	struct hghca_srq *srq = to_hsrq(ibsrq);
	int err;

	err = srq->cq ? hghca_srq_unregister_xrc(ctx, srq) :
			ibv_cmd_destroy_srq(ibsrq);
	if (err)
		return hghca_errno(err);

	hghca_srq_free(ctx, srq);
	if (srq->parent)
		atomic_fetch_sub(&srq->parent->users, 1);
	free(srq);
	return 0;
}

/* ------------------------------------------------------------------ */
/* Modify                                                               */

/*
 * From now on posts write to the new array too: the device switches to it at some
 * time during the command.  The old array is copied in pieces, so that no thread
 * waits for the lock while all of it is copied.  That is correct, because every change
 * of a WQE is made in both arrays.
 */
static void hghca_srq_announce_wqes(struct hghca_srq *srq, void *wqes)
{
	size_t all = (size_t)srq->cnt << srq->stride_log;
	size_t piece = (size_t)HGHCA_SRQ_COPY_WQES << srq->stride_log;
	size_t offset;

	hghca_lock(&srq->lock);
	srq->next_wqes = wqes;
	hghca_unlock(&srq->lock);

	if (piece > all)
		piece = all;
	/* Both are powers of two. */
	for (offset = 0; offset < all; offset += piece) {
		hghca_lock(&srq->lock);
		memcpy((char *)wqes + offset, (char *)srq->wqes + offset, piece);
		hghca_unlock(&srq->lock);
	}
}

/*
 * The device has switched to the new array of `cnt` WQEs.  The new slots, which are
 * linked to each other already, follow the free ones.
 */
static void hghca_srq_switch_wqes(struct hghca_srq *srq, struct hghca_srq_slot *slots,
				  uint32_t cnt)
{
	uint32_t old_cnt;

	hghca_lock(&srq->lock);
	old_cnt = srq->cnt;
	memcpy(slots, srq->slots, old_cnt * sizeof(*slots));
	srq->wqes = srq->next_wqes;
	srq->next_wqes = NULL;
	srq->slots = slots;
	srq->cnt = cnt;
	hghca_srq_append_free(srq, old_cnt);
	srq->last_free = cnt - 1;
	hghca_unlock(&srq->lock);
}

static void hghca_srq_withdraw_wqes(struct hghca_srq *srq)
{
	hghca_lock(&srq->lock);
	srq->next_wqes = NULL;
	hghca_unlock(&srq->lock);
}

/* Add slots, with `resizing` held.  Returns 0 or an errno. */
static int hghca_srq_grow(struct hghca_srq *srq, struct ibv_srq_attr *attr,
			  int attr_mask, uint32_t cnt)
{
	struct hghca_context *ctx = to_hctx(srq->vsrq.srq.context);
	struct hghca_srq_slot *slots, *old_slots = srq->slots;
	struct hghca_buf buf, old_buf = srq->buf;
	struct hghca_ucmd_modify_srq cmd = {};
	int err;

	err = hghca_buf_alloc(ctx, &buf, (size_t)cnt << srq->stride_log,
			      srq->parent, HGHCA_RES_SRQ);
	if (err)
		return err;
	slots = calloc(cnt, sizeof(*slots));
	if (!slots) {
		err = ENOMEM;
		goto err_buf;
	}

	hghca_prefault(ctx, buf.addr, buf.size);
	hghca_prefault(ctx, slots, cnt * sizeof(*slots));
	hghca_srq_link_new(slots, buf.addr, srq->stride_log, srq->cnt, cnt);
	hghca_srq_announce_wqes(srq, buf.addr);
	cmd.drv_payload.buf_addr = (uintptr_t)buf.addr;
	cmd.drv_payload.wqe_cnt = cnt;
	err = ibv_cmd_modify_srq(&srq->vsrq.srq, attr, attr_mask, &cmd.ibv_cmd,
				 sizeof(cmd));
	if (err)
		goto err_withdraw;
	hghca_srq_switch_wqes(srq, slots, cnt);
	srq->buf = buf;
	free(old_slots);
	hghca_buf_free(ctx, &old_buf);
	return 0;

err_withdraw:
	hghca_srq_withdraw_wqes(srq);
	free(slots);
err_buf:
	hghca_buf_free(ctx, &buf);
	return err;
}

static int hghca_srq_set_limit(struct hghca_srq *srq, struct ibv_srq_attr *attr)
{
	struct ibv_modify_srq cmd;

	return ibv_cmd_modify_srq(&srq->vsrq.srq, attr, IBV_SRQ_LIMIT,
				  &cmd, sizeof(cmd));
}

/* A queue never shrinks; a smaller number is accepted if the outstanding requests fit. */
static bool hghca_srq_fits(struct hghca_srq *srq, uint32_t max_wr)
{
	bool fits;

	hghca_lock(&srq->lock);
	fits = srq->outstanding <= max_wr;
	hghca_unlock(&srq->lock);
	return fits;
}

static int hghca_srq_modify(struct hghca_srq *srq, struct ibv_srq_attr *attr,
			    int attr_mask)
{
	uint32_t cnt = srq->cnt, max_wr = cnt - 1;
	int err;

	if (attr_mask & IBV_SRQ_MAX_WR) {
		max_wr = attr->max_wr;
		err = hghca_srq_round(to_hctx(srq->vsrq.srq.context), max_wr, &cnt);
		if (err)
			return err;
		if (!hghca_srq_fits(srq, max_wr))
			return EINVAL;
	}
	if ((attr_mask & IBV_SRQ_LIMIT) && attr->srq_limit > max_wr)
		return EINVAL;

	if (cnt > srq->cnt)
		return hghca_srq_grow(srq, attr, attr_mask, cnt);
	if (attr_mask & IBV_SRQ_LIMIT)
		return hghca_srq_set_limit(srq, attr);
	return 0;
}

int hghca_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int attr_mask)
{
	struct hghca_srq *srq = to_hsrq(ibsrq);
	int err;

	if (attr_mask & ~HGHCA_SRQ_ATTR_MASK)
		return hghca_errno(EINVAL);

	pthread_mutex_lock(&srq->resizing);
	err = hghca_srq_modify(srq, attr, attr_mask);
	pthread_mutex_unlock(&srq->resizing);
	return hghca_errno(err);
}
