// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of the driver of ERNIC and ETRNIC: QPs, from their creation to their end, and what
 * the registers have then (docs/reference/ernic.rst, 2.2 and 3).  The values are written out of
 * the table of registers.
 */
#include <linux/slab.h>

#include "ernicfake.h"

static int qp_open(struct kunit *test, bool is_ernic, u32 num_qps, u32 extensions)
{
	struct ernic_fake *fake = ernic_fake_create(test, is_ernic, num_qps, extensions);
	int err;

	if (!fake)
		return -ENOMEM;
	err = ernic_fake_open(fake);
	if (err)
		return err;
	ernic_fake_check(test, fake);
	test->priv = fake;
	return 0;
}

/* ------------------------------------------------------------------ */
/* Registers of a QP that works                                         */

static const struct qp_path {
	const char *name;
	bool is_ernic;
	bool ipv6;
	u32 conf;
} qp_paths[] = {
	/* Enabled, both interrupts, no handshake, CQEs, path MTU 1024, slots of 16 * 256 bytes. */
	{ "ERNIC, IPv4", true, false, 0x0010023d },
	{ "ERNIC, IPv6", true, true, 0x001002bd },
	{ "ETRNIC, IPv4", false, false, 0x0010023d },
	{ "ETRNIC, IPv6", false, true, 0x001002bd },
};

KUNIT_ARRAY_PARAM_DESC(qp_path, qp_paths, name);

static const struct ernic_fake_qp qp_attr = { .sends = 4, .receives = 6, .sges = 2 };

/* What earlier users have left is overwritten. */
static void qp_leave_behind(struct ernic_fake *fake, u32 qpn)
{
	u32 offset;

	for (offset = 0; offset < 0x100; offset += 4)
		if (offset != FAKE_QPCONF && offset != FAKE_STATQP)
			ernic_fake_qp_set(fake, qpn, offset, 5);
}

static void qp_expect_address(struct kunit *test, struct ernic_fake *fake, bool ipv6)
{
	static const u32 addresses[4] = { 0x0b0c0d0e, 0x0708090a, 0x03040506, 0xfe800102 };
	u32 i;

	KUNIT_EXPECT_EQ(test, 0x22334455, ernic_fake_qp_get(fake, 2, FAKE_MACDESADDLSB));
	KUNIT_EXPECT_EQ(test, 0x00000211, ernic_fake_qp_get(fake, 2, FAKE_MACDESADDMSB));
	for (i = 0; ipv6 && i < ARRAY_SIZE(addresses); i++)
		KUNIT_EXPECT_EQ(test, addresses[i],
				ernic_fake_qp_get(fake, 2, FAKE_IPDESADDR1 + 4 * i));
	if (!ipv6)
		KUNIT_EXPECT_EQ(test, 0x0a010203, ernic_fake_qp_get(fake, 2, FAKE_IPDESADDR1));
}

/* Bases have the alignment that the table says, and the memory is the queue's. */
static void qp_expect_queues(struct kunit *test, struct ernic_fake *fake, struct ernic_qp *qp)
{
	KUNIT_EXPECT_EQ(test, 0, ernic_fake_qp_get(fake, 2, FAKE_RQBA) % 256);
	KUNIT_EXPECT_EQ(test, 0, ernic_fake_qp_get(fake, 2, FAKE_SQBA) % 32);
	KUNIT_EXPECT_EQ(test, 0, ernic_fake_qp_get(fake, 2, FAKE_CQBA) % 32);
	KUNIT_EXPECT_PTR_EQ(test, qp->sq.wqes.cpu, ernic_fake_wqe(fake, 2, 0));
	KUNIT_EXPECT_PTR_EQ(test, (void *)qp->rq.slots.cpu, (void *)ernic_fake_slot(fake, 2, 0));
	KUNIT_EXPECT_EQ(test, 0, *ernic_fake_cq_door(fake, 2));
	KUNIT_EXPECT_EQ(test, 0, *ernic_fake_rq_door(fake, 2));
	/* A ring holds one entry less than its depth: 4 sends and 6 receives. */
	KUNIT_EXPECT_LE(test, 5, ernic_fake_qp_get(fake, 2, FAKE_QDEPTH) & 0xffff);
	KUNIT_EXPECT_LE(test, 7, ernic_fake_qp_get(fake, 2, FAKE_QDEPTH) >> 16);
	/* CQEs follow the WQEs: they do not overlap. */
	KUNIT_EXPECT_LE(test, 64 * (ernic_fake_qp_get(fake, 2, FAKE_QDEPTH) & 0xffff),
			(void *)ernic_fake_cqe(fake, 2, 0) - ernic_fake_wqe(fake, 2, 0));
}

