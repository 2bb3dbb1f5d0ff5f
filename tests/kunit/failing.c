// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of devices that fail: what is given up makes no more DMA before
 * anything of it is freed, and gets no more commands.
 */
#include <linux/genalloc.h>
#include <linux/mman.h>
#include <linux/sizes.h>

#include "fake.h"

#define FAILING_RESET	0xf0010	/* the reset register; document 3 */

/* What was seen as the device's DMA ended. */
struct failing {
	struct fake *fake;
	u16 refused;		/* opcode that is not obeyed */
	u8 status;
	const struct hghca_queue *queue;
	struct mm_struct *mm;	/* of a user */
	int ends;
	bool was_reset;
	bool was_failed;
	bool was_there;
	u64 pinned;		/* pages of that user */
};

static enum fake_end failing_answer(struct fake *fake, const struct fake_command *cmd,
				    struct fake_answer *answer)
{
	const struct failing *this = fake->priv;

	if (cmd->op == this->refused)
		answer->status = this->status;
	return FAKE_ANSWERED;
}

static void failing_on_dma_end(struct fake *fake)
{
	struct failing *this = fake->priv;

	this->ends++;
	this->was_reset = readl((void __iomem *)fake->regs + FAILING_RESET) == 1;
	this->was_failed = hghca_dev_has_failed(fake->hdev);
	this->was_there = this->queue && this->queue->mr.key;
	this->pinned = this->mm ? atomic64_read(&this->mm->pinned_vm) : 0;
}

static int failing_init(struct kunit *test)
{
	struct failing *this = kunit_kzalloc(test, sizeof(*this), GFP_KERNEL);
	int err;

	if (!this)
		return -ENOMEM;
	err = fake_test_init(test);
	if (err)
		return err;
	this->fake = test->priv;
	this->fake->priv = this;
	this->fake->answer = failing_answer;
	this->fake->on_dma_end = failing_on_dma_end;
	test->priv = this;
	return 0;
}

/* The device was reset, then stopped by its bus, and only then seen as given up. */
static void failing_expect_cut_off(struct kunit *test, const struct failing *this)
{
	KUNIT_EXPECT_EQ(test, 1, this->ends);
	KUNIT_EXPECT_TRUE(test, this->was_reset);
	KUNIT_EXPECT_FALSE(test, this->was_failed);
	KUNIT_EXPECT_FALSE(test, this->fake->dma);
	KUNIT_EXPECT_TRUE(test, hghca_dev_has_failed(this->fake->hdev));
}

static void failing_given_up(struct kunit *test)
{
	struct failing *this = test->priv;

	hghca_dev_fail(this->fake->hdev, "a test");
	failing_expect_cut_off(test, this);
	hghca_dev_fail(this->fake->hdev, "a test, again");
	KUNIT_EXPECT_EQ(test, 1, this->ends);
}

static void failing_shut_down(struct kunit *test)
{
	struct failing *this = test->priv;

	hghca_dev_shutdown(this->fake->hdev);
	failing_expect_cut_off(test, this);
}

/* ------------------------------------------------------------------ */
/* Regions that the device keeps                                        */

static const struct failing_kept {
	const char *name;
	u8 status;
} failing_kepts[] = {
	{ "INTERNAL_ERR", 0x01 },
	{ "BAD_PARAM", 0x03 },
	{ "RESOURCE_BUSY", 0x06 },
	{ "BAD_RES_STATE", 0x09 },
	{ "REG_BOUND", 0x21 },
};

