// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of idle keys: the next region gets the index and the MTTs of one that is gone,
 * if it has as many units of eight MTTs, and nothing is short because of them.
 */
#include <linux/genalloc.h>

#include "fake.h"

/* Idle keys of a device. */
#define KEYS_IDLE	8

static int keys_create(struct fake *fake, struct hghca_hwmr *mr, u32 num_mtts)
{
	const struct hghca_hwmr_attr attr = {
		.kind = HGHCA_HWMR_FAST_REG,
		.pdn = 1,
		.page_shift = 12,
	};

	return hghca_hwmr_create(fake->hdev, mr, &attr, num_mtts);
}

static const struct keys_pair {
	const char *name;
	u32 before;
	u32 after;
	bool kept;
	bool reused;
} keys_pairs[] = {
	{ "no MTTs, no MTTs", 0, 0, true, true },
	{ "1 MTT, 8 MTTs", 1, 8, true, true },
	{ "16 MTTs, 9 MTTs", 16, 9, true, true },
	{ "512 MTTs, 505 MTTs", 512, 505, true, true },
	{ "no MTTs, 1 MTT", 0, 1, true, false },
	{ "8 MTTs, 9 MTTs", 8, 9, true, false },
	{ "9 MTTs, 8 MTTs", 9, 8, true, false },
	{ "513 MTTs, 513 MTTs", 513, 513, false, false },
};

KUNIT_ARRAY_PARAM_DESC(keys_pair, keys_pairs, name);

static void keys_next_region(struct kunit *test)
{
	const struct keys_pair *param = test->param_value;
	struct fake *fake = test->priv;
	struct hghca_dev *hdev = fake->hdev;
	struct hghca_hwmr first, second;
	u32 key, mtt;

	KUNIT_ASSERT_FALSE(test, fake_has_keys(hdev));
	KUNIT_ASSERT_EQ(test, 0, keys_create(fake, &first, param->before));
	key = first.key;
	mtt = first.mtts.first;
	KUNIT_EXPECT_EQ(test, 0, hghca_hwmr_destroy(hdev, &first));
	KUNIT_EXPECT_EQ(test, !param->kept, ida_is_empty(&hdev->mpt_ida));

	KUNIT_ASSERT_EQ(test, 0, keys_create(fake, &second, param->after));
	KUNIT_EXPECT_EQ(test, param->after, second.mtts.count);
	KUNIT_EXPECT_NE(test, key, second.key);
	/* Of two keys, the second has another index, unless the first is there no more. */
	KUNIT_EXPECT_EQ(test, param->reused || !param->kept,
			hghca_key_index(hdev, key) == hghca_key_index(hdev, second.key));
	if (param->reused)
		KUNIT_EXPECT_EQ(test, mtt, second.mtts.first);
	KUNIT_EXPECT_EQ(test, 0, hghca_hwmr_destroy(hdev, &second));
	KUNIT_EXPECT_FALSE(test, fake_has_keys(hdev));
}

