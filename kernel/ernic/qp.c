// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ERNIC and ETRNIC: creation and destruction of queue pairs. */
#include <linux/log2.h>
#include <linux/slab.h>
#include "ernic.h"

static int ernic_check_init(struct ernic_dev *edev, const struct ib_qp_init_attr *init,
			    struct ib_udata *udata)
{
	const struct ib_qp_cap *cap = &init->cap;

	if (init->qp_type != IB_QPT_RC && (init->qp_type != IB_QPT_GSI || udata))
		return -EOPNOTSUPP;
	if (init->create_flags || init->srq)
		return -EOPNOTSUPP;
	if (cap->max_send_wr > ERNIC_MAX_WR || cap->max_recv_wr > ERNIC_MAX_WR ||
	    cap->max_send_sge > ERNIC_MAX_SGE || cap->max_recv_sge > ERNIC_MAX_SGE ||
	    cap->max_inline_data > ERNIC_MAX_INLINE)
		return -EINVAL;
	return 0;
}

/* WQEs, CQEs and the doorbell are one memory. */
static int ernic_sq_create(struct ernic_qp *qp, struct ib_qp_cap *cap)
{
	struct ernic_sq *sq = &qp->sq;
	u32 i;
	int err;

	sq->max_wr = max(cap->max_send_wr, 1U);
	sq->depth = roundup_pow_of_two(sq->max_wr + 1);
	qp->max_sge = max(cap->max_send_sge, 1U);
	sq->swqes = kvcalloc(sq->depth, sizeof(*sq->swqes), GFP_KERNEL);
	sq->sges = kvcalloc(sq->depth * qp->max_sge, sizeof(*sq->sges), GFP_KERNEL);
	if (!sq->swqes || !sq->sges)
		return -ENOMEM;
	for (i = 0; i < sq->depth; i++)
		sq->swqes[i].sge = &sq->sges[i * qp->max_sge];
	/* CQEs begin at a multiple of 32 bytes: a WQE has 64. */
	err = ernic_mem_alloc(qp->edev, &sq->wqes,
			      sq->depth * (sizeof(struct ernic_wqe) + ERNIC_CQE_BYTES) +
			      sizeof(*sq->doorbell));
	if (err)
		return err;
	sq->cqes = sq->wqes.cpu + sq->depth * sizeof(struct ernic_wqe);
	sq->doorbell = sq->cqes + sq->depth;
	return 0;
}

/* Every message of a QP may have a record that is not taken yet. */
static int ernic_records_reserve(struct ernic_dev *edev, u32 number)
{
	unsigned long flags;
	int err = 0;

	spin_lock_irqsave(&edev->table_lock, flags);
	if (number >= ERNIC_RECORDS_MAX - edev->records_taken)
		err = -ENOMEM;
	else
		edev->records_taken += number;
	spin_unlock_irqrestore(&edev->table_lock, flags);
	return err;
}

static void ernic_records_release(struct ernic_dev *edev, u32 number)
{
	unsigned long flags;

	spin_lock_irqsave(&edev->table_lock, flags);
	edev->records_taken -= number;
	spin_unlock_irqrestore(&edev->table_lock, flags);
}

static int ernic_rq_create(struct ernic_qp *qp, struct ib_qp_cap *cap)
{
	struct ernic_rq *rq = &qp->rq;
	u32 i;
	int err;

	rq->max_wr = max(cap->max_recv_wr, 1U);
	rq->depth = rq->max_wr + 1;
	rq->slot = ernic_is_gsi(qp) ? ERNIC_GSI_SLOT : qp->edev->slot;
	qp->max_recv_sge = max(cap->max_recv_sge, 1U);
	rq->rwqes = kvcalloc(rq->max_wr, sizeof(*rq->rwqes), GFP_KERNEL);
	rq->sges = kvcalloc(rq->max_wr * qp->max_recv_sge, sizeof(*rq->sges), GFP_KERNEL);
	rq->records = kvcalloc(rq->depth, sizeof(*rq->records), GFP_KERNEL);
	if (!rq->rwqes || !rq->sges || !rq->records)
		return -ENOMEM;
	for (i = 0; i < rq->max_wr; i++)
		rq->rwqes[i].sge = &rq->sges[i * qp->max_recv_sge];
	err = ernic_mem_alloc(qp->edev, &rq->door, sizeof(__le32));
	if (err)
		return err;
	return ernic_mem_alloc(qp->edev, &rq->slots, (size_t)rq->depth * rq->slot);
}

static void ernic_queues_free(struct ernic_qp *qp)
{
	ernic_mem_free(qp->edev, &qp->rq.slots);
	ernic_mem_free(qp->edev, &qp->rq.door);
	kvfree(qp->rq.records);
	kvfree(qp->rq.sges);
	kvfree(qp->rq.rwqes);
	ernic_mem_free(qp->edev, &qp->sq.wqes);
	kvfree(qp->sq.sges);
	kvfree(qp->sq.swqes);
}

static void ernic_qp_init(struct ernic_qp *qp, struct ernic_dev *edev, bool user)
{
	qp->edev = edev;
	qp->user = user;
	qp->state = IB_QPS_RESET;
	mutex_init(&qp->mutex);
	spin_lock_init(&qp->sq.lock);
	spin_lock_init(&qp->rq.lock);
	INIT_WORK(&qp->error_work, ernic_qp_error_work);
	refcount_set(&qp->refs, 1);
	init_completion(&qp->unused);
}

