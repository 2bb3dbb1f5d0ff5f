// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of flow rules (interface document, 4.20): what of the verb's
 * specifications the device is told, byte by byte, and what is refused.
 */
#include <linux/in.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "fake.h"

#define FLOWS_CAP	0x2000
#define FLOWS_SPECS	3
#define FLOWS_BYTES	0x90

/* ------------------------------------------------------------------ */
/* Limits                                                               */

static const struct flows_limit {
	const char *name;
	u8 log, masks, qps;
	u32 flows;	/* 0: the device counts as one without */
} flows_limits[] = {
	{ "4096", 12, 64, 56, 4096 },
	{ "one", 0, 1, 1, 1 },
	{ "2^24", 24, 255, 255, 1 << 24 },
	{ "2^25", 25, 64, 56, 0 },
	{ "2^255", 255, 64, 56, 0 },
	{ "no mask", 12, 0, 56, 0 },
	{ "no QP", 12, 64, 0, 0 },
};

KUNIT_ARRAY_PARAM_DESC(flows_limit, flows_limits, name);

static void flows_profile(struct kunit *test)
{
	const struct flows_limit *param = test->param_value;
	struct fake *fake = fake_test_create(test);
	struct ib_udata udata = {};
	struct ib_device_attr attr;
	u32 caps;

	KUNIT_ASSERT_NOT_NULL(test, fake);
	caps = be32_to_cpu(fake->limits.caps);
	fake->limits.caps = cpu_to_be32(caps | FLOWS_CAP);
	((u8 *)&fake->limits)[0x5c] = param->log;
	((u8 *)&fake->limits)[0x5d] = param->masks;
	((u8 *)&fake->limits)[0x5e] = param->qps;
	KUNIT_ASSERT_EQ(test, 0, fake_open(fake));
	KUNIT_EXPECT_EQ(test, param->flows, fake->hdev->limits.num_flows);
	KUNIT_EXPECT_EQ(test, caps | (param->flows ? FLOWS_CAP : 0), fake->hdev->limits.caps);
	KUNIT_ASSERT_EQ(test, 0, hghca_query_device(&fake->hdev->ibdev, &attr, &udata));
	KUNIT_EXPECT_EQ(test, !!param->flows,
			!!(attr.device_cap_flags & IB_DEVICE_MANAGED_FLOW_STEERING));
	KUNIT_EXPECT_EQ(test, param->flows ? attr.max_qp : 0, attr.max_raw_ethy_qp);
	/* No checksums, no VLAN taken off, no FCS. */
	KUNIT_EXPECT_EQ(test, 0, attr.raw_packet_caps);
}

/* ------------------------------------------------------------------ */
/* Specifications into bytes                                            */

static const struct ib_flow_spec_eth flows_eth = {
	.type = IB_FLOW_SPEC_ETH,
	.size = sizeof(struct ib_flow_spec_eth),
	.val = { { 0x02, 0x11, 0x22, 0x33, 0x44, 0x55 }, { 0x02, 0x66, 0x77, 0x88, 0x99, 0xaa },
		 cpu_to_be16(0x0800), cpu_to_be16(0xe005) },
	.mask = { { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff }, { 0xff, 0xf0 }, cpu_to_be16(0xffff),
		  cpu_to_be16(0x0fff) },
};

static const struct ib_flow_spec_eth flows_eth_untagged = {
	.type = IB_FLOW_SPEC_ETH,
	.size = sizeof(struct ib_flow_spec_eth),
	.val = { .ether_type = cpu_to_be16(0x86dd) },
	.mask = { .ether_type = cpu_to_be16(0xffff) },
};

static const struct ib_flow_spec_ipv4 flows_ipv4 = {
	.type = IB_FLOW_SPEC_IPV4,
	.size = sizeof(struct ib_flow_spec_ipv4),
	.val = { cpu_to_be32(0x0a0a0001), cpu_to_be32(0x0a0a0002), 17, 0xb8, 64, 2 },
	.mask = { cpu_to_be32(0xffffff00), cpu_to_be32(0xffffffff), 0xff, 0xfc, 0x7f, 0 },
};

