# SPDX-License-Identifier: GPL-2.0-or-later
"""The registers of ETRNIC and ERNIC as literals, and what the device does with each field.

A register's source is "000", the document of the ETRNIC; "public", the public register map of PG332 version 3, which has
what the document of the ERNIC (004) lacks; or "ours". Offsets, bits, accesses and reset values are the source's.
tests/abi compares them with include/ernic_hw.h. etrnic.py and ernic.py have the rows of their documents from here.
"""

import dataclasses

from literals import Field, Table, Value, mask
from rows import DEPARTS, EXTENDED, IMPLEMENTED, NOT_MEANINGFUL, Row

RESET = "ernic_device_test.cc: EachOffsetHasItsResetValue"
ACCESS = "ernic_device_test.cc: EachOffsetTakesWhatItsAccessAllows"
MAP = f"{RESET}, {ACCESS}"
SYNDROME = "ernic_device_test.cc: PacketIsDroppedWithItsSyndrome"
A_SEND = "ernic_device_test.cc: ASendFillsASlot"
SENDS = "ernic_device_test.cc: UpToSixteenBytesStandInTheWqe"
STATUS = "ernic_device_test.cc: StatusOfTheDocument"
FATAL = "ernic_device_test.cc: TheQpIsFatalAndSaysWhy"
MADS = "ernic_device_test.cc: WholeFramesWithoutTheIcrcBothWays"
RECORDS = "ernic_device_test.cc: RecordsTellTheLength"
PAGES = "ernic_device_test.cc: AnEntryNamesPages"
ILLEGAL = "ernic_test.cc: IllegalWqeIsDiscarded"
NOT_READY = "ernic_test.cc: FullReceiveQueueIsNotReady"
TO_HCA = "ernic_test.cc: SendWriteAndReadOfTheErnic"
FROM_HCA = "ernic_test.cc: SendWriteAndReadToTheErnic"
TABLE_REFUSES = "ernic_test.cc: ProtectionDomainTableRefuses"
GATES = "ernic_device_test.cc: TheLineIsALevelThatIntenGates"
BANKS = "ernic_device_test.cc: BanksAreWhatBitsFourAndSixShow"

FIELDS = "ernic_fields_test.cc"
IPV6 = f"{FIELDS}: OverIpv6"
HIGH_WORDS = f"{FIELDS}: HighWordsOfAddresses"
ERROR_QUEUES = f"{FIELDS}: QueuesOfErrorsGoRound"
DATA_BUFFERS = f"{FIELDS}: DataBuffersThatRunOut"
READ_COUNTS = "ernic_device_test.cc: EachMoves"
WQE_COUNT = RESPONSES = READ_COUNTS
OTHER_BANKS = f"{FIELDS}: ABitOfABankForEachQp"
HEADERS = f"{FIELDS}: HeadersHaveWhatTheRegistersSay"
PATH_MTUS = f"{FIELDS}: PathMtus"
NO_CQES = f"{FIELDS}: NoCqesUnlessAsked"
FULL_SQ = f"{FIELDS}: AFullSendQueue"
SLOT_ADDRESS = f"{FIELDS}: TheSlotOfTheNextMessage"
TIMERS = f"{FIELDS}: TimersOfAQp"

ACK_MODES = "ernic_device_test.cc: ModesOfAcknowledgement"
BASE_COUNT = "ernic_device_test.cc: TheBaseCountIsTheUnitOfTimeouts"
THRESHOLDS = "ernic_device_test.cc: ThresholdsCountFreeLines"
PAUSES = "ernic_device_test.cc: APauseStopsItsClass"
SOURCES = "ernic_device_test.cc: IsLatchedGatedAndCleared"

HEADERS_KEPT = "ernic_device_test.cc: HeadersGoThroughTheirBuffers"

LISTS = "ernic_device_test.cc: ListsNameTheHeaders"
STORED = "stored, without effect"
NO_PART = "0: the device has no such part"
ALL = "31:0"


@dataclasses.dataclass(frozen=True)
class Bits:
    """A field of a register: "4:3" or "5", what it is, the status, the test or the reason.

    mask:   the header's macro for it, "" if it has none.
    source: that of the register unless it has its own.
    """
    bits: str
    item: str
    status: str
    why: str
    mask: str = ""
    source: str = ""

    @property
    def range(self):
        return self.bits if ":" in self.bits else f"{self.bits}:{self.bits}"


