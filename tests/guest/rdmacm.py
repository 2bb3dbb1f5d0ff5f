# SPDX-License-Identifier: GPL-2.0-or-later
"""librdmacm's own programs: connections, datagrams and the data they carry."""

import re

from framework import expect, test


def rping(rig, options, count, server_options=""):
    """rping -V compares every byte of every answer."""
    port = rig.next_port()
    address = rig.server.address
    server, client = rig.pair(f"rping -s -a {address} -p {port} -C {count} -V {options} {server_options}",
                              f"rping -c -a {address} -p {port} -C {count} -V {options}", port)
    for end in (server, client):
        expect(not re.search("error|mismatch|fail", end.output, re.IGNORECASE), f"rping said: {end.output[-500:]}")
    return client


# 23 bytes are the least that rping takes.
for size in (23, 64, 4095, 4097, 65535):
    test(f"rdmacm: rping -V, {size} bytes", lambda rig, size=size: rping(rig, f"-S {size}", 200))


@test("rdmacm: rping -V, 2000 pings")
def rping_many(rig):
    rping(rig, "-S 1000", 2000)


@test("rdmacm: rping -V prints what it got")
def rping_shows(rig):
    client = rping(rig, "-v -S 100", 10)
    lines = client.stdout.count("ping data: rdma-ping-")
    expect(lines == 10, f"{lines} of 10 pings were shown: {client.output[-500:]}")


@test("rdmacm: rping, own QP")
def rping_own_qp(rig):
    rping(rig, "-q -S 1000", 100)


@test("rdmacm: rping, one server, ten connections after one another")
def rping_persistent(rig):
    port = rig.next_port()
    address = rig.server.address
    server = rig.start(f"rping -s -P -a {address} -p {port} -V", rig.server)
    rig.wait_listening(port, rig.server, server)
    for _ in range(10):
        rig.run(f"rping -c -a {address} -p {port} -C 20 -V -S 3000")
    expect(server.running(), f"the server ended: {server.output[-500:]}")
    server.kill()
    server.wait(10)


@test("rdmacm: connect to a port on which nobody listens")
def refused(rig):
    result = rig.try_run(f"rping -c -a {rig.server.address} -p {rig.next_port()} -C 1")
    expect(result.status not in (0, 124), f"status {result.status}: {result.output}")
    expect("REJECTED" in result.output or "rejected" in result.output.lower(), f"no rejection: {result.output}")


@test("rdmacm: ucmatose")
def ucmatose(rig):
    port = rig.next_port()
    options = f"-p {port} -c 20 -C 50 -S 4000"
    for end in rig.pair(f"ucmatose {options}", f"ucmatose -s {rig.server.address} {options}", port):
        expect("data transfers complete" in end.stdout and "return status 0" in end.stdout,
               f"ucmatose said: {end.output[-500:]}")


@test("rdmacm: udaddy")
def udaddy(rig):
    options = "-c 10 -C 50 -S 2000"
    address = rig.server.address
    server = rig.start(f"udaddy -b {address} {options}", rig.server)
    rig.wait_until(lambda: not server.running() or "LISTEN" in rig.run("rdma resource show cm_id", rig.server),
                   "udaddy listening")
    client = rig.run(f"udaddy -s {address} {options}")
    said = server.wait(rig.left(20))
    expect(said.status == 0 and "return status 0" in said.stdout, f"the server said: {said.output[-500:]}")
    expect("data transfers complete" in client and "return status 0" in client, f"the client said: {client[-500:]}")


@test("rdmacm: cmtime, 50 connections")
def cmtime(rig):
    port = rig.next_port()
    server = rig.start(f"cmtime -p {port} -c 50", rig.server)
    rig.wait_listening(port, rig.server, server, "tcp")
    said = rig.run(f"cmtime -s {rig.server.address} -p {port} -c 50")
    row = re.search(r"^cm connect\s.*$", said, re.MULTILINE)
    expect(row, f"cmtime said: {said[-800:]}")
    rig.note(row.group(0))
    result = server.wait(rig.left(20))
    expect(result.status == 0, f"the server ended with status {result.status}: {result.output[-500:]}")