static const struct ib_flow_spec_ipv6 flows_ipv6 = {
	.type = IB_FLOW_SPEC_IPV6,
	.size = sizeof(struct ib_flow_spec_ipv6),
	.val = { { 0xfd, [15] = 1 }, { 0xfd, [15] = 2 }, cpu_to_be32(0x12345), 6, 0x20, 63 },
	.mask = { { [0 ... 15] = 0xff }, { 0xff, [15] = 0x0f }, cpu_to_be32(0xfffff), 0xff, 0xff,
		  0xff },
};

static const struct ib_flow_spec_tcp_udp flows_udp = {
	.type = IB_FLOW_SPEC_UDP,
	.size = sizeof(struct ib_flow_spec_tcp_udp),
	.val = { cpu_to_be16(2000), cpu_to_be16(1000) },
	.mask = { cpu_to_be16(0xffff), cpu_to_be16(0xfff0) },
};

static const struct ib_flow_spec_tcp_udp flows_tcp = {
	.type = IB_FLOW_SPEC_TCP,
	.size = sizeof(struct ib_flow_spec_tcp_udp),
	.val = { cpu_to_be16(80), 0 },
	.mask = { cpu_to_be16(0xffff), 0 },
};

struct flows_byte {
	u8 at;
	u8 value;
	u8 mask;
};

/* All bytes that are not 0, by their offset in struct hghca_flow_fields. */
static const struct flows_case {
	const char *name;
	enum ib_flow_attr_type type;
	u16 priority;
	const void *specs[FLOWS_SPECS];
	struct flows_byte bytes[48];
	u8 device_type;
} flows_cases[] = {
	{ "everything", IB_FLOW_ATTR_NORMAL, 7 },
	{ "all by default", IB_FLOW_ATTR_ALL_DEFAULT, 0xabcd, .device_type = 1 },
	{ "multicast by default", IB_FLOW_ATTR_MC_DEFAULT, 0, .device_type = 2 },
	{ "Ethernet with a VLAN", IB_FLOW_ATTR_NORMAL, 1, { &flows_eth },
	  { { 0x00, 0x02, 0xff }, { 0x01, 0x11, 0xff }, { 0x02, 0x22, 0xff }, { 0x03, 0x33, 0xff },
	    { 0x04, 0x44, 0xff }, { 0x05, 0x55, 0xff }, { 0x06, 0x02, 0xff }, { 0x07, 0x60, 0xf0 },
	    { 0x0c, 0x08, 0xff }, { 0x0d, 0x00, 0xff }, { 0x0e, 0x00, 0x0f }, { 0x0f, 0x05, 0xff },
	    { 0x37, 0x01, 0x01 } } },
	{ "IPv4", IB_FLOW_ATTR_NORMAL, 0, { &flows_ipv4 },
	  { { 0x1c, 0x0a, 0xff }, { 0x1d, 0x0a, 0xff }, { 0x1e, 0x00, 0xff },
	    { 0x2c, 0x0a, 0xff }, { 0x2d, 0x0a, 0xff }, { 0x2e, 0x00, 0xff }, { 0x2f, 0x02, 0xff },
	    { 0x34, 0x11, 0xff }, { 0x35, 0xb8, 0xfc }, { 0x36, 0x40, 0x7f },
	    { 0x37, 0x02, 0x02 } } },
	{ "Ethernet, IPv6, TCP", IB_FLOW_ATTR_NORMAL, 0,
	  { &flows_eth_untagged, &flows_ipv6, &flows_tcp },
	  { { 0x0c, 0x86, 0xff }, { 0x0d, 0xdd, 0xff }, { 0x10, 0xfd, 0xff }, { 0x11, 0, 0xff },
	    { 0x12, 0, 0xff }, { 0x13, 0, 0xff }, { 0x14, 0, 0xff }, { 0x15, 0, 0xff },
	    { 0x16, 0, 0xff }, { 0x17, 0, 0xff }, { 0x18, 0, 0xff }, { 0x19, 0, 0xff },
	    { 0x1a, 0, 0xff }, { 0x1b, 0, 0xff }, { 0x1c, 0, 0xff }, { 0x1d, 0, 0xff },
	    { 0x1e, 0, 0xff }, { 0x1f, 0x01, 0xff }, { 0x20, 0xfd, 0xff }, { 0x2f, 0x02, 0x0f },
	    { 0x31, 0x01, 0x0f }, { 0x32, 0x23, 0xff }, { 0x33, 0x45, 0xff }, { 0x34, 0x06, 0xff },
	    { 0x35, 0x20, 0xff }, { 0x36, 0x3f, 0xff }, { 0x37, 0x14, 0x14 },
	    { 0x3a, 0x00, 0xff }, { 0x3b, 0x50, 0xff } } },
	{ "UDP before IPv4", IB_FLOW_ATTR_NORMAL, 0, { &flows_udp, &flows_ipv4 },
	  { { 0x1c, 0x0a, 0xff }, { 0x1d, 0x0a, 0xff }, { 0x1e, 0x00, 0xff },
	    { 0x2c, 0x0a, 0xff }, { 0x2d, 0x0a, 0xff }, { 0x2e, 0x00, 0xff }, { 0x2f, 0x02, 0xff },
	    { 0x34, 0x11, 0xff }, { 0x35, 0xb8, 0xfc }, { 0x36, 0x40, 0x7f },
	    { 0x37, 0x0a, 0x0a }, { 0x38, 0x03, 0xff }, { 0x39, 0xe0, 0xf0 },
	    { 0x3a, 0x07, 0xff }, { 0x3b, 0xd0, 0xff } } },
	{ "UDP alone", IB_FLOW_ATTR_NORMAL, 0, { &flows_udp },
	  { { 0x37, 0x08, 0x08 }, { 0x38, 0x03, 0xff }, { 0x39, 0xe0, 0xf0 },
	    { 0x3a, 0x07, 0xff }, { 0x3b, 0xd0, 0xff } } },
};

