# SPDX-License-Identifier: GPL-2.0-or-later
"""The RDMA loopback controller in QEMU: registers at all offsets and widths, invalid addresses, and resets.

The numbers are from docs/reference/loopback.rst and the PCI Express specification.
"""

import struct
import time

import machine

SLOT, REGISTERS, MEMORY = 4, 0xe0000000, 0x1000000
COMMAND, BAR0, CAPABILITIES = 0x04, 0x10, 0x34
MEMORY_AND_MASTER, INTX_OFF = 6, 1 << 10
STATUS_INTERRUPT = 1 << 19
CAP_EXPRESS, INITIATE_FLR = 0x10, 1 << 15
CONTROL, HW_STATUS, IRQ_ENABLE, IRQ_STATUS, GLOBAL_CFG = 0x00, 0x04, 0x08, 0x0c, 0x10
SQ_BASE, SQ_SIZE, SQ_HEAD, SQ_TAIL, CQ_BASE, CQ_SIZE, CQ_HEAD, CQ_TAIL = 0x20, 0x28, 0x2c, 0x30, 0x40, 0x48, 0x4c, 0x50
RDMA_STATE = 0x5c
ENABLE, INTERRUPT = 1, 1 << 8
CHECKS, SOFT_RESET, IRQ, PLACED, WIDE = 1 << 0, 1 << 2, 1 << 3, 1 << 4, 1 << 5
SQ, CQ, SOURCE, DESTINATION = MEMORY, MEMORY + 0x1000, MEMORY + 0x10000, MEMORY + 0x40000
ENTRIES = 8
WRITE = 1
NOWHERE = 0xd0000000
# Of 8,388,607 bytes.
LONG_SOURCE, LONG_DESTINATION = MEMORY + 0x1000000, MEMORY + 0x2000000
# Turns of one transfer: 32 fragments of 4096 bytes each.
LONG_TURNS = 70


class Controller:
    """The function, enabled, with the registers at REGISTERS."""

    def __init__(self, m):
        self.m = m
        self.config = machine.ECAM + (SLOT << 15)
        self.sq, self.cq = SQ, CQ
        same(m.read32(self.config), 0x10f21af4, "vendor and device")
        self.enable()

    def enable(self):
        self.m.write32(self.config + BAR0, REGISTERS)
        self.m.write32(self.config + COMMAND, MEMORY_AND_MASTER)

    def get(self, offset):
        return self.m.read32(REGISTERS + offset)

    def set(self, offset, value):
        self.m.write32(REGISTERS + offset, value)

    def start(self, extensions=0, sq=SQ, cq=CQ, sizes=ENTRIES):
        self.sq, self.cq = sq, cq
        for offset, value in ((GLOBAL_CFG, extensions << 16), (SQ_BASE, sq), (SQ_SIZE, sizes), (CQ_BASE, cq), (CQ_SIZE, sizes),
                              (CONTROL, ENABLE)):
            self.set(offset, value)

    def post(self, source=SOURCE, destination=DESTINATION, length=64, number=7):
        """A descriptor at the tail."""
        tail = self.get(SQ_TAIL)
        self.m.write(self.sq + 64 * tail, struct.pack("<IIQQI36x", number, WRITE, source, destination, length))
        self.set(SQ_TAIL, (tail + 1) % ENTRIES)

    def completion(self):
        """(number, status, bytes) of the next completion, or None."""
        head = self.get(CQ_HEAD)
        if head == self.get(CQ_TAIL):
            return None
        words = struct.unpack("<8I", self.m.read(self.cq + 32 * head, 32))
        self.set(CQ_HEAD, (head + 1) % ENTRIES)
        return words[4], words[1], words[2]

    def stats(self):
        return self.m.qmp("qom-get", path="/machine/peripheral/loop", property="stats")

    def reset(self):
        """FLR, after which BAR and command are set again."""
        at = self.m.read32(self.config + CAPABILITIES) & 0xff
        while self.m.read32(self.config + at) & 0xff != CAP_EXPRESS:
            at = self.m.read32(self.config + at) >> 8 & 0xff
        control = self.m.read32(self.config + at + 8)
        self.m.write32(self.config + at + 8, control & 0xffff | INITIATE_FLR)
        self.enable()

    def sound(self):
        """It copies, without extensions, after a reset."""
        self.reset()
        self.start()
        self.m.write(SOURCE, bytes(range(1, 65)))
        self.m.write(DESTINATION, bytes(65))
        self.post()
        same(self.completion(), (7, 0, 64), "completion")
        same(self.m.read(DESTINATION, 65), bytes(range(1, 65)) + b"\0", "copy")


