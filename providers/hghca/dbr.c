/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * JingZhao HCA: doorbell records, in pages that several queues share.
 *
 * Each record has its own cache line, so that posting to one QP does not slow another.
 */
#include <config.h>

#include <stdlib.h>

#include "hghca.h"

#define HGHCA_DBR_SPACING	64
#define HGHCA_DBR_PER_PAGE	64

struct hghca_dbr_page {
	struct list_node entry;
	struct hghca_buf buf;
	uint64_t free;			/* one bit per record */
};

static_assert(sizeof(struct hghca_qp_dbr) <= HGHCA_DBR_SPACING, "records overlap");
static_assert(sizeof(struct hghca_srq_dbr) <= HGHCA_DBR_SPACING, "records overlap");
static_assert(sizeof(struct hghca_cq_dbr) <= HGHCA_DBR_SPACING, "records overlap");

static struct hghca_dbr_page *hghca_dbr_page_add(struct hghca_context *ctx)
{
	struct hghca_dbr_page *page;

	page = calloc(1, sizeof(*page));
	if (!page)
		return NULL;
	if (hghca_buf_alloc(ctx, &page->buf,
			    HGHCA_DBR_PER_PAGE * HGHCA_DBR_SPACING, NULL,
			    HGHCA_RES_DBR)) {
		free(page);
		return NULL;
	}
	page->free = UINT64_MAX;
	list_add(&ctx->dbr_pages, &page->entry);
	return page;
}

/* A zeroed record, or NULL. */
void *hghca_dbr_alloc(struct hghca_context *ctx)
{
	struct hghca_dbr_page *page;
	bool found = false;
	uint64_t *record = NULL;
	unsigned int index;

	pthread_mutex_lock(&ctx->dbr_lock);
	list_for_each(&ctx->dbr_pages, page, entry) {
		if (page->free) {
			found = true;
			break;
		}
	}
	if (!found)
		page = hghca_dbr_page_add(ctx);
	if (page) {
		index = __builtin_ctzll(page->free);
		page->free &= page->free - 1;
		record = (uint64_t *)((char *)page->buf.addr +
				      index * HGHCA_DBR_SPACING);
		*record = 0;
	}
	pthread_mutex_unlock(&ctx->dbr_lock);
	return record;
}

void hghca_dbr_free(struct hghca_context *ctx, void *record)
{
	uintptr_t base = (uintptr_t)record & ~(ctx->page_size - 1);
	struct hghca_dbr_page *page;
	unsigned int index;

	pthread_mutex_lock(&ctx->dbr_lock);
	list_for_each(&ctx->dbr_pages, page, entry) {
		if ((uintptr_t)page->buf.addr != base)
			continue;
		index = ((uintptr_t)record - base) / HGHCA_DBR_SPACING;
		page->free |= 1ULL << index;
		if (page->free == UINT64_MAX) {
			list_del(&page->entry);
			hghca_buf_free(ctx, &page->buf);
			free(page);
		}
		break;
	}
	pthread_mutex_unlock(&ctx->dbr_lock);
}
