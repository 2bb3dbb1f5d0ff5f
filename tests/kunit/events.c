// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of event queues: their set-up, every event of section 10 of the
 * interface document, and those that no device should send.
 */
#include <linux/delay.h>
#include <linux/slab.h>

#include "fake.h"

#define EVENTS_EQ_ENTRIES	4096
#define EVENTS_COMP_EQ		2	/* as the fake device numbers them */
#define EVENTS_ASYNC_EQ		1
#define EVENTS_SET_UP_MAX	200	/* commands */

struct events {
	struct fake *fake;
	struct hghca_cq *hcq;
	struct hghca_qp *hqp;
	struct ib_event last;
	int async_events;
	int completions;
};

static void events_on_event(struct ib_event *event, void *context)
{
	struct events *this = context;

	this->last = *event;
	this->async_events++;
}

static void events_on_completion(struct ib_cq *ibcq, void *context)
{
	struct events *this = context;

	this->completions++;
}

static int events_init(struct kunit *test)
{
	static const struct fake_qp_attr attr = { .type = IB_QPT_RC };
	struct events *this = kunit_kzalloc(test, sizeof(*this), GFP_KERNEL);
	int err;

	if (!this)
		return -ENOMEM;
	err = fake_test_init_events(test);
	if (err)
		return err;
	this->fake = test->priv;
	this->hcq = fake_cq(test, this->fake, 7);
	this->hcq->ibcq.comp_handler = events_on_completion;
	this->hcq->ibcq.event_handler = events_on_event;
	this->hcq->ibcq.cq_context = this;
	this->hqp = fake_qp(test, fake_pd(test, this->fake), this->hcq, this->hcq, &attr);
	this->hqp->ibqp.event_handler = events_on_event;
	this->hqp->ibqp.qp_context = this;
	test->priv = this;
	return 0;
}

/* An EQE: type at 01h, subtype at 03h, number at 04h, the word at 0Ch. */
static void events_send(struct events *this, unsigned int eq, u8 type, u8 subtype, u32 number,
			u32 word)
{
	const u8 eqe[32] = {
		[0x01] = type, [0x03] = subtype,
		[0x04] = number >> 24, number >> 16, number >> 8, number,
		[0x0c] = word >> 24, word >> 16, word >> 8, word,
	};

	fake_event(this->fake, eq, eqe, true);
}

/* ------------------------------------------------------------------ */
/* Events of QPs and CQs                                                */

static const struct events_qp {
	const char *name;
	u8 type;
	enum ib_event_type event;
	bool in_error;
} events_qps[] = {
	{ "COMM_EST", 0x02, IB_EVENT_COMM_EST, false },
	{ "SQ_DRAINED", 0x03, IB_EVENT_SQ_DRAINED, false },
	{ "WQ_CATAS_ERROR", 0x05, IB_EVENT_QP_FATAL, true },
	{ "WQ_INVAL_REQ_ERROR", 0x10, IB_EVENT_QP_REQ_ERR, true },
	{ "WQ_ACCESS_ERROR", 0x11, IB_EVENT_QP_ACCESS_ERR, true },
	{ "SRQ_QP_LAST_WQE", 0x13, IB_EVENT_QP_LAST_WQE_REACHED, true },
};

