// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of the driver of ERNIC and ETRNIC: memory regions, and the protection domain table
 * that peers reach them by (docs/reference/ernic.rst, 2.3 and 7).
 */
#include <linux/mman.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "fake.h"
#include "ernicfake.h"

#define REGION_IOVA	0x1234567890000800ULL
#define REGION_OFFSET	0x800

/* Offsets in an entry. */
#define REGION_PDPDNUM		0x00
#define REGION_VIRTADDR		0x04
#define REGION_BUFBASEADDR	0x0c
#define REGION_BUFRKEY		0x14
#define REGION_WRRDBUFLEN	0x18
#define REGION_ACCESSDESC	0x1c

struct region {
	struct ernic_fake *fake;
	struct ib_pd *pd;
	unsigned long memory;
};

static struct region *region_open(struct kunit *test, bool is_ernic, u32 extensions)
{
	struct region *region = kunit_kzalloc(test, sizeof(*region), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, region);
	region->fake = ernic_fake_create(test, is_ernic, 64, extensions);
	KUNIT_ASSERT_NOT_NULL(test, region->fake);
	KUNIT_ASSERT_EQ(test, 0, ernic_fake_open(region->fake));
	region->memory = fake_user_memory(test, SZ_2M, PROT_READ | PROT_WRITE);
	ernic_fake_check(test, region->fake);
	region->pd = ernic_fake_pd(test, region->fake);
	return region;
}

static struct ib_mr *region_register(struct region *region, u64 length, int access)
{
	return ernic_reg_user_mr(region->pd, region->memory + REGION_OFFSET, length, REGION_IOVA,
				 access, NULL, NULL);
}

static void region_deregister(struct region *region, struct ib_mr *mr)
{
	ernic_dereg_mr(mr, NULL);
	flush_workqueue(region->fake->edev->wq);
}

static u64 region_get64(struct region *region, u32 entry, u32 offset)
{
	return ernic_fake_pd_get(region->fake, entry, offset) |
	       (u64)ernic_fake_pd_get(region->fake, entry, offset + 4) << 32;
}

static const struct region_access {
	const char *name;
	int access;
	u32 bits;
} region_accesses[] = {
	{ "read", IB_ACCESS_REMOTE_READ, 0 },
	{ "write", IB_ACCESS_REMOTE_WRITE | IB_ACCESS_LOCAL_WRITE, 1 },
	{ "both", IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_LOCAL_WRITE, 2 },
};

KUNIT_ARRAY_PARAM_DESC(region_access, region_accesses, name);

/* 3 pages and a half: the entry has a list of them, or their base where they are one range. */
static void region_entry(struct kunit *test)
{
	const struct region_access *param = test->param_value;
	struct region *region = region_open(test, true, FAKE_RECORDS | FAKE_PAGES);
	struct ib_mr *mr = region_register(region, 0x3000, param->access);
	u32 access, entry, i;
	struct page *page;
	u64 base;

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	entry = mr->rkey >> 8;
	KUNIT_ASSERT_GT(test, 256, entry);
	/* R_Key: entry * 100h + BUFRKEY. */
	KUNIT_EXPECT_EQ(test, mr->rkey & 0xff, ernic_fake_pd_get(region->fake, entry, REGION_BUFRKEY));
	KUNIT_EXPECT_EQ(test, 0x21, ernic_fake_pd_get(region->fake, entry, REGION_PDPDNUM));
	KUNIT_EXPECT_EQ(test, REGION_IOVA, region_get64(region, entry, REGION_VIRTADDR));
	KUNIT_EXPECT_EQ(test, 0x3000, ernic_fake_pd_get(region->fake, entry, REGION_WRRDBUFLEN));
	access = ernic_fake_pd_get(region->fake, entry, REGION_ACCESSDESC);
	KUNIT_EXPECT_EQ(test, param->bits, access & ~4);
	base = region_get64(region, entry, REGION_BUFBASEADDR);
	for (i = 0; i < 4; i++) {
		u64 bus = access & 4 ? le64_to_cpu(((__le64 *)phys_to_virt(base))[i]) :
				       base - REGION_OFFSET + i * 0x1000;

		KUNIT_ASSERT_EQ(test, 1, get_user_pages_fast(region->memory + i * 0x1000, 1, 0, &page));
		KUNIT_EXPECT_EQ(test, page_to_phys(page), bus);
		put_page(page);
	}
	/* The access is a reserved one when the region is gone, before its memory is. */
	region_deregister(region, mr);
	KUNIT_EXPECT_EQ(test, 3, ernic_fake_pd_get(region->fake, entry, REGION_ACCESSDESC));
	KUNIT_EXPECT_EQ(test, 0, ernic_fake_pd_get(region->fake, entry, REGION_WRRDBUFLEN));
}

