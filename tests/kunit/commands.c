// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of the command layer: the HCR as section 3.1 of the interface
 * document has it, and what becomes of commands that do not end as they should.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/slab.h>

#include "fake.h"

#define COMMANDS_TOKENS		500
#define COMMANDS_MANY		24

/* Every command by event, and every one polled, where these shall not differ. */
static const struct commands_mode {
	const char *name;
	bool by_event;
	bool sync;
	bool record;
} commands_modes[] = {
	{ "polled", false, false },
	{ "by event", true, false },
	{ "SYNC_COMMANDS", false, true },
	{ "STATUS_RECORD", false, true, true },
};

static void commands_mode_name(const struct commands_mode *mode, char *desc)
{
	strscpy(desc, mode->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(commands_mode, commands_modes, commands_mode_name);

static struct fake *commands_in_mode(struct kunit *test)
{
	const struct commands_mode *mode = test->param_value;
	struct fake *fake = test->priv;

	/* Document 4.2: bits 24 and 27. */
	if (mode->sync)
		fake->hdev->limits.caps |= BIT(24);
	if (mode->record)
		fake->hdev->limits.caps |= BIT(27);
	if (mode->by_event || mode->sync)
		KUNIT_ASSERT_EQ(test, 0, fake_events(fake));
	return fake;
}

static enum fake_end commands_silent(struct fake *fake, const struct fake_command *cmd,
				     struct fake_answer *answer)
{
	return FAKE_SILENT;
}

static enum fake_end commands_stuck(struct fake *fake, const struct fake_command *cmd,
				    struct fake_answer *answer)
{
	return FAKE_STUCK;
}

static enum fake_end commands_gone(struct fake *fake, const struct fake_command *cmd,
				   struct fake_answer *answer)
{
	return FAKE_GONE;
}

/* For commands that shall not end in time. */
static void commands_hurry(struct fake *fake)
{
	fake->hdev->cmd.timeout_ms = FAKE_TIMEOUT_MS;
	fake->hdev->cmd.look_ms = FAKE_TIMEOUT_MS / 10;
	fake->hdev->cmd.hcr_timeout_us = FAKE_TIMEOUT_MS * USEC_PER_MSEC;
}

static void commands_expect_given_up(struct kunit *test, struct fake *fake)
{
	u32 mark = fake_mark(fake);

	KUNIT_EXPECT_TRUE(test, hghca_dev_has_failed(fake->hdev));
	/* Document 3: the reset register. */
	KUNIT_EXPECT_EQ(test, 1, readl((void __iomem *)fake->regs + 0xf0010));
	KUNIT_EXPECT_EQ(test, -EIO, hghca_cmd_nop(fake->hdev));
	KUNIT_EXPECT_EQ(test, mark, fake_mark(fake));
}

/* ------------------------------------------------------------------ */
/* Status                                                               */

/* Document 3.2. */
static const struct commands_status {
	const char *name;
	u8 status;
	int err;
} commands_statuses[] = {
	{ "OK", 0x00, 0 },
	{ "INTERNAL_ERR", 0x01, -EIO },
	{ "BAD_OP", 0x02, -EOPNOTSUPP },
	{ "BAD_PARAM", 0x03, -EINVAL },
	{ "BAD_SYS_STATE", 0x04, -ENXIO },
	{ "BAD_NVMEM", 0x05, -EIO },
	{ "RESOURCE_BUSY", 0x06, -EBUSY },
	{ "an undefined status", 0x07, -EIO },
	{ "EXCEED_LIM", 0x08, -ENOMEM },
	{ "BAD_RES_STATE", 0x09, -EBADF },
	{ "BAD_INDEX", 0x0a, -EBADF },
	{ "BAD_QPEE_STATE", 0x10, -EINVAL },
	{ "BAD_SEG_PARAM", 0x20, -EFAULT },
	{ "REG_BOUND", 0x21, -EBUSY },
	{ "LAM_NOT_PRE", 0x22, -EAGAIN },
	{ "BAD_SIZE", 0x40, -ENOMEM },
	{ "all ones", 0xff, -EIO },
};

static void commands_status_name(const struct commands_status *status, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s: %d", status->name, status->err);
}

KUNIT_ARRAY_PARAM(commands_status, commands_statuses, commands_status_name);

static enum fake_end commands_answer_status(struct fake *fake, const struct fake_command *cmd,
					    struct fake_answer *answer)
{
	answer->status = *(u8 *)fake->priv;
	return FAKE_ANSWERED;
}

static void commands_test_status(struct kunit *test)
{
	const struct commands_status *param = test->param_value;
	struct fake *fake = test->priv;
	u8 status = param->status;

	fake->priv = &status;
	fake->answer = commands_answer_status;
	KUNIT_EXPECT_EQ(test, param->err, hghca_cmd_nop(fake->hdev));
	/* A status is an answer: the device goes on. */
	fake->answer = NULL;
	KUNIT_EXPECT_FALSE(test, hghca_dev_has_failed(fake->hdev));
	KUNIT_EXPECT_EQ(test, 0, hghca_cmd_nop(fake->hdev));
}

static void commands_status_polled(struct kunit *test)
{
	commands_test_status(test);
}

static void commands_status_by_event(struct kunit *test)
{
	struct fake *fake = test->priv;

	KUNIT_ASSERT_EQ(test, 0, fake_events(fake));
	commands_test_status(test);
}

/* ------------------------------------------------------------------ */
/* What stands in the HCR and in mailboxes                              */

static void commands_registers(struct kunit *test)
{
	const struct commands_mode *mode = test->param_value;
	struct fake *fake = commands_in_mode(test);
	struct hghca_cmd cmd = {
		.op = 0x5a5,
		.op_modifier = 0xc3,
		.in_modifier = 0x12345678,
		.in_param = 0x0123456789abcdef,
		.out_param = 0x1111111111111111,
	};
	struct fake_command *seen;
	u32 mark = fake_mark(fake);

	fake->answer = fake_answer_param;
	KUNIT_ASSERT_EQ(test, 0, hghca_cmd_exec(fake->hdev, &cmd));
	KUNIT_EXPECT_EQ(test, 0x8899aabbccddeeff, cmd.out_param);

	seen = fake_nth(fake, mark);
	KUNIT_ASSERT_NOT_NULL(test, seen);
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
	/* 18h: go 23, E 22, op_modifier 19:12, op 11:0 */
	KUNIT_EXPECT_EQ(test, mode->by_event ? 0x00cc35a5 : 0x008c35a5, seen->words[6]);
}

/* Document 3.1 and 4, with SYNC_COMMANDS: the words that a command uses, as bits. */
static const struct commands_used {
	u16 op;
	u32 words;
	bool in, out;	/* mailboxes */
} commands_used[] = {
	{ 0x031, 0x44 },		/* NOP */
	{ 0x00f, 0x44 },		/* HW2SW_MPT */
	{ 0x012, 0x47 },		/* MAP_EQ: in is immediate */
	{ 0x00d, 0x47, true },		/* SW2HW_MPT */
	{ 0x022, 0x5c, false, true },	/* QUERY_QP */
	{ 0x027, 0x5f, true },		/* MGID_HASH: out is immediate */
};

/* Executes the command; the words of the HCR that were written for it, as bits. */
static u32 commands_written(struct kunit *test, struct hghca_cmd *cmd)
{
	struct fake *fake = test->priv;
	u32 mark = fake_mark(fake), written = 0, word;
	struct fake_command *seen;

	for (word = 0; word < 6; word++)
		writel(0x5a5a5a5a, (void __iomem *)fake->regs + 0x80000 + 4 * word);
	KUNIT_EXPECT_EQ(test, 0, hghca_cmd_exec(fake->hdev, cmd));
	seen = fake_nth(fake, mark);
	KUNIT_ASSERT_NOT_NULL(test, seen);
	for (word = 0; word < 6; word++)
		if (seen->words[word] != 0x5a5a5a5a)
			written |= BIT(word);
	KUNIT_EXPECT_EQ(test, 0x00800000 | cmd->op, seen->words[6]);
	return written | BIT(6);
}

static void commands_used_words(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct hghca_mailbox *mailbox;
	u32 i;

	fake->hdev->limits.caps |= BIT(24);
	KUNIT_ASSERT_EQ(test, 0, fake_events(fake));
	mailbox = hghca_mailbox_alloc(fake->hdev, HGHCA_MAILBOX_SIZE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mailbox));
	for (i = 0; i < ARRAY_SIZE(commands_used); i++) {
		struct hghca_cmd cmd = {
			.op = commands_used[i].op,
			.in_modifier = 1,
			.in = commands_used[i].in ? mailbox : NULL,
			.out = commands_used[i].out ? mailbox : NULL,
		};

		/* As for the first command. */
		hghca_cmd_use_sync(fake->hdev);
		KUNIT_EXPECT_EQ_MSG(test, commands_used[i].words, commands_written(test, &cmd),
				    "op %#x", cmd.op);
	}
	hghca_mailbox_free(fake->hdev, mailbox);
}

/* Of those, what the device has already is not written; out_param it changes itself. */
static const struct {
	u16 op;
	u32 in_modifier;
	u64 in_param;
	bool out;
	u32 words;
} commands_kept[] = {
	{ 0x031, 1, 0, false, 0x44 },
	{ 0x031, 1, 0, false, 0x40 },
	{ 0x00f, 2, 0, false, 0x44 },
	{ 0x012, 2, 0x0123456789abcdef, false, 0x43 },
	{ 0x012, 2, 0x0123456789abcdef, false, 0x40 },
	{ 0x012, 2, 0x0123456789abcdee, false, 0x42 },
	{ 0x012, 3, 0xff23456789abcdee, false, 0x45 },
	{ 0x022, 3, 0, true, 0x58 },
	{ 0x022, 3, 0, true, 0x58 },
	{ 0x012, 3, 0xff23456789abcdee, false, 0x40 },
};

static void commands_kept_words(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct hghca_mailbox *mailbox;
	u32 i;

	fake->hdev->limits.caps |= BIT(24);
	KUNIT_ASSERT_EQ(test, 0, fake_events(fake));
	hghca_cmd_use_sync(fake->hdev);
	mailbox = hghca_mailbox_alloc(fake->hdev, HGHCA_MAILBOX_SIZE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mailbox));
	for (i = 0; i < ARRAY_SIZE(commands_kept); i++) {
		struct hghca_cmd cmd = {
			.op = commands_kept[i].op,
			.in_modifier = commands_kept[i].in_modifier,
			.in_param = commands_kept[i].in_param,
			.out = commands_kept[i].out ? mailbox : NULL,
		};

		KUNIT_EXPECT_EQ_MSG(test, commands_kept[i].words, commands_written(test, &cmd),
				    "step %u", i);
	}
	hghca_mailbox_free(fake->hdev, mailbox);
}