KUNIT_ARRAY_PARAM_DESC(flows_case, flows_cases, name);

/* As ib_core makes it: the specifications stand one behind the other. */
static struct ib_flow_attr *flows_attr(struct kunit *test, enum ib_flow_attr_type type,
				       const void * const *specs)
{
	struct ib_flow_attr *attr =
		kunit_kzalloc(test, sizeof(*attr) + FLOWS_SPECS * sizeof(union ib_flow_spec),
			      GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, attr);
	attr->type = type;
	attr->port = 1;
	attr->size = sizeof(*attr);
	for (i = 0; i < FLOWS_SPECS && specs[i]; i++) {
		const union ib_flow_spec *spec = specs[i];

		memcpy((void *)attr + attr->size, spec, spec->size);
		attr->size += spec->size;
		attr->num_of_specs++;
	}
	return attr;
}

static void flows_convert(struct kunit *test)
{
	const struct flows_case *param = test->param_value;
	struct ib_flow_attr *attr = flows_attr(test, param->type, param->specs);
	u8 wanted[FLOWS_BYTES] = {};
	struct hghca_flow flow = {};
	u32 i;

	wanted[0x04] = param->priority >> 8;
	wanted[0x05] = param->priority;
	wanted[0x06] = param->device_type;
	for (i = 0; i < ARRAY_SIZE(param->bytes) && param->bytes[i].mask; i++) {
		wanted[0x10 + param->bytes[i].at] = param->bytes[i].value;
		wanted[0x50 + param->bytes[i].at] = param->bytes[i].mask;
	}
	attr->priority = param->priority;
	KUNIT_EXPECT_EQ(test, 0, hghca_flow_from_ib(&flow, attr));
	KUNIT_ASSERT_EQ(test, FLOWS_BYTES, sizeof(flow));
	KUNIT_EXPECT_MEMEQ(test, wanted, (u8 *)&flow, sizeof(flow));
}

/* ------------------------------------------------------------------ */
/* What is refused                                                      */

static void flows_set_port_zero(struct ib_flow_attr *attr)
{
	attr->port = 0;
}

static void flows_set_port_2(struct ib_flow_attr *attr)
{
	attr->port = 2;
}

