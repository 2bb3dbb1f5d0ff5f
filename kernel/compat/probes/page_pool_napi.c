// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The NAPI instance and the net device of a page pool. */
#include <net/page_pool/types.h>

static_assert(sizeof(((struct page_pool_params *)0)->napi));
static_assert(sizeof(((struct page_pool_params *)0)->netdev));
