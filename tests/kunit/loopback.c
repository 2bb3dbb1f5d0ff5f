// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of the RDMA loopback controller's channel.  The controller is not there:
 * its registers are ordinary memory, and the test writes the completions
 * (docs/reference/loopback.rst, sections 2 and 3).
 */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/dmaengine.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/unaligned.h>
#include <linux/workqueue.h>

#include "../../kernel/loopback/loopback.h"

#define LOOPBACK_KUNIT		"hghca-kunit-loopback"
#define REGISTERS_BYTES		128
#define SOURCE			0x12345000
#define DESTINATION		0x23456789

struct loopback_fake {
	struct platform_device *pdev;
	struct loopback_channel *channel;
	struct dma_chan *chan;
	u8 *registers;
	u32 cq_tail;
	unsigned int called;
	struct dmaengine_result result;		/* of the last call */
	struct work_struct work;		/* the controller under way */
	bool disabled;
	u32 global_cfg;				/* when it became idle */
};

static struct platform_driver loopback_kunit_driver = {
	.driver = { .name = LOOPBACK_KUNIT },
};

static u32 loopback_get(struct loopback_fake *fake, unsigned int offset)
{
	return get_unaligned_le32(fake->registers + offset);
}

static bool loopback_is_ours(struct dma_chan *chan, void *device)
{
	return chan->device == device;
}

static void loopback_called(void *param, const struct dmaengine_result *result)
{
	struct loopback_fake *fake = param;

	fake->called++;
	fake->result = *result;
}

static int loopback_kunit_open(struct loopback_fake *fake)
{
	dma_cap_mask_t mask;
	int err;

	fake->channel = kzalloc(sizeof(*fake->channel), GFP_KERNEL);
	if (!fake->channel)
		return -ENOMEM;
	fake->channel->dev = &fake->pdev->dev;
	fake->channel->sysdev = &fake->pdev->dev;
	fake->channel->registers = (void __iomem __force *)fake->registers;
	fake->channel->part_max = 65536;
	err = loopback_channel_open(fake->channel);
	if (err) {
		kfree(fake->channel);
		fake->channel = NULL;
		return err;
	}
	dma_cap_zero(mask);
	dma_cap_set(DMA_MEMCPY, mask);
	fake->chan = dma_request_channel(mask, loopback_is_ours, &fake->channel->ddev);
	return fake->chan ? 0 : -ENODEV;
}

/*
 * The driver resets the controller when it gives up the channel, and that sets the tail
 * to 0.  These registers do not do so: the driver's timer must not read them any more.
 */
static void loopback_kunit_release(struct loopback_fake *fake)
{
	hrtimer_cancel(&fake->channel->timer);
	dma_release_channel(fake->chan);
}

static void loopback_kunit_close(struct loopback_fake *fake)
{
	if (fake->chan)
		loopback_kunit_release(fake);
	if (fake->channel)
		loopback_channel_close(fake->channel);
	fake->chan = NULL;
	fake->channel = NULL;
}

static void loopback_kunit_exit(struct kunit *test)
{
	struct loopback_fake *fake = test->priv;

	if (!fake)
		return;
	loopback_kunit_close(fake);
	if (!IS_ERR_OR_NULL(fake->pdev)) {
		platform_device_unregister(fake->pdev);
		platform_driver_unregister(&loopback_kunit_driver);
	}
	kfree(fake->registers);
	kfree(fake);
}

static int loopback_kunit_init(struct kunit *test)
{
	struct loopback_fake *fake = kzalloc(sizeof(*fake), GFP_KERNEL);
	int err;

	if (!fake)
		return -ENOMEM;
	test->priv = fake;
	fake->registers = kzalloc(REGISTERS_BYTES, GFP_KERNEL);
	if (!fake->registers)
		return -ENOMEM;
	err = platform_driver_register(&loopback_kunit_driver);
	if (err)
		return err;
	/* The DMA engine keeps the device's driver loaded while a channel is in use. */
	fake->pdev = platform_device_register_simple(LOOPBACK_KUNIT, PLATFORM_DEVID_AUTO, NULL, 0);
	if (IS_ERR(fake->pdev)) {
		platform_driver_unregister(&loopback_kunit_driver);
		return PTR_ERR(fake->pdev);
	}
	return loopback_kunit_open(fake);
}

