/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* After 6.1: the address of memory of a device without DMA is that of the memory. */
#ifndef COMPAT_HAS_IB_VIRT_DMA_TO_PTR
#include <rdma/ib_verbs.h>

static inline void *ib_virt_dma_to_ptr(u64 dma_addr)
{
	return (void *)(uintptr_t)dma_addr;
}
#endif
