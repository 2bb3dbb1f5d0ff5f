// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of a device without extensions (interface document, 4.2, 5.2 and 5.4): where
 * the end of a receive queue is, CQEs that nobody has asked for, events that come unasked,
 * and paths without a GID table.
 */
#include <linux/completion.h>
#include <linux/etherdevice.h>
#include <linux/slab.h>
#include <linux/unaligned.h>

#include "fake.h"

#define BASE_WQES	3	/* asked for, and as many as a queue of 4 slots takes */
#define BASE_STRIDE	64
#define BASE_CQES	7

struct base {
	struct fake *fake;
	struct hghca_cq *hcq;
	struct hghca_qp *hqp;
	struct completion called;
	int calls;
};

static void base_set_up(struct fake *fake)
{
	fake->limits.revision = 0;
	fake->limits.caps = 0;
}

static void base_handler(struct ib_cq *ibcq, void *context)
{
	struct base *this = context;

	this->calls++;
	complete(&this->called);
}

static int base_init(struct kunit *test)
{
	static const struct fake_qp_attr attr = {
		.type = IB_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = BASE_WQES, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct base *this = kunit_kzalloc(test, sizeof(*this), GFP_KERNEL);
	int err;

	if (!this)
		return -ENOMEM;
	err = fake_test_open(test, base_set_up, true);
	if (err)
		return err;
	this->fake = test->priv;
	init_completion(&this->called);
	this->hcq = fake_cq(test, this->fake, BASE_CQES);
	this->hcq->ibcq.comp_handler = base_handler;
	this->hcq->ibcq.cq_context = this;
	this->hqp = fake_qp(test, fake_pd(test, this->fake), this->hcq, this->hcq, &attr);
	this->hqp->state = IB_QPS_RTS;
	test->priv = this;
	return 0;
}

static int base_post_recv(struct base *this, u64 wr_id)
{
	struct ib_sge sge = { .length = 100, .lkey = 0x77 };
	struct ib_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };
	const struct ib_recv_wr *bad_wr;

	return hghca_post_recv(&this->hqp->ibqp, &wr, &bad_wr);
}

static int base_post_send(struct base *this, u64 wr_id, int flags)
{
	struct ib_sge sge = { .length = 100, .lkey = 0x77 };
	struct ib_send_wr wr = { .wr_id = wr_id, .opcode = IB_WR_SEND, .sg_list = &sge,
				 .num_sge = 1, .send_flags = flags };
	const struct ib_send_wr *bad_wr;

	return hghca_post_send(&this->hqp->ibqp, &wr, &bad_wr);
}

/* CQE number @index of slot @slot: table 3-3-1 of the base document. */
static void base_put(struct base *this, u32 index, u32 slot, u8 opcode, bool is_send, u8 syndrome)
{
	u32 entries = BIT(this->hcq->log_size);
	u8 *at = hghca_queue_at(&this->hcq->queue, index % entries * 32);

	memset(at, 0, 31);
	put_unaligned_le32(this->hqp->hw.qpn, at);
	at[0x10] = syndrome;
	put_unaligned_le32(slot * BASE_STRIDE, at + 0x18);
	at[0x1c] = opcode;
	at[0x1d] = is_send;
	at[0x1f] = 0;
}

static void base_event(struct base *this)
{
	__be32 eqe[8] = { 0, cpu_to_be32(this->hcq->hw.cqn) };

	fake_event(this->fake, 2, eqe, true);
}

/* ------------------------------------------------------------------ */

static bool base_is_marked(const struct base *this, u32 slot)
{
	return memchr_inv(hghca_queue_at(&this->hqp->rq.queue, slot * BASE_STRIDE), 0, 16);
}

