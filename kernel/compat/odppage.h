/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * After 6.12: the driver maps the pages of on-demand memory for DMA.  Before, ib_core has mapped
 * them already, and its list of addresses has the access rights in their low bits: those
 * that were asked for last, while the device has the rights of the process.  What takes
 * the place of verbs/odppage.h is defined here.
 */
#ifndef COMPAT_HAS_HMM_DMA_MAP
#define HGHCA_ODPPAGE_H
#include <linux/hmm.h>
#include <rdma/ib_umem_odp.h>

static inline int hghca_odp_umem_access(int ib_access)
{
	return ib_access;
}

/* The device writes to pages that the process may write to: they get dirty. */
static inline void compat_odp_writable(struct ib_umem_odp *umem_odp, u64 i)
{
	u64 pfn = umem_odp->pfn_list[i << (umem_odp->page_shift - PAGE_SHIFT)];

	if (umem_odp->umem.writable && umem_odp->dma_list[i] && pfn & HMM_PFN_WRITE)
		umem_odp->dma_list[i] |= ODP_WRITE_ALLOWED_BIT;
}

static inline void compat_odp_pages_writable(struct ib_umem_odp *umem_odp, u64 start, u64 end)
{
	u64 base = ib_umem_start(umem_odp);
	u64 i;

	for (i = (start - base) >> umem_odp->page_shift; base + (i << umem_odp->page_shift) < end;
	     i++)
		compat_odp_writable(umem_odp, i);
}

static inline int hghca_odp_page_map(struct ib_umem_odp *umem_odp, u32 i, dma_addr_t *dma,
				     bool *writable)
{
	compat_odp_writable(umem_odp, i);
	*dma = umem_odp->dma_list[i] & ODP_DMA_ADDR_MASK;
	*writable = umem_odp->dma_list[i] & ODP_WRITE_ALLOWED_BIT;
	return !!(umem_odp->dma_list[i] & ODP_READ_ALLOWED_BIT);
}

static inline int compat_odp_map_dma_and_lock(struct ib_umem_odp *umem_odp, u64 user_virt,
					      u64 bcnt, u64 access_mask, bool fault)
{
	u64 access = ODP_READ_ALLOWED_BIT;
	int ret;

	if (access_mask & HMM_PFN_WRITE)
		access |= ODP_WRITE_ALLOWED_BIT;
	ret = ib_umem_odp_map_dma_and_lock(umem_odp, user_virt, bcnt, access, fault);
	if (ret < 0 && user_virt >= ib_umem_start(umem_odp) &&
	    user_virt + bcnt <= ib_umem_end(umem_odp)) {
		/* Some of the pages may have been mapped again, for reading. */
		mutex_lock(&umem_odp->umem_mutex);
		compat_odp_pages_writable(umem_odp, user_virt, user_virt + bcnt);
		mutex_unlock(&umem_odp->umem_mutex);
	}
	return ret;
}

static inline void compat_odp_unmap_dma_pages(struct ib_umem_odp *umem_odp, u64 start, u64 end)
{
	compat_odp_pages_writable(umem_odp, start, end);
	ib_umem_odp_unmap_dma_pages(umem_odp, start, end);
}

#define ib_umem_odp_map_dma_and_lock	compat_odp_map_dma_and_lock
#define ib_umem_odp_unmap_dma_pages	compat_odp_unmap_dma_pages
#endif
