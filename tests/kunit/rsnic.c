// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of devices of the RSNIC document: the initialization segment, the command
 * queue, health and the retransmission buffer, with the offsets of their page (RSNIC, 2 to 4
 * and 7); and devices without them, of which the driver asks nothing new.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <trace/events/printk.h>

#include "fake.h"

/* Offsets in BAR0. */
#define RSNIC_QUEUE_H		0x0010
#define RSNIC_QUEUE_L		0x0014
#define RSNIC_DOORBELL		0x0018
#define RSNIC_INIT		0x01fc
#define RSNIC_HEALTH		0x1010
#define RSNIC_HCR		0x80000
#define RSNIC_HCR_STATUS	0x80018
#define RSNIC_RESET		0xf0010

#define RSNIC_FORM		0x56		/* 32 entries of 64 bytes */
#define RSNIC_READY		0x03000000	/* full_driver, disabled */
#define RSNIC_INITIALIZING	0x83000000
#define RSNIC_POLLED		31		/* the entry of polled commands */
#define RSNIC_CHAIN		3		/* commands */
#define RSNIC_HELD		0x1000		/* in_param of what rsnic_hold() keeps */
#define RSNIC_ROUNDS		50
#define RSNIC_ASYNC_EQ		1		/* as the fake device numbers them */

/* Every command by event, and every one polled, where the two shall not differ. */
static const struct rsnic_mode {
	const char *name;
	bool by_event;
} rsnic_modes[] = {
	{ "polled", false },
	{ "by event", true },
};

KUNIT_ARRAY_PARAM_DESC(rsnic_mode, rsnic_modes, name);

static struct fake *rsnic_in_mode(struct kunit *test)
{
	const struct rsnic_mode *mode = test->param_value;
	struct fake *fake = test->priv;

	if (mode->by_event)
		KUNIT_ASSERT_EQ(test, 0, fake_events(fake));
	return fake;
}

static u32 rsnic_read(struct fake *fake, u32 offset)
{
	return readl((void __iomem *)fake->regs + offset);
}

static void rsnic_write(struct fake *fake, u32 offset, u32 value)
{
	writel(value, (void __iomem *)fake->regs + offset);
}

/* Section 4 and document 10.1: of BAR0, the segment alone can be read. */
static void rsnic_fail(struct fake *fake, u8 syndrome)
{
	rsnic_write(fake, RSNIC_HEALTH, (u32)syndrome << 24 | 0x001234);
	rsnic_write(fake, RSNIC_HCR_STATUS, U32_MAX);
}

static enum fake_end rsnic_silent(struct fake *fake, const struct fake_command *cmd,
				  struct fake_answer *answer)
{
	return FAKE_SILENT;
}

static enum fake_end rsnic_gone(struct fake *fake, const struct fake_command *cmd,
				struct fake_answer *answer)
{
	return FAKE_GONE;
}

/* A reset turns the queue off, and its entries stay as they are. */
static enum fake_end rsnic_reset(struct fake *fake, const struct fake_command *cmd,
				 struct fake_answer *answer)
{
	fake_rsnic(fake);
	return FAKE_NO_STATUS;
}

static enum fake_end rsnic_failed_meanwhile(struct fake *fake, const struct fake_command *cmd,
					    struct fake_answer *answer)
{
	rsnic_fail(fake, 0x08);
	return FAKE_NO_STATUS;
}

/* Each has an output of its own; those from RSNIC_HELD on do not end. */
static enum fake_end rsnic_hold(struct fake *fake, const struct fake_command *cmd,
				struct fake_answer *answer)
{
	answer->out_param = ~cmd->in_param;
	return cmd->in_param < RSNIC_HELD ? FAKE_ANSWERED : FAKE_SILENT;
}

/* The status of each command of a chain. */
static enum fake_end rsnic_answer_chain(struct fake *fake, const struct fake_command *cmd,
					struct fake_answer *answer)
{
	const u8 *statuses = fake->priv;

	answer->status = statuses[cmd->in_param];
	return FAKE_ANSWERED;
}

/* For commands that shall not end in time. */
static void rsnic_hurry(struct fake *fake)
{
	fake->hdev->cmd.timeout_ms = FAKE_TIMEOUT_MS;
	fake->hdev->cmd.look_ms = FAKE_TIMEOUT_MS / 10;
	fake->hdev->cmd.hcr_timeout_us = FAKE_TIMEOUT_MS * USEC_PER_MSEC;
}

static void rsnic_expect_given_up(struct kunit *test, struct fake *fake)
{
	u32 mark = fake_mark(fake), rung = fake->rung;

	KUNIT_EXPECT_TRUE(test, hghca_dev_has_failed(fake->hdev));
	KUNIT_EXPECT_EQ(test, 1, rsnic_read(fake, RSNIC_RESET));
	KUNIT_EXPECT_FALSE(test, fake->dma);
	KUNIT_EXPECT_EQ(test, -EIO, hghca_cmd_nop(fake->hdev));
	KUNIT_EXPECT_EQ(test, mark, fake_mark(fake));
	KUNIT_EXPECT_EQ(test, rung, fake->rung);
}

static int rsnic_init(struct kunit *test)
{
	return fake_test_open(test, fake_rsnic, false);
}

static int rsnic_init_events(struct kunit *test)
{
	return fake_test_open(test, fake_rsnic, true);
}

/* The driver rings for what it has filled alone, and while the queue is on. */
static void rsnic_exit(struct kunit *test)
{
	struct fake *fake = test->priv;

	if (fake)
		KUNIT_EXPECT_EQ(test, 0, fake->ignored);
}

/* ------------------------------------------------------------------ */
/* Commands, polled and by event                                        */

/* Section 3: the words of the HCR, then the owner; one doorbell for one entry. */
static void rsnic_words(struct kunit *test)
{
	const struct rsnic_mode *mode = test->param_value;
	struct fake *fake = rsnic_in_mode(test);
	struct hghca_cmd cmd = {
		.op = 0x5a5,
		.op_modifier = 0xc3,
		.in_modifier = 0x12345678,
		.in_param = 0x0123456789abcdef,
		.out_param = 0x1111111111111111,
	};
	u32 mark = fake_mark(fake), rung = fake->rung;
	struct fake_command *seen;
	const void *entry;

	fake->answer = fake_answer_param;
	KUNIT_ASSERT_EQ(test, 0, hghca_cmd_exec(fake->hdev, &cmd));
	KUNIT_EXPECT_EQ(test, 0x8899aabbccddeeff, cmd.out_param);
	KUNIT_EXPECT_EQ(test, mark + 1, fake_mark(fake));
	KUNIT_EXPECT_EQ(test, rung + 1, fake->rung);

	seen = fake_nth(fake, mark);
	KUNIT_ASSERT_NOT_NULL(test, seen);
	KUNIT_ASSERT_EQ(test, mode->by_event ? seen->token % HGHCA_CMD_SLOTS : RSNIC_POLLED,
			seen->entry);
	KUNIT_EXPECT_EQ(test, 1U << seen->entry, seen->vector);
	KUNIT_EXPECT_EQ(test, 0x01234567, seen->words[0]);	/* 00h */
	KUNIT_EXPECT_EQ(test, 0x89abcdef, seen->words[1]);	/* 04h */
	KUNIT_EXPECT_EQ(test, 0x12345678, seen->words[2]);	/* 08h */
	KUNIT_EXPECT_EQ(test, 0, seen->words[3]);		/* 0Ch: no output mailbox */
	KUNIT_EXPECT_EQ(test, 0, seen->words[4]);		/* 10h */
	/* 14h: token 31:16 */
	KUNIT_EXPECT_EQ(test, 0, seen->words[5] & 0xffff);
	if (mode->by_event)
		KUNIT_EXPECT_NE(test, 0xffff0000, seen->words[5]);
	else
		KUNIT_EXPECT_EQ(test, 0xffff0000, seen->words[5]);
	/* 18h: E 22, op_modifier 19:12, op 11:0; go 23 is not used */
	KUNIT_EXPECT_EQ(test, mode->by_event ? 0x004c35a5 : 0x000c35a5,
			seen->words[6] & 0xff7fffff);
	/* 1Ch: owner 0; 20h to 3Ch: reserved */
	entry = fake_entry(fake, seen->entry);
	KUNIT_ASSERT_NOT_NULL(test, entry);
	KUNIT_EXPECT_NULL(test, memchr_inv(entry + 0x1c, 0, 0x24));
	/* While the queue is on, the HCR is not used. */
	KUNIT_EXPECT_NULL(test, memchr_inv(fake->regs + RSNIC_HCR, 0, 0x1c));
}

