# SPDX-License-Identifier: GPL-2.0-or-later
"""Objects of processes in buffers that are attributes of a method: programs/buffers.c."""

from data import run_program, to_itself
from framework import test


@test("buffers: given by attribute, an HCA to itself", lines=True, subjects=("hghca",))
def by_itself(testbed):
    """Linux has the attributes since 7.3; others refuse them."""
    run_program(testbed, "buffers", to_itself(testbed))
