// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of shared receive queues: what the device is told of them, the
 * chain of WQEs as it finds it (interface document, 4.15 and 5.2), and
 * completions that give WQEs back, those among them that no device should write.
 */
#include <linux/slab.h>
#include <linux/unaligned.h>

#include "fake.h"

#define SRQ_SLOTS	4	/* one of them always free */
#define SRQ_STRIDE	64
#define SRQ_CQES	16
#define SRQ_LENGTH	1000	/* bytes of each request */
#define SRQ_ASYNC_EQ	1

struct srq_recvs {
	struct ib_recv_wr wr[6];
	struct ib_sge sge;
};

struct srq {
	struct fake *fake;
	struct hghca_pd *pd;
	struct hghca_cq *hcq;
	struct hghca_srq *hsrq;
	struct hghca_qp *hqp;		/* RC */
	struct hghca_qp *other;		/* UD */
	struct srq_recvs recvs;
	u32 produced;
	struct ib_event last;
	int events;
	/* The device's side: the offset of the WQE to be taken next, and how many were. */
	u32 next;
	u16 taken;
};

static void srq_on_event(struct ib_event *event, void *context)
{
	struct srq *this = context;

	this->last = *event;
	this->events++;
}

static int srq_init(struct kunit *test)
{
	struct srq *this = kunit_kzalloc(test, sizeof(*this), GFP_KERNEL);
	struct fake_qp_attr attr = {
		.type = IB_QPT_RC,
		/* Of the receive queue nothing is looked at. */
		.cap = { .max_send_wr = 4, .max_send_sge = 1, .max_recv_wr = U32_MAX,
			 .max_recv_sge = U32_MAX },
	};
	int err;

	if (!this)
		return -ENOMEM;
	err = fake_test_init_events(test);
	if (err)
		return err;
	this->fake = test->priv;
	this->pd = fake_pd(test, this->fake);
	this->hcq = fake_cq(test, this->fake, SRQ_CQES - 1);
	this->hsrq = fake_srq(test, this->pd, SRQ_SLOTS - 1, 3);
	this->hsrq->ibsrq.event_handler = srq_on_event;
	this->hsrq->ibsrq.srq_context = this;
	attr.srq = this->hsrq;
	this->hqp = fake_qp(test, this->pd, this->hcq, this->hcq, &attr);
	this->hqp->state = IB_QPS_RTS;
	this->hqp->ibqp.event_handler = srq_on_event;
	this->hqp->ibqp.qp_context = this;
	attr.type = IB_QPT_UD;
	this->other = fake_qp(test, this->pd, this->hcq, this->hcq, &attr);
	this->other->state = IB_QPS_RTS;
	test->priv = this;
	return 0;
}

static const void *srq_slot(const struct srq *this, u32 offset)
{
	return hghca_queue_at(&this->hsrq->queue, offset);
}

static void srq_recvs(struct srq_recvs *recvs, int count, u64 wr_id)
{
	int i;

	memset(recvs, 0, sizeof(*recvs));
	recvs->sge.length = SRQ_LENGTH;
	for (i = 0; i < count; i++) {
		recvs->wr[i].wr_id = wr_id + i;
		recvs->wr[i].sg_list = &recvs->sge;
		recvs->wr[i].num_sge = 1;
		recvs->wr[i].next = i + 1 < count ? &recvs->wr[i + 1] : NULL;
	}
}

static void srq_post(struct kunit *test, int count, u64 wr_id)
{
	struct srq *this = test->priv;
	const struct ib_recv_wr *bad_wr;

	if (!count)
		return;
	srq_recvs(&this->recvs, count, wr_id);
	KUNIT_ASSERT_EQ(test, 0,
			hghca_post_srq_recv(&this->hsrq->ibsrq, this->recvs.wr, &bad_wr));
}

/* A receive's CQE; what is 0 here is 0 there. */
struct srq_cqe {
	u32 qpn;
	u32 srqn;
	u32 byte_cnt;
	u32 wqe;
	u8 opcode;
	u8 is_send;
	u8 syndrome;
};

/* Document 7, byte by byte. */
static void srq_put(struct srq *this, const struct srq_cqe *cqe)
{
	u8 *at = hghca_queue_at(&this->hcq->queue, this->produced++ % SRQ_CQES * 32);

	memset(at, 0, 31);
	put_unaligned_le32(cqe->qpn, at + 0x00);
	put_unaligned_le32(cqe->srqn, at + 0x04);
	at[0x10] = cqe->syndrome;
	put_unaligned_le32(cqe->byte_cnt, at + 0x14);
	put_unaligned_le32(cqe->wqe, at + 0x18);
	at[0x1c] = cqe->opcode;
	at[0x1d] = cqe->is_send;
	at[0x1f] = 0;
}

/* A message came to @hqp, into the WQE at @offset. */
static void srq_put_good(struct srq *this, const struct hghca_qp *hqp, u32 offset)
{
	const struct srq_cqe cqe = {
		.qpn = hqp->hw.qpn, .srqn = this->hsrq->hw.srqn, .byte_cnt = SRQ_LENGTH,
		.wqe = offset, .opcode = 0x04,
	};

	srq_put(this, &cqe);
}

static int srq_poll(struct srq *this, int count, struct ib_wc *wc)
{
	memset(wc, 0xa5, count * sizeof(*wc));
	return hghca_poll_cq(&this->hcq->ibcq, count, wc);
}

