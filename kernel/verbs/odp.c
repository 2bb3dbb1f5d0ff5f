// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: regions paged on demand (document 4.23).
 *
 * Such a region has no pinned pages.  A QP that needs a page raises PAGE_FAULT.  Work of
 * that QP maps the page, writes its MTT and resumes the QP.  When the mapping of the
 * process changes, the MTTs are cleared before the pages are freed.
 *
 * The mutex of the umem serializes both: pages mapped under it match the MTTs of the
 * device.  Memory reclaim also takes the mutex, so memory is not allocated under it.  The
 * mailbox is allocated before, and CLEAR_MTT needs no mailbox.
 *
 * Code that uses a region holds a reference to it.  Deregistration first hides the
 * region, then waits for the references, then takes it from the device, and then frees
 * its umem and MTTs: until then the notifier may clear the MTTs.  A device that does not
 * return the region is given up, because its notifier must not outlive the driver.
 *
 * The memory of one umem is a chunk.  A region has one chunk.  A region of all memory has
 * a chunk for each part in use; see odptree.c.
 */
#include <linux/bitmap.h>
#include <linux/mmu_notifier.h>
#include <linux/overflow.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_netlink.h>
#include <rdma/restrack.h>

#include "odp.h"

/* A part of a region to prefetch. */
struct hghca_odp_part {
	struct hghca_mr *mr;
	u64 offset;		/* in the region, bytes */
	u64 length;
};

/**
 * struct hghca_prefetch - an advice of ib_advise_mr()
 * @work: executes it if the caller does not wait
 * @hdev: the device
 * @access: HMM_PFN_WRITE, or 0
 * @fault: also fault in pages that are not in memory
 * @num_parts: number of parts
 * @parts: the parts, each with a reference to its region
 */
struct hghca_prefetch {
	struct work_struct work;
	struct hghca_dev *hdev;
	u64 access;
	bool fault;
	u32 num_parts;
	struct hghca_odp_part parts[] __counted_by(num_parts);
};

static void hghca_odp_put(struct hghca_mr *mr)
{
	if (refcount_dec_and_test(&mr->odp->refs))
		complete(&mr->odp->released);
}

/* Returns the region of @key, with a reference; NULL if it is no on-demand region. */
static struct hghca_mr *hghca_odp_get(struct hghca_dev *hdev, u32 key)
{
	struct hghca_mr *mr;

	xa_lock(&hdev->odp_mrs);
	mr = xa_load(&hdev->odp_mrs, hghca_key_index(hdev, key));
	if (mr && mr->hw.key == key)
		refcount_inc(&mr->odp->refs);
	else
		mr = NULL;
	xa_unlock(&hdev->odp_mrs);
	return mr;
}

/* Enable the lookup of the region. */
static int hghca_odp_publish(struct hghca_dev *hdev, struct hghca_mr *mr)
{
	refcount_set(&mr->odp->refs, 1);
	init_completion(&mr->odp->released);
	WRITE_ONCE(mr->odp->leaving, false);
	return xa_err(xa_store(&hdev->odp_mrs, hghca_key_index(hdev, mr->hw.key), mr,
			       GFP_KERNEL));
}

/* Disable the lookup of the region, and wait until its references are dropped. */
static void hghca_odp_hide(struct hghca_dev *hdev, struct hghca_mr *mr)
{
	WRITE_ONCE(mr->odp->leaving, true);
	xa_erase(&hdev->odp_mrs, hghca_key_index(hdev, mr->hw.key));
	hghca_odp_put(mr);
	wait_for_completion(&mr->odp->released);
}

/* ------------------------------------------------------------------ */
/* Invalidation of pages                                                */

