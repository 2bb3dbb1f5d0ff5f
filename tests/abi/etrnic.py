# SPDX-License-Identifier: GPL-2.0-or-later
"""What the ETRNIC does with each table, register, field and statement of its document, and the document's literals.

A test is named as the page says (hghca_lib/generated.py). Offsets, bits, codes and values are the document's; those of
registers stand in ernic_registers.py. `tools/hghca pages` writes docs/reference/documents/etrnic.rst from this.
"""

from ernic_registers import (ACCESS, ACK_MODES, A_SEND, BANKS, BASE_COUNT, DATA_BUFFERS, ERROR_QUEUES, FATAL, FIELDS,
                             FROM_HCA, GATES, GLOBALS, HEADERS_KEPT, ILLEGAL, IPV6, LISTS, MADS, MAP, NOT_READY, NO_CQES, QPS,
                             RESET, SENDS, SOURCES, STATUS, SYNDROME, TO_HCA, points_of, rows_of, unused)
from literals import Field, Table, Value
from rows import DEPARTS, EXTENDED, IMPLEMENTED, NOT_MEANINGFUL, Row

TITLE = "The document of the ETRNIC, row by row"
INTRODUCTION = """\
The rows are those of *Xilinx Embedded Target RDMA Enabled NIC v1.0* (PG294, 4 April 2018), which the reference calls 000.
`ERNIC and ETRNIC <../ernic.rst>`__ describes the device. ``tests/abi`` compares each offset, bit and value
(``tests/abi/ernic_registers.py``, ``etrnic.py``) with the header. One model has both personalities: a test of an ERNIC
shows what is not of one personality. A register is 0 after reset
unless its row has another value. i and n are numbers of a QP."""

CHIP = "structure of the chip; the emulated device has no such parts"
PINS = "the model has no pins: doorbells that go by pins are counted; ernic_device_test.cc: Doorbells"
BUS = "the device does DMA in memory of the host, and BAR0 has the registers"
TOOLS = "of the tools that make the chip"
TITLES = "titles and links"
SOFTWARE = "a rule for software"
OTHERS_TOOLS = "of another maker's adapter and its tools"

EXAMPLE = "ernic_device_test.cc: ExampleOfTheDocument"
GUEST = "ernic.py: etrnic"
RETRY = "ernic_device_test.cc: RetriesRunOut"
KEPT = "ernic_device_test.cc: DataBuffersKeepWrites"
DOORBELLS = "ernic_device_test.cc: Doorbells"
ERROR_BUFFER = "ernic_device_test.cc: ErrorBufferHoldsFatalPacketsAlone"
SIXTEEN = "ernic_device_test.cc: TheSeventeenthWaits"
ROUND = "ernic_device_test.cc: IndicesGoRoundManyTimes"
BOUNDS = "ernic_cases.py: test_properties_refused"
OWN_REQUESTS = f"{FIELDS}: RequestsOfAnEtrnic"
BAD_RESPONSES = "ernic_device_test.cc: AResponseMakesTheQpFatal"
BAD_REQUESTS = f"{FIELDS}: PaddingAndLength"
TIMERS = f"{FIELDS}: TimersOfAQp"

# ---- literals

# Bit, precedence, name in the header, what is wrong, impact, status, test or reason.
SYNDROMES = (
    (0, 4, "MAC_DESTINATION", "MAC destination address is not the device's", "dropped", IMPLEMENTED, SYNDROME),
    (2, 5, "IP_VERSION", "IP version is not the configured one", "dropped", IMPLEMENTED,
     f"that of QPCONF 7; QP 1 takes both; {IPV6}, {FIELDS}: MadsOfBothVersionsOfIp"),
    (3, 7, "IP_HEADER", "IPv4 header has not 20 bytes", "dropped", IMPLEMENTED, SYNDROME),
    (4, 8, "ECN", "ECN is 3", "dropped", IMPLEMENTED,
     "ernic_device_test.cc: MarkedPacketsAreDroppedByTheEtrnicAlone"),
    (5, 8, "IP_FLAGS", "flags of IPv4 are not 2", "dropped", IMPLEMENTED, SYNDROME),
    (6, 8, "IP_FRAGMENT", "fragment offset is not 0", "dropped", IMPLEMENTED, SYNDROME),
    (8, 8, "IP_DESTINATION", "IP destination address is not the device's", "dropped", IMPLEMENTED, f"{SYNDROME}, {IPV6}"),
    (9, 6, "IP_CHECKSUM", "IPv4 header checksum", "dropped", IMPLEMENTED, SYNDROME),
    (10, 8, "IP_LENGTH", "IP length is out of range", "dropped", IMPLEMENTED, SYNDROME),
    (12, 9, "UDP_LENGTH", "UDP length does not fit the IP length", "dropped", IMPLEMENTED, SYNDROME),
    (13, 10, "BTH_VERSION", "BTH version is not 0", "dropped", IMPLEMENTED, SYNDROME),
    (14, 10, "QP", "QP is not supported", "dropped", IMPLEMENTED, SYNDROME),
    (15, 11, "QP_DISABLED", "QP is not enabled", "dropped", IMPLEMENTED, SYNDROME),
    (16, 14, "SEQUENCE", "opcode sequence", "NAK invalid, FATAL", IMPLEMENTED, FATAL),
    (17, 10, "OPCODE", "opcode is unsupported or reserved", "NAK invalid, FATAL", IMPLEMENTED,
     f"with another PSN dropped, as FATAL code 00100 says; {FATAL}, "
     "ernic_device_test.cc: UnsupportedOpcodeWithAnotherPsnIsDropped"),
    (18, 14, "PAD", "FIRST or MIDDLE request with padding", "dropped", IMPLEMENTED,
     f"also as FATAL code 00010 says; {BAD_REQUESTS}"),
    (19, 14, "LENGTH", "payload does not fit the PMTU", "dropped", IMPLEMENTED,
     f"also as FATAL codes 00010 and 11010 say; {FATAL}, {BAD_RESPONSES}"),
    (20, 13, "RNR", "request queue is full", "RNR NAK", IMPLEMENTED, f"ernic_device_test.cc: FullReceiveQueue, {NOT_READY}"),
    (21, 12, "PSN", "PSN sequence of a request", "NAK sequence", IMPLEMENTED,
     "ernic_device_test.cc: WrongPsnIsAskedForAgain"),
    (22, 14, "AETH", "AETH syndrome is malformed", "dropped", IMPLEMENTED, "a reserved value; ernic_device_test.cc: ReservedSyndrome"),
    (23, 14, "RESPONSE", "bad response, or NAK invalid", "FATAL", IMPLEMENTED, BAD_RESPONSES),
    (27, 5, "IP_SOURCE", "IP source address is not the peer's", "dropped", IMPLEMENTED, f"{SYNDROME}, {IPV6}"),
    (28, 4, "MAC_SOURCE", "MAC source address is not the peer's", "dropped", IMPLEMENTED, SYNDROME),
    (30, 2, "ICRC", "ICRC", "dropped", IMPLEMENTED, SYNDROME),
)
# Code, name in the header, text, status, test or reason.
FATALS = (
    (0x01, "SEQUENCE", "request opcode sequence", IMPLEMENTED, FATAL),
    (0x02, "LENGTH", "request length is not as the PMTU", IMPLEMENTED, FATAL),
    (0x03, "SEQUENCE_LENGTH", "opcode sequence and length", IMPLEMENTED, FATAL),
    (0x04, "OPCODE", "unsupported request opcode with the correct PSN", IMPLEMENTED, FATAL),
    (0x06, "RETRIES", "retry count expired", IMPLEMENTED, RETRY),
    (0x0a, "NAK", "NAK Invalid, RAE or ROE", IMPLEMENTED, STATUS),
    (0x0c, "ACK_OPCODE", "opcode of an acknowledge response", IMPLEMENTED, BAD_RESPONSES),
    (0x0d, "RNR_RETRIES", "RNR NAK down counter expired", IMPLEMENTED, TIMERS),
)
# y2, y1 and y0 of 11y2y1y0.
READ_FATALS = (
    (0x19, "READ_SYNDROME", "y0: AETH syndrome of a READ response is no ACK", IMPLEMENTED, BAD_RESPONSES),
    (0x1a, "READ_LENGTH", "y1: length of a READ response", IMPLEMENTED, BAD_RESPONSES),
    (0x1c, "READ_OPCODE", "y2: opcode of a READ response", IMPLEMENTED, BAD_RESPONSES),
)
# Line, name in the header, what asserts it, test or reason.
INTERRUPTS = (
    (0, "VALIDATION", "a packet fails header validation", SYNDROME),
    (1, "MAD", "a MAD packet is received", MADS),
    (2, "BYPASS", "reserved; a bypass packet in INTEN and INTSTS", ""),
    (3, "RNR_NAK", "an RNR NAK is sent", NOT_READY),
    (4, "COMPLETION", "a WQE completion is updated", TO_HCA),
    (5, "BAD_OPCODE", "a WQE with an illegal opcode", ILLEGAL),
    (6, "RECEIVE", "an RDMA SEND is received", BANKS),
    (7, "FATAL", "a QP is moved to fatal state", FATAL),
)
WQE = "struct ernic_wqe"

