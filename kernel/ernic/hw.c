// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ERNIC and ETRNIC: registers. */
#include <linux/dma-mapping.h>
#include <linux/io.h>
#include <linux/iopoll.h>
#include <linux/unaligned.h>
#include <rdma/ib_addr.h>
#include "ernic.h"

#define ERNIC_IDLE_US		(200 * USEC_PER_MSEC)
#define ERNIC_SOURCE_PORT	0xc000

u32 ernic_read(struct ernic_dev *edev, u32 offset)
{
	return readl(edev->regs + offset);
}

void ernic_write(struct ernic_dev *edev, u32 offset, u32 value)
{
	writel(value, edev->regs + offset);
}

/* ETRNIC has no high half: the DMA mask is 32 bits. */
void ernic_write_address(struct ernic_dev *edev, u32 low, u32 high, dma_addr_t dma)
{
	ernic_write(edev, low, lower_32_bits(dma));
	if (edev->is_ernic)
		ernic_write(edev, high, upper_32_bits(dma));
}

static u32 ernic_qp_offset(const struct ernic_qp *qp, u32 offset)
{
	return ERNIC_GLOBALS_SIZE + (qp->qpn - 1) * ERNIC_QP_SIZE + offset;
}

u32 ernic_qp_read(struct ernic_qp *qp, u32 offset)
{
	return ernic_read(qp->edev, ernic_qp_offset(qp, offset));
}

void ernic_qp_write(struct ernic_qp *qp, u32 offset, u32 value)
{
	ernic_write(qp->edev, ernic_qp_offset(qp, offset), value);
}

static void ernic_qp_write_address(struct ernic_qp *qp, u32 low, u32 high, dma_addr_t dma)
{
	ernic_write_address(qp->edev, ernic_qp_offset(qp, low), ernic_qp_offset(qp, high), dma);
}

void ernic_pd_write(struct ernic_dev *edev, u32 entry, u32 offset, u32 value)
{
	writel(value, edev->func->registers + entry * ERNIC_PD_SIZE + offset);
}

int ernic_mem_alloc(struct ernic_dev *edev, struct ernic_mem *mem, size_t bytes)
{
	mem->cpu = dma_alloc_coherent(edev->func->sysdev, bytes, &mem->dma,
				      GFP_KERNEL | __GFP_NOWARN);
	if (!mem->cpu)
		return -ENOMEM;
	mem->bytes = bytes;
	return 0;
}

void ernic_mem_free(struct ernic_dev *edev, struct ernic_mem *mem)
{
	if (mem->cpu)
		dma_free_coherent(edev->func->sysdev, mem->bytes, mem->cpu, mem->dma);
	mem->cpu = NULL;
}

static void ernic_write_mac(struct ernic_dev *edev, const u8 *mac)
{
	ernic_write(edev, ERNIC_MACXADDMSB, get_unaligned_be16(mac));
	ernic_write(edev, ERNIC_MACXADDLSB, get_unaligned_be32(mac + 2));
}

/* Those that the device has and the driver uses. */
static void ernic_enable_extensions(struct ernic_dev *edev)
{
	u32 present = FIELD_GET(ERNIC_EXT_HAS, ernic_read(edev, ERNIC_EXTENSIONS));

	edev->extensions = present & (ERNIC_EXT_RECORDS | ERNIC_EXT_PAGES);
	if (!edev->is_ernic)
		edev->extensions &= ~ERNIC_EXT_PAGES;
	ernic_write(edev, ERNIC_EXTENSIONS, FIELD_PREP(ERNIC_EXT_ENABLE, edev->extensions));
}

/* A QP that the device does not have reads as 0. */
static bool ernic_has_qp(struct ernic_dev *edev, u32 qpn)
{
	u32 offset = ERNIC_GLOBALS_SIZE + (qpn - 1) * ERNIC_QP_SIZE + ERNIC_DESTQPCONF;
	bool has;

	ernic_write(edev, offset, qpn);
	has = ernic_read(edev, offset) == qpn;
	ernic_write(edev, offset, 0);
	return has;
}

/* No register tells how many QPs there are. */
static int ernic_count_qps(struct ernic_dev *edev)
{
	u32 has = 0, above = edev->num_qps + 1;

	while (above - has > 1) {
		u32 middle = (has + above) / 2;

		if (ernic_has_qp(edev, middle))
			has = middle;
		else
			above = middle;
	}
	edev->num_qps = has;
	return has < ERNIC_QPS_MIN ? -ENODEV : 0;
}

/**
 * ernic_hw_start - enable the device
 * @edev: the device, without QPs
 *
 * Return: 0 or a negative errno.
 */
