// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: memory regions.
 *
 * A key is an MPT index with a tag above it.  The tag changes each time the
 * index comes to use again, so that a key kept too long does not open another
 * region.  It is never 0, so that no key equals HGHCA_INVALID_LKEY.
 */
#include <linux/genalloc.h>
#include <linux/log2.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <rdma/ib_umem.h>
#include <rdma/iter.h>

#include "hghca.h"

/* MTTs are given out in units of 8: one cache line. */
#define HGHCA_MTT_UNIT_SHIFT	3
#define HGHCA_MTT_UNIT		BIT(HGHCA_MTT_UNIT_SHIFT)

#define HGHCA_MR_ACCESS_SUPPORTED	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | \
					 IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC)

/* Fills MTTs from the first on, a mailbox at a time. */
struct hghca_mtt_writer {
	struct hghca_dev *hdev;
	struct hghca_mailbox *mailbox;
	u32 next;		/* index of the next MTT to write */
	u32 end;		/* index after the last MTT of the region */
	u32 pending;		/* in the mailbox */
};

/**
 * hghca_mr_init - make regions possible
 * @hdev: the device
 *
 * Return: 0 or a negative errno.
 */
int hghca_mr_init(struct hghca_dev *hdev)
{
	u32 first = round_up(hdev->limits.first_mtt, HGHCA_MTT_UNIT);
	int err;

	hdev->mpt_tags = vzalloc(array_size(hdev->limits.num_mpts, sizeof(*hdev->mpt_tags)));
	if (!hdev->mpt_tags)
		return -ENOMEM;

	hdev->mtt_pool = gen_pool_create(HGHCA_MTT_UNIT_SHIFT, NUMA_NO_NODE);
	if (!hdev->mtt_pool) {
		err = -ENOMEM;
		goto err_free_tags;
	}

	err = gen_pool_add(hdev->mtt_pool, first, hdev->limits.num_mtts - first, NUMA_NO_NODE);
	if (err)
		goto err_destroy_pool;
	return 0;

err_destroy_pool:
	gen_pool_destroy(hdev->mtt_pool);
err_free_tags:
	vfree(hdev->mpt_tags);
	return err;
}

/**
 * hghca_mr_cleanup - undo hghca_mr_init()
 * @hdev: the device, without regions
 */
void hghca_mr_cleanup(struct hghca_dev *hdev)
{
	/* A region that the device did not give back keeps its MTTs. */
	if (gen_pool_avail(hdev->mtt_pool) == gen_pool_size(hdev->mtt_pool))
		gen_pool_destroy(hdev->mtt_pool);
	else
		dev_err(hdev->bus.dev, "translation entries left over\n");
	vfree(hdev->mpt_tags);
}

static u32 hghca_key_index(const struct hghca_dev *hdev, u32 key)
{
	return key & (hdev->limits.num_mpts - 1);
}

static int hghca_key_alloc(struct hghca_dev *hdev, u32 *key)
{
	u32 num_mpts = hdev->limits.num_mpts;
	u32 last_tag = U32_MAX / num_mpts;
	int index;
	u16 tag;

	index = ida_alloc_range(&hdev->mpt_ida, hdev->limits.first_mpt, num_mpts - 1, GFP_KERNEL);
	if (index < 0)
		return index == -ENOSPC ? -ENOMEM : index;

	/* The index is ours: nobody else looks at its tag. */
	tag = hdev->mpt_tags[index];
	tag = tag >= min_t(u32, last_tag, U16_MAX) ? 1 : tag + 1;
	hdev->mpt_tags[index] = tag;
	*key = tag * num_mpts + index;
	return 0;
}

static void hghca_key_free(struct hghca_dev *hdev, u32 key)
{
	ida_free(&hdev->mpt_ida, hghca_key_index(hdev, key));
}

