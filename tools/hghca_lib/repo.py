# SPDX-License-Identifier: GPL-2.0-or-later
"""The checkout that the tool belongs to."""

from pathlib import Path

from .errors import ToolError

ROOT = Path(__file__).resolve().parents[2]


def path(name):
    """A file or folder of the checkout, which must be there."""
    found = ROOT / name
    if not found.exists():
        raise ToolError(f"the checkout at {ROOT} lacks {name}", "use a complete checkout")
    return found
