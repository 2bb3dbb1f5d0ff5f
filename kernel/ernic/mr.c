// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ERNIC and ETRNIC: memory regions.
 *
 * The hardware knows nothing of local regions: the driver checks what a work request
 * names, and copies, or names bus addresses.  A region with remote access has an entry of
 * the protection domain table.  A work request holds its regions, so that memory stays
 * pinned and mapped until the hardware is done with it.
 */
#include <linux/dma-mapping.h>
#include <linux/highmem.h>
#include <linux/slab.h>
#include <rdma/iter.h>
#include "ernic.h"

#define ERNIC_ACCESS_REMOTE	(IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE)
/* Programs register with the right of atomics before they know that the device has none. */
#define ERNIC_ACCESS_SUPPORTED	(IB_ACCESS_LOCAL_WRITE | ERNIC_ACCESS_REMOTE | \
				 IB_ACCESS_REMOTE_ATOMIC)

/* Regions may share pages, which are mapped for each of them, and the CPU copies at any time. */
#define ERNIC_MAP_ATTRS		DMA_ATTR_SKIP_CPU_SYNC

static void ernic_mr_unmap(struct ernic_mr *mr)
{
	dma_unmap_sgtable(mr->edev->func->sysdev, &mr->umem->sgt_append.sgt, DMA_BIDIRECTIONAL,
			  ERNIC_MAP_ATTRS);
}

static void ernic_mr_release(struct work_struct *work)
{
	struct ernic_mr *mr = container_of(work, struct ernic_mr, release);

	if (mr->umem) {
		ernic_mr_unmap(mr);
		ib_umem_release(mr->umem);
	}
	kvfree(mr->bus);
	kvfree(mr->pages);
	kfree(mr);
}

/* Any context: the memory is released by a work. */
static void ernic_mr_unused(struct kref *ref)
{
	struct ernic_mr *mr = container_of(ref, struct ernic_mr, ref);

	queue_work(mr->edev->wq, &mr->release);
}

static void ernic_mr_put(struct ernic_mr *mr)
{
	kref_put(&mr->ref, ernic_mr_unused);
}

static struct ernic_mr *ernic_mr_get(struct ernic_dev *edev, u32 lkey)
{
	struct ernic_mr *mr;
	unsigned long flags;

	xa_lock_irqsave(&edev->lkeys, flags);
	mr = xa_load(&edev->lkeys, lkey);
	if (mr)
		kref_get(&mr->ref);
	xa_unlock_irqrestore(&edev->lkeys, flags);
	return mr;
}

/* ------------------------------------------------------------------ */
/* The protection domain table                                         */

static void ernic_entry_disable(struct ernic_dev *edev, u32 entry)
{
	/* A reserved access, and no bytes. */
	ernic_pd_write(edev, entry, ERNIC_ACCESSDESC, ERNIC_ACCESS_RESERVED);
	ernic_pd_write(edev, entry, ERNIC_WRRDBUFLEN, 0);
	/* The hardware is done with the region when this returns. */
	ernic_read(edev, ERNIC_XRNICCONF);
}

static u32 ernic_entry_access(int access)
{
	switch (access & ERNIC_ACCESS_REMOTE) {
	case IB_ACCESS_REMOTE_READ:
		return ERNIC_ACCESS_READ;
	case IB_ACCESS_REMOTE_WRITE:
		return ERNIC_ACCESS_WRITE;
	default:
		return ERNIC_ACCESS_BOTH;
	}
}

static bool ernic_is_contiguous(const struct ernic_mr *mr)
{
	size_t i;

	for (i = 1; i < mr->num_bus; i++)
		if (mr->bus[i] != mr->bus[i - 1] + ERNIC_PAGE)
			return false;
	return true;
}

/* The device finds a byte in its list by the address's offset in a page. */
static int ernic_list_pages(struct ernic_mr *mr)
{
	__le64 *list;
	size_t i;
	int err;

	if ((mr->ibmr.iova ^ mr->umem->address) % ERNIC_PAGE)
		return -EINVAL;
	err = ernic_mem_alloc(mr->edev, &mr->list, mr->num_bus * sizeof(*list));
	if (err)
		return err;
	list = mr->list.cpu;
	for (i = 0; i < mr->num_bus; i++)
		list[i] = cpu_to_le64(mr->bus[i]);
	return 0;
}

