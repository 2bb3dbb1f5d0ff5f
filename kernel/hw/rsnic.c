// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: what a device of the RSNIC document has besides: an initialization
 * segment, a command queue and a retransmission buffer.
 *
 * The queue takes the place of the HCR.  A command in event mode has the entry of its
 * slot; a polled command has the last entry.
 */
#include <linux/dma-mapping.h>
#include <linux/iopoll.h>

#include "hghca.h"

#define HGHCA_CMDQ_POLLED	(HGHCA_CMDQ_ENTRIES - 1)
#define HGHCA_CMDQ_SLEEP_US	20
#define HGHCA_PACKETS_LOG	9	/* pages of the retransmission buffer; one for each QP */
#define HGHCA_PACKETS_BYTES	(SZ_4K << HGHCA_PACKETS_LOG)
#define HGHCA_INIT_SLEEP_US	1000

static_assert(HGHCA_CMD_SLOTS <= HGHCA_CMDQ_POLLED, "each slot has an entry of its own");

static const char *hghca_health_name(u32 syndrome)
{
	static const struct {
		const char *name;
		u32 value;
	} names[] = {
#define HGHCA_HEALTH_NAME(name, value) { #name, value },
		HGHCA_HEALTH_SYNDROMES(HGHCA_HEALTH_NAME)
#undef HGHCA_HEALTH_NAME
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].value == syndrome)
			return names[i].name;
	return "unknown";
}

static u32 hghca_seg_read(struct hghca_dev *hdev, u32 offset)
{
	return readl(hdev->bus.regs + offset);
}

static void hghca_seg_write(struct hghca_dev *hdev, u32 offset, u32 value)
{
	writel(value, hdev->bus.regs + offset);
}

/**
 * hghca_cmdq_open - turn the command queue on, if the device has one
 * @hdev: the device, after a reset
 *
 * Of a device without a segment nothing is read: the JingZhao document does not say what
 * is there.
 *
 * Return: 0, -ENODEV for a device that is gone, -ETIMEDOUT for one that does not become
 * ready, -EPROTO for a queue of an unknown form, or -ENOMEM.
 */
int hghca_cmdq_open(struct hghca_dev *hdev)
{
	struct hghca_cmdq *q = &hdev->cmd.queue;
	u32 form, init;
	int err;

	if (!hdev->bus.rsnic)
		return 0;
	form = hghca_seg_read(hdev, HGHCA_SEG_CMDQ_L);
	if (form == U32_MAX)
		return -ENODEV;
	if (FIELD_GET(HGHCA_SEG_LOG_SIZE_MASK, form) != HGHCA_CMDQ_LOG_SIZE ||
	    FIELD_GET(HGHCA_SEG_LOG_STRIDE_MASK, form) != HGHCA_CMDQ_LOG_STRIDE) {
		dev_err(hdev->bus.dev, "unknown command queue: 0x%x\n", form);
		return -EPROTO;
	}
	err = readl_poll_timeout(hdev->bus.regs + HGHCA_SEG_INIT, init,
				 !(init & HGHCA_SEG_INITIALIZING) || init == U32_MAX,
				 HGHCA_INIT_SLEEP_US, hdev->cmd.hcr_timeout_us);
	if (init == U32_MAX)
		return -ENODEV;
	if (err) {
		dev_err(hdev->bus.dev, "the device does not become ready: 0x%x\n", init);
		return err;
	}

	q->entries = dma_alloc_coherent(hdev->bus.dev, PAGE_SIZE, &q->dma, GFP_KERNEL);
	if (!q->entries)
		return -ENOMEM;
	/* The device can do without: packets are then read again from where they were sent. */
	q->packets = dma_alloc_coherent(hdev->bus.dev, HGHCA_PACKETS_BYTES, &q->packets_dma,
					GFP_KERNEL | __GFP_NOWARN);
	hghca_seg_write(hdev, HGHCA_SEG_CMDQ_H, upper_32_bits(q->dma));
	hghca_seg_write(hdev, HGHCA_SEG_CMDQ_L, lower_32_bits(q->dma) |
			FIELD_PREP(HGHCA_SEG_NIC_INTERFACE_MASK, HGHCA_SEG_FULL_DRIVER));
	return 0;
}

/* Tell INIT_HCA where the retransmission buffer is. */
void hghca_cmdq_place_packets(struct hghca_dev *hdev, struct hghca_init_hca *init)
{
	if (hdev->cmd.queue.packets)
		init->packet_base = cpu_to_be64(hdev->cmd.queue.packets_dma | HGHCA_PACKETS_LOG);
}

/**
 * hghca_cmdq_close - free the command queue and the retransmission buffer
 * @hdev: the device; it does no DMA
 */
void hghca_cmdq_close(struct hghca_dev *hdev)
{
	struct hghca_cmdq *q = &hdev->cmd.queue;

	if (q->packets)
		dma_free_coherent(hdev->bus.dev, HGHCA_PACKETS_BYTES, q->packets, q->packets_dma);
	if (q->entries)
		dma_free_coherent(hdev->bus.dev, PAGE_SIZE, q->entries, q->dma);
	q->packets = NULL;
	q->entries = NULL;
}

static struct hghca_cmdq_entry *hghca_cmdq_entry(struct hghca_dev *hdev, unsigned int index)
{
	return &hdev->cmd.queue.entries[index];
}