static void qp_registers(struct kunit *test)
{
	const struct qp_path *param = test->param_value;
	struct ernic_fake *fake;
	struct ib_qp_attr attr;
	struct ernic_qp *qp;
	struct ib_pd *pd;
	u32 from;
	int last, i;

	KUNIT_ASSERT_EQ(test, 0, qp_open(test, param->is_ernic, 128, FAKE_RECORDS));
	fake = test->priv;
	pd = ernic_fake_pd(test, fake);
	qp = ernic_fake_qp(test, pd, ernic_fake_cq(test, fake, 10), &qp_attr);
	KUNIT_ASSERT_EQ(test, 2, qp->ibqp.qp_num);
	qp_leave_behind(fake, 2);
	KUNIT_ASSERT_EQ(test, 0, ernic_fake_modify(fake, qp, IB_QPS_INIT));
	KUNIT_EXPECT_EQ(test, 0, ernic_fake_qp_get(fake, 2, FAKE_QPCONF));
	ernic_fake_attr(fake, &attr, param->ipv6);
	attr.qp_state = IB_QPS_RTR;
	from = fake->written;
	KUNIT_ASSERT_EQ(test, 0, ernic_modify_qp(&qp->ibqp, &attr, IB_QP_STATE | IB_QP_AV |
						 IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
						 IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER, NULL));
	/* It is enabled when all else is there. */
	last = ernic_fake_find_write(fake, from, ernic_fake_qp_offset(fake, 2, FAKE_QPCONF),
				     param->conf);
	KUNIT_EXPECT_EQ(test, (int)fake->written - 1, last);
	/* Indices begin at 0: only the override writes them, of this QP, and it ends. */
	i = ernic_fake_find_write(fake, from, (param->is_ernic ? 0x20000 : 0) + 0x04, 0x02000001);
	KUNIT_EXPECT_LE(test, 0, i);
	KUNIT_EXPECT_EQ(test, 0, ernic_fake_get(fake, FAKE_XRNICADCONF));
	KUNIT_EXPECT_EQ(test, 0, ernic_fake_qp_get(fake, 2, FAKE_CQHEAD));
	KUNIT_EXPECT_EQ(test, 0, ernic_fake_qp_get(fake, 2, FAKE_STATRQPIDB));
	KUNIT_EXPECT_EQ(test, 0, ernic_fake_qp_get(fake, 2, FAKE_STATMSN));
	KUNIT_EXPECT_EQ(test, 0, ernic_fake_qp_get(fake, 2, FAKE_SQPI));
	qp_expect_address(test, fake, param->ipv6);
	qp_expect_queues(test, fake, qp);
	/* Traffic class, TTL, P_Key. */
	KUNIT_EXPECT_EQ(test, 0xffff3f15, ernic_fake_qp_get(fake, 2, FAKE_QPADVCONF));
	KUNIT_EXPECT_EQ(test, 0x00badbad, ernic_fake_qp_get(fake, 2, FAKE_DESTQPCONF));
	/* The PSN before the first that is expected. */
	KUNIT_EXPECT_EQ(test, 0xabcdee, ernic_fake_qp_get(fake, 2, FAKE_LSTRQREQ) & 0xffffff);
	KUNIT_EXPECT_EQ(test, param->is_ernic ? 0x21 : 5, ernic_fake_qp_get(fake, 2, FAKE_PD));

	KUNIT_ASSERT_EQ(test, 0, ernic_fake_modify(fake, qp, IB_QPS_RTS));
	/* Time-out 17, 5 retries, 6 RNR retries, RNR NAK timer 14. */
	KUNIT_EXPECT_EQ(test, 0x000e3511, ernic_fake_qp_get(fake, 2, FAKE_TIMEOUTCONF));
	KUNIT_EXPECT_EQ(test, 0xfedcba, ernic_fake_qp_get(fake, 2, FAKE_SQPSN));
	KUNIT_EXPECT_EQ(test, param->conf, ernic_fake_qp_get(fake, 2, FAKE_QPCONF));
}

