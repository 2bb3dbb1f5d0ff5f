// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of the net device's receive ring when memory is short: what could
 * not be posted is posted later, also when nothing arrives any more; and of its QP when the
 * device refuses to start it.
 *
 * The device writes frames into the buffers that are posted.  A packet handler
 * keeps them, so that no buffer comes back; memory is short while the pool of
 * buffers asks for more in one piece than there can be.
 */
#include <linux/delay.h>
#include <linux/etherdevice.h>
#include <linux/rtnetlink.h>
#include <linux/unaligned.h>

#include "../../kernel/net/netdev.h"
#include "fake.h"

#define NETRING_TYPE		0x88b5	/* for experiments; IEEE 802 */
#define NETRING_FRAME		64	/* bytes */
#define NETRING_WAIT_MS		10000
#define NETRING_COMP_EQ		2	/* as the fake device numbers them */

struct netring {
	struct fake *fake;
	struct hghca_netdev *nd;
	struct packet_type handler;
	struct sk_buff_head frames;
	u32 produced;		/* CQEs */
};

static int netring_keep(struct sk_buff *skb, struct net_device *netdev,
			struct packet_type *handler, struct net_device *orig)
{
	struct netring *this = container_of(handler, struct netring, handler);

	skb_queue_tail(&this->frames, skb);
	return NET_RX_SUCCESS;
}

/* Before the net device goes: its pool waits for the buffers. */
static void netring_unregister(void *data)
{
	struct netring *this = data;

	dev_remove_pack(&this->handler);
	skb_queue_purge(&this->frames);
	hghca_netdev_unregister(this->fake->hdev);
}

static int netring_open(struct netring *this)
{
	int err;

	rtnl_lock();
	err = dev_open(this->nd->netdev, NULL);
	rtnl_unlock();
	return err;
}

static void netring_set_up(struct fake *fake)
{
	fake->port.mac_h = cpu_to_be32(0x02000000);
	fake->port.mac_l = cpu_to_be16(0x0001);
	fake->port.max_mtu = cpu_to_be32(9000);
}

static int netring_init(struct kunit *test)
{
	struct netring *this = kunit_kzalloc(test, sizeof(*this), GFP_KERNEL);
	int err;

	if (!this)
		return -ENOMEM;
	err = fake_test_open(test, netring_set_up, true);
	if (err)
		return err;
	this->fake = test->priv;
	err = hghca_netdev_register(this->fake->hdev);
	if (err)
		return err;
	this->nd = netdev_priv(this->fake->hdev->netdev);
	skb_queue_head_init(&this->frames);
	this->handler.type = htons(NETRING_TYPE);
	this->handler.dev = this->nd->netdev;
	this->handler.func = netring_keep;
	dev_add_pack(&this->handler);
	err = kunit_add_action_or_reset(test, netring_unregister, this);
	if (err)
		return err;
	test->priv = this;
	return netring_open(this);
}

/* WQEs posted, by the record. */
static u32 netring_posted(const struct netring *this)
{
	return le32_to_cpu(READ_ONCE(*this->nd->rx.dbr.record));
}

static bool netring_wait_posted(const struct netring *this, u32 count)
{
	unsigned long end = jiffies + msecs_to_jiffies(NETRING_WAIT_MS);

	while (netring_posted(this) != count) {
		if (time_after(jiffies, end))
			return false;
		msleep(20);
	}
	return true;
}

/* NAPI takes some at a time. */
static bool netring_wait_frames(struct netring *this, u32 count)
{
	unsigned long end = jiffies + msecs_to_jiffies(NETRING_WAIT_MS);

	while (skb_queue_len_lockless(&this->frames) != count) {
		if (time_after(jiffies, end))
			return false;
		msleep(20);
	}
	return true;
}

/* Buffers that there was no memory for: the driver's own count. */
static bool netring_wait_refused(const struct netring *this, u64 more_than)
{
	unsigned long end = jiffies + msecs_to_jiffies(NETRING_WAIT_MS);

	while (READ_ONCE(this->nd->rx.no_memory) <= more_than) {
		if (time_after(jiffies, end))
			return false;
		msleep(20);
	}
	return true;
}