static bool hghca_odp_invalidate(struct mmu_interval_notifier *notifier,
				 const struct mmu_notifier_range *range, unsigned long cur_seq)
{
	struct ib_umem_odp *umem_odp = container_of(notifier, struct ib_umem_odp, notifier);
	struct hghca_dev *hdev = to_hdev(umem_odp->umem.ibdev);
	struct hghca_odp_chunk *chunk;
	u32 first, pages;
	u64 start, end;

	if (!mmu_notifier_range_blockable(range))
		return false;

	mutex_lock(&umem_odp->umem_mutex);
	mmu_interval_set_seq(notifier, cur_seq);
	/* The memory may not have a region yet. */
	if (!umem_odp->npages)
		goto out_unlock;

	chunk = umem_odp->private;
	start = max_t(u64, ib_umem_start(umem_odp), range->start);
	end = min_t(u64, ib_umem_end(umem_odp), range->end);
	start = round_down(start, BIT_ULL(umem_odp->page_shift));
	end = round_up(end, BIT_ULL(umem_odp->page_shift));
	first = (start - ib_umem_start(umem_odp)) >> umem_odp->page_shift;
	pages = (end - start) >> umem_odp->page_shift;
	/* The pages may be reused after return: a device that keeps them is given up. */
	if (hghca_mtts_clear(hdev, &chunk->mtts, first, pages))
		hghca_dev_fail(hdev, "failed to unmap pages");
	ib_umem_odp_unmap_dma_pages(umem_odp, start, end);
	atomic64_inc(&chunk->odp->invalidations);
	if (chunk->odp->tree && !umem_odp->npages)
		hghca_odp_tree_emptied(chunk->odp->tree, chunk);
out_unlock:
	mutex_unlock(&umem_odp->umem_mutex);
	return true;
}

static const struct mmu_interval_notifier_ops hghca_odp_ops = {
	.invalidate = hghca_odp_invalidate,
};

/* ------------------------------------------------------------------ */
/* Mapping of pages                                                     */

/* Map page @i of memory that is locked, if it is present: its MTT, or -EFAULT. */
static int hghca_odp_entry(struct ib_umem_odp *umem_odp, u32 i, __be64 *entry)
{
	u64 mtt = HGHCA_MTT_ABSENT;
	bool writable;
	dma_addr_t dma;
	int ret;

	ret = hghca_odp_page_map(umem_odp, i, &dma, &writable);
	if (ret < 0)
		return ret;
	if (ret)
		mtt = (dma & HGHCA_MTT_ADDR_MASK) |
		      (writable && umem_odp->umem.writable ? 0 : HGHCA_MTT_READ_ONLY);
	*entry = cpu_to_be64(mtt);
	return 0;
}

/* Get the chunk of an address of a region; or an ERR_PTR().  The caller puts it. */
static struct hghca_odp_chunk *hghca_odp_chunk_get(struct hghca_mr *mr, u64 address)
{
	return mr->odp->tree ? hghca_odp_tree_get(mr->odp->tree, address) : &mr->odp->whole;
}

static void hghca_odp_chunk_put(struct hghca_mr *mr, struct hghca_odp_chunk *chunk)
{
	if (mr->odp->tree)
		hghca_odp_tree_put(mr->odp->tree, chunk);
}

/* Returns the bytes from @address on, up to @length, whose MTTs fit a mailbox. */
static u64 hghca_odp_batch(const struct ib_umem_odp *umem_odp, u64 address, u64 length)
{
	u64 page = BIT_ULL(umem_odp->page_shift);

	return min(length, HGHCA_MTT_PER_MAILBOX * page - (address & (page - 1)));
}

/* Map @length bytes from @address on, at most a batch, and write the MTTs: pages or errno. */
static int hghca_odp_map(struct hghca_dev *hdev, struct hghca_odp_chunk *chunk,
			 struct hghca_mailbox *mailbox, u64 address, u64 length, u64 access,
			 bool fault)
{
	struct hghca_mtt_mailbox *mtts = mailbox->buf;
	struct ib_umem_odp *umem_odp = chunk->umem;
	u32 first, i;
	int pages;
	int err = 0;

	pages = ib_umem_odp_map_dma_and_lock(umem_odp, address, length, access, fault);
	if (pages < 0)
		return pages;

	first = (address - ib_umem_start(umem_odp)) >> umem_odp->page_shift;
	for (i = 0; i < pages && !err; i++)
		err = hghca_odp_entry(umem_odp, first + i, &mtts->entry[HGHCA_MTT_SLOT(i)]);
	mtts->start_index = cpu_to_be64(chunk->mtts.first + first);
	if (!err)
		err = hghca_cmd_write_mtt(hdev, mailbox, pages);
	mutex_unlock(&umem_odp->umem_mutex);
	return err ?: pages;
}

