// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: shared receive queues.
 *
 * Receives of an SRQ complete in any order, so its free slots form a chain.  A posted
 * receive takes the first slot.  The slot of a completed receive is appended to the chain.
 * A WQE links to the WQE that will be posted next, which is its successor in the chain.
 * One slot always stays free, so that the successor is known.
 */

#include <linux/log2.h>

#include "verbs/verbs.h"

#define HGHCA_SRQ_MIN_WQES	2

/**
 * hghca_srq_event - handle an asynchronous event of an SRQ
 * @hwsrq: the SRQ
 * @type: HGHCA_EVENT_*
 *
 * Interrupt context.
 */
void hghca_srq_event(struct hghca_hwsrq *hwsrq, u8 type)
{
	struct ib_srq *ibsrq = &container_of(hwsrq, struct hghca_srq, hw)->ibsrq;
	struct ib_event event = {
		.device = ibsrq->device,
		.element.srq = ibsrq,
	};

	switch (type) {
	case HGHCA_EVENT_SRQ_LIMIT:
		event.event = IB_EVENT_SRQ_LIMIT_REACHED;
		break;
	case HGHCA_EVENT_SRQ_CATAS_ERROR:
		ibdev_err_ratelimited(ibsrq->device, "SRQ 0x%x failed\n", hwsrq->srqn);
		event.event = IB_EVENT_SRQ_ERR;
		break;
	default:
		ibdev_err_ratelimited(ibsrq->device, "SRQ 0x%x: unknown event 0x%x\n",
				      hwsrq->srqn, type);
		return;
	}
	if (ibsrq->event_handler)
		ibsrq->event_handler(&event, ibsrq->srq_context);
}

/* A kernel XRC SRQ is not supported: the poller would have to look up its QPs. */
static bool hghca_srq_has_type(const struct hghca_limits *limits, enum ib_srq_type type, bool user)
{
	return type == IB_SRQT_BASIC ||
	       (type == IB_SRQT_XRC && user && limits->caps & HGHCA_CAP_XRC);
}

static int hghca_srq_check_init(struct hghca_dev *hdev, const struct ib_srq_init_attr *init,
				bool user)
{
	const struct hghca_limits *limits = &hdev->limits;
	const struct ib_srq_attr *attr = &init->attr;

	if (!(limits->caps & HGHCA_CAP_SRQ) || !hghca_srq_has_type(limits, init->srq_type, user))
		return -EOPNOTSUPP;

	if (!attr->max_wr || attr->max_wr > limits->max_srq_wr ||
	    attr->max_sge > limits->max_srq_sge) {
		ibdev_dbg(&hdev->ibdev, "SRQ of %u WQEs, %u SGEs is not possible\n",
			  attr->max_wr, attr->max_sge);
		return -EINVAL;
	}
	return 0;
}

/* Lists have the requested length: a slot may have more space, which is not granted. */
static void hghca_srq_set_room(struct hghca_dev *hdev, struct hghca_srq *hsrq, u32 sges)
{
	const struct hghca_limits *limits = &hdev->limits;
	struct hghca_wqe_room *room = &hsrq->room;

	room->units = min_t(u32, BIT(hsrq->log_stride), limits->max_desc_sz_rq) / HGHCA_WQE_UNIT;
	room->max_sge = hghca_wqe_recv_sge_grant(sges);
}

/* The maximum number of work requests: one WQE stays free. */
static u32 hghca_srq_max_wr(const struct hghca_srq *hsrq)
{
	return hsrq->num_wqes - 1;
}

static size_t hghca_srq_bytes(u32 num_wqes, u32 log_stride)
{
	return ALIGN((size_t)num_wqes << log_stride, HGHCA_ICM_PAGE_SIZE);
}

static void hghca_srq_free_buffer(struct hghca_dev *hdev, struct hghca_queue *queue,
				  struct ib_umem *umem)
{
	hghca_queue_free(hdev, queue);
	ib_umem_release(umem);	/* NULL: a kernel buffer */
}

/* ------------------------------------------------------------------ */
/* Queues of a user                                                     */

static bool hghca_srq_count_is_valid(const struct hghca_dev *hdev, u32 num_wqes, u32 max_wr)
{
	return is_power_of_2(num_wqes) && num_wqes >= HGHCA_SRQ_MIN_WQES &&
	       num_wqes - 1 <= hdev->limits.max_srq_wr && num_wqes > max_wr;
}

