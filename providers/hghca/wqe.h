/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * JingZhao HCA: the units of WQEs, and the posting of a batch of sends.
 *
 * The steps are those of the interface document, section 5.1.  The WQEs of a
 * batch are first written and linked to each other.  The device cannot access
 * them before hghca_sq_announce(), so a batch can be dropped until then.
 */
#ifndef HGHCA_PROVIDER_WQE_H
#define HGHCA_PROVIDER_WQE_H

#include <errno.h>
#include <string.h>

#include "hghca.h"

/* Properties of an opcode. */
#define HGHCA_OP_IMM		(1U << 0)	/* carries immediate data */
#define HGHCA_OP_RADDR		(1U << 1)	/* has a raddr unit */
#define HGHCA_OP_ATOMIC		(1U << 2)	/* has an atomic unit */
#define HGHCA_OP_GATHER		(1U << 3)	/* sends the data list, which may be inline */
#define HGHCA_OP_UD		(1U << 4)	/* valid on UD */
#define HGHCA_OP_UC		(1U << 5)	/* valid on UC */
#define HGHCA_OP_MEM_MGT	(1U << 6)	/* requires HGHCA_CAP_MEM_MGT */
#define HGHCA_OP_KEY		(1U << 7)	/* changes a key; has neither address nor data */

/* Counts of 16-byte units. */
#define HGHCA_UNITS(type)	(sizeof(type) / HGHCA_WQE_UNIT)
#define HGHCA_NEXT_UNITS	HGHCA_UNITS(struct hghca_next_unit)
#define HGHCA_RADDR_UNITS	HGHCA_UNITS(struct hghca_raddr_unit)
#define HGHCA_ATOMIC_UNITS	HGHCA_UNITS(struct hghca_atomic_unit)
#define HGHCA_FLUSH_UNITS	HGHCA_UNITS(struct hghca_flush_unit)
#define HGHCA_POINTER_UNITS	HGHCA_UNITS(struct hghca_pointer_unit)
#define HGHCA_UD_UNITS		HGHCA_UNITS(struct hghca_ud_gid_unit)
#define HGHCA_INV_UNITS		HGHCA_UNITS(struct hghca_inv_unit)
#define HGHCA_BIND_UNITS	HGHCA_UNITS(struct hghca_bind_unit)
#define HGHCA_INLINE_WORD	4	/* bytes before inline data */
#define HGHCA_SQ_DB_COUNT_MAX	255

/* The access rights of verbs and of the device are the same bits. */
#define HGHCA_BIND_ACCESS	(HGHCA_ACCESS_REMOTE_WRITE | HGHCA_ACCESS_REMOTE_READ | \
				 HGHCA_ACCESS_REMOTE_ATOMIC | HGHCA_ACCESS_ZERO_BASED)
static_assert((unsigned int)IBV_ACCESS_REMOTE_WRITE == HGHCA_ACCESS_REMOTE_WRITE &&
	      (unsigned int)IBV_ACCESS_REMOTE_READ == HGHCA_ACCESS_REMOTE_READ &&
	      (unsigned int)IBV_ACCESS_REMOTE_ATOMIC == HGHCA_ACCESS_REMOTE_ATOMIC &&
	      (unsigned int)IBV_ACCESS_ZERO_BASED == HGHCA_ACCESS_ZERO_BASED,
	      "the access rights of a window need translating");

/* The predicates of hghcadv.h and of the device are the same numbers. */
static_assert((unsigned int)HGHCADV_PREDICATE_EQUAL == HGHCA_PREDICATE_EQUAL &&
	      (unsigned int)HGHCADV_PREDICATE_LESS == HGHCA_PREDICATE_LESS &&
	      (unsigned int)HGHCADV_PREDICATE_GREATER == HGHCA_PREDICATE_GREATER &&
	      (unsigned int)HGHCADV_PREDICATE_NOT_EQUAL == HGHCA_PREDICATE_NOT_EQUAL,
	      "the predicates need translating");

