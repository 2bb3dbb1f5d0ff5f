// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: start and stop of a device.
 *
 * The start follows document 3.3.  The stop undoes it in reverse order: the device is
 * first unregistered from ib_core, so that no new objects are created meanwhile.
 */
#include <linux/module.h>
#include <linux/rtnetlink.h>

#include "hghca.h"
#include "net/netdev.h"
#include "verbs/verbs.h"

static const struct ib_device_ops hghca_dev_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_abi_ver = HGHCA_UVERBS_ABI_VERSION,
	.device_group = &hghca_attr_group,

	.uverbs_robust_udata = true,

	.add_gid = hghca_add_gid,
	.alloc_pd = hghca_alloc_pd,
	.alloc_ucontext = hghca_alloc_ucontext,
	.create_ah = hghca_create_ah,
	.create_cq = hghca_create_cq,
	.create_user_cq = hghca_create_user_cq,
	.create_qp = hghca_create_qp,
	.create_user_ah = hghca_create_ah,
	.dealloc_pd = hghca_dealloc_pd,
	.dealloc_ucontext = hghca_dealloc_ucontext,
	.del_gid = hghca_del_gid,
	.dereg_mr = hghca_dereg_mr,
	.destroy_ah = hghca_destroy_ah,
	.destroy_cq = hghca_destroy_cq,
	.destroy_qp = hghca_destroy_qp,
	.disassociate_ucontext = hghca_disassociate_ucontext,
	.fill_res_cq_entry = hghca_fill_res_cq_entry,
	.fill_res_mr_entry = hghca_fill_res_mr_entry,
	.fill_res_qp_entry = hghca_fill_res_qp_entry,
	.fill_res_qp_entry_raw = hghca_fill_res_qp_entry_raw,
	.get_dev_fw_str = hghca_get_dev_fw_str,
	.get_dma_mr = hghca_get_dma_mr,
	.get_link_layer = hghca_get_link_layer,
	.get_port_immutable = hghca_get_port_immutable,
	.mmap = hghca_mmap,
	.mmap_free = hghca_mmap_free,
	.modify_qp = hghca_modify_qp,
	.poll_cq = hghca_poll_cq,
	.post_destroy_cq = hghca_post_destroy_cq,
	.post_recv = hghca_post_recv,
	.post_send = hghca_post_send,
	.pre_destroy_cq = hghca_pre_destroy_cq,
	.query_ah = hghca_query_ah,
	.query_device = hghca_query_device,
	.query_pkey = hghca_query_pkey,
	.query_port = hghca_query_port,
	.query_port_speed = hghca_query_port_speed,
	.query_qp = hghca_query_qp,
	.query_ucontext = hghca_query_ucontext,
	.reg_user_mr = hghca_reg_user_mr,
	.reg_user_mr_dmabuf = hghca_reg_user_mr_dmabuf,
	.report_port_event = hghca_report_port_event,
	.req_notify_cq = hghca_req_notify_cq,
	.rereg_user_mr = hghca_rereg_user_mr,
	.resize_user_cq = hghca_resize_user_cq,

	INIT_RDMA_OBJ_SIZE(ib_ah, hghca_ah, ibah),
	INIT_RDMA_OBJ_SIZE(ib_cq, hghca_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_pd, hghca_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, hghca_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, hghca_ucontext, ibuctx),
};

/* For a device with counters. */
static const struct ib_device_ops hghca_dev_stats_ops = {
	.alloc_hw_device_stats = hghca_alloc_hw_device_stats,
	.alloc_hw_port_stats = hghca_alloc_hw_port_stats,
	.get_hw_stats = hghca_get_hw_stats,
	.process_mad = hghca_process_mad,
};

