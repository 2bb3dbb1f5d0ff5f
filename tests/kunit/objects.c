// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of objects as they come and go: what cannot be created, creation
 * that the device refuses halfway, and numbers that run out.
 */
#include <linux/genalloc.h>
#include <linux/slab.h>

#include "fake.h"

#define OBJECTS_COMMANDS_MAX	100

static const struct fake_qp_attr objects_rc = {
	.type = IB_QPT_RC,
	.cap = { .max_send_wr = 3, .max_recv_wr = 5, .max_send_sge = 1, .max_recv_sge = 1 },
};

/* ------------------------------------------------------------------ */
/* What cannot be                                                       */

static const struct objects_bad_qp {
	const char *name;
	enum ib_qp_type type;
	struct ib_qp_cap cap;
	u32 create_flags;
	u32 port;
	int err;
} objects_bad_qps[] = {
	{ "XRC", IB_QPT_XRC_INI, {}, 0, 1, -EOPNOTSUPP },
	{ "raw packets", IB_QPT_RAW_PACKET, {}, 0, 1, -EOPNOTSUPP },
	{ "SMI", IB_QPT_SMI, {}, 0, 1, -EOPNOTSUPP },
	{ "a type beyond all", IB_QPT_MAX, {}, 0, 1, -EOPNOTSUPP },
	{ "GSI of port 2", IB_QPT_GSI, {}, 0, 2, -EINVAL },
	{ "flags", IB_QPT_RC, {}, IB_QP_CREATE_NETIF_QP, 1, -EOPNOTSUPP },
	{ "one send too many", IB_QPT_RC, { .max_send_wr = 16385 }, 0, 1, -EINVAL },
	{ "one receive too many", IB_QPT_RC, { .max_recv_wr = 16385 }, 0, 1, -EINVAL },
	{ "one SGE of a send too many", IB_QPT_RC, { .max_send_sge = 33 }, 0, 1, -EINVAL },
	{ "one SGE of a receive too many", IB_QPT_RC, { .max_recv_sge = 33 }, 0, 1, -EINVAL },
	{ "one inline byte too many, RC", IB_QPT_RC, { .max_inline_data = 973 }, 0, 1, -EINVAL },
	{ "one inline byte too many, UD", IB_QPT_UD, { .max_inline_data = 941 }, 0, 1, -EINVAL },
	{ "all ones", IB_QPT_RC, { U32_MAX, U32_MAX, U32_MAX, U32_MAX, U32_MAX }, 0, 1, -EINVAL },
};

