/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* JingZhao HCA: what odp.c and odptree.c share of regions on demand. */
#ifndef HGHCA_ODP_H
#define HGHCA_ODP_H

#include <rdma/ib_umem_odp.h>

#include "verbs/verbs.h"

struct hghca_odp;
struct hghca_odp_table;
struct hghca_odp_tree;

/**
 * struct hghca_odp_chunk - memory that one umem follows, and its MTTs
 * @odp: the region's
 * @umem: the memory; its private is the chunk
 * @mtts: one for each of its pages
 * @writable: a bit for each of them, set while the device may write there; under the
 *	umem's mutex
 * @table: the one that leads to it, of a tree; otherwise NULL
 * @users: who brings pages now, of a tree; under its lock
 */
struct hghca_odp_chunk {
	struct hghca_odp *odp;
	struct ib_umem_odp *umem;
	struct hghca_mtts mtts;
	unsigned long *writable;
	struct hghca_odp_table *table;
	u32 users;
};

/**
 * struct hghca_odp - what a region on demand has besides
 * @refs: who looks at it now, and one
 * @released: the last reference is gone
 * @leaving: it is being deregistered
 * @faults: PAGE_FAULT events served
 * @failed: those whose page there was not
 * @prefetched: pages brought because of an advice
 * @invalidations: times that pages were taken away
 * @whole: its memory, when it has no @tree
 * @tree: that of a region of all memory
 */
struct hghca_odp {
	refcount_t refs;
	struct completion released;
	bool leaving;
	atomic64_t faults;
	atomic64_t failed;
	atomic64_t prefetched;
	atomic64_t invalidations;
	struct hghca_odp_chunk whole;
	struct hghca_odp_tree *tree;
};

/* odp.c.  bits: those of so many pages, to be given to kvfree(); or NULL. */
/* A bit for each page of a chunk, all 0; or NULL without memory. */
static inline unsigned long *hghca_odp_bits(size_t pages)
{
	return kvcalloc(BITS_TO_LONGS(pages), sizeof(unsigned long), GFP_KERNEL);
}

/*
 * odptree.c.  May sleep, but for emptied.  get: the chunk of an address, made when there is
 * none, or an ERR_PTR(); it stays until put, and after that while it has pages.
 * emptied: it has none left; from its notifier, with its mutex.
 */
int hghca_odp_tree_create(struct hghca_dev *hdev, struct hghca_mr *mr, int ib_access,
			  const struct mmu_interval_notifier_ops *ops);
void hghca_odp_tree_destroy(struct hghca_odp_tree *tree);
u64 hghca_odp_tree_length(void);
struct hghca_odp_chunk *hghca_odp_tree_get(struct hghca_odp_tree *tree, u64 address);
void hghca_odp_tree_put(struct hghca_odp_tree *tree, struct hghca_odp_chunk *chunk);
void hghca_odp_tree_emptied(struct hghca_odp_tree *tree, const struct hghca_odp_chunk *chunk);

#endif /* HGHCA_ODP_H */
