// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of what can be seen from outside: counters of QPs, of device and
 * port (interface document, 4.14 and 4.19), performance management (IBA vol 1,
 * 16.1), details and raw dumps of objects, tracepoints.
 */
#include <linux/etherdevice.h>
#include <net/netlink.h>
#include <rdma/ib_mad.h>
#include <rdma/rdma_counter.h>
#include <rdma/rdma_netlink.h>

#include "fake.h"

#define OBSERVE_COUNTERS	HGHCA_COUNTER_NUM
#define OBSERVE_SET		27

/* The document's HGHCA_QP_COUNTERS, in order. */
static const char * const observe_set[OBSERVE_SET] = {
	"tx_packets", "rx_packets", "tx_bytes", "rx_bytes", "rx_bad_address", "rx_bad_pkey",
	"rx_bad_qkey", "rx_no_wqe", "rx_too_long", "duplicate_request", "out_of_sequence",
	"rnr_nak_sent", "rnr_nak_received", "packet_seq_err", "implied_nak_seq_err",
	"local_ack_timeout_err", "retransmitted", "remote_access_nak_sent",
	"remote_invalid_nak_sent", "cqe_error", "cqe_flush", "wqe_bad", "uc_dropped",
	"rx_send_requests", "rx_write_requests", "rx_read_requests", "rx_atomic_requests",
};

/* Place in a set of the counter of this name, or -1. */
static int observe_place(const char *name)
{
	return match_string(observe_set, OBSERVE_SET, name);
}

struct observe {
	struct fake *fake;
	struct hghca_pd *pd;
	struct hghca_cq *hcq;
	struct hghca_srq *hsrq;
	struct hghca_qp *hqp;
	struct hghca_qp *other;		/* with the SRQ */
	struct rdma_counter counter;
	u16 refused;			/* opcode */
	u8 status;
	u64 values[512];		/* answer of QUERY_STATS and QUERY_COUNTER_SET */
};

static enum fake_end observe_answer(struct fake *fake, const struct fake_command *cmd,
				    struct fake_answer *answer)
{
	struct observe *this = fake->priv;
	__be64 *out = fake->out;
	int i;

	if (cmd->op == this->refused)
		answer->status = this->status;
	if (cmd->op == 0xe02 || cmd->op == 0xe04)
		for (i = 0; i < ARRAY_SIZE(this->values); i++)
			out[i] = cpu_to_be64(this->values[i]);
	/* A context: each byte another. */
	if (cmd->op == 0x00e || cmd->op == 0x015 || cmd->op == 0x018 || cmd->op == 0x022 ||
	    cmd->op == 0x037)
		for (i = 0; i < 256; i++)
			((u8 *)fake->out)[i] = i ^ cmd->op;
	return FAKE_ANSWERED;
}

static int observe_init(struct kunit *test)
{
	struct observe *this = kunit_kzalloc(test, sizeof(*this), GFP_KERNEL);
	struct fake_qp_attr attr = {
		.type = IB_QPT_RC,
		.cap = { .max_send_wr = 4, .max_send_sge = 1, .max_recv_wr = 8,
			 .max_recv_sge = 1 },
	};
	int err;

	if (!this)
		return -ENOMEM;
	err = fake_test_init_events(test);
	if (err)
		return err;
	this->fake = test->priv;
	this->pd = fake_pd(test, this->fake);
	this->hcq = fake_cq(test, this->fake, 15);
	this->hsrq = fake_srq(test, this->pd, 7, 1);
	this->hqp = fake_qp(test, this->pd, this->hcq, this->hcq, &attr);
	attr.srq = this->hsrq;
	this->other = fake_qp(test, this->pd, this->hcq, this->hcq, &attr);
	this->counter.device = &this->fake->hdev->ibdev;
	this->fake->priv = this;
	this->fake->answer = observe_answer;
	test->priv = this;
	return 0;
}

/* The only command since @mark. */
static struct fake_command *observe_command(struct kunit *test, u32 mark)
{
	struct observe *this = test->priv;
	struct fake_command *cmd = fake_nth(this->fake, mark);

	KUNIT_ASSERT_EQ(test, mark + 1, fake_mark(this->fake));
	KUNIT_ASSERT_NOT_NULL(test, cmd);
	return cmd;
}

static int observe_to_init(struct hghca_qp *hqp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT, .port_num = 1 };

	return hghca_modify_qp(&hqp->ibqp, &attr, IB_QP_STATE | IB_QP_PORT | IB_QP_PKEY_INDEX |
			       IB_QP_ACCESS_FLAGS, NULL);
}

/* ------------------------------------------------------------------ */
/* Counters of QPs                                                      */