static void commands_pattern(u8 *buf, u8 seed)
{
	u32 i;

	for (i = 0; i < HGHCA_MAILBOX_SIZE; i++)
		buf[i] = seed + i * 7 + (i >> 8);
}

static enum fake_end commands_answer_mailbox(struct fake *fake, const struct fake_command *cmd,
					     struct fake_answer *answer)
{
	if (fake->out)
		commands_pattern(fake->out, 0x5a);
	return FAKE_ANSWERED;
}

static void commands_mailbox_in(struct kunit *test)
{
	struct fake *fake = commands_in_mode(test);
	struct hghca_cmd cmd = { .op = HGHCA_CMD_WRITE_MTT, .in_modifier = 1 };
	u8 *pattern = kunit_kzalloc(test, HGHCA_MAILBOX_SIZE, GFP_KERNEL);
	struct fake_command *seen;
	u32 mark = fake_mark(fake);

	KUNIT_ASSERT_NOT_NULL(test, pattern);
	commands_pattern(pattern, 0xa5);
	cmd.in = hghca_mailbox_alloc(fake->hdev, HGHCA_MAILBOX_SIZE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(cmd.in));
	KUNIT_EXPECT_NULL(test, memchr_inv(cmd.in->buf, 0, HGHCA_MAILBOX_SIZE));
	KUNIT_EXPECT_EQ(test, 0, cmd.in->dma & 0xfff);
	memcpy(cmd.in->buf, pattern, HGHCA_MAILBOX_SIZE);
	KUNIT_EXPECT_EQ(test, 0, hghca_cmd_exec(fake->hdev, &cmd));

	seen = fake_nth(fake, mark);
	KUNIT_ASSERT_NOT_NULL(test, seen);
	KUNIT_EXPECT_EQ(test, cmd.in->dma, seen->in_param);
	KUNIT_EXPECT_EQ(test, 0, seen->out_param);
	KUNIT_EXPECT_MEMEQ(test, pattern, seen->mailbox, HGHCA_MAILBOX_SIZE);
	hghca_mailbox_free(fake->hdev, cmd.in);
}

static void commands_mailbox_out(struct kunit *test)
{
	struct fake *fake = commands_in_mode(test);
	struct hghca_cmd cmd = { .op = HGHCA_CMD_QUERY_QP, .in_modifier = 9 };
	u8 *pattern = kunit_kzalloc(test, HGHCA_MAILBOX_SIZE, GFP_KERNEL);
	struct fake_command *seen;
	u32 mark = fake_mark(fake);

	KUNIT_ASSERT_NOT_NULL(test, pattern);
	commands_pattern(pattern, 0x5a);
	fake->answer = commands_answer_mailbox;
	cmd.out = hghca_mailbox_alloc(fake->hdev, HGHCA_MAILBOX_SIZE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(cmd.out));
	KUNIT_EXPECT_EQ(test, 0, hghca_cmd_exec(fake->hdev, &cmd));

	seen = fake_nth(fake, mark);
	KUNIT_ASSERT_NOT_NULL(test, seen);
	KUNIT_EXPECT_EQ(test, cmd.out->dma, seen->out_param);
	KUNIT_EXPECT_MEMEQ(test, pattern, (u8 *)cmd.out->buf, HGHCA_MAILBOX_SIZE);
	hghca_mailbox_free(fake->hdev, cmd.out);
}

/* A mailbox that has been used before comes back as zeros. */
static void commands_mailbox_is_zeroed(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct hghca_mailbox *mailbox;
	int i;

	for (i = 0; i < 3; i++) {
		mailbox = hghca_mailbox_alloc(fake->hdev, HGHCA_MAILBOX_SIZE);
		KUNIT_ASSERT_FALSE(test, IS_ERR(mailbox));
		KUNIT_EXPECT_NULL(test, memchr_inv(mailbox->buf, 0, HGHCA_MAILBOX_SIZE));
		memset(mailbox->buf, 0xff, HGHCA_MAILBOX_SIZE);
		hghca_mailbox_free(fake->hdev, mailbox);
	}
}

/* The driver finds a command by a binary search. */
static void commands_are_in_order(struct kunit *test)
{
	static const u16 ops[] = {
#define COMMANDS_OP(name, function, op, ...) op,
		HGHCA_COMMANDS(COMMANDS_OP)
#undef COMMANDS_OP
	};
	u32 i;

	for (i = 1; i < ARRAY_SIZE(ops); i++)
		KUNIT_EXPECT_LT(test, ops[i - 1], ops[i]);
}

/* One mailbox is kept, so that commands one after the other allocate nothing. */
static void commands_mailbox_is_kept(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct hghca_mailbox *first, *second, *third;

	first = hghca_mailbox_alloc(fake->hdev, 0);
	second = hghca_mailbox_alloc(fake->hdev, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(first) || IS_ERR(second));
	KUNIT_EXPECT_PTR_NE(test, first, second);
	KUNIT_EXPECT_PTR_NE(test, first->buf, second->buf);
	hghca_mailbox_free(fake->hdev, second);
	hghca_mailbox_free(fake->hdev, first);

	third = hghca_mailbox_alloc(fake->hdev, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(third));
	KUNIT_EXPECT_PTR_EQ(test, second, third);
	hghca_mailbox_free(fake->hdev, third);
}

/* ------------------------------------------------------------------ */
/* The typed commands, against the table of document 4                  */

static int typed_query_dev_lim(struct hghca_dev *hdev)
{
	struct hghca_dev_lim lim;

	return hghca_cmd_query_dev_lim(hdev, &lim);
}

static int typed_query_adapter(struct hghca_dev *hdev)
{
	struct hghca_adapter adapter;

	return hghca_cmd_query_adapter(hdev, &adapter);
}

static int typed_init_hca(struct hghca_dev *hdev)
{
	struct hghca_init_hca init;

	memset(&init, 0x77, sizeof(init));
	return hghca_cmd_init_hca(hdev, &init);
}

static int typed_unmap_icm(struct hghca_dev *hdev)
{
	return hghca_cmd_unmap_icm(hdev, 2, 0x123456000, 64);
}

static int typed_map_icm(struct hghca_dev *hdev)
{
	struct hghca_mailbox *mailbox = hghca_mailbox_alloc(hdev, HGHCA_MAILBOX_SIZE);
	int err;

	if (IS_ERR(mailbox))
		return PTR_ERR(mailbox);
	memset(mailbox->buf, 0x77, 16);
	err = hghca_cmd_map_icm(hdev, 1, mailbox, 3);
	hghca_mailbox_free(hdev, mailbox);
	return err;
}

static int typed_write_mtt(struct hghca_dev *hdev)
{
	struct hghca_mailbox *mailbox = hghca_mailbox_alloc(hdev, HGHCA_MAILBOX_SIZE);
	int err;

	if (IS_ERR(mailbox))
		return PTR_ERR(mailbox);
	memset(mailbox->buf, 0x77, 16);
	err = hghca_cmd_write_mtt(hdev, mailbox, 508);
	hghca_mailbox_free(hdev, mailbox);
	return err;
}

static int typed_sw2hw_mpt(struct hghca_dev *hdev)
{
	struct hghca_mpt mpt;

	memset(&mpt, 0x77, sizeof(mpt));
	return hghca_cmd_sw2hw_mpt(hdev, 0x1234, &mpt);
}

static int typed_hw2sw_mpt(struct hghca_dev *hdev)
{
	return hghca_cmd_hw2sw_mpt(hdev, 0x1234);
}

static int typed_clear_mtt(struct hghca_dev *hdev)
{
	return hghca_cmd_clear_mtt(hdev, 0x123456, 0x10000);
}

static int typed_resume_qp(struct hghca_dev *hdev)
{
	return hghca_cmd_resume_qp(hdev, 0xabcd, 0x12340003);
}

static int typed_map_eq(struct hghca_dev *hdev)
{
	return hghca_cmd_map_eq(hdev, 5, 0x30f3d, false);
}

static int typed_unmap_eq(struct hghca_dev *hdev)
{
	return hghca_cmd_map_eq(hdev, 5, 0x30f3d, true);
}

