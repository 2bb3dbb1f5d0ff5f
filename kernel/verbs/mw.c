// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: memory windows.
 *
 * A window is an MPT without memory.  Its user binds it with BIND_MW, which also changes
 * the tag of its key.  The driver is not involved in that.
 */
#include "verbs/verbs.h"

/**
 * hghca_alloc_mw - allocate an unbound memory window
 * @ibmw: the window; its type and PD are set
 * @udata: must be empty
 *
 * Windows of type 2 are of type 2B.
 *
 * Return: 0, -EINVAL for input, or an error of an allocation or a command.
 */
int hghca_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata)
{
	struct hghca_dev *hdev = to_hdev(ibmw->device);
	struct hghca_mw *mw = to_hmw(ibmw);
	const struct hghca_hwmr_attr attr = {
		.kind = ibmw->type == IB_MW_TYPE_1 ? HGHCA_HWMR_WINDOW_1 : HGHCA_HWMR_WINDOW_2B,
		.pdn = to_hpd(ibmw->pd)->pdn,
		.page_shift = 12,
	};
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	err = hghca_hwmr_create(hdev, &mw->hw, &attr, 0);
	if (err)
		return err;
	atomic_inc(&to_hpd(ibmw->pd)->windows);
	ibmw->rkey = mw->hw.key;
	return 0;
}

/**
 * hghca_dealloc_mw - destroy a memory window, bound or not
 * @ibmw: the window; a device that does not return it is given up
 *
 * Return: 0.
 */
int hghca_dealloc_mw(struct ib_mw *ibmw)
{
	hghca_hwmr_take(to_hdev(ibmw->device), &to_hmw(ibmw)->hw);
	atomic_dec(&to_hpd(ibmw->pd)->windows);
	return 0;
}
