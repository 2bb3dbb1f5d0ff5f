# SPDX-License-Identifier: GPL-2.0-or-later
"""The base device, driven from the JingZhao document alone (jingzhao.py)."""

import contextlib
import struct

import jingzhao as jz
import machine
from pci import REVISION

START = 0x12345000      # address of the data regions
LENGTH = 3 * 4096


def same(found, wanted, what):
    if found != wanted:
        raise AssertionError(f"{what} is {found!r}, not {wanted!r}")


def words(number, profile="base"):
    return ("-netdev", f"hubport,hubid=0,id=n{number}",
            "-device", f"hghca,netdev=n{number},addr={3 + number}.0,mac=52:54:00:00:00:0{number},profile={profile}")


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


def pair(a, b, service):
    """Two connected QPs."""
    x, y = jz.Qp(a, service), jz.Qp(b, service)
    x.connect(y)
    y.connect(x, 0x654321, 0x123456)
    same((x.state, y.state), (jz.RTS, jz.RTS), "states")
    return x, y


def done(qp, opcode, length, what):
    """The next completion is of a send that went well."""
    c = qp.completion()
    if c is None:
        raise AssertionError(f"{what}: no completion")
    same((c.qpn, c.opcode, c.is_send, c.syndrome, c.bytes), (qp.qpn, opcode, 1, 0, length), what)


def failed(qp, syndrome, is_send, what):
    c = qp.completion()
    if c is None:
        raise AssertionError(f"{what}: no completion")
    same((c.qpn, c.opcode, c.is_send, c.syndrome), (qp.qpn, 0xff, is_send, syndrome), what)


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
        c = y.completion()
        same((c.qpn, c.is_send, c.bytes, c.remote), (y.qpn, 0, length, x.qpn), "its receive")
        found = m.read(b.data.memory + 4096, min(length, 40)) + m.read(b.data.memory + 8192, 4096)[:max(length - 40, 0)]
        same(found, pattern(length, seed), "what arrived")
    m.write(a.data.memory, pattern(5000, 8))
    x.post(jz.OP_WRITE, jz.remote(b.data, 64), jz.data(a.data, 0, 2000), jz.data(a.data, 2000, 3000))
    done(x, jz.OP_WRITE, 5000, "WRITE")
    same(m.read(b.data.memory + 64, 5000), pattern(5000, 8), "what a WRITE wrote")
    y.post_receive(jz.data(b.data, 4096, 40))
    x.post(jz.OP_SEND_IMM, jz.inline(b"inline data"), imm=0x01020304)
    done(x, jz.OP_SEND_IMM, 11, "SEND with Immediate")
    c = y.completion()
    same((c.bytes, c.imm, m.read(b.data.memory + 4096, 11)), (11, 0x01020304, b"inline data"), "its receive")
    y.post_receive()
    x.post(jz.OP_WRITE_IMM, jz.remote(b.data, 3), jz.inline(b"behind"), imm=0x05060708)
    done(x, jz.OP_WRITE_IMM, 6, "WRITE with Immediate")
    c = y.completion()
    same((c.imm, m.read(b.data.memory + 3, 6)), (0x05060708, b"behind"), "its receive")
    x.post(jz.OP_NOP)
    done(x, jz.OP_NOP, 0, "NOP")
    same((x.completion(), y.completion()), (None, None), "what is left")
    return x, y


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
            # ack_delay 27:24, max_mtu 23:20, max_port_width 19:16, max_vl 7:4, num_ports 3:0
            same(limits[0x20:0x24].hex(), "00520011", "word 20h of QUERY_DEV_LIM")
            found.append((revision, *sizes, any(limits[0x38:]), any(board[:0x18] + board[0x20:]), any(board[0x18:0x20])))
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
    m.write(b.data.memory + 8, struct.pack("<Q", 41))
    x.post(jz.OP_FAA, jz.remote(b.data, 8), jz.atomic(1), jz.data(a.data, 16, 8))
    done(x, jz.OP_FAA, 8, "Fetch and Add")
    x.post(jz.OP_CAS, jz.remote(b.data, 8), jz.atomic(77, 42), jz.data(a.data, 24, 8))
    done(x, jz.OP_CAS, 8, "Compare and Swap")
    same((struct.unpack("<QQ", m.read(a.data.memory + 16, 16)), struct.unpack("<Q", m.read(b.data.memory + 8, 8))),
         ((41, 42), (77,)), "values of the atomics")


