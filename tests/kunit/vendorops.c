// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of partitions, and of QPs with manufacturer-specific operations (the page of
 * RSNIC, 9): what the device is told, word by word, and what is refused.
 */
#include <linux/mman.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/unaligned.h>

#include "fake.h"

#define VENDOROPS_CAP		0x800000
#define VENDOROPS_PARTITIONS	64
#define VENDOROPS_RANGES	256	/* more than a partition may have */

/* What a region's entry in the mailbox has: 20h, 24 bytes each. */
#define VENDOROPS_REGION(i)	(0x20 + 24 * (i))

struct vendorops {
	struct fake *fake;
	struct hghca_pd *pd;
	struct hghca_partition_range ranges[VENDOROPS_RANGES];
	struct hghca_user_partition *all[VENDOROPS_PARTITIONS];
	/* What the device answers to an opcode, and how often from now on. */
	u16 refused;
	u8 status;
	u32 times;
};

/* Four regions; records of 64 bytes, with a key of 32 bits at byte 16. */
static const struct hghca_partition_desc vendorops_desc = {
	.log_record = 6,
	.log_regions = 2,
	.key_offset = 16,
	.key_size = 4,
	.key_shift = 30,
};

static enum fake_end vendorops_answer(struct fake *fake, const struct fake_command *cmd,
				      struct fake_answer *answer)
{
	struct vendorops *this = fake->priv;
	u32 i;

	/* All entries have a number, and what the partition has is the driver's matter. */
	for (i = 0; cmd->op == 0xe14 && i < 128; i++)
		put_unaligned_be32(0x1000 + 8 * i, fake->out + VENDOROPS_REGION(i) + 0x10);
	if (cmd->op == this->refused && this->times) {
		answer->status = this->status;
		this->times--;
	}
	return FAKE_ANSWERED;
}

static void vendorops_refuse(struct vendorops *this, u16 op, u8 status, u32 times)
{
	this->refused = op;
	this->status = status;
	this->times = times;
}

static void vendorops_set_up(struct fake *fake)
{
	fake->limits.caps |= cpu_to_be32(VENDOROPS_CAP);
}

static int vendorops_init(struct kunit *test)
{
	struct vendorops *this = kunit_kzalloc(test, sizeof(*this), GFP_KERNEL);
	u32 i;
	int err;

	if (!this)
		return -ENOMEM;
	err = fake_test_open(test, vendorops_set_up, true);
	if (err)
		return err;
	this->fake = test->priv;
	this->fake->priv = this;
	this->fake->answer = vendorops_answer;
	this->pd = fake_pd(test, this->fake);
	for (i = 0; i < VENDOROPS_RANGES; i++) {
		this->ranges[i] = (struct hghca_partition_range) {
			.addr = 0x123456780000 + ((u64)i << 32),
			.rkey = 0xabcd0000 + i,
			.length = 0x80000000 + i,
		};
	}
	test->priv = this;
	return 0;
}

static struct hghca_user_partition *vendorops_new(struct vendorops *this,
						  const struct hghca_partition_desc *desc,
						  u32 num_ranges)
{
	return hghca_create_partition(&this->pd->ibpd, desc, this->ranges, num_ranges);
}

static struct hghca_user_partition *vendorops_partition(struct kunit *test)
{
	struct hghca_user_partition *upart = vendorops_new(test->priv, &vendorops_desc, 4);

	KUNIT_ASSERT_FALSE(test, IS_ERR(upart));
	return upart;
}

/* The last command. */
static struct fake_command *vendorops_command(struct vendorops *this)
{
	return fake_nth(this->fake, fake_mark(this->fake) - 1);
}

static void vendorops_expect_none(struct kunit *test)
{
	struct vendorops *this = test->priv;

	KUNIT_EXPECT_TRUE(test, ida_is_empty(&this->fake->hdev->partition_ida));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&this->pd->ibpd.usecnt));
}

/* ------------------------------------------------------------------ */
/* The capability                                                       */

static void vendorops_enabled(struct kunit *test)
{
	struct vendorops *this = test->priv;
	struct hghca_init_hca init = {};

	KUNIT_EXPECT_EQ(test, 0x81dfff, this->fake->hdev->limits.caps);
	hghca_profile_layout(this->fake->hdev, &init);
	KUNIT_EXPECT_EQ(test, 0x81dfff, be32_at(&init, 0x20));
}