/* The first 16 bytes of posted WQEs are not all zero, those of the slot behind them are. */
static void base_recv_queue(struct kunit *test)
{
	struct base *this = test->priv;
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };
	struct ib_wc wc;
	u32 i;

	KUNIT_EXPECT_EQ(test, BASE_WQES, this->hqp->cap.max_recv_wr);
	for (i = 0; i < BASE_WQES; i++) {
		KUNIT_EXPECT_FALSE(test, base_is_marked(this, i));
		KUNIT_ASSERT_EQ(test, 0, base_post_recv(this, i));
		KUNIT_EXPECT_TRUE(test, base_is_marked(this, i));
	}
	KUNIT_EXPECT_FALSE(test, base_is_marked(this, 3));
	KUNIT_EXPECT_EQ(test, -ENOMEM, base_post_recv(this, 9));
	KUNIT_EXPECT_FALSE(test, base_is_marked(this, 3));
	/* Each that completes makes room for one, and the end moves on. */
	for (i = 0; i < 9; i++) {
		base_put(this, i, i % 4, 0x04, false, 0);
		KUNIT_ASSERT_EQ(test, 1, hghca_poll_cq(&this->hcq->ibcq, 1, &wc));
		KUNIT_EXPECT_EQ(test, i, wc.wr_id);
		KUNIT_ASSERT_EQ(test, 0, base_post_recv(this, i + 3));
		KUNIT_EXPECT_TRUE(test, base_is_marked(this, (i + 3) % 4));
		KUNIT_EXPECT_FALSE(test, base_is_marked(this, (i + 4) % 4));
	}
	KUNIT_ASSERT_EQ(test, 0, hghca_modify_qp(&this->hqp->ibqp, &attr, IB_QP_STATE, NULL));
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_FALSE(test, base_is_marked(this, i));
}

/* The device is told of no record, nor of what else it lacks. */
static void base_contexts(struct kunit *test)
{
	struct base *this = test->priv;
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT, .port_num = 1,
		.qp_access_flags = IB_ACCESS_REMOTE_WRITE,
	};
	u32 mark = fake_mark(this->fake);
	struct hghca_cq *hcq = fake_new_cq(this->fake, 7);
	struct fake_command *seen;

	KUNIT_ASSERT_NOT_NULL(test, hcq);
	seen = fake_nth(this->fake, fake_mark(this->fake) - 1);
	KUNIT_EXPECT_GT(test, fake_mark(this->fake), mark);
	KUNIT_ASSERT_EQ(test, 0x016, seen->op);
	KUNIT_EXPECT_EQ(test, 0, be64_at(seen->mailbox, 0x30));
	fake_del_cq(hcq);

	this->hqp->state = IB_QPS_RESET;
	KUNIT_ASSERT_EQ(test, 0, hghca_modify_qp(&this->hqp->ibqp, &attr, IB_QP_STATE | IB_QP_PORT |
						 IB_QP_PKEY_INDEX | IB_QP_ACCESS_FLAGS, NULL));
	seen = fake_nth(this->fake, fake_mark(this->fake) - 1);
	KUNIT_ASSERT_EQ(test, 0x019, seen->op);
	KUNIT_EXPECT_NULL(test, memchr_inv(seen->mailbox + 0xa0, 0, 0x1c));
	KUNIT_EXPECT_EQ(test, 0, be32_at(seen->mailbox, 0xa8));
}

/* ------------------------------------------------------------------ */

/* Each send has a CQE; those of unsignaled ones are dropped unless they are in error. */
static void base_unsignaled(struct kunit *test)
{
	struct base *this = test->priv;
	struct ib_wc wc[4];
	u32 i;

	for (i = 0; i < 4; i++)
		KUNIT_ASSERT_EQ(test, 0, base_post_send(this, i, i == 2 ? IB_SEND_SIGNALED : 0));
	base_put(this, 0, 0, 0x0a, true, 0);
	KUNIT_EXPECT_EQ(test, 0, hghca_poll_cq(&this->hcq->ibcq, 4, wc));
	/* Its slot is free again. */
	KUNIT_EXPECT_EQ(test, 0, base_post_send(this, 4, 0));
	for (i = 1; i < 3; i++)
		base_put(this, i, i, 0x0a, true, 0);
	base_put(this, 3, 3, 0xff, true, 0x15);
	KUNIT_ASSERT_EQ(test, 2, hghca_poll_cq(&this->hcq->ibcq, 4, wc));
	KUNIT_EXPECT_EQ(test, 2, wc[0].wr_id);
	KUNIT_EXPECT_EQ(test, IB_WC_SUCCESS, wc[0].status);
	KUNIT_EXPECT_EQ(test, 3, wc[1].wr_id);
	KUNIT_EXPECT_EQ(test, IB_WC_RETRY_EXC_ERR, wc[1].status);
}