/*
 * Map the pages that a QP needs, and those of the following pages that are present.
 * The following memory may not exist, and the request may not access it.
 */
static int hghca_odp_map_needed(struct hghca_dev *hdev, struct hghca_odp_chunk *chunk,
				u64 address, u64 length, u64 access)
{
	struct hghca_mailbox *mailbox;
	int ret;

	mailbox = hghca_mailbox_alloc(hdev, HGHCA_MAILBOX_SIZE);
	if (IS_ERR(mailbox))
		return PTR_ERR(mailbox);

	length = min_t(u64, length, ib_umem_end(chunk->umem) - address);
	length = hghca_odp_batch(chunk->umem, address, length);
	ret = hghca_odp_map(hdev, chunk, mailbox, address, length, access, true);
	if (ret < 0 && length > 1)
		ret = hghca_odp_map(hdev, chunk, mailbox, address, 1, access, true);
	hghca_mailbox_free(hdev, mailbox);
	return ret;
}

static int hghca_odp_map_page(struct hghca_dev *hdev, struct hghca_mr *mr,
			      const struct hghca_page *page)
{
	u64 offset = page->addr - mr->attr.start;
	u64 access = 0;
	struct hghca_odp_chunk *chunk;
	u64 address, length;
	int ret;

	if (offset >= mr->attr.length)
		return -EFAULT;
	if (page->what & HGHCA_PAGE_FAULT_WRITE) {
		if (!mr->umem->writable)
			return -EACCES;
		access = HMM_PFN_WRITE;
	}

	address = mr->umem->address + offset;
	length = clamp_t(u64, page->length, 1, mr->attr.length - offset);
	chunk = hghca_odp_chunk_get(mr, address);
	if (IS_ERR(chunk))
		return PTR_ERR(chunk);
	ret = hghca_odp_map_needed(hdev, chunk, address, length, access);
	hghca_odp_chunk_put(mr, chunk);
	return ret;
}

static int hghca_odp_serve(struct hghca_dev *hdev, const struct hghca_page *page)
{
	struct hghca_mr *mr = hghca_odp_get(hdev, page->key);
	int ret;

	if (!mr)
		return -ENOENT;

	ret = hghca_odp_map_page(hdev, mr, page);
	atomic64_inc(&mr->odp->faults);
	/* The mapping keeps changing.  The QP may raise another fault. */
	if (ret == -EBUSY || ret == -EAGAIN)
		ret = 0;
	if (ret < 0)
		atomic64_inc(&mr->odp->failed);
	hghca_odp_put(mr);
	return ret;
}

static void hghca_odp_fault_work(struct work_struct *work)
{
	struct hghca_fault *fault = container_of(work, struct hghca_fault, work);
	struct hghca_page page = fault->page;
	struct hghca_hwqp *hwqp = fault->hwqp;
	struct hghca_dev *hdev = fault->hdev;
	u32 what;
	int ret;

	what = FIELD_PREP(HGHCA_RESUME_TOKEN_MASK,
			  FIELD_GET(HGHCA_PAGE_FAULT_TOKEN_MASK, page.what));
	if (page.what & HGHCA_PAGE_FAULT_RESPONDER)
		what |= HGHCA_RESUME_RESPONDER;
	ret = hghca_odp_serve(hdev, &page);
	if (ret < 0) {
		ibdev_dbg(&hdev->ibdev, "QP %#x: no page at %#llx of region %#x: %d\n", hwqp->qpn,
			  page.addr, page.key, ret);
		what |= HGHCA_RESUME_FAILED;
	}

	/* After it is resumed, the QP may need the next page. */
	clear_bit_unlock(0, &fault->busy);
	ret = hghca_cmd_resume_qp(hdev, hwqp->qpn, what);
	if (ret)
		ibdev_dbg(&hdev->ibdev, "QP %#x: not resumed: %d\n", hwqp->qpn, ret);
	hghca_hwqp_put(hwqp);
}

/**
 * hghca_odp_init_qp - initialize the page faults of a QP
 * @hdev: the device
 * @hqp: the QP, which has no number yet
 */
