// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* JingZhao HCA: memory regions and windows in the device. */
#include <linux/log2.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>
#include <rdma/iter.h>

#include "hghca.h"

/* Flags of the MPT of each kind, besides access rights. */
static const u32 hghca_mpt_flags[] = {
	[HGHCA_HWMR_MAPPED] = HGHCA_MPT_FLAG_REGION,
	[HGHCA_HWMR_PHYSICAL] = HGHCA_MPT_FLAG_REGION | HGHCA_MPT_FLAG_PHYSICAL,
	[HGHCA_HWMR_ON_DEMAND] = HGHCA_MPT_FLAG_REGION | HGHCA_ACCESS_ON_DEMAND,
	[HGHCA_HWMR_TREE] = HGHCA_MPT_FLAG_REGION | HGHCA_ACCESS_ON_DEMAND | HGHCA_MPT_FLAG_TREE,
	[HGHCA_HWMR_DEVICE] = HGHCA_MPT_FLAG_REGION | HGHCA_MPT_FLAG_DEVICE,
	[HGHCA_HWMR_FAST_REG] = HGHCA_MPT_FLAG_REGION | HGHCA_MPT_FLAG_FAST_REG |
				HGHCA_MPT_FLAG_FREE,
	[HGHCA_HWMR_WINDOW_1] = HGHCA_MPT_FLAG_FREE,
	[HGHCA_HWMR_WINDOW_2B] = HGHCA_MPT_FLAG_FREE | HGHCA_MPT_FLAG_WINDOW_QP,
};

/* Writes consecutive MTTs, a mailbox at a time; or, inline, into the mailbox of the MPT. */
struct hghca_mtt_writer {
	struct hghca_dev *hdev;
	struct hghca_mailbox *mailbox;
	u32 next;		/* index of the next MTT to write */
	u32 end;		/* index after the last MTT of the region */
	u32 pending;		/* MTTs in the mailbox */
	bool is_inline;		/* all MTTs fit, and SW2HW_MPT writes them */
};

static int hghca_mtt_writer_init(struct hghca_mtt_writer *writer, struct hghca_dev *hdev,
				 const struct hghca_hwmr *mr, bool is_inline)
{
	writer->hdev = hdev;
	writer->is_inline = is_inline;
	writer->next = mr->mtts.first;
	writer->end = mr->mtts.first + mr->mtts.count;
	writer->pending = 0;
	writer->mailbox = hghca_mailbox_alloc(hdev, is_inline ?
					      offsetof(struct hghca_mpt_mtts, entry) :
					      offsetof(struct hghca_mtt_mailbox, entry));
	return PTR_ERR_OR_ZERO(writer->mailbox);
}

static int hghca_mtt_writer_flush(struct hghca_mtt_writer *writer)
{
	struct hghca_mtt_mailbox *mtts = writer->mailbox->buf;
	int err;

	if (!writer->pending || writer->is_inline)
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
	__be64 entry = cpu_to_be64(dma & HGHCA_MTT_ADDR_MASK);

	/* More pages than MTTs. */
	if (hghca_mtt_writer_full(writer))
		return -EINVAL;
	if (writer->is_inline) {
		struct hghca_mpt_mtts *region = writer->mailbox->buf;

		region->entry[writer->pending++] = entry;
		return 0;
	}
	mtts->entry[HGHCA_MTT_SLOT(writer->pending++)] = entry;
	if (writer->pending < HGHCA_MTT_PER_MAILBOX)
		return 0;
	return hghca_mtt_writer_flush(writer);
}

/* Write the remaining MTTs.  All MTTs must have an address. */
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

static int hghca_mtts_push_umem(struct hghca_mtt_writer *writer, struct ib_umem *umem,
				u8 page_shift, u64 skip)
{
	struct ib_block_iter biter;
	int err;

	rdma_umem_for_each_dma_block(umem, &biter, BIT_ULL(page_shift)) {
		if (skip) {
			skip--;
			continue;
		}
		if (hghca_mtt_writer_full(writer))
			break;
		err = hghca_mtt_writer_push(writer, rdma_block_iter_dma_address(&biter));
		if (err)
			return err;
	}
	return hghca_mtt_writer_finish(writer);
}