@dataclasses.dataclass(frozen=True)
class Register:
    """A register of one of the blocks.

    offset:  from the block's beginning.
    access:  RW, RO, W1C, OVERRIDE or STOPPED, as docs/reference/ernic.rst explains them.
    who:     BOTH, ETRNIC or ERNIC.
    first:   of a QP's registers, the first QP that has it.
    reading: why the access is not what the document says.
    """
    name: str
    offset: int
    access: str
    fields: tuple
    source: str = "000"
    who: str = "BOTH"
    reset: int = 0
    first: int = 1
    reading: str = ""


def yes(bits, item, why, name="", source=""):
    return Bits(bits, item, IMPLEMENTED, why, name, source)


def no(bits, item, why, name="", source=""):
    return Bits(bits, item, NOT_MEANINGFUL, why, name, source)


def more(bits, item, why, name="", source=""):
    return Bits(bits, item, EXTENDED, why, name, source)


def departs(bits, item, why, name="", source=""):
    return Bits(bits, item, DEPARTS, why, name, source)


def high(name, offset, of, why, status=IMPLEMENTED, **more_of_it):
    """The high word of an address, which ERNIC has."""
    return Register(name, offset, "RW", (Bits(ALL, f"high word of {of}", status, why),), "public", "ERNIC", **more_of_it)


def count(name, offset, low, above):
    """A counter of two halves, each (item, status, why)."""
    return Register(name, offset, "RO", (Bits("15:0", *low), Bits("31:16", *above)))


