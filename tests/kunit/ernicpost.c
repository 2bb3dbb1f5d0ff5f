// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of the driver of ERNIC and ETRNIC: work requests and completions.  WQEs are compared
 * with the format of the document (docs/reference/ernic.rst, 3), byte by byte, and the test is the
 * device that completes them, receives messages and makes QPs fatal.
 */
#include <linux/etherdevice.h>
#include <linux/slab.h>
#include <linux/unaligned.h>

#include "ernicfake.h"

#define POST_BYTES	8192
#define POST_WR_ID	0x8899aabb00000000ULL	/* more than WRID has */

struct post {
	struct ernic_fake *fake;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ernic_qp *qp;
	u8 *buffer;
	u32 qpn;
	u32 offset;		/* of the memory of the next send */
	int notified;
	int cq_events;
	int qp_events;
	enum ib_event_type event;
};

static void post_notified(struct ib_cq *cq, void *context)
{
	struct post *post = context;

	post->notified++;
}

static void post_cq_event(struct ib_event *event, void *context)
{
	struct post *post = context;

	post->cq_events++;
	post->event = event->event;
}

static void post_qp_event(struct ib_event *event, void *context)
{
	struct post *post = context;

	post->qp_events++;
	post->event = event->event;
}

static void post_watch_cq(struct post *post, struct ib_cq *cq)
{
	cq->comp_handler = post_notified;
	cq->event_handler = post_cq_event;
	cq->cq_context = post;
}

/* A QP in RTS: 4 sends, 6 receives, 2 parts, and a CQ of @cqes. */
static struct post *post_open(struct kunit *test, bool is_ernic, u32 extensions, u32 cqes)
{
	static const struct ernic_fake_qp attr = { .sends = 4, .receives = 6, .sges = 2 };
	struct post *post = kunit_kzalloc(test, sizeof(*post), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, post);
	post->fake = ernic_fake_create(test, is_ernic, 64, extensions);
	KUNIT_ASSERT_NOT_NULL(test, post->fake);
	KUNIT_ASSERT_EQ(test, 0, ernic_fake_open(post->fake));
	ernic_fake_check(test, post->fake);
	post->buffer = kunit_kzalloc(test, POST_BYTES, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, post->buffer);
	for (i = 0; i < POST_BYTES; i++)
		post->buffer[i] = i * 7 + 1;
	post->pd = ernic_fake_pd(test, post->fake);
	post->cq = ernic_fake_cq(test, post->fake, cqes);
	post_watch_cq(post, post->cq);
	post->qp = ernic_fake_qp(test, post->pd, post->cq, &attr);
	post->qp->ibqp.event_handler = post_qp_event;
	post->qp->ibqp.qp_context = post;
	post->qpn = post->qp->ibqp.qp_num;
	ernic_fake_connect(test, post->fake, post->qp);
	return post;
}

static int post_send(struct post *post, enum ib_wr_opcode opcode, u32 length, int flags, u32 number)
{
	struct ib_sge sge = { .addr = (uintptr_t)post->buffer + post->offset, .length = length };
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_id = POST_WR_ID + number,
			.opcode = opcode,
			.send_flags = flags,
			.sg_list = &sge,
			.num_sge = 1,
		},
		.remote_addr = 0x1122334455667788ULL,
		.rkey = 0xa1b2c3d4,
	};
	const struct ib_send_wr *bad;

	if (opcode == IB_WR_SEND_WITH_INV)
		wr.wr.ex.invalidate_rkey = 0x0f1e2d3c;
	else
		wr.wr.ex.imm_data = cpu_to_be32(0x01020304);
	return ernic_post_send(&post->qp->ibqp, &wr.wr, &bad);
}

static int post_receive(struct post *post, u32 length, u32 number)
{
	struct ib_sge sge = { .addr = (uintptr_t)post->buffer, .length = length };
	struct ib_recv_wr wr = { .wr_id = POST_WR_ID + number, .sg_list = &sge, .num_sge = 1 };
	const struct ib_recv_wr *bad;

	return ernic_post_recv(&post->qp->ibqp, &wr, &bad);
}

/* The next completion. */
static void post_expect(struct kunit *test, struct post *post, u32 number, enum ib_wc_status status)
{
	struct ib_wc wc = {};

	KUNIT_ASSERT_EQ(test, 1, ernic_poll_cq(post->cq, 1, &wc));
	KUNIT_EXPECT_EQ(test, POST_WR_ID + number, wc.wr_id);
	KUNIT_EXPECT_EQ(test, (int)status, (int)wc.status);
	KUNIT_EXPECT_PTR_EQ(test, &post->qp->ibqp, wc.qp);
}

static void post_expect_none(struct kunit *test, struct post *post)
{
	struct ib_wc wc;

	KUNIT_EXPECT_EQ(test, 0, ernic_poll_cq(post->cq, 1, &wc));
}

/* ------------------------------------------------------------------ */
/* WQEs                                                                */