static enum fake_end rsnic_busy(struct fake *fake, const struct fake_command *cmd,
				struct fake_answer *answer)
{
	answer->status = 0x06;
	return FAKE_ANSWERED;
}

/* A status is an answer: the device goes on. */
static void rsnic_refused(struct kunit *test)
{
	struct fake *fake = rsnic_in_mode(test);

	fake->answer = rsnic_busy;
	KUNIT_EXPECT_EQ(test, -EBUSY, hghca_cmd_nop(fake->hdev));
	fake->answer = NULL;
	KUNIT_EXPECT_FALSE(test, hghca_dev_has_failed(fake->hdev));
	KUNIT_EXPECT_EQ(test, 0, hghca_cmd_nop(fake->hdev));
}

static const struct rsnic_loss {
	const char *name;
	enum fake_end (*answer)(struct fake *fake, const struct fake_command *cmd,
				struct fake_answer *answer);
	bool by_event;
	int err;
} rsnic_losses[] = {
	{ "polled, no end", rsnic_silent, false, -ETIMEDOUT },
	{ "by event, no end", rsnic_silent, true, -ETIMEDOUT },
	{ "polled, the device is reset", rsnic_reset, false, -ENXIO },
	{ "by event, the device is reset", rsnic_reset, true, -ENXIO },
	{ "polled, the device goes away", rsnic_gone, false, -ENODEV },
	{ "by event, the device goes away", rsnic_gone, true, -ENODEV },
	{ "polled, the device fails", rsnic_failed_meanwhile, false, -ENODEV },
	{ "by event, the device fails", rsnic_failed_meanwhile, true, -ENODEV },
};

KUNIT_ARRAY_PARAM_DESC(rsnic_loss, rsnic_losses, name);

/* The mailbox of a command without end is not given to another one. */
static void rsnic_lost(struct kunit *test)
{
	const struct rsnic_loss *param = test->param_value;
	struct fake *fake = test->priv;
	struct hghca_cmd cmd = { .op = HGHCA_CMD_QUERY_QP };

	if (param->by_event)
		KUNIT_ASSERT_EQ(test, 0, fake_events(fake));
	rsnic_hurry(fake);
	cmd.out = hghca_mailbox_alloc(fake->hdev, HGHCA_MAILBOX_SIZE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(cmd.out));
	fake->answer = param->answer;
	KUNIT_EXPECT_EQ(test, param->err, hghca_cmd_exec(fake->hdev, &cmd));
	rsnic_expect_given_up(test, fake);
	KUNIT_EXPECT_TRUE(test, cmd.out->lost);
	hghca_mailbox_free(fake->hdev, cmd.out);
	KUNIT_EXPECT_PTR_EQ(test, &cmd.out->node, fake->hdev->cmd.lost.next);
}

/* What stands in the place of the queue's address. */
static const struct rsnic_look {
	const char *name;
	bool kept;	/* the queue's own, with these bits flipped */
	u32 high;
	u32 low;
	u32 health;
	int err;
} rsnic_looks[] = {
	{ "as it was written", true, 0, 0, 0, 0 },
	{ "with the form of the queue", true, 0, RSNIC_FORM, 0, 0 },
	{ "the health counter runs", true, 0, RSNIC_FORM, 0xffffff, 0 },
	{ "a reset", false, 0, RSNIC_FORM, 0, -ENXIO },
	{ "another page", true, 0, 0x1000 | RSNIC_FORM, 0, -ENXIO },
	{ "another 4 GiB", true, 1, RSNIC_FORM, 0, -ENXIO },
	{ "all ones", false, U32_MAX, U32_MAX, U32_MAX, -ENODEV },
	{ "a failure", true, 0, RSNIC_FORM, 0x0b001234, -ENODEV },
};

KUNIT_ARRAY_PARAM_DESC(rsnic_look, rsnic_looks, name);

static void rsnic_look(struct kunit *test)
{
	const struct rsnic_look *param = test->param_value;
	struct fake *fake = test->priv;
	u32 high = rsnic_read(fake, RSNIC_QUEUE_H), low = rsnic_read(fake, RSNIC_QUEUE_L);

	rsnic_write(fake, RSNIC_QUEUE_H, (param->kept ? high : 0) ^ param->high);
	rsnic_write(fake, RSNIC_QUEUE_L, (param->kept ? low : 0) ^ param->low);
	rsnic_write(fake, RSNIC_HEALTH, param->health);
	if (param->err == -ENODEV)
		rsnic_write(fake, RSNIC_HCR_STATUS, U32_MAX);
	KUNIT_EXPECT_EQ(test, param->err, hghca_cmdq_look(fake->hdev));
	rsnic_write(fake, RSNIC_QUEUE_H, high);
	rsnic_write(fake, RSNIC_QUEUE_L, low);
	rsnic_write(fake, RSNIC_HEALTH, 0);
	rsnic_write(fake, RSNIC_HCR_STATUS, 0);
	KUNIT_EXPECT_EQ(test, 0, hghca_cmd_nop(fake->hdev));
}

/* ------------------------------------------------------------------ */
/* Health                                                               */

/* The line of the log that tells a syndrome, without what stands before it. */
struct rsnic_log {
	char text[64];
	int lines;
};

static void rsnic_on_console(void *data, const char *text, size_t len)
{
	static const char begin[] = "health syndrome ";
	struct rsnic_log *log = data;
	const char *found = strnstr(text, begin, len);

	if (!found)
		return;
	found += strlen(begin);
	len = min(len - (found - text), sizeof(log->text) - 1);
	memcpy(log->text, found, len);
	log->text[len] = 0;
	log->lines++;
}

static struct rsnic_log *rsnic_listen(struct kunit *test)
{
	struct rsnic_log *log = kunit_kzalloc(test, sizeof(*log), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, log);
	KUNIT_ASSERT_EQ(test, 0, register_trace_console(rsnic_on_console, log));
	return log;
}

static void rsnic_listen_no_more(struct rsnic_log *log)
{
	unregister_trace_console(rsnic_on_console, log);
	tracepoint_synchronize_unregister();
}

static const struct rsnic_syndrome {
	const char *name;
	u32 health;
	const char *log;	/* or NULL for nothing */
} rsnic_syndromes[] = {
	{ "01", 0x01000000, "FW_INTERNAL_ERR (0x1)" },
	{ "07", 0x07ffffff, "DEAD_IRISC (0x7)" },
	{ "08", 0x08000001, "HW_FATAL_ERR (0x8)" },
	{ "09", 0x09000000, "FW_CRC_ERR (0x9)" },
	{ "0A", 0x0a123456, "ICM_FETCH_PCI_ERR (0xa)" },
	{ "0B", 0x0b000000, "ICM_PAGE_ERR (0xb)" },
	{ "0C", 0x0c000000, "ASYNC_EQ_OVERRUN (0xc)" },
	{ "0D", 0x0d000000, "EQ_IN_ERR (0xd)" },
	{ "0E", 0x0e000000, "EQ_INV (0xe)" },
	{ "0F", 0x0f000000, "FFSER_ERR (0xf)" },
	{ "10", 0x10ffffff, "HIGH_TEMP_ERR (0x10)" },
	{ "02, which the page does not have", 0x02000000, "unknown (0x2)" },
	{ "11, behind the last", 0x11000000, "unknown (0x11)" },
	{ "FF", 0xff000000, "unknown (0xff)" },
	{ "00, and the counter", 0x00ffffff, NULL },
	{ "all ones", 0xffffffff, NULL },
};

