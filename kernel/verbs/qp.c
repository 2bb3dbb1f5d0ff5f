// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* JingZhao HCA: queue pairs, from creation to destruction. */

#include <linux/log2.h>

#include "verbs/verbs.h"

/* Check the SRQ that replaces the receive queue. */
static int hghca_qp_check_srq(const struct ib_qp_init_attr *init, bool user)
{
	if (init->qp_type == IB_QPT_GSI || init->qp_type == IB_QPT_RAW_PACKET)
		return -EOPNOTSUPP;
	if (init->srq->srq_type != IB_SRQT_BASIC)
		return -EINVAL;
	/* The poller of the QP returns WQEs to the SRQ, so both have the same user. */
	return user == !!to_hsrq(init->srq)->uctx ? 0 : -EINVAL;
}

/* A QP never receives its own multicast packets, even without the flag. */
static u32 hghca_qp_create_flags(const struct hghca_dev *hdev, enum ib_qp_type type)
{
	return (type == IB_QPT_UD && hdev->limits.caps & HGHCA_CAP_MULTICAST) ||
	       type == IB_QPT_RAW_PACKET ? IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK : 0;
}

static int hghca_qp_check_init(struct hghca_dev *hdev, const struct ib_qp_init_attr *init,
			       bool user)
{
	const struct hghca_limits *limits = &hdev->limits;
	const struct ib_qp_cap *cap = &init->cap;
	int ret;

	switch (init->qp_type) {
	case IB_QPT_RC:
	case IB_QPT_UC:
	case IB_QPT_UD:
		break;
	case IB_QPT_XRC_INI:
	case IB_QPT_XRC_TGT:
		if (user && limits->caps & HGHCA_CAP_XRC)
			break;
		return -EOPNOTSUPP;
	case IB_QPT_RAW_PACKET:
		if (user && limits->caps & HGHCA_CAP_RAW_PACKET)
			break;
		return -EOPNOTSUPP;
	case IB_QPT_GSI:
		if (!user && init->port_num == HGHCA_PORT_NUM)
			break;
		return -EINVAL;
	default:
		return -EOPNOTSUPP;
	}
	if (init->create_flags & ~hghca_qp_create_flags(hdev, init->qp_type))
		return -EOPNOTSUPP;
	if (init->srq) {
		ret = hghca_qp_check_srq(init, user);
		if (ret)
			return ret;
	}

	if (cap->max_send_wr > limits->max_qp_wr ||
	    cap->max_recv_wr > limits->max_qp_wr ||
	    cap->max_send_sge > limits->max_sge ||
	    cap->max_recv_sge > limits->max_sge_rq ||
	    cap->max_inline_data >
	    hghca_wqe_inline_room(init->qp_type, limits->max_desc_sz)) {
		ibdev_dbg(&hdev->ibdev,
			  "QP of %u+%u WQEs, %u+%u SGEs, %u bytes inline is not possible\n",
			  cap->max_send_wr, cap->max_recv_wr, cap->max_send_sge,
			  cap->max_recv_sge, cap->max_inline_data);
		return -EINVAL;
	}
	return 0;
}

/*
 * Clear the capabilities of queues that the QP does not have.  A QP with an SRQ and an XRC
 * initiator have no receive queue.  An XRC target has no queues.
 */
static void hghca_qp_trim_init(struct ib_qp_init_attr *init)
{
	struct ib_qp_cap *cap = &init->cap;

	if (init->qp_type == IB_QPT_XRC_TGT) {
		*cap = (struct ib_qp_cap) { };
	} else if (init->srq || init->qp_type == IB_QPT_XRC_INI) {
		cap->max_recv_wr = 0;
		cap->max_recv_sge = 0;
	}
}

/*
 * The capabilities granted to a QP: as many WQEs as its queues have slots, and SGE lists
 * as long as requested, because a program may have an array of that size.
 */
