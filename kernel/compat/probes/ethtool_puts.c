// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A string of ethtool's without a format. */
#include <linux/ethtool.h>

static_assert(sizeof(typeof(ethtool_puts) *));
