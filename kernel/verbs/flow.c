// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: flow rules, which steer frames to raw packet QPs.
 *
 * A rule is one struct hghca_flow (document 4.20): fields of a frame and masks, built
 * from the specifications of the verb.  It exists until it is detached, in any state of
 * its QP.  ib_core keeps a QP while it has rules.
 */
#include <linux/etherdevice.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/slab.h>

#include "verbs/verbs.h"

/* An IPv4 address is in the last four bytes of an address of 16. */
#define HGHCA_FLOW_IPV4_AT	12

/* Kinds of the network layer and of the transport layer.  A frame has one of each. */
#define HGHCA_FLOW_NETWORK	(HGHCA_FLOW_IPV4 | HGHCA_FLOW_IPV6)
#define HGHCA_FLOW_TRANSPORT	(HGHCA_FLOW_UDP | HGHCA_FLOW_TCP)

struct hghca_ibflow {
	struct ib_flow ibflow;
	u32 index;
};

static struct hghca_ibflow *to_hflow(struct ib_flow *ibflow)
{
	return container_of(ibflow, struct hghca_ibflow, ibflow);
}

static void hghca_flow_require(struct hghca_flow *flow, u8 kind)
{
	flow->value.kinds |= kind;
	flow->mask.kinds |= kind;
}

/* Set one half of a rule, values or masks, from that of a specification. */
static void hghca_flow_put_eth(struct hghca_flow_fields *fields,
			       const struct ib_flow_eth_filter *filter)
{
	ether_addr_copy(fields->dmac, filter->dst_mac);
	ether_addr_copy(fields->smac, filter->src_mac);
	fields->ether_type = filter->ether_type;
	fields->vlan_tci = filter->vlan_tag;
}

static void hghca_flow_put_ipv4(struct hghca_flow_fields *fields,
				const struct ib_flow_ipv4_filter *filter)
{
	memcpy(fields->src_ip + HGHCA_FLOW_IPV4_AT, &filter->src_ip, sizeof(filter->src_ip));
	memcpy(fields->dst_ip + HGHCA_FLOW_IPV4_AT, &filter->dst_ip, sizeof(filter->dst_ip));
	fields->protocol = filter->proto;
	fields->tclass = filter->tos;
	fields->hop_limit = filter->ttl;
}

static void hghca_flow_put_ipv6(struct hghca_flow_fields *fields,
				const struct ib_flow_ipv6_filter *filter)
{
	memcpy(fields->src_ip, filter->src_ip, sizeof(fields->src_ip));
	memcpy(fields->dst_ip, filter->dst_ip, sizeof(fields->dst_ip));
	fields->flow_label = filter->flow_label & cpu_to_be32(HGHCA_FLOW_LABEL_MASK);
	fields->protocol = filter->next_hdr;
	fields->tclass = filter->traffic_class;
	fields->hop_limit = filter->hop_limit;
}

static void hghca_flow_put_ports(struct hghca_flow_fields *fields,
				 const struct ib_flow_tcp_udp_filter *filter)
{
	fields->src_port = filter->src_port;
	fields->dst_port = filter->dst_port;
}

/* Add a specification of valid size.  -EINVAL if there is one of its layer already. */
static int hghca_flow_add_spec(struct hghca_flow *flow, const union ib_flow_spec *spec, u32 *layers)
{
	u32 layer = BIT(FIELD_GET(IB_FLOW_SPEC_LAYER_MASK, spec->type));

	if (*layers & layer)
		return -EINVAL;
	*layers |= layer;

	switch (spec->type) {
	case IB_FLOW_SPEC_ETH:
		hghca_flow_put_eth(&flow->value, &spec->eth.val);
		hghca_flow_put_eth(&flow->mask, &spec->eth.mask);
		if (flow->mask.vlan_tci)
			hghca_flow_require(flow, HGHCA_FLOW_TAGGED);
		break;
	case IB_FLOW_SPEC_IPV4:
		if (spec->ipv4.mask.flags)
			return -EOPNOTSUPP;
		hghca_flow_put_ipv4(&flow->value, &spec->ipv4.val);
		hghca_flow_put_ipv4(&flow->mask, &spec->ipv4.mask);
		hghca_flow_require(flow, HGHCA_FLOW_IPV4);
		break;
	case IB_FLOW_SPEC_IPV6:
		hghca_flow_put_ipv6(&flow->value, &spec->ipv6.val);
		hghca_flow_put_ipv6(&flow->mask, &spec->ipv6.mask);
		hghca_flow_require(flow, HGHCA_FLOW_IPV6);
		break;
	case IB_FLOW_SPEC_TCP:
	case IB_FLOW_SPEC_UDP:
		hghca_flow_put_ports(&flow->value, &spec->tcp_udp.val);
		hghca_flow_put_ports(&flow->mask, &spec->tcp_udp.mask);
		hghca_flow_require(flow, spec->type == IB_FLOW_SPEC_UDP ? HGHCA_FLOW_UDP :
									  HGHCA_FLOW_TCP);
		break;
	}
	return 0;
}