GLOBALS = (
    Register("XRNICCONF", 0x000, "RW", (
        yes("0", "XRNIC enable", "ernic_device_test.cc: NothingHappensWhileTheDeviceIsOff", "ERNIC_CONF_ENABLE"),
        yes("4:3", "acknowledgements: 0 on request or time-out, 1 on time-out, 2 on request", ACK_MODES,
            "ERNIC_CONF_ACK"),
        yes("5", "reserved here; by \"RX path\" the error buffer has each invalid packet",
            "ernic_device_test.cc: ErrorBufferHoldsFatalPacketsAlone", "ERNIC_CONF_ERROR_BUFFER"),
        yes("15:8", "number of QPs enabled", "ernic_device_test.cc: NumberOfQpsEnabled", "ERNIC_CONF_QPS"),
        yes("31:16", "UDP source port", A_SEND, "ERNIC_CONF_UDP_PORT"),
    )),
    Register("XRNICADCONF", 0x004, "RW", (
        yes("0", "software override of CQHEAD, STATCURSQPTR and STATRQPIDB", "ernic_device_test.cc: SoftwareOverride",
            "ERNIC_ADCONF_OVERRIDE"),
        yes("2", "retry_cnt_fatal_dis", "ernic_device_test.cc: RetriesThatAreNotFatal", "ERNIC_ADCONF_RETRY_NOT_FATAL"),
        yes("19:16", "width of the base count", BASE_COUNT, "ERNIC_ADCONF_COUNT_WIDTH"),
        yes("31:24", "QP of the software override", "0 is each; ernic_device_test.cc: SoftwareOverride", "ERNIC_ADCONF_QP"),
    )),
    Register("BUF_THRESHOLD_ROCE", 0x008, "RW", (
        yes("15:0", "XON", THRESHOLDS, "ERNIC_THRESHOLD_XON"),
        yes("31:16", "XOFF", THRESHOLDS, "ERNIC_THRESHOLD_XOFF")), "public", "ERNIC"),
    Register("PAUSE_CONF", 0x00c, "RW", (
        yes("0", "PFC for RoCE", PAUSES, "ERNIC_PAUSE_ROCE"),
        yes("1", "PFC for other frames", PAUSES, "ERNIC_PAUSE_NON_ROCE"),
        yes("7:4", "priority of RoCE", PAUSES, "ERNIC_PAUSE_ROCE_PRIORITY"),
        yes("11:8", "priority of other frames", PAUSES, "ERNIC_PAUSE_NON_ROCE_PRIORITY"),
        yes("13", "no check of the priority", PAUSES, "ERNIC_PAUSE_ANY_PRIORITY")), "public", "ERNIC"),
    Register("MACXADDLSB", 0x010, "RW", (
        yes(ALL, "MAC address, low word", f"its last four bytes; {SYNDROME}"),)),
    Register("MACXADDMSB", 0x014, "RW", (
        yes("15:0", "MAC address, high word", f"its first two bytes; {SYNDROME}"),)),
    Register("BUF_THRESHOLD_NON_ROCE", 0x018, "RW", (
        yes("15:0", "XON", THRESHOLDS, "ERNIC_THRESHOLD_XON"),
        yes("31:16", "XOFF", THRESHOLDS, "ERNIC_THRESHOLD_XOFF")), "public", "ERNIC"),
    *(Register(f"IPV6XADD{n}", 0x01c + 4 * n, "RW", (yes(ALL, f"IPv6 address {32 * n - 1}:{32 * n - 32}", IPV6),))
      for n in range(1, 5)),
    Register("TXBUFBA", 0x030, "RW", (yes(ALL, "base of the TX header buffers", HEADERS_KEPT),), who="ETRNIC"),
    Register("TXBUFSZ", 0x038, "RW", (
        yes("15:0", "number of TX header buffers", HEADERS_KEPT, "ERNIC_BUFFERS"),
        yes("31:16", "size of each", f"{HEADERS_KEPT}, ernic_device_test.cc: HeaderBuffersThatAreShortAreNotUsed",
            "ERNIC_BUFFER_BYTES")), who="ETRNIC"),
    Register("TXSGLBUFBA", 0x040, "RW", (yes(ALL, "base of the TX SGL buffers", LISTS),), who="ETRNIC"),
    Register("TXSGLBUFSZ", 0x048, "RW", (
        yes("15:0", "number of TX SGL buffers", LISTS, "ERNIC_BUFFERS"),
        yes("31:16", "size of each", f"{LISTS}, ernic_device_test.cc: ListsThatAreShortAreNotUsed",
            "ERNIC_BUFFER_BYTES")), who="ETRNIC"),
    Register("ERRBUFBA", 0x060, "RW", (yes(ALL, "base of the error buffer", SYNDROME),)),
    high("ERRBUFBAMSB", 0x064, "ERRBUFBA", HIGH_WORDS),
    Register("ERRBUFSZ", 0x068, "RW", (
        yes("15:0", "number of error buffers", "ernic_device_test.cc: ErrorBuffersGoRound", "ERNIC_BUFFERS"),
        yes("31:16", "size of each", "ernic_device_test.cc: LowestPrecedenceDecides", "ERNIC_BUFFER_BYTES"))),
    Register("ERRBUFWPTR", 0x06c, "RO", (
        yes("15:0", "write pointer", "ernic_device_test.cc: ErrorBuffersGoRound"),)),
    Register("IPV4XADD", 0x070, "RW", (yes(ALL, "IPv4 address", f"192.168.0.1 is c0a80001; {SYNDROME}"),)),
    Register("OPKTERRQBA", 0x078, "RW", (yes(ALL, "base of the queue of outgoing errors", ILLEGAL),)),
    high("OPKTERRQBAMSB", 0x07c, "OPKTERRQBA", HIGH_WORDS),
    Register("OPKTERRQSZ", 0x080, "RW", (yes("15:0", "entries", ERROR_QUEUES),)),
    Register("OPKTERRQWPTR", 0x084, "RO", (yes("15:0", "write pointer", ILLEGAL),)),
    Register("IPKTERRQBA", 0x088, "RW", (
        yes(ALL, "base of the queue of incoming errors, called outgoing by mistake", FATAL),)),
    high("IPKTERRQBAMSB", 0x08c, "IPKTERRQBA", HIGH_WORDS),
    Register("IPKTERRQSZ", 0x090, "RW", (yes("15:0", "entries", ERROR_QUEUES),)),
    Register("IPKTERRQWPTR", 0x094, "RO", (
        yes("15:0", "write pointer", "ernic_cases.py: test_invalid_addresses"),)),
    Register("DATBUFBA", 0x0a0, "RW", (
        yes(ALL, "base of the data buffers", "ernic_device_test.cc: DataBuffersKeepWrites"),)),
    high("DATBUFBAMSB", 0x0a4, "DATBUFBA", HIGH_WORDS),
    Register("DATBUFSZ", 0x0a8, "RW", (
        yes("15:0", "number of data buffers", DATA_BUFFERS, "ERNIC_BUFFERS"),
        yes("31:16", "bytes of each", "ernic_device_test.cc: DataBuffersKeepWrites", "ERNIC_BUFFER_BYTES"))),
    Register("CON_IO_CONF", 0x0ac, "RW", (no(ALL, "address of the handshake's doorbells", "the device has no pins"),),
             "public", "ERNIC"),
    Register("RESPERRPKTBA", 0x0b0, "RW", (departs(ALL, "base of the response error buffers", STORED),), "public", "ERNIC"),
    high("RESPERRPKTBAMSB", 0x0b4, "RESPERRPKTBA", STORED, DEPARTS),
    Register("RESPERRSZ", 0x0b8, "RW", (
        departs("15:0", "number of response error buffers", STORED), departs("31:16", "size of each", STORED)),
             "public", "ERNIC"),
    count("INSRRPKTCNT", 0x100, ("SENDs received", IMPLEMENTED, A_SEND),
          ("READ responses received", IMPLEMENTED, READ_COUNTS)),
    count("INAMPKTCNT", 0x104, ("acknowledgements received", IMPLEMENTED, SENDS), ("MADs received", IMPLEMENTED, MADS)),
    count("OUTIOPKTCNT", 0x108, ("SENDs sent", IMPLEMENTED, SENDS), ("READs and WRITEs sent", IMPLEMENTED, READ_COUNTS)),
    count("OUTAMPKTCNT", 0x10c, ("acknowledgements sent", IMPLEMENTED, A_SEND), ("MADs sent", IMPLEMENTED, MADS)),
    *(Register(name, offset, "RO", (
        yes("7:0", f"opcode of the last packet {what}", A_SEND, "ERNIC_LAST_OPCODE"),
        yes("15:8", "its QP", A_SEND, "ERNIC_LAST_QP"), yes("31:16", "its PSN 15:0", A_SEND, "ERNIC_LAST_PSN")))
      for name, offset, what in (("LSTINPKT", 0x110, "received"), ("LSTOUTPKT", 0x114, "sent"))),
    count("ININVDUPCNT", 0x118, ("invalid packets received", IMPLEMENTED, SYNDROME),
          ("duplicates received", IMPLEMENTED, "ernic_device_test.cc: DuplicatesAreCounted")),
    Register("INNCKPKTSTS", 0x11c, "RO", (
        yes("7:0", "QP of the last NAK received", STATUS, "ERNIC_NAK_QP"),
        yes("31:16", "NAKs received", f"RNR NAKs too; {STATUS}", "ERNIC_NAK_COUNT"))),
    Register("OUTRNRPKTSTS", 0x120, "RO", (
        yes("7:0", "QP of the last RNR NAK sent", NOT_READY, "ERNIC_NAK_QP"),
        yes("31:16", "RNR NAKs sent", NOT_READY, "ERNIC_NAK_COUNT"))),
    Register("WQEPROCSTS", 0x124, "RO", (
        no("2:0", "state of the WQE processor", NO_PART),
        yes("11:3", "last illegal opcode, 9 bits for one of 8", ILLEGAL, "ERNIC_WQEPROCSTS_OPCODE"),
        no("15:13", "buffer manager", NO_PART),
        yes("23:16", "tail of the SGL buffers", f"the oldest list in use; {LISTS}", "ERNIC_WQEPROCSTS_SGL_TAIL"),
        yes("31:24", "head of the SGL buffers", f"the list that is next; {LISTS}", "ERNIC_WQEPROCSTS_SGL_HEAD"))),
    Register("QPMSTS", 0x12c, "RO", (
        no("0", "WQE cache full", "0: a WQE is read where it is"),
        no("1", "WQE cache empty", f"always 1: a WQE is read where it is; {RESET}", "ERNIC_QPMSTS_EMPTY"),
        yes("31:16", "WQEs processed", WQE_COUNT, "ERNIC_QPMSTS_WQES")), reset=2),
    count("INALLDRPPKTCNT", 0x130, ("packets received", IMPLEMENTED, A_SEND), ("packets dropped", IMPLEMENTED, SYNDROME)),
    Register("INNAKPKTCNT", 0x134, "RO", (yes("15:0", "NAKs received", STATUS),)),
    Register("OUTNAKPKTCNT", 0x138, "RO", (yes("15:0", "NAKs sent", f"but for RNR NAKs; {FATAL}"),)),
    Register("RESPHNDSTS", 0x13c, "RO", (
        no("7:0", "QP in turn", NO_PART), no("13:8", "state of the response handler", NO_PART),
        more("16", "SQ PI check is enabled", "always 1, which the recovery polls; ernic_device_test.cc: Recovery",
             source="public"),
        no("17", "acknowledgements to process", NO_PART)), reset=0),
    Register("RETRYCNTSTS", 0x140, "RO", (yes(ALL, "retries", "ernic_device_test.cc: RetriesRunOut"),)),
    Register("INCNPPKTCNT", 0x174, "RO", (departs(ALL, "congestion notifications received", "always 0"),), "public", "ERNIC"),
    Register("OUTCNPPKTCNT", 0x178, "RO", (departs(ALL, "congestion notifications sent", "always 0"),), "public", "ERNIC"),
    Register("OUTRDRSPPKTCNT", 0x17c, "RO", (yes(ALL, "READ responses sent", RESPONSES),), "public", "ERNIC"),
    Register("INTEN", 0x180, "RW", tuple(
        yes(str(bit), f"{name}: enable", SOURCES)
        if bit != 2 else no("2", f"{name}: enable", "stored; the source is never pending")
        for bit, name in enumerate(("VALIDATION", "MAD", "BYPASS", "RNR_NAK", "COMPLETION", "BAD_OPCODE", "RECEIVE", "FATAL")))),
    Register("INTSTS", 0x184, "W1C", (
        yes("0", "VALIDATION: a packet is invalid", SYNDROME), yes("1", "MAD: a MAD is received", MADS),
        no("2", "BYPASS: a bypass packet is received", "never pending: no packet bypasses the device; ernic_device_test.cc: ReservedBitsStayClear"),
        yes("3", "RNR_NAK: an RNR NAK is sent", NOT_READY),
        yes("4", "COMPLETION: a WQE is complete, of QPs with QPCONF 3", "ernic_cases.py: test_link"),
        yes("5", "BAD_OPCODE: a WQE has an illegal opcode", ILLEGAL),
        yes("6", "RECEIVE: a SEND is received, of QPs with QPCONF 2", BANKS),
        yes("7", "FATAL: a QP is fatal", FATAL))),
    *(Register(f"{queue}INTSTS{n + 1}", first + 4 * n, "W1C", (
        yes(ALL, f"bit q: {queue} {32 * n} + q" if n else f"bit q: {queue} q, 0 of QP 0, which does not exist",
            test if n == 0 else OTHER_BANKS),), reading="000, table 2-7, has RO; \"Interrupts\" clears by writing 1")
      for queue, first, test in (("RQ", 0x190, BANKS), ("CQ", 0x1b0, TO_HCA)) for n in range(8)),
    Register("EXTENSIONS", 0x1e0, "RW", (
        more("15:0", "extensions that software enables", RECORDS, "ERNIC_EXT_ENABLE"),
        more("31:16", "extensions that the device has, RO", RECORDS, "ERNIC_EXT_HAS")), "ours"),
    Register("RECORDBA", 0x1e4, "RW", (more(ALL, "ring of records", RECORDS),), "ours"),
    high("RECORDBAMSB", 0x1e8, "RECORDBA", HIGH_WORDS),
    Register("RECORDSZ", 0x1ec, "RW", (more("15:0", "records of the ring", RECORDS),), "ours"),
    Register("RECORDWPTR", 0x1f0, "RO", (more("15:0", "the record that is next", RECORDS),), "ours"),
)

