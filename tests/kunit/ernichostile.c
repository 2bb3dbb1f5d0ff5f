// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of the driver of ERNIC and ETRNIC: a device that does what no device does.  Whatever
 * it writes, nothing hangs, no memory is touched that is not the queue's, each work request
 * completes once, and the log says what was wrong.
 */
#include <linux/kthread.h>
#include <linux/prandom.h>
#include <linux/slab.h>
#include <linux/unaligned.h>

#include "ernicfake.h"

#define HOSTILE_SENDS		4
#define HOSTILE_RECEIVES	6
#define HOSTILE_RECEIVE		100	/* wr_id of the first */
#define HOSTILE_ROUNDS		300
#define HOSTILE_BYTES		256

struct hostile {
	struct ernic_fake *fake;
	struct ib_cq *cq;
	struct ernic_qp *qp;
	u8 *buffer;
	u32 qpn;
	u32 seen[HOSTILE_RECEIVE + HOSTILE_RECEIVES];	/* completions by wr_id */
	u32 others;		/* of wr_ids that were not posted */
	u32 flushed;
	int events;
	enum ib_event_type event;
};

static void hostile_event(struct ib_event *event, void *context)
{
	struct hostile *hostile = context;

	hostile->events++;
	hostile->event = event->event;
}

/* A QP in RTS with all that its queues take. */
static int hostile_init(struct kunit *test)
{
	static const struct ernic_fake_qp attr = { .sends = HOSTILE_SENDS, .sges = 1,
						   .receives = HOSTILE_RECEIVES, .signal_all = true };
	struct hostile *hostile = kunit_kzalloc(test, sizeof(*hostile), GFP_KERNEL);
	const struct ib_recv_wr *bad_recv;
	const struct ib_send_wr *bad_send;
	int err;
	u32 i;

	if (!hostile)
		return -ENOMEM;
	err = ernic_fake_init(test);
	if (err)
		return err;
	hostile->fake = test->priv;
	test->priv = hostile;
	hostile->buffer = kunit_kzalloc(test, HOSTILE_BYTES, GFP_KERNEL);
	if (!hostile->buffer)
		return -ENOMEM;
	hostile->cq = ernic_fake_cq(test, hostile->fake, 64);
	hostile->qp = ernic_fake_qp(test, ernic_fake_pd(test, hostile->fake), hostile->cq, &attr);
	hostile->qp->ibqp.event_handler = hostile_event;
	hostile->qp->ibqp.qp_context = hostile;
	hostile->qpn = hostile->qp->ibqp.qp_num;
	ernic_fake_connect(test, hostile->fake, hostile->qp);
	for (i = 0; i < HOSTILE_SENDS + HOSTILE_RECEIVES; i++) {
		struct ib_sge sge = { .addr = (uintptr_t)hostile->buffer, .length = HOSTILE_BYTES };
		struct ib_recv_wr recv = { .wr_id = HOSTILE_RECEIVE + i - HOSTILE_SENDS, .sg_list = &sge,
					   .num_sge = 1 };
		struct ib_send_wr send = { .wr_id = i, .opcode = IB_WR_SEND, .sg_list = &sge,
					   .num_sge = 1 };

		err = i < HOSTILE_SENDS ? ernic_post_send(&hostile->qp->ibqp, &send, &bad_send) :
					  ernic_post_recv(&hostile->qp->ibqp, &recv, &bad_recv);
		if (err)
			return err;
	}
	return 0;
}

static u32 hostile_poll(struct hostile *hostile)
{
	struct ib_wc wc[8];
	u32 total = 0;
	int number, i;

	do {
		number = ernic_poll_cq(hostile->cq, ARRAY_SIZE(wc), wc);
		for (i = 0; i < number; i++) {
			if (wc[i].wr_id < ARRAY_SIZE(hostile->seen))
				hostile->seen[wc[i].wr_id]++;
			else
				hostile->others++;
			hostile->flushed += wc[i].status == IB_WC_WR_FLUSH_ERR;
		}
		total += number;
	} while (number > 0 && total < 1000);
	return total;
}