static const struct post_format {
	const char *name;
	enum ib_wr_opcode verb;
	u32 length;
	u8 opcode;
	bool ernic_only;
	bool inlined;		/* in SDATA */
	bool rdma;
	bool imm;
	enum ib_wc_opcode completion;
} post_formats[] = {
	{ "SEND of 1 byte", IB_WR_SEND, 1, 0x02, .inlined = true, .completion = IB_WC_SEND },
	{ "SEND of 16 bytes", IB_WR_SEND, 16, 0x02, .inlined = true, .completion = IB_WC_SEND },
	{ "SEND of 17 bytes", IB_WR_SEND, 17, 0x02, .completion = IB_WC_SEND },
	{ "SEND with immediate data", IB_WR_SEND_WITH_IMM, 16, 0x03, .ernic_only = true,
	  .inlined = true, .imm = true, .completion = IB_WC_SEND },
	{ "SEND with invalidate", IB_WR_SEND_WITH_INV, 100, 0x0c, .ernic_only = true,
	  .completion = IB_WC_SEND },
	{ "WRITE of 1 byte", IB_WR_RDMA_WRITE, 1, 0x00, .rdma = true,
	  .completion = IB_WC_RDMA_WRITE },
	{ "WRITE of 5000 bytes", IB_WR_RDMA_WRITE, 5000, 0x00, .rdma = true,
	  .completion = IB_WC_RDMA_WRITE },
	{ "empty WRITE", IB_WR_RDMA_WRITE, 0, 0x00, .rdma = true,
	  .completion = IB_WC_RDMA_WRITE },
	{ "WRITE with immediate data", IB_WR_RDMA_WRITE_WITH_IMM, 64, 0x01, .ernic_only = true,
	  .rdma = true, .imm = true, .completion = IB_WC_RDMA_WRITE },
	{ "READ", IB_WR_RDMA_READ, 300, 0x04, .rdma = true, .completion = IB_WC_RDMA_READ },
};

KUNIT_ARRAY_PARAM_DESC(post_format, post_formats, name);

static void post_expect_wqe(struct kunit *test, struct post *post, const struct post_format *param)
{
	static const u8 roffset[] = { 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11 };
	static const u8 rkey[] = { 0xd4, 0xc3, 0xb2, 0xa1 };
	static const u8 to_invalidate[] = { 0x3c, 0x2d, 0x1e, 0x0f };
	static const u8 imm[] = { 0x01, 0x02, 0x03, 0x04 };
	u8 expected[64] = {};
	const u8 *wqe = ernic_fake_wqe(post->fake, post->qpn, 0);

	/* WRID is the driver's. */
	memcpy(expected, wqe, 2);
	put_unaligned_le32(param->length, expected + 0x0c);
	expected[0x10] = param->opcode;
	if (param->rdma) {
		memcpy(expected + 0x14, roffset, 8);
		memcpy(expected + 0x1c, rkey, 4);
	}
	if (param->opcode == 0x0c)
		memcpy(expected + 0x1c, to_invalidate, 4);
	if (param->inlined)
		memcpy(expected + 0x20, post->buffer, param->length);
	else if (param->length)
		put_unaligned_le64(virt_to_phys(post->buffer), expected + 0x04);
	if (param->imm)
		memcpy(expected + 0x30, imm, 4);
	KUNIT_EXPECT_MEMEQ(test, expected, wqe, 64);
}

static void post_wqe(struct kunit *test)
{
	const struct post_format *param = test->param_value;
	struct post *post = post_open(test, true, FAKE_RECORDS, 10);
	struct ib_wc wc = {};

	KUNIT_ASSERT_EQ(test, 0, post_send(post, param->verb, param->length, IB_SEND_SIGNALED, 9));
	KUNIT_EXPECT_EQ(test, 1, ernic_fake_qp_get(post->fake, post->qpn, FAKE_SQPI));
	post_expect_wqe(test, post, param);
	post_expect_none(test, post);
	ernic_fake_complete(post->fake, post->qpn, 1, false);
	KUNIT_ASSERT_EQ(test, 1, ernic_poll_cq(post->cq, 1, &wc));
	KUNIT_EXPECT_EQ(test, POST_WR_ID + 9, wc.wr_id);
	KUNIT_EXPECT_EQ(test, (int)IB_WC_SUCCESS, (int)wc.status);
	KUNIT_EXPECT_EQ(test, (int)param->completion, (int)wc.opcode);
	KUNIT_EXPECT_EQ(test, param->length, wc.byte_len);
	post_expect_none(test, post);
}

/* The ETRNIC has SEND, WRITE and READ. */
static void post_etrnic(struct kunit *test)
{
	const struct post_format *param = test->param_value;
	struct post *post = post_open(test, false, FAKE_RECORDS, 10);

	KUNIT_EXPECT_EQ(test, param->ernic_only ? -EOPNOTSUPP : 0,
			post_send(post, param->verb, param->length, 0, 1));
	KUNIT_EXPECT_EQ(test, !param->ernic_only,
			ernic_fake_qp_get(post->fake, post->qpn, FAKE_SQPI));
}

/* Two parts become one range; those of a READ are filled when it completes. */
static void post_parts(struct kunit *test)
{
	struct post *post = post_open(test, true, FAKE_RECORDS, 10);
	struct ib_sge sge[2] = {
		{ .addr = (uintptr_t)post->buffer + 10, .length = 100 },
		{ .addr = (uintptr_t)post->buffer + 1000, .length = 50 },
	};
	struct ib_rdma_wr wr = {
		.wr = { .opcode = IB_WR_RDMA_WRITE, .sg_list = sge, .num_sge = 2,
			.send_flags = IB_SEND_SIGNALED },
	};
	const struct ib_send_wr *bad;
	struct ib_wc wc[2];
	u8 *wqe, *bus;

	KUNIT_ASSERT_EQ(test, 0, ernic_post_send(&post->qp->ibqp, &wr.wr, &bad));
	wqe = ernic_fake_wqe(post->fake, post->qpn, 0);
	KUNIT_EXPECT_EQ(test, 150, get_unaligned_le32(wqe + 0x0c));
	bus = phys_to_virt(get_unaligned_le64(wqe + 4));
	KUNIT_EXPECT_MEMEQ(test, post->buffer + 10, bus, 100);
	KUNIT_EXPECT_MEMEQ(test, post->buffer + 1000, bus + 100, 50);

	wr.wr.opcode = IB_WR_RDMA_READ;
	KUNIT_ASSERT_EQ(test, 0, ernic_post_send(&post->qp->ibqp, &wr.wr, &bad));
	wqe = ernic_fake_wqe(post->fake, post->qpn, 1);
	bus = phys_to_virt(get_unaligned_le64(wqe + 4));
	memset(bus, 0xc5, 150);
	ernic_fake_complete(post->fake, post->qpn, 2, false);
	post->qp->ibqp.qp_context = post;
	KUNIT_EXPECT_EQ(test, 2, ernic_poll_cq(post->cq, 2, wc));
	KUNIT_EXPECT_NULL(test, memchr_inv(post->buffer + 10, 0xc5, 100));
	KUNIT_EXPECT_NULL(test, memchr_inv(post->buffer + 1000, 0xc5, 50));
	KUNIT_EXPECT_NE(test, 0xc5, post->buffer[110]);
	KUNIT_EXPECT_NE(test, 0xc5, post->buffer[1050]);
	wr.wr.num_sge = 3;
	KUNIT_EXPECT_EQ(test, -EINVAL, ernic_post_send(&post->qp->ibqp, &wr.wr, &bad));
	KUNIT_EXPECT_PTR_EQ(test, (const struct ib_send_wr *)&wr.wr, bad);
}

