# SPDX-License-Identifier: GPL-2.0-or-later
"""The pages that are written from tables agree with them."""

import re

from tool import same

from hghca_lib import generated, repo

HEADER = "include/hghca/counters.h"
PAGE = "docs/reference/counters.rst"


def test_pages():
    """Each page that `tools/hghca pages` writes is as the tables are now"""
    for name, text in generated.PAGES.items():
        same(repo.path(name).read_text().splitlines(), text().splitlines(), f"lines of {name}; run tools/hghca pages")


def test_counters():
    """The page of counters has each counter and drop reason of the header"""
    page, header = repo.path(PAGE).read_text(), repo.path(HEADER).read_text()
    counters = re.findall(r'^\tX\((\w+),\t+"([^"]+)"\)', header, re.MULTILINE)
    drops = re.findall(r'^\tX\((\w+),\s+(\d+),\s+"([^"]+)"\)', header, re.MULTILINE)
    assert len(counters) > 60 and len(drops) > 20, f"only {len(counters)} counters and {len(drops)} reasons were found"
    same(re.findall(r"^``(\w+)`` +(\S.*)$", page, re.MULTILINE), counters, "counters")
    same(re.findall(r"^(\d+) +``(\w+)`` +(\S.*)$", page, re.MULTILINE),
         [(number, name, text) for name, number, text in drops], "drop reasons")
