// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* JingZhao HCA: registration and reregistration of user memory regions. */
#include <linux/log2.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "verbs/verbs.h"

/* Returns NULL for 0 bytes: there is nothing to pin. */
static struct ib_umem *hghca_usermr_pin(struct hghca_dev *hdev, u64 start, u64 length,
					int ib_access)
{
	struct ib_umem *umem;

	if (!length)
		return NULL;

	umem = ib_umem_get_va(&hdev->ibdev, start, length, ib_access);
	if (IS_ERR(umem))
		ibdev_dbg(&hdev->ibdev, "region: %llu bytes cannot be pinned: %ld\n", length,
			  PTR_ERR(umem));
	return umem;
}

/*
 * Set the attributes of a region of this memory.  The device adds an address to the start
 * of the first page, so the I/O virtual address and the memory must have the same offset
 * in a page.  The device gets the offset of a zero-based region in its first page.
 * Without HGHCA_CAP_FIRST_BYTE, a zero-based region must start at a page boundary.
 */
static int hghca_usermr_describe(struct hghca_dev *hdev, struct hghca_hwmr_attr *attr,
				 struct ib_umem *umem, u32 pdn, u64 virt_addr, int ib_access)
{
	unsigned long sizes = GENMASK(hdev->limits.log_max_page, hdev->limits.log_min_page);
	bool zero_based = ib_access & IB_ZERO_BASED;
	unsigned long page_sz;
	u64 in_memory;

	*attr = (struct hghca_hwmr_attr) {
		.pdn = pdn,
		.access = hghca_access_from_ib(ib_access),
		.start = zero_based ? 0 : virt_addr,
		.length = umem ? umem->length : 0,
		.page_shift = hdev->limits.log_min_page,
	};
	if (!umem)
		return 0;

	in_memory = attr->start;
	if (zero_based && hdev->limits.caps & HGHCA_CAP_FIRST_BYTE)
		in_memory = umem->address;
	/* Check first: ib_umem_find_best_pgsz() sets the address by which the umem counts pages. */
	if ((umem->address ^ in_memory) & ~PAGE_MASK) {
		ibdev_dbg(&hdev->ibdev, "region: %#llx and memory differ within a page\n",
			  attr->start);
		return -EINVAL;
	}
	page_sz = ib_umem_find_best_pgsz(umem, sizes, in_memory);
	if (!page_sz) {
		ibdev_dbg(&hdev->ibdev, "region: no page size fits\n");
		return -EINVAL;
	}
	attr->page_shift = order_base_2(page_sz);
	if (zero_based)
		attr->first_byte = in_memory & (page_sz - 1);
	return 0;
}

/* Set the visible attributes of a region that the device has. */
static void hghca_usermr_publish(struct hghca_mr *mr, struct ib_umem *umem,
				 const struct hghca_hwmr_attr *attr, u64 virt_addr, int ib_access)
{
	mr->umem = umem;
	mr->attr = *attr;
	mr->virt_addr = virt_addr;
	mr->access = ib_access;
	mr->ibmr.lkey = mr->hw.key;
	mr->ibmr.rkey = mr->hw.key;
	mr->ibmr.length = attr->length;
	mr->ibmr.iova = virt_addr;
	mr->ibmr.page_size = BIT(attr->page_shift);
}

/* Create a region over @umem, NULL for no bytes.  On an error @umem is released. */
static struct ib_mr *hghca_usermr_create(struct ib_pd *ibpd, struct ib_umem *umem,
					 u64 virt_addr, int ib_access)
{
	struct hghca_dev *hdev = to_hdev(ibpd->device);
	struct hghca_hwmr_attr attr;
	struct hghca_mr *mr;
	int err;

	mr = kzalloc_obj(*mr);
	if (!mr) {
		err = -ENOMEM;
		goto err_release_umem;
	}

	err = hghca_usermr_describe(hdev, &attr, umem, to_hpd(ibpd)->pdn, virt_addr, ib_access);
	if (err)
		goto err_free_mr;

	err = umem ? hghca_hwmr_create_umem(hdev, &mr->hw, &attr, umem, 0) :
		     hghca_hwmr_create(hdev, &mr->hw, &attr, 0);
	if (err)
		goto err_free_mr;

	hghca_usermr_publish(mr, umem, &attr, virt_addr, ib_access);
	return &mr->ibmr;

err_free_mr:
	kfree(mr);
err_release_umem:
	ib_umem_release(umem);
	return ERR_PTR(err);
}

