// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of the link's flow control (interface document, 4.27): pause
 * frames as ethtool sets them, PFC as DCB does; what the device is told, byte by
 * byte.
 */
#include <linux/ethtool.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <net/dcbnl.h>

#include "fake.h"
#include "../../kernel/net/netdev.h"

#define FLOWCONTROL_CAP		BIT(21)
#define FLOWCONTROL_BYTES	0x40
#define FLOWCONTROL_SET		0xe0e
#define FLOWCONTROL_QUERY	0xe0f

/* Flags of struct hghca_flow_control, and its classes. */
#define PAUSE_RX		BIT(0)
#define PAUSE_TX		BIT(1)
#define PFC_RX			BIT(2)
#define PFC_TX			BIT(3)
#define PFC			(PFC_RX | PFC_TX)
#define ROCE			BIT(0)
#define OTHER			BIT(1)

/* Its places. */
#define FLAGS_AT		0x03
#define ROCE_PRIORITY_AT	0x06
#define OTHER_PRIORITY_AT	0x07
#define CLASSES_AT		0x20

struct flowcontrol {
	struct fake *fake;
	struct net_device *netdev;
	u8 settings[FLOWCONTROL_BYTES];	/* of the device */
	u16 refused;			/* opcode */
	u32 mark;			/* number of the first command of a test */
};

static enum fake_end flowcontrol_answer(struct fake *fake, const struct fake_command *cmd,
					struct fake_answer *answer)
{
	struct flowcontrol *this = fake->priv;

	if (cmd->op == this->refused)
		answer->status = 0x03;
	else if (cmd->op == FLOWCONTROL_QUERY)
		memcpy(fake->out, this->settings, FLOWCONTROL_BYTES);
	else if (cmd->op == FLOWCONTROL_SET)
		memcpy(this->settings, cmd->mailbox, FLOWCONTROL_BYTES);
	return FAKE_ANSWERED;
}

static void flowcontrol_unregister(void *hdev)
{
	hghca_netdev_unregister(hdev);
}

static void flowcontrol_set_up_port(struct fake *fake)
{
	fake->port.mac_h = cpu_to_be32(0x02000000);
	fake->port.mac_l = cpu_to_be16(0x0001);
	fake->port.speed = cpu_to_be32(100000);
	fake->port.max_mtu = cpu_to_be32(9000);
}

static void flowcontrol_set_up(struct fake *fake)
{
	fake->limits.caps |= cpu_to_be32(FLOWCONTROL_CAP);
	flowcontrol_set_up_port(fake);
}

static int flowcontrol_open(struct kunit *test, void (*set_up)(struct fake *fake))
{
	struct flowcontrol *this = kunit_kzalloc(test, sizeof(*this), GFP_KERNEL);
	u32 i;
	int err;

	if (!this)
		return -ENOMEM;
	err = fake_test_open(test, set_up, false);
	if (err)
		return err;
	this->fake = test->priv;
	/* Each byte another, and the document's defaults. */
	for (i = 0; i < FLOWCONTROL_BYTES; i++)
		this->settings[i] = 0x41 + 3 * i;
	memset(this->settings, 0, 4);
	this->settings[ROCE_PRIORITY_AT] = 3;
	this->settings[OTHER_PRIORITY_AT] = 0;
	this->settings[CLASSES_AT] = ROCE | OTHER;
	this->fake->priv = this;
	this->fake->answer = flowcontrol_answer;
	test->priv = this;
	err = hghca_netdev_register(this->fake->hdev);
	if (err)
		return err;
	err = kunit_add_action_or_reset(test, flowcontrol_unregister, this->fake->hdev);
	if (err)
		return err;
	this->netdev = this->fake->hdev->netdev;
	this->mark = fake_mark(this->fake);
	return 0;
}

static int flowcontrol_init(struct kunit *test)
{
	return flowcontrol_open(test, flowcontrol_set_up);
}

