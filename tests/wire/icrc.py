# SPDX-License-Identifier: GPL-2.0-or-later
"""Run in the root of the frame checkers: recompute the ICRC of every RoCE v2 frame of captures, in two ways.

usage: icrc.py FILE...

One way is here, by the words of annex A17 of the InfiniBand Architecture
Specification and zlib's CRC-32. The other is scapy's contrib.roce, which takes
a hundred times as long: where there are many frames alike it sees the first of
them and a sample of the others. Neither has anything of the device. Prints one
JSON object:

    frames: how many there are in each file
    rdma:   those to the UDP port of RoCE v2, of all files
    scapy:  those of them that scapy has seen
    wrong:  [number of the frame, counted from 1 through all files; what is wrong with it]
"""

import collections
import json
import struct
import sys
import zlib

from scapy.contrib.roce import BTH
from scapy.layers.l2 import Ether

import pcapng

ROCE_PORT = 4791
UDP = 17
IPV4, IPV6, VLAN = 0x0800, 0x86dd, 0x8100
ICRC_BYTES = 4
# Of packets of one opcode, with headers and pad alike, scapy sees so many, and then one in so many.
FIRST, ONE_IN = 20, 1000


def datagram(frame):
    """(IP version, bytes from the IP header to the end of what it says there is) of a frame with UDP for RoCE v2."""
    at = 12
    kind = int.from_bytes(frame[at:at + 2], "big")
    if kind == VLAN:
        at += 4
        kind = int.from_bytes(frame[at:at + 2], "big")
    ip = frame[at + 2:]
    if kind == IPV4 and len(ip) >= 28 and ip[9] == UDP and not int.from_bytes(ip[6:8], "big") & 0x3fff:
        version, header, length = 4, (ip[0] & 15) * 4, int.from_bytes(ip[2:4], "big")
    elif kind == IPV6 and len(ip) >= 48 and ip[6] == UDP:
        version, header, length = 6, 40, 40 + int.from_bytes(ip[4:6], "big")
    else:
        return None
    if int.from_bytes(ip[header + 2:header + 4], "big") != ROCE_PORT:
        return None
    return version, ip[:length]


def icrc(version, ip):
    """The ICRC as it goes over the wire: A17.3.3, of a datagram that still has one at its end."""
    masked = bytearray(ip[:-ICRC_BYTES])
    if version == 4:
        variant = [1, 8, 10, 11]                # type of service, time to live, header checksum
        udp = (ip[0] & 15) * 4
    else:
        masked[0] |= 0x0f                       # traffic class and flow label
        variant = [1, 2, 3, 7]                  # and hop limit
        udp = 40
    variant += [udp + 6, udp + 7, udp + 8 + 4]  # UDP's checksum; the byte of FECN and BECN in the BTH
    for at in variant:
        masked[at] = 0xff
    # In place of a local route header.
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(masked)))


def by_zlib(version, ip):
    """What is wrong with the ICRC of a datagram, or None."""
    # BTH and ICRC behind the UDP header.
    if len(ip) < (28 if version == 4 else 48) + 12 + ICRC_BYTES:
        return "shorter than its headers"
    carried, ours = ip[-ICRC_BYTES:], icrc(version, ip)
    return None if carried == ours else f"ICRC {carried.hex()}, by zlib {ours.hex()}"


def by_scapy(frame, ip):
    """What is wrong with the ICRC of a frame with that datagram, or None."""
    packet = Ether(frame)
    if BTH not in packet:
        return "scapy sees no BTH"
    carried, theirs = ip[-ICRC_BYTES:], packet[BTH].compute_icrc(None)
    if struct.pack("!I", packet[BTH].icrc) != carried or theirs != carried:
        return f"ICRC {carried.hex()}, by scapy {theirs.hex()}"
    return None


class Checker:
    """Checks frame after frame; its attributes are what is printed."""

    def __init__(self):
        self.frames = []
        self.rdma = 0
        self.scapy = 0
        self.wrong = []
        self.alike = collections.Counter()

    def take_file(self, path):
        before, count = sum(self.frames), 0
        for count, record in enumerate(pcapng.records(path), 1):
            found = datagram(record.data)
            why = self.take(record.data, *found) if found else None
            if why:
                self.wrong.append((before + count, why))
        self.frames.append(count)

    def take(self, frame, version, ip):
        """What is wrong with a frame for RoCE v2, or None."""
        self.rdma += 1
        why = by_zlib(version, ip)
        if why or not self.is_scapys(len(frame) - len(ip), version, ip):
            return why
        self.scapy += 1
        return by_scapy(frame, ip)

    def is_scapys(self, before, version, ip):
        """Whether scapy is to see a datagram, with `before` bytes of its frame around it."""
        bth = ((ip[0] & 15) * 4 if version == 4 else 40) + 8
        kind = (before, version, ip[bth], ip[bth + 1] & 0x30)
        self.alike[kind] += 1
        return self.alike[kind] <= FIRST or self.alike[kind] % ONE_IN == 0


def main():
    checker = Checker()
    for path in sys.argv[1:]:
        checker.take_file(path)
    print(json.dumps({name: getattr(checker, name) for name in ("frames", "rdma", "scapy", "wrong")}))


main()
