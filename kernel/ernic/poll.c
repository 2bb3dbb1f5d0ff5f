// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ERNIC and ETRNIC: completions of sends and receives. */
#include <linux/dma-mapping.h>
#include <rdma/ib_pack.h>
#include "ernic.h"

/* ------------------------------------------------------------------ */
/* Sends                                                               */

static const struct {
	u16 fatal;
	enum ib_wc_status status;
} ernic_statuses[] = {
	{ ERNIC_FATAL_RETRIES, IB_WC_RETRY_EXC_ERR },
	{ ERNIC_FATAL_RNR_RETRIES, IB_WC_RNR_RETRY_EXC_ERR },
	{ ERNIC_FATAL_ACK_OPCODE, IB_WC_BAD_RESP_ERR },
	{ ERNIC_FATAL_MEMORY, IB_WC_LOC_PROT_ERR },
};

/* Codes of a NAK: IBA 9.7.5.2.  The syndrome has the type above them. */
static enum ib_wc_status ernic_nak_status(u32 syndrome)
{
	switch (syndrome & 0x1f) {
	case 1:
		return IB_WC_REM_INV_REQ_ERR;
	case 2:
		return IB_WC_REM_ACCESS_ERR;
	default:
		return IB_WC_REM_OP_ERR;
	}
}

/* Why the oldest WQE has failed.  A WQE that is illegal does not make the QP fatal. */
static enum ib_wc_status ernic_send_status(struct ernic_qp *qp)
{
	u16 fatal;
	u32 i;

	ernic_take_errors(qp->edev);
	fatal = READ_ONCE(qp->fatal);
	if (fatal == ERNIC_FATAL_NAK)
		return ernic_nak_status(FIELD_GET(ERNIC_STATQP_SYNDROME,
						  ernic_qp_read(qp, ERNIC_STATQP)));
	if ((fatal & ERNIC_FATAL_READ) == ERNIC_FATAL_READ)
		return IB_WC_BAD_RESP_ERR;
	for (i = 0; i < ARRAY_SIZE(ernic_statuses); i++)
		if (ernic_statuses[i].fatal == fatal)
			return ernic_statuses[i].status;
	return IB_WC_LOC_QP_OP_ERR;
}

/* Under the lock of the send queue. */
static void ernic_take_sends(struct ernic_qp *qp)
{
	struct ernic_sq *sq = &qp->sq;
	u32 index = le32_to_cpu(READ_ONCE(*sq->doorbell));
	u32 done = (index - sq->completed) & (sq->depth - 1);
	enum ib_wc_status status;
	u32 slot;

	if (index > sq->depth) {
		ibdev_err_ratelimited(&qp->edev->ibdev, "QP %u: send %u of %u is complete\n",
				      qp->qpn, index, sq->depth);
		return;
	}
	if (!done || sq->failed)
		return;
	if (done > sq->rung - sq->completed) {
		ibdev_err_ratelimited(&qp->edev->ibdev, "QP %u: %u sends complete of %u\n",
				      qp->qpn, done, sq->rung - sq->completed);
		return;
	}
	/* CQEs are read after the doorbell that tells of them. */
	dma_rmb();
	while (done-- && !sq->failed) {
		slot = sq->completed++ & (sq->depth - 1);
		status = IB_WC_SUCCESS;
		if (le32_get_bits(READ_ONCE(sq->cqes[slot]), ERNIC_CQE_ERROR)) {
			status = ernic_send_status(qp);
			sq->failed = true;
			queue_work(qp->edev->wq, &qp->error_work);
		}
		ernic_complete_send(qp, &sq->swqes[slot], status);
	}
	ernic_ring_sends(qp);
}

void ernic_poll_sends(struct ernic_qp *qp)
{
	unsigned long flags;

	spin_lock_irqsave(&qp->sq.lock, flags);
	if (!qp->sq.dead)
		ernic_take_sends(qp);
	spin_unlock_irqrestore(&qp->sq.lock, flags);
}

/* ------------------------------------------------------------------ */
/* Receives                                                            */

static void ernic_complete_receive(struct ernic_qp *qp, struct ib_wc *wc, bool solicited)
{
	struct ernic_rq *rq = &qp->rq;
	struct ernic_rwqe *rwqe = &rq->rwqes[rq->oldest_wqe];

	rq->oldest_wqe = (rq->oldest_wqe + 1) % rq->max_wr;
	rq->completed++;
	wc->wr_id = rwqe->wr_id;
	wc->qp = &qp->ibqp;
	ernic_sges_put(rwqe->sge, rwqe->num_sge);
	ernic_cq_add(to_ecq(qp->ibqp.recv_cq), wc, solicited);
}

/* Copy a message to the oldest receive.  False: it is too long for that. */
static bool ernic_scatter(struct ernic_rq *rq, void *message, u32 bytes)
{
	struct ernic_rwqe *rwqe = &rq->rwqes[rq->oldest_wqe];
	u64 capacity = 0;
	int i;

	for (i = 0; i < rwqe->num_sge; i++)
		capacity += rwqe->sge[i].length;
	if (bytes > capacity)
		return false;
	ernic_sges_copy(rwqe->sge, rwqe->num_sge, message, bytes, true);
	return true;
}

