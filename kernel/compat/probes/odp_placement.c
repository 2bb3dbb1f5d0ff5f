// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* FLUSH and atomic WRITE to on-demand memory. */
#include <rdma/ib_verbs.h>

static_assert(IB_ODP_SUPPORT_FLUSH && IB_ODP_SUPPORT_ATOMIC_WRITE);
