// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: XRC domains, which are numbers.  A target QP can only use SRQs of its own
 * domain.
 */

#include "verbs/verbs.h"

/**
 * hghca_alloc_xrcd - allocate an XRC domain
 * @ibxrcd: the domain
 * @udata: of a user; no input
 *
 * Return: 0, -EINVAL for input that is not 0, -ENOSPC if no number is free, or
 * -ENOMEM.
 */
int hghca_alloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	struct hghca_dev *hdev = to_hdev(ibxrcd->device);
	int id;

	id = ib_no_udata_io(udata);
	if (id)
		return id;
	id = ida_alloc_range(&hdev->xrcd_ida, 1, hdev->limits.max_xrcdn, GFP_KERNEL);
	if (id < 0)
		return id;
	to_hxrcd(ibxrcd)->xrcdn = id;
	return 0;
}

/**
 * hghca_dealloc_xrcd - destroy an XRC domain
 * @ibxrcd: the domain, without SRQs and QPs
 * @udata: of a user
 *
 * Return: 0.
 */
int hghca_dealloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	int err = ib_no_udata_io(udata);

	if (err)
		return err;
	ida_free(&to_hdev(ibxrcd->device)->xrcd_ida, to_hxrcd(ibxrcd)->xrcdn);
	return 0;
}
