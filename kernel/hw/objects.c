// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: numbers of CQs, QPs and SRQs, and how events find them.
 *
 * An event takes a reference under the array's lock; an object leaves the
 * array first and then waits for the references to go, so that no event ever
 * sees memory that was freed.  A number belongs to its object until the device
 * has let go of it and its ICM.
 */
#include "hghca.h"

/* Let events find @entry; the number is reserved already. */
static int hghca_res_publish(struct xarray *xa, u32 number, void *entry)
{
	return xa_err(xa_store_irq(xa, number, entry, GFP_KERNEL));
}

/* Events find nothing any more; the number stays reserved. */
static void hghca_res_hide(struct xarray *xa, u32 number)
{
	xa_store_irq(xa, number, XA_ZERO_ENTRY, GFP_KERNEL);
}

/**
 * hghca_hwcq_add - give a CQ a number, ICM and events
 * @hdev: the device
 * @hwcq: the CQ, with its callbacks
 *
 * Return: 0 or a negative errno.
 */
int hghca_hwcq_add(struct hghca_dev *hdev, struct hghca_hwcq *hwcq)
{
	int err;

	refcount_set(&hwcq->refs, 1);
	init_completion(&hwcq->released);

	err = xa_alloc_irq(&hdev->cqs, &hwcq->cqn, NULL,
			   XA_LIMIT(hdev->limits.first_cqn, hdev->limits.num_cqs - 1), GFP_KERNEL);
	if (err)
		return err == -EBUSY ? -ENOMEM : err;

	err = hghca_icm_get(hdev, HGHCA_ICM_CQC, hwcq->cqn, 1);
	if (err)
		goto err_erase;

	err = hghca_res_publish(&hdev->cqs, hwcq->cqn, hwcq);
	if (err)
		goto err_put_icm;
	return 0;

err_put_icm:
	hghca_icm_put(hdev, HGHCA_ICM_CQC, hwcq->cqn, 1);
err_erase:
	xa_erase_irq(&hdev->cqs, hwcq->cqn);
	return err;
}

static void hghca_hwcq_put(struct hghca_hwcq *hwcq)
{
	if (refcount_dec_and_test(&hwcq->refs))
		complete(&hwcq->released);
}

/**
 * hghca_hwcq_del - undo hghca_hwcq_add()
 * @hdev: the device
 * @hwcq: the CQ, which the device does not know any more
 *
 * Context: may sleep.  When it returns no callback runs, and none will.
 */
void hghca_hwcq_del(struct hghca_dev *hdev, struct hghca_hwcq *hwcq)
{
	hghca_res_hide(&hdev->cqs, hwcq->cqn);
	hghca_hwcq_put(hwcq);
	wait_for_completion(&hwcq->released);
	hghca_icm_put(hdev, HGHCA_ICM_CQC, hwcq->cqn, 1);
	xa_erase_irq(&hdev->cqs, hwcq->cqn);
}

/**
 * hghca_hwqp_add - give a QP a number, ICM and events
 * @hdev: the device
 * @hwqp: the QP, with its callback
 * @qpn: the number it must have, or 0 for any
 *
 * Return: 0, -EBUSY when @qpn is in use, or another negative errno.
 */
int hghca_hwqp_add(struct hghca_dev *hdev, struct hghca_hwqp *hwqp, u32 qpn)
{
	int err;

	refcount_set(&hwqp->refs, 1);
	init_completion(&hwqp->released);

	if (qpn) {
		hwqp->qpn = qpn;
		err = xa_insert_irq(&hdev->qps, qpn, NULL, GFP_KERNEL);
		if (err)
			return err;
	} else {
		/* In turn, so that a number rests before it comes back. */
		err = xa_alloc_cyclic_irq(&hdev->qps, &hwqp->qpn, NULL,
					  XA_LIMIT(hdev->limits.first_qpn,
						   hdev->limits.num_qps - 1),
					  &hdev->next_qpn, GFP_KERNEL);
		if (err < 0)
			return err == -EBUSY ? -ENOMEM : err;
	}

	err = hghca_icm_get(hdev, HGHCA_ICM_QPC, hwqp->qpn, 1);
	if (err)
		goto err_erase;

	err = hghca_res_publish(&hdev->qps, hwqp->qpn, hwqp);
	if (err)
		goto err_put_icm;
	return 0;

err_put_icm:
	hghca_icm_put(hdev, HGHCA_ICM_QPC, hwqp->qpn, 1);
err_erase:
	xa_erase_irq(&hdev->qps, hwqp->qpn);
	return err;
}

/**
 * hghca_hwqp_put - give a reference back
 * @hwqp: the QP
 *
 * Context: any.
 */
void hghca_hwqp_put(struct hghca_hwqp *hwqp)
{
	if (refcount_dec_and_test(&hwqp->refs))
		complete(&hwqp->released);
}

/**
 * hghca_hwqp_del - undo hghca_hwqp_add()
 * @hdev: the device
 * @hwqp: the QP, which is in RST for the device
 *
 * Context: may sleep.  When it returns no callback runs, and none will.
 */
