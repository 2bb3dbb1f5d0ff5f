// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ERNIC and ETRNIC: records of messages.  Without the extension RECORDS, an ERNIC writes
 * invalidate/immediate data entries to the same ring, of those messages alone that have
 * immediate data or an R_Key.
 */
#include "ernic.h"

/* Give the record to its QP, if there is that still. */
static void ernic_give_record(struct ernic_dev *edev, const struct ernic_record *record)
{
	u16 qpn = le16_to_cpu(READ_ONCE(record->qp));
	struct ernic_qp *qp = qpn < ERNIC_QP_TABLE ? edev->qps[qpn] : NULL;
	u32 slot = le16_to_cpu(READ_ONCE(record->slot)) - 1;

	/* QP 1 has none. */
	if (!qp || ernic_is_gsi(qp))
		return;
	if (slot != qp->rq.recorded) {
		ibdev_err_ratelimited(&edev->ibdev, "QP %u: a record of slot %u, not of %u\n", qpn,
				      slot, qp->rq.recorded);
		return;
	}
	qp->rq.records[slot] = *record;
	qp->rq.recorded = (slot + 1) % qp->rq.depth;
}

/* False: the device has not written the next record.  Under &ernic_dev.table_lock. */
static bool ernic_take_record(struct ernic_dev *edev)
{
	const struct ernic_record *ring = edev->records.cpu;
	const struct ernic_record *next = &ring[edev->next_record];

	if (FIELD_GET(ERNIC_RECORD_PHASE, READ_ONCE(next->flags)) != edev->record_phase)
		return false;
	ernic_give_record(edev, next);
	edev->next_record = (edev->next_record + 1) % ERNIC_RECORDS_MAX;
	edev->record_phase ^= !edev->next_record;
	return true;
}

/* The message in the slot is no plain SEND.  Under &ernic_dev.table_lock. */
static void ernic_give_immdt_entry(struct ernic_dev *edev, const struct ernic_immdt_entry *entry)
{
	u8 qpn = READ_ONCE(entry->qp);
	u32 slot = le16_to_cpu(READ_ONCE(entry->slot)) - 1;
	struct ernic_qp *qp = edev->qps[qpn];

	if (!qp || ernic_is_gsi(qp))
		return;
	if (slot >= qp->rq.depth) {
		ibdev_err_ratelimited(&edev->ibdev, "QP %u: an entry of slot %u of %u\n", qpn, slot,
				      qp->rq.depth);
		return;
	}
	qp->rq.records[slot].opcode = READ_ONCE(entry->type);
	qp->rq.records[slot].imm = READ_ONCE(entry->imm);
}

/* Take all that the device has written.  Under &ernic_dev.table_lock. */
static void ernic_take_immdt_entries(struct ernic_dev *edev)
{
	const struct ernic_immdt_entry *ring = edev->records.cpu;
	u32 end = ernic_read(edev, ERNIC_RECORDWPTR);

	if (end >= ERNIC_RECORDS_MAX) {
		ibdev_err_ratelimited(&edev->ibdev, "entry %u of %u\n", end, ERNIC_RECORDS_MAX);
		return;
	}
	while (edev->next_record != end) {
		ernic_give_immdt_entry(edev, &ring[edev->next_record]);
		edev->next_record = (edev->next_record + 1) % ERNIC_RECORDS_MAX;
	}
}

/**
 * ernic_take_immdts - give invalidate/immediate data entries to their QPs
 * @edev: the device
 *
 * The device writes an entry before the doorbell: a caller that has read a doorbell has
 * the entries of its messages behind it.
 */
void ernic_take_immdts(struct ernic_dev *edev)
{
	unsigned long flags;

	if (!ernic_has_immdts(edev))
		return;
	spin_lock_irqsave(&edev->table_lock, flags);
	ernic_take_immdt_entries(edev);
	spin_unlock_irqrestore(&edev->table_lock, flags);
}

/**
 * ernic_take_records - give records to their QPs until one has all of its messages
 * @edev: the device, with RECORDS
 * @qp: the QP; the caller has the lock of its receive queue
 * @behind: its slot behind the last message that its doorbell tells
 *
 * The device writes a record before the doorbell: so none is taken half written.
 *
 * Return: messages of the QP that have a record and are not complete.
 */
u32 ernic_take_records(struct ernic_dev *edev, struct ernic_qp *qp, u32 behind)
{
	u32 next = qp->rq.next_slot;
	u32 taken, number;
	bool missing;

	/* A device that goes on writing does not hold the lock for longer than one round. */
	spin_lock(&edev->table_lock);
	for (taken = 0; taken < ERNIC_RECORDS_MAX && qp->rq.recorded != behind; taken++)
		if (!ernic_take_record(edev))
			break;
	number = (qp->rq.recorded + qp->rq.depth - next) % qp->rq.depth;
	missing = number < (behind + qp->rq.depth - next) % qp->rq.depth;
	spin_unlock(&edev->table_lock);
	if (missing)
		ibdev_err_ratelimited(&edev->ibdev, "QP %u: a message without a record\n", qp->qpn);
	return number;
}

/* Take all records, those of a QP that is stopped among them: its slots are used again. */
void ernic_drop_records(struct ernic_dev *edev)
{
	unsigned long flags;
	u32 end;

	ernic_take_immdts(edev);
	if (!(edev->extensions & ERNIC_EXT_RECORDS))
		return;
	spin_lock_irqsave(&edev->table_lock, flags);
	end = ernic_read(edev, ERNIC_RECORDWPTR);
	if (end >= ERNIC_RECORDS_MAX)
		ibdev_err_ratelimited(&edev->ibdev, "record %u of %u\n", end, ERNIC_RECORDS_MAX);
	else
		while (edev->next_record != end && ernic_take_record(edev))
			;
	spin_unlock_irqrestore(&edev->table_lock, flags);
}
