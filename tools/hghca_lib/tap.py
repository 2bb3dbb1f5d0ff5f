# SPDX-License-Identifier: GPL-2.0-or-later
"""Test results in the Test Anything Protocol: written by suites in Python, read from programs."""

import dataclasses
import re
import sys

RESULT = re.compile(r"^(ok|not ok) (\d+) - (.*)$")
PLAN = re.compile(r"^1\.\.(\d+)$")


@dataclasses.dataclass
class Result:
    """One result; notes: the lines of `# ` before it."""
    name: str
    passed: bool
    notes: str


def read(text):
    """The output of a program, as (its Results, the number planned or None)."""
    found, notes, planned = [], [], None
    for line in text.splitlines():
        result, plan = RESULT.match(line), PLAN.match(line)
        if result:
            found.append(Result(result.group(3), result.group(1) == "ok", "\n".join(notes)))
            notes = []
        elif plan:
            planned = int(plan.group(1))
        elif line.startswith("# "):
            notes.append(line[2:])
    return found, planned


class Report:
    """Counts and prints results; finish() prints the plan and ends the process.

    prefix: of the names of results, from now on.
    """

    def __init__(self, stream=None):
        self.stream = stream or sys.stdout
        self.count = 0
        self.failed = 0
        self.prefix = ""

    def result(self, passed, name, details=""):
        """One result; `details` are printed if it failed."""
        self.count += 1
        self.failed += not passed
        self._print(f"{'ok' if passed else 'not ok'} {self.count} - {self.prefix}{name}")
        if not passed and details:
            self.note(details)

    def note(self, text):
        """Lines that are not results."""
        for line in text.rstrip().splitlines():
            self._print(f"# {line}")

    def run(self, name, test, *arguments):
        """Run a test function: it passes unless it raises; an AssertionError has the reason."""
        try:
            test(*arguments)
        except Exception as error:  # noqa: BLE001 - any failure is one failed test
            self.result(False, name, f"{type(error).__name__}: {error}")
        else:
            self.result(True, name)

    def finish(self):
        self._print(f"1..{self.count}")
        sys.exit(1 if self.failed or not self.count else 0)

    def _print(self, line):
        print(line, file=self.stream, flush=True)
