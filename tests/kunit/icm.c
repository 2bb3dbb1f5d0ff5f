// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of the memory lent to the device: when blocks come and go, and
 * that MAP_ICM and UNMAP_ICM say so (interface document, 4.4).  Of each table the
 * block that was the last to lose its users stays, until hghca_icm_trim().
 *
 * Addresses follow from the limits of 4.1: QPC 2048 bytes x 65,536 at 0, CQC
 * 128 x 131,072, EQC 64 x 64 and SRQC 128 x 65,536 behind it; MPT 64 x 262,144 (the driver uses no
 * more) at 0, MTT 8 x 1,048,576 behind it. A block has 256 KiB.
 */
#include "fake.h"

#define ICM_QPC_BASE	0x0
#define ICM_CQC_BASE	0x8000000
#define ICM_EQC_BASE	0x9000000
#define ICM_SRQC_BASE	0x9040000
#define ICM_MPT_BASE	0x0
#define ICM_MTT_BASE	0x2000000

#define ICM_QPS_A_BLOCK	128

/* The pages a MAP_ICM hands over from address @virt on, and that they are zeroed. */
static u32 icm_mapped_pages(struct kunit *test, const struct fake_command *map, u64 virt)
{
	u32 pages = 0;
	u32 i;

	for (i = 0; i < map->in_modifier; i++) {
		/* 16 bytes a chunk, pairs high to low. */
		const u8 *chunk = map->mailbox + 16 * (i ^ 1);
		u64 page = be64_at(chunk, 8);

		KUNIT_EXPECT_EQ(test, virt + pages * 4096ULL, be64_at(chunk, 0));
		KUNIT_EXPECT_NULL(test, memchr_inv(fake_memory(page & ~0xfffULL), 0,
						   (page & 0xfff) * 4096));
		pages += page & 0xfff;
	}
	return pages;
}

static void icm_expect_map(struct kunit *test, struct fake *fake, u32 number, u8 space, u64 virt,
			   u32 pages)
{
	struct fake_command *map = fake_nth(fake, number);

	KUNIT_ASSERT_NOT_NULL(test, map);
	KUNIT_EXPECT_EQ(test, 0xffa, map->op);
	KUNIT_EXPECT_EQ(test, space, map->op_modifier);
	KUNIT_EXPECT_EQ(test, pages, icm_mapped_pages(test, map, virt));
}

static void icm_expect_unmap(struct kunit *test, struct fake *fake, u32 number, u8 space,
			     u64 virt, u32 pages)
{
	struct fake_command *unmap = fake_nth(fake, number);

	KUNIT_ASSERT_NOT_NULL(test, unmap);
	KUNIT_EXPECT_EQ(test, 0xff9, unmap->op);
	KUNIT_EXPECT_EQ(test, space, unmap->op_modifier);
	KUNIT_EXPECT_EQ(test, virt, unmap->in_param);
	KUNIT_EXPECT_EQ(test, pages, unmap->in_modifier);
}

/* ------------------------------------------------------------------ */

