// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of the driver of ERNIC and ETRNIC: which platform devices it binds to, what it
 * finds, and what is left of a device that it cannot start (docs/reference/ernic.rst, 9).
 */
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/mod_devicetable.h>
#include <linux/property.h>
#include <linux/rtnetlink.h>
#include <net/ipv6.h>

#include "ernicfake.h"
#include "ernicseam.h"

/* Nothing else has these addresses. */
#define PROBE_BASE	0x7000000000ULL

static const u8 probe_mac[] = FAKE_MAC;
static const u8 probe_others[] = { 0x52, 0x54, 0x00, 0xab, 0xcd, 0xee };

static struct resource probe_bus = {
	.name = "hghca-kunit-ernic",
	.start = PROBE_BASE,
	.end = PROBE_BASE + FAKE_REGISTERS - 1,
	.flags = IORESOURCE_MEM,
};

/* A platform device; absent is what has no resource or property. */
struct probe_device {
	const char *name;
	resource_size_t bytes;	/* 0: none */
	bool no_irq;
	const u8 *mac;
};

static struct platform_device *probe_make(struct kunit *test, struct ernic_fake *fake,
					  const struct probe_device *device)
{
	const struct property_entry properties[] = {
		PROPERTY_ENTRY_U8_ARRAY_LEN("local-mac-address", device->mac, ETH_ALEN),
		{ }
	};
	struct resource resources[2] = {};
	struct platform_device_info info = {
		.name = device->name,
		.id = PLATFORM_DEVID_AUTO,
		.res = resources,
		.properties = device->mac ? properties : NULL,
	};
	struct platform_device *pdev;

	if (device->bytes)
		resources[info.num_res++] = (struct resource) {
			.start = PROBE_BASE,
			.end = PROBE_BASE + device->bytes - 1,
			.flags = IORESOURCE_MEM,
			.parent = &probe_bus,
		};
	if (!device->no_irq)
		resources[info.num_res++] = (struct resource)DEFINE_RES_IRQ(fake->irq);
	pdev = platform_device_register_full(&info);
	KUNIT_ASSERT_FALSE(test, IS_ERR(pdev));
	fake->pdev = pdev;
	return pdev;
}

static void probe_exit(void *unused)
{
	ernic_fake_module_exit();
}

/* The driver without a device; a test makes its fake device first. */
static void probe_load(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, 0, ernic_fake_module_init());
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, probe_exit, NULL));
}

/* ------------------------------------------------------------------ */
/* The net device                                                      */

static netdev_tx_t probe_xmit(struct sk_buff *skb, struct net_device *netdev)
{
	dev_kfree_skb_any(skb);
	return NETDEV_TX_OK;
}

static const struct net_device_ops probe_netdev_ops = {
	.ndo_start_xmit = probe_xmit,
	.ndo_set_mac_address = eth_mac_addr,
};

/* ib_core asks for it. */
static int probe_settings(struct net_device *netdev, struct ethtool_link_ksettings *settings)
{
	settings->base.speed = SPEED_10000;
	settings->base.duplex = DUPLEX_FULL;
	return 0;
}

static const struct ethtool_ops probe_ethtool_ops = {
	.get_link_ksettings = probe_settings,
};

static void probe_remove_netdev(void *netdev)
{
	unregister_netdev(netdev);
	free_netdev(netdev);
}

static struct net_device *probe_netdev(struct kunit *test, const u8 *mac, struct device *parent)
{
	struct net_device *netdev = alloc_etherdev(0);
	int err;

	KUNIT_ASSERT_NOT_NULL(test, netdev);
	strscpy(netdev->name, "kunit%d");
	netdev->netdev_ops = &probe_netdev_ops;
	netdev->ethtool_ops = &probe_ethtool_ops;
	SET_NETDEV_DEV(netdev, parent);
	eth_hw_addr_set(netdev, mac);
	err = register_netdev(netdev);
	if (err)
		free_netdev(netdev);
	KUNIT_ASSERT_EQ(test, 0, err);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, probe_remove_netdev, netdev));
	return netdev;
}