static int flowcontrol_init_without(struct kunit *test)
{
	return flowcontrol_open(test, flowcontrol_set_up_port);
}

/* The device was asked, and told @expected; all other commands would be too many. */
static void flowcontrol_expect_set(struct kunit *test, const u8 *expected)
{
	struct flowcontrol *this = test->priv;
	struct fake_command *set;

	KUNIT_ASSERT_EQ(test, this->mark + 2, fake_mark(this->fake));
	KUNIT_EXPECT_EQ(test, FLOWCONTROL_QUERY, fake_nth(this->fake, this->mark)->op);
	KUNIT_EXPECT_EQ(test, 1, fake_nth(this->fake, this->mark)->in_modifier);
	set = fake_nth(this->fake, this->mark + 1);
	KUNIT_EXPECT_EQ(test, FLOWCONTROL_SET, set->op);
	KUNIT_EXPECT_EQ(test, 0, set->op_modifier);
	KUNIT_EXPECT_EQ(test, 1, set->in_modifier);
	KUNIT_EXPECT_MEMEQ(test, expected, set->mailbox, FLOWCONTROL_BYTES);
}

/* ------------------------------------------------------------------ */
/* Pause frames                                                         */

static int flowcontrol_set_pause(struct flowcontrol *this, bool rx, bool tx, bool autoneg)
{
	struct ethtool_pauseparam pause = { .rx_pause = rx, .tx_pause = tx, .autoneg = autoneg };
	int err;

	rtnl_lock();
	err = this->netdev->ethtool_ops->set_pauseparam(this->netdev, &pause);
	rtnl_unlock();
	return err;
}

static struct ethtool_pauseparam flowcontrol_get_pause(struct flowcontrol *this)
{
	struct ethtool_pauseparam pause = {};

	rtnl_lock();
	this->netdev->ethtool_ops->get_pauseparam(this->netdev, &pause);
	rtnl_unlock();
	return pause;
}

static const struct flowcontrol_pause {
	const char *name;
	u8 before;
	bool rx;
	bool tx;
	u8 after;
} flowcontrol_pauses[] = {
	{ "both", 0, true, true, PAUSE_RX | PAUSE_TX },
	{ "obeyed alone", PAUSE_TX, true, false, PAUSE_RX },
	{ "sent alone", PAUSE_RX, false, true, PAUSE_TX },
	{ "none", PAUSE_RX | PAUSE_TX, false, false, 0 },
	/* A port has PFC or pauses of all, whichever came last. */
	{ "in the place of PFC", PFC, true, true, PAUSE_RX | PAUSE_TX },
	{ "obeyed alone, in the place of PFC", PFC, true, false, PAUSE_RX },
	{ "none, beside PFC", PFC, false, false, PFC },
};