/* Local write is an access right of the region, but some programs pass it for the window too. */
#define HGHCA_BIND_ACCESS_TAKEN	(HGHCA_BIND_ACCESS | HGHCA_ACCESS_LOCAL_WRITE)

/* The opcode, units and fence of a WQE are in the link to it, or in the doorbell. */
static inline __le32 hghca_link_nda_nop(const struct hghca_wq *sq, uint32_t index,
					uint8_t opcode)
{
	return htole32((index & sq->mask) << sq->stride_log | opcode);
}

static inline __le32 hghca_link_nee_nds(uint32_t units, bool fence)
{
	return htole32(units | (fence ? HGHCA_NEXT_FENCE : 0));
}

/* The device computes no checksums for raw packet QPs. */
static inline bool hghca_send_flags_valid(const struct hghca_qp *qp, unsigned int send_flags)
{
	return !qp->is_raw || !(send_flags & IBV_SEND_IP_CSUM);
}

/* Sends are valid from RTS on: before it the device ignores doorbells.  A handle has no queue. */
static inline bool hghca_qp_can_send(const struct hghca_qp *qp)
{
	return qp->vqp.qp.state > IBV_QPS_RTR && !qp->is_handle;
}

/*
 * A context and one that is imported from its file are one context of the kernel.
 * Their devices are compared by name, as libibverbs may have built its list of
 * devices again in between.
 */
static inline bool hghca_same_in_kernel(struct ibv_context *a, struct ibv_context *b)
{
	return a == b || (to_hctx(a)->uar_index == to_hctx(b)->uar_index &&
			  !strcmp(a->device->dev_name, b->device->dev_name));
}

/*
 * An address handle is valid for QPs of its own PD.  Several structures may represent
 * that PD: a parent domain and an imported PD have the same kernel handle, in the same
 * context of the kernel.
 * The device does not know the PD of an address handle.  A datagram to a handle of
 * another PD is posted as a READ, which UD does not support: it completes with
 * LOCAL_QP_OP_ERR, after the WQEs before it (IBA C10-10).
 */
static inline uint8_t hghca_ud_opcode(const struct hghca_qp *qp, struct ibv_ah *ah,
				      uint8_t opcode)
{
	bool same_pd = to_hah(ah)->pd_handle == qp->pd_handle &&
		       hghca_same_in_kernel(ah->context, qp->vqp.qp.context);

	return same_pd ? opcode : HGHCA_OPCODE_RDMA_READ;
}

/* Write the next unit of WQE `index`, without a link.  `srqn`: the remote SRQ of XRC, or 0. */
static inline void *hghca_wqe_start(struct hghca_qp *qp, uint32_t index,
				    uint64_t wr_id, unsigned int send_flags,
				    __be32 imm_data, uint32_t srqn)
{
	struct hghca_next_unit *next = hghca_wq_slot(&qp->sq, index);
	uint32_t flags = FIELD_PREP(HGHCA_WQE_XRC_SRQN_MASK, srqn);

	if (qp->signal_all || (send_flags & IBV_SEND_SIGNALED))
		flags |= HGHCA_WQE_CQ_UPDATE;
	if (send_flags & IBV_SEND_SOLICITED)
		flags |= HGHCA_WQE_SOLICIT;

	next->nda_nop = 0;
	next->nee_nds = 0;
	next->flags = htole32(flags);
	next->imm_data = imm_data;
	qp->sq.wr_ids[index & qp->sq.mask] = wr_id;
	if (qp->sq.silent)
		qp->sq.silent[index & qp->sq.mask] = !(flags & HGHCA_WQE_CQ_UPDATE);
	return next;
}