/* The opcode of the last packet: a SEND, or a WRITE with immediate data. */
static void ernic_read_opcode(struct ernic_qp *qp, const struct ernic_record *record,
			      struct ib_wc *wc)
{
	switch (record->opcode) {
	case IB_OPCODE_RC_SEND_LAST:
	case IB_OPCODE_RC_SEND_ONLY:
		break;
	case IB_OPCODE_RC_SEND_LAST_WITH_IMMEDIATE:
	case IB_OPCODE_RC_SEND_ONLY_WITH_IMMEDIATE:
		wc->wc_flags |= IB_WC_WITH_IMM;
		wc->ex.imm_data = record->imm;
		break;
	case IB_OPCODE_RC_RDMA_WRITE_LAST_WITH_IMMEDIATE:
	case IB_OPCODE_RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE:
		wc->opcode = IB_WC_RECV_RDMA_WITH_IMM;
		wc->wc_flags |= IB_WC_WITH_IMM;
		wc->ex.imm_data = record->imm;
		break;
	case IB_OPCODE_RC_SEND_LAST_WITH_INVALIDATE:
	case IB_OPCODE_RC_SEND_ONLY_WITH_INVALIDATE:
		wc->wc_flags |= IB_WC_WITH_INVALIDATE;
		wc->ex.invalidate_rkey = be32_to_cpu(record->imm);
		if (!ernic_mr_invalidate(qp, wc->ex.invalidate_rkey))
			wc->status = IB_WC_LOC_ACCESS_ERR;
		break;
	default:
		ibdev_err_ratelimited(&qp->edev->ibdev, "QP %u: a message with opcode %#x\n",
				      qp->qpn, record->opcode);
		wc->status = IB_WC_LOC_QP_OP_ERR;
		break;
	}
}

static void ernic_read_record(struct ernic_qp *qp, const struct ernic_record *record,
			      struct ib_wc *wc, bool *solicited)
{
	wc->byte_len = le32_to_cpu(record->length);
	*solicited = FIELD_GET(ERNIC_RECORD_SOLICITED, record->flags);
	ernic_read_opcode(qp, record, wc);
}

/*
 * Without records, the length of a message is not known: as much of the slot is copied
 * as the receive can hold.  Whether it is solicited is not known either: each one is.
 */
static void ernic_read_immdt(struct ernic_qp *qp, struct ernic_record *entry, struct ib_wc *wc,
			     bool *solicited)
{
	const struct ernic_rwqe *rwqe = &qp->rq.rwqes[qp->rq.oldest_wqe];
	u64 capacity = 0;
	int i;

	for (i = 0; i < rwqe->num_sge; i++)
		capacity += rwqe->sge[i].length;
	wc->byte_len = min_t(u64, capacity, qp->rq.slot);
	*solicited = true;
	if (!entry->opcode)
		return;
	ernic_read_opcode(qp, entry, wc);
	/* The next message in this slot may have no entry. */
	entry->opcode = 0;
	if (wc->opcode == IB_WC_RECV_RDMA_WITH_IMM)
		wc->byte_len = 0;
}

static void ernic_take_message(struct ernic_qp *qp, struct ib_wc *wc, u32 slot, bool *solicited)
{
	struct ernic_rq *rq = &qp->rq;
	struct ernic_rwqe *rwqe = &rq->rwqes[rq->oldest_wqe];
	void *message = rq->slots.cpu + (size_t)slot * rq->slot;

	if (qp->edev->extensions & ERNIC_EXT_RECORDS)
		ernic_read_record(qp, &rq->records[slot], wc, solicited);
	else
		ernic_read_immdt(qp, &rq->records[slot], wc, solicited);
	if (wc->opcode != IB_WC_RECV || wc->status != IB_WC_SUCCESS)
		return;
	if (rwqe->status != IB_WC_SUCCESS)
		wc->status = rwqe->status;
	else if (wc->byte_len > rq->slot || !ernic_scatter(rq, message, wc->byte_len))
		wc->status = IB_WC_LOC_LEN_ERR;
}

/* False: the frame has no valid MAD, or the MAD does not fit into the receive. */
static bool ernic_take_mad(struct ernic_qp *qp, struct ib_wc *wc, const u8 *slot)
{
	u8 grh_and_mad[sizeof(struct ib_grh) + ERNIC_GSI_SLOT] = {};
	const u8 *mad;
	u32 bytes;

	bytes = ernic_gsi_take(qp, slot, wc, grh_and_mad, &mad);
	if (!bytes)
		return false;
	memcpy(grh_and_mad + sizeof(struct ib_grh), mad, bytes);
	wc->byte_len = sizeof(struct ib_grh) + bytes;
	return ernic_scatter(&qp->rq, grh_and_mad, wc->byte_len);
}

