# SPDX-License-Identifier: GPL-2.0-or-later
"""The rows of the documents: what they name exists, and what is implemented has a test."""

import functools
import importlib
import re
import sys

from tool import same

from hghca_lib import interface, repo

sys.path.insert(0, str(repo.path("tests/abi")))
import family  # noqa: E402
import rows  # noqa: E402

# Each document, and the least number of its rows.
DOCUMENTS = {"conformance": 400, "ernic": 300, "etrnic": 500, "loopback": 100, "rsnic": 250}
# Findings of the reading line by line: how many each group has.
FINDINGS = {
    family.JINGZHAO: 46, family.SEGMENT: 26, family.HEALTH: 11, family.OPCODES: 7, family.FORMATS: 9,
    family.GAPS_OF_RSNIC: 26, family.BEFORE: 10, family.REGISTERS: 15, family.GAPS_OF_LOOPBACK: 24,
    family.DECIDED_OF_RSNIC: 13, family.DECIDED_OF_LOOPBACK: 7, family.FIRST_OF_ERNIC: 5, family.GAPS_OF_ETRNIC: 35,
    family.GAPS_OF_ERNIC: 5, family.MISSED_OF_ETRNIC: 23, family.MISSED_OF_ERNIC: 10, family.DECIDED_OF_ETRNIC: 8,
    family.DECIDED_OF_ERNIC: 12,
}
# Where each has its list of departures; that of the JingZhao HCA is section 15, which has its extensions too.
LISTS = {"conformance": "hardware/departures.rst", "ernic": "ernic.rst", "etrnic": "ernic.rst",
         "loopback": "loopback.rst", "rsnic": "rsnic.rst"}
# A test that a row names, FILE: NAME. Folders that have files of one name are named with them.
NAMED = re.compile(r"\b((?:(?:fuzz|kunit|programs|sim|tools)/)?\w+\.(?:cc|c|py)): (\w+)")
# (beginning of the file's name, end of it, folder, how a test begins there); the first that fits holds.
FUNCTION = r"^def (test_\w+)\("
KINDS = (
    ("fuzz/", ".cc", "tests/fuzz", r'^extern "C" int (\w+)\('),
    ("sim/", ".cc", "tests/sim", r'^ {8}\{"(\w+)", "'),
    ("kunit/", ".c", "tests/kunit", r"^\tKUNIT_CASE(?:_\w+)?\((\w+)"),
    ("programs/", ".c", "tests/guest/programs", r'^\t\{ "[^"]+", (\w+)'),
    ("tools/", "_cases.py", "tests/tools", FUNCTION),
    ("", "_cases.py", "tests/qtest", FUNCTION),
    ("", ".py", "tests/guest/tests", r"^@\w*test\((?:.|\n(?!def |@))*\)\ndef (\w+)\("),
    ("", ".cc", "tests/unit", r"^TEST(?:_F|_P)?\(\w+,\s+(\w+)\)"),
)
CASES = re.compile(r"^(?:static )?const struct tb_case \w+\[\] = \{\n(.*?)^\};", re.MULTILINE | re.DOTALL)


def documents():
    return {name: importlib.import_module(name).ROWS for name in DOCUMENTS}


@functools.cache
def tests_of(file):
    """The names of the tests in a file that a row names; none if it does not exist, or has no folder and needs one."""
    kind = next((each for each in KINDS if file.startswith(each[0]) and file.endswith(each[1])), None)
    path = repo.path(kind[2]) / file.removeprefix(kind[0]) if kind else None
    if not path or not path.is_file():
        return []
    text = path.read_text()
    if kind[0] == "programs/":
        text = "".join(CASES.findall(text))
    return re.findall(kind[3], text, re.MULTILINE)


def missing(found):
    """What the rows name and is not one test of the file."""
    return [f"{row.where}, {row.item}: {named[0]}" for row in found for named in NAMED.finditer(row.why)
            if tests_of(named[1]).count(named[2]) != 1]


def unfounded(found):
    """Rows with another status, implemented ones without a test, and others without a reason."""
    return [(row.where, row.item) for row in found if row.status not in rows.STATUSES or not row.why or
            (row.status == rows.IMPLEMENTED and not NAMED.search(row.why))]


def test_tests():
    """Each test that a row names exists, and each implemented row names one"""
    for name, found in documents().items():
        assert len(found) >= DOCUMENTS[name], f"{name}: only {len(found)} rows"
        same(missing(found), [], f"{name}: tests that are missing")
        same(unfounded(found), [], f"{name}: rows without a test or a reason")
        same(len({(row.where, row.item) for row in found}), len(found), f"{name}: rows that are not there twice")