KUNIT_ARRAY_PARAM_DESC(rsnic_syndrome, rsnic_syndromes, name);

static void rsnic_health(struct kunit *test)
{
	const struct rsnic_syndrome *param = test->param_value;
	struct rsnic_log *log = rsnic_listen(test);
	struct fake *fake = test->priv;

	rsnic_write(fake, RSNIC_HEALTH, param->health);
	hghca_cmdq_report_health(fake->hdev);
	rsnic_listen_no_more(log);
	KUNIT_EXPECT_EQ(test, param->log ? 1 : 0, log->lines);
	KUNIT_EXPECT_STREQ(test, param->log ?: "", log->text);
	rsnic_write(fake, RSNIC_HEALTH, 0);
}

/* ------------------------------------------------------------------ */
/* Callers                                                              */

struct rsnic_caller {
	struct fake *fake;
	struct task_struct *thread;
	struct hghca_cmd cmds[RSNIC_CHAIN];
	unsigned int count;
	int err;
	struct completion done;
};

static int rsnic_run(void *data)
{
	struct rsnic_caller *caller = data;
	struct hghca_dev *hdev = caller->fake->hdev;

	if (caller->count == 1)
		caller->err = hghca_cmd_exec(hdev, caller->cmds);
	else
		caller->err = hghca_cmd_exec_chain(hdev, caller->cmds, caller->count);
	complete(&caller->done);
	return 0;
}

/* NOPs, with numbers from @first on. */
static void rsnic_fill(struct hghca_cmd *cmds, u64 first, unsigned int count)
{
	unsigned int i;

	memset(cmds, 0, count * sizeof(*cmds));
	for (i = 0; i < count; i++) {
		cmds[i].op = HGHCA_CMD_NOP;
		cmds[i].in_modifier = lower_32_bits(first) ^ i;
		cmds[i].in_param = first + i;
	}
}

/* Who executes @count commands, a chain or one, when woken. */
static struct rsnic_caller *rsnic_caller(struct kunit *test, struct fake *fake, u64 first,
					 unsigned int count)
{
	struct rsnic_caller *caller = kunit_kzalloc(test, sizeof(*caller), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, caller);
	caller->fake = fake;
	caller->count = count;
	caller->err = 1;
	rsnic_fill(caller->cmds, first, count);
	init_completion(&caller->done);
	caller->thread = kthread_create(rsnic_run, caller, "hghca-kunit");
	KUNIT_ASSERT_FALSE(test, IS_ERR(caller->thread));
	return caller;
}

static struct rsnic_caller *rsnic_call(struct kunit *test, struct fake *fake, u64 first,
				       unsigned int count)
{
	struct rsnic_caller *caller = rsnic_caller(test, fake, first, count);

	wake_up_process(caller->thread);
	return caller;
}

/* The device has taken what is called, and keeps it. */
static struct rsnic_caller *rsnic_call_and_wait(struct kunit *test, struct fake *fake, u64 first,
						unsigned int count)
{
	u32 mark = fake_mark(fake);
	struct rsnic_caller *caller = rsnic_call(test, fake, first, count);

	KUNIT_ASSERT_TRUE(test, fake_wait(fake, mark + count));
	return caller;
}

static void rsnic_join(struct kunit *test, struct rsnic_caller *caller)
{
	KUNIT_ASSERT_NE(test, 0, wait_for_completion_timeout(&caller->done, 30 * HZ));
}

/* The device ends command @number with an output of its own. */
static void rsnic_finish(struct kunit *test, struct fake *fake, u32 number)
{
	struct fake_command *seen = fake_nth(fake, number);
	struct fake_answer answer = {};

	KUNIT_ASSERT_NOT_NULL(test, seen);
	answer.out_param = ~seen->in_param;
	fake_finish(fake, seen, &answer);
}

/* Wait until somebody waits for the lock of polled commands. */
static bool rsnic_lock_is_wanted(struct fake *fake)
{
	unsigned long end = jiffies + 10 * HZ;

	while (!kernels_mutex_is_wanted(&fake->hdev->cmd.hcr_lock)) {
		if (time_after(jiffies, end))
			return false;
		msleep(20);
	}
	return true;
}

/* Who slept as the device was given up rings for nothing: its mailboxes are freed next. */
static void rsnic_given_up_waiting(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct rsnic_caller *caller = rsnic_caller(test, fake, 0x10, 1);
	u32 mark = fake_mark(fake), rung = fake->rung;

	mutex_lock(&fake->hdev->cmd.hcr_lock);
	wake_up_process(caller->thread);
	KUNIT_EXPECT_TRUE(test, rsnic_lock_is_wanted(fake));
	hghca_dev_fail(fake->hdev, "a test");
	mutex_unlock(&fake->hdev->cmd.hcr_lock);
	rsnic_join(test, caller);
	KUNIT_EXPECT_EQ(test, -EIO, caller->err);
	KUNIT_EXPECT_EQ(test, 0, rsnic_read(fake, RSNIC_DOORBELL));
	KUNIT_EXPECT_EQ(test, mark, fake_mark(fake));
	KUNIT_EXPECT_EQ(test, rung, fake->rung);
}

/* Who polls an entry that never ends does so no longer. */
static void rsnic_given_up_polled(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct rsnic_caller *caller;

	fake->answer = rsnic_silent;
	caller = rsnic_call_and_wait(test, fake, 0x10, 1);
	hghca_dev_fail(fake->hdev, "a test");
	rsnic_join(test, caller);
	KUNIT_EXPECT_EQ(test, -EIO, caller->err);
	rsnic_expect_given_up(test, fake);
}

/* One after the other, up to the first that is refused: there is one entry for them. */
static void rsnic_chain_polled(struct kunit *test)
{
	u8 statuses[RSNIC_CHAIN] = { 0, 0, 0x0a };
	struct hghca_cmd cmds[RSNIC_CHAIN];
	struct fake *fake = test->priv;
	u32 mark = fake_mark(fake), rung = fake->rung;
	u32 i;

	rsnic_fill(cmds, 0, RSNIC_CHAIN);
	fake->priv = statuses;
	fake->answer = rsnic_answer_chain;
	KUNIT_EXPECT_EQ(test, -EBADF, hghca_cmd_exec_chain(fake->hdev, cmds, RSNIC_CHAIN));
	KUNIT_ASSERT_EQ(test, mark + 3, fake_mark(fake));
	KUNIT_EXPECT_EQ(test, rung + 3, fake->rung);
	for (i = 0; i < RSNIC_CHAIN; i++) {
		KUNIT_EXPECT_EQ(test, RSNIC_POLLED, fake_nth(fake, mark + i)->entry);
		KUNIT_EXPECT_EQ(test, i, fake_nth(fake, mark + i)->in_param);
	}
	statuses[1] = 0x06;
	KUNIT_EXPECT_EQ(test, -EBUSY, hghca_cmd_exec_chain(fake->hdev, cmds, RSNIC_CHAIN));
	KUNIT_EXPECT_EQ(test, mark + 5, fake_mark(fake));
	KUNIT_EXPECT_FALSE(test, hghca_dev_has_failed(fake->hdev));
}