static inline void hghca_wqe_set_srqn(void *wqe, uint32_t srqn)
{
	struct hghca_next_unit *next = wqe;
	uint32_t flags = le32toh(next->flags) & ~HGHCA_WQE_XRC_SRQN_MASK;

	next->flags = htole32(flags | FIELD_PREP(HGHCA_WQE_XRC_SRQN_MASK, srqn));
}

static inline bool hghca_bind_valid(const struct ibv_mw_bind_info *info)
{
	return !(info->mw_access_flags & ~HGHCA_BIND_ACCESS_TAKEN);
}

/* A type 2 window is bound to a range of bytes; only an invalidation unbinds it (IBA 10.6.7.2). */
static inline bool hghca_bind2_valid(const struct ibv_mw *mw,
				     const struct ibv_mw_bind_info *info)
{
	return mw->type == IBV_MW_TYPE_2 && info->mr && info->length &&
	       hghca_bind_valid(info);
}

/* The caller chooses the tag; the other bits are the index by which the device finds the window. */
static inline uint32_t hghca_bind_rkey(const struct ibv_mw *mw, uint32_t rkey)
{
	return (mw->rkey & HGHCA_KEY_INDEX_MASK) | (rkey & HGHCA_KEY_TAG_MASK);
}

static inline void *hghca_wqe_unit(void *wqe, uint32_t unit)
{
	return (char *)wqe + unit * HGHCA_WQE_UNIT;
}

static inline void hghca_wqe_set_raddr(void *wqe, uint64_t raddr, uint32_t rkey)
{
	struct hghca_raddr_unit *unit = hghca_wqe_unit(wqe, HGHCA_NEXT_UNITS);

	unit->raddr = htole64(raddr);
	unit->rkey = htole32(rkey);
	unit->rsvd0c = 0;
}

/* Verbs encode type and level as the FETH does. */
static inline void hghca_wqe_set_flush(void *wqe, uint32_t length, uint8_t type,
				       uint8_t level)
{
	struct hghca_flush_unit *unit;

	unit = hghca_wqe_unit(wqe, HGHCA_NEXT_UNITS + HGHCA_RADDR_UNITS);
	*unit = (struct hghca_flush_unit) {
		.length = htole32(length),
		.what = htole32(FIELD_PREP(HGHCA_FLUSH_TYPE_MASK, type) |
				FIELD_PREP(HGHCA_FLUSH_SELECTIVITY_MASK, level)),
	};
}

/* Positions are of words from which 64 bits can be read; there must be a key. */
static inline bool hghca_pointer_valid(const struct hghcadv_pointer *pointer)
{
	return pointer->keys && !(pointer->keys >> (HGHCA_POINTER_LAST_WORD + 1)) &&
	       pointer->predicate <= HGHCADV_PREDICATE_NOT_EQUAL &&
	       pointer->value <= HGHCA_POINTER_LAST_WORD &&
	       (!pointer->has_next || pointer->next <= HGHCA_POINTER_LAST_WORD);
}

static inline void hghca_wqe_set_pointer(void *wqe, const struct hghcadv_pointer *pointer)
{
	uint32_t search = FIELD_PREP(HGHCA_POINTER_KEYS_MASK, pointer->keys) |
			  FIELD_PREP(HGHCA_POINTER_PREDICATE_MASK, pointer->predicate) |
			  FIELD_PREP(HGHCA_POINTER_VALUE_MASK, pointer->value);
	struct hghca_pointer_unit *unit;

	if (pointer->relative)
		search |= HGHCA_POINTER_RELATIVE;
	if (pointer->has_next)
		search |= HGHCA_POINTER_HAS_NEXT |
			  FIELD_PREP(HGHCA_POINTER_NEXT_MASK, pointer->next);
	unit = hghca_wqe_unit(wqe, HGHCA_NEXT_UNITS + HGHCA_RADDR_UNITS);
	*unit = (struct hghca_pointer_unit) {
		.key = htole64(pointer->key),
		.search = htole32(search),
	};
}

