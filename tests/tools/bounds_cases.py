# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of bounds names every loop of core and shim, and what it names exists."""

import re

import pages
from tool import same

from hghca_lib import repo

PAGE = repo.path("docs/reference/bounds.rst")


def named(text):
    """(file, function) of all loops that the page's tables name."""
    found = []
    for file, functions in re.findall(r"``(\w+\.(?:cc|c|h))``: ((?:``[^`]+``(?:,\s+)?)+)", text):
        found += [(file, function) for function in pages.quoted(functions)]
    return found


def written():
    """(file, function) of all loops in the sources."""
    return [(name, function) for name, path in pages.sources().items()
            for function in pages.loops(path.read_text(), path.suffix == ".h")]


def test_all_loops():
    """Each loop of core and shim stands on the page of bounds"""
    found = written()
    same(len(found) > 100, True, "loops were found")
    same(sorted(set(found) - set(named(PAGE.read_text()))), [], "loops without a bound")


def test_named():
    """Each function that the page names has a loop, and each test exists"""
    text = PAGE.read_text()
    same(sorted(set(named(text)) - set(written())), [], "functions without a loop")
    same(pages.missing([name for name in pages.quoted(text) if pages.is_test(name)]), [], "missing tests")


def test_shown():
    """Each loop that others feed has a test"""
    text = PAGE.read_text()
    fed = pages.rows(text[:text.index("Loops of fixed length\n")], ("Loop\n",))
    same(len(fed) > 20, True, "rows were found")
    same([row for row in fed if not any(map(pages.is_test, pages.quoted(row)))], [], "rows without a test")


def test_loops():
    """A loop is found by the function it stands in"""
    text = """\
int declared(int);
Turn Queue::run(Qp &qp,
                int32_t &credit)
{
    while (credit > 0) {
    }
}
static void plain(void)
{
    do {
    } while (1);
}
void without() {}
"""
    same(pages.loops(text), ["Queue::run", "plain"], "loops")
    same(pages.loops("class A {\n    void b()\n    {\n        for (;;)\n", header=True), ["b"], "loops of a class")
