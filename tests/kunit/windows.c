// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of memory windows and of the rights that come with them: what the
 * device is told (interface document, 4.16), and regions that have windows.
 */
#include <linux/genalloc.h>
#include <linux/mman.h>
#include <linux/uaccess.h>

#include "fake.h"

struct windows {
	struct fake *fake;
	struct hghca_pd *pd;
	struct hghca_mw *mw;
	/* What the device answers to an opcode, from now on. */
	u16 refused;
	u8 status;
};

static enum fake_end windows_answer(struct fake *fake, const struct fake_command *cmd,
				    struct fake_answer *answer)
{
	struct windows *this = fake->priv;

	if (cmd->op == this->refused)
		answer->status = this->status;
	return FAKE_ANSWERED;
}

static int windows_init(struct kunit *test)
{
	struct windows *this = kunit_kzalloc(test, sizeof(*this), GFP_KERNEL);
	int err;

	if (!this)
		return -ENOMEM;
	err = fake_test_init(test);
	if (err)
		return err;
	this->fake = test->priv;
	this->pd = fake_pd(test, this->fake);
	this->mw = kunit_kzalloc(test, sizeof(*this->mw), GFP_KERNEL);
	if (!this->mw)
		return -ENOMEM;
	this->mw->ibmw.device = this->pd->ibpd.device;
	this->mw->ibmw.pd = &this->pd->ibpd;
	this->fake->priv = this;
	this->fake->answer = windows_answer;
	test->priv = this;
	return 0;
}

/* ------------------------------------------------------------------ */
/* Windows                                                              */

static const struct windows_type {
	const char *name;
	enum ib_mw_type type;
	u32 flags;
} windows_types[] = {
	{ "type 1", IB_MW_TYPE_1, 0x0800 },		/* free */
	{ "type 2B", IB_MW_TYPE_2, 0x1800 },	/* free, of a QP */
};

static void windows_type_name(const struct windows_type *type, char *desc)
{
	strscpy(desc, type->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(windows_type, windows_types, windows_type_name);

static void windows_mpt(struct kunit *test)
{
	const struct windows_type *param = test->param_value;
	struct windows *this = test->priv;
	struct hghca_dev *hdev = this->fake->hdev;
	size_t mtts = fake_free_mtts(hdev);
	struct ib_mw *ibmw = &this->mw->ibmw;
	struct ib_udata udata = {};
	struct fake_command *cmd;
	u32 mark, rkey;

	ibmw->type = param->type;
	KUNIT_ASSERT_EQ(test, 0, hghca_alloc_mw(ibmw, &udata));
	rkey = ibmw->rkey;
	cmd = fake_nth(this->fake, fake_mark(this->fake) - 1);
	KUNIT_ASSERT_EQ(test, 0x00d, cmd->op);
	KUNIT_EXPECT_EQ(test, rkey >> 8, cmd->in_modifier);
	KUNIT_EXPECT_EQ(test, param->flags, be32_at(cmd->mailbox, 0x00));
	KUNIT_EXPECT_EQ(test, rkey, be32_at(cmd->mailbox, 0x08));
	KUNIT_EXPECT_EQ(test, this->pd->pdn, be32_at(cmd->mailbox, 0x0c));
	KUNIT_EXPECT_EQ(test, 0, be32_at(cmd->mailbox, 0x34));
	/* A window has no pages of its own. */
	KUNIT_EXPECT_EQ(test, mtts, fake_free_mtts(hdev));

	mark = fake_mark(this->fake);
	KUNIT_EXPECT_EQ(test, 0, hghca_dealloc_mw(ibmw));
	KUNIT_EXPECT_EQ(test, 0x00f, fake_nth(this->fake, mark)->op);
	KUNIT_EXPECT_EQ(test, rkey >> 8, fake_nth(this->fake, mark)->in_modifier);
	KUNIT_EXPECT_FALSE(test, fake_has_keys(hdev));

	/* The next one at the same index has another key. */
	KUNIT_ASSERT_EQ(test, 0, hghca_alloc_mw(ibmw, &udata));
	KUNIT_EXPECT_EQ(test, rkey >> 8, ibmw->rkey >> 8);
	KUNIT_EXPECT_NE(test, rkey, ibmw->rkey);
	KUNIT_EXPECT_EQ(test, 0, hghca_dealloc_mw(ibmw));
}

static void windows_refused(struct kunit *test)
{
	static const u16 ops[] = { 0xffa, 0x00d };
	struct windows *this = test->priv;
	struct hghca_dev *hdev = this->fake->hdev;
	struct ib_mw *ibmw = &this->mw->ibmw;
	struct ib_udata udata = {};
	u32 i;

	ibmw->type = IB_MW_TYPE_1;
	this->status = 0x08;
	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		this->refused = ops[i];
		KUNIT_EXPECT_EQ(test, -ENOMEM, hghca_alloc_mw(ibmw, &udata));
		KUNIT_EXPECT_FALSE(test, fake_has_keys(hdev));
		fake_trim(hdev);
		KUNIT_EXPECT_EQ(test, 0, fake_icm_blocks(hdev, HGHCA_ICM_MPT));
	}
	this->refused = 0;
	KUNIT_ASSERT_EQ(test, 0, hghca_alloc_mw(ibmw, &udata));
	KUNIT_EXPECT_EQ(test, 0, hghca_dealloc_mw(ibmw));
	KUNIT_EXPECT_FALSE(test, fake_has_keys(hdev));
}

/* No input, so that what comes later can tell itself from it. */
static void windows_input(struct kunit *test)
{
	struct windows *this = test->priv;
	unsigned long memory = fake_user_memory(test, PAGE_SIZE, PROT_READ | PROT_WRITE);
	struct ib_udata udata = { .inbuf = (void __user *)memory, .inlen = 16 };
	struct ib_mw *ibmw = &this->mw->ibmw;
	u32 mark;

	ibmw->type = IB_MW_TYPE_1;
	KUNIT_ASSERT_EQ(test, 0, hghca_alloc_mw(ibmw, &udata));
	KUNIT_EXPECT_EQ(test, 0, hghca_dealloc_mw(ibmw));
	KUNIT_ASSERT_EQ(test, 0, put_user((u8)1, (u8 __user *)memory + 15));
	mark = fake_mark(this->fake);
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, hghca_alloc_mw(ibmw, &udata));
	KUNIT_EXPECT_EQ(test, mark, fake_mark(this->fake));
}