void hghca_hwqp_del(struct hghca_dev *hdev, struct hghca_hwqp *hwqp)
{
	hghca_res_hide(&hdev->qps, hwqp->qpn);
	hghca_hwqp_put(hwqp);
	wait_for_completion(&hwqp->released);
	hghca_icm_put(hdev, HGHCA_ICM_QPC, hwqp->qpn, 1);
	xa_erase_irq(&hdev->qps, hwqp->qpn);
}

/**
 * hghca_hwsrq_add - give an SRQ a number, ICM and events
 * @hdev: the device, which has SRQs
 * @hwsrq: the SRQ, with its callback
 *
 * Return: 0 or a negative errno.
 */
int hghca_hwsrq_add(struct hghca_dev *hdev, struct hghca_hwsrq *hwsrq)
{
	int err;

	refcount_set(&hwsrq->refs, 1);
	init_completion(&hwsrq->released);

	err = xa_alloc_irq(&hdev->srqs, &hwsrq->srqn, NULL,
			   XA_LIMIT(hdev->limits.first_srqn, hdev->limits.num_srqs - 1),
			   GFP_KERNEL);
	if (err)
		return err == -EBUSY ? -ENOMEM : err;

	err = hghca_icm_get(hdev, HGHCA_ICM_SRQC, hwsrq->srqn, 1);
	if (err)
		goto err_erase;

	err = hghca_res_publish(&hdev->srqs, hwsrq->srqn, hwsrq);
	if (err)
		goto err_put_icm;
	return 0;

err_put_icm:
	hghca_icm_put(hdev, HGHCA_ICM_SRQC, hwsrq->srqn, 1);
err_erase:
	xa_erase_irq(&hdev->srqs, hwsrq->srqn);
	return err;
}

static void hghca_hwsrq_put(struct hghca_hwsrq *hwsrq)
{
	if (refcount_dec_and_test(&hwsrq->refs))
		complete(&hwsrq->released);
}

/**
 * hghca_hwsrq_del - undo hghca_hwsrq_add()
 * @hdev: the device
 * @hwsrq: the SRQ, which the device does not know any more
 *
 * Context: may sleep.  When it returns no callback runs, and none will.
 */
void hghca_hwsrq_del(struct hghca_dev *hdev, struct hghca_hwsrq *hwsrq)
{
	hghca_res_hide(&hdev->srqs, hwsrq->srqn);
	hghca_hwsrq_put(hwsrq);
	wait_for_completion(&hwsrq->released);
	hghca_icm_put(hdev, HGHCA_ICM_SRQC, hwsrq->srqn, 1);
	xa_erase_irq(&hdev->srqs, hwsrq->srqn);
}

static struct hghca_hwcq *hghca_hwcq_get(struct hghca_dev *hdev, u32 cqn)
{
	struct hghca_hwcq *hwcq = NULL;
	unsigned long flags;

	if (cqn >= hdev->limits.num_cqs) {
		dev_err_ratelimited(hdev->bus.dev, "event for CQ %#x: beyond the table\n", cqn);
		return NULL;
	}

	xa_lock_irqsave(&hdev->cqs, flags);
	hwcq = xa_load(&hdev->cqs, cqn);
	if (hwcq)
		refcount_inc(&hwcq->refs);
	xa_unlock_irqrestore(&hdev->cqs, flags);

	/* Not a fault: the event may have been on its way as the CQ went. */
	if (!hwcq)
		dev_dbg_ratelimited(hdev->bus.dev, "event for CQ %#x: there is none\n", cqn);
	return hwcq;
}

/**
 * hghca_cq_dispatch_comp - a completion event came
 * @hdev: the device
 * @cqn: which CQ; the device's word, so it is checked
 *
 * Context: any.
 */
void hghca_cq_dispatch_comp(struct hghca_dev *hdev, u32 cqn)
{
	struct hghca_hwcq *hwcq = hghca_hwcq_get(hdev, cqn);

	if (!hwcq)
		return;
	hwcq->comp(hwcq);
	hghca_hwcq_put(hwcq);
}

static void hghca_comp_event(struct hghca_dev *hdev, u32 number, const struct hghca_eqe *eqe)
{
	hghca_cq_dispatch_comp(hdev, number);
}

static void hghca_cq_error_event(struct hghca_dev *hdev, u32 cqn, const struct hghca_eqe *eqe)
{
	struct hghca_hwcq *hwcq = hghca_hwcq_get(hdev, cqn);

	if (!hwcq)
		return;
	hwcq->event(hwcq, eqe->event.cq_err.syndrome);
	hghca_hwcq_put(hwcq);
}

/**
 * hghca_hwqp_get - the QP that an event is about
 * @hdev: the device
 * @qpn: which QP; the device's word, so it is checked
 * @type: enum hghca_event_type, for the log
 *
 * Context: any.
 * Return: the QP, with a reference for hghca_hwqp_put(); or NULL.
 */
