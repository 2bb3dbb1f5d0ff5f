// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: host memory for the contexts and tables of the device.
 *
 * A table consists of blocks of HGHCA_ICM_BLOCK_SIZE.  The first object with an entry in
 * a block allocates and maps it.  A block without users is idle.  Each table keeps one
 * idle block, so that an object that is created and destroyed again and again costs
 * neither commands nor zeroed memory.  The next block to become idle takes its place, and
 * a shrinker frees the idle blocks of all devices when memory is short.
 *
 * Each block has a slot, which counts its users.  A slot is there as long as the table, so
 * that a further user of a block needs no lock.
 */
#include <linux/slab.h>

#include "hghca.h"

#define HGHCA_ICM_PIECES_MAX	(HGHCA_ICM_BLOCK_SIZE / HGHCA_ICM_PAGE_SIZE)

/* Memory contiguous for the device.  If possible, a block is a single piece. */
struct hghca_icm_piece {
	void *va;
	dma_addr_t dma;
	size_t size;
};

struct hghca_icm_block {
	u32 num_pages;
	unsigned long index;
	u32 num_pieces;
	struct hghca_icm_piece pieces[];
};

static_assert(HGHCA_ICM_PIECES_MAX <= HGHCA_ICM_CHUNKS_MAX);
static_assert(HGHCA_ICM_PIECES_MAX <= HGHCA_ICM_CHUNK_PAGES_MASK);

static u64 hghca_icm_table_size(const struct hghca_icm_table *table)
{
	return round_up((u64)table->num_entries * table->entry_sz, HGHCA_ICM_PAGE_SIZE);
}

static void hghca_icm_block_free(struct hghca_dev *hdev, struct hghca_icm_block *block)
{
	u32 i;

	for (i = 0; i < block->num_pieces; i++)
		dma_free_coherent(hdev->bus.dev, block->pieces[i].size, block->pieces[i].va,
				  block->pieces[i].dma);
	kfree(block);
}

/* @size bytes, zeroed, in as few pieces as memory allows. */
static struct hghca_icm_block *hghca_icm_block_alloc(struct hghca_dev *hdev, size_t size)
{
	struct hghca_icm_block *block;
	size_t piece_sz = size;
	size_t left = size;

	block = kzalloc(struct_size(block, pieces, HGHCA_ICM_PIECES_MAX), GFP_KERNEL);
	if (!block)
		return NULL;

	while (left) {
		struct hghca_icm_piece *piece = &block->pieces[block->num_pieces];

		piece_sz = min(piece_sz, left);
		piece->va = dma_alloc_coherent(hdev->bus.dev, piece_sz, &piece->dma,
					       GFP_KERNEL | __GFP_NOWARN);
		if (!piece->va) {
			if (piece_sz <= HGHCA_ICM_PAGE_SIZE)
				goto err_free_block;
			piece_sz = roundup_pow_of_two(piece_sz) / 2;
			continue;
		}
		piece->size = piece_sz;
		left -= piece_sz;
		block->num_pieces++;
	}
	block->num_pages = size / HGHCA_ICM_PAGE_SIZE;
	return block;

err_free_block:
	hghca_icm_block_free(hdev, block);
	return NULL;
}

static int hghca_icm_block_map(struct hghca_dev *hdev, const struct hghca_icm_table *table,
			       const struct hghca_icm_block *block, u64 virt)
{
	struct hghca_mailbox *mailbox;
	struct hghca_icm_chunk *chunks;
	u32 i;
	int err;

	mailbox = hghca_mailbox_alloc(hdev, ALIGN(block->num_pieces, 2) * sizeof(*chunks));
	if (IS_ERR(mailbox))
		return PTR_ERR(mailbox);

	chunks = mailbox->buf;
	for (i = 0; i < block->num_pieces; i++) {
		const struct hghca_icm_piece *piece = &block->pieces[i];
		struct hghca_icm_chunk *chunk = &chunks[HGHCA_ICM_CHUNK_SLOT(i)];

		chunk->virt = cpu_to_be64(virt);
		chunk->page = cpu_to_be64(piece->dma | piece->size / HGHCA_ICM_PAGE_SIZE);
		virt += piece->size;
	}
	err = hghca_cmd_map_icm(hdev, table->space, mailbox, block->num_pieces);
	hghca_mailbox_free(hdev, mailbox);
	return err;
}

