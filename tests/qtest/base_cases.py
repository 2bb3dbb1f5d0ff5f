# SPDX-License-Identifier: GPL-2.0-or-later
"""The base device, driven from the JingZhao document alone (jingzhao.py)."""

import contextlib
import struct
import tempfile
from pathlib import Path

import jingzhao as jz
import machine
from pci import PAGE, REVISION

START = 0xfedcba9876543000      # address of the data regions
LENGTH = 3 * 4096
FAR = 1 << 32                   # what an address of 32 bits leaves out
BOARD = 0x4847484341000001      # "HGHCA", 1
HELD_US = 1000                  # what delayed() holds a frame back


def same(found, wanted, what):
    if found != wanted:
        raise AssertionError(f"{what} is {found!r}, not {wanted!r}")


def differs(found, refused, what):
    if found == refused:
        raise AssertionError(f"{what} is {found!r}")


def words(number, profile="base"):
    return ("-netdev", f"hubport,hubid=0,id=n{number}", "-device",
            f"hghca,id=hca{number},netdev=n{number},addr={3 + number}.0,mac=52:54:00:00:00:0{number},profile={profile}")


@contextlib.contextmanager
def adapters(*profiles):
    """Two HCAs on one link, each with a region of data at START."""
    with machine.started(*words(1, profiles[0]), *words(2, profiles[1])) as m:
        both = [jz.Adapter(m, 3 + n, 0xe0000000 + n * 0x4000000, 0x1000000 * n, n) for n in (1, 2)]
        for adapter in both:
            adapter.enable()
            adapter.start()
            adapter.data = adapter.new_region(START, LENGTH)
        yield m, *both


@contextlib.contextmanager
def single():
    """One HCA, which is not started."""
    with machine.started(*words(1)) as m:
        adapter = jz.Adapter(m, 4, 0xe4000000, 0x1000000, 1)
        adapter.enable()
        yield m, adapter


def set_property(m, name, value):
    """Of the first HCA."""
    m.qmp("qom-set", path="/machine/peripheral/hca1", property=name, value=value)


def delayed(m):
    """Each frame that the first HCA sends from now on is held back."""
    set_property(m, "faults", f"delay,us={HELD_US},dir=tx")


