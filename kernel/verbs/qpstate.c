// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: states and attributes of queue pairs.
 *
 *	         RST2INIT      INIT2RTR     RTR2RTS      RTS2SQD
 *	RESET ------------> INIT ------> RTR ------> RTS <------> SQD
 *	  ^                 |  ^                    ^  |         |  ^
 *	  |           INIT2INIT                     |  RTS2RTS   SQD2SQD
 *	  | ERR2RST                       SQERR2RTS |
 *	any                                 SQE (UC, UD, raw, by the device)
 *
 *	any but RESET -- 2ERR --> ERR
 */

#include "verbs/verbs.h"

#define HGHCA_QPN_MAX		0xffffff
#define HGHCA_ACK_TIMEOUT_MAX	31
#define HGHCA_RETRY_MAX		7
#define HGHCA_RNR_TIMER_MAX	31

/**
 * struct hghca_qp_step - a transition with a mailbox
 * @op: the command
 * @from: HGHCA_QP_STATES_*
 * @to: enum hghca_qp_state
 */
struct hghca_qp_step {
	u16 op;
	u8 from;
	u8 to;
};

static const struct hghca_qp_step hghca_qp_steps[] = {
#define HGHCA_QP_STEP(name, from, to) \
	{ HGHCA_CMD_##name##_QPEE, HGHCA_QP_STATES_##from, HGHCA_QP_STATE_##to },
	HGHCA_QP_TRANSITIONS(HGHCA_QP_STEP)
#undef HGHCA_QP_STEP
};

/**
 * struct hghca_qp_rule - the attributes of a transition
 * @op: the command
 * @service: enum hghca_qp_st
 * @required: attributes that the device requires, even if the verb does not set them
 * @optional: attributes that the device accepts
 */
struct hghca_qp_rule {
	u16 op;
	u8 service;
	u32 required;
	u32 optional;
};

static const struct hghca_qp_rule hghca_qp_rules[] = {
#define HGHCA_QP_RULE(transition, service, required, optional) \
	{ HGHCA_CMD_##transition##_QPEE, HGHCA_QP_ST_##service, required, optional },
	HGHCA_QP_RULES(HGHCA_QP_RULE, HGHCA_QP_ATTR_OF)
#undef HGHCA_QP_RULE
};

static const u8 hghca_qp_states[] = {
	[IB_QPS_RESET]	= HGHCA_QP_STATE_RST,
	[IB_QPS_INIT]	= HGHCA_QP_STATE_INIT,
	[IB_QPS_RTR]	= HGHCA_QP_STATE_RTR,
	[IB_QPS_RTS]	= HGHCA_QP_STATE_RTS,
	[IB_QPS_SQD]	= HGHCA_QP_STATE_SQD,
	[IB_QPS_SQE]	= HGHCA_QP_STATE_SQE,
	[IB_QPS_ERR]	= HGHCA_QP_STATE_ERR,
};

/* Verbs attributes and those of the device. */
static const struct {
	u32 verbs;
	u32 device;
} hghca_qp_attrs[] = {
#define HGHCA_QP_ATTR_ROW(name, bit) { IB_QP_##name, HGHCA_QP_ATTR_##name },
	HGHCA_QP_ATTRIBUTES(HGHCA_QP_ATTR_ROW)
#undef HGHCA_QP_ATTR_ROW
};

/* The command implies the state, and limits that a device cannot be told are those it has. */
static u32 hghca_qp_attrs_from_ib(const struct hghca_limits *limits, int attr_mask)
{
	u32 attrs = 0;
	int i;

	attr_mask &= ~IB_QP_STATE;
	if (!(limits->caps & HGHCA_CAP_QP_LIMITS))
		attr_mask &= ~(IB_QP_MAX_QP_RD_ATOMIC | IB_QP_MAX_DEST_RD_ATOMIC);
	for (i = 0; i < ARRAY_SIZE(hghca_qp_attrs); i++)
		if (attr_mask & hghca_qp_attrs[i].verbs)
			attrs |= hghca_qp_attrs[i].device;
	return attrs;
}

/**
 * hghca_qp_service - the service of a QP
 * @hqp: the QP
 *
 * Return: enum hghca_qp_st.
 */
u8 hghca_qp_service(const struct hghca_qp *hqp)
{
	switch (hqp->ibqp.qp_type) {
	case IB_QPT_RC:
		return HGHCA_QP_ST_RC;
	case IB_QPT_UC:
		return HGHCA_QP_ST_UC;
	case IB_QPT_XRC_INI:
	case IB_QPT_XRC_TGT:
		return HGHCA_QP_ST_XRC;
	case IB_QPT_RAW_PACKET:
		return HGHCA_QP_ST_RAW;
	default:
		return HGHCA_QP_ST_UD;
	}
}

static const struct hghca_qp_step *hghca_qp_find_step(enum ib_qp_state from, enum ib_qp_state to)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(hghca_qp_steps); i++)
		if (hghca_qp_steps[i].from & BIT(hghca_qp_states[from]) &&
		    hghca_qp_steps[i].to == hghca_qp_states[to])
			return &hghca_qp_steps[i];
	return NULL;
}

