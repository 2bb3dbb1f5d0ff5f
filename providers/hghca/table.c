/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * JingZhao HCA: QPs, receive work queues and XRC SRQs by number.
 *
 * An object is added after the command that creates it, which returns the number.
 * It is removed after the command that destroys it, when the device writes no more
 * completions of it.  No lock is held during either command.
 *
 * A slot has one owner at a time: only the owner clears it, and the next object of
 * the number writes it after that.  The owner clears it with the locks of its CQs
 * held.  A thread may hold these from ibv_start_poll() to ibv_end_poll() and create
 * another object in between.  So no thread waits for a CQ's lock with table_lock
 * held.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include "hghca.h"

/* The leaf of a number, which is allocated if it is missing; NULL without memory. */
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
 * Waits until the previous owner of the number has been removed.  Returns 0 or an
 * errno.
 *
 * If that owner waits for the lock of a CQ that this thread is polling, the two
 * deadlock.  QP numbers are assigned in turn, so that one is assigned again after
 * all others; those of XRC SRQs may be assigned again at once.
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
		 * It clears the slot before it takes table_lock to wake us, so
		 * the wakeup cannot come between the test and the wait.
		 */
		while (atomic_load_explicit(slot, memory_order_acquire))
			pthread_cond_wait(&ctx->table_cleared, &ctx->table_lock);
		atomic_store_explicit(slot, object, memory_order_release);
	}
	pthread_mutex_unlock(&ctx->table_lock);
	return leaf ? 0 : ENOMEM;
}

/*
 * With the locks of the object's CQs held, after its completions were removed from
 * them: no poll has found the object and still uses it.  hghca_table_wake() must
 * follow when those locks are released.
 */
void hghca_table_clear(struct hghca_table *table, uint32_t number)
{
	hghca_table_slot *leaf;

	leaf = atomic_load_explicit(&table->leaves[number >> HGHCA_TABLE_LEAF_LOG],
				    memory_order_relaxed);
	atomic_store_explicit(&leaf[number & (HGHCA_TABLE_LEAF_SIZE - 1)], NULL,
			      memory_order_release);
}

/* A number is free: wake the threads that wait for one.  With no spinlock held. */
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
