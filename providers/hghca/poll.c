/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* JingZhao HCA: the consumer side of completion queues. */
#include <config.h>

#include <errno.h>

#include "cqe.h"

#define HGHCA_SL_UDP	8	/* bit of a datagram over UDP; those below are HGHCA_CQE_IPV* */

/* Low five bits of the BTH opcode that ends a message to a receive WQE. */
enum {
	HGHCA_BTH_SEND_LAST_IMM		= 0x03,
	HGHCA_BTH_SEND_ONLY_IMM		= 0x05,
	HGHCA_BTH_WRITE_LAST_IMM	= 0x09,
	HGHCA_BTH_WRITE_ONLY_IMM	= 0x0b,
	HGHCA_BTH_SEND_LAST_INV		= 0x16,
	HGHCA_BTH_SEND_ONLY_INV		= 0x17,
};

/* ------------------------------------------------------------------ */
/* One CQE                                                              */

static const uint8_t hghca_status_of_syndrome[] = {
#define HGHCA_STATUS(name, status, ...) \
	[HGHCA_SYNDROME_##name] = IBV_WC_##status,
	HGHCA_SYNDROMES(HGHCA_STATUS)
#undef HGHCA_STATUS
};

static inline const struct hghca_err_cqe *
hghca_cqe_error(const struct hghca_cqe *cqe)
{
	if (cqe->opcode != HGHCA_OPCODE_INVALID)
		return NULL;
	return (const struct hghca_err_cqe *)cqe;
}

static enum ibv_wc_status hghca_cqe_status(const struct hghca_err_cqe *err)
{
	uint8_t syndrome = err->syndrome;

	if (syndrome >= sizeof(hghca_status_of_syndrome) ||
	    !hghca_status_of_syndrome[syndrome])
		return IBV_WC_GENERAL_ERR;
	return hghca_status_of_syndrome[syndrome];
}

static inline enum ibv_wc_opcode hghca_cqe_send_opcode(const struct hghca_cqe *cqe)
{
	switch (cqe->opcode) {
	case HGHCA_OPCODE_RDMA_WRITE:
	case HGHCA_OPCODE_RDMA_WRITE_IMM:
	case HGHCA_OPCODE_PART:
		return IBV_WC_RDMA_WRITE;
	case HGHCA_OPCODE_RDMA_READ:
	case HGHCA_OPCODE_READ_POINTER:
	case HGHCA_OPCODE_READ_CONSISTENT:
		return IBV_WC_RDMA_READ;
	case HGHCA_OPCODE_ATOMIC_CS:
		return IBV_WC_COMP_SWAP;
	case HGHCA_OPCODE_ATOMIC_FA:
		return IBV_WC_FETCH_ADD;
	case HGHCA_OPCODE_ATOMIC_WRITE:
		return IBV_WC_ATOMIC_WRITE;
	case HGHCA_OPCODE_FLUSH:
		return IBV_WC_FLUSH;
	case HGHCA_OPCODE_BIND_MW:
		return IBV_WC_BIND_MW;
	case HGHCA_OPCODE_LOCAL_INV:
		return IBV_WC_LOCAL_INV;
	default:
		return IBV_WC_SEND;
	}
}

/* An error CQE does not have the operation: is_send tells only a send from a receive. */
static inline enum ibv_wc_opcode hghca_cqe_wc_opcode(const struct hghca_cqe *cqe)
{
	if (cqe->is_send)
		return hghca_cqe_send_opcode(cqe);
	if (cqe->opcode == HGHCA_OPCODE_INVALID)
		return IBV_WC_RECV;

	switch (cqe->opcode & HGHCA_CQE_RECV_OPCODE_MASK) {
	case HGHCA_BTH_WRITE_LAST_IMM:
	case HGHCA_BTH_WRITE_ONLY_IMM:
		return IBV_WC_RECV_RDMA_WITH_IMM;
	default:
		return IBV_WC_RECV;
	}
}

static inline unsigned int hghca_cqe_wc_flags(const struct hghca_cqe *cqe)
{
	unsigned int flags = 0;

	if (cqe->is_send || cqe->opcode == HGHCA_OPCODE_INVALID)
		return 0;

	switch (cqe->opcode & HGHCA_CQE_RECV_OPCODE_MASK) {
	case HGHCA_BTH_SEND_LAST_IMM:
	case HGHCA_BTH_SEND_ONLY_IMM:
	case HGHCA_BTH_WRITE_LAST_IMM:
	case HGHCA_BTH_WRITE_ONLY_IMM:
		flags |= IBV_WC_WITH_IMM;
		break;
	case HGHCA_BTH_SEND_LAST_INV:
	case HGHCA_BTH_SEND_ONLY_INV:
		flags |= IBV_WC_WITH_INV;
		break;
	}
	if (le32toh(cqe->rlid_path_sl) & HGHCA_CQE_GRH)
		flags |= IBV_WC_GRH;
	return flags;
}

/* Immediate data is in network byte order; an invalidated key is in that of the host. */
static inline __be32 hghca_cqe_imm(const struct hghca_cqe *cqe, unsigned int wc_flags)
{
	if (wc_flags & IBV_WC_WITH_INV)
		return (__force __be32)be32toh(cqe->imm);
	return cqe->imm;
}

/*
 * IBTA Annex A17.4.5.1 wants a datagram's completion over RoCE to say whether it
 * came by IPv4 or IPv6.  Verbs have no field for it.  Other adapters report it in
 * the SL, which Ethernet does not have, and UCX reads it there: the low bits are 1
 * for IPv6 and 2 for IPv4, and bit 3 is set for UDP.
 */
static inline uint8_t hghca_cqe_sl(const struct hghca_cqe *cqe)
{
	uint32_t path = le32toh(cqe->rlid_path_sl);
	uint8_t network = FIELD_GET(HGHCA_CQE_NETWORK_MASK, path);

	return network ? HGHCA_SL_UDP | network : FIELD_GET(HGHCA_CQE_SL_MASK, path);
}

/* ------------------------------------------------------------------ */
/* The oldest CQE                                                       */

/* The oldest CQE if it is complete and in this array, otherwise NULL. */
static inline struct hghca_cqe *hghca_cqes_peek(const struct hghca_cq *cq,
						const struct hghca_cqes *cqes)
{
	struct hghca_cqe *cqe = hghca_cqe_of(cq, cqes, cq->consumer_index);

	if (!hghca_cqe_is_ours(cqe))
		return NULL;
	hghca_owner_before_body();
	return cqe;
}

/*
 * The oldest CQE if it is complete, otherwise NULL.  While the CQ is resized, the
 * old array has the first CQEs, and the new one all from some index on.
 */
static inline struct hghca_cqe *hghca_cq_peek(struct hghca_cq *cq)
{
	struct hghca_cqe *cqe = hghca_cqes_peek(cq, &cq->cqes);

	if (cqe || !cq->next_cqes.first)
		return cqe;
	return hghca_cqes_peek(cq, &cq->next_cqes);
}

static inline void hghca_cq_advance(struct hghca_cq *cq, struct hghca_cqe *cqe)
{
	hghca_cqe_give_back(cqe);
	cq->consumer_index++;
}

/* Complete the WQE of a CQE in a shared receive queue.  Returns 0, or EIO as below. */
static inline int hghca_cq_complete_shared(const struct hghca_qp *qp,
					   const struct hghca_cqe *cqe,
					   uint64_t *wr_id)
{
	if (le32toh(cqe->my_ee) != qp->srq->srqn)
		return EIO;
	return hghca_srq_complete(qp->srq, le32toh(cqe->wqe), wr_id);
}

/*
 * Complete the WQE of a CQE and, in a queue of the QP, the unsignaled WQEs before it.
 * The numbers in the CQE are checked before they are used.  Returns 0, or EIO without a
 * change if the CQE has no outstanding WQE.  *owner is NULL for an XRC SRQ: the target QP
 * may belong to another process.
 */
static inline int hghca_cq_complete(struct hghca_cq *cq,
				    const struct hghca_cqe *cqe,
				    struct hghca_qp **owner, uint64_t *wr_id)
{
	uint32_t qpn = le32toh(cqe->my_qpn) & HGHCA_NUMBER_MASK;
	struct hghca_srq *xrc_srq = hghca_cq_xrc_srq(cq, cqe);
	struct hghca_qp *qp = cq->last_qp;
	uint32_t slot, tail, passed;
	struct hghca_wq *wq;
	int err;

	if (xrc_srq) {
		*owner = NULL;
		return hghca_srq_complete(xrc_srq, le32toh(cqe->wqe), wr_id);
	}
	if (!qp || qp->vqp.qp.qp_num != qpn) {
		qp = hghca_table_find(&to_hctx(cq->vcq.cq.context)->qps, qpn);
		if (!qp)
			return EIO;
	}

	wq = cqe->is_send ? &qp->sq : &qp->rq;
	if (wq->cq != cq)
		return EIO;
	if (wq == &qp->rq && qp->srq) {
		err = hghca_cq_complete_shared(qp, cqe, wr_id);
		if (err)
			return err;
		cq->last_qp = qp;
		*owner = qp;
		return 0;
	}

	slot = le32toh(cqe->wqe) >> wq->stride_log;
	tail = atomic_load_explicit(&wq->tail, memory_order_relaxed);
	passed = (slot - tail) & wq->mask;
	if (slot >= wq->cnt || passed >= hghca_wq_head(wq) - tail)
		return EIO;

	cq->last_qp = qp;
	*owner = qp;
	*wr_id = wq->wr_ids[slot];
	hghca_wq_set_tail(wq, tail + passed + 1);
	return 0;
}

/* Does the CQE tell the success of an outstanding send that the application left unsignaled? */
static bool hghca_cqe_is_silent(struct hghca_cq *cq, const struct hghca_cqe *cqe)
{
	struct hghca_wq *sq;
	struct hghca_qp *qp;
	uint32_t slot, tail;

	if (!cqe->is_send || hghca_cqe_error(cqe))
		return false;
	qp = hghca_table_find(&to_hctx(cq->vcq.cq.context)->qps,
			      le32toh(cqe->my_qpn) & HGHCA_NUMBER_MASK);
	if (!qp || qp->sq.cq != cq || !qp->sq.silent)
		return false;
	sq = &qp->sq;
	slot = le32toh(cqe->wqe) >> sq->stride_log;
	tail = atomic_load_explicit(&sq->tail, memory_order_relaxed);
	return slot < sq->cnt && ((slot - tail) & sq->mask) < hghca_wq_head(sq) - tail &&
	       sq->silent[slot];
}

/*
 * Complete unsignaled sends whose CQEs are the oldest; at most one round of the CQ.  Returns
 * the CQE behind them, or NULL.  A CQE that comes meanwhile may be another of these.
 */
static struct hghca_cqe *hghca_cq_pass_silent(struct hghca_cq *cq)
{
	uint32_t first = cq->consumer_index;
	struct hghca_cqe *cqe = NULL;
	struct hghca_qp *qp;
	uint64_t wr_id;

	while (cq->consumer_index - first <= cq->cqes.mask) {
		cqe = hghca_cq_peek(cq);
		if (!cqe || !hghca_cqe_is_silent(cq, cqe) ||
		    hghca_cq_complete(cq, cqe, &qp, &wr_id))
			break;
		hghca_cq_advance(cq, cqe);
		cqe = NULL;
	}
	if (cq->consumer_index != first)
		hghca_cq_update_dbr(cq);
	return cqe;
}

/* The oldest CQE that reports something, or NULL. */
static inline struct hghca_cqe *hghca_cq_oldest(struct hghca_cq *cq)
{
	if (unlikely(cq->has_silent))
		return hghca_cq_pass_silent(cq);
	return hghca_cq_peek(cq);
}

/*
 * An invalid CQE is reported to the caller once and returned to the device.  It is
 * logged after the lock is released, because logging is a system call.
 */
static int hghca_cq_drop(struct hghca_cq *cq, struct hghca_cqe *cqe)
{
	if (!cq->dropped.count++) {
		cq->dropped.index = cq->consumer_index;
		cq->dropped.qpn = le32toh(cqe->my_qpn);
		cq->dropped.wqe_offset = le32toh(cqe->wqe);
	}
	hghca_cq_advance(cq, cqe);
	return EIO;
}

static void hghca_cq_log_dropped(const struct hghca_cq *cq,
				 const struct hghca_cq_dropped *dropped)
{
	struct verbs_context *vctx = verbs_get_ctx(cq->vcq.cq.context);

	verbs_err(vctx, "CQ 0x%x: CQE 0x%x is for no outstanding WQE (QP 0x%x, offset 0x%x)\n",
		  cq->cqn, dropped->index, dropped->qpn, dropped->wqe_offset);
	if (dropped->count > 1)
		verbs_err(vctx, "CQ 0x%x: %u more such CQEs in this poll\n",
			  cq->cqn, dropped->count - 1);
}

/* At the end of a poll: unlock, and log the CQEs that were dropped. */
static inline void hghca_cq_unlock(struct hghca_cq *cq)
{
	struct hghca_cq_dropped dropped = cq->dropped;

	cq->dropped.count = 0;
	hghca_unlock(&cq->lock);
	if (dropped.count)
		hghca_cq_log_dropped(cq, &dropped);
}

/* ------------------------------------------------------------------ */
/* ibv_poll_cq                                                          */

static inline int hghca_cqe_to_wc(struct hghca_cq *cq,
				  const struct hghca_cqe *cqe, struct ibv_wc *wc)
{
	const struct hghca_err_cqe *failed = hghca_cqe_error(cqe);
	struct hghca_qp *qp;
	int err;

	err = hghca_cq_complete(cq, cqe, &qp, &wc->wr_id);
	if (err)
		return err;

	wc->opcode = hghca_cqe_wc_opcode(cqe);
	wc->qp_num = le32toh(cqe->my_qpn) & HGHCA_NUMBER_MASK;
	wc->pkey_index = 0;
	wc->slid = 0;
	wc->dlid_path_bits = 0;
	if (failed) {
		wc->status = hghca_cqe_status(failed);
		wc->vendor_err = failed->vendor_err;
		wc->byte_len = 0;
		wc->imm_data = 0;
		wc->src_qp = 0;
		wc->wc_flags = 0;
		wc->sl = 0;
		if (qp)
			hghca_qp_start_flush(qp);
		return 0;
	}
	wc->status = IBV_WC_SUCCESS;
	wc->vendor_err = 0;
	wc->byte_len = le32toh(cqe->byte_cnt);
	wc->wc_flags = hghca_cqe_wc_flags(cqe);
	wc->imm_data = hghca_cqe_imm(cqe, wc->wc_flags);
	wc->src_qp = le32toh(cqe->rqpn) & HGHCA_NUMBER_MASK;
	wc->sl = hghca_cqe_sl(cqe);
	return 0;
}

/* Returns the number of completions, or a negative errno. */
int hghca_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc)
{
	struct hghca_cq *cq = to_hcq(ibcq);
	struct hghca_cqe *cqe;
	int polled = 0;
	int err = 0;

	hghca_lock(&cq->lock);
	while (polled < num_entries) {
		cqe = hghca_cq_oldest(cq);
		if (!cqe)
			break;
		err = hghca_cqe_to_wc(cq, cqe, &wc[polled]);
		if (err) {
			/* Completions before it are returned first, the error by the next poll. */
			if (!polled)
				hghca_cq_drop(cq, cqe);
			break;
		}
		hghca_cq_advance(cq, cqe);
		polled++;
	}
	if (polled || err)
		hghca_cq_update_dbr(cq);
	hghca_cq_unlock(cq);

	return polled ? polled : -err;
}

