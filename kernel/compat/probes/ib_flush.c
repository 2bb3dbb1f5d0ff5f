// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* FLUSH and atomic WRITE. */
#include <rdma/ib_verbs.h>

static_assert(IB_ACCESS_FLUSH_GLOBAL && IB_DEVICE_FLUSH_GLOBAL && IB_DEVICE_ATOMIC_WRITE);
