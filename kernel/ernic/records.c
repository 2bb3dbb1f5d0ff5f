// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ERNIC and ETRNIC: records of messages. */
#include "ernic.h"

/* Give the record to its QP, if there is that still. */
static void ernic_take_record(struct ernic_dev *edev, const struct ernic_record *record)
{
	u16 qpn = le16_to_cpu(READ_ONCE(record->qp));
	struct ernic_qp *qp = qpn < ERNIC_QP_TABLE ? edev->qps[qpn] : NULL;
	u32 slot = le16_to_cpu(READ_ONCE(record->slot)) - 1;

	/* QP 1 has none. */
	if (!qp || ernic_is_gsi(qp) || slot >= qp->rq.depth)
		return;
	qp->rq.records[slot] = *record;
	qp->rq.recorded = (slot + 1) % qp->rq.depth;
}

/**
 * ernic_take_records - give records to their QPs until one has all of its messages
 * @edev: the device, with RECORDS
 * @qp: the QP
 * @behind: its slot behind the last message that its doorbell tells
 *
 * The device writes a record before the doorbell: so none is taken half written.
 */
void ernic_take_records(struct ernic_dev *edev, struct ernic_qp *qp, u32 behind)
{
	const struct ernic_record *ring = edev->records.cpu;
	const struct ernic_record *record;
	u32 taken;

	/* A device that goes on writing does not hold the lock for longer than one round. */
	spin_lock(&edev->table_lock);
	for (taken = 0; taken < ERNIC_RECORDS_MAX && qp->rq.recorded != behind; taken++) {
		record = &ring[edev->next_record];
		if (FIELD_GET(ERNIC_RECORD_PHASE, READ_ONCE(record->flags)) != edev->record_phase)
			break;
		ernic_take_record(edev, record);
		edev->next_record = (edev->next_record + 1) % ERNIC_RECORDS_MAX;
		edev->record_phase ^= !edev->next_record;
	}
	spin_unlock(&edev->table_lock);
}

/* Take all records, those of a QP that is stopped among them: its slots are used again. */
void ernic_drop_records(struct ernic_dev *edev)
{
	const struct ernic_record *ring = edev->records.cpu;
	unsigned long flags;
	u32 end;

	if (!(edev->extensions & ERNIC_EXT_RECORDS))
		return;
	spin_lock_irqsave(&edev->table_lock, flags);
	end = ernic_read(edev, ERNIC_RECORDWPTR) % ERNIC_RECORDS_MAX;
	while (edev->next_record != end) {
		ernic_take_record(edev, &ring[edev->next_record]);
		edev->next_record = (edev->next_record + 1) % ERNIC_RECORDS_MAX;
		edev->record_phase ^= !edev->next_record;
	}
	spin_unlock_irqrestore(&edev->table_lock, flags);
}