static int hghca_srq_check_user(struct hghca_dev *hdev, const struct hghca_create_srq *cmd,
				const struct ib_srq_attr *attr)
{
	if (memchr_inv(cmd->reserved, 0, sizeof(cmd->reserved)) ||
	    !hghca_srq_count_is_valid(hdev, cmd->wqe_cnt, attr->max_wr) ||
	    cmd->log_stride < HGHCA_WQE_MIN_STRIDE_LOG ||
	    cmd->log_stride > HGHCA_WQE_MAX_STRIDE_LOG ||
	    hghca_wqe_recv_bytes(attr->max_sge) > BIT(cmd->log_stride))
		return -EINVAL;
	return 0;
}

/* Create the MR of the buffer of a user in the PD of the SRQ.  On an error @umem is released. */
static int hghca_srq_map_user(struct hghca_dev *hdev, const struct hghca_srq *hsrq,
			      struct hghca_queue *queue, struct ib_umem *umem, u32 num_wqes)
{
	int ret;

	if (IS_ERR(umem))
		return PTR_ERR(umem);
	ret = hghca_queue_map_user(hdev, queue, to_hpd(hsrq->ibsrq.pd)->pdn, umem, 0,
				   hghca_srq_bytes(num_wqes, hsrq->log_stride), false);
	if (ret)
		ib_umem_release(umem);
	return ret;
}

/* The buffer is that of an attribute of the method, or without one that of the driver's data. */
static int hghca_srq_init_user(struct hghca_dev *hdev, struct hghca_srq *hsrq,
			       const struct ib_srq_attr *attr, struct ib_udata *udata)
{
	struct hghca_create_srq cmd;
	struct ib_umem *umem;
	int ret;

	hsrq->uctx = rdma_udata_to_drv_context(udata, struct hghca_ucontext, ibuctx);
	ret = ib_copy_validate_udata_in(udata, cmd, reserved);
	if (ret)
		return ret;
	ret = hghca_srq_check_user(hdev, &cmd, attr);
	if (ret) {
		ibdev_dbg(&hdev->ibdev, "SRQ of %u << %u at 0x%llx\n",
			  cmd.wqe_cnt, cmd.log_stride, cmd.buf_addr);
		return ret;
	}
	hsrq->num_wqes = cmd.wqe_cnt;
	hsrq->log_stride = cmd.log_stride;

	umem = ib_umem_get_attr_or_va(&hdev->ibdev, rdma_udata_to_uverbs_attr_bundle(udata),
				      UVERBS_ATTR_CREATE_SRQ_BUF_UMEM, cmd.buf_addr,
				      hghca_srq_bytes(hsrq->num_wqes, hsrq->log_stride), 0);
	ret = hghca_srq_map_user(hdev, hsrq, &hsrq->queue, umem, hsrq->num_wqes);
	if (ret)
		return ret;
	hsrq->umem = umem;

	ret = hghca_dbr_map_user(hdev, &hsrq->uctx->dbr_pages, &hsrq->dbr, cmd.dbr_addr);
	if (ret)
		goto err_free_buffer;
	return 0;

err_free_buffer:
	hghca_srq_free_buffer(hdev, &hsrq->queue, hsrq->umem);
	return ret;
}

/* ------------------------------------------------------------------ */
/* Queues of the kernel                                                 */

/* Initialize the chain: all slots are free, in order. */
static void hghca_srq_init_chain(struct hghca_srq *hsrq)
{
	u32 i;

	for (i = 0; i < hsrq->num_wqes - 1; i++)
		hsrq->slots[i].next = i + 1;
	hsrq->first_free = 0;
	hsrq->last_free = hsrq->num_wqes - 1;
}

static int hghca_srq_init_kernel(struct hghca_dev *hdev, struct hghca_srq *hsrq,
				 const struct ib_srq_attr *attr)
{
	u32 wqe_bytes = max_t(u32, hghca_wqe_recv_bytes(attr->max_sge),
			      BIT(HGHCA_WQE_MIN_STRIDE_LOG));
	int ret;

	hsrq->log_stride = order_base_2(wqe_bytes);
	hsrq->num_wqes = max_t(u32, HGHCA_SRQ_MIN_WQES, roundup_pow_of_two(attr->max_wr + 1));

	hsrq->slots = kvcalloc(hsrq->num_wqes, sizeof(*hsrq->slots), GFP_KERNEL);
	if (!hsrq->slots)
		return -ENOMEM;
	hghca_srq_init_chain(hsrq);

	ret = hghca_queue_alloc(hdev, &hsrq->queue, to_hpd(hsrq->ibsrq.pd)->pdn,
				hghca_srq_bytes(hsrq->num_wqes, hsrq->log_stride), false);
	if (ret)
		goto err_free_slots;

	ret = hghca_dbr_alloc(hdev, &hsrq->dbr);
	if (ret)
		goto err_free_buffer;
	return 0;

err_free_buffer:
	hghca_srq_free_buffer(hdev, &hsrq->queue, NULL);
err_free_slots:
	kvfree(hsrq->slots);
	return ret;
}