static void flows_set_dont_trap(struct ib_flow_attr *attr)
{
	attr->flags = IB_FLOW_ATTR_FLAGS_DONT_TRAP;
}

static void flows_set_egress(struct ib_flow_attr *attr)
{
	attr->flags = IB_FLOW_ATTR_FLAGS_EGRESS;
}

static void flows_set_inner(struct ib_flow_attr *attr)
{
	attr->flows[0].type |= IB_FLOW_SPEC_INNER;
}

static void flows_set_longer(struct ib_flow_attr *attr)
{
	attr->flows[0].size++;
}

static void flows_set_shorter(struct ib_flow_attr *attr)
{
	attr->flows[0].size--;
}

static void flows_set_one_more(struct ib_flow_attr *attr)
{
	attr->num_of_specs++;
}

static void flows_set_cut(struct ib_flow_attr *attr)
{
	attr->size--;
}

static void flows_set_type_4(struct ib_flow_attr *attr)
{
	attr->type = 4;
}

static void flows_set_flags_mask(struct ib_flow_attr *attr)
{
	attr->flows[0].ipv4.mask.flags = 2;
}

static void flows_set_protocol(struct ib_flow_attr *attr)
{
	attr->flows[0].ipv4.val.proto = IPPROTO_TCP;
}

static void flows_set_ipv6_type(struct ib_flow_attr *attr)
{
	attr->flows[0].eth.val.ether_type = cpu_to_be16(0x86dd);
}

/* Only their type and size are looked at. */
#define FLOWS_OTHER(name, what, of) \
	static const union ib_flow_spec name = { { .type = (what), .size = sizeof(struct of) } }
FLOWS_OTHER(flows_ib, IB_FLOW_SPEC_IB, ib_flow_spec_ib);
FLOWS_OTHER(flows_esp, IB_FLOW_SPEC_ESP, ib_flow_spec_esp);
FLOWS_OTHER(flows_vxlan, IB_FLOW_SPEC_VXLAN_TUNNEL, ib_flow_spec_tunnel);
FLOWS_OTHER(flows_gre, IB_FLOW_SPEC_GRE, ib_flow_spec_gre);
FLOWS_OTHER(flows_mpls, IB_FLOW_SPEC_MPLS, ib_flow_spec_mpls);
FLOWS_OTHER(flows_tag, IB_FLOW_SPEC_ACTION_TAG, ib_flow_spec_action_tag);
FLOWS_OTHER(flows_drop, IB_FLOW_SPEC_ACTION_DROP, ib_flow_spec_action_drop);
FLOWS_OTHER(flows_action, IB_FLOW_SPEC_ACTION_HANDLE, ib_flow_spec_action_handle);
FLOWS_OTHER(flows_count, IB_FLOW_SPEC_ACTION_COUNT, ib_flow_spec_action_count);
FLOWS_OTHER(flows_unknown, 0x7f, ib_flow_spec_eth);

