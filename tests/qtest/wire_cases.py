# SPDX-License-Identifier: GPL-2.0-or-later
"""Frames between two HCAs that are alone on a hub: directly, but never past what is attached to the way."""

import contextlib
import os
import struct
import tempfile
from pathlib import Path

import jingzhao as jz
from base_cases import adapters, captured, done, next_completion, pair, pattern, same, set_property

LENGTH = 5000       # five packets of 1024 bytes and less
PACKETS = 5
PCAP_HEADER, RECORD_HEADER = 24, 16


def write(m, a, b, x, seed):
    """One WRITE, whose every byte arrives; how many of its packets went directly."""
    before = m.traced("hghca_frame_direct hca1")
    m.write(a.data.memory, pattern(LENGTH, seed))
    x.post(jz.OP_WRITE, jz.remote(b.data), jz.data(a.data, 0, LENGTH))
    done(x, jz.OP_WRITE, LENGTH, "WRITE")
    same(m.read(b.data.memory, LENGTH), pattern(LENGTH, seed), "what a WRITE wrote")
    return m.traced("hghca_frame_direct hca1") - before


def frames(path):
    """The lengths of the frames in a file of filter-dump."""
    content, at, found = path.read_bytes(), PCAP_HEADER, []
    while at < len(content):
        length, = struct.unpack_from("<I", content, at + 8)
        found.append(length)
        at += RECORD_HEADER + length
    return found


def connected():
    return adapters("full", "full")


def trace(m):
    m.qmp("trace-event-set-state", name="hghca_frame_direct", enable=True)


def test_wire_direct():
    """Between two HCAs, the first frame of an entry goes through QEMU's net layer and the others directly"""
    with connected() as (m, a, b):
        trace(m)
        x, _ = pair(a, b, jz.RC)
        same([write(m, a, b, x, seed) for seed in (1, 2)], [PACKETS - 1] * 2, "packets that went directly")


def test_wire_turns():
    """The same in an entry of many turns: only its first frame goes through QEMU's net layer"""
    with adapters("full,slice=1", "full") as (m, a, b):
        trace(m)
        x, _ = pair(a, b, jz.RC)
        same([write(m, a, b, x, seed) for seed in (1, 2)], [PACKETS - 1] * 2, "packets that went directly")


def test_wire_filter():
    """A filter on either side of either port sees each frame, from when it is attached until it is detached"""
    for place in ("n1", "n2"):
        with connected() as (m, a, b), tempfile.TemporaryDirectory() as folder:
            trace(m)
            x, _ = pair(a, b, jz.RC)
            same(write(m, a, b, x, 1), PACKETS - 1, "packets that went directly before")
            dump = Path(folder) / "dump"
            m.qmp("object-add", **{"qom-type": "filter-dump", "id": "dump", "netdev": place, "file": str(dump)})
            same(write(m, a, b, x, 2), 0, "packets that went directly past the filter")
            m.qmp("object-del", id="dump")
            same(write(m, a, b, x, 3), PACKETS - 1, "packets that went directly after")
            # Ethernet, IPv4, UDP, BTH, ICRC; RETH with the first; AETH with the acknowledgement.
            headers = 14 + 20 + 8 + 12 + 4
            same(frames(dump), [headers + 16 + 1024, *[headers + 1024] * 3, headers + LENGTH - 4 * 1024, headers + 4],
                 f"frames at {place}")


def test_wire_link_down():
    """Frames do not go past a port of the hub whose link is down"""
    with connected() as (m, a, b):
        trace(m)
        x, _ = pair(a, b, jz.RC)
        same(write(m, a, b, x, 1), PACKETS - 1, "packets that went directly before")
        for name in ("n1", "n2"):
            m.write(b.data.memory, bytes(LENGTH))
            m.qmp("set_link", name=name, up=False)
            before = m.traced("hghca_frame_direct hca1")
            m.write(a.data.memory, pattern(LENGTH, 5))
            x.post(jz.OP_WRITE, jz.remote(b.data), jz.data(a.data, 0, LENGTH))
            same(m.traced("hghca_frame_direct hca1") - before, 0, "packets that went directly")
            same((x.completion(), m.read(b.data.memory, LENGTH)), (None, bytes(LENGTH)), "what arrived")
            m.qmp("set_link", name=name, up=True)
            m.advance(2_000_000_000)
            same(next_completion(x, "the WRITE, sent again").syndrome, 0, "its syndrome")
            x.send.complete()
            same(m.read(b.data.memory, LENGTH), pattern(LENGTH, 5), "what arrived then")


def set_verify(m, value):
    for number in (1, 2):
        m.qmp("qom-set", path=f"/machine/peripheral/hca{number}", property="verify", value=value)


