# SPDX-License-Identifier: GPL-2.0-or-later
"""Tiers of tests, the pairs of perftest's options, cases of programs, and results in JUnit's form."""

import itertools
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest import mock
from xml.etree import ElementTree

from tool import same

from hghca_lib import junit, lines, repo, suites, tap, tiers

GUEST = repo.path("tests/guest")
sys.path[:0] = [str(GUEST / folder) for folder in ("lib", "tests")]
import perftest  # noqa: E402


def listed(*options):
    said = subprocess.run([GUEST / "run", "--list", *options], capture_output=True, text=True, check=True)
    return said.stdout.splitlines()


def pairs(row):
    """Each two values of a row, with the factors they are of."""
    return set(itertools.combinations(enumerate(row), 2))


def test_pairs():
    """Each pair of perftest's programs, connections, options, MTUs and families that is possible has a test"""
    possible = [row for row in itertools.product(*perftest.FACTORS.values()) if perftest.possible(*row)]
    same(len(possible) > 500, True, "combinations were found")
    same([row for row in perftest.COMBINATIONS if row not in possible], [], "tests that perftest cannot do")
    missing = set().union(*map(pairs, possible)) - set().union(*map(pairs, perftest.COMBINATIONS))
    same(sorted(missing, key=str), [], "pairs without a test")


def test_no_repetition():
    """None of perftest's combinations could be left out"""
    def needed(row):
        others = set().union(*(pairs(other) for other in perftest.COMBINATIONS if other != row))
        return pairs(row) - others

    same([row for row in perftest.COMBINATIONS if not needed(row)], [], "tests without a pair of their own")


def test_tiers():
    """The quick tier is some tests of one guest, the gate includes it, and everything includes both"""
    quick, gate, everything = (listed("--suite", "guest", "--tier", tier) for tier in tiers.TIERS)
    same(10 <= len(quick) <= 15, True, f"{len(quick)} quick tests")
    same([name for name in quick if name not in gate], [], "quick tests that the gate lacks")
    same([name for name in gate if name not in everything], [], "tests of the gate that are not among all")
    same(len(gate) < len(everything), True, "the gate leaves something out")


def test_groups_under_debug():
    """The page on testing names the groups of which the gate runs tests under the debug kernel"""
    text = repo.path("docs/explanation/testing.rst").read_text()
    named = re.search(r"The gate runs some tests of the groups(.*?)\(``debug_tier``", text, re.DOTALL)[1]
    found = {name.partition(":")[0] for name in listed("--kernel", "debug", "--tier", "gate")}
    same(re.findall("``([^`]+)``", named), sorted(found), "groups")


def test_barred():
    """The page on testing has the tests that one of Debian's kernels cannot pass; elsewhere they are run"""
    text = repo.path("docs/explanation/testing.rst").read_text()
    table = re.findall(r"^(\d\.\d+) +\*([^*]+), \.\.\.\*", text, re.MULTILINE)
    stock = listed("--kernel", "stock", "--tier", "all")
    for line in lines.SUITES:
        possible = set(listed("--kernel", line, "--tier", "all"))
        barred = {name.partition(",")[0] for name in stock if name not in possible}
        same(sorted(barred), sorted(name for of, name in table if of == line), f"tests that {line} cannot pass")


def test_variable():
    """A tier that does not exist is refused"""
    with mock.patch.dict(os.environ, {tiers.VARIABLE: "fast"}):
        try:
            tiers.current()
        except ValueError as error:
            same(str(error), "HGHCA_TIER is fast, not one of quick, gate, all", "words")
        else:
            raise AssertionError("it was taken")


def test_cases():
    """A program's cases are read with their notes and its plan"""
    found, planned = tap.read("ok 1 - a\n# why\n# so\nnot ok 2 - b - c\nnoise\n1..2\n")
    same([(each.name, each.passed, each.notes) for each in found], [("a", True, ""), ("b - c", False, "why\nso")])
    same(planned, 2, "plan")
    same(tap.read("ok 1 - a\n")[1], None, "no plan")


def test_junit():
    """A JUnit file has each result, and of those that failed the notes"""
    count = suites.Count("first")
    with mock.patch.object(suites, "say"):
        for line in ("ok 1 - a", "not ok 2 - b \x1b[31m", "# why", "1..2"):
            suites.take(count, "first", line)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.xml"
        junit.write(file, [count])
        suite, = ElementTree.parse(file).getroot()
    same((suite.get("name"), suite.get("tests"), suite.get("failures")), ("first", "2", "1"), "suite")
    same([(case.get("name"), [each.text for each in case]) for case in suite],
         [("a", []), ("b ?[31m", ["    # why"])], "cases")
