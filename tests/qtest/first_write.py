#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""One RDMA WRITE from an HCA to another, byte by byte, as docs/tutorial/first-write.rst shows it.

tests/qtest/first_write.py              print every byte
tests/qtest/first_write.py FILE         and keep the frames of both ways there, as pcapng

QEMU has no guest here: its qtest protocol writes what a driver and a program write, so that each byte of it is known.
"""

import os
import struct
import sys
import tempfile
import zlib
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
os.environ.setdefault("HGHCA_TOOL", str(HERE.parents[1] / "tools/hghca"))
sys.path[:0] = [str(HERE), str(HERE.parent / "wire"), str(Path(os.environ["HGHCA_TOOL"]).parent)]
import machine  # noqa: E402
import pcapng  # noqa: E402
from hca import CQ_ARM_CAP, DBR, ENTRY, HARDWARE_OWNS, MEM_MGT, PAGE, PD, SQ_BELL, SW2HW_CQ, UAR_PAGE, Hca  # noqa: E402

# Numbers of docs/reference/hardware-interface.rst.
GID_TABLE, CQ_UPDATE, QP_LIMITS = 1 << 0, 1 << 3, 1 << 5
CAPABILITIES = GID_TABLE | DBR | CQ_ARM_CAP | CQ_UPDATE | QP_LIMITS | MEM_MGT
RST2INIT, INIT2RTR, RTR2RTS, SET_GID = 0x019, 0x01a, 0x01b, 0xe00
ACCESS_FLAGS, PKEY_INDEX, PORT, AV, PATH_MTU = 1 << 3, 1 << 4, 1 << 5, 1 << 7, 1 << 8
TIMEOUT, RETRY_CNT, RNR_RETRY, RQ_PSN, MIN_RNR_TIMER = 1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 15
SQ_PSN, DEST_QPN = 1 << 16, 1 << 20
RDMA_WRITE, MAKE_CQE = 0x08, 1 << 3
MTU_1024 = 3
HOP_LIMIT, TIMEOUT_CODE, RETRIES = 64, 14, 7
REMOTE_WRITE = 1 << 1
DEPTH, STRIDE_LOG = 4, 6
CQ_REGION, SQ_REGION, DATA_REGION = 3, 4, 5
CQN = 1

DATA = b"Hello, world!"
SOURCE, TARGET = 0x7f0000001000, 0x7f0000002000    # virtual addresses of the regions
OFFSET = 0x10                                      # in both


class End(Hca):
    """An HCA with one region of data and one connected QP."""

    def __init__(self, m, number, qpn, psn, start):
        super().__init__(m, 3 + number, 0xe0000000 + number * 0x4000000, 0x1000000 * number)
        self.mac = bytes((0x52, 0x54, 0, 0, 0, number))
        self.gid = bytes(10) + b"\xff\xff" + bytes((10, 10, 0, number))
        self.qpn, self.psn, self.start_of_data = qpn, psn, start

    def prepare_objects(self):
        self.enable()
        self.start(CAPABILITIES)
        self.command(SET_GID, 0, mailbox=self.gid + self.mac + bytes(10))
        self.m.write(self.ring(CQ_REGION), (bytes(ENTRY - 1) + bytes([HARDWARE_OWNS])) * (PAGE // ENTRY))
        for index in (CQ_REGION, SQ_REGION):
            self.create_region(index)
        self.create_region(DATA_REGION, self.start_of_data)
        self.command(SW2HW_CQ, CQN, mailbox=struct.pack(">IQIIIIIIIIIQQ", 0, 0, 5 << 24 | UAR_PAGE, 2, PD, self.key(CQ_REGION),
                                                        0, 0, 0, 0, CQN, 0, 0))

    def connect(self, peer):
        context = bytearray(192)

        def modify(command, mask):
            struct.pack_into(">I", context, 0x00, mask)
            self.command(command, self.qpn, mailbox=bytes(context))

        context[0x0c] = MTU_1024 << 5 | 31
        context[0x0d] = context[0x0e] = STRIDE_LOG
        struct.pack_into(">III", context, 0x10, UAR_PAGE, self.qpn, peer.qpn)
        struct.pack_into(">I", context, 0x1c, 1 << 24)                     # port 1
        context[0x20] = RETRIES
        context[0x21] = 0x80                                               # addressed by GID
        context[0x24], context[0x27] = TIMEOUT_CODE, HOP_LIMIT
        context[0x2c:0x3c] = peer.gid
        context[0x3c:0x3e] = peer.mac[4:]
        context[0x44:0x48] = peer.mac[:4]
        struct.pack_into(">I", context, 0x5c, PD)
        struct.pack_into(">IIII", context, 0x6c, self.psn, CQN, self.key(SQ_REGION), DEPTH << STRIDE_LOG)
        struct.pack_into(">I", context, 0x84, peer.psn)
        struct.pack_into(">I", context, 0x8c, CQN)
        struct.pack_into(">I", context, 0xa8, 1 << 24 | 1 << 16 | RETRIES << 8 | REMOTE_WRITE)
        modify(RST2INIT, PKEY_INDEX | PORT | ACCESS_FLAGS)
        modify(INIT2RTR, AV | PATH_MTU | DEST_QPN | RQ_PSN | MIN_RNR_TIMER)
        modify(RTR2RTS, TIMEOUT | RETRY_CNT | RNR_RETRY | SQ_PSN)


def post_write(end, peer):
    """Post the WRITE as document 5.1 says; (the WQE's bytes, those of the doorbell)."""
    queue = end.ring(SQ_REGION)
    wqe = struct.pack("<IIII", 0, 0, MAKE_CQE, 0)
    wqe += struct.pack("<QII", peer.start_of_data + OFFSET, peer.key(DATA_REGION), 0)
    wqe += struct.pack("<IIQ", len(DATA), end.key(DATA_REGION), end.start_of_data + OFFSET)
    end.m.write(queue, wqe)
    units = len(wqe) // 16
    before = queue + ((DEPTH - 1) << STRIDE_LOG)
    end.m.write32(before, RDMA_WRITE)                  # offset 0 and the opcode of the WQE behind it
    end.m.write32(before + 4, units)
    bell = struct.pack("<II", 1 << 24 | RDMA_WRITE, end.qpn << 8 | units)
    at = end.bells + UAR_PAGE * PAGE + SQ_BELL
    for i in (0, 4):
        end.m.write32(at + i, int.from_bytes(bell[i:i + 4], "little"))
    return wqe, bell


def run(capture):
    """(WQE, doorbell, the frames in their order, CQE, what is in the peer's region); the frames are kept in a file."""
    words = [word for number, pcap in ((1, f",pcap={capture}"), (2, "")) for word in (
        "-netdev", f"hubport,hubid=0,id=n{number}",
        "-device", f"hghca,netdev=n{number},addr={3 + number}.0,mac=52:54:00:00:00:0{number}{pcap}")]
    with machine.started(*words) as m:
        a, b = End(m, 1, 8, 0x123456, SOURCE), End(m, 2, 9, 0x654321, TARGET)
        for end in (a, b):
            end.prepare_objects()
        for end, peer in ((a, b), (b, a)):
            end.connect(peer)
        m.write(a.ring(DATA_REGION) + OFFSET, DATA)
        wqe, bell = post_write(a, b)
        entries = a.entries(CQ_REGION)
        written = m.read(b.ring(DATA_REGION) + OFFSET, len(DATA))
    if len(entries) != 1:
        raise AssertionError(f"{len(entries)} CQEs")
    return wqe, bell, [record.data for record in pcapng.records(capture)], entries[0], written


# Parts as (name, fields), a field as (bytes, what it is), in their order.
WQE = (("next", ((4, "offset and opcode of the next WQE: none yet"), (4, "its fence and size: none yet"),
                 (4, "flags: bit 3, make a CQE"), (4, "immediate data: none"))),
       ("raddr", ((8, "address at the peer"), (4, "R_Key"), (4, "reserved"))),
       ("data", ((4, "length: 13 bytes"), (4, "L_Key"), (8, "address at A"))))
DOORBELL = (("low", ((4, "1 WQE, sq_head 0, opcode 08h RDMA_WRITE"),)), ("high", ((4, "QPN 8, size 3 units"),)))
ETHERNET = ("Ethernet", ((6, "destination MAC"), (6, "source MAC"), (2, "type: IPv4")))
IPV4 = ("IPv4", ((1, "version 4, header of 5 words"), (1, "DSCP 0, ECN 0"), (2, "total length"), (2, "identification"),
                 (2, "flags: do not fragment"), (1, "time to live: 64"), (1, "protocol 17: UDP"), (2, "header checksum"),
                 (4, "source 10.10.0.{source}"), (4, "destination 10.10.0.{destination}")))
UDP = ("UDP", ((2, "source port"), (2, "destination port 4791: RoCE v2"), (2, "length"), (2, "checksum: none")))
BTH = ("BTH", ((1, "opcode {opcode}"), (1, "SE 0, MigReq 1, pad count {pad}, version 0"), (2, "P_Key"),
               (1, "FECN 0, BECN 0, reserved"), (3, "destination QP"), (1, "AckReq {ack_request}"), (3, "PSN")))
RETH = ("RETH", ((8, "virtual address"), (4, "R_Key"), (4, "DMA length")))
PAYLOAD = ("payload", ((len(DATA), DATA.decode()), (-len(DATA) % 4, "pad")))
AETH = ("AETH", ((1, "syndrome: ACK, no credit count"), (3, "MSN")))
ICRC = ("ICRC", ((4, "CRC-32, low byte first"),))
CQE = (("CQE", ((4, "QPN"), (4, "my_ee: no SRQ"), (4, "rqpn: of receives"), (4, "rlid_path_sl: of datagrams"),
                (4, "immediate data: none"), (4, "bytes"), (4, "offset of the WQE in its queue"),
                (1, "opcode 08h RDMA_WRITE"), (1, "is_send"), (1, "reserved"), (1, "owner: software"))),)


def shown(title, data, parts, **words):
    """A line for each field, or for each eight bytes of it: its offset, its bytes, its part, and what it is."""
    lines, at = [f"{title}, {len(data)} bytes"], 0
    for part, fields in parts:
        for size, text in fields:
            for first in range(at, at + size, 8):
                some = data[first:min(first + 8, at + size)].hex(" ")
                lines.append(f"  {first:2}  {some:23}  {part:8}  {text.format(**words) if first == at else ''}".rstrip())
                part = ""
            at += size
    if at != len(data):
        raise AssertionError(f"{title}: {len(data)} bytes, {at} are explained")
    return [*lines, ""]


def icrc_of(frame):
    """The ICRC of an untagged IPv4 frame without options: annex A17.3.3, with zlib's CRC-32."""
    masked = bytearray(8 * b"\xff" + frame[14:-4])
    for at in (1, 8, 10, 11, 26, 27, 32):    # from the IPv4 header on: DSCP and ECN, TTL, checksums, BTH byte 4
        masked[8 + at] = 0xff
    return zlib.crc32(masked).to_bytes(4, "little")


def report(capture):
    """All lines."""
    wqe, bell, frames, cqe, written = run(capture)
    if written != DATA:
        raise AssertionError(f"at the peer: {written}")
    for frame in frames:
        if icrc_of(frame) != frame[-4:]:
            raise AssertionError(f"ICRC {frame[-4:].hex()}, not {icrc_of(frame).hex()}")
    request, ack = frames
    head = (ETHERNET, IPV4, UDP, BTH)
    return [*shown("WQE at A", wqe, WQE), *shown("SQ doorbell at A", bell, DOORBELL),
            *shown("frame from A to B", request, (*head, RETH, PAYLOAD, ICRC), source=1, destination=2,
                   opcode="0Ah RC RDMA WRITE Only", pad=3, ack_request=1),
            *shown("frame from B to A", ack, (*head, AETH, ICRC), source=2, destination=1,
                   opcode="11h RC Acknowledge", pad=0, ack_request=0),
            *shown("CQE at A", cqe, CQE)][:-1]


def main(arguments):
    from hghca_lib import buildroot, qemu
    machine.EMULATOR = qemu.make(buildroot.make()).argv()
    with tempfile.TemporaryDirectory() as folder:
        print("\n".join(report(arguments[0] if arguments else f"{folder}/first-write.pcapng")))


if __name__ == "__main__":
    main(sys.argv[1:])