static int ernic_qpn_alloc(struct ernic_dev *edev, bool gsi)
{
	int qpn = gsi ? ida_alloc_range(&edev->qpn_ida, ERNIC_QP1, ERNIC_QP1, GFP_KERNEL) :
			ida_alloc_range(&edev->qpn_ida, ERNIC_QP1 + 1, edev->num_qps, GFP_KERNEL);

	return qpn == -ENOSPC ? -ENOMEM : qpn;
}

/* The interrupt and the CQs find the QP from here on. */
static void ernic_qp_publish(struct ernic_qp *qp)
{
	struct ernic_dev *edev = qp->edev;
	struct ernic_cq *send_cq = to_ecq(qp->ibqp.send_cq);
	struct ernic_cq *recv_cq = to_ecq(qp->ibqp.recv_cq);
	unsigned long flags;

	spin_lock_irqsave(&edev->table_lock, flags);
	edev->qps[qp->qpn] = qp;
	spin_unlock_irqrestore(&edev->table_lock, flags);
	spin_lock_irqsave(&send_cq->list_lock, flags);
	list_add_tail(&qp->sq.node, &send_cq->sqs);
	spin_unlock_irqrestore(&send_cq->list_lock, flags);
	spin_lock_irqsave(&recv_cq->list_lock, flags);
	list_add_tail(&qp->rq.node, &recv_cq->rqs);
	spin_unlock_irqrestore(&recv_cq->list_lock, flags);
}

static void ernic_qp_withdraw(struct ernic_qp *qp)
{
	struct ernic_dev *edev = qp->edev;
	struct ernic_cq *send_cq = to_ecq(qp->ibqp.send_cq);
	struct ernic_cq *recv_cq = to_ecq(qp->ibqp.recv_cq);
	unsigned long flags;

	spin_lock_irqsave(&send_cq->list_lock, flags);
	list_del(&qp->sq.node);
	spin_unlock_irqrestore(&send_cq->list_lock, flags);
	spin_lock_irqsave(&recv_cq->list_lock, flags);
	list_del(&qp->rq.node);
	spin_unlock_irqrestore(&recv_cq->list_lock, flags);
	spin_lock_irqsave(&edev->table_lock, flags);
	edev->qps[qp->qpn] = NULL;
	spin_unlock_irqrestore(&edev->table_lock, flags);
	ernic_qp_put(qp);
	wait_for_completion(&qp->unused);
}

int ernic_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	struct ernic_dev *edev = to_edev(ibqp->device);
	struct ernic_qp *qp = to_eqp(ibqp);
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	err = ernic_check_init(edev, init, udata);
	if (err)
		return err;
	ernic_qp_init(qp, edev, udata);
	qp->sig_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	err = ernic_qpn_alloc(edev, init->qp_type == IB_QPT_GSI);
	if (err < 0)
		return err;
	qp->qpn = err;
	err = ernic_sq_create(qp, &init->cap);
	if (err)
		goto err_free;
	err = ernic_rq_create(qp, &init->cap);
	if (err)
		goto err_free;
	err = ernic_records_reserve(edev, qp->rq.depth);
	if (err)
		goto err_free;
	init->cap.max_send_wr = qp->sq.max_wr;
	init->cap.max_recv_wr = qp->rq.max_wr;
	init->cap.max_send_sge = qp->max_sge;
	init->cap.max_recv_sge = qp->max_recv_sge;
	init->cap.max_inline_data = ERNIC_MAX_INLINE;
	qp->attr.cap = init->cap;
	ibqp->qp_num = qp->qpn;
	ernic_qp_reset_queues(qp);
	ernic_qp_publish(qp);
	return 0;

err_free:
	ernic_queues_free(qp);
	ida_free(&edev->qpn_ida, qp->qpn);
	return err;
}

int ernic_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct ernic_qp *qp = to_eqp(ibqp);
	struct ernic_dev *edev = qp->edev;
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	mutex_lock(&qp->mutex);
	ernic_qp_stop(qp);
	mutex_unlock(&qp->mutex);
	ernic_qp_withdraw(qp);
	/* Nobody finds the QP, so nobody queues it again. */
	cancel_work_sync(&qp->error_work);
	ernic_cq_raise_lost(to_ecq(ibqp->send_cq));
	ernic_cq_raise_lost(to_ecq(ibqp->recv_cq));
	ernic_cq_purge(to_ecq(ibqp->send_cq), ibqp);
	ernic_cq_purge(to_ecq(ibqp->recv_cq), ibqp);
	ernic_records_release(edev, qp->rq.depth);
	ernic_queues_free(qp);
	ida_free(&edev->qpn_ida, qp->qpn);
	return 0;
}

int ernic_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_qp_init_attr *init)
{
	struct ernic_qp *qp = to_eqp(ibqp);

	mutex_lock(&qp->mutex);
	ernic_qp_settle(qp);
	*attr = qp->attr;
	attr->qp_state = qp->state;
	attr->cur_qp_state = qp->state;
	mutex_unlock(&qp->mutex);
	init->cap = attr->cap;
	init->sq_sig_type = qp->sig_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	init->qp_type = ibqp->qp_type;
	init->qp_context = ibqp->qp_context;
	init->event_handler = ibqp->event_handler;
	init->send_cq = ibqp->send_cq;
	init->recv_cq = ibqp->recv_cq;
	return 0;
}
