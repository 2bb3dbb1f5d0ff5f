// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of receive work queues and of QPs that spread frames over them
 * (interface document, 4.25): what the device is told, byte by byte, the states of
 * a queue, and what is refused.
 */
#include <linux/bits.h>
#include <linux/mman.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/unaligned.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_counter.h>

#include "fake.h"

#define RSS_CAPS	0x82000		/* RAW_PACKET, RSS */
#define RSS_QUEUES	4
#define RSS_UAR		5
/* In the memory of the user: input, output, record; queues from the second page on. */
#define RSS_IN		0
#define RSS_OUT		512
#define RSS_RECORD	1024
#define RSS_PAGES	15		/* of queues */
#define RSS_MEMORY	((1 + RSS_PAGES) * PAGE_SIZE)
#define RSS_KEY		40

struct rss {
	struct fake *fake;
	struct hghca_pd *pd;
	struct hghca_cq *hcq;
	struct hghca_ucontext *uctx;
	struct uverbs_attr_bundle *bundle;
	unsigned long memory;
	u32 pages;			/* of its queues that were given out, each in turn */
	struct ib_wq_init_attr init;	/* as the last queue has it */
	struct ib_wq *wqs[RSS_QUEUES];
	struct hghca_rwq_table *table;
	/* What the device answers to an opcode, and how often from now on. */
	u16 refused;
	u8 status;
	u32 times;
	u32 state;			/* which it says that a QP is in */
	struct ib_event last;
	int events;
};

static enum fake_end rss_answer(struct fake *fake, const struct fake_command *cmd,
				struct fake_answer *answer)
{
	struct rss *this = fake->priv;

	if (cmd->op == 0x022)
		put_unaligned_be32(this->state << 28, fake->out + 0x08);
	if (cmd->op == this->refused && this->times) {
		answer->status = this->status;
		this->times--;
	}
	return FAKE_ANSWERED;
}

static void rss_refuse(struct rss *this, u16 op, u8 status, u32 times)
{
	this->refused = op;
	this->status = status;
	this->times = times;
}

static void rss_on_event(struct ib_event *event, void *context)
{
	struct rss *this = context;

	this->last = *event;
	this->events++;
}

/* Two groups of at most 8 entries. */
static void rss_set_up(struct fake *fake)
{
	u8 *limits = (u8 *)&fake->limits;

	fake->limits.caps |= cpu_to_be32(RSS_CAPS);
	limits[0x5c] = 4;
	limits[0x5d] = 64;
	limits[0x5e] = 56;
	limits[0x68] = 1;
	limits[0x69] = 3;
}

static int rss_init(struct kunit *test)
{
	struct rss *this = kunit_kzalloc(test, sizeof(*this), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, this);
	this->bundle = kunit_kzalloc(test, sizeof(*this->bundle), GFP_KERNEL);
	this->uctx = kunit_kzalloc(test, sizeof(*this->uctx), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, this->bundle);
	KUNIT_ASSERT_NOT_NULL(test, this->uctx);

	KUNIT_ASSERT_EQ(test, 0, fake_test_open(test, rss_set_up, true));
	this->fake = test->priv;
	this->fake->priv = this;
	this->fake->answer = rss_answer;
	this->pd = fake_pd(test, this->fake);
	this->hcq = fake_cq(test, this->fake, 7);
	this->memory = fake_user_memory(test, RSS_MEMORY, PROT_READ | PROT_WRITE);

	hghca_user_pages_init(&this->uctx->dbr_pages);
	this->uctx->uar.index = RSS_UAR;
	this->uctx->ibuctx.device = &this->fake->hdev->ibdev;
	this->bundle->context = &this->uctx->ibuctx;
	this->bundle->driver_udata.inbuf = (void __user *)(this->memory + RSS_IN);
	this->bundle->driver_udata.outbuf = (void __user *)(this->memory + RSS_OUT);
	test->priv = this;
	return 0;
}

static struct ib_udata *rss_udata(struct kunit *test, const void *in, size_t inlen, size_t outlen)
{
	struct rss *this = test->priv;
	struct ib_udata *udata = &this->bundle->driver_udata;

	KUNIT_ASSERT_EQ(test, 0, copy_to_user((void __user *)udata->inbuf, in, inlen));
	udata->inlen = inlen;
	udata->outlen = outlen;
	return udata;
}

/* ------------------------------------------------------------------ */
/* Limits                                                               */

static const struct rss_limit {
	const char *name;
	u32 caps;
	u8 log, log_size;
	u32 groups;	/* 0: the device counts as one without */
} rss_limits[] = {
	{ "1024 of 512", RSS_CAPS, 10, 9, 1024 },
	{ "one of one", RSS_CAPS, 0, 0, 1 },
	{ "2^24", RSS_CAPS, 24, 9, 1 << 24 },
	{ "2^25", RSS_CAPS, 25, 9, 0 },
	{ "2^255", RSS_CAPS, 255, 9, 0 },
	{ "more entries than a mailbox has room for", RSS_CAPS, 10, 10, 0 },
	{ "without flows", 0x80000, 10, 9, 0 },
	{ "flows alone", 0x2000, 10, 9, 0 },
};

KUNIT_ARRAY_PARAM_DESC(rss_limit, rss_limits, name);

