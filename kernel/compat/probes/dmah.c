// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Regions with a DMA handle: one more argument of reg_user_mr and reg_user_mr_dmabuf. */
#include <rdma/ib_verbs.h>

static_assert(sizeof(((const struct ib_device_ops *)0)->alloc_dmah));