/* ------------------------------------------------------------------ */
/* ibv_start_poll, ibv_next_poll, ibv_end_poll                          */

/* Make the oldest CQE the current one.  Returns 0, ENOENT if the CQ is empty, or EIO. */
static inline int hghca_cq_load(struct hghca_cq *cq)
{
	struct ibv_cq_ex *ex = &cq->vcq.cq_ex;
	const struct hghca_err_cqe *failed;
	struct hghca_cqe *cqe;
	struct hghca_qp *qp;
	int err;

	cqe = hghca_cq_oldest(cq);
	if (!cqe)
		return ENOENT;

	err = hghca_cq_complete(cq, cqe, &qp, &ex->wr_id);
	if (err)
		return hghca_cq_drop(cq, cqe);

	ex->status = IBV_WC_SUCCESS;
	failed = hghca_cqe_error(cqe);
	if (failed) {
		ex->status = hghca_cqe_status(failed);
		if (qp)
			hghca_qp_start_flush(qp);
	}
	cq->current = cqe;
	return 0;
}

static inline void hghca_cq_unload(struct hghca_cq *cq)
{
	if (!cq->current)
		return;
	hghca_cq_advance(cq, cq->current);
	cq->current = NULL;
}

static int hghca_start_poll(struct ibv_cq_ex *ibcq, struct ibv_poll_cq_attr *attr)
{
	struct hghca_cq *cq = to_hcq_ex(ibcq);
	int err;

	if (attr->comp_mask)
		return EINVAL;

	hghca_lock(&cq->lock);
	err = hghca_cq_load(cq);
	if (err) {
		if (err != ENOENT)
			hghca_cq_update_dbr(cq);
		hghca_cq_unlock(cq);
	}
	return err;
}

