# SPDX-License-Identifier: GPL-2.0-or-later
"""The checkout that the tool belongs to."""

import subprocess
from pathlib import Path

from .errors import ToolError

ROOT = Path(__file__).resolve().parents[2]


def path(name):
    """A file or folder of the checkout, which must exist."""
    found = ROOT / name
    if not found.exists():
        raise ToolError(f"the checkout at {ROOT} lacks {name}", "use a complete checkout")
    return found


def changed():
    """The files, as paths from ROOT, that differ from the last commit; if none differs, those of the commit."""
    now = git("diff", "--name-only", "HEAD") | git("ls-files", "--others", "--exclude-standard")
    return {name for name in now or git("diff", "--name-only", "HEAD~1", "HEAD") if (ROOT / name).is_file()}


def git(*arguments):
    """The lines of git's output for the checkout."""
    done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True)
    if done.returncode:
        raise ToolError(f"git {' '.join(arguments)}: {done.stderr.strip()}", "use a checkout with its history")
    return set(done.stdout.splitlines())
