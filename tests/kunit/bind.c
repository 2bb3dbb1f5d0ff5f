// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of the net device of a port without an Ethernet adapter: what MAD_IFC says of
 * the port's address, true and false, and the adapters of others that come, go and change
 * their address.
 */
#include <linux/etherdevice.h>
#include <linux/rtnetlink.h>
#include <linux/unaligned.h>

#include "../../kernel/net/netdev.h"
#include "fake.h"

#define BIND_NODE	0x1122334455667788ULL
#define BIND_PORT	0x505400fffe010203ULL	/* the EUI-64 of bind_ours */

static const u8 bind_ours[ETH_ALEN] = { 0x52, 0x54, 0x00, 0x01, 0x02, 0x03 };
static const u8 bind_others[ETH_ALEN] = { 0x52, 0x54, 0x00, 0x01, 0x02, 0x04 };

/* How MAD_IFC ends, and what its MAD has: IBA 13.4.2 and 14.2.5.3. */
struct bind_reply {
	const char *name;
	u8 cmd_status;
	u8 method;
	u16 status;
	u64 guid;
	int err;
};

static const struct bind_reply bind_replies[] = {
	{ "a response", 0, 0x81, 0, BIND_PORT, 0 },
	{ "a command that is refused", 0x03, 0x81, 0, BIND_PORT, -EINVAL },
	{ "the request itself", 0, 0x01, 0, BIND_PORT, -EPROTO },
	{ "the response to a Set", 0, 0x82, 0, BIND_PORT, -EPROTO },
	{ "an attribute that is not supported", 0, 0x81, 0x000c, BIND_PORT, -EPROTO },
	{ "a busy node", 0, 0x81, 0x0001, BIND_PORT, -EPROTO },
	{ "a GUID of zeros", 0, 0x81, 0, 0, -EPROTO },
	{ "a GUID without ffh", 0, 0x81, 0, 0x50540000fe010203ULL, -EPROTO },
	{ "a GUID without feh", 0, 0x81, 0, 0x505400ff00010203ULL, -EPROTO },
	{ "the address of a group", 0, 0x81, 0, 0x515400fffe010203ULL, -EPROTO },
	{ "the address of all", 0, 0x81, 0, 0xfdfffffffeffffffULL, -EPROTO },
	{ "an address of zeros", 0, 0x81, 0, 0x020000fffe000000ULL, -EPROTO },
};

static void bind_reply_name(const struct bind_reply *reply, char *desc)
{
	strscpy(desc, reply->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(bind_reply, bind_replies, bind_reply_name);

struct bind {
	struct fake *fake;
	const struct bind_reply *reply;
	int events[2];		/* of the port: down, up */
};

static enum fake_end bind_answer(struct fake *fake, const struct fake_command *cmd,
				 struct fake_answer *answer)
{
	const struct bind *this = fake->priv;
	u8 *mad = fake->out;

	if (cmd->op != 0x024)
		return FAKE_ANSWERED;
	answer->status = this->reply->cmd_status;
	memcpy(mad, cmd->mailbox, 256);
	mad[3] = this->reply->method;
	put_unaligned_be16(this->reply->status, mad + 4);
	put_unaligned_be64(BIND_NODE, mad + 64 + 12);
	put_unaligned_be64(this->reply->guid, mad + 64 + 20);
	return FAKE_ANSWERED;
}

static void bind_port_event(struct hghca_dev *hdev, bool active)
{
	struct fake *fake = dev_get_drvdata(hdev->bus.dev);
	struct bind *this = fake->priv;

	this->events[active]++;
}

static void bind_set_up(struct fake *fake)
{
	fake->limits.revision = 0;
	fake->limits.caps = 0;
}

static int bind_init(struct kunit *test)
{
	struct bind *this = kunit_kzalloc(test, sizeof(*this), GFP_KERNEL);
	int err;

	if (!this)
		return -ENOMEM;
	err = fake_test_open(test, bind_set_up, false);
	if (err)
		return err;
	this->fake = test->priv;
	this->reply = bind_replies;
	this->fake->priv = this;
	this->fake->answer = bind_answer;
	this->fake->hdev->port_event = bind_port_event;
	test->priv = this;
	return 0;
}

static void bind_unregister(void *data)
{
	hghca_bind_unregister(data);
}

/* ------------------------------------------------------------------ */

static void bind_reply(struct kunit *test)
{
	struct bind *this = test->priv;
	struct hghca_dev *hdev = this->fake->hdev;
	u32 mark = fake_mark(this->fake);
	struct fake_command *seen;
	int err;

	this->reply = test->param_value;
	hdev->node_guid = 0;
	err = hghca_bind_register(hdev);
	if (!err)
		hghca_bind_unregister(hdev);
	KUNIT_EXPECT_EQ(test, this->reply->err, err);
	/* SubnGet of NodeInfo, once. */
	KUNIT_ASSERT_EQ(test, mark + 1, fake_mark(this->fake));
	seen = fake_nth(this->fake, mark);
	KUNIT_EXPECT_EQ(test, 0x024, seen->op);
	KUNIT_EXPECT_EQ(test, 1, seen->in_modifier);
	KUNIT_EXPECT_EQ(test, 0x01010101, be32_at(seen->mailbox, 0));
	KUNIT_EXPECT_EQ(test, 0x00110000, be32_at(seen->mailbox, 16));
	KUNIT_EXPECT_EQ(test, err ? 0 : BIND_NODE, be64_to_cpu(hdev->node_guid));
	if (!err)
		KUNIT_EXPECT_TRUE(test, ether_addr_equal(bind_ours, hdev->mac));
	KUNIT_EXPECT_NULL(test, hdev->netdev);
}

/* ------------------------------------------------------------------ */

static netdev_tx_t bind_xmit(struct sk_buff *skb, struct net_device *netdev)
{
	dev_kfree_skb_any(skb);
	return NETDEV_TX_OK;
}

static const struct net_device_ops bind_netdev_ops = {
	.ndo_start_xmit = bind_xmit,
	.ndo_set_mac_address = eth_mac_addr,
};

static void bind_remove(void *netdev)
{
	unregister_netdev(netdev);
	free_netdev(netdev);
}

/* A net device that goes with the test. */
static struct net_device *bind_adapter(struct kunit *test, const u8 *mac, struct device *parent)
{
	struct net_device *netdev = alloc_etherdev(0);
	int err;

	KUNIT_ASSERT_NOT_NULL(test, netdev);
	strscpy(netdev->name, "kunit%d");
	netdev->netdev_ops = &bind_netdev_ops;
	netdev->priv_flags |= IFF_LIVE_ADDR_CHANGE;
	SET_NETDEV_DEV(netdev, parent);
	eth_hw_addr_set(netdev, mac);
	err = register_netdev(netdev);
	if (err)
		free_netdev(netdev);
	KUNIT_ASSERT_EQ(test, 0, err);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, bind_remove, netdev));
	return netdev;
}

