// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of re-registered regions of users: each change alone
 * and with others, and commands that fail on the way.
 *
 * The reference is the memory itself. Each page of it holds its own number; reading
 * through the MPT and the MTTs that the device was given (interface document,
 * 4.5) must find that number at the page's address, or nothing.
 */
#include <linux/dma-buf.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/genalloc.h>
#include <linux/mman.h>
#include <linux/uaccess.h>

#include "fake.h"

#define REREG_MTTS	256	/* of the table, kept as they were written */
#define REREG_PAGES	4	/* of the region */
#define REREG_BYTES	(REREG_PAGES * PAGE_SIZE)
#define REREG_OTHER	100	/* the first number in other memory */
#define REREG_NOTHING	U64_MAX
#define REREG_FIRST_BYTE	0x400000	/* the capability */

struct rereg {
	struct fake *fake;
	struct hghca_pd *pd;
	struct hghca_pd *other_pd;
	unsigned long memory;		/* numbers from 0 on */
	unsigned long other;		/* ... from REREG_OTHER on */
	struct ib_udata udata;
	struct ib_mr *ibmr;
	u32 key;
	/* The device's side: one MPT, and MTTs by their index. */
	u8 mpt[64];
	bool owned;
	u64 mtts[REREG_MTTS];
	/* The commands from this one on that have this opcode, and so many, fail. */
	u16 fail_op;
	u32 fail_nth;
	u32 fail_count;
	u8 fail_status;
	u32 seen;
};

static u8 rereg_execute(struct rereg *this, const struct fake_command *cmd)
{
	u64 first = be64_at(cmd->mailbox, 0x18);
	u32 i;

	switch (cmd->op) {
	case 0x00d:	/* SW2HW_MPT */
		if (this->owned)
			return 0x09;
		memcpy(this->mpt, cmd->mailbox, sizeof(this->mpt));
		this->owned = true;
		return 0;
	case 0x00f:	/* HW2SW_MPT */
		if (!this->owned)
			return 0x09;
		this->owned = false;
		return 0;
	case 0x011:	/* WRITE_MTT */
		if (first + cmd->in_modifier > REREG_MTTS)
			return 0x0a;
		for (i = 0; i < cmd->in_modifier; i++)
			this->mtts[first + i] = be64_at(cmd->mailbox, 0x20 + 8 * (i ^ 3));
		return 0;
	default:
		return 0;
	}
}

static enum fake_end rereg_answer(struct fake *fake, const struct fake_command *cmd,
				  struct fake_answer *answer)
{
	struct rereg *this = fake->priv;
	u32 nth;

	if (cmd->op == this->fail_op) {
		nth = this->seen++;
		if (nth >= this->fail_nth && nth - this->fail_nth < this->fail_count) {
			answer->status = this->fail_status;
			return FAKE_ANSWERED;
		}
	}
	answer->status = rereg_execute(this, cmd);
	return FAKE_ANSWERED;
}

static int rereg_init(struct kunit *test)
{
	struct rereg *this = kunit_kzalloc(test, sizeof(*this), GFP_KERNEL);
	int err;

	if (!this)
		return -ENOMEM;
	err = fake_test_init(test);
	if (err)
		return err;
	this->fake = test->priv;
	this->pd = fake_pd(test, this->fake);
	this->other_pd = fake_pd(test, this->fake);
	this->fake->priv = this;
	this->fake->answer = rereg_answer;
	/*
	 * For a moment the same memory may be mapped twice, which the debugging of
	 * DMA takes for an error: this device has the kernel's own addresses.
	 */
	this->fake->hdev->ibdev.dma_device = NULL;
	test->priv = this;
	return 0;
}

/* @count more commands of opcode @op, from the @nth on, fail with @status. */
static void rereg_fail(struct rereg *this, u16 op, u32 nth, u32 count, u8 status)
{
	this->fail_op = op;
	this->fail_nth = nth;
	this->fail_count = count;
	this->fail_status = status;
	this->seen = 0;
}

static unsigned long rereg_memory(struct kunit *test, u64 first)
{
	unsigned long start = fake_user_memory(test, REREG_BYTES, PROT_READ | PROT_WRITE);
	u32 i;

	for (i = 0; i < REREG_PAGES; i++)
		KUNIT_ASSERT_EQ(test, 0,
				put_user(first + i, (u64 __user *)(start + i * PAGE_SIZE)));
	return start;
}