/* ------------------------------------------------------------------ */

static int hghca_srq_to_hw(struct hghca_dev *hdev, const struct hghca_srq *hsrq)
{
	struct hghca_srqc srqc = {};

	srqc.srqn = cpu_to_be32(hsrq->hw.srqn);
	srqc.pd = cpu_to_be32(to_hpd(hsrq->ibsrq.pd)->pdn);
	srqc.lkey = cpu_to_be32(hsrq->queue.mr.key);
	srqc.logsize = ilog2(hsrq->num_wqes);
	srqc.entry_sz_log = hsrq->log_stride;
	srqc.dbr_addr = cpu_to_be64(hsrq->dbr.dma | HGHCA_DBR_VALID);
	if (hsrq->ibsrq.srq_type == IB_SRQT_XRC) {
		srqc.flags = cpu_to_be32(HGHCA_SRQ_XRC);
		srqc.xrcd = cpu_to_be32(to_hxrcd(hsrq->ibsrq.ext.xrc.xrcd)->xrcdn);
		srqc.cqn = cpu_to_be32(to_hcq(hsrq->ibsrq.ext.cq)->hw.cqn);
	}
	return hghca_cmd_sw2hw_srq(hdev, hsrq->hw.srqn, &srqc);
}

/* After return the device reads no WQEs, and no event handler runs. */
static void hghca_srq_to_sw(struct hghca_dev *hdev, struct hghca_srq *hsrq)
{
	int ret;

	ret = hghca_cmd_hw2sw_srq(hdev, hsrq->hw.srqn);
	if (ret) {
		ibdev_err(&hdev->ibdev, "failed to destroy SRQ 0x%x: %d\n",
			  hsrq->hw.srqn, ret);
		/* Its memory is freed next.  The device must not read it as WQEs. */
		hghca_dev_fail(hdev, "failed to destroy an SRQ");
	}
	hghca_hwsrq_del(hdev, &hsrq->hw);
}

static void hghca_srq_release(struct hghca_dev *hdev, struct hghca_srq *hsrq)
{
	hghca_dbr_free(hdev, &hsrq->dbr);
	hghca_srq_free_buffer(hdev, &hsrq->queue, hsrq->umem);
	kvfree(hsrq->slots);
	mutex_destroy(&hsrq->modify_lock);
}

/**
 * hghca_create_srq - create an SRQ
 * @ibsrq: the SRQ
 * @init: its type and size, which is set to the granted values; its limit is
 *	ignored
 * @udata: of a user, otherwise NULL
 *
 * Return: 0, -EOPNOTSUPP for a type the device lacks, -EINVAL for values that exceed its
 * limits or are malformed, or an error of an allocation or a command.
 */
int hghca_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init, struct ib_udata *udata)
{
	struct hghca_dev *hdev = to_hdev(ibsrq->device);
	struct hghca_create_srq_resp resp = {};
	struct hghca_srq *hsrq = to_hsrq(ibsrq);
	int ret;

	ret = hghca_srq_check_init(hdev, init, !!udata);
	if (ret)
		return ret;

	mutex_init(&hsrq->modify_lock);
	spin_lock_init(&hsrq->lock);
	hsrq->hw.event = hghca_srq_event;

	ret = udata ? hghca_srq_init_user(hdev, hsrq, &init->attr, udata) :
		      hghca_srq_init_kernel(hdev, hsrq, &init->attr);
	if (ret)
		return ret;
	hghca_srq_set_room(hdev, hsrq, init->attr.max_sge);

	ret = hghca_hwsrq_add(hdev, &hsrq->hw);
	if (ret)
		goto err_release;

	ret = hghca_srq_to_hw(hdev, hsrq);
	if (ret)
		goto err_del_number;

	if (udata) {
		resp.srqn = hsrq->hw.srqn;
		ret = ib_respond_udata(udata, resp);
		if (ret)
			goto err_to_sw;
	}
	if (ibsrq->srq_type == IB_SRQT_XRC)
		ibsrq->ext.xrc.srq_num = hsrq->hw.srqn;
	init->attr.max_wr = hghca_srq_max_wr(hsrq);
	init->attr.max_sge = hsrq->room.max_sge;
	return 0;

err_to_sw:
	hghca_srq_to_sw(hdev, hsrq);
	goto err_release;
err_del_number:
	hghca_hwsrq_del(hdev, &hsrq->hw);
err_release:
	hghca_srq_release(hdev, hsrq);
	return ret;
}