/* A frame arrives: document 5.2, and 7 for its CQE. */
static void netring_receive(struct netring *this)
{
	u32 number = this->produced++;
	u32 offset = (number % HGHCA_NET_RX_SLOTS) << HGHCA_NET_STRIDE_LOG;
	const u8 *wqe = hghca_queue_at(&this->nd->rx.queue, offset);
	u8 *cqe = hghca_queue_at(&this->nd->cq.queue, number % BIT(HGHCA_NET_CQ_LOG) * 32);
	u8 *frame = fake_memory(le64_at(wqe, 0x18));

	memset(frame, 0, NETRING_FRAME);
	eth_broadcast_addr(frame);
	frame[6] = 0x02;
	put_unaligned_be16(NETRING_TYPE, frame + 12);

	memset(cqe, 0, 31);
	put_unaligned_le32(this->nd->hwqp.qpn, cqe + 0x00);
	put_unaligned_le32(NETRING_FRAME, cqe + 0x14);
	put_unaligned_le32(offset, cqe + 0x18);
	/* The owner is written last. */
	smp_store_release(&cqe[0x1f], 0);
}

static void netring_event(struct netring *this)
{
	u8 eqe[32] = {};

	put_unaligned_be32(this->nd->cq.hw.cqn, eqe + 0x04);
	/* The handler schedules NAPI, which runs as soon as it may. */
	local_bh_disable();
	fake_event(this->fake, NETRING_COMP_EQ, eqe, true);
	local_bh_enable();
}

static void netring_short_of_memory(struct netring *this, bool is_short)
{
	WRITE_ONCE(this->nd->rx.pool->p.order, is_short ? MAX_PAGE_ORDER + 1 : 0);
}

static const struct netring_count {
	const char *name;
	u32 frames;
} netring_counts[] = {
	{ "one buffer is missing", 1 },
	{ "some are", 70 },
	{ "all are, and nothing can arrive", HGHCA_NET_RX_SLOTS },
};

KUNIT_ARRAY_PARAM_DESC(netring_count, netring_counts, name);

/* One event for all of them: what comes after is the driver's own doing. */
static void netring_refilled(struct kunit *test)
{
	const struct netring_count *param = test->param_value;
	struct netring *this = test->priv;
	struct hghca_net_rx *rx = &this->nd->rx;
	u32 i;

	KUNIT_ASSERT_EQ(test, HGHCA_NET_RX_SLOTS, netring_posted(this));
	KUNIT_ASSERT_EQ(test, 0, rx->pool->p.order);
	netring_short_of_memory(this, true);
	for (i = 0; i < param->frames; i++)
		netring_receive(this);
	netring_event(this);
	KUNIT_ASSERT_TRUE(test, netring_wait_frames(this, param->frames));
	/* Refused, and refused again by time. */
	KUNIT_EXPECT_TRUE(test, netring_wait_refused(this, READ_ONCE(rx->no_memory) + 2));
	KUNIT_EXPECT_EQ(test, HGHCA_NET_RX_SLOTS, netring_posted(this));

	netring_short_of_memory(this, false);
	/* Into a buffer that was not posted the device would write for nobody. */
	KUNIT_ASSERT_TRUE(test, netring_wait_posted(this, HGHCA_NET_RX_SLOTS + param->frames));
	KUNIT_EXPECT_EQ(test, rx->tail + HGHCA_NET_RX_SLOTS, rx->head);

	/* What was posted then is as good as what was posted first. */
	skb_queue_purge(&this->frames);
	for (i = 0; i < HGHCA_NET_RX_SLOTS; i++)
		netring_receive(this);
	netring_event(this);
	KUNIT_EXPECT_TRUE(test, netring_wait_posted(this, 2 * HGHCA_NET_RX_SLOTS +
						    param->frames));
	KUNIT_EXPECT_TRUE(test, netring_wait_frames(this, HGHCA_NET_RX_SLOTS));
}

