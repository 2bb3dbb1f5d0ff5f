// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* JingZhao HCA: access rights of regions and windows. */
#include "verbs/verbs.h"

/**
 * hghca_access_from_ib - translate the access rights of a region for the device
 * @ib_access: IB_ACCESS_*; flags that the device does not know are ignored
 *
 * Return: HGHCA_ACCESS_*.
 */
u32 hghca_access_from_ib(int ib_access)
{
	u32 access = 0;

	if (ib_access & IB_ACCESS_LOCAL_WRITE)
		access |= HGHCA_ACCESS_LOCAL_WRITE;
	if (ib_access & IB_ACCESS_REMOTE_WRITE)
		access |= HGHCA_ACCESS_REMOTE_WRITE;
	if (ib_access & IB_ACCESS_REMOTE_READ)
		access |= HGHCA_ACCESS_REMOTE_READ;
	if (ib_access & IB_ACCESS_REMOTE_ATOMIC)
		access |= HGHCA_ACCESS_REMOTE_ATOMIC;
	if (ib_access & IB_ACCESS_MW_BIND)
		access |= HGHCA_ACCESS_MW_BIND;
	if (ib_access & IB_ZERO_BASED)
		access |= HGHCA_ACCESS_ZERO_BASED;
	if (ib_access & IB_ACCESS_FLUSH_GLOBAL)
		access |= HGHCA_ACCESS_FLUSH_GLOBAL;
	return access;
}

/**
 * hghca_mr_check_access - check the access rights that a user requests
 * @hdev: the device
 * @ib_access: IB_ACCESS_*
 *
 * Return: @ib_access without optional flags, or -EOPNOTSUPP.
 */
int hghca_mr_check_access(struct hghca_dev *hdev, int ib_access)
{
	int supported = HGHCA_MR_ACCESS_SUPPORTED;

	if (hdev->limits.caps & HGHCA_CAP_MEM_MGT)
		supported |= IB_ACCESS_MW_BIND;
	if (hdev->limits.caps & HGHCA_CAP_PLACEMENT)
		supported |= IB_ACCESS_FLUSH_GLOBAL;
	ib_access &= ~IB_ACCESS_OPTIONAL;
	if (!(ib_access & ~supported))
		return ib_access;
	ibdev_dbg(&hdev->ibdev, "region: access %#x is not supported\n", ib_access);
	return -EOPNOTSUPP;
}