/* RQCI follows the receives: none is posted, then 2, then so many that it wraps. */
static void qp_slots(struct kunit *test)
{
	struct ernic_fake *fake;
	struct ib_recv_wr wr = {};
	const struct ib_recv_wr *bad;
	struct ernic_qp *qp;
	u32 depth, first, i;

	KUNIT_ASSERT_EQ(test, 0, qp_open(test, true, 8, FAKE_RECORDS));
	fake = test->priv;
	qp = ernic_fake_qp(test, ernic_fake_pd(test, fake), ernic_fake_cq(test, fake, 10), &qp_attr);
	KUNIT_EXPECT_EQ(test, -EINVAL, ernic_post_recv(&qp->ibqp, &wr, &bad));
	KUNIT_ASSERT_EQ(test, 0, ernic_fake_modify(fake, qp, IB_QPS_INIT));
	KUNIT_ASSERT_EQ(test, 0, ernic_post_recv(&qp->ibqp, &wr, &bad));
	KUNIT_ASSERT_EQ(test, 0, ernic_fake_modify(fake, qp, IB_QPS_RTR));
	depth = ernic_fake_qp_get(fake, 2, FAKE_QDEPTH) >> 16;
	first = ernic_fake_qp_get(fake, 2, FAKE_RQCI);
	KUNIT_EXPECT_LE(test, 1, first);
	KUNIT_EXPECT_GE(test, depth, first);
	for (i = 1; i < 6; i++) {
		KUNIT_ASSERT_EQ(test, 0, ernic_post_recv(&qp->ibqp, &wr, &bad));
		KUNIT_EXPECT_EQ(test, (first - 1 + i) % depth + 1,
				ernic_fake_qp_get(fake, 2, FAKE_RQCI));
	}
	KUNIT_EXPECT_EQ(test, -ENOMEM, ernic_post_recv(&qp->ibqp, &wr, &bad));
	KUNIT_EXPECT_PTR_EQ(test, (const struct ib_recv_wr *)&wr, bad);
}

/* ------------------------------------------------------------------ */
/* The end of a QP                                                     */

enum qp_end { QP_DESTROY, QP_RESET, QP_ERR };

static const struct qp_ending {
	const char *name;
	bool is_ernic;
	enum qp_end end;
	bool never;		/* it does not become idle */
} qp_endings[] = {
	{ "ERNIC, destroyed", true, QP_DESTROY },
	{ "ERNIC, reset", true, QP_RESET },
	{ "ERNIC, to the error state", true, QP_ERR },
	{ "ERNIC, destroyed, never idle", true, QP_DESTROY, true },
	{ "ETRNIC, destroyed", false, QP_DESTROY },
	{ "ETRNIC, reset", false, QP_RESET },
};

KUNIT_ARRAY_PARAM_DESC(qp_ending, qp_endings, name);

struct qp_idle {
	u32 status;		/* the offset of STATQP */
	u32 conf;		/* that of QPCONF */
	u32 polls;		/* until it is idle */
	u32 polled;
	u32 disabled;		/* it was seen to be idle before that */
	bool was_read;		/* QPCONF, after it was written last */
};

/* SQ and OSQ are empty after some reads. */
static u32 qp_on_read(struct ernic_fake *fake, u32 offset, u32 value)
{
	struct qp_idle *idle = fake->priv;

	if (offset == idle->conf && !(value & 1))
		idle->was_read = true;
	if (offset != idle->status)
		return value;
	return ++idle->polled > idle->polls ? 0x600 : 0x200;
}

