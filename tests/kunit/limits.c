// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of what the driver makes of QUERY_DEV_LIM: the layout of ICM, and
 * limits that no device should have (interface document, 4.1 and 4.2).
 */
#include "fake.h"

static int limits_init(struct kunit *test)
{
	struct fake *fake = fake_create();

	if (!fake)
		return -ENOMEM;
	test->priv = fake;
	return 0;
}

static void limits_exit(struct kunit *test)
{
	if (test->priv)
		fake_destroy(test->priv);
}

/* INIT_HCA: bases with log2 of the entries; QPC to SRQC in one space, MPT, MTT in the other. */
static void limits_layout(struct kunit *test)
{
	struct hghca_init_hca init = {};
	struct fake *fake = test->priv;

	fake->adapter.board_id = cpu_to_be64(0x0123456789abcdef);
	fake->adapter.node_guid = cpu_to_be64(0xfedcba9876543210);
	fake->adapter.fw_version = cpu_to_be32(0x00020003);
	KUNIT_ASSERT_EQ(test, 0, fake_open(fake));
	hghca_profile_layout(fake->hdev, &init);
	KUNIT_EXPECT_EQ(test, 0x0000000 | 16, be64_at(&init, 0x08));
	KUNIT_EXPECT_EQ(test, 0x8000000 | 17, be64_at(&init, 0x10));
	KUNIT_EXPECT_EQ(test, 0x9000000 | 6, be64_at(&init, 0x18));
	KUNIT_EXPECT_EQ(test, 0x1dfff, be32_at(&init, 0x20));
	KUNIT_EXPECT_EQ(test, 0x9040000 | 16, be64_at(&init, 0x28));
	KUNIT_EXPECT_EQ(test, 0x0000000 | 19, be64_at(&init, 0x30));
	KUNIT_EXPECT_EQ(test, 0x2000000, be64_at(&init, 0x38));
	KUNIT_EXPECT_EQ(test, 0, be64_at(&init, 0x40));

	KUNIT_EXPECT_EQ(test, 0x0123456789abcdef, fake->hdev->board_id);
	KUNIT_EXPECT_EQ(test, 0xfedcba9876543210, be64_to_cpu(fake->hdev->node_guid));
	KUNIT_EXPECT_EQ(test, 0x00020003, fake->hdev->fw_version);
}

static const struct limits_mpts {
	const char *name;
	u32 caps;
	u8 log_max_mpts;
	u8 log_reserved;
	int err;
	u32 num;
	u32 first;
} limits_mpts[] = {
	/* Of a key 24 bits are the index; 0 and 1 are in no key. */
	{ "MEM_MGT, 2^19 MPTs", 0x3ff, 19, 0, 0, 1 << 19, 2 },
	{ "MEM_MGT, 2^24 MPTs", 0x3ff, 24, 0, 0, 1 << 24, 2 },
	{ "MEM_MGT, 2^25 MPTs: no more than a key holds", 0x3ff, 25, 0, 0, 1 << 24, 2 },
	{ "MEM_MGT, 2^255 MPTs", 0x3ff, 255, 0, 0, 1 << 24, 2 },
	{ "MEM_MGT, 4 MPTs", 0x3ff, 2, 0, 0, 4, 2 },
	{ "MEM_MGT, 2 MPTs", 0x3ff, 1, 0, -EPROTO },
	{ "MEM_MGT, 8 reserved", 0x3ff, 19, 3, 0, 1 << 19, 8 },
	/* No more than 2^18: the rest of the key is its tag. */
	{ "without, 2^18 MPTs", 0x1ff, 18, 0, 0, 1 << 18, 1 },
	{ "without, 2^19 MPTs", 0x1ff, 19, 0, 0, 1 << 18, 1 },
	{ "without, 2 MPTs", 0x1ff, 1, 0, 0, 2, 1 },
};

