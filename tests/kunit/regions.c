// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of memory regions: what goes into WRITE_MTT and SW2HW_MPT.
 *
 * The reference is the translation of section 4.5 of the interface document: every
 * address of a region, put through the MPT and the MTTs that the device was
 * given, must come out where the scatterlist has it.
 */
#include <linux/genalloc.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "fake.h"

#define REGIONS_MTTS	8192	/* kept of what was written */
#define REGIONS_SEGS	16

/* What the device knows of the last region. */
struct regions {
	struct fake *fake;
	u8 mpt[64];
	u32 mpt_index;
	u32 mpts;
	u64 first;
	u32 count;
	u32 writes;
	u64 entries[REGIONS_MTTS];
};

/* Document 4.5, op_modifier 1: mtt_sz entries from 40h on, of which the first is mtt_seg's. */
static u8 regions_answer_inline(struct regions *this, const struct fake_command *cmd)
{
	u32 count = be32_at(cmd->mailbox, 0x34);
	u32 i;

	if (!count || count > 504 || this->writes)
		return 0x03;
	this->first = be32_at(cmd->mailbox, 0x30);
	this->count = count;
	for (i = 0; i < count; i++)
		this->entries[i] = be64_at(cmd->mailbox, 0x40 + 8 * i);
	return 0;
}

static enum fake_end regions_answer(struct fake *fake, const struct fake_command *cmd,
				    struct fake_answer *answer)
{
	struct regions *this = fake->priv;
	u32 i;

	if (cmd->op == 0x00d) {
		memcpy(this->mpt, cmd->mailbox, sizeof(this->mpt));
		this->mpt_index = cmd->in_modifier;
		this->mpts++;
		if (cmd->op_modifier)
			answer->status = regions_answer_inline(this, cmd);
	}
	if (cmd->op != 0x011)
		return FAKE_ANSWERED;
	/* The first at 18h; entries from 20h on, quads high to low. */
	if (!this->writes++)
		this->first = be64_at(cmd->mailbox, 0x18);
	if (cmd->in_modifier < 1 || cmd->in_modifier > 508 ||
	    be64_at(cmd->mailbox, 0x18) != this->first + this->count ||
	    this->count + cmd->in_modifier > REGIONS_MTTS) {
		answer->status = 0x03;
		return FAKE_ANSWERED;
	}
	for (i = 0; i < cmd->in_modifier; i++)
		this->entries[this->count++] = be64_at(cmd->mailbox, 0x20 + 8 * (i ^ 3));
	return FAKE_ANSWERED;
}

static int regions_init(struct kunit *test)
{
	struct regions *this = kunit_kzalloc(test, sizeof(*this), GFP_KERNEL);
	int err;

	if (!this)
		return -ENOMEM;
	err = fake_test_init(test);
	if (err)
		return err;
	this->fake = test->priv;
	this->fake->priv = this;
	this->fake->answer = regions_answer;
	test->priv = this;
	return 0;
}

/* Document 4.5; all ones where the device would find nothing. */
static u64 regions_translate(const struct regions *this, u64 address)
{
	u32 shift = be32_at(this->mpt, 0x04) + 12;
	u64 page = BIT_ULL(shift);
	u64 start = be64_at(this->mpt, 0x10);
	u64 length = be64_at(this->mpt, 0x18);
	u64 offset = address - round_down(start, page);
	u64 index = be32_at(this->mpt, 0x30) + (offset >> shift) - this->first;

	if (address - start >= length || index >= this->count)
		return U64_MAX;
	return (this->entries[index] & ~0xfffULL) + (offset & (page - 1));
}

/* ------------------------------------------------------------------ */
/* User memory that is not there                                        */

struct regions_memory {
	struct ib_umem umem;
	struct scatterlist sgl[REGIONS_SEGS];
};

/*
 * @count pieces of @size bytes, the first of which starts at DMA address @dma;
 * each ends @gap bytes before the next. The region starts @offset bytes into
 * the first and ends @cut bytes before the end of the last.
 */
static void regions_memory(struct regions_memory *memory, u64 dma, u64 size, u64 gap, int count,
			   u64 offset, u64 cut)
{
	int i;

	memset(memory, 0, sizeof(*memory));
	sg_init_table(memory->sgl, count);
	for (i = 0; i < count; i++) {
		sg_dma_address(&memory->sgl[i]) = dma + i * (size + gap);
		sg_dma_len(&memory->sgl[i]) = size;
		memory->sgl[i].length = size;
	}
	/* A umem starts at a page; how far into it, its address tells. */
	sg_dma_address(&memory->sgl[0]) += offset & PAGE_MASK;
	sg_dma_len(&memory->sgl[0]) -= offset & PAGE_MASK;
	memory->umem.sgt_append.sgt.sgl = memory->sgl;
	memory->umem.sgt_append.sgt.nents = count;
	memory->umem.sgt_append.sgt.orig_nents = count;
	memory->umem.address = 0x7f0000000000 + offset;
	memory->umem.length = size * count - offset - cut;
}