static int hghca_mtts_push_chunks(struct hghca_mtt_writer *writer,
				  const struct hghca_queue_chunk *chunks, u32 num_chunks)
{
	u32 i;
	int err;

	for (i = 0; i < num_chunks; i++) {
		err = hghca_mtt_writer_push(writer, chunks[i].dma);
		if (err)
			return err;
	}
	return hghca_mtt_writer_finish(writer);
}

static int hghca_mtts_write_umem(struct hghca_dev *hdev, const struct hghca_hwmr *mr,
				 struct ib_umem *umem, u8 page_shift, u64 skip)
{
	struct hghca_mtt_writer writer;
	int err;

	err = hghca_mtt_writer_init(&writer, hdev, mr, false);
	if (err)
		return err;
	err = hghca_mtts_push_umem(&writer, umem, page_shift, skip);
	hghca_mtt_writer_cleanup(&writer);
	return err;
}

static int hghca_mtts_write_chunks(struct hghca_dev *hdev, const struct hghca_hwmr *mr,
				   const struct hghca_queue_chunk *chunks, u32 num_chunks)
{
	struct hghca_mtt_writer writer;
	int err;

	err = hghca_mtt_writer_init(&writer, hdev, mr, false);
	if (err)
		return err;
	err = hghca_mtts_push_chunks(&writer, chunks, num_chunks);
	hghca_mtt_writer_cleanup(&writer);
	return err;
}

/**
 * hghca_mtts_clear - make entries of on-demand regions absent
 * @hdev: the device
 * @mtts: the run that contains them
 * @from: the first, relative to the run
 * @count: number of entries
 *
 * Context: may sleep, but does not allocate memory.
 *
 * Return: 0: the device does not use the previous entries any more; or a negative errno.
 */
int hghca_mtts_clear(struct hghca_dev *hdev, const struct hghca_mtts *mtts, u32 from, u32 count)
{
	while (count) {
		u32 now = min_t(u32, count, HGHCA_CLEAR_MTT_MAX);
		int err = hghca_cmd_clear_mtt(hdev, mtts->first + from, now);

		if (err)
			return err;
		from += now;
		count -= now;
	}
	return 0;
}

static void hghca_hwmr_to_mpt(const struct hghca_hwmr *mr, const struct hghca_hwmr_attr *attr,
			      struct hghca_mpt *mpt)
{
	mpt->flags = cpu_to_be32(hghca_mpt_flags[attr->kind] | attr->access);
	mpt->page_size = cpu_to_be32(attr->page_shift - 12);
	mpt->key = cpu_to_be32(mr->key);
	mpt->pd = cpu_to_be32(attr->pdn);
	mpt->start = cpu_to_be64(attr->start);
	mpt->length = cpu_to_be64(attr->length);
	mpt->lkey = cpu_to_be32(mr->key);
	mpt->mtt_seg_l = cpu_to_be32(attr->kind == HGHCA_HWMR_DEVICE ? attr->device_offset :
								       mr->mtts.first);
	mpt->mtt_sz = cpu_to_be32(mr->mtts.count);
	mpt->first_byte = cpu_to_be32(attr->first_byte);
}

/* Hand the region over to the device.  Its key and MTTs exist. */
static int hghca_hwmr_enable(struct hghca_dev *hdev, struct hghca_hwmr *mr,
			     const struct hghca_hwmr_attr *attr)
{
	struct hghca_mpt mpt = {};
	int err;

	hghca_hwmr_to_mpt(mr, attr, &mpt);
	err = hghca_cmd_sw2hw_mpt(hdev, hghca_key_index(hdev, mr->key), &mpt);
	mr->enabled = !err;
	return err;
}

/**
 * hghca_hwmr_disable - take a region back from the device
 * @hdev: the device
 * @mr: the region; its key gives no access afterwards; it keeps its MTTs
 *
 * Return: 0; -EBUSY for a region with windows bound to it, which its user keeps; or
 * another negative errno.
 */
