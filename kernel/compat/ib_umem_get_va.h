/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* After 6.12: ib_umem_get() got another name beside its likes for buffers given by attribute. */
#ifndef COMPAT_HAS_IB_UMEM_GET_VA
#include <rdma/ib_umem.h>

static inline struct ib_umem *ib_umem_get_va(struct ib_device *device, unsigned long addr,
					     size_t size, int access)
{
	return ib_umem_get(device, addr, size, access);
}
#endif
