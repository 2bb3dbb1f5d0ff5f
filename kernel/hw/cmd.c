// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: mechanics of the command register.
 *
 * A command is posted to the HCR under hcr_lock.  Polled, the lock is held
 * until the device is through.  By event, it is held until the device has
 * taken the command; its end is told by an EQE with the command's token.
 *
 * A slot stands for a command under way by event:
 *
 *	FREE -> BUSY		a command takes it, with a token never seen before
 *	BUSY -> DONE -> FREE	its EQE came, its caller has seen it
 *	BUSY -> LOST		no EQE came in time
 *
 * Who waits by event looks at the HCR now and then: a device that was reset
 * behind the driver's back knows neither the command nor its EQ.  Who polls
 * looks at the token once go is 0: a reset clears both.
 *
 * A lost slot is not used again, and neither are its mailboxes: the device may
 * still write there.  A device that loses a command is given up and reset.
 */
#include <linux/delay.h>
#include <linux/dmapool.h>
#include <linux/iopoll.h>
#include <linux/slab.h>

#include "hghca.h"

/* A command may take long on a busy host; go falls much sooner. */
#define HGHCA_CMD_TIMEOUT_MS	60000
#define HGHCA_CMD_LOOK_MS	1000
#define HGHCA_HCR_TIMEOUT_US	(10 * USEC_PER_SEC)
#define HGHCA_HCR_SLEEP_US	20

#define HGHCA_CMD_SLOT_MASK	(HGHCA_CMD_SLOTS - 1)

static void hghca_hcr_write(struct hghca_dev *hdev, u32 offset, u32 value)
{
	writel(value, hdev->bus.regs + HGHCA_HCR_BASE + offset);
}

static u32 hghca_hcr_read(struct hghca_dev *hdev, u32 offset)
{
	return readl(hdev->bus.regs + HGHCA_HCR_BASE + offset);
}

/**
 * hghca_cmd_is_gone - does the command register read as that of a device that is gone?
 * @hdev: the device
 *
 * So it does, too, on a device that has failed (document 10.1).
 *
 * Context: any, but a read of a register is slow.
 */
bool hghca_cmd_is_gone(struct hghca_dev *hdev)
{
	return hghca_hcr_read(hdev, HGHCA_HCR_STATUS) == U32_MAX;
}

/* The only place that knows what the device's status means to the kernel. */
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

/**
 * hghca_mailbox_alloc - get a zeroed mailbox
 * @hdev: the device
 *
 * Return: the mailbox, or an ERR_PTR().
 */
struct hghca_mailbox *hghca_mailbox_alloc(struct hghca_dev *hdev)
{
	struct hghca_mailbox *mailbox;

	mailbox = kzalloc(sizeof(*mailbox), GFP_KERNEL);
	if (!mailbox)
		return ERR_PTR(-ENOMEM);

	mailbox->buf = dma_pool_zalloc(hdev->cmd.pool, GFP_KERNEL, &mailbox->dma);
	if (!mailbox->buf) {
		kfree(mailbox);
		return ERR_PTR(-ENOMEM);
	}
	return mailbox;
}

static void hghca_mailbox_release(struct hghca_dev *hdev, struct hghca_mailbox *mailbox)
{
	dma_pool_free(hdev->cmd.pool, mailbox->buf, mailbox->dma);
	kfree(mailbox);
}

/**
 * hghca_mailbox_free - give a mailbox back
 * @hdev: the device
 * @mailbox: the mailbox
 *
 * One that a lost command may still use is kept until hghca_cmd_cleanup().
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
	hghca_mailbox_release(hdev, mailbox);
}

/* End all commands under way, on a device that was given up.  Any context. */
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
	/* The write has arrived when a read comes back. */
	readl(hdev->bus.regs + HGHCA_RESET);
}

/*
 * End the device's DMA for good; false when that was done before.
 *
 * Who sees the device as failed frees what it had: that comes last.  A device
 * that does not obey the reset is stopped by its bus.
 */