static int hghca_next_poll(struct ibv_cq_ex *ibcq)
{
	struct hghca_cq *cq = to_hcq_ex(ibcq);

	hghca_cq_unload(cq);
	return hghca_cq_load(cq);
}

static void hghca_end_poll(struct ibv_cq_ex *ibcq)
{
	struct hghca_cq *cq = to_hcq_ex(ibcq);

	hghca_cq_unload(cq);
	hghca_cq_update_dbr(cq);
	hghca_cq_unlock(cq);
}

static enum ibv_wc_opcode hghca_read_opcode(struct ibv_cq_ex *ibcq)
{
	return hghca_cqe_wc_opcode(to_hcq_ex(ibcq)->current);
}

static uint32_t hghca_read_vendor_err(struct ibv_cq_ex *ibcq)
{
	const struct hghca_err_cqe *failed;

	failed = hghca_cqe_error(to_hcq_ex(ibcq)->current);
	return failed ? failed->vendor_err : 0;
}

static unsigned int hghca_read_wc_flags(struct ibv_cq_ex *ibcq)
{
	return hghca_cqe_wc_flags(to_hcq_ex(ibcq)->current);
}

static uint32_t hghca_read_byte_len(struct ibv_cq_ex *ibcq)
{
	return le32toh(to_hcq_ex(ibcq)->current->byte_cnt);
}

