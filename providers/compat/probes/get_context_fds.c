// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* File descriptors as an argument of ibv_cmd_get_context(). */
#include <infiniband/driver.h>

int compat_probe(struct verbs_context *context)
{
	return ibv_cmd_get_context(context, NULL, 0, NULL, NULL, 0);
}