static struct ib_qp_cap hghca_qp_grant(const struct hghca_qp *hqp, const struct ib_qp_cap *asked)
{
	return (struct ib_qp_cap) {
		.max_send_wr = hqp->sq.num_wqes,
		.max_recv_wr = hqp->rq.num_wqes - hqp->rq.spare,
		.max_send_sge = asked->max_send_sge,
		.max_recv_sge = hqp->rq.num_wqes ? hghca_wqe_recv_sge_grant(asked->max_recv_sge) :
						   asked->max_recv_sge,
		.max_inline_data = hghca_wqe_inline_grant(asked->max_send_sge,
							  asked->max_inline_data),
		.max_rdma_ctxs = asked->max_rdma_ctxs,
	};
}

/* ------------------------------------------------------------------ */
/* Queues of a user                                                     */

static int hghca_qp_check_flags(const struct hghca_dev *hdev, enum ib_qp_type type, u32 flags)
{
	if (flags & ~HGHCA_CREATE_QP_VENDOR_OPS)
		return -EOPNOTSUPP;
	if (!(flags & HGHCA_CREATE_QP_VENDOR_OPS))
		return 0;
	if (!(hdev->limits.caps & HGHCA_CAP_VENDOR_OPS))
		return -EOPNOTSUPP;
	return type == IB_QPT_RC ? 0 : -EINVAL;
}

static int hghca_qp_check_user(struct hghca_dev *hdev, struct hghca_qp *hqp,
			       const struct hghca_create_qp *cmd, const struct ib_qp_cap *cap)
{
	int ret;

	if (memchr_inv(cmd->reserved, 0, sizeof(cmd->reserved)) ||
	    (cmd->rq_wqe_cnt && (hqp->ibqp.srq || hqp->ibqp.qp_type == IB_QPT_XRC_INI)))
		return -EINVAL;

	ret = hghca_qp_check_flags(hdev, hqp->ibqp.qp_type, cmd->flags);
	if (ret)
		return ret;
	ret = hghca_wq_init_user(hdev, &hqp->sq, cmd->sq_wqe_cnt, cmd->log_sq_stride,
				 cap->max_send_wr);
	if (ret)
		return ret;
	return hghca_wq_init_user(hdev, &hqp->rq, cmd->rq_wqe_cnt, cmd->log_rq_stride,
				  cap->max_recv_wr);
}

/* The MRs of the queues, which lie one behind the other: one for both, or one for each. */
static int hghca_qp_map_queues(struct hghca_dev *hdev, struct hghca_qp *hqp, u32 pdn,
			       u32 sq_bytes, u32 rq_bytes)
{
	int ret;

	if (sq_bytes && rq_bytes && hdev->limits.caps & HGHCA_CAP_RQ_OFFSET) {
		hqp->rq_offset = sq_bytes;
		return hghca_queue_map_user(hdev, &hqp->sq.queue, pdn, hqp->umem, 0,
					    sq_bytes + rq_bytes, false);
	}

	if (sq_bytes) {
		ret = hghca_queue_map_user(hdev, &hqp->sq.queue, pdn, hqp->umem, 0,
					   sq_bytes, false);
		if (ret)
			return ret;
	}
	if (rq_bytes) {
		ret = hghca_queue_map_user(hdev, &hqp->rq.queue, pdn, hqp->umem, sq_bytes,
					   rq_bytes, false);
		if (ret) {
			hghca_queue_free(hdev, &hqp->sq.queue);
			return ret;
		}
	}
	return 0;
}

/*
 * Map the buffer of both queues.  It is that of an attribute of the method, or without one
 * that of the driver's data.
 */
static int hghca_qp_map_user(struct hghca_dev *hdev, struct hghca_qp *hqp, u32 pdn,
			     u64 buf_addr, struct ib_udata *udata)
{
	u32 sq_bytes = ALIGN(hghca_wq_bytes(&hqp->sq), HGHCA_ICM_PAGE_SIZE);
	u32 rq_bytes = ALIGN(hghca_wq_bytes(&hqp->rq), HGHCA_ICM_PAGE_SIZE);
	int ret;

	if (!(sq_bytes + rq_bytes))
		return 0;
	hqp->umem = ib_umem_get_attr_or_va(&hdev->ibdev, rdma_udata_to_uverbs_attr_bundle(udata),
					   UVERBS_ATTR_CREATE_QP_BUF_UMEM, buf_addr,
					   sq_bytes + rq_bytes, 0);
	if (IS_ERR(hqp->umem)) {
		ret = PTR_ERR(hqp->umem);
		hqp->umem = NULL;
		return ret;
	}

	ret = hghca_qp_map_queues(hdev, hqp, pdn, sq_bytes, rq_bytes);
	if (ret)
		ib_umem_release(hqp->umem);
	return ret;
}