static const struct flows_bad {
	const char *name;
	enum ib_flow_attr_type type;
	const void *specs[FLOWS_SPECS];
	void (*change)(struct ib_flow_attr *attr);
	int err;
} flows_bads[] = {
	{ "port 0", 0, {}, flows_set_port_zero, -EINVAL },
	{ "port 2", 0, {}, flows_set_port_2, -EINVAL },
	{ "one that does not keep the frame", 0, {}, flows_set_dont_trap, -EOPNOTSUPP },
	{ "one of frames sent", 0, {}, flows_set_egress, -EOPNOTSUPP },
	{ "a sniffer", IB_FLOW_ATTR_SNIFFER, {}, NULL, -EOPNOTSUPP },
	{ "a type that there is not", 0, {}, flows_set_type_4, -EINVAL },
	{ "all by default, of IPv4", IB_FLOW_ATTR_ALL_DEFAULT, { &flows_ipv4 }, NULL, -EINVAL },
	{ "multicast by default, of MACs", IB_FLOW_ATTR_MC_DEFAULT, { &flows_eth }, NULL, -EINVAL },
	{ "within a tunnel", 0, { &flows_eth }, flows_set_inner, -EOPNOTSUPP },
	{ "IPv4 within a tunnel", 0, { &flows_ipv4 }, flows_set_inner, -EOPNOTSUPP },
	{ "longer than it is", 0, { &flows_ipv6 }, flows_set_longer, -EINVAL },
	{ "shorter than it is", 0, { &flows_udp }, flows_set_shorter, -EINVAL },
	{ "one more than there are", 0, { &flows_eth }, flows_set_one_more, -EINVAL },
	{ "the last one cut", 0, { &flows_eth, &flows_ipv4 }, flows_set_cut, -EINVAL },
	{ "flags of IPv4", 0, { &flows_ipv4 }, flows_set_flags_mask, -EOPNOTSUPP },
	{ "Ethernet twice", 0, { &flows_eth, &flows_eth }, NULL, -EINVAL },
	{ "IPv4 and IPv6", 0, { &flows_ipv4, &flows_ipv6 }, NULL, -EINVAL },
	{ "UDP and TCP", 0, { &flows_udp, &flows_tcp }, NULL, -EINVAL },
	{ "IPv4 in the type of IPv6", 0, { &flows_eth, &flows_ipv4 }, flows_set_ipv6_type,
	  -EINVAL },
	{ "IPv6 in the type of IPv4", 0, { &flows_eth, &flows_ipv6 }, NULL, -EINVAL },
	{ "UDP in the protocol of TCP", 0, { &flows_ipv4, &flows_udp }, flows_set_protocol,
	  -EINVAL },
	{ "TCP in the protocol of UDP", 0, { &flows_ipv4, &flows_tcp }, NULL, -EINVAL },
	{ "InfiniBand", 0, { &flows_ib }, NULL, -EOPNOTSUPP },
	{ "ESP", 0, { &flows_esp }, NULL, -EOPNOTSUPP },
	{ "VXLAN", 0, { &flows_vxlan }, NULL, -EOPNOTSUPP },
	{ "GRE", 0, { &flows_gre }, NULL, -EOPNOTSUPP },
	{ "MPLS", 0, { &flows_mpls }, NULL, -EOPNOTSUPP },
	{ "a tag", 0, { &flows_eth, &flows_tag }, NULL, -EOPNOTSUPP },
	{ "to be dropped", 0, { &flows_eth, &flows_drop }, NULL, -EOPNOTSUPP },
	{ "an action", 0, { &flows_eth, &flows_action }, NULL, -EOPNOTSUPP },
	{ "counters", 0, { &flows_eth, &flows_count }, NULL, -EOPNOTSUPP },
	{ "an unknown one", 0, { &flows_unknown }, NULL, -EOPNOTSUPP },
};

KUNIT_ARRAY_PARAM_DESC(flows_bad, flows_bads, name);

static void flows_bad(struct kunit *test)
{
	const struct flows_bad *param = test->param_value;
	struct ib_flow_attr *attr = flows_attr(test, param->type, param->specs);
	struct hghca_flow flow = {};

	if (param->change)
		param->change(attr);
	KUNIT_EXPECT_EQ(test, param->err, hghca_flow_from_ib(&flow, attr));
}

/* ------------------------------------------------------------------ */
/* Flows of QPs                                                         */

struct flows {
	struct fake *fake;
	struct hghca_qp *hqp;
	struct ib_flow_attr *attr;
	/* What the device answers to an opcode, and how often from now on. */
	u16 refused;
	u8 status;
	u32 times;
};

static enum fake_end flows_answer(struct fake *fake, const struct fake_command *cmd,
				  struct fake_answer *answer)
{
	struct flows *this = fake->priv;

	if (cmd->op == this->refused && this->times) {
		answer->status = this->status;
		this->times--;
	}
	return FAKE_ANSWERED;
}

static void flows_set_up(struct fake *fake)
{
	u8 *limits = (u8 *)&fake->limits;

	fake->limits.caps |= cpu_to_be32(FLOWS_CAP);
	limits[0x5c] = 1;
	limits[0x5d] = 64;
	limits[0x5e] = 56;
}