static struct hghca_qp_rule hghca_qp_rule_of(u16 op, u8 service)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(hghca_qp_rules); i++)
		if (hghca_qp_rules[i].op == op && hghca_qp_rules[i].service == service)
			return hghca_qp_rules[i];
	return (struct hghca_qp_rule){};
}

/* ------------------------------------------------------------------ */
/* From attributes to a context                                         */

static bool hghca_qp_av_is_valid(const struct hghca_limits *limits,
				 const struct rdma_ah_attr *ah)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(ah);

	return ah->type == RDMA_AH_ATTR_TYPE_ROCE &&
	       rdma_ah_get_ah_flags(ah) & IB_AH_GRH &&
	       rdma_ah_get_port_num(ah) == HGHCA_PORT_NUM &&
	       hghca_is_static_rate(rdma_ah_get_static_rate(ah)) &&
	       grh->sgid_index < limits->num_gids;
}

/* Check attributes against the limits; attr_mask is valid for the transition. */
static bool hghca_qp_attrs_are_valid(const struct hghca_limits *limits,
				     const struct ib_qp_attr *attr, int mask)
{
	return !((mask & IB_QP_PORT && attr->port_num != HGHCA_PORT_NUM) ||
		 (mask & IB_QP_PKEY_INDEX && attr->pkey_index) ||
		 (mask & IB_QP_AV && !hghca_qp_av_is_valid(limits, &attr->ah_attr)) ||
		 (mask & IB_QP_PATH_MTU && (attr->path_mtu < IB_MTU_256 ||
					    attr->path_mtu > limits->max_mtu)) ||
		 (mask & IB_QP_TIMEOUT && attr->timeout > HGHCA_ACK_TIMEOUT_MAX) ||
		 (mask & IB_QP_RETRY_CNT && attr->retry_cnt > HGHCA_RETRY_MAX) ||
		 (mask & IB_QP_RNR_RETRY && attr->rnr_retry > HGHCA_RETRY_MAX) ||
		 (mask & IB_QP_MIN_RNR_TIMER &&
		  attr->min_rnr_timer > HGHCA_RNR_TIMER_MAX) ||
		 (mask & IB_QP_MAX_QP_RD_ATOMIC &&
		  attr->max_rd_atomic > limits->max_rd_atomic) ||
		 (mask & IB_QP_MAX_DEST_RD_ATOMIC &&
		  attr->max_dest_rd_atomic > limits->max_dest_rd_atomic) ||
		 (mask & IB_QP_DEST_QPN && attr->dest_qp_num > HGHCA_QPN_MAX) ||
		 (mask & IB_QP_PATH_MIG_STATE &&
		  attr->path_mig_state != IB_MIG_MIGRATED));
}

