/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A PCI function that carries the registers of a device which has a driver for the
 * platform bus.  Its driver makes the platform device, and the DMA is the function's.
 */
#ifndef CARRIER_H
#define CARRIER_H

#include <linux/pci.h>
#include <linux/platform_device.h>
#include <linux/property.h>

/* The platform device's driver does the DMA with the device's parent. */
#define CARRIER_PROPERTY	PROPERTY_ENTRY_BOOL("linux,sysdev_is_parent")

/**
 * struct carrier - what the function carries
 * @name: the name of the platform device
 * @bar: the BAR that has the registers
 * @bytes: bytes of them, or 0 for all of the BAR
 * @irq_types: PCI_IRQ_* that the function may have
 */
struct carrier {
	const char *name;
	int bar;
	resource_size_t bytes;
	unsigned int irq_types;
};

static inline struct platform_device *carrier_make(struct pci_dev *pdev,
						   const struct carrier *carrier,
						   const struct property_entry *properties)
{
	struct resource resources[] = {
		DEFINE_RES_MEM(pci_resource_start(pdev, carrier->bar),
			       carrier->bytes ?: pci_resource_len(pdev, carrier->bar)),
		DEFINE_RES_IRQ(pci_irq_vector(pdev, 0)),
	};
	struct platform_device_info info = {
		.parent = &pdev->dev,
		.name = carrier->name,
		.id = PLATFORM_DEVID_AUTO,
		.res = resources,
		.num_res = ARRAY_SIZE(resources),
		.properties = properties,
	};

	resources[0].parent = &pdev->resource[carrier->bar];
	return platform_device_register_full(&info);
}

/**
 * carrier_probe - make the platform device
 * @pdev: the function, which is enabled
 * @carrier: what it carries
 * @properties: those of the platform device, CARRIER_PROPERTY among them
 *
 * Return: 0 or a negative errno.
 */
static inline int carrier_probe(struct pci_dev *pdev, const struct carrier *carrier,
				const struct property_entry *properties)
{
	struct platform_device *child;
	int err;

	pci_set_master(pdev);
	err = pci_alloc_irq_vectors(pdev, 1, 1, carrier->irq_types);
	if (err < 0)
		goto err_master;
	child = carrier_make(pdev, carrier, properties);
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

static inline void carrier_remove(struct pci_dev *pdev)
{
	platform_device_unregister(pci_get_drvdata(pdev));
	pci_free_irq_vectors(pdev);
	pci_clear_master(pdev);
}

#endif /* CARRIER_H */