/* ------------------------------------------------------------------ */
/* Regions of users                                                     */

static const struct windows_region {
	const char *name;
	int access;
	u32 offset;	/* into a page */
	int err;
	u32 flags;	/* of the MPT */
	bool zero_based;
} windows_regions[] = {
	{ "local read", 0, 0x123, 0, 0x100 },
	{ "for windows", IB_ACCESS_LOCAL_WRITE | IB_ACCESS_MW_BIND, 0x123, 0, 0x111 },
	{ "for windows that are read alone", IB_ACCESS_MW_BIND, 0, 0, 0x110 },
	{ "zero-based", IB_ACCESS_REMOTE_READ | IB_ZERO_BASED, 0, 0, 0x124, true },
	{ "zero-based, not from a page's start on", IB_ZERO_BASED, 0x123, -EINVAL },
	{ "zero-based, for windows", IB_ZERO_BASED | IB_ACCESS_MW_BIND, 0, 0, 0x130, true },
	{ "relaxed ordering", IB_ACCESS_RELAXED_ORDERING | IB_ACCESS_LOCAL_WRITE, 0x123, 0, 0x101 },
	{ "all optional rights", IB_ACCESS_OPTIONAL, 0x123, 0, 0x100 },
	{ "on-demand paging", IB_ACCESS_ON_DEMAND, 0, -EOPNOTSUPP },
	{ "flush to persistence", IB_ACCESS_FLUSH_PERSISTENT, 0, -EOPNOTSUPP },
};

