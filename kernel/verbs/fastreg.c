// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: kernel regions for fast registration.
 *
 * Until REG_MR sets its address and pages, such a region has only MTTs in the device.
 * Each region has a page list in memory.  The device reads the list when it executes
 * REG_MR; see post.c.
 */
#include <linux/log2.h>
#include <linux/slab.h>

#include "verbs/verbs.h"

static int hghca_fast_pages_alloc(struct hghca_dev *hdev, struct hghca_fast_pages *pages, u32 max)
{
	pages->list = dma_alloc_coherent(hdev->bus.dev, max * sizeof(*pages->list),
					 &pages->dma, GFP_KERNEL);
	if (!pages->list)
		return -ENOMEM;
	pages->max = max;
	return 0;
}

/**
 * hghca_fast_pages_free - free a region's page list
 * @hdev: the device, which has no outstanding REG_MR that uses it
 * @pages: the list; a zeroed one is ignored
 */
void hghca_fast_pages_free(struct hghca_dev *hdev, struct hghca_fast_pages *pages)
{
	if (pages->list)
		dma_free_coherent(hdev->bus.dev, pages->max * sizeof(*pages->list),
				  pages->list, pages->dma);
}

/**
 * hghca_alloc_mr - allocate a region for fast registration
 * @ibpd: its PD
 * @type: IB_MR_TYPE_MEM_REG
 * @max_num_sg: maximum number of pages, up to HGHCA_FAST_REG_PAGES_MAX
 *
 * Return: the region, or an ERR_PTR(): -EOPNOTSUPP for another type, -EINVAL for
 * an invalid number of pages, or an error of an allocation or a command.
 */
struct ib_mr *hghca_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_num_sg)
{
	const struct hghca_hwmr_attr attr = {
		.kind = HGHCA_HWMR_FAST_REG,
		.pdn = to_hpd(ibpd)->pdn,
		.page_shift = 12,
	};
	struct hghca_dev *hdev = to_hdev(ibpd->device);
	struct hghca_mr *mr;
	int err;

	if (type != IB_MR_TYPE_MEM_REG) {
		ibdev_dbg(&hdev->ibdev, "alloc_mr: type %d is not supported\n", type);
		return ERR_PTR(-EOPNOTSUPP);
	}
	if (!max_num_sg || max_num_sg > HGHCA_FAST_REG_PAGES_MAX) {
		ibdev_dbg(&hdev->ibdev, "alloc_mr: %u pages are not possible\n", max_num_sg);
		return ERR_PTR(-EINVAL);
	}

	mr = kzalloc_obj(*mr);
	if (!mr)
		return ERR_PTR(-ENOMEM);

	err = hghca_fast_pages_alloc(hdev, &mr->pages, max_num_sg);
	if (err)
		goto err_free_mr;

	err = hghca_hwmr_create(hdev, &mr->hw, &attr, max_num_sg);
	if (err)
		goto err_free_pages;
	mr->kernel = true;
	mr->ibmr.lkey = mr->hw.key;
	mr->ibmr.rkey = mr->hw.key;
	return &mr->ibmr;

err_free_pages:
	hghca_fast_pages_free(hdev, &mr->pages);
err_free_mr:
	kfree(mr);
	return ERR_PTR(err);
}

static int hghca_fast_pages_push(struct ib_mr *ibmr, u64 dma)
{
	struct hghca_fast_pages *pages = &to_hmr(ibmr)->pages;

	if (pages->count == pages->max)
		return -ENOMEM;
	pages->list[pages->count++] = cpu_to_le64(dma);
	return 0;
}

static bool hghca_fast_page_size_is_valid(const struct hghca_limits *limits,
					  unsigned int page_size)
{
	return is_power_of_2(page_size) && ilog2(page_size) >= limits->log_min_page &&
	       ilog2(page_size) <= limits->log_max_page;
}

/**
 * hghca_map_mr_sg - list the pages that the next REG_MR registers
 * @ibmr: a region for fast registration; its page_size is set
 * @sg: mapped memory
 * @sg_nents: its entries
 * @sg_offset: input: offset in the first entry; output: offset in the first entry
 *	that is not mapped completely; may be NULL
 *
 * No REG_MR that uses the region may be outstanding.
 *
 * Return: the number of mapped entries, -EINVAL for an invalid page size or region, or
 * -ENOMEM if no entry fits.
 */
int hghca_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int sg_nents,
		    unsigned int *sg_offset)
{
	struct hghca_dev *hdev = to_hdev(ibmr->device);
	struct hghca_mr *mr = to_hmr(ibmr);

	if (!mr->pages.list ||
	    !hghca_fast_page_size_is_valid(&hdev->limits, ibmr->page_size)) {
		ibdev_dbg(&hdev->ibdev, "map_mr_sg: MR %#x with pages of %u bytes\n",
			  mr->hw.key, ibmr->page_size);
		return -EINVAL;
	}

	mr->pages.count = 0;
	return ib_sg_to_pages(ibmr, sg, sg_nents, sg_offset, hghca_fast_pages_push);
}

/**
 * hghca_fast_reg_describe - the attributes of a region for REG_MR
 * @limits: limits of the device
 * @wr: the work request; its region was mapped
 * @reg: output
 *
 * The user may have changed the address of the region since it was mapped.
 * A list that ends within an entry may have one page more than the bytes need.
 * The iova of a zero-based region gives its offset in the first page, and its
 * addresses start at 0.
 *
 * Return: 0, or -EINVAL for an invalid region, key or access right.
 */
int hghca_fast_reg_describe(const struct hghca_limits *limits, const struct ib_reg_wr *wr,
			    struct hghca_wqe_reg *reg)
{
	const struct hghca_mr *mr = to_hmr(wr->mr);
	const struct ib_mr *ibmr = &mr->ibmr;
	bool zero_based = wr->access & IB_ZERO_BASED;
	u64 in_page, pages;
	u8 page_shift;

	if (!mr->pages.list || (wr->key ^ mr->hw.key) & HGHCA_KEY_INDEX_MASK ||
	    wr->access & ~(HGHCA_MR_ACCESS_SUPPORTED | IB_ACCESS_OPTIONAL) ||
	    !hghca_fast_page_size_is_valid(limits, ibmr->page_size))
		return -EINVAL;

	page_shift = ilog2(ibmr->page_size);
	in_page = ibmr->iova & (ibmr->page_size - 1);
	if (zero_based && in_page && !(limits->caps & HGHCA_CAP_FIRST_BYTE))
		return -EINVAL;
	/* Check the bounds first: sums of values within them do not overflow. */
	if (!ibmr->length || ibmr->length > (u64)mr->pages.count << page_shift ||
	    ibmr->length - 1 > U64_MAX - ibmr->iova)
		return -EINVAL;
	pages = (in_page + ibmr->length + ibmr->page_size - 1) >> page_shift;
	if (pages > mr->pages.count)
		return -EINVAL;

	*reg = (struct hghca_wqe_reg) {
		.key = wr->key,
		.access = hghca_access_from_ib(wr->access),
		.start = zero_based ? 0 : ibmr->iova,
		.length = ibmr->length,
		.list = mr->pages.dma,
		.pages = pages,
		.page_shift = page_shift,
		.first_byte = zero_based ? in_page : 0,
	};
	return 0;
}
