// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of QP states: every transition with every attribute.
 *
 * The table below is that of the InfiniBand Architecture Specification, volume
 * 1, for Modify Queue Pair: what a verb must and may name. The device's masks
 * are those of section 4.9 of the interface document, and so are the places in
 * the context where each attribute goes. None of it comes from the driver.
 */
#include <linux/slab.h>

#include "fake.h"

/* ------------------------------------------------------------------ */
/* Attributes                                                           */

/*
 * An attribute: what the verbs and the device call it, and the big-endian word of
 * the context that holds the value it is given here; @mask 0: none.
 */
static const struct transition_attr {
	const char *name;
	u32 verbs;
	u32 device;
	u32 offset;
	u32 mask;
	u32 value;
} transition_attrs[] = {
	{ "CUR_STATE", IB_QP_CUR_STATE, BIT(1) },
	{ "EN_SQD_ASYNC_NOTIFY", IB_QP_EN_SQD_ASYNC_NOTIFY, BIT(2), 0xa8, 0x00008000, 0x00008000 },
	{ "ACCESS_FLAGS", IB_QP_ACCESS_FLAGS, BIT(3), 0xa8, 0x000000ff, 0x0000000e },
	{ "PKEY_INDEX", IB_QP_PKEY_INDEX, BIT(4), 0x1c, 0x0000007f, 0x00000000 },
	{ "PORT", IB_QP_PORT, BIT(5), 0x1c, 0x07000000, 0x01000000 },
	{ "QKEY", IB_QP_QKEY, BIT(6), 0x98, 0xffffffff, 0x11223344 },
	{ "AV", IB_QP_AV, BIT(7), 0x20, 0x00800000, 0x00800000 },
	{ "PATH_MTU", IB_QP_PATH_MTU, BIT(8), 0x0c, 0xe0000000, 0x60000000 },
	{ "TIMEOUT", IB_QP_TIMEOUT, BIT(9), 0x24, 0xff000000, 0x11000000 },
	{ "RETRY_CNT", IB_QP_RETRY_CNT, BIT(10), 0xa8, 0x00000700, 0x00000500 },
	{ "RNR_RETRY", IB_QP_RNR_RETRY, BIT(11), 0x20, 0xff000000, 0x06000000 },
	{ "RQ_PSN", IB_QP_RQ_PSN, BIT(12), 0x84, 0x00ffffff, 0x00abcdef },
	{ "MAX_QP_RD_ATOMIC", IB_QP_MAX_QP_RD_ATOMIC, BIT(13), 0xa8, 0xff000000, 0x07000000 },
	{ "ALT_PATH", IB_QP_ALT_PATH, BIT(14) },
	{ "MIN_RNR_TIMER", IB_QP_MIN_RNR_TIMER, BIT(15), 0x84, 0xff000000, 0x0e000000 },
	{ "SQ_PSN", IB_QP_SQ_PSN, BIT(16), 0x6c, 0x00ffffff, 0x00fedcba },
	{ "MAX_DEST_RD_ATOMIC", IB_QP_MAX_DEST_RD_ATOMIC, BIT(17), 0xa8, 0x00ff0000, 0x00090000 },
	{ "PATH_MIG_STATE", IB_QP_PATH_MIG_STATE, BIT(18) },
	{ "CAP", IB_QP_CAP, BIT(19) },
	{ "DEST_QPN", IB_QP_DEST_QPN, BIT(20), 0x18, 0xffffffff, 0x00badbad },
};

/* The rest of what AV brings. */
static const struct transition_attr transition_av[] = {
	{ "source GID index", .offset = 0x24, .mask = 0x00ff0000, .value = 0x00050000 },
	{ "static rate", .offset = 0x24, .mask = 0x0000ff00, .value = 0x00000200 },
	{ "hop limit", .offset = 0x24, .mask = 0x000000ff, .value = 0x00000040 },
	{ "SL, class, flow label", .offset = 0x28, .mask = 0xffffffff, .value = 0x35a12345 },
	{ "GID 0", .offset = 0x2c, .mask = 0xffffffff, .value = 0x20010db8 },
	{ "GID 1", .offset = 0x30, .mask = 0xffffffff, .value = 0x00000000 },
	{ "GID 2", .offset = 0x34, .mask = 0xffffffff, .value = 0x00000000 },
	{ "GID 3", .offset = 0x38, .mask = 0xffffffff, .value = 0x00000042 },
	{ "MAC 15:0", .offset = 0x3c, .mask = 0xffff0000, .value = 0x34560000 },
	{ "MAC 47:16", .offset = 0x44, .mask = 0xffffffff, .value = 0x52540012 },
};

static struct ib_qp_attr transition_values(void)
{
	static u8 dgid[16] = { 0x20, 0x01, 0x0d, 0xb8, [15] = 0x42 };
	static const u8 dmac[] = { 0x52, 0x54, 0x00, 0x12, 0x34, 0x56 };
	struct ib_qp_attr attr = {
		.path_mtu = IB_MTU_1024,
		.path_mig_state = IB_MIG_MIGRATED,
		.qkey = 0x11223344,
		.rq_psn = 0xabcdef,
		.sq_psn = 0xfedcba,
		.dest_qp_num = 0xbadbad,
		.qp_access_flags = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ |
				   IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_LOCAL_WRITE,
		.pkey_index = 0,
		.en_sqd_async_notify = 1,
		.max_rd_atomic = 7,
		.max_dest_rd_atomic = 9,
		.min_rnr_timer = 14,
		.port_num = 1,
		.timeout = 17,
		.retry_cnt = 5,
		.rnr_retry = 6,
	};

	attr.ah_attr.type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_port_num(&attr.ah_attr, 1);
	rdma_ah_set_sl(&attr.ah_attr, 3);
	rdma_ah_set_static_rate(&attr.ah_attr, 2);
	rdma_ah_set_grh(&attr.ah_attr, NULL, 0x12345, 5, 0x40, 0x5a);
	rdma_ah_set_dgid_raw(&attr.ah_attr, dgid);
	memcpy(attr.ah_attr.roce.dmac, dmac, sizeof(dmac));
	return attr;
}

/* ------------------------------------------------------------------ */
/* The table                                                            */

enum transition_type { RC, UC, UD, GSI, INI, TGT, RAW, TRANSITION_TYPES };

static const char * const transition_type_names[] = { "RC", "UC", "UD", "GSI", "XRC initiator",
						       "XRC target", "raw packet" };

static const char * const transition_state_names[] = {
	[IB_QPS_RESET] = "RESET", [IB_QPS_INIT] = "INIT", [IB_QPS_RTR] = "RTR",
	[IB_QPS_RTS] = "RTS", [IB_QPS_SQD] = "SQD", [IB_QPS_SQE] = "SQE", [IB_QPS_ERR] = "ERR",
};

/*
 * required, optional: of the verb, IB_QP_*; ALT_PATH is not in it, for there is one
 * path. device: what the device requires beyond what the verb does, BIT() of
 * opt_param_mask; the driver adds it out of the context.
 */
