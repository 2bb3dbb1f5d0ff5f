// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A devlink parameter's set may say why it fails. */
#include <net/devlink.h>

typedef int set(struct devlink *devlink, u32 id, struct devlink_param_gset_ctx *ctx,
		struct netlink_ext_ack *extack);
typedef typeof(((const struct devlink_param *)0)->set) set_function;

/* A failed static_assert() would be one of the header that defines it. */
enum {
	SET_HAS_EXTACK = 1 / __builtin_types_compatible_p(set_function, set *)
};