def wait_us(m, us):
    for _ in range(us // 100):
        m.advance(100_000)


def pair(a, b, service, **named):
    """Two connected QPs."""
    x, y = jz.Qp(a, service), jz.Qp(b, service)
    connect(x, y, **named)
    return x, y


def connect(x, y, **named):
    x.connect(y, **named)
    y.connect(x, 0x654321, 0x123456, **named)
    same((x.state, y.state), (jz.RTS, jz.RTS), "states")


def next_completion(qp, what):
    c = qp.completion()
    if c is None:
        raise AssertionError(f"{what}: no completion")
    return c


def done(qp, opcode, length, what):
    """The next completion is of a send that went well."""
    c = next_completion(qp, what)
    same((c.qpn, c.opcode, c.is_send, c.syndrome, c.bytes, c.wqe), (qp.qpn, opcode, 1, 0, length, qp.send.complete()),
         what)


def received(qp, packet, length, what):
    """The next completion is of a receive; the last packet of its message was of this kind. Its immediate data."""
    c = next_completion(qp, what)
    same((c.qpn, c.opcode, c.is_send, c.bytes, c.remote, c.wqe),
         (qp.qpn, jz.PACKETS_OF[qp.service] | packet, 0, length, qp.peer.qpn, qp.receive.complete()), what)
    return c


def failed(qp, syndrome, is_send, what):
    c = next_completion(qp, what)
    wqe = (qp.send if is_send else qp.receive).complete()
    same((c.qpn, c.opcode, c.is_send, c.syndrome, c.wqe), (qp.qpn, 0xff, is_send, syndrome, wqe), what)


def nothing_left(*qps):
    same([qp.completion() for qp in qps], [None] * len(qps), "what is left")


def pattern(length, seed):
    return bytes((i * 7 + seed) & 0xff for i in range(length))


def exchange(m, a, b, service):
    """All that a connected service has, with each byte looked at."""
    x, y = pair(a, b, service)
    for seed, length in enumerate((1, 64, 1024, 1025, 4000)):
        m.write(a.data.memory, pattern(length, seed))
        y.post_receive(jz.data(b.data, 4096, 40), jz.data(b.data, 8192, 4096))
        x.post(jz.OP_SEND, jz.data(a.data, 0, length))
        done(x, jz.OP_SEND, length, f"SEND of {length}")
        received(y, jz.SEND_ONLY if length <= 1024 else jz.ENDS_SEND, length, "its receive")
        found = m.read(b.data.memory + 4096, min(length, 40)) + m.read(b.data.memory + 8192, 4096)[:max(length - 40, 0)]
        same(found, pattern(length, seed), "what arrived")
    m.write(a.data.memory, pattern(5000, 8))
    x.post(jz.OP_WRITE, jz.remote(b.data, 64), jz.data(a.data, 0, 2000), jz.data(a.data, 2000, 3000))
    done(x, jz.OP_WRITE, 5000, "WRITE")
    same(m.read(b.data.memory + 64, 5000), pattern(5000, 8), "what a WRITE wrote")
    y.post_receive(jz.data(b.data, 4096, 40))
    x.post(jz.OP_SEND_IMM, jz.inline(b"inline data"), imm=0x01020304)
    done(x, jz.OP_SEND_IMM, 11, "SEND with Immediate")
    c = received(y, jz.SEND_ONLY_IMM, 11, "its receive")
    same((c.imm, m.read(b.data.memory + 4096, 11)), (0x01020304, b"inline data"), "what arrived")
    y.post_receive()
    x.post(jz.OP_WRITE_IMM, jz.remote(b.data, 3), jz.inline(b"behind"), imm=0x05060708)
    done(x, jz.OP_WRITE_IMM, 6, "WRITE with Immediate")
    c = received(y, jz.WRITE_ONLY_IMM, 6, "its receive")
    same((c.imm, m.read(b.data.memory + 3, 6)), (0x05060708, b"behind"), "what arrived")
    x.post(jz.OP_NOP)
    done(x, jz.OP_NOP, 0, "NOP")
    chain(m, x, y)
    nothing_left(x, y)
    return x, y


def chain(m, x, y):
    """Sends that the links of those before them lead to, of different opcodes and sizes."""
    a, b = x.adapter, y.adapter
    m.write(a.data.memory, pattern(3000, 5))
    for _ in range(2):
        y.post_receive(jz.data(b.data, 4096, 2000))
    x.post_chain((jz.OP_WRITE, (jz.remote(b.data, 9), jz.data(a.data, 0, 70)), {}), (jz.OP_NOP, (), {}),
                 (jz.OP_WRITE_IMM, (jz.remote(b.data, 200), jz.data(a.data, 70, 1000), jz.data(a.data, 1070, 500)),
                  {"imm": 0x0badcafe}),
                 (jz.OP_SEND_IMM, (jz.data(a.data, 0, 1500),), {"imm": 0x11223344}))
    for opcode, length in ((jz.OP_WRITE, 70), (jz.OP_NOP, 0), (jz.OP_WRITE_IMM, 1500), (jz.OP_SEND_IMM, 1500)):
        done(x, opcode, length, f"opcode {opcode:#x} of a chain")
    same([received(y, packet, 1500, "a receive of a chain").imm for packet in (jz.ENDS_WRITE_IMM, jz.ENDS_SEND_IMM)],
         [0x0badcafe, 0x11223344], "immediate data")
    same([m.read(b.data.memory + at, length) for at, length in ((9, 70), (200, 1500), (4096, 1500))],
         [pattern(3000, 5)[:70], pattern(3000, 5)[70:1570], pattern(3000, 5)[:1500]], "what a chain wrote")


# ---- 3.1, registers

def test_identity():
    """A base device has revision 0, a BAR of 8 MB, and zeros where the document has nothing; a full one has neither"""
    with machine.started(*words(1), *words(2, "full"), *words(3, "full,device-memory=0")) as m:
        found = []
        for n in (1, 2, 3):
            adapter = jz.Adapter(m, 3 + n, 0xe0000000 + n * 0x4000000, 0x1000000 * n, n)
            revision = m.read32(adapter.config + REVISION) & 0xff
            sizes = [adapter.bar_bytes(bar) >> 20 for bar in (0, 2)]
            adapter.enable()
            limits, board = adapter.command(jz.QUERY_DEV_LIM), adapter.command(jz.QUERY_ADAPTER)
            found.append((revision, *sizes, any(limits[0x38:]), any(board[:0x18] + board[0x20:]),
                          any(board[0x18:0x20])))
    same(found, [(0, 1, 8, False, False, True), (1, 1, 16, True, True, True), (1, 1, 8, True, True, True)],
         "revision, MB of BAR0 and BAR2, extensions of limits and of the adapter, board_id")


def test_profile_refused():
    """A profile that does not exist is refused with those that do"""
    try:
        with machine.started(*words(1, "nonsense")):
            said = "nothing"
    except AssertionError as error:
        said = str(error)
    if "property 'profile' must be 'full', 'base' or 'rsnic', not 'nonsense'" not in said:
        raise AssertionError(said)


def test_registers():
    """From the document alone: the 28 bytes of the HCR at 80000h, Reset at F0010h, and go is 0 after a command"""
    with single() as (m, a):
        at = a.registers + 0x80000
        # All bits of each but status, go and what is reserved.
        bits = (0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffff0000, 0x004fffff)
        for shift in (0, 3):
            values = [(0x9e3779b9 * (i + 1) >> shift) & mask for i, mask in enumerate(bits)]
            for i, value in enumerate(values):
                m.write32(at + 4 * i, value)
            same([m.read32(at + 4 * i) for i in range(7)], values, "words of the HCR")
        for outside in (-4, 28):
            m.write32(at + outside, 0xffffffff)
            same(m.read32(at + outside), 0, f"the word at {outside} of the HCR")
        same([m.read32(at + 4 * i) for i in range(7)], values, "words of the HCR after writes beside it")
        for word, status in ((0x31, 0x00), (0xfff, 0x02)):     # NOP and no command
            m.write32(at + 8, 0x1f)
            m.write32(at + 0x18, 1 << 23 | word)
            same(m.read32(at + 0x18), status << 24 | word, "status, go and op")
        a.start()
        for value, known in ((0, jz.OK), (1, jz.BAD_SYS_STATE)):
            m.write32(a.registers + 0xf0010, value)
            same((m.read32(a.registers + 0xf0010), a.status(jz.QUERY_QP, 8)), (0, known),
                 f"Reset and a command after {value}")


def test_statuses():
    """From the document alone: OK, BAD_OP, BAD_PARAM and BAD_SYS_STATE, each where it belongs"""
    with single() as (_, a):
        same([a.status(op, 0x1f) for op in (0x31, 0x22, 0x08)], [0x00, 0x04, 0x04], "before INIT_HCA")
        a.start()
        # Opcodes that the document has not, of which others devices have some.
        for op in (0x0, 0x1, 0xc, 0xe, 0x15, 0x18, 0x25, 0x35, 0xe00, 0xe01, 0xe11, 0xff8, 0xffb, 0xfff):
            same(a.status(op, 1), 0x02, f"opcode {op:#x}")
        bad = (0x31, 0x1e), (0x31, 0x1f, 1), (0x19, 9, jz.NO_MAILBOX)
        same([a.status(*each) for each in bad], [0x03] * 3, "bad parameters")
        same(a.status(0x31, 0x1f), 0x00, "NOP")


# Fields of table 3-2-4: the offset of the word, the lowest bit, and the value that the interface document has.
LIMITS = {
    "reserved_qp": (0x00, 24, 3), "reserved_cq": (0x00, 16, 0),
    "reserved_eq": (0x00, 8, 0), "reserved_mtt": (0x00, 0, 0),
    "reserved_pd": (0x04, 16, 0), "reserved_lkey": (0x04, 0, 0),
    "max_qp_sz": (0x08, 16, 14), "max_cq_sz": (0x08, 0, 22),
    "max_qps": (0x0c, 24, 16), "max_cqs": (0x0c, 16, 17),
    "max_eqs": (0x0c, 8, 6), "max_mpts": (0x0c, 0, 19),
    "max_pds": (0x10, 24, 20), "max_gids": (0x10, 8, 7), "max_pkeys": (0x10, 0, 0),
    "max_mtt_seg": (0x14, 16, 8),
    "qpc_entry_sz": (0x18, 16, 2048), "cqc_entry_sz": (0x18, 0, 128),
    "eqc_entry_sz": (0x1c, 16, 64), "mpt_entry_sz": (0x1c, 0, 64),
    "ack_delay": (0x20, 24, 0), "max_mtu": (0x20, 20, 5), "max_port_width": (0x20, 16, 2),
    "max_vl": (0x20, 4, 1), "num_ports": (0x20, 0, 1),
    "min_page_sz": (0x24, 16, 12),
    "max_sg": (0x28, 16, 32), "max_desc_sz": (0x28, 0, 1008),
    "max_sg_rq": (0x2c, 16, 32), "max_desc_sz_rq": (0x2c, 0, 1008),
    "max_icm_sz[63:32]": (0x30, 0, 1), "max_icm_sz[31:0]": (0x34, 0, 0),
}


def test_limits():
    """From the document alone: each limit of QUERY_DEV_LIM, and the number of the board"""
    expected = [0] * 14
    for at, bit, value in LIMITS.values():
        expected[at // 4] |= value << bit
    with single() as (_, a):
        found = struct.unpack_from(">14I", a.command(jz.QUERY_DEV_LIM))
        same([f"{word:08x}" for word in found], [f"{word:08x}" for word in expected], "words of QUERY_DEV_LIM")
        same(struct.unpack_from(">Q", a.command(jz.QUERY_ADAPTER), 0x18)[0], BOARD, "board_id")


# ---- 3.2, commands

def test_init_hca():
    """From the document alone: each base and each number of INIT_HCA is looked at, in all its bits"""
    most = {0x08: 16, 0x10: 17, 0x18: 6, 0x30: 19}      # as QUERY_DEV_LIM has them
    good = {0x08: 0, 0x10: 0x40000000, 0x18: 0x80000000, 0x30: 0, 0x38: 0x40000000}

    def mailbox(changed):
        content = bytearray(64)
        for at, value in (good | changed).items():
            struct.pack_into(">Q", content, at, value)
        return bytes(content)

    with single() as (_, a):
        for at, log in most.items():
            same(a.status(jz.INIT_HCA, mailbox=mailbox({at: good[at] | log + 1})), jz.BAD_PARAM, f"one more at {at:#x}")
            a.command(jz.INIT_HCA, mailbox=mailbox({at: good[at] | log}))
            a.command(jz.CLOSE_HCA)
        for at, base in good.items():
            same(a.status(jz.INIT_HCA, mailbox=mailbox({at: base + FAR})), jz.BAD_PARAM, f"base beyond ICM at {at:#x}")
            a.command(jz.INIT_HCA, mailbox=mailbox({at: base + 0x100}))
            a.command(jz.CLOSE_HCA)
        # One byte of a table in another one, of the same space.
        for at, base in ((0x08, good[0x10] - 0x100), (0x10, good[0x18] - 0x100), (0x18, good[0x10])):
            same(a.status(jz.INIT_HCA, mailbox=mailbox({at: base | 2})), jz.BAD_PARAM, f"an overlap at {at:#x}")


def test_every_command():
    """From the document alone: each command does what it is for, and one that is polled makes no event"""
    with adapters("base", "base") as (m, a, b):
        same(struct.unpack_from(">Q", a.command(jz.QUERY_ADAPTER), 0x18)[0], BOARD, "board_id")
        same(a.status(jz.INIT_HCA, mailbox=bytes(64)), jz.BAD_SYS_STATE, "a second INIT_HCA")
        region_commands(m, a, b)
        icm_commands(m, a, b)
        cq_commands(m, a, b)
        transitions(m, a, b)
        send_queue_error(m, a, b)
        special_qp(m, a, b)
        subnet_management(a)
        a.command(jz.NOP, 0x1f)
        # All of them were polled, with the token 0xffff.
        same(m.read32(a.registers + 0x80014), 0xffff0000, "token")
        same([event for event in a.events(a.EVENTS) if event[0] == jz.COMMAND_DONE], [], "ends of commands")
        eq_commands(a)
        a.command(jz.CLOSE_HCA)
        same(a.succeeded, jz.COMMANDS, "commands that succeeded")


def write_to(region, a, b, content):
    """The syndrome of a WRITE from B to the region of A."""
    x, _ = pair(b, a, jz.RC)
    x.post(jz.OP_WRITE, jz.remote(region), jz.inline(content))
    return next_completion(x, "a WRITE").syndrome


def region_commands(m, a, b):
    """SW2HW_MPT, HW2SW_MPT, WRITE_MTT."""
    region = a.new_region(START, PAGE)
    same((write_to(region, a, b, b"one"), m.read(region.memory, 3)), (0, b"one"), "a WRITE to a region")
    other = a.new_page()
    a.write_mtt(region.first, [other])
    same((write_to(region, a, b, b"two"), m.read(other, 3), m.read(region.memory, 3)), (0, b"two", b"one"),
         "a WRITE to its new page")
    a.command(jz.HW2SW_MPT, a.index(region))
    same((write_to(region, a, b, b"no"), m.read(other, 3)), (jz.REMOTE_ACCESS, b"two"), "a WRITE to what was a region")
    differs(a.status(jz.HW2SW_MPT, a.index(region)), jz.OK, "a second HW2SW_MPT")
    a.give_region(region)
    same((write_to(region, a, b, b"new"), m.read(other, 3)), (0, b"new"), "a WRITE to the region that is there again")


def icm_commands(m, a, b):
    """MAP_ICM and UNMAP_ICM of either space: what is unmapped is out of reach, and not lost."""
    key, a.next_key = a.next_key, 200           # 64 MPTs in a page
    region = a.new_region(START, PAGE)
    a.next_key = key
    a.unmap_icm(jz.TABLES, 3 * PAGE, 1)
    same(write_to(region, a, b, b"no"), jz.REMOTE_ACCESS, "a WRITE without the MPT")
    differs(a.status(jz.HW2SW_MPT, 200), jz.OK, "HW2SW_MPT without ICM")
    differs(a.status(jz.UNMAP_ICM, 1, jz.TABLES, param=3 * PAGE), jz.OK, "a second UNMAP_ICM")
    a.map_icm(jz.TABLES, 3 * PAGE, 1)
    again = struct.pack(">16xQQ", 3 * PAGE, a.new_page() | 1)
    differs(a.status(jz.MAP_ICM, 1, jz.TABLES, again), jz.OK, "a second MAP_ICM")
    same((write_to(region, a, b, b"back"), m.read(region.memory, 4)), (0, b"back"), "a WRITE with the MPT")
    qpn, a.next_qpn = a.next_qpn, 60            # two QPCs in a page
    x, y = pair(a, b, jz.RC)
    a.next_qpn = qpn
    before = x.query()
    a.unmap_icm(jz.CONTEXTS, 30 * PAGE, 1)
    differs(a.status(jz.QUERY_QP, 60), jz.OK, "QUERY_QP without ICM")
    a.map_icm(jz.CONTEXTS, 30 * PAGE, 1)
    same(x.query(), before, "the context")
    x.post(jz.OP_WRITE, jz.remote(b.data), jz.inline(b"alive"))
    done(x, jz.OP_WRITE, 5, "a WRITE of the QP that is there again")


def cq_commands(m, a, b):
    """SW2HW_CQ, HW2SW_CQ, RESIZE_CQ."""
    x, y = pair(a, b, jz.RC)

    def write(what):
        x.post(jz.OP_WRITE, jz.remote(b.data), jz.data(a.data, 0, 100))
        done(x, jz.OP_WRITE, 100, what)

    for _ in range(2):
        write("a WRITE")
    old = a.consumed["cq", x.cqn][0]
    for log in (5, 2):
        before = m.read(old.memory, old.length)
        a.resize_cq(x.cqn, log)
        for i in range(9):
            write(f"WRITE {i} of a CQ of {1 << log} entries")
        same(m.read(old.memory, old.length), before, "the old ring")
        old = a.consumed["cq", x.cqn][0]
    a.command(jz.HW2SW_CQ, x.cqn)
    differs(a.status(jz.HW2SW_CQ, x.cqn), jz.OK, "a second HW2SW_CQ")
    x.post(jz.OP_WRITE, jz.remote(b.data), jz.data(a.data, 0, 100))
    same((x.completion(), x.state), (None, jz.ERR), "a completion without a CQ, and the state")
    for qp in (x, y):
        qp.reset()
    a.give_cq(x.cqn, 3)
    connect(x, y)
    write("a WRITE, of a CQ that is there again")


def eq_commands(a):
    """MAP_EQ, SW2HW_EQ, HW2SW_EQ. Whether a command ends by event tells which EQ has its type."""
    eqn, vector = 3, 2

    def nop(token):
        a.status(jz.NOP, 0x1f, token=token, flags=jz.GO | jz.BY_EVENT)
        return a.events(a.EVENTS), a.message_seen(a.EVENTS - 1)

    a.create_eq(eqn, log=2)
    nop(1)
    same(nop(2), ([(jz.COMMAND_DONE, 2)], True), "events of the EQ that has the type")
    a.map_events(eqn, jz.COMMAND_DONE)
    for token in range(3, 10):
        same((nop(token), a.events(eqn), a.message_seen(vector)), (([], False), [(jz.COMMAND_DONE, token)], True),
             "events of both EQs")
    a.map_events(eqn, jz.COMMAND_DONE, unmap=jz.UNMAP_EVENTS)
    same(a.status(jz.NOP, 0x1f, flags=jz.GO | jz.BY_EVENT), jz.BAD_SYS_STATE, "a command by event without an EQ")
    a.map_events(eqn, jz.COMMAND_DONE)
    a.command(jz.HW2SW_EQ, eqn)
    differs(a.status(jz.HW2SW_EQ, eqn), jz.OK, "a second HW2SW_EQ")
    same((a.status(jz.NOP, 0x1f, flags=jz.GO | jz.BY_EVENT), a.events(eqn), a.message_seen(vector)),
         (jz.BAD_SYS_STATE, [], False), "a command by event whose EQ has gone")
    a.create_eq(eqn, log=3)
    a.map_events(eqn, jz.COMMAND_DONE)
    same((nop(10), a.events(eqn), a.message_seen(vector)), (([], False), [(jz.COMMAND_DONE, 10)], True),
         "events of an EQ that is there again")


def transitions(m, a, b):
    """The commands of tables 3-2-39 and A1-1, and what each state does."""
    x, y = jz.Qp(a, jz.RC), jz.Qp(b, jz.RC)
    x.describe(y)
    y.connect(x, 0x654321, 0x123456)
    same(x.state, jz.RST, "state")
    for op, state in ((jz.RST2INIT, jz.INIT), (jz.INIT2INIT, jz.INIT), (jz.INIT2RTR, jz.RTR), (jz.RTR2RTS, jz.RTS)):
        x.modify(op)
        same(x.state, state, f"state after {op:#x}")
    x.context[0x84] = 14
    x.modify(jz.RTS2RTS, jz.MIN_RNR_TIMER)
    same((x.state, x.query()[0x84]), (jz.RTS, 14), "state and RNR timer after RTS2RTS")
    x.modify(jz.RTS2SQD, 0)
    x.post(jz.OP_WRITE, jz.remote(b.data), jz.inline(b"drained"))
    same((x.state, x.completion(), m.read(b.data.memory, 7) == b"drained"), (jz.SQD, None, False), "what SQD sends")
    x.post_receive(jz.data(a.data, 0, 64))
    y.post(jz.OP_SEND, jz.inline(b"heard"))
    done(y, jz.OP_SEND, 5, "a message to a QP in SQD")
    received(x, jz.SEND_ONLY, 5, "its receive")
    x.context[0x24] = 12
    x.modify(jz.SQD2SQD, jz.TIMEOUT)
    same((x.state, x.query()[0x24], x.completion()), (jz.SQD, 12, None), "state and time-out after SQD2SQD")
    x.modify(jz.SQD2RTS, 0)
    done(x, jz.OP_WRITE, 7, "what was posted in SQD")
    same((x.state, m.read(b.data.memory, 7)), (jz.RTS, b"drained"), "state after SQD2RTS, and what was written")
    x.post_receive(jz.data(a.data, 0, 64))
    x.modify(jz.TO_ERR, 0)
    failed(x, jz.FLUSHED, 0, "a receive in ERR")
    same(x.state, jz.ERR, "state after 2ERR")
    x.modify(jz.TO_RESET, 0)
    same(x.state, jz.RST, "state after ERR2RST")
    x.reset()
    x.connect(y)
    a.command(jz.TO_ERR, x.qpn, jz.NO_MAILBOX)
    same(x.state, jz.ERR, "state after 2ERR without a mailbox")
    # Nothing but RESET leads out of ERR.
    for op in (jz.RST2INIT, jz.INIT2INIT, jz.INIT2RTR, jz.RTR2RTS, jz.RTS2RTS, jz.SQERR2RTS, jz.SQD2RTS, jz.RTS2SQD):
        differs(a.status(op, x.qpn, mailbox=bytes(x.context)), jz.OK, f"command {op:#x} in ERR")
    same(x.state, jz.ERR, "state")
    a.command(jz.TO_RESET, x.qpn, jz.NO_MAILBOX)
    same(x.state, jz.RST, "state after ERR2RST without a mailbox")


def send_queue_error(m, a, b):
    """SQE, which only a completion in error leads to, and SQERR2RTS."""
    x, y = jz.Qp(a, jz.UD), jz.Qp(b, jz.UD)
    for own, peer in ((x, y), (y, x)):
        own.connect(peer)
        own.post_receive(jz.data(own.adapter.data, 0, 2048))
    x.post(jz.OP_SEND, jz.datagram(x, y), jz.data(a.data, 0, 1025))
    failed(x, jz.LOCAL_LENGTH, 1, "a datagram longer than the MTU")
    same(x.state, jz.SQE, "state")
    x.post(jz.OP_SEND, jz.datagram(x, y), jz.data(a.data, 0, 1024))
    failed(x, jz.FLUSHED, 1, "a send in SQE")
    y.post(jz.OP_SEND, jz.datagram(y, x), jz.inline(b"heard"))
    done(y, jz.OP_SEND, 5, "a message to a QP in SQE")
    received(x, jz.SEND_ONLY, 5 + jz.GRH, "its receive")
    x.modify(jz.SQERR2RTS, 0)
    same(x.state, jz.RTS, "state after SQERR2RTS")
    x.post(jz.OP_SEND, jz.datagram(x, y), jz.data(a.data, 0, 1024))
    done(x, jz.OP_SEND, 1024, "a datagram of the MTU")
    received(y, jz.SEND_ONLY, 1024 + jz.GRH, "its receive")
    # A Q_Key can be changed in INIT.
    for qp in (x, y):
        qp.reset()
    x.describe(y)
    x.modify(jz.RST2INIT)
    struct.pack_into(">I", x.context, 0x98, 0x22222222)
    x.modify(jz.INIT2INIT)
    same(struct.unpack_from(">I", x.query(), 0x98)[0], 0x22222222, "Q_Key after INIT2INIT")


def special_qp(m, a, b):
    """CONF_SPECIAL_QP: packets to QP 1 are the GSI's, and its packets come from QP 1."""
    x, y = jz.Qp(b, jz.UD), jz.Qp(a, jz.UD)
    for own, peer in ((x, y), (y, x)):
        own.connect(peer)
        same(own.adapter.status(jz.CONF_SPECIAL_QP, own.qpn, 0), jz.BAD_PARAM, "QP 0 of an Ethernet port")
        own.adapter.command(jz.CONF_SPECIAL_QP, own.qpn, 1)
    for _ in range(2):
        y.post_receive(jz.data(a.data, 0, 64))
    x.post(jz.OP_SEND, jz.datagram(x, y, 1, jz.QKEY_OF_GSI), jz.inline(b"to QP 1"))
    done(x, jz.OP_SEND, 7, "a datagram to QP 1")
    c = next_completion(y, "its receive")
    same((c.qpn, c.remote, c.bytes, y.receive.complete()), (y.qpn, 1, 7 + jz.GRH, c.wqe), "its receive")
    a.command(jz.CONF_SPECIAL_QP, 0, 1)
    x.post(jz.OP_SEND, jz.datagram(x, y, 1, jz.QKEY_OF_GSI), jz.inline(b"to nobody"))
    done(x, jz.OP_SEND, 9, "a datagram to QP 1")
    nothing_left(x, y)


def subnet_management(a):
    """MAD_IFC, by IBA vol 1, 13.4 and 14.2."""
    guid = bytes.fromhex("505400fffe000001")    # EUI-64 of 52:54:00:00:00:01

    def ask(attribute, kind, method=1):
        head = struct.pack(">BBBBHHQHHI", 1, kind, 1, method, 0, 0, 0x0123456789abcdef, attribute, 0, 0)
        found = a.command(jz.MAD_IFC, 1, 3, mailbox=head.ljust(256, b"\0"))
        same((found[:4], found[8:24]), (bytes((1, kind, 1, 0x81)), head[8:24]), f"head of attribute {attribute:#x}")
        return struct.unpack_from(">H", found, 4)[0], found[64:128]

    for kind, returning in ((0x01, 0), (0x81, 0x8000)):     # LID routed, directed route
        answers = {attribute: ask(attribute, kind) for attribute in (0x10, 0x11, 0x14, 0x15, 0x16)}
        same([status for status, _ in answers.values()], [returning] * 5, "statuses")
        description, node, guids, port, pkeys = [data for _, data in answers.values()]
        same(description, b"JingZhao HCA".ljust(64, b"\0"), "NodeDescription")
        # Versions, a channel adapter, ports; GUIDs of node and port; P_Keys and device.
        same((node[:4], node[12:28], node[28:32]), (b"\1\1\1\1", guid + guid, b"\0\1\x10\xf1"), "NodeInfo")
        same(guids, guid.ljust(64, b"\0"), "GUIDInfo")
        # The prefix; active; link up; MTU of 4096.
        same((port[8:16], port[32] & 15, port[33] >> 4, port[41] & 15), (bytes.fromhex("fe80000000000000"), 4, 5, 5),
             "PortInfo")
        same(pkeys, b"\xff\xff".ljust(64, b"\0"), "P_KeyTable")
        for attribute, method in ((0x12, 1), (0x15, 2)):
            same(ask(attribute, kind, method)[0], returning | 0x0c, "status of what is not there")
    same(a.status(jz.MAD_IFC, 1, 3, mailbox=bytes((1, 4, 1, 1)).ljust(256, b"\0")), jz.BAD_PARAM, "another class")


def test_query_qp():
    """From the document alone: QUERY_QP gives back the context, with what messages have made of it"""
    with adapters("base", "base") as (m, a, b):
        x, y = jz.Qp(a, jz.RC), jz.Qp(b, jz.RC)
        x.connect(y, 0xfffffc, 0x654321)
        y.connect(x, 0x654321, 0xfffffc)
        shows(x, jz.RTS, next_psn=0xfffffc, acked=0xfffffb, sent=0, expected=0x654321, executed=0, wqes=(0, 0))
        shows(y, jz.RTS, next_psn=0x654321, acked=0x654320, sent=0, expected=0xfffffc, executed=0, wqes=(0, 0))
        for _ in range(3):
            y.post_receive(jz.data(b.data, 0, 4096))
        # PSNs: 1, 3, 2, 1, 0 and 1.
        x.post(jz.OP_SEND, jz.inline(b"one"))
        x.post(jz.OP_WRITE, jz.remote(b.data), jz.data(a.data, 0, 2500))
        x.post(jz.OP_READ, jz.remote(b.data), jz.data(a.data, 0, 1500))
        x.post(jz.OP_FAA, jz.remote(b.data), jz.atomic(1), jz.data(a.data, 0, 8))
        x.post(jz.OP_NOP)
        x.post(jz.OP_WRITE_IMM, jz.remote(b.data), jz.inline(b"last"))
        for opcode, length in ((jz.OP_SEND, 3), (jz.OP_WRITE, 2500), (jz.OP_READ, 1500), (jz.OP_FAA, 8), (jz.OP_NOP, 0),
                               (jz.OP_WRITE_IMM, 4)):
            done(x, opcode, length, f"opcode {opcode:#x}")
        shows(x, jz.RTS, next_psn=0x000004, acked=0x000003, sent=5, expected=0x654321, executed=0, wqes=(6, 0))
        shows(y, jz.RTS, next_psn=0x654321, acked=0x654320, sent=0, expected=0x000004, executed=5, wqes=(0, 2))
        for service in (jz.RC, jz.UC, jz.UD):
            walk(jz.Qp(a, service), y)


def shows(qp, state, next_psn, acked, sent, expected, executed, wqes):
    """All of the document's words of QUERY_QP. A8h to BBh are extensions."""
    context = bytearray(qp.context)
    for at, word in ((0x00, 0), (0x08, state << 28 | qp.service << 16), (0x10, qp.adapter.UAR_PAGE), (0x6c, next_psn),
                     (0x7c, acked), (0x80, sent), (0x84, 1 << 24 | expected), (0x98, 0), (0x9c, executed)):
        struct.pack_into(">I", context, at, word)
    found = qp.query()
    same(found[:0xa0].hex(" ", 4), context[:0xa0].hex(" ", 4), "words of the context")
    same(struct.unpack_from(">HH", found, 0xbc), wqes[::-1], "counters of receives and sends")


def walk(qp, peer):
    """State and service, as the QP comes to life and goes."""
    def flags():
        return struct.unpack_from(">I", qp.query(), 0x08)[0]

    qp.describe(peer)
    same(flags(), 0, "flags in RESET")
    for op, state in ((jz.RST2INIT, jz.INIT), (jz.INIT2RTR, jz.RTR), (jz.RTR2RTS, jz.RTS), (jz.RTS2SQD, jz.SQD),
                      (jz.SQD2RTS, jz.RTS), (jz.TO_ERR, jz.ERR)):
        qp.modify(op, None if op in jz.REQUIRED else 0)
        same(flags(), state << 28 | qp.service << 16, f"flags after {op:#x}")
    qp.modify(jz.TO_RESET, 0)
    same(flags(), 0, "flags in RESET")


# ---- 3.3 and 3.4, completions and work requests

def test_services():
    """From the document alone: RC, UC and UD between two base devices, and between a base and a full one"""
    for profiles in (("base", "base"), ("base", "full"), ("full", "base")):
        with adapters(*profiles) as (m, a, b):
            exchange(m, a, b, jz.UC)
            x, y = exchange(m, a, b, jz.RC)
            read_and_atomics(m, x, y)
            datagrams(m, a, b)


def read_and_atomics(m, x, y):
    a, b = x.adapter, y.adapter
    m.write(b.data.memory + 100, pattern(3000, 9))
    x.post(jz.OP_READ, jz.remote(b.data, 100), jz.data(a.data, 5, 3000))
    done(x, jz.OP_READ, 3000, "READ")
    same(m.read(a.data.memory + 5, 3000), pattern(3000, 9), "what was read")
    values = [0xffffffff, 0x5555555500000041]
    m.write(b.data.memory + 8, struct.pack("<Q", values[0]))
    # A carry out of the low half, and a high half to add. What differs in its high half alone is not equal.
    requests = ((jz.OP_FAA, 0x5555555400000042, 0),
                (jz.OP_CAS, 0x1111111122222222, 0x5555555400000041),
                (jz.OP_CAS, 0x1111111122222222, 0x5555555500000040),
                (jz.OP_CAS, 0x8765432112345678, 0x5555555500000041))
    for opcode, swap_add, compare in requests:
        x.post(opcode, jz.remote(b.data, 8), jz.atomic(swap_add, compare), jz.data(a.data, 16, 8))
        done(x, opcode, 8, f"opcode {opcode:#x}")
        same(struct.unpack("<Q", m.read(a.data.memory + 16, 8))[0], values[0], "what an atomic brings")
        values = values[-1:]
    same(struct.unpack("<Q", m.read(b.data.memory + 8, 8))[0], 0x8765432112345678, "what the atomics leave")


def datagrams(m, a, b):
    x, y = jz.Qp(a, jz.UD), jz.Qp(b, jz.UD)
    for own, peer in ((x, y), (y, x)):
        own.connect(peer)
    y.post_receive(jz.data(b.data, 0, 2048))
    m.write(a.data.memory, pattern(900, 3))
    x.post(jz.OP_SEND, jz.datagram(x, y), jz.data(a.data, 0, 900))
    done(x, jz.OP_SEND, 900, "datagram")
    c = received(y, jz.SEND_ONLY, 900 + jz.GRH, "its receive")
    same(c.path >> 15 & 1, 1, "that it has a GRH")
    # The IPv4 header is at the end of the GRH's place, its addresses at its own end.
    same(struct.unpack(">II", m.read(b.data.memory + jz.GRH - 8, 8)), (a.ip, b.ip), "addresses")
    same(m.read(b.data.memory + jz.GRH, 900), pattern(900, 3), "what arrived")


def captured(file):
    """The frames of a capture in pcapng."""
    content, at, frames = Path(file).read_bytes(), 0, []
    while at < len(content):
        kind, block_bytes = struct.unpack_from("<II", content, at)
        if kind == 6:
            frame_bytes = struct.unpack_from("<I", content, at + 20)[0]
            frames.append(content[at + 28:at + 28 + frame_bytes])
        at += block_bytes
    return frames


def test_headers():
    """From the document alone: headers of packets have what the context, or the unit of a datagram, says"""
    source = bytes.fromhex("02aabbccddee")      # not the port's
    port = b"\x12\xb7"                          # 4791
    ours, theirs, other = bytes((10, 10, 0, 1)), bytes((10, 10, 0, 2)), bytes((10, 10, 0, 0xfe))
    with tempfile.NamedTemporaryFile() as file, adapters("base", "base") as (m, a, b):
        def last(mac, header_bytes):
            """The last packet of that source: its link and IP addresses and its UDP port, and what follows."""
            frame = [each for each in captured(file.name) if each[6:12] == mac][-1]
            end = 42 + header_bytes
            return frame[:6], frame[26:30], frame[30:34], frame[36:38], frame[42:end].hex(" ", 4), frame[end:-4]

        def sent(what, headers, payload, ip=ours):
            same(last(source, len(headers)), (b.mac, ip, theirs, port, headers.hex(" ", 4), payload), what)

        set_property(m, "pcap", file.name)
        x, y = jz.Qp(a, jz.UD), jz.Qp(b, jz.UD)
        for own, peer in ((x, y), (y, x)):
            own.connect(peer)
        unit = bytearray(jz.datagram(x, y, 0xabcdef, 0x12345678))
        unit[0x04:0x06], unit[0x08:0x0c] = source[:3:-1], source[3::-1]
        struct.pack_into("<I", unit, 0x10, 0x0a0a00fe)
        x.post(jz.OP_SEND_IMM, bytes(unit), jz.inline(b"seen"), imm=0x01020304)
        done(x, jz.OP_SEND_IMM, 4, "a datagram")
        # BTH, DETH, ImmDt, whose bytes are in the order of the WQE.
        headers = 0x65, 0x40, 0xffff, 0xabcdef, 0x123456, 0x12345678, x.qpn, 0x04030201
        sent("a datagram", struct.pack(">BBHIIIII", *headers), b"seen", other)
        x, y = jz.Qp(a, jz.RC), jz.Qp(b, jz.RC)
        y.connect(x, 0x654321, 0x123456)
        x.describe(y)
        x.context[0x3e:0x40], x.context[0x40:0x44] = source[4:], source[:4]
        for op in (jz.RST2INIT, jz.INIT2RTR, jz.RTR2RTS):
            x.modify(op)

        def bth(opcode, psn, bits=0x40):
            """It asks for an acknowledgement."""
            return struct.pack(">BBHII", opcode, bits, 0xffff, y.qpn, 0x80000000 | psn)

        x.post(jz.OP_WRITE, jz.remote(b.data, 0x123), jz.inline(b"seen"))
        done(x, jz.OP_WRITE, 4, "a WRITE")
        sent("a WRITE", bth(0x0a, 0x123456) + struct.pack(">QII", START + 0x123, b.data.key, 4), b"seen")
        y.post_receive(jz.data(b.data, 0, 64))
        x.post(jz.OP_SEND, jz.inline(b"heard"), flags=jz.SOLICIT)
        done(x, jz.OP_SEND, 5, "a SEND")
        sent("a SEND", bth(0x04, 0x123457, 0x80 | 0x40 | 3 << 4), b"heard" + bytes(3))
        x.post(jz.OP_READ, jz.remote(b.data, 8), jz.data(a.data, 0, 0x321))
        done(x, jz.OP_READ, 0x321, "a READ")
        sent("a READ", bth(0x0c, 0x123458) + struct.pack(">QII", START + 8, b.data.key, 0x321), b"")
        m.write(b.data.memory + 16, struct.pack("<Q", 0xfedcba9876543210))
        swap, compare = 0x1122334455667788, 0x99aabbccddeeff00
        x.post(jz.OP_CAS, jz.remote(b.data, 16), jz.atomic(swap, compare), jz.data(a.data, 0, 8))
        done(x, jz.OP_CAS, 8, "an atomic")
        sent("an atomic", bth(0x13, 0x123459) + struct.pack(">QIQQ", START + 16, b.data.key, swap, compare), b"")
        # BTH, AETH: an ACK, without a limit, of four messages; AtomicAckETH.
        response = struct.pack(">BBHIIIQ", 0x12, 0x40, 0xffff, x.qpn, 0x123459, 0x1f000004, 0xfedcba9876543210)
        same(last(b.mac, len(response)), (a.mac, theirs, ours, port, response.hex(" ", 4), b""), "its response")


def test_fence():
    """From the document alone: F, of a doorbell and of a link, makes a WRITE wait for the READ before it"""
    with adapters("base", "base") as (m, a, b):
        delayed(m)
        x, y = pair(a, b, jz.RC)
        read = (jz.OP_READ, (jz.remote(b.data), jz.data(a.data, 0, 8)), {})
        write = (jz.remote(b.data, 512), jz.inline(b"later"))

        def by_link(fence):
            x.post_chain(read, (jz.OP_WRITE, write, {"fence": fence and jz.FENCE_OF_NEXT}))

        def by_bell(fence):
            x.post(read[0], *read[1])
            x.post(jz.OP_WRITE, *write, bell_fence=fence and jz.FENCE_OF_BELL)

        for post in (by_link, by_bell):
            for fence in (False, True):
                m.write(b.data.memory + 512, bytes(5))
                post(fence)
                # The READ has come and gone, and a WRITE at its heels is there.
                wait_us(m, HELD_US * 3 // 2)
                done(x, jz.OP_READ, 8, "READ")
                same(m.read(b.data.memory + 512, 5) == b"later", not fence, f"a WRITE with F {fence} is there")
                wait_us(m, HELD_US)
                done(x, jz.OP_WRITE, 5, "WRITE")
                same(m.read(b.data.memory + 512, 5), b"later", "what it wrote")


def test_events():
    """From the document alone: each CQE makes an event, each event a message, and a command ends by event"""
    with adapters("base", "base") as (m, a, b):
        x, y = pair(a, b, jz.RC)
        same((a.events(a.COMPLETIONS), a.message_seen(1)), ([], False), "before")
        for _ in range(3):
            x.post(jz.OP_WRITE, jz.remote(b.data), jz.data(a.data, 0, 100))
            same((a.events(a.COMPLETIONS), a.message_seen(1)), ([(jz.COMPLETION, x.cqn)], True), "a WRITE's event")
        for token in (0x1234, 0x8001):
            a.status(jz.NOP, 0x1f, token=token, flags=jz.GO | jz.BY_EVENT)
            same((a.events(a.EVENTS), a.message_seen(0)), ([(jz.COMMAND_DONE, token)], True), "a command's event")
        # The responder's violation: its QP, at its EQ.
        x.post(jz.OP_WRITE, struct.pack("<QII", START, 0x12345678, 0), jz.data(a.data, 0, 100))
        same((b.events(b.EVENTS), b.message_seen(0)), ([(jz.ACCESS_ERROR, y.qpn)], True), "an access error's event")


def test_asynchronous_events():
    """From the document alone: the events of table 3-2-25, with what each is about"""
    with adapters("base", "base") as (m, a, b):
        x, y = jz.Qp(a, jz.RC), jz.Qp(b, jz.RC)
        x.connect(y)
        y.describe(x, 0x654321, 0x123456)
        for op in (jz.RST2INIT, jz.INIT2RTR):
            y.modify(op)
        for expected in ([(jz.COMM_EST, y.qpn)], []):
            x.post(jz.OP_WRITE, jz.remote(b.data), jz.data(a.data, 0, 100))
            same((b.events(b.EVENTS), b.message_seen(0)), (expected, bool(expected)), "events of a QP in RTR")
        x, y = pair(a, b, jz.RC)
        x.post(jz.OP_FAA, jz.remote(b.data, 4), jz.atomic(1), jz.data(a.data, 0, 8))     # not at a multiple of eight
        same((b.events(b.EVENTS), b.message_seen(0)), ([(jz.INVALID_REQUEST, y.qpn)], True), "an invalid request's")
        x, y = jz.Qp(a, jz.RC, log_cqes=1), jz.Qp(b, jz.RC)
        connect(x, y)
        for _ in range(2):
            x.post(jz.OP_NOP)
        same(a.events(a.EVENTS), [], "events of a CQ that is full")
        x.post(jz.OP_NOP)
        same((a.events(a.EVENTS), a.message_seen(0)), ([(jz.CQ_ERROR, x.cqn), (jz.QP_CATASTROPHE, x.qpn)], True),
             "events of a CQ that runs over, and of its QP")
        for up in (False, True):
            m.qmp("set_link", name="n1", up=up)
            same((a.events(a.EVENTS), a.message_seen(0)), ([(jz.PORT_CHANGE, 0)], True), "a change of the link's event")
        set_property(m, "fail", "now")
        m.step()
        same((a.events(a.EVENTS), a.message_seen(0)), ([(jz.DEVICE_CATASTROPHE, 0)], True), "a failure's event")


def test_errors():
    """From the document alone: syndromes of what is wrong, ERR, and back to work by RESET"""
    with adapters("base", "base") as (m, a, b):
        read_only = b.new_region(START, 4096, jz.LOCAL_WRITE | jz.REMOTE_READ)
        nine = jz.data(a.data, 0, 9)
        cases = (
            ("no R_Key", jz.REMOTE_ACCESS, jz.OP_WRITE, (struct.pack("<QII", START, 0x12345678, 0), nine)),
            ("no right", jz.REMOTE_ACCESS, jz.OP_WRITE, (jz.remote(read_only), nine)),
            ("beyond the end", jz.REMOTE_ACCESS, jz.OP_READ, (jz.remote(b.data, LENGTH - 8), nine)),
            ("4 GiB above", jz.REMOTE_ACCESS, jz.OP_WRITE, (jz.remote(b.data, FAR), nine)),
            ("no L_Key", jz.LOCAL_PROTECTION, jz.OP_WRITE,
             (jz.remote(b.data), struct.pack("<IIQ", 9, 0x12345678, START))),
            ("4 GiB above here", jz.LOCAL_PROTECTION, jz.OP_WRITE, (jz.remote(b.data), jz.data(a.data, FAR, 9))),
            ("no opcode", jz.LOCAL_OP, 0x1f, (jz.remote(b.data), nine)),
            ("an atomic of nine bytes", jz.LOCAL_LENGTH, jz.OP_FAA, (jz.remote(b.data), jz.atomic(1), nine)),
            ("an atomic between its places", jz.REMOTE_INVALID_REQUEST, jz.OP_FAA,
             (jz.remote(b.data, 4), jz.atomic(1), jz.data(a.data, 0, 8))),
            ("no receive", jz.RNR_RETRY_EXCEEDED, jz.OP_SEND, (nine,)),
        )
        for what, syndrome, opcode, units in cases:
            x, y = pair(a, b, jz.RC)
            x.post_receive(jz.data(a.data, 0, 64))
            x.post(opcode, *units)
            for _ in range(20):
                m.step()
            failed(x, syndrome, 1, what)
            same(x.state, jz.ERR, f"{what}: state")
            failed(x, jz.FLUSHED, 0, f"{what}: the receive")
            x.post(jz.OP_WRITE, jz.remote(b.data), nine)
            failed(x, jz.FLUSHED, 1, f"{what}: a send behind it")
            nothing_left(x)
            for qp in (x, y):
                qp.reset()
            same((x.state, y.state), (jz.RST, jz.RST), "states")
            connect(x, y)
            x.post(jz.OP_WRITE, jz.remote(b.data), jz.inline(b"again"))
            done(x, jz.OP_WRITE, 5, f"{what}: after RESET")
        gone, y = pair(a, b, jz.RC)
        y.reset()
        gone.post(jz.OP_WRITE, jz.remote(b.data), nine)
        for _ in range(40):
            m.step()
        failed(gone, jz.RETRY_EXCEEDED, 1, "nobody there")


def test_errors_of_receives():
    """From the document alone: a receive that cannot be executed fails, and the send that wanted it"""
    with adapters("base", "base") as (m, a, b):
        read_only = b.new_region(START, 4096, jz.REMOTE_WRITE)
        cases = (
            ("shorter than the message", jz.LOCAL_LENGTH, jz.REMOTE_INVALID_REQUEST, jz.data(b.data, 0, 8)),
            ("no L_Key", jz.LOCAL_PROTECTION, jz.REMOTE_OP, struct.pack("<IIQ", 9, 0x12345678, START)),
            ("no right", jz.LOCAL_PROTECTION, jz.REMOTE_OP, jz.data(read_only, 0, 9)),
            ("4 GiB above", jz.LOCAL_PROTECTION, jz.REMOTE_OP, jz.data(b.data, FAR, 9)),
            ("inline", jz.LOCAL_OP, jz.REMOTE_OP, jz.inline(bytes(9))),
        )
        for what, receiver, sender, unit in cases:
            x, y = pair(a, b, jz.RC)
            y.post_receive(unit)
            y.post_receive(jz.data(b.data, 0, 64))
            x.post(jz.OP_SEND, jz.data(a.data, 0, 9))
            failed(x, sender, 1, f"a SEND to a receive: {what}")
            failed(y, receiver, 0, f"a receive: {what}")
            failed(y, jz.FLUSHED, 0, f"{what}: the receive behind it")
            same((x.state, y.state), (jz.ERR, jz.ERR), f"{what}: states")
            nothing_left(x, y)


def test_longest_message():
    """From the document alone: a message of 2^maxmsg bytes is sent, and none that is longer"""
    with adapters("base", "base") as (_, a, b):
        x, _ = pair(a, b, jz.RC, longest=12)
        x.post(jz.OP_WRITE, jz.remote(b.data), jz.data(a.data, 0, 4096))
        done(x, jz.OP_WRITE, 4096, "a message of 4096 bytes")
        x.post(jz.OP_WRITE, jz.remote(b.data), jz.data(a.data, 0, 4097))
        failed(x, jz.LOCAL_LENGTH, 1, "one of 4097 bytes")


def test_bad_response():
    """From the document alone: a READ that software rewrites on its way fails, and brings nothing"""
    with adapters("base", "base") as (m, a, b):
        delayed(m)
        x, _ = pair(a, b, jz.RC)
        m.write(a.data.memory, b"\xee" * 8)
        x.post(jz.OP_READ, jz.remote(b.data), jz.data(a.data, 0, 8))
        # While it is held back, its list becomes shorter: the data unit is behind the next and the raddr unit.
        m.write32(x.send.slot(0) + 32, 4)
        same(x.completion(), None, "completion of a READ on its way")
        wait_us(m, 2 * HELD_US)
        failed(x, jz.LOCAL_OP, 1, "READ")
        same((x.state, m.read(a.data.memory, 8)), (jz.ERR, b"\xee" * 8), "state, and where the data goes")


def test_close():
    """From the document alone: after CLOSE_HCA and after reset, everything can begin again"""
    with single() as (_, a):
        for end in (lambda: a.command(jz.CLOSE_HCA), a.reset):
            a.start()
            a.command(jz.NOP, 0x1f)
            end()
            same(a.status(jz.QUERY_QP, 8), jz.BAD_SYS_STATE, "QUERY_QP without INIT_HCA")
            a.next_key = a.next_mtt = 1
