// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: memory of queues.
 *
 * Each queue has a zero-based MR, by which the device addresses it by offset.
 */
#include <linux/log2.h>
#include <linux/slab.h>

#include "hghca.h"

static void hghca_queue_free_chunks(struct hghca_dev *hdev, struct hghca_queue *queue)
{
	size_t chunk_sz = min_t(size_t, queue->size, HGHCA_QUEUE_CHUNK_SIZE);
	u32 i;

	for (i = 0; i < queue->num_chunks; i++)
		dma_free_coherent(hdev->bus.dev, chunk_sz, queue->chunks[i].va,
				  queue->chunks[i].dma);
	kvfree(queue->chunks);
}

/**
 * hghca_queue_alloc - allocate memory for a kernel queue
 * @hdev: the device
 * @queue: the queue
 * @pdn: PD of its MR
 * @size: bytes; rounded up to a power of two, at least a page
 * @hw_writes: the device writes to it
 *
 * Return: 0, or a negative errno with @queue zeroed.
 */
int hghca_queue_alloc(struct hghca_dev *hdev, struct hghca_queue *queue, u32 pdn,
		      size_t size, bool hw_writes)
{
	struct hghca_hwmr_attr attr = {
		.pdn = pdn,
		.access = HGHCA_ACCESS_ZERO_BASED | (hw_writes ? HGHCA_ACCESS_LOCAL_WRITE : 0),
	};
	size_t chunk_sz;
	u32 num_chunks;
	int err;

	memset(queue, 0, sizeof(*queue));
	size = roundup_pow_of_two(max_t(size_t, size, PAGE_SIZE));
	chunk_sz = min_t(size_t, size, HGHCA_QUEUE_CHUNK_SIZE);
	num_chunks = size / chunk_sz;

	queue->size = size;
	queue->chunks = kvcalloc(num_chunks, sizeof(*queue->chunks), GFP_KERNEL);
	if (!queue->chunks) {
		err = -ENOMEM;
		goto err_clear;
	}

	/* The DMA API aligns a chunk to its size, so that it is one page of the MR. */
	while (queue->num_chunks < num_chunks) {
		struct hghca_queue_chunk *chunk = &queue->chunks[queue->num_chunks];

		chunk->va = dma_alloc_coherent(hdev->bus.dev, chunk_sz, &chunk->dma, GFP_KERNEL);
		if (!chunk->va) {
			err = -ENOMEM;
			goto err_free_chunks;
		}
		queue->num_chunks++;
	}

	attr.length = size;
	attr.page_shift = ilog2(chunk_sz);
	err = hghca_hwmr_create_chunks(hdev, &queue->mr, &attr, queue->chunks, num_chunks);
	if (err)
		goto err_free_chunks;
	return 0;

err_free_chunks:
	hghca_queue_free_chunks(hdev, queue);
err_clear:
	memset(queue, 0, sizeof(*queue));
	return err;
}

/**
 * hghca_queue_map_user - create an MR over a user's queue
 * @hdev: the device
 * @queue: the queue
 * @pdn: PD of its MR
 * @umem: pinned memory, its start page-aligned; the caller keeps its ownership
 * @offset: where in @umem the queue starts, a multiple of 4096
 * @size: bytes
 * @hw_writes: the device writes to it
 *
 * Return: 0; -EINVAL for a bad alignment or a queue beyond @umem, or another
 * negative errno.  After an error @queue is zeroed.
 */
int hghca_queue_map_user(struct hghca_dev *hdev, struct hghca_queue *queue, u32 pdn,
			 struct ib_umem *umem, u64 offset, size_t size, bool hw_writes)
{
	struct hghca_hwmr_attr attr = {
		.pdn = pdn,
		.access = HGHCA_ACCESS_ZERO_BASED | (hw_writes ? HGHCA_ACCESS_LOCAL_WRITE : 0),
		.length = size,
		.page_shift = 12,
	};
	int err;

	memset(queue, 0, sizeof(*queue));
	if (!size || !IS_ALIGNED(umem->address | offset, BIT(attr.page_shift)) ||
	    offset > umem->length || size > umem->length - offset)
		return -EINVAL;

	err = hghca_hwmr_create_umem(hdev, &queue->mr, &attr, umem, offset);
	if (err)
		return err;
	queue->size = size;
	return 0;
}

/**
 * hghca_queue_free - free a queue's MR, and a kernel queue's memory
 * @hdev: the device, which does not use the queue any more
 * @queue: the queue, of either kind; a zeroed one is ignored
 *
 * After return the device does not access the memory any more: a device that does not
 * return the MR is given up.
 */
void hghca_queue_free(struct hghca_dev *hdev, struct hghca_queue *queue)
{
	hghca_hwmr_take(hdev, &queue->mr);
	hghca_queue_free_chunks(hdev, queue);
	memset(queue, 0, sizeof(*queue));
}