/* The device takes the next WQE: bits 31:6 of its first word lead on. */
static u32 srq_take(struct kunit *test)
{
	struct srq *this = test->priv;
	u32 offset = this->next;

	KUNIT_ASSERT_NE(test, this->taken, (u16)le32_at(this->hsrq->dbr.record, 0));
	this->taken++;
	this->next = le32_at(srq_slot(this, offset), 0) & ~0x3f;
	KUNIT_ASSERT_LT(test, this->next, SRQ_SLOTS * SRQ_STRIDE);
	KUNIT_ASSERT_EQ(test, 0, this->next % SRQ_STRIDE);
	return offset;
}

static u32 srq_left(const struct srq *this)
{
	return (u16)(le32_at(this->hsrq->dbr.record, 0) - this->taken);
}

/* The last command of opcode @op since @mark. */
static struct fake_command *srq_command(struct fake *fake, u32 mark, u16 op)
{
	struct fake_command *cmd = NULL;

	for (; mark != fake_mark(fake); mark++)
		if (fake_nth(fake, mark) && fake_nth(fake, mark)->op == op)
			cmd = fake_nth(fake, mark);
	return cmd;
}

/* ------------------------------------------------------------------ */
/* Creation                                                             */

static const struct srq_size {
	const char *name;
	u32 max_wr;
	u32 max_sge;
	u8 log_size;
	u8 log_stride;
	u32 given_wr;
	u32 given_sge;
} srq_sizes[] = {
	{ "the least", 1, 0, 1, 6, 1, 1 },
	{ "two: one slot more stays free", 2, 1, 2, 6, 3, 1 },
	{ "three, 4 SGEs", 3, 4, 2, 7, 3, 4 },
	{ "four, 7 SGEs", 4, 7, 3, 7, 7, 7 },
	{ "five, 8 SGEs", 5, 8, 3, 8, 7, 8 },
	{ "a hundred, 32 SGEs", 100, 32, 7, 10, 127, 32 },
	{ "the most", 16383, 32, 14, 10, 16383, 32 },
};

