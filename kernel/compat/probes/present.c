// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Compiles for every kernel. */
#include <linux/types.h>

static_assert(sizeof(u32) == 4);
