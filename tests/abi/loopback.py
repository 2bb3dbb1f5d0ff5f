# SPDX-License-Identifier: GPL-2.0-or-later
"""What the RDMA loopback controller does with each statement of its document.

A test is named as the page says (hghca_lib/generated.py). `tools/hghca pages` writes
docs/reference/documents/loopback.rst from this.
"""

from rows import DEPARTS, EXTENDED, IMPLEMENTED, NOT_MEANINGFUL, Row

TITLE = "The document of the RDMA loopback controller, row by row"
INTRODUCTION = """\
The rows are those of *Section 5: RDMA Control Flow*, and of the register map that it refers to. `The RDMA loopback
controller <../loopback.rst>`__ describes the device."""
CACHES = "memory is coherent with the device"
ON_THE_CHIP = "between parts of the chip"

# (offset, name, access). Those that are not in the document are of the public register map of the same work.
REGISTERS = (
    ("00h", "CONTROL", "RW, in the document"),
    ("04h", "HW_STATUS", "RO"),
    ("08h", "IRQ_ENABLE", "0 without the extension IRQ"),
    ("0Ch", "IRQ_STATUS", "0 without the extension IRQ"),
    ("10h", "GLOBAL_CFG", "RW"),
    ("1Ch", "TEST_REG", "RW"),
    ("20h", "SQ_BASE_LO", "RW"),
    ("24h", "SQ_BASE_HI", "RW, not used"),
    ("28h", "SQ_SIZE", "RW, 16 bits"),
    ("2Ch", "SQ_HEAD", "RO, in the document"),
    ("30h", "SQ_TAIL", "RW, 16 bits, in the document"),
    ("34h", "SQ_DOORBELL", "WO, in the document"),
    ("40h", "CQ_BASE_LO", "RW"),
    ("44h", "CQ_BASE_HI", "RW, not used"),
    ("48h", "CQ_SIZE", "RW, 16 bits"),
    ("4Ch", "CQ_HEAD", "RW, 16 bits, in the document"),
    ("50h", "CQ_TAIL", "RO"),
    ("54h", "none", "0"),
    ("58h", "none", "0"),
    ("60h", "CMD_STATE", "RO, 0"),
)
# Of the descriptor in hand: offset, name, test.
DEBUG = (("64h", "LOCAL_HI", "HighWordsOfBasesAreNotUsed"), ("68h", "REMOTE_LO", "HighWordsOfBasesAreNotUsed"),
         ("6Ch", "REMOTE_HI", "HighWordsOfBasesAreNotUsed"), ("70h", "BTT_0", "WordsThatDoNotCount"),
         ("74h", "BTT_1", "WordsThatDoNotCount"), ("78h", "BTT_2", "WordsThatDoNotCount"),
         ("7Ch", "BTT_3", "WordsThatDoNotCount"))
# Beats of the header: number, content.
BEATS = ("PSN 31:8, opcode 7:0", "destination QP 23:0", "destination address 31:0", "fragment offset 15:0",
         "fragment length 31:0", "P_Key 15:0", "ABABABh 31:8, SL 7:0")
# Machines of states: name, first and last state. Software sees the controller's in RDMA_STATE.
MACHINES = (("controller", "S_IDLE to S_WAIT_WRITE_DONE"), ("transmitter", "IDLE to UPDATE_STATE"),
            ("header inserter", "IDLE, SEND_HEADER, SEND_DATA"), ("receive parser", "IDLE, PARSE_HEADER, FORWARD_DATA"),
            ("receiver", "IDLE to WAIT_COMPLETE"), ("command master", "IDLE, SEND_CMD, WAIT_MM2S, WAIT_S2MM"),
            ("completion stream", "IDLE, SEND_STREAM"))

