// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A shrinker that is allocated. */
#include <linux/shrinker.h>

static_assert(sizeof(typeof(shrinker_alloc) *));
