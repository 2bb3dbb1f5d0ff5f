/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* JingZhao HCA: the pages of on-demand memory. */
#ifndef HGHCA_ODPPAGE_H
#define HGHCA_ODPPAGE_H

#include <linux/hmm.h>
#include <linux/pci-p2pdma.h>
#include <rdma/ib_umem_odp.h>

/*
 * IB_ACCESS_* for ib_umem_odp_get().  ib_core counts the pages of memory in huge pages in
 * two ways, in those of the process and in huge ones, so that it does not unmap all of
 * them.  Such memory is mapped page by page.
 */
static inline int hghca_odp_umem_access(int ib_access)
{
	return ib_access & ~IB_ACCESS_HUGETLB;
}

/**
 * hghca_odp_page_map - map a page for DMA if it is present
 * @umem_odp: its memory, locked by ib_umem_odp_map_dma_and_lock()
 * @i: the page
 * @dma: its DMA address, if 1 is returned
 * @writable: whether the process may write to it now
 *
 * Return: 1; 0 for an absent page; or -EFAULT.
 */
static inline int hghca_odp_page_map(struct ib_umem_odp *umem_odp, u32 i, dma_addr_t *dma,
				     bool *writable)
{
	struct device *dev = umem_odp->umem.ibdev->dma_device;
	unsigned long pfn = umem_odp->map.pfn_list[i];
	struct pci_p2pdma_map_state p2pdma = {};

	if (!(pfn & HMM_PFN_VALID))
		return 0;
	*dma = hmm_dma_map_pfn(dev, &umem_odp->map, i, &p2pdma);
	if (dma_mapping_error(dev, *dma))
		return -EFAULT;
	*writable = pfn & HMM_PFN_WRITE;
	if (!(pfn & HMM_PFN_DMA_MAPPED))
		umem_odp->npages++;
	return 1;
}

#endif /* HGHCA_ODPPAGE_H */
