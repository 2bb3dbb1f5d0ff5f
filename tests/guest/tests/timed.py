# SPDX-License-Identifier: GPL-2.0-or-later
"""Time: programs/timed.c, the device's clock, timestamps of completions, and events that wait; ibv_rc_pingpong -t."""

from hghca_lib.tiers import ALL

from data import run_program, to_itself
from framework import CACHE, IOMMU, test
from pingpong import pingpong

OURS = {"subjects": ("hghca",), "limit_s": 90}


@test("timed: all, an HCA to itself", **OURS)
def by_itself(testbed):
    run_program(testbed, "timed", to_itself(testbed))


@test("timed: all, behind an IOMMU", machine=IOMMU, **OURS)
def behind_an_iommu(testbed):
    run_program(testbed, "timed", to_itself(testbed))


@test("timed: all, four contexts on chip", machine=CACHE, tier=ALL, **OURS)
def with_few_contexts(testbed):
    run_program(testbed, "timed", to_itself(testbed))


# Not with -e: an event whose completions it has polled already ends the program.
for case_name, options, size, count in [("timestamps", "-t", 65536, 300), ("timestamps, struct ibv_qp_ex", "-t -N", 1000003, 50)]:
    test(f"timed: ibv_rc_pingpong, {case_name}",
         lambda testbed, options=f"-m 4096 {options}", size=size, count=count:
         pingpong(testbed, "ibv_rc_pingpong", "ipv4", options, size, count), **OURS)
