// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Operations of their own for the CQs of processes. */
#include <rdma/ib_verbs.h>

static_assert(sizeof(((const struct ib_device_ops *)0)->create_user_cq));
static_assert(sizeof(((const struct ib_device_ops *)0)->resize_user_cq));