/* RST2INIT, INIT2RTR and RTR2RTS: by one doorbell where they can be. */
static void rsnic_start_qp(struct kunit *test)
{
	static const u16 ops[RSNIC_CHAIN] = { 0x019, 0x01a, 0x01b };
	const struct rsnic_mode *mode = test->param_value;
	struct fake *fake = rsnic_in_mode(test);
	struct hghca_qpc *init = kunit_kzalloc(test, sizeof(*init), GFP_KERNEL);
	struct hghca_qpc *rest = kunit_kzalloc(test, sizeof(*rest), GFP_KERNEL);
	u32 mark = fake_mark(fake), rung = fake->rung;
	u32 i, j;

	KUNIT_ASSERT_NOT_NULL(test, init);
	KUNIT_ASSERT_NOT_NULL(test, rest);
	memset(init, 0x77, sizeof(*init));
	memset(rest, 0x66, sizeof(*rest));
	KUNIT_ASSERT_EQ(test, 0, hghca_cmd_start_qp(fake->hdev, 0xab, init, rest));
	KUNIT_ASSERT_EQ(test, mark + 3, fake_mark(fake));
	KUNIT_EXPECT_EQ(test, rung + (mode->by_event ? 1 : 3), fake->rung);
	for (i = 0; i < RSNIC_CHAIN; i++) {
		struct fake_command *seen = fake_nth(fake, mark + i);

		KUNIT_EXPECT_EQ(test, ops[i], seen->op);
		KUNIT_EXPECT_EQ(test, 0, seen->op_modifier);
		KUNIT_EXPECT_EQ(test, 0xab, seen->in_modifier);
		KUNIT_EXPECT_EQ(test, mode->by_event ? i : RSNIC_POLLED, seen->entry);
		KUNIT_EXPECT_EQ(test, mode->by_event ? 0x7 : 0x80000000, seen->vector);
		for (j = 0; j < 192; j++)
			KUNIT_EXPECT_EQ(test, i ? 0x66 : 0x77, seen->mailbox[j]);
	}
}

static struct kunit_case rsnic_cases[] = {
	KUNIT_CASE_PARAM(rsnic_words, rsnic_mode_gen_params),
	KUNIT_CASE_PARAM(rsnic_refused, rsnic_mode_gen_params),
	KUNIT_CASE_PARAM(rsnic_start_qp, rsnic_mode_gen_params),
	KUNIT_CASE_PARAM(rsnic_lost, rsnic_loss_gen_params),
	KUNIT_CASE_PARAM(rsnic_look, rsnic_look_gen_params),
	KUNIT_CASE_PARAM(rsnic_health, rsnic_syndrome_gen_params),
	KUNIT_CASE(rsnic_given_up_waiting),
	KUNIT_CASE(rsnic_given_up_polled),
	KUNIT_CASE(rsnic_chain_polled),
	{}
};

static struct kunit_suite rsnic_suite = {
	.name = "hghca_rsnic",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = rsnic_init,
	.exit = rsnic_exit,
	.test_cases = rsnic_cases,
};

/* ------------------------------------------------------------------ */
/* Many at a time                                                       */

/* All slots busy, each with its own entry; ends told in another order, each with its answer. */
static void rsnic_many(struct kunit *test)
{
	struct rsnic_caller *callers[HGHCA_CMD_SLOTS];
	struct fake *fake = test->priv;
	u32 mark = fake_mark(fake);
	u32 i;

	fake->answer = rsnic_hold;
	for (i = 0; i < HGHCA_CMD_SLOTS; i++)
		callers[i] = rsnic_call_and_wait(test, fake, RSNIC_HELD + i, 1);
	for (i = 0; i < HGHCA_CMD_SLOTS; i++) {
		struct fake_command *seen = fake_nth(fake, mark + i);

		KUNIT_EXPECT_EQ(test, RSNIC_HELD + i, seen->in_param);
		KUNIT_EXPECT_EQ(test, i, seen->entry);
		KUNIT_EXPECT_EQ(test, 1U << i, seen->vector);
		KUNIT_EXPECT_EQ(test, i, seen->token % HGHCA_CMD_SLOTS);
	}
	for (i = 0; i < HGHCA_CMD_SLOTS; i++)
		rsnic_finish(test, fake, mark + i * 7 % HGHCA_CMD_SLOTS);
	for (i = 0; i < HGHCA_CMD_SLOTS; i++) {
		rsnic_join(test, callers[i]);
		KUNIT_EXPECT_EQ(test, 0, callers[i]->err);
		KUNIT_EXPECT_EQ(test, ~(RSNIC_HELD + (u64)i), callers[i]->cmds[0].out_param);
	}
	KUNIT_EXPECT_EQ(test, HGHCA_CMD_SLOTS, fake->hdev->cmd.event_sem.count);
}

static bool rsnic_wait_owner(void *entry)
{
	unsigned long end = jiffies + 10 * HZ;

	/* The words are read after the owner, as the device reads them. */
	while (!(smp_load_acquire((u32 *)(entry + 0x1c)) & 1)) {
		if (time_after(jiffies, end))
			return false;
		cond_resched();
	}
	return true;
}

/* Whoever finds the owner set, before any doorbell, finds the words that the device takes. */
static void rsnic_owner_is_last(struct kunit *test)
{
	struct fake *fake = test->priv;
	void *entry = fake_entry(fake, 0);
	u32 words[7];
	u32 i, j;

	KUNIT_ASSERT_NOT_NULL(test, entry);
	fake->answer = rsnic_silent;
	for (i = 0; i < RSNIC_ROUNDS; i++) {
		u32 mark = fake_mark(fake);
		struct rsnic_caller *caller;

		KUNIT_ASSERT_EQ(test, 0, le32_at(entry, 0x1c));
		/* Other bits in each round. */
		caller = rsnic_call(test, fake, 0x9e3779b97f4a7c15 * (i + 1), 1);
		KUNIT_ASSERT_TRUE(test, rsnic_wait_owner(entry));
		for (j = 0; j < ARRAY_SIZE(words); j++)
			words[j] = le32_at(entry, 4 * j);
		KUNIT_ASSERT_TRUE(test, fake_wait(fake, mark + 1));
		KUNIT_EXPECT_EQ(test, 0, fake_nth(fake, mark)->entry);
		KUNIT_EXPECT_MEMEQ(test, fake_nth(fake, mark)->words, words, sizeof(words));
		rsnic_finish(test, fake, mark);
		rsnic_join(test, caller);
		KUNIT_EXPECT_EQ(test, 0, caller->err);
	}
}

/* Those under way end at once when the device is given up, each once. */
static void rsnic_given_up(struct kunit *test)
{
	struct rsnic_caller *callers[2];
	struct fake *fake = test->priv;
	struct hghca_cmd_if *ci = &fake->hdev->cmd;
	int i;

	fake->answer = rsnic_silent;
	callers[0] = rsnic_call_and_wait(test, fake, 0x10, 1);
	callers[1] = rsnic_call_and_wait(test, fake, 0x20, RSNIC_CHAIN);
	hghca_dev_fail(fake->hdev, "a test");
	for (i = 0; i < ARRAY_SIZE(callers); i++) {
		rsnic_join(test, callers[i]);
		KUNIT_EXPECT_EQ(test, -EIO, callers[i]->err);
	}
	rsnic_expect_given_up(test, fake);
	KUNIT_EXPECT_EQ(test, HGHCA_CMD_SLOTS, ci->event_sem.count);
	for (i = 0; i < HGHCA_CMD_SLOTS; i++)
		KUNIT_EXPECT_EQ(test, HGHCA_CMD_SLOT_FREE, ci->slots[i].state);
	/* A device without DMA still has the memory that it was told of, until it is closed. */
	KUNIT_EXPECT_NOT_NULL(test, ci->queue.entries);
	KUNIT_EXPECT_NOT_NULL(test, ci->queue.packets);
}

