/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* JingZhao HCA: memory windows. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include "hghca.h"
#include "wqe.h"

struct ibv_mw *hghca_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ib_uverbs_alloc_mw_resp resp;
	struct ibv_alloc_mw cmd;
	struct ibv_mw *mw;
	int err;

	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) {
		err = EINVAL;
		goto err_errno;
	}

	mw = calloc(1, sizeof(*mw));
	if (!mw) {
		err = ENOMEM;
		goto err_errno;
	}

	err = ibv_cmd_alloc_mw(pd, type, mw, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (err)
		goto err_mw;
	return mw;

err_mw:
	free(mw);
err_errno:
	errno = err;
	return NULL;
}

int hghca_dealloc_mw(struct ibv_mw *mw)
{
	int err;

	err = ibv_cmd_dealloc_mw(mw);
	if (err)
		return hghca_errno(err);
	free(mw);
	return 0;
}

/* libibverbs has made sure that the window is of type 1 and of the region's PD. */
int hghca_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr wr = {
		.wr_id = bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = bind->send_flags,
		.bind_mw = {
			.mw = mw,
			.rkey = ibv_inc_rkey(mw->rkey),
			.bind_info = bind->bind_info,
		},
	};

	if (!hghca_bind_valid(&bind->bind_info))
		return hghca_errno(EINVAL);
	return hghca_errno(hghca_post_bind(to_hqp(qp), &wr));
}