static void qp_ends(struct kunit *test)
{
	const struct qp_ending *param = test->param_value;
	struct qp_idle idle = { .polls = param->never ? U32_MAX - 1 : 3 };
	struct ernic_fake *fake;
	struct ernic_qp *qp;
	int recovery, disable;
	u32 from, conf;

	KUNIT_ASSERT_EQ(test, 0, qp_open(test, param->is_ernic, 8, FAKE_RECORDS));
	fake = test->priv;
	qp = ernic_fake_qp(test, ernic_fake_pd(test, fake), ernic_fake_cq(test, fake, 10), &qp_attr);
	ernic_fake_connect(test, fake, qp);
	conf = ernic_fake_qp_offset(fake, 2, FAKE_QPCONF);
	idle.status = ernic_fake_qp_offset(fake, 2, FAKE_STATQP);
	idle.conf = conf;
	fake->priv = &idle;
	fake->on_read = qp_on_read;
	from = fake->written;
	if (param->end == QP_DESTROY)
		ernic_fake_destroy_qp(test, qp);
	else
		KUNIT_EXPECT_EQ(test, 0, ernic_fake_modify(fake, qp, param->end == QP_RESET ?
							   IB_QPS_RESET : IB_QPS_ERR));
	fake->on_read = NULL;
	/* Recovery, until both queues are empty, then disabled: decision 12. */
	recovery = ernic_fake_find_write(fake, from, conf, 0x0010027d);
	disable = ernic_fake_find_write(fake, from, conf, 0);
	KUNIT_EXPECT_LE(test, 0, disable);
	if (param->is_ernic) {
		KUNIT_EXPECT_LE(test, 0, recovery);
		KUNIT_EXPECT_LT(test, recovery, disable);
		KUNIT_EXPECT_LE(test, param->never ? 2 : 4, idle.polled);
	} else {
		KUNIT_EXPECT_EQ(test, -1, recovery);
	}
	KUNIT_EXPECT_EQ(test, 0, ernic_fake_qp_get(fake, 2, FAKE_QPCONF));
	/* What the device wrote before is there: the write has been read back. */
	KUNIT_EXPECT_TRUE(test, idle.was_read);
	/* Its number is free, or the QP works once more. */
	if (param->end == QP_DESTROY)
		qp = ernic_fake_qp(test, ernic_fake_pd(test, fake), ernic_fake_cq(test, fake, 10),
				   &qp_attr);
	if (param->end == QP_ERR)
		KUNIT_EXPECT_EQ(test, 0, ernic_fake_modify(fake, qp, IB_QPS_RESET));
	ernic_fake_connect(test, fake, qp);
	KUNIT_EXPECT_EQ(test, 0x0010023d, ernic_fake_qp_get(fake, 2, FAKE_QPCONF));
}

/* ------------------------------------------------------------------ */
/* What is refused                                                     */

struct qp_bad {
	const char *name;
	enum ib_qp_state from;
	enum ib_qp_state to;
	int mask;
	int err;
	void (*spoil)(struct ib_qp_attr *attr);
};

static void qp_spoil_mtu(struct ib_qp_attr *attr)
{
	attr->path_mtu = IB_MTU_4096 + 1;
}

static void qp_spoil_reads(struct ib_qp_attr *attr)
{
	attr->max_rd_atomic = 17;
}

static void qp_spoil_peer_reads(struct ib_qp_attr *attr)
{
	attr->max_dest_rd_atomic = 17;
}

static void qp_spoil_port(struct ib_qp_attr *attr)
{
	attr->port_num = 2;
}

static void qp_spoil_pkey(struct ib_qp_attr *attr)
{
	attr->pkey_index = 1;
}

static void qp_spoil_gid(struct ib_qp_attr *attr)
{
	attr->ah_attr.grh.sgid_attr = NULL;
}

#define QP_TO_INIT	(IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS)
#define QP_TO_RTR	(IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN | \
			 IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER)
#define QP_TO_RTS	(IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | \
			 IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC)

