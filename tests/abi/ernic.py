# SPDX-License-Identifier: GPL-2.0-or-later
"""What the ERNIC does with each statement of its document, and with the public and our registers and formats.

The document, a translation, ends before its tables: what they have is of the public register map ("public"), or of the
document of the ETRNIC, whose rows etrnic.py has. A test is named as the page says (hghca_lib/generated.py). `tools/hghca
pages` writes docs/reference/documents/ernic.rst from this.
"""

from ernic_registers import (A_SEND, CONGESTION, ERROR_QUEUES, FATAL, FIELDS, FROM_HCA, GLOBALS, ILLEGAL, MADS, MAP,
                             NOT_READY, NO_CQES, PAGES, PAUSES, PDS, QPS, READ_COUNTS, RECORDS, RESET, SENDS, SYNDROME,
                             TABLE_REFUSES, THRESHOLDS, TO_HCA, points_of, rows_of)
from literals import Field, Table, Value
from rows import DEPARTS, EXTENDED, IMPLEMENTED, NOT_MEANINGFUL, Row

TITLE = "The document of the ERNIC, row by row"
INTRODUCTION = """\
The rows are those of a translation of PG332, which the reference calls 004. It has no tables, figures and registers. In
the rows of sections that begin with *public* the content is of the public register map of PG332 version 3; *ours* has the
extensions. What 004 has in common with 000 is explained in `the rows of the ETRNIC <etrnic.rst>`__. `ERNIC and ETRNIC
<../ernic.rst>`__ describes the device."""

CHIP = "structure of the chip; the emulated device has no such parts"
PINS = "the model has no pins: doorbells that go by pins are counted; ernic_device_test.cc: Doorbells"
LOST = "the translation has lost its content"
LOST_FIGURE = "the translation has lost the figure"
BUS = "the device does DMA in memory of the host"

ENTRIES = "ernic_device_test.cc: EntriesOfImmediateDataWithoutThem"
ALL_KINDS = f"{FIELDS}: EveryOperationOfAnErnic"
GUEST = "ernic.py: serves, ernic.py: asks"
FIGURES = "ernic.py: figures"
ISOLATION, DATA = "ernic.py: isolation", "ernic.py: data_to_ernic, ernic.py: data_from_ernic"
RETRY = "ernic_device_test.cc: RetriesRunOut"
AGAIN = "ernic_test.cc: WholeMessageGoesAgain"
MIXED = "ernic_test.cc: EveryKindWithEveryKindOnAPoorSwitch"
DOORBELLS = "ernic_device_test.cc: Doorbells"
ERROR_BUFFER = "ernic_device_test.cc: ErrorBufferHoldsFatalPacketsAlone"
ROUND = "ernic_device_test.cc: IndicesGoRoundManyTimes"
BOUNDS = "ernic_cases.py: test_properties_refused"
STRICT, PEER_LIMITS = "with the property strict", "ernic_device_test.cc: APeerKeepsToTheLimits"

# Opcodes of WQEs and CQEs that the ERNIC adds, public: value, name, test.
OPCODES = ((0x01, "WRITE_IMM", ALL_KINDS), (0x03, "SEND_IMM", ALL_KINDS), (0x0c, "SEND_INV", ALL_KINDS))
WQE = "struct ernic_wqe"
RECORD = "struct ernic_record"
ENTRY = "struct ernic_packet_error"
IMMDT = "struct ernic_immdt_entry"

