# SPDX-License-Identifier: GPL-2.0-or-later
"""Frames as the device captures them, before tshark and scapy: a packet of every kind that there is."""

import random
import re
import tempfile
from pathlib import Path

from hghca_lib.guest import GuestError

from data import run_program
from framework import Failure, expect, test
from mcast import mckey
from netdev import gid_of
from pingpong import pingpong
from rdmacm import ipv6_addresses, rping, udaddy
from recorder import SMALL_BYTES, Recorder, capture, captures_in
import frames
import pcapng

OURS = {"subjects": ("hghca",), "kernels": ("stock",), "captures": True}
# BTH opcodes, table 38 and annexes A14 and A19: by the service that adds to them.
SEND_WRITE = range(0x00, 0x0c)
ONLY_RELIABLE = [*range(0x0c, 0x15), 0x16, 0x17, 0x1c, 0x1d]
RC, UC, UD, XRC = 0x00, 0x20, 0x60, 0xa0
OPCODES = {*(RC | code for code in [*SEND_WRITE, *ONLY_RELIABLE]), *(UC | code for code in SEND_WRITE), UD | 4, UD | 5,
           *(XRC | code for code in [*SEND_WRITE, *ONLY_RELIABLE])}
# Connection manager's attributes, table 98: REQ, REJ, REP, RTU, DREQ, DREP, SIDR_REQ, SIDR_REP.
CM = {0x10, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18}
# Kinds of AETH syndromes, tables 43 and 44.
SYNDROMES = {"ACK": lambda code: code >> 5 == 0, "RNR NAK": lambda code: code >> 5 == 1,
             "NAK, invalid request": lambda code: code == 0x61, "NAK, remote access error": lambda code: code == 0x62,
             "NAK, remote operational error": lambda code: code == 0x63}
# Of what the kernel sends through the net device, too.
PROTOCOLS = {"arp", "icmp", "icmpv6", "igmp", "tcp", "vlan", "ip", "ipv6", "infiniband"}


def opcodes(testbed, gid, cases=""):
    client, server = testbed.client, testbed.server
    run_program(testbed, "opcodes", f"plain {client.device} {client.gid(gid)} {server.device} {server.gid(gid)} "
                                f"{server.netns} {cases}")


def connections(testbed):
    """Connections made, refused and ended, datagrams' look-up of services, by IPv4 and IPv6."""
    rping(testbed, "-S 3000", 3)
    with ipv6_addresses(testbed) as address:
        rping(testbed, "-S 100", 3, address=address)
    refused = testbed.try_run(f"rping -c -a {testbed.server.address} -p {testbed.next_port()} -C 1")
    expect(refused.status != 0, "a connection to nobody was made")
    udaddy(testbed, testbed.server.address, "-c 2 -C 5 -S 2000")


def in_a_vlan(testbed):
    addresses = ("10.10.5.1", "10.10.5.2")
    for side, address in zip(testbed.sides, addresses):
        testbed.run(f"ip link add link {side.netdev} name v5 type vlan id 5 && ip address add {address}/24 dev v5 && "
                    "ip link set v5 up", side)
    try:
        for side, address in zip(testbed.sides, addresses):
            gid_of(testbed, side, address)
        port = testbed.next_port()
        testbed.pair(f"rping -s -a {addresses[1]} -p {port} -C 3 -V", f"rping -c -a {addresses[1]} -p {port} -C 3 -V",
                     port)
    finally:
        for side in testbed.sides:
            testbed.run("ip link del v5", side)


def of_the_kernel(testbed):
    """ARP, ICMP and TCP."""
    testbed.run(f"ip neighbour flush dev {testbed.client.netdev}; ping -n -c 2 -i 0.05 -W 5 {testbed.server.address}")
    port = testbed.next_port()
    server = testbed.start(f"nc -l -N {testbed.server.address} {port} > /dev/null", testbed.server)
    testbed.wait_listening(port, testbed.server, server, "tcp")
    testbed.run(f"head -c 100000 /dev/urandom | nc -N {testbed.server.address} {port}")


def packets(testbed):
    """Something of every kind, and no more of it than needs be."""
    opcodes(testbed, "ipv4")
    opcodes(testbed, "link-local")
    for options, size in (("-m 4096", 30001), ("-m 256", 3001)):
        pingpong(testbed, "ibv_rc_pingpong", "ipv4", options, size, 5)
    pingpong(testbed, "ibv_ud_pingpong", "link-local", "", 4095, 5)
    connections(testbed)
    mckey(testbed, "-S 1001", count=5)
    in_a_vlan(testbed)
    of_the_kernel(testbed)


def same_frames(sender, receiver):
    """What one port has sent the other has received, in the same order."""
    sent = [record.data for record in pcapng.records(sender) if record.way == pcapng.OUT]
    received = [record.data for record in pcapng.records(receiver) if record.way == pcapng.IN]
    expect(sent == received, f"{len(sent)} frames sent, {len(received)} received, and not the same")


def lacking(found, wanted):
    return ", ".join(f"{one:#04x}" if isinstance(one, int) else one for one in sorted(wanted - set(found)))


