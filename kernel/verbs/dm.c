// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: device memory for users.
 *
 * The driver allocates it in system pages, so that each allocation can be mapped
 * separately, and clears it.  A page that is still mapped is not reused.
 */
#include <linux/genalloc.h>
#include <linux/io.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <rdma/uverbs_ioctl.h>

#include "verbs/verbs.h"

/* Alignment of regions: providers copy words of this size. */
#define HGHCA_DM_ALIGN	4

/**
 * hghca_dm_init - initialize device memory
 * @hdev: the device, with or without device memory
 *
 * Return: 0 or a negative errno.
 */
int hghca_dm_init(struct hghca_dev *hdev)
{
	u32 size = hdev->limits.device_memory;
	int err;

	if (!size)
		return 0;
	hdev->dm = ioremap(hdev->bus.uar_phys + HGHCA_DEVICE_MEMORY_OFFSET, size);
	if (!hdev->dm)
		return -ENOMEM;

	hdev->dm_pool = gen_pool_create(PAGE_SHIFT, NUMA_NO_NODE);
	if (!hdev->dm_pool) {
		err = -ENOMEM;
		goto err_unmap;
	}
	/* Addresses of the pool are offsets in the BAR, because a pool cannot allocate 0. */
	err = gen_pool_add(hdev->dm_pool, HGHCA_DEVICE_MEMORY_OFFSET, size, NUMA_NO_NODE);
	if (err)
		goto err_destroy_pool;
	return 0;

err_destroy_pool:
	gen_pool_destroy(hdev->dm_pool);
	hdev->dm_pool = NULL;
err_unmap:
	iounmap(hdev->dm);
	return err;
}

/**
 * hghca_dm_cleanup - undo hghca_dm_init()
 * @hdev: the device, of whose memory nothing is allocated
 */
void hghca_dm_cleanup(struct hghca_dev *hdev)
{
	if (!hdev->dm_pool)
		return;
	gen_pool_destroy(hdev->dm_pool);
	hdev->dm_pool = NULL;
	iounmap(hdev->dm);
}

static size_t hghca_dm_bytes(const struct hghca_mmap_entry *mmap)
{
	return mmap->rdma_entry.npages << PAGE_SHIFT;
}

/* Returns the offset in the BAR. */
static unsigned long hghca_dm_place(const struct hghca_dev *hdev,
				    const struct hghca_mmap_entry *mmap)
{
	return mmap->phys - hdev->bus.uar_phys;
}

/* Called when neither the owner nor a mapping uses the memory. */
static void hghca_dm_entry_free(struct hghca_dev *hdev, struct hghca_mmap_entry *mmap)
{
	gen_pool_free(hdev->dm_pool, hghca_dm_place(hdev, mmap), hghca_dm_bytes(mmap));
	kfree(mmap);
}

/* @align is a power of two; @size a multiple of a page. */
static struct hghca_mmap_entry *hghca_dm_entry_create(struct hghca_dev *hdev,
						      struct ib_ucontext *ibuctx, size_t size,
						      u32 align)
{
	struct genpool_data_align data = { .align = align };
	struct hghca_mmap_entry *mmap;
	unsigned long place;
	int err;

	mmap = kzalloc_obj(*mmap);
	if (!mmap)
		return ERR_PTR(-ENOMEM);

	place = gen_pool_alloc_algo(hdev->dm_pool, size, gen_pool_first_fit_align, &data);
	if (!place) {
		ibdev_dbg(&hdev->ibdev, "device memory: no %zu bytes, aligned to %u\n", size,
			  align);
		err = -ENOMEM;
		goto err_free_entry;
	}
	memset_io(hdev->dm + (place - HGHCA_DEVICE_MEMORY_OFFSET), 0, size);

	mmap->phys = hdev->bus.uar_phys + place;
	mmap->free = hghca_dm_entry_free;
	err = rdma_user_mmap_entry_insert(ibuctx, &mmap->rdma_entry, size);
	if (err)
		goto err_free_place;
	return mmap;

err_free_place:
	gen_pool_free(hdev->dm_pool, place, size);
err_free_entry:
	kfree(mmap);
	return ERR_PTR(err);
}

/**
 * hghca_dm_describe - describe device memory for its user
 * @dm: the memory
 * @length: bytes requested
 * @resp: output
 */
void hghca_dm_describe(const struct hghca_dm *dm, u64 length, struct hghca_dm_resp *resp)
{
	resp->mmap_offset = rdma_user_mmap_get_offset(&dm->mmap->rdma_entry);
	resp->length = length;
}