static void hghca_qpc_set_av(struct hghca_qpc *qpc, const struct rdma_ah_attr *ah)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(ah);
	const u8 *dmac = ah->roce.dmac;

	qpc->g_mylmc = HGHCA_QPC_GRH;
	qpc->mgid_index = grh->sgid_index;
	qpc->static_rate = rdma_ah_get_static_rate(ah);
	qpc->hop_limit = grh->hop_limit;
	qpc->sl_tclass_flowlabel =
		cpu_to_be32(FIELD_PREP(HGHCA_QPC_SL_MASK, rdma_ah_get_sl(ah)) |
			    FIELD_PREP(HGHCA_QPC_TCLASS_MASK, grh->traffic_class) |
			    FIELD_PREP(HGHCA_QPC_FLOWLABEL_MASK, grh->flow_label));
	memcpy(qpc->rgid, grh->dgid.raw, sizeof(qpc->rgid));
	qpc->dmac_h = cpu_to_be32(get_unaligned_be32(dmac));
	qpc->dlid = cpu_to_be16(get_unaligned_be16(dmac + 4));
}

/* Remote access rights of the QP.  Only MRs have local access rights. */
static u32 hghca_qp_access_from_ib(int access)
{
	return (access & IB_ACCESS_REMOTE_WRITE ? HGHCA_ACCESS_REMOTE_WRITE : 0) |
	       (access & IB_ACCESS_REMOTE_READ ? HGHCA_ACCESS_REMOTE_READ : 0) |
	       (access & IB_ACCESS_REMOTE_ATOMIC ? HGHCA_ACCESS_REMOTE_ATOMIC : 0) |
	       (access & IB_ACCESS_FLUSH_GLOBAL ? HGHCA_ACCESS_FLUSH_GLOBAL : 0);
}

static void hghca_qpc_set_limits(struct hghca_qpc *qpc, const struct ib_qp_attr *attr, int mask)
{
	__be32 *limits = &qpc->limits;

	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		be32p_replace_bits(limits, attr->max_rd_atomic, HGHCA_QPC_LIMITS_RD_ATOMIC);
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		be32p_replace_bits(limits, attr->max_dest_rd_atomic,
				   HGHCA_QPC_LIMITS_DEST_RD_ATOMIC);
	if (mask & IB_QP_EN_SQD_ASYNC_NOTIFY)
		be32p_replace_bits(limits, !!attr->en_sqd_async_notify,
				   HGHCA_QPC_LIMITS_SQD_NOTIFY);
	if (mask & IB_QP_RETRY_CNT)
		be32p_replace_bits(limits, attr->retry_cnt, HGHCA_QPC_LIMITS_RETRY_CNT);
	if (mask & IB_QP_ACCESS_FLAGS)
		be32p_replace_bits(limits, hghca_qp_access_from_ib(attr->qp_access_flags),
				   HGHCA_QPC_LIMITS_ACCESS);
}

/* The path in the fields that need no table: a device without a GID table reads only these. */
static int hghca_qpc_set_base_av(struct hghca_qpc *qpc, const struct rdma_ah_attr *ah)
{
	struct hghca_path path;
	int ret;

	ret = hghca_path_resolve(ah, &path);
	if (ret)
		return ret;
	qpc->slid = cpu_to_be16(get_unaligned_be16(path.smac + 4));
	qpc->smac_h = cpu_to_be32(get_unaligned_be32(path.smac));
	qpc->sip = path.sip;
	qpc->dip = path.dip;
	return 0;
}