DOCUMENT = "the public map of the ERNIC and its extensions"
TABLES = (
    Table("ERNIC map", "public", (
        Value("personality", 2, "ERNIC_PERSONALITY_ERNIC"),
        Value("either personality", 3, "ERNIC_PERSONALITY_BOTH"),
        Value("registers, 256 KB", 0x40000, "ERNIC_APERTURE_ERNIC"),
        Value("global registers", 0x20000, "ERNIC_GLOBALS_ERNIC"),
        Value("queue pairs", 255, "ERNIC_QPS_ERNIC"),
        Value("entries of the protection domain table", 256, "ERNIC_PDS"),
        Value("size of an entry", 0x100, "ERNIC_PD_SIZE"),
        Value("R_Key of entry 3 with byte 5Ah", 0x35a, "ERNIC_RKEY(3, 0x5a)"),
        Value("lines of a receive buffer", 512, "ERNIC_BUFFER_LINES"),
        Value("access: read", 0, "ERNIC_ACCESS_READ"),
        Value("access: write", 1, "ERNIC_ACCESS_WRITE"),
        Value("access: both", 2, "ERNIC_ACCESS_BOTH"),
        Value("access: reserved", 3, "ERNIC_ACCESS_RESERVED"),
    )),
    Table("ERNIC opcodes", "public", tuple(
        row for value, name, _ in OPCODES for row in (Value(name, value, f"ERNIC_OPCODE_{name}"),
                                                      Value(f"{name}: ERNIC alone", 2, f"ernic_opcode_of.{name}")))),
    Table("ERNIC WQE", "public", (
        Field("[415:384] immediate data", 0x30, "31:0", "imm", order="big-endian",
              reading="in the order of the wire"),
    ), struct=WQE),
    Table("ERNIC immediate entry", "public", (
        Value("size, 8 bytes", 8, f"sizeof({IMMDT})"),
        Field("31:0 data", 0, "31:0", "imm", order="big-endian", reading="in the order of the wire"),
        Field("39:32 type", 4, "7:0", "type"),
        Field("47:40 QP", 4, "15:8", "qp"),
        Field("63:48 RQ producer index", 4, "31:16", "slot"),
    ), struct=IMMDT),
    Table("ERNIC error status", "public", (
        Value("size, 8 bytes", 8, f"sizeof({ENTRY})"),
        Field("15:0 FATAL code", 0, "15:0", "code"),
        Field("31:16 QP", 0, "31:16", "qp"),
        Field("63:32 reserved", 4, "31:0", "rsvd04"),
    ), struct=ENTRY),
    Table("ERNIC FATAL codes", "ours", (
        Value("ACCESS", 0x20, "ERNIC_FATAL_ACCESS"),
        Value("MEMORY", 0x21, "ERNIC_FATAL_MEMORY"),
    )),
    Table("ERNIC extensions", "ours", (
        Value("RECORDS, bit 0", 1 << 0, "ERNIC_EXT_RECORDS"),
        Value("PAGES, bit 1", 1 << 1, "ERNIC_EXT_PAGES"),
        Value("each", 3, "ERNIC_EXT_ALL"),
    )),
    Table("ERNIC record", "ours", (
        Value("size, 16 bytes", 16, f"sizeof({RECORD})"),
        Field("QP", 0x00, "15:0", "qp"),
        Field("STATRQPIDB", 0x00, "31:16", "slot"),
        Field("opcode", 0x04, "7:0", "opcode"),
        Field("flags", 0x04, "15:8", "flags"),
        Field("solicited", 0x04, "8:8", "flags", "ERNIC_RECORD_SOLICITED"),
        Field("round", 0x04, "15:15", "flags", "ERNIC_RECORD_PHASE"),
        Field("length", 0x08, "31:0", "length"),
        Field("immediate data or R_Key", 0x0C, "31:0", "imm", order="big-endian"),
    ), struct=RECORD),
    Table("ERNIC limits", "public", (
        Value("bytes of a message, 8 MB", 8 << 20, "ERNIC_STRICT_MESSAGE_BYTES"),
        Value("unit of addresses and lengths", 64, "ERNIC_STRICT_UNIT_BYTES"),
        Value("bytes of a READ, at most refused", 4, "ERNIC_STRICT_READ_BYTES"),
    )),
    Table("ERNIC PCI", "ours", (
        Value("vendor", 0x1af4, "ERNIC_PCI_VENDOR_ID"),
        Value("device", 0x10f3, "ERNIC_PCI_DEVICE_ID"),
        Value("class", 0x020700, "ERNIC_PCI_CLASS"),
        Value("BAR", 0, "ERNIC_BAR"),
    )),
)

