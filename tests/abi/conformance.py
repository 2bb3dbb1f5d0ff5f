# SPDX-License-Identifier: GPL-2.0-or-later
"""What the device does with each table, field and statement of the JingZhao document.

The fields and values are those of jingzhao.py. A row of a table is implemented, with the test of its table, unless
EXCEPTIONS has another status. `tools/hghca pages` writes docs/reference/documents/jingzhao.rst from this.
"""

import jingzhao
from rows import DEPARTS, EXTENDED, IMPLEMENTED, NOT_MEANINGFUL, Row

TITLE = "The JingZhao document, row by row"
INTRODUCTION = """\
The rows are those of the *JingZhao HCA software/hardware interface design document*, V1.3-b. ``tests/abi`` compares each
offset, width and value (``tests/abi/jingzhao.py``) with the headers. `Section 15 <../hardware/departures.rst>`__ explains
the departures."""
# In all tables of commands.
EVERYWHERE = {
    "token: CMD_POLL_TOKEN": (DEPARTS, "the driver polls with it until its command EQ is there, then it has tokens of "
                                       "its own and E = 1; kunit/commands.c: commands_registers"),
}

# The test of each table.
PROOFS = {
    "section 1.1": "commands_test.cc: MailboxMustBeAlignedAndThere",
    "table 3-1-1": "base_cases.py: test_identity",
    "table 3-1-2": "base_cases.py: test_registers",
    "tables 3-1-3, 3-1-4": "base_cases.py: test_registers",
    "table 3-1-5": "base_cases.py: test_statuses",
    "section 3.1.2": "isolation_test.cc: OfAQp",
    "tables 3-1-6, 3-1-7": "base_cases.py: test_services",
    "table 3-2-1": "base_cases.py: test_every_command",
    "table 3-2-2": "base_cases.py: test_every_command",
    "tables 3-2-3, 3-2-4": "base_cases.py: test_limits",
    "table 3-2-5": "base_cases.py: test_every_command",
    "tables 3-2-6, 3-2-7": "base_cases.py: test_limits",
    "table 3-2-8": "base_cases.py: test_every_command",
    "tables 3-2-9, 3-2-10": "base_cases.py: test_init_hca",
    "table 3-2-11": "base_cases.py: test_every_command",
    "table 3-2-12": "base_cases.py: test_every_command",
    "tables 3-2-13, 3-2-14": "icm_test.cc: PairsStandHighToLow",
    "table 3-2-15": "base_cases.py: test_every_command",
    "table 3-2-16": "base_cases.py: test_every_command",
    "tables 3-2-17, 3-2-18": "memory_test.cc: MptCommands",
    "table 3-2-19": "memory_test.cc: RightsAndPd",
    "table 3-2-20": "base_cases.py: test_every_command",
    "table 3-2-21": "base_cases.py: test_every_command",
    "tables 3-2-22, 3-2-23": "memory_test.cc: QuadsStandHighToLow",
    "table 3-2-24": "base_cases.py: test_every_command",
    "table 3-2-25": "base_cases.py: test_asynchronous_events",
    "table 3-2-26": "base_cases.py: test_every_command",
    "tables 3-2-27, 3-2-28": "eq_test.cc: TheBufferIsAtItsAddress, eq_test.cc: Query",
    "table 3-2-29": "eq_test.cc: StartsUnarmedWhenAsked",
    "table 3-2-30": "base_cases.py: test_every_command",
    "table 3-2-31": "base_cases.py: test_every_command",
    "tables 3-2-32, 3-2-33": "cq_test.cc: TheBufferIsAtItsAddress",
    "table 3-2-34": "cq_test.cc: ArmedFromTheStart",
    "table 3-2-35": "base_cases.py: test_every_command",
    "table 3-2-36": "base_cases.py: test_every_command",
    "tables 3-2-37, 3-2-38": "cq_test.cc: ResizeKeepsAllInOrder",
    "table 3-2-39": "base_cases.py: test_every_command",
    "tables 3-2-40, 3-2-41": "qp_transition_test.cc: QueryGivesBackTheWholeContext, base_cases.py: test_query_qp",
    "table 3-2-42": "base_cases.py: test_query_qp",
    "table 3-2-43": "base_cases.py: test_query_qp",
    "table 3-2-44": "base_cases.py: test_every_command",
    "tables 3-3-1, 3-3-2": "base_cases.py: test_services",
    "table 3-3-3": "base_cases.py: test_services",
    "table 3-3-4 and the second 3-3-2": "base_cases.py: test_errors",
    "the second table 3-3-3": "base_cases.py: test_errors",
    "tables 3-4-2, 3-4-3": "base_cases.py: test_services",
    "tables 3-4-4, 3-4-5": "base_cases.py: test_services",
    "tables 3-4-6, 3-4-7": "base_cases.py: test_services",
    "tables 3-4-8, 3-4-9": "base_cases.py: test_headers",
    "tables 3-4-10, 3-4-11": "rc_test.cc: InlineOfEverySizeThatFits",
    "tables 3-4-12, 3-4-13": "base_cases.py: test_services",
    "table A1-3": "qp_transition_test.cc: EveryMaskBitOfEveryTransition",
    "table A1-4": "qp_transition_test.cc: QueryGivesBackTheWholeContext",
}