/* The DMA address of byte @at of the region. */
static u64 regions_dma_of(const struct regions_memory *memory, u64 at)
{
	u64 skip = at + (memory->umem.address & ~PAGE_MASK);
	int i;

	for (i = 0; skip >= sg_dma_len(&memory->sgl[i]); i++)
		skip -= sg_dma_len(&memory->sgl[i]);
	return sg_dma_address(&memory->sgl[i]) + skip;
}

static void regions_expect_translation(struct kunit *test, const struct regions *this,
				       const struct regions_memory *memory, u64 start)
{
	u64 page = BIT_ULL(be32_at(this->mpt, 0x04) + 12);
	u64 length = memory->umem.length;
	u64 at;

	KUNIT_EXPECT_EQ(test, regions_dma_of(memory, 0), regions_translate(this, start));
	KUNIT_EXPECT_EQ(test, regions_dma_of(memory, length - 1),
			regions_translate(this, start + length - 1));
	KUNIT_EXPECT_EQ(test, U64_MAX, regions_translate(this, start + length));
	KUNIT_EXPECT_EQ(test, U64_MAX, regions_translate(this, start - 1));
	/* Both sides of every page's end. */
	for (at = page - (start & (page - 1)); at < length; at += page) {
		KUNIT_ASSERT_EQ(test, regions_dma_of(memory, at - 1),
				regions_translate(this, start + at - 1));
		KUNIT_ASSERT_EQ(test, regions_dma_of(memory, at),
				regions_translate(this, start + at));
	}
}

static const struct regions_page_size {
	const char *name;
	u64 dma;
	u64 size;	/* of a piece */
	u64 gap;
	int pieces;
	u64 offset;
	u64 cut;
	u64 start;	/* of the region for the device */
	u8 page_shift;	/* that is to be found */
	u32 mtts;
} regions_page_sizes[] = {
	{ "4 KiB pages, one whole", 0x123456000, SZ_4K, SZ_1M, 1, 0, 0, 0x10000000, 12, 1 },
	{ "4 KiB pages, one byte", 0x123456000, SZ_4K, SZ_1M, 1, 0x123, 0xedc, 0x10000123, 12, 1 },
	{ "4 KiB pages, two bytes around a page's end", 0x123456000, SZ_4K, SZ_4K, 2, 0xfff, 0xfff,
	  0x10000fff, 12, 2 },
	{ "4 KiB pages, five of them, odd offset and end", 0x123456000, SZ_4K, SZ_4K, 5, 0x7, 0x3,
	  0x555555007, 12, 5 },
	{ "4 KiB pages, as the start has no more", 0x100000000, SZ_64K, SZ_64K, 2, 0, 0, 0x1000,
	  12, 32 },
	{ "8 KiB pages", 0x100002000, SZ_8K, SZ_8K, 4, 0x10, 0, 0x40002010, 13, 4 },
	{ "16 KiB pages, start in the second half", 0x100004000, SZ_16K, SZ_16K, 3, 0x3001, 0x100,
	  0x40003001, 14, 3 },
	{ "32 KiB pages", 0x100008000, SZ_32K, SZ_32K, 3, 0, 1, 0x40000000, 15, 3 },
	{ "64 KiB pages, odd offset", 0x100010000, SZ_64K, SZ_64K, 4, 0x5fff, 0x7ff, 0x40005fff,
	  16, 4 },
	{ "128 KiB pages", 0x100020000, SZ_128K, SZ_128K, 3, 0x1000, 0, 0x40001000, 17, 3 },
	{ "256 KiB pages", 0x100040000, SZ_256K, SZ_256K, 3, 0x2345, 0, 0x40002345, 18, 3 },
	{ "512 KiB pages", 0x100080000, SZ_512K, SZ_512K, 3, 0x2345, 0, 0x40002345, 19, 3 },
	{ "1 MiB pages", 0x100100000, SZ_1M, SZ_1M, 3, 0x2345, 0, 0x40002345, 20, 3 },
	{ "2 MiB pages", 0x100200000, SZ_2M, SZ_2M, 4, 0, 0, 0x40000000, 21, 4 },
	{ "2 MiB pages, offset 1003h", 0x100200000, SZ_2M, SZ_2M, 4, 0x1003, 0x1fff, 0x40001003,
	  21, 4 },
	{ "4 MiB pages", 0x100400000, SZ_4M, SZ_4M, 3, 0x345678, 0x9abc, 0x40345678, 22, 3 },
	{ "16 MiB pages", 0x101000000, SZ_16M, SZ_16M, 3, 0x345678, 0x9abc, 0x40345678, 24, 3 },
	{ "64 MiB pages", 0x104000000, SZ_64M, SZ_64M, 3, 0x345678, 0x9abc, 0x40345678, 26, 3 },
	{ "256 MiB pages", 0x110000000, SZ_256M, SZ_256M, 3, 0x345678, 0x9abc, 0x40345678, 28, 3 },
	{ "512 MiB pages", 0x120000000, SZ_512M, SZ_512M, 3, 0x345678, 0x9abc, 0x40345678, 29, 3 },
	{ "1 GiB pages", 0x140000000, SZ_1G, SZ_1G, 3, 0x345678, 0x9abc, 0x40345678, 30, 3 },
	{ "2 GiB pieces: no page is larger than 1 GiB", 0x180000000, SZ_2G, SZ_2G, 2, 0, 0,
	  0x80000000, 30, 4 },
	{ "the start does not go with the memory: 4 KiB", 0x100200000, SZ_2M, SZ_2M, 2, 0, 0,
	  0x40001000, 12, 1024 },
	{ "the start goes with the memory up to 64 KiB", 0x100200000, SZ_2M, SZ_2M, 2, 0, 0,
	  0x40010000, 16, 64 },
	{ "the start at the end of addresses", 0x100200000, SZ_2M, SZ_2M, 2, 0, 0x1000,
	  0xffffffffffc00000, 21, 2 },
};