/* Write an entry, which then is the device's. */
static void hghca_cmdq_fill(struct hghca_dev *hdev, struct hghca_cmd *cmd, unsigned int index,
			    u16 token, bool event)
{
	struct hghca_cmdq_entry *entry = hghca_cmdq_entry(hdev, index);
	u32 words[ARRAY_SIZE(entry->hcr)];
	unsigned int i;

	cmd->token = token;
	hghca_hcr_words(cmd, token, event, words);
	for (i = 0; i < ARRAY_SIZE(words); i++)
		entry->hcr[i] = cpu_to_le32(words[i]);
	dma_wmb();
	WRITE_ONCE(entry->owner, cpu_to_le32(HGHCA_CMDQ_HW));
}

/*
 * Ring for entries that are filled.  A device that was given up is not rung: it was reset,
 * and the mailboxes of the commands may be freed.
 */
static int hghca_cmdq_ring(struct hghca_dev *hdev, u32 vector, struct hghca_cmd *cmds,
			   unsigned int count, bool event)
{
	unsigned long flags;
	unsigned int i;
	int err = 0;

	spin_lock_irqsave(&hdev->fail_lock, flags);
	if (hdev->failed) {
		err = -EIO;
	} else {
		for (i = 0; i < count; i++)
			trace_hghca_cmd_post(hdev, &cmds[i], event);
		/* writel() orders the owners before the doorbell. */
		hghca_seg_write(hdev, HGHCA_SEG_CMDQ_DB, vector);
	}
	spin_unlock_irqrestore(&hdev->fail_lock, flags);
	return err;
}

/**
 * hghca_cmdq_post_slots - start commands in event mode
 * @hdev: the device
 * @cmds: the commands
 * @slots: their slots, in ascending order, which is that of their starts
 * @count: their number
 *
 * Return: 0, or -EIO for a device that was given up.
 */
int hghca_cmdq_post_slots(struct hghca_dev *hdev, struct hghca_cmd *cmds,
			  struct hghca_cmd_slot **slots, unsigned int count)
{
	u32 vector = 0;
	unsigned int i;

	for (i = 0; i < count; i++) {
		unsigned int index = slots[i] - hdev->cmd.slots;

		hghca_cmdq_fill(hdev, &cmds[i], index, slots[i]->token, true);
		vector |= BIT(index);
	}
	return hghca_cmdq_ring(hdev, vector, cmds, count, true);
}

/* A device that was reset has no queue; one that has failed keeps it, and takes no command. */
int hghca_cmdq_look(struct hghca_dev *hdev)
{
	dma_addr_t dma = hdev->cmd.queue.dma;
	u32 high = hghca_seg_read(hdev, HGHCA_SEG_CMDQ_H);
	u32 low = hghca_seg_read(hdev, HGHCA_SEG_CMDQ_L);
	u32 health = hghca_seg_read(hdev, HGHCA_SEG_HEALTH);

	if (low == U32_MAX || FIELD_GET(HGHCA_SEG_SYNDROME_MASK, health))
		return -ENODEV;
	if (high != upper_32_bits(dma) || (low & HGHCA_SEG_CMDQ_ADDR_MASK) != lower_32_bits(dma))
		return -ENXIO;
	return 0;
}

int hghca_cmdq_post_polled(struct hghca_dev *hdev, struct hghca_cmd *cmd)
{
	lockdep_assert_held(&hdev->cmd.hcr_lock);

	hghca_cmdq_fill(hdev, cmd, HGHCA_CMDQ_POLLED, HGHCA_CMD_POLL_TOKEN, false);
	return hghca_cmdq_ring(hdev, BIT(HGHCA_CMDQ_POLLED), cmd, 1, false);
}

/* Wait for the end of a polled command. */
int hghca_cmdq_poll(struct hghca_dev *hdev, struct hghca_cmd *cmd, u8 *status)
{
	struct hghca_cmdq_entry *entry = hghca_cmdq_entry(hdev, HGHCA_CMDQ_POLLED);
	u64 limit_us = hdev->cmd.hcr_timeout_us;
	u64 look_us = min_t(u64, limit_us, hdev->cmd.look_ms * USEC_PER_MSEC);
	u64 waited_us = 0;
	__le32 owner;
	int err, gone;

	do {
		err = read_poll_timeout(READ_ONCE, owner,
					!(owner & cpu_to_le32(HGHCA_CMDQ_HW)) ||
					hghca_dev_has_failed(hdev),
					HGHCA_CMDQ_SLEEP_US, look_us, false, entry->owner);
		if (hghca_dev_has_failed(hdev))
			return -EIO;
		gone = err ? hghca_cmdq_look(hdev) : 0;
		if (gone)
			return gone;
		waited_us += look_us;
	} while (err && waited_us < limit_us);
	if (err)
		return err;
	/* Read the result after the owner. */
	dma_rmb();
	*status = FIELD_GET(HGHCA_HCR_STATUS_MASK, le32_to_cpu(entry->hcr[HGHCA_HCR_STATUS / 4]));
	cmd->out_param = (u64)le32_to_cpu(entry->hcr[HGHCA_HCR_OUT_PARAM_H / 4]) << 32 |
			 le32_to_cpu(entry->hcr[HGHCA_HCR_OUT_PARAM_L / 4]);
	return 0;
}

/* Log why the device has failed, if it says so. */
void hghca_cmdq_report_health(struct hghca_dev *hdev)
{
	u32 health, syndrome;

	if (!hdev->cmd.queue.entries)
		return;
	health = hghca_seg_read(hdev, HGHCA_SEG_HEALTH);
	syndrome = FIELD_GET(HGHCA_SEG_SYNDROME_MASK, health);
	if (health == U32_MAX || !syndrome)
		return;
	dev_err(hdev->bus.dev, "health syndrome %s (0x%x)\n", hghca_health_name(syndrome),
		syndrome);
}