static void hghca_qpc_set_attrs(struct hghca_qpc *qpc, const struct ib_qp_attr *attr, int mask)
{
	if (mask & IB_QP_CUR_STATE)
		be32p_replace_bits(&qpc->flags, hghca_qp_states[attr->cur_qp_state],
				   HGHCA_QPC_STATE_MASK);
	if (mask & IB_QP_PKEY_INDEX)
		be32p_replace_bits(&qpc->port_pkey, attr->pkey_index,
				   HGHCA_QPC_PKEY_INDEX_MASK);
	if (mask & IB_QP_PORT)
		be32p_replace_bits(&qpc->port_pkey, attr->port_num, HGHCA_QPC_PORT_MASK);
	if (mask & IB_QP_QKEY)
		qpc->qkey = cpu_to_be32(attr->qkey);
	if (mask & IB_QP_AV)
		hghca_qpc_set_av(qpc, &attr->ah_attr);
	if (mask & IB_QP_PATH_MTU)
		u8p_replace_bits(&qpc->mtu_msgmax, attr->path_mtu, HGHCA_QPC_MTU_MASK);
	if (mask & IB_QP_TIMEOUT)
		qpc->ackto = attr->timeout;
	if (mask & IB_QP_RNR_RETRY)
		qpc->rnr_retry = attr->rnr_retry;
	if (mask & IB_QP_RQ_PSN)
		be32p_replace_bits(&qpc->rnr_nextrecvpsn, attr->rq_psn, HGHCA_QPC_PSN_MASK);
	if (mask & IB_QP_MIN_RNR_TIMER)
		be32p_replace_bits(&qpc->rnr_nextrecvpsn, attr->min_rnr_timer,
				   HGHCA_QPC_RNR_TIMER_MASK);
	if (mask & IB_QP_SQ_PSN)
		qpc->next_send_psn = cpu_to_be32(attr->sq_psn & HGHCA_QPC_PSN_MASK);
	if (mask & IB_QP_DEST_QPN)
		qpc->remote_qpn = cpu_to_be32(attr->dest_qp_num);
	hghca_qpc_set_limits(qpc, attr, mask);
}

/*
 * A datagram is one packet, which must fit the MTU of the link at the creation of the
 * QP. The device accepts this MTU only in RST2INIT.
 */
static enum ib_mtu hghca_qp_datagram_mtu(struct hghca_dev *hdev)
{
	struct net_device *netdev = hghca_netdev_get(hdev);
	enum ib_mtu mtu = IB_MTU_256;

	if (netdev)
		mtu = iboe_get_mtu(READ_ONCE(netdev->mtu));
	dev_put(netdev);
	return clamp(mtu, IB_MTU_256, hdev->limits.max_mtu);
}

/* ------------------------------------------------------------------ */
/* Transitions                                                          */

static int hghca_qp_direct_gsi(struct hghca_dev *hdev, struct hghca_qp *hqp)
{
	int ret;

	ret = hghca_cmd_conf_special_qp(hdev, HGHCA_SPECIAL_QP_GSI, hqp->hw.qpn);
	if (ret)
		ibdev_err(&hdev->ibdev, "failed to direct QP 1 to QP 0x%x: %d\n", hqp->hw.qpn, ret);
	hqp->special = !ret;
	return ret;
}

/* Must not fail, because another QP may get the number next. */
static void hghca_qp_withdraw_gsi(struct hghca_dev *hdev, struct hghca_qp *hqp)
{
	int ret;

	ret = hghca_cmd_conf_special_qp(hdev, HGHCA_SPECIAL_QP_GSI, 0);
	if (ret) {
		ibdev_err(&hdev->ibdev, "failed to withdraw QP 1 from QP 0x%x: %d\n", hqp->hw.qpn,
			  ret);
		hghca_dev_fail(hdev, "failed to withdraw QP 1");
	}
	hqp->special = false;
}

/**
 * hghca_qp_reset - move a QP from any state to RESET
 * @hqp: the QP; its lock is held
 *
 * Its completions are dropped and its queues are emptied.  A user empties its own
 * queues.
 */
void hghca_qp_reset(struct hghca_qp *hqp)
{
	struct hghca_dev *hdev = to_hdev(hqp->ibqp.device);
	int ret;

	lockdep_assert_held(&hqp->lock);

	if (hqp->special)
		hghca_qp_withdraw_gsi(hdev, hqp);
	if (hqp->state != IB_QPS_RESET) {
		ret = hghca_cmd_modify_qp(hdev, HGHCA_CMD_ERR2RST_QPEE, hqp->hw.qpn, NULL);
		if (ret) {
			ibdev_err(&hdev->ibdev, "failed to reset QP 0x%x: %d\n",
				  hqp->hw.qpn, ret);
			/* Its memory may be freed next. The device must not use it. */
			hghca_dev_fail(hdev, "failed to reset a QP");
		}
	}
	WRITE_ONCE(hqp->state, IB_QPS_RESET);
	if (hqp->user)
		return;

	/* Posters see RESET from here on. */
	spin_lock_irq(&hqp->sq.lock);
	spin_unlock_irq(&hqp->sq.lock);
	spin_lock_irq(&hqp->rq.lock);
	hqp->flush_recv = false;
	spin_unlock_irq(&hqp->rq.lock);
	hghca_cq_purge(to_hcq(hqp->ibqp.send_cq), hqp);
	hghca_cq_purge(to_hcq(hqp->ibqp.recv_cq), hqp);
	/* The queues are idle: no posting and no completion. */
	hqp->sq.head = 0;
	hqp->sq.tail = 0;
	hqp->rq.head = 0;
	hqp->rq.tail = 0;
	*hqp->dbr.record = 0;
	if (hqp->rq.spare)
		hghca_wq_clear(&hqp->rq);
}