static void bind_turn(struct kunit *test, struct net_device *netdev, bool up)
{
	int err = 0;

	rtnl_lock();
	if (up)
		err = dev_open(netdev, NULL);
	else
		dev_close(netdev);
	rtnl_unlock();
	KUNIT_ASSERT_EQ(test, 0, err);
}

static void bind_rename(struct kunit *test, struct net_device *netdev, const u8 *mac)
{
	KUNIT_ASSERT_EQ(test, 0, kernels_set_mac(netdev, mac));
}

static void bind_expect(struct kunit *test, const struct net_device *netdev, int ups, int downs)
{
	struct bind *this = test->priv;

	KUNIT_EXPECT_PTR_EQ(test, netdev, (const struct net_device *)this->fake->hdev->netdev);
	KUNIT_EXPECT_EQ(test, ups, this->events[1]);
	KUNIT_EXPECT_EQ(test, downs, this->events[0]);
	KUNIT_EXPECT_EQ(test, ups > downs, this->fake->hdev->port_active);
}

static void bind_adapters(struct kunit *test)
{
	struct bind *this = test->priv;
	struct hghca_dev *hdev = this->fake->hdev;
	struct net_device *first, *second;

	KUNIT_ASSERT_EQ(test, 0, hghca_bind_register(hdev));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, bind_unregister, hdev));
	/* Another address, and a net device without hardware. */
	second = bind_adapter(test, bind_others, hdev->bus.dev);
	bind_adapter(test, bind_ours, NULL);
	bind_expect(test, NULL, 0, 0);
	first = bind_adapter(test, bind_ours, hdev->bus.dev);
	bind_expect(test, first, 0, 0);
	bind_turn(test, second, true);
	bind_expect(test, first, 0, 0);
	bind_turn(test, first, true);
	bind_expect(test, first, 1, 0);
	bind_turn(test, first, false);
	bind_expect(test, first, 1, 1);
	bind_turn(test, first, true);
	/* The second with this address, while the first has it. */
	bind_rename(test, second, bind_ours);
	bind_expect(test, first, 2, 1);
	bind_rename(test, first, bind_others);
	bind_expect(test, NULL, 2, 2);
	/* A net device that stays is taken when it says its address again. */
	bind_rename(test, second, bind_ours);
	bind_expect(test, second, 3, 2);
	bind_rename(test, first, bind_ours);
	bind_expect(test, second, 3, 2);
	kunit_release_action(test, bind_remove, second);
	bind_expect(test, NULL, 3, 3);
	bind_rename(test, first, bind_ours);
	bind_expect(test, first, 4, 3);
	kunit_release_action(test, bind_unregister, hdev);
	bind_expect(test, NULL, 4, 4);
	bind_rename(test, first, bind_ours);
	bind_expect(test, NULL, 4, 4);
}

/* One that has been there before is found, in whatever state it is. */
static void bind_adapter_first(struct kunit *test)
{
	struct bind *this = test->priv;
	struct hghca_dev *hdev = this->fake->hdev;
	struct net_device *netdev = bind_adapter(test, bind_ours, hdev->bus.dev);
	int i;

	for (i = 0; i < 3; i++) {
		bind_turn(test, netdev, i != 1);
		KUNIT_ASSERT_EQ(test, 0, hghca_bind_register(hdev));
		bind_expect(test, netdev, (int[]){ 1, 1, 2 }[i], (int[]){ 0, 1, 1 }[i]);
		hghca_bind_unregister(hdev);
		bind_expect(test, NULL, (int[]){ 1, 1, 2 }[i], (int[]){ 1, 1, 2 }[i]);
	}
}

static struct kunit_case bind_cases[] = {
	KUNIT_CASE_PARAM(bind_reply, bind_reply_gen_params),
	KUNIT_CASE(bind_adapters),
	KUNIT_CASE(bind_adapter_first),
	{}
};

static struct kunit_suite bind_suite = {
	.name = "hghca_bind",
	.init = bind_init,
	.test_cases = bind_cases,
};
kunit_test_suite(bind_suite);
