# SPDX-License-Identifier: GPL-2.0-or-later
"""librdmacm's own programs: connections, datagrams, sockets and the data they carry."""

import contextlib
import ipaddress
import re

from hghca_lib import userland
from hghca_lib.tiers import ALL, GATE, QUICK

from framework import expect, gate_if, killed_at_end, test

PREFIX = "fd00:6867:6863:6100::"


@contextlib.contextmanager
def ipv6_addresses(testbed):
    """The server's IPv6 address, of those that both sides have for the time of the block."""
    sides = {side.device: (side, f"{PREFIX}{number}") for number, side in enumerate(testbed.sides, 1)}
    try:
        for side, address in sides.values():
            testbed.run(f"ip address add {address}/64 dev {side.netdev} nodad", side)
            gid = f"{int(ipaddress.ip_address(address)):032x}"
            testbed.wait_until(lambda side=side, gid=gid: gid in testbed.roce_gids(side).values(),
                               f"the GID of {address}")
        yield sides[testbed.server.device][1]
    finally:
        for side, address in sides.values():
            side.guest.run(f"ip address del {address}/64 dev {side.netdev}", netns=side.netns, timeout=20)


def rping(testbed, options, count, server_options="", address=None):
    """rping -V compares every byte of every answer."""
    port = testbed.next_port()
    address = address or testbed.server.address
    server, client = testbed.pair(f"rping -s -a {address} -p {port} -C {count} -V {options} {server_options}",
                                  f"rping -c -a {address} -p {port} -C {count} -V {options}", port)
    for end in (server, client):
        expect(not re.search("error|mismatch|fail", end.output, re.IGNORECASE), f"rping said: {end.output[-500:]}")
    return client


# Not those of rdma-core 65: its cmtime takes other options, and its rping may hang at its end. There, the thread of the CM may
# wait for an event that it has polled, and that the main thread destroys with its ID before it joins the thread.
STOCK = {"userlands": (userland.STOCK,)}

# 23 bytes are the least that rping takes.
for size in (23, 64, 4095, 4097, 65535):
    test(f"rdmacm: rping -V, {size} bytes", lambda testbed, size=size: rping(testbed, f"-S {size}", 200),
         tier=QUICK if size == 4097 else gate_if(size in (23, 65535)), debug_tier=gate_if(size == 4097),
         lines=size == 65535, subjects=("hghca", "rxe", "siw"), **STOCK)


@test("rdmacm: rping -V, 2000 pings", tier=ALL, subjects=("hghca", "rxe", "siw"), **STOCK)
def rping_many(testbed):
    rping(testbed, "-S 1000", 2000)


@test("rdmacm: rping -V prints what it got", **STOCK)
def rping_shows(testbed):
    client = rping(testbed, "-v -S 100", 10)
    lines = client.stdout.count("ping data: rdma-ping-")
    expect(lines == 10, f"{lines} of 10 pings were shown: {client.output[-500:]}")


@test("rdmacm: rping, own QP", **STOCK)
def rping_own_qp(testbed):
    rping(testbed, "-q -S 1000", 100)


@test("rdmacm: rping, one server, ten connections after one another", **STOCK)
def rping_persistent(testbed):
    port = testbed.next_port()
    address = testbed.server.address
    server = testbed.start(f"rping -s -P -a {address} -p {port} -V", testbed.server)
    testbed.wait_listening(port, testbed.server, server)
    for _ in range(10):
        testbed.run(f"rping -c -a {address} -p {port} -C 20 -V -S 3000")
    expect(server.running(), f"the server ended: {server.output[-500:]}")
    server.kill()
    server.wait(10)


@test("rdmacm: connect to a port on which nobody listens", debug_tier=GATE)
def refused(testbed):
    result = testbed.try_run(f"rping -c -a {testbed.server.address} -p {testbed.next_port()} -C 1")
    expect(result.status not in (0, 124), f"status {result.status}: {result.output}")
    expect("REJECTED" in result.output or "rejected" in result.output.lower(), f"no rejection: {result.output}")


