# SPDX-License-Identifier: GPL-2.0-or-later
"""Multicast: mckey over the connection manager, perftest -g, and programs/mcast.c, which compares every byte."""

import re

from badinput import BACKGROUND, traffic
from hghca_lib.tiers import ALL, QUICK

from data import over_link, run_program, to_itself
from framework import CACHE, IOMMU, VMS, expect, gate_if, killed_at_end, test
from netdev import gid_of
from perftest import MTUS, ipv4_group, is_bandwidth, perftest

OURS = {"subjects": ("hghca",)}
GROUP = "239.9.8.7"
COUNT = 50


# librdmacm's mckey: who receives, and who sends, joins by rdma_join_multicast.

def in_group(testbed, side, interface=None):
    """Whether the interface has joined GROUP, as the kernel's IGMP does for rdma_join_multicast."""
    return re.search(rf"inet +{GROUP}\b", testbed.run(f"ip -4 maddress show dev {interface or side.netdev}", side))


def mckey(testbed, options="", sender_options="", server=None, client=None, addresses=None, interface=None,
          count=COUNT):
    """One receiver and one sender, who both must be satisfied; the kernel joins the group, and leaves it."""
    server, client = server or testbed.server, client or testbed.client
    addresses = addresses or (server.address, client.address)
    receiver = testbed.start(f"mckey -b {addresses[0]} -m {GROUP} -C {count} {options}", server)
    testbed.wait_until(lambda: in_group(testbed, server, interface) or not receiver.running(), f"{GROUP} joined")
    sent = testbed.run(f"mckey -s -b {addresses[1]} -m {GROUP} -C {count} {options} {sender_options}", client)
    received = receiver.wait(testbed.left(20))
    expect(received.status == 0, f"the receiver ended with status {received.status}: {received.output[-500:]}")
    for said in (sent, received.stdout):
        expect(f"joined dgid: ::ffff:{GROUP} " in said and "data transfers complete" in said
               and "return status 0" in said, f"mckey said: {said[-500:]}")
    expect(not in_group(testbed, server, interface), f"{server.netdev} is in {GROUP} still")


def risen(testbed, side, name, action):
    """By how much a counter of the device rises in action()."""
    before = testbed.counter(side, name)
    action()
    return testbed.counter(side, name) - before


@test("mcast: mckey", tier=QUICK)
def mckey_plain(testbed):
    mckey(testbed)


@test("mcast: mckey, counted", **OURS)
def mckey_counted(testbed):
    """Each datagram goes on the link once, and the group's QPs have a copy each: the sender none of its own."""
    copies = risen(testbed, testbed.server, "multicast_copies",
                   lambda: expect(risen(testbed, testbed.client, "multicast_sent",
                                        lambda: mckey(testbed, "-S 1000")) == COUNT,
                                  "the sender counted another number of datagrams"))
    expect(copies == COUNT, f"{copies} copies of {COUNT} datagrams")
    # Three members here, three there. Each of the three that send reaches the two beside it.
    copies_here = risen(testbed, testbed.client, "multicast_copies", lambda: mckey(testbed, "-c 3", count=20))
    expect(copies_here == 3 * 2 * 20, f"{copies_here} copies for the two QPs beside each of three senders")


@test("mcast: mckey, an HCA to itself", tier=ALL)
def mckey_to_itself(testbed):
    for side in testbed.sides:
        mckey(testbed, "-S 4096", server=side, client=side)


@test("mcast: mckey, eight QPs", tier=ALL)
def mckey_many(testbed):
    mckey(testbed, "-c 8 -S 2048", count=100)


@test("mcast: mckey, a sender that joins to send only")
def mckey_send_only(testbed):
    mckey(testbed, sender_options="-o")
    expect(not in_group(testbed, testbed.client), f"{testbed.client.netdev} is in {GROUP}")


@test("mcast: mckey, loopback blocked", **OURS)
def mckey_blocked(testbed):
    mckey(testbed, "-l")


@test("mcast: mckey, the other way", tier=ALL, **OURS)
def mckey_back(testbed):
    mckey(testbed, server=testbed.client, client=testbed.server)


@test("mcast: mckey, two machines", machine=VMS, tier=ALL, **OURS)
def mckey_two_machines(testbed):
    mckey(testbed, "-S 4096", count=200)
    mckey(testbed, "-c 4", server=testbed.client, client=testbed.server)


@test("mcast: mckey over a VLAN", tier=ALL, **OURS)
def mckey_vlan(testbed):
    """A frame of a VLAN is for a group when the port has an address in that VLAN, and only then."""
    addresses = ("10.10.5.2", "10.10.5.1")
    sides = (testbed.server, testbed.client)
    for side, address in zip(sides, addresses):
        testbed.run(f"ip link add link {side.netdev} name v5 type vlan id 5 && ip address add {address}/24 dev v5 && "
                    "ip link set v5 up", side)
    try:
        for side, address in zip(sides, addresses):
            gid_of(testbed, side, address)
        mckey(testbed, addresses=addresses, interface="v5")
        # The receiver leaves the VLAN, and stays in the group.
        testbed.run("ip link del v5", testbed.server)
        receiver = testbed.start(f"mckey -b {testbed.server.address} -m {GROUP} -C 1", testbed.server)
        with killed_at_end(receiver):
            testbed.wait_until(lambda: in_group(testbed, testbed.server), f"{GROUP} joined")
            copies = risen(testbed, testbed.server, "multicast_copies",
                           lambda: testbed.run(f"mckey -s -b {addresses[1]} -m {GROUP} -C 5"))
            expect(copies == 0 and receiver.running(), f"{copies} datagrams came out of a VLAN that is not the port's")
            testbed.run(f"mckey -s -b {testbed.client.address} -m {GROUP} -C 1")
            expect(receiver.wait(testbed.left(20)).status == 0, "the receiver was not served")
    finally:
        for side in sides:
            testbed.try_run("ip link del v5", side)


