// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of regions paged on demand (interface document, 4.23): what the device
 * is told as pages come and go, and what is made of its events.
 *
 * Each page of the memory holds its own number; an MTT that the device was given
 * must lead to it.
 */
#include <linux/genalloc.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/uaccess.h>
#include <rdma/ib_umem_odp.h>

#include "fake.h"

#define ODP_CAP		0x20000
#define ODP_PLACEMENT	0x10000
#define ODP_MTTS	65536	/* of the table, kept as they were written */
#define ODP_PAGES	4	/* of the region */
#define ODP_BYTES	(ODP_PAGES * PAGE_SIZE)
#define ODP_FIRST_BYTE	0x400000	/* the capability */
#define ODP_ABSENT	1
#define ODP_READ_ONLY	2
#define ODP_TREE	0x4000	/* of an MPT's flags */
#define ODP_TABLE	4096	/* entries */
#define ODP_OP_WRITE	0x011
#define ODP_OP_CLEAR	0xe09
#define ODP_OP_RESUME	0xe08
#define ODP_ALL_RIGHTS	(IB_ACCESS_ON_DEMAND | IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE)

struct odp {
	struct fake *fake;
	struct hghca_pd *pd;
	struct hghca_pd *other_pd;
	unsigned long memory;
	struct ib_mr *ibmr;
	/* The device's side. */
	u8 mpt[64];
	bool owned;
	u64 *mtts;
	u32 resumed;		/* RESUME_QPs */
	u32 resumed_qpn;
	u64 resumed_what;
	/* One command of this opcode, after so many others of it, fails with this. */
	u16 fail_op;
	u32 fail_after;
	u8 fail_status;
	/* As the device's DMA ended. */
	int ends;
	size_t free_mtts;
};

static u8 odp_execute(struct odp *this, const struct fake_command *cmd)
{
	u64 first = be64_at(cmd->mailbox, 0x18);
	u32 i;

	switch (cmd->op) {
	case 0x00d:	/* SW2HW_MPT */
		memcpy(this->mpt, cmd->mailbox, sizeof(this->mpt));
		this->owned = true;
		return 0;
	case 0x00f:	/* HW2SW_MPT */
		this->owned = false;
		return 0;
	case ODP_OP_WRITE:
		if (first + cmd->in_modifier > ODP_MTTS)
			return 0x0a;
		for (i = 0; i < cmd->in_modifier; i++)
			this->mtts[first + i] = be64_at(cmd->mailbox, 0x20 + 8 * (i ^ 3));
		return 0;
	case ODP_OP_CLEAR:
		if (cmd->in_param + cmd->in_modifier > ODP_MTTS)
			return 0x0a;
		for (i = 0; i < cmd->in_modifier; i++)
			this->mtts[cmd->in_param + i] = ODP_ABSENT;
		return 0;
	case ODP_OP_RESUME:
		this->resumed++;
		this->resumed_qpn = cmd->in_modifier;
		this->resumed_what = cmd->in_param;
		return 0;
	default:
		return 0;
	}
}

static enum fake_end odp_answer(struct fake *fake, const struct fake_command *cmd,
				struct fake_answer *answer)
{
	struct odp *this = fake->priv;

	if (cmd->op == this->fail_op && !this->fail_after--) {
		this->fail_op = 0;
		this->fail_after = 0;
		answer->status = this->fail_status;
	} else {
		answer->status = odp_execute(this, cmd);
	}
	return FAKE_ANSWERED;
}

static void odp_set_up(struct fake *fake)
{
	fake->limits.caps |= cpu_to_be32(ODP_CAP);
}

static int odp_init(struct kunit *test)
{
	struct odp *this = kunit_kzalloc(test, sizeof(*this), GFP_KERNEL);
	int err;

	if (!this)
		return -ENOMEM;
	this->mtts = kunit_kcalloc(test, ODP_MTTS, sizeof(*this->mtts), GFP_KERNEL);
	if (!this->mtts)
		return -ENOMEM;
	err = fake_test_open(test, odp_set_up, true);
	if (err)
		return err;
	this->fake = test->priv;
	this->pd = fake_pd(test, this->fake);
	this->other_pd = fake_pd(test, this->fake);
	this->fake->priv = this;
	this->fake->answer = odp_answer;
	test->priv = this;
	return 0;
}

static struct ib_mr *odp_try(struct odp *this, u64 start, u64 length, u64 virt_addr, int access)
{
	struct ib_udata udata = {};

	return hghca_reg_user_mr(&this->pd->ibpd, start, length, virt_addr, access, NULL, &udata);
}

/* Pages of numbers. */
static void odp_fill(struct kunit *test)
{
	struct odp *this = test->priv;
	u32 i;

	this->memory = fake_user_memory(test, ODP_BYTES, PROT_READ | PROT_WRITE);
	for (i = 0; i < ODP_PAGES; i++)
		KUNIT_ASSERT_EQ(test, 0,
				put_user((u64)i, (u64 __user *)(this->memory + i * PAGE_SIZE)));
	memset(this->mtts, 0xee, ODP_MTTS * sizeof(*this->mtts));
}

static void odp_keep(struct kunit *test, struct ib_mr *ibmr)
{
	struct odp *this = test->priv;

	KUNIT_ASSERT_FALSE(test, IS_ERR(ibmr));
	this->ibmr = ibmr;
	this->ibmr->device = this->pd->ibpd.device;
}

/* A region over these pages. */
static void odp_register(struct kunit *test, int access)
{
	struct odp *this = test->priv;

	odp_fill(test);
	odp_keep(test, odp_try(this, this->memory, ODP_BYTES, this->memory, access));
}

/* Document 4.23: by the root's entry n >> 24, then n >> 12, then n, each modulo 4096. */
static u64 odp_tree_mtt(const struct odp *this, u64 n)
{
	u64 table = be32_at(this->mpt, 0x30);
	int level;

	for (level = 2; level; level--) {
		u64 entry = this->mtts[table + (n >> 12 * level) % ODP_TABLE];

		if (entry & ODP_ABSENT)
			return ODP_ABSENT;
		table = entry >> 12;
		if (table + ODP_TABLE > ODP_MTTS)
			return U64_MAX;
	}
	return this->mtts[table + n % ODP_TABLE];
}