static int typed_sw2hw_eq(struct hghca_dev *hdev)
{
	struct hghca_eqc eqc;

	memset(&eqc, 0x77, sizeof(eqc));
	return hghca_cmd_sw2hw_eq(hdev, 5, &eqc);
}

static int typed_hw2sw_eq(struct hghca_dev *hdev)
{
	return hghca_cmd_hw2sw_eq(hdev, 5);
}

static int typed_query_eq(struct hghca_dev *hdev)
{
	struct hghca_eqc eqc;

	return hghca_cmd_query_eq(hdev, 5, &eqc);
}

static int typed_sw2hw_cq(struct hghca_dev *hdev)
{
	struct hghca_cqc cqc;

	memset(&cqc, 0x77, sizeof(cqc));
	return hghca_cmd_sw2hw_cq(hdev, 0x12345, &cqc);
}

static int typed_hw2sw_cq(struct hghca_dev *hdev)
{
	return hghca_cmd_hw2sw_cq(hdev, 0x12345);
}

static int typed_resize_cq(struct hghca_dev *hdev)
{
	struct hghca_resize_cq resize;

	memset(&resize, 0x77, sizeof(resize));
	return hghca_cmd_resize_cq(hdev, 0x12345, &resize);
}

static int typed_moderate_cq(struct hghca_dev *hdev)
{
	return hghca_cmd_moderate_cq(hdev, 0x12345, 0xabcd, 0x4321);
}

static int typed_rst2init(struct hghca_dev *hdev)
{
	struct hghca_qpc *qpc = kmalloc(sizeof(*qpc), GFP_KERNEL);
	int err;

	if (!qpc)
		return -ENOMEM;
	memset(qpc, 0x77, sizeof(*qpc));
	err = hghca_cmd_modify_qp(hdev, 0x19, 0xabcd, qpc);
	kfree(qpc);
	return err;
}

static int typed_2err(struct hghca_dev *hdev)
{
	return hghca_cmd_modify_qp(hdev, 0x1e, 0xabcd, NULL);
}

static int typed_query_qp(struct hghca_dev *hdev)
{
	struct hghca_qpc *qpc = kmalloc(sizeof(*qpc), GFP_KERNEL);
	int err;

	if (!qpc)
		return -ENOMEM;
	err = hghca_cmd_query_qp(hdev, 0xabcd, qpc);
	kfree(qpc);
	return err;
}

static int typed_direct_gsi(struct hghca_dev *hdev)
{
	return hghca_cmd_conf_special_qp(hdev, 1, 0xabcd);
}

static int typed_withdraw_raw(struct hghca_dev *hdev)
{
	return hghca_cmd_conf_special_qp(hdev, 3, 0);
}

static int typed_mad_ifc(struct hghca_dev *hdev)
{
	u8 mad[256];

	memset(mad, 0x77, sizeof(mad));
	return hghca_cmd_mad_ifc(hdev, 1, mad);
}

static int typed_sw2hw_srq(struct hghca_dev *hdev)
{
	struct hghca_srqc srqc;

	memset(&srqc, 0x77, sizeof(srqc));
	return hghca_cmd_sw2hw_srq(hdev, 0x5678, &srqc);
}

static int typed_mgm(struct hghca_dev *hdev, bool take)
{
	struct hghca_mailbox *mailbox = hghca_mailbox_alloc(hdev, HGHCA_MAILBOX_SIZE);
	int err;

	if (IS_ERR(mailbox))
		return PTR_ERR(mailbox);
	memset(mailbox->buf, 0x77, 256);
	err = hghca_cmd_write_mgm(hdev, 0x1abc, mailbox, take);
	hghca_mailbox_free(hdev, mailbox);
	return err;
}

static int typed_write_mgm(struct hghca_dev *hdev)
{
	return typed_mgm(hdev, false);
}

static int typed_take_mgm(struct hghca_dev *hdev)
{
	return typed_mgm(hdev, true);
}

static int typed_mgid_hash(struct hghca_dev *hdev)
{
	struct hghca_mgid mgid;
	u64 hash;

	memset(&mgid, 0x77, sizeof(mgid));
	return hghca_cmd_mgid_hash(hdev, &mgid, &hash);
}

static int typed_hw2sw_srq(struct hghca_dev *hdev)
{
	return hghca_cmd_hw2sw_srq(hdev, 0x5678);
}

static int typed_query_srq(struct hghca_dev *hdev)
{
	struct hghca_srqc srqc;

	return hghca_cmd_query_srq(hdev, 0x5678, &srqc);
}

static int typed_arm_srq(struct hghca_dev *hdev)
{
	return hghca_cmd_arm_srq(hdev, 0x5678, 0xfedc);
}

static int typed_resize_srq(struct hghca_dev *hdev)
{
	struct hghca_resize_srq resize;

	memset(&resize, 0x77, sizeof(resize));
	return hghca_cmd_resize_srq(hdev, 0x5678, &resize);
}

static int typed_flow_attach(struct hghca_dev *hdev)
{
	struct hghca_flow flow;

	memset(&flow, 0x77, sizeof(flow));
	return hghca_cmd_flow_attach(hdev, 0xfed, &flow);
}

static int typed_flow_detach(struct hghca_dev *hdev)
{
	return hghca_cmd_flow_detach(hdev, 0xfed);
}

static int typed_create_rss(struct hghca_dev *hdev)
{
	struct hghca_rss *rss = kmalloc(sizeof(*rss), GFP_KERNEL);
	int err;

	if (!rss)
		return -ENOMEM;
	memset(rss, 0x77, sizeof(*rss));
	err = hghca_cmd_create_rss(hdev, 0x3ed, rss);
	kfree(rss);
	return err;
}

static int typed_destroy_rss(struct hghca_dev *hdev)
{
	return hghca_cmd_destroy_rss(hdev, 0x3ed);
}

static int typed_sw2hw_part(struct hghca_dev *hdev)
{
	struct hghca_partition *partition = kmalloc(sizeof(*partition), GFP_KERNEL);
	int err;

	if (!partition)
		return -ENOMEM;
	memset(partition, 0x77, sizeof(*partition));
	err = hghca_cmd_sw2hw_part(hdev, 0x2d, partition);
	kfree(partition);
	return err;
}

static int typed_hw2sw_part(struct hghca_dev *hdev)
{
	return hghca_cmd_hw2sw_part(hdev, 0x2d);
}

static int typed_set_status_record(struct hghca_dev *hdev)
{
	return hghca_cmd_set_status_record(hdev, 0x123456784);
}

static int typed_query_part(struct hghca_dev *hdev)
{
	struct hghca_partition *partition = kmalloc(sizeof(*partition), GFP_KERNEL);
	int err;

	if (!partition)
		return -ENOMEM;
	err = hghca_cmd_query_part(hdev, 0x2d, partition);
	kfree(partition);
	return err;
}

static int typed_set_congestion(struct hghca_dev *hdev)
{
	struct hghca_congestion congestion;

	memset(&congestion, 0x77, sizeof(congestion));
	return hghca_cmd_set_congestion(hdev, &congestion);
}

static int typed_query_congestion(struct hghca_dev *hdev)
{
	struct hghca_congestion congestion;

	return hghca_cmd_query_congestion(hdev, &congestion);
}

static int typed_set_flow_control(struct hghca_dev *hdev)
{
	struct hghca_flow_control control;

	memset(&control, 0x77, sizeof(control));
	return hghca_cmd_set_flow_control(hdev, &control);
}

static int typed_query_flow_control(struct hghca_dev *hdev)
{
	struct hghca_flow_control control;

	return hghca_cmd_query_flow_control(hdev, &control);
}

static int typed_set_gid(struct hghca_dev *hdev)
{
	struct hghca_gid_entry entry;

	memset(&entry, 0x77, sizeof(entry));
	return hghca_cmd_set_gid(hdev, 100, &entry);
}

static int typed_clear_gid(struct hghca_dev *hdev)
{
	return hghca_cmd_set_gid(hdev, 100, NULL);
}

static int typed_query_port(struct hghca_dev *hdev)
{
	struct hghca_port port;

	return hghca_cmd_query_port(hdev, &port);
}

static int typed_set_port(struct hghca_dev *hdev)
{
	struct hghca_port port;

	memset(&port, 0x77, sizeof(port));
	return hghca_cmd_set_port(hdev, &port);
}

static int typed_query_stats(struct hghca_dev *hdev)
{
	u64 values[4];

	return hghca_cmd_query_stats(hdev, 0, values, 4);
}

static int typed_query_stats_outside(struct hghca_dev *hdev)
{
	u64 values[4];

	return hghca_cmd_query_stats(hdev, 1, values, 4);
}

static int typed_query_mpt(struct hghca_dev *hdev)
{
	struct hghca_mpt mpt;

	return hghca_cmd_query_mpt(hdev, 0x1234, &mpt);
}

static int typed_query_cq(struct hghca_dev *hdev)
{
	struct hghca_cqc cqc;

	return hghca_cmd_query_cq(hdev, 0x12345, &cqc);
}

static int typed_set_qp_counter(struct hghca_dev *hdev)
{
	return hghca_cmd_set_qp_counter(hdev, 0xabcd, 0xfe);
}

static int typed_clear_qp_counter(struct hghca_dev *hdev)
{
	return hghca_cmd_set_qp_counter(hdev, 0xabcd, 0);
}

