// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What processes give to each verb besides its arguments (struct ib_udata).  Input that a
 * verb does not know is refused before anything changes, with the errors that ib_core's own
 * functions have in Linux 7.3: -EINVAL if it is too short, -EOPNOTSUPP if what follows is
 * not zero, -EFAULT if it is not there.
 */
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <rdma/uverbs_ioctl.h>

#include "fake.h"

#define UDATA_BYTES	64

struct udata {
	struct fake *fake;
	struct uverbs_attr_bundle *bundle;
	struct hghca_ucontext *uctx;
	struct hghca_pd *pd;
	struct hghca_cq *cq;
	struct hghca_qp *qp;
	struct hghca_srq *srq;
	struct ib_mr *mr;
	unsigned long memory;
};

/* Of an object that is about to be created. */
union udata_new {
	struct hghca_ucontext uctx;
	struct hghca_pd pd;
	struct hghca_ah ah;
	struct hghca_cq cq;
	struct hghca_qp qp;
	struct hghca_srq srq;
	struct hghca_mw mw;
	struct hghca_xrcd xrcd;
	struct ib_rwq_ind_table table;
	struct ib_device_attr attr;
};

#define UDATA_CALL(verb)							\
	static long udata_##verb(struct udata *this, union udata_new *new, struct ib_udata *udata)

UDATA_CALL(alloc_pd)
{
	new->pd.ibpd.device = &this->fake->hdev->ibdev;
	return hghca_alloc_pd(&new->pd.ibpd, udata);
}

UDATA_CALL(dealloc_pd)
{
	return hghca_dealloc_pd(&this->pd->ibpd, udata);
}

UDATA_CALL(query_device)
{
	return hghca_query_device(&this->fake->hdev->ibdev, &new->attr, udata);
}

UDATA_CALL(create_ah)
{
	struct rdma_ah_attr attr = { .type = RDMA_AH_ATTR_TYPE_ROCE };
	struct rdma_ah_init_attr init = { .ah_attr = &attr };

	new->ah.ibah.device = &this->fake->hdev->ibdev;
	return hghca_create_ah(&new->ah.ibah, &init, udata);
}

UDATA_CALL(create_cq)
{
	const struct ib_cq_init_attr attr = { .cqe = 63 };

	new->cq.ibcq.device = &this->fake->hdev->ibdev;
	return hghca_create_user_cq(&new->cq.ibcq, &attr, this->bundle);
}

UDATA_CALL(resize_cq)
{
	return hghca_resize_user_cq(&this->cq->ibcq, 100, udata);
}

UDATA_CALL(destroy_cq)
{
	return hghca_destroy_cq(&this->cq->ibcq, udata);
}

UDATA_CALL(create_qp)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC,
		.send_cq = &this->cq->ibcq,
		.recv_cq = &this->cq->ibcq,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	new->qp.ibqp.device = &this->fake->hdev->ibdev;
	new->qp.ibqp.pd = &this->pd->ibpd;
	new->qp.ibqp.qp_type = IB_QPT_RC;
	return hghca_create_qp(&new->qp.ibqp, &init, udata);
}

UDATA_CALL(modify_qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	return hghca_modify_qp(&this->qp->ibqp, &attr, IB_QP_STATE, udata);
}

UDATA_CALL(destroy_qp)
{
	return hghca_destroy_qp(&this->qp->ibqp, udata);
}

UDATA_CALL(create_srq)
{
	struct ib_srq_init_attr init = { .attr = { .max_wr = 16, .max_sge = 1 } };

	new->srq.ibsrq.device = &this->fake->hdev->ibdev;
	new->srq.ibsrq.pd = &this->pd->ibpd;
	return hghca_create_srq(&new->srq.ibsrq, &init, udata);
}

UDATA_CALL(limit_srq)
{
	struct ib_srq_attr attr = { .srq_limit = 1 };

	return hghca_modify_srq(&this->srq->ibsrq, &attr, IB_SRQ_LIMIT, udata);
}

UDATA_CALL(resize_srq)
{
	struct ib_srq_attr attr = { .max_wr = 32 };

	return hghca_modify_srq(&this->srq->ibsrq, &attr, IB_SRQ_MAX_WR, udata);
}

UDATA_CALL(destroy_srq)
{
	return hghca_destroy_srq(&this->srq->ibsrq, udata);
}

UDATA_CALL(reg_mr)
{
	return PTR_ERR_OR_ZERO(hghca_reg_user_mr(&this->pd->ibpd, this->memory, 8, this->memory,
						 IB_ACCESS_LOCAL_WRITE, NULL, udata));
}

UDATA_CALL(rereg_mr)
{
	return PTR_ERR_OR_ZERO(hghca_rereg_user_mr(this->mr, IB_MR_REREG_ACCESS, 0, 0, 0,
						   IB_ACCESS_LOCAL_WRITE, &this->pd->ibpd, udata));
}