static const struct transition {
	enum transition_type type;
	enum ib_qp_state from;
	enum ib_qp_state to;
	u16 op;		/* 0: no command */
	u32 required;
	u32 optional;
	u32 device;
} transitions[] = {
	{ RC, IB_QPS_RESET, IB_QPS_INIT, 0x19,
	  .required = IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS },
	{ RC, IB_QPS_INIT, IB_QPS_INIT, 0x2d,
	  .optional = IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS,
	  .device = BIT(4) | BIT(5) | BIT(3) },
	{ RC, IB_QPS_INIT, IB_QPS_RTR, 0x1a,
	  .required = IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
		      IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER,
	  .optional = IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX },
	{ RC, IB_QPS_RTR, IB_QPS_RTS, 0x1b,
	  .required = IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
		      IB_QP_MAX_QP_RD_ATOMIC,
	  .optional = IB_QP_CUR_STATE | IB_QP_ACCESS_FLAGS | IB_QP_MIN_RNR_TIMER |
		      IB_QP_PATH_MIG_STATE },
	{ RC, IB_QPS_RTS, IB_QPS_RTS, 0x1c,
	  .optional = IB_QP_CUR_STATE | IB_QP_ACCESS_FLAGS | IB_QP_MIN_RNR_TIMER |
		      IB_QP_PATH_MIG_STATE },
	{ RC, IB_QPS_RTS, IB_QPS_SQD, 0x1f, .optional = IB_QP_EN_SQD_ASYNC_NOTIFY },
	{ RC, IB_QPS_SQD, IB_QPS_RTS, 0x20,
	  .optional = IB_QP_CUR_STATE | IB_QP_ACCESS_FLAGS | IB_QP_MIN_RNR_TIMER |
		      IB_QP_PATH_MIG_STATE },
	{ RC, IB_QPS_SQD, IB_QPS_SQD, 0x38,
	  .optional = IB_QP_PORT | IB_QP_AV | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
		      IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC | IB_QP_MAX_DEST_RD_ATOMIC |
		      IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX | IB_QP_MIN_RNR_TIMER |
		      IB_QP_PATH_MIG_STATE },

	{ UC, IB_QPS_RESET, IB_QPS_INIT, 0x19,
	  .required = IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS },
	{ UC, IB_QPS_INIT, IB_QPS_INIT, 0x2d,
	  .optional = IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS,
	  .device = BIT(4) | BIT(5) | BIT(3) },
	{ UC, IB_QPS_INIT, IB_QPS_RTR, 0x1a,
	  .required = IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN,
	  .optional = IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX },
	{ UC, IB_QPS_RTR, IB_QPS_RTS, 0x1b, .required = IB_QP_SQ_PSN,
	  .optional = IB_QP_CUR_STATE | IB_QP_ACCESS_FLAGS | IB_QP_PATH_MIG_STATE },
	{ UC, IB_QPS_RTS, IB_QPS_RTS, 0x1c,
	  .optional = IB_QP_CUR_STATE | IB_QP_ACCESS_FLAGS | IB_QP_PATH_MIG_STATE },
	{ UC, IB_QPS_RTS, IB_QPS_SQD, 0x1f, .optional = IB_QP_EN_SQD_ASYNC_NOTIFY },
	{ UC, IB_QPS_SQD, IB_QPS_RTS, 0x20,
	  .optional = IB_QP_CUR_STATE | IB_QP_ACCESS_FLAGS | IB_QP_PATH_MIG_STATE },
	{ UC, IB_QPS_SQD, IB_QPS_SQD, 0x38,
	  .optional = IB_QP_AV | IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX |
		      IB_QP_PATH_MIG_STATE },
	{ UC, IB_QPS_SQE, IB_QPS_RTS, 0x1d,
	  .optional = IB_QP_CUR_STATE | IB_QP_ACCESS_FLAGS },

	{ UD, IB_QPS_RESET, IB_QPS_INIT, 0x19,
	  .required = IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY },
	{ UD, IB_QPS_INIT, IB_QPS_INIT, 0x2d,
	  .optional = IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY,
	  .device = BIT(4) | BIT(5) | BIT(6) },
	{ UD, IB_QPS_INIT, IB_QPS_RTR, 0x1a, .optional = IB_QP_PKEY_INDEX | IB_QP_QKEY },
	{ UD, IB_QPS_RTR, IB_QPS_RTS, 0x1b, .required = IB_QP_SQ_PSN,
	  .optional = IB_QP_CUR_STATE | IB_QP_QKEY },
	{ UD, IB_QPS_RTS, IB_QPS_RTS, 0x1c, .optional = IB_QP_CUR_STATE | IB_QP_QKEY },
	{ UD, IB_QPS_RTS, IB_QPS_SQD, 0x1f, .optional = IB_QP_EN_SQD_ASYNC_NOTIFY },
	{ UD, IB_QPS_SQD, IB_QPS_RTS, 0x20, .optional = IB_QP_CUR_STATE | IB_QP_QKEY },
	{ UD, IB_QPS_SQD, IB_QPS_SQD, 0x38, .optional = IB_QP_PKEY_INDEX | IB_QP_QKEY },
	{ UD, IB_QPS_SQE, IB_QPS_RTS, 0x1d, .optional = IB_QP_CUR_STATE | IB_QP_QKEY },

	/* QP 1 has its port from its creation on. */
	{ GSI, IB_QPS_RESET, IB_QPS_INIT, 0x19, .required = IB_QP_PKEY_INDEX | IB_QP_QKEY,
	  .device = BIT(5) },
	{ GSI, IB_QPS_INIT, IB_QPS_INIT, 0x2d, .optional = IB_QP_PKEY_INDEX | IB_QP_QKEY,
	  .device = BIT(4) | BIT(5) | BIT(6) },
	{ GSI, IB_QPS_INIT, IB_QPS_RTR, 0x1a, .optional = IB_QP_PKEY_INDEX | IB_QP_QKEY },
	{ GSI, IB_QPS_RTR, IB_QPS_RTS, 0x1b, .required = IB_QP_SQ_PSN,
	  .optional = IB_QP_CUR_STATE | IB_QP_QKEY },
	{ GSI, IB_QPS_RTS, IB_QPS_RTS, 0x1c, .optional = IB_QP_CUR_STATE | IB_QP_QKEY },
	{ GSI, IB_QPS_RTS, IB_QPS_SQD, 0x1f, .optional = IB_QP_EN_SQD_ASYNC_NOTIFY },
	{ GSI, IB_QPS_SQD, IB_QPS_RTS, 0x20, .optional = IB_QP_CUR_STATE | IB_QP_QKEY },
	{ GSI, IB_QPS_SQD, IB_QPS_SQD, 0x38, .optional = IB_QP_PKEY_INDEX | IB_QP_QKEY },
	{ GSI, IB_QPS_SQE, IB_QPS_RTS, 0x1d, .optional = IB_QP_CUR_STATE | IB_QP_QKEY },

	{ INI, IB_QPS_RESET, IB_QPS_INIT, 0x19,
	  .required = IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS },
	{ INI, IB_QPS_INIT, IB_QPS_INIT, 0x2d,
	  .optional = IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS,
	  .device = BIT(4) | BIT(5) | BIT(3) },
	{ INI, IB_QPS_INIT, IB_QPS_RTR, 0x1a,
	  .required = IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN,
	  .optional = IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX },
	{ INI, IB_QPS_RTR, IB_QPS_RTS, 0x1b,
	  .required = IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
		      IB_QP_MAX_QP_RD_ATOMIC,
	  .optional = IB_QP_CUR_STATE | IB_QP_ACCESS_FLAGS | IB_QP_PATH_MIG_STATE },
	{ INI, IB_QPS_RTS, IB_QPS_RTS, 0x1c,
	  .optional = IB_QP_CUR_STATE | IB_QP_ACCESS_FLAGS | IB_QP_PATH_MIG_STATE },
	{ INI, IB_QPS_RTS, IB_QPS_SQD, 0x1f, .optional = IB_QP_EN_SQD_ASYNC_NOTIFY },
	{ INI, IB_QPS_SQD, IB_QPS_RTS, 0x20,
	  .optional = IB_QP_CUR_STATE | IB_QP_ACCESS_FLAGS | IB_QP_PATH_MIG_STATE },
	{ INI, IB_QPS_SQD, IB_QPS_SQD, 0x38,
	  .optional = IB_QP_PORT | IB_QP_AV | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
		      IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC | IB_QP_ACCESS_FLAGS |
		      IB_QP_PKEY_INDEX | IB_QP_PATH_MIG_STATE },

	{ TGT, IB_QPS_RESET, IB_QPS_INIT, 0x19,
	  .required = IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS },
	{ TGT, IB_QPS_INIT, IB_QPS_INIT, 0x2d,
	  .optional = IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS,
	  .device = BIT(4) | BIT(5) | BIT(3) },
	{ TGT, IB_QPS_INIT, IB_QPS_RTR, 0x1a,
	  .required = IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
		      IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER,
	  .optional = IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX },
	{ TGT, IB_QPS_RTR, IB_QPS_RTS, 0x1b, .required = IB_QP_TIMEOUT | IB_QP_SQ_PSN,
	  .optional = IB_QP_CUR_STATE | IB_QP_ACCESS_FLAGS | IB_QP_MIN_RNR_TIMER |
		      IB_QP_PATH_MIG_STATE },
	{ TGT, IB_QPS_RTS, IB_QPS_RTS, 0x1c,
	  .optional = IB_QP_CUR_STATE | IB_QP_ACCESS_FLAGS | IB_QP_MIN_RNR_TIMER |
		      IB_QP_PATH_MIG_STATE },
	{ TGT, IB_QPS_RTS, IB_QPS_SQD, 0x1f, .optional = IB_QP_EN_SQD_ASYNC_NOTIFY },
	{ TGT, IB_QPS_SQD, IB_QPS_RTS, 0x20,
	  .optional = IB_QP_CUR_STATE | IB_QP_ACCESS_FLAGS | IB_QP_MIN_RNR_TIMER |
		      IB_QP_PATH_MIG_STATE },
	{ TGT, IB_QPS_SQD, IB_QPS_SQD, 0x38,
	  .optional = IB_QP_PORT | IB_QP_AV | IB_QP_TIMEOUT | IB_QP_MAX_DEST_RD_ATOMIC |
		      IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX | IB_QP_MIN_RNR_TIMER |
		      IB_QP_PATH_MIG_STATE },

	{ RAW, IB_QPS_RESET, IB_QPS_INIT, 0x19, .required = IB_QP_PORT },
	{ RAW, IB_QPS_INIT, IB_QPS_INIT, 0x2d, .device = BIT(5) },
	{ RAW, IB_QPS_INIT, IB_QPS_RTR, 0x1a },
	{ RAW, IB_QPS_RTR, IB_QPS_RTS, 0x1b },
	{ RAW, IB_QPS_RTS, IB_QPS_RTS, 0x1c },
	{ RAW, IB_QPS_RTS, IB_QPS_SQD, 0x1f },
	{ RAW, IB_QPS_SQD, IB_QPS_RTS, 0x20 },
	{ RAW, IB_QPS_SQD, IB_QPS_SQD, 0x38 },
	{ RAW, IB_QPS_SQE, IB_QPS_RTS, 0x1d },

	/* An RC QP does not enter SQE, nor does one of XRC. */
#define TRANSITIONS_OUT(type) \
	{ type, IB_QPS_INIT, IB_QPS_ERR, 0x1e }, { type, IB_QPS_RTR, IB_QPS_ERR, 0x1e }, \
	{ type, IB_QPS_RTS, IB_QPS_ERR, 0x1e }, { type, IB_QPS_SQD, IB_QPS_ERR, 0x1e }, \
	{ type, IB_QPS_ERR, IB_QPS_ERR, 0x1e }, \
	{ type, IB_QPS_RESET, IB_QPS_RESET, 0 }, { type, IB_QPS_INIT, IB_QPS_RESET, 0x21 }, \
	{ type, IB_QPS_RTR, IB_QPS_RESET, 0x21 }, { type, IB_QPS_RTS, IB_QPS_RESET, 0x21 }, \
	{ type, IB_QPS_SQD, IB_QPS_RESET, 0x21 }, { type, IB_QPS_ERR, IB_QPS_RESET, 0x21 }
	TRANSITIONS_OUT(RC), TRANSITIONS_OUT(UC), TRANSITIONS_OUT(UD), TRANSITIONS_OUT(GSI),
	TRANSITIONS_OUT(INI), TRANSITIONS_OUT(TGT), TRANSITIONS_OUT(RAW),
	{ UC, IB_QPS_SQE, IB_QPS_ERR, 0x1e }, { UC, IB_QPS_SQE, IB_QPS_RESET, 0x21 },
	{ UD, IB_QPS_SQE, IB_QPS_ERR, 0x1e }, { UD, IB_QPS_SQE, IB_QPS_RESET, 0x21 },
	{ GSI, IB_QPS_SQE, IB_QPS_ERR, 0x1e }, { GSI, IB_QPS_SQE, IB_QPS_RESET, 0x21 },
	{ RAW, IB_QPS_SQE, IB_QPS_ERR, 0x1e }, { RAW, IB_QPS_SQE, IB_QPS_RESET, 0x21 },
};

