// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The channel of the DMA engine.  A copy is one or more SQEs; the controller
 * executes them in order, one at a time.
 *
 * A copy goes through the lists submitted, issued, posted and done.  The tasklet
 * calls its callback and frees it.
 */
#include <linux/bitfield.h>
#include <linux/dma-mapping.h>
#include <linux/io.h>
#include <linux/iopoll.h>
#include <linux/slab.h>
#include "loopback.h"

#define LOOPBACK_POLL_NS	(50 * NSEC_PER_USEC)
#define LOOPBACK_STOP_US	(5 * USEC_PER_SEC)

static struct loopback_channel *to_channel(struct dma_chan *chan)
{
	return container_of(chan, struct loopback_channel, chan);
}

static struct loopback_desc *to_desc(struct dma_async_tx_descriptor *tx)
{
	return container_of(tx, struct loopback_desc, tx);
}

static u16 next_index(u16 index)
{
	return (index + 1) % LOOPBACK_ENTRIES;
}

/* ------------------------------------------------------------------ */
/* The controller's registers                                          */

static void loopback_set(struct loopback_channel *c, unsigned int offset, u32 value)
{
	writel(value, c->registers + offset);
}

/* Sets queues, extensions and interrupt of a controller that is reset, and starts it. */
static void loopback_start(struct loopback_channel *c)
{
	u32 irq = c->extensions & LOOPBACK_EXT_IRQ ? LOOPBACK_CONTROL_IRQ : 0;

	loopback_set(c, LOOPBACK_GLOBAL_CFG, FIELD_PREP(LOOPBACK_EXT_MASK, c->extensions));
	loopback_set(c, LOOPBACK_SQ_BASE_LO, lower_32_bits(c->sqes_dma));
	loopback_set(c, LOOPBACK_SQ_BASE_HI, upper_32_bits(c->sqes_dma));
	loopback_set(c, LOOPBACK_SQ_SIZE, LOOPBACK_ENTRIES);
	loopback_set(c, LOOPBACK_CQ_BASE_LO, lower_32_bits(c->cqes_dma));
	loopback_set(c, LOOPBACK_CQ_BASE_HI, upper_32_bits(c->cqes_dma));
	loopback_set(c, LOOPBACK_CQ_SIZE, LOOPBACK_ENTRIES);
	loopback_set(c, LOOPBACK_IRQ_ENABLE, irq ? LOOPBACK_IRQ_COMPLETION : 0);
	loopback_set(c, LOOPBACK_CONTROL, LOOPBACK_CONTROL_ENABLE | irq);
	c->sq_tail = 0;
	c->cq_head = 0;
	c->free = LOOPBACK_ENTRIES - 1;
	memset(c->copies, 0, sizeof(c->copies));
}

/* When this returns, the controller does no DMA. */
static void loopback_reset(struct loopback_channel *c)
{
	loopback_set(c, LOOPBACK_CONTROL, LOOPBACK_CONTROL_RESET);
	readl(c->registers + LOOPBACK_CONTROL);
}

/*
 * Stops a controller that others may have left running.  The bit that resets works
 * only with its extension enabled, which a running controller does not take.
 */
static int loopback_take_over(struct loopback_channel *c)
{
	u32 state;
	int err;

	loopback_set(c, LOOPBACK_CONTROL, 0);
	err = readl_poll_timeout(c->registers + LOOPBACK_RDMA_STATE, state, !state, 10,
				 LOOPBACK_STOP_US);
	if (err) {
		dev_err(c->dev, "the controller does not stop: state %u\n", state);
		return err;
	}
	loopback_set(c, LOOPBACK_GLOBAL_CFG, FIELD_PREP(LOOPBACK_EXT_MASK, c->extensions));
	loopback_reset(c);
	return 0;
}

void loopback_channel_stop(struct loopback_channel *c)
{
	unsigned long flags;

	spin_lock_irqsave(&c->lock, flags);
	c->gone = true;
	loopback_reset(c);
	spin_unlock_irqrestore(&c->lock, flags);
}