/* Without it the core does not show the object; and none is made. */
static void vendorops_lacking(struct kunit *test)
{
	struct vendorops *this = test->priv;
	struct hghca_dev *hdev = this->fake->hdev;
	const struct uapi_definition *def = hghca_uapi_defs;
	u32 mark = fake_mark(this->fake);

	while (def->kind != UAPI_DEF_END && def->kind != UAPI_DEF_IS_SUPPORTED_FUNC)
		def++;
	KUNIT_ASSERT_EQ(test, UAPI_DEF_IS_SUPPORTED_FUNC, def->kind);
	KUNIT_EXPECT_EQ(test, UAPI_SCOPE_OBJECT, def->scope);
	/* It belongs to the object before it: the first of the driver's own. */
	KUNIT_EXPECT_EQ(test, UAPI_DEF_CHAIN_OBJ_TREE, def[-1].kind);
	KUNIT_EXPECT_EQ(test, 0x1000, def[-1].object_start.object_id);

	KUNIT_EXPECT_TRUE(test, def->func_is_supported(&hdev->ibdev));
	hdev->limits.caps &= ~VENDOROPS_CAP;
	KUNIT_EXPECT_FALSE(test, def->func_is_supported(&hdev->ibdev));
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP,
			PTR_ERR_OR_ZERO(vendorops_new(this, &vendorops_desc, 4)));
	KUNIT_EXPECT_EQ(test, mark, fake_mark(this->fake));
	vendorops_expect_none(test);
}

/* ------------------------------------------------------------------ */
/* Partitions                                                           */

static void vendorops_mailbox(struct kunit *test)
{
	struct vendorops *this = test->priv;
	u32 mark = fake_mark(this->fake);
	struct hghca_user_partition *upart = vendorops_partition(test);
	struct fake_command *cmd = vendorops_command(this);
	u32 i;

	KUNIT_EXPECT_EQ(test, mark + 1, fake_mark(this->fake));
	KUNIT_EXPECT_EQ(test, 0xe12, cmd->op);
	KUNIT_EXPECT_EQ(test, 0, cmd->op_modifier);
	KUNIT_EXPECT_EQ(test, 0, cmd->in_modifier);
	KUNIT_EXPECT_EQ(test, 0, cmd->out_param);
	/* Index 0, and the first tag. */
	KUNIT_EXPECT_EQ(test, 0x40, upart->key);
	KUNIT_EXPECT_EQ(test, 0x40, be32_at(cmd->mailbox, 0x00));
	KUNIT_EXPECT_EQ(test, this->pd->pdn, be32_at(cmd->mailbox, 0x04));
	KUNIT_EXPECT_EQ(test, 0x06021004, be32_at(cmd->mailbox, 0x08));
	KUNIT_EXPECT_EQ(test, 0x1e000000, be32_at(cmd->mailbox, 0x0c));
	KUNIT_EXPECT_NULL(test, memchr_inv(cmd->mailbox + 0x10, 0, 0x10));
	for (i = 0; i < 4; i++) {
		const u8 *region = cmd->mailbox + VENDOROPS_REGION(i);

		KUNIT_EXPECT_EQ(test, 0x00001234 + i, be32_at(region, 0x00));
		KUNIT_EXPECT_EQ(test, 0x56780000, be32_at(region, 0x04));
		KUNIT_EXPECT_EQ(test, 0xabcd0000 + i, be32_at(region, 0x08));
		KUNIT_EXPECT_EQ(test, 0x80000000 + i, be32_at(region, 0x0c));
		KUNIT_EXPECT_EQ(test, 0, be32_at(region, 0x10));
		KUNIT_EXPECT_EQ(test, 0, be32_at(region, 0x14));
	}
	KUNIT_EXPECT_NULL(test, memchr_inv(cmd->mailbox + 0x80, 0, 0xc20 - 0x80));

	/* Its PD stays. */
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&this->pd->ibpd.usecnt));
	hghca_destroy_partition(upart);
	cmd = vendorops_command(this);
	KUNIT_EXPECT_EQ(test, mark + 2, fake_mark(this->fake));
	KUNIT_EXPECT_EQ(test, 0xe13, cmd->op);
	KUNIT_EXPECT_EQ(test, 0, cmd->op_modifier);
	KUNIT_EXPECT_EQ(test, 0, cmd->in_modifier);
	KUNIT_EXPECT_EQ(test, 0, cmd->in_param);
	vendorops_expect_none(test);
}

