// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ERNIC and ETRNIC: states of queue pairs.
 *
 *	RESET, INIT	the hardware does not execute the QP; receives are noted
 *	RTR, RTS	it does: from RTR on it receives
 *	ERR		it does not any more, and all is flushed
 *
 * A QP of which the hardware tells that it is fatal becomes ERR by a work.
 */
#include <linux/etherdevice.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>
#include "ernic.h"

/* Both queues are empty, and no slot is free. */
void ernic_qp_reset_queues(struct ernic_qp *qp)
{
	struct ernic_sq *sq = &qp->sq;
	struct ernic_rq *rq = &qp->rq;
	/* The hardware keeps the receive index of QP 1. */
	u32 written = ernic_is_gsi(qp) ? qp->edev->gsi_slot : 0;
	unsigned long flags;

	spin_lock_irqsave(&sq->lock, flags);
	sq->posted = 0;
	sq->completed = 0;
	sq->retired = 0;
	sq->rung = 0;
	sq->reads = 0;
	sq->failed = false;
	sq->dead = false;
	*sq->doorbell = 0;
	spin_unlock_irqrestore(&sq->lock, flags);

	spin_lock_irqsave(&rq->lock, flags);
	rq->posted = 0;
	rq->completed = 0;
	rq->next_wqe = 0;
	rq->oldest_wqe = 0;
	rq->next_slot = written % rq->depth;
	rq->recorded = rq->next_slot;
	memset(rq->records, 0, rq->depth * sizeof(*rq->records));
	rq->given = rq->next_slot + 1;
	rq->failed = false;
	rq->dead = false;
	*(__le32 *)rq->door.cpu = cpu_to_le32(written);
	spin_unlock_irqrestore(&rq->lock, flags);
	qp->fatal = 0;
	qp->lost = false;
}

/* The hardware is done with the QP, and all completes.  Under the QP's mutex. */
void ernic_qp_stop(struct ernic_qp *qp)
{
	ernic_hw_disable_qp(qp);
	/* What it has told of the QP is not for the next one with its number. */
	ernic_take_errors(qp->edev);
	ernic_drop_records(qp->edev);
	ernic_flush(qp);
	WRITE_ONCE(qp->state, IB_QPS_ERR);
}

/* ------------------------------------------------------------------ */
/* Fatal errors                                                        */

static const struct {
	u16 fatal;
	enum ib_event_type event;
} ernic_events[] = {
	{ ERNIC_FATAL_SEQUENCE, IB_EVENT_QP_REQ_ERR },
	{ ERNIC_FATAL_LENGTH, IB_EVENT_QP_REQ_ERR },
	{ ERNIC_FATAL_SEQUENCE_LENGTH, IB_EVENT_QP_REQ_ERR },
	{ ERNIC_FATAL_OPCODE, IB_EVENT_QP_REQ_ERR },
	{ ERNIC_FATAL_ACCESS, IB_EVENT_QP_ACCESS_ERR },
	{ ERNIC_FATAL_MEMORY, IB_EVENT_QP_FATAL },
	{ ERNIC_FATAL_UNKNOWN, IB_EVENT_QP_FATAL },
};

/* What a send's completion does not tell raises an event. */
static void ernic_qp_raise(struct ernic_qp *qp)
{
	struct ib_event event = {
		.device = qp->ibqp.device,
		.element.qp = &qp->ibqp,
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(ernic_events); i++) {
		if (ernic_events[i].fatal != qp->fatal)
			continue;
		event.event = ernic_events[i].event;
		ibdev_dbg(&qp->edev->ibdev, "QP %u is fatal: code %#x\n", qp->qpn, qp->fatal);
		if (qp->ibqp.event_handler)
			qp->ibqp.event_handler(&event, qp->ibqp.qp_context);
	}
}

/*
 * A QP with a completion that tells of an error is in the error state.  It may have been
 * reset since.  Under the QP's mutex.
 */
