/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* JingZhao HCA: commands; docs/reference/hardware-interface.rst, 3.2 and 4. */
#ifndef HGHCA_INTERFACE_CMD_H
#define HGHCA_INTERFACE_CMD_H

/*
 * HGHCA_COMMANDS(X) - every command, as
 * X(name, function, op, in, out, when, in_modifier, op_modifiers, capability)
 *
 *	name		HGHCA_CMD_name; logs and traces print it
 *	function	the function of the device that executes the command
 *	op		opcode
 *	in, out		kind of in_param and out_param: enum hghca_cmd_param
 *	when		INIT: valid only after INIT_HCA; ANY: valid before it, too
 *	in_modifier	the only valid value, or ANY
 *	op_modifiers	bit m: op_modifier m is valid; ANY: the function checks
 *	capability	HGHCA_CAP_*: without it the command returns BAD_OP; BASE: a command of
 *			the JingZhao document; NONE: an extension that needs no capability
 */
#define HGHCA_COMMANDS(X) \
	X(QUERY_DEV_LIM,      query_dev_lim,      0x003, NONE, MBOX, ANY,  0,   0x1, BASE) \
	X(QUERY_ADAPTER,      query_adapter,      0x006, NONE, MBOX, ANY,  0,   0x1, BASE) \
	X(INIT_HCA,           init_hca,           0x007, MBOX, NONE, ANY,  0,   0x1, BASE) \
	X(CLOSE_HCA,          close_hca,          0x008, NONE, NONE, INIT, 0,   0x1, BASE) \
	X(SET_PORT,           set_port,           0x00c, MBOX, NONE, INIT, 1,   0x1, PORT) \
	X(SW2HW_MPT,          sw2hw_mpt,          0x00d, MBOX, NONE, INIT, ANY, 0x3, BASE) \
	X(QUERY_MPT,          query_mpt,          0x00e, NONE, MBOX, INIT, ANY, 0x1, QP_COUNTERS) \
	X(HW2SW_MPT,          hw2sw_mpt,          0x00f, NONE, NONE, INIT, ANY, 0x1, BASE) \
	X(WRITE_MTT,          write_mtt,          0x011, MBOX, NONE, INIT, ANY, 0x1, BASE) \
	X(MAP_EQ,             map_eq,             0x012, IMM,  NONE, INIT, ANY, 0x1, BASE) \
	X(SW2HW_EQ,           sw2hw_eq,           0x013, MBOX, NONE, INIT, ANY, 0x1, BASE) \
	X(HW2SW_EQ,           hw2sw_eq,           0x014, NONE, NONE, INIT, ANY, 0x1, BASE) \
	X(QUERY_EQ,           query_eq,           0x015, NONE, MBOX, INIT, ANY, 0x1, QP_COUNTERS) \
	X(SW2HW_CQ,           sw2hw_cq,           0x016, MBOX, NONE, INIT, ANY, 0x1, BASE) \
	X(HW2SW_CQ,           hw2sw_cq,           0x017, NONE, NONE, INIT, ANY, 0x1, BASE) \
	X(QUERY_CQ,           query_cq,           0x018, NONE, MBOX, INIT, ANY, 0x1, QP_COUNTERS) \
	X(RST2INIT_QPEE,      modify_qp,          0x019, MBOX, NONE, INIT, ANY, 0x1, BASE) \
	X(INIT2RTR_QPEE,      modify_qp,          0x01a, MBOX, NONE, INIT, ANY, 0x1, BASE) \
	X(RTR2RTS_QPEE,       modify_qp,          0x01b, MBOX, NONE, INIT, ANY, 0x1, BASE) \
	X(RTS2RTS_QPEE,       modify_qp,          0x01c, MBOX, NONE, INIT, ANY, 0x1, BASE) \
	X(SQERR2RTS_QPEE,     modify_qp,          0x01d, MBOX, NONE, INIT, ANY, 0x1, BASE) \
	X(2ERR_QPEE,          modify_qp,          0x01e, OPT,  NONE, INIT, ANY, 0x9, BASE) \
	X(RTS2SQD_QPEE,       modify_qp,          0x01f, MBOX, NONE, INIT, ANY, 0x1, BASE) \
	X(SQD2RTS_QPEE,       modify_qp,          0x020, MBOX, NONE, INIT, ANY, 0x1, BASE) \
	X(ERR2RST_QPEE,       modify_qp,          0x021, OPT,  NONE, INIT, ANY, 0x9, BASE) \
	X(QUERY_QP,           query_qp,           0x022, NONE, MBOX, INIT, ANY, 0x1, BASE) \
	X(CONF_SPECIAL_QP,    conf_special_qp,    0x023, NONE, NONE, INIT, ANY, ANY, BASE) \
	X(MAD_IFC,            mad_ifc,            0x024, MBOX, MBOX, INIT, ANY, ANY, BASE) \
	X(READ_MGM,           read_mgm,           0x025, NONE, MBOX, INIT, ANY, 0x1, MULTICAST) \
	X(WRITE_MGM,          write_mgm,          0x026, MBOX, NONE, INIT, ANY, 0x1, MULTICAST) \
	X(MGID_HASH,          mgid_hash,          0x027, MBOX, IMM,  INIT, 0,   0x1, MULTICAST) \
	X(RESIZE_CQ,          resize_cq,          0x02c, MBOX, NONE, INIT, ANY, 0x1, BASE) \
	X(INIT2INIT_QPEE,     modify_qp,          0x02d, MBOX, NONE, INIT, ANY, 0x1, BASE) \
	X(NOP,                nop,                0x031, NONE, NONE, ANY,  HGHCA_NOP_IN_MODIFIER, \
	  0x1, BASE) \
	X(SW2HW_SRQ,          sw2hw_srq,          0x035, MBOX, NONE, INIT, ANY, 0x1, SRQ) \
	X(HW2SW_SRQ,          hw2sw_srq,          0x036, NONE, NONE, INIT, ANY, 0x1, SRQ) \
	X(QUERY_SRQ,          query_srq,          0x037, NONE, MBOX, INIT, ANY, 0x1, SRQ) \
	X(SQD2SQD_QPEE,       modify_qp,          0x038, MBOX, NONE, INIT, ANY, 0x1, BASE) \
	X(ARM_SRQ,            arm_srq,            0x040, IMM,  NONE, INIT, ANY, 0x1, SRQ) \
	X(RESIZE_SRQ,         resize_srq,         0x044, MBOX, NONE, INIT, ANY, 0x1, SRQ) \
	X(SET_GID,            set_gid,            0xe00, OPT,  NONE, INIT, ANY, 0x3, GID_TABLE) \
	X(QUERY_PORT,         query_port,         0xe01, NONE, MBOX, ANY,  1,   0x1, NONE) \
	X(QUERY_STATS,        query_stats,        0xe02, NONE, MBOX, INIT, ANY, 0x3, STATS) \
	X(SET_QP_COUNTER,     set_qp_counter,     0xe03, IMM,  NONE, INIT, ANY, 0x1, QP_COUNTERS) \
	X(QUERY_COUNTER_SET,  query_counter_set,  0xe04, NONE, MBOX, INIT, ANY, 0x3, QP_COUNTERS) \
	X(FLOW_ATTACH,        flow_attach,        0xe05, MBOX, NONE, INIT, ANY, 0x1, RAW_PACKET) \
	X(FLOW_DETACH,        flow_detach,        0xe06, NONE, NONE, INIT, ANY, 0x1, RAW_PACKET) \
	X(MODERATE_CQ,        moderate_cq,        0xe07, IMM,  NONE, INIT, ANY, 0x1, MODERATION) \
	X(RESUME_QP,          resume_qp,          0xe08, IMM,  NONE, INIT, ANY, 0x1, ODP) \
	X(CLEAR_MTT,          clear_mtt,          0xe09, IMM,  NONE, INIT, ANY, 0x1, ODP) \
	X(CREATE_RSS,         create_rss,         0xe0a, MBOX, NONE, INIT, ANY, 0x1, RSS) \
	X(DESTROY_RSS,        destroy_rss,        0xe0b, NONE, NONE, INIT, ANY, 0x1, RSS) \
	X(SET_CONGESTION,     set_congestion,     0xe0c, MBOX, NONE, INIT, 1,   0x1, CONGESTION) \
	X(QUERY_CONGESTION,   query_congestion,   0xe0d, NONE, MBOX, INIT, 1,   0x1, CONGESTION) \
	X(SET_FLOW_CONTROL,   set_flow_control,   0xe0e, MBOX, NONE, INIT, 1,   0x1, FLOW_CONTROL) \
	X(QUERY_FLOW_CONTROL, query_flow_control, 0xe0f, NONE, MBOX, INIT, 1,   0x1, FLOW_CONTROL) \
	X(READ_ERROR_BUFFER,  read_error_buffer,  0xe10, NONE, MBOX, INIT, ANY, 0x1, STATS) \
	X(QUERY_CAPS,         query_caps,         0xe11, NONE, MBOX, ANY,  0,   0x1, NONE) \
	X(SW2HW_PART,         sw2hw_part,         0xe12, MBOX, NONE, INIT, ANY, 0x1, VENDOR_OPS) \
	X(HW2SW_PART,         hw2sw_part,         0xe13, NONE, NONE, INIT, ANY, 0x1, VENDOR_OPS) \
	X(QUERY_PART,         query_part,         0xe14, NONE, MBOX, INIT, ANY, 0x1, VENDOR_OPS) \
	X(SET_STATUS_RECORD,  set_status_record,  0xe15, IMM,  NONE, INIT, 0, \
	  0x3, STATUS_RECORD) \
	X(UNMAP_ICM,          unmap_icm,          0xff9, IMM,  NONE, ANY,  ANY, 0x6, BASE) \
	X(MAP_ICM,            map_icm,            0xffa, MBOX, NONE, ANY,  ANY, 0x6, BASE)

