# SPDX-License-Identifier: GPL-2.0-or-later
"""What a guest may do wrong with a base device and with one of the RSNIC document, beside the command queue of the latter.

Each case is run on both. The driver (jingzhao.py) turns on no extension, so all is as the JingZhao document has it.
"""

import struct

import jingzhao as jz
import machine
from base_cases import START, adapters, done, failed, pair, same
from pci import PAGE

BAR0_BYTES, BAR2_BYTES, UAR_PAGES = 1 << 20, 8 << 20, 2048
WIDTHS = (1, 2, 4, 8)
# Of RSNIC; rsnic_cases.py reads and writes it.
SEGMENT_BYTES = 0x2000
SQ_BELL, CQ_ARM, EQ_ARM = 0x00, 0x10, 0x20
BELL_COUNTERS = ("db_bad_page", "db_bad_object", "db_bad_state")
NOWHERE = 0xd0000000
# Table 3-2-25 leaves the types open; they are Tavor's.
CQ_ERROR, QUEUE_UNREADABLE, CATASTROPHE = 0x04, 0x05, 0x08
REMOTE_OPERATION = 0x14
INTERNAL_ERR = 0x01


def on_each(function):
    """A case for each of the two profiles."""
    for profile in ("base", "rsnic"):
        def test(profile=profile):
            with adapters(profile, profile) as (m, a, b):
                function(m, a, b)

        test.__doc__ = f"{profile}: {function.__doc__}"
        globals()[f"test_{function.__name__}_of_{profile}"] = test
    return function


def places(a):
    """Addresses where no memory is."""
    return NOWHERE, machine.RAM_BYTES, 1 << 40, a.registers, a.bells, machine.ECAM


def stats(a, number):
    return a.m.qmp("qom-get", path=f"/machine/peripheral/hca{number}", property="stats")


def bells(a, number):
    found = stats(a, number)
    return [found[name] for name in BELL_COUNTERS]


def works(m, a, b, what):
    """A new pair moves data."""
    x, _ = pair(a, b, jz.RC)
    m.write(b.data.memory, bytes(9))
    x.post(jz.OP_WRITE, jz.remote(b.data), jz.inline(b"still here"[:9]))
    done(x, jz.OP_WRITE, 9, what)
    same(m.read(b.data.memory, 9), b"still her", f"{what}: what was written")


def every_access(start, end):
    return [(offset, width) for width in WIDTHS for offset in range(start, end - width + 1)]


@on_each
def registers(m, a, b):
    """reads and writes of BAR0 at every offset and width, but aligned ones of 32 bits at a register, do nothing"""
    register_words = [(jz.HCR + at, 4) for at in range(0, 0x1c, 4)] + [(jz.RESET, 4)]
    accesses = every_access(jz.HCR, jz.HCR + PAGE) + every_access(jz.RESET & -PAGE, (jz.RESET & -PAGE) + PAGE)
    accesses += every_access(SEGMENT_BYTES, SEGMENT_BYTES + PAGE) + every_access(BAR0_BYTES - PAGE, BAR0_BYTES)
    accesses += [(offset, 4) for offset in range(SEGMENT_BYTES + PAGE, BAR0_BYTES - PAGE, 52)
                 if offset & -PAGE not in (jz.HCR, jz.RESET & -PAGE)]
    # A command that is not started: its words can be read.
    words = (0x01020304, 0x05060708, 0x11121314, 0x15161718, 0x21222324, 0x25260000, 0x00312345 & 0x000fffff)
    for at, word in enumerate(words):
        m.write32(a.registers + jz.HCR + 4 * at, word)

    def read():
        found = m.read_numbers([(a.registers + offset, width) for offset, width in accesses])
        return {access: value for access, value in zip(accesses, found) if value}

    wanted = dict(zip(register_words, words))
    same(read(), wanted, "what BAR0 reads")
    m.write_numbers([(a.registers + offset, width, (1 << 8 * width) - 1) for offset, width in accesses
                     if (offset, width) not in register_words])
    # Only 1 resets.
    m.write32(a.registers + jz.RESET, 0xffffffff)
    same(read(), wanted, "what BAR0 reads after the writes")
    works(m, a, b, "after the accesses")


