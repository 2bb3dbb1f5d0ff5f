// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: event queues.
 *
 * One EQ receives command events, one asynchronous events, and one page faults.
 * They are separate so that many page faults cannot cause the loss of a command
 * event.  These EQs share a vector.  The other EQs receive completion events, one per
 * vector, spread over the CPUs.  The device provides the object number of an event:
 * the handler checks it.
 */
#include <linux/interrupt.h>
#include <linux/slab.h>
#include <linux/topology.h>

#include "hghca.h"

#define HGHCA_EQ_LOG_SIZE	12
#define HGHCA_CMD_EQ_LOG_SIZE	8	/* more than outstanding commands */

/* Update the consumer index after this many entries, so that the EQ does not overflow. */
#define HGHCA_EQ_UPDATE_EVERY	256

#define HGHCA_ASYNC_EVENTS	(BIT_ULL(HGHCA_EVENT_COMM_EST) | \
				 BIT_ULL(HGHCA_EVENT_SQ_DRAINED) | \
				 BIT_ULL(HGHCA_EVENT_CQ_ERROR) | \
				 BIT_ULL(HGHCA_EVENT_WQ_CATAS_ERROR) | \
				 BIT_ULL(HGHCA_EVENT_LOCAL_CATAS_ERROR) | \
				 BIT_ULL(HGHCA_EVENT_PORT_CHANGE) | \
				 BIT_ULL(HGHCA_EVENT_EQ_OVERFLOW) | \
				 BIT_ULL(HGHCA_EVENT_WQ_INVAL_REQ_ERROR) | \
				 BIT_ULL(HGHCA_EVENT_WQ_ACCESS_ERROR))

/* Only if the device has SRQs. */
#define HGHCA_SRQ_EVENTS	(BIT_ULL(HGHCA_EVENT_SRQ_CATAS_ERROR) | \
				 BIT_ULL(HGHCA_EVENT_SRQ_QP_LAST_WQE) | \
				 BIT_ULL(HGHCA_EVENT_SRQ_LIMIT))

#define HGHCA_CMD_EVENTS	BIT_ULL(HGHCA_EVENT_CMD)
#define HGHCA_FAULT_EVENTS	BIT_ULL(HGHCA_EVENT_PAGE_FAULT)

static_assert(BIT(HGHCA_CMD_EQ_LOG_SIZE) > HGHCA_CMD_SLOTS);

#define HGHCA_EVENT_NUMBER_MASK	0xffffff	/* a CQN, QPN or SRQN */

/* EQs of the driver in the device's table, from the first that is not reserved. */
enum {
	HGHCA_EQ_CMD,
	HGHCA_EQ_ASYNC,
	HGHCA_EQ_COMP,
};

static struct hghca_eqe *hghca_eqe_at(const struct hghca_eq *eq, u32 index)
{
	u32 slot = index & (BIT(eq->log_size) - 1);

	return hghca_queue_at(&eq->queue, slot * sizeof(struct hghca_eqe));
}

/* Without HGHCA_CAP_CQ_ARM there is no doorbell, and an EQ stays armed. */
static void hghca_eq_ring(struct hghca_eq *eq, u32 cmd)
{
	if (!(eq->hdev->limits.caps & HGHCA_CAP_CQ_ARM))
		return;
	trace_hghca_ring_eq(eq->hdev, eq->eqn, eq->cons_index, cmd);
	/* Read the EQEs and return their ownership before the doorbell. */
	dma_mb();
	hghca_ring(eq->hdev, HGHCA_UAR_EQ_ARM, eq->cons_index,
		   FIELD_PREP(HGHCA_EQ_ARM_CMD_MASK, cmd) |
		   FIELD_PREP(HGHCA_EQ_ARM_EQN_MASK, eq->eqn));
}

static void hghca_eq_overflow_event(struct hghca_dev *hdev, u32 number,
				    const struct hghca_eqe *eqe)
{
	dev_err_ratelimited(hdev->bus.dev, "EQ %#x: events were lost\n", number);
}

static void hghca_eq_dispatch(struct hghca_eq *eq, const struct hghca_eqe *eqe)
{
	struct hghca_dev *hdev = eq->hdev;
	u32 number = be32_to_cpu(eqe->event.raw[0]) & HGHCA_EVENT_NUMBER_MASK;
	hghca_event_handler handler = NULL;

	if (eqe->type < HGHCA_EVENT_TYPES)
		handler = hdev->event_handlers[eqe->type];
	if (handler)
		handler(hdev, number, eqe);
	else
		dev_err_ratelimited(hdev->bus.dev, "EQ %#x: event of unknown type %#x\n",
				    eq->eqn, eqe->type);
}

