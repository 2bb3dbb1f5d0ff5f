// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of fast registration: what the device is told of a region, the
 * list of its pages, and REG_MR and invalidations as they are posted (interface
 * document, 4.16 and 6).
 */
#include <linux/genalloc.h>
#include <linux/mman.h>
#include <linux/scatterlist.h>
#include <linux/uaccess.h>

#include "fake.h"

#define FASTREG_SEGS	4
#define FASTREG_FIRST_BYTE	0x400000	/* the capability */
#define FASTREG_WQES	4	/* a queue */
#define FASTREG_PAGES	4	/* a region */

struct fastreg {
	struct fake *fake;
	struct hghca_pd *pd;
	struct hghca_cq *hcq;
	struct hghca_qp *hqp;	/* RC */
	struct scatterlist sgl[FASTREG_SEGS];
};

static struct hghca_qp *fastreg_qp(struct kunit *test, struct fastreg *this, enum ib_qp_type type)
{
	const struct fake_qp_attr attr = {
		.type = type, .cap = { .max_send_wr = FASTREG_WQES, .max_send_sge = 1 },
	};
	struct hghca_qp *hqp = fake_qp(test, this->pd, this->hcq, this->hcq, &attr);

	hqp->state = IB_QPS_RTS;
	fake_doorbell(this->fake, 0);
	return hqp;
}

static int fastreg_open(struct kunit *test, void (*set_up)(struct fake *fake))
{
	struct fastreg *this = kunit_kzalloc(test, sizeof(*this), GFP_KERNEL);
	int err;

	if (!this)
		return -ENOMEM;
	err = fake_test_open(test, set_up, true);
	if (err)
		return err;
	this->fake = test->priv;
	this->pd = fake_pd(test, this->fake);
	this->hcq = fake_cq(test, this->fake, 15);
	this->hqp = fastreg_qp(test, this, IB_QPT_RC);
	test->priv = this;
	return 0;
}

static void fastreg_set_up(struct fake *fake)
{
	fake->limits.caps = cpu_to_be32(0x3ff);
}

static int fastreg_init(struct kunit *test)
{
	return fastreg_open(test, fastreg_set_up);
}

static u64 fastreg_list(const struct ib_mr *ibmr, u32 page)
{
	return le64_at(to_hmr((struct ib_mr *)ibmr)->pages.list, 8 * page);
}

static void fastreg_expect_nothing_held(struct kunit *test, struct hghca_dev *hdev, size_t mtts,
					u32 key)
{
	struct hghca_hwmr next;

	KUNIT_EXPECT_EQ(test, mtts, fake_free_mtts(hdev));
	/* The index is there to be used again. */
	KUNIT_ASSERT_EQ(test, 0, hghca_hwmr_create_physical(hdev, &next, 1, 0));
	KUNIT_EXPECT_EQ(test, key >> 8, next.key >> 8);
	KUNIT_EXPECT_NE(test, key, next.key);
	KUNIT_EXPECT_EQ(test, 0, hghca_hwmr_destroy(hdev, &next));
}

/* ------------------------------------------------------------------ */
/* A region, as the device is told                                      */

static const struct fastreg_size {
	const char *name;
	u32 pages;
} fastreg_sizes[] = {
	{ "1 page", 1 },
	{ "9 pages", 9 },
	{ "1,024 pages: the most", 1024 },
};

