/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* After 6.1: a string without a format. */
#ifndef COMPAT_HAS_ETHTOOL_PUTS
#include <linux/ethtool.h>

static inline void ethtool_puts(u8 **data, const char *str)
{
	ethtool_sprintf(data, "%s", str);
}
#endif
