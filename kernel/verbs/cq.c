// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* JingZhao HCA: completion queues. */

#include <linux/log2.h>

#include "verbs/verbs.h"

#define HGHCA_CQ_MIN_LOG	1

static size_t hghca_cq_bytes(const struct hghca_cq *hcq, u32 log_size)
{
	return ALIGN(BIT(hcq->log_cqe + log_size), PAGE_SIZE);
}

/* log2 of the entries for @cqe CQEs; one more entry distinguishes full from empty. */
static u32 hghca_cq_log_size(u32 cqe)
{
	return max_t(u32, HGHCA_CQ_MIN_LOG, ilog2(roundup_pow_of_two(cqe + 1)));
}

static void hghca_cq_call_handler(struct hghca_cq *hcq)
{
	struct ib_cq *ibcq = &hcq->ibcq;
	/* ib_alloc_cq() sets it after creation.  Until then the CQ is not armed. */
	ib_comp_handler handler = READ_ONCE(ibcq->comp_handler);

	if (handler)
		handler(ibcq, ibcq->cq_context);
}

/**
 * hghca_cq_completion - handle a completion event of a CQ
 * @hwcq: the CQ
 *
 * Interrupt context.
 */
void hghca_cq_completion(struct hghca_hwcq *hwcq)
{
	struct hghca_cq *hcq = container_of(hwcq, struct hghca_cq, hw);

	if (hghca_cq_takes_event(hcq))
		hghca_cq_call_handler(hcq);
}

/* For a completion that came before the CQ was armed. */
static void hghca_cq_event_work(struct work_struct *work)
{
	/* As in an interrupt: a softirq that the handler raises runs at the end. */
	local_bh_disable();
	hghca_cq_call_handler(container_of(work, struct hghca_cq, event_work));
	local_bh_enable();
}

/**
 * hghca_cq_event - handle a CQ_ERROR event
 * @hwcq: the CQ
 * @syndrome: HGHCA_CQ_ERROR_*
 *
 * Interrupt context.
 */
void hghca_cq_event(struct hghca_hwcq *hwcq, u8 syndrome)
{
	struct ib_cq *ibcq = &container_of(hwcq, struct hghca_cq, hw)->ibcq;
	struct ib_event event = {
		.device = ibcq->device,
		.element.cq = ibcq,
		.event = IB_EVENT_CQ_ERR,
	};

	ibdev_err_ratelimited(ibcq->device, "CQ 0x%x failed: %s\n", hwcq->cqn,
			      syndrome == HGHCA_CQ_ERROR_OVERRUN ?
			      "overrun" : "no access to its buffer");
	if (ibcq->event_handler)
		ibcq->event_handler(&event, ibcq->cq_context);
}

/* Create the MR of the buffer of a user.  On an error @umem is released. */
static int hghca_cq_map_user(struct hghca_dev *hdev, const struct hghca_cq *hcq,
			     struct hghca_queue *queue, struct ib_umem *umem, u32 log_size)
{
	int ret;

	if (IS_ERR(umem))
		return PTR_ERR(umem);
	ret = hghca_queue_map_user(hdev, queue, hdev->pdn, umem, 0,
				   hghca_cq_bytes(hcq, log_size), true);
	if (ret) {
		ibdev_dbg(&hdev->ibdev, "failed to map a CQ buffer at 0x%lx: %d\n",
			  umem->address, ret);
		ib_umem_release(umem);
	}
	return ret;
}

/* Allocate a kernel buffer.  The device owns all entries. */
static int hghca_cq_alloc_kernel(struct hghca_dev *hdev, const struct hghca_cq *hcq,
				 struct hghca_queue *queue, u32 log_size)
{
	int ret;

	ret = hghca_queue_alloc(hdev, queue, hdev->pdn, hghca_cq_bytes(hcq, log_size), true);
	if (ret)
		return ret;
	hghca_cq_hand_over(queue, log_size);
	return 0;
}

static void hghca_cq_free_buffer(struct hghca_dev *hdev, struct hghca_queue *queue,
				 struct ib_umem *umem)
{
	hghca_queue_free(hdev, queue);
	ib_umem_release(umem);	/* NULL: a kernel buffer */
}