static int typed_query_counter_set(struct hghca_dev *hdev)
{
	u64 values[HGHCA_QP_COUNTER_NUM];

	return hghca_cmd_query_counter_set(hdev, 0xfe, values, false);
}

static int typed_clear_counter_set(struct hghca_dev *hdev)
{
	u64 values[HGHCA_QP_COUNTER_NUM];

	return hghca_cmd_query_counter_set(hdev, 0xfe, values, true);
}

/*
 * Of each: op, op_modifier, in_modifier, whether in_param is a mailbox (and how
 * long what stands in it is) or the value, whether there is an output; and
 * whether it takes something from the device, which one that was given up has
 * let go of already.
 */
static const struct typed_command {
	const char *name;
	int (*run)(struct hghca_dev *hdev);
	u16 op;
	u8 op_modifier;
	u32 in_modifier;
	u32 in_bytes;
	u64 in_param;
	bool out;
	bool takes;
} typed_commands[] = {
	{ "QUERY_DEV_LIM", typed_query_dev_lim, 0x003, .out = true },
	{ "QUERY_ADAPTER", typed_query_adapter, 0x006, .out = true },
	{ "INIT_HCA", typed_init_hca, 0x007, .in_bytes = 0x48 },
	{ "CLOSE_HCA", hghca_cmd_close_hca, 0x008, .takes = true },
	{ "MAP_ICM", typed_map_icm, 0xffa, 1, 3, .in_bytes = 16 },
	{ "UNMAP_ICM", typed_unmap_icm, 0xff9, 2, 64, .in_param = 0x123456000, .takes = true },
	{ "SW2HW_MPT", typed_sw2hw_mpt, 0x00d, 0, 0x1234, .in_bytes = 64 },
	{ "HW2SW_MPT", typed_hw2sw_mpt, 0x00f, 0, 0x1234, .takes = true },
	{ "WRITE_MTT", typed_write_mtt, 0x011, 0, 508, .in_bytes = 16 },
	{ "CLEAR_MTT", typed_clear_mtt, 0xe09, 0, 0x10000, .in_param = 0x123456, .takes = true },
	{ "RESUME_QP", typed_resume_qp, 0xe08, 0, 0xabcd, .in_param = 0x12340003 },
	{ "MAP_EQ", typed_map_eq, 0x012, 0, 5, .in_param = 0x30f3d },
	{ "MAP_EQ away", typed_unmap_eq, 0x012, 0, 0x80000005, .in_param = 0x30f3d,
	  .takes = true },
	{ "SW2HW_EQ", typed_sw2hw_eq, 0x013, 0, 5, .in_bytes = 64 },
	{ "HW2SW_EQ", typed_hw2sw_eq, 0x014, 0, 5, .takes = true },
	{ "QUERY_EQ", typed_query_eq, 0x015, 0, 5, .out = true },
	{ "SW2HW_CQ", typed_sw2hw_cq, 0x016, 0, 0x12345, .in_bytes = 64 },
	{ "HW2SW_CQ", typed_hw2sw_cq, 0x017, 0, 0x12345, .takes = true },
	{ "RESIZE_CQ", typed_resize_cq, 0x02c, 0, 0x12345, .in_bytes = 32 },
	{ "MODERATE_CQ", typed_moderate_cq, 0xe07, 0, 0x12345, .in_param = 0xabcd4321 },
	{ "RST2INIT_QPEE", typed_rst2init, 0x019, 0, 0xabcd, .in_bytes = 192 },
	{ "2ERR_QPEE", typed_2err, 0x01e, 3, 0xabcd, .takes = true },
	{ "QUERY_QP", typed_query_qp, 0x022, 0, 0xabcd, .out = true },
	{ "CONF_SPECIAL_QP, GSI", typed_direct_gsi, 0x023, 1, 0xabcd },
	{ "CONF_SPECIAL_QP, raw Ethernet withdrawn", typed_withdraw_raw, 0x023, 3, 0,
	  .takes = true },
	{ "MAD_IFC", typed_mad_ifc, 0x024, 0, 1, .in_bytes = 256, .out = true },
	{ "SW2HW_SRQ", typed_sw2hw_srq, 0x035, 0, 0x5678, .in_bytes = 64 },
	{ "HW2SW_SRQ", typed_hw2sw_srq, 0x036, 0, 0x5678, .takes = true },
	{ "QUERY_SRQ", typed_query_srq, 0x037, 0, 0x5678, .out = true },
	{ "ARM_SRQ", typed_arm_srq, 0x040, 0, 0x5678, .in_param = 0xfedc },
	{ "RESIZE_SRQ", typed_resize_srq, 0x044, 0, 0x5678, .in_bytes = 32 },
	{ "WRITE_MGM", typed_write_mgm, 0x026, 0, 0x1abc, .in_bytes = 256 },
	{ "WRITE_MGM, a QP goes", typed_take_mgm, 0x026, 0, 0x1abc, .in_bytes = 256,
	  .takes = true },
	{ "MGID_HASH", typed_mgid_hash, 0x027, 0, 0, .in_bytes = 16 },
	{ "FLOW_ATTACH", typed_flow_attach, 0xe05, 0, 0xfed, .in_bytes = 0x90 },
	{ "FLOW_DETACH", typed_flow_detach, 0xe06, 0, 0xfed, .takes = true },
	{ "CREATE_RSS", typed_create_rss, 0xe0a, 0, 0x3ed, .in_bytes = 0x830 },
	{ "DESTROY_RSS", typed_destroy_rss, 0xe0b, 0, 0x3ed, .takes = true },
	{ "SW2HW_PART", typed_sw2hw_part, 0xe12, 0, 0x2d, .in_bytes = 0xc20 },
	{ "HW2SW_PART", typed_hw2sw_part, 0xe13, 0, 0x2d, .takes = true },
	{ "QUERY_PART", typed_query_part, 0xe14, 0, 0x2d, .out = true },
	{ "SET_STATUS_RECORD", typed_set_status_record, 0xe15, 1, 0, .in_param = 0x123456784 },
	{ "SET_CONGESTION", typed_set_congestion, 0xe0c, 0, 1, .in_bytes = 0x40 },
	{ "QUERY_CONGESTION", typed_query_congestion, 0xe0d, 0, 1, .out = true },
	{ "SET_FLOW_CONTROL", typed_set_flow_control, 0xe0e, 0, 1, .in_bytes = 0x40 },
	{ "QUERY_FLOW_CONTROL", typed_query_flow_control, 0xe0f, 0, 1, .out = true },
	{ "NOP", hghca_cmd_nop, 0x031, 0, 0x1f },
	{ "SET_PORT", typed_set_port, 0x00c, 0, 1, .in_bytes = 0x40 },
	{ "SET_GID", typed_set_gid, 0xe00, 0, 100, .in_bytes = 0x20 },
	{ "SET_GID, clear", typed_clear_gid, 0xe00, 1, 100, .takes = true },
	{ "QUERY_PORT", typed_query_port, 0xe01, 0, 1, .out = true },
	{ "QUERY_STATS", typed_query_stats, 0xe02, 0, 0, .out = true },
	{ "QUERY_STATS, outside sets", typed_query_stats_outside, 0xe02, 1, 0, .out = true },
	{ "QUERY_MPT", typed_query_mpt, 0x00e, 0, 0x1234, .out = true },
	{ "QUERY_CQ", typed_query_cq, 0x018, 0, 0x12345, .out = true },
	{ "SET_QP_COUNTER", typed_set_qp_counter, 0xe03, 0, 0xabcd, .in_param = 0xfe },
	{ "SET_QP_COUNTER, none", typed_clear_qp_counter, 0xe03, 0, 0xabcd, .takes = true },
	{ "QUERY_COUNTER_SET", typed_query_counter_set, 0xe04, 0, 0xfe, .out = true },
	{ "QUERY_COUNTER_SET, clear", typed_clear_counter_set, 0xe04, 1, 0xfe, .out = true },
};