def test_wire_verify():
    """verify=remote: the ICRCs of packets that go directly are not verified; of all others, and with `all`, they are"""
    with adapters("full,verify=remote", "full,verify=remote") as (m, a, b):
        trace(m)
        x, _ = pair(a, b, jz.RC)

        def trusted():
            return sum("hghca_frame_direct hca1" in line and "ICRC trusted" in line for line in m.trace())

        found = []
        for value in ("remote", "all", "remote"):
            set_verify(m, value)
            before = trusted()
            found.append((write(m, a, b, x, len(found)), trusted() - before))
        same(found, [(PACKETS - 1, PACKETS - 1), (PACKETS - 1, 0), (PACKETS - 1, PACKETS - 1)],
             "packets that went directly, and those not verified")


def test_wire_verify_impaired():
    """verify=remote: what the link of the sender or of the receiver has corrupted is dropped, and sent again"""
    for number in (1, 2):
        with adapters("full,verify=remote", "full,verify=remote") as (m, a, b):
            x, _ = pair(a, b, jz.RC)
            m.qmp("qom-set", path=f"/machine/peripheral/hca{number}", property="faults",
                  value=f"corrupt,dir={'tx' if number == 1 else 'rx'},every=2,count=2")
            m.write(a.data.memory, pattern(LENGTH, 9))
            x.post(jz.OP_WRITE, jz.remote(b.data), jz.data(a.data, 0, LENGTH))
            for _ in range(3):
                m.advance(2_000_000_000)
            same(next_completion(x, "the WRITE, sent again").syndrome, 0, "its syndrome")
            same(m.read(b.data.memory, LENGTH), pattern(LENGTH, 9), "what a WRITE wrote")
            stats = m.qmp("qom-get", path="/machine/peripheral/hca2", property="stats")
            same(stats["rx_bad_icrc"], 2, f"packets that hca2 dropped, with a rule of hca{number}")


@contextlib.contextmanager
def fifo():
    """The path of a FIFO."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "frames"
        os.mkfifo(path)
        yield path


def read_all(reader):
    """What is in the FIFO now."""
    found = b""
    with contextlib.suppress(BlockingIOError):
        while part := os.read(reader, 1 << 20):
            found += part
    return found


def test_wire_fifo():
    """Capture in a FIFO: whole blocks, some lost and none torn, if its reader is slow; the end, if the reader is gone"""
    with connected() as (m, a, b), fifo() as path, tempfile.NamedTemporaryFile() as copy:
        x, _ = pair(a, b, jz.RC)
        trace(m)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        set_property(m, "pcap", str(path))
        write(m, a, b, x, 1)
        copy.write(read_all(reader))
        copy.flush()
        same(len(captured(copy.name)), PACKETS + 1, "frames of a WRITE that were read")
        # A FIFO holds 1 MiB at most.
        count = (1 << 20) // LENGTH + 1
        for seed in range(count):
            write(m, a, b, x, seed)
        same(m.qmp("qom-get", path="/machine/peripheral/hca1", property="pcap"), str(path), "the capture of who is not read")
        copy.write(read_all(reader))
        copy.flush()
        found = len(captured(copy.name))
        same(PACKETS + 1 < found < (count + 1) * (PACKETS + 1), True, f"{found} frames are some of those sent")
        write(m, a, b, x, 2)
        copy.write(read_all(reader))
        copy.flush()
        same(len(captured(copy.name)), found + PACKETS + 1, "frames after the reader has caught up")
        os.close(reader)
        write(m, a, b, x, 3)
        same(m.qmp("qom-get", path="/machine/peripheral/hca1", property="pcap"), "", "the capture without a reader")
        said = os.read(m.process.stderr.fileno(), 1 << 16).decode()
        lacking = (count + 1) * (PACKETS + 1) - found
        wanted = ["is not read fast enough: its capture lacks frames", "ends: its reader is gone",
                  f"lacks {lacking} frames"]
        same([text for text in wanted if said.count(text) != 1], [], f"what QEMU does not say once: {said}")


def test_wire_fifo_without_reader():
    """Capture in a FIFO that nothing reads is refused with what to do, and QEMU does not wait"""
    with connected() as (m, _, _), fifo() as path:
        try:
            set_property(m, "pcap", str(path))
            said = "nothing"
        except AssertionError as error:
            said = str(error)
        if f"property 'pcap': the FIFO '{path}' has no reader; start the reader first" not in said:
            raise AssertionError(said)


def test_wire_third():
    """With a third port on the hub, each frame goes through QEMU's net layer"""
    with adapters("full", "full") as (m, a, b):
        trace(m)
        x, _ = pair(a, b, jz.RC)
        same(write(m, a, b, x, 1), PACKETS - 1, "packets that went directly before")
        m.qmp("netdev_add", type="hubport", hubid=0, id="n3")
        same(write(m, a, b, x, 2), 0, "packets that went directly")
        m.qmp("netdev_del", id="n3")
        same(write(m, a, b, x, 3), PACKETS - 1, "packets that went directly after")