/* Also read by ibv_wc_read_invalidated_rkey. */
static __be32 hghca_read_imm_data(struct ibv_cq_ex *ibcq)
{
	const struct hghca_cqe *cqe = to_hcq_ex(ibcq)->current;

	return hghca_cqe_imm(cqe, hghca_cqe_wc_flags(cqe));
}

static uint32_t hghca_read_qp_num(struct ibv_cq_ex *ibcq)
{
	return le32toh(to_hcq_ex(ibcq)->current->my_qpn) & HGHCA_NUMBER_MASK;
}

static uint32_t hghca_read_src_qp(struct ibv_cq_ex *ibcq)
{
	return le32toh(to_hcq_ex(ibcq)->current->rqpn) & HGHCA_NUMBER_MASK;
}

static uint8_t hghca_read_sl(struct ibv_cq_ex *ibcq)
{
	return hghca_cqe_sl(to_hcq_ex(ibcq)->current);
}

static uint64_t hghca_read_completion_ts(struct ibv_cq_ex *ibcq)
{
	const struct hghca_timed_cqe *timed;

	timed = container_of(to_hcq_ex(ibcq)->current,
			     const struct hghca_timed_cqe, cqe);
	return le64toh(timed->timestamp);
}

/* An Ethernet port has no LID. */
static uint32_t hghca_read_slid(struct ibv_cq_ex *ibcq)
{
	return 0;
}