DOCUMENT = "the document of the ETRNIC"
TABLES = (
    Table("ETRNIC table 2-1", "WQE", (
        Value("size, 64 bytes", 64, f"sizeof({WQE})"),
        Field("[15:0] WRID", 0x00, "15:0", "wrid"),
        Field("[31:16] RESERVED", 0x00, "31:16", "rsvd02"),
        Field("[95:32] LADDR, low", 0x04, "31:0", "laddr[0]"),
        Field("[95:32] LADDR, high", 0x08, "31:0", "laddr[1]"),
        Field("[127:96] LENGTH", 0x0C, "31:0", "length"),
        Field("[135:128] OPCODE", 0x10, "7:0", "opcode"),
        Field("[223:160] ROFFSET, low", 0x14, "31:0", "roffset[0]"),
        Field("[223:160] ROFFSET, high", 0x18, "31:0", "roffset[1]"),
        Field("[255:224] RTAG", 0x1C, "31:0", "rtag"),
        Value("[383:256] SDATA", 0x20, f"offsetof({WQE}, sdata)"),
        Value("[383:256] SDATA, 16 bytes", 16, "ERNIC_SDATA_BYTES"),
        Value("RDMA_WRITE", 0x00, "ERNIC_OPCODE_WRITE"),
        Value("RDMA_SEND", 0x02, "ERNIC_OPCODE_SEND"),
        Value("RDMA_READ", 0x04, "ERNIC_OPCODE_READ"),
        *(Value(f"RDMA_{name}: both personalities", 3, f"ernic_opcode_of.{name}") for name in ("WRITE", "SEND", "READ")),
    ), struct=WQE),
    Table("ETRNIC table 2-2", "CQE", (
        Value("size, 4 bytes", 4, "ERNIC_CQE_BYTES"),
        Field("[15:0] WRID", 0, "15:0", "0", "ERNIC_CQE_WRID"),
        Field("[23:16] OPCODE", 0, "23:16", "0", "ERNIC_CQE_OPCODE"),
        Field("[31:24] ERRFLAG", 0, "31:24", "0", "ERNIC_CQE_ERROR"),
    )),
    Table("ETRNIC table 2-3", "error syndromes", tuple(
        row for bit, precedence, name, *_ in SYNDROMES
        for row in (Value(name, bit, f"ERNIC_SYNDROME_{name}"),
                    Value(f"{name}: precedence", precedence, f"ernic_precedence.{name}")))),
    Table("ETRNIC table 2-4", "FATAL codes", tuple(
        Value(name, code, f"ERNIC_FATAL_{name}") for code, name, *_ in (*FATALS, *READ_FATALS))),
    Table("ETRNIC table 2-6", "parameters", (
        Value("C_NUM_QP, minimum", 8, "ERNIC_QPS_MIN"),
        Value("C_NUM_QP, maximum", 128, "ERNIC_QPS_ETRNIC"),
    )),
    Table("ETRNIC table 2-7", "places", (
        Value("personality", 1, "ERNIC_PERSONALITY_ETRNIC"),
        Value("global registers", 0, "ERNIC_GLOBALS_ETRNIC"),
        Value("registers of QP 1", 0x200, "ERNIC_GLOBALS_SIZE"),
        Value("from one QP to the next", 0x100, "ERNIC_QP_SIZE"),
        Value("QP of MADs", 1, "ERNIC_QP1"),
        Value("TX Ack generation: request or time-out", 0, "ERNIC_ACK_REQUEST_OR_TIMEOUT"),
        Value("TX Ack generation: time-out", 1, "ERNIC_ACK_TIMEOUT"),
        Value("TX Ack generation: request", 2, "ERNIC_ACK_REQUEST"),
    )),
    Table("ETRNIC tables 3-1, 3-2", "memory", (
        Value("registers, 64 KB", 64 << 10, "ERNIC_APERTURE_ETRNIC"),
        Value("bytes of a header buffer", 128, "ERNIC_HEADER_BUFFER_BYTES"),
        Value("bytes of an SGL", 16, "ERNIC_SGL_BYTES"),
        Value("bytes of an entry of an SGL", 8, "sizeof(struct ernic_sgl_entry)"),
        Value("outstanding transactions", 16, "ERNIC_OUTSTANDING"),
        Value("size of a write retry buffer, 4K", 4096, "ERNIC_DATA_BUFFER_BYTES"),
    )),
    Table("ETRNIC table 3-3", "interrupts", tuple(
        Value(name, line, f"ERNIC_INT_{name}") for line, name, *_ in INTERRUPTS)),
)