static const struct qp_bad qp_bads[] = {
	{ "RESET to RTR", IB_QPS_RESET, IB_QPS_RTR, QP_TO_RTR, -EINVAL },
	{ "RESET to RTS", IB_QPS_RESET, IB_QPS_RTS, QP_TO_RTS, -EINVAL },
	{ "INIT to RTS", IB_QPS_INIT, IB_QPS_RTS, QP_TO_RTS, -EINVAL },
	{ "RTS to SQD", IB_QPS_RTS, IB_QPS_SQD, IB_QP_STATE, -EINVAL },
	{ "RTS to SQE", IB_QPS_RTS, IB_QPS_SQE, IB_QP_STATE, -EINVAL },
	{ "RTS to INIT", IB_QPS_RTS, IB_QPS_INIT, QP_TO_INIT, -EINVAL },
	{ "without a PSN", IB_QPS_RTR, IB_QPS_RTS, QP_TO_RTS & ~IB_QP_SQ_PSN, -EINVAL },
	{ "an alternate path", IB_QPS_INIT, IB_QPS_RTR, QP_TO_RTR | IB_QP_ALT_PATH, -EOPNOTSUPP },
	{ "port 2", IB_QPS_RESET, IB_QPS_INIT, QP_TO_INIT, -EINVAL, qp_spoil_port },
	{ "P_Key index 1", IB_QPS_RESET, IB_QPS_INIT, QP_TO_INIT, -EINVAL, qp_spoil_pkey },
	{ "path MTU above 4096", IB_QPS_INIT, IB_QPS_RTR, QP_TO_RTR, -EINVAL, qp_spoil_mtu },
	{ "17 READs of the peer", IB_QPS_INIT, IB_QPS_RTR, QP_TO_RTR, -EINVAL,
	  qp_spoil_peer_reads },
	{ "17 READs", IB_QPS_RTR, IB_QPS_RTS, QP_TO_RTS, -EINVAL, qp_spoil_reads },
	{ "no source GID", IB_QPS_INIT, IB_QPS_RTR, QP_TO_RTR, -EINVAL, qp_spoil_gid },
};

KUNIT_ARRAY_PARAM_DESC(qp_bad, qp_bads, name);

static void qp_bad_transition(struct kunit *test)
{
	static const enum ib_qp_state states[] = { IB_QPS_INIT, IB_QPS_RTR, IB_QPS_RTS };
	const struct qp_bad *param = test->param_value;
	struct ib_qp_init_attr init;
	struct ernic_fake *fake;
	struct ib_qp_attr attr;
	struct ernic_qp *qp;
	u32 from, i;

	KUNIT_ASSERT_EQ(test, 0, qp_open(test, true, 8, FAKE_RECORDS));
	fake = test->priv;
	qp = ernic_fake_qp(test, ernic_fake_pd(test, fake), ernic_fake_cq(test, fake, 10), &qp_attr);
	for (i = 0; i < ARRAY_SIZE(states) && states[i] <= param->from; i++)
		KUNIT_ASSERT_EQ(test, 0, ernic_fake_modify(fake, qp, states[i]));
	ernic_fake_attr(fake, &attr, false);
	attr.qp_state = param->to;
	if (param->spoil)
		param->spoil(&attr);
	from = fake->written;
	KUNIT_EXPECT_EQ(test, param->err, ernic_modify_qp(&qp->ibqp, &attr, param->mask, NULL));
	/* Nothing has changed. */
	KUNIT_EXPECT_EQ(test, from, fake->written);
	KUNIT_EXPECT_EQ(test, 0, ernic_query_qp(&qp->ibqp, &attr, IB_QP_STATE, &init));
	KUNIT_EXPECT_EQ(test, (int)param->from, (int)attr.qp_state);
}

/* ------------------------------------------------------------------ */
/* Creation                                                            */

