/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* JingZhao HCA: the arrays of CQEs. */
#ifndef HGHCA_PROVIDER_CQE_H
#define HGHCA_PROVIDER_CQE_H

#include "hghca.h"

/* The CQE of a free-running index in an array. */
static inline struct hghca_cqe *hghca_cqe_of(const struct hghca_cq *cq,
					     const struct hghca_cqes *cqes, uint32_t index)
{
	return (struct hghca_cqe *)(cqes->first +
				    ((size_t)(index & cqes->mask) << cq->log_cqe));
}

static inline bool hghca_cqe_is_ours(struct hghca_cqe *cqe)
{
	return atomic_load_explicit((_Atomic(__u8) *)&cqe->owner,
				    memory_order_relaxed) == HGHCA_CQ_ENTRY_OWNER_SW;
}

/* Give the CQE to the device, after all reads of it. */
static inline void hghca_cqe_give_back(struct hghca_cqe *cqe)
{
	atomic_store_explicit((_Atomic(__u8) *)&cqe->owner,
			      HGHCA_CQ_ENTRY_OWNER_HW, memory_order_release);
}

static inline void hghca_cq_update_dbr(struct hghca_cq *cq)
{
	hghca_queue_before_record();
	cq->dbr->consumer_index = htole32(cq->consumer_index);
}

/* The XRC SRQ whose WQE a CQE is for, or NULL. */
static inline struct hghca_srq *hghca_cq_xrc_srq(struct hghca_cq *cq,
						 const struct hghca_cqe *cqe)
{
	uint32_t srqn = le32toh(cqe->my_ee) & HGHCA_NUMBER_MASK;
	struct hghca_srq *srq;

	if (cqe->is_send || !srqn)
		return NULL;
	srq = hghca_table_find(&to_hctx(cq->vcq.cq.context)->xrc_srqs, srqn);
	return srq && srq->cq == cq ? srq : NULL;
}

int hghca_cqes_alloc(struct hghca_context *ctx, const struct hghca_cq *cq,
		     struct hghca_buf *buf, struct hghca_cqes *cqes, uint32_t cnt);
int hghca_cq_announce_cqes(struct hghca_cq *cq, const struct hghca_cqes *cqes);
void hghca_cq_switch_cqes(struct hghca_cq *cq);
void hghca_cq_withdraw_cqes(struct hghca_cq *cq);
void hghca_cq_remove_cqes(struct hghca_cq *cq, const void *owner,
			  bool (*belongs)(struct hghca_cq *cq, const void *owner,
					  const struct hghca_cqe *cqe));

#endif /* HGHCA_PROVIDER_CQE_H */
