/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * ERNIC and ETRNIC: the verbs provider.  A send WQE names memory by its bus address, so no
 * process maps a queue or a register: all verbs are commands to the kernel, which checks
 * what a work request names.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include <infiniband/driver.h>
#include <rdma/ernic-abi.h>

#include "ernic_hw.h"

#define ERNIC_KERNEL_WC_WITH_INV	(1U << 2)

struct ernic_context {
	struct verbs_context vctx;
};

static int ernic_query_device_ex(struct ibv_context *context,
				 const struct ibv_query_device_ex_input *input,
				 struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct ib_uverbs_ex_query_device_resp resp;
	size_t resp_size = sizeof(resp);

	return ibv_cmd_query_device_any(context, input, attr, attr_size, &resp, &resp_size);
}

static int ernic_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr)
{
	struct ibv_query_port cmd;

	return ibv_cmd_query_port(context, port, attr, &cmd, sizeof(cmd));
}

static struct ibv_pd *ernic_alloc_pd(struct ibv_context *context)
{
	struct ib_uverbs_alloc_pd_resp resp;
	struct ibv_alloc_pd cmd;
	struct ibv_pd *pd;
	int err;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	err = ibv_cmd_alloc_pd(context, pd, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (err) {
		free(pd);
		errno = err;
		return NULL;
	}
	return pd;
}

static int ernic_dealloc_pd(struct ibv_pd *pd)
{
	int err = ibv_cmd_dealloc_pd(pd);

	if (!err)
		free(pd);
	return err;
}

static struct ibv_mr *ernic_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t hca_va,
				   int access)
{
	struct ib_uverbs_reg_mr_resp resp;
	struct ibv_reg_mr cmd;
	struct verbs_mr *vmr;
	int err;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;
	err = ibv_cmd_reg_mr(pd, addr, length, hca_va, access, vmr, &cmd, sizeof(cmd), &resp,
			     sizeof(resp));
	if (err) {
		free(vmr);
		errno = err;
		return NULL;
	}
	return &vmr->ibv_mr;
}

static int ernic_dereg_mr(struct verbs_mr *vmr)
{
	int err = ibv_cmd_dereg_mr(vmr);

	if (!err)
		free(vmr);
	return err;
}

static struct ibv_cq *ernic_create_cq(struct ibv_context *context, int cqe,
				      struct ibv_comp_channel *channel, int comp_vector)
{
	struct ib_uverbs_create_cq_resp resp = {};
	struct ibv_create_cq cmd = {};
	struct verbs_cq *vcq;
	int err;

	vcq = calloc(1, sizeof(*vcq));
	if (!vcq)
		return NULL;
	err = ibv_cmd_create_cq(context, cqe, channel, comp_vector, &vcq->cq, &cmd, sizeof(cmd),
				&resp, sizeof(resp));
	if (err) {
		free(vcq);
		errno = err;
		return NULL;
	}
	return &vcq->cq;
}

static int ernic_resize_cq(struct ibv_cq *cq, int cqe)
{
	struct ib_uverbs_resize_cq_resp resp = {};
	struct ibv_resize_cq cmd = {};

	return ibv_cmd_resize_cq(cq, cqe, &cmd, sizeof(cmd), &resp, sizeof(resp));
}

static int ernic_destroy_cq(struct ibv_cq *cq)
{
	int err = ibv_cmd_destroy_cq(cq);

	if (!err)
		free(container_of(cq, struct verbs_cq, cq));
	return err;
}

static struct ibv_qp *ernic_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ib_uverbs_create_qp_resp resp = {};
	struct ibv_create_qp cmd = {};
	struct verbs_qp *vqp;
	int err;

	vqp = calloc(1, sizeof(*vqp));
	if (!vqp)
		return NULL;
	err = ibv_cmd_create_qp(pd, &vqp->qp, attr, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (err) {
		free(vqp);
		errno = err;
		return NULL;
	}
	return &vqp->qp;
}

static int ernic_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct ibv_modify_qp cmd = {};

	return ibv_cmd_modify_qp(qp, attr, mask, &cmd, sizeof(cmd));
}