/**
 * hghca_reg_user_mr - register memory of a user
 * @ibpd: its PD
 * @start: its address
 * @length: bytes, may be 0
 * @virt_addr: I/O virtual address, unless the region is zero-based
 * @ib_access: its access rights
 * @dmah: NULL: the device has no DMA handles
 * @udata: must be empty; NULL for ib_reg_user_mr()
 *
 * Return: the region, or an ERR_PTR().
 */
struct ib_mr *hghca_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 virt_addr,
				int ib_access, struct ib_dmah *dmah, struct ib_udata *udata)
{
	struct hghca_dev *hdev = to_hdev(ibpd->device);
	struct ib_umem *umem;
	int err;

	if (dmah)
		return ERR_PTR(-EOPNOTSUPP);
	err = ib_no_udata_io(udata);
	if (err)
		return ERR_PTR(err);

	if (ib_access & IB_ACCESS_ON_DEMAND)
		return hghca_odp_reg_mr(ibpd, start, length, virt_addr, ib_access);

	ib_access = hghca_mr_check_access(hdev, ib_access);
	if (ib_access < 0)
		return ERR_PTR(ib_access);

	umem = hghca_usermr_pin(hdev, start, length, ib_access);
	if (IS_ERR(umem))
		return ERR_CAST(umem);
	return hghca_usermr_create(ibpd, umem, virt_addr, ib_access);
}

/**
 * hghca_reg_user_mr_dmabuf - register a part of a dma-buf, which is pinned
 * @ibpd: its PD
 * @offset: start of the part
 * @length: bytes
 * @virt_addr: I/O virtual address
 * @fd: the dma-buf
 * @ib_access: its access rights
 * @dmah: NULL: the device has no DMA handles
 * @attrs: not used
 *
 * Return: the region, or an ERR_PTR().
 */
struct ib_mr *hghca_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 virt_addr,
				       int fd, int ib_access, struct ib_dmah *dmah,
				       struct uverbs_attr_bundle *attrs)
{
	struct hghca_dev *hdev = to_hdev(ibpd->device);
	struct ib_umem_dmabuf *dmabuf;

	if (dmah)
		return ERR_PTR(-EOPNOTSUPP);
	ib_access = hghca_mr_check_access(hdev, ib_access);
	if (ib_access < 0)
		return ERR_PTR(ib_access);

	dmabuf = ib_umem_dmabuf_get_pinned(&hdev->ibdev, offset, length, fd, ib_access);
	if (IS_ERR(dmabuf)) {
		ibdev_dbg(&hdev->ibdev, "region: %llu bytes of dma-buf %d cannot be pinned: %ld\n",
			  length, fd, PTR_ERR(dmabuf));
		return ERR_CAST(dmabuf);
	}
	return hghca_usermr_create(ibpd, &dmabuf->umem, virt_addr, ib_access);
}

/*
 * Get the memory of a region that is reregistered: new memory, or the present memory.
 * Memory that is pinned for reading has to be pinned again for writing.  Only the
 * process that owns it can do that, and not for a dma-buf.
 */
static struct ib_umem *hghca_usermr_repin(struct hghca_dev *hdev, const struct hghca_mr *mr,
					  int flags, u64 start, u64 length, int ib_access)
{
	struct ib_umem *umem = mr->umem;

	if (flags & IB_MR_REREG_TRANS)
		return hghca_usermr_pin(hdev, start, length, ib_access);
	if (!umem || umem->writable || !ib_access_writable(ib_access))
		return umem;
	if (umem->is_dmabuf || umem->owning_mm != current->mm)
		return ERR_PTR(-EACCES);
	return hghca_usermr_pin(hdev, umem->address, umem->length, ib_access);
}

/* Returns whether the present MTTs of a region are also valid for the new attributes. */
static bool hghca_usermr_same_pages(const struct hghca_hwmr_attr *a,
				    const struct hghca_hwmr_attr *b)
{
	return a->page_shift == b->page_shift &&
	       !(((a->start + a->first_byte) ^ (b->start + b->first_byte)) &
		 (BIT_ULL(a->page_shift) - 1));
}

/**
 * hghca_rereg_user_mr - change a region of a user, which keeps its keys
 * @ibmr: the region
 * @flags: IB_MR_REREG_*: the attributes to change
 * @start: with _TRANS: address of its memory
 * @length: with _TRANS: bytes, may be 0
 * @virt_addr: with _TRANS: I/O virtual address
 * @ib_access: with _ACCESS: its access rights
 * @ibpd: with _PD: its PD
 * @udata: must be empty
 *
 * Return: NULL, or an ERR_PTR(): -EBUSY for a region with windows bound to it,
 * -EOPNOTSUPP for an on-demand region, -EACCES for memory that cannot be made writable.
 * After an error the region is unchanged.  There is one exception: if the device accepts
 * neither the new nor the old attributes, the key gives no access until the region is
 * reregistered or deregistered.
 */
