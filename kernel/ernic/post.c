// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ERNIC and ETRNIC: posting.
 *
 * A WQE names one range of bus addresses.  If the memory of a work request is such a
 * range, the WQE names it; otherwise a bounce buffer, which is copied when a SEND or WRITE
 * is posted, and when a READ completes.
 */
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "ernic.h"

static bool plain_send;
module_param(plain_send, bool, 0444);
MODULE_PARM_DESC(plain_send, "On an ETRNIC, a SEND with Invalidate of the kernel is a SEND (default N)");

/* What a send is for verbs and for the hardware. */
struct ernic_operation {
	enum ib_wr_opcode verb;
	enum ib_wc_opcode completion;
	u8 opcode;
	bool is_send;
	bool ernic_only;
};

static const struct ernic_operation ernic_operations[] = {
	{ IB_WR_SEND, IB_WC_SEND, ERNIC_OPCODE_SEND, true, false },
	{ IB_WR_SEND_WITH_IMM, IB_WC_SEND, ERNIC_OPCODE_SEND_IMM, true, true },
	{ IB_WR_SEND_WITH_INV, IB_WC_SEND, ERNIC_OPCODE_SEND_INV, true, true },
	{ IB_WR_RDMA_WRITE, IB_WC_RDMA_WRITE, ERNIC_OPCODE_WRITE, false, false },
	{ IB_WR_RDMA_WRITE_WITH_IMM, IB_WC_RDMA_WRITE, ERNIC_OPCODE_WRITE_IMM, false, true },
	{ IB_WR_RDMA_READ, IB_WC_RDMA_READ, ERNIC_OPCODE_READ, false, false },
};

static const struct ernic_operation *ernic_find_operation(const struct ernic_qp *qp,
							  enum ib_wr_opcode verb)
{
	u32 i;

	/*
	 * The NVMe target sends its response so, because the host asks for it.  A host
	 * invalidates what the response has not invalidated.
	 */
	if (verb == IB_WR_SEND_WITH_INV && plain_send && !qp->edev->is_ernic && !qp->user)
		verb = IB_WR_SEND;
	for (i = 0; i < ARRAY_SIZE(ernic_operations); i++) {
		if (ernic_operations[i].verb != verb)
			continue;
		if (ernic_operations[i].ernic_only && !qp->edev->is_ernic)
			return NULL;
		if (ernic_is_gsi(qp) && verb != IB_WR_SEND)
			return NULL;
		return &ernic_operations[i];
	}
	return NULL;
}

/* ------------------------------------------------------------------ */
/* Memory of a send                                                    */

/* A process posts in its own context. */
static gfp_t ernic_gfp(const struct ernic_qp *qp)
{
	return (qp->user ? GFP_KERNEL : GFP_ATOMIC) | __GFP_NOWARN;
}

static int ernic_map(struct ernic_qp *qp, struct ernic_swqe *swqe, void *memory, u32 bytes,
		     enum dma_data_direction dir)
{
	struct device *sysdev = qp->edev->func->sysdev;

	swqe->dma = dma_map_single(sysdev, memory, bytes, dir);
	if (dma_mapping_error(sysdev, swqe->dma))
		return -ENOMEM;
	swqe->mapped = bytes;
	swqe->dir = dir;
	return 0;
}

/* IB_SEND_INLINE: the parts are addresses of the caller, without L_Keys. */
static int ernic_copy_inline(struct ernic_qp *qp, const struct ib_send_wr *wr, u8 *to)
{
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		const struct ib_sge *sge = &wr->sg_list[i];

		if (!qp->user)
			memcpy(to, (void *)(uintptr_t)sge->addr, sge->length);
		else if (copy_from_user(to, u64_to_user_ptr(sge->addr), sge->length))
			return -EFAULT;
		to += sge->length;
	}
	return 0;
}

static int ernic_gather(struct ernic_qp *qp, const struct ib_send_wr *wr,
			struct ernic_swqe *swqe, void *to)
{
	if (wr->send_flags & IB_SEND_INLINE)
		return ernic_copy_inline(qp, wr, to);
	ernic_sges_copy(swqe->sge, swqe->num_sge, to, swqe->length, false);
	return 0;
}

