// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: the memory of regions of all memory (document 4.23).
 *
 * The MTTs of such a region are a tree of three levels, each table a run of 4096:
 *
 *	root			the region's own MTTs
 *	  struct hghca_odp_table	2^24 pages each
 *	    struct hghca_odp_chunk	2^12 pages each, and a umem that follows them
 *
 * A chunk is created with the first page that is needed, together with its table.  It is
 * freed when it has no pages and no thread maps any.  Thus the size of a region is
 * proportional to its use.  If no MTTs or no memory are left for a chunk, the page
 * cannot be mapped.
 *
 * The lock of the tree is held while chunks and tables are created and freed, and memory
 * is allocated under it.  The notifier of a chunk runs during memory reclaim and does not
 * take the lock.  It marks a chunk that has lost its last page, and work frees the chunk.
 *
 * A chunk is linked in the device last when it is created, and unlinked first when it is
 * freed.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "odp.h"

#define HGHCA_ODP_CHUNK_SHIFT	(PAGE_SHIFT + HGHCA_MTT_TABLE_SHIFT)
#define HGHCA_ODP_TABLE_SHIFT	(HGHCA_ODP_CHUNK_SHIFT + HGHCA_MTT_TABLE_SHIFT)
#define HGHCA_ODP_TREE_SHIFT	(HGHCA_ODP_TABLE_SHIFT + HGHCA_MTT_TABLE_SHIFT)
#define HGHCA_ODP_EMPTY		XA_MARK_0

static_assert(HGHCA_MTT_TREE_LEVELS == 3);

/**
 * struct hghca_odp_table - a table of a tree between its root and chunks
 * @mtts: its entries
 * @chunks: number of chunks that it refers to
 */
struct hghca_odp_table {
	struct hghca_mtts mtts;
	u32 chunks;
};

/**
 * struct hghca_odp_tree - the memory of a region of all memory
 * @hdev: the device
 * @mr: the region, whose MTTs are the root
 * @ops: operations of the umems of chunks
 * @umem: without memory; it identifies the process of the chunks
 * @lock: see above
 * @tables: by address >> HGHCA_ODP_TABLE_SHIFT
 * @chunks: by address >> HGHCA_ODP_CHUNK_SHIFT; HGHCA_ODP_EMPTY marks those to check
 * @trim: frees marked chunks without pages
 */
struct hghca_odp_tree {
	struct hghca_dev *hdev;
	struct hghca_mr *mr;
	const struct mmu_interval_notifier_ops *ops;
	struct ib_umem_odp *umem;
	struct mutex lock;		/* see above */
	struct xarray tables;
	struct xarray chunks;
	struct work_struct trim;
};

static unsigned long hghca_odp_chunk_index(const struct hghca_odp_chunk *chunk)
{
	return chunk->umem->umem.address >> HGHCA_ODP_CHUNK_SHIFT;
}

/* ------------------------------------------------------------------ */
/* Tables                                                               */

/* Allocate a run of absent MTTs. */
static int hghca_odp_run_alloc(struct hghca_dev *hdev, struct hghca_mtts *mtts)
{
	int err;

	err = hghca_mtts_alloc(hdev, mtts, HGHCA_MTT_TABLE_ENTRIES);
	if (err)
		return err;

	/* The MTTs may have entries of a former region. */
	err = hghca_mtts_clear(hdev, mtts, 0, mtts->count);
	if (err)
		hghca_mtts_free(hdev, mtts);
	return err;
}

/* Let entry @index of @from, modulo its size, refer to @to. */
static int hghca_odp_link(struct hghca_dev *hdev, const struct hghca_mtts *from,
			  unsigned long index, const struct hghca_mtts *to)
{
	u64 entry = (u64)to->first << HGHCA_MTT_TABLE_INDEX_SHIFT;
	struct hghca_mtt_mailbox *mtts;
	struct hghca_mailbox *mailbox;
	int err;

	mailbox = hghca_mailbox_alloc(hdev, HGHCA_MAILBOX_SIZE);
	if (IS_ERR(mailbox))
		return PTR_ERR(mailbox);

	mtts = mailbox->buf;
	mtts->start_index = cpu_to_be64(from->first + index % HGHCA_MTT_TABLE_ENTRIES);
	mtts->entry[HGHCA_MTT_SLOT(0)] = cpu_to_be64(entry);
	err = hghca_cmd_write_mtt(hdev, mailbox, 1);
	hghca_mailbox_free(hdev, mailbox);
	return err;
}