/* A copy that is submitted and issued; its callback is called with the test's fake device. */
static dma_cookie_t loopback_kunit_copy(struct kunit *test, size_t len)
{
	struct loopback_fake *fake = test->priv;
	struct dma_async_tx_descriptor *tx;
	dma_cookie_t cookie;

	tx = dmaengine_prep_dma_memcpy(fake->chan, DESTINATION, SOURCE, len, DMA_PREP_INTERRUPT);
	KUNIT_ASSERT_NOT_NULL(test, tx);
	tx->callback_result = loopback_called;
	tx->callback_param = fake;
	cookie = dmaengine_submit(tx);
	dma_async_issue_pending(fake->chan);
	return cookie;
}

/* The next completion, as the controller writes it before it moves the tail. */
static void loopback_kunit_cqe(struct loopback_fake *fake, u32 id, u32 status, u32 bytes)
{
	u8 *cqe = (u8 *)fake->channel->cqes + 32 * fake->cq_tail;

	put_unaligned_le32(id & 0xff, cqe);
	put_unaligned_le32(status, cqe + 0x04);
	put_unaligned_le32(bytes, cqe + 0x08);
	put_unaligned_le32(id & 0xff, cqe + 0x0c);
	put_unaligned_le32(id, cqe + 0x10);
	fake->cq_tail = (fake->cq_tail + 1) % 256;
}

static void loopback_kunit_complete(struct loopback_fake *fake, u32 id, u32 status, u32 bytes)
{
	loopback_kunit_cqe(fake, id, status, bytes);
	put_unaligned_le32(fake->cq_tail, fake->registers + 0x50);
}

static enum dma_status loopback_kunit_status(struct loopback_fake *fake, dma_cookie_t cookie, u32 *residue)
{
	struct dma_tx_state state = {};
	enum dma_status status = dmaengine_tx_status(fake->chan, cookie, &state);

	if (residue)
		*residue = state.residue;
	return status;
}

/* Registers of a controller that is started: queues of 256 entries, and no interrupt. */
static void loopback_started(struct kunit *test)
{
	struct loopback_fake *fake = test->priv;

	KUNIT_EXPECT_EQ(test, lower_32_bits(fake->channel->sqes_dma), loopback_get(fake, 0x20));
	KUNIT_EXPECT_EQ(test, 256, loopback_get(fake, 0x28));
	KUNIT_EXPECT_EQ(test, lower_32_bits(fake->channel->cqes_dma), loopback_get(fake, 0x40));
	KUNIT_EXPECT_EQ(test, 256, loopback_get(fake, 0x48));
	KUNIT_EXPECT_EQ(test, 0, loopback_get(fake, 0x08));
	KUNIT_EXPECT_EQ(test, 1, loopback_get(fake, 0x00));
}

/* A controller that ends the descriptor in hand some time after it was disabled. */
static void loopback_kunit_end(struct work_struct *work)
{
	struct loopback_fake *fake = container_of(work, struct loopback_fake, work);

	for (unsigned int wait = 0; wait < 10000 && loopback_get(fake, 0x00); wait++)
		usleep_range(50, 100);
	fake->disabled = !loopback_get(fake, 0x00);
	usleep_range(1000, 2000);
	fake->global_cfg = loopback_get(fake, 0x10);
	put_unaligned_le32(0, fake->registers + 0x5c);
}

/* A controller as others have left it: enabled, with an extension, at work on a descriptor. */
static void loopback_kunit_left_running(struct loopback_fake *fake)
{
	loopback_kunit_close(fake);
	put_unaligned_le32(1, fake->registers + 0x00);
	put_unaligned_le32(0x00020000, fake->registers + 0x10);
	put_unaligned_le32(5, fake->registers + 0x5c);
}

/*
 * Others have left the controller running.  It takes extensions, and with them the
 * bit that resets it, only when it is idle.
 */
