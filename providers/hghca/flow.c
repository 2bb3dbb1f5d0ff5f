/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* JingZhao HCA: flow rules, which steer frames to raw packet QPs. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include "hghca.h"

/* The kernel checks the rule, and requires CAP_NET_RAW. */
struct ibv_flow *hghca_create_flow(struct ibv_qp *ibqp, struct ibv_flow_attr *attr)
{
	struct ibv_flow *flow;
	int err;

	flow = calloc(1, sizeof(*flow));
	if (!flow) {
		errno = ENOMEM;
		return NULL;
	}
	err = ibv_cmd_create_flow(ibqp, flow, attr, NULL, 0);
	if (err) {
		free(flow);
		errno = err;
		return NULL;
	}
	return flow;
}

int hghca_destroy_flow(struct ibv_flow *flow)
{
	int err = ibv_cmd_destroy_flow(flow);

	if (!err)
		free(flow);
	return hghca_errno(err);
}
