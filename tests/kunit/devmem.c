// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* KUnit tests of device memory (interface document, 4.24): what is one, and its regions' MPTs. */
#include <linux/genalloc.h>

#include "fake.h"

#define DEVMEM_CAP	0x40000
#define DEVMEM_BAR	0x1000000

struct devmem {
	struct fake *fake;
	struct hghca_pd *pd;
	struct hghca_dm dm;
	struct hghca_mmap_entry mmap;
	/* What the device answers to an opcode, from now on. */
	u16 refused;
	u8 status;
};

/* ------------------------------------------------------------------ */
/* Limits                                                               */

static const struct devmem_limit {
	const char *name;
	u8 log;
	u32 bar;
	u32 bytes;	/* 0: the device counts as one without */
} devmem_limits[] = {
	{ "a page", 12, DEVMEM_BAR, 0x1000 },
	{ "1 MiB", 20, DEVMEM_BAR, 0x100000 },
	{ "8 MiB", 23, DEVMEM_BAR, 0x800000 },
	{ "none", 0, DEVMEM_BAR, 0 },
	{ "less than a page", 11, DEVMEM_BAR, 0 },
	{ "16 MiB", 24, 2 * DEVMEM_BAR, 0 },
	{ "4 GiB", 32, DEVMEM_BAR, 0 },
	{ "2^255 bytes", 255, DEVMEM_BAR, 0 },
	{ "1 MiB, the BAR ends with the UAR pages", 20, 0x800000, 0 },
	{ "1 MiB, the BAR ends a page too soon", 20, 0x8ff000, 0 },
	{ "1 MiB, the BAR ends with it", 20, 0x900000, 0x100000 },
};

KUNIT_ARRAY_PARAM_DESC(devmem_limit, devmem_limits, name);

static void devmem_profile(struct kunit *test)
{
	const struct devmem_limit *param = test->param_value;
	struct fake *fake = fake_test_create(test);
	struct ib_udata udata = {};
	struct ib_device_attr attr;
	u32 caps;

	KUNIT_ASSERT_NOT_NULL(test, fake);
	caps = be32_to_cpu(fake->limits.caps);
	fake->limits.caps = cpu_to_be32(caps | DEVMEM_CAP);
	((u8 *)&fake->limits)[0x64] = param->log;
	fake->hdev->bus.uar_size = param->bar;
	KUNIT_ASSERT_EQ(test, 0, fake_open(fake));
	KUNIT_EXPECT_EQ(test, param->bytes, fake->hdev->limits.device_memory);
	KUNIT_EXPECT_EQ(test, caps | (param->bytes ? DEVMEM_CAP : 0), fake->hdev->limits.caps);
	KUNIT_ASSERT_EQ(test, 0, hghca_query_device(&fake->hdev->ibdev, &attr, &udata));
	KUNIT_EXPECT_EQ(test, param->bytes, attr.max_dm_size);
}

/* ------------------------------------------------------------------ */
/* Regions                                                              */

static enum fake_end devmem_answer(struct fake *fake, const struct fake_command *cmd,
				   struct fake_answer *answer)
{
	struct devmem *this = fake->priv;

	if (cmd->op == this->refused)
		answer->status = this->status;
	return FAKE_ANSWERED;
}

static void devmem_set_up(struct fake *fake)
{
	fake->hdev->bus.uar_phys = 0xf0000000;
}

/* Its page is the third; nobody else has any. */
static struct devmem *devmem_open(struct kunit *test)
{
	struct devmem *this = kunit_kzalloc(test, sizeof(*this), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, this);
	KUNIT_ASSERT_EQ(test, 0, fake_test_open(test, devmem_set_up, false));
	this->fake = test->priv;
	this->fake->priv = this;
	this->fake->answer = devmem_answer;
	this->pd = fake_pd(test, this->fake);
	this->mmap.phys = 0xf0000000 + 0x800000 + 2 * PAGE_SIZE;
	this->mmap.rdma_entry.npages = 1;
	this->dm.mmap = &this->mmap;
	this->dm.ibdm.device = &this->fake->hdev->ibdev;
	return this;
}

static struct ib_mr *devmem_reg(struct devmem *this, u64 offset, u64 length, int access)
{
	struct ib_dm_mr_attr attr = {
		.offset = offset,
		.length = length,
		.access_flags = access,
	};
	struct ib_mr *ibmr = hghca_reg_dm_mr(&this->pd->ibpd, &this->dm.ibdm, &attr, NULL);

	/* As ib_core does. */
	if (!IS_ERR(ibmr))
		ibmr->device = &this->fake->hdev->ibdev;
	return ibmr;
}

