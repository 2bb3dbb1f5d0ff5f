# SPDX-License-Identifier: GPL-2.0-or-later
"""Frames that no sound peer sends, thrown at an HCA from the interface of another on its link.

usage: badpackets.py SENDER TARGET-DEVICE TARGET-NETNS SOURCE-IP TARGET-IP TARGET-MAC

Run in the sender's network namespace. The target's counters say what became of
each frame: dropped, and for the right reason. Prints the Test Anything Protocol.
"""

import random
import socket
import struct
import subprocess
import sys
import time
import zlib

sender, device, netns, source_ip, target_ip, target_mac = sys.argv[1:]
ROCE_PORT = 4791
UD_SEND_ONLY, RC_SEND_ONLY, RC_WRITE_ONLY, RC_ACK = 0x64, 0x04, 0x0A, 0x11
GSI_QKEY = 0x80010000
COUNTERS = ["rx_packets", "rx_too_short", "rx_bad_header", "rx_bad_icrc", "rx_unknown_qp", "rx_bad_pkey",
            "rx_bad_qkey", "raw_rx_packets", "raw_rx_dropped"]
# A management datagram of the connection manager with an attribute that does not exist: taken, and ignored.
MAD = struct.pack(">BBBBIQHHI", 1, 0x07, 2, 0x03, 0, 1, 0x7FFF, 0, 0).ljust(256, b"\0")
number = failed = 0

wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
wire.bind((sender, 0))
own_mac = wire.getsockname()[4]


def counters():
    folder = f"/sys/class/infiniband/{device}/ports/1/hw_counters"
    script = f"echo 0 > {folder}/lifespan; cd {folder}; cat {' '.join(COUNTERS)}"
    prefix = ["ip", "netns", "exec", netns] if netns != "-" else ["nsenter", "-t", "1", "-n", "-m"]
    output = subprocess.run([*prefix, "sh", "-c", script], capture_output=True, text=True, check=True).stdout
    return dict(zip(COUNTERS, map(int, output.split())))


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def icrc(ip, rest):
    """Eight bytes of ones, then the packet with what changes on the way set to ones."""
    masked = bytearray(ip + rest)
    masked[1] = masked[8] = 0xFF
    masked[10:12] = b"\xff\xff"
    masked[26:28] = b"\xff\xff"
    masked[32] = 0xFF
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(masked)))


def frame(opcode=UD_SEND_ONLY, version=0, pkey=0xFFFF, qpn=1, qkey=GSI_QKEY, payload=MAD, bad_icrc=False,
          udp_length=None, ip_length=None, cut=None, ip_version=0x45, headers=None, fragment=0x4000, pad=0):
    """A RoCE v2 frame over IPv4, right in all that is not asked to be wrong."""
    bth = struct.pack(">BBHII", opcode, pad << 4 | version, pkey, qpn, 1)
    if headers is None:
        headers = struct.pack(">II", qkey, 1) if opcode == UD_SEND_ONLY else b""
    body = bth + headers + payload
    udp = struct.pack(">HHHH", 49152, ROCE_PORT, udp_length if udp_length is not None else 8 + len(body) + 4, 0)
    ip = struct.pack(">BBHHHBBH4s4s", ip_version, 0, ip_length if ip_length is not None else 20 + 8 + len(body) + 4, 0,
                     fragment, 64, 17, 0, socket.inet_aton(source_ip), socket.inet_aton(target_ip))
    ip = ip[:10] + struct.pack(">H", checksum(ip)) + ip[12:]
    crc = icrc(ip, udp + body)
    if bad_icrc:
        crc = bytes([crc[0] ^ 1]) + crc[1:]
    whole = bytes.fromhex(target_mac.replace(":", "")) + own_mac + b"\x08\x00" + ip + udp + body + crc
    return whole[:cut] if cut else whole


def arrived(before, names, count):
    """Wait until the counters have risen by count in all; the counters then."""
    limit = time.monotonic() + 5
    while True:
        now = counters()
        if sum(now[name] - before[name] for name in names) >= count or time.monotonic() > limit:
            return now


