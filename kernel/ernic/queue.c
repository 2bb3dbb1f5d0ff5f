// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ERNIC and ETRNIC: what the hardware has of the queues of a QP, and what it is done with. */
#include <linux/dma-mapping.h>
#include <linux/slab.h>
#include "ernic.h"

/* Undo what posting has allocated and held. */
void ernic_swqe_release(struct ernic_dev *edev, struct ernic_swqe *swqe)
{
	if (swqe->mapped)
		dma_unmap_single(edev->func->sysdev, swqe->dma, swqe->mapped, swqe->dir);
	swqe->mapped = 0;
	kfree(swqe->bounce);
	swqe->bounce = NULL;
	ernic_sges_put(swqe->sge, swqe->num_sge);
	swqe->num_sge = 0;
}

/* Complete a send, of which &ernic_sq.completed knows.  Under the lock of the send queue. */
void ernic_complete_send(struct ernic_qp *qp, struct ernic_swqe *swqe, enum ib_wc_status status)
{
	struct ib_wc wc = {
		.wr_id = swqe->wr_id,
		.status = status,
		.opcode = swqe->opcode,
		.byte_len = swqe->length,
		.qp = &qp->ibqp,
	};

	/* The hardware may not have got to it. */
	if (swqe->hw_opcode == ERNIC_OPCODE_READ && qp->sq.reads)
		qp->sq.reads--;
	if (swqe->mapped)
		dma_unmap_single(qp->edev->func->sysdev, swqe->dma, swqe->mapped, swqe->dir);
	swqe->mapped = 0;
	if (swqe->scatter && status == IB_WC_SUCCESS)
		ernic_sges_copy(swqe->sge, swqe->num_sge, swqe->bounce, swqe->length, true);
	ernic_swqe_release(qp->edev, swqe);
	if (swqe->signaled || status != IB_WC_SUCCESS)
		ernic_cq_add_send(to_ecq(qp->ibqp.send_cq), &wc, qp->sq.completed);
}

/*
 * A send that the hardware does not get fails in the driver, when those before it are
 * complete.  Under the lock of the send queue.
 */
static void ernic_fail_next_send(struct ernic_qp *qp)
{
	struct ernic_sq *sq = &qp->sq;
	struct ernic_swqe *swqe = &sq->swqes[sq->rung & (sq->depth - 1)];

	if (sq->failed || sq->rung == sq->posted || sq->rung != sq->completed ||
	    swqe->status == IB_WC_SUCCESS)
		return;
	sq->failed = true;
	sq->rung++;
	sq->completed++;
	ernic_complete_send(qp, swqe, swqe->status);
	queue_work(qp->edev->wq, &qp->error_work);
}

/**
 * ernic_ring_sends - give the hardware the sends that it may execute
 * @qp: the QP; the caller has the lock of its send queue
 *
 * The hardware knows neither how many READs the peer takes at a time, nor a fence.
 */
void ernic_ring_sends(struct ernic_qp *qp)
{
	struct ernic_sq *sq = &qp->sq;
	u32 rung = sq->rung;

	while (sq->rung != sq->posted && !sq->failed) {
		struct ernic_swqe *swqe = &sq->swqes[sq->rung & (sq->depth - 1)];
		bool reads = swqe->hw_opcode == ERNIC_OPCODE_READ;

		if ((swqe->fence && sq->reads) || (reads && sq->reads >= qp->attr.max_rd_atomic))
			break;
		if (swqe->status != IB_WC_SUCCESS)
			break;
		sq->reads += reads;
		sq->rung++;
	}
	/* writel() orders the WQEs before the doorbell. */
	if (sq->rung != rung)
		ernic_qp_write(qp, ERNIC_SQPI, ((sq->rung - 1) & (sq->depth - 1)) + 1);
	ernic_fail_next_send(qp);
}

/* Give the hardware a slot.  Under the lock of the receive queue. */
void ernic_free_slot(struct ernic_qp *qp)
{
	qp->rq.given = qp->rq.given % qp->rq.depth + 1;
	if (qp->enabled)
		ernic_qp_write(qp, ERNIC_RQCI, qp->rq.given);
}
