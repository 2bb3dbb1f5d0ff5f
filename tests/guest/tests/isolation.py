# SPDX-License-Identifier: GPL-2.0-or-later
"""One process against another: no key, QP, CQ, AH, page or handle of one is of use to another. See programs/isolation.h."""

from hghca_lib.tiers import ALL, GATE

import framework
from badinput import OVERRUN
from data import run_program, to_itself
from framework import CACHE, IOMMU, VMS, Failure, expect, gate_if
from pingpong import pingpong

# What each part of programs/isolation.c has for cases, and in what machine besides the plain one it is run.
PARTS = {
    "doorbells": ("doorbells and pages", "doorbells: pages:", CACHE),
    "keys": ("keys", "keys:", CACHE),
    "handles": ("handles", "handles:", None),
    "memory": ("memory of queues, records and regions", "memory:", IOMMU),
    "rights": ("namespaces and users", "rights:", None),
}


def test(name, **options):
    return framework.test(f"isolation: {name}", subjects=("hghca",), limit_s=150, **options)


def part(testbed, cases):
    side = testbed.client
    testbed.run(f"echo 0 > {side.counters}/lifespan")
    run_program(testbed, "isolation", f"{to_itself(testbed)} {side.counters}", cases, timeout=140)
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 1024", 10000, 20)


def enter(title, cases, **options):
    # A CQ may be let run over: the driver tells. Each process has all of its objects in the same memory.
    test(title, expected_log=OVERRUN, aliases=True, **options)(lambda testbed: part(testbed, cases))


WHERE = {CACHE: "four contexts on chip", IOMMU: "behind an IOMMU"}
for title, cases, machine in PARTS.values():
    enter(title, cases, tier=ALL if title == "handles" else GATE)
    if machine:
        enter(f"{title}, {WHERE[machine]}", cases, machine=machine, tier=gate_if(machine == IOMMU))


NOBODY = "setpriv --reuid 65534 --regid 65534 --clear-groups"


@test("what an unprivileged user is told and may change")
def unprivileged(testbed):
    side = testbed.client
    holder = testbed.start(f"exec ibv_rc_pingpong -d {side.device} -g {side.gid('ipv4')} -p {testbed.next_port()}")
    testbed.wait_until(lambda: "lkey" in testbed.run("rdma -dd resource show mr"), "a region of another process")
    told = testbed.run(f"{NOBODY} rdma -dd resource show mr")
    expect("lkey" not in told and "rkey" not in told, f"keys are told to nobody: {told}")
    for command in (f"rdma dev set {side.device} netns b", f"rdma dev set {side.device} name other",
                    "rdma system set netns shared", f"rdma dev set {side.device} adaptive-moderation off"):
        result = testbed.try_run(f"{NOBODY} {command}")
        expect(result.status, f"nobody may: {command}")
    expect(testbed.try_run(f"test -d /sys/class/infiniband/{side.device}").status == 0, "the device was renamed")
    expect(holder.running(), f"the other process ended: {holder.output[-400:]}")
    port = testbed.next_port()
    pair = f"exec {NOBODY} ibv_rc_pingpong -c -d {side.device} -g {side.gid('ipv4')} -p {port}"
    serving = testbed.start(pair, side)
    testbed.wait_listening(port, side, serving, "tcp")
    framework.succeeded(pair, testbed.try_run(f"{pair} {side.address}", side))
    framework.succeeded(pair, serving.wait(testbed.left(20)))


def set_namespaces(testbed, mode):
    """Shared or exclusive. The kernel refuses as long as another network namespace is there, and deletes one later."""
    testbed.wait_until(lambda: testbed.try_run(f"rdma system set netns {mode}").status == 0,
                       f"RDMA namespaces are not {mode}")


@test("a namespace that shares the device", machine=VMS)
def shared_namespace(testbed):
    """With RDMA namespaces shared every process sees the device, but binds to addresses of its own namespace alone."""
    side = testbed.client
    set_namespaces(testbed, "shared")
    try:
        testbed.run("ip netns add other && ip -n other link set lo up")
        expect(side.device in testbed.run("ip netns exec other ibv_devices"), "the device is not shared")
        said = testbed.try_run(f"ip netns exec other timeout 5 rping -s -a {side.address} -C 1")
        expect(said.status not in (0, 124), f"an address of another namespace was bound to: {said.output}")
        testbed.run(f"ip -n other address add {side.address}/32 dev lo")
        said = testbed.try_run(f"ip netns exec other timeout 5 rping -s -a {side.address} -C 1")
        expect(said.status not in (0, 124), f"another namespace's GID was used: {said.output}")
    finally:
        testbed.run("ip netns delete other")
        set_namespaces(testbed, "exclusive")
    if "exclusive" not in testbed.run("rdma system show netns"):
        raise Failure("RDMA namespaces stay shared")
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 1024", 10000, 20)
