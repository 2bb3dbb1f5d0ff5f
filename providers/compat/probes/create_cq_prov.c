// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Attributes that the provider sets as an argument of ibv_cmd_create_cq_ex(). */
#include <infiniband/driver.h>

int compat_probe(struct ibv_context *context)
{
	return ibv_cmd_create_cq_ex(context, NULL, NULL, NULL, NULL, 0, NULL, 0, 0);
}