static void typed_name(const struct typed_command *command, char *desc)
{
	strscpy(desc, command->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(typed, typed_commands, typed_name);

/* Whether the device, too, takes out_param for a mailbox. */
static enum fake_end commands_answer_typed(struct fake *fake, const struct fake_command *cmd,
					   struct fake_answer *answer)
{
	*(bool *)fake->priv = fake->out;
	return FAKE_ANSWERED;
}

/* The mailboxes of the next commands have one value in each byte, unless the pool has its own. */
static void commands_fill_mailboxes(struct kunit *test, struct hghca_dev *hdev)
{
	struct hghca_mailbox *mailboxes[2];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(mailboxes); i++) {
		mailboxes[i] = hghca_mailbox_alloc(hdev, 0);
		KUNIT_ASSERT_FALSE(test, IS_ERR(mailboxes[i]));
		memset(mailboxes[i]->buf, 0xa5, HGHCA_MAILBOX_SIZE);
	}
	for (i = 0; i < ARRAY_SIZE(mailboxes); i++)
		hghca_mailbox_free(hdev, mailboxes[i]);
}

static void commands_typed(struct kunit *test)
{
	const struct typed_command *param = test->param_value;
	struct fake *fake = test->priv;
	struct fake_command *seen;
	u32 mark = fake_mark(fake);
	const u8 *rest;
	bool out;
	u32 i;

	commands_fill_mailboxes(test, fake->hdev);
	fake->priv = &out;
	fake->answer = commands_answer_typed;
	KUNIT_ASSERT_EQ(test, 0, param->run(fake->hdev));
	KUNIT_EXPECT_EQ(test, param->out, out);
	KUNIT_EXPECT_EQ(test, mark + 1, fake_mark(fake));
	seen = fake_nth(fake, mark);
	KUNIT_ASSERT_NOT_NULL(test, seen);
	KUNIT_EXPECT_EQ(test, param->op, seen->op);
	KUNIT_EXPECT_EQ(test, param->op_modifier, seen->op_modifier);
	KUNIT_EXPECT_EQ(test, param->in_modifier, seen->in_modifier);
	if (param->in_bytes) {
		for (i = 0; i < param->in_bytes; i++)
			KUNIT_EXPECT_EQ(test, 0x77, seen->mailbox[i]);
		/* Nothing was written behind that. */
		rest = seen->mailbox + param->in_bytes;
		KUNIT_EXPECT_NULL(test, memchr_inv(rest, *rest,
						   HGHCA_MAILBOX_SIZE - param->in_bytes));
	} else {
		KUNIT_EXPECT_EQ(test, param->in_param, seen->in_param);
	}
	KUNIT_EXPECT_EQ(test, param->out, !!seen->out_param);
}

/* Each passes on what the device answers. */
static void commands_typed_refused(struct kunit *test)
{
	const struct typed_command *param = test->param_value;
	struct fake *fake = test->priv;
	u8 status = 0x20;

	fake->priv = &status;
	fake->answer = commands_answer_status;
	KUNIT_EXPECT_EQ(test, -EFAULT, param->run(fake->hdev));
}

/* A status for an opcode. */
struct commands_refusal {
	u16 op;
	u8 status;
};

static enum fake_end commands_refuse_one(struct fake *fake, const struct fake_command *cmd,
					 struct fake_answer *answer)
{
	const struct commands_refusal *refusal = fake->priv;

	if (cmd->op == refusal->op)
		answer->status = refusal->status;
	return FAKE_ANSWERED;
}

/* Three transitions, one after the other; what is behind one that is refused is not tried. */
static void commands_start_qp(struct kunit *test)
{
	struct fake *fake = commands_in_mode(test);
	struct hghca_qpc *init = kunit_kzalloc(test, sizeof(*init), GFP_KERNEL);
	struct hghca_qpc *rest = kunit_kzalloc(test, sizeof(*rest), GFP_KERNEL);
	struct commands_refusal refusal = {};
	u32 mark = fake_mark(fake);
	u32 i, j;

	KUNIT_ASSERT_NOT_NULL(test, init);
	KUNIT_ASSERT_NOT_NULL(test, rest);
	memset(init, 0x77, sizeof(*init));
	memset(rest, 0x66, sizeof(*rest));
	fake->priv = &refusal;
	fake->answer = commands_refuse_one;
	KUNIT_ASSERT_EQ(test, 0, hghca_cmd_start_qp(fake->hdev, 0xabcd, init, rest));
	KUNIT_ASSERT_EQ(test, mark + 3, fake_mark(fake));
	for (i = 0; i < 3; i++) {
		struct fake_command *seen = fake_nth(fake, mark + i);

		KUNIT_EXPECT_EQ(test, 0x019 + i, seen->op);
		KUNIT_EXPECT_EQ(test, 0, seen->op_modifier);
		KUNIT_EXPECT_EQ(test, 0xabcd, seen->in_modifier);
		for (j = 0; j < 192; j++)
			KUNIT_EXPECT_EQ(test, i ? 0x66 : 0x77, seen->mailbox[j]);
	}

	refusal.status = 0x10;
	for (i = 0; i < 3; i++) {
		refusal.op = 0x019 + i;
		mark = fake_mark(fake);
		KUNIT_EXPECT_EQ(test, -EINVAL,
				hghca_cmd_start_qp(fake->hdev, 0xabcd, init, rest));
		KUNIT_EXPECT_EQ(test, mark + i + 1, fake_mark(fake));
	}
	KUNIT_EXPECT_FALSE(test, hghca_dev_has_failed(fake->hdev));
}

/* On a device that was given up: what is taken from it is taken. */
static void commands_typed_given_up(struct kunit *test)
{
	const struct typed_command *param = test->param_value;
	struct fake *fake = test->priv;
	u32 mark;

	hghca_dev_fail(fake->hdev, "a test");
	mark = fake_mark(fake);
	KUNIT_EXPECT_EQ(test, param->takes ? 0 : -EIO, param->run(fake->hdev));
	KUNIT_EXPECT_EQ(test, mark, fake_mark(fake));
}

/* Big-endian 64-bit numbers, from the first on. */
static enum fake_end commands_answer_stats(struct fake *fake, const struct fake_command *cmd,
					   struct fake_answer *answer)
{
	__be64 *counters = fake->out;
	int i;

	for (i = 0; i < 512; i++)
		counters[i] = cpu_to_be64(0x0102030405060000 + i);
	return FAKE_ANSWERED;
}

static void commands_stats(struct kunit *test)
{
	struct fake *fake = test->priv;
	u64 *values = kunit_kcalloc(test, 513, sizeof(*values), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, values);
	fake->answer = commands_answer_stats;
	KUNIT_ASSERT_EQ(test, 0, hghca_cmd_query_stats(fake->hdev, 0, values, 512));
	for (i = 0; i < 512; i++)
		KUNIT_EXPECT_EQ(test, 0x0102030405060000 + i, values[i]);
	KUNIT_EXPECT_EQ(test, 0, values[512]);
}

/* ------------------------------------------------------------------ */
/* Commands that do not end                                             */

static struct hghca_mailbox *commands_lose_one(struct kunit *test, struct fake *fake, int err)
{
	struct hghca_cmd cmd = { .op = HGHCA_CMD_QUERY_QP };

	cmd.out = hghca_mailbox_alloc(fake->hdev, HGHCA_MAILBOX_SIZE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(cmd.out));
	KUNIT_EXPECT_EQ(test, err, hghca_cmd_exec(fake->hdev, &cmd));
	return cmd.out;
}

/* The mailbox of a command without end is not given to another one. */
static void commands_expect_mailbox_kept(struct kunit *test, struct fake *fake,
					 struct hghca_mailbox *mailbox)
{
	KUNIT_EXPECT_TRUE(test, mailbox->lost);
	hghca_mailbox_free(fake->hdev, mailbox);
	KUNIT_EXPECT_PTR_EQ(test, &mailbox->node, fake->hdev->cmd.lost.next);
}

static void commands_time_out(struct kunit *test)
{
	struct fake *fake = commands_in_mode(test);
	struct hghca_mailbox *mailbox;

	commands_hurry(fake);
	fake->answer = commands_silent;
	mailbox = commands_lose_one(test, fake, -ETIMEDOUT);
	commands_expect_given_up(test, fake);
	commands_expect_mailbox_kept(test, fake, mailbox);
}

/* Go never falls: the command after it finds the HCR taken. */
static void commands_hcr_stuck(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct hghca_mailbox *mailbox;

	commands_hurry(fake);
	WRITE_ONCE(fake->stuck, true);
	writel(BIT(23), (void __iomem *)fake->regs + 0x80018);
	mailbox = commands_lose_one(test, fake, -ETIMEDOUT);
	commands_expect_given_up(test, fake);
	/* It was never posted. */
	KUNIT_EXPECT_FALSE(test, mailbox->lost);
	hghca_mailbox_free(fake->hdev, mailbox);
}

/* Where an event does not come since go does not fall, the next command waits in vain. */
static void commands_event_stuck(struct kunit *test)
{
	struct fake *fake = test->priv;

	KUNIT_ASSERT_EQ(test, 0, fake_events(fake));
	commands_hurry(fake);
	fake->answer = commands_stuck;
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT, hghca_cmd_nop(fake->hdev));
	commands_expect_given_up(test, fake);
}

/* With SYNC_COMMANDS nothing is read before the command: that was posted, for all it knows. */
static void commands_gone_before(struct kunit *test)
{
	const struct commands_mode *mode = test->param_value;
	struct fake *fake = commands_in_mode(test);
	struct hghca_mailbox *mailbox;

	memset(fake->regs + 0x80000, 0xff, 0x1c);
	/* Of the fake's registers, those that are written are there again. */
	fake->answer = commands_gone;
	mailbox = commands_lose_one(test, fake, -ENODEV);
	commands_expect_given_up(test, fake);
	if (mode->sync) {
		commands_expect_mailbox_kept(test, fake, mailbox);
	} else {
		KUNIT_EXPECT_FALSE(test, mailbox->lost);
		hghca_mailbox_free(fake->hdev, mailbox);
	}
}

static void commands_gone_meanwhile(struct kunit *test)
{
	struct fake *fake = commands_in_mode(test);
	struct hghca_mailbox *mailbox;

	commands_hurry(fake);
	fake->answer = commands_gone;
	mailbox = commands_lose_one(test, fake, -ENODEV);
	commands_expect_given_up(test, fake);
	commands_expect_mailbox_kept(test, fake, mailbox);
}

/* Document 3.1: without an EQ for it, the end of a command by event stands in the HCR. */
static enum fake_end commands_reset_before(struct fake *fake, const struct fake_command *cmd,
					   struct fake_answer *answer)
{
	if (cmd->by_event)
		writel(0x04 << 24, (void __iomem *)fake->regs + 0x80018);
	return cmd->by_event ? FAKE_NO_STATUS : FAKE_ANSWERED;
}