static const struct post_bad {
	const char *name;
	enum ib_wr_opcode verb;
	u32 length;
	int flags;
	int err;
} post_bads[] = {
	{ "empty SEND", IB_WR_SEND, 0, 0, -EINVAL },
	{ "empty SEND with immediate data", IB_WR_SEND_WITH_IMM, 0, 0, -EINVAL },
	{ "SEND of 2^31 + 1 bytes", IB_WR_SEND, 0x80000001, 0, -EINVAL },
	{ "atomic operation", IB_WR_ATOMIC_CMP_AND_SWP, 8, 0, -EOPNOTSUPP },
	{ "registration", IB_WR_REG_MR, 8, 0, -EOPNOTSUPP },
	{ "inline READ", IB_WR_RDMA_READ, 8, IB_SEND_INLINE, -EINVAL },
	{ "inline data of 1025 bytes", IB_WR_SEND, 1025, IB_SEND_INLINE, -EINVAL },
};

KUNIT_ARRAY_PARAM_DESC(post_bad, post_bads, name);

static void post_refused(struct kunit *test)
{
	const struct post_bad *param = test->param_value;
	struct post *post = post_open(test, true, FAKE_RECORDS, 10);

	KUNIT_EXPECT_EQ(test, param->err, post_send(post, param->verb, param->length, param->flags, 1));
	KUNIT_EXPECT_EQ(test, 0, ernic_fake_qp_get(post->fake, post->qpn, FAKE_SQPI));
	post_expect_none(test, post);
}

/* Memory that a send needs is refused: so is the send, and the next one is not. */
static void post_no_memory(struct kunit *test)
{
	struct post *post = post_open(test, true, FAKE_RECORDS, 10);
	u32 number;
	int err = 0;

	for (number = 1; number < 10; number++) {
		post->fake->requests = 0;
		post->fake->refuse = number;
		err = post_send(post, IB_WR_SEND, 1000, IB_SEND_INLINE, 1);
		post->fake->refuse = 0;
		if (!err)
			break;
		KUNIT_EXPECT_EQ(test, -ENOMEM, err);
	}
	/* A buffer, and its address. */
	KUNIT_EXPECT_EQ(test, 3, number);
	KUNIT_EXPECT_EQ(test, 1, ernic_fake_qp_get(post->fake, post->qpn, FAKE_SQPI));
}

/* ------------------------------------------------------------------ */
/* Indices                                                             */

/* An index goes from 1 to the depth and to 1 again; the queue takes what it was made for. */
static void post_wraps(struct kunit *test)
{
	struct post *post = post_open(test, true, FAKE_RECORDS, 10);
	u32 depth = ernic_fake_qp_get(post->fake, post->qpn, FAKE_QDEPTH) & 0xffff;
	u32 i, done = 0;

	for (i = 0; i < 40; i++) {
		KUNIT_ASSERT_EQ(test, 0, post_send(post, IB_WR_SEND, 8, IB_SEND_SIGNALED, i));
		KUNIT_EXPECT_EQ(test, i % depth + 1,
				ernic_fake_qp_get(post->fake, post->qpn, FAKE_SQPI));
		if (i % 4 != 3)
			continue;
		KUNIT_EXPECT_EQ(test, -ENOMEM, post_send(post, IB_WR_SEND, 8, 0, 99));
		ernic_fake_complete(post->fake, post->qpn, i % depth + 1, false);
		for (; done <= i; done++)
			post_expect(test, post, done, IB_WC_SUCCESS);
		post_expect_none(test, post);
	}
}

/* Only sends that are signaled complete for the user; all of them free their place. */
static void post_signaled(struct kunit *test)
{
	struct post *post = post_open(test, true, FAKE_RECORDS, 10);

	KUNIT_ASSERT_EQ(test, 0, post_send(post, IB_WR_SEND, 8, 0, 0));
	KUNIT_ASSERT_EQ(test, 0, post_send(post, IB_WR_SEND, 8, IB_SEND_SIGNALED, 1));
	KUNIT_ASSERT_EQ(test, 0, post_send(post, IB_WR_SEND, 8, 0, 2));
	KUNIT_ASSERT_EQ(test, 0, post_send(post, IB_WR_SEND, 8, 0, 3));
	ernic_fake_complete(post->fake, post->qpn, 4, false);
	post_expect(test, post, 1, IB_WC_SUCCESS);
	post_expect_none(test, post);
	KUNIT_EXPECT_EQ(test, 0, post_send(post, IB_WR_SEND, 8, 0, 4));
}

