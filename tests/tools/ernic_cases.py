# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of the ERNIC has the registers, codes and bits of the header, and the counters of the model."""

import re

from tool import same

from hghca_lib import interface, repo

PAGE = repo.path("docs/reference/ernic.rst")
HEADER = "ernic_hw.h"
BOTH = {"BOTH": "both"}


def rows(*head):
    """The rows of the page's table whose columns have these headings."""
    table, = (table for table in interface.tables(PAGE.read_text()) if table.head == list(head))
    return table.rows


def words(row):
    """A row of the header's table as the page has it: hexadecimal numbers without 0x."""
    return [BOTH.get(word, word).removeprefix("0x") for word in row]


def test_registers():
    """The page of the ERNIC has each register with its offset, access, bits and personality"""
    registers = [words(row) for row in interface.rows(HEADER, "ERNIC_GLOBAL_REGISTERS")]
    same(len(registers) > 60, True, "registers were found")
    same([[name, offset, access, bits, who] for offset, name, access, bits, who, _, _ in
          rows("offset", "name", "access", "bits", "personality", "source", "content")], registers, "global registers")
    same([[name, offset, access, bits, who, first] for offset, name, access, bits, who, first, _, _ in
          rows("offset", "name", "access", "bits", "personality", "first QP", "source", "content")],
         [words(row) for row in interface.rows(HEADER, "ERNIC_QP_REGISTERS")], "registers of a QP")
    same([[name, offset, bits] for offset, name, bits, _, _ in rows("offset", "name", "bits", "source", "content")],
         [words(row) for row in interface.rows(HEADER, "ERNIC_PD_REGISTERS")], "registers of a protection domain")


def test_sources():
    """Each register of the ERNIC alone is public or ours, and each of the ETRNIC is of document 000"""
    for *_, who, source, content in rows("offset", "name", "access", "bits", "personality", "source", "content"):
        same(source in {"ERNIC": ("public", "ours"), "ETRNIC": ("000",), "both": ("000", "ours")}[who], True, content)


def test_codes():
    """The page of the ERNIC has each FATAL code, syndrome bit, interrupt and opcode"""
    same([[name, f"0x{code}", text] for code, name, _, text in rows("code", "name", "source", "the QP is fatal because")],
         [[*row] for row in interface.rows(HEADER, "ERNIC_FATALS")], "FATAL codes")
    same([[name, bit, precedence, text] for bit, precedence, name, text in rows("bit", "precedence", "name", "what is wrong")],
         [[*row] for row in interface.rows(HEADER, "ERNIC_SYNDROMES")], "bits of the syndrome")
    same([[name, bit, text] for bit, name, text in rows("bit", "name", "pending")],
         [[*row] for row in interface.rows(HEADER, "ERNIC_INTERRUPTS")], "interrupts")
    same([[name, f"0x{code}", who] for code, name, who in rows("opcode", "name", "personality")],
         [[BOTH.get(word, word) for word in row] for row in interface.rows(HEADER, "ERNIC_OPCODES")], "opcodes")


def test_counters():
    """The page of the ERNIC names each counter of the model"""
    text = repo.path("qemu-device/core/ernic/stats.h").read_text()
    counters = re.findall(r"^ +X\((\w+),", text, re.MULTILINE)
    same(len(counters) > 5, True, "counters were found")
    section = PAGE.read_text().partition("``stats`` has counters:")[2].partition("The trace events")[0]
    same(re.findall(r"``(\w+)``", section), counters, "counters")