def test_missing():
    """A test that does not exist, a name of something else, a row without a test or a reason are found"""
    absent = rows.Row("table 0", "row", rows.IMPLEMENTED, "loopback_test.cc: NoSuchTestAtAll")
    # Functions and words of the files that are no tests, files without their folder, and files that do not exist.
    wrong = ["loopback_test.cc: NoSuchTestAtAll", "loopback_test.cc: Loopback", "programs/loopback.c: submit",
             "loopback.c: a_transfer", "kunit/loopback.c: a_transfer", "programs/badcalls.c: make_region",
             "rsnic.py: losses_of", "rsnic.py: exchange", "base_cases.py: main", "tools/rsnic_cases.py: registers",
             "none_test.cc: None", "kunit/none.c: none", "sim/scenarios.cc: make_ernic", "fuzz/ernic.cc: post"]
    same(missing([rows.Row("table 0", "row", rows.IMPLEMENTED, why) for why in wrong]),
         [f"table 0, row: {why}" for why in wrong], "what is missing")
    sound = ["loopback_test.cc: QueuesWrap", "programs/loopback.c: a_transfer", "kunit/loopback.c: loopback_copy",
             "rsnic.py: health", "base_cases.py: test_identity", "tools/rsnic_cases.py: test_registers",
             "sim/scenarios.cc: ernic", "fuzz/ernic.cc: LLVMFuzzerTestOneInput"]
    same(missing([rows.Row("table 0", "row", rows.IMPLEMENTED, "; ".join(sound))]), [], "tests that exist")
    same(unfounded([absent, rows.Row("1", "a", rows.IMPLEMENTED, "it is"), rows.Row("1", "b", rows.DEPARTS, ""),
                    rows.Row("1", "c", "done", "why")]), [("1", "a"), ("1", "b"), ("1", "c")], "what is unfounded")


def test_exceptions():
    """Each exception and each point is of a row"""
    for name, found in documents().items():
        module = importlib.import_module(name)
        known = {(row.where, row.item) for row in found}
        same([each for each in (*getattr(module, "EXCEPTIONS", ()), *module.POINTS) if each not in known], [],
             f"{name}: of no row")


def points(page):
    """The points in a page's list of departures; one of several lines is several here."""
    tables = [table for table in interface.tables(repo.path(f"docs/reference/{page}").read_text())
              if table.head == ["point", "what the device does, and why"]]
    same(len(tables), 1, f"{page}: lists of departures")
    return [row[0] for row in tables[0].rows]


def test_departures():
    """Each document has a list with a point for each row that departs, and each that is named"""
    for name, found in documents().items():
        named = importlib.import_module(name).POINTS
        departs = {(row.where, row.item) for row in found if row.status == rows.DEPARTS}
        same(sorted(departs ^ set(named)), [], f"{name}: rows that depart without a point, or the reverse")
        same(sorted(set(named.values()) - set(points(LISTS[name]))), [], f"{name}: points that the list lacks")
    for name in sorted(set(LISTS.values()) - {LISTS["conformance"]}):
        modules = [importlib.import_module(document) for document in LISTS if LISTS[document] == name]
        named = {point for module in modules for point in module.POINTS.values()}
        same(sorted(points(name)), sorted(named), f"{name}: points of no row")


def keys(group):
    return [key for key, *_ in group.findings]


def unanswered(group, found):
    """Findings without a row, or with one that the document does not have or that has neither a test nor a reason."""
    wrong = []
    for key, _, *references in group.findings:
        answers = [family.answers(reference, found) for reference in references]
        every = [row for each in answers for row in each]
        if not references or not all(answers) or unfounded(every) or missing(every):
            wrong.append(key)
    return wrong


def test_findings():
    """Each finding of the reading line by line has rows of the reference, with a test or a reason"""
    same(set(family.GROUPS), set(FINDINGS), "groups")
    for group in family.GROUPS:
        same((len(group.findings), len(set(keys(group)))), (FINDINGS[group],) * 2, f"{group.title}: findings")
        same(unanswered(group, documents()[group.document]), [], f"{group.title}: findings without an answer")
    same(keys(family.GAPS_OF_RSNIC), [f"R{number}" for number in range(1, 27)], "gaps of RSNIC")
    same(keys(family.GAPS_OF_LOOPBACK), [f"L{number}" for number in range(1, 25)], "gaps of the loopback controller")
    for groups, last in (((family.GAPS_OF_ETRNIC, family.GAPS_OF_ERNIC), 40),
                         ((family.DECIDED_OF_ETRNIC, family.DECIDED_OF_ERNIC), 20)):
        same(sorted(int(key) for group in groups for key in keys(group)), [*range(1, last + 1)], groups[0].title)
    same(keys(family.DECIDED_OF_RSNIC) + keys(family.DECIDED_OF_LOOPBACK), [str(number) for number in range(1, 21)],
         "decisions")


def test_unanswered():
    """A finding without a row, one whose row is not there, and one whose row has no test are found"""
    found = [rows.Row("1", "it is", rows.IMPLEMENTED, "loopback_test.cc: QueuesWrap"),
             rows.Row("1", "it may", rows.IMPLEMENTED, "it does"), rows.Row("2", "it", rows.DEPARTS, "why")]
    group = family.Group("of this test", "none", (
        ("sound", "", ("1", "it is"), ("2", "...")), ("none", ""), ("absent", "", ("1", "it is"), ("2", "it is")),
        ("untested", "", ("1", "it may")), ("some untested", "", ("1", "it ...")), ("part", "", ("1", "it"))))
    same(unanswered(group, found), ["none", "absent", "untested", "some untested", "part"], "without an answer")
