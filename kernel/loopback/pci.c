// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The PCI function that carries a loopback controller.  It makes the platform
 * device that the driver proper binds to, and its DMA is the function's.
 */
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/property.h>
#include "loopback.h"

static const struct property_entry loopback_pci_properties[] = {
	PROPERTY_ENTRY_BOOL("linux,sysdev_is_parent"),
	{ }
};

static struct platform_device *loopback_pci_make(struct pci_dev *pdev)
{
	struct resource resources[] = {
		DEFINE_RES_MEM(pci_resource_start(pdev, LOOPBACK_BAR), LOOPBACK_APERTURE),
		DEFINE_RES_IRQ(pci_irq_vector(pdev, 0)),
	};
	struct platform_device_info info = {
		.parent = &pdev->dev,
		.name = LOOPBACK_NAME,
		.id = PLATFORM_DEVID_AUTO,
		.res = resources,
		.num_res = ARRAY_SIZE(resources),
		.properties = loopback_pci_properties,
	};

	resources[0].parent = &pdev->resource[LOOPBACK_BAR];
	return platform_device_register_full(&info);
}

static int loopback_pci_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct platform_device *child;
	int err;

	err = pcim_enable_device(pdev);
	if (err)
		return err;
	if (pci_resource_len(pdev, LOOPBACK_BAR) < LOOPBACK_APERTURE) {
		pci_err(pdev, "BAR %d has no room for the registers\n", LOOPBACK_BAR);
		return -ENODEV;
	}
	pci_set_master(pdev);
	err = pci_alloc_irq_vectors(pdev, 1, 1, PCI_IRQ_INTX);
	if (err < 0)
		goto err_master;
	child = loopback_pci_make(pdev);
	if (IS_ERR(child)) {
		err = PTR_ERR(child);
		goto err_vectors;
	}
	pci_set_drvdata(pdev, child);
	return 0;

err_vectors:
	pci_free_irq_vectors(pdev);
err_master:
	pci_clear_master(pdev);
	return err;
}

static void loopback_pci_remove(struct pci_dev *pdev)
{
	platform_device_unregister(pci_get_drvdata(pdev));
	pci_free_irq_vectors(pdev);
	pci_clear_master(pdev);
}

static const struct pci_device_id loopback_pci_ids[] = {
	{ PCI_DEVICE(LOOPBACK_PCI_VENDOR_ID, LOOPBACK_PCI_DEVICE_ID) },
	{ }
};
MODULE_DEVICE_TABLE(pci, loopback_pci_ids);

static struct pci_driver loopback_pci_driver = {
	.name = LOOPBACK_NAME,
	.id_table = loopback_pci_ids,
	.probe = loopback_pci_probe,
	.remove = loopback_pci_remove,
};

int loopback_pci_register(void)
{
	return pci_register_driver(&loopback_pci_driver);
}

void loopback_pci_unregister(void)
{
	pci_unregister_driver(&loopback_pci_driver);
}