def same(found, wanted, what):
    if found != wanted:
        raise AssertionError(f"{what}: {found!r} instead of {wanted!r}")


def device(properties=""):
    return machine.started("-device", f"rdma-loopback,id=loop,addr={SLOT}.0{properties}")


def test_widths():
    """loopback: registers take aligned words alone; other accesses read 0 and write nothing"""
    with device() as m:
        controller = Controller(m)
        controller.set(SQ_BASE, 0x12345678)
        for offset in (*range(0x80), 0x80, 0xffc):
            for width in (1, 2, 4, 8):
                if width == 4 and offset % 4 == 0:
                    continue
                if offset + width > 0x1000:
                    continue
                m.ask(f"write{'bwlq'[width.bit_length() - 1]} {REGISTERS + offset:#x} {(1 << 8 * width) - 1:#x}")
                m.read_number(REGISTERS + offset, width)
        for offset in range(0x80, 0x1000, 4):
            controller.set(offset, 0xffffffff)
            same(controller.get(offset), 0, f"register {offset:#x}")
        controller.sound()


def test_invalid_addresses():
    """loopback: queues, sources and destinations that are registers or nothing are errors that are counted"""
    with device() as m:
        controller = Controller(m)
        for address in (REGISTERS, machine.ECAM, NOWHERE, machine.RAM_BYTES - 32):
            controller.reset()
            before = controller.stats()["dma_errors"]
            controller.start()
            controller.post(source=address, number=1)
            controller.post(destination=address, number=2)
            same([controller.completion() for _ in range(3)], [(1, 0, 64), (2, 0, 64), None], "completions")
            same(controller.stats()["dma_errors"], before + 2, "errors")
            controller.reset()
            controller.start(CHECKS)
            controller.post(source=address, number=3)
            controller.post(destination=address, number=4)
            found = [controller.completion() for _ in range(2)]
            same([each[:2] for each in found], [(3, 1), (4, 2)], "completions with status")
            controller.reset()
            controller.start(sq=address, cq=address)
            controller.set(SQ_TAIL, 3)
            same((controller.get(SQ_HEAD), controller.get(CQ_TAIL)), (3, 3), "indices")
        controller.sound()


def test_odd_queues():
    """loopback: queues may be at any byte, and wrap"""
    with device() as m:
        controller = Controller(m)
        m.write(SOURCE, bytes(range(1, 65)))
        for sq, cq in ((SQ + 1, CQ + 3), (SQ + 63, CQ + 31)):
            controller.reset()
            controller.start(sq=sq, cq=cq)
            for number in range(2 * ENTRIES + 1):
                m.write(DESTINATION, bytes(64))
                controller.post(number=number)
                same(controller.completion(), (number, 0, 64), "completion")
                same(m.read(DESTINATION, 64), bytes(range(1, 65)), "copy")


def test_lengths():
    """loopback: transfers of 0, 65,535 and 8,388,607 bytes; without WIDE the last overwrites its own beginning"""
    with device() as m:
        controller = Controller(m)
        data = b"".join(struct.pack("<I", number * 2654435761 & 0xffffffff) for number in range(1 << 21))[:-1]
        m.write(LONG_SOURCE, data)
        short = len(data) // 65536 * 65536
        overwritten = data[short:] + data[short - 65536 + len(data) - short:short]
        for extensions, length, wanted in ((0, 0, b""), (0, 65535, data[:65535]), (0, len(data), overwritten),
                                           (WIDE, len(data), data)):
            controller.reset()
            controller.start(extensions)
            m.write(LONG_DESTINATION, bytes(len(wanted) + 1))
            controller.post(source=LONG_SOURCE, destination=LONG_DESTINATION, length=length)
            for _ in range(LONG_TURNS):
                m.advance(20_000)
            same(controller.completion(), (7, 0, length), "completion")
            found = m.read(LONG_DESTINATION, len(wanted) + 1)
            same(found == wanted + b"\0", True, f"a copy of {length} bytes with extensions {extensions:#x}")


