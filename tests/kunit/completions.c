// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of completion queues: what CQEs become, those of section 7 of the
 * interface document and those that no device should write.
 */
#include <linux/mman.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/unaligned.h>

#include "fake.h"

#define COMPLETIONS_WQES	4
#define COMPLETIONS_CQES	8	/* of a buffer */
#define COMPLETIONS_LENGTH	1000	/* bytes of each request */
#define COMPLETIONS_LKEY	0x77
#define COMPLETIONS_UAR		5	/* of a user */

struct completions {
	struct fake *fake;
	struct hghca_cq *hcq;
	struct hghca_qp *hqp;	/* RC */
	struct hghca_qp *other;	/* UD */
	struct ib_mr *mr;	/* for fast registration, with one page */
	u32 produced;
};

/* A CQE; what is 0 here is 0 there. */
struct completions_cqe {
	u32 qpn;
	u32 rqpn;
	u32 rlid_path_sl;
	u32 imm;	/* as on the wire, its bytes from high to low */
	u32 byte_cnt;
	u32 wqe;
	u8 opcode;
	u8 is_send;
	u8 owner;
	/* of one in error */
	u8 syndrome;
	u8 vendor_err;
};

static const struct fake_qp_attr completions_rc = {
	.type = IB_QPT_RC,
	.cap = { .max_send_wr = COMPLETIONS_WQES, .max_recv_wr = COMPLETIONS_WQES,
		 .max_send_sge = 1, .max_recv_sge = 1 },
};

static const struct fake_qp_attr completions_ud = {
	.type = IB_QPT_UD,
	.cap = { .max_send_wr = COMPLETIONS_WQES, .max_recv_wr = COMPLETIONS_WQES,
		 .max_send_sge = 1, .max_recv_sge = 1 },
};

static int completions_init(struct kunit *test)
{
	struct completions *this = kunit_kzalloc(test, sizeof(*this), GFP_KERNEL);
	struct scatterlist sg;
	struct hghca_pd *pd;
	int err;

	if (!this)
		return -ENOMEM;
	err = fake_test_init_events(test);
	if (err)
		return err;
	this->fake = test->priv;
	pd = fake_pd(test, this->fake);
	this->hcq = fake_cq(test, this->fake, COMPLETIONS_CQES - 1);
	this->hqp = fake_qp(test, pd, this->hcq, this->hcq, &completions_rc);
	this->other = fake_qp(test, pd, this->hcq, this->hcq, &completions_ud);
	this->hqp->state = IB_QPS_RTS;
	this->other->state = IB_QPS_RTS;
	this->mr = fake_mr(test, pd, 1);
	this->mr->page_size = 4096;
	sg_init_table(&sg, 1);
	sg_dma_address(&sg) = 0x123456000;
	sg_dma_len(&sg) = 4096;
	test->priv = this;
	return hghca_map_mr_sg(this->mr, &sg, 1, NULL) == 1 ? 0 : -EINVAL;
}

/* Document 7, byte by byte. */
static void completions_write(u8 *at, const struct completions_cqe *cqe)
{
	memset(at, 0, 31);
	put_unaligned_le32(cqe->qpn, at + 0x00);
	put_unaligned_le32(cqe->rqpn, at + 0x08);
	put_unaligned_le32(cqe->rlid_path_sl, at + 0x0c);
	put_unaligned_be32(cqe->imm, at + 0x10);
	if (cqe->opcode == 0xff) {
		at[0x10] = cqe->syndrome;
		at[0x11] = cqe->vendor_err;
	}
	put_unaligned_le32(cqe->byte_cnt, at + 0x14);
	put_unaligned_le32(cqe->wqe, at + 0x18);
	at[0x1c] = cqe->opcode;
	at[0x1d] = cqe->is_send;
	at[0x1f] = cqe->owner;
}

static void completions_put(struct completions *this, const struct completions_cqe *cqe)
{
	u32 slot = this->produced++ % COMPLETIONS_CQES;

	completions_write(hghca_queue_at(&this->hcq->queue, slot * 32), cqe);
}

static int completions_poll(struct completions *this, int count, struct ib_wc *wc)
{
	memset(wc, 0xa5, count * sizeof(*wc));
	return hghca_poll_cq(&this->hcq->ibcq, count, wc);
}

static void completions_post(struct kunit *test, struct hghca_qp *hqp, enum ib_wr_opcode opcode,
			     u64 wr_id)
{
	struct ib_sge sge = { .length = COMPLETIONS_LENGTH, .lkey = COMPLETIONS_LKEY };
	struct ib_atomic_wr wr = { .wr = {
		.wr_id = wr_id, .opcode = opcode, .sg_list = &sge, .num_sge = 1,
	} };
	struct completions *this = test->priv;
	struct ib_reg_wr reg = { .wr = { .wr_id = wr_id, .opcode = opcode }, .mr = this->mr,
				 .key = this->mr->rkey };
	const struct ib_send_wr *bad_wr;

	if (opcode == IB_WR_REG_MR) {
		KUNIT_ASSERT_EQ(test, 0, hghca_post_send(&hqp->ibqp, &reg.wr, &bad_wr));
		return;
	}
	if (opcode == IB_WR_ATOMIC_CMP_AND_SWP || opcode == IB_WR_ATOMIC_FETCH_AND_ADD)
		sge.length = 8;
	KUNIT_ASSERT_EQ(test, 0, hghca_post_send(&hqp->ibqp, &wr.wr, &bad_wr));
}

static void completions_post_recv(struct kunit *test, struct hghca_qp *hqp, u64 wr_id)
{
	struct ib_sge sge = { .length = COMPLETIONS_LENGTH, .lkey = COMPLETIONS_LKEY };
	struct ib_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };
	const struct ib_recv_wr *bad_wr;

	KUNIT_ASSERT_EQ(test, 0, hghca_post_recv(&hqp->ibqp, &wr, &bad_wr));
}

/* ------------------------------------------------------------------ */
/* Syndromes                                                            */

