/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * JingZhao HCA: QPs, receive work queues and XRC SRQs by number.
 *
 * An object enters behind the command that makes it, which tells the number,
 * and leaves behind the one that destroys it, when the device writes no more
 * completions of it.  No lock is held around either.
 *
 * A slot has one owner at a time: only the owner clears it, and whoever gets
 * the number next writes it when it is clear.  The owner clears it with the
 * locks of its CQs held, and these may be held for long, between
 * ibv_start_poll() and ibv_end_poll(), by a thread that creates another object
 * meanwhile.  So nobody waits for a CQ's lock with table_lock held.
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

/*
 * Waits until the number's previous owner, if it still has one, has left.  0 or
 * an errno.
 *
 * That owner may be waiting for the lock of a CQ which this thread is polling:
 * neither would go on.  QP numbers are given out in turn, so that one comes back
 * after all others; those of XRC SRQs may come back at once.
 */
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
		/*
		 * Acquire: the previous owner's completions are out of its CQs.
		 * It wakes us with table_lock held, after it has cleared the
		 * slot, so that it cannot do both between the look and the wait.
		 */
		while (atomic_load_explicit(slot, memory_order_acquire))
			pthread_cond_wait(&ctx->table_cleared, &ctx->table_lock);
		atomic_store_explicit(slot, object, memory_order_release);
	}
	pthread_mutex_unlock(&ctx->table_lock);
	return leaf ? 0 : ENOMEM;
}

/*
 * With the locks of the CQs held that the object completes to, and its
 * completions taken out of them: no poll has found it and still uses it.
 * When those locks are free again hghca_table_wake() must follow.
 */
void hghca_table_clear(struct hghca_table *table, uint32_t number)
{
	hghca_table_slot *leaf;

	leaf = atomic_load_explicit(&table->leaves[number >> HGHCA_TABLE_LEAF_LOG],
				    memory_order_relaxed);
	atomic_store_explicit(&leaf[number & (HGHCA_TABLE_LEAF_SIZE - 1)], NULL,
			      memory_order_release);
}

/* A number is free: wakes whoever waits for it.  With no spinlock held. */
void hghca_table_wake(struct hghca_context *ctx)
{
	pthread_mutex_lock(&ctx->table_lock);
	pthread_cond_broadcast(&ctx->table_cleared);
	pthread_mutex_unlock(&ctx->table_lock);
}

void hghca_table_free(struct hghca_table *table)
{
	unsigned int i;

	for (i = 0; i < HGHCA_TABLE_ROOT_SIZE; i++)
		free(atomic_load_explicit(&table->leaves[i],
					  memory_order_relaxed));
}
