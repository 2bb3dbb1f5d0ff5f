/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* JingZhao HCA: the send operations of struct ibv_qp_ex. */
#include <config.h>

#include <errno.h>

#include "hghca.h"
#include "wqe.h"

#define HGHCA_SEND_OPS_RAW	((uint64_t)IBV_QP_EX_WITH_SEND)
#define HGHCA_SEND_OPS_UD	((uint64_t)(IBV_QP_EX_WITH_SEND | \
					    IBV_QP_EX_WITH_SEND_WITH_IMM))
#define HGHCA_SEND_OPS_UC	(HGHCA_SEND_OPS_UD | \
				 IBV_QP_EX_WITH_RDMA_WRITE | \
				 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | \
				 IBV_QP_EX_WITH_LOCAL_INV | \
				 IBV_QP_EX_WITH_BIND_MW)
#define HGHCA_SEND_OPS_RC	(HGHCA_SEND_OPS_UC | \
				 IBV_QP_EX_WITH_RDMA_READ | \
				 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | \
				 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | \
				 IBV_QP_EX_WITH_SEND_WITH_INV | \
				 IBV_QP_EX_WITH_FLUSH | \
				 IBV_QP_EX_WITH_ATOMIC_WRITE)
#define HGHCA_SEND_OPS_MEM_MGT	((uint64_t)(IBV_QP_EX_WITH_LOCAL_INV | \
					    IBV_QP_EX_WITH_BIND_MW | \
					    IBV_QP_EX_WITH_SEND_WITH_INV))
#define HGHCA_SEND_OPS_PLACEMENT ((uint64_t)(IBV_QP_EX_WITH_FLUSH | \
					     IBV_QP_EX_WITH_ATOMIC_WRITE))
#define HGHCA_FLUSH_TYPES	(IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT)
#define HGHCA_FLUSH_MAX		(1U << 31)	/* bytes of a range */
#define HGHCA_ATOMIC_WRITE_BYTES 8

/* The current WQE is complete: append it to the batch. */
static inline void hghca_wr_close(struct hghca_qp *qp)
{
	struct hghca_wr_builder *wr = &qp->wr;

	if (!wr->wqe)
		return;
	hghca_sq_append(qp, &wr->batch, wr->opcode, wr->units, wr->fence);
	wr->wqe = NULL;
}

/* The maximum number of SGEs of a WQE of this opcode. */
static inline uint32_t hghca_wr_max_sge(const struct hghca_qp *qp, uint8_t opcode)
{
	switch (opcode) {
	case HGHCA_OPCODE_LOCAL_INV:
	case HGHCA_OPCODE_BIND_MW:
	case HGHCA_OPCODE_FLUSH:
	case HGHCA_OPCODE_ATOMIC_WRITE:	/* already has its data */
		return 0;
	case HGHCA_OPCODE_ATOMIC_CS:
	case HGHCA_OPCODE_ATOMIC_FA:
		return qp->sq.max_sge ? 1 : 0;
	default:
		return qp->sq.max_sge;
	}
}

/* Start the next WQE, whose data list starts at `units`.  Returns NULL after an error. */
static inline void *hghca_wr_open(struct ibv_qp_ex *ibqp, uint8_t opcode,
				  uint32_t units, bool may_inline, __be32 imm_data)
{
	struct hghca_qp *qp = to_hqp_ex(ibqp);
	struct hghca_wr_builder *wr = &qp->wr;
	uint32_t index;

	if (wr->err)
		return NULL;
	hghca_wr_close(qp);

	if (!hghca_send_flags_valid(qp, ibqp->wr_flags)) {
		wr->err = EINVAL;
		return NULL;
	}
	index = hghca_wq_head(&qp->sq) + wr->batch.count;
	if (hghca_wq_full(&qp->sq, index)) {
		wr->err = ENOMEM;
		return NULL;
	}
	wr->wqe = hghca_wqe_start(qp, index, ibqp->wr_id, ibqp->wr_flags, imm_data, 0);
	wr->opcode = opcode;
	wr->fence = ibqp->wr_flags & IBV_SEND_FENCE;
	wr->may_inline = may_inline;
	wr->max_sge = hghca_wr_max_sge(qp, opcode);
	wr->header_units = units;
	wr->units = units;
	return wr->wqe;
}

