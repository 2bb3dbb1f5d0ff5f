# SPDX-License-Identifier: GPL-2.0-or-later
"""Run in the root of the judges: recompute the ICRC of every RoCE v2 frame of a capture, in two ways.

usage: icrc.py FILE

One way is scapy's contrib.roce. The other is here, by the words of annex A17 of
the InfiniBand Architecture Specification and zlib's CRC-32. Neither has
anything of the device. Prints one JSON object:

    frames: records in the file
    rdma:   those to the UDP port of RoCE v2
    wrong:  [number of the frame, from 1; what is wrong with it]
"""

import json
import struct
import sys
import zlib

from scapy.contrib.roce import BTH
from scapy.layers.l2 import Ether
from scapy.utils import RawPcapNgReader

ROCE_PORT = 4791
UDP = 17
IPV4, IPV6, VLAN = 0x0800, 0x86dd, 0x8100
ICRC_BYTES = 4


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


def judge(frame):
    """What is wrong with the frame, or None; the frame is for RoCE v2 where `datagram` says so."""
    version, ip = datagram(frame)
    # BTH and ICRC behind the UDP header.
    if len(ip) < (28 if version == 4 else 48) + 12 + ICRC_BYTES:
        return "shorter than its headers"
    carried = ip[-ICRC_BYTES:]
    ours = icrc(version, ip)
    if carried != ours:
        return f"ICRC {carried.hex()}, by zlib {ours.hex()}"
    packet = Ether(frame)
    if BTH not in packet:
        return "scapy sees no BTH"
    theirs = packet[BTH].compute_icrc(None)
    if struct.pack("!I", packet[BTH].icrc) != carried or theirs != carried:
        return f"ICRC {carried.hex()}, by scapy {theirs.hex()}"
    return None


def main():
    frames, rdma, wrong = 0, 0, []
    with RawPcapNgReader(sys.argv[1]) as reader:
        for frame, _ in reader:
            frames += 1
            if datagram(frame):
                rdma += 1
                why = judge(frame)
                if why:
                    wrong.append([frames, why])
    print(json.dumps({"frames": frames, "rdma": rdma, "wrong": wrong}))


main()
