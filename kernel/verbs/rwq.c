// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: receive work queues, tables of them, and the QPs that distribute
 * frames over a table (RSS).
 *
 * In the device, a receive work queue in RDY or ERR is a raw packet QP without a send
 * queue (document 4.25).  In RESET the device has only its number.  The device does not
 * know tables.  A QP with a table is an RSS group: it has neither queues nor state, and
 * its number is not used by another QP.
 *
 *	RESET ---> RDY ---> ERR (also by the device)
 *	  ^         |        |
 *	  +---------+--------+
 *
 * ib_core keeps a queue while a table contains it, a table while a QP uses it, and such a
 * QP while it has flows.
 */
#include <linux/bits.h>
#include <linux/slab.h>

#include "verbs/verbs.h"

static struct hghca_rwq *to_hrwq(struct ib_wq *ibwq)
{
	return container_of(ibwq, struct hghca_rwq, ibwq);
}

/**
 * hghca_rwq_event - handle an asynchronous event of a receive work queue
 * @hwqp: the part that events use
 * @type: HGHCA_EVENT_*
 *
 * Interrupt context.
 */
void hghca_rwq_event(struct hghca_hwqp *hwqp, u8 type)
{
	struct ib_wq *ibwq = &container_of(hwqp, struct hghca_rwq, hw)->ibwq;
	struct ib_event event = {
		.device = ibwq->device,
		.element.wq = ibwq,
		.event = IB_EVENT_WQ_FATAL,
	};

	/* In RESET the device has no QP, and ib_core may not have completed the creation. */
	if (READ_ONCE(ibwq->state) == IB_WQS_RESET)
		return;
	if (type != HGHCA_EVENT_WQ_CATAS_ERROR) {
		ibdev_err_ratelimited(ibwq->device, "WQ 0x%x: unknown event 0x%x\n",
				      hwqp->qpn, type);
		return;
	}
	if (ibwq->event_handler)
		ibwq->event_handler(&event, ibwq->wq_context);
}

/* ------------------------------------------------------------------ */
/* States                                                               */

/* Initialize the context of an empty queue. */
static void hghca_rwq_init_context(struct hghca_dev *hdev, const struct hghca_rwq *hrwq,
				   struct hghca_qpc *qpc)
{
	u32 cqn = to_hcq(hrwq->ibwq.cq)->hw.cqn;
	const struct hghca_qpc_attr attr = {
		.service = HGHCA_QP_ST_RAW,
		.log_max_msg = hdev->limits.log_max_msg,
		.qpn = hrwq->hw.qpn,
		.pdn = to_hpd(hrwq->ibwq.pd)->pdn,
		.uar = hrwq->uctx->uar.index,
		.send = {
			.cqn = cqn,
			.log_stride = HGHCA_WQE_MIN_STRIDE_LOG,
		},
		.recv = {
			.cqn = cqn,
			.key = hrwq->rq.queue.mr.key,
			.bytes = hghca_wq_bytes(&hrwq->rq),
			.log_stride = hrwq->rq.log_stride,
		},
		.dbr = hrwq->dbr.dma,
	};

	hghca_qpc_init(qpc, &attr);
	qpc->opt_param_mask = cpu_to_be32(HGHCA_QP_ATTR_PORT);
}

/* From any state.  Must not fail. */
static void hghca_rwq_reset(struct hghca_rwq *hrwq)
{
	struct hghca_dev *hdev = to_hdev(hrwq->ibwq.device);
	int ret;

	lockdep_assert_held(&hrwq->lock);

	if (hrwq->ibwq.state == IB_WQS_RESET)
		return;
	ret = hghca_cmd_modify_qp(hdev, HGHCA_CMD_ERR2RST_QPEE, hrwq->hw.qpn, NULL);
	if (ret) {
		ibdev_err(&hdev->ibdev, "failed to reset WQ 0x%x: %d\n", hrwq->hw.qpn, ret);
		/* Its memory may be freed next. The device must not use it. */
		hghca_dev_fail(hdev, "failed to reset a WQ");
	}
	WRITE_ONCE(hrwq->ibwq.state, IB_WQS_RESET);
}

