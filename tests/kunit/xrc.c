// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of extended reliable connections: numbers of domains, and what the
 * device is told of targets (interface document, 4.17).
 */
#include <linux/slab.h>

#include "fake.h"

#define XRC_DOMAINS	3

static struct ib_xrcd *xrc_domain(struct kunit *test, struct fake *fake)
{
	struct hghca_xrcd *hxrcd = kunit_kzalloc(test, sizeof(*hxrcd), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, hxrcd);
	hxrcd->ibxrcd.device = &fake->hdev->ibdev;
	return &hxrcd->ibxrcd;
}

static void xrc_domains(struct kunit *test)
{
	struct ib_xrcd *domains[XRC_DOMAINS + 1];
	struct fake *fake = test->priv;
	int i;

	KUNIT_EXPECT_EQ(test, 0xffffff, fake->hdev->limits.max_xrcdn);
	fake->hdev->limits.max_xrcdn = XRC_DOMAINS;
	for (i = 0; i < XRC_DOMAINS; i++) {
		domains[i] = xrc_domain(test, fake);
		KUNIT_ASSERT_EQ(test, 0, hghca_alloc_xrcd(domains[i], NULL));
		/* 0 says that a QP is no target. */
		KUNIT_EXPECT_EQ(test, 1 + i, to_hxrcd(domains[i])->xrcdn);
	}
	domains[i] = xrc_domain(test, fake);
	KUNIT_EXPECT_EQ(test, -ENOSPC, hghca_alloc_xrcd(domains[i], NULL));
	KUNIT_EXPECT_EQ(test, 0, hghca_dealloc_xrcd(domains[1], NULL));
	KUNIT_EXPECT_EQ(test, 0, hghca_alloc_xrcd(domains[i], NULL));
	KUNIT_EXPECT_EQ(test, 2, to_hxrcd(domains[i])->xrcdn);
	hghca_dealloc_xrcd(domains[0], NULL);
	hghca_dealloc_xrcd(domains[2], NULL);
	hghca_dealloc_xrcd(domains[3], NULL);
}

/* As ib_core makes it: with no PD, no CQ and no udata. */
static int xrc_create_target(struct fake *fake, struct hghca_qp *hqp, struct ib_xrcd *ibxrcd,
			     enum ib_qp_type type)
{
	struct ib_qp_init_attr init = {
		.qp_type = type,
		.xrcd = ibxrcd,
		/* Says nothing: there is no queue. */
		.cap = { .max_send_wr = 1 << 30, .max_recv_sge = 1 << 30 },
	};

	hqp->ibqp.device = &fake->hdev->ibdev;
	hqp->ibqp.qp_type = type;
	return hghca_create_qp(&hqp->ibqp, &init, NULL);
}

static void xrc_target(struct kunit *test)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT, .port_num = 1 };
	struct hghca_qp *hqp = kunit_kzalloc(test, sizeof(*hqp), GFP_KERNEL);
	struct fake *fake = test->priv;
	struct ib_xrcd *ibxrcd = xrc_domain(test, fake);
	struct fake_command *cmd;
	u32 mark;

	KUNIT_ASSERT_NOT_NULL(test, hqp);
	to_hxrcd(ibxrcd)->xrcdn = 0xabcdef;
	KUNIT_ASSERT_EQ(test, 0, xrc_create_target(fake, hqp, ibxrcd, IB_QPT_XRC_TGT));
	KUNIT_EXPECT_EQ(test, hqp->hw.qpn, hqp->ibqp.qp_num);

	mark = fake_mark(fake);
	KUNIT_EXPECT_EQ(test, 0, hghca_modify_qp(&hqp->ibqp, &attr, IB_QP_STATE | IB_QP_PORT |
						 IB_QP_PKEY_INDEX | IB_QP_ACCESS_FLAGS, NULL));
	cmd = fake_nth(fake, mark);
	KUNIT_ASSERT_NOT_NULL(test, cmd);
	KUNIT_EXPECT_EQ(test, 0x19, cmd->op);
	KUNIT_EXPECT_EQ(test, 6, be32_at(cmd->mailbox, 0x08) >> 16 & 0xff);
	KUNIT_EXPECT_EQ(test, 0xabcdef, be32_at(cmd->mailbox, 0xb4));
	KUNIT_EXPECT_EQ(test, 0, be32_at(cmd->mailbox, 0x78));
	KUNIT_EXPECT_EQ(test, 0, be32_at(cmd->mailbox, 0x94));
	KUNIT_EXPECT_EQ(test, 0, be32_at(cmd->mailbox, 0xac));
	/* It is kept for users: it may register nothing. */
	KUNIT_EXPECT_EQ(test, 0, be32_at(cmd->mailbox, 0xb0));
	KUNIT_EXPECT_EQ(test, 0, hghca_destroy_qp(&hqp->ibqp, NULL));
}

/* The kernel has no use for the other half, and neither works without the capability. */
static void xrc_refused(struct kunit *test)
{
	struct hghca_qp *hqp = kunit_kzalloc(test, sizeof(*hqp), GFP_KERNEL);
	struct fake *fake = test->priv;
	struct ib_xrcd *ibxrcd = xrc_domain(test, fake);
	struct hghca_pd *pd = fake_pd(test, fake);
	struct ib_srq_init_attr init = {
		.attr = { .max_wr = 4, .max_sge = 1 },
		.srq_type = IB_SRQT_XRC,
	};
	struct hghca_srq *hsrq = kunit_kzalloc(test, sizeof(*hsrq), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, hqp);
	KUNIT_ASSERT_NOT_NULL(test, hsrq);
	hsrq->ibsrq.device = &fake->hdev->ibdev;
	hsrq->ibsrq.pd = &pd->ibpd;
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, hghca_create_srq(&hsrq->ibsrq, &init, NULL));
	hqp->ibqp.pd = &pd->ibpd;
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP,
			xrc_create_target(fake, hqp, ibxrcd, IB_QPT_XRC_INI));
	fake->hdev->limits.caps &= ~HGHCA_CAP_XRC;
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP,
			xrc_create_target(fake, hqp, ibxrcd, IB_QPT_XRC_TGT));
}

static struct kunit_case xrc_cases[] = {
	KUNIT_CASE(xrc_domains),
	KUNIT_CASE(xrc_target),
	KUNIT_CASE(xrc_refused),
	{}
};

static struct kunit_suite xrc_suite = {
	.name = "hghca_xrc",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = fake_test_init,
	.test_cases = xrc_cases,
};

kunit_test_suite(xrc_suite);
