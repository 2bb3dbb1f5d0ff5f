// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: partitions of users, to whose regions PART appends records (page of RSNIC,
 * 9.2 and 9.6).  uapi.c has their methods.
 *
 * A key is an index and a tag.  The tag changes each time the index is reused, so that a
 * stale key does not name another partition.  No key is 0.
 *
 * The device checks the R_Keys of the regions when it places records.  A partition therefore
 * keeps its PD, but not its regions.
 */
#include <linux/bits.h>
#include <linux/log2.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "verbs/verbs.h"

/* The part of a key that software chooses. */
#define HGHCA_PARTITION_TAG_MASK	HGHCA_MASK(31, 6)

static_assert(HGHCA_PARTITION_TAG_MASK == ~HGHCA_PARTITION_INDEX_MASK);
static_assert(HGHCA_PARTITIONS - 1 == HGHCA_PARTITION_INDEX_MASK);
static_assert(sizeof(struct hghca_partition) <= HGHCA_MAILBOX_SIZE);

static u32 hghca_partition_index(u32 key)
{
	return FIELD_GET(HGHCA_PARTITION_INDEX_MASK, key);
}

static int hghca_partition_key_alloc(struct hghca_dev *hdev, u32 *key)
{
	int index;
	u32 tag;

	index = ida_alloc_max(&hdev->partition_ida, HGHCA_PARTITIONS - 1, GFP_KERNEL);
	if (index < 0)
		return index;

	/* The caller owns the index: no other thread accesses its tag. */
	tag = hdev->partition_tags[index];
	tag = tag >= FIELD_MAX(HGHCA_PARTITION_TAG_MASK) ? 1 : tag + 1;
	hdev->partition_tags[index] = tag;
	*key = FIELD_PREP(HGHCA_PARTITION_INDEX_MASK, index) |
	       FIELD_PREP(HGHCA_PARTITION_TAG_MASK, tag);
	return 0;
}

static void hghca_partition_key_free(struct hghca_dev *hdev, u32 key)
{
	ida_free(&hdev->partition_ida, hghca_partition_index(key));
}

static bool hghca_partition_is_valid(const struct hghca_partition_desc *desc, u32 num_ranges)
{
	return !memchr_inv(desc->reserved, 0, sizeof(desc->reserved)) &&
	       desc->log_record >= HGHCA_PARTITION_LOG_MIN_RECORD &&
	       desc->log_record <= HGHCA_PARTITION_LOG_MAX_RECORD &&
	       desc->log_regions <= HGHCA_PARTITION_LOG_MAX_REGIONS &&
	       num_ranges == BIT(desc->log_regions) &&
	       is_power_of_2(desc->key_size) && desc->key_size <= sizeof(u64) &&
	       desc->key_offset + desc->key_size <= BIT(desc->log_record) &&
	       desc->key_shift + desc->log_regions <= BITS_PER_BYTE * desc->key_size;
}

/* Give a partition with a key to the device.  @desc and @ranges are valid. */
static int hghca_partition_start(struct hghca_dev *hdev, const struct hghca_user_partition *upart,
				 const struct hghca_partition_desc *desc,
				 const struct hghca_partition_range *ranges)
{
	u32 index = hghca_partition_index(upart->key);
	struct hghca_partition *partition;
	unsigned int i;
	int err;

	partition = kzalloc_obj(*partition);
	if (!partition)
		return -ENOMEM;

	partition->key = cpu_to_be32(upart->key);
	partition->pd = cpu_to_be32(to_hpd(upart->ibpd)->pdn);
	partition->log_record = desc->log_record;
	partition->log_regions = desc->log_regions;
	partition->key_offset = desc->key_offset;
	partition->key_size = desc->key_size;
	partition->key_shift = desc->key_shift;
	for (i = 0; i < BIT(desc->log_regions); i++) {
		partition->region[i].va = cpu_to_be64(ranges[i].addr);
		partition->region[i].rkey = cpu_to_be32(ranges[i].rkey);
		partition->region[i].length = cpu_to_be32(ranges[i].length);
	}

	err = hghca_cmd_sw2hw_part(hdev, index, partition);
	if (err)
		ibdev_dbg(&hdev->ibdev, "failed to create partition %u: %d\n", index, err);
	kfree(partition);
	return err;
}