static int hghca_rwq_start(struct hghca_rwq *hrwq)
{
	struct hghca_dev *hdev = to_hdev(hrwq->ibwq.device);
	struct hghca_qpc qpc;
	int ret;

	hghca_rwq_init_context(hdev, hrwq, &qpc);
	ret = hghca_cmd_modify_qp(hdev, HGHCA_CMD_RST2INIT_QPEE, hrwq->hw.qpn, &qpc);
	if (ret)
		return ret;

	WRITE_ONCE(hrwq->ibwq.state, IB_WQS_RDY);
	qpc = (struct hghca_qpc) { };
	ret = hghca_cmd_modify_qp(hdev, HGHCA_CMD_INIT2RTR_QPEE, hrwq->hw.qpn, &qpc);
	if (ret)
		hghca_rwq_reset(hrwq);
	return ret;
}

/* From RDY or ERR.  Must not fail, because outstanding requests must complete. */
static void hghca_rwq_to_error(struct hghca_rwq *hrwq)
{
	struct hghca_dev *hdev = to_hdev(hrwq->ibwq.device);
	int ret;

	ret = hghca_cmd_modify_qp(hdev, HGHCA_CMD_2ERR_QPEE, hrwq->hw.qpn, NULL);
	if (ret) {
		ibdev_err(&hdev->ibdev, "failed to move WQ 0x%x to ERR: %d\n", hrwq->hw.qpn, ret);
		hghca_dev_fail(hdev, "failed to move a WQ to ERR");
	}
	WRITE_ONCE(hrwq->ibwq.state, IB_WQS_ERR);
}

/* The device moves QPs to ERR by itself.  If the query fails, the state is unchanged. */
static void hghca_rwq_refresh(struct hghca_rwq *hrwq)
{
	struct hghca_qpc qpc;

	if (hrwq->ibwq.state != IB_WQS_RDY ||
	    hghca_cmd_query_qp(to_hdev(hrwq->ibwq.device), hrwq->hw.qpn, &qpc))
		return;
	if (be32_get_bits(qpc.flags, HGHCA_QPC_STATE_MASK) == HGHCA_QP_STATE_ERR)
		WRITE_ONCE(hrwq->ibwq.state, IB_WQS_ERR);
}

static int hghca_rwq_move(struct hghca_rwq *hrwq, enum ib_wq_state to)
{
	enum ib_wq_state from = hrwq->ibwq.state;

	switch (to) {
	case IB_WQS_RESET:
		hghca_rwq_reset(hrwq);
		return 0;
	case IB_WQS_RDY:
		if (from == IB_WQS_RESET)
			return hghca_rwq_start(hrwq);
		return from == IB_WQS_RDY ? 0 : -EINVAL;
	case IB_WQS_ERR:
		if (from == IB_WQS_RESET)
			return -EINVAL;
		hghca_rwq_to_error(hrwq);
		return 0;
	default:
		return -EINVAL;
	}
}

/**
 * hghca_modify_wq - change the state of a receive work queue
 * @ibwq: the queue
 * @attr: the new state, and the present state
 * @attr_mask: IB_WQ_*: valid fields of @attr
 * @udata: of its user
 *
 * Transitions: from any state to RESET, which empties the queue; from RESET to RDY; from
 * RDY to ERR.
 *
 * Return: 0, -EOPNOTSUPP for flags, -EINVAL for an invalid transition or a wrong present
 * state, or an error of the command.
 */
int hghca_modify_wq(struct ib_wq *ibwq, struct ib_wq_attr *attr, u32 attr_mask,
		    struct ib_udata *udata)
{
	struct hghca_rwq *hrwq = to_hrwq(ibwq);
	int ret;

	ret = ib_no_udata_io(udata);
	if (ret)
		return ret;
	if (attr_mask & ~(IB_WQ_STATE | IB_WQ_CUR_STATE))
		return -EOPNOTSUPP;

	mutex_lock(&hrwq->lock);
	hghca_rwq_refresh(hrwq);
	if (attr_mask & IB_WQ_CUR_STATE && attr->curr_wq_state != ibwq->state)
		ret = -EINVAL;
	else if (attr_mask & IB_WQ_STATE)
		ret = hghca_rwq_move(hrwq, attr->wq_state);
	mutex_unlock(&hrwq->lock);
	return ret;
}