static void rss_profile(struct kunit *test)
{
	const struct rss_limit *param = test->param_value;
	struct fake *fake = fake_test_create(test);
	struct ib_udata udata = {};
	struct ib_device_attr attr;
	u8 *limits;

	KUNIT_ASSERT_NOT_NULL(test, fake);
	limits = (u8 *)&fake->limits;
	fake->limits.caps |= cpu_to_be32(param->caps);
	limits[0x5c] = 12;
	limits[0x5d] = 64;
	limits[0x5e] = 56;
	limits[0x68] = param->log;
	limits[0x69] = param->log_size;
	KUNIT_ASSERT_EQ(test, 0, fake_open(fake));
	KUNIT_EXPECT_EQ(test, param->groups, fake->hdev->limits.num_rss);
	KUNIT_EXPECT_EQ(test, !!param->groups, !!(fake->hdev->limits.caps & 0x80000));
	KUNIT_ASSERT_EQ(test, 0, hghca_query_device(&fake->hdev->ibdev, &attr, &udata));
	KUNIT_EXPECT_EQ(test, param->groups ? BIT(IB_QPT_RAW_PACKET) : 0,
			attr.rss_caps.supported_qpts);
	KUNIT_EXPECT_EQ(test, param->groups, attr.rss_caps.max_rwq_indirection_tables);
	KUNIT_EXPECT_EQ(test, param->groups ? BIT(param->log_size) : 0,
			attr.rss_caps.max_rwq_indirection_table_size);
	KUNIT_EXPECT_EQ(test, param->groups ? attr.max_qp : 0, attr.max_wq_type_rq);
}

/* ------------------------------------------------------------------ */
/* Queues                                                               */

/* No two queues have a page in common: the debugging of DMA takes that for an error. */
static struct hghca_create_wq rss_wq_input(struct rss *this)
{
	return (struct hghca_create_wq) {
		.buf_addr = this->memory + (1 + this->pages++ % RSS_PAGES) * PAGE_SIZE,
		.dbr_addr = this->memory + RSS_RECORD,
		.wqe_cnt = 16,
		.log_stride = 7,
	};
}

static void rss_wq_attr(struct rss *this)
{
	this->init = (struct ib_wq_init_attr) {
		.wq_type = IB_WQT_RQ,
		.max_wr = 10,
		.max_sge = 5,
		.cq = &this->hcq->ibcq,
		.event_handler = rss_on_event,
	};
}

static struct ib_wq *rss_wq(struct kunit *test)
{
	struct rss *this = test->priv;
	struct hghca_create_wq cmd = rss_wq_input(this);
	struct ib_wq *ibwq;

	rss_wq_attr(this);
	ibwq = hghca_create_wq(&this->pd->ibpd, &this->init,
			       rss_udata(test, &cmd, sizeof(cmd), 0));
	KUNIT_ASSERT_FALSE(test, IS_ERR(ibwq));
	ibwq->wq_context = this;
	return ibwq;
}

static int rss_modify(struct ib_wq *ibwq, enum ib_wq_state state)
{
	struct ib_wq_attr attr = { .wq_state = state };

	return hghca_modify_wq(ibwq, &attr, IB_WQ_STATE, NULL);
}

static void rss_wq_context(struct kunit *test)
{
	struct rss *this = test->priv;
	struct ib_wq *ibwq = rss_wq(test);
	struct hghca_rwq *hrwq = container_of(ibwq, struct hghca_rwq, ibwq);
	u32 mark = fake_mark(this->fake);
	struct fake_command *cmd;

	/* The slots of its buffer, and as many SGEs as asked for. */
	KUNIT_EXPECT_EQ(test, 16, this->init.max_wr);
	KUNIT_EXPECT_EQ(test, 5, this->init.max_sge);
	KUNIT_EXPECT_EQ(test, hrwq->hw.qpn, ibwq->wq_num);
	KUNIT_EXPECT_EQ(test, IB_WQS_RESET, ibwq->state);

	KUNIT_ASSERT_EQ(test, 0, rss_modify(ibwq, IB_WQS_RDY));
	KUNIT_ASSERT_EQ(test, mark + 2, fake_mark(this->fake));
	cmd = fake_nth(this->fake, mark);
	KUNIT_EXPECT_EQ(test, 0x19, cmd->op);
	KUNIT_EXPECT_EQ(test, 0, cmd->op_modifier);
	KUNIT_EXPECT_EQ(test, ibwq->wq_num, cmd->in_modifier);
	/* PORT; raw Ethernet */
	KUNIT_EXPECT_EQ(test, 0x20, be32_at(cmd->mailbox, 0x00));
	KUNIT_EXPECT_EQ(test, 0x70000, be32_at(cmd->mailbox, 0x08));
	/* message size, and the strides */
	KUNIT_EXPECT_EQ(test, 7, cmd->mailbox[0x0d]);
	KUNIT_EXPECT_EQ(test, 6, cmd->mailbox[0x0e]);
	KUNIT_EXPECT_EQ(test, RSS_UAR, be32_at(cmd->mailbox, 0x10));
	KUNIT_EXPECT_EQ(test, ibwq->wq_num, be32_at(cmd->mailbox, 0x14));
	KUNIT_EXPECT_EQ(test, 0x01000000, be32_at(cmd->mailbox, 0x1c));
	KUNIT_EXPECT_EQ(test, this->pd->pdn, be32_at(cmd->mailbox, 0x5c));
	KUNIT_EXPECT_EQ(test, this->hcq->hw.cqn, be32_at(cmd->mailbox, 0x70));
	/* no send queue */
	KUNIT_EXPECT_EQ(test, 0, be64_at(cmd->mailbox, 0x74));
	KUNIT_EXPECT_EQ(test, this->hcq->hw.cqn, be32_at(cmd->mailbox, 0x8c));
	KUNIT_EXPECT_EQ(test, hrwq->rq.queue.mr.key, be32_at(cmd->mailbox, 0x90));
	KUNIT_EXPECT_EQ(test, 16 << 7, be32_at(cmd->mailbox, 0x94));
	KUNIT_EXPECT_EQ(test, hrwq->dbr.dma | 1, be64_at(cmd->mailbox, 0xa0));
	/* no SRQ, no trust, no domain, no counters; it starts at WQE 0 */
	KUNIT_EXPECT_NULL(test, memchr_inv(cmd->mailbox + 0xa8, 0, 0x18));

	cmd = fake_nth(this->fake, mark + 1);
	KUNIT_EXPECT_EQ(test, 0x1a, cmd->op);
	KUNIT_EXPECT_EQ(test, ibwq->wq_num, cmd->in_modifier);
	KUNIT_EXPECT_NULL(test, memchr_inv(cmd->mailbox, 0, 0xc0));

	mark = fake_mark(this->fake);
	KUNIT_EXPECT_EQ(test, 0, hghca_destroy_wq(ibwq, NULL));
	KUNIT_EXPECT_EQ(test, 0x21, fake_nth(this->fake, mark)->op);
	KUNIT_EXPECT_EQ(test, 3, fake_nth(this->fake, mark)->op_modifier);
	KUNIT_EXPECT_TRUE(test, list_empty(&this->uctx->dbr_pages.list));
}