OVERVIEW = (
    ("title", "PG332 ERNIC Datasheet Translation; Navigating Content by Design Process", NOT_MEANINGFUL, "titles"),
    ("core overview", "RoCE v2 for embedded target or initiator devices", IMPLEMENTED, GUEST),
    ("core overview", "by annexes A16 and A17 of IBA", IMPLEMENTED, MIXED),
    ("figure 1-1", "block diagram", NOT_MEANINGFUL, LOST_FIGURE),
    ("core overview", "CMAC, AXI DMA, AXI Interconnect and others beside the core", NOT_MEANINGFUL, CHIP),
    ("core overview", "side band interfaces for doorbells", NOT_MEANINGFUL, PINS),
    ("core overview", "a producer and a consumer index for each queue; a write of one is a doorbell", IMPLEMENTED, ROUND),
    ("feature summary", "AXI4-Stream to the MAC, AXI4 to memory, 512 bits inside", NOT_MEANINGFUL, CHIP),
    ("feature summary", "data transfer without software", IMPLEMENTED, MIXED),
    ("feature summary", "faults such as lost packets are handled in hardware", IMPLEMENTED,
     f"{AGAIN}, sim/scenarios.cc: ernic"),
    ("feature summary", "RDMA SEND, incoming and outgoing", IMPLEMENTED, f"{TO_HCA}, {FROM_HCA}"),
    ("feature summary", "RDMA READ, incoming and outgoing", IMPLEMENTED, f"{TO_HCA}, {FROM_HCA}"),
    ("feature summary", "RDMA WRITE, incoming and outgoing", IMPLEMENTED, f"{TO_HCA}, {FROM_HCA}"),
    ("feature summary", "RDMA SEND INVALIDATE, incoming and outgoing", IMPLEMENTED, ALL_KINDS),
    ("feature summary", "RDMA SEND IMMEDIATE, incoming and outgoing", IMPLEMENTED, ALL_KINDS),
    ("feature summary", "RDMA WRITE IMMEDIATE, incoming and outgoing", IMPLEMENTED, ALL_KINDS),
    ("feature summary", "no atomics", IMPLEMENTED, f"{FATAL}, {FIELDS}: OpcodesOfWqes"),
    ("feature summary", "up to 254 connections", IMPLEMENTED, f"255 QPs with QP 1; {BOUNDS}"),
    ("feature summary", "up to 255 queue pairs", IMPLEMENTED, f"{BOUNDS}, {RESET}"),
    ("feature summary", "timing of 127 and 255 queue pairs", NOT_MEANINGFUL, "of the tools that make the chip"),
    ("feature summary", "dynamic memory registration", IMPLEMENTED, f"the protection domain table; {FROM_HCA}"),
    ("feature summary", "hardware handshake of doorbells", NOT_MEANINGFUL, PINS),
    ("feature summary", "a QP has no traffic while its handshake mode is changed", NOT_MEANINGFUL,
     "a rule for software; QPCONF 4 counts at each doorbell"),
)