static void events_qp_name(const struct events_qp *qp, char *desc)
{
	strscpy(desc, qp->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(events_qp, events_qps, events_qp_name);

static void events_of_qp(struct kunit *test)
{
	const struct events_qp *param = test->param_value;
	struct events *this = test->priv;

	fake_doorbell(this->fake, 0);
	events_send(this, EVENTS_ASYNC_EQ, param->type, 0, this->hqp->hw.qpn, 0);
	KUNIT_ASSERT_EQ(test, 1, this->async_events);
	KUNIT_EXPECT_EQ(test, param->event, this->last.event);
	KUNIT_EXPECT_PTR_EQ(test, &this->hqp->ibqp, this->last.element.qp);
	KUNIT_EXPECT_PTR_EQ(test, &this->fake->hdev->ibdev, this->last.device);
	/* What is posted to a QP that went to ERR has to be flushed. */
	KUNIT_EXPECT_EQ(test, param->in_error ? (u64)this->hqp->hw.qpn << 40 : 0,
			fake_doorbell(this->fake, 0));
}

/* Bits above the QPN are not looked at. */
static void events_of_qp_reserved_bits(struct kunit *test)
{
	struct events *this = test->priv;

	events_send(this, EVENTS_ASYNC_EQ, 0x02, 0xff, 0xff000000 | this->hqp->hw.qpn, ~0);
	KUNIT_EXPECT_EQ(test, 1, this->async_events);
}

static void events_without_handler(struct kunit *test)
{
	struct events *this = test->priv;

	this->hqp->ibqp.event_handler = NULL;
	this->hcq->ibcq.event_handler = NULL;
	this->hcq->ibcq.comp_handler = NULL;
	events_send(this, EVENTS_ASYNC_EQ, 0x02, 0, this->hqp->hw.qpn, 0);
	events_send(this, EVENTS_ASYNC_EQ, 0x04, 0, this->hcq->hw.cqn, 1);
	events_send(this, EVENTS_COMP_EQ, 0x00, 0, this->hcq->hw.cqn, 0);
	KUNIT_EXPECT_EQ(test, 0, this->async_events + this->completions);
}

static const struct events_cq {
	const char *name;
	u32 syndrome;
} events_cqs[] = {
	{ "overrun", 1 },
	{ "access", 2 },
	{ "an undefined syndrome", 0xff },
};

static void events_cq_name(const struct events_cq *cq, char *desc)
{
	strscpy(desc, cq->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(events_cq, events_cqs, events_cq_name);

static void events_cq_error(struct kunit *test)
{
	const struct events_cq *param = test->param_value;
	struct events *this = test->priv;

	events_send(this, EVENTS_ASYNC_EQ, 0x04, 0, this->hcq->hw.cqn, param->syndrome);
	KUNIT_ASSERT_EQ(test, 1, this->async_events);
	KUNIT_EXPECT_EQ(test, IB_EVENT_CQ_ERR, this->last.event);
	KUNIT_EXPECT_PTR_EQ(test, &this->hcq->ibcq, this->last.element.cq);
}

static void events_completion(struct kunit *test)
{
	struct events *this = test->priv;

	events_send(this, EVENTS_COMP_EQ, 0x00, 0, this->hcq->hw.cqn, 0);
	KUNIT_EXPECT_EQ(test, 1, this->completions);
	events_send(this, EVENTS_COMP_EQ, 0x00, 0, 0xff000000 | this->hcq->hw.cqn, 0);
	KUNIT_EXPECT_EQ(test, 2, this->completions);
	KUNIT_EXPECT_EQ(test, 0, this->async_events);
}

/* ------------------------------------------------------------------ */
/* Events for nobody                                                    */

static const struct events_stray {
	const char *name;
	unsigned int eq;
	u8 type;
	u32 number;
} events_strays[] = {
	{ "a completion of a CQ that is not there", EVENTS_COMP_EQ, 0x00, 77 },
	{ "a completion of CQ 0", EVENTS_COMP_EQ, 0x00, 0 },
	{ "a completion of the last CQ", EVENTS_COMP_EQ, 0x00, 131071 },
	{ "a completion of a CQ beyond the table", EVENTS_COMP_EQ, 0x00, 131072 },
	{ "a completion of CQ ffffffh", EVENTS_COMP_EQ, 0x00, 0xffffff },
	{ "CQ_ERROR of a CQ that is not there", EVENTS_ASYNC_EQ, 0x04, 77 },
	{ "CQ_ERROR of a CQ beyond the table", EVENTS_ASYNC_EQ, 0x04, 0x800000 },
	{ "COMM_EST of a QP that is not there", EVENTS_ASYNC_EQ, 0x02, 77 },
	{ "COMM_EST of QP 0", EVENTS_ASYNC_EQ, 0x02, 0 },
	{ "COMM_EST of the last QP", EVENTS_ASYNC_EQ, 0x02, 65535 },
	{ "COMM_EST of a QP beyond the table", EVENTS_ASYNC_EQ, 0x02, 65536 },
	{ "WQ_ACCESS_ERROR of QP ffffffh", EVENTS_ASYNC_EQ, 0x11, 0xffffff },
	{ "SRQ_CATAS_ERROR of an SRQ that is not there", EVENTS_ASYNC_EQ, 0x12, 77 },
	{ "SRQ_LIMIT of SRQ 0", EVENTS_ASYNC_EQ, 0x14, 0 },
	{ "SRQ_LIMIT of the last SRQ", EVENTS_ASYNC_EQ, 0x14, 65535 },
	{ "SRQ_LIMIT of an SRQ beyond the table", EVENTS_ASYNC_EQ, 0x14, 65536 },
	{ "SRQ_QP_LAST_WQE of a QP beyond the table", EVENTS_ASYNC_EQ, 0x13, 65536 },
	{ "EQ_OVERFLOW", EVENTS_ASYNC_EQ, 0x0f, 2 },
	{ "EQ_OVERFLOW of an EQ beyond the table", EVENTS_ASYNC_EQ, 0x0f, 0xffffffff },
	{ "an undefined type: 01h", EVENTS_ASYNC_EQ, 0x01, 8 },
	{ "an undefined type: 15h", EVENTS_ASYNC_EQ, 0x15, 8 },
	{ "an undefined type: ffh", EVENTS_COMP_EQ, 0xff, 8 },
};

static void events_stray_name(const struct events_stray *stray, char *desc)
{
	strscpy(desc, stray->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(events_stray, events_strays, events_stray_name);

/* Nobody hears of it, and the EQ goes on. */
static void events_stray(struct kunit *test)
{
	const struct events_stray *param = test->param_value;
	struct events *this = test->priv;
	u32 before = fake_eq(this->fake, param->eq)->cons_index;

	events_send(this, param->eq, param->type, 0, param->number, 0);
	KUNIT_EXPECT_EQ(test, before + 1, fake_eq(this->fake, param->eq)->cons_index);
	KUNIT_EXPECT_EQ(test, 0, this->async_events + this->completions);
	KUNIT_EXPECT_FALSE(test, hghca_dev_has_failed(this->fake->hdev));

	events_send(this, EVENTS_COMP_EQ, 0x00, 0, this->hcq->hw.cqn, 0);
	events_send(this, EVENTS_ASYNC_EQ, 0x02, 0, this->hqp->hw.qpn, 0);
	KUNIT_EXPECT_EQ(test, 1, this->completions);
	KUNIT_EXPECT_EQ(test, 1, this->async_events);
}

/* An object that has gone hears nothing. */
static void events_after_the_end(struct kunit *test)
{
	struct events *this = test->priv;
	struct hghca_cq *hcq = fake_new_cq(this->fake, 7);
	u32 cqn;

	KUNIT_ASSERT_NOT_NULL(test, hcq);
	hcq->ibcq.comp_handler = events_on_completion;
	hcq->ibcq.cq_context = this;
	cqn = hcq->hw.cqn;
	events_send(this, EVENTS_COMP_EQ, 0x00, 0, cqn, 0);
	KUNIT_EXPECT_EQ(test, 1, this->completions);
	fake_del_cq(hcq);
	events_send(this, EVENTS_COMP_EQ, 0x00, 0, cqn, 0);
	KUNIT_EXPECT_EQ(test, 1, this->completions);
}

/* An event of a QP's that a driver does not know, on a way of its own. */
static void events_unknown_of_qp(struct kunit *test)
{
	struct events *this = test->priv;

	hghca_qp_dispatch_event(this->fake->hdev, this->hqp->hw.qpn, 0x42);
	KUNIT_EXPECT_EQ(test, 0, this->async_events);
}

static void events_port_change(struct kunit *test)
{
	struct events *this = test->priv;

	/* Without a net device there is nobody to tell. */
	events_send(this, EVENTS_ASYNC_EQ, 0x09, 4, 0, 0x10000000);
	flush_work(&this->fake->hdev->link_work);
	KUNIT_EXPECT_EQ(test, 1, this->fake->hdev->async_eq.cons_index);
	KUNIT_EXPECT_EQ(test, 0, this->async_events);
}

static void events_local_catas_error(struct kunit *test)
{
	struct events *this = test->priv;

	events_send(this, EVENTS_ASYNC_EQ, 0x08, 0, 0, 0);
	KUNIT_EXPECT_TRUE(test, hghca_dev_has_failed(this->fake->hdev));
	KUNIT_EXPECT_EQ(test, -EIO, hghca_cmd_nop(this->fake->hdev));
	flush_work(&this->fake->hdev->fail_work);
	flush_work(&this->fake->hdev->flush_work);
	/* Whoever waits for completions is woken to find them flushed. */
	KUNIT_EXPECT_EQ(test, 1, this->completions);
}

/* Document 10.1: the vector is raised, and the event could not be written. */
static const struct events_failure_seen {
	const char *name;
	unsigned int eq;
	u8 ones;	/* bytes of the HCR */
	bool event;
	bool given_up;
} events_failures_seen[] = {
	{ "its EQ, no event, all ones", EVENTS_ASYNC_EQ, 0xff, false, true },
	{ "the EQ that shares the vector", 0, 0xff, false, true },
	{ "an EQ of completions", EVENTS_COMP_EQ, 0xff, false, false },
	{ "all is well", EVENTS_ASYNC_EQ, 0x00, false, false },
	{ "an event is there", EVENTS_ASYNC_EQ, 0xff, true, false },
};

static void events_failure_seen_name(const struct events_failure_seen *seen, char *desc)
{
	strscpy(desc, seen->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(events_failure_seen, events_failures_seen, events_failure_seen_name);

static void events_failure_seen(struct kunit *test)
{
	const struct events_failure_seen *param = test->param_value;
	struct events *this = test->priv;
	struct hghca_dev *hdev = this->fake->hdev;

	memset(this->fake->regs + 0x80000, param->ones, 0x1c);
	if (param->event)
		events_send(this, param->eq, 0x02, 0, this->hqp->hw.qpn, 0);
	else
		fake_interrupt(this->fake, param->eq);
	KUNIT_EXPECT_EQ(test, param->given_up, hghca_dev_has_failed(hdev));
	KUNIT_EXPECT_EQ(test, !param->given_up, this->fake->dma);
	KUNIT_EXPECT_EQ(test, param->event, this->async_events);
	memset(this->fake->regs + 0x80000, 0x00, 0x1c);
	if (!param->given_up)
		return;
	KUNIT_EXPECT_EQ(test, -EIO, hghca_cmd_nop(hdev));
	flush_work(&hdev->fail_work);
	flush_work(&hdev->flush_work);
	KUNIT_EXPECT_EQ(test, 1, this->completions);
}

/* ------------------------------------------------------------------ */
/* Owners, indices, doorbells                                           */

static void events_interrupt_without_event(struct kunit *test)
{
	struct events *this = test->priv;
	struct hghca_eq *eq = fake_eq(this->fake, EVENTS_COMP_EQ);

	fake_doorbell(this->fake, 0x20);
	fake_interrupt(this->fake, EVENTS_COMP_EQ);
	KUNIT_EXPECT_EQ(test, 0, eq->cons_index);
	KUNIT_EXPECT_EQ(test, 0, this->completions);
	/* high: command 31:24 (1 arm), EQN 7:0; low: consumer index */
	KUNIT_EXPECT_EQ(test, (u64)(0x01000000 | eq->eqn) << 32, fake_doorbell(this->fake, 0x20));
}

static const struct events_owner {
	const char *name;
	u8 owner;
	bool ours;
} events_owners[] = {
	{ "00h: software's", 0x00, true },
	{ "80h: the device's", 0x80, false },
	{ "ffh", 0xff, false },
};

static void events_owner_name(const struct events_owner *owner, char *desc)
{
	strscpy(desc, owner->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(events_owner, events_owners, events_owner_name);

static void events_owner(struct kunit *test)
{
	const struct events_owner *param = test->param_value;
	struct events *this = test->priv;
	struct hghca_eq *eq = fake_eq(this->fake, EVENTS_COMP_EQ);
	u8 *slot = hghca_queue_at(&eq->queue, 0);

	slot[0x01] = 0x00;
	slot[0x07] = this->hcq->hw.cqn;
	slot[0x1f] = param->owner;
	fake_interrupt(this->fake, EVENTS_COMP_EQ);
	KUNIT_EXPECT_EQ(test, param->ours, this->completions);
	KUNIT_EXPECT_EQ(test, param->ours, eq->cons_index);
	if (param->ours)
		KUNIT_EXPECT_EQ(test, 0x80, slot[0x1f]);
}

/* An event behind one that is not there yet waits for it. */
static void events_gap(struct kunit *test)
{
	struct events *this = test->priv;

	this->fake->eq_index[EVENTS_COMP_EQ] = 1;
	events_send(this, EVENTS_COMP_EQ, 0x00, 0, this->hcq->hw.cqn, 0);
	KUNIT_EXPECT_EQ(test, 0, this->completions);
	this->fake->eq_index[EVENTS_COMP_EQ] = 0;
	events_send(this, EVENTS_COMP_EQ, 0x00, 0, this->hcq->hw.cqn, 0);
	KUNIT_EXPECT_EQ(test, 2, this->completions);
}

/* Once around the EQ and a little more; the consumer index runs on. */
static void events_wrap(struct kunit *test)
{
	struct events *this = test->priv;
	struct hghca_eq *eq = fake_eq(this->fake, EVENTS_COMP_EQ);
	u32 i;

	for (i = 0; i < EVENTS_EQ_ENTRIES + 10; i++)
		events_send(this, EVENTS_COMP_EQ, 0x00, 0, this->hcq->hw.cqn, 0);
	KUNIT_EXPECT_EQ(test, EVENTS_EQ_ENTRIES + 10, this->completions);
	KUNIT_EXPECT_EQ(test, EVENTS_EQ_ENTRIES + 10, eq->cons_index);
	KUNIT_EXPECT_EQ(test, (u64)(0x01000000 | eq->eqn) << 32 | (EVENTS_EQ_ENTRIES + 10),
			fake_doorbell(this->fake, 0x20));
}

/* A whole EQ in one interrupt: it is all taken, and no more than that. */
static void events_full(struct kunit *test)
{
	struct events *this = test->priv;
	struct hghca_eq *eq = fake_eq(this->fake, EVENTS_COMP_EQ);
	const u8 eqe[32] = { [0x07] = this->hcq->hw.cqn };
	u32 i;

	for (i = 0; i < EVENTS_EQ_ENTRIES; i++)
		fake_event(this->fake, EVENTS_COMP_EQ, eqe, false);
	KUNIT_EXPECT_EQ(test, 0, this->completions);
	fake_interrupt(this->fake, EVENTS_COMP_EQ);
	KUNIT_EXPECT_EQ(test, EVENTS_EQ_ENTRIES, this->completions);
	KUNIT_EXPECT_EQ(test, EVENTS_EQ_ENTRIES, eq->cons_index);
}

/* ------------------------------------------------------------------ */
/* Set-up                                                               */

static const struct events_set_up {
	const char *name;
	unsigned int eq;
	u8 log_size;
	u8 vector;
	u64 mask;	/* of MAP_EQ, 0: none */
} events_set_ups[] = {
	{ "commands", 0, 8, 0, 0x400 },
	/* 02h to 05h, 08h, 09h, 0fh to 14h */
	{ "asynchronous events", 1, 12, 0, 0x1f833c },
	{ "completions, the first", 2, 12, 1, 0 },
	{ "completions, the second", 3, 12, 2, 0 },
};

static void events_set_up_name(const struct events_set_up *param, char *desc)
{
	strscpy(desc, param->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(events_set_up, events_set_ups, events_set_up_name);

static void events_set_up(struct kunit *test)
{
	const struct events_set_up *param = test->param_value;
	struct events *this = test->priv;
	struct hghca_eq *eq = fake_eq(this->fake, param->eq);
	struct fake_command *cmd;
	u64 mapped = 0;
	bool found = false;
	u32 i;

	KUNIT_EXPECT_EQ(test, 1 + param->eq, eq->eqn);
	for (i = 0; i != fake_mark(this->fake); i++) {
		cmd = fake_nth(this->fake, i);
		if (!cmd || cmd->in_modifier != eq->eqn)
			continue;
		if (cmd->op == 0x12)
			mapped = cmd->in_param;
		if (cmd->op != 0x13)
			continue;
		found = true;
		/* owner 24, TR 18, armed 8 */
		KUNIT_EXPECT_EQ(test, 0x01040100, be32_at(cmd->mailbox, 0x00));
		KUNIT_EXPECT_EQ(test, param->log_size, cmd->mailbox[0x0c]);
		KUNIT_EXPECT_EQ(test, param->vector, cmd->mailbox[0x17]);
		KUNIT_EXPECT_EQ(test, this->fake->hdev->pdn, be32_at(cmd->mailbox, 0x18));
		KUNIT_EXPECT_EQ(test, eq->queue.mr.key, be32_at(cmd->mailbox, 0x1c));
	}
	KUNIT_EXPECT_TRUE(test, found);
	KUNIT_EXPECT_EQ(test, param->mask, mapped);
}

static struct kunit_case events_cases[] = {
	KUNIT_CASE_PARAM(events_set_up, events_set_up_gen_params),
	KUNIT_CASE_PARAM(events_of_qp, events_qp_gen_params),
	KUNIT_CASE(events_of_qp_reserved_bits),
	KUNIT_CASE(events_without_handler),
	KUNIT_CASE_PARAM(events_cq_error, events_cq_gen_params),
	KUNIT_CASE(events_completion),
	KUNIT_CASE_PARAM(events_stray, events_stray_gen_params),
	KUNIT_CASE(events_after_the_end),
	KUNIT_CASE(events_unknown_of_qp),
	KUNIT_CASE(events_port_change),
	KUNIT_CASE(events_local_catas_error),
	KUNIT_CASE_PARAM(events_failure_seen, events_failure_seen_gen_params),
	KUNIT_CASE(events_interrupt_without_event),
	KUNIT_CASE_PARAM(events_owner, events_owner_gen_params),
	KUNIT_CASE(events_gap),
	KUNIT_CASE(events_wrap),
	KUNIT_CASE(events_full),
	{}
};

static struct kunit_suite events_suite = {
	.name = "hghca_events",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = events_init,
	.test_cases = events_cases,
};

/* ------------------------------------------------------------------ */
/* Set-up that fails                                                    */

struct events_failure {
	u32 number;	/* of the command, from 0 */
	u32 seen;
};

static enum fake_end events_fail_one(struct fake *fake, const struct fake_command *cmd,
				     struct fake_answer *answer)
{
	struct events_failure *failure = fake->priv;

	if (failure->seen++ == failure->number)
		answer->status = 0x08;
	return FAKE_ANSWERED;
}

/* Each command of the set-up is refused once: all is undone, and the next try succeeds. */
static void events_set_up_refused(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct hghca_dev *hdev = fake->hdev;
	struct events_failure failure = {};
	int kind, err;

	fake->priv = &failure;
	for (failure.number = 0; failure.number < EVENTS_SET_UP_MAX; failure.number++) {
		failure.seen = 0;
		fake->answer = events_fail_one;
		err = hghca_eqs_init(hdev);
		fake->answer = NULL;
		if (!err)
			break;
		KUNIT_EXPECT_EQ(test, -ENOMEM, err);
		fake_trim(hdev);
		for (kind = 0; kind < HGHCA_ICM_KINDS; kind++)
			KUNIT_EXPECT_EQ(test, 0, fake_icm_blocks(hdev, kind));
		KUNIT_EXPECT_FALSE(test, hdev->cmd.use_events);
	}
	/* None was left that could have been refused. */
	KUNIT_ASSERT_EQ(test, 0, err);
	KUNIT_EXPECT_EQ(test, failure.number, failure.seen);
	KUNIT_EXPECT_GT(test, failure.number, 10);
	hghca_eqs_cleanup(hdev);
}

/* ------------------------------------------------------------------ */
/* Events until the last EQ is gone                                     */

#define EVENTS_WORK_MS		300
#define EVENTS_ODP_CAP		0x20000	/* with it there is an EQ of page faults */

struct events_end {
	unsigned int eq;	/* our number */
	u32 eqn;
	bool came;
};

static const u8 events_port_change_eqe[32] = { [0x01] = 0x09, [0x03] = 4, [0x08] = 0x10 };

/* PORT_CHANGE as the device lets go of an EQ. */
static enum fake_end events_change_at_end(struct fake *fake, const struct fake_command *cmd,
					  struct fake_answer *answer)
{
	struct events_end *end = fake->priv;

	if (cmd->op == 0x14 && cmd->in_modifier == end->eqn) {
		fake_event(fake, end->eq, events_port_change_eqe, true);
		end->came = true;
	}
	return FAKE_ANSWERED;
}

/* PORT_CHANGE on an EQ as the device refuses another, the last. */
static enum fake_end events_change_at_refusal(struct fake *fake, const struct fake_command *cmd,
					      struct fake_answer *answer)
{
	struct events_end *end = fake->priv;

	if (cmd->op == 0x13 && cmd->in_modifier == end->eqn) {
		fake_event(fake, end->eq, events_port_change_eqe, true);
		end->came = true;
		answer->status = 0x08;
	}
	return FAKE_ANSWERED;
}

/* Lasts until all is gone, were it not waited for. */
static void events_slow_work(struct work_struct *work)
{
	msleep(EVENTS_WORK_MS);
}

static const struct events_last {
	const char *name;
	unsigned int eq;
} events_lasts[] = {
	{ "the EQ of commands", 0 },
	{ "the EQ of asynchronous events", 1 },
	{ "an EQ of completions", 2 },
	{ "the EQ of page faults", FAKE_FAULT_EQ },
};

static void events_last_name(const struct events_last *last, char *desc)
{
	strscpy(desc, last->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(events_last, events_lasts, events_last_name);

/* The memory of the device is freed after the EQs are: nothing is queued or runs then. */
static void events_work_ends_with_eqs(struct kunit *test)
{
	const struct events_last *param = test->param_value;
	struct fake *fake = test->priv;
	struct hghca_dev *hdev = fake->hdev;
	struct events_end end = { .eq = param->eq };

	hdev->limits.caps |= EVENTS_ODP_CAP;
	INIT_WORK(&hdev->link_work, events_slow_work);
	KUNIT_ASSERT_EQ(test, 0, hghca_eqs_init(hdev));
	end.eqn = fake_eq(fake, end.eq)->eqn;
	fake->priv = &end;
	fake->answer = events_change_at_end;
	hghca_eqs_cleanup(hdev);
	KUNIT_EXPECT_TRUE(test, end.came);
	KUNIT_EXPECT_EQ(test, 0, work_busy(&hdev->link_work));
	fake->answer = NULL;
	cancel_work_sync(&hdev->link_work);
}

static const struct events_last events_before_refusals[] = {
	{ "the EQ of commands", 0 },
	{ "the EQ of asynchronous events", 1 },
	{ "an EQ of completions", 2 },
};

KUNIT_ARRAY_PARAM(events_before_refusal, events_before_refusals, events_last_name);

/* Nor after a start that failed when an event had come: the EQ of page faults is refused. */
static void events_work_ends_with_start(struct kunit *test)
{
	const struct events_last *param = test->param_value;
	struct fake *fake = test->priv;
	struct hghca_dev *hdev = fake->hdev;
	struct events_end end = { .eq = param->eq, .eqn = FAKE_FAULT_EQ + 1 };

	hdev->limits.caps |= EVENTS_ODP_CAP;
	INIT_WORK(&hdev->link_work, events_slow_work);
	fake->priv = &end;
	fake->answer = events_change_at_refusal;
	KUNIT_EXPECT_EQ(test, -ENOMEM, hghca_eqs_init(hdev));
	KUNIT_EXPECT_TRUE(test, end.came);
	KUNIT_EXPECT_EQ(test, 0, work_busy(&hdev->link_work));
	fake->answer = NULL;
	cancel_work_sync(&hdev->link_work);
}

static struct kunit_case events_failing_cases[] = {
	KUNIT_CASE(events_set_up_refused),
	KUNIT_CASE_PARAM(events_work_ends_with_eqs, events_last_gen_params),
	KUNIT_CASE_PARAM(events_work_ends_with_start, events_before_refusal_gen_params),
	{}
};

static struct kunit_suite events_failing_suite = {
	.name = "hghca_event_set_up",
	.init = fake_test_init,
	.test_cases = events_failing_cases,
};

kunit_test_suites(&events_suite, &events_failing_suite);
