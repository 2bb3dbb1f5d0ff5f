// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The method remove of a platform driver returns nothing. */
#include <linux/platform_device.h>

typedef void remove_void(struct platform_device *pdev);
typedef typeof(((struct platform_driver *)0)->remove) method;

/* A failed static_assert() would be one of the header that defines it. */
enum {
	RETURNS_NOTHING = 1 / __builtin_types_compatible_p(method, remove_void *)
};