static void rss_input_short(struct hghca_create_wq *cmd) { cmd->wqe_cnt = 8; }
static void rss_input_odd(struct hghca_create_wq *cmd) { cmd->wqe_cnt = 24; }

static void rss_input_none(struct hghca_create_wq *cmd)
{
	cmd->wqe_cnt = 0;
}

static void rss_input_long(struct hghca_create_wq *cmd) { cmd->wqe_cnt = 32768; }
static void rss_input_narrow(struct hghca_create_wq *cmd) { cmd->log_stride = 6; }
static void rss_input_thin(struct hghca_create_wq *cmd) { cmd->log_stride = 5; }
static void rss_input_wide(struct hghca_create_wq *cmd) { cmd->log_stride = 11; }
static void rss_input_reserved(struct hghca_create_wq *cmd) { cmd->reserved[2] = 1; }
static void rss_input_unaligned(struct hghca_create_wq *cmd) { cmd->buf_addr += 64; }
static void rss_input_record(struct hghca_create_wq *cmd) { cmd->dbr_addr += 4; }
static void rss_input_nowhere(struct hghca_create_wq *cmd) { cmd->buf_addr = PAGE_SIZE; }
static void rss_attr_type(struct ib_wq_init_attr *init) { init->wq_type = 1; }
static void rss_attr_flags(struct ib_wq_init_attr *init) { init->create_flags = 1; }

static void rss_attr_no_wr(struct ib_wq_init_attr *init)
{
	init->max_wr = 0;
}

static void rss_attr_wr(struct ib_wq_init_attr *init) { init->max_wr = 16385; }
static void rss_attr_sge(struct ib_wq_init_attr *init) { init->max_sge = 33; }

static void rss_attr_no_cq(struct ib_wq_init_attr *init)
{
	init->cq = NULL;
}

static void rss_attr_bad_cq(struct ib_wq_init_attr *init) { init->cq = ERR_PTR(-ENOENT); }

static const struct rss_bad_wq {
	const char *name;
	int err;
	void (*input)(struct hghca_create_wq *cmd);
	void (*attr)(struct ib_wq_init_attr *init);
} rss_bad_wqs[] = {
	{ "fewer WQEs than asked for", -EINVAL, rss_input_short },
	{ "no power of two", -EINVAL, rss_input_odd },
	{ "no queue", -EINVAL, rss_input_none },
	{ "too long", -EINVAL, rss_input_long },
	{ "slots without room for the SGEs", -EINVAL, rss_input_narrow },
	{ "slots too small", -EINVAL, rss_input_thin },
	{ "slots too large", -EINVAL, rss_input_wide },
	{ "a reserved byte", -EINVAL, rss_input_reserved },
	{ "a buffer within a page", -EINVAL, rss_input_unaligned },
	{ "a record out of line", -EINVAL, rss_input_record },
	{ "a buffer that is not there", -EFAULT, rss_input_nowhere },
	{ "another type", -EOPNOTSUPP, NULL, rss_attr_type },
	{ "VLAN tags taken off", -EOPNOTSUPP, NULL, rss_attr_flags },
	{ "no work requests", -EINVAL, NULL, rss_attr_no_wr },
	{ "too many", -EINVAL, NULL, rss_attr_wr },
	{ "too many SGEs", -EINVAL, NULL, rss_attr_sge },
	{ "no CQ", -EINVAL, NULL, rss_attr_no_cq },
	{ "a CQ that the core has not found", -EINVAL, NULL, rss_attr_bad_cq },
};

KUNIT_ARRAY_PARAM_DESC(rss_bad_wq, rss_bad_wqs, name);

static void rss_wq_bad(struct kunit *test)
{
	const struct rss_bad_wq *param = test->param_value;
	struct rss *this = test->priv;
	struct hghca_create_wq cmd = rss_wq_input(this);
	struct ib_udata *udata;

	rss_wq_attr(this);
	if (param->input)
		param->input(&cmd);
	if (param->attr)
		param->attr(&this->init);
	udata = rss_udata(test, &cmd, sizeof(cmd), 0);
	KUNIT_EXPECT_EQ(test, param->err,
			PTR_ERR_OR_ZERO(hghca_create_wq(&this->pd->ibpd, &this->init, udata)));
	KUNIT_EXPECT_TRUE(test, list_empty(&this->uctx->dbr_pages.list));
	/* All is there for the next one. */
	KUNIT_EXPECT_EQ(test, 0, hghca_destroy_wq(rss_wq(test), NULL));
}

static void rss_wq_short_input(struct kunit *test)
{
	struct rss *this = test->priv;
	struct hghca_create_wq cmd = rss_wq_input(this);

	rss_wq_attr(this);
	KUNIT_EXPECT_EQ(test, -EINVAL,
			PTR_ERR_OR_ZERO(hghca_create_wq(&this->pd->ibpd, &this->init,
							rss_udata(test, &cmd, sizeof(cmd) - 1,
								  0))));
}

