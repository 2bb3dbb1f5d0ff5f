# SPDX-License-Identifier: GPL-2.0-or-later
"""The tables of QP transitions, their attributes, opcodes, syndromes and events in the headers agree with the document's."""

import re

from tool import same

from hghca_lib import interface

# What the document calls the sets of states.
STATES = {"any": "ANY", "any but RST": "NOT_RST"}


def table(heading, start="4.9 ", end="4.10 "):
    """The rows of a table of a section, whose first column has this heading: lists of cells, continued lines joined."""
    text = interface.document()
    lines = text[text.index(f"\n{start}"):text.index(f"\n{end}")].splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith(f"{heading} "))
    columns = [match.span() for match in re.finditer("=+", lines[first - 1])]
    found = []
    for line in lines[first + 2:]:
        if line.startswith("=="):
            return found
        cells = [line[start:end].strip() for start, end in columns]
        if cells[0]:
            found.append(cells)
        else:
            found[-1] = [f"{old} {new}".strip() for old, new in zip(found[-1], cells)]


def test_transitions():
    """The document's table of transitions has all of the header's, and no other, with their opcodes and states"""
    commands = interface.commands()
    same({name: (int(op, 16), STATES.get(start, start), end) for name, op, start, end in table("command")},
         {f"{name}_QPEE": (commands[f"{name}_QPEE"].op, *states) for name, states in interface.transitions().items()},
         "transitions")


def test_attributes():
    """The document's table of attributes has all of the header's, and no other"""
    found, names = {}, []
    for transitions, services, required, optional in table("transition"):
        names = names if transitions == "\\" else transitions.split(", ")
        for name in names:
            for service in services.split():
                if service != "none":
                    found[name, service] = set(required.split()), set(optional.split())
    assert len(found) > 30, f"only {len(found)} rows were found"
    same(found, interface.attribute_rules(), "attributes")


def test_syndromes():
    """The document's table of syndromes has all of the header's, and no other, with their statuses"""
    found = {name: (status, int(value, 16)) for value, name, status, _ in table("value", "7. Completion", "8. States")}
    same(found, interface.syndromes(), "syndromes")


def test_opcodes():
    """The document's table of opcodes has all of the header's, and no other"""
    found = {name.removesuffix(" **ext**"): int(value, 16) for value, name, _ in table("value", "6. Work", "7. Completion")}
    same(found, interface.opcodes(), "opcodes")


def test_events():
    """The document's table of event types has all of the header's, and no other"""
    found = {name.removesuffix(" **ext**"): int(value, 16) for value, name, _ in table("type", "10. Event", "10.1 Catas")}
    same(found, interface.events(), "events")
