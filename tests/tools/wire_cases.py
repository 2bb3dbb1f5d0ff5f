# SPDX-License-Identifier: GPL-2.0-or-later
"""The checkers of captured frames: what they leave alone, and what they find."""

import random
import struct
import sys
import tempfile
from pathlib import Path

from tool import holds, same

from hghca_lib import repo

sys.path.insert(0, str(repo.path("tests/wire")))
import frames  # noqa: E402
import pcapng  # noqa: E402

TCP, UDP = 6, 17
ADDRESSES = bytes([10, 0, 0, 1, 10, 0, 0, 2])
# Of programs that tshark knows: EtherNet/IP, BACnet, IRC, MongoDB, DHCP, mDNS, ssh.
KNOWN = (44818, 47808, 57000, 27017, 67, 5353, 22)
# A section and its one interface, of Ethernet.
BEGINNING = struct.pack("<IIIHHqI", 0x0a0d0d0a, 28, 0x1a2b3c4d, 1, 0, -1, 28) + struct.pack("<IIHHII", 1, 20, 1, 0, 0, 20)


def checksum(data):
    """RFC 1071."""
    total = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def filled_in(data, at, total):
    return data[:at] + struct.pack("!H", total) + data[at + 2:]


def ipv4(protocol, segment):
    """A frame with a segment of TCP or UDP, all checksums right."""
    pseudo = ADDRESSES + struct.pack("!BBH", 0, protocol, len(segment))
    segment = filled_in(segment, 16 if protocol == TCP else 6, checksum(pseudo + segment))
    header = struct.pack("!BBHIBBH", 0x45, 0, 20 + len(segment), 0x4000, 64, protocol, 0) + ADDRESSES
    return bytes.fromhex("020000000001020000000002 0800") + filled_in(header, 10, checksum(header)) + segment


def tcp(port, sequence, payload):
    return ipv4(TCP, struct.pack("!HHIIBBHHH", 20001, port, sequence, 0, 0x50, 0x18, 1000, 0, 0) + payload)


def udp(port, payload, source=20001):
    return ipv4(UDP, struct.pack("!HHHH", source, port, 8 + len(payload), 0) + payload)


def checked(*captures):
    """What the checkers say is wrong with the frames of each capture; they are started once for all of them."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.pcapng" for number in range(len(captures))]
        for path, data in zip(paths, captures):
            path.write_bytes(BEGINNING + b"".join(
                pcapng.packet_block(pcapng.Record(pcapng.OUT, 0, len(frame), frame, 0)) for frame in data))
        found = frames.decode(*paths)
    same(found.frames, sum(map(len, captures)), "frames seen")
    # The name of its capture stands before each, if there are several.
    wrong = [[line for line in found.wrong if len(paths) == 1 or line.startswith(f"{path.stem}: ")] for path in paths]
    same(sum(map(len, wrong)), len(found.wrong), "findings with the name of a capture")
    return wrong


def test_cut():
    """A capture is cut between two frames, and is whole where it is short enough"""
    frame = pcapng.packet_block(pcapng.Record(pcapng.OUT, 1, 60, b"x" * 60, 0))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "frames.pcapng"
        for size, more, left in ((10, False, 10), (9.9, True, 9), (3, True, 3)):
            path.write_bytes(frame * 10)
            same(pcapng.cut(path, int(size * len(frame))), more, f"whether there are more than {size} frames")
            same(path.stat().st_size, left * len(frame), "bytes left")


def test_programs():
    """What programs say over TCP and UDP is theirs, whatever port they have"""
    noise = random.Random(1)
    same(checked([*(tcp(port, 1 + 100 * k, noise.randbytes(100)) for port in KNOWN for k in range(20)),
                  *(udp(port, noise.randbytes(60)) for port in KNOWN for _ in range(20))]), [[]], "findings")


def test_checksums():
    """A checksum that is wrong is found, of TCP and of UDP"""
    sent = [tcp(44818, 1, b"hello"), udp(44818, b"hello")]
    *found, tcp_wrong, udp_wrong = checked(*([frame] for frame in sent), *([frame[:-1] + b"?"] for frame in sent))
    same(found, [[], []], "findings")
    for name, wrong in (("TCP", tcp_wrong), ("UDP", udp_wrong)):
        same(len(wrong), 1, f"findings, {name} damaged")
        holds(wrong[0], "Bad checksum")


def test_mangled_checksum():
    """A TCP checksum of 0 may be written as 0xffff, another one may not"""
    at = 14 + 20 + 16
    other = tcp(22, 1, b"hello!")
    # Its own checksum as a further word makes that of the whole 0.
    zero = tcp(22, 1, b"hello!" + tcp(22, 1, b"hello!\0\0")[at:at + 2])
    same(zero[at:at + 2], b"\0\0", "checksum")
    found = checked(*([frame[:at] + b"\xff\xff" + frame[at + 2:]] for frame in (zero, other)))
    same([len(wrong) for wrong in found], [0, 1], "findings, 0xffff in place of 0 and of another")


def test_roce_port():
    """What is for the port of RoCE v2 must be of RoCE v2, with an ICRC that is right"""
    noise = random.Random(1)
    # A SEND Only of UD: BTH and DETH, a payload, and no ICRC over them.
    packet = bytes.fromhex("6400ffff 00000011 00000001 80010000 00000011") + noise.randbytes(64)
    wrong, short = checked([udp(4791, packet, 0xc001)], [udp(4791, packet[:5], 0xc001)])
    same(len(wrong), 1, "findings")
    holds(wrong[0], "ICRC ")
    holds("\n".join(short), "for the port of RoCE v2, and not decoded as such")