QPS = (
    Register("QPCONF", 0x00, "RW", (
        yes("0", "QP enable", "ernic_test.cc: DisabledQpCompletesNothing", "ERNIC_QPCONF_ENABLE"),
        yes("2", "RQ interrupt enable", f"{BANKS}, ernic_device_test.cc: AQpCanBeQuiet", "ERNIC_QPCONF_RQ_INTERRUPT"),
        yes("3", "CQ interrupt enable", f"{TO_HCA}, ernic_device_test.cc: AQpCanBeQuiet", "ERNIC_QPCONF_CQ_INTERRUPT"),
        yes("4", "hardware handshake disable: 1, doorbells are written to memory", "ernic_device_test.cc: Doorbells",
            "ERNIC_QPCONF_NO_HANDSHAKE"),
        yes("5", "CQE write enable", f"{TO_HCA}, {NO_CQES}", "ERNIC_QPCONF_CQE"),
        yes("6", "QP under recovery", "ERNIC alone; ernic_device_test.cc: Recovery", "ERNIC_QPCONF_RECOVERY", "public"),
        yes("7", "0: IPv4, 1: IPv6", IPV6, "ERNIC_QPCONF_IPV6"),
        yes("10:8", "path MTU: 256 << code, to 4096", PATH_MTUS, "ERNIC_QPCONF_PMTU"),
        yes("31:16", "size of an RQ buffer, in units of 256 bytes", "ernic_device_test.cc: LongerThanASlot",
            "ERNIC_QPCONF_SLOT"))),
    Register("QPADVCONF", 0x04, "RW", (
        yes("5:0", "traffic class", HEADERS, "ERNIC_QPADVCONF_TRAFFIC_CLASS"),
        yes("15:8", "time to live", HEADERS, "ERNIC_QPADVCONF_TTL"),
        yes("31:16", "P_Key", HEADERS, "ERNIC_QPADVCONF_PKEY")), first=2),
    Register("RQBA", 0x08, "RW", (yes("31:8", "receive queue, aligned to 256 bytes", A_SEND),)),
    Register("SQBA", 0x10, "RW", (yes("31:5", "send queue, aligned to 32 bytes", SENDS),)),
    Register("CQBA", 0x18, "RW", (yes("31:5", "completion queue, aligned to 32 bytes", TO_HCA),)),
    Register("RQWPTRDBADD", 0x20, "RW", (
        yes(ALL, "where the RQ doorbell is written", "ernic_device_test.cc: Doorbells"),)),
    high("RQWPTRDBADDMSB", 0x24, "RQWPTRDBADD", HIGH_WORDS),
    Register("CQDBADD", 0x28, "RW", (yes(ALL, "where the CQ doorbell is written", "ernic_device_test.cc: Doorbells"),)),
    high("CQDBADDMSB", 0x2c, "CQDBADD", HIGH_WORDS),
    Register("CQHEAD", 0x30, "OVERRIDE", (
        yes("15:0", "send WQEs that are complete, which the doorbell has", f"{SENDS}, ernic_device_test.cc: Doorbells"),)),
    Register("RQCI", 0x34, "RW", (yes("15:0", "consumer index of the receive queue", NOT_READY),)),
    Register("SQPI", 0x38, "RW", (yes("15:0", "producer index of the send queue", SENDS),)),
    Register("QDEPTH", 0x3c, "RW", (
        yes("15:0", "depth of the send queue and of the completion queue",
            "ernic_device_test.cc: IndicesGoRoundManyTimes, sim/scenarios.cc: ernic", "ERNIC_QDEPTH_SQ"),
        yes("31:16", "depth of the receive queue", "ernic_device_test.cc: IndicesGoRoundManyTimes", "ERNIC_QDEPTH_RQ"))),
    Register("SQPSN", 0x40, "RW", (
        yes("23:0", "PSN of the next request", f"{SENDS}, ernic_device_test.cc: StartPsnOfAQpThatHasNotSent"),), first=2),
    Register("LSTRQREQ", 0x44, "STOPPED", (
        yes("23:0", "PSN of the last request", A_SEND, "ERNIC_LSTRQREQ_PSN"),
        yes("31:24", "its opcode", A_SEND, "ERNIC_LSTRQREQ_OPCODE")), first=2,
        reading="000 has RO, and nothing else has the first PSN that is expected"),
    Register("DESTQPCONF", 0x48, "RW", (yes("23:0", "QP of the peer", f"{HEADERS}, {TO_HCA}"),)),
    Register("TIMEOUTCONF", 0x4c, "RW", (
        more("5", "time-out, bit 5",
             "stored: IBA's time-out has 5 bits; ernic_device_test.cc: OnlyFiveBitsOfTheTimeoutCount"),
        yes("4:0", "time-out, bits 4:0", TIMERS, "ERNIC_TIMEOUT_VALUE"),
        yes("10:8", "maximum retry count", "ernic_device_test.cc: RetriesRunOut", "ERNIC_TIMEOUT_RETRIES"),
        yes("13:11", "maximum RNR retry count", f"7 is for ever; {TIMERS}", "ERNIC_TIMEOUT_RNR_RETRIES"),
        yes("20:16", "RNR NAK time-out of packets sent", TIMERS, "ERNIC_TIMEOUT_RNR_TIMER")), first=2),
    Register("MACDESADDLSB", 0x50, "RW", (yes(ALL, "MAC address of the peer, low word", f"{HEADERS}, {SYNDROME}"),)),
    Register("MACDESADDMSB", 0x54, "RW", (yes("15:0", "MAC address of the peer, high word", f"{HEADERS}, {SYNDROME}"),)),
    Register("IPDESADDR1", 0x60, "RW", (yes(ALL, "IPv4 address of the peer, or IPv6 31:0", f"{HEADERS}, {IPV6}"),)),
    *(Register(f"IPDESADDR{n}", 0x5c + 4 * n, "RW", (
        yes(ALL, f"IPv6 address of the peer {32 * n - 1}:{32 * n - 32}, without use for IPv4", IPV6),))
      for n in range(2, 5)),
    Register("STATSSN", 0x80, "RO", (yes("23:0", "outgoing SSN", f"messages sent; {SENDS}"),), first=2),
    Register("STATMSN", 0x84, "STOPPED", (yes("23:0", "expected incoming MSN", A_SEND),), first=2,
             reading="000 has RO; by the public recovery software writes it"),
    Register("STATQP", 0x88, "RO", (
        yes("0", "QP is fatal", FATAL, "ERNIC_STATQP_FATAL"),
        yes("1", "receive queue overflow, an RNR NAK is sent", NOT_READY, "ERNIC_STATQP_RQ_OVERFLOW"),
        yes("2", "send queue full", FULL_SQ, "ERNIC_STATQP_SQ_FULL"),
        yes("3", "outstanding queue full", "ernic_device_test.cc: TheSeventeenthWaits", "ERNIC_STATQP_OSQ_FULL"),
        no("4", "CQ FIFO full", NO_PART, "ERNIC_STATQP_CQ_FULL"),
        yes("9", "send queue empty: nothing is left to process", "ernic_device_test.cc: TheSeventeenthWaits",
            "ERNIC_STATQP_SQ_EMPTY"),
        yes("10", "outstanding queue empty", f"{RESET}, {STATUS}", "ERNIC_STATQP_OSQ_EMPTY"),
        yes("11", "\"retired\", that is retried", "ernic_device_test.cc: RetriesRunOut", "ERNIC_STATQP_RETRIED"),
        yes("22:16", "syndrome of the last NAK", STATUS, "ERNIC_STATQP_SYNDROME"),
        yes("26:24", "retry count", "ernic_device_test.cc: RetriesRunOut", "ERNIC_STATQP_RETRIES"),
        yes("30:28", "RNR NAK count", STATUS, "ERNIC_STATQP_RNR_RETRIES")), reset=0x600),
    Register("STATCURSQPTR", 0x8c, "OVERRIDE", (yes("15:0", "WQEs that wait for a response", SENDS),), first=2),
    Register("STATRESPSN", 0x90, "RO", (yes("23:0", "expected PSN of a response", SENDS),), first=2),
    Register("STATRQBUFCA", 0x94, "RO", (yes("31:8", "current buffer of the receive queue", SLOT_ADDRESS),), first=2),
    Register("STATWQE", 0x98, "RO", (yes("15:0", "WQEs processed", SENDS),), first=2),
    Register("STATRQPIDB", 0x9c, "OVERRIDE", (yes("15:0", "producer index of the receive queue", A_SEND),), first=2),
    Register("PD", 0xb0, "RW", (yes("23:0", "protection domain", TABLE_REFUSES),), "public", "ERNIC"),
    high("RQBAMSB", 0xc0, "RQBA", HIGH_WORDS),
    high("SQBAMSB", 0xc8, "SQBA", HIGH_WORDS),
    high("CQBAMSB", 0xd0, "CQBA", HIGH_WORDS),
    Register("STATRQBUFCAMSB", 0xd8, "RO", (yes(ALL, "high word of STATRQBUFCA", HIGH_WORDS),), "public", "ERNIC", first=2),
)

