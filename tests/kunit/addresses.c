// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of addresses: GIDs and MACs on their way into SET_GID and into
 * address handles, and what the port says of itself (interface document, 4.12
 * and 6).
 */
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>

#include "fake.h"

#define ADDRESSES_PORT_CAP	BIT(4)

static void addresses_setup(struct net_device *netdev)
{
	ether_setup(netdev);
}

KUNIT_DEFINE_ACTION_WRAPPER(addresses_free_netdev, free_netdev, struct net_device *);

/* A net device that is on no list; of a VLAN when @vlan is not 0. */
static struct net_device *addresses_netdev(struct kunit *test, const u8 *mac, u16 vlan)
{
	struct net_device *netdev;

	netdev = alloc_netdev(sizeof(struct vlan_dev_priv), "kunit%d", NET_NAME_UNKNOWN,
			      addresses_setup);
	KUNIT_ASSERT_NOT_NULL(test, netdev);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, addresses_free_netdev, netdev));
	eth_hw_addr_set(netdev, mac);
	if (vlan) {
		netdev->priv_flags |= IFF_802_1Q_VLAN;
		vlan_dev_priv(netdev)->vlan_id = vlan;
	}
	return netdev;
}

static const struct addresses_gid {
	const char *name;
	u8 gid[16];
	u8 mac[ETH_ALEN];
	u16 vlan;
	u32 index;
	u32 vlan_word;	/* at 18h */
} addresses_gids[] = {
	{ "IPv4 10.10.0.1", { [10] = 0xff, 0xff, 10, 10, 0, 1 },
	  { 0x52, 0x54, 0x00, 0x12, 0x34, 0x56 }, 0, 1 },
	{ "IPv4 255.255.255.254", { [10] = 0xff, 0xff, 255, 255, 255, 254 },
	  { 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff }, 0, 127 },
	{ "IPv6, global", { 0x20, 0x01, 0x0d, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 },
	  { 0x02, 0x00, 0x00, 0x00, 0x00, 0x01 }, 0, 3 },
	{ "IPv6, link-local", { 0xfe, 0x80, [8] = 0x50, 0x54, 0x00, 0xff, 0xfe, 0x12, 0x34, 0x56 },
	  { 0x52, 0x54, 0x00, 0x12, 0x34, 0x56 }, 0, 0 },
	{ "IPv4 in VLAN 1", { [10] = 0xff, 0xff, 192, 168, 7, 9 },
	  { 0x52, 0x54, 0x00, 0x12, 0x34, 0x56 }, 1, 4, 0x80000001 },
	{ "IPv6 in VLAN 4094", { 0xfd, [15] = 1 },
	  { 0x52, 0x54, 0x00, 0x12, 0x34, 0x56 }, 4094, 5, 0x80000ffe },
};

