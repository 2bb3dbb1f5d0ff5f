# SPDX-License-Identifier: GPL-2.0-or-later
"""The checkers of captured frames: what they leave alone, and what they find."""

import random
import struct
import sys
import tempfile
import zlib
from pathlib import Path

from tool import holds, same

from hghca_lib import repo

sys.path.insert(0, str(repo.path("tests/wire")))
import frames  # noqa: E402
import pcapng  # noqa: E402
import vendor  # noqa: E402

TCP, UDP = 6, 17
ADDRESSES = bytes([10, 0, 0, 1, 10, 0, 0, 2])
# Of programs that tshark knows: EtherNet/IP, BACnet, IRC, MongoDB, DHCP, mDNS, ssh.
KNOWN = (44818, 47808, 57000, 27017, 67, 5353, 22)
QPN = 0x11
FULL, RECORD = bytes(range(256)), bytes(8)
# An object of READ_CONSISTENT, with the check value of CRC-64/XZ.
OBJECT = b"123456789" + (0x995dc9bbdf1939fa).to_bytes(8, "little")
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


def roce(opcode, psn, body=b"", qpn=QPN, pad=0, back=False):
    """A frame of RoCE v2 with an ICRC that is right, from the first port to the second, or back."""
    bth = struct.pack("!BBHII", opcode, 0x40 | pad << 4, 0xffff, qpn, psn)
    frame = filled_in(udp(4791, bth + body + bytes(pad) + bytes(4), 0xc001), 40, 0)    # no UDP checksum
    if back:
        # Sums over the addresses stay as they are.
        frame = frame[:26] + frame[30:34] + frame[26:30] + frame[34:]
    masked = bytearray(frame[14:-4])
    # A17.3.3: type of service, time to live, header checksum, UDP's checksum, FECN and BECN with the bits beside them.
    for at in (1, 8, 10, 11, 26, 27, 32):
        masked[at] = 0xff
    return frame[:-4] + struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(masked)))


def reth(length, address=0):
    return struct.pack("!QII", address, 0xabcd0005, length)


def pointer_request(psn, length, search=0x80001, **options):
    """READ_POINTER of the key at word 0, with the pointer at word 2, unless `search` says otherwise."""
    return roce(0xc4, psn, reth(length, 0x1000) + struct.pack("!QI", 1000, search), **options)


def response(psn, payload=b"", opcode=0x10, syndrome=0, **options):
    return roce(opcode, psn, struct.pack("!I", syndrome << 24) + payload, back=True, **options)


def acknowledgement(psn, syndrome=0, **options):
    return response(psn, opcode=0x11, syndrome=syndrome, **options)


def part_message(psn, *payloads):
    """The packets of a message, at the MTU 256."""
    if len(payloads) == 1:
        return [roce(0xc3, psn, reth(len(payloads[0])) + payloads[0])]
    return [roce(0xc0, psn, reth(sum(map(len, payloads))) + payloads[0]),
            *(roce(0xc1, psn + k, payload) for k, payload in enumerate(payloads[1:-1], 1)),
            roce(0xc2, psn + len(payloads) - 1, payloads[-1])]


def write(path, data):
    path.write_bytes(BEGINNING + b"".join(
        pcapng.packet_block(pcapng.Record(pcapng.OUT, 0, len(frame), frame, 0)) for frame in data))


def wrong_vendors(data):
    """What vendor.py says of a capture with these frames, as "NUMBER: WHAT"."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "frames.pcapng"
        write(path, data)
        return [f"{number}: {why}" for number, why in vendor.check(path)[1]]


def checked(*captures):
    """What the checkers say is wrong with the frames of each capture; they are started once for all of them."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.pcapng" for number in range(len(captures))]
        for path, data in zip(paths, captures):
            write(path, data)
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


def each_is_found(rows):
    """Each row is (what the finding has, frames): there is this finding alone, and it is of the last frame."""
    for part, data in rows:
        wrong = wrong_vendors(data)
        same(len(wrong), 1, f"findings for {part!r}: {wrong}")
        holds(wrong[0], f"{len(data)}: ", part)


def sound_exchange():
    """Requests of all kinds with their responses, where PSNs wrap."""
    return [*part_message(0xfffffe, FULL, FULL, RECORD), acknowledgement(0),
            *part_message(1, RECORD * 3), *part_message(2, b""), acknowledgement(2),
            pointer_request(3, 13), response(3, bytes(13), pad=3), pointer_request(4, 16), response(4),
            roce(0xc5, 5, reth(17, 0x1000)), response(5, OBJECT, pad=3)]


