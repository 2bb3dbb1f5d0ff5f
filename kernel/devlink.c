// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: the devlink instance of the device.
 *
 * It reports the versions, and has the settings of congestion control as parameters.  A
 * command sets all of them, and a parameter is one of them: devlink holds the lock of the
 * instance while it calls this file, so nothing changes between the query and the command.
 */
#include "hghca.h"
#include "verbs/verbs.h"

/**
 * struct hghca_devlink - private data of the instance
 * @hdev: the device
 */
struct hghca_devlink {
	struct hghca_dev *hdev;
};

/* Those of the driver follow the generic ones. */
enum hghca_devlink_param_id {
	HGHCA_DEVLINK_REACT = DEVLINK_PARAM_GENERIC_ID_MAX + 1,
	HGHCA_DEVLINK_NOTIFY,
	HGHCA_DEVLINK_CNP_INTERVAL,
	HGHCA_DEVLINK_CNP_DSCP,
	HGHCA_DEVLINK_CNP_PRIORITY,
	HGHCA_DEVLINK_THRESHOLD,
	HGHCA_DEVLINK_GAIN,
	HGHCA_DEVLINK_ALPHA_PERIOD,
	HGHCA_DEVLINK_DECREASE_PERIOD,
	HGHCA_DEVLINK_INCREASE_PERIOD,
	HGHCA_DEVLINK_INCREASE_BYTES,
	HGHCA_DEVLINK_ADDITIVE,
	HGHCA_DEVLINK_HYPER,
	HGHCA_DEVLINK_MIN_RATE,
};

static int hghca_param_get(struct devlink *devlink, u32 id, struct devlink_param_gset_ctx *ctx,
			   struct netlink_ext_ack *extack);
static int hghca_param_set(struct devlink *devlink, u32 id, struct devlink_param_gset_ctx *ctx,
			   struct netlink_ext_ack *extack);

#define HGHCA_PARAM(_id, _name, _type, _field, _bit)				\
	{									\
		.param = DEVLINK_PARAM_DRIVER(_id, _name,			\
					      DEVLINK_PARAM_TYPE_##_type,	\
					      BIT(DEVLINK_PARAM_CMODE_RUNTIME),	\
					      hghca_param_get, hghca_param_set, NULL), \
		.offset = offsetof(struct hghca_congestion, _field),		\
		.bit = (_bit),							\
	}

/* In the order of the ids. */
const struct hghca_devlink_param hghca_devlink_params[HGHCA_DEVLINK_PARAMS] = {
	HGHCA_PARAM(HGHCA_DEVLINK_REACT, "congestion_react", BOOL, flags, HGHCA_CONGESTION_REACT),
	HGHCA_PARAM(HGHCA_DEVLINK_NOTIFY, "congestion_notify", BOOL, flags,
		    HGHCA_CONGESTION_NOTIFY),
	HGHCA_PARAM(HGHCA_DEVLINK_CNP_INTERVAL, "congestion_cnp_interval", U32, cnp_interval, 0),
	HGHCA_PARAM(HGHCA_DEVLINK_CNP_DSCP, "congestion_cnp_dscp", U8, cnp_dscp, 0),
	HGHCA_PARAM(HGHCA_DEVLINK_CNP_PRIORITY, "congestion_cnp_priority", U8, cnp_priority, 0),
	HGHCA_PARAM(HGHCA_DEVLINK_THRESHOLD, "congestion_threshold", U8, threshold, 0),
	HGHCA_PARAM(HGHCA_DEVLINK_GAIN, "congestion_gain", U32, gain, 0),
	HGHCA_PARAM(HGHCA_DEVLINK_ALPHA_PERIOD, "congestion_alpha_period", U32, alpha_period, 0),
	HGHCA_PARAM(HGHCA_DEVLINK_DECREASE_PERIOD, "congestion_decrease_period", U32,
		    decrease_period, 0),
	HGHCA_PARAM(HGHCA_DEVLINK_INCREASE_PERIOD, "congestion_increase_period", U32,
		    increase_period, 0),
	HGHCA_PARAM(HGHCA_DEVLINK_INCREASE_BYTES, "congestion_increase_bytes", U32,
		    increase_bytes, 0),
	HGHCA_PARAM(HGHCA_DEVLINK_ADDITIVE, "congestion_additive", U32, additive, 0),
	HGHCA_PARAM(HGHCA_DEVLINK_HYPER, "congestion_hyper", U32, hyper, 0),
	HGHCA_PARAM(HGHCA_DEVLINK_MIN_RATE, "congestion_min_rate", U32, min_rate, 0),
};

static void hghca_param_read(const struct hghca_devlink_param *row,
			     const struct hghca_congestion *congestion,
			     union devlink_param_value *val)
{
	const void *field = (const u8 *)congestion + row->offset;

	if (row->param.type == DEVLINK_PARAM_TYPE_U8)
		val->vu8 = *(const u8 *)field;
	else if (row->param.type == DEVLINK_PARAM_TYPE_BOOL)
		val->vbool = be32_to_cpup(field) & row->bit;
	else
		val->vu32 = be32_to_cpup(field);
}