/* ------------------------------------------------------------------ */
/* Posting                                                             */

static void loopback_post_part(struct loopback_channel *c, struct loopback_desc *desc)
{
	size_t len = min(desc->len - desc->posted, c->part_max);
	u16 index = c->sq_tail;

	c->sqes[index] = (struct loopback_sqe) {
		.id = cpu_to_le32(index),
		.opcode = cpu_to_le16(LOOPBACK_OPCODE_WRITE),
		.local_addr = cpu_to_le64(desc->source + desc->posted),
		.remote_addr = cpu_to_le64(desc->destination + desc->posted),
		.length = cpu_to_le32(len),
	};
	c->copies[index] = desc;
	c->bytes[index] = len;
	c->sq_tail = next_index(index);
	c->free--;
	desc->posted += len;
	desc->parts++;
}

/* Without an interrupt, a timer reads the CQ until nothing is under way. */
static void loopback_poll(struct loopback_channel *c)
{
	bool busy = !list_empty(&c->posted) || !list_empty(&c->issued);

	if (!c->irq && !c->gone && busy && !hrtimer_is_queued(&c->timer))
		hrtimer_start(&c->timer, LOOPBACK_POLL_NS, HRTIMER_MODE_REL);
}

static void loopback_post(struct loopback_channel *c)
{
	u16 old = c->sq_tail;
	struct loopback_desc *desc;

	while (c->free && !list_empty(&c->issued)) {
		desc = list_first_entry(&c->issued, struct loopback_desc, node);
		loopback_post_part(c, desc);
		if (desc->posted == desc->len)
			list_move_tail(&desc->node, &c->posted);
	}
	if (c->sq_tail == old)
		return;
	/* writel() orders the SQEs before the doorbell. */
	loopback_set(c, LOOPBACK_SQ_TAIL, c->sq_tail);
	loopback_poll(c);
}

/* ------------------------------------------------------------------ */
/* Completions                                                         */

static enum dmaengine_tx_result loopback_result(u32 status)
{
	switch (status) {
	case LOOPBACK_STATUS_SUCCESS:
		return DMA_TRANS_NOERROR;
	case LOOPBACK_STATUS_LOCAL_ACCESS:
		return DMA_TRANS_READ_FAILED;
	case LOOPBACK_STATUS_REMOTE_ACCESS:
		return DMA_TRANS_WRITE_FAILED;
	default:
		return DMA_TRANS_ABORTED;
	}
}

static void loopback_finish(struct loopback_channel *c, struct loopback_desc *desc)
{
	c->chan.completed_cookie = desc->tx.cookie;
	if (desc->result != DMA_TRANS_NOERROR)
		c->failed[c->failures++ % LOOPBACK_FAILED] = desc->tx.cookie;
	list_move_tail(&desc->node, &c->done);
}

/* Returns false if the controller reports what was not asked of it. */
static bool loopback_complete_part(struct loopback_channel *c)
{
	u16 index = c->cq_head;
	struct loopback_cqe *cqe = &c->cqes[index];
	struct loopback_desc *desc = c->copies[index];
	u32 status = le32_to_cpu(READ_ONCE(cqe->status));

	if (!desc || le32_to_cpu(READ_ONCE(cqe->id)) != index)
		return false;
	if (!status && le32_to_cpu(READ_ONCE(cqe->bytes_sent)) != c->bytes[index])
		return false;
	if (status && desc->result == DMA_TRANS_NOERROR) {
		desc->result = loopback_result(status);
		/* Parts that are not posted are not copied any more. */
		desc->posted = desc->len;
		list_move_tail(&desc->node, &c->posted);
	}
	if (!status)
		desc->done += c->bytes[index];
	c->copies[index] = NULL;
	c->cq_head = next_index(index);
	c->free++;
	if (!--desc->parts && desc->posted == desc->len)
		loopback_finish(c, desc);
	return true;
}

