// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Counters of QPs that the driver's structure holds. */
#include <rdma/ib_verbs.h>

static_assert(sizeof(((const struct ib_device_ops *)0)->counter_init));
