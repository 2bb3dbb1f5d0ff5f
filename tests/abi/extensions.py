# SPDX-License-Identifier: GPL-2.0-or-later
"""What docs/reference/hardware-interface.rst adds to the JingZhao document, as literals, by its sections.

Every number here is that document's, and none the header's. tests/tools/field_cases.py compares the layouts of its
section 16; here is what its other sections state.
"""

from literals import BIG, Field, Table, Value, mask

DOCUMENT = "hardware-interface.rst"

COMMANDS = (
    Table("section 2", "PCI", (
        Value("vendor", 0x1af4, "HGHCA_PCI_VENDOR_ID"),
        Value("device", 0x10f1, "HGHCA_PCI_DEVICE_ID"),
        Value("subsystem", 0x1100, "HGHCA_PCI_SUBSYSTEM_ID"),
        Value("subsystem of RSNIC", 0x10f3, "HGHCA_PCI_SUBSYSTEM_ID_RSNIC"),
        Value("class", 0x020700, "HGHCA_PCI_CLASS"),
        Value("interface revision", 1, "HGHCA_INTERFACE_REVISION"),
        Value("BAR of MSI-X", 4, "HGHCA_BAR_MSIX"),
        Value("device memory, from 8 MB on", 8 << 20, "HGHCA_DEVICE_MEMORY_OFFSET"),
        Value("device memory, largest, by section 4.1", 1 << 23, "HGHCA_DEVICE_MEMORY_MAX"),
    )),
    Table("section 3.2", "status", (
        Value("INTERNAL_ERR", 0x01, "HGHCA_CMD_STAT_INTERNAL_ERR"),
        Value("RESOURCE_BUSY", 0x06, "HGHCA_CMD_STAT_RESOURCE_BUSY"),
        Value("EXCEED_LIM", 0x08, "HGHCA_CMD_STAT_EXCEED_LIM"),
        Value("BAD_RES_STATE", 0x09, "HGHCA_CMD_STAT_BAD_RES_STATE"),
        Value("BAD_INDEX", 0x0a, "HGHCA_CMD_STAT_BAD_INDEX"),
        Value("BAD_QPEE_STATE", 0x10, "HGHCA_CMD_STAT_BAD_QPEE_STATE"),
        Value("BAD_SEG_PARAM", 0x20, "HGHCA_CMD_STAT_BAD_SEG_PARAM"),
        Value("REG_BOUND", 0x21, "HGHCA_CMD_STAT_REG_BOUND"),
        Value("LAM_NOT_PRE", 0x22, "HGHCA_CMD_STAT_LAM_NOT_PRE"),
        Value("BAD_SIZE", 0x40, "HGHCA_CMD_STAT_BAD_SIZE"),
    )),
    Table("section 4", "commands", (
        Value("SET_PORT", 0x00c, "HGHCA_CMD_SET_PORT"),
        Value("QUERY_MPT", 0x00e, "HGHCA_CMD_QUERY_MPT"),
        Value("QUERY_EQ", 0x015, "HGHCA_CMD_QUERY_EQ"),
        Value("QUERY_CQ", 0x018, "HGHCA_CMD_QUERY_CQ"),
        Value("READ_MGM", 0x025, "HGHCA_CMD_READ_MGM"),
        Value("WRITE_MGM", 0x026, "HGHCA_CMD_WRITE_MGM"),
        Value("MGID_HASH", 0x027, "HGHCA_CMD_MGID_HASH"),
        Value("SW2HW_SRQ", 0x035, "HGHCA_CMD_SW2HW_SRQ"),
        Value("HW2SW_SRQ", 0x036, "HGHCA_CMD_HW2SW_SRQ"),
        Value("QUERY_SRQ", 0x037, "HGHCA_CMD_QUERY_SRQ"),
        Value("ARM_SRQ", 0x040, "HGHCA_CMD_ARM_SRQ"),
        Value("RESIZE_SRQ", 0x044, "HGHCA_CMD_RESIZE_SRQ"),
        Value("SET_GID", 0xe00, "HGHCA_CMD_SET_GID"),
        Value("SET_GID, op_modifier: set", 0, "HGHCA_GID_SET"),
        Value("SET_GID, op_modifier: clear", 1, "HGHCA_GID_CLEAR"),
        Value("QUERY_PORT", 0xe01, "HGHCA_CMD_QUERY_PORT"),
        Value("QUERY_STATS", 0xe02, "HGHCA_CMD_QUERY_STATS"),
        Value("SET_QP_COUNTER", 0xe03, "HGHCA_CMD_SET_QP_COUNTER"),
        Value("QUERY_COUNTER_SET", 0xe04, "HGHCA_CMD_QUERY_COUNTER_SET"),
        Value("FLOW_ATTACH", 0xe05, "HGHCA_CMD_FLOW_ATTACH"),
        Value("FLOW_DETACH", 0xe06, "HGHCA_CMD_FLOW_DETACH"),
        Value("MODERATE_CQ", 0xe07, "HGHCA_CMD_MODERATE_CQ"),
        Value("RESUME_QP", 0xe08, "HGHCA_CMD_RESUME_QP"),
        Value("CLEAR_MTT", 0xe09, "HGHCA_CMD_CLEAR_MTT"),
        Value("CREATE_RSS", 0xe0a, "HGHCA_CMD_CREATE_RSS"),
        Value("DESTROY_RSS", 0xe0b, "HGHCA_CMD_DESTROY_RSS"),
        Value("SET_CONGESTION", 0xe0c, "HGHCA_CMD_SET_CONGESTION"),
        Value("QUERY_CONGESTION", 0xe0d, "HGHCA_CMD_QUERY_CONGESTION"),
        Value("SET_FLOW_CONTROL", 0xe0e, "HGHCA_CMD_SET_FLOW_CONTROL"),
        Value("QUERY_FLOW_CONTROL", 0xe0f, "HGHCA_CMD_QUERY_FLOW_CONTROL"),
        Value("READ_ERROR_BUFFER", 0xe10, "HGHCA_CMD_READ_ERROR_BUFFER"),
        Value("QUERY_CAPS", 0xe11, "HGHCA_CMD_QUERY_CAPS"),
    )),
    Table("section 4.1", "QUERY_DEV_LIM output", order=BIG, struct="struct hghca_dev_lim", rows=(
        Field("interface revision", 0x38, "31:0", "revision"),
        Field("capabilities", 0x3C, "31:0", "caps"),
    )),
    Table("section 4.2", "capabilities", (
        Value("GID_TABLE", 1 << 0, "HGHCA_CAP_GID_TABLE"),
        Value("DBR", 1 << 1, "HGHCA_CAP_DBR"),
        Value("CQ_ARM", 1 << 2, "HGHCA_CAP_CQ_ARM"),
        Value("CQ_UPDATE", 1 << 3, "HGHCA_CAP_CQ_UPDATE"),
        Value("PORT", 1 << 4, "HGHCA_CAP_PORT"),
        Value("QP_LIMITS", 1 << 5, "HGHCA_CAP_QP_LIMITS"),
        Value("STATS", 1 << 6, "HGHCA_CAP_STATS"),
        Value("SRQ", 1 << 7, "HGHCA_CAP_SRQ"),
        Value("UC", 1 << 8, "HGHCA_CAP_UC"),
        Value("MEM_MGT", 1 << 9, "HGHCA_CAP_MEM_MGT"),
        Value("XRC", 1 << 10, "HGHCA_CAP_XRC"),
        Value("MULTICAST", 1 << 11, "HGHCA_CAP_MULTICAST"),
        Value("QP_COUNTERS", 1 << 12, "HGHCA_CAP_QP_COUNTERS"),
        Value("RAW_PACKET", 1 << 13, "HGHCA_CAP_RAW_PACKET"),
        Value("CLOCK", 1 << 14, "HGHCA_CAP_CLOCK"),
        Value("MODERATION", 1 << 15, "HGHCA_CAP_MODERATION"),
        Value("PLACEMENT", 1 << 16, "HGHCA_CAP_PLACEMENT"),
        Value("ODP", 1 << 17, "HGHCA_CAP_ODP"),
        Value("DEVICE_MEMORY", 1 << 18, "HGHCA_CAP_DEVICE_MEMORY"),
        Value("RSS", 1 << 19, "HGHCA_CAP_RSS"),
        Value("CONGESTION", 1 << 20, "HGHCA_CAP_CONGESTION"),
        Value("FLOW_CONTROL", 1 << 21, "HGHCA_CAP_FLOW_CONTROL"),
        Value("FIRST_BYTE", 1 << 22, "HGHCA_CAP_FIRST_BYTE"),
        Value("all of them", mask("22:0"), "HGHCA_CAP_ALL"),
    )),
    Table("section 15, INIT_HCA 40h", "of RSNIC", order=BIG, struct="struct hghca_init_hca", rows=(
        Field("packet_base[63:32]", 0x40, "31:0", "packet_base[63:32]"),
        Field("packet_base[31:0]", 0x44, "31:0", "packet_base[31:0]"),
        Field("log2 of the number of pages", 0x44, "7:0", "packet_base", mask="HGHCA_INIT_HCA_LOG_MASK"),
        Value("end of the layout", 0x48, "sizeof(struct hghca_init_hca)"),
    )),
    Table("section 4.4", "MAP_ICM", (
        Value("chunks of a mailbox", 256, "HGHCA_ICM_CHUNKS_MAX"),
    )),
    Table("section 4.5", "MPT", order=BIG, struct="struct hghca_mpt", rows=(
        Value("index of a key with MEM_MGT", mask("31:8"), "HGHCA_KEY_INDEX_MASK"),
        Value("tag of a key with MEM_MGT", mask("7:0"), "HGHCA_KEY_TAG_MASK"),
        Field("first_byte", 0x38, "31:0", "first_byte"),
    )),
    Table("section 4.6", "MTT", (
        Value("entries of a mailbox", 508, "HGHCA_MTT_PER_MAILBOX"),
        Value("end of the layout", 4096, "sizeof(struct hghca_mtt_mailbox)"),
        Value("bits 11:0 are ignored", mask("63:12"), "HGHCA_MTT_ADDR_MASK"),
    )),
    Table("section 4.9", "QP context", order=BIG, struct="struct hghca_qpc", rows=(
        Field("limits, READs and atomics as initiator", 0xA8, "31:24", "limits", mask="HGHCA_QPC_LIMITS_RD_ATOMIC"),
        Field("limits, READs and atomics as target", 0xA8, "23:16", "limits", mask="HGHCA_QPC_LIMITS_DEST_RD_ATOMIC"),
        Field("limits, SQD notification", 0xA8, "15:15", "limits", mask="HGHCA_QPC_LIMITS_SQD_NOTIFY"),
        Field("limits, retry count", 0xA8, "10:8", "limits", mask="HGHCA_QPC_LIMITS_RETRY_CNT"),
        Field("limits, remote access rights", 0xA8, "7:0", "limits", mask="HGHCA_QPC_LIMITS_ACCESS"),
        Value("dbr_addr, bit 0 set", 1 << 0, "HGHCA_DBR_VALID"),
        Field("flags, SQ draining", 0x08, "27:27", "flags", mask="HGHCA_QPC_SQ_DRAINING"),
        Value("smallest stride", 6, "HGHCA_WQE_MIN_STRIDE_LOG"),
        Value("largest stride", 10, "HGHCA_WQE_MAX_STRIDE_LOG"),
        Value("static_rate: none", 1, "HGHCA_STATIC_RATE_NONE"),
        Value("static_rate: last", 24, "HGHCA_STATIC_RATE_MAX"),
    )),
    Table("section 4.10", "CONF_SPECIAL_QP", (
        Value("SMI", 0, "HGHCA_SPECIAL_QP_SMI"),
        Value("GSI", 1, "HGHCA_SPECIAL_QP_GSI"),
        Value("raw Ethernet", 3, "HGHCA_SPECIAL_QP_RAW_ETH"),
    )),
    Table("section 4.15", "shared receive queues", order=BIG, struct="struct hghca_qpc", rows=(
        Field("SRQ of a QP", 0xAC, "31:0", "srqn"),
    )),
    Table("section 4.16", "memory management extensions", order=BIG, struct="struct hghca_qpc", rows=(
        Value("pages of a REG_MR", 65536, "HGHCA_REG_MR_PAGES_MAX"),
        Field("TRUST_REG_MR", 0xB0, "31:31", "trust", mask="HGHCA_QPC_TRUST_REG_MR"),
    )),
    Table("section 4.17, QP context", "extended reliable connections", order=BIG, struct="struct hghca_qpc", rows=(
        Field("XRC domain", 0xB4, "31:0", "xrcd"),
    )),
    Table("section 4.17, next unit", "extended reliable connections", struct="struct hghca_next_unit", rows=(
        Field("SRQ at the peer", 0x08, "31:8", "flags", mask="HGHCA_WQE_XRC_SRQN_MASK"),
    )),
    Table("section 4.18", "multicast groups", (
        Value("entries of a chain", 32, "HGHCA_MGM_CHAIN_MAX"),
        Value("QPs of a group, by section 4.1", 56, "HGHCA_MGM_QPS"),
        Value("size of an entry, by section 4.1", 256, "sizeof(struct hghca_mgm)"),
    )),
    Table("section 4.19", "counter sets", order=BIG, struct="struct hghca_qpc", rows=(
        Field("counter set", 0xB8, "31:0", "counter_set"),
        Value("QUERY_COUNTER_SET, op_modifier: read", 0, "HGHCA_COUNTER_SET_READ"),
        Value("QUERY_COUNTER_SET, op_modifier: clear", 1, "HGHCA_COUNTER_SET_CLEAR"),
        Value("QUERY_STATS, op_modifier: all QPs", 0, "HGHCA_STATS_ALL"),
        Value("QUERY_STATS, op_modifier: QPs without a set", 1, "HGHCA_STATS_OUTSIDE_SETS"),
    )),
    Table("section 4.20", "flow rules", (
        Value("qpn of an RSS group", 1 << 31, "HGHCA_FLOW_RSS"),
    )),
    Table("section 4.21", "timestamps and moderation of CQs", (
        Value("size of an entry", 64, "sizeof(struct hghca_timed_cqe)"),
        Value("owner is the last byte", 63, "offsetof(struct hghca_timed_cqe, cqe.owner)"),
        Value("MODERATE_CQ: completions", mask("31:16"), "HGHCA_CQ_MODERATION_COUNT_MASK"),
        Value("MODERATE_CQ: time", mask("15:0"), "HGHCA_CQ_MODERATION_PERIOD_MASK"),
    )),
    Table("section 4.22", "memory placement extensions", (
        Value("FLUSH_GLOBAL", 1 << 7, "HGHCA_ACCESS_FLUSH_GLOBAL"),
        Value("selectivity: all of the region", 1, "HGHCA_FLUSH_REGION"),
    )),
    Table("section 4.23", "paging on demand", (
        Value("MTT: absent", 1 << 0, "HGHCA_MTT_ABSENT"),
        Value("MTT: there to be read", 1 << 1, "HGHCA_MTT_READ_ONLY"),
        Value("CLEAR_MTT: largest number", 65536, "HGHCA_CLEAR_MTT_MAX"),
        Value("entries of a table", 4096, "HGHCA_MTT_TABLE_ENTRIES"),
        Value("levels: n >> 24, (n >> 12) % 4096, n % 4096", 3, "HGHCA_MTT_TREE_LEVELS"),
        Value("shift from level to level", 12, "HGHCA_MTT_TABLE_SHIFT"),
        Value("lowest bit of a table's index in an entry", 12, "HGHCA_MTT_TABLE_INDEX_SHIFT"),
        Value("RESUME_QP: token", mask("31:16"), "HGHCA_RESUME_TOKEN_MASK"),
        Value("RESUME_QP: receive side", 1 << 1, "HGHCA_RESUME_RESPONDER"),
        Value("RESUME_QP: FAILED", 1 << 0, "HGHCA_RESUME_FAILED"),
        Value("TREE, by section 15", 1 << 14, "HGHCA_MPT_FLAG_TREE"),
    )),
    Table("section 4.25", "receive side scaling", (
        Value("log of a group's entries, by section 4.1", 9, "HGHCA_RSS_LOG_MAX_SIZE"),
    )),
    Table("section 4.28", "error buffer", (
        Value("packets of a mailbox", 28, "HGHCA_ERRORS_PER_MAILBOX"),
    )),
)