# ---- rows

FRONT = (
    ("title", "Embedded Target RDMA Enabled NIC v1.0, PG294; contents", NOT_MEANINGFUL, TITLES),
    ("IP facts", "a target only implementation of RoCE v2", IMPLEMENTED, EXAMPLE),
    ("IP facts", "parameterizable soft core for Xilinx MACs", NOT_MEANINGFUL, CHIP),
    ("IP facts", "reliable data transfer over Ethernet, in hardware", IMPLEMENTED, GUEST),
    ("IP facts", "connections to several remote hosts at a time", IMPLEMENTED,
     "ernic_test.cc: EveryKindWithEveryKindOnAPoorSwitch"),
    ("IP facts", "RoCE v2", IMPLEMENTED, GUEST),
    ("IP facts", "packets are sent again on errors, in hardware", IMPLEMENTED, STATUS),
    ("IP facts", "100 Gb/s data path", NOT_MEANINGFUL, "the throughput is that of the host"),
    ("IP facts", "reliable connection in hardware", IMPLEMENTED, GUEST),
    ("IP facts", "hardware handshake on the user interface", NOT_MEANINGFUL, PINS),
    ("IP facts", "incoming SEND; outgoing SEND, READ and WRITE", IMPLEMENTED, f"{EXAMPLE}, {OWN_REQUESTS}"),
    ("IP facts", "no incoming READ, WRITE and atomics", IMPLEMENTED, FATAL),
    ("IP facts", "up to 127 queue pairs", IMPLEMENTED, f"of RC, beside QP 1; {BOUNDS}"),
    ("IP facts", "IPv4 and IPv6 packets", IMPLEMENTED, f"{EXAMPLE}, {IPV6}"),
    ("IP facts", "families, interfaces, files, flows and support", NOT_MEANINGFUL, TOOLS),
)

OVERVIEW = (
    ("chapter 1", "an endpoint by annexes A16 and A17 of IBA", IMPLEMENTED, GUEST),
    ("figure 1-1", "Ethernet, DMA and interconnect beside the core", NOT_MEANINGFUL, CHIP),
    ("chapter 1", "the application is the user logic or target IP", NOT_MEANINGFUL, "a word; here it is software"),
    ("chapter 1", "side band interfaces for doorbells", NOT_MEANINGFUL, PINS),
    ("chapter 1", "a queue has a producer and a consumer index; a write of one is a doorbell", IMPLEMENTED, ROUND),
    ("chapter 1", "how an index wraps, and a full and an empty queue: not given", EXTENDED,
     f"0 after reset, then 1 to the depth, and 1 again; one entry stays free; {ROUND}"),
    ("chapter 1", "an index that the queue cannot have: not given", EXTENDED,
     "ignored and counted; ernic_test.cc: IndexThatTheQueueCannotHaveIsIgnored"),
    ("feature summary", "AXI streams to the network, AXI4 to DDR, 512 bits inside", NOT_MEANINGFUL, CHIP),
    ("feature summary", "data transfer without software", IMPLEMENTED, EXAMPLE),
    ("feature summary", "lost packets are handled in hardware", IMPLEMENTED, f"{RETRY}, sim/scenarios.cc: ernic"),
    ("feature summary", "RDMA SEND alone of incoming requests", IMPLEMENTED, FATAL),
    ("feature summary", "work requests READ, WRITE and SEND alone", IMPLEMENTED, OWN_REQUESTS),
    ("feature summary", "up to 128 connections", IMPLEMENTED, f"128 QPs with QP 1, so 127 connections; {BOUNDS}"),
    ("feature summary", "no dynamic memory registration", IMPLEMENTED, f"no protection domain table; {RESET}"),
    ("feature summary", "doorbell exchange by the hardware handshake", NOT_MEANINGFUL, PINS),
    ("modules", "QP Manager, WQE Processor Engine, RX PKT Handler, Response Handler", NOT_MEANINGFUL, CHIP),
    ("QP Manager", "configurations of all QPs, by AXI Lite", IMPLEMENTED, MAP),
    ("QP Manager", "arbitrates between send queues", IMPLEMENTED, "ernic_test.cc: EveryKindWithEveryKindOnAPoorSwitch"),
    ("QP Manager", "caches WQEs", NOT_MEANINGFUL, "a WQE is read where it is"),
    ("QP Manager", "moves the pointers of a QP back for a retransmission", IMPLEMENTED, RETRY),
    ("WQE Processor Engine", "finds invalid opcodes", IMPLEMENTED, ILLEGAL),
    ("WQE Processor Engine", "cuts messages at the PMTU", IMPLEMENTED, f"{FIELDS}: PathMtus"),
    ("WQE Processor Engine", "scatter gather lists for the DMA engine", NOT_MEANINGFUL, CHIP),
    ("WQE Processor Engine", "acknowledges incoming SENDs", IMPLEMENTED, A_SEND),
    ("RX PKT Handler", "RDMA SEND and READ responses", IMPLEMENTED, f"{EXAMPLE}, {OWN_REQUESTS}"),
    ("RX PKT Handler", "acknowledgements of WRITE and SEND", IMPLEMENTED, f"{SENDS}, {OWN_REQUESTS}"),
    ("RX PKT Handler", "MAD packets to QP 1", IMPLEMENTED, MADS),
    ("RX PKT Handler", "validates packets; those that pass go to the RQ buffer", IMPLEMENTED, f"{SYNDROME}, {A_SEND}"),
    ("RX PKT Handler", "READ responses go to the application directly", IMPLEMENTED, OWN_REQUESTS),
    ("Response Handler", "a queue of what is not acknowledged", IMPLEMENTED, SIXTEEN),
    ("Response Handler", "sends again after a NAK", IMPLEMENTED, STATUS),
    ("Response Handler", "sends again after a time-out", IMPLEMENTED, RETRY),
    ("applications", "sensors, video, storage", NOT_MEANINGFUL, "applications are software"),
    ("unsupported", "incoming READ, WRITE and atomics", IMPLEMENTED, f"NAK invalid, and FATAL; {FATAL}"),
    ("unsupported", "outgoing atomics", IMPLEMENTED, f"no such opcode of a WQE; {FIELDS}: OpcodesOfWqes"),
    ("unsupported", "OFED stack APIs", DEPARTS, f"ib_core has an RDMA device, of SEND alone for the peer; {GUEST}"),
    ("unsupported", "outgoing SEND of length 0", IMPLEMENTED,
     "an illegal WQE; ernic_test.cc: LengthThatNoMessageHasIsIllegal"),
    ("unsupported", "incoming SEND of length 0", IMPLEMENTED, f"NAK invalid, and FATAL; {FATAL}"),
    ("unsupported", "WRITE and READ of length 0: not told", EXTENDED,
     f"they are taken; {FIELDS}: EmptyWritesAndReads"),
    ("unsupported", "SEND with invalidate, SEND with immediate, incoming", IMPLEMENTED, FATAL),
    ("unsupported", "SEND with invalidate or immediate, WRITE with immediate, outgoing", IMPLEMENTED,
     f"illegal WQEs; {FIELDS}: OpcodesOfWqes"),
    ("licensing", "licences, ordering, checkers", NOT_MEANINGFUL, TOOLS),
)

