// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Attributes of the driver as an argument of ibv_cmd_create_qp_ex2(). */
#include <infiniband/driver.h>

int compat_probe(struct ibv_context *context)
{
	return ibv_cmd_create_qp_ex2(context, NULL, NULL, NULL, 0, NULL, 0, NULL);
}