/**
 * hghca_create_partition - create a partition
 * @ibpd: PD of its regions; the partition counts as one of its users
 * @desc: its records and their keys
 * @ranges: its regions
 * @num_ranges: number of @ranges
 *
 * Return: the partition, or an ERR_PTR(): -EOPNOTSUPP if the device has no partitions,
 * -EINVAL for a malformed description or if @num_ranges is not its number of regions,
 * -ENOSPC if all indices are in use, or an error of an allocation or a command.
 */
struct hghca_user_partition *hghca_create_partition(struct ib_pd *ibpd,
						    const struct hghca_partition_desc *desc,
						    const struct hghca_partition_range *ranges,
						    u32 num_ranges)
{
	struct hghca_dev *hdev = to_hdev(ibpd->device);
	struct hghca_user_partition *upart;
	int err;

	if (!(hdev->limits.caps & HGHCA_CAP_VENDOR_OPS))
		return ERR_PTR(-EOPNOTSUPP);
	if (!hghca_partition_is_valid(desc, num_ranges)) {
		ibdev_dbg(&hdev->ibdev,
			  "partition of 1 << %u regions, %u given, records 1 << %u, key %u+%u:%u\n",
			  desc->log_regions, num_ranges, desc->log_record, desc->key_offset,
			  desc->key_size, desc->key_shift);
		return ERR_PTR(-EINVAL);
	}

	upart = kzalloc_obj(*upart);
	if (!upart)
		return ERR_PTR(-ENOMEM);
	upart->ibpd = ibpd;
	upart->log_regions = desc->log_regions;

	err = hghca_partition_key_alloc(hdev, &upart->key);
	if (err)
		goto err_free;
	err = hghca_partition_start(hdev, upart, desc, ranges);
	if (err)
		goto err_free_key;
	atomic_inc(&ibpd->usecnt);
	return upart;

err_free_key:
	hghca_partition_key_free(hdev, upart->key);
err_free:
	kfree(upart);
	return ERR_PTR(err);
}

/**
 * hghca_destroy_partition - undo hghca_create_partition()
 * @upart: the partition; a device that does not end it is given up
 */
void hghca_destroy_partition(struct hghca_user_partition *upart)
{
	struct hghca_dev *hdev = to_hdev(upart->ibpd->device);
	u32 index = hghca_partition_index(upart->key);
	int err;

	err = hghca_cmd_hw2sw_part(hdev, index);
	if (err) {
		ibdev_err(&hdev->ibdev, "failed to end partition %u: %d\n", index, err);
		/* Its index and the number of its PD may be reused next. */
		hghca_dev_fail(hdev, "failed to end a partition");
	}
	hghca_partition_key_free(hdev, upart->key);
	atomic_dec(&upart->ibpd->usecnt);
	kfree(upart);
}

/**
 * hghca_query_partition - query how far the regions of a partition are filled
 * @upart: the partition
 * @filled: output: bytes, for each of its regions
 *
 * Return: 0, or an error of an allocation or a command.
 */
int hghca_query_partition(const struct hghca_user_partition *upart, u32 *filled)
{
	struct hghca_dev *hdev = to_hdev(upart->ibpd->device);
	u32 index = hghca_partition_index(upart->key);
	struct hghca_partition *partition;
	unsigned int i;
	int err;

	partition = kmalloc_obj(*partition);
	if (!partition)
		return -ENOMEM;

	err = hghca_cmd_query_part(hdev, index, partition);
	if (err) {
		ibdev_dbg(&hdev->ibdev, "failed to query partition %u: %d\n", index, err);
		goto out_free;
	}
	for (i = 0; i < BIT(upart->log_regions); i++)
		filled[i] = be32_to_cpu(partition->region[i].filled);
out_free:
	kfree(partition);
	return err;
}
