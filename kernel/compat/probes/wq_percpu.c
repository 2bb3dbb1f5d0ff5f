// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The flag of workqueues whose work stays on its CPU. */
#include <linux/workqueue.h>

static_assert(WQ_PERCPU);