@test("mcast: what the kernel's rdma_join_multicast refuses")
def refused_joins(testbed):
    """RoCE v2 has no IPv6 groups there, and none that are not addresses of IP, `mckey -M`: ENOTSUPP."""
    local = re.search(r"inet6 ([^/ ]+)",
                      testbed.run(f"ip -6 -o address show dev {testbed.client.netdev} scope link")).group(1)
    scope = f"%{testbed.client.netdev}"
    for source, options in ((local + scope, f"-m ff02::9:8{scope}"), (testbed.client.address, "-M ff0e::9:8")):
        result = testbed.try_run(f"mckey -b {source} {options} -C 1")
        expect(result.status not in (0, 124) and "failure joining: Unknown error 524" in result.output,
               f"mckey {options}: status {result.status}: {result.output[-500:]}")


# perftest: one QP, and a group of its own or, for an IPv4 address, one that it is told.

IPV4_GROUP = ipv4_group(6)
RUNS = [(program, gid, options)
        for program in ("ib_send_bw", "ib_send_lat")
        for gid in ("ipv4", "link-local")
        for options in ("-s 2048", "-a", "-s 4096 -e")]


def group_perftest(testbed, program, gid, options):
    count = 100 if "-a" in options else 1000
    group = IPV4_GROUP if gid == "ipv4" else ""
    found = perftest(testbed, program, f"-c UD -g {group} {options}", count, gid=gid)
    expect(len(found) == (12 if "-a" in options else 1), f"{len(found)} result rows")
    for row in found:
        expect(row[1] == count, f"row {row}")
    column = 3 if program.endswith("_bw") else 4
    testbed.note(", ".join(f"{row[0]:.0f} B: {row[column]:g}" for row in found))
    return found


for run_program_, run_gid, run_options in RUNS:
    test(f"mcast: {run_program_} -g, {run_gid}, {run_options}",
         lambda testbed, run=(run_program_, run_gid, run_options): group_perftest(testbed, *run),
         tier=gate_if((run_program_, run_gid) == ("ib_send_bw", "ipv4") and run_options != "-a"))


def group_mtu(testbed, program, gid, mtu):
    """Datagrams as long as the path MTU; a bandwidth program makes them so by itself."""
    found = group_perftest(testbed, program, gid, f"-m {mtu}" + ("" if is_bandwidth(program) else f" -s {mtu}"))
    expect(found[0][0] == mtu, f"rows {found}, expected one of {mtu} bytes")


# Each path MTU with another program or address.
MTU_RUNS = [(("ib_send_bw", "ib_send_lat")[number % 2], ("ipv4", "link-local")[number // 2 % 2], mtu)
            for number, mtu in enumerate(MTUS)]
for run_program_, run_gid, run_mtu in MTU_RUNS:
    test(f"mcast: {run_program_} -g, {run_gid}, -m {run_mtu}",
         lambda testbed, run=(run_program_, run_gid, run_mtu): group_mtu(testbed, *run),
         tier=gate_if(run_mtu in (MTUS[0], MTUS[-1])))


@test("mcast: ib_send_bw -g, both ends killed in full traffic, twice", limit_s=90, tier=ALL, **OURS)
def killed(testbed):
    for _ in range(2):
        server, client = traffic(testbed, f"ib_send_bw -c UD -s 2048 -g {IPV4_GROUP}", testbed.server, testbed.client)
        server.kill()
        client.kill()
        server.wait(10)
        client.wait(10)
    mckey(testbed)


# Our own program.

def program(testbed, ends, timeout=100):
    run_program(testbed, "mcast", ends, timeout=timeout)


def ipv6(testbed, far):
    ends = f"{testbed.client.device} {testbed.client.gid('link-local')}"
    return f"{ends} {testbed.server.device} {testbed.server.gid('link-local')} {testbed.server.netns}" if far else ends


# rxe gives a sender that is a member a copy of its own, and has other limits, and other words for what it refuses.
ON_RXE = "-- 'wrong Q_Key' 'without receives' reset RESET 'killed'"


@test("mcast: who gets what, an HCA to itself", limit_s=120)
def program_to_itself(testbed):
    program(testbed, to_itself(testbed) + (f" {ON_RXE}" if testbed.subject.name == "rxe" else ""))


@test("mcast: who gets what, over the link", limit_s=120, **OURS)
def program_over_link(testbed):
    program(testbed, over_link(testbed))


@test("mcast: who gets what, IPv6", limit_s=150, **OURS)
def program_ipv6(testbed):
    program(testbed, ipv6(testbed, False))
    program(testbed, ipv6(testbed, True))


@test("mcast: who gets what, behind an IOMMU", machine=IOMMU, limit_s=120, **OURS)
def program_behind_an_iommu(testbed):
    program(testbed, over_link(testbed))


@test("mcast: who gets what, four contexts on chip", machine=CACHE, limit_s=120, tier=ALL, **OURS)
def program_with_few_contexts(testbed):
    program(testbed, over_link(testbed))


@test("mcast: who gets what, beside traffic of other QPs", limit_s=150, tier=ALL, **OURS)
def program_beside_traffic(testbed):
    server, client = traffic(testbed, BACKGROUND, testbed.server, testbed.client)
    program(testbed, over_link(testbed), timeout=140)
    expect(server.running() and client.running(), f"the traffic ended: {server.output[-400:]}{client.output[-400:]}")
    for end in (client, server):
        end.kill()
        end.wait(10)
