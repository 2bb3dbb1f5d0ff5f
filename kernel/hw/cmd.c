// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: the command interface.
 *
 * The driver posts a command to the HCR under hcr_lock.  In polling mode it holds
 * the lock until the command has completed.  In event mode it holds the lock until
 * the device has accepted the command.  The command completes with an EQE that has
 * its token.
 *
 * A slot represents an outstanding command in event mode:
 *
 *	FREE -> BUSY		a command takes the slot, with a new token
 *	BUSY -> DONE -> FREE	the EQE arrived; the caller has seen it
 *	BUSY -> LOST		no EQE arrived in time
 *
 * In event mode, the caller also reads the HCR periodically: a device that was reset
 * without the driver has lost the command and its EQ.  In polling mode, the caller
 * reads the token when go is 0: a reset clears both.
 *
 * A device with SYNC_COMMANDS ends a command in the write of go.  Each access of a
 * register leaves a virtual machine, so that only those are accessed that matter.  With
 * STATUS_RECORD, it writes the status to memory before that, and no register is read.
 *
 * A lost slot and its mailboxes are not reused, because the device may still write
 * to the mailboxes.  A device that loses a command is given up and reset.
 */
#include <linux/delay.h>
#include <linux/dmapool.h>
#include <linux/iopoll.h>
#include <linux/slab.h>

#include "hghca.h"

/* A command may take long on a busy host.  The device clears go much sooner. */
#define HGHCA_CMD_TIMEOUT_MS	60000
#define HGHCA_CMD_LOOK_MS	1000
#define HGHCA_HCR_TIMEOUT_US	(10 * USEC_PER_SEC)
#define HGHCA_HCR_SLEEP_US	20

#define HGHCA_CMD_SLOT_MASK	(HGHCA_CMD_SLOTS - 1)

#define HGHCA_HCR_WORD(name)	BIT(HGHCA_HCR_##name / 4)
/* The device does not change these, and writing them does nothing by itself. */
#define HGHCA_HCR_KEPT	\
	(HGHCA_HCR_WORD(IN_PARAM_H) | HGHCA_HCR_WORD(IN_PARAM_L) | HGHCA_HCR_WORD(IN_MODIFIER))

