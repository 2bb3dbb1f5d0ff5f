# SPDX-License-Identifier: GPL-2.0-or-later
"""The tables of commands and of capabilities in the headers agree with the document's; KUnit tries what the driver sends."""

import re

from tool import same

from hghca_lib import interface, repo

# "0x019.." of the document: the transitions, whose names and numbers are in 4.9 and in the header.
TRANSITIONS = re.compile(r"\w+_QPEE")


def header():
    """Name -> opcode, of the header."""
    return {name: command.op for name, command in interface.commands().items()}


def document():
    """Name -> (opcode, what stands in the columns `in` and `out`, whether it is an extension), of section 4's table."""
    text = repo.path("docs/hardware-interface.rst").read_text()
    text = text[text.index("\n4. Commands\n"):]
    rule = re.search(r"^=+ .*=$", text, re.MULTILINE)
    columns = [(match.start(), match.end()) for match in re.finditer("=+", rule.group())]
    found = {}
    lines = text[rule.end():text.index("\n4.1 ")].splitlines()
    for line, below in zip(lines, [*lines[1:], ""]):
        row = re.match(r"0x(\w{3}) +(\w+)( \*\*ext\*\*)?", line)
        if row:
            # **ext** may push what follows to the right, by less than a column.
            kinds = re.findall(r"mbox|imm", line[row.end():columns[3][1] + 1])
            first = line.find(kinds[0], row.end()) if kinds else 0
            is_out = kinds and first >= columns[3][0] - 1
            sides = ["", kinds[0]] if is_out else [*kinds, "", ""][:2]
            found[row[2]] = (int(row[1], 16), *sides, bool(row[3] or below.strip() == "**ext**"))
    return found


def test_document():
    """The document's table of commands has all of the header's, and no other, with the same columns"""
    known = interface.commands()
    assert len(known) > 50, f"only {len(known)} commands were found"
    kinds = {"NONE": "", "IMM": "imm", "MBOX": "mbox", "OPT": "mbox"}
    same(document(), {name: (row.op, kinds[row.input], kinds[row.output], row.capability != "BASE")
                      for name, row in known.items() if not TRANSITIONS.fullmatch(name)}, "commands")


def test_before_init():
    """The document names each command that works before INIT_HCA"""
    text = repo.path("docs/hardware-interface.rst").read_text()
    named = re.search(r"Every command but\s(.*?)\sgives\s+BAD_SYS_STATE before INIT_HCA", text, re.DOTALL)[1]
    same(sorted(re.findall(r"[A-Z]\w+", named)),
         sorted(name for name, row in interface.commands().items() if row.when == "ANY"), "commands")


def test_capabilities():
    """The document's table of capabilities has all of the header's, and no other, with their bits"""
    text = repo.path("docs/hardware-interface.rst").read_text()
    table = text[text.index("\ncapability    bit "):]
    table = table[:table.index("\n\n")]
    same({name: int(bit) for name, bit in re.findall(r"^(\w+) +(\d+) ", table, re.MULTILINE)}, interface.capabilities(),
         "capabilities")


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


def test_columns():
    """The columns of the document's table are read as they stand"""
    rows = document()
    same([rows[name][1:] for name in ("NOP", "INIT_HCA", "QUERY_QP", "UNMAP_ICM", "MAD_IFC", "MGID_HASH", "QUERY_SRQ",
                                      "SET_QP_COUNTER", "READ_ERROR_BUFFER")],
         [("", "", False), ("mbox", "", False), ("", "mbox", False), ("imm", "", False), ("mbox", "mbox", False),
          ("mbox", "imm", True), ("", "mbox", True), ("imm", "", True), ("", "mbox", True)], "in, out and extension")