/* Undo hghca_odp_link().  Does not allocate memory. */
static int hghca_odp_unlink(struct hghca_dev *hdev, const struct hghca_mtts *from,
			    unsigned long index)
{
	return hghca_mtts_clear(hdev, from, index % HGHCA_MTT_TABLE_ENTRIES, 1);
}

static void hghca_odp_table_free(struct hghca_odp_tree *tree, struct hghca_odp_table *table)
{
	hghca_mtts_free(tree->hdev, &table->mtts);
	kfree(table);
}

static struct hghca_odp_table *hghca_odp_table_create(struct hghca_odp_tree *tree,
						      unsigned long index)
{
	struct hghca_odp_table *table = kzalloc_obj(*table);
	int err;

	if (!table)
		return ERR_PTR(-ENOMEM);

	err = hghca_odp_run_alloc(tree->hdev, &table->mtts);
	if (err)
		goto err_free_table;

	err = xa_err(xa_store(&tree->tables, index, table, GFP_KERNEL));
	if (err)
		goto err_free_mtts;

	err = hghca_odp_link(tree->hdev, &tree->mr->hw.mtts, index, &table->mtts);
	if (err)
		goto err_erase;
	return table;

err_erase:
	xa_erase(&tree->tables, index);
err_free_mtts:
	hghca_mtts_free(tree->hdev, &table->mtts);
err_free_table:
	kfree(table);
	return ERR_PTR(err);
}

static struct hghca_odp_table *hghca_odp_table_get(struct hghca_odp_tree *tree,
						   unsigned long index)
{
	struct hghca_odp_table *table = xa_load(&tree->tables, index);

	return table ?: hghca_odp_table_create(tree, index);
}

/* A table that the device keeps stays, and serves the next chunk. */
static void hghca_odp_table_put(struct hghca_odp_tree *tree, struct hghca_odp_table *table,
				unsigned long index)
{
	if (table->chunks || hghca_odp_unlink(tree->hdev, &tree->mr->hw.mtts, index))
		return;
	xa_erase(&tree->tables, index);
	hghca_odp_table_free(tree, table);
}

/* ------------------------------------------------------------------ */
/* Chunks                                                               */

/* Free a chunk that the device cannot access.  After return its notifier does not run. */
static void hghca_odp_chunk_free(struct hghca_odp_tree *tree, struct hghca_odp_chunk *chunk)
{
	ib_umem_odp_release(chunk->umem);
	hghca_mtts_free(tree->hdev, &chunk->mtts);
	kfree(chunk);
}

/* Allocate a chunk with MTTs and umem. */
static struct hghca_odp_chunk *hghca_odp_chunk_alloc(struct hghca_odp_tree *tree,
						     unsigned long index)
{
	struct hghca_odp_chunk *chunk = kzalloc_obj(*chunk);
	int err;

	if (!chunk)
		return ERR_PTR(-ENOMEM);

	chunk->odp = tree->mr->odp;
	err = hghca_odp_run_alloc(tree->hdev, &chunk->mtts);
	if (err)
		goto err_free_chunk;

	chunk->umem = ib_umem_odp_alloc_child(tree->umem, index << HGHCA_ODP_CHUNK_SHIFT,
					      BIT_ULL(HGHCA_ODP_CHUNK_SHIFT), tree->ops);
	if (IS_ERR(chunk->umem)) {
		err = PTR_ERR(chunk->umem);
		goto err_free_mtts;
	}
	/* Before the chunk has pages, the notifier does not read this. */
	chunk->umem->private = chunk;
	return chunk;

err_free_mtts:
	hghca_mtts_free(tree->hdev, &chunk->mtts);
err_free_chunk:
	kfree(chunk);
	return ERR_PTR(err);
}

