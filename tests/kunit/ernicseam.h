/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Kbuild includes this before each file of kernel/ernic in the module with suites: the
 * registers are those of the fake device, and what the driver asks the kernel for can be
 * refused.  Headers come first, so that they mean the kernel's functions.
 */
#ifndef ERNIC_SEAM_H
#define ERNIC_SEAM_H

#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>
#include <linux/highmem.h>
#include <linux/if_vlan.h>
#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/iopoll.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/platform_device.h>
#include <linux/property.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <net/addrconf.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_pack.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/ib_verbs.h>
#include <rdma/iter.h>
#include <rdma/uverbs_ioctl.h>

u32 ernic_fake_readl(const void __iomem *from);
void ernic_fake_writel(u32 value, void __iomem *to);
void __iomem *ernic_fake_ioremap(struct platform_device *pdev, unsigned int index,
				 struct resource **res);
void *ernic_fake_alloc_coherent(struct device *dev, size_t bytes, dma_addr_t *dma, gfp_t gfp);
void ernic_fake_free_coherent(struct device *dev, size_t bytes, void *cpu, dma_addr_t dma);
/* Whether the test has this request of the driver refused. */
bool ernic_fake_refuses(void);

int ernic_fake_module_init(void);
void ernic_fake_module_exit(void);

/* Only for the driver's files: Kbuild defines it. */
#ifdef ERNIC_SEAM
#undef readl
#define readl(from) ernic_fake_readl(from)
#undef writel
#define writel(value, to) ernic_fake_writel(value, to)
#define devm_platform_get_and_ioremap_resource(pdev, index, res) \
	ernic_fake_ioremap(pdev, index, res)
#undef dma_alloc_coherent
#define dma_alloc_coherent(dev, bytes, dma, gfp) ernic_fake_alloc_coherent(dev, bytes, dma, gfp)
#undef dma_free_coherent
#define dma_free_coherent(dev, bytes, cpu, dma) ernic_fake_free_coherent(dev, bytes, cpu, dma)

#undef devm_kzalloc
#define devm_kzalloc(dev, bytes, gfp) \
	(ernic_fake_refuses() ? NULL : devm_kmalloc(dev, bytes, (gfp) | __GFP_ZERO))
#undef kzalloc
#define kzalloc(bytes, gfp) \
	(ernic_fake_refuses() ? NULL : kmalloc_noprof(bytes, (gfp) | __GFP_ZERO))
#undef kmalloc
#define kmalloc(bytes, gfp) (ernic_fake_refuses() ? NULL : kmalloc_noprof(bytes, gfp))
#undef kvcalloc
#define kvcalloc(number, bytes, gfp) \
	(ernic_fake_refuses() ? NULL : kvmalloc_array_noprof(number, bytes, (gfp) | __GFP_ZERO))
#define _ib_alloc_device(...) (ernic_fake_refuses() ? NULL : (_ib_alloc_device)(__VA_ARGS__))
/* A function in Linux 6.12, a macro around one in 7.3. */
#ifdef alloc_workqueue
#undef alloc_workqueue
#define alloc_workqueue(...) (ernic_fake_refuses() ? NULL : alloc_workqueue_noprof(__VA_ARGS__))
#else
#define alloc_workqueue(...) (ernic_fake_refuses() ? NULL : (alloc_workqueue)(__VA_ARGS__))
#endif
#define request_threaded_irq(...) \
	(ernic_fake_refuses() ? -ENOMEM : (request_threaded_irq)(__VA_ARGS__))
#define register_netdevice_notifier(nb) \
	(ernic_fake_refuses() ? -ENOMEM : (register_netdevice_notifier)(nb))
#define ib_register_device(...) \
	(ernic_fake_refuses() ? -ENOMEM : (ib_register_device)(__VA_ARGS__))
#define ib_umem_get_va(...) \
	(ernic_fake_refuses() ? ERR_PTR(-ENOMEM) : (ib_umem_get_va)(__VA_ARGS__))
#define ida_alloc_range(...) (ernic_fake_refuses() ? -ENOMEM : (ida_alloc_range)(__VA_ARGS__))
#define ida_alloc_max(ida, max, gfp) ida_alloc_range(ida, 0, max, gfp)
#define xa_alloc_cyclic_irq(...) \
	(ernic_fake_refuses() ? -ENOMEM : (xa_alloc_cyclic_irq)(__VA_ARGS__))
#define dma_map_sgtable(...) (ernic_fake_refuses() ? -ENOMEM : (dma_map_sgtable)(__VA_ARGS__))
#undef dma_map_single
#define dma_map_single(dev, cpu, bytes, dir) \
	(ernic_fake_refuses() ? DMA_MAPPING_ERROR : dma_map_single_attrs(dev, cpu, bytes, dir, 0))

/* The module has one start, which is that of the HCA's driver. */
#undef module_init
#define module_init(function) \
	int ernic_fake_module_init(void) \
	{ \
		return function(); \
	}
#undef module_exit
#define module_exit(function) \
	void ernic_fake_module_exit(void) \
	{ \
		function(); \
	}
/* Suites run when the code for the start is not there any more. */
#undef __init
#define __init
#undef __exit
#define __exit
#endif /* ERNIC_SEAM */

#endif /* ERNIC_SEAM_H */