int ernic_hw_start(struct ernic_dev *edev)
{
	int err;

	/* Whoever had it before may have left it running. */
	ernic_write(edev, ERNIC_INTEN, 0);
	ernic_write(edev, ERNIC_XRNICCONF, 0);
	ernic_write(edev, ERNIC_XRNICADCONF, 0);
	ernic_write(edev, ERNIC_DATBUFSZ, 0);
	ernic_write(edev, ERNIC_ERRBUFSZ, 0);
	ernic_write(edev, ERNIC_OPKTERRQSZ, 0);
	err = ernic_count_qps(edev);
	if (err)
		return err;
	ernic_enable_extensions(edev);
	ernic_write_mac(edev, edev->func->mac);

	err = ernic_mem_alloc(edev, &edev->errors,
			      ERNIC_ERRORS_MAX * sizeof(struct ernic_packet_error));
	if (err)
		return err;
	ernic_write_address(edev, ERNIC_IPKTERRQBA, ERNIC_IPKTERRQBAMSB, edev->errors.dma);
	ernic_write(edev, ERNIC_IPKTERRQSZ, ERNIC_ERRORS_MAX);
	edev->next_error = ernic_read(edev, ERNIC_IPKTERRQWPTR) % ERNIC_ERRORS_MAX;

	if (ernic_record_bytes(edev)) {
		err = ernic_mem_alloc(edev, &edev->records,
				      ERNIC_RECORDS_MAX * ernic_record_bytes(edev));
		if (err)
			goto err_free_errors;
		/* The write of the address resets the index of the ring. */
		ernic_write_address(edev, ERNIC_RECORDBA, ERNIC_RECORDBAMSB, edev->records.dma);
		ernic_write(edev, ERNIC_RECORDSZ, ERNIC_RECORDS_MAX);
		edev->record_phase = true;
	}

	ernic_write(edev, ERNIC_INTSTS, ~0U);
	ernic_write(edev, ERNIC_INTEN, ERNIC_INTERRUPTS_USED);
	ernic_write(edev, ERNIC_XRNICCONF, ERNIC_CONF_ENABLE |
		    FIELD_PREP(ERNIC_CONF_QPS, edev->num_qps) |
		    FIELD_PREP(ERNIC_CONF_UDP_PORT, ERNIC_SOURCE_PORT));
	return 0;

err_free_errors:
	ernic_write(edev, ERNIC_IPKTERRQSZ, 0);
	ernic_mem_free(edev, &edev->errors);
	return err;
}

/* When this returns, the device does no DMA. */
void ernic_hw_stop(struct ernic_dev *edev)
{
	ernic_write(edev, ERNIC_INTEN, 0);
	ernic_write(edev, ERNIC_XRNICCONF, 0);
	ernic_read(edev, ERNIC_XRNICCONF);
	if (ernic_record_bytes(edev))
		ernic_write(edev, ERNIC_RECORDSZ, 0);
	ernic_write(edev, ERNIC_IPKTERRQSZ, 0);
	ernic_mem_free(edev, &edev->records);
	ernic_mem_free(edev, &edev->errors);
}

/*
 * Clear the indices that only the software override can write.  QP 1 has no register of
 * the receive index: it goes on where it was.
 */
static void ernic_reset_indices(struct ernic_qp *qp)
{
	struct ernic_dev *edev = qp->edev;

	mutex_lock(&edev->conf_lock);
	ernic_write(edev, ERNIC_XRNICADCONF,
		    ERNIC_ADCONF_OVERRIDE | FIELD_PREP(ERNIC_ADCONF_QP, qp->qpn));
	ernic_qp_write(qp, ERNIC_CQHEAD, 0);
	if (!ernic_is_gsi(qp)) {
		ernic_qp_write(qp, ERNIC_STATRQPIDB, 0);
		ernic_qp_write(qp, ERNIC_STATMSN, 0);
	}
	ernic_write(edev, ERNIC_XRNICADCONF, 0);
	mutex_unlock(&edev->conf_lock);
	ernic_qp_write(qp, ERNIC_SQPI, 0);
}

static void ernic_place_queues(struct ernic_qp *qp)
{
	const struct ernic_sq *sq = &qp->sq;

	ernic_qp_write_address(qp, ERNIC_SQBA, ERNIC_SQBAMSB, sq->wqes.dma);
	ernic_qp_write_address(qp, ERNIC_CQBA, ERNIC_CQBAMSB,
			       sq->wqes.dma + ((void *)sq->cqes - sq->wqes.cpu));
	ernic_qp_write_address(qp, ERNIC_CQDBADD, ERNIC_CQDBADDMSB,
			       sq->wqes.dma + ((void *)sq->doorbell - sq->wqes.cpu));
	ernic_qp_write_address(qp, ERNIC_RQBA, ERNIC_RQBAMSB, qp->rq.slots.dma);
	ernic_qp_write_address(qp, ERNIC_RQWPTRDBADD, ERNIC_RQWPTRDBADDMSB, qp->rq.door.dma);
	ernic_qp_write(qp, ERNIC_QDEPTH, FIELD_PREP(ERNIC_QDEPTH_SQ, sq->depth) |
		       FIELD_PREP(ERNIC_QDEPTH_RQ, qp->rq.depth));
}

