# SPDX-License-Identifier: GPL-2.0-or-later
"""MSI-X messages aimed at registers: whatever they lead to, QEMU answers, and the HCAs are as the guest has made them.

QEMU itself lets no device's register be written while one is under way. So the circles here are entered by way of A, whose
EQ is armed by the test: its message arms the EQ of B, in which an event waits, so B's message is due.
"""

import contextlib

from hca import ARM, BAD_SYS_STATE, BY_EVENT, CMD_EVENT, GO, NEXT, NOP, NOP_MODIFIER, RESET, Hca, Machine
from pci import CAP_EXPRESS, COMMAND


def same(found, wanted, what):
    if found != wanted:
        raise AssertionError(f"{what}: {found!r} instead of {wanted!r}")


@contextlib.contextmanager
def machine(*devices, **named):
    m = Machine(*devices, **named)
    try:
        yield m
    finally:
        m.close()


def arm(hca, eqn=1):
    """A message that arms this EQ, which has an event: that raises the EQ's own."""
    return hca.eq_arm, ARM | eqn


def sound(*hcas):
    """Each takes commands, and an event of an armed EQ still has its message, once."""
    for hca in hcas:
        same(hca.answers(), True, "takes commands")
    for hca in hcas:
        for vector in (0, 1):
            hca.aim_at_memory(vector)
    for hca in hcas:
        hca.m.step()
        hca.message_seen(0), hca.message_seen(1)    # what was pending
        hca.arm_eq(1)
        same(hca.message_seen(0), True, "the message of an EQ")
        same(hca.message_seen(0), False, "another message")
        same(hca.message_seen(1), False, "the message of another EQ")
        same(hca.pending(), 0, "messages pending")


def send_both(hca):
    """Both vectors of the HCA are due at the beginning of one turn: a machine that is stopped takes none."""
    hca.m.qmp("stop")
    hca.arm_eq(1)
    hca.arm_eq(2)
    hca.m.qmp("cont")
    hca.m.step()


def circle(aims, senders):
    """The message of each vector arms that EQ of the HCA named; these HCAs have sent one at least."""
    with machine() as m:
        of = dict(zip("ABC", m.hcas))
        for vector in (0, 1):
            of["A"].aim(vector, *arm(of["B"], vector + 1))
        for (name, vector), target in aims.items():
            of[name].aim(vector, *arm(of[target], vector + 1))
        of["A"].arm_eq(1)
        of["A"].arm_eq(2)
        m.step()
        for name in senders:
            same(m.traced(f"hghca_signal {of[name].name}:") > 0, True, f"messages of {name}")
        for hca in m.hcas:
            same(hca.entries(1) + hca.entries(2), [], "events written")
        sound(*m.hcas)


def test_own_eq():
    """A message that arms the EQ it comes from does not hang QEMU"""
    circle({("B", 0): "B"}, "AB")


def test_each_others_eq():
    """Messages of two HCAs that arm each other's EQ do not hang QEMU"""
    circle({("B", 0): "C", ("C", 0): "B"}, "ABC")


def test_round():
    """Messages of three HCAs that arm the next one's EQ do not hang QEMU"""
    circle({("B", 0): "C", ("C", 0): "A"}, "ABC")


def test_two_vectors():
    """Two messages of one HCA that arm their own EQs do not hang QEMU"""
    circle({("B", 0): "B", ("B", 1): "B"}, "AB")


def test_send_doorbell():
    """A message that rings a send queue has its work done once, however often it comes"""
    with machine() as m:
        a, b, _ = m.hcas
        b.create_qp(sends=3)
        b.aim(0, b.sq_bell, b.QPN << 8 | 1)
        b.aim(1, *arm(b, 2))
        a.aim(0, *arm(b))
        a.aim(1, *arm(b, 2))
        for eqn in (1, 2, 1):
            a.arm_eq(eqn)
        m.step()
        flushed = [entry[0x10] for entry in b.entries(b.CQ_REGION)]
        same(flushed, [5, 5, 5], "syndromes of completions")
        sound(*m.hcas)


