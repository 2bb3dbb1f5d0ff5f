# SPDX-License-Identifier: GPL-2.0-or-later
"""Every command of the interface stands in each table that must have it."""

import re

from tool import same

from hghca_lib import repo

# "0x019.." of the document: the transitions, whose names and numbers are in 4.9 and in the header.
TRANSITIONS = re.compile(r"\w+_QPEE")


def header():
    """Name -> opcode, of the header."""
    text = repo.path("include/hghca_hw.h").read_text()
    found = re.findall(r"^\tHGHCA_CMD_(\w+)\s*= 0x(\w+),", text[:text.index("HGHCA_CMD_STAT_OK")], re.MULTILINE)
    return {name: int(op, 16) for name, op in found}


def document():
    """Name -> (opcode, what stands in the columns `in` and `out`), of the table of section 4."""
    text = repo.path("docs/hardware-interface.rst").read_text()
    text = text[text.index("\n4. Commands\n"):]
    rule = re.search(r"^=+ .*=$", text, re.MULTILINE)
    columns = [(match.start(), match.end()) for match in re.finditer("=+", rule.group())]
    found = {}
    for line in text[rule.end():text.index("\n4.1 ")].splitlines():
        row = re.match(r"0x(\w{3}) +(\w+)( \*\*ext\*\*)?", line)
        if row:
            # **ext** may push what follows to the right, by less than a column.
            kinds = re.findall(r"mbox|imm", line[row.end():columns[3][1] + 1])
            first = line.find(kinds[0], row.end()) if kinds else 0
            is_out = kinds and first >= columns[3][0] - 1
            sides = ["", kinds[0]] if is_out else [*kinds, "", ""][:2]
            found[row[2]] = (int(row[1], 16), *sides)
    return found


def cases(text, function):
    """The opcodes of the cases of a C function."""
    body = re.search(rf"^static bool {function}\(.*?^}}", text, re.MULTILINE | re.DOTALL).group()
    found = set()
    for first, last in re.findall(r"case (0x\w+)(?: \.\.\. (0x\w+))?:", body):
        found |= set(range(int(first, 16), int(last or first, 16) + 1))
    return found


def missing(wanted, found):
    return sorted(set(wanted) - set(found))


def test_document():
    """The document's table of commands has all of the header's, and no other, with its opcodes"""
    known, rows = header(), document()
    assert len(known) > 50, f"only {len(known)} commands were found"
    same({name: row[0] for name, row in rows.items()},
         {name: op for name, op in known.items() if not TRANSITIONS.fullmatch(name)}, "commands")


def test_core():
    """The device's table has all of the header's commands"""
    rows = re.findall(r"^        \{HGHCA_CMD_(\w+), &", repo.path("qemu-device/core/commands.cc").read_text(), re.MULTILINE)
    same(sorted(rows), sorted(header()), "commands")


def test_fuzzer():
    """The fuzzer of commands finds as many as the header has"""
    text = repo.path("tests/fuzz/commands.cc").read_text()
    same(int(re.search(r"^constexpr size_t kCommands = (\d+);$", text, re.MULTILINE)[1]), len(header()), "commands")


def test_guest():
    """The guest's test of bad commands knows all of the header's by their opcodes"""
    text = repo.path("tests/guest/agents/badcmd.py").read_text()
    numbers = {}
    for names, values in re.findall(r"^([A-Z][A-Z0-9_, ]+) = (0x[0-9A-Fx, ]+)$", text, re.MULTILINE):
        numbers.update(zip(names.split(", "), (int(value, 16) for value in values.split(", "))))
    same(missing(header().values(), numbers.values()), [], "opcodes that are missing")


def test_kunit_commands():
    """KUnit's table has each command that the driver sends, once at least"""
    text = repo.path("tests/kunit/commands.c").read_text()
    table = text[text.index("typed_commands[] = {"):]
    rows = {int(op, 16) for op in re.findall(r"^\t\{ \"[^\"]+\", \w+, (0x\w+)", table, re.MULTILINE)}
    sent = {name for path in repo.path("kernel").glob("*.c")
            for name in re.findall(r"\bHGHCA_CMD_(\w+)", path.read_text())} & set(header())
    assert len(sent) > 50, f"only {len(sent)} commands are sent"
    # The transitions are one function of the driver, and tests/kunit/transitions.c has all of them.
    same([name for name, op in header().items() if name in sent and op not in rows and not TRANSITIONS.fullmatch(name)],
         [], "commands that are missing")


def test_kunit_fake():
    """KUnit's device has a mailbox where the document's table says so"""
    text = repo.path("tests/kunit/fake.c").read_text()
    transitions = {op for name, op in header().items() if TRANSITIONS.fullmatch(name)}
    same(cases(text, "fake_has_input"), transitions | {op for op, into, _ in document().values() if into == "mbox"},
         "input mailboxes")
    same(cases(text, "fake_has_output"), {op for op, _, out in document().values() if out == "mbox"}, "output mailboxes")


def test_columns():
    """The columns of the document's table are read as they stand"""
    rows = document()
    same([rows[name][1:] for name in ("NOP", "INIT_HCA", "QUERY_QP", "UNMAP_ICM", "MAD_IFC", "MGID_HASH", "QUERY_SRQ",
                                      "SET_QP_COUNTER", "READ_ERROR_BUFFER")],
         [("", ""), ("mbox", ""), ("", "mbox"), ("imm", ""), ("mbox", "mbox"), ("mbox", "imm"), ("", "mbox"),
          ("imm", ""), ("", "mbox")], "in and out")
