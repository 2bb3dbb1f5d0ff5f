# SPDX-License-Identifier: GPL-2.0-or-later
"""A link between two processes by shared memory: `link=shm:PATH`. docs/reference/link.rst has the numbers."""

import array
import contextlib
import fcntl
import mmap
import os
import signal
import socket
import struct
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import jingzhao as jz
import machine
from base_cases import LENGTH as REGION, START, done, pair, pattern, same
from hca import Hca
from pci import CAP_EXPRESS

LIMIT_S = 20
SLOT = 4
LENGTH = 9000
MAGIC, VERSION, RING, HEAD = 0x4b4e494c41434847, 1, 1 << 20, 4096
READY, KICK = b"r", b"k"
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
# Bytes in the memory of the words of the ring from the listener to the connector; those of the other follow at WORDS.
PRODUCED, CONSUMED, KICK_AT_DATA, KICK_AT_ROOM, WORDS = 0, 64, 128, 192, 256
PAD = 0xffffffff
EVENTS = ("hghca_link", "hghca_link_role", "hghca_link_begin", "hghca_link_end", "hghca_link_third")


def words(path, number, properties=""):
    return ("-device", f"hghca,id=hca{number},addr={SLOT}.0,mac=52:54:00:00:00:0{number},profile=base,link=shm:{path}{properties}")


def until(true, what):
    """Wait until it is true."""
    end = time.monotonic() + LIMIT_S
    while not true():
        if time.monotonic() > end:
            raise AssertionError(f"not within {LIMIT_S} s: {what}")
        time.sleep(0.01)


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory() as name:
        yield Path(name) / "link"


@contextlib.contextmanager
def process(path, number, properties=""):
    """A QEMU with one HCA on the link."""
    with machine.started(*words(path, number, properties), traces=EVENTS) as m:
        yield m


def up(m):
    """What the HCA was told last of its link."""
    lines = [line for line in m.trace() if line.startswith("hghca_link ")]
    return bool(lines) and lines[-1].endswith("up 1")


def until_up(*machines):
    for m in machines:
        until(lambda m=m: up(m), f"a link that is up\n{chr(10).join(m.trace()[-10:])}")


def until_down(m, times=1):
    """Until the connection has ended so many times."""
    until(lambda: m.traced("hghca_link_end") >= times and not up(m), "a link that is down")


def adapter(m, number):
    found = jz.Adapter(m, SLOT, 0xe0000000, 0x1000000, number)
    found.enable()
    found.start()
    found.data = found.new_region(START, REGION)
    return found


@contextlib.contextmanager
def connected():
    """Two processes, an HCA each."""
    with folder() as path, process(path, 1) as m, process(path, 2) as n:
        until_up(m, n)
        yield m, n, adapter(m, 1), adapter(n, 2)


def write(x, a, b, seed, length=LENGTH):
    """A WRITE from one process to the other, with each byte looked at."""
    a.m.write(a.data.memory, pattern(length, seed))
    x.post(jz.OP_WRITE, jz.remote(b.data), jz.data(a.data, 0, length))
    until_completed(x, jz.OP_WRITE, length)
    same(b.m.read(b.data.memory, length), pattern(length, seed), "what a WRITE wrote")


def until_completed(x, opcode, length):
    found = []
    take, x.completion = x.completion, lambda: found.pop()
    until(lambda: found.append(take()) or found[-1] is not None or found.pop(), "a completion")
    done(x, opcode, length, "a send")
    x.completion = take


def test_link_frames():
    """Two processes: WRITEs of nine packets in both directions, each byte looked at"""
    with connected() as (_, _, a, b):
        x, y = pair(a, b, jz.RC)
        for seed in range(20):
            write(x, a, b, seed)
            write(y, b, a, seed + 100)


def refused(*devices):
    try:
        with machine.started(*devices):
            return "nothing"
    except AssertionError as error:
        return str(error)


def test_link_values():
    """link: values that are no shm:PATH, a path that is too long, a netdev beside it and a place that cannot be are refused"""
    with folder() as path:
        path.write_text("a file")
        for value, extra, wanted in (
                ("", "", "property 'link' must be 'shm:PATH', not ''"), ("shm:", "", "must be 'shm:PATH', not 'shm:'"),
                ("tcp:1", "", "must be 'shm:PATH', not 'tcp:1'"), (f"shm:/{'x' * 120}", "", "too long for a socket"),
                (f"shm:{path}", "netdev=n,", "exclude each other"), ("shm:/proc/none/link", "", "/proc/none/link.lock"),
                (f"shm:{path}", "", f"cannot listen at '{path}'")):
            said = refused("-netdev", "hubport,hubid=0,id=n", "-device", f"hghca,addr=4.0,{extra}link={value}")
            if wanted not in said:
                raise AssertionError(f"link={value}: {said}")
        same(path.read_text(), "a file", "the file at the path")