void hghca_odp_init_qp(struct hghca_dev *hdev, struct hghca_qp *hqp)
{
	unsigned int i;

	if (!(hdev->limits.caps & HGHCA_CAP_ODP))
		return;
	for (i = 0; i < ARRAY_SIZE(hqp->faults); i++) {
		hqp->faults[i].hdev = hdev;
		hqp->faults[i].hwqp = &hqp->hw;
		INIT_WORK(&hqp->faults[i].work, hghca_odp_fault_work);
	}
	hqp->hw.faults = hqp->faults;
}

/* ------------------------------------------------------------------ */
/* Advice                                                               */

/* Map @length bytes of a chunk from @address on. */
static int hghca_prefetch_chunk(struct hghca_prefetch *prefetch, struct hghca_mr *mr,
				struct hghca_odp_chunk *chunk, struct hghca_mailbox *mailbox,
				u64 address, u64 length)
{
	while (length && !READ_ONCE(mr->odp->leaving)) {
		u64 now = hghca_odp_batch(chunk->umem, address, length);
		int ret;

		if (fatal_signal_pending(current))
			return -EINTR;
		ret = hghca_odp_map(prefetch->hdev, chunk, mailbox, address, now,
				    prefetch->access, prefetch->fault);
		if (ret < 0)
			return ret;
		atomic64_add(ret, &mr->odp->prefetched);
		address += now;
		length -= now;
		cond_resched();
	}
	return 0;
}

static int hghca_prefetch_part(struct hghca_prefetch *prefetch, const struct hghca_odp_part *part,
			       struct hghca_mailbox *mailbox)
{
	u64 address = part->mr->umem->address + part->offset;
	u64 left = part->length;
	int ret = 0;

	while (left && !ret && !READ_ONCE(part->mr->odp->leaving)) {
		struct hghca_odp_chunk *chunk = hghca_odp_chunk_get(part->mr, address);
		u64 now;

		if (IS_ERR(chunk))
			return PTR_ERR(chunk);
		now = min_t(u64, left, ib_umem_end(chunk->umem) - address);
		ret = hghca_prefetch_chunk(prefetch, part->mr, chunk, mailbox, address, now);
		hghca_odp_chunk_put(part->mr, chunk);
		address += now;
		left -= now;
	}
	return ret;
}

static int hghca_prefetch_run(struct hghca_prefetch *prefetch)
{
	struct hghca_mailbox *mailbox;
	int ret = 0;
	u32 i;

	mailbox = hghca_mailbox_alloc(prefetch->hdev, HGHCA_MAILBOX_SIZE);
	if (IS_ERR(mailbox))
		return PTR_ERR(mailbox);
	for (i = 0; i < prefetch->num_parts && !ret; i++)
		ret = hghca_prefetch_part(prefetch, &prefetch->parts[i], mailbox);
	hghca_mailbox_free(prefetch->hdev, mailbox);
	return ret;
}

static void hghca_prefetch_free(struct hghca_prefetch *prefetch)
{
	u32 i;

	for (i = 0; i < prefetch->num_parts; i++)
		if (prefetch->parts[i].mr)
			hghca_odp_put(prefetch->parts[i].mr);
	kvfree(prefetch);
}

static void hghca_prefetch_work(struct work_struct *work)
{
	struct hghca_prefetch *prefetch = container_of(work, struct hghca_prefetch, work);
	int ret = hghca_prefetch_run(prefetch);

	if (ret)
		ibdev_dbg(&prefetch->hdev->ibdev, "advice not followed to its end: %d\n", ret);
	hghca_prefetch_free(prefetch);
}

static int hghca_prefetch_add(struct hghca_prefetch *prefetch, struct hghca_odp_part *part,
			      u32 pdn, const struct ib_sge *sge)
{
	struct hghca_mr *mr = hghca_odp_get(prefetch->hdev, sge->lkey);

	if (!mr)
		return -ENOENT;
	/* The advice owns the reference. */
	part->mr = mr;
	part->offset = sge->addr - mr->attr.start;
	part->length = sge->length;
	if (mr->attr.pdn != pdn)
		return -EPERM;
	if (prefetch->access & HMM_PFN_WRITE && !mr->umem->writable)
		return -EPERM;
	if (part->offset > mr->attr.length || part->length > mr->attr.length - part->offset)
		return -EFAULT;
	return 0;
}