static struct hghca_odp_chunk *hghca_odp_chunk_create(struct hghca_odp_tree *tree,
						      unsigned long index)
{
	unsigned long table_index = index >> HGHCA_MTT_TABLE_SHIFT;
	struct hghca_odp_chunk *chunk;
	struct hghca_odp_table *table;
	int err;

	table = hghca_odp_table_get(tree, table_index);
	if (IS_ERR(table))
		return ERR_CAST(table);

	chunk = hghca_odp_chunk_alloc(tree, index);
	if (IS_ERR(chunk)) {
		err = PTR_ERR(chunk);
		goto err_put_table;
	}

	err = xa_err(xa_store(&tree->chunks, index, chunk, GFP_KERNEL));
	if (err)
		goto err_free_chunk;

	err = hghca_odp_link(tree->hdev, &table->mtts, index, &chunk->mtts);
	if (err)
		goto err_erase;
	chunk->table = table;
	table->chunks++;
	return chunk;

err_erase:
	xa_erase(&tree->chunks, index);
err_free_chunk:
	hghca_odp_chunk_free(tree, chunk);
err_put_table:
	hghca_odp_table_put(tree, table, table_index);
	return ERR_PTR(err);
}

static bool hghca_odp_chunk_has_pages(const struct hghca_odp_chunk *chunk)
{
	bool pages;

	mutex_lock(&chunk->umem->umem_mutex);
	pages = chunk->umem->npages;
	mutex_unlock(&chunk->umem->umem_mutex);
	return pages;
}

/*
 * Free a chunk without users and pages: without users, pages are not mapped to it.  A chunk
 * that the device keeps is freed with the region.
 */
static void hghca_odp_chunk_drop(struct hghca_odp_tree *tree, struct hghca_odp_chunk *chunk)
{
	unsigned long index = hghca_odp_chunk_index(chunk);
	struct hghca_odp_table *table = chunk->table;

	if (chunk->users || hghca_odp_chunk_has_pages(chunk))
		return;
	if (hghca_odp_unlink(tree->hdev, &table->mtts, index))
		return;
	xa_erase(&tree->chunks, index);
	hghca_odp_chunk_free(tree, chunk);
	table->chunks--;
	hghca_odp_table_put(tree, table, index >> HGHCA_MTT_TABLE_SHIFT);
}

/**
 * hghca_odp_tree_get - get the chunk of an address
 * @tree: the tree of the region
 * @address: address in the region
 *
 * Return: the chunk, to be released by hghca_odp_tree_put(); or an ERR_PTR(): -ENOMEM,
 * -EFAULT if the process has exited, or an error of a command.
 */
struct hghca_odp_chunk *hghca_odp_tree_get(struct hghca_odp_tree *tree, u64 address)
{
	unsigned long index = address >> HGHCA_ODP_CHUNK_SHIFT;
	struct hghca_odp_chunk *chunk;

	mutex_lock(&tree->lock);
	chunk = xa_load(&tree->chunks, index);
	if (!chunk)
		chunk = hghca_odp_chunk_create(tree, index);
	if (!IS_ERR(chunk))
		chunk->users++;
	mutex_unlock(&tree->lock);
	return chunk;
}

/**
 * hghca_odp_tree_put - undo hghca_odp_tree_get()
 * @tree: the tree
 * @chunk: the chunk, which is freed if it has no pages
 */
void hghca_odp_tree_put(struct hghca_odp_tree *tree, struct hghca_odp_chunk *chunk)
{
	mutex_lock(&tree->lock);
	chunk->users--;
	hghca_odp_chunk_drop(tree, chunk);
	mutex_unlock(&tree->lock);
}

/**
 * hghca_odp_tree_emptied - mark a chunk that has lost its last page
 * @tree: the tree
 * @chunk: the chunk; the mutex of its umem is held
 *
 * Context: its notifier; does not allocate memory.
 */
