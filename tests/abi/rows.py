# SPDX-License-Identifier: GPL-2.0-or-later
"""Rows of a document: a register, a field or a statement, and what the device does with it."""

import dataclasses

IMPLEMENTED, EXTENDED, DEPARTS, NOT_MEANINGFUL = "implemented", "extended", "departs", "not meaningful"
STATUSES = (IMPLEMENTED, EXTENDED, DEPARTS, NOT_MEANINGFUL)


@dataclasses.dataclass(frozen=True)
class Row:
    """Where it is in the document, what it is, what the device does, and the test or the reason."""
    where: str
    item: str
    status: str
    why: str
