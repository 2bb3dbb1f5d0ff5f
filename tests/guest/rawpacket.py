# SPDX-License-Identifier: GPL-2.0-or-later
"""Raw packet QPs, flows and RSS: src/rawpacket.c, src/rss.c, and the programs of perftest that send frames.

perftest's two ends of this kind do not speak with each other: who receives must be there first, and have
receives for all that comes.
"""

import re
import time

import perftest
from data import over_link, run_program, to_itself
from framework import CACHE, IOMMU, expect, succeeded, tail, test
from perftest import figure_column, figures

OURS = {"subjects": ("hghca",), "limit_s": 120}


@test("raw packets: all, an HCA to itself", **OURS)
def by_itself(rig):
    run_program(rig, "rawpacket", f"plain {to_itself(rig)}")


@test("raw packets: all, over the link", **OURS)
def through_the_link(rig):
    run_program(rig, "rawpacket", f"plain {over_link(rig)}")


@test("raw packets: all, over the link, extended", **OURS)
def through_the_link_extended(rig):
    run_program(rig, "rawpacket", f"extended {over_link(rig)}")


@test("raw packets: all, behind an IOMMU", machine=IOMMU, **OURS)
def behind_an_iommu(rig):
    run_program(rig, "rawpacket", f"extended {over_link(rig)}")


@test("raw packets: all, four contexts on chip", machine=CACHE, **OURS)
def with_few_contexts(rig):
    run_program(rig, "rawpacket", f"plain {over_link(rig)}")


# Program: the options of a run. Bursts are of a limited rate: raw_ethernet_burst_lat asks for the static rate of an
# InfiniBand link, which no Ethernet port gives it, and then keeps to the rate by itself. Its other options:
# -Q 1: of a list of sends that it posts, each -Qth is signaled. Its lists are of one send; with -Q 100, the default,
#   none is ever signaled, and the client, which waits for the completions of all, never ends.
# -t, not less than COUNT: the server leaves out its answer while as many are under way; the client waits for each.
# --wait_destroy: the server ends with the last frame that it receives, and does not wait for its answers to be sent
#   before it destroys their QP.
PERFTEST = {
    "raw_ethernet_bw": "-s 1024",
    "raw_ethernet_lat": "-s 64",
    "raw_ethernet_burst_lat": "-s 64 -t 1024 -Q 1 --rate_limit=10 --rate_units=g --burst_size=100 --wait_destroy=1",
}
COUNT, RECEIVES = 1000, 1024
# From the state of its QP, which can be seen, to the receives that it posts next, which cannot.
POSTS_S = 1
# What a client of bursts says that did not learn how fast the processor's clock goes (perftest.CLOCK_UNKNOWN). It ends
# then before its first frame, so the server can wait for another one.
NO_CLOCK, CLOCK_TRIES = "couldn't acquire cpu frequency", 3


def mac(rig, side):
    found = rig.run(f"cat /sys/class/infiniband/{side.device}/device/net/*/address", side).strip()
    expect(re.fullmatch(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}", found), f"{side.device} has the address {found}")
    return found


def receives(rig, side):
    """Whether a raw packet QP of a side is in RTR or RTS."""
    return re.search(r"type RAW_PACKET .*state RT[RS]|state RT[RS] .*type RAW_PACKET",
                     rig.ask(side, "rdma resource show qp"))


def run_client(rig, command):
    """A client that must succeed; its Result."""
    for _ in range(CLOCK_TRIES):
        result = rig.try_run(command)
        if not (result.status and NO_CLOCK in result.stderr):
            break
    return succeeded(command, result)


def raw_perftest(rig, program):
    macs = {side.device: mac(rig, side) for side in rig.sides}

    def command(role, side, peer):
        return (f"{program} --{role} -d {side.device} -B {macs[side.device]} -E {macs[peer.device]} -F "
                f"-n {COUNT} -r {RECEIVES} {PERFTEST[program]}")

    server = command("server", rig.server, rig.client)
    serving = rig.start(server, rig.server)
    rig.wait_until(lambda: receives(rig, rig.server) or not serving.running(), "a server that receives")
    time.sleep(POSTS_S * rig.slowness)
    expect(serving.running(), f"the server ended early: {tail(serving.output)}")
    client = run_client(rig, command("client", rig.client, rig.server))
    found = figures(program, (succeeded(server, serving.wait(rig.left(20))), client))
    expect(len(found) == 1 and found[0][1] == COUNT, f"rows {found}: {tail(client.output)}")
    rig.note(f"{found[0][0]:.0f} B: {found[0][figure_column(program)]:g}")


for tool in PERFTEST:
    test(f"raw packets: {tool}", lambda rig, tool=tool: raw_perftest(rig, tool), **OURS)


# So many in so many runs are more than the HCA has room for at a time: each run must leave none behind.
FLOWS, FLOW_RUNS = 1000, 5
# The least time, the most, the typical and the average, and how many in a second.
FLOW_FIGURES = rf"^{FLOWS}[ \t]+({perftest.NUMBER}(?:[ \t]+{perftest.NUMBER}){{4}})[ \t]*$"


@test("raw packets: raw_ethernet_fs_rate", **OURS)
def flow_rate(rig):
    """Flows of one QP, each for another port of UDP; the figures are how long it takes to make one."""
    side, peer = rig.server, rig.client
    command = (f"raw_ethernet_fs_rate --server -d {side.device} -F -n {FLOWS} --local_mac {mac(rig, side)} "
               f"--local_ip {side.address} --remote_ip {peer.address} --local_port 10000 --remote_port 20000")
    for _ in range(FLOW_RUNS):
        said = succeeded(command, rig.try_run(command, side))
        expect("Couldn't" not in said.output, f"not all flows were made and destroyed: {tail(said.output)}")
        row = re.search(FLOW_FIGURES, said.stdout, re.MULTILINE)
        expect(row, f"no result: {tail(said.output)}")
        rate = float(row.group(1).split()[-1])
        expect(rate > 0 or perftest.CLOCK_UNKNOWN in said.stderr, f"no rate: {tail(said.output)}")
        rig.note(f"{rate:.0f} flows a second")