def test_link_profiles():
    """link: taken with each profile"""
    for profile in ("full", "base", "rsnic"):
        with folder() as path, process(path, 1, f",profile={profile}") as m, process(path, 2) as n:
            until_up(m, n)


def test_link_comes_and_goes():
    """link: down without a peer, up with one, down when it ends, up with the next, also when the listener ends"""
    with folder() as path, process(path, 1) as m:
        for times in (1, 2):
            same(up(m), False, "the link without a peer")
            with process(path, 2) as n:
                until_up(m, n)
            until_down(m, times)
        # close() kills: here the listener, and the other one takes its place, with the socket that is left.
        with process(path, 2) as n:
            until_up(m, n)
            m.process.send_signal(signal.SIGKILL)
            m.process.wait()
            until_down(n)
            until(lambda: n.traced("hghca_link_role hca2: listens 1"), "the other one listens")
            with process(path, 3) as o:
                until_up(n, o)


def test_link_stale():
    """link: a socket that a killed process has left is replaced"""
    with folder() as path:
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(path))
        with process(path, 1) as m, process(path, 2) as n:
            until_up(m, n)


def test_link_killed():
    """link: under traffic, a peer that is killed takes its link with it, and the HCA works on with the next one"""
    with folder() as path, process(path, 1) as m:
        a = adapter(m, 1)
        with process(path, 2) as n:
            until_up(m, n)
            b = adapter(n, 2)
            x, _ = pair(a, b, jz.RC)
            for i in range(8):
                x.post(jz.OP_WRITE, jz.remote(b.data), jz.data(a.data, 0, LENGTH))
        until_down(m)
        with process(path, 3) as o:
            until_up(m, o)
            c = adapter(o, 3)
            z, _ = pair(a, c, jz.RC)
            write(z, a, c, 7)


def test_link_third():
    """link: a third process is refused, and the two work on"""
    with folder() as path, process(path, 1) as m, process(path, 2) as n:
        until_up(m, n)
        a, b = adapter(m, 1), adapter(n, 2)
        x, _ = pair(a, b, jz.RC)
        with process(path, 3) as o:
            until(lambda: m.traced("hghca_link_third") and o.traced("hghca_link_end hca3: refused"), "a refusal")
            write(x, a, b, 1)
            same(up(o), False, "the third's link")


def test_link_stopped():
    """link: frames for a machine that is stopped wait until it continues"""
    with connected() as (_, n, a, b):
        x, _ = pair(a, b, jz.RC)
        n.qmp("stop")
        a.m.write(a.data.memory, pattern(LENGTH, 3))
        x.post(jz.OP_WRITE, jz.remote(b.data), jz.data(a.data, 0, LENGTH))
        time.sleep(0.1)
        same(n.read(b.data.memory, LENGTH), bytes(LENGTH), "what a stopped machine has received")
        n.qmp("cont")
        until_completed(x, jz.OP_WRITE, LENGTH)
        same(n.read(b.data.memory, LENGTH), pattern(LENGTH, 3), "what arrived")


def test_link_set_link():
    """link: QMP set_link takes the port down and up again beside it"""
    with connected() as (m, n, a, b):
        x, _ = pair(a, b, jz.RC)
        for which, name in ((m, "hca1"), (n, "hca2")):
            which.qmp("set_link", name=name, up=False)
            same(up(which), False, f"the link of {name}")
            which.qmp("set_link", name=name, up=True)
            same(up(which), True, f"the link of {name}")
        write(x, a, b, 4)


def test_link_unplugged():
    """link: an HCA whose slot loses its power ends the connection and leaves no socket; the peer listens in its place"""
    slot = ("-global", "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off",
            "-device", "pcie-root-port,id=hole,addr=9,chassis=1,slot=1")
    with folder() as path, machine.started(*slot, "-device", f"hghca,id=hot,bus=hole,link=shm:{path}", traces=EVENTS) as m:
        with process(path, 2) as n:
            until_up(m, n)
            port = Hca(m, 9, 0, 0)
            m.write32(port.find(CAP_EXPRESS) + 0x18, 0x0700)     # power and its indicator off
            until_down(n)
            until(lambda: n.traced("hghca_link_role hca2: listens 1"), "the other one listens")
            with process(path, 3) as o:
                until_up(n, o)