static void post_all_signaled(struct kunit *test)
{
	static const struct ernic_fake_qp attr = { .sends = 4, .receives = 1, .sges = 1,
						   .signal_all = true };
	struct post *post = post_open(test, true, FAKE_RECORDS, 10);

	post->qp = ernic_fake_qp(test, post->pd, post->cq, &attr);
	post->qpn = post->qp->ibqp.qp_num;
	ernic_fake_connect(test, post->fake, post->qp);
	KUNIT_ASSERT_EQ(test, 0, post_send(post, IB_WR_SEND, 8, 0, 5));
	ernic_fake_complete(post->fake, post->qpn, 1, false);
	post_expect(test, post, 5, IB_WC_SUCCESS);
}

/* The peer takes 2 READs at a time, and a fence waits for READs: the hardware knows neither. */
static void post_held_back(struct kunit *test)
{
	struct post *post = post_open(test, true, FAKE_RECORDS, 10);
	struct ernic_fake *fake = post->fake;
	u32 i;

	for (i = 0; i < 3; i++) {
		/* READs fill memory of their own. */
		post->offset = 512 * i;
		KUNIT_ASSERT_EQ(test, 0, post_send(post, IB_WR_RDMA_READ, 8, IB_SEND_SIGNALED, i));
	}
	KUNIT_ASSERT_EQ(test, 0, post_send(post, IB_WR_SEND, 8, IB_SEND_SIGNALED | IB_SEND_FENCE, 3));
	KUNIT_EXPECT_EQ(test, 2, ernic_fake_qp_get(fake, post->qpn, FAKE_SQPI));
	ernic_fake_complete(fake, post->qpn, 1, false);
	post_expect(test, post, 0, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 3, ernic_fake_qp_get(fake, post->qpn, FAKE_SQPI));
	ernic_fake_complete(fake, post->qpn, 2, false);
	post_expect(test, post, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 3, ernic_fake_qp_get(fake, post->qpn, FAKE_SQPI));
	/* By the interrupt, too. */
	ernic_fake_complete(fake, post->qpn, 3, false);
	KUNIT_EXPECT_TRUE(test, ernic_fake_interrupt(fake));
	KUNIT_EXPECT_EQ(test, 4, ernic_fake_qp_get(fake, post->qpn, FAKE_SQPI));
	post_expect(test, post, 2, IB_WC_SUCCESS);
}

/* ------------------------------------------------------------------ */
/* Completion queues                                                    */

/* A CQ of two QPs that is no power of two: each completion comes once, also where indices wrap. */
static void post_shared_cq(struct kunit *test)
{
	static const struct ernic_fake_qp attr = { .sends = 4, .receives = 1, .sges = 1 };
	struct post *post = post_open(test, true, FAKE_RECORDS, 7);
	struct ernic_qp *qps[2] = { post->qp };
	struct ernic_cq *cq = to_ecq(post->cq);
	u32 round, i, k;

	qps[1] = ernic_fake_qp(test, post->pd, post->cq, &attr);
	ernic_fake_connect(test, post->fake, qps[1]);
	cq->head = U32_MAX - 8;
	cq->tail = cq->head;
	for (round = 0; round < 6; round++) {
		struct ib_wc wc[8] = {};
		u32 seen[2] = {};

		for (k = 0; k < 2; k++) {
			post->qp = qps[k];
			for (i = 0; i < 3; i++)
				KUNIT_ASSERT_EQ(test, 0, post_send(post, IB_WR_SEND, 8, IB_SEND_SIGNALED,
								   100 * k + i));
			ernic_fake_complete(post->fake, qps[k]->ibqp.qp_num,
					    (round * 3 + 2) % 8 + 1, false);
		}
		KUNIT_ASSERT_EQ(test, 6, ernic_poll_cq(post->cq, 8, wc));
		for (i = 0; i < 6; i++) {
			k = wc[i].qp == &qps[1]->ibqp;
			KUNIT_EXPECT_EQ(test, POST_WR_ID + 100 * k + seen[k], wc[i].wr_id);
			seen[k]++;
		}
		post_expect_none(test, post);
	}
	KUNIT_EXPECT_EQ(test, 0, post->cq_events);
}

/* A CQ of 2 entries with 4 completions: 2 are lost, which is told once. */
static void post_overrun(struct kunit *test)
{
	struct post *post = post_open(test, true, FAKE_RECORDS, 2);
	u32 i;

	for (i = 0; i < 4; i++)
		KUNIT_ASSERT_EQ(test, 0, post_send(post, IB_WR_SEND, 8, IB_SEND_SIGNALED, i));
	ernic_fake_complete(post->fake, post->qpn, 4, false);
	post_expect(test, post, 0, IB_WC_SUCCESS);
	post_expect(test, post, 1, IB_WC_SUCCESS);
	post_expect_none(test, post);
	flush_workqueue(post->fake->edev->wq);
	KUNIT_EXPECT_EQ(test, 1, post->cq_events);
	KUNIT_EXPECT_EQ(test, (int)IB_EVENT_CQ_ERR, (int)post->event);
}

/* An event for the next completion, for the next solicited one, and none that is not asked for. */
static void post_notifies(struct kunit *test)
{
	struct post *post = post_open(test, true, FAKE_RECORDS, 10);
	struct ernic_fake_message message = { .data = "abc", .bytes = 3, .opcode = 0x04 };
	u32 i;

	for (i = 0; i < 4; i++)
		KUNIT_ASSERT_EQ(test, 0, post_receive(post, 8, i));
	ernic_fake_receive(post->fake, post->qpn, &message);
	KUNIT_EXPECT_TRUE(test, ernic_fake_interrupt(post->fake));
	KUNIT_EXPECT_EQ(test, 0, post->notified);
	KUNIT_EXPECT_EQ(test, 1, ernic_req_notify_cq(post->cq, IB_CQ_NEXT_COMP |
						     IB_CQ_REPORT_MISSED_EVENTS));
	ernic_fake_receive(post->fake, post->qpn, &message);
	KUNIT_EXPECT_TRUE(test, ernic_fake_interrupt(post->fake));
	KUNIT_EXPECT_EQ(test, 1, post->notified);
	KUNIT_EXPECT_EQ(test, 0, ernic_req_notify_cq(post->cq, IB_CQ_SOLICITED));
	ernic_fake_receive(post->fake, post->qpn, &message);
	KUNIT_EXPECT_TRUE(test, ernic_fake_interrupt(post->fake));
	KUNIT_EXPECT_EQ(test, 1, post->notified);
	message.flags = 1;
	ernic_fake_receive(post->fake, post->qpn, &message);
	KUNIT_EXPECT_TRUE(test, ernic_fake_interrupt(post->fake));
	KUNIT_EXPECT_EQ(test, 2, post->notified);
	for (i = 0; i < 4; i++)
		post_expect(test, post, i, IB_WC_SUCCESS);
}