/* A CQ has room for the CQEs of all sends, beside those that were asked for. */
static void base_cq_room(struct kunit *test)
{
	static const struct fake_qp_attr attr = {
		.type = IB_QPT_RC,
		.cap = { .max_send_wr = 64, .max_send_sge = 1 },
	};
	struct base *this = test->priv;
	struct hghca_pd *pd = fake_pd(test, this->fake);
	struct hghca_qp *hqp;

	/* 7 that were asked for, and 4 of the QP. */
	KUNIT_EXPECT_EQ(test, 4, this->hcq->log_size);
	KUNIT_EXPECT_EQ(test, BASE_CQES, this->hcq->ibcq.cqe);
	hqp = fake_new_qp(pd, this->hcq, this->hcq, &attr);
	KUNIT_ASSERT_NOT_NULL(test, hqp);
	KUNIT_EXPECT_EQ(test, 7, this->hcq->log_size);
	KUNIT_EXPECT_EQ(test, BASE_CQES, this->hcq->ibcq.cqe);
	KUNIT_EXPECT_EQ(test, 0, hghca_resize_user_cq(&this->hcq->ibcq, 100, NULL));
	KUNIT_EXPECT_EQ(test, 8, this->hcq->log_size);
	KUNIT_EXPECT_EQ(test, 255 - 68, this->hcq->ibcq.cqe);
	fake_del_qp(hqp);
	KUNIT_EXPECT_EQ(test, 4, this->hcq->reserved);
}

/* ------------------------------------------------------------------ */

/* One event for each arming, if there is a CQE, and no doorbell. */
static void base_events(struct kunit *test)
{
	struct base *this = test->priv;
	struct ib_wc wc;
	int i;

	fake_doorbell(this->fake, 0x10);
	fake_doorbell(this->fake, 0x20);
	/* Not armed, or without a CQE. */
	base_event(this);
	KUNIT_EXPECT_EQ(test, 0, hghca_req_notify_cq(&this->hcq->ibcq, IB_CQ_NEXT_COMP));
	base_event(this);
	KUNIT_EXPECT_EQ(test, 0, this->calls);
	for (i = 0; i < 2; i++)
		KUNIT_ASSERT_EQ(test, 0, base_post_send(this, i, IB_SEND_SIGNALED));
	base_put(this, 0, 0, 0x0a, true, 0);
	base_event(this);
	base_event(this);
	KUNIT_EXPECT_EQ(test, 1, this->calls);
	KUNIT_EXPECT_EQ(test, 1, hghca_poll_cq(&this->hcq->ibcq, 1, &wc));
	/* Armed too late for the event: the handler is called all the same. */
	base_put(this, 1, 1, 0x0a, true, 0);
	base_event(this);
	KUNIT_EXPECT_EQ(test, 1, this->calls);
	reinit_completion(&this->called);
	KUNIT_EXPECT_EQ(test, 1, hghca_req_notify_cq(&this->hcq->ibcq, IB_CQ_NEXT_COMP |
						     IB_CQ_REPORT_MISSED_EVENTS));
	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&this->called, HZ));
	flush_work(&this->hcq->event_work);
	KUNIT_EXPECT_EQ(test, 2, this->calls);
	KUNIT_EXPECT_EQ(test, 0, fake_doorbell(this->fake, 0x10));
	KUNIT_EXPECT_EQ(test, 0, fake_doorbell(this->fake, 0x20));
}

/* ------------------------------------------------------------------ */

