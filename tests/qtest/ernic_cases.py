# SPDX-License-Identifier: GPL-2.0-or-later
"""ERNIC and ETRNIC in QEMU: registers at all offsets and widths, two devices on a link, invalid addresses, and resets.

The numbers are from seed 000, tables 2-1, 2-2 and 2-7, from the public register map of PG332 v3, and from the PCI Express
specification.
"""

import random
import struct

import machine

SLOTS, BARS, MEMORIES = (4, 5, 6), (0xe0000000, 0xe0100000, 0xe0200000), (0x1000000, 0x2000000, 0x3000000)
COMMAND, BAR0, CAPABILITIES, EXTENDED = 0x04, 0x10, 0x34, 0x100
MEMORY_AND_MASTER = 6
CAP_EXPRESS, INITIATE_FLR, SERIAL_NUMBER = 0x10, 1 << 15, 3
MACS = ((0x0200, 0x00000001), (0x0200, 0x00000002), (0x0200, 0x00000003))
IPS = (0xc0a80001, 0xc0a80002, 0xc0a80003)
# What the net layer of QEMU may hold for the adapter behind a device.
ETHERNET_QUEUE = 256
QP, DEPTH, SLOT_BYTES = 2, 8, 1024
CONF, MAC_LSB, MAC_MSB, IPV4, IN_ERRORS, IN_ERRORS_SIZE, IN_ERRORS_POINTER = 0x00, 0x10, 0x14, 0x70, 0x88, 0x90, 0x94
ALL_IN, INTEN, INTSTS, RQ_BANK, CQ_BANK = 0x130, 0x180, 0x184, 0x190, 0x1b0
QPCONF, QPADVCONF, RQBA, SQBA, CQBA, RQDB, CQDB = 0x00, 0x04, 0x08, 0x10, 0x18, 0x20, 0x28
CQHEAD, RQCI, SQPI, QDEPTH, SQPSN, LSTRQREQ, DEST, TIMEOUT = 0x30, 0x34, 0x38, 0x3c, 0x40, 0x44, 0x48, 0x4c
PEER_LSB, PEER_MSB, PEER_IP, STATQP, RQPI, PD = 0x50, 0x54, 0x60, 0x88, 0x9c, 0xb0
WRITE, SEND, READ = 0x00, 0x02, 0x04
# In the memory of a device.
SQ, CQ, RQ, DOORBELLS, ERRORS, BUFFER = 0x0000, 0x1000, 0x10000, 0x2000, 0x3000, 0x40000
RANGE, KEY, ENTRY = 0x10000000, 0x5a, 3
NOWHERE = 0xd0000000
# FATAL, ours: memory that a WQE or a queue names is not there.
FATAL_MEMORY = 0x21


