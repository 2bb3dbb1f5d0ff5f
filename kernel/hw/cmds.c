// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* JingZhao HCA: one typed function per command. */
#include <rdma/ib_mad.h>

#include "hghca.h"

#define HGHCA_CMD_TAKE_TRIES	3

/* A command with @size bytes of input. */
static int hghca_cmd_in(struct hghca_dev *hdev, u16 op, u32 in_modifier, u8 op_modifier,
			const void *data, size_t size)
{
	struct hghca_cmd cmd = {
		.op = op,
		.in_modifier = in_modifier,
		.op_modifier = op_modifier,
	};
	int err;

	cmd.in = hghca_mailbox_alloc(hdev, 0);
	if (IS_ERR(cmd.in))
		return PTR_ERR(cmd.in);

	memcpy(cmd.in->buf, data, size);
	err = hghca_cmd_exec(hdev, &cmd);
	hghca_mailbox_free(hdev, cmd.in);
	return err;
}

/* A command whose output starts with @count 64-bit numbers, returned in host order. */
static int hghca_cmd_out_u64(struct hghca_dev *hdev, u16 op, u32 in_modifier, u8 op_modifier,
			     u64 *values, u32 count)
{
	struct hghca_cmd cmd = {
		.op = op,
		.in_modifier = in_modifier,
		.op_modifier = op_modifier,
	};
	__be64 *answer;
	u32 i;
	int err;

	if (WARN_ON_ONCE(count > HGHCA_MAILBOX_SIZE / sizeof(*answer)))
		return -EINVAL;

	cmd.out = hghca_mailbox_alloc(hdev, count * sizeof(*answer));
	if (IS_ERR(cmd.out))
		return PTR_ERR(cmd.out);

	err = hghca_cmd_exec(hdev, &cmd);
	if (!err) {
		answer = cmd.out->buf;
		for (i = 0; i < count; i++)
			values[i] = be64_to_cpu(answer[i]);
	}
	hghca_mailbox_free(hdev, cmd.out);
	return err;
}

/* A command of whose output the caller gets the first @size bytes. */
static int hghca_cmd_out(struct hghca_dev *hdev, u16 op, u32 in_modifier, void *data, size_t size)
{
	struct hghca_cmd cmd = {
		.op = op,
		.in_modifier = in_modifier,
	};
	int err;

	cmd.out = hghca_mailbox_alloc(hdev, size);
	if (IS_ERR(cmd.out))
		return PTR_ERR(cmd.out);

	err = hghca_cmd_exec(hdev, &cmd);
	if (!err)
		memcpy(data, cmd.out->buf, size);
	hghca_mailbox_free(hdev, cmd.out);
	return err;
}

static int hghca_cmd_plain(struct hghca_dev *hdev, u16 op, u32 in_modifier, u8 op_modifier,
			   u64 in_param)
{
	struct hghca_cmd cmd = {
		.op = op,
		.in_modifier = in_modifier,
		.op_modifier = op_modifier,
		.in_param = in_param,
	};

	return hghca_cmd_exec(hdev, &cmd);
}

/*
 * A command that takes an object from the device.  It succeeds after the reset of a
 * device that was given up, because the reset has dropped all objects.
 *
 * Most callers destroy an object and cannot handle a failure, and memory that the
 * device still uses cannot be freed.  Therefore an internal error is retried.
 */
static int hghca_cmd_exec_take(struct hghca_dev *hdev, struct hghca_cmd *cmd)
{
	int tries = HGHCA_CMD_TAKE_TRIES;
	int err;

	do {
		err = hghca_cmd_exec(hdev, cmd);
		if (hghca_dev_has_failed(hdev))
			return 0;
	} while (err == -EIO && --tries);
	return err;
}

