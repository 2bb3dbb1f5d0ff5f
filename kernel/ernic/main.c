// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ERNIC and ETRNIC: probe and remove of the platform device. */
#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>
#include <linux/mod_devicetable.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/property.h>
#include "ernic.h"

static int ernic_probe(struct platform_device *pdev)
{
	struct device *dev = &pdev->dev;
	struct ernic_func *func;
	struct resource *res;
	int err;

	func = devm_kzalloc(dev, sizeof(*func), GFP_KERNEL);
	if (!func)
		return -ENOMEM;
	func->dev = dev;
	func->sysdev = device_property_read_bool(dev, "linux,sysdev_is_parent") ? dev->parent : dev;
	func->registers = devm_platform_get_and_ioremap_resource(pdev, 0, &res);
	if (IS_ERR(func->registers))
		return PTR_ERR(func->registers);
	if (resource_size(res) < ERNIC_APERTURE_ETRNIC) {
		dev_err(dev, "%pR has no room for the registers\n", res);
		return -ENODEV;
	}
	func->is_ernic = resource_size(res) >= ERNIC_APERTURE_ERNIC;
	func->irq = platform_get_irq(pdev, 0);
	if (func->irq < 0)
		return func->irq;
	err = device_property_read_u8_array(dev, "local-mac-address", func->mac, ETH_ALEN);
	if (err || !is_valid_ether_addr(func->mac)) {
		dev_err(dev, "there is no MAC address\n");
		return err ?: -EINVAL;
	}
	err = dma_set_mask_and_coherent(func->sysdev, DMA_BIT_MASK(func->is_ernic ? 64 : 32));
	if (err)
		return err;
	/* A region is mapped as a whole. */
	dma_set_max_seg_size(func->sysdev, UINT_MAX);
	platform_set_drvdata(pdev, func);
	return ernic_bind_register(func);
}

static void ernic_remove(struct platform_device *pdev)
{
	ernic_bind_unregister(platform_get_drvdata(pdev));
}

static const struct platform_device_id ernic_ids[] = {
	{ .name = ERNIC_DRV_NAME },
	{ }
};
MODULE_DEVICE_TABLE(platform, ernic_ids);

static const struct of_device_id ernic_of_match[] = {
	{ .compatible = "xlnx,ernic-1.0" },
	{ .compatible = "hghca,etrnic" },
	{ }
};
MODULE_DEVICE_TABLE(of, ernic_of_match);

static struct platform_driver ernic_driver = {
	.driver = {
		.name = ERNIC_DRV_NAME,
		.of_match_table = ernic_of_match,
	},
	.id_table = ernic_ids,
	.probe = ernic_probe,
	.remove = ernic_remove,
};

static int __init ernic_init(void)
{
	int err;

	err = platform_driver_register(&ernic_driver);
	if (err)
		return err;
	err = ernic_pci_register();
	if (err)
		platform_driver_unregister(&ernic_driver);
	return err;
}
module_init(ernic_init);

static void __exit ernic_exit(void)
{
	ernic_pci_unregister();
	platform_driver_unregister(&ernic_driver);
}
module_exit(ernic_exit);

MODULE_DESCRIPTION("ERNIC and ETRNIC RDMA driver");
MODULE_LICENSE("Dual BSD/GPL");
