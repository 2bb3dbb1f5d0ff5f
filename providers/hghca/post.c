/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* JingZhao HCA: ibv_post_send and ibv_post_recv. */
#include <config.h>

#include <errno.h>

#include "hghca.h"
#include "wqe.h"

struct hghca_send_op {
	uint8_t opcode;			/* HGHCA_OPCODE_*; NOP: not supported */
	uint8_t needs;			/* HGHCA_OP_* */
};

static const struct hghca_send_op hghca_send_ops[] = {
	[IBV_WR_RDMA_WRITE] = {
		HGHCA_OPCODE_RDMA_WRITE,
		HGHCA_OP_RADDR | HGHCA_OP_GATHER | HGHCA_OP_UC,
	},
	[IBV_WR_RDMA_WRITE_WITH_IMM] = {
		HGHCA_OPCODE_RDMA_WRITE_IMM,
		HGHCA_OP_RADDR | HGHCA_OP_GATHER | HGHCA_OP_IMM | HGHCA_OP_UC,
	},
	[IBV_WR_SEND] = {
		HGHCA_OPCODE_SEND,
		HGHCA_OP_GATHER | HGHCA_OP_UD | HGHCA_OP_UC,
	},
	[IBV_WR_SEND_WITH_IMM] = {
		HGHCA_OPCODE_SEND_IMM,
		HGHCA_OP_GATHER | HGHCA_OP_IMM | HGHCA_OP_UD | HGHCA_OP_UC,
	},
	[IBV_WR_RDMA_READ] = {
		HGHCA_OPCODE_RDMA_READ,
		HGHCA_OP_RADDR,
	},
	[IBV_WR_ATOMIC_CMP_AND_SWP] = {
		HGHCA_OPCODE_ATOMIC_CS,
		HGHCA_OP_RADDR | HGHCA_OP_ATOMIC,
	},
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = {
		HGHCA_OPCODE_ATOMIC_FA,
		HGHCA_OP_RADDR | HGHCA_OP_ATOMIC,
	},
	[IBV_WR_LOCAL_INV] = {
		HGHCA_OPCODE_LOCAL_INV,
		HGHCA_OP_KEY | HGHCA_OP_MEM_MGT | HGHCA_OP_UC,
	},
	[IBV_WR_BIND_MW] = {
		HGHCA_OPCODE_BIND_MW,
		HGHCA_OP_KEY | HGHCA_OP_MEM_MGT | HGHCA_OP_UC,
	},
	[IBV_WR_SEND_WITH_INV] = {
		HGHCA_OPCODE_SEND_INV,
		HGHCA_OP_GATHER | HGHCA_OP_MEM_MGT,
	},
};

static inline bool hghca_service_has(const struct hghca_qp *qp, const struct hghca_send_op *op)
{
	return (!qp->is_ud || (op->needs & HGHCA_OP_UD)) &&
	       (!qp->is_uc || (op->needs & HGHCA_OP_UC));
}

/* The properties of an opcode; NULL if posting it fails. */
static inline const struct hghca_send_op *hghca_send_op(const struct hghca_qp *qp,
							enum ibv_wr_opcode opcode)
{
	const struct hghca_send_op *op;

	if ((unsigned int)opcode >= sizeof(hghca_send_ops) / sizeof(*op))
		return NULL;
	op = &hghca_send_ops[opcode];
	if (op->opcode == HGHCA_OPCODE_NOP || (qp->is_raw && op->opcode != HGHCA_OPCODE_SEND))
		return NULL;
	if ((op->needs & HGHCA_OP_MEM_MGT) &&
	    (!qp->has_mem_mgt || !hghca_service_has(qp, op)))
		return NULL;
	return op;
}