static int hghca_cmd_take(struct hghca_dev *hdev, u16 op, u32 in_modifier, u8 op_modifier,
			  u64 in_param)
{
	struct hghca_cmd cmd = {
		.op = op,
		.in_modifier = in_modifier,
		.op_modifier = op_modifier,
		.in_param = in_param,
	};

	return hghca_cmd_exec_take(hdev, &cmd);
}

/**
 * hghca_cmd_query_dev_lim - QUERY_DEV_LIM
 * @hdev: the device
 * @lim: output
 *
 * Return: 0 or a negative errno, see hghca_cmd_exec(); the same for all functions of this file.
 */
int hghca_cmd_query_dev_lim(struct hghca_dev *hdev, struct hghca_dev_lim *lim)
{
	return hghca_cmd_out(hdev, HGHCA_CMD_QUERY_DEV_LIM, 0, lim, sizeof(*lim));
}

/**
 * hghca_cmd_query_adapter - QUERY_ADAPTER
 * @hdev: the device
 * @adapter: output
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_query_adapter(struct hghca_dev *hdev, struct hghca_adapter *adapter)
{
	return hghca_cmd_out(hdev, HGHCA_CMD_QUERY_ADAPTER, 0, adapter, sizeof(*adapter));
}

/**
 * hghca_cmd_init_hca - INIT_HCA
 * @hdev: the device
 * @init: layout of ICM, and capabilities to enable
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_init_hca(struct hghca_dev *hdev, const struct hghca_init_hca *init)
{
	return hghca_cmd_in(hdev, HGHCA_CMD_INIT_HCA, 0, 0, init, sizeof(*init));
}

/**
 * hghca_cmd_close_hca - CLOSE_HCA
 * @hdev: the device
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_close_hca(struct hghca_dev *hdev)
{
	return hghca_cmd_take(hdev, HGHCA_CMD_CLOSE_HCA, 0, 0, 0);
}

/**
 * hghca_cmd_map_icm - MAP_ICM
 * @hdev: the device
 * @space: HGHCA_ICM_CONTEXT or HGHCA_ICM_TPT
 * @mailbox: the chunks, each at HGHCA_ICM_CHUNK_SLOT()
 * @num_chunks: number of chunks
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_map_icm(struct hghca_dev *hdev, u8 space, struct hghca_mailbox *mailbox,
		      u32 num_chunks)
{
	struct hghca_cmd cmd = {
		.op = HGHCA_CMD_MAP_ICM,
		.in_modifier = num_chunks,
		.op_modifier = space,
		.in = mailbox,
	};

	return hghca_cmd_exec(hdev, &cmd);
}

/**
 * hghca_cmd_unmap_icm - UNMAP_ICM
 * @hdev: the device
 * @space: HGHCA_ICM_CONTEXT or HGHCA_ICM_TPT
 * @virt: ICM address
 * @num_pages: 4096-byte pages
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_unmap_icm(struct hghca_dev *hdev, u8 space, u64 virt, u32 num_pages)
{
	return hghca_cmd_take(hdev, HGHCA_CMD_UNMAP_ICM, num_pages, space, virt);
}

/**
 * hghca_cmd_sw2hw_mpt - SW2HW_MPT
 * @hdev: the device
 * @index: MPT index
 * @mpt: the entry
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_sw2hw_mpt(struct hghca_dev *hdev, u32 index, const struct hghca_mpt *mpt)
{
	return hghca_cmd_in(hdev, HGHCA_CMD_SW2HW_MPT, index, 0, mpt, sizeof(*mpt));
}

/**
 * hghca_cmd_sw2hw_mpt_mtts - SW2HW_MPT with the MTTs of the region
 * @hdev: the device, with INLINE_MTTS
 * @index: MPT index
 * @mailbox: a struct hghca_mpt_mtts
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_sw2hw_mpt_mtts(struct hghca_dev *hdev, u32 index, struct hghca_mailbox *mailbox)
{
	struct hghca_cmd cmd = {
		.op = HGHCA_CMD_SW2HW_MPT,
		.op_modifier = HGHCA_MPT_WITH_MTTS,
		.in_modifier = index,
		.in = mailbox,
	};

	return hghca_cmd_exec(hdev, &cmd);
}

/**
 * hghca_cmd_hw2sw_mpt - HW2SW_MPT
 * @hdev: the device
 * @index: MPT index
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_hw2sw_mpt(struct hghca_dev *hdev, u32 index)
{
	return hghca_cmd_take(hdev, HGHCA_CMD_HW2SW_MPT, index, 0, 0);
}

/**
 * hghca_cmd_query_mpt - QUERY_MPT
 * @hdev: the device
 * @index: MPT index
 * @mpt: the entry
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_query_mpt(struct hghca_dev *hdev, u32 index, struct hghca_mpt *mpt)
{
	return hghca_cmd_out(hdev, HGHCA_CMD_QUERY_MPT, index, mpt, sizeof(*mpt));
}

/**
 * hghca_cmd_write_mtt - WRITE_MTT
 * @hdev: the device
 * @mailbox: a struct hghca_mtt_mailbox, each entry at HGHCA_MTT_SLOT()
 * @num_mtts: number of entries, 1 to HGHCA_MTT_PER_MAILBOX
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_write_mtt(struct hghca_dev *hdev, struct hghca_mailbox *mailbox, u32 num_mtts)
{
	struct hghca_cmd cmd = {
		.op = HGHCA_CMD_WRITE_MTT,
		.in_modifier = num_mtts,
		.in = mailbox,
	};

	return hghca_cmd_exec(hdev, &cmd);
}

/**
 * hghca_cmd_clear_mtt - CLEAR_MTT
 * @hdev: the device
 * @first: index of the first MTT
 * @num_mtts: number of MTTs, 1 to HGHCA_CLEAR_MTT_MAX
 *
 * Does not allocate memory, because it is called during memory reclaim.
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_clear_mtt(struct hghca_dev *hdev, u32 first, u32 num_mtts)
{
	return hghca_cmd_take(hdev, HGHCA_CMD_CLEAR_MTT, num_mtts, 0, first);
}

/**
 * hghca_cmd_resume_qp - RESUME_QP
 * @hdev: the device
 * @qpn: the QP
 * @what: HGHCA_RESUME_*
 *
 * Return: 0, -EBADF for a QP that does not wait for this, or a negative errno.
 */
