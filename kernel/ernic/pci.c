// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The PCI function that carries an ERNIC or ETRNIC.  It makes the platform device that
 * the driver proper binds to, and its DMA is the function's.
 */
#include <linux/etherdevice.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/unaligned.h>
#include "carrier.h"
#include "ernic.h"

/* The device serial number is the EUI-64 of the MAC address. */
static int ernic_pci_mac(struct pci_dev *pdev, u8 *mac)
{
	u8 eui[8];

	put_unaligned_be64(pci_get_dsn(pdev), eui);
	if (eui[3] != 0xff || eui[4] != 0xfe)
		return -ENODEV;
	memcpy(mac, eui, 3);
	memcpy(mac + 3, eui + 5, 3);
	return is_valid_ether_addr(mac) ? 0 : -ENODEV;
}

static const struct carrier ernic_carrier = {
	.name = ERNIC_DRV_NAME,
	.bar = ERNIC_BAR,
	.irq_types = PCI_IRQ_MSI | PCI_IRQ_INTX,
};

static int ernic_pci_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	u8 mac[ETH_ALEN];
	const struct property_entry properties[] = {
		CARRIER_PROPERTY,
		PROPERTY_ENTRY_U8_ARRAY_LEN("local-mac-address", mac, ETH_ALEN),
		{ }
	};
	int err;

	err = pcim_enable_device(pdev);
	if (err)
		return err;
	err = ernic_pci_mac(pdev, mac);
	if (err) {
		pci_err(pdev, "the device serial number is not that of a MAC address\n");
		return err;
	}
	/* The registers have no bit that resets all of them.  The core has locked the function. */
	err = pci_reset_function_locked(pdev);
	if (err)
		pci_dbg(pdev, "not reset: %d\n", err);
	return carrier_probe(pdev, &ernic_carrier, properties);
}

static const struct pci_device_id ernic_pci_ids[] = {
	{ PCI_DEVICE(ERNIC_PCI_VENDOR_ID, ERNIC_PCI_DEVICE_ID) },
	{ }
};
MODULE_DEVICE_TABLE(pci, ernic_pci_ids);

static struct pci_driver ernic_pci_driver = {
	.name = ERNIC_DRV_NAME,
	.id_table = ernic_pci_ids,
	.probe = ernic_pci_probe,
	.remove = carrier_remove,
};

int ernic_pci_register(void)
{
	return pci_register_driver(&ernic_pci_driver);
}

void ernic_pci_unregister(void)
{
	pci_unregister_driver(&ernic_pci_driver);
}