static const struct hghca_cmd_row {
	u16 op;
	u8 in, out;	/* enum hghca_cmd_param */
	const char *name;
} hghca_cmd_rows[] = {
#define HGHCA_CMD_ROW(name, function, op, in, out, ...) \
	{ op, HGHCA_CMD_PARAM_##in, HGHCA_CMD_PARAM_##out, #name },
	HGHCA_COMMANDS(HGHCA_CMD_ROW)
#undef HGHCA_CMD_ROW
};

/* Each command looks its row up.  The rows are in the order of op. */
static const struct hghca_cmd_row *hghca_cmd_find(u16 op)
{
	u32 first = 0, end = ARRAY_SIZE(hghca_cmd_rows);

	while (first < end) {
		u32 middle = (first + end) / 2;

		if (hghca_cmd_rows[middle].op == op)
			return &hghca_cmd_rows[middle];
		if (hghca_cmd_rows[middle].op < op)
			first = middle + 1;
		else
			end = middle;
	}
	return NULL;
}

static void hghca_hcr_write(struct hghca_dev *hdev, u32 offset, u32 value)
{
	writel(value, hdev->bus.regs + HGHCA_HCR_BASE + offset);
}

static u32 hghca_hcr_read(struct hghca_dev *hdev, u32 offset)
{
	return readl(hdev->bus.regs + HGHCA_HCR_BASE + offset);
}

/**
 * hghca_cmd_is_gone - does the command register read as all ones?
 * @hdev: the device
 *
 * It does if the device is gone, or has failed (document 10.1).
 *
 * Context: any, but a read of a register is slow.
 */
bool hghca_cmd_is_gone(struct hghca_dev *hdev)
{
	return hghca_hcr_read(hdev, HGHCA_HCR_STATUS) == U32_MAX;
}

/* The only place that translates a status of the device to an errno. */
static int hghca_cmd_status_to_errno(u8 status)
{
	switch (status) {
	case HGHCA_CMD_STAT_OK:
		return 0;
	case HGHCA_CMD_STAT_BAD_OP:
		return -EOPNOTSUPP;
	case HGHCA_CMD_STAT_BAD_PARAM:
	case HGHCA_CMD_STAT_BAD_QPEE_STATE:
		return -EINVAL;
	case HGHCA_CMD_STAT_BAD_SYS_STATE:
		return -ENXIO;
	case HGHCA_CMD_STAT_RESOURCE_BUSY:
	case HGHCA_CMD_STAT_REG_BOUND:
		return -EBUSY;
	case HGHCA_CMD_STAT_EXCEED_LIM:
	case HGHCA_CMD_STAT_BAD_SIZE:
		return -ENOMEM;
	case HGHCA_CMD_STAT_BAD_RES_STATE:
	case HGHCA_CMD_STAT_BAD_INDEX:
		return -EBADF;
	case HGHCA_CMD_STAT_BAD_SEG_PARAM:
		return -EFAULT;
	case HGHCA_CMD_STAT_LAM_NOT_PRE:
		return -EAGAIN;
	case HGHCA_CMD_STAT_INTERNAL_ERR:
	case HGHCA_CMD_STAT_BAD_NVMEM:
	default:
		return -EIO;
	}
}

static struct hghca_mailbox *hghca_mailbox_new(struct hghca_dev *hdev)
{
	struct hghca_mailbox *mailbox;

	mailbox = kzalloc_obj(*mailbox);
	if (!mailbox)
		return NULL;

	mailbox->buf = dma_pool_alloc(hdev->cmd.pool, GFP_KERNEL, &mailbox->dma);
	if (!mailbox->buf) {
		kfree(mailbox);
		return NULL;
	}
	return mailbox;
}

/**
 * hghca_mailbox_alloc - allocate a mailbox
 * @hdev: the device
 * @zeroed: bytes at its start that are zeroed; the others have what the driver has given to
 *	the device before
 *
 * Return: the mailbox, or an ERR_PTR().
 */
struct hghca_mailbox *hghca_mailbox_alloc(struct hghca_dev *hdev, size_t zeroed)
{
	struct hghca_mailbox *mailbox = xchg(&hdev->cmd.spare, NULL);

	if (!mailbox)
		mailbox = hghca_mailbox_new(hdev);
	if (!mailbox)
		return ERR_PTR(-ENOMEM);
	memset(mailbox->buf, 0, zeroed);
	return mailbox;
}

static void hghca_mailbox_release(struct hghca_dev *hdev, struct hghca_mailbox *mailbox)
{
	dma_pool_free(hdev->cmd.pool, mailbox->buf, mailbox->dma);
	kfree(mailbox);
}

/**
 * hghca_mailbox_free - free a mailbox
 * @hdev: the device
 * @mailbox: the mailbox
 *
 * One mailbox is kept for the next command: most commands have one, one after the other.  A
 * mailbox that a lost command may still use is kept until hghca_cmd_cleanup().
 */
void hghca_mailbox_free(struct hghca_dev *hdev, struct hghca_mailbox *mailbox)
{
	struct hghca_cmd_if *ci = &hdev->cmd;

	if (mailbox->lost) {
		spin_lock_irq(&ci->slot_lock);
		list_add(&mailbox->node, &ci->lost);
		spin_unlock_irq(&ci->slot_lock);
		return;
	}
	if (cmpxchg(&ci->spare, NULL, mailbox))
		hghca_mailbox_release(hdev, mailbox);
}

/* End all outstanding commands of a device that was given up.  Any context. */
static void hghca_cmd_abort_all(struct hghca_dev *hdev)
{
	struct hghca_cmd_if *ci = &hdev->cmd;
	unsigned long flags;
	unsigned int i;

	spin_lock_irqsave(&ci->slot_lock, flags);
	for (i = 0; i < HGHCA_CMD_SLOTS; i++) {
		struct hghca_cmd_slot *slot = &ci->slots[i];

		if (slot->state != HGHCA_CMD_SLOT_BUSY)
			continue;
		slot->status = HGHCA_CMD_STAT_INTERNAL_ERR;
		slot->out_param = 0;
		slot->state = HGHCA_CMD_SLOT_DONE;
		complete(&slot->done);
	}
	spin_unlock_irqrestore(&ci->slot_lock, flags);
}

/**
 * hghca_dev_reset - reset the device: it drops all objects and does no more DMA
 * @hdev: the device
 *
 * Context: any.
 */
void hghca_dev_reset(struct hghca_dev *hdev)
{
	writel(HGHCA_RESET_START, hdev->bus.regs + HGHCA_RESET);
	/* The read flushes the posted write. */
	readl(hdev->bus.regs + HGHCA_RESET);
}

/*
 * End DMA of the device permanently.  Returns false if that was done before.
 *
 * Code that sees failed may free memory of the device, so failed is set last.  The
 * bus blocks a device that does not execute the reset.
 */
static bool hghca_dev_cut_off(struct hghca_dev *hdev)
{
	unsigned long flags;
	bool first;

	spin_lock_irqsave(&hdev->fail_lock, flags);
	first = !hdev->failed;
	if (first) {
		/* The reset clears the syndrome. */
		hghca_cmdq_report_health(hdev);
		hghca_dev_reset(hdev);
		hdev->bus.enable_dma(hdev->bus.dev, false);
		/* Pairs with the acquire in hghca_dev_has_failed(). */
		smp_store_release(&hdev->failed, true);
	}
	spin_unlock_irqrestore(&hdev->fail_lock, flags);
	return first;
}

/**
 * hghca_dev_fail - give the device up
 * @hdev: the device
 * @why: for the log
 *
 * After return the device does no DMA, so that the driver may free memory that the
 * device used.  Outstanding commands end with an error, and new ones are refused.  The
 * device works again only after the driver is started again.
 * Context: any.
 */
void hghca_dev_fail(struct hghca_dev *hdev, const char *why)
{
	if (!hghca_dev_cut_off(hdev))
		return;

	trace_hghca_fail(hdev, why);
	dev_err(hdev->bus.dev, "fatal error: %s\n", why);
	hghca_cmd_abort_all(hdev);
	schedule_work(&hdev->fail_work);
}

/**
 * hghca_dev_shutdown - end DMA at system shutdown
 * @hdev: the device
 */
void hghca_dev_shutdown(struct hghca_dev *hdev)
{
	hghca_dev_cut_off(hdev);
	hghca_cmd_abort_all(hdev);
}

static void hghca_cmd_lose_mailboxes(struct hghca_cmd *cmd)
{
	if (cmd->in)
		cmd->in->lost = true;
	if (cmd->out)
		cmd->out->lost = true;
}

/*
 * Wait until go is 0; @ctrl is set to the word at 18h.  On a device that was given up
 * the word has no status, because the reset has cleared it.
 */
static int hghca_hcr_wait(struct hghca_dev *hdev, u32 *ctrl)
{
	int err = 0;

	lockdep_assert_held(&hdev->cmd.hcr_lock);

	/* Mostly it is 0 at once, and the time need not be read. */
	*ctrl = hghca_hcr_read(hdev, HGHCA_HCR_STATUS);
	if (*ctrl & HGHCA_HCR_GO)
		err = readl_poll_timeout(hdev->bus.regs + HGHCA_HCR_BASE + HGHCA_HCR_STATUS,
					 *ctrl,
					 !(*ctrl & HGHCA_HCR_GO) || *ctrl == U32_MAX ||
					 hghca_dev_has_failed(hdev),
					 HGHCA_HCR_SLEEP_US, hdev->cmd.hcr_timeout_us);
	if (hghca_dev_has_failed(hdev))
		return -EIO;
	if (*ctrl == U32_MAX)
		return -ENODEV;
	return err;
}

/* The words of the HCR that the device reads for a command, as bits. */
static u32 hghca_hcr_used(const struct hghca_dev *hdev, u16 op)
{
	const struct hghca_cmd_row *row = hghca_cmd_find(op);
	u32 used = HGHCA_HCR_WORD(IN_MODIFIER) | HGHCA_HCR_WORD(STATUS);

	if (!hdev->cmd.sync || !row)
		return U32_MAX;
	if (row->in != HGHCA_CMD_PARAM_NONE)
		used |= HGHCA_HCR_WORD(IN_PARAM_H) | HGHCA_HCR_WORD(IN_PARAM_L);
	if (row->out != HGHCA_CMD_PARAM_NONE)
		used |= HGHCA_HCR_WORD(OUT_PARAM_H) | HGHCA_HCR_WORD(OUT_PARAM_L);
	return used;
}

/* The word needs no write: the object or the mailbox is that of the command before. */
static bool hghca_hcr_has(const struct hghca_cmd_if *ci, u32 i, u32 word)
{
	return ci->sync && ci->kept & BIT(i) && ci->hcr[i] == word;
}

static void hghca_hcr_write_command(struct hghca_dev *hdev, const struct hghca_cmd *cmd,
				    u16 token, bool event)
{
	struct hghca_cmd_if *ci = &hdev->cmd;
	u32 words[HGHCA_HCR_SIZE / 4];
	u32 i;

	hghca_hcr_words(cmd, token, event, words);
	for (i = 0; i < ARRAY_SIZE(words); i++) {
		if (!(cmd->used & BIT(i)) || hghca_hcr_has(ci, i, words[i]))
			continue;
		hghca_hcr_write(hdev, 4 * i, words[i]);
		ci->kept |= HGHCA_HCR_KEPT & BIT(i);
		ci->hcr[i] = words[i];
	}
}

/*
 * Document 3.1, steps 1 to 3.  Nothing is written after the reset of a device that
 * was given up, even if the caller waited for the HCR before the reset: the mailboxes
 * of the command may be freed.
 */
static int hghca_hcr_post(struct hghca_dev *hdev, struct hghca_cmd *cmd, u16 token, bool event)
{
	unsigned long flags;
	u32 ctrl;
	int err = 0;

	if (!hdev->cmd.sync)
		err = hghca_hcr_wait(hdev, &ctrl);
	if (err)
		return err;

	cmd->token = token;
	cmd->used = hghca_hcr_used(hdev, cmd->op);
	/* No command has op 0.  writel() makes the device see it before the command. */
	if (hdev->cmd.use_record)
		WRITE_ONCE(*hdev->cmd.status, 0);
	spin_lock_irqsave(&hdev->fail_lock, flags);
	if (hdev->failed) {
		err = -EIO;
	} else {
		trace_hghca_cmd_post(hdev, cmd, event);
		hdev->cmd.last_token = token;
		hghca_hcr_write_command(hdev, cmd, token, event);
	}
	spin_unlock_irqrestore(&hdev->fail_lock, flags);
	return err;
}

/*
 * Was the device reset?  After a reset the HCR has no token, and a command in event
 * mode ends there with BAD_SYS_STATE (document 3.1).
 */
static int hghca_hcr_look(struct hghca_dev *hdev)
{
	u32 ctrl, token;
	int err = 0;

	if (hghca_cmdq_is_on(hdev))
		return hghca_cmdq_look(hdev);
	mutex_lock(&hdev->cmd.hcr_lock);
	ctrl = hghca_hcr_read(hdev, HGHCA_HCR_STATUS);
	token = hghca_hcr_read(hdev, HGHCA_HCR_TOKEN);
	if (ctrl == U32_MAX)
		err = -ENODEV;
	else if (FIELD_GET(HGHCA_HCR_TOKEN_MASK, token) != hdev->cmd.last_token ||
		 (!(ctrl & HGHCA_HCR_GO) &&
		  FIELD_GET(HGHCA_HCR_STATUS_MASK, ctrl) == HGHCA_CMD_STAT_BAD_SYS_STATE))
		err = -ENXIO;
	mutex_unlock(&hdev->cmd.hcr_lock);
	return err;
}

static u64 hghca_hcr_read_out_param(struct hghca_dev *hdev)
{
	return (u64)hghca_hcr_read(hdev, HGHCA_HCR_OUT_PARAM_H) << 32 |
	       hghca_hcr_read(hdev, HGHCA_HCR_OUT_PARAM_L);
}

/*
 * The word at 18h as the device has written it to memory.  0: it has not; that is for the
 * register to tell, which also shows a device that is gone or was reset.
 */
static u32 hghca_hcr_recorded(struct hghca_dev *hdev, const struct hghca_cmd *cmd)
{
	u32 ctrl;

	if (!hdev->cmd.use_record)
		return 0;
	ctrl = be32_to_cpu(READ_ONCE(*hdev->cmd.status));
	if (ctrl & HGHCA_HCR_GO || FIELD_GET(HGHCA_HCR_OP_MASK, ctrl) != cmd->op)
		return 0;
	/* The record before what the command has written to memory. */
	dma_rmb();
	return ctrl;
}

/*
 * The end of a command of a device with SYNC_COMMANDS.  A reset clears the word at 18h, op
 * with it, and no command has op 0.  A device that was reset before the command is not
 * initialized.
 */
static int hghca_hcr_poll_sync(struct hghca_dev *hdev, struct hghca_cmd *cmd, u8 *status)
{
	int err = 0;
	u32 ctrl;

	ctrl = hghca_hcr_recorded(hdev, cmd);
	cmd->recorded = ctrl;
	if (!ctrl)
		err = hghca_hcr_wait(hdev, &ctrl);
	else if (hghca_dev_has_failed(hdev))
		err = -EIO;
	if (err)
		return err;
	if (FIELD_GET(HGHCA_HCR_OP_MASK, ctrl) != cmd->op)
		return -ENXIO;

	*status = FIELD_GET(HGHCA_HCR_STATUS_MASK, ctrl);
	if (*status == HGHCA_CMD_STAT_BAD_SYS_STATE)
		return -ENXIO;
	if (!cmd->out && cmd->used & HGHCA_HCR_WORD(OUT_PARAM_L))
		cmd->out_param = hghca_hcr_read_out_param(hdev);
	return 0;
}

/*
 * Wait for the end of a polled command.  A reset clears the HCR, which then reads as
 * success.  The token is read last: if it is present, the values read before are valid.
 */
static int hghca_hcr_poll(struct hghca_dev *hdev, struct hghca_cmd *cmd, u8 *status)
{
	u32 ctrl, token;
	int err;

	if (hdev->cmd.sync)
		return hghca_hcr_poll_sync(hdev, cmd, status);

	err = hghca_hcr_wait(hdev, &ctrl);
	if (err)
		return err;

	*status = FIELD_GET(HGHCA_HCR_STATUS_MASK, ctrl);
	cmd->out_param = hghca_hcr_read_out_param(hdev);
	token = hghca_hcr_read(hdev, HGHCA_HCR_TOKEN);
	if (token == U32_MAX)
		return -ENODEV;
	return FIELD_GET(HGHCA_HCR_TOKEN_MASK, token) == cmd->token ? 0 : -ENXIO;
}

static int hghca_cmd_exec_polled(struct hghca_dev *hdev, struct hghca_cmd *cmd, u8 *status)
{
	int err;

	mutex_lock(&hdev->cmd.hcr_lock);
	if (hghca_cmdq_is_on(hdev))
		err = hghca_cmdq_post_polled(hdev, cmd);
	else
		err = hghca_hcr_post(hdev, cmd, HGHCA_CMD_POLL_TOKEN, false);
	if (err)
		goto out_unlock;

	if (hghca_cmdq_is_on(hdev))
		err = hghca_cmdq_poll(hdev, cmd, status);
	else
		err = hghca_hcr_poll(hdev, cmd, status);
	if (err)
		hghca_cmd_lose_mailboxes(cmd);
out_unlock:
	mutex_unlock(&hdev->cmd.hcr_lock);
	return err;
}

static void hghca_cmd_slot_put(struct hghca_cmd_if *ci, struct hghca_cmd_slot *slot)
{
	spin_lock_irq(&ci->slot_lock);
	slot->state = HGHCA_CMD_SLOT_FREE;
	spin_unlock_irq(&ci->slot_lock);
	up(&ci->event_sem);
}

static void hghca_cmd_slots_put(struct hghca_cmd_if *ci, struct hghca_cmd_slot **slots,
				unsigned int count)
{
	while (count--)
		hghca_cmd_slot_put(ci, slots[count]);
}

/*
 * Wait for @count free slots, and take them in ascending order.  event_sem guarantees that
 * they are there.  chain_lock guarantees that nobody waits for a slot with others in hand.
 */
static int hghca_cmd_slots_get(struct hghca_dev *hdev, struct hghca_cmd_slot **slots,
			       unsigned int count)
{
	struct hghca_cmd_if *ci = &hdev->cmd;
	unsigned int i, taken = 0;

	while (taken < count) {
		/* A slot becomes free, or the device is given up.  A timeout is not an error. */
		if (!down_timeout(&ci->event_sem, msecs_to_jiffies(ci->look_ms)))
			taken++;
		else if (hghca_dev_has_failed(hdev))
			goto err_up;
	}

	taken = 0;
	spin_lock_irq(&ci->slot_lock);
	for (i = 0; i < HGHCA_CMD_SLOTS && taken < count; i++) {
		struct hghca_cmd_slot *slot = &ci->slots[i];

		if (slot->state != HGHCA_CMD_SLOT_FREE)
			continue;
		slot->state = HGHCA_CMD_SLOT_BUSY;
		/* The upper bits identify a late completion of an old command.  0 is no token. */
		do {
			slot->token = ci->next_gen++ * HGHCA_CMD_SLOTS + i;
		} while (!slot->token || slot->token == HGHCA_CMD_POLL_TOKEN);
		reinit_completion(&slot->done);
		slots[taken++] = slot;
	}
	spin_unlock_irq(&ci->slot_lock);
	if (!WARN_ON_ONCE(taken < count))
		return 0;
	while (taken < count) {
		up(&ci->event_sem);
		count--;
	}
	hghca_cmd_slots_put(ci, slots, taken);
	return -EIO;

err_up:
	while (taken--)
		up(&ci->event_sem);
	return -EIO;
}

/* Returns 0, or the error because of which the EQE is missing.  The slot is then lost. */
static int hghca_cmd_slot_wait(struct hghca_dev *hdev, struct hghca_cmd_slot *slot)
{
	struct hghca_cmd_if *ci = &hdev->cmd;
	unsigned long end = jiffies + msecs_to_jiffies(ci->timeout_ms);
	int err = 0;
	bool done;

	while (!err && time_before(jiffies, end)) {
		if (wait_for_completion_timeout(&slot->done, msecs_to_jiffies(ci->look_ms)))
			return 0;
		err = hghca_hcr_look(hdev);
	}

	/* The EQE may be present although its interrupt was lost. */
	ci->poll_events(hdev);

	spin_lock_irq(&ci->slot_lock);
	done = slot->state == HGHCA_CMD_SLOT_DONE;
	if (!done)
		slot->state = HGHCA_CMD_SLOT_LOST;
	spin_unlock_irq(&ci->slot_lock);
	if (done)
		return 0;
	return err ?: -ETIMEDOUT;
}

/* Wait for the end of a command in a slot, and give the slot back unless it is lost. */
static int hghca_cmd_slot_finish(struct hghca_dev *hdev, struct hghca_cmd_slot *slot,
				 struct hghca_cmd *cmd, u8 *status)
{
	int err;

	err = hghca_cmd_slot_wait(hdev, slot);
	if (err) {
		hghca_cmd_lose_mailboxes(cmd);
		return err;
	}
	*status = slot->status;
	cmd->out_param = slot->out_param;
	hghca_cmd_slot_put(&hdev->cmd, slot);
	return 0;
}

static int hghca_cmd_exec_event(struct hghca_dev *hdev, struct hghca_cmd *cmd, u8 *status)
{
	struct hghca_cmd_if *ci = &hdev->cmd;
	struct hghca_cmd_slot *slot;
	int err;

	err = hghca_cmd_slots_get(hdev, &slot, 1);
	if (err)
		return err;

	if (hghca_cmdq_is_on(hdev)) {
		err = hghca_cmdq_post_slots(hdev, cmd, &slot, 1);
	} else {
		mutex_lock(&ci->hcr_lock);
		err = hghca_hcr_post(hdev, cmd, slot->token, true);
		mutex_unlock(&ci->hcr_lock);
	}
	if (err) {
		hghca_cmd_slot_put(ci, slot);
		return err;
	}
	return hghca_cmd_slot_finish(hdev, slot, cmd, status);
}

static const char *hghca_cmd_name(u16 op)
{
	const struct hghca_cmd_row *row = hghca_cmd_find(op);

	return row ? row->name : "unknown";
}

static const char *hghca_cmd_status_name(u8 status)
{
	static const struct {
		const char *name;
		u8 status;
	} names[] = {
#define HGHCA_CMD_STATUS_NAME(name, value) { #name, value },
		HGHCA_CMD_STATUSES(HGHCA_CMD_STATUS_NAME)
#undef HGHCA_CMD_STATUS_NAME
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].status == status)
			return names[i].name;
	return "unknown status";
}

