// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: numbers of CQs, QPs and SRQs, and their lookup by events.
 *
 * An event takes a reference under the lock of the array.  A destroyed object is first
 * removed from the array and then waits until its references are dropped, so that no
 * event accesses freed memory.  A number belongs to its object until the device has
 * dropped the object and its ICM.
 */
#include "hghca.h"

/* Allocate @number for @obj, or any number if it is 0. */
static int hghca_obj_take_number(struct hghca_obj_table *table, struct hghca_obj *obj, u32 number)
{
	struct xa_limit limit = XA_LIMIT(table->first, table->count - 1);
	int err;

	if (number) {
		obj->number = number;
		return xa_insert_irq(&table->objs, number, NULL, GFP_KERNEL);
	}

	if (table->cyclic)
		err = xa_alloc_cyclic_irq(&table->objs, &obj->number, NULL, limit, &table->next,
					  GFP_KERNEL);
	else
		err = xa_alloc_irq(&table->objs, &obj->number, NULL, limit, GFP_KERNEL);
	if (err < 0)
		return err == -EBUSY ? -ENOMEM : err;
	return 0;
}

/* Give @obj a number, ICM and events. */
static int hghca_obj_add(struct hghca_dev *hdev, struct hghca_obj_table *table,
			 struct hghca_obj *obj, u32 number)
{
	int err;

	refcount_set(&obj->refs, 1);
	init_completion(&obj->released);

	err = hghca_obj_take_number(table, obj, number);
	if (err)
		return err;

	err = hghca_icm_get(hdev, table->icm, obj->number, 1);
	if (err)
		goto err_erase;

	err = xa_err(xa_store_irq(&table->objs, obj->number, obj, GFP_KERNEL));
	if (err)
		goto err_put_icm;
	return 0;

err_put_icm:
	hghca_icm_put(hdev, table->icm, obj->number, 1);
err_erase:
	xa_erase_irq(&table->objs, obj->number);
	return err;
}

static void hghca_obj_put(struct hghca_obj *obj)
{
	if (refcount_dec_and_test(&obj->refs))
		complete(&obj->released);
}

/* Undo hghca_obj_add().  No callback runs after return. */
static void hghca_obj_del(struct hghca_dev *hdev, struct hghca_obj_table *table,
			  struct hghca_obj *obj)
{
	/* Events do not find the object any more.  The number stays reserved. */
	xa_store_irq(&table->objs, obj->number, XA_ZERO_ENTRY, GFP_KERNEL);
	hghca_obj_put(obj);
	wait_for_completion(&obj->released);
	hghca_icm_put(hdev, table->icm, obj->number, 1);
	xa_erase_irq(&table->objs, obj->number);
}

/*
 * What an event is about, with a reference; or NULL.  The number is the device's
 * word, so it is checked.  Any context.
 */
static struct hghca_obj *hghca_obj_get(struct hghca_dev *hdev, struct hghca_obj_table *table,
				       u32 number, u8 type)
{
	struct hghca_obj *obj;
	unsigned long flags;

	if (number >= table->count) {
		dev_err_ratelimited(hdev->bus.dev, "event %#x for %s %#x: beyond the table\n",
				    type, table->name, number);
		return NULL;
	}

	xa_lock_irqsave(&table->objs, flags);
	obj = xa_load(&table->objs, number);
	if (obj)
		refcount_inc(&obj->refs);
	xa_unlock_irqrestore(&table->objs, flags);

	/* Not an error: the event may predate the destruction of the object. */
	if (!obj)
		dev_dbg_ratelimited(hdev->bus.dev, "event %#x for %s %#x: no such object\n",
				    type, table->name, number);
	return obj;
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
	int err = hghca_obj_add(hdev, &hdev->cqs, &hwcq->obj, 0);

	hwcq->cqn = hwcq->obj.number;
	return err;
}

/**
 * hghca_hwcq_del - undo hghca_hwcq_add()
 * @hdev: the device
 * @hwcq: the CQ, which the device does not know any more
 *
 * Context: may sleep.  After return, no callback runs or will run.
 */
void hghca_hwcq_del(struct hghca_dev *hdev, struct hghca_hwcq *hwcq)
{
	hghca_obj_del(hdev, &hdev->cqs, &hwcq->obj);
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
	int err = hghca_obj_add(hdev, &hdev->qps, &hwqp->obj, qpn);

	hwqp->qpn = hwqp->obj.number;
	return err;
}

/**
 * hghca_hwqp_del - undo hghca_hwqp_add()
 * @hdev: the device
 * @hwqp: the QP, which is in RST for the device
 *
 * Context: may sleep.  After return, no callback runs or will run.
 */
void hghca_hwqp_del(struct hghca_dev *hdev, struct hghca_hwqp *hwqp)
{
	hghca_obj_del(hdev, &hdev->qps, &hwqp->obj);
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
	int err = hghca_obj_add(hdev, &hdev->srqs, &hwsrq->obj, 0);

	hwsrq->srqn = hwsrq->obj.number;
	return err;
}