DATA_STRUCTURES = (
    ("chapter 2", "an endpoint of RoCE v2; drivers for Zynq MPSoC or FPGA", NOT_MEANINGFUL,
     "ernic.ko is the driver of this project"),
    ("Target RDMA enabled NIC", "hardware handshake with a target system", NOT_MEANINGFUL, PINS),
    ("Target RDMA enabled NIC", "a SW API for applications on ARM", NOT_MEANINGFUL, "libibverbs is the API here"),
    ("figure 2-1", "hosts and NVMe devices over a fabric; hosts have RoCE v2", NOT_MEANINGFUL, "an example of a system"),
    ("work requests", "Send, RDMA Write, RDMA Read", IMPLEMENTED, OWN_REQUESTS),
    ("work requests", "no atomics, Bind Memory Window, Local Invalidate, Fast Register", IMPLEMENTED,
     f"{FIELDS}: OpcodesOfWqes"),
    ("work requests", "receives are posted again by the hardware", IMPLEMENTED, f"{ROUND}, {NOT_READY}"),
    ("table 2-1", "a WQE has 64 bytes", IMPLEMENTED, SENDS),
    ("table 2-1", "[15:0] WRID", IMPLEMENTED, TO_HCA),
    ("table 2-1", "[31:16], [159:136], [511:384] RESERVED", IMPLEMENTED, f"not looked at; {FIELDS}: ReservedBytesOfAWqe"),
    ("table 2-1", "[95:32] LADDR, for READ and WRITE", IMPLEMENTED, f"a bus address, for SEND too; {OWN_REQUESTS}"),
    ("table 2-1", "LADDR has no key: who may write a send queue reaches all memory", EXTENDED,
     "the kernel alone writes queues, and checks keys; ernic.py: isolation"),
    ("table 2-1", "[127:96] LENGTH", IMPLEMENTED, OWN_REQUESTS),
    ("table 2-1", "a length that no message has: not told", EXTENDED,
     "an illegal WQE; ernic_test.cc: LengthThatNoMessageHasIsIllegal"),
    ("table 2-1", "[135:128] OPCODE: RDMA_WRITE 00h", IMPLEMENTED, OWN_REQUESTS),
    ("table 2-1", "[135:128] OPCODE: RDMA_SEND 02h", IMPLEMENTED, SENDS),
    ("table 2-1", "[135:128] OPCODE: RDMA_READ 04h", IMPLEMENTED, OWN_REQUESTS),
    ("table 2-1", "[135:128] OPCODE: other values are reserved", IMPLEMENTED, f"illegal; {FIELDS}: OpcodesOfWqes"),
    ("table 2-1", "[223:160] ROFFSET", IMPLEMENTED, OWN_REQUESTS),
    ("table 2-1", "[255:224] RTAG", IMPLEMENTED, OWN_REQUESTS),
    ("table 2-1", "[383:256] SDATA: a SEND of 16 bytes or less", IMPLEMENTED, SENDS),
    ("work completions", "for every WQE of the send queue", IMPLEMENTED, f"CQHEAD moves in any case; {NO_CQES}"),
    ("work completions", "none for the receive queue, but a doorbell at RQWPTRDBADDi", IMPLEMENTED, DOORBELLS),
    ("work completions", "the length of a message received: not given", EXTENDED,
     "with the extension RECORDS; ernic_device_test.cc: RecordsTellTheLength"),
    ("table 2-2", "a CQE has 4 bytes", IMPLEMENTED, TO_HCA),
    ("table 2-2", "[15:0] WRID", IMPLEMENTED, TO_HCA),
    ("table 2-2", "[23:16] OPCODE: 0 WRITE, 2 SEND, 4 READ", IMPLEMENTED, TO_HCA),
    ("table 2-2", "[31:24] ERRFLAG: 1, the QP enters a fatal state", IMPLEMENTED, f"01h; {STATUS}"),
    ("table 2-2", "CQE of an illegal WQE: not told", EXTENDED, f"ERRFLAG 1, its opcode, and the QP lives; {ILLEGAL}"),
    ("table 2-2", "WQEs behind the one that fails: not told", EXTENDED,
     "they do not complete: software flushes; ernic_test.cc: DisabledQpCompletesNothing"),
    ("RDMA queues", "RQ, SQ and CQ are circular buffers outside the core", IMPLEMENTED, ROUND),
    ("figure 2-2", "the queues and their variables", NOT_MEANINGFUL, "a figure; the registers are in table 2-7"),
    ("RDMA queues", "CQDBADDi is the address of sq_cmpl_db, RQWPTRDBADDi of rq_wrptr_db", IMPLEMENTED, DOORBELLS),
    ("RDMA queues", "AXI master interfaces", NOT_MEANINGFUL, BUS),
)

