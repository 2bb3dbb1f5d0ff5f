# SPDX-License-Identifier: GPL-2.0-or-later
"""XRC packets as those of RC that they extend, for who knows RC alone.

By annex A14.3 of the InfiniBand Architecture Specification an XRC packet is one
of RC with an opcode of its own and, if it is a request, a header more.
"""

import struct

import pcapng

ROCE_PORT = 4791
SERVICE, XRC = 0xe0, 0xa0       # of BTH opcodes
RESPONSES = range(0x0d, 0x13)   # READ responses and acknowledgements
BTH_BYTES, XRCETH_BYTES = 12, 4


def is_xrc(opcode):
    return opcode & SERVICE == XRC


def extract(path, copy):
    """Copy the XRC packets of a capture, as those of RC; the number that each has in the capture."""
    numbers = []
    with open(copy, "wb") as out:
        for kind, _, block in pcapng.blocks(path):
            if kind != pcapng.ENHANCED_PACKET:
                out.write(block)
        for number, record in enumerate(pcapng.records(path), 1):
            data = as_rc(record.data)
            if data:
                numbers.append(number)
                out.write(pcapng.packet_block(record._replace(data=data, length=len(data))))
    return numbers


def as_rc(data):
    """A frame with an XRC packet as one of RC, but for its ICRC; None for any other frame."""
    network = 18 if data[12:14] == b"\x81\x00" else 14
    ipv6 = data[network:network + 1] >= b"\x60"
    udp = network + (40 if ipv6 else 20)
    bth = udp + 8
    if (len(data) < bth + BTH_BYTES or not is_xrc(data[bth])
            or int.from_bytes(data[udp + 2:udp + 4], "big") != ROCE_PORT):
        return None
    opcode = data[bth] & ~SERVICE
    less = 0 if opcode in RESPONSES else XRCETH_BYTES
    packet = bytearray(data[:bth + BTH_BYTES] + data[bth + BTH_BYTES + less:])
    packet[bth] = opcode
    for at in (network + (4 if ipv6 else 2), udp + 4):
        length = int.from_bytes(packet[at:at + 2], "big")
        packet[at:at + 2] = (max(length - less, 0)).to_bytes(2, "big")
    if not ipv6:
        set_checksum(packet, network)
    return bytes(packet)


def set_checksum(packet, at):
    """The checksum of the IPv4 header there, RFC 791."""
    packet[at + 10:at + 12] = b"\0\0"
    total = sum(struct.unpack_from(">10H", packet, at))
    total = (total & 0xffff) + (total >> 16)
    packet[at + 10:at + 12] = (~(total + (total >> 16)) & 0xffff).to_bytes(2, "big")