static void srq_size_name(const struct srq_size *size, char *desc)
{
	strscpy(desc, size->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(srq_size, srq_sizes, srq_size_name);

static void srq_context(struct kunit *test)
{
	const struct srq_size *param = test->param_value;
	struct srq *this = test->priv;
	struct ib_srq_init_attr init = {
		.attr = { .max_wr = param->max_wr, .max_sge = param->max_sge, .srq_limit = 77 },
	};
	struct hghca_srq *hsrq = kunit_kzalloc(test, sizeof(*hsrq), GFP_KERNEL);
	struct fake_command *cmd;

	KUNIT_ASSERT_NOT_NULL(test, hsrq);
	hsrq->ibsrq.device = &this->fake->hdev->ibdev;
	hsrq->ibsrq.pd = &this->pd->ibpd;
	KUNIT_ASSERT_EQ(test, 0, hghca_create_srq(&hsrq->ibsrq, &init, NULL));
	KUNIT_EXPECT_EQ(test, param->given_wr, init.attr.max_wr);
	KUNIT_EXPECT_EQ(test, param->given_sge, init.attr.max_sge);

	cmd = fake_nth(this->fake, fake_mark(this->fake) - 1);
	KUNIT_ASSERT_NOT_NULL(test, cmd);
	KUNIT_ASSERT_EQ(test, 0x35, cmd->op);
	KUNIT_EXPECT_EQ(test, hsrq->hw.srqn, cmd->in_modifier);
	KUNIT_EXPECT_EQ(test, 0, be32_at(cmd->mailbox, 0x00));
	KUNIT_EXPECT_EQ(test, hsrq->hw.srqn, be32_at(cmd->mailbox, 0x04));
	KUNIT_EXPECT_EQ(test, this->pd->pdn, be32_at(cmd->mailbox, 0x08));
	KUNIT_EXPECT_EQ(test, hsrq->queue.mr.key, be32_at(cmd->mailbox, 0x0c));
	/* logsize, entry_sz_log, and no limit: it is not for creation */
	KUNIT_EXPECT_EQ(test, param->log_size << 24 | param->log_stride << 16,
			be32_at(cmd->mailbox, 0x10));
	/* next, taken */
	KUNIT_EXPECT_EQ(test, 0, be32_at(cmd->mailbox, 0x14));
	KUNIT_EXPECT_EQ(test, 0, be64_at(cmd->mailbox, 0x18));
	KUNIT_EXPECT_EQ(test, hsrq->dbr.dma | 1, be64_at(cmd->mailbox, 0x20));
	KUNIT_EXPECT_NULL(test, memchr_inv(cmd->mailbox + 0x28, 0, 0x18));
	KUNIT_EXPECT_EQ(test, 0, le32_at(hsrq->dbr.record, 0));
	KUNIT_EXPECT_GE(test, hsrq->queue.size, (size_t)1 << (param->log_size + param->log_stride));
	KUNIT_EXPECT_EQ(test, 0, hghca_destroy_srq(&hsrq->ibsrq, NULL));

	cmd = srq_command(this->fake, 0, 0x36);
	KUNIT_ASSERT_NOT_NULL(test, cmd);
	KUNIT_EXPECT_EQ(test, hsrq->hw.srqn, cmd->in_modifier);
}

static const struct srq_bad_create {
	const char *name;
	u32 max_wr;
	u32 max_sge;
	enum ib_srq_type type;
	int err;
} srq_bad_creates[] = {
	{ "no WQE", 0, 1, IB_SRQT_BASIC, -EINVAL },
	{ "more WQEs than there may be", 16384, 1, IB_SRQT_BASIC, -EINVAL },
	{ "all ones WQEs", U32_MAX, 1, IB_SRQT_BASIC, -EINVAL },
	{ "more SGEs than there may be", 1, 33, IB_SRQT_BASIC, -EINVAL },
	{ "all ones SGEs", 1, U32_MAX, IB_SRQT_BASIC, -EINVAL },
	{ "XRC", 1, 1, IB_SRQT_XRC, -EOPNOTSUPP },
	{ "tag matching", 1, 1, IB_SRQT_TM, -EOPNOTSUPP },
};

static void srq_bad_create_name(const struct srq_bad_create *param, char *desc)
{
	strscpy(desc, param->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(srq_bad_create, srq_bad_creates, srq_bad_create_name);

static void srq_bad_create(struct kunit *test)
{
	const struct srq_bad_create *param = test->param_value;
	struct srq *this = test->priv;
	struct ib_srq_init_attr init = {
		.attr = { .max_wr = param->max_wr, .max_sge = param->max_sge },
		.srq_type = param->type,
	};
	struct hghca_srq *hsrq = kunit_kzalloc(test, sizeof(*hsrq), GFP_KERNEL);
	u32 mark = fake_mark(this->fake);

	KUNIT_ASSERT_NOT_NULL(test, hsrq);
	hsrq->ibsrq.device = &this->fake->hdev->ibdev;
	hsrq->ibsrq.pd = &this->pd->ibpd;
	KUNIT_EXPECT_EQ(test, param->err, hghca_create_srq(&hsrq->ibsrq, &init, NULL));
	KUNIT_EXPECT_EQ(test, mark, fake_mark(this->fake));
}

/* ------------------------------------------------------------------ */
/* Posting                                                              */

static void srq_wqe_bytes(struct kunit *test)
{
	struct srq *this = test->priv;
	struct ib_sge sges[3] = {
		{ .addr = 0x0123456789abcdef, .length = 0x11223344, .lkey = 0x55667788 },
		{ .length = 0, .lkey = 0x99 },
		{ .addr = 0xfedc, .length = 5, .lkey = 6 },
	};
	struct ib_recv_wr wr = { .wr_id = 1, .sg_list = sges, .num_sge = 3 };
	const struct ib_recv_wr *bad_wr;
	const u8 *wqe = srq_slot(this, 0);

	KUNIT_ASSERT_EQ(test, 0, hghca_post_srq_recv(&this->hsrq->ibsrq, &wr, &bad_wr));
	/* The link: slot 1. */
	KUNIT_EXPECT_EQ(test, 64, le32_at(wqe, 0x00));
	KUNIT_EXPECT_NULL(test, memchr_inv(wqe + 4, 0, 12));
	KUNIT_EXPECT_EQ(test, 0x11223344, le32_at(wqe, 0x10));
	KUNIT_EXPECT_EQ(test, 0x55667788, le32_at(wqe, 0x14));
	KUNIT_EXPECT_EQ(test, 0x89abcdef, le32_at(wqe, 0x18));
	KUNIT_EXPECT_EQ(test, 0x01234567, le32_at(wqe, 0x1c));
	KUNIT_EXPECT_EQ(test, 5, le32_at(wqe, 0x20));
	KUNIT_EXPECT_EQ(test, 6, le32_at(wqe, 0x24));
	KUNIT_EXPECT_EQ(test, 0xfedc, le32_at(wqe, 0x28));
	/* The end of the list. */
	KUNIT_EXPECT_EQ(test, 0, le32_at(wqe, 0x30));
	KUNIT_EXPECT_EQ(test, 0x100, le32_at(wqe, 0x34));
	KUNIT_EXPECT_EQ(test, 1, le32_at(this->hsrq->dbr.record, 0));
}

static const struct srq_break {
	const char *name;
	int count;	/* requests in the list */
	int bad;	/* the one that is not possible, or -1 */
	int err;
	int posted;
} srq_breaks[] = {
	{ "all of three are taken", 3, -1, 0, 3 },
	{ "an empty list", 0, -1, 0, 0 },
	{ "the first is bad", 3, 0, -EINVAL, 0 },
	{ "the second is bad", 3, 1, -EINVAL, 1 },
	{ "one more than the queue takes", 4, -1, -ENOMEM, 3 },
	{ "the one that has no room is bad, too", 4, 3, -ENOMEM, 3 },
};

static void srq_break_name(const struct srq_break *param, char *desc)
{
	strscpy(desc, param->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(srq_break, srq_breaks, srq_break_name);

static void srq_list(struct kunit *test)
{
	const struct srq_break *param = test->param_value;
	struct srq *this = test->priv;
	const struct ib_recv_wr *bad_wr = NULL;
	int i;

	srq_recvs(&this->recvs, param->count, 100);
	if (param->bad >= 0)
		this->recvs.wr[param->bad].num_sge = 4;
	KUNIT_EXPECT_EQ(test, param->err,
			hghca_post_srq_recv(&this->hsrq->ibsrq,
					    param->count ? this->recvs.wr : NULL, &bad_wr));
	KUNIT_EXPECT_PTR_EQ(test, param->err ? &this->recvs.wr[param->posted] : NULL, bad_wr);
	KUNIT_EXPECT_EQ(test, param->posted, le32_at(this->hsrq->dbr.record, 0));
	for (i = 0; i < param->posted; i++)
		KUNIT_EXPECT_EQ(test, (i + 1) * SRQ_STRIDE,
				le32_at(srq_slot(this, i * SRQ_STRIDE), 0));

	/* What was refused took no slot. */
	srq_post(test, SRQ_SLOTS - 1 - param->posted, 200);
}

/* Orders in which three WQEs that were taken complete. */
static const u8 srq_orders[][3] = {
	{ 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 },
};

/*
 * Full, used up in every order, full again: the device finds each WQE by the
 * link of the one before, and the record runs on beyond 16 bits.
 */
static void srq_chain(struct kunit *test)
{
	struct srq *this = test->priv;
	u32 round, offsets[3], start = U16_MAX - 20;
	struct ib_wc wc[3];
	int i;

	this->hsrq->posted = start;
	this->taken = start;
	*this->hsrq->dbr.record = cpu_to_le32(start);
	for (round = 0; round < 10 * ARRAY_SIZE(srq_orders); round++) {
		const u8 *order = srq_orders[round % ARRAY_SIZE(srq_orders)];
		const struct ib_recv_wr *bad_wr;

		srq_post(test, 3, 10 * round);
		KUNIT_EXPECT_EQ(test, -ENOMEM,
				hghca_post_srq_recv(&this->hsrq->ibsrq, this->recvs.wr, &bad_wr));
		KUNIT_ASSERT_EQ(test, 3, srq_left(this));
		for (i = 0; i < 3; i++)
			offsets[i] = srq_take(test);
		for (i = 0; i < 3; i++)
			srq_put_good(this, i % 2 ? this->hqp : this->other, offsets[order[i]]);
		KUNIT_ASSERT_EQ(test, 3, srq_poll(this, 3, wc));
		for (i = 0; i < 3; i++) {
			KUNIT_EXPECT_EQ(test, 10 * round + order[i], wc[i].wr_id);
			KUNIT_EXPECT_EQ(test, IB_WC_SUCCESS, wc[i].status);
			KUNIT_EXPECT_PTR_EQ(test, i % 2 ? &this->hqp->ibqp : &this->other->ibqp,
					    wc[i].qp);
		}
	}
	KUNIT_EXPECT_EQ(test, start + 3 * round, le32_at(this->hsrq->dbr.record, 0));
}

/* One completes while two are under way: its slot alone is there for the next. */
static void srq_one_at_a_time(struct kunit *test)
{
	struct srq *this = test->priv;
	u32 held[2], offset;
	struct ib_wc wc;
	u32 i;

	srq_post(test, 3, 0);
	held[0] = srq_take(test);
	held[1] = srq_take(test);
	for (i = 3; i < 20; i++) {
		offset = srq_take(test);
		srq_put_good(this, this->hqp, offset);
		KUNIT_ASSERT_EQ(test, 1, srq_poll(this, 1, &wc));
		KUNIT_EXPECT_EQ(test, i - 1, wc.wr_id);
		srq_post(test, 1, i);
		/* What is under way is left alone. */
		KUNIT_EXPECT_NE(test, held[0], this->next);
		KUNIT_EXPECT_NE(test, held[1], this->next);
	}
	srq_put_good(this, this->hqp, held[1]);
	srq_put_good(this, this->hqp, held[0]);
	KUNIT_ASSERT_EQ(test, 1, srq_poll(this, 1, &wc));
	KUNIT_EXPECT_EQ(test, 1, wc.wr_id);
	KUNIT_ASSERT_EQ(test, 1, srq_poll(this, 1, &wc));
	KUNIT_EXPECT_EQ(test, 0, wc.wr_id);
}

/* ------------------------------------------------------------------ */
/* Completions                                                          */

enum srq_fate {
	SRQ_DROPPED,	/* nothing completes, and the WQE stays posted */
	SRQ_IN_ERROR,	/* its request does, with an error */
	SRQ_WELL,
};

/* Two WQEs are posted, in slots 0 and 1. */
static const struct srq_hostile {
	const char *name;
	struct srq_cqe cqe;	/* qpn and srqn are added to the QP's and the SRQ's */
	enum srq_fate fate;
	u64 wr_id;
} srq_hostiles[] = {
	{ "the first", { .opcode = 0x04, .byte_cnt = 1000 }, SRQ_WELL, 0 },
	{ "the second before the first", { .opcode = 0x04, .wqe = 64 }, SRQ_WELL, 1 },
	{ "an SRQ number with bits above the 24", { .opcode = 0x04, .srqn = 0xff000000 },
	  SRQ_WELL, 0 },
	{ "flushed", { .opcode = 0xfe, .syndrome = 5 }, SRQ_IN_ERROR, 0 },
	{ "longer than its room", { .opcode = 0x04, .byte_cnt = 1001 }, SRQ_IN_ERROR, 0 },
	{ "no receive's opcode", { .opcode = 0x11 }, SRQ_IN_ERROR, 0 },
	{ "a slot that is not posted", { .opcode = 0x04, .wqe = 128 }, SRQ_DROPPED },
	{ "the last slot, not posted", { .opcode = 0x04, .wqe = 192 }, SRQ_DROPPED },
	{ "beyond the queue", { .opcode = 0x04, .wqe = 256 }, SRQ_DROPPED },
	{ "far beyond the queue", { .opcode = 0x04, .wqe = 0xffffffc0 }, SRQ_DROPPED },
	{ "between two slots", { .opcode = 0x04, .wqe = 32 }, SRQ_DROPPED },
	{ "one byte off", { .opcode = 0x04, .wqe = 1 }, SRQ_DROPPED },
	{ "of another SRQ", { .opcode = 0x04, .srqn = 1 }, SRQ_DROPPED },
	{ "of an SRQ far beyond", { .opcode = 0x04, .srqn = 0xfffffe }, SRQ_DROPPED },
	{ "a QP that is not there", { .opcode = 0x04, .qpn = 1000 }, SRQ_DROPPED },
	{ "a send that was not posted", { .opcode = 0x0a, .is_send = 1 }, SRQ_DROPPED },
	{ "an error in a slot that is not posted", { .opcode = 0xfe, .wqe = 192, .syndrome = 1 },
	  SRQ_DROPPED },
};

static void srq_hostile_name(const struct srq_hostile *hostile, char *desc)
{
	strscpy(desc, hostile->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(srq_hostile, srq_hostiles, srq_hostile_name);

static void srq_hostile(struct kunit *test)
{
	const struct srq_hostile *param = test->param_value;
	struct srq *this = test->priv;
	struct srq_cqe cqe = param->cqe;
	struct ib_wc wc;
	int room;

	srq_post(test, 2, 0);
	cqe.qpn += this->hqp->hw.qpn;
	cqe.srqn += this->hsrq->hw.srqn;
	srq_put(this, &cqe);
	KUNIT_ASSERT_EQ(test, param->fate == SRQ_DROPPED ? 0 : 1, srq_poll(this, 1, &wc));
	KUNIT_EXPECT_EQ(test, 1, this->hcq->cons_index);
	if (param->fate != SRQ_DROPPED) {
		KUNIT_EXPECT_EQ(test, param->wr_id, wc.wr_id);
		KUNIT_EXPECT_EQ(test, param->fate == SRQ_WELL, wc.status == IB_WC_SUCCESS);
		KUNIT_EXPECT_FALSE(test, this->hsrq->slots[cqe.wqe / SRQ_STRIDE].posted);
	}

	/* Room for one, and for what came back. */
	room = param->fate == SRQ_DROPPED ? 1 : 2;
	srq_post(test, room, 10);
	KUNIT_EXPECT_EQ(test, this->hsrq->last_free, this->hsrq->first_free);
}

/* The same CQE again: its WQE was given back. */
static void srq_twice(struct kunit *test)
{
	struct srq *this = test->priv;
	struct ib_wc wc[2];

	srq_post(test, 2, 0);
	srq_put_good(this, this->hqp, 0);
	srq_put_good(this, this->other, 0);
	KUNIT_EXPECT_EQ(test, 1, srq_poll(this, 2, wc));
	srq_post(test, 2, 10);
	KUNIT_EXPECT_EQ(test, this->hsrq->last_free, this->hsrq->first_free);
}

/* Receives complete to the receive CQ alone. */
static void srq_wrong_cq(struct kunit *test)
{
	struct srq *this = test->priv;
	struct hghca_cq *recv_cq = fake_cq(test, this->fake, 7);
	const struct fake_qp_attr attr = { .type = IB_QPT_RC, .srq = this->hsrq };
	struct hghca_qp *hqp = fake_qp(test, this->pd, this->hcq, recv_cq, &attr);
	struct ib_wc wc;

	srq_post(test, 1, 0);
	srq_put_good(this, hqp, 0);
	KUNIT_EXPECT_EQ(test, 0, srq_poll(this, 1, &wc));
	KUNIT_EXPECT_TRUE(test, this->hsrq->slots[0].posted);
}

/* What a QP in RESET has completed and nobody polled goes back, too. */
static void srq_purge(struct kunit *test)
{
	struct srq *this = test->priv;
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };
	struct srq_cqe bad = { .qpn = this->hqp->hw.qpn, .opcode = 0x04, .wqe = 0xffffffc0 };
	struct ib_wc wc[4];

	srq_post(test, 3, 0);
	srq_put_good(this, this->hqp, 64);
	srq_put_good(this, this->other, 0);
	srq_put_good(this, this->hqp, 128);
	/* Those that cannot be, and one that says it again, are dropped as they are. */
	srq_put(this, &bad);
	srq_put_good(this, this->hqp, 128);
	KUNIT_ASSERT_EQ(test, 0, hghca_modify_qp(&this->hqp->ibqp, &attr, IB_QP_STATE, NULL));
	KUNIT_EXPECT_FALSE(test, this->hsrq->slots[1].posted);
	KUNIT_EXPECT_FALSE(test, this->hsrq->slots[2].posted);
	KUNIT_ASSERT_EQ(test, 1, srq_poll(this, 4, wc));
	KUNIT_EXPECT_EQ(test, 0, wc[0].wr_id);
	KUNIT_EXPECT_EQ(test, 5, this->hcq->cons_index);
	srq_post(test, 3, 10);
	KUNIT_EXPECT_EQ(test, this->hsrq->last_free, this->hsrq->first_free);
}

/* On a device that was given up sends are flushed; what is the SRQ's is no QP's. */
static void srq_given_up(struct kunit *test)
{
	struct srq *this = test->priv;
	struct ib_send_wr send = { .wr_id = 5, .opcode = IB_WR_SEND };
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct ib_srq_attr srq_attr = { .srq_limit = 1 };
	const struct ib_send_wr *bad_wr;
	struct ib_wc wc[4];

	srq_post(test, 3, 0);
	KUNIT_ASSERT_EQ(test, 0, hghca_post_send(&this->hqp->ibqp, &send, &bad_wr));
	hghca_dev_fail(this->fake->hdev, "a test");
	KUNIT_EXPECT_EQ(test, 1, srq_poll(this, 4, wc));
	KUNIT_EXPECT_EQ(test, 5, wc[0].wr_id);
	KUNIT_EXPECT_EQ(test, 0, srq_poll(this, 4, wc));
	KUNIT_EXPECT_EQ(test, -EIO, hghca_modify_srq(&this->hsrq->ibsrq, &srq_attr, IB_SRQ_LIMIT,
						     NULL));
	KUNIT_EXPECT_EQ(test, -EIO, hghca_query_srq(&this->hsrq->ibsrq, &srq_attr));

	/* Who drains the QP hears that it takes nothing more. */
	KUNIT_EXPECT_EQ(test, 0, hghca_modify_qp(&this->hqp->ibqp, &attr, IB_QP_STATE, NULL));
	KUNIT_EXPECT_EQ(test, 1, this->events);
	KUNIT_EXPECT_EQ(test, IB_EVENT_QP_LAST_WQE_REACHED, this->last.event);
	KUNIT_EXPECT_PTR_EQ(test, &this->hqp->ibqp, this->last.element.qp);
}

/* ------------------------------------------------------------------ */
/* Its QPs                                                              */

static void srq_of_qp(struct kunit *test)
{
	struct srq *this = test->priv;
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT, .port_num = 1 };
	struct ib_qp_init_attr init;
	struct ib_sge sge = {};
	struct ib_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };
	const struct ib_recv_wr *bad_wr = NULL;
	struct fake_command *cmd;

	KUNIT_EXPECT_EQ(test, 0, this->hqp->cap.max_recv_wr);
	KUNIT_EXPECT_EQ(test, 0, this->hqp->cap.max_recv_sge);
	KUNIT_EXPECT_EQ(test, 4, this->hqp->cap.max_send_wr);
	KUNIT_EXPECT_EQ(test, -EINVAL, hghca_post_recv(&this->hqp->ibqp, &wr, &bad_wr));
	KUNIT_EXPECT_PTR_EQ(test, &wr, bad_wr);

	this->hqp->state = IB_QPS_RESET;
	KUNIT_ASSERT_EQ(test, 0, hghca_query_qp(&this->hqp->ibqp, &attr, 0, &init));
	KUNIT_EXPECT_PTR_EQ(test, &this->hsrq->ibsrq, init.srq);
	KUNIT_EXPECT_EQ(test, 0, init.cap.max_recv_wr);
	KUNIT_EXPECT_EQ(test, 0, init.cap.max_recv_sge);

	attr = (struct ib_qp_attr) { .qp_state = IB_QPS_INIT, .port_num = 1 };
	KUNIT_ASSERT_EQ(test, 0, hghca_modify_qp(&this->hqp->ibqp, &attr, IB_QP_STATE |
						 IB_QP_PORT | IB_QP_PKEY_INDEX |
						 IB_QP_ACCESS_FLAGS, NULL));
	cmd = fake_nth(this->fake, fake_mark(this->fake) - 1);
	KUNIT_ASSERT_NOT_NULL(test, cmd);
	KUNIT_ASSERT_EQ(test, 0x19, cmd->op);
	/* no key and no length of a receive queue; the SRQ */
	KUNIT_EXPECT_EQ(test, 0, be64_at(cmd->mailbox, 0x90));
	KUNIT_EXPECT_EQ(test, this->hsrq->hw.srqn, be32_at(cmd->mailbox, 0xac));
}

static void srq_bad_qp(struct kunit *test)
{
	struct srq *this = test->priv;
	struct fake_qp_attr attr = { .type = IB_QPT_GSI, .srq = this->hsrq };
	struct hghca_ucontext *uctx = kunit_kzalloc(test, sizeof(*uctx), GFP_KERNEL);
	u32 mark = fake_mark(this->fake);

	KUNIT_ASSERT_NOT_NULL(test, uctx);
	KUNIT_EXPECT_NULL(test, fake_new_qp(this->pd, this->hcq, this->hcq, &attr));
	/* A user's SRQ for a kernel QP. */
	attr.type = IB_QPT_RC;
	this->hsrq->uctx = uctx;
	KUNIT_EXPECT_NULL(test, fake_new_qp(this->pd, this->hcq, this->hcq, &attr));
	this->hsrq->uctx = NULL;
	KUNIT_EXPECT_EQ(test, mark, fake_mark(this->fake));
}

/* ------------------------------------------------------------------ */
/* Limit and size                                                       */

static const struct srq_modify {
	const char *name;
	int mask;
	u32 max_wr;
	u32 limit;
	int err;
} srq_modifies[] = {
	{ "limit 1", IB_SRQ_LIMIT, 0, 1, 0 },
	{ "limit: all WQEs", IB_SRQ_LIMIT, 0, 3, 0 },
	{ "limit 0: not armed", IB_SRQ_LIMIT, 0, 0, 0 },
	{ "limit above all WQEs", IB_SRQ_LIMIT, 0, 4, -EINVAL },
	{ "limit that has 17 bits", IB_SRQ_LIMIT, 0, 0x10001, -EINVAL },
	{ "limit of all ones", IB_SRQ_LIMIT, 0, U32_MAX, -EINVAL },
	{ "size", IB_SRQ_MAX_WR, 7, 0, -EOPNOTSUPP },
	{ "size and limit", IB_SRQ_MAX_WR | IB_SRQ_LIMIT, 7, 1, -EOPNOTSUPP },
	{ "what is no attribute", 4, 0, 0, -EINVAL },
	{ "what is no attribute, and a limit", 4 | IB_SRQ_LIMIT, 0, 1, -EINVAL },
};

static void srq_modify_name(const struct srq_modify *modify, char *desc)
{
	strscpy(desc, modify->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(srq_modify, srq_modifies, srq_modify_name);

static void srq_modify(struct kunit *test)
{
	const struct srq_modify *param = test->param_value;
	struct srq *this = test->priv;
	struct ib_srq_attr attr = { .max_wr = param->max_wr, .srq_limit = param->limit };
	u32 mark = fake_mark(this->fake);
	struct fake_command *cmd;

	KUNIT_EXPECT_EQ(test, param->err,
			hghca_modify_srq(&this->hsrq->ibsrq, &attr, param->mask, NULL));
	KUNIT_ASSERT_EQ(test, mark + !param->err, fake_mark(this->fake));
	if (param->err)
		return;
	cmd = fake_nth(this->fake, mark);
	KUNIT_EXPECT_EQ(test, 0x40, cmd->op);
	KUNIT_EXPECT_EQ(test, this->hsrq->hw.srqn, cmd->in_modifier);
	KUNIT_EXPECT_EQ(test, param->limit, cmd->in_param);
}

/* Of a user: what cannot be takes no command. */
static const struct srq_resize {
	const char *name;
	int mask;
	u32 max_wr;
	u32 limit;
} srq_resizes[] = {
	{ "without its input", IB_SRQ_MAX_WR, 7, 0 },
	{ "more WQEs than there may be", IB_SRQ_MAX_WR, 16384, 0 },
	{ "all ones", IB_SRQ_MAX_WR, U32_MAX, 0 },
	{ "a limit above the new size", IB_SRQ_MAX_WR | IB_SRQ_LIMIT, 7, 8 },
	{ "all ones, and a limit", IB_SRQ_MAX_WR | IB_SRQ_LIMIT, U32_MAX, 0x10001 },
};

static void srq_resize_name(const struct srq_resize *resize, char *desc)
{
	strscpy(desc, resize->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(srq_resize, srq_resizes, srq_resize_name);

static void srq_bad_resize(struct kunit *test)
{
	const struct srq_resize *param = test->param_value;
	struct srq *this = test->priv;
	struct ib_srq_attr attr = { .max_wr = param->max_wr, .srq_limit = param->limit };
	struct ib_udata udata = {};
	u32 mark = fake_mark(this->fake);

	KUNIT_EXPECT_EQ(test, -EINVAL,
			hghca_modify_srq(&this->hsrq->ibsrq, &attr, param->mask, &udata));
	KUNIT_EXPECT_EQ(test, mark, fake_mark(this->fake));
	KUNIT_EXPECT_EQ(test, SRQ_SLOTS, this->hsrq->num_wqes);
}

static enum fake_end srq_answer_query(struct fake *fake, const struct fake_command *cmd,
				      struct fake_answer *answer)
{
	u8 *status = fake->priv;

	if (cmd->op == 0x37) {
		memset(fake->out, 0xff, 64);
		put_unaligned_be16(0xabcd, fake->out + 0x12);
		answer->status = *status;
	}
	return FAKE_ANSWERED;
}

static void srq_query(struct kunit *test)
{
	struct srq *this = test->priv;
	u32 mark = fake_mark(this->fake);
	struct ib_srq_attr attr = {};
	u8 status = 0;

	this->fake->priv = &status;
	this->fake->answer = srq_answer_query;
	KUNIT_ASSERT_EQ(test, 0, hghca_query_srq(&this->hsrq->ibsrq, &attr));
	KUNIT_EXPECT_EQ(test, this->hsrq->hw.srqn, fake_nth(this->fake, mark)->in_modifier);
	/* The device's word for the limit alone. */
	KUNIT_EXPECT_EQ(test, 3, attr.max_wr);
	KUNIT_EXPECT_EQ(test, 3, attr.max_sge);
	KUNIT_EXPECT_EQ(test, 0xabcd, attr.srq_limit);
	status = 0x09;
	KUNIT_EXPECT_EQ(test, -EBADF, hghca_query_srq(&this->hsrq->ibsrq, &attr));
	this->fake->answer = NULL;
}

/* ------------------------------------------------------------------ */
/* Events                                                               */

static const struct srq_event {
	const char *name;
	u8 type;
	enum ib_event_type event;
} srq_events[] = {
	{ "SRQ_CATAS_ERROR", 0x12, IB_EVENT_SRQ_ERR },
	{ "SRQ_LIMIT", 0x14, IB_EVENT_SRQ_LIMIT_REACHED },
};

static void srq_event_name(const struct srq_event *event, char *desc)
{
	strscpy(desc, event->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(srq_event, srq_events, srq_event_name);

static void srq_send_event(struct srq *this, u8 type, u32 number)
{
	const u8 eqe[32] = {
		[0x01] = type, [0x04] = number >> 24, number >> 16, number >> 8, number,
	};

	fake_event(this->fake, SRQ_ASYNC_EQ, eqe, true);
}

static void srq_event(struct kunit *test)
{
	const struct srq_event *param = test->param_value;
	struct srq *this = test->priv;

	srq_send_event(this, param->type, this->hsrq->hw.srqn);
	KUNIT_ASSERT_EQ(test, 1, this->events);
	KUNIT_EXPECT_EQ(test, param->event, this->last.event);
	KUNIT_EXPECT_PTR_EQ(test, &this->hsrq->ibsrq, this->last.element.srq);
	KUNIT_EXPECT_PTR_EQ(test, &this->fake->hdev->ibdev, this->last.device);
	/* Bits above the SRQN are not looked at; without a handler nobody hears. */
	srq_send_event(this, param->type, 0xff000000 | this->hsrq->hw.srqn);
	KUNIT_EXPECT_EQ(test, 2, this->events);
	this->hsrq->ibsrq.event_handler = NULL;
	srq_send_event(this, param->type, this->hsrq->hw.srqn);
	KUNIT_EXPECT_EQ(test, 2, this->events);
}

/* A type that no event of an SRQ has; one of an SRQ that has gone. */
static void srq_event_stray(struct kunit *test)
{
	struct srq *this = test->priv;
	struct hghca_srq *hsrq = fake_new_srq(this->pd, 1, 1);
	u32 srqn;

	hghca_srq_dispatch_event(this->fake->hdev, this->hsrq->hw.srqn, 0x42);
	KUNIT_ASSERT_NOT_NULL(test, hsrq);
	hsrq->ibsrq.event_handler = srq_on_event;
	hsrq->ibsrq.srq_context = this;
	srqn = hsrq->hw.srqn;
	fake_del_srq(hsrq);
	srq_send_event(this, 0x14, srqn);
	KUNIT_EXPECT_EQ(test, 0, this->events);
}

static struct kunit_case srq_cases[] = {
	KUNIT_CASE_PARAM(srq_context, srq_size_gen_params),
	KUNIT_CASE_PARAM(srq_bad_create, srq_bad_create_gen_params),
	KUNIT_CASE(srq_wqe_bytes),
	KUNIT_CASE_PARAM(srq_list, srq_break_gen_params),
	KUNIT_CASE(srq_chain),
	KUNIT_CASE(srq_one_at_a_time),
	KUNIT_CASE_PARAM(srq_hostile, srq_hostile_gen_params),
	KUNIT_CASE(srq_twice),
	KUNIT_CASE(srq_wrong_cq),
	KUNIT_CASE(srq_purge),
	KUNIT_CASE(srq_given_up),
	KUNIT_CASE(srq_of_qp),
	KUNIT_CASE(srq_bad_qp),
	KUNIT_CASE_PARAM(srq_modify, srq_modify_gen_params),
	KUNIT_CASE_PARAM(srq_bad_resize, srq_resize_gen_params),
	KUNIT_CASE(srq_query),
	KUNIT_CASE_PARAM(srq_event, srq_event_gen_params),
	KUNIT_CASE(srq_event_stray),
	{}
};

static struct kunit_suite srq_suite = {
	.name = "hghca_srq",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = srq_init,
	.test_cases = srq_cases,
};

/* ------------------------------------------------------------------ */
/* A device without                                                     */

static int srq_none_init(struct kunit *test)
{
	struct fake *fake = fake_create();

	if (!fake)
		return -ENOMEM;
	test->priv = fake;
	fake->limits.caps = cpu_to_be32(0x7f);
	return fake_open(fake) ?: fake_events(fake);
}

static void srq_none_exit(struct kunit *test)
{
	if (test->priv)
		fake_destroy(test->priv);
}

static void srq_none(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct hghca_srq *hsrq = kunit_kzalloc(test, sizeof(*hsrq), GFP_KERNEL);
	struct ib_srq_init_attr init = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ib_device_attr *attr = kunit_kzalloc(test, sizeof(*attr), GFP_KERNEL);
	struct ib_udata udata = {};
	struct fake_command *cmd;
	u64 mapped = 0;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, hsrq);
	KUNIT_ASSERT_NOT_NULL(test, attr);
	hsrq->ibsrq.device = &fake->hdev->ibdev;
	i = fake_mark(fake);
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, hghca_create_srq(&hsrq->ibsrq, &init, NULL));
	KUNIT_EXPECT_EQ(test, i, fake_mark(fake));

	KUNIT_ASSERT_EQ(test, 0, hghca_query_device(&fake->hdev->ibdev, attr, &udata));
	KUNIT_EXPECT_EQ(test, 0, attr->max_srq);
	KUNIT_EXPECT_EQ(test, 0, attr->max_srq_wr);
	KUNIT_EXPECT_EQ(test, 0, attr->max_srq_sge);
	KUNIT_EXPECT_EQ(test, 0, attr->device_cap_flags & IB_DEVICE_SRQ_RESIZE);

	/* Its events are not asked for. */
	for (i = 0; i != fake_mark(fake); i++) {
		cmd = fake_nth(fake, i);
		if (cmd && cmd->op == 0x12)
			mapped |= cmd->in_param;
	}
	KUNIT_EXPECT_EQ(test, 0x3873c, mapped);
	KUNIT_EXPECT_EQ(test, 0, fake->hdev->icm[HGHCA_ICM_SRQC].num_entries);
}

/* Events of what it does not have are for nobody. */
static void srq_none_events(struct kunit *test)
{
	struct fake *fake = test->priv;
	const u8 eqe[32] = { [0x01] = 0x14, [0x07] = 1 };

	fake_event(fake, SRQ_ASYNC_EQ, eqe, true);
	KUNIT_EXPECT_EQ(test, 1, fake->hdev->async_eq.cons_index);
	KUNIT_EXPECT_FALSE(test, hghca_dev_has_failed(fake->hdev));
}

static struct kunit_case srq_none_cases[] = {
	KUNIT_CASE(srq_none),
	KUNIT_CASE(srq_none_events),
	{}
};

static struct kunit_suite srq_none_suite = {
	.name = "hghca_srq_none",
	.init = srq_none_init,
	.exit = srq_none_exit,
	.test_cases = srq_none_cases,
};

kunit_test_suites(&srq_suite, &srq_none_suite);