static int ernic_entry_create(struct ernic_mr *mr)
{
	struct ernic_dev *edev = mr->edev;
	u64 base = mr->bus[0] + mr->umem->address % ERNIC_PAGE;
	u32 access = ernic_entry_access(mr->access);
	int entry;
	int err;

	entry = ida_alloc_max(&edev->entry_ida, ERNIC_PDS - 1, GFP_KERNEL);
	if (entry < 0)
		return entry == -ENOSPC ? -ENOMEM : entry;
	if (!ernic_is_contiguous(mr)) {
		err = edev->extensions & ERNIC_EXT_PAGES ? ernic_list_pages(mr) : -EOPNOTSUPP;
		if (err)
			goto err_free_entry;
		base = mr->list.dma;
		access |= ERNIC_ACCESS_PAGES;
	}
	/* Another key each time: an old R_Key does not fit. */
	edev->key8[entry]++;
	mr->entry = entry;
	mr->ibmr.rkey = ERNIC_RKEY(entry, edev->key8[entry]);
	ernic_pd_write(edev, entry, ERNIC_PDPDNUM, to_epd(mr->ibmr.pd)->pdn);
	ernic_pd_write(edev, entry, ERNIC_VIRTADDRLSB, lower_32_bits(mr->ibmr.iova));
	ernic_pd_write(edev, entry, ERNIC_VIRTADDRMSB, upper_32_bits(mr->ibmr.iova));
	ernic_pd_write(edev, entry, ERNIC_BUFBASEADDRLSB, lower_32_bits(base));
	ernic_pd_write(edev, entry, ERNIC_BUFBASEADDRMSB, upper_32_bits(base));
	ernic_pd_write(edev, entry, ERNIC_BUFRKEY, edev->key8[entry]);
	ernic_pd_write(edev, entry, ERNIC_WRRDBUFLEN, lower_32_bits(mr->ibmr.length));
	ernic_pd_write(edev, entry, ERNIC_ACCESSDESC, access |
		       FIELD_PREP(ERNIC_ACCESS_LENGTH_MSB, upper_32_bits(mr->ibmr.length)));
	return 0;

err_free_entry:
	ida_free(&edev->entry_ida, entry);
	return err;
}

static void ernic_entry_destroy(struct ernic_mr *mr)
{
	if (mr->entry < 0)
		return;
	ernic_entry_disable(mr->edev, mr->entry);
	ernic_mem_free(mr->edev, &mr->list);
	ida_free(&mr->edev->entry_ida, mr->entry);
}

/**
 * ernic_mr_invalidate - invalidate what a peer's SEND names
 * @qp: the QP that has received it
 * @rkey: the R_Key
 *
 * Any context.
 *
 * Return: false if the QP has no region with this R_Key.
 */
bool ernic_mr_invalidate(struct ernic_qp *qp, u32 rkey)
{
	struct ernic_dev *edev = qp->edev;
	struct ernic_mr *mr;
	unsigned long index;
	unsigned long flags;
	bool found = false;

	xa_lock_irqsave(&edev->lkeys, flags);
	xa_for_each(&edev->lkeys, index, mr) {
		if (mr->entry < 0 || mr->ibmr.rkey != rkey || mr->ibmr.pd != qp->ibqp.pd)
			continue;
		ernic_entry_disable(edev, mr->entry);
		found = true;
		break;
	}
	xa_unlock_irqrestore(&edev->lkeys, flags);
	return found;
}

/* ------------------------------------------------------------------ */
/* Verbs                                                               */

static struct ernic_mr *ernic_mr_alloc(struct ib_pd *ibpd, int access)
{
	struct ernic_mr *mr = kzalloc_obj(*mr);

	if (!mr)
		return NULL;
	kref_init(&mr->ref);
	INIT_WORK(&mr->release, ernic_mr_release);
	mr->edev = to_edev(ibpd->device);
	mr->access = access;
	mr->entry = -1;
	mr->ibmr.pd = ibpd;
	mr->ibmr.device = ibpd->device;
	return mr;
}

/* From here on, work requests find it. */
static int ernic_mr_publish(struct ernic_mr *mr)
{
	struct ernic_dev *edev = mr->edev;
	int err;

	err = xa_alloc_cyclic_irq(&edev->lkeys, &mr->ibmr.lkey, mr, XA_LIMIT(1, 0xffffff),
				  &edev->next_lkey, GFP_KERNEL);
	if (err < 0)
		return err;
	if (mr->entry < 0)
		mr->ibmr.rkey = 0;
	return 0;
}