static void objects_bad_qp_name(const struct objects_bad_qp *qp, char *desc)
{
	strscpy(desc, qp->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(objects_bad_qp, objects_bad_qps, objects_bad_qp_name);

static void objects_bad_qp(struct kunit *test)
{
	const struct objects_bad_qp *param = test->param_value;
	struct fake *fake = test->priv;
	struct hghca_pd *pd = fake_pd(test, fake);
	struct hghca_cq *hcq = fake_cq(test, fake, 7);
	struct hghca_qp *hqp = kunit_kzalloc(test, sizeof(*hqp), GFP_KERNEL);
	struct ib_qp_init_attr init = {
		.send_cq = &hcq->ibcq, .recv_cq = &hcq->ibcq, .qp_type = param->type,
		.cap = param->cap, .create_flags = param->create_flags, .port_num = param->port,
	};
	u32 mark = fake_mark(fake);

	KUNIT_ASSERT_NOT_NULL(test, hqp);
	hqp->ibqp.device = &fake->hdev->ibdev;
	hqp->ibqp.pd = &pd->ibpd;
	hqp->ibqp.send_cq = &hcq->ibcq;
	hqp->ibqp.recv_cq = &hcq->ibcq;
	hqp->ibqp.qp_type = param->type;
	KUNIT_EXPECT_EQ(test, param->err, hghca_create_qp(&hqp->ibqp, &init, NULL));
	KUNIT_EXPECT_EQ(test, mark, fake_mark(fake));
}

/*
 * The table of grants in docs/reference/verbs.md: WQEs in powers of two, lists exactly as
 * long as asked (a receive's has at least one SGE), and the inline data that fills the
 * list, of two units at least where there are SGEs.
 */
static const struct objects_cap {
	const char *name;
	enum ib_qp_type type;
	struct ib_qp_cap asked;
	struct ib_qp_cap given;	/* send and receive WQEs, send and receive SGEs, inline */
} objects_caps[] = {
	{ "RC, the least", IB_QPT_RC, { 1, 1, 1, 1, 0 }, { 1, 1, 1, 1, 28 } },
	{ "RC, odd numbers of WQEs", IB_QPT_RC, { 3, 5, 1, 1, 0 }, { 4, 8, 1, 1, 28 } },
	{ "RC, 3 SGEs", IB_QPT_RC, { 2, 2, 3, 4, 0 }, { 2, 2, 3, 4, 44 } },
	{ "RC, 12 bytes inline", IB_QPT_RC, { 2, 2, 0, 1, 12 }, { 2, 2, 0, 1, 12 } },
	{ "RC, 13 bytes inline", IB_QPT_RC, { 2, 2, 0, 1, 13 }, { 2, 2, 0, 1, 28 } },
	{ "RC, 100 bytes inline", IB_QPT_RC, { 2, 2, 1, 1, 100 }, { 2, 2, 1, 1, 108 } },
	{ "RC, the most", IB_QPT_RC, { 2, 2, 32, 32, 972 }, { 2, 2, 32, 32, 972 } },
	{ "UD, the least", IB_QPT_UD, { 1, 1, 1, 1, 0 }, { 1, 1, 1, 1, 28 } },
	{ "UD, 6 SGEs", IB_QPT_UD, { 1, 1, 6, 1, 0 }, { 1, 1, 6, 1, 92 } },
	{ "UD, the most", IB_QPT_UD, { 2, 2, 32, 32, 940 }, { 2, 2, 32, 32, 940 } },
	{ "no receives", IB_QPT_RC, { 1, 0, 1, 0, 0 }, { 1, 0, 1, 0, 28 } },
	{ "no SGEs", IB_QPT_RC, { 1, 1, 0, 0, 0 }, { 1, 1, 0, 1, 0 } },
	{ "nothing", IB_QPT_RC, {}, {} },
};

static void objects_cap_name(const struct objects_cap *cap, char *desc)
{
	strscpy(desc, cap->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(objects_cap, objects_caps, objects_cap_name);

static void objects_cap(struct kunit *test)
{
	const struct objects_cap *param = test->param_value;
	const struct fake_qp_attr attr = { .type = param->type, .cap = param->asked };
	struct fake *fake = test->priv;
	struct hghca_cq *hcq = fake_cq(test, fake, 7);
	struct hghca_qp *hqp = fake_qp(test, fake_pd(test, fake), hcq, hcq, &attr);

	KUNIT_EXPECT_EQ(test, param->given.max_send_wr, hqp->cap.max_send_wr);
	KUNIT_EXPECT_EQ(test, param->given.max_recv_wr, hqp->cap.max_recv_wr);
	KUNIT_EXPECT_EQ(test, param->given.max_send_sge, hqp->cap.max_send_sge);
	KUNIT_EXPECT_EQ(test, param->given.max_recv_sge, hqp->cap.max_recv_sge);
	KUNIT_EXPECT_EQ(test, param->given.max_inline_data, hqp->cap.max_inline_data);
}

/* The longest WQE that limits allow (interface document, max_desc_sz of the fake device). */
#define OBJECTS_WQE_BYTES	1024

static int objects_encode_send(const struct hghca_qp *hqp, void *wqe, struct ib_sge *sges,
			       u32 num_sge, u32 flags)
{
	static const struct hghca_ud_gid_unit av;
	struct ib_ud_wr wr = {
		.wr = { .opcode = IB_WR_SEND, .send_flags = flags, .sg_list = sges,
			.num_sge = num_sge },
	};
	struct hghca_wqe_info info;

	if (hqp->ibqp.qp_type == IB_QPT_UD)
		return hghca_wqe_encode_ud(wqe, &hqp->sq.room, &av, &wr, &info);
	return hghca_wqe_encode_rc(wqe, &hqp->sq.room, &wr.wr, &info);
}

static void objects_take_grant(struct kunit *test, const struct hghca_qp *hqp)
{
	u8 *wqe = kunit_kzalloc(test, OBJECTS_WQE_BYTES, GFP_KERNEL);
	u8 *data = kunit_kzalloc(test, OBJECTS_WQE_BYTES, GFP_KERNEL);
	struct ib_recv_wr recv = { };
	struct ib_sge sges[33];
	u32 length;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, wqe);
	KUNIT_ASSERT_NOT_NULL(test, data);
	for (i = 0; i < ARRAY_SIZE(sges); i++)
		sges[i] = (struct ib_sge) { .addr = 8 * i, .length = 8 };

	KUNIT_EXPECT_EQ(test, 0, objects_encode_send(hqp, wqe, sges, hqp->cap.max_send_sge, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			objects_encode_send(hqp, wqe, sges, hqp->cap.max_send_sge + 1, 0));

	recv.sg_list = sges;
	recv.num_sge = hqp->cap.max_recv_sge;
	KUNIT_EXPECT_EQ(test, 0, hghca_wqe_encode_recv(wqe, &hqp->rq.room, &recv, &length));
	recv.num_sge++;
	KUNIT_EXPECT_EQ(test, -EINVAL, hghca_wqe_encode_recv(wqe, &hqp->rq.room, &recv, &length));

	sges[0] = (struct ib_sge) { .addr = (uintptr_t)data, .length = hqp->cap.max_inline_data };
	KUNIT_EXPECT_EQ(test, 0, objects_encode_send(hqp, wqe, sges, 1, IB_SEND_INLINE));
	sges[0].length++;
	KUNIT_EXPECT_EQ(test, -EINVAL, objects_encode_send(hqp, wqe, sges, 1, IB_SEND_INLINE));
}

/* For every ask the grant is that, all of it can be posted, and not one SGE or byte more. */
static void objects_grants(struct kunit *test)
{
	static const enum ib_qp_type types[] = { IB_QPT_RC, IB_QPT_UD };
	struct fake *fake = test->priv;
	struct hghca_pd *pd = fake_pd(test, fake);
	struct hghca_cq *hcq = fake_cq(test, fake, 7);
	struct hghca_qp *hqp;
	u32 type;
	u32 sges;

	for (type = 0; type < ARRAY_SIZE(types); type++)
		for (sges = 1; sges <= 32; sges++) {
			const struct fake_qp_attr attr = {
				.type = types[type],
				.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = sges,
					 .max_recv_sge = sges },
			};

			hqp = fake_qp(test, pd, hcq, hcq, &attr);
			KUNIT_EXPECT_EQ(test, sges, hqp->cap.max_send_sge);
			KUNIT_EXPECT_EQ(test, sges, hqp->cap.max_recv_sge);
			KUNIT_EXPECT_EQ(test, max(16 * sges - 4, 28U), hqp->cap.max_inline_data);
			objects_take_grant(test, hqp);
		}
}

/* ------------------------------------------------------------------ */
/* Refused halfway                                                      */

struct objects_fault {
	u32 number;	/* of the command that is refused, from 0 */
	u32 seen;
};

static enum fake_end objects_refuse_one(struct fake *fake, const struct fake_command *cmd,
					struct fake_answer *answer)
{
	struct objects_fault *fault = fake->priv;

	if (fault->seen++ == fault->number)
		answer->status = 0x08;
	return FAKE_ANSWERED;
}

/* What the tables and pools hold: the same before and after. */
struct objects_held {
	size_t mtts;
	u32 blocks[HGHCA_ICM_KINDS];
	bool cqs, qps, srqs;
};

static struct objects_held objects_held(struct hghca_dev *hdev)
{
	struct objects_held held = {
		.mtts = fake_free_mtts(hdev),
		.cqs = !xa_empty(&hdev->cqs.objs),
		.qps = !xa_empty(&hdev->qps.objs),
		.srqs = !xa_empty(&hdev->srqs.objs),
	};
	int kind;

	for (kind = 0; kind < HGHCA_ICM_KINDS; kind++)
		held.blocks[kind] = fake_icm_users(hdev, kind);
	return held;
}

static void objects_expect_held(struct kunit *test, struct hghca_dev *hdev,
				const struct objects_held *before)
{
	const struct objects_held now = objects_held(hdev);

	/* The next creation begins with the same commands. */
	fake_trim(hdev);

	KUNIT_EXPECT_EQ(test, before->mtts, now.mtts);
	KUNIT_EXPECT_EQ(test, before->cqs, now.cqs);
	KUNIT_EXPECT_EQ(test, before->qps, now.qps);
	KUNIT_EXPECT_EQ(test, before->srqs, now.srqs);
	KUNIT_EXPECT_MEMEQ(test, before->blocks, now.blocks, sizeof(now.blocks));
}

/* Each command of a creation is refused in turn: nothing stays, and the next try succeeds. */
static void objects_cq_refused(struct kunit *test)
{
	struct fake *fake = test->priv;
	const struct objects_held before = objects_held(fake->hdev);
	struct objects_fault fault = {};
	struct hghca_cq *hcq = NULL;

	fake->priv = &fault;
	for (; !hcq && fault.number < OBJECTS_COMMANDS_MAX; fault.number++) {
		fault.seen = 0;
		fake->answer = objects_refuse_one;
		hcq = fake_new_cq(fake, 100);
		fake->answer = NULL;
		if (!hcq)
			objects_expect_held(test, fake->hdev, &before);
	}
	KUNIT_ASSERT_NOT_NULL(test, hcq);
	/* WRITE_MTT, SW2HW_MPT, MAP_ICM, SW2HW_CQ */
	KUNIT_EXPECT_EQ(test, 5, fault.number);
	fake_del_cq(hcq);
	objects_expect_held(test, fake->hdev, &before);
}

static void objects_qp_refused(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct hghca_pd *pd = fake_pd(test, fake);
	struct hghca_cq *hcq = fake_cq(test, fake, 7);
	const struct objects_held before = objects_held(fake->hdev);
	struct objects_fault fault = {};
	struct hghca_qp *hqp = NULL;

	fake->priv = &fault;
	for (; !hqp && fault.number < OBJECTS_COMMANDS_MAX; fault.number++) {
		fault.seen = 0;
		fake->answer = objects_refuse_one;
		hqp = fake_new_qp(pd, hcq, hcq, &objects_rc);
		fake->answer = NULL;
		if (!hqp)
			objects_expect_held(test, fake->hdev, &before);
	}
	KUNIT_ASSERT_NOT_NULL(test, hqp);
	/* WRITE_MTT and SW2HW_MPT of both queues, MAP_ICM */
	KUNIT_EXPECT_EQ(test, 6, fault.number);
	KUNIT_EXPECT_TRUE(test, xa_load(&hcq->qps, hqp->hw.qpn) == hqp);
	fake_del_qp(hqp);
	objects_expect_held(test, fake->hdev, &before);
	KUNIT_EXPECT_TRUE(test, xa_empty(&hcq->qps));
}

static void objects_srq_refused(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct hghca_pd *pd = fake_pd(test, fake);
	const struct objects_held before = objects_held(fake->hdev);
	struct objects_fault fault = {};
	struct hghca_srq *hsrq = NULL;

	fake->priv = &fault;
	for (; !hsrq && fault.number < OBJECTS_COMMANDS_MAX; fault.number++) {
		fault.seen = 0;
		fake->answer = objects_refuse_one;
		hsrq = fake_new_srq(pd, 100, 1);
		fake->answer = NULL;
		if (!hsrq)
			objects_expect_held(test, fake->hdev, &before);
	}
	KUNIT_ASSERT_NOT_NULL(test, hsrq);
	/* WRITE_MTT, SW2HW_MPT, MAP_ICM, SW2HW_SRQ */
	KUNIT_EXPECT_EQ(test, 5, fault.number);
	KUNIT_EXPECT_TRUE(test, xa_load(&fake->hdev->srqs.objs, hsrq->hw.srqn) == &hsrq->hw.obj);
	fake_del_srq(hsrq);
	objects_expect_held(test, fake->hdev, &before);
}

static enum fake_end objects_keep_cq(struct fake *fake, const struct fake_command *cmd,
				     struct fake_answer *answer)
{
	if (cmd->op == 0x017)
		answer->status = 0x06;
	return FAKE_ANSWERED;
}

static enum fake_end objects_keep_srq(struct fake *fake, const struct fake_command *cmd,
				      struct fake_answer *answer)
{
	if (cmd->op == 0x036)
		answer->status = 0x06;
	return FAKE_ANSWERED;
}

/* Its memory is freed next: a device that keeps it is reset. */
static void objects_srq_kept(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct hghca_srq *hsrq = fake_new_srq(fake_pd(test, fake), 7, 1);

	KUNIT_ASSERT_NOT_NULL(test, hsrq);
	fake->answer = objects_keep_srq;
	fake_del_srq(hsrq);
	KUNIT_EXPECT_TRUE(test, hghca_dev_has_failed(fake->hdev));
	KUNIT_EXPECT_EQ(test, 1, readl((void __iomem *)fake->regs + 0xf0010));
}

static void objects_cq_kept(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct hghca_cq *hcq = fake_new_cq(fake, 7);

	KUNIT_ASSERT_NOT_NULL(test, hcq);
	fake->answer = objects_keep_cq;
	fake_del_cq(hcq);
	KUNIT_EXPECT_TRUE(test, hghca_dev_has_failed(fake->hdev));
	KUNIT_EXPECT_EQ(test, 1, readl((void __iomem *)fake->regs + 0xf0010));
}

/* ------------------------------------------------------------------ */
/* Numbers                                                              */

static void objects_one_gsi(struct kunit *test)
{
	static const struct fake_qp_attr attr = { .type = IB_QPT_GSI };
	struct fake *fake = test->priv;
	struct hghca_pd *pd = fake_pd(test, fake);
	struct hghca_cq *hcq = fake_cq(test, fake, 7);
	struct hghca_qp *first = fake_qp(test, pd, hcq, hcq, &attr);

	KUNIT_EXPECT_EQ(test, 1, first->ibqp.qp_num);
	KUNIT_EXPECT_NULL(test, fake_new_qp(pd, hcq, hcq, &attr));
}

/* A QPN rests before it comes back: late packets find no other QP. */
static void objects_qpn_rests(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct hghca_pd *pd = fake_pd(test, fake);
	struct hghca_cq *hcq = fake_cq(test, fake, 7);
	u32 last = 0;
	int i;

	for (i = 0; i < 5; i++) {
		struct hghca_qp *hqp = fake_new_qp(pd, hcq, hcq, &objects_rc);

		KUNIT_ASSERT_NOT_NULL(test, hqp);
		KUNIT_EXPECT_GE(test, hqp->hw.qpn, 8);
		KUNIT_EXPECT_GT(test, hqp->hw.qpn, last);
		last = hqp->hw.qpn;
		fake_del_qp(hqp);
	}
}

static struct kunit_case objects_cases[] = {
	KUNIT_CASE_PARAM(objects_bad_qp, objects_bad_qp_gen_params),
	KUNIT_CASE_PARAM(objects_cap, objects_cap_gen_params),
	KUNIT_CASE(objects_grants),
	KUNIT_CASE(objects_cq_refused),
	KUNIT_CASE(objects_qp_refused),
	KUNIT_CASE(objects_srq_refused),
	KUNIT_CASE(objects_cq_kept),
	KUNIT_CASE(objects_srq_kept),
	KUNIT_CASE(objects_one_gsi),
	KUNIT_CASE(objects_qpn_rests),
	{}
};

static struct kunit_suite objects_suite = {
	.name = "hghca_objects",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = fake_test_init_events,
	.test_cases = objects_cases,
};

/* A device of few: the first number is not the driver's to give. */
static int objects_few_init(struct kunit *test)
{
	struct fake *fake = fake_create();

	if (!fake)
		return -ENOMEM;
	test->priv = fake;
	fake->limits.log_max_pds = 2;
	fake->limits.log_max_cqs = 2;
	fake->limits.log_max_qps = 4;
	fake->limits.log_max_srqs = 2;
	return fake_open(fake) ?: fake_events(fake);
}

static void objects_few_exit(struct kunit *test)
{
	if (test->priv)
		fake_destroy(test->priv);
}

/* Of four PDs one is reserved, one the driver's. */
static void objects_pds_run_out(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct hghca_pd *first = fake_new_pd(fake);
	struct hghca_pd *second = fake_new_pd(fake);

	KUNIT_EXPECT_NOT_NULL(test, first);
	KUNIT_EXPECT_NOT_NULL(test, second);
	KUNIT_EXPECT_NULL(test, fake_new_pd(fake));
	fake_del_pd(first);
	first = fake_new_pd(fake);
	KUNIT_EXPECT_NOT_NULL(test, first);
	fake_del_pd(first);
	fake_del_pd(second);
}

static void objects_cqs_run_out(struct kunit *test)
{
	struct fake *fake = test->priv;
	const struct objects_held before = objects_held(fake->hdev);
	struct hghca_cq *cqs[3];
	int i;

	for (i = 0; i < 3; i++) {
		cqs[i] = fake_new_cq(fake, 7);
		KUNIT_ASSERT_NOT_NULL(test, cqs[i]);
	}
	KUNIT_EXPECT_NULL(test, fake_new_cq(fake, 7));
	for (i = 0; i < 3; i++)
		fake_del_cq(cqs[i]);
	objects_expect_held(test, fake->hdev, &before);
}

/* Of four SRQs one is reserved. */
static void objects_srqs_run_out(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct hghca_pd *pd = fake_new_pd(fake);
	const struct objects_held before = objects_held(fake->hdev);
	struct hghca_srq *srqs[3];
	int i;

	KUNIT_ASSERT_NOT_NULL(test, pd);
	for (i = 0; i < 3; i++) {
		srqs[i] = fake_new_srq(pd, 7, 1);
		KUNIT_ASSERT_NOT_NULL(test, srqs[i]);
		KUNIT_EXPECT_EQ(test, 1 + i, srqs[i]->hw.srqn);
	}
	KUNIT_EXPECT_NULL(test, fake_new_srq(pd, 7, 1));
	for (i = 0; i < 3; i++)
		fake_del_srq(srqs[i]);
	objects_expect_held(test, fake->hdev, &before);
	fake_del_pd(pd);
}

/* Eight of 16 are for special QPs. */
static void objects_qps_run_out(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct hghca_pd *pd = fake_new_pd(fake);
	struct hghca_cq *hcq = fake_new_cq(fake, 7);
	struct hghca_qp *qps[8];
	int i;

	KUNIT_ASSERT_NOT_NULL(test, pd);
	KUNIT_ASSERT_NOT_NULL(test, hcq);
	for (i = 0; i < 8; i++) {
		qps[i] = fake_new_qp(pd, hcq, hcq, &objects_rc);
		KUNIT_ASSERT_NOT_NULL(test, qps[i]);
		KUNIT_EXPECT_EQ(test, 8 + i, qps[i]->hw.qpn);
	}
	KUNIT_EXPECT_NULL(test, fake_new_qp(pd, hcq, hcq, &objects_rc));
	for (i = 0; i < 8; i++)
		fake_del_qp(qps[i]);
	fake_del_cq(hcq);
	fake_del_pd(pd);
}

/*
 * Numbers come round: each rests while all the others come, and none in use is given
 * again. When one alone is free it is that.
 */
static void objects_qpns_come_round(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct hghca_hwqp *hwqps = kunit_kcalloc(test, 16, sizeof(*hwqps), GFP_KERNEL);
	struct hghca_hwqp *one = hwqps;
	u32 i, qpn;

	KUNIT_ASSERT_NOT_NULL(test, hwqps);
	KUNIT_ASSERT_EQ(test, 0, hghca_hwqp_add(fake->hdev, &hwqps[8], 0));
	KUNIT_ASSERT_EQ(test, 8, hwqps[8].qpn);
	for (i = 0; i < 3 * 7; i++) {
		KUNIT_ASSERT_EQ(test, 0, hghca_hwqp_add(fake->hdev, one, 0));
		KUNIT_EXPECT_EQ(test, 9 + i % 7, one->qpn);
		hghca_hwqp_del(fake->hdev, one);
	}

	for (qpn = 9; qpn < 16; qpn++) {
		KUNIT_ASSERT_EQ(test, 0, hghca_hwqp_add(fake->hdev, &hwqps[qpn], 0));
		KUNIT_EXPECT_EQ(test, qpn, hwqps[qpn].qpn);
	}
	for (qpn = 15; qpn >= 8; qpn--) {
		KUNIT_EXPECT_EQ(test, -ENOMEM, hghca_hwqp_add(fake->hdev, one, 0));
		hghca_hwqp_del(fake->hdev, &hwqps[qpn]);
		KUNIT_ASSERT_EQ(test, 0, hghca_hwqp_add(fake->hdev, &hwqps[qpn], 0));
		KUNIT_EXPECT_EQ(test, qpn, hwqps[qpn].qpn);
	}
	for (qpn = 8; qpn < 16; qpn++)
		hghca_hwqp_del(fake->hdev, &hwqps[qpn]);
}

static struct kunit_case objects_few_cases[] = {
	KUNIT_CASE(objects_pds_run_out),
	KUNIT_CASE(objects_cqs_run_out),
	KUNIT_CASE(objects_srqs_run_out),
	KUNIT_CASE(objects_qps_run_out),
	KUNIT_CASE(objects_qpns_come_round),
	{}
};

static struct kunit_suite objects_few_suite = {
	.name = "hghca_numbers",
	.init = objects_few_init,
	.exit = objects_few_exit,
	.test_cases = objects_few_cases,
};

kunit_test_suites(&objects_suite, &objects_few_suite);