static void probe_remove_parent(void *parent)
{
	root_device_unregister(parent);
}

/* A parent: net devices without one are virtual. */
static struct device *probe_parent(struct kunit *test)
{
	struct device *parent;

	parent = root_device_register("hghca-kunit-ernic");
	KUNIT_ASSERT_FALSE(test, IS_ERR(parent));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, probe_remove_parent, parent));
	return parent;
}

static struct ernic_fake *probe_fake(struct kunit *test, bool is_ernic, u32 qps, u32 extensions)
{
	struct ernic_fake *fake = ernic_fake_create(test, is_ernic, qps, extensions);

	KUNIT_ASSERT_NOT_NULL(test, fake);
	return fake;
}

/* ------------------------------------------------------------------ */
/* Names                                                               */

static void probe_names(struct kunit *test)
{
	static const char * const compatibles[] = { "xlnx,ernic-1.0", "hghca,etrnic", "" };
	struct device_driver *driver;
	struct platform_driver *platform;
	u32 i;

	probe_fake(test, true, 8, 0);
	probe_load(test);
	driver = driver_find("ernic", &platform_bus_type);
	KUNIT_ASSERT_NOT_NULL(test, driver);
	platform = to_platform_driver(driver);
	KUNIT_EXPECT_STREQ(test, "ernic", platform->id_table[0].name);
	KUNIT_EXPECT_STREQ(test, "", platform->id_table[1].name);
	for (i = 0; i < ARRAY_SIZE(compatibles); i++)
		KUNIT_EXPECT_STREQ(test, compatibles[i], driver->of_match_table[i].compatible);
}

static struct device_driver *probe_find(void)
{
	return driver_find("ernic", &platform_bus_type);
}

/* The module without the driver of the PCI function, or without its own. */
static void probe_module(struct kunit *test)
{
	struct ernic_fake *fake = probe_fake(test, true, 8, 0);

	fake->refuse = 1;
	KUNIT_EXPECT_EQ(test, -ENOMEM, ernic_fake_module_init());
	KUNIT_EXPECT_NULL(test, probe_find());
	KUNIT_ASSERT_EQ(test, 0, ernic_fake_module_init());
	KUNIT_EXPECT_NOT_NULL(test, probe_find());
	ernic_fake_module_exit();
	KUNIT_EXPECT_NULL(test, probe_find());
}

/* ------------------------------------------------------------------ */
/* What it finds                                                       */

static const struct probe_size {
	const char *name;
	resource_size_t bytes;
	bool is_ernic;
	u32 qps;
	u32 max_qp;
} probe_sizes[] = {
	{ "ERNIC", 0x40000, true, 255, 254 },
	{ "ETRNIC", 0x10000, false, 128, 127 },
	{ "ETRNIC with a larger aperture", 0x20000, false, 8, 7 },
};

KUNIT_ARRAY_PARAM_DESC(probe_size, probe_sizes, name);

/* The registers of a device that is enabled: docs/reference/ernic.rst, 2.1. */
static void probe_expect_started(struct kunit *test, struct ernic_fake *fake, u32 qps,
				 u32 extensions)
{
	KUNIT_EXPECT_EQ(test, 1, ernic_fake_get(fake, 0x00) & 0x1f);
	KUNIT_EXPECT_EQ(test, qps, ernic_fake_get(fake, 0x00) >> 8 & 0xff);
	KUNIT_EXPECT_LE(test, 0xc000, ernic_fake_get(fake, 0x00) >> 16);
	KUNIT_EXPECT_EQ(test, 0, ernic_fake_get(fake, 0x04));
	KUNIT_EXPECT_EQ(test, 0x00abcdef, ernic_fake_get(fake, 0x10));
	KUNIT_EXPECT_EQ(test, 0x5254, ernic_fake_get(fake, 0x14));
	/* A WQE is complete, a SEND is received, a QP is fatal. */
	KUNIT_EXPECT_EQ(test, 0xd0, ernic_fake_get(fake, 0x180));
	KUNIT_EXPECT_EQ(test, extensions, ernic_fake_get(fake, 0x1e0) & 0xffff);
	/* A fatal error of each QP at least. */
	KUNIT_EXPECT_LT(test, qps, ernic_fake_get(fake, 0x90));
	KUNIT_EXPECT_EQ(test, extensions & 1, !!ernic_fake_get(fake, 0x1ec));
	/* The GID of the MAC address: fe80::5054:ff:feab:cdef. */
	KUNIT_EXPECT_EQ(test, 0xfeabcdef, ernic_fake_get(fake, 0x20));
	KUNIT_EXPECT_EQ(test, 0x505400ff, ernic_fake_get(fake, 0x24));
	KUNIT_EXPECT_EQ(test, 0x00000000, ernic_fake_get(fake, 0x28));
	KUNIT_EXPECT_EQ(test, 0xfe800000, ernic_fake_get(fake, 0x2c));
}

