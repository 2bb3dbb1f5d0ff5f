/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* JingZhao HCA: the provider's registration, and the user context. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <infiniband/cmd_ioctl.h>

#include "hghca.h"
#include "hghca_abi.h"

static void hghca_free_context(struct ibv_context *context);

static const struct verbs_context_ops hghca_context_ops = {
	.advise_mr = hghca_advise_mr,
	.alloc_dm = hghca_alloc_dm,
	.alloc_mw = hghca_alloc_mw,
	.alloc_parent_domain = hghca_alloc_parent_domain,
	.alloc_pd = hghca_alloc_pd,
	.alloc_td = hghca_alloc_td,
	.attach_mcast = ibv_cmd_attach_mcast,
	.bind_mw = hghca_bind_mw,
	.close_xrcd = hghca_close_xrcd,
	.create_ah = hghca_create_ah,
	.create_cq = hghca_create_cq,
	.create_cq_ex = hghca_create_cq_ex,
	.create_flow = hghca_create_flow,
	.create_qp = hghca_create_qp,
	.create_qp_ex = hghca_create_qp_ex,
	.create_rwq_ind_table = hghca_create_rwq_ind_table,
	.create_srq = hghca_create_srq,
	.create_srq_ex = hghca_create_srq_ex,
	.create_wq = hghca_create_wq,
	.dealloc_mw = hghca_dealloc_mw,
	.dealloc_pd = hghca_dealloc_pd,
	.dealloc_td = hghca_dealloc_td,
	.dereg_mr = hghca_dereg_mr,
	.destroy_ah = hghca_destroy_ah,
	.destroy_cq = hghca_destroy_cq,
	.destroy_flow = hghca_destroy_flow,
	.destroy_qp = hghca_destroy_qp,
	.destroy_rwq_ind_table = hghca_destroy_rwq_ind_table,
	.destroy_srq = hghca_destroy_srq,
	.destroy_wq = hghca_destroy_wq,
	.detach_mcast = ibv_cmd_detach_mcast,
	.free_context = hghca_free_context,
	.free_dm = hghca_free_dm,
	.get_srq_num = hghca_get_srq_num,
	.import_dm = hghca_import_dm,
	.import_mr = hghca_import_mr,
	.import_pd = hghca_import_pd,
	.modify_cq = hghca_modify_cq,
	.modify_qp = hghca_modify_qp,
	.modify_srq = hghca_modify_srq,
	.modify_wq = hghca_modify_wq,
	.open_qp = hghca_open_qp,
	.open_xrcd = hghca_open_xrcd,
	.poll_cq = hghca_poll_cq,
	.post_recv = hghca_post_recv,
	.post_send = hghca_post_send,
	.post_srq_recv = hghca_post_srq_recv,
	.query_device_ex = hghca_query_device_ex,
	.query_port = hghca_query_port,
	.query_port_speed = hghca_query_port_speed,
	.query_qp = hghca_query_qp,
	.query_rt_values = hghca_query_rt_values,
	.query_srq = hghca_query_srq,
	.reg_dm_mr = hghca_reg_dm_mr,
	.reg_dmabuf_mr = hghca_reg_dmabuf_mr,
	.reg_mr = hghca_reg_mr,
	.req_notify_cq = hghca_req_notify_cq,
	.rereg_mr = hghca_rereg_mr,
	.resize_cq = hghca_resize_cq,
	.unimport_dm = hghca_unimport_dm,
	.unimport_mr = hghca_unimport_mr,
	.unimport_pd = hghca_unimport_pd,
};

static void hghca_get_limits(struct hghca_context *ctx,
			     const struct hghca_alloc_ucontext_resp *resp)
{
	ctx->max_qp_wr = resp->max_qp_wr;
	ctx->max_cqe = resp->max_cqe;
	ctx->max_sge = resp->max_sge;
	ctx->max_desc_sz = resp->max_desc_sz;
	ctx->max_sge_rq = resp->max_sge_rq;
	ctx->max_desc_sz_rq = resp->max_desc_sz_rq;
	ctx->max_srq_wr = resp->caps & HGHCA_CAP_SRQ ? resp->max_srq_wr : 0;
	ctx->max_srq_sge = resp->max_srq_sge;
	ctx->has_gid_table = resp->caps & HGHCA_CAP_GID_TABLE;
	ctx->has_dbr = resp->caps & HGHCA_CAP_DBR;
	ctx->has_cq_arm = resp->caps & HGHCA_CAP_CQ_ARM;
	ctx->has_cq_update = resp->caps & HGHCA_CAP_CQ_UPDATE;
	ctx->has_mem_mgt = resp->caps & HGHCA_CAP_MEM_MGT;
	ctx->has_xrc = resp->caps & HGHCA_CAP_XRC;
	ctx->has_clock = resp->caps & HGHCA_CAP_CLOCK;
	ctx->has_placement = resp->caps & HGHCA_CAP_PLACEMENT;
	ctx->has_raw = resp->caps & HGHCA_CAP_RAW_PACKET;
	ctx->has_device_memory = resp->caps & HGHCA_CAP_DEVICE_MEMORY;
	ctx->has_rss = resp->caps & HGHCA_CAP_RSS;
	ctx->has_vendor_ops = resp->caps & HGHCA_CAP_VENDOR_OPS;
}