/* An old R_Key does not fit the next region of its entry. */
static void region_keys(struct kunit *test)
{
	struct region *region = region_open(test, true, FAKE_RECORDS | FAKE_PAGES);
	u32 seen[4], i, k;

	for (i = 0; i < ARRAY_SIZE(seen); i++) {
		struct ib_mr *mr = region_register(region, 8, IB_ACCESS_REMOTE_READ);

		KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
		seen[i] = mr->rkey;
		for (k = 0; k < i; k++)
			KUNIT_EXPECT_NE(test, seen[k], seen[i]);
		region_deregister(region, mr);
	}
	KUNIT_EXPECT_EQ(test, seen[0] >> 8, seen[3] >> 8);
}

static const struct region_bad {
	const char *name;
	bool is_ernic;
	u64 length;
	int access;
	int err;
} region_bads[] = {
	{ "local region", true, 8, IB_ACCESS_LOCAL_WRITE, 0 },
	{ "local region of an ETRNIC", false, 8, IB_ACCESS_LOCAL_WRITE, 0 },
	{ "remote access to an ETRNIC", false, 8, IB_ACCESS_REMOTE_READ, -EOPNOTSUPP },
	{ "atomic operations, which no peer can do", true, 8,
	  IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_LOCAL_WRITE, 0 },
	{ "windows", true, 8, IB_ACCESS_MW_BIND, -EOPNOTSUPP },
	{ "no bytes", true, 0, IB_ACCESS_LOCAL_WRITE, -EINVAL },
	{ "2^31 + 1 bytes", true, 0x80000001, IB_ACCESS_LOCAL_WRITE, -EINVAL },
};

KUNIT_ARRAY_PARAM_DESC(region_bad, region_bads, name);

static void region_refused(struct kunit *test)
{
	const struct region_bad *param = test->param_value;
	struct region *region = region_open(test, param->is_ernic, FAKE_RECORDS | FAKE_PAGES);
	struct ib_mr *mr = region_register(region, param->length, param->access);
	u32 entry;

	KUNIT_EXPECT_EQ(test, param->err, PTR_ERR_OR_ZERO(mr));
	/* No entry names it. */
	for (entry = 0; param->is_ernic && entry < 256; entry++)
		KUNIT_EXPECT_EQ(test, 0, ernic_fake_pd_get(region->fake, entry, REGION_WRRDBUFLEN));
	if (!IS_ERR(mr))
		region_deregister(region, mr);
}

/* Each thing that a region needs is refused in turn: no entry is left, and no page is pinned. */
static void region_no_memory(struct kunit *test)
{
	struct region *region = region_open(test, true, FAKE_RECORDS | FAKE_PAGES);
	struct ib_mr *mr = NULL;
	u32 number;

	for (number = 1; number < 20; number++) {
		region->fake->requests = 0;
		region->fake->refuse = number;
		mr = region_register(region, 0x3000, IB_ACCESS_REMOTE_READ);
		region->fake->refuse = 0;
		if (!IS_ERR(mr))
			break;
		KUNIT_EXPECT_EQ(test, -ENOMEM, PTR_ERR(mr));
		KUNIT_EXPECT_EQ(test, 0, atomic64_read(&current->mm->pinned_vm));
	}
	/* The region, its memory, mapping, two arrays, its entry and its L_Key. */
	KUNIT_EXPECT_LT(test, 7, number);
	KUNIT_ASSERT_GT(test, 20, number);
	KUNIT_EXPECT_EQ(test, 0, mr->rkey >> 8);
	region_deregister(region, mr);
}