MODULES = (
    ("modules", "QP Manager, WQE Processor, RX PKT Handler, Response Handler, Flow Control Manager", NOT_MEANINGFUL, CHIP),
    ("QP Manager", "configurations of all QPs, by AXI4-Lite", IMPLEMENTED, MAP),
    ("QP Manager", "arbitrates between send queues", IMPLEMENTED, MIXED),
    ("QP Manager", "caches WQEs", NOT_MEANINGFUL, "a WQE is read where it is"),
    ("QP Manager", "moves pointers for a retransmission", IMPLEMENTED, AGAIN),
    ("WQE Processor Engine", "finds invalid opcodes", IMPLEMENTED, ILLEGAL),
    ("WQE Processor Engine", "cuts messages at the PMTU", IMPLEMENTED, f"{FIELDS}: PathMtus"),
    ("WQE Processor Engine", "programs the internal DMA", NOT_MEANINGFUL, CHIP),
    ("WQE Processor Engine", "ACKs of incoming SENDs and WRITEs", IMPLEMENTED, FROM_HCA),
    ("WQE Processor Engine", "responses of incoming READs", IMPLEMENTED, f"{FROM_HCA}, {READ_COUNTS}"),
    ("RX PKT Handler", "packets that are not RDMA are filtered out before it", IMPLEMENTED,
     "with the property ethernet; without it they are ignored and counted; "
     f"ernic_device_test.cc: AFrameIsForOneOfTheTwo, {FIELDS}: OtherFramesAreIgnored"),
    ("RX PKT Handler", "SEND, WRITE, READ, and responses of READ", IMPLEMENTED, f"{TO_HCA}, {FROM_HCA}"),
    ("RX PKT Handler", "SEND with invalidate, SEND and WRITE with immediate", IMPLEMENTED, ALL_KINDS),
    ("RX PKT Handler", "ACKs of WRITE and SEND", IMPLEMENTED, TO_HCA),
    ("RX PKT Handler", "MADs to QP 1", IMPLEMENTED, MADS),
    ("RX PKT Handler", "validates packets, and pushes them to their memory", IMPLEMENTED, f"{SYNDROME}, {FROM_HCA}"),
    ("RX PKT Handler", "READ responses go to the application directly", IMPLEMENTED, TO_HCA),
    ("RX PKT Handler", "forwards incoming READs to the TX path", IMPLEMENTED, FROM_HCA),
    ("table 1-1", "IETH and IMMDT: a stream with entries of 64 bits; the table is lost", IMPLEMENTED,
     f"the public entry, in a ring in memory; with RECORDS they are in the record; {ENTRIES}"),
    ("RX PKT Handler", "logic outside handles invalidate and immediate data", IMPLEMENTED,
     f"the driver does; {ALL_KINDS}, kunit/ernicpost.c: post_entries"),
    ("RX PKT Handler", "such as a DMA that writes entries to memory and informs software", IMPLEMENTED,
     f"to the ring of RECORDBA; {ENTRIES}"),
    ("RX PKT Handler", "pause requests for RDMA traffic: on at XON, off at XOFF", IMPLEMENTED,
     f"XON and XOFF are free lines; {THRESHOLDS}"),
    ("Response Handler", "queues of what is not acknowledged", IMPLEMENTED, "ernic_device_test.cc: TheSeventeenthWaits"),
    ("Response Handler", "sends again after a NAK", IMPLEMENTED, AGAIN),
    ("Response Handler", "sends again after a time-out", IMPLEMENTED, RETRY),
    ("Response Handler", "1. finds the PSN and MSN to be sent again", IMPLEMENTED, AGAIN),
    ("Response Handler", "2. rolls back PSN and MSN of the QP", IMPLEMENTED, AGAIN),
    ("Response Handler", "3. rolls back the SQ pointer to the WQE", IMPLEMENTED, AGAIN),
    ("Response Handler", "4. sends the complete WQE again", IMPLEMENTED, AGAIN),
    ("Flow Control Manager", "RX buffers with programmable levels, and PFC from them", IMPLEMENTED,
     f"one of RoCE, one of others; {THRESHOLDS}"),
    ("Flow Control Manager", "two TX buffers, RoCE and others; a pause stops reading from them", IMPLEMENTED,
     f"{PAUSES}, ernic_device_test.cc: MadsArePaused"),
    ("Flow Control Manager", "a rate at which the buffers are emptied: not told", EXTENDED,
     "properties roce-drain and other-drain; at once without them"),
)