struct ib_mr *hghca_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start, u64 length,
				  u64 virt_addr, int ib_access, struct ib_pd *ibpd,
				  struct ib_udata *udata)
{
	struct hghca_dev *hdev = to_hdev(ibmr->device);
	struct hghca_mr *mr = to_hmr(ibmr);
	u32 pdn = flags & IB_MR_REREG_PD ? to_hpd(ibpd)->pdn : mr->attr.pdn;
	struct hghca_hwmr_attr attr;
	struct ib_umem *umem;
	bool new_pages;
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return ERR_PTR(err);

	if (flags & ~IB_MR_REREG_SUPPORTED)
		return ERR_PTR(-EOPNOTSUPP);
	/* hghca_mr_check_access() also refuses to make a region an on-demand one. */
	if (mr->odp) {
		ibdev_dbg(&hdev->ibdev, "region: one on demand stays what it is\n");
		return ERR_PTR(-EOPNOTSUPP);
	}
	ib_access = flags & IB_MR_REREG_ACCESS ? hghca_mr_check_access(hdev, ib_access) :
						 mr->access;
	if (ib_access < 0)
		return ERR_PTR(ib_access);
	if (!(flags & IB_MR_REREG_TRANS))
		virt_addr = mr->virt_addr;

	umem = hghca_usermr_repin(hdev, mr, flags, start, length, ib_access);
	if (IS_ERR(umem))
		return ERR_CAST(umem);

	err = hghca_usermr_describe(hdev, &attr, umem, pdn, virt_addr, ib_access);
	if (err)
		goto err_release_umem;

	new_pages = umem != mr->umem || !hghca_usermr_same_pages(&attr, &mr->attr);
	err = hghca_hwmr_change(hdev, &mr->hw, &mr->attr, &attr, umem, new_pages);
	if (err)
		goto err_release_umem;

	if (umem != mr->umem)
		ib_umem_release(mr->umem);
	hghca_usermr_publish(mr, umem, &attr, virt_addr, ib_access);
	return NULL;

err_release_umem:
	if (umem != mr->umem)
		ib_umem_release(umem);
	return ERR_PTR(err);
}

/**
 * hghca_get_dma_mr - create a region of all memory for the kernel
 * @ibpd: its PD
 * @ib_access: its access rights
 *
 * Return: the region, or an ERR_PTR().
 */
struct ib_mr *hghca_get_dma_mr(struct ib_pd *ibpd, int ib_access)
{
	struct hghca_dev *hdev = to_hdev(ibpd->device);
	struct hghca_mr *mr;
	int err;

	mr = kzalloc_obj(*mr);
	if (!mr)
		return ERR_PTR(-ENOMEM);

	err = hghca_hwmr_create_physical(hdev, &mr->hw, to_hpd(ibpd)->pdn,
					 hghca_access_from_ib(ib_access));
	if (err) {
		kfree(mr);
		return ERR_PTR(err);
	}
	mr->kernel = true;
	mr->ibmr.lkey = mr->hw.key;
	mr->ibmr.rkey = mr->hw.key;
	return &mr->ibmr;
}

/**
 * hghca_dereg_mr - deregister a region
 * @ibmr: the region
 * @udata: not used
 *
 * Only a user with windows can handle a failure.  No caller retries after another error:
 * at the end of the process, the region would be dropped while its memory stays pinned.
 * Therefore a device that fails to return the region is given up.
 *
 * Return: 0, or -EBUSY for a user's region with windows bound to it.
 */
int hghca_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct hghca_dev *hdev = to_hdev(ibmr->device);
	struct hghca_mr *mr = to_hmr(ibmr);
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	if (mr->odp) {
		hghca_odp_dereg_mr(mr);
		return 0;
	}

	/* The user has changed the tag meanwhile. */
	if (mr->pages.list)
		u32p_replace_bits(&mr->hw.key, ibmr->rkey, HGHCA_KEY_TAG_MASK);
	err = mr->kernel ? 0 : hghca_hwmr_destroy(hdev, &mr->hw);
	/* A window and the region that it is bound to have the same PD. */
	if (err == -EBUSY && atomic_read(&to_hpd(ibmr->pd)->windows))
		return err;
	if (err || mr->kernel)
		hghca_hwmr_take(hdev, &mr->hw);
	hghca_fast_pages_free(hdev, &mr->pages);
	ib_umem_release(mr->umem);
	kfree(mr);
	return 0;
}