ENTRY = f"{FIELDS}: EntriesOfTheProtectionDomainTable"
PDS = (
    Register("PDPDNUM", 0x00, "RW", (yes("23:0", "protection domain", TABLE_REFUSES),), "public", "ERNIC"),
    Register("VIRTADDRLSB", 0x04, "RW", (yes(ALL, "address of the range, low word", ENTRY),), "public", "ERNIC"),
    Register("VIRTADDRMSB", 0x08, "RW", (yes(ALL, "high word", ENTRY),), "public", "ERNIC"),
    Register("BUFBASEADDRLSB", 0x0c, "RW", (
        yes(ALL, "bus address of the range, low word", FROM_HCA),
        more(ALL, "with PAGES: of the list of pages", PAGES, source="ours")), "public", "ERNIC"),
    Register("BUFBASEADDRMSB", 0x10, "RW", (yes(ALL, "high word", HIGH_WORDS),), "public", "ERNIC"),
    Register("BUFRKEY", 0x14, "RW", (yes("7:0", "low byte of the R_Key, which is entry << 8 | byte", ENTRY),),
             "public", "ERNIC"),
    Register("WRRDBUFLEN", 0x18, "RW", (yes(ALL, "length 31:0", ENTRY),), "public", "ERNIC"),
    Register("ACCESSDESC", 0x1c, "RW", (
        yes("1:0", "access: 0 read, 1 write, 2 both, 3 reserved", f"3 is no access; {ENTRY}", "ERNIC_ACCESS"),
        more("2", "with PAGES: a list of pages", PAGES, "ERNIC_ACCESS_PAGES", "ours"),
        yes("31:16", "length 47:32", ENTRY, "ERNIC_ACCESS_LENGTH_MSB")), "public", "ERNIC"),
)