/* What is at a limit: the words at 08h and 0Ch, and the last region. */
static const struct vendorops_good {
	const char *name;
	struct hghca_partition_desc desc;
	u32 num;
	u32 word_8, word_c;
} vendorops_goods[] = {
	{ "one region, a record that is its key", { 3, 0, 0, 8, 0 }, 1, 0x03000008, 0x00000000 },
	{ "one region, behind the last bit", { 3, 0, 0, 8, 64 }, 1, 0x03000008, 0x40000000 },
	{ "two regions, the last bit of a byte", { 3, 1, 7, 1, 7 }, 2, 0x03010701, 0x07000000 },
	{ "16 regions, a key of two bytes", { 4, 4, 14, 2, 12 }, 16, 0x04040e02, 0x0c000000 },
	{ "the most of all", { 8, 7, 248, 8, 57 }, 128, 0x0807f808, 0x39000000 },
};

KUNIT_ARRAY_PARAM_DESC(vendorops_good, vendorops_goods, name);

static void vendorops_limits(struct kunit *test)
{
	const struct vendorops_good *param = test->param_value;
	struct vendorops *this = test->priv;
	u32 last = VENDOROPS_REGION(param->num - 1), end = VENDOROPS_REGION(param->num);
	struct hghca_user_partition *upart;
	const u8 *mailbox;

	upart = vendorops_new(this, &param->desc, param->num);
	KUNIT_ASSERT_FALSE(test, IS_ERR(upart));
	mailbox = vendorops_command(this)->mailbox;
	KUNIT_EXPECT_EQ(test, param->word_8, be32_at(mailbox, 0x08));
	KUNIT_EXPECT_EQ(test, param->word_c, be32_at(mailbox, 0x0c));
	KUNIT_EXPECT_EQ(test, 0xabcd0000 + param->num - 1, be32_at(mailbox, last + 0x08));
	KUNIT_EXPECT_NULL(test, memchr_inv(mailbox + end, 0, 0xc20 - end));
	hghca_destroy_partition(upart);
}

static const struct vendorops_bad {
	const char *name;
	struct hghca_partition_desc desc;
	u32 num;
} vendorops_bads[] = {
	{ "records of 4 bytes", { 2, 2, 0, 4, 0 }, 4 },
	{ "records of 512 bytes", { 9, 2, 16, 4, 0 }, 4 },
	{ "records of 2^255 bytes", { 255, 2, 16, 4, 0 }, 4 },
	{ "256 regions", { 6, 8, 16, 4, 0 }, 256 },
	{ "2^32 regions", { 6, 32, 16, 8, 0 }, 0 },
	{ "2^255 regions", { 6, 255, 16, 8, 0 }, 0 },
	{ "no ranges", { 6, 2, 16, 4, 0 }, 0 },
	{ "a range too few", { 6, 2, 16, 4, 0 }, 3 },
	{ "a range too many", { 6, 2, 16, 4, 0 }, 5 },
	{ "log2 of the ranges", { 6, 2, 16, 4, 0 }, 2 },
	{ "a key of no bytes", { 6, 2, 16, 0, 0 }, 4 },
	{ "a key of no bytes, one region", { 6, 0, 16, 0, 0 }, 1 },
	{ "a key of 3 bytes", { 6, 2, 16, 3, 0 }, 4 },
	{ "a key of 16 bytes", { 6, 2, 16, 16, 0 }, 4 },
	{ "a key of 128 bytes", { 8, 2, 16, 128, 0 }, 4 },
	{ "a key beyond the record by one byte", { 6, 2, 61, 4, 0 }, 4 },
	{ "a key behind the record", { 6, 2, 64, 1, 0 }, 4 },
	{ "a key of a record of 8 bytes, from byte 1 on", { 3, 2, 1, 8, 0 }, 4 },
	{ "byte 255, and the 7 after it", { 8, 2, 255, 8, 0 }, 4 },
	{ "a bit beyond the key", { 6, 2, 16, 4, 31 }, 4 },
	{ "7 bits of a byte, from bit 2 on", { 6, 7, 16, 1, 2 }, 128 },
	{ "no bits, from beyond the key on", { 6, 0, 16, 4, 33 }, 1 },
	{ "bits from 255 on", { 6, 2, 16, 8, 255 }, 4 },
	{ "the first reserved byte", { 6, 2, 16, 4, 30, { 1, 0, 0 } }, 4 },
	{ "the second reserved byte", { 6, 2, 16, 4, 30, { 0, 0x80, 0 } }, 4 },
	{ "the last reserved byte", { 6, 2, 16, 4, 30, { 0, 0, 0xff } }, 4 },
};

