// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* JingZhao HCA: encoding of work queue elements. */

#include <linux/align.h>
#include <linux/bitfield.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/unaligned.h>

#include <asm/barrier.h>

#include "wqe.h"

/* The units before the data list of the longest WQE of a service. */
#define HGHCA_WQE_HEAD_RC \
	(sizeof(struct hghca_next_unit) + sizeof(struct hghca_raddr_unit))
#define HGHCA_WQE_HEAD_UD \
	(sizeof(struct hghca_next_unit) + sizeof(struct hghca_ud_gid_unit))
/* An atomic has one more unit, and exactly one data unit. */
#define HGHCA_WQE_ATOMIC \
	(HGHCA_WQE_HEAD_RC + sizeof(struct hghca_atomic_unit) + \
	 sizeof(struct hghca_data_unit))
#define HGHCA_WQE_REG \
	(sizeof(struct hghca_next_unit) + sizeof(struct hghca_reg_unit))
#define HGHCA_INLINE_HEAD	sizeof(__le32)
#define HGHCA_WQE_LIST_MIN	(2 * HGHCA_WQE_UNIT)

/* Units and services of a verbs opcode. */
struct hghca_wqe_kind {
	u8 opcode;
	bool rc;
	bool uc;
	bool ud;
	bool raddr;
	bool atomic;
	bool imm;
	bool scatter;		/* the device writes to the data list: no inline data */
	bool inv;		/* a key instead of immediate data */
	bool local_inv;		/* a unit with a key, and no data list */
};

static const struct hghca_wqe_kind hghca_wqe_kinds[] = {
	[IB_WR_RDMA_WRITE] = {
		.opcode = HGHCA_OPCODE_RDMA_WRITE, .rc = true, .uc = true,
		.raddr = true,
	},
	[IB_WR_RDMA_WRITE_WITH_IMM] = {
		.opcode = HGHCA_OPCODE_RDMA_WRITE_IMM, .rc = true, .uc = true,
		.raddr = true, .imm = true,
	},
	[IB_WR_SEND] = {
		.opcode = HGHCA_OPCODE_SEND, .rc = true, .uc = true, .ud = true,
	},
	[IB_WR_SEND_WITH_IMM] = {
		.opcode = HGHCA_OPCODE_SEND_IMM, .rc = true, .uc = true, .ud = true,
		.imm = true,
	},
	[IB_WR_RDMA_READ] = {
		.opcode = HGHCA_OPCODE_RDMA_READ, .rc = true, .raddr = true,
		.scatter = true,
	},
	[IB_WR_ATOMIC_CMP_AND_SWP] = {
		.opcode = HGHCA_OPCODE_ATOMIC_CS, .rc = true, .raddr = true,
		.atomic = true, .scatter = true,
	},
	[IB_WR_ATOMIC_FETCH_AND_ADD] = {
		.opcode = HGHCA_OPCODE_ATOMIC_FA, .rc = true, .raddr = true,
		.atomic = true, .scatter = true,
	},
	[IB_WR_SEND_WITH_INV] = {
		.opcode = HGHCA_OPCODE_SEND_INV, .rc = true, .inv = true,
	},
	[IB_WR_LOCAL_INV] = {
		.opcode = HGHCA_OPCODE_LOCAL_INV, .rc = true, .uc = true,
		.local_inv = true,
	},
};

/* Not in the table: see hghca_wqe_encode_reg(). */
static const struct hghca_wqe_kind hghca_wqe_kind_reg = {
	.opcode = HGHCA_OPCODE_REG_MR,
};

static const struct hghca_wqe_kind *hghca_wqe_kind(enum ib_wr_opcode opcode)
{
	/* No opcode of a request in the table is 0: 0 marks a hole. */
	if ((unsigned int)opcode >= ARRAY_SIZE(hghca_wqe_kinds) ||
	    !hghca_wqe_kinds[opcode].opcode)
		return NULL;
	return &hghca_wqe_kinds[opcode];
}

/* Check for requests that the device may lack.  It never has a READ that invalidates. */
static int hghca_wqe_check_mem_mgt(const struct hghca_wqe_room *room,
				   enum ib_wr_opcode opcode)
{
	switch (opcode) {
	case IB_WR_RDMA_READ_WITH_INV:
		return -EOPNOTSUPP;
	case IB_WR_SEND_WITH_INV:
	case IB_WR_LOCAL_INV:
	case IB_WR_REG_MR:
		return room->mem_mgt ? 0 : -EOPNOTSUPP;
	default:
		return 0;
	}
}

