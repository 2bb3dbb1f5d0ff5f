# SPDX-License-Identifier: GPL-2.0-or-later
"""Every byte compared: programs/datacheck.c, between the HCAs and from an HCA to itself."""

import contextlib

from hghca_lib import tap
from hghca_lib.tiers import ALL, GATE

from framework import Failure, expect, tail, test


def run_program(testbed, program, arguments, cases="", timeout=100):
    """Run one of our own TAP-printing programs from /share; its output. Each case is a result of the test.

    cases: what the program takes to run some of its cases only; `run --case` overrides it.
    """
    chosen = f"-- '{testbed.case}'" if testbed.case else cases
    result = testbed.try_run(f"SLOWNESS={testbed.slowness} /share/{program} {arguments} {chosen}", timeout=timeout)
    return take_cases(testbed, f"{program} {arguments}", result)


def take_cases(testbed, command, result):
    """The output of a TAP-printing program that has ended; its cases become results of the test."""
    found, plan = tap.read(result.stdout)
    testbed.cases += found
    failed = [each.name for each in found if not each.passed]
    testbed.note(f"{command.split()[0]}: {len(found) - len(failed)} cases ok, {len(failed)} not")
    if failed:
        raise Failure(f"{command}: cases failed: {', '.join(failed)}")
    expect(result.status == 0, f"{command}: status {result.status}\n"
                               f"{tail(result.stdout[-3000:] + result.stderr, 6000)}")
    expect(plan == len(found), f"{command}: {len(found)} results, plan {plan}")
    return result.stdout


def to_itself(testbed):
    return f"{testbed.client.device} {testbed.client.gid('ipv4')}"


def over_link(testbed):
    """What a program takes that has both ends. The guest's first namespace has no name until it is given `first`."""
    return f"{to_itself(testbed)} {testbed.server.device} {testbed.server.gid('ipv4')} {testbed.server.netns or 'first'}"


@test("data: all operations, sizes and shapes, an HCA to itself", limit_s=150, aliases=True, tier=ALL, debug_tier=GATE)
def data_to_itself(testbed):
    with_huge_pages(testbed, to_itself(testbed))


@test("data: all operations, sizes and shapes, over the link", subjects=("hghca",), limit_s=150, aliases=True)
def data_over_link(testbed):
    before = [testbed.counter(side, "rx_bad_icrc") for side in testbed.sides]
    with_huge_pages(testbed, over_link(testbed))
    expect([testbed.counter(side, "rx_bad_icrc") for side in testbed.sides] == before,
           "packets were damaged on a good link")


# All but those that register the same memory more than once, each page of 2 GiB for the longest messages: the
# debugging of DMA has a backtrace to tell of every one.
WITHOUT_OVERLAPS = "-- send immediate random gather inline lists atomics huge vectors resized"


@contextlib.contextmanager
def huge_pages(testbed):
    """As long as the block, there are some."""
    testbed.run("echo 8 > /proc/sys/vm/nr_hugepages; test $(cat /proc/sys/vm/nr_hugepages) = 8")
    try:
        yield
    finally:
        testbed.run("echo 0 > /proc/sys/vm/nr_hugepages")


def with_huge_pages(testbed, arguments):
    with huge_pages(testbed):
        run_program(testbed, "datacheck", arguments, WITHOUT_OVERLAPS if testbed.kernel == "debug" else "", timeout=140)