/* ------------------------------------------------------------------ */
/* A device and one QP of each type, for all tests                      */

static struct fake *transition_fake;
static struct hghca_pd *transition_pd;
static struct hghca_cq *transition_cq;
static struct hghca_qp *transition_qps[TRANSITION_TYPES];
static struct hghca_qpc transition_contexts[TRANSITION_TYPES];	/* as they were created */

static void transition_suite_exit(struct kunit_suite *suite)
{
	int type;

	for (type = 0; type < TRANSITION_TYPES; type++) {
		if (transition_qps[type])
			fake_del_qp(transition_qps[type]);
		transition_qps[type] = NULL;
	}
	if (transition_cq)
		fake_del_cq(transition_cq);
	if (transition_pd)
		fake_del_pd(transition_pd);
	if (transition_fake)
		fake_destroy(transition_fake);
	transition_cq = NULL;
	transition_pd = NULL;
	transition_fake = NULL;
}

static int transition_suite_init(struct kunit_suite *suite)
{
	static const enum ib_qp_type types[] = {
		[RC] = IB_QPT_RC, [UC] = IB_QPT_UC, [UD] = IB_QPT_UD, [GSI] = IB_QPT_GSI,
		/* Those of XRC and of raw packets are users' alone: as RC QPs that say they are. */
		[INI] = IB_QPT_RC, [TGT] = IB_QPT_RC, [RAW] = IB_QPT_RC,
	};
	int type, err;

	transition_fake = fake_create();
	if (!transition_fake)
		return -ENOMEM;
	err = fake_open(transition_fake) ?: fake_events(transition_fake);
	if (err)
		return err;
	transition_pd = fake_new_pd(transition_fake);
	if (!transition_pd)
		return -ENOMEM;
	transition_cq = fake_new_cq(transition_fake, 15);
	if (!transition_cq)
		return -ENOMEM;
	for (type = 0; type < TRANSITION_TYPES; type++) {
		const struct fake_qp_attr attr = {
			.type = types[type],
			.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
				 .max_recv_sge = 1 },
		};

		transition_qps[type] = fake_new_qp(transition_pd, transition_cq, transition_cq,
						   &attr);
		if (!transition_qps[type])
			return -ENOMEM;
		transition_contexts[type] = transition_qps[type]->qpc;
	}
	transition_qps[INI]->ibqp.qp_type = IB_QPT_XRC_INI;
	transition_qps[TGT]->ibqp.qp_type = IB_QPT_XRC_TGT;
	transition_qps[RAW]->ibqp.qp_type = IB_QPT_RAW_PACKET;
	return 0;
}