/* All that was posted completes in the end, each once, whatever came before. */
static void hostile_expect_end(struct kunit *test)
{
	struct hostile *hostile = test->priv;
	u32 i;

	hostile->fake->on_read = NULL;
	KUNIT_EXPECT_EQ(test, 0, ernic_fake_modify(hostile->fake, hostile->qp, IB_QPS_ERR));
	flush_workqueue(hostile->fake->edev->wq);
	hostile_poll(hostile);
	KUNIT_EXPECT_EQ(test, 0, hostile->others);
	for (i = 0; i < ARRAY_SIZE(hostile->seen); i++)
		KUNIT_EXPECT_EQ_MSG(test, i < HOSTILE_SENDS || i >= HOSTILE_RECEIVE, hostile->seen[i],
				    "work request %u", i);
	hostile_poll(hostile);
}

/* ------------------------------------------------------------------ */
/* Indices                                                             */

static const struct hostile_index {
	const char *name;
	u32 value;
	u32 before;		/* an index that was sound; 0: none */
} hostile_indices[] = {
	{ "one above the sends", 5 },
	{ "one above the depth", 9 },
	{ "16 bits of ones", 0xffff },
	{ "all ones", 0xffffffff },
	{ "an index behind what was complete", 1, 2 },
	{ "0 after the first", 0, 2 },
};

KUNIT_ARRAY_PARAM_DESC(hostile_index, hostile_indices, name);

/* A CQ doorbell that cannot be: no send completes by it. */
static void hostile_send_index(struct kunit *test)
{
	const struct hostile_index *param = test->param_value;
	struct hostile *hostile = test->priv;
	struct ernic_fake *fake = hostile->fake;

	if (param->before)
		ernic_fake_complete(fake, hostile->qpn, param->before, false);
	KUNIT_EXPECT_EQ(test, param->before, hostile_poll(hostile));
	WRITE_ONCE(*ernic_fake_cq_door(fake, hostile->qpn), cpu_to_le32(param->value));
	KUNIT_EXPECT_EQ(test, 0, hostile_poll(hostile));
	ernic_fake_set(fake, FAKE_CQINTSTS1, BIT(hostile->qpn));
	KUNIT_EXPECT_TRUE(test, ernic_fake_interrupt(fake));
	KUNIT_EXPECT_EQ(test, 0, hostile_poll(hostile));
	hostile_expect_end(test);
	KUNIT_EXPECT_EQ(test, HOSTILE_SENDS - param->before + HOSTILE_RECEIVES, hostile->flushed);
}

static const struct hostile_index hostile_messages[] = {
	{ "one message without a record", 1 },
	{ "all messages without a record", 6 },
	{ "one above the depth", 8 },
	{ "16 bits of ones", 0xffff },
	{ "all ones", 0xffffffff },
	{ "an index behind what was received", 1, 2 },
};

KUNIT_ARRAY_PARAM_DESC(hostile_message, hostile_messages, name);

/* An RQ doorbell that cannot be, or one of messages that have no record. */
static void hostile_receive_index(struct kunit *test)
{
	static const struct ernic_fake_message message = { .data = "abc", .bytes = 3, .opcode = 0x04 };
	const struct hostile_index *param = test->param_value;
	struct hostile *hostile = test->priv;
	struct ernic_fake *fake = hostile->fake;
	u32 i;

	for (i = 0; i < param->before; i++)
		ernic_fake_receive(fake, hostile->qpn, &message);
	KUNIT_EXPECT_EQ(test, param->before, hostile_poll(hostile));
	WRITE_ONCE(*ernic_fake_rq_door(fake, hostile->qpn), cpu_to_le32(param->value));
	KUNIT_EXPECT_EQ(test, 0, hostile_poll(hostile));
	ernic_fake_set(fake, FAKE_RQINTSTS1, BIT(hostile->qpn));
	KUNIT_EXPECT_TRUE(test, ernic_fake_interrupt(fake));
	KUNIT_EXPECT_EQ(test, 0, hostile_poll(hostile));
	hostile_expect_end(test);
	KUNIT_EXPECT_EQ(test, HOSTILE_SENDS + HOSTILE_RECEIVES - param->before, hostile->flushed);
}