int hghca_cmd_resume_qp(struct hghca_dev *hdev, u32 qpn, u32 what)
{
	return hghca_cmd_plain(hdev, HGHCA_CMD_RESUME_QP, qpn, 0, what);
}

/**
 * hghca_cmd_map_eq - MAP_EQ
 * @hdev: the device
 * @eqn: the EQ
 * @mask: bit t for event type t
 * @unmap: unmap the types from the EQ
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_map_eq(struct hghca_dev *hdev, u32 eqn, u64 mask, bool unmap)
{
	if (unmap)
		return hghca_cmd_take(hdev, HGHCA_CMD_MAP_EQ, HGHCA_MAP_EQ_UNMAP | eqn, 0, mask);
	return hghca_cmd_plain(hdev, HGHCA_CMD_MAP_EQ, eqn, 0, mask);
}

/**
 * hghca_cmd_sw2hw_eq - SW2HW_EQ
 * @hdev: the device
 * @eqn: the EQ
 * @eqc: its context
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_sw2hw_eq(struct hghca_dev *hdev, u32 eqn, const struct hghca_eqc *eqc)
{
	return hghca_cmd_in(hdev, HGHCA_CMD_SW2HW_EQ, eqn, 0, eqc, sizeof(*eqc));
}

/**
 * hghca_cmd_hw2sw_eq - HW2SW_EQ
 * @hdev: the device
 * @eqn: the EQ
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_hw2sw_eq(struct hghca_dev *hdev, u32 eqn)
{
	return hghca_cmd_take(hdev, HGHCA_CMD_HW2SW_EQ, eqn, 0, 0);
}

/**
 * hghca_cmd_query_eq - QUERY_EQ
 * @hdev: the device
 * @eqn: the EQ
 * @eqc: its context
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_query_eq(struct hghca_dev *hdev, u32 eqn, struct hghca_eqc *eqc)
{
	return hghca_cmd_out(hdev, HGHCA_CMD_QUERY_EQ, eqn, eqc, sizeof(*eqc));
}

/**
 * hghca_cmd_sw2hw_cq - SW2HW_CQ
 * @hdev: the device
 * @cqn: the CQ
 * @cqc: its context
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_sw2hw_cq(struct hghca_dev *hdev, u32 cqn, const struct hghca_cqc *cqc)
{
	return hghca_cmd_in(hdev, HGHCA_CMD_SW2HW_CQ, cqn, 0, cqc, sizeof(*cqc));
}

/**
 * hghca_cmd_hw2sw_cq - HW2SW_CQ
 * @hdev: the device
 * @cqn: the CQ
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_hw2sw_cq(struct hghca_dev *hdev, u32 cqn)
{
	return hghca_cmd_take(hdev, HGHCA_CMD_HW2SW_CQ, cqn, 0, 0);
}

/**
 * hghca_cmd_query_cq - QUERY_CQ
 * @hdev: the device
 * @cqn: the CQ
 * @cqc: its context
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_query_cq(struct hghca_dev *hdev, u32 cqn, struct hghca_cqc *cqc)
{
	return hghca_cmd_out(hdev, HGHCA_CMD_QUERY_CQ, cqn, cqc, sizeof(*cqc));
}

/**
 * hghca_cmd_resize_cq - RESIZE_CQ
 * @hdev: the device
 * @cqn: the CQ
 * @resize: its new buffer
 *
 * Return: 0, -ENOSPC when the device refuses the size, or a negative errno.
 */
