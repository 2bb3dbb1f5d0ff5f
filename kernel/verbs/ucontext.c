// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* JingZhao HCA: user contexts, PDs, and attributes of the device. */
#include <linux/sysfs.h>
#include <rdma/uverbs_ioctl.h>

#include "verbs/verbs.h"

/* The response of a provider that predates SRQs ends before their fields. */
#define HGHCA_UCONTEXT_RESP_MIN \
	offsetofend(struct hghca_alloc_ucontext_resp, max_desc_sz_rq)

static void hghca_describe_ucontext(struct hghca_ucontext *uctx,
				    struct hghca_alloc_ucontext_resp *resp)
{
	const struct hghca_limits *limits = &to_hdev(uctx->ibuctx.device)->limits;

	*resp = (struct hghca_alloc_ucontext_resp) {
		.uar_mmap_offset = rdma_user_mmap_get_offset(uctx->uar_entry),
		.uar_index = uctx->uar.index,
		.caps = limits->caps,
		.max_qp_wr = limits->max_qp_wr,
		.max_cqe = limits->max_cqe,
		.max_sge = limits->max_sge,
		.max_desc_sz = limits->max_desc_sz,
		.max_sge_rq = limits->max_sge_rq,
		.max_desc_sz_rq = limits->max_desc_sz_rq,
		.max_srq_wr = limits->max_srq_wr,
		.max_srq_sge = limits->max_srq_sge,
	};
}

/**
 * hghca_query_ucontext - describe a context to another process that has its file
 * @ibuctx: the context
 * @attrs: output: struct hghca_alloc_ucontext_resp
 *
 * Return: 0 or a negative errno.
 */
int hghca_query_ucontext(struct ib_ucontext *ibuctx, struct uverbs_attr_bundle *attrs)
{
	struct hghca_alloc_ucontext_resp resp;

	hghca_describe_ucontext(to_huctx(ibuctx), &resp);
	return uverbs_copy_to_struct_or_zero(attrs, HGHCA_ATTR_QUERY_CONTEXT_RESP, &resp,
					     sizeof(resp));
}

/**
 * hghca_alloc_ucontext - initialize the context of a process that opens the device
 * @ibuctx: its context
 * @udata: output: struct hghca_alloc_ucontext_resp
 *
 * Return: 0 or a negative errno.
 */
int hghca_alloc_ucontext(struct ib_ucontext *ibuctx, struct ib_udata *udata)
{
	struct hghca_ucontext *uctx = to_huctx(ibuctx);
	struct hghca_dev *hdev = to_hdev(ibuctx->device);
	struct hghca_alloc_ucontext_resp resp;
	int err;

	if (udata->outlen < HGHCA_UCONTEXT_RESP_MIN) {
		ibdev_dbg(&hdev->ibdev, "alloc_ucontext: room for %zu bytes, %zu needed\n",
			  udata->outlen, HGHCA_UCONTEXT_RESP_MIN);
		return -EINVAL;
	}
	err = ib_is_udata_in_empty(udata);
	if (err)
		return err;

	hghca_user_pages_init(&uctx->dbr_pages);

	err = hghca_uar_create(uctx);
	if (err)
		return err;

	hghca_describe_ucontext(uctx, &resp);
	err = ib_respond_udata(udata, resp);
	if (err)
		goto err_destroy_uar;
	return 0;

err_destroy_uar:
	hghca_uar_destroy(uctx);
	return err;
}

/**
 * hghca_dealloc_ucontext - undo hghca_alloc_ucontext()
 * @ibuctx: the context; all its objects are destroyed
 */
void hghca_dealloc_ucontext(struct ib_ucontext *ibuctx)
{
	struct hghca_ucontext *uctx = to_huctx(ibuctx);

	WARN_ON(!list_empty(&uctx->dbr_pages.list));
	hghca_uar_destroy(uctx);
	mutex_destroy(&uctx->dbr_pages.lock);
}

/**
 * hghca_disassociate_ucontext - allow removal of the device while a process has it open
 * @ibuctx: its context
 *
 * ib_core removes the UAR mapping and destroys the objects.  The presence of this
 * function allows that.
 */
void hghca_disassociate_ucontext(struct ib_ucontext *ibuctx)
{
}

