// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: doorbell records.
 *
 * Doorbell records of the kernel are in a DMA pool, one per cache line.  Those of a
 * user are in memory of the user.  A page is pinned once for all its records.
 */
#include <linux/dmapool.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "hghca.h"

#define HGHCA_DBR_STRIDE	64

static_assert(sizeof(struct hghca_qp_dbr) == sizeof(struct hghca_cq_dbr));
static_assert(sizeof(struct hghca_qp_dbr) == sizeof(struct hghca_srq_dbr));

/* A page of a user's address space; protected by the lock of @pages. */
struct hghca_user_page {
	struct hghca_user_pages *pages;
	struct list_head node;
	struct ib_umem *umem;
	unsigned long addr;
	u32 users;
};

/**
 * hghca_dbr_init - initialize doorbell records
 * @hdev: the device
 *
 * Return: 0 or -ENOMEM.
 */
int hghca_dbr_init(struct hghca_dev *hdev)
{
	hdev->dbr_pool = dma_pool_create("hghca-dbr", hdev->bus.dev, HGHCA_DBR_STRIDE,
					 HGHCA_DBR_STRIDE, 0);
	return hdev->dbr_pool ? 0 : -ENOMEM;
}

/**
 * hghca_dbr_cleanup - undo hghca_dbr_init()
 * @hdev: the device
 */
void hghca_dbr_cleanup(struct hghca_dev *hdev)
{
	dma_pool_destroy(hdev->dbr_pool);
}

/**
 * hghca_dbr_alloc - allocate a zeroed kernel doorbell record
 * @hdev: the device
 * @dbr: the record
 *
 * Return: 0 or -ENOMEM.
 */
int hghca_dbr_alloc(struct hghca_dev *hdev, struct hghca_dbr *dbr)
{
	dbr->page = NULL;
	dbr->record = dma_pool_zalloc(hdev->dbr_pool, GFP_KERNEL, &dbr->dma);
	return dbr->record ? 0 : -ENOMEM;
}

/**
 * hghca_user_pages_init - initialize the pages of a user without doorbell records
 * @pages: the user's pages
 */
void hghca_user_pages_init(struct hghca_user_pages *pages)
{
	mutex_init(&pages->lock);
	INIT_LIST_HEAD(&pages->list);
}

static struct hghca_user_page *hghca_user_page_find(struct hghca_user_pages *pages,
						    unsigned long addr)
{
	struct hghca_user_page *page;

	list_for_each_entry(page, &pages->list, node)
		if (page->addr == addr && page->umem->owning_mm == current->mm)
			return page;
	return NULL;
}

static struct hghca_user_page *hghca_user_page_pin(struct hghca_dev *hdev,
						   struct hghca_user_pages *pages,
						   unsigned long addr)
{
	struct hghca_user_page *page;
	int err;

	page = kzalloc_obj(*page);
	if (!page)
		return ERR_PTR(-ENOMEM);

	/* Pin for writing, so that a later copy on write does not move the page. */
	page->umem = ib_umem_get_va(&hdev->ibdev, addr, PAGE_SIZE, IB_ACCESS_LOCAL_WRITE);
	if (IS_ERR(page->umem)) {
		err = PTR_ERR(page->umem);
		kfree(page);
		return ERR_PTR(err);
	}
	page->pages = pages;
	page->addr = addr;
	list_add(&page->node, &pages->list);
	return page;
}

/**
 * hghca_dbr_map_user - map a doorbell record of a user for the device
 * @hdev: the device
 * @pages: the user's pages, which outlive the record
 * @dbr: the record
 * @addr: its address
 *
 * Return: 0 or a negative errno.
 */
int hghca_dbr_map_user(struct hghca_dev *hdev, struct hghca_user_pages *pages,
		       struct hghca_dbr *dbr, u64 addr)
{
	struct hghca_user_page *page;
	int err = 0;

	if (!IS_ALIGNED(addr, sizeof(struct hghca_qp_dbr)) || addr != (unsigned long)addr)
		return -EINVAL;

	mutex_lock(&pages->lock);
	page = hghca_user_page_find(pages, addr & PAGE_MASK);
	if (!page)
		page = hghca_user_page_pin(hdev, pages, addr & PAGE_MASK);
	if (IS_ERR(page)) {
		err = PTR_ERR(page);
		goto out_unlock;
	}

	page->users++;
	dbr->page = page;
	dbr->record = NULL;
	dbr->dma = sg_dma_address(page->umem->sgt_append.sgt.sgl) + (addr & ~PAGE_MASK);
out_unlock:
	mutex_unlock(&pages->lock);
	return err;
}

/**
 * hghca_dbr_free - free a doorbell record
 * @hdev: the device, which does not read the record any more
 * @dbr: the record, of either kind; a zeroed one is ignored
 */
void hghca_dbr_free(struct hghca_dev *hdev, struct hghca_dbr *dbr)
{
	struct hghca_user_page *page = dbr->page;

	if (dbr->record) {
		dma_pool_free(hdev->dbr_pool, dbr->record, dbr->dma);
	} else if (page) {
		struct hghca_user_pages *pages = page->pages;

		mutex_lock(&pages->lock);
		if (!--page->users) {
			list_del(&page->node);
			ib_umem_release(page->umem);
			kfree(page);
		}
		mutex_unlock(&pages->lock);
	}
	memset(dbr, 0, sizeof(*dbr));
}
