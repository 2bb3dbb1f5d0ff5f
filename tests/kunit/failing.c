// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of devices that fail: what is given up makes no more DMA before
 * anything of it is freed, and gets no more commands.
 */
#include <linux/genalloc.h>
#include <linux/mman.h>
#include <linux/sizes.h>
#include <linux/uaccess.h>

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

static int failing_open(struct kunit *test, struct failing *this)
{
	int err;

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

static int failing_init(struct kunit *test)
{
	struct failing *this = kunit_kzalloc(test, sizeof(*this), GFP_KERNEL);

	return this ? failing_open(test, this) : -ENOMEM;
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
	size_t mtts = fake_free_mtts(hdev);
	struct hghca_queue queue;

	KUNIT_ASSERT_EQ(test, 0, hghca_queue_alloc(hdev, &queue, 9, SZ_64K, true));
	failing_keep_mpts(this, test->param_value);
	this->queue = &queue;
	hghca_queue_free(hdev, &queue);
	failing_expect_cut_off(test, this);
	KUNIT_EXPECT_TRUE(test, this->was_there);
	KUNIT_EXPECT_NULL(test, memchr_inv(&queue, 0, sizeof(queue)));
	KUNIT_EXPECT_EQ(test, mtts, fake_free_mtts(hdev));
}

/* Memory of a user: its pages are unpinned once the DMA has ended. */
static void failing_user_queue(struct kunit *test)
{
	struct failing *this = test->priv;
	struct hghca_dev *hdev = this->fake->hdev;
	unsigned long addr = fake_user_memory(test, SZ_16K, PROT_READ | PROT_WRITE);
	struct hghca_queue queue;
	struct ib_umem *umem;

	umem = ib_umem_get_va(&hdev->ibdev, addr, SZ_16K, IB_ACCESS_LOCAL_WRITE);
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

	ibmr = hghca_reg_user_mr(&pd->ibpd, addr, SZ_4K, addr, IB_ACCESS_LOCAL_WRITE, NULL, NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ibmr));
	ibmr->device = pd->ibpd.device;
	ibmr->pd = &pd->ibpd;
	failing_keep_mpts(this, test->param_value);
	this->mm = current->mm;
	KUNIT_EXPECT_EQ(test, 0, hghca_dereg_mr(ibmr, NULL));
	failing_expect_cut_off(test, this);
	KUNIT_EXPECT_EQ(test, 1, this->pinned);
	KUNIT_EXPECT_EQ(test, 0, atomic64_read(&this->mm->pinned_vm));
	KUNIT_EXPECT_FALSE(test, fake_has_keys(this->fake->hdev));
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
	KUNIT_EXPECT_FALSE(test, fake_has_keys(this->fake->hdev));
}

