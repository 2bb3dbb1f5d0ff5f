# SPDX-License-Identifier: GPL-2.0-or-later
"""RSNIC in QEMU: its initialization segment, command queue, health and interrupt.

The numbers are from docs/reference/rsnic.rst and the interface document.
"""

import contextlib
import struct
import time

import machine
from hca import (BAD_OP, BAD_PARAM, BAD_SYS_STATE, BY_EVENT, CLOSE_HCA, CMD_EVENT, CQ_ARM_CAP, DBR, GO, HCR, HW2SW_MPT,
                 INIT_HCA, MAP_EQ, MEM_MGT, NOP, NOP_MODIFIER, OK, QUERY_ADAPTER, QUERY_DEV_LIM, RESET, RESOURCE_BUSY,
                 SW2HW_MPT, Hca)
from messages_cases import same
from pci import COMMAND, MEMORY_AND_MASTER, PAGE, SUBSYSTEM

SLOT, REGISTERS, MEMORY = 4, 0xe0000000, 0x1000000
MAC = 0x525400aabbcc
# Section 2
SEGMENT_BYTES = 0x2000
FW_REV, CMD_REV, CMDQ_H, CMDQ_L, DOORBELL, INITIALIZING = 0x0000, 0x0004, 0x0010, 0x0014, 0x0018, 0x01fc
FAILURE, FAILURE_TIME_H, FAILURE_TIME_L = 0x0200, 0x0204, 0x0208
TIMER_H, TIMER_L, CLEAR_INT, HEALTH = 0x1000, 0x1004, 0x100c, 0x1010
FORM = 5 << 4 | 6                      # 2^5 entries of 2^6 bytes
FULL_DRIVER, DISABLED = 0, 1 << 8
READY, NOT_READY = 0x03000000, 0x83000000
# Section 3
ENTRIES, ENTRY_BYTES = 32, 64
DEVICE_OWNS, SOFTWARE_OWNS = 1, 0
QUERY_CAPS, QUERY_PORT = 0xe11, 0xe01
# Section 4
HEALTH_TICK_NS = 10_000_000
SYNDROMES = {"FW_INTERNAL_ERR": 0x01, "DEAD_IRISC": 0x07, "HW_FATAL_ERR": 0x08, "FW_CRC_ERR": 0x09,
             "ICM_FETCH_PCI_ERR": 0x0a, "ICM_PAGE_ERR": 0x0b, "ASYNC_EQ_OVERRUN": 0x0c, "EQ_IN_ERR": 0x0d,
             "EQ_INV": 0x0e, "FFSER_ERR": 0x0f, "HIGH_TEMP_ERR": 0x10}
# Section 5; words that are not here are 0.
CAPS = {0x000: 1 << 32, 0x010: 1, 0x018: 1, 0x020: 5, 0x030: MAC, 0x040: 128, 0x048: 1, 0x078: 2048, 0x080: 4096,
        0x098: 32, 0x0a0: 32, 0x0a8: 255, 0x0b0: 16384, 0x0b8: 1008, 0x0c0: 1008, 0x0c8: 16, 0x0d0: 16, 0x0d8: 8,
        0x108: 131072, 0x110: 4194304, 0x118: 1, 0x128: 64, 0x130: 1, 0x138: 64, 0x140: 524288, 0x150: 1 << 27,
        0x160: 1, 0x168: 1, 0x1b0: 1 << 20, 0x1b8: 1, 0x1d0: 8, 0x1d8: 1 << 31, 0x1e0: 0x7ffff000, 0x210: 2, 0x230: 1,
        0x250: 2, 0x258: 2, 0x280: 256, 0x288: 5, 0x298: 32, 0x2a0: 32, 0x2c0: 1000, 0x2c8: MAC, 0x318: 0x200}
ETH_MTU_CAP, LAST_CAP = 0x038, 0x318
CATASTROPHE = 0x08                     # LOCAL_CATAS_ERROR
# PCI Express Base Specification, 7.5.1
INTERRUPT_PIN, STATUS_INTERRUPT, INTX_OFF = 0x3d, 1 << 19, 1 << 10
NOWHERE = 0xd0000000
WIDTHS = (1, 2, 4, 8)
OF_EACH_PROFILE = DBR | CQ_ARM_CAP
MS = 1_000_000


