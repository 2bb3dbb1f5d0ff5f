/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The driver of the RDMA loopback controller: declarations that its files share.
 * docs/reference/loopback.rst describes the device.
 */
#ifndef LOOPBACK_H
#define LOOPBACK_H

#include <linux/dmaengine.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/platform_device.h>
#include "loopback_hw.h"

#define LOOPBACK_NAME		"rdma-loopback"

/* Entries of both queues.  A completion never finds the CQ full. */
#define LOOPBACK_ENTRIES	256

/* Copies that failed last; tx_status looks here. */
#define LOOPBACK_FAILED		16

/* A copy.  It is on one list of its channel until it is freed. */
struct loopback_desc {
	struct dma_async_tx_descriptor	tx;
	struct list_head		node;
	dma_addr_t			source;
	dma_addr_t			destination;
	size_t				len;
	size_t				posted;		/* bytes that SQEs have */
	size_t				done;		/* bytes whose SQEs are complete */
	unsigned int			parts;		/* SQEs that are not complete */
	enum dmaengine_tx_result	result;
};

struct loopback_channel {
	struct dma_device	ddev;
	struct dma_chan		chan;
	struct device		*dev;		/* in messages */
	struct device		*sysdev;	/* it does the DMA */
	void __iomem		*registers;
	u32			extensions;	/* enabled */
	size_t			part_max;	/* bytes of one SQE */
	int			irq;		/* 0: none; the timer polls */
	struct hrtimer		timer;
	struct tasklet_struct	tasklet;	/* calls the clients' callbacks */

	struct loopback_sqe	*sqes;
	dma_addr_t		sqes_dma;
	struct loopback_cqe	*cqes;
	dma_addr_t		cqes_dma;

	spinlock_t		lock;		/* all below, and the registers */
	bool			gone;
	u16			sq_tail;
	u16			cq_head;
	u16			free;		/* entries of the SQ */
	struct loopback_desc	*copies[LOOPBACK_ENTRIES];	/* by index in the SQ */
	size_t			bytes[LOOPBACK_ENTRIES];
	struct list_head	submitted;
	struct list_head	issued;		/* not wholly posted; the first may be in part */
	struct list_head	posted;
	struct list_head	done;		/* for the tasklet */
	dma_cookie_t		failed[LOOPBACK_FAILED];
	unsigned int		failures;
};

int loopback_channel_open(struct loopback_channel *c);
void loopback_channel_close(struct loopback_channel *c);
void loopback_channel_stop(struct loopback_channel *c);

#if IS_ENABLED(CONFIG_PCI)
int loopback_pci_register(void);
void loopback_pci_unregister(void);
#else
static inline int loopback_pci_register(void) { return 0; }
static inline void loopback_pci_unregister(void) { }
#endif

#endif /* LOOPBACK_H */
