// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* JingZhao HCA: posting to the queues of kernel QPs. */

#include "verbs/verbs.h"

static bool hghca_wq_is_full(const struct hghca_wq *wq)
{
	/* Pairs with the poller's release: the slot's entry was read. */
	return wq->head - smp_load_acquire(&wq->tail) >= wq->num_wqes - wq->spare;
}

/* Let the poller see the entry of the slot at head. */
static void hghca_wq_advance(struct hghca_wq *wq)
{
	/* Pairs with the poller's acquire: the slot's entry was written. */
	smp_store_release(&wq->head, wq->head + 1);
}

static u32 hghca_wq_slot(const struct hghca_wq *wq, u32 index)
{
	return index & (wq->num_wqes - 1);
}

static void *hghca_wqe_at(const struct hghca_wq *wq, u32 slot)
{
	return hghca_queue_at(&wq->queue, slot << wq->log_stride);
}

/*
 * A device that was given up raises no event for posted requests.  Requests that are
 * posted while it is being given up are flushed with later ones, at the latest with those
 * of a drain.
 */
static void hghca_post_check_device(struct hghca_dev *hdev)
{
	if (unlikely(hghca_dev_has_failed(hdev)))
		schedule_work(&hdev->flush_work);
}

static bool hghca_qp_can_send(const struct hghca_qp *hqp)
{
	switch (READ_ONCE(hqp->state)) {
	case IB_QPS_RTS:
	case IB_QPS_SQD:
	case IB_QPS_SQE:
	case IB_QPS_ERR:
		return true;
	default:
		return false;
	}
}

static int hghca_wqe_encode_connected(const struct hghca_qp *hqp, void *wqe,
				      const struct ib_send_wr *wr,
				      struct hghca_wqe_info *info)
{
	const struct hghca_limits *limits = &to_hdev(hqp->ibqp.device)->limits;
	const struct hghca_wqe_room *room = &hqp->sq.room;
	struct hghca_wqe_reg reg;
	int ret;

	if (wr->opcode == IB_WR_REG_MR) {
		ret = hghca_fast_reg_describe(limits, reg_wr(wr), &reg);
		return ret ?: hghca_wqe_encode_reg(wqe, room, &reg, wr, info);
	}
	if (hqp->ibqp.qp_type == IB_QPT_RC)
		return hghca_wqe_encode_rc(wqe, room, wr, info);
	return hghca_wqe_encode_uc(wqe, room, wr, info);
}

static int hghca_wqe_encode_datagram(const struct hghca_qp *hqp, void *wqe,
				     const struct ib_send_wr *wr,
				     struct hghca_wqe_info *info)
{
	const struct ib_ud_wr *ud;
	int ret;

	/* Other requests may not have the fields of struct ib_ud_wr. */
	if (wr->opcode != IB_WR_SEND && wr->opcode != IB_WR_SEND_WITH_IMM)
		return hghca_wqe_encode_lacking(wqe, &hqp->sq.room, wr, info);
	ud = ud_wr(wr);
	if (!ud->ah)
		return -EINVAL;
	ret = hghca_wqe_encode_ud(wqe, &hqp->sq.room, hghca_ah_unit(to_hah(ud->ah)), ud, info);
	/*
	 * An address handle is only valid for QPs of its PD.  The device does not know
	 * handles.  It completes the READ, which UD does not support, in order with
	 * LOCAL_QP_OP_ERR (IBA C10-10).
	 */
	if (!ret && ud->ah->pd != hqp->ibqp.pd)
		info->opcode = HGHCA_OPCODE_RDMA_READ;
	return ret;
}

static int hghca_wqe_encode(const struct hghca_qp *hqp, void *wqe,
			    const struct ib_send_wr *wr, struct hghca_wqe_info *info)
{
	switch (hqp->ibqp.qp_type) {
	case IB_QPT_RC:
	case IB_QPT_UC:
		return hghca_wqe_encode_connected(hqp, wqe, wr, info);
	default:
		return hghca_wqe_encode_datagram(hqp, wqe, wr, info);
	}
}

/* Does the device generate a CQE that nobody has asked for? */
static bool hghca_wr_is_silent(const struct hghca_qp *hqp, const struct ib_send_wr *wr)
{
	return !(to_hdev(hqp->ibqp.device)->limits.caps & HGHCA_CAP_CQ_UPDATE) &&
	       !hqp->sq.room.signal_all && !(wr->send_flags & IB_SEND_SIGNALED);
}

/* Write the WQE at head and link it to its predecessor. */
static int hghca_post_one_send(struct hghca_qp *hqp, const struct ib_send_wr *wr,
			       struct hghca_wqe_info *info)
{
	struct hghca_wq *sq = &hqp->sq;
	u32 slot = hghca_wq_slot(sq, sq->head);
	u32 prev = hghca_wq_slot(sq, sq->head - 1);
	int ret;

	ret = hghca_wqe_encode(hqp, hghca_wqe_at(sq, slot), wr, info);
	if (ret)
		return ret;

	sq->wrs[slot] = (struct hghca_wr) {
		.wr_id = wr->wr_id,
		.length = info->length,
		.opcode = info->opcode,
		.silent = hghca_wr_is_silent(hqp, wr),
	};
	/* A linked WQE may complete before this function returns. */
	hghca_wq_advance(sq);
	/*
	 * In a queue of one WQE, the slot of the predecessor is this one.  The predecessor
	 * has completed, and the doorbell has all data of the WQE.
	 */
	if (prev != slot)
		hghca_wqe_link(hghca_wqe_at(sq, prev), slot << sq->log_stride, info);
	return 0;
}