static const struct rss_step {
	const char *name;
	enum ib_wq_state from, to;
	int err;
	u16 ops[2];
	u32 device_state;	/* 0: as it should be */
	u32 mask;		/* besides IB_WQ_STATE */
	enum ib_wq_state cur, after;
} rss_steps[] = {
	{ "RESET, RESET", IB_WQS_RESET, IB_WQS_RESET },
	{ "RESET, RDY", IB_WQS_RESET, IB_WQS_RDY, 0, { 0x19, 0x1a }, .after = IB_WQS_RDY },
	{ "RESET, ERR", IB_WQS_RESET, IB_WQS_ERR, -EINVAL },
	{ "RDY, RESET", IB_WQS_RDY, IB_WQS_RESET, 0, { 0x22, 0x21 } },
	{ "RDY, RDY", IB_WQS_RDY, IB_WQS_RDY, 0, { 0x22 }, .after = IB_WQS_RDY },
	{ "RDY, ERR", IB_WQS_RDY, IB_WQS_ERR, 0, { 0x22, 0x1e }, .after = IB_WQS_ERR },
	{ "ERR, RESET", IB_WQS_ERR, IB_WQS_RESET, 0, { 0x21 } },
	{ "ERR, RDY", IB_WQS_ERR, IB_WQS_RDY, -EINVAL, .after = IB_WQS_ERR },
	{ "ERR, ERR", IB_WQS_ERR, IB_WQS_ERR, 0, { 0x1e }, .after = IB_WQS_ERR },
	{ "RDY, RDY, in ERR by itself", IB_WQS_RDY, IB_WQS_RDY, -EINVAL, { 0x22 }, 6,
	  .after = IB_WQS_ERR },
	{ "RDY, ERR, in ERR by itself", IB_WQS_RDY, IB_WQS_ERR, 0, { 0x22, 0x1e }, 6,
	  .after = IB_WQS_ERR },
	{ "RDY, RESET, in ERR by itself", IB_WQS_RDY, IB_WQS_RESET, 0, { 0x22, 0x21 }, 6 },
	{ "from RDY, which it is in", IB_WQS_RDY, IB_WQS_ERR, 0, { 0x22, 0x1e },
	  .mask = IB_WQ_CUR_STATE, .cur = IB_WQS_RDY, .after = IB_WQS_ERR },
	{ "from RDY, which it is not in any more", IB_WQS_RDY, IB_WQS_RESET, -EINVAL, { 0x22 }, 6,
	  IB_WQ_CUR_STATE, IB_WQS_RDY, IB_WQS_ERR },
	{ "from RDY, which it is not in", IB_WQS_RESET, IB_WQS_RDY, -EINVAL,
	  .mask = IB_WQ_CUR_STATE, .cur = IB_WQS_RDY },
	{ "a state that there is not", IB_WQS_RDY, 3, -EINVAL, { 0x22 }, .after = IB_WQS_RDY },
	{ "flags", IB_WQS_RESET, IB_WQS_RDY, -EOPNOTSUPP, .mask = IB_WQ_FLAGS },
};

KUNIT_ARRAY_PARAM_DESC(rss_step, rss_steps, name);

static void rss_wq_step(struct kunit *test)
{
	const struct rss_step *param = test->param_value;
	struct rss *this = test->priv;
	struct ib_wq_attr attr = { .wq_state = param->to, .curr_wq_state = param->cur };
	struct ib_wq *ibwq = rss_wq(test);
	u32 mark, i;

	this->state = HGHCA_QP_STATE_RTR;
	if (param->from != IB_WQS_RESET)
		KUNIT_ASSERT_EQ(test, 0, rss_modify(ibwq, IB_WQS_RDY));
	if (param->from == IB_WQS_ERR)
		KUNIT_ASSERT_EQ(test, 0, rss_modify(ibwq, IB_WQS_ERR));
	if (param->device_state)
		this->state = param->device_state;

	mark = fake_mark(this->fake);
	KUNIT_EXPECT_EQ(test, param->err,
			hghca_modify_wq(ibwq, &attr, IB_WQ_STATE | param->mask, NULL));
	for (i = 0; i < ARRAY_SIZE(param->ops) && param->ops[i]; i++) {
		KUNIT_ASSERT_LT(test, mark + i, fake_mark(this->fake));
		KUNIT_EXPECT_EQ(test, param->ops[i], fake_nth(this->fake, mark + i)->op);
		KUNIT_EXPECT_EQ(test, ibwq->wq_num, fake_nth(this->fake, mark + i)->in_modifier);
	}
	KUNIT_EXPECT_EQ(test, mark + i, fake_mark(this->fake));
	KUNIT_EXPECT_EQ(test, param->after, ibwq->state);
	KUNIT_EXPECT_EQ(test, 0, hghca_destroy_wq(ibwq, NULL));
}

/* Half way to RDY is not RDY. */
static void rss_wq_refused(struct kunit *test)
{
	struct rss *this = test->priv;
	struct ib_wq *ibwq = rss_wq(test);
	u32 mark = fake_mark(this->fake);

	rss_refuse(this, 0x19, 0x03, 1);
	KUNIT_EXPECT_EQ(test, -EINVAL, rss_modify(ibwq, IB_WQS_RDY));
	KUNIT_EXPECT_EQ(test, mark + 1, fake_mark(this->fake));
	KUNIT_EXPECT_EQ(test, IB_WQS_RESET, ibwq->state);
	rss_refuse(this, 0x1a, 0x03, 1);
	KUNIT_EXPECT_EQ(test, -EINVAL, rss_modify(ibwq, IB_WQS_RDY));
	KUNIT_EXPECT_EQ(test, mark + 4, fake_mark(this->fake));
	KUNIT_EXPECT_EQ(test, 0x21, fake_nth(this->fake, mark + 3)->op);
	KUNIT_EXPECT_EQ(test, IB_WQS_RESET, ibwq->state);
	KUNIT_EXPECT_EQ(test, 0, rss_modify(ibwq, IB_WQS_RDY));
	/* An answer that fails says nothing of the state. */
	rss_refuse(this, 0x22, 0x03, 1);
	KUNIT_EXPECT_EQ(test, 0, rss_modify(ibwq, IB_WQS_RDY));
	KUNIT_EXPECT_EQ(test, 0, hghca_destroy_wq(ibwq, NULL));
}

