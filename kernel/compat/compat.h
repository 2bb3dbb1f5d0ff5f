/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What older kernels lack, under the names of the newest one.
 *
 * The drivers are written for the newest kernel alone.  The compiler reads this file, and
 * features.h, before each of their files; probe.sh has made features.h.  Each file below
 * is empty for a kernel that has the feature.
 */
#ifndef COMPAT_H
#define COMPAT_H

#include "counted_by.h"
#include "devlink_driver_name.h"
#include "devlink_param.h"
#include "ethtool_puts.h"
#include "hrtimer_setup.h"
#include "ib_device_get_netdev.h"
#include "ib_flush.h"
#include "ib_umem_get_va.h"
#include "ib_virt_dma_to_ptr.h"
#include "kzalloc_obj.h"
#include "netif_txq_completed_wake.h"
#include "odp_placement.h"
#include "odppage.h"
#include "page_pool_napi.h"
#include "pci_irq_intx.h"
#include "platform_remove_void.h"
#include "robust_udata.h"
#include "roce_del_all_netdev_gids.h"
#include "shrinker_alloc.h"
#include "vm_flags_clear.h"
#include "wq_percpu.h"
/* Names of ib_core's operations become macros. */
#include "device_ops.h"

#endif /* COMPAT_H */