/* Allocate and map the block of a slot that has none. */
static int hghca_icm_slot_fill(struct hghca_dev *hdev, struct hghca_icm_table *table,
			       unsigned long index)
{
	u64 offset = (u64)index << HGHCA_ICM_BLOCK_SHIFT;
	struct hghca_icm_block *block;
	int err;

	block = hghca_icm_block_alloc(hdev, min_t(u64, HGHCA_ICM_BLOCK_SIZE,
						  hghca_icm_table_size(table) - offset));
	if (!block)
		return -ENOMEM;
	block->index = index;

	err = hghca_icm_block_map(hdev, table, block, table->base + offset);
	if (err) {
		hghca_icm_block_free(hdev, block);
		return err;
	}
	table->slots[index].block = block;
	return 0;
}

static int hghca_icm_slot_get_first(struct hghca_dev *hdev, struct hghca_icm_table *table,
				    unsigned long index)
{
	struct hghca_icm_slot *slot = &table->slots[index];
	int err = 0;

	mutex_lock(&table->lock);
	/* Another caller may have been the first. */
	if (refcount_inc_not_zero(&slot->users))
		goto out_unlock;
	if (!slot->block)
		err = hghca_icm_slot_fill(hdev, table, index);
	else if (slot->block == table->idle)
		WRITE_ONCE(table->idle, NULL);
	/* A user without the lock sees this after the device has the block: MAP_ICM has ended. */
	if (!err)
		refcount_set(&slot->users, 1);
out_unlock:
	mutex_unlock(&table->lock);
	return err;
}

static int hghca_icm_slot_get(struct hghca_dev *hdev, struct hghca_icm_table *table,
			      unsigned long index)
{
	if (refcount_inc_not_zero(&table->slots[index].users))
		return 0;
	return hghca_icm_slot_get_first(hdev, table, index);
}

/* Unmap and free the idle block, if there is one. */
static void hghca_icm_drop_idle(struct hghca_dev *hdev, struct hghca_icm_table *table)
{
	struct hghca_icm_block *block = table->idle;
	u64 virt;

	lockdep_assert_held(&table->lock);

	if (!block)
		return;
	WRITE_ONCE(table->idle, NULL);

	/* A block that stays mapped is kept for the next user or for hghca_icm_cleanup(). */
	virt = table->base + ((u64)block->index << HGHCA_ICM_BLOCK_SHIFT);
	if (hghca_cmd_unmap_icm(hdev, table->space, virt, block->num_pages))
		return;
	table->slots[block->index].block = NULL;
	hghca_icm_block_free(hdev, block);
}

static void hghca_icm_slot_put(struct hghca_dev *hdev, struct hghca_icm_table *table,
			       unsigned long index)
{
	struct hghca_icm_slot *slot = &table->slots[index];

	if (!refcount_dec_and_mutex_lock(&slot->users, &table->lock))
		return;
	hghca_icm_drop_idle(hdev, table);
	WRITE_ONCE(table->idle, slot->block);
	mutex_unlock(&table->lock);
}

static unsigned long hghca_icm_block_index(const struct hghca_icm_table *table, u32 entry)
{
	return ((u64)entry * table->entry_sz) >> HGHCA_ICM_BLOCK_SHIFT;
}

/**
 * hghca_icm_get - ensure that entries of a table have memory
 * @hdev: the device
 * @kind: the table
 * @first: first entry
 * @count: number of entries, not 0
 *
 * Return: 0, or a negative errno without a reference to any block.
 */
