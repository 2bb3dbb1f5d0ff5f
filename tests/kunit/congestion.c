// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of the settings of congestion control (interface document, 4.26):
 * a devlink parameter for each, and the commands for them, byte by byte.
 */
#include <linux/completion.h>
#include <linux/kthread.h>

#include "fake.h"

#define CONGESTION_CAP		BIT(20)
#define CONGESTION_BYTES	0x40
#define CONGESTION_SET		0xe0c
#define CONGESTION_QUERY	0xe0d
#define CONGESTION_ROUNDS	20

struct congestion {
	struct fake *fake;
	u8 settings[CONGESTION_BYTES];	/* of the device */
	u16 refused;			/* opcode */
};

/* The document's table; the places are those of struct hghca_congestion. */
static const struct congestion_param {
	const char *name;
	u8 offset;
	u8 size;
	u32 bit;	/* of flags; 0: the value is all of the field */
} congestion_params[] = {
	{ "congestion_react", 0x00, 4, BIT(0) },
	{ "congestion_notify", 0x00, 4, BIT(1) },
	{ "congestion_cnp_interval", 0x04, 4 },
	{ "congestion_cnp_dscp", 0x08, 1 },
	{ "congestion_cnp_priority", 0x09, 1 },
	{ "congestion_threshold", 0x0a, 1 },
	{ "congestion_gain", 0x0c, 4 },
	{ "congestion_alpha_period", 0x10, 4 },
	{ "congestion_decrease_period", 0x14, 4 },
	{ "congestion_increase_period", 0x18, 4 },
	{ "congestion_increase_bytes", 0x1c, 4 },
	{ "congestion_additive", 0x20, 4 },
	{ "congestion_hyper", 0x24, 4 },
	{ "congestion_min_rate", 0x28, 4 },
};

