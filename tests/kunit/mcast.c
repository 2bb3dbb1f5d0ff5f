// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of multicast groups (interface document, 4.18). The device here
 * keeps the table that the driver writes, and finds groups in it as the document
 * says: after every single command each group that should be there is there.
 */
#include "fake.h"

#define MCAST_ENTRIES	128	/* at most; half of them buckets */
#define MCAST_QPS	57	/* one more than a group takes */
#define MCAST_CHAIN	32

struct mcast_group {
	union ib_gid gid;
	u32 qpn;	/* of one of its QPs; 0: the group is not there */
};

struct mcast {
	struct fake *fake;
	u32 buckets;
	struct hghca_qp *qps;
	/* The device's table. */
	u8 entries[MCAST_ENTRIES][256];
	u32 writes;
	/* What it must find at any time, and whether it always has. */
	struct mcast_group groups[MCAST_ENTRIES];
	bool lost;
	/* What it answers to an opcode: the first so many are well, so many are refused. */
	u16 refused;
	u8 status;
	u32 well;
	u32 refusals;
	u64 hash;	/* instead of the bucket, when not 0 */
};

/* A group whose bucket is the last byte. */
static union ib_gid mcast_gid(u8 number, u8 bucket)
{
	return (union ib_gid) { .raw = { 0xff, 0x0e, [14] = number, [15] = bucket } };
}

static bool mcast_has(const u8 *entry, u32 qpn)
{
	u32 at;

	for (at = 0x20; at < 0x100; at += 4)
		if (be32_at(entry, at) == (BIT(31) | qpn))
			return true;
	return false;
}

/* The entry of a group, as the device looks for it; NULL: it finds none. */
static const u8 *mcast_find(const struct mcast *this, const union ib_gid *gid)
{
	u32 index = gid->raw[15];
	u32 n;

	for (n = 0; n < MCAST_CHAIN; n++) {
		const u8 *entry = this->entries[index];

		if (!memcmp(entry + 0x10, gid->raw, 16))
			return entry;
		index = be32_at(entry, 0);
		if (index < this->buckets || index >= 2 * this->buckets)
			return NULL;
	}
	return NULL;
}

static void mcast_check(struct mcast *this)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(this->groups); i++) {
		const u8 *entry;

		if (!this->groups[i].qpn)
			continue;
		entry = mcast_find(this, &this->groups[i].gid);
		if (!entry || !mcast_has(entry, this->groups[i].qpn))
			this->lost = true;
	}
}

static enum fake_end mcast_answer(struct fake *fake, const struct fake_command *cmd,
				  struct fake_answer *answer)
{
	struct mcast *this = fake->priv;

	if (cmd->op == this->refused && this->well) {
		this->well--;
	} else if (cmd->op == this->refused && this->refusals) {
		this->refusals--;
		answer->status = this->status;
		return FAKE_ANSWERED;
	}
	switch (cmd->op) {
	case 0x026:
		if (cmd->in_modifier >= 2 * this->buckets) {
			answer->status = 0x0a;
			break;
		}
		memcpy(this->entries[cmd->in_modifier], cmd->mailbox, 256);
		this->writes++;
		mcast_check(this);
		break;
	case 0x027:
		answer->out_param = this->hash ?: cmd->mailbox[15];
		break;
	}
	return FAKE_ANSWERED;
}

static void mcast_set_up_with(struct fake *fake, u8 log_mcgs, u8 qps_per_mcg)
{
	fake->limits.caps = cpu_to_be32(0xbff);
	fake->limits.log_max_mcgs = log_mcgs;
	fake->limits.qps_per_mcg = qps_per_mcg;
}

static void mcast_set_up(struct fake *fake)
{
	mcast_set_up_with(fake, 4, 56);
}

/* Of few QPs in each group. */
static void mcast_set_up_narrow(struct fake *fake)
{
	mcast_set_up_with(fake, 4, 3);
}

/* Of many groups. */
static void mcast_set_up_long(struct fake *fake)
{
	mcast_set_up_with(fake, 7, 56);
}