int hghca_cmd_resize_cq(struct hghca_dev *hdev, u32 cqn, const struct hghca_resize_cq *resize)
{
	struct hghca_cmd cmd = {
		.op = HGHCA_CMD_RESIZE_CQ,
		.in_modifier = cqn,
	};
	int err;

	cmd.in = hghca_mailbox_alloc(hdev, 0);
	if (IS_ERR(cmd.in))
		return PTR_ERR(cmd.in);

	memcpy(cmd.in->buf, resize, sizeof(*resize));
	err = hghca_cmd_exec(hdev, &cmd);
	hghca_mailbox_free(hdev, cmd.in);
	/* The command returned BAD_SIZE.  -ENOMEM is only for the allocation of the mailbox. */
	return err == -ENOMEM ? -ENOSPC : err;
}

/**
 * hghca_cmd_modify_qp - a QP transition
 * @hdev: the device
 * @op: HGHCA_CMD_RST2INIT_QPEE and so on
 * @qpn: the QP
 * @qpc: its context, or NULL (only 2ERR and ERR2RST)
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_modify_qp(struct hghca_dev *hdev, enum hghca_cmd_op op, u32 qpn,
			const struct hghca_qpc *qpc)
{
	if (qpc)
		return hghca_cmd_in(hdev, op, qpn, HGHCA_QP_OPMOD_INBOX, qpc, sizeof(*qpc));
	return hghca_cmd_take(hdev, op, qpn, HGHCA_QP_OPMOD_NO_INBOX, 0);
}

/**
 * hghca_cmd_start_qp - take a QP from RESET to RTS
 * @hdev: the device
 * @qpn: the QP
 * @init: the context for INIT
 * @rest: the context for RTR and RTS
 *
 * Return: 0 or a negative errno; the QP may then be in any of the states.
 */