/* At most one round of the queue.  Later entries raise the interrupt again. */
static unsigned int hghca_eq_consume(struct hghca_eq *eq)
{
	unsigned int budget = BIT(eq->log_size);
	unsigned int done;

	lockdep_assert_held(&eq->lock);

	for (done = 0; done < budget; done++) {
		struct hghca_eqe *eqe = hghca_eqe_at(eq, eq->cons_index);
		struct hghca_eqe copy;

		if (READ_ONCE(eqe->owner) & HGHCA_CQ_ENTRY_OWNER_HW)
			break;
		/* Read the entry after its owner, which the device writes last. */
		dma_rmb();
		copy = *eqe;
		/* The doorbell returns the entry to the device; see hghca_eq_ring(). */
		hghca_return_entry(&eqe->owner, !(eq->hdev->limits.caps & HGHCA_CAP_CQ_ARM));
		trace_hghca_event(eq, eq->cons_index, &copy);
		eq->cons_index++;

		hghca_eq_dispatch(eq, &copy);
		if (done % HGHCA_EQ_UPDATE_EVERY == HGHCA_EQ_UPDATE_EVERY - 1)
			hghca_eq_ring(eq, HGHCA_EQ_ARM_UPDATE);
	}
	hghca_eq_ring(eq, HGHCA_EQ_ARM_ARM);
	return done;
}

/*
 * A device that fails raises the vector of the asynchronous EQ even if it cannot
 * write the event (document 10.1).  The EQs share the vector, and a register read is
 * slow.  Therefore only the asynchronous EQ reads the register, once per interrupt.
 */
static void hghca_eq_look_for_failure(struct hghca_dev *hdev)
{
	if (!hghca_dev_has_failed(hdev) && hghca_cmd_is_gone(hdev))
		hghca_dev_fail(hdev, "registers read as all ones");
}

static irqreturn_t hghca_eq_interrupt(int irq, void *data)
{
	struct hghca_eq *eq = data;
	unsigned long flags;
	unsigned int done;

	spin_lock_irqsave(&eq->lock, flags);
	done = hghca_eq_consume(eq);
	spin_unlock_irqrestore(&eq->lock, flags);
	if (!done && eq == &eq->hdev->async_eq)
		hghca_eq_look_for_failure(eq->hdev);
	/* Only EQs share the vector, and events may have been polled before. */
	return IRQ_HANDLED;
}

/* Poll the EQ of command events without an interrupt. */
static void hghca_eq_poll_cmd(struct hghca_dev *hdev)
{
	struct hghca_eq *eq = &hdev->cmd_eq;
	unsigned long flags;

	spin_lock_irqsave(&eq->lock, flags);
	if (eq->live && hghca_eq_consume(eq))
		dev_warn_ratelimited(hdev->bus.dev, "EQ %#x: an interrupt was lost\n", eq->eqn);
	spin_unlock_irqrestore(&eq->lock, flags);
}

static int hghca_eq_hand_over(struct hghca_eq *eq)
{
	struct hghca_dev *hdev = eq->hdev;
	struct hghca_eqc eqc = {};

	eqc.flags = cpu_to_be32(HGHCA_EQ_OWNER_HW | HGHCA_EQ_FLAG_TR | HGHCA_EQ_STATE_ARMED);
	eqc.logsize = eq->log_size;
	eqc.intr = eq->vector;
	eqc.pd = cpu_to_be32(hdev->pdn);
	eqc.lkey = cpu_to_be32(eq->queue.mr.key);
	return hghca_cmd_sw2hw_eq(hdev, eq->eqn, &eqc);
}

/*
 * The device may write any event to any EQ until the last EQ is destroyed.  Therefore
 * work that the handler queued is ended together with the interrupt: nothing ends it later.
 */
static void hghca_eq_free_irq(struct hghca_eq *eq)
{
	free_irq(eq->hdev->bus.irqs[eq->vector], eq);
	cancel_work_sync(&eq->hdev->link_work);
}