/* A reset clears the HCR, and with it a command that is under way. */
static enum fake_end commands_reset_meanwhile(struct fake *fake, const struct fake_command *cmd,
					      struct fake_answer *answer)
{
	memset(fake->regs + 0x80000, 0, 0x1c);
	return FAKE_NO_STATUS;
}

/* Reset behind the driver's back: that is seen long before the time is over. */
static void commands_expect_lost_state(struct kunit *test, struct fake *fake)
{
	struct hghca_mailbox *mailbox;

	fake->hdev->cmd.look_ms = FAKE_TIMEOUT_MS / 10;
	mailbox = commands_lose_one(test, fake, -ENXIO);
	commands_expect_given_up(test, fake);
	commands_expect_mailbox_kept(test, fake, mailbox);
}

static void commands_device_was_reset(struct kunit *test)
{
	struct fake *fake = test->priv;

	fake->answer = commands_reset_before;
	commands_expect_lost_state(test, fake);
}

/* With SYNC_COMMANDS the status tells it: BAD_SYS_STATE. */
static void commands_device_was_reset_sync(struct kunit *test)
{
	struct fake *fake = test->priv;
	u8 status = 0x04;

	fake->hdev->limits.caps |= BIT(24);
	KUNIT_ASSERT_EQ(test, 0, fake_events(fake));
	fake->priv = &status;
	fake->answer = commands_answer_status;
	commands_expect_lost_state(test, fake);
}

static void commands_device_is_reset(struct kunit *test)
{
	struct fake *fake = commands_in_mode(test);

	fake->answer = commands_reset_meanwhile;
	commands_expect_lost_state(test, fake);
}

/* ------------------------------------------------------------------ */
/* The status record: document 3.1                                      */

/* The device's side: what it writes before the write of go ends. */
struct commands_record {
	struct fake *fake;
	u32 word;	/* 0: nothing */
	bool fail;	/* the device is given up meanwhile */
	__be32 before;	/* what the record had, of the last command */
	u32 posts;
};

static void commands_on_post(void *data, const struct hghca_dev *hdev,
			     const struct hghca_cmd *cmd, bool by_event)
{
	struct commands_record *record = data;

	if (hdev != record->fake->hdev)
		return;
	record->posts++;
	record->before = READ_ONCE(*hdev->cmd.status);
	if (record->word)
		WRITE_ONCE(*hdev->cmd.status, cpu_to_be32(record->word));
	/* As hghca_dev_fail() does; its lock is held here. */
	if (record->fail)
		smp_store_release(&record->fake->hdev->failed, true);
}

static void commands_open_record(struct kunit *test, struct commands_record *record)
{
	struct fake *fake = test->priv;

	fake->hdev->limits.caps |= BIT(24) | BIT(27);
	KUNIT_ASSERT_EQ(test, 0, fake_events(fake));
	record->fake = fake;
	KUNIT_ASSERT_EQ(test, 0, register_trace_hghca_cmd_post(commands_on_post, record));
}

/* The fake device ends the command later than a real one. */
static void commands_close_record(struct kunit *test, struct commands_record *record)
{
	struct fake *fake = test->priv;
	int i;

	unregister_trace_hghca_cmd_post(commands_on_post, record);
	tracepoint_synchronize_unregister();
	for (i = 0; i < 1000 && readl((void __iomem *)fake->regs + 0x80018) & BIT(23); i++)
		usleep_range(1000, 2000);
	KUNIT_EXPECT_LT(test, i, 1000);
}

static const struct commands_recorded {
	const char *name;
	u32 word;
	bool used;
	int err;
} commands_recordeds[] = {
	{ "OK", 0x00000031, true, 0 },
	{ "BAD_PARAM", 0x03000031, true, -EINVAL },
	{ "BAD_PARAM, all other bits", 0x037ff031, true, -EINVAL },
	{ "an undefined status", 0x07000031, true, -EIO },
	{ "nothing", 0, false, -EBUSY },
	{ "another command", 0x03000032, false, -EBUSY },
	{ "go", 0x03800031, false, -EBUSY },
	{ "all ones", 0xffffffff, false, -EBUSY },
};