/* A QP as it was created, said to be in @state. */
static struct hghca_qp *transition_qp(enum transition_type type, enum ib_qp_state state)
{
	struct hghca_qp *hqp = transition_qps[type];

	hqp->state = state;
	hqp->qpc = transition_contexts[type];
	hqp->special = type == GSI && state != IB_QPS_RESET;
	hqp->flush_recv = false;
	transition_fake->answer = NULL;
	return hqp;
}

static bool transition_is_qp_command(u16 op)
{
	return (op >= 0x19 && op <= 0x21) || op == 0x2d || op == 0x38;
}

/* The only QP transition among the commands from number @mark on. */
static struct fake_command *transition_command(struct kunit *test, u32 mark)
{
	struct fake_command *found = NULL;

	for (; mark != fake_mark(transition_fake); mark++) {
		struct fake_command *cmd = fake_nth(transition_fake, mark);

		KUNIT_ASSERT_NOT_NULL(test, cmd);
		if (!transition_is_qp_command(cmd->op))
			continue;
		KUNIT_EXPECT_NULL(test, found);
		found = cmd;
	}
	return found;
}

/* ------------------------------------------------------------------ */
/* Every transition with every attribute                                */

struct transition_param {
	const struct transition *transition;
	int attr;	/* index, or -1: as required */
};

/* What becomes of the transition when the attribute is left out, or given. */
enum transition_verdict { AS_REQUIRED, WITHOUT_REQUIRED, WITH_OPTIONAL, WITH_FORBIDDEN };

static enum transition_verdict transition_verdict(const struct transition_param *param)
{
	u32 verbs;

	if (param->attr < 0)
		return AS_REQUIRED;
	verbs = transition_attrs[param->attr].verbs;
	if (param->transition->required & verbs)
		return WITHOUT_REQUIRED;
	return param->transition->optional & verbs ? WITH_OPTIONAL : WITH_FORBIDDEN;
}

static const void *transition_next(const void *prev, char *desc)
{
	const struct transition *transition = prev ? (const struct transition *)prev + 1 :
					      transitions;

	if (transition == transitions + ARRAY_SIZE(transitions))
		return NULL;
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s %s to %s",
		 transition_type_names[transition->type],
		 transition_state_names[transition->from],
		 transition_state_names[transition->to]);
	return transition;
}

KERNELS_PARAMS(transition)

static void transition_expect_field(struct kunit *test, const u8 *context,
				    const struct transition_attr *field, u32 value)
{
	KUNIT_EXPECT_EQ_MSG(test, value & field->mask,
			    be32_at(context, field->offset) & field->mask, "%s", field->name);
}

/* Each field is what was given, or what it was before. */
static void transition_expect_context(struct kunit *test, const struct transition *transition,
				      const u8 *context, u32 given)
{
	const void *before = &transition_contexts[transition->type];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(transition_attrs); i++) {
		const struct transition_attr *field = &transition_attrs[i];
		u32 value = given & field->verbs ? field->value : be32_at(before, field->offset);

		/* A datagram's MTU is taken at RST2INIT: 256 where there is no net device. */
		if (field->verbs == IB_QP_PATH_MTU && transition->op == 0x19 &&
		    (transition->type == UD || transition->type == GSI))
			value = 0x20000000;
		transition_expect_field(test, context, field, value);
	}
	for (i = 0; i < ARRAY_SIZE(transition_av); i++)
		transition_expect_field(test, context, &transition_av[i],
					given & IB_QP_AV ? transition_av[i].value :
					be32_at(before, transition_av[i].offset));
}

static void transition_expect_accepted(struct kunit *test, const struct transition *transition,
				       const struct hghca_qp *hqp, u32 mark, u32 given)
{
	struct fake_command *cmd = transition_command(test, mark);
	u32 mask = transition->device;
	u32 i;

	KUNIT_EXPECT_EQ(test, transition->to, hqp->state);
	if (!transition->op) {
		KUNIT_EXPECT_NULL(test, cmd);
		return;
	}
	KUNIT_ASSERT_NOT_NULL(test, cmd);
	KUNIT_EXPECT_EQ(test, transition->op, cmd->op);
	KUNIT_EXPECT_EQ(test, hqp->hw.qpn, cmd->in_modifier);
	if (transition->op == 0x1e || transition->op == 0x21) {
		/* No mailbox. */
		KUNIT_EXPECT_EQ(test, 3, cmd->op_modifier);
		KUNIT_EXPECT_EQ(test, 0, cmd->in_param);
		return;
	}
	KUNIT_EXPECT_EQ(test, 0, cmd->op_modifier);
	for (i = 0; i < ARRAY_SIZE(transition_attrs); i++)
		if (given & transition_attrs[i].verbs)
			mask |= transition_attrs[i].device;
	KUNIT_EXPECT_EQ(test, mask, be32_at(cmd->mailbox, 0));
	transition_expect_context(test, transition, cmd->mailbox, given);
}

static void transition_expect(struct kunit *test, const struct transition_param *param)
{
	const struct transition *transition = param->transition;
	struct hghca_qp *hqp = transition_qp(transition->type, transition->from);
	enum transition_verdict verdict = transition_verdict(param);
	struct ib_qp_attr attr = transition_values();
	u32 mark = fake_mark(transition_fake);
	u32 given = transition->required;
	int err = 0;

	attr.qp_state = transition->to;
	attr.cur_qp_state = transition->from;
	if (param->attr >= 0) {
		u32 verbs = transition_attrs[param->attr].verbs;

		given ^= verbs;
		if (verdict != WITH_OPTIONAL)
			err = verbs & (IB_QP_ALT_PATH | IB_QP_CAP) ? -EOPNOTSUPP : -EINVAL;
	}

	KUNIT_EXPECT_EQ(test, err, hghca_modify_qp(&hqp->ibqp, &attr, IB_QP_STATE | given, NULL));
	if (!err) {
		transition_expect_accepted(test, transition, hqp, mark, given);
		return;
	}
	KUNIT_EXPECT_EQ(test, mark, fake_mark(transition_fake));
	KUNIT_EXPECT_EQ(test, transition->from, hqp->state);
	KUNIT_EXPECT_MEMEQ(test, &transition_contexts[transition->type], &hqp->qpc,
			   sizeof(hqp->qpc));
}

/* A transition as required, without each required attribute, and with each other one. */
static void transition_with_attribute(struct kunit *test)
{
	static const char * const verdicts[] = {
		[AS_REQUIRED] = "as required", [WITHOUT_REQUIRED] = "refused without",
		[WITH_OPTIONAL] = "accepted with", [WITH_FORBIDDEN] = "refused with",
	};
	struct transition_param param = { .transition = test->param_value };

	for (param.attr = -1; param.attr < (int)ARRAY_SIZE(transition_attrs); param.attr++) {
		transition_expect(test, &param);
		if (READ_ONCE(test->status) != KUNIT_FAILURE)
			continue;
		KUNIT_FAIL(test, "expected: %s %s", verdicts[transition_verdict(&param)],
			   param.attr < 0 ? "" : transition_attrs[param.attr].name);
		return;
	}
}