class Ernic:
    """Device `index` of the machine, enabled, with one QP to device `peer`: of two, to the other one."""

    def __init__(self, m, index, globals_at=0x20000, peer=None):
        self.m, self.index, self.globals = m, index, globals_at
        self.peer = 1 - index if peer is None else peer
        self.config, self.bar, self.memory = machine.ECAM + (SLOTS[index] << 15), BARS[index], MEMORIES[index]
        self.tail = 0
        same(m.read32(self.config), 0x10f31af4, "vendor and device")
        self.enable()

    def enable(self):
        self.m.write32(self.config + BAR0, self.bar)
        self.m.write32(self.config + COMMAND, MEMORY_AND_MASTER)

    def get(self, offset):
        return self.m.read32(self.bar + self.globals + offset)

    def set(self, offset, value):
        self.m.write32(self.bar + self.globals + offset, value)

    def get_qp(self, offset):
        return self.get(0x200 + (QP - 1) * 0x100 + offset)

    def set_qp(self, offset, value):
        self.set(0x200 + (QP - 1) * 0x100 + offset, value)

    def set_up(self, **queues):
        """queues: addresses in place of those in the device's memory."""
        at = {name: queues.get(name, self.memory + offset)
              for name, offset in (("sq", SQ), ("cq", CQ), ("rq", RQ), ("cqdb", DOORBELLS), ("rqdb", DOORBELLS + 4))}
        self.tail = 0
        peer = self.peer
        for offset, value in ((MAC_MSB, MACS[self.index][0]), (MAC_LSB, MACS[self.index][1]), (IPV4, IPS[self.index]),
                              (IN_ERRORS, self.memory + ERRORS), (IN_ERRORS_SIZE, 16), (INTEN, 0xff),
                              (CONF, 1 | QP << 8 | 0xc000 << 16)):
            self.set(offset, value)
        for offset, value in ((QPCONF, 0x3c | 2 << 8 | SLOT_BYTES // 256 << 16), (QPADVCONF, 64 << 8 | 0xffff << 16),
                              (RQBA, at["rq"]), (SQBA, at["sq"]), (CQBA, at["cq"]), (RQDB, at["rqdb"]), (CQDB, at["cqdb"]),
                              (QDEPTH, DEPTH | DEPTH << 16), (SQPSN, 100), (LSTRQREQ, 99), (DEST, QP),
                              (TIMEOUT, 14 | 7 << 8 | 7 << 11 | 1 << 16), (PEER_MSB, MACS[peer][0]),
                              (PEER_LSB, MACS[peer][1]), (PEER_IP, IPS[peer]), (PD, 9)):
            self.set_qp(offset, value)
        # The protection domain table: PD, address, bus address, key, length, access for both.
        for number, value in enumerate((9, RANGE, 0, self.memory + BUFFER, 0, KEY, 0x10000, 2)):
            self.m.write32(self.bar + ENTRY * 0x100 + 4 * number, value)
        self.set_qp(QPCONF, self.get_qp(QPCONF) | 1)

    def post(self, opcode, length, offset=0, remote=0, laddr=None):
        address = self.memory + BUFFER + offset if laddr is None else laddr
        wqe = struct.pack("<HHQIB3xQI32x", 0x700 + self.tail, 0, address, length, opcode, RANGE + remote, ENTRY << 8 | KEY)
        self.m.write(self.memory + SQ + 64 * (self.tail % DEPTH), wqe)
        self.tail += 1
        self.set_qp(SQPI, (self.tail - 1) % DEPTH + 1)
        for _ in range(20):
            self.m.advance(20_000)

    def reset(self):
        """FLR, after which BAR and command are set again."""
        at = self.m.read32(self.config + CAPABILITIES) & 0xff
        while self.m.read32(self.config + at) & 0xff != CAP_EXPRESS:
            at = self.m.read32(self.config + at) >> 8 & 0xff
        control = self.m.read32(self.config + at + 8)
        self.m.write32(self.config + at + 8, control & 0xffff | INITIATE_FLR)
        self.enable()

    def stats(self):
        return self.m.qmp("qom-get", path=f"/machine/peripheral/e{self.index}", property="stats")


def same(found, wanted, what):
    if found != wanted:
        raise AssertionError(f"{what}: {found!r} instead of {wanted!r}")


def devices(properties=""):
    words = []
    for index, slot in enumerate(SLOTS):
        words += ["-netdev", f"hubport,hubid=0,id=n{index}",
                  "-device", f"ernic,id=e{index},netdev=n{index},addr={slot}.0,mac=02:00:00:00:00:0{index + 1}{properties}"]
    return machine.started(*words, traces=("ernic_interrupt",))


def sound(m, first, second):
    """A SEND from one to the other, after a reset of both."""
    for each in (first, second):
        each.reset()
        each.set_up()
    data = bytes(range(100))
    m.write(first.memory + BUFFER, data)
    m.write(second.memory + RQ, bytes(100))
    first.post(SEND, 100)
    same((first.get_qp(CQHEAD), second.get_qp(RQPI)), (1, 1), "indices of a SEND")
    same(m.read(second.memory + RQ, 100), data, "what a SEND carries")


def test_identity():
    """ernic: BAR0 has 256 KB or 64 KB, and the serial number is the EUI-64 of the MAC address"""
    for personality, size in (("ernic", 0x40000), ("etrnic", 0x10000)):
        with devices(f",personality={personality}") as m:
            first = Ernic(m, 0)
            m.write32(first.config + COMMAND, 0)
            m.write32(first.config + BAR0, 0xffffffff)
            same(0x100000000 - (m.read32(first.config + BAR0) & ~0xf), size, "bytes of BAR0")
            first.enable()
            same(m.read32(first.config + EXTENDED) & 0xffff, SERIAL_NUMBER, "capability")
            same((m.read32(first.config + EXTENDED + 8), m.read32(first.config + EXTENDED + 4)), (0x020000ff, 0xfe000001),
                 "serial number")


def test_properties_refused():
    """ernic: properties that the personality does not have are refused with the bounds"""
    for properties, said in ((",personality=other", "must be ernic or etrnic, not 'other'"),
                             (",qps=7", "must be 8 to 255 for personality ernic, not 7"),
                             (",qps=256", "must be 8 to 255 for personality ernic, not 256"),
                             (",personality=etrnic,qps=129", "must be 8 to 128 for personality etrnic, not 129"),
                             (",extensions=4", "must be at most 0x3, not 0x4"),
                             (",clock-mhz=0", "must be 1 to 1000, not 0"),
                             (",clock-mhz=1001", "must be 1 to 1000, not 1001")):
        try:
            with devices(properties):
                pass
        except AssertionError as error:
            if said not in str(error):
                raise
        else:
            raise AssertionError(f"{properties} is taken")


def test_widths():
    """ernic: registers take aligned words alone; other accesses read 0, write nothing and are counted"""
    with devices() as m:
        first, second = Ernic(m, 0), Ernic(m, 1)
        first.set(MAC_LSB, 0x11223344)
        offsets = [*range(0x1f0, 0x210), *range(0x20000, 0x20020), *range(0x20200, 0x20210), 0x3fff8]
        accesses = [(offset, width) for offset in offsets for width in (1, 2, 4, 8) if width != 4 or offset % 4]
        before = first.stats()["bad_accesses"]
        for offset, width in accesses:
            m.write_numbers([(first.bar + offset, width, (1 << 8 * width) - 1)])
            same(m.read_number(first.bar + offset, width), 0, f"{width} bytes at {offset:#x}")
        same(first.get(MAC_LSB), 0x11223344, "a register")
        same(first.stats()["bad_accesses"] - before, 2 * len(accesses), "accesses counted")
        sound(m, first, second)


def test_link():
    """ernic: SEND, WRITE and READ between two devices, with completions, doorbells and interrupts"""
    with devices() as m:
        first, second = Ernic(m, 0), Ernic(m, 1)
        sound(m, first, second)
        same(struct.unpack("<I", m.read(first.memory + CQ, 4))[0], 0x700 | SEND << 16, "CQE")
        same(m.read(first.memory + DOORBELLS, 4), struct.pack("<I", 1), "CQ doorbell")
        same(m.read(second.memory + DOORBELLS + 4, 4), struct.pack("<I", 1), "RQ doorbell")
        same((first.get(INTSTS), first.get(CQ_BANK)), (1 << 4, 1 << QP), "interrupt of the completion")
        same((second.get(INTSTS), second.get(RQ_BANK)), (1 << 6, 1 << QP), "interrupt of the SEND")
        same(m.traced("ernic_interrupt e0: asserted 1"), 1, "lines asserted")
        first.set(CQ_BANK, 1 << QP)
        same((first.get(INTSTS), m.traced("ernic_interrupt e0: asserted 0")), (0, 1), "line deasserted")
        data = bytes(number * 7 & 0xff for number in range(5000))
        m.write(first.memory + BUFFER, data)
        first.post(WRITE, 5000, remote=0x2000)
        same(m.read(second.memory + BUFFER + 0x2000, 5000), data, "what a WRITE carries")
        first.post(READ, 5000, offset=0x8000, remote=0x2000)
        same(m.read(first.memory + BUFFER + 0x8000, 5000), data, "what a READ brings")
        same((first.get_qp(CQHEAD), first.get_qp(STATQP) & 1), (3, 0), "completions")


def behind(adapter):
    """Device 0 on a link with device 2; `adapter` is behind device 0, on netdev n1."""
    words = ["-netdev", "hubport,hubid=1,id=e0", "-netdev", "hubport,hubid=1,id=n1"]
    for index, more in ((0, ",ethernet=e0"), (2, "")):
        words += ["-netdev", f"hubport,hubid=0,id=n{index}", "-device",
                  f"ernic,id=e{index},netdev=n{index},addr={SLOTS[index]}.0,mac=02:00:00:00:00:0{index + 1}{more}"]
    return machine.started(*words, "-device", adapter, traces=("ernic_interrupt",))


def test_ethernet():
    """ernic: an adapter behind a device has the link's frames that are not its RoCE v2, and sends to the link"""
    # The adapter is another ERNIC: its frames are to other MAC addresses.
    with behind("ernic,id=e1,netdev=n1,addr=5.0,mac=02:00:00:00:00:02") as m:
        front, adapter, far = Ernic(m, 0, peer=2), Ernic(m, 1, peer=2), Ernic(m, 2, peer=0)
        sound(m, front, far)
        same(front.stats()["frames_passed"], 0, "frames passed of those for the device")
        far.peer = 1
        sound(m, adapter, far)
        # The SEND, and its ACK.
        same((front.stats()["frames_forwarded"], front.stats()["frames_passed"]), (1, 1), "frames of the adapter")
        same(front.get(ALL_IN), 1, "packets of the device, which is the ACK of its SEND")
        # Also while the device in front is disabled or reset.
        front.set(CONF, 0)
        sound(m, adapter, far)
        front.reset()
        sound(m, adapter, far)
        same((front.stats()["frames_forwarded"], front.stats()["frames_overrun"]), (3, 0), "frames of the adapter")


def test_ethernet_takes_nothing():
    """ernic: the frames for an adapter that takes none are bounded, and counted when they are lost"""
    with behind("virtio-net-pci,netdev=n1,mac=02:00:00:00:00:01,addr=5.0") as m:
        front, far = Ernic(m, 0, peer=2), Ernic(m, 2, peer=1)
        front.set_up()
        far.set_up()
        # Packets of 1024 bytes to a MAC address that is not the device's, and all of them again.
        far.post(WRITE, 300 * 1024)
        for _ in range(5):
            m.advance(100_000_000)
        same(front.stats()["frames_passed"], ETHERNET_QUEUE, "frames passed")
        if front.stats()["frames_overrun"] < 300:
            raise AssertionError(f"frames lost: {front.stats()}")
        # The device goes on: the same from there to it.
        far.peer = 0
        sound(m, front, far)


def test_invalid_addresses():
    """ernic: queues, doorbells and data that are registers or nothing are counted, or make the QP fatal"""
    with devices() as m:
        first, second = Ernic(m, 0), Ernic(m, 1)
        for address in (first.bar, machine.ECAM, NOWHERE, machine.RAM_BYTES - 32):
            for each in (first, second):
                each.reset()
            second.set_up()
            before = first.stats()["dma_errors"]
            first.set_up(cq=address & ~0x1f, cqdb=address & ~3)
            first.post(SEND, 8)
            same(first.get_qp(CQHEAD), 1, "CQHEAD without a CQ")
            if address != machine.RAM_BYTES - 32:
                same(first.stats()["dma_errors"], before + 2, "errors counted")
            first.post(SEND, 100, laddr=address)
            same((first.get_qp(STATQP) & 1, first.get(IN_ERRORS_POINTER)), (1, 1), "a SEND from there")
            same(struct.unpack("<HH", m.read(first.memory + ERRORS, 4)), (FATAL_MEMORY, QP), "the error entry")
            first.reset()
            first.set_up(sq=address & ~0x1f)
            first.post(SEND, 8)
            same(first.get_qp(STATQP) & 1, 1, "a queue there")
            for each in (first, second):
                each.reset()
            first.set_up()
            second.set_up(rq=address & ~0xff)
            first.post(SEND, 100)
            same(second.get_qp(STATQP) & 1, int(address != machine.RAM_BYTES - 32), "a slot there")
        sound(m, first, second)


def test_without_bus_mastering():
    """ernic: without bus mastering nothing is read or written"""
    with devices() as m:
        first, second = Ernic(m, 0), Ernic(m, 1)
        first.set_up()
        second.set_up()
        m.write32(first.config + COMMAND, 2)
        first.post(SEND, 8)
        same((first.get_qp(STATQP) & 1, second.get(ALL_IN)), (1, 0), "the QP, and packets")
        sound(m, first, second)


def test_reset():
    """ernic: a function-level reset clears all registers, and ends what was under way"""
    with devices() as m:
        first, second = Ernic(m, 0), Ernic(m, 1)
        first.set_up()
        second.set_up()
        second.set(CONF, 0)
        first.post(SEND, 100)
        first.reset()
        same([first.get(offset) for offset in (CONF, MAC_LSB, IPV4, INTSTS)], [0] * 4, "global registers")
        same([first.get_qp(offset) for offset in (QPCONF, SQPI, STATQP)], [0, 0, 0x600], "registers of a QP")
        second.set(CONF, 1 | QP << 8)
        for _ in range(50):
            m.advance(100_000_000)
        same(second.get(ALL_IN), 0, "packets after the reset")
        sound(m, first, second)


def test_any_register():
    """ernic: any value in any register, before and while the device is on, does it no harm"""
    with devices() as m:
        first, second = Ernic(m, 0), Ernic(m, 1)
        for seed in range(8):
            draw = random.Random(seed)
            first.reset()
            first.set_up()
            offsets = [draw.choice((draw.randrange(0x1000) * 4 + 0x20000, draw.randrange(0x80) * 4 + 0x20000,
                                    draw.randrange(0x40) * 4 + 0x20300, draw.randrange(0x4000) * 4)) for _ in range(2000)]
            m.write_numbers([(first.bar + offset, 4, draw.choice((0, 1, 0xffffffff, draw.getrandbits(32))))
                             for offset in offsets])
            for _ in range(20):
                m.advance(1_000_000)
        sound(m, first, second)