/* There are 256 entries, here of one page each. */
static void region_entries(struct kunit *test)
{
	struct region *region = region_open(test, true, FAKE_RECORDS | FAKE_PAGES);
	struct ib_mr **mrs = kunit_kcalloc(test, 257, sizeof(*mrs), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, mrs);
	for (i = 0; i < 257; i++) {
		mrs[i] = ernic_reg_user_mr(region->pd, region->memory + i * 0x1000, 8, REGION_IOVA,
					   IB_ACCESS_REMOTE_READ | IB_ACCESS_LOCAL_WRITE, NULL, NULL);
		if (IS_ERR(mrs[i]))
			break;
		KUNIT_EXPECT_EQ(test, i, mrs[i]->rkey >> 8);
	}
	KUNIT_EXPECT_EQ(test, 256, i);
	KUNIT_EXPECT_EQ(test, -ENOMEM, PTR_ERR_OR_ZERO(mrs[i]));
	while (i--)
		ernic_dereg_mr(mrs[i], NULL);
	flush_workqueue(region->fake->edev->wq);
}

/* ------------------------------------------------------------------ */
/* Work requests that name regions                                      */

static const struct region_part {
	const char *name;
	int access;
	enum ib_wr_opcode verb;
	s64 offset;
	u32 length;
	bool other_pd;
	bool bad_key;
	int err;
	bool fails;
} region_parts[] = {
	{ "all of it", 0, IB_WR_RDMA_WRITE, 0, 0x3000 },
	{ "its last byte", 0, IB_WR_RDMA_WRITE, 0x2fff, 1 },
	{ "a byte too many", 0, IB_WR_RDMA_WRITE, 0, 0x3001, .fails = true },
	{ "a byte before it", 0, IB_WR_RDMA_WRITE, -1, 1, .fails = true },
	{ "behind it", 0, IB_WR_RDMA_WRITE, 0x3000, 1, .fails = true },
	{ "a length that wraps", 0, IB_WR_RDMA_WRITE, 1, 0xffffffff, .err = -EINVAL },
	{ "of another PD", 0, IB_WR_RDMA_WRITE, 0, 8, .other_pd = true, .fails = true },
	{ "another L_Key", 0, IB_WR_RDMA_WRITE, 0, 8, .bad_key = true, .fails = true },
	{ "a READ into it", IB_ACCESS_LOCAL_WRITE, IB_WR_RDMA_READ, 0, 8 },
	{ "a READ into what may not be written", 0, IB_WR_RDMA_READ, 0, 8, .fails = true },
};

KUNIT_ARRAY_PARAM_DESC(region_part, region_parts, name);

static void region_posted(struct kunit *test)
{
	static const struct ernic_fake_qp attr = { .sends = 4, .receives = 1, .sges = 1, .user = true };
	const struct region_part *param = test->param_value;
	struct region *region = region_open(test, true, FAKE_RECORDS | FAKE_PAGES);
	struct ib_mr *mr = region_register(region, 0x3000, param->access);
	struct ib_pd *pd = param->other_pd ? ernic_fake_pd(test, region->fake) : region->pd;
	struct ib_sge sge = { .addr = REGION_IOVA + param->offset, .length = param->length };
	struct ib_rdma_wr wr = {
		.wr = { .opcode = param->verb, .sg_list = &sge, .num_sge = 1 },
	};
	struct ib_cq *cq = ernic_fake_cq(test, region->fake, 10);
	const struct ib_send_wr *bad;
	struct ib_wc wc = {};
	struct ernic_qp *qp;

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	qp = ernic_fake_qp(test, pd, cq, &attr);
	ernic_fake_connect(test, region->fake, qp);
	sge.lkey = mr->lkey + param->bad_key;
	KUNIT_EXPECT_EQ(test, param->err, ernic_post_send(&qp->ibqp, &wr.wr, &bad));
	/* A request that fails in the driver completes, and the hardware does not get it. */
	KUNIT_EXPECT_EQ(test, !param->err && !param->fails,
			ernic_fake_qp_get(region->fake, 2, FAKE_SQPI));
	KUNIT_EXPECT_EQ(test, param->fails, ernic_poll_cq(cq, 1, &wc));
	if (param->fails)
		KUNIT_EXPECT_EQ(test, (int)IB_WC_LOC_PROT_ERR, (int)wc.status);
	/* The region lives as long as the send does. */
	ernic_dereg_mr(mr, NULL);
	ernic_fake_destroy_qp(test, qp);
	flush_workqueue(region->fake->edev->wq);
	KUNIT_EXPECT_EQ(test, 0, atomic64_read(&current->mm->pinned_vm));
}

