// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A driver removes the GIDs of a net device. */
#include <rdma/ib_verbs.h>

static_assert(sizeof(typeof(roce_del_all_netdev_gids) *));
