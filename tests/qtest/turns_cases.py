# SPDX-License-Identifier: GPL-2.0-or-later
"""Turns of HCAs that always have work, and the turn of a CPU between them.

The machine has one CPU, which QEMU translates. Its firmware is a loop that reads a register and counts: each read needs
QEMU's lock. Messages that HCAs aim at their own EQs give the main loop work without end.
"""

import struct
import tempfile
import time

import jingzhao as jz
from base_cases import adapters, done, pair
from hca import HCR, Machine
from messages_cases import arm, same
from machine import SILENCE_S

ROUNDS = 16               # after which the main loop rests
RESTS, MOST_RESTS = 40, 2000
FIRMWARE_BYTES = 64 << 10
BASE = (1 << 32) - FIRMWARE_BYTES
COUNTER = 0x700000
LONG_PAGES, LONG_WRITES = 256, jz.SLOTS - 1
# A QP has 64 KiB before others have their turn, some 100 units of work: four turns, in between which are the peer's. Then
# come the turn with the acknowledgement, two that a doorbell adds, and some to spare.
MOST_TURNS = 16


def firmware(register):
    """Reads the register for ever, and counts the reads at COUNTER."""
    gdt = struct.pack("<QQQ", 0, 0x00cf9b000000ffff, 0x00cf93000000ffff)      # code and data: 4 GiB from 0 on
    table, protected = 0x40, 0x80
    image = bytearray(FIRMWARE_BYTES)

    def put(at, *parts):
        data = b"".join(bytes.fromhex(part) if isinstance(part, str) else part for part in parts)
        image[at:at + len(data)] = data

    put(FIRMWARE_BYTES - 16, "e9", struct.pack("<H", 16 - 3))                 # the first instruction: jmp 0
    put(0, "fa",                                                              # cli
        "662e0f0116", struct.pack("<H", table - 6),                           # lgdt cs:[table - 6]
        "0f20c0", "0c01", "0f22c0",                                           # CR0.PE = 1
        "66ea", struct.pack("<IH", BASE + protected, 8))                      # jmp 8:protected
    put(table - 6, struct.pack("<HI", len(gdt) - 1, BASE + table), gdt)
    put(protected, "66b81000", "8ed8",                                        # ds = 16
        "a1", struct.pack("<I", register),                                    # again: mov eax, [register]
        "ff05", struct.pack("<I", COUNTER), "ebf3")                           # inc dword [COUNTER]; jmp again
    return bytes(image)


def rounds_before_rests(trace):
    """The rounds of turns in the main loop before each rest."""
    found, rounds = [], 0
    for line in trace:
        rounds += "hghca_round" in line
        if "hghca_rest" in line:
            found.append(rounds)
            rounds = 0
    return found


def wait(holds, what):
    end = time.monotonic() + SILENCE_S
    while not holds():
        if time.monotonic() > end:
            raise AssertionError(what)
        time.sleep(0.01)


def reads_beside_turns(hook):
    with tempfile.NamedTemporaryFile() as file:
        file.write(firmware(0xe0000000 + HCR))
        file.flush()
        words = ("-bios", file.name, "-global", f"hghca.bql-hook={hook}")
        m = Machine(*words, accelerator="tcg", traces=("hghca_round", "hghca_rest"))
        try:
            wait(lambda: m.read32(COUNTER), "the CPU has not begun")
            a, b, c = m.hcas
            a.aim(0, *arm(b))
            a.aim(1, *arm(c))
            b.aim(0, *arm(b))
            c.aim(0, *arm(c))
            for eqn in (1, 2):
                a.arm_eq(eqn)
            reads, rests = m.read32(COUNTER), lambda: len(rounds_before_rests(m.trace()))
            wait(lambda: rests() >= RESTS, f"bql-hook={hook}: no rest in many rounds")
            # A busy machine may have had no time for the CPU during few rests.
            wait(lambda: m.read32(COUNTER) != reads or rests() > MOST_RESTS, f"bql-hook={hook}: neither reads nor rests")
            same(m.read32(COUNTER) != reads, True, f"bql-hook={hook}: a CPU reads during {MOST_RESTS} rests")
            same(max(rounds_before_rests(m.trace())), ROUNDS, f"bql-hook={hook}: the most rounds before a rest")
            for hca in m.hcas:
                same(hca.answers(), True, "takes commands")
        finally:
            m.close()


def long_region(adapter):
    """An MR of 1 MiB that has one page of memory again and again."""
    region = adapter.new_region(0, LONG_PAGES * jz.PAGE, memory=adapter.data.memory)
    adapter.write_mtt(region.first, [adapter.data.memory] * LONG_PAGES)
    return region


def test_a_doorbell_ends_with_its_work():
    """A doorbell whose own WRITE is done does few turns more for another QP, whose 15 MiB the main loop sends"""
    with adapters("full", "full") as (m, a, b):
        m.qmp("trace-event-set-state", name="hghca_doorbell_done", enable=True)
        long, _ = pair(a, b, jz.RC)
        short, _ = pair(a, b, jz.RC)
        own, other = long_region(a), long_region(b)

        def turns():
            """Of the doorbells that ended so; the long WRITEs are under way when the short one's doorbell rings."""
            index, words = short.send.count, (jz.remote(b.data), jz.data(a.data, 0, 8))
            size = short.write_send(jz.OP_WRITE, *words)
            long.post_chain(*[(jz.OP_WRITE, (jz.remote(other), jz.data(own, 0, own.length)), {})] * LONG_WRITES)
            short.ring(index, jz.OP_WRITE, size)
            done(short, jz.OP_WRITE, 8, "WRITE beside the long ones")
            for _ in range(LONG_WRITES):
                wait(long.completion, "a long WRITE does not complete")
            return [int(line.split()[-1]) for line in m.trace() if "hghca_doorbell_done" in line]

        wait(turns, "no doorbell ended with its work")
        same(turns()[0] <= MOST_TURNS, True, f"{MOST_TURNS} turns at the most, not {turns()[0]}")


def test_a_cpu_has_its_turn():
    """While two HCAs have work without end, the main loop rests after 16 rounds of both, and a CPU reads a register"""
    reads_beside_turns("on")


def test_a_cpu_has_its_turn_without_the_hook():
    """The same without the hook of QEMU's lock"""
    reads_beside_turns("off")