static int ernic_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
			  struct ibv_qp_init_attr *init)
{
	struct ibv_query_qp cmd;

	return ibv_cmd_query_qp(qp, attr, mask, init, &cmd, sizeof(cmd));
}

static int ernic_destroy_qp(struct ibv_qp *qp)
{
	int err = ibv_cmd_destroy_qp(qp);

	if (!err)
		free(container_of(qp, struct verbs_qp, qp));
	return err;
}

/* This command has the kernel's flags, of which that of invalidation is another one. */
static int ernic_poll_cq(struct ibv_cq *cq, int num, struct ibv_wc *wc)
{
	int polled = ibv_cmd_poll_cq(cq, num, wc);
	int i;

	for (i = 0; i < polled; i++)
		if (wc[i].wc_flags & ERNIC_KERNEL_WC_WITH_INV)
			wc[i].wc_flags ^= ERNIC_KERNEL_WC_WITH_INV | IBV_WC_WITH_INV;
	return polled;
}

static void ernic_free_context(struct ibv_context *context)
{
	struct ernic_context *ctx = container_of(context, struct ernic_context, vctx.context);

	verbs_uninit_context(&ctx->vctx);
	free(ctx);
}

static const struct verbs_context_ops ernic_context_ops = {
	.alloc_pd = ernic_alloc_pd,
	.create_cq = ernic_create_cq,
	.create_qp = ernic_create_qp,
	.dealloc_pd = ernic_dealloc_pd,
	.dereg_mr = ernic_dereg_mr,
	.destroy_cq = ernic_destroy_cq,
	.destroy_qp = ernic_destroy_qp,
	.free_context = ernic_free_context,
	.modify_qp = ernic_modify_qp,
	.poll_cq = ernic_poll_cq,
	.post_recv = ibv_cmd_post_recv,
	.post_send = ibv_cmd_post_send,
	.query_device_ex = ernic_query_device_ex,
	.query_port = ernic_query_port,
	.query_qp = ernic_query_qp,
	.reg_mr = ernic_reg_mr,
	.req_notify_cq = ibv_cmd_req_notify_cq,
	.resize_cq = ernic_resize_cq,
};

static struct verbs_context *ernic_alloc_context(struct ibv_device *device, int cmd_fd,
						 void *private_data)
{
	struct ib_uverbs_get_context_resp resp = {};
	struct ibv_get_context cmd = {};
	struct ernic_context *ctx;
	int err;

	ctx = verbs_init_and_alloc_context(device, cmd_fd, ctx, vctx, RDMA_DRIVER_UNKNOWN);
	if (!ctx)
		return NULL;
	err = ibv_cmd_get_context(&ctx->vctx, &cmd, sizeof(cmd), NULL, &resp, sizeof(resp));
	if (err) {
		verbs_uninit_context(&ctx->vctx);
		free(ctx);
		errno = err;
		return NULL;
	}
	verbs_set_ops(&ctx->vctx, &ernic_context_ops);
	return &ctx->vctx;
}

static struct verbs_device *ernic_device_alloc(struct verbs_sysfs_dev *sysfs_dev)
{
	return calloc(1, sizeof(struct verbs_device));
}

static void ernic_device_free(struct verbs_device *vdev)
{
	free(vdev);
}

static const struct verbs_match_ent ernic_match_table[] = {
	VERBS_PCI_MATCH(ERNIC_PCI_VENDOR_ID, ERNIC_PCI_DEVICE_ID, NULL),
	/* One that no PCI function carries. */
	VERBS_NAME_MATCH("ernic", NULL),
	{},
};

static const struct verbs_device_ops ernic_device_ops = {
	.name = "ernic",
	.match_min_abi_version = ERNIC_UVERBS_ABI_VERSION,
	.match_max_abi_version = ERNIC_UVERBS_ABI_VERSION,
	.match_table = ernic_match_table,
	.alloc_device = ernic_device_alloc,
	.uninit_device = ernic_device_free,
	.alloc_context = ernic_alloc_context,
};
PROVIDER_DRIVER(ernic, ernic_device_ops);
