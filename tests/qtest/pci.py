# SPDX-License-Identifier: GPL-2.0-or-later
"""A PCI function of a machine without a guest: its BARs, and the messages of its MSI-X vectors."""

import machine

# PCI Express Base Specification, 7.5 and 7.7.2
COMMAND, REVISION, BARS, SUBSYSTEM, CAPABILITIES = 0x04, 0x08, 0x10, 0x2c, 0x34
MEMORY_AND_MASTER = 6
CAP_EXPRESS, CAP_MSIX = 0x10, 0x11
MSIX_ENABLE = 1 << 31
INITIATE_FLR = 1 << 15
MSIX_PENDING = 0x1000          # in BAR4
PAGE = 4096


class Function:
    """The function at device number `slot`, with registers at `base` and 16 MiB of memory of its own."""

    def __init__(self, m, slot, base, memory, bus=0):
        self.m = m
        self.name = f"hghca@{slot:02x}.0"
        self.config = machine.ECAM + (bus << 20) + (slot << 15)
        self.registers, self.bells, self.msix = base, base + 0x1000000, base + 0x200000
        self.memory = memory
        # What the message of a vector leaves there when it is aimed at memory.
        self.seen = memory + 2 * PAGE

    def find(self, number):
        """Where the capability of this number is in configuration space."""
        at = self.m.read32(self.config + CAPABILITIES) & 0xff
        while at:
            words = self.m.read32(self.config + at)
            if words & 0xff == number:
                return self.config + at
            at = words >> 8 & 0xff
        raise AssertionError(f"no capability {number:#x}")

    def bar_bytes(self, bar):
        """The size of a 64-bit BAR; it has no address afterwards."""
        self.m.write32(self.config + BARS + 4 * bar, 0xffffffff)
        low = self.m.read32(self.config + BARS + 4 * bar) & ~0xf
        return -low & 0xffffffff

    def enable(self):
        if self.m.read32(self.config) != 0x10f11af4:
            raise AssertionError(f"no HCA there: {self.m.read32(self.config):#x}")
        for bar, address in ((0, self.registers), (2, self.bells), (4, self.msix)):
            self.m.write32(self.config + BARS + 4 * bar, address)
            self.m.write32(self.config + BARS + 4 * bar + 4, 0)
        self.m.write32(self.config + COMMAND, MEMORY_AND_MASTER)
        self.set_msix(True)

    def set_msix(self, on):
        msix = self.find(CAP_MSIX)
        self.m.write32(msix, self.m.read32(msix) & ~MSIX_ENABLE | (MSIX_ENABLE if on else 0))

    def reset_function(self):
        """A function-level reset, after which BARs, command and MSI-X have to be set again."""
        express = self.find(CAP_EXPRESS)
        self.m.write32(express + 8, self.m.read32(express + 8) & 0xffff | INITIATE_FLR)

    def aim(self, vector, address, data):
        """The message of the vector writes `data` to `address`."""
        for offset, word in ((0, address), (4, 0), (8, data), (12, 0)):
            self.m.write32(self.mask(vector) - 12 + offset, word)

    def mask(self, vector):
        """Where the vector's mask bit is."""
        return self.msix + 16 * vector + 12

    def aim_at_memory(self, vector):
        self.m.write32(self.seen + 4 * vector, 0)
        self.aim(vector, self.seen + 4 * vector, 0x5ee0 + vector)

    def message_seen(self, vector):
        """Did the message of the vector, aimed at memory, arrive since?"""
        seen = self.m.read32(self.seen + 4 * vector) == 0x5ee0 + vector
        self.m.write32(self.seen + 4 * vector, 0)
        return seen

    def pending(self):
        return self.m.read32(self.msix + MSIX_PENDING)