@on_each
def doorbell_pages(m, a, b):
    """BAR2 reads 0 at every offset and width, and writes ring only at the one doorbell there is, by 32 or 64 bits"""
    x, y = pair(a, b, jz.RC)
    pages = (0, a.UAR_PAGE, UAR_PAGES - 1)
    accesses = [(page * PAGE + offset, width) for page in pages for offset, width in every_access(0, PAGE)]
    found = m.read_numbers([(a.bells + offset, width) for offset, width in accesses])
    same({access: value for access, value in zip(accesses, found) if value}, {}, "what BAR2 reads")
    before = bells(a, 1)
    # A WQE that a doorbell would start: each write names this QP.
    wqe = struct.pack("<IIII", 0, 0, 0, 0) + jz.remote(b.data) + jz.inline(b"rung")
    m.write(x.send.slot(0), wqe)
    ring = (x.qpn << 8 | len(wqe) // 16) << 32 | jz.OP_WRITE
    ringing = {(page * PAGE + at, width) for page in pages for at, width in ((SQ_BELL, 8), (SQ_BELL, 4), (SQ_BELL + 4, 4))}
    m.write_numbers([(a.bells + offset, width, ring & (1 << 8 * width) - 1) for offset, width in accesses
                     if (offset, width) not in ringing])
    same((bells(a, 1), x.completion()), (before, None), "doorbells, and a completion")
    m.write_numbers([(a.bells + a.UAR_PAGE * PAGE, 8, ring)])
    done(x, jz.OP_WRITE, 4, "a doorbell of 64 bits")
    x.send.count += 1
    works(m, a, b, "after the writes")


@on_each
def foreign_doorbells(m, a, b):
    """a doorbell for a QP that is absent, of another page or not yet in RTS is ignored and counted; CQs and EQs have none"""
    x, y = pair(a, b, jz.RC)
    early = jz.Qp(a, jz.RC)
    early.connect(y, steps=(jz.RST2INIT,))
    page, object_, state = bells(a, 1)

    def ring(uar_page, qpn, offset=SQ_BELL):
        m.write_numbers([(a.bells + uar_page * PAGE + offset, 8, (qpn << 8 | 3) << 32 | jz.OP_WRITE)])
        return bells(a, 1)

    for qpn in (0, early.qpn + 1, 1 << jz.Adapter.LOG_QPS, 0xffffff):
        object_ += 1
        same(ring(a.UAR_PAGE, qpn), [page, object_, state], f"doorbells ignored, of QP {qpn:#x}")
    for other in (0, a.UAR_PAGE - 1, a.UAR_PAGE + 1, UAR_PAGES - 1):
        page += 1
        same(ring(other, x.qpn), [page, object_, state], f"doorbells ignored, in page {other}")
    state += 1
    same(ring(a.UAR_PAGE, early.qpn), [page, object_, state], "doorbells ignored, of a QP in INIT")
    for offset in (CQ_ARM, EQ_ARM):
        for uar_page in (0, a.UAR_PAGE):
            same(ring(uar_page, 1, offset), [page, object_, state], f"doorbells ignored, at {offset:#x}")
    same((x.completion(), early.state), (None, jz.INIT), "completion, and state of the QP in INIT")
    x.post(jz.OP_WRITE, jz.remote(b.data), jz.inline(b"rung"))
    done(x, jz.OP_WRITE, 4, "the right doorbell")


@on_each
def mailboxes(m, a, b):
    """a mailbox where no memory is, or that is not aligned, is BAD_PARAM, and changes nothing"""
    for place in (*places(a), a.inbox + 8, a.inbox + PAGE // 2, machine.RAM_BYTES - PAGE // 2):
        same((a.status(jz.SW2HW_MPT, 200, param=place), a.status(jz.HW2SW_MPT, 200)), (jz.BAD_PARAM, 0x09),
             f"statuses of SW2HW_MPT from {place:#x} and of HW2SW_MPT")
        outbox, a.outbox = a.outbox, place
        same(a.status(jz.QUERY_DEV_LIM), jz.BAD_PARAM, f"status of QUERY_DEV_LIM to {place:#x}")
        a.outbox = outbox
    works(m, a, b, "after invalid mailboxes")


@on_each
def queue_sizes(m, a, b):
    """CQs and EQs of sizes out of range are BAD_SIZE, and those at odd addresses or beyond their region BAD_PARAM"""
    region = a.new_region(START, 2 * PAGE)

    def ring(offset):
        return jz.Region(region.key, START + offset, PAGE, region.memory + offset)

    for create, number, most in ((a.try_create_cq, 40, 22), (a.try_create_eq, 5, 20)):
        same([create(number, ring(0), log) for log in (0, most + 1, 31)], [jz.BAD_SIZE] * 3, "sizes out of range")
        same(create(number, ring(0), most), jz.BAD_PARAM, "the largest, which is beyond its region")
        same([create(number, ring(offset), 3) for offset in (1, 4, 16, 2 * PAGE - 32, 2 * PAGE, 1 << 40)],
             [jz.BAD_PARAM] * 6, "odd addresses")
        same(create(number, ring(2 * PAGE - 2 * 32), 1), jz.OK, "the last two entries of the region")
    works(m, a, b, "after queues that are refused")


@on_each
def data_nowhere(m, a, b):
    """data where no memory is: a local protection error, or a remote access or operational error; other QPs go on"""
    for place in places(a):
        bad, worse = a.new_region(START, PAGE, memory=place), b.new_region(START, PAGE, memory=place)
        x, y = pair(a, b, jz.RC)
        x.post(jz.OP_WRITE, jz.remote(b.data), jz.data(bad, 0, 64))
        failed(x, jz.LOCAL_PROTECTION, 1, f"WRITE from {place:#x}")
        same(x.state, jz.ERR, "state")
        for opcode in (jz.OP_WRITE, jz.OP_READ):
            x, y = pair(a, b, jz.RC)
            x.post(opcode, jz.remote(worse), jz.data(a.data, 0, 64))
            failed(x, jz.REMOTE_ACCESS, 1, f"opcode {opcode:#x} at {place:#x}")
        x, y = pair(a, b, jz.RC)
        y.post_receive(jz.data(worse, 0, 64))
        x.post(jz.OP_SEND, jz.data(a.data, 0, 64))
        failed(x, REMOTE_OPERATION, 1, f"SEND to {place:#x}")
        failed(y, jz.LOCAL_PROTECTION, 0, "its receive")
    works(m, a, b, "after regions that are no memory")


@on_each
def queues_nowhere(m, a, b):
    """a send queue or CQ where no memory is: an event, the QP fails, and other QPs go on"""
    a.command(jz.MAP_EQ, a.EVENTS, param=1 << QUEUE_UNREADABLE | 1 << CQ_ERROR)
    for place in places(a):
        x, y = jz.Qp(a, jz.RC, send=place), jz.Qp(b, jz.RC)
        x.connect(y)
        y.connect(x, 0x654321, 0x123456)
        m.write_numbers([(a.bells + a.UAR_PAGE * PAGE, 8, (x.qpn << 8 | 3) << 32 | jz.OP_WRITE)])
        same((a.events(a.EVENTS), x.state), ([(QUEUE_UNREADABLE, x.qpn)], jz.ERR), f"send queue at {place:#x}")
        region = a.new_region(START & -PAGE, PAGE, jz.LOCAL_WRITE, memory=place)
        x = jz.Qp(a, jz.RC, cqn=a.create_cq(ring=jz.Region(region.key, region.start, PAGE, a.free)))
        y = jz.Qp(b, jz.RC)
        x.connect(y)
        y.connect(x, 0x654321, 0x123456)
        x.post(jz.OP_WRITE, jz.remote(b.data), jz.inline(b"done"))
        same((a.events(a.EVENTS)[0], x.state), ((CQ_ERROR, x.cqn), jz.ERR), f"CQ at {place:#x}")
    works(m, a, b, "after queues that are no memory")


@on_each
def eq_nowhere(m, a, b):
    """an EQ where no memory is fails the device: registers read all ones, and after a reset it works again"""
    for place in (NOWHERE, a.registers):
        region = a.new_region(START & -PAGE, PAGE, jz.LOCAL_WRITE, memory=place)
        must_fail = jz.Region(region.key, region.start, PAGE, a.free)
        same(a.try_create_eq(3, must_fail, 6), jz.OK, "SW2HW_EQ")
        a.command(jz.MAP_EQ, 3, param=1 << jz.COMMAND_DONE)
        for at, word in enumerate((0, 0, 0x1f, 0, 0, 0x12340000, jz.GO | jz.BY_EVENT | jz.NOP)):
            m.write32(a.registers + jz.HCR + 4 * at, word)
        ones = [m.read32(address) for address in (a.registers + jz.HCR, a.registers + jz.RESET, a.bells)]
        same(ones, [0xffffffff] * 3, f"registers after an event for an EQ at {place:#x}")
        a.reset()
        same(m.read32(a.registers + jz.HCR), 0, "the HCR after a reset")
        a.next_key = a.next_mtt = 1
        a.next_qpn, a.next_cqn, a.free = 8, 1, a.memory + 0x400000
        a.start()
        a.data = a.new_region(START, 3 * PAGE)
        works(m, a, b, "after the reset")
