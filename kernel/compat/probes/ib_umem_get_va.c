// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The successor of ib_umem_get(). */
#include <rdma/ib_umem.h>

static_assert(sizeof(ib_umem_get_va(NULL, 0, 0, 0)));
