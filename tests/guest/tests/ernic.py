# SPDX-License-Identifier: GPL-2.0-or-later
"""An ERNIC, or an ETRNIC, and a JingZhao HCA on one link.

A virtio network adapter with the same MAC address is the Ethernet half of the port of an ERNIC. A message of a SEND fits
into a slot of its receive queue, which has 4096 bytes.
"""

import contextlib
import shlex

import framework

from badinput import OVERRUN
from data import huge_pages, over_link, run_program
from framework import ALL, ERNIC, ETRNIC, GATE, expect
from interop import turned
from perftest import perftest
from pingpong import pingpong
from rdmacm import rping

OURS = {"machine": ERNIC, "subjects": ("hghca",), "kernels": ("stock", "debug")}
SLOT_BYTES = 4096


def test(name, **options):
    return framework.test(f"ernic: {name}", **{**OURS, **options})


@contextlib.contextmanager
def ernic_asks(testbed):
    """As long as the block, the ERNIC is the client. A program that has both ends finds the HCA in a namespace by its name."""
    testbed.guest.run("test -e /run/netns/first || ip netns attach first 1")
    with turned(testbed):
        yield


def program(testbed, name, without=()):
    """All cases of a program with both ends, but for those with these parts of their names."""
    run_program(testbed, name, over_link(testbed), f"-- {' '.join(shlex.quote(f'!{part}') for part in without)}")


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
    with ernic_asks(testbed):
        pingpongs(testbed)


@test("perftest: WRITE, READ and SEND", limit_s=120)
def figures(testbed):
    for program, options, count in (("ib_write_bw", "-s 65536", 200), ("ib_read_bw", "-s 65536 -o 4", 200),
                                    ("ib_send_bw", "-s 4096 -r 32", 200), ("ib_write_lat", "-s 8", 200),
                                    ("ib_read_lat", "-s 8 -o 4", 200), ("ib_send_lat", "-s 8", 200)):
        found = perftest(testbed, program, options, count)
        expect(len(found) == 1, f"{program} {options}: {found}")
        testbed.note(f"{program} {options}: {found[0][3:]}")
        with turned(testbed):
            found = perftest(testbed, program, options, count)
            expect(len(found) == 1, f"{program} {options}, the ERNIC asks: {found}")
            testbed.note(f"{program} {options}, the ERNIC asks: {found[0][3:]}")


# Atomics; messages for which the driver has no buffer, of two pieces of 1 GiB.
NO_DATA = ("atomics", "longest")


@test("data: all operations, sizes and shapes, over the link", limit_s=150, aliases=True)
def data_to_ernic(testbed):
    with huge_pages(testbed):
        program(testbed, "datacheck", NO_DATA)


@test("data: all operations, sizes and shapes, the ERNIC asks", limit_s=150, aliases=True)
def data_from_ernic(testbed):
    with ernic_asks(testbed), huge_pages(testbed):
        program(testbed, "datacheck", NO_DATA)


# There are no atomics and no UD. An R_Key names one entry, of which the rights are those of a region, and the hardware
# knows no rights of a QP.
NO_CASES = ("atomic", "datagram", "QP without REMOTE_")


# The HCA's driver tells of a CQ that runs over.
@test("bad input: work requests that must fail, over the link", limit_s=120, expected_log=OVERRUN)
def bad_verbs_to_ernic(testbed):
    program(testbed, "badverbs", NO_CASES)


# The driver checks the memory of a READ before the peer does. The kernel's uverbs checks the opcodes of a list before it
# posts the first.
@test("bad input: work requests that must fail, the ERNIC asks", limit_s=120)
def bad_verbs_from_ernic(testbed):
    with ernic_asks(testbed):
        program(testbed, "badverbs", ("atomic", "datagram", "then wrong rkey", "refused when posted"))


@test("isolation, invalidation, and what the hardware lacks", limit_s=120)
def isolation(testbed):
    with ernic_asks(testbed):
        program(testbed, "ernic")


@test("the CM: rping -V", debug_tier=GATE)
def connections(testbed):
    rping(testbed, "-S 4000", 100)
    with turned(testbed):
        rping(testbed, "-S 4000", 100)


def endless(testbed, program, server, client):
    """Start traffic that does not end; (server, client) once packets flow."""
    port = testbed.next_port()

    def command(side):
        return f"exec {program} -d {side.device} -x {side.gid('ipv4')} -F -D 600 -p {port}"

    serving = testbed.start(command(server), server)
    testbed.wait_listening(port, server, serving, "tcp")
    hca = testbed.sides[0]
    before = testbed.counter(hca, "tx_packets")
    asking = testbed.start(f"{command(client)} {server.address}", client)
    testbed.wait_until(lambda: testbed.counter(hca, "tx_packets") > before + 500, f"traffic of {program}")
    expect(serving.running() and asking.running(), f"{program} ended early: {serving.output[-400:]}{asking.output[-400:]}")
    return serving, asking


def goes_and_comes(testbed, away, back):
    """The ERNIC goes under traffic, in either direction, and works when it has come back."""
    ernic = testbed.sides[1]
    for program, server, client in (("ib_write_bw -s 4096", *testbed.sides), ("ib_read_bw -s 4096 -o 4", *testbed.sides),
                                    ("ib_write_bw -s 4096", *reversed(testbed.sides)),
                                    ("ib_send_bw -s 1024 -r 32", *reversed(testbed.sides))):
        programs = endless(testbed, program, server, client)
        testbed.run(away.format(pci=ernic.pci))
        for each in programs:
            each.kill()
            each.wait(10)
        testbed.run(back.format(pci=ernic.pci))
        testbed.configure(ernic)
        pingpongs(testbed)


LOADED = (r"ernic: (loading out-of-tree|module verification)",)


@test("rmmod under traffic, and insmod", limit_s=120, expected_log=LOADED)
def module_goes(testbed):
    goes_and_comes(testbed, "rmmod ernic", "insmod /opt/hghca/ernic.ko")


@test("driver unbound under traffic, and bound", limit_s=120, tier=ALL)
def driver_goes(testbed):
    goes_and_comes(testbed, "echo {pci} > /sys/bus/pci/drivers/ernic/unbind", "echo {pci} > /sys/bus/pci/drivers/ernic/bind")


# It takes SENDs alone of its peer, so programs that let the peer WRITE or READ do not run on it.
@test("pingpong with an ETRNIC", machine=ETRNIC, tier=ALL)
def etrnic(testbed):
    pingpongs(testbed)
    with turned(testbed):
        pingpongs(testbed)
