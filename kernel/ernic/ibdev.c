// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ERNIC and ETRNIC: the RDMA device, its port and its PDs. */
#include <linux/etherdevice.h>
#include <linux/module.h>
#include <net/addrconf.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_user_verbs.h>
#include "ernic.h"

static uint slot_bytes = 4096;
module_param(slot_bytes, uint, 0444);
MODULE_PARM_DESC(slot_bytes, "Bytes of a receive slot, which the longest incoming SEND fits (default 4096)");

/* Slots are of whole 256 bytes. */
static u32 ernic_slot_bytes(void)
{
	return clamp(round_up(slot_bytes, 256), 256U, 1U << 20);
}

/* The state of the port is that of ernic_bind_link(), which reports it. */
static void ernic_report_port_event(struct ib_device *ibdev, struct net_device *netdev,
				    unsigned long event)
{
}

static int ernic_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			      struct ib_udata *udata)
{
	struct ernic_dev *edev = to_edev(ibdev);
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	memset(attr, 0, sizeof(*attr));
	attr->sys_image_guid = ibdev->node_guid;
	attr->vendor_id = ERNIC_PCI_VENDOR_ID;
	attr->vendor_part_id = ERNIC_PCI_DEVICE_ID;
	attr->max_mr_size = ERNIC_MAX_LENGTH;
	attr->page_size_cap = PAGE_SIZE;
	/* QP 1 is the kernel's. */
	attr->max_qp = edev->num_qps - 1;
	attr->max_qp_wr = ERNIC_MAX_WR;
	attr->device_cap_flags = IB_DEVICE_RC_RNR_NAK_GEN | IB_DEVICE_SYS_IMAGE_GUID |
				 IB_DEVICE_PORT_ACTIVE_EVENT;
	attr->kernel_cap_flags = IBK_LOCAL_DMA_LKEY;
	attr->max_send_sge = ERNIC_MAX_SGE;
	attr->max_recv_sge = ERNIC_MAX_SGE;
	attr->max_sge_rd = ERNIC_MAX_SGE;
	attr->max_cq = 2 * edev->num_qps;
	attr->max_cqe = ERNIC_MAX_CQE;
	/* Regions with remote access; others are bounded by memory alone. */
	attr->max_mr = ERNIC_PDS;
	attr->max_pd = 2 * edev->num_qps;
	attr->max_qp_rd_atom = ERNIC_OUTSTANDING;
	attr->max_qp_init_rd_atom = ERNIC_OUTSTANDING;
	attr->max_res_rd_atom = ERNIC_OUTSTANDING * (edev->num_qps - 1);
	attr->atomic_cap = IB_ATOMIC_NONE;
	attr->max_pkeys = 1;
	attr->local_ca_ack_delay = 0;
	return 0;
}

static int ernic_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr)
{
	struct ernic_dev *edev = to_edev(ibdev);
	struct net_device *netdev = ib_device_get_netdev(ibdev, port);

	attr->state = IB_PORT_DOWN;
	attr->phys_state = IB_PORT_PHYS_STATE_DISABLED;
	attr->active_mtu = IB_MTU_256;
	if (netdev) {
		if (netif_running(netdev) && netif_carrier_ok(netdev)) {
			attr->state = IB_PORT_ACTIVE;
			attr->phys_state = IB_PORT_PHYS_STATE_LINK_UP;
		}
		attr->active_mtu = iboe_get_mtu(READ_ONCE(netdev->mtu)) ?: IB_MTU_256;
		dev_put(netdev);
	}
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = min(attr->active_mtu, attr->max_mtu);
	attr->phys_mtu = ib_mtu_enum_to_int(attr->active_mtu);
	attr->gid_tbl_len = ERNIC_GIDS;
	attr->ip_gids = true;
	attr->port_cap_flags = IB_PORT_CM_SUP;
	/* Of a SEND to this device, which takes one slot. */
	attr->max_msg_sz = edev->slot;
	attr->pkey_tbl_len = 1;
	attr->max_vl_num = 1;
	if (ib_get_eth_speed(ibdev, port, &attr->active_speed, &attr->active_width)) {
		attr->active_width = IB_WIDTH_1X;
		attr->active_speed = IB_SPEED_SDR;
	}
	return 0;
}

static int ernic_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = IB_DEFAULT_PKEY_FULL;
	return 0;
}

static int ernic_get_port_immutable(struct ib_device *ibdev, u32 port,
				    struct ib_port_immutable *immutable)
{
	immutable->pkey_tbl_len = 1;
	immutable->gid_tbl_len = ERNIC_GIDS;
	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

static enum rdma_link_layer ernic_get_link_layer(struct ib_device *ibdev, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

static int ernic_alloc_ucontext(struct ib_ucontext *ibuctx, struct ib_udata *udata)
{
	return ib_no_udata_io(udata);
}

static void ernic_dealloc_ucontext(struct ib_ucontext *ibuctx)
{
}

/* No process maps anything of the device. */
static int ernic_mmap(struct ib_ucontext *ibuctx, struct vm_area_struct *vma)
{
	return -EINVAL;
}

static void ernic_disassociate_ucontext(struct ib_ucontext *ibuctx)
{
}

static int ernic_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct ernic_dev *edev = to_edev(ibpd->device);
	int err, pdn;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	pdn = ida_alloc_range(&edev->pdn_ida, 1, 2 * edev->num_qps, GFP_KERNEL);
	if (pdn < 0)
		return pdn == -ENOSPC ? -ENOMEM : pdn;
	to_epd(ibpd)->pdn = pdn;
	return 0;
}

static int ernic_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	int err = ib_no_udata_io(udata);

	if (err)
		return err;
	ida_free(&to_edev(ibpd->device)->pdn_ida, to_epd(ibpd)->pdn);
	return 0;
}