/* Everything that waits fails, and so does what is submitted from now on. */
static void loopback_fail(struct loopback_channel *c)
{
	struct loopback_desc *desc, *next;

	dev_err(c->dev, "the controller reported a completion that was not asked for; it is stopped\n");
	loopback_reset(c);
	c->gone = true;
	list_splice_tail_init(&c->issued, &c->posted);
	list_for_each_entry_safe(desc, next, &c->posted, node) {
		desc->result = DMA_TRANS_ABORTED;
		loopback_finish(c, desc);
	}
}

static void loopback_reap(struct loopback_channel *c)
{
	u16 old = c->cq_head;
	u32 tail;

	if (c->gone)
		return;
	/* readl() orders the CQEs behind it. */
	tail = readl(c->registers + LOOPBACK_CQ_TAIL);
	if (tail >= LOOPBACK_ENTRIES) {
		loopback_fail(c);
		goto out;
	}
	while (c->cq_head != tail) {
		if (!loopback_complete_part(c)) {
			loopback_fail(c);
			break;
		}
	}
	if (c->cq_head == old || c->gone)
		goto out;
	loopback_set(c, LOOPBACK_CQ_HEAD, c->cq_head);
	loopback_post(c);
out:
	if (!list_empty(&c->done))
		tasklet_schedule(&c->tasklet);
}

static irqreturn_t loopback_interrupt(int irq, void *data)
{
	struct loopback_channel *c = data;
	irqreturn_t handled = IRQ_NONE;
	unsigned long flags;

	spin_lock_irqsave(&c->lock, flags);
	if (!c->gone && readl(c->registers + LOOPBACK_IRQ_STATUS) & LOOPBACK_IRQ_COMPLETION) {
		loopback_set(c, LOOPBACK_IRQ_STATUS, LOOPBACK_IRQ_COMPLETION);
		loopback_reap(c);
		handled = IRQ_HANDLED;
	}
	spin_unlock_irqrestore(&c->lock, flags);
	return handled;
}

static enum hrtimer_restart loopback_timer_fired(struct hrtimer *timer)
{
	struct loopback_channel *c = container_of(timer, struct loopback_channel, timer);
	unsigned long flags;

	spin_lock_irqsave(&c->lock, flags);
	loopback_reap(c);
	/* Copies that were posted meanwhile, here or on another CPU, have started it already. */
	loopback_poll(c);
	spin_unlock_irqrestore(&c->lock, flags);
	return HRTIMER_NORESTART;
}

static void loopback_free_desc(struct loopback_desc *desc)
{
	dma_descriptor_unmap(&desc->tx);
	kfree(desc);
}

static void loopback_callback(struct loopback_desc *desc)
{
	struct dmaengine_result result = {
		.result = desc->result,
		.residue = desc->len - desc->done,
	};

	if (desc->tx.callback_result)
		desc->tx.callback_result(desc->tx.callback_param, &result);
	else if (desc->tx.callback)
		desc->tx.callback(desc->tx.callback_param);
}

static void loopback_tasklet(struct tasklet_struct *tasklet)
{
	struct loopback_channel *c = from_tasklet(c, tasklet, tasklet);
	struct loopback_desc *desc, *next;
	LIST_HEAD(done);

	spin_lock_irq(&c->lock);
	list_splice_init(&c->done, &done);
	spin_unlock_irq(&c->lock);
	list_for_each_entry_safe(desc, next, &done, node) {
		dma_run_dependencies(&desc->tx);
		loopback_callback(desc);
		loopback_free_desc(desc);
	}
}

/* ------------------------------------------------------------------ */
/* Methods of the DMA engine                                           */

static dma_cookie_t loopback_submit(struct dma_async_tx_descriptor *tx)
{
	struct loopback_channel *c = to_channel(tx->chan);
	struct loopback_desc *desc = to_desc(tx);
	dma_cookie_t cookie;
	unsigned long flags;

	spin_lock_irqsave(&c->lock, flags);
	if (c->gone) {
		spin_unlock_irqrestore(&c->lock, flags);
		loopback_free_desc(desc);
		return -ENODEV;
	}
	cookie = c->chan.cookie + 1;
	if (cookie < DMA_MIN_COOKIE)
		cookie = DMA_MIN_COOKIE;
	tx->cookie = cookie;
	c->chan.cookie = cookie;
	list_add_tail(&desc->node, &c->submitted);
	spin_unlock_irqrestore(&c->lock, flags);
	return cookie;
}