static int mcast_open(struct kunit *test, void (*set_up)(struct fake *fake))
{
	struct mcast *this = kunit_kzalloc(test, sizeof(*this), GFP_KERNEL);
	struct fake *fake;
	u32 i;
	int err;

	if (!this)
		return -ENOMEM;
	err = fake_test_open(test, set_up, false);
	if (err)
		return err;
	fake = test->priv;
	this->fake = fake;
	this->buckets = fake->hdev->limits.num_mcgs / 2;
	this->qps = kunit_kcalloc(test, MCAST_QPS, sizeof(*this->qps), GFP_KERNEL);
	if (!this->qps)
		return -ENOMEM;
	for (i = 0; i < MCAST_QPS; i++) {
		this->qps[i].ibqp.device = &fake->hdev->ibdev;
		this->qps[i].hw.qpn = 0x100 + i;
	}
	fake->priv = this;
	fake->answer = mcast_answer;
	test->priv = this;
	return 0;
}

static int mcast_init(struct kunit *test)
{
	return mcast_open(test, mcast_set_up);
}

static int mcast_attach(struct mcast *this, u32 qp, union ib_gid gid)
{
	return hghca_attach_mcast(&this->qps[qp].ibqp, &gid, 0);
}

static int mcast_detach(struct mcast *this, u32 qp, union ib_gid gid)
{
	return hghca_detach_mcast(&this->qps[qp].ibqp, &gid, 0);
}

/* The driver holds nothing, and the device finds nothing. */
static void mcast_expect_empty(struct kunit *test)
{
	struct mcast *this = test->priv;
	struct hghca_dev *hdev = this->fake->hdev;
	u32 i;

	KUNIT_EXPECT_TRUE(test, RB_EMPTY_ROOT(&hdev->mcast.groups));
	KUNIT_EXPECT_TRUE(test, xa_empty(&hdev->mcast.entries));
	fake_trim(hdev);
	KUNIT_EXPECT_EQ(test, 0, fake_icm_blocks(hdev, HGHCA_ICM_MCG));
	for (i = 0; i < this->buckets; i++)
		KUNIT_EXPECT_NULL(test, memchr_inv(this->entries[i], 0, 256));
}

/* ------------------------------------------------------------------ */
/* Entries                                                              */

static void mcast_first(struct kunit *test)
{
	struct mcast *this = test->priv;
	union ib_gid gid = mcast_gid(9, 5);
	u32 mark = fake_mark(this->fake);
	struct fake_command *cmd;
	u32 at;

	KUNIT_ASSERT_EQ(test, 0, mcast_attach(this, 3, gid));
	KUNIT_ASSERT_EQ(test, mark + 3, fake_mark(this->fake));
	cmd = fake_nth(this->fake, mark);
	KUNIT_EXPECT_EQ(test, 0x027, cmd->op);
	KUNIT_EXPECT_EQ(test, 0, cmd->op_modifier);
	KUNIT_EXPECT_EQ(test, 0, cmd->in_modifier);
	KUNIT_EXPECT_MEMEQ(test, gid.raw, cmd->mailbox, 16);
	KUNIT_EXPECT_EQ(test, 0xffa, fake_nth(this->fake, mark + 1)->op);
	cmd = fake_nth(this->fake, mark + 2);
	KUNIT_EXPECT_EQ(test, 0x026, cmd->op);
	KUNIT_EXPECT_EQ(test, 0, cmd->op_modifier);
	KUNIT_EXPECT_EQ(test, 5, cmd->in_modifier);
	for (at = 0; at < 0x10; at += 4)
		KUNIT_EXPECT_EQ(test, 0, be32_at(cmd->mailbox, at));
	KUNIT_EXPECT_MEMEQ(test, gid.raw, cmd->mailbox + 0x10, 16);
	KUNIT_EXPECT_EQ(test, 0x80000103, be32_at(cmd->mailbox, 0x20));
	KUNIT_EXPECT_NULL(test, memchr_inv(cmd->mailbox + 0x24, 0, 256 - 0x24));

	/* The core counts each success: a second one could not be undone. */
	mark = fake_mark(this->fake);
	KUNIT_EXPECT_EQ(test, -EINVAL, mcast_attach(this, 3, gid));
	KUNIT_EXPECT_EQ(test, -EINVAL, mcast_detach(this, 4, gid));
	KUNIT_EXPECT_EQ(test, -EINVAL, mcast_detach(this, 3, mcast_gid(8, 5)));
	KUNIT_EXPECT_EQ(test, mark, fake_mark(this->fake));

	KUNIT_EXPECT_EQ(test, 0, mcast_detach(this, 3, gid));
	mcast_expect_empty(test);
	KUNIT_EXPECT_EQ(test, -EINVAL, mcast_detach(this, 3, gid));
}

