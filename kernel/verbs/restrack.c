// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: data of objects for "rdma resource", in addition to that of ib_core.
 * Details are data of the driver.  Raw dumps are big-endian contexts that the device
 * returns (document 4.9, 4.15, 4.19).
 */
#include <rdma/rdma_netlink.h>
#include <rdma/restrack.h>

#include "verbs/verbs.h"

enum hghca_detail_form {
	HGHCA_DETAIL_NUMBER,
	HGHCA_DETAIL_HEX,
};

struct hghca_detail {
	const char *name;
	u64 value;
	enum hghca_detail_form form;
};

/* Returns 0 or -EMSGSIZE. */
static int hghca_put_details(struct sk_buff *msg, const struct hghca_detail *details,
			     unsigned int count)
{
	struct nlattr *table;
	unsigned int i;
	int ret;

	table = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	if (!table)
		return -EMSGSIZE;
	for (i = 0; i < count; i++) {
		if (details[i].form == HGHCA_DETAIL_HEX)
			ret = rdma_nl_put_driver_u64_hex(msg, details[i].name, details[i].value);
		else
			ret = rdma_nl_put_driver_u64(msg, details[i].name, details[i].value);
		if (ret)
			goto err_cancel;
	}
	nla_nest_end(msg, table);
	return 0;

err_cancel:
	nla_nest_cancel(msg, table);
	return -EMSGSIZE;
}

/*
 * End a raw dump; @ret is the result of the query.  An object that the device does not
 * have now is skipped: an error would end the dump of all objects.
 */
static int hghca_put_raw(struct sk_buff *msg, const void *context, size_t size, int ret)
{
	if (ret == -EBADF)
		return -EAGAIN;
	return ret ?: nla_put(msg, RDMA_NLDEV_ATTR_RES_RAW, size, context);
}

/* Details of a QP with a table of receive work queues. */
static int hghca_fill_res_rss_qp_entry(struct sk_buff *msg, struct ib_qp *ibqp)
{
	const struct hghca_qp *hqp = to_hqp(ibqp);
	const struct hghca_detail details[] = {
		{ "rss_group", hqp->rss_group },
		{ "rss_entries", BIT(ibqp->rwq_ind_tbl->log_ind_tbl_size) },
		{ "uar_page", hqp->uctx->uar.index },
	};

	return hghca_put_details(msg, details, ARRAY_SIZE(details));
}

/**
 * hghca_fill_res_qp_entry - dump details of a QP
 * @msg: output
 * @ibqp: the QP
 *
 * Return: 0 or -EMSGSIZE; the same for details of all objects.
 */
int hghca_fill_res_qp_entry(struct sk_buff *msg, struct ib_qp *ibqp)
{
	const struct hghca_qp *hqp = to_hqp(ibqp);
	const struct hghca_detail details[] = {
		{ "sq_wqes", hqp->sq.num_wqes },
		{ "sq_stride", BIT(hqp->sq.log_stride) },
		{ "rq_wqes", hqp->rq.num_wqes },
		{ "rq_stride", BIT(hqp->rq.log_stride) },
		{ "uar_page", hqp->uctx ? hqp->uctx->uar.index : 0 },
		{ "send_cqn", hghca_cqn_of(ibqp->send_cq), HGHCA_DETAIL_HEX },
		{ "recv_cqn", hghca_cqn_of(ibqp->recv_cq), HGHCA_DETAIL_HEX },
		{ "srqn", ibqp->srq ? to_hsrq(ibqp->srq)->hw.srqn : 0, HGHCA_DETAIL_HEX },
		/* Only of a kernel QP: a user has its own counts. */
		{ "sq_posted", READ_ONCE(hqp->sq.head) },
		{ "sq_completed", READ_ONCE(hqp->sq.tail) },
		{ "rq_posted", READ_ONCE(hqp->rq.head) },
		{ "rq_completed", READ_ONCE(hqp->rq.tail) },
	};

	if (ibqp->rwq_ind_tbl)
		return hghca_fill_res_rss_qp_entry(msg, ibqp);
	return hghca_put_details(msg, details, ARRAY_SIZE(details) - (hqp->user ? 4 : 0));
}

/**
 * hghca_fill_res_qp_entry_raw - dump the context of a QP, struct hghca_qpc
 * @msg: output
 * @ibqp: the QP
 *
 * Return: 0, -EMSGSIZE, -EAGAIN for an object that the device does not have, or an
 * error of the command; the same for raw dumps of all objects.
 */
int hghca_fill_res_qp_entry_raw(struct sk_buff *msg, struct ib_qp *ibqp)
{
	struct hghca_qpc qpc;
	int ret;

	/* A QP with a table has no context. */
	if (ibqp->rwq_ind_tbl)
		return -EAGAIN;
	ret = hghca_cmd_query_qp(to_hdev(ibqp->device), to_hqp(ibqp)->hw.qpn, &qpc);
	return hghca_put_raw(msg, &qpc, sizeof(qpc), ret);
}

