// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The flags of an area of memory are changed by functions. */
#include <linux/mm.h>

static_assert(sizeof(typeof(vm_flags_clear) *));