static inline uint32_t hghca_wr_send_header(struct ibv_qp_ex *ibqp)
{
	return HGHCA_NEXT_UNITS + (to_hqp_ex(ibqp)->is_ud ? HGHCA_UD_UNITS : 0);
}

static void hghca_wr_send(struct ibv_qp_ex *ibqp)
{
	hghca_wr_open(ibqp, HGHCA_OPCODE_SEND, hghca_wr_send_header(ibqp),
		      true, 0);
}

static void hghca_wr_send_imm(struct ibv_qp_ex *ibqp, __be32 imm_data)
{
	hghca_wr_open(ibqp, HGHCA_OPCODE_SEND_IMM, hghca_wr_send_header(ibqp),
		      true, imm_data);
}

static void hghca_wr_send_inv(struct ibv_qp_ex *ibqp, uint32_t invalidate_rkey)
{
	hghca_wr_open(ibqp, HGHCA_OPCODE_SEND_INV, hghca_wr_send_header(ibqp),
		      true, htobe32(invalidate_rkey));
}

static void hghca_wr_local_inv(struct ibv_qp_ex *ibqp, uint32_t invalidate_rkey)
{
	void *wqe;

	wqe = hghca_wr_open(ibqp, HGHCA_OPCODE_LOCAL_INV,
			    HGHCA_NEXT_UNITS + HGHCA_INV_UNITS, false, 0);
	if (wqe)
		hghca_wqe_set_inv(wqe, invalidate_rkey);
}

static void hghca_wr_bind_mw(struct ibv_qp_ex *ibqp, struct ibv_mw *mw, uint32_t rkey,
			     const struct ibv_mw_bind_info *bind_info)
{
	struct hghca_wr_builder *wr = &to_hqp_ex(ibqp)->wr;
	void *wqe;

	wqe = hghca_wr_open(ibqp, HGHCA_OPCODE_BIND_MW,
			    HGHCA_NEXT_UNITS + HGHCA_BIND_UNITS, false, 0);
	if (!wqe)
		return;
	if (!hghca_bind2_valid(mw, bind_info)) {
		wr->err = EINVAL;
		return;
	}
	wr->binds[wr->num_binds++] = (struct hghca_wr_bind) { mw, mw->rkey };
	/* At once, as later requests may send the key. */
	mw->rkey = hghca_bind_rkey(mw, rkey);
	hghca_wqe_set_bind(wqe, mw->rkey, bind_info);
}

static inline void hghca_wr_rdma(struct ibv_qp_ex *ibqp, uint8_t opcode,
				 bool may_inline, __be32 imm_data,
				 uint32_t rkey, uint64_t remote_addr)
{
	void *wqe;

	wqe = hghca_wr_open(ibqp, opcode, HGHCA_NEXT_UNITS + HGHCA_RADDR_UNITS,
			    may_inline, imm_data);
	if (wqe)
		hghca_wqe_set_raddr(wqe, remote_addr, rkey);
}

static void hghca_wr_rdma_write(struct ibv_qp_ex *ibqp, uint32_t rkey,
				uint64_t remote_addr)
{
	hghca_wr_rdma(ibqp, HGHCA_OPCODE_RDMA_WRITE, true, 0, rkey, remote_addr);
}

static void hghca_wr_rdma_write_imm(struct ibv_qp_ex *ibqp, uint32_t rkey,
				    uint64_t remote_addr, __be32 imm_data)
{
	hghca_wr_rdma(ibqp, HGHCA_OPCODE_RDMA_WRITE_IMM, true, imm_data, rkey,
		      remote_addr);
}

static void hghca_wr_rdma_read(struct ibv_qp_ex *ibqp, uint32_t rkey,
			       uint64_t remote_addr)
{
	hghca_wr_rdma(ibqp, HGHCA_OPCODE_RDMA_READ, false, 0, rkey, remote_addr);
}

static inline void hghca_wr_atomic(struct ibv_qp_ex *ibqp, uint8_t opcode,
				   uint32_t rkey, uint64_t remote_addr,
				   uint64_t swap_add, uint64_t cmp)
{
	void *wqe;

	wqe = hghca_wr_open(ibqp, opcode, HGHCA_NEXT_UNITS + HGHCA_RADDR_UNITS +
			    HGHCA_ATOMIC_UNITS, false, 0);
	if (!wqe)
		return;
	hghca_wqe_set_raddr(wqe, remote_addr, rkey);
	hghca_wqe_set_atomic(wqe, swap_add, cmp);
}