static void commands_recorded_name(const struct commands_recorded *recorded, char *desc)
{
	strscpy(desc, recorded->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(commands_recorded, commands_recordeds, commands_recorded_name);

/* The status in the HCR is another one. */
static void commands_test_recorded(struct kunit *test)
{
	const struct commands_recorded *param = test->param_value;
	struct hghca_cmd cmd = { .op = HGHCA_CMD_NOP, .in_modifier = 0x1f };
	struct commands_record record = { .word = param->word };
	struct fake *fake = test->priv;
	u8 status = 0x06;
	u32 mark;

	commands_open_record(test, &record);
	mark = fake_mark(fake);
	fake->priv = &status;
	fake->answer = commands_answer_status;
	*fake->hdev->cmd.status = cpu_to_be32(0x00000031);
	KUNIT_EXPECT_EQ(test, param->err, hghca_cmd_exec(fake->hdev, &cmd));
	KUNIT_EXPECT_EQ(test, param->used, cmd.recorded);
	KUNIT_EXPECT_EQ(test, 1, record.posts);
	/* What an earlier command has left is gone before the command. */
	KUNIT_EXPECT_EQ(test, 0, be32_to_cpu(record.before));
	KUNIT_EXPECT_TRUE(test, fake_wait(fake, mark + 1));
	commands_close_record(test, &record);
	KUNIT_EXPECT_FALSE(test, hghca_dev_has_failed(fake->hdev));
}

/* A device that was reset before the command. */
static void commands_recorded_bad_sys_state(struct kunit *test)
{
	struct commands_record record = { .word = 0x04000022 };
	struct fake *fake = test->priv;
	struct hghca_mailbox *mailbox;

	commands_open_record(test, &record);
	mailbox = commands_lose_one(test, fake, -ENXIO);
	commands_close_record(test, &record);
	KUNIT_EXPECT_TRUE(test, hghca_dev_has_failed(fake->hdev));
	commands_expect_mailbox_kept(test, fake, mailbox);
}

/* The record has success; the memory that the command has written is not the device's any more. */
static void commands_recorded_given_up(struct kunit *test)
{
	struct commands_record record = { .word = 0x00000022, .fail = true };
	struct fake *fake = test->priv;
	struct hghca_mailbox *mailbox;

	commands_open_record(test, &record);
	mailbox = commands_lose_one(test, fake, -EIO);
	commands_close_record(test, &record);
	commands_expect_mailbox_kept(test, fake, mailbox);
}

/* The last command of those that start the device; again when the driver is started again. */
static void commands_record_is_set(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct fake_command *seen;
	u32 i, mark;

	fake->hdev->limits.caps |= BIT(24);
	for (i = 0; i < 3; i++) {
		struct hghca_cmd cmd = { .op = HGHCA_CMD_NOP, .in_modifier = 0x1f };
		const u32 caps = fake->hdev->limits.caps;
		u32 sets = 0;

		mark = fake_mark(fake);
		KUNIT_ASSERT_EQ(test, 0, fake_events(fake));
		for (; mark < fake_mark(fake); mark++) {
			seen = fake_nth(fake, mark);
			KUNIT_ASSERT_NOT_NULL(test, seen);
			if (seen->op != 0xe15)
				continue;
			sets++;
			KUNIT_EXPECT_EQ(test, 0x008, seen->words[6] >> 20);
			KUNIT_EXPECT_EQ(test, 1, seen->op_modifier);
			KUNIT_EXPECT_EQ(test, 0, seen->in_modifier);
			KUNIT_EXPECT_EQ(test, 0, seen->in_param & 3);
			KUNIT_EXPECT_PTR_EQ(test, (void *)fake->hdev->cmd.status,
					    fake_memory(seen->in_param));
		}
		/* Document 4.2: bit 27. */
		KUNIT_EXPECT_EQ(test, !!(caps & BIT(27)), sets);
		KUNIT_EXPECT_EQ(test, !!(caps & BIT(27)), fake->hdev->cmd.use_record);

		hghca_eqs_cleanup(fake->hdev);
		fake->opened--;
		KUNIT_EXPECT_FALSE(test, fake->hdev->cmd.use_record);
		KUNIT_EXPECT_EQ(test, 0, hghca_cmd_exec(fake->hdev, &cmd));
		fake->hdev->limits.caps |= BIT(27);
	}
}

/* The driver works without it. */
static void commands_record_refused(struct kunit *test)
{
	struct commands_refusal refusal = { .op = 0xe15, .status = 0x03 };
	struct hghca_cmd cmd = { .op = HGHCA_CMD_NOP, .in_modifier = 0x1f };
	struct fake *fake = test->priv;

	fake->hdev->limits.caps |= BIT(24) | BIT(27);
	fake->priv = &refusal;
	fake->answer = commands_refuse_one;
	KUNIT_ASSERT_EQ(test, 0, fake_events(fake));
	KUNIT_EXPECT_FALSE(test, fake->hdev->cmd.use_record);
	*fake->hdev->cmd.status = cpu_to_be32(0x03000031);
	KUNIT_EXPECT_EQ(test, 0, hghca_cmd_exec(fake->hdev, &cmd));
	KUNIT_EXPECT_EQ(test, 0x03000031, be32_to_cpu(*fake->hdev->cmd.status));
	KUNIT_EXPECT_FALSE(test, cmd.recorded);
}

/* ------------------------------------------------------------------ */
/* Events that come late, twice, or for nobody                          */

static struct hghca_cmd_slot *commands_slot(struct fake *fake, u16 token)
{
	return &fake->hdev->cmd.slots[token % HGHCA_CMD_SLOTS];
}

static void commands_late_completion(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct hghca_cmd_slot *slot;
	u32 mark = fake_mark(fake);
	u16 token;

	commands_hurry(fake);
	fake->answer = commands_silent;
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT, hghca_cmd_nop(fake->hdev));
	KUNIT_ASSERT_NOT_NULL(test, fake_nth(fake, mark));
	token = fake_nth(fake, mark)->token;
	slot = commands_slot(fake, token);
	KUNIT_EXPECT_EQ(test, HGHCA_CMD_SLOT_LOST, slot->state);

	fake_cmd_event(fake, token, 0, 0x1234, true);
	KUNIT_EXPECT_EQ(test, HGHCA_CMD_SLOT_LOST, slot->state);
	KUNIT_EXPECT_NE(test, 0x1234, slot->out_param);
	KUNIT_EXPECT_FALSE(test, completion_done(&slot->done));
}

/*
 * The EQ of a device that was given up still has the completion of a command that was ended
 * without it.  That changes nothing, and nothing is logged.  The suite begins with this case:
 * the messages of others would use the rate limit up.
 */
static enum fake_end commands_given_up_meanwhile(struct fake *fake, const struct fake_command *cmd,
						 struct fake_answer *answer)
{
	hghca_dev_fail(fake->hdev, "a test");
	answer->out_param = 0xbad;
	return FAKE_ANSWERED;
}

static void commands_given_up_completion(struct kunit *test)
{
	struct hghca_cmd cmd = { .op = HGHCA_CMD_NOP, .in_modifier = 0x1f };
	struct fake *fake = test->priv;
	u32 mark = fake_mark(fake);
	u16 token;

	fake->answer = commands_given_up_meanwhile;
	KUNIT_EXPECT_EQ(test, -EIO, hghca_cmd_exec(fake->hdev, &cmd));
	KUNIT_EXPECT_EQ(test, 0, cmd.out_param);
	KUNIT_ASSERT_EQ(test, mark + 1, fake_mark(fake));
	token = fake_nth(fake, mark)->token;

	/* Once more, when the slot is free. */
	fake_cmd_event(fake, token, 0, 0xbad, true);
	KUNIT_EXPECT_EQ(test, HGHCA_CMD_SLOT_FREE, commands_slot(fake, token)->state);
}

static enum fake_end commands_no_interrupt(struct fake *fake, const struct fake_command *cmd,
					   struct fake_answer *answer)
{
	answer->status = 0x06;
	answer->no_interrupt = true;
	return FAKE_ANSWERED;
}

/* The EQE is there: the command has ended, and the device goes on. */
static void commands_lost_interrupt(struct kunit *test)
{
	struct fake *fake = test->priv;

	commands_hurry(fake);
	fake->answer = commands_no_interrupt;
	KUNIT_EXPECT_EQ(test, -EBUSY, hghca_cmd_nop(fake->hdev));
	KUNIT_EXPECT_FALSE(test, hghca_dev_has_failed(fake->hdev));
	fake->hdev->cmd.timeout_ms = 60 * MSEC_PER_SEC;
	fake->answer = NULL;
	KUNIT_EXPECT_EQ(test, 0, hghca_cmd_nop(fake->hdev));
}

/* A command's end is told before it is: by the EQE of the one that had its slot before. */
static enum fake_end commands_answer_twice(struct fake *fake, const struct fake_command *cmd,
					   struct fake_answer *answer)
{
	u16 *before = fake->priv;

	fake_cmd_event(fake, *before, 0x03, 0xbad, true);
	answer->out_param = 0x600d;
	return FAKE_ANSWERED;
}

static void commands_duplicate_completion(struct kunit *test)
{
	struct hghca_cmd cmd = { .op = HGHCA_CMD_NOP, .in_modifier = 0x1f };
	struct fake *fake = test->priv;
	struct hghca_cmd_slot *slot;
	u32 mark = fake_mark(fake);
	u16 token;

	KUNIT_ASSERT_EQ(test, 0, hghca_cmd_nop(fake->hdev));
	token = fake_nth(fake, mark)->token;
	slot = commands_slot(fake, token);

	/* With nobody under way: the slot stays free. */
	fake_cmd_event(fake, token, 0, 0, true);
	KUNIT_EXPECT_EQ(test, HGHCA_CMD_SLOT_FREE, slot->state);

	/* While the slot is another command's: that one's own end counts. */
	fake->priv = &token;
	fake->answer = commands_answer_twice;
	KUNIT_EXPECT_EQ(test, 0, hghca_cmd_exec(fake->hdev, &cmd));
	KUNIT_EXPECT_EQ(test, 0x600d, cmd.out_param);
	KUNIT_EXPECT_PTR_EQ(test, slot, commands_slot(fake, fake_nth(fake, mark + 1)->token));
	KUNIT_EXPECT_EQ(test, 0, down_trylock(&fake->hdev->cmd.event_sem));
	up(&fake->hdev->cmd.event_sem);
	KUNIT_EXPECT_EQ(test, HGHCA_CMD_SLOTS, fake->hdev->cmd.event_sem.count);
}

static void commands_unknown_token(struct kunit *test)
{
	struct fake *fake = test->priv;
	u32 token;

	/* One of every slot, of a time to come; and the one that polling uses. */
	for (token = 0x7770; token < 0x7780; token++)
		fake_cmd_event(fake, token, 0, 0, true);
	fake_cmd_event(fake, 0xffff, 0, 0, true);
	for (token = 0; token < HGHCA_CMD_SLOTS; token++)
		KUNIT_EXPECT_EQ(test, HGHCA_CMD_SLOT_FREE, fake->hdev->cmd.slots[token].state);
	KUNIT_EXPECT_EQ(test, 0, hghca_cmd_nop(fake->hdev));
	KUNIT_EXPECT_EQ(test, HGHCA_CMD_SLOTS, fake->hdev->cmd.event_sem.count);
}

/* A token rests for a whole round before it comes back. */
static void commands_token_reuse(struct kunit *test)
{
	unsigned long *seen = kunit_kzalloc(test, BITS_TO_LONGS(65536) * sizeof(long), GFP_KERNEL);
	struct fake *fake = test->priv;
	u32 mark = fake_mark(fake);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, seen);
	for (i = 0; i < COMMANDS_TOKENS; i++) {
		u16 token;

		KUNIT_ASSERT_EQ(test, 0, hghca_cmd_nop(fake->hdev));
		token = fake_nth(fake, mark + i)->token;
		KUNIT_ASSERT_FALSE_MSG(test, test_and_set_bit(token, seen), "%#x again", token);
	}
}

/* The token that polled commands carry is no command's by event. */
static void commands_token_of_polling(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct hghca_cmd_if *ci = &fake->hdev->cmd;
	u32 mark = fake_mark(fake);
	int i;

	for (i = 0; i < HGHCA_CMD_SLOTS - 1; i++)
		ci->slots[i].state = HGHCA_CMD_SLOT_LOST;
	ci->next_gen = 0x0fff;	/* which gives 0xffff in the last slot */
	KUNIT_EXPECT_EQ(test, 0, hghca_cmd_nop(fake->hdev));
	KUNIT_ASSERT_NOT_NULL(test, fake_nth(fake, mark));
	KUNIT_EXPECT_EQ(test, 0x000f, fake_nth(fake, mark)->token);
	for (i = 0; i < HGHCA_CMD_SLOTS - 1; i++)
		ci->slots[i].state = HGHCA_CMD_SLOT_FREE;
}

/* ------------------------------------------------------------------ */
/* Many at a time                                                       */

struct commands_caller {
	struct fake *fake;
	struct hghca_cmd cmd;
	int err;
	struct completion done;
};

static int commands_call(void *data)
{
	struct commands_caller *caller = data;

	caller->err = hghca_cmd_exec(caller->fake->hdev, &caller->cmd);
	complete(&caller->done);
	return 0;
}

static struct commands_caller *commands_callers(struct kunit *test, struct fake *fake, int count)
{
	struct commands_caller *callers;
	int i;

	callers = kunit_kcalloc(test, count, sizeof(*callers), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, callers);
	for (i = 0; i < count; i++) {
		callers[i].fake = fake;
		callers[i].err = 1;
		callers[i].cmd.op = HGHCA_CMD_NOP;
		callers[i].cmd.in_param = 0x1000 + i;
		init_completion(&callers[i].done);
	}
	return callers;
}

static struct commands_caller *commands_call_many(struct kunit *test, struct fake *fake, int count)
{
	struct commands_caller *callers = commands_callers(test, fake, count);
	struct task_struct *thread;
	int i;

	for (i = 0; i < count; i++) {
		thread = kthread_run(commands_call, &callers[i], "hghca-kunit-%d", i);
		KUNIT_ASSERT_FALSE(test, IS_ERR(thread));
	}
	return callers;
}

static void commands_join(struct kunit *test, struct commands_caller *callers, int count)
{
	int i;

	for (i = 0; i < count; i++)
		KUNIT_ASSERT_NE(test, 0, wait_for_completion_timeout(&callers[i].done, 30 * HZ));
}