def test_late_receiver():
    """loopback: a late receiver writes data a turn after the completion, but with PLACED before it"""
    with device(",late-receiver=on") as m:
        controller = Controller(m)
        data = bytes(range(1, 65))
        m.write(SOURCE, data)
        for extensions, at_once in ((0, bytes(64)), (PLACED, data)):
            controller.reset()
            controller.start(extensions)
            m.write(DESTINATION, bytes(64))
            controller.post()
            same(controller.completion(), (7, 0, 64), "completion")
            same(m.read(DESTINATION, 64), at_once, "data at the time of the completion")
            m.advance(20_000)
            same(m.read(DESTINATION, 64), data, "data a turn later")


def stall(m, on):
    m.qmp("qom-set", path="/machine/peripheral/loop", property="stalled", value=on)


def test_time_out():
    """loopback: with CHECKS a transfer that stalls ends with status 04 after the property's time, and without never"""
    with device(",timeout=50,stalled=on") as m:
        controller = Controller(m)
        controller.start(CHECKS)
        controller.post(number=1)
        controller.post(number=2)
        m.advance(49_999_999)
        same((controller.completion(), controller.get(RDMA_STATE)), (None, 5), "completion and state before the time")
        m.advance(1)
        same((controller.completion(), controller.completion()), ((1, 4, 0), None), "completions after the time")
        m.advance(50_000_000)
        same((controller.completion(), controller.stats()["timeouts"]), ((2, 4, 0), 2), "the next transfer")
        # A transfer that goes on in time has no time-out.
        controller.post(number=3)
        m.advance(40_000_000)
        stall(m, False)
        same(controller.completion(), (3, 0, 64), "a transfer that goes on")
        stall(m, True)
        controller.post(number=4)
        m.advance(49_999_999)
        same(controller.completion(), None, "completion before the time")
        m.advance(1)
        same(controller.completion(), (4, 4, 0), "completion after the time")
        # The document's controller has no time-out: only a reset ends this.
        controller.reset()
        controller.start()
        controller.post(number=5)
        controller.set(CONTROL, 0)
        m.advance(10_000_000_000)
        same((controller.completion(), controller.get(RDMA_STATE)), (None, 5), "completion and state without CHECKS")
        controller.reset()
        same(controller.get(RDMA_STATE), 0, "state after a reset")
        stall(m, False)
        controller.sound()


def test_sizes():
    """loopback: sizes that cannot be are counted; CHECKS does not start with them, and a size of 0 is one of 65,536"""
    with device() as m:
        controller = Controller(m)
        for number, (sizes, tail) in enumerate(((0, 1), (1, 1), (ENTRIES, ENTRIES), (ENTRIES, 0xffff)), 1):
            controller.reset()
            controller.start(CHECKS, sizes=sizes)
            controller.set(SQ_TAIL, tail)
            same(controller.get(HW_STATUS) & 0xffff, 1, "HW_STATUS")
            found = controller.get(SQ_HEAD), controller.stats()["bad_sizes"]
            same(found, (0, number), f"sizes {sizes}, tail {tail:#x}")
            controller.set(SQ_SIZE, ENTRIES)
            controller.set(CQ_SIZE, ENTRIES)
            controller.set(SQ_TAIL, 1)
            same((controller.get(HW_STATUS) & 0xffff, controller.get(SQ_HEAD)), (0, 1), "HW_STATUS and SQ_HEAD then")
        controller.reset()
        controller.start(sizes=0)
        controller.set(SQ_TAIL, 5)
        same((controller.get(SQ_HEAD), controller.get(CQ_TAIL)), (5, 5), "indices of queues of size 0")
        controller.sound()


def test_own_registers():
    """loopback: a transfer to the controller's own registers changes none of them"""
    with device() as m:
        controller = Controller(m)
        controller.start()
        m.write(SOURCE, b"\xff" * 128)
        controller.post(destination=REGISTERS, length=128)
        same(controller.completion(), (7, 0, 128), "completion")
        same((controller.get(SQ_BASE), controller.get(CONTROL), controller.get(SQ_TAIL)), (SQ, ENABLE, 1), "registers")
        controller.sound()


