// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: UAR pages.
 *
 * The kernel uses page 0.  A user context has a system page, which may contain several
 * UAR pages.  It uses the first of them.  Contexts do not share a system page.
 */
#include "hghca.h"

#define HGHCA_UARS_PER_PAGE	(PAGE_SIZE / HGHCA_UAR_PAGE_SIZE)

/**
 * hghca_uar_map_kernel - map the UAR page of the kernel
 * @hdev: the device
 *
 * Return: 0 or -ENOMEM.
 */
int hghca_uar_map_kernel(struct hghca_dev *hdev)
{
	hdev->uar = ioremap(hdev->bus.uar_phys, HGHCA_UAR_PAGE_SIZE);
	return hdev->uar ? 0 : -ENOMEM;
}

/**
 * hghca_uar_unmap_kernel - undo hghca_uar_map_kernel()
 * @hdev: the device
 */
void hghca_uar_unmap_kernel(struct hghca_dev *hdev)
{
	iounmap(hdev->uar);
}

/**
 * hghca_uar_alloc - allocate a UAR page that shares no system page with another
 * @hdev: the device
 * @uar: the page
 *
 * Return: 0 or a negative errno.
 */
int hghca_uar_alloc(struct hghca_dev *hdev, struct hghca_uar *uar)
{
	int page;

	page = ida_alloc_range(&hdev->uar_ida, 1,
			       hdev->limits.num_uars / HGHCA_UARS_PER_PAGE - 1, GFP_KERNEL);
	if (page < 0)
		return page == -ENOSPC ? -ENOMEM : page;
	uar->index = page * HGHCA_UARS_PER_PAGE;
	return 0;
}

/**
 * hghca_uar_free - undo hghca_uar_alloc()
 * @hdev: the device
 * @uar: the page, which is not mapped
 */
void hghca_uar_free(struct hghca_dev *hdev, const struct hghca_uar *uar)
{
	ida_free(&hdev->uar_ida, uar->index / HGHCA_UARS_PER_PAGE);
}