RESERVED = "reserved, as the document says"
RD = "BAD_PARAM: IBTA has removed RD"
RD_SYNDROME = "the device has no RD"

# (table, row): status and reason, where it is not implemented with the test of the table.
EXCEPTIONS = {
    ("table 3-1-5", "HGHCA_CMD_STAT_BAD_NVMEM"): (NOT_MEANINGFUL, "the device has no firmware memory"),
    ("tables 3-1-3, 3-1-4", "E"): (IMPLEMENTED, "base_cases.py: test_events"),
    ("tables 3-1-3, 3-1-4", "token"): (IMPLEMENTED, "base_cases.py: test_events"),
    ("tables 3-1-6, 3-1-7", "F"): (IMPLEMENTED, "base_cases.py: test_fence"),
    ("tables 3-1-6, 3-1-7", "sq_head"): (EXTENDED, "the free-running index of a WQE; bits 31:24 may have a number of WQEs"),
    ("table 3-2-1", "CMD_CONF_SPECIAL_QP"): (DEPARTS, "listed without a text: the form of the Tavor interface; BAD_PARAM "
                                                      "for QP 0, which an Ethernet port does not have"),
    ("table 3-2-1", "CMD_MAD_IFC"): (IMPLEMENTED, "listed without a text: the form of the Arbel interface; "
                                                  "base_cases.py: test_every_command"),
    ("table 3-2-1", "CMD_RESIZE_CQ"): (DEPARTS, "its mailbox has no address: the new buffer begins where its MR does"),
    ("tables 3-2-3, 3-2-4", "ack_delay"): (NOT_MEANINGFUL, "0; \"not used\" in the document"),
    ("tables 3-2-9, 3-2-10", "mtt_base[31:0]"): (DEPARTS, "bits 7:0 must be 0"),
    ("tables 3-2-17, 3-2-18", "lkey"): (NOT_MEANINGFUL, RESERVED),
    ("tables 3-2-17, 3-2-18", "window_count"): (NOT_MEANINGFUL, RESERVED),
    ("tables 3-2-17, 3-2-18", "window_count_limit"): (NOT_MEANINGFUL, RESERVED),
    ("tables 3-2-17, 3-2-18", "mtt_sz"): (NOT_MEANINGFUL, RESERVED),
    ("tables 3-2-17, 3-2-18", "pd"): (IMPLEMENTED, "memory_test.cc: RightsAndPd"),
    ("tables 3-2-17, 3-2-18", "start[63:32]"): (IMPLEMENTED, "base_cases.py: test_errors"),
    ("table 3-2-19", "HGHCA_MPT_FLAG_SW_OWNS"): (IMPLEMENTED, "memory_test.cc: MptCommands"),
    ("table 3-2-19", "HGHCA_MPT_FLAG_REGION"): (IMPLEMENTED, "memory_test.cc: MptCommands"),
    ("table 3-2-19", "HGHCA_MPT_FLAG_MIO"): (DEPARTS, "not looked at"),
    ("table 3-2-19", "HGHCA_MPT_FLAG_BIND_ENABLE"): (DEPARTS, "not looked at: MW_BIND allows windows"),
    ("table 3-2-19", "HGHCA_MPT_FLAG_PHYSICAL"): (IMPLEMENTED, "memory_test.cc: Physical"),
    ("table 3-2-19", "IBV_ACCESS_MW_BIND"): (EXTENDED, "needs MEM_MGT: the document has no command for windows; "
                                                       "registration_test.cc: OpenWhatTheySayAndNoMore"),
    ("table 3-2-19", "IBV_ACCESS_ZERO_BASED"): (IMPLEMENTED, "software gives start 0; memory_test.cc: RightsAndPd"),
    ("table 3-2-19", "IBV_ACCESS_ON_DEMAND"): (EXTENDED, "needs ODP; odp_test.cc: WhatARegionMayBe"),
    ("table 3-2-25", "HGHCA_EVENT_TYPE_SQ_DRAINED"): (EXTENDED, "with QP_LIMITS, whose word A8h asks for it; "
                                                                "rc_error_test.cc: SqdFinishesWhatHasBegunAndStartsNothing"),
    ("table 3-2-29", "HGHCA_EQ_OWNER_HW"): (DEPARTS, "not looked at: SW2HW_EQ gives the context to the device"),
    ("table 3-2-29", "HGHCA_EQ_FLAG_TR"): (DEPARTS, "not looked at: an address is always one of an MR"),
    ("table 3-2-34", "HGHCA_CQ_FLAG_TR"): (DEPARTS, "not looked at: an address is always one of an MR"),
    ("table 3-2-34", "HGHCA_CQ_STATE_ARMED"): (EXTENDED, "with CQ_ARM; without it each CQE makes an event; "
                                                         "cq_test.cc: ArmedFromTheStart"),
    ("tables 3-2-32, 3-2-33", "flags"): (EXTENDED, "of its bits, ARMED with CQ_ARM; cq_test.cc: ArmedFromTheStart"),
    ("tables 3-2-32, 3-2-33", "cqn"): (IMPLEMENTED, "cq_test.cc: Commands"),
    ("tables 3-2-32, 3-2-33", "usrpage"): (EXTENDED, "in use with CQ_ARM; cq_test.cc: ThePageOfAPageFrameNumber"),
    ("tables 3-2-32, 3-2-33", "comp_eqn"): (IMPLEMENTED, "base_cases.py: test_events"),
    ("tables 3-2-32, 3-2-33", "pd"): (DEPARTS, "the PD of the buffer's MR if an extension is enabled; otherwise not looked "
                                               "at; cq_test.cc: BaseModeTakesThePdOfTheRegion"),
    ("tables 3-2-40, 3-2-41", "rlkey_arbel_sched_queue"): (NOT_MEANINGFUL, RESERVED),
    ("tables 3-2-40, 3-2-41", "usr_page"): (EXTENDED, "in use: index or page frame number, modulo 2048; "
                                                      "base_cases.py: test_services"),
    ("tables 3-2-40, 3-2-41", "g_mylmc"): (EXTENDED, "bit 7 with GID_TABLE; no local mask control without LIDs"),
    ("tables 3-2-40, 3-2-41", "g_mylmc, has grh [7:7]"): (EXTENDED, "with GID_TABLE; qp_transition_test.cc: "
                                                                    "GidAddressingNeedsItsCapability"),
    ("tables 3-2-40, 3-2-41", "ackto"): (IMPLEMENTED, "rc_loss_test.cc: TimeoutZeroWaitsForEver"),
    ("tables 3-2-40, 3-2-41", "mgid_index"): (EXTENDED, "with GID_TABLE"),
    ("tables 3-2-40, 3-2-41", "static_rate"): (IMPLEMENTED, "static_rate_test.cc: RequestsOfEachService"),
    **{("tables 3-2-40, 3-2-41", f"rgid[{bits}]"): (EXTENDED, "with GID_TABLE")
       for bits in ("127:96", "95:64", "63:32", "31:0")},
    ("tables 3-2-40, 3-2-41", "wqe_base"): (EXTENDED, "with RQ_OFFSET; otherwise reserved, as the document says: a queue is at "
                                            "offset 0 of its MR"),
    ("tables 3-2-40, 3-2-41", "wqe_lkey"): (NOT_MEANINGFUL, RESERVED + ": each queue has a key"),
    ("tables 3-2-40, 3-2-41", "last_acked_psn"): (IMPLEMENTED, "output; base_cases.py: test_query_qp"),
    ("tables 3-2-40, 3-2-41", "ssn"): (IMPLEMENTED, "output; base_cases.py: test_query_qp"),
    ("tables 3-2-40, 3-2-41", "ra_buff_indx"): (NOT_MEANINGFUL, RESERVED),
    ("tables 3-2-40, 3-2-41", "rmsn"): (IMPLEMENTED, "output; base_cases.py: test_query_qp"),
    ("tables 3-2-40, 3-2-41", "rq_wqe_counter"): (DEPARTS, "output, at BCh as in table 3-2-40, not at A0h"),
    ("tables 3-2-40, 3-2-41", "sq_wqe_counter"): (DEPARTS, "output, at BCh as in table 3-2-40, not at A0h"),
    ("table 3-2-42", "HGHCA_QP_STATE_SQE"): (IMPLEMENTED, "base_cases.py: test_every_command"),
    ("table 3-2-42", "HGHCA_QP_ST_RD"): (DEPARTS, RD),
    ("tables 3-3-1, 3-3-2", "my_ee"): (EXTENDED, "the SRQ of a receive; 0 without SRQ"),
    ("tables 3-3-1, 3-3-2", "sl_ipok"): (EXTENDED, "the priority of the VLAN tag"),
    ("tables 3-3-1, 3-3-2", "g_mlpath"): (EXTENDED, "bits 9:8: IPv4 or IPv6; no local mask control without LIDs"),
    ("tables 3-3-1, 3-3-2", "rlid"): (DEPARTS, "the VLAN of a datagram: an Ethernet port has no LIDs"),
    ("tables 3-3-1, 3-3-2", "imm"): (DEPARTS, "in wire order, not in that of the other words"),
    ("table 3-3-3", "HGHCA_OPCODE_BIND_MW"): (EXTENDED, "needs MEM_MGT; the unit is Tavor's; "
                                                   "registration_test.cc: OpenWhatTheySayAndNoMore"),
    ("table 3-3-3", "HGHCA_OPCODE_INVALID"): (IMPLEMENTED, "base_cases.py: test_errors"),
    ("table 3-3-4 and the second 3-3-2", "vender_err"): (NOT_MEANINGFUL, "0"),
    ("table 3-3-4 and the second 3-3-2", "db_cnt"): (NOT_MEANINGFUL, "0"),
    ("table 3-3-4 and the second 3-3-2", "is_send"): (DEPARTS, "as in other CQEs: the document has 0xff for sends and "
                                                               "receives alike"),
    ("the second table 3-3-3", "SYNDROME_LOCAL_EEC_OP_ERR"): (NOT_MEANINGFUL, RD_SYNDROME),
    ("the second table 3-3-3", "SYNDROME_LOCAL_RDD_VIOL_ERR"): (NOT_MEANINGFUL, RD_SYNDROME),
    ("the second table 3-3-3", "SYNDROME_REMOTE_INVAL_RD_REQ_ERR"): (NOT_MEANINGFUL, RD_SYNDROME),
    ("the second table 3-3-3", "SYNDROME_REMOTE_ABORTED_ERR"): (NOT_MEANINGFUL, RD_SYNDROME),
    ("the second table 3-3-3", "SYNDROME_INVAL_EECN_ERR"): (NOT_MEANINGFUL, RD_SYNDROME),
    ("the second table 3-3-3", "SYNDROME_INVAL_EEC_STATE_ERR"): (NOT_MEANINGFUL, RD_SYNDROME),
    ("the second table 3-3-3", "SYNDROME_MW_BIND_ERR"): (EXTENDED, "needs MEM_MGT; registration_test.cc: WhatBindRefuses"),
    ("the second table 3-3-3", "SYNDROME_BAD_RESP_ERR"): (IMPLEMENTED, "base_cases.py: test_bad_response"),
    ("the second table 3-3-3", "SYNDROME_LOCAL_ACCESS_ERR"): (EXTENDED, "needs MEM_MGT: the receive of a SEND that may not "
                                                                        "invalidate its key; registration_test.cc: "
                                                                        "WhatAPeerMayNotInvalidate"),
    ("the second table 3-3-3", "SYNDROME_REMOTE_OP_ERR"): (IMPLEMENTED, "base_cases.py: test_errors_of_receives"),
    ("tables 3-4-2, 3-4-3", "nda"): (DEPARTS, "must name the slot that follows, which bounds every walk"),
    ("tables 3-4-2, 3-4-3", "D"): (NOT_MEANINGFUL, RESERVED),
    ("tables 3-4-2, 3-4-3", "nee"): (NOT_MEANINGFUL, "the device has no EE contexts"),
    ("tables 3-4-2, 3-4-3", "C"): (EXTENDED, "with CQ_UPDATE; rc_test.cc: OnlySignaledWorkMakesACompletion"),
    ("tables 3-4-2, 3-4-3", "E"): (NOT_MEANINGFUL, RESERVED),
    ("tables 3-4-2, 3-4-3", "S"): (IMPLEMENTED, "rc_test.cc: SolicitedEventOnlyWhenAsked"),
    ("tables 3-4-2, 3-4-3", "F"): (IMPLEMENTED, "base_cases.py: test_fence"),
    ("tables 3-4-2, 3-4-3", "imm_data"): (DEPARTS, "in wire order, not in that of the other words"),
    ("tables 3-4-8, 3-4-9", "port"): (DEPARTS, "not looked at: there is one port"),
    ("table A1-3", "IB_QP_CUR_STATE"): (IMPLEMENTED, "qp_transition_test.cc: CurStateIsComparedWithTheState"),
    ("table A1-3", "IB_QP_EN_SQD_ASYNC_NOTIFY"): (DEPARTS, "the bit of word A8h, with QP_LIMITS, says whether, not the mask; "
                                                           "qp_transition_test.cc: SqdNotifyIsAskedForEachTime"),
    ("table A1-3", "IB_QP_MAX_QP_RD_ATOMIC"): (EXTENDED, "with QP_LIMITS; qp_transition_test.cc: "
                                                         "ExtendedAttributesNeedQpLimits"),
    ("table A1-3", "IB_QP_MAX_DEST_RD_ATOMIC"): (EXTENDED, "with QP_LIMITS; qp_transition_test.cc: "
                                                           "ExtendedAttributesNeedQpLimits"),
    ("table A1-3", "IB_QP_ALT_PATH"): (NOT_MEANINGFUL, "accepted where table A1-2 has it, without effect: \"not implemented\""),
    ("table A1-3", "IB_QP_PATH_MIG_STATE"): (NOT_MEANINGFUL, "accepted where table A1-2 has it, without effect: "
                                                             "\"not implemented\""),
    ("table A1-3", "IB_QP_CAP"): (NOT_MEANINGFUL, "always refused: \"not implemented\""),
    ("table A1-4", "port_pkey"): (DEPARTS, "set by PORT and PKEY_INDEX, as table A1-2 names them apart"),
    ("table A1-4", "rnr_retry"): (DEPARTS, "set by RNR_RETRY"),
    ("table A1-4", "ackto"): (DEPARTS, "set by TIMEOUT"),
    ("table A1-4", "rlid"): (DEPARTS, "the MAC address: an Ethernet port has no LIDs"),
    ("table A1-4", "g_mylmc"): (EXTENDED, "bit 7 with GID_TABLE"),
    ("table A1-4", "mgid_index"): (EXTENDED, "with GID_TABLE"),
    ("table A1-4", "rgid"): (EXTENDED, "with GID_TABLE"),
}

