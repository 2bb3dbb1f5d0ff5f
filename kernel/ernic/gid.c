// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ERNIC and ETRNIC: GIDs.  The hardware has one address of each version of IP: the first
 * GID of a version has it, and further ones are refused.
 */
#include <linux/if_vlan.h>
#include <linux/unaligned.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>
#include "ernic.h"

static void ernic_write_gid(struct ernic_dev *edev, bool ipv4, const u8 *gid)
{
	u32 i;

	if (ipv4) {
		ernic_write(edev, ERNIC_IPV4XADD, get_unaligned_be32(gid + 12));
		return;
	}
	/* The last register has the first four bytes. */
	for (i = 0; i < 4; i++)
		ernic_write(edev, ERNIC_IPV6XADD1 + 4 * i, get_unaligned_be32(gid + 12 - 4 * i));
}

static bool ernic_is_ipv4(const struct ib_gid_attr *attr)
{
	return ipv6_addr_v4mapped((const struct in6_addr *)attr->gid.raw);
}

/**
 * ernic_add_gid - use a GID as the address of the port
 * @attr: the GID
 * @context: not used
 *
 * Return: 0, -EOPNOTSUPP in a VLAN, or -ENOSPC for another GID of the same IP version.
 */
int ernic_add_gid(const struct ib_gid_attr *attr, void **context)
{
	struct ernic_dev *edev = to_edev(attr->device);
	bool ipv4 = ernic_is_ipv4(attr);
	int *owner = ipv4 ? &edev->gid_v4 : &edev->gid_v6;
	u16 vlan = 0xffff;
	int err = 0;

	if (rdma_read_gid_l2_fields(attr, &vlan, NULL) || vlan != 0xffff)
		return -EOPNOTSUPP;
	mutex_lock(&edev->conf_lock);
	if (*owner >= 0 && *owner != attr->index) {
		err = -ENOSPC;
	} else {
		*owner = attr->index;
		ernic_write_gid(edev, ipv4, attr->gid.raw);
	}
	mutex_unlock(&edev->conf_lock);
	return err;
}

int ernic_del_gid(const struct ib_gid_attr *attr, void **context)
{
	static const u8 none[sizeof(union ib_gid)];
	struct ernic_dev *edev = to_edev(attr->device);
	bool ipv4 = ernic_is_ipv4(attr);
	int *owner = ipv4 ? &edev->gid_v4 : &edev->gid_v6;

	mutex_lock(&edev->conf_lock);
	if (*owner == attr->index) {
		*owner = -1;
		ernic_write_gid(edev, ipv4, none);
	}
	mutex_unlock(&edev->conf_lock);
	return 0;
}