/**
 * hghca_advise_mr - prefetch pages of on-demand regions
 * @ibpd: the PD of the regions
 * @advice: IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH*
 * @flags: IB_UVERBS_ADVISE_MR_FLAG_FLUSH: return after the prefetch
 * @sg_list: the memory
 * @num_sge: its entries
 * @attrs: not used
 *
 * Return: 0; -EOPNOTSUPP for another advice; -ENOENT for a key of no on-demand
 * region; -EPERM for a region of another PD, or a write to a read-only one; -EFAULT
 * for memory beyond a region, or, with FLUSH, absent memory; -EINVAL,
 * -ENOMEM, or -EINTR.
 */
int hghca_advise_mr(struct ib_pd *ibpd, enum ib_uverbs_advise_mr_advice advice, u32 flags,
		    struct ib_sge *sg_list, u32 num_sge, struct uverbs_attr_bundle *attrs)
{
	struct hghca_dev *hdev = to_hdev(ibpd->device);
	struct hghca_prefetch *prefetch;
	int ret = 0;
	u32 i;

	if (advice != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH &&
	    advice != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE &&
	    advice != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return -EOPNOTSUPP;
	if (flags & ~IB_UVERBS_ADVISE_MR_FLAG_FLUSH)
		return -EINVAL;

	prefetch = kvzalloc(struct_size(prefetch, parts, num_sge), GFP_KERNEL);
	if (!prefetch)
		return -ENOMEM;
	prefetch->hdev = hdev;
	prefetch->num_parts = num_sge;
	prefetch->fault = advice != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT;
	if (advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE)
		prefetch->access = HMM_PFN_WRITE;
	INIT_WORK(&prefetch->work, hghca_prefetch_work);
	for (i = 0; i < num_sge && !ret; i++)
		ret = hghca_prefetch_add(prefetch, &prefetch->parts[i], to_hpd(ibpd)->pdn,
					 &sg_list[i]);

	if (!ret && !(flags & IB_UVERBS_ADVISE_MR_FLAG_FLUSH)) {
		queue_work(hdev->odp_wq, &prefetch->work);
		return 0;
	}
	if (!ret)
		ret = hghca_prefetch_run(prefetch);
	hghca_prefetch_free(prefetch);
	return ret;
}

/* ------------------------------------------------------------------ */
/* Regions                                                              */

/* Returns IB_ACCESS_* of an on-demand region without optional flags, or -EOPNOTSUPP. */
static int hghca_odp_check_access(struct hghca_dev *hdev, int ib_access)
{
	const int own = IB_ACCESS_ON_DEMAND | IB_ACCESS_HUGETLB;
	int access;

	if (!(hdev->limits.caps & HGHCA_CAP_ODP))
		return -EOPNOTSUPP;
	if (ib_access & IB_ACCESS_MW_BIND) {
		ibdev_dbg(&hdev->ibdev, "region: no windows are bound to one on demand\n");
		return -EOPNOTSUPP;
	}
	access = hghca_mr_check_access(hdev, ib_access & ~own);
	return access < 0 ? access : access | (ib_access & own);
}

/* See hghca_usermr_describe() for the offset in a page. */
static int hghca_odp_describe_mr(struct hghca_dev *hdev, struct hghca_hwmr_attr *attr,
				 const struct ib_umem_odp *umem_odp, u32 pdn, u64 virt_addr,
				 int ib_access)
{
	bool zero_based = ib_access & IB_ZERO_BASED;
	u64 in_page = umem_odp->umem.address & (BIT_ULL(umem_odp->page_shift) - 1);

	*attr = (struct hghca_hwmr_attr) {
		.kind = HGHCA_HWMR_ON_DEMAND,
		.pdn = pdn,
		.access = hghca_access_from_ib(ib_access),
		.start = zero_based ? 0 : virt_addr,
		.length = umem_odp->umem.length,
		.page_shift = umem_odp->page_shift,
	};
	if (zero_based && hdev->limits.caps & HGHCA_CAP_FIRST_BYTE)
		attr->first_byte = in_page;
	if ((in_page ^ (attr->start + attr->first_byte)) & (BIT_ULL(attr->page_shift) - 1)) {
		ibdev_dbg(&hdev->ibdev, "region: %#llx and memory differ within a page\n",
			  attr->start);
		return -EINVAL;
	}
	return attr->page_shift > hdev->limits.log_max_page ? -EINVAL : 0;
}

static struct hghca_mr *hghca_odp_alloc_mr(void)
{
	struct hghca_mr *mr = kzalloc_obj(*mr);

