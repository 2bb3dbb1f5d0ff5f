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