static void hghca_param_write(const struct hghca_devlink_param *row,
			      struct hghca_congestion *congestion,
			      const union devlink_param_value *val)
{
	void *field = (u8 *)congestion + row->offset;
	__be32 bit = cpu_to_be32(row->bit);

	if (row->param.type == DEVLINK_PARAM_TYPE_U8)
		*(u8 *)field = val->vu8;
	else if (row->param.type == DEVLINK_PARAM_TYPE_BOOL)
		*(__be32 *)field = (*(__be32 *)field & ~bit) | (val->vbool ? bit : 0);
	else
		*(__be32 *)field = cpu_to_be32(val->vu32);
}

static struct hghca_dev *hghca_devlink_dev(struct devlink *devlink)
{
	struct hghca_devlink *priv = devlink_priv(devlink);

	devl_assert_locked(devlink);
	return priv->hdev;
}

static int hghca_param_query(struct hghca_dev *hdev, struct hghca_congestion *congestion,
			     struct netlink_ext_ack *extack)
{
	int err = hghca_cmd_query_congestion(hdev, congestion);

	if (err)
		NL_SET_ERR_MSG_MOD(extack, "failed to query the settings of congestion control");
	return err;
}

static int hghca_param_get(struct devlink *devlink, u32 id, struct devlink_param_gset_ctx *ctx,
			   struct netlink_ext_ack *extack)
{
	struct hghca_dev *hdev = hghca_devlink_dev(devlink);
	struct hghca_congestion congestion;
	int err;

	err = hghca_param_query(hdev, &congestion, extack);
	if (err)
		return err;
	hghca_param_read(&hghca_devlink_params[id - HGHCA_DEVLINK_REACT], &congestion, &ctx->val);
	return 0;
}

/* The ranges are the device's. */
static int hghca_param_set(struct devlink *devlink, u32 id, struct devlink_param_gset_ctx *ctx,
			   struct netlink_ext_ack *extack)
{
	struct hghca_dev *hdev = hghca_devlink_dev(devlink);
	struct hghca_congestion congestion;
	int err;

	err = hghca_param_query(hdev, &congestion, extack);
	if (err)
		return err;
	hghca_param_write(&hghca_devlink_params[id - HGHCA_DEVLINK_REACT], &congestion, &ctx->val);
	err = hghca_cmd_set_congestion(hdev, &congestion);
	if (err)
		NL_SET_ERR_MSG_MOD(extack, "the device refused the value");
	return err;
}

static int hghca_devlink_info_get(struct devlink *devlink, struct devlink_info_req *req,
				  struct netlink_ext_ack *extack)
{
	struct hghca_dev *hdev = hghca_devlink_dev(devlink);
	char version[IB_FW_VERSION_NAME_MAX];
	int err;

	snprintf(version, sizeof(version), "%016llx", hdev->board_id);
	err = devlink_info_version_fixed_put(req, DEVLINK_INFO_VERSION_GENERIC_BOARD_ID, version);
	if (err)
		return err;

	snprintf(version, sizeof(version), "%x", hdev->bus.hw_rev);
	err = devlink_info_version_fixed_put(req, DEVLINK_INFO_VERSION_GENERIC_ASIC_REV, version);
	if (err)
		return err;

	hghca_get_dev_fw_str(&hdev->ibdev, version);
	return devlink_info_version_running_put(req, DEVLINK_INFO_VERSION_GENERIC_FW, version);
}

static const struct devlink_ops hghca_devlink_ops = {
	.info_get = hghca_devlink_info_get,
};

static void hghca_params_unregister(struct devlink *devlink, unsigned int count)
{
	while (count--)
		devlink_params_unregister(devlink, &hghca_devlink_params[count].param, 1);
}

static int hghca_params_register(struct devlink *devlink)
{
	unsigned int i;
	int err;

	for (i = 0; i < HGHCA_DEVLINK_PARAMS; i++) {
		err = devlink_params_register(devlink, &hghca_devlink_params[i].param, 1);
		if (err) {
			hghca_params_unregister(devlink, i);
			return err;
		}
	}
	return 0;
}

/**
 * hghca_devlink_register - register the devlink instance
 * @hdev: the device, started
 *
 * Return: 0 or a negative errno.
 */
int hghca_devlink_register(struct hghca_dev *hdev)
{
	struct hghca_devlink *priv;
	struct devlink *devlink;
	int err;

	devlink = devlink_alloc(&hghca_devlink_ops, sizeof(*priv), hdev->bus.dev);
	if (!devlink)
		return -ENOMEM;
	priv = devlink_priv(devlink);
	priv->hdev = hdev;

	if (hdev->limits.caps & HGHCA_CAP_CONGESTION) {
		err = hghca_params_register(devlink);
		if (err)
			goto err_free;
	}
	hdev->devlink = devlink;
	devlink_register(devlink);
	return 0;

err_free:
	devlink_free(devlink);
	return err;
}

/**
 * hghca_devlink_unregister - undo hghca_devlink_register()
 * @hdev: the device
 *
 * No function of this file runs afterwards.
 */
void hghca_devlink_unregister(struct hghca_dev *hdev)
{
	devlink_unregister(hdev->devlink);
	if (hdev->limits.caps & HGHCA_CAP_CONGESTION)
		hghca_params_unregister(hdev->devlink, HGHCA_DEVLINK_PARAMS);
	devlink_free(hdev->devlink);
	hdev->devlink = NULL;
}