static u64 odp_mtt(const struct odp *this, u32 page)
{
	if (be32_at(this->mpt, 0x00) & ODP_TREE)
		return odp_tree_mtt(this, (this->memory >> PAGE_SHIFT) + page);
	return this->mtts[be32_at(this->mpt, 0x30) + page];
}

/* @flags: ODP_ABSENT, or what the MTT of a page that is there says besides. */
static void odp_expect_page(struct kunit *test, u32 page, u64 flags)
{
	struct odp *this = test->priv;
	u64 mtt = odp_mtt(this, page);

	KUNIT_EXPECT_EQ_MSG(test, flags, mtt & 0xfff, "page %u", page);
	if (!(mtt & ODP_ABSENT))
		KUNIT_EXPECT_EQ(test, (u64)page, *(u64 *)fake_memory(mtt & ~0xfffULL));
}

static void odp_expect_nothing_held(struct kunit *test)
{
	struct odp *this = test->priv;
	struct hghca_dev *hdev = this->fake->hdev;

	KUNIT_EXPECT_FALSE(test, this->owned);
	KUNIT_EXPECT_TRUE(test, xa_empty(&hdev->odp_mrs));
}

static size_t odp_free_mtts(const struct odp *this)
{
	return fake_free_mtts(this->fake->hdev);
}

static void odp_expect_gone(struct kunit *test)
{
	struct odp *this = test->priv;

	KUNIT_EXPECT_EQ(test, 0, hghca_dereg_mr(this->ibmr, NULL));
	odp_expect_nothing_held(test);
}

/* ------------------------------------------------------------------ */
/* What a device must have                                              */

static void odp_profile(struct kunit *test)
{
	struct fake *fake = fake_test_create(test);
	struct ib_device_attr attr;
	struct ib_udata udata = {};

	KUNIT_ASSERT_NOT_NULL(test, fake);
	fake->limits.caps |= cpu_to_be32(ODP_CAP);
	/* Three EQs are those that any device needs. */
	fake->limits.log_max_eqs = 2;
	KUNIT_ASSERT_EQ(test, 0, fake_open(fake));
	KUNIT_EXPECT_FALSE(test, fake->hdev->limits.caps & ODP_CAP);
	KUNIT_ASSERT_EQ(test, 0, hghca_query_device(&fake->hdev->ibdev, &attr, &udata));
	KUNIT_EXPECT_EQ(test, 0, attr.odp_caps.general_caps);
	KUNIT_EXPECT_FALSE(test, attr.kernel_cap_flags & IBK_ON_DEMAND_PAGING);
}

/* Pages that are copied for the device are not those of the process. */
static void odp_bounced(struct kunit *test)
{
	struct fake *fake = fake_test_create(test);

	KUNIT_ASSERT_NOT_NULL(test, fake);
	fake->limits.caps |= cpu_to_be32(ODP_CAP);
	*fake->pdev->dev.dma_mask = DMA_BIT_MASK(20);
	KUNIT_ASSERT_EQ(test, 0, fake_open(fake));
	KUNIT_EXPECT_FALSE(test, fake->hdev->limits.caps & ODP_CAP);
}

static void odp_described(struct kunit *test)
{
	struct odp *this = test->priv;
	struct ib_device_attr attr;
	struct ib_udata udata = {};

	KUNIT_ASSERT_EQ(test, 0, hghca_query_device(&this->fake->hdev->ibdev, &attr, &udata));
	KUNIT_EXPECT_EQ(test, IB_ODP_SUPPORT | IB_ODP_SUPPORT_IMPLICIT,
			attr.odp_caps.general_caps);
	KUNIT_EXPECT_EQ(test, 0xff, attr.odp_caps.per_transport_caps.rc_odp_caps);
	KUNIT_EXPECT_EQ(test, 0xfd, attr.odp_caps.per_transport_caps.xrc_odp_caps);
	KUNIT_EXPECT_EQ(test, 0x01, attr.odp_caps.per_transport_caps.uc_odp_caps);
	KUNIT_EXPECT_EQ(test, 0x01, attr.odp_caps.per_transport_caps.ud_odp_caps);
	KUNIT_EXPECT_TRUE(test, attr.kernel_cap_flags & IBK_ON_DEMAND_PAGING);

	/* Without FLUSH and atomic WRITE: bits 6 and 7. */
	this->fake->hdev->limits.caps &= ~ODP_PLACEMENT;
	KUNIT_ASSERT_EQ(test, 0, hghca_query_device(&this->fake->hdev->ibdev, &attr, &udata));
	this->fake->hdev->limits.caps |= ODP_PLACEMENT;
	KUNIT_EXPECT_EQ(test, 0x3f, attr.odp_caps.per_transport_caps.rc_odp_caps);
	KUNIT_EXPECT_EQ(test, 0x3d, attr.odp_caps.per_transport_caps.xrc_odp_caps);
	KUNIT_EXPECT_EQ(test, 0x01, attr.odp_caps.per_transport_caps.uc_odp_caps);
	KUNIT_EXPECT_EQ(test, 0x01, attr.odp_caps.per_transport_caps.ud_odp_caps);
}

/* ------------------------------------------------------------------ */
/* Pages come and go                                                    */

static int odp_advise(struct odp *this, enum ib_uverbs_advise_mr_advice advice, u32 flags,
		      u64 offset, u32 length)
{
	struct ib_sge sge = {
		.addr = this->memory + offset,
		.length = length,
		.lkey = this->ibmr->lkey,
	};

	return hghca_advise_mr(&this->pd->ibpd, advice, flags, &sge, 1, NULL);
}