/* For a device with counter sets, QUERY_CQ, QUERY_EQ and QUERY_MPT. */
static const struct ib_device_ops hghca_dev_qp_counter_ops = {
	.counter_alloc_stats = hghca_counter_alloc_stats,
	.counter_bind_qp = hghca_counter_bind_qp,
	.counter_dealloc = hghca_counter_dealloc,
	.counter_init = hghca_counter_init,
	.counter_unbind_qp = hghca_counter_unbind_qp,
	.counter_update_stats = hghca_counter_update_stats,
	.fill_res_cq_entry_raw = hghca_fill_res_cq_entry_raw,
	.fill_res_mr_entry_raw = hghca_fill_res_mr_entry_raw,
	INIT_RDMA_OBJ_SIZE(rdma_counter, hghca_rdma_counter, rdma_counter),
};

/* For a device with moderation of completion events. */
static const struct ib_device_ops hghca_dev_moderation_ops = {
	.modify_cq = hghca_modify_cq,
};

/* For a device with shared receive queues. */
static const struct ib_device_ops hghca_dev_srq_ops = {
	.create_srq = hghca_create_srq,
	.destroy_srq = hghca_destroy_srq,
	.fill_res_srq_entry = hghca_fill_res_srq_entry,
	.fill_res_srq_entry_raw = hghca_fill_res_srq_entry_raw,
	.modify_srq = hghca_modify_srq,
	.post_srq_recv = hghca_post_srq_recv,
	.query_srq = hghca_query_srq,

	INIT_RDMA_OBJ_SIZE(ib_srq, hghca_srq, ibsrq),
};

/* For a device with extended reliable connections. */
static const struct ib_device_ops hghca_dev_xrc_ops = {
	.alloc_xrcd = hghca_alloc_xrcd,
	.dealloc_xrcd = hghca_dealloc_xrcd,

	INIT_RDMA_OBJ_SIZE(ib_xrcd, hghca_xrcd, ibxrcd),
};

/* For a device with multicast groups. */
static const struct ib_device_ops hghca_dev_mcast_ops = {
	.attach_mcast = hghca_attach_mcast,
	.detach_mcast = hghca_detach_mcast,
};

/* For a device with flow rules for raw packet QPs. */
static const struct ib_device_ops hghca_dev_flow_ops = {
	.create_flow = hghca_create_flow,
	.destroy_flow = hghca_destroy_flow,
};

/* For a device with RSS groups. */
static const struct ib_device_ops hghca_dev_rss_ops = {
	.create_rwq_ind_table = hghca_create_rwq_ind_table,
	.create_wq = hghca_create_wq,
	.destroy_rwq_ind_table = hghca_destroy_rwq_ind_table,
	.destroy_wq = hghca_destroy_wq,
	.modify_wq = hghca_modify_wq,

	INIT_RDMA_OBJ_SIZE(ib_rwq_ind_table, hghca_rwq_table, ibtable),
};

/* For a device with device memory. */
static const struct ib_device_ops hghca_dev_dm_ops = {
	.alloc_dm = hghca_alloc_dm,
	.dealloc_dm = hghca_dealloc_dm,
	.reg_dm_mr = hghca_reg_dm_mr,
};

#if IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING)
/* For a device with on-demand regions. */
static const struct ib_device_ops hghca_dev_odp_ops = {
	.advise_mr = hghca_advise_mr,
	.fill_stat_mr_entry = hghca_fill_stat_mr_entry,
};
#endif

/* For a device with fast registration and memory windows. */
static const struct ib_device_ops hghca_dev_mem_mgt_ops = {
	.alloc_mr = hghca_alloc_mr,
	.alloc_mw = hghca_alloc_mw,
	.dealloc_mw = hghca_dealloc_mw,
	.map_mr_sg = hghca_map_mr_sg,

	INIT_RDMA_OBJ_SIZE(ib_mw, hghca_mw, ibmw),
};

