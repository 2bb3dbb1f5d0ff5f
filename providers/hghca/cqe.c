/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* JingZhao HCA: the CQEs of a CQ, one array of them or, while it is resized, two. */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "cqe.h"

/* Allocate a buffer with an array of `cnt` CQEs, owned by the device.  Returns 0 or an errno. */
int hghca_cqes_alloc(struct hghca_context *ctx, const struct hghca_cq *cq,
		     struct hghca_buf *buf, struct hghca_cqes *cqes, uint32_t cnt)
{
	size_t before = ((size_t)1 << cq->log_cqe) - sizeof(struct hghca_cqe);
	uint32_t i;
	int err;

	err = hghca_buf_alloc(ctx, buf, (size_t)cnt << cq->log_cqe, cq->parent,
			      HGHCA_RES_CQ);
	if (err)
		return err;
	cqes->first = (uint8_t *)buf->addr + before;
	cqes->mask = cnt - 1;
	for (i = 0; i < cnt; i++)
		hghca_cqe_of(cq, cqes, i)->owner = HGHCA_CQ_ENTRY_OWNER_HW;
	return 0;
}

/* Copy an entry: the CQE, and the timestamp before it. */
static void hghca_cq_copy(const struct hghca_cq *cq, struct hghca_cqe *to,
			  const struct hghca_cqe *from)
{
	size_t size = (size_t)1 << cq->log_cqe;
	size_t before = size - sizeof(*from);

	memcpy((uint8_t *)to - before, (const uint8_t *)from - before, size);
}

/* The number of complete CQEs of an array that are not polled yet, from an index on. */
static uint32_t hghca_cqes_waiting(const struct hghca_cq *cq, const struct hghca_cqes *cqes,
				   uint32_t first)
{
	uint32_t n = 0;

	while (n <= cqes->mask && hghca_cqe_is_ours(hghca_cqe_of(cq, cqes, first + n)))
		n++;
	hghca_owner_before_body();
	return n;
}

/* ------------------------------------------------------------------ */
/* Resizing                                                             */

/*
 * From now on polls read the new array too: the device switches to it at some
 * time during the command.  EINVAL if it has no room for the CQEs not polled yet.
 */
int hghca_cq_announce_cqes(struct hghca_cq *cq, const struct hghca_cqes *cqes)
{
	uint32_t waiting;

	hghca_lock(&cq->lock);
	waiting = hghca_cqes_waiting(cq, &cq->cqes, cq->consumer_index);
	if (waiting <= cqes->mask)
		cq->next_cqes = *cqes;
	hghca_unlock(&cq->lock);
	return waiting <= cqes->mask ? 0 : EINVAL;
}

/*
 * The device has switched to the new array: the CQEs of the old one that are not
 * polled yet move to the same indices of the new one, which the device leaves free.
 */
void hghca_cq_switch_cqes(struct hghca_cq *cq)
{
	uint32_t first, waiting, i;

	hghca_lock(&cq->lock);
	first = cq->consumer_index;
	waiting = hghca_cqes_waiting(cq, &cq->cqes, first);
	for (i = first; i != first + waiting; i++)
		hghca_cq_copy(cq, hghca_cqe_of(cq, &cq->next_cqes, i),
			      hghca_cqe_of(cq, &cq->cqes, i));
	cq->cqes = cq->next_cqes;
	cq->next_cqes.first = NULL;
	hghca_unlock(&cq->lock);
}

/* The command has failed: the device has written nothing to the new array. */
void hghca_cq_withdraw_cqes(struct hghca_cq *cq)
{
	hghca_lock(&cq->lock);
	cq->next_cqes.first = NULL;
	hghca_unlock(&cq->lock);
}

/* ------------------------------------------------------------------ */
/* CQEs of a QP or SRQ that is destroyed or reset                       */

/* CQEs that are not polled yet: `old` of them in the array, the others in the next array. */
struct hghca_cq_waiting {
	uint32_t old;
	uint32_t all;
};

static struct hghca_cq_waiting hghca_cq_waiting(const struct hghca_cq *cq)
{
	struct hghca_cq_waiting waiting;

	waiting.old = hghca_cqes_waiting(cq, &cq->cqes, cq->consumer_index);
	waiting.all = waiting.old;
	if (cq->next_cqes.first)
		waiting.all += hghca_cqes_waiting(cq, &cq->next_cqes,
						  cq->consumer_index + waiting.old);
	return waiting;
}

/* The n-th CQE that is not polled yet. */
static struct hghca_cqe *hghca_cq_nth(const struct hghca_cq *cq,
				      const struct hghca_cq_waiting *waiting, uint32_t n)
{
	return hghca_cqe_of(cq, n < waiting->old ? &cq->cqes : &cq->next_cqes,
			    cq->consumer_index + n);
}

/*
 * Remove the CQEs for which `belongs` is true, with the lock held.  The others move
 * towards the newest one, so that the free entries are at the consumer's end.
 */
void hghca_cq_remove_cqes(struct hghca_cq *cq, const void *owner,
			  bool (*belongs)(struct hghca_cq *cq, const void *owner,
					  const struct hghca_cqe *cqe))
{
	const struct hghca_cq_waiting waiting = hghca_cq_waiting(cq);
	uint32_t freed = 0;
	struct hghca_cqe *cqe;
	uint32_t i;

	for (i = waiting.all; i-- > 0;) {
		cqe = hghca_cq_nth(cq, &waiting, i);
		if (belongs(cq, owner, cqe))
			freed++;
		else if (freed)
			hghca_cq_copy(cq, hghca_cq_nth(cq, &waiting, i + freed), cqe);
	}
	if (!freed)
		return;

	for (i = 0; i < freed; i++)
		hghca_cqe_give_back(hghca_cq_nth(cq, &waiting, i));
	cq->consumer_index += freed;
	hghca_cq_update_dbr(cq);
}