KUNIT_ARRAY_PARAM_DESC(vendorops_bad, vendorops_bads, name);

static void vendorops_invalid(struct kunit *test)
{
	const struct vendorops_bad *param = test->param_value;
	struct vendorops *this = test->priv;
	u32 mark = fake_mark(this->fake);

	KUNIT_EXPECT_EQ(test, -EINVAL,
			PTR_ERR_OR_ZERO(vendorops_new(this, &param->desc, param->num)));
	KUNIT_EXPECT_EQ(test, mark, fake_mark(this->fake));
	vendorops_expect_none(test);
}

/* The index is in bits 5:0 of the key, and there are 64. */
static void vendorops_exhausted(struct kunit *test)
{
	struct vendorops *this = test->priv;
	u32 i, mark;

	for (i = 0; i < VENDOROPS_PARTITIONS; i++) {
		this->all[i] = vendorops_partition(test);
		KUNIT_EXPECT_EQ(test, 0x40 + i, this->all[i]->key);
		KUNIT_EXPECT_EQ(test, i, vendorops_command(this)->in_modifier);
		KUNIT_EXPECT_EQ(test, 0x40 + i, be32_at(vendorops_command(this)->mailbox, 0));
	}
	KUNIT_EXPECT_EQ(test, 64, atomic_read(&this->pd->ibpd.usecnt));
	mark = fake_mark(this->fake);
	KUNIT_EXPECT_EQ(test, -ENOSPC,
			PTR_ERR_OR_ZERO(vendorops_new(this, &vendorops_desc, 4)));
	KUNIT_EXPECT_EQ(test, mark, fake_mark(this->fake));

	/* One that ends makes room for one, of another key. */
	hghca_destroy_partition(this->all[17]);
	KUNIT_EXPECT_EQ(test, 17, vendorops_command(this)->in_modifier);
	this->all[17] = vendorops_partition(test);
	KUNIT_EXPECT_EQ(test, 17, vendorops_command(this)->in_modifier);
	KUNIT_EXPECT_EQ(test, 0x80 + 17, this->all[17]->key);
	for (i = 0; i < VENDOROPS_PARTITIONS; i++)
		hghca_destroy_partition(this->all[i]);
	vendorops_expect_none(test);
}

/* A tag is 26 bits, and never 0. */
static void vendorops_tags(struct kunit *test)
{
	static const u32 keys[] = { 0xffffff80, 0xffffffc0, 0x00000040, 0x00000080 };
	struct vendorops *this = test->priv;
	u32 i;

	this->fake->hdev->partition_tags[0] = 0x3fffffd;
	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		struct hghca_user_partition *upart = vendorops_partition(test);

		KUNIT_EXPECT_EQ(test, keys[i], upart->key);
		KUNIT_EXPECT_EQ(test, keys[i], be32_at(vendorops_command(this)->mailbox, 0));
		hghca_destroy_partition(upart);
	}
}

/* As many numbers as there are regions, and no more. */
static void vendorops_query(struct kunit *test)
{
	struct vendorops *this = test->priv;
	struct hghca_user_partition *first = vendorops_partition(test);
	struct hghca_user_partition *upart = vendorops_partition(test);
	struct fake_command *cmd;
	u32 filled[5];
	u32 i;

	memset(filled, 0x77, sizeof(filled));
	KUNIT_EXPECT_EQ(test, 0, hghca_query_partition(upart, filled));
	cmd = vendorops_command(this);
	KUNIT_EXPECT_EQ(test, 0xe14, cmd->op);
	KUNIT_EXPECT_EQ(test, 0, cmd->op_modifier);
	KUNIT_EXPECT_EQ(test, 1, cmd->in_modifier);
	KUNIT_EXPECT_NE(test, 0, cmd->out_param);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, 0x1000 + 8 * i, filled[i]);
	KUNIT_EXPECT_EQ(test, 0x77777777, filled[4]);

	/* Of an answer that says no, nothing is taken. */
	memset(filled, 0x77, sizeof(filled));
	vendorops_refuse(this, 0xe14, 0x09, 1);
	KUNIT_EXPECT_EQ(test, -EBADF, hghca_query_partition(upart, filled));
	KUNIT_EXPECT_EQ(test, 0x77777777, filled[0]);
	hghca_destroy_partition(upart);
	hghca_destroy_partition(first);
}