/* The next unit, with no successor: nds and F are 0. */
static void hghca_wqe_put_next(struct hghca_next_unit *next,
			       const struct hghca_wqe_room *room,
			       const struct ib_send_wr *wr,
			       const struct hghca_wqe_kind *kind)
{
	u32 flags = 0;

	if (room->signal_all || (wr->send_flags & IB_SEND_SIGNALED))
		flags |= HGHCA_WQE_CQ_UPDATE;
	if (wr->send_flags & IB_SEND_SOLICITED)
		flags |= HGHCA_WQE_SOLICIT;

	next->nda_nop = 0;
	next->nee_nds = 0;
	next->flags = cpu_to_le32(flags);
	if (kind->imm)
		next->imm_data = wr->ex.imm_data;
	else if (kind->inv)
		next->imm_data = cpu_to_be32(wr->ex.invalidate_rkey);
	else
		next->imm_data = 0;
}

static void hghca_wqe_put_data(struct hghca_data_unit *data,
			       const struct ib_sge *sge)
{
	data->byte_cnt = cpu_to_le32(sge->length);
	data->lkey = cpu_to_le32(sge->lkey);
	data->addr = cpu_to_le64(sge->addr);
}

/*
 * The sum of a list's lengths, or -EINVAL when it has too many entries or is
 * longer than any message.
 */
static int hghca_wqe_length(const struct ib_sge *sge, int num_sge,
			    unsigned int max_sge, u32 *length)
{
	u64 sum = 0;
	int i;

	if (num_sge < 0 || num_sge > max_sge)
		return -EINVAL;
	for (i = 0; i < num_sge; i++)
		sum += sge[i].length;
	if (sum > HGHCA_MAX_MSG_SIZE)
		return -EINVAL;
	*length = sum;
	return 0;
}

/* Write one inline unit for all entries. Returns its end. */
static void *hghca_wqe_put_inline(void *at, const struct ib_send_wr *wr,
				  u32 length)
{
	__le32 *head = at;
	u8 *data = at + HGHCA_INLINE_HEAD;
	u32 padded = ALIGN(HGHCA_INLINE_HEAD + length, HGHCA_WQE_UNIT);
	int i;

	*head = cpu_to_le32(HGHCA_INLINE_FLAG | length);
	for (i = 0; i < wr->num_sge; i++) {
		memcpy(data, (void *)(uintptr_t)wr->sg_list[i].addr,
		       wr->sg_list[i].length);
		data += wr->sg_list[i].length;
	}
	memset(data, 0, at + padded - (void *)data);
	return at + padded;
}

/*
 * Write the gather or scatter list at *at, and move *at behind it. At the creation of
 * the queue, the slot was sized for max_sge and max_inline, so that a list within these
 * limits fits.
 */
static int hghca_wqe_put_list(void **at, const struct hghca_wqe_room *room,
			      const struct ib_send_wr *wr,
			      const struct hghca_wqe_kind *kind, u32 *length)
{
	struct hghca_data_unit *data = *at;
	int ret;
	int i;

	ret = hghca_wqe_length(wr->sg_list, wr->num_sge, room->max_sge, length);
	if (ret)
		return ret;

	if (wr->send_flags & IB_SEND_INLINE) {
		if (kind->scatter || *length > room->max_inline)
			return -EINVAL;
		if (*length)
			*at = hghca_wqe_put_inline(*at, wr, *length);
		return 0;
	}

	for (i = 0; i < wr->num_sge; i++) {
		if (!wr->sg_list[i].length)
			continue;
		hghca_wqe_put_data(data++, &wr->sg_list[i]);
	}
	*at = data;
	return 0;
}

static void hghca_wqe_put_atomic(struct hghca_atomic_unit *unit,
				 const struct ib_atomic_wr *wr)
{
	if (wr->wr.opcode == IB_WR_ATOMIC_CMP_AND_SWP) {
		unit->swap_add = cpu_to_le64(wr->swap);
		unit->cmp = cpu_to_le64(wr->compare_add);
	} else {
		unit->swap_add = cpu_to_le64(wr->compare_add);
		unit->cmp = 0;
	}
}

