# SPDX-License-Identifier: GPL-2.0-or-later
"""Raw packet QPs, flows and RSS: src/rawpacket.c, src/rss.c, and the programs of perftest that send frames.

perftest's two ends of this kind do not speak with each other: who receives must be there first, and have
receives for all that comes.
"""

import re
import time

from data import over_link, run_program, to_itself
from framework import CACHE, IOMMU, expect, succeeded, tail, test
from perftest import rows

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


# Program: the options of a run, and where its result row has a figure. raw_ethernet_burst_lat does not start on a
# device that cannot limit the rate of a QP.
PERFTEST = {
    "raw_ethernet_bw": ("-s 1024", 3),
    "raw_ethernet_lat": ("-s 64", 4),
}
COUNT, RECEIVES = 1000, 1024
# From the state of its QP, which can be seen, to the receives that it posts next, which cannot.
POSTS_S = 1


def mac(rig, side):
    found = rig.run(f"cat /sys/class/infiniband/{side.device}/device/net/*/address", side).strip()
    expect(re.fullmatch(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}", found), f"{side.device} has the address {found}")
    return found


def receives(rig, side):
    """Whether a raw packet QP of a side is in RTR or RTS."""
    return re.search(r"type RAW_PACKET .*state RT[RS]|state RT[RS] .*type RAW_PACKET",
                     rig.ask(side, "rdma resource show qp"))


def raw_perftest(rig, program):
    options, column = PERFTEST[program]
    macs = {side.device: mac(rig, side) for side in rig.sides}

    def command(role, side, peer):
        return (f"{program} --{role} -d {side.device} -B {macs[side.device]} -E {macs[peer.device]} -F "
                f"-n {COUNT} -r {RECEIVES} {options}")

    server = command("server", rig.server, rig.client)
    serving = rig.start(server, rig.server)
    rig.wait_until(lambda: receives(rig, rig.server) or not serving.running(), "a server that receives")
    time.sleep(POSTS_S * rig.slowness)
    expect(serving.running(), f"the server ended early: {tail(serving.output)}")
    client = rig.run(command("client", rig.client, rig.server), rig.client)
    succeeded(server, serving.wait(rig.left(20)))
    found = rows(client)
    expect(len(found) == 1 and found[0][1] == COUNT and found[0][column] > 0, f"rows {found}: {tail(client)}")
    rig.note(f"{found[0][0]:.0f} B: {found[0][column]:g}")


for tool in PERFTEST:
    test(f"raw packets: {tool}", lambda rig, tool=tool: raw_perftest(rig, tool), **OURS)