static void ernic_write_path(struct ernic_qp *qp)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(&qp->attr.ah_attr);
	const u8 *dgid = grh->dgid.raw;

	ernic_qp_write(qp, ERNIC_MACDESADDMSB, get_unaligned_be16(qp->dmac));
	ernic_qp_write(qp, ERNIC_MACDESADDLSB, get_unaligned_be32(qp->dmac + 2));
	if (qp->conf & ERNIC_QPCONF_IPV6) {
		/* The last register has the first four bytes. */
		ernic_qp_write(qp, ERNIC_IPDESADDR1, get_unaligned_be32(dgid + 12));
		ernic_qp_write(qp, ERNIC_IPDESADDR2, get_unaligned_be32(dgid + 8));
		ernic_qp_write(qp, ERNIC_IPDESADDR3, get_unaligned_be32(dgid + 4));
		ernic_qp_write(qp, ERNIC_IPDESADDR4, get_unaligned_be32(dgid));
	} else {
		ernic_qp_write(qp, ERNIC_IPDESADDR1, get_unaligned_be32(dgid + 12));
	}
	ernic_qp_write(qp, ERNIC_QPADVCONF,
		       FIELD_PREP(ERNIC_QPADVCONF_TRAFFIC_CLASS, grh->traffic_class & 0x3f) |
		       FIELD_PREP(ERNIC_QPADVCONF_TTL, grh->hop_limit ?: 64) |
		       FIELD_PREP(ERNIC_QPADVCONF_PKEY, 0xffff));
	ernic_qp_write(qp, ERNIC_DESTQPCONF, qp->attr.dest_qp_num);
	/* The PSN before the first one that is expected. */
	ernic_qp_write(qp, ERNIC_LSTRQREQ,
		       FIELD_PREP(ERNIC_LSTRQREQ_PSN, (qp->attr.rq_psn - 1) & 0xffffff));
}

/**
 * ernic_write_pd - decide which regions the peer of a QP may access
 * @qp: the QP; the caller has its mutex
 *
 * The hardware knows no rights of a QP.  It compares PDs: a QP that grants its peer
 * nothing has one that no region has.
 */
void ernic_write_pd(struct ernic_qp *qp)
{
	const int remote = IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE;

	if (qp->edev->is_ernic)
		ernic_qp_write(qp, ERNIC_PD, qp->attr.qp_access_flags & remote ?
			       to_epd(qp->ibqp.pd)->pdn : ERNIC_NO_PD);
}

/**
 * ernic_hw_enable_qp - let the hardware execute a QP
 * @qp: the QP, disabled, with its &ernic_qp.conf; the caller has its mutex
 *
 * No slot is free at first.  Then each posted receive frees one: so the peer gets an RNR
 * NAK if none is posted.
 */
void ernic_hw_enable_qp(struct ernic_qp *qp)
{
	unsigned long flags;

	ernic_reset_indices(qp);
	ernic_place_queues(qp);
	if (!ernic_is_gsi(qp))
		ernic_write_path(qp);
	ernic_write_pd(qp);
	spin_lock_irqsave(&qp->rq.lock, flags);
	ernic_qp_write(qp, ERNIC_RQCI, qp->rq.given);
	ernic_qp_write(qp, ERNIC_QPCONF, qp->conf | ERNIC_QPCONF_ENABLE);
	qp->enabled = true;
	spin_unlock_irqrestore(&qp->rq.lock, flags);
}

/**
 * ernic_hw_disable_qp - stop a QP
 * @qp: the QP; the caller has its mutex
 *
 * When this returns, the hardware does no DMA for it.
 */
void ernic_hw_disable_qp(struct ernic_qp *qp)
{
	const u32 idle = ERNIC_STATQP_SQ_EMPTY | ERNIC_STATQP_OSQ_EMPTY;
	unsigned long flags;
	u32 status;

	if (!qp->enabled)
		return;
	if (qp->edev->is_ernic)
		ernic_qp_write(qp, ERNIC_QPCONF,
			       qp->conf | ERNIC_QPCONF_ENABLE | ERNIC_QPCONF_RECOVERY);
	/* A NAK may still wait to be sent.  ETRNIC has no recovery that ends the rest. */
	if ((qp->edev->is_ernic || READ_ONCE(qp->fatal)) &&
	    read_poll_timeout(ernic_qp_read, status, (status & idle) == idle, 10, ERNIC_IDLE_US,
			      false, qp, ERNIC_STATQP))
		ibdev_warn(&qp->edev->ibdev, "QP %u does not become idle: %#x\n", qp->qpn, status);
	spin_lock_irqsave(&qp->rq.lock, flags);
	qp->enabled = false;
	ernic_qp_write(qp, ERNIC_QPCONF, 0);
	spin_unlock_irqrestore(&qp->rq.lock, flags);
	/* Also what it wrote is there now. */
	if (ernic_qp_read(qp, ERNIC_QPCONF) & ERNIC_QPCONF_ENABLE)
		ibdev_err_ratelimited(&qp->edev->ibdev, "QP %u does not stop\n", qp->qpn);
	/* QP 1 goes on behind the last message. */
	if (ernic_is_gsi(qp))
		qp->edev->gsi_slot = le32_to_cpu(READ_ONCE(*(__le32 *)qp->rq.door.cpu));
}