/* A peer invalidates: the entry is disabled when the completion is there, and not before. */
static void region_invalidated(struct kunit *test)
{
	static const struct ernic_fake_qp attr = { .sends = 4, .receives = 4, .sges = 1 };
	struct region *region = region_open(test, true, FAKE_RECORDS | FAKE_PAGES);
	struct ernic_fake *fake = region->fake;
	struct ib_mr *mr = region_register(region, 8, IB_ACCESS_REMOTE_READ);
	struct ib_cq *cq = ernic_fake_cq(test, fake, 10);
	u8 *buffer = kunit_kzalloc(test, 16, GFP_KERNEL);
	struct ib_sge sge = { .addr = (uintptr_t)buffer, .length = 16 };
	struct ib_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };
	struct ernic_fake_message message = { .data = "x", .bytes = 1, .opcode = 0x17 };
	const struct ib_recv_wr *bad;
	struct ib_wc wc = {};
	struct ernic_qp *qp;
	u32 entry;

	KUNIT_ASSERT_NOT_NULL(test, buffer);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	entry = mr->rkey >> 8;
	qp = ernic_fake_qp(test, region->pd, cq, &attr);
	ernic_fake_connect(test, fake, qp);
	KUNIT_ASSERT_EQ(test, 0, ernic_post_recv(&qp->ibqp, &wr, &bad));
	KUNIT_ASSERT_EQ(test, 0, ernic_post_recv(&qp->ibqp, &wr, &bad));
	message.imm = cpu_to_be32(mr->rkey);
	ernic_fake_receive(fake, 2, &message);
	KUNIT_EXPECT_EQ(test, 8, ernic_fake_pd_get(fake, entry, REGION_WRRDBUFLEN));
	KUNIT_ASSERT_EQ(test, 1, ernic_poll_cq(cq, 1, &wc));
	KUNIT_EXPECT_EQ(test, 3, ernic_fake_pd_get(fake, entry, REGION_ACCESSDESC));
	KUNIT_EXPECT_EQ(test, 0, ernic_fake_pd_get(fake, entry, REGION_WRRDBUFLEN));
	KUNIT_EXPECT_EQ(test, (int)IB_WC_SUCCESS, (int)wc.status);
	KUNIT_EXPECT_EQ(test, IB_WC_WITH_INVALIDATE, wc.wc_flags);
	KUNIT_EXPECT_EQ(test, mr->rkey, wc.ex.invalidate_rkey);
	/* What is no R_Key of the PD fails. */
	message.imm = cpu_to_be32(mr->rkey + 1);
	ernic_fake_receive(fake, 2, &message);
	KUNIT_ASSERT_EQ(test, 1, ernic_poll_cq(cq, 1, &wc));
	KUNIT_EXPECT_NE(test, (int)IB_WC_SUCCESS, (int)wc.status);
	region_deregister(region, mr);
}

static struct kunit_case region_cases[] = {
	KUNIT_CASE_PARAM(region_entry, region_access_gen_params),
	KUNIT_CASE(region_keys),
	KUNIT_CASE_PARAM(region_refused, region_bad_gen_params),
	KUNIT_CASE(region_no_memory),
	KUNIT_CASE(region_entries),
	KUNIT_CASE_PARAM(region_posted, region_part_gen_params),
	KUNIT_CASE(region_invalidated),
	{}
};

static struct kunit_suite region_suite = {
	.name = "hghca_ernic_regions",
	.test_cases = region_cases,
};
kunit_test_suite(region_suite);