RX_PATH = (
    ("RX path", "packets come by an AXI stream", NOT_MEANINGFUL, CHIP),
    ("RX path", "all packets are validated", IMPLEMENTED, SYNDROME),
    ("RX path", "with XRNICCONF[5], headers that fail go to the error buffer", IMPLEMENTED, f"{SYNDROME}, {ERROR_BUFFER}"),
    ("RX path", "the syndrome stands in front of the header", IMPLEMENTED, SYNDROME),
    ("RX path", "size and order of the syndrome, and how much of a packet: not given", EXTENDED,
     f"4 bytes, little-endian, then headers from the Ethernet header on; {SYNDROME}"),
    *(("table 2-3", f"{bit}, precedence {precedence}: {text}; {impact}", status, why)
      for bit, precedence, _, text, impact, status, why in SYNDROMES),
    ("table 2-3", "18: the same of a response; dropped", IMPLEMENTED,
     "ernic_device_test.cc: PaddingInFrontOfTheLastResponse"),
    ("table 2-3", "31, precedence 1: FCS", NOT_MEANINGFUL, "frames have no FCS in the emulation"),
    ("table 2-3", "1, 7, 11, 24-26, 29: reserved", IMPLEMENTED, f"0; {SYNDROME}"),
    ("table 2-3", "what precedence means, and one bit or all: not given", EXTENDED,
     "the lowest number decides, with all bits of its own; ernic_device_test.cc: LowestPrecedenceDecides"),
    ("RX path", "most errors need no software", IMPLEMENTED, SYNDROME),
    ("RX path", "an error that makes a QP FATAL is in the status buffer of IPKTERRQ", IMPLEMENTED, FATAL),
    ("RX path", "an entry has 64 bits", IMPLEMENTED, ERROR_QUEUES),
    ("figure 2-3", "format of an entry; the figure is missing", EXTENDED,
     f"15:0 code, 31:16 QP, as public; {ERROR_QUEUES}"),
    *(("table 2-4", f"{code:05b}: {text}", status, why) for code, _, text, status, why in FATALS),
    ("table 2-4", "00101, 00111 to 01001, 01011: reserved", NOT_MEANINGFUL, "no cause has them"),
    ("table 2-4", "01110 to 11000: a text that repeats the range", NOT_MEANINGFUL, "reserved: no cause has them"),
    *(("table 2-4", f"11y2y1y0, {text}", status, why) for code, _, text, status, why in READ_FATALS),
    ("table 2-4", "11y2y1y0, y1: of a LAST or ONLY", IMPLEMENTED, BAD_RESPONSES),
    ("table 2-4", "11y2y1y0: several of y2, y1, y0 at a time", IMPLEMENTED, BAD_RESPONSES),
    ("table 2-4", "local error or remote error", NOT_MEANINGFUL, "the code tells it"),
    ("table 2-4", "memory that a WQE or a queue names is not there: no code", EXTENDED,
     "21h; ernic_device_test.cc: NothingIsThere, ernic_cases.py: test_invalid_addresses"),
    ("RX path", "only SEND requests are expected", IMPLEMENTED, FATAL),
    ("figure 2-4", "content goes to the RX buffer without headers", IMPLEMENTED, A_SEND),
    ("figure 2-4", "a slot is a packet or a message: not told", EXTENDED,
     f"a message; the index moves at its end; {FROM_HCA}"),
    ("figure 2-4", "a message that is longer than its slot: not told", EXTENDED,
     "NAK invalid, FATAL 00010; ernic_device_test.cc: LongerThanASlot"),
    ("figure 2-4", "RQPI doorbell by side band or by AXI, as QPCONFi[4] says", IMPLEMENTED, DOORBELLS),
    ("figure 2-4", "an acknowledgment is posted at this point", IMPLEMENTED, A_SEND),
    ("figure 2-4", "the RQCI doorbell gives the buffer back", IMPLEMENTED, NOT_READY),
)

TX_PATH = (
    ("TX path", "READ, WRITE, and ACKs of SENDs", IMPLEMENTED, f"{OWN_REQUESTS}, {A_SEND}"),
    ("TX path", "the SQPI doorbell starts the send queue", IMPLEMENTED, SENDS),
    ("TX path", "the AXI DMA moves the data", NOT_MEANINGFUL, CHIP),
    ("figures 2-5, 2-6", "WRITE and SEND: WQE, SQPI doorbell, data, headers", IMPLEMENTED, f"{SENDS}, {OWN_REQUESTS}"),
    ("figures 2-5, 2-6", "the ACK completes the WQE: CQE by QPCONFi[5], and CQHEAD", IMPLEMENTED, f"{SENDS}, {NO_CQES}"),
    ("figures 2-5, 2-6", "completion count by side band", NOT_MEANINGFUL, PINS),
    ("figure 2-7", "READ: the request, and the response to the local buffer", IMPLEMENTED, OWN_REQUESTS),
    ("figure 2-7", "the response completes the WQE", IMPLEMENTED, OWN_REQUESTS),
    ("standards", "InfiniBand volume 1, annexes A16 and A17", IMPLEMENTED, GUEST),
    ("performance", "100 Gb per second at 200 MHz", NOT_MEANINGFUL, "the throughput is that of the host"),
    ("resource utilization", "resources, frequencies, LUTs", NOT_MEANINGFUL, CHIP),
)



def lines(where, words):
    """A row for each line of an interrupt but the last."""
    return [(where, f"xrnic_intr{line}: {text}" if line == 2 else f"xrnic_intr{line}: {words}{text}",
             IMPLEMENTED if why else NOT_MEANINGFUL, why or "reserved: never pending") for line, _, text, why in INTERRUPTS]