/* Create EQ number @index of the driver. */
static int hghca_eq_create(struct hghca_dev *hdev, struct hghca_eq *eq, u32 index, u32 vector,
			   u32 log_size, const char *what)
{
	u32 i;
	int err;

	eq->hdev = hdev;
	spin_lock_init(&eq->lock);
	eq->eqn = hdev->limits.first_eqn + index;
	eq->vector = vector;
	eq->log_size = log_size;
	eq->cons_index = 0;
	snprintf(eq->name, sizeof(eq->name), "%s-%s%u@%s", HGHCA_DRV_NAME, what, index,
		 hdev->bus.name);

	err = hghca_icm_get(hdev, HGHCA_ICM_EQC, eq->eqn, 1);
	if (err)
		return err;

	err = hghca_queue_alloc(hdev, &eq->queue, hdev->pdn,
				sizeof(struct hghca_eqe) << eq->log_size, true);
	if (err)
		goto err_put_icm;
	for (i = 0; i < BIT(eq->log_size); i++)
		hghca_eqe_at(eq, i)->owner = HGHCA_CQ_ENTRY_OWNER_HW;

	err = request_irq(hdev->bus.irqs[vector], hghca_eq_interrupt, IRQF_SHARED, eq->name, eq);
	if (err)
		goto err_free_queue;

	err = hghca_eq_hand_over(eq);
	if (err)
		goto err_free_irq;
	eq->live = true;
	return 0;

err_free_irq:
	hghca_eq_free_irq(eq);
err_free_queue:
	hghca_queue_free(hdev, &eq->queue);
err_put_icm:
	hghca_icm_put(hdev, HGHCA_ICM_EQC, eq->eqn, 1);
	return err;
}

static void hghca_eq_destroy(struct hghca_eq *eq)
{
	struct hghca_dev *hdev = eq->hdev;
	int err;

	spin_lock_irq(&eq->lock);
	eq->live = false;
	spin_unlock_irq(&eq->lock);

	err = hghca_cmd_hw2sw_eq(hdev, eq->eqn);
	hghca_eq_free_irq(eq);
	if (err) {
		dev_err(hdev->bus.dev, "failed to destroy EQ %#x: %d\n", eq->eqn, err);
		/* Its memory is freed next. The device must not write there. */
		hghca_dev_fail(hdev, "failed to destroy an EQ");
	}
	hghca_queue_free(hdev, &eq->queue);
	hghca_icm_put(hdev, HGHCA_ICM_EQC, eq->eqn, 1);
}

static int hghca_comp_eq_create(struct hghca_dev *hdev, unsigned int i)
{
	struct hghca_eq *eq = &hdev->comp_eqs[i];
	u32 vector = i + 1;
	unsigned int cpu;
	int err;

	err = hghca_eq_create(hdev, eq, HGHCA_EQ_COMP + i, vector, HGHCA_EQ_LOG_SIZE, "comp");
	if (err)
		return err;

	cpu = cpumask_local_spread(i, dev_to_node(hdev->bus.dev));
	irq_set_affinity_and_hint(hdev->bus.irqs[vector], cpumask_of(cpu));
	return 0;
}

static void hghca_comp_eqs_destroy(struct hghca_dev *hdev, unsigned int count)
{
	while (count--) {
		irq_update_affinity_hint(hdev->bus.irqs[hdev->comp_eqs[count].vector], NULL);
		hghca_eq_destroy(&hdev->comp_eqs[count]);
	}
	kvfree(hdev->comp_eqs);
	hdev->comp_eqs = NULL;
}

/* The EQ of page faults follows the completion EQs. */
static u32 hghca_comp_eqs_room(const struct hghca_dev *hdev)
{
	u32 room = hdev->limits.num_eqs - hdev->limits.first_eqn - HGHCA_EQ_COMP;

	return hdev->limits.caps & HGHCA_CAP_ODP ? room - 1 : room;
}

static int hghca_comp_eqs_create(struct hghca_dev *hdev)
{
	unsigned int i;
	int err;

	hdev->num_comp_eqs = min(hdev->bus.num_irqs - 1, hghca_comp_eqs_room(hdev));
	hdev->comp_eqs = kvcalloc(hdev->num_comp_eqs, sizeof(*hdev->comp_eqs), GFP_KERNEL);
	if (!hdev->comp_eqs)
		return -ENOMEM;

	for (i = 0; i < hdev->num_comp_eqs; i++) {
		err = hghca_comp_eq_create(hdev, i);
		if (err) {
			hghca_comp_eqs_destroy(hdev, i);
			return err;
		}
	}
	return 0;
}

/* Without a record, the driver reads the status of each command from the HCR. */
static void hghca_cmd_set_record(struct hghca_dev *hdev)
{
	int err;

	err = hghca_cmd_alloc_record(hdev);
	if (!err)
		err = hghca_cmd_set_status_record(hdev, hdev->cmd.status_dma);
	if (err)
		dev_warn(hdev->bus.dev, "failed to set the status record: %d\n", err);
	else
		hghca_cmd_use_record(hdev);
}