/* All slots busy, ends told last first, each with its own answer; then the rest. */
static void commands_many(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct commands_caller *callers;
	u32 mark = fake_mark(fake);
	u32 i, j;

	fake->answer = commands_silent;
	callers = commands_call_many(test, fake, COMMANDS_MANY);
	KUNIT_ASSERT_TRUE(test, fake_wait(fake, mark + HGHCA_CMD_SLOTS));
	msleep(50);
	/* No more than there are slots; and each with a token of its own. */
	KUNIT_EXPECT_EQ(test, mark + HGHCA_CMD_SLOTS, fake_mark(fake));
	for (i = 0; i < HGHCA_CMD_SLOTS; i++)
		for (j = 0; j < i; j++)
			KUNIT_EXPECT_NE(test, fake_nth(fake, mark + i)->token,
					fake_nth(fake, mark + j)->token);

	for (i = HGHCA_CMD_SLOTS; i-- > 0;) {
		struct fake_command *seen = fake_nth(fake, mark + i);

		fake_cmd_event(fake, seen->token, 0, ~seen->in_param, true);
	}
	KUNIT_ASSERT_TRUE(test, fake_wait(fake, mark + COMMANDS_MANY));
	for (i = HGHCA_CMD_SLOTS; i < COMMANDS_MANY; i++) {
		struct fake_command *seen = fake_nth(fake, mark + i);

		fake_cmd_event(fake, seen->token, 0, ~seen->in_param, true);
	}
	commands_join(test, callers, COMMANDS_MANY);
	for (i = 0; i < COMMANDS_MANY; i++) {
		KUNIT_EXPECT_EQ(test, 0, callers[i].err);
		KUNIT_EXPECT_EQ(test, ~(0x1000ULL + i), callers[i].cmd.out_param);
	}
	KUNIT_EXPECT_EQ(test, HGHCA_CMD_SLOTS, fake->hdev->cmd.event_sem.count);
}

/* Those under way end at once when the device is given up, and so do those that wait. */
static void commands_given_up(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct commands_caller *callers;
	u32 mark = fake_mark(fake);
	int i;

	fake->answer = commands_silent;
	callers = commands_call_many(test, fake, COMMANDS_MANY);
	KUNIT_ASSERT_TRUE(test, fake_wait(fake, mark + HGHCA_CMD_SLOTS));
	hghca_dev_fail(fake->hdev, "a test");
	commands_join(test, callers, COMMANDS_MANY);
	for (i = 0; i < COMMANDS_MANY; i++)
		KUNIT_EXPECT_EQ(test, -EIO, callers[i].err);
	KUNIT_EXPECT_EQ(test, HGHCA_CMD_SLOTS, fake->hdev->cmd.event_sem.count);
}

/* Wait until somebody waits for the HCR. */
static bool commands_hcr_is_wanted(struct fake *fake)
{
	unsigned long end = jiffies + 10 * HZ;

	while (!kernels_mutex_is_wanted(&fake->hdev->cmd.hcr_lock)) {
		if (time_after(jiffies, end))
			return false;
		msleep(20);
	}
	return true;
}

/*
 * Who slept for the HCR as the device was given up posts nothing: its mailbox is
 * freed next, and the device might get at it after its reset.
 */
static void commands_given_up_waiting(struct kunit *test)
{
	struct fake *fake = commands_in_mode(test);
	struct commands_caller *caller = commands_callers(test, fake, 1);
	u32 mark = fake_mark(fake);
	struct task_struct *thread;

	/* Nothing is allocated under the lock. */
	thread = kthread_create(commands_call, caller, "hghca-kunit");
	KUNIT_ASSERT_FALSE(test, IS_ERR(thread));
	mutex_lock(&fake->hdev->cmd.hcr_lock);
	wake_up_process(thread);
	KUNIT_EXPECT_TRUE(test, commands_hcr_is_wanted(fake));
	hghca_dev_fail(fake->hdev, "a test");
	mutex_unlock(&fake->hdev->cmd.hcr_lock);
	commands_join(test, caller, 1);
	KUNIT_EXPECT_EQ(test, -EIO, caller->err);
	KUNIT_EXPECT_EQ(test, mark, fake_mark(fake));
}

/* A reset clears the HCR, which reads as success to who polls it. */
static void commands_given_up_polled(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct commands_caller *caller;
	u32 mark = fake_mark(fake);

	fake->answer = commands_stuck;
	caller = commands_call_many(test, fake, 1);
	KUNIT_ASSERT_TRUE(test, fake_wait(fake, mark + 1));
	hghca_dev_fail(fake->hdev, "a test");
	memset(fake->regs + 0x80000, 0, 0x1c);
	commands_join(test, caller, 1);
	KUNIT_EXPECT_EQ(test, -EIO, caller->err);
}

static void commands_take_slots(struct fake *fake)
{
	int i;

	for (i = 0; i < HGHCA_CMD_SLOTS; i++)
		down(&fake->hdev->cmd.event_sem);
}

static void commands_give_slots(struct fake *fake)
{
	int i;

	for (i = 0; i < HGHCA_CMD_SLOTS; i++)
		up(&fake->hdev->cmd.event_sem);
}

/* Others have all slots, for longer than a command may take: that is no fault of the device. */
static void commands_no_slot(struct kunit *test)
{
	const unsigned long longer = msecs_to_jiffies(3 * FAKE_TIMEOUT_MS / 2);
	struct fake *fake = test->priv;
	struct commands_caller *caller;

	commands_hurry(fake);
	commands_take_slots(fake);
	caller = commands_call_many(test, fake, 1);
	KUNIT_EXPECT_EQ(test, 0, wait_for_completion_timeout(&caller->done, longer));
	KUNIT_EXPECT_FALSE(test, hghca_dev_has_failed(fake->hdev));
	commands_give_slots(fake);
	KUNIT_ASSERT_NE(test, 0, wait_for_completion_timeout(&caller->done, 30 * HZ));
	KUNIT_EXPECT_EQ(test, 0, caller->err);
}

/* ... but of a device that was given up none comes back. */
static void commands_no_slot_given_up(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct commands_caller *caller;

	commands_hurry(fake);
	commands_take_slots(fake);
	caller = commands_call_many(test, fake, 1);
	hghca_dev_fail(fake->hdev, "a test");
	commands_join(test, caller, 1);
	KUNIT_EXPECT_EQ(test, -EIO, caller->err);
	commands_give_slots(fake);
}

static struct kunit_case commands_cases[] = {
	KUNIT_CASE_PARAM(commands_status_polled, commands_status_gen_params),
	KUNIT_CASE_PARAM(commands_status_by_event, commands_status_gen_params),
	KUNIT_CASE_PARAM(commands_registers, commands_mode_gen_params),
	KUNIT_CASE(commands_used_words),
	KUNIT_CASE(commands_kept_words),
	KUNIT_CASE_PARAM(commands_mailbox_in, commands_mode_gen_params),
	KUNIT_CASE_PARAM(commands_mailbox_out, commands_mode_gen_params),
	KUNIT_CASE(commands_mailbox_is_zeroed),
	KUNIT_CASE(commands_are_in_order),
	KUNIT_CASE(commands_mailbox_is_kept),
	KUNIT_CASE_PARAM(commands_typed, typed_gen_params),
	KUNIT_CASE_PARAM(commands_typed_refused, typed_gen_params),
	KUNIT_CASE_PARAM(commands_typed_given_up, typed_gen_params),
	KUNIT_CASE_PARAM(commands_start_qp, commands_mode_gen_params),
	KUNIT_CASE(commands_stats),
	KUNIT_CASE_PARAM(commands_time_out, commands_mode_gen_params),
	KUNIT_CASE(commands_hcr_stuck),
	KUNIT_CASE(commands_event_stuck),
	KUNIT_CASE_PARAM(commands_gone_before, commands_mode_gen_params),
	KUNIT_CASE_PARAM(commands_gone_meanwhile, commands_mode_gen_params),
	KUNIT_CASE_PARAM(commands_device_is_reset, commands_mode_gen_params),
	KUNIT_CASE(commands_device_was_reset_sync),
	KUNIT_CASE_PARAM(commands_test_recorded, commands_recorded_gen_params),
	KUNIT_CASE(commands_recorded_bad_sys_state),
	KUNIT_CASE(commands_recorded_given_up),
	KUNIT_CASE(commands_record_is_set),
	KUNIT_CASE(commands_record_refused),
	KUNIT_CASE_PARAM(commands_given_up_waiting, commands_mode_gen_params),
	KUNIT_CASE(commands_given_up_polled),
	{}
};

static struct kunit_suite commands_suite = {
	.name = "hghca_commands",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = fake_test_init,
	.test_cases = commands_cases,
};

static struct kunit_case command_events_cases[] = {
	KUNIT_CASE(commands_given_up_completion),
	KUNIT_CASE(commands_late_completion),
	KUNIT_CASE(commands_lost_interrupt),
	KUNIT_CASE(commands_duplicate_completion),
	KUNIT_CASE(commands_unknown_token),
	KUNIT_CASE(commands_token_reuse),
	KUNIT_CASE(commands_token_of_polling),
	KUNIT_CASE(commands_many),
	KUNIT_CASE(commands_given_up),
	KUNIT_CASE(commands_no_slot),
	KUNIT_CASE(commands_no_slot_given_up),
	KUNIT_CASE(commands_device_was_reset),
	{}
};

static struct kunit_suite command_events_suite = {
	.name = "hghca_command_events",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = fake_test_init_events,
	.test_cases = command_events_cases,
};

kunit_test_suites(&commands_suite, &command_events_suite);