/**
 * hghca_qp_event - handle an asynchronous event of a QP
 * @hwqp: the QP
 * @type: HGHCA_EVENT_*
 *
 * Context: interrupt; or process, for a QP that moves to ERR on a device that was given up.
 */
void hghca_qp_event(struct hghca_hwqp *hwqp, u8 type)
{
	struct hghca_qp *hqp = container_of(hwqp, struct hghca_qp, hw);
	struct ib_qp *ibqp = &hqp->ibqp;
	struct ib_event event = {
		.device = ibqp->device,
		.element.qp = ibqp,
	};
	bool in_error = true;

	switch (type) {
	case HGHCA_EVENT_COMM_EST:
		event.event = IB_EVENT_COMM_EST;
		in_error = false;
		break;
	case HGHCA_EVENT_SQ_DRAINED:
		event.event = IB_EVENT_SQ_DRAINED;
		in_error = false;
		break;
	case HGHCA_EVENT_WQ_CATAS_ERROR:
		event.event = IB_EVENT_QP_FATAL;
		break;
	case HGHCA_EVENT_WQ_INVAL_REQ_ERROR:
		event.event = IB_EVENT_QP_REQ_ERR;
		break;
	case HGHCA_EVENT_WQ_ACCESS_ERROR:
		event.event = IB_EVENT_QP_ACCESS_ERR;
		break;
	case HGHCA_EVENT_SRQ_QP_LAST_WQE:
		event.event = IB_EVENT_QP_LAST_WQE_REACHED;
		break;
	default:
		ibdev_err_ratelimited(ibqp->device, "QP 0x%x: unknown event 0x%x\n",
				      hwqp->qpn, type);
		return;
	}

	if (in_error && !hqp->user)
		hghca_qp_flush(hqp);
	if (ibqp->event_handler)
		ibqp->event_handler(&event, ibqp->qp_context);
}

/*
 * From any state except RESET.  Must not fail, because outstanding requests must complete.
 * On a device that was given up, the poller flushes the requests.
 */
static void hghca_qp_to_error(struct hghca_qp *hqp)
{
	struct hghca_dev *hdev = to_hdev(hqp->ibqp.device);
	int ret;

	ret = hghca_cmd_modify_qp(hdev, HGHCA_CMD_2ERR_QPEE, hqp->hw.qpn, NULL);
	if (ret) {
		ibdev_err(&hdev->ibdev, "failed to move QP 0x%x to ERR: %d\n",
			  hqp->hw.qpn, ret);
		hghca_dev_fail(hdev, "failed to move a QP to ERR");
	}
	WRITE_ONCE(hqp->state, IB_QPS_ERR);
	if (!hqp->user)
		hghca_qp_flush(hqp);
	/* It consumes no more WQEs of SRQs.  ULPs wait for this event to know that. */
	if ((hqp->ibqp.srq || hqp->ibqp.qp_type == IB_QPT_XRC_TGT) && hghca_dev_has_failed(hdev))
		hghca_qp_event(&hqp->hw, HGHCA_EVENT_SRQ_QP_LAST_WQE);
}

static const char * const hghca_state_names[] = {
	[IB_QPS_RESET] = "RESET",
	[IB_QPS_INIT] = "INIT",
	[IB_QPS_RTR] = "RTR",
	[IB_QPS_RTS] = "RTS",
	[IB_QPS_SQD] = "SQD",
	[IB_QPS_SQE] = "SQE",
	[IB_QPS_ERR] = "ERR",
};

