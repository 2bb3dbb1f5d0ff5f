/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* After 6.12: these allocate by the type of an object, and GFP_KERNEL may be left out. */
#include <linux/slab.h>

#ifndef kzalloc_obj
#define COMPAT_SECOND(first, second, ...) second
#define COMPAT_GFP(...) COMPAT_SECOND(, ##__VA_ARGS__, GFP_KERNEL)
#define kmalloc_obj(object, ...) kmalloc(sizeof(object), COMPAT_GFP(__VA_ARGS__))
#define kzalloc_obj(object, ...) kzalloc(sizeof(object), COMPAT_GFP(__VA_ARGS__))
#define kzalloc_objs(object, number, ...) kcalloc(number, sizeof(object), COMPAT_GFP(__VA_ARGS__))
#endif
