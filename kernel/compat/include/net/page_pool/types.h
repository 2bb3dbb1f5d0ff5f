/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The name of <net/page_pool.h> since it has been moved. */
#include <net/page_pool.h>
