# SPDX-License-Identifier: GPL-2.0-or-later
"""An HCA of a machine without a guest, by its registers and commands.

The numbers are from docs/reference/hardware-interface.rst.
"""

import struct

import machine
from pci import PAGE, Function

# Registers
HCR, RESET = 0x80000, 0xf0010
GO, BY_EVENT = 1 << 23, 1 << 22
SQ_BELL, CQ_ARM, EQ_ARM = 0x00, 0x10, 0x20
BAR0_BYTES, BELLS_BYTES = 1 << 20, 8 << 20
ARM = 1 << 24
NEXT = 2 << 24
# Commands
QUERY_DEV_LIM, QUERY_ADAPTER, INIT_HCA, CLOSE_HCA = 0x003, 0x006, 0x007, 0x008
SW2HW_MPT, HW2SW_MPT, WRITE_MTT, MAP_EQ, SW2HW_EQ, SW2HW_CQ = 0x00d, 0x00f, 0x011, 0x012, 0x013, 0x016
RST2INIT, TO_ERR, NOP, MAP_ICM = 0x019, 0x01e, 0x031, 0xffa
NOP_MODIFIER = 0x1f
OK, BAD_OP, BAD_PARAM, BAD_SYS_STATE, RESOURCE_BUSY = 0x00, 0x02, 0x03, 0x04, 0x06
DBR, CQ_ARM_CAP, MEM_MGT = 1 << 1, 1 << 2, 1 << 9
CMD_EVENT = 0x0a
HARDWARE_OWNS = 0x80
ENTRY = 32                     # bytes of an EQE or CQE
PD, UAR_PAGE = 1, 3