static struct flows *flows_open(struct kunit *test)
{
	static const struct fake_qp_attr qp = {
		.type = IB_QPT_UD,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	static const void * const specs[FLOWS_SPECS] = { &flows_eth };
	struct flows *this = kunit_kzalloc(test, sizeof(*this), GFP_KERNEL);
	struct hghca_cq *hcq;

	KUNIT_ASSERT_NOT_NULL(test, this);
	KUNIT_ASSERT_EQ(test, 0, fake_test_open(test, flows_set_up, true));
	this->fake = test->priv;
	this->fake->priv = this;
	this->fake->answer = flows_answer;
	hcq = fake_cq(test, this->fake, 7);
	/* Raw packet QPs are made for users alone: as one that says it is. */
	this->hqp = fake_qp(test, fake_pd(test, this->fake), hcq, hcq, &qp);
	this->hqp->ibqp.qp_type = IB_QPT_RAW_PACKET;
	this->attr = flows_attr(test, IB_FLOW_ATTR_NORMAL, specs);
	return this;
}

static struct ib_flow *flows_create(struct flows *this)
{
	struct ib_flow *ibflow = hghca_create_flow(&this->hqp->ibqp, this->attr, NULL);

	/* As ib_core does. */
	if (!IS_ERR(ibflow)) {
		ibflow->device = &this->fake->hdev->ibdev;
		ibflow->qp = &this->hqp->ibqp;
	}
	return ibflow;
}

static void flows_commands(struct kunit *test)
{
	struct flows *this = flows_open(test);
	struct ib_flow *first, *second;
	struct fake_command *cmd;
	u32 mark;

	mark = fake_mark(this->fake);
	first = flows_create(this);
	KUNIT_ASSERT_FALSE(test, IS_ERR(first));
	cmd = fake_nth(this->fake, mark);
	KUNIT_EXPECT_EQ(test, 0xe05, cmd->op);
	KUNIT_EXPECT_EQ(test, 0, cmd->in_modifier);
	KUNIT_EXPECT_EQ(test, this->hqp->hw.qpn, be32_at(cmd->mailbox, 0x00));
	KUNIT_EXPECT_EQ(test, 0x02112233, be32_at(cmd->mailbox, 0x10));
	KUNIT_EXPECT_EQ(test, 0xffffffff, be32_at(cmd->mailbox, 0x50));

	second = flows_create(this);
	KUNIT_ASSERT_FALSE(test, IS_ERR(second));
	KUNIT_EXPECT_EQ(test, 1, fake_nth(this->fake, mark + 1)->in_modifier);
	/* There are two in all. */
	KUNIT_EXPECT_EQ(test, -ENOSPC, PTR_ERR_OR_ZERO(flows_create(this)));
	KUNIT_EXPECT_EQ(test, mark + 2, fake_mark(this->fake));

	KUNIT_EXPECT_EQ(test, 0, hghca_destroy_flow(first));
	KUNIT_EXPECT_EQ(test, 0xe06, fake_nth(this->fake, mark + 2)->op);
	KUNIT_EXPECT_EQ(test, 0, fake_nth(this->fake, mark + 2)->in_modifier);
	first = flows_create(this);
	KUNIT_ASSERT_FALSE(test, IS_ERR(first));
	KUNIT_EXPECT_EQ(test, 0, fake_nth(this->fake, mark + 3)->in_modifier);
	KUNIT_EXPECT_EQ(test, 0, hghca_destroy_flow(second));
	KUNIT_EXPECT_EQ(test, 1, fake_nth(this->fake, mark + 4)->in_modifier);
	KUNIT_EXPECT_EQ(test, 0, hghca_destroy_flow(first));
	KUNIT_EXPECT_TRUE(test, ida_is_empty(&this->fake->hdev->flow_ida));
}

static const struct flows_refusal {
	u8 status;
	int err;
} flows_refusals[] = {
	{ 0x06, -EEXIST },	/* RESOURCE_BUSY: the same rule again */
	{ 0x08, -ENOMEM },	/* EXCEED_LIM */
	{ 0x03, -EINVAL },
};

static void flows_refused(struct kunit *test)
{
	struct flows *this = flows_open(test);
	struct ib_flow *ibflow;
	u32 mark;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(flows_refusals); i++) {
		this->refused = 0xe05;
		this->status = flows_refusals[i].status;
		this->times = 1;
		KUNIT_EXPECT_EQ(test, flows_refusals[i].err, PTR_ERR_OR_ZERO(flows_create(this)));
		KUNIT_EXPECT_TRUE(test, ida_is_empty(&this->fake->hdev->flow_ida));
	}
	/* Without a word to the device. */
	mark = fake_mark(this->fake);
	this->attr->port = 2;
	KUNIT_EXPECT_EQ(test, -EINVAL, PTR_ERR_OR_ZERO(flows_create(this)));
	this->attr->port = 1;
	this->hqp->ibqp.qp_type = IB_QPT_UD;
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, PTR_ERR_OR_ZERO(flows_create(this)));
	this->hqp->ibqp.qp_type = IB_QPT_RAW_PACKET;
	KUNIT_EXPECT_EQ(test, mark, fake_mark(this->fake));
	ibflow = flows_create(this);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ibflow));
	KUNIT_EXPECT_EQ(test, 0, hghca_destroy_flow(ibflow));
}