static void rss_wq_kept(struct kunit *test)
{
	struct rss *this = test->priv;
	struct ib_wq *ibwq = rss_wq(test);

	KUNIT_ASSERT_EQ(test, 0, rss_modify(ibwq, IB_WQS_RDY));
	rss_refuse(this, 0x21, 0x03, 1000);
	KUNIT_EXPECT_EQ(test, 0, hghca_destroy_wq(ibwq, NULL));
	KUNIT_EXPECT_TRUE(test, hghca_dev_has_failed(this->fake->hdev));
	KUNIT_EXPECT_TRUE(test, list_empty(&this->uctx->dbr_pages.list));
}

static void rss_wq_no_error(struct kunit *test)
{
	struct rss *this = test->priv;
	struct ib_wq *ibwq = rss_wq(test);

	KUNIT_ASSERT_EQ(test, 0, rss_modify(ibwq, IB_WQS_RDY));
	rss_refuse(this, 0x1e, 0x03, 1000);
	KUNIT_EXPECT_EQ(test, 0, rss_modify(ibwq, IB_WQS_ERR));
	KUNIT_EXPECT_TRUE(test, hghca_dev_has_failed(this->fake->hdev));
	/* What is outstanding must end: on such a device too it can be taken away. */
	KUNIT_EXPECT_EQ(test, 0, rss_modify(ibwq, IB_WQS_RESET));
	KUNIT_EXPECT_EQ(test, 0, hghca_destroy_wq(ibwq, NULL));
}

static void rss_wq_events(struct kunit *test)
{
	struct rss *this = test->priv;
	struct ib_wq *ibwq = rss_wq(test);

	/* Not in RESET, which it is in while ib_core makes it. */
	hghca_qp_dispatch_event(this->fake->hdev, ibwq->wq_num, HGHCA_EVENT_WQ_CATAS_ERROR);
	KUNIT_EXPECT_EQ(test, 0, this->events);
	KUNIT_ASSERT_EQ(test, 0, rss_modify(ibwq, IB_WQS_RDY));
	hghca_qp_dispatch_event(this->fake->hdev, ibwq->wq_num, HGHCA_EVENT_WQ_CATAS_ERROR);
	KUNIT_EXPECT_EQ(test, 1, this->events);
	KUNIT_EXPECT_EQ(test, IB_EVENT_WQ_FATAL, this->last.event);
	KUNIT_EXPECT_PTR_EQ(test, ibwq, this->last.element.wq);
	KUNIT_EXPECT_PTR_EQ(test, &this->fake->hdev->ibdev, this->last.device);
	hghca_qp_dispatch_event(this->fake->hdev, ibwq->wq_num, 0x42);
	KUNIT_EXPECT_EQ(test, 1, this->events);
	ibwq->event_handler = NULL;
	hghca_qp_dispatch_event(this->fake->hdev, ibwq->wq_num, HGHCA_EVENT_WQ_CATAS_ERROR);
	KUNIT_EXPECT_EQ(test, 1, this->events);
	KUNIT_EXPECT_EQ(test, 0, hghca_destroy_wq(ibwq, NULL));
}

/* ------------------------------------------------------------------ */
/* Tables, and QPs with one                                             */

/* As ib_core does. */
static int rss_new_table(struct rss *this, struct hghca_rwq_table *table, u32 log_size)
{
	struct ib_rwq_ind_table_init_attr init = {
		.log_ind_tbl_size = log_size,
		.ind_tbl = this->wqs,
	};

	table->ibtable.device = &this->fake->hdev->ibdev;
	table->ibtable.log_ind_tbl_size = log_size;
	table->ibtable.ind_tbl = this->wqs;
	return hghca_create_rwq_ind_table(&table->ibtable, &init, fake_no_udata(this->bundle));
}

static void rss_tables(struct kunit *test)
{
	struct rss *this = test->priv;
	struct hghca_rwq_table *tables;
	u32 mark = fake_mark(this->fake);

	tables = kunit_kcalloc(test, 3, sizeof(*tables), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, tables);
	KUNIT_EXPECT_EQ(test, -EINVAL, rss_new_table(this, &tables[0], 4));
	KUNIT_EXPECT_EQ(test, -EINVAL, rss_new_table(this, &tables[0], 13));
	KUNIT_ASSERT_EQ(test, 0, rss_new_table(this, &tables[0], 3));
	KUNIT_ASSERT_EQ(test, 0, rss_new_table(this, &tables[1], 0));
	KUNIT_EXPECT_NE(test, tables[0].ibtable.ind_tbl_num, tables[1].ibtable.ind_tbl_num);
	/* There are two in all. */
	KUNIT_EXPECT_EQ(test, -ENOMEM, rss_new_table(this, &tables[2], 1));
	KUNIT_EXPECT_EQ(test, 0, hghca_destroy_rwq_ind_table(&tables[0].ibtable));
	KUNIT_EXPECT_EQ(test, 0, rss_new_table(this, &tables[2], 1));
	KUNIT_EXPECT_EQ(test, 0, hghca_destroy_rwq_ind_table(&tables[1].ibtable));
	KUNIT_EXPECT_EQ(test, 0, hghca_destroy_rwq_ind_table(&tables[2].ibtable));
	KUNIT_EXPECT_TRUE(test, ida_is_empty(&this->fake->hdev->rwq_table_ida));
	/* The device hears of them with their QPs. */
	KUNIT_EXPECT_EQ(test, mark, fake_mark(this->fake));
}

static void rss_fill_table(struct kunit *test)
{
	struct rss *this = test->priv;
	u32 i;

	for (i = 0; i < RSS_QUEUES; i++)
		this->wqs[i] = rss_wq(test);
	this->table = kunit_kzalloc(test, sizeof(*this->table), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, this->table);
	KUNIT_ASSERT_EQ(test, 0, rss_new_table(this, this->table, 2));
}

