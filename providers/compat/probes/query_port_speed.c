// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The speed of a port. */
#include <infiniband/driver.h>

int compat_probe(const struct verbs_context_ops *ops)
{
	return !ops->query_port_speed;
}