/**
 * hghca_post_send - post a list of sends
 * @ibqp: a kernel QP
 * @wr: the list
 * @bad_wr: output: the first request that was not posted
 *
 * Any context.  The list needs one doorbell.
 *
 * Return: 0, -EINVAL for an invalid request or state, -EOPNOTSUPP for a request that the
 * device lacks, or -ENOMEM if the queue is full.  Requests before *@bad_wr are posted.
 */
int hghca_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		    const struct ib_send_wr **bad_wr)
{
	struct hghca_qp *hqp = to_hqp(ibqp);
	struct hghca_wqe_info first = {};
	struct hghca_wq *sq = &hqp->sq;
	struct hghca_wqe_info info;
	unsigned int count = 0;
	unsigned long flags;
	u64 doorbell;
	int ret = 0;
	u32 index;

	spin_lock_irqsave(&sq->lock, flags);
	index = sq->head;
	if (!hghca_qp_can_send(hqp)) {
		ret = -EINVAL;
		goto out;
	}
	for (; wr; wr = wr->next) {
		if (hghca_wq_is_full(sq)) {
			ret = -ENOMEM;
			break;
		}
		ret = hghca_post_one_send(hqp, wr, &info);
		if (ret)
			break;
		if (!count++)
			first = info;
	}
	if (count) {
		doorbell = hghca_wqe_sq_doorbell(hqp->hw.qpn, index, count, &first);
		/* Orders the WQEs and links before itself. */
		hghca_ring_sq_words(to_hdev(ibqp->device), doorbell);
	}
out:
	if (ret)
		*bad_wr = wr;
	spin_unlock_irqrestore(&sq->lock, flags);
	hghca_post_check_device(to_hdev(ibqp->device));
	return ret;
}

/**
 * hghca_qp_flush - flush receives that are posted in ERR
 * @hqp: a kernel QP in ERR
 *
 * Any context.  The doorbell flushes receives that are posted before it.
 * hghca_post_recv() rings it for receives that are posted later.
 */
void hghca_qp_flush(struct hghca_qp *hqp)
{
	unsigned long flags;
	bool flushing;

	spin_lock_irqsave(&hqp->rq.lock, flags);
	flushing = hqp->flush_recv;
	hqp->flush_recv = true;
	spin_unlock_irqrestore(&hqp->rq.lock, flags);

	if (!flushing)
		hghca_ring_sq(to_hdev(hqp->ibqp.device), 0, hqp->hw.qpn, 0);
}

/*
 * Without a doorbell record: the device takes the WQE at its own index unless the first
 * 16 bytes are 0.  The end moves on before the WQE can be taken.
 */
static void hghca_mark_recv(const struct hghca_wq *rq, u32 slot)
{
	struct hghca_next_unit *end = hghca_wqe_at(rq, hghca_wq_slot(rq, slot + 1));
	struct hghca_next_unit *next = hghca_wqe_at(rq, slot);

	WRITE_ONCE(end->flags, 0);
	dma_wmb();
	WRITE_ONCE(next->flags, cpu_to_le32(HGHCA_WQE_CQ_UPDATE));
}

/**
 * hghca_wq_clear - remove the marks of all WQEs
 * @rq: an idle receive queue of the kernel
 */
void hghca_wq_clear(const struct hghca_wq *rq)
{
	struct hghca_next_unit *next;
	u32 slot;

	for (slot = 0; slot < rq->num_wqes; slot++) {
		next = hghca_wqe_at(rq, slot);
		next->flags = 0;
	}
}

static int hghca_post_one_recv(struct hghca_wq *rq, const struct ib_recv_wr *wr)
{
	u32 slot = hghca_wq_slot(rq, rq->head);
	u32 length;
	int ret;

	ret = hghca_wqe_encode_recv(hghca_wqe_at(rq, slot), &rq->room, wr, &length);
	if (ret)
		return ret;
	rq->wrs[slot] = (struct hghca_wr) {
		.wr_id = wr->wr_id,
		.length = length,
	};
	hghca_wq_advance(rq);
	if (rq->spare)
		hghca_mark_recv(rq, slot);
	return 0;
}

/**
 * hghca_post_recv - post a list of receives
 * @ibqp: a kernel QP without SRQ
 * @wr: the list
 * @bad_wr: output: the first request that was not posted
 *
 * Any context.
 *
 * Return: 0, -EINVAL for an invalid request or state, or -ENOMEM if the queue is full.
 * Requests before *@bad_wr are posted.
 */
int hghca_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		    const struct ib_recv_wr **bad_wr)
{
	struct hghca_qp *hqp = to_hqp(ibqp);
	struct hghca_wq *rq = &hqp->rq;
	unsigned int count = 0;
	unsigned long flags;
	int ret = 0;

	spin_lock_irqsave(&rq->lock, flags);
	if (READ_ONCE(hqp->state) == IB_QPS_RESET || ibqp->srq) {
		ret = -EINVAL;
		goto out;
	}
	for (; wr; wr = wr->next) {
		if (hghca_wq_is_full(rq)) {
			ret = -ENOMEM;
			break;
		}
		ret = hghca_post_one_recv(rq, wr);
		if (ret)
			break;
		count++;
	}
	if (count) {
		/* The WQEs must be in memory before the record counts them. */
		dma_wmb();
		WRITE_ONCE(*hqp->dbr.record, cpu_to_le32(rq->head));
		if (hqp->flush_recv)
			hghca_ring_sq(to_hdev(ibqp->device), 0, hqp->hw.qpn, 0);
	}
out:
	if (ret)
		*bad_wr = wr;
	spin_unlock_irqrestore(&rq->lock, flags);
	hghca_post_check_device(to_hdev(ibqp->device));
	return ret;
}