static void rss_empty_table(struct kunit *test)
{
	struct rss *this = test->priv;
	u32 i;

	KUNIT_EXPECT_EQ(test, 0, hghca_destroy_rwq_ind_table(&this->table->ibtable));
	for (i = 0; i < RSS_QUEUES; i++)
		KUNIT_EXPECT_EQ(test, 0, hghca_destroy_wq(this->wqs[i], NULL));
	KUNIT_EXPECT_TRUE(test, ida_is_empty(&this->fake->hdev->rss_ida));
}

static struct hghca_create_rss_qp rss_qp_input(void)
{
	struct hghca_create_rss_qp cmd = {
		.rx_hash_fields_mask = 0xc3,
		.rx_hash_function = 1,
		.rx_hash_key_len = RSS_KEY,
	};
	int i;

	for (i = 0; i < RSS_KEY; i++)
		cmd.rx_hash_key[i] = 0x11 + i;
	return cmd;
}

static struct ib_qp_init_attr rss_qp_attr(struct rss *this)
{
	return (struct ib_qp_init_attr) {
		.qp_type = IB_QPT_RAW_PACKET,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.rwq_ind_tbl = &this->table->ibtable,
	};
}

static int rss_new_qp(struct kunit *test, struct hghca_qp *hqp, struct ib_qp_init_attr *init,
		      const struct hghca_create_rss_qp *cmd)
{
	struct rss *this = test->priv;

	memset(hqp, 0, sizeof(*hqp));
	hqp->ibqp.device = &this->fake->hdev->ibdev;
	hqp->ibqp.pd = &this->pd->ibpd;
	hqp->ibqp.qp_type = init->qp_type;
	hqp->ibqp.rwq_ind_tbl = init->rwq_ind_tbl;
	return hghca_create_qp(&hqp->ibqp, init, rss_udata(test, cmd, sizeof(*cmd), 8));
}

static struct hghca_qp *rss_qp(struct kunit *test)
{
	struct rss *this = test->priv;
	struct hghca_create_rss_qp cmd = rss_qp_input();
	struct ib_qp_init_attr init = rss_qp_attr(this);
	struct hghca_qp *hqp = kunit_kzalloc(test, sizeof(*hqp), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, hqp);
	KUNIT_ASSERT_EQ(test, 0, rss_new_qp(test, hqp, &init, &cmd));
	return hqp;
}

static void rss_qp_commands(struct kunit *test)
{
	struct rss *this = test->priv;
	struct hghca_create_qp_resp resp;
	struct fake_command *cmd;
	struct hghca_qp *first, *second;
	u32 mark, i;

	rss_fill_table(test);
	mark = fake_mark(this->fake);
	first = rss_qp(test);
	KUNIT_ASSERT_EQ(test, 0, copy_from_user(&resp, (void __user *)(this->memory + RSS_OUT),
						sizeof(resp)));
	KUNIT_EXPECT_EQ(test, first->hw.qpn, resp.qpn);
	KUNIT_EXPECT_EQ(test, first->hw.qpn, first->ibqp.qp_num);
	KUNIT_ASSERT_EQ(test, mark + 1, fake_mark(this->fake));
	cmd = fake_nth(this->fake, mark);
	KUNIT_EXPECT_EQ(test, 0xe0a, cmd->op);
	KUNIT_EXPECT_EQ(test, 0, cmd->in_modifier);
	KUNIT_EXPECT_EQ(test, 0xc3, be32_at(cmd->mailbox, 0x00));
	/* Toeplitz, 4 entries */
	KUNIT_EXPECT_EQ(test, 0x01020000, be32_at(cmd->mailbox, 0x04));
	for (i = 0; i < RSS_KEY; i++)
		KUNIT_EXPECT_EQ(test, 0x11 + i, cmd->mailbox[0x08 + i]);
	for (i = 0; i < RSS_QUEUES; i++)
		KUNIT_EXPECT_EQ(test, this->wqs[i]->wq_num, be32_at(cmd->mailbox, 0x30 + 4 * i));
	KUNIT_EXPECT_NULL(test, memchr_inv(cmd->mailbox + 0x40, 0, 0x830 - 0x40));

	second = rss_qp(test);
	KUNIT_EXPECT_EQ(test, 1, fake_nth(this->fake, mark + 1)->in_modifier);
	KUNIT_EXPECT_NE(test, first->hw.qpn, second->hw.qpn);
	KUNIT_EXPECT_EQ(test, 0, hghca_destroy_qp(&first->ibqp, NULL));
	KUNIT_EXPECT_EQ(test, 0xe0b, fake_nth(this->fake, mark + 2)->op);
	KUNIT_EXPECT_EQ(test, 0, fake_nth(this->fake, mark + 2)->in_modifier);
	KUNIT_EXPECT_EQ(test, 0, hghca_destroy_qp(&second->ibqp, NULL));
	KUNIT_EXPECT_EQ(test, 1, fake_nth(this->fake, mark + 3)->in_modifier);
	rss_empty_table(test);
}

static void rss_hash_other(struct hghca_create_rss_qp *cmd) { cmd->rx_hash_function = 2; }

static void rss_hash_none(struct hghca_create_rss_qp *cmd)
{
	cmd->rx_hash_function = 0;
}

static void rss_hash_spi(struct hghca_create_rss_qp *cmd) { cmd->rx_hash_fields_mask = BIT(8); }

static void rss_hash_inner(struct hghca_create_rss_qp *cmd)
{
	cmd->rx_hash_fields_mask |= BIT_ULL(31);
}

static void rss_hash_high(struct hghca_create_rss_qp *cmd)
{
	cmd->rx_hash_fields_mask |= BIT_ULL(63);
}

static void rss_hash_nothing(struct hghca_create_rss_qp *cmd)
{
	cmd->rx_hash_fields_mask = 0;
}

static void rss_key_short(struct hghca_create_rss_qp *cmd) { cmd->rx_hash_key_len = RSS_KEY - 1; }

static void rss_key_none(struct hghca_create_rss_qp *cmd)
{
	cmd->rx_hash_key_len = 0;
}

