// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: the consumer side of kernel completion queues.
 *
 * CQEs come from the device and are not trusted: a CQE is copied once and then checked.
 * A CQE that refers to an outstanding work request completes it, in error if other
 * fields are invalid.  Any other CQE is dropped.
 */

#include <rdma/ib_pack.h>

#include "verbs/verbs.h"

#define HGHCA_QPN_MASK		HGHCA_MASK(23, 0)
#define HGHCA_SRQN_MASK		HGHCA_MASK(23, 0)

/* 0, which is IB_WC_SUCCESS, marks values that are not syndromes. */
static const u8 hghca_wc_status[] = {
#define HGHCA_WC_STATUS(name, status, ...) \
	[HGHCA_SYNDROME_##name] = IB_WC_##status,
	HGHCA_SYNDROMES(HGHCA_WC_STATUS)
#undef HGHCA_WC_STATUS
};

static enum ib_wc_status hghca_syndrome_to_status(u8 syndrome)
{
	if (syndrome >= ARRAY_SIZE(hghca_wc_status) || !hghca_wc_status[syndrome])
		return IB_WC_GENERAL_ERR;
	return hghca_wc_status[syndrome];
}

static struct hghca_cqe *hghca_cqe_at(const struct hghca_queue *queue, u32 log_size,
				      u32 index)
{
	u32 slot = index & (BIT(log_size) - 1);

	return hghca_queue_at(queue, slot * sizeof(struct hghca_cqe));
}

static bool hghca_cqe_is_ours(const struct hghca_cqe *cqe)
{
	return READ_ONCE(cqe->owner) == HGHCA_CQ_ENTRY_OWNER_SW;
}

/*
 * Returns the next CQE, or NULL.  During a resize, completions are first in the old buffer,
 * and from some index on in the new one.
 */
static struct hghca_cqe *hghca_cq_next(const struct hghca_cq *hcq)
{
	struct hghca_cqe *cqe;

	cqe = hghca_cqe_at(&hcq->queue, hcq->log_size, hcq->cons_index);
	if (hghca_cqe_is_ours(cqe))
		return cqe;
	if (!hcq->resize)
		return NULL;
	cqe = hghca_cqe_at(hcq->resize, hcq->resize_log_size, hcq->cons_index);
	return hghca_cqe_is_ours(cqe) ? cqe : NULL;
}

static void hghca_cq_update_dbr(const struct hghca_cq *hcq)
{
	/* Read the CQEs and return their ownership before the record is written. */
	dma_mb();
	WRITE_ONCE(*hcq->dbr.record, cpu_to_le32(hcq->cons_index));
}

/**
 * hghca_cq_hand_over - hand all CQEs of a kernel buffer over to the device
 * @queue: the buffer
 * @log_size: log2 of its CQEs
 */
void hghca_cq_hand_over(struct hghca_queue *queue, u32 log_size)
{
	u32 i;

	for (i = 0; i < BIT(log_size); i++)
		hghca_cqe_at(queue, log_size, i)->owner = HGHCA_CQ_ENTRY_OWNER_HW;
}

/**
 * hghca_cq_switch - switch to the new buffer at the end of RESIZE_CQ
 * @hcq: the CQ; its lock is held
 *
 * Moves the CQEs that are not consumed, and exchanges *hcq->resize with hcq->queue.
 */
void hghca_cq_switch(struct hghca_cq *hcq)
{
	u32 room = min(BIT(hcq->log_size), BIT(hcq->resize_log_size));
	u32 i;

	lockdep_assert_held(&hcq->lock);

	for (i = hcq->cons_index; i - hcq->cons_index < room; i++) {
		struct hghca_cqe *from = hghca_cqe_at(&hcq->queue, hcq->log_size, i);

		if (!hghca_cqe_is_ours(from))
			break;
		dma_rmb();	/* the CQE's body behind its owner */
		memcpy(hghca_cqe_at(hcq->resize, hcq->resize_log_size, i), from,
		       sizeof(*from));
	}
	swap(hcq->queue, *hcq->resize);
	hcq->log_size = hcq->resize_log_size;
}

static int hghca_bad_cqe(const struct hghca_cq *hcq, const struct hghca_cqe *cqe,
			 const char *why)
{
	ibdev_err_ratelimited(hcq->ibcq.device,
			      "CQ 0x%x: CQE of QP 0x%x at 0x%x: %s\n",
			      hcq->hw.cqn, le32_to_cpu(cqe->my_qpn),
			      le32_to_cpu(cqe->wqe), why);
	return -EINVAL;
}

/* Returns the slot that a CQE refers to, below the length of the queue. */
static int hghca_cqe_slot(const struct hghca_cqe *cqe, const struct hghca_wq *wq,
			  u32 *slot)
{
	u32 offset = le32_to_cpu(cqe->wqe);

	*slot = offset >> wq->log_stride;
	if (*slot >= wq->num_wqes || offset & (BIT(wq->log_stride) - 1))
		return -EINVAL;
	return 0;
}

/*
 * Complete the request of a send CQE.  Sends complete in order: earlier requests without
 * a CQE complete with it.
 */
static int hghca_complete_send(const struct hghca_cqe *cqe, struct hghca_wq *sq,
			       struct hghca_wr *wr)
{
	u32 slot;
	u32 skipped;

	if (hghca_cqe_slot(cqe, sq, &slot))
		return -EINVAL;
	skipped = (slot - sq->tail) & (sq->num_wqes - 1);
	/* Pairs with the poster's release: the entries up to head were written. */
	if (skipped >= smp_load_acquire(&sq->head) - sq->tail)
		return -EINVAL;
	*wr = sq->wrs[slot];
	/* The entry was read; the poster may use it from here on. */
	smp_store_release(&sq->tail, sq->tail + skipped + 1);
	return 0;
}

/* Complete the request of a receive CQE.  Receives complete one by one, in order. */
static int hghca_complete_recv(const struct hghca_cqe *cqe, struct hghca_wq *rq,
			       struct hghca_wr *wr)
{
	u32 slot;

	if (hghca_cqe_slot(cqe, rq, &slot) || slot != (rq->tail & (rq->num_wqes - 1)))
		return -EINVAL;
	/* Pairs with the poster's release: the entries up to head were written. */
	if (smp_load_acquire(&rq->head) == rq->tail)
		return -EINVAL;
	*wr = rq->wrs[slot];
	/* The entry was read; the poster may use it from here on. */
	smp_store_release(&rq->tail, rq->tail + 1);
	return 0;
}

/* Complete the request of a receive CQE of a QP with an SRQ, in any order. */
static int hghca_complete_shared(const struct hghca_cqe *cqe, struct hghca_srq *hsrq,
				 struct hghca_wr *wr)
{
	if ((le32_to_cpu(cqe->my_ee) & HGHCA_SRQN_MASK) != hsrq->hw.srqn)
		return -EINVAL;
	return hghca_srq_complete(hsrq, le32_to_cpu(cqe->wqe), wr);
}

static int hghca_complete(struct hghca_cq *hcq, struct hghca_qp *hqp,
			  const struct hghca_cqe *cqe, struct hghca_wr *wr)
{
	/* A QP may have two CQs: its send CQ is not necessarily its receive CQ. */
	if (cqe->is_send && hqp->ibqp.send_cq == &hcq->ibcq)
		return hghca_complete_send(cqe, &hqp->sq, wr);
	if (cqe->is_send || hqp->ibqp.recv_cq != &hcq->ibcq)
		return -EINVAL;
	if (hqp->ibqp.srq)
		return hghca_complete_shared(cqe, to_hsrq(hqp->ibqp.srq), wr);
	return hghca_complete_recv(cqe, &hqp->rq, wr);
}

static void hghca_wc_error(struct hghca_qp *hqp, const struct hghca_cqe *cqe,
			   struct ib_wc *wc)
{
	const struct hghca_err_cqe *err = (const struct hghca_err_cqe *)cqe;

	wc->status = hghca_syndrome_to_status(err->syndrome);
	wc->vendor_err = err->vendor_err;
	/*
	 * The device has moved the QP to ERR.  An error of a send moves a UC or UD QP to
	 * SQE instead, which does not affect receives.
	 */
	if (!cqe->is_send || hqp->ibqp.qp_type == IB_QPT_RC)
		hghca_qp_flush(hqp);
}

static int hghca_wc_send_opcode(u8 opcode, struct ib_wc *wc)
{
	switch (opcode) {
	case HGHCA_OPCODE_SEND:
	case HGHCA_OPCODE_SEND_IMM:
	case HGHCA_OPCODE_SEND_INV:
		wc->opcode = IB_WC_SEND;
		return 0;
	case HGHCA_OPCODE_RDMA_WRITE:
	case HGHCA_OPCODE_RDMA_WRITE_IMM:
		wc->opcode = IB_WC_RDMA_WRITE;
		return 0;
	case HGHCA_OPCODE_RDMA_READ:
		wc->opcode = IB_WC_RDMA_READ;
		return 0;
	case HGHCA_OPCODE_ATOMIC_CS:
		wc->opcode = IB_WC_COMP_SWAP;
		return 0;
	case HGHCA_OPCODE_ATOMIC_FA:
		wc->opcode = IB_WC_FETCH_ADD;
		return 0;
	case HGHCA_OPCODE_REG_MR:
		wc->opcode = IB_WC_REG_MR;
		return 0;
	case HGHCA_OPCODE_LOCAL_INV:
		wc->opcode = IB_WC_LOCAL_INV;
		return 0;
	default:
		return -EINVAL;
	}
}

static int hghca_wc_send(const struct hghca_cqe *cqe, const struct hghca_wr *wr,
			 struct ib_wc *wc)
{
	wc->byte_len = le32_to_cpu(cqe->byte_cnt);
	if (cqe->opcode != wr->opcode || wc->byte_len > wr->length)
		return -EINVAL;
	return hghca_wc_send_opcode(cqe->opcode, wc);
}

static int hghca_wc_recv(const struct hghca_cqe *cqe, const struct hghca_wr *wr,
			 struct ib_wc *wc)
{
	u32 rlid_path_sl = le32_to_cpu(cqe->rlid_path_sl);
	bool in_wqe = true;	/* the data is in the scatter list of the receive */

	switch (cqe->opcode & HGHCA_CQE_RECV_OPCODE_MASK) {
	case IB_OPCODE_SEND_LAST:
	case IB_OPCODE_SEND_ONLY:
		wc->opcode = IB_WC_RECV;
		break;
	case IB_OPCODE_SEND_LAST_WITH_IMMEDIATE:
	case IB_OPCODE_SEND_ONLY_WITH_IMMEDIATE:
		wc->opcode = IB_WC_RECV;
		wc->wc_flags = IB_WC_WITH_IMM;
		break;
	case IB_OPCODE_SEND_LAST_WITH_INVALIDATE:
	case IB_OPCODE_SEND_ONLY_WITH_INVALIDATE:
		wc->opcode = IB_WC_RECV;
		wc->wc_flags = IB_WC_WITH_INVALIDATE;
		break;
	case IB_OPCODE_RDMA_WRITE_LAST_WITH_IMMEDIATE:
	case IB_OPCODE_RDMA_WRITE_ONLY_WITH_IMMEDIATE:
		wc->opcode = IB_WC_RECV_RDMA_WITH_IMM;
		wc->wc_flags = IB_WC_WITH_IMM;
		in_wqe = false;
		break;
	default:
		return -EINVAL;
	}

	wc->byte_len = le32_to_cpu(cqe->byte_cnt);
	if (in_wqe && wc->byte_len > wr->length)
		return -EINVAL;
	if (wc->wc_flags & IB_WC_WITH_IMM)
		wc->ex.imm_data = cqe->imm;
	if (wc->wc_flags & IB_WC_WITH_INVALIDATE)
		wc->ex.invalidate_rkey = be32_to_cpu(cqe->imm);
	if (rlid_path_sl & HGHCA_CQE_GRH)
		wc->wc_flags |= IB_WC_GRH;
	wc->src_qp = le32_to_cpu(cqe->rqpn) & HGHCA_QPN_MASK;
	wc->sl = FIELD_GET(HGHCA_CQE_SL_MASK, rlid_path_sl);
	/* ib_core finds the net device by the VLAN, and the CM finds its listener by that. */
	if (rlid_path_sl & HGHCA_CQE_VLAN_VALID) {
		wc->wc_flags |= IB_WC_WITH_VLAN;
		wc->vlan_id = FIELD_GET(HGHCA_CQE_VLAN_ID_MASK, rlid_path_sl);
	}
	return 0;
}

static bool hghca_cqe_is_error(const struct hghca_cqe *cqe)
{
	return cqe->opcode == HGHCA_OPCODE_INVALID;
}

/*
 * Translate a CQE to a work completion; -EINVAL if the CQE must be dropped, and -ENOMSG
 * if nobody has asked for it.
 */
static int hghca_cqe_to_wc(struct hghca_cq *hcq, const struct hghca_cqe *cqe,
			   struct ib_wc *wc)
{
	struct hghca_wr wr;
	struct hghca_qp *hqp;
	int ret;

	hqp = xa_load(&hcq->qps, le32_to_cpu(cqe->my_qpn) & HGHCA_QPN_MASK);
	if (!hqp)
		return hghca_bad_cqe(hcq, cqe, "no such QP");

	if (hghca_complete(hcq, hqp, cqe, &wr))
		return hghca_bad_cqe(hcq, cqe, "no such work request");
	if (cqe->is_send && wr.silent && !hghca_cqe_is_error(cqe))
		return -ENOMSG;

	*wc = (struct ib_wc) {
		.wr_id = wr.wr_id,
		.qp = &hqp->ibqp,
		.port_num = HGHCA_PORT_NUM,
	};
	if (hghca_cqe_is_error(cqe)) {
		hghca_wc_error(hqp, cqe, wc);
		return 0;
	}
	ret = cqe->is_send ? hghca_wc_send(cqe, &wr, wc) : hghca_wc_recv(cqe, &wr, wc);
	if (ret) {
		hghca_bad_cqe(hcq, cqe, "not what was asked for");
		wc->status = IB_WC_GENERAL_ERR;
		wc->wc_flags = 0;
		wc->byte_len = 0;
	}
	return 0;
}

/* Complete the oldest requests of a queue as flushed. */
static int hghca_wq_flush(struct hghca_qp *hqp, struct hghca_wq *wq, int num_entries,
			  struct ib_wc *wc)
{
	int n = 0;

	/* Pairs with the poster's release: the entries up to head were written. */
	while (n < num_entries && smp_load_acquire(&wq->head) != wq->tail) {
		wc[n++] = (struct ib_wc) {
			.wr_id = wq->wrs[wq->tail & (wq->num_wqes - 1)].wr_id,
			.status = IB_WC_WR_FLUSH_ERR,
			.qp = &hqp->ibqp,
			.port_num = HGHCA_PORT_NUM,
		};
		/* The entry was read; the poster may use it from here on. */
		smp_store_release(&wq->tail, wq->tail + 1);
	}
	return n;
}

/*
 * Flush the requests that a device that was given up does not flush.  Receives posted to
 * an SRQ belong to no QP and do not complete.
 */
static int hghca_cq_flush(struct hghca_cq *hcq, int num_entries, struct ib_wc *wc)
{
	struct hghca_qp *hqp;
	unsigned long qpn;
	int n = 0;

	xa_for_each(&hcq->qps, qpn, hqp) {
		if (hqp->ibqp.send_cq == &hcq->ibcq)
			n += hghca_wq_flush(hqp, &hqp->sq, num_entries - n, wc + n);
		if (hqp->ibqp.recv_cq == &hcq->ibcq)
			n += hghca_wq_flush(hqp, &hqp->rq, num_entries - n, wc + n);
	}
	return n;
}

/**
 * hghca_flush_work - call the completion handlers of a device that was given up
 * @work: &hghca_dev.flush_work
 *
 * The device raises no events any more.  The handlers poll, and hghca_poll_cq() flushes.
 */
void hghca_flush_work(struct work_struct *work)
{
	struct hghca_dev *hdev = container_of(work, struct hghca_dev, flush_work);
	struct hghca_obj *obj;
	unsigned long cqn;

	xa_for_each(&hdev->cqs.objs, cqn, obj) {
		/* As in an interrupt: a softirq that a handler raises runs at the end. */
		local_bh_disable();
		hghca_cq_dispatch_comp(hdev, cqn);
		local_bh_enable();
	}
}

/**
 * hghca_poll_cq - poll a CQ
 * @ibcq: a kernel CQ
 * @num_entries: maximum number of completions
 * @wc: output: the completions
 *
 * Any context.
 *
 * Return: the number of completions.
 */
int hghca_poll_cq(struct ib_cq *ibcq, int num_entries, struct ib_wc *wc)
{
	bool by_owner = !(to_hdev(ibcq->device)->limits.caps & HGHCA_CAP_DBR);
	struct hghca_cq *hcq = to_hcq(ibcq);
	struct hghca_cqe *slot;
	struct hghca_cqe cqe;
	unsigned long flags;
	u32 first;
	int n = 0;

	spin_lock_irqsave(&hcq->lock, flags);
	first = hcq->cons_index;
	/* The number of dropped CQEs is limited, too: a device may write them without end. */
	while (n < num_entries && hcq->cons_index - first < BIT(hcq->log_size)) {
		slot = hghca_cq_next(hcq);
		if (!slot)
			break;
		dma_rmb();	/* the CQE's body behind its owner */
		cqe = *slot;
		/* The record returns the CQE to the device; see hghca_cq_update_dbr(). */
		hghca_return_entry(&slot->owner, by_owner);
		trace_hghca_cqe(to_hdev(ibcq->device), hcq->hw.cqn, hcq->cons_index, &cqe);
		hcq->cons_index++;
		if (!hghca_cqe_to_wc(hcq, &cqe, &wc[n]))
			n++;
	}
	if (hcq->cons_index != first)
		hghca_cq_update_dbr(hcq);
	if (unlikely(hghca_dev_has_failed(to_hdev(ibcq->device))))
		n += hghca_cq_flush(hcq, num_entries - n, wc + n);
	spin_unlock_irqrestore(&hcq->lock, flags);
	return n;
}

/*
 * Arm the CQ.  Without HGHCA_CAP_CQ_ARM each completion makes an event, solicited or not,
 * and the driver passes one on.  It does not know how far a user has polled: an event that
 * came since the last one that it passed on may be of a CQE that the user has seen.
 */
static void hghca_cq_arm(struct hghca_cq *hcq, bool solicited)
{
	struct hghca_dev *hdev = to_hdev(hcq->ibcq.device);

	lockdep_assert_held(&hcq->lock);

	if (hdev->limits.caps & HGHCA_CAP_CQ_ARM) {
		hghca_ring_cq(hdev, hcq->hw.cqn, hcq->cons_index,
			      solicited ? HGHCA_CQ_ARM_SOLICITED : HGHCA_CQ_ARM_NEXT);
		return;
	}
	if (hcq->uctx ? hcq->missed : !!hghca_cq_next(hcq)) {
		hcq->missed = false;
		schedule_work(&hcq->event_work);
	} else {
		hcq->armed = true;
	}
}

/**
 * hghca_cq_takes_event - does an event of the device call the handler of the CQ?
 * @hcq: the CQ
 *
 * Any context.
 *
 * Return: true on a device with HGHCA_CAP_CQ_ARM; otherwise once after each arming.
 */
bool hghca_cq_takes_event(struct hghca_cq *hcq)
{
	struct hghca_dev *hdev = to_hdev(hcq->ibcq.device);
	unsigned long flags;
	bool takes;

	/* Of a device that was given up, requests without a CQE complete too. */
	if (hdev->limits.caps & HGHCA_CAP_CQ_ARM || hghca_dev_has_failed(hdev))
		return true;

	spin_lock_irqsave(&hcq->lock, flags);
	takes = hcq->armed && (hcq->uctx || hghca_cq_next(hcq));
	if (takes)
		hcq->armed = false;
	else
		hcq->missed = true;
	spin_unlock_irqrestore(&hcq->lock, flags);
	return takes;
}

/**
 * hghca_req_notify_cq - request an event at the next completion
 * @ibcq: a kernel CQ
 * @flags: IB_CQ_*: the kind of completion; whether to report missed completions
 *
 * For a completion that already exists, the event is raised at once.
 *
 * Return: 1 if there is a completion and @flags asks for a report, otherwise 0.
 */
int hghca_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct hghca_cq *hcq = to_hcq(ibcq);
	bool solicited = (flags & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED;
	unsigned long irq_flags;
	int ret = 0;

	spin_lock_irqsave(&hcq->lock, irq_flags);
	if (flags & IB_CQ_REPORT_MISSED_EVENTS)
		ret = !!hghca_cq_next(hcq);
	if (!hcq->dead)
		hghca_cq_arm(hcq, solicited);
	spin_unlock_irqrestore(&hcq->lock, irq_flags);
	return ret;
}

/**
 * hghca_cq_attach - attach a kernel QP to one of its CQs
 * @hcq: the CQ
 * @hqp: the QP; may be attached already, for its other direction
 *
 * Return: 0 or -ENOMEM.
 */
int hghca_cq_attach(struct hghca_cq *hcq, struct hghca_qp *hqp)
{
	return xa_err(xa_store_irq(&hcq->qps, hqp->hw.qpn, hqp, GFP_KERNEL));
}

/* Drop a CQE: the WQE of a shared receive is returned to its SRQ. */
static void hghca_cqe_drop(struct hghca_cq *hcq, struct hghca_qp *hqp,
			   const struct hghca_cqe *cqe)
{
	struct hghca_cqe copy = *cqe;	/* use the same values that are checked */
	struct hghca_wr wr;

	if (hqp->ibqp.srq && !copy.is_send)
		hghca_complete(hcq, hqp, &copy, &wr);
}

/* Drop the CQEs of a QP: the CQEs of other QPs move to their places. */
static void hghca_cq_purge_locked(struct hghca_cq *hcq, struct hghca_qp *hqp)
{
	bool by_owner = !(to_hdev(hcq->ibcq.device)->limits.caps & HGHCA_CAP_DBR);
	u32 end = hcq->cons_index;
	u32 purged = 0;
	u32 i;

	while (end - hcq->cons_index < BIT(hcq->log_size) &&
	       hghca_cqe_is_ours(hghca_cqe_at(&hcq->queue, hcq->log_size, end)))
		end++;
	dma_rmb();	/* the CQEs' bodies behind their owners */

	for (i = end; i-- != hcq->cons_index;) {
		struct hghca_cqe *cqe = hghca_cqe_at(&hcq->queue, hcq->log_size, i);

		if ((le32_to_cpu(cqe->my_qpn) & HGHCA_QPN_MASK) == hqp->hw.qpn) {
			hghca_cqe_drop(hcq, hqp, cqe);
			purged++;
		} else if (purged) {
			memcpy(hghca_cqe_at(&hcq->queue, hcq->log_size, i + purged),
			       cqe, sizeof(*cqe));
		}
	}
	if (!purged)
		return;

	for (i = 0; i < purged; i++) {
		struct hghca_cqe *cqe;

		cqe = hghca_cqe_at(&hcq->queue, hcq->log_size, hcq->cons_index++);
		/* As in hghca_poll_cq(); the moves are complete. */
		hghca_return_entry(&cqe->owner, by_owner);
	}
	hghca_cq_update_dbr(hcq);
}

/**
 * hghca_cq_purge - drop the completions of a QP
 * @hcq: a CQ it completes to
 * @hqp: a kernel QP in RESET
 *
 * May sleep.
 */
void hghca_cq_purge(struct hghca_cq *hcq, struct hghca_qp *hqp)
{
	mutex_lock(&hcq->resize_lock);	/* so that there is one buffer */
	spin_lock_irq(&hcq->lock);
	hghca_cq_purge_locked(hcq, hqp);
	spin_unlock_irq(&hcq->lock);
	mutex_unlock(&hcq->resize_lock);
}

/**
 * hghca_cq_detach - detach a kernel QP from a CQ, and drop its completions
 * @hcq: the CQ
 * @hqp: a QP in RESET; may be detached already, for its other direction
 *
 * May sleep.  After return no poller uses the QP.
 */
void hghca_cq_detach(struct hghca_cq *hcq, struct hghca_qp *hqp)
{
	mutex_lock(&hcq->resize_lock);	/* so that there is one buffer */
	spin_lock_irq(&hcq->lock);
	hghca_cq_purge_locked(hcq, hqp);
	xa_lock(&hcq->qps);
	__xa_erase(&hcq->qps, hqp->hw.qpn);
	xa_unlock(&hcq->qps);
	spin_unlock_irq(&hcq->lock);
	mutex_unlock(&hcq->resize_lock);
}