HANDSHAKE = (
    "rx_pkt_hdlr_o_rq_db_data, 32: RQ doorbell", "rx_pkt_hdlr_o_rq_db_addr, 10: 4 bytes for each QP",
    "rx_pkt_hdlr_o_rq_db_data_valid", "rx_pkt_hdlr_i_rq_db_rdy", "resp_hdlr_o_send_cq_db_cnt, 32: CQ doorbell",
    "resp_hdlr_o_send_cq_db_addr, 10: 4 bytes for each QP", "resp_hndler_o_send_cq_db_cnt_valid", "resp_hndler_i_rq_db_rdy",
    "i_qp_sq_pidb_hndshk, 16: SQPI", "i_qp_sq_pidb_wr_addr_hndshk, 32", "i_qp_sq_pidb_wr_valid_hndshk",
    "o_qp_sq_pidb_wr_rdy", "i_qp_rq_cidb_hndshk, 16: RQCI", "i_qp_rq_cidb_wr_addr_hndshk, 32",
    "i_qp_rq_cidb_wr_valid_hndshk", "o_qp_rq_cldb_wr_rdy")
BUSES = ("rx_pkt_hndler_dr_m_axi*: SENDs to the RQ buffer", "rx_pkt_hndler_rdrsp_m_axi*: READ responses",
         "wqe_proc_top_m_axi_*: data, and the queue of outgoing errors", "wqe_proc_wr_ddr_m_axi_*: CQEs and WQEs",
         "s_axi_lite_*: the registers", "qp_mgr_m_axi_*: WQEs")

PORTS = (
    *(("table 2-5", name, NOT_MEANINGFUL, "an emulated device has no clocks; its reset is that of PCI") for name in (
        "m_axi_aclk, s_axi_lite_aclk", "m_axi_aresetn, s_axi_lite_aresetn, system_resetn")),
    *(("table 2-5", name, NOT_MEANINGFUL, BUS) for name in BUSES),
    ("table 2-5", "rx_pkt_hndler_s_axis_*: packets from the network", NOT_MEANINGFUL, "the netdev of QEMU"),
    *(("table 2-5", name, NOT_MEANINGFUL, PINS) for name in HANDSHAKE),
    *lines("table 2-5", "level, asserted when "),
    ("table 2-5", "xrnic_intr8: reserved", NOT_MEANINGFUL, "no source"),
    ("table 2-5", "nine lines", DEPARTS, "one interrupt, the OR of all, as \"Interrupts\" allows"),

    ("table 2-6", "C_NUM_QP: 8 to 128, default 8", IMPLEMENTED, f"property qps, default 128; {BOUNDS}"),
    ("table 2-6", "C_EN_HW_HHDSHK: 1", NOT_MEANINGFUL, PINS),
    ("table 2-6", "C_M_AXI_ADDR_WIDTH: 32", IMPLEMENTED, f"addresses have no high words; {RESET}"),
    ("table 2-6", "C_M_AXI_ID_WIDTH, C_S_AXI_LITE_ADDR_WIDTH", NOT_MEANINGFUL, CHIP),
    ("table 2-6", "C_MAX_SGL_DEPTH: 128", NOT_MEANINGFUL, CHIP),
    ("table 2-6", "C_MAX_WR_RETRY_DATA_BUF_DEPTH: 128", NOT_MEANINGFUL, "as many as DATBUFSZ says"),
    ("table 2-6", "each data buffer \"is 4.\"", IMPLEMENTED, f"4 KB, as table 3-2 has it; {KEPT}"),
    ("table 2-6", "C_EN_WR_RETRY_DATA_BUF: 1", IMPLEMENTED, f"by DATBUFSZ: 0 buffers keep nothing; {KEPT}"),
)


def register_rows():
    """Table 2-7."""
    for register in GLOBALS:
        yield from rows_of("table 2-7", register, f"{register.offset:04X}h", "000")
    yield Row("table 2-7", "00ACh: RO, reserved", IMPLEMENTED, f"0; {RESET}")
    for register in QPS:
        yield from rows_of("table 2-7", register, f"{0x200 + register.offset:04X}h + (i - 1) x 100h", "000")