static void loopback_taken_over(struct kunit *test)
{
	struct loopback_fake *fake = test->priv;

	loopback_kunit_left_running(fake);
	INIT_WORK(&fake->work, loopback_kunit_end);
	schedule_work(&fake->work);
	KUNIT_EXPECT_EQ(test, 0, loopback_kunit_open(fake));
	KUNIT_EXPECT_EQ(test, 0, loopback_get(fake, 0x5c));
	flush_work(&fake->work);
	KUNIT_EXPECT_TRUE(test, fake->disabled);
	KUNIT_EXPECT_EQ(test, 0x00020000, fake->global_cfg);
	KUNIT_EXPECT_EQ(test, 0, loopback_get(fake, 0x10));
	if (fake->channel)
		loopback_started(test);
}

/* Others have left the controller running, and it does not stop: it is not touched any further. */
static void loopback_endless(struct kunit *test)
{
	struct loopback_fake *fake = test->priv;

	loopback_kunit_left_running(fake);
	put_unaligned_le32(0x11223344, fake->registers + 0x20);
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT, loopback_kunit_open(fake));
	KUNIT_EXPECT_EQ(test, 0, loopback_get(fake, 0x00));
	KUNIT_EXPECT_EQ(test, 0x00020000, loopback_get(fake, 0x10));
	KUNIT_EXPECT_EQ(test, 0x11223344, loopback_get(fake, 0x20));
}

static void loopback_copy(struct kunit *test)
{
	struct loopback_fake *fake = test->priv;
	dma_cookie_t cookie = loopback_kunit_copy(test, 100);
	const u8 *sqe = (const u8 *)fake->channel->sqes;

	KUNIT_EXPECT_EQ(test, 1, loopback_get(fake, 0x30));
	KUNIT_EXPECT_EQ(test, 0, get_unaligned_le32(sqe));
	KUNIT_EXPECT_EQ(test, 0x01, get_unaligned_le32(sqe + 0x04));
	KUNIT_EXPECT_EQ(test, SOURCE, get_unaligned_le64(sqe + 0x08));
	KUNIT_EXPECT_EQ(test, DESTINATION, get_unaligned_le64(sqe + 0x10));
	KUNIT_EXPECT_EQ(test, 100, get_unaligned_le32(sqe + 0x18));
	KUNIT_EXPECT_EQ(test, (int)DMA_IN_PROGRESS, (int)loopback_kunit_status(fake, cookie, NULL));
	loopback_kunit_complete(fake, 0, 0, 100);
	KUNIT_EXPECT_EQ(test, (int)DMA_COMPLETE, (int)loopback_kunit_status(fake, cookie, NULL));
	dmaengine_synchronize(fake->chan);
	KUNIT_EXPECT_EQ(test, 1, fake->called);
	KUNIT_EXPECT_EQ(test, (int)DMA_TRANS_NOERROR, (int)fake->result.result);
	KUNIT_EXPECT_EQ(test, 0, fake->result.residue);
	KUNIT_EXPECT_EQ(test, 1, loopback_get(fake, 0x4c));
}

/* Longer than a transfer: one after the other, and the residue tells how far it is. */
static void loopback_long_copy(struct kunit *test)
{
	static const u32 lengths[] = { 65536, 65536, 5 };
	struct loopback_fake *fake = test->priv;
	u32 residue, left = 2 * 65536 + 5;
	dma_cookie_t cookie = loopback_kunit_copy(test, left);
	const u8 *sqe = (const u8 *)fake->channel->sqes;
	u64 offset = 0;

	KUNIT_EXPECT_EQ(test, 3, loopback_get(fake, 0x30));
	for (unsigned int i = 0; i < ARRAY_SIZE(lengths); i++, sqe += 64) {
		KUNIT_EXPECT_EQ(test, SOURCE + offset, get_unaligned_le64(sqe + 0x08));
		KUNIT_EXPECT_EQ(test, DESTINATION + offset, get_unaligned_le64(sqe + 0x10));
		KUNIT_EXPECT_EQ(test, lengths[i], get_unaligned_le32(sqe + 0x18));
		offset += lengths[i];
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(lengths); i++) {
		KUNIT_EXPECT_EQ(test, (int)DMA_IN_PROGRESS, (int)loopback_kunit_status(fake, cookie, &residue));
		KUNIT_EXPECT_EQ(test, left, residue);
		loopback_kunit_complete(fake, i, 0, lengths[i]);
		left -= lengths[i];
	}
	KUNIT_EXPECT_EQ(test, (int)DMA_COMPLETE, (int)loopback_kunit_status(fake, cookie, &residue));
	KUNIT_EXPECT_EQ(test, 0, residue);
}