/* ------------------------------------------------------------------ */
/* Creation, destruction                                                */

static int hghca_rwq_check_init(struct hghca_dev *hdev, const struct ib_wq_init_attr *init)
{
	const struct hghca_limits *limits = &hdev->limits;

	if (init->wq_type != IB_WQT_RQ || init->create_flags)
		return -EOPNOTSUPP;
	/* A user may omit the CQ, and ib_core does not check that. */
	if (IS_ERR_OR_NULL(init->cq) || !init->max_wr || init->max_wr > limits->max_qp_wr ||
	    init->max_sge > limits->max_sge_rq) {
		ibdev_dbg(&hdev->ibdev, "WQ of %u WQEs, %u SGEs is not possible\n",
			  init->max_wr, init->max_sge);
		return -EINVAL;
	}
	return 0;
}

/**
 * hghca_wq_init_user - set the size of one queue of a user
 * @hdev: the device
 * @wq: output; its spare is set, and becomes 0 for a queue of size 0
 * @num_wqes: a power of two, or 0
 * @log_stride: log2 of a slot's bytes
 * @max_wr: work requests requested
 *
 * Return: 0 or -EINVAL.
 */
int hghca_wq_init_user(struct hghca_dev *hdev, struct hghca_wq *wq, u32 num_wqes, u8 log_stride,
		       u32 max_wr)
{
	wq->log_stride = HGHCA_WQE_MIN_STRIDE_LOG;
	if (!num_wqes) {
		wq->spare = 0;
		return max_wr ? -EINVAL : 0;
	}

	if (!is_power_of_2(num_wqes) || num_wqes > roundup_pow_of_two(hdev->limits.max_qp_wr) ||
	    num_wqes < max_wr + wq->spare || log_stride < HGHCA_WQE_MIN_STRIDE_LOG ||
	    log_stride > HGHCA_WQE_MAX_STRIDE_LOG)
		return -EINVAL;
	wq->num_wqes = num_wqes;
	wq->log_stride = log_stride;
	return 0;
}

static int hghca_rwq_check_user(struct hghca_dev *hdev, struct hghca_rwq *hrwq,
				const struct hghca_create_wq *cmd,
				const struct ib_wq_init_attr *init)
{
	if (memchr_inv(cmd->reserved, 0, sizeof(cmd->reserved)) ||
	    !PAGE_ALIGNED(cmd->buf_addr) ||
	    hghca_wq_init_user(hdev, &hrwq->rq, cmd->wqe_cnt, cmd->log_stride, init->max_wr) ||
	    hghca_wqe_recv_bytes(init->max_sge) > BIT(hrwq->rq.log_stride)) {
		ibdev_dbg(&hdev->ibdev, "WQ of %u << %u at 0x%llx\n",
			  cmd->wqe_cnt, cmd->log_stride, cmd->buf_addr);
		return -EINVAL;
	}
	return 0;
}

static int hghca_rwq_map_user(struct hghca_dev *hdev, struct hghca_rwq *hrwq,
			      const struct hghca_create_wq *cmd)
{
	size_t bytes = ALIGN(hghca_wq_bytes(&hrwq->rq), HGHCA_ICM_PAGE_SIZE);
	int ret;

	hrwq->umem = ib_umem_get_va(&hdev->ibdev, cmd->buf_addr, bytes, 0);
	if (IS_ERR(hrwq->umem))
		return PTR_ERR(hrwq->umem);

	ret = hghca_queue_map_user(hdev, &hrwq->rq.queue, to_hpd(hrwq->ibwq.pd)->pdn, hrwq->umem,
				   0, bytes, false);
	if (ret)
		goto err_release_umem;

	ret = hghca_dbr_map_user(hdev, &hrwq->uctx->dbr_pages, &hrwq->dbr, cmd->dbr_addr);
	if (ret)
		goto err_free_queue;
	return 0;

err_free_queue:
	hghca_queue_free(hdev, &hrwq->rq.queue);
err_release_umem:
	ib_umem_release(hrwq->umem);
	return ret;
}