SPECIFICATION = (
    ("product specification", "software drivers for Zynq MPSoC or FPGA", NOT_MEANINGFUL,
     "ernic.ko is the driver of this project"),
    ("RDMA enabled NIC", "hardware handshake with a target system", NOT_MEANINGFUL, PINS),
    ("RDMA enabled NIC", "OFED driver and library of user space", IMPLEMENTED,
     f"ernic.ko and libernic; {GUEST}, {FIGURES}"),
    ("figure 2-1", "hosts and NVMe devices over a fabric", NOT_MEANINGFUL, LOST_FIGURE),
    ("work requests", "RDMA Write, RDMA SEND, RDMA Read", IMPLEMENTED, TO_HCA),
    ("work requests", "RDMA WRITE Immediate, RDMA SEND Immediate, RDMA SEND Invalidate", IMPLEMENTED, ALL_KINDS),
    ("work requests", "no atomics, Bind Memory Window, Local Invalidate, Fast Register", IMPLEMENTED,
     f"{FIELDS}: OpcodesOfWqes"),
    ("work requests", "receives are posted again by the hardware", IMPLEMENTED, f"{ROUND}, {NOT_READY}"),
    ("work requests", "a WQE has 64 bytes; table 2-1 is lost", IMPLEMENTED, f"as in 000; {TO_HCA}"),
    ("work requests", "a WQE names local memory by bus address, without a key", EXTENDED,
     f"the kernel writes WQEs and checks keys, and no process has a queue; {ISOLATION}"),
    ("work completions", "for each WQE of the send queue", IMPLEMENTED, f"CQHEAD moves in any case; {NO_CQES}"),
    ("work completions", "a doorbell at RQWPTRDBADDi for each receive buffer", IMPLEMENTED, DOORBELLS),
    ("work completions", "a CQE has 4 bytes; table 2-2 is lost", IMPLEMENTED, f"as in 000; {TO_HCA}"),
    ("work completions", "the length of a message received: not given", EXTENDED, f"with the extension RECORDS; {RECORDS}"),
    ("RDMA queues", "RQ, SQ and CQ are circular buffers outside the core", IMPLEMENTED, ROUND),
    ("RDMA queues", "CQDBADDi points to sq_cmpl_db, RQWPTRDBADDi to rq_wrptr_db", IMPLEMENTED, DOORBELLS),
    ("RDMA queues", "AXI master interfaces; table 3-2 is lost", NOT_MEANINGFUL, BUS),
)

PATHS = (
    ("RX path", "packets come by an AXI4-Stream", NOT_MEANINGFUL, CHIP),
    ("RX path", "all packets are validated \"if XRNICCONF[5] is 1\"", IMPLEMENTED,
     f"always: the bit is that of the error buffer, as 000 says; {ERROR_BUFFER}"),
    ("RX path", "headers that fail go to the error buffer at ERRBUFBA", IMPLEMENTED, f"{SYNDROME}, {ERROR_BUFFER}"),
    ("RX path", "the syndrome stands in front of the header; table 2-3 is lost", IMPLEMENTED, f"as in 000; {SYNDROME}"),
    ("RX path", "packets with ECN 3: not told", EXTENDED,
     "taken; ernic_device_test.cc: MarkedPacketsAreDroppedByTheEtrnicAlone"),
    ("RX path", "most errors need no software", IMPLEMENTED, SYNDROME),
    ("RX path", "what makes a QP FATAL is in the status buffer of IPKTERRQ", IMPLEMENTED, FATAL),
    ("RX path", "an entry has 64 bits; figure 2-3 is lost", IMPLEMENTED, ERROR_QUEUES),
    ("RX path", "FATAL codes; table 2-4 is lost", IMPLEMENTED, f"as in 000; {FATAL}"),
    ("RX path", "incoming SEND, WRITE and READ; all others are responses", IMPLEMENTED, f"{FROM_HCA}, {FATAL}"),
    ("figure 2-4", "a SEND goes to the RX buffer without headers", IMPLEMENTED, A_SEND),
    ("figure 2-4", "RQPI doorbell by side band or by AXI, as QPCONFi[4] says", IMPLEMENTED, DOORBELLS),
    ("figure 2-4", "an ACK is posted at this point", IMPLEMENTED, A_SEND),
    ("figure 2-4", "the RQCI doorbell gives the buffer back", IMPLEMENTED, NOT_READY),
    ("figures 2-5, 2-6", "the peer knows address, length and R_Key; applications exchange them", NOT_MEANINGFUL,
     "of the applications"),
    ("figures 2-5, 2-6", "incoming READ and WRITE: response, or ACK", IMPLEMENTED, FROM_HCA),
    ("TX path", "READ, WRITE, ACKs of SENDs and WRITEs, responses of READs", IMPLEMENTED, f"{TO_HCA}, {FROM_HCA}"),
    ("TX path", "the SQPIi doorbell starts the send queue", IMPLEMENTED, SENDS),
    ("figure 2-7", "WRITE and SEND: WQE, doorbell, data and headers", IMPLEMENTED, TO_HCA),
    ("figure 2-7", "the ACK completes the WQE: CQE by QPCONFi[5], and CQHEAD", IMPLEMENTED, f"{TO_HCA}, {NO_CQES}"),
    ("figure 2-7", "completion count by side band", NOT_MEANINGFUL, PINS),
    ("TX path", "a read request queue for each QP, its depth a parameter", IMPLEMENTED, f"16; {FIELDS}: ReadsOfAPeer"),
    ("TX path", "a READ that finds it full: NAK invalid, and the QP is fatal", IMPLEMENTED, f"{FIELDS}: ReadsOfAPeer"),
    ("figure 2-8", "READ: the request, and the response to the local buffer", IMPLEMENTED, TO_HCA),
    ("figure 2-8", "the response completes the WQE", IMPLEMENTED, TO_HCA),
    ("standards", "standards, performance, resource utilization, ports, parameters", NOT_MEANINGFUL, LOST),
    ("register space", "registers are of the AXI4-Lite clock", NOT_MEANINGFUL, CHIP),
    ("register space", "bits that are not specified read 0", IMPLEMENTED, MAP),
    ("register space", "reset values are 0 unless specified", IMPLEMENTED, RESET),
    ("register space", "reserved locations are written with 0", NOT_MEANINGFUL,
     "a rule for software; other values are ignored"),
    ("register space", "the table of registers", IMPLEMENTED, f"lost: that of 000, and the public map; {MAP}"),
    ("figure 2-9", "the protection domain table is used in header validation", IMPLEMENTED, TABLE_REFUSES),
    ("end", "answers, comments and offers of a web page", NOT_MEANINGFUL, "not of the document"),
)

