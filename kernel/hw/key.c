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
 */
#include <linux/genalloc.h>
#include <linux/vmalloc.h>

#include "hghca.h"

/* MTTs are allocated in units of 8: one cache line. */
#define HGHCA_MTT_UNIT_SHIFT	3
#define HGHCA_MTT_UNIT		BIT(HGHCA_MTT_UNIT_SHIFT)

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
	u16 tag;

	index = ida_alloc_range(&hdev->mpt_ida, hdev->limits.first_mpt,
				hdev->limits.num_mpts - 1, GFP_KERNEL);
	if (index < 0)
		return index == -ENOSPC ? -ENOMEM : index;

	/* The caller owns the index: no other thread accesses its tag. */
	tag = hdev->mpt_tags[index];
	tag = tag >= hghca_key_last_tag(hdev) ? 1 : tag + 1;
	hdev->mpt_tags[index] = tag;
	*key = hghca_key_make(hdev, index, tag);
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