static const struct ib_device_ops ernic_dev_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_abi_ver = ERNIC_UVERBS_ABI_VERSION,
	.uverbs_robust_udata = true,

	.add_gid = ernic_add_gid,
	.alloc_pd = ernic_alloc_pd,
	.alloc_ucontext = ernic_alloc_ucontext,
	.create_ah = ernic_create_ah,
	.create_cq = ernic_create_cq,
	.create_qp = ernic_create_qp,
	.dealloc_pd = ernic_dealloc_pd,
	.dealloc_ucontext = ernic_dealloc_ucontext,
	.del_gid = ernic_del_gid,
	.dereg_mr = ernic_dereg_mr,
	.destroy_ah = ernic_destroy_ah,
	.destroy_cq = ernic_destroy_cq,
	.destroy_qp = ernic_destroy_qp,
	.disassociate_ucontext = ernic_disassociate_ucontext,
	.get_dma_mr = ernic_get_dma_mr,
	.get_link_layer = ernic_get_link_layer,
	.get_port_immutable = ernic_get_port_immutable,
	.mmap = ernic_mmap,
	.modify_qp = ernic_modify_qp,
	.poll_cq = ernic_poll_cq,
	.post_recv = ernic_post_recv,
	.post_send = ernic_post_send,
	.query_device = ernic_query_device,
	.query_pkey = ernic_query_pkey,
	.query_port = ernic_query_port,
	.query_qp = ernic_query_qp,
	.reg_user_mr = ernic_reg_user_mr,
	.report_port_event = ernic_report_port_event,
	.req_notify_cq = ernic_req_notify_cq,
	.resize_user_cq = ernic_resize_user_cq,

	INIT_RDMA_OBJ_SIZE(ib_ah, ernic_ah, ibah),
	INIT_RDMA_OBJ_SIZE(ib_cq, ernic_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_pd, ernic_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, ernic_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, ernic_ucontext, ibuctx),
};

/**
 * ernic_dev_create - make an RDMA device, and enable the hardware
 * @func: the function
 *
 * Return: the device, which is not registered, or an ERR_PTR().
 */
struct ernic_dev *ernic_dev_create(struct ernic_func *func)
{
	struct ernic_dev *edev = ib_alloc_device(ernic_dev, ibdev);
	int err;

	if (!edev)
		return ERR_PTR(-ENOMEM);
	edev->func = func;
	edev->is_ernic = func->is_ernic;
	edev->num_qps = func->is_ernic ? ERNIC_QPS_ERNIC : ERNIC_QPS_ETRNIC;
	edev->regs = func->registers +
		     (func->is_ernic ? ERNIC_GLOBALS_ERNIC : ERNIC_GLOBALS_ETRNIC);
	edev->slot = ernic_slot_bytes();
	edev->gid_v4 = -1;
	edev->gid_v6 = -1;
	mutex_init(&edev->conf_lock);
	spin_lock_init(&edev->table_lock);
	spin_lock_init(&edev->error_lock);
	ida_init(&edev->qpn_ida);
	ida_init(&edev->pdn_ida);
	ida_init(&edev->entry_ida);
	xa_init_flags(&edev->lkeys, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_IRQ);
	get_random_bytes(edev->key8, sizeof(edev->key8));
	/* ib_device_set_netdev() needs it before the registration. */
	edev->ibdev.phys_port_cnt = ERNIC_PORT;

	edev->wq = alloc_workqueue("ernic", WQ_MEM_RECLAIM | WQ_PERCPU, 0);
	if (!edev->wq) {
		err = -ENOMEM;
		goto err_dealloc;
	}
	err = ernic_hw_start(edev);
	if (err)
		goto err_destroy_wq;
	err = ernic_irq_start(edev);
	if (err)
		goto err_stop_hw;
	return edev;

err_stop_hw:
	ernic_hw_stop(edev);
err_destroy_wq:
	destroy_workqueue(edev->wq);
err_dealloc:
	ib_dealloc_device(&edev->ibdev);
	return ERR_PTR(err);
}

int ernic_dev_register(struct ernic_dev *edev)
{
	struct ib_device *ibdev = &edev->ibdev;

	ibdev->node_type = RDMA_NODE_IB_CA;
	ibdev->num_comp_vectors = 1;
	ibdev->dev.parent = edev->func->sysdev;
	addrconf_addr_eui48((u8 *)&ibdev->node_guid, edev->func->mac);
	strscpy(ibdev->node_desc, ERNIC_DRV_NAME, sizeof(ibdev->node_desc));
	ib_set_device_ops(ibdev, &ernic_dev_ops);
	/* A WQE names memory by its bus address: only the kernel writes them. */
	ibdev->uverbs_cmd_mask |= BIT_ULL(IB_USER_VERBS_CMD_POST_SEND) |
				  BIT_ULL(IB_USER_VERBS_CMD_POST_RECV) |
				  BIT_ULL(IB_USER_VERBS_CMD_POLL_CQ) |
				  BIT_ULL(IB_USER_VERBS_CMD_REQ_NOTIFY_CQ);
	/* Without a DMA device, the kernel's users give virtual addresses. */
	return ib_register_device(ibdev, "ernic%d", NULL);
}

/* Undo ernic_dev_create(): the device is not registered, or not any more. */
void ernic_dev_destroy(struct ernic_dev *edev)
{
	ernic_irq_stop(edev);
	ernic_hw_stop(edev);
	/* Regions that work requests have held may still be released by works. */
	destroy_workqueue(edev->wq);
	xa_destroy(&edev->lkeys);
	ida_destroy(&edev->entry_ida);
	ida_destroy(&edev->pdn_ida);
	ida_destroy(&edev->qpn_ida);
	ib_dealloc_device(&edev->ibdev);
}