static inline void hghca_wqe_set_atomic(void *wqe, uint64_t swap_add, uint64_t cmp)
{
	struct hghca_atomic_unit *unit;

	unit = hghca_wqe_unit(wqe, HGHCA_NEXT_UNITS + HGHCA_RADDR_UNITS);
	unit->swap_add = htole64(swap_add);
	unit->cmp = htole64(cmp);
}

static inline void hghca_wqe_set_ud(void *wqe, const struct hghca_ah *ah,
				    uint32_t qpn, uint32_t qkey)
{
	struct hghca_ud_gid_unit *unit = hghca_wqe_unit(wqe, HGHCA_NEXT_UNITS);

	*unit = ah->unit;
	unit->dqpn = htole32(qpn);
	unit->qkey = htole32(qkey);
}

static inline void hghca_wqe_set_inv(void *wqe, uint32_t rkey)
{
	struct hghca_inv_unit *unit = hghca_wqe_unit(wqe, HGHCA_NEXT_UNITS);

	*unit = (struct hghca_inv_unit) { .key = htole32(rkey) };
}

/* Without a region, the window is unbound. */
static inline void hghca_wqe_set_bind(void *wqe, uint32_t rkey,
				      const struct ibv_mw_bind_info *info)
{
	struct hghca_bind_unit *unit = hghca_wqe_unit(wqe, HGHCA_NEXT_UNITS);

	*unit = (struct hghca_bind_unit) {
		.access = htole32(info->mw_access_flags & HGHCA_BIND_ACCESS),
		.rkey = htole32(rkey),
		.lkey = htole32(info->mr ? info->mr->lkey : 0),
		.addr = htole64(info->addr),
		.length = htole64(info->length),
	};
}

static inline void hghca_wqe_set_data(struct hghca_data_unit *unit, uint64_t addr,
				      uint32_t lkey, uint32_t length)
{
	unit->byte_cnt = htole32(length);
	unit->lkey = htole32(lkey);
	unit->addr = htole64(addr);
}

/* A length with bit 31 would turn the data unit into an inline unit. */
static inline bool hghca_sge_valid(uint32_t length)
{
	return !(length & HGHCA_INLINE_FLAG);
}

/* Write the list as data units.  Returns their number, or a negative errno. */
static inline int hghca_wqe_set_sges(struct hghca_data_unit *unit, uint32_t max_sge,
				     const struct ibv_sge *sge, int num_sge)
{
	int i;

	if ((uint32_t)num_sge > max_sge)
		return -EINVAL;
	for (i = 0; i < num_sge; i++, sge++) {
		if (!hghca_sge_valid(sge->length))
			return -EINVAL;
		hghca_wqe_set_data(&unit[i], sge->addr, sge->lkey, sge->length);
	}
	return num_sge;
}

/* Write the scatter list of a receive WQE, but not its next unit.  Returns 0 or an errno. */
static inline int hghca_wqe_set_scatter(void *wqe, uint32_t stride_log, uint32_t max_sge,
					const struct ibv_recv_wr *wr)
{
	struct hghca_data_unit *unit = hghca_wqe_unit(wqe, HGHCA_NEXT_UNITS);
	uint32_t room = (1U << stride_log) / HGHCA_WQE_UNIT - HGHCA_NEXT_UNITS;
	int units;

	units = hghca_wqe_set_sges(unit, max_sge, wr->sg_list, wr->num_sge);
	if (units < 0)
		return -units;
	if ((uint32_t)units < room)
		hghca_wqe_set_data(&unit[units], 0, HGHCA_INVALID_LKEY, 0);
	return 0;
}

/*
 * Post a receive WQE of a queue without a doorbell record: the device takes the WQE at its
 * own index unless the first 16 bytes are 0.  The end moves on before the WQE can be taken.
 */