def test_vendor_packets():
    """All checkers leave sound packets of RSNIC's operations alone, and find a wrong ICRC and a wrong header"""
    sound = sound_exchange()
    damaged = [*sound[:-1], sound[-1][:60] + b"?" + sound[-1][61:]]
    other = roce(0xc5, 6, reth(16, 0x1000) + bytes(4))
    unknown = roce(0xc6, 6, reth(16))
    found = checked(sound, damaged, [*sound, other], [unknown])
    same(found[0], [], "findings")
    holds("\n".join(found[1]), f"frame {len(sound)}: ICRC ", "CRC-64")
    same(len(found[2]), 1, "findings")
    holds(found[2][0], f"2: frame {len(sound) + 1}: READ_CONSISTENT_REQUEST with a payload of 4 bytes")
    holds("\n".join(found[3]), "opcode 0xc6, not decoded up to its ICRC")


def test_vendor_headers():
    """Headers and lengths of RSNIC's operations are those of the page"""
    each_is_found([
        ("PART_FIRST shorter than its headers", [roce(0xc0, 1, bytes(8))]),
        ("PART_FIRST with a payload of 255", [roce(0xc0, 1, reth(300) + bytes(255), pad=1)]),
        ("PART_FIRST with a payload of 768", [roce(0xc0, 1, reth(1000) + bytes(768))]),
        ("of a length of 256", [roce(0xc0, 1, reth(256) + FULL)]),
        ("the address 0x8", [roce(0xc0, 1, reth(264, 8) + FULL)]),
        ("PART_MIDDLE with a payload of 8", [roce(0xc1, 1, RECORD)]),
        ("PART_LAST with a payload of 0", [roce(0xc2, 1)]),
        ("PART_ONLY with a payload of 8 bytes, of a length of 16", [roce(0xc3, 1, reth(16) + RECORD)]),
        ("PART_ONLY with a payload of 4100", [roce(0xc3, 1, reth(4100) + bytes(4100))]),
        ("PART_ONLY with 26 bytes between", [roce(0xc3, 1, reth(10) + bytes(10))]),
        ("READ_POINTER_REQUEST shorter than its headers", [roce(0xc4, 1, reth(8) + bytes(8))]),
        ("READ_POINTER_REQUEST with a payload of 4", [roce(0xc4, 1, reth(8) + bytes(16))]),
        ("of a length of 4097", [pointer_request(1, 4097)]),
        ("READ_CONSISTENT_REQUEST with a payload of 12", [roce(0xc5, 1, reth(16) + bytes(12))]),
        ("READ_CONSISTENT_REQUEST shorter than its headers", [roce(0xc5, 1, reth(16)[:13], pad=3)]),
    ])


def test_vendor_messages():
    """A message of PART has its packets in their order, with the bytes of its RETH"""
    first, middle, last = part_message(7, FULL, FULL, RECORD)
    each_is_found([
        ("opcode 0xc3 behind PART_FIRST", [first, *part_message(8, RECORD)]),
        ("opcode 0xc4 behind PART_MIDDLE", [first, middle, pointer_request(9, 8)]),
        ("opcode 0x0a behind PART_FIRST", [first, roce(0x0a, 8, reth(8) + RECORD)]),
        ("PART_MIDDLE behind no packet", [*part_message(6, RECORD), roce(0xc1, 7, FULL)]),
        ("PART_LAST behind no packet", [*part_message(7, RECORD), roce(0xc2, 8, RECORD)]),
        ("PART_ONLY in a message of opcode 0x06", [roce(0x06, 7, reth(264) + FULL), *part_message(8, RECORD)]),
        ("PART_MIDDLE with 512 bytes", [first, roce(0xc1, 8, FULL * 2)]),
        ("PART_LAST with 264 bytes", [first, roce(0xc2, 8, FULL + RECORD)]),
        ("528 bytes were sent of a message of 520", [first, middle, roce(0xc2, 9, RECORD * 2), acknowledgement(9)]),
        ("264 bytes were sent of a message of 520", [first, roce(0xc2, 8, RECORD), acknowledgement(8)]),
        ("768 bytes were sent of a message of 520", [first, middle, roce(0xc1, 9, FULL), acknowledgement(9)]),
        ("without the packets before it", [first, last, acknowledgement(9)]),
        ("0x000009 was not sent", [*part_message(8, RECORD), *part_message(10, RECORD), acknowledgement(10)]),
        ("0x000009 was not sent", [pointer_request(8, 8), *part_message(10, RECORD), acknowledgement(10)]),
    ])
    # Lost, late and repeated packets, and the same PSNs for a new connection.
    for data in ([first, last, middle, acknowledgement(9)], [first, last, first, middle, last, acknowledgement(9)],
                 [first, middle, first, middle, last, acknowledgement(9), last, acknowledgement(9)],
                 [first, middle, *part_message(7, RECORD), acknowledgement(7)], [first, last, acknowledgement(8, 0x60)],
                 [*part_message(8, RECORD), *part_message(13, RECORD), roce(0x0c, 9, reth(1000)), acknowledgement(13)],
                 [roce(0x0c, 9, reth(1000)), *part_message(13, RECORD), acknowledgement(13)]):
        same(wrong_vendors(data), [], "findings")