/* Returns the bytes of a specification; 0 for an unsupported one. */
static size_t hghca_flow_spec_size(u32 type)
{
	switch (type) {
	case IB_FLOW_SPEC_ETH:
		return sizeof(struct ib_flow_spec_eth);
	case IB_FLOW_SPEC_IPV4:
		return sizeof(struct ib_flow_spec_ipv4);
	case IB_FLOW_SPEC_IPV6:
		return sizeof(struct ib_flow_spec_ipv6);
	case IB_FLOW_SPEC_TCP:
	case IB_FLOW_SPEC_UDP:
		return sizeof(struct ib_flow_spec_tcp_udp);
	default:
		return 0;
	}
}

/* Returns whether the EtherType contradicts the network layer, or the protocol the transport. */
static bool hghca_flow_is_contradictory(const struct hghca_flow *flow)
{
	u8 transport = flow->value.kinds & HGHCA_FLOW_TRANSPORT;
	u8 network = flow->value.kinds & HGHCA_FLOW_NETWORK;
	__be16 type = cpu_to_be16(network == HGHCA_FLOW_IPV4 ? ETH_P_IP : ETH_P_IPV6);
	u8 protocol = transport == HGHCA_FLOW_UDP ? IPPROTO_UDP : IPPROTO_TCP;

	return (network && (flow->value.ether_type ^ type) & flow->mask.ether_type) ||
	       (transport && (flow->value.protocol ^ protocol) & flow->mask.protocol);
}

/* Clear the bits of the values that the masks do not have. */
static void hghca_flow_apply_mask(struct hghca_flow *flow)
{
	const u8 *mask = (const u8 *)&flow->mask;
	u8 *value = (u8 *)&flow->value;
	size_t i;

	for (i = 0; i < sizeof(flow->mask); i++)
		value[i] &= mask[i];
}

static int hghca_flow_add_specs(struct hghca_flow *flow, const struct ib_flow_attr *attr)
{
	const void *at = attr->flows, *end = (const void *)attr + attr->size;
	u32 layers = 0;
	int i, ret;

	for (i = 0; i < attr->num_of_specs; i++) {
		const union ib_flow_spec *spec = at;
		size_t size;

		if (end - at < (ptrdiff_t)offsetofend(union ib_flow_spec, size))
			return -EINVAL;
		/* Tunnels, inner headers and actions have size 0. */
		size = hghca_flow_spec_size(spec->type);
		if (!size)
			return -EOPNOTSUPP;
		if (spec->size != size || end - at < (ptrdiff_t)size)
			return -EINVAL;
		ret = hghca_flow_add_spec(flow, spec, &layers);
		if (ret)
			return ret;
		at += size;
	}
	hghca_flow_apply_mask(flow);
	return hghca_flow_is_contradictory(flow) ? -EINVAL : 0;
}

/**
 * hghca_flow_from_ib - translate a flow for the device
 * @flow: output; zeroed by the caller; everything except the QP is set
 * @attr: the flow of ib_core
 *
 * Return: 0, -EOPNOTSUPP for fields or actions that the device does not support, or
 * -EINVAL for a flow that is malformed or can never match.
 */
