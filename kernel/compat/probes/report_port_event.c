// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Changes of a port are reported by ib_core, unless the driver does it. */
#include <rdma/ib_verbs.h>

static_assert(sizeof(((const struct ib_device_ops *)0)->report_port_event));
