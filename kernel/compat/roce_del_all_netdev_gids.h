/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * After 6.1: a driver removes the GIDs of a net device that it no longer has.  Without this they
 * remain until the net device is gone.
 */
#ifndef COMPAT_HAS_ROCE_DEL_ALL_NETDEV_GIDS
#include <rdma/ib_verbs.h>

static inline void roce_del_all_netdev_gids(struct ib_device *ib_dev, u32 port,
					    struct net_device *ndev)
{
}
#endif