static const struct completions_syndrome {
	const char *name;
	u8 syndrome;
	enum ib_wc_status status;
} completions_syndromes[] = {
	{ "LOCAL_LENGTH_ERR", 0x01, IB_WC_LOC_LEN_ERR },
	{ "LOCAL_QP_OP_ERR", 0x02, IB_WC_LOC_QP_OP_ERR },
	{ "LOCAL_EEC_OP_ERR", 0x03, IB_WC_LOC_EEC_OP_ERR },
	{ "LOCAL_PROT_ERR", 0x04, IB_WC_LOC_PROT_ERR },
	{ "WR_FLUSH_ERR", 0x05, IB_WC_WR_FLUSH_ERR },
	{ "MW_BIND_ERR", 0x06, IB_WC_MW_BIND_ERR },
	{ "BAD_RESP_ERR", 0x10, IB_WC_BAD_RESP_ERR },
	{ "LOCAL_ACCESS_ERR", 0x11, IB_WC_LOC_ACCESS_ERR },
	{ "REMOTE_INVAL_REQ_ERR", 0x12, IB_WC_REM_INV_REQ_ERR },
	{ "REMOTE_ACCESS_ERR", 0x13, IB_WC_REM_ACCESS_ERR },
	{ "REMOTE_OP_ERR", 0x14, IB_WC_REM_OP_ERR },
	{ "RETRY_EXC_ERR", 0x15, IB_WC_RETRY_EXC_ERR },
	{ "RNR_RETRY_EXC_ERR", 0x16, IB_WC_RNR_RETRY_EXC_ERR },
	{ "LOCAL_RDD_VIOL_ERR", 0x20, IB_WC_LOC_RDD_VIOL_ERR },
	{ "REMOTE_INVAL_RD_REQ_ERR", 0x21, IB_WC_REM_INV_RD_REQ_ERR },
	{ "REMOTE_ABORTED_ERR", 0x22, IB_WC_REM_ABORT_ERR },
	{ "INVAL_EECN_ERR", 0x23, IB_WC_INV_EECN_ERR },
	{ "INVAL_EEC_STATE_ERR", 0x24, IB_WC_INV_EEC_STATE_ERR },
	{ "no syndrome: 00h", 0x00, IB_WC_GENERAL_ERR },
	{ "no syndrome: 07h", 0x07, IB_WC_GENERAL_ERR },
	{ "no syndrome: 1fh", 0x1f, IB_WC_GENERAL_ERR },
	{ "no syndrome: 25h", 0x25, IB_WC_GENERAL_ERR },
	{ "no syndrome: ffh", 0xff, IB_WC_GENERAL_ERR },
};