/* Take @count MTTs, with their ICM. */
static int hghca_mtts_alloc(struct hghca_dev *hdev, struct hghca_hwmr *mr, u64 count)
{
	unsigned long first;
	int err;

	if (!count || count > hdev->limits.num_mtts)
		return -ENOMEM;

	first = gen_pool_alloc(hdev->mtt_pool, count);
	if (!first)
		return -ENOMEM;

	err = hghca_icm_get(hdev, HGHCA_ICM_MTT, first, count);
	if (err) {
		gen_pool_free(hdev->mtt_pool, first, count);
		return err;
	}
	mr->mtt_first = first;
	mr->mtt_count = count;
	return 0;
}

static void hghca_mtts_free(struct hghca_dev *hdev, struct hghca_hwmr *mr)
{
	if (!mr->mtt_count)
		return;
	hghca_icm_put(hdev, HGHCA_ICM_MTT, mr->mtt_first, mr->mtt_count);
	gen_pool_free(hdev->mtt_pool, mr->mtt_first, mr->mtt_count);
}

static int hghca_mtt_writer_init(struct hghca_mtt_writer *writer, struct hghca_dev *hdev,
				 const struct hghca_hwmr *mr)
{
	writer->hdev = hdev;
	writer->next = mr->mtt_first;
	writer->end = mr->mtt_first + mr->mtt_count;
	writer->pending = 0;
	writer->mailbox = hghca_mailbox_alloc(hdev);
	return PTR_ERR_OR_ZERO(writer->mailbox);
}

static int hghca_mtt_writer_flush(struct hghca_mtt_writer *writer)
{
	struct hghca_mtt_mailbox *mtts = writer->mailbox->buf;
	int err;

	if (!writer->pending)
		return 0;

	mtts->start_index = cpu_to_be64(writer->next);
	err = hghca_cmd_write_mtt(writer->hdev, writer->mailbox, writer->pending);
	writer->next += writer->pending;
	writer->pending = 0;
	return err;
}

static bool hghca_mtt_writer_full(const struct hghca_mtt_writer *writer)
{
	return writer->next + writer->pending == writer->end;
}

static int hghca_mtt_writer_push(struct hghca_mtt_writer *writer, dma_addr_t dma)
{
	struct hghca_mtt_mailbox *mtts = writer->mailbox->buf;

	mtts->entry[HGHCA_MTT_SLOT(writer->pending++)] = cpu_to_be64(dma & HGHCA_MTT_ADDR_MASK);
	if (writer->pending < HGHCA_MTT_PER_MAILBOX)
		return 0;
	return hghca_mtt_writer_flush(writer);
}

/* Write what is left; all MTTs must have got an address. */
static int hghca_mtt_writer_finish(struct hghca_mtt_writer *writer)
{
	if (!hghca_mtt_writer_full(writer))
		return -EINVAL;
	return hghca_mtt_writer_flush(writer);
}

static void hghca_mtt_writer_cleanup(struct hghca_mtt_writer *writer)
{
	hghca_mailbox_free(writer->hdev, writer->mailbox);
}

static int hghca_mtts_write_umem(struct hghca_dev *hdev, const struct hghca_hwmr *mr,
				 struct ib_umem *umem, u8 page_shift, u64 skip)
{
	struct hghca_mtt_writer writer;
	struct ib_block_iter biter;
	int err;

	err = hghca_mtt_writer_init(&writer, hdev, mr);
	if (err)
		return err;

	rdma_umem_for_each_dma_block(umem, &biter, BIT_ULL(page_shift)) {
		if (skip) {
			skip--;
			continue;
		}
		if (hghca_mtt_writer_full(&writer))
			break;
		err = hghca_mtt_writer_push(&writer, rdma_block_iter_dma_address(&biter));
		if (err)
			goto out_cleanup;
	}
	err = hghca_mtt_writer_finish(&writer);
out_cleanup:
	hghca_mtt_writer_cleanup(&writer);
	return err;
}

