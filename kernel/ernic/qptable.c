// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ERNIC and ETRNIC: QPs by number. */
#include "ernic.h"

struct ernic_qp *ernic_qp_get(struct ernic_dev *edev, u32 qpn)
{
	struct ernic_qp *qp = NULL;
	unsigned long flags;

	spin_lock_irqsave(&edev->table_lock, flags);
	if (qpn < ERNIC_QP_TABLE)
		qp = edev->qps[qpn];
	if (qp)
		refcount_inc(&qp->refs);
	spin_unlock_irqrestore(&edev->table_lock, flags);
	return qp;
}

void ernic_qp_put(struct ernic_qp *qp)
{
	if (refcount_dec_and_test(&qp->refs))
		complete(&qp->unused);
}