int hghca_icm_get(struct hghca_dev *hdev, enum hghca_icm_kind kind, u32 first, u32 count)
{
	struct hghca_icm_table *table = &hdev->icm[kind];
	unsigned long start, index, last;
	int err;

	if (WARN_ON_ONCE(!count || first >= table->num_entries ||
			 count > table->num_entries - first))
		return -EINVAL;

	start = hghca_icm_block_index(table, first);
	last = hghca_icm_block_index(table, first + count - 1);

	for (index = start; index <= last; index++) {
		err = hghca_icm_slot_get(hdev, table, index);
		if (err)
			goto err_put_slots;
	}
	return 0;

err_put_slots:
	while (index-- > start)
		hghca_icm_slot_put(hdev, table, index);
	return err;
}

/**
 * hghca_icm_put - undo hghca_icm_get()
 * @hdev: the device
 * @kind: the table
 * @first: first entry
 * @count: number of entries, as for hghca_icm_get()
 */
void hghca_icm_put(struct hghca_dev *hdev, enum hghca_icm_kind kind, u32 first, u32 count)
{
	struct hghca_icm_table *table = &hdev->icm[kind];
	unsigned long index, last;

	last = hghca_icm_block_index(table, first + count - 1);

	for (index = hghca_icm_block_index(table, first); index <= last; index++)
		hghca_icm_slot_put(hdev, table, index);
}

/**
 * hghca_icm_trim - free the idle blocks
 * @hdev: the device
 *
 * Context: may sleep; not in reclaim, because it waits for commands.
 */
void hghca_icm_trim(struct hghca_dev *hdev)
{
	unsigned int kind;

	for (kind = 0; kind < HGHCA_ICM_KINDS; kind++) {
		struct hghca_icm_table *table = &hdev->icm[kind];

		mutex_lock(&table->lock);
		hghca_icm_drop_idle(hdev, table);
		mutex_unlock(&table->lock);
	}
}

static void hghca_icm_table_cleanup(struct hghca_dev *hdev, struct hghca_icm_table *table)
{
	u32 i;

	for (i = 0; i < table->num_slots; i++)
		if (table->slots[i].block)
			hghca_icm_block_free(hdev, table->slots[i].block);
	kvfree(table->slots);
	table->slots = NULL;
	table->num_slots = 0;
	mutex_destroy(&table->lock);
}

/**
 * hghca_icm_init - initialize the tables, without memory for the device
 * @hdev: the device; hghca_profile_init() has set bases and sizes
 *
 * Return: 0, or -ENOMEM.
 */
int hghca_icm_init(struct hghca_dev *hdev)
{
	unsigned int kind;

	for (kind = 0; kind < HGHCA_ICM_KINDS; kind++) {
		struct hghca_icm_table *table = &hdev->icm[kind];
		u32 num_slots = DIV_ROUND_UP_ULL(hghca_icm_table_size(table),
						 HGHCA_ICM_BLOCK_SIZE);

		/* All zeros: no users, no block. */
		table->slots = kvcalloc(num_slots, sizeof(*table->slots), GFP_KERNEL);
		if (!table->slots && num_slots)
			goto err_cleanup;
		table->num_slots = num_slots;
		table->idle = NULL;
		mutex_init(&table->lock);
	}
	return 0;

err_cleanup:
	while (kind--)
		hghca_icm_table_cleanup(hdev, &hdev->icm[kind]);
	return -ENOMEM;
}

/**
 * hghca_icm_cleanup - free the remaining blocks
 * @hdev: the device, closed or reset: it does not use ICM
 */
void hghca_icm_cleanup(struct hghca_dev *hdev)
{
	unsigned int kind;

	for (kind = 0; kind < HGHCA_ICM_KINDS; kind++)
		hghca_icm_table_cleanup(hdev, &hdev->icm[kind]);
}
