# SPDX-License-Identifier: GPL-2.0-or-later
"""What the page of transport rules names exists."""

import re

from pages import is_test, missing, quoted, rows
from tool import same

from hghca_lib import repo

PAGE = repo.path("docs/reference/transport.rst")


def test_named():
    """Each test and file that the page of transport rules names exists"""
    same(missing(quoted(PAGE.read_text())), [], "missing")


def test_rows():
    """Each rule of the page has a test"""
    found = rows(PAGE.read_text(), ("Clause\n", "Reason\n"))
    same(len(found) > 40, True, "rules were found")
    same([row for row in found if not any(map(is_test, quoted(row)))], [], "rules without a test")


def test_reasons():
    """The page names each reason for a drop by its number"""
    header = repo.path("include/hghca/counters.h").read_text()
    table = header[header.index("#define HGHCA_DROPS(X)"):]
    reasons = re.findall(r"^\tX\((\w+),\s+(\d+),", table[:table.index("\n\n")], re.MULTILINE)
    same(len(reasons) > 20, True, "reasons were found")
    text = PAGE.read_text()
    unnamed = [name for name, number in reasons if not re.search(rf"\b{number} {name}\b", text)]
    same(unnamed, [], "reasons not named")


def test_missing():
    """A test or a file that does not exist is found"""
    wrong = ["Rc.NoSuchTest", "NoSuite.SendArrives", "none.cc", "tests/none"]
    sound = ["Rc.SendArrives", "RcLossEach.OneLostPacketAnywhereIsMadeGood", "uc.cc", "tests/unit"]
    same(missing(wrong + sound), wrong, "what does not exist")