class Rsnic(Hca):
    """The function, with MSI-X on. Its command queue, when it is on, is at `queue`."""

    def __init__(self, m):
        super().__init__(m, SLOT, REGISTERS, MEMORY)
        self.queue = MEMORY + 8 * PAGE
        self.enable()

    @staticmethod
    def key(index):
        """Without the extension MEM_MGT."""
        return 0xab << 24 | index

    # ---- the segment

    def get(self, offset):
        return self.m.read32(self.registers + offset)

    def set(self, offset, value):
        self.m.write32(self.registers + offset, value)

    @property
    def syndrome(self):
        return self.get(HEALTH) >> 24

    # ---- the command queue

    def place(self, address=None, mode=FULL_DRIVER):
        """Write the address of the queue, of which FULL_DRIVER turns it on."""
        address = self.queue if address is None else address
        self.set(CMDQ_H, address >> 32)
        self.set(CMDQ_L, address & 0xfffff000 | mode)

    def fill(self, entry, op, modifier=0, in_param=0, out_param=0, token=0xffff, flags=0, owner=DEVICE_OWNS):
        """An entry, with op_modifier 0."""
        self.m.write(self.queue + ENTRY_BYTES * entry, struct.pack(
            "<8I", in_param >> 32, in_param & 0xffffffff, modifier, out_param >> 32, out_param & 0xffffffff,
            token << 16, flags | op, owner))

    def fill_nops(self, *entries, **named):
        for entry in entries:
            self.fill(entry, NOP, NOP_MODIFIER, **named)

    def ring_doorbell(self, *entries):
        self.set(DOORBELL, sum(1 << entry for entry in entries))

    def words(self, entry):
        return struct.unpack("<16I", self.m.read(self.queue + ENTRY_BYTES * entry, ENTRY_BYTES))

    def owners(self, *entries):
        return [self.words(entry)[7] for entry in entries]

    def statuses(self, *entries):
        """Of entries that were rung: waits until all are complete."""
        end = time.monotonic() + machine.SILENCE_S
        while any(self.owners(*entries)):
            if time.monotonic() > end:
                raise AssertionError(f"entries that do not end: {self.owners(*entries)}")
        return [self.words(entry)[6] >> 24 for entry in entries]

    def execute(self, op, modifier=0, **named):
        """One command by the queue: its status."""
        self.fill(9, op, modifier, **named)
        self.ring_doorbell(9)
        return self.statuses(9)[0]

    # ---- what is seen outside

    def ignored(self):
        return self.m.qmp("qom-get", path="/machine/peripheral/hca", property="stats")["cmdq_ignored"]

    def commands(self):
        return self.m.qmp("qom-get", path="/machine/peripheral/hca", property="commands")

    def fail(self, name):
        self.m.qmp("qom-set", path="/machine/peripheral/hca", property="fail", value=name)

    def failed(self):
        return self.m.qmp("qom-get", path="/machine/peripheral/hca", property="fail")

    def reset(self):
        self.set(RESET, 1)

    def expect_off(self, why):
        """The HCR takes commands, and a doorbell is ignored."""
        same(self.status(NOP, NOP_MODIFIER), OK, f"{why}: a command in the HCR")
        before = self.ignored()
        self.fill_nops(9)
        self.ring_doorbell(9)
        same((self.owners(9), self.ignored() - before), ([DEVICE_OWNS], 1), f"{why}: a doorbell")

    def expect_on(self, why):
        same(self.execute(NOP, NOP_MODIFIER), OK, f"{why}: a command of the queue")
        same(self.status(NOP, NOP_MODIFIER), RESOURCE_BUSY, f"{why}: a command in the HCR")


@contextlib.contextmanager
def rsnic(properties="", profile="rsnic"):
    mac = ":".join(f"{byte:02x}" for byte in MAC.to_bytes(6, "big"))
    words = f"hghca,id=hca,netdev=n,addr={SLOT}.0,mac={mac},profile={profile}{properties}"
    with machine.started("-netdev", "hubport,hubid=0,id=n", "-device", words) as m:
        yield Rsnic(m)