static void fastreg_size_name(const struct fastreg_size *size, char *desc)
{
	strscpy(desc, size->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(fastreg_size, fastreg_sizes, fastreg_size_name);

static void fastreg_mpt(struct kunit *test)
{
	const struct fastreg_size *param = test->param_value;
	struct fastreg *this = test->priv;
	struct hghca_dev *hdev = this->fake->hdev;
	size_t mtts = fake_free_mtts(hdev);
	u32 mark = fake_mark(this->fake);
	struct fake_command *cmd;
	struct ib_mr *ibmr;
	u32 key;

	ibmr = fake_new_mr(this->pd, param->pages);
	KUNIT_ASSERT_NOT_NULL(test, ibmr);
	key = ibmr->rkey;
	KUNIT_EXPECT_EQ(test, key, ibmr->lkey);
	KUNIT_EXPECT_EQ(test, 1, key & 0xff);
	/* No WRITE_MTT: the device fills in what it is given. */
	KUNIT_ASSERT_EQ(test, mark + 1, fake_mark(this->fake));
	cmd = fake_nth(this->fake, mark);
	KUNIT_EXPECT_EQ(test, 0x00d, cmd->op);
	KUNIT_EXPECT_EQ(test, key >> 8, cmd->in_modifier);
	KUNIT_EXPECT_EQ(test, 0x00000d00, be32_at(cmd->mailbox, 0x00));	/* free, fast, region */
	KUNIT_EXPECT_EQ(test, 0, be32_at(cmd->mailbox, 0x04));
	KUNIT_EXPECT_EQ(test, key, be32_at(cmd->mailbox, 0x08));
	KUNIT_EXPECT_EQ(test, this->pd->pdn, be32_at(cmd->mailbox, 0x0c));
	KUNIT_EXPECT_EQ(test, 0, be64_at(cmd->mailbox, 0x10));
	KUNIT_EXPECT_EQ(test, 0, be64_at(cmd->mailbox, 0x18));
	KUNIT_EXPECT_NE(test, 0, be32_at(cmd->mailbox, 0x30));
	KUNIT_EXPECT_EQ(test, param->pages, be32_at(cmd->mailbox, 0x34));

	KUNIT_EXPECT_EQ(test, 0, hghca_dereg_mr(ibmr, NULL));
	KUNIT_ASSERT_EQ(test, mark + 2, fake_mark(this->fake));
	KUNIT_EXPECT_EQ(test, 0x00f, fake_nth(this->fake, mark + 1)->op);
	KUNIT_EXPECT_EQ(test, key >> 8, fake_nth(this->fake, mark + 1)->in_modifier);
	fastreg_expect_nothing_held(test, hdev, mtts, key);
}

static const struct fastreg_bad {
	const char *name;
	enum ib_mr_type type;
	u32 pages;
	int err;
} fastreg_bads[] = {
	{ "no page", IB_MR_TYPE_MEM_REG, 0, -EINVAL },
	{ "1,025 pages", IB_MR_TYPE_MEM_REG, 1025, -EINVAL },
	{ "all ones", IB_MR_TYPE_MEM_REG, U32_MAX, -EINVAL },
	{ "gaps", IB_MR_TYPE_SG_GAPS, 1, -EOPNOTSUPP },
	{ "integrity", IB_MR_TYPE_INTEGRITY, 1, -EOPNOTSUPP },
	{ "a user's", IB_MR_TYPE_USER, 1, -EOPNOTSUPP },
};

static void fastreg_bad_name(const struct fastreg_bad *bad, char *desc)
{
	strscpy(desc, bad->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(fastreg_bad, fastreg_bads, fastreg_bad_name);

static void fastreg_bad(struct kunit *test)
{
	const struct fastreg_bad *param = test->param_value;
	struct fastreg *this = test->priv;
	u32 mark = fake_mark(this->fake);

	KUNIT_EXPECT_PTR_EQ(test, ERR_PTR(param->err),
			    hghca_alloc_mr(&this->pd->ibpd, param->type, param->pages));
	KUNIT_EXPECT_EQ(test, mark, fake_mark(this->fake));
}

/* Refuses all SW2HW_MPT and HW2SW_MPT with the status it is given. */
static enum fake_end fastreg_refuse(struct fake *fake, const struct fake_command *cmd,
				    struct fake_answer *answer)
{
	if (cmd->op == 0x00d || cmd->op == 0x00f)
		answer->status = *(u8 *)fake->priv;
	return FAKE_ANSWERED;
}

static void fastreg_refused(struct kunit *test)
{
	struct fastreg *this = test->priv;
	struct hghca_dev *hdev = this->fake->hdev;
	size_t mtts = fake_free_mtts(hdev);
	struct ib_mr *ibmr;
	u8 status = 0x08;

	this->fake->priv = &status;
	this->fake->answer = fastreg_refuse;
	KUNIT_EXPECT_PTR_EQ(test, ERR_PTR(-ENOMEM),
			    hghca_alloc_mr(&this->pd->ibpd, IB_MR_TYPE_MEM_REG, 100));
	KUNIT_EXPECT_EQ(test, mtts, fake_free_mtts(hdev));

	this->fake->answer = NULL;
	ibmr = fake_new_mr(this->pd, 100);
	KUNIT_ASSERT_NOT_NULL(test, ibmr);
	/* Its user frees the pages in any case: a device that keeps it is given up. */
	status = 0x06;
	this->fake->answer = fastreg_refuse;
	KUNIT_EXPECT_EQ(test, 0, hghca_dereg_mr(ibmr, NULL));
	KUNIT_EXPECT_TRUE(test, hghca_dev_has_failed(hdev));
	KUNIT_EXPECT_FALSE(test, this->fake->dma);
	KUNIT_EXPECT_EQ(test, mtts, fake_free_mtts(hdev));
}

/* Its user counts the tag up; whoever has the index next has another one. */
static void fastreg_tags(struct kunit *test)
{
	static const u8 tags[] = { 0x02, 0x80, 0xff, 0x00 };
	struct fastreg *this = test->priv;
	struct ib_mr *ibmr, *next;
	u32 mark, index, i;

	for (i = 0; i < ARRAY_SIZE(tags); i++) {
		ibmr = fake_new_mr(this->pd, 1);
		KUNIT_ASSERT_NOT_NULL(test, ibmr);
		index = ibmr->rkey >> 8;
		ib_update_fast_reg_key(ibmr, tags[i]);
		mark = fake_mark(this->fake);
		KUNIT_ASSERT_EQ(test, 0, hghca_dereg_mr(ibmr, NULL));
		KUNIT_EXPECT_EQ(test, index, fake_nth(this->fake, mark)->in_modifier);
		next = fake_new_mr(this->pd, 1);
		KUNIT_ASSERT_NOT_NULL(test, next);
		KUNIT_EXPECT_EQ(test, index << 8 | (tags[i] == 0xff ? 1 : tags[i] + 1),
				next->rkey);
		KUNIT_ASSERT_EQ(test, 0, hghca_dereg_mr(next, NULL));
	}
}

/* What users of the kernel look at before they use it. */
static void fastreg_attributes(struct kunit *test)
{
	struct fastreg *this = test->priv;
	struct ib_device_attr attr;
	struct ib_udata udata = {};

	KUNIT_ASSERT_EQ(test, 0, hghca_query_device(&this->fake->hdev->ibdev, &attr, &udata));
	KUNIT_EXPECT_TRUE(test, attr.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS);
	KUNIT_EXPECT_TRUE(test, attr.device_cap_flags & IB_DEVICE_MEM_WINDOW);
	KUNIT_EXPECT_TRUE(test, attr.device_cap_flags & IB_DEVICE_MEM_WINDOW_TYPE_2B);
	KUNIT_EXPECT_FALSE(test, attr.device_cap_flags & IB_DEVICE_MEM_WINDOW_TYPE_2A);
	KUNIT_EXPECT_EQ(test, 1024, attr.max_fast_reg_page_list_len);
	KUNIT_EXPECT_EQ(test, 524286, attr.max_mw);
	KUNIT_EXPECT_EQ(test, 524286, attr.max_mr);
	KUNIT_EXPECT_EQ(test, 32, attr.max_sge_rd);
}

/* ------------------------------------------------------------------ */
/* Pages                                                                */

/* Pieces of memory: DMA address and length; 0 ends them. */
static const struct fastreg_map {
	const char *name;
	unsigned int page_size;
	struct {
		u64 dma;
		u32 length;
	} pieces[FASTREG_SEGS];
	unsigned int offset;
	/* what is to come of it */
	int mapped;
	u64 iova;
	u64 length;
	u32 pages;
	u64 list[FASTREG_PAGES];
} fastreg_maps[] = {
	{ "one page", 4096, { { 0x123456000, 4096 } }, 0,
	  1, 0x123456000, 4096, 1, { 0x123456000 } },
	{ "one byte", 4096, { { 0x123456fff, 1 } }, 0,
	  1, 0x123456fff, 1, 1, { 0x123456000 } },
	{ "two bytes around a page's end", 4096, { { 0x123456fff, 2 } }, 0,
	  1, 0x123456fff, 2, 2, { 0x123456000, 0x123457000 } },
	{ "three pieces, from an offset on", 4096,
	  { { 0x200000800, 0x800 }, { 0x300000000, 0x1000 }, { 0x100000000, 0x10 } }, 0x100,
	  3, 0x200000900, 0x1710, 3, { 0x200000000, 0x300000000, 0x100000000 } },
	{ "four pages in one piece", 4096, { { 0x200000000, 0x4000 } }, 0,
	  1, 0x200000000, 0x4000, 4, { 0x200000000, 0x200001000, 0x200002000, 0x200003000 } },
	{ "a gap ends it", 4096, { { 0x200000000, 0x800 }, { 0x300000000, 0x1000 } }, 0,
	  1, 0x200000000, 0x800, 1, { 0x200000000 } },
	{ "a piece that does not start a page ends it", 4096,
	  { { 0x200000000, 0x1000 }, { 0x300000800, 0x800 } }, 0,
	  1, 0x200000000, 0x1000, 1, { 0x200000000 } },
	{ "pieces that follow each other in a page", 4096,
	  { { 0x200000000, 0x400 }, { 0x200000400, 0x400 }, { 0x200000800, 0x1000 } }, 0,
	  3, 0x200000000, 0x1800, 2, { 0x200000000, 0x200001000 } },
	{ "no room for the second piece", 4096,
	  { { 0x200000000, 0x4000 }, { 0x300000000, 0x1000 } }, 0,
	  1, 0x200000000, 0x4000, 4, { 0x200000000, 0x200001000, 0x200002000, 0x200003000 } },
	{ "64 KiB pages", SZ_64K, { { 0x200018000, 0x8000 }, { 0x300000000, SZ_64K } }, 0,
	  2, 0x200018000, 0x18000, 2, { 0x200010000, 0x300000000 } },
	{ "1 GiB pages", SZ_1G, { { 0x40000000, SZ_1G } }, 0,
	  1, 0x40000000, SZ_1G, 1, { 0x40000000 } },
};

static void fastreg_map_name(const struct fastreg_map *map, char *desc)
{
	strscpy(desc, map->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(fastreg_map, fastreg_maps, fastreg_map_name);

static int fastreg_pieces(struct fastreg *this, const struct fastreg_map *map)
{
	int i, count = 0;

	while (count < FASTREG_SEGS && map->pieces[count].length)
		count++;
	sg_init_table(this->sgl, count);
	for (i = 0; i < count; i++) {
		sg_dma_address(&this->sgl[i]) = map->pieces[i].dma;
		sg_dma_len(&this->sgl[i]) = map->pieces[i].length;
	}
	return count;
}

static void fastreg_map(struct kunit *test)
{
	const struct fastreg_map *param = test->param_value;
	struct fastreg *this = test->priv;
	struct ib_mr *ibmr = fake_mr(test, this->pd, FASTREG_PAGES);
	struct ib_reg_wr wr = { .wr.opcode = IB_WR_REG_MR, .mr = ibmr, .key = ibmr->rkey };
	unsigned int offset = param->offset;
	int count = fastreg_pieces(this, param);
	const struct ib_send_wr *bad_wr;
	u32 mark, i;

	mark = fake_mark(this->fake);
	/* Twice: the second time as if for the first. */
	for (i = 0; i < 2; i++) {
		offset = param->offset;
		ibmr->page_size = param->page_size;
		KUNIT_ASSERT_EQ(test, param->mapped,
				hghca_map_mr_sg(ibmr, this->sgl, count, &offset));
	}
	KUNIT_EXPECT_EQ(test, 0, offset);
	KUNIT_EXPECT_EQ(test, param->iova, ibmr->iova);
	KUNIT_EXPECT_EQ(test, param->length, ibmr->length);
	KUNIT_EXPECT_EQ(test, param->pages, to_hmr(ibmr)->pages.count);
	for (i = 0; i < param->pages; i++)
		KUNIT_EXPECT_EQ(test, param->list[i], fastreg_list(ibmr, i));
	KUNIT_EXPECT_EQ(test, mark, fake_mark(this->fake));

	/* And REG_MR says so: length at 20h, pages and page size at 30h. */
	KUNIT_ASSERT_EQ(test, 0, hghca_post_send(&this->hqp->ibqp, &wr.wr, &bad_wr));
	KUNIT_EXPECT_EQ(test, param->iova, le64_at(hghca_queue_at(&this->hqp->sq.queue, 0), 0x18));
	KUNIT_EXPECT_EQ(test, param->length,
			le64_at(hghca_queue_at(&this->hqp->sq.queue, 0), 0x20));
	KUNIT_EXPECT_EQ(test, param->pages, le32_at(hghca_queue_at(&this->hqp->sq.queue, 0), 0x30));
	KUNIT_EXPECT_EQ(test, param->page_size,
			4096 << le32_at(hghca_queue_at(&this->hqp->sq.queue, 0), 0x34));
}

/* A list that is full within a piece: what is left, and a page that is not needed. */
static void fastreg_map_in_part(struct kunit *test)
{
	static const struct fastreg_map map = {
		.pieces = { { 0x200000000, 0x2000 }, { 0x300000000, 0x8000 } },
	};
	struct fastreg *this = test->priv;
	struct ib_mr *ibmr = fake_mr(test, this->pd, FASTREG_PAGES);
	struct ib_reg_wr wr = { .wr.opcode = IB_WR_REG_MR, .mr = ibmr, .key = ibmr->rkey };
	const void *slot = hghca_queue_at(&this->hqp->sq.queue, 0);
	const struct ib_send_wr *bad_wr;
	unsigned int offset = 0;
	u64 mapped;

	ibmr->page_size = 4096;
	KUNIT_ASSERT_EQ(test, 1, hghca_map_mr_sg(ibmr, this->sgl, fastreg_pieces(this, &map),
						 &offset));
	mapped = 0x2000 + offset;
	KUNIT_EXPECT_EQ(test, mapped, ibmr->length);
	KUNIT_EXPECT_LE(test, mapped, FASTREG_PAGES * 4096);
	KUNIT_EXPECT_EQ(test, FASTREG_PAGES, to_hmr(ibmr)->pages.count);
	KUNIT_ASSERT_EQ(test, 0, hghca_post_send(&this->hqp->ibqp, &wr.wr, &bad_wr));
	KUNIT_EXPECT_EQ(test, mapped, le64_at(slot, 0x20));
	/* As many pages as the addresses touch. */
	KUNIT_EXPECT_EQ(test, mapped / 4096, le32_at(slot, 0x30));
}

static const struct fastreg_bad_map {
	const char *name;
	unsigned int page_size;
	int count;
	unsigned int offset;
	int err;
} fastreg_bad_maps[] = {
	{ "pages of no bytes", 0, 1, 0, -EINVAL },
	{ "pages of 2 KiB", SZ_2K, 1, 0, -EINVAL },
	{ "pages of 4,097 bytes", 4097, 1, 0, -EINVAL },
	{ "pages of 12 KiB", 3 * SZ_4K, 1, 0, -EINVAL },
	{ "pages of 2 GiB", SZ_2G, 1, 0, -EINVAL },
	{ "nothing", SZ_4K, 0, 0, -EINVAL },
	{ "an offset beyond the first piece", SZ_4K, 1, 0x1001, -EINVAL },
};

static void fastreg_bad_map_name(const struct fastreg_bad_map *bad, char *desc)
{
	strscpy(desc, bad->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(fastreg_bad_map, fastreg_bad_maps, fastreg_bad_map_name);

static void fastreg_bad_map(struct kunit *test)
{
	static const struct fastreg_map map = { .pieces = { { 0x200000000, 0x1000 } } };
	const struct fastreg_bad_map *param = test->param_value;
	struct fastreg *this = test->priv;
	struct ib_mr *ibmr = fake_mr(test, this->pd, FASTREG_PAGES);
	unsigned int offset = param->offset;

	fastreg_pieces(this, &map);
	ibmr->page_size = param->page_size;
	KUNIT_EXPECT_EQ(test, param->err, hghca_map_mr_sg(ibmr, this->sgl, param->count, &offset));
}

/* A region of all memory has no list of pages. */
static void fastreg_map_other_kind(struct kunit *test)
{
	static const struct fastreg_map map = { .pieces = { { 0x200000000, 0x1000 } } };
	struct fastreg *this = test->priv;
	struct ib_mr *ibmr = hghca_get_dma_mr(&this->pd->ibpd, 0);

	KUNIT_ASSERT_FALSE(test, IS_ERR(ibmr));
	ibmr->device = this->pd->ibpd.device;
	ibmr->page_size = 4096;
	KUNIT_EXPECT_EQ(test, -EINVAL,
			hghca_map_mr_sg(ibmr, this->sgl, fastreg_pieces(this, &map), NULL));
	KUNIT_EXPECT_EQ(test, 0, hghca_dereg_mr(ibmr, NULL));
}

/* ------------------------------------------------------------------ */
/* Posting                                                              */

/* A region of two pages from 800h on, ready to be registered. */
static struct ib_mr *fastreg_mapped(struct kunit *test)
{
	static const struct fastreg_map map = {
		.pieces = { { 0x200000800, 0x800 }, { 0x300000000, 0x1000 } },
	};
	struct fastreg *this = test->priv;
	struct ib_mr *ibmr = fake_mr(test, this->pd, FASTREG_PAGES);

	ibmr->page_size = 4096;
	KUNIT_ASSERT_EQ(test, 2, hghca_map_mr_sg(ibmr, this->sgl, fastreg_pieces(this, &map),
						 NULL));
	return ibmr;
}

/* From alloc_mr to the WQE, its link and the doorbell: tag 2, moved to another address. */
static void fastreg_post(struct kunit *test)
{
	struct fastreg *this = test->priv;
	struct ib_mr *ibmr = fastreg_mapped(test);
	struct ib_send_wr inv = { .opcode = IB_WR_LOCAL_INV, .ex.invalidate_rkey = ibmr->rkey };
	struct ib_reg_wr wr = {
		.wr = { .next = &inv, .opcode = IB_WR_REG_MR, .send_flags = IB_SEND_SIGNALED },
		.mr = ibmr, .key = ibmr->rkey + 1,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ |
			  IB_ACCESS_RELAXED_ORDERING,
	};
	const void *slot = hghca_queue_at(&this->hqp->sq.queue, 0);
	const struct ib_send_wr *bad_wr;

	ibmr->iova = 0x7777000000000800;
	KUNIT_ASSERT_EQ(test, 0, hghca_post_send(&this->hqp->ibqp, &wr.wr, &bad_wr));
	/* Two WQEs from 0 on, REG_MR first, of four units. */
	KUNIT_EXPECT_EQ(test, (u64)(this->hqp->hw.qpn << 8 | 4) << 32 | 0x02000019,
			fake_doorbell(this->fake, 0));
	/* LOCAL_INV in the slot behind, of two. */
	KUNIT_EXPECT_EQ(test, 0x40 | 0x1a, le32_at(slot, 0x00));
	KUNIT_EXPECT_EQ(test, 2, le32_at(slot, 0x04));
	KUNIT_EXPECT_EQ(test, 8, le32_at(slot, 0x08));
	KUNIT_EXPECT_EQ(test, ibmr->rkey + 1, le32_at(slot, 0x10));
	KUNIT_EXPECT_EQ(test, 0x05, le32_at(slot, 0x14));
	KUNIT_EXPECT_EQ(test, 0x7777000000000800, le64_at(slot, 0x18));
	KUNIT_EXPECT_EQ(test, 0x1800, le64_at(slot, 0x20));
	KUNIT_EXPECT_PTR_EQ(test, (void *)to_hmr(ibmr)->pages.list,
			    fake_memory(le64_at(slot, 0x28)));
	KUNIT_EXPECT_EQ(test, 2, le32_at(slot, 0x30));
	KUNIT_EXPECT_EQ(test, 0, le32_at(slot, 0x34));
	KUNIT_EXPECT_EQ(test, 0, le64_at(slot, 0x38));
	KUNIT_EXPECT_EQ(test, ibmr->rkey, le32_at(slot, 0x50));
}

/* A zero-based region begins at 0, and 28h of REG_MR says where in its first page that stands. */
static void fastreg_zero_based(struct kunit *test)
{
	struct fastreg *this = test->priv;
	struct ib_mr *ibmr = fastreg_mapped(test);
	struct ib_reg_wr wr = {
		.wr.opcode = IB_WR_REG_MR, .mr = ibmr, .key = ibmr->rkey,
		.access = IB_ACCESS_REMOTE_READ | IB_ZERO_BASED,
	};
	const void *slot = hghca_queue_at(&this->hqp->sq.queue, 0);
	const struct ib_send_wr *bad_wr;

	this->fake->hdev->limits.caps |= FASTREG_FIRST_BYTE;
	KUNIT_ASSERT_EQ(test, 0, hghca_post_send(&this->hqp->ibqp, &wr.wr, &bad_wr));
	KUNIT_EXPECT_EQ(test, 0x24, le32_at(slot, 0x14));
	KUNIT_EXPECT_EQ(test, 0, le64_at(slot, 0x18));
	KUNIT_EXPECT_EQ(test, 0x1800, le64_at(slot, 0x20));
	KUNIT_EXPECT_EQ(test, 2, le32_at(slot, 0x30));
	KUNIT_EXPECT_EQ(test, 0x800, le32_at(slot, 0x38));
	KUNIT_EXPECT_EQ(test, 0, le32_at(slot, 0x3c));
}

/* A work request that is well but for one thing. */
enum fastreg_fault {
	NO_FAULT,
	NOT_MAPPED,
	NO_LENGTH,
	TOO_LONG,	/* by a page more than are listed */
	MOVED,		/* to an offset at which it touches a page more than are listed */
	WRAPS,
	HUGE,		/* its length and offset add up to more than 64 bits */
	OTHER_KEY,
	OTHER_KIND,
	ON_DEMAND,
	BINDING,
	ODD_PAGES,
	QUEUE_FULL,
	NO_FIRST_BYTE,	/* the device has no zero-based regions that start in a page */
};

static const struct fastreg_refusal {
	const char *name;
	enum fastreg_fault fault;
	int err;
} fastreg_refusals[] = {
	{ "nothing wrong", NO_FAULT, 0 },
	{ "a region that was not mapped", NOT_MAPPED, -EINVAL },
	{ "a region without a byte", NO_LENGTH, -EINVAL },
	{ "longer than its pages", TOO_LONG, -EINVAL },
	{ "an address at which the pages do not suffice", MOVED, -EINVAL },
	{ "addresses that wrap", WRAPS, -EINVAL },
	{ "all ones bytes", HUGE, -EINVAL },
	{ "another region's key", OTHER_KEY, -EINVAL },
	{ "a region of all memory", OTHER_KIND, -EINVAL },
	{ "on-demand paging", ON_DEMAND, -EINVAL },
	{ "window binding", BINDING, -EINVAL },
	{ "a page size changed since", ODD_PAGES, -EINVAL },
	{ "a full queue", QUEUE_FULL, -ENOMEM },
	{ "zero-based, not from a page's start on", NO_FIRST_BYTE, -EINVAL },
};

static void fastreg_refusal_name(const struct fastreg_refusal *refusal, char *desc)
{
	strscpy(desc, refusal->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(fastreg_refusal, fastreg_refusals, fastreg_refusal_name);

static void fastreg_spoil(struct kunit *test, struct ib_reg_wr *wr, struct ib_mr *dma_mr,
			  enum fastreg_fault fault)
{
	struct fastreg *this = test->priv;

	switch (fault) {
	case NOT_MAPPED:
		wr->mr = fake_mr(test, this->pd, FASTREG_PAGES);
		wr->mr->page_size = 4096;
		wr->key = wr->mr->rkey;
		break;
	case NO_LENGTH:
		wr->mr->length = 0;
		break;
	case TOO_LONG:
		wr->mr->length += 1;
		break;
	case MOVED:
		wr->mr->iova += 1;
		break;
	case WRAPS:
		wr->mr->iova = 0xfffffffffffff800;
		break;
	case HUGE:
		wr->mr->length = U64_MAX;
		break;
	case OTHER_KEY:
		wr->key += 0x100;
		break;
	case OTHER_KIND:
		wr->mr = dma_mr;
		wr->key = dma_mr->rkey;
		break;
	case ON_DEMAND:
		wr->access |= IB_ACCESS_ON_DEMAND;
		break;
	case BINDING:
		wr->access |= IB_ACCESS_MW_BIND;
		break;
	case ODD_PAGES:
		wr->mr->page_size = 4095;
		break;
	case QUEUE_FULL:
		this->hqp->sq.head = FASTREG_WQES;
		break;
	case NO_FIRST_BYTE:
		this->fake->hdev->limits.caps &= ~FASTREG_FIRST_BYTE;
		break;
	default:
		break;
	}
}

static void fastreg_refusal(struct kunit *test)
{
	const struct fastreg_refusal *param = test->param_value;
	struct fastreg *this = test->priv;
	struct ib_mr *dma_mr = hghca_get_dma_mr(&this->pd->ibpd, 0);
	struct ib_mr *ibmr = fastreg_mapped(test);
	struct ib_reg_wr wr = {
		.wr.opcode = IB_WR_REG_MR, .mr = ibmr, .key = ibmr->rkey,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ZERO_BASED,
	};
	const struct ib_send_wr *bad_wr = NULL;
	u32 head;

	KUNIT_ASSERT_FALSE(test, IS_ERR(dma_mr));
	dma_mr->device = this->pd->ibpd.device;
	dma_mr->page_size = 4096;
	dma_mr->length = 1;
	this->fake->hdev->limits.caps |= FASTREG_FIRST_BYTE;
	fastreg_spoil(test, &wr, dma_mr, param->fault);
	head = this->hqp->sq.head;
	KUNIT_EXPECT_EQ(test, param->err, hghca_post_send(&this->hqp->ibqp, &wr.wr, &bad_wr));
	KUNIT_EXPECT_PTR_EQ(test, param->err ? &wr.wr : NULL, bad_wr);
	KUNIT_EXPECT_EQ(test, head + !param->err, this->hqp->sq.head);
	if (param->err)
		KUNIT_EXPECT_EQ(test, 0, fake_doorbell(this->fake, 0));
	this->hqp->sq.head = 0;
	KUNIT_EXPECT_EQ(test, 0, hghca_dereg_mr(dma_mr, NULL));
}

static const struct fastreg_service {
	const char *name;
	enum ib_qp_type type;
	enum ib_wr_opcode opcode;
	int err;
} fastreg_services[] = {
	{ "RC: REG_MR", IB_QPT_RC, IB_WR_REG_MR, 0 },
	{ "RC: LOCAL_INV", IB_QPT_RC, IB_WR_LOCAL_INV, 0 },
	{ "RC: SEND_INV", IB_QPT_RC, IB_WR_SEND_WITH_INV, 0 },
	{ "RC: RDMA_READ_WITH_INV", IB_QPT_RC, IB_WR_RDMA_READ_WITH_INV, -EOPNOTSUPP },
	{ "UC: REG_MR", IB_QPT_UC, IB_WR_REG_MR, 0 },
	{ "UC: LOCAL_INV", IB_QPT_UC, IB_WR_LOCAL_INV, 0 },
	{ "UC: SEND_INV", IB_QPT_UC, IB_WR_SEND_WITH_INV, -EINVAL },
	{ "UD: REG_MR", IB_QPT_UD, IB_WR_REG_MR, -EINVAL },
	{ "UD: LOCAL_INV", IB_QPT_UD, IB_WR_LOCAL_INV, -EINVAL },
	{ "UD: SEND_INV", IB_QPT_UD, IB_WR_SEND_WITH_INV, -EINVAL },
};

static void fastreg_service_name(const struct fastreg_service *service, char *desc)
{
	strscpy(desc, service->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(fastreg_service, fastreg_services, fastreg_service_name);

/* Each request takes no more memory than it has: KASAN sees who looks beyond. */
static void fastreg_expect_post(struct kunit *test, struct hghca_qp *hqp, struct ib_mr *ibmr,
				enum ib_wr_opcode opcode, int err)
{
	size_t size = opcode == IB_WR_REG_MR ? sizeof(struct ib_reg_wr) :
					       sizeof(struct ib_send_wr);
	struct ib_send_wr *wr = kunit_kzalloc(test, size, GFP_KERNEL);
	const struct ib_send_wr *bad_wr = NULL;

	KUNIT_ASSERT_NOT_NULL(test, wr);
	wr->opcode = opcode;
	if (opcode == IB_WR_REG_MR) {
		container_of(wr, struct ib_reg_wr, wr)->mr = ibmr;
		container_of(wr, struct ib_reg_wr, wr)->key = ibmr->rkey;
	}
	KUNIT_EXPECT_EQ(test, err, hghca_post_send(&hqp->ibqp, wr, &bad_wr));
	KUNIT_EXPECT_PTR_EQ(test, err ? wr : NULL, bad_wr);
}

static void fastreg_service(struct kunit *test)
{
	const struct fastreg_service *param = test->param_value;
	struct fastreg *this = test->priv;
	struct hghca_qp *hqp = fastreg_qp(test, this, param->type);

	fastreg_expect_post(test, hqp, fastreg_mapped(test), param->opcode, param->err);
}

/* ------------------------------------------------------------------ */
/* Who may post REG_MR                                                  */

static struct ib_qp_attr fastreg_to_init = { .qp_state = IB_QPS_INIT, .port_num = 1 };
static const int fastreg_to_init_mask = IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
					IB_QP_ACCESS_FLAGS;

/* Word B0h of RST2INIT's mailbox, bit 31. */
static u32 fastreg_trust(struct kunit *test, struct hghca_qp *hqp)
{
	struct fastreg *this = test->priv;
	u32 mark = fake_mark(this->fake);

	hqp->state = IB_QPS_RESET;
	KUNIT_ASSERT_EQ(test, 0, hghca_modify_qp(&hqp->ibqp, &fastreg_to_init,
						 fastreg_to_init_mask, NULL));
	KUNIT_ASSERT_EQ(test, 0x19, fake_nth(this->fake, mark)->op);
	return be32_at(fake_nth(this->fake, mark)->mailbox, 0xb0);
}

static void fastreg_trusted(struct kunit *test)
{
	struct fastreg *this = test->priv;

	KUNIT_EXPECT_EQ(test, 0x80000000, fastreg_trust(test, this->hqp));
	KUNIT_EXPECT_EQ(test, 0x80000000, fastreg_trust(test, fastreg_qp(test, this, IB_QPT_UC)));
}

/* A user's QP, without queues, so that it takes no memory of the user's. */
static void fastreg_user_not_trusted(struct kunit *test)
{
	struct fastreg *this = test->priv;
	struct uverbs_attr_bundle *bundle = kunit_kzalloc(test, sizeof(*bundle), GFP_KERNEL);
	struct hghca_ucontext *uctx = kunit_kzalloc(test, sizeof(*uctx), GFP_KERNEL);
	struct hghca_qp *hqp = kunit_kzalloc(test, sizeof(*hqp), GFP_KERNEL);
	struct ib_qp_init_attr init = {
		.send_cq = &this->hcq->ibcq, .recv_cq = &this->hcq->ibcq, .qp_type = IB_QPT_RC,
	};

	KUNIT_ASSERT_NOT_NULL(test, bundle);
	KUNIT_ASSERT_NOT_NULL(test, uctx);
	KUNIT_ASSERT_NOT_NULL(test, hqp);
	uctx->ibuctx.device = this->pd->ibpd.device;
	bundle->context = &uctx->ibuctx;
	bundle->driver_udata.inbuf = (void __user *)fake_user_memory(test, PAGE_SIZE, PROT_READ);
	bundle->driver_udata.inlen = sizeof(struct hghca_create_qp);
	hqp->ibqp.device = this->pd->ibpd.device;
	hqp->ibqp.pd = &this->pd->ibpd;
	hqp->ibqp.send_cq = init.send_cq;
	hqp->ibqp.recv_cq = init.recv_cq;
	hqp->ibqp.qp_type = init.qp_type;
	KUNIT_ASSERT_EQ(test, 0, hghca_create_qp(&hqp->ibqp, &init, &bundle->driver_udata));
	KUNIT_EXPECT_PTR_EQ(test, uctx, hqp->uctx);
	KUNIT_EXPECT_EQ(test, 0, fastreg_trust(test, hqp));
	KUNIT_EXPECT_EQ(test, 0, hghca_destroy_qp(&hqp->ibqp, fake_no_udata(bundle)));
}

static struct kunit_case fastreg_cases[] = {
	KUNIT_CASE_PARAM(fastreg_mpt, fastreg_size_gen_params),
	KUNIT_CASE_PARAM(fastreg_bad, fastreg_bad_gen_params),
	KUNIT_CASE(fastreg_refused),
	KUNIT_CASE(fastreg_tags),
	KUNIT_CASE(fastreg_attributes),
	KUNIT_CASE_PARAM(fastreg_map, fastreg_map_gen_params),
	KUNIT_CASE(fastreg_map_in_part),
	KUNIT_CASE_PARAM(fastreg_bad_map, fastreg_bad_map_gen_params),
	KUNIT_CASE(fastreg_map_other_kind),
	KUNIT_CASE(fastreg_post),
	KUNIT_CASE(fastreg_zero_based),
	KUNIT_CASE_PARAM(fastreg_refusal, fastreg_refusal_gen_params),
	KUNIT_CASE_PARAM(fastreg_service, fastreg_service_gen_params),
	KUNIT_CASE(fastreg_trusted),
	KUNIT_CASE(fastreg_user_not_trusted),
	{}
};

static struct kunit_suite fastreg_suite = {
	.name = "hghca_fast_reg",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = fastreg_init,
	.test_cases = fastreg_cases,
};

/* ------------------------------------------------------------------ */
/* A device without the capability                                      */

static void fastreg_none_set_up(struct fake *fake)
{
	fake->limits.caps = cpu_to_be32(0x1ff);
}

static int fastreg_none_init(struct kunit *test)
{
	return fastreg_open(test, fastreg_none_set_up);
}

static void fastreg_none_attributes(struct kunit *test)
{
	struct fastreg *this = test->priv;
	struct ib_device_attr attr;
	struct ib_udata udata = {};

	KUNIT_ASSERT_EQ(test, 0, hghca_query_device(&this->fake->hdev->ibdev, &attr, &udata));
	KUNIT_EXPECT_FALSE(test, attr.device_cap_flags &
			   (IB_DEVICE_MEM_MGT_EXTENSIONS | IB_DEVICE_MEM_WINDOW |
			    IB_DEVICE_MEM_WINDOW_TYPE_2A | IB_DEVICE_MEM_WINDOW_TYPE_2B));
	KUNIT_EXPECT_EQ(test, 0, attr.max_fast_reg_page_list_len);
	KUNIT_EXPECT_EQ(test, 0, attr.max_mw);
	KUNIT_EXPECT_EQ(test, 262143, attr.max_mr);
}

static void fastreg_none_posting(struct kunit *test)
{
	static const enum ib_wr_opcode opcodes[] = {
		IB_WR_LOCAL_INV, IB_WR_SEND_WITH_INV, IB_WR_RDMA_READ_WITH_INV,
	};
	struct fastreg *this = test->priv;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(opcodes); i++)
		fastreg_expect_post(test, this->hqp, NULL, opcodes[i], -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, 0, fake_doorbell(this->fake, 0));
}

static void fastreg_none_trust(struct kunit *test)
{
	struct fastreg *this = test->priv;

	KUNIT_EXPECT_EQ(test, 0, fastreg_trust(test, this->hqp));
}

static struct kunit_case fastreg_none_cases[] = {
	KUNIT_CASE(fastreg_none_attributes),
	KUNIT_CASE(fastreg_none_posting),
	KUNIT_CASE(fastreg_none_trust),
	{}
};

static struct kunit_suite fastreg_none_suite = {
	.name = "hghca_no_mem_mgt",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = fastreg_none_init,
	.test_cases = fastreg_none_cases,
};

kunit_test_suites(&fastreg_suite, &fastreg_none_suite);