static void rss_reserved(struct hghca_create_rss_qp *cmd) { cmd->reserved[5] = 1; }
static void rss_qp_ud(struct ib_qp_init_attr *init) { init->qp_type = IB_QPT_UD; }
static void rss_qp_rc(struct ib_qp_init_attr *init) { init->qp_type = IB_QPT_RC; }
static void rss_qp_sends(struct ib_qp_init_attr *init) { init->cap.max_send_wr = 1; }
static void rss_qp_sges(struct ib_qp_init_attr *init) { init->cap.max_send_sge = 1; }
static void rss_qp_inlines(struct ib_qp_init_attr *init) { init->cap.max_inline_data = 1; }

static void rss_qp_flags(struct ib_qp_init_attr *init)
{
	init->create_flags = IB_QP_CREATE_CVLAN_STRIPPING;
}

static const struct rss_bad_qp {
	const char *name;
	int err;
	void (*input)(struct hghca_create_rss_qp *cmd);
	void (*attr)(struct ib_qp_init_attr *init);
} rss_bad_qps[] = {
	{ "another function", -EOPNOTSUPP, rss_hash_other },
	{ "no function", -EOPNOTSUPP, rss_hash_none },
	{ "SPIs", -EOPNOTSUPP, rss_hash_spi },
	{ "inner headers", -EOPNOTSUPP, rss_hash_inner },
	{ "what nobody knows", -EOPNOTSUPP, rss_hash_high },
	{ "no fields, for many queues", -EINVAL, rss_hash_nothing },
	{ "a short key", -EINVAL, rss_key_short },
	{ "no key", -EINVAL, rss_key_none },
	{ "a reserved byte", -EINVAL, rss_reserved },
	{ "a UD QP", -EOPNOTSUPP, NULL, rss_qp_ud },
	{ "an RC QP", -EOPNOTSUPP, NULL, rss_qp_rc },
	{ "with a send queue", -EOPNOTSUPP, NULL, rss_qp_sends },
	{ "with SGEs to send", -EOPNOTSUPP, NULL, rss_qp_sges },
	{ "with inline data", -EOPNOTSUPP, NULL, rss_qp_inlines },
	{ "VLAN tags taken off", -EOPNOTSUPP, NULL, rss_qp_flags },
};

KUNIT_ARRAY_PARAM_DESC(rss_bad_qp, rss_bad_qps, name);

static void rss_qp_bad(struct kunit *test)
{
	const struct rss_bad_qp *param = test->param_value;
	struct rss *this = test->priv;
	struct hghca_create_rss_qp cmd = rss_qp_input();
	struct hghca_qp *hqp = kunit_kzalloc(test, sizeof(*hqp), GFP_KERNEL);
	struct ib_qp_init_attr init;
	u32 mark;

	KUNIT_ASSERT_NOT_NULL(test, hqp);
	rss_fill_table(test);
	init = rss_qp_attr(this);
	mark = fake_mark(this->fake);
	if (param->input)
		param->input(&cmd);
	if (param->attr)
		param->attr(&init);
	KUNIT_EXPECT_EQ(test, param->err, rss_new_qp(test, hqp, &init, &cmd));
	KUNIT_EXPECT_EQ(test, mark, fake_mark(this->fake));
	rss_empty_table(test);
}

/* Without a user, as a target of XRC has none; input too short; a device without. */
static void rss_qp_none(struct kunit *test)
{
	struct rss *this = test->priv;
	struct hghca_create_rss_qp cmd = rss_qp_input();
	struct hghca_qp *hqp = kunit_kzalloc(test, sizeof(*hqp), GFP_KERNEL);
	struct ib_qp_init_attr init;
	struct hghca_xrcd xrcd = {};
	struct ib_udata *udata;

	KUNIT_ASSERT_NOT_NULL(test, hqp);
	rss_fill_table(test);
	init = rss_qp_attr(this);
	init.xrcd = &xrcd.ibxrcd;
	hqp->ibqp.device = &this->fake->hdev->ibdev;
	hqp->ibqp.pd = &this->pd->ibpd;
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, hghca_create_qp(&hqp->ibqp, &init, NULL));
	init.qp_type = IB_QPT_XRC_TGT;
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, hghca_create_qp(&hqp->ibqp, &init, NULL));
	init.qp_type = IB_QPT_RAW_PACKET;
	udata = rss_udata(test, &cmd, sizeof(cmd) - 1, 8);
	KUNIT_EXPECT_EQ(test, -EINVAL, hghca_create_qp(&hqp->ibqp, &init, udata));
	this->fake->hdev->limits.caps &= ~0x80000;
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, rss_new_qp(test, hqp, &init, &cmd));
	this->fake->hdev->limits.caps |= 0x80000;
	rss_empty_table(test);
}

static void rss_qp_refused(struct kunit *test)
{
	struct rss *this = test->priv;
	struct hghca_create_rss_qp cmd = rss_qp_input();
	struct hghca_qp *hqp = kunit_kzalloc(test, sizeof(*hqp), GFP_KERNEL);
	struct hghca_qp *first, *second;
	struct ib_qp_init_attr init;

	KUNIT_ASSERT_NOT_NULL(test, hqp);
	rss_fill_table(test);
	init = rss_qp_attr(this);
	rss_refuse(this, 0xe0a, 0x03, 1);
	KUNIT_EXPECT_EQ(test, -EINVAL, rss_new_qp(test, hqp, &init, &cmd));
	KUNIT_EXPECT_TRUE(test, ida_is_empty(&this->fake->hdev->rss_ida));
	first = rss_qp(test);
	second = rss_qp(test);
	/* There are two groups in all. */
	KUNIT_EXPECT_EQ(test, -ENOMEM, rss_new_qp(test, hqp, &init, &cmd));
	KUNIT_EXPECT_EQ(test, 0, hghca_destroy_qp(&first->ibqp, NULL));
	KUNIT_EXPECT_EQ(test, 0, hghca_destroy_qp(&second->ibqp, NULL));
	/* With one entry there need be nothing to hash. */
	this->table->ibtable.log_ind_tbl_size = 0;
	cmd.rx_hash_fields_mask = 0;
	KUNIT_EXPECT_EQ(test, 0, rss_new_qp(test, hqp, &init, &cmd));
	KUNIT_EXPECT_EQ(test, 0, hghca_destroy_qp(&hqp->ibqp, NULL));
	this->table->ibtable.log_ind_tbl_size = 2;
	rss_empty_table(test);
}

