// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* JingZhao HCA: mappings of users: UAR pages and device memory. */
#include <linux/mm.h>
#include <linux/slab.h>

#include "verbs/verbs.h"

struct hghca_uar_entry {
	struct hghca_mmap_entry mmap;
	struct hghca_uar uar;
};

/* Called after the last user of the page has dropped it. */
static void hghca_uar_entry_free(struct hghca_dev *hdev, struct hghca_mmap_entry *mmap)
{
	struct hghca_uar_entry *entry = container_of(mmap, struct hghca_uar_entry, mmap);

	hghca_uar_free(hdev, &entry->uar);
	kfree(entry);
}

/**
 * hghca_uar_create - allocate the UAR page of a user context
 * @uctx: the context
 *
 * The page is freed when neither the context nor a mapping uses it.
 *
 * Return: 0 or a negative errno.
 */
int hghca_uar_create(struct hghca_ucontext *uctx)
{
	struct hghca_dev *hdev = to_hdev(uctx->ibuctx.device);
	struct hghca_uar_entry *entry;
	int err;

	entry = kzalloc_obj(*entry);
	if (!entry)
		return -ENOMEM;

	err = hghca_uar_alloc(hdev, &entry->uar);
	if (err)
		goto err_free_entry;

	entry->mmap.phys = hdev->bus.uar_phys +
			   (phys_addr_t)entry->uar.index * HGHCA_UAR_PAGE_SIZE;
	entry->mmap.free = hghca_uar_entry_free;
	err = rdma_user_mmap_entry_insert(&uctx->ibuctx, &entry->mmap.rdma_entry, PAGE_SIZE);
	if (err)
		goto err_free_uar;

	uctx->uar = entry->uar;
	uctx->uar_entry = &entry->mmap.rdma_entry;
	return 0;

err_free_uar:
	hghca_uar_free(hdev, &entry->uar);
err_free_entry:
	kfree(entry);
	return err;
}

/**
 * hghca_uar_destroy - drop the UAR page of a context
 * @uctx: the context
 */
void hghca_uar_destroy(struct hghca_ucontext *uctx)
{
	rdma_user_mmap_entry_remove(uctx->uar_entry);
}

/**
 * hghca_mmap_free - free a mapping after its last user
 * @rdma_entry: the mapping
 */
void hghca_mmap_free(struct rdma_user_mmap_entry *rdma_entry)
{
	struct hghca_mmap_entry *entry = container_of(rdma_entry, struct hghca_mmap_entry,
						      rdma_entry);

	entry->free(to_hdev(rdma_entry->ucontext->device), entry);
}

/**
 * hghca_mmap - map the context's UAR page, or device memory
 * @ibuctx: the context
 * @vma: the whole mapping, shared, at the offset that its creation returned
 *
 * Return: 0 or a negative errno.
 */
int hghca_mmap(struct ib_ucontext *ibuctx, struct vm_area_struct *vma)
{
	struct hghca_dev *hdev = to_hdev(ibuctx->device);
	struct rdma_user_mmap_entry *rdma_entry;
	struct hghca_mmap_entry *entry;
	int err;

	rdma_entry = rdma_user_mmap_entry_get(ibuctx, vma);
	if (!rdma_entry) {
		ibdev_dbg(&hdev->ibdev, "mmap: nothing at offset %#lx of this size\n",
			  vma->vm_pgoff << PAGE_SHIFT);
		return -EINVAL;
	}

	if (vma->vm_flags & VM_EXEC) {
		err = -EPERM;
		goto out_put_entry;
	}
	vm_flags_clear(vma, VM_MAYEXEC);

	entry = container_of(rdma_entry, struct hghca_mmap_entry, rdma_entry);
	err = rdma_user_mmap_io(ibuctx, vma, PHYS_PFN(entry->phys),
				rdma_entry->npages << PAGE_SHIFT,
				pgprot_noncached(vma->vm_page_prot), rdma_entry);
out_put_entry:
	rdma_user_mmap_entry_put(rdma_entry);
	return err;
}