/* ------------------------------------------------------------------ */
/* Failures                                                            */

static const struct post_fatal {
	const char *name;
	u16 code;		/* of the queue of fatal errors; 0: none */
	u8 syndrome;		/* of STATQP 22:16 */
	enum ib_wc_status status;
} post_fatals[] = {
	{ "RETRIES", 0x06, 0, IB_WC_RETRY_EXC_ERR },
	{ "RNR_RETRIES", 0x0d, 0, IB_WC_RNR_RETRY_EXC_ERR },
	{ "NAK, invalid request", 0x0a, 0x61, IB_WC_REM_INV_REQ_ERR },
	{ "NAK, remote access error", 0x0a, 0x62, IB_WC_REM_ACCESS_ERR },
	{ "NAK, remote operational error", 0x0a, 0x63, IB_WC_REM_OP_ERR },
	{ "NAK, a code that does not exist", 0x0a, 0x7f, IB_WC_REM_OP_ERR },
	{ "ACK_OPCODE", 0x0c, 0, IB_WC_BAD_RESP_ERR },
	{ "READ_SYNDROME", 0x19, 0, IB_WC_BAD_RESP_ERR },
	{ "READ_LENGTH", 0x1a, 0, IB_WC_BAD_RESP_ERR },
	{ "READ_OPCODE", 0x1c, 0, IB_WC_BAD_RESP_ERR },
	{ "all of a READ response", 0x1f, 0, IB_WC_BAD_RESP_ERR },
	{ "MEMORY", 0x21, 0, IB_WC_LOC_PROT_ERR },
	{ "an illegal WQE", 0, 0, IB_WC_LOC_QP_OP_ERR },
};

KUNIT_ARRAY_PARAM_DESC(post_fatal, post_fatals, name);

/* The second of three sends fails: the third is flushed, and so is what is posted then. */
static void post_fails(struct kunit *test)
{
	const struct post_fatal *param = test->param_value;
	struct post *post = post_open(test, true, FAKE_RECORDS, 20);
	struct ernic_fake *fake = post->fake;
	u32 i;

	KUNIT_ASSERT_EQ(test, 0, post_receive(post, 8, 50));
	for (i = 0; i < 3; i++)
		KUNIT_ASSERT_EQ(test, 0, post_send(post, IB_WR_SEND, 100, i == 1 ? 0 : IB_SEND_SIGNALED, i));
	ernic_fake_qp_set(fake, post->qpn, FAKE_STATQP, 0x600 | !!param->code | param->syndrome << 16);
	ernic_fake_complete(fake, post->qpn, 2, true);
	if (param->code)
		ernic_fake_fatal(fake, post->qpn, param->code);
	KUNIT_EXPECT_TRUE(test, ernic_fake_interrupt(fake));
	flush_workqueue(fake->edev->wq);
	post_expect(test, post, 0, IB_WC_SUCCESS);
	/* It was not signaled. */
	post_expect(test, post, 1, param->status);
	post_expect(test, post, 2, IB_WC_WR_FLUSH_ERR);
	post_expect(test, post, 50, IB_WC_WR_FLUSH_ERR);
	post_expect_none(test, post);
	KUNIT_EXPECT_EQ(test, 0, ernic_fake_qp_get(fake, post->qpn, FAKE_QPCONF) & 1);
	KUNIT_EXPECT_EQ(test, 0, post_send(post, IB_WR_SEND, 8, 0, 60));
	KUNIT_EXPECT_EQ(test, 0, post_receive(post, 8, 61));
	post_expect(test, post, 60, IB_WC_WR_FLUSH_ERR);
	post_expect(test, post, 61, IB_WC_WR_FLUSH_ERR);
	post_expect_none(test, post);
}

static const struct post_event {
	const char *name;
	u16 code;
	enum ib_event_type event;
} post_events[] = {
	{ "SEQUENCE", 0x01, IB_EVENT_QP_REQ_ERR },
	{ "LENGTH", 0x02, IB_EVENT_QP_REQ_ERR },
	{ "SEQUENCE_LENGTH", 0x03, IB_EVENT_QP_REQ_ERR },
	{ "OPCODE", 0x04, IB_EVENT_QP_REQ_ERR },
	{ "ACCESS", 0x20, IB_EVENT_QP_ACCESS_ERR },
	{ "MEMORY", 0x21, IB_EVENT_QP_FATAL },
};

KUNIT_ARRAY_PARAM_DESC(post_event, post_events, name);

/* What the peer did wrong has no completion, but an event. */
static void post_peer_fails(struct kunit *test)
{
	const struct post_event *param = test->param_value;
	struct post *post = post_open(test, true, FAKE_RECORDS, 20);

	KUNIT_ASSERT_EQ(test, 0, post_receive(post, 8, 1));
	ernic_fake_fatal(post->fake, post->qpn, param->code);
	KUNIT_EXPECT_TRUE(test, ernic_fake_interrupt(post->fake));
	flush_workqueue(post->fake->edev->wq);
	KUNIT_EXPECT_EQ(test, 1, post->qp_events);
	KUNIT_EXPECT_EQ(test, (int)param->event, (int)post->event);
	post_expect(test, post, 1, IB_WC_WR_FLUSH_ERR);
	post_expect_none(test, post);
}