@test("rdmacm: rping -V, IPv6", **STOCK)
def rping_ipv6(testbed):
    with ipv6_addresses(testbed) as address:
        rping(testbed, "-S 4097", 100, address=address)


def ucmatose(testbed, address):
    port = testbed.next_port()
    options = f"-p {port} -c 20 -C 50 -S 4000"
    for end in testbed.pair(f"ucmatose -b {address} {options}", f"ucmatose -s {address} {options}", port):
        expect("data transfers complete" in end.stdout and "return status 0" in end.stdout,
               f"ucmatose said: {end.output[-500:]}")


def udaddy(testbed, address, options="-c 10 -C 50 -S 2000"):
    server = testbed.start(f"udaddy -b {address} {options}", testbed.server)
    testbed.wait_until(lambda: not server.running() or
                       "LISTEN" in testbed.run("rdma resource show cm_id", testbed.server), "udaddy listening")
    client = testbed.run(f"udaddy -s {address} {options}")
    said = server.wait(testbed.left(20))
    expect(said.status == 0 and "return status 0" in said.stdout, f"the server said: {said.output[-500:]}")
    expect("data transfers complete" in client and "return status 0" in client, f"the client said: {client[-500:]}")


def cmtime(testbed, client):
    """Its two ends meet by a socket of IPv4, and so there is no more of it.

    It connects with QPs, and then without, by numbers that both ends count up from 1000. With one device for both the
    CM takes the second of a pair for a stale connection of the first, so one end counts from elsewhere (-q).
    """
    address, port = testbed.server.address, testbed.next_port()
    server = testbed.start(f"cmtime -b {address} -p {port} -c 50", testbed.server)
    testbed.wait_listening(port, testbed.server, server, "tcp")
    said = testbed.run(f"cmtime -s {address} -p {port} -c 50 -q 8000000", client)
    tables = re.findall(r"^(qp|cm)_conn +50$", said, re.MULTILINE)
    expect(tables == ["qp", "cm"], f"not both of its results: {said[-800:]}")
    row = re.search(r"^cm connect\s.*$", said, re.MULTILINE)
    expect(row, f"cmtime said: {said[-800:]}")
    testbed.note(row.group(0))
    result = server.wait(testbed.left(20))
    expect(result.status == 0, f"the server ended with status {result.status}: {result.output[-500:]}")


test("rdmacm: cmtime, 50 connections", lambda testbed: cmtime(testbed, testbed.client), **STOCK)
test("rdmacm: cmtime, 50 connections, an HCA to itself", lambda testbed: cmtime(testbed, testbed.server), tier=ALL, **STOCK)


def over_ipv6(testbed, run):
    with ipv6_addresses(testbed) as address:
        run(testbed, address)


for name, program in (("ucmatose", ucmatose), ("udaddy", udaddy)):
    test(f"rdmacm: {name}", lambda testbed, program=program: program(testbed, testbed.server.address),
         debug_tier=gate_if(name == "udaddy"))
    test(f"rdmacm: {name}, IPv6", lambda testbed, program=program: over_ipv6(testbed, program))


# Sockets over RDMA. With `-T v` both ends know each byte that must come.

# name, program, options, bytes, messages in a row, times there and back
STREAMS = [
    ("rstream, 1 byte", "rstream", "", 1, 2000, 1),
    ("rstream, 1000003 bytes", "rstream", "", 1000003, 20, 1),
    ("rstream, 4097 bytes, blocking", "rstream", "-T b", 4097, 200, 2),
    ("rstream, 65536 bytes through 16 KiB, nothing inline", "rstream", "-B 16384 -i 0", 65536, 100, 1),
    ("riostream, 64 bytes", "riostream", "", 64, 1000, 1),
    ("riostream, 1000003 bytes", "riostream", "", 1000003, 20, 1),
    ("riostream, 4097 bytes, blocking", "riostream", "-T b", 4097, 200, 2),
]