static int hghca_qp_init_user(struct hghca_dev *hdev, struct hghca_qp *hqp, u32 pdn,
			      const struct ib_qp_cap *cap, struct ib_udata *udata)
{
	struct hghca_create_qp cmd;
	int ret;

	hqp->uctx = rdma_udata_to_drv_context(udata, struct hghca_ucontext, ibuctx);
	ret = ib_copy_validate_udata_in(udata, cmd, flags);
	if (ret)
		return ret;
	ret = hghca_qp_check_user(hdev, hqp, &cmd, cap);
	if (ret) {
		ibdev_dbg(&hdev->ibdev,
			  "QP queues of %u << %u and %u << %u at 0x%llx, flags 0x%x: %d\n",
			  cmd.sq_wqe_cnt, cmd.log_sq_stride, cmd.rq_wqe_cnt,
			  cmd.log_rq_stride, cmd.buf_addr, cmd.flags, ret);
		return ret;
	}

	ret = hghca_qp_map_user(hdev, hqp, pdn, cmd.buf_addr, udata);
	if (ret)
		return ret;
	if (hqp->rq.num_wqes) {
		ret = hghca_dbr_map_user(hdev, &hqp->uctx->dbr_pages, &hqp->dbr, cmd.dbr_addr);
		if (ret)
			goto err_unmap;
	}
	hqp->cap = hghca_qp_grant(hqp, cap);
	hqp->vendor_ops = cmd.flags & HGHCA_CREATE_QP_VENDOR_OPS;
	return 0;

err_unmap:
	hghca_queue_free(hdev, &hqp->rq.queue);
	hghca_queue_free(hdev, &hqp->sq.queue);
	ib_umem_release(hqp->umem);
	return ret;
}

/* ------------------------------------------------------------------ */
/* Queues of the kernel                                                 */

static int hghca_wq_init_kernel(struct hghca_dev *hdev, struct hghca_wq *wq, u32 pdn,
				u32 num_wqes, u32 wqe_bytes, u32 max_desc_sz)
{
	u32 stride = max_t(u32, roundup_pow_of_two(wqe_bytes), BIT(HGHCA_WQE_MIN_STRIDE_LOG));
	int ret;

	wq->log_stride = ilog2(stride);
	wq->room.units = min(stride, max_desc_sz) / HGHCA_WQE_UNIT;
	if (!num_wqes) {
		wq->spare = 0;
		return 0;
	}

	wq->num_wqes = roundup_pow_of_two(num_wqes + wq->spare);
	wq->wrs = kvcalloc(wq->num_wqes, sizeof(*wq->wrs), GFP_KERNEL);
	if (!wq->wrs)
		return -ENOMEM;
	ret = hghca_queue_alloc(hdev, &wq->queue, pdn, hghca_wq_bytes(wq), false);
	if (ret)
		goto err_free_wrs;
	return 0;

err_free_wrs:
	kvfree(wq->wrs);
	return ret;
}

static void hghca_wq_release_kernel(struct hghca_dev *hdev, struct hghca_wq *wq)
{
	hghca_queue_free(hdev, &wq->queue);
	kvfree(wq->wrs);
}

static int hghca_qp_init_kernel(struct hghca_dev *hdev, struct hghca_qp *hqp, u32 pdn,
				const struct ib_qp_init_attr *init)
{
	const struct hghca_limits *limits = &hdev->limits;
	const struct ib_qp_cap *cap = &init->cap;
	int ret;

	ret = hghca_wq_init_kernel(hdev, &hqp->sq, pdn, cap->max_send_wr,
				   hghca_wqe_send_bytes(init->qp_type, cap->max_send_sge,
							cap->max_inline_data),
				   limits->max_desc_sz);
	if (ret)
		return ret;
	ret = hghca_wq_init_kernel(hdev, &hqp->rq, pdn, cap->max_recv_wr,
				   hghca_wqe_recv_bytes(cap->max_recv_sge),
				   limits->max_desc_sz_rq);
	if (ret)
		goto err_release_sq;
	ret = hghca_dbr_alloc(hdev, &hqp->dbr);
	if (ret)
		goto err_release_rq;

	hqp->cap = hghca_qp_grant(hqp, cap);
	hqp->sq.room.max_sge = hqp->cap.max_send_sge;
	hqp->sq.room.max_inline = hqp->cap.max_inline_data;
	hqp->sq.room.mem_mgt = limits->caps & HGHCA_CAP_MEM_MGT;
	hqp->rq.room.max_sge = hqp->cap.max_recv_sge;
	return 0;

err_release_rq:
	hghca_wq_release_kernel(hdev, &hqp->rq);
err_release_sq:
	hghca_wq_release_kernel(hdev, &hqp->sq);
	return ret;
}

