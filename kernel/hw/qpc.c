// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* JingZhao HCA: the context of a QP as it leaves RST. */
#include "hghca.h"

/**
 * hghca_qpc_init - set the fields of RST2INIT that are not verbs attributes
 * @qpc: the context; all other fields are zeroed
 * @attr: attributes of the QP
 */
void hghca_qpc_init(struct hghca_qpc *qpc, const struct hghca_qpc_attr *attr)
{
	*qpc = (struct hghca_qpc) {
		.flags = cpu_to_be32(FIELD_PREP(HGHCA_QPC_ST_MASK, attr->service)),
		.mtu_msgmax = FIELD_PREP(HGHCA_QPC_MTU_MASK, attr->mtu) |
			      FIELD_PREP(HGHCA_QPC_MSGMAX_MASK, attr->log_max_msg),
		.rq_entry_sz_log = attr->recv.log_stride,
		.sq_entry_sz_log = attr->send.log_stride,
		.usr_page = cpu_to_be32(attr->uar),
		.local_qpn = cpu_to_be32(attr->qpn),
		.port_pkey = cpu_to_be32(FIELD_PREP(HGHCA_QPC_PORT_MASK, HGHCA_PORT_NUM)),
		.pd = cpu_to_be32(attr->pdn),
		.wqe_base = cpu_to_be32(attr->recv.offset),
		.cqn_snd = cpu_to_be32(attr->send.cqn),
		.cqn_rcv = cpu_to_be32(attr->recv.cqn),
		.snd_wqe_base_l = cpu_to_be32(attr->send.key),
		.snd_wqe_len = cpu_to_be32(attr->send.bytes),
		.rcv_wqe_base_l = cpu_to_be32(attr->recv.key),
		.rcv_wqe_len = cpu_to_be32(attr->recv.bytes),
		.srqn = cpu_to_be32(attr->srqn),
		.xrcd = cpu_to_be32(attr->xrcdn),
		.dbr_addr = attr->dbr ? cpu_to_be64(attr->dbr | HGHCA_DBR_VALID) : 0,
		/* REG_MR can access all memory that the device can access. */
		.trust = cpu_to_be32((attr->reg_mr ? HGHCA_QPC_TRUST_REG_MR : 0) |
				     (attr->vendor_ops ? HGHCA_QPC_TRUST_VENDOR_OPS : 0)),
	};
}