/* Log how a command has ended, give a device up that does not respond; the errno. */
static int hghca_cmd_end(struct hghca_dev *hdev, struct hghca_cmd *cmd, u8 status, int err,
			 u64 start)
{
	trace_hghca_cmd_done(hdev, cmd, status, err, start);

	if (err) {
		if (hghca_dev_has_failed(hdev))
			return -EIO;
		dev_err(hdev->bus.dev, "command %s (%#x), modifiers %#x %#x: no response: %d\n",
			hghca_cmd_name(cmd->op), cmd->op, cmd->in_modifier,
			cmd->op_modifier, err);
		hghca_dev_fail(hdev, err == -ENXIO ? "the device has lost its state" :
						     "no response to a command");
		return err;
	}

	err = hghca_cmd_status_to_errno(status);
	if (err == -EIO)
		dev_err_ratelimited(hdev->bus.dev,
				    "command %s (%#x), modifiers %#x %#x: %s (%#x)\n",
				    hghca_cmd_name(cmd->op), cmd->op, cmd->in_modifier,
				    cmd->op_modifier, hghca_cmd_status_name(status), status);
	else if (err)
		dev_dbg(hdev->bus.dev, "command %s (%#x), modifiers %#x %#x: %s (%#x)\n",
			hghca_cmd_name(cmd->op), cmd->op, cmd->in_modifier,
			cmd->op_modifier, hghca_cmd_status_name(status), status);
	return err;
}

