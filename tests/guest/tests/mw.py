# SPDX-License-Identifier: GPL-2.0-or-later
"""Keys: programs/mw.c, memory windows and invalidation; programs/mr.c, regions that are changed or made in other ways."""

from hghca_lib.tiers import ALL

from badinput import BACKGROUND, traffic
from data import over_link, run_program, to_itself
from framework import CACHE, IOMMU, expect, gate_if, quick_if, test

OURS = {"subjects": ("hghca",), "limit_s": 150}
# Through ibv_post_send and ibv_poll_cq, and through struct ibv_qp_ex and struct ibv_cq_ex.
WAYS = ("plain", "extended")
COUNTED = ("regions_registered", "keys_invalidated")


def windows(testbed, way, ends):
    """All cases, and that the device which has the windows counted what it did."""
    owner = testbed.client if ends is to_itself else testbed.server
    before = [testbed.counter(owner, name) for name in COUNTED]
    run_program(testbed, "mw", f"{way} {ends(testbed)}", timeout=140)
    for name, value in zip(COUNTED, before):
        rose = testbed.counter(owner, name) - value
        testbed.note(f"{name}: {rose}")
        expect(rose > 0, f"the owner of the windows did not count {name}")


def regions(testbed, way, ends):
    run_program(testbed, "mr", f"{way} {ends(testbed)}", timeout=140)


# Memory that is registered again is pinned a second time before it is unpinned.
for subject, run, aliases in (("windows", windows, False), ("regions", regions, True)):
    options = {**OURS, "aliases": aliases}
    for way in WAYS:
        test(f"{subject}: all, an HCA to itself, {way}",
             lambda testbed, run=run, way=way: run(testbed, way, to_itself),
             **options)
        test(f"{subject}: all, over the link, {way}",
             lambda testbed, run=run, way=way: run(testbed, way, over_link),
             tier=quick_if((subject, way) == ("windows", "plain")),
             debug_tier=gate_if((subject, way) == ("regions", "plain")), **options)
    test(f"{subject}: all, behind an IOMMU", lambda testbed, run=run: run(testbed, "plain", over_link), machine=IOMMU,
         **options)
    test(f"{subject}: all, four contexts on chip", lambda testbed, run=run: run(testbed, "extended", over_link),
         machine=CACHE, tier=ALL, **options)


@test("windows: all, beside traffic of other QPs", tier=ALL, **OURS)
def beside_traffic(testbed):
    server, client = traffic(testbed, BACKGROUND, testbed.server, testbed.client)
    windows(testbed, "plain", over_link)
    expect(server.running() and client.running(), f"the traffic ended: {server.output[-400:]}{client.output[-400:]}")
    for end in (client, server):
        end.kill()
        end.wait(10)


@test("regions: a million pages", kernels=("stock",), tier=ALL, **OURS)
def million_pages(testbed):
    regions(testbed, "many", over_link)


@test("regions: of a dma-buf", **OURS)
def dma_buf(testbed):
    regions(testbed, "dma-buf", to_itself)
    regions(testbed, "dma-buf", over_link)
