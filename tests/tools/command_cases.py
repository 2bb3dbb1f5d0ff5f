# SPDX-License-Identifier: GPL-2.0-or-later
"""The headers' tables of commands and capabilities agree with the document's, and KUnit tries what the driver sends."""

import re
from typing import NamedTuple

from tool import same

from hghca_lib import interface, repo

# "0x019.." of the document: the transitions, whose names and numbers are in 4.9 and in the header.
TRANSITIONS = re.compile(r"\w+_QPEE")


class Row(NamedTuple):
    """A row of the document's table: what stands in its columns."""

    op: int
    input: str
    output: str
    extension: bool
    in_modifier: str
    op_modifier: str


# What the document has for the in_modifiers that are one value.
IN_MODIFIERS = {"0": "0", "0x1f": "HGHCA_NOP_IN_MODIFIER", "port, 1": "1"}


def header():
    """Name -> opcode, of the header."""
    return {name: command.op for name, command in interface.commands().items()}


def document():
    """Name -> Row, of section 4's table."""
    text = interface.document()
    text = text[text.index("\n4. Commands\n"):]
    rule = re.search(r"^=+ .*=$", text, re.MULTILINE)
    columns = [match.start() for match in re.finditer("=+", rule.group())]
    found = {}
    lines = text[rule.end():text.index("\n4.1 ")].splitlines()
    for line, below in zip(lines, [*lines[1:], ""]):
        row = re.match(r"0x(\w{3}) +(\w+)( \*\*ext\*\*)?", line)
        if row:
            rest = re.split(" {2,}", line[row.end():].strip())
            kinds = [word for word in rest if word in ("mbox", "imm")]
            # **ext** may push what follows to the right, by less than a column.
            is_out = kinds and line.find(kinds[0], row.end()) >= columns[3] - 1
            modifiers = [word for word in rest if word not in ("mbox", "imm") and word]
            found[row[2]] = Row(int(row[1], 16), *(["", kinds[0]] if is_out else [*kinds, "", ""][:2]),
                                bool(row[3] or below.strip() == "**ext**"), *[*modifiers, "", ""][:2])
    return found


def op_modifiers(text):
    """The column op_modifier as the header has it: a mask, or ANY where no number is named."""
    values = [int(value) for value in re.findall(r"\b\d+\b", re.sub(r"\(.*?\)", "", text))]
    return sum(1 << value for value in values) if values else "ANY"


def test_document():
    """The document's table of commands has all of the header's, and no other, with the same columns"""
    known = {name: row for name, row in interface.commands().items() if not TRANSITIONS.fullmatch(name)}
    assert len(known) > 40, f"only {len(known)} commands were found"
    kinds = {"NONE": "", "IMM": "imm", "MBOX": "mbox", "OPT": "mbox"}
    same({name: (*row[:4], IN_MODIFIERS.get(row.in_modifier, "ANY"), op_modifiers(row.op_modifier))
          for name, row in document().items()},
         {name: (row.op, kinds[row.input], kinds[row.output], row.capability != "BASE", row.in_modifier,
                 row.op_modifiers if row.op_modifiers == "ANY" else int(row.op_modifiers, 16))
          for name, row in known.items()}, "commands")


def test_before_init():
    """The document names each command that works before INIT_HCA"""
    text = interface.document()
    named = re.search(r"Every command but\s(.*?)\sgives\s+BAD_SYS_STATE before INIT_HCA", text, re.DOTALL)[1]
    same(sorted(re.findall(r"[A-Z]\w+", named)),
         sorted(name for name, row in interface.commands().items() if row.when == "ANY"), "commands")


def test_capabilities():
    """The document's table of capabilities has all of the header's, and no other, with their bits"""
    text = interface.document()
    table = text[text.index("\ncapability    bit "):]
    table = table[:table.index("\n\n")]
    same({name: int(bit) for name, bit in re.findall(r"^(\w+) +(\d+) ", table, re.MULTILINE)}, interface.capabilities(),
         "capabilities")


def test_lost_capabilities():
    """The page of what users lose has a row for each capability, and no other; the guest's program has a case of each"""
    text = repo.path("docs/reference/capabilities.md").read_text()
    same(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE), list(interface.capabilities()), "capabilities")
    program = repo.path("tests/guest/programs/lacking.c").read_text()
    same(re.findall(r'^\t\{ "([A-Z_]+)", \w+ \},$', program, re.MULTILINE), list(interface.capabilities()), "cases")


def test_kunit_commands():
    """KUnit's table has each command that the driver sends, once at least"""
    text = repo.path("tests/kunit/commands.c").read_text()
    table = text[text.index("typed_commands[] = {"):]
    rows = {int(op, 16) for op in re.findall(r"^\t\{ \"[^\"]+\", \w+, (0x\w+)", table, re.MULTILINE)}
    sent = {name for path in repo.path("kernel").rglob("*.c")
            for name in re.findall(r"\bHGHCA_CMD_(\w+)", path.read_text())} & set(header())
    assert len(sent) > 40, f"only {len(sent)} commands are sent"
    # The transitions are one function of the driver, and tests/kunit/transitions.c has all of them.
    same([name for name, op in header().items() if name in sent and op not in rows and not TRANSITIONS.fullmatch(name)],
         [], "commands that are missing")


def test_columns():
    """The columns of the document's table are read as they stand"""
    rows = document()
    same({name: rows[name][1:] for name in ("NOP", "INIT_HCA", "QUERY_QP", "UNMAP_ICM", "MAD_IFC", "MGID_HASH",
                                            "QUERY_SRQ", "SET_QP_COUNTER", "READ_ERROR_BUFFER", "SET_GID")},
         {"NOP": ("", "", False, "0x1f", "0"), "INIT_HCA": ("mbox", "", False, "0", "0"),
          "QUERY_QP": ("", "mbox", False, "qpn", "0"),
          "UNMAP_ICM": ("imm", "", False, "number of 4 KB pages", "1 ctx, 2 TPT"),
          "MAD_IFC": ("mbox", "mbox", False, "", ""), "MGID_HASH": ("mbox", "imm", True, "0", "0"),
          "QUERY_SRQ": ("", "mbox", True, "srqn", "0"), "SET_QP_COUNTER": ("imm", "", True, "qpn", "0"),
          "READ_ERROR_BUFFER": ("", "mbox", True, "number of the first packet", "0"),
          "SET_GID": ("mbox", "", True, "GID index", "0 set 1 clear")}, "columns")