# ---- peers that lie

class Peer:
    """The other end, without QEMU."""

    def __init__(self, connection):
        self.socket = connection
        self.socket.settimeout(LIMIT_S)
        self.memory = None

    def take(self, fd):
        self.memory = mmap.mmap(fd, HEAD + 2 * RING)

    def put(self, at, value):
        struct.pack_into("<Q", self.memory, at, value)

    def get(self, at):
        return struct.unpack_from("<Q", self.memory, at)[0]

    def kick(self):
        self.socket.send(KICK)

    def ended(self):
        """Has the HCA ended the connection?"""
        with contextlib.suppress(ConnectionResetError):
            while self.socket.recv(256):
                pass
        return True


@contextlib.contextmanager
def connecting(path):
    """A peer that connects; it has the listener's hello."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(LIMIT_S)
        s.connect(str(path))
        hello, fds, _, _ = socket.recv_fds(s, 64, 4)
        same((struct.unpack("<QIIQ", hello), len(fds)), ((MAGIC, VERSION, 0, RING), 1), "the hello")
        same(fcntl.fcntl(fds[0], fcntl.F_GET_SEALS), SEALS, "the memory's seals")
        peer = Peer(s)
        peer.take(fds[0])
        os.close(fds[0])
        yield peer


@contextlib.contextmanager
def listening(path):
    """A peer that listens, as the lock lets it."""
    with open(f"{path}.lock", "w", encoding="ascii") as lock, socket.socket(socket.AF_UNIX) as s:
        fcntl.flock(lock, fcntl.LOCK_EX)
        s.settimeout(LIMIT_S)
        s.bind(str(path))
        s.listen()
        yield s


def new_memory(size=HEAD + 2 * RING, seals=SEALS):
    fd = os.memfd_create("test", os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


def hello(magic=MAGIC, version=VERSION, reserved=0, ring=RING):
    return struct.pack("<QIIQ", magic, version, reserved, ring)


def send(s, data, *fds):
    s.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])


def test_link_false_hellos():
    """link: each hello that cannot be is refused, and the next listener is taken"""
    pipe = os.pipe()
    with folder() as path, tempfile.TemporaryFile() as plain, listening(path) as s, process(path, 1) as m:
        plain.truncate(HEAD + 2 * RING)
        wrong = [(b"x", ()), (bytes(24), ()), (hello(magic=MAGIC + 1), (new_memory(),)), (hello(version=2), (new_memory(),)),
                 (hello(reserved=1), (new_memory(),)), (hello(), ()), (hello(), (new_memory(), new_memory())),
                 (hello(), (pipe[0],)), (hello(), (plain.fileno(),)), (hello(), (new_memory(seals=0),)),
                 (hello(), (new_memory(seals=fcntl.F_SEAL_GROW),)), (hello(), (new_memory(HEAD + RING),)),
                 (hello(), (new_memory(HEAD + 3 * RING),)), (hello()[:20], (new_memory(),))]
        wrong += [(hello(ring=size), (new_memory(min(HEAD + 2 * size, 1 << 30)),))
                  for size in (0, 4096, RING + 4096, 1 << 27, 1 << 63, (1 << 64) - 1)]
        for data, fds in wrong:
            connection, _ = s.accept()
            with connection:
                send(connection, data, *fds)
                same(Peer(connection).ended(), True, f"the end of {data!r}")
            # It tries again, later each time: a peer it has once accepted makes that short again.
            good(s, m)
        same(up(m), False, "the link")
        same(memories(m), 0, "descriptors of memory that are left")


def memories(m):
    """How many descriptors of a peer's memory the process has."""
    links = (os.readlink(fd) for fd in Path(f"/proc/{m.process.pid}/fd").iterdir())
    return sum("memfd:test" in link for link in links)


def good(s, m):
    """A connection with a proper hello, which ends."""
    connection, _ = s.accept()
    with connection:
        fd = new_memory()
        send(connection, hello(), fd)
        os.close(fd)
        same(connection.recv(1), READY, "what the connector says")
        until_up(m)
    until(lambda: not up(m), "a link that is down")


def lie(what, tell, machine_, path):
    """A peer that connects, is accepted and lies; the connection must end and the device be well."""
    ends = machine_.traced("hghca_link_end")
    with connecting(path) as peer:
        peer.socket.send(READY)
        until_up(machine_)
        tell(peer)
        peer.kick()
        same(peer.ended(), True, f"the end after {what}")
    until_down(machine_, ends + 1)