void ernic_qp_settle(struct ernic_qp *qp)
{
	if (!qp->enabled || !(READ_ONCE(qp->fatal) || READ_ONCE(qp->sq.failed) ||
			      READ_ONCE(qp->rq.failed) || READ_ONCE(qp->lost)))
		return;
	ernic_qp_stop(qp);
	ernic_qp_raise(qp);
}

void ernic_qp_error_work(struct work_struct *work)
{
	struct ernic_qp *qp = container_of(work, struct ernic_qp, error_work);

	mutex_lock(&qp->mutex);
	ernic_qp_settle(qp);
	mutex_unlock(&qp->mutex);
	ernic_cq_raise_lost(to_ecq(qp->ibqp.send_cq));
	ernic_cq_raise_lost(to_ecq(qp->ibqp.recv_cq));
}

/* ------------------------------------------------------------------ */
/* Transitions                                                         */

static int ernic_check_attr(struct ernic_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	if (mask & IB_QP_PORT && attr->port_num != ERNIC_PORT)
		return -EINVAL;
	if (mask & IB_QP_PKEY_INDEX && attr->pkey_index)
		return -EINVAL;
	if (mask & IB_QP_PATH_MTU &&
	    (attr->path_mtu < IB_MTU_256 || attr->path_mtu > IB_MTU_4096))
		return -EINVAL;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > ERNIC_OUTSTANDING)
		return -EINVAL;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > ERNIC_OUTSTANDING)
		return -EINVAL;
	return mask & IB_QP_ALT_PATH ? -EOPNOTSUPP : 0;
}

static int ernic_check_path(struct ernic_qp *qp, const struct ib_qp_attr *attr)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(&attr->ah_attr);
	u16 vlan = 0xffff;
	u8 smac[ETH_ALEN];

	if (!(rdma_ah_get_ah_flags(&attr->ah_attr) & IB_AH_GRH) || !grh->sgid_attr)
		return -EINVAL;
	if (rdma_read_gid_l2_fields(grh->sgid_attr, &vlan, smac))
		return -EINVAL;
	return vlan == 0xffff ? 0 : -EOPNOTSUPP;
}

static void ernic_store_attr(struct ernic_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	struct ib_qp_attr *to = &qp->attr;

	if (mask & IB_QP_PORT)
		to->port_num = attr->port_num;
	if (mask & IB_QP_PKEY_INDEX)
		to->pkey_index = attr->pkey_index;
	if (mask & IB_QP_QKEY)
		to->qkey = attr->qkey;
	if (mask & IB_QP_ACCESS_FLAGS)
		to->qp_access_flags = attr->qp_access_flags;
	if (mask & IB_QP_PATH_MTU)
		to->path_mtu = attr->path_mtu;
	if (mask & IB_QP_DEST_QPN)
		to->dest_qp_num = attr->dest_qp_num;
	if (mask & IB_QP_RQ_PSN)
		to->rq_psn = attr->rq_psn & 0xffffff;
	if (mask & IB_QP_SQ_PSN)
		to->sq_psn = attr->sq_psn & 0xffffff;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		to->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		to->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IB_QP_TIMEOUT)
		to->timeout = attr->timeout & 0x1f;
	if (mask & IB_QP_RETRY_CNT)
		to->retry_cnt = attr->retry_cnt & 7;
	if (mask & IB_QP_RNR_RETRY)
		to->rnr_retry = attr->rnr_retry & 7;
	if (mask & IB_QP_MIN_RNR_TIMER)
		to->min_rnr_timer = attr->min_rnr_timer & 0x1f;
	if (mask & IB_QP_AV) {
		to->ah_attr = attr->ah_attr;
		/* ib_core keeps the reference to it. */
		to->ah_attr.grh.sgid_attr = NULL;
		ether_addr_copy(qp->dmac, attr->ah_attr.roce.dmac);
	}
}