/* ------------------------------------------------------------------ */
/* Records                                                             */

static const struct hostile_record {
	const char *name;
	u32 qpn;		/* 0: that of the test */
	u32 index;
	struct ernic_fake_message message;
	bool completes;
	enum ib_wc_status status;
} hostile_records[] = {
	{ "QP 0", 0x10000, 1, { .bytes = 3, .opcode = 0x04 } },
	{ "QP 1", 1, 1, { .bytes = 3, .opcode = 0x04 } },
	{ "a QP that does not exist", 200, 1, { .bytes = 3, .opcode = 0x04 } },
	{ "QP ffffh", 0xffff, 1, { .bytes = 3, .opcode = 0x04 } },
	{ "index 0", 0, 0, { .bytes = 3, .opcode = 0x04 } },
	{ "the index behind the next one", 0, 2, { .bytes = 3, .opcode = 0x04 } },
	{ "index ffffh", 0, 0xffff, { .bytes = 3, .opcode = 0x04 } },
	{ "longer than the receive", 0, 1, { .bytes = HOSTILE_BYTES + 1, .opcode = 0x04 }, true,
	  IB_WC_LOC_LEN_ERR },
	{ "longer than the slot", 0, 1, { .bytes = 4097, .opcode = 0x04 }, true, IB_WC_LOC_LEN_ERR },
	{ "length ffffffffh", 0, 1, { .bytes = 0xffffffff, .opcode = 0x04 }, true, IB_WC_LOC_LEN_ERR },
	{ "opcode ffh", 0, 1, { .bytes = 3, .opcode = 0xff }, true, IB_WC_LOC_QP_OP_ERR },
	{ "opcode of a READ request", 0, 1, { .bytes = 3, .opcode = 0x0c }, true, IB_WC_LOC_QP_OP_ERR },
	{ "all flags", 0, 1, { .bytes = 3, .opcode = 0x04, .flags = 0x7f }, true, IB_WC_SUCCESS },
	{ "the other round", 0, 1, { .bytes = 3, .opcode = 0x04, .flags = 0x80 } },
	{ "an R_Key that does not exist", 0, 1, { .bytes = 3, .opcode = 0x17, .imm = (__force __be32)~0 },
	  true, IB_WC_LOC_ACCESS_ERR },
};

KUNIT_ARRAY_PARAM_DESC(hostile_record, hostile_records, name);

/* One message, with a record that says something else. */
static void hostile_one_record(struct kunit *test)
{
	const struct hostile_record *param = test->param_value;
	struct hostile *hostile = test->priv;
	struct ernic_fake *fake = hostile->fake;
	struct ib_wc wc = {};
	u32 qpn = param->qpn ? param->qpn & 0xffff : hostile->qpn;

	ernic_fake_write_record(fake, qpn, param->index, &param->message);
	/* Flags of 80h: as if the ring had been gone round. */
	if (param->message.flags & 0x80)
		ernic_fake_record(fake, 0)[5] = 0;
	WRITE_ONCE(*ernic_fake_rq_door(fake, hostile->qpn), cpu_to_le32(1));
	KUNIT_EXPECT_EQ(test, param->completes, ernic_poll_cq(hostile->cq, 1, &wc));
	if (param->completes) {
		KUNIT_EXPECT_EQ(test, HOSTILE_RECEIVE, wc.wr_id);
		KUNIT_EXPECT_EQ(test, (int)param->status, (int)wc.status);
		hostile->seen[HOSTILE_RECEIVE]++;
		if (param->status == IB_WC_SUCCESS)
			KUNIT_EXPECT_EQ(test, 3, wc.byte_len);
	}
	hostile_expect_end(test);
}