/* All optional attributes at a time. */
static const void *transition_all_next(const void *prev, char *desc)
{
	const struct transition *transition = prev;

	do
		transition = transition_next(transition, desc);
	while (transition && !transition->optional);
	return transition;
}

KERNELS_PARAMS(transition_all)

static void transition_with_all(struct kunit *test)
{
	const struct transition *transition = test->param_value;
	struct hghca_qp *hqp = transition_qp(transition->type, transition->from);
	u32 given = transition->required | transition->optional;
	struct ib_qp_attr attr = transition_values();
	u32 mark = fake_mark(transition_fake);

	attr.qp_state = transition->to;
	attr.cur_qp_state = transition->from;
	KUNIT_EXPECT_EQ(test, 0, hghca_modify_qp(&hqp->ibqp, &attr, IB_QP_STATE | given, NULL));
	transition_expect_accepted(test, transition, hqp, mark, given);
}

/* ------------------------------------------------------------------ */
/* Transitions that do not exist                                        */

struct transition_pair {
	enum transition_type type;
	enum ib_qp_state from;
	enum ib_qp_state to;
};

static bool transition_exists(const struct transition_pair *pair)
{
	u32 i;

	/* A reliable service does not enter SQE: what it would do there is nobody's matter. */
	if (pair->from == IB_QPS_SQE &&
	    (pair->type == RC || pair->type == INI || pair->type == TGT))
		return true;
	for (i = 0; i < ARRAY_SIZE(transitions); i++)
		if (transitions[i].type == pair->type && transitions[i].from == pair->from &&
		    transitions[i].to == pair->to)
			return true;
	return false;
}

static const void *transition_none_next(const void *prev, char *desc)
{
	static struct transition_pair pair;
	static u32 number;

	number = prev ? number + 1 : 0;
	for (; number < TRANSITION_TYPES * 49; number++) {
		pair.type = number / 49;
		pair.from = number / 7 % 7;
		pair.to = number % 7;
		if (!transition_exists(&pair))
			break;
	}
	if (number == TRANSITION_TYPES * 49)
		return NULL;
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s %s to %s", transition_type_names[pair.type],
		 transition_state_names[pair.from], transition_state_names[pair.to]);
	return &pair;
}

KERNELS_PARAMS(transition_none)

static void transition_that_is_none(struct kunit *test)
{
	const struct transition_pair *pair = test->param_value;
	struct hghca_qp *hqp = transition_qp(pair->type, pair->from);
	struct ib_qp_attr attr = transition_values();
	u32 mark = fake_mark(transition_fake);

	attr.qp_state = pair->to;
	KUNIT_EXPECT_EQ(test, -EINVAL, hghca_modify_qp(&hqp->ibqp, &attr, IB_QP_STATE, NULL));
	KUNIT_EXPECT_EQ(test, mark, fake_mark(transition_fake));
	KUNIT_EXPECT_EQ(test, pair->from, hqp->state);
}

/* ------------------------------------------------------------------ */
/* Values that cannot be                                                */

#define TRANSITION_BAD(name, change) \
	static void bad_##name(struct ib_qp_attr *attr) \
	{ \
		change; \
	}

TRANSITION_BAD(port_0, attr->port_num = 0)
TRANSITION_BAD(port_2, attr->port_num = 2)
TRANSITION_BAD(pkey, attr->pkey_index = 1)
TRANSITION_BAD(mtu_0, attr->path_mtu = 0)
TRANSITION_BAD(mtu_6, attr->path_mtu = IB_MTU_4096 + 1)
TRANSITION_BAD(timeout, attr->timeout = 32)
TRANSITION_BAD(retry, attr->retry_cnt = 8)
TRANSITION_BAD(rnr_retry, attr->rnr_retry = 8)
TRANSITION_BAD(rnr_timer, attr->min_rnr_timer = 32)
TRANSITION_BAD(rd_atomic, attr->max_rd_atomic = 17)
TRANSITION_BAD(dest_rd_atomic, attr->max_dest_rd_atomic = 17)
TRANSITION_BAD(dest_qpn, attr->dest_qp_num = 0x1000000)
TRANSITION_BAD(mig_state, attr->path_mig_state = IB_MIG_REARM)
TRANSITION_BAD(av_flags, rdma_ah_set_ah_flags(&attr->ah_attr, 0))
TRANSITION_BAD(av_port, rdma_ah_set_port_num(&attr->ah_attr, 2))
TRANSITION_BAD(av_type, attr->ah_attr.type = RDMA_AH_ATTR_TYPE_IB)
TRANSITION_BAD(av_gid, attr->ah_attr.grh.sgid_index = 128)
TRANSITION_BAD(av_rate_1, rdma_ah_set_static_rate(&attr->ah_attr, 1))
TRANSITION_BAD(av_rate_25, rdma_ah_set_static_rate(&attr->ah_attr, 25))

static const struct transition_bad_value {
	const char *name;
	enum ib_qp_state from;
	enum ib_qp_state to;
	void (*spoil)(struct ib_qp_attr *attr);
} transition_bad_values[] = {
	{ "port 0", IB_QPS_RESET, IB_QPS_INIT, bad_port_0 },
	{ "port 2", IB_QPS_RESET, IB_QPS_INIT, bad_port_2 },
	{ "P_Key index 1", IB_QPS_RESET, IB_QPS_INIT, bad_pkey },
	{ "path MTU code 0", IB_QPS_INIT, IB_QPS_RTR, bad_mtu_0 },
	{ "path MTU code 6", IB_QPS_INIT, IB_QPS_RTR, bad_mtu_6 },
	{ "RNR timer 32", IB_QPS_INIT, IB_QPS_RTR, bad_rnr_timer },
	{ "17 READs as target", IB_QPS_INIT, IB_QPS_RTR, bad_dest_rd_atomic },
	{ "a QPN of 25 bits", IB_QPS_INIT, IB_QPS_RTR, bad_dest_qpn },
	{ "an address without GRH", IB_QPS_INIT, IB_QPS_RTR, bad_av_flags },
	{ "an address on port 2", IB_QPS_INIT, IB_QPS_RTR, bad_av_port },
	{ "an address of InfiniBand", IB_QPS_INIT, IB_QPS_RTR, bad_av_type },
	{ "source GID index 128", IB_QPS_INIT, IB_QPS_RTR, bad_av_gid },
	{ "static rate 1", IB_QPS_INIT, IB_QPS_RTR, bad_av_rate_1 },
	{ "static rate 25", IB_QPS_INIT, IB_QPS_RTR, bad_av_rate_25 },
	{ "time-out 32", IB_QPS_RTR, IB_QPS_RTS, bad_timeout },
	{ "retry count 8", IB_QPS_RTR, IB_QPS_RTS, bad_retry },
	{ "RNR retry count 8", IB_QPS_RTR, IB_QPS_RTS, bad_rnr_retry },
	{ "17 READs as initiator", IB_QPS_RTR, IB_QPS_RTS, bad_rd_atomic },
	{ "path migration rearmed", IB_QPS_RTS, IB_QPS_RTS, bad_mig_state },
};