static void limits_mpts_name(const struct limits_mpts *mpts, char *desc)
{
	strscpy(desc, mpts->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(limits_mpts, limits_mpts, limits_mpts_name);

static void limits_num_mpts(struct kunit *test)
{
	const struct limits_mpts *param = test->param_value;
	struct fake *fake = test->priv;

	fake->limits.caps = cpu_to_be32(param->caps);
	fake->limits.log_max_mpts = param->log_max_mpts;
	fake->limits.log_reserved_lkeys = param->log_reserved;
	KUNIT_ASSERT_EQ(test, param->err, fake_open(fake));
	if (param->err)
		return;
	KUNIT_EXPECT_EQ(test, param->num, fake->hdev->limits.num_mpts);
	KUNIT_EXPECT_EQ(test, param->first, fake->hdev->limits.first_mpt);
}

/* QPN 1 is the GSI's, and QPN 2 the net device's, whether or not they are reserved. */
static const struct limits_qps {
	const char *name;
	u8 log_max_qps;
	u8 log_reserved;
	int err;
	u32 num;
	u32 first;
} limits_qps[] = {
	{ "2^16 QPs, 8 reserved", 16, 3, 0, 65536, 8 },
	{ "2^16 QPs, 4 reserved", 16, 2, 0, 65536, 4 },
	{ "2^16 QPs, 2 reserved", 16, 1, 0, 65536, 3 },
	{ "2^8 QPs, QPN 0 reserved", 8, 0, 0, 256, 3 },
	{ "4 QPs, QPN 0 reserved: 3 is left", 2, 0, 0, 4, 3 },
	{ "4 QPs, 2 reserved: 3 is left", 2, 1, 0, 4, 3 },
	{ "2 QPs, QPN 0 reserved: none is left", 1, 0, -EPROTO },
	{ "4 QPs, all reserved", 2, 2, -EPROTO },
};

KUNIT_ARRAY_PARAM_DESC(limits_qps, limits_qps, name);

static void limits_num_qps(struct kunit *test)
{
	const struct limits_qps *param = test->param_value;
	struct fake *fake = test->priv;
	struct ib_udata udata = {};
	struct ib_device_attr attr;

	fake->limits.log_max_qps = param->log_max_qps;
	fake->limits.log_reserved_qps = param->log_reserved;
	KUNIT_ASSERT_EQ(test, param->err, fake_open(fake));
	if (param->err)
		return;
	KUNIT_EXPECT_EQ(test, param->num, fake->hdev->limits.num_qps);
	KUNIT_EXPECT_EQ(test, param->first, fake->hdev->limits.first_qpn);
	KUNIT_ASSERT_EQ(test, 0, hghca_query_device(&fake->hdev->ibdev, &attr, &udata));
	KUNIT_EXPECT_EQ(test, param->num - param->first, attr.max_qp);
}

static const struct limits_bits {
	const char *name;
	bool invalid;	/* those that mean nothing are all ones */
} limits_bits[] = {
	{ "as they are", false },
	{ "with all bits that mean nothing", true },
};

static void limits_bits_name(const struct limits_bits *bits, char *desc)
{
	strscpy(desc, bits->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(limits_bits, limits_bits, limits_bits_name);

/* Table 3-2-4 of the base document: how many low bits of a byte are valid. */
static const struct {
	u32 offset;
	u32 valid;
} limits_valid[] = {
	{ 0x00, 4 }, { 0x01, 4 }, { 0x02, 4 }, { 0x03, 4 }, { 0x05, 4 }, { 0x07, 4 },
	{ 0x0c, 5 }, { 0x0d, 5 }, { 0x0e, 3 }, { 0x0f, 6 }, { 0x10, 6 }, { 0x12, 4 },
	{ 0x13, 4 }, { 0x20, 4 },
	/* reserved */
	{ 0x04, 0 }, { 0x06, 0 }, { 0x11, 0 }, { 0x14, 0 }, { 0x16, 0 }, { 0x17, 0 },
	{ 0x22, 0 }, { 0x24, 0 }, { 0x26, 0 }, { 0x27, 0 }, { 0x28, 0 }, { 0x2c, 0 },
};

static void limits_decoded(struct kunit *test)
{
	const struct limits_bits *param = test->param_value;
	struct fake *fake = test->priv;
	const struct hghca_limits *limits = &fake->hdev->limits;
	u8 *bytes = (u8 *)&fake->limits;
	u32 i;

	for (i = 0; param->invalid && i < ARRAY_SIZE(limits_valid); i++)
		bytes[limits_valid[i].offset] |= 0xff << limits_valid[i].valid;
	KUNIT_ASSERT_EQ(test, 0, fake_open(fake));
	KUNIT_EXPECT_EQ(test, 0x1dfff, limits->caps);
	KUNIT_EXPECT_EQ(test, 256, limits->num_counter_sets);
	KUNIT_EXPECT_EQ(test, 65536, limits->num_qps);
	KUNIT_EXPECT_EQ(test, 8, limits->first_qpn);
	KUNIT_EXPECT_EQ(test, 131072, limits->num_cqs);
	KUNIT_EXPECT_EQ(test, 1, limits->first_cqn);
	KUNIT_EXPECT_EQ(test, 64, limits->num_eqs);
	KUNIT_EXPECT_EQ(test, 1, limits->first_eqn);
	KUNIT_EXPECT_EQ(test, 524288, limits->num_mpts);
	KUNIT_EXPECT_EQ(test, 2, limits->first_mpt);
	KUNIT_EXPECT_EQ(test, 1, limits->first_mtt);
	KUNIT_EXPECT_EQ(test, 1 << 20, limits->num_pds);
	KUNIT_EXPECT_EQ(test, 2048, limits->num_uars);
	KUNIT_EXPECT_EQ(test, 16384, limits->max_qp_wr);
	KUNIT_EXPECT_EQ(test, 4194303, limits->max_cqe);
	KUNIT_EXPECT_EQ(test, 32, limits->max_sge);
	KUNIT_EXPECT_EQ(test, 1008, limits->max_desc_sz);
	KUNIT_EXPECT_EQ(test, 32, limits->max_sge_rq);
	KUNIT_EXPECT_EQ(test, 1008, limits->max_desc_sz_rq);
	KUNIT_EXPECT_EQ(test, 16, limits->max_rd_atomic);
	KUNIT_EXPECT_EQ(test, 16, limits->max_dest_rd_atomic);
	KUNIT_EXPECT_EQ(test, 128, limits->num_gids);
	KUNIT_EXPECT_EQ(test, IB_MTU_4096, limits->max_mtu);
	KUNIT_EXPECT_EQ(test, 15, limits->ack_delay);
	KUNIT_EXPECT_EQ(test, 31, limits->log_max_msg);
	KUNIT_EXPECT_EQ(test, 12, limits->log_min_page);
	KUNIT_EXPECT_EQ(test, 30, limits->log_max_page);
	KUNIT_EXPECT_EQ(test, 64, limits->num_vectors);
	KUNIT_EXPECT_EQ(test, 65536, limits->num_srqs);
	KUNIT_EXPECT_EQ(test, 1, limits->first_srqn);
	KUNIT_EXPECT_EQ(test, 16383, limits->max_srq_wr);
	KUNIT_EXPECT_EQ(test, 32, limits->max_srq_sge);
}

/* Behind the UAR pages, at 8 MiB, the BAR has the device's memory; document 2. */
static void limits_uars_end(struct kunit *test)
{
	static const struct {
		u8 log_max_uars;
		u32 bar_mib;
		u32 uars;
	} cases[] = {
		{ 10, 16, 1024 }, { 11, 16, 2048 }, { 12, 16, 2048 }, { 23, 16, 2048 },
		{ 23, 8, 2048 }, { 23, 4, 1024 },
	};
	struct fake *fake = test->priv;
	u32 i;

	KUNIT_ASSERT_EQ(test, 0, fake_open(fake));
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		fake->limits.log_max_uars = cases[i].log_max_uars;
		fake->hdev->bus.uar_size = cases[i].bar_mib << 20;
		KUNIT_EXPECT_EQ(test, 0, hghca_profile_init(fake->hdev));
		KUNIT_EXPECT_EQ(test, cases[i].uars, fake->hdev->limits.num_uars);
	}
}

/* Heads and records count modulo 2^16: 2^16 WQEs would be none. */
static void limits_queues(struct kunit *test)
{
	static const struct {
		u8 log;
		u32 wqes;
	} cases[] = { { 1, 2 }, { 14, 16384 }, { 15, 32768 }, { 16, 32768 } };
	struct fake *fake = test->priv;
	u32 i;

	KUNIT_ASSERT_EQ(test, 0, fake_open(fake));
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		fake->limits.log_max_qp_sz = cpu_to_be16(cases[i].log);
		fake->limits.log_max_srq_sz = cases[i].log;
		KUNIT_EXPECT_EQ(test, 0, hghca_profile_init(fake->hdev));
		KUNIT_EXPECT_EQ(test, cases[i].wqes, fake->hdev->limits.max_qp_wr);
		KUNIT_EXPECT_EQ(test, cases[i].wqes - 1, fake->hdev->limits.max_srq_wr);
	}
}

/* ------------------------------------------------------------------ */
/* Limits that cannot be                                                */

/* The byte of the capabilities with those to come: bits 31:28. */
#define LIMITS_CAPS_TO_COME	0x3c
static_assert(!(HGHCA_CAP_ALL & 0xf0000000));

/* A byte of QUERY_DEV_LIM's output that is @value instead. */
static const struct limits_bad {
	const char *name;
	u32 offset;
	u8 value;
	int err;
} limits_bads[] = {
	{ "no QPs", 0x0c, 0, -EPROTO },
	{ "2^25 QPs", 0x0c, 25, -EPROTO },
	{ "2^15 QPs reserved", 0x00, 15, 0 },
	{ "QP 2 not reserved is well", 0x00, 1, 0 },
	{ "2^255 QPs", 0x0c, 255, -EPROTO },
	{ "no CQs", 0x0d, 0, -EPROTO },
	{ "2^25 CQs", 0x0d, 25, -EPROTO },
	{ "2^15 CQs reserved", 0x01, 15, 0 },
	{ "no EQs", 0x0e, 0, -EPROTO },
	{ "2 EQs, of which one reserved", 0x0e, 1, -EPROTO },
	{ "2^7 EQs", 0x0e, 7, 0 },
	{ "no MPTs", 0x0f, 0, -EPROTO },
	{ "2^15 MPTs reserved", 0x07, 15, 0 },
	{ "8 QPs, all reserved", 0x0c, 3, -EPROTO },
	{ "2 CQs, of which one reserved, is well", 0x0d, 1, 0 },
	{ "no PDs", 0x10, 0, -EPROTO },
	{ "2^25 PDs", 0x10, 25, -EPROTO },
	{ "no MTTs", 0x40, 0, -EPROTO },
	{ "2^15 MTTs reserved", 0x03, 15, 0 },
	{ "WQEs: 2^0 a queue", 0x09, 0, -EPROTO },
	{ "WQEs: 2^17 a queue", 0x09, 17, -EPROTO },
	{ "WQEs: 2^270 a queue", 0x08, 1, -EPROTO },
	{ "CQEs: 2^0", 0x0b, 0, -EPROTO },
	{ "CQEs: 2^25", 0x0b, 25, -EPROTO },
	{ "no SGEs of a send", 0x29, 0, -EPROTO },
	{ "a send WQE of 2,032 bytes", 0x2a, 7, -EPROTO },
	{ "a send WQE of 240 bytes is well", 0x2a, 0, 0 },
	{ "no SGEs of a receive", 0x2d, 0, -EPROTO },
	{ "a receive WQE of 2,032 bytes", 0x2e, 7, -EPROTO },
	{ "no READs as initiator", 0x41, 0, -EPROTO },
	{ "no READs as target", 0x42, 0, -EPROTO },
	{ "MTU code 0", 0x21, 0x02, -EPROTO },
	{ "MTU code 6", 0x21, 0x62, -EPROTO },
	{ "no port", 0x23, 0x10, -EPROTO },
	{ "two ports", 0x23, 0x12, -EPROTO },
	{ "one GID", 0x12, 0, -EPROTO },
	{ "512 GIDs", 0x12, 9, -EPROTO },
	{ "one UAR page", 0x43, 0, -EPROTO },
	{ "2^24 UAR pages", 0x43, 24, -EPROTO },
	{ "2^20 UAR pages: no more than the BAR has", 0x43, 20, 0 },
	{ "smallest page 8 KiB", 0x25, 13, -EPROTO },
	{ "largest page 2 KiB", 0x45, 11, -EPROTO },
	{ "largest page 2 GiB", 0x45, 31, -EPROTO },
	{ "messages of 2 KiB", 0x44, 11, -EPROTO },
	{ "messages of 4 GiB", 0x44, 32, -EPROTO },
	{ "QPCs of 2,049 bytes", 0x19, 1, -EPROTO },
	{ "CQCs of no bytes", 0x1b, 0, -EPROTO },
	{ "EQCs of 4 bytes", 0x1d, 4, -EPROTO },
	{ "MPTs of 16,448 bytes", 0x1e, 0x40, -EPROTO },
	{ "MTTs of 9 bytes", 0x15, 9, -EPROTO },
	{ "ICM too small for the tables", 0x33, 0, -EPROTO },
	{ "revision 2: one to come", 0x3b, 2, 0 },
	{ "with a capability to come", LIMITS_CAPS_TO_COME, 0x80, 0 },
	{ "with more of them", LIMITS_CAPS_TO_COME, 0xf0, 0 },
};

static void limits_bad_name(const struct limits_bad *bad, char *desc)
{
	strscpy(desc, bad->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(limits_bad, limits_bads, limits_bad_name);

static void limits_bad(struct kunit *test)
{
	const struct limits_bad *param = test->param_value;
	struct fake *fake = test->priv;

	((u8 *)&fake->limits)[param->offset] = param->value;
	KUNIT_EXPECT_EQ(test, param->err, fake_open(fake));
	if (!param->err) {
		/* Only what the driver knows is turned on. */
		KUNIT_EXPECT_EQ(test, 0, fake->hdev->limits.caps & ~0x3dfff);
		KUNIT_EXPECT_LE(test, fake->hdev->limits.num_uars, 2048);
	}
}

/* A device works without any capability, and those that need it are not turned on. */
static const struct limits_lacking {
	const char *name;
	u32 revision;
	u32 caps;
	u32 caps_left;
	u32 max_qp_wr;
	u32 rd_atomic;
} limits_lackings[] = {
	{ "all", 1, 0x1dfff, 0x1dfff, 16384, 16 },
	{ "revision 0", 0, 0x1dfff, 0, 16383, 1 },
	{ "none", 1, 0, 0, 16383, 1 },
	{ "no GID_TABLE", 1, 0x1dffe, 0x1dffe, 16384, 16 },
	{ "no DBR", 1, 0x1dffd, 0x1dfed, 16383, 16 },
	{ "no CQ_ARM", 1, 0x1dffb, 0x15feb, 16384, 16 },
	{ "no CQ_UPDATE", 1, 0x1dff7, 0x1dfe7, 16384, 16 },
	{ "no PORT", 1, 0x1ffef, 0x1dfef, 16384, 16 },
	{ "no QP_LIMITS", 1, 0x1dfdf, 0x1dfdf, 16384, 1 },
	{ "no UC", 1, 0x1deff, 0x1deff, 16384, 16 },
	{ "STATUS_RECORD", 1, 0x901dfff, 0x901dfff, 16384, 16 },
	{ "STATUS_RECORD, no SYNC_COMMANDS", 1, 0x801dfff, 0x1dfff, 16384, 16 },
};

static void limits_lacking_name(const struct limits_lacking *lacking, char *desc)
{
	strscpy(desc, lacking->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(limits_lacking, limits_lackings, limits_lacking_name);

static void limits_lacking(struct kunit *test)
{
	const struct limits_lacking *param = test->param_value;
	struct fake *fake = test->priv;
	const struct hghca_limits *limits = &fake->hdev->limits;
	struct hghca_init_hca init = {};
	struct ib_udata udata = {};
	struct ib_device_attr attr;

	fake->limits.revision = cpu_to_be32(param->revision);
	fake->limits.caps = cpu_to_be32(param->caps);
	if (!param->revision)
		memset((u8 *)&fake->limits + 0x3c, 0, sizeof(fake->limits) - 0x3c);
	KUNIT_ASSERT_EQ(test, 0, fake_open(fake));
	KUNIT_EXPECT_EQ(test, param->caps_left, limits->caps);
	KUNIT_EXPECT_EQ(test, param->max_qp_wr, limits->max_qp_wr);
	KUNIT_EXPECT_EQ(test, param->rd_atomic, limits->max_rd_atomic);
	KUNIT_EXPECT_EQ(test, param->rd_atomic, limits->max_dest_rd_atomic);
	KUNIT_EXPECT_EQ(test, 2048, limits->num_uars);
	KUNIT_EXPECT_EQ(test, 31, limits->log_max_msg);
	KUNIT_EXPECT_EQ(test, 30, limits->log_max_page);
	hghca_profile_layout(fake->hdev, &init);
	KUNIT_EXPECT_EQ(test, param->caps_left, be32_at(&init, 0x20));
	/* No capability is needed for atomics. */
	KUNIT_ASSERT_EQ(test, 0, hghca_query_device(&fake->hdev->ibdev, &attr, &udata));
	KUNIT_EXPECT_EQ(test, IB_ATOMIC_HCA, attr.atomic_cap);
}

/* The same of what SRQs need: the device is one without them. */
static const struct limits_bad limits_bad_srqs[] = {
	{ "no SRQs", 0x48, 0 },
	{ "2^25 SRQs", 0x48, 25 },
	{ "WQEs: 2^0 an SRQ", 0x49, 0 },
	{ "WQEs: 2^17 an SRQ", 0x49, 17 },
	{ "no SGEs of an SRQ", 0x4a, 0 },
	{ "more SGEs of an SRQ than a WQE holds", 0x4a, 63 },
	{ "SRQCs of no bytes", 0x4d, 0 },
	{ "SRQCs of 129 bytes", 0x4d, 129 },
	{ "SRQCs of 4 bytes", 0x4d, 4 },
	{ "SRQCs of 8,320 bytes", 0x4c, 0x20 },
	{ "not turned on", 0x3f, 0x7f },
};

KUNIT_ARRAY_PARAM(limits_bad_srq, limits_bad_srqs, limits_bad_name);

static void limits_bad_srq(struct kunit *test)
{
	const struct limits_bad *param = test->param_value;
	struct fake *fake = test->priv;
	struct hghca_init_hca init = {};

	((u8 *)&fake->limits)[param->offset] = param->value;
	KUNIT_ASSERT_EQ(test, 0, fake_open(fake));
	KUNIT_EXPECT_EQ(test, 0x1db7f, fake->hdev->limits.caps);
	KUNIT_EXPECT_EQ(test, 0, fake->hdev->limits.num_srqs);
	KUNIT_EXPECT_EQ(test, 0, fake->hdev->limits.max_srq_wr);
	KUNIT_EXPECT_EQ(test, 0, fake->hdev->limits.max_srq_sge);
	hghca_profile_layout(fake->hdev, &init);
	KUNIT_EXPECT_EQ(test, 0x1db7f, be32_at(&init, 0x20));
	KUNIT_EXPECT_EQ(test, 0, be64_at(&init, 0x28));
}

/* The same of XRC. */
static const struct limits_bad limits_bad_xrcds[] = {
	{ "no domains", 0x50, 0 },
	{ "2^25 domains", 0x50, 25 },
	{ "not turned on", 0x3e, 0xdb },
};

KUNIT_ARRAY_PARAM(limits_bad_xrcd, limits_bad_xrcds, limits_bad_name);

static void limits_bad_xrcd(struct kunit *test)
{
	const struct limits_bad *param = test->param_value;
	struct fake *fake = test->priv;

	((u8 *)&fake->limits)[param->offset] = param->value;
	KUNIT_ASSERT_EQ(test, 0, fake_open(fake));
	KUNIT_EXPECT_EQ(test, 0x1dbff, fake->hdev->limits.caps);
	KUNIT_EXPECT_EQ(test, 0, fake->hdev->limits.max_xrcdn);
}

/* The same of counter sets, which need the port's counters. */
static const struct limits_sets {
	const char *name;
	u16 sets;
	u32 caps;
	u32 caps_left;
	u32 sets_left;
} limits_sets[] = {
	{ "2 counter sets", 2, 0x13ff, 0x13ff, 2 },
	{ "65,535 counter sets", 65535, 0x13ff, 0x13ff, 65535 },
	{ "set 0 alone", 1, 0x13ff, 0x3ff, 0 },
	{ "no counter sets", 0, 0x13ff, 0x3ff, 0 },
	{ "counter sets without STATS", 256, 0x13bf, 0x3bf, 0 },
	{ "not turned on", 256, 0x3ff, 0x3ff, 0 },
};

static void limits_sets_name(const struct limits_sets *sets, char *desc)
{
	strscpy(desc, sets->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(limits_sets, limits_sets, limits_sets_name);

static void limits_counter_sets(struct kunit *test)
{
	const struct limits_sets *param = test->param_value;
	struct fake *fake = test->priv;
	struct hghca_init_hca init = {};

	fake->limits.num_counter_sets = cpu_to_be16(param->sets);
	fake->limits.caps = cpu_to_be32(param->caps);
	KUNIT_ASSERT_EQ(test, 0, fake_open(fake));
	KUNIT_EXPECT_EQ(test, param->caps_left, fake->hdev->limits.caps);
	KUNIT_EXPECT_EQ(test, param->sets_left, fake->hdev->limits.num_counter_sets);
	hghca_profile_layout(fake->hdev, &init);
	KUNIT_EXPECT_EQ(test, param->caps_left, be32_at(&init, 0x20));
}

/* The same of the clock. */
static const struct limits_bad limits_bad_clocks[] = {
	{ "that stands still", 0x62, 0 },
	{ "not turned on", 0x3e, 0x9f },
};

KUNIT_ARRAY_PARAM(limits_bad_clock, limits_bad_clocks, limits_bad_name);

static void limits_bad_clock(struct kunit *test)
{
	const struct limits_bad *param = test->param_value;
	struct fake *fake = test->priv;
	struct ib_udata udata = {};
	struct ib_device_attr attr;

	fake->limits.clock_khz = cpu_to_be32(0x100);
	((u8 *)&fake->limits)[param->offset] = param->value;
	KUNIT_ASSERT_EQ(test, 0, fake_open(fake));
	KUNIT_EXPECT_EQ(test, 0x19fff, fake->hdev->limits.caps);
	KUNIT_ASSERT_EQ(test, 0, hghca_query_device(&fake->hdev->ibdev, &attr, &udata));
	KUNIT_EXPECT_EQ(test, 0, attr.timestamp_mask);
	KUNIT_EXPECT_EQ(test, 0, attr.hca_core_clock);
}

static void limits_clock(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct ib_udata udata = {};
	struct ib_device_attr attr;

	fake->limits.clock_khz = cpu_to_be32(156250);
	KUNIT_ASSERT_EQ(test, 0, fake_open(fake));
	KUNIT_ASSERT_EQ(test, 0, hghca_query_device(&fake->hdev->ibdev, &attr, &udata));
	KUNIT_EXPECT_EQ(test, U64_MAX, attr.timestamp_mask);
	KUNIT_EXPECT_EQ(test, 156250, attr.hca_core_clock);
	KUNIT_EXPECT_EQ(test, U16_MAX, attr.cq_caps.max_cq_moderation_count);
	KUNIT_EXPECT_EQ(test, U16_MAX, attr.cq_caps.max_cq_moderation_period);
}

static const struct limits_moderation {
	const char *name;
	u8 scale;	/* 6Ah */
	bool user;	/* whose CQ it is */
	u16 period;
	u16 told;	/* to the device */
} limits_moderations[] = {
	{ "kernel's, no scale", 0, false, 16, 16 },
	{ "kernel's, 1", 1, false, 16, 16 },
	{ "kernel's, 32", 32, false, 16, 512 },
	{ "kernel's, 0 us", 32, false, 0, 0 },
	{ "kernel's, more than fits", 255, false, 1000, 65535 },
	{ "a program's, 32", 32, true, 16, 16 },
};

KUNIT_ARRAY_PARAM_DESC(limits_moderation, limits_moderations, name);

static void limits_moderation(struct kunit *test)
{
	const struct limits_moderation *param = test->param_value;
	struct fake *fake = test->priv;
	struct fake_command *cmd;
	struct hghca_cq *hcq;
	u32 mark;

	hcq = kunit_kzalloc(test, sizeof(*hcq), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, hcq);
	fake->limits.moderation_scale = param->scale;
	KUNIT_ASSERT_EQ(test, 0, fake_open(fake));
	hcq->ibcq.device = &fake->hdev->ibdev;
	/* Only whether there is one counts. */
	hcq->ibcq.uobject = param->user ? (void *)hcq : NULL;
	hcq->hw.cqn = 5;

	mark = fake_mark(fake);
	KUNIT_EXPECT_EQ(test, 0, hghca_modify_cq(&hcq->ibcq, 4, param->period));
	cmd = fake_nth(fake, mark);
	KUNIT_ASSERT_NOT_NULL(test, cmd);
	KUNIT_EXPECT_EQ(test, 0xe07, cmd->op);
	KUNIT_EXPECT_EQ(test, 5, cmd->in_modifier);
	KUNIT_EXPECT_EQ(test, 4 << 16 | param->told, cmd->in_param);
}

static enum fake_end limits_refuse_adapter(struct fake *fake, const struct fake_command *cmd,
					   struct fake_answer *answer)
{
	answer->status = cmd->op == *(u16 *)fake->priv ? 0x04 : 0;
	return FAKE_ANSWERED;
}

/* The queries themselves fail. */
static void limits_refused(struct kunit *test)
{
	struct fake *fake = test->priv;
	u16 op = 0x003;

	fake->priv = &op;
	fake->answer = limits_refuse_adapter;
	KUNIT_ASSERT_EQ(test, 0, hghca_cmd_init(fake->hdev));
	fake->opened = 1;
	KUNIT_EXPECT_EQ(test, -ENXIO, hghca_profile_init(fake->hdev));
	op = 0x006;
	KUNIT_EXPECT_EQ(test, -ENXIO, hghca_profile_init(fake->hdev));
	op = 0;
	KUNIT_EXPECT_EQ(test, 0, hghca_profile_init(fake->hdev));
}

static struct kunit_case limits_cases[] = {
	KUNIT_CASE(limits_layout),
	KUNIT_CASE_PARAM(limits_num_mpts, limits_mpts_gen_params),
	KUNIT_CASE_PARAM(limits_num_qps, limits_qps_gen_params),
	KUNIT_CASE_PARAM(limits_decoded, limits_bits_gen_params),
	KUNIT_CASE(limits_uars_end),
	KUNIT_CASE(limits_queues),
	KUNIT_CASE_PARAM(limits_bad, limits_bad_gen_params),
	KUNIT_CASE_PARAM(limits_lacking, limits_lacking_gen_params),
	KUNIT_CASE_PARAM(limits_bad_srq, limits_bad_srq_gen_params),
	KUNIT_CASE_PARAM(limits_bad_xrcd, limits_bad_xrcd_gen_params),
	KUNIT_CASE_PARAM(limits_counter_sets, limits_sets_gen_params),
	KUNIT_CASE_PARAM(limits_bad_clock, limits_bad_clock_gen_params),
	KUNIT_CASE(limits_clock),
	KUNIT_CASE_PARAM(limits_moderation, limits_moderation_gen_params),
	KUNIT_CASE(limits_refused),
	{}
};

static struct kunit_suite limits_suite = {
	.name = "hghca_limits",
	.init = limits_init,
	.exit = limits_exit,
	.test_cases = limits_cases,
};

kunit_test_suite(limits_suite);
