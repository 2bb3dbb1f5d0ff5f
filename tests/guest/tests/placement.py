# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory placement extensions: programs/placement.c, FLUSH and ATOMIC WRITE."""

from hghca_lib.tiers import ALL

from data import over_link, run_program, to_itself
from framework import CACHE, IOMMU, test

# The memory of the receiving end is registered twice, with the right to flush it and without.
OURS = {"subjects": ("hghca",), "limit_s": 90, "aliases": True}


@test("placement: all, an HCA to itself", **OURS)
def by_itself(testbed):
    run_program(testbed, "placement", f"extended {to_itself(testbed)}")


@test("placement: all, over the link", **OURS)
def through_the_link(testbed):
    run_program(testbed, "placement", f"extended {over_link(testbed)}")


@test("placement: all, behind an IOMMU", machine=IOMMU, **OURS)
def behind_an_iommu(testbed):
    run_program(testbed, "placement", f"extended {over_link(testbed)}")


@test("placement: all, four contexts on chip", machine=CACHE, tier=ALL, **OURS)
def with_few_contexts(testbed):
    run_program(testbed, "placement", f"extended {over_link(testbed)}")