static void flowcontrol_pause_name(const struct flowcontrol_pause *pause, char *desc)
{
	strscpy(desc, pause->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(flowcontrol_pause, flowcontrol_pauses, flowcontrol_pause_name);

static void flowcontrol_test_pause(struct kunit *test)
{
	const struct flowcontrol_pause *param = test->param_value;
	struct flowcontrol *this = test->priv;
	u8 expected[FLOWCONTROL_BYTES];
	struct ethtool_pauseparam now;

	this->settings[FLAGS_AT] = param->before;
	memcpy(expected, this->settings, sizeof(expected));
	expected[FLAGS_AT] = param->after;
	KUNIT_ASSERT_EQ(test, 0, flowcontrol_set_pause(this, param->rx, param->tx, false));
	flowcontrol_expect_set(test, expected);

	now = flowcontrol_get_pause(this);
	KUNIT_EXPECT_EQ(test, param->rx, now.rx_pause);
	KUNIT_EXPECT_EQ(test, param->tx, now.tx_pause);
	KUNIT_EXPECT_EQ(test, 0, now.autoneg);
}

static void flowcontrol_pause_refused(struct kunit *test)
{
	struct flowcontrol *this = test->priv;

	/* There is nobody to negotiate with. */
	KUNIT_EXPECT_EQ(test, -EINVAL, flowcontrol_set_pause(this, true, true, true));
	KUNIT_EXPECT_EQ(test, this->mark, fake_mark(this->fake));

	this->refused = FLOWCONTROL_QUERY;
	KUNIT_EXPECT_EQ(test, -EINVAL, flowcontrol_set_pause(this, true, true, false));
	KUNIT_EXPECT_EQ(test, this->mark + 1, fake_mark(this->fake));
	this->settings[FLAGS_AT] = PAUSE_RX | PAUSE_TX;
	KUNIT_EXPECT_EQ(test, 0, flowcontrol_get_pause(this).rx_pause);

	this->refused = FLOWCONTROL_SET;
	KUNIT_EXPECT_EQ(test, -EINVAL, flowcontrol_set_pause(this, false, false, false));
	KUNIT_EXPECT_EQ(test, 1, flowcontrol_get_pause(this).rx_pause);
}

/* ------------------------------------------------------------------ */
/* PFC                                                                  */

static int flowcontrol_set_pfc(struct flowcontrol *this, struct ieee_pfc pfc)
{
	int err;

	rtnl_lock();
	err = this->netdev->dcbnl_ops->ieee_setpfc(this->netdev, &pfc);
	rtnl_unlock();
	return err;
}

static int flowcontrol_get_pfc(struct flowcontrol *this, struct ieee_pfc *pfc)
{
	int err;

	memset(pfc, 0, sizeof(*pfc));
	rtnl_lock();
	err = this->netdev->dcbnl_ops->ieee_getpfc(this->netdev, pfc);
	rtnl_unlock();
	return err;
}

static const struct flowcontrol_shown {
	const char *name;
	u8 flags;
	u8 roce_priority;
	u8 other_priority;
	u8 classes;
	int err;
	u8 enabled;	/* a bit a priority */
} flowcontrol_shows[] = {
	{ "none", 0, 3, 0, ROCE | OTHER, 0, 0 },
	{ "none, but pauses of all", PAUSE_RX | PAUSE_TX, 3, 0, ROCE | OTHER, 0, 0 },
	{ "RoCE", PFC, 3, 0, ROCE, 0, BIT(3) },
	{ "others", PFC, 3, 0, OTHER, 0, BIT(0) },
	{ "both", PFC, 3, 0, ROCE | OTHER, 0, BIT(3) | BIT(0) },
	{ "both, at other priorities", PFC, 7, 5, ROCE | OTHER, 0, BIT(7) | BIT(5) },
	{ "obeyed alone", PFC_RX, 3, 0, ROCE, 0, BIT(3) },
	{ "sent alone", PFC_TX, 3, 0, ROCE, 0, BIT(3) },
	{ "a priority of RoCE that cannot be", PFC, 8, 0, ROCE, -EPROTO },
	{ "a priority of others that cannot be", PFC, 3, 255, ROCE, -EPROTO },
};

static void flowcontrol_shown_name(const struct flowcontrol_shown *shown, char *desc)
{
	strscpy(desc, shown->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(flowcontrol_shown, flowcontrol_shows, flowcontrol_shown_name);

static void flowcontrol_test_shown(struct kunit *test)
{
	const struct flowcontrol_shown *param = test->param_value;
	struct flowcontrol *this = test->priv;
	struct ieee_pfc pfc;

	this->settings[FLAGS_AT] = param->flags;
	this->settings[ROCE_PRIORITY_AT] = param->roce_priority;
	this->settings[OTHER_PRIORITY_AT] = param->other_priority;
	this->settings[CLASSES_AT] = param->classes;
	KUNIT_ASSERT_EQ(test, param->err, flowcontrol_get_pfc(this, &pfc));
	if (param->err) {
		/* Nothing is set by such numbers. */
		pfc = (struct ieee_pfc){ .pfc_en = BIT(3) };
		KUNIT_EXPECT_EQ(test, param->err, flowcontrol_set_pfc(this, pfc));
		KUNIT_EXPECT_EQ(test, this->mark + 2, fake_mark(this->fake));
		return;
	}
	KUNIT_EXPECT_EQ(test, 2, pfc.pfc_cap);
	KUNIT_EXPECT_EQ(test, param->enabled, pfc.pfc_en);
	KUNIT_EXPECT_EQ(test, 0, pfc.mbc);
	KUNIT_EXPECT_EQ(test, 0, pfc.delay);
	KUNIT_EXPECT_EQ(test, this->mark + 1, fake_mark(this->fake));
}

static const struct flowcontrol_pfc {
	const char *name;
	u8 before;
	u8 classes;
	u8 enabled;	/* a bit a priority; 3: RoCE, 0: others */
	u8 after;
	u8 classes_after;
} flowcontrol_pfcs[] = {
	{ "for RoCE", 0, ROCE | OTHER, BIT(3), PFC, ROCE },
	{ "for others", 0, ROCE | OTHER, BIT(0), PFC, OTHER },
	{ "for both", 0, ROCE, BIT(3) | BIT(0), PFC, ROCE | OTHER },
	{ "in the place of pauses of all", PAUSE_RX | PAUSE_TX, ROCE | OTHER, BIT(3), PFC, ROCE },
	{ "in the place of what was sent alone", PFC_TX, OTHER, BIT(3), PFC, ROCE },
	/* PFC for no class turns PFC off; the document refuses no class at all. */
	{ "for none", PFC, ROCE, 0, 0, ROCE },
	{ "for none, beside pauses of all", PAUSE_TX, ROCE | OTHER, 0, PAUSE_TX, ROCE | OTHER },
};

static void flowcontrol_pfc_name(const struct flowcontrol_pfc *pfc, char *desc)
{
	strscpy(desc, pfc->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(flowcontrol_pfc, flowcontrol_pfcs, flowcontrol_pfc_name);

static void flowcontrol_test_pfc(struct kunit *test)
{
	const struct flowcontrol_pfc *param = test->param_value;
	struct flowcontrol *this = test->priv;
	u8 expected[FLOWCONTROL_BYTES];
	struct ieee_pfc pfc = { .pfc_en = param->enabled };

	this->settings[FLAGS_AT] = param->before;
	this->settings[CLASSES_AT] = param->classes;
	memcpy(expected, this->settings, sizeof(expected));
	expected[FLAGS_AT] = param->after;
	expected[CLASSES_AT] = param->classes_after;
	KUNIT_ASSERT_EQ(test, 0, flowcontrol_set_pfc(this, pfc));
	flowcontrol_expect_set(test, expected);

	KUNIT_ASSERT_EQ(test, 0, flowcontrol_get_pfc(this, &pfc));
	KUNIT_EXPECT_EQ(test, param->enabled, pfc.pfc_en);
}

static const struct flowcontrol_bad {
	const char *name;
	struct ieee_pfc pfc;
	int err;
	u32 commands;
} flowcontrol_bads[] = {
	{ "a priority of no class", { .pfc_en = BIT(5) }, -EINVAL, 1 },
	{ "one of a class and one of none", { .pfc_en = BIT(3) | BIT(7) }, -EINVAL, 1 },
	{ "all priorities", { .pfc_en = 0xff }, -EINVAL, 1 },
	{ "MACsec bypass", { .pfc_en = BIT(3), .mbc = 1 }, -EOPNOTSUPP, 0 },
	{ "a delay", { .pfc_en = BIT(3), .delay = 100 }, -EOPNOTSUPP, 0 },
};

static void flowcontrol_bad_name(const struct flowcontrol_bad *bad, char *desc)
{
	strscpy(desc, bad->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(flowcontrol_bad, flowcontrol_bads, flowcontrol_bad_name);

static void flowcontrol_test_bad(struct kunit *test)
{
	const struct flowcontrol_bad *param = test->param_value;
	struct flowcontrol *this = test->priv;

	KUNIT_EXPECT_EQ(test, param->err, flowcontrol_set_pfc(this, param->pfc));
	KUNIT_ASSERT_EQ(test, this->mark + param->commands, fake_mark(this->fake));
	if (param->commands)
		KUNIT_EXPECT_EQ(test, FLOWCONTROL_QUERY, fake_nth(this->fake, this->mark)->op);
}

static void flowcontrol_pfc_refused(struct kunit *test)
{
	struct flowcontrol *this = test->priv;
	struct ieee_pfc pfc = { .pfc_en = BIT(3) };

	this->refused = FLOWCONTROL_SET;
	KUNIT_EXPECT_EQ(test, -EINVAL, flowcontrol_set_pfc(this, pfc));
	KUNIT_EXPECT_EQ(test, this->mark + 2, fake_mark(this->fake));
	this->refused = FLOWCONTROL_QUERY;
	KUNIT_EXPECT_EQ(test, -EINVAL, flowcontrol_set_pfc(this, pfc));
	KUNIT_EXPECT_EQ(test, -EINVAL, flowcontrol_get_pfc(this, &pfc));
	KUNIT_EXPECT_EQ(test, this->mark + 4, fake_mark(this->fake));
}

/* The host sets it, by IEEE's version; nothing else is negotiated. */
static void flowcontrol_dcbx(struct kunit *test)
{
	struct flowcontrol *this = test->priv;
	const struct dcbnl_rtnl_ops *ops = this->netdev->dcbnl_ops;
	u32 mode;

	KUNIT_EXPECT_EQ(test, 0x01 | 0x08, ops->getdcbx(this->netdev));
	for (mode = 0; mode < 0x20; mode++)
		KUNIT_EXPECT_EQ(test, mode != (0x01 | 0x08), ops->setdcbx(this->netdev, mode));
	KUNIT_EXPECT_EQ(test, this->mark, fake_mark(this->fake));
}

static struct kunit_case flowcontrol_cases[] = {
	KUNIT_CASE_PARAM(flowcontrol_test_pause, flowcontrol_pause_gen_params),
	KUNIT_CASE(flowcontrol_pause_refused),
	KUNIT_CASE_PARAM(flowcontrol_test_shown, flowcontrol_shown_gen_params),
	KUNIT_CASE_PARAM(flowcontrol_test_pfc, flowcontrol_pfc_gen_params),
	KUNIT_CASE_PARAM(flowcontrol_test_bad, flowcontrol_bad_gen_params),
	KUNIT_CASE(flowcontrol_pfc_refused),
	KUNIT_CASE(flowcontrol_dcbx),
	{}
};

static struct kunit_suite flowcontrol_suite = {
	.name = "hghca_flowcontrol",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = flowcontrol_init,
	.test_cases = flowcontrol_cases,
};

/* ------------------------------------------------------------------ */
/* A device without it                                                  */

static void flowcontrol_without(struct kunit *test)
{
	struct flowcontrol *this = test->priv;

	KUNIT_EXPECT_NULL(test, this->netdev->dcbnl_ops);
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, flowcontrol_set_pause(this, true, true, false));
	KUNIT_EXPECT_EQ(test, 0, flowcontrol_get_pause(this).rx_pause);
	KUNIT_EXPECT_EQ(test, this->mark, fake_mark(this->fake));
}

static struct kunit_case no_flowcontrol_cases[] = {
	KUNIT_CASE(flowcontrol_without),
	{}
};

static struct kunit_suite no_flowcontrol_suite = {
	.name = "hghca_no_flowcontrol",
	.init = flowcontrol_init_without,
	.test_cases = no_flowcontrol_cases,
};

kunit_test_suites(&flowcontrol_suite, &no_flowcontrol_suite);