static int hghca_qp_step(struct hghca_qp *hqp, const struct hghca_qp_step *step,
			 const struct ib_qp_attr *attr, int attr_mask, enum ib_qp_state to)
{
	struct hghca_dev *hdev = to_hdev(hqp->ibqp.device);
	u8 service = hghca_qp_service(hqp);
	struct hghca_qp_rule rule = hghca_qp_rule_of(step->op, service);
	struct hghca_qpc qpc = hqp->qpc;
	struct hghca_qpc sent;
	u32 attrs = hghca_qp_attrs_from_ib(&hdev->limits, attr_mask);
	int ret;

	/* hqp->qpc has the attributes that the device requires and the verb does not set. */
	attrs |= rule.required;
	if (attrs & ~(rule.required | rule.optional)) {
		ibdev_dbg(&hdev->ibdev, "QP 0x%x: attributes 0x%x not taken now\n",
			  hqp->hw.qpn, attrs);
		return -EINVAL;
	}

	hghca_qpc_set_attrs(&qpc, attr, attr_mask);
	if (attr_mask & IB_QP_AV && !(hdev->limits.caps & HGHCA_CAP_GID_TABLE)) {
		ret = hghca_qpc_set_base_av(&qpc, &attr->ah_attr);
		if (ret)
			return ret;
	}
	if (step->op == HGHCA_CMD_RST2INIT_QPEE && service == HGHCA_QP_ST_UD)
		u8p_replace_bits(&qpc.mtu_msgmax, hghca_qp_datagram_mtu(hdev),
				 HGHCA_QPC_MTU_MASK);
	qpc.opt_param_mask = cpu_to_be32(attrs);
	sent = qpc;
	if (!(hdev->limits.caps & HGHCA_CAP_QP_LIMITS))
		sent.limits = 0;
	if (!(hdev->limits.caps & HGHCA_CAP_GID_TABLE))
		sent.g_mylmc = 0;
	ret = hghca_cmd_modify_qp(hdev, step->op, hqp->hw.qpn, &sent);
	if (ret) {
		ibdev_dbg(&hdev->ibdev, "failed to modify QP 0x%x %s to %s: %d\n",
			  hqp->hw.qpn, hghca_state_names[hqp->state], hghca_state_names[to], ret);
		return ret;
	}

	hqp->qpc = qpc;
	WRITE_ONCE(hqp->state, to);
	if (hqp->ibqp.qp_type != IB_QPT_GSI || hqp->special)
		return 0;

	ret = hghca_qp_direct_gsi(hdev, hqp);
	/* Without CONF_SPECIAL_QP the QP receives no packets. */
	if (ret)
		hghca_qp_reset(hqp);
	return ret;
}

static int hghca_modify_qp_locked(struct hghca_qp *hqp, const struct ib_qp_attr *attr, int mask)
{
	struct ib_device *ibdev = hqp->ibqp.device;
	enum ib_qp_state from = mask & IB_QP_CUR_STATE ? attr->cur_qp_state : hqp->state;
	enum ib_qp_state to = mask & IB_QP_STATE ? attr->qp_state : from;
	const struct hghca_qp_step *step;

	if (!ib_modify_qp_is_ok(from, to, hqp->ibqp.qp_type, mask) ||
	    !hghca_qp_attrs_are_valid(&to_hdev(ibdev)->limits, attr, mask)) {
		ibdev_dbg(ibdev, "QP 0x%x: %d to %d with attributes 0x%x is not possible\n",
			  hqp->hw.qpn, from, to, mask);
		return -EINVAL;
	}

	if (to == IB_QPS_RESET) {
		hghca_qp_reset(hqp);
		return 0;
	}
	if (to == IB_QPS_ERR) {
		hghca_qp_to_error(hqp);
		return 0;
	}

	step = hghca_qp_find_step(from, to);
	if (!step)
		return -EINVAL;
	return hghca_qp_step(hqp, step, attr, mask, to);
}