static int hghca_wqe_finish(const void *wqe, const void *end,
			    const struct hghca_wqe_room *room,
			    const struct hghca_wqe_kind *kind,
			    const struct ib_send_wr *wr,
			    struct hghca_wqe_info *info)
{
	unsigned int units = (end - wqe) / HGHCA_WQE_UNIT;

	if (WARN_ON_ONCE(units > room->units))
		return -EINVAL;
	info->opcode = kind->opcode;
	info->units = units;
	info->fence = wr->send_flags & IB_SEND_FENCE;
	return 0;
}

static void *hghca_wqe_put_inv(void *at, u32 key)
{
	struct hghca_inv_unit *unit = at;

	memset(unit, 0, sizeof(*unit));
	unit->key = cpu_to_le32(key);
	return unit + 1;
}

/**
 * hghca_wqe_encode_lacking - write a send WQE that the QP's service lacks
 * @wqe: the slot, of at least @room->units units
 * @room: limits of the WQE
 * @wr: the work request
 * @info: output: data for its doorbell and its completion
 *
 * The device completes the WQE, in order, with LOCAL_QP_OP_ERR.
 *
 * Return: 0, -EINVAL for a request that changes keys or that no service has, or
 * -EOPNOTSUPP for one that the device lacks.  After an error the slot is unchanged.
 */
int hghca_wqe_encode_lacking(void *wqe, const struct hghca_wqe_room *room,
			     const struct ib_send_wr *wr,
			     struct hghca_wqe_info *info)
{
	const struct hghca_wqe_kind *kind = hghca_wqe_kind(wr->opcode);
	int ret;

	ret = hghca_wqe_check_mem_mgt(room, wr->opcode);
	if (ret)
		return ret;
	if (!kind || kind->inv || kind->local_inv)
		return -EINVAL;

	hghca_wqe_put_next(wqe, room, wr, kind);
	info->length = 0;
	return hghca_wqe_finish(wqe, wqe + sizeof(struct hghca_next_unit), room, kind,
				wr, info);
}

/* @has_it: the service supports requests of this kind. */
static int hghca_wqe_encode_connected(void *wqe, const struct hghca_wqe_room *room,
				      const struct hghca_wqe_kind *kind, bool has_it,
				      const struct ib_send_wr *wr,
				      struct hghca_wqe_info *info)
{
	void *at = wqe + sizeof(struct hghca_next_unit);
	int ret;

	if (!has_it)
		return hghca_wqe_encode_lacking(wqe, room, wr, info);
	ret = hghca_wqe_check_mem_mgt(room, wr->opcode);
	if (ret)
		return ret;

	hghca_wqe_put_next(wqe, room, wr, kind);
	if (kind->local_inv) {
		info->length = 0;
		at = hghca_wqe_put_inv(at, wr->ex.invalidate_rkey);
		return hghca_wqe_finish(wqe, at, room, kind, wr, info);
	}
	if (kind->raddr) {
		struct hghca_raddr_unit *raddr = at;

		if (kind->atomic) {
			raddr->raddr = cpu_to_le64(atomic_wr(wr)->remote_addr);
			raddr->rkey = cpu_to_le32(atomic_wr(wr)->rkey);
		} else {
			raddr->raddr = cpu_to_le64(rdma_wr(wr)->remote_addr);
			raddr->rkey = cpu_to_le32(rdma_wr(wr)->rkey);
		}
		raddr->rsvd0c = 0;
		at += sizeof(*raddr);
	}
	if (kind->atomic) {
		if (wr->num_sge != 1)
			return -EINVAL;
		hghca_wqe_put_atomic(at, atomic_wr(wr));
		at += sizeof(struct hghca_atomic_unit);
	}
	ret = hghca_wqe_put_list(&at, room, wr, kind, &info->length);
	if (ret)
		return ret;
	return hghca_wqe_finish(wqe, at, room, kind, wr, info);
}

/**
 * hghca_wqe_encode_rc - write a send WQE of an RC QP
 * @wqe: the slot, of at least @room->units units
 * @room: limits of the WQE
 * @wr: the work request
 * @info: output: data for its doorbell and its completion
 *
 * Return: 0, or -EINVAL for a work request the QP cannot do, -EOPNOTSUPP for one
 * the device lacks; the slot is then undefined.
 */
