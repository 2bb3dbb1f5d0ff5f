# SPDX-License-Identifier: GPL-2.0-or-later
"""What pages of the documentation name: rows of their tables, tests, files and functions of the sources."""

import re

from hghca_lib import repo

CORE = repo.path("qemu-device/core")
SHIM = repo.path("qemu-device/shim")
UNIT = repo.path("tests/unit")
QTEST = repo.path("tests/qtest")
# The beginning of a function: at the margin, in a header also in a class; what ends with a semicolon is a declaration.
HEAD = re.compile(r"^(?:    )?(?!return\b|if\b|else\b|for\b|while\b|switch\b|case\b|using\b|static_assert)"
                  r"[\w:<>,&*~ ]*?([\w:~]+)\((?!.*;\s*$)")
LOOP = re.compile(r"^\s+(?:for|while|QTAILQ_FOREACH) ?\(|^\s+do \{")


def rows(text, headings):
    """The rows of all list tables of a page, as text; those that begin with a heading are left out."""
    found = re.findall(r"^   \* - (.*(?:\n     .*)*)", text, re.MULTILINE)
    return [row for row in found if not row.startswith(headings)]


def quoted(text):
    """What stands between backquotes, but for what is no name."""
    return re.findall(r"``([^` ]+)``", text)


def is_test(name):
    return re.fullmatch(r"\w+\.[A-Z]\w+|test_\w+", name) is not None


def unit_tests():
    """Suite.Name of all tests in tests/unit."""
    found = set()
    for path in UNIT.glob("*.cc"):
        pairs = re.findall(r"^TEST(?:_F|_P)?\((\w+), (\w+)\)", path.read_text(), re.MULTILINE)
        found |= {f"{suite}.{name}" for suite, name in pairs}
    return found


def qtest_tests():
    """The functions of all cases in tests/qtest."""
    return {name for path in QTEST.glob("*_cases.py") for name in re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE)}


def sources():
    """The files of the core and the shim, by name: pages name them without their folder."""
    paths = [path for folder, kinds in ((CORE, ("*.cc", "*.h")), (SHIM, ("*.c",)))
             for kind in kinds for path in folder.rglob(kind)]
    found = {path.name: path for path in paths}
    if len(found) != len(paths):
        raise ValueError(f"two files of the same name: {sorted(set(paths) - set(found.values()))}")
    return found


def loops(text, header=False):
    """The functions with a loop in a source file's text."""
    found, function = [], None
    for line in text.splitlines():
        head = HEAD.match(line)
        if head and (header or not line.startswith(" ")):
            function = head[1]
        if LOOP.match(line) and function not in found:
            found.append(function)
    return found


def missing(names):
    """Those of the names that name nothing: no test, no file of core or shim, and no path of the tree."""
    tests = unit_tests() | qtest_tests()
    files = sources()

    def exists(name):
        if is_test(name):
            return name in tests
        return (repo.ROOT / name).exists() if "/" in name else name in files
    return [name for name in names if not exists(name)]