int hghca_cmd_start_qp(struct hghca_dev *hdev, u32 qpn, const struct hghca_qpc *init,
		       const struct hghca_qpc *rest)
{
	static const u16 ops[] = {
		HGHCA_CMD_RST2INIT_QPEE, HGHCA_CMD_INIT2RTR_QPEE, HGHCA_CMD_RTR2RTS_QPEE,
	};
	struct hghca_cmd cmds[ARRAY_SIZE(ops)] = {};
	unsigned int i;
	int err;

	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		cmds[i].op = ops[i];
		cmds[i].in_modifier = qpn;
		cmds[i].op_modifier = HGHCA_QP_OPMOD_INBOX;
		cmds[i].in = hghca_mailbox_alloc(hdev, 0);
		if (IS_ERR(cmds[i].in)) {
			err = PTR_ERR(cmds[i].in);
			goto out_free;
		}
		memcpy(cmds[i].in->buf, i ? rest : init, sizeof(*init));
	}
	err = hghca_cmd_exec_chain(hdev, cmds, ARRAY_SIZE(cmds));
out_free:
	while (i--)
		hghca_mailbox_free(hdev, cmds[i].in);
	return err;
}

/**
 * hghca_cmd_query_qp - QUERY_QP
 * @hdev: the device
 * @qpn: the QP
 * @qpc: its context
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_query_qp(struct hghca_dev *hdev, u32 qpn, struct hghca_qpc *qpc)
{
	return hghca_cmd_out(hdev, HGHCA_CMD_QUERY_QP, qpn, qpc, sizeof(*qpc));
}

/**
 * hghca_cmd_conf_special_qp - CONF_SPECIAL_QP
 * @hdev: the device
 * @type: HGHCA_SPECIAL_QP_GSI or HGHCA_SPECIAL_QP_RAW_ETH
 * @qpn: the QP, or 0 to withdraw
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_conf_special_qp(struct hghca_dev *hdev, u8 type, u32 qpn)
{
	if (!qpn)
		return hghca_cmd_take(hdev, HGHCA_CMD_CONF_SPECIAL_QP, 0, type, 0);
	return hghca_cmd_plain(hdev, HGHCA_CMD_CONF_SPECIAL_QP, qpn, type, 0);
}

/**
 * hghca_cmd_mad_ifc - MAD_IFC
 * @hdev: the device
 * @port: the port
 * @mad: input: a request of %IB_MGMT_MAD_SIZE bytes; output: the response
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_mad_ifc(struct hghca_dev *hdev, u32 port, void *mad)
{
	struct hghca_cmd cmd = {
		.op = HGHCA_CMD_MAD_IFC,
		.in_modifier = port,
	};
	int err;

	cmd.in = hghca_mailbox_alloc(hdev, 0);
	if (IS_ERR(cmd.in))
		return PTR_ERR(cmd.in);
	cmd.out = hghca_mailbox_alloc(hdev, IB_MGMT_MAD_SIZE);
	if (IS_ERR(cmd.out)) {
		err = PTR_ERR(cmd.out);
		goto out_free_in;
	}

	memcpy(cmd.in->buf, mad, IB_MGMT_MAD_SIZE);
	err = hghca_cmd_exec(hdev, &cmd);
	if (!err)
		memcpy(mad, cmd.out->buf, IB_MGMT_MAD_SIZE);
	hghca_mailbox_free(hdev, cmd.out);
out_free_in:
	hghca_mailbox_free(hdev, cmd.in);
	return err;
}

/**
 * hghca_cmd_sw2hw_srq - SW2HW_SRQ
 * @hdev: the device
 * @srqn: the SRQ
 * @srqc: its context
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_sw2hw_srq(struct hghca_dev *hdev, u32 srqn, const struct hghca_srqc *srqc)
{
	return hghca_cmd_in(hdev, HGHCA_CMD_SW2HW_SRQ, srqn, 0, srqc, sizeof(*srqc));
}

/**
 * hghca_cmd_hw2sw_srq - HW2SW_SRQ
 * @hdev: the device
 * @srqn: the SRQ
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_hw2sw_srq(struct hghca_dev *hdev, u32 srqn)
{
	return hghca_cmd_take(hdev, HGHCA_CMD_HW2SW_SRQ, srqn, 0, 0);
}

/**
 * hghca_cmd_query_srq - QUERY_SRQ
 * @hdev: the device
 * @srqn: the SRQ
 * @srqc: its context
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_query_srq(struct hghca_dev *hdev, u32 srqn, struct hghca_srqc *srqc)
{
	return hghca_cmd_out(hdev, HGHCA_CMD_QUERY_SRQ, srqn, srqc, sizeof(*srqc));
}

/**
 * hghca_cmd_arm_srq - ARM_SRQ
 * @hdev: the device
 * @srqn: the SRQ
 * @limit: the device raises SRQ_LIMIT when fewer WQEs are left; 0: never
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_arm_srq(struct hghca_dev *hdev, u32 srqn, u16 limit)
{
	return hghca_cmd_plain(hdev, HGHCA_CMD_ARM_SRQ, srqn, 0, limit);
}

/**
 * hghca_cmd_resize_srq - RESIZE_SRQ
 * @hdev: the device
 * @srqn: the SRQ
 * @resize: its new buffer
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_resize_srq(struct hghca_dev *hdev, u32 srqn, const struct hghca_resize_srq *resize)
{
	return hghca_cmd_in(hdev, HGHCA_CMD_RESIZE_SRQ, srqn, 0, resize, sizeof(*resize));
}

/**
 * hghca_cmd_write_mgm - WRITE_MGM
 * @hdev: the device
 * @index: index of the entry
 * @mailbox: a struct hghca_mgm
 * @take: removes a QP: see hghca_cmd_exec_take()
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_write_mgm(struct hghca_dev *hdev, u32 index, struct hghca_mailbox *mailbox,
			bool take)
{
	struct hghca_cmd cmd = {
		.op = HGHCA_CMD_WRITE_MGM,
		.in_modifier = index,
		.in = mailbox,
	};

	return take ? hghca_cmd_exec_take(hdev, &cmd) : hghca_cmd_exec(hdev, &cmd);
}

/**
 * hghca_cmd_mgid_hash - MGID_HASH
 * @hdev: the device
 * @mgid: GID of a group
 * @hash: output: the bucket
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_mgid_hash(struct hghca_dev *hdev, const struct hghca_mgid *mgid, u64 *hash)
{
	struct hghca_cmd cmd = {
		.op = HGHCA_CMD_MGID_HASH,
	};
	int err;

	cmd.in = hghca_mailbox_alloc(hdev, 0);
	if (IS_ERR(cmd.in))
		return PTR_ERR(cmd.in);

	memcpy(cmd.in->buf, mgid, sizeof(*mgid));
	err = hghca_cmd_exec(hdev, &cmd);
	*hash = cmd.out_param;
	hghca_mailbox_free(hdev, cmd.in);
	return err;
}

/**
 * hghca_cmd_flow_attach - FLOW_ATTACH
 * @hdev: the device
 * @index: index of the rule
 * @flow: the rule
 *
 * Return: 0, -EBUSY if the QP already has the same rule, or another negative errno.
 */