enum hghca_cmd_op {
#define HGHCA_CMD_ENUM(name, function, op, ...) HGHCA_CMD_##name = op,
	HGHCA_COMMANDS(HGHCA_CMD_ENUM)
#undef HGHCA_CMD_ENUM
};

enum hghca_cmd_param {
	HGHCA_CMD_PARAM_NONE,
	HGHCA_CMD_PARAM_IMM,	/* an immediate value */
	HGHCA_CMD_PARAM_MBOX,	/* the DMA address of a mailbox */
	HGHCA_CMD_PARAM_OPT,	/* op_modifier 0: as MBOX; otherwise unused */
};

enum hghca_cmd_when {
	HGHCA_CMD_WHEN_ANY,
	HGHCA_CMD_WHEN_INIT,
};

/* HGHCA_CMD_STATUSES(X) - every status, as X(name, value) */
#define HGHCA_CMD_STATUSES(X) \
	X(OK,             0x00) \
	X(INTERNAL_ERR,   0x01) \
	X(BAD_OP,         0x02) \
	X(BAD_PARAM,      0x03) \
	X(BAD_SYS_STATE,  0x04) \
	X(BAD_NVMEM,      0x05) \
	X(RESOURCE_BUSY,  0x06) \
	X(EXCEED_LIM,     0x08) \
	X(BAD_RES_STATE,  0x09) \
	X(BAD_INDEX,      0x0a) \
	X(BAD_QPEE_STATE, 0x10) \
	X(BAD_SEG_PARAM,  0x20) \
	X(REG_BOUND,      0x21) \
	X(LAM_NOT_PRE,    0x22) \
	X(BAD_SIZE,       0x40)