static uint8_t hghca_read_dlid_path_bits(struct ibv_cq_ex *ibcq)
{
	return 0;
}

void hghca_cq_set_readers(struct ibv_cq_ex *ex, uint64_t wc_flags)
{
	ex->start_poll = hghca_start_poll;
	ex->next_poll = hghca_next_poll;
	ex->end_poll = hghca_end_poll;
	ex->read_opcode = hghca_read_opcode;
	ex->read_vendor_err = hghca_read_vendor_err;
	ex->read_wc_flags = hghca_read_wc_flags;
	if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
		ex->read_byte_len = hghca_read_byte_len;
	if (wc_flags & IBV_WC_EX_WITH_IMM)
		ex->read_imm_data = hghca_read_imm_data;
	if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
		ex->read_qp_num = hghca_read_qp_num;
	if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
		ex->read_src_qp = hghca_read_src_qp;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		ex->read_completion_ts = hghca_read_completion_ts;
	if (wc_flags & IBV_WC_EX_WITH_SLID)
		ex->read_slid = hghca_read_slid;
	if (wc_flags & IBV_WC_EX_WITH_SL)
		ex->read_sl = hghca_read_sl;
	if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		ex->read_dlid_path_bits = hghca_read_dlid_path_bits;
}

/* ------------------------------------------------------------------ */
/* Events                                                               */

