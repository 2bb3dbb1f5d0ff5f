# SPDX-License-Identifier: GPL-2.0-or-later
"""The rows of the documents: what they name exists, and what is implemented has a test."""

import importlib
import re
import sys

from tool import same

from hghca_lib import repo

sys.path.insert(0, str(repo.path("tests/abi")))
import conformance  # noqa: E402
import rows  # noqa: E402

# Each document, and the least number of its rows.
DOCUMENTS = {"conformance": 400, "loopback": 100, "rsnic": 250}
# Where a file that a row names is.
FOLDERS = {".cc": ("tests/unit",), ".py": ("tests/qtest", "tests/guest/tests"),
           ".c": ("tests/kunit", "tests/guest/programs")}
NAMED = re.compile(r"\b(\w+)(\.(?:cc|c|py)): (\w+)")


def documents():
    return {name: importlib.import_module(name).ROWS for name in DOCUMENTS}


def source(stem, suffix):
    """The text of a file that a row names, "" if it does not exist."""
    paths = [repo.path(folder) / f"{stem}{suffix}" for folder in FOLDERS[suffix]]
    return "".join(path.read_text() for path in paths if path.is_file())


def missing(found):
    """What the rows name and no file has."""
    return [f"{row.where}, {row.item}: {named[0]}" for row in found for named in NAMED.finditer(row.why)
            if not re.search(rf"\b{named[3]}\b", source(named[1], named[2]))]


def unfounded(found):
    """Rows with another status, implemented ones without a test, and others without a reason."""
    return [(row.where, row.item) for row in found if row.status not in rows.STATUSES or not row.why or
            (row.status == rows.IMPLEMENTED and not NAMED.search(row.why) and "isolation: " not in row.why)]


def test_tests():
    """Each test that a row names exists, and each implemented row names one"""
    for name, found in documents().items():
        assert len(found) >= DOCUMENTS[name], f"{name}: only {len(found)} rows"
        same(missing(found), [], f"{name}: tests that are missing")
        same(unfounded(found), [], f"{name}: rows without a test or a reason")
        same(len({(row.where, row.item) for row in found}), len(found), f"{name}: rows that are not there twice")


def test_missing():
    """A test that does not exist, a row without one, and one without a reason are found"""
    absent = rows.Row("table 0", "row", rows.IMPLEMENTED, "loopback_test.cc: NoSuchTestAtAll")
    same(missing([absent]), ["table 0, row: loopback_test.cc: NoSuchTestAtAll"], "what is missing")
    same(unfounded([absent, rows.Row("1", "a", rows.IMPLEMENTED, "it is"), rows.Row("1", "b", rows.DEPARTS, ""),
                    rows.Row("1", "c", "done", "why")]), [("1", "a"), ("1", "b"), ("1", "c")], "what is unfounded")


def test_exceptions():
    """Each exception and each point is of a row"""
    known = {(row.where, row.item) for row in conformance.ROWS}
    same([each for each in (*conformance.EXCEPTIONS, *conformance.POINTS) if each not in known], [], "of no row")


def test_departures():
    """Section 15 has a point for each row that departs, and each that is named"""
    departs = {(row.where, row.item) for row in conformance.ROWS if row.status == conformance.DEPARTS}
    same(sorted(departs ^ set(conformance.POINTS)), [], "rows that depart without a point, or the reverse")
    lines = repo.path("docs/reference/hardware/departures.rst").read_text().splitlines()
    same([point for point in conformance.POINTS.values() if not any(line.startswith(f"{point} ") for line in lines)], [],
         "points that section 15 lacks")
