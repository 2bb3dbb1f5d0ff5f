# SPDX-License-Identifier: GPL-2.0-or-later
"""What the page of transport rules names exists."""

import re

from tool import same

from hghca_lib import repo

PAGE = repo.path("docs/transport.rst")
CORE = repo.path("qemu-device/core")
UNIT = repo.path("tests/unit")


def rows():
    """The rows of all tables, as text; their headings are left out."""
    text = PAGE.read_text()
    found = re.findall(r"^   \* - (.*(?:\n     .*)*)", text, re.MULTILINE)
    return [row for row in found if not row.startswith(("Clause\n", "Reason\n"))]


def quoted(text):
    """What stands between backquotes, but for what is no name."""
    return re.findall(r"``([^` ]+)``", text)


def is_test(name):
    return re.fullmatch(r"\w+\.[A-Z]\w+", name) is not None


def unit_tests():
    """Suite.Name of all tests in tests/unit."""
    found = set()
    for path in UNIT.glob("*.cc"):
        pairs = re.findall(r"^TEST(?:_F|_P)?\((\w+), (\w+)\)", path.read_text(), re.MULTILINE)
        found |= {f"{suite}.{name}" for suite, name in pairs}
    return found


def missing(names):
    """Those of the names that are none: no test, no file of the core, and no path of the tree."""
    tests = unit_tests()

    def exists(name):
        if is_test(name):
            return name in tests
        return (repo.ROOT / name if "/" in name else CORE / name).exists()
    return [name for name in names if not exists(name)]


def test_named():
    """Each test and file that the page of transport rules names exists"""
    same(missing(quoted(PAGE.read_text())), [], "missing")


def test_rows():
    """Each rule of the page has a test"""
    found = rows()
    same(len(found) > 40, True, "rules were found")
    same([row for row in found if not any(map(is_test, quoted(row)))], [], "rules without a test")


def test_reasons():
    """The page names each reason for a drop by its number"""
    header = repo.path("include/hghca_hw.h").read_text()
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