static void hghca_dev_fail_work(struct work_struct *work)
{
	struct hghca_dev *hdev = container_of(work, struct hghca_dev, fail_work);
	struct net_device *netdev = READ_ONCE(hdev->netdev);
	struct ib_event event = {
		.device = &hdev->ibdev,
		.event = IB_EVENT_DEVICE_FATAL,
	};

	if (netdev && hdev->limits.caps & HGHCA_CAP_PORT)
		netif_carrier_off(netdev);
	if (READ_ONCE(hdev->registered))
		ib_dispatch_event(&event);
	schedule_work(&hdev->flush_work);
}

/**
 * hghca_dev_alloc - allocate a device
 *
 * Return: the device, whose &struct hghca_bus the bus front fills in, or NULL.
 */
struct hghca_dev *hghca_dev_alloc(void)
{
	struct hghca_dev *hdev = ib_alloc_device(hghca_dev, ibdev);

	if (!hdev)
		return NULL;

	/* ib_device_set_netdev() needs it before the registration. */
	hdev->ibdev.phys_port_cnt = HGHCA_PORT_NUM;
	spin_lock_init(&hdev->db_lock);
	spin_lock_init(&hdev->fail_lock);
	spin_lock_init(&hdev->idle_keys.lock);
	ida_init(&hdev->pd_ida);
	ida_init(&hdev->xrcd_ida);
	ida_init(&hdev->uar_ida);
	ida_init(&hdev->mpt_ida);
	ida_init(&hdev->counter_ida);
	ida_init(&hdev->flow_ida);
	ida_init(&hdev->rss_ida);
	ida_init(&hdev->rwq_table_ida);
	ida_init(&hdev->partition_ida);
	INIT_WORK(&hdev->fail_work, hghca_dev_fail_work);
	INIT_WORK(&hdev->flush_work, hghca_flush_work);
	hdev->port_event = hghca_port_dispatch;
	hghca_netdev_init(hdev);
	return hdev;
}

/**
 * hghca_dev_free - undo hghca_dev_alloc()
 * @hdev: the device, stopped
 */
void hghca_dev_free(struct hghca_dev *hdev)
{
	ida_destroy(&hdev->partition_ida);
	ida_destroy(&hdev->rwq_table_ida);
	ida_destroy(&hdev->rss_ida);
	ida_destroy(&hdev->flow_ida);
	ida_destroy(&hdev->counter_ida);
	ida_destroy(&hdev->mpt_ida);
	ida_destroy(&hdev->uar_ida);
	ida_destroy(&hdev->xrcd_ida);
	ida_destroy(&hdev->pd_ida);
	ib_dealloc_device(&hdev->ibdev);
}

/**
 * hghca_hca_open - initialize the device for commands and objects
 * @hdev: the device; &struct hghca_bus is filled in
 *
 * Document 3.3, steps 1 to 4.
 *
 * Return: 0, or a negative errno.  After an error the device does no DMA.
 */
int hghca_hca_open(struct hghca_dev *hdev)
{
	struct hghca_init_hca init = {};
	int err;

	err = hghca_cmd_init(hdev);
	if (err)
		return err;

	/* End operations of an earlier driver before the device can access memory. */
	hghca_dev_reset(hdev);
	hdev->bus.enable_dma(hdev->bus.dev, true);

	err = hghca_cmdq_open(hdev);
	if (err)
		goto err_cleanup_cmd;

	err = hghca_profile_init(hdev);
	if (err)
		goto err_cleanup_cmd;

	hghca_profile_layout(hdev, &init);
	err = hghca_icm_init(hdev);
	if (err)
		goto err_cleanup_cmd;
	hghca_cmdq_place_packets(hdev, &init);
	err = hghca_cmd_init_hca(hdev, &init);
	if (err)
		goto err_cleanup_icm;

	hghca_res_init(hdev);
	return 0;

err_cleanup_icm:
	hghca_icm_cleanup(hdev);
err_cleanup_cmd:
	hdev->bus.enable_dma(hdev->bus.dev, false);
	hghca_cmd_cleanup(hdev);
	return err;
}

