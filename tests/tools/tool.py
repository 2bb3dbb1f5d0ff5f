# SPDX-License-Identifier: GPL-2.0-or-later
"""Running the tool as a user would, and saying what is wanted of it."""

import os
import subprocess
import time

from hghca_lib import repo

TOOL = os.environ.get("HGHCA_TOOL") or str(repo.path("tools/hghca"))


def tier(name):
    """The tier of hghca_lib.tiers that a test belongs to."""
    def mark(test):
        test.tier = name
        return test
    return mark


class Ended:
    def __init__(self, done, seconds):
        self.status = done.returncode
        self.stdout = done.stdout
        self.stderr = done.stderr
        self.seconds = seconds


def hghca(*arguments, env=None, wrap=(), timeout=300):
    """Run the tool with the arguments; wrap is put before it, env over the environment."""
    start = time.monotonic()
    done = subprocess.run([*wrap, TOOL, *map(str, arguments)], env={**os.environ, **(env or {})},
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout)
    done.stdout, done.stderr = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    return Ended(done, time.monotonic() - start)


def same(found, wanted, what="value"):
    assert found == wanted, f"{what} is {found!r}, not {wanted!r}"


def holds(text, *parts):
    for part in parts:
        assert part in text, f"{part!r} is missing in {text[-1500:]!r}"


def fails(ended, status, *parts):
    """The tool ended with the status and said all the parts, without a traceback."""
    assert ended.status == status, f"status {ended.status}, not {status}: {ended.stderr[-1500:]!r}"
    assert "Traceback" not in ended.stderr, ended.stderr[-1500:]
    holds(ended.stderr, *parts)