/* The whole ring is full of records for this QP, with any index, at once. */
static void hostile_all_records(struct kunit *test)
{
	struct hostile *hostile = test->priv;
	struct ernic_fake *fake = hostile->fake;
	u32 places = ernic_fake_get(fake, FAKE_RECORDSZ), i;

	for (i = 0; i < places; i++) {
		u8 *record = ernic_fake_record(fake, i);

		put_unaligned_le16(hostile->qpn, record);
		put_unaligned_le16(i * 3, record + 2);
		record[4] = i;
		record[5] = 0x80;
		put_unaligned_le32(i, record + 8);
	}
	for (i = 0; i < 3; i++) {
		WRITE_ONCE(*ernic_fake_rq_door(fake, hostile->qpn), cpu_to_le32(2 * i + 1));
		ernic_fake_set(fake, FAKE_RECORDWPTR, i * 1000 + 7);
		hostile_poll(hostile);
	}
	hostile_expect_end(test);
}

/* Pointers to records that are not in the ring, as a QP ends. */
static void hostile_record_pointer(struct kunit *test)
{
	struct hostile *hostile = test->priv;
	struct ernic_fake *fake = hostile->fake;

	ernic_fake_set(fake, FAKE_RECORDWPTR, 0xffff);
	hostile_expect_end(test);
}

struct hostile_writer {
	u8 *at[3];
	u32 bytes;
	u8 mask;
};

/* The device goes on writing while the driver reads. */
static int hostile_write_on(void *data)
{
	struct hostile_writer *writer = data;
	struct rnd_state random;
	u32 i;

	prandom_seed_state(&random, 1);
	while (!kthread_should_stop()) {
		for (i = 0; i < ARRAY_SIZE(writer->at); i++) {
			u32 value = prandom_u32_state(&random);

			if (writer->at[i])
				WRITE_ONCE(writer->at[i][(value >> 8) % writer->bytes],
					   value & writer->mask);
		}
		cond_resched();
	}
	return 0;
}

/* Records, receive slots and CQEs change between two reads, and indices are those of nobody. */
static void hostile_changing(struct kunit *test)
{
	static const struct ernic_fake_message message = { .data = "abc", .bytes = 3, .opcode = 0x04 };
	struct hostile *hostile = test->priv;
	struct ernic_fake *fake = hostile->fake;
	struct hostile_writer writer = {
		.at = { ernic_fake_record(fake, 0), ernic_fake_slot(fake, hostile->qpn, 0),
			(u8 *)ernic_fake_cqe(fake, hostile->qpn, 0) },
		.bytes = 16,
		.mask = 0xff,
	};
	struct task_struct *thread;
	struct rnd_state random;
	u32 i;

	prandom_seed_state(&random, 2);
	thread = kthread_run(hostile_write_on, &writer, "hghca-kunit");
	KUNIT_ASSERT_FALSE(test, IS_ERR(thread));
	for (i = 0; i < HOSTILE_ROUNDS; i++) {
		if (i % 50 == 0)
			ernic_fake_receive(fake, hostile->qpn, &message);
		if (i % 3 == 0)
			WRITE_ONCE(*ernic_fake_cq_door(fake, hostile->qpn),
				   cpu_to_le32(prandom_u32_state(&random) % 12));
		ernic_fake_set(fake, FAKE_IPKTERRQWPTR, prandom_u32_state(&random) % 1100);
		hostile_poll(hostile);
		cond_resched();
	}
	kthread_stop(thread);
	hostile_expect_end(test);
}