class Hca(Function):
    """The function at device number `slot`, with registers at `base` and 16 MiB of memory of its own.

    EQ n (1 or 2) is on vector n - 1. An event of EQ n stands unread from the beginning: whoever arms it has its message.
    """

    def __init__(self, m, slot, base, memory, bus=0):
        super().__init__(m, slot, base, memory, bus)
        self.inbox, self.outbox = memory, memory + PAGE
        self.rings = memory + 16 * PAGE

    # ---- commands

    def prepare(self, modifier=0, token=0, mailbox=b""):
        """All of a command but the word that starts it."""
        if mailbox:
            self.m.write(self.inbox, mailbox.ljust(PAGE, b"\0"))
        for i, word in enumerate((0, self.inbox, modifier, 0, self.outbox, token << 16)):
            self.m.write32(self.registers + HCR + 4 * i, word)

    @property
    def go(self):
        """Where that word goes."""
        return self.registers + HCR + 0x18

    def status(self, op, modifier=0, op_modifier=0, mailbox=b""):
        self.prepare(modifier, mailbox=mailbox)
        self.m.write32(self.go, GO | op_modifier << 12 | op)
        word = self.m.read32(self.go)
        if word & GO:
            raise AssertionError(f"command {op:#x} has not ended")
        return word >> 24

    def command(self, op, *arguments, **named):
        status = self.status(op, *arguments, **named)
        if status != OK:
            raise AssertionError(f"command {op:#x}: status {status:#x}")

    def answers(self):
        """It takes a command, as one does that is initialised."""
        return self.status(NOP, NOP_MODIFIER) == OK

    @staticmethod
    def init_mailbox(capabilities):
        """32 QPs, 32 CQs, 8 EQs and 256 MPTs."""
        return struct.pack(">QQQQIIQQQ", 0, 5, 1 << 20 | 5, 2 << 20 | 3, capabilities, 0, 0, 8, 1 << 20)

    def start(self, capabilities=DBR | CQ_ARM_CAP | MEM_MGT):
        """Two EQs, the second also for the ends of commands."""
        self.command(INIT_HCA, mailbox=self.init_mailbox(capabilities))
        for k, (space, address, pages) in enumerate(((1, 0, 16), (1, 1 << 20, 1), (1, 2 << 20, 1), (2, 0, 4),
                                                     (2, 1 << 20, 4))):
            self.command(MAP_ICM, 1, space, struct.pack(">QQQQ", 0, 0, address, self.memory + 0x100000 + k * 0x20000 | pages))
        for eqn in (1, 2):
            self.create_eq(eqn)
        # MAP_EQ has its argument where others have the address of a mailbox.
        inbox, self.inbox = self.inbox, 1 << CMD_EVENT
        self.command(MAP_EQ, 2)
        self.inbox = inbox

    def ring(self, index):
        """The page of MPT `index`."""
        return self.rings + index * PAGE

    def create_region(self, index, start=0):
        """MPT `index`: one page, from address `start` on."""
        self.command(WRITE_MTT, 1, mailbox=bytes(24) + struct.pack(">Q24xQ", index, self.ring(index)))
        self.command(SW2HW_MPT, index, mailbox=self.mpt_mailbox(index, start))

    def mpt_mailbox(self, index, start=0):
        return struct.pack(">IIIIQQIIIIIIQ", 0x10f, 0, self.key(index), PD, start, PAGE, 0, 0, 0, 0, index, 0, 0)

    @staticmethod
    def key(index):
        return index << 8 | 0xab

    def create_eq(self, eqn):
        self.m.write(self.ring(eqn), (bytes(ENTRY - 1) + bytes([HARDWARE_OWNS])) * (PAGE // ENTRY))
        self.create_region(eqn)
        context = bytearray(64)
        context[0x0c] = 5                                  # 32 entries
        context[0x17] = eqn - 1
        struct.pack_into(">II", context, 0x18, PD, self.key(eqn))
        struct.pack_into(">II", context, 0x28, 0, 1)       # consumer, producer
        self.command(SW2HW_EQ, eqn, mailbox=bytes(context))

    def entries(self, index, count=32):
        """The entries of the queue in the page of MPT `index` that the device has written."""
        data = self.m.read(self.ring(index), count * ENTRY)
        each = [data[at:at + ENTRY] for at in range(0, len(data), ENTRY)]
        return [entry for entry in each if entry[ENTRY - 1] != HARDWARE_OWNS]

    # ---- doorbells: the second half rings

    @property
    def eq_arm(self):
        return self.bells + EQ_ARM + 4

    @property
    def sq_bell(self):
        return self.bells + UAR_PAGE * PAGE + SQ_BELL + 4

    def arm_eq(self, eqn):
        self.m.write32(self.eq_arm, ARM | eqn)

    # ---- a QP in ERR, whose sends are flushed

    QPN, CQN, CQ_REGION, SQ_REGION, DEPTH = 8, 1, 3, 4, 4

    def create_qp(self, sends):
        """A QP in state ERR with these sends linked, and all of its doorbell but the half that rings."""
        self.m.write(self.ring(self.CQ_REGION), (bytes(ENTRY - 1) + bytes([HARDWARE_OWNS])) * (PAGE // ENTRY))
        for index in (self.CQ_REGION, self.SQ_REGION):
            self.create_region(index)
        self.command(SW2HW_CQ, self.CQN, mailbox=struct.pack(
            ">IQIIIIIIIIIQQ", 0, 0, 5 << 24 | UAR_PAGE, 2, PD, self.key(self.CQ_REGION), 0, 0, 0, 0, self.CQN, 0, 0))
        context = bytearray(192)
        struct.pack_into(">I", context, 0x00, 1 << 3 | 1 << 4 | 1 << 5)    # access flags, P_Key, port
        context[0x0c] = 31
        context[0x0d] = context[0x0e] = 6                                  # slots of 64 bytes
        struct.pack_into(">II", context, 0x10, UAR_PAGE, self.QPN)
        struct.pack_into(">I", context, 0x1c, 1 << 24)
        struct.pack_into(">I", context, 0x5c, PD)
        struct.pack_into(">III", context, 0x70, self.CQN, self.key(self.SQ_REGION), self.DEPTH << 6)
        struct.pack_into(">I", context, 0x8c, self.CQN)
        self.command(RST2INIT, self.QPN, mailbox=bytes(context))
        self.command(TO_ERR, self.QPN, 3)
        for i in range(sends):
            # The offset and opcode of the next one, and its size in units of 16 bytes; 0: no next one.
            link = ((i + 1) << 6 | 0x0a, 1) if i + 1 < sends else (0, 0)
            self.m.write(self.ring(self.SQ_REGION) + 64 * i, struct.pack("<IIII", *link, 0, 0))
        self.m.write32(self.sq_bell - 4, sends << 24 | 0x0a)


class Machine(machine.Machine):
    """A machine with HCAs A, B and C, each on a link of its own."""

    def __init__(self, *devices, count=3, **named):
        words = [word for i in range(count) for word in (
            "-netdev", f"hubport,hubid=0,id=n{i}", "-device", f"hghca,netdev=n{i},addr={4 + i}.0")]
        super().__init__(*words, *devices, **named)
        try:
            self.hcas = [Hca(self, 4 + i, 0xe0000000 + i * 0x4000000, 0x1000000 * (i + 1)) for i in range(count)]
            for hca in self.hcas:
                hca.enable()
                hca.start()
        except BaseException:
            self.close()
            raise
