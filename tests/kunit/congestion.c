// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of the settings of congestion control (interface document, 4.26):
 * a file in sysfs for each, what the device is asked and told, byte by byte.
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
static const struct congestion_file {
	const char *name;
	u8 offset;
	u8 size;
	u32 bit;	/* of flags; 0: the value is all of the field */
} congestion_files[] = {
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

static void congestion_file_name(const struct congestion_file *file, char *desc)
{
	strscpy(desc, file->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(congestion_file, congestion_files, congestion_file_name);

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
	return 0;
}

static struct device_attribute *congestion_attr(const char *name)
{
	struct attribute **attr;

	for (attr = hghca_attr_group.attrs; *attr; attr++)
		if (!strcmp((*attr)->name, name))
			return container_of(*attr, struct device_attribute, attr);
	return NULL;
}

static ssize_t congestion_show(struct congestion *this, const char *name, char *buf)
{
	struct device_attribute *attr = congestion_attr(name);

	return attr ? attr->show(&this->fake->hdev->ibdev.dev, attr, buf) : -ENOENT;
}

static ssize_t congestion_store(struct congestion *this, const char *name, const char *text)
{
	struct device_attribute *attr = congestion_attr(name);

	if (!attr)
		return -ENOENT;
	return attr->store(&this->fake->hdev->ibdev.dev, attr, text, strlen(text));
}

/* What the device holds for a file. */
static u32 congestion_value(const struct congestion *this, const struct congestion_file *file)
{
	u32 value = file->size == 1 ? this->settings[file->offset] :
				      be32_at(this->settings, file->offset);

	return file->bit ? !!(value & file->bit) : value;
}

static void congestion_test_show(struct kunit *test)
{
	const struct congestion_file *param = test->param_value;
	struct congestion *this = test->priv;
	u32 mark = fake_mark(this->fake);
	char *buf = (char *)get_zeroed_page(GFP_KERNEL);
	char expected[16];
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	for (i = 0; i < 2; i++) {
		snprintf(expected, sizeof(expected), "%u\n", congestion_value(this, param));
		KUNIT_EXPECT_EQ(test, strlen(expected), congestion_show(this, param->name, buf));
		KUNIT_EXPECT_STREQ(test, expected, buf);
		KUNIT_EXPECT_EQ(test, mark + i + 1, fake_mark(this->fake));
		KUNIT_EXPECT_EQ(test, CONGESTION_QUERY, fake_nth(this->fake, mark + i)->op);
		KUNIT_EXPECT_EQ(test, 1, fake_nth(this->fake, mark + i)->in_modifier);
		/* Once more, with each bit the other way. */
		for (u32 at = 0; at < CONGESTION_BYTES; at++)
			this->settings[at] = ~this->settings[at];
	}
	this->refused = CONGESTION_QUERY;
	KUNIT_EXPECT_EQ(test, -EINVAL, congestion_show(this, param->name, buf));
	free_page((unsigned long)buf);
}

/* All settings go back as they came, but for the one. */
static void congestion_test_store(struct kunit *test)
{
	const struct congestion_file *param = test->param_value;
	struct congestion *this = test->priv;
	static const struct {
		const char *text;
		u32 value;
	} rows[] = {
		{ "0\n", 0 }, { "1", 1 }, { "0xfe\n", 0xfe }, { "255", 255 },
		{ "305419896\n", 0x12345678 }, { "4294967295", U32_MAX },
	};
	u8 expected[CONGESTION_BYTES];
	u32 largest = param->bit ? 1 : param->size == 1 ? U8_MAX : U32_MAX;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows) && rows[i].value <= largest; i++) {
		u32 mark = fake_mark(this->fake);
		struct fake_command *set;

		memcpy(expected, this->settings, sizeof(expected));
		if (param->size == 1)
			expected[param->offset] = rows[i].value;
		else if (!param->bit)
			*(__be32 *)&expected[param->offset] = cpu_to_be32(rows[i].value);
		else
			expected[3] = (expected[3] & ~param->bit) |
				      (rows[i].value ? param->bit : 0);

		KUNIT_EXPECT_EQ(test, strlen(rows[i].text),
				congestion_store(this, param->name, rows[i].text));
		KUNIT_ASSERT_EQ(test, mark + 2, fake_mark(this->fake));
		KUNIT_EXPECT_EQ(test, CONGESTION_QUERY, fake_nth(this->fake, mark)->op);
		set = fake_nth(this->fake, mark + 1);
		KUNIT_EXPECT_EQ(test, CONGESTION_SET, set->op);
		KUNIT_EXPECT_EQ(test, 0, set->op_modifier);
		KUNIT_EXPECT_EQ(test, 1, set->in_modifier);
		KUNIT_EXPECT_MEMEQ(test, expected, set->mailbox, CONGESTION_BYTES);
		KUNIT_EXPECT_NULL(test, memchr_inv(set->mailbox + CONGESTION_BYTES, 0,
						   HGHCA_MAILBOX_SIZE - CONGESTION_BYTES));
	}
}