/* What the device refuses is undone. */
static void vendorops_refused(struct kunit *test)
{
	struct vendorops *this = test->priv;
	struct hghca_user_partition *upart;
	u32 mark = fake_mark(this->fake);

	vendorops_refuse(this, 0xe12, 0x03, 1);
	KUNIT_EXPECT_EQ(test, -EINVAL,
			PTR_ERR_OR_ZERO(vendorops_new(this, &vendorops_desc, 4)));
	KUNIT_EXPECT_EQ(test, mark + 1, fake_mark(this->fake));
	vendorops_expect_none(test);
	/* The index is there for the next, whose key was not seen before. */
	upart = vendorops_partition(test);
	KUNIT_EXPECT_EQ(test, 0x80, upart->key);
	hghca_destroy_partition(upart);
}

/* Tried again: what the core forgets, the device must not keep. */
static void vendorops_destroy_fails(struct kunit *test)
{
	struct vendorops *this = test->priv;
	struct hghca_user_partition *upart = vendorops_partition(test);
	u32 mark = fake_mark(this->fake);

	vendorops_refuse(this, 0xe13, 0x01, 2);
	hghca_destroy_partition(upart);
	KUNIT_EXPECT_EQ(test, mark + 3, fake_mark(this->fake));
	KUNIT_EXPECT_FALSE(test, hghca_dev_has_failed(this->fake->hdev));
	vendorops_expect_none(test);
}

static void vendorops_kept(struct kunit *test)
{
	struct vendorops *this = test->priv;
	struct hghca_user_partition *upart = vendorops_partition(test);

	vendorops_refuse(this, 0xe13, 0x06, 1000);
	hghca_destroy_partition(upart);
	KUNIT_EXPECT_TRUE(test, hghca_dev_has_failed(this->fake->hdev));
	vendorops_expect_none(test);
}

static void vendorops_given_up(struct kunit *test)
{
	struct vendorops *this = test->priv;
	struct hghca_user_partition *upart = vendorops_partition(test);
	u32 filled[4];
	u32 mark;

	hghca_dev_fail(this->fake->hdev, "a test");
	mark = fake_mark(this->fake);
	KUNIT_EXPECT_EQ(test, -EIO, hghca_query_partition(upart, filled));
	KUNIT_EXPECT_EQ(test, -EIO, PTR_ERR_OR_ZERO(vendorops_new(this, &vendorops_desc, 4)));
	hghca_destroy_partition(upart);
	KUNIT_EXPECT_EQ(test, mark, fake_mark(this->fake));
	vendorops_expect_none(test);
}

/* ------------------------------------------------------------------ */
/* QPs                                                                  */

/* Word B0h of RST2INIT's mailbox: REG_MR is bit 31, VENDOR_OPS bit 30. */
static u32 vendorops_trust(struct kunit *test, struct hghca_qp *hqp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT, .port_num = 1 };
	struct vendorops *this = test->priv;
	u32 mark = fake_mark(this->fake);

	KUNIT_ASSERT_EQ(test, 0, hghca_modify_qp(&hqp->ibqp, &attr, IB_QP_STATE | IB_QP_PORT |
						 IB_QP_PKEY_INDEX | IB_QP_ACCESS_FLAGS, NULL));
	KUNIT_ASSERT_EQ(test, 0x19, fake_nth(this->fake, mark)->op);
	return be32_at(fake_nth(this->fake, mark)->mailbox, 0xb0);
}

static const struct vendorops_flags {
	const char *name;
	enum ib_qp_type type;
	u32 flags;
	int err;
	u32 trust;
	u8 reserved;
	bool lacking;	/* the device has no such operations */
} vendorops_flags[] = {
	{ "RC, none", IB_QPT_RC, 0, 0, 0 },
	{ "RC, none, a device without", IB_QPT_RC, 0, 0, 0, .lacking = true },
	{ "RC", IB_QPT_RC, 1, 0, 0x40000000 },
	{ "RC, a device without", IB_QPT_RC, 1, -EOPNOTSUPP, .lacking = true },
	{ "UC", IB_QPT_UC, 1, -EINVAL },
	{ "UD", IB_QPT_UD, 1, -EINVAL },
	{ "XRC initiator", IB_QPT_XRC_INI, 1, -EINVAL },
	{ "UD, none", IB_QPT_UD, 0, 0, 0 },
	{ "bit 1", IB_QPT_RC, 0x2, -EOPNOTSUPP },
	{ "bit 31, beside one that there is", IB_QPT_RC, 0x80000001, -EOPNOTSUPP },
	{ "a reserved byte", IB_QPT_RC, 1, -EINVAL, .reserved = 1 },
};