static int hghca_qp_init_queues(struct hghca_dev *hdev, struct hghca_qp *hqp, u32 pdn,
				const struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	if (udata)
		return hghca_qp_init_user(hdev, hqp, pdn, &init->cap, udata);
	if (!hqp->user)
		return hghca_qp_init_kernel(hdev, hqp, pdn, init);
	/* An XRC target has no send queue. */
	hqp->sq.log_stride = HGHCA_WQE_MIN_STRIDE_LOG;
	hqp->rq.log_stride = HGHCA_WQE_MIN_STRIDE_LOG;
	return 0;
}

static int hghca_qp_attach(struct hghca_qp *hqp)
{
	struct hghca_cq *send_cq = to_hcq(hqp->ibqp.send_cq);
	int ret;

	ret = hghca_cq_reserve(send_cq, hqp->sq.num_wqes);
	if (ret)
		return ret;
	ret = hghca_cq_attach(send_cq, hqp);
	if (ret)
		goto err_unreserve;
	ret = hghca_cq_attach(to_hcq(hqp->ibqp.recv_cq), hqp);
	if (ret)
		goto err_detach;
	return 0;

err_detach:
	hghca_cq_detach(send_cq, hqp);
err_unreserve:
	hghca_cq_unreserve(send_cq, hqp->sq.num_wqes);
	return ret;
}

static void hghca_qp_detach(struct hghca_qp *hqp)
{
	hghca_cq_detach(to_hcq(hqp->ibqp.send_cq), hqp);
	hghca_cq_detach(to_hcq(hqp->ibqp.recv_cq), hqp);
	hghca_cq_unreserve(to_hcq(hqp->ibqp.send_cq), hqp->sq.num_wqes);
}

/* ------------------------------------------------------------------ */

/* Set the fields of RST2INIT that are not verbs attributes; @xrcdn: of an XRC target, or 0. */
static void hghca_qp_init_context(struct hghca_dev *hdev, struct hghca_qp *hqp, u32 pdn,
				  u32 xrcdn)
{
	const struct hghca_qpc_attr attr = {
		.service = hghca_qp_service(hqp),
		.log_max_msg = hdev->limits.log_max_msg,
		.reg_mr = !hqp->user && hdev->limits.caps & HGHCA_CAP_MEM_MGT,
		.vendor_ops = hqp->vendor_ops,
		.qpn = hqp->hw.qpn,
		.pdn = pdn,
		.uar = hqp->uctx ? hqp->uctx->uar.index : 0,
		.srqn = hqp->ibqp.srq ? to_hsrq(hqp->ibqp.srq)->hw.srqn : 0,
		.xrcdn = xrcdn,
		.send = {
			.cqn = hghca_cqn_of(hqp->ibqp.send_cq),
			.key = hqp->sq.queue.mr.key,
			.bytes = hghca_wq_bytes(&hqp->sq),
			.log_stride = hqp->sq.log_stride,
		},
		.recv = {
			.cqn = hghca_cqn_of(hqp->ibqp.recv_cq),
			.key = hqp->rq_offset ? hqp->sq.queue.mr.key : hqp->rq.queue.mr.key,
			.offset = hqp->rq_offset,
			.bytes = hghca_wq_bytes(&hqp->rq),
			.log_stride = hqp->rq.log_stride,
		},
		.dbr = hdev->limits.caps & HGHCA_CAP_DBR ? hqp->dbr.dma : 0,
	};

	hghca_qpc_init(&hqp->qpc, &attr);
}