static void hghca_wr_atomic_cmp_swp(struct ibv_qp_ex *ibqp, uint32_t rkey,
				    uint64_t remote_addr, uint64_t compare,
				    uint64_t swap)
{
	hghca_wr_atomic(ibqp, HGHCA_OPCODE_ATOMIC_CS, rkey, remote_addr, swap,
			compare);
}

static void hghca_wr_atomic_fetch_add(struct ibv_qp_ex *ibqp, uint32_t rkey,
				      uint64_t remote_addr, uint64_t add)
{
	hghca_wr_atomic(ibqp, HGHCA_OPCODE_ATOMIC_FA, rkey, remote_addr, add, 0);
}

/* The eight bytes are copied to the WQE: the application may change them at once. */
static void hghca_wr_atomic_write(struct ibv_qp_ex *ibqp, uint32_t rkey,
				  uint64_t remote_addr, const void *value)
{
	const uint32_t header = HGHCA_NEXT_UNITS + HGHCA_RADDR_UNITS;
	struct hghca_wr_builder *wr = &to_hqp_ex(ibqp)->wr;
	void *wqe, *unit;

	wqe = hghca_wr_open(ibqp, HGHCA_OPCODE_ATOMIC_WRITE, header, false, 0);
	if (!wqe)
		return;
	hghca_wqe_set_raddr(wqe, remote_addr, rkey);
	unit = hghca_wqe_unit(wqe, header);
	memcpy((char *)unit + HGHCA_INLINE_WORD, value, HGHCA_ATOMIC_WRITE_BYTES);
	wr->units = header + hghca_wqe_set_inline_length(unit, HGHCA_ATOMIC_WRITE_BYTES);
}

static void hghca_wr_flush(struct ibv_qp_ex *ibqp, uint32_t rkey,
			   uint64_t remote_addr, size_t len, uint8_t type,
			   uint8_t level)
{
	void *wqe;

	wqe = hghca_wr_open(ibqp, HGHCA_OPCODE_FLUSH, HGHCA_NEXT_UNITS +
			    HGHCA_RADDR_UNITS + HGHCA_FLUSH_UNITS, false, 0);
	if (!wqe)
		return;
	if (!type || (type & ~HGHCA_FLUSH_TYPES) || level > IBV_FLUSH_MR ||
	    len > HGHCA_FLUSH_MAX) {
		to_hqp_ex(ibqp)->wr.err = EINVAL;
		return;
	}
	hghca_wqe_set_raddr(wqe, remote_addr, rkey);
	hghca_wqe_set_flush(wqe, len, type, level);
}

/* The records say where they go, so there is no address; the key is that of the partition. */
static void hghca_wr_part(struct hghcadv_qp_ex *dv, uint32_t partition_key)
{
	hghca_wr_rdma(&to_hqp_dv(dv)->vqp.qp_ex, HGHCA_OPCODE_PART, true, 0,
		      partition_key, 0);
}

static void hghca_wr_read_pointer(struct hghcadv_qp_ex *dv, uint32_t rkey,
				  uint64_t remote_addr,
				  const struct hghcadv_pointer *pointer)
{
	struct hghca_qp *qp = to_hqp_dv(dv);
	void *wqe;

	wqe = hghca_wr_open(&qp->vqp.qp_ex, HGHCA_OPCODE_READ_POINTER,
			    HGHCA_NEXT_UNITS + HGHCA_RADDR_UNITS + HGHCA_POINTER_UNITS,
			    false, 0);
	if (!wqe)
		return;
	if (!hghca_pointer_valid(pointer)) {
		qp->wr.err = EINVAL;
		return;
	}
	hghca_wqe_set_raddr(wqe, remote_addr, rkey);
	hghca_wqe_set_pointer(wqe, pointer);
}

static void hghca_wr_read_consistent(struct hghcadv_qp_ex *dv, uint32_t rkey,
				     uint64_t remote_addr)
{
	hghca_wr_rdma(&to_hqp_dv(dv)->vqp.qp_ex, HGHCA_OPCODE_READ_CONSISTENT, false, 0,
		      rkey, remote_addr);
}

