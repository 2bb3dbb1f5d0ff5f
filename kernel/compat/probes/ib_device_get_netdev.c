// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Drivers may ask for the net device of a port. */
#include <rdma/ib_verbs.h>

static_assert(sizeof(typeof(ib_device_get_netdev) *));
