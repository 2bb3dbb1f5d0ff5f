# SPDX-License-Identifier: GPL-2.0-or-later
"""Paging on demand: src/odp.c, and libibverbs' own ping-pong with it."""

from data import over_link, run_program, to_itself
from framework import CACHE, IOMMU, test
from pingpong import pingpong

OURS = {"subjects": ("hghca",), "limit_s": 150, "aliases": True}


@test("paging on demand: all, an HCA to itself", **OURS)
def by_itself(rig):
    run_program(rig, "odp", f"plain {to_itself(rig)}")


@test("paging on demand: all, over the link", **OURS)
def through_the_link(rig):
    run_program(rig, "odp", f"plain {over_link(rig)}")


@test("paging on demand: all, behind an IOMMU", machine=IOMMU, **OURS)
def behind_an_iommu(rig):
    run_program(rig, "odp", f"plain {over_link(rig)}")


@test("paging on demand: all, four contexts on chip", machine=CACHE, **OURS)
def with_few_contexts(rig):
    run_program(rig, "odp", f"plain {over_link(rig)}")


@test("paging on demand: ibv_rc_pingpong", **OURS)
def rc_pingpong(rig):
    pingpong(rig, "ibv_rc_pingpong", "ipv4", "-o -m 4096", 1000003, 100)


@test("paging on demand: ibv_rc_pingpong with prefetching", **OURS)
def rc_pingpong_prefetching(rig):
    pingpong(rig, "ibv_rc_pingpong", "ipv4", "-o -P -m 4096", 1000003, 100)