def test_command():
    """A message that starts a command has it executed once for each message, while another goes round"""
    with machine() as m:
        a, b, _ = m.hcas
        b.prepare(NOP_MODIFIER, token=0xabcd)
        b.aim(0, b.go, GO | BY_EVENT | NOP)
        b.aim(1, *arm(b, 2))
        a.aim(0, *arm(b))
        a.aim(1, *arm(b, 2))
        for eqn in (2, 1):
            a.arm_eq(eqn)
        m.step()
        ends = [(entry[1], entry[6:8].hex(), entry[0xf]) for entry in b.entries(2)]
        same(ends, [(CMD_EVENT, "abcd", 0)], "type, token and status of events")
        sound(*m.hcas)


def test_reset():
    """A message that resets its own HCA ends that one's messages, with another one due, and leaves the others alone"""
    with machine() as m:
        a, b, c = m.hcas
        b.aim(0, b.registers + RESET, 1)
        b.aim(1, *arm(c))
        a.aim(0, *arm(b))
        a.aim(1, *arm(b, 2))
        send_both(a)
        same([m.traced(f"hghca_signal {hca.name}:") for hca in m.hcas], [2, 1, 0], "messages of each HCA")
        same(b.status(NOP, NOP_MODIFIER), 0, "a command that needs no set-up")
        b.inbox = 0
        same(b.status(0x00f, 1), BAD_SYS_STATE, "a command that needs it")
        sound(a, c)


def test_mask():
    """A message that masks its own vector leaves the next one pending, which is sent when it is unmasked"""
    with machine() as m:
        a, b, _ = m.hcas
        b.aim(0, b.mask(0), 1)
        a.aim(0, *arm(b))
        a.arm_eq(1)
        same(m.read32(b.mask(0)), 1, "mask")
        b.arm_eq(1)
        same(b.pending(), 1, "messages pending")
        m.write32(b.mask(0) - 12, b.seen)
        m.write32(b.mask(0) - 4, 0x5ee0)
        m.write32(b.mask(0), 0)
        same(b.message_seen(0), True, "the message that was pending")
        sound(*m.hcas)


def test_configuration():
    """A message that takes its own HCA from the bus leaves the others alone, and it comes back"""
    with machine() as m:
        a, b, _ = m.hcas
        b.aim(0, b.config + COMMAND, 0)
        a.aim(0, *arm(b))
        a.arm_eq(1)
        m.step()
        same(m.read32(b.config + COMMAND) & 6, 0, "memory and bus master")
        m.write32(b.config + COMMAND, 6)
        sound(*m.hcas)


def test_function_reset():
    """A message that resets its own function leaves the others alone"""
    with machine() as m:
        a, b, c = m.hcas
        b.aim(0, b.find(CAP_EXPRESS) + 8, 1 << 15)
        a.aim(0, *arm(b))
        a.arm_eq(1)
        m.step()
        same(m.read32(b.config + COMMAND) & 6, 0, "memory and bus master")
        b.enable()
        b.start()
        sound(a, b, c)


def test_unplugged():
    """A message that unplugs its own HCA, with another one due, leaves the others alone"""
    slot = ("-global", "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off",
            "-device", "pcie-root-port,id=hole,addr=9,chassis=1,slot=1", "-netdev", "hubport,hubid=0,id=n9",
            "-device", "hghca,netdev=n9,bus=hole")
    with machine(*slot, count=2) as m:
        a, c = m.hcas
        port = Hca(m, 9, 0, 0)
        m.write32(port.config + 0x18, 0x00010100)      # buses: primary 0, secondary and subordinate 1
        m.write32(port.config + 0x20, 0xefffe800)      # memory from 0xe8000000 on
        m.write32(port.config + COMMAND, 6)
        b = Hca(m, 0, 0xe8000000, 0x4000000, bus=1)
        b.enable()
        b.start()
        b.aim(0, port.find(CAP_EXPRESS) + 0x18, 0x0700)    # power and its indicator off
        b.aim(1, *arm(c))
        a.aim(0, *arm(b))
        a.aim(1, *arm(b, 2))
        send_both(a)
        # The last one's name may be gone with it.
        same([m.traced(f"hghca_signal {hca.name}:") for hca in (a, c)], [2, 0], "messages of the others")
        same(m.traced("hghca_signal "), 3, "messages")
        same(m.read32(b.config), 0xffffffff, "the function that was unplugged")
        sound(a, c)
