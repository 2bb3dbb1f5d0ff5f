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


def windows(rig, way, ends):
    """All cases, and that the device which has the windows counted what it did."""
    owner = rig.client if ends is to_itself else rig.server
    before = [rig.counter(owner, name) for name in COUNTED]
    run_program(rig, "mw", f"{way} {ends(rig)}", timeout=140)
    for name, value in zip(COUNTED, before):
        rose = rig.counter(owner, name) - value
        rig.note(f"{name}: {rose}")
        expect(rose > 0, f"the owner of the windows did not count {name}")


def regions(rig, way, ends):
    run_program(rig, "mr", f"{way} {ends(rig)}", timeout=140)


# Memory that is registered anew is pinned a second time before it is let go of.
for subject, run, aliases in (("windows", windows, False), ("regions", regions, True)):
    options = {**OURS, "aliases": aliases}
    for way in WAYS:
        test(f"{subject}: all, an HCA to itself, {way}",
             lambda rig, run=run, way=way: run(rig, way, to_itself),
             **options)
        test(f"{subject}: all, over the link, {way}",
             lambda rig, run=run, way=way: run(rig, way, over_link),
             tier=quick_if((subject, way) == ("windows", "plain")),
             debug_tier=gate_if((subject, way) == ("regions", "plain")), **options)
    test(f"{subject}: all, behind an IOMMU", lambda rig, run=run: run(rig, "plain", over_link), machine=IOMMU, **options)
    test(f"{subject}: all, four contexts on chip", lambda rig, run=run: run(rig, "extended", over_link),
         machine=CACHE, **options)


@test("windows: all, beside traffic of other QPs", **OURS)
def beside_traffic(rig):
    server, client = traffic(rig, BACKGROUND, rig.server, rig.client)
    windows(rig, "plain", over_link)
    expect(server.running() and client.running(), f"the traffic ended: {server.output[-400:]}{client.output[-400:]}")
    for end in (client, server):
        end.kill()
        end.wait(10)


@test("regions: a million pages", kernels=("stock",), tier=ALL, **OURS)
def million_pages(rig):
    regions(rig, "many", over_link)


@test("regions: of a dma-buf", **OURS)
def dma_buf(rig):
    regions(rig, "dma-buf", to_itself)
    regions(rig, "dma-buf", over_link)