static const struct rsnic_failure {
	const char *name;
	bool event;
} rsnic_failures[] = {
	{ "an event tells it", true },
	/* Of a lost event, or of an EQ that cannot be written. */
	{ "the vector of the EQ alone", false },
};

KUNIT_ARRAY_PARAM_DESC(rsnic_failure, rsnic_failures, name);

/* The reset clears the syndrome, so it is read before. */
static void rsnic_failed(struct kunit *test)
{
	static const u8 eqe[32] = { [0x01] = 0x08 };	/* LOCAL_CATAS_ERROR */
	const struct rsnic_failure *param = test->param_value;
	struct rsnic_log *log = rsnic_listen(test);
	struct fake *fake = test->priv;

	rsnic_fail(fake, 0x0c);
	if (param->event)
		fake_event(fake, RSNIC_ASYNC_EQ, eqe, true);
	else
		fake_interrupt(fake, RSNIC_ASYNC_EQ);
	rsnic_listen_no_more(log);
	KUNIT_EXPECT_EQ(test, 1, log->lines);
	KUNIT_EXPECT_STREQ(test, "ASYNC_EQ_OVERRUN (0xc)", log->text);
	rsnic_expect_given_up(test, fake);
}

/* ------------------------------------------------------------------ */
/* Chains by one doorbell                                               */

/* Entries 0 and 2 are taken: the chain has 1, 3 and 4, in this order. */
static void rsnic_chain(struct kunit *test)
{
	static const int entries[RSNIC_CHAIN] = { 1, 3, 4 };
	struct rsnic_caller *held[3];
	struct hghca_cmd cmds[RSNIC_CHAIN];
	struct fake *fake = test->priv;
	u32 first = fake_mark(fake);
	u32 mark, rung, i;

	fake->answer = rsnic_hold;
	for (i = 0; i < ARRAY_SIZE(held); i++)
		held[i] = rsnic_call_and_wait(test, fake, RSNIC_HELD + i, 1);
	rsnic_finish(test, fake, first + 1);
	rsnic_join(test, held[1]);

	mark = fake_mark(fake);
	rung = fake->rung;
	rsnic_fill(cmds, 0x10, RSNIC_CHAIN);
	KUNIT_EXPECT_EQ(test, 0, hghca_cmd_exec_chain(fake->hdev, cmds, RSNIC_CHAIN));
	KUNIT_EXPECT_EQ(test, rung + 1, fake->rung);
	KUNIT_ASSERT_EQ(test, mark + RSNIC_CHAIN, fake_mark(fake));
	for (i = 0; i < RSNIC_CHAIN; i++) {
		struct fake_command *seen = fake_nth(fake, mark + i);

		KUNIT_EXPECT_EQ(test, 0x10 + i, seen->in_param);
		KUNIT_EXPECT_EQ(test, entries[i], seen->entry);
		KUNIT_EXPECT_EQ(test, 0x1a, seen->vector);
		KUNIT_EXPECT_TRUE(test, seen->by_event);
		KUNIT_EXPECT_EQ(test, seen->token, cmds[i].token);
		KUNIT_EXPECT_EQ(test, ~(0x10ULL + i), cmds[i].out_param);
	}
	rsnic_finish(test, fake, first + 2);
	rsnic_finish(test, fake, first);
	rsnic_join(test, held[0]);
	rsnic_join(test, held[2]);
	KUNIT_EXPECT_EQ(test, HGHCA_CMD_SLOTS, fake->hdev->cmd.event_sem.count);
}

static const struct rsnic_refusal {
	const char *name;
	u8 statuses[RSNIC_CHAIN];
	int err;
} rsnic_refusals[] = {
	{ "none", { 0, 0, 0 }, 0 },
	{ "the first, and those behind it", { 0x03, 0x10, 0x10 }, -EINVAL },
	{ "the second", { 0, 0x06, 0 }, -EBUSY },
	{ "the second and the third", { 0, 0x08, 0x06 }, -ENOMEM },
	{ "the last", { 0, 0, 0x0a }, -EBADF },
	{ "each with another status", { 0x20, 0x06, 0x08 }, -EFAULT },
};

KUNIT_ARRAY_PARAM_DESC(rsnic_refusal, rsnic_refusals, name);

/* The device has all of them at a time; the first error counts, and the device goes on. */
static void rsnic_chain_refused(struct kunit *test)
{
	const struct rsnic_refusal *param = test->param_value;
	struct hghca_cmd cmds[RSNIC_CHAIN];
	struct fake *fake = test->priv;
	u32 mark = fake_mark(fake), rung = fake->rung;

	rsnic_fill(cmds, 0, RSNIC_CHAIN);
	fake->priv = (void *)param->statuses;
	fake->answer = rsnic_answer_chain;
	KUNIT_EXPECT_EQ(test, param->err, hghca_cmd_exec_chain(fake->hdev, cmds, RSNIC_CHAIN));
	KUNIT_EXPECT_EQ(test, rung + 1, fake->rung);
	KUNIT_EXPECT_EQ(test, mark + RSNIC_CHAIN, fake_mark(fake));
	KUNIT_EXPECT_EQ(test, HGHCA_CMD_SLOTS, fake->hdev->cmd.event_sem.count);
	fake->answer = NULL;
	KUNIT_EXPECT_FALSE(test, hghca_dev_has_failed(fake->hdev));
	KUNIT_EXPECT_EQ(test, 0, hghca_cmd_nop(fake->hdev));
}

/* The first does not end: the device is given up, and the others end with it. */
static void rsnic_chain_lost(struct kunit *test)
{
	struct hghca_cmd cmds[RSNIC_CHAIN] = {};
	struct fake *fake = test->priv;
	int i;

	rsnic_hurry(fake);
	for (i = 0; i < RSNIC_CHAIN; i++) {
		cmds[i].op = HGHCA_CMD_QUERY_QP;
		cmds[i].out = hghca_mailbox_alloc(fake->hdev, HGHCA_MAILBOX_SIZE);
		KUNIT_ASSERT_FALSE(test, IS_ERR(cmds[i].out));
	}
	fake->answer = rsnic_silent;
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT, hghca_cmd_exec_chain(fake->hdev, cmds, RSNIC_CHAIN));
	rsnic_expect_given_up(test, fake);
	for (i = 0; i < RSNIC_CHAIN; i++) {
		KUNIT_EXPECT_EQ(test, i == 0, cmds[i].out->lost);
		hghca_mailbox_free(fake->hdev, cmds[i].out);
	}
	KUNIT_EXPECT_EQ(test, HGHCA_CMD_SLOT_LOST, fake->hdev->cmd.slots[0].state);
	KUNIT_EXPECT_EQ(test, HGHCA_CMD_SLOTS - 1, fake->hdev->cmd.event_sem.count);
}

/* The device fails between the first end and the second. */
static void rsnic_chain_given_up(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct rsnic_caller *caller;
	u32 mark = fake_mark(fake);

	fake->answer = rsnic_hold;
	caller = rsnic_call_and_wait(test, fake, RSNIC_HELD, RSNIC_CHAIN);
	rsnic_finish(test, fake, mark);
	hghca_dev_fail(fake->hdev, "a test");
	rsnic_join(test, caller);
	KUNIT_EXPECT_EQ(test, -EIO, caller->err);
	KUNIT_EXPECT_EQ(test, ~(u64)RSNIC_HELD, caller->cmds[0].out_param);
	KUNIT_EXPECT_EQ(test, 0, caller->cmds[1].out_param);
	rsnic_expect_given_up(test, fake);
	KUNIT_EXPECT_EQ(test, HGHCA_CMD_SLOTS, fake->hdev->cmd.event_sem.count);
	/* Nothing of another chain reaches the device. */
	mark = fake_mark(fake);
	KUNIT_EXPECT_EQ(test, -EIO,
			hghca_cmd_exec_chain(fake->hdev, caller->cmds, RSNIC_CHAIN));
	KUNIT_EXPECT_EQ(test, mark, fake_mark(fake));
	KUNIT_EXPECT_EQ(test, 0, rsnic_read(fake, RSNIC_DOORBELL));
}