def datagrams(m, a, b):
    x, y = jz.Qp(a, jz.UD), jz.Qp(b, jz.UD)
    for own, peer in ((x, y), (y, x)):
        own.connect(peer)
    y.post_receive(jz.data(b.data, 0, 2048))
    m.write(a.data.memory, pattern(900, 3))
    x.post(jz.OP_SEND, jz.datagram(x, y), jz.data(a.data, 0, 900))
    done(x, jz.OP_SEND, 900, "datagram")
    c = y.completion()
    same((c.bytes, c.remote, c.path >> 15 & 1), (900 + jz.GRH, x.qpn, 1), "its receive")
    same(m.read(b.data.memory + jz.GRH, 900), pattern(900, 3), "what arrived")


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


def test_errors():
    """From the document alone: syndromes of what is wrong, ERR, and back to work by RESET"""
    with adapters("base", "base") as (m, a, b):
        read_only = b.new_region(START, 4096, jz.LOCAL_WRITE | jz.REMOTE_READ)
        cases = (
            ("no R_Key", jz.REMOTE_ACCESS, jz.OP_WRITE, (struct.pack("<QII", START, 0x12345678, 0), jz.data(a.data, 0, 9))),
            ("no right", jz.REMOTE_ACCESS, jz.OP_WRITE, (jz.remote(read_only), jz.data(a.data, 0, 9))),
            ("beyond the end", jz.REMOTE_ACCESS, jz.OP_READ, (jz.remote(b.data, LENGTH - 8), jz.data(a.data, 0, 9))),
            ("no L_Key", jz.LOCAL_PROTECTION, jz.OP_WRITE, (jz.remote(b.data), struct.pack("<IIQ", 9, 0x12345678, START))),
            ("no opcode", jz.LOCAL_OP, 0x1f, (jz.remote(b.data), jz.data(a.data, 0, 9))),
            ("no receive", jz.RNR_RETRY_EXCEEDED, jz.OP_SEND, (jz.data(a.data, 0, 9),)),
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
            x.post(jz.OP_WRITE, jz.remote(b.data), jz.data(a.data, 0, 9))
            failed(x, jz.FLUSHED, 1, f"{what}: a send behind it")
            for qp in (x, y):
                qp.reset()
            same((x.state, y.state), (jz.RST, jz.RST), "states")
            x.connect(y)
            y.connect(x, 0x654321, 0x123456)
            x.post(jz.OP_WRITE, jz.remote(b.data), jz.inline(b"again"))
            done(x, jz.OP_WRITE, 5, f"{what}: after RESET")
        gone, y = pair(a, b, jz.RC)
        y.reset()
        gone.post(jz.OP_WRITE, jz.remote(b.data), jz.data(a.data, 0, 9))
        for _ in range(40):
            m.step()
        failed(gone, jz.RETRY_EXCEEDED, 1, "nobody there")


def test_close():
    """From the document alone: after CLOSE_HCA and after reset, everything can begin again"""
    with machine.started(*words(1)) as m:
        a = jz.Adapter(m, 4, 0xe4000000, 0x1000000, 1)
        a.enable()
        for end in (lambda: a.command(jz.CLOSE_HCA), a.reset):
            a.start()
            a.command(jz.NOP, 0x1f)
            end()
            same(a.status(jz.QUERY_QP, 8), jz.BAD_SYS_STATE, "QUERY_QP without INIT_HCA")
            a.next_key = a.next_mtt = 1