/**
 * hghca_alloc_dm - allocate device memory
 * @ibdev: the device
 * @ibuctx: its user
 * @attr: bytes; log2 of the alignment
 * @attrs: output: struct hghca_dm_resp
 *
 * Return: the cleared memory, or an ERR_PTR(): -EINVAL for 0 bytes or an alignment
 * larger than the device memory, -ENOMEM if not enough memory is free.
 */
struct ib_dm *hghca_alloc_dm(struct ib_device *ibdev, struct ib_ucontext *ibuctx,
			     struct ib_dm_alloc_attr *attr, struct uverbs_attr_bundle *attrs)
{
	struct hghca_dev *hdev = to_hdev(ibdev);
	struct hghca_dm_resp resp;
	struct hghca_dm *dm;
	int err;

	if (!attr->length || attr->alignment > ilog2(hdev->limits.device_memory)) {
		ibdev_dbg(ibdev, "device memory: %llu bytes, aligned to 2^%u\n", attr->length,
			  attr->alignment);
		return ERR_PTR(-EINVAL);
	}
	if (attr->length > hdev->limits.device_memory)
		return ERR_PTR(-ENOMEM);

	dm = kzalloc_obj(*dm);
	if (!dm)
		return ERR_PTR(-ENOMEM);
	dm->mmap = hghca_dm_entry_create(hdev, ibuctx, PAGE_ALIGN(attr->length),
					 max_t(u32, BIT(attr->alignment), PAGE_SIZE));
	if (IS_ERR(dm->mmap)) {
		err = PTR_ERR(dm->mmap);
		goto err_free_dm;
	}

	hghca_dm_describe(dm, attr->length, &resp);
	err = uverbs_copy_to(attrs, HGHCA_ATTR_DM_ALLOC_RESP, &resp, sizeof(resp));
	if (err)
		goto err_remove_entry;
	return &dm->ibdm;

err_remove_entry:
	rdma_user_mmap_entry_remove(&dm->mmap->rdma_entry);
err_free_dm:
	kfree(dm);
	return ERR_PTR(err);
}

/**
 * hghca_dealloc_dm - free device memory
 * @ibdm: the memory, without regions
 * @attrs: not used
 *
 * A page that is still mapped is freed with its last mapping.
 *
 * Return: 0.
 */
int hghca_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs)
{
	struct hghca_dm *dm = to_hdm(ibdm);

	rdma_user_mmap_entry_remove(&dm->mmap->rdma_entry);
	kfree(dm);
	return 0;
}

/**
 * hghca_reg_dm_mr - register device memory
 * @ibpd: PD of the region
 * @ibdm: the memory
 * @attr: the part of it, and access rights; addresses in the region start at 0
 * @attrs: not used
 *
 * Return: the region, or an ERR_PTR(): -EINVAL for an offset or a length that is
 * no multiple of 4, -EOPNOTSUPP for an unsupported access right.
 */
struct ib_mr *hghca_reg_dm_mr(struct ib_pd *ibpd, struct ib_dm *ibdm, struct ib_dm_mr_attr *attr,
			      struct uverbs_attr_bundle *attrs)
{
	struct hghca_dev *hdev = to_hdev(ibpd->device);
	const struct hghca_mmap_entry *mmap = to_hdm(ibdm)->mmap;
	int access = hghca_mr_check_access(hdev, attr->access_flags);
	struct hghca_hwmr_attr hw = {
		.kind = HGHCA_HWMR_DEVICE,
		.pdn = to_hpd(ibpd)->pdn,
		.length = attr->length,
		.page_shift = 12,
	};
	struct hghca_mr *mr;
	int err;

	if (access < 0)
		return ERR_PTR(access);
	if (!IS_ALIGNED(attr->offset | attr->length, HGHCA_DM_ALIGN)) {
		ibdev_dbg(&hdev->ibdev, "region in device memory: %llu bytes at %llu\n",
			  attr->length, attr->offset);
		return ERR_PTR(-EINVAL);
	}
	hw.access = hghca_access_from_ib(access);
	hw.device_offset = hghca_dm_place(hdev, mmap) - HGHCA_DEVICE_MEMORY_OFFSET + attr->offset;

	mr = kzalloc_obj(*mr);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	err = hghca_hwmr_create(hdev, &mr->hw, &hw, 0);
	if (err) {
		kfree(mr);
		return ERR_PTR(err);
	}
	mr->ibmr.lkey = mr->hw.key;
	mr->ibmr.rkey = mr->hw.key;
	mr->ibmr.length = attr->length;
	return &mr->ibmr;
}