/* All memory of the kernel: its L_Key is as good as that of the device. */
struct ib_mr *ernic_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct ernic_mr *mr;
	int err;

	if (access & ~IB_ACCESS_LOCAL_WRITE)
		return ERR_PTR(-EOPNOTSUPP);
	mr = ernic_mr_alloc(ibpd, access);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->ibmr.length = ~0ULL;
	err = ernic_mr_publish(mr);
	if (err) {
		kfree(mr);
		return ERR_PTR(err);
	}
	return &mr->ibmr;
}

/* Map the memory, and list its pages for the CPU and its parts for the device. */
static int ernic_mr_map(struct ernic_mr *mr)
{
	struct ib_umem *umem = mr->umem;
	struct sg_table *table = &umem->sgt_append.sgt;
	struct sg_page_iter page_iter;
	struct ib_block_iter block_iter;
	size_t i = 0;
	int err;

	err = dma_map_sgtable(mr->edev->func->sysdev, table, DMA_BIDIRECTIONAL, ERNIC_MAP_ATTRS);
	if (err)
		return err;
	mr->first_byte = ib_umem_offset(umem);
	mr->num_bus = ib_umem_num_dma_blocks(umem, ERNIC_PAGE);
	mr->pages = kvcalloc(ib_umem_num_pages(umem), sizeof(*mr->pages), GFP_KERNEL);
	mr->bus = kvcalloc(mr->num_bus, sizeof(*mr->bus), GFP_KERNEL);
	if (!mr->pages || !mr->bus) {
		err = -ENOMEM;
		goto err_unmap;
	}
	for_each_sgtable_page(table, &page_iter, 0) {
		if (i == ib_umem_num_pages(umem))
			break;
		mr->pages[i++] = sg_page_iter_page(&page_iter);
	}
	i = 0;
	rdma_umem_for_each_dma_block(umem, &block_iter, ERNIC_PAGE)
		mr->bus[i++] = rdma_block_iter_dma_address(&block_iter);
	return 0;

err_unmap:
	kvfree(mr->bus);
	kvfree(mr->pages);
	ernic_mr_unmap(mr);
	return err;
}

struct ib_mr *ernic_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 virt_addr,
				int access, struct ib_dmah *dmah, struct ib_udata *udata)
{
	struct ernic_dev *edev = to_edev(ibpd->device);
	struct ernic_mr *mr;
	int err;

	if (dmah)
		return ERR_PTR(-EOPNOTSUPP);
	err = ib_no_udata_io(udata);
	if (err)
		return ERR_PTR(err);
	access &= ~IB_ACCESS_OPTIONAL;
	if (access & ~ERNIC_ACCESS_SUPPORTED || (access & ERNIC_ACCESS_REMOTE && !edev->is_ernic))
		return ERR_PTR(-EOPNOTSUPP);
	if (!length || length > ERNIC_MAX_LENGTH)
		return ERR_PTR(-EINVAL);

	mr = ernic_mr_alloc(ibpd, access);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->ibmr.iova = virt_addr;
	mr->ibmr.length = length;
	mr->ibmr.page_size = ERNIC_PAGE;
	mr->umem = ib_umem_get_va(ibpd->device, start, length, access);
	if (IS_ERR(mr->umem)) {
		err = PTR_ERR(mr->umem);
		goto err_free;
	}
	err = ernic_mr_map(mr);
	if (err)
		goto err_release;
	if (access & ERNIC_ACCESS_REMOTE) {
		err = ernic_entry_create(mr);
		if (err)
			goto err_unmap;
	}
	err = ernic_mr_publish(mr);
	if (err)
		goto err_destroy_entry;
	return &mr->ibmr;

err_destroy_entry:
	ernic_entry_destroy(mr);
err_unmap:
	kvfree(mr->bus);
	kvfree(mr->pages);
	ernic_mr_unmap(mr);
err_release:
	ib_umem_release(mr->umem);
err_free:
	kfree(mr);
	return ERR_PTR(err);
}

int ernic_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct ernic_mr *mr = to_emr(ibmr);
	struct ernic_dev *edev = mr->edev;
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	xa_erase_irq(&edev->lkeys, ibmr->lkey);
	ernic_entry_destroy(mr);
	ernic_mr_put(mr);
	return 0;
}

/* ------------------------------------------------------------------ */
/* Local memory of work requests                                       */

