// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The successor of hrtimer_init(). */
#include <linux/hrtimer.h>

static_assert(sizeof(typeof(hrtimer_setup) *));
