/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * JingZhao HCA: buffers of queues: whole pages, which a forked child does not share.
 *
 * To map pages, to fault them in and to unmap them takes longer than the kernel needs for
 * the object.  A context therefore keeps some idle buffers for the next objects of the same
 * sizes.  A buffer that came from the allocator of a parent domain goes back there.
 */
#include <config.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "hghca.h"

/* Give memory back to where it came from. */
static void hghca_buf_return(struct hghca_buf *buf)
{
	if (!buf->parent)
		munmap(buf->addr, buf->size);
	else if (buf->parent->free)
		buf->parent->free(&buf->parent->pd, buf->parent->pd_context,
				  buf->addr, buf->res_type);
}

static void hghca_buf_release(struct hghca_buf *buf)
{
	ibv_dofork_range(buf->addr, buf->size);
	hghca_buf_return(buf);
}

/* ------------------------------------------------------------------ */
/* Idle buffers                                                         */

static void hghca_idle_remove(struct hghca_idle *idle, unsigned int index)
{
	idle->bytes -= idle->bufs[index].size;
	idle->count--;
	memmove(&idle->bufs[index], &idle->bufs[index + 1],
		(idle->count - index) * sizeof(idle->bufs[0]));
}

/* The buffer of this size that became idle last; false without one. */
static bool hghca_idle_take(struct hghca_idle *idle, struct hghca_buf *buf)
{
	unsigned int index;
	bool found = false;

	pthread_mutex_lock(&idle->lock);
	for (index = idle->count; index-- > 0 && !found;) {
		if (idle->bufs[index].size != buf->size)
			continue;
		found = true;
		*buf = idle->bufs[index];
		hghca_idle_remove(idle, index);
	}
	pthread_mutex_unlock(&idle->lock);
	return found;
}

/* Keep the buffer in place of those that have been idle for longest. */
static void hghca_idle_put(struct hghca_idle *idle, struct hghca_buf *buf)
{
	if (buf->parent || buf->size > HGHCA_IDLE_BYTES) {
		hghca_buf_release(buf);
		return;
	}

	pthread_mutex_lock(&idle->lock);
	while (idle->count == HGHCA_IDLE_BUFS || idle->bytes + buf->size > HGHCA_IDLE_BYTES) {
		hghca_buf_release(&idle->bufs[0]);
		hghca_idle_remove(idle, 0);
	}
	idle->bufs[idle->count++] = *buf;
	idle->bytes += buf->size;
	pthread_mutex_unlock(&idle->lock);
}

void hghca_idle_init(struct hghca_idle *idle)
{
	pthread_mutex_init(&idle->lock, NULL);
	idle->count = 0;
	idle->bytes = 0;
}

void hghca_idle_free(struct hghca_idle *idle)
{
	unsigned int index;

	for (index = 0; index < idle->count; index++)
		hghca_buf_release(&idle->bufs[index]);
	pthread_mutex_destroy(&idle->lock);
}

/* ------------------------------------------------------------------ */

static int hghca_buf_map(struct hghca_buf *buf)
{
	buf->parent = NULL;
	buf->addr = mmap(NULL, buf->size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return buf->addr == MAP_FAILED ? errno : 0;
}

/* Memory from the parent domain's allocator, unless it returns IBV_ALLOCATOR_USE_DEFAULT. */
static int hghca_buf_alloc_parent(struct hghca_context *ctx, struct hghca_buf *buf)
{
	struct hghca_pd *parent = buf->parent;

	buf->addr = parent->alloc(&parent->pd, parent->pd_context, buf->size,
				  ctx->page_size, buf->res_type);
	if (buf->addr == IBV_ALLOCATOR_USE_DEFAULT)
		return hghca_buf_map(buf);
	if (!buf->addr)
		return ENOMEM;
	if ((uintptr_t)buf->addr & (ctx->page_size - 1)) {
		hghca_buf_return(buf);
		return EINVAL;
	}
	memset(buf->addr, 0, buf->size);
	return 0;
}

/*
 * At least `size` bytes of zeroes, page-aligned.  Returns 0 or an errno.
 * `parent`: the parent domain to ask first, or NULL.
 */
int hghca_buf_alloc(struct hghca_context *ctx, struct hghca_buf *buf,
		    size_t size, struct hghca_pd *parent,
		    enum hghca_res_type res_type)
{
	int err;

	buf->size = align(size ? size : 1, ctx->page_size);
	buf->parent = parent;
	buf->res_type = res_type;

	if ((!parent || !parent->alloc) && hghca_idle_take(&ctx->idle, buf)) {
		memset(buf->addr, 0, buf->size);
		return 0;
	}

	err = parent && parent->alloc ? hghca_buf_alloc_parent(ctx, buf) : hghca_buf_map(buf);
	if (err)
		goto err_clear;

	if (ibv_dontfork_range(buf->addr, buf->size)) {
		hghca_buf_return(buf);
		err = ENOMEM;
		goto err_clear;
	}
	return 0;

err_clear:
	buf->addr = NULL;
	return err;
}

void hghca_buf_free(struct hghca_context *ctx, struct hghca_buf *buf)
{
	if (!buf->addr)
		return;
	hghca_idle_put(&ctx->idle, buf);
	buf->addr = NULL;
}

/*
 * Prefault memory that is all zeroes and not yet used: the first write there may be
 * made with a spinlock held, and a page fault takes as long as a system call.
 */
void hghca_prefault(const struct hghca_context *ctx, void *zeroes, size_t size)
{
	volatile uint8_t *bytes = zeroes;
	size_t offset;

	for (offset = 0; offset < size; offset += ctx->page_size)
		bytes[offset] = 0;
	/* It need not start at a page boundary. */
	if (size)
		bytes[size - 1] = 0;
}