/**
 * hghca_modify_qp - change state and attributes of a QP
 * @ibqp: the QP
 * @attr: new values
 * @attr_mask: IB_QP_*: attributes to set
 * @udata: of a user, otherwise NULL
 *
 * Return: 0, -EINVAL for an invalid transition or value, -EOPNOTSUPP for an attribute
 * that the device lacks and for a QP with a table of receive work queues, which has no
 * state, or an error of the command.
 */
int hghca_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int attr_mask,
		    struct ib_udata *udata)
{
	struct hghca_qp *hqp = to_hqp(ibqp);
	int ret;

	ret = ib_no_udata_io(udata);
	if (ret)
		return ret;
	if (attr_mask & ~IB_QP_ATTR_STANDARD_BITS ||
	    attr_mask & (IB_QP_ALT_PATH | IB_QP_CAP) || ibqp->rwq_ind_tbl)
		return -EOPNOTSUPP;

	mutex_lock(&hqp->lock);
	ret = hghca_modify_qp_locked(hqp, attr, attr_mask);
	mutex_unlock(&hqp->lock);
	return ret;
}

/* ------------------------------------------------------------------ */
/* From a context to attributes                                         */

static int hghca_qp_state_to_ib(u32 state)
{
	int ib;

	for (ib = 0; ib < ARRAY_SIZE(hghca_qp_states); ib++)
		if (hghca_qp_states[ib] == state)
			return ib;
	return -EIO;
}

static int hghca_qp_access_to_ib(u32 access)
{
	return (access & HGHCA_ACCESS_REMOTE_WRITE ? IB_ACCESS_REMOTE_WRITE : 0) |
	       (access & HGHCA_ACCESS_REMOTE_READ ? IB_ACCESS_REMOTE_READ : 0) |
	       (access & HGHCA_ACCESS_REMOTE_ATOMIC ? IB_ACCESS_REMOTE_ATOMIC : 0) |
	       (access & HGHCA_ACCESS_FLUSH_GLOBAL ? IB_ACCESS_FLUSH_GLOBAL : 0);
}

static void hghca_qpc_get_av(const struct hghca_qpc *qpc, struct rdma_ah_attr *ah)
{
	u32 class = be32_to_cpu(qpc->sl_tclass_flowlabel);

	if (!(qpc->g_mylmc & HGHCA_QPC_GRH))
		return;
	ah->type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_port_num(ah, HGHCA_PORT_NUM);
	rdma_ah_set_sl(ah, FIELD_GET(HGHCA_QPC_SL_MASK, class));
	rdma_ah_set_static_rate(ah, qpc->static_rate);
	rdma_ah_set_grh(ah, NULL, FIELD_GET(HGHCA_QPC_FLOWLABEL_MASK, class),
			qpc->mgid_index, qpc->hop_limit,
			FIELD_GET(HGHCA_QPC_TCLASS_MASK, class));
	rdma_ah_set_dgid_raw(ah, (void *)qpc->rgid);
	put_unaligned_be32(be32_to_cpu(qpc->dmac_h), ah->roce.dmac);
	put_unaligned_be16(be16_to_cpu(qpc->dlid), ah->roce.dmac + 4);
}

static void hghca_qpc_get_attrs(const struct hghca_qpc *qpc, struct ib_qp_attr *attr)
{
	__be32 limits = qpc->limits;

	attr->path_mtu = u8_get_bits(qpc->mtu_msgmax, HGHCA_QPC_MTU_MASK);
	attr->path_mig_state = IB_MIG_MIGRATED;
	attr->qkey = be32_to_cpu(qpc->qkey);
	attr->rq_psn = be32_get_bits(qpc->rnr_nextrecvpsn, HGHCA_QPC_PSN_MASK);
	attr->min_rnr_timer = be32_get_bits(qpc->rnr_nextrecvpsn, HGHCA_QPC_RNR_TIMER_MASK);
	attr->sq_psn = be32_to_cpu(qpc->next_send_psn) & HGHCA_QPC_PSN_MASK;
	attr->dest_qp_num = be32_to_cpu(qpc->remote_qpn) & HGHCA_QPN_MAX;
	attr->pkey_index = be32_get_bits(qpc->port_pkey, HGHCA_QPC_PKEY_INDEX_MASK);
	attr->port_num = be32_get_bits(qpc->port_pkey, HGHCA_QPC_PORT_MASK);
	attr->timeout = qpc->ackto;
	attr->rnr_retry = qpc->rnr_retry;
	attr->retry_cnt = be32_get_bits(limits, HGHCA_QPC_LIMITS_RETRY_CNT);
	attr->max_rd_atomic = be32_get_bits(limits, HGHCA_QPC_LIMITS_RD_ATOMIC);
	attr->max_dest_rd_atomic = be32_get_bits(limits, HGHCA_QPC_LIMITS_DEST_RD_ATOMIC);
	attr->qp_access_flags =
		hghca_qp_access_to_ib(be32_get_bits(limits, HGHCA_QPC_LIMITS_ACCESS));
	attr->sq_draining = be32_get_bits(qpc->flags, HGHCA_QPC_SQ_DRAINING);
	hghca_qpc_get_av(qpc, &attr->ah_attr);
}