/* What ibv_query_device() shows: docs/reference/ernic.rst, 9, and decisions 3, 6 and 8. */
static void probe_expect_limits(struct kunit *test, const struct ib_device *ibdev, u32 max_qp)
{
	const struct ib_device_attr *attr = &ibdev->attrs;

	KUNIT_EXPECT_EQ(test, max_qp, attr->max_qp);
	KUNIT_EXPECT_EQ(test, 1023, attr->max_qp_wr);
	KUNIT_EXPECT_EQ(test, 16, attr->max_send_sge);
	KUNIT_EXPECT_EQ(test, 16, attr->max_recv_sge);
	KUNIT_EXPECT_EQ(test, 16, attr->max_qp_rd_atom);
	KUNIT_EXPECT_EQ(test, 16, attr->max_qp_init_rd_atom);
	KUNIT_EXPECT_EQ(test, 16 * max_qp, attr->max_res_rd_atom);
	KUNIT_EXPECT_EQ(test, 256, attr->max_mr);
	KUNIT_EXPECT_EQ(test, (int)IB_ATOMIC_NONE, (int)attr->atomic_cap);
	KUNIT_EXPECT_EQ(test, 0, attr->max_srq);
	KUNIT_EXPECT_EQ(test, 0, attr->max_mw);
	KUNIT_EXPECT_EQ(test, 1, attr->max_pkeys);
	KUNIT_EXPECT_EQ(test, 0x505400fffeabcdefULL, be64_to_cpu(ibdev->node_guid));
}

static void probe_personality(struct kunit *test)
{
	const struct probe_size *param = test->param_value;
	const struct probe_device device = { "ernic", param->bytes, false, probe_mac };
	struct ernic_fake *fake = probe_fake(test, param->is_ernic, param->qps,
					     FAKE_RECORDS | FAKE_PAGES);
	struct ernic_func *func;
	struct platform_device *pdev;

	probe_load(test);
	probe_netdev(test, probe_mac, probe_parent(test));
	pdev = probe_make(test, fake, &device);
	func = platform_get_drvdata(pdev);
	KUNIT_ASSERT_NOT_NULL(test, func);
	KUNIT_EXPECT_EQ(test, param->is_ernic, func->is_ernic);
	KUNIT_EXPECT_EQ(test, param->is_ernic ? DMA_BIT_MASK(64) : DMA_BIT_MASK(32),
			dma_get_mask(&pdev->dev));
	KUNIT_ASSERT_NOT_NULL(test, func->edev);
	probe_expect_started(test, fake, param->qps, param->is_ernic ? 3 : 1);
	probe_expect_limits(test, &func->edev->ibdev, param->max_qp);
	ernic_fake_close(fake);
	KUNIT_EXPECT_EQ(test, 0, ernic_fake_get(fake, 0x00));
	KUNIT_EXPECT_EQ(test, 0, ernic_fake_get(fake, 0x180));
	KUNIT_EXPECT_EQ(test, 0, fake->coherent);
	KUNIT_EXPECT_EQ(test, 0, fake->strays);
}