static void hghca_rwq_unmap_user(struct hghca_dev *hdev, struct hghca_rwq *hrwq)
{
	hghca_dbr_free(hdev, &hrwq->dbr);
	hghca_queue_free(hdev, &hrwq->rq.queue);
	ib_umem_release(hrwq->umem);
}

/**
 * hghca_create_wq - create a receive work queue, in RESET
 * @ibpd: its PD
 * @init: its CQ and size, which is set to the granted values
 * @udata: input: struct hghca_create_wq
 *
 * Return: the queue, or an ERR_PTR(): -EOPNOTSUPP for flags, -EINVAL for values that
 * exceed the limits or are malformed, or an error of an allocation or a command.
 */
struct ib_wq *hghca_create_wq(struct ib_pd *ibpd, struct ib_wq_init_attr *init,
			      struct ib_udata *udata)
{
	struct hghca_dev *hdev = to_hdev(ibpd->device);
	struct hghca_create_wq cmd;
	struct hghca_rwq *hrwq;
	int ret;

	ret = hghca_rwq_check_init(hdev, init);
	if (ret)
		return ERR_PTR(ret);
	ret = ib_copy_validate_udata_in(udata, cmd, reserved);
	if (!ret)
		ret = ib_respond_empty_udata(udata);
	if (ret)
		return ERR_PTR(ret);

	hrwq = kzalloc_obj(*hrwq);
	if (!hrwq)
		return ERR_PTR(-ENOMEM);
	mutex_init(&hrwq->lock);
	hrwq->uctx = rdma_udata_to_drv_context(udata, struct hghca_ucontext, ibuctx);
	hrwq->hw.event = hghca_rwq_event;
	hrwq->ibwq.device = ibpd->device;
	hrwq->ibwq.pd = ibpd;
	hrwq->ibwq.cq = init->cq;
	hrwq->ibwq.state = IB_WQS_RESET;
	hrwq->ibwq.event_handler = init->event_handler;
	hrwq->rq.spare = hghca_rq_spare(hdev);

	ret = hghca_rwq_check_user(hdev, hrwq, &cmd, init);
	if (ret)
		goto err_free;
	ret = hghca_rwq_map_user(hdev, hrwq, &cmd);
	if (ret)
		goto err_free;
	ret = hghca_hwqp_add(hdev, &hrwq->hw, 0);
	if (ret)
		goto err_unmap;

	hrwq->ibwq.wq_num = hrwq->hw.qpn;
	init->max_wr = hrwq->rq.num_wqes - hrwq->rq.spare;
	init->max_sge = hghca_wqe_recv_sge_grant(init->max_sge);
	return &hrwq->ibwq;

err_unmap:
	hghca_rwq_unmap_user(hdev, hrwq);
err_free:
	mutex_destroy(&hrwq->lock);
	kfree(hrwq);
	return ERR_PTR(ret);
}

/**
 * hghca_destroy_wq - undo hghca_create_wq()
 * @ibwq: the queue, which no table contains
 * @udata: of its user
 *
 * Return: 0.
 */
int hghca_destroy_wq(struct ib_wq *ibwq, struct ib_udata *udata)
{
	struct hghca_dev *hdev = to_hdev(ibwq->device);
	struct hghca_rwq *hrwq = to_hrwq(ibwq);
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	mutex_lock(&hrwq->lock);
	hghca_rwq_reset(hrwq);
	mutex_unlock(&hrwq->lock);

	hghca_hwqp_del(hdev, &hrwq->hw);
	hghca_rwq_unmap_user(hdev, hrwq);
	mutex_destroy(&hrwq->lock);
	kfree(hrwq);
	return 0;
}

/* ------------------------------------------------------------------ */
/* Tables                                                               */

/**
 * hghca_create_rwq_ind_table - create a table of receive work queues
 * @ibtable: the table
 * @init: its size and its queues, which ib_core keeps
 * @udata: of a user; no input
 *
 * Return: 0, -EINVAL for too many entries, -ENOMEM if no table is free.
 */