static const struct loopback_error {
	const char *name;
	u32 status;
	enum dmaengine_tx_result result;
} loopback_errors[] = {
	{ "source", 1, DMA_TRANS_READ_FAILED },
	{ "destination", 2, DMA_TRANS_WRITE_FAILED },
	{ "length", 3, DMA_TRANS_ABORTED },
	{ "time-out", 4, DMA_TRANS_ABORTED },
	{ "unknown status", 0xff, DMA_TRANS_ABORTED },
};
KUNIT_ARRAY_PARAM_DESC(loopback_error, loopback_errors, name);

/* The second of three transfers fails: the copy ends when all have ended, and tells what is missing. */
static void loopback_failed_copy(struct kunit *test)
{
	const struct loopback_error *error = test->param_value;
	struct loopback_fake *fake = test->priv;
	dma_cookie_t cookie = loopback_kunit_copy(test, 2 * 65536 + 5);
	dma_cookie_t next = loopback_kunit_copy(test, 10);

	loopback_kunit_complete(fake, 0, 0, 65536);
	loopback_kunit_complete(fake, 1, error->status, 4096);
	KUNIT_EXPECT_EQ(test, (int)DMA_IN_PROGRESS, (int)loopback_kunit_status(fake, cookie, NULL));
	loopback_kunit_complete(fake, 2, 0, 5);
	KUNIT_EXPECT_EQ(test, (int)DMA_ERROR, (int)loopback_kunit_status(fake, cookie, NULL));
	dmaengine_synchronize(fake->chan);
	KUNIT_EXPECT_EQ(test, 1, fake->called);
	KUNIT_EXPECT_EQ(test, (int)error->result, (int)fake->result.result);
	KUNIT_EXPECT_EQ(test, 65536, fake->result.residue);
	loopback_kunit_complete(fake, 3, 0, 10);
	KUNIT_EXPECT_EQ(test, (int)DMA_COMPLETE, (int)loopback_kunit_status(fake, next, NULL));
}

/* The SQ has room for 255; the others follow as completions come, also across its end. */
static void loopback_many(struct kunit *test)
{
	struct loopback_fake *fake = test->priv;
	dma_cookie_t cookie = 0;

	for (unsigned int i = 0; i < 300; i++)
		cookie = loopback_kunit_copy(test, 1 + i);
	KUNIT_EXPECT_EQ(test, 255, loopback_get(fake, 0x30));
	for (unsigned int i = 0; i < 300; i++) {
		loopback_kunit_complete(fake, i % 256, 0, 1 + i);
		loopback_kunit_status(fake, cookie, NULL);
		KUNIT_EXPECT_EQ(test, min(256 + i, 300u) % 256, loopback_get(fake, 0x30));
	}
	KUNIT_EXPECT_EQ(test, (int)DMA_COMPLETE, (int)loopback_kunit_status(fake, cookie, NULL));
	dmaengine_synchronize(fake->chan);
	KUNIT_EXPECT_EQ(test, 300, fake->called);
}

/* The driver's timer, which alone reads the CQ here, posts what waits for room. */
static void loopback_polled(struct kunit *test)
{
	struct loopback_fake *fake = test->priv;

	for (unsigned int i = 0; i < 260; i++)
		loopback_kunit_copy(test, 1 + i);
	for (unsigned int i = 0; i < 260; i++) {
		loopback_kunit_complete(fake, i % 256, 0, 1 + i);
		for (unsigned int wait = 0; wait < 1000 && loopback_get(fake, 0x4c) != (i + 1) % 256; wait++)
			usleep_range(50, 100);
		KUNIT_ASSERT_EQ(test, (i + 1) % 256, loopback_get(fake, 0x4c));
		KUNIT_EXPECT_EQ(test, min(256 + i, 260u) % 256, loopback_get(fake, 0x30));
	}
	dmaengine_synchronize(fake->chan);
	KUNIT_EXPECT_EQ(test, 260, fake->called);
}

