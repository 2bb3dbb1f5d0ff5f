# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory on the device, and contexts that are imported: programs/devmem.c."""

from hghca_lib.tiers import ALL

from data import over_link, run_program, to_itself
from framework import CACHE, IOMMU, test

OURS = {"subjects": ("hghca",), "limit_s": 90}


@test("device memory: all, an HCA to itself", **OURS)
def by_itself(testbed):
    run_program(testbed, "devmem", f"plain {to_itself(testbed)}")


@test("device memory: all, over the link", **OURS)
def through_the_link(testbed):
    run_program(testbed, "devmem", f"extended {over_link(testbed)}")


@test("device memory: all, behind an IOMMU", machine=IOMMU, **OURS)
def behind_an_iommu(testbed):
    run_program(testbed, "devmem", f"plain {over_link(testbed)}")


@test("device memory: all, four contexts on chip", machine=CACHE, tier=ALL, **OURS)
def with_few_contexts(testbed):
    run_program(testbed, "devmem", f"plain {over_link(testbed)}")