static void hghca_qp_release(struct hghca_dev *hdev, struct hghca_qp *hqp)
{
	hghca_dbr_free(hdev, &hqp->dbr);
	hghca_wq_release_kernel(hdev, &hqp->rq);
	hghca_wq_release_kernel(hdev, &hqp->sq);
	ib_umem_release(hqp->umem);	/* NULL: a kernel QP */
	mutex_destroy(&hqp->lock);
}

/**
 * hghca_create_qp - create a QP
 * @ibqp: the QP
 * @init: its type, queues, CQs and SRQ; cap is set to the granted values
 * @udata: of a user, otherwise NULL; ib_core creates an XRC target without udata
 *
 * RC, UC, UD, XRC and raw packet QPs of users, and the GSI QP.  ib_core has checked
 * CAP_NET_RAW for a raw packet QP.  For a QP with a table of receive work queues, see
 * hghca_create_rss_qp().
 *
 * Return: 0, -EOPNOTSUPP for a type or flag the device lacks, -EINVAL for values that
 * exceed its limits or are malformed, -EBUSY for a second GSI QP, or an error of an
 * allocation or a command.
 */
int hghca_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	struct hghca_dev *hdev = to_hdev(ibqp->device);
	struct hghca_create_qp_resp resp = {};
	struct hghca_qp *hqp = to_hqp(ibqp);
	bool target = init->qp_type == IB_QPT_XRC_TGT;
	/* ib_core owns targets, for the processes of their domain: they have no udata. */
	bool user = udata || target;
	u32 pdn = target ? 0 : to_hpd(ibqp->pd)->pdn;
	u32 xrcdn = target ? to_hxrcd(init->xrcd)->xrcdn : 0;
	int ret;

	hqp->hw.event = hghca_qp_event;
	if (init->rwq_ind_tbl)
		return hghca_create_rss_qp(ibqp, init, udata);

	hghca_qp_trim_init(init);
	ret = hghca_qp_check_init(hdev, init, user);
	if (ret)
		return ret;

	mutex_init(&hqp->lock);
	spin_lock_init(&hqp->sq.lock);
	spin_lock_init(&hqp->rq.lock);
	hqp->state = IB_QPS_RESET;
	hqp->sq.room.signal_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	hqp->rq.spare = hghca_rq_spare(hdev);
	hghca_odp_init_qp(hdev, hqp);
	hqp->user = user;

	ret = hghca_qp_init_queues(hdev, hqp, pdn, init, udata);
	if (ret)
		return ret;

	ret = hghca_hwqp_add(hdev, &hqp->hw,
			     init->qp_type == IB_QPT_GSI ? HGHCA_QPN_GSI : 0);
	if (ret)
		goto err_release;
	if (!user) {
		ret = hghca_qp_attach(hqp);
		if (ret)
			goto err_del_number;
	}

	hghca_qp_init_context(hdev, hqp, pdn, xrcdn);
	ibqp->qp_num = hqp->hw.qpn;
	init->cap = hqp->cap;
	if (udata) {
		resp.qpn = hqp->hw.qpn;
		ret = ib_respond_udata(udata, resp);
		if (ret)
			goto err_del_number;
	}
	return 0;

err_del_number:
	hghca_hwqp_del(hdev, &hqp->hw);
err_release:
	hghca_qp_release(hdev, hqp);
	return ret;
}

/**
 * hghca_destroy_qp - destroy a QP
 * @ibqp: the QP
 * @udata: of a user, otherwise NULL
 *
 * Return: 0.
 */
int hghca_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct hghca_dev *hdev = to_hdev(ibqp->device);
	struct hghca_qp *hqp = to_hqp(ibqp);
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	if (ibqp->rwq_ind_tbl) {
		hghca_destroy_rss_qp(ibqp);
		return 0;
	}

	mutex_lock(&hqp->lock);
	hghca_qp_reset(hqp);
	mutex_unlock(&hqp->lock);

	/* Before another QP may get the number. */
	if (!hqp->user)
		hghca_qp_detach(hqp);
	hghca_hwqp_del(hdev, &hqp->hw);
	hghca_qp_release(hdev, hqp);
	return 0;
}