static const struct icm_range {
	const char *name;
	enum hghca_icm_kind kind;
	u32 first;
	u32 count;
	u8 space;
	u64 virt;	/* of the first block */
	u32 blocks;
	u32 pages;	/* a block */
} icm_ranges[] = {
	{ "QPC, the first", HGHCA_ICM_QPC, 0, 1, 1, ICM_QPC_BASE, 1, 64 },
	{ "QPC, the last of a block", HGHCA_ICM_QPC, 127, 1, 1, ICM_QPC_BASE, 1, 64 },
	{ "QPC, the first of the next block", HGHCA_ICM_QPC, 128, 1, 1, 0x40000, 1, 64 },
	{ "QPC, the last", HGHCA_ICM_QPC, 65535, 1, 1, 0x7fc0000, 1, 64 },
	{ "QPC, a whole block", HGHCA_ICM_QPC, 128, 128, 1, 0x40000, 1, 64 },
	{ "QPC, across two blocks", HGHCA_ICM_QPC, 127, 2, 1, ICM_QPC_BASE, 2, 64 },
	{ "QPC, across three blocks", HGHCA_ICM_QPC, 127, 130, 1, ICM_QPC_BASE, 3, 64 },
	{ "CQC, the first", HGHCA_ICM_CQC, 1, 1, 1, ICM_CQC_BASE, 1, 64 },
	{ "CQC, the last", HGHCA_ICM_CQC, 131071, 1, 1, 0x8fc0000, 1, 64 },
	{ "EQC, a table smaller than a block", HGHCA_ICM_EQC, 1, 1, 1, ICM_EQC_BASE, 1, 1 },
	{ "EQC, the last", HGHCA_ICM_EQC, 63, 1, 1, ICM_EQC_BASE, 1, 1 },
	{ "SRQC, the first", HGHCA_ICM_SRQC, 1, 1, 1, ICM_SRQC_BASE, 1, 64 },
	{ "SRQC, the last", HGHCA_ICM_SRQC, 65535, 1, 1, 0x9800000, 1, 64 },
	{ "MPT, the first", HGHCA_ICM_MPT, 1, 1, 2, ICM_MPT_BASE, 1, 64 },
	{ "MPT, the last", HGHCA_ICM_MPT, 524287, 1, 2, 0x1fc0000, 1, 64 },
	{ "MTT, the first", HGHCA_ICM_MTT, 8, 1, 2, ICM_MTT_BASE, 1, 64 },
	{ "MTT, across two blocks", HGHCA_ICM_MTT, 32767, 2, 2, ICM_MTT_BASE, 2, 64 },
	{ "MTT, five blocks", HGHCA_ICM_MTT, 40000, 4 * 32768, 2, 0x2040000, 5, 64 },
	{ "MTT, the last", HGHCA_ICM_MTT, 1048575, 1, 2, 0x27c0000, 1, 64 },
};