/**
 * hghca_cmd_exec - execute a command and wait for its end
 * @hdev: the device
 * @cmd: the command; out_param and token are set
 *
 * A device that does not respond is given up and reset, so that it does not write to
 * memory that the driver frees.
 *
 * Return: 0, an errno for the status of the command, -ETIMEDOUT for a device that does
 * not respond, -ENODEV for one that is gone, -ENXIO for one that was reset, or -EIO for
 * one that was given up before.
 */
int hghca_cmd_exec(struct hghca_dev *hdev, struct hghca_cmd *cmd)
{
	u8 status = HGHCA_CMD_STAT_INTERNAL_ERR;
	u64 start;
	int err;

	cmd->out_param = 0;
	cmd->recorded = false;
	if (hghca_dev_has_failed(hdev))
		return -EIO;

	start = trace_hghca_cmd_done_enabled() ? ktime_get_ns() : 0;
	if (READ_ONCE(hdev->cmd.use_events))
		err = hghca_cmd_exec_event(hdev, cmd, &status);
	else
		err = hghca_cmd_exec_polled(hdev, cmd, &status);
	return hghca_cmd_end(hdev, cmd, status, err, start);
}

/* By one doorbell of the command queue.  Commands behind one that fails are executed too. */
static int hghca_cmd_exec_by_one_doorbell(struct hghca_dev *hdev, struct hghca_cmd *cmds,
					  unsigned int count)
{
	struct hghca_cmd_slot *slots[HGHCA_CMD_CHAIN_MAX];
	struct hghca_cmd_if *ci = &hdev->cmd;
	u64 start = trace_hghca_cmd_done_enabled() ? ktime_get_ns() : 0;
	unsigned int i;
	int err, ret = 0;

	mutex_lock(&ci->chain_lock);
	err = hghca_cmd_slots_get(hdev, slots, count);
	mutex_unlock(&ci->chain_lock);
	if (err)
		return err;

	err = hghca_cmdq_post_slots(hdev, cmds, slots, count);
	if (err) {
		hghca_cmd_slots_put(ci, slots, count);
		return err;
	}
	for (i = 0; i < count; i++) {
		u8 status = HGHCA_CMD_STAT_INTERNAL_ERR;

		cmds[i].out_param = 0;
		err = hghca_cmd_slot_finish(hdev, slots[i], &cmds[i], &status);
		err = hghca_cmd_end(hdev, &cmds[i], status, err, start);
		ret = ret ?: err;
	}
	return ret;
}

