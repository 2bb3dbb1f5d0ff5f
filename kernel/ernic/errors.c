// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ERNIC and ETRNIC: the queue of fatal errors. */
#include "ernic.h"

/* Under &ernic_dev.error_lock. */
static void ernic_note_fatal(struct ernic_qp *qp, u16 code)
{
	if (code >= 64 || !(ERNIC_FATAL_BITS & BIT_ULL(code))) {
		ibdev_err_ratelimited(&qp->edev->ibdev, "QP %u is fatal: unknown code %#x\n",
				      qp->qpn, code);
		code = ERNIC_FATAL_UNKNOWN;
	}
	if (!qp->fatal)
		qp->fatal = code;
	queue_work(qp->edev->wq, &qp->error_work);
}

/**
 * ernic_take_errors - note which QPs are fatal
 * @edev: the device
 *
 * Any context.  Each of them gets its work.
 */
void ernic_take_errors(struct ernic_dev *edev)
{
	const struct ernic_packet_error *errors = edev->errors.cpu;
	struct ernic_qp *qp;
	unsigned long flags;
	u32 end;

	spin_lock_irqsave(&edev->error_lock, flags);
	/* readl() orders the entries behind it. */
	end = ernic_read(edev, ERNIC_IPKTERRQWPTR);
	if (end >= ERNIC_ERRORS_MAX) {
		ibdev_err_ratelimited(&edev->ibdev, "fatal error %u of %u\n", end,
				      ERNIC_ERRORS_MAX);
		end = edev->next_error;
	}
	while (edev->next_error != end) {
		const struct ernic_packet_error *error = &errors[edev->next_error];

		edev->next_error = (edev->next_error + 1) % ERNIC_ERRORS_MAX;
		qp = ernic_qp_get(edev, le16_to_cpu(READ_ONCE(error->qp)));
		if (!qp)
			continue;
		ernic_note_fatal(qp, le16_to_cpu(READ_ONCE(error->code)));
		ernic_qp_put(qp);
	}
	spin_unlock_irqrestore(&edev->error_lock, flags);
}