int hghca_hwmr_disable(struct hghca_dev *hdev, struct hghca_hwmr *mr)
{
	int err;

	if (!mr->enabled)
		return 0;

	err = hghca_cmd_hw2sw_mpt(hdev, hghca_key_index(hdev, mr->key));
	if (err == -EBUSY)
		ibdev_dbg(&hdev->ibdev, "MR %#x: windows are bound to it\n", mr->key);
	else if (err)
		dev_err_ratelimited(hdev->bus.dev, "failed to deregister MR %#x: %d\n", mr->key,
				    err);
	else
		mr->enabled = false;
	return err;
}

/* Allocate the key and the MTTs, with the ICM of both. */
static int hghca_hwmr_reserve(struct hghca_dev *hdev, struct hghca_hwmr *mr, u64 num_mtts)
{
	int err;

	memset(mr, 0, sizeof(*mr));
	if (hghca_idle_key_take(hdev, mr, num_mtts))
		return 0;

	err = hghca_key_alloc(hdev, &mr->key);
	if (err)
		return err;

	err = hghca_icm_get(hdev, HGHCA_ICM_MPT, hghca_key_index(hdev, mr->key), 1);
	if (err)
		goto err_free_key;

	err = num_mtts ? hghca_mtts_alloc(hdev, &mr->mtts, num_mtts) : 0;
	if (err)
		goto err_put_icm;
	return 0;

err_put_icm:
	hghca_icm_put(hdev, HGHCA_ICM_MPT, hghca_key_index(hdev, mr->key), 1);
err_free_key:
	hghca_key_free(hdev, mr->key);
	mr->key = 0;
	return err;
}

static void hghca_hwmr_release(struct hghca_dev *hdev, struct hghca_hwmr *mr)
{
	if (!hghca_idle_key_put(hdev, mr)) {
		hghca_mtts_free(hdev, &mr->mtts);
		hghca_icm_put(hdev, HGHCA_ICM_MPT, hghca_key_index(hdev, mr->key), 1);
		hghca_key_free(hdev, mr->key);
	}
	memset(mr, 0, sizeof(*mr));
}

/* Number of pages that the addresses of an MR touch. */
static u64 hghca_hwmr_num_pages(const struct hghca_hwmr_attr *attr)
{
	u64 in_page = attr->first_byte + (attr->start & (BIT_ULL(attr->page_shift) - 1));

	return DIV_ROUND_UP_ULL(in_page + attr->length, BIT_ULL(attr->page_shift));
}

/* Source of the MTTs of a new region; all zeros: the driver does not write them here. */
struct hghca_hwmr_source {
	struct ib_umem *umem;
	u64 first_page;		/* index in @umem, in pages of the region */
	const struct hghca_queue_chunk *chunks;
};

static int hghca_hwmr_write_mtts(struct hghca_dev *hdev, struct hghca_hwmr *mr,
				 const struct hghca_hwmr_attr *attr,
				 const struct hghca_hwmr_source *source)
{
	if (source->umem)
		return hghca_mtts_write_umem(hdev, mr, source->umem, attr->page_shift,
					     source->first_page);
	if (source->chunks)
		return hghca_mtts_write_chunks(hdev, mr, source->chunks, mr->mtts.count);
	/* The MTTs may have entries of a former region. */
	if (attr->kind == HGHCA_HWMR_ON_DEMAND || attr->kind == HGHCA_HWMR_TREE)
		return hghca_mtts_clear(hdev, &mr->mtts, 0, mr->mtts.count);
	return 0;
}

static bool hghca_hwmr_fits_inline(const struct hghca_dev *hdev, const struct hghca_hwmr *mr,
				   const struct hghca_hwmr_source *source)
{
	return hdev->limits.caps & HGHCA_CAP_INLINE_MTTS && (source->umem || source->chunks) &&
	       mr->mtts.count <= HGHCA_MPT_MTTS_MAX;
}

/* Write the MTTs and hand the region over by one command. */
static int hghca_hwmr_enable_inline(struct hghca_dev *hdev, struct hghca_hwmr *mr,
				    const struct hghca_hwmr_attr *attr,
				    const struct hghca_hwmr_source *source)
{
	struct hghca_mtt_writer writer;
	struct hghca_mpt_mtts *region;
	int err;

	err = hghca_mtt_writer_init(&writer, hdev, mr, true);
	if (err)
		return err;

	if (source->umem)
		err = hghca_mtts_push_umem(&writer, source->umem, attr->page_shift,
					   source->first_page);
	else
		err = hghca_mtts_push_chunks(&writer, source->chunks, mr->mtts.count);
	if (err)
		goto out_cleanup;

	region = writer.mailbox->buf;
	hghca_hwmr_to_mpt(mr, attr, &region->mpt);
	err = hghca_cmd_sw2hw_mpt_mtts(hdev, hghca_key_index(hdev, mr->key), writer.mailbox);
	mr->enabled = !err;
out_cleanup:
	hghca_mtt_writer_cleanup(&writer);
	return err;
}

