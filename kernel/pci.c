// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: the PCI front.
 *
 * It maps the BARs, allocates the vectors and passes them in struct hghca_bus.  No other
 * file knows PCI, so that a front for another bus can be added.
 */
#include <linux/module.h>
#include <linux/pci.h>

#include "hghca.h"

#define HGHCA_PCI_BARS		(BIT(HGHCA_BAR_HCR) | BIT(HGHCA_BAR_UAR))
#define HGHCA_PCI_MIN_IRQS	2	/* one for completions */

static int hghca_pci_check_bar(struct pci_dev *pdev, int bar, resource_size_t size)
{
	if (!(pci_resource_flags(pdev, bar) & IORESOURCE_MEM) ||
	    pci_resource_len(pdev, bar) < size) {
		dev_err(&pdev->dev, "BAR %d: %pR, at least %#llx bytes of memory needed\n", bar,
			pci_resource_n(pdev, bar), (u64)size);
		return -ENODEV;
	}
	return 0;
}

static int hghca_pci_alloc_irqs(struct pci_dev *pdev, struct hghca_bus *bus)
{
	unsigned int wanted = min_t(unsigned int, num_online_cpus() + 1, ARRAY_SIZE(bus->irqs));
	int count, i;

	count = pci_alloc_irq_vectors(pdev, HGHCA_PCI_MIN_IRQS, wanted, PCI_IRQ_MSIX);
	if (count < 0) {
		dev_err(&pdev->dev, "failed to allocate MSI-X vectors: %d\n", count);
		return count;
	}
	for (i = 0; i < count; i++)
		bus->irqs[i] = pci_irq_vector(pdev, i);
	bus->num_irqs = count;
	return 0;
}

/* Message signaled interrupts are DMA, too. */
static void hghca_pci_enable_dma(struct device *dev, bool enable)
{
	if (enable)
		pci_set_master(to_pci_dev(dev));
	else
		pci_clear_master(to_pci_dev(dev));
}

static int hghca_pci_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct hghca_dev *hdev;
	struct hghca_bus *bus;
	int err;

	hdev = hghca_dev_alloc();
	if (!hdev)
		return -ENOMEM;
	bus = &hdev->bus;
	bus->dev = &pdev->dev;
	bus->enable_dma = hghca_pci_enable_dma;
	bus->name = pci_name(pdev);
	bus->hw_rev = pdev->revision;
	bus->vendor_id = pdev->vendor;
	bus->vendor_part_id = pdev->device;
	bus->rsnic = pdev->subsystem_vendor == HGHCA_PCI_VENDOR_ID &&
		     pdev->subsystem_device == HGHCA_PCI_SUBSYSTEM_ID_RSNIC;

	err = pci_enable_device_mem(pdev);
	if (err)
		goto err_free_dev;

	err = hghca_pci_check_bar(pdev, HGHCA_BAR_HCR, HGHCA_BAR_HCR_SIZE);
	if (!err)
		err = hghca_pci_check_bar(pdev, HGHCA_BAR_UAR, 2 * PAGE_SIZE);
	if (err)
		goto err_disable;

	err = pci_request_selected_regions(pdev, HGHCA_PCI_BARS, HGHCA_DRV_NAME);
	if (err)
		goto err_disable;

	bus->uar_phys = pci_resource_start(pdev, HGHCA_BAR_UAR);
	bus->uar_size = pci_resource_len(pdev, HGHCA_BAR_UAR);
	bus->regs = pci_iomap(pdev, HGHCA_BAR_HCR, HGHCA_BAR_HCR_SIZE);
	if (!bus->regs) {
		err = -ENOMEM;
		goto err_release_regions;
	}

	err = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (err)
		goto err_unmap_regs;
	/* A page of an MR may be as large as 1 GB.  The default would split it. */
	dma_set_max_seg_size(&pdev->dev, UINT_MAX);

	err = hghca_pci_alloc_irqs(pdev, bus);
	if (err)
		goto err_unmap_regs;

	pci_set_drvdata(pdev, hdev);

	err = hghca_dev_start(hdev);
	if (err) {
		dev_err(&pdev->dev, "failed to start: %d\n", err);
		goto err_free_irqs;
	}
	return 0;

err_free_irqs:
	pci_free_irq_vectors(pdev);
err_unmap_regs:
	pci_iounmap(pdev, bus->regs);
err_release_regions:
	pci_release_selected_regions(pdev, HGHCA_PCI_BARS);
err_disable:
	pci_disable_device(pdev);
err_free_dev:
	hghca_dev_free(hdev);
	return err;
}

static void hghca_pci_remove(struct pci_dev *pdev)
{
	struct hghca_dev *hdev = pci_get_drvdata(pdev);

	hghca_dev_stop(hdev);
	pci_free_irq_vectors(pdev);
	pci_iounmap(pdev, hdev->bus.regs);
	pci_release_selected_regions(pdev, HGHCA_PCI_BARS);
	pci_disable_device(pdev);
	hghca_dev_free(hdev);
}

static void hghca_pci_shutdown(struct pci_dev *pdev)
{
	hghca_dev_shutdown(pci_get_drvdata(pdev));
}

/* A function-level reset drops all state of the device: the driver must start it again. */
static void hghca_pci_reset_prepare(struct pci_dev *pdev)
{
	hghca_dev_fail(pci_get_drvdata(pdev), "reset from outside");
}

static const struct pci_error_handlers hghca_pci_err_handler = {
	.reset_prepare = hghca_pci_reset_prepare,
};

static const struct pci_device_id hghca_pci_ids[] = {
	{ PCI_DEVICE(HGHCA_PCI_VENDOR_ID, HGHCA_PCI_DEVICE_ID) },
	{}
};
MODULE_DEVICE_TABLE(pci, hghca_pci_ids);

static struct pci_driver hghca_pci_driver = {
	.name = HGHCA_DRV_NAME,
	.id_table = hghca_pci_ids,
	.probe = hghca_pci_probe,
	.remove = hghca_pci_remove,
	.shutdown = hghca_pci_shutdown,
	.err_handler = &hghca_pci_err_handler,
};

static int __init hghca_init(void)
{
	int err = hghca_icm_shrinker_init();

	if (err)
		return err;

	err = pci_register_driver(&hghca_pci_driver);
	if (err)
		hghca_icm_shrinker_exit();
	return err;
}
module_init(hghca_init);

static void __exit hghca_exit(void)
{
	pci_unregister_driver(&hghca_pci_driver);
	hghca_icm_shrinker_exit();
}
module_exit(hghca_exit);

MODULE_DESCRIPTION("JingZhao HCA");
MODULE_AUTHOR("JingZhao HCA for Linux");
MODULE_LICENSE("Dual BSD/GPL");