/**
 * hghca_cmd_exec_chain - execute commands in their order and wait for their ends
 * @hdev: the device
 * @cmds: commands, of which each has no effect if one before it fails
 * @count: their number, HGHCA_CMD_CHAIN_MAX at most
 *
 * Return: 0, or the first error as of hghca_cmd_exec().
 */
int hghca_cmd_exec_chain(struct hghca_dev *hdev, struct hghca_cmd *cmds, unsigned int count)
{
	unsigned int i;
	int err = 0;

	might_sleep();
	if (WARN_ON_ONCE(count > HGHCA_CMD_CHAIN_MAX))
		return -EINVAL;

	if (hghca_cmdq_is_on(hdev) && READ_ONCE(hdev->cmd.use_events) &&
	    !hghca_dev_has_failed(hdev))
		return hghca_cmd_exec_by_one_doorbell(hdev, cmds, count);
	for (i = 0; !err && i < count; i++)
		err = hghca_cmd_exec(hdev, &cmds[i]);
	return err;
}

/**
 * hghca_cmd_use_events - switch from polling to event mode
 * @hdev: the device, with an EQ that receives CMD events
 * @poll_events: reads that EQ without an interrupt; any waiting caller may call it
 */
void hghca_cmd_use_events(struct hghca_dev *hdev, void (*poll_events)(struct hghca_dev *hdev))
{
	hdev->cmd.poll_events = poll_events;
	/* Before the device is registered, only the caller executes commands. */
	WRITE_ONCE(hdev->cmd.use_events, true);
}