static int hghca_hwmr_hand_over(struct hghca_dev *hdev, struct hghca_hwmr *mr,
				const struct hghca_hwmr_attr *attr,
				const struct hghca_hwmr_source *source)
{
	int err;

	if (hghca_hwmr_fits_inline(hdev, mr, source))
		return hghca_hwmr_enable_inline(hdev, mr, attr, source);
	err = hghca_hwmr_write_mtts(hdev, mr, attr, source);
	if (err)
		return err;
	return hghca_hwmr_enable(hdev, mr, attr);
}

static int hghca_hwmr_create_from(struct hghca_dev *hdev, struct hghca_hwmr *mr,
				  const struct hghca_hwmr_attr *attr, u64 num_mtts,
				  const struct hghca_hwmr_source *source)
{
	int err;

	/* Memory needs MTTs.  0 means no bytes, or an overflow of the number. */
	if (!num_mtts && (source->umem || source->chunks))
		return -ENOMEM;

	err = hghca_hwmr_reserve(hdev, mr, num_mtts);
	if (err)
		return err;

	err = hghca_hwmr_hand_over(hdev, mr, attr, source);
	if (err)
		hghca_hwmr_release(hdev, mr);
	return err;
}

/**
 * hghca_hwmr_create - create a region or window without writing MTTs
 * @hdev: the device
 * @mr: the region
 * @attr: its attributes
 * @num_mtts: number of its MTTs, which REG_MR or, for an on-demand region, the page
 *	fault handling writes; may be 0
 *
 * Return: 0, or a negative errno with @mr zeroed.
 */
int hghca_hwmr_create(struct hghca_dev *hdev, struct hghca_hwmr *mr,
		      const struct hghca_hwmr_attr *attr, u32 num_mtts)
{
	const struct hghca_hwmr_source none = {};

	return hghca_hwmr_create_from(hdev, mr, attr, num_mtts, &none);
}

/**
 * hghca_hwmr_create_physical - create a region of all DMA addresses
 * @hdev: the device
 * @mr: the region
 * @pdn: its PD
 * @access: HGHCA_ACCESS_*
 *
 * Return: 0, or a negative errno with @mr zeroed.
 */
int hghca_hwmr_create_physical(struct hghca_dev *hdev, struct hghca_hwmr *mr, u32 pdn, u32 access)
{
	const struct hghca_hwmr_attr attr = {
		.kind = HGHCA_HWMR_PHYSICAL,
		.pdn = pdn,
		.access = access,
		.length = U64_MAX,
		.page_shift = 12,
	};

	return hghca_hwmr_create(hdev, mr, &attr, 0);
}

/**
 * hghca_hwmr_create_umem - create a region over pinned user memory
 * @hdev: the device
 * @mr: the region
 * @attr: its attributes
 * @umem: the memory, in pages of at least @attr->page_shift
 * @offset: where in @umem the region starts, a multiple of the page size
 *
 * Return: 0, or a negative errno with @mr zeroed.
 */
int hghca_hwmr_create_umem(struct hghca_dev *hdev, struct hghca_hwmr *mr,
			   const struct hghca_hwmr_attr *attr, struct ib_umem *umem, u64 offset)
{
	const struct hghca_hwmr_source source = {
		.umem = umem,
		.first_page = offset >> attr->page_shift,
	};

	if (!IS_ALIGNED(offset, BIT_ULL(attr->page_shift)))
		return -EINVAL;
	return hghca_hwmr_create_from(hdev, mr, attr, hghca_hwmr_num_pages(attr), &source);
}

/**
 * hghca_hwmr_create_chunks - create a region over chunks of kernel memory
 * @hdev: the device
 * @mr: the region
 * @attr: its attributes; its page size is that of a chunk
 * @chunks: the memory
 * @num_chunks: number of chunks
 *
 * Return: 0, or a negative errno with @mr zeroed.
 */
