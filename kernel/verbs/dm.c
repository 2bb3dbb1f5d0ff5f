// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: memory on the device, for users.
 *
 * It is given out in pages of the system, so that each can be mapped by itself,
 * and comes to its user zeroed.  Nobody gets a page that somebody still maps.
 */
#include <linux/genalloc.h>
#include <linux/io.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <rdma/uverbs_ioctl.h>

#include "verbs/verbs.h"

/* Of regions; as providers copy words of so many bytes. */
#define HGHCA_DM_ALIGN	4

/**
 * hghca_dm_init - make device memory possible
 * @hdev: the device; nothing happens to one without
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
	/* By the offset in the BAR, as a pool has no use for 0. */
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
 * @hdev: the device, without memory in use
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

/* Offset in the BAR. */
static unsigned long hghca_dm_place(const struct hghca_dev *hdev,
				    const struct hghca_mmap_entry *mmap)
{
	return mmap->phys - hdev->bus.uar_phys;
}

/* Neither its owner nor a mapping needs it. */
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

	mmap = kzalloc(sizeof(*mmap), GFP_KERNEL);
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
 * hghca_dm_describe - how a user maps device memory
 * @dm: the memory
 * @length: bytes its user has asked for
 * @resp: the answer
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
 * @attrs: out: struct hghca_dm_resp
 *
 * Return: the memory, zeroed; or ERR_PTR(): -EINVAL for no bytes or an
 * alignment larger than all there is, -ENOMEM when so much is not free.
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

	dm = kzalloc(sizeof(*dm), GFP_KERNEL);
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
 * Who maps it keeps it until then.
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
 * @attr: a part of it, and rights; addresses in the region begin with 0
 * @attrs: not used
 *
 * Return: the region, or ERR_PTR(): -EINVAL for an offset or a length that is
 * no multiple of 4, -EOPNOTSUPP for a right that there is not.
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

	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
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