/**
 * hghca_destroy_srq - destroy an SRQ
 * @ibsrq: the SRQ, which no QP uses
 * @udata: of a user, otherwise NULL
 *
 * Return: 0.
 */
int hghca_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct hghca_dev *hdev = to_hdev(ibsrq->device);
	struct hghca_srq *hsrq = to_hsrq(ibsrq);
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	hghca_srq_to_sw(hdev, hsrq);
	hghca_srq_release(hdev, hsrq);
	return 0;
}

/* The user has copied the WQEs, and meanwhile writes new WQEs to both buffers. */
static int hghca_srq_resize(struct hghca_dev *hdev, struct hghca_srq *hsrq, u32 max_wr,
			    struct ib_udata *udata)
{
	struct hghca_resize_srq resize = {};
	struct hghca_queue queue = {};
	struct hghca_modify_srq cmd;
	struct ib_umem *umem;
	int ret;

	ret = ib_copy_validate_udata_in(udata, cmd, reserved);
	if (ret)
		return ret;
	if (cmd.reserved || !hghca_srq_count_is_valid(hdev, cmd.wqe_cnt, max_wr) ||
	    cmd.wqe_cnt < hsrq->num_wqes) {
		ibdev_dbg(&hdev->ibdev, "SRQ 0x%x: %u WQEs for %u are not possible\n",
			  hsrq->hw.srqn, cmd.wqe_cnt, max_wr);
		return -EINVAL;
	}

	umem = ib_umem_get_va(&hdev->ibdev, cmd.buf_addr,
			      hghca_srq_bytes(cmd.wqe_cnt, hsrq->log_stride), 0);
	ret = hghca_srq_map_user(hdev, hsrq, &queue, umem, cmd.wqe_cnt);
	if (ret)
		return ret;

	resize.logsize = ilog2(cmd.wqe_cnt);
	resize.lkey = cpu_to_be32(queue.mr.key);
	ret = hghca_cmd_resize_srq(hdev, hsrq->hw.srqn, &resize);
	if (!ret) {
		swap(hsrq->queue, queue);
		swap(hsrq->umem, umem);
		hsrq->num_wqes = cmd.wqe_cnt;
	}
	/* The old buffer, or after an error the new one. */
	hghca_srq_free_buffer(hdev, &queue, umem);
	return ret;
}

static int hghca_modify_srq_locked(struct hghca_srq *hsrq, const struct ib_srq_attr *attr,
				   int attr_mask, struct ib_udata *udata)
{
	u32 max_wr = attr_mask & IB_SRQ_MAX_WR ? attr->max_wr : hghca_srq_max_wr(hsrq);
	struct hghca_dev *hdev = to_hdev(hsrq->ibsrq.device);
	int ret;

	lockdep_assert_held(&hsrq->modify_lock);

	if (max_wr > hdev->limits.max_srq_wr ||
	    (attr_mask & IB_SRQ_LIMIT && attr->srq_limit > max_wr)) {
		ibdev_dbg(&hdev->ibdev, "SRQ 0x%x: %u WQEs, limit %u are not possible\n",
			  hsrq->hw.srqn, max_wr, attr->srq_limit);
		return -EINVAL;
	}

	if (attr_mask & IB_SRQ_LIMIT) {
		ret = hghca_cmd_arm_srq(hdev, hsrq->hw.srqn, attr->srq_limit);
		if (ret)
			return ret;
	}
	/* Last, because after an error the user continues with the old buffer. */
	if (attr_mask & IB_SRQ_MAX_WR)
		return hghca_srq_resize(hdev, hsrq, max_wr, udata);
	return 0;
}

/**
 * hghca_modify_srq - resize an SRQ, or arm its limit
 * @ibsrq: the SRQ
 * @attr: new values
 * @attr_mask: attributes to set; with both, the limit is set first, and it stays set
 *	if the size is refused
 * @udata: of a user, otherwise NULL
 *
 * Return: 0, -EOPNOTSUPP for the resize of a kernel SRQ, -EINVAL for an invalid or
 * malformed value, or an error of an allocation or a command.
 */