/* Both memories, and a region over the first. */
static void rereg_register(struct kunit *test, int access)
{
	struct rereg *this = test->priv;

	this->memory = rereg_memory(test, 0);
	this->other = rereg_memory(test, REREG_OTHER);
	this->ibmr = hghca_reg_user_mr(&this->pd->ibpd, this->memory, REREG_BYTES, this->memory,
				       access, NULL, &this->udata);
	KUNIT_ASSERT_FALSE(test, IS_ERR(this->ibmr));
	this->ibmr->device = this->pd->ibpd.device;
	this->key = this->ibmr->lkey;
}

static int rereg_change(struct rereg *this, int flags, u64 start, u64 length, u64 virt_addr,
			int access, struct hghca_pd *pd)
{
	return PTR_ERR_OR_ZERO(hghca_rereg_user_mr(this->ibmr, flags, start, length, virt_addr,
						   access, &pd->ibpd, &this->udata));
}

/* The number at @address, as the device finds it. */
static u64 rereg_read(const struct rereg *this, u64 address)
{
	u32 shift = be32_at(this->mpt, 0x04) + 12;
	u64 page = BIT_ULL(shift);
	u64 start = be64_at(this->mpt, 0x10);
	u64 offset = address - round_down(start, page) + be32_at(this->mpt, 0x38);
	u64 index = be32_at(this->mpt, 0x30) + (offset >> shift);

	if (!this->owned || address - start >= be64_at(this->mpt, 0x18) || index >= REREG_MTTS)
		return REREG_NOTHING;
	address = this->mtts[index] + (offset & (page - 1));
	if (this->fake->hdev->ibdev.dma_device)
		return *(u64 *)fake_memory(address);
	return *(u64 *)(uintptr_t)address;
}