int hghca_create_rwq_ind_table(struct ib_rwq_ind_table *ibtable,
			       struct ib_rwq_ind_table_init_attr *init, struct ib_udata *udata)
{
	struct hghca_dev *hdev = to_hdev(ibtable->device);
	int ret;

	ret = ib_no_udata_io(udata);
	if (ret)
		return ret;
	if (init->log_ind_tbl_size > hdev->limits.log_max_rss_size) {
		ibdev_dbg(&hdev->ibdev, "table of 1 << %u entries is not possible\n",
			  init->log_ind_tbl_size);
		return -EINVAL;
	}
	ret = ida_alloc_max(&hdev->rwq_table_ida, hdev->limits.num_rss - 1, GFP_KERNEL);
	if (ret < 0)
		return ret == -ENOSPC ? -ENOMEM : ret;
	ibtable->ind_tbl_num = ret;
	return 0;
}

/**
 * hghca_destroy_rwq_ind_table - undo hghca_create_rwq_ind_table()
 * @ibtable: the table, which no QP uses
 *
 * Return: 0.
 */
int hghca_destroy_rwq_ind_table(struct ib_rwq_ind_table *ibtable)
{
	ida_free(&to_hdev(ibtable->device)->rwq_table_ida, ibtable->ind_tbl_num);
	return 0;
}

/* ------------------------------------------------------------------ */
/* QPs with a table                                                     */

static int hghca_rss_check_init(struct hghca_dev *hdev, const struct ib_qp_init_attr *init,
				bool user)
{
	const struct ib_qp_cap *cap = &init->cap;

	/* Without a send queue, blocking of its own packets has no effect. */
	if (!user || init->qp_type != IB_QPT_RAW_PACKET ||
	    !(hdev->limits.caps & HGHCA_CAP_RSS) ||
	    init->create_flags & ~IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK ||
	    cap->max_send_wr || cap->max_send_sge || cap->max_inline_data)
		return -EOPNOTSUPP;
	return 0;
}

static int hghca_rss_check_user(struct hghca_dev *hdev, const struct hghca_create_rss_qp *cmd,
				u32 log_size)
{
	int ret = 0;

	if (cmd->rx_hash_function != HGHCA_RSS_TOEPLITZ ||
	    cmd->rx_hash_fields_mask & ~(u64)HGHCA_RSS_FIELDS)
		ret = -EOPNOTSUPP;
	/* Without fields to hash, only the first entry would be used. */
	else if (memchr_inv(cmd->reserved, 0, sizeof(cmd->reserved)) ||
		 cmd->rx_hash_key_len != HGHCA_RSS_KEY_BYTES ||
		 (!cmd->rx_hash_fields_mask && log_size))
		ret = -EINVAL;
	if (ret)
		ibdev_dbg(&hdev->ibdev, "RSS by function %u, fields 0x%llx, a key of %u bytes\n",
			  cmd->rx_hash_function, cmd->rx_hash_fields_mask,
			  cmd->rx_hash_key_len);
	return ret;
}

static int hghca_rss_add(struct hghca_dev *hdev, struct hghca_qp *hqp,
			 const struct ib_rwq_ind_table *ibtable,
			 const struct hghca_create_rss_qp *cmd)
{
	struct hghca_rss *rss;
	unsigned int i;
	int ret;

	rss = kzalloc_obj(*rss);
	if (!rss)
		return -ENOMEM;
	rss->fields = cpu_to_be32(cmd->rx_hash_fields_mask);
	rss->function = cmd->rx_hash_function;
	rss->log_size = ibtable->log_ind_tbl_size;
	memcpy(rss->key, cmd->rx_hash_key, sizeof(rss->key));
	for (i = 0; i < BIT(ibtable->log_ind_tbl_size); i++)
		rss->qpn[i] = cpu_to_be32(to_hrwq(ibtable->ind_tbl[i])->hw.qpn);

	ret = ida_alloc_max(&hdev->rss_ida, hdev->limits.num_rss - 1, GFP_KERNEL);
	if (ret < 0) {
		ret = ret == -ENOSPC ? -ENOMEM : ret;
		goto out_free;
	}
	hqp->rss_group = ret;
	ret = hghca_cmd_create_rss(hdev, hqp->rss_group, rss);
	if (ret)
		ida_free(&hdev->rss_ida, hqp->rss_group);
out_free:
	kfree(rss);
	return ret;
}