/* In RESET the context takes the set along; later it has a command of its own. */
static void observe_bind(struct kunit *test)
{
	struct observe *this = test->priv;
	struct ib_qp *ibqp = &this->hqp->ibqp;
	u32 mark = fake_mark(this->fake);
	struct fake_command *cmd;

	KUNIT_ASSERT_EQ(test, 0, hghca_counter_bind_qp(&this->counter, ibqp, 1));
	cmd = observe_command(test, mark);
	KUNIT_EXPECT_EQ(test, 0xe04, cmd->op);
	KUNIT_EXPECT_EQ(test, 1, cmd->op_modifier);
	KUNIT_EXPECT_EQ(test, 1, cmd->in_modifier);
	KUNIT_EXPECT_EQ(test, 1, this->counter.id);
	KUNIT_EXPECT_PTR_EQ(test, &this->counter, ibqp->counter);

	mark = fake_mark(this->fake);
	KUNIT_ASSERT_EQ(test, 0, observe_to_init(this->hqp));
	cmd = observe_command(test, mark);
	KUNIT_EXPECT_EQ(test, 0x019, cmd->op);
	KUNIT_EXPECT_EQ(test, 1, be32_at(cmd->mailbox, 0xb8));

	mark = fake_mark(this->fake);
	KUNIT_ASSERT_EQ(test, 0, hghca_counter_unbind_qp(ibqp, 1));
	cmd = observe_command(test, mark);
	KUNIT_EXPECT_EQ(test, 0xe03, cmd->op);
	KUNIT_EXPECT_EQ(test, this->hqp->hw.qpn, cmd->in_modifier);
	KUNIT_EXPECT_EQ(test, 0, cmd->in_param);
	KUNIT_EXPECT_NULL(test, ibqp->counter);

	/* The counter has its set: it is not cleared again. */
	mark = fake_mark(this->fake);
	KUNIT_ASSERT_EQ(test, 0, hghca_counter_bind_qp(&this->counter, ibqp, 1));
	cmd = observe_command(test, mark);
	KUNIT_EXPECT_EQ(test, 0xe03, cmd->op);
	KUNIT_EXPECT_EQ(test, 1, cmd->in_param);

	KUNIT_EXPECT_EQ(test, 0, hghca_counter_unbind_qp(ibqp, 1));
	KUNIT_EXPECT_EQ(test, 0, hghca_counter_dealloc(&this->counter));
	/* Nothing is left of it when the QP begins again. */
	mutex_lock(&this->hqp->lock);
	hghca_qp_reset(this->hqp);
	mutex_unlock(&this->hqp->lock);
	mark = fake_mark(this->fake);
	KUNIT_ASSERT_EQ(test, 0, observe_to_init(this->hqp));
	KUNIT_EXPECT_EQ(test, 0, be32_at(observe_command(test, mark)->mailbox, 0xb8));
}

/* Each counter has a set of its own, until no set is left. */
static void observe_exhausted(struct kunit *test)
{
	struct observe *this = test->priv;
	struct rdma_counter *more = kunit_kcalloc(test, 3, sizeof(*more), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, more);
	this->fake->hdev->limits.num_counter_sets = 3;
	for (i = 0; i < 3; i++)
		more[i].device = this->counter.device;
	KUNIT_ASSERT_EQ(test, 0, hghca_counter_bind_qp(&more[0], &this->hqp->ibqp, 1));
	KUNIT_ASSERT_EQ(test, 0, hghca_counter_bind_qp(&more[1], &this->other->ibqp, 1));
	KUNIT_EXPECT_EQ(test, 1, more[0].id);
	KUNIT_EXPECT_EQ(test, 2, more[1].id);
	KUNIT_EXPECT_EQ(test, -ENOSPC, hghca_counter_bind_qp(&more[2], &this->other->ibqp, 1));
	KUNIT_EXPECT_EQ(test, 0, more[2].id);
	KUNIT_EXPECT_PTR_EQ(test, &more[1], this->other->ibqp.counter);

	KUNIT_EXPECT_EQ(test, 0, hghca_counter_unbind_qp(&this->hqp->ibqp, 1));
	KUNIT_EXPECT_EQ(test, 0, hghca_counter_dealloc(&more[0]));
	KUNIT_EXPECT_EQ(test, 0, hghca_counter_bind_qp(&more[2], &this->hqp->ibqp, 1));
	KUNIT_EXPECT_EQ(test, 1, more[2].id);
	hghca_counter_dealloc(&more[1]);
	hghca_counter_dealloc(&more[2]);
}