/**
 * hghca_pdn_alloc - allocate a PD number
 * @hdev: the device
 * @pdn: output: the number
 *
 * Return: 0 or a negative errno.
 */
int hghca_pdn_alloc(struct hghca_dev *hdev, u32 *pdn)
{
	int id = ida_alloc_range(&hdev->pd_ida, hdev->limits.first_pdn,
				 hdev->limits.num_pds - 1, GFP_KERNEL);

	if (id < 0)
		return id == -ENOSPC ? -ENOMEM : id;
	*pdn = id;
	return 0;
}

/**
 * hghca_pdn_free - free a PD number
 * @hdev: the device
 * @pdn: the number
 */
void hghca_pdn_free(struct hghca_dev *hdev, u32 pdn)
{
	ida_free(&hdev->pd_ida, pdn);
}

/**
 * hghca_alloc_pd - allocate a protection domain
 * @ibpd: the PD
 * @udata: output: struct hghca_alloc_pd_resp; NULL for a kernel PD
 *
 * Return: 0 or a negative errno.
 */
int hghca_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct hghca_dev *hdev = to_hdev(ibpd->device);
	struct hghca_alloc_pd_resp resp = {};
	struct hghca_pd *pd = to_hpd(ibpd);
	int err;

	err = ib_is_udata_in_empty(udata);
	if (err)
		return err;

	err = hghca_pdn_alloc(hdev, &pd->pdn);
	if (err || !udata)
		return err;

	resp.pdn = pd->pdn;
	err = ib_respond_udata(udata, resp);
	if (err)
		hghca_pdn_free(hdev, pd->pdn);
	return err;
}

/**
 * hghca_dealloc_pd - destroy a protection domain
 * @ibpd: the PD
 * @udata: not used
 *
 * Return: 0.
 */
int hghca_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	int err = ib_no_udata_io(udata);

	if (err)
		return err;
	hghca_pdn_free(to_hdev(ibpd->device), to_hpd(ibpd)->pdn);
	return 0;
}

/**
 * hghca_query_device - query limits and capabilities
 * @ibdev: the device
 * @attr: output
 * @udata: must be empty; NULL for the kernel
 *
 * Return: 0 or -EINVAL.
 */