# (offset, width) of every access within the segment, and of those that read or write a register.
EVERY_ACCESS = [(offset, width) for width in WIDTHS for offset in range(SEGMENT_BYTES - width + 1)]
WORDS = [(offset, 4) for offset in range(0, SEGMENT_BYTES, 4)]


def read_segment(hca, accesses=WORDS):
    """What these read that do not read 0."""
    found = hca.m.read_numbers([(REGISTERS + offset, width) for offset, width in accesses])
    return {access: value for access, value in zip(accesses, found) if value}


def segment_at(now):
    """The same, of a device that is ready, has no queue and has not failed."""
    values = {FW_REV: 1, CMD_REV: 1 << 16, CMDQ_L: FORM, INITIALIZING: READY, TIMER_H: now >> 32,
              TIMER_L: now & 0xffffffff, HEALTH: now // HEALTH_TICK_NS}
    return {(offset, 4): value for offset, value in values.items() if value}


# ---- the segment

def test_segment_read():
    """rsnic: the registers of the segment, at every offset and width"""
    with rsnic() as hca:
        now = hca.m.advance(5_123_456_789)
        same(read_segment(hca, EVERY_ACCESS), segment_at(now), "what the segment reads")


def test_segment_written():
    """rsnic: writes of every width at every offset of the segment change nothing, but those of its three registers"""
    with rsnic() as hca:
        now = hca.m.advance(5_000_000_001)
        hca.m.write_numbers([(REGISTERS + offset, width, (1 << 8 * width) - 1) for offset, width in EVERY_ACCESS
                             if (offset, width) not in ((CMDQ_H, 4), (CMDQ_L, 4), (DOORBELL, 4))])
        same(read_segment(hca), segment_at(now), "what the segment reads")
        same((hca.ignored(), hca.failed()), (0, "ok"), "writes ignored, and failure")
        hca.expect_off("afterwards")
        # The high word is kept whole, of the low word the address alone.
        hca.set(CMDQ_H, 0x89abcdef)
        hca.set(CMDQ_L, 0xfedcb000 | 0xc00 | DISABLED | 0xff)
        same((hca.get(CMDQ_H), hca.get(CMDQ_L), hca.get(DOORBELL)), (0x89abcdef, 0xfedcb000 | FORM, 0),
             "the queue's registers")
        hca.reset()
        same(read_segment(hca), segment_at(now), "what the segment reads after a reset")


def test_versions():
    """rsnic: fw_rev is the version that QUERY_ADAPTER has, with its halves the other way round"""
    with rsnic() as hca:
        hca.command(QUERY_ADAPTER)
        version = struct.unpack(">I", hca.m.read(hca.outbox + 0x28, 4))[0]
        same(hca.get(FW_REV), (version & 0xffff) << 16 | version >> 16, "fw_rev")


def test_time():
    """rsnic: the timer is the clock in nanoseconds, and the health counter runs at 100 Hz"""
    with rsnic() as hca:
        now = hca.m.advance(0x1_2345_6789)
        for ns in (1, HEALTH_TICK_NS - 1, HEALTH_TICK_NS, 2_000_000_000):
            same((hca.get(TIMER_H) << 32 | hca.get(TIMER_L), hca.get(HEALTH)), (now, now // HEALTH_TICK_NS),
                 f"timer and health at {now} ns")
            now = hca.m.advance(ns)


def test_other_profiles():
    """rsnic: full and base devices have no segment, no interrupt pin, no QUERY_CAPS and another subsystem"""
    for profile in ("full", "base"):
        with rsnic(profile=profile) as hca:
            hca.m.advance(5_000_000_000)
            same(read_segment(hca), {}, f"what the first 8 KiB of BAR0 of {profile} read")
            hca.place()
            same((hca.get(CMDQ_L), hca.status(NOP, NOP_MODIFIER), hca.status(QUERY_CAPS)), (0, OK, BAD_OP),
                 f"{profile}: low word of a queue, NOP and QUERY_CAPS")
            same(hca.m.read_number(hca.config + INTERRUPT_PIN, 1), 0, f"interrupt pin of {profile}")
            same(hca.m.read32(hca.config + SUBSYSTEM), 0x11001af4, f"subsystem of {profile}")


def test_configuration():
    """rsnic: the subsystem is its own, the interrupt pin is INTA, BAR0 has 1 MiB and BAR2 8 MiB"""
    with rsnic() as hca:
        same(hca.m.read32(hca.config + SUBSYSTEM), 0x10f31af4, "subsystem")
        same(hca.m.read_number(hca.config + INTERRUPT_PIN, 1), 1, "interrupt pin")
        hca.m.write32(hca.config + COMMAND, 0)
        same([hca.bar_bytes(bar) >> 20 for bar in (0, 2)], [1, 8], "MiB of BAR0 and BAR2")


def test_initializing():
    """rsnic: init-delay milliseconds after a reset the device takes commands, and none before"""
    with rsnic(",init-delay=5") as hca:
        same(hca.get(INITIALIZING), NOT_READY, "after the start")
        hca.m.advance(5 * MS)
        same(hca.get(INITIALIZING), READY, "5 ms after the start")
        hca.prepare(NOP_MODIFIER, token=0x1234)
        hca.reset()
        same(hca.get(INITIALIZING), NOT_READY, "after a reset")
        before = hca.commands()
        hca.prepare(NOP_MODIFIER, token=0x1234)
        hca.m.write32(hca.go, GO | NOP)
        words = [hca.m.read32(hca.registers + HCR + offset) for offset in range(0, 0x1c, 4)]
        same(words, [0] * 6 + [GO], "the HCR's words")
        hca.place()
        hca.fill_nops(9)
        hca.ring_doorbell(9)
        same((hca.ignored(), hca.owners(9)), (1, [DEVICE_OWNS]), "doorbells ignored, and the owner of the entry")
        hca.m.advance(5 * MS - 1)
        same((hca.get(INITIALIZING), hca.m.read32(hca.go) & GO), (NOT_READY, GO), "1 ns before the end")
        hca.m.advance(1)
        same((hca.get(INITIALIZING), hca.m.read32(hca.go)), (READY, 0), "at the end")
        same((hca.commands() - before, hca.owners(9), hca.ignored()), (0, [DEVICE_OWNS], 1), "what was done meanwhile")
        hca.expect_on("ready")


# ---- the command queue

def test_command():
    """rsnic: a command of the queue does what it does in the HCR, and says how it has ended; the rest stays"""
    with rsnic() as hca:
        hca.command(QUERY_DEV_LIM)
        by_hcr = hca.m.read(hca.outbox, PAGE)
        hca.m.write(hca.outbox, b"\xee" * PAGE)
        hca.place()
        same((hca.get(CMDQ_H), hca.get(CMDQ_L)), (0, hca.queue | FORM), "the queue's address")
        hca.m.write(hca.queue, bytes(range(256)) * 16)
        hca.fill(31, QUERY_DEV_LIM, out_param=hca.outbox)
        page = hca.m.read(hca.queue, PAGE)
        hca.ring_doorbell(31)
        same(hca.statuses(31), [OK], "status")
        same(hca.m.read(hca.outbox, PAGE), by_hcr, "QUERY_DEV_LIM")
        at = 31 * ENTRY_BYTES
        wanted = bytearray(page)
        struct.pack_into("<II", wanted, at + 0x18, QUERY_DEV_LIM, SOFTWARE_OWNS)
        same(hca.m.read(hca.queue, PAGE), bytes(wanted), "the page of the queue")
        same([hca.execute(QUERY_DEV_LIM, 1, out_param=hca.outbox), hca.execute(0xfff), hca.execute(HW2SW_MPT, 1)],
             [BAD_PARAM, BAD_OP, BAD_SYS_STATE], "statuses of commands that are refused")
        same((hca.ignored(), hca.syndrome), (0, 0), "entries ignored, and syndrome")


def test_capabilities():
    """rsnic: each of the 100 capabilities of QUERY_CAPS, by the queue"""
    with rsnic() as hca:
        hca.command(QUERY_PORT, 1)
        mtu = struct.unpack(">I", hca.m.read(hca.outbox + 0x14, 4))[0]
        hca.m.write(hca.outbox, b"\xee" * PAGE)
        hca.place()
        same(hca.execute(QUERY_CAPS, out_param=hca.outbox), OK, "status")
        words = struct.unpack(f">{PAGE // 8}Q", hca.m.read(hca.outbox, PAGE))
        same({8 * i: word for i, word in enumerate(words) if word}, CAPS | {ETH_MTU_CAP: mtu}, "capabilities")
        same(LAST_CAP // 8 + 1, 100, "capabilities there are")


def test_on_and_off():
    """rsnic: what turns the queue on and off; the HCR is busy while it is on"""
    with rsnic() as hca:
        hca.expect_off("after the start")
        hca.place(0)
        hca.expect_off("address 0")
        hca.place(mode=DISABLED)
        same(hca.get(CMDQ_L), hca.queue | FORM, "the address of a queue that is off")
        hca.expect_off("disabled")
        for off, turn_off in (("address 0", lambda: hca.place(0)), ("disabled", lambda: hca.place(mode=DISABLED)),
                              ("a reset", hca.reset)):
            hca.place()
            hca.expect_on(f"before {off}")
            turn_off()
            hca.expect_off(off)
        # The last page of memory, and the high word that counts with the next low one.
        home, hca.queue = hca.queue, machine.RAM_BYTES - PAGE
        hca.place()
        hca.set(CMDQ_H, 1)
        hca.expect_on("the last page")
        hca.set(CMDQ_H, 0)
        hca.queue = home
        hca.place()
        hca.expect_on("moved before INIT_HCA")
        hca.reset_function()
        hca.enable()
        same((hca.get(CMDQ_H), hca.get(CMDQ_L)), (0, FORM), "the address after a function-level reset")
        hca.expect_off("a function-level reset")


def test_initialized_by_queue():
    """rsnic: INIT_HCA by the queue, which then stays where it is; CLOSE_HCA by the queue turns it off"""
    with rsnic() as hca:
        hca.place()
        hca.m.write(hca.inbox, hca.init_mailbox(OF_EACH_PROFILE | MEM_MGT).ljust(PAGE, b"\0"))
        same(hca.execute(INIT_HCA, in_param=hca.inbox), BAD_PARAM, "INIT_HCA with a capability that RSNIC lacks")
        hca.m.write(hca.inbox, hca.init_mailbox(OF_EACH_PROFILE).ljust(PAGE, b"\0"))
        same([hca.execute(INIT_HCA, in_param=hca.inbox) for _ in range(2)], [OK, BAD_SYS_STATE], "INIT_HCA, twice")
        moves = ((CMDQ_H, 1), (CMDQ_L, hca.queue + PAGE), (CMDQ_L, 0), (CMDQ_L, hca.queue + PAGE | DISABLED))
        for count, (offset, value) in enumerate(moves, 1):
            hca.set(offset, value)
            same(hca.ignored(), count, f"writes ignored, with {value:#x} at {offset:#x}")
        same((hca.get(CMDQ_H), hca.get(CMDQ_L)), (0, hca.queue | FORM), "the queue's address")
        hca.expect_on("writes that were ignored")
        hca.set(CMDQ_H, 0)
        hca.set(CMDQ_L, hca.queue | DISABLED)
        same(hca.ignored(), 4, "writes ignored")
        hca.expect_off("disabled between INIT_HCA and CLOSE_HCA")
        hca.place()
        hca.expect_on("on again at its address")
        hca.fill(3, CLOSE_HCA)
        hca.fill_nops(4, 31)
        commands, ignored = hca.commands(), hca.ignored()
        hca.ring_doorbell(3, 4, 31)
        same((hca.statuses(3), hca.owners(4, 31)), ([OK], [DEVICE_OWNS] * 2),
             "status of CLOSE_HCA, and owners of the entries behind it")
        same((hca.commands(), hca.ignored()), (commands + 1, ignored), "commands executed, and ignored")
        hca.expect_off("CLOSE_HCA")
        hca.queue += PAGE
        hca.place()
        hca.expect_on("moved after CLOSE_HCA")
        same(hca.syndrome, 0, "syndrome")


def test_ignored():
    """rsnic: software's mistakes are ignored, each counted once, and no failure"""
    with rsnic() as hca:
        hca.place()
        before = hca.commands()
        hca.m.write(hca.outbox, b"\xee" * PAGE)
        hca.fill(0, QUERY_DEV_LIM, out_param=hca.outbox, owner=SOFTWARE_OWNS)
        hca.fill(31, QUERY_DEV_LIM, out_param=hca.outbox, owner=0xfffffffe)
        mistakes = ((CMDQ_L, hca.queue + PAGE | 2 << 8), (CMDQ_L, hca.queue | 3 << 8), (DOORBELL, 1),
                    (DOORBELL, 1 << 31))
        for count, (offset, value) in enumerate(mistakes, 1):
            hca.set(offset, value)
            same((hca.ignored(), hca.syndrome, hca.get(CMDQ_L)), (count, 0, hca.queue | FORM),
                 f"mistakes, syndrome and address, with {value:#x} at {offset:#x}")
        same((hca.commands() - before, hca.m.read(hca.outbox, PAGE)), (0, b"\xee" * PAGE), "commands executed")
        same(hca.owners(0, 31), [SOFTWARE_OWNS, 0xfffffffe], "owners")
        # Of one doorbell, each entry by itself; a doorbell without a bit has no effect.
        hca.fill_nops(1, 3)
        hca.fill_nops(2, owner=SOFTWARE_OWNS)
        hca.ring_doorbell(1, 2, 3)
        same((hca.statuses(1, 3), hca.ignored()), ([OK, OK], 5), "two of three entries")
        hca.ring_doorbell()
        same(hca.ignored(), 5, "mistakes after a doorbell of no entry")
        hca.reset()
        same(hca.ignored(), 0, "mistakes after a reset")


def test_order():
    """rsnic: the 32 entries of one doorbell that name one object are executed from the first to the last"""
    for properties in ("", ",slice=1"):
        with rsnic(properties) as hca:
            hca.place(mode=DISABLED)
            hca.start(OF_EACH_PROFILE)
            hca.create_region(5)
            hca.place()
            hca.m.write(hca.inbox, hca.mpt_mailbox(5).ljust(PAGE, b"\0"))
            # The region is taken back and given again in turns: any other order meets one that is not there.
            for entry in range(ENTRIES):
                hca.fill(entry, SW2HW_MPT if entry % 2 else HW2SW_MPT, 5, in_param=hca.inbox if entry % 2 else 0)
            before = hca.commands()
            hca.ring_doorbell(*range(ENTRIES))
            same(hca.statuses(*range(ENTRIES)), [OK] * ENTRIES, "statuses")
            same((hca.commands() - before, hca.ignored()), (ENTRIES, 0), "commands, and mistakes")


def test_under_way():
    """rsnic: while entries are under way, their bits and changes of the queue are ignored; each is executed once"""
    with rsnic(",slice=1") as hca:
        hca.place()
        hca.fill_nops(*range(ENTRIES))
        before = hca.commands()
        # A machine that is stopped takes no turn: what a doorbell leaves stays under way.
        hca.m.qmp("stop")
        hca.ring_doorbell(*range(ENTRIES))
        same(hca.owners(0, 31), [SOFTWARE_OWNS, DEVICE_OWNS], "owners of the first entry and of the last")
        hca.fill_nops(0)
        mistakes = ((DOORBELL, 1 << 31 | 1), (CMDQ_H, 1), (CMDQ_L, hca.queue + PAGE), (CMDQ_L, 0),
                    (CMDQ_L, hca.queue | DISABLED), (CMDQ_L, hca.queue))
        for count, (offset, value) in enumerate(mistakes, 1):
            hca.set(offset, value)
            same(hca.ignored(), count, f"mistakes, with {value:#x} at {offset:#x}")
        hca.m.qmp("cont")
        same(hca.statuses(*range(ENTRIES)), [OK] * ENTRIES, "statuses")
        # The first was given to the device again, and its bit counted.
        same(hca.commands() - before, ENTRIES + 1, "commands")
        same((hca.get(CMDQ_H), hca.get(CMDQ_L)), (0, hca.queue | FORM), "the queue's address")
        hca.expect_on("afterwards")


def test_by_event():
    """rsnic: a command with E = 1 ends in its entry and with an EQE, which has the token and the status"""
    with rsnic() as hca:
        hca.place(mode=DISABLED)
        hca.start(OF_EACH_PROFILE)
        hca.place()
        hca.fill_nops(7, token=0xabcd, flags=BY_EVENT)
        hca.fill(8, NOP, 0, token=0x1234, flags=BY_EVENT)
        hca.fill_nops(9)
        hca.ring_doorbell(7, 8, 9)
        same(hca.statuses(7, 8, 9), [OK, BAD_PARAM, OK], "statuses")
        found = sorted((entry[1], entry[6:8].hex(), entry[0xf]) for entry in hca.entries(2))
        same(found, [(CMD_EVENT, "1234", BAD_PARAM), (CMD_EVENT, "abcd", OK)], "type, token and status of events")


# ---- health

def expect_failed(hca, syndrome, now):
    """The device has failed at this time, and says so until it is reset, when it works again."""
    told = syndrome << 24 | now // HEALTH_TICK_NS & 0xffffff
    same([hca.get(offset) for offset in (HEALTH, FAILURE, FAILURE_TIME_H, FAILURE_TIME_L)],
         [told, told, now >> 32, now & 0xffffffff], f"health and health buffer of {syndrome:#x}")
    ignored = hca.ignored()
    later = hca.m.advance(1_000_000_000)
    same((hca.get(TIMER_H) << 32 | hca.get(TIMER_L), hca.get(HEALTH)), (later, told), "timer and health a second later")
    same((hca.get(FW_REV), hca.get(INITIALIZING)), (1, READY), "other registers of the segment")
    others = [(hca.registers + HEALTH, width) for width in (1, 2, 8)]
    same(hca.m.read_numbers(others), [0, 0, 0], "health, by other widths")
    outside = [hca.registers + offset for offset in (SEGMENT_BYTES, HCR, HCR + 0x18, RESET)] + [hca.bells]
    same({hca.m.read32(address) for address in outside}, {0xffffffff}, "registers outside the segment")
    for offset, value in ((DOORBELL, 0xffffffff), (CMDQ_H, 0), (CMDQ_L, hca.queue), (HEALTH, 0), (FAILURE, 0)):
        hca.set(offset, value)
    same((hca.ignored(), hca.failed(), hca.get(HEALTH), hca.get(FAILURE)), (ignored, "failed", told, told),
         "mistakes, failure, health and health buffer after writes")
    hca.reset()
    same([hca.get(offset) for offset in (HEALTH, FAILURE, FAILURE_TIME_H, FAILURE_TIME_L, CMDQ_H, CMDQ_L)],
         [later // HEALTH_TICK_NS & 0xffffff, 0, 0, 0, 0, FORM], "health, health buffer and queue after a reset")
    same(hca.failed(), "ok", "failure after a reset")
    hca.expect_off("a reset")
    hca.place()
    hca.expect_on("a reset")
    hca.place(0)


def test_queue_nowhere():
    """rsnic: a queue that is no memory, or registers, is ICM_FETCH_PCI_ERR; the device is silent until a reset"""
    with rsnic() as hca:
        for address in (NOWHERE, machine.RAM_BYTES, 1 << 32, 1 << 63, REGISTERS, REGISTERS + 0x1000000, machine.ECAM):
            now = hca.m.advance(1_234_567)
            hca.place(address)
            same((hca.get(CMDQ_H), hca.get(CMDQ_L), hca.syndrome), (address >> 32, address & 0xfffff000 | FORM, 0),
                 "a queue that was not rung")
            hca.ring_doorbell(17)
            expect_failed(hca, SYNDROMES["ICM_FETCH_PCI_ERR"], now)


def test_failures():
    """rsnic: the property fail takes each syndrome's name, and a reset of the device or of the function clears it"""
    with rsnic() as hca:
        for name, syndrome in (*SYNDROMES.items(), ("now", SYNDROMES["HW_FATAL_ERR"])):
            now = hca.m.advance(4_300_000_000)
            hca.fail(name)
            expect_failed(hca, syndrome, now)
        hca.fail("HIGH_TEMP_ERR")
        hca.reset_function()
        hca.enable()
        same((hca.syndrome, hca.get(FAILURE), hca.failed()), (0, 0, "ok"), "after a function-level reset")
        for wrong in ("later", "NONE", "", "hw_fatal_err", "10"):
            try:
                hca.fail(wrong)
                said = "taken"
            except AssertionError as error:
                said = str(error)
            same(f"property 'fail' must be 'now' or the name of a health syndrome, not '{wrong}'" in said, True,
                 f"`{wrong}` is refused: {said}")
        same(hca.failed(), "ok", "after names of nothing")
    with rsnic(profile="full") as hca:
        hca.fail("EQ_INV")
        same(({hca.get(offset) for offset in (0, HEALTH, FAILURE, HCR)}, hca.failed()), ({0xffffffff}, "failed"),
             "a full device that fails")


# ---- the interrupt

def test_interrupt():
    """rsnic: while MSI-X is off an event asserts INTA until clear_int or a reset; with MSI-X on it sends a message"""
    with rsnic() as hca:
        m = hca.m

        def asserted():
            """In the function's status, and how many inputs of the interrupt controller."""
            return bool(m.read32(hca.config + COMMAND) & STATUS_INTERRUPT), len(m.asserted)

        def start():
            """An EQ that is armed has an event at once."""
            hca.set_msix(False)
            hca.start(OF_EACH_PROFILE)
            same(asserted(), (False, 0), "INTA before the event")
            hca.arm_eq(1)
            same(asserted(), (True, 1), "INTA after the event")

        m.intercept("ioapic")
        start()
        for value in (0, 0xfffffffe):
            hca.set(CLEAR_INT, value)
            same(asserted(), (True, 1), f"INTA after {value:#x} in clear_int")
        m.write32(hca.config + COMMAND, MEMORY_AND_MASTER | INTX_OFF)
        same(asserted(), (True, 0), "INTA of a function whose INTx is disabled")
        m.write32(hca.config + COMMAND, MEMORY_AND_MASTER)
        same(asserted(), (True, 1), "INTA of one whose INTx is enabled")
        hca.set(CLEAR_INT, 1)
        same((asserted(), hca.get(CLEAR_INT)), ((False, 0), 0), "INTA, cleared")
        hca.arm_eq(1)
        same(asserted(), (True, 1), "INTA after the next event")
        hca.reset()
        same(asserted(), (False, 0), "INTA after a reset")
        start()
        hca.reset_function()
        hca.enable()
        same(asserted(), (False, 0), "INTA after a function-level reset")
        # The event of a failure is cleared as any other: the interrupt would come without end.
        for clear in (lambda: hca.set(CLEAR_INT, 1), hca.reset):
            start()
            hca.set(CLEAR_INT, 1)
            inbox, hca.inbox = hca.inbox, 1 << CATASTROPHE
            hca.command(MAP_EQ, 1)
            hca.inbox = inbox
            same(asserted(), (False, 0), "INTA before a failure")
            hca.fail("now")
            same(asserted(), (True, 1), "INTA after a failure")
            clear()
            same(asserted(), (False, 0), "INTA of a device that has failed, cleared")
            hca.reset()
        # With MSI-X on.
        hca.set_msix(True)
        hca.start(OF_EACH_PROFILE)
        hca.aim_at_memory(0)
        hca.arm_eq(1)
        same((hca.message_seen(0), asserted()), (True, (False, 0)), "a message, and INTA")
    with rsnic(profile="full") as hca:
        hca.m.intercept("ioapic")
        hca.set_msix(False)
        hca.start(OF_EACH_PROFILE)
        hca.arm_eq(1)
        same((bool(hca.m.read32(hca.config + COMMAND) & STATUS_INTERRUPT), hca.m.asserted), (False, set()),
             "INTA of a full device")