static void observe_refused(struct kunit *test)
{
	struct observe *this = test->priv;
	struct ib_qp *ibqp = &this->hqp->ibqp;

	this->status = 0x03;
	this->refused = 0xe04;
	KUNIT_EXPECT_EQ(test, -EINVAL, hghca_counter_bind_qp(&this->counter, ibqp, 1));
	KUNIT_EXPECT_EQ(test, 0, this->counter.id);
	KUNIT_EXPECT_TRUE(test, ida_is_empty(&this->fake->hdev->counter_ida));

	this->refused = 0xe03;
	KUNIT_ASSERT_EQ(test, 0, observe_to_init(this->hqp));
	KUNIT_EXPECT_EQ(test, -EINVAL, hghca_counter_bind_qp(&this->counter, ibqp, 1));
	KUNIT_EXPECT_EQ(test, 0, this->counter.id);
	KUNIT_EXPECT_NULL(test, ibqp->counter);
	KUNIT_EXPECT_EQ(test, 0, this->hqp->qpc.counter_set);
	KUNIT_EXPECT_TRUE(test, ida_is_empty(&this->fake->hdev->counter_ida));

	/* A counter that another QP has keeps its set. */
	KUNIT_ASSERT_EQ(test, 0, hghca_counter_bind_qp(&this->counter, &this->other->ibqp, 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, hghca_counter_bind_qp(&this->counter, ibqp, 1));
	KUNIT_EXPECT_EQ(test, 1, this->counter.id);
	this->refused = 0;
	KUNIT_ASSERT_EQ(test, 0, hghca_counter_bind_qp(&this->counter, ibqp, 1));

	this->refused = 0xe03;
	KUNIT_EXPECT_EQ(test, -EINVAL, hghca_counter_unbind_qp(ibqp, 1));
	KUNIT_EXPECT_PTR_EQ(test, &this->counter, ibqp->counter);
	KUNIT_EXPECT_EQ(test, 1, be32_to_cpu(this->hqp->qpc.counter_set));
	hghca_counter_dealloc(&this->counter);
}

/* A device that was given up counts for nobody. */
static void observe_given_up(struct kunit *test)
{
	struct observe *this = test->priv;
	struct ib_qp *ibqp = &this->hqp->ibqp;

	KUNIT_ASSERT_EQ(test, 0, observe_to_init(this->hqp));
	KUNIT_ASSERT_EQ(test, 0, hghca_counter_bind_qp(&this->counter, ibqp, 1));
	hghca_dev_fail(this->fake->hdev, "a test");
	KUNIT_EXPECT_EQ(test, -EIO, hghca_counter_update_stats(&this->counter));
	KUNIT_EXPECT_EQ(test, 0, hghca_counter_unbind_qp(ibqp, 1));
	KUNIT_EXPECT_NULL(test, ibqp->counter);
	KUNIT_EXPECT_EQ(test, -EIO, hghca_counter_bind_qp(&this->counter, ibqp, 1));
	hghca_counter_dealloc(&this->counter);
}

/* Under the port's indices; what is not counted of QPs is not shown. */
static void observe_values(struct kunit *test)
{
	struct observe *this = test->priv;
	int i, place, shown = 0;

	KUNIT_ASSERT_EQ(test, 0, hghca_counter_bind_qp(&this->counter, &this->hqp->ibqp, 1));
	this->counter.stats = hghca_counter_alloc_stats(&this->counter);
	KUNIT_ASSERT_NOT_NULL(test, this->counter.stats);
	for (i = 0; i < OBSERVE_SET; i++)
		this->values[i] = 0x0102030405060000 + i;
	KUNIT_EXPECT_EQ(test, 0, hghca_counter_update_stats(&this->counter));
	KUNIT_EXPECT_EQ(test, OBSERVE_COUNTERS, this->counter.stats->num_counters);
	for (i = 0; i < this->counter.stats->num_counters; i++) {
		place = observe_place(this->counter.stats->descs[i].name);
		KUNIT_EXPECT_EQ(test, place < 0, test_bit(i, this->counter.stats->is_disabled));
		KUNIT_EXPECT_EQ(test, place < 0 ? 0 : 0x0102030405060000 + place,
				this->counter.stats->value[i]);
		shown += place >= 0;
	}
	KUNIT_EXPECT_EQ(test, OBSERVE_SET, shown);
	/* What the device refuses changes no value. */
	this->refused = 0xe04;
	this->status = 0x0a;
	this->values[0] = 0;
	KUNIT_EXPECT_EQ(test, -EBADF, hghca_counter_update_stats(&this->counter));
	KUNIT_EXPECT_EQ(test, 0x0102030405060000, this->counter.stats->value[0]);
	rdma_free_hw_stats_struct(this->counter.stats);
	hghca_counter_dealloc(&this->counter);
}

static const struct observe_stats {
	const char *name;
	u32 port;
	u32 caps;
	u8 op_modifier;
} observe_stats[] = {
	{ "device", 0, 0x13ff, 0 },
	{ "port", 1, 0x13ff, 1 },
	{ "port, without counter sets", 1, 0x3ff, 0 },
};

static void observe_stats_name(const struct observe_stats *stats, char *desc)
{
	strscpy(desc, stats->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(observe_stats, observe_stats, observe_stats_name);

/* ib_core adds what sets count to the port's counters, and to no others. */
static void observe_hw_stats(struct kunit *test)
{
	const struct observe_stats *param = test->param_value;
	struct observe *this = test->priv;
	struct hghca_dev *hdev = this->fake->hdev;
	struct ib_device *ibdev = &hdev->ibdev;
	struct rdma_hw_stats *stats;
	u32 mark;
	int i;

	stats = param->port ? hghca_alloc_hw_port_stats(ibdev, param->port) :
			      hghca_alloc_hw_device_stats(ibdev);
	KUNIT_ASSERT_NOT_NULL(test, stats);
	hdev->limits.caps = param->caps;
	for (i = 0; i < OBSERVE_COUNTERS; i++)
		this->values[i] = 7 * i;
	mark = fake_mark(this->fake);
	KUNIT_EXPECT_EQ(test, OBSERVE_COUNTERS, hghca_get_hw_stats(ibdev, stats, param->port, 3));
	KUNIT_EXPECT_EQ(test, 0xe02, observe_command(test, mark)->op);
	KUNIT_EXPECT_EQ(test, param->op_modifier, observe_command(test, mark)->op_modifier);
	for (i = 0; i < OBSERVE_COUNTERS; i++)
		KUNIT_EXPECT_EQ(test, 7 * i, stats->value[i]);
	/* An error counts once the device is registered. */
	this->refused = 0xe02;
	this->status = 0x06;
	KUNIT_EXPECT_EQ(test, OBSERVE_COUNTERS, hghca_get_hw_stats(ibdev, stats, param->port, 3));
	hdev->registered = true;
	KUNIT_EXPECT_EQ(test, -EBUSY, hghca_get_hw_stats(ibdev, stats, param->port, 3));
	hdev->registered = false;
	rdma_free_hw_stats_struct(stats);
}

static struct kunit_case observe_counter_cases[] = {
	KUNIT_CASE(observe_bind),
	KUNIT_CASE(observe_exhausted),
	KUNIT_CASE(observe_refused),
	KUNIT_CASE(observe_given_up),
	KUNIT_CASE(observe_values),
	KUNIT_CASE_PARAM(observe_hw_stats, observe_stats_gen_params),
	{}
};

static struct kunit_suite observe_counter_suite = {
	.name = "hghca_counters",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = observe_init,
	.test_cases = observe_counter_cases,
};

/* ------------------------------------------------------------------ */
/* Performance management                                               */

struct observe_pma {
	const char *name;
	u8 mgmt_class, class_version, method;
	u16 attr;
	u8 port_select;
	int result;	/* 1 not for us, 3 answered, 0 failed */
	u16 status;
};

static const struct observe_pma observe_pmas[] = {
	{ "ClassPortInfo", 4, 1, 1, 0x0001, 0, 3, 0 },
	{ "PortCounters", 4, 1, 1, 0x0012, 1, 3, 0 },
	{ "PortCounters of all ports", 4, 1, 1, 0x0012, 0xff, 3, 0 },
	{ "PortCountersExtended", 4, 1, 1, 0x001d, 1, 3, 0 },
	{ "PortCounters of port 2", 4, 1, 1, 0x0012, 2, 3, 0x1c },
	{ "PortCountersExtended of port 0", 4, 1, 1, 0x001d, 0, 3, 0x1c },
	{ "another attribute", 4, 1, 1, 0x0010, 1, 3, 0x0c },
	{ "Set", 4, 1, 2, 0x0012, 1, 3, 0x0c },
	{ "another version", 4, 2, 1, 0x0012, 1, 3, 0x04 },
	{ "an undefined method", 4, 1, 0x33, 0x0012, 1, 3, 0x08 },
	{ "GetResp", 4, 1, 0x81, 0x0012, 1, 1 },
	{ "another response", 4, 1, 0xb3, 0x0012, 1, 1 },
	{ "Send", 4, 1, 3, 0x0012, 1, 1 },
	{ "Trap", 4, 1, 5, 0x0002, 1, 1 },
	{ "TrapRepress", 4, 1, 7, 0x0002, 1, 1 },
	{ "subnet administration", 3, 2, 1, 0x0001, 1, 1 },
	{ "subnet management", 1, 1, 1, 0x0011, 1, 1 },
	{ "communication management", 7, 2, 3, 0x0010, 1, 1 },
};

static void observe_pma_name(const struct observe_pma *pma, char *desc)
{
	strscpy(desc, pma->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(observe_pma, observe_pmas, observe_pma_name);

struct observe_mads {
	u8 in[256], out[256];
};

static void observe_free_netdev(void *netdev)
{
	free_netdev(netdev);
}

/* Gives the request and what becomes of it. */
static int observe_process(struct kunit *test, const struct observe_pma *param,
			   struct observe_mads *mads)
{
	struct observe *this = test->priv;
	struct hghca_dev *hdev = this->fake->hdev;
	size_t size = sizeof(mads->out);
	u16 pkey_index = 0;

	if (!hdev->netdev) {
		hdev->netdev = alloc_etherdev(0);
		KUNIT_ASSERT_NOT_NULL(test, hdev->netdev);
		KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, observe_free_netdev,
								   hdev->netdev));
	}
	memset(mads->in, 0, sizeof(mads->in));
	memset(mads->out, 0xa5, sizeof(mads->out));
	mads->in[0] = 1;
	mads->in[1] = param->mgmt_class;
	mads->in[2] = param->class_version;
	mads->in[3] = param->method;
	mads->in[15] = 0x42;	/* end of the transaction's number */
	mads->in[16] = param->attr >> 8;
	mads->in[17] = param->attr;
	mads->in[65] = param->port_select;
	return hghca_process_mad(&hdev->ibdev, 0, 1, NULL, NULL, (const void *)mads->in,
				 (void *)mads->out, &size, &pkey_index);
}

static void observe_pma_answers(struct kunit *test)
{
	const struct observe_pma *param = test->param_value;
	struct observe_mads *mads = kunit_kzalloc(test, sizeof(*mads), GFP_KERNEL);
	struct observe *this = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, mads);
	KUNIT_ASSERT_EQ(test, param->result, observe_process(test, param, mads));
	if (param->result == 3) {
		KUNIT_EXPECT_EQ(test, 0x81, mads->out[3]);
		KUNIT_EXPECT_EQ(test, param->status, mads->out[4] << 8 | mads->out[5]);
		/* All else of the header is that of the request. */
		KUNIT_EXPECT_MEMEQ(test, mads->in, mads->out, 3);
		KUNIT_EXPECT_MEMEQ(test, mads->in + 6, mads->out + 6, 18);
		if (param->status)
			KUNIT_EXPECT_NULL(test, memchr_inv(mads->out + 64, 0, 192));
	} else {
		KUNIT_EXPECT_NULL(test, memchr_inv(mads->out, 0xa5, sizeof(mads->out)));
	}
	/* The device refuses its counters. */
	this->refused = 0xe02;
	this->status = 0x06;
	if (!param->status && param->result == 3 && param->attr != 0x0001)
		KUNIT_EXPECT_EQ(test, 0, observe_process(test, param, mads));
}

static void observe_pma_values(struct kunit *test)
{
	struct observe_mads *mads = kunit_kzalloc(test, sizeof(*mads), GFP_KERNEL);
	struct observe *this = test->priv;
	const u8 *data;

	KUNIT_ASSERT_NOT_NULL(test, mads);
	data = mads->out + 64;
	this->values[0] = 0x100000005;	/* tx_packets */
	this->values[1] = 7;		/* rx_packets */
	this->values[2] = 4003;		/* tx_bytes */
	this->values[3] = 5ULL << 34;	/* rx_bytes */
	this->values[4] = 60000;	/* rx_too_short */
	this->values[5] = 6000;		/* rx_bad_header */
	this->values[6] = 2;		/* rx_bad_icrc */

	KUNIT_ASSERT_EQ(test, 3, observe_process(test, &observe_pmas[1], mads));
	KUNIT_EXPECT_EQ(test, 1, data[1]);
	KUNIT_EXPECT_EQ(test, 0, data[7]);
	KUNIT_EXPECT_EQ(test, 0xffff, data[8] << 8 | data[9]);
	KUNIT_EXPECT_EQ(test, 1000, be32_at(data, 24));
	KUNIT_EXPECT_EQ(test, 0xffffffff, be32_at(data, 28));
	KUNIT_EXPECT_EQ(test, 0xffffffff, be32_at(data, 32));
	KUNIT_EXPECT_EQ(test, 7, be32_at(data, 36));
	KUNIT_EXPECT_NULL(test, memchr_inv(data + 40, 0, 152));

	/* The link has gone down now and then; errors that fit. */
	atomic_set(&this->fake->hdev->netdev->carrier_down_count, 9);
	this->values[4] = 300;
	KUNIT_ASSERT_EQ(test, 3, observe_process(test, &observe_pmas[2], mads));
	KUNIT_EXPECT_EQ(test, 0xff, data[1]);
	KUNIT_EXPECT_EQ(test, 9, data[7]);
	KUNIT_EXPECT_EQ(test, 6302, data[8] << 8 | data[9]);
	atomic_set(&this->fake->hdev->netdev->carrier_down_count, 256);
	KUNIT_ASSERT_EQ(test, 3, observe_process(test, &observe_pmas[1], mads));
	KUNIT_EXPECT_EQ(test, 255, data[7]);

	KUNIT_ASSERT_EQ(test, 3, observe_process(test, &observe_pmas[3], mads));
	KUNIT_EXPECT_EQ(test, 1, data[1]);
	KUNIT_EXPECT_EQ(test, 1000, be64_at(data, 8));
	KUNIT_EXPECT_EQ(test, 5ULL << 32, be64_at(data, 16));
	KUNIT_EXPECT_EQ(test, 0x100000005, be64_at(data, 24));
	KUNIT_EXPECT_EQ(test, 7, be64_at(data, 32));
	KUNIT_EXPECT_NULL(test, memchr_inv(data + 40, 0, 152));

	/* Three datagrams of groups came in, and QPs have had five copies. */
	this->values[HGHCA_COUNTER_multicast_received] = 3;
	this->values[HGHCA_COUNTER_multicast_copies] = 5;
	this->values[HGHCA_COUNTER_multicast_extra_bytes] = 4ULL << 32;
	KUNIT_ASSERT_EQ(test, 3, observe_process(test, &observe_pmas[3], mads));
	KUNIT_EXPECT_EQ(test, 4ULL << 32, be64_at(data, 16));
	KUNIT_EXPECT_EQ(test, 5, be64_at(data, 32));

	/* All ports may be asked for, and 64 bits without the four of the IETF; about a second. */
	KUNIT_ASSERT_EQ(test, 3, observe_process(test, &observe_pmas[0], mads));
	KUNIT_EXPECT_EQ(test, 0x01010500, be32_at(data, 0));
	KUNIT_EXPECT_EQ(test, 18, be32_at(data, 4) & 0x1f);
	KUNIT_EXPECT_NULL(test, memchr_inv(data + 8, 0, 184));
}

static struct kunit_case observe_pma_cases[] = {
	KUNIT_CASE_PARAM(observe_pma_answers, observe_pma_gen_params),
	KUNIT_CASE(observe_pma_values),
	{}
};

static struct kunit_suite observe_pma_suite = {
	.name = "hghca_pma",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = observe_init,
	.test_cases = observe_pma_cases,
};

/* ------------------------------------------------------------------ */
/* Details and raw dumps                                                */

static void observe_free_skb(void *skb)
{
	kfree_skb(skb);
}

static struct sk_buff *observe_skb(struct kunit *test, unsigned int size)
{
	struct sk_buff *skb = alloc_skb(size, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, skb);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, observe_free_skb, skb));
	/* No more than that, whatever the allocator gave. */
	skb_reserve(skb, skb_tailroom(skb) - size);
	return skb;
}

