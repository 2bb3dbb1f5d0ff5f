// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: keys and MTTs of memory regions and windows.
 *
 * A key is an MPT index and a tag.  The tag changes each time the index is reused, so
 * that a stale key does not give access to another region.  The tag of a new key is
 * never 0, so that no key equals HGHCA_INVALID_LKEY.
 *
 * With HGHCA_CAP_MEM_MGT the tag is in the low eight bits.  The owner of a key changes
 * them with REG_MR and BIND_MW, and 0 is allowed.  Therefore the index whose key could
 * become HGHCA_INVALID_LKEY is not used.  Without the capability the tag is above the
 * index.
 *
 * An idle key has the index, the MTTs and the ICM of a region that is gone.  The next
 * region with as many units of MTTs takes them.  A device keeps HGHCA_IDLE_KEYS of them,
 * until others take their place, numbers run out, or memory is short.
 */
#include <linux/genalloc.h>
#include <linux/vmalloc.h>

#include "hghca.h"

/* MTTs are allocated in units of 8: one cache line. */
#define HGHCA_MTT_UNIT_SHIFT	3
#define HGHCA_MTT_UNIT		BIT(HGHCA_MTT_UNIT_SHIFT)

/* A region with more MTTs takes much longer than what an idle key saves. */
#define HGHCA_IDLE_MTTS_MAX	512

/**
 * hghca_mr_init - initialize memory regions
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
	hghca_idle_keys_trim(hdev);
	/* A region that the device did not return keeps its MTTs. */
	if (gen_pool_avail(hdev->mtt_pool) == gen_pool_size(hdev->mtt_pool))
		gen_pool_destroy(hdev->mtt_pool);
	else
		dev_err(hdev->bus.dev, "translation entries are left over\n");
	vfree(hdev->mpt_tags);
}

static bool hghca_key_tag_is_low(const struct hghca_dev *hdev)
{
	return hdev->limits.caps & HGHCA_CAP_MEM_MGT;
}

/**
 * hghca_key_index - the MPT index of a key
 * @hdev: the device
 * @key: the key, of this device
 *
 * Return: the index.
 */
u32 hghca_key_index(const struct hghca_dev *hdev, u32 key)
{
	if (hghca_key_tag_is_low(hdev))
		return FIELD_GET(HGHCA_KEY_INDEX_MASK, key);
	return key & (hdev->limits.num_mpts - 1);
}

static u32 hghca_key_tag(const struct hghca_dev *hdev, u32 key)
{
	if (hghca_key_tag_is_low(hdev))
		return FIELD_GET(HGHCA_KEY_TAG_MASK, key);
	return key / hdev->limits.num_mpts;
}

static u32 hghca_key_last_tag(const struct hghca_dev *hdev)
{
	if (hghca_key_tag_is_low(hdev))
		return FIELD_MAX(HGHCA_KEY_TAG_MASK);
	return min_t(u32, U32_MAX / hdev->limits.num_mpts, U16_MAX);
}

static u32 hghca_key_make(const struct hghca_dev *hdev, u32 index, u32 tag)
{
	if (hghca_key_tag_is_low(hdev))
		return FIELD_PREP(HGHCA_KEY_INDEX_MASK, index) |
		       FIELD_PREP(HGHCA_KEY_TAG_MASK, tag);
	return tag * hdev->limits.num_mpts + index;
}

/* The caller owns the index: no other thread accesses its tag. */
static u32 hghca_key_next(struct hghca_dev *hdev, u32 index)
{
	u16 tag = hdev->mpt_tags[index];

	tag = tag >= hghca_key_last_tag(hdev) ? 1 : tag + 1;
	hdev->mpt_tags[index] = tag;
	return hghca_key_make(hdev, index, tag);
}

static int hghca_key_index_alloc(struct hghca_dev *hdev)
{
	return ida_alloc_range(&hdev->mpt_ida, hdev->limits.first_mpt,
			       hdev->limits.num_mpts - 1, GFP_KERNEL);
}

/**
 * hghca_key_alloc - allocate a key
 * @hdev: the device
 * @key: output
 *
 * Return: 0 or a negative errno.
 */
int hghca_key_alloc(struct hghca_dev *hdev, u32 *key)
{
	int index;

	index = hghca_key_index_alloc(hdev);
	if (index == -ENOSPC && hghca_idle_keys_trim(hdev))
		index = hghca_key_index_alloc(hdev);
	if (index < 0)
		return index == -ENOSPC ? -ENOMEM : index;

	*key = hghca_key_next(hdev, index);
	return 0;
}

/**
 * hghca_key_free - free a key
 * @hdev: the device, which has no region or window with it
 * @key: the key.  Its owner may have changed the tag; the next tag must differ from it.
 */
void hghca_key_free(struct hghca_dev *hdev, u32 key)
{
	u32 index = hghca_key_index(hdev, key);

	hdev->mpt_tags[index] = hghca_key_tag(hdev, key);
	ida_free(&hdev->mpt_ida, index);
}

/**
 * hghca_mtts_alloc - allocate MTTs, with their ICM
 * @hdev: the device
 * @mtts: output; their content is undefined until they are written or cleared
 * @count: number of MTTs
 *
 * Return: 0 or a negative errno.
 */