static bool rsnic_wait_count(struct fake *fake, unsigned int count)
{
	unsigned long end = jiffies + 10 * HZ;

	while (READ_ONCE(fake->hdev->cmd.event_sem.count) != count) {
		if (time_after(jiffies, end))
			return false;
		msleep(20);
	}
	return true;
}

/* Two chains where there is room for two thirds of one: neither holds what the other wants. */
static void rsnic_chains_wait(struct kunit *test)
{
	struct rsnic_caller *callers[2];
	struct fake *fake = test->priv;
	struct semaphore *sem = &fake->hdev->cmd.event_sem;
	u32 mark = fake_mark(fake);
	int i;

	for (i = 0; i < HGHCA_CMD_SLOTS - 2; i++)
		down(sem);
	callers[0] = rsnic_call(test, fake, 0x10, RSNIC_CHAIN);
	callers[1] = rsnic_call(test, fake, 0x20, RSNIC_CHAIN);
	KUNIT_EXPECT_TRUE(test, rsnic_wait_count(fake, 0));
	msleep(50);
	KUNIT_EXPECT_EQ(test, mark, fake_mark(fake));
	up(sem);
	for (i = 0; i < ARRAY_SIZE(callers); i++) {
		rsnic_join(test, callers[i]);
		KUNIT_EXPECT_EQ(test, 0, callers[i]->err);
	}
	KUNIT_EXPECT_EQ(test, mark + 2 * RSNIC_CHAIN, fake_mark(fake));
	for (i = 0; i < HGHCA_CMD_SLOTS - 3; i++)
		up(sem);
	KUNIT_EXPECT_EQ(test, HGHCA_CMD_SLOTS, sem->count);
}

/* ... but of a device that was given up none comes back. */
static void rsnic_chain_waits_given_up(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct semaphore *sem = &fake->hdev->cmd.event_sem;
	struct rsnic_caller *caller;
	u32 mark = fake_mark(fake);
	int i;

	rsnic_hurry(fake);
	for (i = 0; i < HGHCA_CMD_SLOTS - 2; i++)
		down(sem);
	caller = rsnic_call(test, fake, 0x10, RSNIC_CHAIN);
	KUNIT_EXPECT_TRUE(test, rsnic_wait_count(fake, 0));
	hghca_dev_fail(fake->hdev, "a test");
	rsnic_join(test, caller);
	KUNIT_EXPECT_EQ(test, -EIO, caller->err);
	KUNIT_EXPECT_EQ(test, mark, fake_mark(fake));
	KUNIT_EXPECT_EQ(test, 2, sem->count);
	for (i = 0; i < HGHCA_CMD_SLOTS - 2; i++)
		up(sem);
}

static struct kunit_case rsnic_event_cases[] = {
	KUNIT_CASE(rsnic_many),
	KUNIT_CASE(rsnic_owner_is_last),
	KUNIT_CASE(rsnic_given_up),
	KUNIT_CASE_PARAM(rsnic_failed, rsnic_failure_gen_params),
	KUNIT_CASE(rsnic_chain),
	KUNIT_CASE_PARAM(rsnic_chain_refused, rsnic_refusal_gen_params),
	KUNIT_CASE(rsnic_chain_lost),
	KUNIT_CASE(rsnic_chain_given_up),
	KUNIT_CASE(rsnic_chains_wait),
	KUNIT_CASE(rsnic_chain_waits_given_up),
	{}
};

static struct kunit_suite rsnic_event_suite = {
	.name = "hghca_rsnic_events",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = rsnic_init_events,
	.exit = rsnic_exit,
	.test_cases = rsnic_event_cases,
};

/* ------------------------------------------------------------------ */
/* From start to stop                                                   */

struct rsnic_start {
	struct fake *fake;
	u16 refused;		/* opcode */
	struct delayed_work ready;
	bool is_early;		/* something was done before the device was ready */
	bool was_reset;		/* as DMA began */
	u32 low;		/* of the queue's address, as DMA began */
	int ends;		/* of DMA */
	bool was_there;		/* what the device was told of, as DMA ended */
};

static enum fake_end rsnic_start_answer(struct fake *fake, const struct fake_command *cmd,
					struct fake_answer *answer)
{
	const struct rsnic_start *this = fake->priv;

	if (cmd->op == this->refused)
		answer->status = 0x03;
	return FAKE_ANSWERED;
}

static void rsnic_on_dma_begin(struct fake *fake)
{
	struct rsnic_start *this = fake->priv;

	this->was_reset = rsnic_read(fake, RSNIC_RESET) == 1;
	this->low = rsnic_read(fake, RSNIC_QUEUE_L);
}

static void rsnic_on_dma_end(struct fake *fake)
{
	struct rsnic_start *this = fake->priv;

	this->ends++;
	this->was_there = fake->hdev->cmd.queue.entries && fake->hdev->cmd.queue.packets;
}

static void rsnic_become_ready(struct work_struct *work)
{
	struct rsnic_start *this = container_of(to_delayed_work(work), struct rsnic_start, ready);

	this->is_early = fake_mark(this->fake) || rsnic_read(this->fake, RSNIC_QUEUE_H) ||
			 rsnic_read(this->fake, RSNIC_QUEUE_L) != RSNIC_FORM;
	rsnic_write(this->fake, RSNIC_INIT, RSNIC_READY);
}

/* A device that nobody has started; its bus lets it make no DMA. */
static int rsnic_start_init(struct kunit *test)
{
	struct rsnic_start *this = kunit_kzalloc(test, sizeof(*this), GFP_KERNEL);

	if (!this)
		return -ENOMEM;
	this->fake = fake_test_create(test);
	if (!this->fake)
		return -ENOMEM;
	INIT_DELAYED_WORK(&this->ready, rsnic_become_ready);
	fake_rsnic(this->fake);
	this->fake->dma = false;
	this->fake->priv = this;
	this->fake->answer = rsnic_start_answer;
	this->fake->on_dma_begin = rsnic_on_dma_begin;
	this->fake->on_dma_end = rsnic_on_dma_end;
	test->priv = this;
	return 0;
}

static void rsnic_start_exit(struct kunit *test)
{
	struct rsnic_start *this = test->priv;

	if (this)
		KUNIT_EXPECT_EQ(test, 0, this->fake->ignored);
}

/* The command with opcode @op that came first. */
static struct fake_command *rsnic_find(struct fake *fake, u16 op)
{
	u32 i;

	for (i = 0; i < fake_mark(fake); i++)
		if (fake_nth(fake, i) && fake_nth(fake, i)->op == op)
			return fake_nth(fake, i);
	return NULL;
}

static void rsnic_expect_no_queue(struct kunit *test, struct fake *fake)
{
	KUNIT_EXPECT_NULL(test, fake->hdev->cmd.queue.entries);
	KUNIT_EXPECT_NULL(test, fake->hdev->cmd.queue.packets);
}

