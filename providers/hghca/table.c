/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * JingZhao HCA: QPs, receive work queues and XRC SRQs by number.
 *
 * An object enters behind the command that makes it, which tells the number,
 * and leaves behind the one that destroys it, when the device writes no more
 * completions of it.  No lock is held around either.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include "hghca.h"

/* The leaf of a number, made when it is missing; NULL without memory. */
static hghca_table_slot *hghca_table_leaf(struct hghca_table *table, uint32_t root)
{
	hghca_table_slot *leaf;

	leaf = atomic_load_explicit(&table->leaves[root], memory_order_relaxed);
	if (leaf)
		return leaf;
	leaf = calloc(HGHCA_TABLE_LEAF_SIZE, sizeof(*leaf));
	if (leaf)
		atomic_store_explicit(&table->leaves[root], leaf, memory_order_release);
	return leaf;
}

/* Waits until the number's previous owner, if it still has one, has left.  0 or an errno. */
int hghca_table_add(struct hghca_context *ctx, struct hghca_table *table,
		    uint32_t number, void *object)
{
	uint32_t root = number >> HGHCA_TABLE_LEAF_LOG;
	hghca_table_slot *leaf, *slot;

	if (root >= HGHCA_TABLE_ROOT_SIZE)
		return EINVAL;

	pthread_mutex_lock(&ctx->table_lock);
	leaf = hghca_table_leaf(table, root);
	if (leaf) {
		slot = &leaf[number & (HGHCA_TABLE_LEAF_SIZE - 1)];
		while (atomic_load_explicit(slot, memory_order_relaxed))
			pthread_cond_wait(&ctx->table_cleared, &ctx->table_lock);
		atomic_store_explicit(slot, object, memory_order_release);
	}
	pthread_mutex_unlock(&ctx->table_lock);
	return leaf ? 0 : ENOMEM;
}

/*
 * With table_lock held, and the locks of the CQs that the object completes to:
 * no poll has found it and still uses it.  Whoever waits for the number is
 * woken at table_cleared when those locks are free again.
 */
void hghca_table_clear(struct hghca_table *table, uint32_t number)
{
	hghca_table_slot *leaf;

	leaf = atomic_load_explicit(&table->leaves[number >> HGHCA_TABLE_LEAF_LOG],
				    memory_order_relaxed);
	atomic_store_explicit(&leaf[number & (HGHCA_TABLE_LEAF_SIZE - 1)], NULL,
			      memory_order_release);
}

void hghca_table_free(struct hghca_table *table)
{
	unsigned int i;

	for (i = 0; i < HGHCA_TABLE_ROOT_SIZE; i++)
		free(atomic_load_explicit(&table->leaves[i],
					  memory_order_relaxed));
}
