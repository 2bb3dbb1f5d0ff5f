# SPDX-License-Identifier: GPL-2.0-or-later
"""The tables of include/hghca, for tests and checks that are not in C."""

import re
from typing import NamedTuple

from . import repo

# A row X(...) and its columns, with one level of nested parentheses, and with commas in strings.
ROW = re.compile(r"\bX\(((?:[^()]|\([^()]*\))*)\)")
CELL = re.compile(r'\s*("[^"]*"|(?:[^,"()]|\([^()]*\))+)')


# The chapters, as the table of the overview names them.
PAGE = re.compile(r"<(hardware/\w+\.rst)>")


def pages():
    """The paths of the interface document: the overview, then each chapter in the order of its sections."""
    overview = repo.path("docs/reference/hardware-interface.rst")
    return [overview, *(overview.parent / name for name in PAGE.findall(overview.read_text()))]


def document():
    """The text of the interface document, all its pages one behind the other."""
    return "\n".join(path.read_text() for path in pages())


# The rule above, below and under the head of a simple table of more than one column.
RULE = re.compile(r"=+(?: +=+)+")


class Table(NamedTuple):
    """A table of the document.

    start: where it begins in the text.
    head:  the headings of its columns.
    rows:  lists of cells, continued lines joined.
    """

    start: int
    head: list
    rows: list


def tables(text):
    """Each simple table of a text that has a head of one line. A row without a first cell continues the one above."""
    found, at, rules, lines = [], 0, [], []
    for line in [*text.splitlines(keepends=True), "\n"]:
        if RULE.fullmatch(line.strip()):
            rules.append((at, line.strip()))
        elif rules and not line.strip():
            # It ends with a rule before an empty line; a table without a head has two rules.
            if len(rules) == 3 and len(lines) > 1:
                spans = [match.span() for match in re.finditer("=+", rules[0][1])]
                # The last column is as long as it needs to be.
                spans[-1] = spans[-1][0], None
                head, *body = ([each[start:end].strip() for start, end in spans] for each in lines)
                found.append(Table(rules[0][0], head, joined(body)))
            rules, lines = [], []
        elif rules:
            lines.append(line.rstrip("\n"))
        at += len(line)
    return found


def joined(body):
    """The rows of a table, those that continue another one joined to it."""
    found = []
    for cells in body:
        if cells[0] or not found:
            found.append(cells)
        else:
            found[-1] = [f"{old} {new}".strip() for old, new in zip(found[-1], cells)]
    return found


class Command(NamedTuple):
    """A row of HGHCA_COMMANDS; the header defines the columns."""

    op: int
    function: str
    input: str
    output: str
    when: str
    in_modifier: str
    op_modifiers: str
    capability: str


def rows(header, macro):
    """The rows of a table, each a list of its columns as they are written, strings without their quotes."""
    text = repo.path(f"include/{header}").read_text()
    body = re.search(rf"^#define {macro}\([XA, ]+\) \\\n((?:.*\\\n)*.*)\n", text, re.MULTILINE)[1]
    return [[cell.strip().strip('"') for cell in CELL.findall(row)] for row in ROW.findall(body.replace("\\\n", ""))]


def commands():
    """Name -> Command."""
    return {name: Command(int(op, 16), function, *columns)
            for name, function, op, *columns in rows("hghca/cmd.h", "HGHCA_COMMANDS")}


def capabilities():
    """Name -> bit."""
    return {name: int(bit) for name, bit, _ in rows("hghca/cmd.h", "HGHCA_CAPABILITIES")}


def transitions():
    """Name of a transition -> (from, to), as HGHCA_QP_TRANSITIONS has them."""
    return {name: (start, end) for name, start, end in rows("hghca/qp.h", "HGHCA_QP_TRANSITIONS")}


def attributes():
    """Name -> bit of opt_param_mask."""
    return {name: int(bit) for name, bit in rows("hghca/qp.h", "HGHCA_QP_ATTRIBUTES")}


def attribute_rules():
    """(transition, service) -> (required, optional), sets of names of attributes."""
    return {(transition, service): tuple(set(re.findall(r"A\((\w+)\)", cell)) for cell in masks)
            for transition, service, *masks in rows("hghca/qp.h", "HGHCA_QP_RULES")}


def opcodes():
    """Name -> number of an opcode of WQEs and of error CQEs."""
    return {name: int(value, 16) for name, value in rows("hghca/wqe.h", "HGHCA_OPCODES")}


def syndromes():
    """Name -> (status of ib_wc and ibv_wc, number)."""
    return {name: (status, int(value, 16)) for name, status, value in rows("hghca/cqe.h", "HGHCA_SYNDROMES")}


def events():
    """Name -> number of an event type."""
    return {name: int(value, 16) for name, value in rows("hghca/eqe.h", "HGHCA_EVENTS")}


def module():
    """The tables as a Python module of literals, for a guest, which has no headers."""
    found = {name: tuple(command) for name, command in commands().items()}
    return "\n".join([
        '"""Written from the tables of include/hghca.',
        "",
        f"COMMANDS: name -> ({', '.join(Command._fields)})",
        "CAPABILITIES: name -> bit",
        '"""',
        "",
        "COMMANDS = {",
        *(f"    {name!r}: {row!r}," for name, row in found.items()),
        "}",
        f"CAPABILITIES = {capabilities()!r}",
        ""])
