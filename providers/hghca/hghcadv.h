/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Direct verbs of JingZhao HCAs; hghcadv(7) describes them. */
#ifndef HGHCADV_H
#define HGHCADV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ */
/* Devices                                                              */

/* A device of the provider, with or without the operations below. */
bool hghcadv_is_supported(struct ibv_device *device);

enum hghcadv_device_flags {
	/* Partitions, and QPs with HGHCADV_QP_VENDOR_OPS. */
	HGHCADV_DEVICE_VENDOR_OPS = 1 << 0,
};

struct hghcadv_device_attr {
	uint64_t comp_mask;		/* 0: this structure has no optional fields */
	uint32_t flags;			/* enum hghcadv_device_flags */
	uint32_t max_partitions;
	uint32_t max_regions;		/* of one partition */
};

/* Returns 0 or an errno. */
int hghcadv_query_device(struct ibv_context *context,
			 struct hghcadv_device_attr *attr);

/* ------------------------------------------------------------------ */
/* Partitions: the targets of PART                                      */

struct hghcadv_region {
	uint64_t addr;
	uint32_t length;		/* bytes */
	uint32_t rkey;			/* with remote write access, of the partition's PD */
};

/*
 * The region of a record is the number that the bits from key_shift on of its
 * key make, as many as num_regions needs.
 */
struct hghcadv_partition_attr {
	uint64_t comp_mask;		/* 0 */
	uint32_t record_size;		/* bytes, a power of two from 8 to 256 */
	uint32_t num_regions;		/* a power of two up to max_regions */
	const struct hghcadv_region *regions;
	uint8_t key_offset;		/* byte of a record where its key is */
	uint8_t key_size;		/* bytes of the key, little-endian: 1, 2, 4 or 8 */
	uint8_t key_shift;
};

struct hghcadv_partition {
	struct ibv_context *context;
	struct ibv_pd *pd;
	uint32_t key;			/* what hghcadv_wr_part() takes */
	uint32_t num_regions;
};

/* Returns NULL and sets errno if it fails. */
struct hghcadv_partition *
hghcadv_create_partition(struct ibv_pd *pd,
			 const struct hghcadv_partition_attr *attr);

/* How many bytes each region is filled with.  Returns 0 or an errno. */
int hghcadv_query_partition(struct hghcadv_partition *partition,
			    uint32_t *filled, uint32_t count);

/* Returns 0 or an errno. */
int hghcadv_destroy_partition(struct hghcadv_partition *partition);

/* ------------------------------------------------------------------ */
/* QPs and work requests                                                */

enum hghcadv_qp_flags {
	HGHCADV_QP_VENDOR_OPS = 1 << 0,	/* sends and accepts these operations; RC */
};

struct hghcadv_qp_init_attr {
	uint64_t comp_mask;		/* 0 */
	uint32_t flags;			/* enum hghcadv_qp_flags */
};

/* Returns NULL and sets errno if it fails. */
struct ibv_qp *hghcadv_create_qp(struct ibv_context *context,
				 struct ibv_qp_init_attr_ex *attr,
				 struct hghcadv_qp_init_attr *dv_attr);

/* An element matches if its key is so, compared with that of the request. */
enum hghcadv_predicate {
	HGHCADV_PREDICATE_EQUAL = 0,
	HGHCADV_PREDICATE_LESS = 1,
	HGHCADV_PREDICATE_GREATER = 2,
	HGHCADV_PREDICATE_NOT_EQUAL = 3,
};

/*
 * A search in a list of elements of 16 words of 32 bits, little-endian.  A
 * position is the number of a word, from 0 to 14, where 64 bits are.
 */
struct hghcadv_pointer {
	uint64_t key;
	uint16_t keys;			/* bit n: an element has a key at word n */
	uint8_t predicate;		/* enum hghcadv_predicate */
	uint8_t value;			/* position of the pointer that is followed */
	uint8_t relative;		/* nonzero: value counts from the key that matches */
	uint8_t next;			/* position of the address of the next element */
	uint8_t has_next;		/* 0: the list has one element */
};

struct hghcadv_qp_ex {
	uint64_t comp_mask;
	void (*wr_part)(struct hghcadv_qp_ex *qp, uint32_t partition_key);
	void (*wr_read_pointer)(struct hghcadv_qp_ex *qp, uint32_t rkey,
				uint64_t remote_addr,
				const struct hghcadv_pointer *pointer);
	void (*wr_read_consistent)(struct hghcadv_qp_ex *qp, uint32_t rkey,
				   uint64_t remote_addr);
};

/* NULL for a QP without HGHCADV_QP_VENDOR_OPS. */
struct hghcadv_qp_ex *hghcadv_qp_ex_from_ibv_qp_ex(struct ibv_qp_ex *qp);

static inline void hghcadv_wr_part(struct hghcadv_qp_ex *qp,
				   uint32_t partition_key)
{
	qp->wr_part(qp, partition_key);
}

static inline void
hghcadv_wr_read_pointer(struct hghcadv_qp_ex *qp, uint32_t rkey,
			uint64_t remote_addr,
			const struct hghcadv_pointer *pointer)
{
	qp->wr_read_pointer(qp, rkey, remote_addr, pointer);
}

static inline void hghcadv_wr_read_consistent(struct hghcadv_qp_ex *qp,
					      uint32_t rkey,
					      uint64_t remote_addr)
{
	qp->wr_read_consistent(qp, rkey, remote_addr);
}

/* CRC-64/XZ: what the last 8 bytes of an object for READ_CONSISTENT are. */
uint64_t hghcadv_crc64(const void *data, size_t length);

#ifdef __cplusplus
}
#endif

#endif /* HGHCADV_H */
