# SPDX-License-Identifier: GPL-2.0-or-later
"""An ERNIC, or an ETRNIC, and a JingZhao HCA on one link.

A virtio network adapter with the same MAC address is the Ethernet half of the port of an ERNIC. A message of a SEND fits
into a slot of its receive queue, which has 4096 bytes.
"""

import framework

from framework import ALL, ERNIC, ETRNIC, GATE, expect
from interop import turned
from perftest import perftest
from pingpong import pingpong
from rdmacm import rping

OURS = {"machine": ERNIC, "subjects": ("hghca",), "kernels": ("stock", "debug")}
SLOT_BYTES = 4096


def test(name, **options):
    return framework.test(f"ernic: {name}", **{**OURS, **options})


def pingpongs(testbed):
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 1024", SLOT_BYTES, 200)
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-e -m 4096", 1000, 200)
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 256", 1, 200)


@test("pingpong with data, polling and by events", debug_tier=GATE)
def serves(testbed):
    pingpongs(testbed)


def refused(testbed, side):
    """(UDP datagrams to ports where nobody listens, ICMP messages about these) in the namespace of a side."""
    lines = [line.split() for line in testbed.run("cat /proc/net/snmp", side).splitlines()]
    counts = {line[0]: dict(zip(line[1:], after[1:])) for line, after in zip(lines[::2], lines[1::2])}
    return int(counts["Udp:"]["NoPorts"]), int(counts["Icmp:"]["OutDestUnreachs"])


@test("no packet of RoCE v2 gets to the network adapter behind an ERNIC")
def steering(testbed):
    sides = (testbed.client, testbed.server)
    before = [refused(testbed, side) for side in sides]
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 1024", SLOT_BYTES, 50)
    after = [refused(testbed, side) for side in sides]
    expect(after == before, f"(NoPorts, OutDestUnreachs) of both sides: {before} before, {after} after")
    # The port below is another one: the kernel has its datagram.
    testbed.run(f"bash -c 'echo x > /dev/udp/{testbed.server.address}/4790'", testbed.client)
    ports, messages = before[1]
    testbed.wait_until(lambda: refused(testbed, testbed.server) == (ports + 1, messages + 1),
                       "a datagram to another port is refused")


@test("pingpong with data, the ERNIC begins")
def asks(testbed):
    with turned(testbed):
        pingpongs(testbed)


@test("perftest: WRITE, READ and SEND", limit_s=120)
def figures(testbed):
    for program, options, count in (("ib_write_bw", "-s 65536", 200), ("ib_read_bw", "-s 65536 -o 4", 200),
                                    ("ib_send_bw", "-s 4096 -r 32", 200), ("ib_write_lat", "-s 8", 200),
                                    ("ib_send_lat", "-s 8", 200)):
        found = perftest(testbed, program, options, count)
        expect(len(found) == 1, f"{program} {options}: {found}")
        testbed.note(f"{program} {options}: {found[0][3:]}")
        with turned(testbed):
            found = perftest(testbed, program, options, count)
            expect(len(found) == 1, f"{program} {options}, the ERNIC asks: {found}")
            testbed.note(f"{program} {options}, the ERNIC asks: {found[0][3:]}")


@test("the CM: rping -V", debug_tier=GATE)
def connections(testbed):
    rping(testbed, "-S 4000", 100)
    with turned(testbed):
        rping(testbed, "-S 4000", 100)


# It takes SENDs alone of its peer, so programs that let the peer WRITE or READ do not run on it.
@test("pingpong with an ETRNIC", machine=ETRNIC, tier=ALL)
def etrnic(testbed):
    pingpongs(testbed)
    with turned(testbed):
        pingpongs(testbed)
