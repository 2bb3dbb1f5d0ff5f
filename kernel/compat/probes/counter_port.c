// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A port as an argument of counter_bind_qp and counter_unbind_qp. */
#include <rdma/ib_verbs.h>

static_assert(sizeof(((const struct ib_device_ops *)0)->counter_unbind_qp(NULL, 1)));