static const u8 base_ipv4[16] = { [10] = 0xff, 0xff, 10, 10, 0, 1 };
static const u8 base_ipv6[16] = { 0xfe, 0x80, [15] = 1 };

static const struct base_path {
	const char *name;
	const u8 *sgid;
	const u8 *dgid;
	bool has_netdev;
	int err;
} base_paths[] = {
	{ "IPv4", base_ipv4, base_ipv4, true, 0 },
	{ "from IPv6", base_ipv6, base_ipv4, true, -EOPNOTSUPP },
	{ "to IPv6", base_ipv4, base_ipv6, true, -EOPNOTSUPP },
	{ "without a net device", base_ipv4, base_ipv4, false, -EINVAL },
};

static void base_path_name(const struct base_path *path, char *desc)
{
	strscpy(desc, path->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(base_path, base_paths, base_path_name);

/* Tables 3-2-41 and 3-4-9 of the base document. */
static void base_path(struct kunit *test)
{
	static const u8 smac[ETH_ALEN] = { 0x52, 0x54, 0x00, 0x01, 0x02, 0x03 };
	static const u8 dmac[ETH_ALEN] = { 0x52, 0x54, 0x00, 0x0a, 0x0b, 0x0c };
	const struct base_path *param = test->param_value;
	struct base *this = test->priv;
	struct ib_gid_attr source = { .device = &this->fake->hdev->ibdev, .port_num = 1 };
	struct net_device *netdev = alloc_etherdev(0);
	struct rdma_ah_init_attr init = {};
	struct hghca_ah hah = {};
	struct rdma_ah_attr ah = {
		.type = RDMA_AH_ATTR_TYPE_ROCE,
		.port_num = 1,
		.ah_flags = IB_AH_GRH,
		.grh = { .sgid_attr = &source, .hop_limit = 64 },
	};
	struct hghca_path path;

	KUNIT_ASSERT_NOT_NULL(test, netdev);
	eth_hw_addr_set(netdev, smac);
	memcpy(source.gid.raw, param->sgid, 16);
	memcpy(ah.grh.dgid.raw, param->dgid, 16);
	ether_addr_copy(ah.roce.dmac, dmac);
	if (param->has_netdev)
		RCU_INIT_POINTER(source.ndev, netdev);
	KUNIT_EXPECT_EQ(test, param->err, hghca_path_resolve(&ah, &path));
	hah.ibah.device = &this->fake->hdev->ibdev;
	init.ah_attr = &ah;
	KUNIT_EXPECT_EQ(test, param->err, hghca_create_ah(&hah.ibah, &init, NULL));
	if (!param->err) {
		const void *unit = hghca_ah_unit(&hah);

		KUNIT_EXPECT_EQ(test, 0, memcmp(path.smac, smac, ETH_ALEN));
		KUNIT_EXPECT_EQ(test, 1, le32_at(unit, 0x00));
		KUNIT_EXPECT_EQ(test, 0x0b0c0203, le32_at(unit, 0x04));
		KUNIT_EXPECT_EQ(test, 0x52540001, le32_at(unit, 0x08));
		KUNIT_EXPECT_EQ(test, 0x5254000a, le32_at(unit, 0x0c));
		KUNIT_EXPECT_EQ(test, 0x0a0a0001, le32_at(unit, 0x10));
		KUNIT_EXPECT_EQ(test, 0x0a0a0001, le32_at(unit, 0x14));
	}
	free_netdev(netdev);
}

static struct kunit_case base_cases[] = {
	KUNIT_CASE(base_recv_queue),
	KUNIT_CASE(base_contexts),
	KUNIT_CASE(base_unsignaled),
	KUNIT_CASE(base_cq_room),
	KUNIT_CASE(base_events),
	KUNIT_CASE_PARAM(base_path, base_path_gen_params),
	{}
};

static struct kunit_suite base_suite = {
	.name = "hghca_base",
	.init = base_init,
	.test_cases = base_cases,
};
kunit_test_suite(base_suite);