UDATA_CALL(dereg_mr)
{
	return hghca_dereg_mr(this->mr, udata);
}

UDATA_CALL(alloc_mw)
{
	new->mw.ibmw.device = &this->fake->hdev->ibdev;
	new->mw.ibmw.pd = &this->pd->ibpd;
	new->mw.ibmw.type = IB_MW_TYPE_1;
	return hghca_alloc_mw(&new->mw.ibmw, udata);
}

UDATA_CALL(alloc_xrcd)
{
	new->xrcd.ibxrcd.device = &this->fake->hdev->ibdev;
	return hghca_alloc_xrcd(&new->xrcd.ibxrcd, udata);
}

UDATA_CALL(dealloc_xrcd)
{
	new->xrcd.ibxrcd.device = &this->fake->hdev->ibdev;
	return hghca_dealloc_xrcd(&new->xrcd.ibxrcd, udata);
}

UDATA_CALL(create_rwq_table)
{
	struct ib_rwq_ind_table_init_attr init = {};

	new->table.device = &this->fake->hdev->ibdev;
	return hghca_create_rwq_ind_table(&new->table, &init, udata);
}

UDATA_CALL(create_flow)
{
	struct ib_flow_attr attr = {};

	this->qp->ibqp.qp_type = IB_QPT_RAW_PACKET;
	return PTR_ERR_OR_ZERO(hghca_create_flow(&this->qp->ibqp, &attr, udata));
}

UDATA_CALL(alloc_ucontext)
{
	new->uctx.ibuctx.device = &this->fake->hdev->ibdev;
	udata->outlen = UDATA_BYTES;
	return hghca_alloc_ucontext(&new->uctx.ibuctx, udata);
}

/* The bytes of input that each has at least. */
static const struct udata_verb {
	const char *name;
	long (*call)(struct udata *this, union udata_new *new, struct ib_udata *udata);
	size_t bytes;
} udata_verbs[] = {
	{ "alloc_ucontext", udata_alloc_ucontext },
	{ "alloc_pd", udata_alloc_pd },
	{ "dealloc_pd", udata_dealloc_pd },
	{ "query_device", udata_query_device },
	{ "create_ah", udata_create_ah },
	{ "create_cq", udata_create_cq, 16 },
	{ "resize_cq", udata_resize_cq, 8 },
	{ "destroy_cq", udata_destroy_cq },
	{ "create_qp", udata_create_qp, 32 },
	{ "modify_qp", udata_modify_qp },
	{ "destroy_qp", udata_destroy_qp },
	{ "create_srq", udata_create_srq, 24 },
	{ "modify_srq, limit", udata_limit_srq },
	{ "modify_srq, size", udata_resize_srq, 16 },
	{ "destroy_srq", udata_destroy_srq },
	{ "reg_user_mr", udata_reg_mr },
	{ "rereg_user_mr", udata_rereg_mr },
	{ "dereg_mr", udata_dereg_mr },
	{ "alloc_mw", udata_alloc_mw },
	{ "alloc_xrcd", udata_alloc_xrcd },
	{ "dealloc_xrcd", udata_dealloc_xrcd },
	{ "create_rwq_ind_table", udata_create_rwq_table },
	{ "create_flow", udata_create_flow },
};

KUNIT_ARRAY_PARAM_DESC(udata_verb, udata_verbs, name);

static long udata_call(struct kunit *test, unsigned long in, size_t inlen)
{
	const struct udata_verb *verb = test->param_value;
	struct udata *this = test->priv;
	struct ib_udata *udata = fake_no_udata(this->bundle);
	union udata_new *new = kunit_kzalloc(test, sizeof(*new), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, new);
	udata->inbuf = (void __user *)in;
	udata->inlen = inlen;
	return verb->call(this, new, udata);
}

/* Each error comes before any command. */
static void udata_bad(struct kunit *test)
{
	const struct udata_verb *verb = test->param_value;
	struct udata *this = test->priv;
	unsigned long gone = fake_user_memory(test, PAGE_SIZE, PROT_READ | PROT_WRITE);
	u32 mark = fake_mark(this->fake);

	KUNIT_ASSERT_EQ(test, 0, vm_munmap(gone, PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, -EFAULT, udata_call(test, gone, verb->bytes + 8));
	KUNIT_ASSERT_EQ(test, 0, put_user((u8)1, (u8 __user *)this->memory + UDATA_BYTES - 1));
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, udata_call(test, this->memory, UDATA_BYTES));
	if (verb->bytes) {
		KUNIT_EXPECT_EQ(test, -EINVAL, udata_call(test, this->memory, verb->bytes - 1));
		KUNIT_EXPECT_EQ(test, -EINVAL, udata_call(test, this->memory, 0));
	}
	KUNIT_EXPECT_EQ(test, mark, fake_mark(this->fake));
}