/* The device finds @pages pages of numbers from @first on at @start, and not one more. */
static void rereg_expect_memory(struct kunit *test, u64 start, u32 pages, u64 first)
{
	struct rereg *this = test->priv;
	u32 i;

	for (i = 0; i < pages; i++)
		KUNIT_EXPECT_EQ(test, first + i, rereg_read(this, start + i * PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, REREG_NOTHING, rereg_read(this, start + pages * PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, REREG_NOTHING, rereg_read(this, start - PAGE_SIZE));
}

static void rereg_expect_mpt(struct kunit *test, u32 flags, u32 pdn)
{
	struct rereg *this = test->priv;

	KUNIT_EXPECT_TRUE(test, this->owned);
	KUNIT_EXPECT_EQ(test, flags, be32_at(this->mpt, 0x00));
	KUNIT_EXPECT_EQ(test, this->key, be32_at(this->mpt, 0x08));
	KUNIT_EXPECT_EQ(test, pdn, be32_at(this->mpt, 0x0c));
	KUNIT_EXPECT_EQ(test, this->key, this->ibmr->lkey);
	KUNIT_EXPECT_EQ(test, this->key, this->ibmr->rkey);
}

/* Nothing is left of the region, nor of any that it was. */
static void rereg_expect_gone(struct kunit *test)
{
	struct rereg *this = test->priv;
	struct hghca_dev *hdev = this->fake->hdev;

	KUNIT_EXPECT_EQ(test, 0, hghca_dereg_mr(this->ibmr, NULL));
	KUNIT_EXPECT_FALSE(test, this->owned);
	KUNIT_EXPECT_EQ(test, gen_pool_size(hdev->mtt_pool), fake_free_mtts(hdev));
	KUNIT_EXPECT_FALSE(test, fake_has_keys(hdev));
	KUNIT_EXPECT_EQ(test, 0, atomic64_read(&current->mm->pinned_vm));
}

/* ------------------------------------------------------------------ */
/* Changes                                                              */

#define REREG_ADDRESS	0x5000000000	/* where it moves to */

static const struct rereg_param {
	const char *name;
	int flags;
	u32 writes;	/* WRITE_MTTs */
} rereg_params[] = {
	{ "access", IB_MR_REREG_ACCESS, 0 },
	{ "PD", IB_MR_REREG_PD, 0 },
	{ "translation", IB_MR_REREG_TRANS, 1 },
	{ "access and PD", IB_MR_REREG_ACCESS | IB_MR_REREG_PD, 0 },
	{ "access and translation", IB_MR_REREG_ACCESS | IB_MR_REREG_TRANS, 1 },
	{ "PD and translation", IB_MR_REREG_PD | IB_MR_REREG_TRANS, 1 },
	{ "all", IB_MR_REREG_ACCESS | IB_MR_REREG_PD | IB_MR_REREG_TRANS, 1 },
};

static void rereg_param_name(const struct rereg_param *param, char *desc)
{
	strscpy(desc, param->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(rereg_param, rereg_params, rereg_param_name);

/* Two pages of other memory, to be written by others, in another PD. */
static int rereg_change_params(struct rereg *this, int flags)
{
	return rereg_change(this, flags, this->other + PAGE_SIZE, 2 * PAGE_SIZE, REREG_ADDRESS,
			    IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
			    IB_ACCESS_RELAXED_ORDERING, this->other_pd);
}

static void rereg_expect_changed(struct kunit *test, int flags)
{
	struct rereg *this = test->priv;

	rereg_expect_mpt(test, flags & IB_MR_REREG_ACCESS ? 0x103 : 0x101,
			 flags & IB_MR_REREG_PD ? this->other_pd->pdn : this->pd->pdn);
	if (flags & IB_MR_REREG_TRANS)
		rereg_expect_memory(test, REREG_ADDRESS, 2, REREG_OTHER + 1);
	else
		rereg_expect_memory(test, this->memory, REREG_PAGES, 0);
}

static void rereg_expect_as_before(struct kunit *test)
{
	struct rereg *this = test->priv;

	rereg_expect_mpt(test, 0x101, this->pd->pdn);
	rereg_expect_memory(test, this->memory, REREG_PAGES, 0);
}

static void rereg_each(struct kunit *test)
{
	const struct rereg_param *param = test->param_value;
	struct rereg *this = test->priv;
	u32 mark, op, writes = 0, ins = 0, outs = 0;

	rereg_register(test, IB_ACCESS_LOCAL_WRITE);
	rereg_expect_as_before(test);
	mark = fake_mark(this->fake);
	KUNIT_ASSERT_EQ(test, 0, rereg_change_params(this, param->flags));
	rereg_expect_changed(test, param->flags);
	for (; mark != fake_mark(this->fake); mark++) {
		op = fake_nth(this->fake, mark)->op;
		writes += op == 0x011;
		outs += op == 0x00f;
		ins += op == 0x00d;
	}
	KUNIT_EXPECT_EQ(test, param->writes, writes);
	KUNIT_EXPECT_EQ(test, 1, outs);
	KUNIT_EXPECT_EQ(test, 1, ins);

	/* A second time, back to what it was. */
	KUNIT_ASSERT_EQ(test, 0, rereg_change(this, IB_MR_REREG_SUPPORTED, this->memory,
					      REREG_BYTES, this->memory, IB_ACCESS_LOCAL_WRITE,
					      this->pd));
	rereg_expect_as_before(test);
	rereg_expect_gone(test);
}

/* An address that goes with larger pages or with smaller ones: the MTTs are others then. */
static void rereg_zero_based(struct kunit *test)
{
	struct rereg *this = test->priv;

	rereg_register(test, IB_ACCESS_LOCAL_WRITE);
	KUNIT_ASSERT_EQ(test, 0, rereg_change(this, IB_MR_REREG_ACCESS, 0, 0, 0,
					      IB_ACCESS_LOCAL_WRITE | IB_ZERO_BASED, this->pd));
	rereg_expect_mpt(test, 0x121, this->pd->pdn);
	rereg_expect_memory(test, 0, REREG_PAGES, 0);
	KUNIT_ASSERT_EQ(test, 0, rereg_change(this, IB_MR_REREG_ACCESS, 0, 0, 0,
					      IB_ACCESS_LOCAL_WRITE, this->pd));
	rereg_expect_as_before(test);
	rereg_expect_gone(test);
}

/* From any byte of a page on, on a device that knows of such regions. */
static void rereg_zero_based_from_any_byte(struct kunit *test)
{
	struct rereg *this = test->priv;

	this->fake->hdev->limits.caps |= REREG_FIRST_BYTE;
	rereg_register(test, IB_ACCESS_LOCAL_WRITE);
	KUNIT_ASSERT_EQ(test, 0,
			rereg_change(this, IB_MR_REREG_TRANS | IB_MR_REREG_ACCESS,
				     this->other + 0x123, 2 * PAGE_SIZE, this->other + 0x123,
				     IB_ACCESS_LOCAL_WRITE | IB_ZERO_BASED, this->pd));
	rereg_expect_mpt(test, 0x121, this->pd->pdn);
	KUNIT_EXPECT_EQ(test, 0, be64_at(this->mpt, 0x10));
	/* The second page's first byte, and the third's. */
	KUNIT_EXPECT_EQ(test, REREG_OTHER + 1, rereg_read(this, PAGE_SIZE - 0x123));
	KUNIT_EXPECT_EQ(test, REREG_OTHER + 2, rereg_read(this, 2 * PAGE_SIZE - 0x123));
	KUNIT_EXPECT_EQ(test, REREG_NOTHING, rereg_read(this, 2 * PAGE_SIZE));
	/* Other rights in the same place: the pages stay, and so do the addresses. */
	KUNIT_ASSERT_EQ(test, 0, rereg_change(this, IB_MR_REREG_ACCESS, 0, 0, 0, IB_ZERO_BASED,
					      this->pd));
	rereg_expect_mpt(test, 0x120, this->pd->pdn);
	KUNIT_EXPECT_EQ(test, REREG_OTHER + 2, rereg_read(this, 2 * PAGE_SIZE - 0x123));
	KUNIT_ASSERT_EQ(test, 0, rereg_change(this, IB_MR_REREG_ACCESS, 0, 0, 0, 0, this->pd));
	rereg_expect_mpt(test, 0x100, this->pd->pdn);
	KUNIT_EXPECT_EQ(test, 0, be32_at(this->mpt, 0x38));
	KUNIT_EXPECT_EQ(test, REREG_OTHER + 1, rereg_read(this, this->other + PAGE_SIZE));
	rereg_expect_gone(test);
}

/* A region loses all its bytes, and gets others. */
static void rereg_no_bytes(struct kunit *test)
{
	struct rereg *this = test->priv;
	struct hghca_dev *hdev = this->fake->hdev;

	rereg_register(test, IB_ACCESS_LOCAL_WRITE);
	rereg_fail(this, 0x00d, 0, 1, 0x03);
	KUNIT_EXPECT_EQ(test, -EINVAL, rereg_change(this, IB_MR_REREG_TRANS, 1, 0, 1, 0,
						    this->pd));
	rereg_expect_as_before(test);

	KUNIT_ASSERT_EQ(test, 0, rereg_change(this, IB_MR_REREG_TRANS, 1, 0, 1, 0, this->pd));
	rereg_expect_mpt(test, 0x101, this->pd->pdn);
	rereg_expect_memory(test, this->memory, 0, 0);
	KUNIT_EXPECT_EQ(test, 0, be64_at(this->mpt, 0x18));
	KUNIT_EXPECT_EQ(test, gen_pool_size(hdev->mtt_pool), fake_free_mtts(hdev));
	KUNIT_EXPECT_EQ(test, 0, atomic64_read(&current->mm->pinned_vm));

	KUNIT_ASSERT_EQ(test, 0, rereg_change(this, IB_MR_REREG_ACCESS | IB_MR_REREG_PD, 0, 0, 0,
					      IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
					      this->other_pd));
	rereg_expect_mpt(test, 0x103, this->other_pd->pdn);
	KUNIT_ASSERT_EQ(test, 0, rereg_change(this, IB_MR_REREG_SUPPORTED, this->memory,
					      REREG_BYTES, this->memory, IB_ACCESS_LOCAL_WRITE,
					      this->pd));
	rereg_expect_as_before(test);
	rereg_expect_gone(test);
}

/* Memory that was pinned to be read alone is pinned once more, to be written. */
static void rereg_to_writable(struct kunit *test)
{
	struct rereg *this = test->priv;

	rereg_register(test, IB_ACCESS_REMOTE_READ);
	rereg_expect_mpt(test, 0x104, this->pd->pdn);
	KUNIT_EXPECT_FALSE(test, to_hmr(this->ibmr)->umem->writable);
	KUNIT_ASSERT_EQ(test, 0, rereg_change(this, IB_MR_REREG_ACCESS, 0, 0, 0,
					      IB_ACCESS_LOCAL_WRITE, this->pd));
	KUNIT_EXPECT_TRUE(test, to_hmr(this->ibmr)->umem->writable);
	rereg_expect_as_before(test);
	/* It stays so when nobody writes any more. */
	KUNIT_ASSERT_EQ(test, 0, rereg_change(this, IB_MR_REREG_ACCESS, 0, 0, 0, 0, this->pd));
	rereg_expect_mpt(test, 0x100, this->pd->pdn);
	rereg_expect_memory(test, this->memory, REREG_PAGES, 0);
	rereg_expect_gone(test);
}

/* Not another process's memory, and not a dma-buf's, whose pages its exporter pins. */
static void rereg_not_to_writable(struct kunit *test)
{
	struct rereg *this = test->priv;
	struct ib_umem *umem;
	struct mm_struct *mm;

	rereg_register(test, IB_ACCESS_REMOTE_READ);
	umem = to_hmr(this->ibmr)->umem;
	mm = umem->owning_mm;
	umem->owning_mm = NULL;
	KUNIT_EXPECT_EQ(test, -EACCES, rereg_change(this, IB_MR_REREG_ACCESS, 0, 0, 0,
						    IB_ACCESS_LOCAL_WRITE, this->pd));
	umem->owning_mm = mm;
	umem->is_dmabuf = true;
	KUNIT_EXPECT_EQ(test, -EACCES, rereg_change(this, IB_MR_REREG_ACCESS, 0, 0, 0,
						    IB_ACCESS_LOCAL_WRITE, this->pd));
	umem->is_dmabuf = false;
	rereg_expect_mpt(test, 0x104, this->pd->pdn);
	rereg_expect_memory(test, this->memory, REREG_PAGES, 0);
	rereg_expect_gone(test);
}

/* ------------------------------------------------------------------ */
/* What cannot be                                                       */

static const struct rereg_bad {
	const char *name;
	int flags;
	u64 start;	/* added to the other memory's */
	u64 length;
	u64 virt_addr;
	int access;
	int err;
} rereg_bads[] = {
	{ "undefined flags", 8, 0, 0, 0, 0, -EOPNOTSUPP },
	{ "on-demand paging", IB_MR_REREG_ACCESS, 0, 0, 0, IB_ACCESS_ON_DEMAND, -EOPNOTSUPP },
	{ "memory that is not there", IB_MR_REREG_TRANS, 0x100000000, PAGE_SIZE, REREG_ADDRESS,
	  0, -EFAULT },
	{ "an address that does not go with the memory", IB_MR_REREG_TRANS, 0, PAGE_SIZE,
	  REREG_ADDRESS + 1, 0, -EINVAL },
	{ "addresses that wrap", IB_MR_REREG_TRANS, 0, 2 * PAGE_SIZE, 0xfffffffffffff000, 0,
	  -EINVAL },
	{ "zero-based, not from a page's start on", IB_MR_REREG_TRANS | IB_MR_REREG_ACCESS, 0x10,
	  PAGE_SIZE, 0x10, IB_ZERO_BASED, -EINVAL },
};

static void rereg_bad_name(const struct rereg_bad *bad, char *desc)
{
	strscpy(desc, bad->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(rereg_bad, rereg_bads, rereg_bad_name);

/* The device hears nothing of it. */
static void rereg_bad(struct kunit *test)
{
	const struct rereg_bad *param = test->param_value;
	struct rereg *this = test->priv;
	u32 mark;

	rereg_register(test, IB_ACCESS_LOCAL_WRITE);
	mark = fake_mark(this->fake);
	KUNIT_EXPECT_EQ(test, param->err,
			rereg_change(this, param->flags, this->other + param->start, param->length,
				     param->virt_addr, param->access, this->pd));
	KUNIT_EXPECT_EQ(test, mark, fake_mark(this->fake));
	rereg_expect_as_before(test);
	rereg_expect_gone(test);
}

static void rereg_input(struct kunit *test)
{
	struct rereg *this = test->priv;

	rereg_register(test, IB_ACCESS_LOCAL_WRITE);
	/* A page of zeros but for its number, which is 1. */
	this->udata.inbuf = (void __user *)this->memory + PAGE_SIZE;
	this->udata.inlen = 8;
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, rereg_change_params(this, IB_MR_REREG_PD));
	rereg_expect_as_before(test);
	this->udata.inlen = 0;
	rereg_expect_gone(test);
}

/* ------------------------------------------------------------------ */
/* Commands that fail                                                   */

static const struct rereg_failure {
	const char *name;
	u16 op;
	u32 nth;
	u32 count;
	u8 status;
	int err;
} rereg_failures[] = {
	{ "WRITE_MTT", 0x011, 0, 1, 0x0a, -EBADF },
	{ "HW2SW_MPT: windows are bound to it", 0x00f, 0, 1, 0x21, -EBUSY },
	{ "HW2SW_MPT, again and again", 0x00f, 0, 3, 0x01, -EIO },
	{ "SW2HW_MPT of what it shall be", 0x00d, 0, 1, 0x20, -EFAULT },
};

static void rereg_failure_name(const struct rereg_failure *failure, char *desc)
{
	strscpy(desc, failure->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(rereg_failure, rereg_failures, rereg_failure_name);

/* The region is what it was, and can be changed after all. */
static void rereg_fails(struct kunit *test)
{
	const struct rereg_failure *param = test->param_value;
	struct rereg *this = test->priv;
	struct ib_umem *umem;
	size_t mtts;

	rereg_register(test, IB_ACCESS_LOCAL_WRITE);
	umem = to_hmr(this->ibmr)->umem;
	mtts = fake_free_mtts(this->fake->hdev);
	rereg_fail(this, param->op, param->nth, param->count, param->status);
	KUNIT_EXPECT_EQ(test, param->err, rereg_change_params(this, IB_MR_REREG_SUPPORTED));
	KUNIT_EXPECT_GE(test, this->seen, param->count);
	rereg_expect_as_before(test);
	KUNIT_EXPECT_PTR_EQ(test, umem, to_hmr(this->ibmr)->umem);
	KUNIT_EXPECT_EQ(test, mtts, fake_free_mtts(this->fake->hdev));
	KUNIT_EXPECT_EQ(test, REREG_PAGES, atomic64_read(&current->mm->pinned_vm));

	KUNIT_EXPECT_EQ(test, 0, rereg_change_params(this, IB_MR_REREG_SUPPORTED));
	rereg_expect_changed(test, IB_MR_REREG_SUPPORTED);
	rereg_expect_gone(test);
}

/* The same where MTTs stay: a change that fails leaves them. */
static void rereg_fails_in_place(struct kunit *test)
{
	struct rereg *this = test->priv;

	rereg_register(test, IB_ACCESS_LOCAL_WRITE);
	rereg_fail(this, 0x00d, 0, 1, 0x03);
	KUNIT_EXPECT_EQ(test, -EINVAL, rereg_change_params(this, IB_MR_REREG_PD));
	rereg_expect_as_before(test);
	rereg_expect_gone(test);
}

/* The device takes neither the new nor the old: nothing is there, but it can be mended. */
static void rereg_lost(struct kunit *test)
{
	struct rereg *this = test->priv;

	rereg_register(test, IB_ACCESS_LOCAL_WRITE);
	rereg_fail(this, 0x00d, 0, 2, 0x22);
	KUNIT_EXPECT_EQ(test, -EAGAIN, rereg_change_params(this, IB_MR_REREG_SUPPORTED));
	KUNIT_EXPECT_FALSE(test, this->owned);
	KUNIT_EXPECT_EQ(test, REREG_NOTHING, rereg_read(this, this->memory));

	/* Once more in vain, and then well. */
	rereg_fail(this, 0x00d, 0, 1, 0x22);
	KUNIT_EXPECT_EQ(test, -EAGAIN, rereg_change_params(this, IB_MR_REREG_PD));
	KUNIT_EXPECT_EQ(test, 1, this->seen);
	KUNIT_EXPECT_FALSE(test, this->owned);
	KUNIT_EXPECT_EQ(test, 0, rereg_change_params(this, IB_MR_REREG_PD));
	rereg_expect_changed(test, IB_MR_REREG_PD);
	rereg_expect_gone(test);
}

/* One that is lost is deregistered without a word to the device, which has nothing. */
static void rereg_lost_and_gone(struct kunit *test)
{
	struct rereg *this = test->priv;

	rereg_register(test, IB_ACCESS_LOCAL_WRITE);
	rereg_fail(this, 0x00d, 0, 2, 0x22);
	KUNIT_EXPECT_EQ(test, -EAGAIN, rereg_change_params(this, IB_MR_REREG_TRANS));
	rereg_fail(this, 0x00f, 0, 1, 0x09);
	rereg_expect_gone(test);
	KUNIT_EXPECT_EQ(test, 0, this->seen);
}

/* ------------------------------------------------------------------ */
/* dma-bufs                                                             */

/* An exporter of REREG_PAGES pages of numbers from REREG_OTHER on. */
struct rereg_buffer {
	struct page *pages;
	int fd;
	int attached;
	bool released;
};

static int rereg_buffer_attach(struct dma_buf *dmabuf, struct dma_buf_attachment *attach)
{
	struct rereg_buffer *buffer = dmabuf->priv;

	buffer->attached++;
	return 0;
}

static void rereg_buffer_detach(struct dma_buf *dmabuf, struct dma_buf_attachment *attach)
{
	struct rereg_buffer *buffer = dmabuf->priv;

	buffer->attached--;
}

static struct sg_table *rereg_buffer_map(struct dma_buf_attachment *attach,
					 enum dma_data_direction dir)
{
	struct rereg_buffer *buffer = attach->dmabuf->priv;
	struct sg_table *sgt = kzalloc(sizeof(*sgt), GFP_KERNEL);

	if (!sgt || sg_alloc_table(sgt, 1, GFP_KERNEL))
		goto err_free;
	sg_set_page(sgt->sgl, buffer->pages, REREG_BYTES, 0);
	if (dma_map_sgtable(attach->dev, sgt, dir, 0))
		goto err_free_table;
	return sgt;

err_free_table:
	sg_free_table(sgt);
err_free:
	kfree(sgt);
	return ERR_PTR(-ENOMEM);
}

static void rereg_buffer_unmap(struct dma_buf_attachment *attach, struct sg_table *sgt,
			       enum dma_data_direction dir)
{
	dma_unmap_sgtable(attach->dev, sgt, dir, 0);
	sg_free_table(sgt);
	kfree(sgt);
}

static void rereg_buffer_release(struct dma_buf *dmabuf)
{
	struct rereg_buffer *buffer = dmabuf->priv;

	__free_pages(buffer->pages, get_order(REREG_BYTES));
	buffer->released = true;
}

static const struct dma_buf_ops rereg_buffer_ops = {
	.attach = rereg_buffer_attach,
	.detach = rereg_buffer_detach,
	.map_dma_buf = rereg_buffer_map,
	.unmap_dma_buf = rereg_buffer_unmap,
	.release = rereg_buffer_release,
};

static void rereg_buffer_create(struct kunit *test, struct rereg_buffer *buffer)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct rereg *this = test->priv;
	struct dma_buf *dmabuf;
	u32 i;

	/* An exporter maps for a device. */
	this->fake->hdev->ibdev.dma_device = this->fake->hdev->bus.dev;
	buffer->pages = alloc_pages(GFP_KERNEL, get_order(REREG_BYTES));
	KUNIT_ASSERT_NOT_NULL(test, buffer->pages);
	for (i = 0; i < REREG_PAGES; i++)
		*(u64 *)page_address(buffer->pages + i) = REREG_OTHER + i;
	info.ops = &rereg_buffer_ops;
	info.size = REREG_BYTES;
	info.flags = O_RDWR;
	info.priv = buffer;
	dmabuf = dma_buf_export(&info);
	KUNIT_ASSERT_FALSE(test, IS_ERR(dmabuf));
	buffer->fd = dma_buf_fd(dmabuf, O_CLOEXEC);
	KUNIT_ASSERT_GE(test, buffer->fd, 0);
}

/* Nobody else has it: it goes with its file. */
static void rereg_buffer_expect_gone(struct kunit *test, struct rereg_buffer *buffer)
{
	KUNIT_EXPECT_EQ(test, 0, buffer->attached);
	KUNIT_EXPECT_FALSE(test, buffer->released);
	KUNIT_EXPECT_EQ(test, 0, close_fd(buffer->fd));
	flush_delayed_fput();
	KUNIT_EXPECT_TRUE(test, buffer->released);
}

static void rereg_register_buffer(struct kunit *test, struct rereg_buffer *buffer, int access)
{
	struct rereg *this = test->priv;

	rereg_buffer_create(test, buffer);
	KUNIT_ASSERT_EQ(test, 0, buffer->attached);
	this->ibmr = hghca_reg_user_mr_dmabuf(&this->pd->ibpd, PAGE_SIZE, 2 * PAGE_SIZE,
					      REREG_ADDRESS, buffer->fd, access, NULL, NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(this->ibmr));
	this->ibmr->device = this->pd->ibpd.device;
	this->key = this->ibmr->lkey;
	KUNIT_EXPECT_EQ(test, 1, buffer->attached);
}

/* Two pages out of four, of which the region may get another PD, but no other right to write. */
static void rereg_dmabuf(struct kunit *test)
{
	struct rereg *this = test->priv;
	struct rereg_buffer buffer = {};

	rereg_register_buffer(test, &buffer, IB_ACCESS_REMOTE_READ | IB_ACCESS_RELAXED_ORDERING);
	rereg_expect_mpt(test, 0x104, this->pd->pdn);
	rereg_expect_memory(test, REREG_ADDRESS, 2, REREG_OTHER + 1);
	KUNIT_EXPECT_EQ(test, 0, rereg_change(this, IB_MR_REREG_PD, 0, 0, 0, 0, this->other_pd));
	rereg_expect_mpt(test, 0x104, this->other_pd->pdn);
	rereg_expect_memory(test, REREG_ADDRESS, 2, REREG_OTHER + 1);
	KUNIT_EXPECT_EQ(test, -EACCES, rereg_change(this, IB_MR_REREG_ACCESS, 0, 0, 0,
						    IB_ACCESS_LOCAL_WRITE, this->pd));
	rereg_expect_mpt(test, 0x104, this->other_pd->pdn);
	KUNIT_EXPECT_EQ(test, 0, hghca_dereg_mr(this->ibmr, NULL));
	rereg_buffer_expect_gone(test, &buffer);
}

/* Memory of its user's takes its place, and it is let go. */
static void rereg_dmabuf_replaced(struct kunit *test)
{
	struct rereg *this = test->priv;
	struct rereg_buffer buffer = {};

	this->memory = rereg_memory(test, 0);
	rereg_register_buffer(test, &buffer, IB_ACCESS_LOCAL_WRITE);
	rereg_expect_mpt(test, 0x101, this->pd->pdn);
	KUNIT_EXPECT_EQ(test, 0, rereg_change(this, IB_MR_REREG_TRANS, this->memory, REREG_BYTES,
					      this->memory, 0, this->pd));
	rereg_expect_as_before(test);
	rereg_buffer_expect_gone(test, &buffer);
	rereg_expect_gone(test);
}

static const struct rereg_bad_buffer {
	const char *name;
	u64 offset;
	u64 length;
	int access;
	bool no_fd;
	u16 fail_op;
	int err;
} rereg_bad_buffers[] = {
	{ "no dma-buf", 0, PAGE_SIZE, 0, true, 0, -EBADF },
	{ "on-demand paging", 0, PAGE_SIZE, IB_ACCESS_ON_DEMAND, false, 0, -EOPNOTSUPP },
	{ "more than there is", PAGE_SIZE, REREG_BYTES, 0, false, 0, -EINVAL },
	{ "an end that wraps", U64_MAX - PAGE_SIZE + 1, 2 * PAGE_SIZE, 0, false, 0, -EINVAL },
	{ "WRITE_MTT fails", 0, PAGE_SIZE, 0, false, 0x011, -EBADF },
	{ "SW2HW_MPT fails", 0, PAGE_SIZE, 0, false, 0x00d, -EBADF },
};

static void rereg_bad_buffer_name(const struct rereg_bad_buffer *bad, char *desc)
{
	strscpy(desc, bad->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(rereg_bad_buffer, rereg_bad_buffers, rereg_bad_buffer_name);

static void rereg_bad_dmabuf(struct kunit *test)
{
	const struct rereg_bad_buffer *param = test->param_value;
	struct rereg *this = test->priv;
	struct rereg_buffer buffer = {};

	rereg_buffer_create(test, &buffer);
	rereg_fail(this, param->fail_op, 0, 1, 0x0a);
	KUNIT_EXPECT_PTR_EQ(test, ERR_PTR(param->err),
			    hghca_reg_user_mr_dmabuf(&this->pd->ibpd, param->offset, param->length,
						     REREG_ADDRESS, param->no_fd ? -1 : buffer.fd,
						     param->access, NULL, NULL));
	KUNIT_EXPECT_FALSE(test, this->owned);
	KUNIT_EXPECT_FALSE(test, fake_has_keys(this->fake->hdev));
	rereg_buffer_expect_gone(test, &buffer);
}

/* As ib_reg_user_mr() asks for it, which has no input to give. */
static void rereg_for_kernel(struct kunit *test)
{
	struct rereg *this = test->priv;

	this->memory = rereg_memory(test, 0);
	this->ibmr = hghca_reg_user_mr(&this->pd->ibpd, this->memory, REREG_BYTES, this->memory,
				       IB_ACCESS_LOCAL_WRITE, NULL, NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(this->ibmr));
	this->ibmr->device = this->pd->ibpd.device;
	this->key = this->ibmr->lkey;
	rereg_expect_memory(test, this->memory, REREG_PAGES, 0);
	rereg_expect_gone(test);
}

static struct kunit_case rereg_cases[] = {
	KUNIT_CASE_PARAM(rereg_each, rereg_param_gen_params),
	KUNIT_CASE(rereg_zero_based),
	KUNIT_CASE(rereg_zero_based_from_any_byte),
	KUNIT_CASE(rereg_no_bytes),
	KUNIT_CASE(rereg_to_writable),
	KUNIT_CASE(rereg_not_to_writable),
	KUNIT_CASE_PARAM(rereg_bad, rereg_bad_gen_params),
	KUNIT_CASE(rereg_input),
	KUNIT_CASE_PARAM(rereg_fails, rereg_failure_gen_params),
	KUNIT_CASE(rereg_fails_in_place),
	KUNIT_CASE(rereg_lost),
	KUNIT_CASE(rereg_lost_and_gone),
	KUNIT_CASE(rereg_dmabuf),
	KUNIT_CASE(rereg_dmabuf_replaced),
	KUNIT_CASE_PARAM(rereg_bad_dmabuf, rereg_bad_buffer_gen_params),
	KUNIT_CASE(rereg_for_kernel),
	{}
};

static struct kunit_suite rereg_suite = {
	.name = "hghca_rereg",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = rereg_init,
	.test_cases = rereg_cases,
};

kunit_test_suite(rereg_suite);

/* MODULE_IMPORT_NS() takes a word in 6.12, and a string in 7.3. */
MODULE_INFO(import_ns, "DMA_BUF");