static int hghca_cmd_eq_create(struct hghca_dev *hdev)
{
	struct hghca_eq *eq = &hdev->cmd_eq;
	int err;

	err = hghca_eq_create(hdev, eq, HGHCA_EQ_CMD, 0, HGHCA_CMD_EQ_LOG_SIZE, "cmd");
	if (err)
		return err;

	err = hghca_cmd_map_eq(hdev, eq->eqn, HGHCA_CMD_EVENTS, false);
	if (err)
		goto err_destroy_eq;

	hghca_cmd_use_events(hdev, hghca_eq_poll_cmd);
	/* The first command in event mode checks that interrupts arrive. */
	err = hghca_cmd_nop(hdev);
	if (err)
		goto err_use_polling;
	if (hdev->limits.caps & HGHCA_CAP_SYNC_COMMANDS)
		hghca_cmd_use_sync(hdev);
	if (hdev->limits.caps & HGHCA_CAP_STATUS_RECORD)
		hghca_cmd_set_record(hdev);
	return 0;

err_use_polling:
	hghca_cmd_use_polling(hdev);
	hghca_cmd_map_eq(hdev, eq->eqn, HGHCA_CMD_EVENTS, true);
err_destroy_eq:
	hghca_eq_destroy(eq);
	return err;
}

static void hghca_cmd_eq_destroy(struct hghca_dev *hdev)
{
	hghca_cmd_use_polling(hdev);
	hghca_cmd_map_eq(hdev, hdev->cmd_eq.eqn, HGHCA_CMD_EVENTS, true);
	hghca_eq_destroy(&hdev->cmd_eq);
}

static u64 hghca_async_events(const struct hghca_dev *hdev)
{
	if (hdev->limits.caps & HGHCA_CAP_SRQ)
		return HGHCA_ASYNC_EVENTS | HGHCA_SRQ_EVENTS;
	return HGHCA_ASYNC_EVENTS;
}

static int hghca_async_eq_create(struct hghca_dev *hdev)
{
	struct hghca_eq *eq = &hdev->async_eq;
	int err;

	err = hghca_eq_create(hdev, eq, HGHCA_EQ_ASYNC, 0, HGHCA_EQ_LOG_SIZE, "async");
	if (err)
		return err;

	err = hghca_cmd_map_eq(hdev, eq->eqn, hghca_async_events(hdev), false);
	if (err)
		hghca_eq_destroy(eq);
	return err;
}

static void hghca_async_eq_destroy(struct hghca_dev *hdev)
{
	hghca_cmd_map_eq(hdev, hdev->async_eq.eqn, hghca_async_events(hdev), true);
	hghca_eq_destroy(&hdev->async_eq);
}

static int hghca_fault_eq_create(struct hghca_dev *hdev)
{
	struct hghca_eq *eq = &hdev->fault_eq;
	int err;

	if (!(hdev->limits.caps & HGHCA_CAP_ODP))
		return 0;

	err = hghca_eq_create(hdev, eq, HGHCA_EQ_COMP + hdev->num_comp_eqs, 0, HGHCA_EQ_LOG_SIZE,
			      "fault");
	if (err)
		return err;

	err = hghca_cmd_map_eq(hdev, eq->eqn, HGHCA_FAULT_EVENTS, false);
	if (err)
		hghca_eq_destroy(eq);
	return err;
}

static void hghca_fault_eq_destroy(struct hghca_dev *hdev)
{
	if (!(hdev->limits.caps & HGHCA_CAP_ODP))
		return;
	hghca_cmd_map_eq(hdev, hdev->fault_eq.eqn, HGHCA_FAULT_EVENTS, true);
	hghca_eq_destroy(&hdev->fault_eq);
}

/**
 * hghca_eqs_init - create the EQs, and switch commands to event mode
 * @hdev: the device
 *
 * Return: 0 or a negative errno.
 */
int hghca_eqs_init(struct hghca_dev *hdev)
{
	int err;

	hghca_handle_event(hdev, HGHCA_EVENT_EQ_OVERFLOW, hghca_eq_overflow_event);
	err = hghca_cmd_eq_create(hdev);
	if (err)
		return err;

	err = hghca_async_eq_create(hdev);
	if (err)
		goto err_destroy_cmd;

	err = hghca_comp_eqs_create(hdev);
	if (err)
		goto err_destroy_async;

	err = hghca_fault_eq_create(hdev);
	if (err)
		goto err_destroy_comp;
	return 0;

err_destroy_comp:
	hghca_comp_eqs_destroy(hdev, hdev->num_comp_eqs);
err_destroy_async:
	hghca_async_eq_destroy(hdev);
err_destroy_cmd:
	hghca_cmd_eq_destroy(hdev);
	return err;
}

/**
 * hghca_eqs_cleanup - undo hghca_eqs_init()
 * @hdev: the device, without CQs; commands use polling mode afterwards
 */
void hghca_eqs_cleanup(struct hghca_dev *hdev)
{
	hghca_fault_eq_destroy(hdev);
	hghca_comp_eqs_destroy(hdev, hdev->num_comp_eqs);
	hghca_async_eq_destroy(hdev);
	hghca_cmd_eq_destroy(hdev);
}