/* The builder if it has a current WQE, otherwise NULL. */
static inline struct hghca_wr_builder *hghca_wr_building(struct ibv_qp_ex *ibqp)
{
	struct hghca_wr_builder *wr = &to_hqp_ex(ibqp)->wr;

	return wr->err || !wr->wqe ? NULL : wr;
}

static void hghca_wr_set_ud_addr(struct ibv_qp_ex *ibqp, struct ibv_ah *ah,
				 uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct hghca_wr_builder *wr = hghca_wr_building(ibqp);

	if (!wr)
		return;
	if (!ah) {
		wr->err = EINVAL;
		return;
	}
	wr->opcode = hghca_ud_opcode(to_hqp_ex(ibqp), ah, wr->opcode);
	hghca_wqe_set_ud(wr->wqe, to_hah(ah), remote_qpn, remote_qkey);
}

static void hghca_wr_set_xrc_srqn(struct ibv_qp_ex *ibqp, uint32_t remote_srqn)
{
	struct hghca_wr_builder *wr = hghca_wr_building(ibqp);

	if (wr)
		hghca_wqe_set_srqn(wr->wqe, remote_srqn);
}

static void hghca_wr_set_sge_list(struct ibv_qp_ex *ibqp, size_t num_sge,
				  const struct ibv_sge *sg_list)
{
	struct hghca_wr_builder *wr = hghca_wr_building(ibqp);
	struct hghca_data_unit *unit;
	size_t i;

	if (!wr)
		return;
	if (num_sge > wr->max_sge) {
		wr->err = EINVAL;
		return;
	}
	unit = hghca_wqe_unit(wr->wqe, wr->header_units);
	for (i = 0; i < num_sge; i++) {
		if (!hghca_sge_valid(sg_list[i].length)) {
			wr->err = EINVAL;
			return;
		}
		hghca_wqe_set_data(&unit[i], sg_list[i].addr, sg_list[i].lkey,
				   sg_list[i].length);
	}
	wr->units = wr->header_units + num_sge;
}

static void hghca_wr_set_sge(struct ibv_qp_ex *ibqp, uint32_t lkey, uint64_t addr,
			     uint32_t length)
{
	struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	hghca_wr_set_sge_list(ibqp, 1, &sge);
}

static void hghca_wr_set_inline_data_list(struct ibv_qp_ex *ibqp, size_t num_buf,
					  const struct ibv_data_buf *buf_list)
{
	struct hghca_wr_builder *wr = hghca_wr_building(ibqp);
	uint32_t max_inline = to_hqp_ex(ibqp)->max_inline;
	uint32_t length = 0;
	void *unit;
	size_t i;

	if (!wr)
		return;
	if (!wr->may_inline) {
		wr->err = EINVAL;
		return;
	}
	unit = hghca_wqe_unit(wr->wqe, wr->header_units);
	for (i = 0; i < num_buf; i++) {
		if (buf_list[i].length > max_inline - length) {
			wr->err = EINVAL;
			return;
		}
		memcpy((char *)unit + HGHCA_INLINE_WORD + length,
		       buf_list[i].addr, buf_list[i].length);
		length += buf_list[i].length;
	}
	wr->units = wr->header_units + hghca_wqe_set_inline_length(unit, length);
}

static void hghca_wr_set_inline_data(struct ibv_qp_ex *ibqp, void *addr,
				     size_t length)
{
	struct ibv_data_buf buf = { .addr = addr, .length = length };

	hghca_wr_set_inline_data_list(ibqp, 1, &buf);
}

static void hghca_wr_start(struct ibv_qp_ex *ibqp)
{
	struct hghca_qp *qp = to_hqp_ex(ibqp);
	struct hghca_wr_builder *wr = &qp->wr;

	hghca_lock(&qp->sq.lock);
	wr->batch.count = 0;
	wr->num_binds = 0;
	wr->wqe = NULL;
	wr->err = hghca_qp_can_send(qp) ? 0 : EINVAL;
}

/* The batch is dropped: restore the keys of its windows. */
static void hghca_wr_undo_binds(struct hghca_wr_builder *wr)
{
	const struct hghca_wr_bind *bind;

	/* In reverse order: if a window was bound more than once, the first bind has its key. */
	while (wr->num_binds) {
		bind = &wr->binds[--wr->num_binds];
		bind->mw->rkey = bind->old_rkey;
	}
}