def test_endless():
    """loopback: a size of 1 and tails beyond the size run in turns; the machine answers, and a reset ends them"""
    for sizes, tail in ((1, 1), (ENTRIES, ENTRIES), (ENTRIES, 0xffff)):
        with device() as m:
            controller = Controller(m)
            controller.start(sizes=sizes)
            controller.set(SQ_TAIL, tail)
            seen = controller.stats()["descriptors"]
            for _ in range(50):
                m.step()
            if controller.stats()["descriptors"] <= seen:
                raise AssertionError(f"sizes {sizes}, tail {tail:#x}: it stands still")
            controller.reset()
            seen = controller.stats()["descriptors"]
            for _ in range(50):
                m.ask("clock_step 100000")
            same(controller.stats()["descriptors"], seen, "descriptors after the reset")
            controller.sound()


def test_stopped():
    """loopback: without bus mastering nothing is read or written, and a controller that is reset does no DMA"""
    with device() as m:
        controller = Controller(m)
        m.write32(controller.config + COMMAND, 2)
        controller.start()
        m.write(DESTINATION, bytes(64))
        controller.set(SQ_TAIL, 1)
        same(m.read(CQ, 32), bytes(32), "completion")
        controller.reset()
        controller.start(CHECKS | SOFT_RESET)
        controller.post(length=65536)
        controller.set(CONTROL, ENABLE | 2)
        controller.reset()
        controller.start(SOFT_RESET)
        m.write(SOURCE, b"\x5a" * 65536)
        controller.post(length=0x7fffff)
        controller.set(CONTROL, ENABLE | 2)
        m.write(DESTINATION, bytes(65536))
        for _ in range(20):
            m.ask("clock_step 100000")
        same(m.read(DESTINATION, 65536), bytes(65536), "bytes after a soft reset")
        same([controller.get(offset) for offset in (CONTROL, SQ_BASE, SQ_TAIL, SQ_HEAD, GLOBAL_CFG)], [0] * 5, "registers")
        controller.sound()


def test_interrupt():
    """loopback: the interrupt is asserted with its extension alone, until it is cleared"""
    with device() as m:
        controller = Controller(m)
        for extensions, wanted in ((0, False), (IRQ, True)):
            controller.reset()
            controller.start(extensions)
            controller.set(IRQ_ENABLE, 1)
            controller.set(CONTROL, ENABLE | INTERRUPT)
            controller.post()
            same(controller.completion(), (7, 0, 64), "completion")
            same(bool(m.read32(controller.config + COMMAND) & STATUS_INTERRUPT), wanted, "interrupt status")
            controller.set(IRQ_STATUS, 1)
            same(bool(m.read32(controller.config + COMMAND) & STATUS_INTERRUPT), False, "interrupt status, cleared")


def test_properties():
    """loopback: extensions that do not exist are refused with the limit; those that exist are told"""
    try:
        with device(",extensions=0x40") as m:
            Controller(m)
            raise AssertionError("it was taken")
    except AssertionError as error:
        if "property 'extensions' must be at most 0x3f, not 0x40" not in str(error):
            raise
    for extensions in (0, 0x15, 0x3f):
        with device(f",extensions={extensions:#x}") as m:
            same(Controller(m).get(HW_STATUS), extensions << 16, "HW_STATUS")


def test_header():
    """loopback: the trace shows each header, beat by beat, low byte first"""
    m = machine.Machine("-device", f"rdma-loopback,id=loop,addr={SLOT}.0", traces=("loopback_header",))
    try:
        controller = Controller(m)
        controller.start()
        controller.post(length=4097, number=0x12345678)
        address = DESTINATION.to_bytes(4, "little").hex()
        wanted = [f" 01010000 78563400 {address} 00000000 00100000 ffff0000 00ababab",
                  f" 01010000 78563400 {address} 00100000 01000000 ffff0000 00ababab"]
        end = time.monotonic() + machine.SILENCE_S
        while len(found := [line for line in m.trace() if "loopback_header" in line]) < 2 and time.monotonic() < end:
            time.sleep(0.01)
        same([line[line.rindex(" 01010000"):].rstrip() for line in found], wanted, "headers")
    finally:
        m.close()
