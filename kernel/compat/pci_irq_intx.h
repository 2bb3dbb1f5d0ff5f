/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* After 6.1: PCI_IRQ_LEGACY got another name. */
#include <linux/pci.h>

#ifndef PCI_IRQ_INTX
#define PCI_IRQ_INTX	PCI_IRQ_LEGACY
#endif
