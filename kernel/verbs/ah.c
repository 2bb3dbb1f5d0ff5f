// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* JingZhao HCA: address handles. The device does not know them. */
#include <linux/unaligned.h>

#include "verbs/verbs.h"

/* The form of a device without a GID table. */
static int hghca_ah_encode_base(struct hghca_ah *hah, const struct rdma_ah_attr *attr,
				const u8 *dmac, struct hghca_create_ah_resp *resp)
{
	struct hghca_path path;
	int ret;

	ret = hghca_path_resolve(attr, &path);
	if (ret)
		return ret;
	hah->base = (struct hghca_ud_unit) {
		.port = cpu_to_le32(rdma_ah_get_port_num(attr)),
		.lids = cpu_to_le32(get_unaligned_be16(dmac + 4) << 16 |
				    get_unaligned_be16(path.smac + 4)),
		.smac_h = cpu_to_le32(get_unaligned_be32(path.smac)),
		.dmac_h = cpu_to_le32(get_unaligned_be32(dmac)),
		.sip = cpu_to_le32(be32_to_cpu(path.sip)),
		.dip = cpu_to_le32(be32_to_cpu(path.dip)),
	};
	ether_addr_copy(resp->smac, path.smac);
	resp->sip = path.sip;
	return 0;
}

/**
 * hghca_create_ah - create an address handle
 * @ibah: the handle
 * @init: its address
 * @udata: of a user, output: the addresses; NULL for a kernel handle
 *
 * Does not sleep: the kernel may create handles in any context.
 *
 * Return: 0, -EINVAL for an address without a GRH or with an invalid static rate, or
 * -EOPNOTSUPP for an address that the device has no form for.
 */
int hghca_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init, struct ib_udata *udata)
{
	struct rdma_ah_attr *attr = init->ah_attr;
	struct hghca_create_ah_resp resp = {};
	const u8 *dmac = rdma_ah_retrieve_dmac(attr);
	struct hghca_ah *hah = to_hah(ibah);
	int ret;

	ret = ib_is_udata_in_empty(udata);
	if (ret)
		return ret;
	if (!dmac || !(rdma_ah_get_ah_flags(attr) & IB_AH_GRH)) {
		ibdev_dbg(ibah->device, "address handle without a GRH\n");
		return -EINVAL;
	}
	if (!hghca_is_static_rate(rdma_ah_get_static_rate(attr))) {
		ibdev_dbg(ibah->device, "address handle with static rate %u\n",
			  rdma_ah_get_static_rate(attr));
		return -EINVAL;
	}

	hghca_wqe_encode_av(&hah->ud, attr, dmac);
	if (!(to_hdev(ibah->device)->limits.caps & HGHCA_CAP_GID_TABLE)) {
		ret = hghca_ah_encode_base(hah, attr, dmac, &resp);
		if (ret)
			return ret;
	}
	if (!udata)
		return 0;
	ether_addr_copy(resp.dmac, dmac);
	return ib_respond_udata(udata, resp);
}

/**
 * hghca_query_ah - query the address of a handle
 * @ibah: the handle
 * @attr: output: the address
 *
 * Return: 0.
 */
int hghca_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	const struct hghca_ud_gid_unit *ud = &to_hah(ibah)->ud;
	u32 port = le32_to_cpu(ud->port);
	u32 class = le32_to_cpu(ud->sl_tclass_flowlabel);

	memset(attr, 0, sizeof(*attr));
	attr->type = ibah->type;
	rdma_ah_set_port_num(attr, FIELD_GET(HGHCA_UD_PORT_MASK, port));
	rdma_ah_set_sl(attr, FIELD_GET(HGHCA_QPC_SL_MASK, class));
	rdma_ah_set_static_rate(attr, FIELD_GET(HGHCA_UD_STATIC_RATE_MASK, port));
	rdma_ah_set_grh(attr, NULL, FIELD_GET(HGHCA_QPC_FLOWLABEL_MASK, class),
			FIELD_GET(HGHCA_UD_SGID_INDEX_MASK, port),
			FIELD_GET(HGHCA_UD_HOP_LIMIT_MASK, port),
			FIELD_GET(HGHCA_QPC_TCLASS_MASK, class));
	rdma_ah_set_dgid_raw(attr, (void *)ud->dgid);
	put_unaligned_be32(le32_to_cpu(ud->dmac_h), attr->roce.dmac);
	put_unaligned_be16(le32_get_bits(ud->dmac_l, HGHCA_UD_DMAC_L_MASK),
			   attr->roce.dmac + 4);
	return 0;
}

/**
 * hghca_destroy_ah - destroy an address handle
 * @ibah: the handle
 * @flags: whether it may sleep
 *
 * Return: 0.
 */
int hghca_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	return 0;
}
