# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of RSNIC has the registers, health syndromes and capabilities of the headers, and the document's names."""

import re
import sys

from tool import same

from hghca_lib import fields, interface, repo

sys.path.insert(0, str(repo.path("tests/abi")))
import rsnic  # noqa: E402

PAGE = repo.path("docs/reference/rsnic.rst")
SEGMENT, CAPS = "hghca/segment.h", "hghca/rsnic_caps.h"
# Masks of segment.h that are not of the segment: the owner of an entry.
OF_ENTRIES = {"HGHCA_CMDQ_HW"}
# Names of the document, and how the page reads them.
READ_AS = {"num_mttts": "num_mtts", "fmr_reserved_mttts": "fmr_reserved_mtts", "reserved_mttts": "reserved_mtts"}
# "int num_qps", "u64 def_mac[]", "struct mlx4_spec_qps *spec_qps", and what stands behind it.
MEMBER = re.compile(r"(?:struct |enum )?\w+ \*?(\w+)(?:\[\w*\])?(?::|$)")


def rows(*head):
    """The rows of the page's table whose columns have these headings."""
    table, = (table for table in interface.tables(PAGE.read_text()) if table.head == list(head))
    return table.rows


def registers():
    """The rows of the segment's table: (offset, bits, access)."""
    return [(int(offset, 16), bits, access) for offset, bits, access, *_ in rows("offset", "bits", "access", "name", "content")]


def bits_of(mask):
    """HIGH:LOW, or BIT."""
    low, high = (mask & -mask).bit_length() - 1, mask.bit_length() - 1
    return str(low) if low == high else f"{high}:{low}"


def test_registers():
    """The page of RSNIC has each register of the segment with its offset and access"""
    known = [(int(offset, 16), access) for _, offset, access in interface.rows(SEGMENT, "HGHCA_SEG_REGISTERS")]
    same(len(known) > 10, True, "registers were found")
    same(sorted({offset for offset, _, _ in registers()}), sorted(offset for offset, _ in known), "offsets")
    # A register that is RW may have parts that are not.
    wrong = [(offset, access) for offset, access in known
             if access not in {other for at, _, other in registers() if at == offset}]
    same(wrong, [], "registers with another access")


def test_bits():
    """The bits of the segment's registers are those of the header's masks"""
    header = fields.without_comments(repo.path(f"include/{SEGMENT}").read_text())
    masks = fields.masks(header)
    same(OF_ENTRIES - masks.keys(), set(), "masks that are missing")
    same(sorted(bits for _, bits, _ in registers() if bits != "31:0"),
         sorted(bits_of(mask) for name, mask in masks.items() if name not in OF_ENTRIES), "bits")


def test_syndromes():
    """The page of RSNIC has each health syndrome of the header, and no other"""
    known = {name: int(value, 16) for name, value in interface.rows(SEGMENT, "HGHCA_HEALTH_SYNDROMES")}
    same({name: int(value, 16) for value, name, _ in rows("value", "name", "cause")},
         {name: value for name, value in known.items() if value}, "syndromes")


def test_capabilities():
    """The page of RSNIC has each member of the header's structure of capabilities, in its order"""
    known = [name for name, in interface.rows(CAPS, "HGHCA_RSNIC_CAPS")]
    same(len(known), 100, "members")
    found = rows("offset", "member", "value")
    same([name for _, name, _ in found], known, "members of the page")
    same([int(offset, 16) for offset, _, _ in found], [8 * number for number in range(100)], "offsets")


def test_document():
    """The rows of the RSNIC document have the members of the header's structure, in its order"""
    names = [MEMBER.match(item)[1] for _, item, *_ in rsnic.CAPS_MEMBERS]
    same([READ_AS.get(name, name) for name in names],
         [name for name, in interface.rows(CAPS, "HGHCA_RSNIC_CAPS")], "members")
