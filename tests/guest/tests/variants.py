# SPDX-License-Identifier: GPL-2.0-or-later
"""The same traffic on machines that are built otherwise: behind an IOMMU, and with few contexts on chip."""

from data import over_link, to_itself, with_huge_pages
from hghca_lib.tiers import ALL

from framework import CACHE, IOMMU, expect, test
from perftest import perftest
from pingpong import pingpong
from rdmacm import rping

OURS = {"subjects": ("hghca",), "limit_s": 180}


def traffic(testbed):
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 4096", 1000003, 50)
    pingpong(testbed, "ibv_ud_pingpong", "ipv4", "", 2048, 200)
    rping(testbed, "-S 20000", 20)


@test("behind an IOMMU: pingpong, rping", machine=IOMMU, **OURS)
def behind_an_iommu(testbed):
    """All DMA goes through translations of the IOMMU; one that were not made would be a fault in the kernel log."""
    for side in testbed.sides:
        group = testbed.run(f"basename $(readlink /sys/bus/pci/devices/{side.pci}/iommu_group)", side).strip()
        kind = testbed.run(f"cat /sys/kernel/iommu_groups/{group}/type", side).strip()
        expect(kind in ("DMA", "DMA-FQ"), f"{side.device}'s DMA is not translated: {kind}")
    traffic(testbed)


@test("behind an IOMMU: all operations, sizes and shapes", machine=IOMMU, tier=ALL, **OURS)
def data_behind_an_iommu(testbed):
    with_huge_pages(testbed, over_link(testbed))


@test("four contexts on chip: pingpong, rping, 16 QPs at once", machine=CACHE, tier=ALL, **OURS)
def few_contexts(testbed):
    before = testbed.counter(testbed.client, "context_evictions")
    traffic(testbed)
    rows = perftest(testbed, "ib_write_bw", "-q 16 -s 4096", 200)
    expect(len(rows) == 1, f"rows: {rows}")
    evictions = testbed.counter(testbed.client, "context_evictions") - before
    # Sixteen QPs do not fit in four places: each of them was out at least once.
    expect(evictions >= 16, f"{evictions} contexts were put out to memory")
    testbed.note(f"{evictions} contexts were put out to memory")


@test("four contexts on chip: all operations, sizes and shapes", machine=CACHE, tier=ALL, **OURS)
def data_with_few_contexts(testbed):
    with_huge_pages(testbed, to_itself(testbed))
