# SPDX-License-Identifier: GPL-2.0-or-later
"""Findings of a checker, and the exceptions that one may have.

The file of exceptions beside this one is named after its checker. A line is a
kind of finding and a regular expression for the whole line the checker prints,
each with its reason above it. One that is not needed any more is a failure too.
"""

import re
from pathlib import Path

HERE = Path(__file__).resolve().parent


class Exceptions:
    """What a checker may say."""

    def __init__(self, checker):
        self.checker = checker
        self.allowed = []
        self.used = set()
        for line in (HERE / f"{checker}-exceptions").read_text().splitlines():
            if line and not line.startswith("#"):
                kind, _, pattern = line.partition(" ")
                self.allowed.append((kind, re.compile(pattern)))

    def cover(self, kind, line):
        """Whether this finding may be; the exception that says so has been needed."""
        for index, (allowed, pattern) in enumerate(self.allowed):
            if kind == allowed and pattern.search(line):
                self.used.add(index)
                return True
        return False

    def report(self, report):
        """The last result of a checker: every exception was needed."""
        unused = [f"{kind} {pattern.pattern}" for index, (kind, pattern) in enumerate(self.allowed)
                  if index not in self.used]
        report.result(not unused, f"{self.checker}: every exception is needed", "\n".join(unused))