static u32 ernic_qp_conf(const struct ernic_qp *qp, bool ipv6)
{
	u32 conf = ERNIC_QPCONF_RQ_INTERRUPT | ERNIC_QPCONF_CQ_INTERRUPT |
		   ERNIC_QPCONF_NO_HANDSHAKE | ERNIC_QPCONF_CQE |
		   FIELD_PREP(ERNIC_QPCONF_SLOT, qp->rq.slot / 256);

	if (ernic_is_gsi(qp))
		return conf;
	return conf | FIELD_PREP(ERNIC_QPCONF_PMTU, qp->attr.path_mtu - IB_MTU_256) |
	       (ipv6 ? ERNIC_QPCONF_IPV6 : 0);
}

static void ernic_write_timers(struct ernic_qp *qp)
{
	const struct ib_qp_attr *attr = &qp->attr;

	if (ernic_is_gsi(qp))
		return;
	ernic_qp_write(qp, ERNIC_TIMEOUTCONF,
		       FIELD_PREP(ERNIC_TIMEOUT_VALUE, attr->timeout) |
		       FIELD_PREP(ERNIC_TIMEOUT_RETRIES, attr->retry_cnt) |
		       FIELD_PREP(ERNIC_TIMEOUT_RNR_RETRIES, attr->rnr_retry) |
		       FIELD_PREP(ERNIC_TIMEOUT_RNR_TIMER, attr->min_rnr_timer));
}

/* Under the QP's mutex.  The attributes are stored. */
static void ernic_qp_change(struct ernic_qp *qp, const struct ib_qp_attr *attr, int mask,
			    enum ib_qp_state to)
{
	const struct ib_gid_attr *sgid = mask & IB_QP_AV ? attr->ah_attr.grh.sgid_attr : NULL;

	switch (to) {
	case IB_QPS_RESET:
		if (qp->state != IB_QPS_RESET) {
			ernic_qp_stop(qp);
			ernic_cq_purge(to_ecq(qp->ibqp.send_cq), &qp->ibqp);
			ernic_cq_purge(to_ecq(qp->ibqp.recv_cq), &qp->ibqp);
			ernic_qp_reset_queues(qp);
		}
		break;
	case IB_QPS_ERR:
		ernic_qp_stop(qp);
		break;
	case IB_QPS_RTR:
		qp->conf = ernic_qp_conf(qp, sgid && !ipv6_addr_v4mapped((const struct in6_addr *)
									 sgid->gid.raw));
		ernic_write_timers(qp);
		ernic_hw_enable_qp(qp);
		break;
	case IB_QPS_RTS:
		ernic_write_timers(qp);
		if (mask & IB_QP_SQ_PSN && !ernic_is_gsi(qp))
			ernic_qp_write(qp, ERNIC_SQPSN, qp->attr.sq_psn);
		break;
	default:
		break;
	}
	if (mask & IB_QP_ACCESS_FLAGS && qp->enabled)
		ernic_write_pd(qp);
	WRITE_ONCE(qp->state, to);
}

int ernic_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		    struct ib_udata *udata)
{
	struct ernic_qp *qp = to_eqp(ibqp);
	enum ib_qp_state from, to;
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	if (mask & ~IB_QP_ATTR_STANDARD_BITS)
		return -EOPNOTSUPP;
	mutex_lock(&qp->mutex);
	ernic_qp_settle(qp);
	from = mask & IB_QP_CUR_STATE ? attr->cur_qp_state : qp->state;
	to = mask & IB_QP_STATE ? attr->qp_state : qp->state;
	err = -EINVAL;
	if (from != qp->state || to == IB_QPS_SQD || to == IB_QPS_SQE ||
	    !ib_modify_qp_is_ok(from, to, ibqp->qp_type, mask))
		goto out;
	err = ernic_check_attr(qp, attr, mask);
	if (!err && mask & IB_QP_AV)
		err = ernic_check_path(qp, attr);
	if (err)
		goto out;
	ernic_store_attr(qp, attr, mask);
	ernic_qp_change(qp, attr, mask, to);
out:
	mutex_unlock(&qp->mutex);
	if (err)
		ibdev_dbg(ibqp->device, "failed to modify QP %u: %d\n", qp->qpn, err);
	return err;
}