/* What can be asked of it, and what not. */
static void rss_qp_verbs(struct kunit *test)
{
	struct rss *this = test->priv;
	struct ib_flow_attr flow = { .type = IB_FLOW_ATTR_ALL_DEFAULT, .port = 1,
				     .size = sizeof(flow) };
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT, .port_num = 1 };
	struct rdma_counter *counter;
	struct ib_qp_init_attr init;
	struct ib_flow *ibflow;
	struct hghca_qp *hqp;
	u32 mark;

	counter = kunit_kzalloc(test, sizeof(*counter), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, counter);
	rss_fill_table(test);
	hqp = rss_qp(test);
	mark = fake_mark(this->fake);
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP,
			hghca_modify_qp(&hqp->ibqp, &attr, IB_QP_STATE | IB_QP_PORT, NULL));
	KUNIT_EXPECT_EQ(test, 0, hghca_query_qp(&hqp->ibqp, &attr, 0, &init));
	KUNIT_EXPECT_EQ(test, IB_QPS_RTR, attr.qp_state);
	KUNIT_EXPECT_EQ(test, IB_QPS_RTR, attr.cur_qp_state);
	KUNIT_EXPECT_EQ(test, 1, attr.port_num);
	KUNIT_EXPECT_EQ(test, 0, attr.cap.max_send_wr | attr.cap.max_recv_wr);
	KUNIT_EXPECT_EQ(test, IB_QPT_RAW_PACKET, init.qp_type);
	KUNIT_EXPECT_EQ(test, IB_SIGNAL_REQ_WR, init.sq_sig_type);
	KUNIT_EXPECT_PTR_EQ(test, &this->table->ibtable, init.rwq_ind_tbl);
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, hghca_counter_bind_qp(counter, &hqp->ibqp, 1));
	KUNIT_EXPECT_EQ(test, -EAGAIN, hghca_fill_res_qp_entry_raw(NULL, &hqp->ibqp));
	KUNIT_EXPECT_EQ(test, mark, fake_mark(this->fake));

	/* A flow names the group. */
	ibflow = hghca_create_flow(&hqp->ibqp, &flow, NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ibflow));
	ibflow->device = &this->fake->hdev->ibdev;
	KUNIT_EXPECT_EQ(test, 0xe05, fake_nth(this->fake, mark)->op);
	KUNIT_EXPECT_EQ(test, 0x80000000, be32_at(fake_nth(this->fake, mark)->mailbox, 0));
	KUNIT_EXPECT_EQ(test, 0, hghca_destroy_flow(ibflow));
	KUNIT_EXPECT_EQ(test, 0, hghca_destroy_qp(&hqp->ibqp, NULL));
	rss_empty_table(test);
}

/* Tried again: what the core forgets, the device must not keep. */
static void rss_qp_destroy_fails(struct kunit *test)
{
	struct rss *this = test->priv;
	struct hghca_qp *hqp;
	u32 mark;

	rss_fill_table(test);
	hqp = rss_qp(test);
	mark = fake_mark(this->fake);
	rss_refuse(this, 0xe0b, 0x01, 2);
	KUNIT_EXPECT_EQ(test, 0, hghca_destroy_qp(&hqp->ibqp, NULL));
	KUNIT_EXPECT_EQ(test, mark + 3, fake_mark(this->fake));
	KUNIT_EXPECT_FALSE(test, hghca_dev_has_failed(this->fake->hdev));
	rss_empty_table(test);
}

static void rss_qp_kept(struct kunit *test)
{
	struct rss *this = test->priv;
	struct hghca_qp *hqp;

	rss_fill_table(test);
	hqp = rss_qp(test);
	rss_refuse(this, 0xe0b, 0x06, 1000);
	KUNIT_EXPECT_EQ(test, 0, hghca_destroy_qp(&hqp->ibqp, NULL));
	KUNIT_EXPECT_TRUE(test, hghca_dev_has_failed(this->fake->hdev));
	rss_empty_table(test);
}

static struct kunit_case rss_limit_cases[] = {
	KUNIT_CASE_PARAM(rss_profile, rss_limit_gen_params),
	{}
};

static struct kunit_suite rss_limit_suite = {
	.name = "hghca_rss_limits",
	.test_cases = rss_limit_cases,
};

static struct kunit_case rss_cases[] = {
	KUNIT_CASE(rss_wq_context),
	KUNIT_CASE_PARAM(rss_wq_bad, rss_bad_wq_gen_params),
	KUNIT_CASE(rss_wq_short_input),
	KUNIT_CASE_PARAM(rss_wq_step, rss_step_gen_params),
	KUNIT_CASE(rss_wq_refused),
	KUNIT_CASE(rss_wq_kept),
	KUNIT_CASE(rss_wq_no_error),
	KUNIT_CASE(rss_wq_events),
	KUNIT_CASE(rss_tables),
	KUNIT_CASE(rss_qp_commands),
	KUNIT_CASE_PARAM(rss_qp_bad, rss_bad_qp_gen_params),
	KUNIT_CASE(rss_qp_none),
	KUNIT_CASE(rss_qp_refused),
	KUNIT_CASE(rss_qp_verbs),
	KUNIT_CASE(rss_qp_destroy_fails),
	KUNIT_CASE(rss_qp_kept),
	{}
};

static struct kunit_suite rss_suite = {
	.name = "hghca_rss",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = rss_init,
	.test_cases = rss_cases,
};
kunit_test_suites(&rss_limit_suite, &rss_suite);