int hghca_hwmr_create_chunks(struct hghca_dev *hdev, struct hghca_hwmr *mr,
			     const struct hghca_hwmr_attr *attr,
			     const struct hghca_queue_chunk *chunks, u32 num_chunks)
{
	const struct hghca_hwmr_source source = { .chunks = chunks };

	return hghca_hwmr_create_from(hdev, mr, attr, num_chunks, &source);
}

/**
 * hghca_hwmr_change - change a region, which keeps its key
 * @hdev: the device
 * @mr: the region
 * @from: its present attributes
 * @to: its new attributes
 * @umem: its memory, NULL for a region of no bytes
 * @new_pages: write its MTTs again; otherwise they are kept
 *
 * During the change the device does not have the region.
 *
 * Return: 0, or a negative errno.  After an error @mr is unchanged; or, if the device
 * does not accept the old attributes either, it is not enabled and its key gives no
 * access.
 */
int hghca_hwmr_change(struct hghca_dev *hdev, struct hghca_hwmr *mr,
		      const struct hghca_hwmr_attr *from, const struct hghca_hwmr_attr *to,
		      struct ib_umem *umem, bool new_pages)
{
	struct hghca_hwmr changed = *mr;
	bool was_enabled = mr->enabled;
	int err;

	if (new_pages)
		changed.mtts = (struct hghca_mtts) {};
	if (new_pages && umem) {
		err = hghca_mtts_alloc(hdev, &changed.mtts, hghca_hwmr_num_pages(to));
		if (err)
			return err;
		err = hghca_mtts_write_umem(hdev, &changed, umem, to->page_shift, 0);
		if (err)
			goto err_free_mtts;
	}

	err = hghca_hwmr_disable(hdev, mr);
	if (err)
		goto err_free_mtts;
	err = hghca_hwmr_enable(hdev, &changed, to);
	if (err)
		goto err_enable_old;

	if (new_pages)
		hghca_mtts_free(hdev, &mr->mtts);
	*mr = changed;
	return 0;

err_enable_old:
	if (was_enabled && hghca_hwmr_enable(hdev, mr, from))
		dev_err_ratelimited(hdev->bus.dev,
				    "failed to restore MR %#x after a failed change\n", mr->key);
err_free_mtts:
	if (new_pages)
		hghca_mtts_free(hdev, &changed.mtts);
	return err;
}

/**
 * hghca_hwmr_query - query the MPT of a region
 * @hdev: the device
 * @mr: the region
 * @mpt: its entry
 *
 * Return: 0, -EBADF for a region that the device does not have now, or a
 * negative errno.
 */
int hghca_hwmr_query(struct hghca_dev *hdev, const struct hghca_hwmr *mr, struct hghca_mpt *mpt)
{
	return hghca_cmd_query_mpt(hdev, hghca_key_index(hdev, mr->key), mpt);
}

/**
 * hghca_hwmr_destroy - take a region from the device
 * @hdev: the device
 * @mr: the region; a zeroed one is ignored
 *
 * Return: 0 with @mr zeroed, -EBUSY for a region with windows bound to it, or another
 * negative errno.  After an error the device still has the region, and its memory must
 * not be freed.
 */
int hghca_hwmr_destroy(struct hghca_dev *hdev, struct hghca_hwmr *mr)
{
	int err;

	if (!mr->key)
		return 0;

	err = hghca_hwmr_disable(hdev, mr);
	if (err)
		return err;
	hghca_hwmr_release(hdev, mr);
	return 0;
}

/**
 * hghca_hwmr_take - take a region from the device, without failure
 * @hdev: the device, which is given up if it does not return the region
 * @mr: the region, zeroed afterwards
 *
 * Use this if the memory is freed next.
 */
void hghca_hwmr_take(struct hghca_dev *hdev, struct hghca_hwmr *mr)
{
	if (!hghca_hwmr_destroy(hdev, mr))
		return;
	hghca_dev_fail(hdev, "failed to deregister an MR");
	/* A device that was given up has no regions. */
	hghca_hwmr_destroy(hdev, mr);
}