static void mcast_members_of(struct kunit *test, u32 max)
{
	struct mcast *this = test->priv;
	union ib_gid gid = mcast_gid(1, 0);
	u32 i;

	this->groups[0] = (struct mcast_group) { gid, 0 };
	for (i = 0; i < max; i++) {
		KUNIT_ASSERT_EQ(test, 0, mcast_attach(this, i, gid));
		this->groups[0].qpn = 0x100;
	}
	KUNIT_EXPECT_EQ(test, -ENOMEM, mcast_attach(this, max, gid));
	for (i = 0; i < max; i++)
		KUNIT_EXPECT_TRUE(test, mcast_has(this->entries[0], 0x100 + i));

	/* A place in the middle is another's next. */
	KUNIT_EXPECT_EQ(test, 0, mcast_detach(this, max / 2, gid));
	KUNIT_EXPECT_FALSE(test, mcast_has(this->entries[0], 0x100 + max / 2));
	KUNIT_EXPECT_EQ(test, 0, mcast_attach(this, max, gid));
	KUNIT_EXPECT_TRUE(test, mcast_has(this->entries[0], 0x100 + max));
	KUNIT_EXPECT_EQ(test, -ENOMEM, mcast_attach(this, max / 2, gid));
	KUNIT_EXPECT_EQ(test, 0, mcast_detach(this, max, gid));

	this->groups[0].qpn = 0x100 + max - 1;
	for (i = 0; i < max - 1; i++)
		if (i != max / 2)
			KUNIT_EXPECT_EQ(test, 0, mcast_detach(this, i, gid));
	this->groups[0].qpn = 0;
	if (max > 2)
		KUNIT_EXPECT_EQ(test, 0, mcast_detach(this, max - 1, gid));
	KUNIT_EXPECT_FALSE(test, this->lost);
	mcast_expect_empty(test);
}

static void mcast_members(struct kunit *test)
{
	mcast_members_of(test, 56);
}

/* A device whose groups are smaller. */
static void mcast_few_members(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, 0, mcast_open(test, mcast_set_up_narrow));
	mcast_members_of(test, 3);
}

/* ------------------------------------------------------------------ */
/* Chains                                                               */

static int mcast_join(struct mcast *this, u32 group, u8 bucket)
{
	union ib_gid gid = mcast_gid(group, bucket);
	int err = mcast_attach(this, group % MCAST_QPS, gid);

	if (!err)
		this->groups[group] = (struct mcast_group) { gid, 0x100 + group % MCAST_QPS };
	mcast_check(this);
	return err;
}

static int mcast_leave(struct mcast *this, u32 group)
{
	/* From here on it need not be there. */
	this->groups[group].qpn = 0;
	return mcast_detach(this, group % MCAST_QPS, this->groups[group].gid);
}

/* Four groups of one bucket, and one of another, taken away in every order. */
static void mcast_orders(struct kunit *test)
{
	struct mcast *this = test->priv;
	u32 order, left, i, n;

	KUNIT_ASSERT_EQ(test, 0, mcast_join(this, 9, 3));
	for (order = 0; order < 24; order++) {
		u8 there[4] = { 0, 1, 2, 3 };

		for (i = 0; i < 4; i++)
			KUNIT_ASSERT_EQ(test, 0, mcast_join(this, i, 6));
		for (left = 4, n = order; left; n /= left, left--) {
			i = n % left;
			KUNIT_EXPECT_EQ(test, 0, mcast_leave(this, there[i]));
			KUNIT_EXPECT_NULL(test, mcast_find(this, &this->groups[there[i]].gid));
			memmove(&there[i], &there[i + 1], 3 - i);
		}
		KUNIT_EXPECT_NULL(test, memchr_inv(this->entries[6], 0, 256));
	}
	KUNIT_EXPECT_FALSE(test, this->lost);
	KUNIT_EXPECT_EQ(test, 0, mcast_leave(this, 9));
	mcast_expect_empty(test);
}