static struct dma_async_tx_descriptor *
loopback_prep_memcpy(struct dma_chan *chan, dma_addr_t destination, dma_addr_t source, size_t len,
		     unsigned long flags)
{
	struct loopback_desc *desc;

	if (!len)
		return NULL;
	desc = kzalloc_obj(*desc, GFP_NOWAIT);
	if (!desc)
		return NULL;
	dma_async_tx_descriptor_init(&desc->tx, chan);
	desc->tx.tx_submit = loopback_submit;
	desc->tx.flags = flags;
	desc->source = source;
	desc->destination = destination;
	desc->len = len;
	return &desc->tx;
}

static void loopback_issue_pending(struct dma_chan *chan)
{
	struct loopback_channel *c = to_channel(chan);
	unsigned long flags;

	spin_lock_irqsave(&c->lock, flags);
	if (!c->gone) {
		list_splice_tail_init(&c->submitted, &c->issued);
		loopback_post(c);
	}
	spin_unlock_irqrestore(&c->lock, flags);
}

static bool loopback_has_failed(const struct loopback_channel *c, dma_cookie_t cookie)
{
	for (unsigned int i = 0; i < LOOPBACK_FAILED; i++)
		if (c->failed[i] == cookie)
			return true;
	return false;
}

static struct loopback_desc *loopback_find(struct loopback_channel *c, dma_cookie_t cookie)
{
	struct list_head *lists[] = { &c->posted, &c->issued, &c->submitted };
	struct loopback_desc *desc;

	for (unsigned int i = 0; i < ARRAY_SIZE(lists); i++)
		list_for_each_entry(desc, lists[i], node)
			if (desc->tx.cookie == cookie)
				return desc;
	return NULL;
}

static enum dma_status loopback_tx_status(struct dma_chan *chan, dma_cookie_t cookie,
					  struct dma_tx_state *state)
{
	struct loopback_channel *c = to_channel(chan);
	struct loopback_desc *desc;
	enum dma_status status;
	unsigned long flags;

	spin_lock_irqsave(&c->lock, flags);
	loopback_reap(c);
	status = dma_async_is_complete(cookie, chan->completed_cookie, chan->cookie);
	if (status == DMA_COMPLETE && loopback_has_failed(c, cookie))
		status = DMA_ERROR;
	if (state) {
		desc = status == DMA_IN_PROGRESS ? loopback_find(c, cookie) : NULL;
		state->last = chan->completed_cookie;
		state->used = chan->cookie;
		state->residue = desc ? desc->len - desc->done : 0;
	}
	spin_unlock_irqrestore(&c->lock, flags);
	return status;
}

static void loopback_free_list(struct list_head *list)
{
	struct loopback_desc *desc, *next;

	list_for_each_entry_safe(desc, next, list, node)
		loopback_free_desc(desc);
}

static int loopback_terminate_all(struct dma_chan *chan)
{
	struct loopback_channel *c = to_channel(chan);
	unsigned long flags;
	LIST_HEAD(dead);

	spin_lock_irqsave(&c->lock, flags);
	if (!c->gone) {
		loopback_reset(c);
		loopback_start(c);
	}
	list_splice_tail_init(&c->posted, &dead);
	list_splice_tail_init(&c->issued, &dead);
	list_splice_tail_init(&c->submitted, &dead);
	spin_unlock_irqrestore(&c->lock, flags);
	loopback_free_list(&dead);
	return 0;
}

static void loopback_synchronize(struct dma_chan *chan)
{
	tasklet_kill(&to_channel(chan)->tasklet);
}

static void loopback_free_chan_resources(struct dma_chan *chan)
{
	loopback_terminate_all(chan);
	loopback_synchronize(chan);
}

static void loopback_release(struct dma_device *ddev)
{
	kfree(container_of(ddev, struct loopback_channel, ddev));
}

