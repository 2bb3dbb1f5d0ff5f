# SPDX-License-Identifier: GPL-2.0-or-later
"""The tutorial's RDMA WRITE: the bytes on the page are the device's."""

import re
import tempfile

import first_write
from hghca_lib import repo

PAGE = repo.path("docs/tutorial/first-write.rst")


def blocks(text):
    """The page's literal blocks that begin as the report's do, as lists of their lines."""
    return [[line[3:].rstrip() for line in block.strip("\n").splitlines()]
            for block in re.findall(r"::\n\n((?:   .*\n|\n(?=   ))+)", text) if re.match(r"   .*, \d+ bytes\n", block)]


def reported():
    with tempfile.TemporaryDirectory() as folder:
        lines = first_write.report(f"{folder}/first-write.pcapng")
    return [block.splitlines() for block in "\n".join(lines).split("\n\n")]


def test_first_write():
    """Each byte of the first RDMA WRITE of the tutorial is the device's"""
    found, wanted = blocks(PAGE.read_text()), reported()
    if len(wanted) != 5:
        raise AssertionError(f"{len(wanted)} blocks")
    for on_page, of_device in zip(found, wanted):
        if on_page != of_device:
            raise AssertionError("\n".join(["on the page:", *on_page, "of the device:", *of_device]))
    if len(found) != len(wanted):
        raise AssertionError(f"{len(found)} blocks on the page, {len(wanted)} of the device")
