// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* JingZhao HCA: the shrinker, which frees what the driver keeps for the next object. */
#include <linux/shrinker.h>

#include "hghca.h"

/* Devices whose idle keys and blocks the shrinker frees. */
static LIST_HEAD(hghca_icm_devs);
static DEFINE_MUTEX(hghca_icm_devs_lock);
static struct shrinker *hghca_icm_shrinker;

static void hghca_icm_trim_all(struct work_struct *work)
{
	struct hghca_dev *hdev;

	mutex_lock(&hghca_icm_devs_lock);
	list_for_each_entry(hdev, &hghca_icm_devs, icm_node) {
		/* A block may have no other user than an idle key. */
		hghca_idle_keys_trim(hdev);
		hghca_icm_trim(hdev);
	}
	mutex_unlock(&hghca_icm_devs_lock);
}

static DECLARE_WORK(hghca_icm_trim_work, hghca_icm_trim_all);

/* An estimate: idle keys may be the only users of a block, or of several. */
static unsigned long hghca_icm_idle_pages(const struct hghca_dev *hdev)
{
	unsigned int blocks = !!READ_ONCE(hdev->idle_keys.count);
	unsigned int kind;

	for (kind = 0; kind < HGHCA_ICM_KINDS; kind++)
		blocks += !!READ_ONCE(hdev->icm[kind].idle);
	return blocks * (HGHCA_ICM_BLOCK_SIZE / PAGE_SIZE);
}

static unsigned long hghca_icm_count(struct shrinker *shrinker, struct shrink_control *sc)
{
	struct hghca_dev *hdev;
	unsigned long pages = 0;

	/* The holder may wait for memory. */
	if (!mutex_trylock(&hghca_icm_devs_lock))
		return 0;
	list_for_each_entry(hdev, &hghca_icm_devs, icm_node)
		pages += hghca_icm_idle_pages(hdev);
	mutex_unlock(&hghca_icm_devs_lock);
	return pages;
}

/* A command may take long, and reclaim does not wait for it. */
static unsigned long hghca_icm_scan(struct shrinker *shrinker, struct shrink_control *sc)
{
	schedule_work(&hghca_icm_trim_work);
	return SHRINK_STOP;
}

/**
 * hghca_icm_list - let the shrinker free the idle keys and blocks of a device
 * @hdev: the device, open
 */
void hghca_icm_list(struct hghca_dev *hdev)
{
	mutex_lock(&hghca_icm_devs_lock);
	list_add(&hdev->icm_node, &hghca_icm_devs);
	mutex_unlock(&hghca_icm_devs_lock);
}

/**
 * hghca_icm_unlist - undo hghca_icm_list()
 * @hdev: the device, which still takes commands
 */
void hghca_icm_unlist(struct hghca_dev *hdev)
{
	mutex_lock(&hghca_icm_devs_lock);
	list_del(&hdev->icm_node);
	mutex_unlock(&hghca_icm_devs_lock);
}

/**
 * hghca_icm_shrinker_init - register the shrinker, once for all devices
 *
 * Return: 0, or -ENOMEM.
 */
int hghca_icm_shrinker_init(void)
{
	hghca_icm_shrinker = shrinker_alloc(0, HGHCA_DRV_NAME "-icm");
	if (!hghca_icm_shrinker)
		return -ENOMEM;

	hghca_icm_shrinker->count_objects = hghca_icm_count;
	hghca_icm_shrinker->scan_objects = hghca_icm_scan;
	shrinker_register(hghca_icm_shrinker);
	return 0;
}

/**
 * hghca_icm_shrinker_exit - undo hghca_icm_shrinker_init(); no device is listed
 */
void hghca_icm_shrinker_exit(void)
{
	shrinker_free(hghca_icm_shrinker);
	cancel_work_sync(&hghca_icm_trim_work);
}