static const struct qp_limit {
	const char *name;
	struct ernic_fake_qp attr;
	int err;
} qp_limits[] = {
	{ "all that there is", { .sends = 1023, .receives = 1023, .sges = 16 }, 0 },
	{ "nothing", { }, 0 },
	{ "1024 sends", { .sends = 1024, .receives = 1, .sges = 1 }, -EINVAL },
	{ "1024 receives", { .sends = 1, .receives = 1024, .sges = 1 }, -EINVAL },
	{ "17 parts", { .sends = 1, .receives = 1, .sges = 17 }, -EINVAL },
	{ "QP 1 of a process", { .sends = 1, .receives = 1, .sges = 1, .gsi = true, .user = true },
	  -EOPNOTSUPP },
};

KUNIT_ARRAY_PARAM_DESC(qp_limit, qp_limits, name);

static void qp_create(struct kunit *test)
{
	const struct qp_limit *param = test->param_value;
	struct ernic_fake *fake;
	struct ib_cq *cq;
	int err;

	KUNIT_ASSERT_EQ(test, 0, qp_open(test, true, 8, FAKE_RECORDS));
	fake = test->priv;
	cq = ernic_fake_cq(test, fake, 10);
	ernic_fake_new_qp(test, ernic_fake_pd(test, fake), cq, cq, &param->attr, &err);
	KUNIT_EXPECT_EQ(test, param->err, err);
}

/* Numbers from 2 to C_NUM_QP, and QP 1 for MADs; those of QPs that are destroyed are used again. */
static void qp_numbers(struct kunit *test)
{
	static const struct ernic_fake_qp gsi = { .sends = 1, .receives = 1, .sges = 1, .gsi = true };
	static const struct ernic_fake_qp attr = { .sends = 1, .receives = 1, .sges = 1 };
	struct ernic_qp *qps[9] = {};
	struct ernic_fake *fake;
	struct ib_cq *cq;
	struct ib_pd *pd;
	int err, i;

	KUNIT_ASSERT_EQ(test, 0, qp_open(test, true, 8, FAKE_RECORDS));
	fake = test->priv;
	cq = ernic_fake_cq(test, fake, 10);
	pd = ernic_fake_pd(test, fake);
	for (i = 2; i <= 8; i++) {
		qps[i] = ernic_fake_qp(test, pd, cq, &attr);
		KUNIT_EXPECT_EQ(test, i, qps[i]->ibqp.qp_num);
	}
	ernic_fake_new_qp(test, pd, cq, cq, &attr, &err);
	KUNIT_EXPECT_EQ(test, -ENOMEM, err);
	KUNIT_EXPECT_EQ(test, 1, ernic_fake_qp(test, pd, cq, &gsi)->ibqp.qp_num);
	ernic_fake_new_qp(test, pd, cq, cq, &gsi, &err);
	KUNIT_EXPECT_EQ(test, -ENOMEM, err);
	ernic_fake_destroy_qp(test, qps[5]);
	KUNIT_EXPECT_EQ(test, 5, ernic_fake_qp(test, pd, cq, &attr)->ibqp.qp_num);
}

/* Each piece of memory of a QP is refused in turn: nothing is left, and its number is free. */
static void qp_refused(struct kunit *test)
{
	struct ernic_fake *fake;
	struct ib_cq *cq;
	struct ib_pd *pd;
	u32 coherent, number;
	int err = 0;

	KUNIT_ASSERT_EQ(test, 0, qp_open(test, true, 8, FAKE_RECORDS));
	fake = test->priv;
	cq = ernic_fake_cq(test, fake, 10);
	pd = ernic_fake_pd(test, fake);
	coherent = fake->coherent;
	for (number = 1; number < 20; number++) {
		struct ernic_qp *qp;

		fake->requests = 0;
		fake->refuse = number;
		qp = ernic_fake_new_qp(test, pd, cq, cq, &qp_attr, &err);
		fake->refuse = 0;
		if (qp) {
			KUNIT_EXPECT_EQ(test, 2, qp->ibqp.qp_num);
			break;
		}
		KUNIT_EXPECT_EQ(test, -ENOMEM, err);
		KUNIT_EXPECT_EQ(test, coherent, fake->coherent);
	}
	/* The number, arrays and rings. */
	KUNIT_EXPECT_LT(test, 5, number);
	KUNIT_EXPECT_GT(test, 20, number);
}