static void transition_bad_value_name(const struct transition_bad_value *value, char *desc)
{
	strscpy(desc, value->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(transition_bad_value, transition_bad_values, transition_bad_value_name);

static void transition_with_bad_value(struct kunit *test)
{
	const struct transition_bad_value *bad = test->param_value;
	struct hghca_qp *hqp = transition_qp(RC, bad->from);
	struct ib_qp_attr attr = transition_values();
	u32 mark = fake_mark(transition_fake);
	u32 given = IB_QP_STATE;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(transitions); i++)
		if (transitions[i].type == RC && transitions[i].from == bad->from &&
		    transitions[i].to == bad->to)
			given |= transitions[i].required | transitions[i].optional;
	attr.qp_state = bad->to;
	attr.cur_qp_state = bad->from;
	bad->spoil(&attr);
	KUNIT_EXPECT_EQ(test, -EINVAL, hghca_modify_qp(&hqp->ibqp, &attr, given, NULL));
	KUNIT_EXPECT_EQ(test, mark, fake_mark(transition_fake));
	KUNIT_EXPECT_EQ(test, bad->from, hqp->state);
}

/* ------------------------------------------------------------------ */
/* Steps that follow each other, and the device's word                  */

/* A verb without a new state keeps the one there is. */
static void transition_without_state(struct kunit *test)
{
	struct hghca_qp *hqp = transition_qp(RC, IB_QPS_RTS);
	struct ib_qp_attr attr = transition_values();
	u32 mark = fake_mark(transition_fake);

	KUNIT_EXPECT_EQ(test, 0, hghca_modify_qp(&hqp->ibqp, &attr, IB_QP_MIN_RNR_TIMER, NULL));
	KUNIT_ASSERT_NOT_NULL(test, transition_command(test, mark));
	KUNIT_EXPECT_EQ(test, 0x1c, transition_command(test, mark)->op);
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, hqp->state);
}

/* What was set in one step is there in the next. */
static void transition_context_grows(struct kunit *test)
{
	struct hghca_qp *hqp = transition_qp(RC, IB_QPS_INIT);
	struct ib_qp_attr attr = transition_values();
	struct fake_command *cmd;
	u32 mark;

	attr.qp_state = IB_QPS_RTR;
	KUNIT_ASSERT_EQ(test, 0, hghca_modify_qp(&hqp->ibqp, &attr, IB_QP_STATE | IB_QP_AV |
						 IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
						 IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER,
						 NULL));
	mark = fake_mark(transition_fake);
	attr.qp_state = IB_QPS_RTS;
	KUNIT_ASSERT_EQ(test, 0, hghca_modify_qp(&hqp->ibqp, &attr, IB_QP_STATE | IB_QP_TIMEOUT |
						 IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
						 IB_QP_MAX_QP_RD_ATOMIC, NULL));
	cmd = transition_command(test, mark);
	KUNIT_ASSERT_NOT_NULL(test, cmd);
	KUNIT_EXPECT_EQ(test, 0x00badbad, be32_at(cmd->mailbox, 0x18));
	KUNIT_EXPECT_EQ(test, 0x0eabcdef, be32_at(cmd->mailbox, 0x84));
	KUNIT_EXPECT_EQ(test, 0x07090500, be32_at(cmd->mailbox, 0xa8));
}

/* RST2INIT carries what is no attribute. */
static void transition_first_context(struct kunit *test)
{
	struct hghca_qp *hqp = transition_qp(RC, IB_QPS_RESET);
	struct ib_qp_attr attr = transition_values();
	u32 mark = fake_mark(transition_fake);
	const u8 *context;

	attr.qp_state = IB_QPS_INIT;
	KUNIT_ASSERT_EQ(test, 0, hghca_modify_qp(&hqp->ibqp, &attr, IB_QP_STATE | IB_QP_PORT |
						 IB_QP_PKEY_INDEX | IB_QP_ACCESS_FLAGS, NULL));
	KUNIT_ASSERT_NOT_NULL(test, transition_command(test, mark));
	context = transition_command(test, mark)->mailbox;
	KUNIT_EXPECT_EQ(test, 0x00000000, be32_at(context, 0x08));	/* RC */
	/* message of 2^31 bytes; slots of 64 bytes each */
	KUNIT_EXPECT_EQ(test, 0x1f060600, be32_at(context, 0x0c));
	KUNIT_EXPECT_EQ(test, 0, be32_at(context, 0x10));		/* UAR page */
	KUNIT_EXPECT_EQ(test, hqp->hw.qpn, be32_at(context, 0x14));
	KUNIT_EXPECT_EQ(test, transition_pd->pdn, be32_at(context, 0x5c));
	KUNIT_EXPECT_EQ(test, transition_cq->hw.cqn, be32_at(context, 0x70));
	KUNIT_EXPECT_EQ(test, hqp->sq.queue.mr.key, be32_at(context, 0x74));
	KUNIT_EXPECT_EQ(test, 256, be32_at(context, 0x78));
	KUNIT_EXPECT_EQ(test, transition_cq->hw.cqn, be32_at(context, 0x8c));
	KUNIT_EXPECT_EQ(test, hqp->rq.queue.mr.key, be32_at(context, 0x90));
	KUNIT_EXPECT_EQ(test, 256, be32_at(context, 0x94));
	KUNIT_EXPECT_EQ(test, hqp->dbr.dma | 1, be64_at(context, 0xa0));
	KUNIT_EXPECT_EQ(test, 0, be32_at(context, 0xbc));		/* both counters */
}

static void transition_service_types(struct kunit *test)
{
	/* Service type 23:16. */
	KUNIT_EXPECT_EQ(test, 0x00000000, be32_at(&transition_contexts[RC], 0x08));
	KUNIT_EXPECT_EQ(test, 0x00010000, be32_at(&transition_contexts[UC], 0x08));
	KUNIT_EXPECT_EQ(test, 0x00030000, be32_at(&transition_contexts[UD], 0x08));
	KUNIT_EXPECT_EQ(test, 0x00030000, be32_at(&transition_contexts[GSI], 0x08));
	KUNIT_EXPECT_EQ(test, 1, be32_at(&transition_contexts[GSI], 0x14));
}

/* The device went to SQE by itself: the verb may say so. */
static void transition_cur_state_sqe(struct kunit *test)
{
	struct hghca_qp *hqp = transition_qp(UD, IB_QPS_RTS);
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTS, .cur_qp_state = IB_QPS_SQE };
	u32 mark = fake_mark(transition_fake);

	KUNIT_EXPECT_EQ(test, 0, hghca_modify_qp(&hqp->ibqp, &attr,
						 IB_QP_STATE | IB_QP_CUR_STATE, NULL));
	KUNIT_ASSERT_NOT_NULL(test, transition_command(test, mark));
	KUNIT_EXPECT_EQ(test, 0x1d, transition_command(test, mark)->op);
}

static enum fake_end transition_refuse(struct fake *fake, const struct fake_command *cmd,
				       struct fake_answer *answer)
{
	if (transition_is_qp_command(cmd->op))
		answer->status = 0x10;
	return FAKE_ANSWERED;
}

/* What the device refuses has not happened. */
static void transition_refused_by_device(struct kunit *test)
{
	struct hghca_qp *hqp = transition_qp(RC, IB_QPS_RTS);
	struct ib_qp_attr attr = transition_values();

	transition_fake->answer = transition_refuse;
	attr.qp_state = IB_QPS_RTS;
	KUNIT_EXPECT_EQ(test, -EINVAL, hghca_modify_qp(&hqp->ibqp, &attr,
						       IB_QP_STATE | IB_QP_ACCESS_FLAGS, NULL));
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, hqp->state);
	KUNIT_EXPECT_MEMEQ(test, &transition_contexts[RC], &hqp->qpc, sizeof(hqp->qpc));
}