int hghca_flow_from_ib(struct hghca_flow *flow, const struct ib_flow_attr *attr)
{
	if (attr->port != HGHCA_PORT_NUM)
		return -EINVAL;
	if (attr->flags)
		return -EOPNOTSUPP;

	switch (attr->type) {
	case IB_FLOW_ATTR_NORMAL:
		flow->type = HGHCA_FLOW_NORMAL;
		break;
	case IB_FLOW_ATTR_ALL_DEFAULT:
		flow->type = HGHCA_FLOW_ALL_DEFAULT;
		break;
	case IB_FLOW_ATTR_MC_DEFAULT:
		flow->type = HGHCA_FLOW_MC_DEFAULT;
		break;
	case IB_FLOW_ATTR_SNIFFER:
		return -EOPNOTSUPP;
	default:
		return -EINVAL;
	}
	if (attr->type != IB_FLOW_ATTR_NORMAL && attr->num_of_specs)
		return -EINVAL;

	flow->priority = cpu_to_be16(attr->priority);
	return hghca_flow_add_specs(flow, attr);
}

/**
 * hghca_create_flow - steer frames to a QP
 * @ibqp: the QP; ib_core has checked the permission of its user
 * @attr: the frames
 * @udata: of a user; no input
 *
 * Return: the flow, or an ERR_PTR(): an error of hghca_flow_from_ib(), -EOPNOTSUPP for
 * a QP that is no raw packet QP, -EEXIST if the QP already has the same rule, -ENOSPC if
 * no rule is free, -ENOMEM if the device has no room for more masks or for more QPs with
 * this rule, or an error of an allocation or a command.
 */
struct ib_flow *hghca_create_flow(struct ib_qp *ibqp, struct ib_flow_attr *attr,
				  struct ib_udata *udata)
{
	struct hghca_dev *hdev = to_hdev(ibqp->device);
	struct hghca_flow flow = {};
	struct hghca_ibflow *hflow;
	int ret;

	if (ibqp->qp_type != IB_QPT_RAW_PACKET)
		return ERR_PTR(-EOPNOTSUPP);
	ret = ib_no_udata_io(udata);
	if (ret)
		return ERR_PTR(ret);
	ret = hghca_flow_from_ib(&flow, attr);
	if (ret) {
		ibdev_dbg(&hdev->ibdev, "flow of type %u with %u specs is not possible: %d\n",
			  attr->type, attr->num_of_specs, ret);
		return ERR_PTR(ret);
	}
	flow.qpn = cpu_to_be32(ibqp->rwq_ind_tbl ? HGHCA_FLOW_RSS | to_hqp(ibqp)->rss_group :
						   to_hqp(ibqp)->hw.qpn);

	hflow = kzalloc_obj(*hflow);
	if (!hflow)
		return ERR_PTR(-ENOMEM);
	ret = ida_alloc_max(&hdev->flow_ida, hdev->limits.num_flows - 1, GFP_KERNEL);
	if (ret < 0)
		goto err_free;
	hflow->index = ret;

	ret = hghca_cmd_flow_attach(hdev, hflow->index, &flow);
	if (ret)
		goto err_free_index;
	return &hflow->ibflow;

err_free_index:
	ida_free(&hdev->flow_ida, hflow->index);
err_free:
	kfree(hflow);
	return ERR_PTR(ret == -EBUSY ? -EEXIST : ret);
}

/**
 * hghca_destroy_flow - undo hghca_create_flow()
 * @ibflow: the flow
 *
 * Return: 0.
 */
int hghca_destroy_flow(struct ib_flow *ibflow)
{
	struct hghca_dev *hdev = to_hdev(ibflow->device);
	struct hghca_ibflow *hflow = to_hflow(ibflow);
	int ret;

	ret = hghca_cmd_flow_detach(hdev, hflow->index);
	if (ret) {
		ibdev_err(&hdev->ibdev, "failed to detach flow %u: %d\n", hflow->index, ret);
		/* The number of the QP may be reused next. */
		hghca_dev_fail(hdev, "failed to detach a flow");
	}
	ida_free(&hdev->flow_ida, hflow->index);
	kfree(hflow);
	return 0;
}