static void windows_region_name(const struct windows_region *region, char *desc)
{
	strscpy(desc, region->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(windows_region, windows_regions, windows_region_name);

static void windows_region(struct kunit *test)
{
	const struct windows_region *param = test->param_value;
	struct windows *this = test->priv;
	unsigned long start = fake_user_memory(test, 4 * PAGE_SIZE, PROT_READ | PROT_WRITE) +
			      param->offset;
	struct ib_udata udata = {};
	struct fake_command *cmd;
	struct ib_mr *ibmr;

	ibmr = hghca_reg_user_mr(&this->pd->ibpd, start, 0x2000, start, param->access, NULL, &udata);
	if (param->err) {
		KUNIT_EXPECT_PTR_EQ(test, ERR_PTR(param->err), ibmr);
		KUNIT_EXPECT_FALSE(test, fake_has_keys(this->fake->hdev));
		return;
	}
	KUNIT_ASSERT_FALSE(test, IS_ERR(ibmr));
	ibmr->device = this->pd->ibpd.device;
	cmd = fake_nth(this->fake, fake_mark(this->fake) - 1);
	KUNIT_EXPECT_EQ(test, 0x00d, cmd->op);
	KUNIT_EXPECT_EQ(test, param->flags, be32_at(cmd->mailbox, 0x00));
	KUNIT_EXPECT_EQ(test, param->zero_based ? 0 : start, be64_at(cmd->mailbox, 0x10));
	KUNIT_EXPECT_EQ(test, 0x2000, be64_at(cmd->mailbox, 0x18));
	KUNIT_EXPECT_EQ(test, 0, hghca_dereg_mr(ibmr, NULL));
}

/* Document 4.5: addresses begin at 0, and first_byte is where that stands in its page. */
static void windows_zero_based(struct kunit *test)
{
	struct windows *this = test->priv;
	unsigned long start = fake_user_memory(test, 4 * PAGE_SIZE, PROT_READ | PROT_WRITE) + 0x123;
	struct ib_udata udata = {};
	struct fake_command *cmd;
	struct ib_mr *ibmr;
	u32 page, in_page;

	this->fake->hdev->limits.caps |= 0x400000;	/* FIRST_BYTE */
	ibmr = hghca_reg_user_mr(&this->pd->ibpd, start, 0x2000, start,
				 IB_ZERO_BASED | IB_ACCESS_MW_BIND, NULL, &udata);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ibmr));
	ibmr->device = this->pd->ibpd.device;
	cmd = fake_nth(this->fake, fake_mark(this->fake) - 1);
	KUNIT_EXPECT_EQ(test, 0x00d, cmd->op);
	KUNIT_EXPECT_EQ(test, 0x130, be32_at(cmd->mailbox, 0x00));
	KUNIT_EXPECT_EQ(test, 0, be64_at(cmd->mailbox, 0x10));
	KUNIT_EXPECT_EQ(test, 0x2000, be64_at(cmd->mailbox, 0x18));
	page = 4096 << be32_at(cmd->mailbox, 0x04);
	in_page = start & (page - 1);
	KUNIT_EXPECT_EQ(test, in_page, be32_at(cmd->mailbox, 0x38));
	KUNIT_EXPECT_EQ(test, (in_page + 0x2000 + page - 1) / page, be32_at(cmd->mailbox, 0x34));
	KUNIT_EXPECT_EQ(test, 0, hghca_dereg_mr(ibmr, NULL));
}

static const struct windows_nothing {
	const char *name;
	u64 start;
	int access;
	u32 flags;	/* of the MPT */
	u64 first;	/* its start */
} windows_nothings[] = {
	{ "at a page", 0x7000, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE, 0x103, 0x7000 },
	{ "in a page", 0x7123, IB_ACCESS_MW_BIND, 0x110, 0x7123 },
	{ "at address 0", 0, 0, 0x100, 0 },
	{ "at the last address", U64_MAX, 0, 0x100, U64_MAX },
	{ "zero-based", 0x7123, IB_ZERO_BASED, 0x120, 0 },
};

static void windows_nothing_name(const struct windows_nothing *nothing, char *desc)
{
	strscpy(desc, nothing->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(windows_nothing, windows_nothings, windows_nothing_name);

/* A region of no bytes: no memory is looked for, none pinned, and it has no MTTs. */
static void windows_no_bytes(struct kunit *test)
{
	const struct windows_nothing *param = test->param_value;
	struct windows *this = test->priv;
	struct hghca_dev *hdev = this->fake->hdev;
	struct ib_udata udata = {};
	struct fake_command *cmd;
	struct ib_mr *ibmr;

	ibmr = hghca_reg_user_mr(&this->pd->ibpd, param->start, 0, param->start, param->access, NULL,
				 &udata);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ibmr));
	ibmr->device = this->pd->ibpd.device;
	KUNIT_EXPECT_EQ(test, 0, ibmr->length);
	cmd = fake_nth(this->fake, fake_mark(this->fake) - 1);
	KUNIT_EXPECT_EQ(test, 0x00d, cmd->op);
	KUNIT_EXPECT_EQ(test, param->flags, be32_at(cmd->mailbox, 0x00));
	KUNIT_EXPECT_EQ(test, param->first, be64_at(cmd->mailbox, 0x10));
	KUNIT_EXPECT_EQ(test, 0, be64_at(cmd->mailbox, 0x18));
	KUNIT_EXPECT_EQ(test, 0, be32_at(cmd->mailbox, 0x34));
	KUNIT_EXPECT_EQ(test, gen_pool_size(hdev->mtt_pool), fake_free_mtts(hdev));
	KUNIT_EXPECT_EQ(test, 0, hghca_dereg_mr(ibmr, NULL));
	KUNIT_EXPECT_FALSE(test, fake_has_keys(hdev));

	this->refused = 0x00d;
	this->status = 0x08;
	KUNIT_EXPECT_PTR_EQ(test, ERR_PTR(-ENOMEM),
			    hghca_reg_user_mr(&this->pd->ibpd, param->start, 0, param->start,
					      param->access, NULL, &udata));
	KUNIT_EXPECT_FALSE(test, fake_has_keys(hdev));
}