struct hghca_hwqp *hghca_hwqp_get(struct hghca_dev *hdev, u32 qpn, u8 type)
{
	struct hghca_hwqp *hwqp = NULL;
	unsigned long flags;

	if (qpn >= hdev->limits.num_qps) {
		dev_err_ratelimited(hdev->bus.dev, "event %#x for QP %#x: beyond the table\n",
				    type, qpn);
		return NULL;
	}

	xa_lock_irqsave(&hdev->qps, flags);
	hwqp = xa_load(&hdev->qps, qpn);
	if (hwqp)
		refcount_inc(&hwqp->refs);
	xa_unlock_irqrestore(&hdev->qps, flags);

	if (!hwqp)
		dev_dbg_ratelimited(hdev->bus.dev, "event %#x for QP %#x: there is none\n",
				    type, qpn);
	return hwqp;
}

/**
 * hghca_qp_dispatch_event - an asynchronous event of a QP came
 * @hdev: the device
 * @qpn: which QP; the device's word, so it is checked
 * @type: enum hghca_event_type
 *
 * Context: any.
 */
void hghca_qp_dispatch_event(struct hghca_dev *hdev, u32 qpn, u8 type)
{
	struct hghca_hwqp *hwqp = hghca_hwqp_get(hdev, qpn, type);

	if (!hwqp)
		return;
	hwqp->event(hwqp, type);
	hghca_hwqp_put(hwqp);
}

/**
 * hghca_srq_dispatch_event - an asynchronous event of an SRQ came
 * @hdev: the device
 * @srqn: which SRQ; the device's word, so it is checked
 * @type: enum hghca_event_type
 *
 * Context: any.
 */
void hghca_srq_dispatch_event(struct hghca_dev *hdev, u32 srqn, u8 type)
{
	struct hghca_hwsrq *hwsrq = NULL;
	unsigned long flags;

	if (srqn >= hdev->limits.num_srqs) {
		dev_err_ratelimited(hdev->bus.dev, "event %#x for SRQ %#x: beyond the table\n",
				    type, srqn);
		return;
	}

	xa_lock_irqsave(&hdev->srqs, flags);
	hwsrq = xa_load(&hdev->srqs, srqn);
	if (hwsrq)
		refcount_inc(&hwsrq->refs);
	xa_unlock_irqrestore(&hdev->srqs, flags);

	if (!hwsrq) {
		dev_dbg_ratelimited(hdev->bus.dev, "event %#x for SRQ %#x: there is none\n",
				    type, srqn);
		return;
	}
	hwsrq->event(hwsrq, type);
	hghca_hwsrq_put(hwsrq);
}

static void hghca_qp_event_of(struct hghca_dev *hdev, u32 number, const struct hghca_eqe *eqe)
{
	hghca_qp_dispatch_event(hdev, number, eqe->type);
}

static void hghca_srq_event_of(struct hghca_dev *hdev, u32 number, const struct hghca_eqe *eqe)
{
	hghca_srq_dispatch_event(hdev, number, eqe->type);
}

static const enum hghca_event_type hghca_qp_events[] = {
	HGHCA_EVENT_COMM_EST,
	HGHCA_EVENT_SQ_DRAINED,
	HGHCA_EVENT_WQ_CATAS_ERROR,
	HGHCA_EVENT_WQ_INVAL_REQ_ERROR,
	HGHCA_EVENT_WQ_ACCESS_ERROR,
	HGHCA_EVENT_SRQ_QP_LAST_WQE,
};

static const enum hghca_event_type hghca_srq_events[] = {
	HGHCA_EVENT_SRQ_CATAS_ERROR,
	HGHCA_EVENT_SRQ_LIMIT,
};

/**
 * hghca_res_init - prepare lookup, and take the events of CQs, QPs and SRQs
 * @hdev: the device
 */
void hghca_res_init(struct hghca_dev *hdev)
{
	unsigned int i;

	xa_init_flags(&hdev->cqs, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&hdev->qps, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&hdev->srqs, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_IRQ);

	hghca_handle_event(hdev, HGHCA_EVENT_COMP, hghca_comp_event);
	hghca_handle_event(hdev, HGHCA_EVENT_CQ_ERROR, hghca_cq_error_event);
	for (i = 0; i < ARRAY_SIZE(hghca_qp_events); i++)
		hghca_handle_event(hdev, hghca_qp_events[i], hghca_qp_event_of);
	for (i = 0; i < ARRAY_SIZE(hghca_srq_events); i++)
		hghca_handle_event(hdev, hghca_srq_events[i], hghca_srq_event_of);
}

/**
 * hghca_res_cleanup - undo hghca_res_init()
 * @hdev: the device, without CQs, QPs and SRQs
 */
void hghca_res_cleanup(struct hghca_dev *hdev)
{
	WARN_ON(!xa_empty(&hdev->cqs));
	WARN_ON(!xa_empty(&hdev->qps));
	WARN_ON(!xa_empty(&hdev->srqs));
	xa_destroy(&hdev->cqs);
	xa_destroy(&hdev->qps);
	xa_destroy(&hdev->srqs);
}