/**
 * hghca_fill_res_cq_entry - dump details of a CQ
 * @msg: output
 * @ibcq: the CQ
 *
 * Return: 0 or -EMSGSIZE.
 */
int hghca_fill_res_cq_entry(struct sk_buff *msg, struct ib_cq *ibcq)
{
	struct hghca_cq *hcq = to_hcq(ibcq);
	const struct hghca_detail details[] = {
		{ "hw_cqn", hcq->hw.cqn, HGHCA_DETAIL_HEX },
		{ "hw_cqes", BIT(READ_ONCE(hcq->log_size)) },
		{ "uar_page", hcq->uctx ? hcq->uctx->uar.index : 0 },
		/* Only of a kernel CQ. */
		{ "consumed", READ_ONCE(hcq->cons_index) },
	};

	return hghca_put_details(msg, details, ARRAY_SIZE(details) - (hcq->uctx ? 1 : 0));
}

/**
 * hghca_fill_res_cq_entry_raw - dump the contexts of a CQ and of its EQ
 * @msg: output, struct hghca_cqc followed by struct hghca_eqc
 * @ibcq: the CQ
 *
 * Return: see hghca_fill_res_qp_entry_raw().
 */
int hghca_fill_res_cq_entry_raw(struct sk_buff *msg, struct ib_cq *ibcq)
{
	struct hghca_dev *hdev = to_hdev(ibcq->device);
	struct {
		struct hghca_cqc cqc;
		struct hghca_eqc eqc;
	} raw;
	int ret;

	ret = hghca_cmd_query_cq(hdev, to_hcq(ibcq)->hw.cqn, &raw.cqc);
	if (!ret)
		ret = hghca_cmd_query_eq(hdev, be32_to_cpu(raw.cqc.comp_eqn), &raw.eqc);
	return hghca_put_raw(msg, &raw, sizeof(raw), ret);
}

/**
 * hghca_fill_res_mr_entry - dump details of an MR
 * @msg: output
 * @ibmr: the MR
 *
 * Return: 0 or -EMSGSIZE.
 */
int hghca_fill_res_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr)
{
	const struct hghca_mr *hmr = to_hmr(ibmr);
	const struct hghca_detail details[] = {
		{ "mtts", hmr->hw.mtts.count },
		{ "first_mtt", hmr->hw.mtts.first },
		/* Only of an MR of a user. */
		{ "iova", hmr->attr.start, HGHCA_DETAIL_HEX },
		{ "access", hmr->access, HGHCA_DETAIL_HEX },
		{ "page_size", BIT_ULL(hmr->attr.page_shift) },
	};

	return hghca_put_details(msg, details,
				 ARRAY_SIZE(details) - (hmr->attr.page_shift ? 0 : 3));
}

/**
 * hghca_fill_res_mr_entry_raw - dump the entry of an MR, struct hghca_mpt
 * @msg: output
 * @ibmr: the MR
 *
 * Return: see hghca_fill_res_qp_entry_raw().
 */
int hghca_fill_res_mr_entry_raw(struct sk_buff *msg, struct ib_mr *ibmr)
{
	struct hghca_mpt mpt;
	int ret;

	ret = hghca_hwmr_query(to_hdev(ibmr->device), &to_hmr(ibmr)->hw, &mpt);
	return hghca_put_raw(msg, &mpt, sizeof(mpt), ret);
}

/**
 * hghca_fill_res_srq_entry - dump details of an SRQ
 * @msg: output
 * @ibsrq: the SRQ
 *
 * Return: 0 or -EMSGSIZE.
 */
int hghca_fill_res_srq_entry(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	struct hghca_srq *hsrq = to_hsrq(ibsrq);
	const struct hghca_detail details[] = {
		{ "hw_srqn", hsrq->hw.srqn, HGHCA_DETAIL_HEX },
		{ "wqes", READ_ONCE(hsrq->num_wqes) },
		{ "stride", BIT(hsrq->log_stride) },
		/* Only of a kernel SRQ. */
		{ "posted", READ_ONCE(hsrq->posted) },
	};

	return hghca_put_details(msg, details, ARRAY_SIZE(details) - (hsrq->uctx ? 1 : 0));
}

/**
 * hghca_fill_res_srq_entry_raw - dump the context of an SRQ, struct hghca_srqc
 * @msg: output
 * @ibsrq: the SRQ
 *
 * Return: see hghca_fill_res_qp_entry_raw().
 */
int hghca_fill_res_srq_entry_raw(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	struct hghca_srqc srqc;
	int ret;

	ret = hghca_cmd_query_srq(to_hdev(ibsrq->device), to_hsrq(ibsrq)->hw.srqn, &srqc);
	return hghca_put_raw(msg, &srqc, sizeof(srqc), ret);
}
