# SPDX-License-Identifier: GPL-2.0-or-later
"""Every byte compared: src/datacheck.c, between the HCAs and from an HCA to itself."""

import re

from framework import expect, tail, test


def run_program(rig, program, arguments, timeout=100):
    """Run one of our own TAP-printing programs from /share; its output. All its cases must be ok."""
    result = rig.try_run(f"SLOWNESS={rig.slowness} /share/{program} {arguments}", timeout=timeout)
    failed = re.findall(r"^not ok \d+ - (.*)$", result.stdout, re.MULTILINE)
    passed = len(re.findall(r"^ok ", result.stdout, re.MULTILINE))
    plan = re.search(r"^1\.\.(\d+)$", result.stdout, re.MULTILINE)
    rig.note(f"{program}: {passed} cases ok, {len(failed)} not")
    lines = [line for line in result.stdout.splitlines() if not line.startswith("ok ")]
    expect(not failed and result.status == 0, f"{program} {arguments}: status {result.status}\n"
                                               f"{tail(chr(10).join(lines) + result.stderr, 6000)}")
    expect(plan and int(plan.group(1)) == passed, f"{program}: {passed} results, plan {plan and plan.group(0)}")
    return result.stdout


def to_itself(rig):
    return f"{rig.client.device} {rig.client.gid('ipv4')}"


def over_link(rig):
    return f"{to_itself(rig)} {rig.server.device} {rig.server.gid('ipv4')} {rig.server.netns}"



@test("data: all operations, sizes and shapes, an HCA to itself", limit_s=150, aliases=True)
def data_to_itself(rig):
    with_huge_pages(rig, to_itself(rig))


@test("data: all operations, sizes and shapes, over the link", subjects=("hghca",), limit_s=150, aliases=True)
def data_over_link(rig):
    before = [rig.counter(side, "rx_bad_icrc") for side in rig.sides]
    with_huge_pages(rig, over_link(rig))
    expect([rig.counter(side, "rx_bad_icrc") for side in rig.sides] == before, "packets were damaged on a good link")


# All but those that register the same memory more than once, each page of 2 GiB for the longest messages: the
# debugging of DMA has a backtrace to tell of every one.
WITHOUT_OVERLAPS = "-- send immediate random gather inline lists atomics huge vectors resized"


def with_huge_pages(rig, arguments):
    if rig.kernel == "debug":
        arguments = f"{arguments} {WITHOUT_OVERLAPS}"
    rig.run("echo 8 > /proc/sys/vm/nr_hugepages; test $(cat /proc/sys/vm/nr_hugepages) = 8")
    try:
        run_program(rig, "datacheck", arguments, timeout=140)
    finally:
        rig.run("echo 0 > /proc/sys/vm/nr_hugepages")