def case(name, frames, *allowed):
    """All frames must be counted under the allowed names, and none under another but rx_packets of sound traffic."""
    global number, failed
    before = counters()
    for one in frames:
        wire.send(one)
    now = arrived(before, allowed, len(frames))
    rose = {key: now[key] - before[key] for key in COUNTERS if now[key] != before[key]}
    counted = sum(rose.get(key, 0) for key in allowed)
    others = {key: value for key, value in rose.items()
              if key not in allowed and key not in ("rx_packets", "raw_rx_packets")}
    wrong = counted != len(frames) or others
    if wrong:
        print(f"# {len(frames)} frames, counters that rose: {rose}; expected {' + '.join(allowed)}")
    number += 1
    failed += bool(wrong)
    print(f"{'not ok' if wrong else 'ok'} {number} - {name}", flush=True)


case("a sound datagram to QP 1 is taken", [frame()], "rx_packets")
case("wrong ICRC", [frame(bad_icrc=True)] * 3, "rx_bad_icrc")
case("wrong ICRC over each odd length", [frame(payload=bytes(size), bad_icrc=True) for size in range(0, 64, 4)],
     "rx_bad_icrc")
case("wrong BTH version", [frame(version=version) for version in range(1, 16)], "rx_bad_header")
case("unknown QP", [frame(qpn=qpn) for qpn in (0, 3, 0x1234, 0xABCDEF, 0xFFFFFE)], "rx_unknown_qp")
case("RC packets to QP 1", [frame(opcode=opcode, headers=bytes(28)) for opcode in (RC_SEND_ONLY, RC_WRITE_ONLY, RC_ACK)],
     "rx_unknown_qp", "rx_bad_header")
case("opcodes of no service", [frame(opcode=opcode) for opcode in (0x1F, 0x3F, 0x7F, 0x9F, 0xFF)],
     "rx_unknown_qp", "rx_bad_header")
case("wrong P_Key", [frame(pkey=pkey) for pkey in (0x0001, 0x7FFE, 0x8001)], "rx_bad_pkey")
case("wrong Q_Key", [frame(qkey=qkey) for qkey in (0, 1, 0x80010001, 0x11111111)], "rx_bad_qkey")
case("cut inside BTH", [frame(cut=cut) for cut in (46, 50, 53)], "rx_too_short", "rx_bad_header")
case("cut inside DETH and payload", [frame(cut=cut) for cut in (54, 58, 61, 62, 65, 100)], "rx_too_short",
     "rx_bad_header")
case("UDP length short, long, absurd", [frame(udp_length=length) for length in (0, 7, 8, 12, 20, 1000, 65535)],
     "rx_too_short", "rx_bad_header")
case("IP length short, long, absurd", [frame(ip_length=length) for length in (0, 19, 20, 28, 40, 1000, 65535)],
     "rx_too_short", "rx_bad_header", "raw_rx_packets", "raw_rx_dropped")
case("pad longer than the payload", [frame(pad=3, payload=b"")], "rx_too_short", "rx_bad_header")

seed = random.Random(7)
noise = []
for _ in range(2000):
    packet = bytearray(frame(opcode=seed.randrange(256), qpn=seed.choice([0, 1, 2, 8, 9, seed.getrandbits(24)]),
                             payload=seed.randbytes(seed.randrange(0, 512)),
                             headers=seed.randbytes(seed.choice([0, 4, 8, 16, 28]))))
    for _ in range(seed.choice([0, 0, 1, 4])):
        packet[seed.randrange(14, len(packet))] = seed.randrange(256)
    noise.append(bytes(packet[:seed.choice([len(packet), seed.randrange(42, len(packet) + 1)])]))
before = counters()
for one in noise:
    wire.send(one)
after = arrived(before, COUNTERS, len(noise))
total = sum(after[name] - before[name] for name in COUNTERS)
number += 1
failed += total < len(noise)
if total < len(noise):
    print(f"# of {len(noise)} random frames {total} were counted")
print(f"{'not ok' if total < len(noise) else 'ok'} {number} - random frames are all accounted for")
case("a sound datagram after them is taken", [frame()], "rx_packets")
print(f"1..{number}")
sys.exit(1 if failed else 0)