@test("capture: a packet of every kind, decoded by tshark, ICRCs by scapy and zlib", limit_s=150, **OURS)
def every_kind(testbed):
    recorder = Recorder(testbed.guest, (1, 2))
    with recorder as files:
        packets(testbed)
        recorder.stop()
        size = sum(file.stat().st_size for file in files.values())
        same_frames(files[1], files[2])
        same_frames(files[2], files[1])
        # So one file has all that both have sent.
        found = frames.decode(files[1])
        names = frames.Checkers(files[1].parent).opcode_names()
    testbed.note("\n".join([*frames.table(found.opcodes, names),
                            f"{found.frames} frames, {found.rdma} of RoCE v2; {size} bytes of captures",
                            *(f"{count} times: {reason}" for reason, count in found.explained.items())]))
    expect(not found.wrong, "\n".join(found.wrong[:20]))
    for what, seen, wanted in (("opcodes", {code for _, code in found.opcodes}, OPCODES), ("CM", found.cm, CM),
                               ("protocols", found.protocols, PROTOCOLS),
                               ("AETH", {name for name, is_it in SYNDROMES.items() if any(map(is_it, found.syndromes))},
                                set(SYNDROMES))):
        expect(not lacking(seen, wanted), f"{what} not seen: {lacking(seen, wanted)}")


def checked_bits(data):
    """The numbers of the bits of a frame for which somebody vouches, or () when it is not RoCE v2.

    Nobody vouches for the Ethernet header, for what may change on the way and has no checksum of its own, and for what
    makes the frame another protocol's.
    """
    network = 18 if data[12:14] == b"\x81\x00" else 14
    ipv6 = data[network] >> 4 == 6
    transport = network + (40 if ipv6 else 20)
    if data[network + (6 if ipv6 else 9)] != 17 or data[transport + 2:transport + 4] != b"\x12\xb7":
        return ()
    open_bytes = {*range(network), transport + 2, transport + 3, transport + 8 + 4}
    if ipv6:
        open_bytes |= {*range(network, network + 4), network + 6, network + 7}
    return [bit for bit in range(8 * len(data)) if bit // 8 not in open_bytes]


@test("capture: a bit flipped in any frame is found", **OURS)
def flipped(testbed):
    recorder = Recorder(testbed.guest, (1,))
    with recorder as files:
        opcodes(testbed, "ipv4", "-- reliable unreliable datagrams")
        opcodes(testbed, "link-local", "-- datagrams ready")
        recorder.stop()
        file = bytearray(files[1].read_bytes())
        choice = random.Random(4791)
        changed = {}
        for number, record in enumerate(pcapng.records(files[1]), 1):
            bits = checked_bits(record.data)
            if bits:
                bit = choice.choice(bits)
                file[record.at + bit // 8] ^= 1 << bit % 8
                changed[number] = bit
        expect(len(changed) > 100, f"only {len(changed)} frames of RoCE v2")
        before = frames.decode(files[1])
        expect(not before.wrong, "\n".join(before.wrong[:20]))
        files[1].write_bytes(file)
        found = frames.decode(files[1])
    told = {int(number) for line in found.wrong for number in re.findall(r"^frame (\d+)\b", line)}
    silent = [f"frame {number}, bit {bit}" for number, bit in changed.items() if number not in told]
    testbed.note(f"{len(changed)} frames with a bit flipped, {len(silent)} not found")
    expect(not silent, f"nothing was found in {silent[:20]}")
    expect(told <= set(changed), f"found in others: {sorted(told - set(changed))[:20]}")


@test("capture: files over QMP", **OURS)
def files_over_qmp(testbed):
    """Another file, none, one that cannot be, one that is somebody else's, and one that has got too long."""
    guest, folder = testbed.guest, Path(tempfile.mkdtemp(prefix="hghca-capture-"))

    def ping(size=100):
        testbed.run(f"ping -n -c 1 -W 5 -s {size} {testbed.server.address}")

    def refused(hca, file, words):
        try:
            capture(guest, hca, file)
        except GuestError as error:
            expect(re.search(words, str(error)), str(error))
        else:
            raise Failure(f"{file} was taken")

    def count(file, size):
        return sum(record.length == size + 14 + 20 + 8 for record in pcapng.records(file))

    one, two = folder / "one", folder / "two"
    try:
        expect(captures_in(guest, 1) == "", "frames are captured by themselves")
        capture(guest, 1, one)
        ping(101)
        refused(1, folder / "no/such", "No such file")
        refused(2, one, "another capture has it")
        expect(captures_in(guest, 1) == str(one) and captures_in(guest, 2) == "", "another file than it was told")
        ping(102)
        capture(guest, 1, two)
        ping(103)
        capture(guest, 1, "")
        ping(104)
        seen = [[count(file, size) for size in (101, 102, 103, 104)] for file in (one, two)]
        expect(seen == [[2, 2, 0, 0], [0, 0, 2, 0]], f"pings in the files: {seen}")
        capture(guest, 2, one)
        ping(105)
        expect([count(one, size) for size in (101, 105)] == [0, 2], "the file did not begin again")
        pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 4096", 1000003, 30)
        expect(captures_in(guest, 2) == "", "the capture goes on beyond its size")
        expect(SMALL_BYTES - 5000 < one.stat().st_size <= SMALL_BYTES, f"the file has {one.stat().st_size} bytes")
        expect(all(record.length == len(record.data) for record in pcapng.records(one)), "a frame is cut")
    finally:
        for hca in (1, 2):
            capture(guest, hca, "")
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
