/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * After 6.1: a page pool knows its NAPI instance, and its net device.  Without them it
 * recycles fewer pages itself.
 */
#ifndef COMPAT_HAS_PAGE_POOL_NAPI
#include <net/page_pool.h>

/* The compiler takes the members of the first for members of this, by -fms-extensions. */
struct compat_page_pool_params {
	union {
		struct page_pool_params;
		struct page_pool_params kernel;
	};
	struct napi_struct *napi;
	struct net_device *netdev;
};

static inline struct page_pool *
compat_page_pool_create(const struct compat_page_pool_params *params)
{
	return page_pool_create(&params->kernel);
}

static inline void page_pool_dma_sync_for_cpu(const struct page_pool *pool,
					      const struct page *page, u32 offset, u32 bytes)
{
	dma_sync_single_range_for_cpu(pool->p.dev, page_pool_get_dma_addr((struct page *)page),
				      offset + pool->p.offset, bytes, pool->p.dma_dir);
}

#define page_pool_params	compat_page_pool_params
#define page_pool_create	compat_page_pool_create
#endif