int hghca_wqe_encode_rc(void *wqe, const struct hghca_wqe_room *room,
			const struct ib_send_wr *wr,
			struct hghca_wqe_info *info)
{
	const struct hghca_wqe_kind *kind = hghca_wqe_kind(wr->opcode);

	return hghca_wqe_encode_connected(wqe, room, kind, kind && kind->rc, wr, info);
}

/**
 * hghca_wqe_encode_uc - write a send WQE of a UC QP
 * @wqe: the slot, of at least @room->units units
 * @room: limits of the WQE
 * @wr: the work request
 * @info: output: data for its doorbell and its completion
 *
 * Return: 0, or -EINVAL for a work request the QP cannot do, -EOPNOTSUPP for one
 * the device lacks; the slot is then undefined.
 */
int hghca_wqe_encode_uc(void *wqe, const struct hghca_wqe_room *room,
			const struct ib_send_wr *wr,
			struct hghca_wqe_info *info)
{
	const struct hghca_wqe_kind *kind = hghca_wqe_kind(wr->opcode);

	return hghca_wqe_encode_connected(wqe, room, kind, kind && kind->uc, wr, info);
}

/**
 * hghca_wqe_encode_reg - write a REG_MR WQE of an RC or UC QP
 * @wqe: the slot, of at least @room->units units
 * @room: limits of the WQE
 * @reg: the registration
 * @wr: the work request
 * @info: output: data for its doorbell and its completion
 *
 * Return: 0, or -EOPNOTSUPP if the device lacks it.  After an error the slot is unchanged.
 */
int hghca_wqe_encode_reg(void *wqe, const struct hghca_wqe_room *room,
			 const struct hghca_wqe_reg *reg,
			 const struct ib_send_wr *wr,
			 struct hghca_wqe_info *info)
{
	struct hghca_reg_unit *unit = wqe + sizeof(struct hghca_next_unit);
	int ret;

	ret = hghca_wqe_check_mem_mgt(room, wr->opcode);
	if (ret)
		return ret;

	hghca_wqe_put_next(wqe, room, wr, &hghca_wqe_kind_reg);
	memset(unit, 0, sizeof(*unit));
	unit->key = cpu_to_le32(reg->key);
	unit->access = cpu_to_le32(reg->access);
	unit->start = cpu_to_le64(reg->start);
	unit->length = cpu_to_le64(reg->length);
	unit->list = cpu_to_le64(reg->list);
	unit->pages = cpu_to_le32(reg->pages);
	unit->page_size = cpu_to_le32(reg->page_shift - 12);
	unit->first_byte = cpu_to_le32(reg->first_byte);
	info->length = 0;
	return hghca_wqe_finish(wqe, unit + 1, room, &hghca_wqe_kind_reg, wr, info);
}

/**
 * hghca_wqe_encode_av - write the UD unit of an address
 * @av: the unit, without destination QPN and Q_Key
 * @attr: the address, with a GRH
 * @dmac: destination MAC
 */
void hghca_wqe_encode_av(struct hghca_ud_gid_unit *av,
			 const struct rdma_ah_attr *attr, const u8 *dmac)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(attr);
	u32 port = HGHCA_UD_GRH |
		   FIELD_PREP(HGHCA_UD_STATIC_RATE_MASK, rdma_ah_get_static_rate(attr)) |
		   FIELD_PREP(HGHCA_UD_HOP_LIMIT_MASK, grh->hop_limit) |
		   FIELD_PREP(HGHCA_UD_SGID_INDEX_MASK, grh->sgid_index) |
		   FIELD_PREP(HGHCA_UD_PORT_MASK, rdma_ah_get_port_num(attr));
	u32 class = FIELD_PREP(HGHCA_QPC_SL_MASK, rdma_ah_get_sl(attr)) |
		    FIELD_PREP(HGHCA_QPC_TCLASS_MASK, grh->traffic_class) |
		    FIELD_PREP(HGHCA_QPC_FLOWLABEL_MASK, grh->flow_label);

	memset(av, 0, sizeof(*av));
	av->port = cpu_to_le32(port);
	av->sl_tclass_flowlabel = cpu_to_le32(class);
	av->dmac_h = cpu_to_le32(get_unaligned_be32(dmac));
	av->dmac_l = cpu_to_le32(FIELD_PREP(HGHCA_UD_DMAC_L_MASK,
					    get_unaligned_be16(dmac + 4)));
	memcpy(av->dgid, grh->dgid.raw, sizeof(av->dgid));
}

