/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* After 6.1: devlink reports the name of the driver; before, each driver does. */
#ifndef COMPAT_HAS_DEVLINK_DRIVER_NAME
#include <linux/device.h>
#include <net/devlink.h>

/* A file has the instances of one driver. */
static int (*compat_info_get)(struct devlink *devlink, struct devlink_info_req *req,
			      struct netlink_ext_ack *extack) __maybe_unused;

static inline int compat_call_info_get(struct devlink *devlink, struct devlink_info_req *req,
				       struct netlink_ext_ack *extack)
{
	int err = devlink_info_driver_name_put(req, devlink_to_dev(devlink)->driver->name);

	return err ?: compat_info_get(devlink, req, extack);
}

static inline struct devlink *compat_devlink_alloc(const struct devlink_ops *ops,
						   size_t priv_size, struct device *dev)
{
	static struct devlink_ops given;

	compat_info_get = ops->info_get;
	given = *ops;
	if (ops->info_get)
		given.info_get = compat_call_info_get;
	return devlink_alloc(&given, priv_size, dev);
}

#define devlink_alloc	compat_devlink_alloc
#endif
