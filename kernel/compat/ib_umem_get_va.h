/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * After 6.12: ib_umem_get() got another name, beside functions for buffers given by an attribute of
 * the method.  Before, the methods have no such attributes.
 */
#ifndef COMPAT_HAS_IB_UMEM_GET_VA
#include <rdma/ib_umem.h>
#include <rdma/uverbs_ioctl.h>

static inline struct ib_umem *ib_umem_get_va(struct ib_device *device, unsigned long addr,
					     size_t size, int access)
{
	return ib_umem_get(device, addr, size, access);
}

#define UVERBS_ATTR_CREATE_QP_BUF_UMEM	0
#define UVERBS_ATTR_CREATE_SRQ_BUF_UMEM	0

static inline struct ib_umem *ib_umem_get_attr_or_va(struct ib_device *device,
						     const struct uverbs_attr_bundle *attrs,
						     u16 attr_id, u64 addr, size_t size, int access)
{
	return ib_umem_get(device, addr, size, access);
}

static inline struct ib_umem *ib_umem_get_cq_buf_or_va(struct ib_device *device,
						       const struct uverbs_attr_bundle *attrs,
						       u64 addr, size_t size, int access)
{
	return ib_umem_get(device, addr, size, access);
}
#endif