def test_vendor_responses():
    """PART is answered by ACKs, the other operations by one READ_RESPONSE_ONLY with what was asked for"""
    part = part_message(7, RECORD)
    pointer, consistent = pointer_request(7, 8), roce(0xc5, 7, reth(17, 0x1000))
    rows = [
        ("opcode 0x10 to PART_ONLY", [*part, response(7, RECORD)]),
        ("opcode 0x12 to PART_ONLY", [*part, response(7, RECORD, opcode=0x12)]),
        ("RNR NAK to PART_ONLY", [*part, acknowledgement(7, 0x2c)]),
        ("an ACK to READ_POINTER", [pointer, acknowledgement(7)]),
        ("an ACK to READ_CONSISTENT", [consistent, acknowledgement(7)]),
        ("RNR NAK to READ_POINTER", [pointer, acknowledgement(7, 0x2c)]),
        ("opcode 0x0d to READ_POINTER", [pointer, response(7, FULL, opcode=0x0d)]),
        ("READ_RESPONSE_ONLY of 4 bytes to READ_POINTER_REQUEST of 8", [pointer, response(7, bytes(4))]),
        ("without an AETH of an ACK", [pointer, response(7, RECORD, syndrome=0x61)]),
        ("with no length", [pointer_request(7, 0), response(7)]),
        ("READ_RESPONSE_ONLY of 0 bytes to READ_CONSISTENT_REQUEST of 17", [consistent, response(7)]),
        ("with a wrong CRC-64", [consistent, response(7, b"0" + OBJECT[1:], pad=3)]),
        ("READ_CONSISTENT_REQUEST of 8 bytes", [roce(0xc5, 7, reth(8)), response(7, RECORD)]),
    ]
    # The keys' words, the predicate from bit 16, the pointer from 18, relative 23, the next one from 24, has_next 29.
    for why, search in (("reserved bits", 1 | 2 << 18 | 1 << 30), ("reserved bits", 1 | 2 << 18 | 1 << 31),
                        ("no key", 2 << 18), ("a key at word 15", 0x8001 | 2 << 18),
                        ("its pointer at word 15", 1 | 15 << 18),
                        ("the next element's address at word 15", 1 | 2 << 18 | 15 << 24 | 1 << 29),
                        ("a relative pointer beyond word 14", 1 << 3 | 12 << 18 | 1 << 23)):
        rows.append((why, [pointer_request(7, 8, search), response(7, RECORD)]))
    each_is_found(rows)
    for search in (1 | 15 << 18, 0x8001 | 2 << 18):
        same(wrong_vendors([pointer_request(7, 8, search), acknowledgement(7, 0x61)]), [], "findings, with a NAK")
    for search in (0x4000 | 14 << 18, 1 | 2 << 18 | 31 << 24, 1 | 2 << 18 | 14 << 24 | 1 << 29, 9 | 11 << 18 | 1 << 23):
        same(wrong_vendors([pointer_request(7, 8, search), response(7, RECORD)]), [], f"findings, {search:#x}")
    # Beyond the end with each key that matches; none did.
    same(wrong_vendors([pointer_request(7, 8, 1 | 15 << 18 | 1 << 23), response(7)]), [], "findings, none found")
    # Of two QPs with one PSN either may have the response; a READ of RC has several PSNs; a duplicate is acknowledged.
    for data in ([pointer, pointer_request(7, 16, qpn=0x12), response(7, bytes(16))],
                 [pointer, roce(0x0a, 7, reth(8) + RECORD, qpn=0x12), acknowledgement(7)],
                 [pointer, roce(0x0c, 6, reth(400), qpn=0x12), response(7, bytes(144), opcode=0x0f)],
                 [*part_message(6, RECORD), pointer, response(7, RECORD), *part_message(6, RECORD), acknowledgement(7)],
                 [pointer, response(7, RECORD), pointer, acknowledgement(7), response(7)]):
        same(wrong_vendors(data), [], "findings")
    both = [pointer, pointer_request(7, 16, qpn=0x12), response(7, bytes(12))]
    same([line[:3] for line in wrong_vendors(both)], ["3: "], "findings, of neither QP")


def test_vendor_addresses():
    """Responses are those of the ports that the requests have, over IPv6 and with a VLAN too"""
    other = bytearray(response(7, bytes(4)))
    other[26:30] = bytes([10, 0, 0, 9])
    same(wrong_vendors([pointer_request(7, 8), bytes(other)]), [], "findings, another port")

    def over_ipv6(frame):
        """With a VLAN, and without its checksums."""
        ends = [bytes(12) + frame[at:at + 4] for at in (26, 30)]
        head = struct.pack("!IHBB", 0x60000000, len(frame) - 34, UDP, 64)
        return frame[:12] + bytes.fromhex("8100 0005 86dd") + head + ends[0] + ends[1] + frame[34:]
    same(wrong_vendors([over_ipv6(frame) for frame in sound_exchange()]), [], "findings")
    wrong = wrong_vendors([over_ipv6(frame) for frame in (pointer_request(7, 8), response(7, bytes(4)))])
    same(wrong, ["2: READ_RESPONSE_ONLY of 4 bytes to READ_POINTER_REQUEST of 8"], "findings")