static void completions_syndrome_name(const struct completions_syndrome *syndrome, char *desc)
{
	strscpy(desc, syndrome->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(completions_syndrome, completions_syndromes, completions_syndrome_name);

static void completions_expect_error(struct kunit *test, const struct completions_cqe *cqe,
				     struct hghca_qp *hqp, bool flushes)
{
	const struct completions_syndrome *param = test->param_value;
	struct completions *this = test->priv;
	struct ib_wc wc;

	fake_doorbell(this->fake, 0);
	completions_put(this, cqe);
	KUNIT_ASSERT_EQ(test, 1, completions_poll(this, 1, &wc));
	KUNIT_EXPECT_EQ(test, 0x1234, wc.wr_id);
	KUNIT_EXPECT_EQ(test, param->status, wc.status);
	KUNIT_EXPECT_EQ(test, 0x99, wc.vendor_err);
	KUNIT_EXPECT_PTR_EQ(test, &hqp->ibqp, wc.qp);
	KUNIT_EXPECT_EQ(test, flushes ? (u64)hqp->hw.qpn << 40 : 0,
			fake_doorbell(this->fake, 0));
}

static void completions_send_error(struct kunit *test)
{
	const struct completions_syndrome *param = test->param_value;
	struct completions *this = test->priv;
	const struct completions_cqe cqe = {
		.qpn = this->hqp->hw.qpn, .opcode = 0xff, .is_send = 1,
		.syndrome = param->syndrome, .vendor_err = 0x99,
	};

	completions_post(test, this->hqp, IB_WR_RDMA_READ, 0x1234);
	completions_expect_error(test, &cqe, this->hqp, true);
}

static void completions_recv_error(struct kunit *test)
{
	const struct completions_syndrome *param = test->param_value;
	struct completions *this = test->priv;
	const struct completions_cqe cqe = {
		.qpn = this->hqp->hw.qpn, .opcode = 0xff,
		.syndrome = param->syndrome, .vendor_err = 0x99,
	};

	completions_post_recv(test, this->hqp, 0x1234);
	completions_expect_error(test, &cqe, this->hqp, true);
}

/* A fault in a datagram's send leads to SQE: receives go on. */
static void completions_datagram_error(struct kunit *test)
{
	const struct completions_syndrome *param = test->param_value;
	struct completions *this = test->priv;
	struct ib_ud_wr wr = { .wr = { .wr_id = 0x1234, .opcode = IB_WR_SEND } };
	struct hghca_ah *ah = kunit_kzalloc(test, sizeof(*ah), GFP_KERNEL);
	const struct completions_cqe cqe = {
		.qpn = this->other->hw.qpn, .opcode = 0xff, .is_send = 1,
		.syndrome = param->syndrome, .vendor_err = 0x99,
	};
	const struct ib_send_wr *bad_wr;

	KUNIT_ASSERT_NOT_NULL(test, ah);
	ah->ibah.pd = this->other->ibqp.pd;
	wr.ah = &ah->ibah;
	KUNIT_ASSERT_EQ(test, 0, hghca_post_send(&this->other->ibqp, &wr.wr, &bad_wr));
	completions_expect_error(test, &cqe, this->other, false);
}

/*
 * A datagram to another PD's address is a READ to the device, which refuses it and
 * flushes what is behind it; to its poster it is a send that fails (IBA C10-10).
 */
static void completions_foreign_address(struct kunit *test)
{
	static const struct {
		u8 syndrome;
		enum ib_wc_status status;
	} ends[] = { { 0x02, IB_WC_LOC_QP_OP_ERR }, { 0x05, IB_WC_WR_FLUSH_ERR } };
	struct completions *this = test->priv;
	struct hghca_qp *hqp = this->other;
	struct ib_ud_wr wr = { .wr = { .wr_id = 0x1234, .opcode = IB_WR_SEND } };
	struct hghca_ah *ahs = kunit_kcalloc(test, 2, sizeof(*ahs), GFP_KERNEL);
	const struct ib_send_wr *bad_wr;
	struct ib_wc wc;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, ahs);
	ahs[0].ibah.pd = &fake_pd(test, this->fake)->ibpd;
	ahs[1].ibah.pd = hqp->ibqp.pd;
	for (i = 0; i < 2; i++) {
		wr.wr.wr_id = 0x1234 + i;
		wr.ah = &ahs[i].ibah;
		fake_doorbell(this->fake, 0);
		KUNIT_ASSERT_EQ(test, 0, hghca_post_send(&hqp->ibqp, &wr.wr, &bad_wr));
		KUNIT_EXPECT_EQ(test, i ? HGHCA_OPCODE_SEND : HGHCA_OPCODE_RDMA_READ,
				fake_doorbell(this->fake, 0) & 0x1f);
	}
	for (i = 0; i < 2; i++) {
		const struct completions_cqe cqe = {
			.qpn = hqp->hw.qpn, .opcode = 0xff, .is_send = 1,
			.wqe = i << hqp->sq.log_stride, .syndrome = ends[i].syndrome,
		};

		completions_put(this, &cqe);
		KUNIT_ASSERT_EQ(test, 1, completions_poll(this, 1, &wc));
		KUNIT_EXPECT_EQ(test, 0x1234 + i, wc.wr_id);
		KUNIT_EXPECT_EQ(test, ends[i].status, wc.status);
		KUNIT_EXPECT_PTR_EQ(test, &hqp->ibqp, wc.qp);
	}
	KUNIT_EXPECT_EQ(test, 0, completions_poll(this, 1, &wc));
}

/* ------------------------------------------------------------------ */
/* Opcodes                                                              */

static const struct completions_send {
	const char *name;
	enum ib_wr_opcode wr;
	u8 opcode;
	u32 byte_cnt;
	enum ib_wc_opcode wc;
} completions_sends[] = {
	{ "SEND", IB_WR_SEND, 0x0a, 1000, IB_WC_SEND },
	{ "SEND_IMM", IB_WR_SEND_WITH_IMM, 0x0b, 1000, IB_WC_SEND },
	{ "RDMA_WRITE", IB_WR_RDMA_WRITE, 0x08, 1000, IB_WC_RDMA_WRITE },
	{ "RDMA_WRITE_IMM", IB_WR_RDMA_WRITE_WITH_IMM, 0x09, 1000, IB_WC_RDMA_WRITE },
	{ "RDMA_READ", IB_WR_RDMA_READ, 0x10, 1000, IB_WC_RDMA_READ },
	{ "ATOMIC_CS", IB_WR_ATOMIC_CMP_AND_SWP, 0x11, 8, IB_WC_COMP_SWAP },
	{ "ATOMIC_FA", IB_WR_ATOMIC_FETCH_AND_ADD, 0x12, 8, IB_WC_FETCH_ADD },
	{ "SEND_INV", IB_WR_SEND_WITH_INV, 0x0c, 1000, IB_WC_SEND },
	{ "REG_MR", IB_WR_REG_MR, 0x19, 0, IB_WC_REG_MR },
	{ "LOCAL_INV", IB_WR_LOCAL_INV, 0x1a, 0, IB_WC_LOCAL_INV },
};

static void completions_send_name(const struct completions_send *send, char *desc)
{
	strscpy(desc, send->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(completions_send, completions_sends, completions_send_name);

static void completions_send_opcode(struct kunit *test)
{
	const struct completions_send *param = test->param_value;
	struct completions *this = test->priv;
	const struct completions_cqe cqe = {
		.qpn = this->hqp->hw.qpn, .opcode = param->opcode, .is_send = 1,
		.byte_cnt = param->byte_cnt,
	};
	struct ib_wc wc;

	completions_post(test, this->hqp, param->wr, 0xfedcba9876543210);
	completions_put(this, &cqe);
	KUNIT_ASSERT_EQ(test, 1, completions_poll(this, 1, &wc));
	KUNIT_EXPECT_EQ(test, 0xfedcba9876543210, wc.wr_id);
	KUNIT_EXPECT_EQ(test, IB_WC_SUCCESS, wc.status);
	KUNIT_EXPECT_EQ(test, param->wc, wc.opcode);
	KUNIT_EXPECT_EQ(test, param->byte_cnt, wc.byte_len);
	KUNIT_EXPECT_EQ(test, 0, wc.wc_flags);
	KUNIT_EXPECT_EQ(test, 1, wc.port_num);
	KUNIT_EXPECT_PTR_EQ(test, &this->hqp->ibqp, wc.qp);
}

/* A CQE with another opcode than its request's: one of another request. */
static void completions_send_other_opcode(struct kunit *test)
{
	const struct completions_send *param = test->param_value;
	struct completions *this = test->priv;
	struct completions_cqe cqe = { .qpn = this->hqp->hw.qpn, .is_send = 1 };
	struct ib_wc wc;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(completions_sends); i++) {
		if (&completions_sends[i] == param)
			continue;
		completions_post(test, this->hqp, param->wr, i);
		cqe.opcode = completions_sends[i].opcode;
		cqe.wqe = this->produced % COMPLETIONS_WQES * 64;
		completions_put(this, &cqe);
		KUNIT_ASSERT_EQ(test, 1, completions_poll(this, 1, &wc));
		KUNIT_EXPECT_EQ(test, i, wc.wr_id);
		KUNIT_EXPECT_EQ(test, IB_WC_GENERAL_ERR, wc.status);
	}
}

/* The BTH opcode of the last packet: of the five low bits, all 32. */
static const struct completions_recv {
	const char *name;
	u8 opcode;
	enum ib_wc_opcode wc;	/* 0: not that of a receive */
	bool imm;
	bool inv;
} completions_recvs[] = {
	{ "SEND_FIRST", 0x00 },
	{ "SEND_MIDDLE", 0x01 },
	{ "SEND_LAST", 0x02, IB_WC_RECV },
	{ "SEND_LAST with immediate", 0x03, IB_WC_RECV, true },
	{ "SEND_ONLY", 0x04, IB_WC_RECV },
	{ "SEND_ONLY with immediate", 0x05, IB_WC_RECV, true },
	{ "RDMA_WRITE_FIRST", 0x06 },
	{ "RDMA_WRITE_MIDDLE", 0x07 },
	{ "RDMA_WRITE_LAST", 0x08 },
	{ "RDMA_WRITE_LAST with immediate", 0x09, IB_WC_RECV_RDMA_WITH_IMM, true },
	{ "RDMA_WRITE_ONLY", 0x0a },
	{ "RDMA_WRITE_ONLY with immediate", 0x0b, IB_WC_RECV_RDMA_WITH_IMM, true },
	{ "RDMA_READ_REQUEST", 0x0c },
	{ "RDMA_READ_RESPONSE_FIRST", 0x0d },
	{ "RDMA_READ_RESPONSE_MIDDLE", 0x0e },
	{ "RDMA_READ_RESPONSE_LAST", 0x0f },
	{ "RDMA_READ_RESPONSE_ONLY", 0x10 },
	{ "ACKNOWLEDGE", 0x11 },
	{ "ATOMIC_ACKNOWLEDGE", 0x12 },
	{ "COMPARE_SWAP", 0x13 },
	{ "FETCH_ADD", 0x14 },
	{ "no opcode: 15h", 0x15 },
	{ "SEND_LAST with invalidate", 0x16, IB_WC_RECV, .inv = true },
	{ "SEND_ONLY with invalidate", 0x17, IB_WC_RECV, .inv = true },
	{ "no opcode: 18h", 0x18 },
	{ "no opcode: 1fh", 0x1f },
	{ "UD SEND_ONLY", 0x64, IB_WC_RECV },
	{ "UD SEND_ONLY with immediate", 0x65, IB_WC_RECV, true },
};

static void completions_recv_name(const struct completions_recv *recv, char *desc)
{
	strscpy(desc, recv->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(completions_recv, completions_recvs, completions_recv_name);

static void completions_recv_opcode(struct kunit *test)
{
	const struct completions_recv *param = test->param_value;
	struct completions *this = test->priv;
	const struct completions_cqe cqe = {
		.qpn = this->hqp->hw.qpn, .opcode = param->opcode, .byte_cnt = 1000,
		.imm = 0xdeadbeef,
	};
	struct ib_wc wc;

	completions_post_recv(test, this->hqp, 0x1234);
	completions_put(this, &cqe);
	KUNIT_ASSERT_EQ(test, 1, completions_poll(this, 1, &wc));
	KUNIT_EXPECT_EQ(test, 0x1234, wc.wr_id);
	if (!param->wc) {
		KUNIT_EXPECT_EQ(test, IB_WC_GENERAL_ERR, wc.status);
		KUNIT_EXPECT_EQ(test, 0, wc.wc_flags);
		KUNIT_EXPECT_EQ(test, 0, wc.byte_len);
		return;
	}
	KUNIT_EXPECT_EQ(test, IB_WC_SUCCESS, wc.status);
	KUNIT_EXPECT_EQ(test, param->wc, wc.opcode);
	KUNIT_EXPECT_EQ(test, 1000, wc.byte_len);
	KUNIT_EXPECT_EQ(test, param->imm ? IB_WC_WITH_IMM : param->inv ? IB_WC_WITH_INVALIDATE : 0,
			wc.wc_flags);
	if (param->inv)
		KUNIT_EXPECT_EQ(test, 0xdeadbeef, wc.ex.invalidate_rkey);
	if (param->imm)
		KUNIT_EXPECT_EQ(test, 0xdeadbeef, be32_to_cpu(wc.ex.imm_data));
}

/* What a datagram's CQE says of its sender. */
static const struct completions_datagram {
	const char *name;
	u32 rqpn;
	u32 rlid_path_sl;
	u32 src_qp;
	u8 sl;
	int wc_flags;
	u16 vlan_id;
} completions_datagrams[] = {
	{ "with a GRH", 0x00abcdef, 0x00008000, 0xabcdef, 0, IB_WC_GRH },
	{ "SL 5", 1, 0x00008050, 1, 5, IB_WC_GRH },
	{ "SL 5, by IPv4", 1, 0x00008250, 1, 5, IB_WC_GRH },
	{ "in VLAN 4095", 1, 0x8fff8000, 1, 0, IB_WC_GRH | IB_WC_WITH_VLAN, 4095 },
	{ "a VLAN number without its bit", 1, 0x0fff8000, 1, 0, IB_WC_GRH },
	{ "without a GRH", 1, 0, 1, 0, 0 },
	{ "reserved bits set", 0xff000002, 0x70007f0f, 2, 0, 0 },
};

static void completions_datagram_name(const struct completions_datagram *datagram, char *desc)
{
	strscpy(desc, datagram->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(completions_datagram, completions_datagrams, completions_datagram_name);

static void completions_datagram(struct kunit *test)
{
	const struct completions_datagram *param = test->param_value;
	struct completions *this = test->priv;
	const struct completions_cqe cqe = {
		.qpn = this->other->hw.qpn, .opcode = 0x64, .byte_cnt = 140,
		.rqpn = param->rqpn, .rlid_path_sl = param->rlid_path_sl,
	};
	struct ib_wc wc;

	completions_post_recv(test, this->other, 1);
	completions_put(this, &cqe);
	KUNIT_ASSERT_EQ(test, 1, completions_poll(this, 1, &wc));
	KUNIT_EXPECT_EQ(test, IB_WC_SUCCESS, wc.status);
	KUNIT_EXPECT_EQ(test, 140, wc.byte_len);
	KUNIT_EXPECT_EQ(test, param->src_qp, wc.src_qp);
	KUNIT_EXPECT_EQ(test, param->sl, wc.sl);
	KUNIT_EXPECT_EQ(test, param->wc_flags, wc.wc_flags);
	if (param->wc_flags & IB_WC_WITH_VLAN)
		KUNIT_EXPECT_EQ(test, param->vlan_id, wc.vlan_id);
}

/* ------------------------------------------------------------------ */
/* CQEs that cannot be                                                  */

enum completions_fate {
	DROPPED,	/* nothing completes */
	IN_ERROR,	/* its request does, with a general error */
	WELL,		/* strange, but well */
};

/* Two sends (a SEND and a READ) and two receives are outstanding. */
static const struct completions_hostile {
	const char *name;
	struct completions_cqe cqe;	/* qpn is added to the QP's */
	enum completions_fate fate;
	u64 wr_id;
} completions_hostiles[] = {
	{ "a QP that is not there", { .qpn = 1000, .opcode = 0x0a, .is_send = 1 }, DROPPED },
	{ "a QPN with bits above the 24", { .qpn = 0xff000000, .opcode = 0x0a, .is_send = 1 },
	  WELL, 1 },
	{ "a send beyond the queue", { .opcode = 0x0a, .is_send = 1, .wqe = 256 }, DROPPED },
	{ "a send far beyond the queue", { .opcode = 0x0a, .is_send = 1, .wqe = 0xffffffc0 },
	  DROPPED },
	{ "a send between two slots", { .opcode = 0x0a, .is_send = 1, .wqe = 32 }, DROPPED },
	{ "a send that was not posted", { .opcode = 0x0a, .is_send = 1, .wqe = 128 }, DROPPED },
	{ "the last slot, not posted", { .opcode = 0x0a, .is_send = 1, .wqe = 192 }, DROPPED },
	{ "the second send, the first without a CQE", { .opcode = 0x10, .is_send = 1, .wqe = 64 },
	  WELL, 2 },
	{ "a receive beyond the queue", { .opcode = 0x04, .wqe = 256 }, DROPPED },
	{ "a receive between two slots", { .opcode = 0x04, .wqe = 1 }, DROPPED },
	{ "the second receive before the first", { .opcode = 0x04, .wqe = 64 }, DROPPED },
	{ "an error of a send that was not posted",
	  { .opcode = 0xff, .is_send = 1, .wqe = 192, .syndrome = 5 }, DROPPED },
	{ "a SEND that says it was a READ", { .opcode = 0x10, .is_send = 1 }, IN_ERROR, 1 },
	{ "an undefined opcode of a send", { .opcode = 0x1f, .is_send = 1 }, IN_ERROR, 1 },
	{ "a SEND that says it was NOP", { .opcode = 0x00, .is_send = 1 }, IN_ERROR, 1 },
	{ "a SEND longer than it was", { .opcode = 0x0a, .is_send = 1, .byte_cnt = 1001 },
	  IN_ERROR, 1 },
	{ "a SEND of all ones bytes", { .opcode = 0x0a, .is_send = 1, .byte_cnt = 0xffffffff },
	  IN_ERROR, 1 },
	{ "a SEND that says it was SEND_INV", { .opcode = 0x0c, .is_send = 1 }, IN_ERROR, 1 },
	{ "a SEND that says it was REG_MR", { .opcode = 0x19, .is_send = 1 }, IN_ERROR, 1 },
	{ "an invalidating receive longer than its room", { .opcode = 0x17, .byte_cnt = 1001 },
	  IN_ERROR, 11 },
	{ "a SEND shorter than it was", { .opcode = 0x0a, .is_send = 1, .byte_cnt = 999 },
	  WELL, 1 },
	{ "a receive longer than its room", { .opcode = 0x04, .byte_cnt = 1001 }, IN_ERROR, 11 },
	{ "a receive of all ones bytes", { .opcode = 0x04, .byte_cnt = 0xffffffff }, IN_ERROR, 11 },
	{ "a WRITE longer than the receive it takes", { .opcode = 0x0b, .byte_cnt = 0x80000000 },
	  WELL, 11 },
	{ "a receive with a send's direction", { .opcode = 0x04, .is_send = 1 }, IN_ERROR, 1 },
	{ "a send with a receive's direction", { .opcode = 0x0a }, IN_ERROR, 11 },
	{ "a direction of all ones", { .opcode = 0x0a, .is_send = 0xff }, WELL, 1 },
};

static void completions_hostile_name(const struct completions_hostile *hostile, char *desc)
{
	strscpy(desc, hostile->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(completions_hostile, completions_hostiles, completions_hostile_name);

static void completions_hostile(struct kunit *test)
{
	const struct completions_hostile *param = test->param_value;
	struct completions *this = test->priv;
	struct completions_cqe cqe = param->cqe;
	struct ib_wc wc;

	completions_post(test, this->hqp, IB_WR_SEND, 1);
	completions_post(test, this->hqp, IB_WR_RDMA_READ, 2);
	completions_post_recv(test, this->hqp, 11);
	completions_post_recv(test, this->hqp, 12);
	cqe.qpn += this->hqp->hw.qpn;
	completions_put(this, &cqe);

	KUNIT_ASSERT_EQ(test, param->fate == DROPPED ? 0 : 1, completions_poll(this, 1, &wc));
	/* Taken in any case, and given back. */
	KUNIT_EXPECT_EQ(test, 1, this->hcq->cons_index);
	KUNIT_EXPECT_EQ(test, 1, le32_at(this->hcq->dbr.record, 0));
	KUNIT_EXPECT_EQ(test, 0x80, *(u8 *)(hghca_queue_at(&this->hcq->queue, 0) + 31));
	if (param->fate == DROPPED) {
		KUNIT_EXPECT_EQ(test, 0, this->hqp->sq.tail);
		KUNIT_EXPECT_EQ(test, 0, this->hqp->rq.tail);
		return;
	}
	KUNIT_EXPECT_EQ(test, param->wr_id, wc.wr_id);
	KUNIT_EXPECT_EQ(test, param->fate == WELL ? IB_WC_SUCCESS : IB_WC_GENERAL_ERR, wc.status);
}

/* The same CQE again: its request has completed. */
static void completions_twice(struct kunit *test)
{
	struct completions *this = test->priv;
	const struct completions_cqe cqe = {
		.qpn = this->hqp->hw.qpn, .opcode = 0x0a, .is_send = 1,
	};
	struct ib_wc wc[2];

	completions_post(test, this->hqp, IB_WR_SEND, 1);
	completions_put(this, &cqe);
	completions_put(this, &cqe);
	KUNIT_EXPECT_EQ(test, 1, completions_poll(this, 2, wc));
	KUNIT_EXPECT_EQ(test, 2, this->hcq->cons_index);
	KUNIT_EXPECT_EQ(test, 1, this->hqp->sq.tail);
}

/* Where the two directions complete to different CQs, each takes its own alone. */
static void completions_wrong_cq(struct kunit *test)
{
	struct completions *this = test->priv;
	struct hghca_cq *recv_cq = fake_cq(test, this->fake, 7);
	struct hghca_qp *hqp = fake_qp(test, fake_pd(test, this->fake), this->hcq, recv_cq,
				       &completions_rc);
	const struct completions_cqe recv = { .qpn = hqp->hw.qpn, .opcode = 0x04 };
	const struct completions_cqe send = { .qpn = hqp->hw.qpn, .opcode = 0x0a, .is_send = 1 };
	struct ib_wc wc;

	hqp->state = IB_QPS_RTS;
	completions_post(test, hqp, IB_WR_SEND, 1);
	completions_post_recv(test, hqp, 2);
	completions_put(this, &recv);
	KUNIT_EXPECT_EQ(test, 0, completions_poll(this, 1, &wc));
	completions_write(hghca_queue_at(&recv_cq->queue, 0), &send);
	KUNIT_EXPECT_EQ(test, 0, hghca_poll_cq(&recv_cq->ibcq, 1, &wc));
	completions_put(this, &send);
	KUNIT_EXPECT_EQ(test, 1, completions_poll(this, 1, &wc));
	KUNIT_EXPECT_EQ(test, 1, wc.wr_id);
	completions_write(hghca_queue_at(&recv_cq->queue, 32), &recv);
	KUNIT_EXPECT_EQ(test, 1, hghca_poll_cq(&recv_cq->ibcq, 1, &wc));
	KUNIT_EXPECT_EQ(test, 2, wc.wr_id);
}

/* ------------------------------------------------------------------ */
/* Owners and indices                                                   */

static const struct completions_owner {
	const char *name;
	u8 owner;
	bool ours;
} completions_owners[] = {
	{ "00h: software's", 0x00, true },
	{ "80h: the device's", 0x80, false },
	{ "01h", 0x01, false },
	{ "7fh", 0x7f, false },
	{ "ffh", 0xff, false },
};

static void completions_owner_name(const struct completions_owner *owner, char *desc)
{
	strscpy(desc, owner->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(completions_owner, completions_owners, completions_owner_name);

static void completions_owner(struct kunit *test)
{
	const struct completions_owner *param = test->param_value;
	struct completions *this = test->priv;
	const struct completions_cqe cqe = {
		.qpn = this->hqp->hw.qpn, .opcode = 0x0a, .is_send = 1, .owner = param->owner,
	};
	struct ib_wc wc;

	completions_post(test, this->hqp, IB_WR_SEND, 1);
	completions_put(this, &cqe);
	KUNIT_EXPECT_EQ(test, param->ours, completions_poll(this, 1, &wc));
	KUNIT_EXPECT_EQ(test, param->ours, this->hcq->cons_index);
}

/* A CQE behind one that is not there yet is not seen. */
static void completions_gap(struct kunit *test)
{
	struct completions *this = test->priv;
	struct completions_cqe cqe = { .qpn = this->hqp->hw.qpn, .opcode = 0x0a, .is_send = 1 };
	struct ib_wc wc;

	completions_post(test, this->hqp, IB_WR_SEND, 1);
	this->produced = 1;
	completions_put(this, &cqe);
	KUNIT_EXPECT_EQ(test, 0, completions_poll(this, 1, &wc));
	this->produced = 0;
	completions_put(this, &cqe);
	KUNIT_EXPECT_EQ(test, 1, completions_poll(this, 1, &wc));
}

/* A buffer full of rubbish, again and again: each poll ends. */
static void completions_flood(struct kunit *test)
{
	struct completions *this = test->priv;
	const struct completions_cqe cqe = { .qpn = 0x3333, .opcode = 0x0a, .is_send = 1 };
	struct ib_wc wc;
	int i, round;

	for (round = 1; round <= 3; round++) {
		for (i = 0; i < COMPLETIONS_CQES; i++)
			completions_put(this, &cqe);
		KUNIT_EXPECT_EQ(test, 0, completions_poll(this, 1, &wc));
		KUNIT_EXPECT_EQ(test, round * COMPLETIONS_CQES, this->hcq->cons_index);
		KUNIT_EXPECT_EQ(test, round * COMPLETIONS_CQES, le32_at(this->hcq->dbr.record, 0));
	}
}

/* Three rounds of both queues and five of the CQ, some sends without a CQE. */
static void completions_wrap(struct kunit *test)
{
	struct completions *this = test->priv;
	struct completions_cqe cqe = { .qpn = this->hqp->hw.qpn, .is_send = 1, .opcode = 0x0a };
	struct completions_cqe recv = { .qpn = this->hqp->hw.qpn, .opcode = 0x04 };
	struct ib_wc wc[3];
	u32 i;

	this->hcq->cons_index = U32_MAX - 7;
	for (i = 0; i < 20; i++) {
		/* Of two sends the second alone makes a CQE. */
		completions_post(test, this->hqp, IB_WR_SEND, 1000 + i);
		completions_post(test, this->hqp, IB_WR_SEND, 2000 + i);
		completions_post_recv(test, this->hqp, 3000 + i);
		cqe.wqe = (2 * i + 1) % COMPLETIONS_WQES * 64;
		recv.wqe = i % COMPLETIONS_WQES * 64;
		completions_put(this, &cqe);
		completions_put(this, &recv);
		KUNIT_ASSERT_EQ(test, 2, completions_poll(this, 3, wc));
		KUNIT_EXPECT_EQ(test, 2000 + i, wc[0].wr_id);
		KUNIT_EXPECT_EQ(test, 3000 + i, wc[1].wr_id);
		KUNIT_EXPECT_EQ(test, U32_MAX - 7 + 2 * (i + 1), le32_at(this->hcq->dbr.record, 0));
	}
	KUNIT_EXPECT_EQ(test, 40, this->hqp->sq.tail);
	KUNIT_EXPECT_EQ(test, 20, this->hqp->rq.tail);
}

/* ------------------------------------------------------------------ */
/* Arming                                                               */

static const struct completions_arm {
	const char *name;
	enum ib_cq_notify_flags flags;
	u32 command;	/* of the doorbell's high word, 31:24 */
	bool there;	/* a CQE is there */
	int ret;
} completions_arms[] = {
	{ "next", IB_CQ_NEXT_COMP, 2, false, 0 },
	{ "solicited", IB_CQ_SOLICITED, 1, false, 0 },
	{ "next, a CQE is there", IB_CQ_NEXT_COMP, 2, true, 0 },
	{ "next, missed ones told", IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS, 2, true, 1 },
	{ "next, nothing missed", IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS, 2, false, 0 },
	{ "solicited, missed ones told", IB_CQ_SOLICITED | IB_CQ_REPORT_MISSED_EVENTS, 1, true, 1 },
};

static void completions_arm_name(const struct completions_arm *arm, char *desc)
{
	strscpy(desc, arm->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(completions_arm, completions_arms, completions_arm_name);

static void completions_arm(struct kunit *test)
{
	const struct completions_arm *param = test->param_value;
	struct completions *this = test->priv;
	const struct completions_cqe cqe = { .qpn = 0x3333 };
	struct ib_wc wc;
	int i;

	for (i = 0; i < 3; i++)
		completions_put(this, &cqe);
	KUNIT_ASSERT_EQ(test, 0, completions_poll(this, 1, &wc));
	if (param->there)
		completions_put(this, &cqe);
	fake_doorbell(this->fake, 0x10);
	KUNIT_EXPECT_EQ(test, param->ret, hghca_req_notify_cq(&this->hcq->ibcq, param->flags));
	/* high: command 31:24, CQN 23:0; low: consumer index */
	KUNIT_EXPECT_EQ(test, (u64)(param->command << 24 | this->hcq->hw.cqn) << 32 | 3,
			fake_doorbell(this->fake, 0x10));
}

/* Its number may be another CQ's soon. */
static void completions_arm_dying(struct kunit *test)
{
	struct completions *this = test->priv;
	struct hghca_cq *hcq = fake_new_cq(this->fake, 7);

	KUNIT_ASSERT_NOT_NULL(test, hcq);
	KUNIT_EXPECT_EQ(test, 0, hghca_pre_destroy_cq(&hcq->ibcq));
	fake_doorbell(this->fake, 0x10);
	KUNIT_EXPECT_EQ(test, 0, hghca_req_notify_cq(&hcq->ibcq, IB_CQ_NEXT_COMP));
	KUNIT_EXPECT_EQ(test, 0, fake_doorbell(this->fake, 0x10));
	hghca_post_destroy_cq(&hcq->ibcq);
	kfree(hcq);
}

/* ------------------------------------------------------------------ */
/* A QP's CQEs dropped; another buffer                                  */

/* Reset drops a QP's completions; those of others stay, in order. */
static void completions_purge(struct kunit *test)
{
	struct completions *this = test->priv;
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };
	struct completions_cqe mine = { .qpn = this->hqp->hw.qpn, .opcode = 0x0a, .is_send = 1 };
	struct completions_cqe others = { .qpn = this->other->hw.qpn, .opcode = 0x64 };
	struct ib_wc wc[4];
	int i;

	for (i = 0; i < 3; i++) {
		completions_post(test, this->hqp, IB_WR_SEND, i);
		completions_post_recv(test, this->other, 100 + i);
		mine.wqe = i * 64;
		others.wqe = i * 64;
		completions_put(this, i == 1 ? &others : &mine);
		completions_put(this, i == 1 ? &mine : &others);
	}
	KUNIT_ASSERT_EQ(test, 0, hghca_modify_qp(&this->hqp->ibqp, &attr, IB_QP_STATE, NULL));
	KUNIT_EXPECT_EQ(test, 3, le32_at(this->hcq->dbr.record, 0));
	KUNIT_ASSERT_EQ(test, 3, completions_poll(this, 4, wc));
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, 100 + i, wc[i].wr_id);
		KUNIT_EXPECT_EQ(test, IB_WC_SUCCESS, wc[i].status);
	}
	KUNIT_EXPECT_EQ(test, 6, this->hcq->cons_index);
	KUNIT_EXPECT_EQ(test, 0, this->hqp->sq.head);
}

static const struct completions_resize {
	const char *name;
	int cqe;
	u32 log_size;
} completions_resizes[] = {
	{ "larger", 31, 5 },
	{ "much larger", 5000, 13 },
	{ "smaller", 3, 2 },
};

static void completions_resize_name(const struct completions_resize *resize, char *desc)
{
	strscpy(desc, resize->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(completions_resize, completions_resizes, completions_resize_name);

/* What was not polled is found in the new buffer, at the same indices. */
static void completions_resize(struct kunit *test)
{
	const struct completions_resize *param = test->param_value;
	struct completions *this = test->priv;
	struct completions_cqe cqe = { .qpn = this->hqp->hw.qpn, .opcode = 0x04 };
	struct fake_command *cmd = NULL;
	u32 mark, i;
	struct ib_wc wc[4];

	/* Indices 6 to 8: around the end of the old buffer. */
	this->produced = 6;
	this->hcq->cons_index = 6;
	for (i = 0; i < 3; i++) {
		completions_post_recv(test, this->hqp, i);
		cqe.wqe = i * 64;
		completions_put(this, &cqe);
	}
	mark = fake_mark(this->fake);
	KUNIT_ASSERT_EQ(test, 0, hghca_resize_user_cq(&this->hcq->ibcq, param->cqe, NULL));
	for (; mark != fake_mark(this->fake); mark++)
		if (fake_nth(this->fake, mark)->op == 0x2c)
			cmd = fake_nth(this->fake, mark);
	KUNIT_ASSERT_NOT_NULL(test, cmd);
	KUNIT_EXPECT_EQ(test, this->hcq->hw.cqn, cmd->in_modifier);
	KUNIT_EXPECT_EQ(test, param->log_size << 24, be32_at(cmd->mailbox, 0));
	KUNIT_EXPECT_EQ(test, this->hcq->queue.mr.key, be32_at(cmd->mailbox, 4));
	KUNIT_EXPECT_EQ(test, BIT(param->log_size) - 1, this->hcq->ibcq.cqe);

	KUNIT_ASSERT_EQ(test, 3, completions_poll(this, 4, wc));
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, i, wc[i].wr_id);
	KUNIT_EXPECT_EQ(test, 9, this->hcq->cons_index);
}

static enum fake_end completions_no_resize(struct fake *fake, const struct fake_command *cmd,
					   struct fake_answer *answer)
{
	if (cmd->op == 0x2c)
		answer->status = 0x40;
	return FAKE_ANSWERED;
}

static void completions_resize_refused(struct kunit *test)
{
	struct completions *this = test->priv;
	u32 key = this->hcq->queue.mr.key;

	this->fake->answer = completions_no_resize;
	/* BAD_SIZE: too many outstanding for the smaller buffer; out of memory for a larger. */
	KUNIT_EXPECT_EQ(test, -EINVAL, hghca_resize_user_cq(&this->hcq->ibcq, 3, NULL));
	KUNIT_EXPECT_EQ(test, -ENOMEM, hghca_resize_user_cq(&this->hcq->ibcq, 100, NULL));
	KUNIT_EXPECT_EQ(test, key, this->hcq->queue.mr.key);
	KUNIT_EXPECT_EQ(test, 3, this->hcq->log_size);
	KUNIT_EXPECT_NULL(test, this->hcq->resize);
	KUNIT_EXPECT_EQ(test, -EINVAL, hghca_resize_user_cq(&this->hcq->ibcq, 0, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, hghca_resize_user_cq(&this->hcq->ibcq, 1 << 22, NULL));
	/* The size there is already takes no command. */
	KUNIT_EXPECT_EQ(test, 0, hghca_resize_user_cq(&this->hcq->ibcq, 7, NULL));
}

/* ------------------------------------------------------------------ */
/* Creation                                                             */

static const struct completions_size {
	const char *name;
	int cqe;
	u32 log_size;
} completions_sizes[] = {
	{ "1 CQE", 1, 1 },
	{ "2 CQEs: one entry more tells full from empty", 2, 2 },
	{ "3 CQEs", 3, 2 },
	{ "4 CQEs", 4, 3 },
	{ "127 CQEs: a page", 127, 7 },
	{ "128 CQEs", 128, 8 },
	{ "65,535 CQEs", 65535, 16 },
};

static void completions_size_name(const struct completions_size *size, char *desc)
{
	strscpy(desc, size->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(completions_size, completions_sizes, completions_size_name);

static void completions_context(struct kunit *test)
{
	const struct completions_size *param = test->param_value;
	struct completions *this = test->priv;
	struct hghca_cq *hcq = fake_cq(test, this->fake, param->cqe);
	struct fake_command *cmd = fake_nth(this->fake, fake_mark(this->fake) - 1);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, cmd);
	KUNIT_ASSERT_EQ(test, 0x16, cmd->op);
	KUNIT_EXPECT_EQ(test, hcq->hw.cqn, cmd->in_modifier);
	KUNIT_EXPECT_EQ(test, BIT(18), be32_at(cmd->mailbox, 0x00));	/* TR */
	KUNIT_EXPECT_EQ(test, 0, be64_at(cmd->mailbox, 0x04));
	KUNIT_EXPECT_EQ(test, param->log_size << 24, be32_at(cmd->mailbox, 0x0c));
	KUNIT_EXPECT_EQ(test, fake_eq(this->fake, 2)->eqn, be32_at(cmd->mailbox, 0x10));
	KUNIT_EXPECT_EQ(test, this->fake->hdev->pdn, be32_at(cmd->mailbox, 0x14));
	KUNIT_EXPECT_EQ(test, hcq->queue.mr.key, be32_at(cmd->mailbox, 0x18));
	KUNIT_EXPECT_NULL(test, memchr_inv(cmd->mailbox + 0x1c, 0, 0x10));
	KUNIT_EXPECT_EQ(test, hcq->hw.cqn, be32_at(cmd->mailbox, 0x2c));
	KUNIT_EXPECT_EQ(test, hcq->dbr.dma | 1, be64_at(cmd->mailbox, 0x30));
	KUNIT_EXPECT_NULL(test, memchr_inv(cmd->mailbox + 0x38, 0, 0x40 - 0x38));
	KUNIT_EXPECT_EQ(test, BIT(param->log_size) - 1, hcq->ibcq.cqe);
	/* Every CQE is the device's to start with. */
	for (i = 0; i < BIT(param->log_size); i++)
		if (*(u8 *)(hghca_queue_at(&hcq->queue, i * 32) + 31) != 0x80)
			KUNIT_FAIL_AND_ABORT(test, "CQE %u is not the device's", i);
}

static const struct completions_user {
	const char *name;
	u32 flags;	/* as a user gives them */
	u32 expected;	/* of the context: TR 18, TIMESTAMP 19 */
} completions_users[] = {
	{ "plain", 0, 0x00040000 },
	{ "with timestamps", IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION, 0x000c0000 },
};

KUNIT_ARRAY_PARAM_DESC(completions_user, completions_users, name);

/* A user's: with its UAR, in its buffer; 64 CQEs of either size fit into a page. */
static void completions_context_user(struct kunit *test)
{
	const struct completions_user *param = test->param_value;
	struct completions *this = test->priv;
	unsigned long memory = fake_user_memory(test, 3 * PAGE_SIZE, PROT_READ | PROT_WRITE);
	struct uverbs_attr_bundle *bundle = kunit_kzalloc(test, sizeof(*bundle), GFP_KERNEL);
	struct hghca_ucontext *uctx = kunit_kzalloc(test, sizeof(*uctx), GFP_KERNEL);
	struct hghca_cq *hcq = kunit_kzalloc(test, sizeof(*hcq), GFP_KERNEL);
	const struct hghca_create_cq in = {
		.buf_addr = memory + PAGE_SIZE,
		.dbr_addr = memory + 2 * PAGE_SIZE + 64,
	};
	const struct ib_cq_init_attr attr = { .cqe = 63, .flags = param->flags };
	struct fake_command *cmd;
	u32 cqn;

	KUNIT_ASSERT_NOT_NULL(test, bundle);
	KUNIT_ASSERT_NOT_NULL(test, uctx);
	KUNIT_ASSERT_NOT_NULL(test, hcq);
	hghca_user_pages_init(&uctx->dbr_pages);
	uctx->uar.index = COMPLETIONS_UAR;
	uctx->ibuctx.device = &this->fake->hdev->ibdev;
	bundle->context = &uctx->ibuctx;
	bundle->driver_udata.inbuf = (void __user *)memory;
	bundle->driver_udata.inlen = sizeof(in);
	bundle->driver_udata.outbuf = (void __user *)(memory + 64);
	bundle->driver_udata.outlen = sizeof(struct hghca_create_cq_resp);
	KUNIT_ASSERT_EQ(test, 0, copy_to_user((void __user *)memory, &in, sizeof(in)));
	hcq->ibcq.device = &this->fake->hdev->ibdev;
	KUNIT_ASSERT_EQ(test, 0, hghca_create_user_cq(&hcq->ibcq, &attr, bundle));

	cmd = fake_nth(this->fake, fake_mark(this->fake) - 1);
	KUNIT_ASSERT_EQ(test, 0x16, cmd->op);
	KUNIT_EXPECT_EQ(test, param->expected, be32_at(cmd->mailbox, 0x00));
	KUNIT_EXPECT_EQ(test, 6 << 24 | COMPLETIONS_UAR, be32_at(cmd->mailbox, 0x0c));
	KUNIT_EXPECT_EQ(test, this->fake->hdev->pdn, be32_at(cmd->mailbox, 0x14));
	KUNIT_EXPECT_EQ(test, hcq->queue.mr.key, be32_at(cmd->mailbox, 0x18));
	KUNIT_EXPECT_EQ(test, 64 | 1, be64_at(cmd->mailbox, 0x30) & 0xfff);
	KUNIT_EXPECT_EQ(test, 0, get_user(cqn, (u32 __user *)(memory + 64)));
	KUNIT_EXPECT_EQ(test, cqn, be32_at(cmd->mailbox, 0x2c));
	KUNIT_EXPECT_EQ(test, 0, hghca_destroy_cq(&hcq->ibcq, fake_no_udata(bundle)));
	KUNIT_EXPECT_TRUE(test, list_empty(&uctx->dbr_pages.list));
}

static const struct completions_bad_create {
	const char *name;
	struct ib_cq_init_attr attr;
	int err;
} completions_bad_creates[] = {
	{ "no CQE", { .cqe = 0 }, -EINVAL },
	{ "more CQEs than there may be", { .cqe = 1 << 22 }, -EINVAL },
	{ "a vector that is not there", { .cqe = 1, .comp_vector = 2 }, -EINVAL },
	{ "timestamps for the kernel", { .cqe = 1, .flags = 1 }, -EOPNOTSUPP },
	{ "overrun ignored", { .cqe = 1, .flags = 2 }, -EOPNOTSUPP },
	{ "flags to come", { .cqe = 1, .flags = 4 }, -EOPNOTSUPP },
};

static void completions_bad_create_name(const struct completions_bad_create *param, char *desc)
{
	strscpy(desc, param->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(completions_bad_create, completions_bad_creates, completions_bad_create_name);

static void completions_bad_create(struct kunit *test)
{
	const struct completions_bad_create *param = test->param_value;
	struct completions *this = test->priv;
	struct hghca_cq *hcq = kunit_kzalloc(test, sizeof(*hcq), GFP_KERNEL);
	u32 mark = fake_mark(this->fake);

	KUNIT_ASSERT_NOT_NULL(test, hcq);
	hcq->ibcq.device = &this->fake->hdev->ibdev;
	KUNIT_EXPECT_EQ(test, param->err, hghca_create_cq(&hcq->ibcq, &param->attr, NULL));
	KUNIT_EXPECT_EQ(test, mark, fake_mark(this->fake));
}

static struct kunit_case completions_cases[] = {
	KUNIT_CASE_PARAM(completions_send_error, completions_syndrome_gen_params),
	KUNIT_CASE_PARAM(completions_recv_error, completions_syndrome_gen_params),
	KUNIT_CASE_PARAM(completions_datagram_error, completions_syndrome_gen_params),
	KUNIT_CASE(completions_foreign_address),
	KUNIT_CASE_PARAM(completions_send_opcode, completions_send_gen_params),
	KUNIT_CASE_PARAM(completions_send_other_opcode, completions_send_gen_params),
	KUNIT_CASE_PARAM(completions_recv_opcode, completions_recv_gen_params),
	KUNIT_CASE_PARAM(completions_datagram, completions_datagram_gen_params),
	KUNIT_CASE_PARAM(completions_hostile, completions_hostile_gen_params),
	KUNIT_CASE(completions_twice),
	KUNIT_CASE(completions_wrong_cq),
	KUNIT_CASE_PARAM(completions_owner, completions_owner_gen_params),
	KUNIT_CASE(completions_gap),
	KUNIT_CASE(completions_flood),
	KUNIT_CASE(completions_wrap),
	KUNIT_CASE_PARAM(completions_arm, completions_arm_gen_params),
	KUNIT_CASE(completions_arm_dying),
	KUNIT_CASE(completions_purge),
	KUNIT_CASE_PARAM(completions_resize, completions_resize_gen_params),
	KUNIT_CASE(completions_resize_refused),
	KUNIT_CASE_PARAM(completions_context, completions_size_gen_params),
	KUNIT_CASE_PARAM(completions_context_user, completions_user_gen_params),
	KUNIT_CASE_PARAM(completions_bad_create, completions_bad_create_gen_params),
	{}
};

static struct kunit_suite completions_suite = {
	.name = "hghca_completions",
	.suite_init = fake_suite_init,
	.suite_exit = fake_suite_exit,
	.init = completions_init,
	.test_cases = completions_cases,
};

kunit_test_suite(completions_suite);