static int observe_fill(struct observe *this, struct ib_mr *ibmr, struct sk_buff *skb,
			const char *what, bool raw)
{
	switch (what[0]) {
	case 'Q':
		return raw ? hghca_fill_res_qp_entry_raw(skb, &this->hqp->ibqp) :
			     hghca_fill_res_qp_entry(skb, &this->hqp->ibqp);
	case 'C':
		return raw ? hghca_fill_res_cq_entry_raw(skb, &this->hcq->ibcq) :
			     hghca_fill_res_cq_entry(skb, &this->hcq->ibcq);
	case 'M':
		return raw ? hghca_fill_res_mr_entry_raw(skb, ibmr) :
			     hghca_fill_res_mr_entry(skb, ibmr);
	default:
		return raw ? hghca_fill_res_srq_entry_raw(skb, &this->hsrq->ibsrq) :
			     hghca_fill_res_srq_entry(skb, &this->hsrq->ibsrq);
	}
}

static const struct observe_object {
	const char *name;
	u16 op;
	u32 bytes;
	u16 then;		/* opcode for a context behind the first, or 0 */
	u32 then_bytes;
	u32 then_number;
} observe_objects[] = {
	{ "QP", 0x022, 192 },
	/* And the EQ that its context names at 10h: see observe_answer(). */
	{ "CQ", 0x018, 64, 0x015, 64, 0x08090a0b },
	{ "MR", 0x00e, 64 },
	{ "SRQ", 0x037, 64 },
};

