/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * JingZhao HCA: encoding of work queue elements.
 *
 * Pure functions: they use no device, take no lock and access only the memory
 * passed to them.
 */
#ifndef HGHCA_WQE_H
#define HGHCA_WQE_H

#include <linux/bits.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include <hghca_hw.h>

/* The longest message of an RC QP, bytes (interface document, section 12). */
#define HGHCA_MAX_MSG_SIZE	BIT_ULL(31)

/**
 * struct hghca_wqe_room - limits of a WQE
 * @units: usable 16-byte units of a slot
 * @max_sge: maximum number of data units
 * @max_inline: maximum bytes of inline data
 * @signal_all: every WQE generates a CQE
 * @mem_mgt: HGHCA_CAP_MEM_MGT is enabled
 */
struct hghca_wqe_room {
	u16 units;
	u16 max_sge;
	u16 max_inline;
	bool signal_all;
	bool mem_mgt;
};

/**
 * struct hghca_wqe_info - data of a WQE for its doorbell and its completion
 * @length: bytes of its data list
 * @opcode: HGHCA_OPCODE_*
 * @units: its size in 16-byte units
 * @fence: it waits for the READs and atomics before it
 */
struct hghca_wqe_info {
	u32 length;
	u8 opcode;
	u8 units;
	bool fence;
};

/**
 * struct hghca_wqe_reg - attributes of a region after REG_MR
 * @key: its new key
 * @access: HGHCA_ACCESS_*
 * @start: virtual address
 * @length: bytes
 * @list: DMA address of the list of pages
 * @pages: number of pages
 * @page_shift: log2 of a page's bytes
 * @first_byte: of a zero-based region: its offset in the first page
 */
struct hghca_wqe_reg {
	u32 key;
	u32 access;
	u64 start;
	u64 length;
	u64 list;
	u32 pages;
	u8 page_shift;
	u32 first_byte;
};

int hghca_wqe_encode_rc(void *wqe, const struct hghca_wqe_room *room,
			const struct ib_send_wr *wr,
			struct hghca_wqe_info *info);
int hghca_wqe_encode_uc(void *wqe, const struct hghca_wqe_room *room,
			const struct ib_send_wr *wr,
			struct hghca_wqe_info *info);
int hghca_wqe_encode_lacking(void *wqe, const struct hghca_wqe_room *room,
			     const struct ib_send_wr *wr,
			     struct hghca_wqe_info *info);
int hghca_wqe_encode_reg(void *wqe, const struct hghca_wqe_room *room,
			 const struct hghca_wqe_reg *reg,
			 const struct ib_send_wr *wr,
			 struct hghca_wqe_info *info);
int hghca_wqe_encode_ud(void *wqe, const struct hghca_wqe_room *room,
			const struct hghca_ud_gid_unit *av,
			const struct ib_ud_wr *wr,
			struct hghca_wqe_info *info);
void hghca_wqe_encode_av(struct hghca_ud_gid_unit *av,
			 const struct rdma_ah_attr *attr, const u8 *dmac);
int hghca_wqe_encode_recv(void *wqe, const struct hghca_wqe_room *room,
			  const struct ib_recv_wr *wr, u32 *length);
void hghca_wqe_link(struct hghca_next_unit *prev, u32 offset,
		    const struct hghca_wqe_info *info);
u64 hghca_wqe_sq_doorbell(u32 qpn, u16 index, unsigned int count,
			  const struct hghca_wqe_info *first);
u32 hghca_wqe_send_bytes(enum ib_qp_type type, unsigned int sges,
			 unsigned int inline_bytes);
u32 hghca_wqe_recv_bytes(unsigned int sges);
u32 hghca_wqe_inline_room(enum ib_qp_type type, u32 bytes);
u32 hghca_wqe_inline_grant(unsigned int sges, unsigned int inline_bytes);
u32 hghca_wqe_recv_sge_grant(unsigned int sges);

#endif /* HGHCA_WQE_H */