/* The buffer is that of an attribute of the method, or without one that of the driver's data. */
static int hghca_cq_init_user(struct hghca_dev *hdev, struct hghca_cq *hcq,
			      struct uverbs_attr_bundle *attrs)
{
	struct ib_udata *udata = &attrs->driver_udata;
	struct hghca_create_cq cmd;
	struct ib_umem *umem;
	int ret;

	hcq->uctx = rdma_udata_to_drv_context(udata, struct hghca_ucontext, ibuctx);
	ret = ib_copy_validate_udata_in(udata, cmd, dbr_addr);
	if (ret)
		return ret;

	umem = ib_umem_get_cq_buf_or_va(&hdev->ibdev, attrs, cmd.buf_addr,
					hghca_cq_bytes(hcq, hcq->log_size), IB_ACCESS_LOCAL_WRITE);
	ret = hghca_cq_map_user(hdev, hcq, &hcq->queue, umem, hcq->log_size);
	if (ret)
		return ret;
	hcq->umem = umem;

	ret = hghca_dbr_map_user(hdev, &hcq->uctx->dbr_pages, &hcq->dbr, cmd.dbr_addr);
	if (ret)
		goto err_free_buffer;
	return 0;

err_free_buffer:
	hghca_cq_free_buffer(hdev, &hcq->queue, hcq->umem);
	return ret;
}

static int hghca_cq_init_kernel(struct hghca_dev *hdev, struct hghca_cq *hcq)
{
	int ret;

	ret = hghca_cq_alloc_kernel(hdev, hcq, &hcq->queue, hcq->log_size);
	if (ret)
		return ret;

	ret = hghca_dbr_alloc(hdev, &hcq->dbr);
	if (ret)
		goto err_free_buffer;
	return 0;

err_free_buffer:
	hghca_cq_free_buffer(hdev, &hcq->queue, NULL);
	return ret;
}

static int hghca_cq_to_hw(struct hghca_dev *hdev, const struct hghca_cq *hcq,
			  u32 comp_vector)
{
	struct hghca_cqc cqc = {};
	u32 usrpage = hcq->uctx ? hcq->uctx->uar.index : 0;
	/* The device addresses the buffer through its MR, as that of an EQ. */
	u32 flags = HGHCA_CQ_FLAG_TR;

	if (hcq->log_cqe == ilog2(sizeof(struct hghca_timed_cqe)))
		flags |= HGHCA_CQ_FLAG_TIMESTAMP;
	cqc.flags = cpu_to_be32(flags);
	cqc.logsize_usrpage =
		cpu_to_be32(FIELD_PREP(HGHCA_CQC_LOGSIZE_MASK, hcq->log_size) |
			    FIELD_PREP(HGHCA_CQC_USRPAGE_MASK, usrpage));
	cqc.comp_eqn = cpu_to_be32(hghca_comp_eqn(hdev, comp_vector));
	cqc.pd = cpu_to_be32(hdev->pdn);
	cqc.lkey = cpu_to_be32(hcq->queue.mr.key);
	cqc.cqn = cpu_to_be32(hcq->hw.cqn);
	if (hdev->limits.caps & HGHCA_CAP_DBR)
		cqc.dbr_addr = cpu_to_be64(hcq->dbr.dma | HGHCA_DBR_VALID);
	return hghca_cmd_sw2hw_cq(hdev, hcq->hw.cqn, &cqc);
}

/* After return the device writes no completions, and no event handler runs. */
static void hghca_cq_to_sw(struct hghca_dev *hdev, struct hghca_cq *hcq)
{
	int ret;

	ret = hghca_cmd_hw2sw_cq(hdev, hcq->hw.cqn);
	if (ret) {
		ibdev_err(&hdev->ibdev, "failed to destroy CQ 0x%x: %d\n",
			  hcq->hw.cqn, ret);
		/* Its memory is freed next. The device must not write there. */
		hghca_dev_fail(hdev, "failed to destroy a CQ");
	}
	hghca_hwcq_del(hdev, &hcq->hw);
	cancel_work_sync(&hcq->event_work);
}

static void hghca_cq_release(struct hghca_dev *hdev, struct hghca_cq *hcq)
{
	hghca_dbr_free(hdev, &hcq->dbr);
	hghca_cq_free_buffer(hdev, &hcq->queue, hcq->umem);
	xa_destroy(&hcq->qps);
	mutex_destroy(&hcq->resize_lock);
}