/* Memory that the WQE can name as it is. */
static bool ernic_is_direct(struct ernic_qp *qp, const struct ib_send_wr *wr,
			    const struct ernic_swqe *swqe)
{
	const struct ernic_sge *sge = swqe->sge;

	if (wr->send_flags & IB_SEND_INLINE || swqe->num_sge != 1)
		return false;
	return sge->mr || virt_addr_valid(ib_virt_dma_to_ptr(sge->addr));
}

static int ernic_bounce(struct ernic_qp *qp, const struct ib_send_wr *wr,
			struct ernic_swqe *swqe, enum dma_data_direction dir)
{
	int err;

	if (swqe->length > KMALLOC_MAX_SIZE)
		return -ENOMEM;
	swqe->bounce = kmalloc(swqe->length, ernic_gfp(qp));
	if (!swqe->bounce)
		return -ENOMEM;
	swqe->scatter = dir == DMA_FROM_DEVICE;
	if (!swqe->scatter) {
		err = ernic_gather(qp, wr, swqe, swqe->bounce);
		if (err)
			return err;
	}
	return ernic_map(qp, swqe, swqe->bounce, swqe->length, dir);
}

/* Give the WQE its data, or the address of it. */
static int ernic_place_data(struct ernic_qp *qp, const struct ib_send_wr *wr,
			    const struct ernic_operation *operation, struct ernic_swqe *swqe,
			    struct ernic_wqe *wqe)
{
	enum dma_data_direction dir = operation->opcode == ERNIC_OPCODE_READ ? DMA_FROM_DEVICE :
									       DMA_TO_DEVICE;
	int err;

	if (operation->is_send && swqe->length <= ERNIC_SDATA_BYTES)
		return ernic_gather(qp, wr, swqe, wqe->sdata);
	if (!swqe->length)
		return 0;
	if (ernic_is_direct(qp, wr, swqe)) {
		if (!swqe->sge->mr)
			err = ernic_map(qp, swqe, ib_virt_dma_to_ptr(swqe->sge->addr),
					swqe->length, dir);
		else if (ernic_sge_bus(swqe->sge, &swqe->dma))
			err = 0;
		else
			err = ernic_bounce(qp, wr, swqe, dir);
	} else {
		err = ernic_bounce(qp, wr, swqe, dir);
	}
	wqe->laddr[0] = cpu_to_le32(lower_32_bits(swqe->dma));
	wqe->laddr[1] = cpu_to_le32(upper_32_bits(swqe->dma));
	return err;
}

/* QP 1: a WQE is a whole frame. */
static int ernic_place_frame(struct ernic_qp *qp, const struct ib_send_wr *wr,
			     struct ernic_swqe *swqe, struct ernic_wqe *wqe)
{
	u32 bytes;
	int err;

	err = ernic_gsi_frame(qp, wr, swqe->sge, swqe->length, &swqe->bounce, &bytes);
	if (err)
		return err;
	err = ernic_map(qp, swqe, swqe->bounce, bytes, DMA_TO_DEVICE);
	wqe->laddr[0] = cpu_to_le32(lower_32_bits(swqe->dma));
	wqe->laddr[1] = cpu_to_le32(upper_32_bits(swqe->dma));
	wqe->length = cpu_to_le32(bytes);
	return err;
}

/* ------------------------------------------------------------------ */
/* Sends                                                               */