# (where, statement, status, test or reason) of what is in no table of offsets and values.
STATEMENTS = (
    ("1", "contexts are in memory of the host (memory free)", IMPLEMENTED,
     "context_cache_test.cc: ContextsComeBackAsTheyWere"),
    ("1.1", "ICM need not be contiguous", IMPLEMENTED, "icm_test.cc: LoadAndStoreAcrossPagesDirectAndByCopy"),
    ("1.1", "memory of ICM is the device's once it is mapped", IMPLEMENTED, "base_cases.py: test_every_command"),
    ("1.1", "software gives memory of ICM when a resource is first used", IMPLEMENTED, "kunit/icm.c: icm_get_and_put"),
    ("1.1", "queues are in memory of the user, which the device accesses by DMA", IMPLEMENTED,
     "base_cases.py: test_services"),
    ("1.1", "data is in memory that the user has registered", IMPLEMENTED, "memory_test.cc: RightsAndPd"),
    ("1.2", "ICM meta data: offset, size and address of each part of ICM", IMPLEMENTED, "icm_test.cc: WhatIsRefused"),
    ("1.2", "contexts are cached, and written back when the cache is full", IMPLEMENTED,
     "context_cache_test.cc: ContextsComeBackAsTheyWere"),
    ("1.2", "mailboxes are read and written by DMA", IMPLEMENTED,
     "commands_test.cc: AnOutputMailboxThatIsHalfThereIsNotTouched"),
    ("1.2", "the kernel alone accesses the HCR", IMPLEMENTED,
     "the driver maps BAR0 and no process does; programs/isolation_doorbells.c: others_mapped"),
    ("1.2", "a process has a UAR page of its own; QPs of others are out of its reach", IMPLEMENTED,
     "isolation_test.cc: OfEveryQpn"),
    ("1.2", "firmware tells limits of the device", IMPLEMENTED, "base_cases.py: test_limits"),
    ("1.2", "firmware tells LID of the port, SM LID, SL", NOT_MEANINGFUL,
     "MAD_IFC returns 0: no subnet manager manages an Ethernet port"),
    ("1.2", "firmware tells physical state, MTU of the port", IMPLEMENTED, "commands_test.cc: PortInfo"),
    ("1.2", "firmware memory, CEU code, PCIe power management", NOT_MEANINGFUL, "the emulated device has no firmware"),
    ("3.1", "only BAR0 and BAR2", DEPARTS, "BAR4 has the table of MSI-X, which the document does not name"),
    ("3.1.1", "BAR0 has the EQ doorbell", DEPARTS, "no offset is given: with CQ_ARM it is at 20h of UAR page 0"),
    ("3.1.1", "Reset: 1 starts a reset, 0 is the default", IMPLEMENTED, "registers_test.cc: ResetTakesOneAndOnly32Bits"),
    ("3.1.1", "go: set by software, the HCR is busy; 0: a command may be written", IMPLEMENTED,
     "a command ends before the write that starts it does, so go reads 0; base_cases.py: test_registers"),
    ("3.1.1", "E: the command reports to an EQ", IMPLEMENTED, "base_cases.py: test_events"),
    ("3.1.2", "at most 2048 processes", IMPLEMENTED, "isolation_test.cc: OfAQp"),
    ("3.1.2", "a UAR page has QP and CQ doorbells", EXTENDED, "the layout of the CQ doorbell is not given: with CQ_ARM"),
    ("3.2", "in_param and out_param are addresses of mailboxes, or values", IMPLEMENTED,
     "commands_test.cc: MailboxMustBeAlignedAndThere"),
    ("3.2.2.1", "pairs of chunks are stored high to low, the odd one in the high half", IMPLEMENTED,
     "icm_test.cc: TheUnusedHalfOfAnOddTailIsNotLookedAt"),
    ("3.2.2", "QPC, CQC, EQC are in one space, MPT and MTT in another", IMPLEMENTED, "icm_test.cc: TheSpacesAreApart"),
    ("3.2.2.2", "UNMAP_ICM takes a number of pages", IMPLEMENTED, "icm_test.cc: Unmap"),
    ("3.2.3.1", "the index of an MPT is its key modulo the number of MPTs", IMPLEMENTED, "memory_test.cc: StaleKeysFail"),
    ("3.2.3.1", "page_size is the size of the region's pages", IMPLEMENTED,
     "log2 less 12; memory_test.cc: PageSizesAndOddOffsets"),
    ("3.2.3.3", "MTTs are stored in fours, high to low, also an odd tail", IMPLEMENTED,
     "memory_test.cc: QuadsStandHighToLow"),
    ("3.2.4.1", "MAP_EQ sets or clears the types of an EQ", IMPLEMENTED, "eq_test.cc: MappedTypesAlone"),
    ("3.2.4", "the layout of an EQE is not given", EXTENDED, "Tavor's, as are the types of other events; "
                                                             "eq_test.cc: ContentOfEqes"),
    ("3.2.4", "an armed EQ interrupts; how it is armed again is not given", EXTENDED,
     "it stays armed; with CQ_ARM by a doorbell; eq_test.cc: WithoutDoorbellsAnArmedEqStaysArmed"),
    ("3.2.5.3", "RESIZE_CQ changes buffer and size", IMPLEMENTED, "cq_test.cc: ResizeKeepsAllInOrder"),
    ("3.2.6.1", "op_modifier 3: no mailbox, for any to RST", IMPLEMENTED, "qp_transition_test.cc: OpModifiers"),
    ("3.2.6.1", "rnr_retry 7: no limit", IMPLEMENTED, "rc_loss_test.cc: RnrRetrySevenIsForEver"),
    ("3.2.6.1", "mtu_msgmax: path MTU and longest message", IMPLEMENTED, "base_cases.py: test_longest_message"),
    ("3.2.6.1", "dlid, slid: LIDs, or parts of MAC addresses with RoCE", DEPARTS, "RoCE v2 alone"),
    ("3.2.6.1", "next_send_psn, ePSN of rnr_nextrecvpsn: where the PSNs start", IMPLEMENTED,
     "base_cases.py: test_query_qp"),
    ("3.2.6.2", "QUERY_QP has the layout of MODIFY_QP", IMPLEMENTED, "base_cases.py: test_query_qp"),
    ("3.2.7.1", "NOP tests the command interface", IMPLEMENTED, "base_cases.py: test_statuses"),
    ("3.3.1", "CQEs are little-endian", IMPLEMENTED, "base_cases.py: test_services"),
    ("3.3.1", "opcode of a send: that of the WQE; of a receive: that of the last packet", IMPLEMENTED,
     "base_cases.py: test_services"),
    ("3.3.1", "owner: 0 software, 80h hardware", IMPLEMENTED, "cq_test.cc: CqesInOrderAroundTheRing"),
    ("3.3.1", "opcode 0xff tells an error", IMPLEMENTED, "base_cases.py: test_errors"),
    ("3.4", "a WQE is a sequence of units, the first of them next", IMPLEMENTED, "base_cases.py: test_services"),
    ("figure 3-4-1", "WQEs of RC and UC", IMPLEMENTED, "base_cases.py: test_services"),
    ("figure 3-4-2", "WQEs of UD", IMPLEMENTED, "base_cases.py: test_headers"),
    ("3.4.5", "bit 31 of the first word tells an inline unit from a data unit", IMPLEMENTED,
     "rc_test.cc: InlineAndMemoryMix"),
    ("3.4", "how a receive is posted is not given", EXTENDED,
     "the device reads the WQE at its own index: 16 bytes of zero mean none; base_cases.py: test_services"),
    ("table A1-1", "RESET: a posted WQE gives an immediate error", IMPLEMENTED,
     "by the provider and the driver; programs/badcalls.c: posted_early"),
    ("table A1-1", "RESET, ERR: packets are dropped silently", IMPLEMENTED,
     "rc_error_test.cc: PacketsToAQpThatDoesNotReceiveAreDropped"),
    ("table A1-1", "RTR: receives and arriving messages are processed", IMPLEMENTED,
     "rc_test.cc: CommunicationEstablishedOnceInRtr"),
    ("table A1-1", "RTS, SQD: requests may be posted; SQD sends no new ones", IMPLEMENTED,
     "base_cases.py: test_every_command"),
    ("table A1-1", "SQE: after a completion in error; arriving messages are processed", IMPLEMENTED,
     "base_cases.py: test_every_command"),
    ("table A1-1", "ERR: left by MODIFY_QP to RST alone", IMPLEMENTED, "qp_transition_test.cc: EveryCommandFromEveryState"),
    ("table A1-2", "required and optional attributes of each transition and service", IMPLEMENTED,
     "qp_transition_test.cc: EveryMaskBitOfEveryTransition"),
    ("table A2-1", "LRH: virtual lane, SL, LIDs, length", NOT_MEANINGFUL, "RoCE v2 has no LRH"),
    ("table A2-1", "BTH: opcode, version 0, P_Key, destination QP, pad count, solicited event, PSN", IMPLEMENTED,
     "base_cases.py: test_headers"),
    ("table A2-1", "DETH: the Q_Key of the WQE, or of the QP if the WQE has none", DEPARTS,
     "the QP's when bit 31 of the WQE's is set, as IBTA has it; 0 is sent as 0"),
    ("table A2-1", "DETH: source QP; RETH, AtomicETH, AETH, immediate data", IMPLEMENTED,
     "base_cases.py: test_headers"),
    ("whole", "software of the document alone; the driver on a device of the document", IMPLEMENTED,
     "base_cases.py: test_services; base.py: pingpongs; base.py: data"),
)