REGISTER_SPACE = (
    ("register space", "registers are of the AXI4-Lite clock", NOT_MEANINGFUL, CHIP),
    ("register space", "bits that are not specified read 0", IMPLEMENTED, ACCESS),
    ("register space", "reset values are 0 unless specified", IMPLEMENTED, RESET),
    ("register space", "reset values of registers that tell a level: not given", EXTENDED,
     f"STATQP 600h, QPMSTS 2: what is empty says so; {RESET}"),
    ("register space", "reserved locations are written with 0", NOT_MEANINGFUL, f"{SOFTWARE}; other values are ignored"),
    ("register space", "offsets that are in no row", IMPLEMENTED, f"read 0; {MAP}"),
    ("register space", "accesses of another width than 32 bits: not given", EXTENDED,
     "they read 0 or have no effect, and are counted; ernic_device_test.cc: OnlyFourAlignedBytesAreARegister"),
    ("register space", "counters at their end: not given", EXTENDED,
     f"each wraps at its 16 bits; ernic_device_test.cc: TheyGoRoundAtSixteenBits, ernic_device_test.cc: EachMoves"),
    ("table 2-7", "\"does not exist for QP 1\", i = 2 to C_NUM_QP", IMPLEMENTED, f"reads 0; {RESET}"),
    ("table 2-7", "TIMEOUTCONFi: i = 1 to C_NUM_QP, and not of QP 1", IMPLEMENTED, f"not of QP 1; {RESET}"),
    ("table 2-7", "i = 1 to C_NUM_QP", IMPLEMENTED, f"QPs beyond read 0; {RESET}"),
    ("table 2-7", "addresses are configured before XRNICCONF[0]", NOT_MEANINGFUL,
     f"{SOFTWARE}; the device takes them later, too"),
    ("table 2-7", "XRNICCONF 4:3 is 3: not told", EXTENDED, f"as 0; {ACK_MODES}"),
    ("table 2-7", "when an ACK \"on timeout\" is sent: not told", EXTENDED,
     "a quarter of the QP's time-out after the first request; ernic_device_test.cc: AnAckIsForAllBeforeIt"),
    ("table 2-7", "XRNICADCONF 19:16: 11 for 400 MHz, 10 for 200, 9 for 125 and 100, CLOG2(4.096 x N)", IMPLEMENTED,
     f"clocks of the property clock-mhz; {BASE_COUNT}"),
    ("table 2-7", "XRNICADCONF 19:16: \"4096us\"", IMPLEMENTED, f"4.096 us, as the values say; {BASE_COUNT}"),
    ("table 2-7", "XRNICADCONF 19:16 is 0: not told", EXTENDED, f"4.096 us; {BASE_COUNT}"),
    ("table 2-7", "TX header buffers: all headers go there, and come from there", IMPLEMENTED, HEADERS_KEPT),
    ("table 2-7", "header buffers that are too short, or not in memory: not told", EXTENDED,
     "less than 128 bytes: not used; not in memory: the packet is lost; ernic_device_test.cc: HeaderBuffersThatAreNotThere"),
    ("table 2-7", "TX SGL buffers: scatter gather lists for the DMA", IMPLEMENTED, f"with header buffers; {LISTS}"),
    ("table 2-7", "format of an SGL: not told", EXTENDED,
     f"address and bytes of the headers, and of what is behind them, which has no address; {LISTS}"),
    ("table 2-7", "SGL buffers that are too short, or not in memory: not told", EXTENDED,
     "less than 16 bytes: not used; not in memory: the packet is lost; ernic_device_test.cc: ListsInBadPlaces"),
    ("table 2-7", "ERRBUFBA: without XRNICCONF[5] only packets that make a QP FATAL", IMPLEMENTED, ERROR_BUFFER),
    ("table 2-7", "ERRBUFWPTR: the number of error packets", EXTENDED,
     "modulo the number of buffers; ernic_device_test.cc: ErrorBuffersGoRound"),
    ("table 2-7", "an illegal command is discarded, and written to OPKTERRQ", IMPLEMENTED, ILLEGAL),
    ("table 2-7", "format of an entry of OPKTERRQ: not given", EXTENDED, f"opcode 7:0, QP 31:16, 8 bytes; {ILLEGAL}"),
    ("table 2-7", "OPKTERRQ and IPKTERRQ are circular, without a check of overflow", IMPLEMENTED, ERROR_QUEUES),
    ("table 2-7", "data buffers keep WRITE data until it is acknowledged", IMPLEMENTED, KEPT),
    ("table 2-7", "a SEND that is sent again: not told", EXTENDED, f"it is read again; {KEPT}"),
    ("table 2-7", "data buffers that are all in use: not told", EXTENDED, f"the QP waits for one; {DATA_BUFFERS}"),
    ("table 2-7", "QP n in RQINTSTS and CQINTSTS beyond C_NUM_QP", NOT_MEANINGFUL, "such a QP does nothing"),
    ("table 2-7", "QPCONF: a disabled QP does not receive or transmit", IMPLEMENTED,
     f"{SYNDROME}, ernic_test.cc: DisabledQpCompletesNothing"),
    ("table 2-7", "QPCONF 1, 6, 15:11: not described", IMPLEMENTED, f"0; {ACCESS}"),
    ("table 2-7", "QPCONF 10:8: 5 to 7 are reserved", EXTENDED, f"4096 bytes; {FIELDS}: PathMtus"),
    ("table 2-7", "CQHEAD \"[31:0]: reserved\"", IMPLEMENTED, f"31:16; {ACCESS}"),
    ("table 2-7", "RQCI and SQPI by the side band", NOT_MEANINGFUL, PINS),
    ("table 2-7", "SQPSN is not written by software after it is initialized", EXTENDED,
     "a QP that is enabled takes it while nothing is posted; ernic_device_test.cc: StartPsnOfAQpThatHasNotSent"),
    ("table 2-7", "the first PSN that is expected: in no register", EXTENDED, f"LSTRQREQ + 1; {A_SEND}"),
    ("table 2-7", "STATQP \"(Read/Write)\" of 22:16, 26:24, 30:28", IMPLEMENTED, f"RO as the register; {ACCESS}"),
    ("table 2-7", "byte order of addresses: not given", EXTENDED,
     f"the first bytes are the highest of the last register; {SYNDROME}, {IPV6}"),
    ("table 2-7", "bits in no field", IMPLEMENTED,
     f"0, such as {', '.join(f'{register.name} {unused(register)}' for register in GLOBALS[:2])}; {ACCESS}"),
)

DESIGN = (
    ("chapter 3", "interfaces of 512 bits, and the bandwidth of memory", NOT_MEANINGFUL, CHIP),
    ("figure 3-1", "MAC, interconnect, DRAM controller", NOT_MEANINGFUL, CHIP),
    ("chapter 3", "interfaces with DDR reach any memory", IMPLEMENTED, "what is not there is an error; "
                                                                      "ernic_cases.py: test_invalid_addresses"),
    ("chapter 3", "side bands are enabled for each QP", IMPLEMENTED, f"by QPCONF 4; {DOORBELLS}"),
    ("table 3-1", "64 KB of registers", IMPLEMENTED, "ernic_cases.py: test_identity"),
    ("table 3-2", "TX Header: 16 KB, 128 of 128 bytes", IMPLEMENTED, f"as TXBUFSZ says; {HEADERS_KEPT}"),
    ("table 3-2", "Dropped packet buffer: 16 KB, 64 of 256 bytes", IMPLEMENTED,
     "the error buffer, as ERRBUFSZ says; ernic_device_test.cc: ErrorBuffersGoRound"),
    ("table 3-2", "Bypass packet buffer: 16 KB, 32 of 512 bytes", NOT_MEANINGFUL, "no register of the document has it"),
    ("table 3-2", "Send Queue: depth 128, 64 bytes each", IMPLEMENTED, f"as QDEPTH says; {ROUND}"),
    ("table 3-2", "Receive Queue: depth 128, 1024 bytes each", IMPLEMENTED, f"as QDEPTH and QPCONF say; {ROUND}"),
    ("table 3-2", "Send completion Queue: 16 KB for 128 x 128 x 4 bytes", NOT_MEANINGFUL,
     "64 KB; the memory is software's"),
    ("table 3-2", "Write Retry buffers: 4K each", IMPLEMENTED, KEPT),
    ("table 3-2", "up to 16 outstanding transactions of a QP", IMPLEMENTED, f"the next one waits; {SIXTEEN}"),
    *lines("table 3-3", "asserted when "),
    ("table 3-3", "xrnic_intr8: reserved", NOT_MEANINGFUL, "no source"),
    ("interrupts", "lines may be ORed to one", IMPLEMENTED, f"they are; {GATES}"),
    ("interrupts", "INTEN enables each line", IMPLEMENTED, SOURCES),
    ("interrupts", "INTSTS tells the cause", IMPLEMENTED, GATES),
    ("interrupts", "a source that INTEN does not enable: not told", EXTENDED, f"INTSTS latches it; {GATES}"),
    ("interrupts", "INTSTS 4 and 6, and the banks: not told", EXTENDED, f"the OR of their banks; {BANKS}"),
    ("interrupts", "a level, where the carrier has messages: not given", EXTENDED,
     f"a message after each write that leaves a source pending; {GATES}"),
    ("interrupts", "QPCONF 2 and 3 select the QPs of lines 6 and 4", IMPLEMENTED,
     "ernic_device_test.cc: AQpCanBeQuiet"),
    ("interrupts", "QPs of the hardware handshake have QPCONF 4 at 0", NOT_MEANINGFUL, PINS),
    ("interrupts", "RQINTSTSn and CQINTSTSn tell the QPs", IMPLEMENTED, f"{BANKS}, {TO_HCA}"),
    ("interrupts", "a bit is cleared by writing 1", IMPLEMENTED, BANKS),
    ("clocking", "AXI4 clock and AXI lite clock", NOT_MEANINGFUL, CHIP),
    ("resets", "two resets, active low", NOT_MEANINGFUL, "a PCI function has FLR; ernic_cases.py: test_reset"),
    ("chapter 4", "customizing, generating, simulation, synthesis", NOT_MEANINGFUL, TOOLS),
)