/* Without its buffer. */
static int hghca_cq_init(struct hghca_dev *hdev, struct hghca_cq *hcq,
			 const struct ib_cq_init_attr *attr)
{
	if (!attr->cqe || attr->cqe > hdev->limits.max_cqe ||
	    attr->comp_vector >= hdev->num_comp_eqs) {
		ibdev_dbg(&hdev->ibdev, "CQ of %u CQEs, vector %u is not possible\n",
			  attr->cqe, attr->comp_vector);
		return -EINVAL;
	}

	hcq->log_cqe = ilog2(sizeof(struct hghca_cqe));
	mutex_init(&hcq->resize_lock);
	spin_lock_init(&hcq->lock);
	INIT_WORK(&hcq->event_work, hghca_cq_event_work);
	xa_init_flags(&hcq->qps, XA_FLAGS_LOCK_IRQ);
	hcq->log_size = hghca_cq_log_size(attr->cqe);
	hcq->hw.comp = hghca_cq_completion;
	hcq->hw.event = hghca_cq_event;
	return 0;
}

/* With its buffer, which it loses if this fails. */
static int hghca_cq_start(struct hghca_dev *hdev, struct hghca_cq *hcq, u32 comp_vector)
{
	int ret;

	ret = hghca_hwcq_add(hdev, &hcq->hw);
	if (ret)
		goto err_release;

	ret = hghca_cq_to_hw(hdev, hcq, comp_vector);
	if (ret)
		goto err_del_number;

	hcq->ibcq.cqe = BIT(hcq->log_size) - 1;
	return 0;

err_del_number:
	hghca_hwcq_del(hdev, &hcq->hw);
err_release:
	hghca_cq_release(hdev, hcq);
	return ret;
}

/**
 * hghca_create_cq - create a CQ of the kernel
 * @ibcq: the CQ
 * @attr: its size and vector
 * @attrs: NULL
 *
 * Return: 0, -EINVAL for an invalid size or vector, -EOPNOTSUPP
 * for flags, or an error of an allocation or a command.
 */
int hghca_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		    struct uverbs_attr_bundle *attrs)
{
	struct hghca_dev *hdev = to_hdev(ibcq->device);
	struct hghca_cq *hcq = to_hcq(ibcq);
	int ret;

	if (attr->flags)
		return -EOPNOTSUPP;
	ret = hghca_cq_init(hdev, hcq, attr);
	if (ret)
		return ret;

	ret = hghca_cq_init_kernel(hdev, hcq);
	return ret ?: hghca_cq_start(hdev, hcq, attr->comp_vector);
}

/**
 * hghca_create_user_cq - create a CQ of a process
 * @ibcq: the CQ
 * @attr: its size, vector and flags
 * @attrs: with its buffer, or the address of that
 *
 * Return: 0, -EINVAL for an invalid size, vector or address, -EOPNOTSUPP for
 * flags that the device lacks, or an error of an allocation or a command.
 */
int hghca_create_user_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
			 struct uverbs_attr_bundle *attrs)
{
	struct hghca_dev *hdev = to_hdev(ibcq->device);
	struct hghca_create_cq_resp resp = {};
	struct hghca_cq *hcq = to_hcq(ibcq);
	int ret;

	if (attr->flags & ~IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION ||
	    (attr->flags && !(hdev->limits.caps & HGHCA_CAP_CLOCK)))
		return -EOPNOTSUPP;
	ret = hghca_cq_init(hdev, hcq, attr);
	if (ret)
		return ret;

	if (attr->flags)
		hcq->log_cqe = ilog2(sizeof(struct hghca_timed_cqe));
	ret = hghca_cq_init_user(hdev, hcq, attrs);
	if (ret)
		return ret;

	ret = hghca_cq_start(hdev, hcq, attr->comp_vector);
	if (ret)
		return ret;

	resp.cqn = hcq->hw.cqn;
	ret = ib_respond_udata(&attrs->driver_udata, resp);
	if (ret) {
		hghca_cq_to_sw(hdev, hcq);
		hghca_cq_release(hdev, hcq);
	}
	return ret;
}