/* Check a part, and hold its region. */
static int ernic_sge_hold(struct ernic_qp *qp, struct ernic_sge *to, const struct ib_sge *from,
			  bool writable)
{
	struct ernic_dev *edev = qp->edev;
	struct ernic_mr *mr;

	*to = (struct ernic_sge) { .addr = from->addr, .length = from->length };
	/* The L_Key of no bytes is not checked. */
	if (!from->length || (!qp->user && from->lkey == edev->ibdev.local_dma_lkey))
		return true;
	mr = ernic_mr_get(edev, from->lkey);
	if (!mr)
		return false;
	if (mr->ibmr.pd != qp->ibqp.pd || (writable && !(mr->access & IB_ACCESS_LOCAL_WRITE)) ||
	    (qp->user && !mr->umem))
		goto err_put;
	if (!mr->umem) {
		ernic_mr_put(mr);
		return true;
	}
	if (from->addr < mr->ibmr.iova || from->length > mr->ibmr.length ||
	    from->addr - mr->ibmr.iova > mr->ibmr.length - from->length)
		goto err_put;
	to->mr = mr;
	return true;

err_put:
	ernic_mr_put(mr);
	return false;
}

/**
 * ernic_sges_hold - check the parts of a work request, and hold their regions
 * @qp: the QP
 * @to: output
 * @from: the parts
 * @num_sge: their number
 * @writable: they are written
 *
 * Return: false if the work request must not access one of them; then none is held.
 */
bool ernic_sges_hold(struct ernic_qp *qp, struct ernic_sge *to, const struct ib_sge *from,
		     int num_sge, bool writable)
{
	int i;

	for (i = 0; i < num_sge; i++) {
		if (!ernic_sge_hold(qp, &to[i], &from[i], writable)) {
			ernic_sges_put(to, i);
			return false;
		}
	}
	return true;
}

void ernic_sges_put(struct ernic_sge *sge, int num_sge)
{
	int i;

	for (i = 0; i < num_sge; i++)
		if (sge[i].mr)
			ernic_mr_put(sge[i].mr);
}

static void ernic_sge_copy(const struct ernic_sge *sge, u8 *buffer, u32 bytes, bool to_sge)
{
	const struct ernic_mr *mr = sge->mr;
	u64 offset;

	if (!mr) {
		void *memory = ib_virt_dma_to_ptr(sge->addr);

		memcpy(to_sge ? memory : buffer, to_sge ? buffer : memory, bytes);
		return;
	}
	offset = sge->addr - mr->ibmr.iova + mr->first_byte;
	while (bytes) {
		u32 in_page = offset_in_page(offset);
		u32 now = min_t(u32, bytes, PAGE_SIZE - in_page);
		u8 *page = kmap_local_page(mr->pages[offset >> PAGE_SHIFT]);

		memcpy(to_sge ? page + in_page : buffer, to_sge ? buffer : page + in_page, now);
		kunmap_local(page);
		offset += now;
		buffer += now;
		bytes -= now;
	}
}

/**
 * ernic_sges_copy - copy between the parts of a work request and a buffer
 * @sge: the parts
 * @num_sge: their number
 * @buffer: the buffer
 * @bytes: at most those of all parts
 * @to_sges: to the parts; else from them
 */
void ernic_sges_copy(const struct ernic_sge *sge, int num_sge, void *buffer, u32 bytes,
		     bool to_sges)
{
	u32 now;
	int i;

	for (i = 0; i < num_sge && bytes; i++) {
		now = min(bytes, sge[i].length);
		ernic_sge_copy(&sge[i], buffer, now, to_sges);
		buffer += now;
		bytes -= now;
	}
}

/**
 * ernic_sge_bus - the bus address of a part of a region
 * @sge: the part, of a region
 * @bus: output
 *
 * Return: false if it is not one range.
 */
bool ernic_sge_bus(const struct ernic_sge *sge, dma_addr_t *bus)
{
	const struct ernic_mr *mr = sge->mr;
	u64 offset = sge->addr - mr->ibmr.iova + mr->umem->address % ERNIC_PAGE;
	u64 last = offset + max(sge->length, 1U) - 1;
	u64 i;

	for (i = offset / ERNIC_PAGE; i < last / ERNIC_PAGE; i++)
		if (mr->bus[i + 1] != mr->bus[i] + ERNIC_PAGE)
			return false;
	*bus = mr->bus[offset / ERNIC_PAGE] + offset % ERNIC_PAGE;
	return true;
}
