# SPDX-License-Identifier: GPL-2.0-or-later
"""Every byte compared: programs/datacheck.c, between the HCAs and from an HCA to itself."""

from hghca_lib import tap
from hghca_lib.tiers import ALL, GATE

from framework import Failure, expect, tail, test


def run_program(rig, program, arguments, cases="", timeout=100):
    """Run one of our own TAP-printing programs from /share; its output. Each case is a result of the test.

    cases: what the program takes to run some of its cases only; `run --case` overrides it.
    """
    chosen = f"-- '{rig.case}'" if rig.case else cases
    result = rig.try_run(f"SLOWNESS={rig.slowness} /share/{program} {arguments} {chosen}", timeout=timeout)
    return take_cases(rig, f"{program} {arguments}", result)


def take_cases(rig, command, result):
    """The output of a TAP-printing program that has ended; its cases become results of the test."""
    found, plan = tap.read(result.stdout)
    rig.cases += found
    failed = [each.name for each in found if not each.passed]
    rig.note(f"{command.split()[0]}: {len(found) - len(failed)} cases ok, {len(failed)} not")
    if failed:
        raise Failure(f"{command}: cases failed: {', '.join(failed)}")
    expect(result.status == 0, f"{command}: status {result.status}\n"
                               f"{tail(result.stdout[-3000:] + result.stderr, 6000)}")
    expect(plan == len(found), f"{command}: {len(found)} results, plan {plan}")
    return result.stdout


def to_itself(rig):
    return f"{rig.client.device} {rig.client.gid('ipv4')}"


def over_link(rig):
    return f"{to_itself(rig)} {rig.server.device} {rig.server.gid('ipv4')} {rig.server.netns}"


@test("data: all operations, sizes and shapes, an HCA to itself", limit_s=150, aliases=True, tier=ALL, debug_tier=GATE)
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
    cases = WITHOUT_OVERLAPS if rig.kernel == "debug" else ""
    rig.run("echo 8 > /proc/sys/vm/nr_hugepages; test $(cat /proc/sys/vm/nr_hugepages) = 8")
    try:
        run_program(rig, "datacheck", arguments, cases, timeout=140)
    finally:
        rig.run("echo 0 > /proc/sys/vm/nr_hugepages")