static void failing_eq(struct kunit *test)
{
	struct failing *this = test->priv;
	struct hghca_dev *hdev = this->fake->hdev;
	size_t mtts = fake_free_mtts(hdev);

	KUNIT_ASSERT_EQ(test, 0, hghca_eqs_init(hdev));
	this->refused = 0x014;	/* HW2SW_EQ */
	this->status = 0x06;
	hghca_eqs_cleanup(hdev);
	failing_expect_cut_off(test, this);
	KUNIT_EXPECT_EQ(test, mtts, fake_free_mtts(hdev));
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
/* Queues of users                                                      */

/* Pages of a user's memory: input and output, record, buffers. */
#define USER_RECORD	1
#define USER_BUFFER	2
#define USER_NEW_BUFFER	6
#define USER_PAGES	10
#define USER_OUT	(PAGE_SIZE / 2)	/* in the first */

struct failing_user {
	struct failing failing;	/* test->priv */
	unsigned long memory;
	struct hghca_pd *pd;
	struct hghca_cq *kernel_cq;
	struct hghca_ucontext *uctx;
	struct uverbs_attr_bundle *bundle;
	struct hghca_cq cq;
	struct hghca_srq srq;
	struct hghca_qp qp;
	struct ib_wq *wq;
};

static struct failing_user *to_user(struct kunit *test)
{
	return container_of(test->priv, struct failing_user, failing);
}

static u64 failing_page(const struct failing_user *user, u32 page)
{
	return user->memory + page * PAGE_SIZE;
}

static struct ib_udata *failing_udata(struct failing_user *user, const void *in, size_t size)
{
	struct ib_udata *udata = &user->bundle->driver_udata;

	udata->inbuf = (void __user *)user->memory;
	udata->inlen = size;
	udata->outbuf = (void __user *)(user->memory + USER_OUT);
	udata->outlen = 8;
	return copy_to_user((void __user *)udata->inbuf, in, size) ? NULL : udata;
}

/* 256 CQEs of 32 bytes: two pages. */
static int failing_make_cq(struct failing_user *user)
{
	const struct hghca_create_cq cmd = {
		.buf_addr = failing_page(user, USER_BUFFER),
		.dbr_addr = failing_page(user, USER_RECORD),
	};
	const struct ib_cq_init_attr attr = { .cqe = 255 };

	user->cq.ibcq.device = user->pd->ibpd.device;
	if (!failing_udata(user, &cmd, sizeof(cmd)))
		return -EFAULT;
	return hghca_create_user_cq(&user->cq.ibcq, &attr, user->bundle);
}

static int failing_destroy_cq(struct failing_user *user)
{
	return hghca_destroy_cq(&user->cq.ibcq, fake_no_udata(user->bundle));
}

static int failing_resize_cq(struct failing_user *user)
{
	const struct hghca_resize_cq_cmd cmd = {
		.buf_addr = failing_page(user, USER_NEW_BUFFER),
	};
	struct ib_udata *udata = failing_udata(user, &cmd, sizeof(cmd));

	return udata ? hghca_resize_user_cq(&user->cq.ibcq, 511, udata) : -EFAULT;
}

/* 64 WQEs of 128 bytes: two pages. */
static int failing_make_srq(struct failing_user *user)
{
	const struct hghca_create_srq cmd = {
		.buf_addr = failing_page(user, USER_BUFFER),
		.dbr_addr = failing_page(user, USER_RECORD),
		.wqe_cnt = 64,
		.log_stride = 7,
	};
	struct ib_udata *udata = failing_udata(user, &cmd, sizeof(cmd));
	struct ib_srq_init_attr init = {
		.attr = { .max_wr = 63, .max_sge = 1 },
		.srq_type = IB_SRQT_BASIC,
	};

	user->srq.ibsrq.device = user->pd->ibpd.device;
	user->srq.ibsrq.pd = &user->pd->ibpd;
	return udata ? hghca_create_srq(&user->srq.ibsrq, &init, udata) : -EFAULT;
}

static int failing_destroy_srq(struct failing_user *user)
{
	return hghca_destroy_srq(&user->srq.ibsrq, fake_no_udata(user->bundle));
}

static int failing_resize_srq(struct failing_user *user)
{
	const struct hghca_modify_srq cmd = {
		.buf_addr = failing_page(user, USER_NEW_BUFFER),
		.wqe_cnt = 128,
	};
	struct ib_udata *udata = failing_udata(user, &cmd, sizeof(cmd));
	struct ib_srq_attr attr = { .max_wr = 127 };

	return udata ? hghca_modify_srq(&user->srq.ibsrq, &attr, IB_SRQ_MAX_WR, udata) : -EFAULT;
}

/* 64 WQEs of 64 bytes and 64 of 128: three pages. */
static int failing_make_qp(struct failing_user *user)
{
	const struct hghca_create_qp cmd = {
		.buf_addr = failing_page(user, USER_BUFFER),
		.dbr_addr = failing_page(user, USER_RECORD),
		.sq_wqe_cnt = 64,
		.rq_wqe_cnt = 64,
		.log_sq_stride = 6,
		.log_rq_stride = 7,
	};
	struct ib_udata *udata = failing_udata(user, &cmd, sizeof(cmd));
	struct ib_qp_init_attr init = {
		.send_cq = &user->kernel_cq->ibcq,
		.recv_cq = &user->kernel_cq->ibcq,
		.cap = { .max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IB_QPT_RC,
	};
	struct ib_qp *ibqp = &user->qp.ibqp;

	ibqp->device = user->pd->ibpd.device;
	ibqp->pd = &user->pd->ibpd;
	ibqp->send_cq = init.send_cq;
	ibqp->recv_cq = init.recv_cq;
	ibqp->qp_type = init.qp_type;
	return udata ? hghca_create_qp(ibqp, &init, udata) : -EFAULT;
}

static int failing_destroy_qp(struct failing_user *user)
{
	return hghca_destroy_qp(&user->qp.ibqp, fake_no_udata(user->bundle));
}

/* 64 WQEs of 128 bytes: two pages. */
static int failing_make_wq(struct failing_user *user)
{
	const struct hghca_create_wq cmd = {
		.buf_addr = failing_page(user, USER_BUFFER),
		.dbr_addr = failing_page(user, USER_RECORD),
		.wqe_cnt = 64,
		.log_stride = 7,
	};
	struct ib_udata *udata = failing_udata(user, &cmd, sizeof(cmd));
	struct ib_wq_init_attr init = {
		.wq_type = IB_WQT_RQ,
		.max_wr = 64,
		.max_sge = 1,
		.cq = &user->kernel_cq->ibcq,
	};

	if (!udata)
		return -EFAULT;
	user->wq = hghca_create_wq(&user->pd->ibpd, &init, udata);
	return PTR_ERR_OR_ZERO(user->wq);
}

static int failing_destroy_wq(struct failing_user *user)
{
	return hghca_destroy_wq(user->wq, fake_no_udata(user->bundle));
}

/* Bit 26 of the capabilities: both queues can be in one region. */
#define USER_RQ_OFFSET	0x04000000

static const struct failing_object {
	const char *name;
	int (*make)(struct failing_user *user);
	int (*change)(struct failing_user *user);	/* which gives the old buffer back */
	int (*destroy)(struct failing_user *user);
	u64 pages;	/* of its buffer */
	u64 new_pages;	/* of the one that a change gives it */
	u32 caps;	/* that the device has besides */
} failing_objects[] = {
	{ "QP", failing_make_qp, NULL, failing_destroy_qp, 3 },
	{ "QP with one region", failing_make_qp, NULL, failing_destroy_qp, 3, 0, USER_RQ_OFFSET },
	{ "SRQ", failing_make_srq, NULL, failing_destroy_srq, 2 },
	{ "CQ", failing_make_cq, NULL, failing_destroy_cq, 2 },
	{ "WQ", failing_make_wq, NULL, failing_destroy_wq, 2 },
	{ "resized CQ", failing_make_cq, failing_resize_cq, failing_destroy_cq, 2, 4 },
	{ "resized SRQ", failing_make_srq, failing_resize_srq, failing_destroy_srq, 2, 4 },
};

KUNIT_ARRAY_PARAM_DESC(failing_object, failing_objects, name);

static int failing_user_init(struct kunit *test)
{
	struct failing_user *user = kunit_kzalloc(test, sizeof(*user), GFP_KERNEL);
	int err;

	if (!user)
		return -ENOMEM;
	err = failing_open(test, &user->failing);
	if (err)
		return err;
	err = fake_events(user->failing.fake);
	if (err)
		return err;
	user->bundle = kunit_kzalloc(test, sizeof(*user->bundle), GFP_KERNEL);
	user->uctx = kunit_kzalloc(test, sizeof(*user->uctx), GFP_KERNEL);
	if (!user->bundle || !user->uctx)
		return -ENOMEM;
	hghca_user_pages_init(&user->uctx->dbr_pages);
	user->uctx->uar.index = 1;
	user->uctx->ibuctx.device = &user->failing.fake->hdev->ibdev;
	user->bundle->context = &user->uctx->ibuctx;
	user->pd = fake_pd(test, user->failing.fake);
	user->kernel_cq = fake_cq(test, user->failing.fake, 7);
	user->memory = fake_user_memory(test, USER_PAGES * PAGE_SIZE, PROT_READ | PROT_WRITE);
	user->failing.mm = current->mm;
	return 0;
}

/*
 * The device keeps the MR of a buffer: all of the buffer is pinned as the DMA ends, and no page of
 * it once the object has let go of it.  Its record is a page more.
 */
static void failing_user_object(struct kunit *test)
{
	const struct failing_object *param = test->param_value;
	struct failing_user *user = to_user(test);
	struct failing *this = &user->failing;

	this->fake->hdev->limits.caps |= param->caps;
	KUNIT_ASSERT_EQ(test, 0, param->make(user));
	KUNIT_ASSERT_EQ(test, param->pages + 1, atomic64_read(&this->mm->pinned_vm));
	this->refused = 0x00f;	/* HW2SW_MPT */
	this->status = 0x03;
	if (param->change) {
		KUNIT_EXPECT_EQ(test, 0, param->change(user));
		failing_expect_cut_off(test, this);
		KUNIT_EXPECT_EQ(test, param->pages + param->new_pages + 1, this->pinned);
		KUNIT_EXPECT_EQ(test, param->new_pages + 1, atomic64_read(&this->mm->pinned_vm));
	}
	KUNIT_EXPECT_EQ(test, 0, param->destroy(user));
	failing_expect_cut_off(test, this);
	if (!param->change)
		KUNIT_EXPECT_GE(test, this->pinned, param->pages);
	KUNIT_EXPECT_EQ(test, 0, atomic64_read(&this->mm->pinned_vm));
	KUNIT_EXPECT_TRUE(test, list_empty(&user->uctx->dbr_pages.list));
}

static u32 failing_count(const struct failing_user *user, u32 mark, u16 op)
{
	const struct fake *fake = user->failing.fake;
	u32 count = 0;

	for (; mark < fake_mark(fake); mark++)
		count += fake_nth(fake, mark)->op == op;
	return count;
}

/* One region of three pages, and the receive queue at its second; or two regions. */
static void failing_user_queues(struct kunit *test)
{
	struct failing_user *user = to_user(test);
	struct fake *fake = user->failing.fake;
	const void *qpc = &user->qp.qpc;
	u32 mark = fake_mark(fake);

	KUNIT_ASSERT_EQ(test, 0, failing_make_qp(user));
	KUNIT_EXPECT_EQ(test, 2, failing_count(user, mark, 0x00d));
	KUNIT_EXPECT_EQ(test, 0, be32_at(qpc, 0x60));
	KUNIT_EXPECT_NE(test, be32_at(qpc, 0x74), be32_at(qpc, 0x90));
	KUNIT_EXPECT_EQ(test, 0, failing_destroy_qp(user));

	fake->hdev->limits.caps |= USER_RQ_OFFSET;
	memset(&user->qp, 0, sizeof(user->qp));
	mark = fake_mark(fake);
	KUNIT_ASSERT_EQ(test, 0, failing_make_qp(user));
	KUNIT_EXPECT_EQ(test, 1, failing_count(user, mark, 0x00d));
	KUNIT_EXPECT_EQ(test, 4096, be32_at(qpc, 0x60));
	KUNIT_EXPECT_EQ(test, be32_at(qpc, 0x74), be32_at(qpc, 0x90));
	KUNIT_EXPECT_EQ(test, 64 * 64, be32_at(qpc, 0x78));
	KUNIT_EXPECT_EQ(test, 64 * 128, be32_at(qpc, 0x94));
	mark = fake_mark(fake);
	KUNIT_EXPECT_EQ(test, 0, failing_destroy_qp(user));
	KUNIT_EXPECT_EQ(test, 1, failing_count(user, mark, 0x00f));
	KUNIT_EXPECT_EQ(test, 0, atomic64_read(&user->failing.mm->pinned_vm));
}

static struct kunit_case failing_user_cases[] = {
	KUNIT_CASE_PARAM(failing_user_object, failing_object_gen_params),
	KUNIT_CASE(failing_user_queues),
	{}
};

static struct kunit_suite failing_user_suite = {
	.name = "hghca_failing_users",
	.init = failing_user_init,
	.test_cases = failing_user_cases,
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

kunit_test_suites(&failing_suite, &failing_user_suite, &starting_suite);