/* Fields that the device lacks have the values that were set. */
static void hghca_qpc_add_lacking(const struct hghca_limits *limits, const struct hghca_qpc *set,
				  struct hghca_qpc *qpc)
{
	if (!(limits->caps & HGHCA_CAP_QP_LIMITS))
		qpc->limits = set->limits;
	if (!(limits->caps & HGHCA_CAP_GID_TABLE)) {
		qpc->g_mylmc = set->g_mylmc;
		qpc->mgid_index = set->mgid_index;
		memcpy(qpc->rgid, set->rgid, sizeof(qpc->rgid));
	}
}

static int hghca_query_qp_locked(struct hghca_qp *hqp, struct ib_qp_attr *attr)
{
	struct hghca_qpc qpc;
	int ret;

	attr->qp_state = IB_QPS_RESET;
	if (hqp->state == IB_QPS_RESET)
		return 0;

	ret = hghca_cmd_query_qp(to_hdev(hqp->ibqp.device), hqp->hw.qpn, &qpc);
	if (ret)
		return ret;
	ret = hghca_qp_state_to_ib(be32_get_bits(qpc.flags, HGHCA_QPC_STATE_MASK));
	if (ret < 0)
		return ret;
	/* The device moves QPs to SQE and ERR by itself. */
	if (ret != IB_QPS_RESET)
		WRITE_ONCE(hqp->state, ret);
	if (ret == IB_QPS_ERR && !hqp->user)
		hghca_qp_flush(hqp);
	attr->qp_state = ret;
	hghca_qpc_add_lacking(&to_hdev(hqp->ibqp.device)->limits, &hqp->qpc, &qpc);
	hghca_qpc_get_attrs(&qpc, attr);
	return 0;
}

/**
 * hghca_query_qp - query the attributes of a QP
 * @ibqp: the QP
 * @attr: output: all attributes
 * @attr_mask: requested attributes
 * @init: output: attributes of its creation
 *
 * Return: 0, or an error of the command.
 */
int hghca_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int attr_mask,
		   struct ib_qp_init_attr *init)
{
	struct hghca_qp *hqp = to_hqp(ibqp);
	int ret;

	if (ibqp->rwq_ind_tbl) {
		hghca_query_rss_qp(ibqp, attr, init);
		return 0;
	}

	memset(attr, 0, sizeof(*attr));
	memset(init, 0, sizeof(*init));

	mutex_lock(&hqp->lock);
	ret = hghca_query_qp_locked(hqp, attr);
	mutex_unlock(&hqp->lock);
	if (ret)
		return ret;

	attr->cur_qp_state = attr->qp_state;
	attr->cap = hqp->cap;
	init->event_handler = ibqp->event_handler;
	init->qp_context = ibqp->qp_context;
	init->send_cq = ibqp->send_cq;
	init->recv_cq = ibqp->recv_cq;
	init->srq = ibqp->srq;
	init->qp_type = ibqp->qp_type;
	init->sq_sig_type = hqp->sq.room.signal_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	init->cap = hqp->cap;
	init->port_num = HGHCA_PORT_NUM;
	return 0;
}