	if (!mr)
		return NULL;
	mr->odp = kzalloc_obj(*mr->odp);
	if (mr->odp)
		return mr;
	kfree(mr);
	return NULL;
}

static void hghca_odp_free_mr(struct hghca_mr *mr)
{
	kfree(mr->odp);
	kfree(mr);
}

/* Set the visible attributes of a region that the device has. */
static int hghca_odp_reveal(struct hghca_dev *hdev, struct hghca_mr *mr, u64 length,
			    u64 virt_addr, int ib_access)
{
	mr->virt_addr = virt_addr;
	mr->access = ib_access;
	mr->ibmr.lkey = mr->hw.key;
	mr->ibmr.rkey = mr->hw.key;
	mr->ibmr.length = length;
	mr->ibmr.iova = virt_addr;
	mr->ibmr.page_size = BIT(mr->attr.page_shift);
	return hghca_odp_publish(hdev, mr);
}

/* Register a region of all memory, from address 0 on. */
static struct ib_mr *hghca_odp_reg_all(struct ib_pd *ibpd, u64 virt_addr, int ib_access)
{
	struct hghca_dev *hdev = to_hdev(ibpd->device);
	struct hghca_mr *mr;
	int err;

	if (virt_addr) {
		ibdev_dbg(&hdev->ibdev, "region: all memory is where it is\n");
		return ERR_PTR(-EINVAL);
	}

	mr = hghca_odp_alloc_mr();
	if (!mr)
		return ERR_PTR(-ENOMEM);

	err = hghca_odp_tree_create(hdev, mr, ib_access, &hghca_odp_ops);
	if (err)
		goto err_free_mr;

	mr->attr = (struct hghca_hwmr_attr) {
		.kind = HGHCA_HWMR_TREE,
		.pdn = to_hpd(ibpd)->pdn,
		.access = hghca_access_from_ib(ib_access),
		.length = hghca_odp_tree_length(),
		.page_shift = PAGE_SHIFT,
	};
	err = hghca_hwmr_create(hdev, &mr->hw, &mr->attr, HGHCA_MTT_TABLE_ENTRIES);
	if (err)
		goto err_destroy_tree;