static int hghca_mtts_write_chunks(struct hghca_dev *hdev, const struct hghca_hwmr *mr,
				   const struct hghca_queue_chunk *chunks, u32 num_chunks)
{
	struct hghca_mtt_writer writer;
	u32 i;
	int err;

	err = hghca_mtt_writer_init(&writer, hdev, mr);
	if (err)
		return err;

	for (i = 0; i < num_chunks; i++) {
		err = hghca_mtt_writer_push(&writer, chunks[i].dma);
		if (err)
			goto out_cleanup;
	}
	err = hghca_mtt_writer_finish(&writer);
out_cleanup:
	hghca_mtt_writer_cleanup(&writer);
	return err;
}

/* Hand the region over to the device; key and MTTs are there. */
static int hghca_hwmr_enable(struct hghca_dev *hdev, const struct hghca_hwmr *mr,
			     const struct hghca_hwmr_attr *attr)
{
	struct hghca_mpt mpt = {};

	mpt.flags = cpu_to_be32(HGHCA_MPT_FLAG_REGION | attr->access |
				(attr->physical ? HGHCA_MPT_FLAG_PHYSICAL : 0));
	mpt.page_size = cpu_to_be32(attr->page_shift - 12);
	mpt.key = cpu_to_be32(mr->key);
	mpt.pd = cpu_to_be32(attr->pdn);
	mpt.start = cpu_to_be64(attr->start);
	mpt.length = cpu_to_be64(attr->length);
	mpt.lkey = cpu_to_be32(mr->key);
	mpt.mtt_seg_l = cpu_to_be32(mr->mtt_first);
	mpt.mtt_sz = cpu_to_be32(mr->mtt_count);
	return hghca_cmd_sw2hw_mpt(hdev, hghca_key_index(hdev, mr->key), &mpt);
}

/* Key and MPT memory. */
static int hghca_hwmr_reserve(struct hghca_dev *hdev, struct hghca_hwmr *mr)
{
	int err;

	memset(mr, 0, sizeof(*mr));
	err = hghca_key_alloc(hdev, &mr->key);
	if (err)
		return err;

	err = hghca_icm_get(hdev, HGHCA_ICM_MPT, hghca_key_index(hdev, mr->key), 1);
	if (err) {
		hghca_key_free(hdev, mr->key);
		mr->key = 0;
	}
	return err;
}

static void hghca_hwmr_release(struct hghca_dev *hdev, struct hghca_hwmr *mr)
{
	hghca_icm_put(hdev, HGHCA_ICM_MPT, hghca_key_index(hdev, mr->key), 1);
	hghca_key_free(hdev, mr->key);
	memset(mr, 0, sizeof(*mr));
}

/* Number of pages an MR's addresses touch. */
static u64 hghca_hwmr_num_pages(const struct hghca_hwmr_attr *attr)
{
	u64 in_page = attr->start & (BIT_ULL(attr->page_shift) - 1);

	return DIV_ROUND_UP_ULL(in_page + attr->length, BIT_ULL(attr->page_shift));
}

/**
 * hghca_hwmr_create_physical - a region of all DMA addresses
 * @hdev: the device
 * @mr: the region
 * @pdn: its PD
 * @access: HGHCA_ACCESS_*
 *
 * Return: 0 or a negative errno, and then @mr is all zeros.
 */
int hghca_hwmr_create_physical(struct hghca_dev *hdev, struct hghca_hwmr *mr, u32 pdn, u32 access)
{
	const struct hghca_hwmr_attr attr = {
		.pdn = pdn,
		.access = access,
		.length = U64_MAX,
		.page_shift = 12,
		.physical = true,
	};
	int err;

	err = hghca_hwmr_reserve(hdev, mr);
	if (err)
		return err;

	err = hghca_hwmr_enable(hdev, mr, &attr);
	if (err)
		hghca_hwmr_release(hdev, mr);
	return err;
}

/**
 * hghca_hwmr_create_umem - a region over pinned user memory
 * @hdev: the device
 * @mr: the region
 * @attr: what it shall be
 * @umem: the memory; made of pages of @attr->page_shift at least
 * @offset: where in @umem the region starts, a multiple of the page size
 *
 * Return: 0 or a negative errno, and then @mr is all zeros.
 */