static int ernic_hold_data(struct ernic_qp *qp, const struct ib_send_wr *wr,
			   const struct ernic_operation *operation, struct ernic_swqe *swqe)
{
	bool reads = operation->opcode == ERNIC_OPCODE_READ;
	u64 length = 0;
	int i;

	if (wr->num_sge < 0 || wr->num_sge > qp->max_sge)
		return -EINVAL;
	for (i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	/* The hardware has no empty SEND. */
	if (length > ERNIC_MAX_LENGTH || (operation->is_send && !length))
		return -EINVAL;
	if (wr->send_flags & IB_SEND_INLINE) {
		if (reads)
			return -EINVAL;
		if (length > ERNIC_MAX_INLINE)
			return -EINVAL;
	} else if (ernic_sges_hold(qp, swqe->sge, wr->sg_list, wr->num_sge, reads)) {
		swqe->num_sge = wr->num_sge;
	} else {
		swqe->status = IB_WC_LOC_PROT_ERR;
	}
	swqe->length = length;
	return 0;
}

static void ernic_describe_peer(const struct ib_send_wr *wr,
				const struct ernic_operation *operation, struct ernic_wqe *wqe)
{
	if (!operation->is_send) {
		u64 address = rdma_wr(wr)->remote_addr;

		wqe->roffset[0] = cpu_to_le32(lower_32_bits(address));
		wqe->roffset[1] = cpu_to_le32(upper_32_bits(address));
		wqe->rtag = cpu_to_le32(rdma_wr(wr)->rkey);
	}
	if (operation->opcode == ERNIC_OPCODE_SEND_INV)
		wqe->rtag = cpu_to_le32(wr->ex.invalidate_rkey);
	else if (wr->opcode == IB_WR_SEND_WITH_IMM || wr->opcode == IB_WR_RDMA_WRITE_WITH_IMM)
		wqe->imm = wr->ex.imm_data;
}

/* Make the WQE of a work request.  Nothing is locked. */
static int ernic_prepare_send(struct ernic_qp *qp, const struct ib_send_wr *wr,
			      struct ernic_swqe *swqe, struct ernic_wqe *wqe)
{
	const struct ernic_operation *operation = ernic_find_operation(qp, wr->opcode);
	int err;

	if (!operation)
		return -EOPNOTSUPP;
	swqe->wr_id = wr->wr_id;
	swqe->opcode = operation->completion;
	swqe->hw_opcode = operation->opcode;
	swqe->signaled = qp->sig_all || wr->send_flags & IB_SEND_SIGNALED;
	swqe->fence = wr->send_flags & IB_SEND_FENCE;
	err = ernic_hold_data(qp, wr, operation, swqe);
	/* A WQE that fails in the driver keeps its place in the queue, and has no data. */
	if (err || swqe->status != IB_WC_SUCCESS)
		return err;
	wqe->opcode = operation->opcode;
	wqe->length = cpu_to_le32(swqe->length);
	if (ernic_is_gsi(qp)) {
		err = ernic_place_frame(qp, wr, swqe, wqe);
	} else {
		ernic_describe_peer(wr, operation, wqe);
		err = ernic_place_data(qp, wr, operation, swqe, wqe);
	}
	if (err)
		goto err_release;
	return 0;

err_release:
	ernic_swqe_release(qp->edev, swqe);
	return err;
}

/* Under the lock of the send queue. */
static int ernic_queue_send(struct ernic_qp *qp, const struct ib_send_wr *wr,
			    const struct ernic_swqe *prepared, struct ernic_wqe *wqe)
{
	struct ernic_sq *sq = &qp->sq;
	u32 slot = sq->posted & (sq->depth - 1);
	struct ernic_swqe *swqe = &sq->swqes[slot];
	struct ernic_sge *sge = swqe->sge;

	/* A send makes room when its completion, or a later one, is polled. */
	if (!sq->dead && sq->posted - READ_ONCE(sq->retired) >= sq->max_wr)
		return -ENOMEM;
	if (prepared->hw_opcode == ERNIC_OPCODE_READ && !qp->attr.max_rd_atomic)
		return -EINVAL;
	*swqe = *prepared;
	swqe->sge = sge;
	memcpy(sge, prepared->sge, prepared->num_sge * sizeof(*sge));
	if (sq->dead) {
		ernic_complete_send(qp, swqe, IB_WC_WR_FLUSH_ERR);
		return 0;
	}
	wqe->wrid = cpu_to_le16(slot);
	((struct ernic_wqe *)sq->wqes.cpu)[slot] = *wqe;
	sq->posted++;
	return 0;
}

static int ernic_post_one_send(struct ernic_qp *qp, const struct ib_send_wr *wr, bool *ring)
{
	struct ernic_sge sges[ERNIC_MAX_SGE];
	struct ernic_swqe swqe = { .sge = sges };
	struct ernic_wqe wqe = {};
	unsigned long flags;
	int err;

	err = ernic_prepare_send(qp, wr, &swqe, &wqe);
	if (err)
		return err;
	spin_lock_irqsave(&qp->sq.lock, flags);
	err = ernic_queue_send(qp, wr, &swqe, &wqe);
	if (!err && !qp->sq.dead)
		*ring = true;
	spin_unlock_irqrestore(&qp->sq.lock, flags);
	if (err)
		ernic_swqe_release(qp->edev, &swqe);
	return err;
}

int ernic_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		    const struct ib_send_wr **bad_wr)
{
	struct ernic_qp *qp = to_eqp(ibqp);
	enum ib_qp_state state = READ_ONCE(qp->state);
	unsigned long flags;
	bool ring = false;
	int err = 0;

	if (state != IB_QPS_RTS && state != IB_QPS_ERR) {
		*bad_wr = wr;
		return -EINVAL;
	}
	for (; wr && !err; wr = wr->next) {
		err = ernic_post_one_send(qp, wr, &ring);
		if (err) {
			*bad_wr = wr;
			ibdev_dbg(&qp->edev->ibdev, "QP %u: failed to post a send: %d\n", qp->qpn,
				  err);
			break;
		}
	}
	spin_lock_irqsave(&qp->sq.lock, flags);
	if (ring && !qp->sq.dead)
		ernic_ring_sends(qp);
	spin_unlock_irqrestore(&qp->sq.lock, flags);
	ernic_cq_notify_later(to_ecq(ibqp->send_cq));
	return err;
}