/* The records of all messages fit into their ring: decision 7. */
static void qp_records(struct kunit *test)
{
	static const struct ernic_fake_qp attr = { .sends = 1, .receives = 1023, .sges = 1 };
	struct ernic_fake *fake;
	struct ib_cq *cq;
	struct ib_pd *pd;
	u32 places, number;
	int err = 0;

	KUNIT_ASSERT_EQ(test, 0, qp_open(test, true, 64, FAKE_RECORDS));
	fake = test->priv;
	cq = ernic_fake_cq(test, fake, 10);
	pd = ernic_fake_pd(test, fake);
	places = ernic_fake_get(fake, FAKE_RECORDSZ);
	fake->edev->slot = 256;
	for (number = 0; number < 63 && !err; number++)
		ernic_fake_new_qp(test, pd, cq, cq, &attr, &err);
	KUNIT_EXPECT_EQ(test, -ENOMEM, err);
	KUNIT_EXPECT_GE(test, places, (number - 1) * 1024);
	KUNIT_EXPECT_LE(test, 16, number);
}

/* ------------------------------------------------------------------ */
/* Addresses                                                           */

static void qp_gids(struct kunit *test)
{
	static const u8 v4[] = { [10] = 0xff, 0xff, 192, 168, 0, 1 };
	static const u8 v6[] = { 0x20, 0x01, 0x0d, 0xb8, [14] = 0x12, 0x34 };
	struct ernic_fake *fake;
	struct ib_gid_attr attr = { .index = 3 }, second = { .index = 4 };

	KUNIT_ASSERT_EQ(test, 0, qp_open(test, true, 8, 0));
	fake = test->priv;
	attr.device = &fake->edev->ibdev;
	second.device = &fake->edev->ibdev;
	rcu_assign_pointer(attr.ndev, ernic_fake_netdev(test));
	rcu_assign_pointer(second.ndev, attr.ndev);
	memcpy(attr.gid.raw, v4, 16);
	memcpy(second.gid.raw, v4, 16);
	KUNIT_EXPECT_EQ(test, 0, ernic_add_gid(&attr, NULL));
	KUNIT_EXPECT_EQ(test, 0xc0a80001, ernic_fake_get(fake, 0x70));
	KUNIT_EXPECT_EQ(test, -ENOSPC, ernic_add_gid(&second, NULL));
	KUNIT_EXPECT_EQ(test, 0, ernic_del_gid(&attr, NULL));
	KUNIT_EXPECT_EQ(test, 0, ernic_fake_get(fake, 0x70));
	memcpy(attr.gid.raw, v6, 16);
	KUNIT_EXPECT_EQ(test, 0, ernic_add_gid(&attr, NULL));
	/* The last register has the first four bytes. */
	KUNIT_EXPECT_EQ(test, 0x00001234, ernic_fake_get(fake, 0x20));
	KUNIT_EXPECT_EQ(test, 0, ernic_fake_get(fake, 0x24));
	KUNIT_EXPECT_EQ(test, 0, ernic_fake_get(fake, 0x28));
	KUNIT_EXPECT_EQ(test, 0x20010db8, ernic_fake_get(fake, 0x2c));
	KUNIT_EXPECT_EQ(test, 0, ernic_del_gid(&attr, NULL));
}

static struct kunit_case qp_cases[] = {
	KUNIT_CASE_PARAM(qp_registers, qp_path_gen_params),
	KUNIT_CASE(qp_slots),
	KUNIT_CASE_PARAM(qp_ends, qp_ending_gen_params),
	KUNIT_CASE_PARAM(qp_bad_transition, qp_bad_gen_params),
	KUNIT_CASE_PARAM(qp_create, qp_limit_gen_params),
	KUNIT_CASE(qp_numbers),
	KUNIT_CASE(qp_refused),
	KUNIT_CASE(qp_records),
	KUNIT_CASE(qp_gids),
	{}
};

static struct kunit_suite qp_suite = {
	.name = "hghca_ernic_qps",
	.test_cases = qp_cases,
};
kunit_test_suite(qp_suite);