int hghca_hwmr_create_umem(struct hghca_dev *hdev, struct hghca_hwmr *mr,
			   const struct hghca_hwmr_attr *attr, struct ib_umem *umem, u64 offset)
{
	int err;

	if (!IS_ALIGNED(offset, BIT_ULL(attr->page_shift)))
		return -EINVAL;

	err = hghca_hwmr_reserve(hdev, mr);
	if (err)
		return err;

	err = hghca_mtts_alloc(hdev, mr, hghca_hwmr_num_pages(attr));
	if (err)
		goto err_release;

	err = hghca_mtts_write_umem(hdev, mr, umem, attr->page_shift, offset >> attr->page_shift);
	if (err)
		goto err_free_mtts;

	err = hghca_hwmr_enable(hdev, mr, attr);
	if (err)
		goto err_free_mtts;
	return 0;

err_free_mtts:
	hghca_mtts_free(hdev, mr);
err_release:
	hghca_hwmr_release(hdev, mr);
	return err;
}

/**
 * hghca_hwmr_create_chunks - a region over chunks of kernel memory
 * @hdev: the device
 * @mr: the region
 * @attr: what it shall be; its page size is that of a chunk
 * @chunks: the memory
 * @num_chunks: number of chunks
 *
 * Return: 0 or a negative errno, and then @mr is all zeros.
 */
int hghca_hwmr_create_chunks(struct hghca_dev *hdev, struct hghca_hwmr *mr,
			     const struct hghca_hwmr_attr *attr,
			     const struct hghca_queue_chunk *chunks, u32 num_chunks)
{
	int err;

	err = hghca_hwmr_reserve(hdev, mr);
	if (err)
		return err;

	err = hghca_mtts_alloc(hdev, mr, num_chunks);
	if (err)
		goto err_release;

	err = hghca_mtts_write_chunks(hdev, mr, chunks, num_chunks);
	if (err)
		goto err_free_mtts;

	err = hghca_hwmr_enable(hdev, mr, attr);
	if (err)
		goto err_free_mtts;
	return 0;

err_free_mtts:
	hghca_mtts_free(hdev, mr);
err_release:
	hghca_hwmr_release(hdev, mr);
	return err;
}

/**
 * hghca_hwmr_destroy - take a region from the device
 * @hdev: the device
 * @mr: the region; nothing happens to one of zeros
 *
 * Return: 0, and @mr is all zeros; or a negative errno, and the device still
 * has the region: its memory must not be freed.
 */
int hghca_hwmr_destroy(struct hghca_dev *hdev, struct hghca_hwmr *mr)
{
	int err;

	if (!mr->key)
		return 0;

	err = hghca_cmd_hw2sw_mpt(hdev, hghca_key_index(hdev, mr->key));
	if (err) {
		dev_err_ratelimited(hdev->bus.dev, "MR %#x: not given back: %d\n", mr->key, err);
		return err;
	}
	hghca_mtts_free(hdev, mr);
	hghca_hwmr_release(hdev, mr);
	return 0;
}

static u32 hghca_access_from_ib(int ib_access)
{
	u32 access = 0;

	if (ib_access & IB_ACCESS_LOCAL_WRITE)
		access |= HGHCA_ACCESS_LOCAL_WRITE;
	if (ib_access & IB_ACCESS_REMOTE_WRITE)
		access |= HGHCA_ACCESS_REMOTE_WRITE;
	if (ib_access & IB_ACCESS_REMOTE_READ)
		access |= HGHCA_ACCESS_REMOTE_READ;
	if (ib_access & IB_ACCESS_REMOTE_ATOMIC)
		access |= HGHCA_ACCESS_REMOTE_ATOMIC;
	return access;
}

