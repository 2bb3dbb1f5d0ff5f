// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ERNIC and ETRNIC: the interrupt.
 *
 * The hard handler masks all sources; the thread clears them, serves the QPs, and then
 * unmasks, upon which the device interrupts for what came meanwhile.
 */
#include "ernic.h"

static irqreturn_t ernic_irq(int irq, void *data)
{
	struct ernic_dev *edev = data;
	u32 status = ernic_read(edev, ERNIC_INTSTS);

	/* A device that is gone.  The kernel disables a line that nobody serves. */
	if (status == ~0U) {
		ibdev_err_ratelimited(&edev->ibdev, "registers read as all ones\n");
		return IRQ_NONE;
	}
	if (!(status & ernic_read(edev, ERNIC_INTEN)))
		return IRQ_NONE;
	ernic_write(edev, ERNIC_INTEN, 0);
	return IRQ_WAKE_THREAD;
}

static void ernic_serve_qp(struct ernic_dev *edev, u32 qpn, bool sends, bool receives)
{
	struct ernic_qp *qp = ernic_qp_get(edev, qpn);

	if (!qp)
		return;
	if (sends) {
		ernic_poll_sends(qp);
		ernic_cq_notify(to_ecq(qp->ibqp.send_cq));
	}
	if (receives) {
		ernic_poll_receives(qp);
		ernic_cq_notify(to_ecq(qp->ibqp.recv_cq));
	}
	ernic_qp_put(qp);
}

static void ernic_serve_bank(struct ernic_dev *edev, u32 bank)
{
	unsigned long receives = ernic_read(edev, ERNIC_RQINTSTS1 + 4 * bank);
	unsigned long sends = ernic_read(edev, ERNIC_CQINTSTS1 + 4 * bank);
	unsigned long both = receives | sends;
	unsigned int bit;

	/* Before the QPs are served: what comes then, interrupts again. */
	if (receives)
		ernic_write(edev, ERNIC_RQINTSTS1 + 4 * bank, receives);
	if (sends)
		ernic_write(edev, ERNIC_CQINTSTS1 + 4 * bank, sends);
	for_each_set_bit(bit, &both, 32)
		ernic_serve_qp(edev, 32 * bank + bit, test_bit(bit, &sends),
			       test_bit(bit, &receives));
}

static irqreturn_t ernic_irq_thread(int irq, void *data)
{
	struct ernic_dev *edev = data;
	u32 status = ernic_read(edev, ERNIC_INTSTS);
	u32 bank;

	ernic_write(edev, ERNIC_INTSTS, status);
	if (status & BIT(ERNIC_INT_FATAL))
		ernic_take_errors(edev);
	if (status & (BIT(ERNIC_INT_COMPLETION) | BIT(ERNIC_INT_RECEIVE)))
		for (bank = 0; bank <= edev->num_qps / 32; bank++)
			ernic_serve_bank(edev, bank);
	ernic_write(edev, ERNIC_INTEN, ERNIC_INTERRUPTS_USED);
	return IRQ_HANDLED;
}

int ernic_irq_start(struct ernic_dev *edev)
{
	return request_threaded_irq(edev->func->irq, ernic_irq, ernic_irq_thread, IRQF_SHARED,
				    dev_name(edev->func->dev), edev);
}

void ernic_irq_stop(struct ernic_dev *edev)
{
	free_irq(edev->func->irq, edev);
}