# The point of section 15 (departures.rst) that explains each row that departs.
POINTS = {
    **{(table.number, each.name): "token and E of a command"
       for table in jingzhao.COMMANDS for each in table.rows if each.name in EVERYWHERE},
    ("table 3-2-1", "CMD_RESIZE_CQ"): "RESIZE_CQ",
    ("table 3-2-1", "CMD_CONF_SPECIAL_QP"): "CONF_SPECIAL_QP of SMI",
    ("tables 3-2-9, 3-2-10", "mtt_base[31:0]"): "mtt_base 7:0",
    ("table 3-2-19", "HGHCA_MPT_FLAG_MIO"): "MPT flags MIO and BIND_ENABLE",
    ("table 3-2-19", "HGHCA_MPT_FLAG_BIND_ENABLE"): "MPT flags MIO and BIND_ENABLE",
    ("table 3-2-29", "HGHCA_EQ_OWNER_HW"): "EQC OWNER_HW, EQC and CQC FLAG_TR,",
    ("table 3-2-29", "HGHCA_EQ_FLAG_TR"): "EQC OWNER_HW, EQC and CQC FLAG_TR,",
    ("table 3-2-34", "HGHCA_CQ_FLAG_TR"): "EQC OWNER_HW, EQC and CQC FLAG_TR,",
    ("tables 3-2-32, 3-2-33", "pd"): "CQC pd",
    ("tables 3-2-40, 3-2-41", "rq_wqe_counter"): "QPC counters",
    ("tables 3-2-40, 3-2-41", "sq_wqe_counter"): "QPC counters",
    ("table 3-2-42", "HGHCA_QP_ST_RD"): "RD, with its syndromes",
    ("tables 3-3-1, 3-3-2", "rlid"): "CQE rlid_path_sl 31:16",
    ("tables 3-3-1, 3-3-2", "imm"): "immediate data",
    ("table 3-3-4 and the second 3-3-2", "is_send"): "error CQE 1Dh",
    ("tables 3-4-2, 3-4-3", "nda"): "nda",
    ("tables 3-4-2, 3-4-3", "imm_data"): "immediate data",
    ("tables 3-4-8, 3-4-9", "port"): "UD unit port",
    ("table A1-3", "IB_QP_EN_SQD_ASYNC_NOTIFY"): "EN_SQD_ASYNC_NOTIFY",
    ("table A1-4", "port_pkey"): "AV",
    ("table A1-4", "rnr_retry"): "AV",
    ("table A1-4", "rlid"): "InfiniBand mode: LIDs, LRH, virtual",
    ("table A1-4", "ackto"): "AV",
    ("3.1", "only BAR0 and BAR2"): "BAR4",
    ("3.1.1", "BAR0 has the EQ doorbell"): "EQ doorbell",
    ("3.2.6.1", "dlid, slid: LIDs, or parts of MAC addresses with RoCE"): "InfiniBand mode: LIDs, LRH, virtual",
    ("table A2-1", "DETH: the Q_Key of the WQE, or of the QP if the WQE has none"): "Q_Key of a datagram",
}


def tables():
    """The tables of jingzhao.py, in the order of the document."""
    return [table for name, group in vars(jingzhao).items()
            if name.isupper() and name != "TABLES" and isinstance(group, tuple) for table in group]


def rows():
    """Every row, those of a table together."""
    found = []
    for table in tables():
        for each in table.rows:
            if each.name == "end of the layout":
                continue
            status, why = EXCEPTIONS.get((table.number, each.name)) or EVERYWHERE.get(each.name) or \
                (IMPLEMENTED, PROOFS[table.number])
            found.append(Row(table.number, each.name, status, why))
    return found + [Row(*statement) for statement in STATEMENTS]


ROWS = tuple(rows())