/**
 * hghca_hca_close - undo hghca_hca_open()
 * @hdev: the device, without objects; it does no DMA afterwards
 */
void hghca_hca_close(struct hghca_dev *hdev)
{
	hghca_icm_trim(hdev);
	if (hghca_cmd_close_hca(hdev))
		hghca_dev_fail(hdev, "failed to close the HCA");
	/* Memory that the device used is freed from here on. */
	hdev->bus.enable_dma(hdev->bus.dev, false);
	hghca_res_cleanup(hdev);
	hghca_icm_cleanup(hdev);
	hghca_cmd_cleanup(hdev);
}

static int hghca_ib_register(struct hghca_dev *hdev)
{
	struct ib_device *ibdev = &hdev->ibdev;
	int err;

	ibdev->node_type = RDMA_NODE_IB_CA;
	ibdev->num_comp_vectors = hdev->num_comp_eqs;
	ibdev->node_guid = hdev->node_guid;
	ibdev->dev.parent = hdev->bus.dev;
	strscpy(ibdev->node_desc, HGHCA_DRV_NAME, sizeof(ibdev->node_desc));
	ib_set_device_ops(ibdev, &hghca_dev_ops);
	if (hdev->limits.caps & HGHCA_CAP_STATS)
		ib_set_device_ops(ibdev, &hghca_dev_stats_ops);
	if (hdev->limits.caps & HGHCA_CAP_QP_COUNTERS)
		ib_set_device_ops(ibdev, &hghca_dev_qp_counter_ops);
	if (hdev->limits.caps & HGHCA_CAP_MODERATION) {
		ib_set_device_ops(ibdev, &hghca_dev_moderation_ops);
		ibdev->use_cq_dim = true;
	}
	if (hdev->limits.caps & HGHCA_CAP_SRQ)
		ib_set_device_ops(ibdev, &hghca_dev_srq_ops);
	if (hdev->limits.caps & HGHCA_CAP_XRC)
		ib_set_device_ops(ibdev, &hghca_dev_xrc_ops);
	if (hdev->limits.caps & HGHCA_CAP_MULTICAST)
		ib_set_device_ops(ibdev, &hghca_dev_mcast_ops);
	if (hdev->limits.caps & HGHCA_CAP_RAW_PACKET)
		ib_set_device_ops(ibdev, &hghca_dev_flow_ops);
	if (hdev->limits.caps & HGHCA_CAP_RSS)
		ib_set_device_ops(ibdev, &hghca_dev_rss_ops);
	if (hdev->limits.caps & HGHCA_CAP_MEM_MGT)
		ib_set_device_ops(ibdev, &hghca_dev_mem_mgt_ops);
	if (hdev->limits.caps & HGHCA_CAP_DEVICE_MEMORY)
		ib_set_device_ops(ibdev, &hghca_dev_dm_ops);
#if IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING)
	if (hdev->limits.caps & HGHCA_CAP_ODP)
		ib_set_device_ops(ibdev, &hghca_dev_odp_ops);
#endif
	if (IS_ENABLED(CONFIG_INFINIBAND_USER_ACCESS))
		ibdev->driver_def = hghca_uapi_defs;
	/* Without doorbells that arm CQs, users arm them by this command. */
	if (!(hdev->limits.caps & HGHCA_CAP_CQ_ARM))
		ibdev->uverbs_cmd_mask |= BIT_ULL(IB_USER_VERBS_CMD_REQ_NOTIFY_CQ);

	if (hdev->limits.caps & HGHCA_CAP_PORT) {
		err = ib_device_set_netdev(ibdev, hdev->netdev, HGHCA_PORT_NUM);
		if (err)
			return err;
	}

	err = ib_register_device(ibdev, "hghca%d", hdev->bus.dev);
	if (err)
		goto err_unset_netdev;
	WRITE_ONCE(hdev->registered, true);
	return 0;

err_unset_netdev:
	ib_device_set_netdev(ibdev, NULL, HGHCA_PORT_NUM);
	return err;
}

