/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* JingZhao HCA: common declarations of odp.c and odptree.c. */
#ifndef HGHCA_ODP_H
#define HGHCA_ODP_H

#include "verbs/odppage.h"
#include "verbs/verbs.h"

struct hghca_odp;
struct hghca_odp_table;
struct hghca_odp_tree;

/**
 * struct hghca_odp_chunk - memory of one umem, and its MTTs
 * @odp: that of the region
 * @umem: the memory; its private is the chunk
 * @mtts: one for each page
 * @table: the table that refers to it, in a tree; otherwise NULL
 * @users: number of threads that map pages now, in a tree; under the lock of the tree
 */
struct hghca_odp_chunk {
	struct hghca_odp *odp;
	struct ib_umem_odp *umem;
	struct hghca_mtts mtts;
	struct hghca_odp_table *table;
	u32 users;
};

/**
 * struct hghca_odp - additional data of an on-demand region
 * @refs: one, plus one for each present user
 * @released: completed with the last reference
 * @leaving: it is being deregistered
 * @faults: PAGE_FAULT events handled
 * @failed: PAGE_FAULT events whose page does not exist
 * @prefetched: pages mapped because of an advice
 * @invalidations: number of invalidations of pages
 * @whole: its memory, if it has no @tree
 * @tree: the memory of a region of all memory
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

/*
 * odptree.c.  May sleep, except emptied.  get: the chunk of an address, created if necessary,
 * or an ERR_PTR(); it exists until put, and after that while it has pages.
 * emptied: the chunk has no pages left; called from its notifier, under its mutex.
 */
int hghca_odp_tree_create(struct hghca_dev *hdev, struct hghca_mr *mr, int ib_access,
			  const struct mmu_interval_notifier_ops *ops);
void hghca_odp_tree_destroy(struct hghca_odp_tree *tree);
u64 hghca_odp_tree_length(void);
struct hghca_odp_chunk *hghca_odp_tree_get(struct hghca_odp_tree *tree, u64 address);
void hghca_odp_tree_put(struct hghca_odp_tree *tree, struct hghca_odp_chunk *chunk);
void hghca_odp_tree_emptied(struct hghca_odp_tree *tree, const struct hghca_odp_chunk *chunk);

#endif /* HGHCA_ODP_H */