static void odp_pages(struct kunit *test)
{
	struct odp *this = test->priv;
	u32 i;

	odp_register(test, ODP_ALL_RIGHTS);
	KUNIT_EXPECT_EQ(test, 0x143, be32_at(this->mpt, 0x00));
	KUNIT_EXPECT_EQ(test, this->memory, be64_at(this->mpt, 0x10));
	KUNIT_EXPECT_EQ(test, ODP_BYTES, be64_at(this->mpt, 0x18));
	for (i = 0; i < ODP_PAGES; i++)
		odp_expect_page(test, i, ODP_ABSENT);

	KUNIT_EXPECT_EQ(test, 0, odp_advise(this, IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH,
					    IB_UVERBS_ADVISE_MR_FLAG_FLUSH, PAGE_SIZE + 8,
					    PAGE_SIZE));
	odp_expect_page(test, 0, ODP_ABSENT);
	odp_expect_page(test, 1, 0);
	odp_expect_page(test, 2, 0);
	odp_expect_page(test, 3, ODP_ABSENT);
	KUNIT_EXPECT_EQ(test, 0, odp_advise(this, IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE,
					    IB_UVERBS_ADVISE_MR_FLAG_FLUSH, 2 * PAGE_SIZE,
					    2 * PAGE_SIZE));
	odp_expect_page(test, 1, 0);
	odp_expect_page(test, 2, 0);
	odp_expect_page(test, 3, 0);

	/* Before it returns the device has let go of what is unmapped, and of that alone. */
	KUNIT_EXPECT_EQ(test, 0, vm_munmap(this->memory + 2 * PAGE_SIZE, PAGE_SIZE));
	odp_expect_page(test, 1, 0);
	odp_expect_page(test, 2, ODP_ABSENT);
	odp_expect_page(test, 3, 0);
	KUNIT_EXPECT_EQ(test, -EFAULT,
			odp_advise(this, IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH,
				   IB_UVERBS_ADVISE_MR_FLAG_FLUSH, 2 * PAGE_SIZE, 1));
	KUNIT_EXPECT_EQ(test, 0, atomic64_read(&current->mm->pinned_vm));
	odp_expect_gone(test);
}

/* Nobody waits for it, but it is followed. */
static void odp_advise_later(struct kunit *test)
{
	struct odp *this = test->priv;

	odp_register(test, ODP_ALL_RIGHTS);
	KUNIT_EXPECT_EQ(test, 0, odp_advise(this, IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, 0,
					    ODP_BYTES));
	flush_workqueue(this->fake->hdev->odp_wq);
	odp_expect_page(test, 0, 0);
	odp_expect_page(test, 3, 0);
	odp_expect_gone(test);
}

static void odp_advise_bad(struct kunit *test)
{
	struct odp *this = test->priv;
	struct ib_sge sge = {};

	odp_register(test, IB_ACCESS_ON_DEMAND);
	sge.addr = this->memory;
	sge.length = 1;
	sge.lkey = this->ibmr->lkey;
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, odp_advise(this, 99, 0, 0, 1));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			odp_advise(this, IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH, 2, 0, 1));
	KUNIT_EXPECT_EQ(test, -EPERM,
			odp_advise(this, IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, 0, 1));
	KUNIT_EXPECT_EQ(test, -EFAULT, odp_advise(this, IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH, 0,
						  ODP_BYTES - 1, 2));
	KUNIT_EXPECT_EQ(test, -EFAULT, odp_advise(this, IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH, 0,
						  -1ULL, 1));
	KUNIT_EXPECT_EQ(test, -EPERM,
			hghca_advise_mr(&this->other_pd->ibpd, IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH,
					0, &sge, 1, NULL));
	sge.lkey ^= 1;
	KUNIT_EXPECT_EQ(test, -ENOENT,
			hghca_advise_mr(&this->pd->ibpd, IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH, 0,
					&sge, 1, NULL));
	odp_expect_gone(test);
}

/* ------------------------------------------------------------------ */
/* Events                                                               */

static const struct odp_fault {
	const char *name;
	int access;
	u64 offset;		/* in the region */
	u32 length;
	u16 token;
	u8 flags;		/* bit 1 the receive side, bit 0 to be written */
	bool other_key;
	u64 what;		/* of RESUME_QP */
	u8 pages;		/* bit n: page n is there then */
	u8 read_only;		/* ... to be read alone */
} odp_faults[] = {
	{ "a read", ODP_ALL_RIGHTS, 8, 8, 0x1234, 0, false, 0x12340000, 0x1, 0 },
	{ "a read where nothing is written", IB_ACCESS_ON_DEMAND, 8, 8, 0x1234, 0, false,
	  0x12340000, 0x1, 0x1 },
	{ "a write", ODP_ALL_RIGHTS, 8, 8, 0xffff, 1, false, 0xffff0000, 0x1, 0 },
	{ "the receive side", ODP_ALL_RIGHTS, 8, 8, 1, 3, false, 0x10002, 0x1, 0 },
	{ "over two pages", ODP_ALL_RIGHTS, PAGE_SIZE - 1, 2, 1, 0, false, 0x10000, 0x3, 0 },
	{ "no bytes", ODP_ALL_RIGHTS, PAGE_SIZE, 0, 1, 0, false, 0x10000, 0x2, 0 },
	{ "more than there is", ODP_ALL_RIGHTS, 2 * PAGE_SIZE, U32_MAX, 1, 1, false, 0x10000, 0xc,
	  0 },
	{ "the last byte", ODP_ALL_RIGHTS, ODP_BYTES - 1, 1, 1, 1, false, 0x10000, 0x8, 0 },
	{ "behind the region", ODP_ALL_RIGHTS, ODP_BYTES, 1, 1, 0, false, 0x10001, 0, 0 },
	{ "before the region", ODP_ALL_RIGHTS, -1ULL, 1, 7, 2, false, 0x70003, 0, 0 },
	{ "far away", ODP_ALL_RIGHTS, 1ULL << 63, 1, 1, 0, false, 0x10001, 0, 0 },
	{ "another key", ODP_ALL_RIGHTS, 0, 1, 1, 0, true, 0x10001, 0, 0 },
	{ "a write that is not allowed", IB_ACCESS_ON_DEMAND, 0, 1, 1, 1, false, 0x10001, 0, 0 },
};

