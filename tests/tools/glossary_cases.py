# SPDX-License-Identifier: GPL-2.0-or-later
"""The glossary is sorted and explains each term once."""

import re

from tool import same

from hghca_lib import repo

PAGE = repo.path("docs/explanation/glossary.rst")


def terms(text):
    return re.findall(r"^(\w.*)\n  \S", text, re.MULTILINE)


def misplaced(names):
    """Those that are not behind the name before them in the alphabet."""
    return [name for before, name in zip(names, names[1:]) if name.lower() <= before.lower()]


def test_order():
    """The terms of the glossary are in alphabetical order, each once"""
    names = terms(PAGE.read_text())
    assert len(names) > 80, f"only {len(names)} terms were found"
    same(misplaced(names), [], "terms out of order")


def test_misplaced():
    """A term that is out of order, and one that is there twice, are found"""
    names = terms("CQ\n  One.\n\nACK\n  Two.\n\nRC\n  Three\n  lines.\n\nrc\n  Four.\n")
    same((names, misplaced(names)), (["CQ", "ACK", "RC", "rc"], ["ACK", "rc"]), "terms")
