// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ERNIC and ETRNIC: completion queues.  The hardware has one of each QP, which tells of
 * sends alone.  Those of verbs are rings of the driver, which the interrupt and
 * ernic_poll_cq() fill from the queues of their QPs.
 */
#include <linux/slab.h>
#include <rdma/uverbs_ioctl.h>
#include "ernic.h"

/* A completion is lost: IBA 11.6.3.2. */
static void ernic_cq_raise_error(struct ernic_cq *cq)
{
	struct ib_event event = {
		.device = cq->ibcq.device,
		.event = IB_EVENT_CQ_ERR,
		.element.cq = &cq->ibcq,
	};

	if (cq->ibcq.event_handler)
		cq->ibcq.event_handler(&event, cq->ibcq.cq_context);
}

static void ernic_cq_event_work(struct work_struct *work)
{
	struct ernic_cq *cq = container_of(work, struct ernic_cq, event_work);
	unsigned long flags;
	bool lost;

	spin_lock_irqsave(&cq->lock, flags);
	lost = cq->lost;
	cq->lost = false;
	spin_unlock_irqrestore(&cq->lock, flags);
	if (lost)
		ernic_cq_raise_error(cq);
	ernic_cq_notify(cq);
}

int ernic_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		    struct uverbs_attr_bundle *attrs)
{
	struct ernic_cq *cq = to_ecq(ibcq);

	if (attr->flags)
		return -EOPNOTSUPP;
	if (!attr->cqe || attr->cqe > ERNIC_MAX_CQE)
		return -EINVAL;
	cq->ring = kvcalloc(attr->cqe, sizeof(*cq->ring), GFP_KERNEL);
	if (!cq->ring)
		return -ENOMEM;
	cq->size = attr->cqe;
	spin_lock_init(&cq->lock);
	spin_lock_init(&cq->list_lock);
	INIT_LIST_HEAD(&cq->sqs);
	INIT_LIST_HEAD(&cq->rqs);
	INIT_WORK(&cq->event_work, ernic_cq_event_work);
	ibcq->cqe = attr->cqe;
	return 0;
}

int ernic_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct ernic_cq *cq = to_ecq(ibcq);

	cancel_work_sync(&cq->event_work);
	kvfree(cq->ring);
	return 0;
}

/**
 * ernic_cq_add - add a completion
 * @cq: the CQ
 * @wc: the completion
 * @solicited: it raises an event that waits for a solicited one
 *
 * Interrupts are disabled.  The caller calls ernic_cq_notify() without locks.
 */
void ernic_cq_add(struct ernic_cq *cq, const struct ib_wc *wc, bool solicited)
{
	spin_lock(&cq->lock);
	if (cq->head - cq->tail < cq->size) {
		cq->ring[cq->head++ % cq->size] = *wc;
	} else if (!cq->overrun) {
		cq->overrun = true;
		cq->lost = true;
		ibdev_dbg(cq->ibcq.device, "a CQ of %u entries overran\n", cq->size);
		queue_work(to_edev(cq->ibcq.device)->wq, &cq->event_work);
	}
	if (cq->armed && (cq->armed_any || solicited || wc->status != IB_WC_SUCCESS)) {
		cq->armed = false;
		cq->notify = true;
	}
	spin_unlock(&cq->lock);
}

static bool ernic_cq_is_due(struct ernic_cq *cq)
{
	unsigned long flags;
	bool due;

	spin_lock_irqsave(&cq->lock, flags);
	due = cq->notify;
	cq->notify = false;
	spin_unlock_irqrestore(&cq->lock, flags);
	return due;
}

/* Raise the event if it is due. */
void ernic_cq_notify(struct ernic_cq *cq)
{
	if (ernic_cq_is_due(cq) && cq->ibcq.comp_handler)
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
}

/* The same where the handler could call what is under way. */
void ernic_cq_notify_later(struct ernic_cq *cq)
{
	if (READ_ONCE(cq->notify))
		queue_work(to_edev(cq->ibcq.device)->wq, &cq->event_work);
}

int ernic_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct ernic_cq *cq = to_ecq(ibcq);
	unsigned long irq_flags;
	int missed = 0;

	spin_lock_irqsave(&cq->lock, irq_flags);
	cq->armed_any = (flags & IB_CQ_SOLICITED_MASK) == IB_CQ_NEXT_COMP ||
			(cq->armed && cq->armed_any);
	cq->armed = true;
	if (flags & IB_CQ_REPORT_MISSED_EVENTS)
		missed = cq->head != cq->tail;
	spin_unlock_irqrestore(&cq->lock, irq_flags);
	return missed;
}

/* Remove the completions of a QP that is destroyed. */
void ernic_cq_purge(struct ernic_cq *cq, struct ib_qp *ibqp)
{
	unsigned long flags;
	u32 kept, i;

	spin_lock_irqsave(&cq->lock, flags);
	kept = cq->tail;
	for (i = cq->tail; i != cq->head; i++)
		if (cq->ring[i % cq->size].qp != ibqp)
			cq->ring[kept++ % cq->size] = cq->ring[i % cq->size];
	cq->head = kept;
	spin_unlock_irqrestore(&cq->lock, flags);
}