/**
 * hghca_cmd_use_polling - switch to polling mode
 * @hdev: the device; only the caller executes commands now
 */
void hghca_cmd_use_polling(struct hghca_dev *hdev)
{
	hdev->cmd.sync = false;
	hdev->cmd.use_record = false;
	WRITE_ONCE(hdev->cmd.use_events, false);
}

/**
 * hghca_cmd_use_sync - switch to commands that end in the write of go
 * @hdev: the device, with SYNC_COMMANDS; only the caller executes commands now
 */
void hghca_cmd_use_sync(struct hghca_dev *hdev)
{
	hghca_cmd_use_polling(hdev);
	/* What was written before a reset of the device is gone. */
	hdev->cmd.kept = 0;
	hdev->cmd.sync = true;
}

/**
 * hghca_cmd_alloc_record - allocate the status record
 * @hdev: the device; hghca_cmd_cleanup() frees the record
 *
 * Return: 0 or -ENOMEM.
 */
int hghca_cmd_alloc_record(struct hghca_dev *hdev)
{
	struct hghca_cmd_if *ci = &hdev->cmd;

	if (!ci->status)
		ci->status = dma_pool_alloc(ci->pool, GFP_KERNEL, &ci->status_dma);
	return ci->status ? 0 : -ENOMEM;
}