/* It is turned on once the device was reset and may make DMA; all commands come by it. */
static void rsnic_turned_on(struct kunit *test)
{
	struct rsnic_start *this = test->priv;
	struct fake *fake = this->fake;
	const struct hghca_cmdq *queue = &fake->hdev->cmd.queue;
	u32 i;

	KUNIT_ASSERT_EQ(test, 0, hghca_hca_open(fake->hdev));
	KUNIT_EXPECT_TRUE(test, this->was_reset);
	KUNIT_EXPECT_EQ(test, RSNIC_FORM, this->low);
	KUNIT_ASSERT_NOT_NULL(test, queue->entries);
	KUNIT_EXPECT_EQ(test, 0, queue->dma & 0xfff);
	KUNIT_EXPECT_EQ(test, upper_32_bits(queue->dma), rsnic_read(fake, RSNIC_QUEUE_H));
	/* nic_interface 9:8: full_driver is 0. */
	KUNIT_EXPECT_EQ(test, lower_32_bits(queue->dma), rsnic_read(fake, RSNIC_QUEUE_L));
	KUNIT_EXPECT_PTR_EQ(test, (void *)queue->entries, fake_entry(fake, 0));

	KUNIT_EXPECT_NOT_NULL(test, rsnic_find(fake, 0x003));
	KUNIT_EXPECT_NOT_NULL(test, rsnic_find(fake, 0x006));
	KUNIT_EXPECT_NOT_NULL(test, rsnic_find(fake, 0x007));
	for (i = 0; i < fake_mark(fake); i++) {
		KUNIT_EXPECT_EQ(test, RSNIC_POLLED, fake_nth(fake, i)->entry);
		KUNIT_EXPECT_EQ(test, 0x80000000, fake_nth(fake, i)->vector);
	}
	hghca_hca_close(fake->hdev);
	KUNIT_EXPECT_NOT_NULL(test, rsnic_find(fake, 0x008));
	KUNIT_EXPECT_FALSE(test, hghca_dev_has_failed(fake->hdev));
	rsnic_expect_no_queue(test, fake);
}

/* Section 7: INIT_HCA has its address in 63:12, and log2 of its pages in 7:0. */
static void rsnic_buffer(struct kunit *test)
{
	struct rsnic_start *this = test->priv;
	struct fake *fake = this->fake;
	struct fake_command *init;
	u64 base;

	KUNIT_ASSERT_EQ(test, 0, hghca_hca_open(fake->hdev));
	init = rsnic_find(fake, 0x007);
	KUNIT_ASSERT_NOT_NULL(test, init);
	base = be64_at(init->mailbox, 0x40);
	KUNIT_EXPECT_EQ(test, 9, base & 0xfff);
	KUNIT_ASSERT_PTR_EQ(test, fake->hdev->cmd.queue.packets, fake_memory(base & ~0xfffULL));
	/* All of it is the device's. */
	memset(fake_memory(base & ~0xfffULL), 0x5a, 512 * 4096);
	hghca_hca_close(fake->hdev);
	rsnic_expect_no_queue(test, fake);
}

/* Of a device that is no RSNIC, whatever stands there: the HCR is used, and nothing else. */
static const struct rsnic_none {
	const char *name;
	u32 form;
} rsnic_nones[] = {
	{ "nothing", 0x00 },
	{ "a stride alone", 0x06 },
	{ "what looks like a queue", RSNIC_FORM },
	{ "what looks like another queue", 0x46 },
	{ "all ones", U32_MAX },
};

KUNIT_ARRAY_PARAM_DESC(rsnic_none, rsnic_nones, name);

static void rsnic_none(struct kunit *test)
{
	const struct rsnic_none *param = test->param_value;
	struct rsnic_start *this = test->priv;
	struct fake *fake = this->fake;
	struct fake_command *init;
	u32 i;

	fake->hdev->bus.rsnic = false;
	memset(fake->regs, 0, FAKE_SEGMENT);
	rsnic_write(fake, RSNIC_QUEUE_L, param->form);
	KUNIT_ASSERT_EQ(test, 0, hghca_hca_open(fake->hdev));
	rsnic_expect_no_queue(test, fake);
	KUNIT_EXPECT_FALSE(test, hghca_cmdq_is_on(fake->hdev));
	KUNIT_EXPECT_TRUE(test, fake->hdev->limits.atomics);
	init = rsnic_find(fake, 0x007);
	KUNIT_ASSERT_NOT_NULL(test, init);
	KUNIT_EXPECT_EQ(test, 0, be64_at(init->mailbox, 0x40));
	hghca_hca_close(fake->hdev);
	for (i = 0; i < fake_mark(fake); i++)
		KUNIT_EXPECT_EQ(test, FAKE_HCR, fake_nth(fake, i)->entry);
	KUNIT_EXPECT_EQ(test, param->form, rsnic_read(fake, RSNIC_QUEUE_L));
	rsnic_write(fake, RSNIC_QUEUE_L, 0);
	KUNIT_EXPECT_NULL(test, memchr_inv(fake->regs, 0, FAKE_SEGMENT));
	KUNIT_EXPECT_EQ(test, 0, fake->rung);
}

static const struct rsnic_form {
	const char *name;
	u32 form;
	int err;
} rsnic_forms[] = {
	{ "nothing", 0x00, -EPROTO },
	{ "a stride alone", 0x06, -EPROTO },
	{ "16 entries", 0x46, -EPROTO },
	{ "64 entries", 0x66, -EPROTO },
	{ "2^15 entries", 0xf6, -EPROTO },
	{ "entries of 32 bytes", 0x55, -EPROTO },
	{ "entries of 128 bytes", 0x57, -EPROTO },
	{ "entries of one byte", 0x50, -EPROTO },
	{ "all ones: the device is gone", 0xffffffff, -ENODEV },
};

KUNIT_ARRAY_PARAM_DESC(rsnic_form, rsnic_forms, name);

/* A device that does not start is left without DMA, and was asked for nothing. */
static void rsnic_form(struct kunit *test)
{
	const struct rsnic_form *param = test->param_value;
	struct rsnic_start *this = test->priv;
	struct fake *fake = this->fake;

	rsnic_write(fake, RSNIC_QUEUE_L, param->form);
	KUNIT_EXPECT_EQ(test, param->err, hghca_hca_open(fake->hdev));
	rsnic_expect_no_queue(test, fake);
	KUNIT_EXPECT_FALSE(test, fake->dma);
	KUNIT_EXPECT_EQ(test, 1, this->ends);
	KUNIT_EXPECT_EQ(test, 0, fake_mark(fake));
	KUNIT_EXPECT_EQ(test, 0, rsnic_read(fake, RSNIC_QUEUE_H));
	KUNIT_EXPECT_EQ(test, param->form, rsnic_read(fake, RSNIC_QUEUE_L));
}

/* The driver waits for a device that is initializing, and goes on. */
static void rsnic_initializing_ends(struct kunit *test)
{
	struct rsnic_start *this = test->priv;
	struct fake *fake = this->fake;
	int err;

	rsnic_write(fake, RSNIC_INIT, RSNIC_INITIALIZING);
	schedule_delayed_work(&this->ready, msecs_to_jiffies(50));
	err = hghca_hca_open(fake->hdev);
	flush_delayed_work(&this->ready);
	KUNIT_ASSERT_EQ(test, 0, err);
	KUNIT_EXPECT_FALSE(test, this->is_early);
	KUNIT_EXPECT_EQ(test, RSNIC_READY, rsnic_read(fake, RSNIC_INIT));
	KUNIT_EXPECT_NOT_NULL(test, rsnic_find(fake, 0x007));
	hghca_hca_close(fake->hdev);
}

static const struct rsnic_unready {
	const char *name;
	u32 init;
	int err;
} rsnic_unreadys[] = {
	{ "for ever", RSNIC_INITIALIZING, -ETIMEDOUT },
	{ "and then gone", U32_MAX, -ENODEV },
};

KUNIT_ARRAY_PARAM_DESC(rsnic_unready, rsnic_unreadys, name);