static void devmem_mpt(struct kunit *test)
{
	struct devmem *this = devmem_open(test);
	size_t mtts = fake_free_mtts(this->fake->hdev);
	struct fake_command *cmd;
	struct ib_mr *ibmr;

	ibmr = devmem_reg(this, 20, 1000,
			  IB_ZERO_BASED | IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ibmr));
	KUNIT_EXPECT_EQ(test, 1000, ibmr->length);
	KUNIT_EXPECT_EQ(test, ibmr->lkey, ibmr->rkey);
	cmd = fake_nth(this->fake, fake_mark(this->fake) - 1);
	KUNIT_ASSERT_EQ(test, 0x00d, cmd->op);
	/* DEVICE and REGION, beside rights. */
	KUNIT_EXPECT_EQ(test, 0x2100, be32_at(cmd->mailbox, 0x00) & ~0xff);
	KUNIT_EXPECT_EQ(test, HGHCA_ACCESS_LOCAL_WRITE | HGHCA_ACCESS_REMOTE_READ |
			HGHCA_ACCESS_ZERO_BASED, be32_at(cmd->mailbox, 0x00) & 0xff);
	KUNIT_EXPECT_EQ(test, 0, be32_at(cmd->mailbox, 0x04));
	KUNIT_EXPECT_EQ(test, ibmr->rkey, be32_at(cmd->mailbox, 0x08));
	KUNIT_EXPECT_EQ(test, this->pd->pdn, be32_at(cmd->mailbox, 0x0c));
	KUNIT_EXPECT_EQ(test, 0, be64_at(cmd->mailbox, 0x10));
	KUNIT_EXPECT_EQ(test, 1000, be64_at(cmd->mailbox, 0x18));
	KUNIT_EXPECT_EQ(test, 0, be32_at(cmd->mailbox, 0x2c));
	KUNIT_EXPECT_EQ(test, 2 * PAGE_SIZE + 20, be32_at(cmd->mailbox, 0x30));
	KUNIT_EXPECT_EQ(test, 0, be32_at(cmd->mailbox, 0x34));
	/* It has no pages in memory. */
	KUNIT_EXPECT_EQ(test, mtts, fake_free_mtts(this->fake->hdev));
	KUNIT_EXPECT_EQ(test, 0, hghca_dereg_mr(ibmr, NULL));
	KUNIT_EXPECT_FALSE(test, fake_has_keys(this->fake->hdev));
}

static const struct devmem_bad {
	const char *name;
	u64 offset;
	u64 length;
	int access;
	int err;
} devmem_bads[] = {
	{ "an offset of 2", 2, 8, IB_ZERO_BASED, -EINVAL },
	{ "a length of 6", 0, 6, IB_ZERO_BASED, -EINVAL },
	{ "on demand", 0, 8, IB_ZERO_BASED | IB_ACCESS_ON_DEMAND, -EOPNOTSUPP },
	{ "huge pages", 0, 8, IB_ZERO_BASED | IB_ACCESS_HUGETLB, -EOPNOTSUPP },
};

KUNIT_ARRAY_PARAM_DESC(devmem_bad, devmem_bads, name);

static void devmem_bad(struct kunit *test)
{
	const struct devmem_bad *param = test->param_value;
	struct devmem *this = devmem_open(test);
	u32 mark = fake_mark(this->fake);

	KUNIT_EXPECT_EQ(test, param->err,
			PTR_ERR_OR_ZERO(devmem_reg(this, param->offset, param->length,
						   param->access)));
	KUNIT_EXPECT_EQ(test, mark, fake_mark(this->fake));
}

static void devmem_refused(struct kunit *test)
{
	static const u16 ops[] = { 0xffa, 0x00d };
	struct devmem *this = devmem_open(test);
	struct hghca_dev *hdev = this->fake->hdev;
	u32 i;

	this->status = 0x08;
	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		this->refused = ops[i];
		KUNIT_EXPECT_EQ(test, -ENOMEM,
				PTR_ERR_OR_ZERO(devmem_reg(this, 0, 8, IB_ZERO_BASED)));
		KUNIT_EXPECT_FALSE(test, fake_has_keys(hdev));
		fake_trim(hdev);
		KUNIT_EXPECT_EQ(test, 0, fake_icm_blocks(hdev, HGHCA_ICM_MPT));
	}
}

static struct kunit_case devmem_cases[] = {
	KUNIT_CASE_PARAM(devmem_profile, devmem_limit_gen_params),
	KUNIT_CASE(devmem_mpt),
	KUNIT_CASE_PARAM(devmem_bad, devmem_bad_gen_params),
	KUNIT_CASE(devmem_refused),
	{}
};

static struct kunit_suite devmem_suite = {
	.name = "hghca_devmem",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.test_cases = devmem_cases,
};
kunit_test_suite(devmem_suite);
