# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands that the device must refuse, written to the HCR through sysfs while no driver is bound.

usage: badcmd.py PCI-ADDRESS

The bytes are those of docs/reference/hardware-interface.rst; of the headers only the tables
of commands and of capabilities are used. All memory the device is told about is this program's
own, or none at all. Prints the Test Anything Protocol.
"""

import ctypes
import mmap
import os
import random
import struct
import sys
import time

from interface import CAPABILITIES, COMMANDS

PAGE = 4096
HCR, RESET = 0x80000, 0xF0010
GO, EVENT = 1 << 23, 1 << 22
NOWHERE = 1 << 50

OK, BAD_OP, BAD_PARAM, BAD_SYS_STATE, BUSY = 0x00, 0x02, 0x03, 0x04, 0x06
BAD_RES_STATE, BAD_INDEX, BAD_QP_STATE, BAD_SEG, NOT_MAPPED, BAD_SIZE = 0x09, 0x0A, 0x10, 0x20, 0x22, 0x40

# Each command's opcode by its name, the transitions' without _QPEE: RST2INIT.
globals().update((name.removesuffix("_QPEE"), row[0]) for name, row in COMMANDS.items())
TO_ERR = COMMANDS["2ERR_QPEE"][0]


def ops_of(*capabilities):
    """The opcodes of the commands that need one of these capabilities."""
    return [op for op, *_, capability in COMMANDS.values() if capability in capabilities]


SRQ_OPS, GROUP_OPS, FLOW_OPS, PAGING_OPS = ops_of("SRQ"), ops_of("MULTICAST"), ops_of("RAW_PACKET"), ops_of("ODP")
RSS_OPS, CONGESTION_OPS, FLOW_CONTROL_OPS = ops_of("RSS"), ops_of("CONGESTION"), ops_of("FLOW_CONTROL")
COUNTER_OPS, PARTITION_OPS = ops_of("QP_COUNTERS"), ops_of("VENDOR_OPS")
NEED_INIT = [row[0] for row in COMMANDS.values() if row[4] == "INIT"]
KNOWN = {row[0] for row in COMMANDS.values()}
CONTEXT, TPT = 1, 2
ICM_PAGES = 16
MPT_REGION = 1 << 8
globals().update((f"CAP_{name}", 1 << bit) for name, bit in CAPABILITIES.items())
CAP_UNKNOWN = 1 << 31

libc = ctypes.CDLL(None, use_errno=True)
number = failed = 0


def result(name, wrong):
    global number, failed
    number += 1
    for line in wrong:
        print(f"# {line}")
    failed += bool(wrong)
    print(f"{'not ok' if wrong else 'ok'} {number} - {name}", flush=True)


class Memory:
    """Locked pages of our own and where they are for the device (there is no IOMMU in this guest)."""

    def __init__(self, pages):
        self.map = mmap.mmap(-1, pages * PAGE)
        self.map[:] = b"\1" * len(self.map)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        if libc.mlock(ctypes.c_void_p(address), ctypes.c_size_t(len(self.map))):
            raise OSError(ctypes.get_errno(), "mlock")
        self.map[:] = bytes(len(self.map))
        with open("/proc/self/pagemap", "rb") as file:
            file.seek(address // PAGE * 8)
            frames = struct.unpack(f"<{pages}Q", file.read(8 * pages))
        self.dma = [(frame & (1 << 55) - 1) * PAGE for frame in frames]

    def put(self, data, page=0):
        self.map[page * PAGE:(page + 1) * PAGE] = data.ljust(PAGE, b"\0")

    def get(self, page=0):
        return self.map[page * PAGE:(page + 1) * PAGE]


class Device:
    """BAR0 of an unbound device, with memory and bus mastering on."""

    def __init__(self, address):
        self.folder = f"/sys/bus/pci/devices/{address}"
        if os.path.exists(f"{self.folder}/driver"):
            sys.exit("Bail out! a driver is bound to the device")
        self.configure(0x6)
        fd = os.open(f"{self.folder}/resource0", os.O_RDWR | os.O_SYNC)
        self.bar = mmap.mmap(fd, 1 << 20)
        self.word = memoryview(self.bar).cast("I")
        self.byte = memoryview(self.bar)
        self.half = memoryview(self.bar).cast("H")
        self.quad = memoryview(self.bar).cast("Q")
        self.reset()

    def configure(self, command):
        with open(f"{self.folder}/config", "r+b", buffering=0) as file:
            file.seek(4)
            file.write(struct.pack("<H", command))

    def reset(self):
        self.word[RESET // 4] = 1

    def hcr(self, index, value=None):
        if value is None:
            return self.word[HCR // 4 + index]
        self.word[HCR // 4 + index] = value

    def command(self, op, in_param=0, out_param=0, modifier=0, op_modifier=0, event=False):
        """Run a polled command; its status."""
        for index, value in enumerate((in_param >> 32, in_param & 0xFFFFFFFF, modifier,
                                       out_param >> 32, out_param & 0xFFFFFFFF, 0xFFFF << 16)):
            self.hcr(index, value)
        self.hcr(6, GO | (EVENT if event else 0) | op_modifier << 12 | op)
        limit = time.monotonic() + 10
        while self.hcr(6) & GO:
            if time.monotonic() > limit:
                raise TimeoutError(f"command 0x{op:03x} did not end")
        return self.hcr(6) >> 24


def eq_box(logsize, vector=0, key=1):
    return struct.pack(">IQB3xI3xBIIII", 1 << 24, 0, logsize, 0, vector, 1, key, 0, 0)


def cq_box(logsize, number, eqn=1, key=1):
    return struct.pack(">IQIIIIIIIII", 0, 0, logsize << 24, eqn, 1, key, 0, 0, 0, 0, number)


def srq_box(logsize=4, srqn=1, entry=6, record=0x1001, key=1):
    return struct.pack(">IIIIBBHIHHIQ", 0, srqn, 1, key, logsize, entry, 0, 0, 0, 0, 0, record)


class Tests:
    def __init__(self, device):
        self.device = device
        self.box = Memory(4)
        self.icm = Memory(ICM_PAGES)
        self.limits = {}

    def expect(self, wrong, what, status, op, **arguments):
        """The command must end with one of the statuses."""
        allowed = status if isinstance(status, tuple) else (status,)
        got = self.device.command(op, **arguments)
        if got not in allowed:
            names = " or ".join(f"0x{one:02x}" for one in allowed)
            wrong.append(f"{what}: command 0x{op:03x} ended with status 0x{got:02x}, expected {names}")
        return got

    def mailbox(self, data=b""):
        self.box.put(data)
        return self.box.dma[0]

    def alive(self, wrong):
        """The device still answers, and answers right."""
        self.box.put(b"\xff" * PAGE, 1)
        self.expect(wrong, "afterwards", OK, QUERY_DEV_LIM, out_param=self.box.dma[1])
        if self.box.get(1)[0x0C:0x10] != bytes([16, 17, 6, 19]):
            wrong.append(f"QUERY_DEV_LIM answers {self.box.get(1)[:0x20].hex()}")

    def run(self):
        for name in dir(self):
            if name.startswith("test_"):
                self.device.reset()
                wrong = []
                try:
                    getattr(self, name)(wrong)
                    self.alive(wrong)
                except TimeoutError as error:
                    wrong.append(str(error))
                result(getattr(self, name).__doc__, wrong)
        self.device.reset()

    # INIT_HCA with tables of 256 QPs, CQs, 64 EQs, 256 MPTs.

    def init_box(self, qpc=0 | 8, cqc=0x100000 | 8, eqc=0x200000 | 6, caps=0x7F, srqc=0, mpt=0 | 8, mtt=0x100000, mcg=0):
        return struct.pack(">QQQQIIQQQ", mcg, qpc, cqc, eqc, caps, 0, srqc, mpt, mtt)

    def init(self, wrong, **changed):
        self.expect(wrong, "a sound INIT_HCA", OK, INIT_HCA, in_param=self.mailbox(self.init_box(**changed)))

    def chunk_box(self, chunks):
        """Chunks (ICM address, DMA address, pages): pairs stand high to low."""
        box = bytearray(PAGE)
        for index, (virt, dma, pages) in enumerate(chunks):
            struct.pack_into(">QQ", box, 16 * (index ^ 1), virt, dma | pages)
        return bytes(box)

    def map_icm(self, space, virt, page):
        return self.device.command(MAP_ICM, in_param=self.mailbox(self.chunk_box([(virt, self.icm.dma[page], 1)])),
                                   modifier=1, op_modifier=space)

    def test_ops(self, wrong):
        "unknown opcodes"
        self.mailbox()
        for when in ("before INIT_HCA", "after INIT_HCA"):
            for op in sorted(set(range(0x1000)) - KNOWN):
                self.expect(wrong, when, BAD_OP, op, in_param=self.box.dma[0], out_param=self.box.dma[1])
            if when.startswith("before"):
                self.init(wrong)

    def test_before_init(self, wrong):
        "commands before INIT_HCA"
        for op in NEED_INIT:
            self.expect(wrong, "before INIT_HCA", BAD_SYS_STATE, op, in_param=self.mailbox(),
                        out_param=self.box.dma[1], modifier=1)
        self.expect(wrong, "NOP", OK, NOP, modifier=0x1F)

    def test_mailboxes(self, wrong):
        "mailboxes outside memory, and crooked ones"
        bad = [NOWHERE, 0xFFFFFFFFFFFFF000, 1 << 63, self.box.dma[0] + 64, self.box.dma[0] + 1, self.box.dma[0] + 2048]
        for address in bad:
            self.expect(wrong, f"out {address:#x}", BAD_PARAM, QUERY_DEV_LIM, out_param=address)
            self.expect(wrong, f"out {address:#x}", BAD_PARAM, QUERY_ADAPTER, out_param=address)
            self.expect(wrong, f"in {address:#x}", BAD_PARAM, INIT_HCA, in_param=address)
            self.expect(wrong, f"in {address:#x}", BAD_PARAM, MAP_ICM, in_param=address, modifier=1, op_modifier=CONTEXT)
        self.init(wrong)
        for address in bad:
            for op in (SW2HW_MPT, WRITE_MTT, SW2HW_EQ, SW2HW_CQ, SET_GID, SET_PORT):
                self.expect(wrong, f"in {address:#x}", BAD_PARAM, op, in_param=address, modifier=1)
            self.expect(wrong, f"out {address:#x}", BAD_PARAM, QUERY_STATS, out_param=address)
        # The BARs of the device itself are no memory for mailboxes.
        with open(f"{self.device.folder}/resource") as file:
            bar = int(file.readline().split()[0], 16)
        self.expect(wrong, "in its own BAR", BAD_PARAM, INIT_HCA, in_param=bar + HCR)

    def test_modifiers(self, wrong):
        "bad in_modifier and op_modifier"
        self.expect(wrong, "MAP_ICM of 0 chunks", BAD_PARAM, MAP_ICM, in_param=self.mailbox(), op_modifier=CONTEXT)
        self.expect(wrong, "MAP_ICM of 257 chunks", BAD_PARAM, MAP_ICM, in_param=self.mailbox(), modifier=257,
                    op_modifier=CONTEXT)
        for space in (0, 3, 255):
            box = self.mailbox(self.chunk_box([(0, self.icm.dma[0], 1)]))
            self.expect(wrong, f"MAP_ICM in space {space}", BAD_PARAM, MAP_ICM, in_param=box, modifier=1,
                        op_modifier=space)
            self.expect(wrong, f"UNMAP_ICM in space {space}", BAD_PARAM, UNMAP_ICM, modifier=1, op_modifier=space)
        for port in (0, 2, 0xFFFFFFFF):
            self.expect(wrong, f"QUERY_PORT of port {port}", BAD_PARAM, QUERY_PORT, out_param=self.box.dma[1],
                        modifier=port)
        self.init(wrong)
        for count in (0, 509, 0xFFFFFFFF):
            self.expect(wrong, f"WRITE_MTT of {count}", BAD_PARAM, WRITE_MTT, in_param=self.mailbox(), modifier=count)
        for special in (0, 2, 4, 255):
            self.expect(wrong, f"CONF_SPECIAL_QP {special}", BAD_PARAM, CONF_SPECIAL_QP, modifier=1,
                        op_modifier=special)
        self.expect(wrong, "MAD_IFC of port 0", BAD_PARAM, MAD_IFC, in_param=self.mailbox(), out_param=self.box.dma[1])
        self.expect(wrong, "RST2INIT with op_modifier 3", BAD_PARAM, RST2INIT, modifier=8, op_modifier=3)
        self.expect(wrong, "SET_GID with op_modifier 2", BAD_PARAM, SET_GID, in_param=self.mailbox(), op_modifier=2)

    def test_indices(self, wrong):
        "indices beyond the tables"
        self.init(wrong)
        for op, count in ((SW2HW_MPT, 256), (HW2SW_MPT, 256), (SW2HW_EQ, 64), (HW2SW_EQ, 64), (SW2HW_CQ, 256),
                          (HW2SW_CQ, 256), (RESIZE_CQ, 256), (QUERY_QP, 256), (TO_ERR, 256)):
            for index in (count, count + 1, 0xFFFFFFFF):
                self.expect(wrong, f"index {index}", BAD_INDEX, op, in_param=self.mailbox(),
                            out_param=self.box.dma[1], modifier=index)
        self.expect(wrong, "GID 128", (BAD_INDEX, BAD_PARAM), SET_GID, in_param=self.mailbox(), modifier=128)
        box = struct.pack(">QQQQ", 0, 0, 0, 1 << 27)
        self.expect(wrong, "MTT 2^27", BAD_INDEX, WRITE_MTT, in_param=self.mailbox(box), modifier=1)
        box = struct.pack(">QQQQ", 0, 0, 0, (1 << 64) - 1)
        self.expect(wrong, "MTT 2^64 - 1", BAD_INDEX, WRITE_MTT, in_param=self.mailbox(box), modifier=2)

    def test_init(self, wrong):
        "INIT_HCA with a bad layout"
        self.expect(wrong, "the capabilities", OK, QUERY_DEV_LIM, out_param=self.box.dma[1])
        (known,) = struct.unpack_from(">I", self.box.get(1), 0x3C)
        if not known or known & CAP_UNKNOWN:
            wrong.append(f"QUERY_DEV_LIM gives the capabilities {known:#x}: {CAP_UNKNOWN:#x} is no unknown one")
        for what, change in (("2^17 QPs", {"qpc": 17}), ("2^18 CQs", {"cqc": 0x100000 | 18}),
                             ("2^7 EQs", {"eqc": 0x200000 | 7}), ("2^20 MPTs", {"mpt": 20}),
                             ("2^255 QPs", {"qpc": 255}), ("QPs beyond ICM", {"qpc": 1 << 32 | 8}),
                             ("QPs at the end of ICM", {"qpc": (1 << 32) - 4096 | 8}),
                             ("CQs over QPs", {"cqc": 0x1000 | 8}), ("MTTs over MPTs", {"mtt": 0x100}),
                             ("an unknown capability", {"caps": CAP_UNKNOWN}), ("all capabilities", {"caps": 0xFFFFFFFF})):
            self.expect(wrong, what, BAD_PARAM, INIT_HCA, in_param=self.mailbox(self.init_box(**change)))
        self.init(wrong)
        self.expect(wrong, "INIT_HCA again", BAD_SYS_STATE, INIT_HCA, in_param=self.mailbox(self.init_box()))
        self.expect(wrong, "CLOSE_HCA", OK, CLOSE_HCA)
        self.expect(wrong, "CLOSE_HCA again", BAD_SYS_STATE, CLOSE_HCA)
        self.init(wrong)

    def test_icm(self, wrong):
        "ICM mapped badly, and tables used without it"
        self.init(wrong)
        for what, chunk in (("0 pages", (0, self.icm.dma[0], 0)), ("crooked", (64, self.icm.dma[0], 1)),
                            ("beyond ICM", (1 << 32, self.icm.dma[0], 1)),
                            ("over the end of ICM", ((1 << 32) - 4096, self.icm.dma[0], 2)),
                            ("at 2^64 - 4096", ((1 << 64) - 4096, self.icm.dma[0], 2))):
            self.expect(wrong, what, BAD_PARAM, MAP_ICM, in_param=self.mailbox(self.chunk_box([chunk])), modifier=1,
                        op_modifier=TPT)
        self.expect(wrong, "UNMAP_ICM of what is not mapped", BAD_PARAM, UNMAP_ICM, modifier=1, op_modifier=TPT)
        box = self.mailbox(struct.pack(">IIIIQQ", MPT_REGION, 0, 1, 1, 0, PAGE))
        self.expect(wrong, "an MPT without ICM", NOT_MAPPED, SW2HW_MPT, in_param=box, modifier=1)
        two = self.chunk_box([(0, self.icm.dma[0], 1), (0, self.icm.dma[1], 1)])
        self.expect(wrong, "two chunks at one place", (BUSY, BAD_PARAM), MAP_ICM, in_param=self.mailbox(two), modifier=2,
                    op_modifier=TPT)
        for virt, page in ((0, 0), (4096, 1), (8192, 2), (12288, 3)):
            if self.map_icm(TPT, virt, page) != OK:
                wrong.append(f"page {virt:#x} cannot be mapped")
        if self.map_icm(TPT, 4096, 4) != BUSY:
            wrong.append("a page was mapped twice")
        box = self.mailbox(struct.pack(">IIIIQQ", MPT_REGION, 0, 1, 1, 0, PAGE))
        self.expect(wrong, "an MPT with ICM", OK, SW2HW_MPT, in_param=box, modifier=1)
        self.expect(wrong, "the same again", BAD_RES_STATE, SW2HW_MPT, in_param=box, modifier=1)
        self.expect(wrong, "HW2SW_MPT", OK, HW2SW_MPT, modifier=1)
        self.expect(wrong, "HW2SW_MPT again", BAD_RES_STATE, HW2SW_MPT, modifier=1)
        # The MPTs' 256 entries take four pages, all of them mapped; what is not there stays refused.
        self.expect(wrong, "UNMAP_ICM past what is mapped", BAD_PARAM, UNMAP_ICM, modifier=5, op_modifier=TPT)
        self.expect(wrong, "UNMAP_ICM", OK, UNMAP_ICM, modifier=4, op_modifier=TPT)
        self.expect(wrong, "an MPT after UNMAP_ICM", NOT_MAPPED, SW2HW_MPT, in_param=box, modifier=1)

    def test_mpts(self, wrong):
        "memory regions with bad contents"
        self.init(wrong)
        self.map_icm(TPT, 0, 0)
        for what, box in (("a key of another index", (MPT_REGION, 0, 2, 1, 0, PAGE)),
                          ("pages of 2^31 bytes", (MPT_REGION, 19, 1, 1, 0, PAGE)),
                          ("no region", (0, 0, 1, 1, 0, PAGE)),
                          ("owned by software", (0xF << 28 | MPT_REGION, 0, 1, 1, 0, PAGE))):
            self.expect(wrong, what, BAD_SEG if "pages" in what else BAD_PARAM, SW2HW_MPT,
                        in_param=self.mailbox(struct.pack(">IIIIQQ", *box)), modifier=1)
        self.expect(wrong, "HW2SW_MPT of what is not there", BAD_RES_STATE, HW2SW_MPT, modifier=1)

    def test_queues(self, wrong):
        "queues with bad contents"
        self.init(wrong)
        for page in range(4):
            self.map_icm(TPT, page * PAGE, page)
        for index, virt in enumerate((0, 0x100000, 0x200000)):
            self.map_icm(CONTEXT, virt, 4 + index)
        for what, status, box in (("a vector that is not there", BAD_PARAM, eq_box(4, 64)),
                                  ("2^0 entries", BAD_SIZE, eq_box(0)), ("2^21 entries", BAD_SIZE, eq_box(21)),
                                  ("2^255 entries", BAD_SIZE, eq_box(255)), ("no buffer", BAD_PARAM, eq_box(4))):
            self.expect(wrong, f"an EQ with {what}", status, SW2HW_EQ, in_param=self.mailbox(box), modifier=1)
        for what, status, box in (("2^0 entries", BAD_SIZE, cq_box(0, 1)), ("2^23 entries", BAD_SIZE, cq_box(23, 1)),
                                  ("another number", BAD_PARAM, cq_box(4, 2)), ("no buffer", BAD_PARAM, cq_box(4, 1))):
            self.expect(wrong, f"a CQ with {what}", status, SW2HW_CQ, in_param=self.mailbox(box), modifier=1)
        self.expect(wrong, "HW2SW_EQ of what is not there", BAD_RES_STATE, HW2SW_EQ, modifier=1)
        self.expect(wrong, "HW2SW_CQ of what is not there", BAD_RES_STATE, HW2SW_CQ, modifier=1)
        self.expect(wrong, "RESIZE_CQ of what is not there", BAD_RES_STATE, RESIZE_CQ, in_param=self.mailbox(),
                    modifier=1)
        for op in (INIT2INIT, INIT2RTR, RTR2RTS, RTS2RTS, SQERR2RTS, TO_ERR, RTS2SQD, SQD2SQD, SQD2RTS):
            self.expect(wrong, "a transition of a QP in RESET", (BAD_QP_STATE, BAD_PARAM), op, in_param=self.mailbox(),
                        modifier=1)
        self.expect(wrong, "RST2INIT with nothing in it", BAD_PARAM, RST2INIT, in_param=self.mailbox(), modifier=1)

    def test_srqs(self, wrong):
        "SRQs with bad contents, or where they are not turned on"
        self.init(wrong)
        for op in SRQ_OPS:
            self.expect(wrong, "without the capability", BAD_OP, op, in_param=self.mailbox(),
                        out_param=self.box.dma[1], modifier=1)
        self.device.reset()
        for what, srqc in (("twice the largest table", 0x300000 | 17), ("beyond ICM", 1 << 40 | 8),
                           ("on top of the QPs", 0 | 8)):
            self.expect(wrong, f"a table {what}", BAD_PARAM, INIT_HCA,
                        in_param=self.mailbox(self.init_box(caps=CAP_SRQ, srqc=srqc)))
        self.init(wrong, caps=CAP_SRQ, srqc=0x300000 | 8)
        self.expect(wrong, "an SRQ without ICM", NOT_MAPPED, SW2HW_SRQ, in_param=self.mailbox(srq_box()), modifier=1)
        self.map_icm(CONTEXT, 0x300000, 0)
        for page in range(4):
            self.map_icm(TPT, page * PAGE, 1 + page)
        for what, status, box in (("2^17 WQEs", BAD_SIZE, srq_box(logsize=17)),
                                  ("2^255 WQEs", BAD_SIZE, srq_box(logsize=255)),
                                  ("WQEs of 32 bytes", BAD_PARAM, srq_box(entry=5)),
                                  ("WQEs of 2048 bytes", BAD_PARAM, srq_box(entry=11)),
                                  ("another number", BAD_PARAM, srq_box(srqn=2)),
                                  ("no record", BAD_PARAM, srq_box(record=0)),
                                  ("a crooked record", BAD_PARAM, srq_box(record=3)),
                                  ("no such key", BAD_PARAM, srq_box()),
                                  ("nothing in it", BAD_PARAM, b"")):
            self.expect(wrong, f"an SRQ with {what}", status, SW2HW_SRQ, in_param=self.mailbox(box), modifier=1)
        for number in (0, 256, 0xFFFFFF, 0xFFFFFFFF):
            for op in SRQ_OPS:
                self.expect(wrong, f"SRQ {number:#x}", BAD_INDEX, op, in_param=self.mailbox(srq_box(srqn=number)),
                            out_param=self.box.dma[1], modifier=number)
        for op in SRQ_OPS[1:]:
            self.expect(wrong, "an SRQ that is not there", BAD_RES_STATE, op, in_param=self.mailbox(srq_box()),
                        out_param=self.box.dma[1], modifier=1)

    def test_partitions(self, wrong):
        "partitions, which this device does not have"
        self.init(wrong)
        for op in PARTITION_OPS:
            self.expect(wrong, "without the capability", BAD_OP, op, in_param=self.mailbox(),
                        out_param=self.box.dma[1], modifier=1)

    def test_counters(self, wrong):
        "counter sets and queries of what is not there, or where they are not turned on"
        self.init(wrong)
        for op in COUNTER_OPS:
            self.expect(wrong, "without the capability", BAD_OP, op, in_param=1, out_param=self.box.dma[1], modifier=1)
        self.expect(wrong, "without the capability", BAD_PARAM, QUERY_STATS, out_param=self.box.dma[1], op_modifier=1)
        self.device.reset()
        self.init(wrong, caps=CAP_QP_COUNTERS)
        for number in (0, 256, 0x10001, 0xFFFFFFFF):
            self.expect(wrong, f"set {number:#x}", BAD_INDEX, QUERY_COUNTER_SET, out_param=self.box.dma[1],
                        modifier=number)
        self.expect(wrong, "a bad mailbox", BAD_PARAM, QUERY_COUNTER_SET, out_param=NOWHERE, modifier=1)
        self.expect(wrong, "op_modifier 2", BAD_PARAM, QUERY_COUNTER_SET, out_param=self.box.dma[1], modifier=1,
                    op_modifier=2)
        for op in (SET_QP_COUNTER, QUERY_CQ, QUERY_EQ, QUERY_MPT):
            for number in (0, 256, 0xFFFFFF, 0xFFFFFFFF):
                self.expect(wrong, f"number {number:#x}", BAD_INDEX, op, in_param=1, out_param=self.box.dma[1],
                            modifier=number)
            self.expect(wrong, "no ICM", NOT_MAPPED, op, in_param=1, out_param=self.box.dma[1], modifier=1)
        self.map_icm(CONTEXT, 0, 0)
        self.map_icm(CONTEXT, 0x100000, 1)
        self.map_icm(CONTEXT, 0x200000, 2)
        self.map_icm(TPT, 0, 3)
        for number in (256, 1 << 32 | 1, 0xFFFFFFFFFFFFFFFF):
            self.expect(wrong, f"set {number:#x}", BAD_INDEX, SET_QP_COUNTER, in_param=number, modifier=1)
        self.expect(wrong, "a QP in RST", BAD_QP_STATE, SET_QP_COUNTER, in_param=1, modifier=1)
        for op in (QUERY_CQ, QUERY_EQ, QUERY_MPT):
            self.expect(wrong, "not there", BAD_RES_STATE, op, out_param=self.box.dma[1], modifier=1)

    def test_flows(self, wrong):
        "flow rules without and with the capability, and what must be refused"
        self.init(wrong)
        for op in FLOW_OPS:
            self.expect(wrong, "without the capability", BAD_OP, op, in_param=self.mailbox(), modifier=1)
        self.device.reset()
        self.init(wrong, caps=CAP_RAW_PACKET)

        def fields(at, data):
            return bytes(at) + data + bytes(64 - at - len(data))

        def rule(qpn=8, kind=0, value=bytes(64), mask=bytes(64)):
            return struct.pack(">IHB9x64s64s", qpn, 0, kind, value, mask)

        dmac, kinds = 0, 0x37
        mac = rule(value=fields(dmac, b"\2\0\0\0\0\1"), mask=fields(dmac, b"\xff" * 6))
        for index in (4096, 4097, 0xFFFFFFFF):
            for op in FLOW_OPS:
                self.expect(wrong, f"rule {index:#x}", BAD_INDEX, op, in_param=self.mailbox(mac), modifier=index)
        self.expect(wrong, "a rule that is not there", BAD_RES_STATE, FLOW_DETACH, modifier=1)
        for what, box in (("QP 0", rule(qpn=0)), ("QP 256", rule(qpn=256)), ("QP 2^32 - 1", rule(qpn=0xFFFFFFFF)),
                          ("type 3", rule(kind=3)), ("type 255", rule(kind=255)),
                          ("a mask, of all frames", rule(kind=1, mask=fields(dmac, b"\1"))),
                          ("a value without a mask", rule(value=fields(dmac, b"\1"))),
                          ("a VLAN of untagged frames", rule(mask=fields(0x0E, b"\x0f\xff"))),
                          ("addresses without IP", rule(mask=fields(0x1C, b"\xff"))),
                          ("16 bytes of an IPv4 address",
                           rule(value=fields(kinds, b"\2"), mask=fields(0x10, b"\xff" + bytes(0x26) + b"\2"))),
                          ("ports without UDP or TCP", rule(mask=fields(0x38, b"\xff"))),
                          ("a kind that does not exist", rule(mask=fields(kinds, b"\x20"))),
                          ("a reserved field", rule(mask=fields(0x3C, b"\1")))):
            self.expect(wrong, f"a rule of {what}", BAD_PARAM, FLOW_ATTACH, in_param=self.mailbox(box), modifier=1)
        self.expect(wrong, "a bad mailbox", BAD_PARAM, FLOW_ATTACH, in_param=NOWHERE, modifier=1)
        self.expect(wrong, "a sound rule", OK, FLOW_ATTACH, in_param=self.mailbox(mac), modifier=1)
        self.expect(wrong, "a rule's place", BAD_RES_STATE, FLOW_ATTACH, in_param=self.mailbox(mac), modifier=1)
        self.expect(wrong, "the same rule", BUSY, FLOW_ATTACH, in_param=self.mailbox(mac), modifier=2)
        self.expect(wrong, "FLOW_DETACH", OK, FLOW_DETACH, modifier=1)
        self.expect(wrong, "FLOW_DETACH again", BAD_RES_STATE, FLOW_DETACH, modifier=1)

    def test_rss(self, wrong):
        "RSS groups without and with the capability, and what must be refused"
        self.init(wrong)
        for op in RSS_OPS:
            self.expect(wrong, "without the capability", BAD_OP, op, in_param=self.mailbox(), modifier=1)
        self.device.reset()
        self.init(wrong, caps=CAP_RAW_PACKET | CAP_RSS)

        def group(*qpns, fields=0xFF, function=1, log_size=0):
            return struct.pack(f">IBB2x40x{len(qpns)}I", fields, function, log_size, *qpns)

        def rule(index):
            return struct.pack(">IHB9x64x64x", 1 << 31 | index, 0, 1)

        sound = group(8, 9, log_size=1)
        for index in (1024, 1025, 1 << 31, 0xFFFFFFFF):
            for op in RSS_OPS:
                self.expect(wrong, f"group {index:#x}", BAD_INDEX, op, in_param=self.mailbox(sound), modifier=index)
        self.expect(wrong, "a group that is not there", BAD_RES_STATE, DESTROY_RSS, modifier=1)
        for what, status, box in (("QP 0", BAD_PARAM, group(0)), ("QP 256", BAD_PARAM, group(256)),
                                  ("another group", BAD_PARAM, group(1 << 31)),
                                  ("a QP 0 behind another", BAD_PARAM, group(8, log_size=1)),
                                  ("no hash function", BAD_PARAM, group(8, function=0)),
                                  ("hash function 2", BAD_PARAM, group(8, function=2)),
                                  ("a field that does not exist", BAD_PARAM, group(8, fields=1 << 8)),
                                  ("2^10 entries", BAD_SIZE, group(8, log_size=10)),
                                  ("2^255 entries", BAD_SIZE, group(8, log_size=255)), ("nothing", BAD_PARAM, b"")):
            self.expect(wrong, f"a group of {what}", status, CREATE_RSS, in_param=self.mailbox(box), modifier=1)
        self.expect(wrong, "a bad mailbox", BAD_PARAM, CREATE_RSS, in_param=NOWHERE, modifier=1)
        for index in (1, 1024, (1 << 31) - 1):
            box = self.mailbox(rule(index))
            self.expect(wrong, f"a rule of group {index:#x}", BAD_PARAM, FLOW_ATTACH, in_param=box)
        self.expect(wrong, "a sound group", OK, CREATE_RSS, in_param=self.mailbox(sound), modifier=1)
        self.expect(wrong, "a group's place", BAD_RES_STATE, CREATE_RSS, in_param=self.mailbox(sound), modifier=1)
        self.expect(wrong, "a rule of the group", OK, FLOW_ATTACH, in_param=self.mailbox(rule(1)))
        self.expect(wrong, "a group that a rule names", BUSY, DESTROY_RSS, modifier=1)
        self.expect(wrong, "FLOW_DETACH", OK, FLOW_DETACH)
        self.expect(wrong, "DESTROY_RSS", OK, DESTROY_RSS, modifier=1)
        self.expect(wrong, "DESTROY_RSS again", BAD_RES_STATE, DESTROY_RSS, modifier=1)

    def test_congestion(self, wrong):
        "parameters of congestion control without and with the capability, and what must be refused"
        self.init(wrong)
        for op in CONGESTION_OPS:
            self.expect(wrong, "without the capability", BAD_OP, op, in_param=self.mailbox(),
                        out_param=self.box.dma[1], modifier=1)
        self.device.reset()
        self.init(wrong, caps=CAP_CONGESTION)

        def box(**change):
            values = {"flags": 3, "interval": 50, "dscp": 48, "priority": 6, "threshold": 5, "gain": 256, "alpha": 55,
                      "decrease": 50, "increase": 55, "bytes": 10 ** 7, "additive": 40, "hyper": 400, "least": 10}
            return struct.pack(">IIBBBx8I", *(values | change).values())

        for what, change in (("an unknown flag", {"flags": 4}), ("no interval", {"interval": 0}),
                             ("a DSCP of 64", {"dscp": 64}), ("priority 8", {"priority": 8}),
                             ("no fast recovery", {"threshold": 0}), ("a gain above 1", {"gain": 65537}),
                             ("no period of alpha", {"alpha": 0}), ("periods above a second", {"increase": 1000001}),
                             ("stages of a byte", {"bytes": 1}), ("hyper below additive", {"hyper": 39}),
                             ("no least rate", {"least": 0}), ("a rate above the port's", {"least": 100001})):
            self.expect(wrong, what, BAD_PARAM, SET_CONGESTION, in_param=self.mailbox(box(**change)), modifier=1)
        self.expect(wrong, "a bad mailbox", BAD_PARAM, SET_CONGESTION, in_param=NOWHERE, modifier=1)
        self.expect(wrong, "port 2", BAD_PARAM, SET_CONGESTION, in_param=self.mailbox(box()), modifier=2)
        self.expect(wrong, "sound parameters", OK, SET_CONGESTION, in_param=self.mailbox(box()), modifier=1)
        self.expect(wrong, "QUERY_CONGESTION", OK, QUERY_CONGESTION, out_param=self.box.dma[1], modifier=1)
        if self.box.get(1)[:0x2C] != box():
            wrong.append("QUERY_CONGESTION has not given what was set")

    def test_flow_control(self, wrong):
        "settings of flow control without and with the capability, and what must be refused"
        self.init(wrong)
        for op in FLOW_CONTROL_OPS:
            self.expect(wrong, "without the capability", BAD_OP, op, in_param=self.mailbox(),
                        out_param=self.box.dma[1], modifier=1)
        self.device.reset()
        self.init(wrong, caps=CAP_FLOW_CONTROL)

        def box(flags=12, quanta=1000, roce=3, other=0, xoff=2000, xon=1000, other_xoff=2000, other_xon=1000, classes=1):
            return struct.pack(">IHBB4I8xB", flags, quanta, roce, other, xoff, xon, other_xoff, other_xon, classes)

        def without_sizes(settings):
            return settings[:0x18] + settings[0x20:0x21]

        for what, change in (("an unknown flag", {"flags": 16}), ("PAUSE and PFC", {"flags": 5}),
                             ("no quanta", {"quanta": 0}), ("priority 8", {"roce": 8}),
                             ("priority 255", {"other": 255}), ("both at one priority", {"other": 3}),
                             ("a third class", {"classes": 5}), ("PFC for no class", {"classes": 0}),
                             ("XON at XOFF", {"xon": 2000}), ("XOFF beyond the buffer", {"xoff": (512 << 10) + 1}),
                             ("XON above XOFF", {"other_xon": 2001}), ("no XOFF", {"other_xoff": 0})):
            self.expect(wrong, what, BAD_PARAM, SET_FLOW_CONTROL, in_param=self.mailbox(box(**change)), modifier=1)
        self.expect(wrong, "a bad mailbox", BAD_PARAM, SET_FLOW_CONTROL, in_param=NOWHERE, modifier=1)
        self.expect(wrong, "port 0", BAD_PARAM, SET_FLOW_CONTROL, in_param=self.mailbox(box()))
        self.expect(wrong, "sound settings", OK, SET_FLOW_CONTROL, in_param=self.mailbox(box()), modifier=1)
        self.expect(wrong, "QUERY_FLOW_CONTROL", OK, QUERY_FLOW_CONTROL, out_param=self.box.dma[1], modifier=1)
        if without_sizes(self.box.get(1)) != without_sizes(box()):
            wrong.append("QUERY_FLOW_CONTROL has not given what was set")

    def test_error_buffer(self, wrong):
        "the error buffer without and with the capability, and nowhere to put it"
        self.init(wrong, caps=0)
        self.expect(wrong, "without the capability", BAD_OP, READ_ERROR_BUFFER, out_param=self.box.dma[1])
        self.device.reset()
        self.init(wrong, caps=CAP_STATS)
        self.expect(wrong, "a bad mailbox", BAD_PARAM, READ_ERROR_BUFFER, out_param=NOWHERE)
        self.expect(wrong, "another op_modifier", BAD_PARAM, READ_ERROR_BUFFER, out_param=self.box.dma[1], op_modifier=1)
        self.expect(wrong, "from any number on", OK, READ_ERROR_BUFFER, out_param=self.box.dma[1], modifier=0xffffffff)
        total, first, count = struct.unpack(">QQI", self.box.get(1)[:0x14])
        if (total, first, count) != (0, 0, 0):
            wrong.append(f"a device without a packet tells of {total}, {count} from {first} on")

    def test_on_demand(self, wrong):
        "commands of regions on demand without and with the capability, and what must be refused"
        self.init(wrong)
        for op in PAGING_OPS:
            self.expect(wrong, "without the capability", BAD_OP, op, modifier=1)
        self.device.reset()
        self.init(wrong, caps=CAP_ODP)
        for count in (0, 65537, 0xFFFFFFFF):
            self.expect(wrong, f"{count} MTTs", BAD_PARAM, CLEAR_MTT, in_param=0, modifier=count)
        for first in (1 << 27, 1 << 32, (1 << 64) - 1):
            self.expect(wrong, f"MTT {first:#x}", BAD_INDEX, CLEAR_MTT, in_param=first, modifier=2)
        self.expect(wrong, "MTTs without ICM", NOT_MAPPED, CLEAR_MTT, in_param=0, modifier=1)
        self.expect(wrong, "a QP without ICM", NOT_MAPPED, RESUME_QP, modifier=1)
        self.map_icm(CONTEXT, 0, 0)
        for number in (256, 0xFFFFFF, 0xFFFFFFFF):
            self.expect(wrong, f"QP {number:#x}", BAD_INDEX, RESUME_QP, modifier=number)
        for bits in (4, 1 << 15, 1 << 32, 1 << 63):
            self.expect(wrong, f"bits {bits:#x}", BAD_PARAM, RESUME_QP, in_param=bits, modifier=1)
        self.expect(wrong, "a QP in RST", BAD_QP_STATE, RESUME_QP, modifier=1)

    def test_groups(self, wrong):
        "multicast commands without and with the capability, and what must be refused"
        self.init(wrong)
        for op in GROUP_OPS:
            self.expect(wrong, "without the capability", BAD_OP, op, in_param=self.mailbox(), out_param=self.box.dma[1])
        for what, base in (("one entry", 0x300000), ("2^14 entries", 0x300000 | 14), ("over the QPs", 4)):
            self.device.reset()
            box = self.init_box(caps=0x7F | CAP_MULTICAST, mcg=base)
            self.expect(wrong, what, BAD_PARAM, INIT_HCA, in_param=self.mailbox(box))
        self.device.reset()
        self.init(wrong, caps=0x7F | CAP_MULTICAST, mcg=0x300000 | 4)

        def entry(gid, *words, next_index=0):
            return struct.pack(">I12x16s", next_index, gid) + b"".join(word.to_bytes(4, "big") for word in words)

        group, qp = bytes.fromhex("ff0e" + "00" * 13 + "01"), 1 << 31 | 8
        self.expect(wrong, "an entry without ICM", NOT_MAPPED, WRITE_MGM, in_param=self.mailbox(entry(group, qp)))
        if self.map_icm(CONTEXT, 0x300000, 0) != OK:
            wrong.append("MAP_ICM of the groups was refused")
        for what, box in (("QP 0", entry(group, 1 << 31)), ("QP 256", entry(group, 1 << 31 | 256)),
                          ("a QP twice", entry(group, qp, qp)), ("no group", entry(bytes(16), qp)),
                          ("the next in a bucket", entry(group, qp, next_index=1)),
                          ("the next beyond the table", entry(group, qp, next_index=16)),
                          ("the next far beyond it", entry(group, qp, next_index=0xFFFFFFFF))):
            self.expect(wrong, f"an entry with {what}", BAD_PARAM, WRITE_MGM, in_param=self.mailbox(box))
        for index in (16, 17, 0xFFFFFFFF):
            for op in (READ_MGM, WRITE_MGM):
                self.expect(wrong, f"entry {index:#x}", BAD_INDEX, op, in_param=self.mailbox(entry(group, qp)),
                            out_param=self.box.dma[1], modifier=index)
        self.expect(wrong, "the bucket of no group", BAD_PARAM, MGID_HASH, in_param=self.mailbox())
        self.expect(wrong, "a bucket with a modifier", BAD_PARAM, MGID_HASH, in_param=self.mailbox(group), modifier=1)
        self.expect(wrong, "a sound entry", OK, WRITE_MGM, in_param=self.mailbox(entry(group, qp)), modifier=3)

    def test_event_mode(self, wrong):
        "a command by event without an event queue"
        self.expect(wrong, "before INIT_HCA", BAD_SYS_STATE, NOP, modifier=0x1F, event=True)
        self.init(wrong)
        self.expect(wrong, "after INIT_HCA", BAD_SYS_STATE, NOP, modifier=0x1F, event=True)

    def test_widths(self, wrong):
        "accesses of a wrong width or to nowhere"
        device = self.device
        for index in range(6):
            device.hcr(index, 0)
        for write, unit in ((device.byte, 1), (device.half, 2), (device.quad, 8)):
            for offset in range(0, 24, max(unit, 4)):
                write[(HCR + offset) // unit] = 0x5A
        if any(device.hcr(index) for index in range(6)):
            wrong.append(f"HCR after writes of other widths: {[hex(device.hcr(i)) for i in range(6)]}")
        device.hcr(2, 0x12345678)
        reads = [device.byte[HCR + 8], device.half[(HCR + 8) // 2], device.quad[(HCR + 8) // 8]]
        if any(reads):
            wrong.append(f"reads of other widths: {reads}")
        if device.hcr(2) != 0x12345678:
            wrong.append("a word of the HCR does not keep its value")
        for offset in (0, 0x1FFC, 0x40000, HCR - 4, HCR + 0x1C, RESET - 4, RESET, RESET + 4, 0xFFFFC):
            if device.word[offset // 4]:
                wrong.append(f"offset {offset:#x} reads {device.word[offset // 4]:#x}")
            if offset != RESET:
                device.word[offset // 4] = 0xFFFFFFFF
        self.init(wrong)
        for value in (0, 2, 0xFFFFFFFE):
            device.word[RESET // 4] = value & ~1
        device.half[RESET // 2] = 1
        device.byte[RESET] = 1
        self.expect(wrong, "nothing was a reset", BAD_SYS_STATE, INIT_HCA, in_param=self.mailbox(self.init_box()))
        device.reset()
        self.expect(wrong, "a reset", OK, INIT_HCA, in_param=self.mailbox(self.init_box()))

    def test_bus_master(self, wrong):
        "mailboxes with bus mastering off"
        self.device.configure(0x2)
        try:
            self.box.put(b"\xff" * PAGE, 1)
            self.expect(wrong, "QUERY_DEV_LIM", BAD_PARAM, QUERY_DEV_LIM, out_param=self.box.dma[1])
            self.expect(wrong, "INIT_HCA", BAD_PARAM, INIT_HCA, in_param=self.mailbox(self.init_box()))
            if self.box.get(1) != b"\xff" * PAGE:
                wrong.append("memory was written without bus mastering")
        finally:
            self.device.configure(0x6)

    def test_noise(self, wrong):
        "20000 random commands"
        seed = random.Random(20)
        self.init(wrong)
        known = sorted(KNOWN - {MAP_ICM})
        boxes = [NOWHERE, self.box.dma[0], self.box.dma[1], 0xFFFFFFFFFFFFF000, self.box.dma[1] + 8]
        self.box.put(b"")
        for _ in range(20000):
            op = seed.choice(known) if seed.random() < 0.9 else seed.randrange(0x1000)
            if op == MAP_ICM:
                continue
            modifier = seed.choice([0, 1, 2, 8, 63, 64, 255, 256, 1 << 24, 0x7FFFFFFF, 0xFFFFFFFF, seed.getrandbits(32)])
            self.device.command(op, in_param=seed.choice(boxes), out_param=seed.choice(boxes[:1] + boxes[2:]),
                                modifier=modifier, op_modifier=seed.choice([0, 0, 0, 1, 2, 3, 255]),
                                event=seed.random() < 0.05)
        self.device.reset()


if __name__ == "__main__":
    Tests(Device(sys.argv[1])).run()
    print(f"1..{number}")
    sys.exit(1 if failed else 0)
