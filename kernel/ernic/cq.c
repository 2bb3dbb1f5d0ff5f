// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ERNIC and ETRNIC: completion queues.  The hardware has one of each QP, which tells of
 * sends alone.  Those of verbs are rings of the driver, which the interrupt and
 * ernic_poll_cq() fill from the queues of their QPs.
 */
#include <linux/log2.h>
#include <linux/slab.h>
#include "ernic.h"

/* Raise the event of a completion that was lost, if it is due: IBA 11.6.3.2. */
void ernic_cq_raise_lost(struct ernic_cq *cq)
{
	struct ib_event event = {
		.device = cq->ibcq.device,
		.event = IB_EVENT_CQ_ERR,
		.element.cq = &cq->ibcq,
	};
	unsigned long flags;
	bool lost;

	spin_lock_irqsave(&cq->lock, flags);
	lost = cq->lost;
	cq->lost = false;
	spin_unlock_irqrestore(&cq->lock, flags);
	if (lost && cq->ibcq.event_handler)
		cq->ibcq.event_handler(&event, cq->ibcq.cq_context);
}

static void ernic_cq_event_work(struct work_struct *work)
{
	ernic_cq_notify(container_of(work, struct ernic_cq, event_work));
}

/* The indices run freely: entries of the ring are a power of two, and may be more than the size. */
static u32 ernic_cq_mask(u32 size)
{
	return roundup_pow_of_two(size) - 1;
}

static struct ernic_cqe *ernic_cq_alloc_ring(u32 size)
{
	return kvcalloc(ernic_cq_mask(size) + 1, sizeof(struct ernic_cqe), GFP_KERNEL);
}

int ernic_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		    struct uverbs_attr_bundle *attrs)
{
	struct ernic_cq *cq = to_ecq(ibcq);
	int err;

	err = ib_no_udata_io(attrs ? &attrs->driver_udata : NULL);
	if (err)
		return err;
	if (attr->flags)
		return -EOPNOTSUPP;
	if (!attr->cqe || attr->cqe > ERNIC_MAX_CQE)
		return -EINVAL;
	cq->ring = ernic_cq_alloc_ring(attr->cqe);
	if (!cq->ring)
		return -ENOMEM;
	cq->size = attr->cqe;
	cq->mask = ernic_cq_mask(attr->cqe);
	spin_lock_init(&cq->lock);
	spin_lock_init(&cq->list_lock);
	INIT_LIST_HEAD(&cq->sqs);
	INIT_LIST_HEAD(&cq->rqs);
	INIT_WORK(&cq->event_work, ernic_cq_event_work);
	ibcq->cqe = attr->cqe;
	return 0;
}

int ernic_resize_user_cq(struct ib_cq *ibcq, unsigned int cqe, struct ib_udata *udata)
{
	struct ernic_cq *cq = to_ecq(ibcq);
	struct ernic_cqe *ring, *unused;
	unsigned long flags;
	u32 mask, i;
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	if (!cqe || cqe > ERNIC_MAX_CQE)
		return -EINVAL;
	ring = ernic_cq_alloc_ring(cqe);
	if (!ring)
		return -ENOMEM;
	mask = ernic_cq_mask(cqe);
	unused = ring;
	spin_lock_irqsave(&cq->lock, flags);
	if (cq->head - cq->tail <= cqe) {
		for (i = cq->tail; i != cq->head; i++)
			ring[i & mask] = cq->ring[i & cq->mask];
		unused = cq->ring;
		cq->ring = ring;
		cq->size = cqe;
		cq->mask = mask;
		ibcq->cqe = cqe;
	} else {
		err = -EINVAL;
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	kvfree(unused);
	return err;
}

int ernic_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct ernic_cq *cq = to_ecq(ibcq);
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	cancel_work_sync(&cq->event_work);
	kvfree(cq->ring);
	return 0;
}

static void ernic_cq_put(struct ernic_cq *cq, const struct ernic_cqe *cqe, bool solicited)
{
	spin_lock(&cq->lock);
	if (cq->head - cq->tail < cq->size) {
		cq->ring[cq->head++ & cq->mask] = *cqe;
	} else {
		/* A QP that has lost a completion does not go on.  Then the event is raised. */
		WRITE_ONCE(to_eqp(cqe->wc.qp)->lost, true);
		queue_work(to_edev(cq->ibcq.device)->wq, &to_eqp(cqe->wc.qp)->error_work);
		if (!cq->overrun)
			ibdev_dbg(cq->ibcq.device, "a CQ of %u entries overran\n", cq->size);
		cq->lost |= !cq->overrun;
		cq->overrun = true;
	}
	if (cq->armed && (cq->armed_any || solicited || cqe->wc.status != IB_WC_SUCCESS)) {
		cq->armed = false;
		cq->notify = true;
	}
	spin_unlock(&cq->lock);
}

/**
 * ernic_cq_add - add a completion of a receive
 * @cq: the CQ
 * @wc: the completion
 * @solicited: it raises an event that waits for a solicited one
 *
 * Interrupts are disabled.  The caller calls ernic_cq_notify() without locks.
 */
void ernic_cq_add(struct ernic_cq *cq, const struct ib_wc *wc, bool solicited)
{
	const struct ernic_cqe cqe = { .wc = *wc };

	ernic_cq_put(cq, &cqe, solicited);
}

/**
 * ernic_cq_add_send - add a completion of a send
 * @cq: the CQ
 * @wc: the completion
 * @behind: &ernic_sq.completed behind it
 *
 * As ernic_cq_add().
 */
void ernic_cq_add_send(struct ernic_cq *cq, const struct ib_wc *wc, u32 behind)
{
	const struct ernic_cqe cqe = { .wc = *wc, .is_send = true, .behind = behind };

	ernic_cq_put(cq, &cqe, false);
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
		if (cq->ring[i & cq->mask].wc.qp != ibqp)
			cq->ring[kept++ & cq->mask] = cq->ring[i & cq->mask];
	cq->head = kept;
	spin_unlock_irqrestore(&cq->lock, flags);
}