KUNIT_ARRAY_PARAM_DESC(odp_fault, odp_faults, name);

/* Document 10: type at 01h, QPN at 04h, what at 08h, key at 0Ch, address at 10h, length at 18h. */
static void odp_event(struct odp *this, u32 qpn, u32 what, u32 key, u64 addr, u32 length)
{
	u8 eqe[32] = { [0x01] = 0x18 };

	*(__be32 *)(eqe + 0x04) = cpu_to_be32(qpn);
	*(__be32 *)(eqe + 0x08) = cpu_to_be32(what);
	*(__be32 *)(eqe + 0x0c) = cpu_to_be32(key);
	*(__be32 *)(eqe + 0x10) = cpu_to_be32(upper_32_bits(addr));
	*(__be32 *)(eqe + 0x14) = cpu_to_be32(lower_32_bits(addr));
	*(__be32 *)(eqe + 0x18) = cpu_to_be32(length);
	fake_event(this->fake, FAKE_FAULT_EQ, eqe, true);
	flush_workqueue(this->fake->hdev->odp_wq);
}

static struct hghca_qp *odp_qp(struct kunit *test)
{
	static const struct fake_qp_attr attr = {
		.type = IB_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct odp *this = test->priv;
	struct hghca_cq *cq = fake_cq(test, this->fake, 16);

	return fake_qp(test, this->pd, cq, cq, &attr);
}

static void odp_served(struct kunit *test)
{
	const struct odp_fault *param = test->param_value;
	struct odp *this = test->priv;
	struct hghca_qp *hqp = odp_qp(test);
	u32 i;

	odp_register(test, param->access);
	odp_event(this, hqp->hw.qpn, (u32)param->token << 16 | param->flags,
		  this->ibmr->lkey ^ param->other_key, this->memory + param->offset,
		  param->length);
	KUNIT_EXPECT_EQ(test, 1, this->resumed);
	KUNIT_EXPECT_EQ(test, hqp->hw.qpn, this->resumed_qpn);
	KUNIT_EXPECT_EQ(test, param->what, this->resumed_what);
	for (i = 0; i < ODP_PAGES; i++)
		odp_expect_page(test, i, !(param->pages >> i & 1) ? ODP_ABSENT :
				param->read_only >> i & 1 ? ODP_READ_ONLY : 0);
	odp_expect_gone(test);
}

/* Behind the page that is needed there is no memory: it comes all the same. */
static void odp_served_in_part(struct kunit *test)
{
	struct odp *this = test->priv;
	struct hghca_qp *hqp = odp_qp(test);

	odp_register(test, ODP_ALL_RIGHTS);
	KUNIT_ASSERT_EQ(test, 0, vm_munmap(this->memory + PAGE_SIZE, PAGE_SIZE));
	odp_event(this, hqp->hw.qpn, 0x10001, this->ibmr->lkey, this->memory, ODP_BYTES);
	KUNIT_EXPECT_EQ(test, 0x10000, this->resumed_what);
	odp_expect_page(test, 0, 0);
	odp_expect_page(test, 1, ODP_ABSENT);
	odp_event(this, hqp->hw.qpn, 0x20001, this->ibmr->lkey, this->memory + PAGE_SIZE, 1);
	KUNIT_EXPECT_EQ(test, 0x20001, this->resumed_what);
	KUNIT_EXPECT_EQ(test, 2, this->resumed);
	odp_expect_gone(test);
}

/* Addresses begin at 0, in the middle of a page. */
static void odp_zero_based(struct kunit *test)
{
	struct odp *this = test->priv;
	struct hghca_qp *hqp = odp_qp(test);
	u64 start;

	this->fake->hdev->limits.caps |= ODP_FIRST_BYTE;
	odp_fill(test);
	start = this->memory + PAGE_SIZE / 2;
	odp_keep(test, odp_try(this, start, PAGE_SIZE, start, ODP_ALL_RIGHTS | IB_ZERO_BASED));
	KUNIT_EXPECT_EQ(test, 0, be64_at(this->mpt, 0x10));
	KUNIT_EXPECT_EQ(test, PAGE_SIZE, be64_at(this->mpt, 0x18));
	KUNIT_EXPECT_EQ(test, 2, be32_at(this->mpt, 0x34));
	KUNIT_EXPECT_EQ(test, PAGE_SIZE / 2, be32_at(this->mpt, 0x38));
	odp_event(this, hqp->hw.qpn, 0x10001, this->ibmr->lkey, PAGE_SIZE / 2, 1);
	KUNIT_EXPECT_EQ(test, 0x10000, this->resumed_what);
	odp_expect_page(test, 0, ODP_ABSENT);
	odp_expect_page(test, 1, 0);
	odp_event(this, hqp->hw.qpn, 0x20001, this->ibmr->lkey, 0, 1);
	KUNIT_EXPECT_EQ(test, 0x20000, this->resumed_what);
	odp_expect_page(test, 0, 0);
	odp_event(this, hqp->hw.qpn, 0x30001, this->ibmr->lkey, PAGE_SIZE, 1);
	KUNIT_EXPECT_EQ(test, 0x30001, this->resumed_what);
	KUNIT_ASSERT_EQ(test, 0, odp_advise(this, IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH,
					    IB_UVERBS_ADVISE_MR_FLAG_FLUSH,
					    0 - (u64)this->memory, PAGE_SIZE));
	odp_expect_gone(test);
}

/* The device may write to what the process may write to, whatever is asked for. */
static void odp_process_rights(struct kunit *test)
{
	struct odp *this = test->priv;
	struct hghca_qp *hqp = odp_qp(test);
	unsigned long second;

	odp_register(test, ODP_ALL_RIGHTS);
	second = this->memory + PAGE_SIZE;
	odp_event(this, hqp->hw.qpn, 0x10001, this->ibmr->lkey, second, 1);
	odp_event(this, hqp->hw.qpn, 0x20000, this->ibmr->lkey, this->memory, ODP_BYTES);
	KUNIT_EXPECT_EQ(test, 0x20000, this->resumed_what);
	odp_expect_page(test, 0, 0);
	odp_expect_page(test, 1, 0);
	odp_expect_page(test, 2, 0);

	/* Another page in its place is another matter. */
	KUNIT_ASSERT_EQ(test, 0, vm_munmap(second, PAGE_SIZE));
	odp_expect_page(test, 1, ODP_ABSENT);
	KUNIT_ASSERT_EQ(test, second, kunit_vm_mmap(test, NULL, second, PAGE_SIZE,
						    PROT_READ, MAP_ANONYMOUS | MAP_PRIVATE | MAP_FIXED,
						    0));
	odp_event(this, hqp->hw.qpn, 0x30000, this->ibmr->lkey, this->memory, ODP_BYTES);
	KUNIT_EXPECT_EQ(test, ODP_READ_ONLY, odp_mtt(this, 1) & 0xfff);
	odp_event(this, hqp->hw.qpn, 0x40001, this->ibmr->lkey, second, 1);
	KUNIT_EXPECT_EQ(test, 0x40001, this->resumed_what);
	KUNIT_EXPECT_EQ(test, ODP_READ_ONLY, odp_mtt(this, 1) & 0xfff);
	odp_expect_gone(test);
}

/* The device does not take the page. */
static void odp_not_written(struct kunit *test)
{
	struct odp *this = test->priv;
	struct hghca_qp *hqp = odp_qp(test);

	odp_register(test, ODP_ALL_RIGHTS);
	this->fail_op = ODP_OP_WRITE;
	this->fail_status = 0x0a;
	odp_event(this, hqp->hw.qpn, 0x10000, this->ibmr->lkey, this->memory, 1);
	KUNIT_EXPECT_EQ(test, 0x10001, this->resumed_what);
	odp_event(this, hqp->hw.qpn, 0x20000, this->ibmr->lkey, this->memory, 1);
	KUNIT_EXPECT_EQ(test, 0x20000, this->resumed_what);
	odp_expect_page(test, 0, 0);
	odp_expect_gone(test);
}

/* Events for QPs that there are not; nobody is resumed. */
static void odp_stray(struct kunit *test)
{
	struct odp *this = test->priv;
	struct hghca_qp *hqp = odp_qp(test);

	odp_register(test, ODP_ALL_RIGHTS);
	odp_event(this, 0xffffff, 0x10000, this->ibmr->lkey, this->memory, 1);
	odp_event(this, hqp->hw.qpn + 1, 0x10000, this->ibmr->lkey, this->memory, 1);
	KUNIT_EXPECT_EQ(test, 0, this->resumed);
	/* A second one, as the first is looked at. */
	set_bit(0, &hqp->faults[0].busy);
	odp_event(this, hqp->hw.qpn, 0x10000, this->ibmr->lkey, this->memory, 1);
	KUNIT_EXPECT_EQ(test, 0, this->resumed);
	clear_bit(0, &hqp->faults[0].busy);
	hqp->hw.faults = NULL;
	odp_event(this, hqp->hw.qpn, 0x10000, this->ibmr->lkey, this->memory, 1);
	hqp->hw.faults = hqp->faults;
	KUNIT_EXPECT_EQ(test, 0, this->resumed);
	odp_expect_page(test, 0, ODP_ABSENT);
	odp_expect_gone(test);
}

/* ------------------------------------------------------------------ */
/* Regions that cannot be                                               */

static const struct odp_bad {
	const char *name;
	u64 offset;
	u64 length;
	u64 virt_offset;	/* added to the address for the device */
	int access;
	int err;
} odp_bads[] = {
	{ "windows", 0, PAGE_SIZE, 0, ODP_ALL_RIGHTS | IB_ACCESS_MW_BIND, -EOPNOTSUPP },
	{ "an unknown right", 0, PAGE_SIZE, 0, ODP_ALL_RIGHTS | 1 << 19, -EOPNOTSUPP },
	{ "no bytes", 0, 0, 0, ODP_ALL_RIGHTS, -EINVAL },
	{ "addresses that differ", 0, PAGE_SIZE, 8, ODP_ALL_RIGHTS, -EINVAL },
	{ "zero-based, not on a page", 8, 8, 0, ODP_ALL_RIGHTS | IB_ZERO_BASED, -EINVAL },
	{ "more than there are MTTs", 0, 1ULL << 46, 0, ODP_ALL_RIGHTS, -ENOMEM },
};

KUNIT_ARRAY_PARAM_DESC(odp_bad, odp_bads, name);

static void odp_refused(struct kunit *test)
{
	const struct odp_bad *param = test->param_value;
	struct odp *this = test->priv;
	u64 start = fake_user_memory(test, PAGE_SIZE, PROT_READ | PROT_WRITE) + param->offset;

	KUNIT_EXPECT_PTR_EQ(test, ERR_PTR(param->err),
			    odp_try(this, start, param->length, start + param->virt_offset,
				    param->access));
	odp_expect_nothing_held(test);
}

static void odp_create_fails(struct kunit *test)
{
	static const u16 ops[] = { ODP_OP_CLEAR, 0x00d };
	struct odp *this = test->priv;
	unsigned long start = fake_user_memory(test, PAGE_SIZE, PROT_READ | PROT_WRITE);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		this->fail_op = ops[i];
		this->fail_status = 0x0a;
		KUNIT_EXPECT_PTR_EQ(test, ERR_PTR(-EBADF),
				    odp_try(this, start, PAGE_SIZE, start, ODP_ALL_RIGHTS));
		odp_expect_nothing_held(test);
	}
}