static void hghca_ib_unregister(struct hghca_dev *hdev)
{
	WRITE_ONCE(hdev->registered, false);
	/* Code that has seen registered set may raise events: under RTNL, or in work. */
	rtnl_lock();
	rtnl_unlock();
	flush_work(&hdev->link_work);
	flush_work(&hdev->fail_work);
	ib_unregister_device(&hdev->ibdev);
}

/**
 * hghca_dev_start - start the device, and register its net, RDMA and devlink device
 * @hdev: the device; &struct hghca_bus is filled in
 *
 * Return: 0 or a negative errno.
 */
int hghca_dev_start(struct hghca_dev *hdev)
{
	int err;

	err = hghca_uar_map_kernel(hdev);
	if (err)
		return err;

	err = hghca_hca_open(hdev);
	if (err)
		goto err_unmap_uar;

	err = hghca_mr_init(hdev);
	if (err)
		goto err_close_hca;

	err = hghca_dm_init(hdev);
	if (err)
		goto err_cleanup_mr;

	err = hghca_dbr_init(hdev);
	if (err)
		goto err_cleanup_dm;

	err = hghca_mcast_init(hdev);
	if (err)
		goto err_cleanup_dbr;

	err = hghca_pdn_alloc(hdev, &hdev->pdn);
	if (err)
		goto err_cleanup_mcast;

	err = hghca_odp_init(hdev);
	if (err)
		goto err_free_pdn;

	err = hghca_eqs_init(hdev);
	if (err)
		goto err_cleanup_odp;

	err = hghca_netdev_register(hdev);
	if (err)
		goto err_cleanup_eqs;

	err = hghca_ib_register(hdev);
	if (err)
		goto err_unregister_netdev;

	err = hghca_devlink_register(hdev);
	if (err)
		goto err_unregister_ib;
	hghca_icm_list(hdev);
	return 0;

err_unregister_ib:
	hghca_ib_unregister(hdev);
err_unregister_netdev:
	hghca_netdev_unregister(hdev);
err_cleanup_eqs:
	hghca_eqs_cleanup(hdev);
err_cleanup_odp:
	hghca_odp_cleanup(hdev);
err_free_pdn:
	hghca_pdn_free(hdev, hdev->pdn);
err_cleanup_mcast:
	hghca_mcast_cleanup(hdev);
err_cleanup_dbr:
	hghca_dbr_cleanup(hdev);
err_cleanup_dm:
	hghca_dm_cleanup(hdev);
err_cleanup_mr:
	hghca_mr_cleanup(hdev);
err_close_hca:
	hghca_hca_close(hdev);
err_unmap_uar:
	hghca_uar_unmap_kernel(hdev);
	cancel_work_sync(&hdev->fail_work);
	cancel_work_sync(&hdev->flush_work);
	return err;
}

/**
 * hghca_dev_stop - undo hghca_dev_start()
 * @hdev: the device
 */
void hghca_dev_stop(struct hghca_dev *hdev)
{
	hghca_icm_unlist(hdev);
	hghca_devlink_unregister(hdev);
	hghca_ib_unregister(hdev);
	hghca_netdev_unregister(hdev);
	hghca_eqs_cleanup(hdev);
	hghca_odp_cleanup(hdev);
	hghca_pdn_free(hdev, hdev->pdn);
	hghca_mcast_cleanup(hdev);
	hghca_dbr_cleanup(hdev);
	hghca_dm_cleanup(hdev);
	hghca_mr_cleanup(hdev);
	hghca_hca_close(hdev);
	hghca_uar_unmap_kernel(hdev);
	cancel_work_sync(&hdev->fail_work);
	cancel_work_sync(&hdev->flush_work);
}