/* ------------------------------------------------------------------ */
/* Receives                                                            */

static const struct post_message {
	const char *name;
	u8 opcode;		/* IBA 9.2.1 */
	u8 flags;
	u32 bytes;
	enum ib_wc_opcode completion;
	bool imm;
	bool data;
} post_messages[] = {
	{ "SEND of 1 byte", 0x04, 0, 1, IB_WC_RECV, .data = true },
	{ "SEND of 4096 bytes in packets", 0x02, 0, 4096, IB_WC_RECV, .data = true },
	{ "SEND with immediate data", 0x05, 1, 8, IB_WC_RECV, .imm = true, .data = true },
	{ "SEND with immediate data in packets", 0x03, 0, 2000, IB_WC_RECV, .imm = true, .data = true },
	{ "WRITE with immediate data", 0x0b, 0, 100, IB_WC_RECV_RDMA_WITH_IMM, .imm = true },
	{ "WRITE with immediate data in packets", 0x09, 0, 100000, IB_WC_RECV_RDMA_WITH_IMM,
	  .imm = true },
};

KUNIT_ARRAY_PARAM_DESC(post_message, post_messages, name);

static void post_received(struct kunit *test)
{
	const struct post_message *param = test->param_value;
	struct post *post = post_open(test, true, FAKE_RECORDS, 20);
	struct ernic_fake_message message = {
		.bytes = param->bytes,
		.opcode = param->opcode,
		.flags = param->flags,
		.imm = cpu_to_be32(0x0a0b0c0d),
	};
	u8 *data = kunit_kzalloc(test, 4096, GFP_KERNEL);
	struct ib_wc wc = {};

	KUNIT_ASSERT_NOT_NULL(test, data);
	memset(data, 0x3c, 4096);
	if (param->data)
		message.data = data;
	KUNIT_ASSERT_EQ(test, 0, post_receive(post, 4096, 77));
	ernic_fake_receive(post->fake, post->qpn, &message);
	KUNIT_ASSERT_EQ(test, 1, ernic_poll_cq(post->cq, 1, &wc));
	KUNIT_EXPECT_EQ(test, POST_WR_ID + 77, wc.wr_id);
	KUNIT_EXPECT_EQ(test, (int)IB_WC_SUCCESS, (int)wc.status);
	KUNIT_EXPECT_EQ(test, (int)param->completion, (int)wc.opcode);
	KUNIT_EXPECT_EQ(test, param->bytes, wc.byte_len);
	KUNIT_EXPECT_EQ(test, param->imm ? IB_WC_WITH_IMM : 0, wc.wc_flags);
	if (param->imm)
		KUNIT_EXPECT_EQ(test, 0x0a0b0c0d, be32_to_cpu(wc.ex.imm_data));
	if (param->data) {
		KUNIT_EXPECT_NULL(test, memchr_inv(post->buffer, 0x3c, param->bytes));
		KUNIT_EXPECT_NE(test, 0x3c, post->buffer[param->bytes]);
	} else {
		KUNIT_EXPECT_EQ(test, 1, post->buffer[0]);
	}
	post_expect_none(test, post);
}

/* Slots are used in turn, some rounds of them. */
static void post_receive_wraps(struct kunit *test)
{
	struct post *post = post_open(test, true, FAKE_RECORDS, 20);
	u32 i, k;

	for (i = 0; i < 21; i += 3) {
		for (k = i; k < i + 3; k++)
			KUNIT_ASSERT_EQ(test, 0, post_receive(post, 16, k));
		for (k = i; k < i + 3; k++) {
			u8 data[3] = { k, k, k };
			struct ernic_fake_message message = { .data = data, .bytes = k % 3 + 1, .opcode = 0x04 };

			ernic_fake_receive(post->fake, post->qpn, &message);
		}
		for (k = i; k < i + 3; k++) {
			struct ib_wc wc = {};

			KUNIT_ASSERT_EQ(test, 1, ernic_poll_cq(post->cq, 1, &wc));
			KUNIT_EXPECT_EQ(test, POST_WR_ID + k, wc.wr_id);
			KUNIT_EXPECT_EQ(test, k % 3 + 1, wc.byte_len);
		}
		KUNIT_EXPECT_EQ(test, i + 2, post->buffer[0]);
	}
}

/* Without records, the length is that of the slot. */
static void post_no_records(struct kunit *test)
{
	struct post *post = post_open(test, true, 0, 20);
	struct ernic_fake_message message = { .data = "abc", .bytes = 3, .opcode = 0x04 };
	struct ib_wc wc = {};

	KUNIT_ASSERT_EQ(test, 0, post_receive(post, POST_BYTES, 1));
	KUNIT_ASSERT_EQ(test, 0, post_receive(post, 100, 2));
	ernic_fake_receive(post->fake, post->qpn, &message);
	ernic_fake_receive(post->fake, post->qpn, &message);
	KUNIT_ASSERT_EQ(test, 1, ernic_poll_cq(post->cq, 1, &wc));
	KUNIT_EXPECT_EQ(test, 4096, wc.byte_len);
	KUNIT_ASSERT_EQ(test, 1, ernic_poll_cq(post->cq, 1, &wc));
	KUNIT_EXPECT_EQ(test, 100, wc.byte_len);
	KUNIT_EXPECT_MEMEQ(test, "abc", post->buffer, 3);
}

