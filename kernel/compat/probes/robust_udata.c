// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A driver tells that it checks all udata, for which ib_core has functions. */
#include <rdma/ib_verbs.h>

static const struct ib_device_ops robust __maybe_unused = {
	.uverbs_robust_udata = true,
};