/* Post the whole batch, or after an error no WQE of it. */
static int hghca_wr_complete(struct ibv_qp_ex *ibqp)
{
	struct hghca_qp *qp = to_hqp_ex(ibqp);
	int err = qp->wr.err;

	if (!err) {
		hghca_wr_close(qp);
		hghca_sq_announce(qp, &qp->wr.batch);
	} else {
		hghca_wr_undo_binds(&qp->wr);
	}
	hghca_unlock(&qp->sq.lock);
	return hghca_errno(err);
}

static void hghca_wr_abort(struct ibv_qp_ex *ibqp)
{
	struct hghca_qp *qp = to_hqp_ex(ibqp);

	hghca_wr_undo_binds(&qp->wr);
	hghca_unlock(&qp->sq.lock);
}

static uint64_t hghca_wr_service_ops(const struct hghca_qp *qp)
{
	uint64_t ops = qp->is_uc ? HGHCA_SEND_OPS_UC : HGHCA_SEND_OPS_RC;

	if (qp->is_raw)
		return HGHCA_SEND_OPS_RAW;
	if (qp->is_ud)
		return HGHCA_SEND_OPS_UD;
	if (!qp->has_mem_mgt)
		ops &= ~HGHCA_SEND_OPS_MEM_MGT;
	if (!qp->has_placement)
		ops &= ~HGHCA_SEND_OPS_PLACEMENT;
	return ops;
}

/* Set the requested operations.  Returns 0 or EOPNOTSUPP. */
int hghca_wr_set_ops(struct hghca_qp *qp, uint64_t send_ops)
{
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;

	if (send_ops & ~hghca_wr_service_ops(qp))
		return EOPNOTSUPP;

	ex->wr_start = hghca_wr_start;
	ex->wr_complete = hghca_wr_complete;
	ex->wr_abort = hghca_wr_abort;
	ex->wr_set_sge = hghca_wr_set_sge;
	ex->wr_set_sge_list = hghca_wr_set_sge_list;
	ex->wr_set_inline_data = hghca_wr_set_inline_data;
	ex->wr_set_inline_data_list = hghca_wr_set_inline_data_list;
	if (qp->is_ud)
		ex->wr_set_ud_addr = hghca_wr_set_ud_addr;
	if (qp->is_xrc)
		ex->wr_set_xrc_srqn = hghca_wr_set_xrc_srqn;

	if (send_ops & IBV_QP_EX_WITH_SEND)
		ex->wr_send = hghca_wr_send;
	if (send_ops & IBV_QP_EX_WITH_SEND_WITH_IMM)
		ex->wr_send_imm = hghca_wr_send_imm;
	if (send_ops & IBV_QP_EX_WITH_RDMA_WRITE)
		ex->wr_rdma_write = hghca_wr_rdma_write;
	if (send_ops & IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
		ex->wr_rdma_write_imm = hghca_wr_rdma_write_imm;
	if (send_ops & IBV_QP_EX_WITH_RDMA_READ)
		ex->wr_rdma_read = hghca_wr_rdma_read;
	if (send_ops & IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP)
		ex->wr_atomic_cmp_swp = hghca_wr_atomic_cmp_swp;
	if (send_ops & IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)
		ex->wr_atomic_fetch_add = hghca_wr_atomic_fetch_add;
	if (send_ops & IBV_QP_EX_WITH_SEND_WITH_INV)
		ex->wr_send_inv = hghca_wr_send_inv;
	if (send_ops & IBV_QP_EX_WITH_LOCAL_INV)
		ex->wr_local_inv = hghca_wr_local_inv;
	if (send_ops & IBV_QP_EX_WITH_BIND_MW)
		ex->wr_bind_mw = hghca_wr_bind_mw;
	if (send_ops & IBV_QP_EX_WITH_FLUSH)
		ex->wr_flush = hghca_wr_flush;
	if (send_ops & IBV_QP_EX_WITH_ATOMIC_WRITE)
		ex->wr_atomic_write = hghca_wr_atomic_write;
	if (qp->has_vendor_ops) {
		qp->dv.wr_part = hghca_wr_part;
		qp->dv.wr_read_pointer = hghca_wr_read_pointer;
		qp->dv.wr_read_consistent = hghca_wr_read_consistent;
	}
	return 0;
}