LIMITS = (
    ("public: limits", "no SEND of length 0", IMPLEMENTED,
     f"an illegal WQE; ernic_test.cc: LengthThatNoMessageHasIsIllegal, {FATAL}"),
    ("public: limits", "no message of more than 8 MB", IMPLEMENTED,
     f"{STRICT}; ernic_device_test.cc: AWqeOfMoreThan8Mb, {PEER_LIMITS}"),
    ("public: limits", "no incoming READ of 4 bytes or less", IMPLEMENTED, f"{STRICT}; {PEER_LIMITS}"),
    ("public: limits", "incoming READ and WRITE at multiples of 64", IMPLEMENTED, f"{STRICT}; {PEER_LIMITS}"),
    ("public: limits", "lengths of incoming WRITEs and READs in multiples of 64", IMPLEMENTED, f"{STRICT}; {PEER_LIMITS}"),
    ("public: limits", "lengths of READ responses received in multiples of 64", DEPARTS, "those of any length are taken"),
    ("public: limits", "queues are tested from a depth of 16", NOT_MEANINGFUL, "any depth is taken"),
    ("public: limits", "one memory region of a QP", NOT_MEANINGFUL, "of newer versions"),
)

PUBLIC = (
    ("public: map", "256 KB; 64 KB have no place for 255 QPs and a protection domain table", IMPLEMENTED,
     "ernic_cases.py: test_identity"),
    ("public: map", "protection domain table: 256 entries of 100h from 0 on", IMPLEMENTED, MAP),
    ("public: map", "global registers from 20000h on", IMPLEMENTED, MAP),
    ("public: map", "QP i at 20200h + (i - 1) x 100h", IMPLEMENTED, MAP),
    ("public: map", "TXBUFBA, TXBUFSZ, TXSGLBUFBA, TXSGLBUFSZ: absent", IMPLEMENTED, f"read 0; {RESET}"),
    ("public: map", "OPKTERRQBA, OPKTERRQSZ, OPKTERRQWPTR: deprecated", EXTENDED, f"as in 000; {ILLEGAL}"),
    ("public: map", "INTEN and INTSTS 8, 201D0h-201ECh: congestion notification is scheduled", DEPARTS, "0"),
    ("public: map", "200BCh: write pointer of the response error buffers, version 4", NOT_MEANINGFUL, "not of version 3"),
    ("public: map", "nine interrupts", DEPARTS, "one, the OR of all"),
    *(("public: WQE", f"opcode {value:02X}h {name}", IMPLEMENTED, why) for value, name, why in OPCODES),
    ("public: WQE", "[415:384] immediate data", IMPLEMENTED, f"in the order of the wire; {ALL_KINDS}"),
    ("public: WQE", "RTAG of SEND_INV: the R_Key to invalidate", IMPLEMENTED, ALL_KINDS),
    ("public: WQE", "SDATA of SEND_IMM and SEND_INV of 16 bytes or less", IMPLEMENTED, ALL_KINDS),
    ("public: CQE", "opcodes 01h, 03h, 0Ch", IMPLEMENTED, ALL_KINDS),
    ("public: immediate entry", "31:0 data, 39:32 type, 47:40 QP, 63:48 RQ producer index", IMPLEMENTED,
     f"the data in the order of the wire; {ENTRIES}"),
    ("public: immediate entry", "values of the type: not given", EXTENDED,
     f"opcode of the BTH of the message's last packet; {ENTRIES}"),
    ("public: error status entry", "15:0 FATAL code", IMPLEMENTED, ERROR_QUEUES),
    ("public: error status entry", "31:16 QP", IMPLEMENTED, ERROR_QUEUES),
    ("public: error status entry", "63:32 reserved", IMPLEMENTED, f"0; {ERROR_QUEUES}"),
    ("public: recovery", "QPCONF 6, STATQP 10:9, RESPHNDSTS 16, disable, override, pointers to 0, enable", IMPLEMENTED,
     "ernic_device_test.cc: Recovery"),
    ("public: protection domain table", "a match: R_Key, PD, address, length, access", IMPLEMENTED,
     f"{TABLE_REFUSES}, {FIELDS}: EntriesOfTheProtectionDomainTable"),
    ("public: protection domain table", "an entry is one contiguous range", IMPLEMENTED, f"without PAGES; {FROM_HCA}"),
    ("public: protection domain table", "256 entries in all", IMPLEMENTED, MAP),
)