QUEUES = (
    Table("section 5", "UAR pages", (
        Field("SQ: count", 0x00, "31:24", "HGHCA_UAR_SQ_DB", mask="HGHCA_SQ_DB_COUNT_MASK"),
        Field("CQ arm: consumer index", 0x10, "31:0", "HGHCA_UAR_CQ_ARM"),
        Field("CQ arm: command", 0x14, "31:24", "HGHCA_UAR_CQ_ARM + 4", mask="HGHCA_CQ_ARM_CMD_MASK"),
        Value("CQ arm: solicited", 1, "HGHCA_CQ_ARM_SOLICITED"),
        Value("CQ arm: next", 2, "HGHCA_CQ_ARM_NEXT"),
        Field("CQ arm: CQN", 0x14, "23:0", "HGHCA_UAR_CQ_ARM + 4", mask="HGHCA_CQ_ARM_CQN_MASK"),
        Field("EQ arm: consumer index", 0x20, "31:0", "HGHCA_UAR_EQ_ARM"),
        Field("EQ arm: command", 0x24, "31:24", "HGHCA_UAR_EQ_ARM + 4", mask="HGHCA_EQ_ARM_CMD_MASK"),
        Value("EQ arm: update", 0, "HGHCA_EQ_ARM_UPDATE"),
        Value("EQ arm: arm", 1, "HGHCA_EQ_ARM_ARM"),
        Field("EQ arm: EQN", 0x24, "7:0", "HGHCA_UAR_EQ_ARM + 4", mask="HGHCA_EQ_ARM_EQN_MASK"),
        Value("clock, by section 5.5", 0x30, "HGHCA_UAR_CLOCK"),
    )),
    Table("section 6, ud unit", "the form by GID", struct="struct hghca_ud_gid_unit", rows=(
        Field("GRH", 0x00, "31:31", "port", mask="HGHCA_UD_GRH"),
        Field("static rate", 0x00, "29:24", "port", mask="HGHCA_UD_STATIC_RATE_MASK"),
    )),
    Table("section 6, opcodes", "opcodes", (
        Value("SEND_INV", 0x0c, "HGHCA_OPCODE_SEND_INV"),
        Value("ATOMIC_WRITE", 0x13, "HGHCA_OPCODE_ATOMIC_WRITE"),
        Value("FLUSH", 0x14, "HGHCA_OPCODE_FLUSH"),
        Value("REG_MR", 0x19, "HGHCA_OPCODE_REG_MR"),
        Value("LOCAL_INV", 0x1a, "HGHCA_OPCODE_LOCAL_INV"),
    )),
    Table("section 6, scatter list", "its end", (
        Value("lkey", 0x100, "HGHCA_INVALID_LKEY"),
    )),
    Table("section 7", "CQE", struct="struct hghca_cqe", rows=(
        Field("VLAN is there", 0x0C, "31:31", "rlid_path_sl", mask="HGHCA_CQE_VLAN_VALID"),
        Field("VLAN", 0x0C, "27:16", "rlid_path_sl", mask="HGHCA_CQE_VLAN_ID_MASK"),
        Field("IPv4 or IPv6", 0x0C, "9:8", "rlid_path_sl", mask="HGHCA_CQE_NETWORK_MASK"),
        Value("IPv6", 1, "HGHCA_CQE_IPV6"),
        Value("IPv4", 2, "HGHCA_CQE_IPV4"),
        Field("priority of the VLAN tag", 0x0C, "7:4", "rlid_path_sl", mask="HGHCA_CQE_SL_MASK"),
    )),
    Table("section 9.1", "rate of a QP", order=BIG, struct="struct hghca_qpc", rows=(
        Field("rate", 0x68, "31:0", "rate"),
    )),
    Table("section 10", "event types", order=BIG, struct="struct hghca_eqe", rows=(
        Value("COMP", 0x00, "HGHCA_EVENT_COMP"),
        Value("CMD", 0x0a, "HGHCA_EVENT_CMD"),
        Value("EQ_OVERFLOW", 0x0f, "HGHCA_EVENT_EQ_OVERFLOW"),
        Value("SRQ_CATAS_ERROR", 0x12, "HGHCA_EVENT_SRQ_CATAS_ERROR"),
        Value("SRQ_QP_LAST_WQE", 0x13, "HGHCA_EVENT_SRQ_QP_LAST_WQE"),
        Value("SRQ_LIMIT", 0x14, "HGHCA_EVENT_SRQ_LIMIT"),
        Value("PAGE_FAULT", 0x18, "HGHCA_EVENT_PAGE_FAULT"),
        Value("CQ_ERROR: overrun", 1, "HGHCA_CQ_ERROR_OVERRUN"),
        Value("CQ_ERROR: access", 2, "HGHCA_CQ_ERROR_ACCESS"),
        Value("PORT_CHANGE: port", mask("31:28"), "HGHCA_EVENT_PORT_MASK"),
        Value("PORT_CHANGE: down", 1, "HGHCA_PORT_CHANGE_DOWN"),
        Value("PORT_CHANGE: up", 4, "HGHCA_PORT_CHANGE_UP"),
        Value("size of an EQE", 32, "sizeof(struct hghca_eqe)"),
    )),
)