/**
 * hghca_hwsrq_del - undo hghca_hwsrq_add()
 * @hdev: the device
 * @hwsrq: the SRQ, which the device does not know any more
 *
 * Context: may sleep.  After return, no callback runs or will run.
 */
void hghca_hwsrq_del(struct hghca_dev *hdev, struct hghca_hwsrq *hwsrq)
{
	hghca_obj_del(hdev, &hdev->srqs, &hwsrq->obj);
}

/**
 * hghca_hwqp_get - look up the QP of an event
 * @hdev: the device
 * @qpn: which QP; from the device, so it is checked
 * @type: enum hghca_event_type, for the log
 *
 * Context: any.
 * Return: the QP, with a reference for hghca_hwqp_put(); or NULL.
 */
struct hghca_hwqp *hghca_hwqp_get(struct hghca_dev *hdev, u32 qpn, u8 type)
{
	struct hghca_obj *obj = hghca_obj_get(hdev, &hdev->qps, qpn, type);

	return obj ? container_of(obj, struct hghca_hwqp, obj) : NULL;
}

/**
 * hghca_hwqp_put - drop a reference
 * @hwqp: the QP
 *
 * Context: any.
 */
void hghca_hwqp_put(struct hghca_hwqp *hwqp)
{
	hghca_obj_put(&hwqp->obj);
}

/* ------------------------------------------------------------------ */
/* Events                                                               */

/**
 * hghca_cq_dispatch_comp - handle a completion event
 * @hdev: the device
 * @cqn: which CQ; from the device, so it is checked
 *
 * Context: any.
 */
void hghca_cq_dispatch_comp(struct hghca_dev *hdev, u32 cqn)
{
	struct hghca_obj *obj = hghca_obj_get(hdev, &hdev->cqs, cqn, HGHCA_EVENT_COMP);
	struct hghca_hwcq *hwcq;

	if (!obj)
		return;
	hwcq = container_of(obj, struct hghca_hwcq, obj);
	hwcq->comp(hwcq);
	hghca_obj_put(obj);
}

/**
 * hghca_qp_dispatch_event - handle an asynchronous event of a QP
 * @hdev: the device
 * @qpn: which QP; from the device, so it is checked
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
 * hghca_srq_dispatch_event - handle an asynchronous event of an SRQ
 * @hdev: the device
 * @srqn: which SRQ; from the device, so it is checked
 * @type: enum hghca_event_type
 *
 * Context: any.
 */
void hghca_srq_dispatch_event(struct hghca_dev *hdev, u32 srqn, u8 type)
{
	struct hghca_obj *obj = hghca_obj_get(hdev, &hdev->srqs, srqn, type);
	struct hghca_hwsrq *hwsrq;

	if (!obj)
		return;
	hwsrq = container_of(obj, struct hghca_hwsrq, obj);
	hwsrq->event(hwsrq, type);
	hghca_obj_put(obj);
}

static void hghca_comp_event(struct hghca_dev *hdev, u32 number, const struct hghca_eqe *eqe)
{
	hghca_cq_dispatch_comp(hdev, number);
}

static void hghca_cq_error_event(struct hghca_dev *hdev, u32 cqn, const struct hghca_eqe *eqe)
{
	struct hghca_obj *obj = hghca_obj_get(hdev, &hdev->cqs, cqn, eqe->type);
	struct hghca_hwcq *hwcq;

	if (!obj)
		return;
	hwcq = container_of(obj, struct hghca_hwcq, obj);
	hwcq->event(hwcq, eqe->event.cq_err.syndrome);
	hghca_obj_put(obj);
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

static void hghca_obj_table_init(struct hghca_obj_table *table, const char *name,
				 enum hghca_icm_kind icm, u32 first, u32 count, bool cyclic)
{
	xa_init_flags(&table->objs, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_IRQ);
	table->name = name;
	table->icm = icm;
	table->first = first;
	table->count = count;
	table->cyclic = cyclic;
	table->next = 0;
}

static void hghca_obj_table_cleanup(struct hghca_obj_table *table)
{
	WARN_ON(!xa_empty(&table->objs));
	xa_destroy(&table->objs);
}

/**
 * hghca_res_init - initialize the lookup, and handle the events of CQs, QPs and SRQs
 * @hdev: the device
 */
void hghca_res_init(struct hghca_dev *hdev)
{
	const struct hghca_limits *limits = &hdev->limits;
	unsigned int i;

	hghca_obj_table_init(&hdev->cqs, "CQ", HGHCA_ICM_CQC, limits->first_cqn, limits->num_cqs,
			     false);
	hghca_obj_table_init(&hdev->qps, "QP", HGHCA_ICM_QPC, limits->first_qpn, limits->num_qps,
			     true);
	hghca_obj_table_init(&hdev->srqs, "SRQ", HGHCA_ICM_SRQC, limits->first_srqn,
			     limits->num_srqs, false);

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
	hghca_obj_table_cleanup(&hdev->cqs);
	hghca_obj_table_cleanup(&hdev->qps);
	hghca_obj_table_cleanup(&hdev->srqs);
}