/* As many regions as there are MTTs of different sizes: the last ones to go leave idle keys. */
static void keys_full(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct hghca_dev *hdev = fake->hdev;
	size_t mtts = fake_free_mtts(hdev);
	struct hghca_hwmr mr[KEYS_IDLE + 3], again;
	u32 last, i;

	for (i = 0; i < ARRAY_SIZE(mr); i++)
		KUNIT_ASSERT_EQ(test, 0, keys_create(fake, &mr[i], 8 * (i + 1)));
	last = mr[i - 1].mtts.first;
	for (i = 0; i < ARRAY_SIZE(mr); i++)
		KUNIT_EXPECT_EQ(test, 0, hghca_hwmr_destroy(hdev, &mr[i]));
	KUNIT_EXPECT_EQ(test, KEYS_IDLE, fake_icm_users(hdev, HGHCA_ICM_MPT));

	/* That of the last region is among them. */
	KUNIT_ASSERT_EQ(test, 0, keys_create(fake, &again, 8 * ARRAY_SIZE(mr)));
	KUNIT_EXPECT_EQ(test, last, again.mtts.first);
	KUNIT_EXPECT_EQ(test, KEYS_IDLE, fake_icm_users(hdev, HGHCA_ICM_MPT));
	KUNIT_EXPECT_EQ(test, 0, hghca_hwmr_destroy(hdev, &again));

	fake_trim(hdev);
	KUNIT_EXPECT_EQ(test, 0, fake_icm_blocks(hdev, HGHCA_ICM_MPT));
	KUNIT_EXPECT_EQ(test, 0, fake_icm_blocks(hdev, HGHCA_ICM_MTT));
	KUNIT_EXPECT_TRUE(test, ida_is_empty(&hdev->mpt_ida));
	KUNIT_EXPECT_EQ(test, mtts, gen_pool_avail(hdev->mtt_pool));
}

/* All indices are those of idle keys that do not fit: they are freed for regions that need them. */
static void keys_no_index(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct hghca_dev *hdev = fake->hdev;
	struct hghca_hwmr mr[KEYS_IDLE], one_more;
	u32 i;

	KUNIT_ASSERT_FALSE(test, fake_has_keys(hdev));
	hdev->limits.num_mpts = hdev->limits.first_mpt + KEYS_IDLE;
	for (i = 0; i < KEYS_IDLE; i++)
		KUNIT_ASSERT_EQ(test, 0, keys_create(fake, &mr[i], 1));
	for (i = 0; i < KEYS_IDLE; i++)
		KUNIT_EXPECT_EQ(test, 0, hghca_hwmr_destroy(hdev, &mr[i]));
	for (i = 0; i < KEYS_IDLE; i++)
		KUNIT_ASSERT_EQ(test, 0, keys_create(fake, &mr[i], 9));
	KUNIT_EXPECT_EQ(test, -ENOMEM, keys_create(fake, &one_more, 9));
	for (i = 0; i < KEYS_IDLE; i++)
		KUNIT_EXPECT_EQ(test, 0, hghca_hwmr_destroy(hdev, &mr[i]));
}

/* All MTTs are those of idle keys: they are freed for a region that needs them. */
static void keys_no_mtts(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct hghca_dev *hdev = fake->hdev;
	size_t rest = fake_free_mtts(hdev) - 8 * KEYS_IDLE;
	struct hghca_hwmr mr[KEYS_IDLE];
	unsigned long taken;
	u32 i;

	taken = gen_pool_alloc(hdev->mtt_pool, rest);
	KUNIT_ASSERT_NE(test, 0, taken);
	for (i = 0; i < KEYS_IDLE; i++)
		KUNIT_ASSERT_EQ(test, 0, keys_create(fake, &mr[i], 8));
	for (i = 0; i < KEYS_IDLE; i++)
		KUNIT_EXPECT_EQ(test, 0, hghca_hwmr_destroy(hdev, &mr[i]));
	KUNIT_EXPECT_EQ(test, 0, keys_create(fake, &mr[0], 8 * KEYS_IDLE));
	KUNIT_EXPECT_EQ(test, -ENOMEM, keys_create(fake, &mr[1], 1));
	KUNIT_EXPECT_EQ(test, 0, hghca_hwmr_destroy(hdev, &mr[0]));
	gen_pool_free(hdev->mtt_pool, taken, rest);
}

static struct kunit_case keys_cases[] = {
	KUNIT_CASE_PARAM(keys_next_region, keys_pair_gen_params),
	KUNIT_CASE(keys_full),
	KUNIT_CASE(keys_no_index),
	KUNIT_CASE(keys_no_mtts),
	{}
};

static struct kunit_suite keys_suite = {
	.name = "hghca_keys",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = fake_test_init,
	.test_cases = keys_cases,
};

kunit_test_suite(keys_suite);