/* Write the units between the next unit and the data list.  Returns the unit of the list. */
static inline uint32_t hghca_encode_header(const struct hghca_qp *qp, void *wqe,
					   const struct hghca_send_op *op,
					   const struct ibv_send_wr *wr)
{
	uint32_t unit = HGHCA_NEXT_UNITS;

	if (qp->is_ud) {
		hghca_wqe_set_ud(wqe, to_hah(wr->wr.ud.ah),
				 wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
		return unit + HGHCA_UD_UNITS;
	}
	if (op->needs & HGHCA_OP_ATOMIC) {
		hghca_wqe_set_raddr(wqe, wr->wr.atomic.remote_addr,
				    wr->wr.atomic.rkey);
		if (op->opcode == HGHCA_OPCODE_ATOMIC_CS)
			hghca_wqe_set_atomic(wqe, wr->wr.atomic.swap,
					     wr->wr.atomic.compare_add);
		else
			hghca_wqe_set_atomic(wqe, wr->wr.atomic.compare_add, 0);
		return unit + HGHCA_RADDR_UNITS + HGHCA_ATOMIC_UNITS;
	}
	if (op->needs & HGHCA_OP_RADDR) {
		hghca_wqe_set_raddr(wqe, wr->wr.rdma.remote_addr,
				    wr->wr.rdma.rkey);
		return unit + HGHCA_RADDR_UNITS;
	}
	return unit;
}

/* Write all data of the list after one length word.  Returns the units, or a negative errno. */
static inline int hghca_encode_inline(const struct hghca_qp *qp, void *unit,
				      const struct ibv_send_wr *wr)
{
	char *to = (char *)unit + HGHCA_INLINE_WORD;
	uint32_t length = 0;
	int i;

	if ((uint32_t)wr->num_sge > qp->sq.max_sge)
		return -EINVAL;
	for (i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		if (sge->length > qp->max_inline - length)
			return -EINVAL;
		memcpy(to + length, (void *)(uintptr_t)sge->addr, sge->length);
		length += sge->length;
	}
	return hghca_wqe_set_inline_length(unit, length);
}

/* The field of immediate data, which may hold a key. */
static inline __be32 hghca_encode_imm(const struct hghca_send_op *op,
				      const struct ibv_send_wr *wr)
{
	if (op->needs & HGHCA_OP_IMM)
		return wr->imm_data;
	if (op->opcode == HGHCA_OPCODE_SEND_INV)
		return htobe32(wr->invalidate_rkey);
	return 0;
}

/* Write a WQE that changes a key, without data list.  Returns its units. */
static inline uint32_t hghca_encode_key(void *wqe, const struct ibv_send_wr *wr)
{
	struct ibv_mw *mw = wr->bind_mw.mw;

	if (wr->opcode == IBV_WR_LOCAL_INV) {
		hghca_wqe_set_inv(wqe, wr->invalidate_rkey);
		return HGHCA_NEXT_UNITS + HGHCA_INV_UNITS;
	}
	/* The application restores the old key if the completion reports an error. */
	mw->rkey = hghca_bind_rkey(mw, wr->bind_mw.rkey);
	hghca_wqe_set_bind(wqe, mw->rkey, &wr->bind_mw.bind_info);
	return HGHCA_NEXT_UNITS + HGHCA_BIND_UNITS;
}

/* Write the data list, inline or not.  Returns its units, or a negative errno. */
static inline int hghca_encode_list(const struct hghca_qp *qp, void *unit,
				    const struct hghca_send_op *op,
				    const struct ibv_send_wr *wr)
{
	if (wr->send_flags & IBV_SEND_INLINE) {
		if (!(op->needs & HGHCA_OP_GATHER))
			return -EINVAL;
		return hghca_encode_inline(qp, unit, wr);
	}
	if ((op->needs & HGHCA_OP_ATOMIC) && wr->num_sge != 1)
		return -EINVAL;
	return hghca_wqe_set_sges(unit, qp->sq.max_sge, wr->sg_list, wr->num_sge);
}

/* An opcode that the service lacks (READ on UD) completes in error.  Returns 0 or an errno. */
static inline int hghca_encode_lacking(struct hghca_qp *qp, struct hghca_sq_batch *batch,
				       uint32_t index, const struct hghca_send_op *op,
				       const struct ibv_send_wr *wr)
{
	if (hghca_wq_full(&qp->sq, index))
		return ENOMEM;
	hghca_wqe_start(qp, index, wr->wr_id, wr->send_flags, 0, 0);
	hghca_sq_append(qp, batch, op->opcode, HGHCA_NEXT_UNITS, false);
	return 0;
}

/* Write one WQE and append it to the batch.  Returns 0 or an errno. */
static inline int hghca_encode_send(struct hghca_qp *qp, struct hghca_sq_batch *batch,
				    const struct ibv_send_wr *wr)
{
	uint32_t index = hghca_wq_head(&qp->sq) + batch->count;
	const struct hghca_send_op *op;
	uint8_t opcode;
	uint32_t unit;
	void *wqe;
	int units = 0;

	op = hghca_send_op(qp, wr->opcode);
	if (!op || !hghca_send_flags_valid(qp, wr->send_flags))
		return EINVAL;
	if ((op->needs & HGHCA_OP_KEY) && (wr->send_flags & IBV_SEND_INLINE))
		return EINVAL;
	if (!hghca_service_has(qp, op))
		return hghca_encode_lacking(qp, batch, index, op, wr);
	if (qp->is_ud && !wr->wr.ud.ah)
		return EINVAL;
	if (hghca_wq_full(&qp->sq, index))
		return ENOMEM;

	wqe = hghca_wqe_start(qp, index, wr->wr_id, wr->send_flags,
			      hghca_encode_imm(op, wr),
			      qp->is_xrc ? wr->qp_type.xrc.remote_srqn : 0);
	if (op->needs & HGHCA_OP_KEY) {
		unit = hghca_encode_key(wqe, wr);
	} else {
		unit = hghca_encode_header(qp, wqe, op, wr);
		units = hghca_encode_list(qp, hghca_wqe_unit(wqe, unit), op, wr);
	}
	if (units < 0)
		return -units;

	opcode = qp->is_ud ? hghca_ud_opcode(qp, wr->wr.ud.ah, op->opcode) : op->opcode;
	hghca_sq_append(qp, batch, opcode, unit + units,
			wr->send_flags & IBV_SEND_FENCE);
	return 0;
}

/* Post one bind of a window of either type; the caller has checked it.  Returns 0 or an errno. */
int hghca_post_bind(struct hghca_qp *qp, const struct ibv_send_wr *wr)
{
	struct hghca_sq_batch batch = {};
	int err;

	if (!hghca_qp_can_send(qp))
		return EINVAL;

	hghca_lock(&qp->sq.lock);
	err = hghca_encode_send(qp, &batch, wr);
	hghca_sq_announce(qp, &batch);
	hghca_unlock(&qp->sq.lock);
	return err;
}

/* ibv_bind_mw binds windows of type 1, ibv_post_send those of type 2. */
static inline bool hghca_wr_valid(const struct ibv_send_wr *wr)
{
	return wr->opcode != IBV_WR_BIND_MW ||
	       hghca_bind2_valid(wr->bind_mw.mw, &wr->bind_mw.bind_info);
}

int hghca_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		    struct ibv_send_wr **bad_wr)
{
	struct hghca_qp *qp = to_hqp(ibqp);
	struct hghca_sq_batch batch = {};
	int err = 0;

	if (!hghca_qp_can_send(qp)) {
		*bad_wr = wr;
		return hghca_errno(EINVAL);
	}

	hghca_lock(&qp->sq.lock);
	for (; wr; wr = wr->next) {
		err = hghca_wr_valid(wr) ? hghca_encode_send(qp, &batch, wr) : EINVAL;
		if (err) {
			*bad_wr = wr;
			break;
		}
	}
	hghca_sq_announce(qp, &batch);
	hghca_unlock(&qp->sq.lock);
	return hghca_errno(err);
}