	err = hghca_odp_reveal(hdev, mr, U64_MAX, 0, ib_access);
	if (err)
		goto err_destroy_hwmr;
	return &mr->ibmr;

err_destroy_hwmr:
	hghca_hwmr_take(hdev, &mr->hw);
err_destroy_tree:
	hghca_odp_tree_destroy(mr->odp->tree);
err_free_mr:
	hghca_odp_free_mr(mr);
	return ERR_PTR(err);
}

/**
 * hghca_odp_reg_mr - register memory of a user for on-demand paging
 * @ibpd: its PD
 * @start: its address
 * @length: bytes; U64_MAX with address 0 for all memory of the process, including memory
 *	that it maps later
 * @virt_addr: I/O virtual address, unless the region is zero-based
 * @ib_access: its access rights, including IB_ACCESS_ON_DEMAND
 *
 * Return: the region, or an ERR_PTR().
 */
struct ib_mr *hghca_odp_reg_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 virt_addr,
			       int ib_access)
{
	struct hghca_dev *hdev = to_hdev(ibpd->device);
	struct ib_umem_odp *umem_odp;
	struct hghca_mr *mr;
	int err;

	ib_access = hghca_odp_check_access(hdev, ib_access);
	if (ib_access < 0)
		return ERR_PTR(ib_access);
	if (!length)
		return ERR_PTR(-EINVAL);
	if (!start && length == U64_MAX)
		return hghca_odp_reg_all(ibpd, virt_addr, ib_access);
	ib_access = hghca_odp_umem_access(ib_access);
	if (!(ib_access & IB_ACCESS_HUGETLB) && length >> PAGE_SHIFT > hdev->limits.num_mtts)
		return ERR_PTR(-ENOMEM);

	mr = hghca_odp_alloc_mr();
	if (!mr)
		return ERR_PTR(-ENOMEM);

	umem_odp = ib_umem_odp_get(&hdev->ibdev, start, length, ib_access, &hghca_odp_ops);
	if (IS_ERR(umem_odp)) {
		err = PTR_ERR(umem_odp);
		goto err_free_mr;
	}

	err = hghca_odp_describe_mr(hdev, &mr->attr, umem_odp, to_hpd(ibpd)->pdn, virt_addr,
				    ib_access);
	if (err)
		goto err_release_umem;
	if (ib_umem_odp_num_pages(umem_odp) > hdev->limits.num_mtts) {
		err = -ENOMEM;
		goto err_release_umem;
	}

	err = hghca_hwmr_create(hdev, &mr->hw, &mr->attr, ib_umem_odp_num_pages(umem_odp));
	if (err)
		goto err_release_umem;

	mr->odp->whole.odp = mr->odp;
	mr->odp->whole.umem = umem_odp;
	mr->odp->whole.mtts = mr->hw.mtts;
	umem_odp->private = &mr->odp->whole;
	mr->umem = &umem_odp->umem;
	err = hghca_odp_reveal(hdev, mr, length, virt_addr, ib_access);
	if (err)
		goto err_destroy_hwmr;
	return &mr->ibmr;

err_destroy_hwmr:
	hghca_hwmr_take(hdev, &mr->hw);
err_release_umem:
	ib_umem_odp_release(umem_odp);
err_free_mr:
	hghca_odp_free_mr(mr);
	return ERR_PTR(err);
}

/**
 * hghca_odp_dereg_mr - deregister an on-demand region
 * @mr: the region; a device that does not return it is given up
 */
void hghca_odp_dereg_mr(struct hghca_mr *mr)
{
	struct hghca_dev *hdev = to_hdev(mr->umem->ibdev);

	hghca_odp_hide(hdev, mr);
	/* It has no bound windows, so the device has no reason to keep it. */
	if (hghca_hwmr_disable(hdev, &mr->hw))
		hghca_dev_fail(hdev, "failed to deregister an MR");

	if (mr->odp->tree)
		hghca_odp_tree_destroy(mr->odp->tree);
	else
		ib_umem_odp_release(mr->odp->whole.umem);
	hghca_hwmr_take(hdev, &mr->hw);
	hghca_odp_free_mr(mr);
}

/**
 * hghca_odp_describe - the capabilities of on-demand regions
 * @hdev: the device
 * @attr: output
 *
 * A UC or UD message that needs an absent page is lost.  Therefore receives of UC and UD
 * and WRITEs of UC are not reported as supported.
 */
void hghca_odp_describe(const struct hghca_dev *hdev, struct ib_device_attr *attr)
{
	u32 reliable = IB_ODP_SUPPORT_SEND | IB_ODP_SUPPORT_WRITE | IB_ODP_SUPPORT_READ |
		       IB_ODP_SUPPORT_ATOMIC;
	u32 srq_recv = hdev->limits.caps & HGHCA_CAP_SRQ ? IB_ODP_SUPPORT_SRQ_RECV : 0;

	if (!(hdev->limits.caps & HGHCA_CAP_ODP))
		return;
	if (hdev->limits.caps & HGHCA_CAP_PLACEMENT)
		reliable |= IB_ODP_SUPPORT_FLUSH | IB_ODP_SUPPORT_ATOMIC_WRITE;
	attr->kernel_cap_flags |= IBK_ON_DEMAND_PAGING;
	attr->odp_caps.general_caps = IB_ODP_SUPPORT | IB_ODP_SUPPORT_IMPLICIT;
	attr->odp_caps.per_transport_caps.rc_odp_caps = reliable | IB_ODP_SUPPORT_RECV | srq_recv;
	attr->odp_caps.per_transport_caps.ud_odp_caps = IB_ODP_SUPPORT_SEND;
	attr->odp_caps.per_transport_caps.uc_odp_caps = IB_ODP_SUPPORT_SEND;
	if (hdev->limits.caps & HGHCA_CAP_XRC)
		attr->odp_caps.per_transport_caps.xrc_odp_caps = reliable | srq_recv;
}