STATEMENTS = (
    ("5.1", "seven parts: software, controller, transmitter, FIFO, receiver, DDR", IMPLEMENTED,
     "loopback_test.cc: CompletionOfATransfer"),
    ("5.1.1", "descriptors of 64 bytes in memory", IMPLEMENTED, "programs/loopback.c: a_transfer"),
    ("5.1.1", "SQ_TAIL at 30h: a write is the doorbell", IMPLEMENTED, "loopback_test.cc: EnableAndWork"),
    ("5.1.1", "CONTROL at 00h: bit 0 is enable; the other bits are not told", IMPLEMENTED,
     "they have no effect; loopback_test.cc: EnableAndWork"),
    ("5.1.1", "SQ_DOORBELL at 34h: a doorbell that does not move the tail", IMPLEMENTED,
     "programs/loopback.c: a_disabled_controller"),
    ("5.1.2", "has_work: SQ_HEAD is not SQ_TAIL", IMPLEMENTED, "loopback_test.cc: EnableAndWork"),
    ("5.1.2", "indices wrap at SQ_SIZE", IMPLEMENTED, "loopback_test.cc: QueuesWrap"),
    ("5.1.2", "idle until CONTROL.enable and work", IMPLEMENTED, "loopback_test.cc: EnableAndWork"),
    ("5.1.3", "ten steps from descriptor to completion", IMPLEMENTED, "programs/loopback.c: a_transfer"),
    ("5.1.3", "cache flushes and invalidations", NOT_MEANINGFUL, CACHES),
    ("5.2.1", "descriptor address: SQ_BASE + (SQ_HEAD << 6)", IMPLEMENTED, "loopback_test.cc: QueuesWrap"),
    ("5.2.1", "SQ_BASE has 64 bits", DEPARTS, "32 bits, as 5.4.3 computes the address; HI counts with WIDE"),
    ("5.2.2", "command interface, valid and ready", NOT_MEANINGFUL, ON_THE_CHIP),
    ("5.2.3", "word 0: id", IMPLEMENTED, "loopback_test.cc: HeaderOfATransfer"),
    ("5.2.3", "word 1: opcode 15:0, flags 31:16", IMPLEMENTED,
     "bits 7:0 count; loopback_test.cc: HeaderOfATransfer, loopback_test.cc: WordsThatDoNotCount"),
    ("5.2.3", "words 2-3: local address", IMPLEMENTED, "loopback_test.cc: CompletionOfATransfer"),
    ("5.2.3", "words 4-5: remote address", IMPLEMENTED, "loopback_test.cc: CompletionOfATransfer"),
    ("5.2.3", "\"local_key\", \"remote_key\": words 2-5 are called keys too", IMPLEMENTED,
     "they are addresses; loopback_test.cc: CompletionOfATransfer"),
    ("5.2.3", "words 6-9: length, of which word 6 counts", IMPLEMENTED, "loopback_test.cc: WordsThatDoNotCount"),
    ("5.2.3", "words 10-15: reserved", IMPLEMENTED, "loopback_test.cc: WordsThatDoNotCount"),
    ("5.2.5", "SQ_HEAD moves when the operation is complete", IMPLEMENTED, "loopback_test.cc: DisabledUnderWay"),
    ("5.2.6", "full: tail + 1 is the head", NOT_MEANINGFUL, "a rule for software"),
    ("5.2.7", "no validation", IMPLEMENTED, "loopback_test.cc: MemoryThatIsNotThere"),
    ("5.2.7", "no time-out: software has a watchdog, and resets", IMPLEMENTED,
     "a transfer stalls by the property alone; loopback_test.cc: ADataMoverThatStalls"),
    ("5.2.7", "soft reset by CONTROL", EXTENDED, "5.7.9 says that it may not be there: with SOFT_RESET; "
                                                 "loopback_test.cc: SoftReset"),
    ("5.3.1", "destination QP: id 23:0; opcode: word 1 7:0", IMPLEMENTED, "loopback_test.cc: HeaderOfATransfer"),
    ("5.3.1", "P_Key ffff, SL 0, PSN 1", IMPLEMENTED, "loopback_test.cc: HeaderOfATransfer"),
    ("5.3.1", "a remote key is latched and not sent", IMPLEMENTED, "loopback_test.cc: HeaderOfATransfer"),
    ("5.3.3", "seven beats of 32 bits, beat by beat", IMPLEMENTED, "loopback_test.cc: HeaderOfATransfer"),
    ("5.3.3", "208 bits have a meaning", DEPARTS, "160: the beats do not carry more"),
    ("5.3.5", "fragment_id and more_fragments tell the receiver", DEPARTS, "neither is in the header: the offset alone"),
    ("5.3.5", "fragments of 4096 bytes at most, cut where the source crosses 4 KB", IMPLEMENTED,
     "loopback_test.cc: Fragments"),
    ("5.3.4", "TKEEP, TLAST", NOT_MEANINGFUL, ON_THE_CHIP),
    ("5.4.1", "DataMover commands of 72 bits", NOT_MEANINGFUL, ON_THE_CHIP),
    ("5.4.2", "BTT has 23 bits", NOT_MEANINGFUL, "a command moves 4096 bytes at most"),
    ("5.3.3", "fragment offset of 16 bits", IMPLEMENTED, "loopback_test.cc: TheFragmentOffsetWrapsAt65536"),
    ("5.4.5", "back-pressure: nothing is dropped", IMPLEMENTED, "loopback_test.cc: DataAfterTheCompletion"),
    ("5.4.6", "CQ address: CQ_BASE 31:0 + (CQ_TAIL << 5)", IMPLEMENTED, "loopback_test.cc: HighWordsOfBasesAreNotUsed"),
    ("5.4.6", "CQ_TAIL and SQ_HEAD move together after the completion", IMPLEMENTED,
     "loopback_test.cc: CompletionOfATransfer"),
    ("5.4.7", "errors of DMA are not seen: status 0", IMPLEMENTED, "loopback_test.cc: MemoryThatIsNotThere"),
    ("5.4.7", "a data mover that stalls is not noticed", IMPLEMENTED, "loopback_test.cc: ADataMoverThatStalls"),
    ("5.4.7", "time-out counters are proposed", EXTENDED,
     "of a transfer, with CHECKS; loopback_test.cc: ATransferThatDoesNotEnd, loopback_cases.py: test_time_out"),
    ("5.5.1", "depth of the FIFO is not given", EXTENDED, "16 fragments; loopback_test.cc: DataAfterTheCompletion"),
    ("5.5.4", "the receiver knows what the header says", IMPLEMENTED, "loopback_test.cc: TheFragmentOffsetWrapsAt65536"),
    ("5.5.6", "opcodes 06, 07, 08, 0A and 01 are written", IMPLEMENTED, "loopback_test.cc: OnlyWritesArePlaced"),
    ("5.5.6", "payload of other opcodes is discarded", IMPLEMENTED, "programs/loopback.c: other_opcodes"),
    ("5.5.7", "destination: remote address + fragment offset", IMPLEMENTED, "loopback_test.cc: Fragments"),
    ("5.5.8", "the completion follows the read, not the write", DEPARTS,
     "data is placed before the completion; late-receiver has it the document's way; "
     "loopback_test.cc: DataAfterTheCompletion, loopback_cases.py: test_late_receiver"),
    ("5.6.1", "words 0 and 3: index of the SQ, 8 bits", IMPLEMENTED, "loopback_test.cc: TheIndexOfACompletionHas8Bits"),
    ("5.6.1", "word 1: status, 8 bits; 2: bytes sent; 4: id; 5: length; 6-7: 0", IMPLEMENTED,
     "loopback_test.cc: CompletionOfATransfer"),
    ("5.6.1", "the structure has bytes_sent_lo and word 2 twice, and a status_opcode", DEPARTS,
     "the table of the words counts"),
    ("5.6.2", "the listing has no line for word 4", DEPARTS, "word 4 has the id, as the table says"),
    ("5.6.6", "the controller does not look whether the CQ is full", IMPLEMENTED,
     "what is overwritten is counted; loopback_test.cc: AFullCqIsOverwritten"),
    ("5.6.6", "the controller stalls when the CQ is full", EXTENDED, "with CQ_STALL; loopback_test.cc: AFullCqStalls"),
    ("5.6.7", "SIZE - 1 descriptors under way, and as many completions", IMPLEMENTED,
     "a rule for software; programs/loopback.c: a_batch"),
    ("5.6.8", "status codes 01 to 03 are proposed", EXTENDED, "with CHECKS; loopback_test.cc: StatusCodes"),
    ("5.6.8", "status code 04, time-out, is proposed", EXTENDED,
     "with CHECKS; loopback_test.cc: ATransferThatDoesNotEnd, loopback_cases.py: test_time_out"),
    ("5.7.1", "submit", IMPLEMENTED, "programs/loopback.c: a_transfer"),
    ("5.7.2", "poll CQ_TAIL with a time-out", IMPLEMENTED, "programs/loopback.c: a_transfer"),
    ("5.7.2", "sample: the time-out is not reported, since timeout-- ends at -1", DEPARTS,
     "the program compares a clock; programs/loopback.c: a_transfer"),
    ("5.7.6", "compare status, bytes, index and data", IMPLEMENTED, "programs/loopback.c: a_transfer"),
    ("5.7.8", "a batch: descriptors, then one write of the tail", IMPLEMENTED, "programs/loopback.c: a_batch"),
    ("5.7.8", "initial_sq_tail + n is the head when a batch is complete", IMPLEMENTED,
     "the initial SQ_HEAD + n, modulo SQ_SIZE; programs/loopback.c: a_batch"),
    ("5.7.8", "sample: cq_head - initial is compared, which fails where the index wraps", DEPARTS,
     "the program counts completions; programs/loopback.c: a_batch"),
    ("5.7.9", "initialisation after an error", IMPLEMENTED, "programs/loopback.c: a_tail_beyond_the_size"),
    ("5.7.9", "the listing does not set CONTROL.enable", DEPARTS, "software sets it last; programs/loopback.c: a_transfer"),
    ("5.7.9", "writes to registers that are read-only: left open", IMPLEMENTED, "loopback_test.cc: AccessOfEachRegister"),
    ("5.8", "polling alone, no interrupts", EXTENDED, "with IRQ; loopback_test.cc: AnInterruptForEachCompletion"),
    ("5.8", "alignment of addresses and lengths is not told", IMPLEMENTED,
     "any byte; programs/loopback.c: sizes_and_addresses, loopback_test.cc: QueuesAtOddAddresses"),
    ("5.8", "a length of 0 is not told", IMPLEMENTED,
     "a header, no payload, 0 bytes; with CHECKS status 03; loopback_test.cc: ATransferOfNoBytes"),
    ("5.8", "the largest size is not told", IMPLEMENTED,
     "65,535, since an index has 16 bits; loopback_test.cc: TheLargestQueuesWrap"),
    ("5.8", "a size of 1, and a tail at the size or beyond, are not told", IMPLEMENTED,
     "by 5.2.6 work without an end, in bounded turns, and counted; loopback_test.cc: SizesThatCannotBe, "
     "programs/loopback.c: a_size_of_1"),
    ("5.8", "a size of 0 has no valid index (5.2.6), so that the head is never the tail", DEPARTS,
     "by the formula of 5.2.6 no index plus 1 is 0: indices of 16 bits reach every tail, as in a queue of 65,536 "
     "entries, and it is counted; loopback_test.cc: ASizeOf0, programs/loopback.c: a_size_of_0"),
    ("5.8", "no check of sizes and tails", EXTENDED, "with CHECKS; loopback_test.cc: SizesAreChecked"),
    ("5.8", "no check of keys", IMPLEMENTED, "loopback_test.cc: CompletionOfATransfer"),
    ("5.8", "one descriptor at a time", IMPLEMENTED, "loopback_test.cc: DisabledUnderWay"),
)

