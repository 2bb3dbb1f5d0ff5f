// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* DMA mapping of the pages of on-demand memory by the driver. */
#include <rdma/ib_umem_odp.h>

static_assert(sizeof(((struct ib_umem_odp *)0)->map.pfn_list));