/* The frame of a MAD changes between the check of its length and its use. */
static void hostile_changing_mad(struct kunit *test)
{
	static const struct ernic_fake_qp attr = { .sends = 1, .receives = 1, .sges = 1, .gsi = true };
	struct hostile *hostile = test->priv;
	struct ernic_fake *fake = hostile->fake;
	struct ernic_qp *qp = ernic_fake_qp(test, hostile->qp->ibqp.pd, hostile->cq, &attr);
	struct ib_sge sge = { .addr = (uintptr_t)hostile->buffer, .length = HOSTILE_BYTES };
	struct ib_recv_wr wr = { .wr_id = 1000, .sg_list = &sge, .num_sge = 1 };
	/* The high byte of the length: 64 bytes, or up to 832. */
	struct hostile_writer writer = { .bytes = 1, .mask = 3 };
	const struct ib_recv_wr *bad;
	struct task_struct *thread;
	struct ib_wc wc;
	u32 i, slot;

	ernic_fake_connect(test, fake, qp);
	for (slot = 0; slot < 2; slot++) {
		u8 *frame = ernic_fake_slot(fake, 1, slot);

		memset(frame, 0, 512);
		put_unaligned_be16(0x0800, frame + 12);
		frame[14] = 0x45;
		frame[39] = 64;
		put_unaligned_be32(0x80010000, frame + 54);
		writer.at[slot] = frame + 38;
	}
	thread = kthread_run(hostile_write_on, &writer, "hghca-kunit");
	KUNIT_ASSERT_FALSE(test, IS_ERR(thread));
	for (i = 0; i < HOSTILE_ROUNDS; i++) {
		/* The receive may still be there: a MAD that is invalid takes none. */
		ernic_post_recv(&qp->ibqp, &wr, &bad);
		WRITE_ONCE(*ernic_fake_rq_door(fake, 1), cpu_to_le32(i % 2 + 1));
		while (ernic_poll_cq(hostile->cq, 1, &wc))
			if (wc.status == IB_WC_SUCCESS)
				KUNIT_EXPECT_GE(test, 40 + 256, wc.byte_len);
		cond_resched();
	}
	kthread_stop(thread);
	ernic_fake_destroy_qp(test, qp);
	hostile_expect_end(test);
}

/* ------------------------------------------------------------------ */
/* Fatal errors                                                        */

static const struct hostile_fatal {
	const char *name;
	u16 qpn;		/* 0: that of the test */
	u16 code;
	bool is_fatal;
} hostile_fatals[] = {
	{ "code 0", 0, 0, true },
	{ "code 05h", 0, 0x05, true },
	{ "code 18h", 0, 0x18, true },
	{ "code 22h", 0, 0x22, true },
	{ "code 40h", 0, 0x40, true },
	{ "code ffffh", 0, 0xffff, true },
	{ "a QP that does not exist", 200, 0x06, false },
	{ "QP 256", 256, 0x06, false },
	{ "QP ffffh", 0xffff, 0x06, false },
};

KUNIT_ARRAY_PARAM_DESC(hostile_fatal, hostile_fatals, name);

static void hostile_fatal_code(struct kunit *test)
{
	const struct hostile_fatal *param = test->param_value;
	struct hostile *hostile = test->priv;
	struct ernic_fake *fake = hostile->fake;

	ernic_fake_fatal(fake, param->qpn ?: hostile->qpn, param->code);
	KUNIT_EXPECT_TRUE(test, ernic_fake_interrupt(fake));
	flush_workqueue(fake->edev->wq);
	KUNIT_EXPECT_EQ(test, param->is_fatal, hostile->events);
	if (param->is_fatal)
		KUNIT_EXPECT_EQ(test, (int)IB_EVENT_QP_FATAL, (int)hostile->event);
	KUNIT_EXPECT_EQ(test, !param->is_fatal, ernic_fake_qp_get(fake, hostile->qpn, FAKE_QPCONF) & 1);
	hostile_expect_end(test);
}

static const struct hostile_pointer {
	const char *name;
	u32 value;
} hostile_pointers[] = {
	{ "the size", 1024 },
	{ "16 bits of ones", 0xffff },
	{ "all ones", 0xffffffff },
};

KUNIT_ARRAY_PARAM_DESC(hostile_pointer, hostile_pointers, name);