# What the document leaves open or does not have, and what is decided of software.
DECIDED = (
    ("5.1", "numbers: sections 6.1 to 6.7, five parts or seven, 16 words or 8", NOT_MEANINGFUL,
     "numbers of the text alone; the tables have the words"),
    ("5.1.2", "CONTROL.enable is cleared under way: not told", EXTENDED,
     "the descriptor in hand is finished; loopback_test.cc: DisabledUnderWay"),
    ("5.3.3", "order of the bytes of a beat: not told", EXTENDED,
     "the lowest first; loopback_test.cc: HeaderOfATransfer; loopback_cases.py: test_header"),
    ("5.3.3", "place of longer addresses and offsets: not told", EXTENDED,
     "with WIDE, beats 3 and 5 31:16: offsets of 32 bits, addresses of 48; loopback_test.cc: LongTransfers"),
    ("5.5.7", "a destination that crosses 4 KB: not told", EXTENDED,
     "not cut; loopback_test.cc: Fragments; programs/loopback.c: sizes_and_addresses"),
    ("5.5.7", "the public RTL moves the remote address and adds the offset too", NOT_MEANINGFUL,
     "an error of the RTL: the address is the document's; loopback_test.cc: Fragments"),
    ("5.8", "what turns an extension on: not told", EXTENDED,
     "GLOBAL_CFG, while the controller is disabled; loopback_test.cc: AreToldAndTurnedOn"),
    ("software", "a DMA engine of Linux, by interrupt or polling", EXTENDED,
     "judged by dmatest; loopback.py: interrupts; loopback.py: polling"),
    ("software", "copies that are longer than a transfer can be", EXTENDED,
     "the driver splits them; kunit/loopback.c: loopback_long_copy"),
    ("software", "a controller that may report a copy before it is there", EXTENDED,
     "the driver does not take it; loopback.py: refused"),
    ("software", "a program of section 5.7", EXTENDED,
     "through vfio-pci, behind an IOMMU; loopback.py: user_program"),
    ("software", "the carrier: a PCI function, also where a platform device could be", EXTENDED,
     "a platform device needs a changed QEMU; the driver of the platform device knows no PCI; tried on x86-64 alone"),
    ("software", "the controller has no transport, no Ethernet and no address of a network", NOT_MEANINGFUL,
     "an engine of its own beside the HCA's functions"),
)


