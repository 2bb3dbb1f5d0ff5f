// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The speed of a port. */
#include <rdma/ib_verbs.h>

static_assert(sizeof(((const struct ib_device_ops *)0)->query_port_speed));
