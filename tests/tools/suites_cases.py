# SPDX-License-Identifier: GPL-2.0-or-later
"""Counting test results: whatever a suite does, no failure is lost."""

import contextlib
import io

from tool import same

from hghca_lib import suites


def counted(status, *lines):
    """(passed, failed) of a suite that prints the lines and ends with the status."""
    count = suites.Count()
    with contextlib.redirect_stdout(io.StringIO()):
        for line in lines:
            suites.take(count, "suite", line)
        suites.conclude(count, "suite", status, "log")
    return count.passed, count.failed


def test_counting():
    """Results are counted by their lines"""
    same(counted(0, "1..2", "ok 1 - a", "ok 2 - b"), (2, 0))
    same(counted(1, "ok 1 - a", "not ok 2 - b", "# why", "1..2"), (1, 1))
    same(counted(0, "ok", "1..1"), (1, 0))


def test_skipped():
    """A skipped test has failed"""
    same(counted(0, "ok 1 - a # SKIP no time", "1..1"), (0, 1))
    same(counted(0, "ok 1 - a # todo", "1..1"), (0, 1))


def test_no_plan():
    """A suite that dies without a plan has failed"""
    same(counted(139, "ok 1 - a"), (1, 1))
    same(counted(0), (0, 1))


def test_too_few():
    """Results that differ in number from the plan are a failure"""
    same(counted(0, "1..3", "ok 1 - a"), (1, 1))
    same(counted(0, "1..1", "ok 1 - a", "ok 2 - b"), (2, 1))


def test_empty():
    """A suite without tests has failed"""
    same(counted(0, "1..0"), (0, 1))


def test_bad_status():
    """A suite that ends badly after good results has failed"""
    same(counted(3, "ok 1 - a", "1..1"), (1, 1))
    same(counted(0, "ok 1 - a", "Bail out! no guest", "1..1"), (1, 2))