OURS = (
    ("ours: extensions", "RECORDS, bit 0: a record of 16 bytes for each message", EXTENDED, RECORDS),
    ("ours: extensions", "PAGES, bit 1: an entry names a list of pages", EXTENDED, PAGES),
    ("ours: extensions", "an extension that is absent cannot be enabled", EXTENDED,
     ENTRIES),
    ("ours: extensions", "RECORDBA, RECORDSZ and RECORDWPTR without RECORDS: the ring of immediate entries", EXTENDED,
     f"RECORDSZ counts entries of 8 bytes; {ENTRIES}, ernic_device_test.cc: NoEntriesWithoutARing"),
    ("ours: extensions", "the ring of an ETRNIC without RECORDS: nothing is written", EXTENDED,
     "ernic_device_test.cc: AnEtrnicHasNoEntries"),
    ("ours: record", "QP, STATRQPIDB, opcode, flags, length, immediate data or R_Key", EXTENDED, RECORDS),
    ("ours: record", "flags: 0 solicited", EXTENDED, f"{FIELDS}: ASolicitedMessage"),
    ("ours: record", "flags: 7 the round of the ring", EXTENDED, RECORDS),
    ("ours: FATAL", "20h ACCESS: a peer may not access what its R_Key names", EXTENDED, f"{TABLE_REFUSES}, {FATAL}"),
    ("ours: FATAL", "21h MEMORY: memory of a WQE or a queue is not there", EXTENDED,
     "ernic_device_test.cc: NothingIsThere, ernic_cases.py: test_invalid_addresses"),
    ("ours: PCI", "1af4:10f3, class 020700, BAR0, the MAC address in the serial number", EXTENDED,
     "ernic_cases.py: test_identity"),
    ("ours: PCI", "one interrupt, MSI or INTx", EXTENDED, "ernic_cases.py: test_link"),
    ("ours: PCI", "FLR clears all registers and ends what is under way", EXTENDED, "ernic_cases.py: test_reset"),
    ("ours: PCI", "without bus mastering nothing is read or written", EXTENDED,
     "ernic_cases.py: test_without_bus_mastering"),
    ("ours: PCI", "accesses of another width than 32 bits", EXTENDED, "ernic_cases.py: test_widths"),
    ("software", "the CM, by QP 1", EXTENDED, "ernic.py: connections"),
    ("software", "pingpong and perftest with an HCA, each side first", EXTENDED, f"{GUEST}, {FIGURES}"),
    ("software", "CQs of other shapes, receive completions, signaled and solicited, fences, scatter lists, 64-bit wr_id",
     EXTENDED, "the driver's; kunit/ernicpost.c: post_shared_cq, kunit/ernicpost.c: post_signaled, "
     f"kunit/ernicpost.c: post_notifies, kunit/ernicpost.c: post_held_back, kunit/ernicpost.c: post_parts; {DATA}"),
    ("software", "a region has one entry, with PAGES a list", EXTENDED, f"kunit/ernicmr.c: region_entry; {FIGURES}"),
    ("software", "an R_Key that a peer invalidates", EXTENDED,
     "the driver invalidates before it gives the completion; a peer may use the key until then; "
     "programs/ernic.c: invalidated"),
    ("software", "a process does not map a queue or a register", EXTENDED,
     f"libernic posts through the kernel, which checks keys; {ISOLATION}"),
    ("software", "a work request with a bad key, range or right", EXTENDED,
     "it completes in its turn with a protection error; ernic.py: bad_verbs_to_ernic, ernic.py: bad_verbs_from_ernic"),
    ("software", "NVMe over Fabrics", EXTENDED,
     "a target; without Fast Register a host of Linux has no use of it; ernic.py: mixed, ernic.py: never_host"),
    ("whole", "any register, WQE and packet", EXTENDED,
     "each loop has a bound, and the device lives; ernic_device_test.cc: HostileInputInEachState, fuzz/ernic.cc: LLVMFuzzerTestOneInput, "
     "ernic_cases.py: test_any_register"),
    ("whole", "ERNICs and HCAs on one network with all kinds of faults", EXTENDED, "sim/scenarios.cc: ernic"),
)