/**
 * hghca_cmd_use_record - read the status of commands from the status record
 * @hdev: the device, after hghca_cmd_use_sync() and SET_STATUS_RECORD; only the caller executes
 *	commands now
 *
 * hghca_cmd_use_polling() ends it.  The device writes the record until CLOSE_HCA or a reset.
 */
void hghca_cmd_use_record(struct hghca_dev *hdev)
{
	hdev->cmd.use_record = true;
}

/*
 * Handle a CMD event, which completes a command.  After the device was given up, its EQ
 * may still have the completion of a command that hghca_cmd_abort_all() has ended.
 */
static void hghca_cmd_event(struct hghca_dev *hdev, u32 number, const struct hghca_eqe *eqe)
{
	struct hghca_cmd_if *ci = &hdev->cmd;
	u16 token = be16_to_cpu(eqe->event.cmd.token);
	struct hghca_cmd_slot *slot = &ci->slots[token & HGHCA_CMD_SLOT_MASK];
	enum hghca_cmd_slot_state state;
	u8 status = eqe->event.cmd.status;
	unsigned long flags;
	bool known;

	spin_lock_irqsave(&ci->slot_lock, flags);
	state = slot->state;
	known = slot->token == token;
	if (known && state == HGHCA_CMD_SLOT_BUSY) {
		slot->status = status;
		slot->out_param = (u64)be32_to_cpu(eqe->event.cmd.out_param_h) << 32 |
				  be32_to_cpu(eqe->event.cmd.out_param_l);
		slot->state = HGHCA_CMD_SLOT_DONE;
		complete(&slot->done);
	}
	spin_unlock_irqrestore(&ci->slot_lock, flags);

	if (known && state == HGHCA_CMD_SLOT_BUSY)
		return;
	if (state != HGHCA_CMD_SLOT_LOST && hghca_dev_has_failed(hdev))
		return;
	dev_err_ratelimited(hdev->bus.dev, "%s completion of a command, token %#x, status %#x\n",
			    !known ? "unknown" :
			    state == HGHCA_CMD_SLOT_LOST ? "late" : "second", token, status);
}