int hghca_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
		       struct ib_udata *udata)
{
	struct hghca_dev *hdev = to_hdev(ibdev);
	const struct hghca_limits *limits = &hdev->limits;
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	memset(attr, 0, sizeof(*attr));
	attr->fw_ver = hdev->fw_version;
	attr->sys_image_guid = hdev->node_guid;
	attr->max_mr_size = BIT_ULL(63);
	attr->page_size_cap = GENMASK_ULL(limits->log_max_page, limits->log_min_page);
	attr->vendor_id = hdev->bus.vendor_id;
	attr->vendor_part_id = hdev->bus.vendor_part_id;
	attr->hw_ver = hdev->bus.hw_rev;
	attr->max_qp = limits->num_qps - limits->first_qpn;
	attr->max_qp_wr = limits->max_qp_wr;
	attr->device_cap_flags = IB_DEVICE_CURR_QP_STATE_MOD | IB_DEVICE_PORT_ACTIVE_EVENT |
				 IB_DEVICE_SYS_IMAGE_GUID | IB_DEVICE_RC_RNR_NAK_GEN |
				 IB_DEVICE_BAD_QKEY_CNTR;
	if (limits->caps & HGHCA_CAP_SRQ)
		attr->device_cap_flags |= IB_DEVICE_SRQ_RESIZE;
	if (limits->caps & HGHCA_CAP_XRC)
		attr->device_cap_flags |= IB_DEVICE_XRC;
	if (limits->caps & HGHCA_CAP_MEM_MGT) {
		attr->device_cap_flags |= IB_DEVICE_MEM_MGT_EXTENSIONS | IB_DEVICE_MEM_WINDOW |
					  IB_DEVICE_MEM_WINDOW_TYPE_2B;
		attr->max_fast_reg_page_list_len = HGHCA_FAST_REG_PAGES_MAX;
		attr->max_mw = limits->num_mpts - limits->first_mpt;
	}
	if (limits->caps & HGHCA_CAP_PLACEMENT)
		attr->device_cap_flags |= IB_DEVICE_FLUSH_GLOBAL | IB_DEVICE_ATOMIC_WRITE;
	if (limits->caps & HGHCA_CAP_RAW_PACKET) {
		attr->device_cap_flags |= IB_DEVICE_MANAGED_FLOW_STEERING;
		attr->max_raw_ethy_qp = attr->max_qp;
	}
	if (limits->caps & HGHCA_CAP_RSS) {
		attr->rss_caps.supported_qpts = BIT(IB_QPT_RAW_PACKET);
		attr->rss_caps.max_rwq_indirection_tables = limits->num_rss;
		attr->rss_caps.max_rwq_indirection_table_size = BIT(limits->log_max_rss_size);
		attr->max_wq_type_rq = attr->max_qp;
	}
	attr->max_send_sge = limits->max_sge;
	attr->max_recv_sge = limits->max_sge_rq;
	attr->max_sge_rd = attr->max_send_sge;
	attr->max_cq = limits->num_cqs - limits->first_cqn;
	attr->max_cqe = limits->max_cqe;
	attr->max_mr = limits->num_mpts - limits->first_mpt;
	attr->max_srq = limits->num_srqs - limits->first_srqn;
	attr->max_srq_wr = limits->max_srq_wr;
	attr->max_srq_sge = limits->max_srq_sge;
	attr->max_pd = limits->num_pds - limits->first_pdn;
	attr->max_qp_rd_atom = limits->max_dest_rd_atomic;
	attr->max_qp_init_rd_atom = limits->max_rd_atomic;
	attr->max_res_rd_atom = min_t(u64, (u64)attr->max_qp_rd_atom * attr->max_qp, INT_MAX);
	attr->atomic_cap = limits->atomics ? IB_ATOMIC_HCA : IB_ATOMIC_NONE;
	attr->max_ah = INT_MAX;
	if (limits->caps & HGHCA_CAP_MULTICAST)
		attr->kernel_cap_flags |= IBK_BLOCK_MULTICAST_LOOPBACK;
	/* Half of the entries are buckets, and some of these may stay empty. */
	attr->max_mcast_grp = limits->num_mcgs / 2;
	attr->max_mcast_qp_attach = limits->max_mcg_qps;
	attr->max_total_mcast_qp_attach = attr->max_mcast_grp * attr->max_mcast_qp_attach;
	attr->max_pkeys = 1;
	if (limits->caps & HGHCA_CAP_CLOCK) {
		attr->timestamp_mask = U64_MAX;
		attr->hca_core_clock = limits->clock_khz;
	}
	if (limits->caps & HGHCA_CAP_MODERATION) {
		attr->cq_caps.max_cq_moderation_count = U16_MAX;
		attr->cq_caps.max_cq_moderation_period = U16_MAX;
	}
	attr->max_dm_size = limits->device_memory;
	hghca_odp_describe(hdev, attr);
	attr->local_ca_ack_delay = limits->ack_delay;
	return 0;
}

/**
 * hghca_get_dev_fw_str - get the firmware version as text
 * @ibdev: the device
 * @str: output: up to IB_FW_VERSION_NAME_MAX bytes
 */
void hghca_get_dev_fw_str(struct ib_device *ibdev, char *str)
{
	u32 version = to_hdev(ibdev)->fw_version;

	snprintf(str, IB_FW_VERSION_NAME_MAX, "%u.%u", version >> 16, version & 0xffff);
}

static ssize_t hw_rev_show(struct device *device, struct device_attribute *attr, char *buf)
{
	struct hghca_dev *hdev = rdma_device_to_drv_device(device, struct hghca_dev, ibdev);

	return sysfs_emit(buf, "%x\n", hdev->bus.hw_rev);
}
static DEVICE_ATTR_RO(hw_rev);

static ssize_t board_id_show(struct device *device, struct device_attribute *attr, char *buf)
{
	struct hghca_dev *hdev = rdma_device_to_drv_device(device, struct hghca_dev, ibdev);

	return sysfs_emit(buf, "%016llx\n", hdev->board_id);
}
static DEVICE_ATTR_RO(board_id);

/* What ibv_devinfo and ibstat read; devlink has it too.  Nothing else belongs here. */
static struct attribute *hghca_attrs[] = {
	&dev_attr_hw_rev.attr,
	&dev_attr_board_id.attr,
	NULL
};

const struct attribute_group hghca_attr_group = {
	.attrs = hghca_attrs,
};