# ---- the header

ACCESSES = ("RW", "RO", "W1C", "OVERRIDE", "STOPPED")
PERSONALITIES = {"ETRNIC": 1, "ERNIC": 2, "BOTH": 3}
# Banks and other registers that the header has outside its tables, by expression.
BANKS_AT = {f"{queue}INTSTS{n + 1}": f"ERNIC_{queue}INTSTS1 + 4 * {n}" for queue in ("RQ", "CQ") for n in range(8)}


def bits_of(register):
    """The bits that a register has by its fields."""
    found = 0
    for field in register.fields:
        found |= mask(field.range)
    return found


def literals_of(register):
    """Rows for the header: where it is, what it has, and each field that has a mask."""
    place = BANKS_AT.get(register.name, f"ERNIC_{register.name}")
    yield Value(register.name, register.offset, place, register.reading)
    if register.name not in BANKS_AT:
        row = f"ernic_rows.{register.name}"
        yield Value(f"{register.name}: bits", bits_of(register), f"{row}.bits", register.reading)
        yield Value(f"{register.name}: access", ACCESSES.index(register.access), f"{row}.access", register.reading)
        yield Value(f"{register.name}: personality", PERSONALITIES[register.who], f"{row}.personality")
        yield Value(f"{register.name}: first QP", register.first, f"{row}.first")
    yield from (Field(f"{register.name} {field.bits}", register.offset, field.range, place, field.mask)
                for field in register.fields if field.mask)


