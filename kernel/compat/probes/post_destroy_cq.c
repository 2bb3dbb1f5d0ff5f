// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A kernel CQ is destroyed in two steps. */
#include <rdma/ib_verbs.h>

static_assert(sizeof(((const struct ib_device_ops *)0)->pre_destroy_cq));
static_assert(sizeof(((const struct ib_device_ops *)0)->post_destroy_cq));