enum hghca_cmd_status {
#define HGHCA_CMD_STATUS_ENUM(name, value) HGHCA_CMD_STAT_##name = value,
	HGHCA_CMD_STATUSES(HGHCA_CMD_STATUS_ENUM)
#undef HGHCA_CMD_STATUS_ENUM
};

/*
 * HGHCA_CAPABILITIES(X) - every extension, as X(name, bit, description)
 *
 * QUERY_DEV_LIM reports them at offset 3Ch. INIT_HCA enables them at offset 20h.
 */
#define HGHCA_CAPABILITIES(X) \
	X(GID_TABLE,     0,  "SET_GID; addressing by GID index") \
	X(DBR,           1,  "doorbell records of RQ and CQ") \
	X(CQ_ARM,        2,  "UAR doorbells 0x10, 0x20: arming") \
	X(CQ_UPDATE,     3,  "the C bit of a send WQE has an effect") \
	X(PORT,          4,  "QUERY_PORT, SET_PORT, raw Ethernet QP") \
	X(QP_LIMITS,     5,  "QPC word A8h has an effect") \
	X(STATS,         6,  "QUERY_STATS") \
	X(SRQ,           7,  "shared receive queues") \
	X(UC,            8,  "nothing: each device has service type UC") \
	X(MEM_MGT,       9,  "registration by WQEs, memory windows") \
	X(XRC,           10, "service type XRC; needs SRQ") \
	X(MULTICAST,     11, "multicast groups") \
	X(QP_COUNTERS,   12, "counter sets; QUERY_CQ, QUERY_EQ, QUERY_MPT") \
	X(RAW_PACKET,    13, "flow rules for raw Ethernet QPs") \
	X(CLOCK,         14, "clock; CQs with timestamps") \
	X(MODERATION,    15, "MODERATE_CQ") \
	X(PLACEMENT,     16, "FLUSH, ATOMIC_WRITE") \
	X(ODP,           17, "on-demand paging of memory regions") \
	X(DEVICE_MEMORY, 18, "memory regions in device memory") \
	X(RSS,           19, "RSS groups as targets of flow rules") \
	X(CONGESTION,    20, "congestion control") \
	X(FLOW_CONTROL,  21, "pause frames") \
	X(FIRST_BYTE,    22, "zero-based regions that start at any byte") \
	X(VENDOR_OPS,    23, "partitions; PART, READ_POINTER, READ_CONSISTENT") \
	X(SYNC_COMMANDS, 24, "a command ends in the write of go") \
	X(INLINE_MTTS,   25, "SW2HW_MPT with the MTTs of the region") \
	X(RQ_OFFSET,     26, "a receive queue that starts behind the start of its region") \
	X(STATUS_RECORD, 27, "a copy of HCR word 18h in memory; needs SYNC_COMMANDS")