int hghca_cmd_flow_attach(struct hghca_dev *hdev, u32 index, const struct hghca_flow *flow)
{
	return hghca_cmd_in(hdev, HGHCA_CMD_FLOW_ATTACH, index, 0, flow, sizeof(*flow));
}

/**
 * hghca_cmd_flow_detach - FLOW_DETACH
 * @hdev: the device
 * @index: index of the rule
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_flow_detach(struct hghca_dev *hdev, u32 index)
{
	return hghca_cmd_take(hdev, HGHCA_CMD_FLOW_DETACH, index, 0, 0);
}

/**
 * hghca_cmd_create_rss - CREATE_RSS
 * @hdev: the device
 * @index: index of the group
 * @rss: the group
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_create_rss(struct hghca_dev *hdev, u32 index, const struct hghca_rss *rss)
{
	return hghca_cmd_in(hdev, HGHCA_CMD_CREATE_RSS, index, 0, rss, sizeof(*rss));
}

/**
 * hghca_cmd_destroy_rss - DESTROY_RSS
 * @hdev: the device
 * @index: index of the group
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_destroy_rss(struct hghca_dev *hdev, u32 index)
{
	return hghca_cmd_take(hdev, HGHCA_CMD_DESTROY_RSS, index, 0, 0);
}

/**
 * hghca_cmd_sw2hw_part - SW2HW_PART
 * @hdev: the device
 * @index: index of the partition
 * @partition: the partition
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_sw2hw_part(struct hghca_dev *hdev, u32 index,
			 const struct hghca_partition *partition)
{
	return hghca_cmd_in(hdev, HGHCA_CMD_SW2HW_PART, index, 0, partition, sizeof(*partition));
}

/**
 * hghca_cmd_hw2sw_part - HW2SW_PART
 * @hdev: the device
 * @index: index of the partition
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_hw2sw_part(struct hghca_dev *hdev, u32 index)
{
	return hghca_cmd_take(hdev, HGHCA_CMD_HW2SW_PART, index, 0, 0);
}

/**
 * hghca_cmd_query_part - QUERY_PART
 * @hdev: the device
 * @index: index of the partition
 * @partition: output
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_query_part(struct hghca_dev *hdev, u32 index, struct hghca_partition *partition)
{
	return hghca_cmd_out(hdev, HGHCA_CMD_QUERY_PART, index, partition, sizeof(*partition));
}

/**
 * hghca_cmd_set_congestion - SET_CONGESTION
 * @hdev: the device
 * @congestion: all parameters
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_set_congestion(struct hghca_dev *hdev, const struct hghca_congestion *congestion)
{
	return hghca_cmd_in(hdev, HGHCA_CMD_SET_CONGESTION, HGHCA_PORT_NUM, 0, congestion,
			    sizeof(*congestion));
}

/**
 * hghca_cmd_query_congestion - QUERY_CONGESTION
 * @hdev: the device
 * @congestion: output
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_query_congestion(struct hghca_dev *hdev, struct hghca_congestion *congestion)
{
	return hghca_cmd_out(hdev, HGHCA_CMD_QUERY_CONGESTION, HGHCA_PORT_NUM, congestion,
			     sizeof(*congestion));
}

/**
 * hghca_cmd_set_flow_control - SET_FLOW_CONTROL
 * @hdev: the device
 * @control: all settings
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_set_flow_control(struct hghca_dev *hdev, const struct hghca_flow_control *control)
{
	return hghca_cmd_in(hdev, HGHCA_CMD_SET_FLOW_CONTROL, HGHCA_PORT_NUM, 0, control,
			    sizeof(*control));
}

/**
 * hghca_cmd_query_flow_control - QUERY_FLOW_CONTROL
 * @hdev: the device
 * @control: output
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_query_flow_control(struct hghca_dev *hdev, struct hghca_flow_control *control)
{
	return hghca_cmd_out(hdev, HGHCA_CMD_QUERY_FLOW_CONTROL, HGHCA_PORT_NUM, control,
			     sizeof(*control));
}

/**
 * hghca_cmd_set_gid - SET_GID
 * @hdev: the device
 * @index: GID index
 * @gid: the entry, or NULL to clear it
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_set_gid(struct hghca_dev *hdev, u32 index, const struct hghca_gid_entry *gid)
{
	if (!gid)
		return hghca_cmd_take(hdev, HGHCA_CMD_SET_GID, index, HGHCA_GID_CLEAR, 0);
	return hghca_cmd_in(hdev, HGHCA_CMD_SET_GID, index, HGHCA_GID_SET, gid, sizeof(*gid));
}

/**
 * hghca_cmd_query_port - QUERY_PORT
 * @hdev: the device
 * @port: output
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_query_port(struct hghca_dev *hdev, struct hghca_port *port)
{
	return hghca_cmd_out(hdev, HGHCA_CMD_QUERY_PORT, HGHCA_PORT_NUM, port, sizeof(*port));
}

/**
 * hghca_cmd_set_port - SET_PORT
 * @hdev: the device
 * @port: MAC, MTU and receive filter
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_set_port(struct hghca_dev *hdev, const struct hghca_port *port)
{
	return hghca_cmd_in(hdev, HGHCA_CMD_SET_PORT, HGHCA_PORT_NUM, 0, port, sizeof(*port));
}

/**
 * hghca_cmd_query_stats - QUERY_STATS
 * @hdev: the device
 * @which: HGHCA_STATS_ALL or HGHCA_STATS_OUTSIDE_SETS
 * @values: output, in host order
 * @count: number of values, at most 512
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_query_stats(struct hghca_dev *hdev, u8 which, u64 *values, u32 count)
{
	return hghca_cmd_out_u64(hdev, HGHCA_CMD_QUERY_STATS, 0, which, values, count);
}

/**
 * hghca_cmd_set_qp_counter - SET_QP_COUNTER
 * @hdev: the device
 * @qpn: the QP
 * @set: its new counter set, or 0 for no set
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_set_qp_counter(struct hghca_dev *hdev, u32 qpn, u32 set)
{
	if (!set)
		return hghca_cmd_take(hdev, HGHCA_CMD_SET_QP_COUNTER, qpn, 0, 0);
	return hghca_cmd_plain(hdev, HGHCA_CMD_SET_QP_COUNTER, qpn, 0, set);
}

/**
 * hghca_cmd_moderate_cq - MODERATE_CQ
 * @hdev: the device
 * @cqn: the CQ
 * @count: number of completions after which the device raises an event
 * @period: maximum delay of the event, in us
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_moderate_cq(struct hghca_dev *hdev, u32 cqn, u16 count, u16 period)
{
	return hghca_cmd_plain(hdev, HGHCA_CMD_MODERATE_CQ, cqn, 0,
			       FIELD_PREP(HGHCA_CQ_MODERATION_COUNT_MASK, count) |
			       FIELD_PREP(HGHCA_CQ_MODERATION_PERIOD_MASK, period));
}

/**
 * hghca_cmd_set_status_record - SET_STATUS_RECORD
 * @hdev: the device
 * @record: DMA address of 4 bytes, to which the device writes from now on
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_set_status_record(struct hghca_dev *hdev, dma_addr_t record)
{
	return hghca_cmd_plain(hdev, HGHCA_CMD_SET_STATUS_RECORD, 0, HGHCA_STATUS_RECORD_SET,
			       record);
}

/**
 * hghca_cmd_query_counter_set - QUERY_COUNTER_SET
 * @hdev: the device
 * @set: the counter set
 * @values: HGHCA_QP_COUNTER_NUM numbers, in host order
 * @clear: clear the counters after reading
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_query_counter_set(struct hghca_dev *hdev, u32 set, u64 *values, bool clear)
{
	return hghca_cmd_out_u64(hdev, HGHCA_CMD_QUERY_COUNTER_SET, set,
				 clear ? HGHCA_COUNTER_SET_CLEAR : HGHCA_COUNTER_SET_READ,
				 values, HGHCA_QP_COUNTER_NUM);
}

/**
 * hghca_cmd_nop - NOP
 * @hdev: the device
 *
 * Return: 0 or a negative errno.
 */
int hghca_cmd_nop(struct hghca_dev *hdev)
{
	return hghca_cmd_plain(hdev, HGHCA_CMD_NOP, HGHCA_NOP_IN_MODIFIER, 0, 0);
}