def _rows():
    access = "loopback_test.cc: AccessOfEachRegister"
    yield from (Row("registers", f"{offset} {name}: {text}", IMPLEMENTED, access) for offset, name, text in REGISTERS)
    yield Row("registers", "5Ch RDMA_STATE: RO", IMPLEMENTED, "loopback_test.cc: StatesOfATransfer")
    yield from (Row("registers", f"{offset} {name}: RO, of the descriptor in hand", IMPLEMENTED,
                    f"loopback_test.cc: {test}") for offset, name, test in DEBUG)
    yield from (Row("5.3.3", f"beat {number}: {text}", IMPLEMENTED, "loopback_test.cc: HeaderOfATransfer")
                for number, text in enumerate(BEATS))
    yield from (Row("5.4", f"states of the {name}: {states}", NOT_MEANINGFUL, ON_THE_CHIP) for name, states in MACHINES)
    yield from (Row(*statement) for statement in (*STATEMENTS, *DECIDED))


def _place(row):
    return row.where == "software", [int(part) for part in row.where.split(".") if part.isdigit()]


ROWS = tuple(sorted(_rows(), key=_place))

# The point of the page's list of departures that explains each row that departs.
POINTS = {
    ("5.2.1", "SQ_BASE has 64 bits"): "SQ_BASE_HI, CQ_BASE_HI",
    ("5.3.3", "208 bits have a meaning"): "header",
    ("5.3.5", "fragment_id and more_fragments tell the receiver"): "header",
    ("5.5.8", "the completion follows the read, not the write"): "order of payload and completion",
    ("5.6.1", "the structure has bytes_sent_lo and word 2 twice, and a status_opcode"): "words of a completion",
    ("5.6.2", "the listing has no line for word 4"): "words of a completion",
    ("5.7.2", "sample: the time-out is not reported, since timeout-- ends at -1"): "samples of programs",
    ("5.7.8", "sample: cq_head - initial is compared, which fails where the index wraps"): "samples of programs",
    ("5.7.9", "the listing does not set CONTROL.enable"): "samples of programs",
    ("5.8", "a size of 0 has no valid index (5.2.6), so that the head is never the tail"): "size 0",
}