static void hghca_rss_del(struct hghca_dev *hdev, struct hghca_qp *hqp)
{
	int ret;

	ret = hghca_cmd_destroy_rss(hdev, hqp->rss_group);
	if (ret) {
		ibdev_err(&hdev->ibdev, "failed to destroy RSS group %u: %d\n",
			  hqp->rss_group, ret);
		/* The numbers of its queues may be reused next. */
		hghca_dev_fail(hdev, "failed to destroy an RSS group");
	}
	ida_free(&hdev->rss_ida, hqp->rss_group);
}

/**
 * hghca_create_rss_qp - create a QP that distributes frames over a table of queues
 * @ibqp: the QP
 * @init: its table; the QP has no queues
 * @udata: input: struct hghca_create_rss_qp
 *
 * It receives frames of its flows if its queues receive.
 *
 * Return: 0, -EOPNOTSUPP for another type than a raw packet QP, a send queue or a hash
 * that the device lacks, -EINVAL for malformed input, -ENOMEM if no group is free, or an
 * error of an allocation or a command.
 */
int hghca_create_rss_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	struct hghca_dev *hdev = to_hdev(ibqp->device);
	struct hghca_create_qp_resp resp = {};
	struct hghca_create_rss_qp cmd;
	struct hghca_qp *hqp = to_hqp(ibqp);
	int ret;

	ret = hghca_rss_check_init(hdev, init, !!udata);
	if (ret)
		return ret;
	ret = ib_copy_validate_udata_in(udata, cmd, rx_hash_key);
	if (ret)
		return ret;
	ret = hghca_rss_check_user(hdev, &cmd, init->rwq_ind_tbl->log_ind_tbl_size);
	if (ret)
		return ret;

	hqp->user = true;
	hqp->sq.room.signal_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	hqp->uctx = rdma_udata_to_drv_context(udata, struct hghca_ucontext, ibuctx);
	/* Allocates only the number: the device has no context of it. */
	ret = hghca_hwqp_add(hdev, &hqp->hw, 0);
	if (ret)
		return ret;
	ret = hghca_rss_add(hdev, hqp, init->rwq_ind_tbl, &cmd);
	if (ret)
		goto err_del_number;

	ibqp->qp_num = hqp->hw.qpn;
	resp.qpn = hqp->hw.qpn;
	ret = ib_respond_udata(udata, resp);
	if (ret)
		goto err_del_group;
	return 0;

err_del_group:
	hghca_rss_del(hdev, hqp);
err_del_number:
	hghca_hwqp_del(hdev, &hqp->hw);
	return ret;
}

/**
 * hghca_destroy_rss_qp - undo hghca_create_rss_qp()
 * @ibqp: the QP, which has no flows
 */
void hghca_destroy_rss_qp(struct ib_qp *ibqp)
{
	struct hghca_dev *hdev = to_hdev(ibqp->device);
	struct hghca_qp *hqp = to_hqp(ibqp);

	hghca_rss_del(hdev, hqp);
	hghca_hwqp_del(hdev, &hqp->hw);
}

/**
 * hghca_query_rss_qp - query the attributes of a QP with a table
 * @ibqp: the QP
 * @attr: output: it always receives
 * @init: output: attributes of its creation
 */
void hghca_query_rss_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr,
			struct ib_qp_init_attr *init)
{
	bool signal_all = to_hqp(ibqp)->sq.room.signal_all;

	*attr = (struct ib_qp_attr) {
		.qp_state = IB_QPS_RTR,
		.cur_qp_state = IB_QPS_RTR,
		.port_num = HGHCA_PORT_NUM,
	};
	*init = (struct ib_qp_init_attr) {
		.event_handler = ibqp->event_handler,
		.qp_context = ibqp->qp_context,
		.qp_type = ibqp->qp_type,
		.sq_sig_type = signal_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR,
		.rwq_ind_tbl = ibqp->rwq_ind_tbl,
		.port_num = HGHCA_PORT_NUM,
	};
}