/* What is no number, or none of the field's size, does not reach the device. */
static void congestion_test_text(struct kunit *test)
{
	const struct congestion_file *param = test->param_value;
	static const char * const texts[] = { "", "\n", "-1", "yes", "1 2", "0x", "1.5" };
	struct congestion *this = test->priv;
	u32 mark = fake_mark(this->fake);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(texts); i++)
		KUNIT_EXPECT_EQ_MSG(test, -EINVAL, congestion_store(this, param->name, texts[i]),
				    "'%s'", texts[i]);
	KUNIT_EXPECT_EQ(test, -ERANGE, congestion_store(this, param->name, "4294967296"));
	if (param->size == 1)
		KUNIT_EXPECT_EQ(test, -EINVAL, congestion_store(this, param->name, "256"));
	if (param->bit)
		KUNIT_EXPECT_EQ(test, -EINVAL, congestion_store(this, param->name, "2"));
	KUNIT_EXPECT_EQ(test, mark, fake_mark(this->fake));
}

/* The ranges are the device's: its refusal is passed on. */
static void congestion_refused(struct kunit *test)
{
	struct congestion *this = test->priv;
	u32 mark = fake_mark(this->fake);

	this->refused = CONGESTION_SET;
	KUNIT_EXPECT_EQ(test, -EINVAL, congestion_store(this, "congestion_threshold", "32"));
	KUNIT_EXPECT_EQ(test, mark + 2, fake_mark(this->fake));

	this->refused = CONGESTION_QUERY;
	KUNIT_EXPECT_EQ(test, -EINVAL, congestion_store(this, "congestion_threshold", "5"));
	/* What is not known is not set. */
	KUNIT_EXPECT_EQ(test, mark + 3, fake_mark(this->fake));

	this->refused = 0;
	KUNIT_EXPECT_EQ(test, 1, congestion_store(this, "congestion_threshold", "5"));
}

/* The files are those of the document, for everybody to read and for root to write. */
static void congestion_visible(struct kunit *test)
{
	struct congestion *this = test->priv;
	struct kobject *kobj = &this->fake->hdev->ibdev.dev.kobj;
	struct attribute **attr;
	u32 i, files = 0;

	for (i = 0; i < ARRAY_SIZE(congestion_files); i++)
		KUNIT_EXPECT_NOT_NULL(test, congestion_attr(congestion_files[i].name));
	for (attr = hghca_attr_group.attrs; *attr; attr++) {
		bool ours = strstarts((*attr)->name, "congestion_");

		files += ours;
		this->fake->hdev->limits.caps |= CONGESTION_CAP;
		KUNIT_EXPECT_EQ(test, ours ? 0644 : 0444,
				hghca_attr_group.is_visible(kobj, *attr, 0));
		this->fake->hdev->limits.caps &= ~CONGESTION_CAP;
		KUNIT_EXPECT_EQ(test, ours ? 0 : 0444,
				hghca_attr_group.is_visible(kobj, *attr, 0));
	}
	KUNIT_EXPECT_EQ(test, ARRAY_SIZE(congestion_files), files);
}

struct congestion_writer {
	struct congestion *this;
	const char *name;
	int failed;
	u32 last;
	struct completion done;
};

static int congestion_write(void *data)
{
	struct congestion_writer *writer = data;
	char text[16];
	u32 i;

	for (i = 1; i <= CONGESTION_ROUNDS; i++) {
		snprintf(text, sizeof(text), "%u", i);
		if (congestion_store(writer->this, writer->name, text) != strlen(text))
			writer->failed++;
		writer->last = i;
	}
	complete(&writer->done);
	return 0;
}

/* One who writes a file does not undo what another writes to another. */
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
		writers[i].name = congestion_files[6 + i].name;
		init_completion(&writers[i].done);
		thread = kthread_run(congestion_write, &writers[i], "hghca-kunit-%u", i);
		KUNIT_ASSERT_FALSE(test, IS_ERR(thread));
	}
	for (i = 0; i < 4; i++)
		KUNIT_ASSERT_NE(test, 0, wait_for_completion_timeout(&writers[i].done, 60 * HZ));
	for (i = 0; i < 4; i++) {
		KUNIT_EXPECT_EQ(test, 0, writers[i].failed);
		KUNIT_EXPECT_EQ(test, CONGESTION_ROUNDS,
				congestion_value(this, &congestion_files[6 + i]));
	}
	/* Each asked and set with nobody between. */
	KUNIT_EXPECT_EQ(test, mark + 8 * CONGESTION_ROUNDS, fake_mark(this->fake));
	for (i = fake_mark(this->fake) - 32; i < fake_mark(this->fake); i++)
		KUNIT_EXPECT_EQ(test, (i - mark) % 2 ? CONGESTION_SET : CONGESTION_QUERY,
				fake_nth(this->fake, i)->op);
}

static struct kunit_case congestion_cases[] = {
	KUNIT_CASE_PARAM(congestion_test_show, congestion_file_gen_params),
	KUNIT_CASE_PARAM(congestion_test_store, congestion_file_gen_params),
	KUNIT_CASE_PARAM(congestion_test_text, congestion_file_gen_params),
	KUNIT_CASE(congestion_refused),
	KUNIT_CASE(congestion_visible),
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