/**
 * hghca_get_dma_mr - a region of all memory, for the kernel
 * @ibpd: its PD
 * @ib_access: its rights
 *
 * Return: the region, or an ERR_PTR().
 */
struct ib_mr *hghca_get_dma_mr(struct ib_pd *ibpd, int ib_access)
{
	struct hghca_dev *hdev = to_hdev(ibpd->device);
	struct hghca_mr *mr;
	int err;

	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);

	err = hghca_hwmr_create_physical(hdev, &mr->hw, to_hpd(ibpd)->pdn,
					 hghca_access_from_ib(ib_access));
	if (err) {
		kfree(mr);
		return ERR_PTR(err);
	}
	mr->ibmr.lkey = mr->hw.key;
	mr->ibmr.rkey = mr->hw.key;
	return &mr->ibmr;
}

/**
 * hghca_reg_user_mr - register memory of a user
 * @ibpd: its PD
 * @start: where it is
 * @length: bytes
 * @virt_addr: where it shall seem to be to the device
 * @ib_access: its rights
 * @udata: must be empty
 *
 * Return: the region, or an ERR_PTR().
 */
struct ib_mr *hghca_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 virt_addr,
				int ib_access, struct ib_udata *udata)
{
	struct hghca_dev *hdev = to_hdev(ibpd->device);
	struct hghca_hwmr_attr attr = {
		.pdn = to_hpd(ibpd)->pdn,
		.start = virt_addr,
		.length = length,
	};
	unsigned long page_sz;
	struct hghca_mr *mr;
	int err;

	if (udata->inlen && !ib_is_udata_cleared(udata, 0, udata->inlen)) {
		ibdev_dbg(&hdev->ibdev, "reg_user_mr: input that is not zero\n");
		return ERR_PTR(-EINVAL);
	}

	ib_access &= ~IB_ACCESS_OPTIONAL;
	if (ib_access & ~HGHCA_MR_ACCESS_SUPPORTED) {
		ibdev_dbg(&hdev->ibdev, "reg_user_mr: access %#x is not supported\n", ib_access);
		return ERR_PTR(-EOPNOTSUPP);
	}

	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);

	mr->umem = ib_umem_get(&hdev->ibdev, start, length, ib_access);
	if (IS_ERR(mr->umem)) {
		err = PTR_ERR(mr->umem);
		ibdev_dbg(&hdev->ibdev, "reg_user_mr: %llu bytes cannot be pinned: %d\n",
			  length, err);
		goto err_free_mr;
	}

	page_sz = ib_umem_find_best_pgsz(mr->umem,
					 GENMASK(hdev->limits.log_max_page,
						 hdev->limits.log_min_page), virt_addr);
	if (!page_sz) {
		ibdev_dbg(&hdev->ibdev, "reg_user_mr: no page size fits\n");
		err = -EINVAL;
		goto err_release_umem;
	}

	attr.access = hghca_access_from_ib(ib_access);
	attr.page_shift = order_base_2(page_sz);
	err = hghca_hwmr_create_umem(hdev, &mr->hw, &attr, mr->umem, 0);
	if (err)
		goto err_release_umem;

	mr->ibmr.lkey = mr->hw.key;
	mr->ibmr.rkey = mr->hw.key;
	mr->ibmr.length = length;
	mr->ibmr.iova = virt_addr;
	mr->ibmr.page_size = page_sz;
	return &mr->ibmr;

err_release_umem:
	ib_umem_release(mr->umem);
err_free_mr:
	kfree(mr);
	return ERR_PTR(err);
}

/**
 * hghca_dereg_mr - deregister a region
 * @ibmr: the region
 * @udata: not used
 *
 * Return: 0, or a negative errno when the device does not give it back.
 */
int hghca_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct hghca_mr *mr = to_hmr(ibmr);
	int err;

	err = hghca_hwmr_destroy(to_hdev(ibmr->device), &mr->hw);
	if (err)
		return err;
	ib_umem_release(mr->umem);
	kfree(mr);
	return 0;
}