static void addresses_gid_name(const struct addresses_gid *gid, char *desc)
{
	strscpy(desc, gid->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(addresses_gid, addresses_gids, addresses_gid_name);

static struct ib_gid_attr addresses_attr(struct fake *fake, const u8 *gid, u32 index)
{
	struct ib_gid_attr attr = {
		.device = &fake->hdev->ibdev,
		.gid_type = IB_GID_TYPE_ROCE_UDP_ENCAP,
		.index = index,
		.port_num = 1,
	};

	memcpy(attr.gid.raw, gid, sizeof(attr.gid.raw));
	return attr;
}

static void addresses_add_gid(struct kunit *test)
{
	const struct addresses_gid *param = test->param_value;
	struct fake *fake = test->priv;
	struct ib_gid_attr attr = addresses_attr(fake, param->gid, param->index);
	struct fake_command *cmd;
	u32 mark = fake_mark(fake);

	rcu_assign_pointer(attr.ndev, addresses_netdev(test, param->mac, param->vlan));
	KUNIT_ASSERT_EQ(test, 0, hghca_add_gid(&attr, NULL));
	cmd = fake_nth(fake, mark);
	KUNIT_ASSERT_NOT_NULL(test, cmd);
	KUNIT_EXPECT_EQ(test, 0xe00, cmd->op);
	KUNIT_EXPECT_EQ(test, 0, cmd->op_modifier);
	KUNIT_EXPECT_EQ(test, param->index, cmd->in_modifier);
	KUNIT_EXPECT_MEMEQ(test, param->gid, cmd->mailbox, 16);
	/* MAC 47:16 at 10h, 15:0 at 14h: its bytes in order. */
	KUNIT_EXPECT_MEMEQ(test, param->mac, cmd->mailbox + 0x10, 6);
	KUNIT_EXPECT_EQ(test, 0, cmd->mailbox[0x16] | cmd->mailbox[0x17]);
	KUNIT_EXPECT_EQ(test, param->vlan_word, be32_at(cmd->mailbox, 0x18));
	KUNIT_EXPECT_NULL(test, memchr_inv(cmd->mailbox + 0x1c, 0, 0x20 - 0x1c));

	mark = fake_mark(fake);
	KUNIT_ASSERT_EQ(test, 0, hghca_del_gid(&attr, NULL));
	cmd = fake_nth(fake, mark);
	KUNIT_ASSERT_NOT_NULL(test, cmd);
	KUNIT_EXPECT_EQ(test, 0xe00, cmd->op);
	KUNIT_EXPECT_EQ(test, 1, cmd->op_modifier);
	KUNIT_EXPECT_EQ(test, param->index, cmd->in_modifier);
	KUNIT_EXPECT_EQ(test, 0, cmd->in_param);
}

static const struct addresses_bad_gid {
	const char *name;
	u32 index;
	u32 port;
	enum ib_gid_type type;
	bool no_netdev;
	int err;
} addresses_bad_gids[] = {
	{ "an index beyond the table", 128, 1, IB_GID_TYPE_ROCE_UDP_ENCAP, false, -EINVAL },
	{ "an index of all ones", U32_MAX, 1, IB_GID_TYPE_ROCE_UDP_ENCAP, false, -EINVAL },
	{ "port 0", 0, 0, IB_GID_TYPE_ROCE_UDP_ENCAP, false, -EINVAL },
	{ "port 2", 0, 2, IB_GID_TYPE_ROCE_UDP_ENCAP, false, -EINVAL },
	{ "RoCE v1", 0, 1, IB_GID_TYPE_ROCE, false, -EINVAL },
	{ "InfiniBand", 0, 1, IB_GID_TYPE_IB, false, -EINVAL },
	{ "its net device gone", 0, 1, IB_GID_TYPE_ROCE_UDP_ENCAP, true, -ENODEV },
};

static void addresses_bad_gid_name(const struct addresses_bad_gid *gid, char *desc)
{
	strscpy(desc, gid->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(addresses_bad_gid, addresses_bad_gids, addresses_bad_gid_name);

static void addresses_bad_gid(struct kunit *test)
{
	const struct addresses_bad_gid *param = test->param_value;
	struct fake *fake = test->priv;
	struct ib_gid_attr attr = addresses_attr(fake, addresses_gids[0].gid, param->index);
	u32 mark = fake_mark(fake);

	attr.port_num = param->port;
	attr.gid_type = param->type;
	if (!param->no_netdev)
		rcu_assign_pointer(attr.ndev, addresses_netdev(test, addresses_gids[0].mac, 0));
	KUNIT_EXPECT_EQ(test, param->err, hghca_add_gid(&attr, NULL));
	if (param->index >= 128)
		KUNIT_EXPECT_EQ(test, -EINVAL, hghca_del_gid(&attr, NULL));
	KUNIT_EXPECT_EQ(test, mark, fake_mark(fake));
}

/* ------------------------------------------------------------------ */
/* Address handles                                                      */

static const struct addresses_ah {
	const char *name;
	u8 dgid[16];
	u8 dmac[ETH_ALEN];
	u8 hop_limit, sgid_index, sl, traffic_class;
	u32 flow_label;
	u8 static_rate;
	u8 bytes[32];	/* port, DMAC 15:0, SL to flow label, DMAC 47:16, DGID */
} addresses_ahs[] = {
	{ "IPv4 10.10.0.2", { [10] = 0xff, 0xff, 10, 10, 0, 2 },
	  { 0x52, 0x54, 0x00, 0x12, 0x34, 0x57 }, 64, 1, 0, 0, 0, 0,
	  { 0x01, 0x01, 0x40, 0x80, 0x00, 0x00, 0x57, 0x34, 0, 0, 0, 0, 0x12, 0x00, 0x54, 0x52,
	    [26] = 0xff, 0xff, 10, 10, 0, 2 } },
	{ "IPv6, every field full", { 0x20, 0x01, 0x0d, 0xb8, [15] = 0xff },
	  { 0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54 }, 255, 127, 15, 255, 0xfffff, 24,
	  { 0x01, 0x7f, 0xff, 0x98, 0x00, 0x00, 0x54, 0x76, 0xff, 0xff, 0xff, 0xff,
	    0x98, 0xba, 0xdc, 0xfe, 0x20, 0x01, 0x0d, 0xb8, [31] = 0xff } },
	{ "fields apart", { 0xfe, 0x80, [15] = 1 }, { 0x02, 0, 0, 0, 0, 0x01 }, 1, 2, 3, 4, 5, 7,
	  { 0x01, 0x02, 0x01, 0x87, 0x00, 0x00, 0x01, 0x00, 0x05, 0x00, 0x40, 0x30,
	    0x00, 0x00, 0x00, 0x02, 0xfe, 0x80, [31] = 1 } },
};

static void addresses_ah_name(const struct addresses_ah *ah, char *desc)
{
	strscpy(desc, ah->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(addresses_ah, addresses_ahs, addresses_ah_name);

static void addresses_ah_attr(struct rdma_ah_attr *attr, const struct addresses_ah *param)
{
	memset(attr, 0, sizeof(*attr));
	attr->type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_port_num(attr, 1);
	rdma_ah_set_sl(attr, param->sl);
	rdma_ah_set_static_rate(attr, param->static_rate);
	rdma_ah_set_grh(attr, NULL, param->flow_label, param->sgid_index, param->hop_limit,
			param->traffic_class);
	rdma_ah_set_dgid_raw(attr, (void *)param->dgid);
	memcpy(attr->roce.dmac, param->dmac, ETH_ALEN);
}

/* Into the UD unit, and out of it again. */
static void addresses_handle(struct kunit *test)
{
	const struct addresses_ah *param = test->param_value;
	struct fake *fake = test->priv;
	struct hghca_ah *ah = kunit_kzalloc(test, sizeof(*ah), GFP_KERNEL);
	struct rdma_ah_attr attr, answer;
	struct rdma_ah_init_attr init = { .ah_attr = &attr };

	KUNIT_ASSERT_NOT_NULL(test, ah);
	addresses_ah_attr(&attr, param);
	ah->ibah.device = &fake->hdev->ibdev;
	ah->ibah.type = attr.type;
	KUNIT_ASSERT_EQ(test, 0, hghca_create_ah(&ah->ibah, &init, NULL));
	KUNIT_EXPECT_MEMEQ(test, param->bytes, (u8 *)&ah->ud, 32);
	KUNIT_EXPECT_NULL(test, memchr_inv((u8 *)&ah->ud + 32, 0, 16));

	KUNIT_ASSERT_EQ(test, 0, hghca_query_ah(&ah->ibah, &answer));
	KUNIT_EXPECT_EQ(test, RDMA_AH_ATTR_TYPE_ROCE, answer.type);
	KUNIT_EXPECT_EQ(test, 1, rdma_ah_get_port_num(&answer));
	KUNIT_EXPECT_EQ(test, param->sl, rdma_ah_get_sl(&answer));
	KUNIT_EXPECT_EQ(test, param->static_rate, rdma_ah_get_static_rate(&answer));
	KUNIT_EXPECT_EQ(test, param->hop_limit, answer.grh.hop_limit);
	KUNIT_EXPECT_EQ(test, param->sgid_index, answer.grh.sgid_index);
	KUNIT_EXPECT_EQ(test, param->traffic_class, answer.grh.traffic_class);
	KUNIT_EXPECT_EQ(test, param->flow_label, answer.grh.flow_label);
	KUNIT_EXPECT_MEMEQ(test, param->dgid, answer.grh.dgid.raw, 16);
	KUNIT_EXPECT_MEMEQ(test, param->dmac, answer.roce.dmac, ETH_ALEN);
	KUNIT_EXPECT_EQ(test, 0, hghca_destroy_ah(&ah->ibah, 0));
}

static void addresses_bad_handle(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct hghca_ah *ah = kunit_kzalloc(test, sizeof(*ah), GFP_KERNEL);
	struct rdma_ah_attr attr;
	struct rdma_ah_init_attr init = { .ah_attr = &attr };

	KUNIT_ASSERT_NOT_NULL(test, ah);
	ah->ibah.device = &fake->hdev->ibdev;
	addresses_ah_attr(&attr, addresses_ahs);
	rdma_ah_set_ah_flags(&attr, 0);
	KUNIT_EXPECT_EQ(test, -EINVAL, hghca_create_ah(&ah->ibah, &init, NULL));
	addresses_ah_attr(&attr, addresses_ahs);
	attr.type = RDMA_AH_ATTR_TYPE_IB;
	KUNIT_EXPECT_EQ(test, -EINVAL, hghca_create_ah(&ah->ibah, &init, NULL));
	addresses_ah_attr(&attr, addresses_ahs);
	rdma_ah_set_static_rate(&attr, 1);
	KUNIT_EXPECT_EQ(test, -EINVAL, hghca_create_ah(&ah->ibah, &init, NULL));
	rdma_ah_set_static_rate(&attr, 25);
	KUNIT_EXPECT_EQ(test, -EINVAL, hghca_create_ah(&ah->ibah, &init, NULL));
}

/* ------------------------------------------------------------------ */
/* The port                                                             */

static const struct addresses_port {
	const char *name;
	u32 mbps;
	int mtu;	/* of the net device */
	bool running, carrier;
	enum ib_port_state state;
	enum ib_mtu active_mtu;
	bool failed;	/* the HCA; its net device goes on */
} addresses_ports[] = {
	{ "down", 0, 1500, false, true, IB_PORT_DOWN, IB_MTU_1024 },
	{ "no carrier", 0, 1500, true, false, IB_PORT_DOWN, IB_MTU_1024 },
	{ "up, MTU 1500, 10 Gbit/s", 10000, 1500, true, true, IB_PORT_ACTIVE, IB_MTU_1024 },
	{ "MTU 4200, 25 Gbit/s", 25000, 4200, true, true, IB_PORT_ACTIVE, IB_MTU_4096 },
	{ "MTU 9000, 40 Gbit/s", 40000, 9000, true, true, IB_PORT_ACTIVE, IB_MTU_4096 },
	{ "MTU 68, 99 Gbit/s", 99999, 68, true, true, IB_PORT_ACTIVE, IB_MTU_256 },
	{ "MTU 608: 512 and the headers, 100 Gbit/s", 100000, 608, true, true, IB_PORT_ACTIVE,
	  IB_MTU_512 },
	{ "MTU 2200, 200 Gbit/s", 200000, 2200, true, true, IB_PORT_ACTIVE, IB_MTU_2048 },
	{ "all ones Mbit/s", U32_MAX, 1500, true, true, IB_PORT_ACTIVE, IB_MTU_1024 },
	{ "failed", 10000, 1500, true, true, IB_PORT_DOWN, IB_MTU_1024, .failed = true },
};

static void addresses_port_name(const struct addresses_port *port, char *desc)
{
	strscpy(desc, port->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(addresses_port, addresses_ports, addresses_port_name);

static void addresses_query_port(struct kunit *test)
{
	const struct addresses_port *param = test->param_value;
	struct fake *fake = test->priv;
	struct hghca_dev *hdev = fake->hdev;
	struct ib_port_attr attr = {};
	u64 speed = 0;
	u16 pkey = 0;

	hdev->netdev = addresses_netdev(test, addresses_gids[0].mac, 0);
	hdev->netdev->mtu = param->mtu;
	hdev->port_mbps = param->mbps;
	if (param->running)
		set_bit(__LINK_STATE_START, &hdev->netdev->state);
	if (!param->carrier)
		set_bit(__LINK_STATE_NOCARRIER, &hdev->netdev->state);
	hdev->failed = param->failed;
	KUNIT_EXPECT_EQ(test, 0, hghca_query_port(&hdev->ibdev, 1, &attr));
	KUNIT_EXPECT_EQ(test, 0, hghca_query_port_speed(&hdev->ibdev, 1, &speed));
	hdev->limits.caps &= ~ADDRESSES_PORT_CAP;
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, hghca_query_port_speed(&hdev->ibdev, 1, &speed));
	hdev->limits.caps |= ADDRESSES_PORT_CAP;
	hdev->failed = false;
	hdev->netdev = NULL;
	KUNIT_EXPECT_EQ(test, param->state, attr.state);
	KUNIT_EXPECT_EQ(test, IB_MTU_4096, attr.max_mtu);
	KUNIT_EXPECT_EQ(test, param->active_mtu, attr.active_mtu);
	KUNIT_EXPECT_EQ(test, 128 << param->active_mtu, attr.phys_mtu);
	/* ib_core has not been told of the net device, whose speed it would take. */
	KUNIT_EXPECT_EQ(test, IB_WIDTH_1X, attr.active_width);
	KUNIT_EXPECT_EQ(test, IB_SPEED_SDR, attr.active_speed);
	KUNIT_EXPECT_EQ(test, param->mbps / 100, speed);
	KUNIT_EXPECT_EQ(test, 128, attr.gid_tbl_len);
	KUNIT_EXPECT_EQ(test, 0x80000000, attr.max_msg_sz);
	KUNIT_EXPECT_EQ(test, 1, attr.pkey_tbl_len);
	KUNIT_EXPECT_EQ(test, 0, hghca_query_pkey(&hdev->ibdev, 1, 0, &pkey));
	KUNIT_EXPECT_EQ(test, 0xffff, pkey);
	KUNIT_EXPECT_EQ(test, -EINVAL, hghca_query_pkey(&hdev->ibdev, 1, 1, &pkey));
}

static struct kunit_case addresses_cases[] = {
	KUNIT_CASE_PARAM(addresses_add_gid, addresses_gid_gen_params),
	KUNIT_CASE_PARAM(addresses_bad_gid, addresses_bad_gid_gen_params),
	KUNIT_CASE_PARAM(addresses_handle, addresses_ah_gen_params),
	KUNIT_CASE(addresses_bad_handle),
	KUNIT_CASE_PARAM(addresses_query_port, addresses_port_gen_params),
	{}
};

static struct kunit_suite addresses_suite = {
	.name = "hghca_addresses",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = fake_test_init,
	.test_cases = addresses_cases,
};

kunit_test_suite(addresses_suite);