/* QP 1 is directed to the GSI QP from its first step on, and withdrawn before its last. */
static void transition_gsi(struct kunit *test)
{
	struct hghca_qp *hqp = transition_qp(GSI, IB_QPS_RESET);
	struct ib_qp_attr attr = transition_values();
	u32 mark = fake_mark(transition_fake);
	struct fake_command *cmd;

	attr.qp_state = IB_QPS_INIT;
	KUNIT_ASSERT_EQ(test, 0, hghca_modify_qp(&hqp->ibqp, &attr, IB_QP_STATE |
						 IB_QP_PKEY_INDEX | IB_QP_QKEY, NULL));
	KUNIT_ASSERT_EQ(test, mark + 2, fake_mark(transition_fake));
	cmd = fake_nth(transition_fake, mark + 1);
	KUNIT_EXPECT_EQ(test, 0x023, cmd->op);
	KUNIT_EXPECT_EQ(test, 1, cmd->op_modifier);
	KUNIT_EXPECT_EQ(test, 1, cmd->in_modifier);

	mark = fake_mark(transition_fake);
	attr.qp_state = IB_QPS_RESET;
	KUNIT_ASSERT_EQ(test, 0, hghca_modify_qp(&hqp->ibqp, &attr, IB_QP_STATE, NULL));
	KUNIT_ASSERT_EQ(test, mark + 2, fake_mark(transition_fake));
	cmd = fake_nth(transition_fake, mark);
	KUNIT_EXPECT_EQ(test, 0x023, cmd->op);
	KUNIT_EXPECT_EQ(test, 1, cmd->op_modifier);
	KUNIT_EXPECT_EQ(test, 0, cmd->in_modifier);
	KUNIT_EXPECT_EQ(test, 0x21, fake_nth(transition_fake, mark + 1)->op);
}

/* Attributes beyond the standard are not taken. */
static void transition_rate_limit(struct kunit *test)
{
	struct hghca_qp *hqp = transition_qp(RC, IB_QPS_RTS);
	struct ib_qp_attr attr = transition_values();

	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, hghca_modify_qp(&hqp->ibqp, &attr, IB_QP_RATE_LIMIT,
							   NULL));
}

/* ------------------------------------------------------------------ */
/* QUERY_QP                                                             */

static const struct transition_query {
	const char *name;
	u32 state;	/* as the device says */
	int err;
	enum ib_qp_state expected;
} transition_queries[] = {
	{ "INIT", 1, 0, IB_QPS_INIT },
	{ "RTR", 2, 0, IB_QPS_RTR },
	{ "RTS", 3, 0, IB_QPS_RTS },
	{ "SQE", 4, 0, IB_QPS_SQE },
	{ "SQD", 5, 0, IB_QPS_SQD },
	{ "ERR", 6, 0, IB_QPS_ERR },
	{ "RST, though it was not reset", 0, 0, IB_QPS_RESET },
	{ "an undefined state", 7, -EIO },
	{ "state 15", 15, -EIO },
};