def shared_rows():
    """Registers that 000 has too, at their places in this map."""
    for base, registers, more in ((0x20000, GLOBALS, ""), (0x20200, QPS, " + (i - 1) x 100h")):
        for register in registers:
            if register.source == "000" and register.who == "BOTH":
                yield Row("public: registers", f"{base + register.offset:05X}h{more} {register.name}: as in 000",
                          IMPLEMENTED, MAP)


def public_rows(source):
    """Those that 000 does not have, and their fields."""
    for where, base, registers, more in (("global registers", 0x20000, GLOBALS, ""),
                                         ("registers of a QP", 0x20200, QPS, " + (i - 1) x 100h"),
                                         ("protection domain table", 0, PDS, " + entry x 100h")):
        for register in registers:
            offset = f"{base + register.offset:05X}h{more}"
            yield from rows_of(f"{source}: {where}", register, offset, source,
                               IMPLEMENTED if source == "public" else EXTENDED)


ROWS = tuple(row if isinstance(row, Row) else Row(*row) for row in (
    *OVERVIEW, *MODULES, *SPECIFICATION, *PATHS, *PUBLIC, *shared_rows(), *public_rows("public"), *LIMITS,
    *public_rows("ours"), *OURS))

REAL_CORE = "limits of the real core"
# The point of the page's list of departures that explains each row that departs.
POINTS = points_of(ROWS, {
    ("public: map", "INTEN and INTSTS 8, 201D0h-201ECh: congestion notification is scheduled"): CONGESTION,
    ("public: map", "nine interrupts"): "interrupts",
    **{(where, item): REAL_CORE for where, item, status, _ in LIMITS if status == DEPARTS},
})