static void regions_page_size_name(const struct regions_page_size *size, char *desc)
{
	strscpy(desc, size->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(regions_page_size, regions_page_sizes, regions_page_size_name);

static void regions_page_size(struct kunit *test)
{
	const struct regions_page_size *param = test->param_value;
	struct regions_memory *memory = kunit_kzalloc(test, sizeof(*memory), GFP_KERNEL);
	struct regions *this = test->priv;
	struct hghca_hwmr_attr attr = { .pdn = 0x54321, .access = 0xf, .start = param->start };
	struct hghca_dev *hdev = this->fake->hdev;
	struct hghca_hwmr mr;
	unsigned long page_sz;

	KUNIT_ASSERT_NOT_NULL(test, memory);
	regions_memory(memory, param->dma, param->size, param->gap, param->pieces, param->offset,
		       param->cut);
	page_sz = ib_umem_find_best_pgsz(&memory->umem, GENMASK(30, 12), param->start);
	KUNIT_ASSERT_EQ(test, BIT(param->page_shift), page_sz);
	attr.length = memory->umem.length;
	attr.page_shift = param->page_shift;
	KUNIT_ASSERT_EQ(test, 0, hghca_hwmr_create_umem(hdev, &mr, &attr, &memory->umem, 0));

	KUNIT_EXPECT_EQ(test, param->page_shift - 12, be32_at(this->mpt, 0x04));
	KUNIT_EXPECT_EQ(test, param->mtts, this->count);
	KUNIT_EXPECT_EQ(test, param->mtts, be32_at(this->mpt, 0x34));
	regions_expect_translation(test, this, memory, param->start);
	KUNIT_EXPECT_EQ(test, 0, hghca_hwmr_destroy(hdev, &mr));
}

/* A CQ's or a queue's part of a user's memory: the region starts inside the umem. */
static void regions_part_of_memory(struct kunit *test)
{
	struct regions_memory *memory = kunit_kzalloc(test, sizeof(*memory), GFP_KERNEL);
	struct regions *this = test->priv;
	struct hghca_queue queue;
	u64 at;

	KUNIT_ASSERT_NOT_NULL(test, memory);
	regions_memory(memory, 0x123400000, SZ_16K, SZ_4K, 4, 0, 0);
	KUNIT_ASSERT_EQ(test, 0, hghca_queue_map_user(this->fake->hdev, &queue, 7, &memory->umem,
						      0x3000, 0x6000, true));
	KUNIT_EXPECT_EQ(test, 6, this->count);
	KUNIT_EXPECT_EQ(test, 0x6000, queue.size);
	for (at = 0; at < 0x6000; at += 0x800)
		KUNIT_EXPECT_EQ(test, regions_dma_of(memory, 0x3000 + at),
				regions_translate(this, at));
	KUNIT_EXPECT_EQ(test, U64_MAX, regions_translate(this, 0x6000));
	/* region, zero-based, local write */
	KUNIT_EXPECT_EQ(test, 0x121, be32_at(this->mpt, 0x00));
	hghca_queue_free(this->fake->hdev, &queue);
}

static const struct regions_bad_queue {
	const char *name;
	u64 address;	/* added to the umem's */
	u64 offset;
	size_t size;
} regions_bad_queues[] = {
	{ "nothing", 0, 0, 0 },
	{ "an odd offset", 0, 0x100, 0x1000 },
	{ "an odd address", 0x800, 0, 0x1000 },
	{ "one page beyond the end", 0, 0x3000, 0x2000 },
	{ "beyond the end", 0, 0x5000, 0x1000 },
	{ "an offset that wraps", 0, 0xfffffffffffff000, 0x2000 },
	{ "a size that wraps", 0, 0x1000, SIZE_MAX - 0xfff },
};

static void regions_bad_queue_name(const struct regions_bad_queue *queue, char *desc)
{
	strscpy(desc, queue->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(regions_bad_queue, regions_bad_queues, regions_bad_queue_name);

static void regions_bad_queue(struct kunit *test)
{
	const struct regions_bad_queue *param = test->param_value;
	struct regions_memory *memory = kunit_kzalloc(test, sizeof(*memory), GFP_KERNEL);
	struct regions *this = test->priv;
	u32 mark = fake_mark(this->fake);
	struct hghca_queue queue;

	KUNIT_ASSERT_NOT_NULL(test, memory);
	regions_memory(memory, 0x123400000, SZ_4K, SZ_4K, 4, 0, 0);
	memory->umem.address += param->address;
	KUNIT_EXPECT_EQ(test, -EINVAL, hghca_queue_map_user(this->fake->hdev, &queue, 7,
							    &memory->umem, param->offset,
							    param->size, false));
	KUNIT_EXPECT_EQ(test, mark, fake_mark(this->fake));
	KUNIT_EXPECT_NULL(test, memchr_inv(&queue, 0, sizeof(queue)));
}

/* ------------------------------------------------------------------ */
/* Mailboxes of MTTs                                                    */

static const struct regions_count {
	const char *name;
	u32 pages;
	u32 writes;
} regions_counts[] = {
	{ "1 MTT", 1, 1 },
	{ "3 MTTs: a quad that is not full", 3, 1 },
	{ "4 MTTs", 4, 1 },
	{ "5 MTTs", 5, 1 },
	{ "507 MTTs", 507, 1 },
	{ "508 MTTs: a mailbox", 508, 1 },
	{ "509 MTTs", 509, 2 },
	{ "1,016 MTTs: two mailboxes", 1016, 2 },
	{ "1,017 MTTs", 1017, 3 },
	{ "8,192 MTTs", 8192, 17 },
};

static void regions_count_name(const struct regions_count *count, char *desc)
{
	strscpy(desc, count->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(regions_count, regions_counts, regions_count_name);

static void regions_many_mtts(struct kunit *test)
{
	const struct regions_count *param = test->param_value;
	struct regions_memory *memory = kunit_kzalloc(test, sizeof(*memory), GFP_KERNEL);
	struct regions *this = test->priv;
	struct hghca_hwmr_attr attr = { .pdn = 1, .page_shift = 12 };
	struct hghca_hwmr mr;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, memory);
	regions_memory(memory, 0x700000000, param->pages * 4096ULL, 0, 1, 0, 0);
	memory->umem.iova = 0;
	attr.length = memory->umem.length;
	KUNIT_ASSERT_EQ(test, 0, hghca_hwmr_create_umem(this->fake->hdev, &mr, &attr,
							&memory->umem, 0));
	KUNIT_EXPECT_EQ(test, param->writes, this->writes);
	KUNIT_ASSERT_EQ(test, param->pages, this->count);
	for (i = 0; i < param->pages; i++)
		KUNIT_ASSERT_EQ(test, 0x700000000 + i * 4096ULL, this->entries[i]);
	/* Eight MTTs are a cache line. */
	KUNIT_EXPECT_EQ(test, 0, this->first % 8);
	KUNIT_EXPECT_NE(test, 0, this->first);
	KUNIT_EXPECT_EQ(test, 0, hghca_hwmr_destroy(this->fake->hdev, &mr));
}

/* ------------------------------------------------------------------ */
/* MPTs                                                                 */

static void regions_mpt_bytes(struct kunit *test)
{
	struct regions_memory *memory = kunit_kzalloc(test, sizeof(*memory), GFP_KERNEL);
	struct regions *this = test->priv;
	struct hghca_hwmr_attr attr = {
		.pdn = 0x54321, .access = 0x0b, .start = 0x123456789abcd002, .page_shift = 13,
	};
	struct hghca_hwmr mr;

	KUNIT_ASSERT_NOT_NULL(test, memory);
	regions_memory(memory, 0x100002000, SZ_8K, SZ_8K, 2, 0x1002, 0);
	ib_umem_find_best_pgsz(&memory->umem, SZ_8K, attr.start);
	attr.length = memory->umem.length;
	KUNIT_ASSERT_EQ(test, 0, hghca_hwmr_create_umem(this->fake->hdev, &mr, &attr,
							&memory->umem, 0));
	KUNIT_EXPECT_EQ(test, 0x0000010b, be32_at(this->mpt, 0x00));	/* region, rights */
	KUNIT_EXPECT_EQ(test, 1, be32_at(this->mpt, 0x04));
	KUNIT_EXPECT_EQ(test, mr.key, be32_at(this->mpt, 0x08));
	KUNIT_EXPECT_EQ(test, this->mpt_index, mr.key >> 8);
	KUNIT_EXPECT_EQ(test, 0x54321, be32_at(this->mpt, 0x0c));
	KUNIT_EXPECT_EQ(test, 0x123456789abcd002, be64_at(this->mpt, 0x10));
	KUNIT_EXPECT_EQ(test, 0x2ffe, be64_at(this->mpt, 0x18));
	KUNIT_EXPECT_EQ(test, mr.key, be32_at(this->mpt, 0x20));
	KUNIT_EXPECT_EQ(test, 0, be64_at(this->mpt, 0x24));
	KUNIT_EXPECT_EQ(test, 0, be32_at(this->mpt, 0x2c));
	KUNIT_EXPECT_EQ(test, this->first, be32_at(this->mpt, 0x30));
	KUNIT_EXPECT_EQ(test, 2, be32_at(this->mpt, 0x34));
	KUNIT_EXPECT_EQ(test, 0, be64_at(this->mpt, 0x38));
	KUNIT_EXPECT_EQ(test, 0, hghca_hwmr_destroy(this->fake->hdev, &mr));
	KUNIT_EXPECT_EQ(test, 0, mr.key);
}

static const struct regions_access {
	const char *name;
	int verbs;
	u32 device;	/* bits 6:0 of flags */
} regions_accesses[] = {
	{ "local read", 0, 0x00 },
	{ "local write", IB_ACCESS_LOCAL_WRITE, 0x01 },
	{ "remote write", IB_ACCESS_REMOTE_WRITE, 0x02 },
	{ "remote read", IB_ACCESS_REMOTE_READ, 0x04 },
	{ "remote atomic", IB_ACCESS_REMOTE_ATOMIC, 0x08 },
	{ "window binding", IB_ACCESS_MW_BIND, 0x10 },
	{ "zero-based", IB_ZERO_BASED, 0x20 },
	{ "all", IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ |
	  IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_MW_BIND | IB_ZERO_BASED, 0x3f },
	{ "relaxed ordering, which is optional", IB_ACCESS_RELAXED_ORDERING, 0x00 },
};

static void regions_access_name(const struct regions_access *access, char *desc)
{
	strscpy(desc, access->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(regions_access, regions_accesses, regions_access_name);

/* A region of all memory, with each of the rights. */
static void regions_dma_mr(struct kunit *test)
{
	const struct regions_access *param = test->param_value;
	struct regions *this = test->priv;
	struct hghca_pd *pd = fake_pd(test, this->fake);
	struct ib_mr *ibmr = hghca_get_dma_mr(&pd->ibpd, param->verbs);

	KUNIT_ASSERT_FALSE(test, IS_ERR(ibmr));
	ibmr->device = pd->ibpd.device;
	/* region, physical */
	KUNIT_EXPECT_EQ(test, 0x300 | param->device, be32_at(this->mpt, 0x00));
	KUNIT_EXPECT_EQ(test, ibmr->lkey, be32_at(this->mpt, 0x08));
	KUNIT_EXPECT_EQ(test, ibmr->lkey, ibmr->rkey);
	KUNIT_EXPECT_EQ(test, pd->pdn, be32_at(this->mpt, 0x0c));
	KUNIT_EXPECT_EQ(test, 0, be64_at(this->mpt, 0x10));
	KUNIT_EXPECT_EQ(test, U64_MAX, be64_at(this->mpt, 0x18));
	KUNIT_EXPECT_EQ(test, 0, this->writes);
	KUNIT_EXPECT_EQ(test, 0, hghca_dereg_mr(ibmr, NULL));
}

/* Document 4.5: where index and tag stand in a key. */
static const struct regions_key {
	const char *name;
	u32 caps;
	u32 first;	/* index that a key can have */
	u32 index_shift, index_mask;
	u32 tag_shift, tag_mask;
} regions_keys[] = {
	{ "with MEM_MGT", 0x3ff, 2, 8, 0xffffff, 0, 0xff },
	{ "without", 0x1ff, 1, 0, 0x3ffff, 18, 0x3fff },
};

static void regions_key_name(const struct regions_key *key, char *desc)
{
	strscpy(desc, key->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(regions_key, regions_keys, regions_key_name);

/* The tag is another at each use of an index, and never 0; then it starts again. */
static void regions_key(struct kunit *test)
{
	const struct regions_key *param = test->param_value;
	struct fake *fake = fake_test_create(test);
	struct regions *this = test->priv;
	u32 tag, i, uses = param->tag_mask + 3;
	struct hghca_hwmr mr, other;

	KUNIT_ASSERT_NOT_NULL(test, fake);
	fake->limits.caps = cpu_to_be32(param->caps);
	KUNIT_ASSERT_EQ(test, 0, fake_open(fake));
	fake->priv = this;
	fake->answer = regions_answer;
	for (i = 0; i < uses; i++) {
		/* Long tags: from near their end on. */
		if (i == 3 && param->tag_mask > 0xff) {
			i = param->tag_mask - 2;
			fake->hdev->mpt_tags[param->first] = i;
		}
		KUNIT_ASSERT_EQ(test, 0, hghca_hwmr_create_physical(fake->hdev, &mr, 1, 1));
		tag = mr.key >> param->tag_shift & param->tag_mask;
		KUNIT_EXPECT_EQ(test, param->first, this->mpt_index);
		KUNIT_EXPECT_EQ(test, param->first,
				mr.key >> param->index_shift & param->index_mask);
		KUNIT_EXPECT_EQ(test, i % param->tag_mask + 1, tag);
		KUNIT_EXPECT_EQ(test, mr.key, be32_at(this->mpt, 0x08));
		KUNIT_EXPECT_EQ(test, 0, hghca_hwmr_destroy(fake->hdev, &mr));
	}
	/* The next index has a tag of its own. */
	KUNIT_ASSERT_EQ(test, 0, hghca_hwmr_create_physical(fake->hdev, &mr, 1, 1));
	KUNIT_ASSERT_EQ(test, 0, hghca_hwmr_create_physical(fake->hdev, &other, 1, 1));
	KUNIT_EXPECT_EQ(test, (param->first + 1) << param->index_shift | 1 << param->tag_shift,
			other.key);
	KUNIT_EXPECT_EQ(test, 0, hghca_hwmr_destroy(fake->hdev, &other));
	KUNIT_EXPECT_EQ(test, 0, hghca_hwmr_destroy(fake->hdev, &mr));
}

/* ------------------------------------------------------------------ */
/* Queues of the kernel                                                 */

static const struct regions_queue {
	const char *name;
	size_t size;
	size_t rounded;
	u32 chunks;
	u32 page_size;	/* as in the MPT */
} regions_queues[] = {
	{ "1 byte", 1, SZ_4K, 1, 0 },
	{ "4 KiB", SZ_4K, SZ_4K, 1, 0 },
	{ "4 KiB and a byte", SZ_4K + 1, SZ_8K, 1, 1 },
	{ "32 KiB: a chunk", SZ_32K, SZ_32K, 1, 3 },
	{ "32 KiB and a byte", SZ_32K + 1, SZ_64K, 2, 3 },
	{ "1 MiB", SZ_1M, SZ_1M, 32, 3 },
};

static void regions_queue_name(const struct regions_queue *queue, char *desc)
{
	strscpy(desc, queue->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(regions_queue, regions_queues, regions_queue_name);

static void regions_kernel_queue(struct kunit *test)
{
	const struct regions_queue *param = test->param_value;
	struct regions *this = test->priv;
	struct hghca_queue queue;
	u64 at;

	KUNIT_ASSERT_EQ(test, 0, hghca_queue_alloc(this->fake->hdev, &queue, 9, param->size,
						   false));
	KUNIT_EXPECT_EQ(test, param->rounded, queue.size);
	KUNIT_EXPECT_EQ(test, param->chunks, queue.num_chunks);
	KUNIT_EXPECT_EQ(test, param->chunks, this->count);
	KUNIT_EXPECT_EQ(test, param->page_size, be32_at(this->mpt, 0x04));
	KUNIT_EXPECT_EQ(test, 0x120, be32_at(this->mpt, 0x00));	/* region, zero-based */
	for (at = 0; at < queue.size; at += 1024) {
		KUNIT_ASSERT_PTR_EQ(test, hghca_queue_at(&queue, at),
				    fake_memory(regions_translate(this, at)));
		KUNIT_ASSERT_NULL(test, memchr_inv(hghca_queue_at(&queue, at), 0, 1024));
	}
	KUNIT_EXPECT_EQ(test, U64_MAX, regions_translate(this, queue.size));
	hghca_queue_free(this->fake->hdev, &queue);
	KUNIT_EXPECT_NULL(test, memchr_inv(&queue, 0, sizeof(queue)));
	hghca_queue_free(this->fake->hdev, &queue);	/* nothing is there to free */
}

/* ------------------------------------------------------------------ */
/* Failures                                                             */

static const struct regions_failure {
	const char *name;
	u16 op;
	u32 nth;
	u8 status;
	int err;
} regions_failures[] = {
	{ "MAP_ICM of the MPT", 0xffa, 0, 0x08, -ENOMEM },
	{ "MAP_ICM of the first MTTs", 0xffa, 1, 0x08, -ENOMEM },
	{ "the first WRITE_MTT", 0x011, 0, 0x0a, -EBADF },
	{ "the second WRITE_MTT", 0x011, 1, 0x22, -EAGAIN },
	{ "the last WRITE_MTT", 0x011, 2, 0x01, -EIO },
	{ "SW2HW_MPT", 0x00d, 0, 0x20, -EFAULT },
};

static void regions_failure_name(const struct regions_failure *failure, char *desc)
{
	strscpy(desc, failure->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(regions_failure, regions_failures, regions_failure_name);

struct regions_fault {
	const struct regions_failure *failure;
	u32 seen;
};

static enum fake_end regions_fail(struct fake *fake, const struct fake_command *cmd,
				  struct fake_answer *answer)
{
	struct regions_fault *fault = fake->priv;

	if (cmd->op == fault->failure->op && fault->seen++ == fault->failure->nth)
		answer->status = fault->failure->status;
	return FAKE_ANSWERED;
}

static void regions_expect_nothing_held(struct kunit *test, struct hghca_dev *hdev)
{
	int kind;

	fake_trim(hdev);
	KUNIT_EXPECT_EQ(test, gen_pool_size(hdev->mtt_pool), fake_free_mtts(hdev));
	KUNIT_EXPECT_FALSE(test, fake_has_keys(hdev));
	for (kind = 0; kind < HGHCA_ICM_KINDS; kind++)
		KUNIT_EXPECT_EQ(test, 0, fake_icm_blocks(hdev, kind));
}

static void regions_create_fails(struct kunit *test)
{
	const struct regions_failure *param = test->param_value;
	struct regions_memory *memory = kunit_kzalloc(test, sizeof(*memory), GFP_KERNEL);
	struct regions_fault fault = { .failure = param };
	struct regions *this = test->priv;
	struct hghca_dev *hdev = this->fake->hdev;
	struct hghca_hwmr_attr attr = { .pdn = 1, .page_shift = 12 };
	struct hghca_hwmr mr;

	KUNIT_ASSERT_NOT_NULL(test, memory);
	regions_memory(memory, 0x700000000, 1017 * 4096ULL, 0, 1, 0, 0);
	attr.length = memory->umem.length;
	this->fake->priv = &fault;
	this->fake->answer = regions_fail;
	KUNIT_EXPECT_EQ(test, param->err,
			hghca_hwmr_create_umem(hdev, &mr, &attr, &memory->umem, 0));
	KUNIT_EXPECT_GT(test, fault.seen, param->nth);
	KUNIT_EXPECT_NULL(test, memchr_inv(&mr, 0, sizeof(mr)));
	regions_expect_nothing_held(test, hdev);

	KUNIT_EXPECT_EQ(test, 0, hghca_hwmr_create_umem(hdev, &mr, &attr, &memory->umem, 0));
	KUNIT_EXPECT_EQ(test, 0, hghca_hwmr_destroy(hdev, &mr));
	regions_expect_nothing_held(test, hdev);
}

static void regions_queue_fails(struct kunit *test)
{
	static const struct regions_failure failures[] = {
		{ .op = 0x011, .status = 0x0a, .err = -EBADF },
		{ .op = 0x00d, .status = 0x20, .err = -EFAULT },
	};
	struct regions *this = test->priv;
	struct hghca_queue queue;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(failures); i++) {
		struct regions_fault fault = { .failure = &failures[i] };

		this->fake->priv = &fault;
		this->fake->answer = regions_fail;
		KUNIT_EXPECT_EQ(test, failures[i].err,
				hghca_queue_alloc(this->fake->hdev, &queue, 1, SZ_64K, true));
		KUNIT_EXPECT_NULL(test, memchr_inv(&queue, 0, sizeof(queue)));
		regions_expect_nothing_held(test, this->fake->hdev);
		this->fake->answer = NULL;
	}
}

/* What the device does not give back is not freed, and can be asked for again. */
static void regions_destroy_fails(struct kunit *test)
{
	static const struct regions_failure failure = { .op = 0x00f, .status = 0x21 };
	struct regions_fault fault = { .failure = &failure };
	struct regions *this = test->priv;
	struct hghca_dev *hdev = this->fake->hdev;
	struct hghca_hwmr mr;
	u32 key;

	KUNIT_ASSERT_EQ(test, 0, hghca_hwmr_create_physical(hdev, &mr, 1, 1));
	key = mr.key;
	this->fake->priv = &fault;
	this->fake->answer = regions_fail;
	KUNIT_EXPECT_EQ(test, -EBUSY, hghca_hwmr_destroy(hdev, &mr));
	KUNIT_EXPECT_EQ(test, key, mr.key);
	KUNIT_EXPECT_EQ(test, 0, hghca_hwmr_destroy(hdev, &mr));
	KUNIT_EXPECT_EQ(test, 0, hghca_hwmr_destroy(hdev, &mr));
	regions_expect_nothing_held(test, hdev);
}

static void regions_physical_fails(struct kunit *test)
{
	static const struct regions_failure failure = { .op = 0x00d, .status = 0x08 };
	struct regions_fault fault = { .failure = &failure };
	struct regions *this = test->priv;
	struct hghca_pd *pd = fake_pd(test, this->fake);

	this->fake->priv = &fault;
	this->fake->answer = regions_fail;
	KUNIT_EXPECT_PTR_EQ(test, ERR_PTR(-ENOMEM), hghca_get_dma_mr(&pd->ibpd, 0));
	regions_expect_nothing_held(test, this->fake->hdev);
}

/* Memory that ends before the region does. */
static void regions_memory_too_short(struct kunit *test)
{
	struct regions_memory *memory = kunit_kzalloc(test, sizeof(*memory), GFP_KERNEL);
	struct regions *this = test->priv;
	struct hghca_hwmr_attr attr = { .pdn = 1, .page_shift = 12, .length = 5 * 4096 };
	struct hghca_hwmr mr;

	KUNIT_ASSERT_NOT_NULL(test, memory);
	regions_memory(memory, 0x700000000, 4 * 4096, 0, 1, 0, 0);
	KUNIT_EXPECT_EQ(test, -EINVAL, hghca_hwmr_create_umem(this->fake->hdev, &mr, &attr,
							      &memory->umem, 0));
	KUNIT_EXPECT_EQ(test, 0, this->mpts);
	regions_expect_nothing_held(test, this->fake->hdev);
}

static void regions_bad_offset(struct kunit *test)
{
	struct regions_memory *memory = kunit_kzalloc(test, sizeof(*memory), GFP_KERNEL);
	struct regions *this = test->priv;
	struct hghca_hwmr_attr attr = { .pdn = 1, .page_shift = 14, .length = 4096 };
	struct hghca_hwmr mr;

	KUNIT_ASSERT_NOT_NULL(test, memory);
	regions_memory(memory, 0x700000000, SZ_64K, 0, 1, 0, 0);
	KUNIT_EXPECT_EQ(test, -EINVAL, hghca_hwmr_create_umem(this->fake->hdev, &mr, &attr,
							      &memory->umem, 0x1000));
	regions_expect_nothing_held(test, this->fake->hdev);
}

/* More MTTs than there are; none at all; more than are left. */
static void regions_too_large(struct kunit *test)
{
	struct regions_memory *memory = kunit_kzalloc(test, sizeof(*memory), GFP_KERNEL);
	static const u64 lengths[] = { 0, BIT_ULL(32) + 1, BIT_ULL(44), U64_MAX };
	struct regions *this = test->priv;
	struct hghca_hwmr_attr attr = { .pdn = 1, .page_shift = 12 };
	struct hghca_hwmr mr;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, memory);
	regions_memory(memory, 0x700000000, SZ_64K, 0, 1, 0, 0);
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		attr.length = lengths[i];
		KUNIT_EXPECT_EQ(test, -ENOMEM, hghca_hwmr_create_umem(this->fake->hdev, &mr, &attr,
								      &memory->umem, 0));
	}
	/* As many as there are, without the reserved ones. */
	attr.length = BIT_ULL(32);
	KUNIT_EXPECT_EQ(test, -ENOMEM, hghca_hwmr_create_umem(this->fake->hdev, &mr, &attr,
							      &memory->umem, 0));
	regions_expect_nothing_held(test, this->fake->hdev);
}

/* ------------------------------------------------------------------ */
/* SW2HW_MPT with MTTs                                                  */

/* Document 4.2: bit 25. */
static int regions_inline_init(struct kunit *test)
{
	struct regions *this;
	int err = regions_init(test);

	if (err)
		return err;
	this = test->priv;
	this->fake->hdev->limits.caps |= BIT(25);
	return 0;
}

/* Up to 504 MTTs in one command. */
static void regions_inline_commands(struct kunit *test)
{
	static const struct {
		u64 pages;
		u32 writes;
	} cases[] = { { 1, 0 }, { 504, 0 }, { 505, 1 }, { 509, 2 } };
	struct regions_memory *memory = kunit_kzalloc(test, sizeof(*memory), GFP_KERNEL);
	struct regions *this = test->priv;
	struct hghca_hwmr mr;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, memory);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct hghca_hwmr_attr attr = { .pdn = 1, .page_shift = 12 };

		regions_memory(memory, 0x700000000, cases[i].pages * 4096, 0, 1, 0, 0);
		attr.length = memory->umem.length;
		this->mpts = 0;
		this->writes = 0;
		this->count = 0;
		KUNIT_EXPECT_EQ(test, 0, hghca_hwmr_create_umem(this->fake->hdev, &mr, &attr,
								&memory->umem, 0));
		KUNIT_EXPECT_EQ(test, 1, this->mpts);
		KUNIT_EXPECT_EQ(test, cases[i].writes, this->writes);
		KUNIT_EXPECT_EQ(test, cases[i].pages, this->count);
		KUNIT_EXPECT_EQ(test, 0, hghca_hwmr_destroy(this->fake->hdev, &mr));
	}
	regions_expect_nothing_held(test, this->fake->hdev);
}

static void regions_inline_fails(struct kunit *test)
{
	static const struct regions_failure failure = { .op = 0x00d, .status = 0x22 };
	struct regions_fault fault = { .failure = &failure };
	struct regions *this = test->priv;
	struct hghca_queue queue;

	this->fake->priv = &fault;
	this->fake->answer = regions_fail;
	KUNIT_EXPECT_EQ(test, -EAGAIN,
			hghca_queue_alloc(this->fake->hdev, &queue, 1, SZ_64K, true));
	KUNIT_EXPECT_EQ(test, 1, fault.seen);
	regions_expect_nothing_held(test, this->fake->hdev);
}

static struct kunit_case regions_inline_cases[] = {
	KUNIT_CASE_PARAM(regions_page_size, regions_page_size_gen_params),
	KUNIT_CASE(regions_part_of_memory),
	KUNIT_CASE_PARAM(regions_bad_queue, regions_bad_queue_gen_params),
	KUNIT_CASE_PARAM(regions_kernel_queue, regions_queue_gen_params),
	KUNIT_CASE_PARAM(regions_create_fails, regions_failure_gen_params),
	KUNIT_CASE(regions_memory_too_short),
	KUNIT_CASE(regions_too_large),
	KUNIT_CASE(regions_inline_commands),
	KUNIT_CASE(regions_inline_fails),
	{}
};

static struct kunit_suite regions_inline_suite = {
	.name = "hghca_regions_inline",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = regions_inline_init,
	.test_cases = regions_inline_cases,
};

static struct kunit_case regions_cases[] = {
	KUNIT_CASE_PARAM(regions_page_size, regions_page_size_gen_params),
	KUNIT_CASE(regions_part_of_memory),
	KUNIT_CASE_PARAM(regions_bad_queue, regions_bad_queue_gen_params),
	KUNIT_CASE_PARAM(regions_many_mtts, regions_count_gen_params),
	KUNIT_CASE(regions_mpt_bytes),
	KUNIT_CASE_PARAM(regions_dma_mr, regions_access_gen_params),
	KUNIT_CASE_PARAM(regions_key, regions_key_gen_params),
	KUNIT_CASE_PARAM(regions_kernel_queue, regions_queue_gen_params),
	KUNIT_CASE_PARAM(regions_create_fails, regions_failure_gen_params),
	KUNIT_CASE(regions_queue_fails),
	KUNIT_CASE(regions_destroy_fails),
	KUNIT_CASE(regions_physical_fails),
	KUNIT_CASE(regions_memory_too_short),
	KUNIT_CASE(regions_bad_offset),
	KUNIT_CASE(regions_too_large),
	{}
};

static struct kunit_suite regions_suite = {
	.name = "hghca_regions",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = regions_init,
	.test_cases = regions_cases,
};

kunit_test_suites(&regions_suite, &regions_inline_suite);