/* One that comes back to a chain whose bucket has changed hands. */
static void mcast_come_and_go(struct kunit *test)
{
	struct mcast *this = test->priv;
	u32 seed = 1, i;

	for (i = 0; i < 2000; i++) {
		u32 group;

		seed = seed * 1664525 + 1013904223;
		group = seed >> 24 & 7;
		if (this->groups[group].qpn)
			KUNIT_ASSERT_EQ(test, 0, mcast_leave(this, group));
		else
			KUNIT_ASSERT_EQ(test, 0, mcast_join(this, group, group & 1));
		KUNIT_ASSERT_FALSE(test, this->lost);
	}
	for (i = 0; i < 8; i++)
		if (this->groups[i].qpn)
			KUNIT_EXPECT_EQ(test, 0, mcast_leave(this, i));
	mcast_expect_empty(test);
}

/* Eight entries for all chains: the bucket's own and those. */
static void mcast_no_entry(struct kunit *test)
{
	struct mcast *this = test->priv;
	u32 i;

	for (i = 0; i < 9; i++)
		KUNIT_ASSERT_EQ(test, 0, mcast_join(this, i, 2));
	KUNIT_EXPECT_EQ(test, -ENOMEM, mcast_join(this, 9, 2));
	/* Another bucket is free. */
	KUNIT_EXPECT_EQ(test, 0, mcast_join(this, 9, 1));
	KUNIT_EXPECT_EQ(test, -ENOMEM, mcast_join(this, 10, 1));
	KUNIT_EXPECT_EQ(test, 0, mcast_leave(this, 0));
	KUNIT_EXPECT_EQ(test, 0, mcast_join(this, 10, 1));
	KUNIT_EXPECT_FALSE(test, this->lost);
	for (i = 1; i <= 10; i++)
		KUNIT_EXPECT_EQ(test, 0, mcast_leave(this, i));
	mcast_expect_empty(test);
}

/* The device looks at 32 entries of a chain; what it would not find is not put there. */
static void mcast_long_chain(struct kunit *test)
{
	struct mcast *this;
	u32 i;

	KUNIT_ASSERT_EQ(test, 0, mcast_open(test, mcast_set_up_long));
	this = test->priv;
	for (i = 0; i < 32; i++)
		KUNIT_ASSERT_EQ(test, 0, mcast_join(this, i, 63));
	KUNIT_EXPECT_EQ(test, -ENOMEM, mcast_join(this, 32, 63));
	KUNIT_EXPECT_EQ(test, 0, mcast_join(this, 32, 62));
	KUNIT_EXPECT_FALSE(test, this->lost);
	for (i = 0; i < 33; i++)
		KUNIT_EXPECT_EQ(test, 0, mcast_leave(this, i));
	mcast_expect_empty(test);
}

/* ------------------------------------------------------------------ */
/* Commands that fail                                                   */

static const struct mcast_step {
	const char *name;
	u16 op;
	u32 well;
	bool second;	/* the group comes second to its bucket */
} mcast_steps[] = {
	{ "bucket", 0x027, 0, false },
	{ "memory", 0xffa, 0, false },
	{ "entry in the bucket", 0x026, 0, false },
	{ "bucket, second group", 0x027, 0, true },
	{ "entry, second group", 0x026, 0, true },
	{ "link to the second group", 0x026, 1, true },
};

