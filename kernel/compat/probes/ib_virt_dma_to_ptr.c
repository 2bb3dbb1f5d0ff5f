// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The pointer behind a DMA address of a device without DMA. */
#include <rdma/ib_verbs.h>

static_assert(sizeof(typeof(ib_virt_dma_to_ptr) *));