void hghca_odp_tree_emptied(struct hghca_odp_tree *tree, const struct hghca_odp_chunk *chunk)
{
	xa_set_mark(&tree->chunks, hghca_odp_chunk_index(chunk), HGHCA_ODP_EMPTY);
	queue_work(tree->hdev->odp_wq, &tree->trim);
}

static void hghca_odp_tree_trim(struct work_struct *work)
{
	struct hghca_odp_tree *tree = container_of(work, struct hghca_odp_tree, trim);
	struct hghca_odp_chunk *chunk;
	unsigned long index;

	mutex_lock(&tree->lock);
	xa_for_each_marked(&tree->chunks, index, chunk, HGHCA_ODP_EMPTY) {
		xa_clear_mark(&tree->chunks, index, HGHCA_ODP_EMPTY);
		hghca_odp_chunk_drop(tree, chunk);
		cond_resched();
	}
	mutex_unlock(&tree->lock);
}

/* ------------------------------------------------------------------ */
/* Trees                                                                */

/**
 * hghca_odp_tree_length - the length of a region of all memory of a process
 *
 * Return: bytes from address 0 on.
 */
u64 hghca_odp_tree_length(void)
{
	return min_t(u64, TASK_SIZE, BIT_ULL(HGHCA_ODP_TREE_SHIFT));
}

/**
 * hghca_odp_tree_create - create the tree of a region of all memory of this process
 * @hdev: the device
 * @mr: the region, with its &struct hghca_odp; its MTTs, all absent, must exist before the
 *	first hghca_odp_tree_get()
 * @ib_access: its access rights
 * @ops: notifier of invalidations of the memory of the process
 *
 * Return: 0 with the tree and the umem of @mr set; or a negative errno: -EINVAL for huge
 * pages, or without a process.
 */
int hghca_odp_tree_create(struct hghca_dev *hdev, struct hghca_mr *mr, int ib_access,
			  const struct mmu_interval_notifier_ops *ops)
{
	struct hghca_odp_tree *tree;
	int err;

	if (!current->mm)
		return -EINVAL;
	tree = kzalloc_obj(*tree);
	if (!tree)
		return -ENOMEM;

	tree->umem = ib_umem_odp_alloc_implicit(&hdev->ibdev, ib_access);
	if (IS_ERR(tree->umem)) {
		err = PTR_ERR(tree->umem);
		goto err_free_tree;
	}
	/* The notifier of a umem with memory holds the mm.  This umem has no notifier. */
	mmgrab(tree->umem->umem.owning_mm);

	tree->hdev = hdev;
	tree->mr = mr;
	tree->ops = ops;
	mutex_init(&tree->lock);
	xa_init(&tree->tables);
	xa_init(&tree->chunks);
	INIT_WORK(&tree->trim, hghca_odp_tree_trim);
	mr->odp->tree = tree;
	mr->umem = &tree->umem->umem;
	return 0;

err_free_tree:
	kfree(tree);
	return err;
}

/**
 * hghca_odp_tree_destroy - free the tree
 * @tree: the tree; the device does not have its region, and no code uses it
 */
void hghca_odp_tree_destroy(struct hghca_odp_tree *tree)
{
	struct mm_struct *mm = tree->umem->umem.owning_mm;
	struct hghca_odp_table *table;
	struct hghca_odp_chunk *chunk;
	unsigned long index;

	mutex_lock(&tree->lock);
	xa_for_each(&tree->chunks, index, chunk) {
		xa_erase(&tree->chunks, index);
		hghca_odp_chunk_free(tree, chunk);
		cond_resched();
	}
	xa_for_each(&tree->tables, index, table) {
		xa_erase(&tree->tables, index);
		hghca_odp_table_free(tree, table);
	}
	mutex_unlock(&tree->lock);

	/* No notifier is left that could queue it. */
	cancel_work_sync(&tree->trim);
	xa_destroy(&tree->chunks);
	xa_destroy(&tree->tables);
	mutex_destroy(&tree->lock);
	ib_umem_odp_release(tree->umem);
	mmdrop(mm);
	kfree(tree);
}
