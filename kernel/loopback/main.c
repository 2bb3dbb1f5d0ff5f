// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The RDMA loopback controller as a DMA engine: probe and remove of the platform
 * device.
 */
#include <linux/bitfield.h>
#include <linux/dma-mapping.h>
#include <linux/io.h>
#include <linux/mod_devicetable.h>
#include <linux/module.h>
#include <linux/property.h>
#include <linux/slab.h>
#include "loopback.h"

/*
 * A DMA engine's copy is complete when its data is in memory (PLACED), a failed one
 * is told from a good one (CHECKS), and all can be stopped (SOFT_RESET).
 */
#define LOOPBACK_EXT_NEEDED \
	(LOOPBACK_EXT_PLACED | LOOPBACK_EXT_CHECKS | LOOPBACK_EXT_SOFT_RESET)
#define LOOPBACK_EXT_USED \
	(LOOPBACK_EXT_NEEDED | LOOPBACK_EXT_CQ_STALL | LOOPBACK_EXT_IRQ | LOOPBACK_EXT_WIDE)

static int loopback_enable_extensions(struct loopback_channel *c)
{
	u32 present = FIELD_GET(LOOPBACK_EXT_MASK, readl(c->registers + LOOPBACK_HW_STATUS));

	if (~present & LOOPBACK_EXT_NEEDED) {
		dev_err(c->dev, "the controller lacks extensions 0x%x: it cannot be a DMA engine\n",
			(u32)(~present & LOOPBACK_EXT_NEEDED));
		return -ENODEV;
	}
	c->extensions = present & LOOPBACK_EXT_USED;
	if (c->irq <= 0)
		c->extensions &= ~LOOPBACK_EXT_IRQ;
	if (!(c->extensions & LOOPBACK_EXT_IRQ))
		c->irq = 0;
	c->part_max = LOOPBACK_LENGTH_MAX;
	if (c->extensions & LOOPBACK_EXT_WIDE)
		c->part_max = round_down(LOOPBACK_LENGTH_WIDE_MAX, LOOPBACK_BLOCK_SIZE);
	return 0;
}

static int loopback_probe(struct platform_device *pdev)
{
	struct device *dev = &pdev->dev;
	struct loopback_channel *c;
	int err;

	/* Clients may hold the channel longer than the device is bound. */
	c = kzalloc_obj(*c);
	if (!c)
		return -ENOMEM;
	c->dev = dev;
	c->sysdev = device_property_read_bool(dev, "linux,sysdev_is_parent") ? dev->parent : dev;
	c->registers = devm_platform_ioremap_resource(pdev, 0);
	if (IS_ERR(c->registers)) {
		err = PTR_ERR(c->registers);
		goto err_free;
	}
	c->irq = platform_get_irq_optional(pdev, 0);
	if (c->irq == -EPROBE_DEFER) {
		err = c->irq;
		goto err_free;
	}
	err = loopback_enable_extensions(c);
	if (err)
		goto err_free;
	err = dma_set_mask_and_coherent(c->sysdev,
					DMA_BIT_MASK(c->extensions & LOOPBACK_EXT_WIDE ? 48 : 32));
	if (err)
		goto err_free;
	err = loopback_channel_open(c);
	if (err)
		goto err_free;
	platform_set_drvdata(pdev, c);
	return 0;

err_free:
	kfree(c);
	return err;
}

static void loopback_remove(struct platform_device *pdev)
{
	loopback_channel_close(platform_get_drvdata(pdev));
}

static void loopback_shutdown(struct platform_device *pdev)
{
	loopback_channel_stop(platform_get_drvdata(pdev));
}

static const struct platform_device_id loopback_ids[] = {
	{ .name = LOOPBACK_NAME },
	{ }
};
MODULE_DEVICE_TABLE(platform, loopback_ids);

static const struct of_device_id loopback_of_match[] = {
	{ .compatible = "hghca,rdma-loopback" },
	{ }
};
MODULE_DEVICE_TABLE(of, loopback_of_match);

static struct platform_driver loopback_driver = {
	.driver = {
		.name = LOOPBACK_NAME,
		.of_match_table = loopback_of_match,
	},
	.id_table = loopback_ids,
	.probe = loopback_probe,
	.remove = loopback_remove,
	.shutdown = loopback_shutdown,
};

static int __init loopback_init(void)
{
	int err;

	err = platform_driver_register(&loopback_driver);
	if (err)
		return err;
	err = loopback_pci_register();
	if (err)
		platform_driver_unregister(&loopback_driver);
	return err;
}
module_init(loopback_init);

static void __exit loopback_exit(void)
{
	loopback_pci_unregister();
	platform_driver_unregister(&loopback_driver);
}
module_exit(loopback_exit);

MODULE_DESCRIPTION("RDMA loopback controller");
MODULE_LICENSE("Dual BSD/GPL");