/* Pointers that are not in the queue of errors: the next one that is sound is used. */
static void hostile_error_pointer(struct kunit *test)
{
	const struct hostile_pointer *param = test->param_value;
	struct hostile *hostile = test->priv;
	struct ernic_fake *fake = hostile->fake;

	ernic_fake_set(fake, FAKE_IPKTERRQWPTR, param->value);
	ernic_fake_set(fake, FAKE_INTSTS, BIT(7));
	KUNIT_EXPECT_TRUE(test, ernic_fake_interrupt(fake));
	flush_workqueue(fake->edev->wq);
	KUNIT_EXPECT_EQ(test, 0, hostile->events);
	KUNIT_EXPECT_EQ(test, 1, ernic_fake_qp_get(fake, hostile->qpn, FAKE_QPCONF) & 1);
	ernic_fake_set(fake, FAKE_IPKTERRQWPTR, 0);
	ernic_fake_fatal(fake, hostile->qpn, 0x20);
	KUNIT_EXPECT_TRUE(test, ernic_fake_interrupt(fake));
	flush_workqueue(fake->edev->wq);
	KUNIT_EXPECT_EQ(test, 1, hostile->events);
	hostile_expect_end(test);
}

/* ------------------------------------------------------------------ */
/* Interrupts                                                          */

/* Banks are cleared by what was read in them, and INTSTS likewise. */
static void hostile_banks(struct kunit *test)
{
	struct hostile *hostile = test->priv;
	struct ernic_fake *fake = hostile->fake;
	u32 bank, from = fake->written;

	/* QPs that do not exist, of each bank, and bits without a meaning. */
	for (bank = 0; bank < 8; bank++) {
		ernic_fake_set(fake, FAKE_RQINTSTS1 + 4 * bank, 0x80000001);
		ernic_fake_set(fake, FAKE_CQINTSTS1 + 4 * bank, 0xffffffff);
	}
	ernic_fake_set(fake, FAKE_INTSTS, 0x25);
	KUNIT_EXPECT_TRUE(test, ernic_fake_interrupt(fake));
	for (bank = 0; bank < 8; bank++) {
		KUNIT_EXPECT_LE(test, 0,
				ernic_fake_find_write(fake, from, 0x20190 + 4 * bank, 0x80000001));
		KUNIT_EXPECT_LE(test, 0,
				ernic_fake_find_write(fake, from, 0x201b0 + 4 * bank, 0xffffffff));
	}
	KUNIT_EXPECT_EQ(test, 0, ernic_fake_get(fake, FAKE_INTSTS));
	KUNIT_EXPECT_EQ(test, 0xd0, ernic_fake_get(fake, FAKE_INTEN));
	KUNIT_EXPECT_EQ(test, 0, hostile_poll(hostile));
	hostile_expect_end(test);
}

/* Without a cause, and with one that is disabled: the handler does not touch the device. */
static void hostile_no_cause(struct kunit *test)
{
	struct hostile *hostile = test->priv;
	struct ernic_fake *fake = hostile->fake;
	u32 from = fake->written, i;

	for (i = 0; i < 10; i++)
		ernic_fake_bare_interrupt(fake);
	ernic_fake_set(fake, FAKE_INTSTS, 0x2f);
	ernic_fake_bare_interrupt(fake);
	KUNIT_EXPECT_EQ(test, from, fake->written);
	hostile_expect_end(test);
}

static u32 hostile_stuck(struct ernic_fake *fake, u32 offset, u32 value)
{
	/* INTSTS and all banks. */
	return offset == 0x20184 ? 0xff : offset >= 0x20190 && offset < 0x201d0 ? ~0U : value;
}

/* Causes that do not go away: each interrupt ends. */
static void hostile_stuck_cause(struct kunit *test)
{
	struct hostile *hostile = test->priv;
	struct ernic_fake *fake = hostile->fake;
	u32 i;

	fake->on_read = hostile_stuck;
	for (i = 0; i < 5; i++)
		ernic_fake_bare_interrupt(fake);
	KUNIT_EXPECT_EQ(test, 0, hostile_poll(hostile));
	hostile_expect_end(test);
}

