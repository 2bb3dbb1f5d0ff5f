// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of posting: which requests are taken and which is bad_wr, and
 * what the device is told: links, doorbells and doorbell records (interface
 * document, 5.1 and 5.2).
 */
#include <linux/slab.h>

#include "fake.h"

#define POSTING_WQES	4	/* a queue */
#define POSTING_STRIDE	64

/* Linked lists of requests, one byte each. */
struct posting_sends {
	struct ib_send_wr wr[6];
	struct ib_sge sge;
};

struct posting_recvs {
	struct ib_recv_wr wr[6];
	struct ib_sge sge;
};

struct posting {
	struct fake *fake;
	struct hghca_qp *hqp;
	struct posting_sends sends;
	struct posting_recvs recvs;
	struct ib_wc wc[8];
};

static int posting_init(struct kunit *test)
{
	static const struct fake_qp_attr attr = {
		.type = IB_QPT_RC,
		.cap = { .max_send_wr = POSTING_WQES, .max_recv_wr = POSTING_WQES,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct posting *posting = kunit_kzalloc(test, sizeof(*posting), GFP_KERNEL);
	struct hghca_cq *hcq;
	int err;

	if (!posting)
		return -ENOMEM;
	err = fake_test_init_events(test);
	if (err)
		return err;
	posting->fake = test->priv;
	hcq = fake_cq(test, posting->fake, 15);
	posting->hqp = fake_qp(test, fake_pd(test, posting->fake), hcq, hcq, &attr);
	posting->hqp->state = IB_QPS_RTS;
	fake_doorbell(posting->fake, 0);
	test->priv = posting;
	return 0;
}

static void posting_sends(struct posting_sends *sends, int count)
{
	int i;

	memset(sends, 0, sizeof(*sends));
	sends->sge.length = 1;
	for (i = 0; i < count; i++) {
		sends->wr[i].wr_id = 100 + i;
		sends->wr[i].opcode = IB_WR_SEND;
		sends->wr[i].sg_list = &sends->sge;
		sends->wr[i].num_sge = 1;
		sends->wr[i].next = i + 1 < count ? &sends->wr[i + 1] : NULL;
	}
}

static void posting_recvs(struct posting_recvs *recvs, int count)
{
	int i;

	memset(recvs, 0, sizeof(*recvs));
	recvs->sge.length = 1;
	for (i = 0; i < count; i++) {
		recvs->wr[i].wr_id = 200 + i;
		recvs->wr[i].sg_list = &recvs->sge;
		recvs->wr[i].num_sge = 1;
		recvs->wr[i].next = i + 1 < count ? &recvs->wr[i + 1] : NULL;
	}
}

/* count 31:24, sq_head 23:8, SEND; QPN 31:8, size0 of a next and a data unit */
static u64 posting_doorbell(const struct posting *posting, u32 count, u32 head)
{
	return (u64)(posting->hqp->hw.qpn << 8 | 2) << 32 | count << 24 | head << 8 | 0x0a;
}

static const void *posting_slot(const struct hghca_wq *wq, u32 slot)
{
	return hghca_queue_at(&wq->queue, slot * POSTING_STRIDE);
}

/* ------------------------------------------------------------------ */
/* Where a list breaks                                                  */

static const struct posting_break {
	const char *name;
	int count;	/* requests in the list */
	int bad;	/* the one that is not possible, or -1 */
	int err;
	int posted;
} posting_breaks[] = {
	{ "all of four are taken", 4, -1, 0, 4 },
	{ "the first is bad", 4, 0, -EINVAL, 0 },
	{ "the second is bad", 4, 1, -EINVAL, 1 },
	{ "the last is bad", 4, 3, -EINVAL, 3 },
	{ "one more than the queue holds", 5, -1, -ENOMEM, 4 },
	{ "the one that has no room is bad, too", 5, 4, -ENOMEM, 4 },
};

static void posting_break_name(const struct posting_break *param, char *desc)
{
	strscpy(desc, param->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(posting_break, posting_breaks, posting_break_name);

static void posting_send_list(struct kunit *test)
{
	const struct posting_break *param = test->param_value;
	struct posting *posting = test->priv;
	const struct ib_send_wr *bad_wr = NULL;
	struct posting_sends *sends = &posting->sends;

	posting_sends(sends, param->count);
	if (param->bad >= 0)
		sends->wr[param->bad].opcode = IB_WR_LSO;
	KUNIT_EXPECT_EQ(test, param->err,
			hghca_post_send(&posting->hqp->ibqp, sends->wr, &bad_wr));
	KUNIT_EXPECT_PTR_EQ(test, param->err ? &sends->wr[param->posted] : NULL, bad_wr);
	KUNIT_EXPECT_EQ(test, param->posted, posting->hqp->sq.head);
	KUNIT_EXPECT_EQ(test, param->posted ? posting_doorbell(posting, param->posted, 0) : 0,
			fake_doorbell(posting->fake, 0x00));
}

static void posting_recv_list(struct kunit *test)
{
	const struct posting_break *param = test->param_value;
	struct posting *posting = test->priv;
	const struct ib_recv_wr *bad_wr = NULL;
	struct posting_recvs *recvs = &posting->recvs;

	posting_recvs(recvs, param->count);
	if (param->bad >= 0)
		recvs->wr[param->bad].num_sge = 33;
	KUNIT_EXPECT_EQ(test, param->err,
			hghca_post_recv(&posting->hqp->ibqp, recvs->wr, &bad_wr));
	KUNIT_EXPECT_PTR_EQ(test, param->err ? &recvs->wr[param->posted] : NULL, bad_wr);
	/* The record counts them; no doorbell is rung. */
	KUNIT_EXPECT_EQ(test, param->posted, le32_at(posting->hqp->dbr.record, 0));
	KUNIT_EXPECT_EQ(test, 0, fake_doorbell(posting->fake, 0x00));
}

/* ------------------------------------------------------------------ */
/* States                                                               */

static const struct posting_state {
	const char *name;
	enum ib_qp_state state;
	int send_err;
	int recv_err;
} posting_states[] = {
	{ "RESET", IB_QPS_RESET, -EINVAL, -EINVAL },
	{ "INIT", IB_QPS_INIT, -EINVAL, 0 },
	{ "RTR", IB_QPS_RTR, -EINVAL, 0 },
	{ "RTS", IB_QPS_RTS, 0, 0 },
	{ "SQD", IB_QPS_SQD, 0, 0 },
	{ "SQE", IB_QPS_SQE, 0, 0 },
	{ "ERR", IB_QPS_ERR, 0, 0 },
};

static void posting_state_name(const struct posting_state *param, char *desc)
{
	strscpy(desc, param->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(posting_state, posting_states, posting_state_name);

static void posting_in_state(struct kunit *test)
{
	const struct posting_state *param = test->param_value;
	struct posting *posting = test->priv;
	const struct ib_send_wr *bad_send = NULL;
	const struct ib_recv_wr *bad_recv = NULL;
	struct posting_sends *sends = &posting->sends;
	struct posting_recvs *recvs = &posting->recvs;

	posting_sends(sends, 2);
	posting_recvs(recvs, 2);
	posting->hqp->state = param->state;
	KUNIT_EXPECT_EQ(test, param->send_err,
			hghca_post_send(&posting->hqp->ibqp, sends->wr, &bad_send));
	KUNIT_EXPECT_PTR_EQ(test, param->send_err ? sends->wr : NULL, bad_send);
	KUNIT_EXPECT_EQ(test, param->send_err ? 0 : 2, posting->hqp->sq.head);
	KUNIT_EXPECT_EQ(test, param->recv_err,
			hghca_post_recv(&posting->hqp->ibqp, recvs->wr, &bad_recv));
	KUNIT_EXPECT_PTR_EQ(test, param->recv_err ? recvs->wr : NULL, bad_recv);
	KUNIT_EXPECT_EQ(test, param->recv_err ? 0 : 2, posting->hqp->rq.head);
}

/* ------------------------------------------------------------------ */
/* What the device is told                                              */

/* Within a list and from list to list, each WQE names the next; the last names none. */
static void posting_links(struct kunit *test)
{
	struct posting *posting = test->priv;
	struct hghca_wq *sq = &posting->hqp->sq;
	const struct ib_send_wr *bad_wr;
	struct posting_sends *sends = &posting->sends;
	u32 i;

	posting_sends(sends, 2);
	KUNIT_ASSERT_EQ(test, 0, hghca_post_send(&posting->hqp->ibqp, sends->wr, &bad_wr));
	posting_sends(sends, 1);
	KUNIT_ASSERT_EQ(test, 0, hghca_post_send(&posting->hqp->ibqp, sends->wr, &bad_wr));
	KUNIT_EXPECT_EQ(test, posting_doorbell(posting, 1, 2), fake_doorbell(posting->fake, 0));
	for (i = 0; i < 3; i++) {
		/* nda 31:6, nop 4:0; nds 5:0 */
		KUNIT_EXPECT_EQ(test, i < 2 ? (i + 1) * POSTING_STRIDE + 0x0a : 0,
				le32_at(posting_slot(sq, i), 0));
		KUNIT_EXPECT_EQ(test, i < 2 ? 2 : 0, le32_at(posting_slot(sq, i), 4));
	}
}

/* Indices run on at the end of the queue, and modulo 2^16 in the doorbell. */
static void posting_wraps(struct kunit *test)
{
	struct posting *posting = test->priv;
	struct hghca_wq *sq = &posting->hqp->sq;
	const struct ib_send_wr *bad_wr;
	struct posting_sends *sends = &posting->sends;

	sq->head = 0x1ffff;
	sq->tail = 0x1ffff;
	posting_sends(sends, 2);
	KUNIT_ASSERT_EQ(test, 0, hghca_post_send(&posting->hqp->ibqp, sends->wr, &bad_wr));
	KUNIT_EXPECT_EQ(test, posting_doorbell(posting, 2, 0xffff),
			fake_doorbell(posting->fake, 0));
	/* Slot 3 names slot 0. */
	KUNIT_EXPECT_EQ(test, 0x0a, le32_at(posting_slot(sq, 3), 0));
	KUNIT_EXPECT_EQ(test, 100, sq->wrs[3].wr_id);
	KUNIT_EXPECT_EQ(test, 101, sq->wrs[0].wr_id);
	sq->head = 0;
	sq->tail = 0;
}

/* A fence goes into the doorbell of the first, and the link of the others. */
static void posting_fences(struct kunit *test)
{
	struct posting *posting = test->priv;
	struct hghca_wq *sq = &posting->hqp->sq;
	const struct ib_send_wr *bad_wr;
	struct posting_sends *sends = &posting->sends;

	posting_sends(sends, 2);
	sends->wr[0].send_flags = IB_SEND_FENCE;
	sends->wr[1].send_flags = IB_SEND_FENCE;
	KUNIT_ASSERT_EQ(test, 0, hghca_post_send(&posting->hqp->ibqp, sends->wr, &bad_wr));
	KUNIT_EXPECT_EQ(test, posting_doorbell(posting, 2, 0) | BIT(5),
			fake_doorbell(posting->fake, 0));
	KUNIT_EXPECT_EQ(test, BIT(6) | 2, le32_at(posting_slot(sq, 0), 4));
}

/* The record counts on beyond the queue's length and 2^16. */
static void posting_record_runs_on(struct kunit *test)
{
	struct posting *posting = test->priv;
	struct hghca_wq *rq = &posting->hqp->rq;
	const struct ib_recv_wr *bad_wr;
	struct posting_recvs *recvs = &posting->recvs;

	rq->head = 0xffff;
	rq->tail = 0xffff;
	posting_recvs(recvs, 3);
	KUNIT_ASSERT_EQ(test, 0, hghca_post_recv(&posting->hqp->ibqp, recvs->wr, &bad_wr));
	KUNIT_EXPECT_EQ(test, 0x10002, le32_at(posting->hqp->dbr.record, 0));
	/* Slots 3, 0 and 1. */
	KUNIT_EXPECT_EQ(test, 200, rq->wrs[3].wr_id);
	KUNIT_EXPECT_EQ(test, 202, rq->wrs[1].wr_id);
	KUNIT_EXPECT_EQ(test, 1, le32_at(posting_slot(rq, 1), 0x10));
	rq->head = 0;
	rq->tail = 0;
}

/* Document 8: a receive posted in ERR rings the SQ doorbell with size 0. */
static void posting_recv_in_error(struct kunit *test)
{
	struct posting *posting = test->priv;
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	const struct ib_recv_wr *bad_wr;
	struct posting_recvs *recvs = &posting->recvs;
	u64 flush = (u64)posting->hqp->hw.qpn << 40;

	KUNIT_ASSERT_EQ(test, 0, hghca_modify_qp(&posting->hqp->ibqp, &attr, IB_QP_STATE, NULL));
	KUNIT_EXPECT_EQ(test, flush, fake_doorbell(posting->fake, 0));
	posting_recvs(recvs, 1);
	KUNIT_ASSERT_EQ(test, 0, hghca_post_recv(&posting->hqp->ibqp, recvs->wr, &bad_wr));
	KUNIT_EXPECT_EQ(test, flush, fake_doorbell(posting->fake, 0));

	/* After a reset it is as new. */
	attr.qp_state = IB_QPS_RESET;
	KUNIT_ASSERT_EQ(test, 0, hghca_modify_qp(&posting->hqp->ibqp, &attr, IB_QP_STATE, NULL));
	KUNIT_EXPECT_EQ(test, 0, le32_at(posting->hqp->dbr.record, 0));
	posting->hqp->state = IB_QPS_INIT;
	KUNIT_ASSERT_EQ(test, 0, hghca_post_recv(&posting->hqp->ibqp, recvs->wr, &bad_wr));
	KUNIT_EXPECT_EQ(test, 0, fake_doorbell(posting->fake, 0));
	KUNIT_EXPECT_EQ(test, 1, le32_at(posting->hqp->dbr.record, 0));
}

/* Told once that a QP is in ERR, the device is not told again and again. */
static void posting_flush_once(struct kunit *test)
{
	struct posting *posting = test->priv;

	hghca_qp_flush(posting->hqp);
	KUNIT_EXPECT_EQ(test, (u64)posting->hqp->hw.qpn << 40, fake_doorbell(posting->fake, 0));
	hghca_qp_flush(posting->hqp);
	KUNIT_EXPECT_EQ(test, 0, fake_doorbell(posting->fake, 0));
}

/* On a device that was given up what is posted is taken, and completes as flushed. */
static void posting_given_up(struct kunit *test)
{
	struct posting *posting = test->priv;
	const struct ib_send_wr *bad_send;
	const struct ib_recv_wr *bad_recv;
	struct posting_sends *sends = &posting->sends;
	struct posting_recvs *recvs = &posting->recvs;
	struct ib_wc *wc = posting->wc;
	int i;

	hghca_dev_fail(posting->fake->hdev, "a test");
	posting_sends(sends, 2);
	posting_recvs(recvs, 3);
	KUNIT_ASSERT_EQ(test, 0, hghca_post_send(&posting->hqp->ibqp, sends->wr, &bad_send));
	KUNIT_ASSERT_EQ(test, 0, hghca_post_recv(&posting->hqp->ibqp, recvs->wr, &bad_recv));
	/* No more at a time than there is room for. */
	KUNIT_ASSERT_EQ(test, 4, hghca_poll_cq(posting->hqp->ibqp.send_cq, 4, wc));
	KUNIT_ASSERT_EQ(test, 1, hghca_poll_cq(posting->hqp->ibqp.send_cq, 4, wc + 4));
	for (i = 0; i < 5; i++) {
		KUNIT_EXPECT_EQ(test, IB_WC_WR_FLUSH_ERR, wc[i].status);
		KUNIT_EXPECT_EQ(test, i < 2 ? 100 + i : 200 + i - 2, wc[i].wr_id);
		KUNIT_EXPECT_PTR_EQ(test, &posting->hqp->ibqp, wc[i].qp);
	}
	KUNIT_EXPECT_EQ(test, 0, hghca_poll_cq(posting->hqp->ibqp.send_cq, 4, wc));
}

/* ------------------------------------------------------------------ */
/* Other QPs                                                            */

/* A queue of one: the doorbell says all, and nothing is linked to itself. */
static void posting_queue_of_one(struct kunit *test)
{
	static const struct fake_qp_attr attr = { .type = IB_QPT_RC, .cap.max_send_wr = 1 };
	struct posting *posting = test->priv;
	struct hghca_cq *hcq = to_hcq(posting->hqp->ibqp.send_cq);
	const struct ib_send_wr *bad_wr;
	struct posting_sends *sends = &posting->sends;
	struct hghca_qp *hqp;

	hqp = fake_qp(test, fake_pd(test, posting->fake), hcq, hcq, &attr);
	hqp->state = IB_QPS_RTS;
	posting_sends(sends, 2);
	sends->wr[0].num_sge = 0;
	KUNIT_EXPECT_EQ(test, -ENOMEM, hghca_post_send(&hqp->ibqp, sends->wr, &bad_wr));
	KUNIT_EXPECT_PTR_EQ(test, &sends->wr[1], bad_wr);
	KUNIT_EXPECT_EQ(test, (u64)(hqp->hw.qpn << 8 | 1) << 32 | 0x0100000a,
			fake_doorbell(posting->fake, 0));
	KUNIT_EXPECT_EQ(test, 0, le32_at(hghca_queue_at(&hqp->sq.queue, 0), 0));
	KUNIT_EXPECT_EQ(test, 0, le32_at(hghca_queue_at(&hqp->sq.queue, 0), 4));
}

static void posting_no_queue(struct kunit *test)
{
	static const struct fake_qp_attr attr = { .type = IB_QPT_RC };
	struct posting *posting = test->priv;
	struct hghca_cq *hcq = to_hcq(posting->hqp->ibqp.send_cq);
	const struct ib_send_wr *bad_send;
	const struct ib_recv_wr *bad_recv;
	struct posting_sends *sends = &posting->sends;
	struct posting_recvs *recvs = &posting->recvs;
	struct hghca_qp *hqp;

	hqp = fake_qp(test, fake_pd(test, posting->fake), hcq, hcq, &attr);
	hqp->state = IB_QPS_RTS;
	posting_sends(sends, 1);
	posting_recvs(recvs, 1);
	KUNIT_EXPECT_EQ(test, -ENOMEM, hghca_post_send(&hqp->ibqp, sends->wr, &bad_send));
	KUNIT_EXPECT_EQ(test, -ENOMEM, hghca_post_recv(&hqp->ibqp, recvs->wr, &bad_recv));
	KUNIT_EXPECT_EQ(test, 0, fake_doorbell(posting->fake, 0));
}

/*
 * A datagram needs an address.  To one of another PD, and for what datagrams lack,
 * the device is given an opcode that it refuses (IBA C10-10).
 */
static void posting_datagram(struct kunit *test)
{
	static const struct fake_qp_attr attr = {
		.type = IB_QPT_UD, .cap = { .max_send_wr = 4, .max_send_sge = 1 },
	};
	struct posting *posting = test->priv;
	struct hghca_cq *hcq = to_hcq(posting->hqp->ibqp.send_cq);
	struct hghca_ah *ah = kunit_kzalloc(test, sizeof(*ah), GFP_KERNEL);
	struct ib_ud_wr wr = { .wr.opcode = IB_WR_SEND, .remote_qpn = 0x17 };
	struct ib_rdma_wr read = { .wr.opcode = IB_WR_RDMA_READ };
	const struct ib_send_wr *bad_wr;
	struct hghca_qp *hqp;

	KUNIT_ASSERT_NOT_NULL(test, ah);
	hqp = fake_qp(test, fake_pd(test, posting->fake), hcq, hcq, &attr);
	hqp->state = IB_QPS_RTS;
	KUNIT_EXPECT_EQ(test, -EINVAL, hghca_post_send(&hqp->ibqp, &wr.wr, &bad_wr));
	KUNIT_EXPECT_PTR_EQ(test, &wr.wr, bad_wr);
	KUNIT_EXPECT_EQ(test, 0, fake_doorbell(posting->fake, 0));
	wr.ah = &ah->ibah;
	ah->ibah.pd = hqp->ibqp.pd;
	KUNIT_EXPECT_EQ(test, 0, hghca_post_send(&hqp->ibqp, &wr.wr, &bad_wr));
	KUNIT_EXPECT_EQ(test, 0x17, le32_at(hghca_queue_at(&hqp->sq.queue, 0), 0x30));
	/* next unit and ud unit */
	KUNIT_EXPECT_EQ(test, (u64)(hqp->hw.qpn << 8 | 4) << 32 | 0x0100000a,
			fake_doorbell(posting->fake, 0));
	/* a SEND to another PD's address: READ, at index 1 */
	ah->ibah.pd = posting->hqp->ibqp.pd;
	KUNIT_EXPECT_EQ(test, 0, hghca_post_send(&hqp->ibqp, &wr.wr, &bad_wr));
	KUNIT_EXPECT_EQ(test, (u64)(hqp->hw.qpn << 8 | 4) << 32 | 0x01000110,
			fake_doorbell(posting->fake, 0));
	/* a READ: a next unit, at index 2 */
	KUNIT_EXPECT_EQ(test, 0, hghca_post_send(&hqp->ibqp, &read.wr, &bad_wr));
	KUNIT_EXPECT_EQ(test, (u64)(hqp->hw.qpn << 8 | 1) << 32 | 0x01000210,
			fake_doorbell(posting->fake, 0));
	KUNIT_EXPECT_EQ(test, 3, hqp->sq.head);
}

static struct kunit_case posting_cases[] = {
	KUNIT_CASE_PARAM(posting_send_list, posting_break_gen_params),
	KUNIT_CASE_PARAM(posting_recv_list, posting_break_gen_params),
	KUNIT_CASE_PARAM(posting_in_state, posting_state_gen_params),
	KUNIT_CASE(posting_links),
	KUNIT_CASE(posting_wraps),
	KUNIT_CASE(posting_fences),
	KUNIT_CASE(posting_record_runs_on),
	KUNIT_CASE(posting_recv_in_error),
	KUNIT_CASE(posting_flush_once),
	KUNIT_CASE(posting_given_up),
	KUNIT_CASE(posting_queue_of_one),
	KUNIT_CASE(posting_no_queue),
	KUNIT_CASE(posting_datagram),
	{}
};

static struct kunit_suite posting_suite = {
	.name = "hghca_posting",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = posting_init,
	.test_cases = posting_cases,
};

kunit_test_suite(posting_suite);
