// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Compiles for every rdma-core. */
#include <infiniband/driver.h>

struct verbs_context_ops compat_probe;