DOCUMENT = "the map of ETRNIC and ERNIC"
TABLES = (
    Table("global registers", "offsets, bits, access and personality",
          tuple(row for register in GLOBALS for row in literals_of(register))),
    Table("registers of a QP", "offsets, bits, access, personality and first QP",
          tuple(row for register in QPS for row in literals_of(register))),
    Table("protection domain table", "offsets and bits", tuple(row for register in PDS for row in literals_of(register))),
)


# ---- the pages

ACCESS_WORDS = {"OVERRIDE": "RO, RW under the software override", "STOPPED": "RW while the QP is not enabled"}


def about(register, offset):
    """The register's own row: offset, name, access and reset value."""
    words = ACCESS_WORDS.get(register.access, register.access)
    reset = f", reset {register.reset:X}h" if register.reset else ""
    return f"{offset} {register.name}: {words}{reset}"


def rows_of(where, register, offset, source, status=IMPLEMENTED):
    """Rows of a register, and of its fields of a source; `offset` as the document has it."""
    if register.source == source:
        if register.reading:
            yield Row(where, about(register, offset), EXTENDED, f"{register.reading}; {MAP}")
        else:
            yield Row(where, about(register, offset), status, MAP)
    for field in register.fields:
        if (field.source or register.source) == source:
            yield Row(where, f"{register.name} {field.bits}: {field.item}", field.status, field.why)


def unused(register):
    """The bits that no field has, as the documents write ranges; "" without such bits."""
    free = ~bits_of(register) & 0xffffffff
    found, bit = [], 31
    while bit >= 0:
        if free >> bit & 1:
            low = bit
            while low and free >> (low - 1) & 1:
                low -= 1
            found.append(f"{bit}:{low}" if bit > low else str(bit))
            bit = low
        bit -= 1
    return ", ".join(found)


# Points of the list of departures (docs/reference/ernic.rst), by the names of registers.
CONGESTION, RESPONSE_ERRORS = "congestion notification", "response error buffers"
POINTS = {
    **dict.fromkeys(("INCNPPKTCNT", "OUTCNPPKTCNT"), CONGESTION),
    **dict.fromkeys(("RESPERRPKTBA", "RESPERRPKTBAMSB", "RESPERRSZ"), RESPONSE_ERRORS),
}


def points_of(rows, others):
    """The point of each row that departs: that of its register, or one of `others`, by (where, item)."""
    found = {(row.where, row.item): others.get((row.where, row.item)) or POINTS.get(row.item.split(" ")[0])
             for row in rows if row.status == DEPARTS}
    return {**others, **{key: point for key, point in found.items() if point}}