static const struct odp_status {
	const char *name;
	u8 status;
} odp_statuses[] = {
	{ "BAD_PARAM", 0x03 },
	{ "BAD_RES_STATE", 0x09 },
	{ "REG_BOUND", 0x21 },
};

KUNIT_ARRAY_PARAM_DESC(odp_status, odp_statuses, name);

static void odp_on_dma_end(struct fake *fake)
{
	struct odp *this = fake->priv;

	this->ends++;
	/* A spinlock is held, so idle keys cannot be freed.  The test has freed them before. */
	this->free_mtts = gen_pool_avail(this->fake->hdev->mtt_pool);
}

/*
 * The device keeps the region and a page of it: its DMA ends while the region has all that it
 * had, and nothing follows the memory afterwards.
 */
static void odp_expect_kept(struct kunit *test, size_t without)
{
	const struct odp_status *param = test->param_value;
	struct odp *this = test->priv;
	struct hghca_dev *hdev = this->fake->hdev;
	size_t with;
	u32 mark;

	KUNIT_ASSERT_EQ(test, 0, odp_advise(this, IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH,
					    IB_UVERBS_ADVISE_MR_FLAG_FLUSH, 0, 1));
	odp_expect_page(test, 0, 0);
	with = odp_free_mtts(this);
	this->fake->on_dma_end = odp_on_dma_end;
	this->fail_op = 0x00f;
	this->fail_status = param->status;
	KUNIT_ASSERT_EQ(test, 0, hghca_dereg_mr(this->ibmr, NULL));
	KUNIT_EXPECT_TRUE(test, hghca_dev_has_failed(hdev));
	KUNIT_EXPECT_EQ(test, 1, this->ends);
	KUNIT_EXPECT_EQ(test, with, this->free_mtts);
	KUNIT_EXPECT_EQ(test, without, odp_free_mtts(this));
	KUNIT_EXPECT_TRUE(test, xa_empty(&hdev->odp_mrs));
	mark = fake_mark(this->fake);
	KUNIT_EXPECT_EQ(test, 0, vm_munmap(this->memory, PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, mark, fake_mark(this->fake));
}

static void odp_kept(struct kunit *test)
{
	struct odp *this = test->priv;
	size_t before = odp_free_mtts(this);

	odp_register(test, ODP_ALL_RIGHTS);
	odp_expect_kept(test, before);
}

static void odp_rereg(struct kunit *test)
{
	struct odp *this = test->priv;
	struct ib_udata udata = {};

	odp_register(test, ODP_ALL_RIGHTS);
	KUNIT_EXPECT_PTR_EQ(test, ERR_PTR(-EOPNOTSUPP),
			    hghca_rereg_user_mr(this->ibmr, IB_MR_REREG_ACCESS, 0, 0, 0,
						IB_ACCESS_LOCAL_WRITE, &this->pd->ibpd, &udata));
	odp_expect_gone(test);
}

static struct kunit_case odp_cases[] = {
	KUNIT_CASE(odp_described),
	KUNIT_CASE(odp_pages),
	KUNIT_CASE(odp_advise_later),
	KUNIT_CASE(odp_advise_bad),
	KUNIT_CASE_PARAM(odp_served, odp_fault_gen_params),
	KUNIT_CASE(odp_served_in_part),
	KUNIT_CASE(odp_zero_based),
	KUNIT_CASE(odp_process_rights),
	KUNIT_CASE(odp_not_written),
	KUNIT_CASE(odp_stray),
	KUNIT_CASE_PARAM(odp_refused, odp_bad_gen_params),
	KUNIT_CASE(odp_create_fails),
	KUNIT_CASE_PARAM(odp_kept, odp_status_gen_params),
	KUNIT_CASE(odp_rereg),
	{}
};

static struct kunit_suite odp_suite = {
	.name = "hghca_odp",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = odp_init,
	.test_cases = odp_cases,
};

/* ------------------------------------------------------------------ */
/* Regions of all memory                                                */

static void odp_register_all(struct kunit *test, int access)
{
	struct odp *this = test->priv;

	odp_fill(test);
	odp_keep(test, odp_try(this, 0, U64_MAX, 0, access));
}

/* An event, of a QP's send side, that asks for a page. */
static void odp_ask(struct odp *this, const struct hghca_qp *hqp, u16 token, u64 addr)
{
	odp_event(this, hqp->hw.qpn, (u32)token << 16, this->ibmr->lkey, addr, 1);
}

static void odp_tree_pages(struct kunit *test)
{
	struct odp *this = test->priv;
	size_t before = odp_free_mtts(this);
	u32 root, i;

	odp_register_all(test, ODP_ALL_RIGHTS);
	KUNIT_EXPECT_EQ(test, ODP_TREE | 0x143, be32_at(this->mpt, 0x00));
	KUNIT_EXPECT_EQ(test, 0, be32_at(this->mpt, 0x04));
	KUNIT_EXPECT_EQ(test, 0, be64_at(this->mpt, 0x10));
	KUNIT_EXPECT_EQ(test, min_t(u64, TASK_SIZE, 1ULL << 48), be64_at(this->mpt, 0x18));
	root = be32_at(this->mpt, 0x30);
	for (i = 0; i < ODP_TABLE; i++)
		KUNIT_ASSERT_EQ_MSG(test, ODP_ABSENT, this->mtts[root + i], "entry %u", i);
	/* Nothing was touched, and nothing taken. */
	KUNIT_EXPECT_EQ(test, before - ODP_TABLE, odp_free_mtts(this));

	KUNIT_EXPECT_EQ(test, 0, odp_advise(this, IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE,
					    IB_UVERBS_ADVISE_MR_FLAG_FLUSH, PAGE_SIZE + 8,
					    PAGE_SIZE));
	odp_expect_page(test, 0, ODP_ABSENT);
	odp_expect_page(test, 1, 0);
	odp_expect_page(test, 2, 0);
	odp_expect_page(test, 3, ODP_ABSENT);
	KUNIT_EXPECT_LT(test, odp_free_mtts(this), before - ODP_TABLE);

	KUNIT_EXPECT_EQ(test, 0, vm_munmap(this->memory + PAGE_SIZE, PAGE_SIZE));
	odp_expect_page(test, 1, ODP_ABSENT);
	odp_expect_page(test, 2, 0);
	/* With the last page that is in use what leads there goes, too. */
	KUNIT_EXPECT_EQ(test, 0, vm_munmap(this->memory, ODP_BYTES));
	flush_workqueue(this->fake->hdev->odp_wq);
	odp_expect_page(test, 2, ODP_ABSENT);
	KUNIT_EXPECT_EQ(test, before - ODP_TABLE, odp_free_mtts(this));
	for (i = 0; i < ODP_TABLE; i++)
		KUNIT_ASSERT_EQ_MSG(test, ODP_ABSENT, this->mtts[root + i], "entry %u", i);
	odp_expect_gone(test);
	KUNIT_EXPECT_EQ(test, before, odp_free_mtts(this));
}

/* Memory that came after the region, and what is far from it. */
static void odp_tree_served(struct kunit *test)
{
	struct odp *this = test->priv;
	struct hghca_qp *hqp = odp_qp(test);
	unsigned long later;

	odp_register_all(test, ODP_ALL_RIGHTS);
	odp_ask(this, hqp, 1, this->memory + PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, 0x10000, this->resumed_what);
	odp_expect_page(test, 0, ODP_ABSENT);
	odp_expect_page(test, 1, 0);

	later = kunit_vm_mmap(test, NULL, 1UL << 30, PAGE_SIZE, PROT_READ | PROT_WRITE,
			      MAP_ANONYMOUS | MAP_PRIVATE | MAP_FIXED, 0);
	KUNIT_ASSERT_EQ(test, 1UL << 30, later);
	odp_ask(this, hqp, 2, later);
	KUNIT_EXPECT_EQ(test, 0x20000, this->resumed_what);
	KUNIT_EXPECT_EQ(test, ODP_READ_ONLY, odp_tree_mtt(this, later >> PAGE_SHIFT) & 0xfff);
	odp_expect_page(test, 1, 0);
	odp_expect_gone(test);
}

/* Where there is nothing, and where there cannot be: the QP hears so, and nothing is kept. */
static const struct odp_hole {
	const char *name;
	u64 addr;
} odp_holes[] = {
	{ "the first page", 0 },
	{ "behind the first table", 1ULL << 36 },
	{ "the last page", (1ULL << 47) - 2 * PAGE_SIZE },
	{ "behind it", 1ULL << 47 },
	{ "the kernel's", U64_MAX - PAGE_SIZE + 1 },
	{ "the last byte", U64_MAX },
};

KUNIT_ARRAY_PARAM_DESC(odp_hole, odp_holes, name);

static void odp_tree_hole(struct kunit *test)
{
	const struct odp_hole *param = test->param_value;
	struct odp *this = test->priv;
	struct hghca_qp *hqp = odp_qp(test);
	size_t before;
	u32 i;

	odp_register_all(test, ODP_ALL_RIGHTS);
	before = odp_free_mtts(this);
	for (i = 1; i <= 10; i++) {
		odp_ask(this, hqp, i, param->addr);
		KUNIT_EXPECT_EQ(test, i << 16 | 1, this->resumed_what);
		KUNIT_EXPECT_EQ(test, before, odp_free_mtts(this));
	}
	odp_expect_gone(test);
}

/* Of the commands that lead to a page each fails once. */
static void odp_tree_fails(struct kunit *test)
{
	static const u16 ops[] = { ODP_OP_CLEAR, ODP_OP_WRITE };
	struct odp *this = test->priv;
	struct hghca_qp *hqp = odp_qp(test);
	size_t before;
	u32 i;

	for (i = 0; i < 2 * ARRAY_SIZE(ops); i++) {
		odp_register_all(test, ODP_ALL_RIGHTS);
		before = odp_free_mtts(this);
		this->fail_op = ops[i / 2];
		this->fail_after = i % 2;
		this->fail_status = 0x0a;
		odp_ask(this, hqp, 1, this->memory);
		KUNIT_EXPECT_EQ_MSG(test, 0x10001, this->resumed_what, "%u", i);
		KUNIT_EXPECT_EQ_MSG(test, 0, this->fail_op, "%u", i);
		KUNIT_EXPECT_EQ_MSG(test, before, odp_free_mtts(this), "%u", i);
		odp_ask(this, hqp, 2, this->memory);
		KUNIT_EXPECT_EQ_MSG(test, 0x20000, this->resumed_what, "%u", i);
		odp_expect_page(test, 0, 0);
		odp_expect_gone(test);
	}
}

/* What the device does not let go of stays, and serves again. */
static void odp_tree_not_trimmed(struct kunit *test)
{
	struct odp *this = test->priv;
	struct hghca_qp *hqp = odp_qp(test);
	size_t before = odp_free_mtts(this);

	odp_register_all(test, ODP_ALL_RIGHTS);
	odp_ask(this, hqp, 1, this->memory);
	/* The page goes, but not what leads to it. */
	this->fail_op = ODP_OP_CLEAR;
	this->fail_after = 1;
	this->fail_status = 0x0a;
	KUNIT_EXPECT_EQ(test, 0, vm_munmap(this->memory, PAGE_SIZE));
	flush_workqueue(this->fake->hdev->odp_wq);
	KUNIT_EXPECT_EQ(test, 0, this->fail_op);
	odp_expect_page(test, 0, ODP_ABSENT);
	KUNIT_EXPECT_EQ(test, before - 3 * ODP_TABLE, odp_free_mtts(this));
	odp_ask(this, hqp, 2, this->memory + PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, 0x20000, this->resumed_what);
	odp_expect_page(test, 1, 0);
	KUNIT_EXPECT_EQ(test, before - 3 * ODP_TABLE, odp_free_mtts(this));
	odp_expect_gone(test);
	KUNIT_EXPECT_EQ(test, before, odp_free_mtts(this));
}

/* There are MTTs for one table, and it takes two. */
static void odp_tree_no_mtts(struct kunit *test)
{
	struct odp *this = test->priv;
	struct gen_pool *pool = this->fake->hdev->mtt_pool;
	struct hghca_qp *hqp = odp_qp(test);
	unsigned long first, taken;
	size_t rest;

	odp_register_all(test, ODP_ALL_RIGHTS);
	first = gen_pool_alloc(pool, ODP_TABLE);
	KUNIT_ASSERT_NE(test, 0, first);
	rest = odp_free_mtts(this) - ODP_TABLE / 2;
	taken = gen_pool_alloc(pool, rest);
	gen_pool_free(pool, first, ODP_TABLE);
	KUNIT_ASSERT_NE(test, 0, taken);
	odp_ask(this, hqp, 1, this->memory);
	KUNIT_EXPECT_EQ(test, 0x10001, this->resumed_what);
	KUNIT_EXPECT_EQ(test, ODP_TABLE + ODP_TABLE / 2, odp_free_mtts(this));
	gen_pool_free(pool, taken, rest);
	odp_ask(this, hqp, 2, this->memory);
	KUNIT_EXPECT_EQ(test, 0x20000, this->resumed_what);
	odp_expect_page(test, 0, 0);
	odp_expect_gone(test);
}

static void odp_tree_advise_bad(struct kunit *test)
{
	struct odp *this = test->priv;
	struct ib_sge sge = {};

	odp_register_all(test, IB_ACCESS_ON_DEMAND);
	KUNIT_EXPECT_EQ(test, -EPERM,
			odp_advise(this, IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, 0, 1));
	KUNIT_EXPECT_EQ(test, -EFAULT,
			odp_advise(this, IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH, 0,
				   be64_at(this->mpt, 0x18) - this->memory - 1, 2));
	KUNIT_EXPECT_EQ(test, -EFAULT,
			odp_advise(this, IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH,
				   IB_UVERBS_ADVISE_MR_FLAG_FLUSH, -this->memory, 1));
	sge.addr = this->memory;
	sge.length = 1;
	sge.lkey = this->ibmr->lkey;
	KUNIT_EXPECT_EQ(test, -EPERM,
			hghca_advise_mr(&this->other_pd->ibpd, IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH,
					0, &sge, 1, NULL));
	odp_expect_gone(test);
}

static const struct odp_bad odp_tree_bads[] = {
	{ "windows", 0, U64_MAX, 0, ODP_ALL_RIGHTS | IB_ACCESS_MW_BIND, -EOPNOTSUPP },
	{ "huge pages", 0, U64_MAX, 0, ODP_ALL_RIGHTS | IB_ACCESS_HUGETLB, -EINVAL },
	{ "elsewhere for the device", 0, U64_MAX, PAGE_SIZE, ODP_ALL_RIGHTS, -EINVAL },
	{ "all but the first page", PAGE_SIZE, U64_MAX, 0, ODP_ALL_RIGHTS, -ENOMEM },
	{ "all but the last byte", 0, U64_MAX - 1, 0, ODP_ALL_RIGHTS, -ENOMEM },
};

KUNIT_ARRAY_PARAM_DESC(odp_tree_bad, odp_tree_bads, name);

static void odp_tree_refused(struct kunit *test)
{
	const struct odp_bad *param = test->param_value;
	struct odp *this = test->priv;
	size_t before = odp_free_mtts(this);

	odp_fill(test);
	KUNIT_EXPECT_PTR_EQ(test, ERR_PTR(param->err),
			    odp_try(this, param->offset, param->length,
				    param->offset + param->virt_offset, param->access));
	odp_expect_nothing_held(test);
	KUNIT_EXPECT_EQ(test, before, odp_free_mtts(this));
}

static void odp_tree_create_fails(struct kunit *test)
{
	static const u16 ops[] = { ODP_OP_CLEAR, 0x00d };
	struct odp *this = test->priv;
	size_t before = odp_free_mtts(this);
	u32 i;

	odp_fill(test);
	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		this->fail_op = ops[i];
		this->fail_status = 0x0a;
		KUNIT_EXPECT_PTR_EQ(test, ERR_PTR(-EBADF),
				    odp_try(this, 0, U64_MAX, 0, ODP_ALL_RIGHTS));
		odp_expect_nothing_held(test);
		KUNIT_EXPECT_EQ(test, before, odp_free_mtts(this));
	}
}