static void failing_kept_name(const struct failing_kept *kept, char *desc)
{
	strscpy(desc, kept->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(failing_kept, failing_kepts, failing_kept_name);

static void failing_keep_mpts(struct failing *this, const struct failing_kept *kept)
{
	this->refused = 0x00f;	/* HW2SW_MPT */
	this->status = kept->status;
}

/* Memory of the kernel: as the DMA ends it is there, and nothing of it leaks. */
static void failing_kernel_queue(struct kunit *test)
{
	struct failing *this = test->priv;
	struct hghca_dev *hdev = this->fake->hdev;
	size_t mtts = gen_pool_avail(hdev->mtt_pool);
	struct hghca_queue queue;

	KUNIT_ASSERT_EQ(test, 0, hghca_queue_alloc(hdev, &queue, 9, SZ_64K, true));
	failing_keep_mpts(this, test->param_value);
	this->queue = &queue;
	hghca_queue_free(hdev, &queue);
	failing_expect_cut_off(test, this);
	KUNIT_EXPECT_TRUE(test, this->was_there);
	KUNIT_EXPECT_NULL(test, memchr_inv(&queue, 0, sizeof(queue)));
	KUNIT_EXPECT_EQ(test, mtts, gen_pool_avail(hdev->mtt_pool));
}

/* Memory of a user: its pages are unpinned once the DMA has ended. */
static void failing_user_queue(struct kunit *test)
{
	struct failing *this = test->priv;
	struct hghca_dev *hdev = this->fake->hdev;
	unsigned long addr = fake_user_memory(test, SZ_16K, PROT_READ | PROT_WRITE);
	struct hghca_queue queue;
	struct ib_umem *umem;

	umem = ib_umem_get(&hdev->ibdev, addr, SZ_16K, IB_ACCESS_LOCAL_WRITE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(umem));
	KUNIT_EXPECT_EQ(test, 0, hghca_queue_map_user(hdev, &queue, 9, umem, 0, SZ_16K, true));
	failing_keep_mpts(this, test->param_value);
	this->queue = &queue;
	hghca_queue_free(hdev, &queue);
	failing_expect_cut_off(test, this);
	KUNIT_EXPECT_TRUE(test, this->was_there);
	ib_umem_release(umem);
}

/* All of memory, for the kernel's users. */
static void failing_dma_mr(struct kunit *test)
{
	struct failing *this = test->priv;
	struct hghca_pd *pd = fake_pd(test, this->fake);
	struct ib_mr *ibmr = hghca_get_dma_mr(&pd->ibpd, IB_ACCESS_LOCAL_WRITE);

	KUNIT_ASSERT_FALSE(test, IS_ERR(ibmr));
	ibmr->device = pd->ibpd.device;
	failing_keep_mpts(this, test->param_value);
	KUNIT_EXPECT_EQ(test, 0, hghca_dereg_mr(ibmr, NULL));
	failing_expect_cut_off(test, this);
}

/* Nobody has windows: the user cannot mend it, and its pages are unpinned once the DMA has ended. */
static void failing_user_mr(struct kunit *test)
{
	struct failing *this = test->priv;
	struct hghca_pd *pd = fake_pd(test, this->fake);
	unsigned long addr = fake_user_memory(test, SZ_4K, PROT_READ | PROT_WRITE);
	struct ib_mr *ibmr;

	ibmr = hghca_reg_user_mr(&pd->ibpd, addr, SZ_4K, addr, IB_ACCESS_LOCAL_WRITE, NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ibmr));
	ibmr->device = pd->ibpd.device;
	ibmr->pd = &pd->ibpd;
	failing_keep_mpts(this, test->param_value);
	this->mm = current->mm;
	KUNIT_EXPECT_EQ(test, 0, hghca_dereg_mr(ibmr, NULL));
	failing_expect_cut_off(test, this);
	KUNIT_EXPECT_EQ(test, 1, this->pinned);
	KUNIT_EXPECT_EQ(test, 0, atomic64_read(&this->mm->pinned_vm));
	KUNIT_EXPECT_TRUE(test, ida_is_empty(&this->fake->hdev->mpt_ida));
}

static void failing_window(struct kunit *test)
{
	struct failing *this = test->priv;
	struct hghca_pd *pd = fake_pd(test, this->fake);
	struct hghca_mw *mw = kunit_kzalloc(test, sizeof(*mw), GFP_KERNEL);
	struct ib_udata udata = {};

	KUNIT_ASSERT_NOT_NULL(test, mw);
	mw->ibmw.device = pd->ibpd.device;
	mw->ibmw.pd = &pd->ibpd;
	mw->ibmw.type = IB_MW_TYPE_2;
	KUNIT_ASSERT_EQ(test, 0, hghca_alloc_mw(&mw->ibmw, &udata));
	failing_keep_mpts(this, test->param_value);
	KUNIT_EXPECT_EQ(test, 0, hghca_dealloc_mw(&mw->ibmw));
	failing_expect_cut_off(test, this);
	KUNIT_EXPECT_TRUE(test, ida_is_empty(&this->fake->hdev->mpt_ida));
}

static void failing_eq(struct kunit *test)
{
	struct failing *this = test->priv;
	struct hghca_dev *hdev = this->fake->hdev;
	size_t mtts = gen_pool_avail(hdev->mtt_pool);

	KUNIT_ASSERT_EQ(test, 0, hghca_eqs_init(hdev));
	this->refused = 0x014;	/* HW2SW_EQ */
	this->status = 0x06;
	hghca_eqs_cleanup(hdev);
	failing_expect_cut_off(test, this);
	KUNIT_EXPECT_EQ(test, mtts, gen_pool_avail(hdev->mtt_pool));
}

/* LOCAL_CATAS_ERROR, twice: the device is given up once, and those who wait for it end. */
static void failing_catastrophe(struct kunit *test)
{
	static const u8 eqe[32] = { [0x01] = 0x08 };
	struct failing *this = test->priv;
	struct hghca_dev *hdev = this->fake->hdev;

	KUNIT_ASSERT_EQ(test, 0, fake_events(this->fake));
	fake_event(this->fake, 1, eqe, true);
	fake_event(this->fake, 1, eqe, true);
	failing_expect_cut_off(test, this);
	KUNIT_EXPECT_EQ(test, -EIO, hghca_cmd_nop(hdev));
	/* What tells ib_core of it ran, and is not asked for again. */
	flush_work(&hdev->fail_work);
	fake_event(this->fake, 1, eqe, true);
	KUNIT_EXPECT_EQ(test, 0, work_busy(&hdev->fail_work));
	KUNIT_EXPECT_EQ(test, 1, this->ends);
}

static struct kunit_case failing_cases[] = {
	KUNIT_CASE(failing_given_up),
	KUNIT_CASE(failing_shut_down),
	KUNIT_CASE_PARAM(failing_kernel_queue, failing_kept_gen_params),
	KUNIT_CASE_PARAM(failing_user_queue, failing_kept_gen_params),
	KUNIT_CASE_PARAM(failing_dma_mr, failing_kept_gen_params),
	KUNIT_CASE_PARAM(failing_user_mr, failing_kept_gen_params),
	KUNIT_CASE_PARAM(failing_window, failing_kept_gen_params),
	KUNIT_CASE(failing_eq),
	KUNIT_CASE(failing_catastrophe),
	{}
};

static struct kunit_suite failing_suite = {
	.name = "hghca_failing",
	.init = failing_init,
	.test_cases = failing_cases,
};

/* ------------------------------------------------------------------ */
/* DMA from start to stop                                               */

/* What was seen as DMA began and ended. */
struct starting {
	struct fake *fake;
	u16 refused;		/* opcode */
	int begins;
	int ends;
	bool was_reset;		/* when it began */
	u32 commands_before;	/* it began */
	u16 last;		/* opcode of the last command before it ended */
};

static enum fake_end starting_answer(struct fake *fake, const struct fake_command *cmd,
				     struct fake_answer *answer)
{
	const struct starting *this = fake->priv;

	if (cmd->op == this->refused)
		answer->status = 0x03;
	return FAKE_ANSWERED;
}

static void starting_on_dma_begin(struct fake *fake)
{
	struct starting *this = fake->priv;

	this->begins++;
	this->was_reset = readl((void __iomem *)fake->regs + FAILING_RESET) == 1;
	this->commands_before = fake_mark(fake);
}

static void starting_on_dma_end(struct fake *fake)
{
	struct starting *this = fake->priv;

	this->ends++;
	this->last = fake_nth(fake, fake_mark(fake) - 1)->op;
}

/* A device that nobody has started; its bus lets it make no DMA. */
static int starting_init(struct kunit *test)
{
	struct starting *this = kunit_kzalloc(test, sizeof(*this), GFP_KERNEL);

	if (!this)
		return -ENOMEM;
	this->fake = fake_test_create(test);
	if (!this->fake)
		return -ENOMEM;
	this->fake->dma = false;
	this->fake->priv = this;
	this->fake->answer = starting_answer;
	this->fake->on_dma_begin = starting_on_dma_begin;
	this->fake->on_dma_end = starting_on_dma_end;
	test->priv = this;
	return 0;
}

/* What an earlier driver left under way has ended, and nothing has been asked for. */
static void starting_expect_begun(struct kunit *test, const struct starting *this)
{
	KUNIT_EXPECT_EQ(test, 1, this->begins);
	KUNIT_EXPECT_TRUE(test, this->was_reset);
	KUNIT_EXPECT_EQ(test, 0, this->commands_before);
}

static void starting_dma(struct kunit *test)
{
	struct starting *this = test->priv;
	struct hghca_dev *hdev = this->fake->hdev;

	KUNIT_ASSERT_EQ(test, 0, hghca_hca_open(hdev));
	starting_expect_begun(test, this);
	KUNIT_EXPECT_TRUE(test, this->fake->dma);
	KUNIT_EXPECT_EQ(test, 0, this->ends);

	hghca_hca_close(hdev);
	KUNIT_EXPECT_FALSE(test, this->fake->dma);
	KUNIT_EXPECT_EQ(test, 1, this->ends);
	KUNIT_EXPECT_EQ(test, 0x008, this->last);	/* CLOSE_HCA */
	KUNIT_EXPECT_FALSE(test, hghca_dev_has_failed(hdev));
}

static const struct starting_refusal {
	const char *name;
	u16 op;
} starting_refusals[] = {
	{ "QUERY_DEV_LIM", 0x003 },
	{ "QUERY_ADAPTER", 0x006 },
	{ "INIT_HCA", 0x007 },
};

KUNIT_ARRAY_PARAM_DESC(starting_refusal, starting_refusals, name);

/* A device that does not start is left without DMA. */
static void starting_refused(struct kunit *test)
{
	const struct starting_refusal *param = test->param_value;
	struct starting *this = test->priv;

	this->refused = param->op;
	KUNIT_EXPECT_EQ(test, -EINVAL, hghca_hca_open(this->fake->hdev));
	starting_expect_begun(test, this);
	KUNIT_EXPECT_FALSE(test, this->fake->dma);
	KUNIT_EXPECT_EQ(test, 1, this->ends);
	KUNIT_EXPECT_EQ(test, param->op, this->last);
}

/* One that does not close is given up. */
static void starting_not_closed(struct kunit *test)
{
	struct starting *this = test->priv;
	struct hghca_dev *hdev = this->fake->hdev;

	KUNIT_ASSERT_EQ(test, 0, hghca_hca_open(hdev));
	writel(0, (void __iomem *)this->fake->regs + FAILING_RESET);
	this->refused = 0x008;
	hghca_hca_close(hdev);
	KUNIT_EXPECT_TRUE(test, hghca_dev_has_failed(hdev));
	KUNIT_EXPECT_EQ(test, 1, readl((void __iomem *)this->fake->regs + FAILING_RESET));
	KUNIT_EXPECT_FALSE(test, this->fake->dma);
	KUNIT_EXPECT_EQ(test, 1, this->ends);
}

static struct kunit_case starting_cases[] = {
	KUNIT_CASE(starting_dma),
	KUNIT_CASE_PARAM(starting_refused, starting_refusal_gen_params),
	KUNIT_CASE(starting_not_closed),
	{}
};

static struct kunit_suite starting_suite = {
	.name = "hghca_start",
	.init = starting_init,
	.test_cases = starting_cases,
};

kunit_test_suites(&failing_suite, &starting_suite);