/**
 * hghca_pre_destroy_cq - end completions and events of a CQ
 * @ibcq: the CQ
 *
 * The poller may still run: it finds no more CQEs and does not arm the CQ.
 *
 * Return: 0.
 */
int hghca_pre_destroy_cq(struct ib_cq *ibcq)
{
	struct hghca_cq *hcq = to_hcq(ibcq);
	unsigned long flags;

	spin_lock_irqsave(&hcq->lock, flags);
	hcq->dead = true;	/* the CQN may be another CQ's soon */
	spin_unlock_irqrestore(&hcq->lock, flags);

	hghca_cq_to_sw(to_hdev(ibcq->device), hcq);
	return 0;
}

/**
 * hghca_post_destroy_cq - free a CQ after hghca_pre_destroy_cq()
 * @ibcq: the CQ, which is not polled any more
 */
void hghca_post_destroy_cq(struct ib_cq *ibcq)
{
	hghca_cq_release(to_hdev(ibcq->device), to_hcq(ibcq));
}

/**
 * hghca_destroy_cq - destroy a CQ
 * @ibcq: the CQ, which no QP uses
 * @udata: of a user
 *
 * Return: 0.
 */
int hghca_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	int err = ib_no_udata_io(udata);

	if (err)
		return err;
	hghca_pre_destroy_cq(ibcq);
	hghca_post_destroy_cq(ibcq);
	return 0;
}

static int hghca_cq_resize_hw(struct hghca_dev *hdev, const struct hghca_cq *hcq,
			      const struct hghca_queue *queue, u32 log_size)
{
	struct hghca_resize_cq resize = {};
	int ret;

	resize.logsize = cpu_to_be32(FIELD_PREP(HGHCA_CQC_LOGSIZE_MASK, log_size));
	resize.lkey = cpu_to_be32(queue->mr.key);
	ret = hghca_cmd_resize_cq(hdev, hcq->hw.cqn, &resize);
	if (ret != -ENOSPC)
		return ret;
	/* Unpolled CQEs do not fit a smaller buffer. */
	return log_size < hcq->log_size ? -EINVAL : -ENOMEM;
}

/* Meanwhile the user polls both buffers, and then moves the CQEs it has not consumed. */
static int hghca_cq_resize_user(struct hghca_dev *hdev, struct hghca_cq *hcq,
				u32 log_size, struct ib_udata *udata)
{
	struct hghca_resize_cq_cmd cmd;
	struct hghca_queue queue = {};
	struct ib_umem *umem;
	int ret;

	ret = ib_copy_validate_udata_in(udata, cmd, buf_addr);
	if (!ret)
		ret = ib_respond_empty_udata(udata);
	if (ret)
		return ret;

	umem = ib_umem_get_va(&hdev->ibdev, cmd.buf_addr, hghca_cq_bytes(hcq, log_size),
			      IB_ACCESS_LOCAL_WRITE);
	ret = hghca_cq_map_user(hdev, hcq, &queue, umem, log_size);
	if (ret)
		return ret;

	ret = hghca_cq_resize_hw(hdev, hcq, &queue, log_size);
	if (ret)
		goto err_free_buffer;

	swap(hcq->queue, queue);
	swap(hcq->umem, umem);
	hcq->log_size = log_size;
	hghca_cq_free_buffer(hdev, &queue, umem);
	return 0;

err_free_buffer:
	hghca_cq_free_buffer(hdev, &queue, umem);
	return ret;
}

/*
 * The command sleeps, so the lock is not held and the CQ can be polled meanwhile.  The
 * poller reads both buffers; see hghca_cq_next().
 */
static int hghca_cq_resize_kernel(struct hghca_dev *hdev, struct hghca_cq *hcq,
				  u32 log_size)
{
	struct hghca_queue queue = {};
	int ret;

	ret = hghca_cq_alloc_kernel(hdev, hcq, &queue, log_size);
	if (ret)
		return ret;

	spin_lock_irq(&hcq->lock);
	hcq->resize = &queue;
	hcq->resize_log_size = log_size;
	spin_unlock_irq(&hcq->lock);

	ret = hghca_cq_resize_hw(hdev, hcq, &queue, log_size);

	spin_lock_irq(&hcq->lock);
	if (!ret)
		hghca_cq_switch(hcq);	/* queue is now the old one */
	hcq->resize = NULL;
	spin_unlock_irq(&hcq->lock);

	hghca_queue_free(hdev, &queue);
	return ret;
}