static bool hghca_dev_cut_off(struct hghca_dev *hdev)
{
	unsigned long flags;
	bool first;

	spin_lock_irqsave(&hdev->fail_lock, flags);
	first = !hdev->failed;
	if (first) {
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
 * When it returns the device reads and writes no memory any more, so that the
 * driver may free what the device had.  Commands under way end with an error,
 * new ones are refused.  Only the driver's next start brings the device back.
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
 * hghca_dev_shutdown - the machine goes down: no more DMA
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
 * Wait until go is 0; @ctrl gets the word at 18h.  On a device that was given up
 * that is no status: the reset has cleared it.
 */
static int hghca_hcr_wait(struct hghca_dev *hdev, u32 *ctrl)
{
	int err;

	lockdep_assert_held(&hdev->cmd.hcr_lock);

	err = readl_poll_timeout(hdev->bus.regs + HGHCA_HCR_BASE + HGHCA_HCR_STATUS, *ctrl,
				 !(*ctrl & HGHCA_HCR_GO) || *ctrl == U32_MAX ||
				 hghca_dev_has_failed(hdev),
				 HGHCA_HCR_SLEEP_US, hdev->cmd.hcr_timeout_us);
	if (hghca_dev_has_failed(hdev))
		return -EIO;
	if (*ctrl == U32_MAX)
		return -ENODEV;
	return err;
}

static void hghca_hcr_write_command(struct hghca_dev *hdev, const struct hghca_cmd *cmd,
				    u16 token, bool event)
{
	u64 in_param = cmd->in ? cmd->in->dma : cmd->in_param;
	u64 out_param = cmd->out ? cmd->out->dma : 0;

	hghca_hcr_write(hdev, HGHCA_HCR_IN_PARAM_H, upper_32_bits(in_param));
	hghca_hcr_write(hdev, HGHCA_HCR_IN_PARAM_L, lower_32_bits(in_param));
	hghca_hcr_write(hdev, HGHCA_HCR_IN_MODIFIER, cmd->in_modifier);
	hghca_hcr_write(hdev, HGHCA_HCR_OUT_PARAM_H, upper_32_bits(out_param));
	hghca_hcr_write(hdev, HGHCA_HCR_OUT_PARAM_L, lower_32_bits(out_param));
	hghca_hcr_write(hdev, HGHCA_HCR_TOKEN, FIELD_PREP(HGHCA_HCR_TOKEN_MASK, token));
	hghca_hcr_write(hdev, HGHCA_HCR_STATUS,
			HGHCA_HCR_GO | (event ? HGHCA_HCR_EVENT : 0) |
			FIELD_PREP(HGHCA_HCR_OPMOD_MASK, cmd->op_modifier) |
			FIELD_PREP(HGHCA_HCR_OP_MASK, cmd->op));
}

/*
 * Document 3.1, steps 1 to 3.  Nothing is written behind the reset of a device
 * that was given up, not even by who waited for the HCR meanwhile: its mailboxes
 * are freed.
 */
static int hghca_hcr_post(struct hghca_dev *hdev, struct hghca_cmd *cmd, u16 token, bool event)
{
	unsigned long flags;
	u32 ctrl;
	int err;

	err = hghca_hcr_wait(hdev, &ctrl);
	if (err)
		return err;

	cmd->token = token;
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
 * Does the device still know what it was told?  After a reset the HCR has no
 * token, and a command by event ends there with BAD_SYS_STATE (document 3.1).
 */
static int hghca_hcr_look(struct hghca_dev *hdev)
{
	u32 ctrl, token;
	int err = 0;

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

/*
 * Wait for the end of a polled command.  A reset clears the HCR, which reads as
 * success.  The token is read last: while it is there, so is what was read before.
 */
static int hghca_hcr_poll(struct hghca_dev *hdev, struct hghca_cmd *cmd, u8 *status)
{
	u32 ctrl, token;
	int err;

	err = hghca_hcr_wait(hdev, &ctrl);
	if (err)
		return err;

	*status = FIELD_GET(HGHCA_HCR_STATUS_MASK, ctrl);
	cmd->out_param = (u64)hghca_hcr_read(hdev, HGHCA_HCR_OUT_PARAM_H) << 32 |
			 hghca_hcr_read(hdev, HGHCA_HCR_OUT_PARAM_L);
	token = hghca_hcr_read(hdev, HGHCA_HCR_TOKEN);
	if (token == U32_MAX)
		return -ENODEV;
	return FIELD_GET(HGHCA_HCR_TOKEN_MASK, token) == cmd->token ? 0 : -ENXIO;
}

static int hghca_cmd_exec_polled(struct hghca_dev *hdev, struct hghca_cmd *cmd, u8 *status)
{
	int err;

	mutex_lock(&hdev->cmd.hcr_lock);
	err = hghca_hcr_post(hdev, cmd, HGHCA_CMD_POLL_TOKEN, false);
	if (err)
		goto out_unlock;

	err = hghca_hcr_poll(hdev, cmd, status);
	if (err)
		hghca_cmd_lose_mailboxes(cmd);
out_unlock:
	mutex_unlock(&hdev->cmd.hcr_lock);
	return err;
}

/* Take a free slot; event_sem says that there is one. */
static struct hghca_cmd_slot *hghca_cmd_slot_get(struct hghca_cmd_if *ci)
{
	struct hghca_cmd_slot *slot = NULL;
	unsigned int i;

	spin_lock_irq(&ci->slot_lock);
	for (i = 0; i < HGHCA_CMD_SLOTS; i++) {
		if (ci->slots[i].state != HGHCA_CMD_SLOT_FREE)
			continue;
		slot = &ci->slots[i];
		slot->state = HGHCA_CMD_SLOT_BUSY;
		/* The upper bits tell a late completion from one of today; 0 is no token. */
		do {
			slot->token = ci->next_gen++ * HGHCA_CMD_SLOTS + i;
		} while (!slot->token || slot->token == HGHCA_CMD_POLL_TOKEN);
		reinit_completion(&slot->done);
		break;
	}
	spin_unlock_irq(&ci->slot_lock);
	return slot;
}

static void hghca_cmd_slot_put(struct hghca_cmd_if *ci, struct hghca_cmd_slot *slot)
{
	spin_lock_irq(&ci->slot_lock);
	slot->state = HGHCA_CMD_SLOT_FREE;
	spin_unlock_irq(&ci->slot_lock);
	up(&ci->event_sem);
}

/* 0, or why the slot's EQE has not come: the slot is lost then. */
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

	/* Perhaps the EQE is there, and only its interrupt got lost. */
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

static int hghca_cmd_exec_event(struct hghca_dev *hdev, struct hghca_cmd *cmd, u8 *status)
{
	struct hghca_cmd_if *ci = &hdev->cmd;
	struct hghca_cmd_slot *slot;
	int err;

	/* Who has a slot gives it back, or the device is given up: no slot is no fault. */
	while (down_timeout(&ci->event_sem, msecs_to_jiffies(ci->look_ms)))
		if (hghca_dev_has_failed(hdev))
			return -EIO;

	slot = hghca_cmd_slot_get(ci);
	if (WARN_ON_ONCE(!slot)) {
		up(&ci->event_sem);
		return -EIO;
	}

	mutex_lock(&ci->hcr_lock);
	err = hghca_hcr_post(hdev, cmd, slot->token, true);
	mutex_unlock(&ci->hcr_lock);
	if (err)
		goto err_put_slot;

	err = hghca_cmd_slot_wait(hdev, slot);
	if (err) {
		hghca_cmd_lose_mailboxes(cmd);
		return err;
	}

	*status = slot->status;
	cmd->out_param = slot->out_param;
	hghca_cmd_slot_put(ci, slot);
	return 0;

err_put_slot:
	hghca_cmd_slot_put(ci, slot);
	return err;
}

static const struct hghca_cmd_name {
	u16 op;
	const char *name;
} hghca_cmd_names[] = {
#define HGHCA_CMD_NAME(name, function, op, ...) { op, #name },
	HGHCA_COMMANDS(HGHCA_CMD_NAME)
#undef HGHCA_CMD_NAME
};

static const char *hghca_cmd_name(u16 op)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(hghca_cmd_names); i++)
		if (hghca_cmd_names[i].op == op)
			return hghca_cmd_names[i].name;
	return "unknown";
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

/**
 * hghca_cmd_exec - give the device a command and wait for its end
 * @hdev: the device
 * @cmd: the command; out_param and token are set
 *
 * A device that does not answer is given up: it is reset, so that nothing that
 * the driver frees is written to any more.
 *
 * Return: 0, an errno for the device's status, -ETIMEDOUT, -ENODEV or -ENXIO
 * for a device that does not answer, is gone or was reset, -EIO for one that was
 * given up before.
 */
int hghca_cmd_exec(struct hghca_dev *hdev, struct hghca_cmd *cmd)
{
	u8 status = HGHCA_CMD_STAT_INTERNAL_ERR;
	u64 start;
	int err;

	might_sleep();

	cmd->out_param = 0;
	if (hghca_dev_has_failed(hdev))
		return -EIO;

	start = trace_hghca_cmd_done_enabled() ? ktime_get_ns() : 0;
	if (READ_ONCE(hdev->cmd.use_events))
		err = hghca_cmd_exec_event(hdev, cmd, &status);
	else
		err = hghca_cmd_exec_polled(hdev, cmd, &status);
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
 * hghca_cmd_use_events - from now on, wait for EQEs instead of polling
 * @hdev: the device, with an EQ that takes CMD events
 * @poll_events: reads that EQ without an interrupt; may be called by whoever waits
 */
void hghca_cmd_use_events(struct hghca_dev *hdev, void (*poll_events)(struct hghca_dev *hdev))
{
	hdev->cmd.poll_events = poll_events;
	/* Nobody but the caller gives commands before the device is registered. */
	WRITE_ONCE(hdev->cmd.use_events, true);
}

/**
 * hghca_cmd_use_polling - from now on, poll
 * @hdev: the device; nobody but the caller gives it commands now
 */
void hghca_cmd_use_polling(struct hghca_dev *hdev)
{
	WRITE_ONCE(hdev->cmd.use_events, false);
}

/* A CMD event came, the end of a command. */
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
	dev_err_ratelimited(hdev->bus.dev, "%s completion of a command, token %#x, status %#x\n",
			    !known ? "unknown" :
			    state == HGHCA_CMD_SLOT_LOST ? "late" : "second", token, status);
}

static void hghca_catas_event(struct hghca_dev *hdev, u32 number, const struct hghca_eqe *eqe)
{
	hghca_dev_fail(hdev, "catastrophic error");
}

/**
 * hghca_cmd_init - make the command interface ready, polled
 * @hdev: the device
 *
 * Return: 0 or -ENOMEM.
 */
int hghca_cmd_init(struct hghca_dev *hdev)
{
	struct hghca_cmd_if *ci = &hdev->cmd;
	unsigned int i;

	mutex_init(&ci->hcr_lock);
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
 * @hdev: the device, closed or reset: it uses no mailbox any more
 */
void hghca_cmd_cleanup(struct hghca_dev *hdev)
{
	struct hghca_mailbox *mailbox, *next;

	list_for_each_entry_safe(mailbox, next, &hdev->cmd.lost, node)
		hghca_mailbox_release(hdev, mailbox);
	dma_pool_destroy(hdev->cmd.pool);
}