static const struct probe_count {
	const char *name;
	bool is_ernic;
	u32 qps;		/* C_NUM_QP */
	int err;
} probe_counts[] = {
	{ "ERNIC with 255 QPs", true, 255, 0 },
	{ "ERNIC with 254 QPs", true, 254, 0 },
	{ "ERNIC with 100 QPs", true, 100, 0 },
	{ "ERNIC with 8 QPs", true, 8, 0 },
	{ "ERNIC with 7 QPs", true, 7, -ENODEV },
	{ "ERNIC without QPs", true, 0, -ENODEV },
	{ "ETRNIC with 128 QPs", false, 128, 0 },
	{ "ETRNIC with 8 QPs", false, 8, 0 },
	{ "ETRNIC with 7 QPs", false, 7, -ENODEV },
};

KUNIT_ARRAY_PARAM_DESC(probe_count, probe_counts, name);

/* No register has C_NUM_QP: decision 3. */
static void probe_number(struct kunit *test)
{
	const struct probe_count *param = test->param_value;
	struct ernic_fake *fake = probe_fake(test, param->is_ernic, param->qps, 0);

	KUNIT_ASSERT_EQ(test, param->err, ernic_fake_open(fake));
	KUNIT_EXPECT_EQ(test, !param->err, ernic_fake_get(fake, 0x00) & 1);
	if (!param->err)
		KUNIT_EXPECT_EQ(test, param->qps, ernic_fake_get(fake, 0x00) >> 8 & 0xff);
	/* What was written to find them is not there any more: DESTQPCONF. */
	KUNIT_EXPECT_EQ(test, 0, ernic_fake_qp_get(fake, 1, FAKE_DESTQPCONF));
	KUNIT_EXPECT_EQ(test, 0, ernic_fake_qp_get(fake, 8, FAKE_DESTQPCONF));
	KUNIT_EXPECT_EQ(test, 0, fake->strays);
}

/* ------------------------------------------------------------------ */
/* What it refuses                                                     */

static const u8 probe_group[] = { 0x01, 0x00, 0x5e, 0x01, 0x02, 0x03 };
static const u8 probe_zeros[ETH_ALEN];

static const struct probe_bad {
	const char *name;
	struct probe_device device;
	bool is_bound;
} probe_bads[] = {
	{ "one that is sound", { "ernic", 0x40000, false, probe_mac }, true },
	{ "another name", { "ernic2", 0x40000, false, probe_mac } },
	{ "no registers", { "ernic", 0, false, probe_mac } },
	{ "too few registers", { "ernic", 0xf000, false, probe_mac } },
	{ "no interrupt", { "ernic", 0x40000, true, probe_mac } },
	{ "no MAC address", { "ernic", 0x40000, false, NULL } },
	{ "the MAC address of a group", { "ernic", 0x40000, false, probe_group } },
	{ "a MAC address of zeros", { "ernic", 0x40000, false, probe_zeros } },
};

KUNIT_ARRAY_PARAM_DESC(probe_bad, probe_bads, name);

static void probe_bad_device(struct kunit *test)
{
	const struct probe_bad *param = test->param_value;
	struct ernic_fake *fake = probe_fake(test, true, 8, 0);
	struct platform_device *pdev;

	probe_load(test);
	pdev = probe_make(test, fake, &param->device);
	KUNIT_EXPECT_EQ(test, param->is_bound, device_is_bound(&pdev->dev));
	KUNIT_EXPECT_EQ(test, 0, fake->written);
}

/* As many as are refused: the last ones are those of QP 1, without which there is a device. */
#define PROBE_REQUESTS	10

/*
 * Each thing that the driver asks the kernel for is refused in turn: there is no RDMA device then,
 * and nothing is left of it.
 */