/**
 * hghca_cq_reserve - make room for the CQEs of unsignaled sends
 * @hcq: a kernel CQ
 * @cqes: their number
 *
 * A device with HGHCA_CAP_CQ_UPDATE generates none.
 *
 * Return: 0, -EINVAL for a CQ beyond the limit of the device, or an error of an allocation
 * or a command.
 */
int hghca_cq_reserve(struct hghca_cq *hcq, u32 cqes)
{
	struct hghca_dev *hdev = to_hdev(hcq->ibcq.device);
	u32 total, log_size;
	int ret = 0;

	if (hdev->limits.caps & HGHCA_CAP_CQ_UPDATE)
		return 0;

	mutex_lock(&hcq->resize_lock);
	total = hcq->ibcq.cqe + hcq->reserved + cqes;
	if (total > hdev->limits.max_cqe) {
		ibdev_dbg(&hdev->ibdev, "CQ 0x%x has no room for the CQEs of all sends\n",
			  hcq->hw.cqn);
		ret = -EINVAL;
		goto out;
	}
	log_size = hghca_cq_log_size(total);
	if (log_size > hcq->log_size)
		ret = hghca_cq_resize_kernel(hdev, hcq, log_size);
	if (!ret)
		hcq->reserved += cqes;
out:
	mutex_unlock(&hcq->resize_lock);
	return ret;
}

/**
 * hghca_cq_unreserve - undo hghca_cq_reserve()
 * @hcq: the CQ, which keeps its size
 * @cqes: their number
 */
void hghca_cq_unreserve(struct hghca_cq *hcq, u32 cqes)
{
	if (to_hdev(hcq->ibcq.device)->limits.caps & HGHCA_CAP_CQ_UPDATE)
		return;

	mutex_lock(&hcq->resize_lock);
	hcq->reserved -= cqes;
	mutex_unlock(&hcq->resize_lock);
}

/**
 * hghca_resize_user_cq - resize a CQ
 * @ibcq: the CQ
 * @cqe: minimum number of CQEs
 * @udata: of a user, otherwise NULL
 *
 * Return: 0, -EINVAL for a size that is invalid or too small for the unpolled
 * completions, or an error of an allocation or a command.
 */
int hghca_resize_user_cq(struct ib_cq *ibcq, unsigned int cqe, struct ib_udata *udata)
{
	struct hghca_dev *hdev = to_hdev(ibcq->device);
	struct hghca_cq *hcq = to_hcq(ibcq);
	u32 log_size;
	int ret;

	if (!cqe || cqe > hdev->limits.max_cqe) {
		ibdev_dbg(ibcq->device, "CQ of %u CQEs is not possible\n", cqe);
		return -EINVAL;
	}

	mutex_lock(&hcq->resize_lock);
	log_size = hghca_cq_log_size(cqe + hcq->reserved);
	if (udata)
		ret = hghca_cq_resize_user(hdev, hcq, log_size, udata);
	else if (log_size == hcq->log_size)
		ret = 0;
	else
		ret = hghca_cq_resize_kernel(hdev, hcq, log_size);
	if (!ret)
		ibcq->cqe = BIT(log_size) - 1 - hcq->reserved;
	mutex_unlock(&hcq->resize_lock);
	return ret;
}

/**
 * hghca_modify_cq - set the moderation of completion events of a CQ
 * @ibcq: the CQ
 * @count: number of completions before an event
 * @period: maximum delay of the event after the first completion, in us
 *
 * If either is 0, events are not delayed.  The period of a CQ of the kernel is out of a table
 * of ib_core, and is multiplied by what the device asks for.
 *
 * Return: 0 or a negative errno.
 */
int hghca_modify_cq(struct ib_cq *ibcq, u16 count, u16 period)
{
	u32 scale = to_hdev(ibcq->device)->limits.moderation_scale;

	if (!ibcq->uobject)
		period = min_t(u32, period * scale, U16_MAX);
	return hghca_cmd_moderate_cq(to_hdev(ibcq->device), to_hcq(ibcq)->hw.cqn, count, period);
}