/* ------------------------------------------------------------------ */
/* Registers                                                           */

/* The device is gone: interrupts are not its own, and all that was posted is flushed. */
static void hostile_gone(struct kunit *test)
{
	struct hostile *hostile = test->priv;
	struct ernic_fake *fake = hostile->fake;
	u32 from;

	fake->gone = true;
	from = fake->written;
	ernic_fake_bare_interrupt(fake);
	KUNIT_EXPECT_EQ(test, from, fake->written);
	KUNIT_EXPECT_EQ(test, 0, hostile_poll(hostile));
	hostile_expect_end(test);
	KUNIT_EXPECT_EQ(test, HOSTILE_SENDS + HOSTILE_RECEIVES, hostile->flushed);
}

static u32 hostile_enabled(struct ernic_fake *fake, u32 offset, u32 value)
{
	return offset == ernic_fake_qp_offset(fake, 2, FAKE_QPCONF) ? value | 1 : value;
}

/* A QP that is disabled and says that it is not. */
static void hostile_not_disabled(struct kunit *test)
{
	struct hostile *hostile = test->priv;

	hostile->fake->on_read = hostile_enabled;
	KUNIT_EXPECT_EQ(test, 0, ernic_fake_modify(hostile->fake, hostile->qp, IB_QPS_ERR));
	hostile_expect_end(test);
}

static u32 hostile_random(struct ernic_fake *fake, u32 offset, u32 value)
{
	return prandom_u32_state(fake->priv);
}

/* Each register reads as another number each time. */
static void hostile_registers(struct kunit *test)
{
	struct hostile *hostile = test->priv;
	struct ernic_fake *fake = hostile->fake;
	struct rnd_state random;
	u32 i;

	prandom_seed_state(&random, 3);
	fake->priv = &random;
	fake->on_read = hostile_random;
	for (i = 0; i < 20; i++) {
		ernic_fake_bare_interrupt(fake);
		hostile_poll(hostile);
	}
	KUNIT_EXPECT_EQ(test, 0, ernic_fake_modify(fake, hostile->qp, IB_QPS_RESET));
	hostile->fake->on_read = NULL;
	KUNIT_EXPECT_EQ(test, 0, hostile->others);
	for (i = 0; i < ARRAY_SIZE(hostile->seen); i++)
		KUNIT_EXPECT_GE(test, 1, hostile->seen[i]);
	/* The QP works again. */
	ernic_fake_connect(test, fake, hostile->qp);
	KUNIT_EXPECT_EQ(test, 1, ernic_fake_qp_get(fake, hostile->qpn, FAKE_QPCONF) & 1);
}

static struct kunit_case hostile_cases[] = {
	KUNIT_CASE_PARAM(hostile_send_index, hostile_index_gen_params),
	KUNIT_CASE_PARAM(hostile_receive_index, hostile_message_gen_params),
	KUNIT_CASE_PARAM(hostile_one_record, hostile_record_gen_params),
	KUNIT_CASE(hostile_all_records),
	KUNIT_CASE(hostile_record_pointer),
	KUNIT_CASE(hostile_changing),
	KUNIT_CASE(hostile_changing_mad),
	KUNIT_CASE_PARAM(hostile_fatal_code, hostile_fatal_gen_params),
	KUNIT_CASE_PARAM(hostile_error_pointer, hostile_pointer_gen_params),
	KUNIT_CASE(hostile_banks),
	KUNIT_CASE(hostile_no_cause),
	KUNIT_CASE(hostile_stuck_cause),
	KUNIT_CASE(hostile_gone),
	KUNIT_CASE(hostile_not_disabled),
	KUNIT_CASE(hostile_registers),
	{}
};

static struct kunit_suite hostile_suite = {
	.name = "hghca_ernic_hostile",
	.init = hostile_init,
	.test_cases = hostile_cases,
};
kunit_test_suite(hostile_suite);