REST = (
    ("chapter 5", "modules and architecture of the example design", NOT_MEANINGFUL, TOOLS),
    ("chapter 5", "READ responses and WRITEs of 256 bytes", IMPLEMENTED, EXAMPLE),
    ("chapter 5", "SENDs with capsules of 80 bytes", IMPLEMENTED, EXAMPLE),
    ("chapter 5", "IPv4, QP 2 to QP 7, 8 transactions of each type", IMPLEMENTED, EXAMPLE),
    ("chapter 5", "doorbells by the hardware handshake", NOT_MEANINGFUL, PINS),
    ("chapter 5", "no retries, no IPv6 and no MADs in the example", NOT_MEANINGFUL, "limits of the example"),
    ("chapter 5", "messages of the simulation", NOT_MEANINGFUL, TOOLS),
    ("example sequence", "all registers are configured", IMPLEMENTED, EXAMPLE),
    ("example sequence", "eight SENDs to each of QP 2 to QP 7; data and doorbells are compared", IMPLEMENTED, EXAMPLE),
    ("example sequence", "READs: the fields of the request, the response, the data", IMPLEMENTED, EXAMPLE),
    ("example sequence", "WRITEs: the fields of the request, the ACK", IMPLEMENTED, EXAMPLE),
    ("appendix A", "a dump of all registers by the cable's tool", NOT_MEANINGFUL, TOOLS),
    ("appendix A", "counters of the initiator's adapter", NOT_MEANINGFUL, OTHERS_TOOLS),
    ("appendix A", "84000688: 30620601, the QP status of QP 5", IMPLEMENTED, STATUS),
    ("appendix A", "a QP in FATAL state does no transactions", IMPLEMENTED, FATAL),
    ("appendix A", "bits 22:16 have the last AETH syndrome, 62h: remote access error", IMPLEMENTED, STATUS),
    ("appendix A", "134h and 138h, here \"INNACK\", count NAKs received and sent", IMPLEMENTED, f"{STATUS}, {FATAL}"),
    ("appendix A", "all NAK codes lead to retries", IMPLEMENTED,
     "those of the sequence and RNR; the others make the QP FATAL, as table 2-4 says; "
     f"{STATUS}, ernic_test.cc: WholeMessageGoesAgain"),
    ("appendix A", "140h counts retries, of NAKs and time-outs", IMPLEMENTED, f"time-outs: {RETRY}"),
    ("appendix A", "the time-out is that of TIMEOUTCONF, by C9-141", IMPLEMENTED, TIMERS),
    ("appendix A", "link and CRC failures of the initiator; a longer time-out may help", NOT_MEANINGFUL,
     "advice to a user"),
    ("appendix A", "6Ch: the write pointer of the error buffer, whose entries have the syndrome", IMPLEMENTED, SYNDROME),
    ("appendix A", "rows that are yellow make the QP FATAL", NOT_MEANINGFUL, "the colour is lost; the impact has it"),
    ("appendix B", "resources, references, history, notices", NOT_MEANINGFUL, TITLES),
)

# What the document has nothing of, and what is decided.
DECIDED = (
    ("QP 1", "format of its queues: not given", EXTENDED, f"whole frames without the ICRC, both ways; {MADS}"),
    ("QP 1", "IP version of its frames: not given", EXTENDED, f"both; {FIELDS}: MadsOfBothVersionsOfIp"),
    ("QP 1", "a MAD without a slot: not given", EXTENDED, f"dropped and counted; {MADS}"),
    ("whole", "frames that are not RoCE v2 on the link: not told", EXTENDED,
     f"ignored and counted; {FIELDS}: OtherFramesAreIgnored"),
    ("whole", "a QP that sends to a QP of the same device: not told", EXTENDED,
     "it does not get to the link; ernic_device_test.cc: TwoQpsOfOneDevice"),
    ("whole", "how software ends a QP: not told", EXTENDED,
     "it clears QPCONF 0: what is under way is forgotten; ernic_test.cc: DisabledQpCompletesNothing"),
    ("whole", "any register and any packet of others", EXTENDED,
     "each loop has a bound, and the device lives; ernic_device_test.cc: HostileInputInEachState, fuzz/ernic.cc: LLVMFuzzerTestOneInput, "
     "ernic_cases.py: test_any_register"),
    ("software", "a driver for the ETRNIC: NVMe over Fabrics of Linux", EXTENDED,
     "a target, with the driver's parameter plain_send: it has no SEND with invalidate, which Linux asks for; "
     "ernic.py: etrnic_target"),
)

ROWS = tuple(row if isinstance(row, Row) else Row(*row) for row in (
    *FRONT, *OVERVIEW, *DATA_STRUCTURES, *RX_PATH, *TX_PATH, *PORTS, *REGISTER_SPACE, *register_rows(), *DESIGN, *REST,
    *DECIDED))

# The point of the page's list of departures that explains each row that departs.
POINTS = points_of(ROWS, {
    ("unsupported", "OFED stack APIs"): "RDMA device of an ETRNIC",
    ("table 2-5", "nine lines"): "interrupts",
})