/* Without records, the device tells of immediate data in entries of their own. */
static const struct post_immdt {
	u8 opcode;
	enum ib_wc_opcode completion;
	int flags;
	u32 bytes;
} post_immdts[] = {
	{ 0x04, IB_WC_RECV, 0, 100 },
	{ 0x05, IB_WC_RECV, IB_WC_WITH_IMM, 100 },
	{ 0x02, IB_WC_RECV, 0, 100 },
	{ 0x0b, IB_WC_RECV_RDMA_WITH_IMM, IB_WC_WITH_IMM, 0 },
	{ 0x09, IB_WC_RECV_RDMA_WITH_IMM, IB_WC_WITH_IMM, 0 },
	{ 0x03, IB_WC_RECV, IB_WC_WITH_IMM, 100 },
	{ 0x04, IB_WC_RECV, 0, 100 },
};

static void post_entries(struct kunit *test)
{
	struct post *post = post_open(test, true, 0, 20);
	u32 i;

	/* Several rounds of the slots: what one message had, the next one in its slot has not. */
	for (i = 0; i < 70; i++) {
		const struct post_immdt *row = &post_immdts[i % ARRAY_SIZE(post_immdts)];
		struct ernic_fake_message message = {
			.data = row->bytes ? "abc" : NULL,
			.bytes = 3,
			.opcode = row->opcode,
			.imm = cpu_to_be32(0x0a0b0c00 + i),
		};
		struct ib_wc wc = {};

		KUNIT_ASSERT_EQ(test, 0, post_receive(post, 100, i));
		ernic_fake_receive(post->fake, post->qpn, &message);
		KUNIT_ASSERT_EQ(test, 1, ernic_poll_cq(post->cq, 1, &wc));
		KUNIT_EXPECT_EQ(test, (int)IB_WC_SUCCESS, (int)wc.status);
		KUNIT_EXPECT_EQ(test, (int)row->completion, (int)wc.opcode);
		KUNIT_EXPECT_EQ(test, row->flags, wc.wc_flags);
		KUNIT_EXPECT_EQ(test, row->bytes, wc.byte_len);
		if (row->flags)
			KUNIT_EXPECT_EQ(test, 0x0a0b0c00 + i, be32_to_cpu(wc.ex.imm_data));
	}
}

/* Messages that are not polled before the QP is reset leave nothing to those after it. */
static void post_entries_end(struct kunit *test)
{
	struct post *post = post_open(test, true, 0, 20);
	struct ernic_fake_message with = { .data = "abc", .bytes = 3, .opcode = 0x05, .imm = 1 };
	struct ernic_fake_message without = { .data = "abc", .bytes = 3, .opcode = 0x04 };
	struct ib_wc wc = {};
	u32 i;

	for (i = 0; i < 3; i++) {
		KUNIT_ASSERT_EQ(test, 0, post_receive(post, 100, i));
		ernic_fake_write_immdt(post->fake, post->qpn, i + 1, &with);
	}
	KUNIT_ASSERT_EQ(test, 0, ernic_fake_modify(post->fake, post->qp, IB_QPS_RESET));
	ernic_fake_connect(test, post->fake, post->qp);
	for (i = 0; i < 3; i++) {
		KUNIT_ASSERT_EQ(test, 0, post_receive(post, 100, i));
		ernic_fake_receive(post->fake, post->qpn, &without);
		KUNIT_ASSERT_EQ(test, 1, ernic_poll_cq(post->cq, 1, &wc));
		KUNIT_EXPECT_EQ(test, 0, wc.wc_flags);
	}
}

static const struct post_bad_entry {
	const char *name;
	u32 qpn;		/* 0: that of the test */
	u32 index;
	u8 type;
	u32 pointer;		/* 0: as it is */
	enum ib_wc_status status;
} post_bad_entries[] = {
	{ "QP 1", 1, 1, 0x05 },
	{ "a QP that does not exist", 200, 1, 0x05 },
	{ "index 0", 0, 0, 0x05 },
	{ "an index above the depth", 0, 200, 0x05 },
	{ "index ffffh", 0, 0xffff, 0x05 },
	{ "a pointer behind the ring", 0, 1, 0x05, 32768 },
	{ "a pointer of ones", 0, 1, 0x05, 0xffff },
	{ "type ffh", 0, 1, 0xff, 0, IB_WC_LOC_QP_OP_ERR },
	{ "an R_Key that does not exist", 0, 1, 0x17, 0, IB_WC_LOC_ACCESS_ERR },
};

KUNIT_ARRAY_PARAM_DESC(post_bad_entry, post_bad_entries, name);

/* The message completes as a plain SEND, or fails. */
static void post_entries_bad(struct kunit *test)
{
	const struct post_bad_entry *param = test->param_value;
	struct post *post = post_open(test, true, 0, 20);
	struct ernic_fake_message entry = { .opcode = param->type, .imm = (__force __be32)~0 };
	struct ernic_fake_message message = { .data = "abc", .bytes = 3, .opcode = 0x04 };
	struct ib_wc wc = {};

	KUNIT_ASSERT_EQ(test, 0, post_receive(post, 100, 1));
	ernic_fake_write_immdt(post->fake, param->qpn ? param->qpn : post->qpn, param->index, &entry);
	if (param->pointer)
		ernic_fake_set(post->fake, FAKE_RECORDWPTR, param->pointer);
	ernic_fake_receive(post->fake, post->qpn, &message);
	KUNIT_ASSERT_EQ(test, 1, ernic_poll_cq(post->cq, 1, &wc));
	KUNIT_EXPECT_EQ(test, (int)param->status, (int)wc.status);
	KUNIT_EXPECT_EQ(test, (int)IB_WC_RECV, (int)wc.opcode);
	if (param->status == IB_WC_SUCCESS)
		KUNIT_EXPECT_EQ(test, 0, wc.wc_flags);
}

