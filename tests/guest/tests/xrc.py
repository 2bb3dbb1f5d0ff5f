# SPDX-License-Identifier: GPL-2.0-or-later
"""Extended reliable connections: ibv_xsrq_pingpong, and programs/xrc.c, which compares every byte."""

import re

from hghca_lib.tiers import ALL

from data import over_link, run_program, to_itself
from framework import CACHE, IOMMU, expect, quick_if, test

OURS = {"subjects": ("hghca",), "limit_s": 120}


def xsrq_pingpong(testbed, options, size, count, clients=1, gid="ipv4"):
    """One server and its clients. With several the server sends to each through the QPs of all of them in turn."""
    server, client = testbed.server, testbed.client
    port = testbed.next_port()
    common = f"-s {size} -n {count} -p {port} {options}"
    serving = testbed.start(f"ibv_xsrq_pingpong -d {server.device} -g {server.gid(gid)} -c {clients} {common}", server)
    testbed.wait_listening(port, server, serving, "tcp")
    asking = [testbed.start(f"ibv_xsrq_pingpong -d {client.device} -g {client.gid(gid)} {common} {server.address}",
                            client)
              for _ in range(clients)]
    for end in [*asking, serving]:
        said = end.wait(testbed.left(60))
        expect(said.status == 0 and re.search("^success$", said.stdout, re.MULTILINE),
               f"status {said.status}, no success: {said.output[-500:]}")


for case_name, *case in [("defaults", "", 4096, 1000), ("events", "-e", 4096, 500),
                         ("MTU 1024, 100000 bytes", "-m 1024", 100000, 200), ("1 byte", "", 1, 2000),
                         ("IPv6", "", 4096, 1000, 1, "link-local"), ("four clients", "", 4096, 200, 4),
                         ("four clients, events", "-e", 4096, 200, 4)]:
    test(f"xrc: ibv_xsrq_pingpong, {case_name}", lambda testbed, case=case: xsrq_pingpong(testbed, *case),
         tier=quick_if(case_name == "defaults"), lines=case_name == "defaults", **OURS)

for way in ("plain", "extended"):
    test(f"xrc: all, an HCA to itself, {way}",
         lambda testbed, way=way: run_program(testbed, "xrc", f"{way} {to_itself(testbed)}"), **OURS)
    test(f"xrc: all, over the link, {way}",
         lambda testbed, way=way: run_program(testbed, "xrc", f"{way} {over_link(testbed)}"), **OURS)


@test("xrc: all, behind an IOMMU", machine=IOMMU, **OURS)
def behind_an_iommu(testbed):
    run_program(testbed, "xrc", f"plain {over_link(testbed)}")


@test("xrc: all, four contexts on chip", machine=CACHE, tier=ALL, **OURS)
def with_few_contexts(testbed):
    run_program(testbed, "xrc", f"extended {over_link(testbed)}")