static void probe_refused(struct kunit *test)
{
	static const struct probe_device device = { "ernic", 0x40000, false, probe_mac };
	struct ernic_fake *fake = probe_fake(test, true, 8, FAKE_RECORDS | FAKE_PAGES);
	u32 refused = 0, number;

	probe_load(test);
	probe_netdev(test, probe_mac, probe_parent(test));
	for (number = 1; number <= PROBE_REQUESTS; number++) {
		struct platform_device *pdev;
		struct ernic_func *func;

		fake->requests = 0;
		fake->refuse = number;
		pdev = probe_make(test, fake, &device);
		func = device_is_bound(&pdev->dev) ? platform_get_drvdata(pdev) : NULL;
		refused += !func || !func->edev;
		KUNIT_EXPECT_LE(test, number, fake->requests);
		fake->refuse = 0;
		ernic_fake_close(fake);
		KUNIT_EXPECT_EQ(test, 0, fake->coherent);
		KUNIT_EXPECT_EQ(test, 0, ernic_fake_get(fake, 0x00));
		KUNIT_EXPECT_EQ(test, 0, ernic_fake_get(fake, 0x180));
		/* Memory that is not there any more is not named. */
		KUNIT_EXPECT_EQ(test, 0, ernic_fake_get(fake, 0x90));
		KUNIT_EXPECT_EQ(test, 0, ernic_fake_get(fake, 0x1ec));
	}
	/* The probe, the RDMA device, its work queue and memory, the interrupt. */
	KUNIT_EXPECT_LE(test, 9, refused);
	KUNIT_EXPECT_GT(test, PROBE_REQUESTS, refused);
	KUNIT_EXPECT_EQ(test, 0, fake->coherent);
}

/* ------------------------------------------------------------------ */
/* The net device comes and goes                                        */

static void probe_expect(struct kunit *test, struct ernic_func *func, bool is_there)
{
	flush_delayed_work(&func->work);
	KUNIT_EXPECT_EQ(test, is_there, !!func->edev);
}

static void probe_set_mac(struct kunit *test, struct net_device *netdev, const u8 *mac)
{
	KUNIT_EXPECT_EQ(test, 0, kernels_set_mac(netdev, mac));
}

static void probe_adapters(struct kunit *test)
{
	static const struct probe_device device = { "ernic", 0x40000, false, probe_mac };
	struct ernic_fake *fake = probe_fake(test, true, 8, FAKE_RECORDS);
	struct device *parent = probe_parent(test);
	struct net_device *netdev;
	struct ernic_func *func;

	probe_load(test);
	/* Another address, and a net device without hardware. */
	netdev = probe_netdev(test, probe_others, parent);
	probe_netdev(test, probe_mac, NULL);
	func = platform_get_drvdata(probe_make(test, fake, &device));
	KUNIT_ASSERT_NOT_NULL(test, func);
	probe_expect(test, func, false);
	probe_set_mac(test, netdev, probe_mac);
	probe_expect(test, func, true);
	probe_expect_started(test, fake, 8, 1);
	probe_set_mac(test, netdev, probe_others);
	probe_expect(test, func, false);
	KUNIT_EXPECT_EQ(test, 0, ernic_fake_get(fake, 0x00));
	kunit_release_action(test, probe_remove_netdev, netdev);
	probe_expect(test, func, false);
	ernic_fake_close(fake);
	KUNIT_EXPECT_EQ(test, 0, fake->coherent);
}

static int probe_suite_init(struct kunit_suite *suite)
{
	return insert_resource(&iomem_resource, &probe_bus);
}

static void probe_suite_exit(struct kunit_suite *suite)
{
	remove_resource(&probe_bus);
}

static struct kunit_case probe_cases[] = {
	KUNIT_CASE(probe_names),
	KUNIT_CASE(probe_module),
	KUNIT_CASE_PARAM(probe_personality, probe_size_gen_params),
	KUNIT_CASE_PARAM(probe_number, probe_count_gen_params),
	KUNIT_CASE_PARAM(probe_bad_device, probe_bad_gen_params),
	KUNIT_CASE(probe_refused),
	KUNIT_CASE(probe_adapters),
	{}
};

static struct kunit_suite probe_suite = {
	.name = "hghca_ernic_probe",
	.suite_init = probe_suite_init,
	.suite_exit = probe_suite_exit,
	.test_cases = probe_cases,
};
kunit_test_suite(probe_suite);