int hghca_mtts_alloc(struct hghca_dev *hdev, struct hghca_mtts *mtts, u64 count)
{
	unsigned long first;
	int err;

	if (!count || count > hdev->limits.num_mtts)
		return -ENOMEM;

	first = gen_pool_alloc(hdev->mtt_pool, count);
	if (!first && hghca_idle_keys_trim(hdev))
		first = gen_pool_alloc(hdev->mtt_pool, count);
	if (!first)
		return -ENOMEM;

	err = hghca_icm_get(hdev, HGHCA_ICM_MTT, first, count);
	if (err) {
		gen_pool_free(hdev->mtt_pool, first, count);
		return err;
	}
	mtts->first = first;
	mtts->count = count;
	return 0;
}

/**
 * hghca_mtts_free - free MTTs
 * @hdev: the device, which does not use them any more
 * @mtts: the MTTs; an empty run is ignored
 */
void hghca_mtts_free(struct hghca_dev *hdev, const struct hghca_mtts *mtts)
{
	if (!mtts->count)
		return;
	hghca_icm_put(hdev, HGHCA_ICM_MTT, mtts->first, mtts->count);
	gen_pool_free(hdev->mtt_pool, mtts->first, mtts->count);
}

/* MTTs are allocated in units: the last one may have some that its region did not use. */
static u32 hghca_idle_units(u64 num_mtts)
{
	return DIV_ROUND_UP_ULL(num_mtts, HGHCA_MTT_UNIT);
}

/**
 * hghca_idle_key_take - give a new region the key and the MTTs of one that is gone
 * @hdev: the device
 * @mr: the region; its key and MTTs are set, the content of the MTTs is undefined
 * @num_mtts: number of its MTTs, may be 0
 *
 * Return: whether there was an idle key with as many units of MTTs.
 */
bool hghca_idle_key_take(struct hghca_dev *hdev, struct hghca_hwmr *mr, u64 num_mtts)
{
	struct hghca_idle_keys *idle = &hdev->idle_keys;
	struct hghca_idle_key key = {};
	bool found = false;
	u32 units, i;

	if (num_mtts > HGHCA_IDLE_MTTS_MAX || !READ_ONCE(idle->count))
		return false;

	units = hghca_idle_units(num_mtts);
	spin_lock(&idle->lock);
	for (i = idle->count; i-- && !found;) {
		if (idle->keys[i].units != units)
			continue;
		found = true;
		key = idle->keys[i];
		WRITE_ONCE(idle->count, idle->count - 1);
		idle->keys[i] = idle->keys[idle->count];
	}
	spin_unlock(&idle->lock);
	if (!found)
		return false;

	mr->key = hghca_key_next(hdev, key.index);
	mr->mtts.first = key.first_mtt;
	mr->mtts.count = num_mtts;
	return true;
}

/* An idle key is gone: its index, its MTTs and their ICM are free. */
static void hghca_idle_key_free(struct hghca_dev *hdev, const struct hghca_idle_key *key)
{
	const struct hghca_mtts mtts = {
		.first = key->first_mtt,
		.count = key->units * HGHCA_MTT_UNIT,
	};

	hghca_mtts_free(hdev, &mtts);
	hghca_icm_put(hdev, HGHCA_ICM_MPT, key->index, 1);
	ida_free(&hdev->mpt_ida, key->index);
}

/**
 * hghca_idle_key_put - keep the key and the MTTs of a region that is gone
 * @hdev: the device, which has no region with the key
 * @mr: what was the region, with the ICM of its MPT and its MTTs
 *
 * Context: may sleep.
 *
 * Return: whether they are kept; otherwise the caller frees them.
 */
bool hghca_idle_key_put(struct hghca_dev *hdev, const struct hghca_hwmr *mr)
{
	struct hghca_idle_keys *idle = &hdev->idle_keys;
	const struct hghca_idle_key key = {
		.index = hghca_key_index(hdev, mr->key),
		.first_mtt = mr->mtts.first,
		.units = hghca_idle_units(mr->mtts.count),
	};
	struct hghca_idle_key other;
	bool full;

	if (mr->mtts.count > HGHCA_IDLE_MTTS_MAX)
		return false;

	/* As for hghca_key_free(). */
	hdev->mpt_tags[key.index] = hghca_key_tag(hdev, mr->key);
	spin_lock(&idle->lock);
	full = idle->count == HGHCA_IDLE_KEYS;
	if (full) {
		idle->turn = (idle->turn + 1) % HGHCA_IDLE_KEYS;
		other = idle->keys[idle->turn];
		idle->keys[idle->turn] = key;
	} else {
		idle->keys[idle->count] = key;
		WRITE_ONCE(idle->count, idle->count + 1);
	}
	spin_unlock(&idle->lock);
	if (full)
		hghca_idle_key_free(hdev, &other);
	return true;
}

/**
 * hghca_idle_keys_trim - free the idle keys
 * @hdev: the device
 *
 * Context: may sleep; not in reclaim, because it waits for commands.
 *
 * Return: whether there was one.
 */
bool hghca_idle_keys_trim(struct hghca_dev *hdev)
{
	struct hghca_idle_keys *idle = &hdev->idle_keys;
	struct hghca_idle_key keys[HGHCA_IDLE_KEYS];
	u32 count, i;

	spin_lock(&idle->lock);
	count = idle->count;
	memcpy(keys, idle->keys, sizeof(keys));
	WRITE_ONCE(idle->count, 0);
	spin_unlock(&idle->lock);

	for (i = 0; i < count; i++)
		hghca_idle_key_free(hdev, &keys[i]);
	return count;
}
