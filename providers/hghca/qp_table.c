/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* JingZhao HCA: QPs by number.  Callers hold qp_table_lock. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include "hghca.h"

/* Returns 0 or an errno. */
int hghca_qp_table_set(struct hghca_context *ctx, uint32_t qpn,
		       struct hghca_qp *qp)
{
	hghca_qp_slot *leaf;
	uint32_t root = qpn >> HGHCA_QP_LEAF_LOG;

	if (root >= HGHCA_QP_ROOT_SIZE)
		return EINVAL;

	leaf = atomic_load_explicit(&ctx->qp_table[root], memory_order_relaxed);
	if (!leaf) {
		leaf = calloc(HGHCA_QP_LEAF_SIZE, sizeof(*leaf));
		if (!leaf)
			return ENOMEM;
		atomic_store_explicit(&ctx->qp_table[root], leaf,
				      memory_order_release);
	}
	atomic_store_explicit(&leaf[qpn & (HGHCA_QP_LEAF_SIZE - 1)], qp,
			      memory_order_release);
	return 0;
}

void hghca_qp_table_clear(struct hghca_context *ctx, uint32_t qpn)
{
	hghca_qp_slot *leaf;

	leaf = atomic_load_explicit(&ctx->qp_table[qpn >> HGHCA_QP_LEAF_LOG],
				    memory_order_relaxed);
	atomic_store_explicit(&leaf[qpn & (HGHCA_QP_LEAF_SIZE - 1)], NULL,
			      memory_order_release);
}

void hghca_qp_table_free(struct hghca_context *ctx)
{
	unsigned int i;

	for (i = 0; i < HGHCA_QP_ROOT_SIZE; i++)
		free(atomic_load_explicit(&ctx->qp_table[i],
					  memory_order_relaxed));
}