int hghca_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct hghca_context *ctx = to_hctx(ibcq->context);
	struct hghca_cq *cq = to_hcq(ibcq);
	uint32_t cmd = solicited_only ? HGHCA_CQ_ARM_SOLICITED : HGHCA_CQ_ARM_NEXT;
	uint32_t high = FIELD_PREP(HGHCA_CQ_ARM_CMD_MASK, cmd) |
			FIELD_PREP(HGHCA_CQ_ARM_CQN_MASK, cq->cqn);

	/* Each completion makes an event, and the kernel passes on one for each arming. */
	if (!ctx->has_cq_arm)
		return hghca_errno(ibv_cmd_req_notify_cq(ibcq, solicited_only));

	hghca_lock(&cq->lock);
	/* The device owns the CQEs before the index before it reads the doorbell. */
	hghca_memory_before_doorbell();
	hghca_ring((char *)ctx->uar + HGHCA_UAR_CQ_ARM, cq->consumer_index, high);
	hghca_unlock(&cq->lock);
	return 0;
}

/* ------------------------------------------------------------------ */
/* For a QP that is destroyed or reset                                  */

/* A WQE of a shared receive queue that the QP has consumed is returned to the queue. */
static bool hghca_cqe_is_of_qp(struct hghca_cq *cq, const void *owner,
			       const struct hghca_cqe *cqe)
{
	const struct hghca_qp *qp = owner;
	uint64_t wr_id;

	/* The number may have been that of an XRC target before. */
	if ((le32toh(cqe->my_qpn) & HGHCA_NUMBER_MASK) != qp->vqp.qp.qp_num ||
	    hghca_cq_xrc_srq(cq, cqe))
		return false;
	if (qp->srq && !cqe->is_send)
		hghca_cq_complete_shared(qp, cqe, &wr_id);
	return true;
}

/* Remove the CQEs of a QP, with the lock held, after the device has destroyed or reset the QP. */
void hghca_cq_purge(struct hghca_cq *cq, const struct hghca_qp *qp)
{
	cq->last_qp = NULL;
	hghca_cq_remove_cqes(cq, qp, hghca_cqe_is_of_qp);
}