/* A receive that is too small fails, and the QP with it. */
static void post_too_long(struct kunit *test)
{
	struct post *post = post_open(test, true, FAKE_RECORDS, 20);
	struct ernic_fake_message message = { .data = "abcd", .bytes = 4, .opcode = 0x04 };

	KUNIT_ASSERT_EQ(test, 0, post_receive(post, 3, 1));
	KUNIT_ASSERT_EQ(test, 0, post_receive(post, 4, 2));
	ernic_fake_receive(post->fake, post->qpn, &message);
	post_expect(test, post, 1, IB_WC_LOC_LEN_ERR);
	KUNIT_EXPECT_EQ(test, 1, post->buffer[0]);
	flush_workqueue(post->fake->edev->wq);
	post_expect(test, post, 2, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, 0, ernic_fake_qp_get(post->fake, post->qpn, FAKE_QPCONF) & 1);
}

/* ------------------------------------------------------------------ */
/* QP 1                                                                */

/* An IPv4 frame with a MAD of 24 bytes: IBA A17.3. */
static void post_write_mad(u8 *frame, u16 udp_bytes)
{
	static const u8 headers[] = {
		0x52, 0x54, 0x00, 0xab, 0xcd, 0xef, 0x02, 0x11, 0x22, 0x33, 0x44, 0x55, 0x08, 0x00,
		0x45, 0x00, 0x00, 0x50, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0x00, 0x00,
		10, 1, 2, 3, 192, 168, 0, 1,
		0xc0, 0x01, 0x12, 0xb7, 0x00, 0x00, 0x00, 0x00,
		0x64, 0x00, 0xff, 0xff, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x07,
		0x80, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01,
	};

	memcpy(frame, headers, sizeof(headers));
	put_unaligned_be16(udp_bytes, frame + 38);
	memset(frame + sizeof(headers), 0x4d, 24);
}

static void post_mad(struct kunit *test)
{
	static const struct ernic_fake_qp attr = { .sends = 2, .receives = 4, .sges = 1, .gsi = true };
	struct post *post = post_open(test, true, FAKE_RECORDS, 20);
	struct ernic_fake_message message = { .bytes = 86 };
	struct ernic_fake *fake = post->fake;
	struct ib_wc wc = {};
	u8 frame[86];

	post->qp = ernic_fake_qp(test, post->pd, post->cq, &attr);
	ernic_fake_connect(test, fake, post->qp);
	/* Slots of 512 bytes; no path MTU. */
	KUNIT_EXPECT_EQ(test, 0x0002003d, ernic_fake_qp_get(fake, 1, FAKE_QPCONF));
	KUNIT_ASSERT_EQ(test, 0, post_receive(post, 296, 1));
	KUNIT_ASSERT_EQ(test, 0, post_receive(post, 296, 2));
	/* UDP, BTH, DETH, MAD, ICRC. */
	post_write_mad(frame, 8 + 20 + 24 + 4);
	message.data = frame;
	ernic_fake_receive(fake, 1, &message);
	KUNIT_ASSERT_EQ(test, 1, ernic_poll_cq(post->cq, 1, &wc));
	KUNIT_EXPECT_EQ(test, (int)IB_WC_SUCCESS, (int)wc.status);
	KUNIT_EXPECT_EQ(test, 40 + 24, wc.byte_len);
	KUNIT_EXPECT_EQ(test, 1, wc.src_qp);
	KUNIT_EXPECT_TRUE(test, wc.wc_flags & IB_WC_GRH);
	KUNIT_EXPECT_MEMEQ(test, frame + 14, post->buffer + 20, 20);
	KUNIT_EXPECT_NULL(test, memchr_inv(post->buffer + 40, 0x4d, 24));
	/* Another Q_Key, invalid lengths: no completion, and the receive is still there. */
	frame[57] ^= 1;
	ernic_fake_receive(fake, 1, &message);
	post_expect_none(test, post);
	post_write_mad(frame, 0xffff);
	ernic_fake_receive(fake, 1, &message);
	post_expect_none(test, post);
	post_write_mad(frame, 8 + 20 + 4);
	ernic_fake_receive(fake, 1, &message);
	post_expect_none(test, post);
	post_write_mad(frame, 8 + 20 + 24 + 4);
	ernic_fake_receive(fake, 1, &message);
	post_expect(test, post, 2, IB_WC_SUCCESS);
	post_expect_none(test, post);
}

static struct kunit_case post_cases[] = {
	KUNIT_CASE_PARAM(post_wqe, post_format_gen_params),
	KUNIT_CASE_PARAM(post_etrnic, post_format_gen_params),
	KUNIT_CASE(post_parts),
	KUNIT_CASE_PARAM(post_refused, post_bad_gen_params),
	KUNIT_CASE(post_no_memory),
	KUNIT_CASE(post_wraps),
	KUNIT_CASE(post_signaled),
	KUNIT_CASE(post_all_signaled),
	KUNIT_CASE(post_held_back),
	KUNIT_CASE(post_shared_cq),
	KUNIT_CASE(post_overrun),
	KUNIT_CASE(post_notifies),
	KUNIT_CASE_PARAM(post_fails, post_fatal_gen_params),
	KUNIT_CASE_PARAM(post_peer_fails, post_event_gen_params),
	KUNIT_CASE_PARAM(post_received, post_message_gen_params),
	KUNIT_CASE(post_receive_wraps),
	KUNIT_CASE(post_no_records),
	KUNIT_CASE(post_entries),
	KUNIT_CASE(post_entries_end),
	KUNIT_CASE_PARAM(post_entries_bad, post_bad_entry_gen_params),
	KUNIT_CASE(post_too_long),
	KUNIT_CASE(post_mad),
	{}
};

static struct kunit_suite post_suite = {
	.name = "hghca_ernic_posting",
	.test_cases = post_cases,
};
kunit_test_suite(post_suite);