/* Nothing looks for memory for a ring that is gone. */
static void netring_closed(struct kunit *test)
{
	struct netring *this = test->priv;
	struct hghca_net_rx *rx = &this->nd->rx;

	netring_short_of_memory(this, true);
	netring_receive(this);
	netring_event(this);
	KUNIT_EXPECT_TRUE(test, netring_wait_refused(this, 0));
	netring_short_of_memory(this, false);
	skb_queue_purge(&this->frames);
	rtnl_lock();
	dev_close(this->nd->netdev);
	rtnl_unlock();
	KUNIT_EXPECT_FALSE(test, timer_pending(&rx->refill_timer));
	this->produced = 0;
	KUNIT_ASSERT_EQ(test, 0, netring_open(this));
	KUNIT_EXPECT_EQ(test, HGHCA_NET_RX_SLOTS, netring_posted(this));
}

static const struct netring_refusal {
	const char *name;
	u16 op;
	u32 before;	/* commands of the start that come before it */
} netring_refusals[] = {
	{ "RST2INIT", 0x019, 0 },
	{ "INIT2RTR", 0x01a, 1 },
	{ "RTR2RTS", 0x01b, 2 },
	{ "CONF_SPECIAL_QP", 0x023, 3 },
};

KUNIT_ARRAY_PARAM_DESC(netring_refusal, netring_refusals, name);

static enum fake_end netring_refuse(struct fake *fake, const struct fake_command *cmd,
				    struct fake_answer *answer)
{
	const struct netring_refusal *refusal = fake->priv;

	if (cmd->op == refusal->op)
		answer->status = 0x08;
	return FAKE_ANSWERED;
}

/* How many commands from @mark on have opcodes from @first to @last. */
static u32 netring_count_ops(struct fake *fake, u32 mark, u16 first, u16 last)
{
	u32 i, count = 0;

	for (i = mark; i != fake_mark(fake); i++)
		if (fake_nth(fake, i) && fake_nth(fake, i)->op >= first &&
		    fake_nth(fake, i)->op <= last)
			count++;
	return count;
}

/* A start that is refused leaves the QP in RESET, and the next one succeeds. */
static void netring_start_refused(struct kunit *test)
{
	const struct netring_refusal *param = test->param_value;
	struct netring *this = test->priv;
	u32 mark;

	rtnl_lock();
	dev_close(this->nd->netdev);
	rtnl_unlock();
	mark = fake_mark(this->fake);
	this->fake->priv = (void *)param;
	this->fake->answer = netring_refuse;
	KUNIT_EXPECT_EQ(test, -ENOMEM, netring_open(this));
	KUNIT_EXPECT_EQ(test, min(param->before + 1, 3U),
			netring_count_ops(this->fake, mark, 0x019, 0x01b));
	KUNIT_EXPECT_EQ(test, param->op == 0x023 ? 1 : 0,
			netring_count_ops(this->fake, mark, 0x023, 0x023));
	/* ERR2RST */
	KUNIT_EXPECT_EQ(test, 1, netring_count_ops(this->fake, mark, 0x021, 0x021));
	KUNIT_EXPECT_FALSE(test, hghca_dev_has_failed(this->fake->hdev));

	this->fake->answer = NULL;
	this->produced = 0;
	KUNIT_ASSERT_EQ(test, 0, netring_open(this));
	KUNIT_EXPECT_EQ(test, HGHCA_NET_RX_SLOTS, netring_posted(this));
}

static struct kunit_case netring_cases[] = {
	KUNIT_CASE_PARAM(netring_refilled, netring_count_gen_params),
	KUNIT_CASE(netring_closed),
	KUNIT_CASE_PARAM(netring_start_refused, netring_refusal_gen_params),
	{}
};

static struct kunit_suite netring_suite = {
	.name = "hghca_netring",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = netring_init,
	.test_cases = netring_cases,
};

kunit_test_suite(netring_suite);