/* Initialize the context from the kernel's response.  Returns 0 or an errno. */
static int hghca_start_context(struct hghca_context *ctx,
			       const struct hghca_alloc_ucontext_resp *resp)
{
	hghca_get_limits(ctx, resp);
	ctx->page_size = sysconf(_SC_PAGESIZE);
	ctx->single_threaded = check_env("HGHCA_SINGLE_THREADED");
	ctx->uar = mmap(NULL, HGHCA_UAR_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
			ctx->vctx.context.cmd_fd, resp->uar_mmap_offset);
	if (ctx->uar == MAP_FAILED)
		return errno;
	ctx->uar_index = resp->uar_index;

	pthread_mutex_init(&ctx->table_lock, NULL);
	pthread_cond_init(&ctx->table_cleared, NULL);
	pthread_mutex_init(&ctx->dbr_lock, NULL);
	list_head_init(&ctx->dbr_pages);
	hghca_idle_init(&ctx->idle);
	verbs_set_ops(&ctx->vctx, &hghca_context_ops);
	return 0;
}

static struct verbs_context *hghca_abandon_context(struct hghca_context *ctx, int err)
{
	verbs_uninit_context(&ctx->vctx);
	free(ctx);
	errno = err;
	return NULL;
}

static struct verbs_context *hghca_alloc_context(struct ibv_device *device,
						 int cmd_fd,
						 void *private_data)
{
	struct hghca_ucmd_get_context_resp resp = {};
	struct ibv_get_context cmd = {};
	struct hghca_context *ctx;
	int err;

	ctx = verbs_init_and_alloc_context(device, cmd_fd, ctx, vctx,
					   RDMA_DRIVER_UNKNOWN);
	if (!ctx)
		return NULL;

	err = ibv_cmd_get_context(&ctx->vctx, &cmd, sizeof(cmd), NULL,
				  &resp.ibv_resp, sizeof(resp));
	if (!err)
		err = hghca_start_context(ctx, &resp.drv_payload);
	return err ? hghca_abandon_context(ctx, err) : &ctx->vctx;
}

/* Another context of the same file: it has the same UAR page. */
static struct verbs_context *hghca_import_context(struct ibv_device *device, int cmd_fd)
{
	DECLARE_COMMAND_BUFFER(cmdb, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT, 1);
	struct hghca_alloc_ucontext_resp resp = {};
	struct hghca_context *ctx;
	int err;

	ctx = verbs_init_and_alloc_context(device, cmd_fd, ctx, vctx,
					   RDMA_DRIVER_UNKNOWN);
	if (!ctx)
		return NULL;

	fill_attr_out_ptr(cmdb, HGHCA_ATTR_QUERY_CONTEXT_RESP, &resp);
	err = ibv_cmd_query_context(&ctx->vctx.context, cmdb);
	if (!err)
		err = hghca_start_context(ctx, &resp);
	return err ? hghca_abandon_context(ctx, err) : &ctx->vctx;
}

static void hghca_free_context(struct ibv_context *context)
{
	struct hghca_context *ctx = to_hctx(context);

	munmap(ctx->uar, HGHCA_UAR_PAGE_SIZE);
	hghca_table_free(&ctx->xrc_srqs);
	hghca_table_free(&ctx->qps);
	hghca_idle_free(&ctx->idle);
	pthread_mutex_destroy(&ctx->dbr_lock);
	pthread_cond_destroy(&ctx->table_cleared);
	pthread_mutex_destroy(&ctx->table_lock);
	verbs_uninit_context(&ctx->vctx);
	free(ctx);
}

static struct verbs_device *hghca_device_alloc(struct verbs_sysfs_dev *sysfs_dev)
{
	return calloc(1, sizeof(struct verbs_device));
}

static void hghca_device_free(struct verbs_device *vdev)
{
	free(vdev);
}

static const struct verbs_match_ent hghca_match_table[] = {
	VERBS_PCI_MATCH(HGHCA_PCI_VENDOR_ID, HGHCA_PCI_DEVICE_ID, NULL),
	{},
};

static const struct verbs_device_ops hghca_device_ops = {
	.name = "hghca",
	.match_min_abi_version = HGHCA_UVERBS_ABI_VERSION,
	.match_max_abi_version = HGHCA_UVERBS_ABI_VERSION,
	.match_table = hghca_match_table,
	.alloc_device = hghca_device_alloc,
	.uninit_device = hghca_device_free,
	.alloc_context = hghca_alloc_context,
	.import_context = hghca_import_context,
};
PROVIDER_DRIVER(hghca, hghca_device_ops);

bool hghca_is_device(struct ibv_device *device)
{
	return verbs_get_device(device)->ops == &hghca_device_ops;
}