/* ------------------------------------------------------------------ */
/* Flushing of receives (interface document, section 8)                 */

/* An SQ doorbell of size 0 posts no WQE: the device flushes both queues of a QP in ERR. */
void hghca_qp_flush(struct hghca_qp *qp)
{
	hghca_memory_before_doorbell();
	hghca_ring((char *)qp->uar + HGHCA_UAR_SQ_DB, 0,
		   FIELD_PREP(HGHCA_SQ_DB_QPN_MASK, qp->vqp.qp.qp_num));
}

/* Returns the previous value. */
bool hghca_qp_set_flushing(struct hghca_qp *qp, bool flushing)
{
	bool was;

	hghca_lock(&qp->rq.lock);
	was = qp->flushing;
	qp->flushing = flushing;
	hghca_unlock(&qp->rq.lock);
	return was;
}

/*
 * After an error completion the QP is in ERR.  Receives that were posted since then are
 * not flushed before a flush doorbell.  Receives of an SRQ need no flush doorbell,
 * because other QPs use them.
 * With the lock, a receive that is posted at the same time is either in the queue
 * before this doorbell, or its poster sees the flag.
 */
void hghca_qp_start_flush(struct hghca_qp *qp)
{
	if (qp->flushing || qp->srq)
		return;
	hghca_qp_set_flushing(qp, true);
	hghca_qp_flush(qp);
}

/* ------------------------------------------------------------------ */
/* ibv_post_recv                                                        */

/* Write one receive WQE; with a doorbell record its next unit stays 0.  Returns 0 or an errno. */
static inline int hghca_encode_recv(struct hghca_wq *rq, uint32_t index,
				    const struct ibv_recv_wr *wr)
{
	int err;

	if (hghca_wq_full(rq, index))
		return ENOMEM;

	err = hghca_wqe_set_scatter(hghca_wq_slot(rq, index), rq->stride_log,
				    rq->max_sge, wr);
	if (err)
		return err;
	rq->wr_ids[index & rq->mask] = wr->wr_id;
	if (rq->spare) {
		/* The mark posts the WQE, which may complete before this function returns. */
		hghca_wq_set_head(rq, index + 1);
		hghca_wqe_mark(rq, index);
	}
	return 0;
}

/* Post to the receive queue of a QP, in a state other than RESET. */
int hghca_qp_post_recv(struct hghca_qp *qp, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad_wr)
{
	struct hghca_wq *rq = &qp->rq;
	uint32_t first, head;
	int err = 0;

	hghca_lock(&rq->lock);
	first = hghca_wq_head(rq);
	for (head = first; wr; wr = wr->next, head++) {
		err = hghca_encode_recv(rq, head, wr);
		if (err) {
			*bad_wr = wr;
			break;
		}
	}
	if (head != first) {
		hghca_wq_set_head(rq, head);
		hghca_queue_before_record();
		qp->dbr->rq_head = htole32(head);
		/* Nothing else makes the device flush receives of a QP in ERR. */
		if (qp->flushing)
			hghca_qp_flush(qp);
	}
	hghca_unlock(&rq->lock);
	return err;
}

int hghca_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
		    struct ibv_recv_wr **bad_wr)
{
	struct hghca_qp *qp = to_hqp(ibqp);

	if (ibqp->state == IBV_QPS_RESET || qp->srq || qp->is_xrc || qp->is_handle) {
		*bad_wr = wr;
		return hghca_errno(EINVAL);
	}
	return hghca_errno(hghca_qp_post_recv(qp, wr, bad_wr));
}