static void observe_object_name(const struct observe_object *object, char *desc)
{
	strscpy(desc, object->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(observe_object, observe_objects, observe_object_name);

static u32 observe_number(const struct observe *this, const struct ib_mr *ibmr, u16 op)
{
	switch (op) {
	case 0x022:
		return this->hqp->hw.qpn;
	case 0x018:
		return this->hcq->hw.cqn;
	case 0x00e:
		return ibmr->lkey >> 8;
	default:
		return this->hsrq->hw.srqn;
	}
}

/* One that the device does not have is left out; other errors are errors. */
static void observe_raw_refused(struct kunit *test, struct ib_mr *ibmr, u16 op)
{
	const struct observe_object *param = test->param_value;
	struct observe *this = test->priv;
	struct sk_buff *skb = observe_skb(test, 512);

	this->refused = op;
	this->status = 0x09;
	KUNIT_EXPECT_EQ(test, -EAGAIN, observe_fill(this, ibmr, skb, param->name, true));
	this->status = 0x03;
	KUNIT_EXPECT_EQ(test, -EINVAL, observe_fill(this, ibmr, skb, param->name, true));
	KUNIT_EXPECT_EQ(test, 0, skb->len);
}

/* The bytes that the device has answered, and what comes of it when it does not. */
static void observe_raw(struct kunit *test)
{
	const struct observe_object *param = test->param_value;
	struct observe *this = test->priv;
	struct ib_mr *ibmr = fake_mr(test, this->pd, 4);
	struct sk_buff *skb = observe_skb(test, 512);
	u32 bytes = param->bytes + param->then_bytes;
	u32 mark = fake_mark(this->fake);
	struct fake_command *cmd;
	struct nlattr *nla;
	u32 i;

	KUNIT_ASSERT_EQ(test, 0, observe_fill(this, ibmr, skb, param->name, true));
	KUNIT_ASSERT_EQ(test, mark + (param->then ? 2 : 1), fake_mark(this->fake));
	cmd = fake_nth(this->fake, mark);
	KUNIT_ASSERT_NOT_NULL(test, cmd);
	KUNIT_EXPECT_EQ(test, param->op, cmd->op);
	KUNIT_EXPECT_EQ(test, observe_number(this, ibmr, param->op), cmd->in_modifier);
	if (param->then) {
		cmd = fake_nth(this->fake, mark + 1);
		KUNIT_ASSERT_NOT_NULL(test, cmd);
		KUNIT_EXPECT_EQ(test, param->then, cmd->op);
		KUNIT_EXPECT_EQ(test, param->then_number, cmd->in_modifier);
	}
	nla = (void *)skb->data;
	KUNIT_ASSERT_EQ(test, nla_total_size(bytes), skb->len);
	KUNIT_ASSERT_EQ(test, RDMA_NLDEV_ATTR_RES_RAW, nla_type(nla));
	KUNIT_ASSERT_EQ(test, bytes, nla_len(nla));
	for (i = 0; i < param->bytes; i++)
		KUNIT_EXPECT_EQ(test, (u8)(i ^ param->op), ((u8 *)nla_data(nla))[i]);
	for (i = 0; i < param->then_bytes; i++)
		KUNIT_EXPECT_EQ(test, (u8)(i ^ param->then),
				((u8 *)nla_data(nla))[param->bytes + i]);

	KUNIT_EXPECT_EQ(test, -EMSGSIZE, observe_fill(this, ibmr, observe_skb(test, bytes),
						      param->name, true));
	observe_raw_refused(test, ibmr, param->op);
	if (param->then)
		observe_raw_refused(test, ibmr, param->then);
}

/* The number of the detail with this name, or -1. */
static s64 observe_detail(const struct sk_buff *skb, const char *name)
{
	const struct nlattr *table = (const void *)skb->data;
	const struct nlattr *nla;
	bool found = false;
	int rest;

	if (nla_type(table) != RDMA_NLDEV_ATTR_DRIVER)
		return -1;
	nla_for_each_nested(nla, table, rest) {
		if (nla_type(nla) == RDMA_NLDEV_ATTR_DRIVER_STRING)
			found = !nla_strcmp(nla, name);
		else if (found && nla_type(nla) == RDMA_NLDEV_ATTR_DRIVER_U64)
			return nla_get_u64(nla);
	}
	return -1;
}

static void observe_details(struct kunit *test)
{
	const struct observe_object *param = test->param_value;
	struct observe *this = test->priv;
	struct ib_mr *ibmr = fake_mr(test, this->pd, 4);
	struct sk_buff *skb = observe_skb(test, 1024);
	u32 mark = fake_mark(this->fake);
	unsigned int whole, size;

	KUNIT_ASSERT_EQ(test, 0, observe_fill(this, ibmr, skb, param->name, false));
	switch (param->op) {
	case 0x022:
		KUNIT_EXPECT_EQ(test, 4, observe_detail(skb, "sq_wqes"));
		KUNIT_EXPECT_EQ(test, 8, observe_detail(skb, "rq_wqes"));
		KUNIT_EXPECT_EQ(test, 64, observe_detail(skb, "rq_stride"));
		KUNIT_EXPECT_EQ(test, this->hcq->hw.cqn, observe_detail(skb, "send_cqn"));
		KUNIT_EXPECT_EQ(test, 0, observe_detail(skb, "srqn"));
		KUNIT_EXPECT_EQ(test, 0, observe_detail(skb, "sq_posted"));
		KUNIT_ASSERT_EQ(test, 0, hghca_fill_res_qp_entry(observe_skb(test, 1024),
								 &this->other->ibqp));
		break;
	case 0x018:
		KUNIT_EXPECT_EQ(test, this->hcq->hw.cqn, observe_detail(skb, "hw_cqn"));
		KUNIT_EXPECT_EQ(test, 16, observe_detail(skb, "hw_cqes"));
		KUNIT_EXPECT_EQ(test, 0, observe_detail(skb, "consumed"));
		break;
	case 0x00e:
		KUNIT_EXPECT_EQ(test, 4, observe_detail(skb, "mtts"));
		KUNIT_EXPECT_EQ(test, -1, observe_detail(skb, "iova"));
		break;
	default:
		KUNIT_EXPECT_EQ(test, this->hsrq->hw.srqn, observe_detail(skb, "hw_srqn"));
		KUNIT_EXPECT_EQ(test, 8, observe_detail(skb, "wqes"));
		KUNIT_EXPECT_EQ(test, 0, observe_detail(skb, "posted"));
	}
	/* Wherever the message ends too early, nothing of it is left. */
	whole = skb->len;
	for (size = 0; size < whole; size += 4) {
		skb = observe_skb(test, size);
		KUNIT_EXPECT_EQ(test, -EMSGSIZE,
				observe_fill(this, ibmr, skb, param->name, false));
		KUNIT_EXPECT_EQ(test, 0, skb->len);
	}
	/* The device is not asked. */
	KUNIT_EXPECT_EQ(test, mark, fake_mark(this->fake));
}

static struct kunit_case observe_restrack_cases[] = {
	KUNIT_CASE_PARAM(observe_raw, observe_object_gen_params),
	KUNIT_CASE_PARAM(observe_details, observe_object_gen_params),
	{}
};

static struct kunit_suite observe_restrack_suite = {
	.name = "hghca_restrack",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = observe_init,
	.test_cases = observe_restrack_cases,
};

/* ------------------------------------------------------------------ */
/* Tracepoints                                                          */

struct observe_hits {
	int posts, dones, rings, fails;
	struct hghca_cmd cmd;
	u8 status;
	int err;
	u64 start;
	u64 doorbell;
	const char *why;
	bool by_event;
};

static void observe_on_post(void *data, const struct hghca_dev *hdev, const struct hghca_cmd *cmd,
			    bool by_event)
{
	struct observe_hits *hits = data;

	hits->posts++;
	hits->cmd = *cmd;
	hits->by_event = by_event;
}

static void observe_on_done(void *data, const struct hghca_dev *hdev, const struct hghca_cmd *cmd,
			    u8 status, int err, u64 start)
{
	struct observe_hits *hits = data;

	hits->dones++;
	hits->cmd = *cmd;
	hits->status = status;
	hits->err = err;
	hits->start = start;
}

static void observe_on_ring(void *data, const struct hghca_dev *hdev, u64 doorbell)
{
	struct observe_hits *hits = data;

	hits->rings++;
	hits->doorbell = doorbell;
}

static void observe_on_fail(void *data, const struct hghca_dev *hdev, const char *why)
{
	struct observe_hits *hits = data;

	hits->fails++;
	hits->why = why;
}

static void observe_trace(struct kunit *test)
{
	struct observe *this = test->priv;
	struct observe_hits *hits = kunit_kzalloc(test, sizeof(*hits), GFP_KERNEL);
	struct hghca_dev *hdev = this->fake->hdev;

	KUNIT_ASSERT_NOT_NULL(test, hits);
	KUNIT_ASSERT_EQ(test, 0, register_trace_hghca_cmd_post(observe_on_post, hits));
	KUNIT_ASSERT_EQ(test, 0, register_trace_hghca_cmd_done(observe_on_done, hits));
	KUNIT_ASSERT_EQ(test, 0, register_trace_hghca_ring_sq(observe_on_ring, hits));
	KUNIT_ASSERT_EQ(test, 0, register_trace_hghca_fail(observe_on_fail, hits));

	this->refused = 0x031;
	this->status = 0x0a;
	KUNIT_EXPECT_EQ(test, -EBADF, hghca_cmd_nop(hdev));
	KUNIT_EXPECT_EQ(test, 1, hits->posts);
	KUNIT_EXPECT_EQ(test, 1, hits->dones);
	KUNIT_EXPECT_TRUE(test, hits->by_event);
	KUNIT_EXPECT_EQ(test, 0x031, hits->cmd.op);
	KUNIT_EXPECT_EQ(test, 0x1f, hits->cmd.in_modifier);
	/* Not that of commands that are polled. */
	KUNIT_EXPECT_NE(test, 0xffff, hits->cmd.token);
	KUNIT_EXPECT_EQ(test, 0x0a, hits->status);
	KUNIT_EXPECT_EQ(test, 0, hits->err);
	KUNIT_EXPECT_NE(test, 0, hits->start);

	hghca_ring_sq(hdev, 0x01000520, 0x123, 7);
	KUNIT_EXPECT_EQ(test, 1, hits->rings);
	KUNIT_EXPECT_EQ(test, 0x0001230701000520, hits->doorbell);

	hghca_dev_fail(hdev, "a test");
	hghca_dev_fail(hdev, "a test");
	KUNIT_EXPECT_EQ(test, 1, hits->fails);
	KUNIT_EXPECT_STREQ(test, "a test", hits->why);
	/* What is not given to the device is not a command. */
	KUNIT_EXPECT_EQ(test, -EIO, hghca_cmd_nop(hdev));
	KUNIT_EXPECT_EQ(test, 1, hits->posts);
	KUNIT_EXPECT_EQ(test, 1, hits->dones);

	unregister_trace_hghca_fail(observe_on_fail, hits);
	unregister_trace_hghca_ring_sq(observe_on_ring, hits);
	unregister_trace_hghca_cmd_done(observe_on_done, hits);
	unregister_trace_hghca_cmd_post(observe_on_post, hits);
	tracepoint_synchronize_unregister();
}

static struct kunit_case observe_trace_cases[] = {
	KUNIT_CASE(observe_trace),
	{}
};

static struct kunit_suite observe_trace_suite = {
	.name = "hghca_trace",
	.init = observe_init,
	.test_cases = observe_trace_cases,
};

kunit_test_suites(&observe_counter_suite, &observe_pma_suite, &observe_restrack_suite,
		  &observe_trace_suite);