enum hghca_cap {
#define HGHCA_CAP_ENUM(name, bit, text) HGHCA_CAP_##name = 1 << (bit),
	HGHCA_CAPABILITIES(HGHCA_CAP_ENUM)
#undef HGHCA_CAP_ENUM
#define HGHCA_CAP_BIT(name, bit, text) | 1 << (bit)
	HGHCA_CAP_ALL = 0 HGHCA_CAPABILITIES(HGHCA_CAP_BIT)
#undef HGHCA_CAP_BIT
};

/* BASE and NONE of the column `capability` of HGHCA_COMMANDS: no bit. */
#define HGHCA_CAP_BASE			0
#define HGHCA_CAP_NONE			0

/* op_modifier of SW2HW_MPT. */
#define HGHCA_MPT_ALONE			0
#define HGHCA_MPT_WITH_MTTS		1	/* extension: INLINE_MTTS */

/* op_modifier of MAP_ICM and UNMAP_ICM. */
#define HGHCA_ICM_CONTEXT		1
#define HGHCA_ICM_TPT			2

/* op_modifier of the QP transitions. */
#define HGHCA_QP_OPMOD_INBOX		0
#define HGHCA_QP_OPMOD_NO_INBOX		3

/* op_modifier of CONF_SPECIAL_QP. */
#define HGHCA_SPECIAL_QP_SMI		0
#define HGHCA_SPECIAL_QP_GSI		1
#define HGHCA_SPECIAL_QP_RAW_ETH	3

/* op_modifier of SET_GID. */
#define HGHCA_GID_SET			0
#define HGHCA_GID_CLEAR			1

/* op_modifier of QUERY_STATS. */
#define HGHCA_STATS_ALL			0
#define HGHCA_STATS_OUTSIDE_SETS	1	/* extension: counts of QPs without a counter set */

/* op_modifier of QUERY_COUNTER_SET. */
#define HGHCA_COUNTER_SET_READ		0
#define HGHCA_COUNTER_SET_CLEAR		1	/* read, then clear */

/* op_modifier of SET_STATUS_RECORD. */
#define HGHCA_STATUS_RECORD_CLEAR	0
#define HGHCA_STATUS_RECORD_SET		1

#define HGHCA_NOP_IN_MODIFIER		0x1f

#endif /* HGHCA_INTERFACE_CMD_H */
