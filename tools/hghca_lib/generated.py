# SPDX-License-Identifier: GPL-2.0-or-later
"""Documents that are written from the tables of include/hghca: `tools/hghca pages`."""

import importlib
import re
import sys

from . import interface, repo

COUNTERS_HEAD = """\
.. SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
.. Written by `tools/hghca pages` from include/hghca/counters.h: change that, and run the command.

=========================
Counters and drop reasons
=========================

"""
COUNTERS = """\
Counters
========

In the guest, ``ethtool -S`` shows them, and so does ``hw_counters`` of the device in sysfs; ``rdma statistic`` shows
those of the port. On the host, ``qom-get`` of the property ``stats`` does. They count since the reset of the device.
QUERY_STATS returns them in this order (`interface document <hardware-interface.rst>`__, 4.14).

"""
DROPS = """\
Drop reasons
============

Why a packet was dropped or refused, as the error buffer has it (`interface document <hardware-interface.rst>`__,
4.28). On the host, ``qom-get`` of the property ``errors`` shows the last of them. `The rules of the wire
<transport.rst>`__ say what follows and which counters rise.

"""


# A test that a row names: its file and its name.
TEST = re.compile(r"\b((?:\w+/)?\w+\.(?:cc|c|py): \w+)")
DOCUMENT = """\
.. SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
.. Written by `tools/hghca pages` from tests/abi/{source}.py: change that, and run the command.

{line}
{title}
{line}

{introduction}

A row is *implemented*, and the test that shows it is named; *extended*, by something that the document leaves open;
it *departs*; or it is *not meaningful* in an emulation. Tests are in ``tests/unit`` (``_test.cc``), ``tests/qtest``
(``_cases.py``), ``tests/guest/tests`` (``.py``), ``tests/kunit`` (``kunit/``), ``tests/guest/programs``
(``programs/``), ``tests/sim`` (``sim/``), ``tests/fuzz`` (``fuzz/``) and ``tests/tools`` (``tools/``).

"""


def document(source):
    """A page of docs/reference/documents: the rows of tests/abi/{source}.py."""
    folder = str(repo.path("tests/abi"))
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module = importlib.import_module(source)
    lines = [(row.where, row.item, row.status, TEST.sub(r"``\1``", row.why)) for row in module.ROWS]
    return DOCUMENT.format(source=source, title=module.TITLE, line="=" * len(module.TITLE),
                           introduction=module.INTRODUCTION) + table(("section", "row", "status", "test or reason"), lines)


def table(head, rows):
    """A simple table of reStructuredText; the last column is as long as it needs to be."""
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    rule = "  ".join("=" * width for width in widths)
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in [head, *rows]]
    return "\n".join([rule, lines[0], rule, *lines[1:], rule, ""])


def counters():
    """docs/reference/counters.rst"""
    header = "hghca/counters.h"
    counted = [(f"``{name}``", text) for name, text in interface.rows(header, "HGHCA_COUNTERS")]
    dropped = [(number, f"``{name}``", text) for name, number, text in interface.rows(header, "HGHCA_DROPS")]
    return "\n".join([COUNTERS_HEAD + COUNTERS + table(("counter", "what it counts"), counted),
                      DROPS + table(("number", "reason", "what is wrong"), dropped)])


# Path -> what its text is made by.
PAGES = {"docs/reference/counters.rst": counters,
         "docs/reference/documents/ernic.rst": lambda: document("ernic"),
         "docs/reference/documents/etrnic.rst": lambda: document("etrnic"),
         "docs/reference/documents/jingzhao.rst": lambda: document("conformance"),
         "docs/reference/documents/loopback.rst": lambda: document("loopback"),
         "docs/reference/documents/rsnic.rst": lambda: document("rsnic")}


def main(_):
    """Write all pages; the exit status."""
    for name, text in PAGES.items():
        (repo.ROOT / name).write_text(text())
        print(name)
    return 0
