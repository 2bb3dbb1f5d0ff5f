/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* JingZhao HCA: the kernel driver's part of each command and response. */
#ifndef HGHCA_PROVIDER_ABI_H
#define HGHCA_PROVIDER_ABI_H

#include <infiniband/kern-abi.h>
#include <rdma/hghca-abi.h>
#include <kernel-abi/hghca-abi.h>

DECLARE_DRV_CMD(hghca_ucmd_get_context, IB_USER_VERBS_CMD_GET_CONTEXT,
		empty, hghca_alloc_ucontext_resp);
DECLARE_DRV_CMD(hghca_ucmd_alloc_pd, IB_USER_VERBS_CMD_ALLOC_PD,
		empty, hghca_alloc_pd_resp);
DECLARE_DRV_CMD(hghca_ucmd_create_cq, IB_USER_VERBS_EX_CMD_CREATE_CQ,
		hghca_create_cq, hghca_create_cq_resp);
DECLARE_DRV_CMD(hghca_ucmd_resize_cq, IB_USER_VERBS_CMD_RESIZE_CQ,
		hghca_resize_cq_cmd, empty);
DECLARE_DRV_CMD(hghca_ucmd_create_qp, IB_USER_VERBS_CMD_CREATE_QP,
		hghca_create_qp, hghca_create_qp_resp);
DECLARE_DRV_CMD(hghca_ucmd_create_rss_qp, IB_USER_VERBS_EX_CMD_CREATE_QP,
		hghca_create_rss_qp, hghca_create_qp_resp);
DECLARE_DRV_CMD(hghca_ucmd_create_wq, IB_USER_VERBS_EX_CMD_CREATE_WQ,
		hghca_create_wq, empty);
DECLARE_DRV_CMD(hghca_ucmd_create_srq, IB_USER_VERBS_CMD_CREATE_SRQ,
		hghca_create_srq, hghca_create_srq_resp);
DECLARE_DRV_CMD(hghca_ucmd_create_xrc_srq, IB_USER_VERBS_CMD_CREATE_XSRQ,
		hghca_create_srq, hghca_create_srq_resp);
DECLARE_DRV_CMD(hghca_ucmd_modify_srq, IB_USER_VERBS_CMD_MODIFY_SRQ,
		hghca_modify_srq, empty);
DECLARE_DRV_CMD(hghca_ucmd_create_ah, IB_USER_VERBS_CMD_CREATE_AH,
		empty, hghca_create_ah_resp);

#endif /* HGHCA_PROVIDER_ABI_H */