# Each stands in words that the JingZhao document reserves, and begins there.
RESERVED_WORDS = (
    Table("section 15, QUERY_ADAPTER output", "reserved words", order=BIG, struct="struct hghca_adapter", rows=(
        Field("node_guid[63:32]", 0x20, "31:0", "node_guid[63:32]"),
        Field("node_guid[31:0]", 0x24, "31:0", "node_guid[31:0]"),
    )),
    Table("section 15, INIT_HCA input", "reserved words", order=BIG, struct="struct hghca_init_hca", rows=(
        Field("mcg_base[63:32]", 0x00, "31:0", "mcg_base[63:32]"),
        Field("mcg_base[31:0]", 0x04, "31:0", "mcg_base[31:0]"),
        Field("capabilities", 0x20, "31:0", "caps"),
        Field("srqc_base[63:32]", 0x28, "31:0", "srqc_base[63:32]"),
        Field("srqc_base[31:0]", 0x2C, "31:0", "srqc_base[31:0]"),
    )),
    Table("section 15, CQ context", "reserved words", order=BIG, struct="struct hghca_cqc", rows=(
        Field("dbr_addr[63:32]", 0x30, "31:0", "dbr_addr[63:32]"),
        Field("dbr_addr[31:0]", 0x34, "31:0", "dbr_addr[31:0]"),
    )),
    Table("section 15, QP context", "reserved words", order=BIG, struct="struct hghca_qpc", rows=(
        Field("dbr_addr[63:32]", 0xA0, "31:0", "dbr_addr[63:32]"),
        Field("dbr_addr[31:0]", 0xA4, "31:0", "dbr_addr[31:0]"),
    )),
    Table("section 15, CQE in error", "reserved words", struct="struct hghca_err_cqe", rows=(
        Field("my_ee", 0x04, "31:0", "my_ee"),
    )),
)

TABLES = COMMANDS + QUEUES + RESERVED_WORDS