static inline void hghca_wqe_mark(struct hghca_wq *rq, uint32_t index)
{
	struct hghca_next_unit *end = hghca_wq_slot(rq, index + 1);
	struct hghca_next_unit *next = hghca_wq_slot(rq, index);

	end->flags = 0;
	hghca_wqe_before_announcement();
	next->flags = htole32(HGHCA_WQE_CQ_UPDATE);
}

/* Remove the marks of all WQEs of an idle queue. */
static inline void hghca_wq_clear_marks(struct hghca_wq *rq)
{
	struct hghca_next_unit *next;
	uint32_t i;

	for (i = 0; rq->spare && i < rq->cnt; i++) {
		next = hghca_wq_slot(rq, i);
		next->flags = 0;
	}
}

/* Write the word before inline data.  Returns the units of both. */
static inline uint32_t hghca_wqe_set_inline_length(void *unit, uint32_t length)
{
	__le32 word = htole32(HGHCA_INLINE_FLAG | length);

	if (!length)
		return 0;
	memcpy(unit, &word, sizeof(word));
	return (HGHCA_INLINE_WORD + length + HGHCA_WQE_UNIT - 1) / HGHCA_WQE_UNIT;
}

/* Append WQE wq.head + batch->count, which is already written, to the batch. */
static inline void hghca_sq_append(struct hghca_qp *qp, struct hghca_sq_batch *batch,
				   uint8_t opcode, uint32_t units, bool fence)
{
	uint32_t index = hghca_wq_head(&qp->sq) + batch->count;
	struct hghca_next_unit *prev;

	if (batch->count++) {
		prev = hghca_wq_slot(&qp->sq, index - 1);
		prev->nda_nop = hghca_link_nda_nop(&qp->sq, index, opcode);
		prev->nee_nds = hghca_link_nee_nds(units, fence);
		return;
	}
	batch->first_opcode = opcode;
	batch->first_units = units;
	batch->first_fence = fence;
}

/* Post the batch: write the link to its first WQE and ring the doorbell once. */
static inline void hghca_sq_announce(struct hghca_qp *qp,
				     const struct hghca_sq_batch *batch)
{
	struct hghca_wq *sq = &qp->sq;
	uint32_t first = hghca_wq_head(sq);
	struct hghca_next_unit *prev;
	uint32_t low;

	if (!batch->count)
		return;

	hghca_wq_set_head(sq, first + batch->count);

	/*
	 * A batch as long as the queue needs no link: all WQEs before it have
	 * completed, and the slot before its first WQE is that of its last.
	 */
	if (batch->count < sq->cnt) {
		prev = hghca_wq_slot(sq, first - 1);
		hghca_wqe_before_announcement();
		prev->nda_nop = hghca_link_nda_nop(sq, first, batch->first_opcode);
		hghca_link_in_order();
		prev->nee_nds = hghca_link_nee_nds(batch->first_units, batch->first_fence);
	}

	low = FIELD_PREP(HGHCA_SQ_DB_HEAD_MASK, first) |
	      FIELD_PREP(HGHCA_SQ_DB_FENCE, batch->first_fence) |
	      FIELD_PREP(HGHCA_SQ_DB_OPCODE_MASK, batch->first_opcode);
	if (batch->count <= HGHCA_SQ_DB_COUNT_MAX)
		low |= FIELD_PREP(HGHCA_SQ_DB_COUNT_MASK, batch->count);
	hghca_memory_before_doorbell();
	hghca_ring((char *)qp->uar + HGHCA_UAR_SQ_DB, low,
		   FIELD_PREP(HGHCA_SQ_DB_QPN_MASK, qp->vqp.qp.qp_num) |
		   FIELD_PREP(HGHCA_SQ_DB_SIZE0_MASK, batch->first_units));
}

/* wqe.c */
uint32_t hghca_wqe_stride_log(uint32_t bytes);
uint32_t hghca_wqe_recv_sge_grant(uint32_t asked);

#endif /* HGHCA_PROVIDER_WQE_H */
