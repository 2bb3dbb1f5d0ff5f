# SPDX-License-Identifier: GPL-2.0-or-later
"""The results of a plan: read from the tests' output, written as JSON, KTAP and logs, compared with an earlier run."""

import dataclasses
import json
import re
from pathlib import Path

from ..errors import ToolError, UsageError

VERSION = 1
# As `git bisect run` takes it, the second says that a commit cannot be tested.
STATUS_FAILED, STATUS_UNTESTABLE = 1, 125
RESULT = re.compile(r"^(ok|not ok) \d+ - (.*)$")
SECONDS = re.compile(r"^[\d.]+ s$")
# The time and the thread before the text of a line of the console.
STAMP = re.compile(r"^(<\d+>)?\[ *[\d.]+\](\[ *[TC]\d+\])? ?")
# A splat begins at one of these lines; it ends at one of those, or where another begins.
BEGIN = re.compile(r"\[ cut here \]|^BUG: |^Oops: |^WARNING: (possible|suspicious|bad|inconsistent)|^general protection|"
                   r"^unreferenced object|^INFO: (task|rcu)|^watchdog: BUG|^Kernel panic")
END = re.compile(r"\[ end trace |^={20,}$| </TASK>$|^---\[ end Kernel panic")
# What a splat is called by: the function that it names.
FUNCTIONS = (re.compile(r"^(?:BUG|WARNING): .*? (?:in|at) (?:\S+:\d+ )?(?:at )?(\w+)(?:\.\w+)*\+0x"),
             re.compile(r"^RIP: \S+?:(\w+)"), re.compile(r"^INFO: task (\S+?):\d+"), re.compile(r"^ +(\w+)\+0x"))
LINES_OF_A_SPLAT = 80


@dataclasses.dataclass
class Result:
    """One result; notes: the lines that came with it."""
    name: str
    passed: bool
    seconds: float = 0
    notes: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Splat:
    """A report in a kernel log: the function that it names, its first line, the log's file, all lines."""
    function: str
    title: str
    file: str
    text: str


@dataclasses.dataclass
class Run:
    """The results of a plan under one kernel.

    what:     what they must have in common with a run that they are compared with: plan, subject, checkers.
    about:    facts on the run, by name: the tree, its commit, the release, the date.
    figures:  rows of a bench, as bench.Bench.results() has them.
    """
    what: dict
    about: dict
    results: list = dataclasses.field(default_factory=list)
    splats: list = dataclasses.field(default_factory=list)
    figures: list = dataclasses.field(default_factory=list)

    def failed(self):
        return [result for result in self.results if not result.passed]

    def passed(self):
        """Whether there are results, and all of them are good."""
        return bool(self.results) and not self.failed()


class Reader:
    """Takes the output of tests line by line. results: those so far."""

    def __init__(self):
        self.results = []

    def take(self, line):
        """A line; the Result that it begins, or None."""
        found = RESULT.match(line)
        if found:
            self.results.append(Result(found.group(2), found.group(1) == "ok"))
            return self.results[-1]
        if line.startswith("# ") and self.results:
            last, note = self.results[-1], line[2:]
            if SECONDS.match(note) and not last.seconds:
                last.seconds = float(note[:-2])
            else:
                last.notes.append(note)
        return None


def splats(path):
    """The splats of a kernel log."""
    found, lines, end = [], [], False
    for line in path.read_text(errors="replace").splitlines():
        text = STAMP.sub("", line)
        if BEGIN.search(text) and (not lines or end or "cut here" in text):
            found += [splat(lines, path)] if lines else []
            lines, end = [text], False
        elif lines and not end:
            lines.append(text)
            end = len(lines) > 2 and END.search(text) is not None or len(lines) >= LINES_OF_A_SPLAT
    return found + ([splat(lines, path)] if lines else [])


def splat(lines, path):
    titles = [line for line in lines if "cut here" not in line] or lines
    function = next((match.group(1) for pattern in FUNCTIONS for line in lines if (match := pattern.search(line))), "unknown")
    return Splat(function, titles[0], path.name, "\n".join(lines))


@dataclasses.dataclass
class Change:
    """What differs from an earlier run, as lists of names; flaky: passed and failed within this run."""
    new: list
    fixed: list
    still: list
    gone: list
    flaky: list


def verdicts(run):
    """{name: [whether it passed, for each time that it ran]}."""
    found = {}
    for result in run.results:
        found.setdefault(result.name, []).append(result.passed)
    return found


def compare(run, baseline=None):
    """The Change since the baseline, a Run or None: then each failure is new."""
    now, before = verdicts(run), verdicts(baseline) if baseline else {}
    bad = [name for name, passed in now.items() if not all(passed)]
    good_before = {name for name, passed in before.items() if all(passed)}
    return Change(new=[name for name in bad if name in good_before or name not in before],
                  fixed=[name for name, passed in now.items() if all(passed) and name in before and name not in good_before],
                  still=[name for name in bad if name in before and name not in good_before],
                  gone=[name for name in before if name not in now],
                  flaky=[name for name in bad if any(now[name])])


def write(run, path):
    Path(path).write_text(json.dumps({"version": VERSION, **dataclasses.asdict(run)}, indent=1) + "\n")


def read(path, what=None):
    """The Run in a file; ToolError for a file without one, or with one that is not of the same plan, subject and kind of kernel."""
    try:
        data = json.loads(Path(path).read_text())
        if data.pop("version") != VERSION:
            raise ToolError(f"{path} is of another version of the tool", "run the plan again")
        run = Run(**{**data, "results": [Result(**each) for each in data["results"]],
                     "splats": [Splat(**each) for each in data["splats"]]})
    except OSError as error:
        raise UsageError(f"cannot read the baseline {path}: {error.strerror}",
                         "give the results.json of an earlier run") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ToolError(f"{path} has no results of `tools/hghca ci`", "give the results.json of an earlier run") from error
    for name, value in (what or {}).items():
        if run.what.get(name) != value:
            raise ToolError(f"the baseline {path} is of another run: {name} is {run.what.get(name)}, not {value}",
                            f"give a baseline whose {name} is {value}")
    return run


def ktap(run):
    """All results as text in the kernel's Test Anything Protocol, version 1."""
    lines = ["KTAP version 1", f"1..{len(run.results)}"]
    for number, result in enumerate(run.results, 1):
        # A # would begin a directive.
        lines.append(f"{'ok' if result.passed else 'not ok'} {number} {result.name.replace('#', '')}")
        lines += [f"# {note}" for note in result.notes]
    return "\n".join(lines) + "\n"


def logs(run, folder):
    """A file for each result."""
    folder.mkdir(exist_ok=True)
    for number, result in enumerate(run.results, 1):
        name = re.sub("[^A-Za-z0-9]+", "-", result.name).strip("-")[:100]
        verdict = "passed" if result.passed else "failed"
        (folder / f"{number:03}-{name}.log").write_text("\n".join([f"{result.name}: {verdict}, {result.seconds:.1f} s",
                                                                   *result.notes]) + "\n")