static void icm_range_name(const struct icm_range *range, char *desc)
{
	strscpy(desc, range->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(icm_range, icm_ranges, icm_range_name);

/* The first user maps, in order; the last unmaps all but the last block, which stays idle. */
static void icm_get_and_put(struct kunit *test)
{
	const struct icm_range *range = test->param_value;
	struct fake *fake = test->priv;
	struct hghca_dev *hdev = fake->hdev;
	u32 mark = fake_mark(fake);
	u32 i;

	KUNIT_ASSERT_EQ(test, 0, hghca_icm_get(hdev, range->kind, range->first, range->count));
	KUNIT_EXPECT_EQ(test, mark + range->blocks, fake_mark(fake));
	for (i = 0; i < range->blocks; i++)
		icm_expect_map(test, fake, mark + i, range->space, range->virt + i * 0x40000ULL,
			       range->pages);
	KUNIT_EXPECT_EQ(test, range->blocks, fake_icm_users(hdev, range->kind));

	mark = fake_mark(fake);
	hghca_icm_put(hdev, range->kind, range->first, range->count);
	KUNIT_EXPECT_EQ(test, mark + range->blocks - 1, fake_mark(fake));
	hghca_icm_trim(hdev);
	KUNIT_EXPECT_EQ(test, mark + range->blocks, fake_mark(fake));
	for (i = 0; i < range->blocks; i++)
		icm_expect_unmap(test, fake, mark + i, range->space,
				 range->virt + i * 0x40000ULL, range->pages);
	KUNIT_EXPECT_EQ(test, 0, fake_icm_blocks(hdev, range->kind));
}

/* A block lives from its first user to its last, whichever that is. */
static void icm_shared_block(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct hghca_dev *hdev = fake->hdev;
	u32 mark = fake_mark(fake);

	KUNIT_ASSERT_EQ(test, 0, hghca_icm_get(hdev, HGHCA_ICM_QPC, 8, 1));
	KUNIT_ASSERT_EQ(test, 0, hghca_icm_get(hdev, HGHCA_ICM_QPC, 9, 1));
	KUNIT_ASSERT_EQ(test, 0, hghca_icm_get(hdev, HGHCA_ICM_QPC, 9, 1));
	KUNIT_EXPECT_EQ(test, mark + 1, fake_mark(fake));
	KUNIT_EXPECT_EQ(test, 3, fake_icm_users(hdev, HGHCA_ICM_QPC));

	hghca_icm_put(hdev, HGHCA_ICM_QPC, 8, 1);
	hghca_icm_put(hdev, HGHCA_ICM_QPC, 9, 1);
	KUNIT_EXPECT_EQ(test, mark + 1, fake_mark(fake));
	KUNIT_EXPECT_EQ(test, 1, fake_icm_users(hdev, HGHCA_ICM_QPC));

	hghca_icm_put(hdev, HGHCA_ICM_QPC, 9, 1);
	KUNIT_EXPECT_EQ(test, 0, fake_icm_users(hdev, HGHCA_ICM_QPC));
	hghca_icm_trim(hdev);
	KUNIT_EXPECT_EQ(test, mark + 2, fake_mark(fake));
	icm_expect_unmap(test, fake, mark + 1, 1, ICM_QPC_BASE, 64);

	/* And it comes back. */
	KUNIT_ASSERT_EQ(test, 0, hghca_icm_get(hdev, HGHCA_ICM_QPC, 8, 1));
	icm_expect_map(test, fake, mark + 2, 1, ICM_QPC_BASE, 64);
	hghca_icm_put(hdev, HGHCA_ICM_QPC, 8, 1);
}

/* Who comes back to an idle block costs no command, and a table has one idle block. */
static void icm_idle_block(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct hghca_dev *hdev = fake->hdev;
	u32 mark, i;

	KUNIT_ASSERT_EQ(test, 0, hghca_icm_get(hdev, HGHCA_ICM_QPC, 8, 1));
	KUNIT_ASSERT_EQ(test, 0, hghca_icm_get(hdev, HGHCA_ICM_CQC, 8, 1));
	mark = fake_mark(fake);
	for (i = 0; i < ICM_QPS_A_BLOCK; i++) {
		hghca_icm_put(hdev, HGHCA_ICM_QPC, i ? i - 1 : 8, 1);
		KUNIT_ASSERT_EQ(test, 0, hghca_icm_get(hdev, HGHCA_ICM_QPC, i, 1));
	}
	KUNIT_EXPECT_EQ(test, mark, fake_mark(fake));

	/* The idle block is not that of another table, and one with a user is not trimmed. */
	hghca_icm_put(hdev, HGHCA_ICM_CQC, 8, 1);
	hghca_icm_trim(hdev);
	KUNIT_EXPECT_EQ(test, mark + 1, fake_mark(fake));
	icm_expect_unmap(test, fake, mark, 1, ICM_CQC_BASE, 64);
	KUNIT_EXPECT_EQ(test, 1, fake_icm_users(hdev, HGHCA_ICM_QPC));

	/* The next to lose its users takes the place. */
	KUNIT_ASSERT_EQ(test, 0, hghca_icm_get(hdev, HGHCA_ICM_QPC, 128, 1));
	hghca_icm_put(hdev, HGHCA_ICM_QPC, 127, 1);
	KUNIT_EXPECT_EQ(test, mark + 2, fake_mark(fake));
	hghca_icm_put(hdev, HGHCA_ICM_QPC, 128, 1);
	KUNIT_EXPECT_EQ(test, mark + 3, fake_mark(fake));
	icm_expect_unmap(test, fake, mark + 2, 1, ICM_QPC_BASE, 64);

	hghca_icm_trim(hdev);
	icm_expect_unmap(test, fake, mark + 3, 1, 0x40000, 64);
	hghca_icm_trim(hdev);
	KUNIT_EXPECT_EQ(test, mark + 4, fake_mark(fake));
	KUNIT_EXPECT_EQ(test, 0, fake_icm_blocks(hdev, HGHCA_ICM_QPC));
}

/* Of two ranges that overlap, what one has alone goes with it. */
static void icm_overlapping_ranges(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct hghca_dev *hdev = fake->hdev;
	u32 mark = fake_mark(fake);

	/* Blocks 0 and 1; blocks 1 and 2. */
	KUNIT_ASSERT_EQ(test, 0, hghca_icm_get(hdev, HGHCA_ICM_QPC, 100, 100));
	KUNIT_ASSERT_EQ(test, 0, hghca_icm_get(hdev, HGHCA_ICM_QPC, 200, 100));
	KUNIT_EXPECT_EQ(test, mark + 3, fake_mark(fake));
	icm_expect_map(test, fake, mark + 2, 1, 0x80000, 64);

	hghca_icm_put(hdev, HGHCA_ICM_QPC, 100, 100);
	hghca_icm_trim(hdev);
	KUNIT_EXPECT_EQ(test, mark + 4, fake_mark(fake));
	icm_expect_unmap(test, fake, mark + 3, 1, 0, 64);

	hghca_icm_put(hdev, HGHCA_ICM_QPC, 200, 100);
	hghca_icm_trim(hdev);
	KUNIT_EXPECT_EQ(test, mark + 6, fake_mark(fake));
	icm_expect_unmap(test, fake, mark + 4, 1, 0x40000, 64);
	icm_expect_unmap(test, fake, mark + 5, 1, 0x80000, 64);
	KUNIT_EXPECT_EQ(test, 0, fake_icm_blocks(hdev, HGHCA_ICM_QPC));
}

/* ------------------------------------------------------------------ */
/* MAP_ICM and UNMAP_ICM that fail                                      */

struct icm_failure {
	u16 op;
	u32 nth;	/* from 0, of that command */
	u8 status;
	u32 seen;
};

static enum fake_end icm_fail_nth(struct fake *fake, const struct fake_command *cmd,
				  struct fake_answer *answer)
{
	struct icm_failure *failure = fake->priv;

	if (cmd->op == failure->op && failure->seen++ == failure->nth)
		answer->status = failure->status;
	return FAKE_ANSWERED;
}

static const struct icm_map_failure {
	const char *name;
	u32 nth;
	u8 status;
	int err;
} icm_map_failures[] = {
	{ "the first of four, EXCEED_LIM", 0, 0x08, -ENOMEM },
	{ "the second of four, BAD_PARAM", 1, 0x03, -EINVAL },
	{ "the third of four, RESOURCE_BUSY", 2, 0x06, -EBUSY },
	{ "the last of four, EXCEED_LIM", 3, 0x08, -ENOMEM },
};

static void icm_map_failure_name(const struct icm_map_failure *failure, char *desc)
{
	strscpy(desc, failure->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(icm_map_failure, icm_map_failures, icm_map_failure_name);

/* Blocks mapped before the one that is refused are unmapped, last first. */
static void icm_map_fails(struct kunit *test)
{
	const struct icm_map_failure *param = test->param_value;
	struct icm_failure failure = { .op = 0xffa, .nth = param->nth, .status = param->status };
	struct fake *fake = test->priv;
	struct hghca_dev *hdev = fake->hdev;
	u32 mark = fake_mark(fake);
	u32 i;

	fake->priv = &failure;
	fake->answer = icm_fail_nth;
	KUNIT_EXPECT_EQ(test, param->err,
			hghca_icm_get(hdev, HGHCA_ICM_QPC, 0, 4 * ICM_QPS_A_BLOCK));
	fake->answer = NULL;
	hghca_icm_trim(hdev);
	KUNIT_EXPECT_EQ(test, mark + 2 * param->nth + 1, fake_mark(fake));
	for (i = 0; i < param->nth; i++)
		icm_expect_unmap(test, fake, mark + param->nth + 1 + i, 1,
				 (param->nth - 1 - i) * 0x40000ULL, 64);
	KUNIT_EXPECT_EQ(test, 0, fake_icm_blocks(hdev, HGHCA_ICM_QPC));

	/* The next try succeeds. */
	KUNIT_EXPECT_EQ(test, 0, hghca_icm_get(hdev, HGHCA_ICM_QPC, 0, 4 * ICM_QPS_A_BLOCK));
	hghca_icm_put(hdev, HGHCA_ICM_QPC, 0, 4 * ICM_QPS_A_BLOCK);
}

/* What somebody else holds is not unmapped with it. */
static void icm_map_fails_beside_others(struct kunit *test)
{
	struct icm_failure failure = { .op = 0xffa, .nth = 1, .status = 0x03 };
	struct fake *fake = test->priv;
	struct hghca_dev *hdev = fake->hdev;
	u32 mark;

	KUNIT_ASSERT_EQ(test, 0, hghca_icm_get(hdev, HGHCA_ICM_QPC, 200, 1));
	mark = fake_mark(fake);
	fake->priv = &failure;
	fake->answer = icm_fail_nth;
	/* Block 0 is mapped, block 1 is there, block 2 is refused. */
	KUNIT_EXPECT_EQ(test, -EINVAL,
			hghca_icm_get(hdev, HGHCA_ICM_QPC, 0, 3 * ICM_QPS_A_BLOCK));
	fake->answer = NULL;
	hghca_icm_trim(hdev);
	KUNIT_EXPECT_EQ(test, mark + 3, fake_mark(fake));
	icm_expect_unmap(test, fake, mark + 2, 1, 0, 64);
	KUNIT_EXPECT_EQ(test, 1, fake_icm_users(hdev, HGHCA_ICM_QPC));
	hghca_icm_put(hdev, HGHCA_ICM_QPC, 200, 1);
	hghca_icm_trim(hdev);
	KUNIT_EXPECT_EQ(test, 0, fake_icm_blocks(hdev, HGHCA_ICM_QPC));
}

/* A block that the device keeps is not freed, and not mapped a second time. */
static void icm_unmap_fails(struct kunit *test)
{
	struct icm_failure failure = { .op = 0xff9, .nth = 0, .status = 0x03 };
	struct fake *fake = test->priv;
	struct hghca_dev *hdev = fake->hdev;
	u32 mark;

	KUNIT_ASSERT_EQ(test, 0, hghca_icm_get(hdev, HGHCA_ICM_CQC, 5, 1));
	fake->priv = &failure;
	fake->answer = icm_fail_nth;
	hghca_icm_put(hdev, HGHCA_ICM_CQC, 5, 1);
	hghca_icm_trim(hdev);
	KUNIT_EXPECT_NE(test, 0, fake_icm_blocks(hdev, HGHCA_ICM_CQC));
	KUNIT_EXPECT_EQ(test, 0, fake_icm_users(hdev, HGHCA_ICM_CQC));

	mark = fake_mark(fake);
	KUNIT_EXPECT_EQ(test, 0, hghca_icm_get(hdev, HGHCA_ICM_CQC, 6, 1));
	KUNIT_EXPECT_EQ(test, mark, fake_mark(fake));
	hghca_icm_put(hdev, HGHCA_ICM_CQC, 6, 1);
	hghca_icm_trim(hdev);
	icm_expect_unmap(test, fake, mark, 1, ICM_CQC_BASE, 64);
	KUNIT_EXPECT_EQ(test, 0, fake_icm_blocks(hdev, HGHCA_ICM_CQC));
}

/* What is still there at the end is freed with the tables: kmemleak looks after it. */
static void icm_left_over(struct kunit *test)
{
	struct fake *fake = test->priv;

	KUNIT_EXPECT_EQ(test, 0, hghca_icm_get(fake->hdev, HGHCA_ICM_MTT, 8, 3 * 32768));
	KUNIT_EXPECT_EQ(test, 4, fake_icm_users(fake->hdev, HGHCA_ICM_MTT));
	fake_use_up(fake);
}

static struct kunit_case icm_cases[] = {
	KUNIT_CASE_PARAM(icm_get_and_put, icm_range_gen_params),
	KUNIT_CASE(icm_shared_block),
	KUNIT_CASE(icm_idle_block),
	KUNIT_CASE(icm_overlapping_ranges),
	KUNIT_CASE_PARAM(icm_map_fails, icm_map_failure_gen_params),
	KUNIT_CASE(icm_map_fails_beside_others),
	KUNIT_CASE(icm_unmap_fails),
	KUNIT_CASE(icm_left_over),
	{}
};

static struct kunit_suite icm_suite = {
	.name = "hghca_icm",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = fake_test_init,
	.test_cases = icm_cases,
};

kunit_test_suite(icm_suite);
