// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ERNIC and ETRNIC: the queue of fatal errors. */
#include "ernic.h"

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
	end = ernic_read(edev, ERNIC_IPKTERRQWPTR) % ERNIC_ERRORS_MAX;
	while (edev->next_error != end) {
		const struct ernic_packet_error *error = &errors[edev->next_error];

		edev->next_error = (edev->next_error + 1) % ERNIC_ERRORS_MAX;
		qp = ernic_qp_get(edev, le16_to_cpu(READ_ONCE(error->qp)));
		if (!qp)
			continue;
		if (!qp->fatal)
			qp->fatal = le16_to_cpu(READ_ONCE(error->code));
		queue_work(edev->wq, &qp->error_work);
		ernic_qp_put(qp);
	}
	spin_unlock_irqrestore(&edev->error_lock, flags);
}
