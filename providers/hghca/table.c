/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* JingZhao HCA: QPs, receive work queues and XRC SRQs by number.  Writers hold table_lock. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include "hghca.h"

/* Returns 0 or an errno. */
int hghca_table_set(struct hghca_table *table, uint32_t number, void *object)
{
	hghca_table_slot *leaf;
	uint32_t root = number >> HGHCA_TABLE_LEAF_LOG;

	if (root >= HGHCA_TABLE_ROOT_SIZE)
		return EINVAL;

	leaf = atomic_load_explicit(&table->leaves[root], memory_order_relaxed);
	if (!leaf) {
		leaf = calloc(HGHCA_TABLE_LEAF_SIZE, sizeof(*leaf));
		if (!leaf)
			return ENOMEM;
		atomic_store_explicit(&table->leaves[root], leaf,
				      memory_order_release);
	}
	atomic_store_explicit(&leaf[number & (HGHCA_TABLE_LEAF_SIZE - 1)], object,
			      memory_order_release);
	return 0;
}

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
