/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* JingZhao HCA: sizes of WQEs. */
#include <config.h>

#include "wqe.h"

/* log2 of the smallest slot of at least `bytes`. */
uint32_t hghca_wqe_stride_log(uint32_t bytes)
{
	uint32_t log = HGHCA_WQE_MIN_STRIDE_LOG;

	while ((1U << log) < bytes)
		log++;
	return log;
}

/* SGEs granted to a receive queue: the number requested, but at least one. */
uint32_t hghca_wqe_recv_sge_grant(uint32_t asked)
{
	return asked ? asked : 1;
}