static void rsnic_initializing(struct kunit *test)
{
	const struct rsnic_unready *param = test->param_value;
	struct rsnic_start *this = test->priv;
	struct fake *fake = this->fake;

	KUNIT_ASSERT_EQ(test, 0, hghca_cmd_init(fake->hdev));
	fake->opened = 1;
	rsnic_hurry(fake);
	rsnic_write(fake, RSNIC_INIT, param->init);
	KUNIT_EXPECT_EQ(test, param->err, hghca_cmdq_open(fake->hdev));
	rsnic_expect_no_queue(test, fake);
	KUNIT_EXPECT_EQ(test, 0, rsnic_read(fake, RSNIC_QUEUE_H));
	KUNIT_EXPECT_EQ(test, RSNIC_FORM, rsnic_read(fake, RSNIC_QUEUE_L));
}

static const struct rsnic_end {
	const char *name;
	u16 refused;
	bool given_up;
	int err;	/* of the start */
} rsnic_ends[] = {
	{ "closed", 0, false, 0 },
	{ "given up", 0, true, 0 },
	{ "QUERY_DEV_LIM is refused", 0x003, false, -EINVAL },
	{ "QUERY_ADAPTER is refused", 0x006, false, -EINVAL },
	{ "INIT_HCA is refused", 0x007, false, -EINVAL },
	{ "CLOSE_HCA is refused", 0x008, false, 0 },
};

KUNIT_ARRAY_PARAM_DESC(rsnic_end, rsnic_ends, name);

/* Queue and buffer are freed once, and not before the device's DMA has ended. */
static void rsnic_freed(struct kunit *test)
{
	const struct rsnic_end *param = test->param_value;
	struct rsnic_start *this = test->priv;
	struct hghca_dev *hdev = this->fake->hdev;
	int err;

	this->refused = param->refused;
	err = hghca_hca_open(hdev);
	KUNIT_EXPECT_EQ(test, param->err, err);
	if (!err && param->given_up)
		hghca_dev_fail(hdev, "a test");
	if (!err)
		hghca_hca_close(hdev);
	KUNIT_EXPECT_FALSE(test, this->fake->dma);
	KUNIT_EXPECT_EQ(test, 1, this->ends);
	KUNIT_EXPECT_TRUE(test, this->was_there);
	rsnic_expect_no_queue(test, this->fake);
	/* There is nothing to free twice. */
	hghca_cmdq_close(hdev);
	rsnic_expect_no_queue(test, this->fake);
}

/* Section 6: 255 QPs, of which QPN 1 is for the CM and QPN 2 for the net device. */
static void rsnic_qpns(struct kunit *test)
{
	struct rsnic_start *this = test->priv;
	struct hghca_dev *hdev = this->fake->hdev;
	struct hghca_hwqp *hwqps = kunit_kcalloc(test, 257, sizeof(*hwqps), GFP_KERNEL);
	struct ib_udata udata = {};
	struct ib_device_attr attr;
	u32 qpn;

	KUNIT_ASSERT_NOT_NULL(test, hwqps);
	this->fake->limits.log_max_qps = 8;
	this->fake->limits.log_reserved_qps = 0;
	KUNIT_ASSERT_EQ(test, 0, fake_open(this->fake));
	KUNIT_ASSERT_EQ(test, 0, hghca_query_device(&hdev->ibdev, &attr, &udata));
	KUNIT_EXPECT_EQ(test, 253, attr.max_qp);
	KUNIT_EXPECT_EQ(test, IB_ATOMIC_NONE, attr.atomic_cap);
	for (qpn = 3; qpn < 256; qpn++) {
		KUNIT_ASSERT_EQ(test, 0, hghca_hwqp_add(hdev, &hwqps[qpn], 0));
		KUNIT_EXPECT_EQ(test, qpn, hwqps[qpn].qpn);
	}
	KUNIT_EXPECT_EQ(test, -ENOMEM, hghca_hwqp_add(hdev, &hwqps[256], 0));
	for (qpn = 1; qpn < 3; qpn++) {
		KUNIT_ASSERT_EQ(test, 0, hghca_hwqp_add(hdev, &hwqps[qpn], qpn));
		KUNIT_EXPECT_EQ(test, qpn, hwqps[qpn].qpn);
	}
	for (qpn = 1; qpn < 256; qpn++)
		hghca_hwqp_del(hdev, &hwqps[qpn]);
}

static struct kunit_case rsnic_start_cases[] = {
	KUNIT_CASE(rsnic_turned_on),
	KUNIT_CASE(rsnic_buffer),
	KUNIT_CASE_PARAM(rsnic_none, rsnic_none_gen_params),
	KUNIT_CASE_PARAM(rsnic_form, rsnic_form_gen_params),
	KUNIT_CASE(rsnic_initializing_ends),
	KUNIT_CASE_PARAM(rsnic_initializing, rsnic_unready_gen_params),
	KUNIT_CASE_PARAM(rsnic_freed, rsnic_end_gen_params),
	KUNIT_CASE(rsnic_qpns),
	{}
};

static struct kunit_suite rsnic_start_suite = {
	.name = "hghca_rsnic_start",
	.init = rsnic_start_init,
	.exit = rsnic_start_exit,
	.test_cases = rsnic_start_cases,
};

/* ------------------------------------------------------------------ */
/* A device without a queue                                             */

/* By the HCR, one after the other, up to the first that is refused. */
static void rsnic_none_chain(struct kunit *test)
{
	u8 statuses[RSNIC_CHAIN] = {};
	struct fake *fake = rsnic_in_mode(test);
	struct hghca_cmd cmds[RSNIC_CHAIN];
	u32 mark = fake_mark(fake);
	u32 i;

	rsnic_fill(cmds, 0, RSNIC_CHAIN);
	fake->priv = statuses;
	fake->answer = rsnic_answer_chain;
	KUNIT_EXPECT_EQ(test, 0, hghca_cmd_exec_chain(fake->hdev, cmds, RSNIC_CHAIN));
	KUNIT_ASSERT_EQ(test, mark + 3, fake_mark(fake));
	statuses[1] = 0x06;
	KUNIT_EXPECT_EQ(test, -EBUSY, hghca_cmd_exec_chain(fake->hdev, cmds, RSNIC_CHAIN));
	KUNIT_ASSERT_EQ(test, mark + 5, fake_mark(fake));
	for (i = 0; i < 5; i++) {
		KUNIT_EXPECT_EQ(test, i % 3, fake_nth(fake, mark + i)->in_param);
		KUNIT_EXPECT_EQ(test, FAKE_HCR, fake_nth(fake, mark + i)->entry);
	}
	KUNIT_EXPECT_EQ(test, 0, fake->rung);
}

/* What stands there is no syndrome: nothing is logged. */
static void rsnic_none_health(struct kunit *test)
{
	struct rsnic_log *log = rsnic_listen(test);
	struct fake *fake = test->priv;

	rsnic_write(fake, RSNIC_HEALTH, 0x08000000);
	hghca_cmdq_report_health(fake->hdev);
	rsnic_listen_no_more(log);
	KUNIT_EXPECT_EQ(test, 0, log->lines);
	rsnic_write(fake, RSNIC_HEALTH, 0);
}

static struct kunit_case rsnic_none_cases[] = {
	KUNIT_CASE_PARAM(rsnic_none_chain, rsnic_mode_gen_params),
	KUNIT_CASE(rsnic_none_health),
	{}
};

static struct kunit_suite rsnic_none_suite = {
	.name = "hghca_rsnic_none",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = fake_test_init,
	.exit = rsnic_exit,
	.test_cases = rsnic_none_cases,
};

kunit_test_suites(&rsnic_suite, &rsnic_event_suite, &rsnic_start_suite, &rsnic_none_suite);
