# SPDX-License-Identifier: GPL-2.0-or-later
"""The link between the two halves of a guest's adapters (machine.Config.divided), which can lose and reorder packets.

Not every device has fault injection. This link has it for each pair of devices, in both directions.
"""

import collections
import contextlib
import random
import selectors
import shutil
import socket
import struct
import tempfile
import threading
import time
from pathlib import Path

from hghca_lib import machine

READ_BYTES = 1 << 18
# Frames that may wait for the other half. QEMU keeps further ones.
WAITING_BYTES = 4 << 20
IPV4, IPV6, UDP, ROCE_PORT = 0x0800, 0x86DD, 17, 4791
# A packet that is held back goes after so many others, or after this time.
OVERTAKEN_BY, HELD_S = 3, 0.001
SEED = 7


def of_qps(frame):
    """Whether it is a packet of RoCE v2 to a QP of a program, which is not QP 1: the CM waits seconds for a lost MAD."""
    kind = int.from_bytes(frame[12:14])
    udp = 14 + (frame[14] & 15) * 4 if kind == IPV4 else 54
    protocol = frame[23] if kind == IPV4 else frame[20] if kind == IPV6 else 0
    return (protocol == UDP and len(frame) >= udp + 20 and int.from_bytes(frame[udp + 2:udp + 4]) == ROCE_PORT and
            int.from_bytes(frame[udp + 13:udp + 16]) > 1)


class Way:
    """One direction of the link: frames from `source` to `target`."""

    def __init__(self, source, target, seed):
        self.source = source
        self.target = target
        self.random = random.Random(seed)
        self.partial = bytearray()
        self.waiting = bytearray()
        self.held = collections.deque()     # [frame, how many go before it, when it goes]

    def receive(self, loss, reordering, counts):
        """Take what has come; False at the end of the stream."""
        data = self.source.recv(READ_BYTES)
        self.partial += data
        while len(self.partial) >= 4 and len(self.partial) >= 4 + (size := struct.unpack_from("!I", self.partial)[0]):
            self.take(bytes(self.partial[4:4 + size]), loss, reordering, counts)
            del self.partial[:4 + size]
        return bool(data)

    def take(self, frame, loss, reordering, counts):
        fate = self.random.random() if (loss or reordering) and of_qps(frame) else 1
        counts["packets"] += fate < 1
        if fate < loss:
            counts["lost"] += 1
        elif fate < loss + reordering:
            counts["held"] += 1
            self.held.append([frame, OVERTAKEN_BY, time.monotonic() + HELD_S])
        else:
            self.put(frame)
            for one in self.held:
                one[1] -= 1
        self.release(counts)

    def put(self, frame):
        self.waiting += struct.pack("!I", len(frame)) + frame

    def release(self, counts):
        """Forward the frames that have been held back for long enough."""
        while self.held and (self.held[0][1] <= 0 or self.held[0][2] <= time.monotonic()):
            frame, left, _ = self.held.popleft()
            counts["overtaken"] += left < OVERTAKEN_BY
            self.put(frame)

    def send(self):
        with contextlib.suppress(BlockingIOError):
            del self.waiting[:self.target.send(self.waiting)]


class Relay:
    """A thread that forwards frames, as long as the block.

    counts: packets, lost, held back and overtaken by others, since impaired() began.
    """

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="hghca-relay-"))
        self.servers = [self.listen(number) for number in (1, 2)]
        self.loss = self.reordering = 0
        self.counts = collections.Counter()
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def listen(self, number):
        server = socket.socket(socket.AF_UNIX)
        server.bind(str(self.folder / str(number)))
        server.listen(1)
        server.settimeout(0.2)
        return server

    def qemu_args(self):
        """The ends of the link in the guest's QEMU, one on the hub of each half."""
        return tuple(word for number, hub in enumerate(machine.HALVES, 1) for word in (
            "-netdev", f"stream,id=relay{number},server=off,addr.type=unix,addr.path={self.folder / str(number)}",
            "-netdev", f"hubport,hubid={hub},id=half{number},netdev=relay{number}"))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()
        for server in self.servers:
            server.close()
        shutil.rmtree(self.folder)

    @contextlib.contextmanager
    def impaired(self, loss, reordering):
        """As long as the block, so large parts of the packets in each direction are lost, or are overtaken by others."""
        self.counts.clear()
        self.loss, self.reordering = loss, reordering
        try:
            yield self.counts
        finally:
            self.loss = self.reordering = 0

    def accept(self, server):
        while not self.ended.is_set():
            with contextlib.suppress(TimeoutError):
                end = server.accept()[0]
                end.setblocking(False)
                return end
        return None

    def run(self):
        with contextlib.ExitStack() as stack:
            ends = [stack.enter_context(end) for end in map(self.accept, self.servers) if end]
            if len(ends) == 2:
                self.forward(Way(ends[0], ends[1], SEED), Way(ends[1], ends[0], SEED + 1))

    def forward(self, *ways):
        pairs = (ways, ways[::-1])
        with selectors.DefaultSelector() as selector:
            watched = {}
            while not self.ended.is_set():
                for way, back in pairs:
                    watch(selector, watched, way, back)
                for key, ready in selector.select(HELD_S if any(way.held for way in ways) else 0.2):
                    way, back = key.data
                    if ready & selectors.EVENT_WRITE:
                        back.send()
                    if ready & selectors.EVENT_READ and not self.receive(way):
                        return
                for way in ways:
                    way.release(self.counts)
                    if way.waiting:
                        way.send()

    def receive(self, way):
        try:
            return way.receive(self.loss, self.reordering, self.counts)
        except OSError:
            return False


def watch(selector, watched, way, back):
    """Wait for what the source of a way, which is the target of the way back, has to do."""
    events = (selectors.EVENT_READ if len(way.waiting) < WAITING_BYTES else 0) | \
             (selectors.EVENT_WRITE if back.waiting else 0)
    if events == watched.get(way, 0):
        return
    if not events:
        selector.unregister(way.source)
    elif watched.get(way, 0):
        selector.modify(way.source, events, (way, back))
    else:
        selector.register(way.source, events, (way, back))
    watched[way] = events