/* Under the lock of the receive queue. */
static void ernic_take_receives(struct ernic_qp *qp)
{
	struct ernic_rq *rq = &qp->rq;
	u32 index = le32_to_cpu(READ_ONCE(*(__le32 *)rq->door.cpu));
	u32 behind = index % rq->depth;
	u32 done = (behind + rq->depth - rq->next_slot) % rq->depth;

	/* QP 1 may have had more slots once. */
	if (index > rq->depth && !ernic_is_gsi(qp)) {
		ibdev_err_ratelimited(&qp->edev->ibdev, "QP %u: message %u of %u is received\n",
				      qp->qpn, index, rq->depth);
		return;
	}
	if (!done || rq->failed)
		return;
	if (done > rq->posted - rq->completed) {
		ibdev_err_ratelimited(&qp->edev->ibdev, "QP %u: %u messages for %u receives\n",
				      qp->qpn, done, rq->posted - rq->completed);
		return;
	}
	/* Slots and records are read after the doorbell that tells of them. */
	dma_rmb();
	if (qp->edev->extensions & ERNIC_EXT_RECORDS && !ernic_is_gsi(qp))
		done = min(done, ernic_take_records(qp->edev, qp, behind));
	else
		ernic_take_immdts(qp->edev);
	while (done-- && !rq->failed) {
		struct ib_wc wc = { .opcode = IB_WC_RECV };
		u32 slot = rq->next_slot;
		bool solicited = false;

		rq->next_slot = (slot + 1) % rq->depth;
		if (!ernic_is_gsi(qp)) {
			ernic_take_message(qp, &wc, slot, &solicited);
		} else if (!ernic_take_mad(qp, &wc, rq->slots.cpu + slot * rq->slot)) {
			/* The receive that it took is still there. */
			ernic_free_slot(qp);
			continue;
		}
		if (wc.status != IB_WC_SUCCESS) {
			rq->failed = true;
			queue_work(qp->edev->wq, &qp->error_work);
		}
		ernic_complete_receive(qp, &wc, solicited);
	}
}

void ernic_poll_receives(struct ernic_qp *qp)
{
	unsigned long flags;

	spin_lock_irqsave(&qp->rq.lock, flags);
	if (!qp->rq.dead)
		ernic_take_receives(qp);
	spin_unlock_irqrestore(&qp->rq.lock, flags);
}

/* ------------------------------------------------------------------ */
/* Flushing                                                            */

/**
 * ernic_flush - complete all that the hardware does not
 * @qp: the QP, which the hardware does not execute; the caller has its mutex
 */
void ernic_flush(struct ernic_qp *qp)
{
	struct ernic_sq *sq = &qp->sq;
	struct ernic_rq *rq = &qp->rq;
	unsigned long flags;

	spin_lock_irqsave(&sq->lock, flags);
	if (!sq->dead) {
		ernic_take_sends(qp);
		while (sq->completed != sq->posted)
			ernic_complete_send(qp, &sq->swqes[sq->completed++ & (sq->depth - 1)],
					    IB_WC_WR_FLUSH_ERR);
		sq->dead = true;
	}
	spin_unlock_irqrestore(&sq->lock, flags);

	spin_lock_irqsave(&rq->lock, flags);
	if (!rq->dead) {
		ernic_take_receives(qp);
		while (rq->completed != rq->posted) {
			struct ib_wc wc = { .status = IB_WC_WR_FLUSH_ERR, .opcode = IB_WC_RECV };

			ernic_complete_receive(qp, &wc, false);
		}
		rq->dead = true;
	}
	spin_unlock_irqrestore(&rq->lock, flags);
	ernic_cq_notify(to_ecq(qp->ibqp.send_cq));
	ernic_cq_notify(to_ecq(qp->ibqp.recv_cq));
}

/* ------------------------------------------------------------------ */
/* Polling                                                             */

/* Fill the CQ from the queues of its QPs. */
static void ernic_cq_fill(struct ernic_cq *cq)
{
	struct ernic_qp *qp;
	unsigned long flags;

	spin_lock_irqsave(&cq->list_lock, flags);
	list_for_each_entry(qp, &cq->sqs, sq.node)
		ernic_poll_sends(qp);
	list_for_each_entry(qp, &cq->rqs, rq.node)
		ernic_poll_receives(qp);
	spin_unlock_irqrestore(&cq->list_lock, flags);
}

int ernic_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc)
{
	struct ernic_cq *cq = to_ecq(ibcq);
	unsigned long flags;
	int i;

	if (cq->head == READ_ONCE(cq->tail))
		ernic_cq_fill(cq);
	spin_lock_irqsave(&cq->lock, flags);
	for (i = 0; i < num && cq->tail != cq->head; i++) {
		const struct ernic_cqe *cqe = &cq->ring[cq->tail++ & cq->mask];

		wc[i] = cqe->wc;
		if (cqe->is_send)
			WRITE_ONCE(to_eqp(cqe->wc.qp)->sq.retired, cqe->behind);
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	ernic_cq_notify_later(cq);
	return i;
}