/* ------------------------------------------------------------------ */
/* Receives                                                            */

static int ernic_post_one_receive(struct ernic_qp *qp, const struct ib_recv_wr *wr)
{
	struct ernic_rq *rq = &qp->rq;
	struct ernic_rwqe *rwqe;

	if (wr->num_sge < 0 || wr->num_sge > qp->max_recv_sge)
		return -EINVAL;
	if (rq->posted - rq->completed >= rq->max_wr)
		return -ENOMEM;
	rwqe = &rq->rwqes[rq->next_wqe];
	rwqe->wr_id = wr->wr_id;
	if (ernic_sges_hold(qp, rwqe->sge, wr->sg_list, wr->num_sge, true)) {
		rwqe->num_sge = wr->num_sge;
		rwqe->status = IB_WC_SUCCESS;
	} else {
		rwqe->num_sge = 0;
		rwqe->status = IB_WC_LOC_PROT_ERR;
	}
	rq->next_wqe = (rq->next_wqe + 1) % rq->max_wr;
	rq->posted++;
	return 0;
}

/* Complete a receive that is posted to a flushed queue. */
static void ernic_flush_receive(struct ernic_qp *qp)
{
	struct ernic_rq *rq = &qp->rq;
	struct ernic_rwqe *rwqe = &rq->rwqes[rq->oldest_wqe];
	struct ib_wc wc = {
		.wr_id = rwqe->wr_id,
		.status = IB_WC_WR_FLUSH_ERR,
		.opcode = IB_WC_RECV,
		.qp = &qp->ibqp,
	};

	rq->oldest_wqe = (rq->oldest_wqe + 1) % rq->max_wr;
	rq->completed++;
	ernic_sges_put(rwqe->sge, rwqe->num_sge);
	ernic_cq_add(to_ecq(qp->ibqp.recv_cq), &wc, false);
}

int ernic_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		    const struct ib_recv_wr **bad_wr)
{
	struct ernic_qp *qp = to_eqp(ibqp);
	unsigned long flags;
	int err = 0;

	if (READ_ONCE(qp->state) == IB_QPS_RESET) {
		*bad_wr = wr;
		return -EINVAL;
	}
	spin_lock_irqsave(&qp->rq.lock, flags);
	for (; wr; wr = wr->next) {
		err = ernic_post_one_receive(qp, wr);
		if (err) {
			*bad_wr = wr;
			break;
		}
		if (qp->rq.dead)
			ernic_flush_receive(qp);
		else
			ernic_free_slot(qp);
	}
	spin_unlock_irqrestore(&qp->rq.lock, flags);
	ernic_cq_notify_later(to_ecq(ibqp->recv_cq));
	return err;
}
