// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: priority flow control (IEEE 802.1Q, clause 36), for DCB netlink.
 *
 * The device has two classes of frames: RoCE packets and all others.  Each class has
 * its own priority, and PFC is enabled or disabled for each.
 */
#include <linux/rtnetlink.h>
#include <net/dcbnl.h>

#include "netdev.h"

#define HGHCA_DCB_CLASSES	2
#define HGHCA_DCB_MODE		(DCB_CAP_DCBX_HOST | DCB_CAP_DCBX_VER_IEEE)
#define HGHCA_DCB_PFC		(HGHCA_FLOW_PFC_RX | HGHCA_FLOW_PFC_TX)

/* Priority of each class, as a bit. */
struct hghca_dcb_bits {
	u8 roce;
	u8 other;
};

static int hghca_dcb_query(struct hghca_netdev *nd, struct hghca_flow_control *control,
			   struct hghca_dcb_bits *bits)
{
	int err;

	err = hghca_cmd_query_flow_control(nd->hdev, control);
	if (err)
		return err;
	if (control->roce_priority >= IEEE_8021Q_MAX_PRIORITIES ||
	    control->other_priority >= IEEE_8021Q_MAX_PRIORITIES)
		return -EPROTO;
	bits->roce = BIT(control->roce_priority);
	bits->other = BIT(control->other_priority);
	return 0;
}

static int hghca_dcb_ieee_getpfc(struct net_device *netdev, struct ieee_pfc *pfc)
{
	struct hghca_netdev *nd = netdev_priv(netdev);
	struct hghca_flow_control control;
	struct hghca_dcb_bits bits;
	int err;

	ASSERT_RTNL();

	err = hghca_dcb_query(nd, &control, &bits);
	if (err)
		return err;
	pfc->pfc_cap = HGHCA_DCB_CLASSES;
	if (!(be32_to_cpu(control.flags) & HGHCA_DCB_PFC))
		return 0;
	if (control.pfc_classes & HGHCA_FLOW_CLASS_ROCE)
		pfc->pfc_en |= bits.roce;
	if (control.pfc_classes & HGHCA_FLOW_CLASS_OTHER)
		pfc->pfc_en |= bits.other;
	return 0;
}

/* A port uses either PFC or link-level pause (802.1Q, 36.1): the one enabled last. */
static int hghca_dcb_ieee_setpfc(struct net_device *netdev, struct ieee_pfc *pfc)
{
	struct hghca_netdev *nd = netdev_priv(netdev);
	struct hghca_flow_control control;
	struct hghca_dcb_bits bits;
	u32 flags;
	int err;

	ASSERT_RTNL();

	/* The device has no MACsec delay, and its buffers have room for frames in flight. */
	if (pfc->mbc || pfc->delay)
		return -EOPNOTSUPP;
	err = hghca_dcb_query(nd, &control, &bits);
	if (err)
		return err;
	if (pfc->pfc_en & ~(bits.roce | bits.other))
		return -EINVAL;

	flags = be32_to_cpu(control.flags) & ~HGHCA_DCB_PFC;
	if (pfc->pfc_en) {
		flags = HGHCA_DCB_PFC;
		control.pfc_classes = (pfc->pfc_en & bits.roce ? HGHCA_FLOW_CLASS_ROCE : 0) |
				      (pfc->pfc_en & bits.other ? HGHCA_FLOW_CLASS_OTHER : 0);
	}
	control.flags = cpu_to_be32(flags);
	return hghca_cmd_set_flow_control(nd->hdev, &control);
}

static u8 hghca_dcb_getdcbx(struct net_device *netdev)
{
	return HGHCA_DCB_MODE;
}

static u8 hghca_dcb_setdcbx(struct net_device *netdev, u8 mode)
{
	return mode != HGHCA_DCB_MODE;
}

const struct dcbnl_rtnl_ops hghca_dcbnl_ops = {
	.getdcbx = hghca_dcb_getdcbx,
	.ieee_getpfc = hghca_dcb_ieee_getpfc,
	.ieee_setpfc = hghca_dcb_ieee_setpfc,
	.setdcbx = hghca_dcb_setdcbx,
};
