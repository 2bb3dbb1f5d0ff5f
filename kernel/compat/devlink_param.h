/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A devlink parameter may say why it cannot be set, after 6.1, and why it cannot be shown, after
 * 6.12.  The functions of a driver's parameters have the newest kernel's arguments; where
 * devlink has others, it gets functions that call the driver's.  All parameters of a driver
 * have the same functions.
 */
#ifndef COMPAT_HAS_DEVLINK_GET_EXTACK
#include <linux/device.h>
#include <linux/slab.h>
#include <net/devlink.h>

struct compat_devlink_param {
	u32 id;
	const char *name;
	bool generic;
	enum devlink_param_type type;
	unsigned long supported_cmodes;
	int (*get)(struct devlink *devlink, u32 id, struct devlink_param_gset_ctx *ctx,
		   struct netlink_ext_ack *extack);
	int (*set)(struct devlink *devlink, u32 id, struct devlink_param_gset_ctx *ctx,
		   struct netlink_ext_ack *extack);
	void *validate;		/* must be NULL */
};

/* That of the driver whose functions are called; a file has the parameters of one driver. */
static const struct compat_devlink_param *compat_param __maybe_unused;

static inline int compat_param_get(struct devlink *devlink, u32 id,
				   struct devlink_param_gset_ctx *ctx)
{
	return compat_param->get(devlink, id, ctx, NULL);
}

#ifdef COMPAT_HAS_DEVLINK_SET_EXTACK
static inline int compat_param_set(struct devlink *devlink, u32 id,
				   struct devlink_param_gset_ctx *ctx,
				   struct netlink_ext_ack *extack)
{
	return compat_param->set(devlink, id, ctx, extack);
}
#else
static inline int compat_param_set(struct devlink *devlink, u32 id,
				   struct devlink_param_gset_ctx *ctx)
{
	return compat_param->set(devlink, id, ctx, NULL);
}
#endif

static inline int compat_devlink_params_register(struct devlink *devlink,
						 const struct compat_devlink_param *params,
						 size_t count)
{
	struct devlink_param *given;
	size_t i;

	/* devlink keeps them; they go with the driver's hold of the device. */
	given = devm_kcalloc(devlink_to_dev(devlink), count, sizeof(*given), GFP_KERNEL);
	if (!given)
		return -ENOMEM;
	compat_param = params;
	for (i = 0; i < count; i++)
		given[i] = (struct devlink_param) {
			.id = params[i].id,
			.name = params[i].name,
			.generic = params[i].generic,
			.type = params[i].type,
			.supported_cmodes = params[i].supported_cmodes,
			.get = compat_param_get,
			.set = compat_param_set,
		};
	return devlink_params_register(devlink, given, count);
}

/* devlink finds each of them by its id, or in 6.1 by its name. */
static inline void compat_devlink_params_unregister(struct devlink *devlink,
						    const struct compat_devlink_param *params,
						    size_t count)
{
	struct devlink_param given = {};
	size_t i;

	for (i = 0; i < count; i++) {
		given.id = params[i].id;
		given.name = params[i].name;
		devlink_params_unregister(devlink, &given, 1);
	}
}

#define devlink_param			compat_devlink_param
#define devlink_params_register		compat_devlink_params_register
#define devlink_params_unregister	compat_devlink_params_unregister
#endif