static void transition_query_name(const struct transition_query *query, char *desc)
{
	strscpy(desc, query->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(transition_query, transition_queries, transition_query_name);

static enum fake_end transition_answer_query(struct fake *fake, const struct fake_command *cmd,
					     struct fake_answer *answer)
{
	const struct transition_query *query = fake->priv;
	__be32 *context = fake->out;
	u32 i;

	if (cmd->op != 0x22)
		return FAKE_ANSWERED;
	for (i = 0; i < ARRAY_SIZE(transition_attrs); i++)
		context[transition_attrs[i].offset / 4] |= cpu_to_be32(transition_attrs[i].value);
	for (i = 0; i < ARRAY_SIZE(transition_av); i++)
		context[transition_av[i].offset / 4] |= cpu_to_be32(transition_av[i].value);
	/* State 31:28, draining 27. */
	context[2] = cpu_to_be32(query->state << 28 | BIT(27));
	return FAKE_ANSWERED;
}

static void transition_expect_attrs(struct kunit *test, const struct ib_qp_attr *attr)
{
	const struct ib_qp_attr expected = transition_values();

	KUNIT_EXPECT_EQ(test, expected.path_mtu, attr->path_mtu);
	KUNIT_EXPECT_EQ(test, IB_MIG_MIGRATED, attr->path_mig_state);
	KUNIT_EXPECT_EQ(test, expected.qkey, attr->qkey);
	KUNIT_EXPECT_EQ(test, expected.rq_psn, attr->rq_psn);
	KUNIT_EXPECT_EQ(test, expected.sq_psn, attr->sq_psn);
	KUNIT_EXPECT_EQ(test, expected.dest_qp_num, attr->dest_qp_num);
	KUNIT_EXPECT_EQ(test, expected.qp_access_flags & ~IB_ACCESS_LOCAL_WRITE,
			attr->qp_access_flags);
	KUNIT_EXPECT_EQ(test, 0, attr->pkey_index);
	KUNIT_EXPECT_EQ(test, 1, attr->port_num);
	KUNIT_EXPECT_EQ(test, 1, attr->sq_draining);
	KUNIT_EXPECT_EQ(test, expected.max_rd_atomic, attr->max_rd_atomic);
	KUNIT_EXPECT_EQ(test, expected.max_dest_rd_atomic, attr->max_dest_rd_atomic);
	KUNIT_EXPECT_EQ(test, expected.min_rnr_timer, attr->min_rnr_timer);
	KUNIT_EXPECT_EQ(test, expected.timeout, attr->timeout);
	KUNIT_EXPECT_EQ(test, expected.retry_cnt, attr->retry_cnt);
	KUNIT_EXPECT_EQ(test, expected.rnr_retry, attr->rnr_retry);
	KUNIT_EXPECT_EQ(test, 1, rdma_ah_get_port_num(&attr->ah_attr));
	KUNIT_EXPECT_EQ(test, 3, rdma_ah_get_sl(&attr->ah_attr));
	KUNIT_EXPECT_EQ(test, 2, rdma_ah_get_static_rate(&attr->ah_attr));
	KUNIT_EXPECT_EQ(test, 0x12345, attr->ah_attr.grh.flow_label);
	KUNIT_EXPECT_EQ(test, 5, attr->ah_attr.grh.sgid_index);
	KUNIT_EXPECT_EQ(test, 0x40, attr->ah_attr.grh.hop_limit);
	KUNIT_EXPECT_EQ(test, 0x5a, attr->ah_attr.grh.traffic_class);
	KUNIT_EXPECT_MEMEQ(test, &expected.ah_attr.grh.dgid, &attr->ah_attr.grh.dgid, 16);
	KUNIT_EXPECT_MEMEQ(test, expected.ah_attr.roce.dmac, attr->ah_attr.roce.dmac, 6);
}

static void transition_query_qp(struct kunit *test)
{
	const struct transition_query *query = test->param_value;
	struct hghca_qp *hqp = transition_qp(RC, IB_QPS_RTS);
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;

	transition_fake->priv = (void *)query;
	transition_fake->answer = transition_answer_query;
	fake_doorbell(transition_fake, 0);
	KUNIT_EXPECT_EQ(test, query->err, hghca_query_qp(&hqp->ibqp, &attr, 0, &init));
	if (query->err)
		return;
	KUNIT_EXPECT_EQ(test, query->expected, attr.qp_state);
	KUNIT_EXPECT_EQ(test, query->expected, attr.cur_qp_state);
	transition_expect_attrs(test, &attr);
	KUNIT_EXPECT_EQ(test, IB_QPT_RC, init.qp_type);
	KUNIT_EXPECT_PTR_EQ(test, &transition_cq->ibcq, init.send_cq);
	KUNIT_EXPECT_EQ(test, 4, init.cap.max_send_wr);
	/* In ERR what is posted from now on is to be flushed: a doorbell with size 0. */
	KUNIT_EXPECT_EQ(test, query->expected == IB_QPS_ERR ? (u64)hqp->hw.qpn << 40 : 0,
			fake_doorbell(transition_fake, 0));
}

static void transition_query_reset(struct kunit *test)
{
	struct hghca_qp *hqp = transition_qp(UD, IB_QPS_RESET);
	u32 mark = fake_mark(transition_fake);
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;

	KUNIT_EXPECT_EQ(test, 0, hghca_query_qp(&hqp->ibqp, &attr, 0, &init));
	KUNIT_EXPECT_EQ(test, IB_QPS_RESET, attr.qp_state);
	KUNIT_EXPECT_EQ(test, mark, fake_mark(transition_fake));
}

static enum fake_end transition_no_query(struct fake *fake, const struct fake_command *cmd,
					 struct fake_answer *answer)
{
	answer->status = 0x0a;
	return FAKE_ANSWERED;
}

static void transition_query_refused(struct kunit *test)
{
	struct hghca_qp *hqp = transition_qp(RC, IB_QPS_RTS);
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;

	transition_fake->answer = transition_no_query;
	KUNIT_EXPECT_EQ(test, -EBADF, hghca_query_qp(&hqp->ibqp, &attr, 0, &init));
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, hqp->state);
}

/* A QP left in any state by a test is reset with the device's consent. */
static void transition_exit(struct kunit *test)
{
	transition_fake->answer = NULL;
}

static struct kunit_case transition_cases[] = {
	KUNIT_CASE_PARAM(transition_with_attribute, transition_gen_params),
	KUNIT_CASE_PARAM(transition_with_all, transition_all_gen_params),
	KUNIT_CASE_PARAM(transition_that_is_none, transition_none_gen_params),
	KUNIT_CASE_PARAM(transition_with_bad_value, transition_bad_value_gen_params),
	KUNIT_CASE(transition_without_state),
	KUNIT_CASE(transition_context_grows),
	KUNIT_CASE(transition_first_context),
	KUNIT_CASE(transition_service_types),
	KUNIT_CASE(transition_cur_state_sqe),
	KUNIT_CASE(transition_refused_by_device),
	KUNIT_CASE(transition_gsi),
	KUNIT_CASE(transition_rate_limit),
	KUNIT_CASE_PARAM(transition_query_qp, transition_query_gen_params),
	KUNIT_CASE(transition_query_reset),
	KUNIT_CASE(transition_query_refused),
	{}
};

static struct kunit_suite transition_suite = {
	.name = "hghca_transitions",
	.suite_init = transition_suite_init,
	.suite_exit = transition_suite_exit,
	.exit = transition_exit,
	.test_cases = transition_cases,
};

/* ------------------------------------------------------------------ */
/* States that cannot be refused: the device that does so is given up   */

static struct hghca_qp *forced_new_qp(struct kunit *test, enum ib_qp_type type)
{
	const struct fake_qp_attr attr = {
		.type = type,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct fake *fake = test->priv;
	struct hghca_cq *hcq = fake_cq(test, fake, 15);

	return fake_qp(test, fake_pd(test, fake), hcq, hcq, &attr);
}

static struct hghca_qp *forced_qp(struct kunit *test)
{
	struct hghca_qp *hqp = forced_new_qp(test, IB_QPT_RC);
	struct fake *fake = test->priv;

	hqp->state = IB_QPS_RTS;
	fake->answer = transition_refuse;
	return hqp;
}

static void forced_reset(struct kunit *test)
{
	struct hghca_qp *hqp = forced_qp(test);
	struct fake *fake = test->priv;
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };

	KUNIT_EXPECT_EQ(test, 0, hghca_modify_qp(&hqp->ibqp, &attr, IB_QP_STATE, NULL));
	KUNIT_EXPECT_EQ(test, IB_QPS_RESET, hqp->state);
	KUNIT_EXPECT_TRUE(test, hghca_dev_has_failed(fake->hdev));
}

static void forced_error(struct kunit *test)
{
	struct hghca_qp *hqp = forced_qp(test);
	struct fake *fake = test->priv;
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	KUNIT_EXPECT_EQ(test, 0, hghca_modify_qp(&hqp->ibqp, &attr, IB_QP_STATE, NULL));
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, hqp->state);
	KUNIT_EXPECT_TRUE(test, hghca_dev_has_failed(fake->hdev));
}

static enum fake_end forced_refuse_special(struct fake *fake, const struct fake_command *cmd,
					   struct fake_answer *answer)
{
	if (cmd->op == 0x023)
		answer->status = 0x06;
	return FAKE_ANSWERED;
}

/* A GSI QP that QP 1 is not directed to has not reached INIT, and may try again. */
static void forced_gsi_refused(struct kunit *test)
{
	struct hghca_qp *hqp = forced_new_qp(test, IB_QPT_GSI);
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT, .qkey = 0x80010000 };
	const int mask = IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_QKEY;
	struct fake *fake = test->priv;
	u32 mark = fake_mark(fake);

	fake->answer = forced_refuse_special;
	KUNIT_EXPECT_EQ(test, -EBUSY, hghca_modify_qp(&hqp->ibqp, &attr, mask, NULL));
	KUNIT_EXPECT_EQ(test, IB_QPS_RESET, hqp->state);
	KUNIT_ASSERT_EQ(test, mark + 3, fake_mark(fake));
	KUNIT_EXPECT_EQ(test, 0x19, fake_nth(fake, mark)->op);
	KUNIT_EXPECT_EQ(test, 0x23, fake_nth(fake, mark + 1)->op);
	KUNIT_EXPECT_EQ(test, 0x21, fake_nth(fake, mark + 2)->op);
	KUNIT_EXPECT_FALSE(test, hghca_dev_has_failed(fake->hdev));

	fake->answer = NULL;
	KUNIT_EXPECT_EQ(test, 0, hghca_modify_qp(&hqp->ibqp, &attr, mask, NULL));
	KUNIT_EXPECT_EQ(test, IB_QPS_INIT, hqp->state);
	KUNIT_EXPECT_TRUE(test, hqp->special);
}

/* One that it stays directed to is not. */
static void forced_gsi_kept(struct kunit *test)
{
	struct hghca_qp *hqp = forced_new_qp(test, IB_QPT_GSI);
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };
	struct fake *fake = test->priv;

	hqp->state = IB_QPS_RTS;
	hqp->special = true;
	fake->answer = forced_refuse_special;
	KUNIT_EXPECT_EQ(test, 0, hghca_modify_qp(&hqp->ibqp, &attr, IB_QP_STATE, NULL));
	KUNIT_EXPECT_EQ(test, IB_QPS_RESET, hqp->state);
	KUNIT_EXPECT_TRUE(test, hghca_dev_has_failed(fake->hdev));
}

static struct kunit_case forced_cases[] = {
	KUNIT_CASE(forced_reset),
	KUNIT_CASE(forced_error),
	KUNIT_CASE(forced_gsi_refused),
	KUNIT_CASE(forced_gsi_kept),
	{}
};

static struct kunit_suite forced_suite = {
	.name = "hghca_forced_transitions",
	.init = fake_test_init_events,
	.test_cases = forced_cases,
};

kunit_test_suites(&transition_suite, &forced_suite);