def record(length, produced, data=b""):
    """The first record that the connector sends has this length."""
    def tell(peer):
        at = HEAD + RING
        peer.memory[at:at + 8 + len(data)] = struct.pack("<II", length, 0) + data
        peer.put(WORDS + PRODUCED, produced)

    return tell


def position(at, value):
    return lambda peer: peer.put(at, value)


def test_link_false_rings():
    """link: each position and length in a ring that cannot be ends the connection, and the next peer is taken"""
    with folder() as path, process(path, 1) as m:
        lies = {f"length {length:#x}": record(length, 64) for length in (0, 57, 16385, 1 << 31, PAD - 1, PAD)}
        lies |= {f"produced {value:#x}": position(WORDS + PRODUCED, value)
                 for value in (4, RING + 8, 1 << 32, 1 << 63, (1 << 64) - 8)}
        for what, tell in lies.items():
            lie(what, tell, m, path)
        with process(path, 2) as n:
            until_up(m, n)
            a, b = adapter(m, 1), adapter(n, 2)
            x, _ = pair(a, b, jz.RC)
            write(x, a, b, 5)


def test_link_not_ready():
    """link: a peer that says anything but that it is ready is refused, and one that says nothing gives way to the next"""
    with folder() as path, process(path, 1) as m:
        with connecting(path) as peer:
            peer.kick()
            same(peer.ended(), True, "the end")
        with connecting(path) as silent, process(path, 2) as n:
            until_up(m, n)
            same(silent.ended(), True, "the end of one that says nothing")


def test_link_no_room():
    """link: while a peer takes no frame, the HCA stops sending and takes commands; it continues when there is room"""
    with folder() as path, process(path, 1) as m:
        a = adapter(m, 1)
        with connecting(path) as peer:
            peer.socket.send(READY)
            until_up(m)
            x = jz.Qp(a, jz.UC)
            x.connect(SimpleNamespace(qpn=9, adapter=SimpleNamespace(mac=bytes((0x52, 0x54, 0, 0, 0, 2)), ip=0x0a0a0002)))
            for _ in range(RING // REGION):
                x.post(jz.OP_WRITE, struct.pack("<QII", START, 1, 0), jz.data(a.data, 0, REGION))
                c = x.completion()
                if c is None:
                    break
                same((c.syndrome, x.send.complete()), (0, c.wqe), "a WRITE that was sent")
            else:
                raise AssertionError("all was sent")
            if not RING - 16384 <= peer.get(PRODUCED) <= RING:
                raise AssertionError(f"{peer.get(PRODUCED)} bytes in the ring")
            same(a.status(jz.NOP, 0x1f), jz.OK, "the status of a command")
            same(peer.get(KICK_AT_ROOM), peer.get(PRODUCED) - RING // 2, "where it wants to be kicked")
            peer.put(CONSUMED, peer.get(PRODUCED))
            peer.kick()
            until_completed(x, jz.OP_WRITE, REGION)
            # It has read less than it says.
            x.post(jz.OP_WRITE, struct.pack("<QII", START, 1, 0), jz.data(a.data, 0, REGION))
            until_completed(x, jz.OP_WRITE, REGION)
        until_down(m)
        with process(path, 2) as n:
            until_up(m, n)
            b = adapter(n, 2)
            y, _ = pair(a, b, jz.RC)
            write(y, a, b, 5)


def test_link_false_room():
    """link: a peer that has taken more than there was, when the ring is full, loses its connection"""
    with folder() as path, process(path, 1) as m:
        a = adapter(m, 1)
        with connecting(path) as peer:
            peer.socket.send(READY)
            until_up(m)
            peer.put(CONSUMED, 1 << 40)
            x = jz.Qp(a, jz.UC)
            x.connect(SimpleNamespace(qpn=9, adapter=SimpleNamespace(mac=bytes((0x52, 0x54, 0, 0, 0, 2)), ip=0x0a0a0002)))
            for _ in range(RING // REGION + 1):
                x.post(jz.OP_WRITE, struct.pack("<QII", START, 1, 0), jz.data(a.data, 0, REGION))
                if x.completion() is None:
                    break
                x.send.complete()
            same(peer.ended(), True, "the end")
        until_down(m)
        same(a.status(jz.NOP, 0x1f), jz.OK, "the status of a command")