int hghca_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		     enum ib_srq_attr_mask attr_mask, struct ib_udata *udata)
{
	struct hghca_srq *hsrq = to_hsrq(ibsrq);
	int ret;

	if (attr_mask & ~(IB_SRQ_MAX_WR | IB_SRQ_LIMIT))
		return -EINVAL;
	if (attr_mask & IB_SRQ_MAX_WR && !udata)
		return -EOPNOTSUPP;
	/* hghca_srq_resize() takes the input. */
	ret = attr_mask & IB_SRQ_MAX_WR ? ib_respond_empty_udata(udata) : ib_no_udata_io(udata);
	if (ret)
		return ret;

	mutex_lock(&hsrq->modify_lock);
	ret = hghca_modify_srq_locked(hsrq, attr, attr_mask, udata);
	mutex_unlock(&hsrq->modify_lock);
	return ret;
}

/**
 * hghca_query_srq - query size and limit of an SRQ
 * @ibsrq: the SRQ
 * @attr: output; the limit is 0 after it was reached
 *
 * Return: 0, or an error of the command.
 */
int hghca_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct hghca_srq *hsrq = to_hsrq(ibsrq);
	struct hghca_srqc srqc;
	int ret;

	ret = hghca_cmd_query_srq(to_hdev(ibsrq->device), hsrq->hw.srqn, &srqc);
	if (ret)
		return ret;

	mutex_lock(&hsrq->modify_lock);
	attr->max_wr = hghca_srq_max_wr(hsrq);
	mutex_unlock(&hsrq->modify_lock);
	attr->max_sge = hsrq->room.max_sge;
	attr->srq_limit = be16_to_cpu(srqc.limit);
	return 0;
}

/* ------------------------------------------------------------------ */
/* The chain of a kernel SRQ                                            */

static int hghca_srq_post_one(struct hghca_srq *hsrq, const struct ib_recv_wr *wr)
{
	u32 number = hsrq->first_free;
	struct hghca_srq_slot *slot = &hsrq->slots[number];
	struct hghca_next_unit *wqe = hghca_queue_at(&hsrq->queue, number << hsrq->log_stride);
	int ret;

	lockdep_assert_held(&hsrq->lock);

	if (number == hsrq->last_free)
		return -ENOMEM;
	ret = hghca_wqe_encode_recv(wqe, &hsrq->room, wr, &slot->length);
	if (ret)
		return ret;

	wqe->nda_nop = cpu_to_le32(slot->next << hsrq->log_stride);
	slot->wr_id = wr->wr_id;
	slot->posted = true;
	hsrq->first_free = slot->next;
	hsrq->posted++;
	return 0;
}

/**
 * hghca_post_srq_recv - post a list of receives to an SRQ
 * @ibsrq: a kernel SRQ
 * @wr: the list
 * @bad_wr: output: the first request that was not posted
 *
 * Any context.
 *
 * Return: 0, -EINVAL for an invalid request, or -ENOMEM if the queue is full.  Requests
 * before *@bad_wr are posted.
 */
int hghca_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			const struct ib_recv_wr **bad_wr)
{
	struct hghca_srq *hsrq = to_hsrq(ibsrq);
	unsigned long flags;
	u32 posted;
	int ret = 0;

	spin_lock_irqsave(&hsrq->lock, flags);
	posted = hsrq->posted;
	for (; wr; wr = wr->next) {
		ret = hghca_srq_post_one(hsrq, wr);
		if (ret) {
			*bad_wr = wr;
			break;
		}
	}
	if (hsrq->posted != posted) {
		/* The WQEs and their links must be in memory before the record counts them. */
		dma_wmb();
		WRITE_ONCE(*hsrq->dbr.record, cpu_to_le32(hsrq->posted));
	}
	spin_unlock_irqrestore(&hsrq->lock, flags);
	return ret;
}

/**
 * hghca_srq_complete - return a WQE that the device has consumed
 * @hsrq: a kernel SRQ
 * @offset: byte offset of the WQE; from the device, so it is checked
 * @wr: output: the posted request
 *
 * Context: any, interrupts off; the CQ's lock is held.
 *
 * Return: 0, or -EINVAL for an offset without a posted WQE.
 */
int hghca_srq_complete(struct hghca_srq *hsrq, u32 offset, struct hghca_wr *wr)
{
	u32 number = offset >> hsrq->log_stride;
	struct hghca_srq_slot *slot;
	int ret = -EINVAL;

	if (number >= hsrq->num_wqes || offset & (BIT(hsrq->log_stride) - 1))
		return -EINVAL;
	slot = &hsrq->slots[number];

	spin_lock(&hsrq->lock);
	if (slot->posted) {
		*wr = (struct hghca_wr) {
			.wr_id = slot->wr_id,
			.length = slot->length,
		};
		slot->posted = false;
		hsrq->slots[hsrq->last_free].next = number;
		hsrq->last_free = number;
		ret = 0;
	}
	spin_unlock(&hsrq->lock);
	return ret;
}