static int loopback_register(struct loopback_channel *c)
{
	struct dma_device *ddev = &c->ddev;

	dma_cap_set(DMA_MEMCPY, ddev->cap_mask);
	ddev->dev = c->sysdev;
	ddev->device_prep_dma_memcpy = loopback_prep_memcpy;
	ddev->device_issue_pending = loopback_issue_pending;
	ddev->device_tx_status = loopback_tx_status;
	ddev->device_terminate_all = loopback_terminate_all;
	ddev->device_synchronize = loopback_synchronize;
	ddev->device_free_chan_resources = loopback_free_chan_resources;
	ddev->device_release = loopback_release;
	ddev->residue_granularity = DMA_RESIDUE_GRANULARITY_BURST;
	INIT_LIST_HEAD(&ddev->channels);
	c->chan.device = ddev;
	list_add_tail(&c->chan.device_node, &ddev->channels);
	return dma_async_device_register(ddev);
}

static void loopback_free_queues(struct loopback_channel *c)
{
	if (c->sqes)
		dma_free_coherent(c->sysdev, LOOPBACK_ENTRIES * sizeof(*c->sqes), c->sqes,
				  c->sqes_dma);
	if (c->cqes)
		dma_free_coherent(c->sysdev, LOOPBACK_ENTRIES * sizeof(*c->cqes), c->cqes,
				  c->cqes_dma);
}

static int loopback_alloc_queues(struct loopback_channel *c)
{
	c->sqes = dma_alloc_coherent(c->sysdev, LOOPBACK_ENTRIES * sizeof(*c->sqes), &c->sqes_dma,
				     GFP_KERNEL);
	c->cqes = dma_alloc_coherent(c->sysdev, LOOPBACK_ENTRIES * sizeof(*c->cqes), &c->cqes_dma,
				     GFP_KERNEL);
	if (c->sqes && c->cqes)
		return 0;
	loopback_free_queues(c);
	return -ENOMEM;
}

int loopback_channel_open(struct loopback_channel *c)
{
	int err;

	spin_lock_init(&c->lock);
	INIT_LIST_HEAD(&c->submitted);
	INIT_LIST_HEAD(&c->issued);
	INIT_LIST_HEAD(&c->posted);
	INIT_LIST_HEAD(&c->done);
	tasklet_setup(&c->tasklet, loopback_tasklet);
	hrtimer_setup(&c->timer, loopback_timer_fired, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	c->chan.cookie = DMA_MIN_COOKIE;
	c->chan.completed_cookie = DMA_MIN_COOKIE;
	err = loopback_take_over(c);
	if (err)
		return err;
	err = loopback_alloc_queues(c);
	if (err)
		return err;
	if (c->irq) {
		err = request_irq(c->irq, loopback_interrupt, IRQF_SHARED, LOOPBACK_NAME, c);
		if (err)
			goto err_queues;
	}
	loopback_start(c);
	err = loopback_register(c);
	if (err)
		goto err_irq;
	return 0;

err_irq:
	loopback_reset(c);
	if (c->irq)
		free_irq(c->irq, c);
err_queues:
	loopback_free_queues(c);
	return err;
}

/* The memory of the channel lives as long as clients hold it. */
void loopback_channel_close(struct loopback_channel *c)
{
	struct loopback_desc *desc, *next;

	loopback_channel_stop(c);
	if (c->irq)
		free_irq(c->irq, c);
	hrtimer_cancel(&c->timer);
	spin_lock_irq(&c->lock);
	list_splice_tail_init(&c->issued, &c->posted);
	list_splice_tail_init(&c->submitted, &c->posted);
	list_for_each_entry_safe(desc, next, &c->posted, node) {
		desc->result = DMA_TRANS_ABORTED;
		loopback_finish(c, desc);
	}
	spin_unlock_irq(&c->lock);
	tasklet_schedule(&c->tasklet);
	tasklet_kill(&c->tasklet);
	loopback_free_queues(c);
	dma_async_device_unregister(&c->ddev);
}