static void congestion_param_name(const struct congestion_param *param, char *desc)
{
	strscpy(desc, param->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(congestion_param, congestion_params, congestion_param_name);

static enum fake_end congestion_answer(struct fake *fake, const struct fake_command *cmd,
				       struct fake_answer *answer)
{
	struct congestion *this = fake->priv;

	if (cmd->op == this->refused)
		answer->status = 0x03;
	else if (cmd->op == CONGESTION_QUERY)
		memcpy(fake->out, this->settings, CONGESTION_BYTES);
	else if (cmd->op == CONGESTION_SET)
		memcpy(this->settings, cmd->mailbox, CONGESTION_BYTES);
	return FAKE_ANSWERED;
}

static void congestion_set_up(struct fake *fake)
{
	fake->limits.caps |= cpu_to_be32(CONGESTION_CAP);
}

static void congestion_unregister(void *hdev)
{
	hghca_devlink_unregister(hdev);
}

static int congestion_init(struct kunit *test)
{
	struct congestion *this = kunit_kzalloc(test, sizeof(*this), GFP_KERNEL);
	int err;
	u32 i;

	if (!this)
		return -ENOMEM;
	err = fake_test_open(test, congestion_set_up, false);
	if (err)
		return err;
	this->fake = test->priv;
	/* Each byte another. */
	for (i = 0; i < CONGESTION_BYTES; i++)
		this->settings[i] = 0x81 + 3 * i;
	this->fake->priv = this;
	this->fake->answer = congestion_answer;
	test->priv = this;
	err = hghca_devlink_register(this->fake->hdev);
	if (err)
		return err;
	return kunit_add_action_or_reset(test, congestion_unregister, this->fake->hdev);
}

static const struct devlink_param *congestion_find(const char *name)
{
	u32 i;

	for (i = 0; i < HGHCA_DEVLINK_PARAMS; i++)
		if (!strcmp(hghca_devlink_params[i].param.name, name))
			return &hghca_devlink_params[i].param;
	return NULL;
}

/* As devlink calls it, with its lock. */
static int congestion_call(struct congestion *this, const char *name, bool set,
			   struct devlink_param_gset_ctx *ctx)
{
	const struct devlink_param *param = congestion_find(name);
	struct devlink *devlink = this->fake->hdev->devlink;
	struct netlink_ext_ack extack = {};
	int err;

	if (!param || !devlink)
		return -ENOENT;
	ctx->cmode = DEVLINK_PARAM_CMODE_RUNTIME;
	devl_lock(devlink);
	err = (set ? param->set : param->get)(devlink, param->id, ctx, &extack);
	devl_unlock(devlink);
	/* A reason for each failure, and for nothing else. */
	return !err == !extack._msg ? err : -EPROTO;
}

static u32 congestion_largest(const struct congestion_param *param)
{
	return param->bit ? 1 : param->size == 1 ? U8_MAX : U32_MAX;
}

/* The value is in the member of the parameter's type, and the others are left alone. */
static void congestion_fill(const struct congestion_param *param, u32 value,
			    struct devlink_param_gset_ctx *ctx)
{
	memset(ctx, 0x5a, sizeof(*ctx));
	if (param->bit)
		ctx->val.vbool = value;
	else if (param->size == 1)
		ctx->val.vu8 = value;
	else
		ctx->val.vu32 = value;
}

static int congestion_set(struct congestion *this, const struct congestion_param *param, u32 value)
{
	struct devlink_param_gset_ctx ctx;

	congestion_fill(param, value, &ctx);
	return congestion_call(this, param->name, true, &ctx);
}

/* What the device holds for a parameter. */
static u32 congestion_value(const struct congestion *this, const struct congestion_param *param)
{
	u32 value = param->size == 1 ? this->settings[param->offset] :
				       be32_at(this->settings, param->offset);

	return param->bit ? !!(value & param->bit) : value;
}

static void congestion_test_get(struct kunit *test)
{
	const struct congestion_param *param = test->param_value;
	struct devlink_param_gset_ctx expected, found;
	struct congestion *this = test->priv;
	u32 mark = fake_mark(this->fake);
	u32 i;

	for (i = 0; i < 2; i++) {
		congestion_fill(param, congestion_value(this, param), &expected);
		expected.cmode = DEVLINK_PARAM_CMODE_RUNTIME;
		memset(&found, 0x5a, sizeof(found));
		KUNIT_EXPECT_EQ(test, 0, congestion_call(this, param->name, false, &found));
		KUNIT_EXPECT_MEMEQ(test, &expected.val, &found.val, sizeof(found.val));
		KUNIT_EXPECT_EQ(test, mark + i + 1, fake_mark(this->fake));
		KUNIT_EXPECT_EQ(test, CONGESTION_QUERY, fake_nth(this->fake, mark + i)->op);
		KUNIT_EXPECT_EQ(test, 1, fake_nth(this->fake, mark + i)->in_modifier);
		/* Once more, with each bit the other way. */
		for (u32 at = 0; at < CONGESTION_BYTES; at++)
			this->settings[at] = ~this->settings[at];
	}
	this->refused = CONGESTION_QUERY;
	KUNIT_EXPECT_EQ(test, -EINVAL, congestion_call(this, param->name, false, &found));
}

/* All settings go back as they came, but for the one. */
static void congestion_test_set(struct kunit *test)
{
	const struct congestion_param *param = test->param_value;
	struct congestion *this = test->priv;
	static const u32 values[] = { 0, 1, 0xfe, 0xff, 0x12345678, U32_MAX };
	u8 expected[CONGESTION_BYTES];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(values) && values[i] <= congestion_largest(param); i++) {
		u32 mark = fake_mark(this->fake);
		struct fake_command *set;

		memcpy(expected, this->settings, sizeof(expected));
		if (param->size == 1)
			expected[param->offset] = values[i];
		else if (!param->bit)
			*(__be32 *)&expected[param->offset] = cpu_to_be32(values[i]);
		else
			expected[3] = (expected[3] & ~param->bit) | (values[i] ? param->bit : 0);

		KUNIT_EXPECT_EQ(test, 0, congestion_set(this, param, values[i]));
		KUNIT_ASSERT_EQ(test, mark + 2, fake_mark(this->fake));
		KUNIT_EXPECT_EQ(test, CONGESTION_QUERY, fake_nth(this->fake, mark)->op);
		set = fake_nth(this->fake, mark + 1);
		KUNIT_EXPECT_EQ(test, CONGESTION_SET, set->op);
		KUNIT_EXPECT_EQ(test, 0, set->op_modifier);
		KUNIT_EXPECT_EQ(test, 1, set->in_modifier);
		KUNIT_EXPECT_MEMEQ(test, expected, set->mailbox, CONGESTION_BYTES);
	}
}

/* The type allows no value that the field does not have; all can be changed at any time. */
static void congestion_test_type(struct kunit *test)
{
	const struct congestion_param *param = test->param_value;
	const struct devlink_param *found = congestion_find(param->name);

	KUNIT_ASSERT_NOT_NULL(test, found);
	KUNIT_EXPECT_EQ(test, param->bit ? DEVLINK_PARAM_TYPE_BOOL :
			      param->size == 1 ? DEVLINK_PARAM_TYPE_U8 : DEVLINK_PARAM_TYPE_U32,
			found->type);
	KUNIT_EXPECT_EQ(test, BIT(DEVLINK_PARAM_CMODE_RUNTIME), found->supported_cmodes);
	KUNIT_EXPECT_FALSE(test, found->generic);
	KUNIT_EXPECT_GT(test, found->id, DEVLINK_PARAM_GENERIC_ID_MAX);
}

/* The ranges are the device's: its refusal is passed on. */
static void congestion_refused(struct kunit *test)
{
	const struct congestion_param *threshold = &congestion_params[5];
	struct congestion *this = test->priv;
	u32 mark = fake_mark(this->fake);

	this->refused = CONGESTION_SET;
	KUNIT_EXPECT_EQ(test, -EINVAL, congestion_set(this, threshold, 32));
	KUNIT_EXPECT_EQ(test, mark + 2, fake_mark(this->fake));

	this->refused = CONGESTION_QUERY;
	KUNIT_EXPECT_EQ(test, -EINVAL, congestion_set(this, threshold, 5));
	/* What is not known is not set. */
	KUNIT_EXPECT_EQ(test, mark + 3, fake_mark(this->fake));

	this->refused = 0;
	KUNIT_EXPECT_EQ(test, 0, congestion_set(this, threshold, 5));
}

/* A device that was given up has no settings. */
static void congestion_given_up(struct kunit *test)
{
	struct congestion *this = test->priv;
	struct devlink_param_gset_ctx ctx;
	u32 mark = fake_mark(this->fake);

	hghca_dev_fail(this->fake->hdev, "a test");
	KUNIT_EXPECT_EQ(test, -EIO, congestion_call(this, "congestion_gain", false, &ctx));
	KUNIT_EXPECT_EQ(test, -EIO, congestion_set(this, &congestion_params[6], 1));
	KUNIT_EXPECT_EQ(test, mark, fake_mark(this->fake));
}

/* The parameters are those of the document, and no others. */
static void congestion_complete(struct kunit *test)
{
	u32 i, k;

	KUNIT_EXPECT_EQ(test, ARRAY_SIZE(congestion_params), HGHCA_DEVLINK_PARAMS);
	for (i = 0; i < ARRAY_SIZE(congestion_params); i++)
		KUNIT_EXPECT_NOT_NULL(test, congestion_find(congestion_params[i].name));
	for (i = 0; i < HGHCA_DEVLINK_PARAMS; i++)
		for (k = 0; k < i; k++)
			KUNIT_EXPECT_NE(test, hghca_devlink_params[i].param.id,
					hghca_devlink_params[k].param.id);
}

/* Without congestion control there is an instance without parameters, again and again. */
static void congestion_none(struct kunit *test)
{
	struct congestion *this = test->priv;
	struct hghca_dev *hdev = this->fake->hdev;
	u32 mark = fake_mark(this->fake);
	u32 i;

	for (i = 0; i < 4; i++) {
		hghca_devlink_unregister(hdev);
		KUNIT_EXPECT_NULL(test, hdev->devlink);
		hdev->limits.caps ^= CONGESTION_CAP;
		KUNIT_ASSERT_EQ(test, 0, hghca_devlink_register(hdev));
		KUNIT_EXPECT_NOT_NULL(test, hdev->devlink);
	}
	KUNIT_EXPECT_EQ(test, mark, fake_mark(this->fake));
}

struct congestion_writer {
	struct congestion *this;
	const struct congestion_param *param;
	int failed;
	struct completion done;
};

static int congestion_write(void *data)
{
	struct congestion_writer *writer = data;
	u32 i;

	for (i = 1; i <= CONGESTION_ROUNDS; i++)
		if (congestion_set(writer->this, writer->param, i))
			writer->failed++;
	complete(&writer->done);
	return 0;
}

/* One who sets a parameter does not undo what another sets: devlink's lock is enough. */
static void congestion_together(struct kunit *test)
{
	struct congestion *this = test->priv;
	struct congestion_writer *writers = kunit_kcalloc(test, 4, sizeof(*writers), GFP_KERNEL);
	struct task_struct *thread;
	u32 mark = fake_mark(this->fake);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, writers);
	for (i = 0; i < 4; i++) {
		writers[i].this = this;
		writers[i].param = &congestion_params[6 + i];
		init_completion(&writers[i].done);
		thread = kthread_run(congestion_write, &writers[i], "hghca-kunit-%u", i);
		KUNIT_ASSERT_FALSE(test, IS_ERR(thread));
	}
	for (i = 0; i < 4; i++)
		KUNIT_ASSERT_NE(test, 0, wait_for_completion_timeout(&writers[i].done, 60 * HZ));
	for (i = 0; i < 4; i++) {
		KUNIT_EXPECT_EQ(test, 0, writers[i].failed);
		KUNIT_EXPECT_EQ(test, CONGESTION_ROUNDS,
				congestion_value(this, writers[i].param));
	}
	/* Each asked and set with nobody between. */
	KUNIT_EXPECT_EQ(test, mark + 8 * CONGESTION_ROUNDS, fake_mark(this->fake));
	for (i = fake_mark(this->fake) - 32; i < fake_mark(this->fake); i++)
		KUNIT_EXPECT_EQ(test, (i - mark) % 2 ? CONGESTION_SET : CONGESTION_QUERY,
				fake_nth(this->fake, i)->op);
}

static struct kunit_case congestion_cases[] = {
	KUNIT_CASE_PARAM(congestion_test_get, congestion_param_gen_params),
	KUNIT_CASE_PARAM(congestion_test_set, congestion_param_gen_params),
	KUNIT_CASE_PARAM(congestion_test_type, congestion_param_gen_params),
	KUNIT_CASE(congestion_refused),
	KUNIT_CASE(congestion_given_up),
	KUNIT_CASE(congestion_complete),
	KUNIT_CASE(congestion_none),
	KUNIT_CASE(congestion_together),
	{}
};

static struct kunit_suite congestion_suite = {
	.name = "hghca_congestion",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = congestion_init,
	.test_cases = congestion_cases,
};

kunit_test_suite(congestion_suite);