/**
 * hghca_wqe_encode_ud - write a send WQE of a UD QP
 * @wqe: the slot, of at least @room->units units
 * @room: limits of the WQE
 * @av: the UD unit of the work request's address handle
 * @wr: the work request
 * @info: output: data for its doorbell and its completion
 *
 * Return: 0, or -EINVAL for a work request the QP cannot do; the slot is then
 * undefined.
 */
int hghca_wqe_encode_ud(void *wqe, const struct hghca_wqe_room *room,
			const struct hghca_ud_gid_unit *av,
			const struct ib_ud_wr *wr,
			struct hghca_wqe_info *info)
{
	struct hghca_ud_gid_unit *ud = wqe + sizeof(struct hghca_next_unit);
	const struct hghca_wqe_kind *kind = hghca_wqe_kind(wr->wr.opcode);
	void *at = wqe + HGHCA_WQE_HEAD_UD;
	int ret;

	if (!kind || !kind->ud)
		return -EINVAL;
	/* The port has one P_Key; a QPN has 24 bits. */
	if (wr->pkey_index || wr->remote_qpn > 0xffffff)
		return -EINVAL;

	hghca_wqe_put_next(wqe, room, &wr->wr, kind);
	*ud = *av;
	ud->dqpn = cpu_to_le32(wr->remote_qpn);
	ud->qkey = cpu_to_le32(wr->remote_qkey);
	ret = hghca_wqe_put_list(&at, room, &wr->wr, kind, &info->length);
	if (ret)
		return ret;
	return hghca_wqe_finish(wqe, at, room, kind, &wr->wr, info);
}

/**
 * hghca_wqe_encode_recv - write a receive WQE
 * @wqe: the slot, of at least @room->units units
 * @room: limits of the WQE
 * @wr: the work request
 * @length: output: bytes of the scatter list
 *
 * Return: 0, or -EINVAL for a list too long; the slot is then undefined.
 */
int hghca_wqe_encode_recv(void *wqe, const struct hghca_wqe_room *room,
			  const struct ib_recv_wr *wr, u32 *length)
{
	struct hghca_data_unit *data = wqe + sizeof(struct hghca_next_unit);
	struct hghca_data_unit *end = wqe + room->units * HGHCA_WQE_UNIT;
	int ret;
	int i;

	ret = hghca_wqe_length(wr->sg_list, wr->num_sge, room->max_sge, length);
	if (ret)
		return ret;

	memset(wqe, 0, sizeof(struct hghca_next_unit));
	for (i = 0; i < wr->num_sge; i++) {
		if (!wr->sg_list[i].length)
			continue;
		if (WARN_ON_ONCE(data >= end))
			return -EINVAL;
		hghca_wqe_put_data(data++, &wr->sg_list[i]);
	}
	if (data < end) {
		data->byte_cnt = 0;
		data->lkey = cpu_to_le32(HGHCA_INVALID_LKEY);
		data->addr = 0;
	}
	return 0;
}

/**
 * hghca_wqe_link - link a WQE to its predecessor
 * @prev: next unit of the predecessor
 * @offset: byte offset of the WQE in its queue
 * @info: opcode, size and fence of the WQE
 *
 * The device may start the WQE as soon as nds is set.
 */
void hghca_wqe_link(struct hghca_next_unit *prev, u32 offset,
		    const struct hghca_wqe_info *info)
{
	u32 nee_nds = FIELD_PREP(HGHCA_NEXT_NDS_MASK, info->units);

	if (info->fence)
		nee_nds |= HGHCA_NEXT_FENCE;

	/* The WQE must be complete in memory before its predecessor links to it. */
	dma_wmb();
	WRITE_ONCE(prev->nda_nop,
		   cpu_to_le32((offset & HGHCA_NEXT_NDA_MASK) | info->opcode));
	/* nda and opcode must be in memory before nds is set. */
	dma_wmb();
	WRITE_ONCE(prev->nee_nds, cpu_to_le32(nee_nds));
}

