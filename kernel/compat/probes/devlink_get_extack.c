// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A devlink parameter's get may say why it fails. */
#include <net/devlink.h>

typedef int get(struct devlink *devlink, u32 id, struct devlink_param_gset_ctx *ctx,
		struct netlink_ext_ack *extack);
typedef typeof(((const struct devlink_param *)0)->get) get_function;

/* A failed static_assert() would be one of the header that defines it. */
enum {
	GET_HAS_EXTACK = 1 / __builtin_types_compatible_p(get_function, get *)
};