def stream(testbed, program, options, size, count, times, address=None):
    """Bytes both ways through a socket, each compared."""
    port = testbed.next_port()
    address = address or testbed.server.address
    options += f" -T v -p {port} -S {size} -C {count} -I {times}"
    for end in testbed.pair(f"{program} -b {address} {options}", f"{program} -s {address} {options}", port):
        expect(re.search(r"^custom .* [\d.]+s +[\d.]+ +[\d.]+$", end.stdout, re.MULTILINE),
               f"{program} has no result: {end.output[-500:]}")
        expect("verification failed" not in end.output, f"{program} said: {end.output[-500:]}")


for case_name, *case in STREAMS:
    test(f"rdmacm: {case_name}", lambda testbed, case=case: stream(testbed, *case),
         tier=gate_if(case[0] == "rstream" or "blocking" in case_name))


@test("rdmacm: rstream, all its sizes", tier=ALL)
def stream_all(testbed):
    """64 bytes to 1 MiB, for latency over one connection and for bandwidth over another; each result is printed."""
    port, address = testbed.next_port(), testbed.server.address
    options = f"-T v -p {port}"
    wanted = [f"{size}_{kind}" for kind in ("lat", "bw") for size in ("64", "4k", "64k", "1m")]
    for end in testbed.pair(f"rstream -b {address} {options}", f"rstream -s {address} {options}", port):
        found = re.findall(r"^(\w+_(?:lat|bw)) ", end.stdout, re.MULTILINE)
        expect(found == wanted and "verification failed" not in end.output, f"rstream said: {end.output[-1000:]}")


def stream_ipv6(testbed, program):
    with ipv6_addresses(testbed) as address:
        stream(testbed, program, "", 100000, 20, 1, address)


for stream_program in ("rstream", "riostream"):
    test(f"rdmacm: {stream_program}, IPv6", lambda testbed, program=stream_program: stream_ipv6(testbed, program))


@test("rdmacm: rcopy, files compared by SHA-256")
def rcopy(testbed):
    port = testbed.next_port()
    server = testbed.start(f"rcopy -p {port}", testbed.server)
    with killed_at_end(server):
        for size in (1, 4096, 5000001):
            testbed.wait_listening(port, testbed.server, server)
            testbed.run(f"head -c {size} /dev/urandom > /tmp/rcopy.from; rm -f /tmp/rcopy.to")
            said = testbed.run(f"rcopy /tmp/rcopy.from {testbed.server.address}:/tmp/rcopy.to -p {port}")
            expect(f"{size} bytes in" in said, f"rcopy said: {said[-500:]}")
            sums = [testbed.run(f"sha256sum < {path}", side)
                    for path, side in (("/tmp/rcopy.from", testbed.client), ("/tmp/rcopy.to", testbed.server))]
            expect(sums[0] == sums[1], f"the copy of {size} bytes has another checksum")
    for side, path in ((testbed.client, "from"), (testbed.server, "to")):
        testbed.run(f"rm -f /tmp/rcopy.{path}", side)


# librdmacm's endpoints: one message each way or one way, over RC and, with the SRQ's number told by the CM, over XRC.
ENDPOINTS = [
    ("rdma_server, rdma_client", "rdma_server -s {address} -p {port}", "rdma_client -s {address} -p {port}"),
    ("rdma_xserver, rdma_xclient, RC", "rdma_xserver -p {port} -c r", "rdma_xclient -s {address} -p {port} -c r"),
    ("rdma_xserver, rdma_xclient, XRC", "rdma_xserver -p {port} -c x", "rdma_xclient -s {address} -p {port} -c x"),
]


def endpoint(testbed, server, client):
    port = testbed.next_port()
    values = {"address": testbed.server.address, "port": port}
    for end in testbed.pair(server.format(**values), client.format(**values), port):
        expect(re.search(r"^rdma_\w+: end 0$", end.stdout, re.MULTILINE), f"no good end: {end.output[-500:]}")


for case_name, *case in ENDPOINTS:
    test(f"rdmacm: {case_name}", lambda testbed, case=case: endpoint(testbed, *case),
         subjects=("hghca",) if "XRC" in case_name else ("hghca", "rxe"))