static void windows_region_without(struct kunit *test)
{
	struct windows *this = test->priv;
	struct fake *fake = fake_test_create(test);
	struct ib_udata udata = {};
	struct hghca_pd *pd;

	KUNIT_ASSERT_NOT_NULL(test, fake);
	fake->limits.caps = cpu_to_be32(0x1ff);
	KUNIT_ASSERT_EQ(test, 0, fake_open(fake));
	pd = fake_pd(test, fake);
	KUNIT_EXPECT_PTR_EQ(test, ERR_PTR(-EOPNOTSUPP),
			    hghca_reg_user_mr(&pd->ibpd, 0, 1, 0, IB_ACCESS_MW_BIND, NULL, &udata));
	KUNIT_EXPECT_FALSE(test, fake_has_keys(fake->hdev));
	KUNIT_EXPECT_FALSE(test, fake_has_keys(this->fake->hdev));
}

static const struct windows_bound {
	const char *name;
	bool bound_for_ever;	/* as the device says */
} windows_bounds[] = {
	{ "until its window goes", false },
	{ "for ever", true },
};

KUNIT_ARRAY_PARAM_DESC(windows_bound, windows_bounds, name);

/*
 * REG_BOUND: the region stays, with all that it has, while its PD has windows.
 * Without any a device that says so is given up.
 */
static void windows_bound(struct kunit *test)
{
	const struct windows_bound *param = test->param_value;
	struct windows *this = test->priv;
	struct hghca_dev *hdev = this->fake->hdev;
	unsigned long start = fake_user_memory(test, PAGE_SIZE, PROT_READ | PROT_WRITE);
	size_t mtts = fake_free_mtts(hdev);
	struct ib_mw *ibmw = &this->mw->ibmw;
	struct ib_udata udata = {};
	struct ib_umem *umem;
	struct ib_mr *ibmr;
	u32 key;

	ibmw->type = IB_MW_TYPE_1;
	KUNIT_ASSERT_EQ(test, 0, hghca_alloc_mw(ibmw, &udata));

	ibmr = hghca_reg_user_mr(&this->pd->ibpd, start, PAGE_SIZE, start, IB_ACCESS_MW_BIND, NULL,
				 &udata);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ibmr));
	ibmr->device = this->pd->ibpd.device;
	ibmr->pd = &this->pd->ibpd;
	key = ibmr->lkey;
	umem = to_hmr(ibmr)->umem;
	this->refused = 0x00f;
	this->status = 0x21;
	KUNIT_EXPECT_EQ(test, -EBUSY, hghca_dereg_mr(ibmr, NULL));
	KUNIT_EXPECT_EQ(test, -EBUSY, hghca_dereg_mr(ibmr, NULL));
	KUNIT_EXPECT_EQ(test, key, to_hmr(ibmr)->hw.key);
	KUNIT_EXPECT_PTR_EQ(test, umem, to_hmr(ibmr)->umem);
	KUNIT_EXPECT_GT(test, mtts, fake_free_mtts(hdev));
	KUNIT_EXPECT_FALSE(test, hghca_dev_has_failed(hdev));
	this->refused = 0;
	KUNIT_EXPECT_EQ(test, 0, hghca_dealloc_mw(ibmw));
	KUNIT_EXPECT_FALSE(test, hghca_dev_has_failed(hdev));
	this->refused = param->bound_for_ever ? 0x00f : 0;
	KUNIT_EXPECT_EQ(test, 0, hghca_dereg_mr(ibmr, NULL));
	KUNIT_EXPECT_EQ(test, param->bound_for_ever, hghca_dev_has_failed(hdev));
	KUNIT_EXPECT_EQ(test, mtts, fake_free_mtts(hdev));
	KUNIT_EXPECT_FALSE(test, fake_has_keys(hdev));
}

static struct kunit_case windows_cases[] = {
	KUNIT_CASE_PARAM(windows_mpt, windows_type_gen_params),
	KUNIT_CASE(windows_refused),
	KUNIT_CASE(windows_input),
	KUNIT_CASE_PARAM(windows_region, windows_region_gen_params),
	KUNIT_CASE(windows_zero_based),
	KUNIT_CASE_PARAM(windows_no_bytes, windows_nothing_gen_params),
	KUNIT_CASE(windows_region_without),
	KUNIT_CASE_PARAM(windows_bound, windows_bound_gen_params),
	{}
};

static struct kunit_suite windows_suite = {
	.name = "hghca_windows",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = windows_init,
	.test_cases = windows_cases,
};

kunit_test_suite(windows_suite);