static void odp_tree_rereg(struct kunit *test)
{
	struct odp *this = test->priv;
	struct ib_udata udata = {};

	odp_register_all(test, ODP_ALL_RIGHTS);
	KUNIT_EXPECT_PTR_EQ(test, ERR_PTR(-EOPNOTSUPP),
			    hghca_rereg_user_mr(this->ibmr, IB_MR_REREG_ACCESS, 0, 0, 0,
						IB_ACCESS_LOCAL_WRITE, &this->pd->ibpd, &udata));
	odp_expect_gone(test);
}

static void odp_tree_kept(struct kunit *test)
{
	struct odp *this = test->priv;
	size_t before = odp_free_mtts(this);

	odp_register_all(test, ODP_ALL_RIGHTS);
	odp_expect_kept(test, before);
}

static struct kunit_case odp_tree_cases[] = {
	KUNIT_CASE(odp_tree_pages),
	KUNIT_CASE(odp_tree_served),
	KUNIT_CASE_PARAM(odp_tree_hole, odp_hole_gen_params),
	KUNIT_CASE(odp_tree_fails),
	KUNIT_CASE(odp_tree_not_trimmed),
	KUNIT_CASE(odp_tree_no_mtts),
	KUNIT_CASE(odp_tree_advise_bad),
	KUNIT_CASE_PARAM(odp_tree_refused, odp_tree_bad_gen_params),
	KUNIT_CASE(odp_tree_create_fails),
	KUNIT_CASE(odp_tree_rereg),
	KUNIT_CASE_PARAM(odp_tree_kept, odp_status_gen_params),
	{}
};

static struct kunit_suite odp_tree_suite = {
	.name = "hghca_odp_tree",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = odp_init,
	.test_cases = odp_tree_cases,
};

static struct kunit_case odp_limit_cases[] = {
	KUNIT_CASE(odp_profile),
	KUNIT_CASE(odp_bounced),
	{}
};

static struct kunit_suite odp_limit_suite = {
	.name = "hghca_odp_limits",
	.test_cases = odp_limit_cases,
};

kunit_test_suites(&odp_suite, &odp_tree_suite, &odp_limit_suite);