static void mcast_step_name(const struct mcast_step *step, char *desc)
{
	strscpy(desc, step->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(mcast_step, mcast_steps, mcast_step_name);

static void mcast_refused(struct kunit *test)
{
	const struct mcast_step *step = test->param_value;
	struct mcast *this = test->priv;
	union ib_gid gid = mcast_gid(2, 4);

	if (step->second)
		KUNIT_ASSERT_EQ(test, 0, mcast_join(this, 1, 4));
	this->refused = step->op;
	this->well = step->well;
	this->refusals = 1;
	this->status = 0x08;
	KUNIT_EXPECT_EQ(test, -ENOMEM, mcast_attach(this, 2, gid));
	KUNIT_EXPECT_EQ(test, 0, this->refusals);
	KUNIT_EXPECT_NULL(test, mcast_find(this, &gid));
	KUNIT_EXPECT_EQ(test, -EINVAL, mcast_detach(this, 2, gid));

	KUNIT_EXPECT_EQ(test, 0, mcast_join(this, 2, 4));
	/* A further QP of a group that is there. */
	this->refusals = 1;
	this->refused = 0x026;
	this->well = 0;
	KUNIT_EXPECT_EQ(test, -ENOMEM, mcast_attach(this, 5, gid));
	KUNIT_EXPECT_FALSE(test, mcast_has(mcast_find(this, &gid), 0x105));
	KUNIT_EXPECT_EQ(test, -EINVAL, mcast_detach(this, 5, gid));
	KUNIT_EXPECT_EQ(test, 0, mcast_attach(this, 5, gid));
	KUNIT_EXPECT_EQ(test, 0, mcast_detach(this, 5, gid));

	KUNIT_EXPECT_FALSE(test, this->lost);
	KUNIT_EXPECT_EQ(test, 0, mcast_leave(this, 2));
	if (step->second)
		KUNIT_EXPECT_EQ(test, 0, mcast_leave(this, 1));
	mcast_expect_empty(test);
}

/* A bucket that cannot be. */
static void mcast_bad_hash(struct kunit *test)
{
	static const u64 hashes[] = { 8, 15, U32_MAX, BIT_ULL(32) };
	struct mcast *this = test->priv;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(hashes); i++) {
		this->hash = hashes[i];
		KUNIT_EXPECT_EQ(test, -EIO, mcast_attach(this, 0, mcast_gid(1, 1)));
	}
	KUNIT_EXPECT_EQ(test, 0, this->writes);
	mcast_expect_empty(test);
}

/* Who detaches cannot be told that it failed: it is tried again. */
static void mcast_detach_fails(struct kunit *test)
{
	struct mcast *this = test->priv;
	u32 i;

	for (i = 0; i < 3; i++)
		KUNIT_ASSERT_EQ(test, 0, mcast_join(this, i, 4));
	KUNIT_ASSERT_EQ(test, 0, mcast_attach(this, 7, mcast_gid(0, 4)));
	this->refused = 0x026;
	this->status = 0x01;
	this->refusals = 2;
	KUNIT_EXPECT_EQ(test, 0, mcast_detach(this, 7, mcast_gid(0, 4)));
	KUNIT_EXPECT_EQ(test, 0, this->refusals);
	for (i = 0; i < 3; i++) {
		this->refusals = 2;
		KUNIT_EXPECT_EQ(test, 0, mcast_leave(this, i));
		KUNIT_EXPECT_EQ(test, 0, this->refusals);
	}
	KUNIT_EXPECT_FALSE(test, this->lost);
	KUNIT_EXPECT_FALSE(test, hghca_dev_has_failed(this->fake->hdev));
	mcast_expect_empty(test);
}

/* A device that keeps a QP in its group is given up. */
static void mcast_detach_kept(struct kunit *test)
{
	struct mcast *this = test->priv;
	struct hghca_dev *hdev = this->fake->hdev;

	KUNIT_ASSERT_EQ(test, 0, mcast_attach(this, 0, mcast_gid(1, 4)));
	KUNIT_ASSERT_EQ(test, 0, mcast_attach(this, 1, mcast_gid(1, 4)));
	this->refused = 0x026;
	this->status = 0x03;
	this->refusals = 1;
	KUNIT_EXPECT_EQ(test, 0, mcast_detach(this, 0, mcast_gid(1, 4)));
	KUNIT_EXPECT_TRUE(test, hghca_dev_has_failed(hdev));
	/* Its reset has taken all groups. */
	KUNIT_EXPECT_EQ(test, -EIO, mcast_attach(this, 2, mcast_gid(1, 4)));
	KUNIT_EXPECT_EQ(test, -EIO, mcast_attach(this, 2, mcast_gid(2, 4)));
	KUNIT_EXPECT_EQ(test, 0, mcast_detach(this, 1, mcast_gid(1, 4)));
	KUNIT_EXPECT_TRUE(test, RB_EMPTY_ROOT(&hdev->mcast.groups));
	KUNIT_EXPECT_TRUE(test, xa_empty(&hdev->mcast.entries));
}

/* ------------------------------------------------------------------ */
/* Limits                                                               */

static void mcast_limits(struct kunit *test)
{
	struct fake *fake = fake_test_create(test);
	struct hghca_init_hca init = {};
	struct ib_device_attr attr;
	struct ib_udata udata = {};

	KUNIT_ASSERT_NOT_NULL(test, fake);
	fake->limits.caps = cpu_to_be32(0xbff);
	KUNIT_ASSERT_EQ(test, 0, fake_open(fake));
	KUNIT_EXPECT_EQ(test, 8192, fake->hdev->limits.num_mcgs);
	hghca_profile_layout(fake->hdev, &init);
	/* Behind 65,536 SRQs of 128 bytes at 9040000h. */
	KUNIT_EXPECT_EQ(test, 0x9840000 | 13, be64_at(&init, 0x00));
	KUNIT_EXPECT_EQ(test, 0xbff, be32_at(&init, 0x20));
	KUNIT_ASSERT_EQ(test, 0, hghca_query_device(&fake->hdev->ibdev, &attr, &udata));
	KUNIT_EXPECT_EQ(test, 4096, attr.max_mcast_grp);
	KUNIT_EXPECT_EQ(test, 56, attr.max_mcast_qp_attach);
	KUNIT_EXPECT_EQ(test, 4096 * 56, attr.max_total_mcast_qp_attach);
	KUNIT_EXPECT_TRUE(test, attr.kernel_cap_flags & IBK_BLOCK_MULTICAST_LOOPBACK);
}

static const struct mcast_limit {
	const char *name;
	u32 offset;
	u8 value;
} mcast_bads[] = {
	{ "not there", 0x3e, 0x03 },
	{ "no entries", 0x54, 0 },
	{ "2^17 entries", 0x54, 17 },
	{ "2^255 entries", 0x54, 255 },
	{ "no QPs", 0x55, 0 },
	{ "57 QPs", 0x55, 57 },
	{ "entries of 384 bytes", 0x57, 0x80 },
	{ "entries of 8,192 bytes", 0x56, 0x20 },
};

static void mcast_limit_name(const struct mcast_limit *limit, char *desc)
{
	strscpy(desc, limit->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(mcast_limit, mcast_bads, mcast_limit_name);

/* What groups need to be of use; otherwise the device is one without. */
static void mcast_bad_limits(struct kunit *test)
{
	const struct mcast_limit *param = test->param_value;
	struct fake *fake = fake_test_create(test);
	struct hghca_init_hca init = {};
	struct ib_device_attr attr;
	struct ib_udata udata = {};

	KUNIT_ASSERT_NOT_NULL(test, fake);
	fake->limits.caps = cpu_to_be32(0xbff);
	((u8 *)&fake->limits)[param->offset] = param->value;
	KUNIT_ASSERT_EQ(test, 0, fake_open(fake));
	KUNIT_EXPECT_EQ(test, 0x3ff, fake->hdev->limits.caps);
	KUNIT_EXPECT_EQ(test, 0, fake->hdev->limits.num_mcgs);
	hghca_profile_layout(fake->hdev, &init);
	KUNIT_EXPECT_EQ(test, 0, be64_at(&init, 0x00));
	KUNIT_EXPECT_EQ(test, 0x3ff, be32_at(&init, 0x20));
	KUNIT_ASSERT_EQ(test, 0, hghca_query_device(&fake->hdev->ibdev, &attr, &udata));
	KUNIT_EXPECT_EQ(test, 0, attr.max_mcast_grp);
	KUNIT_EXPECT_EQ(test, 0, attr.max_mcast_qp_attach);
	KUNIT_EXPECT_FALSE(test, attr.kernel_cap_flags & IBK_BLOCK_MULTICAST_LOOPBACK);
}

/* ------------------------------------------------------------------ */
/* QPs that want nothing of their own                                   */

static const struct mcast_flag {
	const char *name;
	enum ib_qp_type type;
	u32 create_flags;
	u32 caps;	/* taken from the device */
	int err;
} mcast_flags[] = {
	{ "UD", IB_QPT_UD, IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK, 0, 0 },
	{ "UD, on a device without groups", IB_QPT_UD, IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK,
	  HGHCA_CAP_MULTICAST, -EOPNOTSUPP },
	{ "UD, and more", IB_QPT_UD, IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK | IB_QP_CREATE_NETIF_QP,
	  0, -EOPNOTSUPP },
	{ "RC", IB_QPT_RC, IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK, 0, -EOPNOTSUPP },
	{ "GSI", IB_QPT_GSI, IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK, 0, -EOPNOTSUPP },
};

static void mcast_flag_name(const struct mcast_flag *flag, char *desc)
{
	strscpy(desc, flag->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(mcast_flag, mcast_flags, mcast_flag_name);

static void mcast_create_flags(struct kunit *test)
{
	const struct mcast_flag *param = test->param_value;
	struct mcast *this = test->priv;
	struct hghca_qp *hqp = kunit_kzalloc(test, sizeof(*hqp), GFP_KERNEL);
	struct ib_qp_init_attr init = {
		.qp_type = param->type, .cap = { 1, 1, 1, 1 },
		.create_flags = param->create_flags, .port_num = 1,
	};
	struct hghca_pd *pd;
	struct hghca_cq *hcq;

	KUNIT_ASSERT_NOT_NULL(test, hqp);
	KUNIT_ASSERT_EQ(test, 0, fake_events(this->fake));
	pd = fake_pd(test, this->fake);
	hcq = fake_cq(test, this->fake, 7);
	init.send_cq = &hcq->ibcq;
	init.recv_cq = &hcq->ibcq;
	this->fake->hdev->limits.caps &= ~param->caps;
	hqp->ibqp.device = &this->fake->hdev->ibdev;
	hqp->ibqp.pd = &pd->ibpd;
	hqp->ibqp.send_cq = &hcq->ibcq;
	hqp->ibqp.recv_cq = &hcq->ibcq;
	hqp->ibqp.qp_type = param->type;
	KUNIT_ASSERT_EQ(test, param->err, hghca_create_qp(&hqp->ibqp, &init, NULL));
	if (!param->err)
		KUNIT_EXPECT_EQ(test, 0, hghca_destroy_qp(&hqp->ibqp, NULL));
}

static struct kunit_case mcast_cases[] = {
	KUNIT_CASE(mcast_first),
	KUNIT_CASE(mcast_members),
	KUNIT_CASE(mcast_few_members),
	KUNIT_CASE(mcast_orders),
	KUNIT_CASE(mcast_come_and_go),
	KUNIT_CASE(mcast_no_entry),
	KUNIT_CASE(mcast_long_chain),
	KUNIT_CASE_PARAM(mcast_refused, mcast_step_gen_params),
	KUNIT_CASE(mcast_bad_hash),
	KUNIT_CASE(mcast_detach_fails),
	KUNIT_CASE(mcast_detach_kept),
	KUNIT_CASE(mcast_limits),
	KUNIT_CASE_PARAM(mcast_bad_limits, mcast_limit_gen_params),
	KUNIT_CASE_PARAM(mcast_create_flags, mcast_flag_gen_params),
	{}
};

static struct kunit_suite mcast_suite = {
	.name = "hghca_mcast",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = mcast_init,
	.test_cases = mcast_cases,
};

kunit_test_suite(mcast_suite);