static void hghca_catas_event(struct hghca_dev *hdev, u32 number, const struct hghca_eqe *eqe)
{
	hghca_dev_fail(hdev, "catastrophic error");
}

/**
 * hghca_cmd_init - initialize the command interface in polling mode
 * @hdev: the device
 *
 * Return: 0 or -ENOMEM.
 */
int hghca_cmd_init(struct hghca_dev *hdev)
{
	struct hghca_cmd_if *ci = &hdev->cmd;
	unsigned int i;

	mutex_init(&ci->hcr_lock);
	mutex_init(&ci->chain_lock);
	sema_init(&ci->event_sem, HGHCA_CMD_SLOTS);
	spin_lock_init(&ci->slot_lock);
	INIT_LIST_HEAD(&ci->lost);
	ci->timeout_ms = HGHCA_CMD_TIMEOUT_MS;
	ci->look_ms = HGHCA_CMD_LOOK_MS;
	ci->hcr_timeout_us = HGHCA_HCR_TIMEOUT_US;
	for (i = 0; i < HGHCA_CMD_SLOTS; i++)
		init_completion(&ci->slots[i].done);
	hghca_handle_event(hdev, HGHCA_EVENT_CMD, hghca_cmd_event);
	hghca_handle_event(hdev, HGHCA_EVENT_LOCAL_CATAS_ERROR, hghca_catas_event);

	ci->pool = dma_pool_create("hghca-mailbox", hdev->bus.dev, HGHCA_MAILBOX_SIZE,
				   HGHCA_MAILBOX_SIZE, 0);
	return ci->pool ? 0 : -ENOMEM;
}

/**
 * hghca_cmd_cleanup - undo hghca_cmd_init()
 * @hdev: the device, closed or reset: it does not use mailboxes
 */
void hghca_cmd_cleanup(struct hghca_dev *hdev)
{
	struct hghca_mailbox *mailbox, *next;

	hghca_cmdq_close(hdev);
	list_for_each_entry_safe(mailbox, next, &hdev->cmd.lost, node)
		hghca_mailbox_release(hdev, mailbox);
	if (hdev->cmd.spare)
		hghca_mailbox_release(hdev, hdev->cmd.spare);
	hdev->cmd.spare = NULL;
	if (hdev->cmd.status)
		dma_pool_free(hdev->cmd.pool, hdev->cmd.status, hdev->cmd.status_dma);
	hdev->cmd.status = NULL;
	hdev->cmd.use_record = false;
	dma_pool_destroy(hdev->cmd.pool);
}
