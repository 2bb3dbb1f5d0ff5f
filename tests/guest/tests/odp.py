# SPDX-License-Identifier: GPL-2.0-or-later
"""Paging on demand: programs/odp.c, and libibverbs' own ping-pong with it."""

from hghca_lib.tiers import ALL

from data import over_link, run_program, to_itself
from framework import CACHE, IOMMU, gate_if, test
from pingpong import pingpong
from xrc import xsrq_pingpong

OURS = {"subjects": ("hghca",), "limit_s": 150, "aliases": True}


# Over the link it does the same, and more.
@test("paging on demand: all, an HCA to itself", tier=ALL, lines=True, **OURS)
def by_itself(testbed):
    run_program(testbed, "odp", f"plain {to_itself(testbed)}")


@test("paging on demand: all, over the link", **OURS)
def through_the_link(testbed):
    run_program(testbed, "odp", f"plain {over_link(testbed)}")


@test("paging on demand: all, behind an IOMMU", machine=IOMMU, tier=ALL, **OURS)
def behind_an_iommu(testbed):
    run_program(testbed, "odp", f"plain {over_link(testbed)}")


@test("paging on demand: all, four contexts on chip", machine=CACHE, tier=ALL, **OURS)
def with_few_contexts(testbed):
    run_program(testbed, "odp", f"plain {over_link(testbed)}")


# name, options: -o for a region of the buffer, -O for one of all memory.
for case_name, options in [("", "-o"), (" with prefetching", "-o -P"), (", events", "-o -e"), (", all memory", "-O"),
                           (", all memory, with prefetching", "-O -P")]:
    test(f"paging on demand: ibv_rc_pingpong{case_name}",
         lambda testbed, options=f"{options} -m 4096":
         pingpong(testbed, "ibv_rc_pingpong", "ipv4", options, 1000003, 100),
         # programs/odp.c has the others' advice and events.
         tier=gate_if(options in ("-o", "-O -P")), **OURS)


@test("paging on demand: ibv_srq_pingpong", **OURS)
def srq_pingpong(testbed):
    pingpong(testbed, "ibv_srq_pingpong", "ipv4", "-o -q 16 -m 4096", 65536, 500)


@test("paging on demand: ibv_xsrq_pingpong", **OURS)
def xrc_pingpong(testbed):
    xsrq_pingpong(testbed, "-o -m 4096", 100000, 200)