/* A newer user has room for more than there is: it reads zeros there. */
static void udata_output(struct kunit *test)
{
	struct udata *this = test->priv;
	struct ib_udata *udata = fake_no_udata(this->bundle);
	struct hghca_pd *pd = kunit_kzalloc(test, sizeof(*pd), GFP_KERNEL);
	u8 out[UDATA_BYTES];
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, pd);
	pd->ibpd.device = &this->fake->hdev->ibdev;
	memset(out, 0xff, sizeof(out));
	udata->outbuf = (void __user *)this->memory;
	udata->outlen = UDATA_BYTES - 1;
	KUNIT_ASSERT_EQ(test, 0, copy_to_user(udata->outbuf, out, sizeof(out)));
	KUNIT_ASSERT_EQ(test, 0, hghca_alloc_pd(&pd->ibpd, udata));
	KUNIT_ASSERT_EQ(test, 0, copy_from_user(out, udata->outbuf, sizeof(out)));
	KUNIT_EXPECT_EQ(test, pd->pdn, *(u32 *)out);
	for (i = 4; i < UDATA_BYTES - 1; i++)
		KUNIT_EXPECT_EQ_MSG(test, 0, out[i], "byte %u", i);
	KUNIT_EXPECT_EQ(test, 0xff, out[UDATA_BYTES - 1]);

	/* A verb without output of its own clears all. */
	memset(out, 0xff, sizeof(out));
	KUNIT_ASSERT_EQ(test, 0, copy_to_user(udata->outbuf, out, sizeof(out)));
	KUNIT_ASSERT_EQ(test, 0, hghca_dealloc_pd(&pd->ibpd, udata));
	KUNIT_ASSERT_EQ(test, 0, copy_from_user(out, udata->outbuf, sizeof(out)));
	for (i = 0; i < UDATA_BYTES - 1; i++)
		KUNIT_EXPECT_EQ_MSG(test, 0, out[i], "byte %u", i);
}

/* What cannot be told is not created, and what cannot be answered is not destroyed. */
static void udata_output_gone(struct kunit *test)
{
	struct udata *this = test->priv;
	struct ib_udata *udata = fake_no_udata(this->bundle);
	struct hghca_pd *pd = kunit_kzalloc(test, sizeof(*pd), GFP_KERNEL);
	unsigned long gone = fake_user_memory(test, PAGE_SIZE, PROT_READ | PROT_WRITE);

	KUNIT_ASSERT_NOT_NULL(test, pd);
	KUNIT_ASSERT_EQ(test, 0, vm_munmap(gone, PAGE_SIZE));
	pd->ibpd.device = &this->fake->hdev->ibdev;
	KUNIT_ASSERT_EQ(test, 0, hghca_alloc_pd(&pd->ibpd, NULL));
	udata->outbuf = (void __user *)gone;
	udata->outlen = 8;
	KUNIT_EXPECT_EQ(test, -EFAULT, hghca_dealloc_pd(&pd->ibpd, udata));
	KUNIT_EXPECT_EQ(test, 0, hghca_dealloc_pd(&pd->ibpd, NULL));
	KUNIT_EXPECT_EQ(test, -EFAULT, hghca_alloc_pd(&pd->ibpd, udata));
}

static void udata_set_up(struct fake *fake)
{
	u8 *limits = (u8 *)&fake->limits;

	/* XRC, raw packets and RSS. */
	limits[0x68] = 1;
	limits[0x69] = 3;
}

static int udata_init(struct kunit *test)
{
	static const struct fake_qp_attr attr = {
		.type = IB_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct udata *this = kunit_kzalloc(test, sizeof(*this), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, this);
	this->bundle = kunit_kzalloc(test, sizeof(*this->bundle), GFP_KERNEL);
	this->uctx = kunit_kzalloc(test, sizeof(*this->uctx), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, this->bundle);
	KUNIT_ASSERT_NOT_NULL(test, this->uctx);
	KUNIT_ASSERT_EQ(test, 0, fake_test_open(test, udata_set_up, true));
	this->fake = test->priv;
	this->pd = fake_pd(test, this->fake);
	this->cq = fake_cq(test, this->fake, 16);
	this->qp = fake_qp(test, this->pd, this->cq, this->cq, &attr);
	this->srq = fake_srq(test, this->pd, 16, 1);
	this->mr = fake_mr(test, this->pd, 1);
	this->memory = fake_user_memory(test, PAGE_SIZE, PROT_READ | PROT_WRITE);
	hghca_user_pages_init(&this->uctx->dbr_pages);
	this->uctx->ibuctx.device = &this->fake->hdev->ibdev;
	this->bundle->context = &this->uctx->ibuctx;
	test->priv = this;
	return 0;
}

static struct kunit_case udata_cases[] = {
	KUNIT_CASE_PARAM(udata_bad, udata_verb_gen_params),
	KUNIT_CASE(udata_output),
	KUNIT_CASE(udata_output_gone),
	{}
};

static struct kunit_suite udata_suite = {
	.name = "hghca_udata",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = udata_init,
	.test_cases = udata_cases,
};

kunit_test_suite(udata_suite);