KUNIT_ARRAY_PARAM_DESC(vendorops_flags, vendorops_flags, name);

/* A user's QP, without queues, so that it takes no memory of the user's. */
static void vendorops_user_qp(struct kunit *test)
{
	const struct vendorops_flags *param = test->param_value;
	const struct hghca_create_qp cmd = {
		.flags = param->flags, .reserved = { 0, param->reserved },
	};
	struct vendorops *this = test->priv;
	struct uverbs_attr_bundle *bundle = kunit_kzalloc(test, sizeof(*bundle), GFP_KERNEL);
	struct hghca_ucontext *uctx = kunit_kzalloc(test, sizeof(*uctx), GFP_KERNEL);
	struct hghca_qp *hqp = kunit_kzalloc(test, sizeof(*hqp), GFP_KERNEL);
	struct hghca_cq *hcq = fake_cq(test, this->fake, 7);
	struct ib_qp_init_attr init = {
		.send_cq = &hcq->ibcq, .recv_cq = &hcq->ibcq, .qp_type = param->type,
	};
	void __user *in;

	KUNIT_ASSERT_NOT_NULL(test, bundle);
	KUNIT_ASSERT_NOT_NULL(test, uctx);
	KUNIT_ASSERT_NOT_NULL(test, hqp);
	in = (void __user *)fake_user_memory(test, PAGE_SIZE, PROT_READ | PROT_WRITE);
	KUNIT_ASSERT_EQ(test, 0, copy_to_user(in, &cmd, sizeof(cmd)));
	uctx->ibuctx.device = this->pd->ibpd.device;
	bundle->context = &uctx->ibuctx;
	bundle->driver_udata.inbuf = in;
	bundle->driver_udata.inlen = 32;
	hqp->ibqp.device = this->pd->ibpd.device;
	hqp->ibqp.pd = &this->pd->ibpd;
	hqp->ibqp.send_cq = init.send_cq;
	hqp->ibqp.recv_cq = init.recv_cq;
	hqp->ibqp.qp_type = init.qp_type;

	if (param->lacking)
		this->fake->hdev->limits.caps &= ~VENDOROPS_CAP;
	KUNIT_ASSERT_EQ(test, param->err,
			hghca_create_qp(&hqp->ibqp, &init, &bundle->driver_udata));
	if (param->err)
		return;
	if (param->type == IB_QPT_RC)
		KUNIT_EXPECT_EQ(test, param->trust, vendorops_trust(test, hqp));
	KUNIT_EXPECT_EQ(test, 0, hghca_destroy_qp(&hqp->ibqp, fake_no_udata(bundle)));
}

/* It may pass DMA addresses, and has no such operations. */
static void vendorops_kernel_qp(struct kunit *test)
{
	static const struct fake_qp_attr attr = {
		.type = IB_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct vendorops *this = test->priv;
	struct hghca_cq *hcq = fake_cq(test, this->fake, 7);
	struct hghca_qp *hqp = fake_qp(test, this->pd, hcq, hcq, &attr);

	KUNIT_EXPECT_EQ(test, 0x80000000, vendorops_trust(test, hqp));
}

static struct kunit_case vendorops_cases[] = {
	KUNIT_CASE(vendorops_enabled),
	KUNIT_CASE(vendorops_lacking),
	KUNIT_CASE(vendorops_mailbox),
	KUNIT_CASE_PARAM(vendorops_limits, vendorops_good_gen_params),
	KUNIT_CASE_PARAM(vendorops_invalid, vendorops_bad_gen_params),
	KUNIT_CASE(vendorops_exhausted),
	KUNIT_CASE(vendorops_tags),
	KUNIT_CASE(vendorops_query),
	KUNIT_CASE(vendorops_refused),
	KUNIT_CASE(vendorops_destroy_fails),
	KUNIT_CASE(vendorops_kept),
	KUNIT_CASE(vendorops_given_up),
	KUNIT_CASE_PARAM(vendorops_user_qp, vendorops_flags_gen_params),
	KUNIT_CASE(vendorops_kernel_qp),
	{}
};

static struct kunit_suite vendorops_suite = {
	.name = "hghca_vendor_ops",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = vendorops_init,
	.test_cases = vendorops_cases,
};
kunit_test_suite(vendorops_suite);
