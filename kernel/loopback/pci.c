// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The PCI function that carries a loopback controller.  It makes the platform
 * device that the driver proper binds to, and its DMA is the function's.
 */
#include <linux/module.h>
#include <linux/pci.h>
#include "carrier.h"
#include "loopback.h"

static const struct carrier loopback_carrier = {
	.name = LOOPBACK_NAME,
	.bar = LOOPBACK_BAR,
	.bytes = LOOPBACK_APERTURE,
	.irq_types = PCI_IRQ_INTX,
};

static const struct property_entry loopback_pci_properties[] = {
	CARRIER_PROPERTY,
	{ }
};

static int loopback_pci_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	int err;

	err = pcim_enable_device(pdev);
	if (err)
		return err;
	if (pci_resource_len(pdev, LOOPBACK_BAR) < LOOPBACK_APERTURE) {
		pci_err(pdev, "BAR %d has no room for the registers\n", LOOPBACK_BAR);
		return -ENODEV;
	}
	return carrier_probe(pdev, &loopback_carrier, loopback_pci_properties);
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
	.remove = carrier_remove,
};

int loopback_pci_register(void)
{
	return pci_register_driver(&loopback_pci_driver);
}

void loopback_pci_unregister(void)
{
	pci_unregister_driver(&loopback_pci_driver);
}