/**
 * hghca_fill_stat_mr_entry - counters of an on-demand region
 * @msg: output
 * @ibmr: the region; other regions are ignored
 *
 * Return: 0 or -EMSGSIZE.
 */
int hghca_fill_stat_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr)
{
	struct hghca_odp *odp = to_hmr(ibmr)->odp;
	struct nlattr *table;

	if (!odp)
		return 0;
	table = nla_nest_start(msg, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
	if (!table)
		return -EMSGSIZE;
	if (rdma_nl_stat_hwcounter_entry(msg, "page_faults", atomic64_read(&odp->faults)) ||
	    rdma_nl_stat_hwcounter_entry(msg, "page_faults_failed",
					 atomic64_read(&odp->failed)) ||
	    rdma_nl_stat_hwcounter_entry(msg, "page_invalidations",
					 atomic64_read(&odp->invalidations)) ||
	    rdma_nl_stat_hwcounter_entry(msg, "page_prefetch",
					 atomic64_read(&odp->prefetched))) {
		nla_nest_cancel(msg, table);
		return -EMSGSIZE;
	}
	nla_nest_end(msg, table);
	return 0;
}

/*
 * Handle a PAGE_FAULT event.  A reference to the QP is held until the fault is handled,
 * so that the QP is not destroyed before.
 */
static void hghca_page_fault_event(struct hghca_dev *hdev, u32 qpn, const struct hghca_eqe *eqe)
{
	struct hghca_hwqp *hwqp = hghca_hwqp_get(hdev, qpn, HGHCA_EVENT_PAGE_FAULT);
	u32 what = be32_to_cpu(eqe->event.page_fault.what);
	struct hghca_fault *fault;

	if (!hwqp)
		return;

	fault = hwqp->faults ? &hwqp->faults[!!(what & HGHCA_PAGE_FAULT_RESPONDER)] : NULL;
	if (!fault || test_and_set_bit_lock(0, &fault->busy)) {
		dev_err_ratelimited(hdev->bus.dev, "event %#x for QP %#x: %s\n",
				    HGHCA_EVENT_PAGE_FAULT, qpn,
				    fault ? "a page fault is pending already" :
					    "no regions on demand");
		hghca_hwqp_put(hwqp);
		return;
	}
	fault->page.key = be32_to_cpu(eqe->event.page_fault.key);
	fault->page.addr = (u64)be32_to_cpu(eqe->event.page_fault.addr_h) << 32 |
			   be32_to_cpu(eqe->event.page_fault.addr_l);
	fault->page.length = be32_to_cpu(eqe->event.page_fault.length);
	fault->page.what = what;
	queue_work(hdev->odp_wq, &fault->work);
}

/**
 * hghca_odp_init - initialize on-demand regions
 * @hdev: the device
 *
 * Return: 0 or -ENOMEM.
 */
int hghca_odp_init(struct hghca_dev *hdev)
{
	xa_init(&hdev->odp_mrs);
	if (!(hdev->limits.caps & HGHCA_CAP_ODP))
		return 0;
	/* Page faults of one process may take longer than those of another: QPs are not ordered. */
	hdev->odp_wq = alloc_workqueue("%s-odp", WQ_UNBOUND, 0, hdev->bus.name);
	if (!hdev->odp_wq)
		return -ENOMEM;
	hghca_handle_event(hdev, HGHCA_EVENT_PAGE_FAULT, hghca_page_fault_event);
	return 0;
}

/**
 * hghca_odp_cleanup - undo hghca_odp_init()
 * @hdev: the device, without regions, QPs of users and events
 */
void hghca_odp_cleanup(struct hghca_dev *hdev)
{
	if (hdev->odp_wq)
		destroy_workqueue(hdev->odp_wq);
	hdev->odp_wq = NULL;
	WARN_ON(!xa_empty(&hdev->odp_mrs));
	xa_destroy(&hdev->odp_mrs);
}