/**
 * hghca_wqe_sq_doorbell - the doorbell for a list of WQEs
 * @qpn: the QP
 * @index: free-running index of the list's first WQE
 * @count: number of WQEs
 * @first: the list's first WQE
 *
 * Return: the 64-bit word, in host order.
 */
u64 hghca_wqe_sq_doorbell(u32 qpn, u16 index, unsigned int count,
			  const struct hghca_wqe_info *first)
{
	u32 low = FIELD_PREP(HGHCA_SQ_DB_HEAD_MASK, index) |
		  FIELD_PREP(HGHCA_SQ_DB_OPCODE_MASK, first->opcode);
	u32 high = FIELD_PREP(HGHCA_SQ_DB_QPN_MASK, qpn) |
		   FIELD_PREP(HGHCA_SQ_DB_SIZE0_MASK, first->units);

	if (count <= FIELD_MAX(HGHCA_SQ_DB_COUNT_MASK))
		low |= FIELD_PREP(HGHCA_SQ_DB_COUNT_MASK, count);
	if (first->fence)
		low |= HGHCA_SQ_DB_FENCE;
	return (u64)high << 32 | low;
}

static u32 hghca_wqe_head(enum ib_qp_type type)
{
	return type == IB_QPT_UD || type == IB_QPT_GSI ? HGHCA_WQE_HEAD_UD : HGHCA_WQE_HEAD_RC;
}

/*
 * Bytes of a data list for so many SGEs, or so much inline data.  A list for a single
 * SGE also has room for 16 bytes of inline data, which other adapters grant with it.
 */
static u32 hghca_wqe_list_bytes(unsigned int sges, unsigned int inline_bytes)
{
	u32 list = sges * sizeof(struct hghca_data_unit);

	if (sges)
		list = max_t(u32, list, HGHCA_WQE_LIST_MIN);
	if (!inline_bytes)
		return list;
	return max_t(u32, list, ALIGN(HGHCA_INLINE_HEAD + inline_bytes, HGHCA_WQE_UNIT));
}

/**
 * hghca_wqe_send_bytes - size of the longest send WQE of a QP
 * @type: its type
 * @sges: entries of its longest list
 * @inline_bytes: its longest inline data
 *
 * Return: bytes, a multiple of 16.
 */
u32 hghca_wqe_send_bytes(enum ib_qp_type type, unsigned int sges,
			 unsigned int inline_bytes)
{
	u32 bytes = hghca_wqe_head(type) + hghca_wqe_list_bytes(sges, inline_bytes);

	if (type == IB_QPT_RC)
		bytes = max_t(u32, bytes, HGHCA_WQE_ATOMIC);
	if (type == IB_QPT_RC || type == IB_QPT_UC)
		bytes = max_t(u32, bytes, HGHCA_WQE_REG);
	return bytes;
}

/**
 * hghca_wqe_recv_bytes - size of the longest receive WQE of a QP
 * @sges: entries of its longest list
 *
 * Return: bytes, a multiple of 16.
 */
u32 hghca_wqe_recv_bytes(unsigned int sges)
{
	return sizeof(struct hghca_next_unit) +
	       sges * sizeof(struct hghca_data_unit);
}

/**
 * hghca_wqe_recv_sge_grant - the SGEs granted to a receive queue
 * @sges: the number requested
 *
 * Return: the same number, but at least one.
 */
u32 hghca_wqe_recv_sge_grant(unsigned int sges)
{
	return max(sges, 1U);
}

/**
 * hghca_wqe_inline_room - the inline data that fits a send WQE
 * @type: type of the QP
 * @bytes: size of the WQE
 *
 * Return: bytes.
 */
u32 hghca_wqe_inline_room(enum ib_qp_type type, u32 bytes)
{
	return bytes - hghca_wqe_head(type) - HGHCA_INLINE_HEAD;
}

/**
 * hghca_wqe_inline_grant - the inline data granted to a QP
 * @sges: the SGEs requested
 * @inline_bytes: the inline data requested
 *
 * The data list has the larger of both sizes, and inline data may fill it.  The slot
 * may have more space, which is not granted.
 *
 * Return: bytes.
 */
u32 hghca_wqe_inline_grant(unsigned int sges, unsigned int inline_bytes)
{
	u32 list = hghca_wqe_list_bytes(sges, inline_bytes);

	return list ? list - HGHCA_INLINE_HEAD : 0;
}
