// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* JingZhao HCA: the GID table, and paths on a device without one. */
#include <linux/unaligned.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>

#include "verbs/verbs.h"

#define HGHCA_VLAN_NONE		0xffff

/**
 * hghca_add_gid - add a GID to the table of the device
 * @attr: the GID, its index and net device
 * @context: not used
 *
 * On a device without a GID table, the path of each QP and address handle has the
 * addresses; see hghca_path_resolve().
 *
 * Return: 0 or a negative errno.
 */
int hghca_add_gid(const struct ib_gid_attr *attr, void **context)
{
	struct hghca_dev *hdev = to_hdev(attr->device);
	struct hghca_gid_entry entry = {};
	u16 vlan = HGHCA_VLAN_NONE;
	u8 mac[ETH_ALEN];
	int err;

	if (attr->port_num != HGHCA_PORT_NUM || attr->index >= hdev->limits.num_gids ||
	    attr->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP) {
		ibdev_dbg(&hdev->ibdev, "GID %u of port %u: type %d\n", attr->index,
			  attr->port_num, attr->gid_type);
		return -EINVAL;
	}
	if (!(hdev->limits.caps & HGHCA_CAP_GID_TABLE))
		return 0;

	err = rdma_read_gid_l2_fields(attr, &vlan, mac);
	if (err)
		return err;

	memcpy(entry.gid, attr->gid.raw, sizeof(entry.gid));
	entry.mac_h = cpu_to_be32(get_unaligned_be32(mac));
	entry.mac_l = cpu_to_be16(get_unaligned_be16(mac + 4));
	if (vlan != HGHCA_VLAN_NONE)
		entry.vlan = cpu_to_be32(HGHCA_GID_VLAN_VALID |
					 FIELD_PREP(HGHCA_GID_VLAN_ID_MASK, vlan));
	return hghca_cmd_set_gid(hdev, attr->index, &entry);
}

/**
 * hghca_del_gid - remove a GID from the table of the device
 * @attr: the GID and its index
 * @context: not used
 *
 * Return: 0 or a negative errno.
 */
int hghca_del_gid(const struct ib_gid_attr *attr, void **context)
{
	struct hghca_dev *hdev = to_hdev(attr->device);

	if (attr->index >= hdev->limits.num_gids)
		return -EINVAL;
	if (!(hdev->limits.caps & HGHCA_CAP_GID_TABLE))
		return 0;
	return hghca_cmd_set_gid(hdev, attr->index, NULL);
}

/**
 * hghca_path_resolve - get the addresses of a path, for a device without a GID table
 * @ah: the path, with a GRH
 * @path: output
 *
 * The fields of the device have room for IPv4, and none for a VLAN.
 *
 * Any context.
 *
 * Return: 0, -EOPNOTSUPP for a path over IPv6 or in a VLAN, or -EINVAL for a GID without
 * a net device.
 */
int hghca_path_resolve(const struct rdma_ah_attr *ah, struct hghca_path *path)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(ah);
	const struct ib_gid_attr *source = grh->sgid_attr;
	u16 vlan = HGHCA_VLAN_NONE;

	if (!source || rdma_read_gid_l2_fields(source, &vlan, path->smac))
		return -EINVAL;
	if (vlan != HGHCA_VLAN_NONE ||
	    !ipv6_addr_v4mapped((const struct in6_addr *)source->gid.raw) ||
	    !ipv6_addr_v4mapped((const struct in6_addr *)grh->dgid.raw)) {
		ibdev_dbg(source->device, "GID %u: without a GID table only IPv4 without VLAN\n",
			  source->index);
		return -EOPNOTSUPP;
	}
	memcpy(&path->sip, source->gid.raw + 12, sizeof(path->sip));
	memcpy(&path->dip, grh->dgid.raw + 12, sizeof(path->dip));
	return 0;
}