/* Tried again: what the core forgets, the device must not keep. */
static void flows_detach_fails(struct kunit *test)
{
	struct flows *this = flows_open(test);
	struct ib_flow *ibflow = flows_create(this);
	u32 mark = fake_mark(this->fake);

	KUNIT_ASSERT_FALSE(test, IS_ERR(ibflow));
	this->refused = 0xe06;
	this->status = 0x01;
	this->times = 2;
	KUNIT_EXPECT_EQ(test, 0, hghca_destroy_flow(ibflow));
	KUNIT_EXPECT_EQ(test, mark + 3, fake_mark(this->fake));
	KUNIT_EXPECT_FALSE(test, hghca_dev_has_failed(this->fake->hdev));
	KUNIT_EXPECT_TRUE(test, ida_is_empty(&this->fake->hdev->flow_ida));
}

static void flows_detach_kept(struct kunit *test)
{
	struct flows *this = flows_open(test);
	struct ib_flow *ibflow = flows_create(this);

	KUNIT_ASSERT_FALSE(test, IS_ERR(ibflow));
	this->refused = 0xe06;
	this->status = 0x03;
	this->times = 1000;
	KUNIT_EXPECT_EQ(test, 0, hghca_destroy_flow(ibflow));
	KUNIT_EXPECT_TRUE(test, hghca_dev_has_failed(this->fake->hdev));
	KUNIT_EXPECT_TRUE(test, ida_is_empty(&this->fake->hdev->flow_ida));
}

/* ------------------------------------------------------------------ */
/* QPs                                                                  */

/* With the capability too, the kernel has no flows. */
static void flows_no_such_qp(struct kunit *test)
{
	struct flows *this = flows_open(test);
	struct hghca_pd *pd = fake_pd(test, this->fake);
	struct hghca_cq *hcq = fake_cq(test, this->fake, 7);
	const struct fake_qp_attr attr = { .type = IB_QPT_RAW_PACKET };
	u32 mark = fake_mark(this->fake);

	KUNIT_EXPECT_NULL(test, fake_new_qp(pd, hcq, hcq, &attr));
	KUNIT_EXPECT_EQ(test, mark, fake_mark(this->fake));
}

static struct kunit_case flows_cases_of_suite[] = {
	KUNIT_CASE_PARAM(flows_profile, flows_limit_gen_params),
	KUNIT_CASE_PARAM(flows_convert, flows_case_gen_params),
	KUNIT_CASE_PARAM(flows_bad, flows_bad_gen_params),
	KUNIT_CASE(flows_commands),
	KUNIT_CASE(flows_refused),
	KUNIT_CASE(flows_detach_fails),
	KUNIT_CASE(flows_detach_kept),
	KUNIT_CASE(flows_no_such_qp),
	{}
};

static struct kunit_suite flows_suite = {
	.name = "hghca_flows",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.test_cases = flows_cases_of_suite,
};
kunit_test_suite(flows_suite);