static void loopback_terminated(struct kunit *test)
{
	struct loopback_fake *fake = test->priv;
	dma_cookie_t cookie;

	loopback_kunit_copy(test, 65536 * 300ul);
	loopback_kunit_copy(test, 10);
	KUNIT_EXPECT_EQ(test, 0, dmaengine_terminate_sync(fake->chan));
	KUNIT_EXPECT_EQ(test, 0, fake->called);
	loopback_started(test);
	/* The tail of a controller that was reset is 0; this one keeps what was written. */
	cookie = loopback_kunit_copy(test, 20);
	KUNIT_EXPECT_EQ(test, 1, loopback_get(fake, 0x30));
	loopback_kunit_complete(fake, 0, 0, 20);
	KUNIT_EXPECT_EQ(test, (int)DMA_COMPLETE, (int)loopback_kunit_status(fake, cookie, NULL));
}

static void loopback_empty(struct kunit *test)
{
	struct loopback_fake *fake = test->priv;

	KUNIT_EXPECT_NULL(test, dmaengine_prep_dma_memcpy(fake->chan, DESTINATION, SOURCE, 0, 0));
}

static const struct loopback_lie {
	const char *name;
	u32 completions, tail, id, bytes;
} loopback_lies[] = {
	{ "a tail beyond the CQ", 1, 256, 0, 100 },
	{ "a tail of ones, as of a device that has gone", 1, 0xffffffff, 0, 100 },
	{ "another descriptor", 1, 1, 5, 100 },
	{ "fewer bytes", 1, 1, 0, 99 },
	{ "more bytes", 1, 1, 0, 101 },
	{ "a completion that nobody asked for", 2, 2, 0, 100 },
};
KUNIT_ARRAY_PARAM_DESC(loopback_lie, loopback_lies, name);

/* A controller that reports what was not asked of it is stopped, and what is under way fails. */
static void loopback_lying(struct kunit *test)
{
	const struct loopback_lie *lie = test->param_value;
	struct loopback_fake *fake = test->priv;
	struct dma_async_tx_descriptor *tx;

	loopback_kunit_copy(test, 100);
	for (u32 i = 0; i < lie->completions; i++)
		loopback_kunit_cqe(fake, lie->id + i, 0, lie->bytes);
	/* The driver's timer may read it from now on. */
	put_unaligned_le32(lie->tail, fake->registers + 0x50);
	loopback_kunit_status(fake, 1, NULL);
	dmaengine_synchronize(fake->chan);
	KUNIT_EXPECT_EQ(test, 1, fake->called);
	KUNIT_EXPECT_EQ(test, lie->completions == 1 ? (int)DMA_TRANS_ABORTED : (int)DMA_TRANS_NOERROR, (int)fake->result.result);
	KUNIT_EXPECT_EQ(test, 2, loopback_get(fake, 0x00));	/* reset, not enabled */
	tx = dmaengine_prep_dma_memcpy(fake->chan, DESTINATION, SOURCE, 10, 0);
	KUNIT_ASSERT_NOT_NULL(test, tx);
	KUNIT_EXPECT_EQ(test, -ENODEV, dmaengine_submit(tx));
}

static struct kunit_case loopback_cases[] = {
	KUNIT_CASE(loopback_started),
	KUNIT_CASE(loopback_taken_over),
	KUNIT_CASE(loopback_endless),
	KUNIT_CASE(loopback_copy),
	KUNIT_CASE(loopback_long_copy),
	KUNIT_CASE_PARAM(loopback_failed_copy, loopback_error_gen_params),
	KUNIT_CASE(loopback_many),
	KUNIT_CASE(loopback_polled),
	KUNIT_CASE(loopback_terminated),
	KUNIT_CASE(loopback_empty),
	KUNIT_CASE_PARAM(loopback_lying, loopback_lie_gen_params),
	{}
};

static struct kunit_suite loopback_suite = {
	.name = "hghca_loopback",
	.init = loopback_kunit_init,
	.exit = loopback_kunit_exit,
	.test_cases = loopback_cases,
};
kunit_test_suite(loopback_suite);
